"""Pass conditions: which result rows are final now and were not before (TSA Def. 24 and 27, rule R13)."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import FALSE, TRUE, Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType

Progress = Mapping[str, Extended]


def pass_condition(attributes: Mapping[str, Attribute], old: Progress, new: Progress) -> Term:
    """`∃j a_j <= new_j` and `∀j a_j > old_j` over the promised attributes, the keys of `new`.

    `attributes` is the result's schema; old progress that is missing counts as -∞. A static result promises nothing:
    its only increment passes everything.
    """
    if not new:
        return TRUE
    reached = disjunction([at_most(attributes[a], limit) for a, limit in new.items()])
    beyond = [above(Attr(a), attributes[a].type, old.get(a, -INF)) for a in new]
    return FALSE if reached == FALSE or FALSE in beyond else conjunction([reached, *beyond])


def passes(row: Mapping[str, int], old: Progress, new: Progress) -> bool:
    """The pass condition for one row, as the rule says it."""
    return not new or (any(row[a] <= new[a] for a in new) and all(row[a] > old.get(a, -INF) for a in new))


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
