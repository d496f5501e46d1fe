"""Which streaming DataFrames Spark is offered, in an order that queries do not decide; and what a clock makes it do."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime.engines.spark.engine import RunningQuery
from tidegate.runtime.engines.spark.input.known_sources import FILE, KnownSources, begin_spark_part
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.codec import decode
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.store.local import LocalStore

NOON = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
A, B, E = (tg.stream(name, "k bigint, t timestamp", progress="t") for name in "ABE")
arriving = tg.stream("E", "k bigint, seen timestamp", progress="seen")


def at(minute: int) -> str:
    return f"2026-03-02T12:{minute:02}:00Z"


def put(directory: Path, number: int, minute: int) -> None:
    directory.mkdir(exist_ok=True)
    path = directory / f"{number}.json"
    path.write_text(json.dumps({"k": number, "t": at(minute)}))
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # Spark takes the oldest files first


def run(program: tg.Program, spark: SparkSession, source: Any, checkpoint: Any, **options: Any) -> RunningQuery:
    query: RunningQuery = program.start(spark, sources=source, checkpoint=checkpoint, clock=lambda: NOON, **options)
    query.awaitTermination()
    return query


def rows_in(query: RunningQuery) -> list[int]:
    return [sum(counts.rows_in for counts in report.counts.values()) for report in query.reports]


def wait_for(query: Any, condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        assert query.isActive, query.exception()
        query.awaitTermination(0.1)


# --- what is recorded


def planned(store: LocalStore) -> None:
    """Spark has planned a batch."""
    offsets = Path(store.where) / "spark" / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    (offsets / "0").write_text("v1\n{}\n{}")


def recorded(store: LocalStore) -> tuple[str, ...]:
    known: KnownSources = decode("sources", KnownSources, store.read_bytes(FILE), code="TG505", where=FILE, hint="")
    return known.streams


def parts(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name.startswith("spark")]


def test_streaming_dataframes_stand_by_name_and_stay(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for streams in (["C"], ["B", "A"], ["A", "B"]):  # until Spark plans a batch nothing is decided
        begin_spark_part(store, streams)
        assert recorded(store) == tuple(sorted(streams))
    planned(store)
    begin_spark_part(store, ["B", "A"])
    assert (tmp_path / "spark" / "offsets" / "0").exists()
    for others in (["A"], ["A", "B", "C"], []):
        with pytest.raises(
            StateError, match=r"TG506 .* begun with streaming DataFrames for A, B, and is to go on with"
        ):
            begin_spark_part(store, others)
    assert (tmp_path / "spark" / "offsets" / "0").exists()


def test_a_part_without_streaming_dataframes_is_begun_anew(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    begin_spark_part(store, [])
    planned(store)
    begin_spark_part(store, [])
    assert (tmp_path / "spark" / "offsets" / "0").exists()
    begin_spark_part(store, ["E"])
    assert parts(tmp_path) == ["spark"]
    assert [path.name for path in (tmp_path / "spark").iterdir()] == [Path(FILE).name]
    assert recorded(store) == ("E",)


@pytest.mark.parametrize("streams", [[], ["E"]])
def test_what_a_crash_left_of_a_replaced_part_is_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: list[str]
) -> None:
    store = LocalStore(tmp_path)
    begin_spark_part(store, [])
    planned(store)
    with monkeypatch.context() as patched:
        patched.setattr(
            LocalStore, "delete_all", lambda self, area: crash() if (Path(self.where) / area).exists() else None
        )
        with pytest.raises(SimulatedCrash):
            begin_spark_part(store, ["E"])
    assert parts(tmp_path) == ["spark-replaced"]
    begin_spark_part(LocalStore(tmp_path), streams)
    assert recorded(store) == tuple(streams)
    assert parts(tmp_path) == ["spark"]


def test_a_damaged_record_is_refused_and_one_that_says_nothing_may_lack(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    begin_spark_part(store, [])
    planned(store)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:-9])
    with pytest.raises(StateError, match="TG505"):
        begin_spark_part(store, [])
    (tmp_path / FILE).unlink()
    with pytest.raises(StateError, match="TG505"):
        begin_spark_part(store, ["E"])
    begin_spark_part(store, [])
    assert recorded(store) == ()
    assert (tmp_path / "spark" / "offsets" / "0").exists()


# --- on Spark


@pytest.mark.spark
def test_the_order_of_queries_is_no_change(spark: SparkSession, tmp_path: Path) -> None:
    for stream in "AB":
        put(tmp_path / stream, 1, 1)
    queries = {"OutB": B, "OutA": A}

    def accepted(order: Sequence[str]) -> dict[str, int]:
        read = spark.readStream.schema("k bigint, t timestamp")
        sources = {name: tg.source(read.json(str(tmp_path / name)), delay="1h") for name in "AB"}
        run(tg.program(**{name: queries[name] for name in order}), spark, sources, tmp_path / "state")
        manifest = inspect(LocalStore(tmp_path / "state")).manifest
        assert manifest is not None
        return {name: counts.accepted for name, counts in manifest.counts.items()}

    assert accepted(["OutB", "OutA"]) == {"A": 1, "B": 1}
    put(tmp_path / "A", 2, 2)
    assert accepted(["OutA", "OutB"]) == {"A": 2, "B": 1}


CLOCKS: dict[str, tuple[tg.Program, dict[str, Any], dict[str, Any]]] = {
    "idle": (tg.program(Out=E), {"delay": "1m", "idle": "5m"}, {}),
    "arrival": (tg.program(Out=arriving), {"arrival": "seen"}, {}),
    "schedule": (tg.program(Out=E), {"delay": "1m"}, {"schedule": tg.schedule(every={"Out": "1s"})}),
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", CLOCKS)
def test_what_is_available_is_read_in_batches_by_the_clock_too(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    program, promised, options = CLOCKS[kind]
    for number in (1, 2, 3):
        put(tmp_path / "in", number, number)
    source = {"E": tg.json(tmp_path / "in", per_batch=1, **promised)}
    assert rows_in(run(program, spark, source, tmp_path / "state", **options)) == [1, 1, 1]
    assert rows_in(run(program, spark, source, tmp_path / "state", **options)) == [0]  # the clock may have gone on


@pytest.mark.spark
@pytest.mark.parametrize("where", ["commit-before-manifest", "commit-after-manifest"])
def test_a_start_after_a_crash_reads_what_is_new_and_takes_up_progress(
    where: str, spark: SparkSession, tmp_path: Path
) -> None:
    program, promised, _ = CLOCKS["idle"]
    put(tmp_path / "in", 1, 1)
    source = {"E": tg.json(tmp_path / "in", **promised)}
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm(where, crash)
    with pytest.raises(tg.InternalError, match="TG491"):
        run(program, spark, source, store)
    put(tmp_path / "in", 2, 30)
    query = run(program, spark, source, tmp_path / "state", advance={"E": {"t": at(40)}})
    found = [rows for rows in rows_in(query) if rows]  # the call may come to a batch of its own
    assert found == ([1, 1] if where == "commit-before-manifest" else [1])
    manifest = inspect(LocalStore(tmp_path / "state")).manifest
    assert manifest is not None
    assert manifest.progress['["input", "E", "t"]'] == (NOON + dt.timedelta(minutes=40)).timestamp() * 1e6


@pytest.mark.spark
def test_a_schedule_by_time_may_come_later(spark: SparkSession, tmp_path: Path) -> None:
    program, promised, options = CLOCKS["schedule"]
    put(tmp_path / "in", 1, 1)
    source = {"E": tg.json(tmp_path / "in", **promised)}
    assert rows_in(run(program, spark, source, tmp_path / "state")) == [1]
    put(tmp_path / "in", 2, 2)
    assert rows_in(run(program, spark, source, tmp_path / "state", **options)) == [1]
    put(tmp_path / "in", 3, 3)
    state = tmp_path / "state"
    query = program.start(
        spark, sources=source, checkpoint=state, clock=lambda: NOON, trigger="100 milliseconds", **options
    )
    try:
        wait_for(query, lambda: sum(rows_in(query)) == 1)
    finally:
        query.stop()


@pytest.mark.spark
def test_a_clock_may_come_to_a_streaming_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    program, promised, options = CLOCKS["schedule"]
    put(tmp_path / "in", 1, 1)

    def source() -> dict[str, Any]:
        rows = spark.readStream.schema("k bigint, t timestamp").json(str(tmp_path / "in"))
        return {"E": tg.source(rows, **promised)}

    assert rows_in(run(program, spark, source(), tmp_path / "state")) == [1]
    put(tmp_path / "in", 2, 2)
    # The clock is looked at first: Spark plans no batch of rows alone.
    assert sum(rows_in(run(program, spark, source(), tmp_path / "state", **options))) == 1
    query = program.start(
        spark,
        sources=source(),
        checkpoint=tmp_path / "state",
        clock=lambda: NOON,
        trigger="100 milliseconds",
        **options,
    )
    try:
        wait_for(query, lambda: len(query.reports) > 1)
        assert sum(rows_in(query)) == 0
    finally:
        query.stop()
