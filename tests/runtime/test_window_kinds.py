"""Windows without rows, windows of so many rows, of the calendar of a zone, and from an instant on."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate.algebra.ordered.windows.calendar import Unit, beginning, first_from
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.ordered.windows import panes, partial_panes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint, x double, s bigint", progress="t")
T = tg.stream("T", "k string, t timestamp", progress="t")
UNTYPED: Any = tg


def windows(bounds: tg.WindowBounds, **aggregates: Any) -> tg.Relation:
    """Of S, by key."""
    return S.windows(bounds, by="k").agg(**aggregates)


def counted(size: int, every: int, *, align: Any = "epoch", **aggregates: Any) -> tg.Relation:
    return S.windows(tg.rows(size, every=every, align=align), by="k", tie="s").agg(**aggregates)


def program() -> tg.Program:
    empty = windows(tg.hopping(12, every=4, offset=1, empty=True), n=tg.count(), mean=tg.avg(S.x), n_v=tg.count(S.v))
    return tg.program(
        Empty=empty,
        EmptySteps=windows(tg.hopping(4, every=4, empty=True), n=tg.count(), total=tg.sum(S.v)),
        EmptyGrowing=windows(tg.cumulating(12, every=4, empty=True), n=tg.count(), last=tg.last(S.v, by=S.t)),
        Gaps=empty.where(empty.n == 0).select("k", "end", "complete"),
        Rows=counted(6, 2, n=tg.count(), total=tg.sum(S.v), mean=tg.avg(S.x)),
        Fives=counted(5, 5, first=tg.first(S.v, by=S.s), most=tg.max(S.x), last=tg.last(S.v, by=S.t)),
        First=windows(tg.hopping(12, every=4, align="first"), n=tg.count(), mean=tg.avg(S.x)),
        FirstSteps=windows(tg.hopping(5, every=5, align="first", empty=True), n=tg.count(), most=tg.max(S.v)),
        Since=windows(tg.landmark(10, every=8), n=tg.count(), total=tg.sum(S.x)),
        Odd=windows(tg.hopping(10, every=4, offset=3), n=tg.count(), mean=tg.avg(S.x), most=tg.max(S.v)),
        OddGaps=windows(tg.hopping(3, every=7), n=tg.count(), total=tg.sum(S.v)),
        OddSteps=windows(tg.hopping(4, every=12), n=tg.count(), total=tg.sum(S.v)),
        OddEmpty=windows(tg.hopping(6, every=4, empty=True), n=tg.count(), last=tg.last(S.v, by=S.t)),
        OddFirst=windows(tg.hopping(5, every=3, align="first", empty=True), n=tg.count(), most=tg.max(S.x)),
        EmptyGaps=windows(tg.hopping(3, every=7, offset=2, empty=True), n=tg.count(), total=tg.sum(S.v)),
        EmptyPoints=windows(tg.hopping(2, every=4, empty=True), n=tg.count(), last=tg.last(S.v, by=S.t)),
        EmptyFirst=windows(tg.hopping(2, every=3, align="first", empty=True), n=tg.count(), most=tg.max(S.x)),
        OddRows=counted(5, 3, n=tg.count(), total=tg.sum(S.v), first=tg.first(S.x, by=S.t)),
        OddFives=counted(2, 5, n=tg.count(), first=tg.first(S.v, by=S.s)),
        FirstRows=counted(5, 3, align="first", n=tg.count(), total=tg.sum(S.v)),
        FirstPairs=counted(2, 3, align="first", n=tg.count(), most=tg.max(S.x)),
    )


COMPLETED = {
    "First": "end",
    "FirstSteps": "complete",
    "Empty": "complete",
    "EmptySteps": "complete",
    "EmptyGrowing": "complete",
    "Gaps": "complete",
    "Rows": "end",
    "Fives": "end",
    "Since": "end",
    "Odd": "end",
    "OddGaps": "end",
    "OddSteps": "end",
    "OddEmpty": "complete",
    "OddFirst": "complete",
    "EmptyGaps": "complete",
    "EmptyPoints": "complete",
    "EmptyFirst": "complete",
    "OddRows": "end",
    "OddFives": "end",
    "FirstRows": "end",
    "FirstPairs": "end",
}
NAMES = tuple(COMPLETED)


def events(seed: int, count: int = 60) -> list[Event]:
    """With peers, pauses, and values that are NULL or not finite."""
    rng = random.Random(seed)
    times = sorted(rng.choice((rng.randrange(-20, 30), rng.randrange(60, 120))) for _ in range(count))
    return [
        (
            rng.choice(("a", "b", "c", None)),
            t,
            rng.choice((1, 1, 2, -3, None)),
            rng.choice((0.5, -2.25, None, float("inf"))),
            number,
        )
        for number, t in enumerate(times)
    ]


def meant(program: tg.Program, rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program.definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, rows: Sequence[Event]) -> list[Event]:
    return found(tg.program(R=relation).run({"S": rows})["R"].rows())


def at(*times: int, key: str = "a") -> list[Event]:
    return [(key, time, 1, None, number) for number, time in enumerate(times)]


# --- what they mean ---------------------------------------------------------------------------------------------------


def test_windows_without_rows_are_those_between_two_with_rows() -> None:
    told = windows(tg.hopping(4, every=4, empty=True), n=tg.count(), total=tg.sum(S.v))
    assert run(told, at(1, 14, 15)) == [
        ("a", 0, 4, 1, 1, 4),
        ("a", 12, 16, 2, 2, 16),
        ("a", 4, 8, 0, None, 14),
        ("a", 8, 12, 0, None, 14),
    ]
    overlapping = windows(tg.hopping(8, every=4, empty=True), n=tg.count())
    assert run(overlapping, at(1, 18)) == [
        ("a", -4, 4, 1, 4),
        ("a", 0, 8, 1, 8),
        ("a", 12, 20, 1, 20),
        ("a", 16, 24, 1, 24),
        ("a", 4, 12, 0, 18),
        ("a", 8, 16, 0, 18),
    ]
    assert run(told, at(1)) == [("a", 0, 4, 1, 1, 4)]


@pytest.mark.parametrize(
    ("size", "times", "wanted"),
    [
        (1, (1, 7), []),
        (1, (1, 4, 7, 11), [(3, 4, 1, 4)]),
        # Of the rows at 7 and 9 neither is in a window: that at 10 tells that two before it are without rows.
        (1, (4, 7, 9, 10), [(3, 4, 1, 4), (5, 6, 0, 10), (7, 8, 0, 10), (9, 10, 1, 10)]),
        (2, (1, 7), [(0, 2, 1, 2), (2, 4, 0, 7), (4, 6, 0, 7), (6, 8, 1, 8)]),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_row_in_no_window_is_not_beside_windows_without_rows(
    size: int, times: tuple[int, ...], wanted: list[tuple[int, ...]], whole: bool
) -> None:
    n = tg.count_distinct(S.s) if whole else tg.count()
    told = tg.program(R=windows(tg.hopping(size, every=2, empty=True), n=n))
    rows = [("a", *window) for window in wanted]
    assert meant(told, at(*times), "R") == sorted(rows, key=str)
    assert found(told.run({"S": at(*times)})["R"].rows()) == sorted(rows, key=str)


def test_what_is_kept_of_a_row_in_no_window_is_nothing() -> None:
    for n in (tg.count(), tg.count_distinct(S.s)):
        with tg.program(R=windows(tg.hopping(1, every=4, empty=True), n=n)).session() as session:
            session.push("S", [*at(1, 2, 3), *at(4, 5, 6, key="b")])
            session.advance("S", 9)
            session.step()
            assert found(session.results("R")) == [("b", 3, 4, 1, 4)]
            assert session.live_rows()["R: state"] == 1
            session.push("S", at(10, 12, key="b"))
            session.advance("S", 12)
            session.step()
            assert found(session.results("R"))[::2] == [("b", 11, 12, 1, 12), ("b", 7, 8, 0, 12)]


@pytest.mark.parametrize("seed", range(6))
def test_windows_with_gaps_are_as_meant(seed: int) -> None:
    """Windows whose size is less than their distance, in any batches."""
    rng = random.Random(seed)
    bounds = []
    for _ in range(6):
        every = rng.randrange(2, 9)
        aligned: dict[str, Any] = rng.choice(({}, {"offset": rng.randrange(-9, 9)}, {"align": "first"}))
        bounds.append(tg.hopping(rng.randrange(1, every), every=every, empty=rng.random() < 0.8, **aligned))
    given = {f"P{n}": windows(one, n=tg.count(), last=tg.last(S.v, by=S.s)) for n, one in enumerate(bounds)}
    kept = {f"W{n}": windows(one, n=tg.count_distinct(S.s)) for n, one in enumerate(bounds)}
    told, rows = tg.program(**given, **kept), events(seed, rng.choice((4, 12, 40)))
    wanted = {name: meant(told, rows, name) for name in (*given, *kept)}
    with told.session() as session:
        at_row = 0
        while at_row < len(rows):
            batch = rows[at_row : at_row + rng.randrange(1, 6)]
            at_row += len(batch)
            session.push("S", batch)
            session.advance("S", (rows[at_row] if at_row < len(rows) else batch[-1])[1] - 1)
            session.step()
        session.finish()
        session.step()
        assert {name: found(session.results(name)) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("bounds", "each", "many", "fits"),
    [
        (tg.hopping(4, every=4, empty=True), 1, 12, 52),
        (tg.hopping(6, every=4, empty=True), 2, 11, 48),
        (tg.cumulating(8, every=4, empty=True), 1, 11, 52),
        (tg.hopping(4, every=4, align="first", empty=True), 1, 12, 52),
    ],
)
def test_a_row_that_is_too_far_ahead_is_named(
    bounds: tg.WindowBounds, each: int, many: int, fits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch that has it fails as often as it is done; a row a step before is fine."""
    told = windows(bounds, n=tg.count())
    monkeypatch.setattr(partial_panes, "MOST_OF_A_ROW", many * each - 1)
    rows = [*at(1, 9), *at(1, 300, 900, key="b")]
    with tg.program(R=told).session() as session:
        session.push("S", rows)
        session.finish()
        for _ in range(2):
            with pytest.raises(
                tg.QueryError, match=r"TG306 \d+ windows without rows come before the row at 900 w"
            ) as e:
                session.step()
            assert f" at 900 where k = 'b', more than {(many * each - 1) // each}: this instant" in e.value.message
    assert run(told, at(1, fits))
    with pytest.raises(tg.QueryError, match=rf"TG306 {many} windows .* at {fits + 4} where k = 'a', more than"):
        run(told, at(1, fits + 4))


def test_rows_that_are_too_far_ahead_together_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred keys with a row far ahead each: none has too many windows by itself."""
    told = windows(tg.hopping(4, every=4, empty=True), n=tg.count())
    rows = [row for number in range(100) for row in at(1, 49, key=f"k{number}")]
    assert len(run(told, rows)) == 1300
    monkeypatch.setattr(partial_panes, "MOST_IN_ALL", 1000)
    text = r"TG306 11 windows .* at 49 where k = 'k\d+', with those of other rows 1,100, more than 1,000"
    with pytest.raises(tg.QueryError, match=text):
        run(told, rows)


def test_an_instant_that_is_too_far_ahead_is_shown_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_panes, "MOST_OF_A_ROW", 1000)
    told = T.windows(tg.hopping("1h", every="1h", empty=True), by="k").agg(n=tg.count())
    with pytest.raises(tg.QueryError, match=r"TG306 [\d,]+ windows .* at 9999-12-31(?s:.*)skew_guard="):
        tg.program(R=told).run({"T": [("a", "2026-03-02T12:00Z"), ("a", "9999-12-31T00:00Z")]})


def test_windows_that_grow_and_have_no_row_yet() -> None:
    told = windows(tg.cumulating(8, every=4, empty=True), n=tg.count())
    assert run(told, at(1, 21)) == [
        ("a", 0, 4, 1, 4),
        ("a", 0, 8, 1, 8),
        ("a", 16, 20, 0, 21),
        ("a", 16, 24, 1, 24),
        ("a", 8, 12, 0, 21),
        ("a", 8, 16, 0, 21),
    ]


def test_windows_of_an_instant_that_is_a_tick_later_have_their_start() -> None:
    """As those of Spark, Polars and Flink, which docs/how-to/from-spark-and-polars.md says how to have."""
    later = S.with_(at=S.t + 1).windows(tg.hopping(4, every=2), by="k", order="at").agg(n=tg.count())
    rows = [("a", t, 1, 0.0, t) for t in (-4, -1, 0, 1, 2, 4, 7, 8)]
    instants = [row[1] for row in rows]
    starts = [start for start in range(-10, 10, 2) if any(start <= t < start + 4 for t in instants)]
    found = tg.program(Out=later).run({"S": rows}).rows("Out")
    assert sorted((row["start"], row["end"], row["n"]) for row in found) == [
        (start, start + 4, sum(start <= t < start + 4 for t in instants)) for start in starts
    ]


def test_windows_of_so_many_rows() -> None:
    """Those that are whole: what is left at the end is in none."""
    assert run(counted(3, 3, n=tg.count()), at(1, 1, 4, 5, 9, 9, 12)) == [("a", 1, 4, 3), ("a", 5, 9, 3)]
    assert run(counted(4, 2, n=tg.count()), at(1, 2, 3, 4, 5, 6, 7)) == [("a", 1, 4, 4), ("a", 3, 6, 4)]
    sliding = counted(2, 1, total=tg.sum(S.s))
    assert run(sliding, at(1, 2, 2)) == [("a", 1, 2, 1), ("a", 2, 2, 3)]


def test_a_size_may_be_no_multiple_of_the_distance() -> None:
    """Of rows at 1 to 8 those windows of five that end at multiples of 3; where they are shorter some are in none."""
    rows = at(*range(1, 9))
    assert run(windows(tg.hopping(5, every=3), total=tg.count()), rows) == [
        ("a", -2, 3, 3),
        ("a", 1, 6, 5),
        ("a", 4, 9, 4),
        ("a", 7, 12, 1),
    ]
    assert run(windows(tg.hopping(2, every=5), n=tg.count()), rows) == [("a", 3, 5, 2)]
    assert run(windows(tg.hopping(3, every=2, align="first"), n=tg.count()), rows) == [
        ("a", 0, 3, 3),
        ("a", 2, 5, 3),
        ("a", 4, 7, 3),
        ("a", 6, 9, 2),
    ]
    assert run(counted(3, 2, n=tg.count()), rows) == [("a", 2, 4, 3), ("a", 4, 6, 3), ("a", 6, 8, 3)]
    assert run(counted(2, 3, n=tg.count()), rows) == [("a", 2, 3, 2), ("a", 5, 6, 2)]
    told = tg.program(R=windows(tg.hopping(10, every=4), n=tg.count())).explain().to_dict()["queries"]
    assert [bound for query in told for bound in query["holds"]] == ["panes: keys(S by k) × 5"]


def test_rows_that_are_counted_need_an_order() -> None:
    told = S.windows(tg.rows(2), by="k").agg(n=tg.count())
    assert run(told, at(1, 2, 3, 4)) == [("a", 1, 2, 2), ("a", 3, 4, 2)]
    with pytest.raises(tg.TidegateError, match="TG304 two events of one partition at 2"):
        tg.program(R=told).run({"S": tg.source(at(1, 2, 2), ties="fail")})


def test_the_tie_orders_first_and_last_values_by_time() -> None:
    """As it does in `over`, and whether partial results are kept or rows."""
    told: dict[str, Any] = {"first": tg.first(S.v, by=S.t), "last": tg.last(S.v, by=S.t)}
    rows: list[Event] = [("a", 3, None, None, 0), *(("a", 2, v, None, s) for v, s in ((7, 3), (3, 2), (9, 1)))]
    assert run(counted(4, 4, **told), rows) == [("a", 2, 3, 9, 7)]
    assert run(counted(4, 4, **told, middle=tg.median(S.v)), rows) == [("a", 2, 3, 9, 7, 7.0)]
    pairs = counted(2, 1, **told)
    over = S.over(by="k", order="t", tie="s", rows=(1, 0), **told)
    numbered = over.over(by="k", order="t", tie="s", n=tg.row_number())
    wanted = numbered.where(numbered.n > 1).select("k", "t", "first", "last")
    assert run(pairs.select("k", "end", "first", "last"), events(3)) == run(wanted, events(3))
    assert "last = last(v, by=(t, s))" in str(tg.program(R=pairs).explain())


def test_windows_from_an_instant_on() -> None:
    """One for each step in which there is a row: of those up to that instant none."""
    assert run(windows(tg.landmark(2, every=4), n=tg.count()), at(1, 2, 3, 6, 15)) == [
        ("a", 2, 18, 3),
        ("a", 2, 6, 2),
    ]
    assert run(windows(tg.landmark(20, every=4), n=tg.count()), at(1, 2)) == []


def test_windows_that_begin_with_the_first_row_of_their_key() -> None:
    """As in Definition 2.8 of the thesis: `start` is the instant before it, and no window starts earlier."""
    told = windows(tg.hopping(4, every=2, align="first"), n=tg.count())
    assert run(told, [*at(7, 8, 11), *at(20, key="b")]) == [
        ("a", 10, 14, 1),
        ("a", 6, 10, 2),
        ("a", 8, 12, 1),
        ("b", 19, 23, 1),
    ]


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_they_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, COMPLETED)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same_windows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name)


# --- when they are complete, and what is kept -------------------------------------------------------------------------


def test_a_window_without_rows_is_reported_when_the_next_row_comes() -> None:
    with tg.program(R=windows(tg.hopping(4, every=4, empty=True), n=tg.count())).session() as session:
        session.push("S", at(1))
        session.advance("S", 20)
        session.step()
        assert found(session.results("R")) == [("a", 0, 4, 1, 4)]
        assert session.live_rows()["R: state"] == 1
        session.push("S", at(21))
        session.advance("S", 21)
        session.step()
        assert found(session.results("R"))[1:] == [("a", first, first + 4, 0, 21) for first in (12, 16, 4, 8)]


def test_they_progress_on_what_completes_them() -> None:
    empty = windows(tg.hopping(12, every=4, empty=True), n=tg.count())
    assert tg.program(R=empty).check() == []
    (problem,) = tg.program(R=empty.drop("complete")).check()
    assert problem.code in ("TG201", "TG202")
    assert tg.program(R=counted(4, 2, n=tg.count())).check() == []
    (problem,) = tg.program(R=counted(4, 2, n=tg.count()).drop("end")).check()
    assert problem.code == "TG201"
    assert tg.program(R=windows(tg.landmark(0, every=4), n=tg.count())).check() == []
    days = T.windows(tg.calendar("day", zone="Europe/Berlin"), by="k").agg(n=tg.count())
    assert tg.program(R=days).check() == []
    assert tg.program(R=days.drop("end")).check() == []


def test_what_is_kept() -> None:
    def live(relation: tg.Relation, until: int) -> int:
        with tg.program(R=relation).session() as session:
            session.push("S", [*at(*range(1, 13)), *at(*range(1, 13), key="b")])
            session.advance("S", until)
            session.step()
            return session.live_rows()["R: state"]

    assert live(windows(tg.landmark(0, every=4), n=tg.count()), 100) == 2
    assert live(windows(tg.hopping(12, every=4, align="first"), n=tg.count()), 100) == 2
    assert live(windows(tg.hopping(12, every=4, empty=True), n=tg.count()), 12) == 4
    assert live(windows(tg.hopping(12, every=4, empty=True), n=tg.count()), 100) == 2
    # Two pieces of two rows that the next window begins with, and none that is not whole.
    assert live(counted(6, 2, n=tg.count()), 100) == 4
    assert live(counted(5, 5, n=tg.count()), 100) == 2
    told = str(program().explain())
    assert "windows rows(6, every 2) of r0 by k in order of t, s" in told
    assert "windows landmark(10, every 8) of r0 by k in order of t" in told
    assert "windows hopping(12, every 4, offset 1, empty ones too) of r0 by k" in told
    assert "panes: keys(S by k) × 3" in told
    assert "totals: keys(S by k)" in told


@pytest.mark.parametrize("align", ["epoch", "first"])
def test_the_last_pane_stays_however_progress_comes(align: Any) -> None:
    """Windows without rows are counted on from it when the next row comes."""
    told = tg.program(R=windows(tg.hopping(12, every=4, empty=True, align=align), n=tg.count()))
    results, kept = [], set[int]()
    for steps in (range(10, 40), ()):
        with told.session() as session:
            session.push("S", at(9))
            for until in steps:
                session.advance("S", until)
                session.step()
                kept.add(session.live_rows()["R: state"])
            session.push("S", at(41))
            session.advance("S", 60)
            session.step()
            results.append(found(session.results("R")))
    assert kept == {1}
    assert results[0] == results[1]


# --- calendars --------------------------------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc,arg-type]  # parts of a date


def in_calendar(bounds: tg.WindowBounds, *instants: dt.datetime) -> list[Event]:
    told = tg.program(R=T.windows(bounds, by="k").agg(n=tg.count()))
    rows = told.run({"T": [("a", instant) for instant in sorted(instants)]})["R"].rows()
    return sorted((row["start"], row["end"], row["n"]) for row in rows)


def test_a_day_has_as_many_hours_as_it_has_there() -> None:
    """The clocks of Berlin are set on 2026-03-29 at 1:00 UTC, and on 2026-10-25."""
    day = tg.calendar("day", zone="Europe/Berlin")
    spring = [utc(2026, 3, 28, 23) + dt.timedelta(hours=n) for n in range(1, 25)]
    assert in_calendar(day, *spring) == [
        (utc(2026, 3, 28, 23), utc(2026, 3, 29, 22), 23),
        (utc(2026, 3, 29, 22), utc(2026, 3, 30, 22), 1),
    ]
    autumn = [utc(2026, 10, 24, 22) + dt.timedelta(hours=n) for n in range(1, 26)]
    assert in_calendar(day, *autumn) == [(utc(2026, 10, 24, 22), utc(2026, 10, 25, 23), 25)]


def test_months_and_weeks() -> None:
    month = tg.calendar("month", zone="Europe/Berlin")
    assert in_calendar(month, utc(2026, 3, 31, 21), utc(2026, 3, 31, 22), utc(2026, 3, 31, 22, 1)) == [
        (utc(2026, 2, 28, 23), utc(2026, 3, 31, 22), 2),
        (utc(2026, 3, 31, 22), utc(2026, 4, 30, 22), 1),
    ]
    assert in_calendar(tg.calendar("week"), utc(2026, 3, 4)) == [(utc(2026, 3, 2), utc(2026, 3, 9), 1)]
    assert in_calendar(tg.calendar("quarter"), utc(2026, 5, 4)) == [(utc(2026, 4, 1), utc(2026, 7, 1), 1)]
    assert in_calendar(tg.calendar("year"), utc(2026, 5, 4)) == [(utc(2026, 1, 1), utc(2027, 1, 1), 1)]


def test_a_day_that_begins_as_the_clock_changes() -> None:
    """In São Paulo midnight of 2018-11-04 was one o'clock, at 3:00 UTC; in Samoa there was no 2011-12-30."""
    assert in_calendar(tg.calendar("day", zone="America/Sao_Paulo"), utc(2018, 11, 4, 4)) == [
        (utc(2018, 11, 4, 3), utc(2018, 11, 5, 2), 1)
    ]
    rows = in_calendar(tg.calendar("day", zone="Pacific/Apia"), *(utc(2011, 12, 30, hour) for hour in (9, 10, 11)))
    assert rows == [
        (utc(2011, 12, 29, 10), utc(2011, 12, 30, 10), 2),
        (utc(2011, 12, 30, 10), utc(2011, 12, 31, 10), 1),
    ]
    assert in_calendar(tg.calendar("day", zone="Pacific/Apia"), utc(2011, 12, 30, 10)) == [
        (utc(2011, 12, 29, 10), utc(2011, 12, 30, 10), 1)
    ]
    # From 23:30 to 00:30.
    toronto = (utc(1919, 3, 31, 4, 30) + seconds * dt.timedelta(seconds=1) for seconds in (0, 1))
    assert in_calendar(tg.calendar("day", zone="America/Toronto"), *toronto) == [
        (utc(1919, 3, 30, 5), utc(1919, 3, 31, 4, 30), 1),
        (utc(1919, 3, 31, 4, 30), utc(1919, 4, 1, 4), 1),
    ]


def boundary(unit: Unit, number: int) -> dt.datetime:
    """Where a unit begins in Berlin, by the days of Python's own calendar, counted from January 2015."""
    day = dt.date(2015, 1, 1)
    if unit == "day":
        day += dt.timedelta(days=number)
    elif unit == "week":
        day = dt.date(2014, 12, 29) + dt.timedelta(weeks=number)
    else:
        months = number * {"month": 1, "quarter": 3, "year": 12}[unit]
        day = dt.date(2015 + months // 12, months % 12 + 1, 1)
    return dt.datetime.combine(day, dt.time(), BERLIN).astimezone(dt.UTC)


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_units_between_instants_that_are_far_apart_are_not_looked_up(
    unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of the year 9999 costs no more than another."""
    looked_up = list[int]()

    def beginning_of(unit: Unit, zone: str, number: int) -> int:
        looked_up.append(number)
        return beginning(unit, zone, number)

    monkeypatch.setattr(panes, "beginning", beginning_of)
    near = [utc(2026, 3, 2, hour) for hour in (12, 22, 23)]
    far = [utc(1, 1, 2, 3), utc(1970, 1, 1), utc(2028, 2, 29), utc(9999, 12, 30, 12)]
    instants = np.array([round((at - utc(1970, 1, 1)) / dt.timedelta(microseconds=1)) for at in (*far, *near)])
    found = panes.CalendarPanes(unit, "Europe/Berlin").of(instants, np.zeros_like(instants))
    assert found.tolist() == [first_from(unit, "Europe/Berlin", int(instant)) for instant in instants]
    assert len(looked_up) < 20
    instants = np.sort(instants[4] + np.arange(-2000, 2000) * 3_600_000_000 * 7)
    found = panes.CalendarPanes(unit, "Europe/Berlin").of(instants, np.zeros_like(instants))
    assert found.tolist() == [first_from(unit, "Europe/Berlin", int(instant)) for instant in instants]


def test_dates_that_are_far_apart_are_not_looked_up_either(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = list[int]()

    def beginning_of(unit: Unit, zone: str | None, number: int) -> int:
        looked_up.append(number)
        return beginning(unit, zone, number)

    monkeypatch.setattr(panes, "beginning", beginning_of)
    days = np.array([20_500, 20_501, 2_932_000])
    assert panes.CalendarPanes("day", None).of(days, np.zeros_like(days)).tolist() == [20_501, 20_502, 2_932_001]
    assert len(looked_up) < 20


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_units_of_the_calendar_whatever_the_batching(size: int, unit: Unit) -> None:
    rng = random.Random(f"{unit} {size}")
    span = {"day": 20, "week": 90, "month": 500, "quarter": 900, "year": 2000}[unit]
    first = utc(2015, 3, 20)
    seconds = [rng.randrange(span * 86_400) for _ in range(80)]
    # Some at the very ends.
    edges = [(boundary(unit, n) - first) // dt.timedelta(seconds=1) for n in range(1, 8)]
    instants = [first + dt.timedelta(seconds=n) for n in sorted([*seconds, *(n for n in edges if n >= 0)])]
    rows = [(rng.choice("ab"), instant) for instant in instants]
    program = tg.program(R=T.windows(tg.calendar(unit, zone="Europe/Berlin", size=size), by="k").agg(n=tg.count()))
    with program.session() as session:
        for at in range(0, len(rows), 13):
            some = rows[at : at + 13]
            session.push("T", rng.sample(some, len(some)))
            session.advance("T", some[-1][1] - dt.timedelta(microseconds=1))
            session.step()
        session.finish()
        session.step()
        told = sorted((row["k"], row["end"], row["start"], row["n"]) for row in session.results("R"))
    bounds = [(boundary(unit, n), boundary(unit, n - size)) for n in range(-10, 400 if unit != "year" else 30)]
    expected = []
    for key in "ab":
        for end, start in bounds:
            inside = sum(k == key and start < instant <= end for k, instant in rows)
            if inside:
                expected.append((key, end, start, inside))
    assert told == expected


D = tg.stream("D", "k string, day date", progress="day")


def unit_of(unit: Unit, day: dt.date) -> tuple[int, int]:
    """The unit that a day is in, by Python's own calendar."""
    match unit:
        case "day":
            return (day.toordinal(), 0)
        case "week":
            return day.isocalendar()[:2]
        case "month":
            return (day.year, day.month)
        case "quarter":
            return (day.year, (day.month - 1) // 3)
        case "year":
            return (day.year, 0)


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_dates_in_units_of_the_calendar_whatever_the_batching(unit: Unit) -> None:
    """A window of dates ends with its last day, and begins with the day after its start."""
    rng = random.Random(unit)
    first = dt.date(2019, 12, 1)
    edges = [dt.date(2019, 12, 31), dt.date(2020, 1, 1), dt.date(2020, 2, 29), dt.date(2020, 3, 1)]
    days = sorted([*edges, *(first + dt.timedelta(days=rng.randrange(500)) for _ in range(60))])
    expected: dict[tuple[int, int], list[dt.date]] = {}
    for day in days:
        expected.setdefault(unit_of(unit, day), []).append(day)
    with tg.program(R=D.windows(tg.calendar(unit), by="k").agg(n=tg.count())).session() as session:
        for at in range(0, len(days), 7):
            some = days[at : at + 7]
            session.push("D", [("a", day) for day in rng.sample(some, len(some))])
            session.advance("D", some[-1] - dt.timedelta(days=1))
            session.step()
        session.finish()
        session.step()
        told = sorted((row["start"], row["end"], row["n"]) for row in session.results("R"))
    assert [n for _, _, n in told] == [len(inside) for inside in expected.values()]
    for (start, end, _), (its, inside) in zip(told, expected.items(), strict=True):
        assert start < inside[0] <= inside[-1] <= end
        within, after = start + dt.timedelta(days=1), end + dt.timedelta(days=1)
        assert unit_of(unit, within) == its == unit_of(unit, end)
        assert its not in (unit_of(unit, start), unit_of(unit, after))


def test_the_last_months_of_dates_also_those_without_rows() -> None:
    asked = D.windows(tg.calendar("month", size=2, empty=True), by="k").agg(n=tg.count())
    days = [dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date(2026, 6, 30)]
    rows = tg.program(R=asked).run({"D": [("a", day) for day in days]}).rows("R")
    assert sorted((row["start"], row["end"], row["n"], row["complete"]) for row in rows) == [
        (dt.date(2025, 11, 30), dt.date(2026, 1, 31), 1, dt.date(2026, 1, 31)),
        (dt.date(2025, 12, 31), dt.date(2026, 2, 28), 2, dt.date(2026, 2, 28)),
        (dt.date(2026, 1, 31), dt.date(2026, 3, 31), 1, dt.date(2026, 3, 31)),
        (dt.date(2026, 2, 28), dt.date(2026, 4, 30), 0, dt.date(2026, 6, 30)),
        (dt.date(2026, 3, 31), dt.date(2026, 5, 31), 0, dt.date(2026, 6, 30)),
        (dt.date(2026, 4, 30), dt.date(2026, 6, 30), 1, dt.date(2026, 6, 30)),
        (dt.date(2026, 5, 31), dt.date(2026, 7, 31), 1, dt.date(2026, 7, 31)),
    ]


def test_a_start_of_dates_is_final_when_the_longest_month_is_over() -> None:
    months = D.windows(tg.calendar("month"), by="k").agg(n=tg.count()).drop("end")
    with tg.program(R=months).session() as session:
        for day in (dt.date(2025, 12, 1) + dt.timedelta(days=n) for n in range(90)):
            session.push("D", [("a", day)])
            session.advance("D", day)
            session.step()
            reached = dt.date(1970, 1, 1) + dt.timedelta(days=session.progress["R"]["start"])
            assert all(row["start"] <= reached for row in session.results("R"))
            assert day - reached <= dt.timedelta(days=32)


def test_a_start_is_final_when_the_longest_day_is_over() -> None:
    """A query without the end progresses on the start, and a day of Berlin may have 25 hours."""
    days = T.windows(tg.calendar("day", zone="Europe/Berlin"), by="k").agg(n=tg.count()).drop("end")
    hours = [utc(2026, 10, 23) + dt.timedelta(hours=n) for n in range(120)]
    with tg.program(R=days).session() as session:
        for hour in hours:
            session.push("T", [("a", hour)])
            session.advance("T", hour)
            session.step()
            reached = session.progress["R"]["start"]
            assert all(row["start"].timestamp() * 1_000_000 <= reached for row in session.results("R"))
        session.finish()
        session.step()
        counts = [row["n"] for row in sorted(session.results("R"), key=lambda row: row["start"])]
    assert counts == [23, 24, 25, 24, 24]


# --- how they are written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: UNTYPED.calendar("fortnight"), 'TG160 unit=.fortnight. is not known(?s:.*)unit="day" or unit="week"'),
        (
            lambda: UNTYPED.calendar("day", zone="Europe/Berln"),
            "TG160 .Europe/Berln. is no time zone(?s:.*)Europe/Berlin",
        ),
        (
            lambda: windows(tg.calendar("day"), n=tg.count()),
            "TG160 a calendar has instants and dates, and bigint is neither",
        ),
        (
            lambda: D.windows(tg.calendar("day", zone="Europe/Berlin")),
            "TG160 dates are of no time zone: zone='Europe/Berlin'(?s:.*)leave zone= out",
        ),
        (lambda: UNTYPED.calendar("day", size=0), "TG160 size=0 is no positive whole number"),
        (lambda: UNTYPED.rows("5m"), "TG160 size='5m' is no positive whole number"),
        (lambda: UNTYPED.calendar("day", empty=1), "TG114 empty=1 says neither yes nor no"),
        (lambda: UNTYPED.hopping(4, every=2, empty="x"), "TG114 empty='x' says neither yes nor no"),
        (lambda: UNTYPED.cumulating(4, every=2, empty=None), "TG114 empty=None says neither yes nor no"),
        (lambda: UNTYPED.hopping(4, every=2, align="last"), "TG160 align='last' is not known"),
        (lambda: tg.hopping(4, every=2, offset=1, align="first"), "TG160 offset moves what the first row aligns"),
        (
            lambda: windows(tg.landmark("yesterday", every=2), n=tg.count()),
            "TG160 since='yesterday' is no instant here",
        ),
        (lambda: S.windows(tg.session(3), by="k", tie="s"), "TG114 .*tie='s' says nothing(?s:.*)tg.rows(?s:.*)tg.last"),
        (
            lambda: S.rename(k="complete").windows(tg.hopping(4, every=4, empty=True), by="complete").agg(n=tg.count()),
            "TG103 'complete' is an attribute of each window",
        ),
        (lambda: UNTYPED.countWindow(5), "TG101 (?s:.*)tg.rows"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


@pytest.mark.parametrize(
    ("size", "every", "ends"), [(3, 2, [3, 5, 7]), (5, 3, [5]), (2, 3, [2, 5]), (4, 2, [4, 6]), (3, 3, [3, 6])]
)
def test_the_first_window_of_rows_may_be_that_of_the_first_rows(size: int, every: int, ends: list[int]) -> None:
    """Windows that follow begin `every` rows later. Where that divides the size, others end there, too."""
    rows = [("a", t, t, 0.5, t) for t in range(1, 8)]
    query = counted(size, every, align="first", n=tg.count())
    wanted = [("a", end - size + 1, end, size) for end in ends]
    assert query.schema.names == ("k", "start", "end", "n")
    assert meant(tg.program(R=query), rows, "R") == run(query, rows) == wanted


def test_they_show_how_they_are_written() -> None:
    assert repr(S.windows(tg.rows(6, every=2), by="k", tie="s")) == (
        "rows(6, every=2) by k, in order of t, s; say what each window yields: .agg(...)"
    )
    assert repr(tg.rows(3, every=2, align="first")) == "rows(3, every=2, align='first')"
    assert repr(tg.calendar("month", zone="Europe/Berlin", size=3)) == "calendar('month', zone='Europe/Berlin', size=3)"
    assert repr(tg.landmark(0, every=5)) == "landmark(0, every=5)"
    assert repr(tg.hopping(4, every=2, empty=True)) == "hopping(4, every=2, empty=True)"
