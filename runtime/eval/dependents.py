"""Applies partner and kill rule to stored rows, slice by slice, against the rows that they may depend on (rule R23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import polars as pl

from tidegate.algebra.errors import QueryError
from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import TRUE, Term, attributes_of
from tidegate.algebra.time import INF
from tidegate.algebra.types import BIGINT
from tidegate.analysis.purge import Case, Purge
from tidegate.analysis.state.kill import Kill
from tidegate.analysis.state.partner import Partner
from tidegate.analysis.zones.expansion import MAX_ZONES
from tidegate.analysis.zones.instants import constrained
from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.zone import Copy, Layout, Zone
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.beginnings.partners import OpenIntervals, Read, least_of, open_intervals
from tidegate.runtime.eval.joins.ranges import join_frames
from tidegate.runtime.eval.purge_rows import OTHER, ROW, as_other, filtered
from tidegate.runtime.eval.purge_schedule import Sweep
from tidegate.runtime.plan.join_parts import join_parts
from tidegate.runtime.plan.steps import Buffer, Leaf, QueryPlan
from tidegate.runtime.state.segments import Segment


@dataclass(slots=True, eq=False)
class Judgement:
    """Judges slice by slice which rows of a buffer are dead. `dead` is right once `done`.

    What batches after `seq` have written kills nothing here, or one would never come to an end of what arrives
    meanwhile. Of partners there is an end: those are asked for that could have come only until the look began.
    """

    buffer: Buffer
    rows: pl.DataFrame
    seq: int
    dead: BoolArray = field(init=False)
    _begun: _Slice | None = None
    _place: int = 0

    def __post_init__(self) -> None:
        self.dead = np.zeros(self.rows.height, dtype=np.bool_)

    @property
    def done(self) -> bool:
        return self._place >= self.rows.height

    def go_on(self, sweep: Sweep, read: Read, rows: int) -> int:
        """Judges about as many rows as given, and at least some. Returns how many it read."""
        spent = 0
        while not self.done and spent < rows:
            if self._begun is None:
                piece = self.rows[self._place : self._place + max(1, rows // 2)]
                self._begun = _Slice.of(sweep, self.buffer, piece, self.seq, open_intervals(sweep, read))
                spent += piece.height
            slice_ = self._begun
            spent += slice_.go_on(sweep, read, rows - spent)
            if not slice_.checks:
                stop = self._place + slice_.rows.height
                self.dead[self._place : stop] = ~slice_.alive
                self._place, self._begun = stop, None
        return spent


@dataclass(slots=True, eq=False)
class _LeafCase:
    """One leaf of a query, in one case of its rules. `dead` holds what the checks so far have found."""

    purge: Purge
    query: QueryPlan
    case: Case
    leaf: Leaf
    dead: BoolArray


@dataclass(slots=True, eq=False)
class _Check:
    """A rule applied to the rows: `matched` marks those for which a stored row of `counterpart` was found among the
    `seen`.
    """

    asked: _LeafCase
    rule: Partner | Kill
    counterpart: Leaf
    matched: BoolArray
    seen: dict[str, int] = field(default_factory=dict)
    """Rows that were looked at, by the segment's path."""


@dataclass(slots=True, eq=False)
class _Slice:
    """Some of the rows, those known to be `alive`, and the remaining checks. After these all other rows are dead."""

    rows: pl.DataFrame
    alive: BoolArray
    checks: list[_Check]
    instants: dict[str, Int64Array]
    seq: int

    @classmethod
    def of(
        cls, sweep: Sweep, buffer: Buffer, rows: pl.DataFrame, seq: int, begun: Mapping[str, OpenIntervals]
    ) -> _Slice:
        rows = rows.with_row_index(ROW).cast({ROW: pl.Int64})
        alive = np.zeros(rows.height, dtype=np.bool_)
        checks: list[_Check] = []
        swept = {b.id for b in sweep.buffers}
        for query in sweep.plan.queries:
            leaves = [leaf for leaf in query.leaves if leaf.buffer is not None and leaf.buffer.id in swept]
            for leaf in leaves:
                if _buffer(leaf).id == buffer.id:
                    if leaf.partner or leaf.kill:
                        for asked in _cases_of(sweep, query, leaf, rows):
                            checks += _checks(sweep, asked, leaves, rows, alive, begun)
                        continue
                    holding = _holding(rows, leaf.keep(sweep.progress[query.name]), buffer)
                    alive |= holding & sweep.judged(query, leaf, rows) if leaf.judged else holding
        instants = {name: np.asarray(rows[name]) for name in buffer.instants}
        return cls(rows, alive, checks, instants, seq)

    def go_on(self, sweep: Sweep, read: Read, rows: int) -> int:
        """Runs the next checks until this many rows are read. Returns how many were."""
        spent = 0
        while self.checks and spent < rows:
            check = self.checks[0]
            asked = check.asked
            open_ = np.flatnonzero(~(self.alive | asked.dead | check.matched))
            condition = _condition(sweep, check)
            part = self._next(sweep, check, condition, open_) if len(open_) else None
            if part is not None:
                segment, begun = part
                size = max(1, min(segment.rows - begun, max(rows - spent - len(open_), rows // 2)))
                others = read(_buffer(check.counterpart), [segment])[begun : begun + size]
                check.seen[segment.path] = begun + size
                check.matched[open_] |= _matched_rows(sweep, check, condition, self.rows[open_], others)
                spent += len(open_) + size
                continue
            asked.dead |= check.matched if isinstance(check.rule, Kill) else ~check.matched
            self.checks.pop(0)
            if not any(check.asked is asked for check in self.checks):
                self.alive |= ~asked.dead
        return spent

    def _next(self, sweep: Sweep, check: _Check, condition: Term, open_: Int64Array) -> tuple[Segment, int] | None:
        """A segment that may hold the row that the rule asks for, and how many of its rows have been read.

        The nearest in time first: there most rows find company, and then nothing else has to be looked at.
        """
        ours, theirs = _buffer(check.asked.leaf), _buffer(check.counterpart)
        limits = {name: (int(values[open_].min()), int(values[open_].max())) for name, values in self.instants.items()}
        bounds = _bounds(condition, _both(ours, theirs))
        left = [
            segment
            for segment in sweep.segments[theirs.id]
            if check.seen.get(segment.path, 0) < segment.rows
            and (isinstance(check.rule, Partner) or segment.batch <= self.seq)
            and all(_reachable(bound, limits, segment) for bound in bounds)
        ]
        if not left:
            return None
        nearest = min(left, key=lambda segment: sum(_distance(bound, limits, segment) for bound in bounds[:1]))
        return nearest, check.seen.get(nearest.path, 0)


def _cases_of(sweep: Sweep, query: QueryPlan, leaf: Leaf, rows: pl.DataFrame) -> list[_LeafCase]:
    """The cases in which a query may need the rows at this leaf."""
    assert query.purge is not None
    assert leaf.occurrence is not None
    cases = []
    for case in query.purge.cases:
        if leaf.occurrence.index in case.views:
            keep = query.purge.keep(case, leaf.occurrence.index, sweep.progress[query.name])
            cases.append(_LeafCase(query.purge, query, case, leaf, ~_holding(rows, keep, _buffer(leaf))))
    return cases


def _checks(
    sweep: Sweep,
    asked: _LeafCase,
    leaves: Sequence[Leaf],
    rows: pl.DataFrame,
    alive: BoolArray,
    begun: Mapping[str, OpenIntervals],
) -> list[_Check]:
    """The rules that free rows of this leaf; where there are none, what keep says holds at once.

    Open intervals are partners that may still come: what is one's partner now waits for it.
    """
    by_occurrence = {leaf.occurrence.index: leaf for leaf in leaves if leaf.occurrence is not None}
    assert asked.leaf.occurrence is not None
    occurrence = asked.leaf.occurrence.index
    checks: list[_Check] = []
    for kill in asked.case.kills:
        if kill.occurrence == occurrence and kill.counterpart in by_occurrence and asked.leaf.kill:
            check = _Check(asked, kill, by_occurrence[kill.counterpart], np.zeros(rows.height, dtype=np.bool_))
            if _condition_of(sweep, check) is not None:
                checks.append(check)
    for rule in asked.case.partners:
        if rule.occurrence == occurrence and rule.counterpart in by_occurrence and asked.leaf.partner:
            counterpart = by_occurrence[rule.counterpart]
            open_ = begun.get(_buffer(counterpart).id)
            told = open_ is not None and open_.tell(asked.case, rule.counterpart)
            may_come = rule.may_come(sweep.bounds, told=told)
            if may_come != TRUE:
                waiting = _holding(rows, may_come, _buffer(asked.leaf))
                if open_ is not None and told:
                    waiting |= _waiting_for(asked, rule, counterpart, rows, open_)
                checks.append(_Check(asked, rule, counterpart, waiting))
    if not checks:
        alive |= ~asked.dead
    return checks


def _waiting_for(
    asked: _LeafCase, rule: Partner, counterpart: Leaf, rows: pl.DataFrame, begun: OpenIntervals
) -> BoolArray:
    """The rows that have a partner among open intervals."""
    ours, theirs = _buffer(asked.leaf), _buffer(counterpart)
    open_ = begun.between(asked.case, rule.counterpart)
    least = least_of(open_)
    columns = frozenset(ours.stored), frozenset(theirs.stored)
    known = [*theirs.stored.attributes, *(theirs.stored[a].renamed(name) for a, name in least.items())]
    left = Schema((*ours.stored.attributes, Attribute(ROW, BIGINT)))
    right = Schema(tuple(a.renamed(as_other(a.name)) for a in known))
    others = open_.select(pl.col(a.name).alias(as_other(a.name)) for a in known)
    parts = join_parts(rule.holds(as_other, columns, ({}, least)), left, right)
    both = Schema((*left.attributes, *right.attributes))
    matched = join_frames(rows.select(left.names), others, both, parts, "semi")
    return np.isin(np.asarray(rows[ROW]), np.asarray(matched[ROW]))


def _condition(sweep: Sweep, check: _Check) -> Term:
    condition = _condition_of(sweep, check)
    assert condition is not None
    return condition


def _condition_of(sweep: Sweep, check: _Check) -> Term | None:
    columns = frozenset(_buffer(check.asked.leaf).stored), frozenset(_buffer(check.counterpart).stored)
    if isinstance(check.rule, Kill):
        return check.rule.condition(sweep.progress[check.asked.query.name], as_other, columns)
    return check.rule.holds(as_other, columns)


def _matched_rows(sweep: Sweep, check: _Check, condition: Term, rows: pl.DataFrame, stored: pl.DataFrame) -> BoolArray:
    """The rows for which the rule finds a partner or killer among the stored rows."""
    ours, theirs = _buffer(check.asked.leaf), _buffer(check.counterpart)
    if isinstance(check.rule, Partner):
        p = sweep.progress[check.asked.query.name]
        stored = filtered(stored, check.asked.purge.keep(check.asked.case, check.rule.counterpart, p), theirs.stored)
    read = attributes_of(condition)
    left = Schema((*(a for a in ours.stored.attributes if a.name in read), Attribute(ROW, BIGINT)))
    # One column at least: a frame without columns has no rows.
    named = [name for name in theirs.stored if as_other(name) in read] or [theirs.stored.names[0]]
    right = Schema(tuple(theirs.stored[name].renamed(as_other(name)) for name in named))
    both = Schema((*left.attributes, *right.attributes))
    renamed = stored.select(pl.col(name).alias(as_other(name)) for name in named)
    matched = join_frames(rows.select(left.names), renamed, both, join_parts(condition, left, right), "semi")
    return np.isin(np.asarray(rows[ROW]), np.asarray(matched[ROW]))


def _holding(rows: pl.DataFrame, condition: Term, buffer: Buffer) -> BoolArray:
    """The rows for which a condition holds."""
    holding = np.zeros(rows.height, dtype=np.bool_)
    holding[np.asarray(filtered(rows, condition, buffer.stored)[ROW])] = True
    return holding


def _both(buffer: Buffer, theirs: Buffer) -> Schema:
    return Schema((*buffer.stored.attributes, *(a.renamed(as_other(a.name)) for a in theirs.stored.attributes)))


@lru_cache(maxsize=256)
def _bounds(condition: Term, both: Schema) -> tuple[Bound, ...]:
    """The bounds on the distance between instants of two rows that follow from a condition."""
    rows: tuple[Copy, ...] = tuple(("x", 0, name) for name in both.temporal)
    layout = Layout(rows, {name: k for k, name in enumerate(both.temporal)})
    try:
        zones = constrained([Zone.free(layout)], temporal_formula(condition, both), MAX_ZONES).zones
    except QueryError:  # more cases than are looked at: nothing is known to follow
        return ()
    return tuple(
        Bound(v[2], w[2], int(c))
        for v in rows
        for w in rows
        if v[2].startswith(OTHER) != w[2].startswith(OTHER)
        and zones
        and (c := max(zone.distance(w, v) for zone in zones)) != INF
    )


_Limits = Mapping[str, tuple[int, int]]


def _ranges(bound: Bound, limits: _Limits, segment: Segment) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The least and greatest v and w of `v - w <= c`, where they are known."""
    ends = [
        segment.bounds.get(name.removeprefix(OTHER)) if name.startswith(OTHER) else limits.get(name)
        for name in (bound.v, bound.w)
    ]
    v, w = ends
    return None if v is None or w is None else (v, w)


def _reachable(bound: Bound, limits: _Limits, segment: Segment) -> bool:
    """Whether a row of a segment can lie close enough to one within the limits for a bound."""
    ranges = _ranges(bound, limits, segment)
    return ranges is None or ranges[0][0] <= ranges[1][1] + bound.c


def _distance(bound: Bound, limits: _Limits, segment: Segment) -> int:
    """Twice the distance between the middle of a segment and that of the limits."""
    ranges = _ranges(bound, limits, segment)
    return 0 if ranges is None else abs(sum(ranges[0]) - sum(ranges[1]))


def _buffer(leaf: Leaf) -> Buffer:
    assert leaf.buffer is not None
    return leaf.buffer
