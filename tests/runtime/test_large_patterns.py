"""Patterns of more situations and alternatives than the analysis can look at case by case: the same matches."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import groupby, pairwise, product

import tidegate as tg
from tidegate.algebra.allen import Allen, relation_of

SITUATIONS, WITHIN = 8, 80
NAMES = [f"S{number}" for number in range(SITUATIONS)]
RELATIONS = {Allen.OVERLAPS, Allen.CONTAINS, Allen.STARTS, Allen.BEFORE}
Row = tuple[int, int, *tuple[bool, ...]]


def random_rows(seed: int) -> list[Row]:
    """Conditions that change now and then, of three keys, in order of time."""
    rng, rows = random.Random(seed), list[Row]()
    for key in range(3):
        holds = [False] * SITUATIONS
        for t in range(200):
            holds = [rng.random() < 0.4 if rng.random() < 0.12 else now for now in holds]
            rows.append((key, t, *holds))
    return sorted(rows, key=lambda row: row[1])


def by_hand(rows: list[Row]) -> set[tuple[int, ...]]:
    """Starts and ends of every match, after its key: all pairs with the first situation, all combinations of these."""
    over: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for key in {row[0] for row in rows}:
        for number in range(SITUATIONS):
            own = [(row[1], row[2 + number]) for row in rows if row[0] == key]
            runs = [(holds, next(run)[0]) for holds, run in groupby(own, key=lambda event: event[1])]
            over[key, number] = [(ts, te) for (holds, ts), (_, te) in pairwise(runs) if holds]
    found = set()
    for key in {row[0] for row in rows}:
        for first in over[key, 0]:
            near = [
                [
                    other
                    for other in over[key, number]
                    if relation_of(*first, *other) in RELATIONS and other[1] <= first[0] + WITHIN
                ]
                for number in range(1, SITUATIONS)
            ]
            found |= {(key, *first, *(instant for other in others for instant in other)) for others in product(*near)}
    return found


def test_matches_of_eight_situations_with_four_alternatives_each() -> None:
    """The first begins before all others, so a match lies within its window."""
    stream = tg.stream("E", "k bigint, t bigint, " + ", ".join(f"c{n} boolean" for n in NAMES), progress="t")
    derived = stream.partition_by("k").derive(**{n: tg.situation(stream[f"c{n}"]) for n in NAMES})
    one, *others = (derived[name] for name in NAMES)
    related = [one.overlaps(b) | one.contains(b) | one.starts(b) | one.before(b) for b in others]
    program = tg.program(Found=derived.match(*related, within=WITHIN, emission="final"))
    rows = random_rows(3)
    with program.session(sources={"E": tg.source(None, delay=0)}) as session:
        for first in range(0, len(rows), 75):
            session.push("E", rows[first : first + 75])
            session.step()
        session.finish()
        session.step()
        found = session.results("Found")
    endpoints = [f"{name}.{end}" for name in NAMES for end in ("ts", "te")]
    expected = by_hand(rows)
    assert 100 < len(expected) < 100_000
    assert len(found) == len(expected)
    assert {(row["k"], *(row[name] for name in endpoints)) for row in found} == expected
