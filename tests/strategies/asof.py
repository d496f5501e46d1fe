"""Random programs of rows with the row of another stream nearest in time, over events in any permitted order."""

from __future__ import annotations

import random
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.program import ProgramDef

#: Limits that are just reached, and just missed.
_SPANS = (0, 1, 2, 3, 5, 8)
_COLUMNS = "k bigint, y double, t bigint, u bigint, n bigint, v bigint, w string"


def random_asof_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _AsOfs(random.Random(f"asof {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _AsOfs:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # Of double keys those that are equal may be written in several ways, and pairs may have two names.
        self.keys: tuple[Any, ...] = rng.choice(((), ("k",), ("k",), ("y",), ("k", "y"), (("k", "n"),)))
        self.tie = "n" if self.chance(0.3) else None
        self.streams = [self.stream(name) for name in "AB"]
        self.rows = {"A": self.events(peers=True), "B": self.events(peers=False)}

    def stream(self, name: str) -> tg.Relation:
        if not self.chance(0.3):
            return tg.stream(name, _COLUMNS, progress="t")
        # A second instant, which lies before the first or after it.
        progress = self.rng.choice(("t", ("t", "u")))
        return tg.stream(name, _COLUMNS, progress=progress, temporal="u", relations=self.related)

    @staticmethod
    def related(row: Any) -> Any:
        return [row.u <= row.t + 4, row.t <= row.u + 3]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def results(self) -> dict[str, tg.Relation]:
        return {name: self.above(self.joined()) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def joined(self) -> tg.Relation:
        # One stream may be looked up in itself: a row at its own instant is then its own partner.
        left, right = (one.as_(name) for name, one in zip("lr", self.sides(), strict=True))
        if self.chance(0.2):
            left = left.where(left.v >= 1)
        if self.chance(0.2):
            right = right.where(right.v >= 0)
        rows = left.asof_join(right, by=self.keys, left_on=left.t, right_on=right.t, tie=self.tie, **self.options())
        if self.chance(0.15):
            its = self.streams[1].as_("again")
            rows = rows.rename(complete="known") if "complete" in rows.schema else rows
            rows = rows.asof_join(its, left_on=rows["l.t"], right_on=its.t, tie=its.n, within=3)
        return rows

    def sides(self) -> tuple[tg.Relation, tg.Relation]:
        first, second = self.streams
        return (second, second) if self.chance(0.2) else (first, second)

    def options(self) -> dict[str, Any]:
        return {
            "direction": self.rng.choice(("backward", "backward", "forward", "nearest")),
            "within": self.rng.choice((None, *_SPANS)),
            "strict": self.chance(0.3),
            "how": self.rng.choice(("left", "inner")),
        }

    def above(self, rows: tg.Relation) -> tg.Relation:
        """What is made of the rows: nothing, fewer of them, their number in a window, or pairs with others."""
        complete = "complete" if "complete" in rows.schema else "l.t"
        style = self.rng.random()
        if style < 0.55:
            return rows
        if style < 0.65:
            return rows.where(rows[complete] > self.rng.randint(2, 9))
        if style < 0.75:
            return rows.group_by(w=tg.ceil(rows[complete], 5)).agg(n=tg.count(), m=tg.count(rows["r.n"]))
        if style < 0.85:
            return rows.select(*(name for name in rows.schema.names if name != complete))
        other = self.joined()
        its = "complete" if "complete" in other.schema else "l.t"
        a, b = rows.select(a=rows[complete]), other.select(b=other[its])
        kinds: tuple[JoinKind, ...] = ("inner", "anti", "left")
        return a.join(b, a.a <= b.b + 4, b.b <= a.a + 4, how=self.rng.choice(kinds))

    def events(self, *, peers: bool) -> tuple[Row, ...]:
        """Events of a few partitions; unless they may be peers no two of one at an instant that nothing orders."""
        found: list[Row] = []
        taken: set[tuple[object, ...]] = set()
        for _ in range(self.rng.choice((6, 14, 24))):
            k, y = self.rng.choice((1, 2, None)), self.rng.choice((0.0, -0.0, 1.5, float("nan"), None))
            time, number = self.rng.randint(0, 30), self.rng.choice((1, 2, 3, None))
            of = {"k": k, "y": None if y is None else str(y + 0.0), "n": number}
            keys = [of[key if isinstance(key, str) else key[1]] for key in self.keys]
            # One that is looked up again has no keys: then nothing but the tie tells two of an instant apart.
            place = (time, number) if self.tie is not None else (*keys, time)
            if not peers and (place in taken or (time, number) in taken):
                continue
            taken |= {place, (time, number)}
            found.append(
                {
                    "k": k,
                    "y": y,
                    "t": time,
                    "u": time + self.rng.randint(-3, 4),
                    "n": number,
                    "v": self.rng.choice((1, 1, 2, -5, None)),
                    "w": self.rng.choice(("", "a", "ä", None)),
                }
            )
        return tuple(found)
