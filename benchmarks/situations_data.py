"""Events from which situations are derived, as the TPStream papers generate them; the same for the same arguments.

- Boolean attributes at 1 Hz: situations of 10-100 s, gaps of 10-50 s, both uniform, every attribute on its own.
- Cars with speed and acceleration: acceleration, speeding and braking follow each other and often overlap.

Rows are in order of time, keys interleaved; times are seconds from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Span = tuple[int, int]

SITUATION: Span = (10, 100)
GAP: Span = (10, 50)


def booleans(events: int, keys: int, names: Sequence[str] = "abc", *, seed: int = 1) -> pl.DataFrame:
    """Columns key, time and a boolean per name; events // keys seconds."""
    rng = np.random.default_rng(seed)
    seconds = events // keys
    return _keyed(seconds, keys, {name: _flat(attribute(rng, seconds, keys)) for name in names})


def cars(events: int, keys: int, *, seed: int = 1) -> pl.DataFrame:
    """Columns key, time, speed (mph) and accel (m/s2).

    A car speeds (over 70) for 3-40 s and cruises for 20-90 s between. It accelerates hard (over 8) for 3-12 s,
    beginning up to 9 s before it speeds, and brakes hard (under -9) for 2-6 s, beginning up to 4 s before it stops
    speeding.
    """
    rng = np.random.default_rng(seed)
    seconds = events // keys
    changes = _changes(rng, seconds, keys, (3, 40), (20, 90))
    starts, ends = changes[:, 0::2], changes[:, 1::2]
    begun = starts - rng.integers(0, 10, starts.shape)
    braking = np.maximum(ends - rng.integers(0, 5, ends.shape), starts + 1)
    fast = _flat(_covered(starts, ends, seconds))
    hard = _flat(_covered(begun, begun + rng.integers(3, 13, begun.shape), seconds))
    brakes = _flat(_covered(braking, braking + rng.integers(2, 7, braking.shape), seconds))
    noise = rng.random(seconds * keys)
    speed = np.where(fast, 70.5 + 25 * noise, 30 + 40 * noise)
    accel = np.where(brakes, -9.5 - 3 * noise, np.where(hard, 8.5 + 3 * noise, 6 * noise - 3))
    return _keyed(seconds, keys, {"speed": speed, "accel": accel})


def attribute(rng: np.random.Generator, seconds: int, keys: int, situation: Span = SITUATION, gap: Span = GAP) -> Bools:
    """bool[keys, seconds]: an attribute that is true for whole situations, with gaps between them."""
    changes = _changes(rng, seconds, keys, situation, gap)
    return _covered(changes[:, 0::2], changes[:, 1::2], seconds)


def intervals(
    rng: np.random.Generator, seconds: int, situation: Span = SITUATION, gap: Span = GAP
) -> tuple[Ints, Ints]:
    """Starts and ends of the situations of one key, from the same distribution."""
    changes = _changes(rng, seconds, 1, situation, gap)[0]
    starts, ends = changes[0::2], changes[1::2]
    return starts[ends < seconds], ends[ends < seconds]


def _changes(rng: np.random.Generator, seconds: int, keys: int, situation: Span, gap: Span) -> Ints:
    """Where situations start and end, in turn, past the last second; a key's first gap is of any length."""
    cycles = 2 * seconds // (sum(situation) + sum(gap)) + 3
    while True:
        lengths = np.empty((keys, 2 * cycles), dtype=np.int64)
        lengths[:, 0::2] = rng.integers(gap[0], gap[1] + 1, (keys, cycles))
        lengths[:, 1::2] = rng.integers(situation[0], situation[1] + 1, (keys, cycles))
        lengths[:, 0] = rng.integers(0, gap[1] + 1, keys)
        changes: Ints = np.cumsum(lengths, axis=1)
        if seconds <= changes[:, -1].min():
            return changes
        cycles += cycles // 4 + 2


def _covered(starts: Ints, ends: Ints, seconds: int) -> Bools:
    """bool[keys, seconds]: whether a second lies in one of the periods, which do not touch or overlap for a key."""
    turns = np.zeros((len(starts), seconds + 1), dtype=np.int8)
    for places, step in ((starts, 1), (ends, -1)):
        row, column = np.nonzero(places < seconds)
        np.add.at(turns, (row, np.maximum(places[row, column], 0)), step)
    return np.cumsum(turns, axis=1, dtype=np.int8)[:, :-1] > 0


def _flat(table: Any) -> Any:
    """By second, then key."""
    return np.ascontiguousarray(table.T).reshape(-1)


def _keyed(seconds: int, keys: int, columns: dict[str, Any]) -> pl.DataFrame:
    key = np.tile(np.arange(keys, dtype=np.int64), seconds)
    return pl.DataFrame({"key": key, "time": np.repeat(np.arange(seconds, dtype=np.int64), keys), **columns})
