"""Where a run reads and where it writes: apart from each other, so that it never reads what it wrote itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.algebra.errors import QueryError
from tidegate.runtime.connectors.sinks import ParquetSink, Sink
from tidegate.runtime.connectors.sources import Files, Source, files_meant


@dataclass(frozen=True, slots=True)
class Place:
    """A directory, or a file, and what it is to the run; `real` is where it lies once all links are followed."""

    role: str
    path: str

    @property
    def real(self) -> str:
        return os.path.realpath(self.path)

    def __str__(self) -> str:
        behind = "" if self.real == os.path.abspath(self.path) else f", which is {self.real}"
        return f"{self.role} ({self.path}{behind})"


def check_apart(reads: Mapping[str, Iterable[str]], sinks: Mapping[str, Sink], checkpoint: str | None) -> None:
    """`QueryError` TG409 where a place that is written is at, above or below another one of the run.

    `reads` are the directories and files of streams and static tables. Results of two streams may lie in directories of
    which one is in the other, but not in the same one. `checkpoint` is None for state in memory.
    """
    read = [Place(f"the input of {name}", path) for name, paths in reads.items() for path in paths]
    out = [Place(f"the results of {name}", s.directory) for name, s in sinks.items() if isinstance(s, ParquetSink)]
    state = [] if checkpoint is None else [Place("the checkpoint", checkpoint)]
    for number, written in enumerate(out):
        for earlier in out[:number]:
            if earlier.real == written.real:
                raise _overlap(written, "are in the same directory as", earlier)
    pairs = [(written, place) for written in (*out, *state) for place in read]
    for written, place in [*pairs, *((written, place) for written in out for place in state)]:
        if written.real == place.real:
            raise _overlap(
                written, "are in the same directory as" if written in out else "is the same directory as", place
            )
        if is_below(written.real, place.real):
            raise _overlap(written, "would lie within", place)
        if is_below(place.real, written.real):
            raise _overlap(written, "would lie around", place)


def is_below(path: str, directory: str) -> bool:
    """Whether a real path lies below a directory's."""
    return path != directory and os.path.commonpath([path, directory]) == directory


def read_places(given: Mapping[str, object]) -> dict[str, Sequence[str]]:
    """The directory or file of each stream or static table that is read from files, of a source or of a path."""
    places: dict[str, Sequence[str]] = {}
    for name, rows in given.items():
        match rows:
            case Source(data=Files(directory=directory)) | Files(directory=directory):
                places[name] = [directory]
            case str() | os.PathLike():
                places[name] = [files_meant(rows).directory]
    return places


def _overlap(left: Place, how: str, right: Place) -> QueryError:
    return QueryError(
        "TG409",
        f"{left} {how} {right}",
        because=("what a run writes could be read as input, or taken for results that it is not",),
        hint="give each a directory of its own, none inside another",
    )
