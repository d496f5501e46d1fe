"""Names of the files in a directory of results."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidegate.runtime.state.store.paths import slug

#: As a batch publishes it, or with the last of the batches whose files were merged into it.
_NAME = re.compile(r"part-(\d{10})-(?:to-(\d{10})-)?([A-Za-z0-9_-]+)-(\d{5})\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class Result:
    """A file of results by its name: of which batches, which of their parts, of which query (its `slug`)."""

    first: int
    part: int
    last: int
    query: str
    name: str

    @property
    def merged(self) -> bool:
        """Whether compaction made the file."""
        return _NAME.fullmatch(self.name)[2] is not None  # type: ignore[index]  # a name of this form

    def merged_with(self, last: Result) -> str:
        """The name of a file with the rows from this one to the other; it sorts where this one did."""
        return f"part-{self.first:010d}-to-{last.last:010d}-{self.query}-{self.part:05d}.parquet"


def result_of(name: str) -> Result | None:
    """The parts of a result file's name; None for any other name."""
    parsed = _NAME.fullmatch(name)
    if parsed is None:
        return None
    first, last, query, part = parsed.groups()
    return Result(int(first), int(part), int(last or first), query, name)


def output_name(seq: int, query: str, part: int) -> str:
    """The name of a query's file of results, by which files sort in the order of the batches."""
    return f"part-{seq:010d}-{slug(query)}-{part:05d}.parquet"


def is_output_of(query: str, name: str) -> bool:
    """Whether this is the name of a file with results of the query."""
    result = result_of(name)
    return result is not None and result.query == slug(query)
