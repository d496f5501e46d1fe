"""Linear Road in the small: the worked example, streams full of borders, and programs that are driven over them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from examples.linear_road.checker import Answers
from examples.linear_road.rows import EXIT, MILE, Row, balance, daily, position

Bags = Mapping[str, Counter[tuple[int, ...]]]


def example() -> list[Row]:
    """Sixty cars crowd into segment 10, two collide in segment 13, and three enter segment 10 at minutes' borders."""
    rows = [position(0, car, 30, 0, 1, 0, 52_800) for car in range(1, 61)]
    rows += [position(70, car, 20, 0, 1, 0, 53_000) for car in range(1, 53)]
    rows += [position(time, 901, 0, 0, 2, 0, 70_000) for time in (0, 30, 60, 90)]
    rows += [position(time, 902, 0, 0, 2, 0, 70_000) for time in (1, 31, 61, 91)]
    rows += [
        position(55, 100, 50, 0, 0, 0, 53_000),
        position(85, 100, 60, 0, 1, 0, 58_100),
        position(60, 101, 50, 0, 1, 0, 52_900),
        position(90, 101, 50, 0, 1, 0, 58_100),
        position(120, 101, 50, 0, 4, 0, 63_400),
        position(120, 102, 50, 0, 1, 0, 52_900),
        position(125, 901, 40, 0, 2, 0, 70_100),
        position(180, 103, 50, 0, 1, 0, 52_900),
        balance(60, 101, 7),
        balance(90, 101, 8),
    ]
    return rows


def borders(seed: int, cars: int = 10, minutes: int = 12) -> list[Row]:
    """A stream in which what rules tell apart is frequent: same places, gaps of 59 to 61 seconds, minutes' last and
    first seconds, exits and entries, segments at both ends of a road, doubled reports, crowds.
    """
    rng = random.Random(seed)
    road, end = (rng.randrange(2), rng.randrange(2)), rng.choice(((0, 1, 3, 5), (94, 95, 98, 99)))
    places = [(*road, segment * MILE + 7) for segment in rng.sample(end, 3)]
    places.append((rng.randrange(2), rng.randrange(2), rng.choice(end) * MILE + 7))
    rows: list[Row] = []
    for car in range(cars):
        time, here = rng.choice((0, 1, 29, 59)), rng.choice(places)
        while time < 60 * minutes:
            if rng.random() < 0.25:
                here = rng.choice(places)
            lane = rng.choice((0, 1, 2, 2, 2, 2, 2, 2, 4)) if rng.random() < 0.3 else 2
            rows.append(position(time, car, rng.randrange(30, 50), here[0], lane, here[1], here[2]))
            rows += _doubled(rng, rows[-1])
            rows += _questions(rng, time, car, len(rows))
            time += rng.choice((1, 10, 20, 29, 30, 30, 30, 30, 31, 59, 60, 61))
            time = rng.choice((time, time, time, max(time // 60 * 60, rows[-1].time + 1)))
    for number in range(rng.randrange(4)):
        rows += _crowd(rng, 1000 * (number + 1), rng.choice(places), rng.randrange(60 * minutes))
    rng.shuffle(rows)
    return rows


def many_borders(seeds: range, minutes: int = 12) -> list[Row]:
    """Streams of several seeds side by side, each with roads, cars and questions of its own."""
    found = []
    for number, seed in enumerate(seeds):
        for row in borders(seed, minutes=minutes):
            road = row.xway if row.xway < 0 else row.xway + 2 * number
            question = row.qid if row.qid < 0 else row.qid + 10_000 * number
            found.append(row._replace(vid=row.vid + 10_000 * number, xway=road, qid=question))
    return found


def _doubled(rng: random.Random, row: Row) -> list[Row]:
    if rng.random() < 0.9:
        return []
    return [
        row._replace(pos=row.pos + rng.choice((-1, 0, 1)), lane=rng.randrange(EXIT + 1), spd=rng.choice((40, row.spd)))
    ]


def _questions(rng: random.Random, time: int, car: int, number: int) -> list[Row]:
    at = max(0, time + rng.choice((-1, 0, 1)))
    asked = [balance(at, car, number), daily(at, car, rng.randrange(2), number, rng.randrange(1, 70))]
    return rng.choices(asked, k=rng.randrange(3)) if rng.random() < 0.3 else []


def _crowd(rng: random.Random, first: int, place: tuple[int, int, int], time: int) -> list[Row]:
    """About as many cars as make a toll, at about the speed that makes one."""
    speed = rng.choice((38, 39, 39, 40))
    size = rng.choice((50, 51, 52, 60))
    crowd = [position(time, first + car, speed, place[0], 1, place[1], place[2]) for car in range(size)]
    return crowd + [row._replace(time=row.time + 1, spd=speed + car % 2) for car, row in enumerate(crowd) if car % 3]


def bags(answers: Answers) -> Bags:
    """The checker's answers by the names that the queries have."""
    return {
        "Notifications": Counter(answers.notifications),
        "Alerts": Counter(answers.alerts),
        "Balances": Counter((time, qid, owed) for time, _, qid, owed in answers.balances),
        "Daily": Counter(answers.daily),
        "Charges": Counter(answers.charges),
    }


def in_disorder(rows: Sequence[Row], seed: int) -> list[tuple[list[Row], int]]:
    """The rows in batches of any size, within which and between which they may be late, and up to where they are all
    there after each batch.
    """
    rng, waiting = random.Random(seed), sorted(rows, key=lambda row: row.time)
    batches = []
    while waiting:
        reach = rng.choice((1, 5, 50, 200))
        front, rest = waiting[: reach * 2], waiting[reach * 2 :]
        rng.shuffle(front)
        batch, late = front[:reach], front[reach:]
        waiting = sorted(late + rest, key=lambda row: row.time)
        batches.append((batch, min((row.time for row in waiting), default=10**6) - 1))
    return batches


def in_contexts(right: Answers) -> Bags:
    """The answers that are said in contexts: tolls above 0, and alerts."""
    tolls: Counter[tuple[int, ...]] = Counter((car, time, toll) for car, time, _, toll in right.notifications if toll)
    return {"Tolls": tolls, "Alerts": Counter(right.alerts)}
