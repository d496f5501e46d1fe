"""Rows of the next batch are taken in while a batch is evaluated, with the fates that they have in their own batch."""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.runtime.inline_workers import InlineRun, Workers
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.time import EPOCH
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.ahead import following
from tidegate.runtime.engines.ahead.following import Following
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.embedded.steps.intake_ahead import IntakeAhead, TakenIn
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.ingest import inputs
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.tuning.tuner import Tuner

readings = tg.stream("R", "k bigint, t timestamp", progress="t")
positive = tg.result_of("Found", readings.where(readings.k > 0))
found = tg.program(Next=positive.select(k=positive.k + 1, t=positive.t))
SECOND = 1_000_000
HERE, AHEAD = "MainThread", "tidegate-intake-ahead"


def written(folder: Path, number: int, *values: int, at: int | None = None) -> Path:
    """A file of rows of one second."""
    folder.mkdir(parents=True, exist_ok=True)
    path, second = folder / f"{number:03d}.parquet", number if at is None else at
    rows = list(values or (1,))
    times = pa.array([second * SECOND] * len(rows), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"k": rows, "t": times}), path)
    os.utime(path, ns=(number + 1, number + 1))
    return path


def void(_: object) -> None:
    """What a failpoint gives."""


def session(
    folder: Path, program: tg.Program = found, *, store: Any = None, source: Any = None, **given: Any
) -> Session:
    source = {"per_batch": 2, "delay": 0, "bounded": True, "policy": "quarantine", **(source or {})}
    sources = {"R": parquet(folder, **source)}
    return Session(program.facts, store, sources=sources, options=RunOptions(**{"threads": 2, **given}))


@pytest.fixture
def waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is not over before all is taken in that was begun meanwhile."""
    original = IntakeAhead.end

    def end(self: IntakeAhead) -> None:
        original(self)
        for begun in self._begun.values():
            begun._rows.exception()

    monkeypatch.setattr(IntakeAhead, "end", end)


def by_one_thread_and_by_two(run: Callable[[int], Any]) -> Any:
    """What a run gives, which does not depend on the number of threads."""
    alone, beside = run(1), run(2)
    assert alone == beside
    return beside


@pytest.mark.usefixtures("waited_for")
def test_each_file_is_read_once_and_those_of_later_batches_meanwhile(
    tmp_path: Path, reads: list[tuple[str, str]]
) -> None:
    for number in range(5):
        written(tmp_path / "in", number)
    with session(tmp_path / "in") as one:
        assert len(one.process()) == 3
        assert len(one.results("Found")) == 5
    assert sorted(name for name, _ in reads) == ["000", "001", "002", "003", "004"]
    assert [name for name, thread in sorted(reads) if thread == AHEAD] == ["002", "003", "004"]


@pytest.mark.usefixtures("waited_for")
@pytest.mark.parametrize("cores", [1, 2])
def test_the_driver_of_spark_takes_in_what_follows(
    tmp_path: Path, reads: list[tuple[str, str]], cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it takes rows in itself, and there is a core for it."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    for number in range(5):
        written(tmp_path / "in", number)
    sources = {"R": parquet(tmp_path / "in", per_batch=2, delay=0)}
    sinks = {"Next": parquet_sink(tmp_path / "out")}
    run = InlineRun.of(Workers(monkeypatch), found.facts, sources, sinks, tmp_path / "state", limits=Limits())
    assert [report.counts["R"].accepted for report in run.all()] == [2, 2, 1]
    assert sorted(name for name, _ in reads) == ["000", "001", "002", "003", "004"]
    ahead = [name for name, thread in sorted(reads) if thread == AHEAD]
    assert ahead == (["002", "003", "004"] if cores > 1 else [])


@pytest.mark.usefixtures("waited_for")
@pytest.mark.parametrize("place", ["session", "driver"])
def test_files_have_the_values_of_their_folders(
    tmp_path: Path, reads: list[tuple[str, str]], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tg.program(Out=tg.stream("R", "k bigint, t timestamp, day date", progress="t"))
    for number in range(4):
        written(tmp_path / "in" / f"day=2026-03-0{number + 1}", number)
    state = tmp_path / "state"
    if place == "driver":
        monkeypatch.setattr(os, "cpu_count", lambda: 2)
        sources = {"R": parquet(tmp_path / "in", per_batch=1, bounded=True)}
        run = InlineRun.of(Workers(monkeypatch), program.facts, sources, {}, state, limits=Limits())
        run.all()
    with session(tmp_path / "in", program, source={"per_batch": 1}, store=LocalStore(state)) as one:
        one.process()
        assert one.quarantine_rows() == []
        assert [row["day"].day for row in one.results("Out")] == [1, 2, 3, 4]
    assert [thread for name, thread in sorted(reads) if name > "000"] == [AHEAD] * 3


def before_the_rest_is_divided(monkeypatch: pytest.MonkeyPatch, called: Callable[[], None]) -> None:
    """Has the thread wait with the first of its files in hand, and not opened, until their batch has begun and divided
    them; it is called before that.
    """
    begun, divided = threading.Event(), threading.Event()
    original, of_divided = inputs.Arrivals.of, TakenIn.divided

    def of(self: inputs.Arrivals, path: str) -> Any:
        if threading.current_thread().name.startswith(AHEAD):
            begun.set()
            assert divided.wait(60)
        return original(self, path)

    def dividing(self: TakenIn) -> frozenset[str]:
        assert begun.wait(60)
        called()
        theirs = of_divided(self)
        divided.set()
        return theirs

    monkeypatch.setattr(inputs.Arrivals, "of", of)
    monkeypatch.setattr(TakenIn, "divided", dividing)


def test_what_nobody_has_begun_is_divided(
    tmp_path: Path, reads: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread has begun the first of five files when their batch begins: it takes two more, others take the rest."""
    for number in range(10):
        written(tmp_path / "in", number)
    before_the_rest_is_divided(monkeypatch, lambda: None)
    with session(tmp_path / "in", source={"per_batch": 5}) as one:
        one.process()
        assert [row["t"].second for row in one.results("Found")] == list(range(10))
    assert sorted(name for name, _ in reads) == [f"00{number}" for number in range(10)]
    assert sorted(name for name, thread in reads if thread == AHEAD) == ["005", "006", "007"]


@pytest.mark.usefixtures("waited_for")
def test_what_comes_while_a_step_runs_is_taken_in(
    tmp_path: Path, reads: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SECONDS_APART", 0.0)
    monkeypatch.setattr(following, "LOOKS_APART", 0)
    written(tmp_path / "in", 0)
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm("batch-after-intent", lambda: void(written(tmp_path / "in", 1)))
    with session(tmp_path / "in", store=store, source={"per_batch": None, "bounded": False}) as one:
        one.step()
        assert reads == [("000", HERE), ("001", AHEAD)]
        written(tmp_path / "in", 2)
        assert one.step().counts["R"].rows_in == 2
        assert [row["t"].second for row in one.results("Found")] == [0, 1]  # the third waits for later rows
    assert sorted(name for name, _ in reads) == ["000", "001", "002"]


@pytest.mark.usefixtures("waited_for")
@pytest.mark.parametrize("clocks", [(100, 200), (100, 101)], ids=["a lot later", "a little later"])
def test_rows_are_ahead_by_the_clock_of_their_own_batch(tmp_path: Path, clocks: tuple[int, int]) -> None:
    """A row of second 150 is ahead while the clock says 100 or 101, and not once it says 200."""
    for number, at in enumerate((1, 2, 150, 3)):
        written(tmp_path / "in", number, at=at)

    def run(threads: int) -> Any:
        guarded = {"skew_guard": "10s", "delay": "1h"}
        with session(tmp_path / "in", source=guarded, threads=threads, clock=clock_of(clocks)) as one:
            one.process()
            return one.counts["R"], sorted(map(str, one.results("Found"))), one.quarantine_rows()

    counts, *_ = by_one_thread_and_by_two(run)
    assert counts.rejected == ({} if clocks[1] == 200 else {"ahead": 1})


@pytest.mark.usefixtures("waited_for")
def test_progress_counts_by_the_clock_of_its_own_batch(tmp_path: Path) -> None:
    """A row that is malformed says that all up to second 150 is there: that is ahead at 100, and not at 200."""
    for number in range(3):
        written(tmp_path / "in", number)
    said = pa.array([None, 150 * SECOND], pa.timestamp("us", "UTC"))
    times = pa.array([2 * SECOND, 3 * SECOND], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"k": ["7", "many"], "t": times, "upto": said}), tmp_path / "in" / "002.parquet")
    os.utime(tmp_path / "in" / "002.parquet", ns=(3, 3))

    def run(threads: int) -> Any:
        guarded = {"skew_guard": "10s", "delay": None, "progress_columns": {"t": "upto"}, "bounded": False}
        with session(tmp_path / "in", source=guarded, threads=threads, clock=clock_of((100, 200))) as one:
            one.process()
            return one.counts["R"].rejected, len(one.results("Found"))

    assert by_one_thread_and_by_two(run) == ({"unparseable": 1}, 3)


@pytest.mark.usefixtures("waited_for")
def test_a_row_is_late_by_what_came_before_its_batch(tmp_path: Path) -> None:
    """The second batch has a row that is late by the first alone, and one that only its own rows have overtaken."""
    for number, at in enumerate((1, 5, 9, 7, 3)):
        written(tmp_path / "in", number, at=at)

    def run(threads: int) -> Any:
        with session(tmp_path / "in", source={"per_batch": 2}, threads=threads) as one:
            one.process()
            return one.counts["R"], one.quarantine_rows()

    counts, _ = by_one_thread_and_by_two(run)
    assert counts.rejected == {"late": 1}


@pytest.mark.usefixtures("waited_for")
def test_rows_are_old_by_the_clock_of_their_own_batch(tmp_path: Path, reads: list[tuple[str, str]]) -> None:
    for number in range(4):
        written(tmp_path / "in", number, at=100 + number)

    def run(threads: int) -> Any:
        guarded = {"age_guard": "10s", "delay": "1h"}
        with session(tmp_path / "in", source=guarded, threads=threads, clock=clock_of((105, 200))) as one:
            one.process()
            return one.counts["R"], one.quarantine_rows()

    counts, _ = by_one_thread_and_by_two(run)
    assert counts.rejected == {"old": 2}
    assert AHEAD not in {thread for _, thread in reads}


@pytest.mark.usefixtures("waited_for")
def test_rows_arrive_with_their_own_batch(tmp_path: Path) -> None:
    for number in range(4):
        written(tmp_path / "in", number)
    arriving = tg.stream("R", "k bigint, received timestamp", progress="received")
    program = tg.program(Found=arriving.select(k=arriving.k, at=arriving.received))

    def run(threads: int) -> Any:
        source = {"delay": None, "arrival": "received"}
        with session(tmp_path / "in", program, source=source, threads=threads, clock=clock_of((5, 7, 9))) as one:
            one.process()
            return sorted(row["at"].second for row in one.results("Found"))

    assert by_one_thread_and_by_two(run) == [5, 5, 7, 7]


def clock_of(seconds: Sequence[int]) -> Callable[[], dt.datetime]:
    """A clock that says these seconds, one after the other, and the last one from then on."""
    left = list(seconds)

    def clock() -> dt.datetime:
        return EPOCH + dt.timedelta(seconds=left.pop(0) if len(left) > 1 else left[0])

    return clock


@pytest.mark.usefixtures("waited_for")
@pytest.mark.parametrize(
    "error",
    [OSError(5, "the disk"), MemoryError(), RuntimeError("can't start new thread")],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize(
    "at", [(Following, "_new"), (Following, "_look"), (TakenIn, "begin")], ids=["estimate", "look", "thread"]
)
def test_what_fails_ahead_fails_nothing(
    tmp_path: Path, at: tuple[type, str], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, left = getattr(*at), [1]

    def fail(*given: Any) -> Any:
        if left:
            left.pop()
            raise error
        return original(*given)

    for number in range(6):
        written(tmp_path / "in", number)
    monkeypatch.setattr(*at, fail)
    with session(tmp_path / "in") as one:
        one.process()
        assert [row["t"].second for row in one.results("Found")] == [0, 1, 2, 3, 4, 5]
    assert not left


def test_rows_are_set_aside_in_the_order_in_which_they_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were pushed, those of the thread's files, and those of others."""
    for number in range(8):
        written(tmp_path / "in", number, at=9 if number < 4 else 1)
    before_the_rest_is_divided(monkeypatch, lambda: None)

    def run(threads: int) -> Any:
        with session(tmp_path / "in", source={"per_batch": 4}, threads=threads) as one:
            one.step()
            one.push("R", [("many", 10)])
            one.step()
            return [(Path(row["origin"]).stem, row["position"]) for row in one.quarantine_rows()]

    assert len(by_one_thread_and_by_two(run)) == 5


def test_of_two_errors_the_first_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread takes the sixth to eighth file of ten, others the rest; the eighth and the tenth are bad."""
    for number in range(10):
        written(tmp_path / "in", number)
    for number in (7, 9):
        (tmp_path / "in" / f"00{number}.parquet").write_bytes(b"no parquet")
        os.utime(tmp_path / "in" / f"00{number}.parquet", ns=(number + 1, number + 1))
    before_the_rest_is_divided(monkeypatch, lambda: None)
    error, accepted = by_one_thread_and_by_two(lambda threads: failing(tmp_path, threads, per_batch=5))
    assert "007.parquet cannot be read" in error
    assert accepted == 5


def test_a_file_that_changes_once_its_batch_has_read_it_is_told_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a look for the next batch has seen it change."""
    monkeypatch.setattr(following, "SECONDS_APART", 0.0)
    monkeypatch.setattr(following, "LOOKS_APART", 0)
    for number in range(2):
        written(tmp_path / "in", number)
    store = LocalStore(tmp_path / "state")
    with session(tmp_path / "in", store=store, source={"per_batch": None, "bounded": False}) as one:
        one.step()
        written(tmp_path / "in", 2)
        monkeypatch.setattr(Following, "_look", _changing(Following._look, tmp_path / "in"))
        one.step()
        with pytest.raises(QueryError, match="TG411"):
            one.step()


def _changing(original: Callable[[Following], bool], folder: Path) -> Callable[[Following], bool]:
    """Writes the third file again before each look."""

    def look(self: Following) -> bool:
        os.utime(written(folder, 2, 7, 7), ns=(3, 30))
        return original(self)

    return look


def failing(tmp_path: Path, threads: int, program: tg.Program = found, **source: Any) -> tuple[str, int]:
    """How the second of three batches fails, and how many rows were committed before."""
    store = LocalStore(tmp_path / f"state-{threads}")
    with session(tmp_path / "in", program, store=store, source=source, threads=threads) as one:
        with pytest.raises((QueryError, EvaluationError)) as told:
            one.process()
        return str(told.value), one.counts["R"].accepted


@pytest.mark.usefixtures("waited_for")
def test_a_file_that_cannot_be_read_fails_its_own_batch(tmp_path: Path) -> None:
    for number in range(6):
        written(tmp_path / "in", number)
    (tmp_path / "in" / "003.parquet").write_bytes(b"no parquet")
    os.utime(tmp_path / "in" / "003.parquet", ns=(4, 4))
    error, accepted = by_one_thread_and_by_two(lambda threads: failing(tmp_path, threads))
    assert "003.parquet cannot be read as parquet" in error
    assert accepted == 2


@pytest.mark.usefixtures("waited_for")
def test_a_bad_file_is_set_aside_at_the_time_of_its_own_batch(tmp_path: Path) -> None:
    for number in range(4):
        written(tmp_path / "in", number)
    (tmp_path / "in" / "003.parquet").write_bytes(b"no parquet")
    os.utime(tmp_path / "in" / "003.parquet", ns=(4, 4))

    def run(threads: int) -> Any:
        with session(
            tmp_path / "in", source={"on_bad_file": "quarantine"}, threads=threads, clock=clock_of(range(9))
        ) as one:
            one.process()
            return one.counts["R"], one.quarantine_rows()

    counts, rows = by_one_thread_and_by_two(run)
    assert counts.accepted == 3
    assert len(rows) == 1


@pytest.mark.usefixtures("waited_for")
def test_a_row_without_a_value_fails_its_own_batch(tmp_path: Path) -> None:
    for number in range(6):
        written(tmp_path / "in", number, (1 << 62) if number == 3 else 1)
    doubled = tg.program(Found=readings.where(readings.k * 2 > 0))
    error, accepted = by_one_thread_and_by_two(lambda threads: failing(tmp_path, threads, doubled, on_error="fail"))
    assert "003.parquet" in error
    assert accepted == 2


@pytest.mark.usefixtures("waited_for")
def test_rejected_rows_of_a_stream_that_is_to_fail_do_so_in_their_own_batch(tmp_path: Path) -> None:
    for number, at in enumerate((1, 5, 6, 2)):
        written(tmp_path / "in", number, at=at)
    error, accepted = by_one_thread_and_by_two(lambda threads: failing(tmp_path, threads, policy="fail"))
    assert "TG410" in error
    assert accepted == 2


@pytest.mark.usefixtures("waited_for")
def test_a_file_that_is_written_again_is_taken_in_again(tmp_path: Path, reads: list[tuple[str, str]]) -> None:
    for number in range(4):
        written(tmp_path / "in", number)

    def rewrite(report: Any) -> None:
        if report.seq == 1:
            os.utime(written(tmp_path / "in", 2, 7, 7), ns=(3, 30))

    with session(tmp_path / "in", on_batch=rewrite) as one:
        one.process()
        assert sorted(row["k"] for row in one.results("Found")) == [1, 1, 1, 7, 7]
    assert ("002", AHEAD) in reads
    assert ("002", HERE) in reads or ("002", "tidegate-intake") in reads


def test_a_file_that_changes_before_it_is_taken_in_counts_as_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread has it, but has not opened it, when its batch begins and it is written again."""
    for number in range(4):
        written(tmp_path / "in", number)
    before_the_rest_is_divided(monkeypatch, lambda: os.utime(written(tmp_path / "in", 2, 7), ns=(3, 30)))
    for _ in range(2):  # a later run would tell of a file that changed after it was read
        with session(tmp_path / "in", store=LocalStore(tmp_path / "state")) as one:
            one.process()
            assert [row["k"] for row in one.results("Found")] == [1, 1, 7, 1]


@pytest.mark.usefixtures("waited_for")
@pytest.mark.parametrize("at", ["batch-after-segment", "commit-after-manifest"])
def test_a_batch_that_fails_takes_nothing_with_it(tmp_path: Path, at: str) -> None:
    for number in range(6):
        written(tmp_path / "in", number)

    def fail() -> None:
        raise OSError(5, "the disk")

    for step in range(3):
        store = LocalStore(tmp_path / "state")
        with session(tmp_path / "in", store=store) as one:
            if step:
                store.failpoints.arm(at, fail)
                with pytest.raises(Exception, match="the disk"):
                    one.process()
            else:
                one.step()
    with session(tmp_path / "in", store=LocalStore(tmp_path / "state")) as one:
        one.process()
        assert [row["t"].second for row in one.results("Found")] == [0, 1, 2, 3, 4, 5]
        assert one.counts["R"].rows_in == 6


def test_a_step_that_fails_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken in for the batch after it is not taken for the one that is repeated."""
    for number in range(6):
        written(tmp_path / "in", number)
    store = LocalStore(tmp_path / "state")
    with session(tmp_path / "in", store=store, source={"per_batch": 1}) as one:
        one.step()
        monkeypatch.setattr(Tuner, "ended", _failing(Tuner.ended))
        with pytest.raises(ValueError, match="once"):
            one.process()
        one.process()
        assert [row["t"].second for row in one.results("Found")] == [0, 1, 2, 3, 4, 5]


def _failing(original: Callable[..., None]) -> Callable[..., None]:
    """Fails once."""
    left = [1]

    def fail(*given: Any) -> None:
        if left:
            left.pop()
            raise ValueError("once")
        original(*given)

    return fail


def test_threads_end_with_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "SECONDS_APART", 0.0)
    for number in range(4):
        written(tmp_path / "in", number)
    with session(tmp_path / "in") as one:
        one.step()
    for thread in threading.enumerate():
        if thread.name.startswith(AHEAD):
            thread.join(60)
            assert not thread.is_alive()


@pytest.mark.usefixtures("waited_for")
def test_rows_that_are_judged_in_order_are_read_alone(tmp_path: Path, reads: list[tuple[str, str]]) -> None:
    for number in range(4):
        written(tmp_path / "in", number % 2, at=number)
        written(tmp_path / "in", number)
    with session(tmp_path / "in", source={"key": ["k", "t"]}) as one:
        one.process()
    assert {thread for _, thread in reads} == {HERE, "tidegate-read-ahead"}


@pytest.mark.usefixtures("waited_for")
def test_so_many_bytes_are_taken_in(
    tmp_path: Path, reads: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        written(tmp_path / "in", number)
    monkeypatch.setattr(following, "MOST", int(1.5 * os.path.getsize(tmp_path / "in" / "000.parquet")))
    with session(tmp_path / "in") as one:
        one.process()
    assert [name for name, thread in reads if thread == AHEAD] == ["002"]


@pytest.mark.usefixtures("waited_for")
def test_nothing_is_taken_in_where_batches_are_to_be_short(tmp_path: Path, reads: list[tuple[str, str]]) -> None:
    for number in range(4):
        written(tmp_path / "in", number)
    with session(tmp_path / "in", tune="500ms") as one:
        one.process()
        assert len(one.results("Found")) == 4
    assert AHEAD not in {thread for _, thread in reads}


def test_half_of_what_is_left_is_others(tmp_path: Path) -> None:
    files = [SourceFile.found(str(written(tmp_path / "in", number))) for number in range(6)]
    with Session(found.facts) as one:
        begun, schema = TakenIn(one._runner.intakes(0)["R"]), one._setup.judged("R")
    begun.add(inputs.Arrivals((), (), "parquet", schema, None, found=tuple(filter(None, files))))
    begun._next = 1
    assert sorted(Path(path).stem for path in begun.divided()) == ["000", "001", "002"]
