"""Cases that random runs have found, each once wrong."""

from __future__ import annotations

import pytest

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Distinct, Join, Node, Scan, Select
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import FALSE, Attr, Term, call
from tidegate.algebra.types import BIGINT
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.engines.embedded.session import Session


def stream(name: str, *instants: str) -> StreamDef:
    schema = Schema(tuple(Attribute(n, BIGINT, nullable=False, temporal=True) for n in instants))
    return StreamDef(name, schema, progress=instants[:1])


def analysed(node: Node) -> ProgramFacts:
    return analyse(ProgramDef((Query("Q", "R", node),)))


@pytest.mark.parametrize("condition", [call("lt", Attr("t"), Attr("t")), FALSE])
def test_a_condition_that_is_false_by_itself_is_a_contradiction(condition: Term) -> None:
    """It gave no zone and no conflict, hence a result that waits for nothing yet reads a stream."""
    with pytest.raises(QueryError, match="no row can satisfy") as raised:
        analysed(Select(Scan(stream("A", "t")), condition))
    assert raised.value.code == "TG204"


def test_a_result_whose_stream_cannot_matter_is_complete_from_the_start() -> None:
    """The anti-join's condition contradicts itself, so no row of A can take one of S away: the result is static."""
    fixed = StreamDef("S", Schema((Attribute("s", BIGINT, nullable=False, temporal=True),)), static=True)
    both = call("and", call("lt", Attr("s"), Attr("t")), call("lt", Attr("t"), Attr("s")))
    node = Join(Scan(fixed), Scan(stream("A", "t")), both, "anti")
    session = Session(analysed(node), statics={"S": [{"s": 1}, {"s": 2}]})
    session.push("A", [{"t": 1}])
    session.step()
    session.finish()
    session.step()
    assert session.results("R") == [{"s": 1}, {"s": 2}]


def test_an_inner_join_whose_condition_reads_one_side_only() -> None:
    schema = Schema(
        (
            Attribute("t", BIGINT, nullable=False, temporal=True),
            Attribute("w", BIGINT, nullable=False, temporal=True),
            Attribute("k", BIGINT),
        )
    )
    fixed = StreamDef("S", Schema((Attribute("j", BIGINT),)), static=True)
    condition = call("le", Attr("w"), call("add", Attr("t"), Attr("k")))
    node = Join(Scan(StreamDef("A", schema, progress=("t",))), Distinct(Scan(fixed)), condition, "inner")
    session = Session(analysed(node), statics={"S": [{"j": 5}]})
    session.push("A", [{"t": 7, "w": 7, "k": 0}, {"t": 7, "w": 8, "k": 0}, {"t": 7, "w": 7, "k": None}])
    session.finish()
    session.step()
    assert session.results("R") == [{"t": 7, "w": 7, "k": 0, "j": 5}]
