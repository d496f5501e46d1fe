"""Every operation, overload by overload, on boundary values: Python, Polars and Spark agree in type, value and failure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tidegate.algebra.evaluation import EvaluationError, evaluator, key_of
from tidegate.algebra.kernels import SPECIAL, STRICT
from tidegate.algebra.operations import OPERATIONS, resolve
from tidegate.algebra.terms import Value, term_type
from tidegate.runtime.embedded.terms import compile_pair, held_type
from tidegate.runtime.operations import Row, Sample, conformance_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = tuple(conformance_table())
#: Library functions that are not correctly rounded everywhere.
APPROXIMATE = frozenset({"exp", "ln", "power"})

#: A value, or the last digit of its failure's code.
Outcome = tuple[Value, int | None]


def python_outcomes(sample: Sample) -> list[Outcome]:
    evaluate = evaluator(resolve(sample.term, sample.schema))
    found: list[Outcome] = []
    for row in sample.rows:
        try:
            found.append((evaluate(dict(zip(sample.schema.names, row, strict=True))), None))
        except EvaluationError as error:
            found.append((None, int(error.code[-1])))
    return found


def polars_outcomes(sample: Sample) -> list[Outcome]:
    columns = [
        pl.Series(attribute.name, [row[i] for row in sample.rows], dtype=held_type(attribute.type))
        for i, attribute in enumerate(sample.schema.attributes)
    ]
    compiled = compile_pair(sample.term, sample.schema)
    error = pl.lit(None, dtype=pl.Int8) if compiled.error is None else compiled.error
    found = pl.DataFrame(columns).select(value=compiled.value, error=error)
    assert found.schema["value"] == held_type(term_type(sample.term, sample.schema))
    return found.rows()


def differences(sample: Sample, wanted: Sequence[Outcome], got: Sequence[Outcome]) -> list[str]:
    """What differs, row by row; NaN is NaN, -0.0 is 0.0."""
    op = getattr(sample.term, "op", "")

    def agree(one: Value, other: Value) -> bool:
        if type(one) is not type(other):
            return False
        if op in APPROXIMATE and isinstance(one, float) and isinstance(other, float) and math.isfinite(one):
            return math.isclose(one, other, rel_tol=1e-12)
        return key_of(one) == key_of(other)

    return [
        f"{op}{row}: wanted {want}, got {have}"
        for row, want, have in zip(sample.rows, wanted, got, strict=True)
        if want[1] != have[1] or (want[1] is None and not agree(want[0], have[0]))
    ]


def test_the_table_covers_every_operation_and_every_kernel() -> None:
    assert {row.operation.name for row in TABLE} >= set(OPERATIONS)
    assert all(row.samples for row in TABLE)
    assert {kernel for row in TABLE for kernel in row.kernels} >= set(STRICT) | SPECIAL


def test_operations_that_are_called_infallible_never_fail() -> None:
    can_fail = {row.operation.name for row in TABLE if any(code for s in row.samples for _, code in python_outcomes(s))}
    declared = {row.operation.name for row in TABLE if row.operation.fallible}
    assert can_fail <= declared


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.operation.name)
def test_polars_agrees_with_python(row: Row) -> None:
    found = [d for sample in row.samples for d in differences(sample, python_outcomes(sample), polars_outcomes(sample))]
    assert not found, "\n".join(found[:10])


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_agrees_with_python(spark: SparkSession, ansi: str) -> None:
    """One job per combination of attribute types, with all terms over it as columns."""
    from tidegate.runtime.spark.terms import compile_pair as spark_pair
    from tidegate.runtime.spark.terms import held_type as spark_type

    groups: dict[tuple[object, ...], list[Sample]] = {}
    # Without ANSI mode a third of the samples shows that nothing depends on it.
    samples = [s for row in TABLE for s in row.samples][:: 1 if ansi == "true" else 3]
    for sample in samples:
        groups.setdefault((sample.schema, sample.rows[:1], len(sample.rows)), []).append(sample)
    found: list[str] = []
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for together in groups.values():
            schema, rows = together[0].schema, together[0].rows
            ddl = ", ".join(f"{a.name} {spark_type(a.type)}" for a in schema.attributes)
            frame = spark.createDataFrame([(i, *row) for i, row in enumerate(rows)], f"row int, {ddl}")
            columns = []
            for i, sample in enumerate(together):
                compiled = spark_pair(sample.term, schema)
                columns.append(compiled.value.alias(f"value{i}"))
                if compiled.error is not None:
                    columns.append(compiled.error.alias(f"error{i}"))
            result = frame.select("row", *columns)
            wanted_types = {f"value{i}": spark_type(term_type(s.term, schema)) for i, s in enumerate(together)}
            assert {k: v for k, v in result.dtypes if k.startswith("value")} == wanted_types
            out = sorted((row.asDict() for row in result.collect()), key=lambda row: row["row"])
            for i, sample in enumerate(together):
                got = [(row[f"value{i}"], row.get(f"error{i}")) for row in out]
                found += differences(sample, python_outcomes(sample), got)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before or "true")
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:40])
