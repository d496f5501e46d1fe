"""An instant that a query writes twice is one instant: what follows is what follows if it is named first and used
twice.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.properties.families import seeds
from tests.strategies.formulas import Options, RandomFormula, random_formula
from tests.strategies.programs import show_term
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Imbed, Node, Product, Project, Select, children
from tidegate.algebra.terms import Attr, Call, Term, attributes_of
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.propagation import propagations
from tidegate.analysis.state.keep import keep
from tidegate.analysis.zones.federation import Federation

#: Units that divide each other, and others.
OPTIONS = Options(units=(2, 3, 4, 6), most=4)
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass(slots=True)
class Naming:
    """Names terms: a term that it was given gets an attribute, innermost terms first, and is read by that
    everywhere.
    """

    rng: random.Random
    often: float
    names: dict[Term, str] = field(default_factory=dict)

    def condition(self, term: Term) -> Term:
        match term:
            case Call(op, args) if op in _COMPARISONS:
                return Call(op, tuple(map(self.instant, args)))
            case Call(op, args):
                return Call(op, tuple(map(self.condition, args)))
            case _:
                return term

    def instant(self, term: Term) -> Term:
        """The term with named instants inside it, and perhaps named itself."""
        match term:
            case Call("add", (base, by)):
                inner: Term = Call("add", (self.instant(base), by))
            case Call("floor" | "ceil" as op, (base, unit)):
                inner = Call(op, (self.instant(base), unit))
            case Call("least" | "greatest" as op, args):
                inner = Call(op, tuple(map(self.instant, args)))
            case _:
                return term
        if inner not in self.names:
            if self.rng.random() > self.often:
                return inner
            self.names[inner] = f"n{len(self.names)}"
        return Attr(self.names[inner])


def sides(node: Node) -> list[Node]:
    return [side for one in children(node) for side in sides(one)] if isinstance(node, Product) else [node]


def written(made: RandomFormula, keys: Sequence[Term]) -> Node:
    """The query with its result's keys, everything as it is written; the keys are known to be what was compared
    before.
    """
    node: Node = Project(made.node, made.instants)
    for number, key in enumerate(keys):
        node = Imbed(node, f"key{number}", key)
    return kept(made, node, len(keys))


def named(made: RandomFormula, keys: Sequence[Term], rng: random.Random) -> Node:
    """The same query with names for terms, given before the sides are joined where a side has all of it."""
    naming = Naming(rng, rng.choice((0.3, 0.7, 1.0)))
    condition = naming.condition(made.condition)
    keys = [naming.instant(key) for key in keys]
    parts = sides(children(made.node)[0])
    later: list[tuple[str, Term]] = []
    for term, name in naming.names.items():
        k = next((k for k, part in enumerate(parts) if attributes_of(term) <= set(part.schema)), None)
        if k is None or rng.random() < 0.3:
            later.append((name, term))
        else:
            parts[k] = Imbed(parts[k], name, term)
    node, *others = parts
    for other in others:
        node = Product(node, other)
    for name, term in later:
        node = Imbed(node, name, term)
    node = Select(node, condition)
    for number, key in enumerate(keys):
        node = Imbed(node, f"key{number}", key)
    return kept(made, node, len(keys))


def kept(made: RandomFormula, node: Node, keys: int) -> Node:
    return Project(node, (*made.instants, *(f"key{number}" for number in range(keys))))


def difference(made: RandomFormula, one: Federation, other: Federation, rng: random.Random) -> str | None:
    """In what the analysis of two ways of writing differs: bounds, progress, and which rows are kept."""
    if bool(one.zones) != bool(other.zones):
        return f"{len(one.zones)} and {len(other.zones)} zones"
    if not one.zones:
        return None
    names = one.attributes
    for w in names:
        for v in names:
            far = [max(zone.distance(("a", w), ("a", v)) for zone in each.zones) for each in (one, other)]
            if far[0] != far[1]:
                return f"d({w}, {v}) is {far[0]} and {far[1]}"
    functions = propagations(one), propagations(other)
    for _ in range(4):
        b: dict[tuple[str, str], Extended] = {
            (stream.name, y): rng.choice((-3, -1, 0, 2, 5, INF)) for stream in one.occurrences for y in stream.progress
        }
        for a in names:
            reached = [each[a].evaluate(b) for each in functions]
            if reached[0] != reached[1]:
                return f"f({a}) at {b} is {reached[0]} and {reached[1]}"
    for i, stream in enumerate(one.occurrences):
        rules = [keep(each, i, names) for each in (one, other)]
        if any(len(rule.views) > 16 for rule in rules):
            continue  # they may have become their hull
        for _ in range(6):
            row = {name: rng.randint(-6, 6) for name in stream.schema.temporal}
            p: dict[str, Extended] = {a: rng.choice((-INF, -4, 0, 4)) for a in names}
            stays = [rule.row(row, p) for rule in rules]
            if stays[0] != stays[1]:
                return f"row {row} of {stream.name} at {p}: kept {stays[0]} and {stays[1]}"
    return None


def check(numbers: range) -> None:
    tally = Counter[str]()
    for seed in numbers:
        made = random_formula(seed, OPTIONS)
        rng = random.Random(f"{seed}/named")
        keys = [rng.choice(made.written) for _ in range(rng.randint(1, 2))] if made.written else []
        try:
            one = federation(written(made, keys))
            other = federation(named(made, keys, rng))
        except QueryError as error:
            assert error.code == "TG150"  # noqa: PT017  # too many cases is the one refusal that may come
            tally["refused"] += 1
            continue
        tally["with keys" if keys else "without keys"] += 1
        tally["satisfiable"] += bool(one.zones)
        found = difference(made, one, other, rng)
        assert found is None, f"{seed}: {show_term(made.condition)}, {', '.join(map(show_term, keys))}: {found}"
    assert tally["with keys"] >= 0.3 * len(numbers), tally
    assert tally["satisfiable"] >= 0.5 * len(numbers), tally


def test_what_is_written_twice_is_as_if_it_were_named_first() -> None:
    check(seeds(250))


@pytest.mark.long
@pytest.mark.parametrize("shard", range(4))
def test_what_is_written_twice_is_as_if_it_were_named_first_in_many_queries(shard: int) -> None:
    check(seeds(8_000)[shard * 2000 : (shard + 1) * 2000])
