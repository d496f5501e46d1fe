"""Interval sequences as users write them: one interval of each kind, with restrictions of their ends."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.relation import listed
from tidegate.algebra.dsl.expression import Expression, to_expression
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.situations import IntervalOrigin, Intervals, match
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.derive import START
from tidegate.algebra.types import DataType, Kind

_NO_WINDOW = ("TG114", 'say in which time they lie: tg.iseq(A.ts < B.ts, of=(A, B), within="1h")')
_NO_INTERVALS = ("TG114", 'name the intervals, in order: tg.iseq(A.ts < B.ts, of=(A, B), within="1h")')


@called(of=_NO_INTERVALS, within=_NO_WINDOW)
def iseq(*restrictions: Expression, of: Iterable[Intervals], within: Duration) -> Relation:
    """All combinations of one interval of each of `of`, in one partition, for which the restrictions hold.

    A restriction compares two ends: `A.ts < B.te`, `A.te <= B.ts`, also with a distance, as in
    `B.ts - A.te <= tg.minutes(5)`, and with & and | between several; Allen's relations are restrictions, too. A
    combination lasts less than `within`, from the first start to the last end, and is known at that end. An interval
    that is used twice gets two names: `A.as_("A2")`.

    From the papers: ISEQ (Li et al., DEBS 2011), Equation 1. It is `tg.match(..., emission="final")` with a window
    that is one tick shorter.

    Examples:
        >>> show(tg.iseq(Fast.ts < Braking.ts, of=(Fast, Braking), within=10))
        red, 2, 5, 4, 6, 6
    """
    with Here():
        intervals = listed(of)
        for interval in intervals:
            if not isinstance(interval, Intervals):
                raise QueryError(
                    "TG114",
                    f"{shown(interval)} is no intervals",
                    hint="derive situations, or say which attributes are the ends: relation.as_intervals(...)",
                )
        if not intervals:
            raise QueryError("TG124", "an interval sequence of no intervals", hint=_NO_INTERVALS[1])
        _check_named(restrictions, intervals)
        type_ = intervals[0]._periods.schema[START].type
        return match(*intervals, *restrictions, within=_shorter(within, type_), emission="final")


def _check_named(restrictions: Iterable[object], intervals: list[Intervals]) -> None:
    """`QueryError` TG101 for a restriction of intervals that the sequence does not have."""
    names = {interval._symbol for interval in intervals}
    for restriction in restrictions:
        for read in to_expression(restriction)._reads.values():
            if isinstance(read.origin, IntervalOrigin) and read.origin.intervals._symbol not in names:
                raise QueryError(
                    "TG101",
                    f"{read.origin.intervals._symbol} is restricted, and is not in the sequence",
                    hint=f"name it: of=({', '.join([*names, read.origin.intervals._symbol])})",
                )


def _shorter(within: Duration, type_: DataType) -> Duration:
    """The window in which the greatest distance is one tick less, since a combination lasts less than it."""
    check_duration("within", within)
    if within is None:
        raise QueryError("TG114", "an interval sequence has a window", hint=_NO_WINDOW[1])
    ticks = duration_in_ticks(within, type_, "within")
    if ticks < 1:
        raise QueryError("TG160", f"within={shown(within)} is not positive", hint="nothing lasts less than that")
    return f"{ticks - 1}us" if type_.kind is Kind.TIMESTAMP else ticks - 1
