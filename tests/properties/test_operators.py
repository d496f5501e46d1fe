"""Operators that gather rows in order, in random programs: the embedded engine yields what they mean, however events
arrive.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import tidegate as tg
from tests.properties.families import FAMILIES, Family, by_delays, seeds
from tests.shards import shards
from tests.strategies.asof import random_asof_case
from tests.strategies.composed import COLUMNS, ON_DAYS, STEPS, Composed, random_composed_case
from tests.strategies.contexts import random_contexts_case
from tests.strategies.contexts_inside import random_inside_case
from tests.strategies.counted import random_counted_case
from tests.strategies.operators import random_operator_case
from tests.strategies.over import random_over_case
from tests.strategies.programs import Case
from tests.strategies.ranks import random_ranks_case
from tests.strategies.sequences import random_sequences_case
from tests.strategies.ticks import random_ticks_case
from tests.strategies.versions import random_versions_case
from tests.strategies.windows import random_windows_case

SHARDS = 8
CASES = 24
KINDS = (
    *("operators", "over", "asof", "contexts", "contexts-above", "row-windows", "ranks", "versions", "ticks"),
    *("sequences", "counted", "composed", "contexts-inside"),
)


@pytest.mark.parametrize("shard", shards(SHARDS)[:2])
@pytest.mark.parametrize("kind", KINDS)
def test_operators_yield_the_complete_result(kind: str, shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES[kind].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize(
    "make",
    [
        random_asof_case,
        random_composed_case,
        random_contexts_case,
        random_counted_case,
        random_inside_case,
        random_operator_case,
        random_over_case,
        random_ranks_case,
        random_sequences_case,
        random_ticks_case,
        random_versions_case,
        random_windows_case,
    ],
)
def test_random_cases_have_results(make: Callable[[int], Case]) -> None:
    family = Family(by_delays, make=make, scripts=1)
    for seed in range(8):
        assert family.run(seed) is None
    assert family.tally.valid >= 5
    assert family.tally.with_results >= 3
    assert family.tally.results >= 20


def test_every_family_stands_above_and_below_every_other() -> None:
    """Two of them, one on the other, are a valid program; of all pairs every third is drawn, in turn."""
    refused: dict[tuple[str, str], str] = {}
    for place, below in enumerate(ON_DAYS):
        for above in ON_DAYS[place % 3 :: 3]:
            drawn = Composed(random.Random(f"{below} {above}"), on_days="dated" in (below, above))
            rows = drawn.step(above, drawn.step(below, drawn.streams[0]))
            if problems := tg.program(Q=rows).check():
                refused[below, above] = problems[0].code
    assert refused == {}


@pytest.mark.parametrize("name", [name for name in STEPS if name not in ("joined", "met", "unmet")])
def test_no_ordered_operator_reads_its_own_result(name: str) -> None:
    """Whatever the family: a recursion has relational queries only."""
    drawn = Composed(random.Random(f"recursive {name}"))
    passed = tg.result("Passed", COLUMNS, progress="t")
    again = drawn.step(name, passed.unqualified())
    later = again.select("k", "v", t=again.t + 1).select("k", "t", "v")
    (problem,) = tg.program(tg.query(passed, drawn.streams[0].select("k", "t", "v")), tg.query(passed, later)).check()
    assert problem.code == "TG211"
    assert problem.message == "an operator that reads rows in order depends on its own result"
