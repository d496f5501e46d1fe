"""Random patterns over rows by the ten thousand, against a search by sorted starts in numpy.

Conditions of one situation change often, of another seldom, so that ranges of candidates lie near each other or far
apart: the search by ranges looks for where one begins place by place, then in steps that double.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import tidegate as tg
from tests.properties import large
from tidegate.runtime.arrays import BoolArray, Int64Array

#: How often a condition changes, by event of its key.
CHANGES = (1 / 200, 1 / 20, 1 / 3)
#: How many events of its key a match lasts at most; and matches at most, about.
LASTING, MATCHES = (1000, 240, 60, 15), 100_000
NAMES = ("one", "two", "three")
#: By relation, whether it holds of starts and ends.
HOLDS: dict[str, Callable[[Int64Array, Int64Array, Int64Array, Int64Array], BoolArray]] = {
    "before": lambda ts, te, other_ts, other_te: te < other_ts,
    "after": lambda ts, te, other_ts, other_te: other_te < ts,
    "overlaps": lambda ts, te, other_ts, other_te: (ts < other_ts) & (other_ts < te) & (te < other_te),
    "contains": lambda ts, te, other_ts, other_te: (ts < other_ts) & (other_te < te),
}


def random_pattern(seed: int) -> large.Large:
    """A pattern of two or three situations; each is related to the one before it."""
    rng = random.Random(f"large pattern {seed}")
    roles, keys, size = rng.choice((2, 2, 3)), rng.choice((1, 30, 300)), rng.choice(large.SIZES)
    changes = [rng.choice(CHANGES) for _ in range(roles)]
    lasting = next((one for one in LASTING if _matches(size, changes, one) < MATCHES), LASTING[-1])
    relations = [rng.choice(sorted(HOLDS)) for _ in range(roles - 1)]
    numpy = np.random.default_rng(rng.randrange(1 << 30))
    conditions = [f"c{n}" for n in range(roles)]
    drawn: dict[str, Any] = {"k": numpy.integers(0, keys, size), "t": np.arange(size)}
    drawn |= {name: numpy.random(size) < share for name, share in zip(conditions, changes, strict=True)}
    rows = pl.DataFrame(drawn).with_columns(pl.col(conditions).cum_sum().over("k") % 2 == 1)
    cuts = sorted({0, size, *(rng.randrange(1, size) for _ in range(rng.choice((0, 1, 4))))})
    batches = [
        ({"A": rows.slice(low, high - low).sample(fraction=1, shuffle=True, seed=seed)}, high - 1)
        for low, high in itertools.pairwise(cuts)
    ]
    columns = ", ".join(f"{name} boolean" for name in conditions)
    stream = tg.stream("A", f"k bigint, t bigint, {columns}", progress="t")
    named = {NAMES[n]: tg.situation(stream[name]) for n, name in enumerate(conditions)}
    derived = stream.partition_by("k").derive(**named)
    related = [
        getattr(derived[one], relation)(derived[other])
        for (one, other), relation in zip(itertools.pairwise(named), relations, strict=True)
    ]
    made = tg.program(Found=derived.match(*related, within=lasting * keys, emission="final"))
    told = f"{size} rows, {keys} keys, changes {changes}, {relations} within {lasting} events, cuts {cuts}"
    expected = matches(rows, conditions, relations, lasting * keys)
    return large.Large(made, batches, rng.choice(("amortised", "exact", "off")), told, expected)


def _matches(size: int, changes: list[float], lasting: int) -> float:
    """How many there are about: of each first situation, as many of each other one as begin within the window."""
    first, *others = (change / 2 for change in changes)
    return size * first * math.prod(max(1, lasting * other) for other in others)


def matches(rows: pl.DataFrame, conditions: list[str], relations: list[str], within: int) -> pl.DataFrame:
    """Keys, starts and ends of all matches of situations that are over."""
    first, *others = (situations(rows, name) for name in conditions)
    key, ends = first[0], [first[1:]]
    for (own_key, ts, te), relation in zip(others, relations, strict=True):
        # A match lies within its window: so does where the next situation of it starts.
        last_ts, last_te = ends[-1]
        places = _places(own_key, ts)
        low, high = (np.searchsorted(places, _places(key, at)) for at in (last_te - within, last_ts + within + 1))
        counts = np.maximum(high - low, 0)
        of = np.repeat(np.arange(len(key)), counts)
        found = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
        ends = [(s[of], e[of]) for s, e in ends] + [(ts[found], te[found])]
        fits = HOLDS[relation](*ends[-2], *ends[-1])
        fits &= np.max([e for _, e in ends], axis=0) - np.min([s for s, _ in ends], axis=0) <= within
        key, ends = key[of][fits], [(s[fits], e[fits]) for s, e in ends]
    pairs = zip(NAMES, ends, strict=False)
    named = {f"{name}.{side}": end for name, pair in pairs for side, end in zip(("ts", "te"), pair, strict=True)}
    return pl.DataFrame({"k": key, **named, "detected": np.max([e for _, e in ends], axis=0)})


def situations(rows: pl.DataFrame, condition: str) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Key, start and end of each run of events at which a condition holds, in order."""
    changes = rows.sort("k", "t").filter((pl.col(condition) != pl.col(condition).shift(1).over("k")).fill_null(True))
    runs = changes.with_columns(te=pl.col("t").shift(-1).over("k")).filter(
        pl.col(condition) & pl.col("te").is_not_null()
    )
    key, ts, te = (runs[name].to_numpy() for name in ("k", "t", "te"))
    return key, ts, te


def _places(key: Int64Array, instant: Int64Array) -> Int64Array:
    """Numbers that are ordered as keys and their instants, of which some lie before 0."""
    return key * (1 << 32) + np.clip(instant, -1, (1 << 31) - 1)
