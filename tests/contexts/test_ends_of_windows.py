"""What there is as a window of a context ends: aggregates of its rows; and what its end does not do above it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.contexts.traffic import REPORTS, drawn, traffic
from tests.runtime.batchings import whatever_is_ahead
from tidegate.algebra.semantics import evaluate_program

Rows = Mapping[str, Sequence[Any]]

MODEL = traffic()
CONTEXTS = ("clear", "congestion", "accident")
TIMES = {"Minutes": 1, "Stopped": 1, "Reports": 2}
INSIDE = REPORTS.in_context(MODEL, "congestion", values={"since": "began", "speed": "speed"})
#: How long no other row may come.
LIMIT = 7


def windows_of(rows: Rows, context: str) -> list[tuple[Any, ...]]:
    """The windows of a context by segment, from when to when and with their speed; None: they hold still."""
    program = tg.program(Starts=MODEL.starts(context), Ends=MODEL.windows(context))
    meant = evaluate_program(program.definition, {name: [*own] for name, own in rows.items()})
    ended = {(segment, began): end for segment, end, began, _ in meant["Ends"]}
    return [
        (segment, began, ended.get((segment, began)), speed)
        for segment, began, speed in meant["Starts"]
        if segment is not None
    ]


def at_the_end() -> tg.Program:
    results: dict[str, tg.Relation] = {}
    for context in CONTEXTS:
        bounds = MODEL.as_windows(context, empty=context == "accident")
        results[context] = REPORTS.windows(bounds, by="segment").agg(
            n=tg.count(), last=tg.last(REPORTS.car, by=REPORTS.time)
        )
    results["speeds"] = INSIDE.windows(MODEL.as_windows("congestion"), by="segment").agg(
        cars=tg.count_distinct(INSIDE.car), speed=tg.min(INSIDE.speed)
    )
    return tg.program(**results)


def expected_at_the_end(rows: Rows) -> dict[str, list[Any]]:
    """The same by a loop over windows and rows."""
    found: dict[str, list[Any]] = {name: [] for name in (*CONTEXTS, "speeds")}
    for context in CONTEXTS:
        for segment, began, ended, speed in windows_of(rows, context):
            if ended is None:
                continue
            its = [row for row in rows["Reports"] if row[1] == segment and began < row[2] <= ended]
            last = min(its, key=lambda row: (-row[2], row[0]))[0] if its else None
            if its or context == "accident":
                found[context].append((segment, began, ended, len(its), last))
            if its and context == "congestion":
                found["speeds"].append((segment, began, ended, len({row[0] for row in its}), speed))
    return {name: sorted(own, key=str) for name, own in found.items()}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 3, 9))])
def test_aggregates_of_a_windows_rows_as_it_ends(seed: int, tmp_path: Path) -> None:
    """Whatever the batching, also of the default context, and without rows where these are asked for."""
    every, rng = drawn(seed, 120), random.Random(seed)
    rows = {**every, "Reports": every["Reports"][::2]}
    wanted = expected_at_the_end(rows)
    completed = dict.fromkeys(wanted, "end")
    results = whatever_is_ahead(at_the_end, rows, rng, tmp_path, completed, sessions=3, steps=5, instants=TIMES)
    assert all(wanted.values())
    assert any(row[3] == 0 for row in wanted["accident"])
    for name, own in wanted.items():
        assert sorted((tuple(row.values()) for row in results[name]), key=str) == own, name


def test_a_window_that_holds_has_no_result_yet() -> None:
    counted = REPORTS.windows(MODEL.as_windows("congestion"), by="segment").agg(n=tg.count())
    with tg.program(Q=counted).session() as session:
        session.push("Minutes", [(1, 10, 60, 30.0), (1, 30, 10, 60.0), (2, 10, 60, 30.0)])
        session.push("Reports", [(car, 1 + car % 2, 11 + car, "") for car in range(10)])
        for name, until in (("Minutes", 30), ("Stopped", 30), ("Reports", 29)):
            session.advance(name, until)
        session.step()
        assert session.results("Q") == []
        session.advance("Reports", 30)
        session.step()
        assert [tuple(row.values()) for row in session.results("Q")] == [(1, 10, 30, 5)]
        session.finish()
        session.step()
        assert len(session.results("Q")) == 1


def test_what_has_held_since_ever_has_no_beginning() -> None:
    """The first window of the default context ends at 10: its rows are in it, and it is none with a beginning."""
    counted = REPORTS.windows(MODEL.as_windows("clear", empty=True), by="segment").agg(n=tg.count())
    free = REPORTS.in_context(MODEL, "clear").select("time")
    program = tg.program(Counted=counted, Ended=MODEL.windows("clear").select("began", "ended"), Free=free)
    rows: Rows = {
        "Minutes": [(1, 10, 60, 30.0), (1, 30, 10, 60.0), (1, 40, 60, 30.0)],
        "Stopped": [],
        "Reports": [(1, 1, time, "") for time in (5, 10, 20, 35)],
    }
    found = program.run(rows)
    told = {name: sorted(tuple(row.values()) for row in found[name].rows()) for name in ("Counted", "Ended", "Free")}
    assert told == {"Counted": [(1, 30, 40, 1)], "Ended": [(30, 40)], "Free": [(5,), (10,), (35,)]}


# --- what it does not do ----------------------------------------------------------------------------------------------


def silent(rows: tg.Relation, keys: tuple[str, ...]) -> tg.Relation:
    """A report on the exit lane that none on a travel lane follows for a while."""
    return rows.sequences(
        "Exit !Travel[7]",
        by=keys,
        order="time",
        tie="car",
        define={"Exit": lambda m: m.Exit.lane == "exit", "Travel": lambda m: m.Travel.lane == "travel"},
        car=lambda m: m.Exit.car,
    )


def waiting() -> tg.Program:
    inside = silent(INSIDE, ("segment", "since"))
    anywhere = silent(REPORTS, ("segment",))
    whole: dict[str, Any] = {"at": "detected", "since": "first"}
    return tg.program(
        Inside=inside.select("car", "detected"),
        Whole=inside.in_context(MODEL, "congestion", **whole).select("car", "detected"),
        Anywhere=anywhere.in_context(MODEL, "congestion", **whole).select("car", "detected"),
    )


def long_windows(seed: int) -> Rows:
    """Windows that are longer than matches wait, and reports that are not often followed by others."""
    rng = random.Random(seed)
    minutes = [(rng.choice((1, 2)), rng.randrange(300), rng.choice((10, 60)), 30.0) for _ in range(40)]
    reports = [
        (car, rng.choice((1, 2)), rng.randrange(300), rng.choice(("exit", "exit", "travel"))) for car in range(150)
    ]
    return {"Minutes": minutes, "Stopped": [], "Reports": reports}


def expected_waiting(rows: Rows) -> tuple[list[Any], list[Any]]:
    """The matches among the rows of each window, and those of them that do not wait as it ends (CAESAR, 6.2)."""
    found: list[Any] = []
    whole: list[Any] = []
    for segment, began, ended, _ in windows_of(rows, "congestion"):
        its: Any = [
            (time, car, lane)
            for car, of, time, lane in rows["Reports"]
            if of == segment and began < time and (ended is None or time <= ended)
        ]
        for time, car, lane in its:
            follows = any(
                other == "travel" and (at, which) > (time, car) and at <= time + LIMIT for at, which, other in its
            )
            if lane == "exit" and not follows:
                found.append((car, time + LIMIT))
                if ended is None or time + LIMIT <= ended:
                    whole.append((car, time + LIMIT))
    return sorted(found), sorted(whole)


@pytest.mark.parametrize("seed", range(3))
def test_a_match_that_waits_as_a_window_ends(seed: int, tmp_path: Path) -> None:
    """It is there, unless one asks whether the instant at which it is certain lies in the window, too. Then it does not
    matter among which rows it was looked for.
    """
    rows = long_windows(seed)
    inside, whole = expected_waiting(rows)
    assert len(inside) > len(whole) > 2
    completed = dict.fromkeys(("Inside", "Whole", "Anywhere"), "detected")
    results = whatever_is_ahead(
        waiting, rows, random.Random(seed), tmp_path, completed, sessions=2, steps=6, instants=TIMES
    )
    for name, own in (("Inside", inside), ("Whole", whole), ("Anywhere", whole)):
        assert sorted(tuple(row.values()) for row in results[name]) == own, name


def kept_after_windows(relation: tg.Relation) -> int:
    """How many rows a query keeps once three windows have ended, and what was in them is long ago."""
    with tg.program(Q=relation).session(collect_garbage="exact") as session:
        for begin in (10, 110, 210):
            session.push("Minutes", [(1, begin, 60, 30.0), (1, begin + 50, 10, 60.0)])
            session.push("Reports", [(begin + at, 1, begin + at, "") for at in (10, 20, 30)])
        for name in TIMES:
            session.advance(name, 1_000)
        session.step()
        assert session.results("Q")
        return sum(rows for name, rows in session.live_rows().items() if name.startswith("Q"))


def test_what_is_kept_of_windows_that_have_ended() -> None:
    keys = ("segment", "since")
    numbered = INSIDE.over(by=keys, order="time", number=tg.row_number())
    recent = INSIDE.over(by=keys, order="time", range=15, number=tg.count())
    assert kept_after_windows(numbered) == 0
    assert kept_after_windows(recent) == 0
    pair = INSIDE.sequences("A B", by=keys, order="time", within=15)
    assert kept_after_windows(pair) == 0


def numbered(rows: tg.Relation, *keys: str) -> tg.Relation:
    return rows.over(by=keys, order="time", number=tg.row_number())


def framed(**columns: Any) -> tg.Relation:
    """Values of the last nine ticks in each window."""
    return INSIDE.over(by=("segment", "since"), order="time", range=9, **columns)


SHIFTS = MODEL.as_windows("congestion")
SEVERAL = REPORTS.in_context(MODEL, "congestion", "accident", values={"since": "began"})


@pytest.mark.parametrize(
    ("relation", "keys"),
    [
        (lambda: numbered(INSIDE, "segment", "since"), {"since"}),
        (lambda: numbered(INSIDE.rename(since="window"), "window"), {"window"}),
        (lambda: numbered(INSIDE.with_(window=INSIDE.since), "segment", "window"), {"window"}),
        (lambda: numbered(SEVERAL, "since"), {"since"}),
        (lambda: numbered(REPORTS.in_context(SHIFTS, values={"since": "start"}), "since"), {"since"}),
        (lambda: numbered(tg.result_of("Inside", INSIDE), "since"), {"since"}),
        (lambda: silent(INSIDE, ("segment", "since")).select("car", "detected"), {"since"}),
        (lambda: INSIDE.partition_by("segment", "since").derive(On=tg.situation(INSIDE.lane == "exit")).On, {"since"}),
        # Other keys, and values of windows that are not their beginnings.
        (lambda: numbered(INSIDE, "segment"), set()),
        (lambda: numbered(INSIDE, "speed"), set()),
        (lambda: numbered(INSIDE.with_(window=INSIDE.since // 2), "window"), set()),
        (lambda: numbered(REPORTS.with_(since=REPORTS.time // 10), "since"), set()),
        (
            lambda: (
                INSIDE.windows(tg.session(5), by="segment")
                .agg(since=tg.min(INSIDE.since))
                .over(by="since", order="end", number=tg.row_number())
            ),
            set(),
        ),
    ],
)
def test_partitions_of_windows_are_explained(relation: Callable[[], tg.Relation], keys: set[str]) -> None:
    explained = tg.program(Q=relation()).explain()
    queries: Any = explained.to_dict()["queries"]
    assert {key for query in queries for key in query.get("per_window", ())} == keys
    assert ("per window" in str(explained)) == bool(keys)


def test_the_line_says_what_a_windows_end_does_not_do() -> None:
    told = str(tg.program(Q=numbered(INSIDE, "segment", "since")).explain())
    assert (
        "  per window  by since each window is a partition: it is let go as it ends, but for rows\n"
        "              that are still owed; its end cuts nothing off\n"
    ) in told
    told = str(tg.program(Q=numbered(INSIDE, "since")).explain())
    assert (
        "  per window  by since each window is a partition: its end frees nothing, and cuts nothing off,\n"
        "              so what is kept by key grows with the windows unless a limit in time frees it\n"
    ) in told
    told = str(tg.program(Q=framed(total=tg.sum(INSIDE.car))).explain())
    assert (
        "  per window  by since each window is a partition: its rows go by time, so long after they came as frames\n"
        "              reach; its end frees nothing sooner, and cuts nothing off\n"
    ) in told
    assert "let go as it ends" in str(tg.program(Q=framed(total=tg.stddev(INSIDE.car))).explain())
