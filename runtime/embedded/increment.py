"""One increment of a query, over frames: relevance below, the query between, the pass condition on top (TSA Def. 27)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.embedded.aggregates import final, merge
from tidegate.runtime.embedded.relational import evaluate
from tidegate.runtime.embedded.terms import compile_term
from tidegate.runtime.plan.steps import Progress, QueryPlan


def increment(
    query: QueryPlan,
    frames: Sequence[pl.LazyFrame | None],
    statics: Mapping[str, pl.DataFrame],
    old: Progress,
    new: Progress,
) -> pl.LazyFrame:
    """New result rows between the progress `old` and `new`; `frames` holds a frame per leaf that reads a buffer."""
    leaves: dict[int, pl.LazyFrame] = {}
    for index, (leaf, frame) in enumerate(zip(query.leaves, frames, strict=True)):
        if leaf.buffer is None:
            assert leaf.static is not None
            leaves[index] = statics[leaf.static].lazy()
        else:
            assert frame is not None
            rows = keep_true(frame, leaf.relevant(old, new), leaf.buffer.schema)
            leaves[index] = rows.select(leaf.columns) if leaf.columns else rows
    if query.grouping is not None:
        leaves[0] = final(query.grouping, merge(query.grouping, leaves[0]))
    schema = query.facts.output.schema
    return keep_true(evaluate(query.tree, leaves).select(schema.names), query.passes(old, new), schema)


def keep_true(frame: pl.LazyFrame, condition: Term, schema: Schema) -> pl.LazyFrame:
    """Rows for which a condition of the analysis holds."""
    return frame if condition == TRUE else frame.filter(compile_term(condition, schema))
