"""Both engines' evaluation of whole trees equals the reference semantics, as bags."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.strategies.trees import Case, cases
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.semantics import Row, bags_equal
from tidegate.algebra.semantics import evaluate as reference
from tidegate.runtime.columns import polars_schema, spark_schema
from tidegate.runtime.embedded import joins
from tidegate.runtime.embedded.relational import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def embedded(case: Case) -> list[Row]:
    leaves = {
        i: pl.DataFrame(case.relations[s.name], schema=polars_schema(s.schema), orient="row").lazy()
        for i, s in enumerate(occurrences(case.node))
    }
    found = evaluate(case.node, leaves).collect()
    assert found.schema == polars_schema(case.node.schema)
    return found.rows()


def check_embedded(case: Case) -> None:
    wanted = reference(case.node, case.relations)
    found = embedded(case)
    assert bags_equal(found, wanted), f"{found} is not {wanted}"
    # The ways that joins take with many rows: pairs searched for although keys are equal, and seen a few at a time.
    with patch.object(joins, "FEW_PAIRS", 0), patch.object(joins, "CHUNK", 3):
        found = embedded(case)
    assert bags_equal(found, wanted), f"searched: {found} is not {wanted}"


@given(cases())
@settings(max_examples=400, deadline=None, suppress_health_check=UNHURRIED)
def test_trees_mean_the_same_embedded(case: Case) -> None:
    check_embedded(case)


@pytest.mark.long
@given(cases())
@settings(max_examples=5000, deadline=None, suppress_health_check=UNHURRIED)
def test_many_trees_mean_the_same_embedded(case: Case) -> None:
    check_embedded(case)


def check_on_spark(spark: SparkSession, case: Case) -> None:
    from tidegate.runtime.spark.relational import evaluate as evaluate_on_spark

    wanted = reference(case.node, case.relations)
    leaves = {
        i: spark.createDataFrame(list(case.relations[s.name]), spark_schema(s.schema))
        for i, s in enumerate(occurrences(case.node))
    }
    result = evaluate_on_spark(case.node, leaves)
    assert [field.dataType for field in result.schema] == [field.dataType for field in spark_schema(case.node.schema)]
    assert result.columns == list(case.node.schema.names)
    found = [tuple(row) for row in result.collect()]
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
