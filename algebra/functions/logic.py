"""Conditions, and choices between values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tidegate.algebra.functions.rules import Operation, arity, coerce, common_type, mismatch, unify
from tidegate.algebra.terms import Call, Value
from tidegate.algebra.typed.kernels import Evaluator, Kernel, Range, compare, key_of, never
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import BOOLEAN, NULL

# --- kernels ---------------------------------------------------------------------------------------------------------


def _and(args: Sequence[Evaluator]) -> Evaluator:
    def value(row: Mapping[str, Value]) -> bool | None:
        unknown = False
        for arg in args:
            truth = arg(row)
            if truth is False:
                return False
            unknown |= truth is None
        return None if unknown else True

    return value


def _or(args: Sequence[Evaluator]) -> Evaluator:
    def value(row: Mapping[str, Value]) -> bool | None:
        unknown = False
        for arg in args:
            truth = arg(row)
            if truth is True:
                return True
            unknown |= truth is None
        return None if unknown else False

    return value


def _if(args: Sequence[Evaluator]) -> Evaluator:
    condition, then, otherwise = args
    return lambda row: then(row) if condition(row) is True else otherwise(row)


def _coalesce(args: Sequence[Evaluator]) -> Evaluator:
    return lambda row: next((value for arg in args if (value := arg(row)) is not None), None)


def _widest(*ranges: Range | None) -> Range | None:
    known = [limits for limits in ranges if limits is not None]
    return (min(a for a, _ in known), max(b for _, b in known)) if len(known) == len(ranges) else None


AND, OR = Kernel("and", lazy=_and), Kernel("or", lazy=_or)
IF = Kernel(
    "if",
    lazy=_if,
    nullable=lambda args: args[1].nullable or args[2].nullable,
    range=lambda _, then, otherwise: _widest(then, otherwise),
)
COALESCE = Kernel("coalesce", lazy=_coalesce, nullable=lambda args: all(arg.nullable for arg in args), range=_widest)
IS_NULL = Kernel("is_null", lambda a: a is None, takes_null=True, nullable=never)
IS_NOT_NULL = Kernel("is_not_null", lambda a: a is not None, takes_null=True, nullable=never)
SAME = Kernel("eq_null_safe", lambda a, b: key_of(a) == key_of(b), takes_null=True, nullable=never)
NOT = Kernel("not", lambda a: not a)
COMPARISONS: Final = (
    Kernel("eq", lambda a, b: compare(a, b) == 0),
    Kernel("ne", lambda a, b: compare(a, b) != 0),
    Kernel("lt", lambda a, b: compare(a, b) < 0),
    Kernel("le", lambda a, b: compare(a, b) <= 0),
    Kernel("gt", lambda a, b: compare(a, b) > 0),
    Kernel("ge", lambda a, b: compare(a, b) >= 0),
)
KERNELS: Final = (AND, OR, NOT, IF, COALESCE, IS_NULL, IS_NOT_NULL, SAME, *COMPARISONS)
_BY_NAME = {kernel.name: kernel for kernel in KERNELS}

# --- rules -----------------------------------------------------------------------------------------------------------


def _comparison(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "two values of one type"
    arity(call, args, 2, 2, takes)
    _, unified = unify(call, args, takes, clamped=True)
    return apply(_BY_NAME[call.op], unified, BOOLEAN, call)


def _logic(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "conditions" if call.op != "not" else "a condition"
    arity(call, args, 1, 1 if call.op == "not" else None, takes)
    if any(arg.type not in (BOOLEAN, NULL) for arg in args):
        raise mismatch(call, args, takes)
    return apply(_BY_NAME[call.op], tuple(coerce(arg, BOOLEAN) for arg in args), BOOLEAN, call)


def _null_test(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    arity(call, args, 1, 1, "one value")
    return apply(_BY_NAME[call.op], args, BOOLEAN, call)


def _conditional(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a condition and two values of one type"
    arity(call, args, 3, 3, takes)
    if args[0].type not in (BOOLEAN, NULL):
        raise mismatch(call, args, takes)
    to = common_type([args[1].type, args[2].type])
    if to is None or to == NULL:
        raise mismatch(call, args, takes, "" if to is None else "cast one of the NULLs")
    return apply(IF, (coerce(args[0], BOOLEAN), coerce(args[1], to), coerce(args[2], to)), to, call)


def _first_present(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "values of one type"
    arity(call, args, 1, None, takes)
    to, unified = unify(call, args, takes)
    if to == NULL:
        raise mismatch(call, args, "at least one value that is not NULL")
    return apply(COALESCE, unified, to, call)


_SAME_TYPE = "two values of one type"
OPERATIONS: Final = (
    Operation("and", "conditions", _logic, "x & y", counts=(3,), doc="True if all are, false as soon as one is, left to right; else NULL."),
    Operation("or", "conditions", _logic, "x | y", counts=(3,), doc="True as soon as one is, left to right; false if all are; else NULL."),
    Operation("not", "a condition", _logic, "~x", doc="NULL stays NULL."),
    Operation("eq", _SAME_TYPE, _comparison, "x == y", doc="NaN equals NaN, -0.0 equals 0.0; bigint and double compare as doubles."),
    Operation("ne", _SAME_TYPE, _comparison, "x != y"),
    Operation("lt", _SAME_TYPE, _comparison, "x < y", doc="NaN is greatest; strings by their UTF-8 bytes; false before true."),
    Operation("le", _SAME_TYPE, _comparison, "x <= y"),
    Operation("gt", _SAME_TYPE, _comparison, "x > y"),
    Operation("ge", _SAME_TYPE, _comparison, "x >= y"),
    Operation("eq_null_safe", _SAME_TYPE, _comparison, "x.same_as(y)", doc="As eq, but NULL equals NULL and nothing else; never NULL."),
    Operation("is_null", "one value", _null_test, "x.is_null()"),
    Operation("is_not_null", "one value", _null_test, "x.is_not_null()"),
    Operation("if", "condition and two values", _conditional, "tg.when(x, y, z)", fallible=True, counts=(3,), doc="The second where the first is true, else the third; only that one is evaluated."),
    Operation("coalesce", "values of one type", _first_present, "tg.coalesce(x, y, …)", fallible=True, counts=(2,), doc="The first that is not NULL; later ones are not evaluated."),
)  # fmt: skip
