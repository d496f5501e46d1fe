"""Stretches at work: what a buffer stores of events, and what operators read of it (decision 14)."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.embedded.events import Partitions, holding
from tidegate.runtime.kernels.situations import Status
from tidegate.runtime.kernels.stretches import stretch
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Buffer, Stretches


def stretched(buffer: Buffer, rows: pl.DataFrame, slice_: Slice | None) -> pl.DataFrame:
    """What is stored of the rows of a buffer's chain: stretches of the events in a slice, the others one by one."""
    stretches = buffer.stretches
    assert stretches is not None
    events = rows.select(
        *(pl.col(name) for name in (*stretches.keys, stretches.time)),
        pl.col(stretches.time).alias(stretches.until),
        pl.Series(stretches.holds, holding(stretches.conditions, rows, buffer.schema).view(np.int64)),
    )
    if slice_ is None or slice_.high < slice_.low:
        return events
    return _joined(stretches, events, buffer.schema, slice_)


def _joined(stretches: Stretches, events: pl.DataFrame, schema: Schema, slice_: Slice) -> pl.DataFrame:
    """Events joined to stretches; as they are where two of a partition have the same time, for the increment to tell."""
    keys = Schema(tuple(schema[name] for name in stretches.keys))
    partitions = Partitions.of(keys)
    slot = partitions.assign(events)
    for _ in range(2):
        time = events.get_column(stretches.time).to_numpy()
        holds = events.get_column(stretches.holds).to_numpy().view(np.uint64)
        status, begins, until = stretch(slot, time, holds, len(partitions), slice_.low, slice_.high)
        if status is not Status.UNSORTED:
            break
        order = np.lexsort((time, slot))
        events, slot = events[order], slot[order]
    if status is not Status.DONE:
        return events
    rows = np.flatnonzero(begins)  # few, as a rule
    return events[rows].with_columns(pl.Series(stretches.until, until[rows]))
