"""Conditions over rows of a match: programs for a machine with a stack.

Each place of the stack has an integer, a double and a mark: whether there is a value, none (NULL), or whether an
operation had no value, which ends the condition unless `and` and `or` do not ask for it.
"""

from __future__ import annotations

from typing import Final

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import DOUBLES, INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.threads import REGISTERS

NULL, VALUE, FAILED = 0, 1, 2
#: The most values that a program may have on the stack.
DEPTH: Final = 64

OPERATIONS: Final = (
    *("load_int", "load_double", "count", "constant_int", "constant_double", "null", "int_to_double"),
    *("and", "or", "not", "is_null", "is_not_null"),
    *("add_int", "sub_int", "mul_int", "neg_int", "add_double", "sub_double", "mul_double"),
    *("eq_int", "ne_int", "lt_int", "le_int", "gt_int", "ge_int", "eq_null_safe_int"),
    *("eq_double", "ne_double", "lt_double", "le_double", "gt_double", "ge_double", "eq_null_safe_double"),
)
(
    # Loads, logic, arithmetic, comparisons of integers, and of doubles.
    _LOAD_INT, _LOAD_DOUBLE, _COUNT, _CONSTANT_INT, _CONSTANT_DOUBLE, _NULL, _INT_TO_DOUBLE,
    _AND, _OR, _NOT, _IS_NULL, _IS_NOT_NULL,
    _ADD_INT, _SUB_INT, _MUL_INT, _NEG_INT, _ADD_DOUBLE, _SUB_DOUBLE, _MUL_DOUBLE,
    _EQ_INT, _NE_INT, _LT_INT, _LE_INT, _GT_INT, _GE_INT, _SAME_INT,
    _EQ_DOUBLE, _NE_DOUBLE, _LT_DOUBLE, _LE_DOUBLE, _GT_DOUBLE, _GE_DOUBLE, _SAME_DOUBLE,
) = range(len(OPERATIONS))  # fmt: skip

DOUBLE_TABLE = nb.types.Array(nb.float64, 2, "C", readonly=True)
MARKS = nb.types.Array(nb.uint8, 2, "C", readonly=True)
OUT_MARKS = nb.uint8[::1]
_LEAST: Final = -(1 << 63)
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
    operand is not 0 has no value beyond plus or minus the constant that the second one names.
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
