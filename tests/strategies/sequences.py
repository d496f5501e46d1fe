"""Random row patterns, and programs of them over events that come in any permitted order."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case, Row
from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    absent_in,
    is_nullable,
    patterns_of,
    variables_of,
)
from tidegate.algebra.program import ProgramDef

#: How often a part is repeated: the least and the greatest number of times.
TIMES = ((0, None), (1, None), (0, 1), (2, 2), (1, 3), (0, 2), (2, None))


def random_sequences_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    drawn = RandomSequences(random.Random(f"sequences {seed}"))
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


def random_pattern(rng: random.Random, depth: int = 2, *, skips: bool = False) -> Pattern:
    """A pattern over A, B and C. `skips`: of one whose matches skip rows, without anchors and exclusions."""
    style = rng.random()
    if depth == 0 or style < 0.3:
        return Step(rng.choice("ABC"))
    parts = tuple(random_pattern(rng, depth - 1, skips=skips) for _ in range(rng.choice((2, 2, 3))))
    if style < 0.55:
        return Concatenation(parts)
    if style < 0.7:
        return Alternation(parts[:2])
    if style < 0.92:
        least, most = rng.choice(TIMES)
        return Repetition(parts[0], least, most, greedy=rng.random() < 0.7)
    if style < 0.96 or skips:
        return Permutation(parts[:2])
    return Exclusion(parts[0])


class RandomSequences:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.keys = rng.choice(((), ("k",), ("k",), ("k", "y"), ("u",)))
        columns = "k bigint, y double, t bigint, n bigint, u bigint, v bigint, w string, x double"
        second = "u" in self.keys or self.chance(0.2)
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
        return {name: self.above(self.matches()) for name in "QR"[: self.rng.choice((1, 1, 2))]}

    def matches(self) -> tg.Relation:
        """Matches of a pattern; of one that is refused others are drawn."""
        while True:
            try:
                return self.drawn()
            except tg.QueryError:
                continue

    def drawn(self) -> tg.Relation:
        rows: Any = self.stream
        if self.chance(0.15):
            rows = rows.where(rows.v >= 0)
        if self.chance(0.1):
            rows = rows.distinct()
        how = self.rng.choice(("preferred", "preferred", "preferred", "contiguous", "next", "any"))
        preferred = how == "preferred"
        pattern = self.with_ends(random_pattern(self.rng, skips=not preferred), anchored=preferred)
        while not preferred and is_nullable(pattern):
            pattern = Concatenation((Step("A"), pattern))
        variables = variables_of(pattern) or ("A",)
        absent = {"N": lambda m: m.N.v == 2}
        define = {name: self.condition(rows, name) for name in variables if self.chance(0.85)}
        options: dict[str, Any] = {}
        if preferred:
            skips = ("past last row", "past last row", "next row", f"last {variables[-1]}", f"first {variables[0]}")
            options["skip"] = self.rng.choice(skips)
            options["rows"] = self.rng.choice(("one", "one", "all"))
            options["unmatched"] = options["rows"] == "all" and self.chance(0.5)
            options["empty"] = self.chance(0.7)
        # Every way through rows that are skipped is a match: only a window bounds how many there are.
        if self.chance(0.6) or how in ("next", "any"):
            options["within"] = self.rng.choice((2, 5, 9))
        if self.chance(0.3):
            options["limits"] = self.limit(variables)
        if any(isinstance(part, Absence) for part in patterns_of(pattern)):
            define |= {name: absent.get(name, lambda m: m.M.v >= m.N.v) for name in absent_in(pattern)}
        measures = (
            {} if options.get("rows") == "all" and self.chance(0.3) else self.measures(rows, variables, preferred)
        )
        found: tg.Relation = rows.sequences(
            pattern, by=self.keys, order="t", tie="n", define=define, matches=how, **options, **measures
        )
        return found

    def with_ends(self, pattern: Pattern, *, anchored: bool) -> Pattern:
        """The pattern, perhaps with an anchor or with rows that must not come."""
        style = self.rng.random()
        if style < 0.06 and anchored:
            return Concatenation((Anchor("start"), pattern))
        if style < 0.12 and anchored:
            return Concatenation((pattern, Anchor("end")))
        group = Concatenation((Step("N"), Step("M")))
        part = group if self.chance(0.3) else Step("N")
        absence = Absence(part, self.rng.choice((1, 3, 6)))
        if style < 0.2:
            return Concatenation((absence, pattern))
        if style < 0.28:
            return Concatenation((pattern, absence))
        return Concatenation((pattern, Absence(part), Step("C"))) if style < 0.36 else pattern

    def condition(self, rows: tg.Relation, name: str) -> Callable[[Any], Any]:
        rng, number = self.rng, self.rng.choice((0, 1, 2))
        own: tuple[Callable[[Any], Any], ...] = (
            lambda m: m[name].v == number,
            lambda m: m[name].v >= number,
            lambda m: (m[name].v != number) | (m[name].w == "a"),
            lambda m: m[name].x > 0,
        )
        if rng.random() < 0.6:
            return rng.choice(own)
        beside: tuple[Callable[[Any], Any], ...] = (
            lambda m: m[name].v > m[name].prev().v,
            lambda m: m[name].v <= m[name].next().v,
            lambda m: m[name].next(2).v == number,
            lambda m: m[name].t - m[name].prev().t <= 3,
            lambda m: m[name].prev().v.is_null(),
            lambda m: m[name].next().v.is_null(),
        )
        if rng.random() < 0.4:
            return rng.choice(beside)
        others: tuple[Callable[[Any], Any], ...] = (
            lambda m: m[name].v >= m.rows.first().v,
            lambda m: m[name].v > m.rows.prev().v,
            lambda m: m.rows.agg(tg.count()) <= 1 + number,
            lambda m: m.rows.agg(tg.sum(rows.v)) >= number,
            lambda m: m[name].t - m.rows.first().t <= 4,
            lambda m: m.rows.last(1).classifier != name,
        )
        return rng.choice(others)

    def limit(self, variables: tuple[str, ...]) -> Callable[[Any], Any]:
        first, second = self.rng.choice(variables), self.rng.choice(variables)
        most = self.rng.choice((1, 2, 4))
        return self.rng.choice(
            (
                lambda m: m[second].t - m[first].t <= most,
                lambda m: m[second].t - m[first].first().t >= most,
                lambda m: [m[second].first().t <= m[first].t + most],
                lambda m: m.rows.t - m.rows.first().t >= most,
            )
        )

    def measures(
        self, rows: tg.Relation, variables: tuple[str, ...], preferred: bool
    ) -> dict[str, Callable[[Any], Any]]:
        known: dict[str, Callable[[Any], Any]] = {
            "m1": lambda m: m[variables[0]].v,
            "m2": lambda m: m.rows.agg(tg.count()),
            "m3": lambda m: m[variables[-1]].agg(tg.sum(rows.v)),
            "m4": lambda m: m.rows.first().w,
            "m5": lambda m: m.final.rows.v,
            "m6": lambda m: m[variables[0]].first(1).prev().v,
            "m7": lambda m: m.rows.classifier,
            "m8": lambda m: m.rows.next().v,
            "m9": lambda m: m.rows.agg(tg.max(rows.w)),
        }
        if preferred:
            known["m0"] = lambda m: m.number
        names = self.rng.sample(sorted(known), self.rng.choice((1, 2, 3)))
        return {name: known[name] for name in names}

    def above(self, rows: tg.Relation) -> tg.Relation:
        """What is made of the matches: nothing, fewer of them, their number, or pairs with others."""
        style = self.rng.random()
        if style < 0.6:
            return rows
        if style < 0.7:
            return rows.where(rows.detected > self.rng.randint(2, 9))
        if style < 0.85:
            return rows.group_by(w=tg.ceil(rows.detected, 5)).agg(n=tg.count())
        if style < 0.9:
            return rows.drop(self.rng.choice(("first", "last")))
        other = self.matches()
        a, b = rows.select(a=rows.detected), other.select(b=other.detected)
        return a.join(b, a.a <= b.b + 4, b.b <= a.a + 4, how=self.rng.choice(("inner", "anti", "left")))

    def events(self) -> tuple[Row, ...]:
        """Events of a few partitions, some at one instant."""
        keys = [(k, y) for k in self.rng.sample((1, 2, None), self.rng.choice((1, 2))) for y in (0.0, None)]
        found: list[Row] = []
        for number in range(self.rng.choice((4, 8, 14))):
            k, y = self.rng.choice(keys)
            time = self.rng.randint(-3, 22)
            found.append(
                {
                    "k": k,
                    "y": y,
                    "t": time,
                    "n": number,
                    "u": time + self.rng.randint(-3, 4),
                    "v": self.rng.choice((0, 1, 1, 2, 2, None)),
                    "w": self.rng.choice(("", "a", "b", None)),
                    "x": self.rng.choice((0.5, -0.0, -3.25, float("nan"), None)),
                }
            )
        return tuple(found)
