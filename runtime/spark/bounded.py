"""What the Spark engine keeps as files of its own, for workers to read: bounded inputs and static tables."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import StreamDef
from tidegate.runtime.columns import missing_columns
from tidegate.runtime.embedded.executor import ARROW
from tidegate.runtime.inputs import input_table, static_digest
from tidegate.runtime.setup import Setup
from tidegate.runtime.sources import Files, Source
from tidegate.runtime.spark.increment import plainly_named
from tidegate.runtime.state.codec import decode, encode
from tidegate.runtime.state.errors import DATA, StateError, storage_errors
from tidegate.runtime.state.local import LocalStore
from tidegate.runtime.state.paths import slug
from tidegate.runtime.state.segments import verify
from tidegate.runtime.state.store import FileRef


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The document `complete` of a bounded input: the files that hold its rows."""

    files: tuple[FileRef, ...]


def bounded_inputs(setup: Setup, store: LocalStore) -> dict[str, Source]:
    """Sources with bounded frames replaced by files in the checkpoint, written once: a restart reads the same rows."""
    made, root = {}, store.where
    for name, source in setup.sources.items():
        data = source.data
        if isinstance(data, Files) or (isinstance(data, DataFrame) and data.isStreaming):
            made[name] = source
            continue
        area = f"inputs/{slug(name)}"
        files = Files(f"{root}/{area}/rows", "parquet")
        if store.exists(f"{area}/complete"):
            _check_input(store, area, files)
        else:
            Path(files.directory).parent.mkdir(parents=True, exist_ok=True)
            _write_input(data, Path(files.directory), setup.streams[name], source)
            with storage_errors(f"writing the rows of {name}"):
                written = InputFiles(tuple(store.settled(path) for path in _inside(store, files)))
                store.create_exclusive(f"{area}/complete", encode("inputs", written))
        made[name] = replace(source, data=files, bounded=True)
    return made


def _check_input(store: LocalStore, area: str, files: Files) -> None:
    """`StateError` TG505 unless the files of a bounded input are those that were written, byte for byte."""
    hint = "restore the whole checkpoint from a backup, or start with a new checkpoint and replay the input"
    path = f"{area}/complete"
    with storage_errors(f"reading {path}"):
        data = store.read_bytes(path)
    written = decode("inputs", InputFiles, data, code=DATA, where=path, hint=hint).files
    verify(store, written)
    for found in sorted(set(_inside(store, files)) - {file.path for file in written}):
        raise StateError(DATA, f"{found} in {store.where} was not there when the rows were written", hint=hint)


def _inside(store: LocalStore, files: Files) -> list[str]:
    return sorted(os.path.relpath(file.path, os.path.abspath(store.where)) for file in files.found())


def _write_input(data: Any, directory: Path, stream: StreamDef, source: Source) -> None:
    rows = str(directory)
    if isinstance(data, DataFrame):
        frame, names = needed_columns(data, stream, source)
        frame.toDF(*names).write.mode("overwrite").parquet(rows)
        return
    Path(rows).mkdir(exist_ok=True)
    judged = source.options(stream).judged(stream.schema)
    pq.write_table(input_table(data, judged), f"{rows}/rows.parquet")


def stored_statics(setup: Setup, root: str) -> dict[str, str]:
    """Static tables as files that workers read, named by their content; written at every start, so never damaged ones."""
    paths = {}
    for name, frame in setup.statics.items():
        path = Path(root) / "statics" / f"{slug(name)}-{static_digest(frame)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        pq.write_table(frame.to_arrow(compat_level=ARROW), temporary)
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
    return plainly_named(frame).select(*places), list(schema)
