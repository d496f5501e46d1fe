"""Terms as Polars expressions, equal to their evaluation in Python, failures included.

A term compiles to a value and, where it can fail at all, an error: the code of the first failure, else NULL. What cannot
fail by its static ranges stays a plain expression. Errors follow the short circuits of and, or, if and coalesce.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, or_
from typing import assert_never

import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.evaluation import EvaluationError, evaluator
from tidegate.algebra.kernels import (
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
)
from tidegate.algebra.operations import resolve
from tidegate.algebra.pretty import term_text
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Lit, Param, Term, balanced
from tidegate.algebra.typed import Typed, can_overflow, failure_code, mentions, typed_nodes
from tidegate.algebra.types import INT64_MAX, INT64_MIN, DataType, Kind


@dataclass(frozen=True, slots=True)
class Compiled:
    """A term's value and the number of its failure (1 overflow, 2 division by zero, 3 failed cast; NULL: none).

    `error` is None where no row can fail. Where a row fails its value means nothing.
    """

    value: pl.Expr
    error: pl.Expr | None
    size: int = 1  # nodes of the value, roughly


#: Operands whose mentions would make a larger expression are bound to names.
_LARGEST = 300


def held_type(type_: DataType) -> pl.DataType:
    """The Polars type that values are held in; a NULL of no type counts as an integer."""
    match type_.kind:
        case Kind.BOOLEAN:
            return pl.Boolean()
        case Kind.DOUBLE:
            return pl.Float64()
        case Kind.STRING:
            return pl.String()
        case Kind.BIGINT | Kind.TIMESTAMP | Kind.DATE | Kind.DURATION | Kind.DECIMAL | Kind.NULL:
            return pl.Int64()
        case _:
            assert_never(type_.kind)


def compile_pair(term: Term, schema: Schema) -> Compiled:
    """The term's value and error; a parameter is a column under `$name`."""
    return _compile(resolve(term, schema))


@lru_cache(maxsize=4096)  # batch after batch evaluates the same terms
def compile_term(term: Term, schema: Schema) -> pl.Expr:
    """The term's value; evaluating it raises `EvaluationError` where it has none on any row it is evaluated on."""
    typed = resolve(term, schema)
    compiled = _compile(typed)
    if compiled.error is None:
        return compiled.value
    leaves = sorted({_column_name(t) for t in typed_nodes(typed) if t.kernel in ("attribute", "parameter")})
    # A literal alone has one row on an empty frame: the row count gives it the frame's length.
    rows = pl.int_range(pl.len()).alias("rows")
    parts = [compiled.value.alias("value"), compiled.error.alias("error"), rows]
    inputs = [pl.col(name).alias(f"in {name}") for name in leaves]

    def check(packed: pl.Series) -> pl.Series:
        errors = packed.struct.field("error")
        if errors.null_count() == len(errors):
            return packed.struct.field("value")
        first = errors.is_not_null().arg_max() or 0
        row = packed[first]
        evaluator(typed)({name: row[f"in {name}"] for name in leaves})
        raise InternalError("TG901", f"engines disagree whether {term_text(term)} fails for {row}")

    return pl.struct(*parts, *inputs).map_batches(check, return_dtype=held_type(typed.type))


#: The same under the name that says what it adds to `compile_pair`.
compile_checked = compile_term


def _column_name(leaf: Typed) -> str:
    source = leaf.source
    assert isinstance(source, Attr | Param)
    return source.name if isinstance(source, Attr) else f"${source.name}"


def _compile(term: Typed) -> Compiled:
    match term.kernel:
        case "literal":
            assert isinstance(term.source, Lit)
            return Compiled(pl.lit(term.source.value, dtype=held_type(term.type)), None)
        case "attribute" | "parameter":
            return Compiled(pl.col(_column_name(term)), None)
    if not any(leaf.kernel in ("attribute", "parameter") for leaf in typed_nodes(term)):
        return _constant(term)
    args = [_compile(arg) for arg in term.args]
    values, errors = [arg.value for arg in args], [arg.error for arg in args]
    size = 1 + sum(arg.size for arg in args)
    match term.kernel:
        case "and":
            return balanced(_in_turn(and_, lambda known: known.ne_missing(False)), args)
        case "or":
            return balanced(_in_turn(or_, lambda known: known.ne_missing(True)), args)
        case "coalesce":
            return balanced(_in_turn(lambda a, b: _coalesce([a, b]), lambda known: known.is_null()), args)
        case "if":
            chosen = pl.when(values[0]).then(values[1]).otherwise(values[2])
            branch = None
            if errors[1] is not None or errors[2] is not None:
                branch = pl.when(values[0]).then(_or_none(errors[1])).otherwise(_or_none(errors[2]))
            return Compiled(chosen, _first([errors[0], branch]), size)
    if mentions(term) > 1 and mentions(term) * size > _LARGEST:
        size += 50
        bound = [pl.col(str(place)) for place in range(len(args))]
        value, own = _apply(term, bound)
        value = _bind(values, value, held_type(term.type))
        own = None if own is None else _bind(values, own, pl.Int8())
    else:
        value, own = _apply(term, values)
        size *= mentions(term)
    return Compiled(value, _first([*errors, own]), size)


def _constant(term: Typed) -> Compiled:
    """A term without attributes, evaluated now: functions of literals have length 1, which no frame stretches."""
    held = held_type(term.type)
    try:
        return Compiled(pl.lit(evaluator(term)({}), dtype=held), None)
    except EvaluationError as error:
        return Compiled(pl.lit(None, dtype=held), pl.lit(int(error.code[-1]), dtype=pl.Int8))


def _bind(values: list[pl.Expr], body: pl.Expr, result: pl.DataType) -> pl.Expr:
    """The body over columns `0`, `1`, …, which stand for the values: each is computed once."""
    named = pl.struct(value.alias(str(place)) for place, value in enumerate(values))
    return named.map_batches(
        lambda packed: packed.struct.unnest().select(body.alias(packed.name)).to_series(),
        return_dtype=result,
        is_elementwise=True,
    )


def _apply(term: Typed, values: list[pl.Expr]) -> tuple[pl.Expr, pl.Expr | None]:
    """The kernel over its operands' values: its value, and its own error if it can fail."""
    value = _value(term, values)
    failed = _failures(term, values)
    if not failed:
        return value, None
    present = [v.is_not_null() for v, arg in zip(values, term.args, strict=True) if arg.nullable]
    failed = [(reduce(and_, present, condition), code) for condition, code in failed]
    if term.lenient:
        return pl.when(reduce(or_, [c for c, _ in failed])).then(None).otherwise(value), None
    return value, _first([pl.when(condition).then(pl.lit(int(code[-1]), dtype=pl.Int8)) for condition, code in failed])


def _or_none(error: pl.Expr | None) -> pl.Expr:
    return pl.lit(None, dtype=pl.Int8) if error is None else error


def _first(errors: list[pl.Expr | None]) -> pl.Expr | None:
    known = [error for error in errors if error is not None]
    if not known:
        return None
    return _coalesce(known)


def _coalesce(values: list[pl.Expr]) -> pl.Expr:
    """The first that is not NULL. Nothing follows a constant: Polars takes one in front as a column of length 1."""
    ends = next(
        (place for place, value in enumerate(values) if value.meta.is_literal() and not _is_null(value)), len(values)
    )
    needed = values[: ends + 1]
    return needed[0] if len(needed) == 1 else pl.coalesce(needed)


def _is_null(literal: pl.Expr) -> bool:
    return pl.select(literal).item() is None


def _in_turn(
    combine: Callable[[pl.Expr, pl.Expr], pl.Expr], goes_on: Callable[[pl.Expr], pl.Expr]
) -> Callable[[Compiled, Compiled], Compiled]:
    """Puts two operands together, of which the second is evaluated only where `goes_on` holds for the first."""

    def joined(a: Compiled, b: Compiled) -> Compiled:
        later = None if b.error is None else pl.when(goes_on(a.value)).then(b.error)
        return Compiled(combine(a.value, b.value), _first([a.error, later]), 1 + a.size + b.size)

    return joined


# --- failures --------------------------------------------------------------------------------------------------------


def _failures(term: Typed, args: list[pl.Expr]) -> list[tuple[pl.Expr, str]]:
    """Conditions under which the kernel itself fails, each with its code, in the order in which Python finds them."""
    found: list[tuple[pl.Expr, str]] = []
    code = failure_code(term.kernel, term.args)
    if code is not None:
        found.append((_no_value(term.kernel, args), code))
    if can_overflow(term):
        found.append((_overflow(term, args), OVERFLOW))
    return found


def _no_value(kernel: str, args: list[pl.Expr]) -> pl.Expr:
    match kernel:
        case "idiv_int" | "mod_int" | "div_double":
            return args[1] == 0
        case "double_to_int":
            return ~((args[0] >= -(2.0**63)) & (args[0] < 2.0**63))
        case "parse_int":
            return ~args[0].str.contains(INTEGER_TEXT) | args[0].cast(pl.Int64, strict=False).is_null()
        case "parse_double":
            return ~args[0].str.contains(NUMBER_TEXT)
        case "parse_date":
            return ~_Civil.read(args[0], DATE_TEXT).valid().fill_null(False)
        case "parse_timestamp":
            clock = _clock(args[0])
            in_range = (clock[0] < 24) & (clock[1] < 60) & (clock[2] < 60)
            return ~(_Civil.read(args[0], INSTANT_TEXT).valid() & in_range).fill_null(False)
        case "format_date":
            return ~args[0].is_between(FIRST_DAY, LAST_DAY)
        case "format_timestamp":
            return ~args[0].is_between(FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1)
        case _:
            raise InternalError("TG902", f"kernel {kernel} has no test of failure in Polars")


def _overflow(term: Typed, args: list[pl.Expr]) -> pl.Expr:
    """Exact tests for results beyond the limits: Polars integers wrap silently."""
    low, high = term.limits
    match term.kernel:
        case "add_int" | "sub_int" if (shift := _literal(term.args[1])) is not None:
            shift = shift if term.kernel == "add_int" else -shift
            return _outside(args[0], low - shift, high - shift)
        case "add_int" if (shift := _literal(term.args[0])) is not None:
            return _outside(args[1], low - shift, high - shift)
        case "add_int" | "sub_int" if (low, high) == (INT64_MIN, INT64_MAX):
            a, b = args
            result = a + b if term.kernel == "add_int" else a - b
            # Overflow iff the result's sign differs from both operands' (from a's alone, of unlike operands, for -).
            return (((a ^ result) & (b ^ result)) if term.kernel == "add_int" else ((a ^ b) & (a ^ result))) < 0
        case "mul_int" if (factor := _literal(term.args[1])) is not None:
            return _outside(args[0], *_factor_range(low, high, factor))
        case "mul_int" if (factor := _literal(term.args[0])) is not None:
            return _outside(args[1], *_factor_range(low, high, factor))
        case "mul_int":
            a, b = args
            result = a * b
            wraps = (a != 0) & ((result // a != b) | ((a == -1) & (b == INT64_MIN)))
            return wraps | _outside(result, low, high)
        case "rescale":
            return _outside(args[0], *_factor_range(low, high, term.constants[0]))
        case "neg_int" | "abs_int":
            return args[0] == INT64_MIN
        case "idiv_int":
            return (args[0] == INT64_MIN) & (args[1] == -1)
        case "floor_int":
            unit = _literal(term.args[1]) or 1
            return args[0] < -(-low // unit) * unit
        case "ceil_int":
            unit = _literal(term.args[1]) or 1
            return args[0] > high // unit * unit
        case _:
            # Decimals have 18 digits: sums of two fit int64, and only the result needs a look.
            return _outside(_value(term, args), low, high)


def _literal(term: Typed) -> int | None:
    value = term.source.value if term.kernel == "literal" and isinstance(term.source, Lit) else None
    return value if isinstance(value, int) else None


def _factor_range(low: int, high: int, factor: int) -> tuple[int, int]:
    """All integers whose multiple by `factor` lies within the limits."""
    if factor == 0:
        return INT64_MIN, INT64_MAX
    ends = (low, high) if factor > 0 else (high, low)
    return -(-ends[0] // factor), ends[1] // factor


def _outside(value: pl.Expr, low: int, high: int) -> pl.Expr:
    tests = [value < low] if low > INT64_MIN else []
    tests += [value > high] if high < INT64_MAX else []
    return reduce(or_, tests) if tests else pl.lit(False)


# --- values ----------------------------------------------------------------------------------------------------------


def _value(term: Typed, args: list[pl.Expr]) -> pl.Expr:
    """The kernel's value where it does not fail; NULL where an operand is."""
    constants = term.constants
    match term.kernel, args:
        case "not", [a]:
            return ~a
        case "is_null", [a]:
            return a.is_null()
        case "is_not_null", [a]:
            return a.is_not_null()
        case "eq_null_safe", [a, b]:
            return a.eq_missing(b)
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
        case (("add_int" | "add_double"), [a, b]):
            return a + b
        case (("sub_int" | "sub_double"), [a, b]):
            return a - b
        case (("mul_int" | "mul_double"), [a, b]):
            return a * b
        case "div_double", [a, b]:
            return _divide(a, b)
        case "idiv_int", [a, b]:
            # // rounds down: one up where a remainder is left and the signs differ.
            inexact = (a % b != 0) & ((a < 0) != (b < 0))
            return a // b + inexact.cast(pl.Int64)
        case "mod_int", [a, b]:
            rest = a % b
            return rest - pl.when((rest != 0) & ((a < 0) != (b < 0))).then(b).otherwise(0)
        case (("neg_int" | "neg_double"), [a]):
            return -a
        case (("abs_int" | "abs_double"), [a]):
            return a.abs()
        case "floor_int", [a, unit]:
            return a - a % unit
        case "ceil_int", [a, unit]:
            rest = a % unit
            return a + pl.when(rest == 0).then(0).otherwise(unit - rest)
        case "floor_div", [a]:
            return a // constants[0]
        case "part", [a]:
            return a % constants[0] // constants[1]
        case "rescale", [a]:
            return a if constants[0] == 1 else a * constants[0]
        case "rescale_clamped", [a]:
            most = 10**18 // constants[0]
            return a.clip(-most, most) * constants[0]
        case "unscale", [a]:
            return a.sign() * (a.abs() // constants[0])
        case "unscale_rounded", [a]:
            return a.sign() * ((a.abs() + constants[0] // 2) // constants[0])
        case "int_to_double", [a]:
            return a.cast(pl.Float64)
        case "decimal_to_double", [a]:
            return _divide(a.cast(pl.Float64), pl.lit(float(constants[0])))
        case "sqrt", [a]:
            return a.sqrt()
        case "exp", [a]:
            return a.exp()
        case "ln", [a]:
            return a.log()
        case "power", [a, b]:
            return _power(a, b)
        case "concat", _:
            return pl.concat_str(args)
        case "lower", [a]:
            return a.str.replace_many(_LETTERS, [letter.lower() for letter in _LETTERS])
        case "upper", [a]:
            return a.str.replace_many([letter.lower() for letter in _LETTERS], _LETTERS)
        case "length", [a]:
            return a.str.len_chars().cast(pl.Int64)
        case "substring", [a, start, length]:
            length = length.clip(0, None)
            # What lies before the first character counts as taken; neither sum can overflow.
            before = (start.clip(None, 0) + length).clip(1, None) - 1
            taken = pl.when(start >= 1).then(length).otherwise(before)
            found = a.str.slice(start.clip(1, _LONG) - 1, taken.clip(None, _LONG))
            return pl.when(start.is_not_null() & length.is_not_null()).then(found)
        case "trim", [a]:
            return a.str.strip_chars(" ")
        case "starts_with", [a, b]:
            return a.str.starts_with(b)
        case "ends_with", [a, b]:
            return a.str.ends_with(b)
        case "contains", [a, b]:
            return a.str.contains(b, literal=True)
        case "replace", [a, old, new]:
            return a.str.replace_all(old, new, literal=True)
        case "year", [a]:
            return _date(a).dt.year().cast(pl.Int64) + a // ERA_DAYS * ERA_YEARS
        case "month", [a]:
            return _date(a).dt.month().cast(pl.Int64)
        case "day", [a]:
            return _date(a).dt.day().cast(pl.Int64)
        case "day_of_week", [a]:
            return (a % 7 + 3) % 7 + 1
        case (("bool_to_int" | "double_to_int" | "parse_int"), [a]):
            return a.cast(pl.Int64, strict=False)
        case "parse_double", [a]:
            return a.cast(pl.Float64, strict=False)
        case "parse_date", [a]:
            return _Civil.read(a, DATE_TEXT).day_number()
        case "parse_timestamp", [a]:
            hour, minute, second, micros = _clock(a)
            day = _Civil.read(a, INSTANT_TEXT).day_number()
            return day * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
        case (("int_to_string" | "bool_to_string"), [a]):
            return a.cast(pl.String)
        case "format_date", [a]:
            return _date_text(a)
        case "format_timestamp", [a]:
            rest = a % DAY
            clock = [
                (rest // 3_600_000_000, 2),
                (rest // 60_000_000 % 60, 2),
                (rest // 1_000_000 % 60, 2),
                (rest % 1_000_000, 6),
            ]
            hour, minute, second, micros = (_digits(part, width) for part, width in clock)
            return pl.format("{}T{}:{}:{}.{}Z", _date_text(a // DAY), hour, minute, second, micros)
        case _:
            raise InternalError("TG902", f"kernel {term.kernel} is unknown to Polars")


_LETTERS = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: Positions in strings are clamped here; no string is that long.
_LONG = 2**40


def _divide(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Division of doubles, correctly rounded.

    Where the divisor is one value for all rows Polars multiplies by its reciprocal, which differs in the last bit and
    would make a result depend on the batch it is computed in. Fields of a struct are never one value.
    """
    both = pl.struct(a.alias("a"), b.alias("b"))
    return both.struct.field("a") / both.struct.field("b")


def _extreme(term: Typed, args: list[pl.Expr]) -> pl.Expr:
    found = pl.min_horizontal(args) if term.kernel == "least" else pl.max_horizontal(args)
    if term.type.kind is Kind.DOUBLE and term.kernel == "greatest":
        # The horizontal forms skip NaN, which is greatest.
        found = pl.when(reduce(or_, [arg.is_nan() for arg in args])).then(float("nan")).otherwise(found)
    nulls = [arg.is_null() for arg, typed in zip(args, term.args, strict=True) if typed.nullable]
    return pl.when(~reduce(or_, nulls)).then(found) if nulls else found


def _power(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """As Java's pow: unlike in C, NaN to any power but 0 and 1 to an infinite or NaN power are NaN."""
    base = pl.when(a == 0.0).then(0.0).otherwise(a)
    undefined = (b != 0.0) & (a.is_nan() | b.is_nan() | (b.is_infinite() & (a.abs() == 1.0)))
    found = pl.when(undefined).then(float("nan")).otherwise(base.pow(b))
    return pl.when(a.is_not_null() & b.is_not_null()).then(found)


def _date(day: pl.Expr) -> pl.Expr:
    """The day's date in the first era after the epoch: month, day and weekday repeat every 400 years."""
    return (day % ERA_DAYS).cast(pl.Int32).cast(pl.Date)


def _digits(value: pl.Expr, width: int) -> pl.Expr:
    return value.cast(pl.String).str.zfill(width)


def _date_text(day: pl.Expr) -> pl.Expr:
    date = _date(day)
    year = date.dt.year().cast(pl.Int64) + day // ERA_DAYS * ERA_YEARS
    return pl.format("{}-{}-{}", _digits(year, 4), _digits(date.dt.month(), 2), _digits(date.dt.day(), 2))


def _clock(text: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]:
    """Hour, minute, second and microsecond of an instant's text; what may be left out is 0."""
    hour, minute, second = (_group(text, INSTANT_TEXT, group) for group in (4, 5, 6))
    fraction = text.str.extract(INSTANT_TEXT, 7).fill_null("").str.pad_end(6, "0").cast(pl.Int64, strict=False)
    return hour, minute, second.fill_null(0), fraction


def _group(text: pl.Expr, pattern: str, group: int) -> pl.Expr:
    return text.str.extract(pattern, group).cast(pl.Int64, strict=False)


@dataclass(frozen=True, slots=True)
class _Civil:
    """Year, month and day as read from text; NULL where the text has another form."""

    year: pl.Expr
    month: pl.Expr
    day: pl.Expr

    @classmethod
    def read(cls, text: pl.Expr, pattern: str) -> _Civil:
        return cls(*(_group(text, pattern, group) for group in (1, 2, 3)))

    def valid(self) -> pl.Expr:
        leap = (self.year % 4 == 0) & ((self.year % 100 != 0) | (self.year % 400 == 0))
        february = pl.when(leap).then(29).otherwise(28)
        days = pl.when(self.month == 2).then(february).when(self.month.is_in([4, 6, 9, 11])).then(30).otherwise(31)
        return (self.year >= 1) & self.month.is_between(1, 12) & (self.day >= 1) & (self.day <= days)

    def day_number(self) -> pl.Expr:
        """Days since the epoch of a valid date; years begin in March, so that leap days end them."""
        late = (self.month > 2).cast(pl.Int64)
        year, month = self.year + late - 1, self.month + 9 - 12 * late
        of_year = (153 * month + 2) // 5 + self.day - 1
        return year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468
