"""Random programs that group matches of row patterns and of situations, and events for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tidegate as tg
from tests.strategies.programs import Case
from tests.strategies.sequences import RandomSequences, random_pattern
from tests.strategies.situations import random_situation_case
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Imbed, Node, Rename, Select, nodes_of
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.ordered.sequences.pattern import Concatenation, Pattern, Step, is_nullable, variables_of
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.terms import Attr, Lit, call
from tidegate.algebra.types import BIGINT, DOUBLE, DataType


def random_counted_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    rng = random.Random(f"counted {seed}")
    return _of_situations(seed, rng) if rng.random() < 0.4 else _of_rows(seed, rng)


def _of_situations(seed: int, rng: random.Random) -> Case:
    """The matches of a random program, in groups; where it has none it is as it is."""
    case = random_situation_case(seed)
    queries = tuple(_grouped(query, rng) for query in case.program.queries)
    program = ProgramDef(queries)
    return replace(case, program=program, rows={stream.name: case.rows[stream.name] for stream in program.inputs})


def _grouped(query: Query, rng: random.Random) -> Query:
    match = next((node for node in nodes_of(query.node) if isinstance(node, Match)), None)
    if match is None:
        return query
    rows: Node = match
    keys = tuple(key for key in match.keys if rng.random() < 0.6)
    if rng.random() < 0.3:
        rows = Select(rows, call("gt", Attr("detected"), Lit(rng.randint(0, 6), BIGINT)))
    if keys and rng.random() < 0.3:
        rows = Rename(rows, ((keys[0], "key"),))
        keys = ("key", *keys[1:])
    rows = Imbed(rows, "w", call("ceil", Attr("detected"), Lit(rng.choice((1, 2, 3)), BIGINT)))
    return query.over(Group(rows, (*keys, "w"), (Aggregate("n", Function.COUNT),)))


def _of_rows(seed: int, rng: random.Random) -> Case:
    drawn = _Counted(rng)
    program: ProgramDef = tg.program(**drawn.results()).definition
    return Case(seed, program, {stream.name: drawn.rows[stream.name] for stream in program.inputs})


class _Counted(RandomSequences):
    """Mostly of patterns whose conditions read their row alone."""

    aggregated: tuple[str, ...] = ()

    def results(self) -> dict[str, tg.Relation]:
        return {name: self.above(self.matches()) for name in "QR"}

    def drawn(self) -> tg.Relation:
        rows: Any = self.stream
        if self.chance(0.15):
            rows = rows.where(rows.v >= 0)
        how = self.rng.choice(("any", "any", "contiguous"))
        pattern = random_pattern(self.rng, skips=True)
        if is_nullable(pattern):
            pattern = Concatenation((Step("A"), pattern))
        define = {name: self.condition(rows, name) for name in variables_of(pattern) if self.chance(0.85)}
        options: dict[str, Any] = {}
        # Listing takes as long as there are matches.
        if self.chance(0.6) or (how == "any" and len(self.rows["E"]) > 8):
            options["within"] = self.rng.choice((0, 2, 5))
        found: tg.Relation = rows.sequences(
            pattern, by=self.keys, order="t", tie="n", define=define, matches=how, **options, **self.told(rows, pattern)
        )
        return found

    def told(self, rows: Any, pattern: Pattern) -> dict[str, Callable[[Any], Any]]:
        """Some values of a match: of its first or last row, or of all rows, with a variable or with any."""
        names = variables_of(pattern)

        def drawn(rows_: Any) -> Callable[[Any], Any]:
            name = self.rng.choice((*names, None))

            def of(m: Any) -> Any:
                return m.rows if name is None else m[name]

            return self.rng.choice(
                (
                    lambda m: of(m).v,
                    lambda m: of(m).first().v,
                    lambda m: of(m).x,
                    lambda m: of(m).n,
                    lambda m: 6 // of(m).v,
                    lambda m: of(m).v * of(m).n - 3,
                    lambda m: of(m).first().t,
                    lambda m: of(m).agg(tg.count()),
                    lambda m: of(m).agg(tg.count(rows_.v)),
                    lambda m: of(m).agg(tg.sum(rows_.v)),
                    lambda m: of(m).agg(tg.sum(rows_.v - 1)),
                    lambda m: of(m).agg(tg.min(rows_.v)),
                    lambda m: of(m).agg(tg.max(rows_.v)),
                    lambda m: of(m).agg(tg.max(rows_.x)),
                )
            )

        self.aggregated = tuple(f"m{number}" for number in range(self.rng.choice((0, 1, 2))))
        return {name: drawn(rows) for name in self.aggregated}

    def condition(self, rows: tg.Relation, name: str) -> Callable[[Any], Any]:
        if self.chance(0.05):
            return super().condition(rows, name)
        number = self.rng.choice((0, 1, 2))
        return self.rng.choice(
            (
                lambda m: m[name].v == number,
                lambda m: m[name].v >= number,
                lambda m: (m.rows.v != number) | (m[name].w == "a"),
                lambda m: m[name].x > 0,
                lambda m: m[name].v // number > 0,
                lambda m: m[name].n >= 0,
            )
        )

    def above(self, rows: tg.Relation) -> tg.Relation:
        instant = self.rng.choice(("detected", "last"))
        if self.chance(0.3):
            rows = rows.where(rows[instant] > self.rng.randint(0, 9))
        by = [key for key in self.keys if self.chance(0.6)]
        w = rows[instant] if self.chance(0.2) else tg.ceil(rows[instant], self.rng.choice((1, 2, 4)))
        asked = {"n": tg.count()} if self.chance(0.7) or not self.aggregated else {}
        for name in (*self.aggregated, *self.aggregated, "first"):
            if self.chance(0.6):
                asked[f"{self.rng.choice('abcde')}_{name}"] = self.aggregate(rows[name], rows.schema[name].type)
        return rows.group_by(*by, w=w).agg(**asked or {"n": tg.count()})

    def aggregate(self, value: Any, type_: DataType) -> Any:
        kinds: list[Any] = [tg.count, tg.min, tg.max]
        if type_ in (BIGINT, DOUBLE):
            kinds += [tg.sum, tg.avg, tg.sum, tg.try_sum]
        return self.rng.choice(kinds)(value)
