"""Models as a whole: what is found in them, what is not, what they imply, and their pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tidegate as tg
from tests.contexts.traffic import MINUTES, REPORTS, STOPPED, traffic
from tests.strategies.contexts import random_model
from tidegate.algebra.semantics import evaluate_program

Model = tg.ContextModel
ROADS = tg.context_model("Roads", by="segment", default="clear", contexts=("full", "closed"))
FULL = ROADS.initiate("full", when=MINUTES).terminate("full", when=MINUTES.where(MINUTES.cars == 0))
BACK = FULL.switch("closed", when=STOPPED).switch("clear", when=STOPPED)
AGAIN = FULL.initiate("closed", when=STOPPED).initiate("closed", when=STOPPED, within="closed")
CAUSED = tg.context_model("Roads", by="segment", default="clear", contexts="closed", causes={"closed": "bag"})
CERTAIN = tg.stream("Certain", "segment bigint, time bigint, place bigint not null", progress="time")
NEVER = MINUTES.where(MINUTES.cars > 50, MINUTES.cars < 30)
N, S, M = NEVER.as_("n"), STOPPED.as_("s"), MINUTES.as_("m")
BEFORE_ITSELF = STOPPED.where(STOPPED.time < STOPPED.time - 1)


def found(model: Model) -> list[str]:
    return [f"{problem.code} {problem.message}" for problem in model.check()]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (traffic, []),
        (lambda: ROADS, ["TG187 Roads has no query that begins a context"]),
        (lambda: FULL, ["TG188 closed never holds"]),
        (lambda: FULL.initiate("closed", when=STOPPED, within="full"), ["TG188 closed never ends once it holds"]),
        (lambda: FULL.switch("closed", when=STOPPED).switch("full", when=STOPPED, within="closed"), []),
        (lambda: FULL.initiate("closed", when=STOPPED).switch("closed", when=STOPPED, within="closed"), []),
        (
            lambda: FULL.initiate("closed", when=STOPPED, within="closed").terminate("closed", when=STOPPED),
            [
                "TG188 closed never holds",
                "TG188 initiate closed in closed never fires",
                "TG188 terminate closed in closed never fires",
            ],
        ),
        # At the instant at which it ends, it begins anew.
        (lambda: AGAIN.terminate("closed", when=STOPPED), []),
        (lambda: AGAIN.switch("clear", when=STOPPED), []),
        (lambda: AGAIN, ["TG188 initiate closed in closed does nothing", "TG188 closed never ends once it holds"]),
        (
            lambda: AGAIN.terminate("closed", when=BEFORE_ITSELF),
            [
                "TG188 terminate closed in closed never fires: its query has no rows",
                "TG188 initiate closed in closed does nothing",
                "TG188 closed never ends once it holds",
            ],
        ),
        (
            lambda: (
                CAUSED.initiate("closed", when=STOPPED, cause="place")
                .initiate("closed", when=STOPPED, cause="place", within="closed")
                .terminate("closed", when=STOPPED, cause="place")
            ),
            [],
        ),
        (
            lambda: BACK.switch("clear", when=STOPPED, within="clear"),
            ["TG188 switch clear in clear does nothing"],
        ),
        (
            lambda: ROADS.initiate("full", when=NEVER).switch("closed", when=STOPPED, within=("clear", "full")),
            [
                "TG188 initiate full in clear, full, closed never fires: its query has no rows",
                "TG188 full never holds",
                "TG188 closed never ends once it holds",
            ],
        ),
        (
            lambda: FULL.initiate("closed", when=STOPPED).terminate("closed", when=BEFORE_ITSELF),
            [
                "TG188 terminate closed in closed never fires: its query has no rows",
                "TG188 closed never ends once it holds",
            ],
        ),
        (
            lambda: CAUSED.initiate("closed", when=STOPPED).terminate("closed", when=CERTAIN, cause="place"),
            ["TG188 closed never ends once initiate closed in clear, closed has counted"],
        ),
        # Of queries that never count nothing follows.
        (
            lambda: (
                CAUSED.initiate("closed", when=STOPPED, cause="place", within="clear")
                .initiate("closed", when=NEVER)
                .terminate("closed", when=CERTAIN, cause="place")
            ),
            ["TG188 initiate closed in clear, closed never fires: its query has no rows"],
        ),
        # A cause that may be NULL, or an end whatever the causes.
        (lambda: CAUSED.initiate("closed", when=STOPPED).terminate("closed", when=STOPPED, cause="place"), []),
        (
            lambda: (
                CAUSED.initiate("closed", when=STOPPED)
                .terminate("closed", when=CERTAIN, cause="place")
                .switch("clear", when=STOPPED)
            ),
            [],
        ),
    ],
)  # fmt: skip
def test_what_is_found(make: Callable[[], Model], expected: list[str]) -> None:
    assert found(make()) == expected


@pytest.mark.parametrize(
    ("rows", "never"),
    [
        (NEVER, True),
        (NEVER.select("segment", "end"), True),
        (NEVER.group_by("segment", "end").agg(n=tg.count()), True),
        (N.join(S, S.segment == N.segment, S.time == N.end).select(segment=N.segment, end=N.end), True),
        (M.anti_join(N, N.end == M.end).unqualified(), False),
        (N.anti_join(M, N.end == M.end).unqualified(), True),
        (NEVER.union(MINUTES), False),
        (NEVER.union(NEVER), True),
        (MINUTES.difference(NEVER), False),
        (MINUTES.where(MINUTES.cars > 50, MINUTES.speed < 30), False),
        (MINUTES.where((MINUTES.cars > 50) | (MINUTES.cars < 30)), False),
    ],
)
def test_a_query_without_rows_is_told_from_one_with_some(rows: tg.Relation, never: bool) -> None:
    model = FULL.initiate("closed", when=rows, by=("segment",), at="end").switch("clear", when=MINUTES)
    assert found(model)[:1] == (
        ["TG188 initiate closed in clear, full, closed never fires: its query has no rows"] if never else []
    )


def test_a_finding_says_where_and_why() -> None:
    model = ROADS.initiate("full", when=NEVER)
    first, *_ = model.check()
    assert first.site is not None
    assert first.site.code == 'model = ROADS.initiate("full", when=NEVER)'
    assert first.because[0] == "never true: cars > 50 and cars < 30"
    closed = next(problem for problem in model.check() if problem.message == "closed never holds")
    assert closed.because == ("no query initiates it, or switches to it",)
    assert closed.hint == "add initiate('closed', when=...)"


def test_what_a_query_waits_for_is_one_context_or_several() -> None:
    for within, expected in (("full", "full, which never holds"), (("full", "shut"), "full or shut, which never hold")):
        model = tg.context_model("Roads", by="segment", default="clear", contexts=("full", "shut", "closed"))
        model = model.initiate("closed", when=STOPPED, within=within)
        closed = next(problem for problem in model.check() if problem.message == "closed never holds")
        assert closed.because[0].endswith(f"waits for {expected}")


def test_only_what_may_count_is_said_to_begin_a_context() -> None:
    model = tg.context_model("Roads", by="segment", default="clear", contexts=("full", "closed"))
    model = model.initiate("closed", when=STOPPED, within="full").initiate("closed", when=STOPPED, within="clear")
    ends = next(problem for problem in model.check() if problem.message == "closed never ends once it holds")
    (because,) = ends.because
    assert because.startswith("initiate closed in clear begins it (test_findings.py:")


def test_a_model_that_is_refused_is_not_without_problems() -> None:
    """A part of a query contradicts itself, and another one has rows."""
    before = BEFORE_ITSELF.over(by="segment", order="time", last=tg.lag(BEFORE_ITSELF.place)).select(*STOPPED.schema)
    model = FULL.initiate("closed", when=before.union(STOPPED)).terminate("closed", when=STOPPED)
    assert [problem.code for problem in model.check()] == ["TG204"]


def test_other_problems_of_its_queries_come_first() -> None:
    endless = M.anti_join(S, S.segment == M.segment).unqualified()
    assert [problem.code for problem in FULL.initiate("closed", when=endless).check()] == ["TG201"]


@pytest.mark.parametrize("seed", range(60))
def test_what_never_holds_does_not_and_what_never_ends_does_not(seed: int) -> None:
    """Of random models over random rows."""
    model, rows = random_model(seed)
    problems = model.check()
    if any(problem.code != "TG188" for problem in problems):
        return
    program = tg.program(Q=model.changes.where(model.changes.time > -1))
    definition = program.definition
    given: dict[str, list[Any]] = {
        stream.name: [tuple(row.values()) for row in rows[stream.name]] for stream in definition.inputs
    }
    changes = evaluate_program(definition, given)["M"]
    names = model.changes.schema.names
    told = {(row[names.index("context")], row[names.index("change")]) for row in changes}
    for problem in problems:
        context, _, rest = problem.message.partition(" ")
        if rest == "never holds":
            assert (context, "start") not in told
        if rest == "never ends once it holds":
            assert (context, "end") not in told


def test_what_is_implied_is_said() -> None:
    assert traffic().explain() == (
        "contexts Traffic by segment\n"
        "clear, the default: since ever, and wherever no other context holds\n"
        "  begins      as the last of the others ends\n"
        "  ends        as another one begins\n"
        "congestion\n"
        "  begins      switch congestion in clear\n"
        "  ends        switch clear in congestion\n"
        "accident, which holds until its set of causes is empty\n"
        "  begins      initiate accident in clear, congestion, accident\n"
        "  ends        terminate accident in accident\n"
        "0: switch congestion in clear\n"
        "  where       clear holds before the row's instant\n"
        "  does        begins congestion, unless it holds\n"
        "  keeps       speed\n"
        "1: switch clear in congestion\n"
        "  where       congestion holds before the row's instant\n"
        "  does        ends congestion; clear holds where none is left\n"
        "2: initiate accident in clear, congestion, accident\n"
        "  where       clear or congestion or accident holds before the row's instant\n"
        "  does        adds a cause to accident, which begins, unless it holds\n"
        "3: terminate accident in accident\n"
        "  where       accident holds before the row's instant\n"
        "  does        takes one cause of accident away, and ends it as none is left"
    )
    everywhere = FULL.switch("closed", when=STOPPED, since=STOPPED.time - 5).explain()
    assert "where       a context, as it names none, holds, and has held since before time - 5" in everywhere
    assert "where       always, as it names no context" in FULL.explain()
    assert "does        ends full and closed; begins closed, anew where it held" in everywhere
    whatever = CAUSED.initiate("closed", when=STOPPED).terminate("closed", when=STOPPED).explain()
    assert "does        ends closed, whatever its causes" in whatever


def test_a_plan_says_it_too() -> None:
    text = str(tg.program(Q=REPORTS.in_context(traffic(), "accident")).explain())
    assert "implied     0: where clear holds before the row's instant, begins congestion, unless it holds\n" in text


def test_the_graph() -> None:
    model = traffic().initiate("congestion", when=MINUTES, within="accident")
    assert model.mermaid() == (
        "flowchart LR\n"
        '  n0(["clear<br/>the default"])\n'
        '  n1["congestion<br/>until it is ended"]\n'
        '  n2["accident<br/>until its set of causes is empty"]\n'
        '  n0 -->|"switch"| n1\n'
        '  n1 -->|"switch"| n0\n'
        '  n0 -->|"initiate"| n2\n'
        '  n1 -.->|"initiate"| n2\n'
        '  n2 -->|"terminate"| n0\n'
        '  n2 -.->|"initiate"| n1'
    )
    picture = model.svg()
    assert picture.count("<rect") == 4
    assert picture.count("<path d=") == 7
    assert "Contexts and transitions" in picture
    assert picture in model._repr_html_()
    assert "TG188" not in model._repr_html_()
    assert "TG188 closed never holds" in FULL._repr_html_()
