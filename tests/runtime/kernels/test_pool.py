"""The pool against a dictionary, and when partitions have to be looked at against their definition."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.cells import NONE, Situations, find_triggers, next_looks, purge
from tidegate.runtime.kernels.pool import SituationPool
from tidegate.runtime.kernels.situations import OPEN

#: Of every definition of a partition its situations: start, end, number of the run.
Kept = list[list[tuple[int, int, int]]]
DEFINITIONS = 3


def laid(partitions: list[Kept]) -> tuple[Situations, Int64Array]:
    flat = [one for kept in partitions for cell in kept for one in cell]
    offsets = np.cumsum([0, *(len(cell) for kept in partitions for cell in kept)])
    ts, te, number = (np.array([one[side] for one in flat], dtype=np.int64) for side in range(3))
    return Situations(DEFINITIONS, offsets, ts, te, np.arange(len(flat))), number


def random_kept(rng: random.Random, most: int) -> Kept:
    return [
        [(rng.randrange(99), rng.randrange(99), rng.randrange(99)) for _ in range(rng.randrange(most + 1))]
        for _ in range(DEFINITIONS)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_what_was_put_last_is_there(seed: int) -> None:
    rng = random.Random(seed)
    pool, known = SituationPool(DEFINITIONS), dict[int, Kept]()
    for _ in range(60):
        pool.grow(rng.randrange(1, 80))
        room = len(pool._count)
        partitions = sorted(rng.sample(range(room), rng.randrange(min(room, 30) + 1)))
        new = [random_kept(rng, rng.choice((0, 2, 40))) for _ in partitions]
        pool.put(np.array(partitions, dtype=np.int64), *laid(new))
        known |= dict(zip(partitions, new, strict=True))
        wanted = sorted(rng.sample(range(room), rng.randrange(room + 1)))
        found, number = pool.take(np.array(wanted, dtype=np.int64))
        empty: Kept = [[] for _ in range(DEFINITIONS)]
        expected, numbers = laid([known.get(partition, empty) for partition in wanted])
        assert found.offsets.tolist() == expected.offsets.tolist()
        assert (found.ts.tolist(), found.te.tolist()) == (expected.ts.tolist(), expected.te.tolist())
        assert number.tolist() == numbers.tolist()
        assert pool.rows == sum(len(cell) for kept in known.values() for cell in kept)


def test_the_pool_does_not_grow_with_what_has_gone() -> None:
    pool, rng = SituationPool(DEFINITIONS, 50), random.Random(1)
    for _ in range(2000):
        partitions = sorted(rng.sample(range(50), 5))
        pool.put(np.array(partitions), *laid([random_kept(rng, 9) for _ in partitions]))
    assert pool.places < 20 * 50 * DEFINITIONS * 9


def test_partitions_that_all_get_empty_leave_no_room_behind() -> None:
    """The pool is packed while nothing new comes."""
    pool, rng = SituationPool(DEFINITIONS, 400), random.Random(2)
    partitions = np.arange(400)
    pool.put(partitions, *laid([random_kept(rng, 20) for _ in partitions]))
    empty: Kept = [[] for _ in range(DEFINITIONS)]
    for _ in range(3):
        pool.put(partitions, *laid([empty for _ in partitions]))
        found, number = pool.take(partitions)
        assert (len(found.ts), len(number), pool.rows) == (0, 0, 0)
        assert not found.offsets.any()
    assert pool.places == 0


@pytest.mark.parametrize("seed", range(40))
def test_partitions_need_no_look_before_they_are_said_to(seed: int) -> None:
    """Until then none has a trigger, nor anything that may go; then one has."""
    rng = random.Random(seed)
    partitions = []
    for _ in range(4):
        kept = []
        for _ in range(DEFINITIONS):
            instants = sorted(rng.sample(range(30), 2 * rng.randrange(4)))
            cell = list(zip(instants[::2], instants[1::2], strict=True))
            if cell and rng.random() < 0.4:
                cell[-1] = cell[-1][0], OPEN
            kept.append([(ts, te, 0) for ts, te in cell])
        partitions.append(kept)
    situations, _ = laid(partitions)
    starts, ends = (
        tuple(np.array([0, *rng.sample(range(1, 9), rng.randrange(3))]) for _ in range(DEFINITIONS)) for _ in range(2)
    )
    within = rng.choice((NONE, rng.randrange(1, 15)))
    horizons = np.array([rng.choice((NONE, -5, rng.randrange(12))) for _ in range(DEFINITIONS)])
    until = rng.randrange(30)
    situations = without_what_is_gone(situations, within, horizons, until)
    looks = next_looks(situations, starts, ends, within, horizons, until)
    seen = [NONE] * len(partitions)
    for low, high in pairwise(range(until, 100)):
        triggered = set(find_triggers(situations, starts, ends, low, high).partition.tolist())
        left = [purge(situations, within, horizons, limit).offsets[::DEFINITIONS] for limit in (low, high)]
        for partition in range(len(partitions)):
            goes = np.diff(left[0])[partition] != np.diff(left[1])[partition]
            if seen[partition] == NONE and (partition in triggered or goes):
                seen[partition] = high
    assert looks.tolist() == seen
    useful = np.array([rng.random() < 0.6 for _ in situations.te], dtype=np.bool_)
    some = next_looks(situations, starts, ends, within, horizons, until, useful)
    assert some.tolist() == next_looks(situations.where(useful), starts, ends, within, horizons, until).tolist()


def without_what_is_gone(situations: Situations, within: int, horizons: Int64Array, until: int) -> Situations:
    kept = set(purge(situations, within, horizons, until).origin.tolist())
    stay = [place for place, te in enumerate(situations.te.tolist()) if te == OPEN or place in kept]
    counts = np.add.reduceat(np.isin(np.arange(len(situations.te) + 1), stay), situations.offsets[:-1])
    counts[np.diff(situations.offsets) == 0] = 0
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Situations(DEFINITIONS, offsets, situations.ts[stay], situations.te[stay], np.arange(len(stay)))
