"""What Linear Road's queries hold in memory for each car, counted and added up."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.linear_road import held_bytes
from examples.linear_road.queries import DISTANCES, program
from examples.linear_road.rows import MILE, Row
from tidegate.runtime.connectors.sinks import DiscardSink
from tidegate.runtime.engines.embedded.session import Session

CARS, ROADS = 100_000, 250
#: Of a car's number: four bytes to find it, and so many more as there are numbers of no car; four for its key; one,
#: whether anything is held of it.
NUMBER: Final = 4 + 4 + 1
#: Of its last report: one byte, whether there is one; two for the instant, four for the place, one whether it stayed;
#: the instant of the report before, and whether there is one; whether a trip goes on.
REPORT: Final = 1 + 2 + 4 + 1 + (2 + 1) + 1
#: Of its last entry of a segment: one byte, whether there is one; two for the instant, one for the toll, which is 0.
ENTRY: Final = 1 + 2 + 1


def reports(time: int) -> list[tuple[int, ...]]:
    """One of each car, on the places of many roads: all of them there, and a few on the next mile a second later."""
    cars = np.arange(CARS)
    place = (cars // ROADS + time % 2 * 53) % 100 * MILE
    rows = {name: np.full(CARS, -1) for name in Row._fields}
    rows |= {"type": cars * 0, "time": cars * 0 + time, "vid": cars, "spd": cars % 60, "xway": cars % ROADS}
    rows |= {"lane": cars * 0 + 2, "dir": cars % 2, "seg": place // MILE, "pos": place}
    return list(zip(*(rows[name].tolist() for name in Row._fields), strict=True))


def driven(session: Session) -> None:
    for time in (300, 301, 10_700):
        session.push("Road", reports(time))
        session.advance("Road", time)
        session.step()


def test_bytes_of_a_car() -> None:
    """A few bytes of each column: numbers are as wide as they need to be, and stand where the car's number says."""
    sinks = {query.stream: DiscardSink() for query in program.definition.queries}
    with program.session(statics={"Distances": DISTANCES}, sinks=sinks) as session:
        driven(session)
        held = held_bytes(session)
    a_car = {name: size / CARS for name, size in held.items()}
    print(f"of {CARS:,} cars: " + ", ".join(f"{name} {size:.1f} bytes" for name, size in a_car.items()))
    road, entries = a_car.pop("OnRoad"), a_car.pop("Entries")
    spare = 4 * 1.5  # numbers of no car, and some room on both sides
    assert NUMBER + REPORT <= road <= NUMBER + REPORT + spare
    assert NUMBER + ENTRY <= entries <= NUMBER + ENTRY + spare
    assert sum(a_car.values()) < 1  # of cars that stand, and of those that were charged
