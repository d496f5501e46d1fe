"""Relations as results of the program, which queries read by their names."""

from __future__ import annotations

from tidegate.algebra.dsl.programs import query_of_result
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.sources import Result, result_stream
from tidegate.algebra.errors import Site
from tidegate.algebra.program import ProgramDef
from tidegate.analysis.pipeline import analyse


def named_result(name: str, relation: Relation, site: Site | None) -> Result:
    """The result of a query, which every program that reads it computes once; `QueryError` where it is not valid."""
    query = query_of_result(name, relation, site)
    definition = analyse(ProgramDef((query,))).definition_of(name)
    return result_stream(definition, {}, site, query, relation._results)
