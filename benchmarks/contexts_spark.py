"""Queries in contexts on Spark: the same program context-independent and context-aware, in turn, with equal results."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

from benchmarks.contexts import made, written
from benchmarks.contexts_data import SECONDS, Rows, Setting, standing
from benchmarks.figures import PAIRS, SUSPENDED_ON_SPARK, Figure, compared
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.engine import start

#: Files of a stream, each a batch of as many seconds.
FILES = 12
#: Rows over which both run before.
FEW = 2000


def measure(spark: SparkSession, rows: int = 100_000) -> tuple[list[Figure], bool]:
    """Seconds of both, and whether results were equal."""
    figures, equal = [], True
    with tempfile.TemporaryDirectory() as work:
        for share in SUSPENDED_ON_SPARK:
            setting, files = Setting(rows, 1 - share / 100), Path(work) / f"{share}"
            few = files.with_name(f"{share}, few")
            write(setting.inputs(), files)
            write(replace(setting, rows=FEW).inputs(), few)
            plans = written(standing(setting)), made(standing(setting))
            for plan in plans:
                on_spark(spark, plan, few, work)  # what is loaded and compiled once
            ratios = []
            for _ in range(PAIRS):
                one, other = (on_spark(spark, plan, files, work) for plan in plans)
                ratios.append(one[0] / other[0])
                equal = equal and one[1] == other[1] and any(one[1].values())
            title = f"10 queries, {share} % of the stream suspended, Spark"
            figures.append(compared(f"{title}: time, context-independent / context-aware", ratios))
            print(figures[-1].line(), flush=True)
    return figures, equal


def write(inputs: Rows, folder: Path) -> None:
    """A file of each stream for each of some stretches, in order of time: so all rows of one are in a batch. A last
    signal, of no context, says that there are no more.
    """
    span, signals = -(-SECONDS // FILES), inputs["Signals"]
    for name, rows in inputs.items():
        (folder / name).mkdir(parents=True)
        for number in range(FILES):
            first, end = number * span, (number + 1) * span
            first -= number == 0  # windows that hold from the beginning on begin before it
            some = rows.filter(pl.col("time").is_between(first, end, closed="left"))
            if rows is signals:
                some = some.vstack(pl.DataFrame([(0, end - 1, -1, False)], schema=rows.schema, orient="row"))
            some.write_parquet(folder / name / f"{number:02d}.parquet")


def on_spark(
    spark: SparkSession, facts: ProgramFacts, files: Path, work: str
) -> tuple[float, Mapping[str, Counter[Any]]]:
    """Seconds of a run, from files to committed results, and these."""
    folder = Path(tempfile.mkdtemp(dir=work))
    names = [query.query.stream for query in facts.queries if not query.query.inner and query.query.stream[0] == "Q"]
    began = time.perf_counter()
    query = start(
        spark,
        facts,
        sources={name: parquet(files / name, per_batch=1, delay=0, bounded=True) for name in ("Reports", "Signals")},
        sinks={name: parquet_sink(folder / name) for name in names},
        checkpoint=folder / "checkpoint",
    )
    query.awaitTermination()
    taken = time.perf_counter() - began
    return taken, {name: found(folder / name) for name in names}


def found(folder: Path) -> Counter[Any]:
    """The rows of a result; a query without rows has no file."""
    return Counter(row for path in sorted(folder.glob("*.parquet")) for row in pl.read_parquet(path).iter_rows())
