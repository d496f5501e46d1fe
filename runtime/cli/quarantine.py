"""`tidegate quarantine`: the rejected rows that a checkpoint keeps, by source and reason, and the latest of them one by
one.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.algebra.printing.plans import count_of, printable
from tidegate.analysis.inner_queries import owner_of
from tidegate.runtime.ingest.quarantine import read_quarantine


@dataclass(frozen=True, slots=True)
class QuarantineListing:
    """Kept rows of a source, or of all, with a reason, or any; `str()` is text for people, `to_dict()` the same as
    JSON.
    """

    where: str
    counts: Mapping[str, Mapping[str, int]]
    """How many there are, per source and reason."""
    latest: Sequence[Mapping[str, Any]]
    missing: str = ""
    """What there are none of, and what else there is."""

    @property
    def rows(self) -> int:
        return sum(sum(reasons.values()) for reasons in self.counts.values())

    def __str__(self) -> str:
        shown = f", the latest {len(self.latest):,} below" if len(self.latest) < self.rows else ""
        lines = [f"quarantine of {self.where}: {count_of(self.rows, 'row')}{self.missing}{shown}"]
        width = max(map(len, self.counts), default=0)
        for source, reasons in self.counts.items():
            counted = ", ".join(f"{rows:,} {reason}" for reason, rows in reasons.items())
            lines.append(f"  {source:{width}}  {counted}")
        return printable("\n".join([*lines, *map(_text, self.latest)]))

    def to_dict(self) -> dict[str, object]:
        return {
            "checkpoint": self.where,
            "rows": self.rows,
            "counts": {source: dict(reasons) for source, reasons in self.counts.items()},
            "latest": [dict(row) for row in self.latest],
        }


def _text(row: Mapping[str, Any]) -> str:
    place = "" if row["position"] < 0 else f"row {row['position']:,} of "
    where = "" if row["origin"].startswith("query ") else f", {place}{row['origin']}"
    attribute = "" if row["attribute"] is None else f", for {row['attribute']}"
    why = "" if row["error"] is None else f"\n  because  {row['error']}"
    return f"\n{row['source']}: {row['reason']}{attribute}{where}\n  {row['row']}{why}"


def list_quarantine(
    checkpoint: str | os.PathLike[str], source: str | None, reason: str | None, most: int
) -> QuarantineListing:
    """The rows that a checkpoint keeps of a `source`, an input or a result that set rows aside, with this `reason`, and
    the latest `most` of them; `StateError` where there is no checkpoint, or it is damaged."""
    counts: dict[str, Counter[str]] = {}
    latest: deque[Mapping[str, Any]] = deque(maxlen=most)
    others: set[str] = set()
    for batch in read_quarantine(checkpoint):
        for row in batch.to_pylist():
            of = owner_of(row["source"])
            others.add(f"{of} ({row['reason']})")
            if source in (None, of) and reason in (None, row["reason"]):
                counts.setdefault(of, Counter())[row["reason"]] += 1
                latest.append(row | {"source": of})
    listed = {name: dict(sorted(counts[name].items(), key=lambda item: (-item[1], item[0]))) for name in sorted(counts)}
    missing = f" like this; there are {', '.join(sorted(others))}" if others and not listed else ""
    return QuarantineListing(os.fspath(checkpoint), listed, tuple(latest), missing)
