"""Where blocks of panes end: by keys, so that an increment has those of few partitions."""

from __future__ import annotations

import datetime as dt
import statistics
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.windows.partial_panes import PartialPanes
from tidegate.runtime.ordered.windows.phases import phases

NAN = float("nan")
KEYS: list[tuple[list[Any], pl.DataType]] = [
    ([0, 1, -1, None], pl.Int64()),
    (["", "a", "ab", "ba", "é", None], pl.String()),
    ([0.5, NAN, float("inf"), None], pl.Float64()),
    ([True, False, None], pl.Boolean()),
    ([dt.date(2020, 1, 1), None], pl.Date()),
    ([dt.datetime(2020, 1, 1), None], pl.Datetime("us")),
    ([dt.timedelta(1), None], pl.Duration("us")),
    ([Decimal("1.50"), None], pl.Decimal(10, 2)),
]


@pytest.mark.parametrize(
    ("values", "type_"), KEYS, ids=lambda given: str(given) if isinstance(given, pl.DataType) else ""
)
def test_keys_that_differ_have_phases_that_differ(values: list[Any], type_: pl.DataType) -> None:
    """Wherever in a column they stand, and whatever else is there."""
    column = pl.Series("k", values, type_)
    found = phases(column.to_frame(), 1 << 40)
    assert len(set(found.tolist())) == len(values)
    assert (found >= 0).all()
    again = pl.concat([column.reverse(), column]).slice(1, 2 * len(values) - 1)
    assert phases(again.to_frame(), 1 << 40).tolist() == [*found[::-1][1:].tolist(), *found.tolist()]
    assert set(phases(column.to_frame(), 1).tolist()) == {0}


def test_phases_stay_what_they_are() -> None:
    """What is stored depends on them."""
    keys = pl.DataFrame({"k": [1, 2, None], "s": ["ada", "", "bob"], "x": [0.5, NAN, None]})
    assert phases(keys, 1 << 30).tolist() == [1042036948, 832755599, 443008910]
    assert phases(pl.DataFrame({"": [0]}), 60).tolist() == [55]


def test_phases_are_spread() -> None:
    for keys in (pl.int_range(6000, eager=True), pl.Series([f"user-{n}" for n in range(6000)])):
        counts = np.bincount(phases(keys.to_frame(), 60), minlength=60)
        assert 50 <= counts.min() <= counts.max() <= 160


def test_an_increment_has_the_ends_of_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many panes as others have, or some more."""
    read: list[int] = []
    whole = PartialPanes.remainders

    def counted(panes: PartialPanes, rows: pl.DataFrame, some: BoolArray, phase: Int64Array) -> pl.DataFrame:
        read[-1] += int(some.sum())
        return whole(panes, rows, some, phase)

    monkeypatch.setattr(PartialPanes, "remainders", counted)
    stream = tg.stream("E", "k string, t bigint, v bigint", progress="t")
    windows = stream.windows(tg.hopping(20, every=1), by="k").agg(most=tg.max(stream.v))
    with tg.program(W=windows).session() as session:
        for t in range(80):
            read.append(0)
            session.push("E", [(f"key {n}", t, n) for n in range(200)])
            session.advance("E", t)
            session.step()
    settled = read[25:]
    assert max(settled) <= 2.5 * statistics.median(settled)
    assert statistics.mean(settled) == pytest.approx(200, rel=0.1)
