"""Aggregates over runs against folds of their events."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from tests.runtime.kernels.driver import batches, columns, random_events
from tests.runtime.kernels.reference import situations
from tidegate.runtime.kernels.accumulate import (
    Bools,
    Doubles,
    Fold,
    Instants,
    Ints,
    accumulate_doubles,
    accumulate_ints,
)
from tidegate.runtime.kernels.situations import NEVER, Runs, Status, derive

Value = int | float | None
NO_INSTANTS = Instants(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def folded(fold: Fold, values: Sequence[Value]) -> Value:
    known = [value for value in values if value is not None]
    if not known:
        return None
    match fold:
        case Fold.SUM:
            return math.fsum(known) if isinstance(known[0], float) else sum(known)
        case Fold.LEAST:
            return min(known)
        case Fold.GREATEST:
            return max(known)
        case Fold.FIRST:
            return known[0]
        case Fold.LAST:
            return known[-1]


def same(one: Value, other: Value) -> bool:
    return one is other if one is None or other is None else math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)


@dataclass
class States:
    """The states of one aggregate by number of the run, as a caller keeps them."""

    fold: Fold
    doubles: bool

    def __post_init__(self) -> None:
        self.ints, self.high, self.low = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        self.seen = np.zeros(0, dtype=np.bool_)

    def carry(self, numbers: Ints) -> None:
        self.ints, self.high, self.low = self.ints[numbers], self.high[numbers], self.low[numbers]
        self.seen = self.seen[numbers]

    def extend(self, numbers: int) -> None:
        for array in (self.ints, self.high, self.low, self.seen):
            array.resize(numbers, refcheck=False)

    def advance(self, run: Ints, time: Ints, values: Sequence[Value], at: Instants) -> list[Value]:
        valid = np.array([value is not None for value in values], dtype=np.bool_)
        given = np.array([value or 0 for value in values])
        if self.doubles:
            high, low, seen = accumulate_doubles(
                self.fold, run, time, given.astype(np.float64), valid, self.high, self.low, self.seen, at
            )
            return self._values(high, low, seen)
        ints, seen = accumulate_ints(self.fold, run, time, given.astype(np.int64), valid, self.ints, self.seen, at)
        return [int(value) if there else None for value, there in zip(ints, seen, strict=True)]

    def values(self) -> list[Value]:
        if self.doubles:
            return self._values(self.high, self.low, self.seen)
        return [int(value) if there else None for value, there in zip(self.ints, self.seen, strict=True)]

    def _values(self, high: Doubles, low: Doubles, seen: Bools) -> list[Value]:
        exact = high + low if self.fold is Fold.SUM else high
        return [float(value) if there else None for value, there in zip(exact, seen, strict=True)]


def renumber(runs: Runs) -> Ints:
    """Numbers the open runs from 0 on; the numbers that they had, to carry what is known of them."""
    slots, symbols = np.nonzero(runs.start != NEVER)
    before = runs.number[slots, symbols]
    runs.number[slots, symbols] = np.arange(len(slots))
    return before


def random_value(rng: random.Random, doubles: bool) -> Value:
    value: int | None = rng.choice([None, *range(-3, 4)])
    return value * 0.1 if doubles and value is not None else value


@pytest.mark.parametrize("doubles", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_aggregates_cover_the_events_of_a_run_up_to_any_instant(seed: int, doubles: bool) -> None:
    """The state of every run after each batch, and at random instants of the batch, in any batches."""
    rng = random.Random(seed)
    asked = 0
    for _ in range(60):
        slots, conditions, length = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 25)
        events = random_events(rng, slots, length, conditions)
        values = {(event.slot, event.time): random_value(rng, doubles) for event in events}
        condition = rng.randrange(conditions)
        members = {(s.slot, s.start): s.events for s in situations(events, conditions) if s.condition == condition}
        runs, states = Runs.empty(slots, conditions), States(rng.choice(list(Fold)), doubles)
        for after, until, batch in batches(rng, events, length):
            new = columns(batch)
            carried = renumber(runs)
            states.carry(carried)
            status, closed, member, numbers = derive(
                new.slot, new.time, new.holds, runs,
                first_number=len(carried), tracked=np.array([condition], dtype=np.int16),
            )  # fmt: skip
            assert status is Status.DONE
            states.extend(numbers)
            mine = closed.where(closed.symbol == condition)
            began = dict(zip(mine.run.tolist(), zip(mine.slot.tolist(), mine.ts.tolist(), strict=True), strict=True))
            for slot in np.flatnonzero(runs.start[:, condition] != NEVER).tolist():
                began[int(runs.number[slot, condition])] = (slot, int(runs.start[slot, condition]))

            expected = {
                (run, instant): folded(states.fold, [values[own[0], t] for t in members[own] if t <= instant])
                for run, own in began.items()
                for instant in range(after + 1, until + 1)
            }
            asks = sorted(rng.choices(list(expected), k=rng.randrange(8))) if expected else []
            table = np.array(asks, dtype=np.int64).reshape(-1, 2).T.copy()
            column = [values[event.slot, event.time] for event in batch]
            answers = states.advance(member[0], new.time, column, Instants(table[0], table[1]))
            for ask, answer in zip(asks, answers, strict=True):
                assert same(expected[ask], answer)
            after_batch = states.values()
            assert all(same(expected[run, until], after_batch[run]) for run in began)
            asked += len(asks)
    assert asked > 100


def test_doubles_compare_nan_as_the_greatest() -> None:
    run, time = np.zeros(3, dtype=np.int64), np.arange(3)
    values, valid = np.array([math.nan, 1.0, math.nan]), np.ones(3, dtype=np.bool_)
    for fold, expected in ((Fold.LEAST, 1.0), (Fold.GREATEST, math.nan)):
        best, low, seen = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.bool_)
        accumulate_doubles(fold, run, time, values, valid, best, low, seen, NO_INSTANTS)
        assert seen[0]
        assert np.array_equal(best, [expected], equal_nan=True)


def test_sums_of_doubles_keep_what_rounding_loses() -> None:
    values = np.array([1e16, 1.0, -1e16] * 1000)
    rows = len(values)
    total, low, seen = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.bool_)
    run, valid = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    accumulate_doubles(Fold.SUM, run, np.arange(rows), values, valid, total, low, seen, NO_INSTANTS)
    assert total[0] + low[0] == 1000.0
