"""The rows of an increment behind those that are kept of their partitions, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.ordered.over import Frame
from tidegate.algebra.terms import Attr, Term
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.order_keys import order_keys
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.kernels.over import queued
from tidegate.runtime.ordered.new_events import by_partition, order_of, require_order
from tidegate.runtime.ordered.over.block import gathered, valid
from tidegate.runtime.ordered.over.frames import Parts
from tidegate.runtime.ordered.over.layout import TIME
from tidegate.runtime.ordered.over.queued.layout import CHOSEN, NUMBER, Kept, QueuedLayout
from tidegate.runtime.ordered.row_arrays import ranges
from tidegate.runtime.ordered.windows.rows.store import WindowRows

HALF = 32
LOW = (1 << HALF) - 1
#: What totals go on with beside what they are before a row.
_OWN = ("is", "own")


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows that columns are computed for: those of the partition at place p from `offsets[p]` to `offsets[p + 1]`.
    `place` has the place of each among the kept rows of its partition and the new ones, `of` that of its partition.
    """

    offsets: Int64Array
    of: Int64Array
    place: Int64Array

    @classmethod
    def between(cls, start: Int64Array, end: Int64Array) -> Asked:
        """The rows of each partition from one place to before another."""
        many = end - start
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(many)])
        return cls(offsets, np.repeat(np.arange(len(start)), many), ranges(start, many))


@dataclass(frozen=True, slots=True)
class Arrival:
    """New rows in order of their partitions and times, and what is kept of the partitions.

    New row i is row `order[i]` of `rows`, in the partition at `place[i]`. Of the partition at a place `count` rows are
    kept, from `first` on in the arrays of the store; the first of them has the number `base`.
    """

    layout: QueuedLayout
    state: WindowRows
    rows: pl.DataFrame
    partitions: Int64Array
    order: Int64Array
    place: Int64Array
    time: Int64Array
    offsets: Int64Array
    first: Int64Array
    count: Int64Array
    base: Int64Array
    known: dict[Kept, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, layout: QueuedLayout, state: WindowRows, rows: pl.DataFrame, partitions: Int64Array, of: Int64Array
    ) -> Arrival:
        """`EvaluationError` TG304 where columns need an order that rows do not have."""
        node, many = layout.node, len(partitions)
        (reading,) = node.readings
        order = order_of(reading, rows)
        if node.needs_order:
            order = require_order(reading, rows, of, order, many)
        else:
            order = by_partition(of, order, many)
        place, time = of[order], rows.get_column(node.time).to_numpy()[order]
        offsets = np.searchsorted(place, np.arange(many + 1))
        first, count = state.rows.places(partitions)
        base = np.ones(many, dtype=np.int64)
        some = np.flatnonzero(count)
        base[some] = state.rows.numbers(NUMBER)[first[some]]
        return cls(layout, state, rows, partitions, order, place, time, offsets, first, count, base)

    @classmethod
    def of_kept(cls, layout: QueuedLayout, state: WindowRows, partitions: Int64Array) -> Arrival:
        """What is kept of partitions, without a new row."""
        none = np.empty(0, dtype=np.int64)
        offsets, (first, count) = np.zeros(len(partitions) + 1, dtype=np.int64), state.rows.places(partitions)
        base = np.ones(len(partitions), dtype=np.int64)
        return cls(layout, state, pl.DataFrame(), partitions, none, none, none, offsets, first, count, base)

    @property
    def number(self) -> Int64Array:
        """The number of each new row."""
        return self.base[self.place] + self.at

    @property
    def at(self) -> Int64Array:
        """The place of each new row in its partition."""
        return self.count[self.place] + np.arange(len(self.place)) - self.offsets[self.place]

    @property
    def total(self) -> Int64Array:
        """How many rows of each partition there are, kept and new."""
        return self.count + np.diff(self.offsets)

    def kept(self, name: str) -> Any:
        """A column of all kept rows, by their places in the store."""
        return self.state.rows.numbers(name)

    # Places of rows --------------------------------------------------------------------------------------------------
    @property
    def _ours(self) -> tuple[Int64Array, ...]:
        return self.first, self.count, self.offsets, self.kept(TIME), self.time

    def waiting(self, until: int, end: int) -> Int64Array:
        """From which place on the rows of each partition wait, if it has no row from `end` on."""
        if end <= until:
            return self.total
        waits = self.layout.waits
        found: Int64Array = queued.waiting(*self._ours, waits.rows, waits.ticks, until)
        return found

    def waited(self, until: int) -> Int64Array:
        """From which place on the rows waited at this progress, before the new ones came."""
        waits, none = self.layout.waits, np.zeros_like(self.offsets)
        nothing = self.time[:0]
        found: Int64Array = queued.waiting(
            self.first, self.count, none, self.kept(TIME), nothing, waits.rows, waits.ticks, until
        )
        return found

    def needed(self, waits: Int64Array, until: int) -> tuple[Int64Array, Int64Array]:
        """From which place on later rows need those of each partition, and when fewer are needed."""
        needs = self.layout.needs
        starts, over = queued.needed(*self._ours, waits, until, needs.rows, needs.ticks)
        return starts, over

    def frames(self, frame: Frame, asked: Asked) -> tuple[Int64Array, Int64Array]:
        """Where the frames of rows start and end, among the kept rows of their partition and the new ones."""
        at, before = asked.place, frame.before
        assert before is not None
        if frame.unit == "rows":
            return np.maximum(at - before, 0), np.minimum(at + frame.after + 1, self.total[asked.of])
        low, high = np.empty(len(at), dtype=np.int64), np.empty(len(at), dtype=np.int64)
        peers = self.layout.node.tie is None
        queued.frames_of_range(*self._ours, asked.offsets, at, before, frame.after, peers, low, high)
        return low, high

    def neighbours(self, asked: Asked, offset: int, within: int | None) -> Int64Array:
        """The places of the rows that are `offset` rows after each row, at most `within` ticks away; -1 where there is
        none.
        """
        at = asked.place + offset
        at = np.where(at < self.total[asked.of], np.maximum(at, -1), -1)
        if within is not None:
            there = np.flatnonzero(at >= 0)
            of, own = asked.of[there], asked.place[there]
            is_far = np.abs(self.times(of, at[there]) - self.times(of, own)) > within
            at[there[is_far]] = -1
        return at

    def times(self, of: Int64Array, at: Int64Array) -> Int64Array:
        """The instants of rows at places of their partitions."""
        is_kept, times = at < self.count[of], np.empty(len(at), dtype=np.int64)
        times[is_kept] = self.kept(TIME)[(self.first[of] + at)[is_kept]]
        times[~is_kept] = self.time[(self.offsets[of] + at - self.count[of])[~is_kept]]
        return times

    def completed_at(self, asked: Asked, end: int) -> Int64Array:
        """When rows are complete; `end` where nobody knows yet."""
        own = self.times(asked.of, asked.place)
        complete, total = own, self.total[asked.of]
        for rows, ticks in zip(self.layout.waits.rows.tolist(), self.layout.waits.ticks.tolist(), strict=True):
            instants = np.full(len(own), end)
            if rows >= 0:
                there = np.flatnonzero(asked.place + rows < total)
                instants[there] = self.times(asked.of[there], asked.place[there] + rows)
            if ticks >= 0:
                known = instants != end
                instants = np.where(known, np.minimum(instants, own + ticks), own + ticks)
            complete = np.maximum(complete, instants)
        return complete

    # What is kept ----------------------------------------------------------------------------------------------------
    def argument(self, term: Term) -> pl.Series:
        schema = self.layout.node.input.schema
        if isinstance(term, Attr):
            return self.rows.get_column(term.name).gather(self.order)
        return evaluated(self.rows, compile_term(term, schema)).to_series().gather(self.order)

    def made(self, kept: Kept) -> dict[str, Any]:
        """What is kept of the new rows. What blocks come to is written there with the first frames."""
        if kept not in self.known:
            self.known[kept] = self._made(kept)
        return self.known[kept]

    def _made(self, kept: Kept) -> dict[str, Any]:
        rows = self.argument(kept.argument)
        if kept.form is None:
            return {"own": rows}
        flags = valid(rows)
        is_ = flags.astype(np.int64)
        made: dict[str, Any] = {"flags": flags, "is": is_, "n": is_}
        match kept.form:
            case Form.COUNT:
                pass
            case Form.INTEGER_SUM:
                own = rows.fill_null(0).to_numpy()
                made |= {"own": own, "hi": own >> HALF, "lo": own & LOW}
            case Form.DOUBLE_SUM:
                own = rows.fill_null(0.0).to_numpy()
                made |= {"own": own, "sum": np.zeros(len(own)), "lost": np.zeros(len(own))}
            case _:
                best = np.zeros(len(rows), dtype=np.int64)
                return {"flags": flags, "own": rows, "best": best, **self._keys(kept, rows)}
        for name in self.layout.totals(kept):
            made |= self._totals(kept, name, made[name])
        return made

    def _keys(self, kept: Kept, rows: pl.Series) -> dict[str, Any]:
        """The keys of which the least is that of the row that is chosen, and what else they say."""
        type_of = self.layout.over.type_of
        if kept.by is None:
            keys = order_keys(rows, type_of(kept.argument))
            return {"key": keys if kept.form is Form.LEAST else ~keys}
        if self.layout.goes_by_place(kept):
            return {"key": np.zeros(len(rows), dtype=np.int64) if kept.form is Form.EARLIEST else -self.number}
        orders = self.argument(kept.by)
        keys = order_keys(orders, type_of(kept.by))
        flags = np.minimum(valid(rows), valid(orders))
        key = keys if kept.form is Form.EARLIEST else ~keys
        return {"flags": flags, "key": key, "tie": order_keys(rows, type_of(kept.argument))}

    def _totals(self, kept: Kept, name: str, numbers: Int64Array) -> dict[str, Int64Array]:
        """The sums of all rows of a partition up to each new one, up to the one before it, and up to the last one that
        is kept, from which they go on.
        """
        some = np.flatnonzero(self.count)
        at = self.first[some] + self.count[some] - 1
        part = {of: self.kept(self.layout.part(kept, of))[at] for of in self.layout.parts(kept) if of in _OWN}
        last = np.zeros(len(self.partitions), dtype=np.int64)
        own = part["is"] if name == "n" else part["own"] >> HALF if name == "hi" else part["own"] & LOW
        last[some] = self.kept(self.layout.part(kept, name))[at] + own
        sums: Int64Array = np.cumsum(numbers)
        before = (sums - numbers)[self.offsets[self.place]] if len(sums) else sums
        with_own = sums - before + last[self.place]
        return {f"with {name}": with_own, name: with_own - numbers, f"last {name}": last}

    # Values over frames ----------------------------------------------------------------------------------------------
    def parts(self, kept: Kept, asked: Asked, low: Int64Array, high: Int64Array) -> Parts:
        """The parts of an aggregate over frames."""
        part, made = {name: self.layout.part(kept, name) for name in self.layout.parts(kept)}, self.made(kept)
        ours = (self.first, self.count, self.base, self.offsets, asked.offsets, low, high)
        if kept.form in CHOSEN:
            found, tie = np.empty(len(low), dtype=np.int64), "tie" if "tie" in part else "key"
            stored = (self.kept(part[name]) for name in ("key", tie, "best"))
            queued.least(*ours, *stored, made["key"], made[tie], made["flags"], made["best"], found)
            return {"v": self.values(part["own"], made["own"], asked.of, found)}
        parts = {}
        for name in self.layout.totals(kept):
            up_to, before = (self._total_at(part[name], made, name, asked.of, at) for at in (high, low))
            parts[name] = pl.Series(up_to - before)
        if kept.form is Form.DOUBLE_SUM:
            total, lost = np.empty(len(low)), np.empty(len(low))
            stored = (self.kept(part[name]) for name in ("own", "sum", "lost"))
            queued.add_doubles(*ours, *stored, made["own"], made["flags"], made["sum"], made["lost"], total, lost)
            parts |= {"sum": pl.Series(total), "comp": pl.Series(lost)}
        return parts

    def _total_at(self, column: str, made: Mapping[str, Any], name: str, of: Int64Array, at: Int64Array) -> Int64Array:
        """A total of the rows of a partition before a place."""
        more = at - self.count[of]
        totals: Int64Array = made[f"last {name}"][of]
        is_kept, is_new = more < 0, more > 0
        totals[is_kept] = self.kept(column)[(self.first[of] + at)[is_kept]]
        totals[is_new] = made[f"with {name}"][(self.offsets[of] + more - 1)[is_new]]
        return totals

    def values(self, column: str, made: pl.Series, of: Int64Array, at: Int64Array) -> pl.Series:
        """The values of rows at places of their partitions; NULL at negative ones."""
        is_kept, is_new = (at >= 0) & (at < self.count[of]), at >= self.count[of]
        kept = self.state.rows.values(column, (self.first[of] + at)[is_kept])
        new = made.gather((self.offsets[of] + at - self.count[of])[is_new])
        where = np.full(len(at), -1)
        where[is_kept] = np.arange(len(kept))
        where[is_new] = len(kept) + np.arange(len(new))
        return gathered(pl.concat([kept.alias(made.name), new], rechunk=True), where)
