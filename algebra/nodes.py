"""The whole grammar of queries: relational algebra over temporal streams (TSA Def. 12 to 18 and derived forms).

Rows are bags. Nodes are immutable values; equality is structural, hashes are cached, so shared subtrees stay cheap.
Each reference to a stream is an occurrence of its own, also where a subtree is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, Protocol, assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.formulas import temporal_term
from tidegate.algebra.functions.aggregates import Aggregate, aggregate_type
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Call, Term, Value, conjuncts, unknown_attribute
from tidegate.algebra.time import ONE_TYPE
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BOOLEAN


class CachedNode:
    """Caches what is derived from an immutable node: its hash, its schema, its streams, and whether it is row-wise."""

    __slots__ = ("_hash", "_row_wise", "_schema", "_streams")
    _hash: int
    _row_wise: bool
    _schema: Schema
    _streams: tuple[StreamDef, ...]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            for node in lacking(self, "_hash"):  # type: ignore[arg-type]  # always a node
                value = hash((type(node).__name__, *(getattr(node, f.name) for f in fields(node))))  # type: ignore[arg-type]  # always a dataclass
                object.__setattr__(node, "_hash", value)
            return self._hash

    def __eq__(self, other: object) -> bool:
        # Without recursion: a chain of a hundred joins is hundreds of nodes deep.
        pairs: list[tuple[object, object]] = [(self, other)]
        compared = set[tuple[int, int]]()
        while pairs:
            left, right = pairs.pop()
            if left is right:
                continue
            if isinstance(left, CachedNode):
                if (pair := (id(left), id(right))) in compared:
                    continue
                compared.add(pair)
                if type(left) is not type(right) or hash(left) != hash(right):
                    return False
                names: tuple[str, ...] = left.__match_args__  # type: ignore[attr-defined]  # always a dataclass
                pairs += [(getattr(left, name), getattr(right, name)) for name in names]
            elif isinstance(left, tuple) and isinstance(right, tuple) and left and isinstance(left[0], CachedNode):
                if len(left) != len(right):
                    return False
                pairs += zip(left, right, strict=True)
            elif left != right:
                return False
        return True

    @property
    def schema(self) -> Schema:
        """Attributes of the node's result; checks names and types the first time."""
        try:
            return self._schema
        except AttributeError:
            for node in lacking(self, "_schema"):  # type: ignore[arg-type]  # always a node
                object.__setattr__(node, "_schema", node.infer_schema())
            return self._schema

    def infer_schema(self) -> Schema:
        """The attributes of the node's result; `QueryError` for what it reads and its input lacks."""
        return _schema_of(self)  # type: ignore[arg-type]  # the relational operators below; all others say it themselves


@dataclass(frozen=True, slots=True, eq=False)
class Scan(CachedNode):
    """The rows of a stream, a result stream or a static table."""

    stream: StreamDef


@dataclass(frozen=True, slots=True, eq=False)
class Select(CachedNode):
    """σ: rows for which the condition is true (Def. 12)."""

    input: Node
    condition: Term


@dataclass(frozen=True, slots=True, eq=False)
class Project(CachedNode):
    """π: keeps some attributes, in this order; duplicates stay (Def. 14 on bags)."""

    input: Node
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rename(CachedNode):
    """δ: new names for some attributes, as pairs (old, new)."""

    input: Node
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Imbed(CachedNode):
    """ι: a new attribute defined by a term; a relative timestamp where the term is temporal (Def. 13)."""

    input: Node
    name: str
    term: Term


@dataclass(frozen=True, slots=True, eq=False)
class Group(CachedNode):
    """γ: one row per combination of keys, NULLs together; grouping nothing yields no row (Def. 15)."""

    input: Node
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Distinct(CachedNode):
    """Each row once."""

    input: Node


@dataclass(frozen=True, slots=True, eq=False)
class Product(CachedNode):
    """×: every row of one side with every row of the other (Def. 16)."""

    left: Node
    right: Node


Row = tuple[Value, ...]
#: The value of an aggregate over some rows of a relation.
Aggregation = Callable[[Aggregate, list[Row], Schema], Value]

JoinKind = Literal["inner", "left", "semi", "anti"]


@dataclass(frozen=True, slots=True, eq=False)
class Join(CachedNode):
    """⋈, its left outer form, ⋉ and the anti-join, by a condition over both sides.

    anti: left rows for which the condition is true with no right row; semi: with at least one; left: anti rows are
    padded with NULLs.
    """

    left: Node
    right: Node
    condition: Term
    kind: JoinKind


@dataclass(frozen=True, slots=True, eq=False)
class Union(CachedNode):
    """∪ of bags: rows of all inputs, matched by attribute name (Def. 17)."""

    inputs: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Difference(CachedNode):
    """∖: left rows for which no equal right row exists, NULL equal to NULL (Def. 18)."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Reading:
    """What an ordered operator reads of one of its inputs: these attributes, partition by partition.

    With `time` the rows are events: each is needed once, in order of `time`, ties by `tie`, and what is to be
    remembered of those before is state of the operator. Without, they are stored for as long as the query's keep says
    so, and hold from the first to the second instant of `interval`. `terms` are evaluated for each row; some of them
    may have no value. `conditions`: beside partition and time only which of these are true matters of an event; empty
    where more does.
    """

    input: Node
    keys: tuple[str, ...]
    attributes: frozenset[str]
    time: str | None = None
    tie: str | None = None
    terms: tuple[Term, ...] = ()
    interval: tuple[str, str] | None = None
    conditions: tuple[Term, ...] = ()

    @property
    def events(self) -> tuple[object, ...]:
        """What readings of the same events agree in."""
        return self.input, self.keys, self.time, self.tie


class OrderedNode(CachedNode):
    """An operator that gathers the rows of a partition in order of time. A family of such operators is one subclass, or
    a few.

    `completed_by` is the attribute of the result that holds the instant at which a row is complete: nothing later
    changes it.
    """

    __slots__ = ()

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What it reads, in the order of its inputs."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(reading.input for reading in self.readings)

    @property
    def ordered_inputs(self) -> tuple[int, ...]:
        """The positions of the inputs of whose events ties matter: the order of others changes no result."""
        return tuple(range(len(self.readings)))

    @property
    def needed_inputs(self) -> tuple[int, ...]:
        """The positions of the inputs without whose rows it does nothing: while nothing is kept and none of these has a
        new row, it yields no row and keeps none.
        """
        return tuple(range(len(self.readings)))

    @property
    def wakes(self) -> bool:
        """Whether it may yield a row, or free one, as its inputs progress without new rows."""
        return True

    def over(self, inputs: tuple[Node, ...]) -> OrderedNode:
        """The same operator over other inputs."""
        raise NotImplementedError

    def verified(self) -> OrderedNode:
        """The operator that says, in tests, whether its result depends on chance or on batches; itself where it
        cannot.
        """
        return self

    @property
    def completed_by(self) -> str:
        raise NotImplementedError

    @property
    def produces(self) -> str:
        """What its rows are, as people say it, in the plural."""
        raise NotImplementedError

    @property
    def leaves_open(self) -> bool:
        """Whether rows may not be complete yet after the last event, so that somebody may say where they end."""
        return any(reading.time is not None for reading in self.readings)

    @property
    def rule(self) -> str:
        """The rule by which its rows are complete, with a version, where another version may have other instants of the
        same rows; or nothing. A checkpoint goes on with the version that it began with.
        """
        return ""

    @property
    def stays_open(self) -> str:
        """What may be open after the last event that no instant ends, as people say it, in the plural; or nothing."""
        return ""

    @property
    def goes_on(self) -> bool:
        """Whether it yields rows for as long as its input progresses: they end where that has come to, if nobody says
        where.
        """
        return False

    @property
    def keeps(self) -> str:
        """What it keeps of its events, as people say it."""
        return "state"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes that it gives to attributes of its result, so that they are told apart."""
        return ()

    @property
    def parts(self) -> tuple[OrderedPart, ...]:
        """The definitions that it is made of, one for each input, which are shown by themselves; or none."""
        return ()

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        """Its result over all rows of its inputs, in no particular order: the meaning that every other evaluation is
        tested against.
        """
        raise NotImplementedError

    def text(self, inputs: Sequence[str]) -> str:
        """The operator as people read it, over inputs, or parts, by these names."""
        raise NotImplementedError


class OrderedPart(Protocol):
    """A definition that an ordered operator is made of."""

    def text(self, inputs: Sequence[str]) -> str:
        """The definition as people read it, over inputs by these names."""


Node = Scan | Select | Project | Rename | Imbed | Group | Distinct | Product | Join | Union | Difference | OrderedNode


def children(node: Node) -> tuple[Node, ...]:
    """Inputs of a node, in order."""
    match node:
        case Scan():
            return ()
        case Select() | Project() | Rename() | Imbed() | Group() | Distinct():
            return (node.input,)
        case Product() | Join() | Difference():
            return (node.left, node.right)
        case Union():
            return node.inputs
        case OrderedNode():
            return node.inputs
        case _:
            assert_never(node)


def nodes_of(query: Node) -> tuple[Node, ...]:
    """The nodes of a query, from its root on; a shared one stands there once, equal ones that are not the same each."""
    nodes, waiting = {id(query): query}, [query]
    for node in waiting:
        waiting += (new := {id(child): child for child in children(node) if id(child) not in nodes}).values()
        nodes |= new
    return tuple(waiting)


def lacking(query: Node, cached: str) -> Iterator[Node]:
    """The nodes of a query of which something is not cached yet, inputs first; each is cached before the next is
    asked for.
    """
    # Without recursion: a chain of a hundred joins is hundreds of nodes deep.
    waiting = [query]
    while waiting:
        current = waiting[-1]
        # What is no operator, such as the row intervals that a match reads, asks its input by itself.
        below = children(current) if isinstance(current, Node) and not hasattr(current, cached) else ()  # type: ignore[redundant-expr]  # they are passed as one
        unknown = [child for child in below if not hasattr(child, cached)]
        if unknown:
            waiting += reversed(unknown)
            continue
        waiting.pop()
        if not hasattr(current, cached):
            yield current


def with_children(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operator over other inputs."""
    if all(a is b for a, b in zip(children(node), inputs, strict=True)):
        return node
    match node:
        case Scan():
            return node
        case Select(_, condition):
            return Select(inputs[0], condition)
        case Project(_, names):
            return Project(inputs[0], names)
        case Rename(_, pairs):
            return Rename(inputs[0], pairs)
        case Imbed(_, name, term):
            return Imbed(inputs[0], name, term)
        case Group(_, keys, aggregates):
            return Group(inputs[0], keys, aggregates)
        case Distinct():
            return Distinct(inputs[0])
        case Product():
            return Product(inputs[0], inputs[1])
        case Join(_, _, condition, kind):
            return Join(inputs[0], inputs[1], condition, kind)
        case Union():
            return Union(inputs)
        case Difference():
            return Difference(inputs[0], inputs[1])
        case OrderedNode():
            return node.over(inputs)
        case _:
            assert_never(node)


def unless_equal(old: Node, new: Node) -> Node:
    """The new node, or the old one where they are equal: nothing above it is made again, and compared down to it."""
    return old if old == new else new


def occurrences(node: Node) -> tuple[StreamDef, ...]:
    """The streams of all references in a query, left to right: occurrence i is the i-th (from 0), shared subtrees
    repeated.
    """
    if hasattr(node, "_streams"):
        return node._streams
    for current in lacking(node, "_streams"):
        below = children(current)
        if isinstance(current, Scan):
            streams: tuple[StreamDef, ...] = (current.stream,)
        else:
            streams = below[0]._streams if len(below) == 1 else tuple(s for child in below for s in child._streams)
        object.__setattr__(current, "_streams", streams)
    return node._streams


def _schema_of(node: Node) -> Schema:
    match node:
        case Scan(stream):
            return stream.schema
        case Select(input_, condition):
            check_condition(condition, input_.schema)
            return _without_nulls(input_.schema, condition)
        case Project(input_, names):
            for name in names:
                require_attribute(name, input_.schema)
            return Schema(tuple(input_.schema[name] for name in names))
        case Rename(input_, pairs):
            new = dict(pairs)
            for name in new:
                require_attribute(name, input_.schema)
            return Schema(tuple(a.renamed(new[a.name]) if a.name in new else a for a in input_.schema.attributes))
        case Imbed(input_, name, term):
            if name in input_.schema:
                raise QueryError("TG103", f"attribute {name!r} exists already", hint="choose a new name")
            type_ = term_type(term, input_.schema)
            is_temporal = type_.can_be_time and temporal_term(term, input_.schema) is not None
            return Schema(
                (*input_.schema.attributes, Attribute(name, type_, nullable=not is_temporal, temporal=is_temporal))
            )
        case Group(input_, keys, aggregates):
            for key in keys:
                require_attribute(key, input_.schema)
            computed = tuple(aggregate_attribute(aggregate, input_.schema) for aggregate in aggregates)
            return Schema((*(input_.schema[key] for key in keys), *computed))
        case Distinct(input_):
            return input_.schema
        case Product(left, right):
            return Schema((*left.schema.attributes, *right.schema.attributes))
        case Join(left, right, condition, kind):
            both = Schema((*left.schema.attributes, *right.schema.attributes))
            check_condition(condition, both)
            match kind:
                case "inner":
                    return _without_nulls(both, condition)
                case "left":
                    return Schema((*left.schema.attributes, *(a.as_nullable() for a in right.schema.attributes)))
                case "semi" | "anti":
                    return left.schema
                case _:
                    assert_never(kind)
        case Union(inputs):
            return _union_schema(inputs)
        case Difference(left, right):
            _check_same_attributes(left.schema, right.schema, "difference")
            return left.schema
        case OrderedNode():
            return node.infer_schema()
        case _:
            assert_never(node)


def require_attribute(name: str, schema: Schema) -> None:
    """`QueryError` TG101 for an attribute that a schema does not have."""
    if name not in schema:
        raise unknown_attribute(name, schema)


def check_condition(condition: Term, schema: Schema) -> None:
    """`QueryError` TG102 for a condition that is not boolean."""
    type_ = term_type(condition, schema)
    if type_ != BOOLEAN:
        raise QueryError("TG102", f"a condition must be boolean, this one is {type_}", hint="compare it with something")


def _without_nulls(schema: Schema, condition: Term) -> Schema:
    """After `not null` tests among the conjuncts, those attributes are not NULL, and timestamps among them temporal."""
    known = {
        arg.name
        for part in conjuncts(condition)
        if isinstance(part, Call) and part.op == "is_not_null" and isinstance(arg := part.args[0], Attr)
    }
    if not any(schema[name].nullable for name in known):
        return schema
    return Schema(
        tuple(
            Attribute(a.name, a.type, nullable=False, temporal=a.temporal or a.type.kind.value == "timestamp")
            if a.name in known and a.nullable
            else a
            for a in schema.attributes
        )
    )


def aggregate_attribute(aggregate: Aggregate, schema: Mapping[str, Attribute]) -> Attribute:
    """Attribute of an aggregate. It is never temporal: what groups yield is bound to no hidden time (rule on
    aggregates).
    """
    argument = None if aggregate.argument is None else term_type(aggregate.argument, schema)
    by = None if aggregate.by is None else term_type(aggregate.by, schema)
    return Attribute(aggregate.name, aggregate_type(aggregate, argument, by), nullable=True, temporal=False)


def _check_same_attributes(first: Schema, other: Schema, what: str) -> None:
    if set(first) != set(other):
        missing = sorted(set(first) ^ set(other))
        raise QueryError("TG108", f"{what} needs equal attributes; only on one side: {', '.join(missing)}")
    for name in first:
        if first[name].type != other[name].type:
            raise QueryError(
                "TG108",
                (
                    f"{what} needs equal attributes: {name!r} is {first[name].type} on one side, "
                    f"{other[name].type} on the other"
                ),
                hint=ONE_TYPE if first[name].temporal and other[name].temporal else "cast one side",
            )


def _union_schema(inputs: tuple[Node, ...]) -> Schema:
    if not inputs:
        raise QueryError("TG108", "a union needs at least one input")
    first = inputs[0].schema
    for other in inputs[1:]:
        _check_same_attributes(first, other.schema, "union")
    return Schema(
        tuple(
            Attribute(
                a.name,
                a.type,
                nullable=any(i.schema[a.name].nullable for i in inputs),
                temporal=all(i.schema[a.name].temporal for i in inputs),
            )
            for a in first.attributes
        )
    )
