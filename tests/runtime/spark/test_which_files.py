"""Which files a batch on Spark reads: those that a session reads, whatever order Spark has among files of one age."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.shards import cases
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.engines.spark.engine import RunningQuery
from tidegate.runtime.engines.spark.input.which_files import FileSelection, forget_what_has_gone
from tidegate.runtime.state.failpoints import crash
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.manifest import Engine
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.tuning.tuner import Tuner
from tidegate.version import VERSION

events = tg.stream("S", "k bigint, t bigint, a boolean", progress="t")
program = tg.program(A=events.partition_by("k").derive(A=tg.situation(events.a)).A)
FILES = 12
DAY = 24 * 3600


def write(folder: Path, numbers: range = range(FILES), age: int = 0) -> None:
    """Files of one age, each with later rows than those before it by name."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        instants = range(number * 10, number * 10 + 10)
        rows = {"k": [1] * 10, "t": list(instants), "a": [(t // 7) % 2 == 0 for t in instants]}
        path = folder / f"part-{number:02}.parquet"
        pl.DataFrame(rows).write_parquet(path)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))  # as unzip or `cp -p` leave them


def source(folder: Path, per_batch: int | None, *, bounded: bool = True) -> dict[str, tg.Source]:
    return {"S": tg.parquet(folder, delay=0, per_batch=per_batch, bounded=bounded)}


def sinks(place: Path) -> dict[str, Any]:
    return {"A": tg.parquet_sink(place / "out")}


def embedded(
    place: Path, per_batch: int | None = None, *, bounded: bool = True, folder: Path | None = None
) -> list[BatchReport]:
    given = source(folder or place / "in", per_batch, bounded=bounded)
    with program.session(sources=given, sinks=sinks(place), checkpoint=place / "state") as session:
        return session.process()


def on_spark(spark: SparkSession, place: Path, per_batch: int | None, **options: Any) -> RunningQuery:
    given = source(place / "in", per_batch, bounded=options.pop("bounded", True))
    options = {"checkpoint": place / "state"} | options
    query: RunningQuery = program.start(spark, sources=given, sinks=sinks(place), **options)
    query.awaitTermination()
    return query


def published(place: Path) -> list[tuple[Any, ...]]:
    return sorted(row for path in (place / "out").glob("*.parquet") for row in pl.read_parquet(path).rows())


def expected(place: Path) -> list[tuple[Any, ...]]:
    """What a session finds that reads the same files."""
    other = place / "expected"
    other.mkdir()
    embedded(other, folder=place / "in")
    return published(other)


def counts(reports: list[BatchReport]) -> list[tuple[int, dict[str, int]]]:
    found = [(each.rows_in, dict(each.rejected)) for report in reports for each in report.counts.values()]
    return [one for one in found if one[0]]


# --- the choice alone


def test_a_batch_reads_what_a_session_would(tmp_path: Path) -> None:
    names = [f"part-{number:02}.parquet" for number in range(FILES)]
    write(tmp_path)
    with program.session(sources=source(tmp_path, 2)) as session:
        setup = session._setup

        def chosen(reading: FileSelection) -> list[str]:
            unread = setup.unread(everything=reading.at_once)
            return [Path(file.path).name for file in reading.next(setup, unread, Tuner(), 1)["S"]]

        there = {"S": frozenset(file.path for file in setup.unread()["S"])}
        assert chosen(FileSelection(None)) == chosen(FileSelection(there)) == names[:2]
        assert chosen(FileSelection(there, at_once=True)) == names
        session.step()
        assert chosen(FileSelection(None)) == names[2:4]


def test_a_run_over_what_is_there_ends_when_that_is_read(tmp_path: Path) -> None:
    write(tmp_path, range(2, 4))
    with program.session(sources=source(tmp_path, 1)) as session:
        setup = session._setup
        there = FileSelection({"S": frozenset(file.path for file in setup.unread()["S"])})
        write(tmp_path, range(4))  # those that came since go before the others
        left = []
        for _ in range(4):
            left.append((there.is_left(setup.directories), FileSelection(None).is_left(setup.directories)))
            session.step()
        assert left == [(True, True)] * 4
        assert not there.is_left(setup.directories)
        write(tmp_path, range(4, 5))
        setup.unread()
        assert not there.is_left(setup.directories)
        assert FileSelection(None).is_left(setup.directories)


def test_an_intent_is_forgotten_when_a_file_of_it_has_gone(tmp_path: Path) -> None:
    write(tmp_path / "in", range(3))
    with program.session(sources=source(tmp_path / "in", None), checkpoint=tmp_path / "state") as session:
        setup = session._setup
        checkpoint, (first, *others) = setup.checkpoint, setup.unread()["S"]
        begun = checkpoint.begin(0, Offer({"S": (first, *others)}), engine=Engine("spark", VERSION))
        forget_what_has_gone(checkpoint)
        assert checkpoint.pending == begun.intent
        Path(first.path).unlink()
        forget_what_has_gone(checkpoint)
        assert checkpoint.pending is None


# --- on Spark


@pytest.mark.spark
@pytest.mark.parametrize("per_batch", [1, 3])
def test_files_of_one_age_are_read_by_name(spark: SparkSession, tmp_path: Path, per_batch: int) -> None:
    write(tmp_path / "in")
    batches = counts(on_spark(spark, tmp_path, per_batch).reports)
    assert batches == [(10 * per_batch, {})] * (FILES // per_batch)
    assert published(tmp_path) == expected(tmp_path)
    assert len(published(tmp_path)) == 9


@pytest.mark.spark
@pytest.mark.parametrize(
    ("per_batch", "where", "done"),
    cases(
        [
            (1, "commit-before-manifest", 4),
            (1, "commit-after-manifest", 5),
            (3, "commit-before-manifest", 4),
            (3, "commit-after-manifest", 5),
        ],
        lambda per_batch, _, done: (per_batch == 1) == (done == 5),
    ),
)
def test_a_crash_in_the_middle(spark: SparkSession, tmp_path: Path, where: str, done: int, per_batch: int) -> None:
    """The batch that crashed reads the same files again; then it goes on, on Spark or embedded."""
    write(tmp_path / "in")
    skip = 4 if per_batch == 1 else 1
    done = done if per_batch == 1 else done - 3
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm(where, crash, skip=skip)
    with pytest.raises(tg.InternalError, match="TG491"):
        on_spark(spark, tmp_path, per_batch, checkpoint=store)
    if per_batch == 1:
        again = on_spark(spark, tmp_path, per_batch).reports
    else:
        again = embedded(tmp_path, per_batch)
    assert counts(again) == [(10 * per_batch, {})] * (FILES // per_batch - done)
    assert published(tmp_path) == expected(tmp_path)


@pytest.mark.spark
def test_files_put_away_between_runs(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in")
    wanted = expected(tmp_path)
    for where, skip, read in (("commit-before-manifest", 5, 5), ("commit-after-manifest", 2, 3)):
        store = LocalStore(tmp_path / "state")
        store.failpoints.arm(where, crash, skip=skip)
        with pytest.raises(tg.InternalError, match="TG491"):
            on_spark(spark, tmp_path, 1, checkpoint=store)
        for path in sorted((tmp_path / "in").iterdir())[:read]:
            path.unlink()
    query = on_spark(spark, tmp_path, 1)
    assert counts(query.reports) == [(10, {})] * 4
    assert published(tmp_path) == wanted


@pytest.mark.spark
def test_files_put_away_by_a_running_query(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in")
    wanted = expected(tmp_path)

    def put_away(_: BatchReport) -> None:
        min((tmp_path / "in").iterdir()).unlink()

    query = on_spark(spark, tmp_path, 1, on_batch=put_away)
    assert counts(query.reports) == [(10, {})] * FILES
    assert published(tmp_path) == wanted


@pytest.mark.spark
@pytest.mark.parametrize("number", [0, 2])
def test_a_file_that_can_not_be_read_is_put_away(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """The batch that failed for it goes on without it, whether Spark's own batch begins with it or not."""
    write(tmp_path / "in")
    bad = tmp_path / "in" / f"part-{number:02}.parquet"
    bad.write_bytes(b"no Parquet")
    os.utime(bad, (1_700_000_000, 1_700_000_000))
    with pytest.raises(tg.QueryError, match="TG412"):
        on_spark(spark, tmp_path, 1)
    bad.unlink()
    query = on_spark(spark, tmp_path, 1)
    assert counts(query.reports) == [(10, {})] * (FILES - 1 - number)
    assert published(tmp_path) == expected(tmp_path)


@pytest.mark.spark
def test_files_of_any_age_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Sources of Spark's own pass over what is a week older than what they have seen."""
    write(tmp_path / "in", range(2))
    on_spark(spark, tmp_path, 1, bounded=False)
    write(tmp_path / "in", range(2, 4), age=30 * DAY)
    query = on_spark(spark, tmp_path, 1)
    assert counts(query.reports) == [(10, {}), (10, {})]


@pytest.mark.spark
def test_all_that_is_offered_at_once_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """However few files a batch should have: there is one batch."""
    write(tmp_path / "in")
    query = on_spark(spark, tmp_path, 1, trigger={"once": True})
    assert counts(query.reports) == [(10 * FILES, {})]


@pytest.mark.spark
@pytest.mark.parametrize("closing", [False, True])
def test_a_run_that_lasts_reads_what_comes(spark: SparkSession, tmp_path: Path, *, closing: bool) -> None:
    """One file a batch, of what was there and of what came, also while calls wait."""
    write(tmp_path / "in", range(2))
    given = source(tmp_path / "in", 1, bounded=False)
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "trigger": "100 milliseconds"}
    query = program.start(spark, sources=given, sinks=sinks(tmp_path), **options)

    def wait_for(batches: int) -> None:
        limit = time.monotonic() + 60
        while len(counts(query.reports)) < batches:
            assert time.monotonic() < limit
            assert query.isActive, query.exception()
            query.awaitTermination(0.1)

    try:
        wait_for(2)
        if closing:
            query.close_open(1_000)
        write(tmp_path / "in", range(2, 4))
        wait_for(4)
        write(tmp_path / "in", range(4, 6))
        query.processAllAvailable()
        assert counts(query.reports) == [(10, {})] * 6
    finally:
        query.stop()
    assert published(tmp_path) == expected(tmp_path)


@pytest.mark.spark
def test_a_query_that_lasts_ends_with_the_error_of_a_look(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", range(2))
    given = source(tmp_path / "in", None, bounded=False)
    query = program.start(
        spark, sources=given, sinks=sinks(tmp_path), checkpoint=tmp_path / "state", trigger="100 milliseconds"
    )
    query.processAllAvailable()
    write(tmp_path / "in", range(1), age=-1)
    with pytest.raises(tg.QueryError, match="TG411"):
        query.awaitTermination(60)
    assert not query.isActive
