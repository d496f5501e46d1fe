"""Random interval sequences: they mean what the executions of the ISEQ paper find, and the embedded engine, which keeps
no more than they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from tests.properties.drive import Tally
from tests.properties.families import FAMILIES, Family, by_executions, seeds
from tests.properties.kept_intervals import check_kept
from tests.strategies.interval_sequences import long_interval_sequence_case, random_interval_sequence_case
from tidegate.algebra.errors import QueryError
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.testkit.interval_executions import EXECUTIONS, Execution


def test_executions_find_what_is_meant() -> None:
    for seed in seeds(30):
        failure = FAMILIES["iseq"].run(seed)
        assert failure is None, failure


def test_random_cases_have_results() -> None:
    family = Family(by_executions, make=random_interval_sequence_case, scripts=1)
    for seed in range(1, 100, 2):
        assert family.run(seed) is None
    assert family.tally.valid >= 25
    assert family.tally.with_results >= 7
    assert family.tally.results >= 25


def test_no_more_intervals_are_stored_than_the_first_algorithm_keeps() -> None:
    """Without index and with stacks of instances."""
    tally = _kept(30, ("naive", "stacks"), begins=False)
    assert tally.runs >= 15
    assert tally.freed >= 30, "far fewer are stored"


def test_no_more_intervals_are_stored_than_the_third_algorithm_keeps() -> None:
    """Where intervals tell when they begin, with stacks of beginnings, too."""
    tally = _kept(20, ("naive", "stacks", "punctuated"), begins=True)
    assert tally.runs >= 10
    assert tally.freed >= 100


@pytest.mark.parametrize("length", [10, pytest.param(18, marks=pytest.mark.long)])
def test_of_long_sequences_no_more_is_stored_either(length: int) -> None:
    """At no instant, with what the plan chooses by itself."""
    tally = _kept_of_long(length, range(1), begins=True)
    assert tally.freed >= length


@pytest.mark.long
@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("length", range(2, 19))
def test_of_sequences_of_every_length_no_more_is_stored(length: int, begins: bool) -> None:
    _kept_of_long(length, range(1, 5), begins=begins)


def test_results_do_not_depend_on_what_is_known_of_beginnings() -> None:
    family = FAMILIES["iseq-begun"]
    for seed in seeds(20):
        failure = family.run(seed)
        assert failure is None, failure
    assert family.tally.results >= 20
    assert family.tally.freed >= 100


def test_given_intervals_beside_derived_ones_go_without_loss() -> None:
    """Sequences of both kinds mean the same where rows go that wait for no derived interval (rule R29)."""
    family = FAMILIES["iseq-derived"]
    for seed in seeds(40):
        failure = family.run(seed)
        assert failure is None, failure
    assert family.tally.valid >= 25
    assert family.tally.results >= 20
    assert family.tally.freed >= 40


def _kept(cases: int, executions: Sequence[Execution], *, begins: bool) -> Tally:
    tally = Tally()
    for seed in seeds(cases):
        case = random_interval_sequence_case(seed, begins=begins)
        try:
            facts = analyse(case.program)
        except QueryError:
            continue
        check_kept(case, facts, tally, executions)
    return tally


def _kept_of_long(length: int, cases: Iterable[int], *, begins: bool) -> Tally:
    tally, executions = Tally(), EXECUTIONS if begins else EXECUTIONS[:2]
    for seed in cases:
        case = long_interval_sequence_case(seed, length, begins=begins)
        check_kept(case, analyse(case.program), tally, executions, "planned")
    return tally
