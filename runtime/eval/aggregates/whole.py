"""Aggregates that keep every value of a group. Python computes them on both engines."""

from __future__ import annotations

import polars as pl

from tidegate.algebra.evaluation import aggregate as value_of
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.types import DataType
from tidegate.runtime.eval.functions.shared import held_type


def whole_groups(aggregate: Aggregate, argument: DataType, result: DataType, groups: pl.Series) -> pl.Series:
    """Computes the aggregate of each group from the list of its values `v` and that of their orders `by`."""
    results = []
    for members in groups.to_list():
        values, orders = [member["v"] for member in members], [member["by"] for member in members]
        results.append(value_of(aggregate.function, values, orders, argument, aggregate.name, aggregate.parameter))
    return pl.Series(groups.name, results, dtype=held_type(result))
