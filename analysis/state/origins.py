"""The origins of an expression's attributes, and which are equal in all rows that matter (for rules R21, R22)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from tidegate.algebra.formulas import Shift, Var, temporal_term
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
)
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Attr, Call, Term, conjuncts


@dataclass(frozen=True, slots=True)
class Origin:
    """An attribute of the row of an occurrence, plus a constant number of ticks."""

    occurrence: int
    attribute: str
    shift: int = 0


#: Of each attribute of an expression what it is a copy of: of several, the one whose occurrence a zone does not ignore.
Origins = Mapping[str, tuple[Origin, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class AntiJoin:
    """An anti-join in a query: the occurrences on either side, and the origins of its attributes."""

    node: Join
    left: range
    right: range
    origins: Origins


@dataclass(slots=True)
class Sources:
    """The origins of a query's attributes.

    A pair of origins in `equalities` is equal, or both NULL, in all rows that together matter to a result row, where
    the zone that they satisfy ignores neither occurrence.
    """

    streams: Sequence[StreamDef]
    equalities: list[tuple[Origin, Origin]] = field(default_factory=list)
    antijoins: list[AntiJoin] = field(default_factory=list)
    _classes: dict[frozenset[int], dict[int, dict[int, list[str]]]] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node, streams: Sequence[StreamDef]) -> Sources:
        """`streams` are the definitions by occurrence."""
        sources = cls(streams)
        _Walk(sources).origins(node)
        return sources

    def keys(self, i: int, j: int, ignored: Collection[int]) -> tuple[tuple[str, str], ...]:
        """Attributes of occurrences i and j that are equal in a zone that ignores neither, one pair per class."""
        flags = frozenset(ignored)
        if flags not in self._classes:
            self._classes[flags] = self._classes_without(flags)
        classes = self._classes[flags]
        first, second = classes.get(i, {}), classes.get(j, {})
        return tuple(sorted({(a, second[k][0]) for k, attributes in first.items() if k in second for a in attributes}))

    def _classes_without(self, ignored: Collection[int]) -> dict[int, dict[int, list[str]]]:
        """Per occurrence, by the number of a class, its attributes in that class, sorted."""
        graph: dict[Origin, list[Origin]] = {}
        for first, second in self.equalities:
            if first.occurrence not in ignored and second.occurrence not in ignored and self._one_type(first, second):
                graph.setdefault(first, []).append(second)
                graph.setdefault(second, []).append(first)
        by_occurrence: dict[int, dict[int, list[str]]] = {}
        seen: set[Origin] = set()
        for number, start in enumerate(graph):
            waiting = [] if start in seen else [start]
            seen.update(waiting)
            while waiting:
                origin = waiting.pop()
                by_occurrence.setdefault(origin.occurrence, {}).setdefault(number, []).append(origin.attribute)
                further = [neighbour for neighbour in graph[origin] if neighbour not in seen]
                seen.update(further)
                waiting += dict.fromkeys(further)
        for classes in by_occurrence.values():
            for attributes in classes.values():
                attributes.sort()
        return by_occurrence

    def _one_type(self, left: Origin, right: Origin) -> bool:
        first, second = self.streams[left.occurrence].schema, self.streams[right.occurrence].schema
        return first[left.attribute].type == second[right.attribute].type


@dataclass(slots=True)
class _Walk:
    sources: Sources
    place: int = 0

    def origins(self, node: Node) -> dict[str, tuple[Origin, ...]]:
        match node:
            case Scan(stream):
                self.place += 1
                return {name: (Origin(self.place - 1, name),) for name in stream.schema}
            case Select(input_, condition):
                known = self.origins(input_)
                self.equate(condition, known)
                return known
            case Project(input_, names) | Group(input_, names, _):
                known = self.origins(input_)
                return {name: known[name] for name in names if name in known}
            case Distinct(input_):
                return self.origins(input_)
            case Rename(input_, pairs):
                new = dict(pairs)
                return {new.get(name, name): of for name, of in self.origins(input_).items()}
            case Imbed(input_, name, term):
                known = self.origins(input_)
                return {**known, name: _defined(term, known, input_)}
            case Product(left, right):
                return self.origins(left) | self.origins(right)
            case Join():
                return self.join(node)
            case Union(inputs):
                merged: dict[str, tuple[Origin, ...]] = {}
                for input_ in inputs:
                    for name, of in self.origins(input_).items():
                        merged[name] = (*merged.get(name, ()), *of)
                return merged
            case Difference(left, right):
                first, second = self.origins(left), self.origins(right)
                for name in first.keys() & second.keys():
                    self.pair(first[name], second[name])
                return first
            case OrderedNode():
                return self.partitioned(node)
            case _:
                assert_never(node)

    def partitioned(self, node: OrderedNode) -> dict[str, tuple[Origin, ...]]:
        """The rows on which a row of an operator rests are of one partition. Its own attributes count as no copies."""
        first, *others = ((reading, self.origins(reading.input)) for reading in node.readings)
        for reading, known in others:
            for key, other in zip(first[0].keys, reading.keys, strict=True):
                self.pair(first[1].get(key, ()), known.get(other, ()))
        return {}

    def join(self, node: Join) -> dict[str, tuple[Origin, ...]]:
        start = self.place
        left = self.origins(node.left)
        middle = self.place
        both = left | self.origins(node.right)
        self.equate(node.condition, both)
        if node.kind == "anti":
            self.sources.antijoins.append(AntiJoin(node, range(start, middle), range(middle, self.place), both))
        # What a left join pads is NULL where the right row's attribute is not: then it is no copy.
        return both if node.kind == "inner" else left

    def equate(self, condition: Term, known: Origins) -> None:
        for part in conjuncts(condition):
            match part:
                case Call("eq" | "eq_null_safe", (Attr(left), Attr(right))):
                    self.pair(known.get(left, ()), known.get(right, ()))

    def pair(self, lefts: Iterable[Origin], rights: Sequence[Origin] | Iterable[Origin]) -> None:
        rights = tuple(rights)
        self.sources.equalities += [
            (left, right)
            for left in lefts
            for right in rights
            if left.occurrence != right.occurrence and left.shift == right.shift == 0
        ]


def _defined(term: Term, known: Origins, input_: Node) -> tuple[Origin, ...]:
    """The origin of a new attribute, perhaps shifted in time."""
    if isinstance(term, Attr):
        return known.get(term.name, ())
    match temporal_term(term, input_.schema):
        case Shift(Var(name), by):
            return tuple(_shifted(known.get(name, ()), by))
        case _:
            return ()


def _shifted(origins: Iterable[Origin], by: int) -> Iterator[Origin]:
    return (Origin(o.occurrence, o.attribute, o.shift + by) for o in origins)
