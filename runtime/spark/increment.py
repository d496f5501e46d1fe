"""One increment of a query as a Spark DataFrame: the same parts as embedded, with filters that Catalyst pushes into files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.columns import spark_schema
from tidegate.runtime.plan.steps import Buffer, Progress, QueryPlan
from tidegate.runtime.spark.aggregates import final, merge
from tidegate.runtime.spark.relational import evaluate
from tidegate.runtime.spark.terms import compile_term


def increment(
    query: QueryPlan,
    frames: Sequence[DataFrame | None],
    statics: Mapping[str, DataFrame],
    old: Progress,
    new: Progress,
) -> DataFrame:
    """New result rows between the progress `old` and `new`; `frames` holds a frame per leaf that reads a buffer."""
    leaves: dict[int, DataFrame] = {}
    for index, (leaf, frame) in enumerate(zip(query.leaves, frames, strict=True)):
        if leaf.buffer is None:
            assert leaf.static is not None
            leaves[index] = statics[leaf.static]
        else:
            assert frame is not None
            rows = keep_true(frame, leaf.relevant(old, new), leaf.buffer.schema)
            leaves[index] = rows.select(*map(quoted, leaf.columns)) if leaf.columns else rows
    if query.grouping is not None:
        leaves[0] = final(query.grouping, merge(query.grouping, leaves[0]))
    schema = query.facts.output.schema
    rows = evaluate(query.tree, leaves).select(*(F.col(quoted(name)) for name in schema.names))
    return keep_true(rows, query.passes(old, new), schema)


def keep_true(frame: DataFrame, condition: Term, schema: Schema) -> DataFrame:
    """Rows for which a condition of the analysis holds."""
    return frame if condition == TRUE else frame.filter(compile_term(condition, schema))


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it literally."""
    return f"`{name.replace('`', '``')}`"


def plainly_named(frame: DataFrame) -> DataFrame:
    """The same columns in the same order, named c0, c1, ..."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def empty(spark: SparkSession, buffer: Buffer) -> DataFrame:
    """No rows, with the columns that a buffer stores."""
    return spark.createDataFrame([], spark_schema(buffer.stored))
