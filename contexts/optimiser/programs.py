"""Programs with queries in contexts as they run: contexts looked up early, and once for all that ask for the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Imbed, Node, OrderedNode, Project, Rename, Select
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import ordered_operator
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.inner_queries import owner_of
from tidegate.analysis.pipeline import analyse
from tidegate.analysis.state.bounds import Unbounded
from tidegate.analysis.validity.validity import scan_problems

if TYPE_CHECKING:
    from tidegate.contexts.optimiser.filters import Models


def optimised(program: ProgramDef, facts: ProgramFacts) -> ProgramFacts:
    """The facts of a program of the same results that looks contexts up as early as can be; `facts` are its own.

    Each result keeps its definition: what is promised of it, and so when its rows are final. A change that would not
    keep it, or would let state grow for ever that did not, is left out.
    """
    if not any(isinstance(ordered_operator(query.query.node), Transitions) for query in facts.queries):
        return facts
    # Few programs have contexts, and every one asks.
    from tidegate.contexts.optimiser.filters import models_of

    alone, models = _alone(facts), models_of(program.queries)
    changed = _pushed_down(program.queries, models, facts, alone)
    # Most of the time goes into analyses, and most programs can have all of their changes: one tells.
    every = _analysed(_shared(changed, models, facts, alone), program.queries, facts)
    if every is not None:
        return every
    places = [place for place, query in enumerate(changed) if query is not program.queries[place]]
    queries, best = _with_changes(places, changed, program.queries, facts, facts)
    return _analysed(_shared(queries, models, facts, alone), queries, facts) or best


def _alone(facts: ProgramFacts) -> set[str]:
    """The queries that alone feed their streams, and are not recursive."""
    feeding = Counter(query.query.stream for query in facts.queries)
    return {
        query.query.name
        for query in facts.queries
        if feeding[query.query.stream] == 1 and query.query.stream not in facts.recursions and not query.query.inner
    }


def _pushed_down(
    queries: Sequence[Query], models: Models, facts: ProgramFacts, alone: Collection[str]
) -> Sequence[Query]:
    """The queries with their filters by contexts further down."""
    from tidegate.contexts.optimiser.grouping import gathered, grouped
    from tidegate.contexts.optimiser.implied import without_implied
    from tidegate.contexts.optimiser.push_down import pushed_down, rewritten_by

    def together(node: Node) -> Node | None:
        return grouped(node, models)

    def needed(node: Node) -> Node | None:
        return without_implied(node, models)

    own = [rewritten_by(rewritten_by(query, together), needed) for query in queries if query.name in alone]
    made = {query.name: pushed_down(query, models) for query in gathered(own, models)}
    return [_promising(made[query.name], query, facts) if query.name in made else query for query in queries]


def _shared(queries: Sequence[Query], models: Models, facts: ProgramFacts, alone: Collection[str]) -> Sequence[Query]:
    """The queries in which those that look one context up of rows of one stream do that once."""
    from tidegate.contexts.optimiser.sharing import sharing

    places = [place for place, query in enumerate(queries) if query.name in alone]
    shared = dict(zip(places, sharing([queries[place] for place in places], models), strict=True))
    return [
        query if shared.get(place, query) is query else _with_promise(shared[place], facts)
        for place, query in enumerate(queries)
    ]


def _with_changes(
    places: Sequence[int], changed: Sequence[Query], queries: Sequence[Query], best: ProgramFacts, facts: ProgramFacts
) -> tuple[Sequence[Query], ProgramFacts]:
    """The queries with as many of the changes at these places as can be, and the facts of all of them: those given, or
    `best` as they were. Changes that cannot be are looked for by halves: there are few.
    """
    some = [changed[place] if place in places else query for place, query in enumerate(queries)]
    if (found := _analysed(some, queries, facts)) is not None:
        return some, found
    if len(places) > 1:
        half = len(places) // 2
        for part in (places[:half], places[half:]):
            queries, best = _with_changes(part, changed, queries, best, facts)
    return queries, best


def _analysed(queries: Sequence[Query], known: Sequence[Query], facts: ProgramFacts) -> ProgramFacts | None:
    """The facts of a program of these queries; None where none has changed, or what is known of results would."""
    if all(query is before for query, before in zip(queries, known, strict=True)):
        return None
    try:
        found = analyse(ProgramDef(tuple(queries)))
    except QueryError:
        return None
    return found if _keeps(facts, found) else None


def _promising(query: Query, before: Query, facts: ProgramFacts) -> Query:
    """A changed query with the definition of its stream, unless it is an ordered operator as before, which has it."""
    return query if query is before or isinstance(_root(query.node), OrderedNode) else _with_promise(query, facts)


def _with_promise(query: Query, facts: ProgramFacts) -> Query:
    """The query with the definition that was inferred of its stream. What it promises is then no operator's own, so
    that operators in it are queries that others may read.
    """
    return query if query.declared is not None else replace(query, declared=facts.streams[query.stream])


def _root(node: Node) -> Node:
    while isinstance(node, Select | Project | Rename | Imbed):
        node = node.input
    return node


def _keeps(before: ProgramFacts, after: ProgramFacts) -> bool:
    """Whether results are defined as before, and no state grows for ever that did not."""
    for query in (facts.query for facts in before.queries if not facts.query.inner):
        known, made = before.streams[query.stream], after.streams[query.stream]
        if made != known and (made.static != known.static or scan_problems(query, known, made)):
            return False
    return _growing(after) <= _growing(before)


def _growing(facts: ProgramFacts) -> set[str]:
    """The results of which a part keeps rows for ever."""
    return {
        owner_of(query.query.stream)
        for query in facts.queries
        if any(isinstance(one.bound, Unbounded) and not one.folds for one in query.occurrences)
    }
