"""Random programs of rows with values of the rows around them, over events that come in any permitted order."""

from __future__ import annotations

import random
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.program import ProgramDef

#: What makes frames that are just reached, and just left.
_SPANS = (0, 1, 2, 3, 5, 8)


def random_over_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _Overs(*(random.Random(f"{what} {seed}") for what in ("over", "whole", "sketched", "deep", "named", "far")))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Overs:
    def __init__(
        self,
        rng: random.Random,
        whole: random.Random,
        sketched: random.Random,
        deep: random.Random,
        named: random.Random,
        far: random.Random,
    ) -> None:
        self.rng, self.whole, self.sketched, self.deep, self.named, self.far = rng, whole, sketched, deep, named, far
        self.keys = rng.choice(((), ("k",), ("k",), ("k", "y")))
        self.tie = "n" if self.chance(0.3) else None
        # Peers: rows of one instant, of which nothing says which comes first.
        self.peers = self.tie is None and self.chance(0.3)
        # A second instant, which lies before the first or after it.
        self.second = self.chance(0.3)
        columns = "k bigint, y double, t bigint, u bigint, n bigint, v bigint, w string, x double, b boolean"
        options: dict[str, Any] = {"temporal": "u", "relations": self.related} if self.second else {}
        self.stream = tg.stream(
            "E",
            columns,
            progress=rng.choice(("t", ("t", "u"))) if self.second else "t",
            **options,
        )
        self.rows = {"E": self.events()}

    @staticmethod
    def related(row: Any) -> Any:
        return [row.u <= row.t + 4, row.t <= row.u + 3]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def results(self) -> dict[str, tg.Relation]:
        return {name: self.above(self.over()) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def over(self) -> tg.Relation:
        rows: tg.Relation = self.stream
        if self.chance(0.2):
            rows = rows.where(rows.v >= 1)
        if self.chance(0.15):
            # More than row-wise: a query of its own, whose rows come as it advances.
            rows = rows.distinct()
        if not self.peers and self.chance(0.2):
            within = self.rng.choice((None, *_SPANS))
            rows = rows.dedup(by=self.keys, within=within, order="t", tie=self.tie)
        for number in range(self.rng.choice((1, 1, 2))):
            first = number if self.columns_of(rows) else 0  # or the names of those that nobody sees
            columns = {f"c{first}{i}": self.column(rows) for i in range(self.rng.choice((1, 2, 3)))}
            frame = self.frame()
            if any(before is not None for before, _ in frame.values()) and self.whole.random() < 0.5:
                columns |= {f"w{number}": self.keeping_values(rows)}
            if self.sketched.random() < 0.3:
                columns |= {f"s{number}": self.sketch(rows)}
            if self.far.random() < 0.4:
                frame, columns = self.of_blocks(rows, first)
            if number and self.deep.random() < 0.6 and self.columns_of(rows):
                columns |= {f"d{i}": self.of_columns(rows) for i in range(self.deep.choice((1, 2)))}
            rows = rows.over(by=self.keys, order="t", tie=self.tie, **frame, **columns)
            if self.chance(0.2) and number == 0:
                # The next ones are then no columns of the same operator.
                rows = rows.with_(twice=rows.v * 2)
                rows = rows.rename(complete="known") if "complete" in rows.schema else rows
            if number == 0 and "complete" not in rows.schema:
                rows = self.named_otherwise(rows)
        return rows.unqualified()

    def named_otherwise(self, rows: tg.Relation) -> tg.Relation:
        """In two thirds, with fewer attributes or other names."""
        columns = self.columns_of(rows)
        style = self.named.choice(("", "", "fewer", "none", "qualified", "swapped"))
        if style in ("fewer", "qualified"):
            rows = rows.drop(self.named.choice(columns))
        if style == "none":
            rows = rows.drop(*columns)
        if style == "swapped" and self.tie is None:
            rows = rows.rename(v="n", n="v")
        return rows.as_("m") if style == "qualified" else rows

    @staticmethod
    def columns_of(rows: tg.Relation) -> list[str]:
        """The names of the columns of the first call."""
        return [name for name in rows.schema.names if name.removeprefix("m.").startswith("c0")]

    def frame(self) -> dict[str, Any]:
        """A frame; by rows only where one comes first."""
        style = self.rng.random()
        before, after = self.rng.choice((*_SPANS, None)), self.rng.choice((0, 0, 0, *_SPANS))
        if style < 0.3:
            return {}
        if style < 0.65 and not self.peers:
            return {"rows": (before, after if after < 4 else 0)}
        return {"range": (before, after)}

    def keeping_values(self, rows: tg.Relation) -> Any:
        """An aggregate that keeps every value, which frames with a beginning have."""
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
                tg.stddev(number, filter=rows.b),
            )
        )

    def of_blocks(self, rows: tg.Relation, first: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """A frame that has a beginning, and columns of which blocks of rows say what they come to."""
        value, by = (
            self.far.choice((rows.v, rows.x, rows.b, rows.v + rows.n, rows.t)),
            self.far.choice((rows.n, rows.x)),
        )
        number = self.far.choice((rows.v, rows.x, rows.n, rows.v * rows.n))
        of: list[Any] = [
            *(tg.count(), tg.count(value), tg.sum(number), tg.avg(number), tg.min(value), tg.max(value)),
            *(tg.first(value, by=by), tg.last(value, by=by), tg.arg_max(value, rows.x)),
        ]
        frame = {"range": (self.far.choice(_SPANS), self.far.choice((0, 0, 1, 3)))}
        if not self.peers:
            of += [tg.first(rows.w, by=rows.t), tg.last(value, by=rows.t), tg.nth(value, self.far.choice((1, 2)))]
            within = self.far.choice((None, None, 1, 4))
            of += [tg.lag(rows.w, self.far.choice((1, 3)), within=within), tg.lead(rows.v, 2, 7, within=within)]
            if self.far.random() < 0.5:
                frame = {"rows": (self.far.choice(_SPANS), self.far.choice((0, 0, 1, 3)))}
        return frame, {f"c{first}{i}": self.far.choice(of) for i in range(self.far.choice((1, 2, 3, 4)))}

    def of_columns(self, rows: tg.Relation) -> Any:
        """A column over values of the columns before."""
        value = rows[self.deep.choice(self.columns_of(rows))]
        aggregates = [tg.count(value), tg.max(value), tg.min(value), tg.last(value, by=rows.n)]
        if self.peers:
            return self.deep.choice(aggregates)
        near = [tg.lag(value), tg.previous_different(value), tg.nth(value, 2), tg.lead(value, within=2)]
        return self.deep.choice([*aggregates, *near])

    def sketch(self, rows: tg.Relation) -> Any:
        value = self.sketched.choice((rows.v, rows.w, rows.x, rows.b, rows.v + rows.n, rows.t))
        number = self.sketched.choice((rows.v, rows.x, rows.n, rows.v * rows.n))
        quantile = tg.approx_quantile(number, self.sketched.choice((0, 0.3, 1)))
        return self.sketched.choice((tg.approx_distinct(value), quantile, tg.approx_distinct(value, filter=rows.b)))

    def column(self, rows: tg.Relation) -> Any:
        """A column over rows; of one that looks ahead in whatever way a quarter."""
        value = self.rng.choice((rows.v, rows.w, rows.x, rows.b, rows.v + rows.n, rows.t))
        number = self.rng.choice((rows.v, rows.x, rows.n, rows.v * rows.n))
        aggregates = [
            tg.count(),
            tg.count(value),
            tg.sum(number),
            tg.avg(number),
            tg.min(value),
            tg.max(value),
            tg.first(value, by=rows.n),
            tg.last(value, by=rows.n),
            tg.arg_max(value, rows.x),
            tg.sum(number, filter=rows.b),
        ]
        if self.peers or self.chance(0.5):
            return self.rng.choice(aggregates)
        within = self.rng.choice((None, None, *_SPANS))
        n = self.rng.choice((1, 1, 2, 3))
        return self.rng.choice(
            (
                tg.lag(value, n, within=within),
                tg.lag(rows.v, n, 7),
                tg.row_number(),
                tg.previous_different(value),
                tg.nth(value, n),
                tg.first(value, by=rows.t),
                tg.last(value, by=rows.t),
                tg.lead(value, n, within=within),
                tg.next_different(value, within=within),
                tg.lead(rows.v, n, 7, within=self.rng.choice(_SPANS)),
            )
        )

    def above(self, rows: tg.Relation) -> tg.Relation:
        """What is made of the rows: nothing, fewer of them, their number in a window, or pairs with others."""
        complete = "complete" if "complete" in rows.schema else "t"
        style = self.rng.random()
        if style < 0.55:
            return rows
        if style < 0.65:
            return rows.where(rows[complete] > self.rng.randint(2, 9))
        if style < 0.75:
            return rows.group_by(w=tg.ceil(rows[complete], 5)).agg(n=tg.count())
        if style < 0.85:
            return rows.select(*(name for name in rows.schema.names if name != complete))
        other = self.over()
        its = "complete" if "complete" in other.schema else "t"
        a, b = rows.select(a=rows[complete]), other.select(b=other[its])
        kinds: tuple[JoinKind, ...] = ("inner", "anti", "left")
        return a.join(b, a.a <= b.b + 4, b.b <= a.a + 4, how=self.rng.choice(kinds))

    def events(self) -> tuple[Row, ...]:
        """Events of a few partitions; no two of one at an instant, unless they are peers or something orders them."""
        found: list[Row] = []
        keys = [(k, y) for k in self.rng.sample((1, 2, 3, None), self.rng.choice((1, 2, 3))) for y in (0.0, -0.0, None)]
        taken: set[tuple[object, ...]] = set()
        for _ in range(self.rng.choice((6, 14, 24))):
            k, y = self.rng.choice(keys)
            time = self.rng.randint(0, 30)
            partition = [{"k": k, "y": None if y is None else 0.0}[key] for key in self.keys]
            number = self.rng.randint(0, 3)
            place = (*partition, time, number if self.tie is not None else None)
            if place in taken and not self.peers:
                continue
            taken.add(place)
            found.append(
                {
                    "k": k,
                    "y": y,
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
