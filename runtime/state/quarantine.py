"""The quarantine: rejected rows in files that are merged by size tiers until they are full. Full ones stand in tables.
Retention drops whole files, the oldest first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tidegate.algebra.errors import QueryError, cut
from tidegate.runtime.arrow_arrays import array_of_values
from tidegate.runtime.state.errors import DATA, StateError, storage_errors
from tidegate.runtime.state.rejects.file_tables import (
    AREA,
    CLOCK,
    LISTED,
    FileTable,
    files_of,
    list_of,
    table_of,
    with_files,
)
from tidegate.runtime.state.segments import (
    Segment,
    plan_compaction,
    read_segments,
    replaced,
    schema_id,
    write_segment,
)
from tidegate.runtime.state.store.interface import FileRef, Store

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
#: Rejected rows of a batch that are Python values at a time, and tables.
TOGETHER: Final = 1 << 13
_IN_MEMORY: Final = 1 << 16
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
    """Every rejected row that is kept, once: files, oldest first, each with the clocks of its batches as bounds.

    Most of the full ones stand in `tables`, which also come oldest first. `leaving` are full files that this batch has
    dropped: readers of the manifest before may still read them.
    """

    files: tuple[Segment, ...] = ()
    dropped: DroppedTotals = field(default_factory=DroppedTotals)
    tables: tuple[FileTable, ...] = ()
    leaving: tuple[FileRef, ...] = ()

    def entries(self) -> Iterator[Segment | FileTable]:
        """The tables, and the files that stand in none."""
        yield from self.tables
        yield from self.files

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self.entries())

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.entries())

    @property
    def count(self) -> int:
        """How many files there are."""
        return len(self.files) + sum(table.files for table in self.tables)

    @property
    def oldest(self) -> int | None:
        """The clock of the oldest batch of which rows are kept."""
        return min((_clocks(entry)[0] for entry in self.entries()), default=None)

    @property
    def newest(self) -> int | None:
        """The clock of the newest batch of which rows are kept."""
        return max((_clocks(entry)[1] for entry in self.entries()), default=None)

    def refs(self) -> Iterator[FileRef]:
        """The files that a manifest names: those of tables stand in these."""
        for segment in self.files:
            yield segment.file
        for table in self.tables:
            yield table.table.file


@dataclass(slots=True)
class _Retaining:
    """Which files retention lets go at a clock, the oldest first, with what is dropped so far.

    The size lets go of all but the file with the newest rows, however large it is: otherwise nothing would be known
    of a batch whose rejected rows alone are more.
    """

    keep: Retention
    clock: int
    newest: Segment | None
    size: int
    dropped: DroppedTotals
    leaving: list[FileRef]

    def drops(self, segment: Segment) -> bool:
        """Whether a file goes, which is noted then."""
        too_old = self._is_too_old(segment.bounds[CLOCK][1])
        too_much = self._is_too_much and segment is not self.newest
        if not (too_old or too_much):
            return False
        self.size -= segment.bytes
        self.dropped = self.dropped.and_then(segment)
        if is_full(segment):
            self.leaving.append(segment.file)
        return True

    def drops_of(self, table: FileTable) -> bool:
        """Whether a file of a table goes."""
        return self._is_too_old(table.first) or self._is_too_much

    def lost(self, table: FileTable) -> None:
        """Notes that nobody knows the files of a table any more."""
        self.size -= table.bytes
        before = self.dropped
        until = table.newest if before.until is None else max(table.newest, before.until)
        totals = before.files + table.files, before.rows + table.rows, before.bytes + table.bytes
        self.dropped = DroppedTotals(*totals, until)

    @property
    def _is_too_much(self) -> bool:
        return self.keep.bytes is not None and self.size > self.keep.bytes

    def _is_too_old(self, newest: int) -> bool:
        return self.keep.age is not None and newest < self.clock - self.keep.age


def _retained(store: Store, before: Quarantine, keep: Retention, clock: int, seq: int, attempt: str) -> Quarantine:
    """The quarantine without the files that retention lets go at this clock."""
    if keep == Retention():
        return before
    newest = max(reversed(before.files), key=lambda file: file.bounds[CLOCK][1], default=None)
    retaining = _Retaining(keep, clock, newest, before.bytes, before.dropped, list(before.leaving))
    files, tables = list(before.files), list[FileTable]()
    # A batch's files stand in the order of batches, merged ones in the place of their oldest.
    for entry in sorted(before.entries(), key=_clocks):
        if isinstance(entry, FileTable):
            tables += _cut(store, entry, retaining, seq, attempt) if retaining.drops_of(entry) else [entry]
        elif retaining.drops(entry):
            files.remove(entry)
    if retaining.dropped == before.dropped:
        return before
    return Quarantine(tuple(files), retaining.dropped, tuple(tables), tuple(retaining.leaving))


def _clocks(entry: Segment | FileTable) -> tuple[int, int]:
    return entry.bounds[CLOCK] if isinstance(entry, Segment) else (entry.oldest, entry.newest)


def _cut(store: Store, table: FileTable, retaining: _Retaining, seq: int, attempt: str) -> list[FileTable]:
    """A table anew without the files that go. Where it cannot be read, all of them count as dropped."""
    try:
        files = sorted(files_of(list_of(store, table)), key=_clocks)
    except StateError as error:
        if error.code != DATA:
            raise
        _logger.warning("%d files of rejected rows count as dropped: %s", table.files, error.message)
        retaining.lost(table)
        return []
    left = [file for file in files if not retaining.drops(file)]
    if len(left) == len(files):
        return [table]
    with storage_errors("dropping rejected rows"):
        return [table_of(store, left, seq, attempt)] if left else []


def _listed(store: Store, before: Quarantine, seq: int, attempt: str) -> Quarantine:
    """The quarantine with full files in a table, once there are many, but for those of this batch and the newest."""
    newest = max(reversed(before.files), key=lambda file: file.bounds[CLOCK][1], default=None)
    full = [file for file in before.files if is_full(file) and file.batch < seq and file is not newest]
    if len(full) <= LISTED:
        return before
    with storage_errors("listing files of rejected rows"):
        tables = with_files(store, before.tables, sorted(full, key=_clocks), seq, attempt)
    gone = set(map(id, full))
    return replace(before, files=tuple(file for file in before.files if id(file) not in gone), tables=tables)


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

    before = replace(before, leaving=())
    if not written and not tables:
        return _retained(store, before, keep, clock, seq, attempt)
    more = replace(before, files=(*before.files, *written))
    bounded = _retained(store, more, keep, clock, seq, attempt)
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
    merged_files = replace(bounded, files=tuple(files), dropped=dropped)
    return _listed(store, _retained(store, merged_files, keep, clock, seq, attempt), seq, attempt)


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


@dataclass(slots=True)
class RejectedRows:
    """Rejected rows of a batch on their way to the quarantine: Arrow tables, and the last ones as Python values, which
    take several times as much memory. Many tables go to `spill` before all rows are known, if there is such.

    The values stand in lists by column: the garbage collection of Python would follow every row that is an object.
    """

    spill: Callable[[pa.Table], None] | None = None
    _tables: list[pa.Table] = field(default_factory=list)
    _columns: Sequence[list[Any]] = field(default_factory=lambda: [[] for _ in QUARANTINE_SCHEMA])

    def __len__(self) -> int:
        packed: int = sum(table.num_rows for table in self._tables)
        return packed + self.loose

    @property
    def loose(self) -> int:
        """How many rows are Python values."""
        return len(self._columns[0])

    def append(self, row: RejectedRow) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        if self.loose >= TOGETHER:
            self._pack()

    def extend(self, other: RejectedRows) -> None:
        """Adds the rows of `other` after these."""
        if other:
            self._pack()
            self._tables += other._tables
            for column, more in zip(self._columns, other._columns, strict=True):
                column += more

    def table(self) -> pa.Table:
        """All of them, as the quarantine stores them."""
        return pa.concat_tables([*self._tables, self._loose_table()])

    def _loose_table(self) -> pa.Table:
        arrays = [array_of_values(column, f.type) for column, f in zip(self._columns, QUARANTINE_SCHEMA, strict=True)]
        return pa.Table.from_arrays(arrays, schema=QUARANTINE_SCHEMA)

    def _pack(self) -> None:
        if self.loose:
            self._tables.append(self._loose_table())
            for column in self._columns:
                column.clear()
            if self.spill is not None and len(self) >= _IN_MEMORY:
                self.spill(pa.concat_tables(self._tables))
                self._tables.clear()


def error_text(error: QueryError) -> str:
    """Code and message in a line, of a term with the values of its operands; of very long ones both ends."""
    witness = error.problems[0].because
    return f"{error.code} {cut(error.message)}" + (f": {cut(', '.join(witness))}" if witness else "")
