"""Which files a batch on Spark reads: those that a session reads, whatever order Spark has among files of one age."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime import sources
from tidegate.runtime.batch_report import BatchReport
from tidegate.runtime.spark.engine import RunningQuery
from tidegate.runtime.spark.known_sources import KnownSources
from tidegate.runtime.spark.which_files import next_files, seen_by_spark
from tidegate.runtime.state import LocalStore, SourceFile
from tidegate.runtime.state.failpoints import crash

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


def test_as_many_are_read_as_are_offered_or_a_batch_may_have(tmp_path: Path) -> None:
    names = [f"part-{number:02}.parquet" for number in range(FILES)]
    write(tmp_path)
    with program.session(sources=source(tmp_path, 2)) as session:
        setup = session._setup
        there = setup.unread()["S"]
        assert [Path(file.path).name for file in there] == names
        mixed = random.Random(1).sample(there, k=5)

        def chosen(*offered: SourceFile) -> list[str]:
            given = {"S": offered}
            files = next_files(setup, setup.unread(), given, setup.checkpoint.positions.unconsumed(given)[0])["S"]
            return [Path(file.path).name for file in files]

        assert chosen() == chosen(mixed[0]) == chosen(*mixed[:2]) == names[:2]
        assert chosen(*mixed) == names[:5]
        linked = SourceFile("/elsewhere/part-00.parquet", 1, 1)
        assert chosen(linked, *mixed[:2]) == [*names[:2], "part-00.parquet"]
        session.step()
        assert chosen(*there[:3]) == names[2:5]


def test_what_spark_has_seen_is_what_it_offered_in_committed_batches(tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    for part in ("offsets", "sources/1"):
        (spark / part).mkdir(parents=True)
    store, known, files = LocalStore(tmp_path), KnownSources(("R", "S"), False), sources.Files("/a b", "parquet")

    def seen(committed: dict[str, int], known: KnownSources = known, number: int = 1) -> set[Path] | None:
        return seen_by_spark(store, known, number, files, committed)

    assert seen({}) == set()
    (spark / "metadata").write_text('{"id":"q"}')
    (spark / "offsets" / "7").write_text("v1\n{}\n-\n" + '{"logOffset":1}\n' * 2)
    lines = [json.dumps({"path": f"file:///a%20b/{n}", "timestamp": 1, "batchId": n}) for n in range(3)]
    (spark / "sources" / "1" / "1.compact").write_text("\n".join(["v1", *lines[:2]]))
    (spark / "sources" / "1" / "2").write_text("\n".join(["v1", lines[2]]))
    assert seen({"q": 7}) == {Path("/a b/0"), Path("/a b/1")}
    assert seen({"other": 7}) == set()
    assert seen({"q": 8}) is None
    assert seen({"q": 7}, number=0) is None
    assert seen({"q": 7}, KnownSources(("S",), False), number=0) is None  # of R there may be two
    assert seen({"q": 7}, KnownSources(("R", "S"), True)) is None
    files = sources.Files("/a", "parquet")
    assert seen({"q": 7}) is None
    files = sources.Files("/a b", "parquet")
    (spark / "sources" / "1" / "2").write_text("v1\n{")
    assert seen({"q": 7}) is None


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
@pytest.mark.parametrize(("where", "done"), [("commit-before-manifest", 4), ("commit-after-manifest", 5)])
@pytest.mark.parametrize("per_batch", [1, 3])
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
    """Spark saw files that were not read then, and those read in their place are gone before it sees them."""
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
def test_a_file_that_can_not_be_read_is_put_away(spark: SparkSession, tmp_path: Path) -> None:
    """Also where Spark does not offer it in the batch that failed for it."""
    write(tmp_path / "in")
    bad = tmp_path / "in" / "part-02.parquet"
    bad.write_bytes(b"no Parquet")
    os.utime(bad, (1_700_000_000, 1_700_000_000))
    with pytest.raises(tg.QueryError, match="TG412"):
        on_spark(spark, tmp_path, 1)
    bad.unlink()
    query = on_spark(spark, tmp_path, 1)
    assert counts(query.reports) == [(10, {})] * (FILES - 3)
    assert published(tmp_path) == expected(tmp_path)


@pytest.mark.spark
def test_files_of_any_age_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """By itself, Spark passes over what is a week older than what it has seen."""
    write(tmp_path / "in", range(2))
    on_spark(spark, tmp_path, 1, bounded=False)
    write(tmp_path / "in", range(2, 4), age=30 * DAY)
    query = on_spark(spark, tmp_path, 1)
    assert counts(query.reports) == [(10, {}), (10, {})]


@pytest.mark.spark
def test_all_that_is_offered_at_once_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """However few files a batch should have: Spark will not offer them again."""
    write(tmp_path / "in")
    query = on_spark(spark, tmp_path, 1, trigger={"once": True})
    assert counts(query.reports) == [(10 * FILES, {})]


@pytest.mark.spark
@pytest.mark.parametrize("closing", [False, True])
def test_a_run_that_lasts_reads_what_spark_will_not_offer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, closing: bool
) -> None:
    """Spark passes over names with this end; were they read here, Spark would have to be told, also after calls."""
    monkeypatch.setattr(sources, "_is_left_out", lambda name: name.startswith((".", "_")))
    write(tmp_path / "in", range(3))
    for number in (1, 2):
        path = tmp_path / "in" / f"part-{number:02}.parquet"
        path.rename(f"{path}._COPYING_")
    given = source(tmp_path / "in", 1, bounded=False)
    started: list[RunningQuery] = []

    def called(_: BatchReport) -> None:
        """Before Spark looks for what is new."""
        while closing and not started:
            time.sleep(0.01)
        for query in started if closing else ():
            query.close_open(1_000)

    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "trigger": "100 milliseconds"}
    query = program.start(spark, sources=given, sinks=sinks(tmp_path), on_batch=called, **options)
    started.append(query)
    try:
        limit = time.monotonic() + 60
        while len(counts(query.reports)) < 3:
            assert time.monotonic() < limit
            assert query.isActive, query.exception()
            query.awaitTermination(0.1)
    finally:
        query.stop()
    assert counts(query.reports) == [(10, {})] * 3
    assert published(tmp_path) == expected(tmp_path)
