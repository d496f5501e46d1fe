"""Run-length encoding of events against doing it one event after the other, and conditions as bits against each by
itself.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidegate.runtime.kernels import event_runs
from tidegate.runtime.kernels.event_runs import mark

Event = tuple[int, int, int]


def joined(events: list[Event], low: int, high: int) -> set[tuple[int, int, int, int]]:
    """Partition, time, until and conditions of every event run."""
    found: list[list[int]] = []
    newest: dict[int, list[int]] = {}
    for partition, time, holds in sorted(events):
        before = newest.get(partition)
        if before is not None and low <= before[2] and time <= high and before[3] == holds:
            before[2] = time
        else:
            newest[partition] = [partition, time, time, holds]
            found.append(newest[partition])
    return {(partition, time, until, holds) for partition, time, until, holds in found}


def bitmaps(rng: random.Random, holds: list[int], conditions: int) -> list[tuple[np.ndarray, int]]:
    """As Arrow has them: each beside some bits that are not its own."""
    found = []
    for bit in range(conditions):
        offset = rng.randrange(20)
        bits = [rng.random() < 0.5 for _ in range(offset)] + [bool(one >> bit & 1) for one in holds]
        found.append((np.packbits(np.array(bits, dtype=np.bool_), bitorder="little"), offset))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_event_runs_are_those_of_one_event_after_the_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(event_runs, "BLOCK", rng.choice((8, 16, 64)))
    for _ in range(40):
        many, length, conditions = rng.randint(1, 4), rng.randint(0, 30), rng.choice((1, 2, 9))
        places = rng.sample([(partition, time) for partition in range(many) for time in range(30)], length)
        kinds = [rng.getrandbits(conditions) for _ in range(2)]
        events = [(*place, rng.choice(kinds)) for place in places]
        if rng.random() < 0.7:
            events.sort(key=lambda event: event[1])
        low, high = sorted((rng.randint(-5, 35), rng.randint(-5, 35)))
        partition, time, holds = (
            np.array(column, dtype=np.int64) for column in zip(*(events or [(0, 0, 0)]), strict=True)
        )
        partitions, time = partition[:length].astype(np.int32), time[:length]
        marks = bitmaps(rng, holds[:length].tolist(), conditions)
        found = event_runs.encode(event_runs.EventArrays(partitions, time), length, marks, low, high)
        assert found is not None
        assert (partitions[found.row] == found.partition).all()
        assert (time[found.row] == found.time).all()
        rows = zip(found.partition, found.time, found.until, found.holds, strict=True)
        told = [tuple(int(value) for value in row) for row in rows]
        assert set(told) == joined(events, low, high)
        assert len(told) == len(set(told))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_two_events_of_a_partition_at_one_instant_are_reported(order: list[int]) -> None:
    partition, time = np.array([0, 1, 0], dtype=np.int32)[order], np.array([5, 5, 5])[order]
    everything = [(np.packbits([1, 1, 1], bitorder="little"), 0)]
    assert event_runs.encode(event_runs.EventArrays(partition, time), 3, everything, 0, 9) is None
    apart = np.arange(3, dtype=np.int32)
    assert event_runs.encode(event_runs.EventArrays(apart, time), 3, everything, 0, 9) is not None


@pytest.mark.parametrize("conditions", [0, 1, 7, 8, 9, 16, 63, 64])
def test_bits_are_those_of_each_condition(conditions: int) -> None:
    rng = random.Random(conditions)
    for events in (0, 1, 7, 8, 9, 100):
        holds = [rng.getrandbits(conditions) if conditions else 0 for _ in range(events)]
        assert mark(bitmaps(rng, holds, conditions), events).tolist() == holds


def test_partitions_without_events_have_no_part_in_what_is_found() -> None:
    """Every event is an event run of its own here, and partitions 0, 2 and 4 have none."""
    partition, time = np.array([1, 3, 1, 3], dtype=np.int32), np.array([1, 2, 3, 4])
    marks = [(np.packbits([1, 0, 0, 1], bitorder="little"), 0)]
    for more in (0, 1):
        events = event_runs.EventArrays(partition + more, time)
        found = event_runs.encode(events, 4, marks, -9, 9)
        assert found is not None
        assert found.until.tolist() == found.time.tolist() == [1, 2, 3, 4]
    apart = event_runs.encode(event_runs.EventArrays(np.array([5], dtype=np.int32), np.array([7])), 1, marks, -9, 9)
    assert apart is not None
    assert apart.until.tolist() == [7]
