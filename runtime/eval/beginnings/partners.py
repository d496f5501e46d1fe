"""Intervals that have begun and not ended, as rows of the buffers that will store them: partners (rule R21)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from tidegate.algebra.schema import Begins
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.analysis.purge import Case
from tidegate.runtime.eval.beginnings.untold import untold
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.purge_schedule import Sweep
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.state.segments import Segment

#: Stands before the name of an end that is not known: the column holds the least that it may be.
LEAST: Final = "\0least "
#: No end is as late.
NEVER: Final = 2 * MAX_INSTANT

#: The rows of segments of a buffer.
Read = Callable[[Buffer, Sequence[Segment]], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class OpenIntervals:
    """Open intervals as rows of a buffer. What stands for their ends says nothing: they lie after `reached`.

    Which attributes else are `unknown` a beginning does not say.
    """

    begins: Begins
    rows: pl.DataFrame
    reached: Extended
    unknown: frozenset[str]

    def tell(self, case: Case, occurrence: int) -> bool:
        """Whether all that partners have in common with such a row is known."""
        keys = {
            a if rule.occurrence == occurrence else b
            for rule in case.partners
            if occurrence in (rule.occurrence, rule.counterpart)
            for a, b in rule.keys
        }
        return self.unknown.isdisjoint(keys)

    def between(self, case: Case, occurrence: int) -> pl.DataFrame:
        """The rows in a case of the rules: instead of the end the latest that it may be, and beside it the least."""
        view, _ = case.views[occurrence]
        start, end = self.begins.start, self.begins.end
        limits = [pl.col(x) + int(d) for x in view.columns if x != end and (d := view.within(x, end)) != INF]
        latest = pl.min_horizontal(pl.lit(NEVER), *limits)
        least = pl.col(start) if self.reached == -INF else pl.lit(self.reached + 1, pl.Int64)
        rows = self.rows.with_columns(latest.alias(end), least.alias(LEAST + end))
        return rows.filter(pl.col(end) >= pl.col(LEAST + end))


def open_intervals(sweep: Sweep, read: Read) -> dict[str, OpenIntervals]:
    """The open intervals of streams that tell beginnings, by the buffers whose rows a beginning tells."""
    found = {}
    # Of each stream once: an interval sequence has a buffer for each kind of its intervals.
    begun: dict[str, pl.DataFrame] = {}
    for buffer in sweep.buffers:
        beginnings = sweep.beginnings.get(buffer.stream.name)
        unknown = None if beginnings is None else untold(buffer)
        if beginnings is None or unknown is None:
            continue
        begins, names = beginnings.begins, buffer.stream.schema.names
        reached = sweep.bounds[buffer.stream.name, begins.end]
        if buffer.stream.name not in begun:
            known = read(beginnings.buffer, sweep.segments[beginnings.buffer.id])
            open_ = beginnings.open(known, reached).with_columns(pl.col(begins.start).alias(begins.end))
            begun[buffer.stream.name] = only(open_, names)
        rows = begun[buffer.stream.name]
        found[buffer.id] = OpenIntervals(begins, evaluate(buffer.chain, {buffer.scan: rows}), reached, unknown)
    return found


def least_of(rows: pl.DataFrame) -> Mapping[str, str]:
    """The attributes of rows that may be open of which the least stands in a column beside them."""
    return {name.removeprefix(LEAST): name for name in rows.columns if name.startswith(LEAST)}
