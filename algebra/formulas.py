"""Temporal terms (TSA Def. 2), temporal relation formulas (Def. 3) and what of a condition is temporal (Def. 12).

Time is discrete: one tick is what the paper writes as ε. `ignore` is no atom here but a flag of a zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, assert_never

from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Call, Lit, Param, Term
from tidegate.algebra.typed.kernels import DAY
from tidegate.algebra.types import MAX_SHIFT, Kind

#: Units of one length to whose start timestamps are truncated, by name, in microseconds. (Months and years differ in
#: length.)
UNITS: Mapping[str, int] = MappingProxyType({"day": DAY, "hour": DAY // 24, "minute": 60_000_000, "second": 1_000_000})
#: From the Monday before 1970 to the first day of 1970, which was a Thursday.
_MONDAY = 3 * DAY


@dataclass(frozen=True, slots=True)
class Var:
    """The instant held by an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Shift:
    """`term + by`, in ticks."""

    term: TemporalTerm
    by: int


@dataclass(frozen=True, slots=True)
class Least:
    """The earliest of several instants."""

    terms: tuple[TemporalTerm, ...]


@dataclass(frozen=True, slots=True)
class Greatest:
    """The latest of several instants."""

    terms: tuple[TemporalTerm, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """The last multiple of `unit` ticks at or before the instant."""

    term: TemporalTerm
    unit: int


@dataclass(frozen=True, slots=True)
class Ceil:
    """The first multiple of `unit` ticks at or after the instant."""

    term: TemporalTerm
    unit: int


TemporalTerm = Var | Shift | Least | Greatest | Floor | Ceil

Comparison = Literal["<", "<=", "=", ">=", ">", "!="]
_COMPARISONS: dict[str, Comparison] = {
    "lt": "<",
    "le": "<=",
    "eq": "=",
    "ge": ">=",
    "gt": ">",
    "ne": "!=",
    "eq_null_safe": "=",
}


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right` between instants; `source` is the term that it was read from, for explanations."""

    left: TemporalTerm
    op: Comparison
    right: TemporalTerm
    source: Term | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A non-temporal literal: nothing is known of its truth; ⊤ once negations stand innermost, whatever its
    polarity.
    """

    source: Term


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Formula


@dataclass(frozen=True, slots=True)
class Truth:
    """⊤ or ⊥."""

    value: bool


Formula = Compare | Opaque | And | Or | Not | Truth
TOP, BOTTOM = Truth(True), Truth(False)


def temporal_term(term: Term, attributes: Mapping[str, Attribute]) -> TemporalTerm | None:
    """The term as a temporal term over temporal attributes, or None where it is something else."""
    match term:
        case Attr(name):
            return Var(name) if name in attributes and attributes[name].temporal else None
        case Call("add", (first, second)):
            for base, shift in ((first, second), (second, first)):
                by = _constant(shift)
                if by is not None and (inner := temporal_term(base, attributes)) is not None:
                    return _shift(inner, by)
            return None
        case Call("sub", (base, shift)):
            by = _constant(shift)
            inner = temporal_term(base, attributes)
            return None if by is None or inner is None else _shift(inner, -by)
        case Call("least" | "greatest" as op, args):
            parts = [temporal_term(arg, attributes) for arg in args]
            known = tuple(part for part in parts if part is not None)
            if len(known) != len(parts):
                return None
            return Least(known) if op == "least" else Greatest(known)
        case Call("floor" | "ceil" as op, (base, unit)):
            size = _constant(unit)
            inner = temporal_term(base, attributes)
            if size is None or size <= 0 or inner is None:
                return None
            return Floor(inner, size) if op == "floor" else Ceil(inner, size)
        case Call("truncate", (base, Lit(unit))) if (inner := temporal_term(base, attributes)) is not None:
            if unit == "week":
                return _shift(Floor(_shift(inner, _MONDAY), 7 * DAY), -_MONDAY)
            return Floor(inner, UNITS[unit]) if isinstance(unit, str) and unit in UNITS else None
        case Call() | Lit() | Param():
            return None
        case _:
            assert_never(term)


def temporal_formula(condition: Term, attributes: Mapping[str, Attribute]) -> Formula:
    """C_temp of Def. 12: the condition with its temporal comparisons kept and every other literal opaque."""
    match condition:
        case Lit(value, _):
            return Truth(value is True)
        case Call("and", args):
            return And(tuple(temporal_formula(arg, attributes) for arg in args))
        case Call("or", args):
            return Or(tuple(temporal_formula(arg, attributes) for arg in args))
        case Call("not", (arg,)):
            return Not(temporal_formula(arg, attributes))
        case Call(op, (left, right)) if op in _COMPARISONS:
            comparison = _comparison(_COMPARISONS[op], left, right, attributes, condition)
            return Opaque(condition) if comparison is None else comparison
        case Call() | Attr() | Param():
            return Opaque(condition)
        case _:
            assert_never(condition)


_MIRROR: dict[Comparison, Comparison] = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<", "!=": "!="}


def _comparison(
    op: Comparison, left: Term, right: Term, attributes: Mapping[str, Attribute], source: Term
) -> Compare | None:
    first, second = temporal_term(left, attributes), temporal_term(right, attributes)
    if first is not None and second is not None:
        return Compare(first, op, second, source)
    # `later - earlier op duration` says `later op earlier + duration`; a constant on the left mirrors it.
    for difference, constant, relation in ((left, right, op), (right, left, _MIRROR[op])):
        by = _constant(constant)
        if by is not None and isinstance(difference, Call) and difference.op == "sub":
            later, earlier = (temporal_term(arg, attributes) for arg in difference.args)
            if later is not None and earlier is not None:
                return Compare(later, relation, _shift(earlier, by), source)
    return None


def _shift(term: TemporalTerm, by: int) -> TemporalTerm:
    inner, total = (term.term, term.by + by) if isinstance(term, Shift) else (term, by)
    return inner if total == 0 else Shift(inner, total)


def _constant(term: Term) -> int | None:
    """Ticks of a constant duration or integer small enough to be a shift."""
    match term:
        case Lit(int(value), type_) if type_.kind in (Kind.DURATION, Kind.BIGINT) and abs(value) <= MAX_SHIFT:
            return value
        case Call("neg", (arg,)):
            inner = _constant(arg)
            return None if inner is None else -inner
        case _:
            return None


def formula_variables(formula: Formula) -> frozenset[str]:
    """Names of the attributes a formula speaks of."""
    match formula:
        case Compare(left, _, right):
            return term_variables(left) | term_variables(right)
        case And(parts) | Or(parts):
            return frozenset(name for part in parts for name in formula_variables(part))
        case Not(part):
            return formula_variables(part)
        case Opaque() | Truth():
            return frozenset()
        case _:
            assert_never(formula)


def rounds(written: Formula | TemporalTerm) -> bool:
    """Whether a formula or a temporal term has a floor or ceil in it."""
    match written:
        case Floor() | Ceil():
            return True
        case Compare(left, _, right):
            return rounds(left) or rounds(right)
        case And(parts) | Or(parts):
            return any(map(rounds, parts))
        case Least(terms) | Greatest(terms):
            return any(map(rounds, terms))
        case Not(part):
            return rounds(part)
        case Shift(term, _):
            return rounds(term)
        case Var() | Opaque() | Truth():
            return False
        case _:
            assert_never(written)


def inexact_part(formula: Formula) -> Term | None:
    """A comparison that rounds, or a condition on data; None where there is none, so that the negation is as exact."""
    match formula:
        case Opaque(source):
            return source
        case And(parts) | Or(parts):
            return next((inexact for part in parts if (inexact := inexact_part(part)) is not None), None)
        case Not(part):
            return inexact_part(part)
        case Compare(left, _, right, source):
            return source if rounds(left) or rounds(right) else None
        case Truth():
            return None
        case _:
            assert_never(formula)


def term_variables(term: TemporalTerm) -> frozenset[str]:
    """Names of the attributes a temporal term reads."""
    match term:
        case Var(name):
            return frozenset((name,))
        case Shift(inner, _) | Floor(inner, _) | Ceil(inner, _):
            return term_variables(inner)
        case Least(terms) | Greatest(terms):
            return frozenset(name for part in terms for name in term_variables(part))
        case _:
            assert_never(term)
