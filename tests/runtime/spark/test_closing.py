"""Closing what is open on Spark: said at a start or of a running query, kept until a batch has recorded it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.runtime.engines.spark.calls import ProgressCalls
from tidegate.runtime.engines.spark.closing import ClosingCall
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
High = readings.partition_by("k").derive(High=tg.situation(readings.x > 4, n=tg.count())).High
program = tg.program(High=High)


def write(directory: Path, rows: list[tuple[int, int, int]]) -> Path:
    directory.mkdir()
    columns = dict(zip("ktx", zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table(columns), directory / "0.parquet")
    return directory


def results(checkpoint: Path) -> list[tuple[int, ...]]:
    with program.session(checkpoint=checkpoint) as session:
        return sorted(tuple(row.values()) for row in session.results("High"))


def test_in_shards_and_said_of_a_running_query(spark: SparkSession, tmp_path: Path) -> None:
    """Its state lies in shards when the end comes, in a batch without events."""
    files = write(tmp_path / "in", [(k, t, 9 if t > k else 0) for k in range(6) for t in range(8)])
    query = program.start(
        spark,
        sources={"R": tg.parquet(files, delay=0)},
        checkpoint=tmp_path / "state",
        trigger="100 milliseconds",
        driver_bytes=0,
    )
    query.processAllAvailable()
    with pytest.raises(QueryError, match="TG417 close_at is about the end of all streams"):
        query.finish("R", close_at=9)
    query.close_open(9)
    query.finish(close_at=10)
    query.processAllAvailable()
    query.close_open(10)  # changes nothing
    with pytest.raises(QueryError, match="TG417 the streams have ended before"):
        query.finish(close_at=11)
    query.stop()
    assert {report.places["High"] for report in query.reports if report.places} == {"sharded"}
    assert LocalStore(tmp_path / "state").list_files("closing") == []
    assert results(tmp_path / "state") == [(k, k + 1, 10, 7 - k) for k in range(6)]


def test_a_start_says_it_and_a_refusal_names_the_least(spark: SparkSession, tmp_path: Path) -> None:
    files = write(tmp_path / "in", [(1, 0, 9), (2, 30, 0)])

    def run(close_at: int) -> None:
        sources = {"R": tg.parquet(files, delay=0, bounded=True)}
        program.start(spark, sources=sources, checkpoint=tmp_path / "state", close_at=close_at).awaitTermination()

    with pytest.raises(QueryError, match=r"TG417 High: .* at 30: High is final up to te = 30"):
        run(30)
    assert ClosingCall(LocalStore(tmp_path / "state")).waiting == 30
    run(31)
    assert results(tmp_path / "state") == [(1, 0, 31, 1)]
    run(31)


def test_the_last_instant_counts_and_outlasts_the_process(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for at in (5, 7, 7, 6):
        ClosingCall(store).say(at)
    again = ClosingCall(store)
    for recorded, waiting in ((None, 6), (7, 6), (6, None)):
        again.recorded(recorded)
        assert again.waiting == waiting
        assert ClosingCall(store).waiting == waiting
    again.say(8)
    (path,) = store.list_files("closing")
    (tmp_path / path).write_bytes(b"8")
    with pytest.raises(StateError, match=r"TG505 closing/0+\.json is damaged"):
        ClosingCall(store)


def test_an_instant_that_was_declared_before_the_end_is_known(tmp_path: Path) -> None:
    known = {("R", "t")}
    calls = ProgressCalls(LocalStore(tmp_path), known)
    for value in (50, float("inf"), 40, 60):
        calls.add({("R", "t"): value})
    for one in (calls, ProgressCalls(LocalStore(tmp_path), known)):
        assert one.declared() == {("R", "t"): 60}
        assert one.called().due(read=frozenset("R"), offered=frozenset()) == {("R", "t"): float("inf")}
        one.reached({("R", "t"): float("inf")})
    assert LocalStore(tmp_path).list_files("advances") == []
