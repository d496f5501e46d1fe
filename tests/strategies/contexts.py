"""Random models of contexts, and rows in their contexts, over events that come in any permitted order."""

from __future__ import annotations

import random
from typing import Any, Literal

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.program import ProgramDef

_COLUMNS = "k bigint, y double, t bigint, u bigint, v bigint, w string"
_CONTEXTS = ("a", "b", "c")


def random_contexts_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = RandomContexts(random.Random(f"contexts {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


def random_model(seed: int) -> tuple[tg.ContextModel, dict[str, tuple[Row, ...]]]:
    """The model of a seed, whose changes are `M`, and rows of its streams."""
    drawn = RandomContexts(random.Random(f"contexts {seed}"))
    return drawn.model(), drawn.rows


class RandomContexts:
    """A random model of contexts, rows of its streams, and queries in contexts."""

    columns = _COLUMNS

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # Of double keys those that are equal may be written in several ways.
        self.keys: tuple[str, ...] = rng.choice(((), ("k",), ("k",), ("y",), ("k", "y")))
        self.contexts = _CONTEXTS[: rng.choice((1, 2, 3, 3))]
        self.causes: dict[str, Literal["bag", "set"]] = {
            name: rng.choice(("bag", "set")) for name in self.contexts if self.chance(0.35)
        }
        self.carries = self.chance(0.4)
        self.streams = [self.stream(name) for name in "AC"]
        self.rows = {name: self.events() for name in "AC"}

    def stream(self, name: str) -> tg.Relation:
        if not self.chance(0.4):
            return tg.stream(name, self.columns, progress="t")
        progress = self.rng.choice(("t", ("t", "u")))
        return tg.stream(name, self.columns, progress=progress, temporal="u", relations=self.related)

    @staticmethod
    def related(row: Any) -> Any:
        return [row.u <= row.t + 4, row.t <= row.u + 3]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def model(self) -> tg.ContextModel:
        model = tg.context_model("M", by=self.keys, default="d", contexts=self.contexts, causes=self.causes)
        for _ in range(self.rng.choice((2, 3, 4, 6))):
            model = self.with_query(model)
        return model

    def with_query(self, model: tg.ContextModel) -> tg.ContextModel:
        rows = self.rng.choice((*self.streams, self.streams[1]))
        if self.chance(0.8):
            rows = rows.where(rows.v == self.rng.choice((0, 1, 2, 3)))
        if self.chance(0.1):
            # More than row-wise: a query of its own, whose rows come as it advances.
            rows = rows.distinct()
        options: dict[str, Any] = {"when": rows, "at": "t"}
        if "u" in rows.schema.temporal and self.chance(0.5):
            options |= {"since": "u"} if self.chance(0.7) else {"at": "u"}
        elif self.chance(0.2):
            options["since"] = rows.t - 2
        action = self.rng.choice(("initiate", "initiate", "switch", "terminate", "terminate"))
        context = self.rng.choice((*self.contexts, "d") if action == "switch" else self.contexts)
        if context in self.causes and self.chance(0.8):
            options["cause"] = rows.w
        if action == "terminate":
            return model.terminate(context, **options)
        if self.chance(0.7):
            every = (*self.contexts, "d")
            options["within"] = self.rng.sample(every, self.rng.randint(1, len(every)))
        if self.carries and self.chance(0.7) and context != "d":
            options["values"] = {"y1": rows.y, "w1": rows.w}
        return model.initiate(context, **options) if action == "initiate" else model.switch(context, **options)

    def results(self) -> dict[str, tg.Relation]:
        model = self.model()
        return {name: self.result(model) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def result(self, model: tg.ContextModel) -> tg.Relation:
        style, every = self.rng.random(), (*self.contexts, "d")
        if style < 0.2:
            return model.changes.where(model.changes.time > self.rng.choice((-1, 5)))
        if style < 0.3:
            return model.windows(self.rng.choice(every))
        rows = self.rng.choice(self.streams)
        at = rows.t if "u" not in rows.schema.temporal or self.chance(0.6) else rows.u
        if style < 0.65:
            context = self.rng.choice(every)
            values = {"since": "began"} if self.chance(0.5) else None
            rows = rows.in_context(model, context, at=at, values=values)
        else:
            some = self.rng.sample(every, self.rng.randint(1, min(2, len(every))))
            rows = (rows.in_context if self.chance(0.5) else rows.not_in_context)(model, *some, at=at)
        if self.chance(0.2):
            return rows.group_by(w=tg.ceil(rows.t, 5)).agg(n=tg.count())
        return rows

    def events(self) -> tuple[Row, ...]:
        """Events of a few partitions, often several at one instant."""
        found: list[Row] = []
        for _ in range(self.rng.choice((6, 14, 24, 24))):
            time = self.rng.randint(0, 16)
            found.append(
                {
                    "k": self.rng.choice((1, 1, 2, None)),
                    "y": self.rng.choice((0.0, -0.0, 1.5, float("nan"), None)),
                    "t": time,
                    "u": time + self.rng.randint(-3, 4),
                    "v": self.rng.choice((0, 1, 2, 3, None)),
                    "w": self.rng.choice(("", "a", "ä", None)),
                }
            )
        return tuple(found)
