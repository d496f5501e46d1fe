"""Random programs in which every family of ordered operators stands above and below others: situations of windows,
patterns of changes, windows of matches, as-of joins of versions; over events in any permitted order.

Between two operators rows have one form: a key, an instant, of which no key has two, and a number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import tidegate as tg
from tests.strategies.programs import Case, Row
from tests.strategies.ticks import instant_at, up_to_last
from tidegate.algebra.program import ProgramDef

#: The form of rows between operators.
COLUMNS: Final = "k bigint, t bigint, v bigint"
#: The families that are put together.
STEPS: Final = (
    "over",
    "ahead",
    "asof",
    "versions",
    "looked_up",
    "windows",
    "begun",
    "opened",
    "empty",
    "ranks",
    "ticks",
    "filled",
    "deduplicated",
    "distinct",
    "history",
    "situations",
    "pattern",
    "sequence",
    "joined",
    "met",
    "unmet",
)
#: Those and windows of a calendar, of rows on days.
ON_DAYS: Final = (*STEPS, "dated")
_SPANS = (1, 2, 3, 5)


def random_composed_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = Composed(random.Random(f"composed {seed}"), on_days=seed % 6 == 0)
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class Composed:
    """Draws chains of operators over two streams."""

    def __init__(self, rng: random.Random, *, on_days: bool = False) -> None:
        self.rng, self.on_days = rng, on_days
        columns = COLUMNS.replace("t bigint", "t date") if on_days else COLUMNS
        self.streams = [tg.stream(name, columns, progress="t") for name in "EF"]
        self.rows = {name: self.events() for name in "EF"}

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def results(self) -> dict[str, tg.Relation]:
        return {name: self.above(self.chain(self.rng.choice((2, 2, 3)))) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def chain(self, length: int) -> tg.Relation:
        rows: tg.Relation = self.rng.choice(self.streams)
        if self.chance(0.15):
            rows = rows.where(rows.v >= 1)
        for _ in range(length):
            rows = self.step(self.rng.choice(ON_DAYS if self.on_days else STEPS), rows)
        return rows

    def step(self, name: str, rows: tg.Relation) -> tg.Relation:
        """An operator of a family over rows, and its rows in the form of all."""
        made: Callable[[tg.Relation], tg.Relation] = getattr(self, f"_{name}")
        return made(rows)

    def other(self) -> tg.Relation:
        """What rows are looked up in, or joined with."""
        return self.chain(self.rng.choice((0, 0, 1)))

    # -- one operator each -------------------------------------------------------------------------------------------

    def _over(self, rows: tg.Relation) -> tg.Relation:
        frame: dict[str, Any] = self.rng.choice(({}, {"range": self.rng.choice(_SPANS)}, {"rows": (2, 0)}))
        column = self.rng.choice(
            (
                tg.lag(rows.v),
                tg.lag(rows.v, 2, 7),
                tg.previous_different(rows.v),
                tg.row_number(),
                tg.count(),
                tg.sum(rows.v),
                tg.max(rows.v),
                tg.last(rows.v, by=rows.t),
            )
        )
        return of_form(rows.over(by="k", order="t", c=column, **frame), v="c")

    def _ahead(self, rows: tg.Relation) -> tg.Relation:
        within = self.rng.choice(_SPANS)
        column = self.rng.choice(
            (
                tg.lead(rows.v, within=within),
                tg.next_different(rows.v, within=within),
                *([] if self.on_days else [tg.lead(rows.t, within=within)]),
            )
        )
        return of_form(rows.over(by="k", order="t", c=column), v="c")

    def _asof(self, rows: tg.Relation) -> tg.Relation:
        direction: Any = self.rng.choice(("backward", "backward", "forward", "nearest"))
        within = self.rng.choice(_SPANS if direction != "backward" else (None, *_SPANS))
        left, right = rows.as_("l"), self.other().as_("r")
        joined = left.asof_join(
            right,
            by="k",
            left_on=left.t,
            right_on=right.t,
            direction=direction,
            within=within,
            strict=self.chance(0.3),
            how=self.rng.choice(("left", "inner")),
        )
        return of_form(joined, k="l.k", t="l.t", v=self.rng.choice(("l.v", "r.v")))

    def _versions(self, rows: tg.Relation) -> tg.Relation:
        return of_form(rows.versions(by="k"), t="until")

    def _looked_up(self, rows: tg.Relation) -> tg.Relation:
        left, right = rows.as_("l"), self.other().as_("r")
        table = right.versioned(by="r.k", deleted=right.v < 0)
        joined = left.temporal_join(table, on=[("l.k", "r.k")], at=left.t, how=self.rng.choice(("left", "inner")))
        return of_form(joined, k="l.k", t="l.t", v="r.v")

    def _windows(self, rows: tg.Relation) -> tg.Relation:
        every = self.rng.choice((1, 2, 3))
        bounds = self.rng.choice(
            (
                tg.session(self.rng.choice(_SPANS)),
                tg.hopping(every * self.rng.choice((1, 2, 3)), every=every),
                tg.hopping(5, every=2),
                tg.cumulating(every * 2, every=every),
                tg.rows(2, every=self.rng.choice((1, 2))),
            )
        )
        number = self.rng.choice((tg.count(), tg.sum(rows.v), tg.min(rows.v), tg.count_distinct(rows.v)))
        return of_form(rows.windows(bounds, by="k").agg(v=number), t="end")

    def _begun(self, rows: tg.Relation) -> tg.Relation:
        """Windows that begin at the first row of their key, of all its rows or of some."""
        every = self.rng.choice((2, 3))
        bounds = self.rng.choice(
            (tg.landmark(every, every=every), tg.hopping(every * self.rng.choice((1, 2)), every=every, align="first"))
        )
        return of_form(rows.windows(bounds, by="k").agg(v=tg.sum(rows.v)), t="end")

    def _opened(self, rows: tg.Relation) -> tg.Relation:
        """Windows that rows of one relation open and those of the other close."""
        opens, closes = self.streams[1], rows
        begin, end = opens.where(opens.v >= 1).select("k", "t"), closes.where(closes.v < 1).select("k", "t")
        bounds = tg.between(begin, end, by="k")
        return of_form(rows.windows(bounds, by="k").agg(v=tg.count()), t="end")

    def _dated(self, rows: tg.Relation) -> tg.Relation:
        bounds = self.rng.choice((tg.calendar("week"), tg.calendar("day", size=3), tg.calendar("month", empty=True)))
        return _of_complete(rows.windows(bounds, by="k").agg(v=tg.count()))

    def _empty(self, rows: tg.Relation) -> tg.Relation:
        """Windows without rows as well, with the instants at which they are complete."""
        windows = rows.windows(tg.hopping(3, every=3, empty=True), by="k").agg(v=tg.count())
        return _of_complete(windows)

    def _ranks(self, rows: tg.Relation) -> tg.Relation:
        ending = rows.with_(end=tg.ceil(rows.t, self.rng.choice((3, 5))))
        by = self.rng.choice((("k", "end"), ("end",)))
        if self.chance(0.5):
            return of_form(ending.top_k(self.rng.choice((1, 2)), by=by, order=tg.desc("v")))
        return of_form(ending.ranked(by=by, order="v", place=self.rng.choice((tg.rank(), tg.dense_rank()))), v="place")

    def _ticks(self, rows: tg.Relation) -> tg.Relation:
        within = self.rng.choice((None, *_SPANS))
        ticks = rows.ticks(self.rng.choice((1, 2, 3)), by="k", within=within)
        if within is None:
            ticks = up_to_last(ticks, rows, self.rows)
        return of_form(ticks.with_(v=tg.lit(1)), t="tick")

    def _filled(self, rows: tg.Relation) -> tg.Relation:
        within = self.rng.choice((None, *_SPANS))
        filled = rows.fill_gaps(self.rng.choice((1, 2, 3)), by="k", within=within)
        if within is None:
            filled = up_to_last(filled, rows, self.rows)
        return of_form(filled, t="tick")

    def _deduplicated(self, rows: tg.Relation) -> tg.Relation:
        return of_form(rows.dedup(by=("k", "v"), within=self.rng.choice((None, 2, 4))))

    def _distinct(self, rows: tg.Relation) -> tg.Relation:
        return of_form(rows.distinct_on("k", "v"))

    def _history(self, rows: tg.Relation) -> tg.Relation:
        return of_form(rows.versioned(by="k", deleted=rows.v < 0).history(), t="until")

    def _situations(self, rows: tg.Relation) -> tg.Relation:
        return of_form(self._derived(rows).High.unqualified(), t="te", v="n")

    def _pattern(self, rows: tg.Relation) -> tg.Relation:
        found = self._derived(rows)
        high, low = found.High, found.Low
        met = self.rng.choice((high.meets(low), high.before(low), low.meets(high) | low.before(high)))
        emission: Any = self.rng.choice(("earliest", "final"))
        return each_once(tg.match(met, within=self.rng.choice((5, 9)), emission=emission), "detected")

    def _derived(self, rows: tg.Relation) -> Any:
        level, least = self.rng.choice((0, 1)), self.rng.choice((1, 1, 2))
        return rows.partition_by("k", time="t").derive(
            High=tg.situation(rows.v > level, at_least=least, n=tg.count()),
            Low=tg.situation(rows.v <= level, n=tg.count()),
        )

    def _sequence(self, rows: tg.Relation) -> tg.Relation:
        pattern = self.rng.choice(("A B", "A B+", "A B C"))
        define: dict[str, Any] = {"B": lambda m: m.B.v >= m.A.v, "C": lambda m: m.C.v < m.B.v}
        found = rows.sequences(
            pattern,
            by="k",
            order="t",
            define={name: condition for name, condition in define.items() if name in pattern},
            within=self.rng.choice((4, 8)),
            skip=self.rng.choice(("next row", "past last row")),
        )
        return each_once(found, "detected")

    def _joined(self, rows: tg.Relation) -> tg.Relation:
        left, right = rows.as_("l"), self.other().as_("r")
        joined = left.join(right, left.k == right.k, left.t <= right.t, right.t <= left.t + self.rng.choice(_SPANS))
        return joined.group_by(k=joined["l.k"], t=joined["r.t"]).agg(v=tg.max(joined["l.v"]))

    def _met(self, rows: tg.Relation) -> tg.Relation:
        left, right = rows.as_("l"), self.other().as_("r")
        return of_form(left.semi_join(right, left.k == right.k, right.t <= left.t), k="l.k", t="l.t", v="l.v")

    def _unmet(self, rows: tg.Relation) -> tg.Relation:
        left, right = rows.as_("l"), self.other().as_("r")
        later = self.rng.choice((0, 2))
        none = left.anti_join(right, left.k == right.k, left.t <= right.t, right.t <= left.t + later)
        return of_form(none, k="l.k", t="l.t", v="l.v")

    # -- the result ---------------------------------------------------------------------------------------------------

    def above(self, rows: tg.Relation) -> tg.Relation:
        style = self.rng.random()
        if style < 0.7:
            return rows
        if style < 0.85:
            return rows.group_by(w=tg.ceil(rows.t, 5)).agg(n=tg.count(), v=tg.sum(rows.v))
        least = self.rng.randint(2, 9)
        return rows.where(rows.t > instant_at(rows, "t", least))

    def events(self) -> tuple[Row, ...]:
        """Events of a few keys, no two of one at an instant."""
        keys = self.rng.sample((1, 2, None), self.rng.choice((1, 2, 2)))
        places = [(key, t) for key in keys for t in range(25)]
        chosen = self.rng.sample(places, min(len(places), self.rng.choice((8, 14, 22))))
        return tuple({"k": key, "t": t, "v": self.rng.choice((0, 1, 1, 2, -1, None))} for key, t in chosen)


def of_form(rows: tg.Relation, *, k: str = "k", t: str = "t", v: str = "v") -> tg.Relation:
    """The rows in the form that all have, of these attributes."""
    return rows.select(k=k, t=t, v=v)


def each_once(rows: tg.Relation, at: str) -> tg.Relation:
    """The instants of rows of a key, each once, with how many there are."""
    return rows.group_by(k="k", t=at).agg(v=tg.count())


def _of_complete(windows: tg.Relation) -> tg.Relation:
    """What is counted in windows, by when they are complete where that is told: in all of a key that are so at once."""
    if "complete" not in windows.schema:
        return of_form(windows, t="end")
    return of_form(windows.group_by("k", "complete").agg(v=tg.sum(windows.v)), t="complete")
