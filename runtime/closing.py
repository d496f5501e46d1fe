"""Closing what is open when all streams have ended: a statement about the end of the input, which no event makes.

As if every partition had one more event at an instant after all others, for which no condition is true: a situation that is
still open ends there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Derive
from tidegate.algebra.row_wise import periods
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.situations import START
from tidegate.algebra.time import INF
from tidegate.runtime.inputs import instant_of
from tidegate.runtime.plan.steps import Plan, QueryPlan
from tidegate.runtime.progress import ProgressState

#: Where a manifest says at which instant situations were closed.
CLOSED_AT: Final = "closed at"


def closing_queries(plan: Plan) -> list[tuple[QueryPlan, list[Derive]]]:
    """The queries that derive situations, and which."""
    found = []
    for query in plan.queries:
        derived = (
            [] if query.ordered is None else [one for one in periods(query.ordered.node) if isinstance(one, Derive)]
        )
        if derived:
            found.append((query, derived))
    return found


def closing_instant(plan: Plan, value: Any) -> int:
    """The instant in ticks, as users write it; `QueryError` TG417 where there is nothing that it could close."""
    types = {one.schema[START].type: one for _, derived in closing_queries(plan) for one in derived}
    if not types:
        raise QueryError("TG417", "nothing can be open: the program derives no situations", hint="leave out close_at")
    if len(types) > 1:
        raise QueryError(
            "TG417",
            f"no instant closes situations of {' and '.join(sorted(map(str, types)))}",
            hint="run the queries of each timeline as a program of their own",
        )
    (one,) = types.values()
    ticks = instant_of(value, StreamDef("the end", one.schema, progress=(START,)), START)
    if not isinstance(ticks, int):
        raise QueryError("TG417", f"situations can not end at {value!r}", hint="give an instant after all events")
    return ticks


def has_ended(plan: Plan, progress: ProgressState) -> bool:
    """Whether some operator has read all of its events already."""
    queries: Sequence[QueryPlan] = [query for query, _ in closing_queries(plan)]
    return any(progress.queries[q.name][q.ordered.time] == INF for q in queries if q.ordered is not None)


def check_still_open(plan: Plan, progress: ProgressState, closed_at: int | None, asked: int) -> None:
    """`QueryError` TG417 where the end has been stated already, in another way."""
    if closed_at != asked and has_ended(plan, progress):
        how = "and what was open then is not reported" if closed_at is None else "and situations were closed elsewhere"
        raise QueryError(
            "TG417", f"the streams have ended before, {how}", hint="state close_at together with the end, once"
        )
