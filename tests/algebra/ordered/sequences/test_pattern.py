"""How many rows a match of a pattern has at most."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.strategies.row_patterns import random_pattern
from tidegate.algebra.ordered.sequences.pattern import (
    EMPTY,
    Absence,
    Alternation,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    longest,
    longest_by_variable,
    variables_of,
)

A, B, C = (Step(variable) for variable in "ABC")


def only(pattern: Pattern, variable: str) -> Pattern:
    """The pattern without the rows of other variables."""
    match pattern:
        case Step(name):
            return pattern if name == variable else EMPTY
        case Concatenation(parts) | Alternation(parts) | Permutation(parts):
            return replace(pattern, parts=tuple(only(part, variable) for part in parts))
        case Repetition(part) | Exclusion(part):
            return replace(pattern, part=only(part, variable))
        case _:
            return pattern


@pytest.mark.parametrize("seed", range(200))
def test_all_variables_at_once_have_the_rows_of_each_alone(seed: int) -> None:
    pattern = random_pattern(random.Random(seed), depth=3, marks=0.1)
    found = longest_by_variable(pattern)
    assert list(found) == list(variables_of(pattern))
    assert found == {variable: longest(only(pattern, variable)) for variable in found}


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        (Concatenation((A, B, A)), {"A": 2, "B": 1}),
        (Alternation((Concatenation((A, A)), Concatenation((A, B)))), {"A": 2, "B": 1}),
        (Repetition(Concatenation((A, Repetition(B, 0, 3))), 1, 2), {"A": 2, "B": 6}),
        (Concatenation((A, Repetition(B, 1, None))), {"A": 1, "B": None}),
        (Alternation((A, Repetition(A, 0, None))), {"A": None}),
        (Repetition(Repetition(A, 1, None), 0, 0), {"A": 0}),
        (Permutation((A, Exclusion(B), Absence(C))), {"A": 1, "B": 1}),
    ],
)
def test_the_most_rows_of_each_variable(pattern: Pattern, most: dict[str, int | None]) -> None:
    assert longest_by_variable(pattern) == most
