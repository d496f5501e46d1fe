"""Which patterns' matches are listed from their ends, without a thread for each beginning (rule R58)."""

from __future__ import annotations

from tidegate.algebra.ordered.sequences.definition import EveryMatch, Point
from tidegate.runtime.kernels.sequences.threads import EVER
from tidegate.runtime.ordered.sequences.arrays import PatternArrays


def listed_within(arrays: PatternArrays) -> int | None:
    """How many ticks matches last at most of which no beginning is told apart from others, `EVER` for any number; None
    where threads tell them apart: by rows that conditions or other limits read, or by how many there are.
    """
    tables, node = arrays.tables, arrays.tables.node
    if node.selection != EveryMatch("any") or node.per_start is not None or tables.absences:
        return None
    if any(one.programs or one.waits for one in tables.compiled):
        return None
    whole = Point(None, "last"), Point(None, "first")
    if any((limit.later, limit.earlier) != whole or limit.most < 0 for limit in node.limits):
        return None
    return min((limit.most for limit in node.limits), default=EVER)
