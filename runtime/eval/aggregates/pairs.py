"""Partial results merged in pairs, and those that run through segments: compiled; of sketches, by such pairs.

A row of NULLs is the partial result of no rows.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import Group
from tidegate.runtime.arrays import BoolArray, Float64Array, Int64Array
from tidegate.runtime.eval.aggregates import sketches
from tidegate.runtime.eval.aggregates.order_keys import order_keys
from tidegate.runtime.eval.columns import without_null
from tidegate.runtime.plan.aggregate_states import State, require_partials, states

_HALF = 2**32


def merged_pairs(group: Group, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Each row of `first` with its partial results merged with those at the same place of `second`."""
    require_partials(group)
    if not first.height:
        return first
    merged = [column for state in states(group) for column in _merged(state, first, second)]
    return first.with_columns(merged)


def running(group: Group, rows: pl.DataFrame, place: Int64Array) -> pl.DataFrame:
    """Each row with the partial results of its segment up to it; `place` is that of a row in its segment, from 0 on."""
    return _run(group, rows, place, back=False)


def remaining(group: Group, rows: pl.DataFrame, place: Int64Array) -> pl.DataFrame:
    """Each row with the partial results of its segment from it on; `place` counts from the segment's end."""
    return _run(group, rows, place, back=True)


def _run(group: Group, rows: pl.DataFrame, place: Int64Array, *, back: bool) -> pl.DataFrame:
    require_partials(group)
    if not place.any():
        return rows
    place = np.ascontiguousarray(place)
    return rows.with_columns(column for state in states(group) for column in _running(state, rows, place, back))


def gathered(rows: pl.DataFrame, at: Int64Array) -> pl.DataFrame:
    """The rows at places, NULLs at negative ones."""
    missing = at < 0
    if not missing.any():
        follow = len(at) > 0 and at[-1] - at[0] == len(at) - 1 and bool((np.diff(at) == 1).all())
        return rows.slice(int(at[0]), len(at)) if follow else rows[at]
    if missing.all():
        return rows.clear(len(at))
    return rows.select(pl.all().gather(pl.Series(at).set(pl.Series(missing), None)))


def _merged(state: State, first: pl.DataFrame, second: pl.DataFrame) -> list[pl.Series]:
    """The columns of a state."""
    own, other = ({part: rows.get_column(state.column(part)) for part, _ in state.parts} for rows in (first, second))
    counted = [_counted(own["n"], other["n"])] if "n" in own else []
    match state.form:
        case Form.COUNT:
            merged = []
        case Form.INTEGER_SUM:
            high, low = (_either(own[part], other[part], own[part] + other[part]) for part in ("hi", "lo"))
            carry = low // _HALF
            merged = [high + carry, low - carry * _HALF]
        case Form.DOUBLE_SUM:
            merged = _double_sum(own, other)
        case Form.LEAST | Form.GREATEST | Form.EARLIEST | Form.LATEST:
            better = _is_better(state, own, other)
            merged = [own[part].zip_with(better, other[part]) for part in own]
        case Form.SKETCH:
            merged = [_sketches(state, own["v"], other["v"])]
        case _:
            raise InternalError("TG901", f"partial results of {state.form.value} do not merge")
    return [column.alias(name) for column, name in zip([*merged, *counted], state.columns, strict=True)]


def _counted(own: pl.Series, other: pl.Series) -> pl.Series:
    return without_null(own, 0) + without_null(other, 0)


def _either(own: pl.Series, other: pl.Series, both: pl.Series) -> pl.Series:
    """What both are together, or the one that is not NULL."""
    return both if not both.null_count() else pl.select(pl.coalesce(both, own, other)).to_series()


def _is_better(state: State, own: dict[str, pl.Series], other: dict[str, pl.Series]) -> pl.Series:
    """Whether the first of two is the better one, or the only one."""
    match state.form:
        case Form.LEAST:
            better = own["v"] <= other["v"]
        case Form.GREATEST:
            better = own["v"] >= other["v"]
        case _:
            sooner = own["by"] < other["by"] if state.form is Form.EARLIEST else own["by"] > other["by"]
            better = sooner | ((own["by"] == other["by"]) & (own["v"] <= other["v"]))
    if better.null_count():
        missing = next(iter(other.values())).is_null()
        better = pl.select(pl.when(better.is_null()).then(missing).otherwise(better)).to_series()
    return better


def _sketches(state: State, first: pl.Series, second: pl.Series) -> pl.Series:
    """The sketches of both, or the one that there is."""
    assert state.sketch is not None
    both = first.is_not_null() & second.is_not_null()
    together = pl.select(pl.concat_list(first.filter(both), second.filter(both))).to_series()
    chosen = pl.select(pl.coalesce(first, second)).to_series().alias("v")
    return chosen.scatter(both.arg_true(), sketches.merged(state.sketch, together))


def _double_sum(own: dict[str, pl.Series], other: dict[str, pl.Series]) -> list[pl.Series]:
    """Sums of doubles, each as what is rounded and what that has lost."""
    from tidegate.runtime.kernels.partitions.running import double_sums

    sums = double_sums(*(_doubles(some[part]) for some in (own, other) for part in ("sum", "comp")))
    if not own["sum"].null_count() or not other["sum"].null_count():
        return [pl.Series(column) for column in sums]
    return [_if((own["sum"].is_not_null() | other["sum"].is_not_null()).to_numpy(), column) for column in sums]


def sum_of_doubles(
    x: Float64Array, lost_x: Float64Array, y: Float64Array, lost_y: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Sums of about 106 bits, as the kernel `double_sums` has them, where no kernel is loaded."""
    with np.errstate(all="ignore"):
        total = x + y
        part = total - x
        lost = (x - (total - part)) + (y - part) + (lost_x + lost_y)
        whole = total + lost
        finite = np.isfinite(whole)
        return np.where(finite, whole, total), np.where(finite, lost - (whole - total), 0.0)


def product_of_doubles(x: Float64Array, y: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Products that are rounded, and what that has lost: each factor in two halves, whose products are exact (Dekker).
    Nothing is lost of a product that is infinite or NaN.
    """
    with np.errstate(all="ignore"):
        # A half of a number near the largest one would be beyond all.
        scale = np.where(np.abs(x) > 2.0**900, 2.0**-100, 1.0)
        x = x * scale
        (a, b), (c, d) = _halves(x), _halves(y)
        total = x * y
        lost = ((a * c - total) + a * d + b * c) + b * d
        total = total / scale
        return total, np.where(np.isfinite(total), lost / scale, 0.0)


def _halves(x: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Two numbers of 26 binary digits whose sum it is."""
    large = x * (2.0**27 + 1)
    high = large - (large - x)
    return high, x - high


def _doubles(column: pl.Series) -> Float64Array:
    return without_null(column, 0.0).to_numpy()


# --- running ---------------------------------------------------------------------------------------------------------


def _running(state: State, rows: pl.DataFrame, place: Int64Array, back: bool) -> list[pl.Series]:
    """The columns of a state."""
    from tidegate.runtime.kernels.partitions.running import (
        running_best,
        running_double_sums,
        running_halves,
        running_sums,
    )

    own = {part: rows.get_column(state.column(part)) for part, _ in state.parts}

    def total(part: pl.Series) -> Int64Array:
        sums: Int64Array = running_sums(without_null(part.cast(pl.Int64), 0).to_numpy(), place, back)
        return sums

    def some(part: pl.Series) -> BoolArray | None:
        return total(part.is_not_null()) > 0 if part.null_count() else None

    match state.form:
        case Form.COUNT:
            columns = []
        case Form.INTEGER_SUM:
            there = some(own["hi"])
            halves = running_halves(*(without_null(own[part], 0).to_numpy() for part in ("hi", "lo")), place, back)
            columns = [_if(there, column) for column in halves]
        case Form.DOUBLE_SUM:
            there = some(own["sum"])
            sums = running_double_sums(_doubles(own["sum"]), _doubles(own["comp"]), place, back)
            columns = [_if(there, column) for column in sums]
        case Form.SKETCH if back:
            columns = [_running_sketches(state, own["v"].reverse(), place[::-1]).reverse()]
        case Form.SKETCH:
            columns = [_running_sketches(state, own["v"], place)]
        case _:
            keys = [order_keys(own[part], type_) for part, type_ in state.parts]
            first = ~keys[0] if state.form in (Form.GREATEST, Form.LATEST) else keys[0]
            best = running_best(first, keys[-1], own["v"].is_not_null().to_numpy(), place, back)
            columns = gathered(pl.DataFrame(own), best).get_columns()
    counted = [pl.Series(total(own["n"]))] if "n" in own else []
    return [column.alias(name) for column, name in zip([*columns, *counted], state.columns, strict=True)]


def _running_sketches(state: State, texts: pl.Series, place: Int64Array) -> pl.Series:
    """The sketches of all rows of a segment up to each one: pairs of neighbours first, as with sums of doubles."""
    odd = np.flatnonzero(place & 1)
    if not len(odd):
        return texts
    halved = _running_sketches(state, _sketches(state, texts[odd], texts[odd - 1]), place[odd] >> 1)
    texts = texts.scatter(pl.Series(odd), halved)
    others = np.flatnonzero(((place & 1) == 0) & (place > 1))
    return (
        texts.scatter(pl.Series(others), _sketches(state, texts[others], texts[others - 1])) if len(others) else texts
    )


def _if(some: BoolArray | None, values: Int64Array | Float64Array) -> pl.Series:
    """The values, NULL where there are none."""
    return pl.Series(values) if some is None else pl.Series(values).set(pl.Series(~some), None)


def running_doubles(high: Float64Array, low: Float64Array, place: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Pairs of neighbours are summed, then what these run to is found in the same way, and every other row has the one
    before it added: for n rows 2n sums, and as many calls as a segment can be halved. Few rows need no kernels for it.
    """
    odd = np.flatnonzero(place & 1)
    if not len(odd):
        return high, low
    sums, lost = high.copy(), low.copy()
    pairs = sum_of_doubles(high[odd], low[odd], high[odd - 1], low[odd - 1])
    sums[odd], lost[odd] = running_doubles(*pairs, place[odd] >> 1)
    later = np.flatnonzero((place & 1 == 0) & (place > 0))
    sums[later], lost[later] = sum_of_doubles(high[later], low[later], sums[later - 1], lost[later - 1])
    return sums, lost
