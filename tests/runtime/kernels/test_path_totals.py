"""Sums and ends of values over paths through rows, against listing the paths."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from tests.runtime.kernels.test_paths import A, B, table
from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.counting.labels import LabelledAutomaton, labelled_automaton
from tidegate.algebra.ordered.sequences.pattern import Alternation, Concatenation, Repetition, Step
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.paths import totals
from tidegate.runtime.kernels.paths.counts import MANY

PATTERNS = (
    Concatenation((A, B)),
    Repetition(A, 1, None),
    Concatenation((A, Repetition(B, 0, None), Alternation((A, Step("C"))))),
    Concatenation((Repetition(Concatenation((A, B)), 1, None), Repetition(Step("C"), 0, 1))),
)
NEVER = 99
#: Each kind of word with each of the labels A, and A or B; behind the words of the paths without such a row.
MARKS = (0b1, 0b11)
KINDS = (
    totals.AT_LAST,
    totals.AT_FIRST,
    totals.AT_EACH,
    totals.LEAST_AT_LAST,
    totals.LEAST_AT_FIRST,
    totals.LEAST,
    totals.LEAST_GREATEST,
    totals.SHORTEST,
    totals.LONGEST,
)
WORDS = np.array(
    [
        (totals.WITHOUT, 0, 0),
        *((totals.WITHOUT, marks, 0) for marks in MARKS),
        *((kind, marks, 1 + MARKS.index(marks)) for kind in KINDS for marks in MARKS),
    ],
    dtype=np.int64,
).T.copy()

Path = tuple[tuple[int, int], ...]


def paths(of: LabelledAutomaton, labels: Sequence[int], rows: Sequence[int]) -> list[Path]:
    """The paths of which these are the rows, each with its label."""
    steps = {(step.source, step.label): step.target for step in of.steps}
    found = []
    for its in product(*([label for label in range(3) if labels[row] >> label & 1] for row in rows)):
        state: int | None = 0
        for label in its:
            state = None if state is None else steps.get((state, label))
        if state in of.accepting:
            found.append(tuple(zip(rows, its, strict=True)))
    return found


def word_of(kind: int, marks: int, listed: list[Path], values: Sequence[int]) -> int:
    """What a word is of these paths, by its definition."""
    its = [[values[row] for row, label in path if marks >> label & 1] for path in listed]
    some = [of for of in its if of]
    match kind:
        case totals.WITHOUT:
            return sum(not of for of in its)
        case totals.AT_LAST:
            return sum(of[-1] for of in some)
        case totals.AT_FIRST:
            return sum(of[0] for of in some)
        case totals.AT_EACH:
            return sum(map(sum, its))
        case totals.LEAST_AT_LAST:
            return min((of[-1] for of in some), default=MANY)
        case totals.LEAST_AT_FIRST:
            return min((of[0] for of in some), default=MANY)
        case totals.LEAST:
            return min(map(min, some), default=MANY)
        case totals.LEAST_GREATEST:
            return min(map(max, some), default=MANY)
        case totals.SHORTEST:
            return min(map(sum, its), default=MANY)
        case _:
            return max(map(sum, its), default=-1)


def meant(
    of: LabelledAutomaton, times: list[int], labels: list[int], values: list[int], skips: bool, within: int
) -> list[list[int]]:
    """The element at the last row of each instant; nothing at other rows."""
    ending: dict[int, list[Path]] = {}
    for size in range(1, len(times) + 1):
        for rows in combinations(range(len(times)), size):
            if times[rows[-1]] - times[rows[0]] <= within and (skips or rows[-1] - rows[0] == size - 1):
                ending.setdefault(times[rows[-1]], []).extend(paths(of, labels, rows))
    last = [at + 1 == len(times) or times[at + 1] != times[at] for at in range(len(times))]
    return [
        [word_of(int(kind), int(marks), ending.get(time, []), values) for kind, marks, _ in WORDS.T] if is_last else []
        for time, is_last in zip(times, last, strict=True)
    ]


def given(values: list[int]) -> Int64Array:
    """What rows give to words: their value, and 0 to those that are marked."""
    return np.array([[0 if kind == totals.WITHOUT else value for kind in WORDS[0]] for value in values], dtype=np.int64)


@pytest.mark.parametrize("seed", range(40))
def test_they_are_those_of_the_paths_that_are_listed(seed: int) -> None:
    rng = random.Random(seed)
    of = labelled_automaton(automaton(rng.choice(PATTERNS)))
    assert of is not None
    rows = rng.choice((1, 4, 7))
    times = sorted(rng.randrange(9) for _ in range(rows))
    labels = [rng.choice((0, 1, 1, 2, 3, 4, 6)) for _ in times]
    values = [rng.choice((0, 1, 3, 7)) for _ in times]
    skips, within = rng.random() < 0.7, rng.choice((0, 1, 2, 4, NEVER))
    expected = meant(of, times, labels, values, skips, within)
    steps, time, bits = table(of), np.array(times), np.array(labels)
    new = rng.randrange(rows)
    while new and times[new] == times[new - 1]:
        new -= 1
    for first in {0, new}:
        found = np.zeros((rows, WORDS.shape[1]), dtype=np.int64)
        totals.total_within(
            np.array([0, rows]), np.array([first]), time, bits, given(values), WORDS, steps, skips, of.states, within,
            found,
        )  # fmt: skip
        for at in range(first, rows):
            assert not expected[at] or found[at].tolist() == expected[at], at
    if within == NEVER:
        elements = np.zeros((1, of.states, WORDS.shape[1]), dtype=np.int64)
        elements[:, :] = [word_of(int(kind), int(marks), [], values) for kind, marks, _ in WORDS.T]
        for first, end in ((0, new), (new, rows)):
            found = np.zeros((rows, WORDS.shape[1]), dtype=np.int64)
            totals.total_all(
                np.array([first, end]), time, bits, np.arange(rows), given(values), WORDS, steps, skips, elements, found
            )
            for at in range(first, end):
                assert not expected[at] or found[at].tolist() == expected[at], at


def test_sums_stop_at_the_greatest_number() -> None:
    """Of A+ with n rows of value 2 the last rows have the sum 2^(n + 1) - 2."""
    of = labelled_automaton(automaton(Repetition(A, 1, None)))
    assert of is not None
    rows = 70
    elements = np.zeros((1, of.states, WORDS.shape[1]), dtype=np.int64)
    elements[:, :] = [word_of(int(kind), int(marks), [], []) for kind, marks, _ in WORDS.T]
    found = np.zeros((rows, WORDS.shape[1]), dtype=np.int64)
    totals.total_all(
        np.array([0, rows]), np.arange(rows), np.ones(rows, dtype=np.int64), np.arange(rows), given([2] * rows), WORDS,
        table(of), True, elements, found,
    )  # fmt: skip
    at_last = WORDS[0].tolist().index(totals.AT_LAST)
    assert found[:, at_last].tolist() == [min(2 ** (at + 1), MANY) for at in range(rows)]
    longest = WORDS[0].tolist().index(totals.LONGEST)
    assert found[:, longest].tolist() == [2 * (at + 1) for at in range(rows)]


DOUBLES = np.array(
    [
        (totals.WITHOUT, 0, 0),
        (totals.WITHOUT, 0b1, 0),
        *(
            word
            for kind in (totals.DOUBLE_AT_LAST, totals.DOUBLE_AT_FIRST, totals.DOUBLE_AT_EACH)
            for word in ((kind, 0b1, 1), (totals.LOST, 0, 0))
        ),
    ],
    dtype=np.int64,
).T.copy()


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_doubles_lose_nothing_that_can_be_told(seed: int) -> None:
    """However they cancel each other out; they are exact numbers here, not rounded ones."""
    rng = random.Random(seed)
    of = labelled_automaton(automaton(rng.choice(PATTERNS)))
    assert of is not None
    values = [rng.choice((0.1, -0.1, 1e16, -1e16, 1 / 3, 7.0)) for _ in range(7)]
    labels = [rng.choice((1, 1, 2, 3, 4)) for _ in values]
    bits = np.array(values).view(np.int64)
    given = np.array([[0 if kind == totals.WITHOUT else value for kind in DOUBLES[0]] for value in bits])
    found = np.zeros((len(values), DOUBLES.shape[1]), dtype=np.int64)
    totals.total_within(
        np.array([0, len(values)]), np.array([0]), np.arange(len(values)), np.array(labels), given, DOUBLES, table(of),
        True, of.states, 5, found,
    )  # fmt: skip
    for at in range(len(values)):
        ending = [
            path
            for size in range(1, at + 2)
            for rows in combinations(range(at + 1), size)
            if rows[-1] == at and at - rows[0] <= 5
            for path in paths(of, labels, rows)
        ]
        its = [[Fraction(values[row]) for row, label in path if label == 0] for path in ending]
        some = [path for path in its if path]
        for word, expected in (
            (2, sum((path[-1] for path in some), Fraction())),
            (4, sum((path[0] for path in some), Fraction())),
            (6, sum((value for path in its for value in path), Fraction())),
        ):
            told = sum(map(Fraction, found[at, word : word + 2].copy().view(np.float64)), Fraction())
            size = sum((abs(value) for path in its for value in path), Fraction())
            assert abs(told - expected) <= size * Fraction(1, 2**95)


def test_doubles_are_multiplied_by_numbers_of_any_size() -> None:
    for value, times in ((0.1, 3), (1 / 3, 2**40 + 12345), (1e300, 7), (float("inf"), 2**33), (1e-300, 2**62 - 1)):
        high, low = totals._double_times(value, 0.0, times)
        if value == float("inf"):
            assert (high, low) == (value, 0.0)
        else:
            assert abs(Fraction(high) + Fraction(low) - Fraction(value) * times) <= Fraction(value) * times / 2**50
