"""Sessions in the background: threads push into bounded queues, and results are as if one thread had pushed all."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.runtime.engines.embedded.input_queue import InputQueue, QueuedProgress, QueuedRows
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.ingest.raw_rows import put_together, raw

events = tg.stream("E", "n bigint, t bigint", progress="t")
program = tg.program(Out=events.select("n", "t"))
left = tg.stream("L", "k bigint, t bigint", progress="t").as_("l")
right = tg.stream("R", "k bigint, t bigint", progress="t").as_("r")
pairs = tg.program(Pairs=left.join(right, left.k == right.k, left.t <= right.t, right.t <= left.t + 50))
#: A callback that takes longer than this has waited for something that never comes.
PATIENCE = 20


class Kept(list[int]):
    """What a callback was given, in its order."""

    def sink(self) -> Any:
        return tg.callback(lambda table, batch: self.extend(table["n"].to_pylist()))


def rows(first: int, count: int) -> list[tuple[int, int]]:
    return [(n, n) for n in range(first, first + count)]


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def quiet(tmp_path: Path) -> Iterator[Session]:
    """A session whose results nobody looks at."""
    with program.session(sinks={"Out": tg.callback(lambda table, batch: None)}) as session:
        yield session


def entry(stream: str, count: int) -> QueuedRows:
    return QueuedRows(stream, raw(rows(0, count), program.definition.inputs[0].schema))


def test_a_queue_gives_what_came_first() -> None:
    queue = InputQueue(100)
    for stream, count in (("A", 3), ("B", 2), ("A", 4), ("B", 1)):
        queue.put(entry(stream, count), 0)
        queue.tell(stream, {(stream, "t"): count})
    taken = queue.take(5, 0.0, 0.0)
    assert [(one.stream, isinstance(one, QueuedProgress)) for one in taken] == [("A", False), ("A", True), ("B", False)]
    assert queue.waiting() == {"A": 4, "B": 1}
    assert [one.stream for one in queue.rest()] == ["B", "A", "A", "B", "B"]
    assert queue.take(5, 0.0, 0.0) == []


def test_progress_is_the_greatest_that_was_told() -> None:
    queue = InputQueue(100)
    for t in (5, 9, 7):
        queue.tell("A", {("A", "t"): t})
    queue.put(entry("A", 1), 0)
    queue.tell("A", {("A", "t"): 3})
    first, _, last = queue.take(5, 0.0, 0.0)
    assert isinstance(first, QueuedProgress)
    assert isinstance(last, QueuedProgress)
    assert (first.told, last.told) == ({("A", "t"): 9}, {("A", "t"): 3})


@pytest.mark.parametrize("queue_rows", [1, 7, 1000])
@pytest.mark.parametrize("batch_rows", [1, 50, 1000])
def test_results_are_those_of_one_thread(queue_rows: int, batch_rows: int) -> None:
    """Events come in any order within the delay, from a thread for each part of the keys of each stream."""
    rng = random.Random(f"{queue_rows} {batch_rows}")
    given = {name: [(rng.randrange(8), t + rng.randrange(5)) for t in range(120)] for name in ("L", "R")}
    sources = {name: tg.source(None, delay=1000) for name in given}
    found: list[dict[str, Any]] = []
    sink = tg.callback(lambda table, batch: found.extend(table.to_pylist()))
    with pairs.session(sources, sinks={"Pairs": sink}) as session:
        with session.background(queue_rows=queue_rows, batch_rows=batch_rows, batch_time="1ms", when_full="20s") as run:

            def produce(name: str, part: int) -> None:
                some = [row for row in given[name] if row[0] % 2 == part]
                while some:
                    run.push(name, some[:3])
                    del some[:3]

            producers = [threading.Thread(target=produce, args=(name, part)) for name in given for part in (0, 1)]
            for one in producers:
                one.start()
            for one in producers:
                one.join()
            run.finish()
        assert {name: counts.accepted for name, counts in session.counts.items()} == {"L": 120, "R": 120}
    whole = pairs.run(given)["Pairs"].rows()
    assert whole
    assert sorted(map(repr, found)) == sorted(map(repr, whole))


def test_a_producer_that_is_too_fast_waits() -> None:
    """The callback ends only when the producer can not go on: a queue and a batch of rows are there, and never more."""
    kept, ended, most = list[int](), threading.Event(), 0

    def consume(table: Any, batch: int) -> None:
        until(lambda: run._queue.blocked() > 0 or ended.is_set())
        kept.extend(table["n"].to_pylist())

    with program.session(sinks={"Out": tg.callback(consume)}) as session:
        with session.background(queue_rows=100, batch_rows=100, when_full="20s") as run:
            for first in range(0, 3000, 20):
                run.push("E", rows(first, 20))
                run.advance("E", {"t": first + 19})
                most = max(most, first + 20 - len(kept))
                assert run.waiting_rows().get("E", 0) <= 100
            ended.set()
        assert 200 <= most <= 220  # in the queue, in the batch, and the push that has just been taken
        assert kept == list(range(3000))


def test_progress_alone_takes_no_memory(quiet: Session) -> None:
    with quiet.background(batch_time="1h") as run:
        for t in range(10_000):
            run.advance("E", {"t": t})
        assert run._queue.count == 1
        run.flush("20s")
        assert quiet.progress == {"Out": {"t": 9_999}}


def test_a_full_queue_refuses(quiet: Session) -> None:
    with quiet.background(queue_rows=10, when_full="refuse", batch_time="1h") as run:
        run.push("E", rows(0, 8))
        run.push("E", rows(8, 2))
        with pytest.raises(tg.QueueFullError, match="10 rows wait, and it holds 10") as caught:
            run.push("E", rows(10, 1))
        assert caught.value.code == "TG441"
        assert caught.value.site is not None
        until(lambda: not run.waiting_rows())  # a batch is due, since a push was refused
        run.push("E", rows(10, 50))  # an empty queue takes any push
    assert quiet.counts["E"].accepted == 60


def test_rows_of_many_pushes_are_put_together() -> None:
    """What has other columns stays by itself, and each row has the fate that it has in a push of its own."""
    schema = program.definition.inputs[0].schema
    given: list[Any] = [
        [(1, 1), (None, 2)],
        [("three", 3)],
        [{"n": 4, "t": "x"}],
        pl.DataFrame({"n": [5, None], "t": [5, 6]}),
        pl.DataFrame({"n": [7], "t": [7]}),
        pl.DataFrame({"n": [8.5], "t": [8]}),
        pl.DataFrame({"n": ["9"], "t": [9]}),
        {"n": [10], "t": [10]},
    ]
    parts = [raw(some, schema) for some in given]
    together = put_together(parts)
    assert [part.count for part in together] == [4, 3, 1, 1, 1]
    fates = []
    for some in (parts, together):
        with program.session() as session:
            for part in some:
                session._input.push("E", part)
            session.finish()
            session.step()
            fates.append((session.counts, session.results("Out"), [r["row"] for r in session.quarantine_rows()]))
    assert fates[0] == fates[1]
    assert fates[0][0]["E"].rejected


def test_whoever_waits_for_room_gets_a_batch(quiet: Session) -> None:
    with quiet.background(queue_rows=5, when_full="20s", batch_time="1h") as run:
        for first in range(0, 20, 5):
            run.push("E", rows(first, 5))
    assert quiet.counts["E"].accepted == 20


def test_a_push_waits_so_long(quiet: Session) -> None:
    with quiet.background(queue_rows=10, when_full="50ms") as run, run._between_batches:
        run.push("E", rows(0, 10))
        until(lambda: not run.waiting_rows())  # a batch has taken them, and waits for the session
        run.push("E", rows(10, 10))
        begin = time.monotonic()
        with pytest.raises(tg.QueueFullError):
            run.push("E", rows(20, 1))
        assert time.monotonic() - begin >= 0.05
    assert quiet.counts["E"].accepted == 20


def test_streams_do_not_wait_for_each_other() -> None:
    sink = tg.callback(lambda table, batch: None)
    options: dict[str, Any] = {"queue_rows": 5, "when_full": "refuse", "batch_time": "1h"}
    with pairs.session(sinks={"Pairs": sink}) as session, session.background(**options) as run:
        run.push("L", [(1, 1)] * 5)
        run.push("R", [(1, 2)] * 5)
        assert run.waiting_rows() == {"L": 5, "R": 5}


def test_a_callback_may_push_but_never_waits() -> None:
    said: list[str] = []

    def react(table: Any, batch: int) -> None:
        if not said:
            run.push("E", rows(100, 10))
            refused: list[Callable[[], object]] = [lambda: run.push("E", rows(110, 1)), run.flush]
            for what in refused:
                with pytest.raises(tg.QueryError) as caught:
                    what()
                said.append(caught.value.code)

    with program.session(sinks={"Out": tg.callback(react)}) as session:
        with session.background(queue_rows=10, when_full="20s") as run:
            run.push("E", rows(0, 10))
            run.advance("E", {"t": 9})
            until(lambda: len(said) == 2)
        assert said == ["TG441", "TG416"]
        assert session.counts["E"].accepted == 20


def test_a_failure_is_told_to_all_and_loses_nothing(tmp_path: Path) -> None:
    def fail(table: Any, batch: int) -> None:
        until(lambda: bool(run.waiting_rows()))  # so that something waits as it ends
        raise RuntimeError("no consumer")

    with program.session(sinks={"Out": tg.callback(fail)}, checkpoint=tmp_path) as session:
        run = session.background(batch_time="1ms", queue_rows=10, when_full="20s")
        pushed, refused = 0, None
        while refused is None:
            try:
                run.push("E", rows(pushed, 5))
                pushed += 5
                run.advance("E", {"t": pushed - 1})
            except tg.QueryError as error:
                refused = error
        assert refused.code == "TG416"
        assert "TG414" in str(refused)
        with pytest.raises(tg.TidegateError, match="TG414"):
            run.flush("20s")
        with pytest.raises(tg.TidegateError, match="TG414") as caught:
            run.close()
        run.close()  # it has said so
        waiting = session._input.waiting_rows()["E"]
        assert f"{waiting} rows of E" in caught.value.__notes__[0]
    with program.session(sinks={"Out": Kept().sink()}, checkpoint=tmp_path) as again:
        assert waiting + again.counts["E"].accepted == pushed


def test_a_batch_that_can_not_be_made_loses_no_rows(quiet: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(parts: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("tidegate.runtime.engines.embedded.background.put_together", refuse)
    run = quiet.background(batch_time="1h")
    run.push("E", rows(0, 5))
    run.push("E", rows(5, 5))
    with pytest.raises(MemoryError):
        run.flush("20s")
    with pytest.raises(MemoryError) as caught:
        run.close()
    assert "10 rows of E" in caught.value.__notes__[0]
    quiet.step()
    assert quiet.counts["E"].accepted == 10


@pytest.mark.parametrize(("most_bytes", "counts"), [(0, [2, 2, 20, 2, 2, 4]), (100, [4, 20, 4, 4]), (1 << 20, [32])])
def test_large_pushes_stay_by_themselves(most_bytes: int, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.ingest.raw_rows._TOGETHER_BYTES", most_bytes)
    schema = program.definition.inputs[0].schema
    given = [[n] * size for n, size in enumerate((2, 2, 20, 2, 2, 4))]
    together = put_together([raw(pl.DataFrame({"n": some, "t": some}), schema) for some in given])
    assert [part.count for part in together] == counts
    assert [n for part in together for n in pa.array(part.columns["n"]).to_pylist()] == [
        n for some in given for n in some
    ]


def test_pushes_of_a_stream_get_room_in_turn(quiet: Session) -> None:
    """Small ones that come later do not keep a large one out."""
    run = quiet.background(queue_rows=10, batch_rows=1, when_full="20s", batch_time="1h")
    order: list[int] = []

    def push(count: int) -> None:
        run.push("E", rows(0, count))
        order.append(count)

    with run._between_batches:  # one row is with the batch, and the queue is full
        run.push("E", rows(0, 1))
        until(lambda: not run.waiting_rows())
        run.push("E", rows(0, 10))
        waiting = []
        for count in (9, 1, 11, 2):
            waiting.append(threading.Thread(target=push, args=(count,)))
            waiting[-1].start()
            until(lambda: run._queue.blocked() == len(waiting))
    for one in waiting:
        one.join()
    run.close()
    assert order.index(11) < order.index(2)
    assert quiet.counts["E"].accepted == 34


def test_a_callback_gives_the_session_nothing() -> None:
    """The batch that calls it would take it for its own, and forget it."""
    said: list[str] = []

    def react(table: Any, batch: int) -> None:
        calls: list[Callable[[], object]] = [
            lambda: session.push("E", rows(9, 1)),
            lambda: session.advance("E", {"t": 9}),
            session.finish,
            session.step,
            session.process,
            session.background,
        ]
        for call in calls:
            with pytest.raises(tg.QueryError, match="a batch of this session is running") as caught:
                call()
            said.append(caught.value.code)

    with program.session(sinks={"Out": tg.callback(react)}) as session:
        session.push("E", rows(0, 2))
        session.advance("E", {"t": 1})
        session.step()
        assert said == ["TG416"] * 6
        session.push("E", rows(2, 1))  # and afterwards all is as before
        with session.background(batch_time="1ms") as run:
            run.advance("E", {"t": 2})
            run.flush("20s")
    assert said == ["TG416"] * 12


def test_a_frame_is_what_it_was_when_it_was_pushed(quiet: Session) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [0, 1, 2], "t": [0, 1, 2]})
    kept = Kept()
    with program.session(sinks={"Out": kept.sink()}) as session, session.background(batch_time="1h") as run:
        run.push("E", frame)
        frame.loc[:, "n"] = [7, 8, 9]
        run.finish()
    assert kept == [0, 1, 2]


def test_warnings_are_of_the_line_that_calls(quiet: Session) -> None:
    with quiet.background() as run:
        run.advance("E", {"t": 9})
        run.flush("20s")
        with pytest.warns(tg.RunWarning, match="TG432") as caught:
            run.advance("E", {"t": 3})
        run.finish()
        run.flush("20s")
        with pytest.warns(tg.RunWarning, match="TG433") as late:
            run.push("E", rows(0, 1))
    assert {one.filename for one in (*caught, *late)} == {__file__}


def test_rows_that_wait_as_the_program_ends_are_told(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "import tidegate as tg\n"
        "events = tg.stream('E', 'n bigint, t bigint', progress='t')\n"
        "sinks = {'Out': tg.callback(lambda table, batch: None)}\n"
        "run = tg.program(Out=events.select('n', 't')).session(sinks=sinks).background(batch_time='1h')\n"
        "run.push('E', [(1, 1), (2, 2)])\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=PATIENCE * 6)
    assert "TG437 the program ends, and rows wait in a background session: 2 rows of E" in ended.stderr


def test_a_long_time_is_no_error(quiet: Session) -> None:
    with quiet.background(queue_rows=5, batch_time="200000d", when_full="200000d") as run:
        run.push("E", rows(0, 5))
        run.push("E", rows(5, 5))
        run.flush("200000d")
    assert quiet.counts["E"].accepted == 10


def test_what_is_not_drained_is_the_session_s(quiet: Session) -> None:
    run = quiet.background(batch_time="1h")
    run.push("E", rows(0, 5))
    run.advance("E", {"t": 3})
    run.push("E", rows(5, 5))
    run.close(drain=False)
    assert quiet.counts["E"].rows_in == 0
    report = quiet.step()
    assert (report.counts["E"].accepted, report.results) == (10, {"Out": 4})
    with pytest.raises(tg.QueryError, match="TG416"):
        run.push("E", rows(10, 1))


def test_a_failure_beside_an_exception_in_the_block_is_noted() -> None:
    def fail(table: Any, batch: int) -> None:
        raise RuntimeError("no consumer")

    with program.session(sinks={"Out": tg.callback(fail)}) as session:
        run = session.background(batch_time="1ms")
        run.push("E", rows(0, 5))
        run.advance("E", {"t": 4})
        until(lambda: run._has_ended)
        with pytest.raises(KeyError) as caught, run:
            raise KeyError
    assert "Besides, a batch in the background failed: TG414" in caught.value.__notes__[0]


def test_a_session_is_closed_though_its_background_failed(tmp_path: Path) -> None:
    def fail(table: Any, batch: int) -> None:
        raise RuntimeError("no consumer")

    session = program.session(sinks={"Out": tg.callback(fail)}, checkpoint=tmp_path)
    run = session.background(batch_time="1ms")
    run.push("E", rows(0, 5))
    run.advance("E", {"t": 4})
    until(lambda: run._has_ended)
    with pytest.raises(tg.TidegateError, match="TG414"):
        session.close()
    with program.session(sinks={"Out": Kept().sink()}, checkpoint=tmp_path) as again:  # nobody holds it
        assert again.counts["E"].accepted == 5


def test_an_exception_in_the_block_does_not_drain(quiet: Session) -> None:
    run = quiet.background(batch_time="1h")
    run.push("E", rows(0, 5))
    with pytest.raises(KeyError), run:
        raise KeyError
    assert quiet.counts["E"].rows_in == 0
    assert quiet.step().counts["E"].accepted == 5


def test_whoever_waits_for_room_learns_that_it_closes(quiet: Session) -> None:
    run = quiet.background(queue_rows=5, batch_time="1h", when_full="20s")
    said: list[str] = []

    def wait() -> None:
        try:
            run.push("E", rows(10, 5))
        except tg.QueryError as error:
            said.append(error.code)

    with run._between_batches:
        run.push("E", rows(0, 5))
        run._queue.want()
        until(lambda: not run.waiting_rows())
        run.push("E", rows(5, 5))
        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: run._queue.blocked() == 1)
        run._queue.close(drain=False)
        waiting.join()
    run.close(drain=False)
    assert said == ["TG416"]
    quiet.step()
    assert quiet.counts["E"].accepted == 10


def test_the_session_is_the_background_s_until_it_is_closed(quiet: Session) -> None:
    with quiet.background() as run:
        refused: list[Callable[[], object]] = [
            lambda: quiet.push("E", rows(0, 1)),
            lambda: quiet.advance("E", {"t": 1}),
            quiet.finish,
            quiet.step,
            quiet.process,
            quiet.background,
        ]
        for what in refused:
            with pytest.raises(tg.QueryError, match="runs in the background"):
                what()
        run.push("E", rows(0, 3))
        run.flush("20s")
        assert run.look(lambda session: session.counts["E"].accepted) == 3
        assert "in    E    3 rows, accepted" in str(run.status())
    quiet.push("E", rows(3, 1))
    assert quiet.step().counts["E"].accepted == 1


def test_closing_the_session_closes_its_background(quiet: Session) -> None:
    run = quiet.background(batch_time="1h")
    run.push("E", rows(0, 3))
    quiet.close()
    with pytest.raises(tg.QueryError, match="TG416"):
        run.push("E", rows(3, 1))
    assert not run._thread.is_alive()


def test_what_was_flushed_survives(tmp_path: Path) -> None:
    """Whoever pushes again what was not flushed finds each row once."""
    out = {"Out": tg.parquet_sink(tmp_path / "out")}
    with program.session(sinks=out, checkpoint=tmp_path / "state") as session:
        run = session.background(batch_time="1h")
        run.push("E", rows(0, 10))
        run.flush("20s")
        run.push("E", rows(10, 10))
        run.close(drain=False)  # and the process ends
    with program.session(sinks=out, checkpoint=tmp_path / "state") as session, session.background() as run:
        run.push("E", rows(10, 10))
        run.finish()
    assert sorted(pl.read_parquet(tmp_path / "out" / "*.parquet")["n"].to_list()) == list(range(20))


def test_what_goes_by_the_clock_goes_on() -> None:
    """A silent source is idle after a while of the clock, with nobody pushing."""
    kept, now = Kept(), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]
    timed = tg.stream("T", "n bigint, t timestamp", progress="t")
    other = tg.stream("S", "n bigint, t timestamp", progress="t")
    both = tg.program(Out=timed.select("n", "t").union(other.select("n", "t")))
    sources = {"T": tg.source(None, delay="0s"), "S": tg.source(None, delay="0s", idle="10s")}
    opened = both.session(sources, sinks={"Out": kept.sink()}, clock=lambda: now[0])
    with opened as session, session.background(batch_time="1ms") as run:
        run.push("T", [(1, "2025-12-31T23:59Z"), (2, "2026-01-01T00:00Z")])
        run.flush("20s")
        assert not kept
        now[0] += dt.timedelta(minutes=1)
        until(lambda: 1 in kept)


def test_files_are_read_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    kept = Kept()
    opened = program.session({"E": tg.parquet(tmp_path / "in", delay=0)}, sinks={"Out": kept.sink()})
    with opened as session, session.background():
        pl.DataFrame({"n": [1, 2], "t": [1, 2]}).write_parquet(tmp_path / "in" / "a.parquet")
        until(lambda: 1 in kept)


def test_what_is_wrong_is_said_to_whoever_pushes(quiet: Session) -> None:
    with quiet.background() as run:
        wrong: list[tuple[str, Callable[[], object]]] = [
            ("TG402", lambda: run.push("X", rows(0, 1))),
            ("TG311", lambda: run.push("E", 5)),
            ("TG403", lambda: run.advance("E", {"t": "soon"})),
            ("TG402", lambda: run.finish("X")),
        ]
        for code, what in wrong:
            with pytest.raises(tg.QueryError) as caught:
                what()
            assert caught.value.code == code
            assert caught.value.site is not None
            assert caught.value.site.file == __file__
    assert quiet.counts["E"].rows_in == 0


@pytest.mark.parametrize(
    "options",
    [
        {"queue_rows": 0},
        {"queue_rows": True},
        {"batch_rows": 0},
        {"batch_rows": 1.5},
        {"when_full": "drop"},
        {"when_full": 5},
        {"when_full": "-1s"},
        {"batch_time": "soon"},
    ],
)
def test_options_are_checked(options: dict[str, Any], quiet: Session) -> None:
    with pytest.raises(tg.QueryError, match=f"TG401 {next(iter(options))}="):
        quiet.background(**options)
    quiet.push("E", rows(0, 1))  # and the session is as before


def test_results_do_not_pile_up_in_memory(tmp_path: Path) -> None:
    with program.session() as session, pytest.raises(tg.QueryError, match="TG408"):
        session.background()
    with program.session(checkpoint=tmp_path / "state") as session:
        with session.background() as run:
            run.push("E", rows(0, 3))
            run.finish()
        assert session.table("Out")["n"] == [0, 1, 2]


def test_a_flush_waits_so_long(quiet: Session) -> None:
    with quiet.background(batch_time="1h") as run:
        with run._between_batches:
            run.push("E", rows(0, 3))
            with pytest.raises(TimeoutError, match="after 20ms"):
                run.flush("20ms")
        run.flush("1m")
        assert not run.waiting_rows()
