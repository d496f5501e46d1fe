"""Random programs of windows that depend on rows or overlap, over events that come in any permitted order."""

from __future__ import annotations

import random
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.program import ProgramDef


def random_windows_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _Windows(*(random.Random(f"{what} {seed}") for what in ("windows", "odd", "between", "whole")))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Windows:
    def __init__(self, rng: random.Random, odd: random.Random, opening: random.Random, whole: random.Random) -> None:
        self.rng, self.odd, self.opening, self.whole = rng, odd, opening, whole
        self.keys = rng.choice(((), ("k",), ("k",), ("k", "y"), ("k", "u"), ("day",)))
        columns = "k bigint, y double, t bigint, u bigint, n bigint, v bigint, w string, x double, b boolean, s bigint"
        # A second instant, which lies before the first or after it; with it as a key few rows are of one.
        second = "u" in self.keys or self.chance(0.3)
        options: dict[str, Any] = {"temporal": "u", "relations": self.related} if second else {}
        progress = rng.choice(("t", ("t", "u"))) if second else "t"
        self.stream = tg.stream("E", columns, progress=progress, **options)
        self.rows = {"E": self.events()}

    @staticmethod
    def related(row: Any) -> Any:
        return [row.u <= row.t + 4, row.t <= row.u + 3]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def results(self) -> dict[str, tg.Relation]:
        found = {name: self.above(self.windows()) for name in "QR"[: self.rng.choice((1, 1, 2))]}
        return found | {"B": self.between()} if self.opening.random() < 0.25 else found

    def windows(self) -> tg.Relation:
        rows: tg.Relation = self.stream
        if self.chance(0.2):
            rows = rows.where(rows.v >= 1)
        if self.chance(0.15):
            # More than row-wise: a query of its own, whose rows come as it advances.
            rows = rows.distinct()
        if "day" in self.keys:
            # A window is then within a day.
            rows = rows.with_(day=tg.ceil(rows.t, 7))
        if self.chance(0.15):
            # Windows of windows.
            below = rows.windows(self.bounds(), by=self.keys, order="t").agg(v=tg.count(), x=tg.avg(rows.x))
            return below.windows(self.bounds(), by=self.keys, order=at(below)).agg(n=tg.count(), v=tg.sum(below.v))
        aggregates = {f"c{i}": self.aggregate(rows) for i in range(self.rng.choice((0, 1, 2, 3)))}
        if self.chance(0.15):
            every = self.rng.choice((1, 2, 3))
            counted = tg.rows(self.size(every, self.rng.choice((1, 2, 3, 5))), every=every)
            aggregates |= self.keeping_values(rows)
            return rows.windows(counted, by=self.keys, order="t", tie="s").agg(**aggregates)
        bounds = self.bounds()
        if not repr(bounds).startswith("landmark"):
            aggregates |= self.keeping_values(rows)
        return rows.windows(bounds, by=self.keys, order="t").agg(**aggregates)

    def keeping_values(self, rows: tg.Relation) -> dict[str, Any]:
        """Of two fifths an aggregate that keeps every value, or two."""
        if self.whole.random() < 0.6:
            return {}
        return {f"w{i}": self.of_all_values(rows) for i in range(self.whole.choice((1, 1, 2)))}

    def of_all_values(self, rows: tg.Relation) -> Any:
        value = self.whole.choice((rows.v, rows.w, rows.x, rows.b, rows.v + rows.n, rows.t))
        number = self.whole.choice((rows.v, rows.x, rows.n, rows.v * rows.n))
        return self.whole.choice(
            (
                tg.count_distinct(value),
                tg.variance(number),
                tg.stddev(number),
                tg.median(number),
                tg.quantile(number, 0.3),
                tg.mode(value),
                tg.string_agg(rows.w, ",", by=rows.t),
                tg.string_agg(rows.w, ",", by=rows.n),
                tg.approx_distinct(value),
                tg.count_distinct(value, filter=rows.b),
            )
        )

    def between(self) -> tg.Relation:
        """Windows that rows of the stream open and close, with aggregates of its rows or these themselves."""
        rng, rows = self.opening, self.stream
        keys = [key for key in self.keys if key != "day"]
        opens, closes = rows.where(rows.v >= rng.choice((1, 2))), rows.where(rng.choice((rows.b, rows.v < 0)))
        longest = rng.choice((None, 3, 9))
        windows = tg.between(
            opens, closes, by=keys, at_most=longest, empty=rng.random() < 0.3, opens_at="t", closes_at="t"
        )
        style = rng.random()
        if style < 0.2:
            return windows
        if style < 0.4:
            return rows.in_context(windows, by=keys, at="t", values={"since": "start"})
        if style < 0.5:
            return rows.not_in_context(windows, by=keys, at="t")
        found = rows.windows(windows, by=keys, order="t").agg(
            n=tg.count(),
            total=tg.sum(rows.v * rows.n),
            most=tg.max(rows.w),
            last=tg.last(rows.v, by=rows.t),
            **self.keeping_values(rows),
        )
        if style < 0.7 and longest is not None:
            b, w = rows.select(at="t").as_("b"), found.select("n", "start", "end").as_("w")
            return b.join(w, w.start <= b.at, b.at <= w.end).select(b.at, w.n, w.end)
        return found

    def bounds(self) -> tg.WindowBounds:
        every, many = self.rng.choice((1, 2, 3, 5)), self.rng.choice((1, 2, 3, 4, 9, 40))
        offset, empty = self.rng.choice((None, None, 1, -4)), self.chance(0.2)
        return self.rng.choice(
            (
                tg.session(self.rng.choice((1, 2, 3, 6))),
                tg.hopping(self.size(every, many), every=every, offset=offset, empty=empty),
                tg.hopping(self.size(every, many), every=every, align="first", empty=empty),
                tg.cumulating(every * many, every=every, offset=offset, empty=empty),
                tg.landmark(self.rng.randint(-6, 12), every=every),
            )
        )

    def size(self, every: int, many: int) -> int:
        """So many times as long as windows are apart; of a third not a whole number of times."""
        return self.odd.randint(1, every * many) if self.odd.random() < 0.35 else every * many

    def aggregate(self, rows: tg.Relation) -> Any:
        value = self.rng.choice((rows.v, rows.w, rows.x, rows.b, rows.v + rows.n, rows.t))
        number = self.rng.choice((rows.v, rows.x, rows.n, rows.v * rows.n))
        return self.rng.choice(
            (
                tg.count(),
                tg.count(value),
                tg.sum(number),
                tg.avg(number),
                tg.min(value),
                tg.max(value),
                tg.first(value, by=rows.n),
                tg.last(value, by=rows.t),
                tg.arg_max(value, rows.x),
                tg.sum(number, filter=rows.b),
            )
        )

    def above(self, rows: tg.Relation) -> tg.Relation:
        """What is made of the windows: nothing, fewer of them, their number, or pairs with others."""
        style = self.rng.random()
        if style < 0.5:
            return rows
        if style < 0.6:
            return rows.where(rows.end > self.rng.randint(2, 9))
        if style < 0.75:
            return rows.group_by(w=tg.ceil(rows[at(rows)], 5)).agg(n=tg.count())
        if style < 0.85:
            return rows.drop(self.rng.choice(("start", "end")))
        other = self.windows()
        a, b = rows.select(a=rows[at(rows)]), other.select(b=other[at(other)])
        kinds: tuple[JoinKind, ...] = ("inner", "anti", "left")
        return a.join(b, a.a <= b.b + 4, b.b <= a.a + 4, how=self.rng.choice(kinds))

    def events(self) -> tuple[Row, ...]:
        """Events of a few partitions, with peers and with pauses."""
        keys = [(k, y) for k in self.rng.sample((1, 2, 3, None), self.rng.choice((1, 2, 3))) for y in (0.0, -0.0, None)]
        found: list[Row] = []
        for number in range(self.rng.choice((6, 14, 24))):
            k, y = self.rng.choice(keys)
            time = self.rng.randint(-5, 30)
            found.append(
                {
                    "k": k,
                    "y": y,
                    "t": time,
                    "u": time + self.rng.randint(-3, 4),
                    "n": self.rng.randint(0, 3),
                    "v": self.rng.choice((1, 1, 2, -5, None)),
                    "w": self.rng.choice(("", "a", "b", "ä", None)),
                    "x": self.rng.choice((0.5, -0.0, 0.0, -3.25, 1e15, float("nan"), None)),
                    "b": self.rng.choice((True, False, None)),
                    "s": number,
                }
            )
        return tuple(found)


def at(windows: tg.Relation) -> str:
    """The attribute by which windows are complete."""
    return "complete" if "complete" in windows.schema.names else "end"
