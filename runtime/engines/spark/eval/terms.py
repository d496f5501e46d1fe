"""Terms as Spark columns, equal to their evaluation in Python, failures included, with ANSI mode on or off.

As in `runtime.eval.terms`, a term compiles to a value and, where it can fail at all, the number of its failure.
Everything goes through the Column API; whatever could raise by itself is a `try_` form or stands behind a `when`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import assert_never

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.errors import InternalError
from tidegate.algebra.evaluation import EvaluationError, is_evaluation_error
from tidegate.algebra.kernels import (
    BAD_CAST,
    DATE_TEXT,
    DAY,
    ERA_DAYS,
    ERA_YEARS,
    FIRST_DAY,
    INSTANT_TEXT,
    INTEGER_TEXT,
    LAST_DAY,
    NUMBER_TEXT,
    OVERFLOW,
    ZERO_DIVISION,
)
from tidegate.algebra.operations import resolve
from tidegate.algebra.pretty import term_text
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Lit, Param, Term, Value, balanced
from tidegate.algebra.typed import Typed, can_overflow, failure_code, mentions, typed_nodes
from tidegate.algebra.types import INT64_MAX, INT64_MIN, DataType, Kind


@dataclass(frozen=True, slots=True)
class Compiled:
    """A term's value and the number of its failure (1 overflow, 2 division by zero, 3 failed cast; NULL: none).

    `error` is None where no row can fail. Where a row fails its value means nothing.
    """

    value: Column
    error: Column | None
    size: int = 1  # nodes of the value, roughly


#: Operands whose mentions would make a larger expression are bound to names.
_LARGEST = 300


def held_type(type_: DataType) -> str:
    """The Spark type that values are held in; a NULL of no type counts as an integer."""
    match type_.kind:
        case Kind.BOOLEAN:
            return "boolean"
        case Kind.DOUBLE:
            return "double"
        case Kind.STRING:
            return "string"
        case Kind.BIGINT | Kind.TIMESTAMP | Kind.DATE | Kind.DURATION | Kind.DECIMAL | Kind.NULL:
            return "bigint"
        case _:
            assert_never(type_.kind)


def compile_pair(term: Term, schema: Mapping[str, Attribute], columns: Mapping[str, str] | None = None) -> Compiled:
    """The term's value and error. `columns` names the column of an attribute, and of a parameter under `$name`."""
    return _compile(resolve(term, schema), columns or {})


def compile_term(term: Term, schema: Mapping[str, Attribute], columns: Mapping[str, str] | None = None) -> Column:
    """The term's value; the job fails where it has none on any row that it is evaluated on.

    The failure's text holds an `EvaluationError`: code, term, and the row's values as held; see `raised_error`.
    """
    typed = resolve(term, schema)
    names = columns or {}
    compiled = _compile(typed, names)
    if compiled.error is None:
        return compiled.value
    text = term_text(term)
    reasons = [f"{code} {text}: {reason}" for code, reason in _REASONS]
    parts = [F.element_at(F.array(*map(F.lit, reasons)), compiled.error)]
    leaves = {leaf.source: leaf for leaf in typed_nodes(typed) if leaf.kernel in ("attribute", "parameter")}
    for i, leaf in enumerate(leaves.values()):
        shown = F.coalesce(_column(leaf, names).cast("string"), F.lit("NULL"))
        parts += [F.lit(("\n                " if i else "\n  because       ") + f"{term_text(leaf.source)} = "), shown]
    raised = F.raise_error(F.concat(*parts)).cast(held_type(typed.type))
    return F.when(compiled.error.isNotNull(), raised).otherwise(compiled.value)


#: By the number of the failure, from 1.
_REASONS = (
    (OVERFLOW, "the result is out of range"),
    (ZERO_DIVISION, "division by zero"),
    (BAD_CAST, "the value cannot be cast"),
)

#: The same under the name that says what it adds to `compile_pair`.
compile_checked = compile_term


def raised_error(failure: BaseException) -> EvaluationError | None:
    """The `EvaluationError` that a failed Spark job carries in its text, if it failed for one."""
    text = re.sub(r" SQLSTATE: \w+$", "", str(failure), flags=re.MULTILINE)
    return EvaluationError(text) if is_evaluation_error(text) else None


def _column(leaf: Typed, names: Mapping[str, str]) -> Column:
    source = leaf.source
    assert isinstance(source, Attr | Param)
    name = source.name if isinstance(source, Attr) else f"${source.name}"
    column = names.get(name, name)
    return F.col(f"`{column.replace('`', '``')}`")


def _constant(value: Value, type_: str) -> Column:
    return F.lit(value).cast(type_)


def _long(value: int) -> Column:
    return F.lit(value).cast("bigint")


def _compile(term: Typed, names: Mapping[str, str]) -> Compiled:
    match term.kernel:
        case "literal":
            assert isinstance(term.source, Lit)
            return Compiled(_constant(term.source.value, held_type(term.type)), None)
        case "attribute" | "parameter":
            return Compiled(_column(term, names), None)
    args = [_compile(arg, names) for arg in term.args]
    values, errors = [arg.value for arg in args], [arg.error for arg in args]
    size = 1 + sum(arg.size for arg in args)
    match term.kernel:
        case "and":
            return balanced(_in_turn(and_, lambda known: ~known.eqNullSafe(F.lit(False))), args)
        case "or":
            return balanced(_in_turn(or_, lambda known: ~known.eqNullSafe(F.lit(True))), args)
        case "coalesce":
            return balanced(_in_turn(lambda a, b: F.coalesce(a, b), lambda known: known.isNull()), args)
        case "if":
            chosen = F.when(values[0], values[1]).otherwise(values[2])
            branch = None
            if errors[1] is not None or errors[2] is not None:
                branch = F.when(values[0], _or_none(errors[1])).otherwise(_or_none(errors[2]))
            return Compiled(chosen, _first([errors[0], branch]), size)
    if mentions(term) > 1 and mentions(term) * size > _LARGEST:
        fails = not term.lenient and (can_overflow(term) or failure_code(term.kernel, term.args) is not None)
        value = _bind(values, lambda bound: _apply(term, bound)[0])
        own = _bind(values, lambda bound: _or_none(_apply(term, bound)[1])) if fails else None
        size += 50
    else:
        value, own = _apply(term, values)
        size *= mentions(term)
    return Compiled(value, _first([*errors, own]), size)


def _bind(values: list[Column], body: Callable[[list[Column]], Column]) -> Column:
    """The body over names that stand for the values: each is computed once. A lambda is the only binder there is."""
    row = F.array(F.struct(*(value.alias(f"v{place}") for place, value in enumerate(values))))
    bound = F.transform(row, lambda s: body([s.getField(f"v{place}") for place in range(len(values))]))
    return F.element_at(bound, 1)


def _apply(term: Typed, values: list[Column]) -> tuple[Column, Column | None]:
    """The kernel over its operands' values: its value, and its own error if it can fail."""
    value = _value(term, values)
    failed = _failures(term, values, value)
    if not failed:
        return value, None
    present = [v.isNotNull() for v, arg in zip(values, term.args, strict=True) if arg.nullable]
    failed = [(reduce(and_, [*present, condition]), code) for condition, code in failed]
    if term.lenient:
        return F.when(~reduce(or_, [_surely(c) for c, _ in failed]), value), None
    return value, _first([F.when(condition, F.lit(int(code[-1]))) for condition, code in failed])


def _surely(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))


def _or_none(error: Column | None) -> Column:
    return _constant(None, "int") if error is None else error


def _first(errors: list[Column | None]) -> Column | None:
    known = [error for error in errors if error is not None]
    if not known:
        return None
    return known[0] if len(known) == 1 else F.coalesce(*known)


def _in_turn(
    combine: Callable[[Column, Column], Column], goes_on: Callable[[Column], Column]
) -> Callable[[Compiled, Compiled], Compiled]:
    """Puts two operands together, of which the second is evaluated only where `goes_on` holds for the first."""

    def joined(a: Compiled, b: Compiled) -> Compiled:
        later = None if b.error is None else F.when(goes_on(a.value), b.error)
        return Compiled(combine(a.value, b.value), _first([a.error, later]), 1 + a.size + b.size)

    return joined


# --- failures --------------------------------------------------------------------------------------------------------


def _failures(term: Typed, args: list[Column], value: Column) -> list[tuple[Column, str]]:
    """Conditions under which the kernel itself fails, each with its code, in the order in which Python finds them."""
    found: list[tuple[Column, str]] = []
    code = failure_code(term.kernel, term.args)
    if code is not None:
        found.append((_no_value(term.kernel, args), code))
    if can_overflow(term):
        low, high = term.limits
        # Every kernel that can leave int64 yields NULL there; decimals end earlier.
        beyond = value.isNull()
        found.append(
            (beyond if (low, high) == (INT64_MIN, INT64_MAX) else beyond | (value < low) | (value > high), OVERFLOW)
        )
    return found


def _no_value(kernel: str, args: list[Column]) -> Column:
    match kernel:
        case "idiv_int" | "mod_int" | "div_double":
            return args[1] == 0
        case "double_to_int":
            return ~_in_int64(args[0])
        case "parse_int":
            return ~args[0].rlike(_java(INTEGER_TEXT)) | args[0].try_cast("bigint").isNull()
        case "parse_double":
            return ~args[0].rlike(_java(NUMBER_TEXT))
        case "parse_date":
            return ~_surely(_Civil.read(args[0], DATE_TEXT).valid())
        case "parse_timestamp":
            hour, minute, second, _ = _clock(args[0])
            in_range = (hour < 24) & (minute < 60) & (second < 60)
            return ~_surely(_Civil.read(args[0], INSTANT_TEXT).valid() & in_range)
        case "format_date":
            return ~args[0].between(FIRST_DAY, LAST_DAY)
        case "format_timestamp":
            return ~args[0].between(FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1)
        case _:
            raise InternalError("TG902", f"kernel {kernel} has no test of failure in Spark")


# --- values ----------------------------------------------------------------------------------------------------------


def _value(term: Typed, args: list[Column]) -> Column:
    """The kernel's value where it does not fail; NULL where an operand is, or where int64 overflows."""
    constants = term.constants
    checked = can_overflow(term)
    match term.kernel, args:
        case "not", [a]:
            return ~a
        case "is_null", [a]:
            return a.isNull()
        case "is_not_null", [a]:
            return a.isNotNull()
        case "eq_null_safe", [a, b]:
            return a.eqNullSafe(b)
        case "eq", [a, b]:
            return a == b
        case "ne", [a, b]:
            return a != b
        case "lt", [a, b]:
            return a < b
        case "le", [a, b]:
            return a <= b
        case "gt", [a, b]:
            return a > b
        case "ge", [a, b]:
            return a >= b
        case (("least" | "greatest"), _):
            return _extreme(term, args)
        case "add_int", [a, b]:
            return _add(a, b, checked)
        case "sub_int", [a, b]:
            return _subtract(a, b, checked)
        case "mul_int", [a, b]:
            return _multiply(a, b, checked)
        case "add_double", [a, b]:
            return a + b
        case "sub_double", [a, b]:
            return a - b
        case "mul_double", [a, b]:
            return a * b
        case "div_double", [a, b]:
            return F.try_divide(a, b)
        case "idiv_int", [a, b]:
            possible = b != 0
            if checked:
                possible = possible & ~((a == INT64_MIN) & (b == -1))
            return F.when(possible, F.call_function("div", a, b))
        case "mod_int", [a, b]:
            return F.when(b != 0, a % b)
        case "neg_int", [a]:
            return _subtract(_long(0), a, checked)
        case "abs_int", [a]:
            return F.when(a < 0, _subtract(_long(0), a, checked)).otherwise(a)
        case "neg_double", [a]:
            return -a
        case "abs_double", [a]:
            return F.abs(a)
        case "floor_int", [a, unit]:
            return _subtract(a, F.pmod(a, unit), checked)
        case "ceil_int", [a, unit]:
            rest = F.pmod(a, unit)
            return _add(a, F.when(rest == 0, _long(0)).otherwise(unit - rest), checked)
        case "floor_div", [a]:
            return _floor_div(a, constants[0])
        case "part", [a]:
            return F.call_function("div", F.pmod(a, _long(constants[0])), _long(constants[1]))
        case "rescale", [a]:
            return a if constants[0] == 1 else _multiply(a, _long(constants[0]), checked)
        case "rescale_clamped", [a]:
            most = 10**18 // constants[0]
            beyond = F.when(a > most, _long(10**18)).when(a < -most, _long(-(10**18)))
            return beyond.otherwise(a * _long(constants[0]))
        case "unscale", [a]:
            return F.call_function("div", a, _long(constants[0]))
        case "unscale_rounded", [a]:
            factor, half = _long(constants[0]), constants[0] // 2
            return F.call_function("div", F.when(a < 0, a - half).otherwise(a + half), factor)
        case "int_to_double", [a]:
            return a.cast("double")
        case "decimal_to_double", [a]:
            return a.cast("double") / float(constants[0])
        case "sqrt", [a]:
            return F.sqrt(a)
        case "exp", [a]:
            return F.exp(a)
        case "ln", [a]:
            # Spark's own logarithm is NULL where there is none.
            return F.when(a > 0, F.log(a)).when(a == 0, float("-inf")).when(a < 0, float("nan"))
        case "power", [a, b]:
            return F.pow(F.when(a == 0, 0.0).otherwise(a), b)
        case "concat", _:
            return F.concat(*args)
        case "lower", [a]:
            return F.translate(a, _LETTERS, _LETTERS.lower())
        case "upper", [a]:
            return F.translate(a, _LETTERS.lower(), _LETTERS)
        case "length", [a]:
            return F.length(a).cast("bigint")
        case "substring", [a, start, length]:
            return _substring(a, start, length)
        case "trim", [a]:
            return F.trim(a)
        case "starts_with", [a, b]:
            return F.startswith(a, b)
        case "ends_with", [a, b]:
            return F.endswith(a, b)
        case "contains", [a, b]:
            return F.contains(a, b)
        case "replace", [a, old, new]:
            return F.replace(a, old, new)
        case "year", [a]:
            return F.year(_date(a)).cast("bigint") + _floor_div(a, ERA_DAYS) * ERA_YEARS
        case "month", [a]:
            return F.month(_date(a)).cast("bigint")
        case "day", [a]:
            return F.dayofmonth(_date(a)).cast("bigint")
        case "day_of_week", [a]:
            return (F.pmod(a, _long(7)) + 3) % 7 + 1
        case "bool_to_int", [a]:
            return a.cast("bigint")
        case "double_to_int", [a]:
            return F.when(_in_int64(a), a).try_cast("bigint")
        case "parse_int", [a]:
            return F.when(a.rlike(_java(INTEGER_TEXT)), a).try_cast("bigint")
        case "parse_double", [a]:
            return F.when(a.rlike(_java(NUMBER_TEXT)), a).try_cast("double")
        case "parse_date", [a]:
            return _Civil.read(a, DATE_TEXT).day_number()
        case "parse_timestamp", [a]:
            hour, minute, second, micros = _clock(a)
            day = _Civil.read(a, INSTANT_TEXT).day_number()
            return day * _long(DAY) + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
        case (("int_to_string" | "bool_to_string"), [a]):
            return a.cast("string")
        case "format_date", [a]:
            return _date_text(a)
        case "format_timestamp", [a]:
            rest = F.pmod(a, _long(DAY))
            units = (
                (DAY, 3_600_000_000, 2),
                (3_600_000_000, 60_000_000, 2),
                (60_000_000, 1_000_000, 2),
                (1_000_000, 1, 6),
            )
            clock = [_digits(F.call_function("div", rest % _long(w), _long(u)), width) for w, u, width in units]
            marks = [F.lit(mark) for mark in "T::.Z"]
            timed = [part for pair in zip(marks, clock, strict=False) for part in pair]
            return F.concat(_date_text(_floor_div(a, DAY)), *timed, marks[-1])
        case _:
            raise InternalError("TG902", f"kernel {term.kernel} is unknown to Spark")


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _add(a: Column, b: Column, checked: bool) -> Column:
    return F.try_add(a, b) if checked else a + b


def _subtract(a: Column, b: Column, checked: bool) -> Column:
    return F.try_subtract(a, b) if checked else a - b


def _multiply(a: Column, b: Column, checked: bool) -> Column:
    return F.try_multiply(a, b) if checked else a * b


def _floor_div(a: Column, unit: int) -> Column:
    # `div` truncates: one down where a remainder is left below zero.
    return F.call_function("div", a, _long(unit)) - (a % _long(unit) < 0).cast("bigint")


def _in_int64(a: Column) -> Column:
    return (a >= -(2.0**63)) & (a < 2.0**63)


def _java(pattern: str) -> str:
    """Java's `$` also matches before a last line break, `\\z` does not."""
    return pattern.removesuffix("$") + r"\z"


def _extreme(term: Typed, args: list[Column]) -> Column:
    if len(args) == 1:
        return args[0]
    found = F.least(*args) if term.kernel == "least" else F.greatest(*args)
    # Spark's own forms skip NULLs.
    present = [arg.isNotNull() for arg, typed in zip(args, term.args, strict=True) if typed.nullable]
    return F.when(reduce(and_, present), found) if present else found


def _substring(text: Column, start: Column, length: Column) -> Column:
    longest = _long(2**31 - 1)  # positions are 32-bit integers in Spark, and so are lengths in bytes
    length = F.when(length < 0, _long(0)).otherwise(length)
    # What lies before the first character counts as taken; neither sum can overflow.
    before = F.greatest(F.least(start, _long(0)) + length, _long(1)) - 1
    taken = F.when(start >= 1, length).otherwise(before)
    first = F.least(F.greatest(start, _long(1)), longest)
    found = F.substring(text, first.cast("int"), F.least(taken, longest).cast("int"))
    return F.when(start.isNotNull() & length.isNotNull(), found)


def _date(day: Column) -> Column:
    """The day's date in the first era after the epoch: month, day and weekday repeat every 400 years."""
    return F.date_from_unix_date(F.pmod(day, _long(ERA_DAYS)).cast("int"))


def _digits(value: Column, width: int) -> Column:
    return F.lpad(value.cast("string"), width, "0")


def _date_text(day: Column) -> Column:
    date = _date(day)
    year = F.year(date).cast("bigint") + _floor_div(day, ERA_DAYS) * ERA_YEARS
    dash = F.lit("-")
    return F.concat(_digits(year, 4), dash, _digits(F.month(date), 2), dash, _digits(F.dayofmonth(date), 2))


def _group(text: Column, pattern: str, group: int) -> Column:
    return F.regexp_extract(text, _java(pattern), group).try_cast("bigint")


def _clock(text: Column) -> tuple[Column, Column, Column, Column]:
    """Hour, minute, second and microsecond of an instant's text; what may be left out is 0."""
    hour, minute, second = (_group(text, INSTANT_TEXT, group) for group in (4, 5, 6))
    fraction = F.rpad(F.regexp_extract(text, _java(INSTANT_TEXT), 7), 6, "0").try_cast("bigint")
    return hour, minute, F.coalesce(second, _long(0)), fraction


@dataclass(frozen=True, slots=True)
class _Civil:
    """Year, month and day as read from text; NULL where the text has another form."""

    year: Column
    month: Column
    day: Column

    @classmethod
    def read(cls, text: Column, pattern: str) -> _Civil:
        return cls(*(_group(text, pattern, group) for group in (1, 2, 3)))

    def valid(self) -> Column:
        leap = (self.year % 4 == 0) & ((self.year % 100 != 0) | (self.year % 400 == 0))
        february = F.when(leap, 29).otherwise(28)
        days = F.when(self.month == 2, february).when(self.month.isin(4, 6, 9, 11), 30).otherwise(31)
        return (self.year >= 1) & self.month.between(1, 12) & (self.day >= 1) & (self.day <= days)

    def day_number(self) -> Column:
        """Days since the epoch of a valid date; years begin in March, so that leap days end them."""
        late = (self.month > 2).cast("bigint")
        year, month = self.year + late - 1, self.month + 9 - late * 12
        of_year = _floor_div(month * 153 + 2, 5) + self.day - 1
        leaps = _floor_div(year, 4) - _floor_div(year, 100) + _floor_div(year, 400)
        return year * 365 + leaps + of_year - 719_468
