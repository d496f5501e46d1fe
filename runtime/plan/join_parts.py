"""The parts of a join condition: equal keys, ranges, conditions on one side, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Call, Lit, Term, attributes_of, conjuncts
from tidegate.algebra.typed.operations import common_type, resolve, term_type
from tidegate.algebra.types import DOUBLE, Kind


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`, each over one side and of one type. With `null_safe` NULL equals NULL."""

    left: Term
    right: Term
    null_safe: bool


@dataclass(frozen=True, slots=True)
class Range:
    """`left <= right`, or `<` where `strict`, between integers. With `left_first` the smaller value is of the join's
    left side.
    """

    left: Term
    right: Term
    strict: bool
    left_first: bool


@dataclass(frozen=True, slots=True)
class JoinParts:
    """The conjuncts of a join condition, sorted by how the join uses them.

    `left` and `right` are about one side alone (constants: left).
    """

    equalities: tuple[Equality, ...]
    ranges: tuple[Range, ...]
    left: tuple[Term, ...]
    right: tuple[Term, ...]
    rest: tuple[Term, ...]


_MIRROR = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


@lru_cache(maxsize=1024)
def join_parts(condition: Term, left: Schema, right: Schema, *, exact: bool = False) -> JoinParts:
    """Sorts the conjuncts of a join condition over two schemas with different names.

    No part may fail where the condition as a whole would not: what can fail stays behind the conjuncts before it, so
    then the whole condition is part of the rest. Keys and bounds may be computed for every row if no conjunct that
    could be meant as a guard stands before them; `exact`: if no conjunct at all does.
    """
    both = Schema((*left.attributes, *right.attributes))
    equalities: list[Equality] = []
    ranges: list[Range] = []
    sides: tuple[list[Term], list[Term]] = ([], [])
    rest: list[Term] = []
    guarded, whole = False, False
    for part in conjuncts(condition):
        fallible = resolve(part, both).fallible
        usable = not (fallible and guarded)
        place = None if fallible else _side(part, left, right)
        if place is not None:
            sides[place].append(part)
            guarded = True
        elif usable and (equality := _equality(part, left, right, both)) is not None:
            equalities.append(equality)
        elif usable and (range_ := _range(part, left, right, both)) is not None:
            ranges.append(range_)
        else:
            rest.append(part)
            guarded, whole = True, whole or fallible
        guarded |= exact
    return JoinParts(
        tuple(equalities), tuple(ranges), tuple(sides[0]), tuple(sides[1]), (condition,) if whole else tuple(rest)
    )


def _side(term: Term, left: Schema, right: Schema) -> int | None:
    """0 where a term reads the left side alone, 1 for the right. Constants count as left."""
    names = attributes_of(term)
    if names <= set(left):
        return 0
    return 1 if names <= set(right) else None


def _equality(part: Term, left: Schema, right: Schema, both: Schema) -> Equality | None:
    match part:
        case Call("eq" | "eq_null_safe" as op, (first, second)):
            sides = (_side(first, left, right), _side(second, left, right))
            if sides == (1, 0):
                first, second = second, first
            elif sides != (0, 1):
                return None
            keys = _one_type(first, second, both, null_safe=op == "eq_null_safe")
            return None if keys is None else Equality(*keys, null_safe=op == "eq_null_safe")
        case _:
            return None


def _one_type(left: Term, right: Term, both: Mapping[str, Attribute], *, null_safe: bool) -> tuple[Term, Term] | None:
    """Both sides, cast to the type in which they are compared."""
    types = (term_type(left, both), term_type(right, both))
    if types[0] == types[1]:
        return None if types[0].kind is Kind.NULL else (left, right)
    to = common_type(list(types))
    if to is None or Kind.NULL in (types[0].kind, types[1].kind):
        return None
    if to == DOUBLE:
        cast = "cast_double"
    elif null_safe:
        return None  # a value that does not fit would become the other side's NULL
    else:
        cast = f"try_cast_decimal_{to.precision}_{to.scale}"  # what does not fit equals nothing, as NULL does
    pair = tuple(term if type_ == to else Call(cast, (term,)) for term, type_ in zip((left, right), types, strict=True))
    return pair[0], pair[1]


def _range(part: Term, left: Schema, right: Schema, both: Schema) -> Range | None:
    match part:
        case Call("lt" | "le" | "gt" | "ge" as op, (first, second)):
            pair = _isolated(first, op, second, left, right, both)
        case _:
            return None
    if pair is None:
        return None
    first, relation, second = pair
    types = (term_type(first, both), term_type(second, both))
    if types[0] != types[1] or not types[0].is_integer_held:
        return None
    if relation in ("gt", "ge"):
        first, relation, second = second, _MIRROR[relation], first
    return Range(first, second, strict=relation == "lt", left_first=_side(first, left, right) == 0)


def _isolated(
    first: Term, op: str, second: Term, left: Schema, right: Schema, both: Schema
) -> tuple[Term, str, Term] | None:
    """A comparison with one side of the join on each side: as written, or `later - earlier op c` as `later op earlier +
    c`.
    """
    if {_side(first, left, right), _side(second, left, right)} == {0, 1}:
        return first, op, second
    for difference, limit, relation in ((first, second, op), (second, first, _MIRROR[op])):
        if (
            isinstance(difference, Call)
            and difference.op == "sub"
            and isinstance(limit, Lit)
            and limit.value is not None
        ):
            later, earlier = difference.args
            moved = Call("add", (earlier, limit))
            sound = {_side(later, left, right), _side(earlier, left, right)} == {0, 1}
            # Only where neither form can overflow do both say the same.
            if sound and not resolve(difference, both).fallible and not resolve(moved, both).fallible:
                return later, relation, moved
    return None
