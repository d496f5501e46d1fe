"""Pass conditions: which result rows are final now and were not before (TSA Def. 24 and 27, rule R13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import FALSE, TRUE, Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType


def pass_condition(attributes: Sequence[Attribute], old: Mapping[str, Extended], new: Mapping[str, Extended]) -> Term:
    """`∃j a_j <= new_j` and `∀j a_j > old_j` over the promised attributes; missing progress counts as -∞.

    Without promised attributes the result is static: its only increment passes everything.
    """
    if not attributes:
        return TRUE
    reached = disjunction([at_most(a, new.get(a.name, -INF)) for a in attributes])
    beyond = [above(Attr(a.name), a.type, old.get(a.name, -INF)) for a in attributes]
    return FALSE if reached == FALSE or FALSE in beyond else conjunction([reached, *beyond])


def passes(
    row: Mapping[str, int], attributes: Sequence[str], old: Mapping[str, Extended], new: Mapping[str, Extended]
) -> bool:
    """The pass condition for one row, as the rule says it."""
    if not attributes:
        return True
    return any(row[a] <= new.get(a, -INF) for a in attributes) and all(row[a] > old.get(a, -INF) for a in attributes)


def at_most(attribute: Attribute, limit: Extended) -> Term:
    """`attribute <= limit`, folded where the limit is infinite."""
    if limit in (INF, -INF):
        return TRUE if limit == INF else FALSE
    return call("le", Attr(attribute.name), Lit(int(limit), attribute.type))


def above(term: Term, type_: DataType, limit: Extended) -> Term:
    """`term > limit`, folded where the limit is infinite."""
    if limit in (INF, -INF):
        return FALSE if limit == INF else TRUE
    return call("gt", term, Lit(int(limit), type_))
