"""What Linear Road's queries hold in memory for each car, counted and added up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
import pytest

from benchmarks.linear_road import held_bytes
from examples.linear_road.generator import CARS as NUMBERS
from examples.linear_road.generator import new_cars
from examples.linear_road.queries import DISTANCES, program
from examples.linear_road.rows import DURATION, MILE, Row
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.connectors.sinks import DiscardSink

CARS, ROADS = 100_000, 250
#: Roads with the generator's numbers and the cars that it makes, as far as they go into a few seconds of a test: a
#: fraction of each.
FRACTION, SOME_ROADS = 20, 20
#: Seconds at which most cars are on the road, and at which all have been.
PEAK: Final = 7_100
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "linear-road.md"
#: Of a car's number: four bytes to find it, and so many more as there are numbers of no car; four for its key; one,
#: whether anything is held of it.
NUMBER: Final = 4 + 4 + 1
#: Of its last report: one byte, whether there is one; two for the instant, four for the place, one whether it stayed;
#: the instant of the report before, and whether there is one; whether a trip goes on.
REPORT: Final = 1 + 2 + 4 + 1 + (2 + 1) + 1
#: Of its last entry of a segment: one byte, whether there is one; two for the instant, one for the toll, which is 0.
ENTRY: Final = 1 + 2 + 1
#: A toll takes so many bytes more where some are not 0.
NO_TOLL: Final = 3


def reports(vids: Int64Array, time: int) -> pl.DataFrame:
    """One of each car, on the places of many roads: all of them there, and a few on the next mile a second later."""
    cars = np.arange(len(vids))
    place = (cars // ROADS + time % 2 * 53) % 100 * MILE
    rows = {name: np.full(len(vids), -1) for name in Row._fields}
    rows |= {"type": cars * 0, "time": cars * 0 + time, "vid": vids, "spd": cars % 60, "xway": cars % ROADS}
    return pl.DataFrame(rows | {"lane": cars * 0 + 2, "dir": cars % 2, "seg": place // MILE, "pos": place})


def bytes_of(vids: Int64Array, seconds: Sequence[int]) -> dict[str, float]:
    """Bytes that operators hold for each car, after all of them have reported at these seconds."""
    sinks = {query.stream: DiscardSink() for query in program.definition.queries}
    with program.session(statics={"Distances": DISTANCES}, sinks=sinks) as session:
        for time in seconds:
            session.push("Road", reports(vids, time))
            session.advance("Road", time)
            session.step()
        held = held_bytes(session)
    a_car = {name: size / len(vids) for name, size in held.items()}
    print(f"of {len(vids):,} cars: " + ", ".join(f"{name} {size:.1f} bytes" for name, size in a_car.items()))
    return a_car


def test_bytes_of_a_car() -> None:
    """A few bytes of each column: numbers are as wide as they need to be, and stand where the car's number says."""
    a_car = bytes_of(np.arange(CARS), (300, 301, 10_700))
    road, entries = a_car.pop("OnRoad"), a_car.pop("Entries")
    spare = 4 * 1.5  # numbers of no car, and some room on both sides
    assert NUMBER + REPORT <= road <= NUMBER + REPORT + spare
    assert NUMBER + ENTRY <= entries <= NUMBER + ENTRY + spare
    assert sum(a_car.values()) < 1  # of cars that stand, and of those that were charged


@pytest.mark.parametrize(("until", "cars"), [(PEAK, "64 million"), (DURATION, "94 million")])
def test_bytes_of_a_car_by_the_generators_numbers(until: int, cars: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many cars have numbers, and as many numbers have no car, as on roads of the benchmark: no more bytes than the
    page says. What is charged comes on top.
    """
    monkeypatch.setattr("tidegate.runtime.kernels.partition_numbers._SMALL_RANGE", 1024)  # such a range has more room
    known, numbers = int(new_cars(until)) // FRACTION, NUMBERS // FRACTION
    assert cars == f"{round(256 * FRACTION * known / 1e6)} million"
    vids = np.concatenate([np.arange(known) + road * numbers for road in range(SOME_ROADS)])
    said = re.search(rf"{cars} cars at (\d+) bytes", PAGE.read_text(encoding="utf-8"))
    assert said is not None
    a_car = bytes_of(vids, (until - 101, until - 100, until - 1))
    assert int(said[1]) - 1 < sum(a_car.values()) + NO_TOLL <= int(said[1])
