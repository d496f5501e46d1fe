"""Partitions that are windows of a context: rows that an operator tells apart by when their window began."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    children,
)
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.over import Over
from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.transitions.definition import BEGAN, CONTEXT, TIME
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import ordered_operator
from tidegate.algebra.terms import Attr, Call, Lit
from tidegate.analysis.ordered.over import goes_by_time

#: Operators that let partitions go that others follow.
_LETTING_GO: Final = (Over, Sequences, CountedSequences)


def window_keys(query: Query, program: ProgramDef) -> tuple[str, ...]:
    """The keys of the ordered operator of an analysed query in which stands when a window of a context began.

    Such a partition has no further row once its window has ended.
    """
    operator = ordered_operator(query.node)
    if operator is None:
        return ()
    beginnings = _Beginnings(_feeding(program))
    keys = [key for reading in operator.readings for key in reading.keys if beginnings.has(reading.input, key)]
    return tuple(dict.fromkeys(keys))


def successive_keys(query: Query, program: ProgramDef) -> tuple[str, ...]:
    """Those of the window keys that only grow from row to row of an operator which lets partitions go (rule R60).

    So of partitions that differ in these keys alone one follows the other: none but the last has further rows.
    """
    operator = ordered_operator(query.node)
    if not isinstance(operator, _LETTING_GO) or rows_go_by_time(query):
        return ()
    (reading,) = operator.readings
    looked_up = _LookedUp(_feeding(program))
    found: list[str] = []
    beginnings = window_keys(query, program)
    # Not by keys that grow themselves: each of several would have to grow whatever the others do.
    others = {*reading.keys}.difference(beginnings)
    for key in beginnings:
        window = looked_up.window(reading.input, key)
        if window is not None and reading.time in window.at and not any(map(others.isdisjoint, window.keys)):
            found.append(key)
    return tuple(found)


def rows_go_by_time(query: Query) -> bool:
    """Whether the ordered operator of a query lets rows go by time alone, whatever partition they are in."""
    operator = ordered_operator(query.node)
    return isinstance(operator, Over) and goes_by_time(operator)


def _feeding(program: ProgramDef) -> Mapping[str, Sequence[Node]]:
    """The queries of each result."""
    feeding: dict[str, list[Node]] = {}
    for query in program.queries:
        feeding.setdefault(query.stream, []).append(query.node)
    return feeding


@dataclass(frozen=True, slots=True)
class _Beginnings:
    """Which attributes are beginnings of windows, given the queries of each result."""

    feeding: Mapping[str, Sequence[Node]]
    known: dict[tuple[Node, str], bool] = field(default_factory=dict)

    def has(self, node: Node, name: str) -> bool:
        place = (node, name)
        if place not in self.known:
            self.known[place] = False  # of a result that is read by itself only what others bring
            self.known[place] = self._has(node, name)
        return self.known[place]

    def _has(self, node: Node, name: str) -> bool:
        match node:
            case Transitions():
                return name == BEGAN
            case Scan(stream):
                return any(self.has(made, name) for made in self.feeding.get(stream.name, ()))
            case Rename(below, pairs):
                return self.has(below, _old(pairs, name))
            case Imbed(below, made, term) if made == name:
                return isinstance(term, Attr) and self.has(below, term.name)
            case Group(keys=keys) | Windows(keys=keys) if name not in keys:
                return False
            case _:
                return any(self.has(child, name) for child in children(node) if name in child.schema)


@dataclass(frozen=True, slots=True)
class _Window:
    """Of each row the window is looked up that holds at an instant, in the partition of a model that keys say.

    Each of these is known by one or several attributes of the row. `of` are the model and its contexts.
    """

    of: tuple[object, ...]
    keys: tuple[frozenset[str], ...]
    at: frozenset[str]

    def renamed(self, pairs: Iterable[tuple[str, str]]) -> _Window:
        new = dict(pairs)
        return replace(
            self,
            keys=tuple(frozenset(new.get(name, name) for name in names) for names in self.keys),
            at=frozenset(new.get(name, name) for name in self.at),
        )

    def with_copy(self, name: str, copy: str) -> _Window:
        """The same with an attribute that has the value of another one."""
        more = frozenset((copy,))
        keys = tuple(names | more if name in names else names for names in self.keys)
        return replace(self, keys=keys, at=self.at | more if name in self.at else self.at)

    def among(self, names: Iterable[str]) -> _Window | None:
        """The same by these attributes alone; None where they do not say it."""
        kept = frozenset(names)
        made = replace(self, keys=tuple(known & kept for known in self.keys), at=self.at & kept)
        return made if made.at and all(made.keys) else None


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """For attributes that are beginnings of windows: which window of a row, given the queries of each result."""

    feeding: Mapping[str, Sequence[Node]]
    known: dict[tuple[Node, str], _Window | None] = field(default_factory=dict)

    def window(self, node: Node, name: str) -> _Window | None:
        """The window of each row whose beginning an attribute has; None where nobody knows."""
        place = (node, name)
        if place not in self.known:
            self.known[place] = None
            self.known[place] = self._window(node, name)
        return self.known[place]

    def _window(self, node: Node, name: str) -> _Window | None:
        match node:
            case Scan(stream):
                made = self.feeding.get(stream.name, ())
                return self.window(made[0], name) if len(made) == 1 else None
            case Rename(below, pairs):
                found = self.window(below, _old(pairs, name))
                return None if found is None else found.renamed(pairs)
            case Project(below, kept) | Group(below, kept, _):
                found = self.window(below, name) if name in kept else None
                return None if found is None else found.among(kept)
            case Imbed(below, made, term) if made == name:
                return self.window(below, term.name) if isinstance(term, Attr) else None
            case Imbed(below, made, term):
                found = self.window(below, name)
                return found.with_copy(term.name, made) if found is not None and isinstance(term, Attr) else found
            case Select(below, _) | Distinct(below) | Difference(below, _):
                return self.window(below, name)
            case Union(inputs):
                every = {self.window(input_, name) for input_ in inputs}
                return every.pop() if len(every) == 1 else None
            case Join(left, right, _, kind):
                if name in left.schema:
                    return self.window(left, name)
                return self.window(right, name) if kind == "inner" else None
            case Product(left, right):
                return self.window(left if name in left.schema else right, name)
            case AsOf(left=left) if name in left.schema:
                return self.window(left, name)
            case AsOf():
                return self._looked_up(node, name)
            case Over(input=below) if name in below.schema:
                return self.window(below, name)
            case _:
                return None

    def _looked_up(self, join: AsOf, name: str) -> _Window | None:
        """The window that a join looks up: the last change before an instant, of one context, or of several together.

        These changes alternate, so their windows follow each other. That needs all keys of the model, since otherwise
        changes of several partitions come one after the other.
        """
        if join.waits or join.within is not None or (join.how != "inner" and join.ended is not None):
            return None
        found = self._changes(join.right)
        if found is None:
            return None
        of, keys, names = found
        by_key = {names[right]: left for left, right in zip(join.left_keys, join.right_keys, strict=True)}
        if names[name] != BEGAN or names[join.right_time] != TIME or by_key.keys() != {*keys}:
            return None
        return _Window(of, tuple(frozenset((by_key[key],)) for key in keys), frozenset((join.left_time,)))

    def _changes(self, node: Node) -> tuple[tuple[object, ...], tuple[str, ...], Mapping[str, str]] | None:
        """Which contexts of which model these are the changes of, its keys, and what attributes are called there."""
        names = {name: name for name in node.schema}
        while True:
            match node:
                case Rename(below, pairs):
                    names = {name: _old(pairs, old) for name, old in names.items()}
                    node = below
                case Scan(stream) if len(made := self.feeding.get(stream.name, ())) == 1:
                    (node,) = made
                case Project(below, _):
                    node = below
                case GroupedWindows(below, keys, contexts):
                    return ("grouped", below, contexts), keys, names
                case Select(below, Call("eq", (Attr(attribute), Lit(context)))) if attribute == CONTEXT:
                    by = self._model_keys(below)
                    return None if by is None else ((below, context), by, names)
                case _:
                    return None

    def _model_keys(self, node: Node) -> tuple[str, ...] | None:
        """The keys of the model whose changes a node has, as they are; None of anything else."""
        while isinstance(node, Scan) and len(made := self.feeding.get(node.stream.name, ())) == 1:
            (node,) = made
        return node.keys if isinstance(node, Transitions) else None


def _old(pairs: Iterable[tuple[str, str]], name: str) -> str:
    return {new: old for old, new in pairs}.get(name, name)
