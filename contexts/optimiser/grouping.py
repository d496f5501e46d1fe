"""Equal queries of several contexts become one query of all of them (rule R55; CAESAR, Listing 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.algebra.nodes import Distinct, Imbed, Node, Project, Rename, Select, Union, with_children
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import CONTEXT
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.terms import TRUE, Attr, Call, Lit, Term, call, disjunction
from tidegate.algebra.types import STRING
from tidegate.contexts.optimiser.filters import ContextFilter, filter_of

#: Operators that look at rows one by one.
_RowWise = Select | Project | Rename | Imbed


@dataclass(frozen=True, slots=True)
class _InContexts:
    """What a union reads: rows in one of some contexts, and what is made of each of them above."""

    above: tuple[_RowWise, ...]
    filter: ContextFilter
    rows: Node
    changes: Node
    contexts: tuple[str, ...]

    def is_like(self, other: _InContexts) -> bool:
        """Whether the other one asks the same of the same rows, in other contexts."""
        own, its = self.filter, other.filter
        return (
            self.rows == other.rows
            and self.changes == other.changes
            and (own.keys, own.at, own.since) == (its.keys, its.at, its.since)
            and [_asked(node) for node in self.above] == [_asked(node) for node in other.above]
        )

    def together(self, contexts: tuple[str, ...]) -> Node:
        """The same in one of these contexts."""
        (join,) = self.filter.joins
        assert isinstance(join.right, Rename)
        keys = {new: old for old, new in join.right.pairs}
        of: list[Term] = [call("eq", Attr(CONTEXT), Lit(context, STRING)) for context in contexts]
        windows = GroupedWindows(
            Select(self.changes, disjunction(of)), tuple(keys[key] for key in join.right_keys), contexts
        )
        pairs = tuple((old, new) for old, new in join.right.pairs if old in windows.schema)
        grouped = replace(self.filter, joins=(replace(join, right=Rename(windows, pairs)),))
        node: Node = grouped.over(self.rows)
        for above in reversed(self.above):
            node = with_children(above, (node,))
        return node


def grouped(node: Node) -> Node | None:
    """A union without duplicates in which equal parts of several contexts are one; None where there are none.

    A row is there once, however many of the contexts hold: so it is where one of them does.
    """
    match node:
        case Distinct(Union(inputs)):
            parts = [(_in_contexts(input_), input_) for input_ in inputs]
        case _:
            return None
    groups: list[list[_InContexts]] = []
    others: list[Node] = []
    for part, input_ in parts:
        if part is None:
            others.append(input_)
            continue
        same = next((group for group in groups if group[0].is_like(part)), None)
        if same is None:
            groups.append([part])
        else:
            same.append(part)
    if len(groups) + len(others) == len(parts):
        return None
    made = [group[0].together(_contexts_of(group)) for group in groups if len(group) > 1]
    alone = [input_ for part, input_ in parts if part is not None and [part] in groups]
    every = (*made, *alone, *others)
    return Distinct(every[0] if len(every) == 1 else Union(every))


def _contexts_of(group: Sequence[_InContexts]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(context for part in group for context in part.contexts))


def _in_contexts(node: Node) -> _InContexts | None:
    """A part of a union as rows in contexts that are not the default one; None where it is none, or a term above may
    have no value.
    """
    above: list[_RowWise] = []
    while isinstance(node, Select | Project | Rename | Imbed):
        if (found := filter_of(node)) is not None:
            made, rows = found
            is_plain = len(made.joins) == 1 and not made.carried and (made.condition == TRUE or made.since is not None)
            changes = _changes_of(made.joins[0]) if is_plain else None
            if changes is None or not isinstance(node, Project):
                return None
            above.append(node)
            return _InContexts(tuple(above), made, rows, *changes)
        term = node.condition if isinstance(node, Select) else node.term if isinstance(node, Imbed) else None
        if term is not None and can_fail(term, node.input.schema):
            return None
        above.append(node)
        node = node.input
    return None


def _changes_of(join: AsOf) -> tuple[Node, tuple[str, ...]] | None:
    """The changes that are looked up and the contexts that they are of, where these are not the default one."""
    if join.how != "inner":
        return None
    match join.right:
        case Rename(Select(changes, Call("eq", (Attr(name), Lit(str(context))))), _) if name == CONTEXT:
            return changes, (context,)
        case Rename(GroupedWindows(Select(changes, _), _, contexts), _):
            return changes, contexts
    return None


def _asked(node: _RowWise) -> tuple[object, ...]:
    """What an operator does, whatever its rows are."""
    match node:
        case Select(_, condition):
            return "select", condition
        case Project(_, names):
            return "project", names
        case Rename(_, pairs):
            return "rename", pairs
        case Imbed(_, name, term):
            return "imbed", name, term
