"""Random models of contexts, of whose queries some never have a row, and many short histories for them."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any, Literal

import tidegate as tg
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.errors import Site

Row = tuple[Any, ...]
#: The streams. A history is the rows of one k; u is within 4 of t; x is never NULL.
STREAMS = ("E", "F")
NAMES = ("k", "t", "u", "v", "x", "w", "y", "s")
HISTORIES = 60

_COLUMNS = "k bigint, t bigint, u bigint, v bigint, x bigint not null, w bigint, y double, s string"
_DEFAULT = "d"
_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip
_CONSTANTS: dict[str, tuple[Any, ...]] = {
    "v": (0, 1, 2, 1.5), "w": (0, 1, 0.5), "y": (0.0, -0.0, 1.5, 2), "s": ("", "a", "b")
}  # fmt: skip


def random_checked_model(seed: int) -> tuple[tg.ContextModel, dict[str, list[Row]]]:
    """The model of a seed, whose query i is written on line i, and rows of its streams. Not every one is valid."""
    drawn = _Models(random.Random(f"context models {seed}"))
    return drawn.model(), {name: drawn.events() for name in STREAMS}


class _Models:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.streams = [
            tg.stream(name, _COLUMNS, progress="t", temporal="u", relations=self.related) for name in STREAMS
        ]
        self.contexts = "abc"[: rng.choice((1, 2, 2, 3))]
        caused = rng.choice((0.0, 0.3, 1.0))
        self.causes: dict[str, Literal["bag", "set"]] = {
            name: rng.choice(("bag", "set")) for name in self.contexts if self.chance(caused)
        }
        self.cause = rng.choice("xxw")
        self.carries = self.chance(0.3)
        self.aliases = 0

    @staticmethod
    def related(row: Any) -> Any:
        return [row.u <= row.t + 4, row.t <= row.u + 4]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def model(self) -> tg.ContextModel:
        model = tg.context_model("M", by="k", default=_DEFAULT, contexts=tuple(self.contexts), causes=self.causes)
        for number in range(self.rng.randint(2, 6)):
            with written_at(Site("model", number)):
                model = self.with_query(model, number)
        return model

    def with_query(self, model: tg.ContextModel, number: int) -> tg.ContextModel:
        begins = number == 0 and self.chance(0.8)
        rows = self.plain(number) if begins or self.chance(0.5) else self.other()
        options: dict[str, Any] = {"when": rows, "at": "t"}
        if self.chance(0.2):
            options["since"] = self.rng.choice((rows.u, rows.t - 2))
        action = self.rng.choice(("initiate", "switch") if begins else ("initiate", "switch", "terminate"))
        context = self.rng.choice(self.contexts + _DEFAULT * (action == "switch" and not begins))
        if context in self.causes and self.chance(0.6):
            options["cause"] = getattr(rows, self.cause)
        if action == "terminate":
            return model.terminate(context, **options)
        every = self.contexts + _DEFAULT
        if begins or self.chance(0.85):
            some = self.rng.sample(every, self.rng.randint(1, min(2, len(every))))
            options["within"] = _DEFAULT if begins else self.rng.choice((context, context, _DEFAULT, some, some))
        if self.carries and self.chance(0.5) and context != _DEFAULT:
            options["values"] = {"z": rows.x}
        return model.initiate(context, **options) if action == "initiate" else model.switch(context, **options)

    def plain(self, number: int) -> tg.Relation:
        """Rows that no other such query has."""
        rows = self.rng.choice(self.streams)
        return rows.where(rows.v == number)

    def other(self) -> tg.Relation:
        rows = self.rng.choice(self.streams)
        if self.chance(0.3):
            return rows.where(rows.v > 2, rows.v < 2)
        if self.chance(0.3):
            return rows.where(rows.t < rows.u - 5)
        return self.relation(2)

    def relation(self, depth: int) -> tg.Relation:
        """Rows of a random query, which may be contradictory, with the attributes of a stream."""
        if not depth or self.chance(0.2):
            rows = self.rng.choice(self.streams)
            return rows.where(*(self.condition(rows, 1) for _ in range(self.rng.randint(1, 3))))
        below = self.relation(depth - 1)
        form = self.rng.choice(("where", "group", "distinct", "union", "difference", "join", "left", "semi", "anti"))
        match form:
            case "where":
                return below.where(self.condition(below, 2), self.condition(below, 0))
            case "group":
                return below.group_by(*NAMES).agg(n=tg.count()).select(*NAMES)
            case "distinct":
                return below.distinct()
            case "union":
                return below.union(self.relation(depth - 1))
            case "difference":
                return below.difference(self.relation(depth - 1))
            case _:
                return self.joined(form, below, self.relation(depth - 1))

    def joined(self, form: str, below: tg.Relation, partners: tg.Relation) -> tg.Relation:
        self.aliases += 1
        left, right = below.as_(f"l{self.aliases}"), partners.as_(f"r{self.aliases}")
        same = (right.k == left.k, right.t == left.t)
        match form:
            case "semi":
                return left.semi_join(right, *same).unqualified()
            case "anti":
                return left.anti_join(right, *same).unqualified()
            case _:
                both = left.join(right, *same, how="inner" if form == "join" else "left")
                return both.select(**{name: getattr(left, name) for name in NAMES})

    def condition(self, rows: tg.Relation, depth: int) -> Any:
        if depth and self.chance(0.5):
            first = self.condition(rows, depth - 1)
            form = self.rng.choice("~&|")
            if form == "~":
                return ~first
            second = self.condition(rows, depth - 1)
            return first & second if form == "&" else first | second
        compare = self.rng.choice(_COMPARISONS)
        if self.chance(0.3):
            by = self.rng.randint(-6, 6)
            return compare(rows.t, rows.u + by) if self.chance(0.5) else compare(rows.u - rows.t, by)
        name = self.rng.choice([*_CONSTANTS])
        return compare(getattr(rows, name), self.rng.choice(_CONSTANTS[name]))

    def events(self) -> list[Row]:
        """Rows of short histories, several at one instant."""
        return [self.event(history) for history in range(HISTORIES) for _ in range(self.rng.choice((1, 3, 6, 10)))]

    def event(self, history: int) -> Row:
        t = self.rng.randint(0, 5)
        return (
            history,
            t,
            t + self.rng.randint(-4, 4),
            self.rng.choice((0, 0, 1, 1, 2, 3, 4, 5, None)),
            self.rng.randint(0, 1),
            self.rng.choice((0, 1, None)),
            self.rng.choice((0.0, -0.0, 1.5, 2.0, float("inf"), float("nan"), None)),
            self.rng.choice(("", "a", "aa", "b", None)),
        )
