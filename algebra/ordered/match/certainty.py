"""When a condition on endpoints is certain, although some of them are not known yet: the definition, evaluated slowly.

At an instant t, endpoints up to t are known; of the others it is known that they lie beyond t, that each situation ends
after it starts (or then, if it may be a point), and nothing else. A condition is certain at t if no such completion
makes it false.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import assert_never

from tidegate.algebra.errors import InternalError
from tidegate.algebra.formulas import (
    And,
    Ceil,
    Compare,
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

#: `v - w <= c` between endpoints.
Difference = tuple[str, str, int]
Conjunction = frozenset[Difference]
#: Per symbol its start, and its end where it has one.
Situations = Mapping[str, tuple[int, int | None]]


def first_certain(
    refutations: Collection[Conjunction], situations: Situations, points: Collection[str] = ()
) -> int | None:
    """The least instant, not before all situations have started, at which a condition is certain; None if it never is.

    The condition is given by its `refutations`. `points` are the symbols whose situations may be points.
    """
    begin = max(start for start, _ in situations.values())
    known = [end for _, end in situations.values() if end is not None]
    reach = sum(abs(c) for refutation in refutations for _, _, c in refutation)
    # Once all finite endpoints are known and no constant reaches further, nothing more becomes certain.
    last = max([begin, *known]) + (reach + 1 if len(known) < len(situations) else 0)
    if not is_certain(refutations, situations, last, points):
        return None
    low, high = begin, last
    while low < high:
        middle = (low + high) // 2
        if is_certain(refutations, situations, middle, points):
            high = middle
        else:
            low = middle + 1
    return low


def is_certain(
    refutations: Collection[Conjunction], situations: Situations, t: int, points: Collection[str] = ()
) -> bool:
    """Whether no completion of what is known at `t` satisfies one of the refutations."""
    facts: list[Difference] = []
    for symbol, (start, end) in situations.items():
        ts, te = f"{symbol}.ts", f"{symbol}.te"
        facts += [*_equals(ts, start), (ts, te, 0 if symbol in points else -1)]
        facts += _equals(te, end) if end is not None and end <= t else [("0", te, -(t + 1))]
    return not any(_satisfiable([*facts, *refutation]) for refutation in refutations)


def _equals(name: str, value: int) -> list[Difference]:
    return [(name, "0", value), ("0", name, -value)]


def _satisfiable(constraints: Collection[Difference]) -> bool:
    """Whether integers satisfy all constraints: no cycle of them sums to less than nothing (Bellman and Ford)."""
    names = {name for v, w, _ in constraints for name in (v, w)}
    distance = dict.fromkeys(names, 0)
    for _ in range(len(names) + 1):
        changed = False
        for v, w, c in constraints:
            if distance[w] + c < distance[v]:
                distance[v] = distance[w] + c
                changed = True
        if not changed:
            return True
    return False


def refutations_of(condition: Formula) -> frozenset[Conjunction]:
    """The ways in which a condition can be false: whatever makes it false satisfies one of them."""
    return _alternatives(condition, negated=True)


def _alternatives(formula: Formula, *, negated: bool) -> frozenset[Conjunction]:
    """The formula, or its negation, as a disjunction of conjunctions of difference constraints."""
    match formula:
        case Truth(value):
            return frozenset([frozenset[Difference]()] if value != negated else [])
        case Not(part):
            return _alternatives(part, negated=not negated)
        case And(parts) | Or(parts):
            each = [_alternatives(part, negated=negated) for part in parts]
            return _every(each) if isinstance(formula, And) != negated else _any(each)
        case Compare(left, op, right, _):
            return _compare(
                left, {"<": ">=", "<=": ">", "=": "!=", ">=": "<", ">": "<=", "!=": "="}[op] if negated else op, right
            )
        case Opaque():
            raise InternalError("TG901", "a condition on endpoints compares nothing else")
        case _:
            assert_never(formula)


def _any(each: Iterable[Collection[Conjunction]]) -> frozenset[Conjunction]:
    return frozenset(itertools.chain.from_iterable(each))


def _every(each: Iterable[Collection[Conjunction]]) -> frozenset[Conjunction]:
    """One of each at a time, all together. Not all of the product, which has 4 to the power of 13 for Allen's
    relations: what contradicts itself is left out, and so is what asks for all that another one asks for, and more.
    """
    conjunctions = frozenset([frozenset[Difference]()])
    for alternatives in each:
        both = {a | b for a in conjunctions for b in alternatives if _satisfiable(a | b)}
        conjunctions = frozenset(a for a in both if not any(b < a for b in both))
    return conjunctions


def _compare(left: TemporalTerm, op: str, right: TemporalTerm) -> frozenset[Conjunction]:
    match op:
        case "<=":
            return _at_most(left, right, 0)
        case "<":
            return _at_most(left, right, -1)
        case ">=":
            return _at_most(right, left, 0)
        case ">":
            return _at_most(right, left, -1)
        case "=":
            return _every([_at_most(left, right, 0), _at_most(right, left, 0)])
        case _:
            return _any([_at_most(left, right, -1), _at_most(right, left, -1)])


def _at_most(left: TemporalTerm, right: TemporalTerm, c: int) -> frozenset[Conjunction]:
    """`left <= right + c`."""
    match left, right:
        case Shift(inner, by), _:
            return _at_most(inner, right, c - by)
        case _, Shift(inner, by):
            return _at_most(left, inner, c + by)
        case Greatest(terms), _:
            return _every(_at_most(term, right, c) for term in terms)
        case _, Least(terms):
            return _every(_at_most(left, term, c) for term in terms)
        case Least(terms), _:
            return _any(_at_most(term, right, c) for term in terms)
        case _, Greatest(terms):
            return _any(_at_most(left, term, c) for term in terms)
        case Var(v), Var(w):
            return frozenset([frozenset([(v, w, c)])])
        case (Floor() | Ceil(), _) | (_, Floor() | Ceil()):
            raise InternalError("TG901", "a condition on endpoints rounds nothing")
        case _:
            raise InternalError("TG901", f"no comparison of instants: {left} and {right}")
