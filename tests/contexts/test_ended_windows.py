"""Partitions that are windows of a context are let go as their window ends, though no other one has a row (R63)."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.contexts import test_window_partitions as windows
from tests.contexts.traffic import STOPPED
from tidegate.algebra.nodes import Row
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.semantics import evaluate_program
from tidegate.algebra.types import BIGINT
from tidegate.analysis.state.bounds import Bounded
from tidegate.analysis.state.window_partitions import window_ends
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.inspect.live_state import state_use
from tidegate.runtime.ordered.partition_store import Successors

BOUNDED = [name for name, (_, most) in windows.QUERIES.items() if most is not None]
#: Rows in a context with the beginning of its window: of one, of several looked up together, of the default one.
INSIDE = {"one": windows.INSIDE, "several": windows.SEVERAL, "the default": windows.CLEAR}


def numbered(rows: tg.Relation, *keys: str) -> tg.Relation:
    return rows.over(by=keys or windows.KEYS, order="time", tie="car", n=tg.row_number())


def once(many: int) -> dict[str, list[Any]]:
    """A window of each of so many segments, which has rows, ends, and never comes again."""
    minutes: list[Any] = []
    reports: list[Any] = []
    for segment in range(many):
        begin = 4 * segment
        minutes += [(segment, begin, 60, 30.0), (segment, begin + 10, 10, 60.0)]
        reports += [(segment * 8 + at, segment, begin + 3 + at, ("exit", "travel")[at % 2]) for at in range(4)]
    return {"Minutes": sorted(minutes, key=lambda row: row[1]), "Stopped": [], "Reports": reports}


@pytest.mark.parametrize("name", BOUNDED)
def test_the_last_window_of_a_key_goes_as_it_ends(name: str) -> None:
    query, _ = windows.QUERIES[name]
    kept, results = windows.fed(query(windows.INSIDE), windows.windows_of_three(12), 15)
    assert max(kept) > 0
    assert kept[-1] == 0
    assert results


@pytest.mark.parametrize("name", BOUNDED)
def test_keys_that_never_come_again_leave_nothing(name: str) -> None:
    """Of so many segments those are kept whose window holds, or has rows that are owed."""
    query, most = windows.QUERIES[name]
    assert most is not None
    rows = once(80)
    relation = query(windows.INSIDE)
    kept, results = windows.fed(relation, rows, 40)
    assert results == sorted(meaning(relation, rows), key=str)
    assert max(kept) <= 6 * most
    assert kept[-1] == 0


def test_what_waits_for_ever_stays_as_its_window_ends() -> None:
    """A row whose next one may come until the input ends: none will, but the definition says so only then."""
    query, most = windows.QUERIES["after"]
    assert most is None
    kept, _ = windows.fed(query(windows.INSIDE), once(20), 15)
    assert kept[-1] == 20


BEGIN, ROW, END = ("Minutes", (1, 5, 60, 30.0)), ("Reports", (7, 1, 9, "")), ("Minutes", (1, 10, 10, 60.0))


@pytest.mark.parametrize("sessions", [[(11, [BEGIN, ROW, END]), (20, [])], [(9, [BEGIN, ROW]), (11, [END]), (20, [])]])
def test_what_is_owed_as_a_session_closes_goes_in_the_next_one(
    sessions: list[tuple[int, list[tuple[str, Row]]]], tmp_path: Path
) -> None:
    """A row at 9 waits until 12 for the next one; its window has ended at 10, of which the last session is not told."""
    query, _ = windows.QUERIES["after, for a while"]
    program = tg.program(Q=query(windows.INSIDE))
    for until, given in sessions:
        with program.session(checkpoint=tmp_path) as session:
            for stream, row in given:
                session.push(stream, [row])
            for name in windows.TIMES:
                session.advance(name, until)
            session.step()
            assert windows.kept_in(session) == (1 if until < 12 else 0), until
            results = session.results("Q")
    assert [(row["car"], row["after"], row["n"]) for row in results] == [(7, None, 1)]


#: Later than all rows that are drawn.
LAST = 110


def bounded(seed: int) -> dict[str, list[Any]]:
    """Windows of a few segments, of congestion and of accidents, all of which end, and reports about their bounds."""
    rng = random.Random(seed)
    minutes: list[Any] = []
    stopped: list[Any] = []
    reports: list[Any] = []
    for segment in (1, 2, 3):
        for which in ("congestion", "accident"):
            begin = rng.randrange(1, 12)
            while begin < 85:
                end = begin + rng.choice((1, 4, 10, 14))
                if which == "congestion":
                    minutes += [(segment, begin, 60, 30.0), (segment, end, 10, 60.0)]
                else:
                    stopped += [(segment, begin, 7, False), (segment, end, 7, True)]
                for at in (begin, begin + 1, rng.randint(begin, end), end, end, end + 1):
                    if rng.random() < 0.6:
                        reports.append((len(reports), segment, at, rng.choice(("exit", "travel"))))
                begin = end + rng.choice((1, 2, 8))
    return {"Minutes": minutes, "Stopped": stopped, "Reports": reports}


def steps(program: tg.Program, rows: windows.Rows, rng: random.Random, checkpoint: Path) -> Iterator[tg.Session]:
    """A session after each batch: any stream may be ahead of the others, rows come in disorder that progress permits,
    and after a few batches a session goes on from the checkpoint.
    """
    reached = dict.fromkeys(windows.TIMES, -1)
    while min(reached.values()) < LAST:
        with program.session(checkpoint=checkpoint, collect_garbage="exact") as session:
            for _ in range(rng.choice((1, 4, 12))):
                for stream, place in windows.TIMES.items():
                    until = min(reached[stream] + rng.choice((0, 1, 1, 2, 5, 20)), LAST)
                    new = [row for row in rows[stream] if reached[stream] < row[place] <= until]
                    session.push(stream, rng.sample(new, len(new)))
                    session.advance(stream, until)
                    reached[stream] = until
                session.step()
                yield session


def meaning(relation: tg.Relation, rows: windows.Rows) -> list[Any]:
    """The rows of a relation, by its definition."""
    return evaluate_program(tg.program(Q=relation).definition, {name: [*own] for name, own in rows.items()})["Q"]


def probed(inside: tg.Relation, rows: windows.Rows, segments: Sequence[int], until: int) -> dict[Any, Any]:
    """For a row of each segment at each instant that lies in a window when that began, by segment and instant."""
    probes: list[Any] = [(at * 10 + segment, segment, at, "") for at in range(until) for segment in segments]
    return {(segment, at): since for _, segment, at, _, since in meaning(inside, {**rows, "Reports": probes})}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_are_the_windows_that_hold(name: str, seed: int, tmp_path: Path) -> None:
    """After each batch a row of each partition that has one and whose window has not ended, and of no other. Rows after
    a batch find what they need: with the last one of a window at its end, too.
    """
    inside, rows = INSIDE[name], bounded(seed)
    window = probed(inside, rows, (1, 2, 3), LAST + 2)
    own = [(key[0], key[1], window[key]) for row in rows["Reports"] if (key := (row[1], row[2])) in window]
    relation = numbered(inside)
    results: list[Any] = []
    for session in steps(tg.program(Q=relation), rows, random.Random(f"{name} {seed}"), tmp_path):
        reached: Any = session.progress["Q"]["time"]
        begun = {(segment, since) for segment, at, since in own if at <= reached}
        held = {(s, since) for s, since in begun if window.get((s, reached + 1), "none") == since}
        assert windows.kept_in(session) == len(held), reached
        results = session.results("Q")
    assert sorted((tuple(row.values()) for row in results), key=str) == sorted(meaning(relation, rows), key=str)


def summed(rows: tg.Relation, *keys: str) -> tg.Relation:
    """Rows of one instant have the same sum."""
    return rows.over(by=keys or windows.KEYS, order="time", total=tg.sum(rows.car))


def joined() -> tg.Relation:
    """The reports of a window, each once for every accident of its segment that is not long ago."""
    i, s = windows.INSIDE.as_("i"), STOPPED.as_("s")
    found = i.join(s, i.segment == s.segment, s.time <= i.time, i.time <= s.time + 9)
    return found.select(segment=i.segment, since=i.since, time=i.time, car=i.car)


def in_groups() -> tg.Relation:
    i = windows.INSIDE
    return i.group_by("segment", "since", "time").agg(car=tg.sum(i.car))


def in_two_parts() -> tg.Relation:
    i = windows.INSIDE
    return i.where(i.lane == "exit").union(i.where(i.lane != "exit"))


ABOVE: dict[str, Callable[[], tg.Relation]] = {
    "a join": lambda: summed(joined()),
    "groups": lambda: summed(in_groups()),
    "a union": lambda: summed(in_two_parts()),
    "distinct rows": lambda: summed(windows.INSIDE.select("segment", "since", "time", "car").distinct()),
    "numbers": lambda: summed(numbered(windows.INSIDE)),
    "a pattern of numbered rows": lambda: windows.matched(numbered(windows.INSIDE), "A B", n=lambda m: m.B.n),
    "two windows": lambda: summed(windows.TWICE, "segment", "since", "second"),
}


@pytest.mark.parametrize("name", ABOVE)
def test_what_stands_between_the_look_up_and_the_operator(name: str, tmp_path: Path) -> None:
    """Results are what they are by the definition, and in the end, when all windows have ended, nothing is kept."""
    relation, rows = ABOVE[name](), bounded(5)
    kept: list[int] = []
    results: list[Any] = []
    for session in steps(tg.program(Q=relation), rows, random.Random(name), tmp_path):
        kept.append(windows.kept_in(session))
        results = session.results("Q")
    assert sorted((tuple(row.values()) for row in results), key=str) == sorted(meaning(relation, rows), key=str)
    assert results
    assert max(kept) > 0
    assert kept[-1] == 0


def test_a_query_that_waits_for_its_turn_is_told_of_ends_then() -> None:
    """One that reads the same rows and is not behind lets its own go at once."""
    inside = tg.result_of("Inside", windows.INSIDE)
    begins = (5, 26, 47, 68)
    rows: dict[str, list[Any]] = {
        "Minutes": [row for at in begins for row in ((1, at, 60, 30.0), (1, at + 5, 10, 60.0))],
        "Stopped": [],
        "Reports": [(at, 1, at + 4, "") for at in begins],
    }
    waited = 0
    program = tg.program(Late=numbered(inside), Soon=summed(inside))
    with program.session(schedule=tg.schedule(every={"Late": 4}), collect_garbage="exact") as session:
        for at in range(1, 80):
            for stream, place in windows.TIMES.items():
                session.push(stream, [row for row in rows[stream] if row[place] == at])
                session.advance(stream, at)
            session.step()
            for name in ("Late", "Soon"):
                reached: Any = session.progress[name]["time"]
                kept = sum(begin + 4 <= reached < begin + 5 for begin in begins)
                assert windows.kept_in(session, name) == kept, (at, name)
                assert name == "Late" or reached == at
                waited += kept and at > reached
        assert waited
        assert [row["n"] for row in session.results("Late")] == [1, 1, 1, 1]


def test_ends_are_stored_no_longer_than_the_bound_says() -> None:
    """The model's changes are ten ticks ahead of reports, and the query is up to four behind these."""
    inside = tg.result_of("Inside", windows.INSIDE)
    program = tg.program(Late=numbered(inside), Seen=inside.select("car", "time"))
    reports: list[BatchReport] = []
    with program.session(
        schedule=tg.schedule(every={"Late": 5}), collect_garbage="exact", on_batch=reports.append
    ) as session:
        for at in range(1, 60):
            session.push("Minutes", [(1, at + 10, *((60, 30.0) if at % 2 else (10, 60.0)))])
            session.push("Reports", [(at, 1, at, "")])
            for stream in windows.TIMES:
                session.advance(stream, at if stream == "Reports" else at + 10)
            session.step()
        (use,) = (one for one in state_use(session._plan, reports[10:]) if {"Inside", "Late"} <= {*one.readers})
    assert isinstance(use.bound, Bounded)
    assert use.span is not None
    assert use.most == use.span == 10 + 4  # a change a tick


def trips(key: str, instant: str) -> tuple[tg.Relation, tg.ContextModel]:
    """Events of parcels, which are on their way from one event to another one."""
    events = tg.stream("Events", f"parcel {key}, time {instant}, what string", progress="time")
    model = tg.context_model("Trips", by="parcel", default="none", contexts=("open", "loaded"))
    return events, (
        model.initiate("open", when=events.where(events.what == "begin"))
        .initiate("loaded", when=events.where(events.what == "load"))
        .terminate("open", when=events.where(events.what == "end"))
        .terminate("loaded", when=events.where(events.what == "unload"))
    )


PARCELS: dict[str, list[Any]] = {
    "string": ["a", "", "ä"],
    "double": [0.5, float("nan"), 0.0],
    "decimal(9, 2)": [Decimal("0.10"), Decimal("7.00")],
    "date": [dt.date(2026, 3, 2), dt.date(1969, 1, 1)],
    "boolean": [False, True],
}


@pytest.mark.parametrize("key", PARCELS)
def test_keys_of_any_type(key: str, tmp_path: Path) -> None:
    """Each parcel has one trip, of whose rows a session in between has some."""
    events, model = trips(key, "timestamp")
    rows = events.in_context(model, "open", values={"since": "began"})
    program = tg.program(Q=rows.over(by=("parcel", "since"), order="time", n=tg.row_number()))
    for number, parcel in enumerate(PARCELS[key]):
        begin = dt.datetime(2026, 3, 2, number, tzinfo=dt.UTC)
        for batches in (((0, "begin", 0), (10, "scan", 1)), ((20, "scan", 1), (30, "end", 0))):
            with program.session(checkpoint=tmp_path) as session:
                for minute, what, kept in batches:
                    at = begin + dt.timedelta(minutes=minute)
                    same = -0.0 if parcel == 0.0 and key == "double" and what == "scan" else parcel
                    session.push("Events", [(same, at, what)])
                    session.advance("Events", at)
                    session.step()
                    assert windows.kept_in(session) == kept, (parcel, what)
                assert len(session.results("Q")) == 3 * number + (1 if batches[0][1] == "begin" else 3)
                assert session.results("Q")[-1]["n"] == (1 if batches[0][1] == "begin" else 3)


@pytest.mark.parametrize(("key", "read"), [("bigint", 2), ("double", 1)])
def test_ends_by_which_rows_can_not_be_shared_out_are_not_read(key: str, read: int) -> None:
    """Equal doubles may have different hashes: two kinds of ends have the beginnings of their windows alone."""
    events, model = trips(key, "bigint")
    rows = events.in_context(model, "open", values={"since": "began"})
    rows = rows.in_context(model, "loaded", values={"second": "began"})
    relation = rows.over(by=("parcel", "since", "second"), order="time", n=tg.row_number())
    assert told_of(relation) == [["parcel", "second"], ["parcel", "since"]]
    with tg.program(Q=relation).session() as session:
        (ended,) = (one.ordered.ended for one in session._plan.queries if one.ordered and one.ordered.growing)
        assert len(ended) == read
        for at, what in ((1, "begin"), (2, "load"), (3, "scan"), (4, "end"), (5, "unload")):
            session.push("Events", [(1, at, what)])
            session.advance("Events", at)
            session.step()
        assert [row["n"] for row in session.results("Q")] == [1, 2]
        assert windows.kept_in(session) == 0


def told_of(relation: tg.Relation) -> list[list[str]]:
    facts = tg.program(Q=relation).facts
    return sorted(
        sorted(key for key, _ in ends.keys)
        for query in facts.queries
        for ends in window_ends(query.query, facts.program)
    )


def test_of_which_partitions_it_is_told() -> None:
    by_both = [["segment", "since"]]
    assert told_of(numbered(windows.INSIDE)) == by_both
    assert told_of(numbered(windows.SEVERAL)) == by_both
    assert told_of(numbered(windows.CLEAR)) == by_both
    assert told_of(numbered(windows.INSIDE, "lane", "since", "segment")) == by_both
    inside = tg.result_of("Inside", windows.INSIDE)
    assert told_of(numbered(inside.where(inside.car > 3))) == by_both
    assert told_of(numbered(windows.TWICE, "segment", "second", "since")) == [["second", "segment"], *by_both]


def test_rows_that_still_find_a_window_that_has_ended_are_not_told_of_it() -> None:
    """A join with the last change of any kind has rows of a window after its end: what they are numbered by stays."""
    relation = windows.of_changes("segment", "lane")
    assert told_of(relation) == []
    assert "let go as the next one has a row" in str(tg.program(Q=relation).explain())
    reports = [(5, 1, 10, "a"), (1, 1, 20, "a"), (2, 1, 30, "a")]
    with tg.program(Q=relation).session() as session:
        for row in reports:
            session.push("Reports", [row])
            session.advance("Reports", {"time": row[2]})
            session.step()
        assert sorted(row["n"] for row in session.results("Q")) == [1, 2, 3]


def test_partitions_by_more_keys_go_together() -> None:
    rows = once(1)
    with tg.program(Q=numbered(windows.INSIDE, "lane", "since", "segment")).session() as session:
        for until, kept in ((5, 2), (9, 2), (10, 0)):
            for stream, place in windows.TIMES.items():
                session.push(stream, [row for row in rows[stream] if row[place] <= until])
                session.advance(stream, until)
                rows[stream] = [row for row in rows[stream] if row[place] > until]
            session.step()
            assert windows.kept_in(session) == kept, until


def test_partitions_are_told_of_by_their_keys() -> None:
    schema = Schema(tuple(Attribute(name, BIGINT) for name in ("lane", "segment", "since")))
    successors = Successors(schema, ["since"], [["since", "segment"]])
    keys = pl.DataFrame([(1, 7, 5), (2, 7, 5), (1, 7, 9), (1, 8, 5), (1, 8, None)], schema=schema.names, orient="row")
    every = np.arange(5)
    successors.hold(every[:4], keys[:4], np.array([True, True, True, False]))
    ended = [pl.DataFrame([(5, 7), (5, 8), (3, 7), (None, 8)], schema=["since", "segment"], orient="row")]
    assert sorted(successors.told(ended)) == [0, 1]
    # Also of what comes with the end, and of nothing yet held.
    assert successors.ended(every, keys, ended).tolist() == [0, 1, 3, 4]
    assert successors.ended(every, keys, []).tolist() == []
    successors.over.update((1, 2))
    assert successors.ended(every[1:2], keys[1:2], []).tolist() == [1]
    successors.hold(every[1:3], keys[1:3], np.array([False, True]))
    assert successors.over == {2}
    assert successors.told(ended) == [0]
