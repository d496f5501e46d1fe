"""Partial aggregates merge to the aggregate of the whole, in any split and grouping, on both engines."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.strategies.trees import PRICE, Row
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.functions.aggregates import Aggregate, Function, sum_doubles
from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.semantics import evaluate as reference
from tidegate.algebra.terms import Attr
from tidegate.algebra.types import BIGINT, BOOLEAN, DOUBLE, DURATION, INT64_MAX, INT64_MIN, STRING, TIMESTAMP
from tidegate.runtime import rows as small_rows
from tidegate.runtime.eval import increment
from tidegate.runtime.eval.aggregates import compiled as grouping
from tidegate.runtime.eval.aggregates import partials as embedded
from tidegate.runtime.eval.aggregates.sums import segment_sums, sum_lists
from tidegate.runtime.eval.columns import polars_schema, spark_schema
from tidegate.runtime.plan.aggregate_states import has_partials, partial_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS = StreamDef(
    "E",
    Schema(
        (
            Attribute("t", TIMESTAMP, nullable=False, temporal=True),
            Attribute("a.b", BIGINT),
            Attribute("n", BIGINT),
            Attribute("x", DOUBLE),
            Attribute("s", STRING),
            Attribute("u", DURATION),
            Attribute("p", PRICE),
            Attribute("b", BOOLEAN),
        )
    ),
    progress=("t",),
)
NULLABLE = tuple(name for name in EVENTS.schema if name != "t")


def everything(*keys: str) -> Group:
    """All functions over all types that they take, first and last by every type."""
    numbers = ("n", "x", "p")
    made = [Aggregate("rows", Function.COUNT)]
    made += [Aggregate(f"count {a}", Function.COUNT, Attr(a)) for a in NULLABLE]
    made += [Aggregate(f"sum {a}", Function.SUM, Attr(a)) for a in (*numbers, "u")]
    made += [Aggregate(f"try_sum {a}", Function.TRY_SUM, Attr(a)) for a in (*numbers, "u")]
    made += [Aggregate(f"avg {a}", Function.AVG, Attr(a)) for a in numbers]
    made += [Aggregate(f"{f.value} {a}", f, Attr(a)) for a in EVENTS.schema for f in (Function.MIN, Function.MAX)]
    made += [
        Aggregate(f"{f.value} {a} by {b}", f, Attr(a), Attr(b))
        for f in (Function.FIRST, Function.LAST)
        for a, b in (("s", "t"), ("n", "x"), ("x", "s"), ("p", "b"), ("b", "n"), ("t", "t"))
    ]
    return Group(Scan(EVENTS), keys, tuple(made))


DOUBLES = (0.0, -0.0, 0.1, -1.5, 1e16, -1e16, 3e-9, 5e-324, math.nan, math.inf, -math.inf)
EVENT = st.tuples(
    st.integers(-2, 3),
    st.none() | st.integers(0, 2),
    st.none() | st.integers(-3, 3) | st.integers(-(2**60), 2**60),
    st.none() | st.sampled_from(DOUBLES) | st.floats(-1e6, 1e6),
    st.none() | st.sampled_from(["", "a", "ab", "b", "é", "😀"]),
    st.none() | st.integers(-5, 5),
    st.none() | st.integers(-999, 999),
    st.none() | st.booleans(),
)


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=polars_schema(EVENTS.schema), orient="row")


def merged(group: Group, parts: Sequence[Sequence[Row]], random_: random.Random) -> pl.DataFrame:
    """Partial results of all parts, merged in a random grouping and order."""
    frames = [embedded.partial(group, frame(part)) for part in parts]
    while len(frames) > 1:
        random_.shuffle(frames)
        count = random_.randint(2, len(frames))
        frames = [embedded.merge(group, pl.concat(frames[:count])), *frames[count:]]
    return frames[0]


@given(
    st.lists(st.lists(EVENT, max_size=6), min_size=1, max_size=5),
    st.sampled_from([(), ("a.b",), ("x", "b")]),
    st.randoms(),
)
@settings(max_examples=80)
def test_any_split_and_merge_gives_the_whole_embedded(
    parts: list[list[Row]], keys: tuple[str, ...], random_: random.Random
) -> None:
    group = everything(*keys)
    whole = [row for part in parts for row in part]
    wanted = reference(group, {"E": whole})
    partials = merged(group, parts, random_)
    assert partials.schema == polars_schema(partial_schema(group))
    found = embedded.final(group, partials)
    assert found.schema == polars_schema(group.schema)
    assert bags_equal(found.rows(), wanted), f"{found.to_dicts()} is not {wanted}"
    assert bags_equal(embedded.aggregate(group, frame(whole)).rows(), wanted)


def numbers(*keys: str) -> Group:
    """What the compiled kernels aggregate."""
    functions = (Function.COUNT, Function.SUM, Function.AVG, Function.MIN, Function.MAX)
    made = [Aggregate(f"{f.value} {a}", f, Attr(a)) for a in ("n", "x", "p") for f in functions]
    made += [Aggregate(f"{f.value} {a}", f, Attr(a)) for a in ("t", "u", "b") for f in functions[3:]]
    return Group(Scan(EVENTS), keys, (Aggregate("rows", Function.COUNT), *made))


@given(
    st.lists(st.lists(EVENT, max_size=12), min_size=1, max_size=5),
    st.sampled_from([("a.b",), ("s",), ("t", "b", "s"), ("p", "u")]),
    st.randoms(),
)
@settings(max_examples=150)
def test_the_compiled_kernels_group_as_polars_does(
    parts: list[list[Row]], keys: tuple[str, ...], random_: random.Random
) -> None:
    group = numbers(*keys)
    assert grouping.can_merge(group)
    wanted = reference(group, {"E": [row for part in parts for row in part]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MANY_ROWS", 0)
        partials = merged(group, parts, random_)
        assert partials.schema == polars_schema(partial_schema(group))
        found = embedded.final(group, partials)
    assert bags_equal(found.rows(), wanted), f"{found.to_dicts()} is not {wanted}"


@pytest.mark.parametrize("seed", range(5))
def test_compiled_sums_survive_cancellation(seed: int) -> None:
    values = cancelling(seed, 500)
    exact = math.fsum(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MANY_ROWS", 0)
        ((_, total, average),) = embedded.aggregate(SUMS, frame(events(values))).rows()
    assert math.isclose(total, exact, rel_tol=1e-12)
    assert math.isclose(average, exact / len(values), rel_tol=1e-12)


def test_many_groups_in_a_growing_table() -> None:
    from tidegate.runtime.kernels.grouping import number_groups

    source = np.random.default_rng(5)
    keys = np.stack([source.integers(-(2**62), 2**62, 30_000), source.integers(0, 3, 30_000)])
    keys = np.concatenate([keys, keys[:, ::-1]], axis=1)
    found, firsts = number_groups(list(np.ascontiguousarray(keys)))
    distinct, inverse = np.unique(keys, axis=1, return_inverse=True)
    assert len(firsts) == distinct.shape[1] > 2**14
    assert (keys[:, firsts[found]] == keys).all()
    assert len(np.unique(np.stack([found, inverse.ravel()]), axis=1).T) == len(firsts)


def test_keys_of_every_type_are_in_one_group_where_they_are_equal() -> None:
    """NULL by itself, not with the zero or the empty text of its type."""
    from tidegate.runtime.kernels.grouping import number_groups

    texts = pl.Series(["", None, "a", "", None, "a", "b", "b"])
    others = (
        texts,
        texts.drop_nulls(),
        pl.Series([0, None, 1, 0, None, 1, 2, -1]),
        pl.Series([False, None, True, False, None, True, False, True]),
        pl.Series([0, None, 1, 0, None, 1, 2, -1]).cast(pl.Datetime("us")),
        pl.Series([0, None, 1, 0, None, 1, 2, -1]).cast(pl.Date),
        pl.Series([0, None, 1, 0, None, 1, 2, -1]).cast(pl.Duration("us")),
        pl.Series([3, 0, 1, 0, 0, 1, 2, -1]),
    )
    for one in others:
        for columns in ([one], [one, texts[: len(one)]], [texts[: len(one)], one]):
            known: dict[tuple[object, ...], int] = {}
            expected = [known.setdefault(row, len(known)) for row in zip(*(c.to_list() for c in columns), strict=True)]
            numbers, _ = number_groups(grouping._key_numbers(columns))
            assert numbers.tolist() == expected, columns


def test_distinct_counts_have_no_partials() -> None:
    group = Group(Scan(EVENTS), (), (Aggregate("d", Function.COUNT_DISTINCT, Attr("n")),))
    assert not has_partials(group)
    assert has_partials(everything())


def cancelling(seed: int, count: int) -> list[float]:
    """Doubles of many magnitudes whose sum is small beside them: each large one comes with its negative, far away."""
    source = random.Random(seed)
    large = [source.uniform(-1, 1) * 10.0 ** source.randint(-16, 16) for _ in range(count)]
    small = [source.uniform(0, 1) for _ in range(count)]
    values = large + [-value for value in large] + small
    source.shuffle(values)
    return values


SUMS = Group(
    Scan(EVENTS), ("b",), (Aggregate("sum", Function.SUM, Attr("x")), Aggregate("avg", Function.AVG, Attr("x")))
)


def events(values: Sequence[float]) -> list[Row]:
    return [(0, None, None, value, None, None, None, True) for value in values]


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_doubles_survive_cancellation_between_batches(seed: int) -> None:
    values = cancelling(seed, 500)
    exact = math.fsum(values)
    naive = sum(values)
    assert not math.isclose(naive, exact, rel_tol=1e-6)  # else the case shows nothing
    cuts = [0, *sorted(random.Random(seed).sample(range(len(values)), 7)), len(values)]
    parts = [events(values[a:b]) for a, b in itertools.pairwise(cuts)]
    found = embedded.final(SUMS, merged(SUMS, parts, random.Random(seed))).rows()
    ((_, total, average),) = found
    assert math.isclose(total, exact, rel_tol=1e-12)
    assert math.isclose(average, exact / len(values), rel_tol=1e-12)


@given(st.lists(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20), max_size=5))
@settings(max_examples=120)
def test_the_kernel_sums_like_fsum(lists: list[list[float]]) -> None:
    found = sum_lists(pl.Series("x", lists, dtype=pl.List(pl.Float64)))
    for values, pair in zip(lists, found.to_list(), strict=True):
        if not values:
            assert pair["sum"] is None
            continue
        exact = sum_doubles(values)
        got = pair["sum"] + pair["comp"]
        scale = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
        assert math.isclose(got, exact, rel_tol=1e-12, abs_tol=scale * 1e-28) or (math.isnan(got) and math.isnan(exact))


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_as_exact_of_any_magnitude(seed: int) -> None:
    """Times a power of two all bits are the same."""
    values = np.array(cancelling(seed, 60))
    starts, counts = np.array([0, 50]), np.array([50, len(values) - 50])
    total, comp = segment_sums(values, starts, counts)
    assert np.allclose(total + comp, [math.fsum(values[:50]), math.fsum(values[50:])], rtol=1e-12, atol=0)
    for power in (-600, -200, -60, 60, 200, 600):
        scaled = segment_sums(np.ldexp(values, power), starts, counts)
        assert (scaled[0] == np.ldexp(total, power)).all()
        assert (scaled[1] == np.ldexp(comp, power)).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_kernels_group_fixed_rows(seed: int) -> None:
    """NULL in every column, and doubles that cancel each other, in parts that are merged."""
    source = random.Random(seed)

    def some(*values: object) -> object:
        return source.choice(values) if source.random() < 0.8 else None

    def event() -> Row:
        return (
            source.randrange(3), some(0, 1), some(-3, 2, 2**60, -(2**60)), some(0.1, -1.5, 1e16, -1e16, 3e-9),
            some("", "a"), some(-5, 5), some(-999, 999), some(True, False),
        )  # type: ignore[return-value]  # fmt: skip

    rows = [event() for _ in range(24)]
    group = numbers(*(("a.b",), ("s", "b"), ("t", "u"))[seed % 3])
    wanted = reference(group, {"E": rows})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MANY_ROWS", 0)
        patch.setattr(embedded, "_merged_by_polars", None)
        assert bags_equal(embedded.aggregate(group, frame(rows)).rows(), wanted)
        partials = merged(group, [rows[:7], rows[7:8], rows[8:]], source)
        assert bags_equal(embedded.final(group, partials).rows(), wanted)


def test_sums_that_could_overflow_are_left_to_polars() -> None:
    for values, moderate in (([1.0, None], True), ([], True), ([None], True), ([1e306], False), ([-1e306], False)):
        assert grouping._moderate(pl.Series(values, dtype=pl.Float64)) == moderate
    for odd in ([math.inf, 1.0], [-math.inf, 1.0], [math.nan]):
        assert not grouping._moderate(pl.Series(odd))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MANY_ROWS", 0)
        for values in ([1e306, 1e306, -1e306], [math.nan, 1.0], [math.inf, 1.0]):
            wanted = reference(SUMS, {"E": events(values)})
            assert bags_equal(embedded.aggregate(SUMS, frame(events(values))).rows(), wanted)


def test_sums_of_lists_are_those_of_a_part_of_them() -> None:
    lists = pl.Series("x", [[1.0, 2.0], [5.0], [], [7.0, 0.25], [3.0]])
    assert [pair["sum"] for pair in sum_lists(lists).to_list()] == [3.0, 5.0, None, 7.25, 3.0]
    assert [pair["sum"] for pair in sum_lists(lists[1:4]).to_list()] == [5.0, None, 7.25]


def test_kernels_are_worth_it_for_fewer_rows_once_they_are_loaded() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MANY_ROWS_LOADED", 5)
        patch.setattr(grouping, "MANY_ROWS", 10)
        for kernels, least in (("sys", 5), ("no.such.module", 10)):
            assert [grouping.worth_compiling(rows, kernels) for rows in (least - 1, least)] == [False, True]
        patch.setattr(grouping, "MANY_ROWS_LOADED", 20)
        assert [grouping.worth_compiling(rows, "sys") for rows in (9, 10)] == [False, True]


def test_of_rows_in_order_the_first_and_the_last_with_a_value_count() -> None:
    """Of ties the one that stands first or last; aggregates by another order are as ever."""
    first, last = (Aggregate(f.value, f, Attr("n"), Attr("t")) for f in (Function.FIRST, Function.LAST))
    by_value = Aggregate("by value", Function.FIRST, Attr("n"), Attr("x"))
    group = Group(Scan(EVENTS), ("b",), (first, last, by_value))
    values = ((1, None, 3.0), (1, 7, 2.0), (1, 5, 1.0), (2, 9, 4.0), (3, 6, 5.0), (3, 8, 6.0), (4, None, 0.0))
    rows = [(t, None, n, x, None, None, None, True) for t, n, x in values]
    for pieces in ([rows], [rows[:3], rows[3:]]):
        parts = [embedded.partial(group, frame(piece), ordered_by=Attr("t")) for piece in pieces]
        assert parts[0].schema == polars_schema(partial_schema(group))
        found = [embedded.final(group, part).rows() for part in parts]
        assert found == ([[(True, 7, 8, 5)]] if len(pieces) == 1 else [[(True, 7, 5, 5)], [(True, 9, 8, 9)]])


LIMITS = [
    ([INT64_MAX, 1, -1], INT64_MAX),
    ([INT64_MIN, -1, 1], INT64_MIN),
    ([INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, 2], 0),
    ([INT64_MAX, 1], None),
    ([INT64_MIN, -1], None),
    ([2**62, 2**62], None),
    ([-(2**62), -(2**62)], INT64_MIN),
]
TOTAL = Group(Scan(EVENTS), (), (Aggregate("total", Function.SUM, Attr("n")),))
TRIED = Group(Scan(EVENTS), (), (Aggregate("total", Function.TRY_SUM, Attr("n")),))


@pytest.mark.parametrize(("values", "total"), LIMITS)
def test_only_the_total_can_overflow(values: list[int], total: int | None) -> None:
    rows: list[list[Row]] = [[(0, None, value, None, None, None, None, None)] for value in values]
    partials = merged(TOTAL, rows, random.Random(0))
    if total is None:
        with pytest.raises(EvaluationError, match="total: the sum is out of range") as failure:
            embedded.final(TOTAL, partials)
        assert failure.value.problems[0].hint.startswith("try_sum yields NULL instead")
    else:
        assert embedded.final(TOTAL, partials).rows() == [(total,)]
    assert embedded.final(TRIED, merged(TRIED, rows, random.Random(0))).rows() == [(total,)]
    assert reference(TRIED, {"E": [row for part in rows for row in part]}) == [(total,)]


def test_a_total_can_overflow_beside_others_that_do_not() -> None:
    values = [(1, INT64_MAX), (1, 1), (2, 5)]
    rows: list[list[Row]] = [[(0, key, value, None, None, None, None, None)] for key, value in values]
    by_key, tried = (Group(group.input, ("a.b",), group.aggregates) for group in (TOTAL, TRIED))
    with pytest.raises(EvaluationError, match="total: the sum is out of range"):
        embedded.final(by_key, merged(by_key, rows, random.Random(0)))
    assert sorted(embedded.final(tried, merged(tried, rows, random.Random(0))).rows()) == [(1, None), (2, 5)]


@pytest.mark.spark
def test_try_sum_is_null_on_spark_where_a_total_is_too_large(spark: SparkSession) -> None:
    from tidegate.runtime.engines.spark.eval import aggregates as on_spark

    for values, total in LIMITS:
        rows = [(0, None, value, None, None, None, None, None) for value in values]
        data = spark.createDataFrame(rows, spark_schema(EVENTS.schema))
        result = on_spark.final(TRIED, on_spark.partial(TRIED, data))
        assert [tuple(row) for row in result.collect()] == [(total,)]


@pytest.mark.long
@pytest.mark.spark
def test_spark_merges_as_the_embedded_engine_does(spark: SparkSession) -> None:
    """Splits, merges of merges, and partial results of one engine merged by the other."""
    from tidegate.runtime.engines.spark.eval import aggregates as on_spark

    source = random.Random(7)
    rows: list[Row] = [
        (
            source.randint(-2, 3),
            source.choice([None, 0, 1]),
            source.choice([None, source.randint(-(2**60), 2**60), 1]),
            source.choice([None, *DOUBLES[:8], source.uniform(-1e6, 1e6)]),
            source.choice([None, "", "a", "ab", "b", "é", "😀"]),
            source.choice([None, -1, 4]),
            source.choice([None, -999, 250]),
            source.choice([None, True, False]),
        )
        for _ in range(60)
    ]
    special: list[Row] = [(0, 9, None, value, None, None, None, None) for value in (math.nan, math.inf, 1.0)]
    special += [(0, 8, None, value, None, None, None, None) for value in (math.inf, -math.inf)]
    special += [(0, 7, None, value, None, None, None, None) for value in (math.inf, 1e300, 1e-300)]

    def data(part: Sequence[Row]) -> DataFrame:
        return spark.createDataFrame(list(part), spark_schema(EVENTS.schema))

    full = everything("a.b")  # a third of it says as much and is planned in a third of the time
    group = Group(full.input, full.keys, full.aggregates[::3] + SUMS.aggregates)
    whole: list[Row] = rows + special
    wanted = reference(group, {"E": whole})
    parts = [on_spark.partial(group, data(part)) for part in (whole[:20], whole[20:30], whole[30:])]
    first = on_spark.merge(group, parts[0].unionAll(parts[1]))
    assert first.schema.fieldNames() == list(partial_schema(group).names)
    assert [f.dataType for f in first.schema] == [f.dataType for f in spark_schema(partial_schema(group))]
    together = on_spark.final(group, on_spark.merge(group, first.unionAll(parts[2])))
    assert bags_equal([tuple(row) for row in together.collect()], wanted)
    held = [tuple(row) for row in first.collect()]
    taken_over = pl.DataFrame(held, schema=polars_schema(partial_schema(group)), orient="row")
    both = pl.concat([taken_over, embedded.partial(group, frame(whole[30:]))])
    assert bags_equal(embedded.final(group, embedded.merge(group, both)).rows(), wanted)


#: Sums of which parts are beyond all doubles, or of values that are infinite or no numbers among large ones.
BEYOND = (
    [1e308, 1e308, -1e308, -1e308],
    [1e308, 1e308, -1e308, -1e308, 0.25, 1e-300],
    [1.7e308, 1.7e308, 3.0],
    [-1.7e308, -1.7e308, 1.7e308],
    [2.0**901, 1e270, -(2.0**901), 7.0],
    [1.7e308, 1.7e308, -math.inf],
    [-1.7e308, -1.7e308, math.inf, 1.0],
    [math.inf, -math.inf, 1e308, 1e308],
    [1.7e308, 1.7e308, math.nan],
)


def of_keys(lists: Sequence[Sequence[float]]) -> tuple[Group, list[Row], list[tuple[int, float, float]]]:
    """Sums by key, the rows, and the exact results."""
    rows: list[Row] = [
        (0, key, None, value, None, None, None, None) for key, values in enumerate(lists) for value in values
    ]
    exact = [(key, sum_doubles(values), sum_doubles(values) / len(values)) for key, values in enumerate(lists)]
    return Group(SUMS.input, ("a.b",), SUMS.aggregates), rows, exact


def test_only_the_total_of_doubles_can_be_beyond_all() -> None:
    group, rows, exact = of_keys(BEYOND)
    wanted = [tuple(map(repr, row)) for row in exact]
    assert [tuple(map(repr, row)) for row in sorted(embedded.aggregate(group, frame(rows)).rows())] == wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MANY_ROWS", 0)
        assert [tuple(map(repr, row)) for row in sorted(embedded.aggregate(group, frame(rows)).rows())] == wanted


@pytest.mark.spark
def test_on_spark_only_the_total_of_doubles_can_be_beyond_all(spark: SparkSession) -> None:
    from tidegate.runtime.engines.spark.eval import aggregates as on_spark

    group, rows, exact = of_keys(BEYOND)
    data = spark.createDataFrame(rows, spark_schema(EVENTS.schema)).repartition(3)
    found = [tuple(row) for row in on_spark.final(group, on_spark.partial(group, data)).collect()]
    assert [tuple(map(repr, row)) for row in sorted(found)] == [tuple(map(repr, row)) for row in exact]


@pytest.mark.spark
def test_spark_sums_doubles_without_loss_and_only_totals_overflow(spark: SparkSession) -> None:
    from tidegate.runtime.engines.spark.eval import aggregates as on_spark
    from tidegate.runtime.engines.spark.eval.terms import raised_error

    values = cancelling(3, 2000)
    data = spark.createDataFrame(events(values), spark_schema(EVENTS.schema)).repartition(5)
    parts = on_spark.partial(SUMS, data.filter("x > 0.5")).unionAll(on_spark.partial(SUMS, data.filter("x <= 0.5")))
    for result in (
        on_spark.final(SUMS, on_spark.merge(SUMS, parts)),
        on_spark.final(SUMS, on_spark.partial(SUMS, data)),
    ):
        ((_, total, average),) = result.collect()
        assert math.isclose(total, math.fsum(values), rel_tol=1e-12)
        assert math.isclose(average, math.fsum(values) / len(values), rel_tol=1e-12)
    for numbers, expected in LIMITS[2:5]:
        rows = [(0, None, value, None, None, None, None, None) for value in numbers]
        result = on_spark.final(
            TOTAL, on_spark.partial(TOTAL, spark.createDataFrame(rows, spark_schema(EVENTS.schema)))
        )
        if expected is not None:
            assert [tuple(row) for row in result.collect()] == [(expected,)]
            continue
        with pytest.raises(Exception, match="total: the sum is out of range") as failure:
            result.collect()
        assert raised_error(failure.value) is not None


def test_a_decimal_sum_out_of_range_is_shown_with_its_scale() -> None:
    """With a hint that helps with sums."""
    payments = tg.stream("P", "t bigint, x decimal(18,2)", progress="t")
    program = tg.program(S=payments.group_by(end=tg.tumbling(payments.t, 10)).agg(x=tg.sum(payments.x)))
    with pytest.raises(EvaluationError) as failure:
        program.run({"P": [(1, "9999999999999999.99"), (2, "0.02")]}, on_error="fail")
    (problem,) = failure.value.problems
    assert problem.because == ("total = 10000000000000000.01",)
    assert "double" in problem.hint


# --- partial results of one segment ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("batches", "merges"), [(1, 0), (3, 1)])
def test_partial_results_of_one_segment_are_merged_with_none(
    batches: int, merges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are of different groups."""
    monkeypatch.setattr(small_rows, "MOST", -1)
    done = list[int]()

    def counted(group: Group, rows: pl.DataFrame) -> pl.DataFrame:
        done.append(rows.height)
        return embedded.merge(group, rows)

    monkeypatch.setattr(increment, "merge", counted)
    events = tg.stream("S", "k bigint, t bigint, v bigint", progress="t")
    groups = events.group_by(events.k, end=tg.ceil(events.t, 10)).agg(
        n=tg.count(), total=tg.sum(events.v), mean=tg.avg(events.v), last=tg.last(events.v, by=events.t)
    )
    with tg.program(R=groups).session() as session:
        for number in range(batches):
            session.push("S", [(1, 1 + number, 4), (2, 1 + number, 7), (1, 1 + number, 4)])
            session.step()
        session.advance("S", 10)
        session.step()
        found = sorted(tuple(row.values()) for row in session.results("R"))
    assert found == [(1, 10, 2 * batches, 8 * batches, 4.0, 4), (2, 10, batches, 7 * batches, 7.0, 7)]
    assert len(done) == merges


@pytest.mark.parametrize("most", [-1, small_rows.MOST])
def test_partial_results_of_all_strata_are_of_different_groups(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round begins at an event unless one began in the 10 ticks before it: each is found in a stratum of its own."""
    monkeypatch.setattr(small_rows, "MOST", most)
    events = tg.stream("Events", "t bigint", progress="t")
    rounds = tg.result("Rounds", "t bigint", progress="t")
    e, r = events.as_("e"), rounds.as_("r")
    begin = e.anti_join(r, r.t < e.t, e.t <= r.t + 10).select(t=e.t)
    counted = r.group_by(end=tg.ceil(r.t, 50)).agg(n=tg.count(), last=tg.max(r.t))
    program = tg.program(tg.query(rounds, begin), Counted=counted)
    rows = program.run({"Events": [(t,) for t in (1, 5, 11, 12, 20, 23, 40, 60)]}).rows("Counted")
    assert sorted(tuple(row.values()) for row in rows) == [(50, 4, 40), (100, 1, 60)]
