"""The one table of operations: what each is called, which types it takes and yields, and which kernel computes it.

`resolve` turns a term into typed kernels (`typed.py`). A function is an entry of its family in `functions/`, with its
kernel; each engine has a form of the kernel in a table of its own. Where engines could not agree one kernel computes it
on all of them, or the operation is narrower than in SQL: casing is of ASCII letters only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions import (
    calendar,
    casts,
    doubles,
    encoded,
    instants,
    logic,
    numbers,
    patterns,
    rounding,
    text,
)
from tidegate.algebra.functions.rules import Operation, common_type
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term, unknown_attribute
from tidegate.algebra.typed.kernels import Kernel
from tidegate.algebra.typed.terms import TypedTerm, attribute_leaf, literal_leaf, parameter_leaf, placeholder
from tidegate.algebra.types import BIGINT, DataType

if TYPE_CHECKING:
    from tidegate.algebra.schema import Attribute

__all__ = ["KERNELS", "OPERATIONS", "SECTIONS", "common_type", "operation", "resolve", "result_type"]

#: Operations by family, as the manual lists them.
SECTIONS: Mapping[str, tuple[Operation, ...]] = MappingProxyType(
    {
        "Conditions": logic.OPERATIONS,
        "Numbers": (*numbers.OPERATIONS, *rounding.OPERATIONS, *doubles.OPERATIONS, *numbers.TRY_OPERATIONS),
        "Time": (*instants.OPERATIONS, *calendar.OPERATIONS),
        "Strings": (*text.OPERATIONS, *patterns.OPERATIONS, *encoded.OPERATIONS),
        "Casts": casts.OPERATIONS,
    }
)
OPERATIONS: Mapping[str, Operation] = MappingProxyType({row.name: row for rows in SECTIONS.values() for row in rows})
KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        kernel.name: kernel
        for family in (logic, numbers, rounding, doubles, instants, calendar, text, patterns, encoded, casts)
        for kernel in family.KERNELS
    }
)


def term_type(term: Term, attributes: Mapping[str, Attribute]) -> DataType:
    """Type of a term over a row's attributes; `QueryError` for an unknown attribute or a type mismatch."""
    match term:
        case Attr(name):
            if name not in attributes:
                raise unknown_attribute(name, attributes)
            return attributes[name].type
        case Lit(_, type_):
            return type_
        case Param():
            return BIGINT
        case Call(op, args):
            return result_type(op, args, tuple(term_type(arg, attributes) for arg in args))
        case _:
            assert_never(term)


def result_type(op: str, args: tuple[Term, ...], types: tuple[DataType, ...]) -> DataType:
    """Type of an operation applied to arguments of these types; `QueryError` TG102 where it takes no such arguments."""
    call = Call(op, args)
    return operation(op).rule(call, tuple(placeholder(a, t) for a, t in zip(args, types, strict=True))).type


def resolve(term: Term, attributes: Mapping[str, Attribute]) -> TypedTerm:
    """The term with its types, kernels and what is known statically; errors as `term_type`."""
    match term:
        case Attr(name):
            if name not in attributes:
                raise unknown_attribute(name, attributes)
            return attribute_leaf(attributes[name])
        case Lit():
            return literal_leaf(term)
        case Param():
            return parameter_leaf(term)
        case Call(op, args):
            return operation(op).rule(term, tuple(resolve(arg, attributes) for arg in args))
        case _:
            assert_never(term)


def operation(name: str) -> Operation:
    """The operation of this name; `QueryError` TG131 if there is none."""
    entry = OPERATIONS.get(name)
    if entry is not None:
        return entry
    if re.fullmatch(r"(try_)?cast_decimal_\d+_\d+", name):
        return casts.cast(name)
    near = nearest(name, OPERATIONS, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else "the reference lists all operations"
    raise QueryError("TG131", f"unknown operation {name!r}", hint=hint)
