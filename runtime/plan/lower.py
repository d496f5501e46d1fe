"""Lowering: from an analysed program to its physical plan.

Each maximal row-wise part above a scan (selections, projections, new attributes, joins with static tables) becomes a
buffer and runs once, before a row is stored; what stays above runs in increments. A grouping that stands directly above
one such part stores partial aggregates instead of rows, where all promised attributes are grouping keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum

from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Function,
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
    with_children,
)
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import Attr
from tidegate.analysis.pipeline import ProgramFacts, QueryFacts
from tidegate.runtime.plan.steps import Buffer, Leaf, Plan, QueryPlan

#: Stored copies of instants that a query projects away, but that keep and relevance need, carry this prefix.
INSTANT_PREFIX = "@"

MERGEABLE = frozenset(Function) - {Function.COUNT_DISTINCT}


def lower(facts: ProgramFacts, *, optimise: Callable[[Node], Node] | None = None) -> Plan:
    """The physical plan of a program. `optimise` rewrites trees, keeping meaning, schema and the order of scans."""
    buffers: dict[tuple[object, ...], Buffer] = {}
    plans = tuple(_lower_query(query, buffers, optimise or (lambda node: node)) for query in facts.queries)
    description = _description(facts, plans)
    joined = "\n".join(f"{key}={value}" for key, value in sorted(description.items()))
    return Plan(facts, plans, tuple(buffers.values()), hashlib.sha256(joined.encode()).hexdigest(), description)


def _lower_query(
    facts: QueryFacts, buffers: dict[tuple[object, ...], Buffer], optimise: Callable[[Node], Node]
) -> QueryPlan:
    node = optimise(facts.query.node)
    assert occurrences(node) == occurrences(facts.query.node), "a rewrite changed the order of scans"
    partial = _partial_grouping(node, facts)
    if partial is not None:
        group, above, outputs = partial
        buffer = _buffer(group.input, buffers, group, tuple(dict(outputs).items()))
        occurrence = facts.occurrences[buffer.scan]
        source = _stored("grouped", group.schema)
        return QueryPlan(facts, above(source), (Leaf(buffer, None, occurrence, outputs),), group)
    leaves: list[Leaf] = []
    tree = _cut(node, facts, 0, buffers, leaves)
    return QueryPlan(facts, tree, tuple(leaves))


def _cut(
    node: Node, facts: QueryFacts, first: int, buffers: dict[tuple[object, ...], Buffer], leaves: list[Leaf]
) -> Node:
    """The tree with row-wise parts replaced by scans of buffers; `first` is the occurrence number of its first scan."""
    streams = occurrences(node)
    if all(stream.static for stream in streams):
        leaves.extend(Leaf(None, stream.name, None) for stream in streams)
        return node
    if is_row_wise(node):
        buffer = _buffer(node, buffers, None, ())
        leaves.append(Leaf(buffer, None, facts.occurrences[first + buffer.scan]))
        stored: Node = _stored(buffer.id, buffer.schema)
        return stored if buffer.schema.names == node.schema.names else Project(stored, node.schema.names)
    cut, offset = [], first
    for child in children(node):
        cut.append(_cut(child, facts, offset, buffers, leaves))
        offset += len(occurrences(child))
    return with_children(node, tuple(cut))


def _stored(name: str, schema: Schema) -> Scan:
    return Scan(StreamDef(name, schema, static=True))


def is_row_wise(node: Node) -> bool:
    """Whether the node maps each row of its one stream to result rows by itself, whatever the other rows are."""
    match node:
        case Scan(stream):
            return not stream.static
        case Select() | Project() | Rename() | Imbed():
            return is_row_wise(node.input)
        case Join(left, right, _, kind):
            return (is_row_wise(left) and _is_static(right)) or (
                kind == "inner" and _is_static(left) and is_row_wise(right)
            )
        case Product(left, right):
            return (is_row_wise(left) and _is_static(right)) or (_is_static(left) and is_row_wise(right))
        case Group() | Distinct() | Union() | Difference():
            return False


def _is_static(node: Node) -> bool:
    return all(stream.static for stream in occurrences(node))


def _buffer(
    node: Node, buffers: dict[tuple[object, ...], Buffer], partial: Group | None, outputs: tuple[tuple[str, str], ...]
) -> Buffer:
    streams = occurrences(node)
    scan = next(i for i, stream in enumerate(streams) if not stream.static)
    stream = streams[scan]
    if partial is None:
        kept = _lineage(node)
        lost = tuple(x for x in stream.schema.temporal if x not in kept)
        chain = _carry(node, tuple((x, f"{INSTANT_PREFIX}{x}") for x in lost)) if lost else node
        instants = tuple((x, kept.get(x, f"{INSTANT_PREFIX}{x}")) for x in stream.schema.temporal)
    else:
        chain, instants = node, outputs
    key = (stream.name, chain, partial and (partial.keys, partial.aggregates), instants)
    if key not in buffers:
        number = sum(1 for buffer in buffers.values() if buffer.stream.name == stream.name)
        statics = tuple((i, s.name) for i, s in enumerate(streams) if s.static)
        buffers[key] = Buffer(f"{stream.name}#{number}", stream, chain, scan, statics, instants, partial)
    return buffers[key]


def _lineage(node: Node) -> dict[str, str]:
    """Which result attribute still holds which temporal attribute of the scan."""
    match node:
        case Scan(stream):
            return {} if stream.static else {x: x for x in stream.schema.temporal}
        case Project(input_, names):
            return {x: name for x, name in _lineage(input_).items() if name in names}
        case Rename(input_, pairs):
            return {x: dict(pairs).get(name, name) for x, name in _lineage(input_).items()}
        case _:
            return {x: name for child in children(node) for x, name in _lineage(child).items()}


def _carry(node: Node, copies: tuple[tuple[str, str], ...]) -> Node:
    """The row-wise part with copies of some instants carried through to its result."""
    if isinstance(node, Scan):
        if node.stream.static:
            return node
        made: Node = node
        for x, name in copies:
            made = Imbed(made, name, Attr(x))
        return made
    if isinstance(node, Project):
        return Project(_carry(node.input, copies), (*node.names, *(name for _, name in copies)))
    inputs = tuple(child if _is_static(child) else _carry(child, copies) for child in children(node))
    return with_children(node, inputs)


def _partial_grouping(
    node: Node, facts: QueryFacts
) -> tuple[Group, Callable[[Node], Node], tuple[tuple[str, str], ...]] | None:
    """The grouping to store partials of, what stands above it, and the key that holds each promised attribute."""
    above: list[Node] = []
    current = node
    while isinstance(current, Select | Project | Rename | Imbed):
        above.append(current)
        current = current.input
    if not isinstance(current, Group) or not is_row_wise(current.input):
        return None
    if any(aggregate.function not in MERGEABLE for aggregate in current.aggregates):
        return None
    names = {key: key for key in current.keys}
    for operator in reversed(above):
        if isinstance(operator, Rename):
            names = {key: dict(operator.pairs).get(name, name) for key, name in names.items()}
        elif isinstance(operator, Project):
            names = {key: name for key, name in names.items() if name in operator.names}
    holders = {name: key for key, name in names.items()}
    if any(a not in holders for a in facts.propagation):
        return None

    def rebuild(source: Node) -> Node:
        for operator in reversed(above):
            source = with_children(operator, (source,))
        return source

    return current, rebuild, tuple((a, holders[a]) for a in facts.propagation)


def _description(facts: ProgramFacts, plans: tuple[QueryPlan, ...]) -> dict[str, str]:
    """What a checkpoint belongs to, readable, one entry per stream and query: a changed entry is a changed program."""
    described: dict[str, str] = {}
    for query in facts.queries:
        for stream in occurrences(query.query.node):
            described[f"stream {stream.name}"] = _stream_text(stream)
    for plan in plans:
        described[f"query {plan.name}"] = f"{plan.stream} <- {digest(plan.facts.query.node)}"
        described[f"result {plan.stream}"] = _stream_text(plan.facts.output)
        described[f"layout {plan.name}"] = digest(
            (plan.tree, tuple((leaf.buffer and leaf.buffer.chain, leaf.static) for leaf in plan.leaves))
        )
    return described


def _stream_text(stream: StreamDef) -> str:
    kind = "static" if stream.static else f"progress on {', '.join(stream.progress)}"
    return f"({stream.schema}) {kind} {digest(stream.relations)}"


def digest(value: object) -> str:
    """A short hash of a plan value, the same on every machine: a Merkle hash over dataclass fields."""
    return hashlib.sha256(_canonical(value, {}).encode()).hexdigest()[:16]


def _canonical(value: object, seen: dict[int, str]) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        if id(value) not in seen:
            parts = ",".join(
                f"{f.name}={_canonical(getattr(value, f.name), seen)}" for f in fields(value) if not f.name.startswith("_")
            )
            seen[id(value)] = hashlib.sha256(f"{type(value).__name__}({parts})".encode()).hexdigest()
        return seen[id(value)]
    if isinstance(value, tuple):
        return f"[{','.join(_canonical(part, seen) for part in value)}]"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value)
