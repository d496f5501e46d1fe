"""The node that counts the matches of a row pattern without listing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.ordered.sequences.counting.countable import Counting, counting_of
from tidegate.algebra.ordered.sequences.counting.values import MatchValue, asked, value_of
from tidegate.algebra.ordered.sequences.definition import DETECTED, LAST
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.summary import Halves, Summary


@dataclass(frozen=True, slots=True, eq=False)
class CountedSequences(Summary):
    """The number of matches of a row pattern by partition and instant of detection, which is that of the last row, and
    aggregates of their values.
    """

    @property
    def sequences(self) -> Sequences:
        assert isinstance(self.of, Sequences)
        return self.of

    @property
    def counting(self) -> Counting:
        """How its matches are counted."""
        counting = counting_of(self.sequences)
        assert isinstance(counting, Counting)
        return counting

    def value(self, name: str) -> MatchValue:
        """The value of a match that one of its attributes is."""
        value = value_of(self.sequences, self.counting.automaton, name)
        assert isinstance(value, MatchValue)
        return value


def counted(
    node: Sequences, keys: Sequence[str], aggregates: Sequence[Aggregate], totals: Sequence[Halves]
) -> CountedSequences | str:
    """The node that yields these groups of the matches without listing them, or why they are listed.

    Groups are those of partition and instant of detection, which are finer than those that are asked for.
    """
    known = (*node.keys, LAST, DETECTED)
    for key in keys:
        if key not in known:
            return f"their {key} is read, and matches that differ in it count together"
    counting = counting_of(node)
    if isinstance(counting, str):
        return counting
    why = asked(node, counting.automaton, aggregates, totals)
    return CountedSequences(node, known, tuple(aggregates), tuple(totals)) if why is None else why
