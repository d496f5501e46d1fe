"""The answers of Linear Road in plain Python, rule by rule, over all rows at once: slow, and shares nothing with the
queries that it judges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from examples.linear_road.rows import (
    BALANCE,
    DAILY,
    EAST,
    ENTRY,
    EXIT,
    MILE,
    MILLION,
    POSITION,
    SEGMENTS,
    Lav,
    Row,
    history,
)

Segment = tuple[int, int, int]  # road, direction, number
Place = tuple[int, int, int, int]  # road, direction, lane, feet
Span = tuple[int, int]  # from, and up to before
History = Mapping[tuple[int, int, int], int]  # toll by car, day and road


class Kept(NamedTuple):
    """A report that belongs to a trip, and whether it is the first one of it."""

    row: Row
    begins: bool

    @property
    def segment(self) -> Segment:
        return self.row.xway, self.row.dir, self.row.seg


class Minutes(NamedTuple):
    """How many minutes of segments follow one with reports, and how many of these were congested, had an accident near,
    or both.
    """

    all: int = 0
    congested: int = 0
    blocked: int = 0
    both: int = 0


@dataclass
class Answers:
    """Four bags, and what they were made of."""

    notifications: list[tuple[int, int, int, int]] = field(default_factory=list)  # car, time, lav, toll
    alerts: list[tuple[int, int, int, int, int]] = field(default_factory=list)  # time, road, segment, direction, car
    balances: list[tuple[int, int, int, int]] = field(default_factory=list)  # time, time of the result, qid, balance
    daily: list[tuple[int, int, int]] = field(default_factory=list)  # time, qid, sum
    charges: list[tuple[int, int, int]] = field(default_factory=list)  # car, time, toll
    accidents: list[tuple[Place, Span]] = field(default_factory=list)
    minutes: Minutes = field(default_factory=Minutes)


class Statistics:
    """Of each minute and segment: different cars, sum of the speeds, and number of the reports, car by car."""

    def __init__(self, reports: Iterable[Kept], lav: Lav = "reports") -> None:
        self._lav = lav
        self._lavs: dict[tuple[int, Segment], int] = {}
        self._sums: dict[tuple[int, Segment], dict[int, tuple[int, int]]] = defaultdict(dict)
        for report in reports:
            of_cars = self._sums[minute(report.row.time), report.segment]
            speed, count = of_cars.get(report.row.vid, (0, 0))
            of_cars[report.row.vid] = speed + report.row.spd, count + 1

    def cars(self, number: int, segment: Segment) -> int:
        return len(self._sums.get((number, segment), ()))

    def lav(self, number: int, segment: Segment) -> int:
        """The mean speed of the five minutes before, halves rounded up; 0 where there are no reports.

        It is that of all reports. By the paper's formulas it is the mean of the minutes with reports, of each the mean
        of its cars, of each the mean of its reports.
        """
        place = number, segment
        if place not in self._lavs:
            self._lavs[place] = self._mean_before(number, segment)
        return self._lavs[place]

    def _mean_before(self, number: int, segment: Segment) -> int:
        before = [self._sums.get((earlier, segment), {}).values() for earlier in range(number - 5, number)]
        if self._lav == "paper":
            means = [sum(MILLION * speed // count for speed, count in cars) // len(cars) for cars in before if cars]
            speed, reports = sum(means), MILLION * len(means)
        else:
            speed = sum(speed for cars in before for speed, _ in cars)
            reports = sum(count for cars in before for _, count in cars)
        return (2 * speed + reports) // (2 * reports) if reports else 0

    def congested(self, number: int, segment: Segment) -> bool:
        """Whether a toll is due in a minute, if no accident is near."""
        return self.cars(number - 1, segment) > 50 and self.lav(number, segment) < 40

    def minutes(self, blocked: set[tuple[int, Segment]]) -> Minutes:
        """How many minutes follow one with reports, and what they were like."""
        after = [(number + 1, segment) for number, segment in self._sums]
        congested = {each for each in after if self.congested(*each)}
        near = {(number, segment) for number, segment in after if ahead(number, segment, blocked) is not None}
        return Minutes(len(after), len(congested), len(near), len(congested & near))


def check(rows: Iterable[Row], tolls: History | None = None, lav: Lav = "reports") -> Answers:
    """All answers to these rows, in whatever order they stand; `tolls` are those of days before."""
    given = without_duplicates(rows)
    trips = {car: list(of_trips(reports)) for car, reports in by_car(given).items()}
    statistics = Statistics((report for reports in trips.values() for report in reports), lav)
    answers = Answers(accidents=accidents(trips))
    blocked = blocked_minutes(answers.accidents)
    answers.minutes = statistics.minutes(blocked)
    for car, reports in trips.items():
        drive(car, reports, statistics, blocked, answers)
    answer_questions(given, tolls, answers)
    return answers


def minute(time: int) -> int:
    """The number of a minute, from 1 on."""
    return time // 60 + 1


def without_duplicates(rows: Iterable[Row]) -> list[Row]:
    """One row of each type, time, car and question: the least by road, direction, position, lane, speed and day."""
    best: dict[tuple[int, int, int, int], Row] = {}
    for row in rows:
        key = row.type, row.time, row.vid, row.qid
        if key not in best or _order(row) < _order(best[key]):
            best[key] = row
    return list(best.values())


def _order(row: Row) -> tuple[int, ...]:
    return row.xway, row.dir, row.seg, row.pos, row.lane, row.spd, row.day


def by_car(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """The reports of each car, in order of time."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row.type == POSITION:
            found[row.vid].append(row)
    for reports in found.values():
        reports.sort(key=lambda row: row.time)
    return found


def of_trips(reports: Iterable[Row]) -> Iterator[Kept]:
    """The reports of a car that belong to a trip: those after an exit are noise until it enters again."""
    previous: Row | None = None
    travels = False
    for report in reports:
        if previous is None:
            begins = report.lane != EXIT
        else:
            begins = report.lane == ENTRY and (previous.lane != ENTRY or report.time - previous.time > 60)
        if travels or begins:
            yield Kept(report, begins)
            travels = report.lane != EXIT
        previous = report


def stops(reports: Iterable[Kept]) -> Iterator[tuple[Place, Span]]:
    """Where and when a car stands: from its fourth report in a row from one place on, until it reports from elsewhere,
    and for 60 seconds after a report at most.
    """
    place: Place | None = None
    times: list[int] = []
    for report, _ in reports:
        here = (report.xway, report.dir, report.lane, report.pos) if report.lane not in (ENTRY, EXIT) else None
        if here is None or here != place or report.time - times[-1] > 60:
            yield from _stop(place, times, report.time)
            place, times = here, []
        times.append(report.time)
    yield from _stop(place, times, None)


def _stop(place: Place | None, times: list[int], left: int | None) -> Iterator[tuple[Place, Span]]:
    if place is not None and len(times) >= 4:
        end = times[-1] + 60
        yield place, (times[3], end if left is None else min(left, end))


def accidents(trips: Mapping[int, list[Kept]]) -> list[tuple[Place, Span]]:
    """Where and when at least two cars stand at one place."""
    standing: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for reports in trips.values():
        for place, (begin, end) in stops(reports):
            standing[place] += [(begin, 1), (end, -1)]
    found = []
    for place, changes in standing.items():
        net: Counter[int] = Counter()
        for time, change in changes:
            net[time] += change
        cars = since = 0
        for time in sorted(net):
            before, cars = cars, cars + net[time]
            if before < 2 <= cars:
                since = time
            elif cars < 2 <= before:
                found.append((place, (since, time)))
    return found


def blocked_minutes(found: Iterable[tuple[Place, Span]]) -> set[tuple[int, Segment]]:
    """The minutes and segments with an accident: with one that lasts at the last second before the minute."""
    blocked = set()
    for (road, direction, _, feet), (begin, end) in found:
        for number in range(minute(begin), minute(end) + 1):
            if begin <= 60 * (number - 1) - 1 < end:
                blocked.add((number, (road, direction, feet // MILE)))
    return blocked


def ahead(number: int, segment: Segment, blocked: set[tuple[int, Segment]]) -> int | None:
    """The nearest segment with an accident: this one, or one of the four that come next."""
    road, direction, own = segment
    for distance in range(5):
        other = own + distance if direction == EAST else own - distance
        if 0 <= other < SEGMENTS and (number, (road, direction, other)) in blocked:
            return other
    return None


def drive(
    car: int, reports: list[Kept], statistics: Statistics, blocked: set[tuple[int, Segment]], answers: Answers
) -> None:
    """What a car is told where it enters segments, and what it is charged where it leaves them for others."""
    told: int | None = None
    before: Segment | None = None
    for report in reports:
        time, segment = report.row.time, report.segment
        if report.begins or segment != before:
            if told and not report.begins:
                answers.charges.append((car, time, told))
            told = None
            if report.row.lane != EXIT:
                number = minute(time)
                lav, accident = statistics.lav(number, segment), ahead(number, segment, blocked)
                free = accident is not None or not statistics.congested(number, segment)
                told = 0 if free else 2 * (statistics.cars(number - 1, segment) - 50) ** 2
                answers.notifications.append((car, time, lav, told))
                if accident is not None:
                    answers.alerts.append((time, segment[0], accident, segment[1], car))
        before = segment


def answer_questions(given: Iterable[Row], tolls: History | None, answers: Answers) -> None:
    """What a car has been charged up to this second, and what it paid on a day before."""
    charged: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for car, time, toll in answers.charges:
        charged[car].append((time, toll))
    for row in given:
        if row.type == BALANCE:
            owed = sum(toll for time, toll in charged.get(row.vid, ()) if time <= row.time)
            answers.balances.append((row.time, row.time, row.qid, owed))
        elif row.type == DAILY:
            key = row.vid, row.day, row.xway
            answers.daily.append((row.time, row.qid, history(*key) if tolls is None else tolls.get(key, 0)))
