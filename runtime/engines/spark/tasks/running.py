"""Jobs of plain tasks: to each task goes a text, its own share of what is to be done, and summaries come back as texts.

Rows never pass: workers read and write files. So a job needs neither a plan of Spark's SQL nor Arrow between JVM and
Python. What all tasks share, Spark sends with the function: functions of modules with their arguments, which are plain
values of a batch. They go as bytes, of which a worker makes values once a job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidegate.algebra.errors import TidegateError
from tidegate.runtime.engines.spark.failures import failure_line, read_summaries
from tidegate.runtime.engines.spark.tasks.held import packed, shared_of
from tidegate.runtime.engines.spark.tasks.jobs_of_texts import Sent, collected, received, sent
from tidegate.runtime.engines.spark.tasks.still import leave_still
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.errors import memory_errors

Batches = Iterator[pa.RecordBatch]
SUMMARY = pa.schema([pa.field("summary", pa.string())])
#: The same for Spark.
SUMMARIES = "summary string"
Work = Callable[[Any], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks that do the same `work`, each with what is its `own`: JSON values."""

    work: Work
    own: Sequence[Json]


def run_tasks(spark: SparkSession, given: Sequence[Tasks]) -> list[dict[str, Any]]:
    """The summaries of all tasks, in their order; raises the error of the first that failed."""
    works, texts = _texts(given)
    if not texts:
        return []
    return read_summaries(collected(spark.sparkContext, partial(run_packed, packed(works)), texts))


@contextmanager
def tasks_as_rows(spark: SparkSession, given: Sequence[Tasks]) -> Iterator[list[DataFrame]]:
    """The summaries of all tasks as rows, to be collected with others in one job, in the block; none without tasks."""
    works, texts = _texts(given)
    if not texts:
        yield []
        return
    with sent(spark.sparkContext, packed((packed(works), texts))) as shared:
        numbers = spark.range(0, len(texts), 1, len(texts))
        yield [numbers.mapInArrow(partial(_run_numbered, shared), SUMMARIES)]


def run_packed(works: bytes, texts: Iterable[str]) -> Iterator[str]:
    """In a worker: the summaries of tasks, one after the other, with works as they come there. To read them takes
    memory, too.
    """
    with reporting() as failed:
        shared = shared_of(works)
        for text in texts:
            number, own = json.loads(text)
            yield from shared[number](own)
    yield from failed


@contextmanager
def reporting() -> Iterator[list[str]]:
    """The block of a task. Its own errors do not leave it: their summary is in the list after it."""
    failed: list[str] = []
    try:
        with memory_errors("a task of Spark was at work"):
            leave_still()
            yield failed
    except TidegateError as error:
        failed.append(failure_line(error))


def _run_numbered(shared: Sent, batches: Batches) -> Batches:
    works, texts = shared_of(received(shared))
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield summary_batch(list(run_packed(works, [texts[number]])))


def _texts(given: Sequence[Tasks]) -> tuple[tuple[Work, ...], list[str]]:
    """The works, and of each task the number of its work and what is its own."""
    texts = [json.dumps([number, own]) for number, tasks in enumerate(given) for own in tasks.own]
    return tuple(tasks.work for tasks in given), texts


def summary_batch(lines: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], schema=SUMMARY)


def reported(run: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """A task over rows whose own errors become its last summary."""

    def run_and_report(batches: Batches) -> Batches:
        with reporting() as failed:
            yield from run(batches)
        if failed:
            yield summary_batch(failed)

    return run_and_report
