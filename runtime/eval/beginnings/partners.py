"""Intervals that have begun and not ended, as rows of the buffers that will store them: partners (rule R21)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import polars as pl

from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select
from tidegate.algebra.schema import Begins
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.analysis.purge import Case
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
    for buffer in sweep.buffers:
        beginnings = sweep.beginnings.get(buffer.stream.name)
        unknown = None if beginnings is None else untold(buffer)
        if beginnings is None or unknown is None:
            continue
        begins, names = beginnings.begins, buffer.stream.schema.names
        reached = sweep.bounds[buffer.stream.name, begins.end]
        begun = beginnings.open(read(beginnings.buffer, sweep.segments[beginnings.buffer.id]), reached)
        rows = only(begun.with_columns(pl.col(begins.start).alias(begins.end)), names)
        found[buffer.id] = OpenIntervals(begins, evaluate(buffer.chain, {buffer.scan: rows}), reached, unknown)
    return found


@lru_cache(maxsize=256)
def untold(buffer: Buffer) -> frozenset[str] | None:
    """The stored attributes, beside the end, that are not known when an interval begins; None where it is not known
    whether the buffer will store it.
    """
    begins = buffer.stream.begins
    if begins is None or buffer.statics or buffer.holds != "rows":
        return None
    unknown = _unknown(buffer.chain, begins)
    return None if unknown is None else unknown - {begins.end}


def _unknown(node: Node, begins: Begins) -> frozenset[str] | None:
    """The attributes of a row-wise part that a beginning does not say; None where a condition reads one of them."""
    match node:
        case Scan(stream):
            return frozenset(stream.schema) & {begins.end, *begins.later}
        case Project(input_, names):
            unknown = _unknown(input_, begins)
            return None if unknown is None else unknown & frozenset(names)
        case Rename(input_, pairs):
            unknown, new = _unknown(input_, begins), dict(pairs)
            return None if unknown is None else frozenset(new.get(name, name) for name in unknown)
        case Select(input_, condition):
            unknown = _unknown(input_, begins)
            return None if unknown is None or attributes_of(condition) & unknown else unknown
        case Imbed(input_, name, term):
            unknown = _unknown(input_, begins)
            if unknown is None:
                return None
            return unknown | {name} if attributes_of(term) & unknown else unknown
        case _:
            return None


def least_of(rows: pl.DataFrame) -> Mapping[str, str]:
    """The attributes of rows that may be open of which the least stands in a column beside them."""
    return {name.removeprefix(LEAST): name for name in rows.columns if name.startswith(LEAST)}
