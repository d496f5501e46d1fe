"""Conditions on single attributes as sets of values. They show contradictions and redundant conditions.

Only what compares one attribute with constants, or with itself, counts; values are those for which a condition is true,
so never NULL. Sets are exact or too large where they prove a contradiction, hence nothing is called never true that can
be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import ceil, comb, floor, isfinite
from typing import assert_never

from tidegate.algebra.errors import Problem, Site
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    children,
    nodes_of,
)
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.program import Query
from tidegate.algebra.terms import Attr, Call, Lit, Term, attributes_of, conjuncts, subterms
from tidegate.algebra.types import DataType, Kind
from tidegate.analysis.ordered.family import OneRow
from tidegate.analysis.ordered.table import family_of
from tidegate.analysis.report.value_sets import (
    ALL,
    NONE,
    Value,
    ValueSet,
    at_least,
    at_most,
    common,
    exactly,
    less,
    more,
    together,
)
from tidegate.analysis.zones.sites import site_of

#: A query has at most so many pairs of conditions compared: more notes help nobody. Attributes with more are left
#: out.
MAX_PAIRS = 100
#: Integers beyond are not all doubles.
_EXACT_IN_DOUBLE = 2**53
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
#: Comparisons that are true of a value and itself.
_REFLEXIVE = ("le", "ge", "eq")
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def notes(query: Query) -> list[Problem]:
    """Conditions that are redundant or never true: TG220 for those never true together, TG221 for redundant ones."""
    problems: dict[tuple[Term, ...], Problem] = {}
    pairs = 0
    for row, types in (*_of_relations(query.node), *_of_operators(query.node)):
        for name, terms in _by_attribute(row.conditions, types).items():
            if pairs + comb(len(terms), 2) > MAX_PAIRS:
                continue
            pairs += comb(len(terms), 2)
            for problem, compared in _compared(query, name, types[name], terms, row):
                problems.setdefault(compared, problem)
    return list(problems.values())


def _of_relations(node: Node) -> Iterator[tuple[OneRow, Mapping[str, DataType]]]:
    for conditions, types in _conditions(node):
        yield _one_row(conditions), types


def _one_row(conditions: Iterable[Term]) -> OneRow:
    hint = "both sides are one value; compare two, or ask is_not_null()"
    return OneRow({condition: condition for condition in conditions}, hint)


def _of_operators(node: Node) -> Iterator[tuple[OneRow, Mapping[str, DataType]]]:
    for current in nodes_of(node):
        if isinstance(current, OrderedNode):
            types = {a.name: a.type for below in children(current) for a in below.schema.attributes}
            for row in family_of(current).of_one_row(current):
                yield row, types


def never_a_row(query: Query) -> Problem | None:
    """TG220 for conditions that are never true together and let no row through to the result; None where rows may come,
    or nobody knows.
    """
    return _kept_out(query, query.node)


def left_by(conditions: Iterable[Term], types: Mapping[str, DataType]) -> dict[str, ValueSet]:
    """The values that conditions on one attribute leave, by attribute; there may be fewer than these."""
    left: dict[str, ValueSet] = {}
    for condition in conditions:
        name = _only_attribute(condition)
        if name is None or name not in types:
            continue
        accepted = values_of(condition, types[name])
        if accepted is not None:
            left[name] = left.get(name, ALL) & accepted
    return left


def follows_from(wanted: Term, left: Mapping[str, ValueSet], types: Mapping[str, DataType]) -> bool:
    """Whether a condition on one attribute is true of all values that others leave; False also where nobody knows."""
    name = _only_attribute(wanted)
    if name is None or name not in left:
        return False
    accepted = values_of(wanted, types[name])
    return accepted is not None and left[name] <= accepted


def _kept_out(query: Query, node: Node) -> Problem | None:
    match node:
        case Select():
            return _never_together(query, node) or _kept_out(query, _below_selections(node)[0])
        case Join(left, right, kind=kind):
            if kind not in ("inner", "semi"):
                return _kept_out(query, left)
            return _never_together(query, node) or _kept_out(query, left) or _kept_out(query, right)
        case Product(left, right):
            return _kept_out(query, left) or _kept_out(query, right)
        case Project(below) | Rename(below) | Imbed(below) | Group(below) | Distinct(below) | Difference(below):
            return _kept_out(query, below)
        case Union(inputs):
            every = [_kept_out(query, input_) for input_ in inputs]
            return every[0] if all(every) else None
        case Scan() | OrderedNode():
            return None
        case _:
            assert_never(node)


def _never_together(query: Query, node: Select | Join) -> Problem | None:
    """TG220 of the conditions that rows have to satisfy together at the top of a node."""
    conditions, types = next(_conditions(node))
    for name, terms in _by_attribute(conditions, types).items():
        if comb(len(terms), 2) > MAX_PAIRS:
            continue
        for problem, _ in _compared(query, name, types[name], terms, _one_row(terms)):
            if problem.code == "TG220":
                return problem
    return None


def _below_selections(node: Node) -> tuple[Node, list[Term]]:
    """What lies below stacked selections, and their conditions, the lowest first."""
    conditions: list[Term] = []
    while isinstance(node, Select):
        conditions = [*conjuncts(node.condition), *conditions]
        node = node.input
    return node, conditions


def _conditions(node: Node) -> Iterator[tuple[list[Term], Mapping[str, DataType]]]:
    """The conditions that rows have to satisfy together: those of stacked selections; of a join and right below it."""
    waiting, seen = [node], {node}
    while waiting:
        current = waiting.pop()
        below, conditions, next_ = [current], list[Term](), list(children(current))
        if isinstance(current, Join):
            below, conditions = next_, [*conjuncts(current.condition)]
        types = {a.name: a.type for side in below for a in side.schema.attributes}
        if isinstance(current, Select | Join):
            next_ = []
            for side in below:
                side, of_side = _below_selections(side)
                conditions = [*of_side, *conditions]
                next_.append(side)  # the selections above it have been told
            yield conditions, types
        new = [child for child in next_ if child not in seen]
        seen.update(new)
        waiting += new


def _by_attribute(conditions: Iterable[Term], types: Mapping[str, DataType]) -> dict[str, list[Term]]:
    """The different conditions on each single attribute, where there are several, or one compares it with itself."""
    by_name: dict[str, dict[Term, None]] = {}
    for condition in conditions:
        name = _only_attribute(condition)
        if name is not None:
            by_name.setdefault(name, {})[condition] = None
    several = {name: list(terms) for name, terms in by_name.items() if name in types}
    return {name: terms for name, terms in several.items() if len(terms) > 1 or _is_of_itself(terms[0])}


@lru_cache(maxsize=4096)
def _only_attribute(condition: Term) -> str | None:
    """The attribute that is compared in a condition that reads no other and does nothing else with it."""
    names = attributes_of(condition)
    if len(names) == 1 and all(_is_known(term) for term in subterms(condition)):
        return next(iter(names))
    return None


def _is_known(term: Term) -> bool:
    return not isinstance(term, Call) or term.op in _FLIPPED or term.op in ("and", "or", "not")


def _is_of_itself(term: Term) -> bool:
    """Whether a value is compared with itself in a condition on one attribute."""
    return any(isinstance(part, Call) and _is_of_one_value(part) for part in subterms(term))


def _is_of_one_value(term: Call) -> bool:
    return term.op in _FLIPPED and all(isinstance(arg, Attr) for arg in term.args)


def _compared(
    query: Query, name: str, type_: DataType, terms: list[Term], row: OneRow
) -> Iterator[tuple[Problem, tuple[Term, ...]]]:
    sets = {term: accepted for term in terms if (accepted := values_of(term, type_)) is not None}

    def place(term: Term) -> Site | None:
        return site_of(query, row.conditions[term])

    dropped = set[Term]()
    for term in sets:
        if not _is_of_itself(term):
            continue
        if sets[term].is_empty:
            yield Problem("TG220", f"never true: {_shown(term)}", place(term), (), row.itself, query.name), (term,)
            return
        if isinstance(term, Call) and _is_of_one_value(term):
            dropped.add(term)
            text = f"says only that {name} is not NULL: {_shown(term)}, as both sides are one value"
            yield Problem("TG221", text, place(term), (), row.itself, query.name), (term,)
    for first, second in combinations(sets, 2):
        if (sets[first] & sets[second]).is_empty:
            text = f"never true: {_shown(first)} and {_shown(second)}"
            hint = "no value satisfies both; is one comparison the wrong way round?"
            yield Problem("TG220", text, place(second), (), hint, query.name), (first, second)
            return
    if common(sets.values()).is_empty:
        text = f"never true: {' and '.join(map(_shown, sets))}"
        yield Problem("TG220", text, place([*sets][-1]), (), "no value satisfies all of them", query.name), (*sets,)
        return
    for first, second in combinations(sets, 2):
        for wide, narrow in ((second, first), (first, second)):
            if not {wide, narrow} & dropped and sets[narrow] <= sets[wide]:
                dropped.add(wide)
                text = f"says nothing new: {_shown(wide)}, as {_shown(narrow)}"
                hint = "leave it out, or correct it"
                yield Problem("TG221", text, place(wide), (), hint, query.name), (wide, narrow)


def _shown(term: Term) -> str:
    text = term_text(term)
    return f"({text})" if isinstance(term, Call) and term.op in ("and", "or", "not") else text


@lru_cache(maxsize=4096)
def values_of(term: Term, type_: DataType, *, positive: bool = True) -> ValueSet | None:
    """The values of an attribute of this type for which a condition on it is true, or with `positive` false those for
    which it is false; None where nobody knows. They are integers for what is held as such, other numbers, or texts.
    """
    match term:
        case Call("not", (inner,)):
            return values_of(inner, type_, positive=not positive)
        case Call("and" | "or", args):
            parts = [values_of(arg, type_, positive=positive) for arg in args]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return common(known) if (term.op == "and") == positive else together(known)
        case Call(op, (Attr(), Attr())) if op in _FLIPPED:
            return ALL if (op in _REFLEXIVE) == positive else NONE
        case Call(op, (Attr(), Lit() as literal)) if op in _FLIPPED:
            return _comparison(op if positive else _NEGATED[op], literal, type_)
        case Call(op, (Lit() as literal, Attr())) if op in _FLIPPED:
            return _comparison(_FLIPPED[op] if positive else _NEGATED[_FLIPPED[op]], literal, type_)
        case _:
            return None


def _comparison(op: str, literal: Lit, type_: DataType) -> ValueSet | None:
    at = _constant(literal, type_)
    if at is None:
        return None
    below, above, equal = less(at), more(at), exactly(at)
    if type_.is_integer_held and type_.kind is not Kind.DECIMAL and not isinstance(at, str):
        # Integers next to the constant make closed intervals: 5 < x < 6 has no integer, though it has numbers.
        below, above = at_most(ceil(at) - 1), at_least(floor(at) + 1)
        equal = equal if at.denominator == 1 else NONE
    match op:
        case "lt":
            return below
        case "le":
            return below | equal
        case "gt":
            return above
        case "ge":
            return above | equal
        case "eq":
            return equal
        case _:
            return below | above


def _constant(literal: Lit, type_: DataType) -> Value | None:
    """The constant on the attribute's line; None where the two are not compared exactly."""
    value, kinds = literal.value, {type_.kind, literal.type.kind}
    if isinstance(value, str):
        return value if kinds == {Kind.STRING} else None
    if value is None or isinstance(value, bool) or not isfinite(value):
        return None
    if literal.type.kind is Kind.DECIMAL:
        return Fraction(int(value), 10**literal.type.scale) if kinds == {Kind.DECIMAL} else None
    mixed = kinds == {Kind.BIGINT, Kind.DOUBLE} and abs(value) < _EXACT_IN_DOUBLE
    if not mixed and len(kinds) > 1:
        return None
    return value if isinstance(value, int) else Fraction(value)
