"""Both engines' evaluation of whole trees equals the reference semantics, as bags."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

from tests.strategies.trees import Case, cases
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.semantics import Row, bags_equal
from tidegate.algebra.semantics import evaluate as reference
from tidegate.runtime.columns import polars_schema
from tidegate.runtime.embedded.relational import evaluate

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


@given(cases())
@settings(max_examples=300, deadline=None, suppress_health_check=UNHURRIED)
def test_trees_mean_the_same_embedded(case: Case) -> None:
    check_embedded(case)


@pytest.mark.long
@given(cases())
@settings(max_examples=5000, deadline=None, suppress_health_check=UNHURRIED)
def test_many_trees_mean_the_same_embedded(case: Case) -> None:
    check_embedded(case)
