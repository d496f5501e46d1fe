"""Spark's own plan of each increment, for reading: which filters reach the files, which joins Catalyst chose."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tidegate.algebra.time import Extended
from tidegate.runtime.engines.spark.eval.increment import increment, read_leaves
from tidegate.runtime.engines.spark.input.locations import literal
from tidegate.runtime.eval.columns import held_arrow_schema, spark_schema
from tidegate.runtime.plan.progress import static_tables
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.steps import Buffer, Plan, QueryPlan

#: Progress values that stand for "some instant": a plan for the first increment would fold its filters away.
_OLD, _NEW = 1_000_000_000, 2_000_000_000


def spark_plans(spark: SparkSession, plan: Plan) -> dict[str, str]:
    """The physical plan that Spark makes of every query's increment, over empty segments, from one progress to a later
    one.
    """
    with tempfile.TemporaryDirectory() as folder:
        frames = {buffer.id: _segments(spark, buffer, Path(folder)) for buffer in plan.buffers}
        tables = {}
        for number, table in enumerate(static_tables(plan)):
            path = Path(folder) / f"table{number}.parquet"
            pq.write_table(held_arrow_schema(table.schema).empty_table(), path)
            tables[table.name] = spark.read.parquet(literal(path))
        for query in plan.queries:
            if query.facts.is_static:
                tables[query.stream] = spark.createDataFrame([], spark_schema(query.facts.output.schema))
        return {query.name: _plan(query, frames, tables) for query in plan.queries if not query.facts.is_static}


def _segments(spark: SparkSession, buffer: Buffer, folder: Path) -> DataFrame:
    path = folder / f"{abs(hash(buffer.id))}.parquet"
    pq.write_table(held_arrow_schema(buffer.stored).empty_table(), path)
    return spark.read.schema(spark_schema(buffer.stored)).parquet(literal(path))


def _plan(query: QueryPlan, frames: Mapping[str, DataFrame], tables: Mapping[str, DataFrame]) -> str:
    old: dict[str, Extended] = dict.fromkeys(query.facts.propagation, _OLD)
    new: dict[str, Extended] = dict.fromkeys(query.facts.propagation, _NEW)
    leaves = [None if leaf.buffer is None else frames[leaf.buffer.id] for leaf in query.leaves]
    rows = increment(query, read_leaves(Demand.of(query, old, new), leaves, tables), old, new)
    text: str = rows._jdf.queryExecution().explainString(
        rows.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")  # type: ignore[union-attr]
    )
    return text
