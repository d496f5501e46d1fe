"""Random interval sequences: lists of restrictions of up to five intervals, kinds used twice, windows, and intervals
with equal ends.
"""

from __future__ import annotations

import random

import tidegate as tg
from tests.strategies.programs import Case, Row

_SIGNS = ("<", "<", "<", "<=", "=", ">")
_DISTANCES = ("", "", "", "", " + 1", " + 2", " - 1", " - 3")


def random_interval_sequence_case(seed: int, *, begins: bool = False) -> Case:
    """The case of a seed, whose intervals tell when they begin if so asked. Lists that contradict themselves are not
    valid: ask the analysis.
    """
    rng = random.Random(f"interval sequence {seed}")
    points = rng.random() < 0.15
    names = rng.sample("ABCD", rng.randint(2, 4))
    used, roles = list(names), list(names)
    if rng.random() < 0.3:
        used.append(f"{names[0]} AS {names[0]}2")
        roles.append(f"{names[0]}2")
    window = rng.choice((1, 3, 5, 8, 12, 18))
    text = f"EVENT ISEQ [{' AND '.join(_restrictions(rng, roles))}] ({', '.join(used)}; {window})"
    return _case(seed, text, names, _rows(rng, names, points=points), points=points, begins=begins)


def long_interval_sequence_case(seed: int, length: int, *, begins: bool = True) -> Case:
    """A chain of one end of each of many kinds, and intervals of which most come in its order: so there are beginnings
    of combinations of all lengths, of which few are completed.
    """
    rng = random.Random(f"long interval sequence {seed} {length}")
    names = [chr(ord("A") + number) for number in range(length)]
    chain = " < ".join(f"{name}.{rng.choice(('ts', 'te'))}" for name in names)
    text = f"EVENT ISEQ [{chain}] ({', '.join(names)}; {3 * length})"
    found: list[Row] = []
    for first in range(0, 4 * length, 2 * length):
        for place, name in enumerate(names):
            for _ in range(rng.choice((0, 1, 1, 1, 2))):
                start = first + 2 * place + rng.randint(-1, 2)
                found.append({"kind": name, "a": start, "z": start + rng.randint(1, 5)})
    rows = tuple(dict(items) for items in dict.fromkeys(tuple(row.items()) for row in found))
    return _case(seed, text, names, rows, points=False, begins=begins)


def mixed_interval_sequence_case(seed: int) -> Case:
    """A sequence of derived intervals, and of given ones which may never get a partner: conditions hold for long, or
    hardly ever. All of them are of the one of two keys.
    """
    rng = random.Random(f"mixed interval sequence {seed}")
    derived, given = rng.sample("AB", rng.randint(1, 2)), rng.sample("CD", rng.randint(1, 2))
    roles, used = [*derived, *given], [*derived, *given]
    if rng.random() < 0.3:
        again = rng.choice(roles)
        used.append(f"{again} AS {again}2")
        roles.append(f"{again}2")
    window = rng.choice((5, 8, 12, 18, 40))
    text = f"EVENT ISEQ [{' AND '.join(_restrictions(rng, roles))}] ({', '.join(used)}; {window})"
    events = tg.stream("S", "k bigint, t bigint, a boolean, b boolean", progress="t")
    on = events.partition_by("k").derive(
        A=tg.situation(events.a), B=tg.situation(events.b, at_least=rng.choice((1, 3)))
    )
    rows = tg.stream("E", "k bigint, kind string, a bigint, z bigint", progress="z", relations=lambda e: e.a < e.z)
    intervals = {
        name: rows.where(rows.kind == name).select("k", "a", "z").as_intervals(start="a", end="z", by="k", name=name)
        for name in given
    }
    program = tg.program(R=tg.read_query(text, {"A": on.A, "B": on.B, **intervals})).definition
    often, span = rng.choice((0.1, 0.4, 0.8)), rng.choice((12, 20))
    found: list[Row] = [
        {"k": key, "t": t, "a": rng.random() < often, "b": rng.random() < often}
        for key in (1, 2)
        for t in range(span)
        if rng.random() < 0.6
    ]
    ended = [{"k": rng.choice((1, 1, 2, 3)), **row} for row in _rows(rng, given, points=False)]
    return Case(seed, program, {"S": tuple(found), "E": tuple(ended)})


def _case(seed: int, text: str, names: list[str], found: tuple[Row, ...], *, points: bool, begins: bool) -> Case:
    """The case of a sequence of these kinds of intervals, which are rows of one stream."""
    rows = tg.stream(
        "E",
        "id bigint, kind string, a bigint, z bigint" if begins else "kind string, a bigint, z bigint",
        progress="z",
        relations=lambda e: e.a <= e.z if points else e.a < e.z,
        begins=tg.Begins(id="id", start="a", end="z") if begins else None,
    )
    given = {
        name: rows.where(rows.kind == name).select("a", "z").as_intervals(start="a", end="z", name=name, points=points)
        for name in names
    }
    program = tg.program(R=tg.read_query(text, given)).definition
    if begins:
        found = tuple({"id": number, **row} for number, row in enumerate(found))
    return Case(seed, program, {"E": found})


def _restrictions(rng: random.Random, roles: list[str]) -> list[str]:
    """Of half of them a chain of ends, which indices are for; the others anything."""
    ends = [f"{role}.{end}" for role in roles for end in ("ts", "te")]
    if rng.random() < 0.5:
        chain = [f"{role}.{rng.choice(('ts', 'te', 'te'))}" for role in rng.sample(roles, rng.randint(2, len(roles)))]
        return [" < ".join(chain)]
    return [_restriction(rng, roles, ends) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]


def _restriction(rng: random.Random, roles: list[str], ends: list[str]) -> str:
    """Mostly of two intervals; of one it says how long it lasts."""
    if rng.random() < 0.15:
        role = rng.choice(roles)
        return f"{role}.te - {role}.ts {rng.choice(('<=', '<', '>', '='))} {rng.randint(1, 5)}"
    first, second = rng.sample(roles, 2)
    left, right = (rng.choice([end for end in ends if end[:-3] == role]) for role in (first, second))
    return f"{left} {rng.choice(_SIGNS)} {right}{rng.choice(_DISTANCES)}"


def _rows(rng: random.Random, names: list[str], *, points: bool) -> tuple[Row, ...]:
    """Intervals in a short time, so that many ends are equal."""
    span, longest = rng.choice((6, 12, 20)), rng.choice((2, 5, 9))
    found: list[Row] = []
    for _ in range(rng.choice((4, 8, 14))):
        start = rng.randint(0, span)
        found.append({"kind": rng.choice(names), "a": start, "z": start + rng.randint(0 if points else 1, longest)})
    return tuple(dict(items) for items in dict.fromkeys(tuple(row.items()) for row in found))
