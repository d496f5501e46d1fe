"""Kernels that Polars cannot express. Python evaluates them over the rows of a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import polars as pl

from tidegate.algebra.terms import Value
from tidegate.algebra.typed.kernels import Kernel, KernelFailure
from tidegate.algebra.typed.operations import KERNELS
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.algebra.types import INT64_MAX, INT64_MIN, DataType, Kind
from tidegate.runtime.eval.functions.frame import Form

_POLARS_TYPES: Final[dict[Kind, pl.DataType]] = {
    Kind.BOOLEAN: pl.Boolean(),
    Kind.BIGINT: pl.Int64(),
    Kind.DOUBLE: pl.Float64(),
    Kind.STRING: pl.String(),
}


def held_type(type_: DataType) -> pl.DataType:
    """The Polars type that values are held in."""
    return _POLARS_TYPES[type_.held_as]


def by_python(name: str) -> Form[pl.Expr]:
    """Evaluates a kernel in Python, once per combination of operands. The result is NULL where it fails or leaves
    int64.
    """
    kernel = KERNELS[name]
    function = kernel.python
    assert function is not None, name

    def over(term: TypedTerm, *given: Any) -> pl.Expr:
        count = len(term.args)
        operands, constants = given[:count], given[count:]
        dtype = held_type(term.type)
        row = pl.struct(operand.alias(str(place)) for place, operand in enumerate(operands))

        def computed(packed: pl.Series) -> pl.Series:
            columns = [packed.struct.field(str(place)).to_list() for place in range(count)]
            rows = list(zip(*columns, strict=True))
            results = {row: _value(kernel, function, row, constants) for row in set(rows)}
            return pl.Series(packed.name, [results[row] for row in rows], dtype=dtype)

        return row.map_batches(computed, return_dtype=dtype, is_elementwise=True)

    return Form(over, typed=True, null_fails=kernel.failure is not None, once=True, beyond=_is_null)


def _is_null(_: TypedTerm, __: Sequence[pl.Expr], value: pl.Expr) -> pl.Expr:
    return value.is_null()


def _value(kernel: Kernel, function: Callable[..., Value], row: tuple[Value, ...], constants: tuple[Any, ...]) -> Value:
    if not kernel.takes_null and None in row:
        return None
    try:
        value = function(*row, *constants)
    except KernelFailure:
        return None
    return None if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX else value
