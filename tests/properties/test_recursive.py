"""Recursive programs yield the relations that equal what their queries yield, under negation and aggregation too."""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, seeds
from tests.shards import shards
from tests.strategies.recursive import random_recursive_case
from tests.thresholds import THRESHOLDS, small
from tidegate.algebra.nodes import Group, Join, Node, children, occurrences
from tidegate.algebra.program import ProgramDef
from tidegate.analysis.components import components

SHARDS = 8
LONG = range(10_000, 12_000)  # eight of ten are valid


@pytest.mark.parametrize(("family", "cases"), [("recursive", 160), ("recursive-embedded", 100)])
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_strata_of_increments_are_the_complete_result(family: str, cases: int, shard: int) -> None:
    for seed in seeds(cases)[shard::SHARDS]:
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure


@pytest.mark.long
@pytest.mark.parametrize(("family", "cases"), [("recursive", LONG), ("recursive-embedded", LONG)])
@pytest.mark.parametrize("shard", range(SHARDS)[:2])
def test_many_recursive_programs(family: str, cases: range, shard: int) -> None:
    for seed in cases[shard::SHARDS]:
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize("most", [1, pytest.param(3, marks=pytest.mark.long)])
def test_batches_that_end_after_a_few_strata_yield_the_complete_result(most: int) -> None:
    """After each batch rows are those that its progress makes final, also for who begins with a checkpoint then."""
    (threshold,) = (one for one in THRESHOLDS if one.name == "MOST_STEPS")
    tally = FAMILIES["recursive-embedded"].tally
    before = tally.unfinished
    with small(threshold, most):
        for seed in seeds(60):
            failure = FAMILIES["recursive-embedded"].run(seed)
            assert failure is None, failure
    assert tally.unfinished - before > 10


@pytest.mark.parametrize("shard", shards(2))
def test_strata_may_be_left_for_the_next_increment_by_the_rules(shard: int) -> None:
    family = FAMILIES["lagging-recursive"]
    before = family.tally.unfinished
    for seed in seeds(120)[shard::2]:
        failure = family.run(seed)
        assert failure is None, failure
    assert family.tally.unfinished - before > 20


def test_recursions_go_through_negation_and_aggregation_and_several_streams() -> None:
    programs = [random_recursive_case(seed).program for seed in range(200)]
    assert sum(any(map(negates, nodes(program))) for program in programs) >= 50
    assert sum(any(map(aggregates, nodes(program))) for program in programs) >= 50
    assert sum(any(len(c.streams) > 1 for c in components(program)) for program in programs) >= 20


def nodes(program: ProgramDef) -> list[Node]:
    """Queries that read a recursive stream."""
    recursive = {stream for component in components(program) if component.recursive for stream in component.streams}
    return [query.node for query in program.queries if query.stream in recursive]


def negates(node: Node) -> bool:
    """Whether rows of a recursion stand under a negation: on the right of an anti-join or left join."""
    under = isinstance(node, Join) and node.kind in ("anti", "left") and reads_recursion(node.right)
    return under or any(map(negates, children(node)))


def aggregates(node: Node) -> bool:
    return (isinstance(node, Group) and reads_recursion(node)) or any(map(aggregates, children(node)))


def reads_recursion(node: Node) -> bool:
    return any(stream.name in ("W", "V") for stream in occurrences(node))
