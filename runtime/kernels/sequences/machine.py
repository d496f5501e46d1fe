"""Conditions over rows of a match: programs for a machine with a stack.

Each place of the stack has an integer or a double, in the same memory, and a mark: whether there is a value, none
(NULL), or whether an operation had no value, which ends the condition unless `and` and `or` do not ask for it.
"""

from __future__ import annotations

from typing import Final

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import DOUBLES, INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.threads import (
    COUNT,
    COUNT_VALUES,
    FIRST_ROWS,
    GREATEST_INT,
    LAST_ROWS,
    LEAST_DOUBLE,
    LEAST_INT,
    LOW_BITS,
    PROGRAM,
    PROGRAM_END,
    REGISTERS,
    SUM_OF_INTS,
)

NULL, VALUE, FAILED = 0, 1, 2
#: The most values that a program may have on the stack.
DEPTH: Final = 64

OPERATIONS: Final = (
    *("load_int", "load_double", "count", "constant_int", "constant_double", "null", "int_to_double"),
    *("sum_of_ints", "sum_of_doubles", "mean_of_ints", "mean_of_doubles"),
    *("and", "or", "not", "is_null", "is_not_null"),
    *("add_int", "sub_int", "mul_int", "neg_int", "abs_int"),
    *("add_double", "sub_double", "mul_double", "div_double", "neg_double", "abs_double"),
    *("eq_int", "ne_int", "lt_int", "le_int", "gt_int", "ge_int", "eq_null_safe_int"),
    *("eq_double", "ne_double", "lt_double", "le_double", "gt_double", "ge_double", "eq_null_safe_double"),
)
(
    # Loads, aggregates, logic, arithmetic, comparisons of integers, and of doubles.
    _LOAD_INT, _LOAD_DOUBLE, _COUNT, _CONSTANT_INT, _CONSTANT_DOUBLE, _NULL, _INT_TO_DOUBLE,
    _SUM_OF_INTS, _SUM_OF_DOUBLES, _MEAN_OF_INTS, _MEAN_OF_DOUBLES,
    _AND, _OR, _NOT, _IS_NULL, _IS_NOT_NULL,
    _ADD_INT, _SUB_INT, _MUL_INT, _NEG_INT, _ABS_INT,
    _ADD_DOUBLE, _SUB_DOUBLE, _MUL_DOUBLE, _DIV_DOUBLE, _NEG_DOUBLE, _ABS_DOUBLE,
    _EQ_INT, _NE_INT, _LT_INT, _LE_INT, _GT_INT, _GE_INT, _SAME_INT,
    _EQ_DOUBLE, _NE_DOUBLE, _LT_DOUBLE, _LE_DOUBLE, _GT_DOUBLE, _GE_DOUBLE, _SAME_DOUBLE,
) = range(len(OPERATIONS))  # fmt: skip

DOUBLE_TABLE = nb.types.Array(nb.float64, 2, "C", readonly=True)
MARKS = nb.types.Array(nb.uint8, 2, "C", readonly=True)
OUT_MARKS = nb.uint8[::1]
_LEAST: Final = -(1 << 63)
_LOW: Final = (1 << LOW_BITS) - 1
#: High words of totals that an integer of 64 bits has room for are less than this, and not less than its negative.
_HIGH: Final = 1 << (63 - LOW_BITS)
_WORD: Final = float(1 << LOW_BITS)
_GREATEST: Final = (1 << 63) - 1


@compiled(nb.int64(nb.float64, nb.float64), borrows=True)
def ordered(a: float, b: float) -> int:
    """-1, 0 or 1 as a is less than b, equal or greater. NaN equals NaN and is greatest."""
    if a != a or b != b:
        return (1 if a != a else 0) - (1 if b != b else 0)
    return (1 if a > b else 0) - (1 if a < b else 0)


@compiled(nb.int64(nb.int64, nb.int64, nb.int64), borrows=True)
def compared(operation: int, order: int, first: int) -> int:
    """Whether a comparison holds of two values in this order; `first` is the first of its six operations."""
    if operation == first:
        return 1 if order == 0 else 0
    if operation == first + 1:
        return 1 if order != 0 else 0
    if operation == first + 2:
        return 1 if order < 0 else 0
    if operation == first + 3:
        return 1 if order <= 0 else 0
    if operation == first + 4:
        return 1 if order > 0 else 0
    return 1 if order >= 0 else 0


@compiled(nb.boolean(nb.int64, nb.int64), borrows=True)
def overflows(a: int, b: int) -> bool:
    """Whether the product of two integers has more than 64 bits."""
    if a == 0 or b == 0 or a == 1 or b == 1:
        return False
    if a == _LEAST or b == _LEAST:
        return True
    most = _GREATEST // abs(b)
    # Of the products that are one more than the greatest integer, the negative one is the least.
    is_least = abs(a) == most + 1 and _GREATEST % abs(b) == abs(b) - 1 and (a < 0) != (b < 0)
    return abs(a) > most and not is_least


@compiled(
    nb.void(
        *(OUT_TABLE, nb.int64, nb.int64, nb.int64, TABLE, INTS, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT, OUT_DOUBLES),
    ),
    borrows=True,
)
def match_row(
    threads: Int64Array, thread: int, variable: int, row: int, groups: Int64Array, numbers: Int64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    stack: Int64Array, double_stack: Float64Array,
) -> None:  # fmt: skip
    """Notes in the registers of a thread that a row has a variable. The stack is overwritten."""
    for g in range(len(groups)):
        if not (groups[g, 1] >> variable) & 1:
            continue
        kind, begin, count, column = groups[g, 0], groups[g, 2], groups[g, 3], groups[g, 4]
        register = REGISTERS + numbers[begin]
        if kind == FIRST_ROWS:
            for k in range(begin, begin + count):
                if threads[thread, REGISTERS + numbers[k]] < 0:
                    threads[thread, REGISTERS + numbers[k]] = row
                    break
        elif kind == LAST_ROWS:
            for k in range(begin + count - 1, begin, -1):
                threads[thread, REGISTERS + numbers[k]] = threads[thread, REGISTERS + numbers[k - 1]]
            threads[thread, register] = row
        elif kind == COUNT:
            threads[thread, register] += 1
        elif marks[column, row] == VALUE:
            if kind == COUNT_VALUES:
                threads[thread, register] += 1
            elif kind < COUNT:
                best = threads[thread, register]
                if best < 0:
                    order = 1
                elif kind in (LEAST_INT, GREATEST_INT):
                    value, known = int_columns[column, row], int_columns[column, best]
                    order = (1 if value > known else 0) - (1 if value < known else 0)
                else:
                    order = ordered(double_columns[column, row], double_columns[column, best])
                if best >= 0 and kind in (LEAST_INT, LEAST_DOUBLE):
                    order = -order
                if order > 0:
                    threads[thread, register] = row
            else:
                threads[thread, register] += 1
                if kind == SUM_OF_INTS:
                    value = int_columns[column, row]
                    low = threads[thread, register + 2] + (value & _LOW)
                    threads[thread, register + 1] += (value >> LOW_BITS) + (low >> LOW_BITS)
                    threads[thread, register + 2] = low & _LOW
                else:
                    stack[0], stack[1] = threads[thread, register + 1], threads[thread, register + 2]
                    more = double_columns[column, row]
                    total = double_stack[0] + more
                    lost = 0.0
                    if total - total == 0.0:
                        other = total - double_stack[0]
                        lost = (double_stack[0] - (total - other)) + (more - other) + double_stack[1]
                        whole = total + lost
                        lost -= whole - total
                        total = whole
                    double_stack[0], double_stack[1] = total, lost
                    threads[thread, register + 1], threads[thread, register + 2] = stack[0], stack[1]


@compiled(
    nb.boolean(
        *(nb.int64, nb.int64, TABLE, INTS, DOUBLES, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, nb.int64, nb.int64, nb.int64, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def holds(
    begin: int, end: int, code: Int64Array, ints: Int64Array, doubles: Float64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, thread: int, row: int, none: int,
    stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
) -> bool:  # fmt: skip
    """Whether the program from `begin` to `end` yields true at a row, for a thread. `none` is the place of a row that
    there is not.

    `ints` and `doubles` are the constants. Columns have the values of terms by row. Arithmetic of integers whose first
    operand is not 0 has no value beyond plus or minus the constant that the second one names; a sum of integers is NULL
    beyond that, and the second operand of their mean is the scale of decimals.
    """
    top = -1
    for k in range(begin, end):
        operation, first, second = code[k, 0], code[k, 1], code[k, 2]
        if operation <= _LOAD_DOUBLE:
            at = row
            if first >= 0:
                at = threads[thread, REGISTERS + first]
                if at < 0:
                    at = none
            top += 1
            mark[top] = marks[second, at]
            if operation == _LOAD_INT:
                stack[top] = int_columns[second, at]
            else:
                double_stack[top] = double_columns[second, at]
        elif operation == _COUNT:
            top += 1
            mark[top], stack[top] = VALUE, threads[thread, REGISTERS + first]
        elif operation == _CONSTANT_INT:
            top += 1
            mark[top], stack[top] = VALUE, ints[first]
        elif operation == _CONSTANT_DOUBLE:
            top += 1
            mark[top], double_stack[top] = VALUE, doubles[first]
        elif operation == _NULL:
            top += 1
            mark[top], stack[top], double_stack[top] = NULL, 0, 0.0
        elif operation == _INT_TO_DOUBLE:
            double_stack[top] = float(stack[top])
        elif operation <= _MEAN_OF_DOUBLES:
            top += 1
            count, word, rest = (
                threads[thread, REGISTERS + first], threads[thread, REGISTERS + first + 1],
                threads[thread, REGISTERS + first + 2],
            )  # fmt: skip
            mark[top] = NULL if count == 0 else VALUE
            if operation == _SUM_OF_INTS:
                stack[top] = 0
                if word < -_HIGH or word >= _HIGH:
                    mark[top] = NULL
                else:
                    stack[top] = (word << LOW_BITS) + rest
                    if abs(stack[top]) > ints[second]:
                        mark[top] = NULL
            elif operation == _MEAN_OF_INTS:
                double_stack[top] = 0.0
                if count > 0:
                    double_stack[top] = (float(word) * _WORD + float(rest)) / doubles[second] / float(count)
            else:
                stack[top] = word
                if operation == _MEAN_OF_DOUBLES and count > 0:
                    double_stack[top] /= float(count)
        elif operation == _NOT:
            stack[top] = 1 - stack[top]
        elif operation in (_IS_NULL, _IS_NOT_NULL):
            if mark[top] != FAILED:
                is_null = mark[top] == NULL
                stack[top] = 1 if is_null == (operation == _IS_NULL) else 0
                mark[top] = VALUE
        elif operation == _NEG_INT:
            if mark[top] == VALUE and stack[top] == _LEAST:
                mark[top] = FAILED
            stack[top] = -stack[top]
        elif operation == _ABS_INT:
            if mark[top] == VALUE and stack[top] == _LEAST:
                mark[top] = FAILED
            stack[top] = abs(stack[top])
        elif operation == _NEG_DOUBLE:
            double_stack[top] = -double_stack[top]
        elif operation == _ABS_DOUBLE:
            double_stack[top] = abs(double_stack[top])
        elif operation in (_AND, _OR):
            top -= 1
            ends = 0 if operation == _AND else 1
            if mark[top] == FAILED or (mark[top] == VALUE and stack[top] == ends):
                continue
            if mark[top + 1] == FAILED or (mark[top + 1] == VALUE and stack[top + 1] == ends):
                mark[top], stack[top] = mark[top + 1], ends
            elif mark[top + 1] == NULL:
                mark[top] = NULL
        else:
            top -= 1
            left, right = mark[top], mark[top + 1]
            if left == FAILED or right == FAILED:
                mark[top] = FAILED
            elif operation in (_SAME_INT, _SAME_DOUBLE):
                same = left == right
                if same and left == VALUE:
                    if operation == _SAME_INT:
                        same = stack[top] == stack[top + 1]
                    else:
                        same = ordered(double_stack[top], double_stack[top + 1]) == 0
                mark[top], stack[top] = VALUE, 1 if same else 0
            elif left == NULL or right == NULL:
                mark[top] = NULL
            elif operation >= _EQ_DOUBLE:
                order = ordered(double_stack[top], double_stack[top + 1])
                stack[top] = compared(operation, order, _EQ_DOUBLE)
            elif operation >= _EQ_INT:
                a, b = stack[top], stack[top + 1]
                order = (1 if a > b else 0) - (1 if a < b else 0)
                stack[top] = compared(operation, order, _EQ_INT)
            elif operation == _ADD_DOUBLE:
                double_stack[top] += double_stack[top + 1]
            elif operation == _SUB_DOUBLE:
                double_stack[top] -= double_stack[top + 1]
            elif operation == _MUL_DOUBLE:
                double_stack[top] *= double_stack[top + 1]
            elif operation == _DIV_DOUBLE:
                if double_stack[top + 1] == 0.0:
                    mark[top] = FAILED
                else:
                    double_stack[top] /= double_stack[top + 1]
            else:
                a, b = stack[top], stack[top + 1]
                value = a
                if operation == _ADD_INT:
                    if (b > 0 and a > _GREATEST - b) or (b < 0 and a < _LEAST - b):
                        mark[top] = FAILED
                    else:
                        value = a + b
                elif operation == _SUB_INT:
                    if (b < 0 and a > _GREATEST + b) or (b > 0 and a < _LEAST + b):
                        mark[top] = FAILED
                    else:
                        value = a - b
                elif overflows(a, b):
                    mark[top] = FAILED
                else:
                    value = a * b
                if first != 0 and (value > ints[second] or value < -ints[second]):
                    mark[top] = FAILED
                stack[top] = value
    true: bool = mark[0] == VALUE and stack[0] == 1
    return true


@compiled(
    nb.int64(
        *(TABLE, TABLE, INTS, DOUBLES, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, nb.int64, nb.int64, nb.int64, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def failing_demands(
    demands: Int64Array, code: Int64Array, ints: Int64Array, doubles: Float64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, thread: int, row: int, none: int,
    stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
) -> int:  # fmt: skip
    """The demands whose programs are not true for a thread with a row, as a mask."""
    failing = 0
    for d in range(len(demands)):
        begin, end = demands[d, PROGRAM], demands[d, PROGRAM_END]
        if begin < end and not holds(
            begin, end, code, ints, doubles, int_columns, double_columns, marks,
            threads, thread, row, none, stack, double_stack, mark,
        ):  # fmt: skip
            failing |= 1 << d
    return failing
