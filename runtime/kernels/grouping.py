"""Grouping by a hash table, and merging of aggregate states by group, over columns of 64-bit numbers.

Compiled once for these types into a cache beside this file (or numba's own, where that cannot be written).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from tidegate.runtime.kernels.compiling import (
    DOUBLES,
    FLAGS,
    INTS,
    OUT,
    OUT_DOUBLES,
    OUT_FLAGS,
    OUT_NUMBERS,
    compiled,
)

_FREE = -1
#: Keys of which so many cells at most for each row cover all combinations are looked up, not hashed.
CELLS_PER_ROW = 2


def number_groups(columns: Sequence[Int64Array]) -> tuple[Int64Array, Int64Array]:
    """Numbers the groups of keys in columns by first appearance: the group of every row, and the first row of each."""
    width, rows = len(columns), len(columns[0])
    numbers = np.empty(rows, dtype=np.int64)
    firsts = np.empty(rows, dtype=np.int64)
    if rows:
        bounds = [(int(column.min()), int(column.max())) for column in columns]
        steps = [1] * width
        if _count(bounds, steps) > CELLS_PER_ROW * rows:
            steps = [_step_of(column, *ends) for column, ends in zip(columns, bounds, strict=True)]
        cells = _count(bounds, steps)
        if cells <= CELLS_PER_ROW * rows:
            key, least = (columns[0], bounds[0][0]) if steps == [1] else (_cells(columns, bounds, steps), 0)
            groups = _look_up(key, least, np.full(cells, _FREE, dtype=np.int32), numbers, firsts)
            return numbers, firsts[:groups]
    keys = np.ascontiguousarray(np.stack(columns))
    size = 1 << 13
    table, known = np.full(size, _FREE, dtype=np.int32), np.empty((size, width), dtype=np.int64)
    row = groups = 0
    while True:
        row, groups = _fill(keys, row, groups, table, known, numbers, firsts)
        if row == rows:
            return numbers, firsts[:groups]
        # Never grown inside the loop over rows: that would cost every row, not only those that come too many.
        size *= 4
        table, smaller = np.full(size, _FREE, dtype=np.int32), known
        known = np.empty((size, width), dtype=np.int64)
        known[:groups] = smaller[:groups]
        _enter(known, groups, table)


def _count(bounds: Sequence[tuple[int, int]], steps: Sequence[int]) -> int:
    """The cells of a table of all combinations of keys within these bounds, each in steps from its least one."""
    return math.prod((greatest - least) // step + 1 for (least, greatest), step in zip(bounds, steps, strict=True))


def _cells(columns: Sequence[Int64Array], bounds: Sequence[tuple[int, int]], steps: Sequence[int]) -> Int64Array:
    """The cell of every row in such a table, in row-major order. It has less than 2^63 cells."""
    cells = np.zeros(len(columns[0]), dtype=np.int64)
    for column, (least, greatest), step in zip(columns, bounds, steps, strict=True):
        _enter_cells(cells, column, least, step, (greatest - least) // step + 1)
    return cells


@compiled(nb.void(OUT, INTS, nb.int64, nb.int64, nb.int64), nogil=True)
def _enter_cells(cells: Int64Array, column: Int64Array, least: int, step: int, width: int) -> None:
    """Adds a column of keys, of which there are `width`, to the cells of those before. Equal keys in succession are
    divided once: a division takes as long as all the rest.
    """
    last, number = least, 0
    for row in range(len(cells)):
        if step == 1:
            number = column[row] - least
        elif column[row] != last:
            last = column[row]
            number = (last - least) // step
        cells[row] = cells[row] * width + number


def _step_of(column: Int64Array, least: int, greatest: int) -> int:
    """The greatest number of which all keys are multiples, counted from the least one, such as ends of windows are. It
    is 1 where all are equal, and where they are further apart than 64 bits hold.
    """
    return _step(column, least) if (greatest - least).bit_length() < 64 else 1


@compiled(nb.int64(INTS, nb.int64), nogil=True)
def _step(column: Int64Array, least: int) -> int:
    step, last = 0, least
    for key in column:
        if key != last:
            last, rest = key, key - least
            while rest:
                step, rest = rest, step % rest
            if step == 1:
                break
    return max(step, 1)


@compiled(nb.int64(INTS, nb.int64, OUT_NUMBERS, OUT, OUT), nogil=True)
def _look_up(key: Int64Array, least: int, table: Int32Array, numbers: Int64Array, firsts: Int64Array) -> int:
    """Numbers all rows by a table with a cell for each key. Returns the count of groups."""
    groups = 0
    for row in range(len(key)):
        cell = key[row] - least
        if table[cell] == _FREE:
            table[cell] = groups
            firsts[groups] = row
            groups += 1
        numbers[row] = table[cell]
    return groups


@compiled("uint64(uint64, int64)", inline="always")
def _mixed(mixed: Any, key: int) -> Any:
    mixed = (mixed ^ np.uint64(key)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@compiled(
    "UniTuple(int64, 2)(int64[:, ::1], int64, int64, int32[::1], int64[:, ::1], int64[::1], int64[::1])",
    nogil=True,
)
def _fill(
    keys: Int64Array,
    row: int,
    groups: int,
    table: Int32Array,
    known: Int64Array,
    numbers: Int64Array,
    firsts: Int64Array,
) -> tuple[int, int]:
    """Numbers rows from `row` on until the table is half full. Returns the next row and the count of groups so far.

    `known` has the keys of every group side by side: those of its first row are far apart in memory.
    """
    mask = np.uint64(table.shape[0] - 1)
    width = keys.shape[0]
    while row < keys.shape[1] and 2 * groups < table.shape[0]:
        mixed = np.uint64(0)
        for key in range(width):
            mixed = _mixed(mixed, keys[key, row])
        place = mixed & mask
        while True:
            group = table[place]
            if group == _FREE:
                table[place] = groups
                numbers[row] = groups
                firsts[groups] = row
                for key in range(width):
                    known[groups, key] = keys[key, row]
                groups += 1
                break
            same = True
            for key in range(width):
                same &= keys[key, row] == known[group, key]
            if same:
                numbers[row] = group
                break
            place = (place + np.uint64(1)) & mask
        row += 1
    return row, groups


@compiled("void(int64[:, ::1], int64, int32[::1])", nogil=True)
def _enter(known: Int64Array, groups: int, table: Int32Array) -> None:
    """Enters known groups, all different, into an empty table."""
    mask = np.uint64(table.shape[0] - 1)
    for group in range(groups):
        mixed = np.uint64(0)
        for key in range(known.shape[1]):
            mixed = _mixed(mixed, known[group, key])
        place = mixed & mask
        while table[place] != _FREE:
            place = (place + np.uint64(1)) & mask
        table[place] = group


@compiled(nb.void(INTS, INTS, FLAGS, OUT, OUT_FLAGS), nogil=True)
def add_ints(numbers: Int64Array, values: Int64Array, valid: BoolArray, total: Int64Array, seen: BoolArray) -> None:
    """Adds each group's valid values to its total, and marks the groups that have some."""
    for row in range(numbers.shape[0]):
        if valid[row]:
            total[numbers[row]] += values[row]
            seen[numbers[row]] = True


@compiled(nb.void(INTS, INTS, FLAGS, OUT, OUT, OUT_FLAGS), nogil=True)
def add_halves(
    numbers: Int64Array, values: Int64Array, valid: BoolArray, high: Int64Array, low: Int64Array, seen: BoolArray
) -> None:
    """Adds the high and the low 32 bits of each group's valid values, so that neither total can overflow."""
    for row in range(numbers.shape[0]):
        if valid[row]:
            group, value = numbers[row], values[row]
            high[group] += value >> 32
            low[group] += value & 0xFFFFFFFF
            seen[group] = True


@compiled(nb.void(INTS, DOUBLES, FLAGS, OUT_DOUBLES, OUT_DOUBLES, OUT_FLAGS), nogil=True)
def add_doubles(
    numbers: Int64Array, values: Float64Array, valid: BoolArray, high: Float64Array, low: Float64Array, seen: BoolArray
) -> None:
    """Adds each group's values to its sum `high + low` of about 106 bits. Values are finite and far from overflow."""
    for row in range(numbers.shape[0]):
        if valid[row]:
            group = numbers[row]
            value, before = values[row], high[group]
            total = before + value
            part = total - before
            lost = (before - (total - part)) + (value - part) + low[group]
            high[group] = total + lost
            low[group] = lost - (high[group] - total)
            seen[group] = True


@compiled(nb.void(INTS, INTS, FLAGS, nb.boolean, OUT, OUT_FLAGS), nogil=True)
def best_ints(
    numbers: Int64Array, values: Int64Array, valid: BoolArray, greatest: bool, best: Int64Array, seen: BoolArray
) -> None:
    """The least or greatest valid value of each group."""
    for row in range(numbers.shape[0]):
        if valid[row]:
            group, value = numbers[row], values[row]
            if not seen[group] or (value > best[group] if greatest else value < best[group]):
                best[group] = value
                seen[group] = True


@compiled(nb.void(INTS, DOUBLES, FLAGS, nb.boolean, OUT_DOUBLES, OUT_FLAGS), nogil=True)
def best_doubles(
    numbers: Int64Array, values: Float64Array, valid: BoolArray, greatest: bool, best: Float64Array, seen: BoolArray
) -> None:
    """The least or greatest valid value of each group; NaN is greater than any other value."""
    for row in range(numbers.shape[0]):
        if valid[row]:
            group, value = numbers[row], values[row]
            known = best[group]
            if greatest:
                better = value > known or (np.isnan(value) and not np.isnan(known))
            else:
                better = value < known or (np.isnan(known) and not np.isnan(value))
            if not seen[group] or better:
                best[group] = value
                seen[group] = True
