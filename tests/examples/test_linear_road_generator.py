"""Linear Road's generator: the same rows for the same seed, as many cars as the benchmark has, accidents as it says."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from examples.linear_road.checker import by_car, check
from examples.linear_road.files import history, rows, write
from examples.linear_road.generator import CARS, COMES_BACK, QUESTIONS, Columns, Options, Road, new_cars
from examples.linear_road.rows import BALANCE, DAILY, ENTRY, EXIT, MILE, POSITION, Row

SMALL = Options(traffic=0.05, accidents=1 / 200)
LAST = 3600


@pytest.fixture(scope="module")
def whole() -> tuple[Road, list[Columns]]:
    """A road of the benchmark's size, for an hour."""
    road = Road(0)
    return road, list(road.steps(LAST))


def test_a_road_is_the_same_beside_any_others() -> None:
    alone = rows([Road(1, SMALL)], 300)
    assert alone == rows([Road(1, SMALL)], 300)
    assert alone == [row for row in rows([Road(0, SMALL), Road(1, SMALL)], 300) if row.xway == 1 or row.vid >= CARS]
    assert alone != rows([Road(1, Options(seed=2, traffic=0.05, accidents=1 / 200))], 300)


def test_questions_of_the_last_of_many_roads_have_numbers_of_their_own() -> None:
    """More than 2^31."""
    asked = [row.qid for row in rows([Road(255, replace(SMALL, balances=1.0))], 60) if row.type == BALANCE]
    assert asked
    assert min(asked) >= 255 * QUESTIONS


def test_as_many_cars_enter_as_the_law_says(whole: tuple[Road, list[Columns]]) -> None:
    first: dict[int, int] = {}
    for step in whole[1]:
        for vid, time in zip(step["vid"].tolist(), step["time"].tolist(), strict=True):
            first.setdefault(vid, time)
    arrived = Counter(first.values())
    for until in (1, 60, 1800, LAST):
        assert sum(arrived[time] for time in range(until)) == int(new_cars(until))
    assert new_cars(LAST) == pytest.approx(sum(20 * (1.06 + np.sin(np.pi * (t + 0.5) / 10_800)) for t in range(LAST)))


def test_traffic_is_that_of_the_benchmark(whole: tuple[Road, list[Columns]]) -> None:
    counts = {int(step["time"][0]): np.count_nonzero(step["type"] == POSITION) / 30 for step in whole[1]}
    assert counts[600] == pytest.approx(420, rel=0.15)
    assert counts[1800] == pytest.approx(1_180, rel=0.1)
    assert counts[3570] == pytest.approx(2_120, rel=0.05)
    last = whole[1][-1]
    speed = last["spd"][last["type"] == POSITION].mean()
    assert 40 < speed < 48
    entered = np.count_nonzero((last["type"] == POSITION) & (last["lane"] == ENTRY))
    assert entered / np.count_nonzero(last["type"] == POSITION) == pytest.approx(0.11, abs=0.04)
    for kind, share in ((BALANCE, 0.005), (DAILY, 0.001)):
        asked = sum(np.count_nonzero(step["type"] == kind) for step in whole[1])
        assert asked / sum(counts.values()) / 30 == pytest.approx(share, rel=0.1)


def test_rows_are_what_the_benchmark_allows(whole: tuple[Road, list[Columns]]) -> None:
    last = 0
    for step in whole[1]:
        assert list(step) == list(Row._fields)
        assert (np.diff(step["time"]) >= 0).all()
        assert step["time"][0] >= last
        last = int(step["time"][-1])
        is_report = step["type"] == POSITION
        report = {name: values[is_report] for name, values in step.items()}
        assert (report["seg"] == report["pos"] // MILE).all()
        for name, limit in (("spd", 100), ("lane", 4), ("dir", 1), ("seg", 99)):
            assert 0 <= report[name].min() <= report[name].max() <= limit


def test_some_cars_come_back(whole: tuple[Road, list[Columns]]) -> None:
    exits = {vid for step in whole[1][:60] for vid in step["vid"][step["lane"] == EXIT].tolist()}
    later = {vid for step in whole[1][60:] for vid in step["vid"].tolist()}
    assert 0.6 * COMES_BACK < len(exits & later) / len(exits) <= COMES_BACK * 1.2


def test_a_car_reports_every_thirty_seconds_and_does_not_turn() -> None:
    for reports in by_car(rows([Road(0, SMALL)], 1200)).values():
        trips: dict[int, list[Row]] = defaultdict(list)
        for row in reports:
            trips[row.time % 30].append(row)
        for trip in trips.values():
            assert len({row.dir for row in trip if row.time < trip[0].time + 900}) == 1
            assert all(later.time - row.time == 30 or later.time - row.time >= 900 for row, later in pairwise(trip))


@pytest.mark.parametrize("wrong", [Options(), Options(gaps=0.02, duplicates=0.05, noise=0.5)])
def test_accidents_are_those_that_the_generator_knows(wrong: Options) -> None:
    options = replace(wrong, traffic=0.05, accidents=1 / 60)
    road = Road(0, options)
    answers = check(rows([road], 1800))
    known = {((one.xway, one.dir, one.lane, one.pos), (one.begin, one.end)) for one in road.truth if one.end < 1740}
    assert len(known) > 5
    assert {one for one in answers.accidents if one[1][1] < 1740} == known


def test_what_is_wrong_is_there_if_asked_for() -> None:
    def seen(options: Options) -> tuple[int, int, int]:
        given = rows([Road(0, replace(options, traffic=0.02))], 900)
        reports = [row for row in given if row.type == POSITION]
        doubled = len(reports) - len({(row.time, row.vid) for row in reports})
        left: set[int] = set()
        noise = 0
        for row in reports:
            noise += row.vid in left and row.lane != ENTRY
            left |= {row.vid} if row.lane == EXIT else set()
        return len(reports), doubled, noise

    plain = seen(Options())
    assert plain[1:] == (0, 0)
    assert seen(Options(gaps=0.1))[0] < 0.95 * plain[0]
    assert seen(Options(duplicates=0.1))[1] > 0.05 * plain[0]
    assert seen(Options(noise=1.0))[2] > 10


def test_files_hold_the_same_rows_and_roads_are_copied_under_other_numbers(tmp_path: Path) -> None:
    written = write(tmp_path / "in", [Road(0, SMALL), Road(1, SMALL)], total=3, start=60, end=120, seconds=5)
    assert [path.name for path in written] == [f"{second:05d}.parquet" for second in range(60, 120, 5)]
    frame = pl.concat([pl.read_parquet(path) for path in written])
    expected = [row for row in rows([Road(0, SMALL), Road(1, SMALL)], 120) if row.time >= 60]
    first = frame.filter(pl.col("vid") < 2 * CARS)
    assert Counter(first.iter_rows()) == Counter(tuple(row) for row in expected)
    copied = frame.filter(pl.col("vid") >= 2 * CARS)
    original = first.filter(pl.col("vid") < CARS)
    kept = ["type", "time", "spd", "lane", "dir", "pos", "day"]
    assert copied.select(kept).equals(original.select(kept))
    assert copied.filter(pl.col("type") == POSITION)["xway"].unique().to_list() == [2]
    assert not set(copied["vid"]) & set(original["vid"])


def test_history_is_the_last_report_of_every_car() -> None:
    roads = [Road(0, SMALL), Road(1, SMALL)]
    last: dict[int, Row] = {}
    for row in rows([Road(0, SMALL), Road(1, SMALL)], 600):
        if row.type == POSITION:
            last[row.vid] = row
    copied = [row._replace(vid=row.vid + 2 * CARS, xway=2) for row in last.values() if row.xway == 0]
    found = history(roads, 3, 600)
    assert found["time"].is_sorted()
    assert Counter(found.iter_rows()) == Counter(tuple(row) for row in [*last.values(), *copied])
