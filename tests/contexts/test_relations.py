"""Which contexts lie in others, overlap them, or never hold together: from the conditions of their queries."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.nodes import nodes_of
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.semantics import evaluate_program
from tidegate.contexts import relations as context_relations

READINGS = tg.stream("Readings", "room bigint, time bigint, degrees bigint, smoke boolean", progress="time")
OTHERS = tg.stream("Others", "room bigint, time bigint, degrees bigint, smoke boolean", progress="time")
#: One row for each room and instant.
HOTTEST = READINGS.group_by("room", "time").agg(degrees=tg.max(READINGS.degrees))

Rows = Sequence[tuple[Any, ...]]


def above(limit: int, rows: tg.Relation = READINGS) -> tg.Relation:
    return rows.where(rows["degrees"] >= limit)


def below(limit: int, rows: tg.Relation = READINGS) -> tg.Relation:
    return rows.where(rows["degrees"] < limit)


def model(*contexts: str, **options: Any) -> tg.ContextModel:
    return tg.context_model("Rooms", by="room", default="fine", contexts=contexts, **options)


def nested() -> tg.ContextModel:
    """A room is hot above 50 degrees, until it has less than 40; it is warm above 30, until it has less than 20."""
    rooms = model("warm", "hot").initiate("warm", when=above(30)).terminate("warm", when=below(20))
    return rooms.initiate("hot", when=above(50)).terminate("hot", when=below(40))


def stages(rows: tg.Relation = READINGS) -> tg.ContextModel:
    """One stage after the other: each begins in the one before, which it ends."""
    rooms = model("warm", "hot").switch("warm", when=above(30, rows), within="fine")
    rooms = rooms.switch("hot", when=above(50, rows), within="warm").switch("warm", when=below(50, rows), within="hot")
    return rooms.switch("fine", when=below(20, rows), within=("warm", "hot"))


def beside(first: int, second: int, rows: tg.Relation = READINGS) -> tg.ContextModel:
    """Two contexts that the default one leads to, each of which ends where the other begins."""
    rooms = model("warm", "cold")
    rooms = rooms.switch("warm", when=above(first, rows), within=("fine", "cold"))
    return rooms.switch("cold", when=below(second, rows), within=("fine", "warm"))


def relations(of: tg.ContextModel) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    found = of._relations()
    return {*found.inside}, {pair for pair in found.apart if pair[0] < pair[1]}


SMOKE = READINGS.where(READINGS.smoke)
HOT = [("hot", "warm")]


@pytest.mark.parametrize(
    ("make", "inside", "apart"),
    [
        (nested, HOT, []),
        (stages, [], [("hot", "warm")]),
        # One row begins both, and ends both.
        (
            lambda: (
                model("warm", "hot")
                .initiate("warm", when=above(30))
                .initiate("hot", when=above(30))
                .terminate("warm", when=below(20))
                .terminate("hot", when=below(20))
            ),
            [("hot", "warm"), ("warm", "hot")],
            [],
        ),
        # What ends the wider one does not end the other, or begins it too late.
        (
            lambda: (
                model("warm", "hot")
                .initiate("warm", when=above(30))
                .initiate("hot", when=above(50))
                .terminate("warm", when=below(45))
                .terminate("hot", when=below(40))
            ),
            [],
            [],
        ),
        (
            lambda: (
                model("warm", "hot")
                .initiate("warm", when=above(51))
                .initiate("hot", when=above(50))
                .terminate("warm", when=below(20))
                .terminate("hot", when=below(40))
            ),
            [],
            [],
        ),
        # The wider one begins in fewer contexts, or only if the match began in it.
        (lambda: nested_with(within="fine"), [], []),
        (lambda: nested_with(since=READINGS.time - 2), [], []),
        (lambda: nested_with(narrow={"within": "fine"}), HOT, []),
        # The narrower one ends only where its match lies in it, or by another stream.
        (lambda: ended_with(since=READINGS.time - 2), [], []),
        (lambda: ended_with(when=SMOKE), [], []),
        # A condition of two attributes, the same on both sides; a term without a value may leave rows out.
        (lambda: of_both(READINGS.degrees >= READINGS.room), HOT, []),
        (lambda: of_both(READINGS.degrees // READINGS.room > 2), [], []),
        (lambda: of_both(READINGS.time > 3), HOT, []),
        # By causes: what clears one cause of the wider one may end it, what clears one of the other need not.
        (lambda: by_causes("warm"), HOT, []),
        (lambda: by_causes("hot"), [], []),
        # Both may begin in one transaction, unless there is one row for each instant that would have to do it.
        (lambda: beside(30, 10), [], []),
        (lambda: beside(30, 10, HOTTEST), [], [("cold", "warm")]),
        (lambda: beside(30, 31, HOTTEST), [], []),
        (lambda: stages(HOTTEST), [], [("hot", "warm")]),
        # It begins in any context, and leaves the other one as it is.
        (
            lambda: (
                model("warm", "hot")
                .switch("warm", when=above(30), within="fine")
                .initiate("hot", when=above(50))
                .terminate("hot", when=below(50))
                .terminate("warm", when=below(20))
            ),
            [],
            [],
        ),
        # Other rows with the same attributes.
        (
            lambda: (
                model("warm", "hot")
                .initiate("warm", when=above(30, OTHERS))
                .initiate("hot", when=above(50))
                .terminate("warm", when=below(20))
                .terminate("hot", when=below(40))
            ),
            [],
            [],
        ),
        # It begins in a context that may hold together with the other one.
        (
            lambda: (
                model("warm", "cold", "hot")
                .switch("warm", when=above(30), within="fine")
                .initiate("cold", when=below(10))
                .initiate("hot", when=above(50), within="cold")
                .terminate("warm", when=below(20))
                .terminate("cold", when=above(40))
                .terminate("hot", when=below(45))
            ),
            [],
            [],
        ),
    ],
)
def test_relations(
    make: Callable[[], tg.ContextModel], inside: list[tuple[str, str]], apart: list[tuple[str, str]]
) -> None:
    assert relations(make()) == ({*inside}, {*apart})


def nested_with(narrow: Mapping[str, Any] | None = None, **wide: Any) -> tg.ContextModel:
    rooms = model("warm", "hot").initiate("warm", when=above(30), **wide).terminate("warm", when=below(20))
    return rooms.initiate("hot", when=above(50), **(narrow or {})).terminate("hot", when=below(40))


def ended_with(when: tg.Relation | None = None, **narrow: Any) -> tg.ContextModel:
    rooms = model("warm", "hot").initiate("warm", when=above(30)).terminate("warm", when=below(20))
    return rooms.initiate("hot", when=above(50)).terminate("hot", when=below(40) if when is None else when, **narrow)


def of_both(condition: tg.Expression) -> tg.ContextModel:
    rooms = model("warm", "hot")
    rooms = rooms.initiate("warm", when=above(30).where(condition)).terminate("warm", when=below(20))
    return rooms.initiate("hot", when=above(50).where(condition)).terminate("hot", when=below(40))


def by_causes(context: str) -> tg.ContextModel:
    """One of the two contexts holds by causes."""
    cause: dict[str, Any] = {}
    for name in ("warm", "hot"):
        cause[name] = {"cause": READINGS.degrees} if name == context else {}
    rooms = model("warm", "hot", causes={context: "set"})
    rooms = rooms.initiate("warm", when=above(30), **cause["warm"]).terminate("warm", when=below(20), **cause["warm"])
    return rooms.initiate("hot", when=above(50), **cause["hot"]).terminate("hot", when=below(40), **cause["hot"])


def warm_and_smoky() -> tg.ContextModel:
    rooms = model("warm", "hot", "smoky").initiate("warm", when=above(30)).terminate("warm", when=below(20))
    rooms = rooms.initiate("hot", when=above(50)).terminate("hot", when=below(40))
    return rooms.terminate("smoky", when=READINGS.where(~READINGS.smoke))


@pytest.mark.parametrize(
    ("make", "overlapping"),
    [
        (lambda: warm_and_smoky().initiate("smoky", when=SMOKE, within="warm"), {("smoky", "warm")}),
        # Where a context holds that lies in another one, that one does.
        (lambda: warm_and_smoky().initiate("smoky", when=SMOKE, within=("warm", "hot")), {("smoky", "warm")}),
        (
            lambda: warm_and_smoky().initiate("smoky", when=SMOKE, within="hot"),
            {("smoky", "hot"), ("smoky", "warm")},
        ),
        # It may begin while the other one does not hold: in a context beside, in itself, by another query.
        (lambda: warm_and_smoky().initiate("smoky", when=SMOKE, within=("fine", "warm")), set()),
        (lambda: warm_and_smoky().initiate("smoky", when=SMOKE, within=("smoky", "warm")), set()),
        (
            lambda: (
                warm_and_smoky()
                .initiate("smoky", when=SMOKE, within="warm")
                .initiate("smoky", when=above(90), within="fine")
            ),
            set(),
        ),
        # What begins it ends the other one, which may begin again.
        (lambda: warm_and_smoky().switch("smoky", when=SMOKE, within="warm"), set()),
        # What lies in another one, or never holds with it, is said to.
        (nested, set()),
        (stages, set()),
    ],
)
def test_contexts_that_begin_while_others_hold(
    make: Callable[[], tg.ContextModel], overlapping: set[tuple[str, str]]
) -> None:
    assert make()._relations().overlapping == overlapping


def test_they_are_told() -> None:
    smoky = warm_and_smoky().initiate("smoky", when=SMOKE, within="hot")
    told = "  overlaps    hot: it begins while hot holds\n              warm: it begins while warm holds\n"
    assert told in str(smoky.explain())
    assert "  lies in     warm, wherever it holds\n" in str(nested().explain())
    assert "  apart from  hot: they never hold together\n" in str(stages().explain())
    same = model("warm", "hot").initiate("warm", when=above(30)).initiate("hot", when=above(30))
    same = same.terminate("warm", when=below(20)).terminate("hot", when=below(20))
    assert [(problem.code, problem.message) for problem in same.check()] == [
        ("TG188", "hot and warm hold at the same instants")
    ]
    assert nested().check() == stages().check() == []


def test_two_contexts_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred contexts took 23 seconds, as it was eight times as long for twice as many."""
    compared = 0
    follows = context_relations._Finder._follows

    def counted(self: Any, one: Any, other: Any) -> bool:
        nonlocal compared
        compared += 1
        return follows(self, one, other)

    monkeypatch.setattr(context_relations._Finder, "_follows", counted)
    names = [f"c{number}" for number in range(40)]
    rooms = model(*names)
    for number, name in enumerate(names):
        rooms = rooms.initiate(name, when=READINGS.where(READINGS.degrees == number))
        rooms = rooms.terminate(name, when=READINGS.where(READINGS.degrees == -1 - number))
    assert relations(rooms) == (set(), set())
    assert 0 < compared <= 2 * len(names) ** 2


# --- refuted by no history --------------------------------------------------------------------------------------------


def drawn(rng: random.Random) -> tg.ContextModel:
    """Contexts whose queries look at the same rows, mostly, so that some conditions follow from others."""
    rows = rng.choice((READINGS, HOTTEST))
    names = ("a", "b", "c")
    causes: Any = {name: rng.choice(("bag", "set")) for name in names if rng.random() < 0.15}
    every = tg.context_model("Rooms", by="room", default="fine", contexts=names, causes=causes)
    for _ in range(rng.choice((5, 7, 9))):
        name, limit = rng.choice(names), rng.choice((0, 1, 2, 3))
        when = rng.choice((above, below))(limit, rows)
        if rng.random() < 0.1:
            when = when.where(when.time >= 4)
        options: dict[str, Any] = {}
        if rng.random() < 0.15:
            options["since"] = when.time - 1
        if name in causes and rng.random() < 0.6:
            options["cause"] = when["degrees"]
        action = rng.choice(("initiate", "switch", "terminate", "terminate"))
        if action == "terminate":
            every = every.terminate(name, when=when, **options)
            continue
        within = rng.sample(("fine", *names), rng.choice((1, 1, 2, 4)))
        asked = every.initiate if action == "initiate" else every.switch
        every = asked(name, when=when, within=within, **options)
    return every


def holding(of: tg.ContextModel, rows: Rows) -> dict[tuple[int, str], list[tuple[int, int]]]:
    """The windows of each room and context; of one that holds still the end is late."""
    program = tg.program(Changes=of.changes)
    windows: dict[tuple[int, str], list[tuple[int, int]]] = {}
    changes: Any = evaluate_program(program.definition, {"Readings": [*rows]})["Changes"]
    for room, context, change, time, began, *_ in changes:
        if began is None:
            continue
        of_both = windows.setdefault((room, context), [])
        if (began, 1_000) in of_both:
            of_both.remove((began, 1_000))
        elif change == "start" and any(one[0] == began for one in of_both):
            continue
        of_both.append((began, 1_000 if change == "start" else time))
    return windows


@pytest.mark.parametrize("seed", range(8))
def test_no_history_refutes_what_is_said(seed: int) -> None:
    rng = random.Random(f"relations {seed}")
    inside = apart = overlapping = 0
    for _ in range(45):
        of = drawn(rng)
        found = of._relations()
        inside, apart = inside + len(found.inside), apart + len(found.apart)
        overlapping += len(found.overlapping)
        if not (found.inside or found.apart or found.overlapping):
            continue
        for _ in range(6):
            rows = [
                (rng.choice((1, 2)), rng.randrange(8), rng.randrange(-1, 4), rng.random() < 0.5)
                for _ in range(rng.choice((4, 12)))
            ]
            windows = holding(of, rows)
            for (room, context), own in windows.items():
                for around in found.around(context):
                    theirs = windows.get((room, around), [])
                    for began, ended in own:
                        assert any(low <= began and ended <= high for low, high in theirs), (of, rows)
                for other in found.overlapped_by(context):
                    for began, _ in own:
                        theirs = windows.get((room, other), [])
                        assert any(low < began <= high for low, high in theirs), (of, rows)
                for other in found.apart_from(context):
                    for began, ended in own:
                        for low, high in windows.get((room, other), []):
                            assert ended <= low or high <= began, (of, rows)
    assert inside + apart > 5
    assert overlapping


# --- what is looked up ------------------------------------------------------------------------------------------------

CALLS = tg.stream("Calls", "room bigint, time bigint, first bigint", progress="time")


def looked_up(of: tg.Relation) -> list[tuple[str, ...]]:
    """The contexts of the windows that a query has put together once it is optimised."""
    nodes = [node for query in tg.program(Q=of).facts.queries for node in nodes_of(query.query.node)]
    return [node.contexts for node in nodes if isinstance(node, GroupedWindows)]


def test_a_context_that_lies_in_another_one_is_not_looked_up() -> None:
    rooms = nested()
    three = model("warm", "hot", "smoky").initiate("smoky", when=SMOKE).terminate("smoky", when=below(5))
    three = three.initiate("warm", when=above(30)).terminate("warm", when=below(20))
    three = three.initiate("hot", when=above(50)).terminate("hot", when=below(40))
    assert looked_up(CALLS.in_context(rooms, "hot", "warm")) == []
    assert looked_up(CALLS.not_in_context(rooms, "warm", "hot")) == []
    assert looked_up(CALLS.in_context(rooms, "hot", "warm", "fine")) == []
    assert looked_up(CALLS.in_context(three, "hot", "smoky", "warm")) == [("smoky", "warm")]
    assert looked_up(CALLS.in_context(stages(), "hot", "warm")) == [("hot", "warm")]
    same = model("warm", "hot").initiate("warm", when=above(30)).initiate("hot", when=above(30))
    same = same.terminate("warm", when=below(20)).terminate("hot", when=below(20))
    found = CALLS.in_context(same, "hot", "warm", values={"since": "began"})
    assert looked_up(found) == []
    rows = tg.program(Q=found).run(
        {"Readings": [(1, 2, 40, False), (1, 7, 10, False)], "Calls": [(1, 4, 0), (1, 9, 0)]}
    )
    assert [(row["time"], row["since"]) for row in rows.rows("Q")] == [(4, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_the_same(seed: int) -> None:
    rng = random.Random(f"implied {seed}")
    rooms = nested()
    relations = {
        "Several": CALLS.in_context(rooms, "hot", "warm", values={"since": "began"}),
        "Since": CALLS.with_(begin=CALLS.time - 2).in_context(rooms, "warm", "hot", at="time", since="begin"),
        "Any": CALLS.in_context(rooms, "hot", "warm", "fine"),
        "Outside": CALLS.not_in_context(rooms, "warm", "hot"),
        "Both": CALLS.in_context(rooms, "hot").union(CALLS.in_context(rooms, "warm")).distinct(),
    }
    program = tg.program(**relations)
    readings = [(rng.choice((1, 2)), rng.randrange(40), rng.choice((10, 25, 35, 45, 55)), False) for _ in range(30)]
    calls = [(rng.choice((1, 2, 3)), rng.randrange(45), 0) for _ in range(60)]
    rows: dict[str, Any] = {"Readings": readings, "Calls": calls}
    meant = evaluate_program(program.definition, {name: [*own] for name, own in rows.items()})
    found = program.run(rows)
    for name in relations:
        own = sorted((tuple(row.values()) for row in found.rows(name)), key=str)
        assert own == sorted(meant[name], key=str), name
        assert own
