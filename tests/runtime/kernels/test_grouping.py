"""Groups by a hash table, and what is added to them, against doing it one row after the other."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tidegate.runtime.kernels import grouping
from tidegate.runtime.kernels.grouping import (
    _fill,
    add_doubles,
    add_halves,
    add_ints,
    best_doubles,
    best_ints,
    number_groups,
)

NAN = math.nan


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("cells", [0, 2])
def test_groups_are_numbered_by_first_appearance(
    cells: int, width: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a table with a cell for each combination of keys, or by hashes."""
    monkeypatch.setattr(grouping, "CELLS_PER_ROW", cells)
    rng = np.random.default_rng((width, seed))
    for rows in (0, 1, 2, 300):
        low, high = ((-2, 2), (-(1 << 63), (1 << 63) - 1), (1 << 40, (1 << 40) + 3), (0, 9))[seed]
        agreed(rng.integers(low, high, (width, rows), endpoint=True))


def test_groups_differ_by_any_of_their_keys() -> None:
    agreed(np.array([[1, 1, 1, 2, 1, 1], [5, 6, 5, 5, 5, 5], [9, 9, 8, 9, 9, 8]]))


@pytest.mark.parametrize("seed", range(3))
def test_three_keys_of_small_range_are_looked_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not hashed, with two cells a row and least values anywhere."""
    monkeypatch.setattr(grouping, "_fill", None)
    rng = np.random.default_rng(seed)
    ranges = ((-3, 2), (1 << 40, 5), (-(1 << 63), 12))
    keys = np.stack([rng.integers(least, least + span, 60) for least, span in ranges])
    keys[:, :2] = [[least, least + span - 1] for least, span in ranges]
    agreed(keys)


@pytest.mark.parametrize("seed", range(3))
def test_keys_that_are_multiples_of_a_number_are_looked_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ends of windows are, in order or not: counted from the least one, they are few."""
    monkeypatch.setattr(grouping, "_fill", None)
    rng = np.random.default_rng(seed)
    for least, step, many in ((7, 200_000, 2), (-(1 << 62), 1 << 62, 2), (-5, 6, 9), (3, 1 << 40, 1)):
        ends = least + step * rng.integers(0, many, 60)
        agreed(np.stack([rng.integers(0, 3, 60), ends]))
        agreed(np.stack([np.sort(ends), rng.integers(0, 3, 60)]))
        agreed(ends[np.newaxis])


def test_keys_of_which_one_is_no_multiple_are_hashed() -> None:
    agreed(np.array([[0, 1 << 40, 0, (1 << 40) + 1, 1 << 40, 3 << 40]]))
    agreed(np.array([[-(1 << 63), (1 << 63) - 1, 0, -(1 << 63), -1]]))


def test_keys_with_more_combinations_than_an_integer_holds_are_hashed() -> None:
    """In 64 bits their number would be 0, and so would that of the first two keys."""
    last = (1 << 32) - 1
    agreed(np.array([[0, last, 0, last, 0], [0, 0, last, last, 0], [7, 7, 7, 7, 8]]))


@pytest.mark.parametrize("count", [4095, 4096, 4097, 5000])
def test_more_groups_than_the_table_first_holds(count: int) -> None:
    """The table is twice as large as its groups are many, and grows between two rows; what came before comes again."""
    keys = np.arange(count) * 1_000_003
    agreed(np.concatenate([keys, keys[::-7], [-1]])[np.newaxis])


def test_a_table_is_filled_to_half_of_it() -> None:
    """Fuller, it would take long to find a place."""
    keys = np.array([[5, 6, 5, 7, 8, 6, 9]])
    numbers, firsts = np.empty(7, dtype=np.int64), np.empty(7, dtype=np.int64)
    table, known = np.full(8, -1, dtype=np.int32), np.empty((8, 1), dtype=np.int64)
    assert _fill(keys, 0, 0, table, known, numbers, firsts) == (5, 4)
    assert numbers[:5].tolist() == [0, 1, 0, 2, 3]
    assert (table >= 0).sum() == 4


def agreed(keys: np.ndarray) -> None:
    numbers, firsts = number_groups(list(np.ascontiguousarray(keys, dtype=np.int64)))
    known: dict[tuple[int, ...], int] = {}
    expected = [known.setdefault(tuple(row), len(known)) for row in keys.T.tolist()]
    assert numbers.tolist() == expected
    assert firsts.tolist() == [expected.index(group) for group in range(len(known))]


def rows_of(seed: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """The groups of 60 rows, and which of them have a value."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, groups, 60), rng.random(60) < 0.7


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_integers_go_on_from_what_was_known(seed: int) -> None:
    numbers, valid = rows_of(seed, 40)
    values = np.random.default_rng(seed).integers(-9, 9, 60)
    total, seen = np.arange(40), np.arange(40) % 5 == 0
    add_ints(numbers, values, valid, total, seen)
    own = [values[valid & (numbers == group)] for group in range(40)]
    assert total.tolist() == [group + part.sum() for group, part in enumerate(own)]
    assert seen.tolist() == [group % 5 == 0 or len(part) > 0 for group, part in enumerate(own)]


@pytest.mark.parametrize("seed", range(3))
def test_sums_in_halves_hold_totals_that_no_integer_of_64_bits_does(seed: int) -> None:
    numbers, valid = rows_of(seed, 12)
    values = np.random.default_rng(seed).integers(-(1 << 63), (1 << 63) - 1, 60, endpoint=True)
    values[:2], numbers[:2], valid[:2] = (-(1 << 63), (1 << 63) - 1), 11, True
    high, low = np.arange(12), np.full(12, 7)
    seen = np.arange(12) % 5 == 0
    add_halves(numbers, values, valid, high, low, seen)
    for group in range(12):
        own = values[valid & (numbers == group)].tolist()
        assert (int(high[group]) << 32) + int(low[group]) == (group << 32) + 7 + sum(own)
        assert 0 <= low[group] <= 7 + len(own) * 0xFFFFFFFF
        assert seen[group] == (group % 5 == 0 or bool(own))


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_doubles_lose_nothing_that_two_of_them_can_hold(seed: int) -> None:
    numbers, valid = rows_of(seed, 12)
    rng = np.random.default_rng(seed)
    values = rng.integers(-(1 << 50), 1 << 50, 60) * 2.0 ** rng.integers(-20, 20, 60)
    high, low, seen = np.full(12, 1e16), np.full(12, 0.25), np.zeros(12, dtype=np.bool_)
    add_doubles(numbers, values, valid, high, low, seen)
    for group in range(12):
        own = values[valid & (numbers == group)].tolist()
        assert Fraction(high[group]) + Fraction(low[group]) == sum(map(Fraction, own), Fraction(1e16) + Fraction(0.25))
        assert high[group] + low[group] == high[group], "the sum is rounded in the first of the two"
        assert seen[group] == bool(own)


@pytest.mark.parametrize("greatest", [False, True])
def test_the_best_of_integers_goes_on_from_what_was_known(greatest: bool) -> None:
    numbers, valid = rows_of(7, 30)
    values = np.random.default_rng(7).integers(-9, 9, 60)
    known, best, seen = np.arange(30) % 3 == 0, np.arange(30) % 7 - 3, np.arange(30) % 3 == 0
    expected = [[int(best[group])] if known[group] else [] for group in range(30)]
    for group, value, there in zip(numbers.tolist(), values.tolist(), valid.tolist(), strict=True):
        expected[group] += [value] if there else []
    best_ints(numbers, values, valid, greatest, best, seen)
    choose = max if greatest else min
    assert seen.tolist() == [bool(own) for own in expected]
    assert [value for value, there in zip(best.tolist(), seen, strict=True) if there] == [
        choose(own) for own in expected if own
    ]


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ([1.0, 2.0], 1.0, 2.0),
        ([2.0, 1.0], 1.0, 2.0),
        ([NAN, 1.0], 1.0, NAN),
        ([1.0, NAN], 1.0, NAN),
        ([1.0, NAN, 2.0], 1.0, NAN),
        ([NAN, 2.0, 1.0], 1.0, NAN),
        ([NAN, NAN], NAN, NAN),
        ([-math.inf, NAN, math.inf], -math.inf, NAN),
    ],
)
def test_nan_is_the_greatest_of_doubles(values: list[float], least: float, greatest: float) -> None:
    """Of two groups, with a value that is NULL and would be the best; what stands in `best` before is no value."""
    for wanted, expected, null in ((False, least, -math.inf), (True, greatest, NAN)):
        rows, valid = np.array([*values, null] * 2), np.array([*[True] * len(values), False] * 2)
        numbers = np.repeat([0, 2], len(values) + 1)
        best, seen = np.array([5.0, 5.0, null]), np.zeros(3, dtype=np.bool_)
        best_doubles(numbers, rows, valid, wanted, best, seen)
        assert seen.tolist() == [True, False, True]
        assert best[1] == 5.0
        assert all(np.array_equal(best[group], expected, equal_nan=True) for group in (0, 2))
        best_doubles(np.zeros(1, dtype=np.int64), np.array([3.0]), np.ones(1, dtype=np.bool_), wanted, best, seen)
        again = [value for value in (expected, 3.0) if not math.isnan(value)]
        after = NAN if wanted and math.isnan(expected) else (max if wanted else min)(again)
        assert np.array_equal(best[0], after, equal_nan=True), "a later batch goes on"
