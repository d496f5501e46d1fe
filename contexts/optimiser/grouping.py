"""Equal queries of several contexts become one query of all of them, or read the rows of one (rule R55; CAESAR, Listing
1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.algebra.nodes import Distinct, Imbed, Node, Project, Rename, Select, Union, nodes_of, with_children
from tidegate.algebra.ordered.transitions.definition import CONTEXT
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.program import Query
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, disjunction
from tidegate.algebra.types import STRING
from tidegate.contexts.optimiser.filters import ContextFilter, Models, changes_of, filter_of, with_attributes
from tidegate.contexts.optimiser.push_down import lowered, rewritten_by

#: Operators that look at rows one by one.
_RowWise = Select | Project | Rename | Imbed
#: Rows that are looked up: what they are, the changes, keys and instant, and the instant before which a window began.
_Rows = tuple[Node, Node, tuple[str, ...], str, str | None]


@dataclass(frozen=True, slots=True)
class _InContexts:
    """What a union reads: rows in one of some contexts, and what is made of each of them above."""

    above: tuple[_RowWise, ...]
    filter: ContextFilter
    rows: Node
    changes: Node
    contexts: tuple[str, ...]

    @property
    def asked(self) -> _Rows:
        """The rows, and what is asked of their windows, whatever the contexts are."""
        return self.rows, self.changes, self.filter.keys, self.filter.at, self.filter.since

    def is_like(self, other: _InContexts) -> bool:
        """Whether the other one asks the same of the same rows, in other contexts."""
        own = [_asked(node) for node in self.above]
        return self.asked == other.asked and own == [_asked(node) for node in other.above]

    def in_any(self, contexts: tuple[str, ...]) -> ContextFilter:
        """The filter that lets through what lies in one of these contexts."""
        (join,) = self.filter.joins
        assert isinstance(join.right, Rename)
        keys = {new: old for old, new in join.right.pairs}
        of: list[Term] = [call("eq", Attr(CONTEXT), Lit(context, STRING)) for context in contexts]
        windows = GroupedWindows(
            Select(self.changes, disjunction(of)), tuple(keys[key] for key in join.right_keys), contexts
        )
        pairs = tuple((old, new) for old, new in join.right.pairs if old in windows.schema)
        return replace(self.filter, joins=(replace(join, right=Rename(windows, pairs)),))

    def together(self, contexts: tuple[str, ...]) -> Node:
        """The same in one of these contexts."""
        node: Node = self.in_any(contexts).over(self.rows)
        for above in reversed(self.above):
            node = with_children(above, (node,))
        return node


def grouped(node: Node, models: Models) -> Node | None:
    """A union without duplicates in which equal parts of several contexts are one; None where there are none.

    A row is there once, however many of the contexts hold: so it is where one of them does.
    """
    match node:
        case Distinct(Union(inputs)):
            parts = [(_in_contexts(input_, models), input_) for input_ in inputs]
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


def gathered(queries: Sequence[Query], models: Models) -> Sequence[Query]:
    """The queries in which the same rows, asked for in several contexts, are those in any of these, of which each query
    looks its own context up; the others are those that were given.

    So these rows are found once, by a filter that goes down, where each of the contexts would have rows of its own.
    """
    asking: dict[_Rows, list[_InContexts]] = {}
    for query in sorted(queries, key=lambda query: query.name):
        for node in nodes_of(query.node):
            if (part := _looked_up(node, models)) is not None:
                asking.setdefault(part.asked, []).append(part)
    every = {
        asked: _contexts_of(parts) for asked, parts in asking.items() if len({part.contexts for part in parts}) > 1
    }
    found = {asked: asking[asked][0].in_any(contexts) for asked, contexts in every.items()}
    found = {
        asked: made for asked, made in found.items() if lowered(made, asked[0], models, lambda *_: None) is not None
    }

    def rule(node: Node) -> Node | None:
        part = _looked_up(node, models)
        if part is None or part.asked not in found:
            return None
        rows = found[part.asked].over(part.rows)
        inside = rows if {*part.contexts} == {*every[part.asked]} else part.filter.over(rows)
        return with_attributes(inside, node.schema.names)

    return [rewritten_by(query, rule) for query in queries]


def _looked_up(node: Node, models: Models) -> _InContexts | None:
    """A filter by contexts with nothing above it."""
    return None if filter_of(node, models) is None else _in_contexts(node, models)


def _contexts_of(group: Sequence[_InContexts]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(context for part in group for context in part.contexts))


def _in_contexts(node: Node, models: Models) -> _InContexts | None:
    """A part of a union as rows in contexts that are not the default one; None where it is none, or a term above may
    have no value.
    """
    above: list[_RowWise] = []
    while isinstance(node, Select | Project | Rename | Imbed):
        if (found := filter_of(node, models)) is not None:
            made, rows = found
            is_plain = len(made.joins) == 1 and not made.carried and (made.condition == TRUE or made.since is not None)
            changes = changes_of(made.joins[0], models) if is_plain else None
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
