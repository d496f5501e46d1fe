"""Random row patterns."""

from __future__ import annotations

import random

from tidegate.algebra.ordered.sequences.pattern import (
    EMPTY,
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
)

COUNTS = ((0, None), (1, None), (0, 1), (0, 2), (1, 2), (2, 2), (2, None), (1, 3), (0, 0))


def random_pattern(
    rng: random.Random, variables: tuple[str, ...] = ("A", "B", "C"), depth: int = 3, *, marks: float = 0.1
) -> Pattern:
    """A short pattern. `marks`: how often an anchor, absence, exclusion or empty pattern stands where a part may."""
    if rng.random() < marks:
        return rng.choice(
            (
                Anchor(rng.choice(("start", "end"))),
                Absence("N", rng.choice((1, 3))),
                Exclusion(random_pattern(rng, variables, depth - 1, marks=marks)) if depth else EMPTY,
                EMPTY,
            )
        )
    if not depth or rng.random() < 0.25:
        return Step(rng.choice(variables))
    parts = tuple(random_pattern(rng, variables, depth - 1, marks=marks) for _ in range(rng.choice((2, 2, 3))))
    kind = rng.random()
    if kind < 0.4:
        return Concatenation(parts)
    if kind < 0.6:
        return Alternation(parts)
    if kind < 0.66:
        return Permutation(tuple(Step(variable) for variable in rng.sample(variables, 2)))
    least, most = rng.choice(COUNTS)
    return Repetition(parts[0], least, most, rng.random() < 0.7)
