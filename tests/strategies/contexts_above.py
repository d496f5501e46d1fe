"""Random programs whose filters by contexts stand above joins, groups and operators that look at other rows: some that
the optimiser changes, and those that it must not change.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import tidegate as tg
from tests.strategies.contexts import RandomContexts
from tests.strategies.programs import Case
from tidegate.algebra.program import ProgramDef

#: How what stands below a filter by contexts is made of two relations, or of one.
_FORMS = ("inner", "inner", "inner", "left", "semi", "anti", "three", "group", "distinct", "union", "around", "minus")


def random_above_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = RandomAbove(random.Random(f"contexts above {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class RandomAbove(RandomContexts):
    """Queries whose filters by contexts stand above others."""

    def results(self) -> dict[str, tg.Relation]:
        model = self.model()
        chained = self.chained(model)
        if self.chance(0.2):
            return {**chained, **self.alike(model)}
        return {**chained, **{name: self.above(model) for name in "QR"[: self.rng.choice((1, 1, 2))]}}

    def above(self, model: tg.ContextModel) -> tg.Relation:
        form = self.rng.choice(_FORMS)
        if form in ("distinct", "union", "around", "minus"):
            return self.inside(model, self.of_one(form), [""])
        return self.inside(model, *self.of_two(form))

    def of_one(self, form: str) -> tg.Relation:
        rows = self.rng.choice(self.streams)
        some = self.asked(rows).select("k", "y", "t", "v", "w")
        match form:
            case "distinct":
                return some.distinct()
            case "union":
                return some.union(rows.where(rows.v >= 2).select("k", "y", "t", "v", "w").distinct())
            case "minus":
                return some.difference(rows.where(rows.v == 1).select("k", "y", "t", "v", "w"))
            case _:
                # Rows before the window count, too: this is no filter's way down.
                return some.over(by=self.keys, order="t", range=self.rng.choice((2, 5)), n=tg.count())

    def of_two(self, form: str) -> tuple[tg.Relation, Sequence[str]]:
        """Rows made of those of two or three relations, and the prefixes of their attributes, the earliest first."""
        left, right = (self.asked(self.rng.choice(self.streams)).as_(name) for name in "lr")
        near = self.near(left, right)
        match form:
            case "left":
                return left.join(right, *near, how="left"), ["l."]
            case "semi":
                return left.semi_join(right, *near).unqualified(), [""]
            case "anti":
                return left.anti_join(right, *near).unqualified(), [""]
            case "three":
                last = self.asked(self.rng.choice(self.streams)).as_("m")
                return left.join(right, *near).join(last, *self.near(right, last)), ["l.", "r.", "m."]
            case "group":
                both = left.join(right, *near)
                side = self.rng.choice(("l.", "r."))
                return both.group_by(*(side + key for key in self.keys), f"{side}t").agg(n=tg.count()), [""]
        both = left.join(right, *near)
        return both.where(both["l.v"] <= both["r.v"]) if self.chance(0.2) else both, ["l.", "r."]

    def near(self, first: tg.Relation, last: tg.Relation) -> list[Any]:
        """Conditions of a join: of one partition, mostly, and in order of time, mostly."""
        equal = [first[key] == last[key] for key in self.keys if self.chance(0.9)]
        if not equal and self.chance(0.5):
            equal = [first.k == last.k]
        if self.chance(0.15):
            first, last = last, first
        after = first.t <= last.t if self.chance(0.5) else first.t < last.t
        return [*equal, after, last.t <= first.t + self.rng.choice((2, 4, 8))]

    def inside(self, model: tg.ContextModel, rows: tg.Relation, sides: Sequence[str]) -> tg.Relation:
        """Those of the rows that are in a context, by the attributes of one side, or of two."""
        for _ in range(self.rng.choice((1, 1, 2))):
            rows = self.filtered(model, rows, sides)
        if self.chance(0.2):
            time = f"{self.rng.choice(sides)}t"
            rows = rows.group_by(e=tg.ceil(rows[time], 5)).agg(n=tg.count())
        return rows

    def filtered(self, model: tg.ContextModel, rows: tg.Relation, sides: Sequence[str]) -> tg.Relation:
        side, every = self.rng.choice((sides[-1], self.rng.choice(sides))), (*self.contexts, "d")
        at = f"{side}u" if f"{side}u" in rows.schema.temporal and self.chance(0.15) else f"{side}t"
        options: dict[str, Any] = {"by": [side + key for key in self.keys], "at": at}
        some = self.rng.sample(every, 1 if self.chance(0.7) else min(2, len(every)))
        if self.chance(0.15):
            return rows.not_in_context(model, *some, **options)
        if self.chance(0.5):
            options["since"] = f"{self.rng.choice(sides)}t"
        new = "since" if "since" not in rows.schema else "since2"
        if len(some) == 1 and self.chance(0.4) and new not in rows.schema:
            options["values"] = {new: "began"}
        return rows.in_context(model, *some, **options)
