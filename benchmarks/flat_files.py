"""What a batch of one new file costs after many files of its directory, beside after ten: CPU time, rows and bytes
read.

One query with its checkpoint on disk, a file a batch, in a directory that keeps all files; what a start costs then; and
what a batch costs while many files wait.

python benchmarks/flat_files.py [--batches 1000 20000] [--rows 100] [--spark-batches 1000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.figures import DECLARED, FILE_BATCHES, SPARK_FILE_BATCHES, Figure, declared, print_table
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import RunningQuery
from tidegate.runtime.state.store.local import LocalStore
from tools.processes import cpu_seconds, family

#: Batches that are compared, from the tenth on: ten windows of the query, at a second of event time a batch.
FIRST, SPAN = 10, 100
#: Batches before these of which the longest is looked for.
LATE = 5000
#: So many batches at most are run on Spark; of more, a session reads the files before the last ones.
PLAYED = 1000
QUERY = "tumbling"
#: Of files that have one name each time.
NAME = "data.parquet"
#: A step's report, and its CPU time in seconds.
Measured = tuple[BatchReport, float]


def main() -> int:
    """Prints the figures; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--batches", type=int, nargs="+", default=FILE_BATCHES)
    options.add_argument("--rows", type=int, default=100, help="rows a batch, a second of event time")
    options.add_argument("--spark-batches", type=int, nargs="*", default=SPARK_FILE_BATCHES, help="none: not on Spark")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = embedded(Path(folder), chosen.batches, chosen.rows)
        figures += archived(Path(folder) / "archived", max(chosen.batches), chosen.rows)
        figures += backlog(Path(folder) / "backlog", max(chosen.batches), chosen.rows)
    if chosen.spark_batches:
        from tidegate.runtime.engines.spark.setup.session import spark_session

        with tempfile.TemporaryDirectory() as folder:
            figures += on_spark(spark_session("tidegate-files"), Path(folder), chosen.spark_batches, chosen.rows)
    print_table(figures)
    return 0


def embedded(folder: Path, marks: Sequence[int] = FILE_BATCHES, size: int = 100) -> list[Figure]:
    """Late and early batches in turn: at each mark the last ones of a session beside those of one that has just
    begun.
    """
    figures: list[Figure] = []
    rows = _Rows(max(marks), size)
    with _opened(folder / "old") as old:
        number = 0
        for mark in marks:
            alone: list[float] = []
            while number < mark - SPAN:
                alone.append(_step(old, folder / "old", rows, number)[1])
                number += 1
            place = folder / f"young {mark}"
            with _opened(place) as young:
                for before in range(FIRST):
                    _step(young, place, rows, before)
                early, late = [], []
                for turn in range(SPAN):
                    early.append(_step(young, place, rows, FIRST + turn))
                    late.append(_step(old, folder / "old", rows, number))
                    number += 1
            figures += _figures("embedded", mark, early, late)
            if len(alone) > FIRST:
                figures.append(_longest(mark, alone[FIRST:][-LATE:]))
    began = time.process_time()
    with _opened(folder / "old") as again:
        again.waiting_files()
        taken = 1000 * (time.process_time() - began)
    title = "a file a batch, embedded: CPU of a start after {:,} files"
    started = replace(declared(title.format(max(FILE_BATCHES)), taken), name=title.format(max(marks)))
    print(started.line(), flush=True)
    return [*figures, started]


def archived(folder: Path, mark: int = max(FILE_BATCHES), size: int = 100) -> list[Figure]:
    """The same of files of one name each time, which go to an archive: late and early batches in turn.

    The archive has as many files of that name before the late ones as batches would have put there.
    """
    rows = _Rows(FIRST + SPAN, size)
    before = folder / "old" / "kept" / NAME
    before.parent.mkdir(parents=True)
    before.touch()
    for number in range(2, mark - SPAN):
        os.link(before, before.with_name(NAME.replace(".", f".{number}.")))
    early, late = [], []
    with _opened(folder / "old", archive=True) as old, _opened(folder / "young", archive=True) as young:
        for number in range(FIRST + SPAN):
            steps = [_step(one, folder / place, rows, number, NAME) for one, place in ((young, "young"), (old, "old"))]
            early.append(steps[0])
            late.append(steps[1])
    means = [1000 * statistics.mean(cpu for _, cpu in some[FIRST:]) for some in (late, early)]
    detail = f"{means[0]:,.1f} ms, {means[1]:,.1f} ms"
    figure = _declared("a file a batch of one name, archived: CPU, batch ", mark, means[0] / means[1], detail)
    print(figure.line(), flush=True)
    return [figure]


def backlog(folder: Path, waiting: int = max(FILE_BATCHES), size: int = 100) -> list[Figure]:
    """The first batches of many files that wait, beside those of just as many files as are read."""
    few = FIRST + SPAN
    cpu = {count: statistics.mean(_drained(folder / str(count), count, size)) for count in (few, waiting)}
    name = "a file a batch of a backlog of {:,}: CPU / of few"
    detail = f"{1000 * cpu[waiting]:,.1f} ms, {1000 * cpu[few]:,.1f} ms of {few}"
    figure = declared(name.format(max(FILE_BATCHES)), cpu[waiting] / cpu[few], detail)
    figure = replace(figure, name=name.format(waiting))
    print(figure.line(), flush=True)
    return [figure]


class _Enough(Exception):
    """As many batches as are measured."""


def _drained(place: Path, count: int, size: int) -> list[float]:
    """CPU seconds of each batch but the first ones, where so many files are there before the first batch."""
    rows, times = _Rows(FIRST + SPAN, size), list[float]()
    for number in range(FIRST + SPAN):
        _put(place / "in", rows.part(number), number)
    for number in range(FIRST + SPAN, count):
        os.link(place / "in" / f"{FIRST + SPAN - 1:07d}.parquet", place / "in" / f"{number:07d}.parquet")

    def after(_: BatchReport) -> None:
        times.append(time.process_time())
        if len(times) == FIRST + SPAN:
            raise _Enough

    with _opened(place, per_batch=1, options=RunOptions(on_batch=after)) as session, suppress(_Enough):
        session.process()
    return [end - begin for begin, end in pairwise(times[FIRST - 1 :])]


def on_spark(
    spark: SparkSession, folder: Path, marks: Sequence[int] = SPARK_FILE_BATCHES, size: int = 100
) -> list[Figure]:
    """The last batches of a streaming query beside its first; one query at a time, as each looks for files all the
    time.

    The CPU time is that of this process, of the JVM and of the processes that it started. A query before it has the JVM
    compile what batches run.
    """
    figures = []
    rows = _Rows(max(marks), size)
    jvm = int(spark._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]
    with _streaming(spark, folder / "warm") as step:
        for number in range(FIRST + SPAN):
            step(rows.part(number), jvm)
    with _streaming(spark, folder / "measured") as step:
        done = [step(rows.part(number), jvm) for number in range(min(max(marks), PLAYED))]
    for mark in marks:
        late = (
            done[mark - SPAN : mark] if mark <= PLAYED else _goes_on(spark, folder / f"after {mark}", rows, mark, jvm)
        )
        figures += _figures("Spark", mark, done[FIRST : FIRST + SPAN], late)
    return figures


def _goes_on(spark: SparkSession, place: Path, rows: _Rows, mark: int, jvm: int) -> list[Measured]:
    """The last batches before `mark`, where a session has read the files before them in one batch; after the first of
    the query, as everywhere here."""
    before = mark - SPAN - FIRST
    with _opened(place) as session:
        for number in range(before):
            _put(place / "in", rows.part(number), number)
        session.step()
    with _streaming(spark, place, before) as step:
        return [step(rows.part(number), jvm) for number in range(before, mark)][FIRST:]


def _figures(engine: str, mark: int, early: Sequence[Measured], late: Sequence[Measured]) -> list[Figure]:
    figures = []
    for what, means in (
        ("CPU", [1000 * statistics.mean(cpu for _, cpu in some) for some in (late, early)]),
        ("rows read", [_mean_read(some, 0) for some in (late, early)]),
        ("bytes read", [_mean_read(some, 1) for some in (late, early)]),
    ):
        one, other = means
        detail = f"{one:,.1f} ms, {other:,.1f} ms" if what == "CPU" else f"{one:,.0f}, {other:,.0f}"
        figures.append(_declared(f"a file a batch, {engine}: {what}, batch ", mark, one / other, detail))
        print(figures[-1].line(), flush=True)
    return figures


def _longest(mark: int, cpu: Sequence[float]) -> Figure:
    """The longest of many batches: in some of them files that were read are looked at again."""
    title = "a file a batch, embedded: longest batch / median, before batch {:,}"
    name = title.format(mark)
    known = name if name in DECLARED else title.format(FILE_BATCHES[0])
    longest, median = max(cpu), statistics.median(cpu)
    detail = f"{1000 * longest:,.1f} ms, {1000 * median:,.1f} ms, of {len(cpu):,} batches"
    figure = replace(declared(known, longest / median, detail), name=name)
    print(figure.line(), flush=True)
    return figure


def _declared(title: str, mark: int, value: float, detail: str) -> Figure:
    """A figure with its target, also of a number of batches that a whole run does not have."""
    name = f"{title}{mark:,} / batch {FIRST}"
    known = name if name in DECLARED else next(one for one in DECLARED if one.startswith(title))
    return replace(declared(known, value, detail), name=name)


def _mean_read(some: Sequence[Measured], number: int) -> float:
    """Rows or bytes that increments read in a batch, at least one."""
    return max(1.0, statistics.mean(sum(read[number] for read in report.read.values()) for report, _ in some))


class _Rows:
    """Rows of each batch, a second of event time."""

    def __init__(self, batches: int, size: int) -> None:
        frame = queries.rows(batches * size, 100, per_second=size)
        frame = frame.with_columns(batch=pl.col("time").dt.epoch("us") // queries.SECOND)
        self._parts = frame.partition_by("batch", include_key=False)

    def part(self, number: int) -> pl.DataFrame:
        return self._parts[min(number, len(self._parts) - 1)]


def _opened(
    place: Path, *, archive: bool = False, per_batch: int | None = None, options: RunOptions = RunOptions()
) -> Session:
    (place / "in").mkdir(parents=True, exist_ok=True)
    source = parquet(place / "in", delay="1s", archive=place / "kept" if archive else None, per_batch=per_batch)
    facts, store = queries.program(QUERY).facts, LocalStore(place / "checkpoint")
    return Session(facts, store, {"Events": source}, options=options)


def _put(folder: Path, rows: pl.DataFrame, number: int, name: str | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f".{number}.parquet"
    rows.write_parquet(written)
    written.rename(folder / (name or f"{number:07d}.parquet"))


def _step(session: Session, place: Path, rows: _Rows, number: int, name: str | None = None) -> Measured:
    _put(place / "in", rows.part(number), number, name)
    began = time.process_time()
    report = session.step()
    return report, time.process_time() - began


@contextmanager
def _streaming(spark: SparkSession, place: Path, files: int = 0) -> Iterator[Callable[[pl.DataFrame, int], Measured]]:
    """A query that waits for more than the `files` that were read; the step gives it one, and waits for its batch."""
    from tidegate.runtime.engines.spark.engine import start

    (place / "in").mkdir(parents=True, exist_ok=True)
    reports: list[BatchReport] = []
    query: RunningQuery = start(
        spark,
        queries.program(QUERY).facts,
        sources={"Events": parquet(place / "in", delay="1s")},
        checkpoint=place / "checkpoint",
        trigger="0 seconds",
        options=RunOptions(on_batch=reports.append),
    )
    query.processAllAvailable()  # the first batch of a query runs at once, perhaps before there is a file
    before = len(reports)

    def step(rows: pl.DataFrame, jvm: int) -> Measured:
        began = time.process_time() + cpu_seconds(family(jvm))
        known = len(reports)
        _put(place / "in", rows, files + known - before)
        query.processAllAvailable()
        assert len(reports) == known + 1, "a file is a batch"
        return reports[-1], time.process_time() + cpu_seconds(family(jvm)) - began

    try:
        yield step
    finally:
        query.stop()


if __name__ == "__main__":
    sys.exit(main())
