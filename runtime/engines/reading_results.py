"""Reading back what queries have published, from a directory of results or from the checkpoint."""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.algebra.errors import QueryError
from tidegate.runtime.connectors.sinks import MemorySink, ParquetSink, Sink
from tidegate.runtime.engines.setup import results_area
from tidegate.runtime.eval.columns import user_arrow_schema
from tidegate.runtime.plan.progress import check_known
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.errors import DATA, StateError, is_damage, linked, memory_errors
from tidegate.runtime.state.manifest import Manifest
from tidegate.runtime.state.outputs.compaction import hold
from tidegate.runtime.state.outputs.names import is_output_of
from tidegate.runtime.state.outputs.staging import kept_results
from tidegate.runtime.state.store.interface import Store


def read_results(
    plan: Plan, store: Store, manifest: Manifest | None, sinks: Mapping[str, Sink], name: str
) -> pa.RecordBatchReader:
    """All results of a stream as of a commit, file by file, as users see them.

    `QueryError` TG402 for a name that is no result, TG405 where results are not kept.
    """
    queries = [query for query in plan.queries if query.stream == name]
    if not queries:
        check_known(name, {query.stream for query in plan.queries}, "result")
    names = [query.name for query in queries]
    match sinks.get(name, MemorySink()):
        case ParquetSink(directory):
            tables = _published(name, directory, names)
        case MemorySink():
            tables = kept_results(store, manifest, results_area(name), names)
        case _:
            raise QueryError("TG405", f"results of {name} are not kept", hint="give it no sink, or a directory")
    schema = user_arrow_schema(queries[0].facts.output.schema)
    return pa.RecordBatchReader.from_batches(schema, _batches(name, tables, schema))


def _batches(stream: str, tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with memory_errors(f"reading results of {stream}"):
        for table in tables:
            for batch in table.to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _published(stream: str, directory: str, queries: Iterable[str]) -> Iterator[pa.Table]:
    """The files of some queries in a directory of results, as it is now. Compaction keeps away until all are read, or
    nobody reads on: a list of names does not outlast it.
    """
    try:
        descriptor = hold(directory)
        if descriptor is None:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise QueryError(
            "TG405", f"{directory} is gone, to which results of {stream} go", hint="put it back with its files"
        ) from None
    names = sorted(os.listdir(descriptor))

    def opened(name: str, flags: int) -> int:
        try:
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=descriptor)
        except OSError as error:
            if error.errno == errno.ELOOP:  # no sink makes a link
                raise linked(directory, name) from None
            raise

    def tables() -> Iterator[pa.Table]:
        try:
            for query in queries:
                for name in names:
                    if is_output_of(query, name):
                        with open(name, "rb", opener=opened) as file:
                            yield _table(file, f"{directory}/{name}")
        finally:
            close()

    made = tables()
    close = weakref.finalize(made, os.close, descriptor)  # also where nobody begins to read
    return made


def _table(file: BinaryIO, path: str) -> pa.Table:
    try:
        return pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        if not is_damage(error):
            raise
        raise StateError(
            DATA, f"{path} cannot be read as Parquet: {error}", hint="restore the file of results from a backup"
        ) from error
