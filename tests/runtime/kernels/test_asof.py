"""Where instants stand among the rows of their partitions, against looking at every row."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.runtime.kernels.asof import places


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("later", [False, True])
def test_the_first_row_from_an_instant_on(later: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = (0, 3, 1, 0, 9, 2)
    offsets = np.cumsum([0, *sizes])
    time = np.concatenate([np.sort(rng.integers(0, 12, size)) for size in sizes])
    of, at = rng.integers(0, len(sizes), 80), rng.integers(-1, 14, 80)
    for p, instant, found in zip(of, at, places.first_from(offsets, time, of, at, later), strict=True):
        own = range(offsets[p], offsets[p + 1])
        assert found == next((i for i in own if time[i] > instant - (not later)), offsets[p + 1])
