"""How many paths of an automaton end at each row of a partition, without listing them (rule R47).

A row has a set of labels, as bits. A step leads from a state to another one by a row with its label; state 0 is the one
before the first row. With T the steps that a row allows, the paths up to the row before are `N`, a number for each
state; those that end at the row are `N T`, and afterwards there are `N (I + T)` where rows between two of a path may be
skipped, else `N T`, with one path in state 0. Numbers stop at `MANY`: what is more than that is as many.

Compiled once for these types into a cache beside this file (or numba's own, where that cannot be written).
"""

from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_TABLE, TABLE, compiled

#: As many paths, or more.
MANY: Final = (1 << 63) - 1
#: Columns of the table of steps.
SOURCE, LABEL, TARGET, ENDS = 0, 1, 2, 3


@compiled(nb.int64(nb.int64, nb.int64))
def _sum(first: int, second: int) -> int:
    return MANY if first > MANY - second else first + second


@compiled(nb.int64(nb.int64, nb.int64))
def _product(first: int, second: int) -> int:
    if first == 0 or second == 0:
        return 0
    return MANY if first > MANY // second else first * second


@compiled(nb.void(INTS, INTS, INTS, INTS, TABLE, nb.boolean, OUT_TABLE, OUT))
def count_all(
    offsets: Int64Array,
    time: Int64Array,
    labels: Int64Array,
    order: Int64Array,
    steps: Int64Array,
    skips: bool,
    numbers: Int64Array,
    found: Int64Array,
) -> None:
    """Counts the paths that end at the rows of each instant, in the place of its last row.

    Rows of partition p are `order[offsets[p]:offsets[p + 1]]`, in order; `numbers` has a row per partition: the paths
    up to the rows before in each state, of which those of state 0 are one. It is brought up to date.
    """
    new = np.zeros(numbers.shape[1], dtype=np.int64)
    for p in range(len(offsets) - 1):
        row = numbers[p]
        row[0] = 1
        ends = 0
        for place in range(offsets[p], offsets[p + 1]):
            at = order[place]
            if labels[at] != 0:
                new[:] = 0
                for step in range(steps.shape[0]):
                    if labels[at] >> steps[step, LABEL] & 1:
                        paths = row[steps[step, SOURCE]]
                        new[steps[step, TARGET]] = _sum(new[steps[step, TARGET]], paths)
                        if steps[step, ENDS]:
                            ends = _sum(ends, paths)
                for state in range(1, len(new)):
                    row[state] = _sum(row[state], new[state]) if skips else new[state]
            elif not skips:
                row[1:] = 0
            if place + 1 == offsets[p + 1] or time[order[place + 1]] != time[at]:
                found[at] = ends
                ends = 0


@compiled(nb.void(OUT_TABLE, OUT_TABLE, nb.int64, TABLE, nb.boolean))
def _prepend(product: Int64Array, spare: Int64Array, labels: int, steps: Int64Array, skips: bool) -> None:
    """The product of a row's matrix and another one."""
    states = product.shape[0]
    spare[:, :] = product
    for source in range(states):
        if not skips and source > 0:
            product[source, :] = 0
    for step in range(steps.shape[0]):
        if labels >> steps[step, LABEL] & 1:
            source, target = steps[step, SOURCE], steps[step, TARGET]
            for state in range(states):
                product[source, state] = _sum(product[source, state], spare[target, state])


@compiled(nb.void(OUT_TABLE, OUT, nb.int64, TABLE, nb.boolean))
def _append(product: Int64Array, spare: Int64Array, labels: int, steps: Int64Array, skips: bool) -> None:
    """The product of a matrix and that of a row."""
    for begin in range(product.shape[0]):
        row = product[begin]
        spare[:] = row
        if not skips:
            row[1:] = 0
        for step in range(steps.shape[0]):
            if labels >> steps[step, LABEL] & 1:
                target = steps[step, TARGET]
                row[target] = _sum(row[target], spare[steps[step, SOURCE]])


@compiled(nb.void(INTS, INTS, INTS, INTS, TABLE, nb.boolean, nb.int64, nb.int64, OUT))
def count_within(
    offsets: Int64Array,
    first: Int64Array,
    time: Int64Array,
    labels: Int64Array,
    steps: Int64Array,
    skips: bool,
    states: int,
    within: int,
    found: Int64Array,
) -> None:
    """Counts the paths that end at the new rows of each instant, in the place of its last row, of those that last
    `within` at most.

    Rows of partition p stand in order from `offsets[p]` on, new ones from `first[p]` on. Two stacks make a queue: for
    each row of the older part `older` has the paths over the rest of that part, and `newer` is the product of the
    matrices of the others. Every row is moved from one to the other once.
    """
    longest = 0
    for p in range(len(first)):
        longest = max(longest, offsets[p + 1] - offsets[p])
    older = np.zeros((longest, states), dtype=np.int64)
    newer, spare = np.zeros((states, states), dtype=np.int64), np.zeros((states, states), dtype=np.int64)
    paths, row = np.zeros(states, dtype=np.int64), np.zeros(states, dtype=np.int64)
    for p in range(len(first)):
        low = offsets[p]
        begin = divide = low
        ends = 0
        for at in range(first[p], offsets[p + 1]):
            moved = at == first[p]
            while begin < at and time[begin] < time[at] - within:
                begin += 1
                moved = True
            if moved and begin >= divide:
                newer[:, :] = 0
                for state in range(states):
                    newer[state, state] = 1
                for place in range(at - 1, begin - 1, -1):
                    _prepend(newer, spare, labels[place], steps, skips)
                    older[place - low, :] = newer[0]
                newer[:, :] = 0
                for state in range(states):
                    newer[state, state] = 1
                divide = at
            if moved:
                paths[:] = 0
                if begin < divide:
                    for source in range(states):
                        if older[begin - low, source]:
                            for state in range(states):
                                paths[state] = _sum(
                                    paths[state], _product(older[begin - low, source], newer[source, state])
                                )
                else:
                    paths[:] = newer[0]
            if labels[at] != 0 or not skips:
                row[:] = paths
                if not skips:
                    paths[1:] = 0
                for step in range(steps.shape[0]):
                    if labels[at] >> steps[step, LABEL] & 1:
                        number, target = row[steps[step, SOURCE]], steps[step, TARGET]
                        paths[target] = _sum(paths[target], number)
                        if steps[step, ENDS]:
                            ends = _sum(ends, number)
                _append(newer, row, labels[at], steps, skips)
            if at + 1 == offsets[p + 1] or time[at + 1] != time[at]:
                found[at] = ends
                ends = 0
