"""Random purely temporal queries, for which the derived rules are exact and not only sound."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.algebra.nodes import Imbed, Join, Node, Product, Project, Rename, Scan, Select, Union
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, conjunction, rename_attributes, substitute
from tidegate.algebra.types import BIGINT


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which rows of some occurrences matter to a result row.

    `condition` relates their instants; `outputs` are the result's attributes as terms over these.
    """

    occurrences: tuple[int, ...]
    condition: Term
    outputs: Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class TemporalQuery:
    """A query over instants only, with all the ways in which rows matter to its result.

    `owned` are the names of each occurrence's instants, `progressing` those of them on which its stream progresses.
    """

    seed: int
    node: Node
    ways: tuple[Way, ...]
    owned: tuple[tuple[str, ...], ...]
    progressing: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]

    def names(self, way: Way) -> tuple[str, ...]:
        return tuple(name for i in way.occurrences for name in self.owned[i])


_WIDTHS = ((1, 1), (1, 1), (2, 1), (1, 2), (2,), (1, 1, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1), (3,))


def random_temporal_query(seed: int) -> TemporalQuery:
    rng = random.Random(seed)
    widths = rng.choice(_WIDTHS)
    maker = _Maker(rng, {1: 3, 2: 3, 3: 2, 4: 1}[sum(widths)])
    streams = maker.streams(widths)
    sides = [maker.side(i, stream) for i, stream in enumerate(streams)]
    style = rng.random() if len(sides) > 1 else 0.0
    cut = rng.randint(1, len(sides) - 1) if len(sides) > 1 else 1
    if style < 0.5:
        node, ways = maker.product(sides)
    else:
        one, other = maker.product(sides[:cut]), maker.product(sides[cut:])
        node, ways = maker.anti(one, other) if style < 0.75 else maker.union(one, other)
    node, ways = maker.finished(node, ways)
    owned = tuple(tuple(f"{name}{i}" for name in s.schema) for i, s in enumerate(streams))
    progressing = tuple(tuple(f"{name}{i}" for name in s.progress) for i, s in enumerate(streams))
    return TemporalQuery(seed, node, ways, owned, progressing, node.schema.temporal)


def random_relation(query: TemporalQuery, number: int) -> Term:
    """A relation that could be declared for the query's result: often one that holds."""
    rng = random.Random(f"{query.seed}/{number}")
    maker = _Maker(rng, 2)
    if len(query.outputs) > 1 and rng.random() < 0.5:
        x, y = rng.sample(query.outputs, 2)
        ahead = call("le", Attr(x), maker.plus(Attr(y), least=0))
        return call("or", ahead, call("le", Attr(y), maker.plus(Attr(x), least=0))) if rng.random() < 0.5 else ahead
    return maker.formula(query.outputs, 1)


_Part = tuple[Node, tuple[Way, ...]]


@dataclass(frozen=True, slots=True)
class _Maker:
    rng: random.Random
    most: int

    def streams(self, widths: tuple[int, ...]) -> list[StreamDef]:
        made: list[StreamDef] = []
        for i, width in enumerate(widths):
            if made and len(made[-1].schema) == width and self.rng.random() < 0.3:
                made.append(made[-1])
                continue
            names = ("t", "u", "w")[:width]
            schema = Schema(tuple(Attribute(n, BIGINT, nullable=False, temporal=True) for n in names))
            relations = self.formula(names, 1) if width > 1 and self.rng.random() < 0.4 else TRUE
            progress = tuple(n for n in names if self.rng.random() < 0.6) or names[-1:]
            made.append(StreamDef("ABCD"[i], schema, relations, progress))
        return made

    def side(self, i: int, stream: StreamDef) -> _Part:
        pairs = tuple((name, f"{name}{i}") for name in stream.schema)
        outputs: dict[str, Term] = {new: Attr(new) for _, new in pairs}
        way = Way((i,), rename_attributes(stream.relations, dict(pairs)), outputs)
        return Rename(Scan(stream), pairs), (way,)

    def product(self, sides: list[_Part]) -> _Part:
        node, (way,) = sides[0]
        parts: list[Term] = []
        for other, (more,) in sides[1:]:
            parts += self.links(tuple(way.outputs), tuple(more.outputs))
            outputs = {**way.outputs, **more.outputs}
            way = Way((*way.occurrences, *more.occurrences), conjunction([way.condition, more.condition]), outputs)
            node = Product(node, other)
        if self.rng.random() < 0.55:
            parts.append(self.formula(tuple(way.outputs), 2))
        condition = conjunction(parts)
        return Select(node, condition), (Way(way.occurrences, conjunction([way.condition, condition]), way.outputs),)

    def anti(self, one: _Part, other: _Part) -> _Part:
        """Rows of the right side matter where the condition holds, those of the left side always."""
        (left, (first,)), (right, (second,)) = one, other
        condition = conjunction(self.links(tuple(first.outputs), tuple(second.outputs)))
        both = (*first.occurrences, *second.occurrences)
        pair = Way(both, conjunction([first.condition, second.condition, condition]), first.outputs)
        return Join(left, right, condition, "anti"), (first, pair)

    def union(self, one: _Part, other: _Part) -> _Part:
        width = min(len(one[1][0].outputs), len(other[1][0].outputs))
        width = self.rng.randint(1, width)
        sides: list[Node] = []
        ways: list[Way] = []
        for node, (way,) in (one, other):
            chosen = self.rng.sample(tuple(way.outputs), width)
            pairs = tuple((name, f"m{k}") for k, name in enumerate(chosen))
            sides.append(Rename(Project(node, tuple(chosen)), pairs))
            ways.append(Way(way.occurrences, way.condition, {new: way.outputs[old] for old, new in pairs}))
        return Union(tuple(sides)), tuple(ways)

    def finished(self, node: Node, ways: tuple[Way, ...]) -> _Part:
        if self.rng.random() < 0.3:
            term = self.instant(node.schema.names, 1)
            node = Imbed(node, "i", term)
            ways = tuple(Way(w.occurrences, w.condition, {**w.outputs, "i": _inlined(term, w.outputs)}) for w in ways)
        names = node.schema.names
        kept = tuple(name for name in names if self.rng.random() < 0.5) or (self.rng.choice(names),)
        return (node if kept == names else Project(node, kept)), ways

    def links(self, lefts: tuple[str, ...], rights: tuple[str, ...]) -> list[Term]:
        x, y = Attr(self.rng.choice(lefts)), Attr(self.rng.choice(rights))
        made: list[Term] = []
        if self.rng.random() < 0.85:
            made.append(call("le", x, self.plus(y, least=0)))
        if self.rng.random() < 0.85:
            made.append(call(self.rng.choice(("le", "le", "lt")), y, self.plus(x, least=0)))
        return made

    def plus(self, term: Term, least: int | None = None) -> Term:
        by = self.rng.randint(-self.most if least is None else least, self.most)
        return term if by == 0 else call("add", term, Lit(by, BIGINT))

    def instant(self, names: tuple[str, ...], depth: int) -> Term:
        style = self.rng.random() if depth else 0.0
        if style < 0.6:
            return Attr(self.rng.choice(names))
        if style < 0.8:
            return self.plus(self.instant(names, depth - 1))
        return call(self.rng.choice(("least", "greatest")), *(self.instant(names, depth - 1) for _ in range(2)))

    def formula(self, names: tuple[str, ...], depth: int) -> Term:
        style = self.rng.random()
        if depth and style < 0.4:
            return call(self.rng.choice(("and", "or", "or")), *(self.formula(names, depth - 1) for _ in range(2)))
        if depth and style < 0.55:
            return call("not", self.formula(names, depth - 1))
        op = self.rng.choice(("le", "lt", "ge", "gt", "eq", "ne"))
        return call(op, self.instant(names, 1), self.instant(names, 1))


def _inlined(term: Term, outputs: Mapping[str, Term]) -> Term:
    return substitute(term, lambda leaf: outputs[leaf.name])
