"""What Spark watches: all sources of a program as one streaming DataFrame, of which it plans one batch after another."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.runtime.setup import Setup
from tidegate.runtime.sources import Files
from tidegate.runtime.spark.bounded import needed_columns
from tidegate.runtime.spark.calls import BINARY_FILE, call_ticks
from tidegate.runtime.spark.known_sources import KnownSources
from tidegate.runtime.spark.locations import literal
from tidegate.runtime.spark.workers import TICK

#: Spark passes over files that are so much older than the newest it has seen; by itself those of more than a week.
_ANY_AGE = "36500d"
#: Characters that mean something else in a pattern of Spark's.
_NOT_ALIKE = frozenset("[]{}\\^")
_OFFERED_COLUMNS = {"path": "string", "length": "bigint", "modified": "bigint"}


def union_of(spark: SparkSession, setup: Setup, known: KnownSources) -> tuple[DataFrame, dict[str, dict[str, str]]]:
    """All sources as narrow branches of one streaming DataFrame; of file sources only the paths."""
    branches, columns = [], {}
    for number, name in enumerate(known.streams):
        data = setup.sources[name].data
        if isinstance(data, Files):
            branches.append(_paths(spark, name, data))
        else:
            rows, wanted = needed_columns(data, setup.streams[name], setup.sources[name])
            columns[name] = {f"s{number}c{i}": column for i, column in enumerate(wanted)}
            branch = rows.toDF(*columns[name]).select(F.lit(name).alias("source"), *columns[name])
            branches.append(branch.coalesce(1) if setup.options[name].key else branch)  # keys are judged in order
    branches.append(call_ticks(spark, setup.checkpoint.store.where))
    if known.clock:
        # Rows that say nothing: without new data Spark runs no batch, and nobody would notice that the clock goes on.
        # No source of a run over what is available now: Spark would read all of it in one batch because of this one.
        ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
        branches.append(ticks.select(F.lit(TICK).alias("source")))
    union = branches[0]
    for branch in branches[1:]:
        union = union.unionByName(branch, allowMissingColumns=True)
    for column, type_ in _OFFERED_COLUMNS.items():
        if column not in union.columns:
            union = union.withColumn(column, F.lit(None).cast(type_))
    return union, columns


def _paths(spark: SparkSession, name: str, files: Files) -> DataFrame:
    """The files that Spark finds in a directory, whatever their age; those that have gone meanwhile are left out."""
    reader = spark.readStream.format("binaryFile").schema(BINARY_FILE).option("recursiveFileLookup", "true")
    reader = reader.option("maxFileAge", _ANY_AGE).option("ignoreMissingFiles", "true")
    if files.pattern is not None and not _NOT_ALIKE & set(files.pattern):
        reader = reader.option("pathGlobFilter", files.pattern)  # others are left out when Spark offers them
    if files.per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files.per_batch)
    return reader.load(literal(files.directory)).select(
        F.lit(name).alias("source"),
        "path",
        "length",
        F.unix_micros("modificationTime").alias("modified"),
    )
