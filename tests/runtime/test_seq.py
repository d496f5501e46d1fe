"""SEQ of CAESAR as a row pattern: every combination of events at different instants, and none of some strictly
between two.
"""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

import tidegate as tg

Event = tuple[int, int, int, str]
EVENTS: Any = tg.stream("Events", "k bigint, t bigint, n bigint, kind string", progress="t")
WITHIN = 6
#: Nothing ends the only context, so that all events are in it.
TEXT = f"""
MODEL Only BY k CONTEXT always, never DEFAULT always;
SWITCH CONTEXT never PATTERN Events e WHERE e.kind = 'end';
DERIVE Found(a.k, a.n AS a, c.n AS c, c.t) PATTERN SEQ(Events a, NOT Events b, Events c)
WHERE a.kind = 'a' AND b.kind = 'b' AND c.kind = 'c' AND c.t <= a.t + {WITHIN} CONTEXT always
"""


def as_row_pattern() -> tg.Relation:
    found: tg.Relation = EVENTS.sequences(
        "A !B C",
        by="k",
        tie="n",
        matches="any",
        within=WITHIN,
        limits=lambda m: m.C.t - m.A.t >= 1,
        define={
            "A": lambda m: m.A.kind == "a",
            "B": lambda m: (m.B.kind == "b") & (m.B.t > m.A.t) & (m.B.t < m.C.t),
            "C": lambda m: m.C.kind == "c",
        },
        a=lambda m: m.A.n,
        c=lambda m: m.C.n,
    )
    return found


def meant(events: list[Event]) -> list[tuple[int, int, int]]:
    return sorted(
        (k, n, m)
        for (k, begin, n, one), (other, end, m, last) in product(events, events)
        if (k, one, last) == (other, "a", "c")
        and begin < end <= begin + WITHIN
        and not any(kind == "b" and key == k and begin < t < end for key, t, _, kind in events)
    )


@pytest.mark.parametrize("seed", range(6))
def test_it_is_every_combination_of_events_at_different_instants(seed: int) -> None:
    rng = random.Random(seed)
    events = [(rng.randrange(2), rng.randrange(12), n, rng.choice("aabccx")) for n in range(24)]
    expected = meant(events)
    pattern = tg.program(Found=as_row_pattern()).run({"Events": events})["Found"].rows()
    assert sorted((row["k"], row["a"], row["c"]) for row in pattern) == expected
    assert all(row["detected"] == row["last"] for row in pattern)
    text = tg.program(**tg.read_contexts(TEXT, {"Events": EVENTS}).results).run({"Events": events})["Found"].rows()
    assert sorted((row["k"], row["a"], row["c"]) for row in text) == expected
    assert len({(k, t) for k, t, _, _ in events}) < len(events)
