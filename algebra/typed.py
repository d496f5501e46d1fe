"""Typed terms: a term with its overloads resolved to kernels, as all three evaluators walk it.

Each carries what is known before it runs: whether it can be NULL, the range of its integers, and so whether it can fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tidegate.algebra.kernels import FAILURES
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Lit, Param, Term
from tidegate.algebra.types import BIGINT, INT64_MAX, INT64_MIN, DataType, Kind

#: Instants of temporal attributes are refused outside ±2**61 and shifted by constants only.
TEMPORAL_RANGE = (-3 * 2**60, 3 * 2**60)

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Typed:
    """A typed term: a kernel over typed terms, or a leaf.

    `range`: least and greatest int64 that an integer-held value can be. `own_failure`: whether the kernel itself can
    fail for operands in their ranges. `lenient`: such a failure yields NULL (`try_`). `constants` follow the operands.
    """

    kernel: str
    args: tuple[Typed, ...]
    type: DataType
    source: Term
    nullable: bool
    range: Range | None = None
    constants: tuple[int, ...] = ()
    own_failure: bool = False
    lenient: bool = False

    @property
    def fallible(self) -> bool:
        """Whether evaluating it can fail on some row."""
        return (self.own_failure and not self.lenient) or any(arg.fallible for arg in self.args)

    @property
    def limits(self) -> Range:
        """Bounds of the integers that are values of the type."""
        return type_range(self.type) or (INT64_MIN, INT64_MAX)


def type_range(type_: DataType) -> Range | None:
    """All integers that a value of the type can be held as; None where it is not held as an integer."""
    if type_.kind is Kind.DECIMAL:
        return (-(10**type_.precision) + 1, 10**type_.precision - 1)
    return (INT64_MIN, INT64_MAX) if type_.is_integer_held else None


def attribute_leaf(attribute: Attribute) -> Typed:
    known = TEMPORAL_RANGE if attribute.temporal else type_range(attribute.type)
    return Typed("attribute", (), attribute.type, Attr(attribute.name), attribute.nullable, known)


def literal_leaf(literal: Lit) -> Typed:
    value = literal.value
    known = (value, value) if literal.type.is_integer_held and isinstance(value, int) else type_range(literal.type)
    return Typed("literal", (), literal.type, literal, value is None, known)


def parameter_leaf(param: Param) -> Typed:
    # Progress values: int64 with both ends standing for infinity, so shifts of them are checked.
    return Typed("parameter", (), BIGINT, param, False, (INT64_MIN, INT64_MAX))


def placeholder(term: Term, type_: DataType) -> Typed:
    """A term of which only the type matters."""
    if isinstance(term, Lit):
        return literal_leaf(term)
    return Typed("attribute", (), type_, term, True, type_range(type_))


def apply(
    kernel: str, args: tuple[Typed, ...], type_: DataType, source: Term, *constants: int, lenient: bool = False
) -> Typed:
    """The kernel applied, with what follows about NULL, range and failure."""
    exact = _exact_range(kernel, args, constants)
    limits = type_range(type_)
    known, overflows = limits, False
    if exact is not None and limits is not None:
        overflows = exact[0] < limits[0] or exact[1] > limits[1]
        known = (
            (max(exact[0], limits[0]), min(exact[1], limits[1]))
            if exact[0] <= limits[1] and exact[1] >= limits[0]
            else limits
        )
    own = overflows or failure_code(kernel, args) is not None
    return Typed(
        kernel, args, type_, source, _nullable(kernel, args) or (own and lenient), known, constants, own, lenient
    )


def failure_code(kernel: str, args: tuple[Typed, ...]) -> str | None:
    """Why the kernel can fail apart from overflow, or None."""
    code = FAILURES.get(kernel)
    if kernel in ("idiv_int", "mod_int"):
        low, high = args[1].range or (INT64_MIN, INT64_MAX)
        return code if low <= 0 <= high else None
    if kernel == "div_double" and isinstance(args[1].source, Lit) and args[1].kernel == "literal":
        return None if args[1].source.value else code
    return code


def _nullable(kernel: str, args: tuple[Typed, ...]) -> bool:
    match kernel:
        case "is_null" | "is_not_null" | "eq_null_safe":
            return False
        case "coalesce":
            return all(arg.nullable for arg in args)
        case "if":
            return args[1].nullable or args[2].nullable
        case _:
            return any(arg.nullable for arg in args)


def _exact_range(kernel: str, args: tuple[Typed, ...], constants: tuple[int, ...]) -> Range | None:
    """Least and greatest result before any limit, for kernels that yield integers."""
    ranges = [arg.range for arg in args]
    match kernel, ranges:
        case "add_int", [(a, b), (c, d)]:
            return a + c, b + d
        case "sub_int", [(a, b), (c, d)]:
            return a - d, b - c
        case "mul_int", [(a, b), (c, d)]:
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case "rescale", [(a, b)]:
            return a * constants[0], b * constants[0]
        case "rescale_clamped", [(a, b)]:
            return max(-(10**18), a * constants[0]), min(10**18, b * constants[0])
        case (("unscale" | "unscale_rounded"), [(a, b)]):
            return _rounded(a, constants[0]), _rounded(b, constants[0])
        case "neg_int", [(a, b)]:
            return -b, -a
        case "abs_int", [(a, b)]:
            return (0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
        case "idiv_int", [(a, b), (c, d)]:
            # Only -1 makes a quotient larger than its dividend's range: |MIN| / -1.
            most = max(abs(a), abs(b))
            return (-most, most if c <= -1 <= d else max(abs(b), abs(a) - 1))
        case "mod_int", [(a, b), (c, d)]:
            most = max(abs(c), abs(d)) - 1
            return (max(-most, a) if a < 0 else 0), (min(most, b) if b > 0 else 0)
        case "floor_int", [(a, b), (unit, _)]:
            return a // unit * unit, b // unit * unit
        case "ceil_int", [(a, b), (unit, _)]:
            return -(-a // unit) * unit, -(-b // unit) * unit
        case "floor_div", [(a, b)]:
            return a // constants[0], b // constants[0]
        case "part", _:
            return 0, constants[0] // constants[1] - 1
        case (("least" | "coalesce"), _) if (known := [r for r in ranges if r is not None]) and len(known) == len(
            ranges
        ):
            low = min(r[0] for r in known)
            return low, (min if kernel == "least" else max)(r[1] for r in known)
        case "greatest", _ if (known := [r for r in ranges if r is not None]) and len(known) == len(ranges):
            return max(r[0] for r in known), max(r[1] for r in known)
        case "if", [_, (a, b), (c, d)]:
            return min(a, c), max(b, d)
        case _:
            return None


def _rounded(value: int, factor: int) -> int:
    away = -(-abs(value) // factor)
    return -away if value < 0 else away


#: How often an engine's expression for a kernel mentions its operands, where that is more than once.
_MENTIONS: Mapping[str, int] = MappingProxyType(
    {"idiv_int": 4, "mod_int": 5, "floor_int": 2, "ceil_int": 3, "floor_div": 2, "abs_int": 2, "rescale_clamped": 3}
    | {"unscale": 2, "unscale_rounded": 2, "least": 3, "greatest": 3, "ln": 4, "power": 8, "substring": 4, "year": 2}
    | {"double_to_int": 2, "parse_int": 2, "parse_double": 2, "parse_date": 12, "parse_timestamp": 24}
    | {"format_date": 4, "format_timestamp": 16}
)


def mentions(term: Typed) -> int:
    """How often an expression for the kernel, with its tests of failure, mentions its operands, at most.

    Expressions are trees, so these multiply along nested terms, unless an engine binds operands to names.
    """
    once = _MENTIONS.get(term.kernel, 1)
    return 2 * once + 4 if term.own_failure else once


def typed_nodes(term: Typed) -> Iterator[Typed]:
    yield term
    for arg in term.args:
        yield from typed_nodes(arg)


def can_overflow(term: Typed) -> bool:
    """Whether the kernel's integer result can lie outside the limits of its type."""
    exact = _exact_range(term.kernel, term.args, term.constants)
    return exact is not None and (exact[0] < term.limits[0] or exact[1] > term.limits[1])
