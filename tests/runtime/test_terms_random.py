"""Random nested terms over boundary values: Polars yields what Python yields, or fails on the same row in the same
way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.test_terms_conformance import TABLE, spark_failures
from tidegate.algebra.evaluation import EvaluationError, Evaluator, Values, evaluator, key_of
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Call, Lit, Term, Value, attributes_of, call
from tidegate.algebra.typed.operations import operation, resolve, term_type
from tidegate.algebra.types import BIGINT, DOUBLE, DURATION, TIMESTAMP, DataType
from tidegate.runtime.eval.terms import PolarsTerms, compile_pair, compile_term, held_type
from tidegate.runtime.testkit.conformance import TYPES, Sample, boundary_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTRIBUTES = tuple(Attribute(f"{type_.kind.value}{i}{side}", type_) for i, type_ in enumerate(TYPES) for side in "ab")
SCHEMA = Schema(ATTRIBUTES)
LAZY = frozenset({"and", "or", "if", "coalesce"})


@dataclass(frozen=True)
class Overload:
    """An operation with the types it takes, the constants that follow them, and the type it yields."""

    op: str
    takes: tuple[DataType, ...]
    constants: tuple[Term, ...]
    result: DataType


def overloads() -> Iterator[Overload]:
    for row in TABLE:
        for sample in row.samples:
            assert isinstance(sample.term, Call)
            takes = tuple(attribute.type for attribute in sample.schema.attributes)
            first = row.operation.constants_first
            constants = sample.term.args[: -len(takes)] if first else sample.term.args[len(takes) :]
            yield Overload(sample.term.op, takes, constants, term_type(sample.term, sample.schema))


OVERLOADS = tuple(overloads())


def random_term(rng: random.Random, depth: int, wanted: DataType | None = None) -> Term:
    """A term of the wanted type, or of any: an operation first, every fourth a lazy one, then its operands."""
    if depth == 0 and wanted is not None:
        return random_leaf(rng, wanted)
    fitting = [o for o in OVERLOADS if wanted is None or o.result == wanted]
    lazy = [o for o in fitting if o.op in LAZY]
    # Operations, not overloads, are equally likely: comparisons have hundreds.
    op = rng.choice(sorted({o.op for o in (lazy if lazy and rng.random() < 0.25 else fitting)}))
    chosen = rng.choice([o for o in fitting if o.op == op])
    operands = [random_term(rng, rng.randrange(max(depth, 1)), type_) for type_ in chosen.takes]
    if operation(op).constants_first:
        return Call(op, (*chosen.constants, *operands))
    return Call(op, (*operands, *chosen.constants))


def random_leaf(rng: random.Random, type_: DataType) -> Term:
    if rng.random() < 0.8:
        return Attr(rng.choice([a.name for a in ATTRIBUTES if a.type == type_]))
    return Lit(rng.choice(boundary_values(type_)), type_)


def frame_of(rows: list[dict[str, Value]]) -> pl.DataFrame:
    return pl.DataFrame([pl.Series(a.name, [row[a.name] for row in rows], dtype=held_type(a.type)) for a in ATTRIBUTES])


def same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and key_of(one) == key_of(other)


def outcome(python: Evaluator, row: Values) -> tuple[Value, int | None]:
    """What Python yields, and why it fails."""
    try:
        return python(row), None
    except EvaluationError as failure:
        return None, int(failure.code[-1])


def check(seed: int, terms: int, rows: int) -> int:
    """Compares random terms on random rows; how many of the outcomes were failures."""
    rng = random.Random(seed)
    data: list[dict[str, Value]] = [
        {a.name: rng.choice(boundary_values(a.type)) for a in ATTRIBUTES} for _ in range(rows)
    ]
    frame, failures = frame_of(data), 0
    for _ in range(terms):
        term = random_term(rng, rng.randint(1, 4))
        python, compiled = evaluator(resolve(term, SCHEMA)), compile_pair(term, SCHEMA)
        error = pl.lit(None, dtype=pl.Int8) if compiled.error is None else compiled.error
        found = frame.with_columns(value=compiled.value, error=error).select("value", "error").rows()
        for row, (value, code) in zip(data, found, strict=True):
            wanted, failed = outcome(python, row)
            failures += failed is not None
            if failed != code or (failed is None and not same(wanted, value)):
                read = {name: row[name] for name in sorted(attributes_of(term))}
                pytest.fail(f"{term_text(term)} over {read}: {wanted!r}, failure {failed}; Polars: {value!r}, {code}")
    return failures


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_random_terms(seed: int) -> None:
    check(seed, terms=10, rows=20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_many_random_terms(seed: int) -> None:
    # Both outcomes must occur, or the terms say nothing about failures.
    assert 0 < check(seed, terms=250, rows=20) < 250 * 20


@pytest.mark.spark
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_random_terms_on_spark(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    rows = tuple(tuple(rng.choice(boundary_values(a.type)) for a in ATTRIBUTES) for _ in range(40))
    samples = [Sample(random_term(rng, rng.randint(1, 4)), SCHEMA, rows) for _ in range(40)]
    found = spark_failures(spark, samples)
    assert not found, "\n".join(found[:10])


def test_the_first_row_that_fails_is_shown_as_python_shows_it() -> None:
    term = call("div", Attr("bigint1a"), Attr("bigint1b"))
    rows = [dict.fromkeys(SCHEMA.names, None) | {"bigint1a": a, "bigint1b": b} for a, b in [(1, 2), (3, 0), (5, 0)]]
    with pytest.raises(EvaluationError) as wanted:
        evaluator(resolve(term, SCHEMA))(rows[1])
    frame, value = frame_of(rows), compile_term(term, SCHEMA)
    with pytest.raises(EvaluationError) as eager:
        frame.with_columns(x=value)
    with pytest.raises(EvaluationError) as lazy:
        frame.lazy().filter(value > 0).collect()
    assert eager.value.problems == lazy.value.problems == wanted.value.problems


def test_division_is_rounded_alike_for_constants_and_single_rows() -> None:
    term = call("div", Attr("a"), Lit(-0.000149, DOUBLE))
    schema = Schema((Attribute("a", DOUBLE),))
    for rows in (1, 2, 1000):
        frame = pl.DataFrame({"a": [1000.0] * rows})
        assert set(frame.select(x=compile_term(term, schema))["x"]) == {1000.0 / -0.000149}


@pytest.mark.parametrize("exponent", [0.5, 2.0, 3.0, -1.0])
def test_powers_are_alike_for_constant_exponents(exponent: float) -> None:
    schema = Schema((Attribute("a", DOUBLE),))
    frame = pl.DataFrame({"a": [-0.000149, 0.1, 3.7, 1e100]})
    term = call("power", Attr("a"), Lit(exponent, DOUBLE))
    wanted = [evaluator(resolve(term, schema))({"a": a}) for a in frame["a"]]
    assert list(map(repr, frame.select(x=compile_term(term, schema))["x"])) == list(map(repr, wanted))


def test_nothing_fails_on_no_rows() -> None:
    constant = call("idiv", Lit(1, BIGINT), Lit(0, BIGINT))
    assert frame_of([]).filter(compile_term(constant, SCHEMA) == 1).is_empty()


def test_what_cannot_fail_stays_a_plain_expression() -> None:
    schema = Schema(tuple(Attribute(name, TIMESTAMP, nullable=False, temporal=True) for name in "tu"))
    term = call("lt", call("sub", Attr("t"), Attr("u")), Lit(5, DURATION))
    assert compile_pair(term, schema).error is None
    assert "python_udf" not in str(compile_term(term, schema))


def chain(op: str, length: int) -> tuple[Term, Schema]:
    """An operation over so many integers, one after the other, and what it reads."""
    schema = Schema(tuple(Attribute(f"a{i}", BIGINT) for i in range(length)))
    terms: list[Term] = [Attr(name) for name in schema.names]
    return reduce(lambda left, right: call(op, left, right), terms), schema


@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_large_terms_are_what_python_yields(op: str) -> None:
    term, schema = chain(op, 40)
    guarded = call("if", call("lt", Attr("a0"), Lit(0, BIGINT)), Lit(0, BIGINT), term)
    rows: list[dict[str, Value]] = [dict.fromkeys(schema.names, value) for value in (0, 1, -1, None, 2**62, -(2**62))]
    ones: dict[str, Value] = dict.fromkeys(schema.names, 1)
    rows += [ones | {"a0": -1, "a39": 2**62, "a38": 2**62}, ones | {"a7": None}]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(schema.names, pl.Int64()))
    for large in (term, guarded):
        compiled, python = compile_pair(large, schema), evaluator(resolve(large, schema))
        assert compiled.error is not None
        found = frame.select(value=compiled.value, error=compiled.error)
        for row, (value, code) in zip(rows, found.rows(), strict=True):
            wanted, failed = outcome(python, row)
            assert code == failed
            assert failed is not None or value == wanted
        assert found["error"].null_count() not in (0, len(rows))
        assert frame.clear().select(value=compiled.value, error=compiled.error).is_empty()


def test_expressions_of_large_terms_grow_with_their_length() -> None:
    def written(length: int) -> int:
        terms, (term, schema) = PolarsTerms(), chain("add", length)
        last = terms.compile(resolve(term, schema))
        assert last.error is not None
        return sum(len(str(part)) for step in [*terms.steps.all, [last.value, last.error]] for part in step)

    assert written(100) < 2.5 * written(50)


def test_a_column_of_a_step_goes_with_the_last_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    term, schema = chain("add", 60)
    value = compile_pair(term, schema).value
    frame, select = pl.DataFrame({name: [1] for name in schema.names}), pl.DataFrame.select
    widths: list[int] = []

    def watched(self: pl.DataFrame, columns: list[pl.Expr]) -> pl.DataFrame:
        widths.append(self.width)
        return select(self, columns)

    monkeypatch.setattr(pl.DataFrame, "select", watched)
    assert frame.select([value]).item() == 60
    assert len(widths) > 20
    assert widths == sorted(widths, reverse=True)
