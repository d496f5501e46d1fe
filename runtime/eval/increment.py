"""An increment of a query over frames: it reads relevant rows, evaluates the tree, and applies the pass condition (Def.
27).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.eval.aggregates.partials import final, merge
from tidegate.runtime.eval.columns import only, polars_schema
from tidegate.runtime.eval.filters import holds_throughout, kept, mask_of, where
from tidegate.runtime.eval.joins.ranges import whole
from tidegate.runtime.eval.relational import evaluate, evaluate_pieces
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan import shared_parts
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.steps import Buffer, CommonPart, Leaf, Progress, QueryPlan
from tidegate.runtime.rows import Rows, Unsupported, as_frame

Ready = shared_parts.Ready[pl.DataFrame]


def read_leaves(
    demand: Demand, frames: Sequence[pl.DataFrame | None], statics: Mapping[str, pl.DataFrame]
) -> dict[int, pl.DataFrame]:
    """The rows that an increment reads, by leaf. `frames` has a frame for each leaf that reads a buffer."""
    parts = zip(demand.query.leaves, frames, demand.relevant, strict=True)
    return {i: read_leaf(leaf, frame, relevant, statics) for i, (leaf, frame, relevant) in enumerate(parts)}


def read_leaf(
    leaf: Leaf, frame: pl.DataFrame | None, relevant: Term | None, statics: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """The relevant rows of a leaf's buffer, or its static table."""
    if leaf.buffer is None:
        assert leaf.static is not None
        return statics[leaf.static]
    assert frame is not None
    assert relevant is not None
    return leaf_rows(leaf, frame, relevant)


def leaf_rows(leaf: Leaf, frame: pl.DataFrame, relevant: Term) -> pl.DataFrame:
    """The relevant ones of the stored rows, with the columns that the tree reads."""
    assert leaf.buffer is not None
    frame = keep_true(frame, relevant, leaf.buffer.schema, view=True)
    return only(frame, leaf.columns) if leaf.columns else frame


def joined_leaves(
    query: QueryPlan, leaves: Mapping[int, Rows], statics: Mapping[str, pl.DataFrame]
) -> Mapping[int, Rows]:
    """What an operator reads, by leaf: the stored rows, some with their matches in static tables."""
    joined = dict(leaves)
    for index, leaf in enumerate(query.leaves):
        if (join := leaf.joined) is not None:
            tables = {place: statics[name] for place, name in join.tables}
            joined[index] = evaluate(join.node, {join.place: as_frame(leaves[index]), **tables})
    return joined


def no_rows(buffer: Buffer) -> pl.DataFrame:
    """No rows, with the columns that a buffer stores."""
    return pl.DataFrame(schema=polars_schema(buffer.stored))


def common_parts(
    demands: Sequence[Demand],
    read: Sequence[Mapping[int, pl.DataFrame]],
    announce: Callable[[QueryPlan, int], None] | None = None,
) -> list[Ready]:
    """The parts that several of the queries contain, for each of them. The first that asks for one computes it."""

    def compute(number: int, part: CommonPart, ready: Ready) -> pl.DataFrame:
        hears = None if announce is None else partial(announce, demands[number].query)
        return evaluate(part.node, read[number], ready, first=part.first, announce=hears)

    return shared_parts.common_parts(demands, compute)


def increment(
    query: QueryPlan,
    leaves: Mapping[int, pl.DataFrame],
    old: Progress,
    new: Progress,
    ready: Ready,
    *,
    merged: bool = False,
    announce: Callable[[QueryPlan, int], None] | None = None,
) -> pl.DataFrame:
    """The new result rows between the progress `old` and `new`, from the rows of leaves and common parts.

    `merged`: the rows are partial results of different groups. `announce` hears of joins of many pairs.
    """
    if query.grouping is not None:
        partials = leaves[0] if merged else merge(query.grouping, leaves[0])
        leaves = {0: final(query.grouping, partials)}
    schema, passes = query.facts.output.schema, query.passes(old, new)
    hears = None if announce is None else partial(announce, query)
    pieces = evaluate_pieces(query.tree, leaves, ready, hears)
    return whole(keep_true(only(rows, schema.names), passes, schema) for rows in pieces)


def keep_true(frame: pl.DataFrame, condition: Term, schema: Schema, *, view: bool = False) -> pl.DataFrame:
    """The rows for which a condition of the analysis holds. With `view` they may be a slice."""
    if condition == TRUE:
        return frame
    try:
        mask = mask_of(frame, condition)
    except Unsupported:
        if holds_throughout(condition, frame):
            return frame
        return kept(frame, compile_term(condition, schema), view=view)
    return where(frame, mask, view=view)
