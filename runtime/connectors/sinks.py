"""Where results go: a directory of Parquet files, memory, or a function called after each commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.runtime.arguments import check_function
from tidegate.runtime.state.store.paths import local_directory


@checked_calls
@dataclass(frozen=True, slots=True)
class ParquetSink:
    """A directory in which whoever lists it sees the results of committed batches only, each exactly once.

    With `compact` small files become few between batches, as `tidegate compact` does it.
    """

    directory: str
    compact: bool = False


@dataclass(frozen=True, slots=True)
class MemorySink:
    """Results stay in the checkpoint's store and are read back with `results()`."""


@checked_calls
@dataclass(frozen=True, slots=True)
class CallbackSink:
    """A function called with the Arrow table of a batch's new rows after its commit: at least once, so make it
    idempotent.
    """

    function: Callable[[Any, int], None]


@dataclass(frozen=True, slots=True)
class DiscardSink:
    """Results are counted, and feed other queries, but are not written."""


Sink = ParquetSink | MemorySink | CallbackSink | DiscardSink


def is_gone(sink: Sink) -> TypeGuard[ParquetSink]:
    """Whether results go to a directory that is not there."""
    return isinstance(sink, ParquetSink) and not os.path.isdir(sink.directory)


@called()
def parquet_sink(directory: str | os.PathLike[str], *, compact: bool = False) -> ParquetSink:
    """A directory of Parquet files, readable by anyone as of the last commit.

    With `compact` its small files are merged as batches go by. Whoever lists it sees each row once, also meanwhile;
    whoever opens a file long after listing it may find it gone, and lists again. Not for a directory that is read as a
    stream. `StateError` TG500 for a place that is no local directory.

    Examples:
        >>> import polars as pl
        >>> results = program.run(inputs, sinks={"Unpaid": tg.parquet_sink("unpaid")}, checkpoint="state")
        >>> pl.read_parquet("unpaid/*.parquet")["customer"].to_list()
        ['Bob', 'Ada']
    """
    with Here():
        if not isinstance(compact, bool):
            raise QueryError(
                "TG401", f"compact={shown(compact)} is neither True nor False", hint="compact=True merges small files"
            )
        return ParquetSink(local_directory(directory), compact)


@called()
def callback(function: Callable[[Any, int], None]) -> CallbackSink:
    """Call `function(table, batch)` after each commit that has new rows: at least once.

    `table` is an Arrow table, `batch` its number. If the function fails, the batch is committed, and the run ends
    (TG414).

    Examples:
        >>> def remind(table, batch):
        ...     print(f"batch {batch}: remind", *table["customer"].to_pylist())
        >>> results = program.run(inputs, sinks={"Unpaid": tg.callback(remind)})
        batch 1: remind Bob Ada
    """
    with Here():
        check_function(
            "callback",
            function,
            ("a table", "the number of its batch"),
            "give a function that takes both: def seen(table, batch): ...",
        )
    return CallbackSink(function)
