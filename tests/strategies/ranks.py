"""Random programs of rows with their places in groups, and of the first rows of each, over events in any permitted
order.
"""

from __future__ import annotations

import random
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.program import ProgramDef


def random_ranks_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _Ranks(random.Random(f"ranks {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Ranks:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        columns = "k bigint, y double, t bigint, u bigint, n bigint, v bigint, w string, x double, b boolean"
        # A second instant, which lies before the first or after it.
        second = self.chance(0.3)
        options: dict[str, Any] = {"temporal": "u", "relations": self.related} if second else {}
        progress = rng.choice(("t", ("t", "u"))) if second else "t"
        self.instants = ("t", "u") if second else ("t",)
        self.stream = tg.stream("E", columns, progress=progress, **options)
        self.rows = {"E": self.events()}

    @staticmethod
    def related(row: Any) -> Any:
        return [row.u <= row.t + 4, row.t <= row.u + 3]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def results(self) -> dict[str, tg.Relation]:
        return {name: self.above(self.ranked()) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def ranked(self) -> tg.Relation:
        rows: tg.Relation = self.stream
        if self.chance(0.2):
            rows = rows.where(rows.v >= 1)
        if self.chance(0.15):
            # More than row-wise: a query of its own, whose rows come as it advances.
            rows = rows.distinct()
        style = self.rng.random()
        window = self.rng.choice((3, 5, 8))
        if style < 0.2:
            v = self.rng.choice((tg.sum(rows.v), tg.approx_distinct(rows.w), tg.approx_distinct(rows.x)))
            x = self.rng.choice((tg.avg(rows.x), tg.approx_quantile(rows.x, 0.5), tg.approx_quantile(rows.v, 0.2)))
            grouped = rows.group_by("k", end=tg.ceil(rows.t, window)).agg(v=v, x=x)
            return self.placed(grouped.with_(n=grouped.v), ("end",), unique=False)
        if style < 0.3:
            v = self.rng.choice((tg.count(), tg.approx_distinct(rows.v)))
            sessions = rows.windows(tg.session(window), by="k", order="t").agg(v=v, x=tg.max(rows.x))
            return self.placed(sessions.with_(n=sessions.v), ("end",), unique=False)
        instant = rows[self.rng.choice(self.instants)]
        end = self.rng.choice((tg.ceil(instant, window), tg.floor(instant, window), instant + 2))
        keys = self.rng.choice(((), ("k",), ("y",), ("k", "y"), ("t",)))
        rows = rows.with_(end=end)
        by = (*keys, "end") if self.chance(0.5) else ("end", *keys)
        for _ in range(self.rng.choice((1, 1, 2))):
            rows = self.placed(rows, by, unique=True)
        return rows

    def placed(self, rows: tg.Relation, by: tuple[str, ...], *, unique: bool) -> tg.Relation:
        values: list[Any] = [rows.v, tg.desc("v"), rows.x, tg.desc(rows.x), tg.desc(rows.x * 2), rows.n, rows.end]
        if unique:
            values += [rows.w, tg.desc("w"), tg.desc(rows.b), rows.y, rows.t]
        order = self.rng.sample(values, self.rng.choice((1, 1, 2)))
        if self.chance(0.5):
            return rows.top_k(self.rng.choice((1, 2, 3)), by=by, order=order)
        number = f"place{len(rows.schema)}"
        if unique and self.chance(0.4):
            # Nothing else than its number tells each row from the others.
            return rows.ranked(by=by, order=(*order, "n"), **{number: tg.row_number()})
        columns: dict[str, Any] = {number: tg.rank(), f"dense{number}": tg.dense_rank()}
        return rows.ranked(by=by, order=order, **columns)

    def above(self, rows: tg.Relation) -> tg.Relation:
        """What is made of the rows: nothing, fewer of them, their number in a window, or pairs with others."""
        style = self.rng.random()
        if style < 0.55:
            return rows
        if style < 0.65:
            return rows.where(rows.end > self.rng.randint(2, 9))
        if style < 0.75:
            return rows.group_by(w=tg.ceil(rows.end, 5)).agg(n=tg.count())
        if style < 0.85:
            return rows.drop("end")
        other = self.ranked()
        a, b = rows.select(a=rows.end), other.select(b=other.end)
        kinds: tuple[JoinKind, ...] = ("inner", "anti", "left")
        return a.join(b, a.a <= b.b + 4, b.b <= a.a + 4, how=self.rng.choice(kinds))

    def events(self) -> tuple[Row, ...]:
        """Events with peers in whatever they are ranked by, but for their number."""
        found: list[Row] = []
        for number in range(self.rng.choice((6, 14, 24))):
            time = self.rng.randint(-5, 30)
            found.append(
                {
                    "k": self.rng.choice((1, 2, None)),
                    "y": self.rng.choice((0.0, -0.0, float("nan"), None)),
                    "t": time,
                    "u": time + self.rng.randint(-3, 4),
                    "n": number,
                    "v": self.rng.choice((1, 1, 2, -5, None)),
                    "w": self.rng.choice(("", "a", "b", "ä", None)),
                    "x": self.rng.choice((0.5, -0.0, 0.0, -3.25, 1e15, float("nan"), None)),
                    "b": self.rng.choice((True, False, None)),
                }
            )
        return tuple(found)
