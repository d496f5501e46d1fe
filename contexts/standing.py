"""The contexts in which a query stands, as `in_context` and `not_in_context` have left it in its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidegate.algebra.dsl.contexts.look_up import ends, holds
from tidegate.algebra.nodes import Imbed, Node, OrderedNode, Project, Rename, Scan, Select, Union, nodes_of
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import CHANGE, CONTEXT
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.row_wise import ordered_operator
from tidegate.algebra.terms import Attr, Call, Lit, Term, call, conjuncts
from tidegate.analysis.facts import ProgramFacts


@dataclass(frozen=True, slots=True)
class Standing:
    """Rows are let through where one of the contexts of a model holds; where none of them does, if `outside`.

    `keys` are the rows' attributes that say in which partition, `at` is the instant that is looked up. `own`: it is
    the instant by which the rows progress, or their only one.
    """

    model: str
    contexts: tuple[str, ...]
    outside: bool
    keys: tuple[str, ...]
    at: str
    own: bool


def standings(facts: ProgramFacts, result: str) -> list[Standing]:
    """What a result and its unnamed parts stand in, those of parts first."""
    reader = _Reader.of_program(facts)
    inner = reader.inner
    waiting = [query.query.node for query in facts.queries if query.query.stream == result]
    seen: set[str] = set()
    found: list[Standing] = []
    for query in waiting:
        for node in nodes_of(query):
            found += reader.of(node)
            if isinstance(node, Scan) and node.stream.name in inner.keys() - seen:
                seen.add(node.stream.name)
                waiting.append(inner[node.stream.name])
    return list(dict.fromkeys(reversed(found)))


def context_of(windows: Transitions, facts: ProgramFacts) -> str | None:
    """The context of which windows between rows are the windows, as `as_windows` makes them; None where others are."""
    return None if windows.dated else _Reader.of_program(facts).context_of(windows)


@dataclass(frozen=True, slots=True)
class _LookUp:
    """A join of rows with the last change of a context, or of several together, and the condition that one holds."""

    join: AsOf
    model: str
    contexts: tuple[str, ...]
    holds: Term


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads single nodes, given the unnamed parts of queries and the default contexts of models, by stream."""

    inner: Mapping[str, Node]
    defaults: Mapping[str, str]

    @classmethod
    def of_program(cls, facts: ProgramFacts) -> _Reader:
        inner = {query.query.stream: query.query.node for query in facts.queries if query.query.inner}
        models = {query.query.stream: ordered_operator(query.query.node) for query in facts.queries}
        return cls(inner, {name: node.default for name, node in models.items() if isinstance(node, Transitions)})

    def context_of(self, windows: Transitions) -> str | None:
        """The context of which the rows that open windows are changes."""
        node = self._seen_through(windows.input)
        node = node.inputs[0] if isinstance(node, Union) else node
        conditions: list[Term] = []
        while isinstance(node := self._seen_through(node), Select | Project | Imbed | Rename):
            conditions += conjuncts(node.condition) if isinstance(node, Select) else ()
            node = node.input
        if not isinstance(node, Scan) or node.stream.name not in self.defaults:
            return None
        for condition in conditions:
            match condition:
                case Call("eq", (Attr(name), Lit(str(context)))) if name == CONTEXT:
                    return context
        return None

    def of(self, node: Node) -> Iterator[Standing]:
        """What a node lets through: a look-up of one context by itself, or a selection above look-ups."""
        match node:
            case AsOf(how="inner"):
                looked_up = self._look_up(node)
                if looked_up is not None:
                    yield self._standing([looked_up], outside=False)
            case Select(below, condition):
                yield from self._selected(self._look_ups(below), conjuncts(condition))

    def _selected(self, look_ups: list[_LookUp], parts: tuple[Term, ...]) -> Iterator[Standing]:
        absent = [one for one in look_ups if call("not", one.holds) in parts]
        if absent:
            yield self._standing(absent, outside=True)
        for one in look_ups:
            if {*conjuncts(one.holds)} <= {*parts}:
                yield self._standing([one], outside=False)
        for part in parts:
            alternatives = _alternatives(part)
            held = [one for other in alternatives for one in look_ups if {*conjuncts(one.holds)} <= {*conjuncts(other)}]
            if len(alternatives) > 1 and len(held) == len(alternatives):
                yield self._standing(held, outside=False)

    def _look_ups(self, node: Node) -> list[_LookUp]:
        """The look-ups that follow each other directly down from a node, in the order in which they are made."""
        found: list[_LookUp] = []
        while True:
            node = self._seen_through(node)
            looked_up = self._look_up(node) if isinstance(node, AsOf) else None
            if looked_up is None:
                return found[::-1]
            found.append(looked_up)
            node = looked_up.join.left

    def _look_up(self, join: AsOf) -> _LookUp | None:
        if not isinstance(join.right, Rename) or not join.strict:
            return None
        found = _changes_of(self._seen_through(join.right.input))
        if found is None or found[0] not in self.defaults:
            return None
        model, contexts = found
        change, is_default = dict(join.right.pairs).get(CHANGE, CHANGE), contexts == (self.defaults[model],)
        if join.ended != (None if is_default else ends(change)):
            return None
        return _LookUp(join, model, contexts, holds(change, join.left_keys, is_default=is_default))

    def _standing(self, look_ups: list[_LookUp], *, outside: bool) -> Standing:
        first = look_ups[0]
        contexts = tuple(dict.fromkeys(context for one in look_ups for context in one.contexts))
        keys, at = first.join.left_keys, first.join.left_time
        return Standing(first.model, contexts, outside, keys, at, self._is_own(first.join.left, at))

    def _is_own(self, rows: Node, at: str) -> bool:
        """Whether rows have no other instant, or progress by this one."""
        if rows.schema.temporal == (at,):
            return True
        while True:
            rows = self._seen_through(rows)
            match rows:
                case Select(below, _) | Project(below, _):
                    rows = below
                case Imbed(below, name, _) if name != at:
                    rows = below
                case Rename(below, pairs):
                    rows, at = below, {new: old for old, new in pairs}.get(at, at)
                case AsOf() if self._look_up(rows) is not None:
                    rows = rows.left
                case OrderedNode():
                    return rows.completed_by == at
                case Scan(stream):
                    return stream.progress == (at,)
                case _:
                    return False

    def _seen_through(self, node: Node) -> Node:
        """The query of an unnamed part in the place of its rows."""
        while isinstance(node, Scan) and node.stream.name in self.inner:
            node = self.inner[node.stream.name]
        return node


def _changes_of(node: Node) -> tuple[str, tuple[str, ...]] | None:
    """The model and the contexts of which these are changes; None where they are of none."""
    match node:
        case Select(Scan(stream), Call("eq", (Attr(name), Lit(str(context))))) if name == CONTEXT:
            return stream.name, (context,)
        case GroupedWindows(Select(Scan(stream), _), _, contexts):
            return stream.name, contexts
    return None


def _alternatives(condition: Term) -> tuple[Term, ...]:
    """The parts of a disjunction, nested ones flattened."""
    match condition:
        case Call("or", args):
            return tuple(part for arg in args for part in _alternatives(arg))
        case _:
            return (condition,)
