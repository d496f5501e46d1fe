"""Typed terms: a term with its overloads resolved to kernels, as all three evaluators walk it.

Each carries what is known before it runs: whether it can be NULL, the range of its integers, and so whether it can
fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Lit, Param, Term
from tidegate.algebra.typed.kernels import ATTRIBUTE, LITERAL, PARAMETER, Constant, Kernel, Range
from tidegate.algebra.types import BIGINT, INT64_MAX, INT64_MIN, DataType, Kind

#: Instants of temporal attributes are refused outside ±2**61 and shifted by constants only.
TEMPORAL_RANGE = (-3 * 2**60, 3 * 2**60)


@dataclass(frozen=True, slots=True)
class TypedTerm:
    """A typed term: a kernel over typed terms, or a leaf.

    `range`: least and greatest int64 that an integer-held value can be. `own_failure`: whether the kernel itself can
    fail for operands in their ranges. `lenient`: such a failure yields NULL (`try_`). `constants` follow the operands.
    """

    kernel: Kernel
    args: tuple[TypedTerm, ...]
    type: DataType
    source: Term
    nullable: bool
    range: Range | None = None
    constants: tuple[Constant, ...] = ()
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


def attribute_leaf(attribute: Attribute) -> TypedTerm:
    known = TEMPORAL_RANGE if attribute.temporal else type_range(attribute.type)
    return TypedTerm(ATTRIBUTE, (), attribute.type, Attr(attribute.name), attribute.nullable, known)


def literal_leaf(literal: Lit) -> TypedTerm:
    value = literal.value
    known = (value, value) if literal.type.is_integer_held and isinstance(value, int) else type_range(literal.type)
    return TypedTerm(LITERAL, (), literal.type, literal, value is None, known)


def parameter_leaf(param: Param) -> TypedTerm:
    # Progress values: int64 with both ends standing for infinity, so shifts of them are checked.
    return TypedTerm(PARAMETER, (), BIGINT, param, False, (INT64_MIN, INT64_MAX))


def placeholder(term: Term, type_: DataType) -> TypedTerm:
    """A term of which only the type matters."""
    if isinstance(term, Lit):
        return literal_leaf(term)
    return TypedTerm(ATTRIBUTE, (), type_, term, True, type_range(type_))


def apply(
    kernel: Kernel,
    args: tuple[TypedTerm, ...],
    type_: DataType,
    source: Term,
    *constants: Constant,
    lenient: bool = False,
) -> TypedTerm:
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
    fails = overflows or failure_code(kernel, args) is not None
    nullable = kernel.nullable(args) or (fails and lenient)
    return TypedTerm(kernel, args, type_, source, nullable, known, constants, fails, lenient)


def narrowed(term: TypedTerm, ranges: Mapping[str, Range]) -> TypedTerm:
    """The term over attributes whose integers lie in these ranges: it may be unable to fail then."""
    if term.kernel is ATTRIBUTE and isinstance(term.source, Attr):
        return replace(term, range=ranges.get(term.source.name, term.range))
    if not term.args:
        return term
    args = tuple(narrowed(arg, ranges) for arg in term.args)
    return apply(term.kernel, args, term.type, term.source, *term.constants, lenient=term.lenient)


def failure_code(kernel: Kernel, args: tuple[TypedTerm, ...]) -> str | None:
    """Why the kernel can fail apart from overflow, or None."""
    return None if kernel.failure is None or kernel.total(args) else kernel.failure


def _exact_range(kernel: Kernel, args: tuple[TypedTerm, ...], constants: tuple[Constant, ...]) -> Range | None:
    """Least and greatest result before any limit, for kernels that yield integers."""
    return None if kernel.range is None else kernel.range(*(arg.range for arg in args), *constants)


def mentions(term: TypedTerm) -> int:
    """How often an expression for the kernel, with its tests of failure, mentions its operands, at most.

    Expressions are trees, so these multiply along nested terms, unless an engine binds operands to names.
    """
    once = term.kernel.mentions
    return 2 * once + 4 if term.own_failure else once


def typed_nodes(term: TypedTerm) -> Iterator[TypedTerm]:
    yield term
    for arg in term.args:
        yield from typed_nodes(arg)


def can_overflow(term: TypedTerm) -> bool:
    """Whether the kernel's integer result can lie outside the limits of its type."""
    exact = _exact_range(term.kernel, term.args, term.constants)
    return exact is not None and (exact[0] < term.limits[0] or exact[1] > term.limits[1])
