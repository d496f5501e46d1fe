"""Event runs of a small batch, as arrays. `runtime.ordered.event_runs` does the same with Polars."""

from __future__ import annotations

import numpy as np

from tidegate.algebra.schema import Schema
from tidegate.algebra.types import BOOLEAN
from tidegate.runtime.arrays import UInt8Array
from tidegate.runtime.eval.small.terms import array_term, column_of
from tidegate.runtime.kernels.event_runs import EventArrays, encode, mark
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import RunEncoding
from tidegate.runtime.rows import Array, SmallRows, Unsupported, numbered


def encode_small_events(encoding: RunEncoding, rows: SmallRows, schema: Schema, slice_: Slice | None) -> SmallRows:
    """The rows that a buffer stores: events in the slice as event runs, the others one by one."""
    conditions = _bitmaps(encoding, rows, schema)
    events = rows.only((*encoding.keys, encoding.time))
    time, runs = events.columns[encoding.time], None
    if slice_ is not None and slice_.low <= slice_.high:
        runs = encode(
            EventArrays(_partitions(encoding, events), time), rows.height, conditions, slice_.low, slice_.high
        )
    if runs is None:
        until, holds = time, mark(conditions, rows.height)
    else:
        events, until, holds = events.take(runs.row), runs.until, runs.holds
    return SmallRows({**events.columns, encoding.until: until, encoding.holds: holds.view(np.int64)}, events.height)


def _bitmaps(encoding: RunEncoding, rows: SmallRows, schema: Schema) -> list[tuple[UInt8Array, int]]:
    """A bitmap of each condition, as `mark` takes it."""
    bitmaps = []
    for condition in encoding.conditions:
        value = array_term(condition, schema)
        if value is None:
            raise Unsupported
        bitmaps.append((np.packbits(column_of(value, BOOLEAN.kind, rows), bitorder="little"), 0))
    return bitmaps


def _partitions(encoding: RunEncoding, events: SmallRows) -> Array:
    """The partition number of every event."""
    if not encoding.keys:
        return np.zeros(events.height, dtype=np.int32)
    numbers, _ = numbered(events.columns[key] for key in encoding.keys)
    return numbers.astype(np.int32)
