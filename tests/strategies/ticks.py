"""Random programs of instants at equal distances, over events that come in any permitted order."""

from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.ordered.events import instant_of
from tidegate.algebra.program import ProgramDef
from tidegate.algebra.semantics import Row as Tuple
from tidegate.algebra.semantics import evaluate
from tidegate.algebra.types import BIGINT


def random_ticks_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _Ticks(random.Random(f"ticks {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Ticks:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.keys = rng.choice(((), ("k",), ("k",), ("k", "y"), ("k", "u"), ("day",)))
        columns = "k bigint, y double, t bigint, u bigint, n bigint, v bigint"
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
        return {name: self.above(self.ticks()) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def ticks(self) -> tg.Relation:
        every, offset = self.rng.choice((1, 2, 3, 5, 7)), self.rng.choice((None, None, 1, -4))
        rows: tg.Relation = self.stream
        if "day" in self.keys:
            rows = rows.with_(day=tg.ceil(rows.t, 7))
        if self.chance(0.25):
            below = self.before(rows)
            return up_to_last(below.ticks(every, by=self.keys, offset=offset, order="t"), below, self.rows)
        within = self.rng.choice((0, 1, 3, 6, 10))
        if self.chance(0.2):
            rows = rows.where(rows.v >= 1)
        if self.chance(0.15):
            # More than row-wise: a query of its own, whose rows come as it advances.
            rows = rows.distinct()
        if self.chance(0.15):
            # Ticks of ticks.
            below = rows.ticks(self.rng.choice((2, 4)), by=self.keys, within=within, order="t")
            return below.rename(tick="t").ticks(every, by=self.keys, within=within, offset=offset, order="t")
        return rows.ticks(every, by=self.keys, within=within, offset=offset, order="t")

    def before(self, rows: tg.Relation) -> tg.Relation:
        """The rows themselves, or others whose instants are not those to which the input has come."""
        style = self.rng.random()
        if style < 0.4:
            return rows
        if style < 0.6:
            later = rows.with_(t2=rows.t + 3) if self.chance(0.3) else rows.with_(t2=tg.ceil(rows.t, 7))
            return later.drop("t").rename(t2="t")
        if style < 0.8:
            return rows.over(by="k", order="t", tie="n", c=tg.lead(rows.v, within=self.rng.choice((0, 1, 9))))
        windows = rows.windows(tg.hopping(self.rng.choice((3, 4)), every=2), by=self.keys, order="t")
        return windows.agg(c=tg.count()).drop("start").rename(end="t")

    def above(self, ticks: tg.Relation) -> tg.Relation:
        """What is made of the ticks: nothing, fewer of them, their number, their last rows, or pairs with rows."""
        style = self.rng.random()
        if style < 0.4:
            return ticks
        if style < 0.5:
            return ticks.where(ticks.tick > self.rng.randint(2, 9))
        if style < 0.65:
            return ticks.group_by(w=tg.ceil(ticks.tick, 5)).agg(n=tg.count())
        if style < 0.8:
            held = self.stream.fill_gaps(
                self.rng.choice((1, 3, 4)), by="k", within=self.rng.choice((0, 2, 8)), order="t", tie="n"
            )
            return held.select("k", "tick", "n", since="t")
        a, b = ticks.select(a=ticks.tick), self.stream.select(b=self.stream.t)
        kinds: tuple[JoinKind, ...] = ("inner", "anti", "left")
        return a.join(b, a.a <= b.b + 4, b.b <= a.a + 1, how=self.rng.choice(kinds))

    def events(self) -> tuple[Row, ...]:
        """Events of a few partitions, with peers and with pauses. Of one key no two have one instant and n."""
        keys = [(k, y) for k in self.rng.sample((1, 2, 3, None), self.rng.choice((1, 2, 3))) for y in (0.0, -0.0, None)]
        found: list[Row] = []
        for number in range(self.rng.choice((6, 14, 24))):
            k, y = self.rng.choice(keys)
            time = self.rng.randint(-5, 30)
            second = time + self.rng.randint(-3, 4)
            v = self.rng.choice((1, 1, 2, -5, None))
            found.append({"k": k, "y": y, "t": time, "u": second, "n": number, "v": v})
        return tuple(found)


def up_to_last(ticks: tg.Relation, rows: tg.Relation, inputs: Mapping[str, Sequence[Row]]) -> tg.Relation:
    """Ticks without a limit as far as the last of the `rows` that they follow.

    They go on to where the input has come to if that is later; what they mean has no progress.
    """
    given = defaultdict[str, list[Tuple]](list)
    for name, its in inputs.items():
        given[name] = [tuple(row.values()) for row in its]  # type: ignore[arg-type]  # the values are plain
    place = rows.schema.names.index("t")
    end = max((instant_of(row[place]) for row in evaluate(rows._node, given)), default=0)
    return ticks.where(ticks.tick <= instant_at(ticks, "tick", end))


def instant_at(rows: tg.Relation, name: str, ticks: int) -> Any:
    """An instant of the timeline of an attribute, of integers or days, as it is written."""
    return ticks if rows.schema[name].type == BIGINT else dt.date(1970, 1, 1) + dt.timedelta(days=ticks)
