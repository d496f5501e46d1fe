"""Every aggregate, over every type at its limits: Polars and Spark agree with Python, whatever the order of rows."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidegate as tg
from tests.runtime.test_terms_conformance import ARROW
from tidegate.algebra.dsl.checks.suggestions import GROUP_METHODS
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import key_of
from tidegate.algebra.functions.aggregates import TABLE, Aggregate, Function
from tidegate.algebra.nodes import Group, Node, Scan
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import evaluate as reference
from tidegate.algebra.terms import Attr, Value
from tidegate.algebra.types import BIGINT, DOUBLE
from tidegate.runtime.engines.spark.eval.relational import evaluate as on_spark
from tidegate.runtime.engines.spark.eval.terms import held_type as spark_type
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.relational import evaluate as in_polars
from tidegate.runtime.testkit.conformance import TYPES, boundary_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema(
    (Attribute("g", BIGINT), Attribute("o", DOUBLE), *(Attribute(f"a{i}", type_) for i, type_ in enumerate(TYPES)))
)
ROWS = Scan(StreamDef("rows", SCHEMA, static=True))
#: Of doubles they have tests of their own, as integer sums that fail do (`test_aggregates.py`).
SUMS = frozenset({Function.SUM, Function.TRY_SUM, Function.AVG})


def aggregates() -> Iterator[Aggregate]:
    """Each with every argument that it takes, but for sums of doubles and sums that fail."""
    for entry in TABLE.values():
        for attribute in SCHEMA.names[2:]:
            by = Attr("o") if entry.ordered else None
            made = Aggregate(
                f"{entry.function.value} {attribute}",
                entry.function,
                Attr(attribute),
                by,
                entry.sample,
            )
            try:
                Group(ROWS, ("g",), (made,)).schema
            except QueryError:
                continue
            type_ = SCHEMA[attribute].type
            if entry.function not in SUMS or (type_ != DOUBLE and entry.function is not Function.SUM):
                yield made


def rows(seed: int) -> list[tuple[Value, ...]]:
    """Groups of one to thirty rows."""
    rng = random.Random(seed)
    return [
        (
            int(rng.random() ** 2 * 12),
            rng.choice((0.0, 1.5, -2.0, None)),
            *(rng.choice(boundary_values(t)) for t in TYPES),
        )
        for _ in range(120)
    ]


GROUP = Group(ROWS, ("g",), tuple(aggregates()))


def differences(node: Group, wanted: list[tuple[Value, ...]], got: list[tuple[Value, ...]]) -> list[str]:
    found = []
    for one, other in zip(sorted(wanted, key=repr_key), sorted(got, key=repr_key), strict=True):
        for name, want, have in zip(node.schema.names, one, other, strict=True):
            if key_of(want) != key_of(have):
                found.append(f"{name} of group {one[0]}: wanted {want!r}, got {have!r}")
    return found


def repr_key(row: tuple[Value, ...]) -> int:
    return int(row[0] or 0)


def expected(node: Node, data: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    return list(reference(node, {"rows": data}))


def frame(data: list[tuple[Value, ...]]) -> pl.DataFrame:
    return pl.DataFrame(data, schema=polars_schema(SCHEMA), orient="row")


def test_every_aggregate_is_compared() -> None:
    assert {made.function for made in GROUP.aggregates} == set(TABLE) - {Function.SUM}
    assert set(TABLE) == set(Function)


def test_every_aggregate_is_a_function_of_the_library_and_of_groups() -> None:
    for function in Function:
        assert function.value in tg.__all__
        assert f"tg.{function.value}(" in GROUP_METHODS[function.value]


def test_no_module_but_the_table_and_what_users_call_names_an_aggregate() -> None:
    """What the others do goes by the form and the facts of its entry. Folding makes sums and ends of its own, and so do
    windows of rows. Of row patterns some aggregates are compiled, and of matches it is their number that is counted.
    """
    library = Path(tg.__file__).parent
    sources = [path for room in ("algebra", "analysis", "runtime") for path in (library / room).rglob("*.py")]
    naming = {
        path.relative_to(library).as_posix()
        for path in sources
        if re.search(r"\bFunction\.[A-Z]", path.read_text(encoding="utf-8"))
    }
    folding = {f"runtime/plan/folding/{name}.py" for name in ("carriers", "weights")}
    folding |= {f"runtime/eval/aggregates/{name}.py" for name in ("fold_rows", "look_back_form")}
    hints = {
        "analysis/validity/calendar_parts.py",
        "analysis/validity/forms.py",
        "analysis/state/folding/runtime_limits.py",
    }
    text = {f"algebra/text/row_patterns/{name}.py" for name in ("navigations", "printer")}
    # Windows between rows count theirs, so as to leave out those without.
    users = {"algebra/dsl/aggregates.py", "algebra/dsl/windows/opened.py", *text}
    compiled = {
        *(f"analysis/ordered/sequences/{name}.py" for name in ("programs", "tables")),
        "algebra/ordered/sequences/certainty/counts.py",
        "runtime/ordered/sequences/measures.py",
    }
    counted = {
        "analysis/summaries.py",
        "algebra/ordered/match/counted.py",
        "algebra/ordered/sequences/counting/values.py",
        "runtime/ordered/sequences/counting/words.py",
    }
    known = {"algebra/functions/aggregates.py", "runtime/ordered/windows/layout.py", *users, *folding}
    known |= {"runtime/ordered/over/whole.py"}  # of those that keep every value
    assert naming == known | compiled | counted | hints


@pytest.mark.parametrize("seed", range(4))
def test_polars_agrees_with_python(seed: int) -> None:
    data = rows(seed)
    assert differences(GROUP, expected(GROUP, data), in_polars(GROUP, {0: frame(data)}).rows()) == []


def test_the_order_of_rows_does_not_matter() -> None:
    data = rows(1)
    assert differences(GROUP, expected(GROUP, data), expected(GROUP, data[::-1])) == []


@pytest.mark.spark
def test_spark_agrees_with_python(spark: SparkSession) -> None:
    import pyarrow as pa

    data = rows(0)
    table = pa.table(
        {a.name: pa.array([row[i] for row in data], ARROW[spark_type(a.type)]) for i, a in enumerate(SCHEMA.attributes)}
    )
    found = on_spark(GROUP, {0: spark.createDataFrame(table)}).collect()
    assert differences(GROUP, expected(GROUP, data), [tuple(row) for row in found]) == []


@pytest.mark.parametrize("function", [Function.VARIANCE, Function.STDDEV], ids=lambda one: one.value)
def test_a_variance_is_exact_for_values_that_are_close(function: Function) -> None:
    place, empty = SCHEMA.names.index("a2"), (1, *(None,) * (len(SCHEMA.names) - 1))
    data: list[tuple[Value, ...]] = [(*empty[:place], 1e9 + i, *empty[place + 1 :]) for i in range(3)]
    node = Group(ROWS, ("g",), (Aggregate("x", function, Attr("a2")),))
    assert in_polars(node, {0: frame(data)}).rows() == [(1, 1.0)]
