"""Normal form of temporal relation formulas: conjunctions and disjunctions of `v - w <= c` (TSA Def. 4, rule R3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.formulas import (
    And,
    Ceil,
    Compare,
    Comparison,
    Floor,
    Formula,
    Greatest,
    Least,
    Not,
    Opaque,
    Or,
    Shift,
    TemporalTerm,
    Truth,
    Var,
)
from tidegate.algebra.terms import Term
from tidegate.algebra.types import MAX_SHIFT

#: Begins the names that a formula has for instants that no attribute names; no attribute of a user has such a name.
LOCAL = "\0"


@dataclass(frozen=True, slots=True)
class Bound:
    """The difference constraint `v - w <= c` in ticks; `source` is the term that it was read from."""

    v: str
    w: str
    c: int
    source: Term | None = None


@dataclass(frozen=True, slots=True)
class All:
    """Conjunction; of nothing it is ⊤."""

    parts: tuple[Normal, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Disjunction; of nothing it is ⊥."""

    parts: tuple[Normal, ...]


Normal = Bound | All | AnyOf
TOP, BOTTOM = All(()), AnyOf(())

_NEGATED: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", "=": "!=", ">=": "<", ">": "<=", "!=": "="}


def normal_form(formula: Formula, *, positive: bool = True) -> Normal:
    """The formula, or its negation, as ands and ors of difference constraints that it implies.

    Rule R3: the polarity reaches every literal first; only then non-temporal literals become ⊤. Without these the
    result is equivalent to the formula. Floor and ceil are variables of their own before (`instants.constrained`).
    """
    match formula:
        case Truth(value):
            return TOP if value == positive else BOTTOM
        case Opaque():
            return TOP
        case Not(part):
            return normal_form(part, positive=not positive)
        case And(parts):
            normal = [normal_form(part, positive=positive) for part in parts]
            return conjoin(normal) if positive else disjoin(normal)
        case Or(parts):
            normal = [normal_form(part, positive=positive) for part in parts]
            return disjoin(normal) if positive else conjoin(normal)
        case Compare(left, op, right, source):
            return _comparison(left, op if positive else _NEGATED[op], right, source)
        case _:
            assert_never(formula)


def _comparison(left: TemporalTerm, op: Comparison, right: TemporalTerm, source: Term | None) -> Normal:
    match op:
        case "<=":
            return _at_most(left, right, 0, source)
        case "<":
            return _at_most(left, right, -1, source)
        case ">=":
            return _at_most(right, left, 0, source)
        case ">":
            return _at_most(right, left, -1, source)
        case "=":
            return conjoin((_at_most(left, right, 0, source), _at_most(right, left, 0, source)))
        case "!=":
            return disjoin((_at_most(left, right, -1, source), _at_most(right, left, -1, source)))
        case _:
            assert_never(op)


def _at_most(left: TemporalTerm, right: TemporalTerm, c: int, source: Term | None) -> Normal:
    """`left <= right + c`, by the rules Arith, Min and Max of Def. 4 on ticks."""
    match left:
        case Shift(term, by):
            return _at_most(term, right, c - by, source)
        case Greatest(terms):
            return conjoin([_at_most(term, right, c, source) for term in terms])
        case Least(terms):
            return disjoin([_at_most(term, right, c, source) for term in terms])
        case Floor() | Ceil():
            raise _unnamed(left)
        case Var(v):
            match right:
                case Shift(term, by):
                    return _at_most(left, term, c + by, source)
                case Greatest(terms):
                    return disjoin([_at_most(left, term, c, source) for term in terms])
                case Least(terms):
                    return conjoin([_at_most(left, term, c, source) for term in terms])
                case Floor() | Ceil():
                    raise _unnamed(right)
                case Var(w):
                    return _bound(v, w, c, source)
                case _:
                    assert_never(right)
        case _:
            assert_never(left)


def _unnamed(term: TemporalTerm) -> AssertionError:
    return AssertionError(f"{term} has a variable of its own before a formula is normalised")


def _bound(v: str, w: str, c: int, source: Term | None) -> Normal:
    if abs(c) > MAX_SHIFT:
        raise QueryError(
            "TG151",
            f"the difference between {v.replace(LOCAL, '')} and {w.replace(LOCAL, '')} is beyond ±2**54 ticks",
            hint="use shorter durations",
        )
    if v == w:
        return TOP if c >= 0 else BOTTOM
    return Bound(v, w, c, source)


def conjoin(parts: Iterable[Normal]) -> Normal:
    """The conjunction, flattened, without repetitions; ⊥ absorbs."""
    flat: dict[Normal, None] = {}
    for part in parts:
        if part == BOTTOM:
            return BOTTOM
        flat.update(dict.fromkeys(part.parts if isinstance(part, All) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else All(tuple(flat))


def disjoin(parts: Iterable[Normal]) -> Normal:
    """The disjunction, flattened, without repetitions; ⊤ absorbs."""
    flat: dict[Normal, None] = {}
    for part in parts:
        if part == TOP:
            return TOP
        flat.update(dict.fromkeys(part.parts if isinstance(part, AnyOf) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else AnyOf(tuple(flat))


def negated(normal: Normal) -> Normal:
    """The negation of a normal form, exactly."""
    match normal:
        case Bound(v, w, c, source):
            return Bound(w, v, -c - 1, source)
        case All(parts):
            return disjoin(negated(part) for part in parts)
        case AnyOf(parts):
            return conjoin(negated(part) for part in parts)
        case _:
            assert_never(normal)


def holds(normal: Normal, at: Mapping[str, int]) -> bool:
    """Whether the normal form is true of these instants."""
    match normal:
        case Bound(v, w, c):
            return at[v] - at[w] <= c
        case All(parts):
            return all(holds(part, at) for part in parts)
        case AnyOf(parts):
            return any(holds(part, at) for part in parts)
        case _:
            assert_never(normal)


def estimate_zones(normal: Normal) -> int:
    """Number of conjunctions of the disjunctive normal form, at most, computed without building it (rule R8)."""
    match normal:
        case Bound():
            return 1
        case All(parts):
            product = 1
            for part in parts:
                product *= estimate_zones(part)
            return product
        case AnyOf(parts):
            return sum(estimate_zones(part) for part in parts)
        case _:
            assert_never(normal)


def bounds_of(normal: Normal) -> Iterator[Bound]:
    """All difference constraints inside, in order."""
    match normal:
        case Bound():
            yield normal
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from bounds_of(part)
        case _:
            assert_never(normal)
