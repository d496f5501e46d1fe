"""Stretches of few events: what `runtime.embedded.stretches` stores, made of arrays."""

from __future__ import annotations

import numpy as np

from tidegate.algebra.schema import Schema
from tidegate.algebra.types import BOOLEAN
from tidegate.runtime.embedded.few.rows import Array, Few, Unfit, numbered
from tidegate.runtime.embedded.few.terms import array_term, column_of
from tidegate.runtime.kernels.situations import Bits, Status, mark
from tidegate.runtime.kernels.stretches import stretch
from tidegate.runtime.plan.slices import Slice
from tidegate.runtime.plan.steps import Stretches


def few_stretched(stretches: Stretches, rows: Few, schema: Schema, slice_: Slice | None) -> Few:
    """What is stored of the rows of a buffer's chain: stretches of the events in a slice, the others one by one."""
    kept = {name: rows.columns[name] for name in (*stretches.keys, stretches.time)}
    holds, until = _holding(stretches, rows, schema).view(np.int64), rows.columns[stretches.time]
    events = Few({**kept, stretches.until: until, stretches.holds: holds}, rows.height)
    if slice_ is None or slice_.high < slice_.low or not rows.height:
        return events
    return _joined(stretches, events, slice_)


def _holding(stretches: Stretches, rows: Few, schema: Schema) -> Bits:
    """Bit j of every row: whether the j-th condition is true."""
    bitmaps = []
    for condition in stretches.conditions:
        value = array_term(condition, schema)
        if value is None:
            raise Unfit
        bitmaps.append((np.packbits(column_of(value, BOOLEAN.kind, rows), bitorder="little"), 0))
    return mark(bitmaps, rows.height)


def _joined(stretches: Stretches, events: Few, slice_: Slice) -> Few:
    """Events joined to stretches; as they are where two of a partition have the same time, for the increment to tell."""
    slot, count = _slots(stretches, events)
    for _ in range(2):
        time, holds = events.columns[stretches.time], events.columns[stretches.holds].view(np.uint64)
        status, begins, until = stretch(slot, time, holds, count, slice_.low, slice_.high)
        if status is not Status.UNSORTED:
            break
        order = np.lexsort((time, slot))
        events, slot = events.take(order), slot[order]
    if status is not Status.DONE:
        return events
    return Few({**events.columns, stretches.until: until}, events.height).where(begins)


def _slots(stretches: Stretches, events: Few) -> tuple[Array, int]:
    """The partition of every event, as a number, and how many there are."""
    if not stretches.keys:
        return np.zeros(events.height, dtype=np.int32), 1
    numbers, firsts = numbered(events.columns[key] for key in stretches.keys)
    return numbers.astype(np.int32), len(firsts)
