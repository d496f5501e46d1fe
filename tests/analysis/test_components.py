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


def test_recursion_is_refused_with_its_cycle() -> None:
    cycle = (reading("R", into="P"), reading("Q", into="R"), reading("P", into="Q"), reading("A", into="Z"))
    found = components(ProgramDef(cycle))
    assert {frozenset(c.streams): c.recursive for c in found} == {frozenset("PQR"): True, frozenset("Z"): False}
    with pytest.raises(QueryError) as caught:
        facts(*cycle)
    problem = caught.value.problems[0]
    assert problem.code == "TG210"
    assert problem.because == ("P → Q → R → P",)


def test_a_query_that_reads_its_own_stream_is_recursive() -> None:
    with pytest.raises(QueryError) as caught:
        facts(reading("P", into="P"))
    assert caught.value.problems[0].because == ("P → P",)


def test_progress_goes_through_stages() -> None:
    found = facts(reading("A", into="P"), reading("P", into="R"))
    assert found.queries[1].propagation["t"].describe() == "P.t"
    assert found.definition_of("R").progress == ("t",)
    with pytest.raises(QueryError, match="TG123"):
        found.definition_of("X")
