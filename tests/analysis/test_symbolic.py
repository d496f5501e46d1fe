"""Derived functions as sympy expressions: simplified, printed as people write them, the same function as before."""

from __future__ import annotations

import itertools
import random

import sympy

from tidegate.algebra.time import INF
from tidegate.algebra.types import BIGINT, TIMESTAMP
from tidegate.analysis.progress.symbolic import (
    MAX_SIMPLIFIED,
    Alternatives,
    _simplified_text,
    function_text,
    least_of_greatest,
    sum_text,
)


def text(*alternatives: tuple[tuple[str, float], ...]) -> str:
    """The text; where it is made without sympy, it is what sympy makes."""
    found = function_text(alternatives, BIGINT)
    if len(alternatives) <= MAX_SIMPLIFIED:
        names = [name for one in alternatives for name, _ in one]
        assert found == _simplified_text(least_of_greatest(alternatives), names, BIGINT)
    return found


def test_plain_functions_are_written_as_sympy_would() -> None:
    rng = random.Random(3)
    for _ in range(200):
        width = rng.choice([1, 1, 2])
        text(
            *(
                tuple((name, rng.choice([0, 1, 5, INF])) for name in rng.sample("ABC", width))
                for _ in range(rng.randint(0, 3))
            )
        )


def test_dominated_arguments_go_and_nested_ones_are_flattened() -> None:
    assert text((("A", 0),), (("A", 3),), (("B", -2),)) == "min(A - 3, B + 2)"
    assert text((("A", 0), ("B", 0)), (("A", 0),)) == "A"
    assert text((("B", 0), ("A", 1)), (("B", 0), ("C", 2))) == "max(B, min(A - 1, C - 2))"
    assert text((("B", 0), ("A", INF))) == "B"
    assert text((("A", 0),), (("A", INF),)) == "-∞"
    assert text() == "∞"


def test_arguments_keep_the_order_of_the_query() -> None:
    assert text((("Z", 0),), (("A", 0), ("M", 5))) == "min(Z, max(A, M - 5))"


def test_many_alternatives_are_only_rid_of_repetitions() -> None:
    alternatives = [((f"S{number}", 0),) for number in range(MAX_SIMPLIFIED + 1)]
    assert text(*alternatives, *alternatives) == f"min({', '.join(name for ((name, _),) in alternatives)})"


def test_simplified_functions_have_the_values_of_their_alternatives() -> None:
    rng = random.Random(1)
    for _ in range(20):
        alternatives: Alternatives = [
            tuple((name, rng.choice((0, 0, 1, 5, INF))) for name in rng.sample("ABC", rng.randint(1, 3)))
            for _ in range(rng.randint(1, 4))
        ]
        function = least_of_greatest(alternatives)
        for values in itertools.product((0, 1, 4, 7), repeat=3):
            at = dict(zip("ABC", values, strict=True))
            expected = min(max(at[name] - d for name, d in one) for one in alternatives)
            assert function.subs({sympy.Symbol(n, real=True): v for n, v in at.items()}) == expected


def test_sums_have_their_ticks_first() -> None:
    assert sum_text(60_000_000, ["skew", "lag"], TIMESTAMP) == "1m + skew + lag"
    assert sum_text(0, ["skew"], TIMESTAMP) == "skew"
