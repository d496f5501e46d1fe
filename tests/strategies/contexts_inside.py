"""Random programs of operators that gather rows in order: what they read lies in contexts, or what they yield; and of
queries of the same rows in several contexts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import tidegate as tg
from tests.strategies.contexts import RandomContexts
from tests.strategies.contexts_above import RandomAbove
from tests.strategies.programs import Case, Row
from tests.strategies.sequences import random_pattern
from tidegate.algebra.ordered.match.node import Emission
from tidegate.algebra.ordered.sequences.pattern import Concatenation, Step, is_nullable, variables_of
from tidegate.algebra.program import ProgramDef

#: Rows that an operator yields, the attributes that are the model's keys, and the instant at which a row is complete.
Gathered = tuple[tg.Relation, Sequence[str], str]
#: What a row of a pattern's variable is like.
_VARIABLES: Final[dict[str, Callable[[Any], Any]]] = {
    "A": lambda m: m.A.v >= 1,
    "B": lambda m: m.B.v < 2,
    "C": lambda m: m.C.v > m.C.prev().v,
}


def random_inside_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = _Inside(random.Random(f"contexts inside {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Inside(RandomAbove):
    """Each row has a number of its own, which orders those of an instant."""

    columns = f"{RandomContexts.columns}, n bigint"
    #: The stream of which all operators read rows, and the context in which these are.
    together: tuple[tg.Relation, str] | None = None

    def events(self) -> tuple[Row, ...]:
        some = super().events()[: self.rng.choice((8, 14))]
        return tuple({**row, "n": number} for number, row in enumerate(some))

    def results(self) -> dict[str, tg.Relation]:
        model = self.model()
        chained = self.chained(model)
        if self.chance(0.25):
            return {**chained, **self.each(model)}
        names = "QR"[: self.rng.choice((1, 2))]
        if len(names) == 2 and self.chance(0.7):
            self.together = self.rng.choice(self.streams), self.rng.choice((*self.contexts, "d"))
        return {**chained, **{name: self.looked_up(model, *self.gathered(model)) for name in names}}

    def each(self, model: tg.ContextModel) -> dict[str, tg.Relation]:
        """The same rows, made of two relations or three, in each of some contexts; some beside others of their own."""
        rows, sides = self.of_two(self.rng.choice(("inner", "inner", "left", "semi", "anti", "three", "group")))
        options: dict[str, Any] = {"by": [sides[-1] + key for key in self.keys], "at": f"{sides[-1]}t"}
        if self.chance(0.6):
            options["since"] = f"{sides[0]}t"
        every = self.rng.sample((*self.contexts, "d"), len(self.contexts) + 1)
        found: dict[str, tg.Relation] = {}
        for name, context in zip("QRS", every, strict=False):
            some = (context, self.rng.choice(every)) if self.chance(0.15) else (context,)
            inside = self.beside(rows, sides[-1]).in_context(model, *dict.fromkeys(some), **options)
            found[name] = inside.select(f"{sides[-1]}t") if self.chance(0.3) else inside
        return found

    def beside(self, rows: tg.Relation, side: str) -> tg.Relation:
        """The rows, those that satisfy something, or each with others that come shortly before it."""
        style = self.rng.random()
        if style < 0.5:
            return rows
        if style < 0.6:
            return rows.where(rows[f"{side}t"] > self.rng.choice((3, 8)))
        other, time = self.asked(self.rng.choice(self.streams)).as_("o"), rows[f"{side}t"]
        equal = [rows[side + key] == other[key] for key in self.keys]
        return rows.join(other, *equal, other.t <= time, time <= other.t + self.rng.choice((1, 3)))

    def gathered(self, model: tg.ContextModel) -> Gathered:
        rows, by = self.standing(model)
        forms = (self.around, self.in_windows, self.ranked, self.as_of, self.situations, self.allen, self.intervals)
        return self.rng.choice((*forms, self.matched, self.matched))(model, rows, by)

    def standing(self, model: tg.ContextModel) -> tuple[tg.Relation, Sequence[str]]:
        """Rows of a stream in contexts, or outside of some, and by what operators gather them: by the model's keys, or
        window by window.
        """
        if self.together is not None:
            stream, context = self.together
            return self.inside_of(model, self.asked(stream), context)
        rows, every = self.asked(self.rng.choice(self.streams)), (*self.contexts, "d")
        if self.chance(0.15):
            return rows, self.keys
        some = self.rng.sample(every, 1 if self.chance(0.7) else min(2, len(every)))
        if self.chance(0.2):
            return rows.not_in_context(model, *some, at="t"), self.keys
        if len(some) > 1:
            return rows.in_context(model, *some, at="t"), self.keys
        return self.inside_of(model, rows, *some)

    def inside_of(self, model: tg.ContextModel, rows: tg.Relation, context: str) -> tuple[tg.Relation, Sequence[str]]:
        """Rows in one context, gathered over all its windows, or in each."""
        if self.chance(0.5):
            return rows.in_context(model, context, at="t"), self.keys
        inside = rows.in_context(model, context, at="t", values={"since": "began"})
        return inside, (*self.keys, "since") if self.chance(0.5) else self.keys

    def around(self, _: tg.ContextModel, rows: tg.Relation, by: Sequence[str]) -> Gathered:
        frames: tuple[dict[str, Any], ...] = ({}, {"rows": (2, 0)}, {"range": (3, 0)}, {"range": (2, 1)})
        columns: dict[str, Any] = {
            "before": tg.lag(rows.v),
            "after": tg.lead(rows.v, within=2),
            "total": tg.sum(rows.v),
        }
        names = self.rng.sample(sorted(columns), self.rng.choice((1, 2)))
        frame = self.rng.choice(frames)
        found = rows.over(by=by, order="t", tie="n", **frame, **{name: columns[name] for name in names})
        return found, self.keys, "complete" if "complete" in found.schema else "t"

    def in_windows(self, _: tg.ContextModel, rows: tg.Relation, by: Sequence[str]) -> Gathered:
        found: tg.Relation
        if self.chance(0.2):
            found = rows.windows(tg.rows(2), by=by, order="t", tie="n").agg(total=tg.sum(rows.v))
        else:
            bounds = (tg.session(2), tg.session(4), tg.hopping(6, every=2), tg.cumulating(6, every=3))
            found = rows.windows(self.rng.choice(bounds), by=by, order="t").agg(many=tg.count(), most=tg.max(rows.w))
        return found, self.keys, "complete" if "complete" in found.schema else "end"

    def ranked(self, _: tg.ContextModel, rows: tg.Relation, by: Sequence[str]) -> Gathered:
        ended = rows.with_(end=tg.ceil(rows.t, 5))
        return ended.top_k(self.rng.choice((1, 2)), by=("end", *by), order=(tg.desc("v"), "n")), self.keys, "end"

    def as_of(self, model: tg.ContextModel, rows: tg.Relation, _: Sequence[str]) -> Gathered:
        """With the row of another stream nearest in time, which may lie in contexts, too."""
        other = self.standing(model)[0] if self.chance(0.4) else self.rng.choice(self.streams)
        left, right = rows.as_("l"), other.as_("r")
        found = left.asof_join(
            right,
            by=self.keys,
            left_on=left.t,
            right_on=right.t,
            tie="n",
            direction=self.rng.choice(("backward", "backward", "forward", "nearest")),
            within=self.rng.choice((None, 2, 5)),
            how=self.rng.choice(("left", "inner")),
        )
        return found, [f"l.{key}" for key in self.keys], "complete" if "complete" in found.schema else "l.t"

    def derived(self, rows: tg.Relation, by: Sequence[str]) -> Any:
        return rows.partition_by(*by, time="t", tie="n").derive(
            A=tg.situation(rows.v >= 1, at_least=self.rng.choice((None, 2))),
            B=tg.situation(rows.v < 2, many=tg.count()),
        )

    def situations(self, _: tg.ContextModel, rows: tg.Relation, by: Sequence[str]) -> Gathered:
        name, found = self.rng.choice("AB"), self.derived(rows, by)
        return found[name], [f"{name}.{key}" for key in self.keys], f"{name}.te"

    def allen(self, _: tg.ContextModel, rows: tg.Relation, by: Sequence[str]) -> Gathered:
        found = self.derived(rows, by)
        a, b = found.A, found.B
        related = self.rng.choice(
            (a.overlaps(b) | a.during(b), a.before(b), a.meets(b) | a.starts(b) | a.equals(b), b.contains(a))
        )
        emission: Emission = self.rng.choice(("earliest", "final"))
        return tg.match(related, within=self.rng.choice((4, 8)), emission=emission), self.keys, "detected"

    def intervals(self, model: tg.ContextModel, rows: tg.Relation, by: Sequence[str]) -> Gathered:
        """An interval sequence of periods that rows begin."""
        other = self.standing(model)[0] if self.chance(0.3) and by == self.keys else rows
        a, b = (
            one.where(condition)
            .with_(until=one.t + self.rng.choice((1, 3)))
            .select(*by, "t", "until")
            .as_intervals(start="t", end="until", by=by, name=name)
            for name, one, condition in (("A", rows, rows.v >= 1), ("B", other, other.v < 2))
        )
        related = self.rng.choice((a.te <= b.ts, a.ts < b.ts, (a.ts <= b.te) & (b.ts < a.te)))
        return tg.iseq(related, of=(a, b), within=self.rng.choice((4, 9))), self.keys, "detected"

    def matched(self, _: tg.ContextModel, rows: tg.Relation, by: Sequence[str]) -> Gathered:
        """Matches of a row pattern; of one that is refused another is drawn."""
        while True:
            try:
                return self.drawn(rows, by), self.keys, "detected"
            except tg.QueryError:
                continue

    def drawn(self, rows: tg.Relation, by: Sequence[str]) -> tg.Relation:
        how: Literal["preferred", "contiguous", "any"] = self.rng.choice(
            ("preferred", "preferred", "contiguous", "any")
        )
        pattern = random_pattern(self.rng, 1, skips=how != "preferred")
        if how != "preferred" and is_nullable(pattern):
            pattern = Concatenation((Step("A"), pattern))
        found: tg.Relation = rows.sequences(
            pattern,
            by=by,
            order="t",
            tie="n",
            define={name: _VARIABLES[name] for name in variables_of(pattern)},
            matches=how,
            within=self.rng.choice((1, 3)),
            many=lambda m: m.rows.agg(tg.count()),
            least=lambda m: m.rows.first().v,
        )
        return found

    def looked_up(self, model: tg.ContextModel, rows: tg.Relation, keys: Sequence[str], at: str) -> tg.Relation:
        """All rows of an operator, or those in contexts, or outside of some."""
        if self.chance(0.45):
            return rows
        every = (*self.contexts, "d")
        some = self.rng.sample(every, 1 if self.chance(0.7) else min(2, len(every)))
        if self.chance(0.3):
            return rows.not_in_context(model, *some, by=keys, at=at)
        # That all of a match lies in one window, since its first row, or its first interval if that is A.
        first = next((name for name in ("first", "A.ts") if name in rows.schema), None)
        if first is None or self.chance(0.3):
            return rows.in_context(model, *some, by=keys, at=at)
        last = "last" if "last" in rows.schema and self.chance(0.4) else at
        values = {"window": "began"} if len(some) == 1 and self.chance(0.3) else None
        return rows.in_context(model, *some, by=keys, at=last, since=first, values=values)
