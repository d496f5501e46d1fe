"""The nodes of a physical plan. Both engines run them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from tidegate.algebra.nodes import Group, Node, OrderedNode
from tidegate.algebra.rewrites.totals import Total
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import BIGINT, DOUBLE, DataType
from tidegate.analysis.facts import OccurrenceFacts, ProgramFacts, QueryFacts, Recursion
from tidegate.analysis.ordered.family import StateBound
from tidegate.analysis.purge import Purge
from tidegate.analysis.state.bounds import Bounded
from tidegate.analysis.state.thresholds import Case, Extents, Thresholds
from tidegate.runtime.plan.aggregate_states import partial_schema
from tidegate.runtime.plan.folding.fold import Fold

T = TypeVar("T")
#: Progress of a query's result, per promised attribute.
Progress = Mapping[str, Extended]
#: Least and greatest instant per stored column of a segment.


@dataclass(frozen=True, slots=True)
class RunEncoding:
    """How a buffer encodes events as runs: by partition and time, with the conditions that are true.

    A stored row is an event run: events of the partition `keys` from the instant `time` to `until` that agree in all
    `conditions`; bit j of `holds` is the j-th. Attributes are those of the chain's rows, `until` and `holds` none of
    them.
    """

    keys: tuple[str, ...]
    time: str
    until: str
    holds: str
    conditions: tuple[Term, ...]

    def schema(self, rows: Schema) -> Schema:
        """The columns of a buffer of event runs of these rows."""
        kept = tuple(rows[name] for name in (*self.keys, self.time))
        return Schema(
            (*kept, Attribute(self.until, BIGINT, nullable=False), Attribute(self.holds, BIGINT, nullable=False))
        )


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer: rows of one stream, stored after the row-wise operators directly above the scan.

    `chain` maps the stream's rows (occurrence `scan`; its other occurrences are static tables) to stored rows, in which
    `instants`, the temporal attributes of the stream, keep their names. With `partial`, not rows are stored but partial
    aggregates of that grouping over the chain's result, and `instants` are the grouping keys that time results. With
    `encoding`, these are stored of the chain's result. With `fold` rows that are settled become one row per class.
    """

    id: str
    stream: StreamDef
    chain: Node
    scan: int
    statics: tuple[tuple[int, str], ...]
    instants: tuple[str, ...]
    partial: Group | None = None
    encoding: RunEncoding | None = None
    fold: Fold | None = None

    @property
    def schema(self) -> Schema:
        """The schema of the chain's rows. With `partial` these are not aggregated yet."""
        return self.chain.schema

    @property
    def stored(self) -> Schema:
        """The columns of the buffer's segments."""
        if self.encoding is not None:
            return self.encoding.schema(self.schema)
        return self.schema if self.partial is None else partial_schema(self.partial)

    @property
    def holds(self) -> str:
        """The kind of rows that the buffer stores, in words."""
        if self.encoding is not None:
            return "event runs"
        if self.fold is not None:
            return "folded rows"
        return "rows" if self.partial is None else "partial aggregates"


def one_of(holds: str) -> str:
    """The singular of the kind of rows that a buffer stores."""
    return holds.removesuffix("s")


@dataclass(frozen=True, slots=True)
class LaterJoin:
    """How stored rows are joined with static tables when an operator reads them.

    The rows are the occurrence `place` of `node`, the tables its others, by their places.
    """

    node: Node
    place: int
    tables: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """An input of a query's tree: a buffer, with the occurrence whose keep and relevance it obeys, or a static table.

    `columns` are the stored columns that the tree reads (of partials and event runs: all); `outputs`, of partials, each
    promised attribute with the grouping key and the constant whose sum it is. `partner` and `kill`: whether these rules
    free rows. `judged`: the operator that reads its rows says which of them it needs (rule R29). `later` names the
    static tables that are joined to its rows when they are read, as a row has several matches there; the tree joins
    them, or `joined` where an operator reads the rows.
    """

    buffer: Buffer | None
    static: str | None
    occurrence: OccurrenceFacts | None
    columns: tuple[str, ...] = ()
    outputs: tuple[tuple[str, str, int], ...] = ()
    partner: bool = False
    kill: bool = False
    judged: bool = False
    later: tuple[str, ...] = ()
    joined: LaterJoin | None = None

    def kept(self, p: Progress) -> Thresholds:
        """The stored rows that may still matter (rule R14). Readers that differ in names alone have the very same."""
        assert self.buffer is not None
        if self.buffer.partial is not None:
            return self._window(self._by_key(p), None)
        assert self.occurrence is not None
        return self.occurrence.keep.at(p)

    def mattering(self, p: Progress, new: Progress) -> Thresholds:
        """The stored rows that matter for the increment from `p` to `new` (rule R15)."""
        assert self.buffer is not None
        if self.buffer.partial is not None:
            return self._window(self._by_key(p), self._by_key(new))
        assert self.occurrence is not None
        return self.occurrence.relevance.at(p, new)

    def keep(self, p: Progress) -> Term:
        """The stored rows that may still matter, as a condition over stored columns."""
        return self.kept(p).condition

    def relevant(self, p: Progress, new: Progress) -> Term:
        """The stored rows that matter for the increment from `p` to `new`."""
        return self.mattering(p, new).condition

    def _window(self, old: list[tuple[str, Extended]], new: list[tuple[str, Extended]] | None) -> Thresholds:
        """Partials beyond `old` by every grouping key and, where `new` is given, within it by at least one."""
        assert self.buffer is not None
        build = partial(pass_window, old, new, self.buffer.schema)
        if INF in (b for _, b in old) or new == []:
            return Thresholds((), build)
        return Thresholds((Case(tuple(old), within=tuple((one,) for one in new or ())),), build)

    def _by_key(self, p: Progress) -> list[tuple[str, Extended]]:
        """Translates progress of the result to progress of the grouping keys of partials."""
        return [(column, _earlier(p[a], shift)) for a, column, shift in self.outputs]

    def segment_may_change(self, bounds: Extents, p: Progress) -> bool:
        """Whether rows of a segment with these bounds may begin or cease to matter as results get beyond `p`."""
        assert self.buffer is not None
        if self.buffer.partial is not None:
            return self.kept(p).segment(bounds)
        assert self.occurrence is not None
        return self.occurrence.relevance.may_change(bounds, p)


@dataclass(frozen=True, slots=True)
class CommonPart:
    """A part of a tree that other trees of the program share. It reads `count` leaves from the leaf `first` on.

    Parts with the same `number` compute the same over the same buffers.
    """

    node: Node
    first: int
    count: int
    number: int


@dataclass(frozen=True, slots=True)
class EncodedReading:
    """How an operator reads event runs: bit `bits[j]` says whether the j-th condition of its readings is true."""

    encoding: RunEncoding
    bits: tuple[int, ...]


#: Where partner and kill rule are used: where they pay, wherever they apply, nowhere.
PurgeMode = Literal["planned", "always", "off"]


@dataclass(frozen=True, slots=True)
class EndedWindows:
    """Where an operator reads which windows have ended (rule R63): rows of a leaf, those whose `change` is `end`.

    `keys` pairs keys of its partitions with columns there: partitions with these keys have all their rows, once the
    operator has read its events up to the end.
    """

    leaf: int
    keys: tuple[tuple[str, str], ...]
    change: str
    end: str


@dataclass(frozen=True, slots=True)
class OrderedStep:
    """An operator that gathers events in order, below the tree of its query.

    Its inputs are stored rows of the leaves that `leaves` names for each. `time` is the attribute of the result that
    holds the instant at which a row is complete: how far the query has come there is how far the operator has read its
    events. `keeps` is what it keeps of them. With `encoded` it reads event runs instead of rows; they are then all of
    the same events. `purging`: where it frees what it keeps sooner than it has to. `judges`: its events may be results,
    of which nobody has looked yet whether its terms have a value. `growing`: keys that only grow from row
    to row of partitions that agree in the others (rule R60); `ended`: what tells that a value of them comes no more.
    """

    node: OrderedNode
    leaves: tuple[int, ...]
    time: str
    keeps: StateBound
    encoded: EncodedReading | None = None
    purging: PurgeMode = "off"
    judges: bool = False
    growing: tuple[str, ...] = ()
    ended: tuple[EndedWindows, ...] = ()

    @property
    def sharded_by(self) -> int | None:
        """The position of the key whose hash shards the partitions, one that ended windows have, too. No double: equal
        doubles may have different hashes.
        """
        reading = self.node.readings[0]
        exact = [place for place, key in enumerate(reading.keys) if reading.input.schema[key].type != DOUBLE]
        told = [place for place in exact if all(reading.keys[place] in dict(ended.keys) for ended in self.ended)]
        return next(iter(told or exact), None)

    @property
    def ordered_leaves(self) -> frozenset[int]:
        """The leaves of whose events ties matter."""
        return frozenset(self.leaves[number] for number in self.node.ordered_inputs)

    @property
    def reads_events(self) -> bool:
        """Whether it reads events, of which it keeps something, or rows alone that are stored for it."""
        return any(reading.time is not None for reading in self.node.readings)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """How one query runs: its tree over leaves, and below it perhaps a grouping of partials.

    `common` are the parts of the tree, inner ones first, that other queries compute too. `shard_key` names for each
    leaf the column by which the increment can be evaluated shard by shard (None: a static table), where there is one.
    With it, `required` are the leaves of which every result row has a row, and every row that is set aside: their keys
    are those of all of these. `purge` are the rules that free rows of some leaves before keep does, None where there
    are none. `groups_once`: each segment of the grouping has a group once, which is not so where the strata of a
    recursion write it. With `ordered`, the tree's one occurrence are the rows of that operator, which reads the leaves.
    `totals` are the sums that the tree puts together from halves.
    """

    facts: QueryFacts
    tree: Node
    leaves: tuple[Leaf, ...]
    grouping: Group | None = None
    groups_once: bool = False
    common: tuple[CommonPart, ...] = ()
    shard_key: tuple[str | None, ...] | None = None
    required: tuple[int, ...] = ()
    purge: Purge | None = None
    ordered: OrderedStep | None = None
    totals: tuple[Total, ...] = ()

    @property
    def name(self) -> str:
        return self.facts.query.name

    @property
    def stream(self) -> str:
        return self.facts.query.stream

    def propagate(self, b: Mapping[tuple[str, str], Extended], p: Progress) -> dict[str, Extended]:
        """p' of every promised attribute, from the progress of the inputs (rule R11)."""
        return self.facts.progress(b, p)

    def may_pass(self, p: Progress, new: Progress) -> bool:
        """Whether an increment is evaluated: it may have rows, or it belongs to an operator, which has to read its
        events.
        """
        return self.ordered is not None or self.facts.may_pass(p, new)

    def is_suspended(self, has_rows: Sequence[bool], *, keeps: bool, ends: bool) -> bool:
        """Whether an increment finds nothing and changes nothing, so that progress is all that it would move.

        `has_rows` says of each leaf whether any of its rows may matter, `keeps` whether the operator keeps any, and
        `ends` whether there will be no more, so that it keeps none from then on.
        """
        if self.ordered is not None:
            node, leaves = self.ordered.node, self.ordered.leaves
            if keeps:
                return not any(has_rows) and not node.wakes and not ends
            return not any(has_rows[leaves[place]] for place in node.needed_inputs)
        if not all(has_rows[leaf] for leaf in self.required):
            return True
        return not any(has_rows) and all(leaf.buffer is not None for leaf in self.leaves)

    def passes(self, p: Progress, new: Progress) -> Term:
        """The pass condition of an increment over the result's attributes (TSA Def. 27)."""
        return self.facts.passes(p, new)


@dataclass(frozen=True, slots=True)
class Plan:
    """A program that is ready to run: its buffers, its queries in evaluation order, and what feeds what."""

    facts: ProgramFacts
    queries: tuple[QueryPlan, ...]
    buffers: tuple[Buffer, ...]
    fingerprint: str
    description: Mapping[str, str] = field(hash=False)
    _known: dict[object, Any] = field(init=False, repr=False, compare=False, default_factory=dict)
    """What every batch asks of the plan, by the question."""

    def levels(self) -> tuple[tuple[QueryPlan, ...], ...]:
        """The queries by level, the length of the longest chain of components below them. Queries of a level do not
        read each other.

        A recursive component is a level of its own.
        """
        return self.once("levels", self._levels)

    def once(self, question: object, answer: Callable[[], T]) -> T:
        """The answer to a question about the plan, computed when it is first asked."""
        if question not in self._known:
            self._known[question] = answer()
        known: T = self._known[question]
        return known

    def _levels(self) -> tuple[tuple[QueryPlan, ...], ...]:
        depth: dict[str, int] = {}
        levels: dict[tuple[int, str], list[QueryPlan]] = {}
        for component in self.facts.components:
            queries = [query for query in self.queries if query.stream in component.streams]
            read = {occurrence.stream.name for query in queries for occurrence in query.facts.occurrences}
            level = 1 + max((depth[name] for name in read.difference(component.streams) if name in depth), default=-1)
            depth.update(dict.fromkeys(component.streams, level))
            levels.setdefault((level, component.streams[0] if component.recursive else ""), []).extend(queries)
        return tuple(tuple(levels[level]) for level in sorted(levels))

    def recursion(self, level: Sequence[QueryPlan]) -> Recursion | None:
        """The recursion of a level that is a recursive component."""
        return self.facts.recursions.get(level[0].stream)

    def feeds(self, stream: str) -> tuple[Buffer, ...]:
        """The buffers that a stream fills."""
        return self.once(
            ("feeds", stream), lambda: tuple(buffer for buffer in self.buffers if buffer.stream.name == stream)
        )

    def readers(self, buffer: Buffer) -> tuple[tuple[QueryPlan, Leaf], ...]:
        """All leaves of queries that read a buffer."""
        return self.once(
            ("readers", buffer.id),
            lambda: tuple(
                (query, leaf)
                for query in self.queries
                for leaf in query.leaves
                if leaf.buffer is not None and leaf.buffer.id == buffer.id
            ),
        )

    def purged(self) -> tuple[tuple[Buffer, ...], ...]:
        """The groups of buffers in which partner and kill rule can free rows. Rows of a group depend on each other."""
        return self.once("purged", self._purged)

    def _purged(self) -> tuple[tuple[Buffer, ...], ...]:
        groups: list[dict[str, Buffer]] = []
        for query in self.queries:
            read = {
                leaf.buffer.id: leaf.buffer
                for leaf in query.leaves
                if leaf.buffer is not None and (query.purge is not None or leaf.judged)
            }
            if not read:
                continue
            touched = [group for group in groups if not group.keys().isdisjoint(read)]
            groups = [group for group in groups if group.keys().isdisjoint(read)]
            groups.append({**read, **{name: buffer for group in touched for name, buffer in group.items()}})
        swept = [group for group in groups if any(self.freed_sooner(buffer) for buffer in group.values())]
        return tuple(tuple(buffer for buffer in self.buffers if buffer.id in group) for group in swept)

    def freed_sooner(self, buffer: Buffer) -> bool:
        """Whether a reader has rules that free rows and no other reader keeps these rows as long by keep alone."""
        longest: dict[bool, Extended] = {True: -INF, False: -INF}
        for _, leaf in self.readers(buffer):
            bound = None if leaf.occurrence is None else leaf.occurrence.bound
            horizon = bound.horizon if isinstance(bound, Bounded) else INF
            ruled = leaf.partner or leaf.kill or leaf.judged
            longest[ruled] = max(longest[ruled], horizon)
        return longest[True] > longest[False]

    def buffer_keep(self, buffer: Buffer, progress: Mapping[str, Progress]) -> Term:
        """The keep condition of a buffer: a row stays while any reader keeps it, each by its own query's progress.

        Many readers that say the same are asked once: each row is held against each part.
        """
        return disjunction([*dict.fromkeys(kept.condition for kept in self._kept(buffer, progress))])

    def buffer_keeps(self, buffer: Buffer, progress: Mapping[str, Progress]) -> Callable[[Extents], bool]:
        """Tells of the bounds of a segment whether any reader may keep a row of it."""
        kept = self._kept(buffer, progress)
        return lambda bounds: any(one.segment(bounds) for one in kept)

    def _kept(self, buffer: Buffer, progress: Mapping[str, Progress]) -> Sequence[Thresholds]:
        """What readers keep. Those of one shape and progress keep the same."""
        return [*dict.fromkeys(leaf.kept(progress[query.name]) for query, leaf in self.readers(buffer))]


def _earlier(b: Extended, by: int) -> Extended:
    """`b - by`. Beyond 64 bits no instant is left on that side."""
    value = b - by
    return value if -(2**63) <= value < 2**63 else math.copysign(INF, value)


def pass_window(
    old: Sequence[tuple[str, Extended]], new: Sequence[tuple[str, Extended]] | None, schema: Schema
) -> Term:
    """The rows beyond `old` on every column and, where `new` is given, within it on at least one."""
    beyond = [_compare("gt", column, value, schema[column].type) for column, value in old]
    within = [] if new is None else [disjunction([_compare("le", c, value, schema[c].type) for c, value in new])]
    return conjunction([*beyond, *within])


def _compare(op: str, column: str, value: Extended, type_: DataType) -> Term:
    from tidegate.algebra.terms import FALSE, TRUE

    if isinstance(value, float):
        holds = value == (-INF if op == "gt" else INF)
        return TRUE if holds else FALSE
    return call(op, Attr(column), Lit(value, type_))
