"""What the benchmarks of contexts run over, and their queries: cars report from segments, in each of which contexts
begin and end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

import tidegate as tg
from examples.linear_road.generator import Options, Road
from examples.linear_road.rows import POSITION
from examples.linear_road.rows import SEGMENTS as OF_A_ROAD

#: Seconds of the stream; cars a segment, and segments, where reports are of no road. A car then reports every half
#: minute or so.
SECONDS, CARS, SEGMENTS = 3_600, 20, 100
#: Rows of a road of the benchmark's size in these seconds, about.
ROAD_ROWS = 4_000_000
#: By how much a car has become slower that the first query finds: of speeds that are anything, and of those of roads.
SLOWER, SLOWER_ON_ROADS = 80.0, 30.0

REPORTS = tg.stream("Reports", "car bigint, segment bigint, time bigint, speed double", progress="time")
SIGNALS = tg.stream("Signals", "segment bigint, time bigint, context bigint, begins boolean", progress="time")
Rows = dict[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Setting:
    """Reports, contexts, and windows of each context and segment, which cover this share of the time; where they begin.

    `apart`: the beginnings of the contexts' first windows are so many seconds apart; else they are anywhere. `roads`:
    reports are those of Linear Road's cars on so many roads, about `rows` of each; else they are of any car anywhere.
    """

    rows: int
    covered: float
    queries: int = 10
    contexts: int = 1
    windows: int = 2
    apart: int | None = None
    begin: str = "anywhere"
    roads: int = 0

    @property
    def segments(self) -> int:
        """Of both directions of each road."""
        return 2 * OF_A_ROAD * self.roads if self.roads else SEGMENTS

    def inputs(self, seed: int = 1) -> Rows:
        rng = np.random.default_rng(seed)
        reports = of_roads(self.roads, self.rows) if self.roads else of_any(self.rows, rng)
        return {"Reports": reports, "Signals": self.signals(rng)}

    def signals(self, rng: np.random.Generator) -> pl.DataFrame:
        """What begins and ends the windows of each context, segment by segment."""
        length = int(SECONDS * self.covered / self.windows)
        found: list[tuple[int, int, int, bool]] = []
        for segment in range(self.segments if length else 0):
            for context in range(self.contexts):
                for window in range(self.windows):
                    first, room = SECONDS * window // self.windows, SECONDS // self.windows - length
                    begin = first + self.offset(room, rng) + (0 if self.apart is None else context * self.apart)
                    if self.covered >= 1:
                        begin, length = -1, SECONDS + 1
                    found += [(segment, begin, context, True), (segment, begin + length, context, False)]
        schema = {"segment": pl.Int64, "time": pl.Int64, "context": pl.Int64, "begins": pl.Boolean}
        return pl.DataFrame(found, schema=schema, orient="row").sort("time")

    def offset(self, room: int, rng: np.random.Generator) -> int:
        if self.apart is not None:
            return 0
        if self.begin == "anywhere":
            return int(rng.integers(0, max(room, 1)))
        early = min(int(rng.exponential(room / 20)), room)
        return early if self.begin == "early" else room - early

    def names(self) -> tuple[str, ...]:
        return tuple(f"c{number}" for number in range(self.contexts))


def of_any(rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """Reports of any car, three times as many at the end as in the beginning."""
    cars = rng.integers(0, CARS * SEGMENTS, rows)
    at = np.cumsum(1 / np.linspace(1.0, 3.0, rows))
    return pl.DataFrame(
        {
            "car": cars,
            "segment": cars % SEGMENTS,
            "time": (at / at[-1] * (SECONDS - 1)).astype(np.int64),
            "speed": rng.integers(0, 100, rows).astype(np.float64),
        }
    )


def of_roads(roads: int, rows: int) -> pl.DataFrame:
    """Reports of the cars on some roads, about so many of each, in order of time."""
    found = []
    for number in range(roads):
        for step in Road(number, Options(traffic=rows / ROAD_ROWS)).steps(SECONDS):
            own = {name: values[step["type"] == POSITION].astype(np.int64) for name, values in step.items()}
            segment = (own["xway"] * 2 + own["dir"]) * OF_A_ROAD + own["seg"]
            speed = own["spd"].astype(np.float64)
            found.append(pl.DataFrame({"car": own["vid"], "segment": segment, "time": own["time"], "speed": speed}))
    return pl.concat(found).sort("time")


def model(setting: Setting) -> tg.ContextModel:
    made = tg.context_model("Critical", by="segment", default="calm", contexts=setting.names())
    for number, name in enumerate(setting.names()):
        its = SIGNALS.where(SIGNALS.context == number)
        made = made.initiate(name, when=its.where(its.begins)).terminate(name, when=its.where(~its.begins))
    return made


def every_report(limit: float) -> dict[str, tg.Relation]:
    """Contexts of which each report begins one or ends it, as its speed has the limit or not."""
    made = tg.context_model("Driving", by="car", default="slow", contexts="fast")
    made = made.initiate("fast", when=REPORTS.where(REPORTS.speed >= limit))
    made = made.terminate("fast", when=REPORTS.where(REPORTS.speed < limit))
    return {"Q0": made.starts("fast")}


def slower(setting: Setting, number: int) -> tg.Relation:
    """A car that has become slower by so much within a minute."""
    a, b = REPORTS.as_("a"), REPORTS.as_("b")
    near = (a.car == b.car, a.segment == b.segment, a.time < b.time, b.time <= a.time + 60)
    least = SLOWER_ON_ROADS if setting.roads else SLOWER
    return a.join(b, *near, b.speed < a.speed - (least + number))


def inside(made: tg.ContextModel, found: tg.Relation, *contexts: str) -> tg.Relation:
    rows = found.in_context(made, *contexts, by="b.segment", at="b.time", since="a.time")
    return rows.select(car="b.car", time="b.time", first="a.time")


def standing(setting: Setting) -> dict[str, tg.Relation]:
    """Queries in contexts, as one writes them who finds something first and asks for its context then."""
    made, contexts = model(setting), setting.names()
    return {
        f"Q{number}": inside(made, slower(setting, number), contexts[number % len(contexts)])
        for number in range(setting.queries)
    }


def in_each(setting: Setting) -> dict[str, tg.Relation]:
    """Every query in every context, each a result of its own."""
    made = model(setting)
    return {
        f"Q{number}_{name}": inside(made, slower(setting, number), name)
        for number in range(setting.queries)
        for name in setting.names()
    }


def in_any(setting: Setting) -> dict[str, tg.Relation]:
    """Every query in every context, each row once, in however many of them it lies."""
    made, found = model(setting), dict[str, tg.Relation]()
    for number in range(setting.queries):
        first, *others = (inside(made, slower(setting, number), name) for name in setting.names())
        found[f"Q{number}"] = first.union(*others).distinct()
    return found
