"""The contents of a plan's buffers, as plain values for a checkpoint: who reads each buffer, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.nodes import Join, Node, Product, children, occurrences
from tidegate.algebra.row_wise import is_static
from tidegate.analysis.inner_queries import inner_names
from tidegate.analysis.zones.wording import shifted
from tidegate.runtime.plan.operator_state import OperatorState, operator_states
from tidegate.runtime.plan.progress import input_streams
from tidegate.runtime.plan.steps import Buffer, Leaf, Plan

#: What is stored of a row that is joined with a static table, by the kind of the join.
_STORED: Final = {
    "inner": "a row for each match",
    "left": "a row for each match, or one",
    "semi": "rows that have a match",
    "anti": "rows that have none",
}
_LATER: Final = "rows once, joined when they are read"

Kinds = Mapping[str, str]
"""The kind of each attribute (timestamp, date, bigint): how its ticks are read."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A query that reads a buffer, and its keep condition (rule R14) in numbers and as text, with what is left of rows
    that are folded.

    `ahead` has an entry per view: for every promised attribute a the columns x with `a <= x + d`. A row may go once in
    every view, for some a, `x + d <= p(a)` for some x.
    """

    query: str
    keep: str
    ahead: tuple[Mapping[str, Mapping[str, int]], ...]


@dataclass(frozen=True, slots=True)
class BufferContents:
    """The contents of a buffer: its stream, its instants, and its readers.

    `tables` says of each static table that a row meets how its matches count. With `key`, rows that no other may repeat
    there, until they are late; no query reads them.
    """

    buffer: str
    stream: str
    holds: str
    instants: Kinds
    readers: tuple[Reader, ...]
    key: tuple[str, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """All buffers of a program, the progressing attributes of its inputs and queries, and what its operators keep.

    `names` has what people read in the place of the names of inner queries.
    """

    buffers: tuple[BufferContents, ...]
    inputs: Mapping[str, Kinds]
    queries: Mapping[str, Kinds]
    operators: tuple[OperatorState, ...]
    names: Mapping[str, str]


def layout(
    plan: Plan, remembered: Iterable[tuple[Buffer, tuple[str, ...]]] = (), beginnings: Iterable[Buffer] = ()
) -> Layout:
    """The layout of a plan's state, of the rows whose keys are remembered, and of beginnings of intervals."""
    buffers = tuple(
        BufferContents(
            buffer.id,
            buffer.stream.name,
            buffer.holds,
            {name: buffer.stored[name].type.kind.value for name in buffer.instants},
            readers(plan, buffer),
            tables=_tables(plan, buffer),
        )
        for buffer in plan.buffers
    )
    return Layout(
        (
            *buffers,
            *(_remembered(buffer, key) for buffer, key in remembered),
            *(_remembered(buffer, ()) for buffer in beginnings),
        ),
        {s.name: {a: s.schema[a].type.kind.value for a in s.progress} for s in input_streams(plan)},
        {q.name: {a: q.facts.output.schema[a].type.kind.value for a in q.facts.propagation} for q in plan.queries},
        operator_states(plan),
        inner_names(plan.facts),
    )


def _tables(plan: Plan, buffer: Buffer) -> dict[str, str]:
    """How a buffer's rows are joined with static tables: before they are stored, or when they are read."""
    stored_as: dict[str, str] = {}

    def visit(node: Node) -> None:
        below = children(node)
        if isinstance(node, Join | Product):
            kind = node.kind if isinstance(node, Join) else "inner"
            stored_as.update(
                (table.name, _STORED[kind]) for child in below if is_static(child) for table in occurrences(child)
            )
        for child in below:
            if not is_static(child):
                visit(child)

    visit(buffer.chain)
    later = dict.fromkeys(name for _, leaf in plan.readers(buffer) for name in leaf.later)
    return {name: stored_as[name] for name in stored_as if name not in later} | dict.fromkeys(later, _LATER)


def _remembered(buffer: Buffer, key: tuple[str, ...]) -> BufferContents:
    instants = {name: buffer.stored[name].type.kind.value for name in buffer.instants}
    return BufferContents(buffer.id, buffer.stream.name, "rows", instants, (), key)


def readers(plan: Plan, buffer: Buffer) -> tuple[Reader, ...]:
    """The readers of a buffer, one entry per reader and keep condition."""
    entries: list[Reader] = []
    for query, leaf in plan.readers(buffer):
        reader = _reader(query.name, buffer, leaf)
        if reader not in entries:
            entries.append(reader)
    return tuple(entries)


def _reader(query: str, buffer: Buffer, leaf: Leaf) -> Reader:
    if buffer.partial is not None:
        types = buffer.schema
        parts = [f"{shifted(column, by, types[column].type)} > p({a})" for a, column, by in leaf.outputs]
        return Reader(query, " and ".join(parts), ({a: {column: by} for a, column, by in leaf.outputs},))
    assert leaf.occurrence is not None
    keep = leaf.occurrence.keep
    kept = leaf.occurrence.kept if buffer.fold is not None else keep.describe()
    return Reader(query, kept, tuple({a: dict(known) for a, known in n.ahead} for n in keep.needed))
