"""A seeded generator of Linear Road's input: any number of roads, and accidents whose truth it knows.

A road of its own has a generator of random numbers of its own, so that road 3 is the same road beside two others and
beside two hundred. All cars of a road move together, a report each, in steps of thirty seconds: a car reports in each
step at the second at which it entered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.linear_road.rows import (
    BALANCE,
    DAILY,
    DURATION,
    EAST,
    ENTRY,
    EXIT,
    MILE,
    PERIOD,
    POSITION,
    SEGMENTS,
    Row,
)

Array = NDArray[Any]
Columns = Mapping[str, Array]

FEET = 44  # that a car goes in a step for each mile an hour
RAMP, FREE, BUSY, SLOW = 20, 65, 47, 22  # miles an hour: entering, alone, in traffic, beside an accident
SPREAD = 4.5  # miles an hour, by which cars differ from these
FEW, MANY = 40, 120  # cars of a segment from which on traffic slows down, and with which it goes with BUSY
COMES_BACK, AWAY, LONGER = 0.1, 900, 600  # share of the cars that leave; seconds at least, and more in the mean
LATER = 7  # seconds after its exit a car still reports
CARS, QUESTIONS = 500_000, 10_000_000  # of a road; more than it ever has
TYPES = {"time": np.int32, "vid": np.int32, "pos": np.int32, "qid": np.int64, "seg": np.int8, "xway": np.int16}


@dataclass(frozen=True, slots=True)
class Options:
    """How roads are; the shares of what is wrong are 0, as with the public generator."""

    seed: int = 1
    traffic: float = 1.0  # 1 is what the benchmark asks for: up to 41 new cars a second and road
    stretch: tuple[int, int] = (0, SEGMENTS)  # where cars drive: segments of both directions; for small roads
    accidents: float = 1 / 1600  # a second and road
    breakdowns: float = 1 / 400  # a second and road, of one car alone
    bottlenecks: int = 6  # segments of a road in which traffic is slow for a while
    balances: float = 0.005  # questions per report
    dailies: float = 0.001
    noise: float = 0.0  # share of the cars that still report after they have left
    gaps: float = 0.0  # share of the reports that are lost
    duplicates: float = 0.0  # share of the reports that come twice, and say something else


class Accident(NamedTuple):
    """Two cars stand at one place from `begin` up to before `end`."""

    xway: int
    dir: int
    lane: int
    pos: int
    begin: int
    end: int


def new_cars(until: float) -> float:
    """How many cars have entered a road for the first time, `until` seconds after the beginning."""
    wave = DURATION / math.pi * (1 - math.cos(math.pi * until / DURATION))
    return 20 * (1.06 * until + wave)


@dataclass
class Road:
    """One expressway with both directions. `steps` are its rows; `truth` grows as accidents happen."""

    number: int
    options: Options = field(default_factory=Options)
    truth: list[Accident] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng([self.options.seed, self.number])
        self._cars = {name: np.empty(0, np.int32) for name in ("vid", "phase", "dir", "pos", "exit", "lane", "spd")}
        self._cars |= {"ramp": np.empty(0, np.int32), "stands": np.empty(0, np.int32)}
        self._known = self._questions = 0
        self._returns: list[tuple[Array, Array]] = []
        random, stretch = self._random, self.options.stretch
        self._bottlenecks = [
            (int(random.integers(2)), int(random.integers(*stretch)), begin, begin + int(random.integers(600, 1800)))
            for begin in random.integers(0, DURATION, self.options.bottlenecks).tolist()
        ]

    def steps(self, end: int = DURATION) -> Iterator[Columns]:
        """The rows of each step of thirty seconds, in order of time."""
        for start in range(0, end, PERIOD):
            self._move(start)
            self._enter(start, min(start + PERIOD, end))
            self._stop(start)
            yield self._rows(start, end)
            self._leave(start)

    def _move(self, start: int) -> None:
        cars, random = self._cars, self._random
        count = len(cars["vid"])
        cars["stands"] = np.maximum(cars["stands"] - 1, 0)
        stands = cars["stands"] > 0
        segment = cars["pos"] // MILE
        place = cars["dir"] * SEGMENTS + segment
        within = np.bincount(place, minlength=2 * SEGMENTS)
        mean = np.interp(within, [FEW, MANY], [FREE, BUSY])
        slow = np.bincount(place[stands], minlength=2 * SEGMENTS) > 1
        for direction, number, begin, end in self._bottlenecks:
            slow[direction * SEGMENTS + number] |= begin <= start < end
        mean[slow] = SLOW
        cars["ramp"] = np.maximum(cars["ramp"] - 1, 0)
        enters = cars["ramp"] > 0
        noise = random.normal(0, SPREAD, count)
        speed = np.where(enters, RAMP, mean[place]) + noise
        speed = np.clip(np.rint(speed), 5, 100).astype(np.int32)
        cars["lane"] = np.where(enters, ENTRY, np.where(stands, cars["lane"], random.integers(1, EXIT, count)))
        moved = np.where(stands, 0, speed * FEET)
        east = cars["dir"] == EAST
        position = cars["pos"] + np.where(east, moved, -moved)
        first, last = cars["exit"] * MILE, cars["exit"] * MILE + MILE - 1
        leaves = ~enters & ~stands & np.where(east, position >= first, position <= last)
        position = np.where(east, np.minimum(position, last), np.maximum(position, first))
        cars["pos"] = position.astype(np.int32)
        cars["spd"] = np.where(stands, 0, np.where(leaves, 10, speed)).astype(np.int32)
        cars["lane"] = np.where(leaves, EXIT, cars["lane"]).astype(np.int32)

    def _enter(self, start: int, end: int) -> None:
        vids, phases = [], []
        for time in range(start, end):
            until = int(self.options.traffic * new_cars(time + 1))
            vids.append(np.arange(self._known, until) + self.number * CARS)
            phases.append(np.full(until - self._known, time - start))
            self._known = until
        waiting = []
        for vid, back in self._returns:
            now = back < start + PERIOD
            vids.append(vid[now])
            phases.append(back[now] - start)
            if not now.all():
                waiting.append((vid[~now], back[~now]))
        self._returns = waiting
        vid, phase = np.concatenate(vids), np.concatenate(phases)
        count, random = len(vid), self._random
        first, after = self.options.stretch
        segment = random.integers(first, after, count)
        direction = random.integers(0, 2, count)
        room = np.where(direction == EAST, after - 1 - segment, segment - first)
        way = 1 + np.floor(random.random(count) * room).astype(np.int32)
        way = np.minimum(way, room)
        east = direction == EAST
        new = {
            "vid": vid,
            "phase": phase,
            "dir": direction,
            "pos": np.where(east, segment * MILE, segment * MILE + MILE - 1),
            "exit": np.where(east, segment + way, segment - way),
            "lane": np.full(count, ENTRY),
            "spd": np.full(count, 10),
            "ramp": random.integers(4, 8, count),
            "stands": np.zeros(count),
        }
        self._cars = {name: np.concatenate((self._cars[name], new[name].astype(np.int32))) for name in new}

    def _stop(self, start: int) -> None:
        """Cars that stand from this step on: two at one place, or one alone."""
        random, cars = self._random, self._cars
        for _ in range(random.poisson(self.options.breakdowns * PERIOD)):
            able = np.flatnonzero(self._able())
            if len(able):
                self._stand(able[random.integers(len(able), size=1)])
        for _ in range(random.poisson(self.options.accidents * PERIOD)):
            able = np.flatnonzero(self._able())
            if not len(able):
                continue
            one = able[random.integers(len(able))]
            near = (cars["dir"][able] == cars["dir"][one]) & (cars["pos"][able] // MILE == cars["pos"][one] // MILE)
            others = able[near & (able != one)]
            if len(others):
                pair = np.array([one, others[random.integers(len(others))]])
                ahead = np.argmax(cars["pos"][pair]) if cars["dir"][one] == EAST else np.argmin(cars["pos"][pair])
                for name in ("pos", "lane"):
                    cars[name][pair] = cars[name][pair[ahead]]
                self._crash(start, pair, self._stand(pair))

    def _able(self) -> Array:
        lane = self._cars["lane"]
        able: Array = (lane != ENTRY) & (lane != EXIT) & (self._cars["stands"] == 0)
        return able

    def _stand(self, which: Array) -> int:
        steps = int(self._random.integers(2, 25))
        self._cars["stands"][which] = steps
        self._cars["spd"][which] = 0
        return steps

    def _crash(self, start: int, pair: Array, steps: int) -> None:
        direction, lane, pos = (int(self._cars[name][pair[0]]) for name in ("dir", "lane", "pos"))
        phases = self._cars["phase"][pair]
        begin, end = start + 3 * PERIOD + int(phases.max()), start + steps * PERIOD + int(phases.min())
        if begin < end:
            self.truth.append(Accident(self.number, direction, lane, pos, begin, end))

    def _leave(self, start: int) -> None:
        gone = self._cars["lane"] == EXIT
        vid, phase = self._cars["vid"][gone], self._cars["phase"][gone]
        back = self._random.random(len(vid)) < COMES_BACK
        away = AWAY + self._random.exponential(LONGER, len(vid)).astype(np.int64)
        self._returns.append((vid[back], (start + phase + away)[back]))
        self._cars = {name: values[~gone] for name, values in self._cars.items()}

    def _rows(self, start: int, end: int) -> Columns:
        cars, random, options = self._cars, self._random, self.options
        count = len(cars["vid"])
        rows = {"type": np.full(count, POSITION), "time": start + cars["phase"], "seg": cars["pos"] // MILE}
        rows |= {name: cars[name] for name in ("vid", "spd", "lane", "dir", "pos")}
        rows |= {"xway": np.full(count, self.number)}
        parts = [rows]
        for share, kind in ((options.balances, BALANCE), (options.dailies, DAILY)):
            asks = np.flatnonzero(random.random(count) < share)
            qid = self.number * QUESTIONS + self._questions + np.arange(len(asks))
            self._questions += len(asks)
            part = {"type": np.full(len(asks), kind), "time": rows["time"][asks], "vid": rows["vid"][asks], "qid": qid}
            if kind == DAILY:
                part |= {"xway": np.full(len(asks), self.number), "day": random.integers(1, 70, len(asks))}
            parts.append(part)
        if options.duplicates:
            twice = np.flatnonzero(random.random(count) < options.duplicates)
            again = {name: values[twice] for name, values in rows.items()}
            changes = (again["pos"] % MILE < MILE - 1) & (random.random(len(twice)) < 0.5)
            parts.append(again | {"pos": again["pos"] + changes})
        if options.noise:
            exits = (cars["lane"] == EXIT) & (cars["phase"] < PERIOD - LATER)
            after = np.flatnonzero(exits & (random.random(count) < options.noise))
            late = {name: values[after] for name, values in rows.items()}
            parts.append(late | {"time": late["time"] + LATER, "lane": np.full(len(after), 2), "spd": late["spd"] + 30})
        if options.gaps:
            lost = (random.random(count) < options.gaps) & (cars["stands"] == 0)
            parts[0] = {name: values[~lost] for name, values in rows.items()}
        whole = {}
        for name in Row._fields:
            values = [part.get(name, np.full(len(part["vid"]), -1)) for part in parts]
            whole[name] = np.concatenate(values).astype(TYPES.get(name, np.int8))
        order = np.argsort((whole["time"] - start).astype(np.int8), kind="stable")
        order = order[: np.count_nonzero(whole["time"] < end)]
        return {name: values[order] for name, values in whole.items()}
