"""Slices of groups between two values, against a look at every pair."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.runtime.kernels.band_join import find_slices, sort_groups


@pytest.mark.parametrize("seed", range(30))
def test_slices_have_the_rows_between_two_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, inner, outer = int(rng.integers(1, 6)), int(rng.integers(0, 40)), int(rng.integers(1, 30))
    extremes = np.array([-(1 << 63), (1 << 63) - 1])
    span = extremes if seed % 5 == 0 else rng.integers(-5, 15, 20)
    values = np.sort(rng.choice(span, inner)) if seed % 2 else rng.choice(span, inner)
    group, valid = rng.integers(-1, groups, inner), rng.random(inner) < 0.9
    rows = sort_groups(group, values, valid, groups)
    assert rows is not None
    assert sorted(rows.order) == sorted(np.flatnonzero(valid & (group >= 0)))
    own, known = rng.integers(-1, groups, outer), rng.random(outer) < 0.9
    low, high = rng.choice(span, outer), rng.choice(span, outer)
    start, stop = find_slices(rows, own, known, low, high)
    for row in range(outer):
        found = set(rows.order[start[row] : stop[row]].tolist())
        between = valid & (group == own[row]) & (values >= low[row]) & (values <= high[row])
        assert found == (set(np.flatnonzero(between).tolist()) if known[row] and own[row] >= 0 else set())


def test_equal_values_keep_the_order_of_rows() -> None:
    rows = sort_groups(np.zeros(4, dtype=np.int64), np.array([3, 1, 3, 1]), np.ones(4, dtype=np.bool_), 1)
    assert rows is not None
    assert rows.order.tolist() == [1, 3, 0, 2]


def test_rows_far_from_their_order_are_left_to_another_way() -> None:
    values = np.arange(1000, 0, -1)
    assert sort_groups(np.zeros(1000, dtype=np.int64), values, np.ones(1000, dtype=np.bool_), 1) is None


@pytest.mark.parametrize("more", [0, 1])
def test_the_last_move_that_is_allowed(more: int) -> None:
    """Sixteen for each of 40 rows; with one more they are left to another way."""
    values = inverted(40, 640 + more)
    found = sort_groups(np.zeros(40, dtype=np.int64), values, np.ones(40, dtype=np.bool_), 1)
    assert (found is None) == bool(more)
    if found is not None:
        assert found.values.tolist() == list(range(40))


def inverted(rows: int, pairs: int) -> np.ndarray:
    """A permutation with so many pairs in the wrong order."""
    left, made = list(range(rows)), []
    for row in range(rows - 1, -1, -1):
        place = min(row, pairs)
        pairs -= place
        made.append(left.pop(place))
    return np.array(made)
