"""Progress called on a running query: a batch takes it up without new rows, once, whatever stops in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.shards import cases
from tidegate.algebra.time import INF
from tidegate.runtime.engines.spark.calls import ProgressCalls
from tidegate.runtime.engines.spark.engine import RunningQuery
from tidegate.runtime.state.failpoints import crash
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

events = tg.stream("E", "k bigint, t bigint", progress="t")
program = tg.program(Counted=events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count()))


#: What may be called of a program with three inputs.
KNOWN = {("E", "t"), ("F", "t"), ("G", "t")}


def write(directory: Path, number: int, *instants: int) -> None:
    directory.mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": [1] * len(instants), "t": list(instants)}), directory / f"{number}.parquet")


def run(spark: SparkSession, source: Any, checkpoint: Any, **options: Any) -> RunningQuery:
    query = program.start(spark, sources={"E": source}, checkpoint=checkpoint, **options)
    assert isinstance(query, RunningQuery)
    query.awaitTermination()
    return query


def results(checkpoint: Path) -> list[tuple[int, int]]:
    with program.session(checkpoint=checkpoint) as session:
        return sorted((row["w"], row["n"]) for row in session.results("Counted"))


def test_a_silent_source_progresses_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 1, 5, 12)
    query = program.start(
        spark, sources={"E": tg.parquet(tmp_path / "in")}, checkpoint=tmp_path / "state", trigger="100 milliseconds"
    )
    query.processAllAvailable()
    with pytest.raises(tg.QueryError, match="TG401 E: 'k' is not"):
        query.advance("E", {"k": 3})
    assert sum(report.results.get("Counted", 0) for report in query.reports) == 0
    query.advance("E", {"t": 10})
    query.processAllAvailable()
    assert sum(report.results.get("Counted", 0) for report in query.reports) == 1
    query.finish()
    query.processAllAvailable()
    query.stop()
    assert results(tmp_path / "state") == [(10, 2), (20, 1)]


@pytest.mark.parametrize(
    ("where", "kind"),
    cases(
        itertools.product(["commit-before-manifest", "commit-after-manifest"], ["files", "streaming DataFrame"]),
        lambda where, kind: (kind == "files") == (where == "commit-before-manifest"),
    ),
)
def test_a_call_outlasts_the_process_and_a_crash(spark: SparkSession, tmp_path: Path, kind: str, where: str) -> None:
    def source() -> Any:
        frame = spark.readStream.schema("k bigint, t bigint").parquet(str(tmp_path / "in"))
        return tg.parquet(tmp_path / "in") if kind == "files" else frame

    write(tmp_path / "in", 0, 1, 5, 12)
    run(spark, source(), tmp_path / "state").advance("E", {"t": 10})
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm(where, crash)
    with pytest.raises(tg.InternalError, match="TG491"):
        run(spark, source(), store)
    run(spark, source(), tmp_path / "state")  # of a streaming DataFrame, the batch after the one that Spark had planned
    assert list((tmp_path / "state" / "advances").glob("*.json")) == []
    write(tmp_path / "in", 1, 3, 15)
    query = run(spark, source(), tmp_path / "state")
    assert sum(report.counts["E"].rejected.get("late", 0) for report in query.reports if "E" in report.counts) == 1
    run(spark, source(), tmp_path / "state", advance={"E": {"t": INF}})
    assert results(tmp_path / "state") == [(10, 2), (20, 2)]


def test_a_call_whose_wake_up_was_lost_is_taken_up_at_the_next_start(spark: SparkSession, tmp_path: Path) -> None:
    """A process may end after it has taken a call down, and before it has told Spark to run a batch."""
    write(tmp_path / "in", 0, 1, 5, 12)
    run(spark, tg.parquet(tmp_path / "in"), tmp_path / "state")
    ProgressCalls(LocalStore(tmp_path / "state"), {("E", "t")}).add({("E", "t"): 10})
    run(spark, tg.parquet(tmp_path / "in"), tmp_path / "state")
    assert results(tmp_path / "state") == [(10, 2)]


def crashes(spark: SparkSession, source: Any, checkpoint: Path, where: str) -> None:
    """A run whose first batch dies there, planned by Spark already."""
    store = LocalStore(checkpoint)
    store.failpoints.arm(where, crash)
    with pytest.raises(tg.InternalError, match="TG491"):
        run(spark, source, store)


def test_a_batch_that_was_planned_before_a_call_does_not_take_it_up(spark: SparkSession, tmp_path: Path) -> None:
    """Rows may have come between the two: the call says that they are complete, so they are not late."""

    def source() -> Any:
        return spark.readStream.schema("k bigint, t bigint").parquet(str(tmp_path / "in"))

    write(tmp_path / "in", 0, 1, 5, 12)
    crashes(spark, source(), tmp_path / "state", "commit-before-manifest")
    write(tmp_path / "in", 1, 3, 15)
    ProgressCalls(LocalStore(tmp_path / "state"), {("E", "t")}).add({("E", "t"): 10})
    run(spark, source(), tmp_path / "state")
    run(spark, source(), tmp_path / "state", advance={"E": {"t": INF}})
    assert results(tmp_path / "state") == [(10, 3), (20, 2)]


def test_a_call_is_taken_up_after_a_batch_that_was_committed_already(spark: SparkSession, tmp_path: Path) -> None:
    """Spark runs a batch once more that is committed here; it is skipped, and nothing else would wake Spark."""
    write(tmp_path / "in", 0, 1, 5, 12)
    crashes(spark, tg.parquet(tmp_path / "in"), tmp_path / "state", "commit-after-manifest")
    ProgressCalls(LocalStore(tmp_path / "state"), {("E", "t")}).add({("E", "t"): 10})
    run(spark, tg.parquet(tmp_path / "in"), tmp_path / "state")
    assert results(tmp_path / "state") == [(10, 2)]


def test_of_a_streaming_dataframe_a_call_waits_for_a_batch_that_is_planned_after_it(tmp_path: Path) -> None:
    calls = ProgressCalls(LocalStore(tmp_path), KNOWN)
    rows, files = frozenset({"E"}), frozenset({"F"})
    calls.add({("E", "t"): 5, ("F", "t"): 6, ("G", "t"): 7})
    assert calls.called().due(read=rows | files, offered=rows) == {("F", "t"): 6}
    assert calls.plan(rows)
    assert calls.add({("E", "t"): INF})
    assert not calls.add({("E", "t"): 4})
    assert calls.called().due(read=rows | files, offered=rows) == {("F", "t"): 6, ("E", "t"): 5}
    calls.reached({("E", "t"): 5, ("F", "t"): 6, ("G", "t"): 6})
    again = ProgressCalls(LocalStore(tmp_path), KNOWN)
    again.reached({("F", "t"): 6})
    for known in (calls, again):
        assert known.are_waiting()
        assert known.plan(rows)
        assert not known.plan(files)
        assert known.plan(rows)
        assert known.called().due(read=frozenset({"E", "G"}), offered=rows) == {("E", "t"): INF, ("G", "t"): 7}


def test_a_file_goes_when_a_commit_has_come_as_far_as_it_says(tmp_path: Path) -> None:
    def made() -> tuple[ProgressCalls, Callable[[], int]]:
        store = LocalStore(tmp_path)
        return ProgressCalls(store, KNOWN), lambda: len(store.list_files("advances"))

    rows = frozenset({"E"})
    calls, files = made()
    calls.add({("E", "t"): 5, ("F", "t"): 6})
    calls.add({("E", "t"): 9})
    calls.reached({("E", "t"): 8, ("F", "t"): 5})
    assert files() == 2  # 6 and 9 are still to come
    calls.reached({("E", "t"): 8, ("F", "t"): 6})
    assert files() == 1
    again, files = made()
    again.reached({("E", "t"): 8, ("F", "t"): 6})
    assert again.are_waiting()
    assert files() == 1
    assert again.called().due(read=rows, offered=rows) == {}  # a batch that Spark has planned was planned before
    assert again.plan(rows)
    assert again.called().due(read=rows, offered=rows) == {("E", "t"): 9}
    again.reached({("E", "t"): 9})
    assert files() == 0
    assert not again.are_waiting()
    assert not again.plan(rows)


def test_calls_are_one_file_while_a_stream_is_behind(tmp_path: Path) -> None:
    """One that later ones cover in every part is of no use, whatever stops in between."""
    store = LocalStore(tmp_path)
    calls = ProgressCalls(store, KNOWN)
    calls.add({("E", "t"): 1, ("F", "t"): 1})
    for instant in range(2, 20):
        calls.add({("E", "t"): instant})
        assert len(store.list_files("advances")) == 2
    calls.add({("F", "t"): 2})
    calls.add({("E", "t"): INF})
    calls.add({("G", "t"): INF})
    assert len(store.list_files("advances")) == 4  # that of the last instant of E is one
    for known in (calls, ProgressCalls(LocalStore(tmp_path), KNOWN)):
        assert known.called().waiting == {("E", "t"): INF, ("F", "t"): 2, ("G", "t"): INF}
        assert known.declared() == {("E", "t"): 19, ("F", "t"): 2}
    calls.reached({("E", "t"): INF, ("F", "t"): 2, ("G", "t"): INF})
    assert store.list_files("advances") == []


def test_files_that_can_not_be_deleted_are_left_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: object, path: str) -> None:
        raise PermissionError(path)

    calls = ProgressCalls(LocalStore(tmp_path), KNOWN)
    calls.add({("E", "t"): 5})
    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "delete", refuse)
        calls.reached({("E", "t"): 5})
    assert "progress calls" in caplog.text
    ProgressCalls(LocalStore(tmp_path), KNOWN).reached({("E", "t"): 5})
    assert LocalStore(tmp_path).list_files("advances") == []
