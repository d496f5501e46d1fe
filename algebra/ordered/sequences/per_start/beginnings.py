"""The beginnings of matches from one row with which rows to come may go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tidegate.algebra.ordered.sequences.automata.automaton import Automaton
from tidegate.algebra.ordered.sequences.automata.residuals import residuals
from tidegate.algebra.ordered.sequences.enabled import can_end, goes_on
from tidegate.algebra.ordered.sequences.partition import Matched, Partition
from tidegate.algebra.ordered.sequences.pattern import Pattern, Step
from tidegate.algebra.ordered.sequences.search import Path, Search


class Beginnings(Search):
    """The ways from a row that may end as matches, as far as limits and the rows so far say.

    `open` are the beginnings met on these ways with which rows behind those of the partition may go on, at `since` or
    later: those that the same variables would end together, by the number of their residual.
    """

    def __init__(
        self, partition: Partition, skipping: Literal["contiguous", "next", "any"], states: Automaton, since: int
    ) -> None:
        super().__init__(partition, skipping)
        self.states, self.residuals, self.since = states, residuals(states), since
        self.open: dict[int, set[Matched]] = {}

    def ways(self, pattern: Pattern, path: Path) -> Iterator[Path]:
        for way in super().ways(pattern, path):
            if not isinstance(pattern, Step):
                yield way
            elif self._may_end(way):
                if self._is_open(way.matched):
                    residual = self.residuals[self.states.after(_labels(way.matched))]
                    self.open.setdefault(residual, set()).add(way.matched)
                yield way

    def _candidates(self, path: Path) -> Iterator[int]:
        """Without rows behind the last one that limits let go on."""
        for at in super()._candidates(path):
            if path.matched and not self._goes_on(path.matched, self.partition.times[at]):
                return
            yield at

    def _may_end(self, path: Path) -> bool:
        """Whether the rows so far are a match or may become one. The rows are known that must not come before them or
        between two of them.
        """
        if any(self._comes(absence, before, path.matched) for absence, before in path.absences):
            return False
        return can_end(self.partition.node, _labels(path.matched), self._instants(path.matched))

    def _is_open(self, matched: Matched) -> bool:
        """Whether rows to come may go on: the rows behind the last one may be skipped, and limits can be kept."""
        behind = range(matched[-1][0] + 1, len(self.partition.rows))
        if behind and self.skipping == "contiguous":
            return False
        if self.skipping == "next" and any(goes_on(self.partition, matched, at) for at in behind):
            return False
        return self._goes_on(matched, self.since)

    def _goes_on(self, matched: Matched, since: int) -> bool:
        """Whether a match can go on with rows at an instant or later, as far as limits say."""
        return can_end(self.partition.node, _labels(matched), self._instants(matched), since)

    def _instants(self, matched: Matched) -> list[int]:
        return [self.partition.times[place] for place, _ in matched]


def _labels(matched: Matched) -> list[str]:
    return [variable for _, variable in matched]
