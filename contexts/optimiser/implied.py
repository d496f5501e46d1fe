"""Contexts that lie in others are not looked up beside these (rule R61)."""

from __future__ import annotations

from dataclasses import replace

from tidegate.algebra.dsl.checks.relation import free_name
from tidegate.algebra.nodes import Node, Rename, Scan, Select
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import CONTEXT
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.terms import Attr, Lit, Term, call, disjunction
from tidegate.algebra.types import STRING
from tidegate.contexts.optimiser.filters import Models, filter_of
from tidegate.contexts.relations import relations_of


def without_implied(node: Node, models: Models) -> Node | None:
    """A filter that looks several contexts up together, without those that lie in another one of these; None where
    there are none, or the node is no such filter.

    Where one of them holds, so does one of those that are left, and its window began no later.
    """
    found = filter_of(node, models)
    if found is None:
        return None
    made, rows = found
    joins = tuple(_without(join, (*rows.schema.names, *made.found), models) for join in made.joins)
    return None if joins == made.joins else replace(made, joins=joins).over(rows)


def _without(join: AsOf, taken: tuple[str, ...], models: Models) -> AsOf:
    match join.right:
        case Rename(GroupedWindows(Select(Scan(stream) as changes, _), keys, contexts), pairs):
            model = models.get(stream.name)
        case _:
            return join
    left = contexts if model is None else relations_of(model).needed(contexts)
    if len(left) == len(contexts):
        return join
    of: list[Term] = [call("eq", Attr(CONTEXT), Lit(context, STRING)) for context in left]
    some = Select(changes, disjunction(of))
    if len(left) > 1:
        return replace(join, right=Rename(GroupedWindows(some, keys, left), pairs))
    named = {old for old, _ in pairs}
    others: list[tuple[str, str]] = []
    for name in some.schema.names:
        if name not in named:
            others.append((name, free_name(f"{left[0]} {name}", (*taken, *(new for _, new in others)))))
    return replace(join, right=Rename(some, (*pairs, *others)))
