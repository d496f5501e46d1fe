"""Buckets put integers in the order of a stable sort, or leave them to one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidegate.runtime.kernels.partitions.ordering import ascending
from tidegate.runtime.kernels.partitions.rows import put_in_order, segmented

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_a_stable_sort(seed: int) -> None:
    rng = random.Random(seed)
    low, high = rng.choice(((0, 1), (-3, 3), (5, 5 + (1 << 11)), (-(1 << 22), 1 << 23), (LEAST, GREATEST)))
    ends = rng.choice(((), (low, high), (low, low, high, high)))
    values = [*ends, *(rng.randint(low, high) for _ in range(rng.choice((0, 1, 2, 60))))]
    rng.shuffle(values)
    array = np.array(values, dtype=np.int64)
    meant = sorted(range(len(values)), key=values.__getitem__)
    assert ascending(array).tolist() in (meant, [])
    with np.errstate(over="ignore"):  # as compiled
        assert getattr(ascending, "py_func", ascending)(array).tolist() == ascending(array).tolist()


def test_values_that_are_spread_evenly_are_put_in_order() -> None:
    rng = np.random.default_rng(1)
    for times in (np.arange(5000), rng.integers(-(1 << 60), 1 << 60, 5000), np.arange(5000) // 700, np.zeros(9, int)):
        array = times[np.argsort(np.arange(len(times)) + rng.integers(0, 99, len(times)))]
        assert ascending(array).tolist() == np.argsort(array, kind="stable").tolist()


@pytest.mark.parametrize("disorder", [0, 3, 500])
def test_rows_are_put_in_order_within_their_partitions(disorder: int) -> None:
    """Those of one instant stay as they came; where they are far apart nothing is promised."""
    rng = np.random.default_rng(disorder)
    kept, of = np.sort(rng.integers(0, 5, 20)), rng.integers(0, 7, 400)
    time = np.arange(400) // 3 + rng.integers(0, disorder + 1, 400)
    source, offsets, first = segmented(kept, of, np.arange(400), 7)
    few = put_in_order(offsets, first, source, time, 20)
    assert few == (disorder < 500)
    if few:
        meant = segmented(kept, of, np.argsort(time, kind="stable"), 7)[0]
        assert source.tolist() == meant.tolist()


def test_values_of_which_most_share_a_bucket_are_left() -> None:
    falling = np.append(np.arange(3000)[::-1], 1 << 62)
    assert len(ascending(falling)) == 0
