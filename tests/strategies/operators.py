"""Random programs with operators of users, over events that come in any permitted order."""

from __future__ import annotations

import random

import tidegate as tg
from tests.operators import Bursts, Changes, Echoes, Silences
from tests.strategies.programs import Case, Row
from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.program import ProgramDef

#: What makes several situations at one instant, and gaps that are just met.
_GAPS = (1, 2, 3, 5, 8)


def random_operator_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _Operators(random.Random(f"operators {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Operators:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.keys = rng.choice(((), ("k",), ("k",), ("k", "y")))
        self.tied = self.chance(0.25)
        names = ("E", "F") if self.chance(0.3) else ("E",)
        columns = "k bigint, y double, t bigint, n bigint, v bigint"
        self.streams = [tg.stream(name, columns, progress="t") for name in names]
        self.rows = {name: self.events() for name in names}

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def results(self) -> dict[str, tg.Relation]:
        return {name: self.above(self.processed()) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def processed(self) -> tg.Relation:
        source: tg.Relation = self.rng.choice(self.streams)
        if self.chance(0.2):
            source = source.where(source.v >= 1)
        events = source.partition_by(*self.keys, time="t", **({"tie": "n"} if self.tied else {}))
        gap = self.rng.choice(_GAPS)
        operator = self.rng.choice((Changes("v"), Silences(gap), Bursts(gap), Echoes(gap, self.rng.choice(("v", "n")))))
        return events.process(operator)

    def above(self, rows: tg.Relation) -> tg.Relation:
        """What is made of an operator's rows: nothing, fewer of them, their number in a window, or pairs with
        others.
        """
        complete = next(name for name in ("at", "over", "t") if name in rows.schema.names)
        style = self.rng.random()
        if style < 0.4:
            return rows
        if style < 0.55:
            return rows.where(rows[complete] > self.rng.randint(2, 9)).select(complete)
        if style < 0.75:
            return rows.group_by(w=tg.ceil(rows[complete], 5)).agg(n=tg.count())
        if style < 0.85 and len(rows.schema.temporal) > 1:
            return rows.select(next(name for name in rows.schema.temporal if name != complete))
        other = self.processed()
        its = next(name for name in ("at", "over", "t") if name in other.schema.names)
        a, b = rows.select(a=rows[complete]), other.select(b=other[its])
        kinds: tuple[JoinKind, ...] = ("inner", "anti", "left")
        how = self.rng.choice(kinds)
        return a.join(b, a.a <= b.b + 4, b.b <= a.a + 4, how=how)

    def events(self) -> tuple[Row, ...]:
        """Events of a few partitions; no two of one at an instant, unless something orders them."""
        found: list[Row] = []
        keys = [(k, y) for k in self.rng.sample((1, 2, 3, None), self.rng.choice((1, 2, 3))) for y in (0.0, -0.0, None)]
        taken: set[tuple[object, ...]] = set()
        for _ in range(self.rng.choice((6, 14, 24))):
            k, y = self.rng.choice(keys)
            time = self.rng.randint(0, 30)
            partition = [{"k": k, "y": None if y is None else 0.0}[key] for key in self.keys]
            number = self.rng.randint(0, 3)
            place = (*partition, time, number if self.tied else None)
            if place not in taken:
                taken.add(place)
                found.append({"k": k, "y": y, "t": time, "n": number, "v": self.rng.choice((1, 1, 2, None))})
        return tuple(found)
