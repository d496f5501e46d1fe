"""Panes of windows: their order, the blocks that they are in, and the windows that end with them.

Panes stand by partition and number: pane `pane[i]` is of partition `of[i]`. Block b of partition p has `many` panes,
the last of them `b * many + phase[p]`. One pass takes a fraction of what NumPy takes for all steps. Compiled once for
these types into a cache beside this file.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.compiling import FLAGS, INTS, OUT, compiled

_THREE = nb.types.UniTuple(OUT, 3)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(nb.boolean(INTS, INTS))
def ascend(of: Int64Array, pane: Int64Array) -> bool:
    """Whether rows are by partition and pane."""
    i = 1
    while i < len(of) and (of[i] > of[i - 1] or (of[i] == of[i - 1] and pane[i] >= pane[i - 1])):
        i += 1
    return i >= len(of)


@compiled(OUT(INTS, INTS, INTS, nb.int64))
def blocks(pane: Int64Array, of: Int64Array, phase: Int64Array, many: int) -> Int64Array:
    """The block of each pane. Those that follow each other are mostly in one: a division takes as long as all the
    rest.
    """
    found = np.empty(len(pane), dtype=np.int64)
    block, first, last = 0, 1, 0
    for i in range(len(pane)):
        number = pane[i] - phase[of[i]]
        if number < first or number > last:
            block = -((-number) // many)
            last = block * many
            first = last - many + 1
        found[i] = block
    return found


@compiled(OUT(INTS, INTS))
def places(of: Int64Array, block: Int64Array) -> Int64Array:
    """The place of each pane in its block, from 0 on: how many of it stand before."""
    found = np.zeros(len(of), dtype=np.int64)
    for i in range(1, len(of)):
        if of[i] == of[i - 1] and block[i] == block[i - 1]:
            found[i] = found[i - 1] + 1
    return found


@compiled(OUT(INTS, INTS, FLAGS))
def places_from_end(of: Int64Array, block: Int64Array, some: BoolArray) -> Int64Array:
    """How many of its block stand behind each of some panes; 0 for the others."""
    found = np.zeros(len(of), dtype=np.int64)
    for i in range(len(of) - 2, -1, -1):
        if some[i] and some[i + 1] and of[i] == of[i + 1] and block[i] == block[i + 1]:
            found[i] = found[i + 1] + 1
    return found


@compiled(_THREE(INTS, INTS, INTS, INTS, INTS, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64))
def ending(  # type: ignore[no-untyped-def]  # numba
    of: Int64Array, pane: Int64Array, low: Int64Array, high: Int64Array, phase: Int64Array,
    many: int, reach: int, least: int, first: int, step: int,
):  # fmt: skip
    """The windows of partition p after `low[p]`, up to `high[p]`, of which a pane is the last one with rows: for each
    the place of that pane, its number, and the place again if the pane is in the window's own block, else -1.

    A pane is in windows up to `reach` panes later, with -1 up to the end of its block. Windows are those with a number
    from `least` on that is `first` or any number of steps from there.
    """
    rows, count = len(of), 0
    begin, until = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    end, last, start = np.empty(rows, dtype=np.int64), 0, 1
    for i in range(rows):
        p = of[i]
        number = pane[i] - phase[p]
        if number < start or number > last:
            last = -((-number) // many) * many
            start = last - many + 1
        end[i] = last + phase[p]
        until[i] = min(pane[i] + reach if reach >= 0 else end[i], high[p])
        if i + 1 < rows and of[i + 1] == p:
            until[i] = min(until[i], pane[i + 1] - 1)
        begin[i] = max(pane[i], low[p] + 1, least)
        if step > 1:
            begin[i] += (first - begin[i]) % step
        if until[i] >= begin[i]:
            count += (until[i] - begin[i]) // step + 1
    at, window, own = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    k = 0
    for i in range(rows):
        for w in range(begin[i], until[i] + 1, step):
            at[k], window[k], own[k] = i, w, i if w <= end[i] else -1
            k += 1
    return at, window, own
