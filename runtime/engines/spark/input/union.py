"""What Spark watches: the streaming DataFrames of a program and its wake-ups as one, of which it plans one batch after
another.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.runtime.engines.setup import Setup
from tidegate.runtime.engines.spark.input.bounded import needed_columns
from tidegate.runtime.engines.spark.input.wake_ups import WakeUps
from tidegate.runtime.ingest.ingest import is_judged_in_order


def union_of(
    spark: SparkSession, setup: Setup, framed: Sequence[str], wake_ups: WakeUps
) -> tuple[DataFrame, dict[str, dict[str, str]]]:
    """The sources of the `framed` streams and the wake-ups as narrow branches of one streaming DataFrame.

    Also the names of its columns and what they stand for in the sources' own DataFrames, by stream.
    """
    union, columns = wake_ups.frame(spark), {}
    branches = []
    for number, name in enumerate(framed):
        rows, wanted = needed_columns(setup.sources[name].data, setup.streams[name], setup.sources[name])
        columns[name] = {f"s{number}c{i}": column for i, column in enumerate(wanted)}
        branch = rows.toDF(*columns[name]).select(F.lit(name).alias("source"), *columns[name])
        in_order = is_judged_in_order(setup.streams[name], setup.options[name])
        branches.append(branch.coalesce(1) if in_order else branch)
    for branch in branches:
        union = union.unionByName(branch, allowMissingColumns=True)
    return union, columns
