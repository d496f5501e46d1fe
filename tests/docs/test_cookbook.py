"""Recipes of the cookbook have the rows that the SQL beside them has in DuckDB."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pytest

import tidegate as tg
from tools.docs_pages import ROOT, blocks, run

PAGE = ROOT / "docs" / "how-to" / "cookbook.md"
SQL = {block.line: block.body for block in blocks(PAGE.read_text(encoding="utf-8")) if block.language == "sql"}
SQL_TYPES = {"string": "varchar", "timestamp": "timestamp"}

Inputs = Mapping[str, Sequence[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[tg.Program, Inputs]]:
    """Programs and inputs by the line of the SQL that follows."""
    found = {}
    for ran in run(PAGE, tmp_path_factory.mktemp("cookbook")):
        if hasattr(ran.module, "program"):
            found[min(line for line in SQL if line > ran.block.line)] = ran.module.program, ran.module.inputs
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


def plain(row: Sequence[object]) -> tuple[object, ...]:
    return tuple(value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value for value in row)


@pytest.mark.parametrize("line", SQL)
def test_a_recipe_has_the_rows_of_the_sql_beside_it(
    line: int, recipes: Mapping[int, tuple[tg.Program, Inputs]]
) -> None:
    program, inputs = recipes[line]
    results = program.run(inputs)
    found = [plain(tuple(row.values())) for row in results.rows(*results)]
    assert found
    assert sorted(found, key=str) == sorted(map(plain, in_duckdb(program, inputs, SQL[line])), key=str)


def test_every_recipe_is_looked_at(recipes: Mapping[int, tuple[tg.Program, Inputs]]) -> None:
    assert {*recipes} == {*SQL}
    assert len(recipes) == PAGE.read_text(encoding="utf-8").count("\n## ") >= 10
