"""Operators whose state is rows by partition: their store, how they store it, and what they do alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.schema import Schema
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.ordered.family import Operator, Span, Tables
from tidegate.runtime.ordered.new_events import evaluable, new_events, untied
from tidegate.runtime.ordered.partition_store import NO_LOOK, C, PartitionStore
from tidegate.runtime.ordered.partitions import Partitions, key_columns
from tidegate.runtime.ordered.row_arrays import PARTITION, RowArrays, counts
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import EndedWindows, OrderedStep
from tidegate.runtime.rows import Rows, as_frame

#: Of a stored row: whether it says that its partition has none.
NONE: Final = "~none"
#: Of a stored row of partitions of which it is told that their keys come no more: whether it was told of its own.
OVER: Final = "~over"


class RowStore(PartitionStore[C]):
    """A store of rows, in tables by name."""

    def tables_of(self, extract: C) -> Mapping[str, pl.DataFrame]:
        """The rows of an extract by table, in order of PARTITION, which says their places in `extract.partitions`."""
        raise NotImplementedError

    def arrays(self) -> Sequence[RowArrays]:
        """Where rows are held."""
        return ()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that are held."""
        many = len(self.partitions)
        return super().nbytes + sum(arrays.bytes_of(many) for arrays in self.arrays())

    def as_stored(self, extract: C, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of an extract with the keys of their partitions, as they are stored."""
        keys = self.partitions.kept(extract.partitions[rows.get_column(PARTITION).to_numpy()])
        return pl.DataFrame([*keys.get_columns(), *(its for its in rows.get_columns() if its.name != PARTITION)])


S = TypeVar("S", bound=RowStore[Any])


class RowOperator(Operator, Generic[S]):
    """A dataclass with these fields: `made` is what the last increment has made of some partitions of `held`, before
    and after. It counts once it is settled.
    """

    __slots__ = ()

    ordered: OrderedStep
    held: S
    made: tuple[Any, Any] | None

    def settled(self) -> S:
        """What is held with what the last increment has made: there is no way back from then on."""
        if self.made is not None:
            self.held.settle(*self.made)
        return self.held

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        """The new events, and behind them the keys of each kind that come no more."""
        (reading,) = self.ordered.node.readings
        events = new_events(reading, leaves[self.ordered.leaves[0]], old, new)
        return [events, *(ended_keys(ended, leaves[ended.leaf]) for ended in self.ordered.ended)]

    def evaluable(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        readings = self.ordered.node.readings
        read = zip(readings, events, strict=False)
        judged = [evaluable(reading.input.schema, reading.terms, rows) for reading, rows in read]
        return [*(rows for rows, _ in judged), *events[len(readings) :]], [row for _, aside in judged for row in aside]

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        (reading,) = self.ordered.node.readings
        rows, aside = untied(reading, as_frame(events[0]))
        return [rows, *events[1:]], aside

    def noting(self, noted: list[SetAside] | None) -> Self:
        return self

    def emptied(self) -> Self:
        return replace(self, held=self.held.emptied(), made=None)  # type: ignore[type-var]  # families' are dataclasses

    def tables(self) -> dict[str, pa.Table]:
        return self._stored(np.flatnonzero(self.settled().holding()))

    def span(self) -> Span:
        state = self.settled()
        return Span(state.numbering, 0, state.every())

    def tables_in(self, span: Span) -> dict[str, pa.Table]:
        return self._stored(np.arange(span.first, span.end))

    def _stored(self, partitions: Int64Array) -> dict[str, pa.Table]:
        """The rows of these partitions as they are stored."""
        state = self.settled()
        extract = state.extract(partitions)
        return {
            name: marked(state.as_stored(extract, rows), none=False).to_arrow()
            for name, rows in state.tables_of(extract).items()
            if rows.height
        }

    def changes(self) -> dict[str, pa.Table] | None:
        if self.made is None:
            return None
        state, (before, after) = self.settled(), self.made
        partitions, changed = after.partitions, {}
        were = state.tables_of(before)
        for name, rows in state.tables_of(after).items():
            now = marked(state.as_stored(after, rows), none=False)
            if were[name].height:
                had, has = (counts(some, len(partitions)) > 0 for some in (were[name], rows))
                none = marked(state.partitions.kept(partitions[had & ~has]), none=True)
                now = pl.concat([now, none], how="diagonal")
            changed[name] = now.to_arrow()
        return changed


@dataclass(frozen=True, slots=True)
class KeptExtract:
    """The rows of some partitions in order of PARTITION, which says their places in `partitions`, and of time.

    `one_each`: each partition has one. Then `partitions` stand in any order. `over`: which of the partitions have no
    row to come, as far as it is told; None where nothing was.
    """

    partitions: Int64Array
    rows: pl.DataFrame
    look: Int64Array
    version: int = 0
    one_each: bool = False
    over: BoolArray | None = None

    @property
    def has_rows(self) -> BoolArray:
        """Which of the partitions have rows."""
        if self.one_each:
            return np.ones(len(self.partitions), dtype=np.bool_)
        return counts(self.rows, len(self.partitions)) > 0

    def only(self, places: Int64Array) -> KeptExtract:
        """The rows of the partitions at these places, in order, and of no others."""
        of = self.rows.get_column(PARTITION).to_numpy()
        number = np.full(len(self.partitions), -1)
        number[places] = np.arange(len(places))
        rows = self.rows.with_columns(pl.Series(PARTITION, number[of])).filter(number[of] >= 0)
        return KeptExtract(self.partitions[places], rows, self.look[places])

    def without(self, places: Int64Array) -> Self:
        """The same, with nothing of the partitions at these places."""
        is_left = np.ones(len(self.partitions), dtype=np.bool_)
        is_left[places] = False
        rows = self.rows.filter(is_left[self.rows.get_column(PARTITION).to_numpy()])
        return replace(self, rows=rows, look=np.where(is_left, self.look, NO_LOOK))


class KeptRows(RowStore[KeptExtract]):
    """The kept rows of all partitions, in a table of this name."""

    gives_again = True

    def __init__(self, keys: Schema, table: str, columns: Mapping[str, pl.DataType]) -> None:
        super().__init__(keys)
        self.table, self.columns, self.rows = table, columns, RowArrays(columns)

    def emptied(self) -> KeptRows:
        return KeptRows(self.partitions.schema, self.table, self.columns).follow(self.growing, self.ending)

    def follow(self, growing: Sequence[str], ending: Sequence[Sequence[str]] = ()) -> Self:
        super().follow(growing, ending)
        last = self.last
        if self.successors is not None and last is not None and last.over is not None:  # as a checkpoint says
            self.successors.over.update(last.partitions[last.over].tolist())
        return self

    def arrays(self) -> Sequence[RowArrays]:
        return (self.rows,)

    def extract(self, partitions: Int64Array) -> KeptExtract:
        rows, look = self.rows.take(partitions), self.look(partitions)
        return KeptExtract(partitions, rows, look, self.version, over=self._over(partitions))

    def _over(self, partitions: Int64Array) -> BoolArray | None:
        """Which of these partitions have no row to come, as was told before."""
        over = None if self.successors is None else self.successors.over
        if not over:
            return None
        return np.array([number in over for number in partitions.tolist()], dtype=np.bool_)

    def as_stored(self, extract: KeptExtract, rows: pl.DataFrame) -> pl.DataFrame:
        stored = super().as_stored(extract, rows)
        if not self.ending:
            return stored
        over = np.zeros(len(extract.partitions), dtype=np.bool_) if extract.over is None else extract.over
        return stored.with_columns(pl.Series(OVER, over[rows.get_column(PARTITION).to_numpy()], pl.Boolean))

    def hold(self, extract: KeptExtract) -> BoolArray:
        if self.successors is not None and extract.over is not None:
            self.successors.over.update(extract.partitions[extract.over].tolist())
        self.rows.put(extract.partitions, extract.rows, one_each=extract.one_each)
        return extract.has_rows

    def room(self, partitions: int) -> None:
        self.rows.grow(partitions)

    def tables_of(self, extract: KeptExtract) -> dict[str, pl.DataFrame]:
        return {self.table: extract.rows}

    def stored_in(self, tables: Tables) -> KeptExtract | None:
        """The rows that a checkpoint has, none of which is looked at without a new one; None where it has no table of
        this name. Their partitions are numbered here.
        """
        if self.table not in tables:
            return None
        stored = tables[self.table]
        numbers = pl.Series(PARTITION, self.partitions.of_kept(stored), pl.Int64)
        rows = stored.select(numbers, *self.columns).sort(PARTITION, maintain_order=True)
        partitions = self.all_partitions()
        over = None
        if OVER in stored.columns:
            over = np.isin(partitions, numbers.filter(stored.get_column(OVER).fill_null(value=False)).to_numpy())
        return KeptExtract(partitions, rows, np.full(len(partitions), NO_LOOK), over=over)


class KeptRowsOperator(RowOperator[KeptRows]):
    """An operator whose state is one table of rows."""

    __slots__ = ()

    def described(self) -> dict[str, StateTable]:
        columns = {**self.held.columns, OVER: pl.Boolean()} if self.ordered.ended else self.held.columns
        return {self.held.table: row_table(self.held.partitions.schema, columns)}

    def counts(self) -> dict[str, int]:
        return {self.held.table: self.settled().rows.height}

    def letting_go(self, events: Sequence[Rows], until: Extended) -> Self:
        """The operator without what an increment has left of partitions that others follow, or whose windows have
        ended, and that owe no row: they would yield none, wherever the input ended (rules R60 and R63).
        """
        state = self.held
        if self.made is None or state.successors is None or until == INF or not state.followed.any():
            return self
        before, after = self.made
        left = np.flatnonzero(state.followed & after.has_rows)
        if not len(left):
            return self
        fresh = state.emptied()
        fresh.partitions = Partitions(state.partitions.schema, state.partitions.rows(after.partitions[left]))
        fresh.put(replace(after.only(left), partitions=np.arange(len(left))))
        alone = replace(self, held=fresh, made=None).noting([])  # type: ignore[type-var]  # families' are dataclasses
        _, owed = alone.step([as_frame(events[0]).clear()], until, INF, MAX_INSTANT)
        is_over = np.zeros(len(after.partitions), dtype=np.bool_)
        if owed.height:
            (reading,) = self.ordered.node.readings
            owing = np.unique(fresh.partitions.assign(as_frame(owed).select(reading.keys)))
            is_over[left[owing]] = True
            left = np.delete(left, owing)
        return replace(self, made=(before, replace(after.without(left), over=is_over)))  # type: ignore[type-var]


def ended_keys(ended: EndedWindows, leaf: Rows) -> pl.DataFrame:
    """The keys of the windows that end in an increment, from the changes that it reads."""
    ends = as_frame(leaf).filter(pl.col(ended.change) == ended.end)
    return ends.select(pl.col(column).alias(key) for key, column in ended.keys)


def row_table(keys: Schema, columns: Mapping[str, pl.DataType], possible: pl.Expr | None = None) -> StateTable:
    """The description of a table of such rows as they are stored."""
    its = key_columns(keys)
    return StateTable(
        pl.Schema({**its, **columns, NONE: pl.Boolean()}),
        "partition",
        len(its),
        empty=pl.col(NONE),
        needed=(NONE,),
        possible=pl.lit(value=True) if possible is None else possible,
    )


def marked(rows: pl.DataFrame, *, none: bool) -> pl.DataFrame:
    """Rows as they are stored; `none`: each says that its partition has no rows."""
    return pl.DataFrame([*rows.get_columns(), pl.Series(NONE, np.full(rows.height, none))])
