"""The steps of a small batch: storing new rows, evaluating increments, and collecting garbage.

Other folders import this module alone: what it does by the others here, they do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tidegate.algebra.nodes import Node
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE, Term
from tidegate.algebra.types import Kind
from tidegate.runtime.eval.filters import holding
from tidegate.runtime.eval.small.groups import Grouping, grouping
from tidegate.runtime.eval.small.terms import array_term, column_of
from tidegate.runtime.eval.small.trees import Run, small_tree
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer, Leaf, Progress
from tidegate.runtime.rows import Array, SmallRows, Unsupported


def small_mask(condition: Term, schema: Schema) -> Callable[[SmallRows], Array]:
    """The mask of the rows for which a condition holds; `Unsupported` for one that only Polars supports."""
    value = array_term(condition, schema)
    if value is None:
        raise Unsupported
    return partial(column_of, value, Kind.BOOLEAN)


def small_absorbed(rows: SmallRows, buffer: Buffer, admission: Term, slice_: Slice | None = None) -> SmallRows:
    """The rows that a buffer stores: the chain is applied, and the admission filter drops rows that nobody needs."""
    if buffer.statics:
        raise Unsupported
    stored = _true(_evaluated(buffer.chain, Run({buffer.scan: rows})), admission)
    if buffer.encoding is not None:
        from tidegate.runtime.eval.small.event_runs import encode_small_events

        return encode_small_events(buffer.encoding, stored, buffer.schema, slice_)
    return stored if buffer.partial is None else _grouping(buffer).partial(stored)


def small_kept(rows: SmallRows, buffer: Buffer, keep: Term) -> SmallRows:
    """The stored rows that stay. Partial results are merged."""
    kept = _true(rows, keep)
    return kept if buffer.partial is None else _grouping(buffer).merge(kept)


def small_leaf(leaf: Leaf, rows: SmallRows, relevant: Term) -> SmallRows:
    """The relevant ones of the stored rows, with the columns that the tree reads."""
    rows = _true(rows, relevant)
    return rows.only(leaf.columns) if leaf.columns else rows


def small_rows(node: Node, rows: SmallRows) -> SmallRows:
    """The rows of a query over these, its only leaf; `Unsupported` where Polars evaluates it."""
    return _evaluated(node, Run({0: rows}))


def small_increment(
    demand: Demand, leaves: Mapping[int, SmallRows], old: Progress, new: Progress, shared: dict[object, SmallRows]
) -> SmallRows:
    """The new result rows between the progress `old` and `new`. `shared` holds parts that other queries computed."""
    query = demand.query
    if query.grouping is not None:
        merging = grouping(query.grouping)
        if merging is None:
            raise Unsupported
        leaves = {0: merging.final(merging.merge(leaves[0]))}
    ready: dict[tuple[int, Node], SmallRows] = {}
    for part in query.common:
        key = demand.computed(part)
        if key not in shared:
            shared[key] = _evaluated(part.node, Run(leaves, ready), part.first)
        ready[part.first, part.node] = shared[key]
    schema = query.facts.output.schema
    return _true(_evaluated(query.tree, Run(leaves, ready)).only(schema.names), query.passes(old, new))


def _evaluated(node: Node, run: Run, first: int = 0) -> SmallRows:
    step = small_tree(node, first)
    if step is None:
        raise Unsupported
    return step(run)


def _grouping(buffer: Buffer) -> Grouping:
    grouped = None if buffer.partial is None else grouping(buffer.partial)
    if grouped is None:
        raise Unsupported
    return grouped


def _true(rows: SmallRows, condition: Term) -> SmallRows:
    return rows if condition == TRUE else holding(rows, condition)
