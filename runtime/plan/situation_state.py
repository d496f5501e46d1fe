"""What operators that derive situations keep, for people: whose it is, until when it matters, and its bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.algebra.nodes import Derive, Function, Match
from tidegate.algebra.pretty import term_text
from tidegate.algebra.row_wise import periods
from tidegate.algebra.situations import START
from tidegate.algebra.time import INF
from tidegate.analysis.patterns.bounds import SituationBound, situation_bounds
from tidegate.analysis.zones.wording import amount
from tidegate.runtime.plan.steps import Ordered, Plan, QueryPlan

#: What separates the number of a query inside another one from the name of that one.
_INSIDE = "~"
#: Situations that `explain` counts: where they may be a microsecond apart, a window has room for more than any stream brings.
_COUNTED = 1_000_000


@dataclass(frozen=True, slots=True)
class Situations:
    """What the operator of a query keeps: it has read its events up to the query's progress p at `time`.

    `kind` is that of its instants. Situations that are over may be matched until p reaches, for some entry of `ahead`, their
    `start` or `end` plus so many ticks; none are kept where nothing is matched. `bounds` is the bound of what is kept.
    """

    query: str
    time: str
    kind: str
    ahead: Mapping[str, int]
    bounds: tuple[str, ...]


def situations_of(query: str) -> str:
    """The name of what a query's operator keeps, beside those of buffers; a query inside another one counts as that one."""
    return f"{query.partition(_INSIDE)[0]}: situations"


def deriving(plan: Plan) -> list[tuple[QueryPlan, list[Derive]]]:
    """The queries that derive situations, and which: those whose operators keep some, and that can be closed."""
    nodes = ((query, () if query.ordered is None else periods(query.ordered.node)) for query in plan.queries)
    derived = ((query, [one for one in own if isinstance(one, Derive)]) for query, own in nodes)
    return [(query, own) for query, own in derived if own]


def situation_state(plan: Plan) -> tuple[Situations, ...]:
    """What is to be said of the operators of a plan, in the order of their queries."""
    return tuple(_situations(query) for query, _ in deriving(plan))


def _situations(query: QueryPlan) -> Situations:
    ordered = query.ordered
    assert ordered is not None
    node = ordered.node
    kind = periods(node)[0].schema[START].type.kind.value
    if isinstance(node, Derive):
        bounds = ("of a partition one that is open", *_different("", node))
        return Situations(query.name, ordered.time, kind, {}, bounds)
    return Situations(query.name, ordered.time, kind, _ahead(situation_bounds(node)), tuple(bound_lines(node)))


def _ahead(bounds: list[SituationBound]) -> dict[str, int]:
    """How far ahead of a situation's start, with a window, or else of its end, progress has to come for it to go."""
    longest = max((bound.span for bound in bounds), default=INF)
    return {} if isinstance(longest, float) else {"start" if bounds[0].windowed else "end": longest}


def bound_lines(node: Match) -> list[str]:
    """The derived bound of a pattern's state, per derivation."""
    time = node.situations[0].schema[START].type
    lines = []
    derived = [(f" {s}", one) for s, one in zip(node.symbols, node.situations, strict=True) if isinstance(one, Derive)]
    for bound in situation_bounds(node):
        names = " or ".join(bound.symbols)
        if bound.most <= 0 or bound.span == INF:
            lines.append(f"of a partition one {names} that is open" + (", and all that are over" if bound.most else ""))
            continue
        many = f"at most {bound.most:,}" if bound.most <= _COUNTED else "all"
        since = f"{'began' if bound.windowed else 'ended'} within {amount(int(bound.span), time)}"
        lines.append(f"of a partition {many} {names} that {since} and are over, and one that is open")
    return lines + [line for symbol, one in derived for line in _different(symbol, one)]


def _different(symbol: str, situation: Derive) -> list[str]:
    """What count_distinct holds of each situation."""
    arguments = dict.fromkeys(a.argument for a in situation.aggregates if a.function is Function.COUNT_DISTINCT)
    texts = [term_text(argument) for argument in arguments if argument is not None]
    return [f"of each{symbol} the different values of {text}" for text in texts]


def freed_lines(ordered: Ordered) -> list[str]:
    """What frees situations of a pattern before they are out of reach of a match (rule R29)."""
    lines = []
    for one in () if ordered.partners is None else ordered.partners.freed:
        names = " or ".join(one.symbols)
        if one.partners:
            others = " or no ".join(one.partners)
            lines.append(f"{names} has no {others}, and none to come, or no match is still open")
        else:
            lines.append(f"{names} is over")
    return lines
