"""Sums, least and greatest values over all paths of an automaton, without listing them (rule R47).

As `counts`, with an element of several numbers, its words, in the place of the number of paths. Elements form a
semiring: of two sets of paths that go on in one another there is the product, of two sets beside each other the sum.
The first word is the number of paths. Rows are marked for each word by label; a row gives a word one value. Of a set of
paths a word is

- `WITHOUT`: the number of those without a marked row, whose value is 0, or 1 where it is as if it were not marked; of a
  word that marks none, their number;
- `AT_LAST`, `AT_FIRST`, `AT_EACH`: the sum of the values of the last, the first or each marked row of each path;
- `LEAST_AT_LAST`, `LEAST_AT_FIRST`, `LEAST`: the least of the values of the last, the first or any marked row;
- `LEAST_GREATEST`: the least, over the paths, of the greatest value of a marked row;
- `SHORTEST`, `LONGEST`: the least and the greatest, over the paths, of the sum of the values of their marked rows;
- `DOUBLE_AT_LAST`, `DOUBLE_AT_FIRST`, `DOUBLE_AT_EACH`: sums of doubles, which words hold by their bits, with what the
  sum has lost by rounding in the word behind, `LOST`. They are of use where no number of paths has stopped.

`beside` names for each word the one that tells the paths without a row marked for it. Values of sums are not negative.
Sums stop at `MANY`: what is more than that is as much, so that a number below is exact whatever was added before.

Compiled once for these types into a cache beside this file (or numba's own, where that cannot be written).
"""

from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_CUBE, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.partitions.running import double_sum
from tidegate.runtime.kernels.paths.counts import ENDS, LABEL, MANY, SOURCE, TARGET

#: What a word is.
WITHOUT, AT_LAST, AT_FIRST, AT_EACH = 0, 1, 2, 3
LEAST_AT_LAST, LEAST_AT_FIRST, LEAST, LEAST_GREATEST, SHORTEST, LONGEST = 4, 5, 6, 7, 8, 9
DOUBLE_AT_LAST, DOUBLE_AT_FIRST, DOUBLE_AT_EACH, LOST = 10, 11, 12, 13
#: Rows of the table of words: what each is, the labels of rows that are marked for it as bits, and `beside`.
KIND, MARKS, BESIDE = 0, 1, 2
#: Numbers up to here have a product that is one.
_SMALL: Final = 1 << 31
#: By this a double is split in two of 26 bits, which have exact products.
_SPLIT: Final = 134_217_729.0

_DOUBLE = nb.types.UniTuple(nb.float64, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(nb.int64(nb.int64, nb.int64))
def _added(first: int, second: int) -> int:
    return MANY if first > MANY - second else first + second


@compiled(nb.int64(nb.int64, nb.int64))
def _times(first: int, second: int) -> int:
    if first < _SMALL and second < _SMALL:
        return first * second
    if first == 0 or second == 0:
        return 0
    return MANY if first > MANY // second else first * second


@compiled(_DOUBLE(nb.float64, nb.float64, nb.float64))
def _double_product(high: float, low: float, times: float):  # type: ignore[no-untyped-def]  # numba
    """A double with what it has lost, so many times; `times` has 32 bits."""
    product, split = high * times, _SPLIT * high
    if not np.isfinite(product) or not np.isfinite(split):
        return product, 0.0
    first = split - (split - high)
    rest = high - first
    split = _SPLIT * times
    most = split - (split - times)
    least = times - most
    lost = ((first * most - product) + first * least + rest * most) + rest * least + low * times
    whole = product + lost
    return whole, lost - (whole - product)


@compiled(_DOUBLE(nb.float64, nb.float64, nb.int64))
def _double_times(high: float, low: float, times: int):  # type: ignore[no-untyped-def]  # numba
    """A double with what it has lost, so many times; it is nothing where that is no time."""
    if times == 0 or high == 0.0:
        return 0.0, 0.0
    if times == 1 or not np.isfinite(high):
        return high, low
    if times < 1 << 32:
        return _double_product(high, low, float(times))
    whole, lost = _double_product(high, low, float(times >> 32))
    rest, rest_lost = _double_product(high, low, float(times & ((1 << 32) - 1)))
    return double_sum(whole * 4_294_967_296.0, lost * 4_294_967_296.0, rest, rest_lost)


@compiled(nb.void(TABLE, OUT))
def _clear(words: Int64Array, element: Int64Array) -> None:
    """The element of no path."""
    for word in range(words.shape[1]):
        kind = words[KIND, word]
        element[word] = -1 if kind == LONGEST else MANY if LEAST_AT_LAST <= kind <= SHORTEST else 0


@compiled(nb.void(TABLE, OUT))
def _begin(words: Int64Array, element: Int64Array) -> None:
    """The element of one path without rows."""
    for word in range(words.shape[1]):
        kind = words[KIND, word]
        if kind == WITHOUT:
            element[word] = 1
        elif kind >= SHORTEST or kind < LEAST_AT_LAST:
            element[word] = 0
        else:
            element[word] = MANY


@compiled(nb.void(TABLE, INTS, nb.int64, OUT))
def _of_row(words: Int64Array, values: Int64Array, label: int, element: Int64Array) -> None:
    """The element of the path of one row by a label."""
    for word in range(words.shape[1]):
        kind = words[KIND, word]
        if words[MARKS, word] >> label & 1:
            element[word] = values[word]
        elif kind == WITHOUT:
            element[word] = 1
        elif kind >= SHORTEST or kind < LEAST_AT_LAST:
            element[word] = 0
        else:
            element[word] = MANY


@compiled(nb.void(TABLE, OUT, OUT))
def _add(words: Int64Array, total: Int64Array, other: Int64Array) -> None:
    """Adds the paths of another element."""
    for word in range(words.shape[1]):
        kind = words[KIND, word]
        if kind >= DOUBLE_AT_LAST:
            if kind != LOST:
                doubles, others = total.view(np.float64), other.view(np.float64)
                doubles[word], doubles[word + 1] = double_sum(
                    doubles[word], doubles[word + 1], others[word], others[word + 1]
                )
        elif kind < LEAST_AT_LAST:
            total[word] = _added(total[word], other[word])
        elif kind == LONGEST:
            total[word] = max(total[word], other[word])
        else:
            total[word] = min(total[word], other[word])


@compiled(nb.void(TABLE, OUT, OUT, OUT))
def _add_product(words: Int64Array, total: Int64Array, left: Int64Array, right: Int64Array) -> None:
    """Adds the paths of one element that go on as those of another."""
    if left[0] == 0 or right[0] == 0:
        return
    for word in range(words.shape[1]):
        kind, beside = words[KIND, word], words[BESIDE, word]
        first, second = left[word], right[word]
        if kind == WITHOUT:
            total[word] = _added(total[word], _times(first, second))
        elif kind == AT_LAST:
            total[word] = _added(total[word], _added(_times(first, right[beside]), _times(left[0], second)))
        elif kind == AT_FIRST:
            total[word] = _added(total[word], _added(_times(first, right[0]), _times(left[beside], second)))
        elif kind == AT_EACH:
            total[word] = _added(total[word], _added(_times(first, right[0]), _times(left[0], second)))
        elif kind == LEAST_AT_LAST:
            total[word] = min(total[word], second if right[beside] == 0 else min(first, second))
        elif kind == LEAST_AT_FIRST:
            total[word] = min(total[word], first if left[beside] == 0 else min(first, second))
        elif kind == LEAST:
            total[word] = min(total[word], first, second)
        elif kind == LEAST_GREATEST:
            both = max(first, second)
            if right[beside] != 0:
                both = min(both, first)
            if left[beside] != 0:
                both = min(both, second)
            total[word] = min(total[word], both)
        elif kind == SHORTEST:
            total[word] = min(total[word], _added(first, second))
        elif kind == LONGEST:
            total[word] = max(total[word], _added(first, second))
        elif kind != LOST:
            of_left = right[beside] if kind == DOUBLE_AT_LAST else right[0]
            of_right = left[beside] if kind == DOUBLE_AT_FIRST else left[0]
            doubles, lefts, rights = total.view(np.float64), left.view(np.float64), right.view(np.float64)
            high, low = _double_times(lefts[word], lefts[word + 1], of_left)
            also_high, also_low = _double_times(rights[word], rights[word + 1], of_right)
            high, low = double_sum(high, low, also_high, also_low)
            doubles[word], doubles[word + 1] = double_sum(doubles[word], doubles[word + 1], high, low)


@compiled(nb.void(INTS, INTS, INTS, INTS, TABLE, TABLE, TABLE, nb.boolean, OUT_CUBE, OUT_TABLE))
def total_all(
    offsets: Int64Array,
    time: Int64Array,
    labels: Int64Array,
    order: Int64Array,
    values: Int64Array,
    words: Int64Array,
    steps: Int64Array,
    skips: bool,
    elements: Int64Array,
    found: Int64Array,
) -> None:
    """The elements of the paths that end at the rows of each instant, in the place of its last row.

    Rows of partition p are `order[offsets[p]:offsets[p + 1]]`, in order; `values` has a row for each of them, with a
    value for each word. `elements` has those of the paths up to the rows before, by partition and state; state 0 is set
    here. They are brought up to date.
    """
    states, many = elements.shape[1], words.shape[1]
    new = np.zeros((states, many), dtype=np.int64)
    ends, its = np.zeros(many, dtype=np.int64), np.zeros(many, dtype=np.int64)
    for p in range(len(offsets) - 1):
        row = elements[p]
        _begin(words, row[0])
        _clear(words, ends)
        for place in range(offsets[p], offsets[p + 1]):
            at = order[place]
            if labels[at] != 0:
                for state in range(1, states):
                    _clear(words, new[state])
                label = -1
                for step in range(steps.shape[0]):
                    if labels[at] >> steps[step, LABEL] & 1 and row[steps[step, SOURCE], 0] != 0:
                        if label != steps[step, LABEL]:
                            label = steps[step, LABEL]
                            _of_row(words, values[at], label, its)
                        _add_product(words, new[steps[step, TARGET]], row[steps[step, SOURCE]], its)
                        if steps[step, ENDS]:
                            _add_product(words, ends, row[steps[step, SOURCE]], its)
                for state in range(1, states):
                    if skips:
                        _add(words, row[state], new[state])
                    else:
                        row[state] = new[state]
            elif not skips:
                for state in range(1, states):
                    _clear(words, row[state])
            if place + 1 == offsets[p + 1] or time[order[place + 1]] != time[at]:
                found[at] = ends
                _clear(words, ends)


@compiled(nb.void(TABLE, OUT_CUBE))
def _identity(words: Int64Array, product: Int64Array) -> None:
    """The matrix of the paths without rows."""
    for source in range(product.shape[0]):
        for target in range(product.shape[1]):
            if source == target:
                _begin(words, product[source, target])
            else:
                _clear(words, product[source, target])


@compiled(nb.void(OUT_CUBE, OUT_CUBE, TABLE, INTS, nb.int64, TABLE, nb.boolean, OUT))
def _prepend(
    product: Int64Array,
    spare: Int64Array,
    words: Int64Array,
    values: Int64Array,
    labels: int,
    steps: Int64Array,
    skips: bool,
    its: Int64Array,
) -> None:
    """The product of a row's matrix and another one."""
    states = product.shape[0]
    spare[:, :, :] = product
    if not skips:
        for source in range(1, states):
            for state in range(states):
                _clear(words, product[source, state])
    for step in range(steps.shape[0]):
        if labels >> steps[step, LABEL] & 1:
            source, target = steps[step, SOURCE], steps[step, TARGET]
            _of_row(words, values, steps[step, LABEL], its)
            for state in range(states):
                _add_product(words, product[source, state], its, spare[target, state])


@compiled(nb.void(OUT_TABLE, OUT_TABLE, TABLE, INTS, nb.int64, TABLE, nb.boolean, OUT))
def _append(
    row: Int64Array,
    spare: Int64Array,
    words: Int64Array,
    values: Int64Array,
    labels: int,
    steps: Int64Array,
    skips: bool,
    its: Int64Array,
) -> None:
    """The product of the paths from one state and a row's matrix."""
    spare[:, :] = row
    if not skips:
        for state in range(1, row.shape[0]):
            _clear(words, row[state])
    for step in range(steps.shape[0]):
        source = steps[step, SOURCE]
        if labels >> steps[step, LABEL] & 1 and spare[source, 0] != 0:
            _of_row(words, values, steps[step, LABEL], its)
            _add_product(words, row[steps[step, TARGET]], spare[source], its)


@compiled(nb.void(OUT, OUT_TABLE, TABLE, INTS, nb.int64, TABLE, OUT))
def _end(
    ends: Int64Array,
    row: Int64Array,
    words: Int64Array,
    values: Int64Array,
    labels: int,
    steps: Int64Array,
    its: Int64Array,
) -> None:
    """Adds the paths that end with a row, of those up to the row before."""
    for step in range(steps.shape[0]):
        source = steps[step, SOURCE]
        if steps[step, ENDS] and labels >> steps[step, LABEL] & 1 and row[source, 0] != 0:
            _of_row(words, values, steps[step, LABEL], its)
            _add_product(words, ends, row[source], its)


@compiled(nb.int64(INTS, INTS, INTS, nb.int64))
def _longest_window(offsets: Int64Array, first: Int64Array, time: Int64Array, within: int) -> int:
    """How many rows there are at most of which a new one can be the last and all are within."""
    longest = 0
    for p in range(len(first)):
        begin = offsets[p]
        for at in range(first[p], offsets[p + 1]):
            while time[begin] < time[at] - within:
                begin += 1
            longest = max(longest, at - begin)
    return longest


@compiled(nb.void(INTS, INTS, INTS, INTS, TABLE, TABLE, TABLE, nb.boolean, nb.int64, nb.int64, OUT_TABLE))
def total_within(
    offsets: Int64Array,
    first: Int64Array,
    time: Int64Array,
    labels: Int64Array,
    values: Int64Array,
    words: Int64Array,
    steps: Int64Array,
    skips: bool,
    states: int,
    within: int,
    found: Int64Array,
) -> None:
    """The elements of the paths that end at the new rows of each instant, in the place of its last row, of those that
    last `within` at most.

    Rows of partition p stand in order from `offsets[p]` on, new ones from `first[p]` on. Two stacks make a queue, as
    where paths are counted.
    """
    many = words.shape[1]
    older = np.zeros((_longest_window(offsets, first, time, within), states, many), dtype=np.int64)
    newer, spare = np.zeros((states, states, many), dtype=np.int64), np.zeros((states, states, many), dtype=np.int64)
    paths, row = np.zeros((states, many), dtype=np.int64), np.zeros((states, many), dtype=np.int64)
    ends, its = np.zeros(many, dtype=np.int64), np.zeros(many, dtype=np.int64)
    for p in range(len(first)):
        begin = divide = bottom = offsets[p]
        _clear(words, ends)
        for at in range(first[p], offsets[p + 1]):
            moved = at == first[p]
            while begin < at and time[begin] < time[at] - within:
                begin += 1
                moved = True
            if moved and begin >= divide:
                _identity(words, newer)
                bottom = begin
                for place in range(at - 1, begin - 1, -1):
                    _prepend(newer, spare, words, values[place], labels[place], steps, skips, its)
                    older[place - bottom] = newer[0]
                _identity(words, newer)
                divide = at
            if moved:
                if begin < divide:
                    for state in range(states):
                        _clear(words, paths[state])
                    for source in range(states):
                        for state in range(states):
                            _add_product(words, paths[state], older[begin - bottom, source], newer[source, state])
                else:
                    paths[:, :] = newer[0]
            if labels[at] != 0 or not skips:
                _end(ends, paths, words, values[at], labels[at], steps, its)
                _append(paths, row, words, values[at], labels[at], steps, skips, its)
                for source in range(states):
                    _append(newer[source], row, words, values[at], labels[at], steps, skips, its)
            if at + 1 == offsets[p + 1] or time[at + 1] != time[at]:
                found[at] = ends
                _clear(words, ends)
