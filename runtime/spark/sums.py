"""Sums of doubles in Spark, rounded once, with built-in functions alone.

Doubles are added up exactly as integers per range of exponents, 32 binary digits wide: that is a grouping of its own
below the query's, partial before the shuffle, with rarely more than three ranges a group. The few exact sums of a group
are then added with an error-free transformation. Merging partial results uses the second step only.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_WIDTH = 32
_NOT_FINITE = 100
_LOW = 2**32 - 1


def exponent_range(value: Column) -> Column:
    """The range of exponents of a double: x * 2**(-32 * range) lies between 1/2 and 2**33; infinities and NaN apart."""
    finite = F.floor(F.log2(F.abs(value)) / _WIDTH).cast("int")
    return (
        F.when(value.isNull() | (value == 0.0), 0)
        .when(F.isnan(value) | (F.abs(value) == float("inf")), _NOT_FINITE)
        .otherwise(finite)
    )


def exact_sums(value: Column, place: Column) -> tuple[Column, Column, Column, Column]:
    """Aggregates of the doubles of one range: three exact integer sums, and the plain sum of what is not finite.

    In its range a double is below 2**33 with 53 digits after the point at most: the part before the point, 27 and 26
    digits after it. An int64 holds the sums of 2**30 rows of a group.
    """
    finite = place != _NOT_FINITE
    scaled = F.when(finite, _scaled(value, -place))
    whole = _truncated(scaled)
    upper = (scaled - whole) * 2.0**27
    middle = _truncated(upper)
    lower = (upper - middle) * 2.0**26
    parts = (F.sum(part.cast("bigint")) for part in (whole, middle, lower))
    return *parts, F.sum(F.when(~finite, value))  # type: ignore[return-value]  # three parts


def rounded_sum(whole: Column, middle: Column, lower: Column, special: Column, place: Column) -> Column:
    """Struct (sum, comp) of the aggregates of one range; NULL of no rows."""
    parts = [
        (half, weight)
        for total, weight in ((whole, 1.0), (middle, 2.0**-27), (lower, 2.0**-53))
        for half, weight in ((F.shiftright(total, 32), weight * 2.0**32), (total.bitwiseAND(_LOW), weight))
    ]
    terms = F.array(*(_pair(_scaled(half.cast("double") * weight, place), F.lit(0.0)) for half, weight in parts))
    return F.when(place == _NOT_FINITE, F.when(special.isNotNull(), _pair(special, F.lit(0.0)))).when(
        whole.isNotNull(), added(terms)
    )


def added(pairs: Column) -> Column:
    """The sum of an array of structs (sum, comp) as such a struct, NULL of none; the order matters only beyond `comp`."""

    def add(total: Column, pair: Column) -> Column:
        one, other = total["sum"], pair["sum"]
        rounded = one + other
        back = rounded - one
        lost = (one - (rounded - back)) + (other - back)
        return _pair(rounded, _finite(rounded, total["comp"] + lost + pair["comp"]))

    def finish(total: Column) -> Column:
        rounded = total["sum"] + total["comp"]
        return _pair(rounded, _finite(rounded, (total["sum"] - rounded) + total["comp"]))

    nothing = _pair(F.lit(0.0), F.lit(0.0))
    return F.when(F.size(pairs) > 0, F.aggregate(F.sort_array(pairs), nothing, add, finish))


def _pair(rounded: Column, comp: Column) -> Column:
    return F.struct(rounded.alias("sum"), comp.alias("comp"))


def _finite(rounded: Column, comp: Column) -> Column:
    """What was lost, 0 where the sum itself is infinite or NaN."""
    return F.when(F.isnan(rounded) | (F.abs(rounded) == float("inf")), F.lit(0.0)).otherwise(comp)


def _scaled(value: Column, place: Column) -> Column:
    """value * 2**(32 * place), in two steps since one factor alone can be out of range."""
    factor = F.pow(F.lit(2.0), place * (_WIDTH // 2))
    return value * factor * factor


def _truncated(value: Column) -> Column:
    return F.when(value < 0.0, F.ceil(value)).otherwise(F.floor(value)).cast("double")
