"""Rules of types: which kernel computes an operation for the types at hand, and what its arguments become first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import Call, Lit, Param, Term, Value
from tidegate.algebra.time import ONE_TYPE, duration_ticks
from tidegate.algebra.typed.kernels import LITERAL, Kernel, Range
from tidegate.algebra.typed.terms import TypedTerm, apply, literal_leaf
from tidegate.algebra.types import BIGINT, DOUBLE, MAX_DECIMAL_PRECISION, NULL, STRING, DataType, Kind, decimal

Rule = Callable[[Call, tuple[TypedTerm, ...]], TypedTerm]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its rule of types, how it is written, and whether it can fail at all.

    `written`: in Python, over x, y and z. `temporal`: whether instants moved by it are instants to the analysis (TSA
    Def. 2). `counts` and `constants`: with how many operands, and with which constants after them (before them with
    `constants_first`), engines are compared on it.
    """

    name: str
    takes: str
    rule: Rule
    written: str = ""
    fallible: bool = False
    temporal: bool = False
    doc: str = ""
    counts: tuple[int, ...] = (1, 2)
    constants: tuple[tuple[Lit, ...], ...] = ((),)
    constants_first: bool = False


# --- conversions -----------------------------------------------------------------------------------------------------


def rounded_range(a: Range, factor: int) -> Range:
    """The range of quotients by a factor, however they are rounded."""
    return a[0] // factor, -(-a[1] // factor)


RESCALE = Kernel("rescale", lambda a, factor: a * factor, range=lambda a, factor: (a[0] * factor, a[1] * factor))
# Comparing decimals of different scale: what exceeds 18 digits is beyond every decimal, and stays so.
RESCALE_CLAMPED = Kernel(
    "rescale_clamped",
    lambda a, factor: max(-(10**18), min(10**18, a * factor)),
    range=lambda a, factor: (max(-(10**18), a[0] * factor), min(10**18, a[1] * factor)),
    mentions=3,
)
INT_TO_DOUBLE = Kernel("int_to_double", float)
DECIMAL_TO_DOUBLE = Kernel("decimal_to_double", lambda a, factor: float(a) / float(factor))
CONVERSIONS = (RESCALE, RESCALE_CLAMPED, INT_TO_DOUBLE, DECIMAL_TO_DOUBLE)


def common_type(types: list[DataType]) -> DataType | None:
    """The type that values of all these types become when compared or chosen between; None where there is none."""
    known = list(dict.fromkeys(type_ for type_ in types if type_ != NULL))
    if not known:
        return NULL
    if len(known) == 1:
        return known[0]
    kinds = {type_.kind for type_ in known}
    if not all(type_.is_numeric for type_ in known):
        return None
    if Kind.DOUBLE in kinds:
        return DOUBLE
    scale = max(type_.scale for type_ in known)
    whole = max((MAX_DECIMAL_PRECISION if t.kind is Kind.BIGINT else t.precision) - t.scale for t in known)
    return decimal(min(MAX_DECIMAL_PRECISION, whole + scale), scale)


def coerce(arg: TypedTerm, to: DataType, *, lenient: bool = False, clamped: bool = False) -> TypedTerm:
    """The argument as a value of the type `to`, which `common_type` made of its own.

    `clamped`: a decimal only to be compared; what does not fit stays beyond all that do, and nothing fails.
    """
    if arg.type == to:
        return arg
    if arg.type == NULL:
        return literal_leaf(Lit(None, to))
    if to == DOUBLE:
        return _as_double(arg)
    factor = 10 ** (to.scale - arg.type.scale)
    if clamped:
        return apply(RESCALE_CLAMPED, (arg,), BIGINT, arg.source, factor)
    if factor == 1 and to.precision >= arg.type.precision and arg.type.kind is Kind.DECIMAL:
        return replace(arg, type=to)
    return apply(RESCALE, (arg,), to, arg.source, factor, lenient=lenient)


def _as_double(arg: TypedTerm) -> TypedTerm:
    source = arg.source
    if arg.type.kind is Kind.DECIMAL:
        return apply(DECIMAL_TO_DOUBLE, (arg,), DOUBLE, source, 10**arg.type.scale)
    if arg.kernel is LITERAL and isinstance(source, Lit) and isinstance(source.value, int):
        return literal_leaf(Lit(float(source.value), DOUBLE))
    return arg if arg.type == DOUBLE else apply(INT_TO_DOUBLE, (arg,), DOUBLE, source)


def is_progress(term: Term) -> bool:
    """Whether a term is made of progress values and numbers alone: it fits instants of any type."""
    match term:
        case Param():
            return True
        case Call("add" | "sub" | "least" | "greatest" | "neg", args):
            return any(is_progress(arg) for arg in args) and all(isinstance(a, Lit) or is_progress(a) for a in args)
        case _:
            return False


def unify(
    call: Call, args: tuple[TypedTerm, ...], takes: str, *, lenient: bool = False, clamped: bool = False
) -> tuple[DataType, tuple[TypedTerm, ...]]:
    fitting = [arg.type for arg in args if not is_progress(arg.source)]
    if fitting and len(fitting) < len(args) and all(type_.can_be_time for type_ in fitting):
        to = common_type(fitting)
        if to is not None:
            return to, args
    to = common_type([arg.type for arg in args])
    if to is None:
        raise mismatch(call, args, takes)
    return to, tuple(coerce(arg, to, lenient=lenient, clamped=clamped and to.kind is Kind.DECIMAL) for arg in args)


def arity(call: Call, args: tuple[TypedTerm, ...], least: int, most: int | None, takes: str) -> None:
    if len(args) < least or (most is not None and len(args) > most):
        raise mismatch(call, args, takes)


def constant(arg: TypedTerm, type_: DataType) -> Value:
    """The value of a constant of a type; None for NULL and what is no such constant."""
    return arg.source.value if arg.kernel is LITERAL and isinstance(arg.source, Lit) and arg.type == type_ else None


def some_number(type_: DataType, args: tuple[TypedTerm, ...]) -> tuple[DataType, tuple[TypedTerm, ...]]:
    """NULL alone counts as a bigint."""
    return (BIGINT, tuple(coerce(arg, BIGINT) for arg in args)) if type_ == NULL else (type_, args)


def fixed(kernel: Kernel, takes: tuple[DataType, ...], result: DataType) -> Rule:
    """A rule for exactly these types; bigint becomes double where a double is asked for."""

    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        text = " and ".join(map(str, takes))
        arity(call, args, len(takes), len(takes), text)
        fitted = []
        for arg, want in zip(args, takes, strict=True):
            if arg.type not in (want, NULL) and not (want == DOUBLE and arg.type.is_numeric):
                if arg.kernel is LITERAL and want == STRING:
                    raise mismatch(call, args, text, f'write text: "{term_text(arg.source)}"')
                raise mismatch(call, args, text, _CASTS_TO.get(want.kind, {}).get(arg.type.kind, ""))
            fitted.append(coerce(arg, want))
        return apply(kernel, tuple(fitted), result, call)

    return rule


# --- what may be meant by arguments that are not taken
# ------------------------------------------------------------------


def mismatch(call: Call, args: tuple[TypedTerm, ...], takes: str, hint: str = "", got: str = "") -> QueryError:
    """The error for arguments that an operation does not take: `got`, else all of them, by their types."""
    got = got or ", ".join(str(arg.type) for arg in args) or "nothing"
    return QueryError(
        "TG102",
        f"{_written(call.op)} takes {takes}, not {got}: {term_text(call)}",
        hint=hint or _suggestion(call.op, args),
    )


def misfit(
    call: Call,
    args: tuple[TypedTerm, ...],
    takes: str,
    wanted: tuple[Kind, ...],
    written: str,
    hint: str = "",
    wrong: Sequence[int] = (),
) -> QueryError:
    """The error for arguments of an operation that takes a value of these kinds, and constants after it.

    Its hint is for the value, or where that fits for the constants: `hint`, else how they are `written`, or why what
    differs between rows is no constant. `wrong`: the places of the constants that do not fit, where others do.
    """
    value, *constants = args
    if value.type.kind not in (*wanted, Kind.NULL):
        return mismatch(call, args, takes, value_hint(call, value, wanted[0]))
    if all(literal.kernel is LITERAL for literal in constants):
        got = ", ".join(term_text(args[at].source) for at in wrong or range(1, len(args)))
        return mismatch(call, args, takes, hint or f"write {written}", got)
    hint = f"what stands after the value is given to engines once, for all rows: {written}"
    return mismatch(
        call, args, takes, f"{hint}; where it differs choose the result: tg.when(condition, {written}, ...)"
    )


#: How a value of one kind becomes one of another that is wanted.
_CASTS_TO: Final[Mapping[Kind, Mapping[Kind, str]]] = MappingProxyType(
    {
        Kind.STRING: {
            **dict.fromkeys(
                (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP),
                'make a string of it first: .cast("string")',
            ),
            Kind.DURATION: 'make a string of its microseconds first: .cast("bigint").cast("string")',
        },
        Kind.TIMESTAMP: {
            Kind.STRING: 'read it first: .cast("timestamp") of ISO text, .parse_timestamp("%d.%m.%Y") of other text',
            Kind.BIGINT: 'make an instant of it first: .cast("timestamp") takes microseconds since 1970',
        },
        Kind.DOUBLE: {Kind.STRING: 'make a number of it first: .cast("double")'},
        Kind.BIGINT: dict.fromkeys(
            (Kind.DOUBLE, Kind.DECIMAL, Kind.STRING), 'make a whole number of it first: .cast("bigint")'
        ),
    }
)


def value_hint(call: Call, given: TypedTerm, wanted: Kind) -> str:
    """How what is given becomes of the kind that is wanted."""
    return _CASTS_TO[wanted].get(given.type.kind, f"{_written(call.op)} is not defined for such values")


#: Operations that users write by another name than their own: with a sign, or as a method.
_WRITTEN = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq_null_safe": "same_as",
    "add": "+", "sub": "-", "neg": "-", "mul": "*", "div": "/", "idiv": "div", "floordiv": "//", "mod": "%",
    "power": "**", "try_div": "try_truediv", "try_idiv": "try_div",
}  # fmt: skip


def _written(op: str) -> str:
    """The operation as users write it: casts by the type that they name."""
    cast = re.fullmatch(r"((?:try_)?cast)_(?:decimal_(\d+)_(\d+)|(\w+))", op)
    if cast is None:
        return _WRITTEN.get(op, op)
    return f'{cast[1]}("{cast[4] or f"decimal({cast[2]},{cast[3]})"}")'


def _suggestion(op: str, args: tuple[TypedTerm, ...]) -> str:
    kinds = {arg.type.kind for arg in args} - {Kind.NULL}
    if op == "add" and kinds == {Kind.STRING}:
        return "texts are put together with tg.concat(a, b)"
    if kinds and kinds <= {Kind.TIMESTAMP, Kind.DATE, Kind.DURATION}:
        hint = _time_suggestion(op, kinds)
        if hint is not None:
            return hint
    if Kind.TIMESTAMP in kinds and Kind.BIGINT in kinds:
        return 'give the number a unit: tg.seconds(5), or compare ticks: .cast("bigint") of the timestamp'
    if Kind.TIMESTAMP in kinds and Kind.DATE in kinds:
        return "to_date of the timestamp or to_timestamp of the date makes both the same"
    if Kind.DATE in kinds and Kind.DURATION in kinds:
        return (
            'dates move by whole days: d + "1 day", or d + n for a number of them; else take to_timestamp of the '
            "date first"
        )
    if kinds == {Kind.STRING, Kind.BIGINT} and any(_is_duration(arg.source) for arg in args):
        return "write a number here: integer time has no unit, and dates differ by a number of days"
    if Kind.STRING in kinds and kinds & _NUMBERS and (number := next(filter(None, map(_number, args)), "")):
        return f"write the number without quotes: {number}"
    if (
        kinds == {Kind.STRING, Kind.BIGINT}
        and op in _COMPARISONS
        and (number := next(filter(None, map(_integer, args)), ""))
    ):
        return f'put it in quotes: "{number}"'
    if Kind.STRING in kinds and len(kinds) > 1:
        return _text_suggestion(sorted(kind.value for kind in kinds - {Kind.STRING, Kind.NULL}))
    if op in ("mul", "try_mul") and kinds == {Kind.DURATION, Kind.DOUBLE}:
        return (
            'durations are multiplied by whole numbers: "90s" is a minute and a half, (x * 3).div(2) is half as '
            "much again"
        )
    if kinds == {Kind.DURATION, Kind.BIGINT} and all(
        isinstance(arg.source, Lit) == (arg.type.kind is Kind.DURATION) for arg in args
    ):
        return "integer time counts ticks: write a whole number of them, t + 600, instead of a duration"
    if Kind.DURATION in kinds and kinds & {Kind.BIGINT, Kind.DOUBLE}:
        return 'give the number a unit: tg.seconds(5); or .cast("bigint") of the duration, in microseconds'
    if Kind.BOOLEAN in kinds and len(kinds) > 1:
        return "compare with something first; & | ~ take conditions"
    return (
        "cast one side to the type of the other" if len(kinds) > 1 else f"{_written(op)} is not defined for such values"
    )


_COMPARISONS = ("eq", "ne", "eq_null_safe")
_ORDERS = ("lt", "le", "gt", "ge", "eq")


def _integer(arg: TypedTerm) -> str:
    """A constant that is an integer, as text; empty for others."""
    match arg.source:
        case Lit(int() as value) if arg.type.kind is Kind.BIGINT:
            return str(value)
        case _:
            return ""


def _is_duration(term: Term) -> bool:
    """Whether a constant is text that people write for a duration."""
    try:
        return isinstance(term, Lit) and isinstance(term.value, str) and duration_ticks(term.value) is not None
    except QueryError:
        return False


_NUMBERS = frozenset({Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL})


def _number(arg: TypedTerm) -> str:
    """The number that a constant has as text; empty for others."""
    value = constant(arg, STRING)
    return value if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}(\.\d+)?", value) else ""


def _time_suggestion(op: str, kinds: set[Kind]) -> str | None:
    """What may be meant by an operation on instants and durations."""
    match op:
        case _ if kinds == {Kind.DATE, Kind.TIMESTAMP} and op in _ORDERS:
            return f"cast one side to the type of the other; where instants bound each other, {ONE_TYPE}"
        case _ if kinds == {Kind.DATE, Kind.TIMESTAMP} or kinds == {Kind.DATE, Kind.DURATION}:
            return None
        case "add" | "try_add" if kinds != {Kind.DURATION}:
            return "instants have no sum: add a duration, t + tg.hours(1), or subtract them, which gives a duration"
        case "sub" | "try_sub":
            return "a duration is subtracted from an instant: t - tg.hours(1)"
        case "neg":
            return "an instant has no negative: subtract it from another, which gives a duration"
        case "mul" | "try_mul" | "div" | "try_div" | "idiv" | "try_idiv" | "mod" | "try_mod":
            return "durations are multiplied and divided by whole numbers: tg.hours(1) * 3; instants are not"
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne" | "eq_null_safe" | "least" | "greatest" if Kind.DURATION in kinds:
            return "compare two instants, t <= u + tg.minutes(5), or a distance with a duration, t - u <= tg.minutes(5)"
        case _:
            return f"{_written(op)} is not defined for instants and durations"


def _text_suggestion(others: list[str]) -> str:
    match others[:1]:
        case ["boolean"]:
            return 'compare the string with text, such as s == "true"'
        case ["decimal"]:
            return 'cast the string first: .cast("bigint"), or .cast("double") of both'
        case ["duration"]:
            return 'cast the string first: .cast("bigint").cast("duration"), from microseconds'
        case [kind]:
            return f'cast the string first: .cast("{kind}")'
        case _:
            return "cast one side"
