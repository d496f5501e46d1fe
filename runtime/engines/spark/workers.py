"""What runs in Spark's Python workers: rows in, files of segments and results written, summaries out.

Workers get plain values only. Each file has a name that no other attempt can choose; it counts once the driver's
manifest names it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa

from tidegate.algebra.nodes import occurrences
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.runtime.connectors.sources import FileFormat, SourceOptions
from tidegate.runtime.engines.spark.eval.lying import by_shard
from tidegate.runtime.engines.spark.tasks.held import HeldRun, held_of
from tidegate.runtime.engines.spark.tasks.running import Batches, reported, summary_batch
from tidegate.runtime.eval.columns import to_user_table
from tidegate.runtime.eval.joins.indexed_rows import IndexedRows
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.ingest.buffering import absorb
from tidegate.runtime.ingest.ingest import Arrival, Remembered, ingest_rows, remembered_of
from tidegate.runtime.ingest.inputs import Arrivals, size_of
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.rows import Rows, as_frame, as_table
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.errors import storage_errors
from tidegate.runtime.state.rejects.file_tables import AREA as QUARANTINE
from tidegate.runtime.state.segments import Segment, new_path, read_segments, write_segment
from tidegate.runtime.state.store.local import LocalStore

#: A task writes what it has gathered once it holds this much, so that its memory stays bounded.
FLUSH_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Where a worker writes and for which attempt at which batch; static tables lie in files.

    Segments of the buffers in `keys` lie by the hash of that column, in so many `shards`. `run` names one start of a
    program: workers hold something from one of its batches to the next.
    """

    root: str
    seq: int
    attempt: str
    statics: Mapping[str, str]
    keys: Mapping[str, str] = field(default_factory=dict)
    shards: int = 1
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def held(self) -> HeldRun:
        """What this worker holds of the run."""
        return held_of(self.run, self.root)

    def load_statics(self, names: Iterable[str]) -> dict[str, pl.DataFrame]:
        return self.held.tables.all_of(self.statics, names)


@dataclass(frozen=True, slots=True)
class FileTask:
    """Files of one stream, in one directory, for one task."""

    stream: str
    format: FileFormat
    paths: tuple[str, ...]
    directory: str

    def to_json(self) -> Json:
        return [self.stream, self.format, list(self.paths), self.directory]

    @classmethod
    def from_json(cls, given: Any) -> FileTask:
        stream, format_, paths, directory = given
        return cls(stream, format_, tuple(paths), directory)


def _without_index(store: LocalStore, segment: Segment, _: tuple[str, ...], known: Rows | None, /) -> IndexedRows:
    """The rows of a segment, which a task reads unless they are `known`, and has no index of."""
    return IndexedRows(pl.DataFrame(read_segments(store, [segment])) if known is None else known, None)


@dataclass(frozen=True, slots=True)
class IngestContext:
    """Everything that ingesting rows of any stream needs."""

    target: WriteTarget
    intakes: Mapping[str, Intake]
    options: Mapping[str, SourceOptions]

    def store(self, stream: str, arrivals: Iterable[Arrival], remembered: dict[str, Remembered]) -> str:
        """Judges and stores rows of one stream; the summary as JSON. `remembered` has a task's rows by which others are
        judged, by stream.
        """
        intake, store = self.intakes[stream], self.target.held.store
        tables = {name for buffer in intake.buffers for _, name in buffer.statics}
        tables |= {occurrence.name for term in intake.terms for occurrence in occurrences(term) if occurrence.static}
        statics = self.target.load_statics(tables)
        if stream not in remembered:
            remembered[stream] = remembered_of(intake, self.options[stream], partial(_without_index, store))
        rows = ingest_rows(arrivals, intake, statics, self.options[stream], remembered[stream])
        refused = None
        if rows.quarantine:
            table = rows.quarantine.table()
            refused = write_segment(store, "rows", table, (), self.target.seq, self.target.attempt, area=QUARANTINE)
        segments = {
            buffer.id: segment_line(store, self.target, buffer, stored)
            for buffer in intake.stored
            if (stored := rows.stored.get(buffer.id)) is not None and stored.height
        }
        return json.dumps(
            {
                "stream": stream,
                "accepted": rows.accepted,
                "rejected": rows.rejected,
                "punctuations": rows.punctuations,
                "unreadable": rows.unreadable,
                "greatest": rows.greatest,
                "punctuation": rows.punctuation,
                "segments": segments,
                "first_rejected": rows.first_rejected,
                "quarantine": refused.to_json() if refused else None,
                "read": [astuple(file) for file in arrivals.read.values()] if isinstance(arrivals, Arrivals) else [],
            }
        )


def segment_line(store: LocalStore, target: WriteTarget, buffer: Buffer, rows: Rows, shard: int = 0) -> str:
    """Writes rows as a segment, laid out for the shards of increments; the segment as JSON. `shard` is that of a
    fold.
    """
    layout = None
    if (key := target.keys.get(buffer.id)) is not None:
        rows, layout = by_shard(as_frame(rows), key, target.shards)
    seq, attempt, table = target.seq, target.attempt, as_table(rows)
    return write_segment(store, buffer.id, table, buffer.instants, seq, attempt, shard=shard, layout=layout).to_json()


def ingest_files(work: IngestContext, files: Json) -> Iterator[str]:
    """A task: opens its files, `FileTask`s as JSON, with the needed columns only, and stores their rows."""
    remembered: dict[str, Remembered] = {}
    for task in map(FileTask.from_json, files):
        yield from _ingest_task(work, task, remembered)


def _ingest_task(work: IngestContext, task: FileTask, remembered: dict[str, Remembered]) -> Iterator[str]:
    schema = work.options[task.stream].judged(work.intakes[task.stream].stream.schema)
    waiting: list[str] = []
    size = 0
    for path in task.paths:
        waiting.append(path)
        size += size_of(path)
        if size >= FLUSH_BYTES or path == task.paths[-1]:
            arrivals = Arrivals((), tuple(waiting), task.format, schema, task.directory)
            yield work.store(task.stream, arrivals, remembered)
            waiting, size = [], 0


def ingest_offered(work: IngestContext, columns: Mapping[str, Mapping[str, str]]) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over the union of all streaming DataFrames: stores their rows.

    `columns` maps, per stream, the union's column names to the stream's.
    """

    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        origin = f"partition {context.partitionId() if context else 0}"
        waiting: dict[str, list[pa.Table]] = {}
        remembered: dict[str, Remembered] = {}
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for name in table.column("source").unique().to_pylist():
                part = table.filter(pa.compute.equal(table.column("source"), name))
                rows = part.select(list(columns[name])).rename_columns(list(columns[name].values()))
                waiting.setdefault(name, []).append(rows)
                if sum(t.nbytes for t in waiting[name]) >= FLUSH_BYTES:
                    yield summary_batch(
                        [work.store(name, [Arrival(origin, pa.concat_tables(waiting.pop(name)))], remembered)]
                    )
        for name, tables in waiting.items():
            yield summary_batch([work.store(name, [Arrival(origin, pa.concat_tables(tables))], remembered)])

    return reported(run)


def store_results(
    target: WriteTarget, query: str, schema: Schema, feeds: Sequence[tuple[Buffer, Term]], *, written: bool
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over a query's new rows: writes result files and what other queries' buffers store of them.

    The rows' columns come in the order of `schema`, whatever their names.
    """

    def store(rows: pl.DataFrame) -> str:
        return store_rows(target, query, schema, feeds, rows, written=written)

    return _gathering(schema, store)


def _gathering(schema: Schema, store: Callable[[pl.DataFrame], str]) -> Callable[[Batches], Batches]:
    """A task that stores its rows in as few parts as memory allows."""

    def run(batches: Batches) -> Batches:
        waiting: list[Any] = []
        size = 0
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
                size += batch.nbytes
            if size >= FLUSH_BYTES:
                yield summary_batch([store(_frame(waiting, schema))])
                waiting, size = [], 0
        if waiting:
            yield summary_batch([store(_frame(waiting, schema))])

    return reported(run)


def store_rows(
    target: WriteTarget,
    query: str,
    schema: Schema,
    feeds: Sequence[tuple[Buffer, Term]],
    rows: pl.DataFrame,
    *,
    written: bool,
) -> str:
    """Writes new rows of a query as a result file and as segments of the buffers that store them; the summary as
    JSON.
    """
    files = target.held.store
    output = None
    if written:
        path = new_path("staging", query, target.seq, target.attempt)
        with storage_errors(f"writing results of {query!r}"):
            output = astuple(files.write_table(path, to_user_table(as_table(rows), schema)))
    statics = target.load_statics(name for buffer, _ in feeds for _, name in buffer.statics)
    stored = {buffer: absorb(rows, buffer, admission, statics) for buffer, admission in feeds}
    segments = {b.id: segment_line(files, target, b, part) for b, part in stored.items() if part.height}
    return json.dumps({"query": query, "rows": rows.height, "output": output, "segments": segments})


def _frame(batches: Sequence[pa.RecordBatch], schema: Schema) -> pl.DataFrame:
    return pl.DataFrame(pa.Table.from_batches(list(batches)).rename_columns(list(schema.names)))
