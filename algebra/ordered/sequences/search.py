"""Matches as they are defined: every way through the pattern, in order of preference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from tidegate.algebra.ordered.sequences.enabled import goes_on
from tidegate.algebra.ordered.sequences.partition import Matched, Partition
from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    orders_of,
)


@dataclass(frozen=True, slots=True)
class Path:
    """A way through a pattern, or the beginning of one: the place of the next row, the rows so far, those of them that
    are excluded, and the absences that it has passed, each with how many rows there were before it.
    """

    at: int
    matched: Matched = ()
    excluded: frozenset[int] = frozenset()
    absences: tuple[tuple[Absence, int], ...] = ()


class Search:
    """The ways through a node's pattern in one partition. `skipping`: which rows may lie between those of a match."""

    def __init__(self, partition: Partition, skipping: Literal["contiguous", "next", "any"] = "contiguous") -> None:
        self.partition, self.skipping = partition, skipping

    def matches(self, start: int) -> Iterator[Path]:
        """The matches that begin at a row, the preferred one first; equal ones as often as there are ways to them."""
        for path in self.ways(self.partition.node.pattern, Path(start)):
            if (not path.matched or path.matched[0][0] == start) and self._is_match(path):
                yield path

    def ways(self, pattern: Pattern, path: Path) -> Iterator[Path]:
        """All ways to go on through a pattern."""
        match pattern:
            case Step(variable):
                for at in self._candidates(path):
                    matched = (*path.matched, (at, variable))
                    if self.partition.holds(variable, at, matched):
                        yield replace(path, at=at + 1, matched=matched)
            case Concatenation(parts):
                yield from self._one_after_the_other(parts, path)
            case Alternation(parts):
                for part in parts:
                    yield from self.ways(part, path)
            case Permutation():
                yield from self.ways(orders_of(pattern), path)
            case Repetition():
                yield from self._times(pattern, 0, path)
            case Exclusion(part):
                before = len(path.matched)
                for way in self.ways(part, path):
                    rows = frozenset(at for at, _ in way.matched[before:])
                    yield replace(way, excluded=way.excluded | rows)
            case Anchor(end):
                if path.at == (0 if end == "start" else len(self.partition.rows)):
                    yield path
            case Absence():
                yield replace(path, absences=(*path.absences, (pattern, len(path.matched))))
            case _:
                assert_never(pattern)

    def _candidates(self, path: Path) -> Iterator[int]:
        """The places of rows that may come next: a match begins at the row that it is looked for at."""
        for at in range(path.at, len(self.partition.rows)):
            yield at
            if not path.matched or self.skipping == "contiguous":
                return
            if self.skipping == "next" and goes_on(self.partition, path.matched, at):
                return

    def _one_after_the_other(self, parts: Sequence[Pattern], path: Path) -> Iterator[Path]:
        if not parts:
            yield path
            return
        for way in self.ways(parts[0], path):
            yield from self._one_after_the_other(parts[1:], way)

    def _times(self, repetition: Repetition, done: int, path: Path) -> Iterator[Path]:
        """The part once more or no more. A time without rows is the last one, unless more are asked for at least: as
        ISO/IEC 19075-5 has it, 7.2.8.
        """
        enough = done >= repetition.least
        if enough and not repetition.greedy:
            yield path
        if repetition.most is None or done < repetition.most:
            for way in self.ways(repetition.part, path):
                if way.at == path.at and done + 1 >= repetition.least:
                    yield way
                else:
                    yield from self._times(repetition, done + 1, way)
        if enough and repetition.greedy:
            yield path

    def _is_match(self, path: Path) -> bool:
        limits = all(self.partition.keeps(limit, path.matched) for limit in self.partition.node.limits)
        return limits and not any(self._comes(absence, before, path.matched) for absence, before in path.absences)

    def _comes(self, absence: Absence, before: int, matched: Matched) -> bool:
        """Whether a row comes that must not, where `before` of the matched rows stand before it."""
        times, within = self.partition.times, absence.within
        places: list[int]
        if not matched:
            return False
        if 0 < before < len(matched):
            since = times[matched[before - 1][0]]
            between = range(matched[before - 1][0] + 1, matched[before][0])
            places = [at for at in between if within is None or times[at] - since <= within]
        elif before:
            last = matched[-1][0]
            places = [at for at in range(last + 1, len(times)) if within is None or times[at] - times[last] <= within]
        else:
            first = matched[0][0]
            places = [at for at in range(first) if within is None or times[first] - times[at] <= within]
        own = {at for at, _ in matched}
        others = _Others(self.partition, [at for at in places if at not in own])
        return any(True for _ in others.ways(absence.part, Path(0, matched)))


class _Others(Search):
    """The ways of rows that must not come beside those of a match, whatever rows lie between them."""

    def __init__(self, partition: Partition, places: Sequence[int]) -> None:
        super().__init__(partition, "any")
        self.places = places

    def _candidates(self, path: Path) -> Iterator[int]:
        return (at for at in self.places if at >= path.at)
