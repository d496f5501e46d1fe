"""The page of bad input is true: each of its lines is a case that runs, and what the line says is what happens."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.docs.bad_input import CASES, NOON, Fed, S, fate, stream
from tidegate.runtime.inputs import input_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "bad-input.md"
LINES: dict[str, str] = {
    what: outcome
    for what, outcome in re.findall(r"^\| ([^|]+) \| ([^|]+) \|.*\|$", PAGE.read_text(), re.MULTILINE)
    if what not in ("what comes in", "---")
}


def test_every_line_has_a_case_and_every_case_a_line() -> None:
    assert list(LINES) == list(CASES)
    assert len(LINES) >= 25


@pytest.mark.parametrize("what", CASES)
def test_a_line_says_what_happens(what: str, tmp_path: Path) -> None:
    assert CASES[what](tmp_path) == LINES[what]


#: What comes as rows or as a file, and can be written to one: Arrow's text has no half surrogate pairs.
FED = {what: case for what, case in CASES.items() if isinstance(case, Fed) and "surrogate" not in what}


def on_spark(case: Fed, folder: Path) -> tg.Source:
    """A directory with the file, or with the rows as a Parquet file of the types that they have."""
    folder.mkdir()
    if case.name is not None:
        return case.in_directory(folder)
    given = case.source or tg.source(None)
    (definition,) = tg.program(Out=S).facts.program.inputs
    table = input_table(case.rows, given.options(definition).judged(definition.schema))
    pq.write_table(table, folder / "rows.parquet")
    return replace(given, data=tg.parquet(folder).data)


def run(spark: SparkSession, sources: dict[str, tg.Source], place: Path) -> Any:
    program = tg.program(**{f"Out{name}": stream(name) for name in sources})
    query = program.start(spark, sources=sources, checkpoint=place, clock=lambda: NOON, driver_bytes=0)
    query.awaitTermination()
    return query.reports[0]


@pytest.mark.spark
def test_lines_about_rows_and_files_say_what_happens_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """All that only rejects or accepts in one batch, a stream each, judged by workers.

    Calls on a session have no counterpart; what takes several batches is the batch loop's, which both engines share.
    """
    fates = {what: case for what, case in FED.items() if not LINES[what].startswith("TG")}
    assert len(fates) >= 45
    names = {what: f"S{number}" for number, what in enumerate(fates)}
    sources = {names[what]: on_spark(case, tmp_path / names[what]) for what, case in fates.items()}
    report = run(spark, sources, tmp_path / "state")
    assert {what: fate(report, name) for what, name in names.items()} == {what: LINES[what] for what in fates}


@pytest.mark.spark
@pytest.mark.parametrize("what", [what for what in FED if LINES[what].startswith("TG")])
def test_a_file_that_makes_the_batch_fail_does_so_on_spark(spark: SparkSession, tmp_path: Path, what: str) -> None:
    source = on_spark(FED[what], tmp_path / "in")
    with pytest.raises(tg.TidegateError) as caught:
        run(spark, {"S": source}, tmp_path / "state")
    assert caught.value.code == LINES[what]
