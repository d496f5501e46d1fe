"""Amounts, shifts, constraints and instants as people read them."""

from __future__ import annotations

from tests.analysis.build import MINUTE, SECOND
from tidegate.algebra.time import INF
from tidegate.algebra.types import BIGINT, TIMESTAMP
from tidegate.analysis.zones.wording import amount, at_most, instant, shifted


def test_amounts_and_shifts() -> None:
    assert amount(5 * MINUTE, TIMESTAMP) == "5m"
    assert amount(5, BIGINT) == "5"
    assert [shifted("t", by, BIGINT) for by in (0, 3, -3)] == ["t", "t + 3", "t - 3"]
    assert shifted("t", -30 * SECOND, TIMESTAMP) == "t - 30s"


def test_a_bound_is_written_as_it_reads_best() -> None:
    """`v - w <= c`; one tick short of a round duration it is strict, of plain numbers only short of nought."""
    for c, text in ((0, "v <= w"), (3, "v <= w + 3"), (-1, "v < w"), (-2, "v + 2 <= w"), (-4, "v + 4 <= w")):
        assert at_most("v", "w", c, BIGINT) == text
    for c, text in (
        (MINUTE, "v <= w + 1m"),
        (MINUTE - 1, "v < w + 1m"),
        (-MINUTE, "v + 1m <= w"),
        (-MINUTE - 1, "v + 1m < w"),
        (0, "v <= w"),
        (-1, "v < w"),
    ):
        assert at_most("v", "w", c, TIMESTAMP) == text


def test_instants() -> None:
    assert [instant(value, BIGINT) for value in (INF, -INF, 7, -7)] == ["∞", "-∞", "7", "-7"]
    assert instant(0, TIMESTAMP).startswith("1970-01-01")
