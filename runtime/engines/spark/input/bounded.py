"""What the Spark engine keeps as files of its own, for workers to read: bounded inputs and static tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import StreamDef
from tidegate.runtime.connectors.sources import Files, Source
from tidegate.runtime.engines.setup import Setup
from tidegate.runtime.engines.spark.eval.increment import plainly_named
from tidegate.runtime.engines.spark.eval.names import col
from tidegate.runtime.engines.spark.input.locations import local_uri
from tidegate.runtime.engines.spark.jobs import described
from tidegate.runtime.ingest.bounded_frames import (
    RESTORE,
    Content,
    InputFiles,
    check_content,
    content_of,
    frame_area,
    read_complete,
)
from tidegate.runtime.ingest.inputs import static_digest
from tidegate.runtime.ingest.raw_rows import missing_columns, raw_of
from tidegate.runtime.ingest.stored_rows import input_table
from tidegate.runtime.rows import as_table
from tidegate.runtime.state.codec import encode
from tidegate.runtime.state.errors import DATA, FOREIGN, StateError, storage_errors
from tidegate.runtime.state.segments import verify
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.paths import slug


def bounded_inputs(setup: Setup, store: LocalStore) -> dict[str, Source]:
    """Sources with bounded frames replaced by files in the checkpoint, written once: a restart reads the same rows."""
    sources, root = {}, store.where
    for name, source in setup.sources.items():
        data = source.data
        if isinstance(data, Files) or (isinstance(data, DataFrame) and data.isStreaming):
            sources[name] = source
            continue
        area = frame_area(name)
        files = Files(f"{root}/{area}/rows", "parquet")
        if store.exists(f"{area}/complete"):
            known = _check_files(store, name, files)
            if data is not None:
                check_content(name, known, _content(data, setup.streams[name], source))
        else:
            with storage_errors(f"writing the rows of {name}"):
                _check_replaceable(store, f"{area}/rows")
                Path(files.directory).parent.mkdir(parents=True, exist_ok=True)
            content = _write_input(data, Path(files.directory), setup.streams[name], source)
            with storage_errors(f"writing the rows of {name}"):
                written = InputFiles(content, tuple(store.settled(path) for path in _inside(store, files)))
                store.create_exclusive(f"{area}/complete", encode("inputs", written))
        sources[name] = replace(source, data=files, bounded=True)
    return sources


def _check_replaceable(store: LocalStore, directory: str) -> None:
    """`StateError` TG511 for somebody else's file in a directory that is written over, or a link."""
    for file in store.foreign_files(directory):
        raise StateError(
            FOREIGN,
            f"{file} in {store.where} is no file of the checkpoint, and its directory is written over",
            hint="move it out of the checkpoint",
        )


def _check_files(store: LocalStore, stream: str, files: Files) -> Content:
    """What a bounded input holds; `StateError` TG505 unless its files are those that were written, byte for byte."""
    written = read_complete(store, stream)
    verify(store, written.files)
    for path in sorted(set(_inside(store, files)) - {file.path for file in written.files}):
        raise StateError(DATA, f"{path} in {store.where} was not there when the rows were written", hint=RESTORE)
    return written.content


def _inside(store: LocalStore, files: Files) -> list[str]:
    return sorted(os.path.relpath(file.path, os.path.abspath(store.where)) for file in files.found())


def _write_input(data: Any, directory: Path, stream: StreamDef, source: Source) -> Content:
    """Writes the rows as Parquet files; gives what they are."""
    rows = str(directory)
    if isinstance(data, DataFrame):
        frame, names = needed_columns(data, stream, source)
        seen = Observation()
        with described(frame.sparkSession, f"start: write rows of {stream.name}"):
            frame.observe(seen, *_measures(frame)).toDF(*names).write.mode("overwrite").parquet(local_uri(rows))
        return _measured(frame, names, seen.get)
    judged = source.options(stream).judged(stream.schema)
    table = input_table(raw_of(stream.name, data, judged, whole=stream.schema), judged)
    with storage_errors(f"writing the rows of {stream.name}"):
        Path(rows).mkdir(exist_ok=True)
        pq.write_table(table, f"{rows}/rows.parquet")
    return content_of(table)


def _content(data: Any, stream: StreamDef, source: Source) -> Content:
    """What `_write_input` would give, without writing."""
    if isinstance(data, DataFrame):
        frame, names = needed_columns(data, stream, source)
        with described(frame.sparkSession, f"start: compare rows of {stream.name}"):
            (row,) = frame.agg(*_measures(frame)).collect()
        return _measured(frame, names, row.asDict())
    return content_of(input_table(data, source.options(stream).judged(stream.schema)))


def _measures(frame: DataFrame) -> list[Column]:
    """Number and hash of a DataFrame's rows, the same in whatever order they come."""
    values: list[Column] = []
    for name, type_ in frame.dtypes:  # a map has no hash, and a NULL leaves one as it is
        column = col(name)
        values += [column.cast("string") if "map<" in type_ else column, column.isNull()]
    return [F.count(F.lit(1)).alias("rows"), F.sum(F.xxhash64(*values).cast("decimal(38,0)")).alias("digest")]


def _measured(frame: DataFrame, names: list[str], measures: Mapping[str, Any]) -> Content:
    columns = tuple(f"{name} {type_}" for name, (_, type_) in zip(names, frame.dtypes, strict=True))
    return Content(columns, measures["rows"], str(measures["digest"]))


def stored_statics(setup: Setup, store: LocalStore) -> dict[str, str]:
    """Static tables as files that workers read, named by their content; written at every start, so never damaged
    ones.
    """
    paths = {}
    for name, frame in setup.statics.items():
        named = f"statics/{slug(name)}-{static_digest(frame)}"
        path, temporary = (Path(str(store.local_path(f"{named}.{end}"))) for end in ("parquet", "tmp"))
        with storage_errors(f"writing static table {name}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(as_table(frame), temporary)
            temporary.rename(path)
        paths[name] = str(path)
    return paths


def needed_columns(frame: DataFrame, stream: StreamDef, source: Source) -> tuple[DataFrame, list[str]]:
    """The columns of a DataFrame that the stream needs, and their names; `QueryError` TG312 where one is missing.

    They are taken by position, so that it does not matter whether the user's session tells n from N.
    """
    schema = source.options(stream).judged(stream.schema)
    try:
        missing_columns(frame.columns, schema)
    except QueryError as error:
        raise QueryError(error.code, f"{stream.name}: {error.message}", hint=error.hint) from None
    places = [f"c{frame.columns.index(name)}" for name in schema]
    return plainly_named(frame, len(frame.columns)).select(*places), list(schema)
