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
        if self.chance(0.2):
            # More than row-wise: a query of its own, whose rows come as it advances.
            rows = self.made_of(rows)
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

    def made_of(self, rows: tg.Relation) -> tg.Relation:
        """What begins or ends contexts and is more than single rows: no duplicates, pairs, groups or matches."""
        form = self.rng.choice(("distinct", "pairs", "groups", "matches"))
        if form == "distinct":
            return rows.distinct()
        if form == "pairs":
            first, last = self.rng.choice(self.streams).as_("first"), rows.as_("last")
            both = first.join(last, first.k == last.k, first.t < last.t, last.t <= first.t + self.rng.choice((1, 4)))
            return both.select(**{name: last[name] for name in rows.schema})
        if form == "groups":
            end = tg.ceil(rows.t, self.rng.choice((2, 5)))
            return rows.group_by("k", "y", t=end).agg(v=tg.count(), w=tg.max(rows.w))
        # One row at each instant, so that they have an order.
        ordered = rows.group_by("k", "y", "t").agg(v=tg.max(rows.v), w=tg.min(rows.w))
        found = ordered.sequences(
            self.rng.choice(("First Last", "First+ Last")),
            by=("k", "y"),
            order="t",
            define={"Last": lambda m: m.Last.v >= m.First.v},
            within=self.rng.choice((2, 6)),
            v=lambda m: m.Last.v,
            w=lambda m: m.Last.w,
        )
        return found.select("k", "y", "v", "w", t="detected")

    def results(self) -> dict[str, tg.Relation]:
        model = self.model()
        chained, style = self.chained(model), self.rng.random()
        if style < 0.25:
            return {**chained, **{name: self.result(model) for name in "QR"[: self.rng.choice((1, 1, 2))]}}
        if style < 0.65:
            return {**chained, **self.alike(model)}
        return {**chained, "Q": self.pairs(model) if style < 0.85 or len(self.contexts) == 1 else self.either(model)}

    def chained(self, model: tg.ContextModel) -> dict[str, tg.Relation]:
        """At times a result of rows in contexts, which stands for a stream to all queries that follow."""
        if not self.chance(0.2):
            return {}
        place, contexts = self.rng.randrange(len(self.streams)), (*self.contexts, "d")
        rows = self.streams[place].in_context(model, self.rng.choice(contexts), at="t")
        self.streams[place] = tg.result_of("P", rows)
        return {"P": self.streams[place]}

    def alike(self, model: tg.ContextModel) -> dict[str, tg.Relation]:
        """Queries that look one or two contexts up of rows of one stream, each with conditions of its own."""
        rows, contexts = self.rng.choice(self.streams), self.rng.sample((*self.contexts, "d"), 1 + self.chance(0.3))
        found: dict[str, tg.Relation] = {}
        for name in "QRS"[: self.rng.choice((2, 2, 3))]:
            some = self.asked(rows)
            values = {"since": "began"} if self.chance(0.3) else None
            some = some.in_context(model, self.rng.choice(contexts), at="t", values=values)
            found[name] = some.group_by("w", e=tg.ceil(some.t, 5)).agg(n=tg.count()) if self.chance(0.3) else some
        return found

    def asked(self, rows: tg.Relation) -> tg.Relation:
        """Some rows of a stream, or all, with other attributes beside theirs."""
        if self.chance(0.6):
            rows = rows.where(self.rng.choice((rows.v >= 1, rows.v == 2, (rows.v < 1) | (rows.w == "a"), rows.w == "")))
        if self.chance(0.3):
            rows = rows.with_(z=tg.coalesce(rows.v, 0))
        if self.chance(0.1):
            # A term that may have no value: nothing may change on which rows it is evaluated.
            rows = rows.where(tg.lit(6) // (rows.v + 1) > 0)
        return rows

    def pairs(self, model: tg.ContextModel) -> tg.Relation:
        """Pairs of rows near in time of which one lies in contexts, or both do."""
        first, last = (self.asked(self.rng.choice(self.streams)).as_(name) for name in ("first", "last"))
        equal = [first[key] == last[key] for key in self.keys]
        both = first.join(last, *equal, first.t <= last.t, last.t <= first.t + self.rng.choice((1, 4)))
        side, every = self.rng.choice(("first", "last")), (*self.contexts, "d")
        options: dict[str, Any] = {"by": [f"{side}.{key}" for key in self.keys], "at": f"{side}.t"}
        if side == "last" and self.chance(0.5):
            options["since"] = "first.t"
        some = self.rng.sample(every, 1 if self.chance(0.7) else 2)
        return both.in_context(model, *some, **options)

    def either(self, model: tg.ContextModel) -> tg.Relation:
        """The rows in one of some contexts, each once, as a union says it."""
        rows = self.asked(self.rng.choice(self.streams))
        one, *others = (
            rows.in_context(model, context, at="t") for context in self.rng.sample(self.contexts, len(self.contexts))
        )
        return one.union(*others).distinct()

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
