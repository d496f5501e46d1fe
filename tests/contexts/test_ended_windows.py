"""Partitions that are windows of a context are let go as their window ends, though no other one has a row (R63)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.contexts import test_window_partitions as windows
from tests.contexts.traffic import drawn
from tidegate.algebra.nodes import Row
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.semantics import evaluate_program
from tidegate.algebra.types import BIGINT
from tidegate.analysis.state.window_partitions import window_ends
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
    rows = once(200)
    relation = query(windows.INSIDE)
    kept, results = windows.fed(relation, rows, 60)
    meant = evaluate_program(tg.program(Q=relation).definition, {name: [*own] for name, own in rows.items()})
    assert results == sorted(meant["Q"], key=str)
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


def probed(
    inside: tg.Relation, rows: Mapping[str, Sequence[Row]], segments: Sequence[int], until: int
) -> dict[Any, Any]:
    """For a row of each segment at each instant that lies in a window when that began, by segment and instant."""
    probes = [(at * 10 + segment, segment, at, "") for at in range(until) for segment in segments]
    meant = evaluate_program(tg.program(Q=inside).definition, {**{n: [*r] for n, r in rows.items()}, "Reports": probes})
    return {(segment, at): since for _, segment, at, _, since in meant["Q"]}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_are_the_windows_that_hold(name: str, seed: int) -> None:
    """After each batch a row of each partition that has one and whose window has not ended, and of no other."""
    inside, rng, rows = INSIDE[name], random.Random(f"{name} {seed}"), drawn(seed)
    given = {stream: [row for row in own if row[place] is not None] for stream, own, place in placed(rows)}
    window = probed(inside, rows, (1, 2, 3), 120)
    own = [(row[1], row[2], window[row[1], row[2]]) for row in given["Reports"] if (row[1], row[2]) in window]
    with tg.program(Q=numbered(inside)).session() as session:
        before = -1
        while before < 110:
            until = before + rng.choice((1, 1, 2, 5, 20))
            for stream, place in windows.TIMES.items():
                session.push(stream, [row for row in rows[stream] if before < row[place] <= until])
                session.advance(stream, until)
            session.step()
            begun = {(segment, since) for segment, at, since in own if at <= until}
            held = {(s, since) for s, since in begun if window.get((s, until + 1), "none") == since}
            assert windows.kept_in(session) == len(held), until
            before = until


def placed(rows: Mapping[str, Sequence[Row]]) -> list[tuple[str, Sequence[Row], int]]:
    """The rows of each stream with the place of the segment."""
    return [(stream, own, 1 if stream == "Reports" else 0) for stream, own in rows.items()]


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
