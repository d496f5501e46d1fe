"""The temporal relations of an undeclared result, as the condition that its definition states (rule R12)."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import MAX_SHIFT
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.zone import Variable, hull, reduced


def derived_relations(federations: Sequence[Federation]) -> Term:
    """The bounds between temporal attributes that hold in every zone of every query that feeds the stream.

    The hull of the zones, which is weaker than their disjunction and never larger than the number of attributes.
    """
    schema = federations[0].schema
    names = [a for a in schema.temporal if all(f.schema[a].temporal for f in federations)]
    variables: list[Variable] = [("a", name) for name in names]
    matrices = [zone.view(variables) for federation in federations for zone in federation.zones]
    if not matrices or len(names) < 2:
        return TRUE
    parts: list[Term] = []
    for w, v, c in reduced(hull(matrices)):
        if abs(c) <= MAX_SHIFT:
            distance = schema[names[w]].type.distance
            left, right = Attr(names[v]), Attr(names[w])
            later: Term = right if c <= 0 else call("add", right, Lit(c, distance))
            parts.append(call("le", left if c >= 0 else call("add", left, Lit(-c, distance)), later))
    return conjunction(parts)
