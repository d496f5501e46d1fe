"""Random purely temporal queries over × and σ, for which the derived rules are exact and not only sound."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tidegate.algebra.nodes import Node, Product, Project, Rename, Scan, Select
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, conjunction, rename_attributes
from tidegate.algebra.types import BIGINT


@dataclass(frozen=True, slots=True)
class TemporalQuery:
    """σ over × of streams with instants only: the condition over all `names`, of which `outputs` stay visible.

    `owned` are the names of each occurrence, `progressing` those of them on which its stream progresses.
    """

    seed: int
    node: Node
    condition: Term
    owned: tuple[tuple[str, ...], ...]
    progressing: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for names in self.owned for name in names)


def random_temporal_query(seed: int) -> TemporalQuery:
    rng = random.Random(seed)
    widths = rng.choice(((1, 1), (1, 1), (2, 1), (1, 2), (2,), (1, 1, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1), (3,)))
    most = {1: 3, 2: 3, 3: 2, 4: 1}[sum(widths)]
    streams: list[StreamDef] = []
    for i, width in enumerate(widths):
        if streams and len(streams[-1].schema) == width and rng.random() < 0.3:
            streams.append(streams[-1])
            continue
        names = ("t", "u", "w")[:width]
        schema = Schema(tuple(Attribute(n, BIGINT, nullable=False, temporal=True) for n in names))
        relations: Term = TRUE
        if width > 1 and rng.random() < 0.4:
            relations = _formula(rng, names, 1, most)
        progress = tuple(n for n in names if rng.random() < 0.6) or names[-1:]
        streams.append(StreamDef("ABCD"[i], schema, relations, progress))
    nodes: list[Node] = []
    owned: list[tuple[str, ...]] = []
    parts: list[Term] = []
    for i, stream in enumerate(streams):
        pairs = tuple((name, f"{name}{i}") for name in stream.schema)
        nodes.append(Rename(Scan(stream), pairs))
        owned.append(tuple(new for _, new in pairs))
        parts.append(rename_attributes(stream.relations, dict(pairs)))
    node = nodes[0]
    for other in nodes[1:]:
        node = Product(node, other)
    names = tuple(name for mine in owned for name in mine)
    links = []
    for i in range(1, len(owned)):
        x, y = rng.choice(owned[rng.randrange(i)]), rng.choice(owned[i])
        if rng.random() < 0.85:
            links.append(call("le", Attr(x), _plus(rng, Attr(y), most, least=0)))
        if rng.random() < 0.85:
            links.append(call(rng.choice(("le", "le", "lt")), Attr(y), _plus(rng, Attr(x), most, least=0)))
    condition = conjunction([*links, *([_formula(rng, names, 2, most)] if rng.random() < 0.55 else [])])
    node = Select(node, condition)
    outputs = tuple(name for name in names if rng.random() < 0.5) or (rng.choice(names),)
    if outputs != names:
        node = Project(node, outputs)
    progressing = tuple(tuple(f"{name}{i}" for name in s.progress) for i, s in enumerate(streams))
    return TemporalQuery(seed, node, conjunction([condition, *parts]), tuple(owned), progressing, outputs)


def _plus(rng: random.Random, term: Term, most: int, least: int | None = None) -> Term:
    by = rng.randint(-most if least is None else least, most)
    return term if by == 0 else call("add", term, Lit(by, BIGINT))


def _instant(rng: random.Random, names: tuple[str, ...], depth: int, most: int) -> Term:
    style = rng.random() if depth else 0.0
    if style < 0.6:
        return Attr(rng.choice(names))
    if style < 0.8:
        return _plus(rng, _instant(rng, names, depth - 1, most), most)
    return call(rng.choice(("least", "greatest")), *(_instant(rng, names, depth - 1, most) for _ in range(2)))


def _formula(rng: random.Random, names: tuple[str, ...], depth: int, most: int) -> Term:
    style = rng.random()
    if depth and style < 0.4:
        return call(rng.choice(("and", "or", "or")), *(_formula(rng, names, depth - 1, most) for _ in range(2)))
    if depth and style < 0.55:
        return call("not", _formula(rng, names, depth - 1, most))
    op = rng.choice(("le", "lt", "ge", "gt", "eq", "ne"))
    return call(op, _instant(rng, names, 1, most), _instant(rng, names, 1, most))
