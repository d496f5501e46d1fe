"""The Spark engine against the complete evaluation: the same scripts, as directories of Parquet files."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.properties.drive import Broken, as_tuples, compare, final, instants_of
from tests.properties.engines import as_given, as_taken
from tests.strategies.programs import Case, Row
from tests.strategies.streams import Script
from tests.thresholds import drawn, small
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.semantics import evaluate, evaluate_program
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import Files, Source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.eval.columns import user_arrow_schema
from tidegate.runtime.plan.schedule import Schedule

#: Files appear one second after the other, long ago: both engines read them in this order.
FIRST_FILE = 1_600_000_000


def check_spark(
    spark: SparkSession,
    case: Case,
    script: Script,
    facts: ProgramFacts,
    folder: Path,
    *,
    per_batch: int | None,
    place: tuple[int, int],
    schedule: Schedule | None = None,
    delayed: bool = False,
    collect: GarbageCollection = "amortised",
) -> list[BatchReport]:
    """Runs the script on Spark; after every batch as many rows have passed as are final, at the end exactly these.

    In three cases of four one size is small at which the driver takes another way.
    `delayed`: a delay is declared that the script's rows keep, instead of columns that say how far they have arrived.
    """
    reports: list[BatchReport] = []
    with small(*drawn(random.Random(f"threshold on Spark {case.seed}/{len(script)}"), "spark", "files")):
        options = RunOptions(schedule=schedule, on_batch=reports.append, collect_garbage=collect)
        _run(spark, case, script, facts, folder, options, per_batch, place, delayed)
    check_batches(case, facts, folder, reports)
    return reports


def check_batches(case: Case, facts: ProgramFacts, folder: Path, reports: Sequence[BatchReport]) -> None:
    """After every batch as many rows have passed as are final, no row was rejected, and the files of results have the
    complete ones. These are those of the case's own queries, whatever queries run.
    """
    inputs = as_tuples(case)
    complete = {**inputs, **evaluate_program(facts.program, inputs)}
    asked = {**inputs, **evaluate_program(case.program, inputs)}
    whole = {q.query.name: evaluate(q.query.node, complete) for q in facts.queries}
    whole |= {query.name: evaluate(query.node, asked) for query in case.program.queries}
    passed: Counter[str] = Counter()
    for report in reports:
        passed.update(report.results)
        for q in facts.queries:
            name = q.query.name
            wanted = sum(final(instants_of(q.output, row), report.progress[name]) for row in whole[name])
            if passed[name] != wanted:
                raise Broken(f"batch {report.seq}: {passed[name]} rows of {name} have passed instead of {wanted}")
        for name, counts in report.counts.items():
            if counts.rejected:
                raise Broken(f"batch {report.seq}: rows of {name} were rejected: {counts}")
    for name in case.program.result_names:
        output = facts.streams[name]
        paths = sorted((folder / "out" / name).glob("*.parquet"))
        found = [as_taken(row, output.schema) for path in paths for row in pq.read_table(path).to_pylist()]
        wanted_rows = [row for q in facts.queries if q.query.stream == name for row in whole[q.query.name]]
        compare(found, wanted_rows, f"{name} in files")


def _run(
    spark: SparkSession,
    case: Case,
    script: Script,
    facts: ProgramFacts,
    folder: Path,
    options: RunOptions,
    per_batch: int | None,
    place: tuple[int, int],
    delayed: bool,
) -> None:
    query = start(
        spark,
        facts,
        sources=written_sources(case, script, folder / "in", per_batch, delayed=delayed),
        statics=given_statics(case),
        sinks={name: parquet_sink(folder / "out" / name) for name in case.program.result_names},
        checkpoint=folder / "checkpoint",
        driver_bytes=place[0],
        shard_bytes=place[1],
        options=options,
    )
    query.awaitTermination()


def waits_embedded(
    case: Case, script: Script, facts: ProgramFacts, folder: Path, per_batch: int | None, schedule: Schedule
) -> bool:
    """Whether some result misses a turn when the embedded engine reads the same files."""
    sources = written_sources(case, script, folder, per_batch)
    with Session(facts, sources=sources, statics=given_statics(case), options=RunOptions(schedule=schedule)) as session:
        return any(report.waiting for report in session.process())


def written_sources(
    case: Case, script: Script, folder: Path, per_batch: int | None, *, delayed: bool = False
) -> dict[str, Source]:
    found = {}
    for stream in case.streams:
        files = Files(str(write_files(stream, case, script, folder / stream.name)), "parquet", per_batch)
        if delayed:
            found[stream.name] = Source(files, delay=_delays(stream, script), bounded=True)
        else:
            columns = {a: f"until {a}" for a in stream.progress}
            found[stream.name] = Source(files, progress_columns=columns, bounded=True)
    return found


def _delays(stream: StreamDef, script: Script) -> dict[str, int]:
    """How far rows are behind the greatest instant before them, per attribute, in ticks of integers."""
    found = dict.fromkeys(stream.progress, 0)
    for a in stream.progress:
        greatest: Extended = -INF
        for step in script:
            for row in step.rows.get(stream.name, ()):
                value = int(row[a])  # type: ignore[call-overload]  # an instant
                greatest = max(greatest, value)
                found[a] = max(found[a], int(greatest - value))
    return found


def given_statics(case: Case) -> dict[str, list[dict[str, object]]]:
    return {s.name: [as_given(row, s.schema) for row in case.rows[s.name]] for s in case.statics}


def write_files(stream: StreamDef, case: Case, script: Script, folder: Path) -> Path:
    """The rows of a stream as files, one per step that has some, with the progress reached by then in columns."""
    folder.mkdir(parents=True)
    fields = [pa.field(f"until {a}", user_arrow_schema(stream.schema).field(a).type) for a in stream.progress]
    schema = pa.schema([*user_arrow_schema(stream.schema), *fields])
    reached: dict[str, Extended] = dict.fromkeys(stream.progress, -INF)
    number = 0
    for step in script:
        reached |= {a: b for a, b in step.progress.get(stream.name, {}).items() if b != INF}
        rows = step.rows.get(stream.name, ())
        if rows:
            _write(folder, number, [_with_progress(row, stream, reached) for row in rows], schema)
            number += 1
    if not number:
        _write(folder, number, [], schema)
    return folder


def _with_progress(row: Row, stream: StreamDef, reached: Mapping[str, Extended]) -> dict[str, object]:
    given = as_given(row, stream.schema)
    for a, b in reached.items():
        given[f"until {a}"] = None if b == -INF else as_given({a: int(b)}, stream.schema)[a]
    return given


def _write(folder: Path, number: int, rows: list[dict[str, object]], schema: pa.Schema) -> None:
    path = folder / f"{number:03d}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    os.utime(path, (FIRST_FILE + number, FIRST_FILE + number))
