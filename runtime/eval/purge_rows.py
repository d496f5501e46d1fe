"""Partner and kill rule over Polars frames: the stored rows that still matter to a reader (rules R21 to R23)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import FALSE, TRUE, Term
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import BIGINT
from tidegate.analysis.purge import Case
from tidegate.analysis.state.partner import Partner
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.beginnings.partners import OpenIntervals, least_of
from tidegate.runtime.eval.joins.ranges import join_frames
from tidegate.runtime.eval.purge_schedule import Sweep
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.join_parts import join_parts
from tidegate.runtime.plan.steps import Buffer, Leaf, QueryPlan

#: Number of a stored row within its buffer.
ROW = "\0row"
#: Stands before the names of the other row of a pair.
OTHER = "\0other "
#: Rounds of the partner rule: what a longer cascade would free goes in a later sweep.
ROUNDS = 8
#: Pairs of rows up to which instants are compared by NumPy, all of them, where no key has to be equal: a join of a few
#: rows takes Polars 1.2 ms under a profiler.
FEW_PAIRS = 1 << 16


def surviving(
    sweep: Sweep, frames: Mapping[str, pl.DataFrame], begun: Mapping[str, OpenIntervals]
) -> dict[str, pl.DataFrame]:
    """The rows of each buffer that some reader still needs. `begun` has open intervals, by the buffers they are for."""
    numbered = {name: frame.with_row_index(ROW).cast({ROW: pl.Int64}) for name, frame in frames.items()}
    alive: dict[str, BoolArray] = {name: np.zeros(frame.height, dtype=np.bool_) for name, frame in frames.items()}
    swept = {buffer.id for buffer in sweep.buffers}
    for query in sweep.plan.queries:
        leaves = [leaf for leaf in query.leaves if leaf.buffer is not None and leaf.buffer.id in swept]
        if leaves:
            for name, rows in _Reader(sweep, query, leaves, numbered, begun).needed():
                numbers = np.asarray(rows, dtype=np.int64)
                alive[name][numbers[numbers >= 0]] = True  # what is open has a number below, and is not stored
    return {name: rows if alive[name].all() else rows.filter(pl.Series(alive[name])) for name, rows in frames.items()}


class _Reader:
    """A query's view of the buffers: the rows that its leaves need."""

    def __init__(
        self,
        sweep: Sweep,
        query: QueryPlan,
        leaves: list[Leaf],
        frames: Mapping[str, pl.DataFrame],
        begun: Mapping[str, OpenIntervals],
    ) -> None:
        self.sweep, self.query, self.leaves, self.frames, self.begun = sweep, query, leaves, frames, begun
        self.p = sweep.progress[query.name]
        self.by_occurrence = {leaf.occurrence.index: leaf for leaf in leaves if leaf.occurrence is not None}

    def needed(self) -> list[tuple[str, pl.Series]]:
        """The numbers of the rows that each leaf needs, with its buffer."""
        needed = [
            (_id(leaf), filtered(self._rows(leaf), leaf.keep(self.p), _buffer(leaf).stored)[ROW])
            for leaf in self.leaves
            if not (leaf.partner or leaf.kill or leaf.judged)
        ]
        needed += [self._judged(leaf) for leaf in self.leaves if leaf.judged]
        if self.query.purge is not None:
            for case in self.query.purge.cases:
                needed += self._case(case)
        return needed

    def _judged(self, leaf: Leaf) -> tuple[str, pl.Series]:
        """The rows that keep leaves, of which the operator needs each."""
        rows = filtered(self._rows(leaf), leaf.keep(self.p), _buffer(leaf).stored)
        return _id(leaf), rows[ROW].filter(pl.Series(self.sweep.judged(self.query, leaf, rows)))

    def _case(self, case: Case) -> list[tuple[str, pl.Series]]:
        assert self.query.purge is not None
        stored = {
            i: filtered(self._with_begun(case, i, leaf), self.query.purge.keep(case, i, self.p), _buffer(leaf).stored)
            for i, leaf in self.by_occurrence.items()
            if i in case.views
        }
        rows = self._partnered(case, stored)
        for kill in case.kills:
            if (
                kill.occurrence not in rows
                or kill.counterpart not in self.by_occurrence
                or not self.by_occurrence[kill.occurrence].kill
            ):
                continue
            leaf, counterpart = self.by_occurrence[kill.occurrence], self.by_occurrence[kill.counterpart]
            columns = frozenset(_buffer(leaf).stored), frozenset(_buffer(counterpart).stored)
            condition = kill.condition(self.p, as_other, columns)
            if condition is not None:
                rows[kill.occurrence] = self._join(
                    leaf, rows[kill.occurrence], counterpart, self._rows(counterpart), condition, "anti"
                )
        return [(_id(self.by_occurrence[i]), frame[ROW]) for i, frame in rows.items()]

    def _partnered(self, case: Case, rows: dict[int, pl.DataFrame]) -> dict[int, pl.DataFrame]:
        """The rows that have a partner or may still get one. It repeats until nothing changes.

        A rule is applied again only where its counterpart has lost rows since. Every other round goes backwards: so a
        chain of partners falls in two rounds, whichever end it loses first.
        """
        rules = [rule for rule in case.partners if self._is_applied(rule)]
        seen: dict[Partner, int] = {}
        for number in range(ROUNDS):
            before = {i: frame.height for i, frame in rows.items()}
            for rule in rules[:: 1 if number % 2 == 0 else -1]:
                current, others = rows[rule.occurrence], rows[rule.counterpart]
                if current.height and seen.get(rule) != others.height:
                    seen[rule] = others.height
                    rows[rule.occurrence] = self._with_partner(rule, current, others)
            if before == {i: frame.height for i, frame in rows.items()}:
                break
        return rows

    def _is_applied(self, rule: Partner) -> bool:
        leaf = self.by_occurrence.get(rule.occurrence)
        return leaf is not None and leaf.partner and rule.counterpart in self.by_occurrence

    def _with_partner(self, rule: Partner, current: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
        """The rows of an occurrence that have a partner among those of the counterpart, or may still get one."""
        leaf, counterpart = self.by_occurrence[rule.occurrence], self.by_occurrence[rule.counterpart]
        least = least_of(current), least_of(others)
        waiting = np.zeros(current.height, dtype=np.bool_)
        limits = rule.limits(self.sweep.bounds, told=bool(least[1]))
        if limits is not None:
            waiting |= np.logical_and.reduce([_above(current, x, limit) for x, limit in limits], initial=True)
        if waiting.all():
            return current
        late = current.filter(pl.Series(~waiting))
        columns = frozenset(_buffer(leaf).stored), frozenset(_buffer(counterpart).stored)
        if not others.height:
            partnered = late.clear()
        elif late.height * others.height <= FEW_PAIRS and not rule.has_keys(columns):
            partnered = late.filter(pl.Series(_near(rule, late, others)))
        else:
            partnered = self._join(leaf, late, counterpart, others, rule.holds(as_other, columns, least), "semi")
        return pl.concat([current.filter(pl.Series(waiting)), partnered])

    def _rows(self, leaf: Leaf) -> pl.DataFrame:
        return self.frames[_id(leaf)]

    def _with_begun(self, case: Case, occurrence: int, leaf: Leaf) -> pl.DataFrame:
        """The stored rows, and as rows without a number what has begun and will be one of them if it ends."""
        rows, begun = self._rows(leaf), self.begun.get(_id(leaf))
        if begun is None or not begun.tell(case, occurrence):
            return rows
        open_ = begun.between(case, occurrence)
        numbers = (-1 - pl.int_range(open_.height, dtype=pl.Int64, eager=True)).alias(ROW)
        stored = rows.with_columns(pl.col(a).alias(least) for a, least in least_of(open_).items())
        return pl.concat([stored, open_.with_columns(numbers).select(stored.columns)])

    def _join(
        self, leaf: Leaf, rows: pl.DataFrame, counterpart: Leaf, stored: pl.DataFrame, condition: Term, kind: str
    ) -> pl.DataFrame:
        assert kind in ("semi", "anti")
        left = Schema((*_columns(leaf, rows), Attribute(ROW, BIGINT)))
        theirs = _columns(counterpart, stored)
        right = Schema(tuple(a.renamed(as_other(a.name)) for a in theirs))
        renamed = stored.select(pl.col(a.name).alias(as_other(a.name)) for a in theirs)
        both = Schema((*left.attributes, *right.attributes))
        parts = join_parts(condition, left, right)
        return join_frames(rows, renamed, both, parts, "semi" if kind == "semi" else "anti")


def _columns(leaf: Leaf, rows: pl.DataFrame) -> list[Attribute]:
    """The attributes of a leaf's rows, those beside them that say the least of others included."""
    stored = _buffer(leaf).stored
    return [*stored.attributes, *(stored[a].renamed(least) for a, least in least_of(rows).items())]


def _above(rows: pl.DataFrame, instant: str, limit: Extended) -> BoolArray:
    """The rows of which an instant is above a limit."""
    if limit in (INF, -INF):
        return np.full(rows.height, limit == -INF)
    above: BoolArray = np.greater(_instants(rows, instant), int(limit))
    return above


def _near(rule: Partner, rows: pl.DataFrame, others: pl.DataFrame) -> BoolArray:
    """The rows that are close enough in time to one of the others, pair by pair: `rule.holds` without keys."""
    own_least, other_least = least_of(rows), least_of(others)
    near = np.ones((rows.height, others.height), dtype=np.bool_)
    for x, y, c in rule.after:
        near &= _instants(others, other_least.get(y, y)) <= _instants(rows, x)[:, None] + c
    for y, x, c in rule.before:
        near &= _instants(rows, own_least.get(x, x))[:, None] <= _instants(others, y) + c
    found: BoolArray = np.logical_or.reduce(near, axis=1)
    return found


def _instants(rows: pl.DataFrame, name: str) -> Int64Array:
    return np.asarray(rows[name], dtype=np.int64)


def as_other(name: str) -> str:
    return OTHER + name


def _buffer(leaf: Leaf) -> Buffer:
    assert leaf.buffer is not None
    return leaf.buffer


def _id(leaf: Leaf) -> str:
    return _buffer(leaf).id


def filtered(rows: pl.DataFrame, condition: Term, schema: Schema) -> pl.DataFrame:
    if condition == TRUE or not rows.height:
        return rows
    return rows.clear() if condition == FALSE else rows.filter(compile_term(condition, schema))
