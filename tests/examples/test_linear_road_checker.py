"""Linear Road's rules, as the checker has them: the worked example, and each border by hand."""

from __future__ import annotations

import pytest

from examples.linear_road.checker import Statistics, accidents, by_car, check, of_trips
from examples.linear_road.rows import MILE, Row, daily, position
from tests.examples.small_roads import example

PLACE = 0, 2, 0, 70_000  # road, lane, direction, feet


def report(time: int, car: int, lane: int = 2, pos: int = 70_000, spd: int = 30, road: int = 0, dir: int = 0) -> Row:
    return position(time, car, spd, road, lane, dir, pos)


def kept(rows: list[Row]) -> list[tuple[int, bool]]:
    """The times of the reports that belong to trips, and which of them begin one; of one car."""
    (reports,) = by_car(rows).values()
    return [(report.row.time, report.begins) for report in of_trips(reports)]


def stands(*cars: list[Row]) -> list[tuple[int, int]]:
    """When there are accidents, in order."""
    rows = [row for reports in cars for row in reports]
    trips = {car: list(of_trips(reports)) for car, reports in by_car(rows).items()}
    return sorted(span for _, span in accidents(trips))


def test_the_worked_example() -> None:
    answers = check(example())
    first = {*range(1, 61), 100, 901, 902}
    told = {(car, time): (lav, toll) for car, time, lav, toll in answers.notifications}
    assert len(answers.notifications) == len(told) == 68
    assert {
        (101, 60): (30, 242),
        (101, 90): (0, 0),
        (100, 85): (0, 0),
        (102, 120): (26, 0),
        (103, 180): (26, 0),
    }.items() <= told.items()
    assert {car for car, time in told if told[car, time] == (0, 0)} == first | {101}
    assert answers.alerts == [(120, 0, 13, 0, 102)]
    assert answers.charges == [(101, 90, 242)]
    assert sorted(answers.balances) == [(60, 60, 7, 0), (90, 90, 8, 242)]
    assert answers.accidents == [((0, 0, 2, 70_000), (91, 125))]
    trips = {car: list(of_trips(reports)) for car, reports in by_car(example()).items()}
    statistics = Statistics(report for reports in trips.values() for report in reports)
    found = [(statistics.cars(minute - 1, (0, 0, 10)), statistics.lav(minute, (0, 0, 10))) for minute in (2, 3, 4)]
    assert found == [(61, 30), (53, 26), (1, 26)]


def test_the_order_of_the_rows_does_not_matter() -> None:
    forwards, backwards = check(example()), check(example()[::-1])
    for name in ("notifications", "alerts", "balances", "daily", "charges", "accidents"):
        assert sorted(getattr(forwards, name)) == sorted(getattr(backwards, name))


@pytest.mark.parametrize(
    ("lanes", "times", "expected"),
    [
        ((0, 0, 1), (0, 30, 60), [(0, True), (30, False), (60, False)]),
        ((2, 0, 1), (0, 30, 60), [(0, True), (30, True), (60, False)]),  # from elsewhere onto the entry lane
        ((0, 0), (0, 60), [(0, True), (60, False)]),
        ((0, 0), (0, 61), [(0, True), (61, True)]),  # silent for more than a minute, and on the entry lane
        ((2, 2), (0, 61), [(0, True), (61, False)]),
        ((4, 2, 0), (0, 30, 60), [(60, True)]),  # an exit without a trip
        ((0, 4, 2, 4, 0), (0, 30, 37, 60, 90), [(0, True), (30, False), (90, True)]),  # noise after an exit
        ((0, 4, 4, 2), (0, 30, 60, 90), [(0, True), (30, False)]),
    ],
)
def test_trips(lanes: tuple[int, ...], times: tuple[int, ...], expected: list[tuple[int, bool]]) -> None:
    assert kept([report(time, 1, lane) for lane, time in zip(lanes, times, strict=True)]) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([report(time, 1) for time in (0, 30, 60, 90)], (90, 150)),
        ([report(time, 1) for time in (0, 60, 120, 180)], (180, 240)),
        ([report(time, 1) for time in (0, 30, 60, 121, 151)], None),  # one gap is a second too long
        ([report(time, 1) for time in (0, 30, 60)], None),
        ([report(time, 1) for time in (0, 30, 60, 90)] + [report(100, 1, pos=70_001)], (90, 100)),
        ([report(time, 1) for time in (0, 30, 60, 90)] + [report(100, 1, lane=3)], (90, 100)),
        ([report(time, 1) for time in (0, 30, 60, 90)] + [report(100, 1, lane=4)], (90, 100)),
        ([report(time, 1, lane=0) for time in (0, 30, 60, 90)], None),  # not on a travel lane
        ([report(time, 1, spd=60) for time in (0, 30, 60, 90, 120)], (90, 180)),  # whatever speed it says
    ],
)
def test_a_car_stands_from_its_fourth_report_on(rows: list[Row], expected: tuple[int, int] | None) -> None:
    other = [report(time, 2) for time in range(-90, 300, 30)]
    assert stands(rows, other) == ([] if expected is None else [expected])


def test_of_three_cars_two_are_enough() -> None:
    leaves = [
        [report(time, car) for time in range(0, end, 30)] + [report(end, car, pos=1)]
        for car, end in ((1, 150), (2, 210), (3, 270))
    ]
    assert stands(*leaves) == [(90, 210)]


def test_an_accident_counts_at_the_last_second_before_a_minute() -> None:
    def alerted(end: int, at: int, begin: int = 0) -> bool:
        pair = [report(begin + time, car) for car in (1, 2) for time in (0, 10, 20, 29)]
        pair += [report(end, 1, pos=70_001), report(begin + 50, 1), report(begin + 50, 2)]
        return bool(check([*pair, report(at, 3, pos=69_000)]).alerts)

    assert alerted(end=60, at=60)
    assert alerted(end=60, at=119)  # for the whole minute, though it is over
    assert not alerted(end=60, at=120)
    assert not alerted(end=59, at=60)  # over at the last second itself
    assert not alerted(end=120, at=61, begin=31)  # begins at the minute's first second
    assert not alerted(end=200, at=59)
    assert alerted(end=61, at=60, begin=30)


@pytest.mark.parametrize(
    ("dir", "seg", "distance", "warned"),
    [
        *((dir, 20, distance, distance in (0, 4)) for dir in (0, 1) for distance in (0, 4, 5, -1)),
        *((0, 99, 4, True), (1, 0, 4, True)),
    ],
)
def test_an_accident_is_near_in_five_segments(dir: int, seg: int, distance: int, warned: bool) -> None:
    pair = [report(time, car, pos=seg * MILE, dir=dir) for car in (1, 2) for time in (0, 10, 20, 30)]
    from_there = seg - distance if dir == 0 else seg + distance
    answers = check([*pair, report(61, 3, pos=from_there * MILE, dir=dir)])
    assert answers.alerts == ([(61, 0, seg, dir, 3)] if warned else [])


def test_of_two_accidents_the_nearest_is_named() -> None:
    def two(seg: int, first: int) -> list[Row]:
        return [report(time, first + car, pos=seg * MILE) for car in (1, 2) for time in (0, 10, 20, 30)]

    assert check([*two(22, 10), *two(24, 20), report(61, 3, pos=20 * MILE)]).alerts == [(61, 0, 22, 0, 3)]


@pytest.mark.parametrize(("cars", "speed", "toll"), [(50, 39, 0), (51, 39, 2), (61, 39, 242), (61, 40, 0)])
def test_tolls(cars: int, speed: int, toll: int) -> None:
    crowd = [report(0, 100 + car, spd=speed) for car in range(cars)]
    (told,) = [row for row in check([*crowd, report(60, 1)]).notifications if row[0] == 1]
    assert told == (1, 60, speed, toll)


def test_a_mean_of_39_and_a_half_is_no_congestion() -> None:
    crowd = [report(0, 100 + car, spd=39 + car % 2) for car in range(60)]
    assert (1, 60, 40, 0) in check([*crowd, report(60, 1)]).notifications


def test_means_of_the_papers_formulas() -> None:
    """Cars count alike, however many reports they have, and so do minutes, however many cars they have."""
    reports = [report(0, 1, spd=10), report(30, 1, spd=20), report(0, 2, spd=40)]  # a minute of 15 and 40: 27.5
    reports += [report(60, 3, spd=30)]
    trips = {car: list(of_trips(own)) for car, own in by_car(reports).items()}
    kept = [each for own in trips.values() for each in own]
    place = (0, 0, 70_000 // MILE)
    assert Statistics(kept).lav(3, place) == 25  # (10 + 20 + 40 + 30) / 4
    assert Statistics(kept, "paper").lav(3, place) == 29  # 28.75
    assert Statistics(kept, "paper").lav(2, place) == 28  # 27.5
    assert Statistics(kept, "paper").lav(7, place) == 30  # the first minute is no longer one of the five
    assert Statistics(kept, "paper").lav(8, place) == 0
    assert Statistics(kept, "paper").cars(1, place) == 2


def test_minutes_of_segments_are_counted() -> None:
    crowd = [report(0, 100 + car, pos=68_700) for car in range(60)]
    pair = [report(time, car, pos=70_000) for car in (1, 2) for time in (0, 10, 20, 30)]
    # Of segment 13 there are 62 cars in the first minute, and an accident at its end; three segments before, one car.
    alone = report(5, 3, pos=52_900)
    minutes = check([*crowd, *pair, alone]).minutes
    assert minutes == (2, 1, 2, 1)


def test_a_toll_is_charged_on_entering_another_segment_of_the_same_trip() -> None:
    def charged(*then: Row) -> list[tuple[int, int, int]]:
        crowd = [report(0, 100 + car) for car in range(60)]
        return check([*crowd, report(60, 1), *then]).charges

    assert charged() == []
    assert charged(report(90, 1, pos=70_100)) == []  # still there
    assert charged(report(90, 1, lane=4)) == []  # leaves in it
    assert charged(report(90, 1, pos=75_000)) == [(1, 90, 200)]
    assert charged(report(90, 1, lane=4, pos=75_000)) == [(1, 90, 200)]
    assert charged(report(90, 1, lane=0, pos=75_000)) == []  # another trip
    assert charged(report(90, 1, road=1)) == [(1, 90, 200)]


def test_of_reports_of_one_second_the_least_counts() -> None:
    again = [report(0, 1, pos=70_000), report(0, 1, pos=60_000), report(30, 1, pos=60_000)]
    assert [(car, time) for car, time, _, _ in check(again).notifications] == [(1, 0)]


def test_daily_expenditure() -> None:
    rows = [daily(5, 3, 1, 9, 20), daily(5, 3, 1, 9, 20)]
    assert check(rows).daily == [(5, 9, (3 * 7919 + 20 * 104_729 + 1_299_709) % 100)]
    assert check(rows, {(3, 20, 1): 45}).daily == [(5, 9, 45)]
    assert check(rows, {}).daily == [(5, 9, 0)]
