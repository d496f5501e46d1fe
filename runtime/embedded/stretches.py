"""Stretches at work: what a buffer stores of events, and what operators read of it (decision 14)."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.embedded.events import Partitions, bitmaps
from tidegate.runtime.kernels.situations import mark
from tidegate.runtime.kernels.stretches import Joined, stretch
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer


def stretched(buffer: Buffer, rows: pl.DataFrame, slice_: Slice | None) -> pl.DataFrame:
    """What is stored of the rows of a buffer's chain: stretches of the events in a slice, the others one by one.

    All are stored one by one where two of a partition have the same time, for the increment to tell.
    """
    stretches = buffer.stretches
    assert stretches is not None
    conditions = bitmaps(stretches.conditions, rows, buffer.schema)
    events = rows.select(*stretches.keys, stretches.time)
    time = events.get_column(stretches.time).to_numpy()
    found: Joined | None = None
    if slice_ is not None and slice_.low <= slice_.high:
        partitions = Partitions.of(Schema(tuple(buffer.schema[name] for name in stretches.keys)))
        found = stretch(partitions.numbering(events), time, conditions, slice_.low, slice_.high)
    if found is None:
        until, holds = time, mark(conditions, rows.height)
    else:
        events, until, holds = events[found.row], found.until, found.holds
    return events.with_columns(pl.Series(stretches.until, until), pl.Series(stretches.holds, holds.view(np.int64)))
