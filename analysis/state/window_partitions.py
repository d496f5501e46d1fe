"""Partitions that are windows of a context: rows that an operator tells apart by when their window began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    occurrences,
)
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.over import Over
from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, END, START, TIME
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import is_row_wise, ordered_operator
from tidegate.algebra.terms import TRUE, Attr, Call, Lit, Term, call, conjuncts
from tidegate.algebra.types import STRING
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


@dataclass(frozen=True, slots=True, eq=False)
class WindowEnds:
    """The changes that tell when windows end, of which an operator has the beginning as a key (rule R63).

    `changes` are rows of one stream. `keys` pairs keys of the operator with columns there: all keys of the model, and
    the beginning. A row whose `change` is `end` says that none of these keys comes with an instant after its `time`.
    """

    changes: Node
    keys: tuple[tuple[str, str], ...]
    time: str
    change: str
    end: str = END


def successive_keys(query: Query, program: ProgramDef) -> tuple[str, ...]:
    """Those of the window keys that only grow from row to row of an operator which lets partitions go (rule R60).

    So of partitions that differ in these keys alone one follows the other: none but the last has further rows.
    """
    return tuple(key for key, _ in _successive(query, program))


def window_ends(query: Query, program: ProgramDef) -> tuple[WindowEnds, ...]:
    """For the successive keys of an operator what tells that their windows have ended, where a stream does."""
    operator, found = ordered_operator(query.node), list[WindowEnds]()
    for key, window in _successive(query, program):
        assert operator is not None
        (reading,) = operator.readings
        told = window.changes
        is_of_one = len(occurrences(told.node)) == 1 and is_row_wise(told.node)
        if not window.ends or told.change is None or not is_of_one:
            continue
        by = [next(name for name in reading.keys if name in names) for names in window.keys]
        pairs = (*zip(by, told.keys, strict=True), (key, told.began))
        if all(reading.input.schema[own].type == told.node.schema[column].type for own, column in pairs):
            found.append(WindowEnds(told.node, pairs, told.time, told.change))
    return tuple(found)


def _successive(query: Query, program: ProgramDef) -> Iterator[tuple[str, _Window]]:
    """The successive keys of an operator, each with the window whose beginning it has."""
    operator = ordered_operator(query.node)
    if not isinstance(operator, _LETTING_GO) or rows_go_by_time(query):
        return
    (reading,) = operator.readings
    looked_up = _LookedUp(_feeding(program))
    beginnings = window_keys(query, program)
    # Not by keys that grow themselves: each of several would have to grow whatever the others do.
    others = {*reading.keys}.difference(beginnings)
    for key in beginnings:
        window = looked_up.window(reading.input, key)
        if window is not None and reading.time in window.at and not any(map(others.isdisjoint, window.keys)):
            yield key, replace(window, keys=tuple(names & others for names in window.keys))


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
class _Changes:
    """The changes among which windows are looked up, by the columns there; `change` is None where no column has it."""

    node: Node
    keys: tuple[str, ...]
    time: str
    began: str
    change: str | None


@dataclass(frozen=True, slots=True)
class _Window:
    """Of each row the window is looked up that holds at an instant, in the partition of a model that keys say.

    Each of these is known by one or several attributes of the row. `of` are the model and its contexts, `changes` what
    is looked at. `ends`: no row has a window that has ended; else the change that is found, by its attribute `change`,
    tells whether it has.
    """

    of: tuple[object, ...]
    keys: tuple[frozenset[str], ...]
    at: frozenset[str]
    ends: bool
    changes: _Changes = field(compare=False)
    change: str | None = field(compare=False)

    def renamed(self, pairs: Iterable[tuple[str, str]]) -> _Window:
        new = dict(pairs)
        return replace(
            self,
            keys=tuple(frozenset(new.get(name, name) for name in names) for names in self.keys),
            at=frozenset(new.get(name, name) for name in self.at),
            change=None if self.change is None else new.get(self.change, self.change),
        )

    def with_copy(self, name: str, copy: str) -> _Window:
        """The same with an attribute that has the value of another one."""
        more = frozenset((copy,))
        keys = tuple(names | more if name in names else names for names in self.keys)
        return replace(self, keys=keys, at=self.at | more if name in self.at else self.at)

    def among(self, names: Iterable[str]) -> _Window | None:
        """The same by these attributes alone; None where they do not say it."""
        kept = frozenset(names)
        made = replace(
            self,
            keys=tuple(known & kept for known in self.keys),
            at=self.at & kept,
            change=self.change if self.change in kept else None,
        )
        return made if made.at and all(made.keys) else None

    def where(self, condition: Term) -> _Window:
        """The same of rows for which a condition is true."""
        if self.change is None or self.ends:
            return self
        started = call("coalesce", call("eq", Attr(self.change), Lit(START, STRING)), TRUE)
        return replace(self, ends=started in conjuncts(condition))


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
            case Select(below, condition):
                found = self.window(below, name)
                return None if found is None else found.where(condition)
            case Distinct(below) | Difference(below, _):
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
        by_key = {names[right]: (left, right) for left, right in zip(join.left_keys, join.right_keys, strict=True)}
        if names[name] != BEGAN or names[join.right_time] != TIME or by_key.keys() != {*keys}:
            return None
        columns = tuple(by_key[key][1] for key in keys)
        change = next((column for column, old in names.items() if old == CHANGE), None)
        changes = _Changes(join.right, columns, join.right_time, name, change)
        ends = change is not None and join.ended == call("eq", Attr(change), Lit(END, STRING))
        by = tuple(frozenset((by_key[key][0],)) for key in keys)
        return _Window(of, by, frozenset((join.left_time,)), ends, changes, change)

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
