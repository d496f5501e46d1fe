"""Judging by brute force what is called certain of row patterns: by all rows that may follow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product

from tests.strategies.written_sequences import partition
from tidegate.algebra.ordered.sequences.certain import Certainty
from tidegate.algebra.ordered.sequences.certainty.chain import Certain
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared
from tidegate.algebra.ordered.sequences.meaning import Match, matches_of, unmatched
from tidegate.algebra.ordered.sequences.node import EveryMatch, Sequences

#: An instant and a value.
Event = tuple[int, int]


def continuations(
    until: int, most: int, gaps: Sequence[int] = (0, 1, 2, 5), values: Sequence[int] = (0, 1)
) -> Iterator[tuple[Event, ...]]:
    """All rows that may follow after an instant, up to `most` of them."""
    for count in range(most + 1):
        for steps in product(product(gaps, values), repeat=count):
            at, rows = until + 1, list[Event]()
            for gap, value in steps:
                at += gap
                rows.append((at, value))
            yield tuple(rows)


def history(rng: random.Random, most: int = 4) -> list[Event]:
    """A few rows with small gaps."""
    at, rows = rng.choice((0, 3)), list[Event]()
    for _ in range(rng.randint(1, most)):
        rows.append((at, rng.randrange(2)))
        at += rng.choice((0, 0, 1, 1, 2, 3, 5))
    return rows


def certain_at(node: Sequences, rows: Sequence[Event], until: int | None) -> Certain:
    return Certainty(Prepared(node)).at(partition(node, rows), until)


def said(node: Sequences, rows: Sequence[Event], matches: Sequence[Match]) -> set[object]:
    """What is reported of matches, but for the instants at which they are."""
    of = partition(node, rows)
    numbered = Prepared(node).numbers
    return {
        (
            match.start,
            match.matched,
            None if isinstance(node.selection, EveryMatch) else match.excluded,
            of.measures(match.matched, match.matched, match.number if numbered else 0),
        )
        for match in matches
    }


def contradicted(
    node: Sequences, rows: Sequence[Event], until: int, certain: Certain, most: int, gaps: Sequence[int] = (0, 1, 2, 5)
) -> tuple[Event, ...] | None:
    """Rows to come with which something that is called certain is not so; None where there are none."""
    called, free = said(node, rows, certain.matches), set(certain.unmatched)
    if not called and not free:
        return None
    for further in continuations(until, most, gaps):
        all_rows = [*rows, *further]
        of = partition(node, all_rows)
        matches = matches_of(of)
        if not called <= said(node, all_rows, matches) or not free <= set(unmatched(of, matches)):
            return further
    return None


def settled(node: Sequences, rows: Sequence[Event], until: int, certain: Certain, most: int) -> bool:
    """Whether there is a match that is not called certain, and that none of the rows that may follow changes."""
    every: set[object] | None = None
    for further in continuations(until, most):
        all_rows = [*rows, *further]
        found = said(node, all_rows, matches_of(partition(node, all_rows)))
        every = found if every is None else every & found
    return bool((every or set()) - said(node, rows, certain.matches))
