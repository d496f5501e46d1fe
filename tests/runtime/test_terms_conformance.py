"""Every operation, overload by overload, on boundary values: Python, Polars and Spark agree in type, value and
failure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest

from tidegate.algebra.errors import InternalError
from tidegate.algebra.evaluation import EvaluationError, evaluator, key_of
from tidegate.algebra.functions import doubles
from tidegate.algebra.nodes import Join, JoinKind, Scan
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.semantics import evaluate as reference
from tidegate.algebra.terms import Attr, Call, Lit, Value, call
from tidegate.algebra.typed.kernels import Kernel
from tidegate.algebra.typed.operations import KERNELS, OPERATIONS, resolve, term_type
from tidegate.algebra.typed.terms import typed_nodes
from tidegate.algebra.types import BIGINT, DATE, DOUBLE, INT64_MAX, INT64_MIN
from tidegate.runtime.engines.spark.eval.relational import evaluate as on_spark
from tidegate.runtime.engines.spark.eval.terms import compile_pair as spark_pair
from tidegate.runtime.engines.spark.eval.terms import held_type as spark_type
from tidegate.runtime.eval.functions.frame import Form, checked_forms
from tidegate.runtime.eval.small.terms import small_forms
from tidegate.runtime.eval.terms import PolarsTerms, compile_pair, held_type
from tidegate.runtime.testkit.conformance import Row, Sample, conformance_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARROW = {"boolean": pa.bool_(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
#: Planning grows faster than the number of columns, starting a job costs 0.3 s.
TERMS_PER_JOB = 50

TABLE = tuple(conformance_table())

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

    def agree(one: Value, other: Value) -> bool:
        return type(one) is type(other) and key_of(one) == key_of(other)

    return [
        f"{term_text(sample.term)} over {row}: wanted {want}, got {have}"
        for row, want, have in zip(sample.rows, wanted, got, strict=True)
        if want[1] != have[1] or (want[1] is None and not agree(want[0], have[0]))
    ]


def test_the_table_covers_every_operation_and_every_kernel() -> None:
    assert {row.operation.name for row in TABLE} >= set(OPERATIONS)
    assert all(row.samples for row in TABLE)
    assert {kernel for row in TABLE for kernel in row.kernels} == set(KERNELS)


@pytest.mark.parametrize("kernel", doubles.KERNELS, ids=lambda kernel: kernel.name)
def test_functions_of_doubles_agree_to_the_last_bit(kernel: Kernel) -> None:
    """On a thousand values of every size, not on limits alone."""
    rng = random.Random(kernel.name)
    term = Call(kernel.name, tuple(map(Attr, "ab"[: 2 if kernel.name in ("log", "power", "atan2") else 1])))
    drawn = [tuple(rng.gauss(0, 10.0 ** rng.randint(-8, 8)) for _ in term.args) for _ in range(1000)]
    sample = Sample(term, Schema(tuple(Attribute(name, DOUBLE) for name in "ab"[: len(term.args)])), tuple(drawn))
    assert differences(sample, python_outcomes(sample), polars_outcomes(sample)) == []


def test_a_table_of_forms_that_lacks_a_kernel_or_has_it_twice_is_an_error() -> None:
    forms = dict(PolarsTerms.forms)
    assert checked_forms("Polars", forms) == forms
    for families, said in (
        (({**forms, "other": Form(len)},), "of no kernel: other"),
        (({name: form for name, form in forms.items() if name != "trim"},), "Polars has no form of trim"),
        ((forms, {"trim": Form(len)}), "Polars has two forms of trim"),
        (({**forms, "mod_int": Form(len)},), "differ in what fails: .'mod_int'."),
    ):
        with pytest.raises(InternalError, match=said):
            checked_forms("Polars", *families)


def test_the_path_for_small_batches_knows_kernels_of_the_algebra_alone() -> None:
    assert small_forms() <= set(KERNELS)


def test_operations_that_are_called_infallible_never_fail() -> None:
    can_fail = {row.operation.name for row in TABLE if any(code for s in row.samples for _, code in python_outcomes(s))}
    declared = {row.operation.name for row in TABLE if row.operation.fallible}
    assert can_fail <= declared


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.operation.name)
def test_polars_agrees_with_python(row: Row) -> None:
    found = [d for sample in row.samples for d in differences(sample, python_outcomes(sample), polars_outcomes(sample))]
    assert not found, "\n".join(found[:10])


def spark_failures(spark: SparkSession, samples: Sequence[Sample]) -> list[str]:
    """One job for many samples: each has its own columns, shorter ones are padded with NULLs."""
    columns, arrays, wanted_types = [], {"row": pa.array(range(max(len(s.rows) for s in samples)), pa.int32())}, {}
    for i, sample in enumerate(samples):
        names = {name: f"{name} of `{i}`" for name in sample.schema}
        for place, attribute in enumerate(sample.schema.attributes):
            values = [row[place] for row in sample.rows] + [None] * (len(arrays["row"]) - len(sample.rows))
            arrays[names[attribute.name]] = pa.array(values, ARROW[spark_type(attribute.type)])
        compiled = spark_pair(sample.term, sample.schema, names)
        columns.append(compiled.value.alias(f"value{i}"))
        wanted_types[f"value{i}"] = spark_type(term_type(sample.term, sample.schema))
        if compiled.error is not None:
            columns.append(compiled.error.alias(f"error{i}"))
    # Of a table that Spark has at hand it computes terms before its optimizer has seen them.
    rows = spark.createDataFrame(pa.table(arrays)).repartition(1)
    result = rows.select("row", *columns)
    assert {name: type_ for name, type_ in result.dtypes if name.startswith("value")} == wanted_types
    out = sorted((row.asDict() for row in result.collect()), key=lambda row: int(row["row"]))
    found = []
    for i, sample in enumerate(samples):
        got = [(row[f"value{i}"], row.get(f"error{i}")) for row in out[: len(sample.rows)]]
        found += differences(sample, python_outcomes(sample), got)
    return found


def one_per_kernels(row: Row) -> list[Sample]:
    """The operation's last sample for each combination of kernels: the numeric types that convert come late."""
    found = {frozenset(n.kernel.name for n in typed_nodes(resolve(s.term, s.schema))): s for s in row.samples}
    return list(found.values())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("ansi", "every"),
    [
        ("true", False),
        pytest.param("true", True, marks=pytest.mark.long),
        pytest.param("false", True, marks=pytest.mark.long),
    ],
)
def test_spark_agrees_with_python(spark: SparkSession, ansi: str, *, every: bool) -> None:
    samples = [sample for row in TABLE for sample in (row.samples if every else one_per_kernels(row))]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        batches = [samples[i : i + TERMS_PER_JOB] for i in range(0, len(samples), TERMS_PER_JOB)]
        found = [text for batch in batches for text in spark_failures(spark, batch)]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before or "true")
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:40])


@pytest.mark.spark
def test_spark_keeps_the_constants_of_nested_terms_apart(spark: SparkSession) -> None:
    x, most, far = Attr("a0"), Lit(INT64_MAX, BIGINT), Lit(2**40, BIGINT)
    terms = {
        BIGINT: [
            call("add", call("add", x, most), most),
            call("add", most, call("add", most, x)),
            call("add", call("add", x, most), call("add", x, most)),
            call("mul", call("mul", x, far), far),
            call("mul", far, call("mul", Lit(-(2**23), BIGINT), x)),
            call("try_mul", call("try_mul", x, far), far),
        ],
        DATE: [call("add_months", x, Lit(months, BIGINT)) for months in (-1, 1, -4801, 4801)],
    }
    rows = ((INT64_MIN,), (INT64_MIN + 1,), (-1,), (0,), (1,), (INT64_MAX,), (None,))
    samples = [Sample(term, Schema((Attribute("a0", type_),)), rows) for type_, some in terms.items() for term in some]
    assert spark_failures(spark, samples) == []


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["left", "semi", "anti"])
def test_joins_by_what_python_computes_of_both_sides(spark: SparkSession, kind: JoinKind) -> None:
    left = Scan(StreamDef("L", Schema((Attribute("a", DOUBLE),)), static=True))
    right = Scan(StreamDef("R", Schema((Attribute("b", DOUBLE),)), static=True))
    node = Join(left, right, call("lt", call("sin", call("add", Attr("a"), Attr("b"))), Lit(0.5, DOUBLE)), kind)
    data = {"L": [(1.0,), (2.0,), (2.0,), (None,), (float("nan"),)], "R": [(1.0,), (-1.0,), (None,)]}
    frames = {place: spark.createDataFrame(data[name], f"{name} double") for place, name in enumerate("LR")}
    found = [tuple(row) for row in on_spark(node, {0: frames[0].toDF("a"), 1: frames[1].toDF("b")}).collect()]
    assert bags_equal(found, reference(node, data))
