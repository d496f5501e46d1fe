"""Run-length encoding of events for a buffer (decision 14)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.runtime.arrays import UInt8Array
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.kernels.event_runs import encode, mark
from tidegate.runtime.ordered.partitions import Partitions
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer


def encode_events(buffer: Buffer, rows: pl.DataFrame, slice_: Slice | None) -> pl.DataFrame:
    """The rows that a buffer stores: events in the slice as event runs, the others one by one.

    All are stored one by one where two of a partition have the same time, for the increment to tell.
    """
    encoding = buffer.encoding
    assert encoding is not None
    conditions = bitmaps(encoding.conditions, rows, buffer.schema)
    if slice_ is not None and slice_.low <= slice_.high:
        partitions = Partitions.of(Schema(tuple(buffer.schema[name] for name in encoding.keys)))
        events = partitions.read(rows, encoding.time)
        event_runs = encode(events, rows.height, conditions, slice_.low, slice_.high)
        if event_runs is not None:
            keys = partitions.rows(event_runs.partition).get_columns() if encoding.keys else []
            times = pl.Series(encoding.time, event_runs.time), pl.Series(encoding.until, event_runs.until)
            return pl.DataFrame([*keys, *times, pl.Series(encoding.holds, event_runs.holds.view(np.int64))])
    events_alone = rows.select(*encoding.keys, encoding.time)
    return events_alone.with_columns(
        pl.col(encoding.time).alias(encoding.until),
        pl.Series(encoding.holds, mark(conditions, rows.height).view(np.int64)),
    )


def bitmaps(conditions: Sequence[Term], rows: pl.DataFrame, schema: Schema) -> list[tuple[UInt8Array, int]]:
    """A bitmap of each condition, as `mark` takes it."""
    if not rows.height:
        return []
    true = evaluated(rows, *(compile_term(condition, schema) for condition in conditions))
    return [_bitmap(column) for column in true.get_columns()]


def _bitmap(true: pl.Series) -> tuple[UInt8Array, int]:
    """A column of conditions as Arrow's bitmap, with the offset of its first bit. NULL is not true."""
    array = (true.fill_null(value=False) if true.null_count() else true).alias("").rechunk().to_arrow()
    return np.frombuffer(array.buffers()[1], dtype=np.uint8), array.offset
