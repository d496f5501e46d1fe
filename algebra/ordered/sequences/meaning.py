"""The matches of a partition as they are defined over all its rows, and the rows that are reported of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.algebra.ordered.sequences.definition import EveryMatch, Skip
from tidegate.algebra.ordered.sequences.partition import Matched, Partition
from tidegate.algebra.ordered.sequences.search import Search


@dataclass(frozen=True, slots=True)
class Match:
    """A match that begins at the row with the place `start`, or an empty one there. `number` counts those of its
    partition from 1 on; of all matches of rows that are skipped there is no order, and all are 0.
    """

    start: int
    matched: Matched
    excluded: frozenset[int] = frozenset()
    number: int = 0


def matches_of(partition: Partition) -> list[Match]:
    """All matches of a partition."""
    selection = partition.node.selection
    if isinstance(selection, EveryMatch):
        return _every(partition, selection)
    return list(_preferred(partition, selection.skip))


def _preferred(partition: Partition, skip: Skip) -> Iterator[Match]:
    search, at, number = Search(partition), 0, 0
    while at < len(partition.rows):
        path = next(search.matches(at), None)
        if path is None:
            at += 1
            continue
        number += 1
        yield Match(at, path.matched, path.excluded, number)
        at = resumes(partition, skip, at, path.matched)


def resumes(partition: Partition, skip: Skip, start: int, matched: Matched) -> int:
    """Where the search goes on after a match. Where that is no row behind its first one, at the row after its first."""
    if not matched:
        return start + 1
    match skip.to:
        case "past last row":
            return matched[-1][0] + 1
        case "next row":
            return start + 1
        case _:
            assert skip.variable is not None
            variables = partition.node.resolved(skip.variable)
            places = [at for at, variable in matched if variable in variables]
            to = start if not places else places[0] if skip.to == "first" else places[-1]
            return max(to, start + 1)


def _every(partition: Partition, selection: EveryMatch) -> list[Match]:
    search = Search(partition, selection.skipping)
    found: dict[Matched, Match] = {}
    for start in range(len(partition.rows)):
        for path in search.matches(start):
            if path.matched:
                found.setdefault(path.matched, Match(start, path.matched, path.excluded))
    return list(found.values())


def unmatched(partition: Partition, matches: Sequence[Match]) -> list[int]:
    """The places of rows that are in no match, and at which there is no empty one."""
    taken = {at for match in matches for at, _ in match.matched} | {m.start for m in matches if not m.matched}
    return [at for at in range(len(partition.rows)) if at not in taken]
