"""The normal form is implied by the formula; without floor, ceil and opaque literals it is equivalent (rule R3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from tidegate.algebra.terms import Attr
from tidegate.analysis.zones.normal_form import All, AnyOf, Bound, Normal, estimate_zones, normal_form

NAMES = ("a", "b", "c")
OPERATORS: tuple[Comparison, ...] = ("<", "<=", "=", ">=", ">", "!=")

plain_terms = st.recursive(
    st.sampled_from(NAMES).map(Var),
    lambda inner: st.one_of(
        st.builds(Shift, inner, st.integers(-2, 2)),
        st.builds(Least, st.tuples(inner, inner)),
        st.builds(Greatest, st.tuples(inner, inner)),
    ),
    max_leaves=3,
)
rounded_terms = st.recursive(
    plain_terms,
    lambda inner: st.one_of(
        st.builds(Floor, inner, st.integers(1, 4)),
        st.builds(Ceil, inner, st.integers(1, 4)),
        st.builds(Shift, inner, st.integers(-2, 2)),
    ),
    max_leaves=2,
)


def formulas(terms: st.SearchStrategy[TemporalTerm], leaves: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    compare = st.builds(Compare, terms, st.sampled_from(OPERATORS), terms)
    return st.recursive(
        st.one_of(compare, compare, leaves),
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.tuples(inner, inner)),
            st.builds(Or, st.tuples(inner, inner)),
        ),
        max_leaves=4,
    )


truths: st.SearchStrategy[Formula] = st.booleans().map(Truth)
opaque: st.SearchStrategy[Formula] = st.sampled_from(("p", "q")).map(lambda name: Opaque(Attr(name)))


def value(term: TemporalTerm, at: Mapping[str, int]) -> int:
    match term:
        case Var(name):
            return at[name]
        case Shift(inner, by):
            return value(inner, at) + by
        case Least(terms):
            return min(value(t, at) for t in terms)
        case Greatest(terms):
            return max(value(t, at) for t in terms)
        case Floor(inner, unit):
            return value(inner, at) // unit * unit
        case Ceil(inner, unit):
            return -(-value(inner, at) // unit) * unit


def holds(formula: Formula, at: Mapping[str, int], data: Mapping[str, bool]) -> bool:
    match formula:
        case Truth(truth):
            return truth
        case Opaque(Attr(name)):
            return data[name]
        case Not(part):
            return not holds(part, at, data)
        case And(parts):
            return all(holds(part, at, data) for part in parts)
        case Or(parts):
            return any(holds(part, at, data) for part in parts)
        case Compare(left, op, right):
            one, other = value(left, at), value(right, at)
            return {
                "<": one < other, "<=": one <= other, "=": one == other,
                ">=": one >= other, ">": one > other, "!=": one != other,
            }[op]  # fmt: skip
    raise AssertionError(formula)


def satisfied(normal: Normal, at: Mapping[str, int]) -> bool:
    match normal:
        case Bound(v, w, c):
            return at[v] - at[w] <= c
        case All(parts):
            return all(satisfied(part, at) for part in parts)
        case AnyOf(parts):
            return any(satisfied(part, at) for part in parts)


def assignments(low: int = -3, high: int = 3) -> list[dict[str, int]]:
    return [dict(zip(NAMES, point, strict=True)) for point in product(range(low, high + 1), repeat=len(NAMES))]


GRID = assignments()


@given(formulas(plain_terms, truths))
def test_without_rounding_it_is_equivalent(formula: Formula) -> None:
    normal, negated = normal_form(formula), normal_form(formula, positive=False)
    for at in GRID:
        expected = holds(formula, at, {})
        assert satisfied(normal, at) == expected
        assert satisfied(negated, at) != expected


@given(formulas(plain_terms, opaque), st.booleans(), st.booleans())
def test_it_is_implied_whatever_the_data_say(formula: Formula, p: bool, q: bool) -> None:
    normal, negated = normal_form(formula), normal_form(formula, positive=False)
    for at in GRID:
        if holds(formula, at, {"p": p, "q": q}):
            assert satisfied(normal, at)
        else:
            assert satisfied(negated, at)


@given(formulas(plain_terms, truths))
def test_the_estimate_is_no_less_than_the_number_of_conjunctions(formula: Formula) -> None:
    def conjunctions(normal: Normal) -> list[tuple[Bound, ...]]:
        match normal:
            case Bound():
                return [(normal,)]
            case All(parts):
                return [sum(chosen, ()) for chosen in product(*map(conjunctions, parts))]
            case AnyOf(parts):
                return [found for part in parts for found in conjunctions(part)]

    normal = normal_form(formula)
    assert estimate_zones(normal) == len(conjunctions(normal))


def test_an_opaque_literal_is_top_under_a_negation_too() -> None:
    assert normal_form(Not(Opaque(Attr("p")))) == All(())
    assert normal_form(Not(And((Opaque(Attr("p")), Compare(Var("a"), "<", Var("b")))))) == All(())


def test_constants_that_could_overflow_are_refused() -> None:
    with pytest.raises(QueryError, match="TG151"):
        normal_form(Compare(Var("a"), "<=", Shift(Shift(Var("b"), 2**54), 1)))
