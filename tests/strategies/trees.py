"""Random query trees over random relations: every operator, typed attributes, names that need quoting, values that tie.

Values come from small sets, so that keys meet, instants tie, and NULL, NaN and -0.0 occur everywhere. Arithmetic stays
far from overflow: a drawn tree never fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from tidegate.algebra.functions.aggregates import TABLE, Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    JoinKind,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
)
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Call, Lit, Term, Value, call
from tidegate.algebra.types import BIGINT, BOOLEAN, DATE, DOUBLE, DURATION, STRING, TIMESTAMP, DataType, Kind, decimal

PRICE = decimal(6, 2)
TYPES = (TIMESTAMP, BIGINT, DOUBLE, STRING, BOOLEAN, DURATION, DATE, PRICE)
Row = tuple[Value, ...]

#: Values per kind: ties, extremes that stay far from overflow, and what engines are known to treat differently.
VALUES: Mapping[Kind, tuple[Value, ...]] = {
    Kind.TIMESTAMP: (-7, -1, 0, 1, 2, 3, 5, 8),
    Kind.BIGINT: (-3, -1, 0, 1, 2, 3),
    Kind.DOUBLE: (0.0, -0.0, 0.5, -1.5, 2.25, math.nan, math.inf, 1e16, -1e16),
    Kind.STRING: ("", "a", "a\0", "b", "B", "é", "￿", "😀"),
    Kind.BOOLEAN: (False, True),
    Kind.DURATION: (-2, 0, 1, 3),
    Kind.DATE: (-1, 0, 1, 2),
    Kind.DECIMAL: (-100, 0, 25, 100),
}
_NAMES = ("t", "u", "k", "a.b", "A", "a", "x`y", "größe", "select", 'q"uote', "two words")


@dataclass(frozen=True, slots=True)
class Profile:
    """What a test wants of the trees: `types` and their `palette` of values, names that need quoting, size,
    operators.
    """

    types: tuple[DataType, ...] = TYPES
    palette: Mapping[Kind, tuple[Value, ...]] = field(default_factory=lambda: VALUES, hash=False)
    odd_names: bool = True
    streams: int = 3
    depth: int = 4
    joins: tuple[JoinKind, ...] = ("inner", "left", "semi", "anti")
    aggregates: tuple[Function, ...] = tuple(Function)

    def values(self, type_: DataType) -> tuple[Value, ...]:
        return self.palette[type_.kind]


@dataclass(frozen=True, slots=True)
class Case:
    """A tree with complete relations for its streams, by name."""

    node: Node
    relations: Mapping[str, Sequence[Row]] = field(hash=False)


@st.composite
def cases(draw: st.DrawFn, profile: Profile = Profile()) -> Case:
    """Trees with relations: a join of two streams, a grouping of one, or anything.

    A case draws from three types and a few values of each. With all of them at once, 300 cases found 9 of 20 planted
    bugs: rows hardly ever met.
    """
    types = draw(st.lists(st.sampled_from(profile.types), min_size=1, max_size=3, unique=True))
    palette = {
        type_.kind: tuple(draw(st.lists(st.sampled_from(profile.values(type_)), min_size=2, max_size=4)))
        for type_ in (*TYPES, *profile.types)
    }
    narrow = replace(profile, types=tuple(types), palette=palette)
    streams = [draw(stream_defs(f"S{i}", narrow)) for i in range(draw(st.integers(1, profile.streams)))]
    relations = {stream.name: draw(rows(stream.schema, narrow)) for stream in streams}
    made = _Trees(draw, streams, narrow)
    match draw(st.sampled_from(["join", "join", "join", "group", "group", "set", "tree"])):
        case "join":
            node: Node = made.join(made.scan(), made.scan())
        case "group":
            node = made.group(made.scan())
        case "set":
            first = made.scan()
            node = Difference(first, made.like(first, 0)) if made.yes() else Union((first, made.like(first, 0)))
        case _:
            node = made.tree(draw(st.integers(1, profile.depth)))
    return Case(node, relations)


@st.composite
def stream_defs(draw: st.DrawFn, name: str, profile: Profile) -> StreamDef:
    """A stream with an instant `t`, perhaps another, `end`, and one to three more attributes, some of them instants."""
    more = draw(st.lists(st.sampled_from(profile.types), min_size=1, max_size=3))
    names = draw(st.permutations(_NAMES[1:])) if profile.odd_names else [f"c{i}" for i in range(len(more))]
    attributes = [Attribute("t", TIMESTAMP, nullable=False, temporal=True)]
    if draw(st.booleans()):  # an interval has two instants
        attributes.append(Attribute("end", TIMESTAMP, nullable=False, temporal=True))
    for attribute, type_ in zip(names, more, strict=False):
        temporal = type_.can_be_time and draw(st.booleans())
        attributes.append(Attribute(attribute, type_, nullable=not temporal, temporal=temporal))
    return StreamDef(name, Schema(tuple(attributes)), progress=("t",))


@st.composite
def rows(draw: st.DrawFn, schema: Schema, profile: Profile) -> list[Row]:
    """Up to ten rows, duplicates among them, few of them often."""
    columns = [
        st.sampled_from(profile.values(a.type))
        if not a.nullable
        else st.none() | st.sampled_from(profile.values(a.type))
        for a in schema.attributes
    ]
    found = draw(st.lists(st.tuples(*columns), min_size=draw(st.sampled_from((0, 4, 6))), max_size=8))
    return found + (draw(st.lists(st.sampled_from(found), max_size=2)) if found else [])


@st.composite
def trees(draw: st.DrawFn, streams: Sequence[StreamDef], profile: Profile = Profile()) -> Node:
    """Query trees over the given streams."""
    return _Trees(draw, streams, profile).tree(draw(st.integers(0, profile.depth)))


class _Trees:
    """Draws a tree; keeps count of the names it gave."""

    def __init__(self, draw: st.DrawFn, streams: Sequence[StreamDef], profile: Profile) -> None:
        self.draw, self.streams, self.profile = draw, streams, profile
        self.names = 0

    def tree(self, depth: int) -> Node:
        if depth == 0:
            return self.scan()
        operators = ["select", "project", "imbed", "group", "distinct", "product", "union", "difference", "rename"]
        match self.draw(st.sampled_from([*operators, "join", "join", "join", "group", "select"])):
            case "select":
                inner = self.tree(depth - 1)
                return Select(inner, self.condition(inner.schema, 2))
            case "project":
                inner = self.tree(depth - 1)
                return Project(
                    inner, tuple(self.draw(st.lists(st.sampled_from(inner.schema.names), min_size=1, unique=True)))
                )
            case "rename":
                inner = self.tree(depth - 1)
                old = self.draw(st.lists(st.sampled_from(inner.schema.names), min_size=1, unique=True))
                return Rename(inner, tuple((name, self.name()) for name in old))
            case "imbed":
                inner = self.tree(depth - 1)
                type_ = self.draw(st.sampled_from(self.profile.types))
                return Imbed(inner, self.name(), self.term(inner.schema, type_, 2))
            case "group":
                return self.group(self.tree(depth - 1))
            case "distinct":
                return Distinct(self.tree(depth - 1))
            case "product":
                return Product(self.tree(max(0, depth - 2)), self.tree(max(0, depth - 2)))
            case "union":
                first = self.tree(depth - 1)
                others = self.draw(st.integers(0, 2))
                return Union((first, *(self.like(first, depth - 2) for _ in range(others))))
            case "difference":
                first = self.tree(depth - 1)
                return Difference(first, self.like(first, depth - 2))
            case _:
                return self.join(self.tree(depth - 1), self.tree(max(0, depth - 2)))

    def yes(self) -> bool:
        return self.draw(st.booleans())

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def scan(self) -> Node:
        stream = self.draw(st.sampled_from(self.streams))
        self.names += 1
        return Rename(Scan(stream), tuple((name, f"{name}.{self.names}") for name in stream.schema))

    def like(self, first: Node, depth: int) -> Node:
        """A tree with the attributes of another, in any order; or some rows of that other, itself another
        occurrence.
        """
        schema = first.schema
        if self.yes():
            return Select(first, self.condition(schema, 1))
        node = self.tree(max(0, depth))
        pairs: list[tuple[str, str]] = []
        for wanted in schema.attributes:
            fitting = [a.name for a in node.schema.attributes if a.type == wanted.type and a.name not in dict(pairs)]
            if fitting and self.yes():
                pairs.append((self.draw(st.sampled_from(fitting)), wanted.name))
            else:
                made = self.name()
                node = Imbed(node, made, self.term(node.schema, wanted.type, 1))
                pairs.append((made, wanted.name))
        pairs = self.draw(st.permutations(pairs))
        kept = Project(node, tuple(old for old, _ in pairs))
        return Rename(kept, tuple((old, new) for old, new in pairs if old != new))

    def join(self, left: Node, right: Node) -> Node:
        kind = self.draw(st.sampled_from(self.profile.joins))
        return Join(left, right, self.join_condition(left.schema, right.schema), kind)

    def group(self, inner: Node) -> Node:
        keys = tuple(self.draw(st.lists(st.sampled_from(inner.schema.names), max_size=2, unique=True)))
        aggregates = tuple(self.aggregate(inner.schema) for _ in range(self.draw(st.integers(0 if keys else 1, 3))))
        return Group(inner, keys, aggregates)

    def aggregate(self, schema: Schema) -> Aggregate:
        function = self.draw(st.sampled_from(self.profile.aggregates))
        entry = TABLE[function]
        if function is Function.COUNT and self.yes():
            return Aggregate(self.name(), function)
        by = self.term(schema, self.draw(st.sampled_from(self.profile.types)), 1) if entry.ordered else None
        taken = [type_ for type_ in self.profile.types if entry.result(type_) is not None]
        types = taken or [STRING if entry.result(STRING) is not None else BIGINT]
        argument = self.term(schema, self.draw(st.sampled_from(types)), 1)
        return Aggregate(self.name(), function, argument, by, entry.sample)

    def join_condition(self, left: Schema, right: Schema) -> Term:
        """Mostly what joins have: equal keys, ranges of instants, something on one side, sometimes anything."""
        both = Schema((*left.attributes, *right.attributes))
        parts: list[Term] = []
        for _ in range(self.draw(st.integers(1, 3))):
            match self.draw(
                st.sampled_from(["equal", "equal", "range", "overlap", "overlap", "distance", "side", "any"])
            ):
                case "equal":
                    pair = self.pair(left, right, self.profile.types)
                    if pair:
                        parts.append(call(self.draw(st.sampled_from(["eq", "eq", "eq_null_safe"])), *pair))
                case "range":
                    pair = self.pair(left, right, self.profile.types)
                    if pair:
                        parts.append(call(self.draw(st.sampled_from(["lt", "le", "gt", "ge"])), *pair))
                case "overlap":
                    held = [t for t in (TIMESTAMP, *self.profile.types) if t.is_integer_held]
                    for turned in (False, True):
                        pair = self.sides(left, right, held)
                        if pair:
                            op = self.draw(st.sampled_from(["lt", "le"]))
                            parts.append(call(op, *(pair[::-1] if turned else pair)))
                case "distance":
                    pair = self.pair(left, right, (TIMESTAMP,))
                    if pair:
                        limit = Lit(self.draw(st.sampled_from(VALUES[Kind.DURATION])), DURATION)
                        sides: list[Term] = [call("sub", *pair), limit]
                        parts.append(
                            call(
                                self.draw(st.sampled_from(["lt", "le", "gt", "ge"])), *self.draw(st.permutations(sides))
                            )
                        )
                case "side":
                    parts.append(self.condition(self.draw(st.sampled_from([left, right])), 1))
                case _:
                    parts.append(self.condition(both, 2))
        return Call("and", tuple(parts)) if len(parts) > 1 else (parts[0] if parts else self.condition(both, 1))

    def pair(self, left: Schema, right: Schema, types: Sequence[DataType]) -> tuple[Term, Term] | None:
        """Terms of one type over one side each, in either order."""
        found = self.sides(left, right, types)
        return found if found is None or self.yes() else found[::-1]

    def sides(self, left: Schema, right: Schema, types: Sequence[DataType]) -> tuple[Term, Term] | None:
        """Terms of one type, the first over the left side, the second over the right."""
        here, there = ({a.type for a in side.attributes} for side in (left, right))
        common = [type_ for type_ in types if type_ in here & there]
        if not common:
            return None
        type_ = self.draw(st.sampled_from(common))
        one, other = (
            self.draw(st.sampled_from([a.name for a in s.attributes if a.type == type_])) for s in (left, right)
        )
        term: Term = Attr(one)
        if type_ == TIMESTAMP and self.yes():
            term = call("add", term, Lit(self.draw(st.sampled_from(self.profile.values(DURATION))), DURATION))
        return term, Attr(other)

    def condition(self, schema: Schema, depth: int) -> Term:
        return self.term(schema, BOOLEAN, depth)

    def term(self, schema: Schema, type_: DataType, depth: int) -> Term:
        """A term of this type that cannot fail on the values there are."""
        leaves: list[Term] = [Attr(a.name) for a in schema.attributes if a.type == type_]
        if depth == 0 or (leaves and type_ != BOOLEAN and self.yes()):
            if leaves and self.draw(st.sampled_from((True, True, True, True, False))):
                return self.draw(st.sampled_from(leaves))
            return Lit(self.draw(st.sampled_from([*self.profile.values(type_), None])), type_)
        chosen = self.draw(st.sampled_from(["own", "own", "own", "if", "coalesce"]))
        if chosen == "if":
            return call(
                "if",
                self.condition(schema, depth - 1),
                self.term(schema, type_, depth - 1),
                self.term(schema, type_, depth - 1),
            )
        if chosen == "coalesce":
            return call("coalesce", self.term(schema, type_, depth - 1), self.term(schema, type_, depth - 1))
        match type_.kind:
            case Kind.BOOLEAN:
                return self.boolean(schema, depth)
            case Kind.TIMESTAMP:
                moved = self.term(schema, TIMESTAMP, depth - 1)
                if self.yes():
                    return call(
                        self.draw(st.sampled_from(["floor", "ceil"])),
                        moved,
                        Lit(self.draw(st.sampled_from([1, 2, 5])), DURATION),
                    )
                return call("add", moved, Lit(self.draw(st.sampled_from(VALUES[Kind.DURATION])), DURATION))
            case Kind.BIGINT | Kind.DOUBLE | Kind.DURATION:
                op = (
                    self.draw(st.sampled_from(["try_add", "try_sub"]))
                    if type_ != DOUBLE
                    else self.draw(st.sampled_from(["add", "mul"]))
                )
                return call(op, self.term(schema, type_, depth - 1), self.term(schema, type_, depth - 1))
            case _:
                return call(
                    self.draw(st.sampled_from(["least", "greatest"])),
                    *(self.term(schema, type_, depth - 1) for _ in range(2)),
                )

    def boolean(self, schema: Schema, depth: int) -> Term:
        match self.draw(st.sampled_from(["compare", "compare", "compare", "null", "and", "or", "not", "leaf"])):
            case "compare":
                here = [a.type for a in schema.attributes]
                type_ = self.draw(st.sampled_from(here))
                op = self.draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"]))
                return call(op, self.term(schema, type_, depth - 1), self.term(schema, type_, depth - 1))
            case "null":
                name = self.draw(st.sampled_from(schema.names))
                return call(self.draw(st.sampled_from(["is_null", "is_not_null"])), Attr(name))
            case "and" | "or" as op:
                return Call(op, tuple(self.condition(schema, depth - 1) for _ in range(2)))
            case "not":
                return call("not", self.condition(schema, depth - 1))
            case _:
                return self.term(schema, BOOLEAN, 0)
