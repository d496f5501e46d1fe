"""Rows of a stream that has a key: which of them repeat one that was accepted, how long that has to be remembered, and
how remembered rows are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from tidegate.algebra.nodes import Scan
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Term
from tidegate.analysis.state.thresholds import Extents
from tidegate.runtime.eval.increment import no_rows
from tidegate.runtime.eval.joins.indexed_rows import IndexedRows, wanted_frame
from tidegate.runtime.eval.joins.key_index import LookUpKeys
from tidegate.runtime.plan.steps import Buffer, Progress, pass_window
from tidegate.runtime.rows import Rows
from tidegate.runtime.state.segments import Segment

DUPLICATE = "duplicate"
CONFLICT = "conflict"
_FIRST, _KNOWN = "\0first", "\0known"


@dataclass(frozen=True, slots=True)
class KeyMemory:
    """The accepted rows of a stream with a key, in a buffer of their own.

    A row is remembered until it is late by a progressing attribute of its key: another row with that key has the same
    instant there, so from then on it is late whatever else it holds. That bounds the memory by the delay, and needs
    such an attribute in the key.
    """

    buffer: Buffer
    key: tuple[str, ...]
    instants: tuple[str, ...]

    def keep(self, b: Progress) -> Term:
        """Which remembered rows can still be repeated by a row that is not late."""
        return pass_window([(name, b[name]) for name in self.instants], None, self.buffer.schema)

    def keeps_segment(self, bounds: Extents, b: Progress) -> bool:
        return all(bounds[name][1] > b[name] for name in self.instants)


class ReadIndexed(Protocol):
    """Gives the rows of a segment with an index by a key, where there is one. Rows that are `known` are not read."""

    def __call__(self, segment: Segment, key: tuple[str, ...], known: Rows | None, /) -> IndexedRows: ...


@dataclass(slots=True)
class RememberedRows:
    """Accepted rows of a stream by which others are judged: those in segments, and those of this batch.

    A batch looks up the keys of its own rows. So it costs what these are, and not what is remembered.
    """

    buffer: Buffer
    key: tuple[str, ...]
    segments: tuple[Segment, ...]
    read: ReadIndexed
    of_batch: list[pl.DataFrame] = field(default_factory=list)
    _known: dict[str, Rows] = field(default_factory=dict)
    """Rows of segments that the batch has looked into, by path."""

    @property
    def columns(self) -> list[str]:
        return list(self.buffer.stored.names)

    def like(self, *rows: pl.DataFrame) -> pl.DataFrame:
        """All remembered rows that have a key of these rows, and perhaps others."""
        keys = pl.concat([some.select(self.key) for some in rows])
        extents = {name: _extent(keys.get_column(name)) for name in self.key}
        near = [s for s in self.segments if keys.height and _may_hold(s.bounds, extents)]
        found = wanted_frame([self._read_once(s) for s in near], LookUpKeys.at_any_instant(keys, self.key), None)
        return pl.concat([no_rows(self.buffer), *(part.select(self.columns) for part in (*found, *self.of_batch))])

    def add(self, rows: pl.DataFrame) -> None:
        """Rows of this batch that are accepted."""
        if rows.height:
            self.of_batch.append(rows.select(self.columns))

    def _read_once(self, segment: Segment) -> IndexedRows:
        """The rows of a segment, read once for a batch, with the index that they may have got meanwhile."""
        found = self.read(segment, self.key, self._known.get(segment.path))
        self._known[segment.path] = found.rows
        return found


def _extent(values: pl.Series) -> tuple[int, int] | None:
    """The least and the greatest of values that have bounds in segments; None where there is no value."""
    least, greatest = (values.min(), values.max()) if values.dtype == pl.Int64 else (None, None)
    return (least, greatest) if isinstance(least, int) and isinstance(greatest, int) else None


def _may_hold(bounds: Mapping[str, tuple[int, int]], extents: Mapping[str, tuple[int, int] | None]) -> bool:
    """Whether a segment with these bounds may hold a key of rows whose attributes have these extents."""
    for name, extent in extents.items():
        if name in bounds:
            low, high = bounds[name]
            if extent is None or extent[1] < low or high < extent[0]:
                return False
    return True


def memory_of(stream: str) -> str:
    """The buffer that remembers rows of a stream with a key."""
    return f"keys of {stream}"


def key_memory(stream: StreamDef, key: Sequence[str]) -> KeyMemory:
    buffer = Buffer(memory_of(stream.name), stream, Scan(stream), 0, (), stream.schema.temporal)
    return KeyMemory(buffer, tuple(key), tuple(name for name in key if name in stream.progress))


def key_rejections(rows: pl.DataFrame, seen: pl.DataFrame, key: Sequence[str], arrival: str | None = None) -> pl.Series:
    """Per row, in order of arrival, why it is rejected: an accepted row, here or in `seen`, has its key; NULL if none
    has.

    `seen` has every key once. Of rows with equal keys the first counts, and the others are compared with it: equal in
    all values but the arrival (`duplicate`) or not (`conflict`). NULL equals NULL.
    """
    key, names = list(key), seen.columns
    numbered = rows.select(names).with_row_index(_FIRST)
    known = seen.join(numbered.select(key), on=key, how="semi", nulls_equal=True).with_columns(
        pl.lit(None, pl.UInt32).alias(_FIRST)
    )
    accepted = pl.concat([known.select(numbered.columns), numbered]).unique(key, keep="first", maintain_order=True)
    others = {name: f"{_KNOWN}{name}" for name in (_FIRST, *names) if name not in key}
    compared = numbered.join(accepted.rename(others), on=key, how="left", nulls_equal=True, maintain_order="left")
    values = [name for name in names if name not in (*key, arrival)]
    same = pl.all_horizontal(pl.lit(True), *(pl.col(name).eq_missing(pl.col(others[name])) for name in values))
    itself = pl.col(_FIRST).eq_missing(pl.col(others[_FIRST]))
    reason = (
        pl.when(itself)
        .then(pl.lit(None, pl.String))
        .otherwise(pl.when(same).then(pl.lit(DUPLICATE)).otherwise(pl.lit(CONFLICT)))
    )
    return compared.select(reason.alias("reason"))["reason"]
