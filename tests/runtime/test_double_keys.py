"""Partitions by doubles: equal ones have one number, NaN too, whatever is known of their order."""

from __future__ import annotations

import random

import polars as pl
import pytest

from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import DOUBLE
from tidegate.runtime.ordered.partitions import Partitions

VALUES = (None, -2.0, -1.0, 0.0, -0.0, 0.5, 3.0, float("nan"))


@pytest.mark.parametrize("seed", range(20))
def test_equal_doubles_have_one_number(seed: int) -> None:
    """Polars' joins find no NaN where both sides are known to be sorted."""
    rng, known = random.Random(seed), dict[object, int]()
    partitions = Partitions.of(Schema((Attribute("y", DOUBLE),)))
    for _ in range(4):
        rows = pl.DataFrame({"y": [rng.choice(VALUES) for _ in range(rng.randrange(9))]}, schema={"y": pl.Float64()})
        rows = rows.sort("y") if rng.random() < 0.7 else rows
        for value, number in zip(rows["y"].to_list(), partitions.assign(rows).tolist(), strict=True):
            assert known.setdefault("NaN" if value != value else value, number) == number
    assert len({*known.values()}) == len(known)


def test_nan_alone_has_a_number() -> None:
    partitions = Partitions.of(Schema((Attribute("y", DOUBLE),)))
    assert partitions.assign(pl.DataFrame({"y": [float("nan")] * 2})).tolist() == [0, 0]
    assert partitions.assign(pl.DataFrame({"y": [float("nan"), 0.0, float("nan")]})).tolist() == [0, 1, 0]
