"""Components and evaluation order (rule R18)."""

from __future__ import annotations

import pytest

from tests.analysis.build import facts, query, scan, stream
from tidegate.algebra.errors import QueryError
from tidegate.algebra.program import ProgramDef, Query
from tidegate.analysis.components import components

A = stream("A")


def reading(name: str, *, into: str, alias: str = "") -> Query:
    """A query that passes a stream on, its attributes called t and k again."""
    definition = stream(name)
    renamed = scan(definition, alias or "x")
    from tidegate.algebra.nodes import Rename

    return query(Rename(renamed, tuple((a, a.rsplit(".", 1)[-1]) for a in renamed.schema.names)), into)


def test_queries_run_after_what_they_read() -> None:
    program = ProgramDef((reading("P", into="R"), reading("A", into="P"), reading("A", into="Z")))
    assert [c.streams for c in components(program)] == [("P",), ("R",), ("Z",)]
    assert not any(c.recursive for c in components(program))
    assert [q.query.name for q in facts(*program.queries).queries] == ["P", "R", "Z"]


def test_without_dependencies_the_order_is_the_program_s() -> None:
    program = ProgramDef((reading("A", into="Z"), reading("A", into="B")))
    assert [c.streams for c in components(program)] == [("Z",), ("B",)]


def test_streams_that_depend_on_each_other_are_one_component() -> None:
    cycle = (reading("R", into="P"), reading("Q", into="R"), reading("P", into="Q"), reading("A", into="Z"))
    found = components(ProgramDef(cycle))
    assert {frozenset(c.streams): c.recursive for c in found} == {frozenset("PQR"): True, frozenset("Z"): False}
    assert [c.recursive for c in components(ProgramDef((reading("P", into="P"),)))] == [True]


def test_a_recursive_stream_has_to_be_declared() -> None:
    with pytest.raises(QueryError) as caught:
        facts(reading("R", into="P"), reading("P", into="R"))
    assert caught.value.problems[0].code == "TG211"
    assert caught.value.problems[0].because == ("its queries read, directly or through others, P, R",)


def test_progress_goes_through_stages() -> None:
    found = facts(reading("A", into="P"), reading("P", into="R"))
    assert found.queries[1].propagation["t"].describe() == "P.t"
    assert found.definition_of("R").progress == ("t",)
    with pytest.raises(QueryError, match="TG123"):
        found.definition_of("X")


def test_a_query_is_behind_by_what_its_inputs_allow_beyond_its_own_progress() -> None:
    (found,) = facts(query(scan(stream("S"), "s"))).queries
    assert found.behind({("S", "t"): 10}, {"s.t": 4}) == 6
    assert found.behind({("S", "t"): 10}, {"s.t": 12}) == 0
