"""Conditions of the analysis by NumPy, as by Polars; and over whole frames: what extremes show holds for every row."""

from __future__ import annotations

import random
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Call, Lit, Term
from tidegate.algebra.types import BIGINT, BOOLEAN
from tidegate.runtime.eval import filters
from tidegate.runtime.eval.filters import holding, holds_throughout, kept, mask_of, some_of, where
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.rows import SmallRows, Unsupported

SCHEMA = Schema((Attribute("a", BIGINT), Attribute("b", BIGINT)))


def number(rng: random.Random) -> Term:
    if rng.random() < 0.4:
        return Lit(rng.randint(-6, 6), BIGINT)
    attribute = Attr(rng.choice("ab"))
    return Call("add", (attribute, Lit(rng.randint(-6, 6), BIGINT))) if rng.random() < 0.5 else attribute


def condition(rng: random.Random, depth: int = 2) -> Term:
    if depth and rng.random() < 0.5:
        parts = tuple(condition(rng, depth - 1) for _ in range(rng.randint(1, 3)))
        return Call(rng.choice(("and", "or")), parts)
    if rng.random() < 0.05:
        return Lit(rng.random() < 0.5, BOOLEAN)
    return Call(rng.choice(("lt", "le", "gt", "ge")), (number(rng), number(rng)))


@pytest.mark.parametrize("seed", range(5))
def test_what_extremes_show_holds_for_every_row(seed: int) -> None:
    rng, shown, whole = random.Random(seed), 0, 0
    for _ in range(300):
        low = rng.randint(-5, 5)
        rows = [(rng.randint(low, low + 3), None if rng.random() < 0.02 else rng.randint(-3, 0)) for _ in range(6)]
        frame = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64}, orient="row")
        term = condition(rng)
        every = frame.with_columns(holds=compile_term(term, SCHEMA).fill_null(value=False))["holds"].all()
        found = holds_throughout(term, frame)
        assert every or not found, term
        shown, whole = shown + found, whole + every
    assert shown > whole / 2 > 20


def test_extremes_of_one_attribute_tell_all_there_is_to_tell() -> None:
    frame = pl.DataFrame({"a": [3, 5, 4], "b": [1, None, 2]}, schema={"a": pl.Int64, "b": pl.Int64})
    for op, limit, holds in (("gt", 2, True), ("gt", 3, False), ("ge", 3, True), ("lt", 5, False), ("le", 5, True)):
        assert holds_throughout(Call(op, (Attr("a"), Lit(limit, BIGINT))), frame) is holds
    assert not holds_throughout(Call("gt", (Attr("b"), Lit(0, BIGINT))), frame)
    low, high = Call("le", (Attr("a"), Lit(5, BIGINT))), Call("gt", (Attr("a"), Lit(5, BIGINT)))
    assert holds_throughout(Call("or", (high, low)), frame)
    assert not holds_throughout(Call("and", (high, low)), frame)
    assert not holds_throughout(Call("gt", (Attr("a"), Lit(0, BIGINT))), frame.clear())


@pytest.mark.parametrize("seed", range(3))
def test_rows_hold_by_numpy_as_by_polars(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        rows = [(rng.randint(-5, 5), rng.randint(-5, 5)) for _ in range(rng.choice((0, 1, 9)))]
        frame = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64}, orient="row")
        term = condition(rng)
        mask = frame.with_columns(holds=compile_term(term, SCHEMA))["holds"]
        assert mask_of(frame, term).tolist() == mask.to_list(), term
        assert holding(SmallRows.of(frame), term).frame().equals(frame.filter(mask)), term


def test_other_conditions_and_other_terms_are_left_to_polars() -> None:
    frame = pl.DataFrame({"a": [1, 2]}, schema={"a": pl.Int64})
    one, two = Attr("a"), Lit(2, BIGINT)
    for other in (
        Call("eq", (one, two)),
        Call("not", (Call("lt", (one, two)),)),
        Call("lt", (Call("mul", (one, two)), two)),
        Call("lt", (one, Lit(None, BIGINT))),
        Call("and", (Call("lt", (one, two)), Call("eq", (one, two)))),
    ):
        with pytest.raises(Unsupported):
            mask_of(frame, other)
    nothing = pl.DataFrame({"a": [1, None]}, schema={"a": pl.Int64})
    with pytest.raises(Unsupported):
        mask_of(nothing, Call("lt", (one, two)))
    with pytest.raises(Unsupported):
        mask_of(frame.with_columns(a=1.5), Call("lt", (one, two)))
    with patch.object(filters, "_MOST", 1), pytest.raises(Unsupported):
        mask_of(frame, Call("lt", (one, two)))
    assert not holds_throughout(Call("eq", (one, one)), frame)
    assert not holds_throughout(Call("lt", (Call("mul", (one, two)), Lit(99, BIGINT))), frame)
    assert not holds_throughout(Call("lt", (Call("add", (one, Attr("b"))), Lit(99, BIGINT))), nothing.with_columns(b=1))
    assert not holds_throughout(Call("lt", (Call("add", (Attr("b"), one)), Lit(99, BIGINT))), nothing.with_columns(b=1))
    assert not holds_throughout(Call("lt", (Attr("c"), Lit(99, BIGINT))), frame.with_columns(c=1.5))


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize(
    ("condition", "wanted", "stand_together"),
    [
        (pl.col("a") < 3, [1, 2], True),
        (pl.col("a") > 2, [3, 4], True),
        (pl.col("a") != 2, [1, 3, 4], False),
        (pl.col("a") < pl.col("b"), [1, 2], True),
        (pl.col("a") < 0, [], False),
        (pl.lit(value=False), [], False),
        (pl.lit(value=True), [1, 2, 3, 4], False),
    ],
)
def test_rows_that_stand_together_are_a_view_where_one_will_do(
    condition: pl.Expr, wanted: list[int], stand_together: bool, view: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"a": [1, 2, 3, 4], "b": [9, 9, None, None]})
    monkeypatch.setattr(filters, "_MANY", 4)
    with patch.object(pl.DataFrame, "slice", autospec=True, side_effect=pl.DataFrame.slice) as sliced:
        assert kept(frame, condition, view=view).get_column("a").to_list() == wanted
    assert sliced.call_count == (view and stand_together)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize(
    "wanted", [[], [3], [0, 1], [4, 5], [1, 3], [0, 1, 2, 3, 4], [0, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
)
def test_the_rows_of_a_mask(wanted: list[int], view: bool) -> None:
    """Few of them, most, all, or none, with a column of text and one with NULLs."""
    frame = pl.DataFrame({"a": range(6), "b": [None, "x", "y", None, "z", "w"]})
    for parts in (frame, pl.concat([frame[:2], frame[2:]])):
        found = where(parts, np.isin(np.arange(6), wanted), view=view)
        assert found.equals(pl.DataFrame({"a": wanted, "b": [frame["b"][n] for n in wanted]}, schema=frame.schema))
        assert (found is parts) == (len(wanted) == 6)
        assert some_of(parts, np.array(wanted, dtype=np.int64)).equals(found)


def test_where_all_rows_stay_none_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"a": [1, 2, 3, 4]})
    assert kept(frame, pl.col("a") > 0) is not frame
    monkeypatch.setattr(filters, "_MANY", 4)
    assert kept(frame, pl.col("a") > 0) is frame
