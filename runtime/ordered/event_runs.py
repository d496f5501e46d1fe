"""Stretches at work: what a buffer stores of events, and what operators read of it (decision 14)."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.kernels.situations import mark
from tidegate.runtime.kernels.stretches import stretch
from tidegate.runtime.ordered.derive.events import bitmaps
from tidegate.runtime.ordered.partitions import Partitions
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer


def stretched(buffer: Buffer, rows: pl.DataFrame, slice_: Slice | None) -> pl.DataFrame:
    """What is stored of the rows of a buffer's chain: stretches of the events in a slice, the others one by one.

    All are stored one by one where two of a partition have the same time, for the increment to tell.
    """
    stretches = buffer.stretches
    assert stretches is not None
    conditions = bitmaps(stretches.conditions, rows, buffer.schema)
    if slice_ is not None and slice_.low <= slice_.high:
        partitions = Partitions.of(Schema(tuple(buffer.schema[name] for name in stretches.keys)))
        events = partitions.read(rows, stretches.time)
        found = stretch(events, rows.height, conditions, slice_.low, slice_.high)
        if found is not None:
            keys = partitions.rows(found.slot).get_columns() if stretches.keys else []
            times = pl.Series(stretches.time, found.time), pl.Series(stretches.until, found.until)
            return pl.DataFrame([*keys, *times, pl.Series(stretches.holds, found.holds.view(np.int64))])
    events_alone = rows.select(*stretches.keys, stretches.time)
    return events_alone.with_columns(
        pl.col(stretches.time).alias(stretches.until),
        pl.Series(stretches.holds, mark(conditions, rows.height).view(np.int64)),
    )
