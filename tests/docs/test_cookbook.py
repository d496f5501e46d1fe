"""Recipes of the cookbook have the rows of a query in DuckDB, and of the Spark SQL that some have beside them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import tidegate as tg
from tools.docs_pages import ROOT, blocks, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "how-to" / "cookbook.md"
TEXT = PAGE.read_text(encoding="utf-8")
#: What each question is headed by, in the page and in the file of the queries that judge.
QUESTIONS = {
    TEXT.count("\n", 0, found.start()) + 1: found[1] for found in re.finditer(r"^## (.+)$", TEXT, re.MULTILINE)
}
JUDGES = dict(
    re.findall(
        r"^-- # (.+)\n((?:.+\n)+)", (Path(__file__).parent / "cookbook.sql").read_text(encoding="utf-8"), re.MULTILINE
    )
)
SQL_TYPES = {"string": "varchar", "timestamp": "timestamp"}
FLINK, SPARK = "-- Flink SQL\n", "-- Spark SQL\n"
#: What DuckDB alone says so: none of it belongs into the page.
OF_DUCKDB = re.compile(
    r'\bASOF\b|DISTINCT ON|time_bucket|generate_series|QUALIFY|GROUP BY ALL|EXISTS \(\s*FROM|list_filter|::|"|\bSEMI JOIN\b(?<!LEFT SEMI JOIN)'
)

Inputs = Mapping[str, Sequence[tuple[Any, ...]]]


def question_of(line: int) -> str:
    return QUESTIONS[max(at for at in QUESTIONS if at < line)]


SQL = [(question_of(block.line), block.body) for block in blocks(TEXT) if block.language == "sql"]
ON_SPARK = {question: body for question, body in SQL if body.startswith(SPARK)}


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[tg.Program, Inputs]]:
    """Programs and inputs by their question."""
    found = {}
    for ran in run(PAGE, tmp_path_factory.mktemp("cookbook")):
        if hasattr(ran.module, "program"):
            found[question_of(ran.block.line)] = ran.module.program, ran.module.inputs
    return found


def in_duckdb(program: tg.Program, inputs: Inputs, query: str) -> list[Any]:
    database = duckdb.connect()
    for stream in program.definition.inputs:
        columns = [f'"{a.name}" {SQL_TYPES.get(str(a.type), str(a.type))}' for a in stream.schema.attributes]
        database.execute(f"CREATE TABLE {stream.name} ({', '.join(columns)})")
        marks = ", ".join("?" * len(columns))
        insert = f"INSERT INTO {stream.name} VALUES ({marks})"  # noqa: S608  # names of the page's own
        database.executemany(insert, [list(row) for row in inputs[stream.name]])
    return database.execute(query).fetchall()


def on_spark(spark: SparkSession, program: tg.Program, inputs: Inputs, query: str) -> list[tuple[object, ...]]:
    """The rows of a query in Spark, instants as those of UTC."""
    for stream in program.definition.inputs:
        columns = [(a.name, str(a.type)) for a in stream.schema.attributes]
        given = ", ".join(f"`{name}` {'string' if type_ == 'timestamp' else type_}" for name, type_ in columns)
        rows = spark.createDataFrame([tuple(row) for row in inputs[stream.name]], given)
        rows.selectExpr(*(f"CAST(`{name}` AS {type_}) AS `{name}`" for name, type_ in columns)).createOrReplaceTempView(
            stream.name
        )
    found = spark.sql(query)
    instants = [type_ == "timestamp" for _, type_ in found.dtypes]
    texts = found.selectExpr(
        *(
            f"CAST(`{name}` AS string) AS `{name}`" if at else f"`{name}`"
            for name, at in zip(found.columns, instants, strict=True)
        )
    )
    return [
        tuple(
            dt.datetime.fromisoformat(value) if at and value is not None else value
            for value, at in zip(row, instants, strict=True)
        )
        for row in texts.collect()
    ]


def plain(row: Sequence[object]) -> tuple[object, ...]:
    return tuple(value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value for value in row)


def rounded(row: Sequence[object]) -> tuple[object, ...]:
    """With doubles that differ in their last digits as one; zero has no sign."""
    return tuple(round(value, 9) + 0.0 if isinstance(value, float) else value for value in plain(row))


def results_of(program: tg.Program, inputs: Inputs) -> list[tuple[object, ...]]:
    results = program.run(inputs)
    return [tuple(row.values()) for row in results.rows(*results)]


@pytest.mark.parametrize("question", JUDGES)
def test_a_recipe_has_the_rows_of_its_judge(question: str, recipes: Mapping[str, tuple[tg.Program, Inputs]]) -> None:
    program, inputs = recipes[question]
    found = list(map(plain, results_of(program, inputs)))
    assert found
    assert sorted(found, key=str) == sorted(map(plain, in_duckdb(program, inputs, JUDGES[question])), key=str)


@pytest.mark.spark
@pytest.mark.parametrize("question", ON_SPARK)
def test_a_recipe_has_the_rows_of_sparks_sql_beside_it(
    question: str, recipes: Mapping[str, tuple[tg.Program, Inputs]], spark: SparkSession
) -> None:
    program, inputs = recipes[question]
    found = sorted(map(rounded, results_of(program, inputs)), key=str)
    assert found == sorted(map(rounded, on_spark(spark, program, inputs, ON_SPARK[question])), key=str)


def test_every_recipe_is_looked_at(recipes: Mapping[str, tuple[tg.Program, Inputs]]) -> None:
    assert [*JUDGES] != []
    assert {*recipes} == {*JUDGES} == {*QUESTIONS.values()}
    assert [question for question, _ in SQL] == [*QUESTIONS.values()]


@pytest.mark.parametrize(("question", "body"), SQL, ids=[question for question, _ in SQL])
def test_the_sql_of_a_recipe_is_of_the_dialect_that_it_says(question: str, body: str) -> None:
    assert body.startswith((FLINK, SPARK)), question
    assert OF_DUCKDB.findall(body) == []
    intervals = re.findall(r"INTERVAL (\S+)", body)
    if body.startswith(FLINK):
        assert all(re.fullmatch(r"'\d+'", number) for number in intervals), "Flink's intervals are quoted"
        assert re.findall(r"LATERAL VIEW|LEFT (?:SEMI|ANTI) JOIN|\bwindow\(|->", body) == []
    else:
        assert all(re.fullmatch(r"\d+", number) for number in intervals)
        assert re.findall(r"TABLE\(|DESCRIPTOR|MATCH_RECOGNIZE|SYSTEM_TIME", body) == []


def test_words_of_duckdb_are_found() -> None:
    words = ['SELECT "a"', "A ASOF JOIN B", "x::int", "A SEMI JOIN B", "WHERE EXISTS (FROM B)", "GROUP BY ALL"]
    assert all(OF_DUCKDB.search(text) for text in words)
    assert not OF_DUCKDB.search("A LEFT SEMI JOIN B")
