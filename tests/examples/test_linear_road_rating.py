"""Linear Road's rating: input in time, a verdict on each number of roads, and the search for the greatest."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from benchmarks import linear_road_input, linear_road_rating
from benchmarks.linear_road_answers import LIMITS, Tally, wanted
from benchmarks.linear_road_engines import Batch, Embedded, OnSpark
from benchmarks.linear_road_input import Feeder, Second, ahead, before, own_rows
from benchmarks.linear_road_rating import Outcome, Stretch, rated, search, told, trial
from examples.linear_road.files import rows
from examples.linear_road.generator import CARS, Road
from examples.linear_road.rows import Row
from tests.shards import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT = Stretch(start=180, seconds=3, warm=60, before="run", distinct=1, parts=2)


def bag(frames: list[pl.DataFrame]) -> Counter[tuple[int, ...]]:
    return Counter(row for frame in frames for row in frame.iter_rows())


# Input ---------------------------------------------------------------------------------------------------------------
def test_seconds_lie_ready_in_folders_and_have_all_rows(tmp_path: Path) -> None:
    seconds = ahead(1, 2, 90, 95, tmp_path / "ahead", parts=3)
    assert [second.time for second in seconds] == [90, 91, 92, 93, 94]
    frames = [pl.read_parquet(path) for second in seconds for path in sorted(second.folder.glob("*.parquet"))]
    assert len(frames) == 15
    assert sum(second.rows for second in seconds) == sum(frame.height for frame in frames)
    of_one = Counter(tuple(row) for row in rows([Road(0)], 95) if row.time >= 90)
    found = bag(frames)
    assert Counter({row: count for row, count in found.items() if row[2] < CARS}) == of_one
    assert found.total() == 2 * of_one.total()


def test_a_stretch_goes_on_where_what_was_before_ends() -> None:
    every = Counter(map(tuple, rows([Road(0)], 130)))
    assert Counter(map(tuple, own_rows("run", 1, 90, 130))) == every
    last = own_rows("last", 1, 90, 130)
    assert Counter(tuple(row) for row in last if row.time >= 90) == Counter(
        {row: count for row, count in every.items() if row[1] >= 90}
    )
    cars = Counter(row.vid for row in last if row.time < 90)
    assert set(cars.values()) == {1}


@pytest.mark.parametrize("kind", ["run", "last"])
def test_rows_of_a_second_are_given_together(kind: linear_road_input.Before, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_road_input, "CHUNK", 100)
    parts = list(before(kind, 1, 2, 120))
    assert len(parts) > 5
    for part, following in pairwise(parts):
        assert part.select(pl.max("time")).item() < following.select(pl.min("time")).item()


def test_a_second_is_handed_over_when_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none any more once the feeder has been left."""
    source = tmp_path / "in"
    source.mkdir()
    seconds, handed, hand_over = ahead(1, 1, 90, 120, tmp_path / "ahead"), dict[int, float](), Second.hand_over

    def noted(second: Second, source: Path) -> None:
        handed[second.time] = time.monotonic()
        hand_over(second, source)

    monkeypatch.setattr(Second, "hand_over", noted)
    with Feeder(seconds, source) as feeder:
        assert feeder.handed.wait(60)
    assert 1 <= len(handed) < len(seconds)
    assert [*handed] == [second.time for second in seconds[: len(handed)]]
    assert all(at >= feeder.at(second + 1) for second, at in handed.items())
    assert sorted(os.listdir(source)) == [f"{second:05d}" for second in handed]


def test_an_engine_waits_for_the_second_that_comes(tmp_path: Path) -> None:
    """It is woken as a second is handed over, and gives up at the instant that was said."""
    stretch = replace(SHORT, seconds=2)
    source = tmp_path / "in"
    source.mkdir()
    seconds = ahead(1, 1, stretch.start, stretch.end, tmp_path / "ahead")
    with Embedded(tmp_path, before("last", 1, 1, stretch.start), in_memory=True) as engine:
        with Feeder(seconds, source) as feeder:
            engine.consume(sum(second.rows for second in seconds), feeder.at(stretch.end) + 60, feeder.handed)
        assert sum(batch.rows for batch in engine.batches[-2:]) == sum(second.rows for second in seconds)
        until = time.monotonic() + 0.1
        engine.consume(1, until)
        assert time.monotonic() >= until


# A number of roads ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "in_memory"),
    cases([("run", False), ("last", False), ("run", True)], lambda kind, in_memory: kind == "last" or in_memory),
)
def test_roads_that_are_answered_in_time_pass(kind: linear_road_input.Before, in_memory: bool, tmp_path: Path) -> None:
    stretch = replace(SHORT, before=kind)
    answers = wanted(own_rows(kind, 1, stretch.first, stretch.end), stretch.start)
    outcome = trial(2, stretch, partial(Embedded, in_memory=in_memory), answers, tmp_path)
    assert outcome.faults == []
    assert Counter(outcome.counts) == Counter({name: 2 * some.total() for name, some in answers.items()})
    assert sum(batch.rows for batch in outcome.batches) == sum(outcome.rates)
    assert all(1 < outcome.slowest[name] <= LIMITS[name] for name in outcome.slowest)
    assert "2 roads: " in outcome.lines()[0]
    assert "in time" in outcome.lines()[0]


def test_wrong_answers_and_late_ones_do_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_road_rating, "LIMITS", dict.fromkeys(LIMITS, 0.9))  # a second takes a second
    answers = wanted(own_rows("last", 1, SHORT.first, SHORT.end)[:-1], SHORT.start)
    late, wrong = trial(1, replace(SHORT, before="last"), Embedded, answers, tmp_path).faults
    assert late.startswith("late: Notifications")
    assert "WRONG" in wrong


def test_what_comes_later_and_later_does_not_pass() -> None:
    batches = [Batch(number, 0.0, 1, 0, {}) for number in range(8)]
    steady = Outcome(1, [1], batches, [0.5, 1.0, 0.5, 1.0, 1.0, 0.5, 1.0, 0.5], right=True)
    assert steady.faults == []
    (growing,) = replace(steady, behind=[0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]).faults
    assert growing == "answers come later and later: 1.25 s, then 3.25 s"


def test_a_rating_says_of_which_stretch_it_is_and_what_limits_it() -> None:
    batches = [Batch(number, 0.0, 1, 0, {"read": 0.1, "state": 0.3}) for number in range(2)]
    good = Outcome(8, [100, 300], batches, [0.5, 0.5], 2.0, 0.75, right=True, slowest={"Alerts": 1.5, "Daily": 2.0})
    bad = replace(good, roads=16, slowest={"Alerts": 6.0, "Daily": 2.0})
    found = rated(8, 16, SHORT, {8: good, 16: bad, 4: good})
    assert json.loads(json.dumps(found)) == found
    assert (found["good"], found["bad"]) == (8, 16)
    assert found["stretch"] == asdict(SHORT)
    limit = "30% of their limit; busy 40% of the time, with 0.75 cores, 75% of it in state"
    assert found["passes"] == {
        "roads": 8,
        "mean": 200.0,
        "peak": 300,
        "fed": 2.0,
        "slowest": {"Alerts": 1.5, "Daily": 2.0},
        "faults": [],
        "limit": f"Alerts, {limit}",
    }
    assert found["fails"]["faults"] == ["late: Alerts"]
    fed = f"seconds {SHORT.start} to {SHORT.end}, fed for 2 s, 200 rows/s in the mean, 300 at the peak"
    assert told(found) == [
        f"  8 roads, in time: {fed}",
        "    slowest: Alerts 1.50 s of 5, Daily 2.00 s of 10",
        f"    limit:   Alerts, {limit}",
        f"  16 roads, not in time: {fed}",
        "    slowest: Alerts 6.00 s of 5, Daily 2.00 s of 10",
        f"    limit:   late: Alerts; Alerts, {limit.replace('30%', '120%')}",
    ]
    nothing = rated(0, None, SHORT, {})
    assert (nothing["passes"], nothing["fails"], told(nothing)) == (None, None, [])
    assert Outcome(1, []).limit == "nothing was answered"


@pytest.mark.spark
@pytest.mark.long
def test_spark_is_rated_alike(spark: SparkSession, tmp_path: Path) -> None:
    answers = wanted(own_rows("last", 1, SHORT.first, SHORT.end), SHORT.start)
    outcome = trial(1, replace(SHORT, before="last"), OnSpark, answers, tmp_path)
    assert outcome.right
    assert outcome.slowest["Notifications"] > 1


@pytest.mark.parametrize(
    "stretch", [replace(SHORT, start=100), replace(SHORT, warm=50), replace(SHORT, seconds=10_621)]
)
def test_a_stretch_begins_with_a_step_and_lies_within_the_three_hours(stretch: Stretch) -> None:
    with pytest.raises(SystemExit):
        stretch.check()


def test_only_answers_that_count_are_counted() -> None:
    tally = Tally(1, 100)
    found = pl.DataFrame({"vid": [1, 2, CARS + 1], "time": [99, 100, 100], "lav": [0, 0, 0], "toll": [0, 0, 0]})
    assert tally.add("Notifications", found).height == 2
    assert tally.right({"Notifications": Counter([(2, 100, 0, 0)])}, 2)
    assert not tally.right({"Notifications": Counter([(2, 100, 0, 1)])}, 2)
    assert not tally.right({"Notifications": Counter([(2, 100, 0, 0)])}, 3)
    assert not tally.right({"Alerts": Counter([(100, 0, 1, 0, 2)])}, 1)
    assert wanted([Row(0, 100, 2, 30, 0, 1, 0, 10, 52_900)], 101)["Notifications"] == Counter()


# The search ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("limit", "first", "step", "most", "expected"),
    [
        (100, 8, 1, 512, (96, 104)),
        (64, 8, 1, 512, (64, 72)),
        (5, 16, 1, 512, (5, 6)),
        (0, 16, 1, 512, (0, 1)),
        (1000, 8, 1, 512, (512, None)),
        (100, 8, 8, 512, (96, 104)),
    ],
)
def test_roads_are_doubled_and_halved(
    limit: int, first: int, step: int, most: int, expected: tuple[int, int | None]
) -> None:
    tried = []

    def passes(roads: int) -> bool:
        tried.append(roads)
        return roads <= limit

    assert search(passes, first, step, most, lambda: 1.0) == expected
    assert len(tried) == len(set(tried))


def test_a_search_ends_with_its_budget() -> None:
    spent = 0

    def passes(roads: int) -> bool:
        nonlocal spent
        spent += roads
        return True

    assert search(passes, 8, 1, 512, lambda: 100.0 - spent) == (32, None)  # 8, 16 and 32 take 56 seconds, 64 take 64


@pytest.mark.parametrize(("fed", "expected"), [(10.0, (32, None)), (0.0, (16, None))])
def test_all_numbers_of_roads_are_fed_for_as_long(fed: float, expected: tuple[int, None]) -> None:
    """8, 16 and 32 roads take 18, 26 and 42 seconds. By 26 for 16 roads alone 32 were to take 52."""
    spent = 0.0

    def passes(roads: int) -> bool:
        nonlocal spent
        spent += 10 + roads
        return True

    assert search(passes, 8, 1, 512, lambda: 88.0 - spent, fed) == expected
