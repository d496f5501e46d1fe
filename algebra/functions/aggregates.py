"""Aggregates: what each takes and yields, what it means over the values of a group, and whether partial results merge.

NULL arguments are skipped by all, and an empty rest yields NULL (0 for the counts). A row that stands for several
counts as often.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cmp_to_key
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.sketches.distinct import class_of, distinct_estimate
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.functions.sketches.quantiles import part_of, quantile_estimate
from tidegate.algebra.terms import Term, Value
from tidegate.algebra.typed.kernels import OVERFLOW, KernelFailure, compare, key_of
from tidegate.algebra.types import (
    BIGINT,
    DOUBLE,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    MAX_DECIMAL_PRECISION,
    NULL,
    STRING,
    DataType,
    Kind,
    decimal,
)

if TYPE_CHECKING:
    from fractions import Fraction


class Function(Enum):
    """Aggregate functions; NULL arguments are skipped, `count` without argument counts rows.

    `try_sum` is NULL where `sum` fails, as a total is beyond its type; no other aggregate can fail.
    """

    COUNT = "count"
    COUNT_DISTINCT = "count_distinct"
    SUM = "sum"
    TRY_SUM = "try_sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    FIRST = "first"
    LAST = "last"
    VARIANCE = "variance"
    STDDEV = "stddev"
    MEDIAN = "median"
    QUANTILE = "quantile"
    MODE = "mode"
    STRING_AGG = "string_agg"
    APPROX_DISTINCT = "approx_distinct"
    APPROX_QUANTILE = "approx_quantile"


class Form(Enum):
    """What is kept of the rows of a group for an aggregate; each engine computes and merges it."""

    COUNT = "count"
    INTEGER_SUM = "integer sum"
    DOUBLE_SUM = "double sum"
    LEAST = "least"
    GREATEST = "greatest"
    EARLIEST = "earliest"
    LATEST = "latest"
    SKETCH = "sketch"  # it merges, and is no plain value
    DISTINCT = "distinct"  # it has no bounded state that merges: rows are held; of runs, all values
    WHOLE = "whole"  # every value is held, and Python computes the result


class Stored(Enum):
    """What is stored of rows that settle and become one, so that an aggregate of all of them is still known (rule R32):
    a partial result; each different value, as the argument joins what tells classes apart; or every row.
    """

    PARTIAL = "partial"
    VALUES = "values"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`name = function(argument)`; first and last take the order `by`, ties go to the smallest value.

    They skip rows in which the argument or the order is NULL. `parameter`: the share of a quantile, the separator of
    string_agg.
    """

    name: str
    function: Function
    argument: Term | None = None
    by: Term | None = None
    parameter: float | str | None = None

    @property
    def entry(self) -> AggregateFunction:
        """What there is to know of its function."""
        return TABLE[self.function]

    @property
    def terms(self) -> tuple[Term, ...]:
        """What it evaluates for each row: its argument and its order, as far as it has them."""
        return tuple(term for term in (self.argument, self.by) if term is not None)

    def with_terms(self, changed: Callable[[Term], Term]) -> Aggregate:
        """The aggregate with its terms changed."""
        argument, by = (None if term is None else changed(term) for term in (self.argument, self.by))
        return replace(self, argument=argument, by=by)

    def lenient(self) -> Aggregate:
        """The aggregate that is NULL where this one fails; itself if it never does."""
        return replace(self, function=self.entry.lenient) if self.entry.lenient is not None else self


@dataclass(frozen=True, slots=True)
class Members:
    """What a group gives to an aggregate: arguments that are not NULL with their orders, by which there may be none."""

    values: Sequence[Value]
    orders: Sequence[Value]
    type: DataType
    parameter: Value = None


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate: its type by that of its argument (None where it takes no such), and its value over a group.

    `form` says what is kept of a group, and so whether partial results merge; of doubles sums have a form of their own.
    `ordered`: whether it takes an order `by`; rows without one are skipped then. `averages`: whether its total is
    divided by how many values there are. `lenient`: the function that is NULL where this one fails; None if it never
    does. `sample`: a parameter with which engines are compared. `sketch`: what is kept of one that is nearly known.
    """

    function: Function
    takes: str
    result: Callable[[DataType], DataType | None]
    value: Callable[[Members], Value]
    written: str
    form: Form
    ordered: bool = False
    averages: bool = False
    lenient: Function | None = None
    sample: float | str | None = None
    doc: str = ""
    sketch: Sketch | None = None

    @property
    def counts_by(self) -> bool:
        """Whether in a plan `by` may say how often a value counts."""
        return self.sketch is Sketch.QUANTILES

    @property
    def merges(self) -> bool:
        """Whether partial results merge: others keep every value of a group."""
        return self.form not in (Form.DISTINCT, Form.WHOLE)

    @property
    def stored(self) -> Stored:
        """What is stored of settled rows."""
        match self.form:
            case Form.DISTINCT:
                return Stored.VALUES
            case Form.WHOLE:
                return Stored.ROWS
            case _:
                return Stored.PARTIAL

    @property
    def folded(self) -> str:
        """The same for people."""
        stored = self.stored
        match stored:
            case Stored.VALUES:
                return "each different value"
            case Stored.ROWS:
                return "every row"
            case Stored.PARTIAL:
                if self.sketch is not None:
                    return _SKETCHED[self.sketch]
                return _MEANS if self.averages else _PARTIALS[self.form]
            case _:
                assert_never(stored)

    @property
    def is_plain(self) -> bool:
        """Whether its partial results are a few plain values, which rows can carry."""
        return self.merges and self.form is not Form.SKETCH

    @property
    def of_events(self) -> bool:
        """Whether situations have it: neither all values nor sketches are kept of their events, but the different
        values are.
        """
        return self.form not in (Form.SKETCH, Form.WHOLE)

    def estimate(self, places: Sequence[int], numbers: Sequence[int], parameter: Value) -> Value:
        """What a sketch of a group says: a number for each of these places, which ascend."""
        if self.sketch is Sketch.QUANTILES:
            assert isinstance(parameter, float)
            return quantile_estimate(places, numbers, parameter)
        return distinct_estimate(numbers)

    def form_of(self, argument: DataType) -> Form:
        """What is kept where the argument has this type."""
        return Form.DOUBLE_SUM if self.form is Form.INTEGER_SUM and argument.kind is Kind.DOUBLE else self.form


def order_values(values: Sequence[Value]) -> list[Value]:
    """Values, none of them NULL, from least to greatest."""
    return sorted(values, key=cmp_to_key(compare))


# --- values ----------------------------------------------------------------------------------------------------------


class SumOverflow(KernelFailure):
    """A sum that its type has no room for."""

    def __init__(self, total: int) -> None:
        super().__init__(OVERFLOW, "the sum is out of range")
        self.total = total


def _sum(group: Members) -> Value:
    if not group.values:
        return None
    if group.type.kind is Kind.DOUBLE:
        return sum_doubles(group.values)
    # Exact whatever the order: only the total counts, as partial sums of other batchings may differ.
    total = sum(int(value) for value in group.values if value is not None)
    low, high = (-(10**18) + 1, 10**18 - 1) if group.type.kind is Kind.DECIMAL else (INT64_MIN, INT64_MAX)
    if not low <= total <= high:
        raise SumOverflow(total)
    return total


def _try_sum(group: Members) -> Value:
    try:
        return _sum(group)
    except SumOverflow:
        return None


def sum_doubles(given: Sequence[Value]) -> float:
    """The sum, correctly rounded, whatever the order."""
    values = [float(value) for value in given if value is not None]
    try:
        return math.fsum(values)
    except ValueError:  # +inf and -inf
        return math.nan
    except OverflowError:  # a partial sum was too large, perhaps not the total
        if not all(map(math.isfinite, values)):
            return sum(value for value in values if not math.isfinite(value))
        total = math.fsum(math.ldexp(value, -64) for value in values)
        return math.ldexp(total, 64) if abs(total) < 2.0**960 else math.copysign(math.inf, total)


def _avg(group: Members) -> Value:
    if not group.values:
        return None
    if group.type.kind is Kind.DOUBLE:
        return sum_doubles(group.values) / len(group.values)
    return float(sum(int(v) for v in group.values if v is not None)) / float(10**group.type.scale) / len(group.values)


def _least(group: Members) -> Value:
    return order_values(group.values)[0] if group.values else None


def _greatest(group: Members) -> Value:
    return order_values(group.values)[-1] if group.values else None


def _end(place: int) -> Callable[[Members], Value]:
    """The least value of those whose order is the first or the last."""

    def value(group: Members) -> Value:
        if not group.values:
            return None
        end = order_values(group.orders)[place]
        return order_values([v for v, by in zip(group.values, group.orders, strict=True) if compare(by, end) == 0])[0]

    return value


def _numbers(group: Members) -> list[Fraction] | None:
    """The values as exact numbers; None where one is no finite number."""
    from fractions import Fraction  # takes long to import

    if group.type.kind is not Kind.DOUBLE:
        return [Fraction(int(value), 10**group.type.scale) for value in group.values if value is not None]
    doubles = [float(value) for value in group.values if value is not None]
    return [Fraction(value) for value in doubles] if all(map(math.isfinite, doubles)) else None


def _variance(group: Members) -> Value:
    """Of a sample: the exact sum of squared distances from the mean, divided by one less than there are, rounded
    once.
    """
    from fractions import Fraction  # takes long to import

    count = len(group.values)
    if count < 2:
        return None
    numbers = _numbers(group)
    if numbers is None:
        return math.nan
    total = sum(numbers, Fraction())
    squares = sum((number * number for number in numbers), Fraction())
    return _rounded((squares - total * total / count) / (count - 1))


def _stddev(group: Members) -> Value:
    variance = _variance(group)
    return math.sqrt(variance) if isinstance(variance, float) else None


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _quantile(group: Members) -> Value:
    """Between the two values that are next to the place, in proportion to how near each is; of the exact numbers."""
    if not group.values:
        return None
    low, high, within = quantile_places(len(group.values), group.parameter)
    ordered = order_values(group.values)
    return quantile_between(ordered[low], ordered[high], within, group.type)


def quantile_places(count: int, share: Value) -> tuple[int, int, Fraction]:
    """The places of the two values, of so many in order, that a quantile is between, and how far it is from the first
    one, in parts of their distance. Without a share it is the median.
    """
    from fractions import Fraction  # takes long to import

    low, within = divmod((Fraction(share) if isinstance(share, float) else Fraction(1, 2)) * (count - 1), 1)
    return int(low), int(low) + (within != 0), within


def quantile_between(lower: Value, upper: Value, within: Fraction, type_: DataType) -> float:
    """The number so far between two values."""
    numbers = _numbers(Members((lower, upper), (), type_))
    if numbers is not None:
        return _rounded(numbers[0] + (numbers[1] - numbers[0]) * within)
    assert isinstance(lower, float)
    assert isinstance(upper, float)
    return lower if lower == upper else lower + (upper - lower) * float(within)


def _mode(group: Members) -> Value:
    if not group.values:
        return None
    counts = Counter(map(key_of, group.values))
    most = max(counts.values())
    return order_values([value for value in group.values if counts[key_of(value)] == most])[0]


def _string_agg(group: Members) -> Value:
    if not group.values:
        return None

    def before(first: tuple[Value, Value], second: tuple[Value, Value]) -> int:
        return compare(first[0], second[0]) or compare(first[1], second[1])

    ordered = sorted(zip(group.orders, group.values, strict=True), key=cmp_to_key(before))
    return str(group.parameter).join(str(value) for _, value in ordered)


def _approx_distinct(group: Members) -> Value:
    numbers: dict[int, int] = {}
    for place, number in map(class_of, group.values):
        numbers[place] = max(number, numbers.get(place, 0))
    return distinct_estimate(list(numbers.values()))


def _approx_quantile(group: Members) -> Value:
    counts: Counter[int] = Counter()
    for value, number in zip(group.values, group.orders, strict=True):
        counts[part_of(value, group.type)] += number if isinstance(number, int) else 1
    share = group.parameter if isinstance(group.parameter, float) else 0.5
    return quantile_estimate(sorted(counts), [counts[part] for part in sorted(counts)], share)


# --- types -----------------------------------------------------------------------------------------------------------


def _any(argument: DataType) -> DataType | None:
    return BIGINT


def _same(argument: DataType) -> DataType | None:
    if argument == NULL:
        raise QueryError("TG102", "an aggregate of NULL has no type", hint="cast it")
    return argument


def _total(argument: DataType) -> DataType | None:
    if argument.kind is Kind.DECIMAL:
        return decimal(MAX_DECIMAL_PRECISION, argument.scale)
    return argument if argument in (BIGINT, DOUBLE, DURATION) else None


def _double(argument: DataType) -> DataType | None:
    return DOUBLE if argument.is_numeric else None


def _text(argument: DataType) -> DataType | None:
    return STRING if argument in (STRING, NULL) else None


#: What a partial result of rows is, by its form.
_PARTIALS: Final[Mapping[Form, str]] = MappingProxyType(
    {
        Form.COUNT: "how many",
        Form.INTEGER_SUM: "their sum",
        Form.LEAST: "the least",
        Form.GREATEST: "the greatest",
        Form.EARLIEST: "the value of the first order, and the order",
        Form.LATEST: "the value of the last order, and the order",
    }
)

#: The same of a sketch.
_SKETCHED: Final[Mapping[Sketch, str]] = MappingProxyType(
    {
        Sketch.DISTINCT: "a value for each of 4,096 classes of hashes",
        Sketch.QUANTILES: "a value for each 64th part of a power of two, and how many",
    }
)

_MEANS: Final = "their sum and number"

# --- the table -------------------------------------------------------------------------------------------------------

_EXACT: Final = "Of the exact numbers, rounded once."
_TIED: Final = "Among rows where neither is NULL; of equal orders the smallest value."
TABLE: Final[Mapping[Function, AggregateFunction]] = MappingProxyType(
    {
        entry.function: entry
        for entry in (
            AggregateFunction(Function.COUNT, "any, or nothing", _any, lambda group: len(group.values), "tg.count(x)", Form.COUNT, doc="Rows in which it is not NULL; without argument all rows."),
            AggregateFunction(Function.COUNT_DISTINCT, "any", _any, lambda group: len(set(map(key_of, group.values))), "tg.count_distinct(x)", Form.DISTINCT),
            AggregateFunction(Function.SUM, "numbers or durations", _total, _sum, "tg.sum(x)", Form.INTEGER_SUM, lenient=Function.TRY_SUM, doc="A total that overflows is NULL and reported, or fails the batch, as [`on_error`](sources-and-sinks.md#results-without-a-value) says; of doubles it is compensated."),
            AggregateFunction(Function.TRY_SUM, "numbers or durations", _total, _try_sum, "tg.try_sum(x)", Form.INTEGER_SUM, doc="As sum; NULL where that overflows, and nothing is reported."),
            AggregateFunction(Function.MIN, "any", _same, _least, "tg.min(x)", Form.LEAST),
            AggregateFunction(Function.MAX, "any", _same, _greatest, "tg.max(x)", Form.GREATEST),
            AggregateFunction(Function.AVG, "numbers", _double, _avg, "tg.avg(x)", Form.INTEGER_SUM, averages=True),
            AggregateFunction(Function.FIRST, "any, by an order", _same, _end(0), "tg.first(x, by=y)", Form.EARLIEST, ordered=True, doc=_TIED),
            AggregateFunction(Function.LAST, "any, by an order", _same, _end(-1), "tg.last(x, by=y)", Form.LATEST, ordered=True, doc=_TIED),
            AggregateFunction(Function.VARIANCE, "numbers", _double, _variance, "tg.variance(x)", Form.WHOLE, doc=f"Of a sample; NULL of fewer than two. {_EXACT}"),
            AggregateFunction(Function.STDDEV, "numbers", _double, _stddev, "tg.stddev(x)", Form.WHOLE, doc="The square root of the variance."),
            AggregateFunction(Function.MEDIAN, "numbers", _double, _quantile, "tg.median(x)", Form.WHOLE, doc=f"Of an even number of values the mean of the two in the middle. {_EXACT}"),
            AggregateFunction(Function.QUANTILE, "numbers, a share", _double, _quantile, "tg.quantile(x, 0.9)", Form.WHOLE, sample=0.3, doc=f"Between two values in proportion. {_EXACT}"),
            AggregateFunction(Function.MODE, "any", _same, _mode, "tg.mode(x)", Form.WHOLE, doc="The most frequent value, of several the smallest."),
            AggregateFunction(Function.STRING_AGG, "strings, a separator", _text, _string_agg, 'tg.string_agg(x, ", ", by=y)', Form.WHOLE, sample="-", ordered=True, doc="In the order of y, then of x."),
            AggregateFunction(Function.APPROX_DISTINCT, "any", _any, _approx_distinct, "tg.approx_distinct(x)", Form.SKETCH, doc="About how many different values; two of three times within 1.6 %.", sketch=Sketch.DISTINCT),
            AggregateFunction(Function.APPROX_QUANTILE, "numbers, a share", _double, _approx_quantile, "tg.approx_quantile(x, 0.9)", Form.SKETCH, sample=0.3, doc="Within 0.8 % of the value at the share's place, rounded down.", sketch=Sketch.QUANTILES),
        )
    }
)  # fmt: skip


_ORDERED: Final = tuple(function.value for function, entry in TABLE.items() if entry.ordered)


def aggregate_type(aggregate: Aggregate, argument: DataType | None, by: DataType | None) -> DataType:
    """Type of an aggregate; `QueryError` TG132 for one without its argument or order, TG102 for a wrong one."""
    entry, name = aggregate.entry, aggregate.function.value
    if entry.ordered and by is None:
        raise QueryError("TG132", f"{name} needs an order", hint="name it: by=e.time")
    if not (entry.ordered or (entry.counts_by and by == BIGINT)) and by is not None:
        raise QueryError("TG132", f"{name} takes no order", hint=f"{', '.join(_ORDERED)} take by=")
    if argument is None:
        if aggregate.function is Function.COUNT:
            return BIGINT
        raise QueryError("TG132", f"{name} needs an argument", hint="only count() counts rows")
    result = entry.result(argument)
    if result is None:
        hint = "cast it to a number" if entry.result(STRING) is None else "cast it to a string"
        if argument == DURATION:
            hint = 'take .cast("bigint") of the duration, in microseconds'
        raise QueryError("TG102", f"{name} takes {entry.takes}, not {argument}", hint=hint)
    return result


def require_of_events(aggregate: Aggregate) -> None:
    """`QueryError` TG132 for an aggregate that would keep every value of the events of a situation."""
    if not aggregate.entry.of_events:
        raise QueryError(
            "TG132",
            f"{aggregate.function.value} keeps more than a few values: it is an aggregate of groups, not of the events of "
            "a situation",
            hint="join the situations with the events, and group by the situation",
        )
