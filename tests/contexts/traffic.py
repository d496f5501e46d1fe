"""The paper's running example: segments that are clear, congested, or have accidents (CAESAR, Figures 1 to 3)."""

from __future__ import annotations

import random
from typing import Any

import tidegate as tg
from tidegate.algebra.nodes import Row

MINUTES = tg.stream("Minutes", "segment bigint, end bigint, cars bigint, speed double", progress="end")
STOPPED = tg.stream("Stopped", "segment bigint, time bigint, place bigint, cleared boolean", progress="time")
REPORTS = tg.stream("Reports", "car bigint, segment bigint, time bigint, lane string", progress="time")


def traffic() -> tg.ContextModel:
    """Congestion is a switch out of clear; accidents overlap it, and hold until all of them are cleared."""
    model = tg.context_model(
        "Traffic", by="segment", default="clear", contexts=("congestion", "accident"), causes={"accident": "set"}
    )
    many = (MINUTES.cars > 50) & (MINUTES.speed < 40)
    few = (MINUTES.cars < 30) | (MINUTES.speed > 50)
    accident = STOPPED.where(~STOPPED.cleared)
    return (
        model.switch("congestion", when=MINUTES.where(many), within="clear", values={"speed": MINUTES.speed})
        .switch("clear", when=MINUTES.where(few), within="congestion")
        .initiate("accident", when=accident, within=("clear", "congestion", "accident"), cause=accident.place)
        .terminate("accident", when=STOPPED.where(STOPPED.cleared), cause=STOPPED.place)
    )


def program() -> tg.Program:
    """Toll for cars in a congested segment without an accident that are on no exit lane, and warnings."""
    model = traffic()
    driving = REPORTS.where(REPORTS.lane != "exit")
    paying = driving.in_context(model, "congestion", values={"since": "began", "slowest": "speed"})
    return tg.program(
        Toll=paying.not_in_context(model, "accident"),
        Warned=REPORTS.in_context(model, "accident").select("car", "time"),
        Free=REPORTS.in_context(model, "clear").select("car", "time"),
        Congested=model.windows("congestion"),
        Accidents=model.starts("accident"),
        PerWindow=paying.group_by("segment", "since", w=tg.ceil(paying.time, 20)).agg(cars=tg.count()),
    )


NAMES = tuple(query.stream for query in program().definition.queries if not query.inner)


def drawn(seed: int, many: int = 60) -> dict[str, list[Row]]:
    """Rows of a few segments, often several at one instant."""
    rng = random.Random(seed)
    segments = (1, 2, 3, None)
    at: Any = lambda: rng.randrange(1, 100)  # noqa: E731  # an instant
    return {
        "Minutes": [
            (rng.choice(segments), at(), rng.choice((10, 40, 60)), rng.choice((30.0, 45.0))) for _ in range(many)
        ],
        "Stopped": [(rng.choice(segments), at(), rng.choice((7, 8)), rng.random() < 0.5) for _ in range(many // 3)],
        "Reports": [
            (number, rng.choice(segments), at(), rng.choice(("exit", "travel", "travel"))) for number in range(many)
        ],
    }
