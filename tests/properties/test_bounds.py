"""Live state never exceeds the derived bound, and on cases built for it reaches it."""

from __future__ import annotations

import pytest

from tests.properties.drive import Tally, check_rules
from tests.strategies.programs import Case, Row
from tests.strategies.streams import Step
from tidegate.algebra.nodes import Join, JoinKind, Node, Rename, Scan
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Lit, call
from tidegate.algebra.time import INF
from tidegate.algebra.types import BIGINT
from tidegate.analysis.pipeline import analyse
from tidegate.analysis.state.bounds import Bounded
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions

TICKS = 25
SCHEMA = Schema((Attribute("t", BIGINT, nullable=False, temporal=True),))
A, B = StreamDef("A", SCHEMA, progress=("t",)), StreamDef("B", SCHEMA, progress=("t",))


def joined(kind: JoinKind, back: int, ahead: int) -> ProgramDef:
    """`a.t - back <= b.t <= a.t + ahead`."""
    left, right = Rename(Scan(A), (("t", "a"),)), Rename(Scan(B), (("t", "b"),))
    condition = call(
        "and",
        call("le", Attr("a"), call("add", Attr("b"), Lit(back, BIGINT))),
        call("le", Attr("b"), call("add", Attr("a"), Lit(ahead, BIGINT))),
    )
    node: Node = Join(left, right, condition, kind)
    return ProgramDef((Query("Q", "R", node),))


@pytest.mark.parametrize("lag", [0, 4])
@pytest.mark.parametrize(("back", "ahead"), [(0, 5), (3, 0), (2, 7)])
@pytest.mark.parametrize("kind", ["inner", "anti"])
def test_one_row_per_tick_attains_the_bound(kind: JoinKind, back: int, ahead: int, lag: int) -> None:
    program = joined(kind, back, ahead)
    facts = analyse(program)
    rows: tuple[Row, ...] = tuple({"t": t} for t in range(TICKS))
    steps = [
        Step(
            {"A": rows[t : t + 1], "B": rows[t - lag : t - lag + 1] if t >= lag else ()},
            {"A": {"t": t}} | ({"B": {"t": t - lag}} if t >= lag else {}),
        )
        for t in range(TICKS)
    ]
    rest = Step({"B": rows[TICKS - lag :]}, {"A": {"t": INF}, "B": {"t": INF}})
    tally = Tally()
    check_rules(Case(0, program, {"A": rows, "B": rows}), (*steps, rest), facts, tally, lean=True)
    most = [0, 0]
    with Session(facts, options=RunOptions(collect_garbage="exact", purging="off")) as session:
        for t in range(TICKS):
            session.push("A", [dict(rows[t])])
            session.advance("A", {"t": t})
            if t >= lag:
                session.push("B", [dict(rows[t - lag])])
                session.advance("B", {"t": t - lag})
            live = session.step().live_rows
            most = [max(most[0], live["A#0"]), max(most[1], live["B#0"])]
    for o, held in zip(facts.queries[0].occurrences, most, strict=True):
        assert isinstance(o.bound, Bounded)
        # Of ticks, a closed interval of length n holds n + 1 rows.
        span = o.bound.span(lag=lag)
        assert held <= span + 1, f"{o.stream.name}: {held} rows live, {o.bound}"
        # The slower stream waits for nobody.
        if lag == 0 or o.stream.name == "A":
            assert held >= span, f"{o.stream.name}: {held} rows live, {o.bound}"
