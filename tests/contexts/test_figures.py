"""Figures 5 to 7 of the CAESAR paper: a model as a plan, the context window at its bottom, windows that are grouped."""

from __future__ import annotations

from typing import Any

import tidegate as tg
from tests.contexts.test_text import FIGURE_3, report
from tests.contexts.test_text import read as read_text
from tests.contexts.traffic import REPORTS, traffic
from tidegate.algebra.nodes import Imbed, Join, Node, Project, Rename, Scan, children, nodes_of
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.semantics import evaluate, evaluate_program
from tidegate.contexts.optimiser.filters import models_of
from tidegate.contexts.optimiser.grouping import grouped
from tidegate.contexts.optimiser.push_down import pushed_down


def operators(node: Node) -> list[str]:
    """What is done to the rows of the leftmost stream, the last first; renaming and choosing attributes left out."""
    found = []
    while not isinstance(node, Scan):
        if not isinstance(node, Project | Rename | Imbed):
            found.append(type(node).__name__)
        node = children(node)[0]
    return found


def read_by(program: tg.Program, name: str) -> set[str]:
    """The streams that a query reads."""
    return {
        node.stream.name
        for query in program.definition.queries
        if query.name == name
        for node in nodes_of(query.node)
        if isinstance(node, Scan)
    }


# --- Figure 5: from a model to queries, and to one plan ---------------------------------------------------------------


def test_clauses_that_the_model_implies_are_written_out() -> None:
    explained = str(read_text(FIGURE_3).model.explain())
    for line in (
        "0: switch congestion in clear\n  where       clear holds before the row's instant",
        "1: switch clear in congestion\n  where       congestion holds before the row's instant",
        "2: initiate accident in clear, congestion, accident\n  where       always, as it names no context",
        "3: terminate accident in accident\n  where       accident holds before the row's instant",
    ):
        assert line in explained


def test_queries_of_a_context_are_one_plan() -> None:
    """What query 2 derives is the input of query 1, and the model is computed once for both."""
    program = tg.program(**read_text(FIGURE_3).results)
    assert read_by(program, "NewTravelingCar") == {"PositionReport", "Traffic"}
    assert read_by(program, "TollNotification") == {"NewTravelingCar", "Traffic"}
    assert read_by(program, "Traffic") == {"Minutes", "Stopped"}
    named = [query.name for query in program.definition.queries if not query.inner]
    assert sorted(named) == ["NewTravelingCar", "TollNotification", "Traffic"]
    order = [facts.query.name for facts in program.facts.queries]
    assert order.index("Traffic") < order.index("NewTravelingCar") < order.index("TollNotification")


# --- Figure 6: the context window goes to the bottom ------------------------------------------------------------------


def new_cars() -> tg.Relation:
    """Query 2 as in Figure 6 (a): pattern, filter, and then the context window."""
    before, now = REPORTS.as_("p1"), REPORTS.as_("p2")
    new = now.anti_join(before, before.car == now.car, before.segment == now.segment, before.time + 30 == now.time)
    new = new.where(now.lane != "exit")
    return new.in_context(traffic(), "congestion", by="p2.segment", at="p2.time").select(now.car, now.time)


def test_the_context_window_is_at_the_bottom() -> None:
    queries = tg.program(Q=new_cars()).definition.queries
    (query,) = (query for query in queries if query.name == "Q")
    assert operators(query.node) == ["AsOf", "Select", "Join"]
    below = pushed_down(query, models_of(queries)).node
    assert operators(below) == ["Select", "Join", "AsOf"]
    # Reports before the window still count against a car: the query looks around, and only its own rows are looked up.
    (join,) = (node for node in nodes_of(below) if isinstance(node, Join))
    assert not any(isinstance(node, AsOf) for node in nodes_of(join.right))


def test_in_the_language_negated_events_are_of_the_window_too() -> None:
    """A clause CONTEXT is about all events of a pattern, so both sides of the negation are looked up."""
    program = tg.program(**read_text(FIGURE_3).results)
    (query,) = (query for query in program.definition.queries if query.name == "NewTravelingCar")
    (join,) = (node for node in nodes_of(query.node) if isinstance(node, Join))
    for side in (join.left, join.right):
        assert sum(isinstance(node, AsOf) for node in nodes_of(side)) == 1


def test_no_operator_above_runs_out_of_its_context() -> None:
    with tg.program(**read_text(FIGURE_3).results).session() as session:

        def step(until: int, **rows: list[Any]) -> set[str]:
            for name in ("Minutes", "Stopped", "PositionReport"):
                session.push(name, rows.get(name, []))
                session.advance(name, until)
            return {*session.step().places}

        plan = {"NewTravelingCar", "TollNotification"}
        assert step(50, PositionReport=[report(car, 7, 40) for car in range(5)]) == set()
        assert step(100, Minutes=[(7, 60, 60, 30.0)], PositionReport=[report(9, 7, 70)]) >= plan
        assert step(130, Minutes=[(7, 120, 10, 60.0)], PositionReport=[report(8, 7, 110)]) >= plan
        assert not step(150, PositionReport=[report(7, 7, 140)]) & plan
        assert [tuple(row.values()) for row in session.results("TollNotification")] == [(9, 70, 5), (8, 110, 5)]


# --- Figure 7: windows that overlap are grouped -----------------------------------------------------------------------

LEVELS = tg.stream("Levels", "x bigint, time bigint", progress="time")
EVENTS = tg.stream("Events", "time bigint", progress="time")
#: The window of c1 is (10, 30], that of c2 (20, 40]: so they overlap in (20, 30].
ROWS: dict[str, list[Any]] = {
    "Levels": [(time, time) for time in range(1, 51)],
    "Events": [(time,) for time in (10, 11, 15, 20, 21, 25, 29, 30, 31, 35, 40, 41)],
}


def overlapping() -> tg.ContextModel:
    x = LEVELS.x
    model = tg.context_model("Overlapping", by=(), default="none", contexts=("c1", "c2"))
    model = model.initiate("c1", when=LEVELS.where(x >= 10, x < 30)).terminate("c1", when=LEVELS.where(x >= 30))
    return model.initiate("c2", when=LEVELS.where(x >= 20, x < 40)).terminate("c2", when=LEVELS.where(x >= 40))


C1, C2 = (10, 30), (20, 40)


def pairs(model: tg.ContextModel, most: int, *contexts: str) -> tg.Relation:
    """Two events that are at most so far apart, in one window of one of the contexts."""
    a, b = EVENTS.as_("a"), EVENTS.as_("b")
    found = a.join(b, a.time < b.time, b.time <= a.time + most)
    inside = [
        found.in_context(model, context, at="b.time", since="a.time").select(first="a.time", last="b.time")
        for context in contexts
    ]
    return (inside[0].union(*inside[1:]) if len(inside) > 1 else inside[0]).distinct()


def expected(most: int, *windows: tuple[int, int]) -> list[tuple[int, int]]:
    times = [time for (time,) in ROWS["Events"]]
    return [
        (a, b)
        for a in times
        for b in times
        if a < b <= a + most and any(begin < a and b <= end for begin, end in windows)
    ]


def test_queries_of_windows_that_overlap() -> None:
    """Query 1 belongs to both contexts: a pair that lies in both is there once, and one that lies in neither as a whole
    is not there, though both contexts hold in between.
    """
    model = overlapping()
    program = tg.program(
        Q1=pairs(model, 25, "c1", "c2"),
        Q2=pairs(model, 20, "c1", "c2"),
        Q3=pairs(model, 25, "c1"),
        Q4=pairs(model, 25, "c2"),
    )
    wanted = {"Q1": expected(25, C1, C2), "Q2": expected(20, C1, C2), "Q3": expected(25, C1), "Q4": expected(25, C2)}
    assert (15, 35) not in wanted["Q1"]
    assert wanted["Q1"].count((25, 29)) == 1
    found = program.run(ROWS)
    for name, its in wanted.items():
        assert sorted(tuple(row.values()) for row in found.rows(name)) == sorted(its), name
    # Batch by batch, too.
    with program.session() as session:
        for until in range(5, 55, 5):
            for name, at in (("Levels", 1), ("Events", 0)):
                session.push(name, [row for row in ROWS[name] if until - 5 < row[at] <= until])
                session.advance(name, until)
            session.step()
        for name, its in wanted.items():
            assert sorted(tuple(row.values()) for row in session.results(name)) == sorted(its), name


def test_their_windows_are_grouped() -> None:
    """One window for both contexts, from the first beginning on. As c1 ends, c2 goes on with what began in it: what was
    found between 10 and 20 is of no window then.
    """
    program = tg.program(Q1=pairs(overlapping(), 25, "c1", "c2"))
    (query,) = (query for query in program.definition.queries if query.name == "Q1")
    models = models_of(program.definition.queries)
    made = next(made for node in nodes_of(query.node) if (made := grouped(node, models)) is not None)
    (windows,) = (node for node in nodes_of(made) if isinstance(node, GroupedWindows))
    assert windows.contexts == ("c1", "c2")
    changes = evaluate(windows, {**ROWS, **evaluate_program(program.definition, ROWS)})
    assert len(changes) == 4
    assert {*changes} == {("start", 10, 10), ("end", 30, 10), ("start", 30, 20), ("end", 40, 20)}
