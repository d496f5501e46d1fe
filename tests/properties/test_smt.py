"""Distances, validity and implication of random formulas agree with an SMT solver.

Rule R3 takes the rounding of an instant for one value within a unit of it, the same wherever it is written, of which it
is not known that it is a multiple. Over formulas read in this way the solver must find exactly what the zones say; over
the formulas as they are meant, nothing beyond it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import z3

from tests.properties.families import seeds
from tests.strategies.formulas import Options, RandomFormula, random_consequence, random_formula
from tests.strategies.programs import show_term
from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import Attr, Call, Lit, Term
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.propagation import propagations
from tidegate.analysis.validity.validity import refuting
from tidegate.analysis.zones.federation import Federation

OPTIONS = Options()
#: Beyond the sum of all constants of a formula: a difference that can be as large has no bound.
FAR = 10_000
_NEGATED = {"le": "gt", "lt": "ge", "eq": "ne", "ge": "lt", "gt": "le", "ne": "eq"}


#: The name of an attribute, or what is rounded down to a multiple of the third number, after the second was added.
Key = str | tuple["Key", int, int]


@dataclass(frozen=True, slots=True)
class Leaf:
    key: Key
    by: int


@dataclass(frozen=True, slots=True)
class Choice:
    op: str
    parts: tuple[Leaf | Choice, ...]


def added(tree: Leaf | Choice, by: int) -> Leaf | Choice:
    if isinstance(tree, Choice):
        return Choice(tree.op, tuple(added(part, by) for part in tree.parts))
    return Leaf(tree.key, tree.by + by)


def floor(tree: Leaf | Choice, unit: int) -> Leaf | Choice:
    """Of a choice the choice of the floors; of a floor by a divisor of the unit what that was of; else a new key."""
    match tree:
        case Choice(op, parts):
            return Choice(op, tuple(floor(part, unit) for part in parts))
        case Leaf((inner, phase, less), by) if unit % less == 0:
            return floor(Leaf(inner, phase + by // less * less), unit)
        case Leaf((_, _, more), by) if more % unit == 0:
            return Leaf(tree.key, by // unit * unit)
        case Leaf(key, by):
            return Leaf((key, by % unit, unit), by - by % unit)
    raise AssertionError(tree)


def tree_of(term: Term) -> Leaf | Choice:
    match term:
        case Attr(name):
            return Leaf(name, 0)
        case Call("add", (a, Lit(int(by), _))):
            return added(tree_of(a), by)
        case Call("least" | "greatest" as op, parts):
            return Choice(op, tuple(map(tree_of, parts)))
        case Call("floor", (base, Lit(int(unit), _))):
            return floor(tree_of(base), unit)
        case Call("ceil", (base, Lit(int(unit), _))):
            return floor(added(tree_of(base), unit - 1), unit)
    raise AssertionError(term)


class Reading:
    """A formula as the solver sees it: `exact`, or with some value within a unit for each rounding of an instant."""

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact

    def formula(self, term: Term, positive: bool = True) -> z3.BoolRef:
        match term:
            case Lit(value, _):
                return z3.BoolVal(bool(value) == positive)
            case Call("not", (part,)):
                return self.formula(part, not positive)
            case Call("and" | "or" as op, parts):
                found = [self.formula(part, positive) for part in parts]
                return z3.And(found) if (op == "and") == positive else z3.Or(found)
            case Call(op, (left, right)):
                return self.comparison(op if positive else _NEGATED[op], left, right)
        raise AssertionError(term)

    def comparison(self, op: str, left: Term, right: Term) -> z3.BoolRef:
        match op:
            case "le":
                return self.at_most(left, right, 0)
            case "lt":
                return self.at_most(left, right, -1)
            case "ge":
                return self.at_most(right, left, 0)
            case "gt":
                return self.at_most(right, left, -1)
            case "eq":
                return z3.And(self.at_most(left, right, 0), self.at_most(right, left, 0))
            case "ne":
                return z3.Or(self.at_most(left, right, -1), self.at_most(right, left, -1))
        raise AssertionError(op)

    def at_most(self, left: Term, right: Term, c: int) -> z3.BoolRef:
        sides: list[z3.BoolRef] = []
        instant = self.instant if self.exact else lambda term: self.loose(tree_of(term), sides)
        # What is said of roundings is a fact of both polarities: `at_most` is asked for after the negations.
        return z3.And(instant(left) <= instant(right) + c, *sides)

    def instant(self, term: Term) -> z3.ArithRef:
        match term:
            case Attr(name):
                return z3.Int(name)
            case Lit(int(value), _):
                return z3.IntVal(value)
            case Call("add", (a, b)):
                return self.instant(a) + self.instant(b)
            case Call("least" | "greatest" as op, parts):
                return first(op, [self.instant(part) for part in parts])
            case Call("floor" | "ceil" as op, (base, Lit(int(unit), _))):
                inner = self.instant(base)  # z3 divides integers towards -∞ where the divisor is positive
                return unit * (inner / unit if op == "floor" else (inner + unit - 1) / unit)
        raise AssertionError(term)

    def loose(self, tree: Leaf | Choice, sides: list[z3.BoolRef]) -> z3.ArithRef:
        if isinstance(tree, Choice):
            return first(tree.op, [self.loose(part, sides) for part in tree.parts])
        return self.value(tree.key, sides) + tree.by

    def value(self, key: Key, sides: list[z3.BoolRef]) -> z3.ArithRef:
        if isinstance(key, str):
            return z3.Int(key)
        base, phase, unit = key
        value, instant = z3.Int(repr(key)), self.value(base, sides) + phase
        sides += [instant - (unit - 1) <= value, value <= instant]
        return value


def first(op: str, parts: list[z3.ArithRef]) -> z3.ArithRef:
    """The least or greatest of several numbers."""
    found, *rest = parts
    for other in rest:
        found = z3.If(found <= other if op == "least" else found >= other, found, other)
    return found


class Told:
    """What the solver says of one formula."""

    def __init__(self, made: RandomFormula, *, exact: bool) -> None:
        self.reading = Reading(exact=exact)
        self.solver = z3.SolverFor("QF_LIA")
        self.solver.add(self.reading.formula(made.condition))

    def possible(self, *more: z3.BoolRef) -> bool:
        self.solver.push()
        self.solver.add(*more)
        answer = self.solver.check()
        self.solver.pop()
        assert answer in (z3.sat, z3.unsat)
        return bool(answer == z3.sat)


def broken(seed: int, tally: Counter[str]) -> str | None:
    """What of the analysis of one formula the solver contradicts."""
    made = random_formula(seed, OPTIONS)
    try:
        found = federation(made.node)
    except QueryError as error:
        assert error.code == "TG150"  # noqa: PT017  # too many cases is the one refusal that may come
        tally["refused"] += 1
        return None
    tally["formulas"] += 1
    alike, meant = Told(made, exact=False), Told(made, exact=True)
    wrong = next(_wrong(made, found, alike, meant, tally), None)
    return None if wrong is None else f"seed {seed}: {show_term(made.condition)}: {wrong}"


def _wrong(made: RandomFormula, found: Federation, alike: Told, meant: Told, tally: Counter[str]) -> Iterator[str]:
    satisfiable = alike.possible()
    if satisfiable != bool(found.zones):
        yield f"{len(found.zones)} zones, but it is {'' if satisfiable else 'not '}satisfiable"
    if not satisfiable:
        tally["contradictory"] += 1
        if meant.possible():
            yield "no zones, but it is satisfiable as it is meant"
        return
    for w in made.instants:
        for v in made.instants:
            said: Extended = max(zone.distance(("a", w), ("a", v)) for zone in found.zones)
            difference = z3.Int(v) - z3.Int(w)
            if not alike.possible(difference >= (FAR if said == INF else int(said))):
                yield f"d({w}, {v}) = {said} is too large"
            if said != INF and alike.possible(difference > int(said)):
                yield f"d({w}, {v}) = {said} is too small"
            if said != INF and meant.possible(difference > int(said)):
                yield f"d({w}, {v}) = {said} is too small for what is meant"
            tally["finite distances" if said != INF else "infinite distances"] += 1
    functions = propagations(found)
    for a in made.instants:
        ahead = [[z3.Int(y) - z3.Int(a) >= FAR for y in names] for names in made.progressing]
        progresses = not any(alike.possible(*far) for far in ahead)
        if functions[a].is_finite != progresses:
            yield f"progress on {a}: {functions[a].is_finite}, but {progresses}"
        if functions[a].is_finite and any(meant.possible(*far) for far in ahead):
            yield f"progress on {a}, but not as it is meant"
        tally["valid" if progresses else "not valid"] += 1
    for number in range(3):
        relation = random_consequence(made, number, OPTIONS)
        follows = refuting(found, relation, made.node.schema) is None
        if follows == alike.possible(alike.reading.formula(relation, positive=False)):
            yield f"{show_term(relation)} is {'' if follows else 'not '}implied"
        if follows and meant.possible(meant.reading.formula(relation, positive=False)):
            yield f"{show_term(relation)} is implied, but not as it is meant"
        tally["implied" if follows else "not implied"] += 1


def test_zones_agree_with_the_solver() -> None:
    _check(seeds(150))


@pytest.mark.long
@pytest.mark.parametrize("shard", range(4))
def test_zones_agree_with_the_solver_on_many_formulas(shard: int) -> None:
    _check(seeds(11_000)[shard::4])


def _check(numbers: range) -> None:
    tally = Counter[str]()
    for seed in numbers:
        assert (wrong := broken(seed, tally)) is None, wrong
    # Every kind of answer is given often enough to be worth something.
    assert tally["formulas"] >= 0.95 * len(numbers), tally
    kinds = ("finite distances", "infinite distances", "valid", "not valid", "implied", "not implied")
    assert all(tally[kind] >= 0.2 * len(numbers) for kind in kinds), tally
    assert tally["contradictory"] >= 0.01 * len(numbers), tally
