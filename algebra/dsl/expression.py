"""Expressions over the attributes of a row, as users write them: handles around terms.

A handle knows its type, which relation each attribute comes from and where it was written, so that wrong use fails at
the line where it stands. Operators build new handles; nodes and terms never have them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

from tidegate.algebra.diagnostics.shown import misspelt, nearest, shown
from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.checks.suggestions import VALUE_METHODS
from tidegate.algebra.dsl.ddl import to_type
from tidegate.algebra.dsl.here import MAX_SIZE, Here, tests_membership, too_large, unknown_name
from tidegate.algebra.dsl.literals import literal, plain
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Call, Lit, Term, size_of
from tidegate.algebra.time import DurationLike, duration_ticks, whole_days
from tidegate.algebra.typed.operations import resolve, result_type
from tidegate.algebra.types import BIGINT, BOOLEAN, DATE, DURATION, STRING, DataType, Kind

#: What may stand beside an expression: Python values become constants of the type that the other side asks for.
Operand: TypeAlias = "Expression | bool | int | float | str | Decimal | dt.datetime | dt.date | dt.timedelta | None"

#: What is given where a duration goes: text, a timedelta, or a duration of a query such as `tg.minutes(5)`.
DurationOption: TypeAlias = "DurationLike | Expression"

#: Where terms were written.
Sites = Mapping[Term, Site]


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where an attribute came into being; handles of different origins are different attributes whatever their
    names.
    """

    label: str


@dataclass(frozen=True, slots=True, eq=False)
class MatchOrigin(Origin):
    """Where the values of rows of a match come from, as the conditions and measures of a row pattern read them."""


@dataclass(frozen=True, slots=True)
class AttributeUse:
    """An attribute that an expression reads, and its origin."""

    attribute: Attribute
    origin: Origin


@checked_calls
class Expression:
    """A value computed from a row; `&`, `|`, `~`, comparisons and arithmetic build larger ones.

    Attributes of relations are expressions, and so is what functions such as `tg.floor` make of them. Python values
    beside one become constants of its type. `QueryError` TG102 where the types do not fit, at the line where they meet.

    Examples:
        >>> large = (orders.amount * 2 > 20) & (orders.customer == "Ada")
        >>> large
        amount * 2.0 > 20.0 & customer = 'Ada'
        >>> show(large)
        True, False, False
    """

    __slots__ = ("_reads", "_sites", "_term", "_type")

    def __init__(self, term: Term, type_: DataType, reads: Mapping[str, AttributeUse], sites: Sites) -> None:
        self._term, self._type, self._reads, self._sites = term, type_, reads, sites

    @property
    def type(self) -> DataType:
        """The type of the value.

        Examples:
            >>> print(orders.amount.type, (orders.amount > 10).type)
            double boolean
        """
        return self._type

    def __repr__(self) -> str:
        return term_text(self._term)

    def __bool__(self) -> NoReturn:
        with Here() as site:
            raise QueryError(
                "TG118",
                f"an expression is neither true nor false yet: {self!r}",
                hint=_IS_IN if tests_membership() else _truth_hint(site),
            )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # == builds a comparison, so handles cannot be keys
    __iter__: ClassVar[None] = None

    def __contains__(self, other: object) -> NoReturn:
        with Here():
            raise QueryError(
                "TG118",
                f"in needs something to search in, and {self!r} is a single value",
                hint="write x.is_in(a, b) or text.contains(part)",
            )

    if TYPE_CHECKING:
        # A relation's member may be a prefix: `matches.Fog.ts`. A call of an unknown method is an error still.
        def __getattr__(self, name: str) -> Expression: ...
    else:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_name(f"no method of values is called {name!r}: {self!r}", _method_hint(name))

    # Logic -----------------------------------------------------------------------------------------------------------
    def __and__(self, other: Operand) -> Expression:
        return _logical("and", "&", self, other)

    def __rand__(self, other: Operand) -> Expression:
        return _logical("and", "&", other, self)

    def __or__(self, other: Operand) -> Expression:
        return _logical("or", "|", self, other)

    def __ror__(self, other: Operand) -> Expression:
        return _logical("or", "|", other, self)

    def __invert__(self) -> Expression:
        return _logical("not", "~", self)

    def __xor__(self, other: object) -> NoReturn:
        with Here():
            bits = self._type == BIGINT
            hint = "of bits write x.bit_xor(y)" if bits else "for one of the two but not both, write a != b"
            raise QueryError("TG114", f"^ is no operator of {'numbers' if bits else 'conditions'}", hint=hint)

    __rxor__ = __xor__

    def __lshift__(self, other: object) -> NoReturn:
        self._no_shift("<<", "shift_left")

    def __rshift__(self, other: object) -> NoReturn:
        self._no_shift(">>", "shift_right")

    __rlshift__, __rrshift__ = __lshift__, __rshift__

    def _no_shift(self, sign: str, method: str) -> NoReturn:
        with Here():
            raise QueryError(
                "TG114",
                f"{sign} is no operator of values: {self!r}",
                hint=f"the bits of a bigint are moved by a constant number: x.{method}(2)",
            )

    # Comparisons -----------------------------------------------------------------------------------------------------
    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]  # builds a comparison
        return compare("eq", self, other)

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]  # builds a comparison
        return compare("ne", self, other)

    def __lt__(self, other: Operand) -> Expression:
        return compare("lt", self, other)

    def __le__(self, other: Operand) -> Expression:
        return compare("le", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return compare("gt", self, other)

    def __ge__(self, other: Operand) -> Expression:
        return compare("ge", self, other)

    def same_as(self, other: Operand) -> Expression:
        """Equality for which NULL equals NULL: true or false, never NULL.

        Examples:
            >>> show(orders.voucher.same_as(None))
            False, True, False
        """
        with Here():
            return build("eq_null_safe", self, constant(literal(None)) if other is None else other)

    def between(self, low: Operand, high: Operand) -> Expression:
        """`low <= self <= high`; both limits are included.

        Examples:
            >>> show(orders.amount.between(8, 12.5))
            True, False, True
        """
        with Here():
            return _logical("and", "&", compare("le", low, self), compare("le", self, high))

    def is_in(self, *values: Operand) -> Expression:
        """Whether it equals one of the values; `QueryError` TG114 where none is given.

        Examples:
            >>> show(orders.customer.is_in("Bob", "Eve"))
            False, True, False
        """
        with Here():
            if not values:
                raise QueryError("TG114", "is_in needs at least one value", hint='write x.is_in("a", "b")')
            if isinstance(values[0], list | tuple | set):
                raise QueryError("TG110", "is_in takes values one by one", hint="write x.is_in(*values)")
            condition = compare("eq", self, values[0])
            for value in values[1:]:
                condition = condition | compare("eq", self, value)
            return condition

    def is_null(self) -> Expression:
        """Whether there is no value.

        Examples:
            >>> show(orders.voucher.is_null())
            False, True, False
        """
        return build("is_null", self)

    def is_not_null(self) -> Expression:
        """Whether there is a value.

        Examples:
            >>> show(orders.voucher.is_not_null())
            True, False, True
        """
        return build("is_not_null", self)

    # Arithmetic ------------------------------------------------------------------------------------------------------
    def __add__(self, other: Operand) -> Expression:
        return build("add", self, other, shift=True)

    def __radd__(self, other: Operand) -> Expression:
        return build("add", other, self, shift=True)

    def __sub__(self, other: Operand) -> Expression:
        return build("sub", self, other, shift=True)

    def __rsub__(self, other: Operand) -> Expression:
        return build("sub", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return build("mul", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return build("mul", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return build("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return build("div", other, self)

    def __mod__(self, other: Operand) -> Expression:
        return build("mod", self, other)

    def __rmod__(self, other: Operand) -> Expression:
        return build("mod", other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return build("floordiv", self, other)

    def __rfloordiv__(self, other: Operand) -> Expression:
        return build("floordiv", other, self)

    def __pow__(self, other: Operand) -> Expression:
        return build("power", self, other)

    def __rpow__(self, other: Operand) -> Expression:
        return build("power", other, self)

    def __neg__(self) -> Expression:
        return build("neg", self)

    def __pos__(self) -> Expression:
        return self

    def __round__(self, digits: int | None = None) -> Expression:
        return build("round", self, 0 if digits is None else digits, like=BIGINT)

    def __int__(self) -> NoReturn:
        self._no_number("int", "bigint")

    def __float__(self) -> NoReturn:
        self._no_number("float", "double")

    def _no_number(self, function: str, type_name: str) -> NoReturn:
        with Here():
            raise QueryError(
                "TG118",
                f"{function}() needs one number, and {self!r} has a value in each row",
                hint=f'write x.cast("{type_name}"); what math has are methods and functions: x.sqrt(), tg.floor(x)',
            )

    def __len__(self) -> NoReturn:
        with Here():
            raise QueryError(
                "TG118", f"len() needs a container, and {self!r} is a single value", hint="write text.length()"
            )

    def __abs__(self) -> Expression:
        return build("abs", self)

    def abs(self) -> Expression:
        """The value without its sign, of a number or a duration.

        Examples:
            >>> show((orders.amount - 20).abs())
            7.5, 10.0, 12.0
        """
        return build("abs", self)

    def div(self, other: Operand) -> Expression:
        """Integer division of bigints or durations, truncated towards zero; a row that divides by zero has no value
        (TG302).

        Examples:
            >>> show(orders.pieces.div(2))
            2, 1, 0
        """
        return build("idiv", self, other)

    def try_add(self, other: Operand) -> Expression:
        """Sum; NULL where it does not fit the type.

        Examples:
            >>> show(orders.pieces.try_add(2**63 - 1))
            None, None, 9223372036854775807
        """
        return build("try_add", self, other, shift=True)

    def try_sub(self, other: Operand) -> Expression:
        """Difference; NULL where it does not fit the type.

        Examples:
            >>> show((-orders.pieces).try_sub(2**63 - 1))
            None, None, -9223372036854775807
        """
        return build("try_sub", self, other, shift=True)

    def try_mul(self, other: Operand) -> Expression:
        """Product; NULL where it does not fit the type.

        Examples:
            >>> show(orders.pieces.try_mul(2**62))
            None, None, 0
        """
        return build("try_mul", self, other)

    def try_truediv(self, other: Operand) -> Expression:
        """Quotient as a double, NULL on division by zero.

        Examples:
            >>> show(orders.amount.try_truediv(orders.pieces))
            2.5, 15.0, None
        """
        return build("try_div", self, other)

    def try_div(self, other: Operand) -> Expression:
        """Integer division, truncated towards zero; NULL on division by zero.

        Examples:
            >>> show(tg.lit(12).try_div(orders.pieces))
            2, 6, None
        """
        return build("try_idiv", self, other)

    def try_mod(self, other: Operand) -> Expression:
        """Remainder of `x // y`, with the sign of the divisor; NULL on division by zero.

        Examples:
            >>> show(tg.lit(12).try_mod(orders.pieces))
            2, 0, None
        """
        return build("try_mod", self, other)

    def try_floordiv(self, other: Operand) -> Expression:
        """Integer division, rounded down; NULL on division by zero.

        Examples:
            >>> show((-tg.lit(12)).try_floordiv(orders.pieces))
            -3, -6, None
        """
        return build("try_floordiv", self, other)

    def round(self, digits: int = 0) -> Expression:
        """The number with so many digits after the point, halves away from zero; `round(x, 2)` is the same.

        Of a double its exact value is rounded: 2.675 is a little less, and 2.67 with two digits.

        Examples:
            >>> show((orders.amount / 3).round(2))
            4.17, 10.0, 2.67
            >>> show(orders.amount.round())
            13.0, 30.0, 8.0
        """
        return build("round", self, digits, like=BIGINT)

    def trunc(self) -> Expression:
        """The whole number towards zero; `tg.floor(x)` rounds down, `tg.ceil(x)` up.

        Examples:
            >>> show((-orders.amount).trunc())
            -12.0, -30.0, -8.0
        """
        return build("trunc", self)

    def sign(self) -> Expression:
        """-1, 0 or 1, as a number or a duration is negative, zero or positive; NaN of NaN.

        Examples:
            >>> show((orders.pieces - 2).sign())
            1, 0, -1
        """
        return build("sign", self)

    def is_nan(self) -> Expression:
        """Whether a double is not a number.

        Examples:
            >>> show((orders.pieces - 1).sqrt().is_nan())
            False, False, True
        """
        return build("is_nan", self)

    def nullif(self, value: Operand) -> Expression:
        """The value itself, or NULL where it equals another.

        Examples:
            >>> show(tg.lit(10).div(orders.pieces.nullif(0)))
            2, 5, None
        """
        with Here():
            return build("if", compare("eq", self, value), constant(literal(None)), self)

    def bit_and(self, other: Operand) -> Expression:
        """The bits that are set in both bigints.

        Examples:
            >>> show(orders.pieces.bit_and(4))
            4, 0, 0
        """
        return build("bit_and", self, other)

    def bit_or(self, other: Operand) -> Expression:
        """The bits that are set in one of the bigints or both.

        Examples:
            >>> show(orders.pieces.bit_or(1))
            5, 3, 1
        """
        return build("bit_or", self, other)

    def bit_xor(self, other: Operand) -> Expression:
        """The bits that are set in exactly one of the bigints.

        Examples:
            >>> show(orders.pieces.bit_xor(7))
            2, 5, 7
        """
        return build("bit_xor", self, other)

    def bit_not(self) -> Expression:
        """All bits of the bigint turned.

        Examples:
            >>> show(orders.pieces.bit_not())
            -6, -3, -1
        """
        return build("bit_not", self)

    def shift_left(self, bits: int) -> Expression:
        """The bits of a bigint moved up by a constant number; those beyond the 64th are lost.

        Examples:
            >>> show(orders.pieces.shift_left(2))
            20, 8, 0
        """
        return build("shift_left", self, bits, like=BIGINT)

    def shift_right(self, bits: int) -> Expression:
        """The bits of a bigint moved down by a constant number; the sign stays.

        Examples:
            >>> show(orders.pieces.shift_right(1))
            2, 1, 0
        """
        return build("shift_right", self, bits, like=BIGINT)

    def sqrt(self) -> Expression:
        """Square root as a double; NaN below zero.

        Examples:
            >>> show((orders.amount * 2).sqrt())
            5.0, 7.745..., 4.0
        """
        return build("sqrt", self)

    def exp(self) -> Expression:
        """The exponential function, as a double.

        Examples:
            >>> show((orders.pieces - 2).exp())
            20.085..., 1.0, 0.135...
        """
        return build("exp", self)

    def ln(self) -> Expression:
        """Natural logarithm as a double; -inf at zero, NaN below.

        Examples:
            >>> show(orders.pieces.ln())
            1.609..., 0.693..., -inf
        """
        return build("ln", self)

    def power(self, other: Operand) -> Expression:
        """The value to the power of another, as a double; `x ** y` is the same.

        Examples:
            >>> show(orders.pieces.power(2))
            25.0, 4.0, 0.0
        """
        return build("power", self, other)

    def log10(self) -> Expression:
        """Logarithm to the base 10 as a double; -inf at zero, NaN below.

        Examples:
            >>> show((orders.pieces * 200).log10())
            3.0, 2.602..., -inf
        """
        return build("log10", self)

    def log2(self) -> Expression:
        """Logarithm to the base 2 as a double; -inf at zero, NaN below.

        Examples:
            >>> show((orders.pieces + 3).log2())
            3.0, 2.321..., 1.584...
        """
        return build("log2", self)

    def log(self, base: Operand) -> Expression:
        """Logarithm to any base as a double: `ln` of the value divided by `ln` of the base.

        Examples:
            >>> show((orders.pieces + 4).log(3))
            2.0, 1.630..., 1.261...
        """
        return build("log", self, base)

    def sin(self) -> Expression:
        """Sine of an angle in radians, as a double.

        Examples:
            >>> show(orders.pieces.radians().sin())
            0.087..., 0.034..., 0.0
        """
        return build("sin", self)

    def cos(self) -> Expression:
        """Cosine of an angle in radians, as a double.

        Examples:
            >>> show(orders.pieces.cos())
            0.283..., -0.416..., 1.0
        """
        return build("cos", self)

    def tan(self) -> Expression:
        """Tangent of an angle in radians, as a double.

        Examples:
            >>> show(orders.pieces.tan())
            -3.380..., -2.185..., 0.0
        """
        return build("tan", self)

    def asin(self) -> Expression:
        """The angle in radians whose sine is the value; NaN beyond 1.

        Examples:
            >>> show((orders.pieces / 5).asin())
            1.570..., 0.411..., 0.0
        """
        return build("asin", self)

    def acos(self) -> Expression:
        """The angle in radians whose cosine is the value; NaN beyond 1.

        Examples:
            >>> show((orders.pieces / 5).acos())
            0.0, 1.159..., 1.570...
        """
        return build("acos", self)

    def atan(self) -> Expression:
        """The angle in radians whose tangent is the value.

        Examples:
            >>> show(orders.pieces.atan())
            1.373..., 1.107..., 0.0
        """
        return build("atan", self)

    def sinh(self) -> Expression:
        """Hyperbolic sine, as a double.

        Examples:
            >>> show(orders.pieces.sinh())
            74.203..., 3.626..., 0.0
        """
        return build("sinh", self)

    def cosh(self) -> Expression:
        """Hyperbolic cosine, as a double.

        Examples:
            >>> show(orders.pieces.cosh())
            74.209..., 3.762..., 1.0
        """
        return build("cosh", self)

    def tanh(self) -> Expression:
        """Hyperbolic tangent, as a double.

        Examples:
            >>> show(orders.pieces.tanh())
            0.999..., 0.964..., 0.0
        """
        return build("tanh", self)

    def degrees(self) -> Expression:
        """An angle in degrees, of one in radians.

        Examples:
            >>> show(orders.pieces.degrees())
            286.478..., 114.591..., 0.0
        """
        return build("degrees", self)

    def radians(self) -> Expression:
        """An angle in radians, of one in degrees.

        Examples:
            >>> show((orders.pieces * 36).radians())
            3.141..., 1.256..., 0.0
        """
        return build("radians", self)

    def atan2(self, x: Operand) -> Expression:
        """The angle in radians of the point whose ordinate is the value and whose abscissa is `x`.

        Examples:
            >>> show(orders.pieces.atan2(2))
            1.190..., 0.785..., 0.0
        """
        return build("atan2", self, x)

    # Types -----------------------------------------------------------------------------------------------------------
    def cast(self, type_name: str) -> Expression:
        """The value as another type; a row whose value does not fit it has no value (TG303).

        `type_name` is a name of DDL, such as "bigint" or "decimal(18,2)". `QueryError` TG111 for what names no type,
        TG102 for a type that this one is never cast to.

        Examples:
            >>> show(orders.ordered.cast("date"))
            2026-03-02, 2026-03-02, 2026-03-03
        """
        return _cast("cast", self, type_name)

    def try_cast(self, type_name: str) -> Expression:
        """The value as another type, NULL where it does not fit.

        Examples:
            >>> show(orders.voucher.trim().try_cast("bigint"))
            10, None, None
        """
        return _cast("try_cast", self, type_name)

    # Strings ---------------------------------------------------------------------------------------------------------
    def concat(self, *others: Operand) -> Expression:
        """The strings one after the other; NULL if one of them is.

        Examples:
            >>> show(orders.customer.concat(" has ", orders.voucher.trim()))
            Ada has 10, None, Ada has Ten off
        """
        return build("concat", self, *others, like=STRING)

    def lower(self) -> Expression:
        """The string in small letters, of ASCII alone.

        Examples:
            >>> show(orders.customer.lower())
            ada, bob, ada
        """
        return build("lower", self)

    def upper(self) -> Expression:
        """The string in capital letters, of ASCII alone.

        Examples:
            >>> show(orders.customer.upper())
            ADA, BOB, ADA
        """
        return build("upper", self)

    def length(self) -> Expression:
        """Number of characters (code points).

        Examples:
            >>> show(orders.voucher.length())
            3, None, 7
        """
        return build("length", self)

    def substring(self, start: Operand, length: Operand) -> Expression:
        """`length` characters from the position `start`; the first character is at 1.

        Examples:
            >>> show(orders.customer.substring(1, 2))
            Ad, Bo, Ad
        """
        return build("substring", self, start, length)

    def trim(self) -> Expression:
        """The string without spaces at its ends; other white space stays.

        Examples:
            >>> show(orders.voucher.trim().length())
            2, None, 7
        """
        return build("trim", self)

    def starts_with(self, prefix: Operand) -> Expression:
        """Whether the string begins with another.

        Examples:
            >>> show(orders.customer.starts_with("A"))
            True, False, True
        """
        return build("starts_with", self, prefix, like=STRING)

    def ends_with(self, suffix: Operand) -> Expression:
        """Whether the string ends with another.

        Examples:
            >>> show(orders.voucher.ends_with("off"))
            False, None, True
        """
        return build("ends_with", self, suffix, like=STRING)

    def contains(self, part: Operand) -> Expression:
        """Whether the string has another in it.

        Examples:
            >>> show(orders.voucher.contains("10"))
            True, None, False
        """
        return build("contains", self, part, like=STRING)

    def replace(self, old: Operand, new: Operand) -> Expression:
        """The string with every `old`, from left to right, replaced by `new`; both are constants.

        Examples:
            >>> show(orders.voucher.trim().replace("Ten off", "10"))
            10, None, 10
        """
        return build("replace", self, old, new, like=STRING)

    def ltrim(self) -> Expression:
        """The string without spaces at its beginning.

        Examples:
            >>> show(tg.concat(">", tg.lit("  a ").ltrim(), "<"))
            >a <, >a <, >a <
        """
        return build("ltrim", self)

    def rtrim(self) -> Expression:
        """The string without spaces at its end.

        Examples:
            >>> show(orders.voucher.rtrim().length())
            2, None, 7
        """
        return build("rtrim", self)

    def lpad(self, length: int, fill: str = " ") -> Expression:
        """The string made as long as a constant number of characters, by a constant text before it; a longer one is cut
        at its end.

        Examples:
            >>> show(orders.order_id.cast("string").lpad(3, "0"))
            001, 002, 003
        """
        with Here():
            return build("lpad", self, _option(length, BIGINT), _option(fill, STRING))

    def rpad(self, length: int, fill: str = " ") -> Expression:
        """The string made as long as a constant number of characters, by a constant text after it; a longer one is cut
        at its end.

        Examples:
            >>> show(orders.order_id.cast("string").rpad(3, "0"))
            100, 200, 300
        """
        with Here():
            return build("rpad", self, _option(length, BIGINT), _option(fill, STRING))

    def position(self, part: Operand) -> Expression:
        """Where another string begins in the string: the first character is at 1, and 0 means nowhere.

        Examples:
            >>> show(orders.customer.position("a"))
            3, 0, 3
        """
        return build("position", self, part, like=STRING)

    def split_part(self, separator: str, number: int) -> Expression:
        """The part with a constant number of a string that is split at a constant separator; negative numbers count
        from the end.

        It is empty where there is no such part.

        Examples:
            >>> show(tg.lit("2026-03-02").split_part("-", 2))
            03, 03, 03
        """
        with Here():
            return build("split_part", self, _option(separator, STRING), _option(number, BIGINT))

    def reverse(self) -> Expression:
        """The string with its last character (code point) first.

        Examples:
            >>> show(orders.customer.reverse())
            adA, boB, adA
        """
        return build("reverse", self)

    def initcap(self) -> Expression:
        """The string with the first letter of each word large and the others small, of all scripts.

        A word is made of letters, digits and accents on them; what is neither ends it, as `-`, `'` and `_` do.

        Examples:
            >>> show(tg.concat(orders.customer, " élan-été").initcap())
            Ada Élan-Été, Bob Élan-Été, Ada Élan-Été
        """
        return build("initcap", self)

    def levenshtein(self, other: Operand) -> Expression:
        """How many characters are to be changed, added or left out to get another string.

        Examples:
            >>> show(orders.customer.levenshtein("Adam"))
            1, 4, 1
        """
        return build("levenshtein", self, other, like=STRING)

    def like(self, pattern: str) -> Expression:
        """Whether the string is as a constant pattern: `%` stands for any characters, `_` for one, `\\` before either
        for itself.

        Examples:
            >>> show(orders.customer.like("%d_"))
            True, False, True
        """
        return build("like", self, pattern, like=STRING)

    def regexp_like(self, pattern: str) -> Expression:
        """Whether a constant regular expression matches somewhere in the string; `^` and `$` are its ends.

        `QueryError` TG134 for one that engines would understand differently.

        Examples:
            >>> show(orders.customer.regexp_like("^[A-C]d+a$"))
            True, False, True
        """
        return build("regexp_like", self, pattern, like=STRING)

    def regexp_extract(self, pattern: str, group: int = 0) -> Expression:
        r"""What a group of a constant regular expression matches first in the string, 0 for all of it; NULL where
        nothing does.

        Examples:
            >>> show(orders.voucher.regexp_extract(r"([a-z]+) (\w+)", 2))
            None, None, off
        """
        with Here():
            return build("regexp_extract", self, pattern, _option(group, BIGINT), like=STRING)

    def regexp_replace(self, pattern: str, new: str) -> Expression:
        """The string with every match of a constant regular expression replaced by a constant text.

        Examples:
            >>> show(orders.customer.regexp_replace("[aeiou]", "-"))
            Ad-, B-b, Ad-
        """
        return build("regexp_replace", self, pattern, new, like=STRING)

    def md5(self) -> Expression:
        """The MD5 digest of the string's UTF-8 bytes, in hexadecimal digits.

        Examples:
            >>> show(orders.customer.md5().substring(1, 6))
            1a3828, 2fc1c0, 1a3828
        """
        return build("md5", self)

    def sha1(self) -> Expression:
        """The SHA-1 digest of the string's UTF-8 bytes, in hexadecimal digits.

        Examples:
            >>> show(orders.customer.sha1().substring(1, 6))
            5c3cb0, da6645, 5c3cb0
        """
        return build("sha1", self)

    def sha256(self) -> Expression:
        """The SHA-256 digest of the string's UTF-8 bytes, in hexadecimal digits.

        Examples:
            >>> show(orders.customer.sha256().substring(1, 6))
            99a563, cd9fb1, 99a563
        """
        return build("sha256", self)

    def sha512(self) -> Expression:
        """The SHA-512 digest of the string's UTF-8 bytes, in hexadecimal digits.

        Examples:
            >>> show(orders.customer.sha512().substring(1, 6))
            1985df, 0c3e99, 1985df
        """
        return build("sha512", self)

    def json(self, path: str) -> Expression:
        """The value at a constant path in a string of JSON: text as it is, everything else as JSON; NULL where there is
        none.

        Steps of a path are `.name`, `[0]` and `["any name"]`. What is no JSON has no value at any path.

        Examples:
            >>> show(tg.lit('{"a": [1.50, "x"]}').json("$.a[0]").cast("double"))
            1.5, 1.5, 1.5
        """
        return build("json", self, path, like=STRING)

    def to_uuid(self) -> Expression:
        """A UUID in its usual form, from text with or without hyphens; a row with other text has no value (TG303).

        Examples:
            >>> show(tg.lit("0123456789ABCDEF0123456789ABCDEF").to_uuid().split_part("-", 2))
            89ab, 89ab, 89ab
        """
        return build("to_uuid", self)

    def try_to_uuid(self) -> Expression:
        """A UUID in its usual form; NULL where the text is none.

        Examples:
            >>> show(orders.voucher.try_to_uuid())
            None, None, None
        """
        return build("try_to_uuid", self)

    def uuid5(self, namespace: str) -> Expression:
        """The UUID (version 5) of a name in a constant namespace, which is a UUID: equal names have equal ones.

        Examples:
            >>> show(orders.customer.uuid5("6ba7b810-9dad-11d1-80b4-00c04fd430c8").substring(1, 8))
            a95a7be4, f827bffd, a95a7be4
        """
        return build("uuid5", self, namespace, like=STRING)

    # Parts of instants, in UTC ---------------------------------------------------------------------------------------
    def year(self) -> Expression:
        """The year of a timestamp (in UTC) or date.

        Examples:
            >>> show(orders.ordered.year())
            2026, 2026, 2026
        """
        return build("year", self)

    def month(self) -> Expression:
        """The month of a timestamp (in UTC) or date, 1 to 12.

        Examples:
            >>> show(orders.ordered.month())
            3, 3, 3
        """
        return build("month", self)

    def day(self) -> Expression:
        """The day of the month of a timestamp (in UTC) or date, 1 to 31.

        Examples:
            >>> show(orders.ordered.day())
            2, 2, 3
        """
        return build("day", self)

    def hour(self) -> Expression:
        """The hour of a timestamp in UTC, 0 to 23.

        Examples:
            >>> show(orders.ordered.hour())
            12, 12, 9
        """
        return build("hour", self)

    def minute(self) -> Expression:
        """The minute of a timestamp in UTC, 0 to 59.

        Examples:
            >>> show(orders.ordered.minute())
            0, 7, 40
        """
        return build("minute", self)

    def second(self) -> Expression:
        """The second of a timestamp in UTC, 0 to 59; fractions are cut off.

        Examples:
            >>> show(orders.ordered.second())
            0, 0, 30
        """
        return build("second", self)

    def day_of_week(self) -> Expression:
        """The day of the week of a timestamp (in UTC) or date: Monday is 1, Sunday 7.

        Examples:
            >>> show(orders.ordered.day_of_week())
            1, 1, 2
        """
        return build("day_of_week", self)

    def to_date(self) -> Expression:
        """The day of a timestamp, in UTC.

        Examples:
            >>> show(orders.ordered.to_date())
            2026-03-02, 2026-03-02, 2026-03-03
        """
        return build("to_date", self)

    def to_timestamp(self) -> Expression:
        """The midnight with which a date begins, in UTC.

        Examples:
            >>> show(orders.ordered.to_date().to_timestamp())
            2026-03-02 00:00:00+00:00, 2026-03-02 00:00:00+00:00, 2026-03-03 00:00:00+00:00
        """
        return build("to_timestamp", self)

    def quarter(self) -> Expression:
        """The quarter of a timestamp (in UTC) or date, 1 to 4.

        Examples:
            >>> show(orders.ordered.quarter())
            1, 1, 1
        """
        return build("quarter", self)

    def week(self) -> Expression:
        """The week of a timestamp (in UTC) or date as ISO 8601 counts, 1 to 53; `week_year` is the year that it belongs
        to.

        Examples:
            >>> show(orders.ordered.week())
            10, 10, 10
        """
        return build("week", self)

    def week_year(self) -> Expression:
        """The year that the week of a timestamp (in UTC) or date belongs to, as ISO 8601 counts.

        Examples:
            >>> show((orders.ordered - tg.days(64)).week_year())
            2025, 2025, 2026
        """
        return build("week_year", self)

    def day_of_year(self) -> Expression:
        """The day of the year of a timestamp (in UTC) or date, 1 to 366.

        Examples:
            >>> show(orders.ordered.day_of_year())
            61, 61, 62
        """
        return build("day_of_year", self)

    def truncate(self, unit: str) -> Expression:
        """The beginning of the year, quarter, month, week (Monday), day, hour, minute or second of a timestamp (in UTC)
        or date.

        Weeks and shorter units are windows as those of `tg.floor(x, "15m")` are: a group of one is final as soon as it
        is over. Months, quarters and years are of no one length, and no instants to the analysis.

        Examples:
            >>> show(orders.ordered.truncate("month"))
            2026-03-01 00:00:00+00:00, 2026-03-01 00:00:00+00:00, 2026-03-01 00:00:00+00:00
        """
        with Here():
            return build("truncate", self, _option(unit, STRING))

    def add_months(self, months: int) -> Expression:
        """The same day of another month, which is a constant number of months later; the last day of a month that has
        fewer.

        Examples:
            >>> show(tg.timestamp("2026-01-31").add_months(1))
            2026-02-28 00:00:00+00:00, 2026-02-28 00:00:00+00:00, 2026-02-28 00:00:00+00:00
        """
        with Here():
            return build("add_months", self, _option(months, BIGINT))

    def to_local(self, zone: str) -> Expression:
        """What a clock in a constant time zone shows at an instant: a timestamp whose parts are those of local time.

        `QueryError` TG102 for a zone that is not known.

        Examples:
            >>> show(orders.ordered.to_local("Europe/Berlin").hour())
            13, 13, 10
        """
        with Here():
            return build("to_local", self, _option(zone, STRING))

    def from_local(self, zone: str) -> Expression:
        """The instant at which a clock in a constant time zone shows a timestamp.

        An hour that there is twice is the first of them; one that there is not is read as before the clock changed.

        Examples:
            >>> show(orders.ordered.from_local("Europe/Berlin").hour())
            11, 11, 8
        """
        with Here():
            return build("from_local", self, _option(zone, STRING))

    def format(self, pattern: str) -> Expression:
        """A timestamp (in UTC) or date as text by a constant pattern; a row beyond the years 1 to 9999 has no value
        (TG303).

        There are %Y %m %d %H %M %S, %f (microseconds), %j (day of the year), %I and %p, %b %B %a %A (in English), %z
        and %%. `QueryError` TG102 for a pattern that has none of them, such as "yyyy-MM-dd".

        Examples:
            >>> show(orders.ordered.format("%d.%m.%Y %H:%M"))
            02.03.2026 12:00, 02.03.2026 12:07, 03.03.2026 09:40
        """
        with Here():
            return build("format", self, _option(pattern, STRING))

    def parse_timestamp(self, pattern: str) -> Expression:
        """The timestamp that a text of a constant form says, with the parts of `format`; a row with other text has no
        value (TG303).

        What the form lacks is 1 or 0; it has the year, and UTC is meant where it has no %z.

        Examples:
            >>> show(tg.lit("02.03.2026 14h").parse_timestamp("%d.%m.%Y %Hh"))
            2026-03-02 14:00:00+00:00, 2026-03-02 14:00:00+00:00, 2026-03-02 14:00:00+00:00
        """
        with Here():
            return build("parse_timestamp", self, _option(pattern, STRING))

    def try_parse_timestamp(self, pattern: str) -> Expression:
        """The timestamp that a text of a constant form says; NULL for other text.

        Examples:
            >>> show(orders.voucher.try_parse_timestamp("%Y"))
            None, None, None
        """
        with Here():
            return build("try_parse_timestamp", self, _option(pattern, STRING))


def duration_given(value: Any) -> Any:
    """A duration of a query, such as `tg.minutes(5)`, and one of numpy as the `timedelta` that it is; others
    unchanged.
    """
    if isinstance(value, Expression) and value._type == DURATION and isinstance(value._term, Lit):
        return dt.timedelta(microseconds=value._term.value)  # type: ignore[arg-type]  # durations are whole microseconds
    return plain(value)


def constant(value: Lit) -> Expression:
    """A constant as an expression."""
    return Expression(value, value.type, {}, {})


class ValueOfGroup:
    """What groups of rows have, and a row has not."""

    __slots__ = ()

    def _no_value(self) -> QueryError:
        """What is wrong where it stands for the value of a row."""
        raise NotImplementedError

    def _refuse(self, *_: object) -> NoReturn:
        with Here():
            raise self._no_value()

    if not TYPE_CHECKING:  # operators neither
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
        __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = __xor__ = __rxor__ = _refuse
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
        __mod__ = __rmod__ = __neg__ = __abs__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = _refuse
        __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse
        __eq__ = __ne__ = _refuse

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as expressions


def to_expression(value: object, like: DataType | None = None, *, shift: bool = False) -> Expression:
    """The value as an expression: itself, or a constant of the type that `like` beside it asks for."""
    match value:
        case Expression():
            return value
        case ValueOfGroup():
            raise value._no_value()
        case None:
            raise QueryError("TG110", "None is no value here", hint="test for NULL with is_null() or is_not_null()")
        case _:
            return constant(literal(value, like, shift=shift))


def _option(value: object, type_: DataType) -> Expression:
    """What is given where a constant of a type goes; the rule of the operation refuses what differs between rows."""
    return constant(literal(None)) if value is None else to_expression(value, type_)


def build(op: str, *operands: object, shift: bool = False, like: DataType | None = None) -> Expression:
    """`op(operands)`, types checked; constants take the type `like`, else what the first real expression asks for."""
    with Here() as site:
        in_days = like is None and any(isinstance(one, Expression) and is_days_apart(one) for one in operands)
        like = like or next((operand.type for operand in operands if isinstance(operand, Expression)), None)
        parts = [
            to_expression(operand, DURATION if in_days and isinstance(operand, str) else like, shift=shift)
            for operand in operands
        ]
        if in_days or (shift and any(part.type == DATE for part in parts)):
            parts = [_in_days(part, operand) for part, operand in zip(parts, operands, strict=True)]
        args = tuple(part._term for part in parts)
        term = Call(op, args)
        if (size := size_of(term)) > MAX_SIZE:
            raise too_large(site, size)
        type_ = result_type(op, args, tuple(part.type for part in parts))
        if type_ == DURATION and all(isinstance(arg, Lit) and arg.value is not None for arg in args):
            value = evaluate_term(term, {})
            if isinstance(value, int):  # one constant, as options and patterns take it: tg.hours(1) + tg.minutes(30)
                return constant(Lit(duration_ticks(dt.timedelta(microseconds=value)), DURATION))
        sites = merged_sites(parts)
        if site is not None:
            sites.setdefault(term, site)
        return Expression(term, type_, merged_reads(parts), sites)


def is_days_apart(value: Expression) -> bool:
    """Whether it is how far two dates are apart: a number, but one of days."""
    match value._term:
        case Call("sub" | "try_sub", (first, _)) if value.type == BIGINT:
            return resolve(first, {name: read.attribute for name, read in value._reads.items()}).type == DATE
        case _:
            return False


def _in_days(part: Expression, given: object) -> Expression:
    """A constant duration as its number of days, which is what dates move by and are apart; others as they are."""
    match part._term:
        case Lit(int() as ticks, type_) if type_ == DURATION:
            return constant(Lit(whole_days(given, ticks), BIGINT))
        case _:
            return part


def compare(op: str, left: object, right: object) -> Expression:
    """A comparison of two operands, at least one of them an expression."""
    with Here():
        if left is None or right is None:
            raise QueryError(
                "TG110",
                "comparing with None is never true",
                hint="write x.is_null() or x.is_not_null()" if op in ("eq", "ne") else "NULL has no order",
            )
        return build(op, left, right)


def merged_reads(parts: list[Expression]) -> dict[str, AttributeUse]:
    """What all parts read; an attribute name with two origins is ambiguous."""
    reads: dict[str, AttributeUse] = {}
    for part in parts:
        for name, read in part._reads.items():
            known = reads.setdefault(name, read)
            if known.origin is not read.origin:
                raise QueryError(
                    "TG103",
                    f"ambiguous name {name!r}: it is an attribute of {known.origin.label} and of {read.origin.label}",
                    hint='give each relation a name: a = first.as_("a"), b = second.as_("b")',
                )
    return reads


def merged_sites(parts: list[Expression]) -> dict[Term, Site]:
    return {term: site for part in parts for term, site in part._sites.items()}


def _logical(op: str, sign: str, *operands: object) -> Expression:
    with Here():
        parts = [to_expression(operand) for operand in operands]
        for part in parts:
            if part.type not in (BOOLEAN, DataType(Kind.NULL)):
                raise QueryError(
                    "TG102",
                    f"{sign} joins conditions, but {part!r} is {part.type}",
                    hint=_no_condition_hint(op, sign, bits=all(part.type == BIGINT for part in parts)),
                )
        if op != "not":
            return _joined(op, parts)
        return build(op, *parts)


def _no_condition_hint(op: str, sign: str, *, bits: bool) -> str:
    """How conditions are joined; if all parts are bigints their bits may be meant."""
    if sign == "~":
        return "of bits write x.bit_not(); else compare it first" if bits else "compare it first"
    hint = f"put comparisons in parentheses: (a > 1) {sign} (b > 2)"
    return f"{hint}; of bits write x.bit_{op}(y)" if bits else hint


class _Joined(Expression):
    """Conditions joined by one sign. Term and sites are made when they are first read: of a thousand that
    `functools.reduce` joins one by one, each sum of the first ones would be as long as they are.
    """

    __slots__ = ("_length", "_op", "_parts", "_site", "_size")

    def __init__(
        self,
        op: str,
        parts: list[Expression],
        length: int,
        size: int,
        reads: Mapping[str, AttributeUse],
        site: Site | None,
    ) -> None:
        self._op, self._parts, self._length, self._size, self._site = op, parts, length, size, site
        self._type, self._reads = BOOLEAN, reads

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name not in ("_term", "_sites"):
                return super().__getattr__(name)
            parts = _flat(self)
            flat = [arg for part in parts for arg in _args_of(self._op, part._term)]
            self._term, self._sites = Call(self._op, tuple(flat)), merged_sites(parts)
            if self._site is not None:
                self._sites.setdefault(self._term, self._site)
            return getattr(self, name)


def _flat(joined: _Joined) -> list[Expression]:
    """What is joined by the same sign, left to right, without recursion: each of thousands may hold all before it."""
    flat: list[Expression] = []
    waiting: list[Expression] = [joined]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _Joined) and part._op == joined._op:
            waiting += reversed(part._parts[: part._length])
        else:
            flat.append(part)
    return flat


def _args_of(op: str, term: Term) -> tuple[Term, ...]:
    return term.args if isinstance(term, Call) and term.op == op else (term,)


def _joined(op: str, parts: list[Expression]) -> Expression:
    with Here() as site:
        first, last = parts
        goes_on = isinstance(first, _Joined) and first._op == op
        size = _size(first) + _size(last) + (not goes_on)
        if size > MAX_SIZE:
            raise too_large(site, size)
        reads = merged_reads(parts)
        if not isinstance(first, _Joined) or not goes_on:
            return _Joined(op, [first, last], 2, size, reads, site)
        # The list is the first one's own as long as nothing else has been added to it.
        shared = first._parts if len(first._parts) == first._length else first._parts[: first._length]
        shared.append(last)
        return _Joined(op, shared, first._length + 1, size, reads, site)


def _size(part: Expression) -> int:
    """The operations of an expression, without making its term."""
    return part._size if isinstance(part, _Joined) else size_of(part._term)


def _cast(op: str, operand: Expression, type_name: str) -> Expression:
    with Here():
        if not isinstance(type_name, str):
            raise QueryError("TG111", f"{shown(type_name)} is no name of a type", hint='write x.cast("bigint")')
        to = to_type(type_name)
        if to == BOOLEAN:
            raise QueryError("TG102", f"{operand!r} cannot be cast to boolean: no value can", hint="compare it: x != 0")
        size = f"_{to.precision}_{to.scale}" if to.kind is Kind.DECIMAL else ""
        return build(f"{op}_{to.kind.value}{size}", operand)


_IS_IN = "use x.is_in(a, b) instead of in"


#: Functions of the module that are asked of a value.
_OF_THE_MODULE = frozenset(function.value for function in Function) | {
    *("any_value", "arg_max", "arg_min", "bool_and", "bool_or", "ceil", "coalesce", "concat_ws", "count_if"),
    *("days_between", "floor", "tumbling", "when"),
}


def _method_hint(name: str) -> str:
    if name in _OF_THE_MODULE:
        return f"it is a function: tg.{name}(...)"
    if name in VALUE_METHODS:
        return VALUE_METHODS[name]
    known = [method for method in dir(Expression) if not method.startswith("_")]
    if near := nearest(name, known):
        return f"did you mean {' or '.join(near)}?"
    if meant := misspelt(name, VALUE_METHODS):
        return f"if {meant[0]} is meant: {VALUE_METHODS[meant[0]]}"
    return f"there are {', '.join(known[:3])} and {len(known) - 3} more: the reference lists all functions"


def _truth_hint(site: Site | None) -> str:
    code = "" if site is None else site.code
    for word, hint in (
        (r"\band\b", "use & instead of and, with parentheses around each comparison"),
        (r"\bor\b", "use | instead of or, with parentheses around each comparison"),
        (r"\bnot\b", "use ~ instead of not"),
        (r"(?<![.\w])(max|min)\(", "the greatest value of a row is tg.max(a, b), the least one tg.min(a, b)"),
        (r"\bin\b", _IS_IN),
        (r"\bif\b", "use tg.when(condition, then, otherwise) instead of if"),
        (r"[<>]=?.*[<>]=?", "write a chained comparison as two conditions: a <= b, b <= c"),
    ):
        if re.search(word, code):
            return hint
    return "use & | ~ instead of and or not, and write a chained comparison as two conditions"


def attribute_expression(attribute: Attribute, origin: Origin) -> Expression:
    """The value of an attribute of a relation."""
    return Expression(Attr(attribute.name), attribute.type, {attribute.name: AttributeUse(attribute, origin)}, {})
