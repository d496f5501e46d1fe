"""What makes a condition false, as the certainty of matches is judged by it: no more and no less than its negation."""

from __future__ import annotations

import random

from tests.properties.brute import Grid, Mask, every, grid, holds, some
from tests.strategies.formulas import Options, random_formula
from tidegate.algebra.allen import RELATIONS
from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.ordered.match.certainty import Conjunction, first_certain, refutations_of
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Term, disjunction
from tidegate.algebra.types import BIGINT

ENDS = tuple(map(Attr, ("A.ts", "A.te", "B.ts", "B.te")))
PLAIN = Options(rounding=False, widths=((1, 1), (2,), (1, 1, 1), (2, 1)))


def of(condition: Term) -> frozenset[Conjunction]:
    attributes = {end.name: Attribute(end.name, BIGINT, nullable=False, temporal=True) for end in ENDS}
    return refutations_of(temporal_formula(condition, attributes))


def one_holds(refutations: frozenset[Conjunction], at: dict[str, Grid], size: int) -> Mask:
    return some([every([at[v] - at[w] <= c for v, w, c in refutation], size) for refutation in refutations], size)


def test_a_condition_is_false_exactly_where_one_of_its_refutations_holds() -> None:
    several = 0
    for seed in range(150):
        formula = random_formula(seed, PLAIN)
        refutations = refutations_of(temporal_formula(formula.condition, formula.node.schema))
        at = grid(formula.instants, -6, 6)
        true = holds(formula.condition, at)
        assert (one_holds(refutations, at, len(true)) == ~true).all(), formula
        several += len(refutations) > 1
    assert several > 50


def test_alternatives_of_two_situations_are_false_in_few_ways() -> None:
    """Their full product has four ways for each relation: 67 million for all of them."""
    rng = random.Random(4)
    at = grid(tuple(end.name for end in ENDS), 0, 3)
    for count in (2, 5, 8, 12, 13):
        condition = disjunction([relation.condition(*ENDS) for relation in rng.sample(RELATIONS, count)])
        refutations = of(condition)
        assert len(refutations) < 60
        true = holds(condition, at)
        assert (one_holds(refutations, at, len(true)) == ~true).all()


def test_what_holds_anyway_is_certain_once_all_have_started() -> None:
    anything = of(disjunction([relation.condition(*ENDS) for relation in RELATIONS]))
    assert first_certain(anything, {"A": (0, None), "B": (3, None)}) == 3
