"""Spark's plans of increments: progress reaches the files, equalities become hash joins."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import tidegate as tg

events = tg.stream("E", "k bigint, t bigint, v double", progress="t")


@pytest.mark.spark
def test_relevance_is_pushed_into_the_files_and_equalities_are_join_keys(spark: SparkSession) -> None:
    a, b = events.as_("a"), events.as_("b")
    lonely = a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5).select(k=a.k, t=a.t)
    counted = events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count())
    plans = tg.program(Lonely=lonely, Counted=counted).explain().spark(spark)
    assert set(plans) == {"Lonely", "Counted"}
    assert "PushedFilters" in plans["Lonely"]
    assert "GreaterThan(t,1000000000)" in plans["Lonely"]
    assert "LeftAnti" in plans["Lonely"]
    assert "CartesianProduct" not in plans["Lonely"]
    assert "HashAggregate" in plans["Counted"]
