"""The preferred matches of which nothing to come can change that they are matches: starts one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.algebra.ordered.sequences.certainty.leaves import Leaf, Leaves
from tidegate.algebra.ordered.sequences.certainty.possible import Known
from tidegate.algebra.ordered.sequences.meaning import Match


@dataclass(frozen=True, slots=True)
class Standing:
    """Up to where all is decided: the place of the first row at which a match may begin that is not, the number of
    matches before it, and the place behind the last row that these have. `whole`: no rows have been dropped.
    """

    begin: int = 0
    number: int = 0
    taken: int = 0
    whole: bool = True

    def without(self, count: int) -> Standing:
        """The same once so many rows have been dropped, none of which is needed."""
        return replace(self, begin=self.begin - count, taken=max(self.taken - count, 0), whole=self.whole and not count)


@dataclass(frozen=True, slots=True)
class Certain:
    """What is certain from a standing on: matches, and places of rows that are in none; then the next standing."""

    matches: tuple[Match, ...]
    unmatched: tuple[int, ...]
    standing: Standing


@dataclass(frozen=True, slots=True)
class _Start:
    """What is known of a start: its leaves up to the first that is accepted, and its match or that there is none."""

    leaves: Sequence[Leaf]
    match: Match | None

    @property
    def decided(self) -> bool:
        return self.match is not None or not self.leaves

    def targets(self, start: int) -> frozenset[int]:
        """Where the search can go on."""
        found = frozenset(to for leaf in self.leaves for to in leaf.resumes)
        return found if self.leaves and self.leaves[-1].accepted else found | {start + 1}


def preferred_at(known: Known, standing: Standing) -> Certain:
    """What is certain of the preferred matches.

    A start is visited where the search comes to it whatever is to come. Its match is certain once it is visited and no
    leaf that is preferred is open. A row is in no match once its start is visited and has no leaf, and no other leaf
    has the row.
    """
    leaves, numbers = Leaves(known), known.prepared.numbers
    reachable, furthest, held = {standing.begin}, standing.begin, standing.taken
    matches, unmatched = list[Match](), list[int]()
    settled, next_standing, number = True, standing, standing.number
    for start in range(standing.begin, known.count):
        if furthest >= known.count:
            # The search may go on behind all known rows: of no other start is it known that it is visited.
            break
        if start not in reachable:
            continue
        visited = start >= furthest
        of = _start(start, leaves)
        if settled and visited and of.decided:
            number += of.match is not None
        else:
            settled = False
        match = of.match if of.match is not None and visited and measured(known, of.match) else None
        if match is not None and (settled or not numbers):
            matches.append(replace(match, number=number if settled else 0))
        if visited and not of.leaves and start >= held:
            unmatched.append(start)
        targets = of.targets(start)
        reachable |= targets
        furthest = max(furthest, *targets)
        held = max([held, *(leaf_end(leaf, known) for leaf in of.leaves)])
        if settled and next_standing.begin == start and (match is not None or not of.leaves):
            next_standing = Standing(furthest, number, held, known.whole)
    return Certain(tuple(matches), tuple(unmatched), next_standing)


def _start(start: int, leaves: Leaves) -> _Start:
    found = list[Leaf]()
    for leaf in leaves.of(start):
        found.append(leaf)
        if leaf.accepted:
            break
    if not found or not found[-1].accepted:
        return _Start(found, None)
    last = found[-1]
    others = [leaf for leaf in found if leaf.more or (leaf.matched, leaf.excluded) != (last.matched, last.excluded)]
    return _Start(found, None if others else Match(start, last.matched, last.excluded))


def leaf_end(leaf: Leaf, known: Known) -> int:
    """The place behind the last row that a leaf has."""
    return known.count if leaf.more else leaf.matched[-1][0] + 1 if leaf.matched else 0


def measured(known: Known, match: Match) -> bool:
    """Whether the rows are known that the measures of a match read."""
    navigations = known.prepared.measured_ahead
    if known.until is None or not navigations:
        return True
    lengths = range(1, len(match.matched) + 1) if known.prepared.node.reported.rows == "all" else [len(match.matched)]
    places = (known.partition.place(n.row, match.matched[:length]) for n in navigations for length in lengths)
    return all(place is None or known.knows(place) for place in places)
