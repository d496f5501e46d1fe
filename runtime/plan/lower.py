"""Lowering: from an analysed program to its physical plan.

Each maximal row-wise part above a scan (selections, projections, new attributes, joins with static tables) becomes a
buffer and runs once, before a row is stored; what stays above runs in increments. Parts that differ in names and kept
attributes only share a buffer. A grouping that stands directly above
one such part stores partial aggregates instead of rows, where all promised attributes are grouping keys, or such a key
and a constant. An operator that asks of its events only which conditions are true stores event runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, assert_never

from tidegate.algebra.errors import InternalError
from tidegate.algebra.formulas import Shift, Var, temporal_term
from tidegate.algebra.functions.aggregates import TABLE
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
    Reading,
    Rename,
    Scan,
    Select,
    Union,
    children,
    nodes_of,
    occurrences,
    with_children,
)
from tidegate.algebra.printing.plans import node_text
from tidegate.algebra.program import ProgramDef
from tidegate.algebra.rewrites.totals import Total
from tidegate.algebra.row_wise import (
    completion,
    is_row_wise,
    is_static,
    ordered_operator,
)
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import TRUE, Term, attributes_of, disjunction, rename_attributes
from tidegate.algebra.types import DOUBLE
from tidegate.analysis.facts import read_once
from tidegate.analysis.ordered.table import family_of
from tidegate.analysis.pipeline import OccurrenceFacts, ProgramFacts, QueryFacts
from tidegate.analysis.purge import Purge, purge
from tidegate.analysis.state.bounds import Bounded
from tidegate.analysis.state.keep import kept_of
from tidegate.analysis.state.window_partitions import successive_keys, window_ends
from tidegate.runtime.plan.folding.fold import Fold
from tidegate.runtime.plan.folding.weights import weighed
from tidegate.runtime.plan.sharding import required_leaves, shard_key
from tidegate.runtime.plan.shared_parts import find_common
from tidegate.runtime.plan.steps import (
    Buffer,
    CommonPart,
    EncodedReading,
    EndedWindows,
    LaterJoin,
    Leaf,
    OrderedStep,
    Plan,
    PurgeMode,
    QueryPlan,
    RunEncoding,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MERGEABLE = frozenset(function for function, entry in TABLE.items() if entry.merges)
#: Most conditions of an event run: the bits of the integer that says which are true.
MOST_CONDITIONS = 60


def lower(
    facts: ProgramFacts,
    *,
    optimise: Callable[[Sequence[Node]], Sequence[Node]] = tuple,
    purging: PurgeMode = "planned",
    multiplies: Callable[[Join | Product], bool] = lambda _: False,
) -> Plan:
    """Lowers a program to its physical plan. `optimise` rewrites its trees, keeping meaning, schema and the order of
    scans.

    `multiplies`: whether a row of a stream has several matches in the static side of a join, so that it is stored
    before.
    """
    layout = _Layout(multiplies, facts.streams, facts.program)
    trees = optimise([query.query.node for query in facts.queries])
    drafts = [_draft(query, node, layout) for query, node in zip(facts.queries, trees, strict=True)]
    buffers = layout.buffers()
    finished = [(draft.tree, tuple(leaf.finished(buffers) for leaf in draft.leaves)) for draft in drafts]
    plans = tuple(
        _purged(_plan(draft, tree, leaves, common, facts.recursions), facts, purging)
        for draft, (tree, leaves), common in zip(drafts, finished, find_common(finished), strict=True)
    )
    description = _description(facts, plans)
    joined = "\n".join(f"{key}={value}" for key, value in sorted(description.items()))
    fingerprint = hashlib.sha256(joined.encode()).hexdigest()
    return Plan(facts, plans, tuple(buffers.values()), fingerprint, description)


def _plan(
    draft: _QueryDraft,
    tree: Node,
    leaves: tuple[Leaf, ...],
    common: tuple[CommonPart, ...],
    recursions: Container[str],
) -> QueryPlan:
    if draft.ordered is not None:
        return QueryPlan(draft.facts, tree, leaves, shard_key=draft.keys, ordered=draft.operator(leaves))
    # The strata of a recursion need the least rank of all rows at each step: no shard knows it.
    key = None if draft.facts.query.stream in recursions else shard_key(tree, leaves, draft.grouping)
    streams = sum(leaf.buffer is not None for leaf in leaves)
    required = required_leaves(tree, leaves) if key is not None and streams > 1 else ()
    of_strata = any(leaf.buffer is not None and leaf.buffer.stream.name in recursions for leaf in leaves)
    return QueryPlan(
        draft.facts,
        tree,
        leaves,
        draft.grouping,
        groups_once=not of_strata,
        common=common,
        shard_key=key,
        required=required,
        totals=(*draft.totals, *_totals_in(tree)),
    )


def _purged(query: QueryPlan, facts: ProgramFacts, mode: PurgeMode) -> QueryPlan:
    """The query with the rules that free its rows sooner; recursive components keep by keep alone (rule R23)."""
    if mode == "off" or query.grouping is not None or query.stream in facts.recursions:
        return query
    if query.ordered is not None:
        operator = query.ordered.node
        query = _judged(replace(query, ordered=replace(query.ordered, purging=mode)), always=mode == "always")
        if not family_of(operator).joins_rows(operator):
            return query
    rules = purge(query.facts)
    if rules is None:
        return query
    leaves = tuple(_freed(leaf, rules, always=mode == "always") for leaf in query.leaves)
    used = any(leaf.partner or leaf.kill for leaf in leaves)
    return replace(query, leaves=leaves, purge=rules) if used else query


def _judged(query: QueryPlan, *, always: bool) -> QueryPlan:
    """The query with the leaves of whose rows its operator says which it needs, as all of its inputs there do."""
    ordered = query.ordered
    assert ordered is not None
    freed = family_of(ordered.node).freed_inputs(ordered.node, always=always)
    kept = {leaf for place, leaf in enumerate(ordered.leaves) if place not in freed}
    judged = {ordered.leaves[place] for place in freed} - kept
    leaves = tuple(
        replace(leaf, judged=n in judged and leaf.buffer is not None and leaf.buffer.holds == "rows" and not leaf.later)
        for n, leaf in enumerate(query.leaves)
    )
    return replace(query, leaves=leaves)


def _freed(leaf: Leaf, rules: Purge, *, always: bool) -> Leaf:
    if leaf.occurrence is None:
        return leaf
    i = leaf.occurrence.index
    return replace(
        leaf,
        partner=bool(rules.partners_of(i)) and (always or rules.partner_pays(i)),
        kill=bool(rules.kills_of(i)) and (always or rules.kill_pays(i)),
    )


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Partition and time of events stored as runs, as attributes of a row-wise part."""

    keys: tuple[str, ...]
    time: str

    def encoding(self, rows: Schema, conditions: Iterable[Term]) -> RunEncoding:
        """The encoding by these conditions, whose order does not depend on that of queries."""
        until = _free("until", rows)
        return RunEncoding(
            self.keys, self.time, until, _free("holds", rows, (until,)), tuple(sorted(conditions, key=digest))
        )


#: What makes two row-wise parts share a buffer: the part without renames and projections, and its partial grouping, or
#: partition and time of its event runs, or what tells its fold from others.
_Key = tuple[Node, Group | Partitioning | Fold | None]


@dataclass(slots=True)
class _Layout:
    """The buffers under construction: for each row-wise part the columns that all its readers need."""

    multiplies: Callable[[Join | Product], bool]
    results: Collection[str]
    program: ProgramDef
    columns: dict[_Key, dict[str, None]] = field(default_factory=dict)
    keys: dict[_Key, tuple[str, ...]] = field(default_factory=dict)
    conditions: dict[_Key, dict[Term, None]] = field(default_factory=dict)
    folds: dict[_Key, Fold] = field(default_factory=dict)
    """Of rows that fold how they do, for all that read them."""
    kept: dict[_Key, list[Term]] = field(default_factory=dict)
    """Of partial aggregates, per reader which rows of the stream it keeps: groups do not show it."""

    def want(self, key: _Key, columns: Iterable[str], instants: tuple[str, ...]) -> None:
        self.columns.setdefault(key, {}).update(dict.fromkeys((*columns, *instants)))
        self.keys[key] = tuple(dict.fromkeys((*self.keys.get(key, ()), *instants)))

    def folded(self, part: Node, fold: Fold) -> _Key:
        """What the rows of a part are stored as that are to be folded, and read so by one leaf more."""
        key = part, fold.apart
        self.folds[key] = self.folds[key].beside(fold) if key in self.folds else fold
        return key

    def buffers(self) -> dict[_Key, Buffer]:
        """The buffers, numbered per stream by their contents, so that state does not depend on the order of queries."""
        buffers: dict[_Key, Buffer] = {}
        for key in sorted(self.columns, key=lambda key: (key[1] is not None, digest(key))):
            (part, kind), wanted, keys = key, self.columns[key], self.keys[key]
            partial = kind if isinstance(kind, Group) else None
            fold = self.folds.get(key)
            streams = occurrences(part)
            scan = next(i for i, stream in enumerate(streams) if not stream.static)
            stream = streams[scan]
            number = sum(1 for buffer in buffers.values() if buffer.stream.name == stream.name)
            chain = (
                _kept(part, scan, disjunction(self.kept[key])) if partial is not None else _chain(part, wanted, fold)
            )
            statics = tuple((i, s.name) for i, s in enumerate(streams) if s.static)
            instants = tuple(name for name in (part if partial is None else partial).schema if name in keys)
            encoding = kind.encoding(part.schema, self.conditions[key]) if isinstance(kind, Partitioning) else None
            buffers[key] = Buffer(
                f"{stream.name}#{number}", stream, chain, scan, statics, instants, partial, encoding, fold
            )
        return {key: buffers[key] for key in self.columns}  # shown in the order of their first use


@dataclass(frozen=True, slots=True)
class _LeafDraft:
    """An input of a query before the columns of its buffer are known."""

    key: _Key | None
    static: str | None
    occurrence: OccurrenceFacts | None
    columns: tuple[str, ...] = ()
    outputs: tuple[tuple[str, str, int], ...] = ()
    later: tuple[str, ...] = ()
    joined: LaterJoin | None = None

    def finished(self, buffers: Mapping[_Key, Buffer]) -> Leaf:
        buffer = None if self.key is None else buffers[self.key]
        occurrence = self.occurrence
        if occurrence is not None and isinstance(occurrence.bound, Bounded) and self.later:
            before = tuple(table for table in occurrence.bound.tables if table not in self.later)
            occurrence = replace(occurrence, bound=replace(occurrence.bound, tables=before))
        return Leaf(buffer, self.static, occurrence, self.columns, self.outputs, later=self.later, joined=self.joined)


@dataclass(frozen=True, slots=True)
class _QueryDraft:
    facts: QueryFacts
    tree: Node
    leaves: tuple[_LeafDraft, ...]
    grouping: Group | None = None
    ordered: OrderedStep | None = None
    conditions: tuple[Term, ...] = ()
    """The conditions that its readings ask for, where the operator reads event runs."""
    keys: tuple[str, ...] | None = None
    """Of an operator: for each leaf the column by which its partitions can be shared out."""
    totals: tuple[Total, ...] = ()

    def operator(self, leaves: tuple[Leaf, ...]) -> OrderedStep | None:
        """The operator at the root, over the finished leaves."""
        if self.ordered is None or not self.conditions:
            return self.ordered
        buffer = leaves[0].buffer
        assert buffer is not None
        assert buffer.encoding is not None
        bits = tuple(buffer.encoding.conditions.index(condition) for condition in self.conditions)
        return replace(self.ordered, encoded=EncodedReading(buffer.encoding, bits))


def _draft(facts: QueryFacts, node: Node, layout: _Layout) -> _QueryDraft:
    if occurrences(node) != occurrences(facts.query.node):
        raise InternalError("TG490", f"rewriting {facts.query.name} changed the order of its scans")
    partial = _partial_grouping(node, facts)
    if partial is not None:
        group, above, outputs = partial
        scan = next(i for i, stream in enumerate(occurrences(group.input)) if not stream.static)
        key = (group.input, group)
        layout.want(key, (), tuple(dict.fromkeys(column for _, column, _ in outputs)))
        layout.kept.setdefault(key, []).append(kept_of(facts.occurrences[scan].keep, group.input, scan))
        leaf = _LeafDraft(key, None, facts.occurrences[scan], (), outputs)
        return _QueryDraft(facts, above(_stored("grouped", group.schema)), (leaf,), group)
    operator = ordered_operator(node)
    if operator is not None:
        return _ordered(facts, node, operator, layout)
    leaves: list[_LeafDraft] = []
    tree = _cut(node, facts, 0, layout.multiplies, leaves)
    return _read_folded(facts, tree, leaves, layout)


def _totals_in(tree: Node) -> Iterator[Total]:
    """The sums that groups of parts are finished to (rule R47)."""
    for node in nodes_of(tree):
        if isinstance(node, Imbed) and (total := Total.of(node.term)) is not None:
            yield total


def _read_folded(facts: QueryFacts, tree: Node, leaves: list[_LeafDraft], layout: _Layout) -> _QueryDraft:
    """The query over buffers, those among them that fold with what it needs of rows that stand for several."""
    occurring = [leaf.occurrence for leaf in leaves]
    foldings = {i: use.folding for i, use in enumerate(occurring) if use is not None and use.folds and use.folding}
    taken = [name for leaf in leaves if leaf.key is not None for name in leaf.key[0].schema]
    over = weighed(tree, foldings, facts.query.name, taken)
    folds = over.folds
    for i, (leaf, occurrence) in enumerate(zip(leaves, occurring, strict=True)):
        if leaf.key is None or occurrence is None:
            continue
        key, columns = leaf.key, leaf.columns
        if i in folds:
            key = layout.folded(leaf.key[0], folds[i])
            columns += tuple(name for term in folds[i].keys for name in sorted(attributes_of(term)))
            read = (*leaf.columns, *(name for name, _ in folds[i].added))
            leaves[i] = replace(leaf, key=key, columns=read)
        layout.want(key, columns, occurrence.stream.schema.temporal)
    return _QueryDraft(facts, over.tree, tuple(leaves), totals=over.totals)


#: What several inputs of an operator read together: a row-wise part, and the place of the one that alone reads its
#: rows.
_Part = tuple[Node, int | None]


def _ordered(facts: QueryFacts, node: Node, operator: OrderedNode, layout: _Layout) -> _QueryDraft:
    """The operator over stored rows. Inputs that read the same events share a leaf; each input of intervals has its
    own.

    Events are needed once. Which intervals are needed depends on their place in the operator. Events with several
    matches in a static table are joined with it when they are read.
    """
    parts: dict[_Part, dict[str, None]] = {}
    bare: list[tuple[Reading, _Part, dict[str, str]]] = []
    scans: dict[_Part, int] = {}
    later: dict[Node, dict[str, str]] = {}
    first = 0
    for number, reading in enumerate(operator.readings):
        streams = occurrences(reading.input)
        part, names = _bare(reading.input)
        if _is_joined_later(reading, layout):
            later[reading.input] = names
            part, names = reading.input, {name: name for name in reading.input.schema}
        key = part, number if reading.time is None else None
        alike = [peer.attributes for peer in operator.readings if peer.events == reading.events]
        read = {outer: name for outer, name in names.items() if outer in frozenset().union(*alike)}
        parts.setdefault(key, {}).update(dict.fromkeys(read.values()))
        scans.setdefault(key, first + next(i for i, stream in enumerate(streams) if not stream.static))
        bare.append((reading, key, read))
        first += len(streams)
    order = list(parts)
    leaves, conditions = _encoded_leaf(facts, bare, scans, layout)
    if not conditions:
        for key, columns in parts.items():
            part, scan = key[0], scans[key]
            if part in later:
                leaves.append(_later_leaf(facts, part, tuple(columns), scan, layout))
                stored_columns = leaves[-1].columns
                later[part] = {outer: name for outer, name in later[part].items() if name in stored_columns}
                continue
            layout.want((part, None), columns, occurrences(node)[scan].schema.temporal)
            leaves.append(_LeafDraft((part, None), None, facts.occurrences[scan], tuple(columns)))
    stored_operator = operator.over(
        tuple(_read(key[0], order.index(key), tuple(parts[key]), read) for _, key, read in bare)
    )
    time = completion(node)
    assert time is not None
    of_leaves = tuple(order.index(key) for _, key, _ in bare)
    judges = any(stream.name in layout.results for stream in occurrences(operator))
    told, ended = _ended_windows(facts, time, len(leaves), layout)
    leaves += told
    plan = OrderedStep(
        stored_operator,
        of_leaves,
        time,
        family_of(operator).state(operator),
        judges=judges,
        growing=successive_keys(facts.query, layout.program),
        ended=ended,
    )
    keys = None
    if (by := plan.sharded_by) is not None:
        columns_of = [
            {
                later.get(key[0], names).get(event_reading.keys[by], "")
                for event_reading, key, names in bare
                if key == leaf
            }
            for leaf in order
        ]
        columns_of += [{dict(of.keys)[operator.readings[0].keys[by]]} for of in ended]
        # Rows that are read by two keys are in the shards of both: none can be evaluated by itself. Nor can those be
        # shared out that get their key from a table when they are read.
        keys = (
            tuple(min(key_columns) for key_columns in columns_of)
            if all(len(key_columns) == 1 and "" not in key_columns for key_columns in columns_of)
            else None
        )
    return _QueryDraft(facts, _above(node, operator), tuple(leaves), ordered=plan, conditions=conditions, keys=keys)


def _ended_windows(
    facts: QueryFacts, time: str, first: int, layout: _Layout
) -> tuple[list[_LeafDraft], tuple[EndedWindows, ...]]:
    """The leaves, from the number `first` on, in which an operator reads that windows have ended, and how.

    All of them have a key in common by which rows can be shared out; ends without one are not read.
    """
    leaves: list[_LeafDraft] = []
    ended: list[EndedWindows] = []
    common: frozenset[str] | None = None
    for of in window_ends(facts.query, layout.program):
        exact = frozenset(key for key, column in of.keys if of.changes.schema[column].type != DOUBLE)
        both = exact if common is None else common & exact
        if not both:
            continue
        common = both
        part, names = _bare(of.changes)
        keys = tuple((key, names[column]) for key, column in of.keys)
        columns = tuple(dict.fromkeys((*(column for _, column in keys), names[of.change])))
        occurrence = read_once(of.changes, of.time, facts, time)
        layout.want((part, None), columns, occurrence.stream.schema.temporal)
        ended.append(EndedWindows(first + len(leaves), keys, names[of.change], of.end))
        leaves.append(_LeafDraft((part, None), None, occurrence, columns))
    return leaves, tuple(ended)


def _is_joined_later(reading: Reading, layout: _Layout) -> bool:
    """Whether the events of a stream are stored once, and joined with a table of several matches when they are read.

    Not those of which only conditions matter: they are stored as event runs. Nor those of results, whose terms are
    judged as they are stored.
    """
    if reading.time is None or reading.conditions or not _multiplied(reading.input, layout.multiplies):
        return False
    return not any(stream.name in layout.results for stream in occurrences(reading.input))


def _later_leaf(facts: QueryFacts, part: Node, columns: tuple[str, ...], scan: int, layout: _Layout) -> _LeafDraft:
    """The leaf of a part whose rows are joined when they are read, into these columns; `scan` is its stream's
    occurrence.
    """
    cut: list[_LeafDraft] = []
    inside = next(i for i, stream in enumerate(occurrences(part)) if not stream.static)
    tree = _cut(Project(part, columns), facts, scan - inside, layout.multiplies, cut)
    place, stored = next((i, leaf) for i, leaf in enumerate(cut) if leaf.key is not None)
    assert stored.key is not None
    layout.want(stored.key, stored.columns, facts.occurrences[scan].stream.schema.temporal)
    tables = tuple((i, leaf.static) for i, leaf in enumerate(cut) if leaf.static is not None)
    return replace(stored, joined=LaterJoin(tree, place, tables))


def _encoded_leaf(
    facts: QueryFacts,
    bare: Sequence[tuple[Reading, _Part, dict[str, str]]],
    scans: Mapping[_Part, int],
    layout: _Layout,
) -> tuple[list[_LeafDraft], tuple[Term, ...]]:
    """The leaf of event runs and their conditions, where only the conditions of one kind of events matter."""
    partitioned: set[tuple[Node, Partitioning]] = set()
    conditions: list[Term] = []
    for reading, (part, _), names in bare:
        if reading.time is None or not reading.conditions:
            return [], ()
        partitioned.add((part, Partitioning(tuple(names[key] for key in reading.keys), names[reading.time])))
        conditions += [rename_attributes(condition, names) for condition in reading.conditions]
    (part, partitioning), *others = partitioned
    occurrence = facts.occurrences[scans[part, None]]
    if others or occurrence.stream.schema.temporal != (partitioning.time,):
        return [], ()
    key = part, partitioning
    if len({*layout.conditions.get(key, ()), *conditions}) > MOST_CONDITIONS:
        return [], ()
    layout.conditions.setdefault(key, {}).update(dict.fromkeys(conditions))
    layout.want(key, {name: None for _, _, names in bare for name in names.values()}, (partitioning.time,))
    return [_LeafDraft(key, None, occurrence)], tuple(conditions)


def _read(part: Node, leaf: int, columns: tuple[str, ...], names: Mapping[str, str]) -> Node:
    """The stored rows of a leaf under the names of a query. Rows of different leaves are never equal."""
    stored = _stored(f"rows {leaf}", Schema(tuple(part.schema[name] for name in columns)))
    pairs = tuple((name, outer) for outer, name in names.items() if outer != name)
    return Rename(stored, pairs) if pairs else stored


def _above(node: Node, operator: OrderedNode) -> Node:
    """The row-wise operators above an ordered operator, over its rows."""
    if node is operator:
        return _stored("operator", operator.schema)
    return with_children(node, (_above(children(node)[0], operator),))


def _cut(
    node: Node,
    facts: QueryFacts,
    first: int,
    multiplies: Callable[[Join | Product], bool],
    leaves: list[_LeafDraft],
    later: tuple[str, ...] = (),
) -> Node:
    """Replaces row-wise parts of a tree by scans of buffers; `first` is the occurrence number of the first scan.

    A row-wise part ends below a join with a static table that has several matches for a row. Of an inner one only the
    rows that have any are stored. `later` are the tables of such joins above.
    """
    streams = occurrences(node)
    if all(stream.static for stream in streams):
        leaves.extend(_LeafDraft(None, stream.name, None) for stream in streams)
        return node
    row_wise = is_row_wise(node)
    if row_wise and not _multiplied(node, multiplies):
        part, names = _bare(node)
        scan = next(i for i, stream in enumerate(streams) if not stream.static)
        columns = tuple(dict.fromkeys(names.values()))
        leaves.append(_LeafDraft((part, None), None, facts.occurrences[first + scan], columns, later=later))
        stored = _stored(f"{streams[scan].name} rows", Schema(tuple(part.schema[name] for name in columns)))
        pairs = tuple((name, outer) for outer, name in names.items() if outer != name)
        return Rename(stored, pairs) if pairs else stored
    below = children(node)
    if row_wise and isinstance(node, Join | Product):
        later += tuple(table.name for child in below if is_static(child) for table in occurrences(child))
    cut, offset = [], first
    for child in below:
        kept_child: Node = child
        if row_wise and isinstance(node, Join) and node.kind == "inner" and not is_static(child):
            table = below[1] if child is below[0] else below[0]
            if not _multiplied(child, multiplies):
                kept_child = Join(child, table, node.condition, "semi")
        cut.append(_cut(kept_child, facts, offset, multiplies, leaves, later if row_wise else ()))
        offset += len(occurrences(child))
    return with_children(node, tuple(cut))


def _multiplied(node: Node, multiplies: Callable[[Join | Product], bool]) -> bool:
    """Whether a row-wise part can make several rows of one, by a join with a static table."""
    match node:
        case Select() | Project() | Rename() | Imbed():
            return _multiplied(node.input, multiplies)
        case Join(left, _, _, "semi" | "anti"):
            return _multiplied(left, multiplies)
        case Join(left, right) | Product(left, right):
            return multiplies(node) or _multiplied(right if is_static(left) else left, multiplies)
        case _:
            return False


def _bare(node: Node) -> tuple[Node, dict[str, str]]:
    """A row-wise part without its renames and projections, and the attribute in it for each attribute of `node`.

    Parts that differ only in names or in the attributes they keep become one, and the instants of the stream stay
    under their own names.
    """
    match node:
        case Scan(stream):
            return node, {name: name for name in stream.schema}
        case Rename(input_, pairs):
            part, names = _bare(input_)
            new = dict(pairs)
            return part, {new.get(outer, outer): name for outer, name in names.items()}
        case Project(input_, kept):
            part, names = _bare(input_)
            return part, {outer: names[outer] for outer in kept}
        case Select(input_, condition):
            part, names = _bare(input_)
            return Select(part, rename_attributes(condition, names)), names
        case Imbed(input_, name, term):
            part, names = _bare(input_)
            free = _free(name, part.schema)
            return Imbed(part, free, rename_attributes(term, names)), names | {name: free}
        case Join(left, right, condition, kind):
            left_part, right_part, names = _bare_sides(left, right)
            visible = names if kind in ("inner", "left") else {outer: names[outer] for outer in left.schema}
            return Join(left_part, right_part, rename_attributes(condition, names), kind), visible
        case Product(left, right):
            left_part, right_part, names = _bare_sides(left, right)
            return Product(left_part, right_part), names
        case Group() | Distinct() | Union() | Difference() | OrderedNode():
            raise InternalError("TG490", f"{type(node).__name__} is not row-wise")
        case _:
            assert_never(node)


def _bare_sides(left: Node, right: Node) -> tuple[Node, Node, dict[str, str]]:
    """Both sides of a join with a static one: the stream's side bare, the static side renamed where names would
    clash.
    """
    stream_first = not is_static(left)
    part, names = _bare(left if stream_first else right)
    static = right if stream_first else left
    clashes: dict[str, str] = {}
    for name in static.schema:
        clashes[name] = _free(name, part.schema, {*clashes.values(), *static.schema} - {name})
    pairs = tuple((name, free) for name, free in clashes.items() if name != free)
    renamed = Rename(static, pairs) if pairs else static
    both = {**names, **clashes}
    ordered = {name: both[name] for name in (*left.schema, *right.schema)}
    return (part, renamed, ordered) if stream_first else (renamed, part, ordered)


def _kept(part: Node, scan: int, condition: Term) -> Node:
    """The part, filtered: rows of the occurrence `scan` stay only where the condition is true."""
    if condition == TRUE:
        return part
    if isinstance(part, Scan):
        return Select(part, condition)
    below, first = list(children(part)), 0
    for place, child in enumerate(below):
        count = len(occurrences(child))
        if first <= scan < first + count:
            below[place] = _kept(child, scan - first, condition)
        first += count
    return with_children(part, tuple(below))


def _chain(part: Node, wanted: Collection[str], fold: Fold | None) -> Node:
    """The part with the attributes that are wanted, and what a row carries that may stand for several."""
    added = () if fold is None else fold.added
    names = tuple(c for c in part.schema if c in wanted)
    for name, term in added:
        part = Imbed(part, name, term)
    return Project(part, (*names, *(name for name, _ in added)))


def _free(name: str, schema: Schema, taken: Collection[str] = ()) -> str:
    free, number = name, 1
    while free in schema or free in taken:
        number += 1
        free = f"{name}~{number}"
    return free


def _stored(name: str, schema: Schema) -> Scan:
    return Scan(StreamDef(name, schema, static=True))


def _partial_grouping(
    node: Node, facts: QueryFacts
) -> tuple[Group, Callable[[Node], Node], tuple[tuple[str, str, int], ...]] | None:
    """The grouping whose partials are stored, the operators above it, and the key and shift of each promised
    attribute.
    """
    above: list[Node] = []
    current = node
    while isinstance(current, Select | Project | Rename | Imbed):
        above.append(current)
        current = current.input
    if not isinstance(current, Group) or not is_row_wise(current.input):
        return None
    if any(aggregate.function not in MERGEABLE for aggregate in current.aggregates):
        return None
    key_shifts = {key: (key, 0) for key in current.keys}
    for operator in reversed(above):
        if isinstance(operator, Rename):
            new = dict(operator.pairs)
            key_shifts = {new.get(name, name): of for name, of in key_shifts.items()}
        elif isinstance(operator, Project):
            key_shifts = {name: of for name, of in key_shifts.items() if name in operator.names}
        elif isinstance(operator, Imbed):
            match temporal_term(operator.term, operator.input.schema):
                case Shift(Var(name), by) if name in key_shifts:
                    key, before = key_shifts[name]
                    key_shifts[operator.name] = key, before + by
                case Var(name) if name in key_shifts:
                    key_shifts[operator.name] = key_shifts[name]
    if any(a not in key_shifts for a in facts.propagation):
        return None

    def rebuild(source: Node) -> Node:
        for operator in reversed(above):
            source = with_children(operator, (source,))
        return source

    return current, rebuild, tuple((a, *key_shifts[a]) for a in facts.propagation)


def _description(facts: ProgramFacts, plans: tuple[QueryPlan, ...]) -> dict[str, str]:
    """A readable description of the program, one entry per stream and query. A changed entry is a changed program."""
    described: dict[str, str] = {}
    for query in facts.queries:
        for stream in occurrences(query.query.node):
            described[f"stream {stream.name}"] = _stream_text(stream)
    for plan in plans:
        node = plan.facts.query.node
        described[f"query {plan.name}"] = f"{plan.stream} <-\n{node_text(node)}\ndigest {digest(node)}"
        described[f"result {plan.stream}"] = _stream_text(plan.facts.output)
        if plan.ordered is not None and plan.ordered.node.rule:
            described[f"rule {plan.name}"] = plan.ordered.node.rule
        described[f"layout {plan.name}"] = digest(
            (
                plan.tree,
                tuple((leaf.buffer and _stored_as(leaf.buffer), leaf.static) for leaf in plan.leaves),
            )
        )
    return described


def _stored_as(buffer: Buffer) -> tuple[object, ...]:
    return (buffer.id, buffer.chain, *(() if buffer.encoding is None else (buffer.encoding,)))


def _stream_text(stream: StreamDef) -> str:
    kind = "static" if stream.static else f"progress on {', '.join(stream.progress)}"
    begins = stream.begins
    told = "" if begins is None else f", {begins.id} begins at {begins.start} and ends at {begins.end}"
    return f"({stream.schema}) {kind}{told} {digest(stream.relations)}"


def digest(value: object) -> str:
    """A short hash of a plan value, the same on every machine: a Merkle hash over dataclass fields."""
    seen: dict[int, str] = {}
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, Node):
            for node in _from_below(part):
                _canonical(node, seen)
    return hashlib.sha256(_canonical(value, seen).encode()).hexdigest()[:16]


def _from_below(node: Node) -> list[Node]:
    """The nodes of a tree, each once and after its inputs. It does not recurse, since a tree can be a hundred joins
    deep.
    """
    waiting, nodes = [node], dict[int, Node]()
    while waiting:
        current = waiting.pop()
        nodes.pop(id(current), None)  # it comes before what was met earlier
        nodes[id(current)] = current
        waiting += children(current)
    return list(reversed(nodes.values()))


@cache
def _digested(of: type[DataclassInstance]) -> tuple[str, ...]:
    """The fields that a digest covers."""
    return tuple(f.name for f in fields(of) if not f.name.startswith("_") and not f.metadata.get("advice"))


def _canonical(value: object, seen: dict[int, str]) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        if id(value) not in seen:
            parts = ",".join(f"{name}={_canonical(getattr(value, name), seen)}" for name in _digested(type(value)))
            seen[id(value)] = hashlib.sha256(f"{type(value).__name__}({parts})".encode()).hexdigest()
        return seen[id(value)]
    if isinstance(value, tuple):
        return f"[{','.join(_canonical(part, seen) for part in value)}]"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value)
