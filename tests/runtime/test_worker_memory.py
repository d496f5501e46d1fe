"""What workers hold from one task to the next saves reading. No result depends on it, whoever gets which task."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
from collections import Counter, OrderedDict
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tests.runtime.inline_workers import InlineRun, Workers
from tests.shards import shards
from tidegate.algebra.errors import QueryError
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.tasks import held, still
from tidegate.runtime.engines.spark.tasks.held import HeldOperator, HeldOperators, HeldTables, held_of, packed
from tidegate.runtime.engines.spark.tasks.running import Tasks, run_packed, run_tasks
from tidegate.runtime.ordered import state as ordered_state
from tidegate.runtime.ordered.state import Delta, Part
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.tuning.choices import INGEST
from tidegate.runtime.tuning.tuner import Tuner

readings = tg.stream("R", "name string, t bigint, x bigint", progress="t")
names = tg.table("Names", "name string, size bigint")
RESULTS = ("Found", "Alone", "Near", "Sized")
NAMES, BATCHES, SPAN = ("one", "two", "three", "four", None), 6, 20


def program() -> tg.Program:
    """Operators of several families, a join by key, and one with a static table."""
    parts = readings.partition_by("name")
    found = parts.derive(A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x.is_in(2, 3)))
    r, n = readings.as_("r"), names.as_("n")
    sized = r.join(n, r.name == n.name, r.x > n.size).select(name=r.name, t=r.t, size=n.size)
    a, b = readings.as_("a"), readings.as_("b")
    return tg.program(
        Found=found.match(found.A.before(found.B) | found.A.overlaps(found.B), within=12),
        Alone=found.A,
        Near=a.join(b, a.name == b.name, a.x < b.x, a.t < b.t, b.t <= a.t + 15).select(name=a.name, x=b.x, t=b.t),
        Sized=sized.group_by(name=sized.name, w=tg.ceil(sized.t, 25)).agg(n=tg.count(), most=tg.max(sized.size)),
    )


STATICS = {"Names": [{"name": "one", "size": 1}, {"name": "two", "size": 2}]}


def rows(seed: int) -> list[list[dict[str, Any]]]:
    """By batch. In some spans nothing changes."""
    rng = random.Random(seed)
    values = dict.fromkeys(NAMES, 0)
    batches = []
    for batch in range(BATCHES):
        some = []
        for t in range(batch * SPAN, (batch + 1) * SPAN):
            for name in NAMES:
                if batch != 2 and rng.random() < 0.3:
                    values[name] = rng.randrange(4)
                some.append({"name": name, "t": t, "x": values[name]})
        batches.append(some)
    return batches


def write(folder: Path, batches: list[list[dict[str, Any]]]) -> Path:
    folder.mkdir()
    for number, some in enumerate(batches):
        path = folder / f"{number}.parquet"
        pl.DataFrame(some, schema={"name": pl.String, "t": pl.Int64, "x": pl.Int64}).write_parquet(path)
        os.utime(path, (1_600_000_000 + number,) * 2)
    return folder


def begun(workers: Workers, place: Path, files: Path) -> InlineRun:
    made = program()
    sinks = {name: parquet_sink(place / "out" / name) for name in RESULTS}
    sources = {"R": parquet(files, per_batch=1, delay=0, bounded=True)}
    return InlineRun.of(workers, made.facts, sources, sinks, place / "checkpoint", STATICS)


def results(place: Path) -> dict[str, Counter[str]]:
    return {
        name: Counter(
            str(row) for path in (place / "out" / name).glob("*.parquet") for row in pl.read_parquet(path).to_dicts()
        )
        for name in RESULTS
    }


def expected(batches: list[list[dict[str, Any]]]) -> dict[str, Counter[str]]:
    found = program().run({"R": [row for some in batches for row in some], **STATICS})
    wanted = {name: Counter(map(str, found[name].arrow().to_pylist())) for name in RESULTS}
    assert all(wanted.values())
    return wanted


@pytest.mark.parametrize("seed", shards(6, 2))
def test_whoever_gets_a_task_results_are_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are drawn, lost now and then, and every second batch is tried again after all its tasks were done. Of two
    runs one adds to small states what has changed, as it is done with large ones.
    """
    if seed % 2:
        monkeypatch.setattr(ordered_state, "SMALL", 0)
    rng, batches = random.Random(seed), rows(seed)
    workers = Workers(monkeypatch, tasks=3, choose=lambda number: rng.randrange(3))
    run = begun(workers, tmp_path, write(tmp_path / "in", batches))
    collect = Runner._collect
    for number in range(BATCHES):
        if number % 2:

            def failing(*given: Any) -> Any:
                raise OSError("no")

            monkeypatch.setattr(Runner, "_collect", failing)
            with pytest.raises(OSError, match="no"):
                run.batch()
            monkeypatch.setattr(Runner, "_collect", collect)
        if rng.random() < 0.3:
            workers.lose(rng.randrange(3))
        report = run.batch()
        assert set(report.places.values()) <= {"sharded"}
    run.run.close()
    assert results(tmp_path) == expected(batches)


def test_a_run_does_not_go_on_with_what_another_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs of the same name take turns on one worker."""
    batches = [rows(1), rows(2)]
    workers = Workers(monkeypatch)
    files = [write(tmp_path / f"in{n}", some) for n, some in enumerate(batches)]
    runs = [begun(workers, tmp_path / f"place{n}", path) for n, path in enumerate(files)]
    for _ in range(BATCHES):
        for run in runs:
            run.batch()
    for n, run in enumerate(runs):
        run.run.close()
        assert results(tmp_path / f"place{n}") == expected(batches[n])


def test_a_place_that_is_made_anew_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers outlive the checkpoint of a run: what they hold of it is of no use to the next one there."""
    workers = Workers(monkeypatch)
    for number in (6, 7):
        batches = rows(number)
        run = begun(workers, tmp_path / "place", write(tmp_path / f"in{number}", batches))
        run.all()
        assert results(tmp_path / "place") == expected(batches)
        shutil.rmtree(tmp_path / "place")


def test_what_workers_do_for_the_first_time_is_no_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They load then what it needs."""
    measured: list[set[str]] = []
    monkeypatch.setattr(Tuner, "measured", lambda self, done, seconds: measured.append(set(done)))
    run = begun(Workers(monkeypatch), tmp_path, write(tmp_path / "in", rows(5)))
    reports = [run.batch() for _ in range(3)]  # not all queries are evaluated in the first
    run.run.close()
    assert measured == [{INGEST}, {INGEST}, set(reports[-1].places)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of operators' state and of static tables that are read."""
    opened: list[str] = []
    read_table, read_parquet = LocalStore.read_table, pl.read_parquet

    def reading(self: LocalStore, path: str, columns: Any = None) -> Any:
        opened.append(path)
        return read_table(self, path, columns)

    def reading_static(path: Any, **options: Any) -> Any:
        opened.append(str(path))
        return read_parquet(path, **options)

    monkeypatch.setattr(LocalStore, "read_table", reading)
    monkeypatch.setattr(pl, "read_parquet", reading_static)
    return opened


def test_a_worker_reads_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]) -> None:
    workers = Workers(monkeypatch)
    run = begun(workers, tmp_path, write(tmp_path / "in", rows(3)))
    run.batch()
    assert sum("/statics/" in path for path in reads) == 1
    for lost in (False, False, True, False):
        reads.clear()
        if lost:
            workers.lose(0)
        run.batch()
        assert any(path.startswith("kernel/") for path in reads) is lost
        assert any("/statics/" in path for path in reads) is lost
    run.run.close()


def test_an_operator_that_could_not_be_written_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    batches = rows(4)
    workers = Workers(monkeypatch)
    run = begun(workers, tmp_path, write(tmp_path / "in", batches))
    run.batch()
    write_table = LocalStore.write_table

    def full(self: LocalStore, path: str, *given: Any, **options: Any) -> Any:
        if path.startswith("kernel/"):
            raise OSError("full")
        return write_table(self, path, *given, **options)

    monkeypatch.setattr(LocalStore, "write_table", full)
    with pytest.raises(tg.TidegateError):
        run.batch()
    monkeypatch.setattr(LocalStore, "write_table", write_table)
    reads.clear()
    run.batch()
    assert any(path.startswith("kernel/") for path in reads)
    run.all()
    assert results(tmp_path) == expected(batches)


def situations(run: InlineRun, place: Path, batches: int, *, lost: Workers | None = None) -> list[tuple[Any, ...]]:
    """The situations that a run has found after so many batches; before each of these the first worker is `lost`."""
    for _ in range(batches):
        if lost is not None:
            lost.lose(0)
        run.batch()
    run.run.close()
    return sorted(row for path in (place / "A").glob("*.parquet") for row in pl.read_parquet(path).rows())


def of_situations(workers: Workers, place: Path, files: Path, **aggregates: Any) -> InlineRun:
    """A run that finds the times in which a name is above 0."""
    above = readings.partition_by("name").derive(A=tg.situation(readings.x > 0, **aggregates)).A
    sources, sinks = {"R": parquet(files, per_batch=1, delay=0, bounded=True)}, {"A": parquet_sink(place / "A")}
    return InlineRun.of(workers, tg.program(A=above).facts, sources, sinks, place / "checkpoint")


def test_what_a_worker_holds_is_the_operator_after_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the greatest value so far of a situation that goes on."""
    batches = [[{"name": "one", "t": t, "x": x}] for t, x in enumerate((2, 1, 1, 0))]
    run = of_situations(Workers(monkeypatch), tmp_path, write(tmp_path / "in", batches), top=tg.max(readings.x))
    assert situations(run, tmp_path, len(batches)) == [("one", 0, 3, 2)]


def test_what_a_worker_reads_has_the_last_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many situations one ends and begins again: what is written is the change alone."""
    monkeypatch.setattr(ordered_state, "SMALL", 0)
    batches = [[{"name": f"n{number}", "t": 0, "x": 1} for number in range(60)]]
    batches += [[{"name": "n0", "t": t, "x": x}] for t, x in ((1, 0), (2, 1), (3, 0))]
    workers = Workers(monkeypatch)
    run = of_situations(workers, tmp_path, write(tmp_path / "in", batches))
    assert situations(run, tmp_path, len(batches), lost=workers) == [("n0", 0, 1), ("n0", 2, 3)]


def part(path: str, size: int = 10, checksum: str = "c") -> Part:
    return (Delta(("open",), (FileRef(path, size, checksum),), 1),)


def test_an_operator_counts_where_files_and_progress_say_so() -> None:
    operator: Any = object()
    for query, asked, shard, of, old, new, found in (
        ("Q", part("a"), 1, 3, 5, 6, True),
        ("Q", part("b"), 1, 3, 5, 6, False),
        ("Q", part("a", checksum="d"), 1, 3, 5, 6, False),
        ("Q", part("a"), 1, 3, 6, 7, False),
        ("Q", part("a"), 1, 3, 4, 5, False),
        ("Q", part("a"), 2, 3, 5, 6, False),
        ("Q", part("a"), 1, 4, 5, 6, False),
        ("Other", part("a"), 1, 3, 5, 6, False),
    ):
        operators = HeldOperators()
        operators.keep("Q", 1, 3, HeldOperator(part("a"), {"t": 5}, operator))
        assert (operators.take(query, shard, of, asked, {"t": old}, {"t": new}) is operator) is found
        again = operators.take("Q", 1, 3, part("a"), {"t": 5}, {"t": 6})
        is_left = (query, shard, of) != ("Q", 1, 3)
        assert again is (operator if is_left else None)  # what was taken is held no longer


def test_what_is_out_of_date_is_let_go() -> None:
    """Not what other tasks of the batch go on from, nor what they have kept."""
    operators = HeldOperators()
    for shard in range(4):
        operators.keep("Q", shard, 4, HeldOperator(part("a"), {"t": shard}, None))  # type: ignore[arg-type]  # none is needed
    operators.keep("Other", 0, 4, HeldOperator(part("a"), {"t": 0}, None))  # type: ignore[arg-type]  # none is needed
    operators.take("Q", 3, 4, part("b"), {"t": 1}, {"t": 2})
    assert list(operators._held) == [("Q", 1, 4), ("Q", 2, 4), ("Other", 0, 4)]


def test_so_many_bytes_are_held() -> None:
    operators = HeldOperators(most_bytes=25)
    for shard in range(4):
        operators.keep("Q", shard, 4, HeldOperator(part("a"), {}, None))  # type: ignore[arg-type]  # none is needed
    assert list(operators._held) == [("Q", 2, 4), ("Q", 3, 4)]
    operators.keep("Large", 0, 4, HeldOperator(part("a", 26), {}, None))  # type: ignore[arg-type]  # none is needed
    assert not operators._held


def test_so_many_tables_and_runs_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "_RUNS", type(held._RUNS)())
    frame = pl.DataFrame({"x": range(100)})
    for number, name in enumerate("ab"):
        (frame + number).write_parquet(tmp_path / name)
    tables = HeldTables(most_bytes=int(frame.estimated_size()))
    assert tables.of(str(tmp_path / "a")) is tables.of(str(tmp_path / "a"))
    assert tables.of(str(tmp_path / "b")) is not tables.of(str(tmp_path / "b"))
    assert tables.of(str(tmp_path / "b")).get_column("x").to_list() == list(range(1, 101))
    first = held_of("first", str(tmp_path))
    assert held_of("first", str(tmp_path)) is first
    for run in range(held.MOST_RUNS):
        held_of(str(run), str(tmp_path))
    assert len(held._RUNS) == held.MOST_RUNS
    assert held_of("first", str(tmp_path)) is not first


def told(what: str, own: Any) -> Iterator[str]:
    if own == "fail":
        raise QueryError("TG401", what)
    yield json.dumps({"what": what, "own": own})


def one(own: Any) -> Iterator[str]:
    return told("one", own)


def two(own: Any) -> Iterator[str]:
    return told("two", own)


def test_every_task_does_its_work_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = Workers(monkeypatch)
    given = [Tasks(one, [1, ["\udcff", None]]), Tasks(two, range(2))]
    found = [(summary["what"], summary["own"]) for summary in run_tasks(spark, given)]
    assert found == [("one", 1), ("one", ["\udcff", None]), ("two", 0), ("two", 1)]
    assert run_tasks(spark, []) == []
    with pytest.raises(QueryError, match="two"):
        run_tasks(spark, [Tasks(one, [1]), Tasks(two, ["fail"])])


class Shared:
    """What all tasks of a job share; it knows how often it was read."""

    read = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return read_shared, ()


def read_shared() -> Shared:
    Shared.read += 1
    return Shared()


def counted(shared: Shared, what: str, own: Any) -> Iterator[str]:
    assert isinstance(shared, Shared)
    return told(what, own)


def test_what_the_tasks_of_a_job_share_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "_SHARED", OrderedDict())
    spark: Any = Workers(monkeypatch)
    for number in range(held.MOST_JOBS + 3):
        works = [partial(counted, Shared(), f"{what} of {number}") for what in ("one", "two")]
        before = Shared.read
        found = run_tasks(spark, [Tasks(work, range(3)) for work in works])
        assert [summary["what"] for summary in found] == [f"one of {number}"] * 3 + [f"two of {number}"] * 3
        assert Shared.read == before + 2
    assert len(held._SHARED) == held.MOST_JOBS


def test_what_a_worker_has_loaded_is_left_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still, "_tasks", count(1))
    monkeypatch.setattr(held, "_SHARED", OrderedDict())
    frozen = []
    try:
        for _ in range(9):
            gc.unfreeze()
            list(run_packed(packed([one]), []))
            frozen.append(gc.get_freeze_count() > 0)
    finally:
        gc.unfreeze()
    assert [number for number, is_frozen in enumerate(frozen, 1) if is_frozen] == [2, 4, 8]
