"""One increment of a query as a Spark DataFrame: the same parts as embedded, with filters that Catalyst pushes into
files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from tidegate.algebra.nodes import Node
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.engines.spark.eval.aggregates import final, merge
from tidegate.runtime.engines.spark.eval.column_cache import kept_term
from tidegate.runtime.engines.spark.eval.names import col
from tidegate.runtime.engines.spark.eval.relational import evaluate
from tidegate.runtime.eval.columns import spark_schema
from tidegate.runtime.plan.shared_parts import Demand, Later, Ready, common_parts
from tidegate.runtime.plan.steps import Buffer, CommonPart, Progress, QueryPlan


def read_leaves(
    demand: Demand, frames: Sequence[DataFrame | None], statics: Mapping[str, DataFrame]
) -> dict[int, DataFrame]:
    """The rows that an increment reads, by leaf; `frames` holds a frame per leaf that reads a buffer."""
    leaves: dict[int, DataFrame] = {}
    for index, (leaf, frame, relevant) in enumerate(zip(demand.query.leaves, frames, demand.relevant, strict=True)):
        if leaf.buffer is None:
            assert leaf.static is not None
            leaves[index] = statics[leaf.static]
        else:
            assert frame is not None
            assert relevant is not None
            rows = keep_true(frame, relevant, leaf.buffer.schema)
            leaves[index] = rows.select(*map(col, leaf.columns)) if leaf.columns else rows
    return leaves


@dataclass(frozen=True, slots=True)
class Common:
    """What several queries contain: for each of them the parts by the place of their first leaf. Those that a query has
    asked for are `held`, until they are let go of.
    """

    ready: Sequence[Ready[DataFrame]]
    held: Sequence[DataFrame]

    @classmethod
    def of(cls, demands: Sequence[Demand], read: Sequence[Mapping[int, DataFrame]]) -> Common:
        """Each part as a DataFrame that Spark computes at most once and holds until it is let go of."""
        frames: list[DataFrame] = []

        def compute(number: int, part: CommonPart, ready: Ready[DataFrame]) -> DataFrame:
            frames.append(evaluate(part.node, read[number], ready, first=part.first).persist())
            return frames[-1]

        return cls(common_parts(demands, compute), frames)

    def release(self) -> None:
        for frame in self.held:
            frame.unpersist()


def increment(
    query: QueryPlan,
    leaves: Mapping[int, DataFrame],
    old: Progress,
    new: Progress,
    ready: Mapping[tuple[int, Node], Later[DataFrame]] = MappingProxyType({}),
) -> DataFrame:
    """New result rows between the progress `old` and `new`, from the rows of the leaves and common parts."""
    if query.grouping is not None:
        leaves = {0: final(query.grouping, merge(query.grouping, leaves[0]))}
    schema = query.facts.output.schema
    rows = evaluate(query.tree, leaves, ready)
    if query.tree.schema.names != schema.names:
        rows = rows.select(*map(col, schema.names))
    return keep_true(rows, query.passes(old, new), schema)


def keep_true(frame: DataFrame, condition: Term, schema: Schema) -> DataFrame:
    """Rows for which a condition of the analysis holds."""
    return frame if condition == TRUE else frame.filter(kept_term(condition, schema))


def plainly_named(frame: DataFrame, columns: int) -> DataFrame:
    """The same columns, so many, in the same order, named c0, c1, ..."""
    return frame.toDF(*(f"c{i}" for i in range(columns)))


def empty(spark: SparkSession, buffer: Buffer) -> DataFrame:
    """No rows, with the columns that a buffer stores."""
    return spark.createDataFrame([], spark_schema(buffer.stored))
