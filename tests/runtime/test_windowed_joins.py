"""The joins of two streams by windows of time and of rows: Definitions 2.12 and 2.13 of the thesis."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

import tidegate as tg

Event = tuple[int, int]
#: The rows of a stream that are in its window at an instant.
Active = Callable[[list[Event], int], list[Event]]

LEFT = tg.stream("L", "t bigint, v bigint", progress="t")
RIGHT = tg.stream("R", "t bigint, w bigint", progress="t")


def by_definition(left: list[Event], right: list[Event], left_window: Active, right_window: Active) -> list[Event]:
    """Pairs of values (v, w) with v <= w: each event with the other stream's window at its own instant."""
    of_left = [(v, w) for t, v in left for _, w in right_window(right, t)]
    of_right = [(v, w) for t, w in right for _, v in left_window(left, t)]
    return sorted((v, w) for v, w in of_left + of_right if v <= w)


def last_rows(size: int) -> Active:
    return lambda events, at: [event for event in events if event[0] <= at][-size:]


def last_ticks(size: int) -> Active:
    return lambda events, at: [event for event in events if at - size < event[0] <= at]


def joined_by_rows(size: int) -> tg.Relation:
    """The last row of each of as many streams as the window has rows, which together are the window."""

    def parts(relation: tg.Relation) -> list[tg.Relation]:
        numbered = relation.over(order="t", number=tg.row_number())
        return [numbered.where(numbered.number % size == part) for part in range(size)]

    both = [
        pair
        for of, other in ((LEFT, RIGHT), (RIGHT, LEFT))
        for part in parts(other)
        for pair in [of.as_("a").asof_join(part.as_("b"), left_on="a.t", right_on="b.t", how="inner")]
    ]
    found = both[0].select("a.t", "v", "w").union(*(pair.select("a.t", "v", "w") for pair in both[1:]))
    return found.where(found.v <= found.w)


def joined_by_time(size: int) -> tg.Relation:
    """Of each pair the later instant; a pair of one instant is there twice, once for each of its events."""
    left, right = LEFT.as_("l"), RIGHT.as_("r")
    after = left.join(right, (right.t <= left.t) & (left.t < right.t + size)).select("v", "w", t=left.t)
    before = left.join(right, (left.t <= right.t) & (right.t < left.t + size)).select("v", "w", t=right.t)
    found = after.union(before)
    return found.where(found.v <= found.w)


def events(rng: random.Random) -> list[Event]:
    return [(t, rng.randrange(8)) for t in sorted(rng.sample(range(24), rng.randrange(10)))]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("size", [1, 3])
def test_windowed_joins_are_as_defined(size: int, seed: int) -> None:
    rng = random.Random(f"windowed {size} {seed}")
    left, right = events(rng), events(rng)
    program = tg.program(Rows=joined_by_rows(size), Ticks=joined_by_time(size))
    found: dict[str, list[Event]] = {"Rows": [], "Ticks": []}
    with program.session() as session:
        for begin, end in pairwise((-1, *sorted(rng.sample(range(24), 3)), 24)):
            for stream, rows in (("L", left), ("R", right)):
                new = [row for row in rows if begin < row[0] <= end]
                session.push(stream, rng.sample(new, len(new)))
                session.advance(stream, end)
            session.step()
        found = {name: sorted((row["v"], row["w"]) for row in session.results(name)) for name in found}
    assert found["Rows"] == by_definition(left, right, last_rows(size), last_rows(size))
    assert found["Ticks"] == by_definition(left, right, last_ticks(size), last_ticks(size))
