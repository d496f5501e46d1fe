"""Recipes of the cookbook have the rows that the SQL beside them has in DuckDB."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import duckdb
import pytest

import tidegate as tg
from tools.docs_pages import ROOT, blocks

PAGE = (ROOT / "docs" / "how-to" / "cookbook.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SQL_TYPES = {"string": "varchar", "timestamp": "timestamp"}


def code(section: str, language: str) -> list[str]:
    return [block.body for block in blocks(section) if block.language == language]


def recipe(section: str) -> tuple[tg.Program, dict[str, Sequence[tuple[Any, ...]]]]:
    """The program of a section and its inputs."""
    (written,) = code(section, "python")
    module = ModuleType("recipe")
    exec("import tidegate as tg\n" + written.replace("show(program, inputs)", ""), module.__dict__)  # noqa: S102
    return module.program, module.inputs


def in_duckdb(program: tg.Program, inputs: Mapping[str, Sequence[tuple[Any, ...]]], query: str) -> list[Any]:
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


@pytest.mark.parametrize("question", SECTIONS)
def test_a_recipe_has_the_rows_of_the_sql_beside_it(question: str) -> None:
    program, inputs = recipe(SECTIONS[question])
    (query,) = code(SECTIONS[question], "sql")
    results = program.run(inputs)
    found = [plain(tuple(row.values())) for row in results.rows(*results)]
    assert found
    assert sorted(found, key=str) == sorted(map(plain, in_duckdb(program, inputs, query)), key=str)


def test_every_recipe_is_looked_at() -> None:
    assert len(SECTIONS) == PAGE.count("\n## ") >= 10
