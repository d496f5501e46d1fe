"""Situations against their definition: the longest runs of events for which a condition holds."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from tests.runtime.kernels.driver import batches, columns, random_events
from tests.runtime.kernels.reference import Situation, situations
from tidegate.runtime.kernels.event_runs import NEVER, Status, mark
from tidegate.runtime.kernels.situations import OPEN, ClosedSituations, Runs, derive

Named = tuple[int, int, int, int | None]


def bare(found: Sequence[Situation]) -> Counter[Named]:
    return Counter((s.partition, s.condition, s.start, s.end) for s in found)


def rows(closed: ClosedSituations) -> Counter[Named]:
    parts = (closed.partition, closed.symbol, closed.ts, closed.te)
    return Counter(zip(*(part.tolist() for part in parts), strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_derive_is_the_longest_runs_in_any_batches(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        partitions, conditions, length = rng.randint(1, 4), rng.randint(1, 5), rng.randint(1, 30)
        ties = rng.random() < 0.5
        events = random_events(rng, partitions, length, conditions, ties)
        expected = situations(events, conditions)
        runs = Runs.empty(1, conditions).grown(partitions)
        found = Counter[Named]()
        for _, _, batch in batches(rng, events, length):
            new = columns(batch)
            status, closed, _, _ = derive(new.partition, new.time, new.holds, runs, ties_by_row=ties)
            assert status is Status.DONE
            found += rows(closed)
        assert found == bare([s for s in expected if s.end is not None])
        still = [s for s in expected if s.end is None]
        assert {(s.partition, s.condition): s.start for s in still} == {
            (partition, condition): int(runs.start[partition, condition])
            for partition, condition in itertools.product(range(partitions), range(conditions))
            if runs.start[partition, condition] != NEVER
        }


def test_events_out_of_order_and_ties_are_told_apart() -> None:
    partition, holds = np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.uint64)
    for times, ties_by_row, expected in (
        ([5, 4], False, Status.UNSORTED),
        ([5, 4], True, Status.UNSORTED),
        ([5, 5], False, Status.TIE),
        ([5, 5], True, Status.DONE),
        ([5, 6], False, Status.DONE),
    ):
        status, *_ = derive(partition, np.array(times), holds, Runs.empty(1, 1), ties_by_row=ties_by_row)
        assert status is expected, (times, ties_by_row)
    runs = Runs.empty(1, 1)
    derive(partition[:1], np.array([5]), holds[:1], runs)
    assert derive(partition[:1], np.array([5]), holds[:1], runs)[0] is Status.TIE
    assert derive(partition[:1], np.array([4]), holds[:1], runs)[0] is Status.UNSORTED


def test_more_closes_at_once_than_the_output_first_holds() -> None:
    rows, conditions = 5000, 64
    holds = np.where(np.arange(rows) % 2 == 0, np.uint64(OPEN * 2 + 1), np.uint64(0))
    runs = Runs.empty(1, conditions)
    status, closed, _, numbers = derive(np.zeros(rows, dtype=np.int32), np.arange(rows), holds, runs)
    assert status is Status.DONE
    assert len(closed.ts) == numbers == conditions * rows // 2
    expected = itertools.product(range(0, rows, 2), range(conditions))
    assert list(zip(closed.ts.tolist(), closed.symbol.tolist(), strict=True)) == list(expected)
    assert (closed.te == closed.ts + 1).all()


def test_state_that_grows_stays_as_it_is() -> None:
    """Runs keep their starts and numbers, so that what closes later is told by the number that it had."""
    partition, time, holds = np.array([0, 1], dtype=np.int32), np.array([3, 4]), np.array([0b10, 0b11], dtype=np.uint64)
    runs = Runs.empty(2, 2)
    _, _, _, numbers = derive(partition, time, holds, runs, first_number=40)
    assert numbers == 43
    for partitions, room in ((2, 2), (3, 3), (9, 9)):
        larger = runs.grown(partitions)
        assert (len(larger.last) >= room, larger is runs) == (True, partitions == 2)
        for name in ("last", "held", "start", "number"):
            old, new = getattr(runs, name), getattr(larger, name)
            assert (new[:2] == old).all()
            assert (new[2:] == getattr(Runs.empty(len(new) - 2, 2), name)).all()
    _, closed, member, _ = derive(
        np.array([0, 1, 2], dtype=np.int32),
        np.array([9, 9, 9]),
        np.array([0, 0b01, 0b01], dtype=np.uint64),
        runs.grown(3),
        first_number=numbers,
        tracked=np.array([0], dtype=np.int16),
    )
    assert list(
        zip(closed.partition.tolist(), closed.symbol.tolist(), closed.ts.tolist(), closed.run.tolist(), strict=True)
    ) == [
        (0, 1, 3, 40),
        (1, 1, 4, 42),
    ]
    assert member.tolist() == [[-1, 41, 43]]


def test_mark_sets_the_bit_of_a_condition() -> None:
    nowhere = (np.zeros(1, dtype=np.uint8), 0)
    first = (np.packbits([1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 1], bitorder="little"), 7)
    last = (np.packbits([1, 0, 1, 0], bitorder="little"), 0)
    holds = mark([first, *[nowhere] * 62, last], 4)
    assert holds.tolist() == [1 << 63, 1, 1 << 63 | 1, 0]
