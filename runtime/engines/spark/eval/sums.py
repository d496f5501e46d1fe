"""Sums of doubles in Spark, rounded once, with built-in functions alone.

Below the query's grouping stands one by ranges of exponents, 32 binary digits wide, in which plain sums of suitably
rounded parts are exact: partial before the shuffle, and rarely more than three ranges a group. The few sums of a group
are then added with an error-free transformation. Merging partial results takes the second step only.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_WIDTH = 32
#: What is too large for the constants below is summed at a smaller scale, in ranges that are as many higher.
_LARGEST = 2.0**900
_SMALLER = 2.0**-256
_HIGHER = 100
#: The range of what is not finite: summed plainly, and alone, as other values could be beyond all doubles on the way.
_ODD = 200


def exponent_range(value: Column) -> Column:
    """The range of exponents of a double: x * 2**(-32 * range) lies between 1/2 and 2**33."""
    size = F.abs(value)
    place = F.floor(F.log2(size) / _WIDTH).cast("int")
    large = F.floor(F.log2(size * _SMALLER) / _WIDTH).cast("int") + _HIGHER
    is_odd = size >= float("inf")  # NaN is greatest
    return F.when(is_odd, _ODD).when(size > _LARGEST, large).when(size > 0.0, place).otherwise(0)


def split_sums(value: Column, place: Column) -> tuple[Column, Column, Column]:
    """Aggregates of the doubles of one range: sums of the upper, middle and lower parts of their digits.

    Adding and subtracting a large constant rounds to its last digit. In units of 2**(32 * range), the upper parts are
    below 2**33 and multiples of 2**10, the middle ones below 2**10 and multiples of 2**-14: their sums are exact up to
    2**30 rows. The lower parts, below 2**-14, have 2**15 rows until their sum is rounded at all.
    """
    is_odd, is_large = place == _ODD, _is_large(place)
    value = F.when(is_large, value * _SMALLER).otherwise(value)
    scale = F.when(is_large, place - _HIGHER).otherwise(place)
    unit = F.when(is_odd, 0.0).otherwise(1.5 * F.pow(F.lit(2.0), F.lit(_WIDTH) * scale))
    upper = (value + unit * 2.0**62) - unit * 2.0**62
    rest = F.when(is_odd, 0.0).otherwise(value - upper)
    middle = (rest + unit * 2.0**38) - unit * 2.0**38
    return F.sum(upper), F.sum(middle), F.sum(rest - middle)


def added_ranges(place: Column, upper: Column, middle: Column, lower: Column) -> Column:
    """Aggregate over the ranges of a group: struct (sum, comp) of `split_sums`; NULL of nothing."""

    def listed(chosen: Column) -> Column:
        parts = (_pair(upper, F.lit(0.0)), _pair(middle, lower))
        return F.concat(*(F.collect_list(F.when(chosen & upper.isNotNull(), pair)) for pair in parts))

    odd = F.sum(F.when(place == _ODD, upper))
    plain, large = listed(place < _HIGHER), listed(_is_large(place))
    smaller = F.transform(plain, lambda pair: _scaled(pair, _SMALLER))
    total = F.when(F.size(large) == 0, _added(plain)).otherwise(_scaled(_added(F.concat(smaller, large)), 1 / _SMALLER))
    return F.when(odd.isNotNull(), _pair(odd, F.lit(0.0))).otherwise(total)


def _is_large(place: Column) -> Column:
    return (place >= _HIGHER) & (place < _ODD)


def _scaled(pair: Column, by: float) -> Column:
    rounded = pair["sum"] * by
    return _pair(rounded, _finite(rounded, pair["comp"] * by))


def added_pairs(rounded: Column, comp: Column) -> Column:
    """Aggregate over sums of parts of a group: struct (sum, comp) of such; NULL of nothing."""
    return _added(F.collect_list(F.when(rounded.isNotNull(), _pair(rounded, comp))))


def _added(pairs: Column) -> Column:
    """The sum of an array of structs (sum, comp) as such a struct; sorted, so that it is the same in every run."""

    def add(total: Column, pair: Column) -> Column:
        a, b = total["sum"], pair["sum"]
        rounded = a + b
        back = rounded - a
        lost = (a - (rounded - back)) + (b - back)
        return _pair(rounded, _finite(rounded, total["comp"] + lost + pair["comp"]))

    def finish(total: Column) -> Column:
        rounded = total["sum"] + total["comp"]
        return _pair(rounded, _finite(rounded, (total["sum"] - rounded) + total["comp"]))

    nothing = _pair(F.lit(0.0), F.lit(0.0))
    return F.when(F.size(pairs) > 0, F.aggregate(F.sort_array(pairs), nothing, add, finish))


def _pair(rounded: Column, comp: Column) -> Column:
    return F.struct(rounded.alias("sum"), comp.alias("comp"))


def _finite(rounded: Column, comp: Column) -> Column:
    """What was lost, 0 where the sum itself is infinite or NaN, which is greatest."""
    return F.when(F.abs(rounded) < float("inf"), comp).otherwise(F.lit(0.0))
