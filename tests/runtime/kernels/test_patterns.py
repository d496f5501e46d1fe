"""The pattern kernel finds every match once, when it is detected, in any increments and evaluation order."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.runtime.kernels.driver import Increments, random_case
from tests.runtime.kernels.reference import matches, situations


def check(seed: int, cases: int) -> tuple[int, int]:
    """Compares the kernels with the definitions; how many cases had matches, and how many matches there were."""
    rng = random.Random(seed)
    fruitful = total = 0
    for _ in range(cases):
        spec, definitions, slots, events, progress = random_case(rng)
        expected = matches(spec, situations(events, definitions), progress[-1])
        run = Increments.of(spec, definitions, slots)
        run.run(rng, events, progress)
        assert Counter(run.found) == Counter(expected), (spec, events, progress)
        fruitful += bool(expected)
        total += len(expected)
    return fruitful, total


@pytest.mark.parametrize("seed", range(8))
def test_random_patterns(seed: int) -> None:
    fruitful, total = check(seed, 150)
    assert fruitful >= 25
    assert total >= 70


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_random_patterns(seed: int) -> None:
    check(seed, 500)
