"""Outlines of matches, beside all words of short patterns."""

from __future__ import annotations

import random

import pytest

import tidegate as tg
from tests.strategies.row_patterns import random_pattern
from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.definition import Limit, Point, within
from tidegate.algebra.ordered.sequences.enabled import place_of, words
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.outlines import Outline, outlines_of, place_in, rows_after
from tidegate.algebra.ordered.sequences.pattern import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Repetition,
    Step,
    patterns_of,
    variables_of,
)
from tidegate.analysis.ordered.sequences.waits import span_of

S = tg.stream("S", "t bigint, x bigint", progress="t")


def node_of(pattern: Pattern, *limits: Limit) -> Sequences:
    subsets = (("U", variables_of(pattern)[:2]),)
    return Sequences(S._node, (), "t", None, pattern, (), (), (), limits, subsets=subsets)


def random_node(seed: int) -> Sequences:
    rng = random.Random(seed)
    pattern = random_pattern(rng, depth=2, marks=0.05)
    while not variables_of(pattern) or any(isinstance(part, Anchor) for part in patterns_of(pattern)):
        pattern = random_pattern(rng, depth=2, marks=0.05)

    def point() -> Point:
        return Point(rng.choice((None, *variables_of(pattern), "U")), rng.choice(("first", "last")))

    return node_of(pattern, *(Limit(point(), point(), rng.randint(-2, 6)) for _ in range(rng.choice((0, 1, 2, 3)))))


def outline(node: Sequences, word: tuple[str, ...]) -> Outline:
    """The outline of one word, by the places of points in it."""
    points = {Point(None, "first"), Point(None, "last")}
    points |= {point for limit in node.limits for point in (limit.later, limit.earlier)}
    rows = [frozenset(point for point in points if place_of(node, point, word) == at) for at in range(len(word))]
    return tuple(row for row in rows if row)


@pytest.mark.parametrize("seed", range(100))
def test_they_are_those_of_all_words(seed: int) -> None:
    node = random_node(seed)
    # These words repeat parts a few times only. That is often enough for the limits of these nodes.
    assert outlines_of(node) == {outline(node, word) for word in words(node.pattern, (), 4)}


@pytest.mark.parametrize("seed", range(100))
def test_rows_behind_those_of_a_variable(seed: int) -> None:
    pattern = random_node(seed).pattern
    of = automaton(pattern)
    after = list(zip(of.states, rows_after(of), strict=True))[1:]
    for variable in variables_of(pattern):
        in_words = [len(word) - 1 - at for word in words(pattern, (), 4) for at, v in enumerate(word) if v == variable]
        assert min((rows for state, rows in after if state.variable == variable), default=None) == min(
            in_words, default=None
        )


def test_a_last_row_is_the_last_one() -> None:
    first, last, of_b = Point(None, "first"), Point(None, "last"), Point("B", "last")
    node = node_of(Concatenation((Step("A"), Repetition(Step("B"), 0, None))), Limit(of_b, first, 3))
    row = frozenset
    assert outlines_of(node) == {(row({first, last}),), (row({first}), row({last, of_b}))}
    assert place_in((row({first}), row({last, of_b})), of_b) == 1
    assert place_in((row({first, last}),), of_b) is None


def test_the_span_of_repetitions_in_repetitions_is_found_at_once() -> None:
    def any_of(name: str) -> Pattern:
        return Repetition(Step(name), 1, None)

    rises = Repetition(Concatenation((any_of("D"), Repetition(Exclusion(Step("F")), 0, None))), 1, None)
    falls = Repetition(Concatenation((any_of("U"), Repetition(Alternation((Step("F"), Step("G"))), 0, None))), 1, None)
    pattern = Concatenation((Step("S"), Repetition(Concatenation((rises, falls)), 1, None), Step("E")))
    assert span_of(node_of(pattern)) is None
    assert span_of(node_of(pattern, within(9))) == 9
    assert span_of(node_of(pattern, Limit(Point("E", "first"), Point("S", "last"), 7))) == 7
