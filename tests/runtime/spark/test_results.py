"""What a query on Spark gives back: its results, as a session does, while it runs and after it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

import tidegate as tg

pytestmark = pytest.mark.spark
events = tg.stream("E", "n bigint, t bigint", progress="t")
program = tg.program(Even=events.where(events.n % 2 == 0), Odd=events.where(events.n % 2 == 1))


def put(place: Path, number: int) -> None:
    frame = pl.DataFrame({"n": [number], "t": [number]})
    frame.write_parquet(place / f".{number}")
    (place / f".{number}").rename(place / f"{number}.parquet")


def test_results_are_read_from_the_query(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", 1)
    query = program.start(
        spark,
        sources={"E": tg.parquet(tmp_path / "in", delay=0, per_batch=1)},
        sinks={"Odd": tg.parquet_sink(tmp_path / "odd")},
        checkpoint=tmp_path / "state",
        trigger="0 seconds",
        progress=False,
    )
    for number in range(2, 7):
        put(tmp_path / "in", number)
        query.processAllAvailable()
        assert [row["n"] for row in query.results("Odd")] == list(range(1, number, 2))
        assert query.table("Even")["n"] == list(range(2, number, 2))
    with pytest.raises(tg.QueryError, match="TG402 the program has no result 'Evn'"):
        query.results("Evn")
    query.stop()
    assert query.table("Even")["n"] == [2, 4]
    with program.session(
        sources={"E": tg.parquet(tmp_path / "in", bounded=True)},
        sinks={"Odd": tg.parquet_sink(tmp_path / "odd")},
        checkpoint=tmp_path / "state",
    ) as session:
        session.process()
    assert query.table("Even")["n"] == [2, 4, 6]  # what another run has added since


def test_without_pyspark_it_is_said_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import tidegate as tg\n"
        'e = tg.stream("E", "n bigint, t bigint", progress="t")\n'
        "for use in (lambda: tg.spark_session, lambda: tg.program(A=e).start(None, sources={}, checkpoint='x')):\n"
        "    try:\n"
        "        use()\n"
        "    except tg.QueryError as error:\n"
        "        print(error.code, error.hint)\n"
        "        assert error.__suppress_context__\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], env=os.environ, capture_output=True, text=True, check=True)
    said = "TG422 pip install 'tidegate[spark]', and 'tidegate[spark,java]' where there is no Java\n"
    assert ran.stdout == said * 2
