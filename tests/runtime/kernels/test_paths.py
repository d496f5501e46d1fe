"""Paths of an automaton through rows, counted, against listing them; compiled and not."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.counting.labels import LabelledAutomaton, labelled_automaton
from tidegate.algebra.ordered.sequences.pattern import Concatenation, Repetition, Step
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.paths import counts

A, B = Step("A"), Step("B")
PATTERNS = (A, Concatenation((A, B)), Repetition(A, 1, None), Concatenation((A, Repetition(B, 0, None), A)))
NEVER = 99


def table(of: LabelledAutomaton) -> Int64Array:
    steps = [(step.source, step.label, step.target, int(step.target in of.accepting)) for step in of.steps]
    return np.array(steps, dtype=np.int64)


def listed(of: LabelledAutomaton, times: list[int], labels: list[int], skips: bool, within: int) -> list[int]:
    """The number of paths that end at each row: the twin of the kernels."""
    ends = [0] * len(times)
    for size in range(1, len(times) + 1):
        for rows in combinations(range(len(times)), size):
            adjacent = rows[-1] - rows[0] == size - 1
            if times[rows[-1]] - times[rows[0]] > within or not (skips or adjacent):
                continue
            paths = {0: 1}
            for at in rows:
                after: dict[int, int] = {}
                for step in of.steps:
                    if labels[at] >> step.label & 1 and step.source in paths:
                        after[step.target] = after.get(step.target, 0) + paths[step.source]
                paths = after
            ends[rows[-1]] += sum(number for state, number in paths.items() if state in of.accepting)
    return ends


def by_instant(times: list[int], ends: list[int]) -> list[int]:
    """The numbers of all rows of an instant, at the last of them."""
    last = [at + 1 == len(times) or times[at + 1] != times[at] for at in range(len(times))]
    of = [sum(e for t, e in zip(times, ends, strict=True) if t == time) for time in times]
    return [number if is_last else 0 for number, is_last in zip(of, last, strict=True)]


def counted(of: LabelledAutomaton, times: list[int], labels: list[int], skips: bool, within: int) -> list[int]:
    """By both kernels where there is no limit; of these rows some are kept from before, whose numbers are 0."""
    time, bits = np.array(times, dtype=np.int64), np.array(labels, dtype=np.int64)
    offsets, found = np.array([0, len(times)]), np.zeros(len(times), dtype=np.int64)
    counts.count_within(offsets, np.array([0]), time, bits, table(of), skips, of.states, within, found)
    if within == NEVER:
        also, numbers = np.zeros(len(times), dtype=np.int64), np.zeros((1, of.states), dtype=np.int64)
        counts.count_all(offsets, time, bits, np.arange(len(times)), table(of), skips, numbers, also)
        assert also.tolist() == found.tolist()
    return found.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_paths_are_counted_as_they_are_listed(seed: int) -> None:
    rng = random.Random(seed)
    of = labelled_automaton(automaton(rng.choice(PATTERNS)))
    assert of is not None
    times = sorted(rng.randrange(9) for _ in range(rng.choice((1, 4, 8))))
    labels = [rng.choice((0, 1, 1, 2, 3)) for _ in times]
    skips, within = rng.random() < 0.7, rng.choice((0, 1, 2, 4, NEVER))
    expected = by_instant(times, listed(of, times, labels, skips, within))
    assert counted(of, times, labels, skips, within) == expected
    new = rng.randrange(len(times) + 1)
    while 0 < new < len(times) and times[new] == times[new - 1]:
        new += 1
    found = np.zeros(len(times), dtype=np.int64)
    counts.count_within(
        np.array([0, len(times)]), np.array([new]), np.array(times), np.array(labels), table(of), skips, of.states,
        within, found,
    )  # fmt: skip
    assert found[new:].tolist() == expected[new:]


def test_numbers_stop_at_the_greatest_one() -> None:
    """2^n - 1 matches of A+ with n rows; they are no more than the greatest number, and never negative."""
    of = labelled_automaton(automaton(Repetition(A, 1, None)))
    assert of is not None
    rows = 70
    found = counted(of, list(range(rows)), [1] * rows, True, NEVER)
    assert found == [min(2**at, counts.MANY) for at in range(rows)]
    assert counted(of, list(range(rows)), [1] * rows, True, 64)[-5:] == [counts.MANY] * 5


def test_products_stop_there_too() -> None:
    assert counts._product(1 << 31, 1 << 31) == 1 << 62
    assert counts._product(1 << 32, 1 << 31) == counts.MANY
    assert counts._product(counts.MANY, 0) == counts._product(0, counts.MANY) == 0
    assert counts._product(counts.MANY, 1) == counts.MANY
