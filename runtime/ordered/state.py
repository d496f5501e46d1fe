"""The state of ordered operators as files: the tables of one operator, or of several that share its partitions.

Tables are written whole as long as they are small. Else a delta of what a batch has changed is added to those before; a
few small deltas become one. Once most of what they hold is out of date, all is written again (`keep_part`): at once, or
of large states a slice a batch (`Renewal`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import polars as pl
import pyarrow as pa

from tidegate.analysis.state.thresholds import Extents
from tidegate.runtime.ordered.family import Operator, Span
from tidegate.runtime.ordered.state_tables import KEY, StateTables, checked, folded
from tidegate.runtime.plan.progress import not_of_this_program
from tidegate.runtime.state.codec import Json, parse_plain, plain
from tidegate.runtime.state.errors import MANIFEST, storage_errors
from tidegate.runtime.state.manifest import KeptRows, OperatorFiles
from tidegate.runtime.state.segments import bounded, covering, to_merge
from tidegate.runtime.state.store.interface import FileRef, Store

#: The layout of what an operator keeps.
VERSION: Final = 5
#: So many rows are written whole in every batch: a delta would cost as much.
SMALL: Final = 1024

#: Larger states are written again in slices: of so many rows, or twice as many as a batch brings. Their deltas are
#: merged up to so many rows, or a part of all.
SLICED: Final = 1 << 16
SLICE: Final = 1 << 14
MERGED: Final = 1 << 15
_MOST_DELTAS: Final = 32

#: Types of integers with their bits, from the narrowest on. Operators have the widest.
_INTEGERS: Final = ((8, pl.Int8()), (16, pl.Int16()), (32, pl.Int32()), (64, pl.Int64()))
_NARROW: Final = tuple(type_ for _, type_ in _INTEGERS[:-1])

Tables = Mapping[str, pl.DataFrame]
Write = Callable[[pa.Table], FileRef]
Read = Callable[[str], pa.Table]


@dataclass(frozen=True, slots=True)
class Delta:
    """A delta: tables that were written together, their rows, and the bounds of their instants by kind and column."""

    tables: tuple[str, ...]
    files: tuple[FileRef, ...]
    rows: int
    bounds: Mapping[str, Extents] = field(default_factory=dict)


#: The deltas of an operator, or of one share of its partitions, from the first on.
Part = tuple[Delta, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the partitions: those whose key at that position hashes to `shard` out of `shards`."""

    key: int
    shard: int
    shards: int

    def of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of this share."""
        return rows.filter(shard_of(KEY.format(self.key), self.shards) == self.shard)


def shard_of(column: str, shards: int) -> pl.Expr:
    """The shard of each row. NULL is a key like others."""
    return pl.col(column).hash(0) % shards


@dataclass(frozen=True, slots=True)
class Renewal:
    """A state that is being written again: these partitions are left to do. Then the `old` first deltas go.

    Of every partition the deltas after those have all rows by then: what changed meanwhile was written anyhow.
    """

    left: Span
    old: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written of an operator: its size, its deltas, and what is to be written again in the next batches."""

    rows: tuple[KeptRows, ...]
    part: Part
    renewal: Renewal | None = None


def keep_part(
    operator: Operator,
    before: Part | None,
    write: Write,
    read: Read,
    renewal: Renewal | None = None,
    *,
    slices: bool = False,
) -> Kept:
    """Writes the state of an operator after an increment.

    `before` are the deltas that say what it kept before the increment; None where there are none, or in other parts.
    With `slices` a large state is written again slice by slice: what is left is `renewal` in the next batch.
    """
    counts = operator.counts()
    if before is not None and operator.is_unchanged:
        return Kept(_kept(counts, before), before, renewal)
    live = sum(counts.values())
    changed = operator.changes() if before and live > SMALL else None
    if before and changed is not None:
        rows = [*(delta.rows for delta in before), _rows(changed)]
        if not rows[-1]:
            return Kept(_kept(counts, before), before, renewal)
        slices = slices and _has_slices(operator, live)
        renewal = _going_on(operator, rows, live, renewal) if slices else None
        if renewal is not None:
            changed, renewal = _with_slice(operator, changed, renewal)
            rows[-1] = _rows(changed)
        count = _bounded(rows, live, 0 if renewal is None else renewal.old) if slices else to_merge(rows)
        if sum(rows) <= (4 if slices else 2) * live + SMALL and count < len(rows):
            older, merged = before[: len(before) - count + 1], before[len(before) - count + 1 :]
            deltas = [*({n: _frame(read(f.path)) for n, f in _named(delta)} for delta in merged), _frames(changed)]
            part = (
                *older,
                _delta(operator, folded(deltas, operator.described(), whole=False) if merged else changed, write),
            )
            if renewal is not None and renewal.left.first >= renewal.left.end:
                part, renewal = part[renewal.old :], None
            return Kept(_kept(counts, part), part, renewal)
    tables = operator.tables()
    part = (_delta(operator, tables, write),) if tables else ()
    return Kept(_kept(counts, part), part)


def _has_slices(operator: Operator, live: int) -> bool:
    """Whether the state is written again in slices: it is large, and what a slice has replaces what was written before
    of its partitions, or is all of it that counts.
    """
    described = operator.described().values()
    by_partition = all(table.merge in ("partition", "row", "queue") and table.lasting is None for table in described)
    return live > SLICED and by_partition and operator.span() is not None


def _going_on(operator: Operator, rows: Sequence[int], live: int, renewal: Renewal | None) -> Renewal | None:
    """The renewal that goes on or begins: once most rows of the deltas are out of date."""
    every = operator.span()
    assert every is not None
    if renewal is not None and renewal.left.numbering == every.numbering:
        return renewal
    return Renewal(every, len(rows) - 1) if sum(rows) > 2 * live + SMALL else None


def _with_slice(
    operator: Operator, changed: Mapping[str, pa.Table], renewal: Renewal
) -> tuple[Mapping[str, pa.Table], Renewal]:
    """The changes with the rows of the partitions that are next, and what is left."""
    left, live = renewal.left, sum(operator.counts().values())
    every = operator.span()
    assert every is not None
    rows = max(SLICE, 2 * _rows(changed))
    end = min(left.end, left.first + max(1, rows * max(1, every.end) // max(1, live)))
    slice_ = operator.tables_in(replace(left, end=end))
    both = folded([_frames(changed), _frames(slice_)], operator.described(), whole=False)
    return {name: table.to_arrow() for name, table in both.items()}, replace(renewal, left=replace(left, first=end))


def _bounded(rows: Sequence[int], live: int, old: int) -> int:
    """How many of the last deltas become one: so few that no batch merges a large part of the state, nor any of the
    `old` ones.
    """
    return bounded(rows, min(to_merge(rows), len(rows) - old), max(MERGED, live // _MOST_DELTAS))


def _rows(tables: Mapping[str, pa.Table]) -> int:
    return sum(table.num_rows for table in tables.values())


def _delta(operator: Operator, tables: Mapping[str, Any], write: Write) -> Delta:
    arrow = {name: rows if isinstance(rows, pa.Table) else rows.to_arrow() for name, rows in tables.items()}
    files = tuple(write(_narrow(rows)) for rows in arrow.values())
    return Delta(tuple(arrow), files, sum(rows.num_rows for rows in arrow.values()), operator.bounds(arrow))


def _kept(counts: Mapping[str, int], part: Part) -> tuple[KeptRows, ...]:
    """The rows in the deltas, with the bounds of their instants."""
    return tuple(
        KeptRows(holds, rows, covering([delta.bounds[holds] for delta in part if holds in delta.bounds]))
        for holds, rows in counts.items()
        if rows
    )


def whole_state(kept: Sequence[KeptRows], part: Part) -> OperatorFiles:
    """The state of an operator that runs in one place."""
    return _state("", [(kept, part)])


def shared_state(parts: Sequence[tuple[Sequence[KeptRows], Part]]) -> OperatorFiles:
    """The state of operators with a share each, in the order of their shards."""
    return _state(shard_hash(), parts)


def _state(hash_: str, parts: Sequence[tuple[Sequence[KeptRows], Part]]) -> OperatorFiles:
    deltas = _Parts(hash_, tuple(part for _, part in parts))
    kept = tuple(rows for some, _ in parts for rows in some)
    return OperatorFiles(VERSION, deltas.files, plain(deltas), kept)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The deltas by part, and the hash that shared out the partitions; "" where they were not shared."""

    hash: str
    parts: tuple[Part, ...]

    @property
    def files(self) -> tuple[FileRef, ...]:
        return tuple(file for part in self.parts for delta in part for file in delta.files)


def part_of(query: str, state: OperatorFiles) -> Part | None:
    """The deltas of an operator that runs in one place. None where the state is in other parts."""
    parts = _parts(query, state)
    return None if parts.hash else parts.parts[0]


def parts_of(query: str, state: OperatorFiles, shards: int) -> tuple[Part, ...] | None:
    """The deltas of each share, where the state lies in so many shares by the hash that this process has."""
    parts = _parts(query, state)
    return parts.parts if _are(parts, shards) else None


def plain_parts_of(query: str, state: OperatorFiles, shards: int) -> list[Json] | None:
    """The same as plain JSON values."""
    return None if parts_of(query, state, shards) is None else state.values["parts"]


def read_part(store: Store, query: str, part: Part, described: StateTables) -> dict[str, pl.DataFrame]:
    """The tables of an operator that has been written in one part; `StateError` TG504 for others than it writes."""
    with storage_errors(f"reading the state of {query!r}"):
        return _read(store, query, part, described)


def _read(store: Store, query: str, part: Part, described: StateTables) -> dict[str, pl.DataFrame]:
    deltas = (
        {n: checked(described, query, n, _frame(store.read_table(f.path))) for n, f in _named(delta)} for delta in part
    )
    return folded(deltas, described, whole=True)


def read_state(
    store: Store, query: str, state: OperatorFiles, described: StateTables, share: Share | None = None
) -> dict[str, pl.DataFrame]:
    """The tables of an operator, or of its share, from whatever parts they were written in; `StateError` TG504 for
    others than it writes.
    """
    parts = _parts(query, state)
    with storage_errors(f"reading the state of {query!r}"):
        if share is not None and _are(parts, share.shards):
            return _read(store, query, parts.parts[share.shard], described)
        tables = _joined([_read(store, query, part, described) for part in parts.parts], described)
    return tables if share is None else _shared(tables, described, share)


def _are(parts: _Parts, shards: int) -> bool:
    """Whether each of so many shares is one of the parts."""
    return parts.hash == shard_hash() and len(parts.parts) == shards


def _named(delta: Delta) -> list[tuple[str, FileRef]]:
    return list(zip(delta.tables, delta.files, strict=True))


def _narrow(table: pa.Table) -> pa.Table:
    """A table as it is written: of many rows, integers take as few bytes as those of their column need."""
    if table.num_rows <= SMALL:
        return table
    rows = _frame(table)
    integers = [column for column in rows.get_columns() if column.dtype == pl.Int64]
    # What is known to fit is not looked at: to check it takes ten times as long as to cast it.
    narrow = (column.cast(_type_of(column.min(), column.max()), wrap_numerical=True) for column in integers)
    return rows.with_columns(narrow).to_arrow()


def _type_of(least: Any, greatest: Any) -> pl.DataType:
    """The narrowest type of these integers, and all between them; None: there are none."""
    bits = max((~number if number < 0 else number).bit_length() for number in (least or 0, greatest or 0))
    return next(type_ for most, type_ in _INTEGERS if bits < most)


def _frame(table: pa.Table) -> pl.DataFrame:
    """A table as operators have it, whether it was written in few bytes or not."""
    rows = pl.DataFrame(table)
    narrow = [name for name, type_ in rows.schema.items() if type_ in _NARROW]
    return rows.cast(dict.fromkeys(narrow, pl.Int64)) if narrow else rows


def _frames(tables: Mapping[str, pa.Table]) -> dict[str, pl.DataFrame]:
    return {name: _frame(table) for name, table in tables.items()}


def _parts(query: str, state: OperatorFiles) -> _Parts:
    """The parts of a state; `StateError` TG504 where its layout is another."""
    where = f"the state of {query!r:.200} in layout {state.version}"
    if state.version != VERSION:
        raise not_of_this_program(where)
    parts = parse_plain(_Parts, state.values, code=MANIFEST, where=where)
    complete = all(len(delta.tables) == len(delta.files) for part in parts.parts for delta in part)
    if not complete or parts.files != state.files or not parts.parts or (not parts.hash and len(parts.parts) > 1):
        raise not_of_this_program(where)
    return parts


def shard_hash() -> str:
    """What the shards depend on. Another version may hash differently."""
    return f"polars {pl.__version__}"


def _joined(parts: Sequence[Tables], described: StateTables) -> dict[str, pl.DataFrame]:
    """The tables of all parts, with new ids, as each part counts its own."""
    if len(parts) == 1:
        return dict(parts[0])
    merged: dict[str, list[pl.DataFrame]] = {}
    following = 0
    for tables in parts:
        first = following
        for name, rows in tables.items():
            number = described[name].id
            if number is not None:
                following = max(following, first + 1 + int(rows[number].max()))  # type: ignore[arg-type]  # int64, some rows
                merged.setdefault(name, []).append(rows.with_columns(pl.col(number) + first))
            else:
                merged.setdefault(name, []).append(rows)
    return {name: pl.concat(rows) for name, rows in merged.items()}


def _shared(tables: Tables, described: StateTables, share: Share) -> dict[str, pl.DataFrame]:
    """The rows of all tables that belong to a share of the partitions, by key or by the id of such a row."""
    shared = {name: share.of(rows) for name, rows in tables.items() if described[name].keys}
    live = [rows[number] for name, rows in shared.items() if (number := described[name].id) is not None]
    ids = pl.concat([pl.Series([], dtype=pl.Int64), *(series.alias("") for series in live)])
    for name, rows in tables.items():
        number = described[name].id
        if name not in shared and number is not None:
            shared[name] = rows.filter(pl.col(number).is_in(ids.implode()))
    return {name: rows for name, rows in shared.items() if rows.height}
