"""Cases that random runs have found, each once wrong."""

from __future__ import annotations

import pytest

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node, Scan, Select
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import FALSE, Attr, Term, call
from tidegate.algebra.types import BIGINT
from tidegate.analysis.pipeline import analyse


def stream(name: str, *instants: str) -> StreamDef:
    schema = Schema(tuple(Attribute(n, BIGINT, nullable=False, temporal=True) for n in instants))
    return StreamDef(name, schema, progress=instants[:1])


def analysed(node: Node) -> None:
    analyse(ProgramDef((Query("Q", "R", node),)))


@pytest.mark.parametrize("condition", [call("lt", Attr("t"), Attr("t")), FALSE])
def test_a_condition_that_is_false_by_itself_is_a_contradiction(condition: Term) -> None:
    """It gave no zone and no conflict, hence a result that waits for nothing yet reads a stream."""
    with pytest.raises(QueryError, match="no row can satisfy") as raised:
        analysed(Select(Scan(stream("A", "t")), condition))
    assert raised.value.code == "TG204"
