"""Row patterns of which a key waits: for its next row, for a row behind, for a duration to be over."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import tidegate as tg
from tests.strategies.searched_sequences import Row, S, Searched
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.node import Sequences

_S: Any = S
SHAPES = ("A", "A B", "A B C", "A B*", "A+ B", "A B{1,2} C?", "A (B | C)", "A | A B", "A B* C", "A B? C")
Condition = Callable[[Any], Any]


def random_kept(rng: random.Random) -> Searched:
    """A case of a pattern that is not refused."""
    while True:
        try:
            node = _node(rng)
            _ = node.schema
        except QueryError:
            continue
        return Searched(node, _rows(rng))


def _node(rng: random.Random) -> Sequences:
    how = rng.choice(("preferred", "preferred", "preferred", "contiguous", "next", "any"))
    pattern, style = rng.choice(SHAPES), rng.random()
    absent = f"!{rng.choice(('N', 'N', 'N', '(N N)'))}[{rng.choice((1, 3, 6))}]"
    if style < 0.2:
        pattern = f"{absent} {pattern}"
    elif style < 0.4:
        pattern = f"{pattern} {absent}"
    elif style < 0.5 and how == "preferred":
        pattern = rng.choice((f"^ {pattern}", f"{pattern} $"))
    define = {name: _condition(rng, name) for name in "ABCN" if name in pattern}
    options: dict[str, Any] = {"matches": how}
    if rng.random() < 0.4:
        options["within"] = rng.choice((0, 2, 5))
    elif rng.random() < 0.4 and "B" in pattern:
        options["limits"] = _limits(rng, pattern)
    if how == "preferred":
        options["skip"] = rng.choice(("past last row", "next row"))
    measures: dict[str, Condition] = {
        "n1": lambda m: m.A.next().v,
        "n2": lambda m: m.rows.next(2).v,
        "n3": lambda m: m.A.prev(2).v,
        **({"n4": lambda m: m.number} if how == "preferred" else {}),
    }
    chosen = rng.sample(sorted(measures), rng.choice((0, 0, 0, 1)))
    by = rng.choice(((), ("k",), ("k",)))
    relation: Any = _S.sequences(
        pattern, by=by, order="t", tie="n", define=define, **options, **{name: measures[name] for name in chosen}
    )
    node: Sequences = relation._node
    return node


def _condition(rng: random.Random, name: str) -> Condition:
    """A condition of the row alone, or one that reads rows behind it, mostly with a limit of how far these are."""
    least, steps, ticks = rng.choice((0, 0, 1)), rng.choice((1, 1, 2)), rng.choice((0, 2, 4))
    own: Condition = lambda m: m[name].v >= least  # noqa: E731  # one of several
    if name == "N":
        own = lambda m: m.N.v == 2  # noqa: E731  # one of several
    behind: tuple[Condition, ...] = (
        lambda m: own(m) & (m[name].next(steps).v >= least),
        lambda m: own(m) & (m[name].next(steps).v >= least) & (m[name].next(steps).t - m[name].t <= ticks),
        lambda m: own(m) & (m[name].next(2).t <= m[name].t + ticks) & (m[name].next().v >= least),
        lambda m: own(m) & (m[name].next(steps).t - m[name].prev().t <= ticks),
        lambda m: own(m) & m[name].next().t.same_as(m[name].t + ticks),
        lambda m: own(m) & (m.rows.first().next(steps).t - m.rows.first().t <= ticks),
        lambda m: own(m) & (m[name].next().t - m[name].t > ticks),
    )
    counted: tuple[Condition, ...] = (
        lambda m: own(m) & (m[name].agg(tg.count()) <= 2),
        lambda m: own(m) & (m.rows.agg(tg.count()) < 3 + steps),
        lambda m: ~(m[name].agg(tg.count()) > steps) & own(m),
    )
    kind = rng.random()
    return rng.choice(behind) if kind < 0.3 else rng.choice(counted) if kind < 0.5 else own


def _limits(rng: random.Random, pattern: str) -> Condition:
    ticks = rng.choice((0, 2, 5))
    if "C" not in pattern:
        return lambda m: m.B.t - m.A.t <= ticks
    return rng.choice(
        (
            lambda m: [m.B.first().t - m.A.t <= ticks, m.C.t - m.B.t <= ticks],
            lambda m: [m.B.t - m.A.t <= ticks, m.C.t - m.A.t <= ticks + 2],
            lambda m: m.C.t - m.B.t <= ticks,
        )
    )


def _rows(rng: random.Random) -> tuple[Row, ...]:
    """Rows of one key or two, of which one may fall silent; at some instants there are several."""
    at, rows, count = 0, list[Row](), rng.choice((3, 5, 8))
    gaps, keys = rng.choice(((0, 0, 1, 2), (1,), (0, 1, 3, 9))), rng.choice(((1,), (1, 2), (1, None)))
    silent = rng.randrange(count)
    for number in range(count):
        at += rng.choice(gaps)
        key = keys[0] if number > silent else rng.choice(keys)
        rows.append((key, at, number, rng.choice((0, 1, 1, 2, 2, None)), 0.0))
    return tuple(rng.sample(rows, len(rows)))
