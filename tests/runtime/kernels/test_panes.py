"""Kernels for panes of windows, beside what they say word for word."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.asof.places import first_from
from tidegate.runtime.kernels.partitions.panes import ascend, blocks, ending, places, places_from_end
from tidegate.runtime.ordered.windows.panes import ENDLESS, Panes


def ints(values: list[int]) -> Int64Array:
    return np.array(values, dtype=np.int64)


def drawn(rng: random.Random, many: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Panes by partition and number, and the phases of partitions."""
    rows = sorted({(rng.randrange(4), rng.randint(-9, 9)) for _ in range(rng.randrange(20))})
    phase = [rng.randrange(min(many, 7)) for _ in range(4)]
    return ints([of for of, _ in rows]), ints([pane for _, pane in rows]), ints(phase)


@pytest.mark.parametrize("seed", range(30))
def test_blocks_and_the_places_of_panes_in_them(seed: int) -> None:
    rng = random.Random(seed)
    many = rng.choice((1, 2, 3, 5, ENDLESS))
    of, pane, phase = drawn(rng, many)
    block = blocks(pane, of, phase, many)
    assert block.tolist() == Panes(many, grows=False).block(pane, phase[of]).tolist()
    alike = list(zip(of.tolist(), block.tolist(), strict=True))
    assert places(of, block).tolist() == [alike[:i].count(one) for i, one in enumerate(alike)]
    some = np.array([rng.random() < 0.7 for _ in alike], dtype=np.bool_)
    behind = []
    for i, one in enumerate(alike):
        j = i
        while some[i] and j + 1 < len(alike) and some[j + 1] and alike[j + 1] == one:
            j += 1
        behind.append(j - i)
    assert places_from_end(of, block, some).tolist() == behind


@pytest.mark.parametrize("seed", range(60))
def test_windows_of_which_a_pane_is_the_last_one(seed: int) -> None:
    rng = random.Random(seed)
    many, step = rng.choice((1, 2, 3, 5)), rng.choice((1, 1, 2, 3))
    panes = Panes(many, grows=rng.random() < 0.3, whole=rng.random() < 0.3, step=step, first=rng.randrange(4))
    of, pane, phase = drawn(rng, many)
    phase = np.zeros_like(phase) if panes.grows else phase
    low = ints([rng.randint(-12, 9) for _ in phase])
    high = low + ints([rng.randrange(9) for _ in phase])
    least = many if panes.whole else -ENDLESS
    found = ending(of, pane, low, high, phase, many, panes.reach, least, panes.first, step)
    block = blocks(pane, of, phase, many)
    wanted = []
    for i, (p, number) in enumerate(zip(of.tolist(), pane.tolist(), strict=True)):
        follows = i + 1 < len(of) and of[i + 1] == p
        for window in range(int(low[p]) + 1, int(high[p]) + 1):
            has = number <= window <= panes.last(ints([number]))[0] and not (follows and pane[i + 1] <= window)
            if has and window >= least and panes.are_windows(ints([window]))[0]:
                is_own = blocks(ints([window]), ints([p]), phase, many)[0] == block[i]
                wanted.append((i, window, i if is_own else -1))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == wanted


def test_rows_that_are_not_in_order_are_found() -> None:
    for rows in ([], [(0, 1)], [(0, 1), (0, 1), (1, 0)], [(0, 2), (0, 1)], [(1, 0), (0, 5)], [(0, 0), (1, 0), (0, 9)]):
        assert ascend(ints([of for of, _ in rows]), ints([pane for _, pane in rows])) == (rows == sorted(rows))


@pytest.mark.parametrize("seed", range(30))
def test_instants_are_found_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    times = [sorted(rng.randrange(30) for _ in range(rng.randrange(25))) for _ in range(3)]
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in times])]).astype(np.int64)
    asked = [(rng.randrange(3), rng.randrange(-2, 33)) for _ in range(40)]
    asked = sorted(asked) if rng.random() < 0.5 else asked
    of, at = ints([p for p, _ in asked]), ints([instant for _, instant in asked])
    for later in (False, True):
        found = first_from(offsets, ints([time for some in times for time in some]), of, at, later)
        before = [sum(t < instant or (later and t == instant) for t in times[p]) for p, instant in asked]
        assert found.tolist() == (offsets[of] + before).tolist()
