"""Terms over small batches, as functions of columns, and conditions of the analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Lit, Term
from tidegate.algebra.typed.kernels import ATTRIBUTE, LITERAL
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.algebra.types import Kind
from tidegate.runtime.rows import Array, SmallRows, Unsupported, dtype_of

#: The value of a term for all rows: an array, or one value for all of them.
Value = Callable[[Mapping[str, Array]], Any]

_BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "eq": np.equal,
        "eq_null_safe": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "add_int": np.add,
        "sub_int": np.subtract,
        "mul_int": np.multiply,
        "floor_int": lambda a, unit: a - a % unit,
        "ceil_int": lambda a, unit: a + -a % unit,
    }
)
_DOUBLE: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {"add_double": np.add, "sub_double": np.subtract, "mul_double": np.multiply}
)
_SINGLE: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "not": np.logical_not,
        "neg_int": np.negative,
        "neg_double": np.negative,
        "abs_int": np.abs,
        "abs_double": np.abs,
        "int_to_double": lambda a: np.asarray(a, dtype=np.float64),
        "is_null": lambda _: False,
        "is_not_null": lambda _: True,
    }
)
_MANY: Final = MappingProxyType({"and": np.logical_and, "or": np.logical_or})


def small_forms() -> frozenset[str]:
    """The names of the supported kernels. Any other kernel leaves its step to Polars."""
    return frozenset({*_BINARY, *_DOUBLE, *_SINGLE, *_MANY, "if", "coalesce"})


def column_of(value: Value, kind: Kind, rows: SmallRows) -> Array:
    """A term's value as a column."""
    column: Array = np.asarray(value(rows.columns), dtype=dtype_of(kind))
    return column if column.ndim else np.full(rows.height, column)


@lru_cache(maxsize=4096)
def array_term(term: Term, schema: Schema) -> Value | None:
    """The term as a function of columns without NULL. None for a term that can fail, or that only Polars supports."""
    typed = resolve(term, schema)
    return None if typed.fallible else _compile(typed)


def _compile(term: TypedTerm) -> Value | None:
    source = term.source
    if term.kernel is ATTRIBUTE:
        assert isinstance(source, Attr)
        name = source.name
        return lambda columns: columns[name]
    if term.kernel is LITERAL:
        assert isinstance(source, Lit)
        value: Any = source.value
        if value is None or value != value:  # NaN differs from itself
            return None
        if isinstance(value, str):  # as NumPy's own text it would lose NUL at its end
            value = np.array(value, dtype=np.object_)
        return lambda _: value
    args = [_compile(arg) for arg in term.args]
    known = [arg for arg in args if arg is not None]
    if term.own_failure or len(known) < len(args):
        return None
    kernel = term.kernel.name
    if kernel in _MANY:
        combine = _MANY[kernel]
        return lambda columns: reduce(combine, [arg(columns) for arg in known])
    if kernel in _BINARY:
        return _both(_BINARY[kernel], *known)
    if kernel in _DOUBLE:
        return _number(_both(_DOUBLE[kernel], *known))
    if kernel in _SINGLE:
        return _of(_SINGLE[kernel], known[0])
    if kernel == "if":
        return lambda columns: np.where(*(arg(columns) for arg in known))
    return known[0] if kernel == "coalesce" else None


def _of(kernel: Callable[[Any], Any], value: Value) -> Value:
    return lambda columns: kernel(value(columns))


def _both(kernel: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    return lambda columns: kernel(left(columns), right(columns))


def _number(value: Value) -> Value:
    """A computed double; `Unsupported` where a value is NaN."""

    def checked(columns: Mapping[str, Array]) -> Any:
        with np.errstate(all="ignore"):
            numbers = value(columns)
        if np.isnan(numbers).any():
            raise Unsupported
        return numbers

    return checked
