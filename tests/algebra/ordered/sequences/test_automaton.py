"""The automaton of a row pattern: the ways of the definition, in its order of preference, and its size."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.strategies.row_patterns import random_pattern
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, automaton
from tidegate.algebra.ordered.sequences.automata.residuals import residuals
from tidegate.algebra.ordered.sequences.partition import Matched, Partition
from tidegate.algebra.ordered.sequences.pattern import (
    EMPTY,
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Pattern,
    Permutation,
    Repetition,
    Step,
    pattern_text,
)
from tidegate.algebra.ordered.sequences.search import Path, Search

A, B, C = (Step(variable) for variable in "ABC")


@dataclass(frozen=True)
class Anything:
    """Rows for which every condition holds."""

    node: Any
    rows: range

    def holds(self, _variable: str, _at: int, _matched: Matched) -> bool:
        return True


def defined(pattern: Pattern, rows: int, start: int) -> list[tuple[object, ...]]:
    """The ways of the definition, each once."""
    partition = Anything(SimpleNamespace(pattern=pattern, limits=()), range(rows))
    search = Search(cast(Partition, partition))
    ways = (path for path in search.ways(pattern, Path(start)))
    return unique((way.matched, way.excluded, frozenset(_apart(way.absences))) for way in ways)


def _apart(absences: Sequence[tuple[Absence, int]]) -> Iterator[tuple[Absence, int]]:
    return ((one, before) for absence, before in absences for one in absence.apart)


def followed(found: Automaton, rows: int, start: int) -> list[tuple[object, ...]]:
    """The ways of the automaton."""

    def on(state: int, matched: Matched, out: frozenset[int], absences: frozenset[Any]) -> Iterator[tuple[object, ...]]:
        at = start + len(matched)
        for way in found.states[state].transitions:
            if ("start" in way.anchors and at) or ("end" in way.anchors and at < rows):
                continue
            passed = absences | {(absence, len(matched)) for absence in way.absences}
            if way.to is None:
                yield matched, out, passed
            elif at < rows:
                to = found.states[way.to]
                yield from on(way.to, (*matched, (at, to.variable)), out | ({at} if to.excluded else set()), passed)

    return unique(on(BEGIN, (), frozenset(), frozenset()))


def unique(ways: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return list(dict.fromkeys(ways))


def test_ways_are_those_of_the_definition_in_its_order() -> None:
    rng, several = random.Random(1), 0
    for _ in range(400):
        pattern = random_pattern(rng)
        found = automaton(pattern)
        for rows, start in ((0, 0), (1, 0), (2, 1), (3, 0)):
            expected = defined(pattern, rows, start)
            assert followed(found, rows, start) == expected, pattern_text(pattern)
            several += len(expected) > 3
    assert several > 40


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Repetition(A, 0, 1, greedy=False), [[None, "A"], [None]]),
        (Repetition(A, 1, None), [["A"], ["A", None], ["A", None]]),
        (Repetition(A, 2, 3), [["A"], ["A"], ["A", None], [None]]),
        (Permutation((A, B)), [["A", "B"], ["B"], [None], ["A"], [None]]),
        (Repetition(Repetition(A, 0, None), 0, None), [["A", None], ["A", None]]),
        (Repetition(EMPTY, 0, None), [[None]]),
        (Concatenation((A, Anchor("start"), B)), [[], [], [None]]),
        (Concatenation((A, Anchor("end"), B)), [[], [], [None]]),
        (Alternation((Concatenation((A, Anchor("end"), B)), A)), [["A"], [], [None], [None]]),
    ],
)
def test_transitions(pattern: Pattern, expected: list[list[str | None]]) -> None:
    states = automaton(pattern).states
    transitions = [
        [None if way.to is None else states[way.to].variable for way in state.transitions] for state in states
    ]
    assert transitions == expected


def test_equal_ways_are_there_once() -> None:
    marked = Absence(Step("N"), 3)
    twice = Concatenation((A, Repetition(marked, 0, 1), Repetition(marked, 0, 1), B))
    ways = automaton(twice).states[1].transitions
    assert [way.absences for way in ways] == [(marked,), ()]
    either = Alternation((Concatenation((A, marked)), A))
    assert [[way.absences for way in state.transitions] for state in automaton(either).states[1:]] == [
        [(marked,)],
        [()],
    ]


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize(("least", "most"), [(0, 3), (1, 2), (1, None), (2, 3), (2, None)])
def test_ways_of_parts_without_rows_are_those_of_the_definition(least: int, most: int | None, greedy: bool) -> None:
    optional = Repetition(A, 0, 1, greedy=False)
    for part in (Alternation((optional, B)), Alternation((EMPTY, A)), Concatenation((optional, optional))):
        pattern = Repetition(part, least, most, greedy)
        assert followed(automaton(pattern), 3, 0) == defined(pattern, 3, 0), pattern_text(pattern)


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        (0, 3, ["AAA", "AA-", "AA", "A-", "A", "-", ""]),
        (1, 3, ["AAA", "AA-", "AA", "A-", "A", "-"]),
        (2, 3, ["AAA", "AA-", "AA", "A-", "-AA", "-A-", "-A", "--"]),
        (2, 2, ["AA", "A-", "-A", "--"]),
    ],
)
def test_a_time_without_rows_is_the_last_one_beyond_the_least(least: int, most: int, expected: list[str]) -> None:
    """The strings of ISO/IEC 19075-5, 7.2.8, for (A?){0,3} and so on; an absence marks the times without rows."""
    pattern = Repetition(Alternation((A, Absence(Step("N")))), least, most)
    partition = Anything(SimpleNamespace(pattern=pattern, limits=()), range(4))
    found = []
    for way in Search(cast(Partition, partition)).ways(pattern, Path(0)):
        marks = [sum(before == rows for _, before in way.absences) for rows in range(len(way.matched) + 1)]
        found.append("A".join("-" * mark for mark in marks))
    assert found == expected


def test_states_after_labels() -> None:
    found = automaton(Concatenation((A, Repetition(B, 0, None), Alternation((B, C)))))
    assert found.after(()) == {BEGIN}
    assert [found.variable(state) for state in sorted(found.after("AB"))] == ["B", "B"]
    assert [found.variable(state) for state in sorted(found.after("AC"))] == ["C"]
    assert found.after("B") == frozenset()


@pytest.mark.parametrize(
    ("pattern", "because"),
    [
        (Repetition(A, 1, 100_000), "A{1,100000} alone has 100,000"),
        (Repetition(EMPTY, 100_000, None), "(){100000,} alone has 100,001"),
        (Concatenation((A, Permutation(tuple(map(Step, "BCDEFGHIJKLM"))))), "alone has 5,748,019,200"),
        (Repetition(Repetition(A, 0, 100), 0, 100), "(A{0,100}){0,100} alone has 10,000"),
    ],
)
def test_a_pattern_that_explodes_is_refused(pattern: Pattern, because: str) -> None:
    with pytest.raises(QueryError) as refused:
        automaton(pattern)
    assert refused.value.code == "TG180"
    assert because in refused.value.problems[0].because[0]
    assert refused.value.hint


def test_many_ways_from_step_to_step_are_refused() -> None:
    with pytest.raises(QueryError, match=r"TG180 .* more than 50,000 ways"):
        automaton(Repetition(Repetition(A, 0, 1), 400, 400))


def test_a_long_pattern_is_no_deep_recursion() -> None:
    assert len(automaton(Repetition(A, 0, 5_000)).states) == 5_001


def apart(of: Automaton, found: Iterable[frozenset[int]]) -> set[tuple[frozenset[int], frozenset[int]]]:
    """The pairs of sets of states from which different variables of rows end a match."""

    def on(states: frozenset[int], variable: str) -> frozenset[int]:
        ways = {way.to for state in states for way in of.states[state].transitions if way.to is not None}
        return frozenset(to for to in ways if of.variable(to) == variable)

    def ends(states: frozenset[int]) -> bool:
        return any(way.to is None for state in states for way in of.states[state].transitions)

    none = frozenset[int]()
    pairs = list(product([*found, none], repeat=2))
    told = {(one, other) for one, other in pairs if ends(one) != ends(other) or bool(one) != bool(other)}
    while True:
        more = {(a, b) for a, b in pairs if (a, b) not in told and any((on(a, v), on(b, v)) in told for v in "ABC")}
        if not more:
            return told
        told |= more


@pytest.mark.parametrize("seed", range(60))
def test_residuals_are_equal_where_the_same_variables_end_a_match(seed: int) -> None:
    of = automaton(random_pattern(random.Random(seed), depth=2, marks=0))
    numbers = residuals(of)
    told = apart(of, numbers)
    assert all((numbers[one] != numbers[other]) == ((one, other) in told) for one, other in product(numbers, repeat=2))


@pytest.mark.parametrize("pattern", [Repetition(B, 1, None), Concatenation((B, Repetition(B, 0, None)))])
def test_residuals_do_not_depend_on_how_the_pattern_is_written(pattern: Pattern) -> None:
    of = automaton(Concatenation((A, pattern, C)))
    numbers = residuals(of)
    assert len(set(numbers.values())) == 4
    assert numbers[of.after("AB")] == numbers[of.after("ABB")] != numbers[of.after("A")]
