"""What happens to runs on Spark only: engines in turn, its own checkpoint lost or damaged, workers that can not
write.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import tidegate as tg
from tests.runtime.faults.on_files import (
    Answer,
    answer,
    difference,
    run_embedded,
    run_on_spark,
    sinks_of,
    sources_of,
    undisturbed,
    write_files,
)
from tests.runtime.faults.scenarios import OVER_FILES, scenario
from tests.runtime.faults.test_memory import pushed, relations
from tests.runtime.state.toy import damage_kinds
from tidegate.runtime.state.errors import DATA, MEMORY, REPLAY, STORAGE, WRITER, StateError
from tidegate.runtime.state.failpoints import crash
from tidegate.runtime.state.store.local import LocalStore
from tools.kill_loop import python_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.spark]


def crashes(run: Any, *arguments: Any, **options: Any) -> bool:
    """Whether a run died of a simulated crash."""
    try:
        run(*arguments, **options)
    except BaseException as failure:
        if "SimulatedCrash" not in repr(failure):
            raise
        return True
    return False


def check(name: str, place: Path) -> None:
    one = scenario(name)
    assert difference(answer(one, place), undisturbed(one, place)) is None


#: One engine after the other, each over new files; stopped in order, or by a crash in the second of its batches.
TURNS = (
    ("spark", None),
    ("embedded", "commit-before-manifest"),
    ("spark", "commit-after-manifest"),
    ("embedded", None),
    ("spark", "commit-before-manifest"),
)


@pytest.mark.parametrize("name", sorted(OVER_FILES))
def test_engines_take_turns(name: str, spark: SparkSession, tmp_path: Path) -> None:
    one = scenario(name)
    for number, (engine, where) in enumerate(TURNS):
        write_files(one, tmp_path, range(number * 2, number * 2 + 2))
        store = LocalStore(tmp_path / "state")
        if where is not None:
            store.failpoints.arm(where, crash, skip=1)
        if engine == "spark":
            assert crashes(run_on_spark, one, tmp_path, spark, bounded=False, store=store) == (where is not None)
        else:
            assert crashes(run_embedded, one, tmp_path, bounded=False, store=store) == (where is not None)
    run_embedded(one, tmp_path)
    check(name, tmp_path)


def test_recoveries_that_crash_three_deep(spark: SparkSession, tmp_path: Path) -> None:
    """After a batch that was committed and not published, and after one that was not committed."""
    one = scenario("chain of queries")
    write_files(one, tmp_path, range(4))
    for where in (
        "commit-after-manifest",
        "recover-before-publish",
        "commit-before-marker",
        "recover-before-sweep",
        "commit-before-manifest",
        "recover-during-sweep",
        "recover-during-sweep",
        "recover-before-sweep",
    ):
        store = LocalStore(tmp_path / "state")
        store.failpoints.arm(where, crash)
        assert crashes(run_on_spark, one, tmp_path, spark, store=store), where
    run_on_spark(one, tmp_path, spark)
    check("chain of queries", tmp_path)


@pytest.mark.parametrize("name", ["event-controlled", "row pattern", "interval sequence"])
def test_other_settings_at_every_start(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places, number of shards, shuffle partitions and time zones may change: none of them is part of the state."""
    one = scenario(name)
    settings: list[tuple[str, str, dict[str, Any]]] = [
        ("UTC", "2", {"driver_bytes": 0, "shard_bytes": 0}),
        ("Asia/Kathmandu", "5", {"driver_bytes": 0, "shard_bytes": 1}),
        ("Pacific/Apia", "1", {"driver_bytes": 0, "shard_bytes": 64 << 20}),
        ("America/New_York", "3", {"driver_bytes": 64 << 20}),
    ]
    user = spark.newSession()
    for number, (zone, partitions, options) in enumerate(settings):
        write_files(one, tmp_path, range(number * 2, number * 2 + 2))
        monkeypatch.setenv("TZ", zone)
        user.conf.set("spark.sql.session.timeZone", zone)
        user.conf.set("spark.sql.shuffle.partitions", partitions)
        run_on_spark(one, tmp_path, user, bounded=number == len(settings) - 1, **options)
    check(name, tmp_path)


def test_a_second_writer_is_refused_on_either_engine(spark: SparkSession, tmp_path: Path) -> None:
    one = scenario("tumbling")
    write_files(one, tmp_path, range(4))
    held, go = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        held.set()
        assert go.wait(120)

    first = one.program.start(
        spark,
        sources=sources_of(one, tmp_path, bounded=True),
        sinks=sinks_of(one, tmp_path),
        checkpoint=tmp_path / "state",
        on_batch=wait,
    )
    assert held.wait(120)
    before = answer(one, tmp_path)
    seconds: list[Callable[[], None]] = [
        lambda: run_embedded(one, tmp_path),
        lambda: run_on_spark(one, tmp_path, spark),
    ]
    for second in seconds:
        with pytest.raises(StateError, match="another run writes") as caught:
            second()
        assert caught.value.code == WRITER
        assert answer(one, tmp_path) == before
    go.set()
    first.awaitTermination()
    check("tumbling", tmp_path)


# --- Spark's own checkpoint


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """A run that stopped after three batches, kept in `backup`, with two more files to read; and its right answer."""
    place = tmp_path_factory.mktemp("stopped")
    one = scenario("tumbling")
    for number in range(3):  # of files that are there at once, several batches may be one of Spark's
        write_files(one, place, range(number, number + 1))
        run_on_spark(one, place, spark, bounded=False)
    for part in ("state", "out"):
        shutil.copytree(place / part, place / "backup" / part)
    write_files(one, place, range(3, 5))
    return place, undisturbed(one, place)


FILES_OF_SPARK = (
    "metadata",
    "tidegate-sources.json",
    "offsets/1",
    "offsets/2",
    "commits/1",
    "commits/2",
    "tidegate-wake-up.json",
)


@pytest.mark.parametrize("kind", [*sorted(damage_kinds()), "stale"])
def test_damaged_files_of_spark(kind: str, stopped: tuple[Path, Answer], spark: SparkSession) -> None:
    """The same results, or a failure that says how to go on; and doing so gives the same results, nothing twice."""
    (place, wanted), one = stopped, scenario("tumbling")
    refused = 0
    for file in FILES_OF_SPARK:
        restored(place)
        damage(place / "state" / "spark" / file, kind)
        failure = failure_of(one, place, spark)
        if failure is not None:
            refused += 1
            if isinstance(failure, StateError):
                assert failure.code in (DATA, REPLAY)
                assert "spark" in failure.hint.lower()
            elif isinstance(failure, StreamingQueryException):
                assert any(str(place / "state" / "spark") in note for note in failure.__notes__), file
            else:
                assert "metadata file is missing" in str(failure), file
            shutil.rmtree(place / "state" / "spark")
            assert failure_of(one, place, spark) is None
        assert difference(answer(one, place), wanted) is None, file
    assert refused


def restored(place: Path) -> None:
    for part in ("state", "out"):
        shutil.rmtree(place / part)
        shutil.copytree(place / "backup" / part, place / part)


def damage(path: Path, kind: str) -> None:
    """Also of the checksum that Spark keeps beside it: else it would only ever see that."""
    data = path.read_bytes()
    others = [file for file in sorted(path.parent.glob("[0-9]*")) if file != path]
    stale = others[0].read_bytes() if others else b"of another day"
    damaged = stale if kind == "stale" else damage_kinds()[kind](data)
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    if damaged is not None:
        path.write_bytes(damaged)


def failure_of(one: Any, place: Path, spark: SparkSession) -> Exception | None:
    try:
        run_on_spark(one, place, spark)
    except (StateError, PySparkException) as failure:
        return failure
    return None


@pytest.mark.parametrize("lost", [("commits/2",), ("commits/2", "commits/1"), ("commits/2", "offsets/2")])
def test_the_last_entries_of_spark_are_lost(
    lost: tuple[str, ...], stopped: tuple[Path, Answer], spark: SparkSession
) -> None:
    """The last commit alone is what a crash between our commit and Spark's leaves: that batch comes again, and is
    known.

    With more gone, Spark's checkpoint is older than ours, and the run is refused.
    """
    (place, wanted), one = stopped, scenario("tumbling")
    restored(place)
    for file in lost:
        damage(place / "state" / "spark" / file, "removed")
    failure = failure_of(one, place, spark)
    if "offsets/2" in lost:
        assert isinstance(failure, StateError)
        assert failure.code == REPLAY
        assert "Spark" in failure.hint
        shutil.rmtree(place / "state" / "spark")
        failure = failure_of(one, place, spark)
    assert failure is None
    assert difference(answer(one, place), wanted) is None


# --- workers


@contextlib.contextmanager
def full_for_workers(spark: SparkSession) -> Iterator[None]:
    """No Python worker of Spark, present or to come, can write a file of more than a few bytes."""
    workers = [pid for pid, _ in python_workers(os.getpid())]
    assert workers
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    for pid in workers:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (16, most))
    try:
        yield
    finally:
        for pid, _ in python_workers(os.getpid()):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, most))


def test_workers_that_can_not_write(spark: SparkSession, tmp_path: Path) -> None:
    """A refusal that says which file and why; nothing of the batch counts, and a new start goes on."""
    one = scenario("chain of queries")
    write_files(one, tmp_path, range(4))
    write_files(one, tmp_path / "first", range(2))
    run_on_spark(one, tmp_path / "first", spark)  # starts the workers
    with full_for_workers(spark), pytest.raises(StateError) as caught:
        run_on_spark(one, tmp_path, spark)
    assert caught.value.code == STORAGE
    assert re.search("too large|File", caught.value.message)
    assert caught.value.hint
    run_on_spark(one, tmp_path, spark)
    check("chain of queries", tmp_path)


@contextlib.contextmanager
def little_memory_for_workers(room: int) -> Iterator[None]:
    """No Python worker of Spark, present or to come, gets so many bytes more than it has now."""
    workers = [pid for pid, _ in python_workers(os.getpid())]
    assert workers
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    for pid in workers:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + room, most))
    try:
        yield
    finally:
        for pid, _ in python_workers(os.getpid()):
            resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, most))


@pytest.mark.parametrize("of", ["join", "over", "windows", "sequences", "asof"])
def test_workers_that_have_no_memory(of: str, spark: SparkSession, tmp_path: Path) -> None:
    """They say so, unless Polars aborts them; never that something is damaged. A new start goes on."""
    made = tg.program(Out=relations()[of])
    streams = sorted(stream.name for stream in made.facts.program.inputs)
    for name in streams:
        for number, batch in enumerate(pushed()[:2]):
            for folder, rows in (("in", batch[name]), ("few", batch[name].slice(0, 10))):
                path = tmp_path / folder / name / f"{number}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, path)
                os.utime(path, (1_600_000_000 + number,) * 2)

    def run(place: Path, folder: str = "in") -> None:
        made.start(
            spark,
            sources={
                name: tg.parquet(tmp_path / folder / name, per_batch=1, delay=0, bounded=True) for name in streams
            },
            sinks={"Out": tg.parquet_sink(place / "out")},
            checkpoint=place / "state",
            driver_bytes=0,
        ).awaitTermination()

    def keys(place: Path) -> list[int]:
        return sorted(key for path in (place / "out").glob("*.parquet") for key in pq.read_table(path)["k"].to_pylist())

    run(tmp_path / "started", "few")  # what workers have given back since they had many rows would be enough
    said, found = list[str](), list[list[int]]()
    for room in (0, 8, 32):
        place = tmp_path / str(room)
        failure: BaseException | None = None
        with little_memory_for_workers(room << 20):
            try:
                run(place)
            except (StateError, StreamingQueryException) as error:
                failure = error
        if failure is not None:
            said.append(failure.code if isinstance(failure, StateError) else str(failure))
        run(place)
        found.append(keys(place))
    run(tmp_path / "whole")
    assert found == [keys(tmp_path / "whole")] * 3
    assert said
    assert all(one == MEMORY or re.search("crashed|exited unexpectedly", one) for one in said), said
