"""Judging by brute force what is called certain of row patterns: by all rows that may follow."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import product

from tests.strategies.written_sequences import partition
from tidegate.algebra.ordered.sequences.certain import Certainty
from tidegate.algebra.ordered.sequences.certainty.chain import Certain
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.meaning import Match, matches_of, unmatched
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.partition import Partition

#: An instant and a value; None is NULL.
Event = tuple[int, int | None]


def continuations(
    until: int, most: int, gaps: Sequence[int] = (0, 1, 2, 5), values: Sequence[int | None] = (0, 1)
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
    """A few rows with small gaps, now and then with NULL in the place of a value."""
    null = rng.choice((0, 0.3))
    at, rows = rng.choice((0, 3)), list[Event]()
    for _ in range(rng.randint(1, most)):
        rows.append((at, None if rng.random() < null else rng.randrange(2)))
        at += rng.choice((0, 0, 1, 1, 2, 3, 5))
    return rows


class Judge:
    """What is said of a node's matches, by the rows of a partition."""

    def __init__(self, node: Sequences) -> None:
        self.node, self.rule = node, Certainty(Prepared(node))
        # Conditions are made ready once.
        self.empty = partition(node, ())

    def of(self, rows: Sequence[Event]) -> Partition:
        """The partition of these rows."""
        of = copy(self.empty)
        of.rows, of.times = [(t, number, x) for number, (t, x) in enumerate(rows)], [t for t, _ in rows]
        return of

    def certain(self, rows: Sequence[Event], until: int | None) -> Certain:
        return self.rule.at(self.of(rows), until)

    def said(self, of: Partition, matches: Sequence[Match]) -> set[object]:
        """What is reported of matches, but for the instants at which they are."""
        every = isinstance(self.node.selection, EveryMatch)
        return {
            (
                match.start,
                match.matched,
                None if every else match.excluded,
                of.measures(match.matched, match.matched, match.number if self.rule.prepared.numbers else 0),
            )
            for match in matches
        }

    def contradicted(
        self, rows: Sequence[Event], until: int, certain: Certain, most: int, gaps: Sequence[int] = (0, 1, 2, 5)
    ) -> tuple[Event, ...] | None:
        """Rows to come with which something that is called certain is not so; None where there are none."""
        return self.changed_by(rows, certain, continuations(until, most, gaps))

    def changed_by(
        self, rows: Sequence[Event], certain: Certain, follow: Iterable[tuple[Event, ...]]
    ) -> tuple[Event, ...] | None:
        """The first of the rows that may follow with which something that is called certain is not so."""
        called, free = self.said(self.of(rows), certain.matches), set(certain.unmatched)
        if not called and not free:
            return None
        for further in follow:
            of = self.of([*rows, *further])
            matches = matches_of(of)
            if not called <= self.said(of, matches) or not free <= set(unmatched(of, matches)):
                return further
        return None

    def settled(self, rows: Sequence[Event], until: int, certain: Certain, most: int) -> bool:
        """Whether there is a match that is not called certain, and that none of the rows that may follow changes."""
        every: set[object] | None = None
        for further in continuations(until, most):
            of = self.of([*rows, *further])
            found = self.said(of, matches_of(of))
            every = found if every is None else every & found
            if not every:
                return False
        return bool((every or set()) - self.said(self.of(rows), certain.matches))
