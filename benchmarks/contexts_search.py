"""How long the optimiser of contexts searches for a plan, beside a search through all of them (CAESAR, Section 7)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Final

import tidegate as tg
from benchmarks.contexts_data import REPORTS, Setting, in_each, model
from benchmarks.figures import PAIRS, Figure, declared
from tidegate.algebra.nodes import Select, nodes_of
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.program import ProgramDef
from tidegate.algebra.terms import Call, Term, conjunction, conjuncts
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.contexts.optimiser.programs import optimised
from tidegate.contexts.optimiser.sharing import CONDITION_COST, LOOK_UP_COST, share_of

#: Queries of which each is two operators, a filter and a selection.
SEARCHED: Final = 12
#: Two queries in each of six contexts, of which each is a join and a selection.
JOINED: Final = Setting(0, 0.1, queries=2, contexts=6)


def searches() -> list[Figure]:
    """How long the optimiser takes, and how long it takes to cost every way in which queries can share look-ups."""
    shape, made = searched("24 operators in contexts: search for a plan", selections())
    joins, _ = searched("12 joins in 6 contexts: search for a plan", in_each(JOINED))
    begun = time.perf_counter()
    ways, least = exhaustive(conditions())
    exhausted = 1000 * (time.perf_counter() - begun)
    found = [
        shape,
        joins,
        declared("24 operators in contexts: exhaustive search", exhausted, f"{ways:,} ways"),
        declared("24 operators in contexts: exhaustive search / search", exhausted / shape.value),
        declared("24 operators in contexts: cost of the plan found / of the best of all", cost_of(made) / least),
    ]
    for figure in found:
        print(figure.line(), flush=True)
    return found


def selections() -> dict[str, tg.Relation]:
    """Queries that look one context up of rows of one stream."""
    context = model(Setting(0, 0.1))
    return {
        f"Q{number}": REPORTS.where(REPORTS.speed > 1, REPORTS.car == number)
        .in_context(context, "c0")
        .select("car", "time", n=REPORTS.car + number)
        for number in range(SEARCHED)
    }


def conditions() -> list[Term]:
    """What each of these queries asks of its rows."""
    return [((REPORTS.speed > 1) & (REPORTS.car == number))._term for number in range(SEARCHED)]


def searched(name: str, relations: Mapping[str, tg.Relation]) -> tuple[Figure, ProgramFacts]:
    """The time of a search, the median and the worst, and what it found."""
    definition: ProgramDef = tg.program(**relations).definition
    facts, made, taken = analyse(definition), None, []
    for _ in range(PAIRS):
        begun = time.perf_counter()
        made = optimised(definition, facts)
        taken.append(1000 * (time.perf_counter() - begun))
    assert made is not None
    return declared(name, statistics.median(taken), f"worst {max(taken):.2f} ms of {PAIRS}"), made


def cost_of(made: ProgramFacts) -> float:
    """What the look-ups of a plan cost."""
    found = 0.0
    for node in {node for query in made.program.queries for node in nodes_of(query.node) if isinstance(node, AsOf)}:
        asked: list[Term] = []
        rows = node.left
        while isinstance(rows, Select):
            asked, rows = [*asked, *conjuncts(rows.condition)], rows.input
        found += _cost(share_of(conjunction(asked)), _comparisons(conjunction(asked))) if asked else LOOK_UP_COST
    return found


def _cost(share: float, comparisons: int) -> float:
    """Of a look-up: of all rows, or of this share of them, which are told by so many comparisons."""
    return min(LOOK_UP_COST, min(1.0, share) * LOOK_UP_COST + comparisons * CONDITION_COST)


def _comparisons(condition: Term) -> int:
    match condition:
        case Call("and" | "or", args):
            return sum(map(_comparisons, args))
        case _:
            return 1


def exhaustive(asked: Sequence[Term]) -> tuple[int, float]:
    """Costs every partition of queries with these conditions into groups that share a look-up; gives how many there are
    (a Bell number), and the least cost.
    """
    each = [(share_of(condition), _comparisons(condition)) for condition in asked]
    least, ways = float("inf"), 0
    groups: list[list[tuple[float, int]]] = []

    def cost() -> float:
        return sum(_cost(sum(share for share, _ in group), sum(many for _, many in group)) for group in groups)

    def place(number: int) -> None:
        nonlocal least, ways
        if number == len(each):
            least, ways = min(least, cost()), ways + 1
            return
        for group in groups:
            group.append(each[number])
            place(number + 1)
            group.pop()
        groups.append([each[number]])
        place(number + 1)
        groups.pop()

    place(0)
    return ways, least
