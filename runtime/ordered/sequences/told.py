"""Which states of a pattern the last row of a thread tells: searches that meet there go on alike (rule R57)."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN
from tidegate.algebra.ordered.sequences.definition import Point
from tidegate.algebra.ordered.sequences.pattern import longest
from tidegate.runtime.kernels.sequences.threads import LAST_ROWS
from tidegate.runtime.ordered.sequences.arrays import PatternArrays

#: A mask has room for so many states.
MOST_STATES: Final = 62
#: A search of so few rows is not worth remembering.
FEW: Final = 8


def states_told(arrays: PatternArrays) -> int:
    """The states, as a mask, in which all threads with one last row have the same registers. None where limits name
    rows in which they differ or conditions end threads before their row is there, and where no search is long.
    """
    node, variables = arrays.tables.node, arrays.variable.tolist()
    rows = longest(node.pattern)
    if (rows is not None and rows <= FEW) or len(variables) > MOST_STATES or arrays.tables.demands:
        return 0
    whole = Point(None, "last"), Point(None, "first")
    if any((limit.later, limit.earlier) != whole for limit in node.limits):
        return 0
    return sum(1 << state for state, variable in enumerate(variables) if state != BEGIN and _tells(arrays, variable))


def _tells(arrays: PatternArrays, variable: int) -> bool:
    """Whether each register holds the last row, if that has the variable."""
    return all(
        kind == LAST_ROWS and count == 1 and mask >> variable & 1 for kind, mask, _, count, *_ in arrays.groups.tolist()
    )
