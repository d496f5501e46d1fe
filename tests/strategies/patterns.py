"""Random patterns over a few symbols, and intervals for them: small instants, so that endpoints often coincide."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.algebra.allen import PREFIX_GROUPS, RELATIONS
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.match.pattern import Symbol

COMPARISONS = ("le", "le", "lt", "ge", "gt", "eq", "ne")
#: The largest shift, and the longest limit of a duration.
MOST = 2
LONGEST = 4
#: More than all shifts and limits that a chain of three unknown ends can add up.
ROOM = LONGEST + 3 * (MOST + 1)


@dataclass(frozen=True, slots=True)
class RandomPattern:
    seed: int
    symbols: tuple[Symbol, ...]
    condition: Term


def random_pattern(seed: int, *, points: bool = False) -> RandomPattern:
    rng = random.Random(seed)
    symbols = tuple(_symbol(rng, name, points) for name in "ABC"[: rng.choice((1, 2, 2, 3, 3, 3))])
    parts = [_formula(rng, symbols, rng.choice((0, 1, 1, 2))) for _ in range(rng.choice((1, 1, 2, 3)))]
    return RandomPattern(seed, symbols, conjunction(parts))


def random_chain(seed: int) -> RandomPattern:
    """Four symbols, each related to the next by some of Allen's relations: the cases of the pairs multiply."""
    rng = random.Random(f"{seed}/chain")
    symbols = tuple(_symbol(rng, name, points=False) for name in "ABCD")
    parts = [_related(rng, pair) for pair in pairwise(symbols)]
    return RandomPattern(seed, symbols, conjunction(parts))


def random_intervals(rng: random.Random, symbols: Sequence[Symbol], unknown: float = 0.25) -> tuple[Extended, ...]:
    """Endpoints of intervals for the symbols; ends are unknown with that probability."""
    values: list[Extended] = []
    for symbol in symbols:
        ts = rng.randint(0, 5)
        values += [ts, INF if rng.random() < unknown else ts + rng.randint(0 if symbol.points else 1, 6)]
    return tuple(values)


def _symbol(rng: random.Random, name: str, points: bool) -> Symbol:
    at_least = rng.randint(0, LONGEST) if rng.random() < 0.25 else None
    at_most = rng.randint(at_least or 1, LONGEST + 1) if rng.random() < 0.25 else None
    return Symbol(name, at_least, at_most, points and rng.random() < 0.6)


def _formula(rng: random.Random, symbols: Sequence[Symbol], depth: int) -> Term:
    style = rng.random()
    if depth and style < 0.6:
        parts = [_formula(rng, symbols, depth - 1) for _ in range(rng.choice((2, 2, 3)))]
        return conjunction(parts) if style < 0.15 else disjunction(parts)
    if depth and style < 0.7:
        return call("not", _formula(rng, symbols, depth - 1))
    if len(symbols) > 1 and style < 0.85:
        return _related(rng, symbols)
    return call(rng.choice(COMPARISONS), _instant(rng, symbols), _instant(rng, symbols))


def _related(rng: random.Random, symbols: Sequence[Symbol]) -> Term:
    """Allen's relations between two symbols, often a whole prefix group and others."""
    a, b = rng.sample(symbols, 2)
    chosen = set(rng.sample(RELATIONS, rng.randint(1, 5)))
    if rng.random() < 0.5:
        chosen |= rng.choice(PREFIX_GROUPS)
    ends = [Attr(name) for name in (a.ts, a.te, b.ts, b.te)]
    return disjunction([relation.condition(*ends) for relation in RELATIONS if relation in chosen])


def _instant(rng: random.Random, symbols: Sequence[Symbol]) -> Term:
    symbol = rng.choice(symbols)
    name = Attr(rng.choice((symbol.ts, symbol.te, symbol.te)))
    style = rng.random()
    if style < 0.1:
        return call(rng.choice(("least", "greatest")), name, _instant(rng, symbols))
    if style < 0.5:
        return call("add", name, Lit(rng.randint(-MOST, MOST), BIGINT))
    return name
