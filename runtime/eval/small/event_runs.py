"""Stretches of few events: what `runtime.ordered.event_runs` stores, made of arrays."""

from __future__ import annotations

import numpy as np

from tidegate.algebra.schema import Schema
from tidegate.algebra.types import BOOLEAN
from tidegate.runtime.eval.small.rows import Array, Few, Unfit, numbered
from tidegate.runtime.eval.small.terms import array_term, column_of
from tidegate.runtime.kernels.situations import Bytes, mark
from tidegate.runtime.kernels.stretches import EventArrays, stretch
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Stretches


def few_stretched(stretches: Stretches, rows: Few, schema: Schema, slice_: Slice | None) -> Few:
    """What is stored of the rows of a buffer's chain: stretches of the events in a slice, the others one by one."""
    conditions = _bitmaps(stretches, rows, schema)
    events = rows.only((*stretches.keys, stretches.time))
    time, found = events.columns[stretches.time], None
    if slice_ is not None and slice_.low <= slice_.high:
        found = stretch(EventArrays(_slots(stretches, events), time), rows.height, conditions, slice_.low, slice_.high)
    if found is None:
        until, holds = time, mark(conditions, rows.height)
    else:
        events, until, holds = events.take(found.row), found.until, found.holds
    return Few({**events.columns, stretches.until: until, stretches.holds: holds.view(np.int64)}, events.height)


def _bitmaps(stretches: Stretches, rows: Few, schema: Schema) -> list[tuple[Bytes, int]]:
    """Where each condition is true, as `mark` takes it."""
    found = []
    for condition in stretches.conditions:
        value = array_term(condition, schema)
        if value is None:
            raise Unfit
        found.append((np.packbits(column_of(value, BOOLEAN.kind, rows), bitorder="little"), 0))
    return found


def _slots(stretches: Stretches, events: Few) -> Array:
    """The partition of every event, as a number."""
    if not stretches.keys:
        return np.zeros(events.height, dtype=np.int32)
    numbers, _ = numbered(events.columns[key] for key in stretches.keys)
    return numbers.astype(np.int32)
