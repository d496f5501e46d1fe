"""Row patterns whose matches need many rows, or rows far away, to be other ones; and long rows that may make them so.

What is drawn is biased to what rules of certainty have been wrong about: least durations, numbers of rows, rows two
behind, and chains of gaps, each of which is small; and to what they say of rows that are none too many, and of values
that are NULL.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.strategies.continuations import Event
from tests.strategies.written_sequences import limit, sequences
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Limit
from tidegate.algebra.ordered.sequences.node import Sequences

#: The value of each variable's rows.
VALUES: dict[str, int] = {"A": 0, "B": 1, "C": 2, "D": 0}
SHAPES = {
    "durations": ("A B* | A", "A B* C | A", "A B+ C?", "A B* C*", "A (B C)* | A", "A B+ | A"),
    "counts": ("A B* C | A", "A B* C?", "A (B | C)* D | A", "A B* C* | A", "A B C | A B"),
    "ahead": ("A (B | C)", "A B? C", "A B* C | A", "A B | A", "A (B C | D)", "A B?"),
    "numbers": ("A+", "A B*", "A+ B?", "A (B | C)*", "A (B C)* | A", "A+ B | A", "A+ !D[5]", "A B* !C[5]"),
    "nulls": ("A B*", "A B+ | A", "A+ B*", "A B? C | A", "A (B | C)*", "A !B[5]", "A B? !C[5]"),
    "gaps": ("A B* C | A", "A B+ C+ | A", "A (B C)* | A B", "A B* C* | A", "A B C D | A"),
}
Condition = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Directed:
    """A node, the gaps between rows at which something of it changes, and values of a first row and of others."""

    node: Sequences
    gaps: tuple[int, ...]
    begins: tuple[int | None, ...]
    values: tuple[int | None, ...]


def directed_sequences(
    rng: random.Random, *, every: str | None = None, kinds: Sequence[str] = tuple(SHAPES)
) -> Directed:
    """A node over rows of the values 0 to 2. `every`: how rows are skipped, where all matches are asked for."""
    while True:
        gap, least = rng.choice((1, 2)), rng.choice((2, 3, 5))
        kind = rng.choice(kinds)
        pattern = rng.choice(SHAPES[kind])
        options: dict[str, Any] = {name: _condition(rng, kind, name, gap, least) for name in VALUES if name in pattern}
        limits = list(_limits(rng, kind, pattern, gap, least))
        skip = rng.choice(("past last row", "past last row", "next row"))
        options |= {"skip": skip} if every is None else {"select": EveryMatch(every)}  # type: ignore[arg-type]
        if rng.random() < 0.15:
            limits.append(limit(f"last - first <= {rng.choice((least, 9))}"))
        try:
            node = sequences(pattern, limits=limits, **options)
            _ = node.schema
        except QueryError:
            continue
        begins: tuple[int | None, ...] = (0, None) if kind == "nulls" else (0,)
        values: tuple[int | None, ...] = (0, 1, 1, 2, None) if kind == "nulls" else (0, 1, 1, 2)
        if kind == "numbers":
            values = (0, 0, 1, 1, 2)
        return Directed(node, tuple(sorted({0, 1, gap, gap + 1, least})), begins, values)


def _condition(rng: random.Random, kind: str, name: str, gap: int, least: int) -> Condition:
    value, other = VALUES[name], rng.choice((0, 1, 2))
    known: tuple[Condition, ...] = (lambda r: r.x == value, lambda r: r.x == value, lambda r: r.x <= value)
    if kind == "nulls" and name == "A":
        known = (*known, lambda r: r.x.is_null() | (r.x == 0))
    own = rng.choice(known)
    more: dict[str, tuple[Condition, ...]] = {
        "durations": (lambda r: r.t - r.prev_t <= gap, lambda r: r.t - r.last_A_t >= 1),
        "counts": (lambda r: r.count_B >= least, lambda r: r.count_B <= least, lambda r: r.sum_B >= least),
        "ahead": (
            lambda r: r.next2_x == other,
            lambda r: r.next_t - r.t > gap,
            lambda r: (r.next2_x == other) & (r.next2_t - r.t <= least),
            lambda r: (r.next_x == other) | (r.next2_x == value),
        ),
        "gaps": (lambda r: r.t - r.prev_t <= gap, lambda r: r.t - r.prev_t >= gap),
    }
    if kind == "numbers" and rng.random() < 0.7:
        return _counted(rng, own, rng.choice((f"count_{name}", f"count_{name}", "count_all", "count_B")))
    if kind == "nulls" and name != "A" and rng.random() < 0.8:
        return _compared(rng, own, name)
    if name == "A" or kind in ("numbers", "nulls") or rng.random() < 0.35:
        return own
    further = rng.choice(more[kind])
    return lambda r: own(r) & further(r)


def _counted(rng: random.Random, own: Condition, rows: str) -> Condition:
    """A condition that compares a number of rows with a constant."""
    number = rng.choice((1, 1, 2, 2, 3))
    of: tuple[Condition, ...] = (
        lambda r: r[rows] <= number,
        lambda r: r[rows] < number + 1,
        lambda r: ~(r[rows] > number),
        lambda r: r[rows] == number,
        lambda r: r[rows] != number,
        lambda r: r[rows] >= number,
        lambda r: r[rows] > number,
        lambda r: ~(r[rows] < number),
        lambda r: ~(r[rows] == number),
        lambda r: (r[rows] <= number) | (r.x >= 0),
    )
    counted = rng.choice(of)
    return lambda r: own(r) & counted(r)


def _compared(rng: random.Random, own: Condition, name: str) -> Condition:
    """A condition that compares values of several rows, any of which may be NULL."""
    other = rng.choice(("last_A_x", "last_A_x", "first_A_x", f"first_{name}_x", "last_B_x", "prev_x", "sum_A"))
    of: tuple[Condition, ...] = (
        lambda r: r.x >= r[other],
        lambda r: r.x != r[other],
        lambda r: ~(r.x == r[other]),
        lambda r: r[other] < r.x + 1,
        lambda r: (r.x > r[other]) | (r.x < r.last_A_x),
        lambda r: (r.x > r[other]) | own(r),
        lambda r: (r.x != r[other]) & own(r),
        lambda r: r[other].is_null() | (r.x > r[other]),
        lambda r: ~((r.x == r[other]) & own(r)),
        lambda r: r.x.same_as(r[other]),
    )
    return rng.choice(of)


def _limits(rng: random.Random, kind: str, pattern: str, gap: int, least: int) -> Iterator[Limit]:
    def of(*texts: str) -> Limit:
        return limit(rng.choice(texts))

    if kind in ("durations", "gaps") and rng.random() < 0.8:
        yield of(f"last(B) - first >= {least}", f"last(B) - first(B) >= {least}", f"last - first >= {least}")
    if kind == "gaps":
        yield of(f"first(B) - last(A) <= {gap}", f"last(B) - first(B) <= {least + gap}")
        if "C" in pattern:
            yield of(f"first(C) - last(B) <= {gap}", f"last(C) - first(B) <= {least}")


def directed_history(rng: random.Random, directed: Directed, most: int = 4) -> list[Event]:
    """A few rows, mostly as the pattern has them at its beginning."""
    at, rows = rng.choice((0, 3)), list[Event]()
    for number in range(rng.randint(1, most)):
        rows.append((at, rng.choice(directed.begins) if not number else rng.choice(directed.values)))
        at += rng.choice(directed.gaps)
    return rows


def directed_continuations(
    rng: random.Random, directed: Directed, until: int, most: int, count: int
) -> Iterator[tuple[Event, ...]]:
    """So many rows that may follow after an instant, of up to `most` rows: a few runs, in each of which values and gaps
    are the same.
    """
    for _ in range(count):
        at, rows = until + 1 + rng.choice((0, *directed.gaps)), list[Event]()
        for _ in range(rng.choice((1, 2, 2, 3))):
            value, gap = rng.choice(directed.values), rng.choice(directed.gaps)
            for _ in range(rng.choice((1, 1, 2, most))):
                rows.append((at, value))
                at += gap
        yield tuple(rows[:most])
