"""The timeline of a program's pattern over complete inputs: its situations, and the matches of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from tidegate.algebra.dsl.expression import Origin
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.programs import named_query
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.situations import parts_of_match
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node, children
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.program import ProgramDef, Query
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.api import run
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.inspect.timelines.timeline import DrawingOptions, Timeline, timeline
from tidegate.runtime.plan.progress import check_known


def pattern_timeline(
    program: ProgramDef, inputs: Mapping[str, Any], result: str | None, close_at: Any, **drawing: Unpack[DrawingOptions]
) -> Timeline:
    """Runs the pattern of a result with its situations; `QueryError` TG402 where it is not said which, or there is
    none.

    `drawing`: how `timeline` is to draw it.
    """
    timeline({}, **drawing)  # what is wrong there is told before anything runs
    with Here():
        query = _pattern(program, result)
    whole = Relation(query.node, dict.fromkeys(query.node.schema, Origin(query.name)), {}, {})
    situations, matches, keys = parts_of_match(whole)
    name = query.stream
    while name in situations:
        name += "_"
    shown = [named_query(stream, relation, query.site) for stream, relation in {**situations, name: matches}.items()]
    taken = {q.stream for q in shown}
    needed = [q for q in program.queries if q.stream not in taken and q is not query]
    results = run(analyse(ProgramDef((*needed, *shown))), inputs, options=RunOptions(), close_at=close_at)
    tables = {situation: results[situation] for situation in situations}
    return timeline(tables, results[name], partition_by=keys, title=query.stream, **drawing)


def _pattern(program: ProgramDef, result: str | None) -> Query:
    patterns = {query.stream: query for query in program.queries if _is_pattern(query.node)}
    if result is not None:
        check_known(result, patterns, "pattern called")
        return patterns[result]
    if len(patterns) != 1:
        raise QueryError(
            "TG402",
            f"the program has {len(patterns)} patterns of situations",
            hint=f"name one: timeline(..., result={next(iter(patterns))!r})"
            if patterns
            else (
                'draw situations of the results, tg.timeline({"A": results["A"]}, partition_by="key"), or a '
                "tg.match(...) of them"
            ),
        )
    return next(iter(patterns.values()))


def _is_pattern(node: Node) -> bool:
    """Whether a query is a match, perhaps with something selected of it."""
    while not isinstance(node, Match) and len(children(node)) == 1:
        (node,) = children(node)
    return isinstance(node, Match)
