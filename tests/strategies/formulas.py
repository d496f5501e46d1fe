"""Random temporal relation formulas over the streams of a product, with everything that TSA Def. 2 and 3 allow."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise

from tidegate.algebra.nodes import Node, Product, Rename, Scan, Select
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Lit, Term, attributes_of, call, conjunction
from tidegate.algebra.types import BIGINT

COMPARISONS = ("le", "le", "lt", "ge", "gt", "eq", "ne")
#: Streams by the number of their instants; more variables make brute force slow and add little.
WIDTHS = ((1, 1), (2,), (1, 1, 1), (2, 1), (1, 2), (2, 2), (1, 1, 1, 1))


@dataclass(frozen=True, slots=True)
class Options:
    """What formulas may contain, and over which streams they speak."""

    units: tuple[int, ...] = (2, 3, 5)
    rounding: bool = True
    data: bool = False
    widths: tuple[tuple[int, ...], ...] = WIDTHS
    most: int = 6
    depth: int = 2


@dataclass(frozen=True, slots=True)
class RandomFormula:
    """`node` selects by `condition` from a product; `owned[i]` are the instants of its i-th stream, `progressing[i]`
    those on which that stream progresses, `data` the integers that are no instants. `written` are the roundings in
    it.
    """

    seed: int
    node: Node
    condition: Term
    owned: tuple[tuple[str, ...], ...]
    progressing: tuple[tuple[str, ...], ...]
    data: tuple[str, ...]
    written: tuple[Term, ...] = ()

    @property
    def instants(self) -> tuple[str, ...]:
        return tuple(name for names in self.owned for name in names)


def random_formula(seed: int, options: Options) -> RandomFormula:
    rng = random.Random(seed)
    maker = _Maker(rng, options)
    owned: list[tuple[str, ...]] = []
    progressing: list[tuple[str, ...]] = []
    data: list[str] = []
    node: Node | None = None
    for i, width in enumerate(rng.choice(options.widths)):
        names = ("t", "u")[:width]
        values = ("k",) if options.data else ()
        schema = Schema(
            (
                *(Attribute(name, BIGINT, nullable=False, temporal=True) for name in names),
                *(Attribute(name, BIGINT, nullable=False) for name in values),
            )
        )
        progress = tuple(name for name in names if rng.random() < 0.6) or names[-1:]
        scan = Rename(Scan(StreamDef("ABCD"[i], schema, progress=progress)), tuple((n, f"{n}{i}") for n in schema))
        node = scan if node is None else Product(node, scan)
        owned.append(tuple(f"{name}{i}" for name in names))
        progressing.append(tuple(f"{name}{i}" for name in progress))
        data += [f"{name}{i}" for name in values]
    assert node is not None
    condition = maker.condition(tuple(owned), tuple(data))
    written = tuple(maker.written)
    return RandomFormula(
        seed, Select(node, condition), condition, tuple(owned), tuple(progressing), tuple(data), written
    )


def random_consequence(made: RandomFormula, number: int, options: Options) -> Term:
    """A formula over the same instants that may follow, weak enough to do so quite often."""
    rng = random.Random(f"{made.seed}/{number}")
    maker = _Maker(rng, options, list(made.written))
    if rng.random() < 0.5:
        return maker.formula(made.instants, (), 1)
    x, y = rng.sample(made.instants, 2) if len(made.instants) > 1 else made.instants * 2
    weak = call("le", Attr(x), call("add", Attr(y), Lit(rng.randint(0, 2 * options.most), BIGINT)))
    return weak if rng.random() < 0.6 else call("or", weak, maker.formula(made.instants, (), 1))


@dataclass(frozen=True, slots=True)
class _Maker:
    rng: random.Random
    options: Options
    #: Roundings so far: every third is one of them, written again.
    written: list[Term] = field(default_factory=list)

    def condition(self, owned: tuple[tuple[str, ...], ...], data: tuple[str, ...]) -> Term:
        """A formula, and often bounds between the streams, without which few queries make progress."""
        parts = [self.formula(tuple(name for names in owned for name in names), data, self.options.depth)]
        for left, right in pairwise(owned):
            if self.rng.random() < 0.8:
                x, y = Attr(self.rng.choice(left)), Attr(self.rng.choice(right))
                parts += [call("le", x, self.shifted(y)), call("le", y, self.shifted(x))][: self.rng.randint(1, 2)]
        self.rng.shuffle(parts)
        return conjunction(parts)

    def formula(self, names: tuple[str, ...], data: tuple[str, ...], depth: int) -> Term:
        style = self.rng.random()
        if depth and style < 0.5:
            op = self.rng.choice(("and", "or", "or"))
            return call(op, *(self.formula(names, data, depth - 1) for _ in range(2)))
        if depth and style < 0.65:
            return call("not", self.formula(names, data, depth - 1))
        if data and style > 0.85:
            return self.datum(data)
        return call(self.rng.choice(COMPARISONS), self.instant(names, 2), self.instant(names, 2))

    def datum(self, data: tuple[str, ...]) -> Term:
        other = Attr(self.rng.choice(data)) if self.rng.random() < 0.5 else Lit(self.rng.randint(0, 1), BIGINT)
        return call(self.rng.choice(("eq", "ne")), Attr(self.rng.choice(data)), other)

    def instant(self, names: tuple[str, ...], depth: int) -> Term:
        style = self.rng.random() if depth else 0.0
        if style < 0.5:
            return Attr(self.rng.choice(names))
        if style < 0.7:
            return self.shifted(self.instant(names, depth - 1))
        if style < 0.85 or not self.options.rounding:
            return call(self.rng.choice(("least", "greatest")), *(self.instant(names, depth - 1) for _ in range(2)))
        again = [term for term in self.written if attributes_of(term) <= set(names)]
        if again and self.rng.random() < 0.35:
            return self.rng.choice(again)
        unit = Lit(self.rng.choice(self.options.units), BIGINT)
        self.written.append(call(self.rng.choice(("floor", "ceil")), self.instant(names, depth - 1), unit))
        return self.written[-1]

    def shifted(self, term: Term) -> Term:
        return call("add", term, Lit(self.rng.randint(-self.options.most, self.options.most), BIGINT))
