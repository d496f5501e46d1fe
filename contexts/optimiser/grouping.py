"""Equal queries of several contexts become one query of all of them, or read the rows of one (rule R55; CAESAR, Listing
1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.algebra.nodes import Distinct, Imbed, Node, Project, Rename, Select, Union, nodes_of, with_children
from tidegate.algebra.ordered.transitions.definition import CONTEXT
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.program import Query
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, disjunction
from tidegate.algebra.types import STRING
from tidegate.contexts.optimiser.filters import ContextFilter, Models, changes_of, filter_of, with_attributes
from tidegate.contexts.optimiser.push_down import lowered, lowered_to, rewritten_by

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
    They may be a part of what queries look up: the filter of each goes down to that, and no further.
    """
    asking: dict[_Rows, dict[Node, _InContexts]] = {}
    for query in sorted(queries, key=lambda query: query.name):
        for node in nodes_of(query.node):
            for part in _ways_down(node, models):
                asking.setdefault(part.asked, {})[node] = part
    together = _together(asking, models)
    if not together:
        return queries
    taking_part = {node for asked in together for node in asking[asked]}

    def rule(node: Node) -> Node | None:
        found = filter_of(node, models) if node in taking_part else None
        if found is None:
            return None
        gathers = False

        def at(made: ContextFilter, rows: Node) -> Node | None:
            nonlocal gathers
            part = _looked_up(made, rows, models)
            known = None if part is None else together.get(part.asked)
            if part is None or known is None or not {*part.contexts} <= {*known.contexts}:
                return None
            gathers = True
            every = known.filter.over(rows)
            return every if {*part.contexts} == {*known.contexts} else made.over(every)

        put = lowered_to(*found, models, at)
        return with_attributes(put, node.schema.names) if put is not None and gathers else None

    return [rewritten_by(query, rule) for query in queries]


@dataclass(frozen=True, slots=True)
class _Together:
    """The filter that lets through what lies in any of some contexts."""

    filter: ContextFilter
    contexts: tuple[str, ...]


def _together(asking: Mapping[_Rows, Mapping[Node, _InContexts]], models: Models) -> dict[_Rows, _Together]:
    """What is found once of all that filters come by on their ways down: the largest of it that several come by."""
    found: dict[_Rows, _Together] = {}
    taken: set[Node] = set()
    for asked, its in sorted(asking.items(), key=lambda item: -sum(1 for _ in nodes_of(item[0][0]))):
        left = [part for node, part in its.items() if node not in taken]
        if len({part.contexts for part in left}) < 2:
            continue
        contexts = _contexts_of(left)
        made = left[0].in_any(contexts)
        if lowered(made, asked[0], models, lambda *_: None) is not None:
            found[asked] = _Together(made, contexts)
            taken.update(its)
    return found


def _ways_down(node: Node, models: Models) -> list[_InContexts]:
    """A filter by contexts with the rows above which it stands, and with all to which it goes down as a whole."""
    if (found := filter_of(node, models)) is None:
        return []
    ways: list[_InContexts] = []

    def at(made: ContextFilter, rows: Node) -> None:
        if (part := _looked_up(made, rows, models)) is not None:
            ways.append(part)

    lowered_to(*found, models, at)
    return ways


def _looked_up(made: ContextFilter, rows: Node, models: Models) -> _InContexts | None:
    """Rows in contexts that are not the default one, by a filter that carries nothing."""
    is_plain = len(made.joins) == 1 and not made.carried and (made.condition == TRUE or made.since is not None)
    changes = changes_of(made.joins[0], models) if is_plain else None
    return None if changes is None else _InContexts((), made, rows, *changes)


def _contexts_of(group: Sequence[_InContexts]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(context for part in group for context in part.contexts))


def _in_contexts(node: Node, models: Models) -> _InContexts | None:
    """A part of a union as rows in contexts that are not the default one; None where it is none, or a term above may
    have no value.
    """
    above: list[_RowWise] = []
    while isinstance(node, Select | Project | Rename | Imbed):
        if (found := filter_of(node, models)) is not None:
            part = _looked_up(*found, models)
            return None if part is None else replace(part, above=(*above, node))
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
