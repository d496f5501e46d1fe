"""The page of bad input is true: each of its lines is a case that runs, and what the line says is what happens."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.docs.bad_input import CASES, CSV_LINE, DIVIDED, HEADER, NOON, Fed, S, fate, stream, warned
from tidegate.runtime.ingest.stored_rows import input_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "bad-input.md"
CELLS: list[tuple[str, str, str]] = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|.*\|$", PAGE.read_text(), re.MULTILINE
)
LINES = {what: outcome for what, outcome, _ in CELLS if what not in ("what comes in", "---")}
ENGINES = {what: engines for what, _, engines in CELLS if what in LINES}


def test_every_line_has_a_case_and_every_case_a_line() -> None:
    assert list(LINES) == list(CASES)
    assert len(LINES) >= 25


def test_every_line_tells_its_engines() -> None:
    assert {what: "both" if what in FED or what in ON_SPARK else "embedded" for what in CASES} == ENGINES


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

    Calls on a session, and what takes several batches, are further down.
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


SIMPLE = tg.program(Out=S)


def started(spark: SparkSession, folder: Path, program: tg.Program = SIMPLE, **options: Any) -> str:
    """What becomes of a program on Spark over what is in a directory, to its last batch or a refusal."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    sources = {"S": tg.csv(folder / "in", per_batch=1)}
    given: dict[str, Any] = {"sources": sources, "checkpoint": folder / "state", "clock": lambda: NOON}
    try:
        query = program.start(spark, **given | options)
        query.awaitTermination()
    except tg.TidegateError as error:
        return error.code
    return fate(query.reports[-1]) if query.reports else "no rows"


def put(folder: Path, number: int, *rows: str) -> None:
    (folder / "in").mkdir(parents=True, exist_ok=True)
    path = folder / "in" / f"{number}.csv"
    path.write_text(HEADER + "".join(rows))
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # the oldest is read first


EARLY = CSV_LINE.replace("12:00Z", "11:54Z")


def late_on_spark(spark: SparkSession, folder: Path) -> str:
    put(folder, 1)
    started(spark, folder, advance={"S": {"t": NOON}})
    put(folder, 2, CSV_LINE)
    return started(spark, folder)


def behind_on_spark(spark: SparkSession, folder: Path) -> str:
    put(folder, 1, CSV_LINE)
    put(folder, 2, EARLY)
    return started(spark, folder, sources={"S": tg.csv(folder / "in", per_batch=1, delay="5m")})


def policy_on_spark(spark: SparkSession, folder: Path) -> str:
    put(folder, 1, CSV_LINE, CSV_LINE.replace(",1,", ",many,"))
    return started(spark, folder, sources={"S": tg.csv(folder / "in", policy="fail")})


def divided_on_spark(spark: SparkSession, folder: Path, **options: Any) -> str:
    put(folder, 1, CSV_LINE.replace(",1,", ",0,"))
    return started(spark, folder, DIVIDED, sources={"S": tg.csv(folder / "in", **options)})


def changed_on_spark(spark: SparkSession, folder: Path) -> str:
    put(folder, 1, CSV_LINE)
    started(spark, folder)
    put(folder, 1, CSV_LINE * 2)
    put(folder, 2, CSV_LINE)
    return started(spark, folder)


def passed_over_on_spark(spark: SparkSession, folder: Path) -> str:
    given = {"S": tg.csv(folder / "in", per_batch=1, on_bad_file="quarantine")}
    put(folder, 1, CSV_LINE)
    started(spark, folder, sources=given)
    put(folder, 1, CSV_LINE * 2)
    put(folder, 2, CSV_LINE)
    return warned(lambda: started(spark, folder, sources=given))


def unnamed_on_spark(spark: SparkSession, folder: Path) -> str:
    put(folder, 1, CSV_LINE)
    (folder / "in" / "\udcff.csv").write_text(HEADER + CSV_LINE)
    given = {"S": tg.csv(folder / "in", on_bad_file="quarantine")}
    return warned(lambda: started(spark, folder, sources=given))


def pipe_on_spark(spark: SparkSession, folder: Path) -> str:
    (folder / "in").mkdir(parents=True)
    os.mkfifo(folder / "in" / "a.csv")
    return started(spark, folder)


def static_on_spark(spark: SparkSession, folder: Path) -> str:
    s, table = S.as_("s"), tg.table("T", "i bigint").as_("r")
    joined = tg.program(Out=s.join(table, table.i == s.i).select(s.t))
    return started(spark, folder, joined, statics={"T": [("many",)]})


#: Lines about several batches, and about calls that have a counterpart in what `start` is told.
ON_SPARK: dict[str, Callable[[SparkSession, Path], str]] = {
    "a row at or below progress": late_on_spark,
    "a row further behind than the delay": behind_on_spark,
    'any of these under `policy="fail"`': policy_on_spark,
    "a row for which a term of a query has no value": divided_on_spark,
    'the same under `on_error="fail"`': lambda spark, at: divided_on_spark(spark, at, on_error="fail"),
    "a file that changed after it was read": changed_on_spark,
    'the same under `on_bad_file="quarantine"`': passed_over_on_spark,
    'a name that is not UTF-8, under `on_bad_file="quarantine"`': unnamed_on_spark,
    "a pipe, a socket or a device": pipe_on_spark,
    "a directory that does not exist": lambda spark, at: started(spark, at, sources={"S": tg.csv(at / "nowhere")}),
    "a malformed row of a static table": static_on_spark,
    "rows for a stream that the program has not": lambda spark, at: started(
        spark, at, sources={"S": tg.csv(at / "in"), "T": tg.csv(at / "in")}
    ),
    "progress on another attribute": lambda spark, at: started(spark, at, advance={"S": {"began": NOON}}),
    "progress up to something that is no instant": lambda spark, at: started(spark, at, advance={"S": {"t": "soon"}}),
    "progress up to `NaT`": lambda spark, at: started(spark, at, advance={"S": {"t": pd.NaT}}),
}


@pytest.mark.long
@pytest.mark.spark
def test_lines_about_several_batches_and_calls_say_what_happens_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    found = {what: case(spark, tmp_path / str(number)) for number, (what, case) in enumerate(ON_SPARK.items())}
    assert found == {what: LINES[what] for what in ON_SPARK}
