"""Random row patterns."""

from __future__ import annotations

import random
from typing import Any

from tests.strategies.written_sequences import sequences, term
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Limit, Point, Reported, within
from tidegate.algebra.ordered.sequences.node import Sequences
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
    absent_in,
    variables_of,
)
from tidegate.algebra.terms import Term

N, M = Step("N"), Step("M")
#: Groups of rows that must not come.
GROUPS: tuple[Pattern, ...] = (
    Concatenation((N, M)),
    Concatenation((N, M)),
    Concatenation((N, N)),
    Alternation((Concatenation((N, M)), Concatenation((M, M)))),
    Concatenation((N, Repetition(M, 1, 2))),
    Concatenation((N, Step("A"), M)),
    Permutation((N, M)),
    Alternation((N, M)),
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
                Absence(_absent(rng), rng.choice((None, 1, 3))),
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


def _absent(rng: random.Random) -> Pattern:
    """What must not come: a row, or rows of a group."""
    return Step("N") if rng.random() < 0.5 else rng.choice(GROUPS)


def _with_group(rng: random.Random, pattern: Pattern) -> Pattern:
    """The pattern with rows of a group that must not come before it, in it or behind it."""
    absence = Absence(rng.choice(GROUPS), rng.choice((1, 2, 3, 5)))
    if rng.random() < 0.3:
        return Concatenation((Step("A"), Absence(absence.part, rng.choice((None, absence.within))), pattern))
    return Concatenation((absence, pattern) if rng.random() < 0.3 else (pattern, absence))


def random_sequences(rng: random.Random, *, every: str | None = None, groups: bool = False) -> Sequences:
    """A node with a short pattern over rows of the values 0 and 1. `every`: how rows are skipped, where all matches are
    asked for. `groups`: rows of a group must not come. What is refused is drawn anew.
    """
    while True:
        try:
            node = _drawn(rng, every, groups=groups)
            _ = node.schema
        except QueryError:
            continue
        return node


def _drawn(rng: random.Random, every: str | None, *, groups: bool) -> Sequences:
    pattern = random_pattern(rng, depth=rng.choice((1, 2, 2, 3)), marks=rng.choice((0, 0, 0.15)))
    if groups:
        pattern = _with_group(rng, pattern)
    names = (*variables_of(pattern), *absent_in(pattern))
    conditions: dict[str, Any] = {name: _condition(rng, variables_of(pattern)) for name in dict.fromkeys(names)}
    if "M" in conditions and "N" in absent_in(pattern) and rng.random() < 0.5:
        conditions["M"] = _of_group(rng)
    limits = [_limit(rng, variables_of(pattern)) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    if every is not None:
        return sequences(pattern, select=EveryMatch(every), limits=limits, **conditions)  # type: ignore[arg-type]
    skip = rng.choice(("past last row", "next row", "first", "last"))
    skip = skip if " " in skip else f"{skip} {rng.choice(variables_of(pattern) or ('A',))}"
    unmatched = rng.random() < 0.5
    numbers = {"n": lambda r: r.number} if rng.random() < 0.2 else {}
    ahead = {"ahead": lambda r: r.next_x} if rng.random() < 0.1 else {}
    reported = Reported("all" if unmatched else "one", unmatched=unmatched)
    return sequences(pattern, skip=skip, limits=limits, measures=numbers | ahead, reported=reported, **conditions)


def _condition(rng: random.Random, variables: tuple[str, ...]) -> Term:
    """A condition: mostly of the row's value, now and then of the rows around, of instants or of counts."""
    variable = rng.choice(variables or ("A",))
    value, ticks = rng.randrange(2), rng.choice((0, 1, 2, 3, 5))

    def other(r: Any) -> Any:
        return rng.choice(
            (
                lambda: r[f"{rng.choice(('prev', 'next', 'next2', 'prev2'))}_x"] == value,
                lambda: r[f"{rng.choice(('next', 'prev'))}_x"].is_null(),
                lambda: r.t - r.prev_t <= ticks,
                lambda: r.t - r.prev_t >= ticks,
                lambda: r.t - r[f"{rng.choice(('first', 'last'))}_{variable}_t"] <= ticks,
                lambda: r.t - r[f"first_{variable}_t"] >= ticks,
                lambda: r.next_t - r.t <= ticks,
                lambda: r.next_t - r.t > ticks,
                lambda: r[f"last_{variable}1_x"] == value,
                lambda: r[f"first_{variable}_x"] == value,
                lambda: r[f"prev_{variable}_x"] == value if variable == "A" else r.prev_x == value,
                lambda: r[f"count_{variable}"] >= ticks,
                lambda: r[f"count_{variable}"] <= ticks,
                lambda: r.count_all <= ticks,
                lambda: _counted(rng, r, variable, ticks),
                lambda: r.x > r[f"{rng.choice(('first', 'last'))}_{variable}_x"],
                lambda: ~(r.x == r[f"last_{variable}_x"]),
                lambda: r[f"sum_{variable}"] <= value,
                lambda: r[rng.choice(("was", "was2"))] == variable,
            )
        )()

    def drawn(r: Any) -> Any:
        kind = rng.random()
        plain = r.x == value
        if kind < 0.45:
            return plain
        if kind < 0.55:
            return r.x >= 0
        if kind < 0.75:
            return plain & other(r)
        if kind < 0.85:
            return plain | other(r)
        if kind < 0.92:
            return ~other(r)
        return other(r)

    return term(drawn)


def _counted(rng: random.Random, r: Any, variable: str, most: int) -> Any:
    """A comparison of a number of rows with a constant."""
    rows = r[rng.choice((f"count_{variable}", "count_all"))]
    compared: tuple[Any, ...] = (
        lambda: rows < most,
        lambda: rows == most,
        lambda: rows != most,
        lambda: rows > most,
        lambda: ~(rows > most),
        lambda: ~(rows < most),
        lambda: (rows <= most) & (r.x >= 0),
        lambda: (rows <= most) | (r.x == 0),
    )
    return rng.choice(compared)()


def _of_group(rng: random.Random) -> Term:
    """A condition of the second row of a group that reads the first one."""
    value, ticks = rng.randrange(2), rng.choice((0, 1, 2))
    conditions: tuple[Any, ...] = (
        lambda r: r.x == r.last_N_x,
        lambda r: r.x != r.first_N_x,
        lambda r: r.t - r.last_N_t >= ticks,
        lambda r: (r.x == value) & (r.t - r.last_N_t <= ticks),
        lambda r: r.count_N > ticks,
    )
    return term(rng.choice(conditions))


def _limit(rng: random.Random, variables: tuple[str, ...]) -> Limit:
    if not variables or rng.random() < 0.4:
        return within(rng.choice((0, 1, 2, 4, 5)))
    ends = [Point(rng.choice((None, *variables)), rng.choice(("first", "last"))) for _ in range(2)]
    return Limit(ends[0], ends[1], rng.choice((-3, -1, 0, 1, 2, 4)))
