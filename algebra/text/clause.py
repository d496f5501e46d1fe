"""How a relation comes to the reader of row patterns, which is loaded with the first clause."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import Site


def clause_over(relation: Relation, clause: str, units: Mapping[str, str], file: str, site: Site | None) -> Relation:
    """The matches that a clause without FROM asks for, of a relation."""
    from tidegate.algebra.text.row_patterns import reader

    return reader.clause_over(relation, clause, units, file, site)


Relation._clause_over = clause_over
