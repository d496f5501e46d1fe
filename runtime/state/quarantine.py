"""The quarantine: rejected rows in few files, merged by size tiers. Retention drops whole files, the oldest first."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tidegate.algebra.errors import QueryError, cut
from tidegate.runtime.arrow_arrays import array_of_values
from tidegate.runtime.state.errors import DATA, StateError, storage_errors
from tidegate.runtime.state.segments import (
    Segment,
    plan_compaction,
    read_segments,
    replaced,
    schema_id,
    write_segment,
)
from tidegate.runtime.state.store.interface import FileRef, Store

AREA: Final = "quarantine"
CLOCK: Final = "clock"
#: A file of so many rows or bytes is not merged any more: what a batch rewrites is bounded, and memory with it.
_MOST_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 8 << 20
#: Nor is one of so many rows, or of so many times as many as the batch has set aside, as long as files are fewer than
#: these. Otherwise a batch with few such rows would wait for hundreds of thousands of others.
_LEAST_ROWS: Final = 1 << 12
_REWRITTEN: Final = 4
_MANY_FILES: Final = 128
#: Files are merged within such a part of the age or size that is kept, since a file is dropped whole.
_PARTS: Final = 8
#: A rejected row as the quarantine stores it: where it came from, why it was rejected, the row itself as JSON text, and
#: the error of a term that has no value for it.
QUARANTINE_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("attribute", pa.string()),
        pa.field("row", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
#: Rejected rows of a batch that are Python values at a time.
_TOGETHER: Final = 1 << 16
_logger = logging.getLogger("tidegate.state")


class RejectedRow(NamedTuple):
    """A row of the quarantine, by the columns of `QUARANTINE_SCHEMA`."""

    source: str
    origin: str
    position: int
    reason: str
    attribute: str | None
    row: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Retention:
    """How long rejected rows are kept: until they are older than `age` (microseconds), and `bytes` of them at most, or
    one file.
    """

    age: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DroppedTotals:
    """What retention dropped so far: files, rows and bytes, and the clock of the newest batch among them."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    until: int | None = None

    def and_then(self, segment: Segment) -> DroppedTotals:
        newest = segment.bounds[CLOCK][1]
        until = newest if self.until is None else max(newest, self.until)
        return DroppedTotals(self.files + 1, self.rows + segment.rows, self.bytes + segment.bytes, until)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Every rejected row that is kept, once: files, oldest first, each with the clocks of its batches as bounds."""

    files: tuple[Segment, ...] = ()
    dropped: DroppedTotals = field(default_factory=DroppedTotals)

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.files)

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self.files)

    @property
    def oldest(self) -> int | None:
        """The clock of the oldest batch of which rows are kept."""
        return min((segment.bounds[CLOCK][0] for segment in self.files), default=None)

    @property
    def newest(self) -> int | None:
        """The clock of the newest batch of which rows are kept."""
        return max((segment.bounds[CLOCK][1] for segment in self.files), default=None)

    def refs(self) -> Iterator[FileRef]:
        for segment in self.files:
            yield segment.file

    def kept(self, keep: Retention, clock: int) -> Quarantine:
        """Without the files that retention lets go at this clock.

        The size lets go of all but the file with the newest rows, however large it is: otherwise nothing would be known
        of a batch whose rejected rows alone are more.
        """
        files, dropped, size = list(self.files), self.dropped, self.bytes
        newest = max(reversed(self.files), key=lambda file: file.bounds[CLOCK][1], default=None)
        # A batch's files stand in the order of batches, merged ones in the place of their oldest.
        for segment in sorted(self.files, key=lambda file: file.bounds[CLOCK]):
            too_old = keep.age is not None and segment.bounds[CLOCK][1] < clock - keep.age
            too_much = keep.bytes is not None and size > keep.bytes and segment is not newest
            if too_old or too_much:
                files.remove(segment)
                size -= segment.bytes
                dropped = dropped.and_then(segment)
        return self if len(files) == len(self.files) else Quarantine(tuple(files), dropped)


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A file as `plan_compaction` sees it; only those of one `shard`, here a span of time, are merged."""

    rows: int
    schema: str
    shard: int
    segment: Segment | None


def is_full(segment: Segment) -> bool:
    """Whether a file is merged no more, so that nothing but retention takes it away."""
    return segment.rows >= _MOST_ROWS or segment.bytes >= _MOST_BYTES


def set_aside(store: Store, table: Any, clock: int, seq: int, attempt: str) -> Segment:
    """Write rejected rows as a file of the quarantine; it counts once a manifest names it."""
    segment = write_segment(store, "rows", table, (), seq, attempt, area=AREA)
    return replace(segment, bounds={CLOCK: (clock, clock)})


def appended(
    store: Store,
    before: Quarantine,
    written: Sequence[Segment],
    tables: Sequence[Any],
    keep: Retention,
    clock: int,
    seq: int,
    attempt: str,
) -> Quarantine:
    """The quarantine after adding files that were `written` already and the rows of `tables`, merged and cut to what is
    kept.

    Rows that are merged at once are written once.
    """
    import pyarrow as pa

    if not written and not tables:
        return before.kept(keep, clock)
    bounded = Quarantine((*before.files, *written), before.dropped).kept(keep, clock)
    span = None if keep.age is None else max(1, keep.age // _PARTS)
    most = _MOST_BYTES if keep.bytes is None else min(_MOST_BYTES, keep.bytes // _PARTS)
    live = [
        _Piece(file.rows, file.schema, 0 if span is None else file.bounds[CLOCK][0] // span, file)
        for file in bounded.files
    ]
    new = pa.concat_tables(map(_bare, tables)) if tables else None
    if new is not None:
        live.append(_Piece(new.num_rows, schema_id(new.schema), 0 if span is None else clock // span, None))
    small = [piece for piece in live if piece.segment is None or piece.segment.bytes < most]
    result, dropped = tuple(live), bounded.dropped
    fresh = sum(segment.rows for segment in written) + sum(table.num_rows for table in tables)
    groups = plan_compaction(small, max_rows=min(_MOST_ROWS, max(_LEAST_ROWS, _REWRITTEN * fresh)))
    if not groups and sum(piece.rows < _MOST_ROWS for piece in small) > _MANY_FILES:
        groups = plan_compaction(small, max_rows=_MOST_ROWS)[:1]
    for group in groups:
        parts: dict[_Piece, Any] = {}
        for piece in group:
            segment = piece.segment
            if segment is None:
                parts[piece] = new
            elif not _is_there(store, segment):  # rejected rows are the user's to take away
                _logger.warning("%s is gone, its %d rejected rows count as dropped", segment.path, segment.rows)
                dropped = dropped.and_then(segment)
                result = tuple(other for other in result if other is not piece)
            elif (rows := _rows(store, segment)) is not None:
                parts[piece] = rows
        if len(parts) < 2:
            continue
        clocks = [c for part in parts for c in (part.segment.bounds[CLOCK] if part.segment is not None else (clock,))]
        with storage_errors("merging quarantined rows"):
            merged = set_aside(store, pa.concat_tables(parts.values()), clock, seq, attempt)
        merged = replace(merged, bounds={CLOCK: (min(clocks), max(clocks))})
        result = replaced(result, list(parts), replace(next(iter(parts)), segment=merged))
    files = []
    for piece in result:
        if piece.segment is not None:
            files.append(piece.segment)
        else:
            with storage_errors("writing quarantined rows"):
                files.append(set_aside(store, new, clock, seq, attempt))
    return Quarantine(tuple(files), dropped).kept(keep, clock)


def _is_there(store: Store, segment: Segment) -> bool:
    with storage_errors(f"looking for {segment.path}"):
        return store.exists(segment.path)


def _rows(store: Store, segment: Segment) -> Any | None:
    """The rows of a file; None if it is damaged: no result depends on it, so the run goes on, and whoever reads it is
    told.
    """
    try:
        return read_segments(store, [segment])
    except StateError as error:
        if error.code != DATA:
            raise
        _logger.warning("rejected rows are not merged: %s", error.message)
        return None


def _bare(table: Any) -> Any:
    """The table's names and types alone, as `read_segments` gives them, without nullability."""
    import pyarrow as pa

    return pa.Table.from_arrays(table.columns, names=table.column_names)


def quarantine_table(rows: Sequence[RejectedRow]) -> pa.Table:
    """Rejected rows as the quarantine stores them."""
    columns = list(zip(*rows, strict=True)) or [()] * len(QUARANTINE_SCHEMA)
    arrays = [array_of_values(column, f.type) for column, f in zip(columns, QUARANTINE_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=QUARANTINE_SCHEMA)


@dataclass(slots=True)
class RejectedRows:
    """Rejected rows of a batch on their way to the quarantine: Arrow tables, and the last ones as Python values, which
    take several times as much memory.
    """

    _tables: list[pa.Table] = field(default_factory=list)
    _rows: list[RejectedRow] = field(default_factory=list)

    def __len__(self) -> int:
        packed: int = sum(table.num_rows for table in self._tables)
        return packed + len(self._rows)

    def append(self, row: RejectedRow) -> None:
        self._rows.append(row)
        if len(self._rows) >= _TOGETHER:
            self._pack()

    def extend(self, other: RejectedRows) -> None:
        """Adds the rows of `other` after these."""
        if other:
            self._pack()
            self._tables += other._tables
            self._rows += other._rows

    def table(self) -> pa.Table:
        """All of them, as the quarantine stores them."""
        return pa.concat_tables([*self._tables, quarantine_table(self._rows)])

    def _pack(self) -> None:
        if self._rows:
            self._tables.append(quarantine_table(self._rows))
            self._rows.clear()


def error_text(error: QueryError) -> str:
    """Code and message in a line, of a term with the values of its operands; of very long ones both ends."""
    witness = error.problems[0].because
    return f"{error.code} {cut(error.message)}" + (f": {cut(', '.join(witness))}" if witness else "")
