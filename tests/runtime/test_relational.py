"""Both engines' evaluation of whole trees equals the reference semantics, as bags."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.strategies.trees import Case, cases
from tests.thresholds import THRESHOLDS, small
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Join, JoinKind, Rename, Scan, occurrences
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import Row, bags_equal
from tidegate.algebra.semantics import evaluate as reference
from tidegate.algebra.terms import Attr, Lit, call, conjunction
from tidegate.algebra.types import BIGINT, DOUBLE
from tidegate.runtime.eval.aggregates import compiled as grouping
from tidegate.runtime.eval.columns import polars_schema, spark_schema, stored_arrow_schema
from tidegate.runtime.eval.joins import ranges as joins
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.small.trees import Run, small_tree
from tidegate.runtime.rows import SmallRows, Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def embedded(case: Case) -> list[Row]:
    leaves = {
        i: pl.DataFrame(case.relations[s.name], schema=polars_schema(s.schema), orient="row")
        for i, s in enumerate(occurrences(case.node))
    }
    found = evaluate(case.node, leaves)
    assert found.schema == polars_schema(case.node.schema)
    return found.rows()


def few(case: Case) -> list[Row]:
    """The same by NumPy; `Unsupported` where it leaves the case to Polars."""
    leaves = {
        i: SmallRows.of(pl.DataFrame(case.relations[s.name], schema=polars_schema(s.schema), orient="row"))
        for i, s in enumerate(occurrences(case.node))
    }
    step = small_tree(case.node)
    if step is None:
        raise Unsupported
    found = step(Run(leaves))
    assert found.frame().schema == polars_schema(case.node.schema)
    assert found.table().schema == stored_arrow_schema(case.node.schema)
    return found.frame().rows()


def complete(case: Case) -> Case:
    """The case without rows that have a NULL or a NaN."""
    relations = {
        name: [row for row in rows if not any(value is None or value != value for value in row)]
        for name, rows in case.relations.items()
    }
    return Case(case.node, relations)


#: Sizes at which the evaluation of whole trees takes other ways.
SIZES = [
    one
    for one in THRESHOLDS
    if one.module in ("eval.joins.ranges", "eval.aggregates.compiled", "eval.aggregates.partials")
    and str(one) != "eval.joins.ranges.SMALL_PRODUCT"
]
SMALL_SIZES = [
    one
    for one in THRESHOLDS
    if one.module in ("eval.small.joins", "eval.small.groups") or str(one) == "rows.MOST_PAIRS"
]


def check_small(case: Case) -> bool:
    """Whether NumPy takes the case; if it does, it has to be right."""
    try:
        found = few(case)
    except Unsupported:
        return False
    wanted = reference(case.node, case.relations)
    assert bags_equal(found, wanted), f"few rows: {found} is not {wanted}"
    return True


def check_embedded(case: Case) -> None:
    wanted = reference(case.node, case.relations)
    found = embedded(case)
    assert bags_equal(found, wanted), f"{found} is not {wanted}"
    rng = random.Random(repr(case.relations))
    with small(rng.choice(SMALL_SIZES)):
        check_small(complete(case))
    check_small(complete(case))
    # The ways that joins take with many rows: as in production, and with one more size set to small by itself.
    with patch.object(joins, "SMALL_PRODUCT", -1):
        for threshold in (None, *rng.sample(SIZES, 1)):
            with small(threshold):
                found = embedded(case)
            assert bags_equal(found, wanted), f"many rows, {threshold} small: {found} is not {wanted}"
    # And all together: pairs searched for although keys are equal, and seen a few at a time.
    with (
        patch.object(joins, "SMALL_PRODUCT", -1),
        patch.object(joins, "PAIRS_PER_ROW", 0),
        patch.object(joins, "CHUNK", 3),
    ):
        found = embedded(case)
        assert bags_equal(found, wanted), f"searched: {found} is not {wanted}"
        with patch.object(joins, "MANY_PAIRS", 0):
            found = embedded(case)
        assert bags_equal(found, wanted), f"in pieces: {found} is not {wanted}"
        with patch.object(grouping, "MANY_ROWS", 0):
            found = embedded(case)
        assert bags_equal(found, wanted), f"compiled: {found} is not {wanted}"


@given(cases())
@settings(max_examples=150, deadline=None, suppress_health_check=UNHURRIED)
def test_trees_mean_the_same_embedded(case: Case) -> None:
    check_embedded(case)


@pytest.mark.long
@given(cases())
@settings(max_examples=5000, deadline=None, suppress_health_check=UNHURRIED)
def test_many_trees_mean_the_same_embedded(case: Case) -> None:
    check_embedded(case)


def on_spark(spark: SparkSession, case: Case) -> list[Row]:
    from tidegate.runtime.engines.spark.eval.relational import evaluate as evaluate_on_spark

    leaves = {
        i: spark.createDataFrame(list(case.relations[s.name]), spark_schema(s.schema))
        for i, s in enumerate(occurrences(case.node))
    }
    result = evaluate_on_spark(case.node, leaves)
    assert [field.dataType for field in result.schema] == [field.dataType for field in spark_schema(case.node.schema)]
    assert result.columns == list(case.node.schema.names)
    return [tuple(row) for row in result.collect()]


def check_on_spark(spark: SparkSession, case: Case) -> None:
    wanted = reference(case.node, case.relations)
    found = on_spark(spark, case)
    assert bags_equal(found, wanted), f"{found} is not {wanted}"


@pytest.mark.spark
@given(case=cases())
@settings(max_examples=24, deadline=None, suppress_health_check=UNHURRIED, phases=[Phase.generate])
def test_trees_mean_the_same_on_spark(spark: SparkSession, case: Case) -> None:
    check_on_spark(spark, case)


@pytest.mark.spark
@pytest.mark.long
@given(case=cases())
@settings(max_examples=400, deadline=None, suppress_health_check=UNHURRIED, phases=[Phase.generate])
def test_many_trees_mean_the_same_on_spark(spark: SparkSession, case: Case) -> None:
    check_on_spark(spark, case)


LEFT = StreamDef("L", Schema((Attribute("k", BIGINT), Attribute("x", BIGINT), Attribute("y", BIGINT))), static=True)
RIGHT = StreamDef("R", Schema((Attribute("k2", BIGINT), Attribute("z", DOUBLE))), static=True)
RATIO = call("gt", call("div", Attr("x"), Attr("y")), Attr("z"))
GUARD = call("ne", Attr("y"), Lit(0, BIGINT))
SAME = call("eq", Attr("k"), Attr("k2"))
FAILING = Case(
    Join(Scan(LEFT), Scan(RIGHT), conjunction([SAME, RATIO]), "semi"),
    {"L": [(1, 4, 2), (1, 1, 0), (2, 1, 0)], "R": [(1, 1.0), (None, 1.0)]},
)
KINDS: tuple[JoinKind, ...] = ("inner", "left", "anti")
GUARDED = [
    Case(Join(Scan(LEFT), Scan(RIGHT), condition, kind), FAILING.relations)
    for condition in (conjunction([SAME, GUARD, RATIO]), conjunction([GUARD, RATIO]))
    for kind in KINDS
]


def test_a_condition_that_can_fail_stays_behind_its_guard() -> None:
    for case in GUARDED:
        check_embedded(case)
    with pytest.raises(EvaluationError, match="division by zero"):
        embedded(FAILING)


@pytest.mark.spark
def test_on_spark_a_condition_that_can_fail_stays_behind_its_guard(spark: SparkSession) -> None:
    for case in GUARDED[::2]:
        check_on_spark(spark, case)
    with pytest.raises(Exception, match="division by zero"):
        on_spark(spark, FAILING)


def test_a_count_of_a_join_by_ranges_counts_its_rows() -> None:
    """No column of the join is asked for: frames without columns have no height."""
    condition = call("lt", Attr("x"), Attr("k2"))
    count = Group(Join(Scan(LEFT), Scan(RIGHT), condition, "inner"), (), (Aggregate("rows", Function.COUNT),))
    case = Case(count, {"L": [(1, 0, 0), (1, 5, 0)], "R": [(1, 0.0), (2, 0.0)]})
    assert embedded(case) == [(2,)]


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("op", ["eq", "eq_null_safe"])
def test_nan_meets_nan_in_sorted_columns(kind: JoinKind, op: str) -> None:
    """Found at random: Polars joined sorted keys without their NaN, and a single row counts as sorted."""
    renamed = Rename(Scan(RIGHT), (("k2", "other k2"), ("z", "other z")))
    same = call(op, Attr("z"), Attr("other z"))
    for values in ([math.nan], [1.0, math.nan, math.nan], [None, -0.0, 0.0, math.nan]):
        for condition in (same, conjunction([same, call("le", Attr("k2"), Attr("other k2"))])):
            relations = {"R": [(1, value) for value in values]}
            check_embedded(Case(Join(Scan(RIGHT), renamed, condition, kind), relations))
