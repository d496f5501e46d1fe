"""The one table of operations: what each is called, which types it takes and yields, and which kernel computes it.

`resolve` turns a term into typed kernels (`typed.py`); `kernels.py` says what those compute. Where three engines could
not agree the operation is narrower than in SQL: no double as text, casing of ASCII letters only, no regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.kernels import DAY
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term, unknown_attribute
from tidegate.algebra.time import duration_ticks
from tidegate.algebra.typed import (
    Typed,
    apply,
    attribute_leaf,
    literal_leaf,
    parameter_leaf,
    placeholder,
)
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    MAX_DECIMAL_PRECISION,
    MAX_SHIFT,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Kind,
    decimal,
)

if TYPE_CHECKING:
    from tidegate.algebra.nodes import Aggregate
    from tidegate.algebra.schema import Attribute

Rule = Callable[[Call, tuple[Typed, ...]], Typed]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its rule of types, how it prints (`symbol`, None for `name(...)`), and whether it can fail at all."""

    name: str
    takes: str
    rule: Rule
    symbol: str | None = None
    fallible: bool = False
    doc: str = ""


def result_type(op: str, args: tuple[Term, ...], types: tuple[DataType, ...]) -> DataType:
    """Type of an operation applied to arguments of these types; `QueryError` TG102 where it takes no such arguments."""
    call = Call(op, args)
    return operation(op).rule(call, tuple(placeholder(a, t) for a, t in zip(args, types, strict=True))).type


def resolve(term: Term, attributes: Mapping[str, Attribute]) -> Typed:
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
    found = OPERATIONS.get(name)
    if found is not None:
        return found
    if re.fullmatch(r"(try_)?cast_decimal_\d+_\d+", name):
        return _cast(name)
    import difflib

    near = difflib.get_close_matches(name, list(OPERATIONS), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "the reference lists all operations"
    raise QueryError("TG131", f"unknown operation {name!r}", hint=hint)


# --- types -----------------------------------------------------------------------------------------------------------


def mismatch(call: Call, args: tuple[Typed, ...], takes: str, hint: str = "") -> QueryError:
    """The error for arguments that an operation does not take."""
    from tidegate.algebra.pretty import term_text

    got = ", ".join(str(arg.type) for arg in args) or "nothing"
    return QueryError(
        "TG102",
        f"{_written(call.op)} takes {takes}, not {got}: {term_text(call)}",
        hint=hint or _suggestion(call.op, args),
    )


def _written(op: str) -> str:
    """The operation as users write it: casts by the type that they name."""
    found = re.fullmatch(r"((?:try_)?cast)_(?:decimal_(\d+)_(\d+)|(\w+))", op)
    if found is None:
        return op
    return f'{found[1]}("{found[4] or f"decimal({found[2]},{found[3]})"}")'


def _suggestion(op: str, args: tuple[Typed, ...]) -> str:
    kinds = {arg.type.kind for arg in args} - {Kind.NULL}
    if op == "add" and kinds == {Kind.STRING}:
        return "texts are put together with tg.concat(a, b)"
    if kinds and kinds <= {Kind.TIMESTAMP, Kind.DATE, Kind.DURATION}:
        found = _time_suggestion(op, kinds)
        if found is not None:
            return found
    if Kind.TIMESTAMP in kinds and Kind.BIGINT in kinds:
        return 'give the number a unit: tg.seconds(5), or compare ticks: .cast("bigint") of the timestamp'
    if Kind.TIMESTAMP in kinds and Kind.DATE in kinds:
        return "to_date of the timestamp or to_timestamp of the date makes both the same"
    if Kind.DATE in kinds and Kind.DURATION in kinds:
        return 'dates move by whole days: d + "1 day", or d + n for a number of them; else take to_timestamp of the date first'
    if kinds == {Kind.STRING, Kind.BIGINT} and any(_is_duration(arg.source) for arg in args):
        return "write a number here: integer time has no unit, and dates differ by a number of days"
    if Kind.STRING in kinds and len(kinds) > 1:
        return _text_suggestion(sorted(kind.value for kind in kinds - {Kind.STRING, Kind.NULL}))
    if Kind.DURATION in kinds and kinds & {Kind.BIGINT, Kind.DOUBLE}:
        return 'give the number a unit: tg.seconds(5); or .cast("bigint") of the duration, in microseconds'
    if Kind.BOOLEAN in kinds and len(kinds) > 1:
        return "compare with something first; & | ~ take conditions"
    return "cast one side to the type of the other" if len(kinds) > 1 else f"{op} is not defined for such values"


def _is_duration(term: Term) -> bool:
    """Whether a constant is text that people write for a duration."""
    try:
        return isinstance(term, Lit) and isinstance(term.value, str) and duration_ticks(term.value) is not None
    except QueryError:
        return False


def _time_suggestion(op: str, kinds: set[Kind]) -> str | None:
    """What may be meant by an operation on instants and durations."""
    match op:
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
            return f"{op} is not defined for instants and durations"


def _text_suggestion(others: list[str]) -> str:
    match others[:1]:
        case ["boolean"]:
            return 'compare the string with text, such as s == "true"'
        case ["decimal"]:
            return 'cast the string first: .cast("bigint"), or .cast("double") of both'
        case ["duration"]:
            return 'cast the string first: .cast("bigint").cast("duration"), from microseconds'
        case [other]:
            return f'cast the string first: .cast("{other}")'
        case _:
            return "cast one side"


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


def coerce(arg: Typed, to: DataType, *, lenient: bool = False, clamped: bool = False) -> Typed:
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
        return apply("rescale_clamped", (arg,), BIGINT, arg.source, factor)
    if factor == 1 and to.precision >= arg.type.precision and arg.type.kind is Kind.DECIMAL:
        return Typed(
            arg.kernel, arg.args, to, arg.source, arg.nullable, arg.range, arg.constants, arg.own_failure, arg.lenient
        )
    return apply("rescale", (arg,), to, arg.source, factor, lenient=lenient)


def _as_double(arg: Typed) -> Typed:
    source = arg.source
    if arg.type.kind is Kind.DECIMAL:
        return apply("decimal_to_double", (arg,), DOUBLE, source, 10**arg.type.scale)
    if arg.kernel == "literal" and isinstance(source, Lit) and isinstance(source.value, int):
        return literal_leaf(Lit(float(source.value), DOUBLE))
    return arg if arg.type == DOUBLE else apply("int_to_double", (arg,), DOUBLE, source)


def _is_progress(term: Term) -> bool:
    """Whether a term is made of progress values and numbers alone: it fits instants of any type."""
    match term:
        case Param():
            return True
        case Call("add" | "sub" | "least" | "greatest" | "neg", args):
            return any(_is_progress(arg) for arg in args) and all(isinstance(a, Lit) or _is_progress(a) for a in args)
        case _:
            return False


def _unify(
    call: Call, args: tuple[Typed, ...], takes: str, *, lenient: bool = False, clamped: bool = False
) -> tuple[DataType, tuple[Typed, ...]]:
    fitting = [arg.type for arg in args if not _is_progress(arg.source)]
    if fitting and len(fitting) < len(args) and all(type_.can_be_time for type_ in fitting):
        to = common_type(fitting)
        if to is not None:
            return to, args
    to = common_type([arg.type for arg in args])
    if to is None:
        raise mismatch(call, args, takes)
    return to, tuple(coerce(arg, to, lenient=lenient, clamped=clamped and to.kind is Kind.DECIMAL) for arg in args)


# --- rules -----------------------------------------------------------------------------------------------------------


def _arity(call: Call, args: tuple[Typed, ...], least: int, most: int | None, takes: str) -> None:
    if len(args) < least or (most is not None and len(args) > most):
        raise mismatch(call, args, takes)


def _comparison(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "two values of one type"
    _arity(call, args, 2, 2, takes)
    _, unified = _unify(call, args, takes, clamped=True)
    return apply(call.op, unified, BOOLEAN, call)


def _logic(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "conditions" if call.op != "not" else "a condition"
    _arity(call, args, 1, 1 if call.op == "not" else None, takes)
    if any(arg.type not in (BOOLEAN, NULL) for arg in args):
        raise mismatch(call, args, takes)
    return apply(call.op, tuple(coerce(arg, BOOLEAN) for arg in args), BOOLEAN, call)


def _null_test(call: Call, args: tuple[Typed, ...]) -> Typed:
    _arity(call, args, 1, 1, "one value")
    return apply(call.op, args, BOOLEAN, call)


def _additive(call: Call, args: tuple[Typed, ...]) -> Typed:
    """add and sub: numbers, durations, and instants with what moves them."""
    lenient, op = call.op.startswith("try_"), call.op.removeprefix("try_")
    takes = "two numbers, two durations, or an instant and what moves it"
    _arity(call, args, 2, 2, takes)
    left, right = (arg.type for arg in args)
    result: DataType | None = None
    moved_by = {Kind.TIMESTAMP: DURATION, Kind.DATE: BIGINT}
    if left.kind in moved_by and (right in (moved_by[left.kind], NULL) or _is_progress(args[1].source)):
        result = left
    elif op == "add" and right.kind in moved_by and left in (moved_by[right.kind], NULL):
        result = right
    elif op == "sub" and left == right == TIMESTAMP:
        result = DURATION
    elif op == "sub" and left == right == DATE:
        result = BIGINT
    elif {left, right} <= {DURATION, NULL}:
        result = DURATION
    elif _is_progress(args[0].source) and (right == DURATION or (op == "sub" and right.can_be_time)):
        result = BIGINT
    if result is not None:
        sides = tuple(coerce(arg, result) for arg in args) if NULL in (left, right) else args
        return apply(f"{op}_int", sides, result, call, lenient=lenient)
    if not all(type_.is_numeric or type_ == NULL for type_ in (left, right)):
        raise mismatch(call, args, takes)
    to, unified = _unify(call, args, takes, lenient=lenient)
    to, unified = _some_number(to, unified)
    if to == DOUBLE:
        return apply(f"{op}_double", unified, DOUBLE, call)
    if to.kind is Kind.DECIMAL:
        # One more digit than either side, up to the 18 that there are; beyond is overflow.
        whole = max(u.type.precision - u.type.scale for u in unified)
        to = decimal(min(MAX_DECIMAL_PRECISION, whole + to.scale + 1), to.scale)
    return apply(f"{op}_int", unified, to, call, lenient=lenient)


def _some_number(type_: DataType, args: tuple[Typed, ...]) -> tuple[DataType, tuple[Typed, ...]]:
    """NULL alone counts as a bigint."""
    return (BIGINT, tuple(coerce(arg, BIGINT) for arg in args)) if type_ == NULL else (type_, args)


def _multiplication(call: Call, args: tuple[Typed, ...]) -> Typed:
    lenient = call.op.startswith("try_")
    takes = "two numbers, or a duration and a bigint"
    _arity(call, args, 2, 2, takes)
    types = {arg.type for arg in args}
    if DURATION in types and types <= {DURATION, BIGINT, NULL} and [arg.type for arg in args].count(DURATION) == 1:
        return apply(
            "mul_int", tuple(coerce(a, BIGINT) if a.type == NULL else a for a in args), DURATION, call, lenient=lenient
        )
    if not all(type_.is_numeric or type_ == NULL for type_ in types):
        raise mismatch(call, args, takes)
    if DOUBLE in types:
        return apply("mul_double", tuple(coerce(arg, DOUBLE) for arg in args), DOUBLE, call)
    numbers = tuple(coerce(arg, BIGINT) if arg.type == NULL else arg for arg in args)
    if all(arg.type == BIGINT for arg in numbers):
        return apply("mul_int", numbers, BIGINT, call, lenient=lenient)
    scale = sum(arg.type.scale for arg in numbers)
    if scale > MAX_DECIMAL_PRECISION:
        raise mismatch(
            call,
            args,
            f"decimals whose scales add up to at most {MAX_DECIMAL_PRECISION}",
            "cast one side to a smaller scale",
        )
    digits = sum(arg.type.precision if arg.type.kind is Kind.DECIMAL else MAX_DECIMAL_PRECISION for arg in numbers)
    return apply("mul_int", numbers, decimal(min(MAX_DECIMAL_PRECISION, digits), scale), call, lenient=lenient)


def _division(call: Call, args: tuple[Typed, ...]) -> Typed:
    """True division: both sides become doubles first."""
    takes = "two numbers or two durations"
    _arity(call, args, 2, 2, takes)
    types = {arg.type for arg in args}
    if not (types <= {DURATION, NULL} or all(type_.is_numeric or type_ == NULL for type_ in types)):
        hint = "write x.div(2)" if args[0].type == DURATION and args[1].type == BIGINT else ""
        raise mismatch(call, args, takes, hint)
    return apply(
        "div_double", tuple(coerce(arg, DOUBLE) for arg in args), DOUBLE, call, lenient=call.op.startswith("try_")
    )


def _integer_division(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "two bigints, two durations, or a duration and a bigint"
    _arity(call, args, 2, 2, takes)
    left, right = (BIGINT if arg.type == NULL else arg.type for arg in args)
    op, lenient = call.op.removeprefix("try_"), call.op.startswith("try_")
    results = {
        (BIGINT, BIGINT): BIGINT,
        (DURATION, DURATION): DURATION if op == "mod" else BIGINT,
        (DURATION, BIGINT): DURATION,
    }
    result = results.get((left, right))
    if result is None:
        raise mismatch(call, args, takes, "div divides any two numbers" if DOUBLE in (left, right) else "")
    sides = tuple(coerce(arg, BIGINT) if arg.type == NULL else arg for arg in args)
    return apply(f"{op}_int", sides, result, call, lenient=lenient)


def _sign(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "a number or a duration"
    _arity(call, args, 1, 1, takes)
    type_ = BIGINT if args[0].type == NULL else args[0].type
    if not (type_.is_numeric or type_ == DURATION):
        raise mismatch(call, args, takes)
    return apply(f"{call.op}_{'double' if type_ == DOUBLE else 'int'}", (coerce(args[0], type_),), type_, call)


def _extreme(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "values of one type"
    _arity(call, args, 1, None, takes)
    to, unified = _unify(call, args, takes)
    if to == NULL:
        raise mismatch(call, args, "at least one value that is not NULL")
    return apply(call.op, unified, to, call)


def _rounding(call: Call, args: tuple[Typed, ...]) -> Typed:
    """floor and ceil: multiples of a constant unit since the epoch (ticks), or of an integer."""
    takes = "an instant, duration or bigint, and a constant unit greater than zero"
    _arity(call, args, 2, 2, takes)
    unit_type = {Kind.TIMESTAMP: DURATION, Kind.DURATION: DURATION, Kind.DATE: BIGINT, Kind.BIGINT: BIGINT}.get(
        args[0].type.kind
    )
    unit = args[1].source
    if unit_type is None or not isinstance(unit, Lit) or unit.type != unit_type:
        needs = {
            Kind.TIMESTAMP: 'a duration as its unit: "1h"',
            Kind.DURATION: 'a duration as its unit: "1h"',
            Kind.DATE: 'whole days as its unit: "7 days", or 7',
            Kind.BIGINT: "a whole number as its unit",
        }
        raise mismatch(call, args, takes, f"{args[0].type} takes {needs[args[0].type.kind]}" if unit_type else "")
    if not isinstance(unit.value, int) or not 0 < unit.value <= MAX_SHIFT:
        raise mismatch(call, args, takes, "the unit must be greater than zero")
    return apply(f"{call.op}_int", args, args[0].type, call)


def _conditional(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "a condition and two values of one type"
    _arity(call, args, 3, 3, takes)
    if args[0].type not in (BOOLEAN, NULL):
        raise mismatch(call, args, takes)
    to = common_type([args[1].type, args[2].type])
    if to is None or to == NULL:
        raise mismatch(call, args, takes, "" if to is None else "cast one of the NULLs")
    return apply("if", (coerce(args[0], BOOLEAN), coerce(args[1], to), coerce(args[2], to)), to, call)


def _coalesce(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "values of one type"
    _arity(call, args, 1, None, takes)
    to, unified = _unify(call, args, takes)
    if to == NULL:
        raise mismatch(call, args, "at least one value that is not NULL")
    return apply("coalesce", unified, to, call)


def _fixed(kernel: str, takes: tuple[DataType, ...], result: DataType) -> Rule:
    """A rule for exactly these types; bigint becomes double where a double is asked for."""

    def rule(call: Call, args: tuple[Typed, ...]) -> Typed:
        text = " and ".join(map(str, takes))
        _arity(call, args, len(takes), len(takes), text)
        fitted = []
        for arg, want in zip(args, takes, strict=True):
            if arg.type not in (want, NULL) and not (want == DOUBLE and arg.type.is_numeric):
                raise mismatch(call, args, text)
            fitted.append(coerce(arg, want))
        return apply(kernel, tuple(fitted), result, call)

    return rule


def _concat(call: Call, args: tuple[Typed, ...]) -> Typed:
    _arity(call, args, 1, None, "strings")
    if any(arg.type not in (STRING, NULL) for arg in args):
        raise mismatch(call, args, "strings", '.cast("string") makes a string of a bigint, boolean, date or timestamp')
    return apply("concat", tuple(coerce(arg, STRING) for arg in args), STRING, call)


def _replace(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "a string and two constant strings, the first not empty"
    _arity(call, args, 3, 3, takes)
    constants = [arg.source for arg in args[1:]]
    if (
        args[0].type != STRING
        or not all(isinstance(c, Lit) and isinstance(c.value, str) for c in constants)
        or constants[0] == Lit("", STRING)
    ):
        raise mismatch(call, args, takes)
    return apply("replace", args, STRING, call)


def _calendar(call: Call, args: tuple[Typed, ...]) -> Typed:
    """Parts of the date, UTC and proleptic Gregorian; total on int64, as the calendar repeats every 400 years."""
    takes = "a timestamp or a date"
    _arity(call, args, 1, 1, takes)
    if args[0].type.kind not in (Kind.TIMESTAMP, Kind.DATE):
        raise mismatch(call, args, takes)
    day = args[0] if args[0].type == DATE else apply("floor_div", args, DATE, call, DAY)
    return apply(call.op, (day,), BIGINT, call)


def _clock(whole: int, unit: int) -> Rule:
    def rule(call: Call, args: tuple[Typed, ...]) -> Typed:
        _arity(call, args, 1, 1, "a timestamp")
        if args[0].type != TIMESTAMP:
            raise mismatch(call, args, "a timestamp")
        return apply("part", args, BIGINT, call, whole, unit)

    return rule


def _to_date(call: Call, args: tuple[Typed, ...]) -> Typed:
    _arity(call, args, 1, 1, "a timestamp")
    if args[0].type != TIMESTAMP:
        raise mismatch(call, args, "a timestamp")
    return apply("floor_div", args, DATE, call, DAY)


def _to_timestamp(call: Call, args: tuple[Typed, ...]) -> Typed:
    _arity(call, args, 1, 1, "a date")
    if args[0].type != DATE:
        raise mismatch(call, args, "a date")
    return apply("rescale", args, TIMESTAMP, call, DAY)


# --- casts -----------------------------------------------------------------------------------------------------------

_CASTS: Mapping[tuple[Kind, str], str] = MappingProxyType(
    {
        (Kind.BOOLEAN, "bigint"): "bool_to_int",
        (Kind.DOUBLE, "bigint"): "double_to_int",
        (Kind.STRING, "bigint"): "parse_int",
        (Kind.STRING, "double"): "parse_double",
        (Kind.STRING, "date"): "parse_date",
        (Kind.STRING, "timestamp"): "parse_timestamp",
        (Kind.BIGINT, "string"): "int_to_string",
        (Kind.BOOLEAN, "string"): "bool_to_string",
        (Kind.DATE, "string"): "format_date",
        (Kind.TIMESTAMP, "string"): "format_timestamp",
    }
)
#: Casts between types that are held alike: instants and durations as their ticks, and back.
_SAME = frozenset(
    {(kind, "bigint") for kind in (Kind.TIMESTAMP, Kind.DATE, Kind.DURATION)}
    | {(Kind.BIGINT, name) for name in ("timestamp", "date", "duration")}
)
#: Casts that change the unit of what is held.
_OTHER = frozenset(
    {(Kind.DATE, "timestamp"), (Kind.TIMESTAMP, "date"), (Kind.DECIMAL, "bigint")}
    | {(kind, "double") for kind in (Kind.BIGINT, Kind.DECIMAL)}
)
_TARGETS: Mapping[str, DataType] = MappingProxyType(
    {"bigint": BIGINT, "double": DOUBLE, "string": STRING, "timestamp": TIMESTAMP, "date": DATE, "duration": DURATION}
)


def _cast(name: str) -> Operation:
    lenient, target = name.startswith("try_"), name.removeprefix("try_").removeprefix("cast_")
    if target.startswith("decimal_"):
        precision, scale = (int(part) for part in target.split("_")[1:])
        try:
            to = decimal(precision, scale)
        except ValueError as error:
            raise QueryError(
                "TG102", str(error), hint="decimal(18,2) has 18 digits, 2 of them after the point"
            ) from None
        return Operation(
            name, "a bigint or decimal", _decimal_cast(to, lenient), None, True, "Rounds half away from zero."
        )
    to = _TARGETS[target]
    takes = "any of " + ", ".join(sorted({kind.value for kind, goal in (*_CASTS, *_SAME, *_OTHER) if goal == target}))

    def rule(call: Call, args: tuple[Typed, ...]) -> Typed:
        _arity(call, args, 1, 1, takes)
        (arg,) = args
        kind = arg.type.kind
        if arg.type in (to, NULL):
            return coerce(arg, to)
        if (kind, target) in _SAME:
            return apply("rescale", args, to, call, 1)
        if to == TIMESTAMP and kind is Kind.DATE:
            return apply("rescale", args, to, call, DAY, lenient=lenient)
        if to == DATE and kind is Kind.TIMESTAMP:
            return apply("floor_div", args, to, call, DAY)
        if kind is Kind.DECIMAL and to == BIGINT:
            return apply("unscale", args, to, call, 10**arg.type.scale)
        if to == DOUBLE and arg.type.is_numeric:
            return coerce(arg, to)
        kernel = _CASTS.get((kind, target))
        if kernel is None:
            raise mismatch(call, args, takes, _cast_hint(kind, target))
        return apply(kernel, args, to, call, lenient=lenient)

    return Operation(
        name, takes, rule, None, True, f"Converts to {target}{'; NULL where it fails' if lenient else ''}."
    )


def _cast_hint(kind: Kind, target: str) -> str:
    """Where no cast leads from one type to the other, two do: all types become bigint, and bigint becomes all."""
    if kind is Kind.DOUBLE and target.startswith("decimal"):
        return 'doubles are not rounded, but cut: take .cast("bigint") first, of x * 100 for hundredths'
    why = "engines print doubles differently; " if (kind, target) == (Kind.DOUBLE, "string") else ""
    return why + 'take .cast("bigint") first'


def _decimal_cast(to: DataType, lenient: bool) -> Rule:
    def rule(call: Call, args: tuple[Typed, ...]) -> Typed:
        takes = "a bigint or decimal"
        _arity(call, args, 1, 1, takes)
        (arg,) = args
        if arg.type == NULL:
            return coerce(arg, to)
        if arg.type.kind not in (Kind.BIGINT, Kind.DECIMAL):
            raise mismatch(call, args, takes, _cast_hint(arg.type.kind, "decimal"))
        shift = to.scale - arg.type.scale
        kernel = "rescale" if shift >= 0 else "unscale_rounded"
        return apply(kernel, args, to, call, 10 ** abs(shift), lenient=lenient)

    return rule


# --- the table -------------------------------------------------------------------------------------------------------

_SECOND = 1_000_000


def _table() -> Mapping[str, Operation]:
    same, number = "two values of one type", "two numbers"
    rows = [
        Operation("and", "conditions", _logic, "&", doc="True if all are, false as soon as one is, left to right; else NULL."),
        Operation("or", "conditions", _logic, "|", doc="True as soon as one is, left to right; false if all are; else NULL."),
        Operation("not", "a condition", _logic, "~", doc="NULL stays NULL."),
        Operation("eq", same, _comparison, "=", doc="NaN equals NaN, -0.0 equals 0.0; bigint and double compare as doubles."),
        Operation("ne", same, _comparison, "!="),
        Operation("lt", same, _comparison, "<", doc="NaN is greatest; strings by their UTF-8 bytes; false before true."),
        Operation("le", same, _comparison, "<="),
        Operation("gt", same, _comparison, ">"),
        Operation("ge", same, _comparison, ">="),
        Operation("eq_null_safe", same, _comparison, "<=>", doc="As eq, but NULL equals NULL and nothing else; never NULL."),
        Operation("is_null", "one value", _null_test),
        Operation("is_not_null", "one value", _null_test),
        Operation("add", "numbers, durations, instant and shift", _additive, "+", True, "Overflow fails."),
        Operation("sub", "numbers, durations, instants", _additive, "-", True, "Overflow fails."),
        Operation("mul", "numbers, duration and bigint", _multiplication, "*", True, "Overflow fails."),
        Operation("div", number, _division, "/", True, "Both become doubles; division by zero fails, of doubles too."),
        Operation("idiv", "bigints, durations", _integer_division, "div", True, "Truncates towards zero; by zero fails."),
        Operation("mod", "bigints, durations", _integer_division, "%", True, "Remainder of idiv, with the dividend's sign."),
        Operation("try_add", "as add", _additive, doc="As add; NULL where that fails, though not where an operand does."),
        Operation("try_sub", "as sub", _additive),
        Operation("try_mul", "as mul", _multiplication),
        Operation("try_div", "as div", _division),
        Operation("try_idiv", "as idiv", _integer_division),
        Operation("try_mod", "as mod", _integer_division),
        Operation("neg", "a number or duration", _sign, "-", True),
        Operation("abs", "a number or duration", _sign, None, True),
        Operation("least", "values of one type", _extreme, None, True, doc="NULL if any is; NaN is greatest. A bigint that fits no decimal fails beside one."),
        Operation("greatest", "values of one type", _extreme, None, True, doc="NULL if any is; NaN is greatest. A bigint that fits no decimal fails beside one."),
        Operation("floor", "instant and unit", _rounding, None, True, "Last multiple of the unit at or before."),
        Operation("ceil", "instant and unit", _rounding, None, True, "First multiple of the unit at or after."),
        Operation("if", "condition and two values", _conditional, None, True, doc="The second where the first is true, else the third; only that one is evaluated."),
        Operation("coalesce", "values of one type", _coalesce, None, True, doc="The first that is not NULL; later ones are not evaluated."),
        Operation("concat", "strings", _concat, "||", doc="NULL if any is."),
        Operation("lower", "a string", _fixed("lower", (STRING,), STRING), doc="ASCII letters only."),
        Operation("upper", "a string", _fixed("upper", (STRING,), STRING), doc="ASCII letters only."),
        Operation("length", "a string", _fixed("length", (STRING,), BIGINT), doc="In code points."),
        Operation("substring", "a string, start, length", _fixed("substring", (STRING, BIGINT, BIGINT), STRING), doc="Characters at positions start to start + length - 1, the first is 1."),
        Operation("trim", "a string", _fixed("trim", (STRING,), STRING), doc="Spaces (U+0020) only."),
        Operation("starts_with", "two strings", _fixed("starts_with", (STRING, STRING), BOOLEAN)),
        Operation("ends_with", "two strings", _fixed("ends_with", (STRING, STRING), BOOLEAN)),
        Operation("contains", "two strings", _fixed("contains", (STRING, STRING), BOOLEAN)),
        Operation("replace", "a string and two constants", _replace, doc="Every occurrence, left to right."),
        Operation("year", "timestamp or date", _calendar),
        Operation("month", "timestamp or date", _calendar),
        Operation("day", "timestamp or date", _calendar),
        Operation("day_of_week", "timestamp or date", _calendar, doc="Monday is 1, Sunday 7."),
        Operation("hour", "a timestamp", _clock(DAY, 3600 * _SECOND)),
        Operation("minute", "a timestamp", _clock(3600 * _SECOND, 60 * _SECOND)),
        Operation("second", "a timestamp", _clock(60 * _SECOND, _SECOND), doc="Whole seconds."),
        Operation("to_date", "a timestamp", _to_date, doc="Its day in UTC."),
        Operation("to_timestamp", "a date", _to_timestamp, None, True, "Its midnight in UTC."),
        Operation("sqrt", "a number", _fixed("sqrt", (DOUBLE,), DOUBLE), doc="NaN below zero."),
        Operation("exp", "a number", _fixed("exp", (DOUBLE,), DOUBLE), doc="Engines agree to 1e-12 relative."),
        Operation("ln", "a number", _fixed("ln", (DOUBLE,), DOUBLE), doc="-inf at zero, NaN below; engines agree to 1e-12."),
        Operation("power", number, _fixed("power", (DOUBLE, DOUBLE), DOUBLE), doc="As Java's pow; engines agree to 1e-12."),
        *(_cast(prefix + target) for prefix in ("cast_", "try_cast_") for target in _TARGETS),
    ]  # fmt: skip
    return MappingProxyType({row.name: row for row in rows})


OPERATIONS: Mapping[str, Operation] = _table()


# --- aggregates ------------------------------------------------------------------------------------------------------


def aggregate_type(aggregate: Aggregate, argument: DataType | None, by: DataType | None) -> DataType:
    """Type of an aggregate; NULL arguments are skipped by all, and an empty rest yields NULL (0 for the counts).

    sum: bigint, duration and decimal stay what they are (decimals with 18 digits) and fail where the total overflows
    (try_sum: are NULL), whatever the order of rows; of doubles it is compensated. avg: double. first, last: among rows where neither the
    argument nor `by` is NULL; of equal `by` the smallest argument.
    """
    from tidegate.algebra.nodes import Function

    function = aggregate.function
    ordered = function in (Function.FIRST, Function.LAST)
    if ordered and by is None:
        raise QueryError("TG132", f"{function.value} needs an order", hint="name it: by=e.time")
    if not ordered and by is not None:
        raise QueryError("TG132", f"{function.value} takes no order", hint="only first and last take by=")
    if argument is None:
        if function is Function.COUNT:
            return BIGINT
        raise QueryError("TG132", f"{function.value} needs an argument", hint="only count() counts rows")
    match function:
        case Function.COUNT | Function.COUNT_DISTINCT:
            return BIGINT
        case Function.MIN | Function.MAX | Function.FIRST | Function.LAST:
            if argument == NULL:
                raise QueryError("TG102", f"{function.value} of NULL has no type", hint="cast it")
            return argument
        case Function.SUM | Function.TRY_SUM if argument.kind is Kind.DECIMAL:
            return decimal(MAX_DECIMAL_PRECISION, argument.scale)
        case Function.SUM | Function.TRY_SUM if argument in (BIGINT, DOUBLE, DURATION):
            return argument
        case Function.AVG if argument.is_numeric:
            return DOUBLE
        case Function.SUM | Function.TRY_SUM | Function.AVG:
            takes = "numbers" if function is Function.AVG else "numbers or durations"
            hint = (
                'average .cast("bigint") of the duration, in microseconds'
                if argument == DURATION
                else "cast it to a number"
            )
            raise QueryError("TG102", f"{function.value} takes {takes}, not {argument}", hint=hint)
        case _:
            assert_never(function)
