"""How long the optimiser of contexts searches for a plan, beside a search through all of them (CAESAR, Section 7)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Final

import tidegate as tg
from benchmarks.contexts_data import REPORTS, Setting, model
from benchmarks.figures import PAIRS, Figure, declared
from tidegate.analysis.pipeline import analyse
from tidegate.contexts.optimiser.programs import optimised
from tidegate.contexts.optimiser.sharing import CONDITION_COST, LOOK_UP_COST, share_of

#: Queries of which each is two operators, a filter and a selection.
SEARCHED: Final = 12


def searches() -> list[Figure]:
    """How long the optimiser takes, and how long it takes to cost every way in which queries can share look-ups."""
    rows = REPORTS.where(REPORTS.speed > 1)
    context = model(Setting(0, 0.1))
    relations = {
        f"Q{number}": rows.where(rows.car == number)
        .in_context(context, "c0")
        .select("car", "time", n=rows.car + number)
        for number in range(SEARCHED)
    }
    definition = tg.program(**relations).definition
    facts = analyse(definition)
    taken = []
    for _ in range(PAIRS):
        begun = time.perf_counter()
        optimised(definition, facts)
        taken.append(1000 * (time.perf_counter() - begun))
    begun = time.perf_counter()
    shares = [share_of((REPORTS.car == number)._term) for number in range(SEARCHED)]
    ways = exhaustive(shares)
    exhausted = 1000 * (time.perf_counter() - begun)
    found = [
        declared("24 operators in contexts: search for a plan", statistics.median(taken)),
        declared("24 operators in contexts: exhaustive search", exhausted, f"{ways:,} ways"),
        declared("24 operators in contexts: exhaustive search / search", exhausted / statistics.median(taken)),
    ]
    for figure in found:
        print(figure.line(), flush=True)
    return found


def exhaustive(shares: Sequence[float]) -> int:
    """Costs every partition of queries into groups that share a look-up; gives how many there are (a Bell number)."""
    least, ways = float("inf"), 0
    groups: list[list[float]] = []

    def cost() -> float:
        return sum(min(1.0, sum(group)) * LOOK_UP_COST + len(group) * CONDITION_COST for group in groups)

    def place(number: int) -> None:
        nonlocal least, ways
        if number == len(shares):
            least, ways = min(least, cost()), ways + 1
            return
        for group in groups:
            group.append(shares[number])
            place(number + 1)
            group.pop()
        groups.append([shares[number]])
        place(number + 1)
        groups.pop()

    place(0)
    return ways
