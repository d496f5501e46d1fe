"""Partition numbers against a list of keys."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels import partition_numbers
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.partition_numbers import PartitionNumbers, _hash
from tidegate.runtime.kernels.situations import OPEN


def numbered(keys: Int64Array, known: list[int]) -> list[int]:
    known += [key for key in dict.fromkeys(keys.tolist()) if key not in known]
    return [known.index(key) for key in keys.tolist()]


@pytest.mark.parametrize("small", [partition_numbers._SMALL_RANGE, 8])
@pytest.mark.parametrize("seed", range(6))
def test_partitions_are_numbered_by_first_appearance(seed: int, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ranges and large ones, ranges that grow and jump, and state that is taken up again."""
    monkeypatch.setattr(partition_numbers, "_SMALL_RANGE", small)
    rng = np.random.default_rng(seed)
    for _ in range(40):
        numbers, known = PartitionNumbers(), list[int]()
        low = int(rng.choice([0, -5, 10**15, NEVER, OPEN - 40]))
        for _ in range(int(rng.integers(1, 6))):
            spread = int(rng.choice([3, 40, 10**7, 10**12])) if abs(low) < OPEN // 2 else 40
            keys = low + rng.integers(0, spread, int(rng.integers(0, 60)))
            assert numbers.assign(keys).tolist() == numbered(keys, known)
            assert numbers.keys.tolist() == known
            near = low + rng.integers(-(10**13), 10**13, 5) // int(10 ** rng.integers(14))
            asked = np.concatenate([keys, keys + 1, near])
            places = {key: place for place, key in enumerate(known)}
            assert numbers.find(asked).tolist() == [places.get(key, -1) for key in asked.tolist()]
            assert len(numbers) == len(known)
            if rng.random() < 0.3:
                numbers = PartitionNumbers(numbers.keys)
            if rng.random() < 0.2:
                low = int(rng.integers(-(10**9), 10**9))


@pytest.mark.parametrize("function", ["full", "empty"])
@pytest.mark.parametrize("spread", [1, 1_000_003, 10**12])
def test_keys_are_numbered_after_there_was_no_memory_for_them(spread: int, function: str) -> None:
    """Within a range, in a larger one, and in a hash table."""

    def no_memory(*_: Any, **__: Any) -> Any:
        raise MemoryError

    numbers, keys = PartitionNumbers(), np.arange(10)
    numbers.assign(keys)
    more = np.arange(5000) * spread
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_numbers, "np", SimpleNamespace(**{**vars(np), function: no_memory}))
        with pytest.raises(MemoryError):
            numbers.assign(more, np.empty(len(more), dtype=np.int32))
    known = numbers.keys.tolist()
    assert known[:10] == keys.tolist()
    if numbers._dense is None:
        assert len(numbers._keys) >= len(numbers._table) // 2
    else:
        assert len(numbers._offsets) >= len(numbers._dense)
    assert numbers.assign(more).tolist() == numbered(more, known)
    assert numbers.keys.tolist() == known


def test_a_table_is_filled_to_half_of_it() -> None:
    """Fuller, it would take long to find a place."""
    keys, known = np.array([5, 6, 5, 7, 8, 6, 9]), np.empty(8, dtype=np.int64)
    table, numbers = np.full(8, -1, dtype=np.int32), np.empty(7, dtype=np.int32)
    assert _hash(keys, 0, table, known, 0, numbers) == (5, 4)
    assert numbers[:5].tolist() == [0, 1, 0, 2, 3]
    assert known[:4].tolist() == [5, 6, 7, 8]


def test_numbers_of_many_keys() -> None:
    keys = np.random.default_rng(1).permutation(200_000).astype(np.int64) * 1_000_003
    numbers = PartitionNumbers()
    assert (numbers.assign(keys) == np.arange(len(keys))).all()
    assert (numbers.assign(keys[::-1].copy()) == np.arange(len(keys))[::-1]).all()
    assert len(numbers) == len(keys)


@pytest.mark.parametrize(("spread", "dense"), [(1, True), (14, True), (17, False)])
def test_large_ranges_have_a_table_where_there_are_many_keys(spread: int, dense: bool) -> None:
    """Some more on both sides is in it: keys that creep on need no other table for a while."""
    keys = np.arange(1_000_000) * spread
    numbers = PartitionNumbers(keys)
    assert (numbers.assign(keys[::-1].copy()) == np.arange(len(keys))[::-1]).all()
    assert (numbers._dense is not None) is dense
    if dense:
        before, further = numbers._dense, np.arange(-50_000, 0)
        assert (numbers.assign(further) == len(keys) + np.arange(len(further))).all()
        assert numbers._dense is before
