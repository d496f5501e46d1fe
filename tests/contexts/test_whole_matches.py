"""Patterns of which all matches are listed, each in one window: contexts are looked up row by row, below them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.contexts.traffic import traffic
from tests.runtime.batchings import whatever_is_ahead
from tests.shards import shards
from tidegate.algebra.nodes import Node, children
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.semantics import evaluate_program
from tidegate.contexts.optimiser.filters import models_of
from tidegate.contexts.optimiser.push_down import pushed_down

MODEL = traffic()
REPORTS = tg.stream("Reports", "car bigint, segment bigint, time bigint, lane string", progress="time")
LAST: dict[str, Any] = {"at": "last", "since": "first"}
DETECTED: dict[str, Any] = {"at": "detected", "since": "first"}
TIMES = {"Minutes": 1, "Stopped": 1, "Reports": 2}

LANES: dict[str, Any] = {
    "A": lambda m: m.A.lane == "exit",
    "B": lambda m: m.B.lane == "travel",
    "N": lambda m: m.N.lane == "",
}


def matched(pattern: str, rows: tg.Relation = REPORTS, by: Any = "segment", **options: Any) -> tg.Relation:
    chosen: dict[str, Any] = {"matches": "any", "within": 12, "first_car": lambda m: m.A.car, **options}
    return rows.sequences(
        pattern,
        by=by,
        order="time",
        tie="car",
        define={name: condition for name, condition in LANES.items() if name in pattern},
        **chosen,
    )


def inside(relation: tg.Relation, *contexts: str, **options: Any) -> tg.Relation:
    return relation.in_context(MODEL, *(contexts or ("congestion",)), **(options or LAST))


def periods(name: str, lane: str) -> tg.Intervals:
    rows = REPORTS.where(REPORTS.lane == lane)
    rows = rows.with_(until=rows.time + 3).select("segment", "time", "until", "car")
    return rows.as_intervals(start="time", end="until", by="segment", name=name)


def related(*restrictions: Callable[[Any, Any], Any]) -> tg.Relation:
    a, b = periods("A", "exit"), periods("B", "travel")
    return tg.iseq(*(restriction(a, b) for restriction in restrictions), of=(a, b), within=12)


def look_ups_below(node: Node, *, below: bool = False) -> int:
    """How many look-ups of contexts stand below a pattern."""
    gathers = below or isinstance(node, Sequences | Match)
    own = int(below and isinstance(node, AsOf))
    return own + sum(look_ups_below(child, below=gathers) for child in children(node))


def down(relation: tg.Relation) -> Node:
    queries = tg.program(Q=relation).definition.queries
    (query,) = (query for query in queries if query.name == "Q")
    return pushed_down(query, models_of(queries)).node


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (lambda: inside(matched("A B")), 1),
        (lambda: inside(matched("A B"), **DETECTED), 1),
        (lambda: inside(matched("A B"), "clear"), 1),
        (lambda: inside(matched("A !N B")), 1),
        (lambda: inside(matched("A B+", matches="contiguous", many=lambda m: m.rows.agg(tg.count()))), 1),
        (lambda: inside(matched("A B", matches="next")), 1),
        (lambda: inside(matched("A B", by=("segment", "lane"))), 1),
        (lambda: inside(matched("A B", rows=REPORTS.rename(segment="of"), by="of"), by="of", **LAST), 1),
        (lambda: inside(matched("A B"), values={"since": "began", "speed": "speed"}, **LAST), 1),
        # Rows before the first one or behind the last one count, too, or which match is found first.
        (lambda: inside(matched("A B !N[3]"), **DETECTED), 0),
        (lambda: inside(matched("A B !N[3]")), 0),
        (lambda: inside(matched("!N[3] A B")), 0),
        (lambda: inside(matched("A !N[3] B")), 0),
        (lambda: inside(matched("A B", matches="preferred")), 0),
        (lambda: inside(matched("A B", before=lambda m: m.A.prev().car)), 0),
        (lambda: inside(matched("A B", total=lambda m: m.rows.agg(tg.sum(REPORTS.car)))), 0),
        (lambda: inside(matched("A B", ratio=lambda m: m.B.car // m.A.car)), 0),
        # Windows put together may go on with others; a match may have begun before; other partitions.
        (lambda: inside(matched("A B"), "congestion", "accident"), 0),
        (lambda: matched("A B").in_context(MODEL, "congestion", at="last"), 0),
        (lambda: inside(matched("A B"), at="first", since="first"), 0),
        (lambda: inside(matched("A B", by="lane", segment=lambda m: m.A.segment)), 0),
        # Of intervals each begins in the context, where A is known to be the first.
        (lambda: inside(related(lambda a, b: a.ts < b.ts), at="detected", since="A.ts"), 2),
        (lambda: inside(related(lambda a, b: a.te <= b.ts), at="B.te", since="A.ts"), 2),
        (lambda: inside(related(lambda a, b: a.ts < b.ts), at="A.te", since="A.ts"), 1),
        (
            lambda: inside(related(lambda a, b: a.ts < b.ts), "congestion", "accident", at="detected", since="A.ts"),
            2,
        ),
        (lambda: inside(related(lambda a, b: a.ts < b.te), at="detected", since="A.ts"), 1),
        (lambda: related(lambda a, b: a.ts < b.ts).in_context(MODEL, "congestion", at="detected"), 0),
    ],
)
def test_where_contexts_are_looked_up(relation: Callable[[], tg.Relation], expected: int) -> None:
    made = down(relation())
    assert look_ups_below(made) == expected
    assert made.schema == relation()._node.schema


def whole() -> dict[str, tg.Relation]:
    return {
        "Pair": inside(matched("A B")),
        "Clear": inside(matched("A B"), "clear", values={"since": "began"}, **LAST),
        "Alone": inside(matched("A !N B"), **DETECTED),
        "Several": inside(matched("A B+", matches="contiguous", many=lambda m: m.rows.agg(tg.count()))),
        "Next": inside(matched("A B N", matches="next")),
        "Periods": inside(related(lambda a, b: a.ts < b.ts), at="detected", since="A.ts"),
        "Either": inside(related(lambda a, b: a.ts < b.ts), "congestion", "accident", at="detected", since="A.ts"),
    }


def drawn(seed: int) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Rows of which most queries have results, and these."""
    lanes = ("exit", "exit", "travel", "travel", "")
    for number in range(20):
        rng = random.Random(f"whole matches {seed} {number}")
        rows: dict[str, list[Any]] = {
            "Minutes": [(rng.choice((1, 2)), rng.randrange(120), rng.choice((10, 60)), 30.0) for _ in range(16)],
            "Stopped": [
                (rng.choice((1, 2)), rng.randrange(120), rng.randrange(2), rng.random() < 0.5) for _ in range(8)
            ],
            "Reports": [(car, rng.choice((1, 2)), rng.randrange(120), rng.choice(lanes)) for car in range(90)],
        }
        meant = evaluate_program(tg.program(**whole()).definition, rows)
        if sum(map(bool, meant.values())) >= 6:
            return rows, {name: [*own] for name, own in meant.items()}
    raise AssertionError("no such rows")


@pytest.mark.parametrize("seed", shards(3))
def test_matches_are_the_same(seed: int, tmp_path: Path) -> None:
    """Optimised as they run, against the definition; whatever the batching."""
    rows, meant = drawn(seed)
    completed = dict.fromkeys(whole(), "detected")
    results = whatever_is_ahead(
        lambda: tg.program(**whole()),
        rows,
        random.Random(seed),
        tmp_path,
        completed,
        sessions=2,
        steps=5,
        instants=TIMES,
    )
    for name, own in meant.items():
        assert sorted((tuple(row.values()) for row in results[name]), key=str) == sorted(own, key=str), name


def test_nothing_is_kept_of_rows_outside() -> None:
    """Of reports where no congestion is neither the stream nor the pattern keeps any."""
    with tg.program(Q=inside(matched("A B"))).session(collect_garbage="exact") as session:
        session.push("Reports", [(car, 1, car, "exit") for car in range(40)])
        for name in TIMES:
            session.advance(name, 45)
        session.step()
        assert sum(session.live_rows().values()) == 0


def test_an_interval_may_end_after_its_window() -> None:
    """Then the match is looked up where it is known, and not where its intervals begin."""
    given = related(lambda a, b: a.ts < b.ts)
    program = tg.program(
        Known=inside(given, at="detected", since="A.ts"),
        Begun=inside(given, at="B.ts", since="A.ts"),
    )
    rows = {
        "Minutes": [(1, 10, 60, 30.0), (1, 20, 10, 60.0)],
        "Stopped": [],
        "Reports": [(1, 1, 12, "exit"), (2, 1, 14, "travel"), (3, 1, 18, "travel")],
    }
    found = program.run(rows)
    assert sorted(row["B.car"] for row in found.rows("Known")) == [2]
    assert sorted(row["B.car"] for row in found.rows("Begun")) == [2, 3]
