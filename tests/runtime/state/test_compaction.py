"""Result directories: small files become few, and whoever lists the directory sees every row exactly once, always."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.runtime.cli.commands import main
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.failpoints import COMPACTION, Failpoints, SimulatedCrash, crash
from tidegate.runtime.state.outputs import beside as module_beside
from tidegate.runtime.state.outputs import compaction as module
from tidegate.runtime.state.outputs.beside import GRACE, sweep
from tidegate.runtime.state.outputs.compaction import compact, hold, parts_of
from tidegate.runtime.state.outputs.names import Result, is_output_of, output_name, result_of
from tidegate.runtime.state.store.local import LocalStore

events = tg.stream("E", "n bigint, t bigint", progress="t")


def opened(place: Path, **options: Any) -> Session:
    sink = tg.parquet_sink(place / "out", **options)
    return tg.program(Out=events.select("n", "t")).session(checkpoint=place / "state", sinks={"Out": sink})


def batches(session: Session, first: int, count: int) -> None:
    for n in range(first, first + count):
        session.push("E", [(n, n)])
        session.advance("E", {"t": n})
        session.step()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that begins a compaction ends it after the same batch."""
    monkeypatch.setattr("tidegate.runtime.engines.compactions._ROWS", 10**9)


def rows(directory: Path) -> list[int]:
    """All rows, as a program reads them that lists the directory once and then opens what it has found there."""
    return sorted(pl.read_parquet(f"{directory}/*.parquet")["n"].to_list())


def parts(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def published(directory: Path, count: int) -> None:
    """Files as batches publish them, a row each."""
    directory.mkdir(parents=True)
    for seq in range(1, count + 1):
        pq.write_table(pa.table({"n": [seq]}), directory / output_name(seq, "Q", 0))


def test_files_of_many_batches_become_few(tmp_path: Path) -> None:
    written = []
    with opened(tmp_path) as session:
        for number in range(20):
            batches(session, 20 * number, 20)
            done = compact(tmp_path / "out")
            written.append(done.rows)
            assert done.files == len(parts(tmp_path / "out")) <= 15 * 2 + 20
            assert rows(tmp_path / "out") == list(range(20 * number + 20))
        assert session.table("Out")["n"] == list(range(400))  # in the order of batches
    assert sum(written) <= 400 * 3


@pytest.mark.usefixtures("at_once")
def test_by_itself_between_batches(tmp_path: Path) -> None:
    with opened(tmp_path, compact=True) as session:
        batches(session, 0, 100)
        assert rows(tmp_path / "out") == list(range(100))
    assert len(parts(tmp_path / "out")) <= 15 + 16 + 1
    with opened(tmp_path, compact=True) as session:  # after a restart too
        batches(session, 100, 100)
        assert rows(tmp_path / "out") == list(range(200))
        assert [row["n"] for row in session.results("Out")] == list(range(200))
    assert len(parts(tmp_path / "out")) <= 15 + 16 + 1


@pytest.mark.usefixtures("at_once")
def test_a_file_is_opened_once_to_know_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each compaction opens all files that were ever merged."""
    opens = list[Path]()
    whole = module._metadata

    def counted(path: Path) -> Any:
        opens.append(path)
        return whole(path)

    monkeypatch.setattr(module, "_metadata", counted)
    monkeypatch.setattr(module, "_MOST_PARTS", 32)
    costs = []
    with opened(tmp_path, compact=True) as session:
        for round_ in range(20):
            batches(session, 32 * round_, 32)
            costs.append(len(opens))
            opens.clear()
        assert rows(tmp_path / "out") == list(range(640))
    assert len(parts(tmp_path / "out")) > 20  # no two of those that have as many parts as there may be become one
    assert max(costs[5:]) <= max(costs[:5]) <= 5 * 32
    published(tmp_path / "other", 40)
    known: module.Known = {}
    compact(tmp_path / "other", known=known)
    opens.clear()
    compact(tmp_path / "other", known=known)
    again = len(opens)
    (tmp_path / "other" / output_name(41, "Q", 0)).write_bytes(
        (tmp_path / "other" / output_name(40, "Q", 0)).read_bytes()
    )
    compact(tmp_path / "other", known=known)
    assert [path.name for path in opens[again:]] == [output_name(41, "Q", 0)]
    assert {path.name for path in known} == set(parts(tmp_path / "other"))


def test_without_it_files_stay(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        batches(session, 0, 40)
    assert len(parts(tmp_path / "out")) == 40


def by_name(directory: Path) -> list[int]:
    """The batches of which a list of the names has files, one for each."""
    listed = [result_of(name) for name in os.listdir(directory) if not name.startswith(".")]
    return sorted(seq - 1 for one in listed if one is not None for seq in range(one.first, one.last + 1))


def by_arrow(directory: Path) -> list[int]:
    """Arrow leaves out a listed file that has gone when it asks for its size, so compaction has to keep away."""
    sleep(0.02)  # compaction needs an instant in which nobody reads
    with tg.hold_compaction(directory):
        numbers: list[int] = pa.dataset.dataset(directory).to_table()["n"].to_pylist()
    return sorted(numbers)


@pytest.mark.parametrize("read", [by_name, rows, by_arrow])
def test_every_listing_has_each_row_once(tmp_path: Path, read: Callable[[Path], list[int]]) -> None:
    """Another thread reads the directory all the time, while batches publish and files are merged.

    A list of names is never wrong. Whoever opens the files of an older list may find one gone: that is an error, not
    another result.
    """
    out, over = tmp_path / "out", Event()
    seen, wrong = [0], list[object]()

    def look() -> None:
        while not over.is_set():
            try:
                numbers = read(out)
            except (OSError, pl.exceptions.PolarsError) as error:
                if read is not rows or "No such file" not in str(error):
                    wrong.append(error)
                continue
            if numbers != list(range(len(numbers))) or len(numbers) < seen[-1]:
                wrong.append(numbers)
            seen.append(len(numbers))

    with opened(tmp_path, compact=True) as session:
        batches(session, 0, 1)
        reader = Thread(target=look)
        reader.start()
        try:
            batches(session, 1, 150)
        finally:
            over.set()
            reader.join()
    assert wrong == []
    assert len(set(seen)) > 5
    assert rows(out) == list(range(151))


def test_a_reader_that_asks_for_each_file_holds_the_directory(tmp_path: Path) -> None:
    """Between the list and the sizes of the files, which is when Arrow would leave out the ones that were merged."""
    out = tmp_path / "out"
    published(out, 20)
    with tg.hold_compaction(out):
        listed = parts(out)
        with pytest.raises(StateError, match=r"tg\.hold_compaction"):
            compact(out)
        assert all((out / name).is_file() for name in listed)
    assert compact(out).files == 2
    assert not all((out / name).is_file() for name in listed)


def test_a_list_of_names_goes_on_after_the_exchange(tmp_path: Path) -> None:
    """The system gives some hundred names at a time: those that follow are asked for when the directory is another."""
    out = tmp_path / "out"
    published(out, 2000)
    with os.scandir(out) as entries:
        names = [next(entries).name]
        assert compact(out).files == 2
        names += [entry.name for entry in entries]
    assert sorted(names) == [output_name(seq, "Q", 0) for seq in range(1, 2001)]
    assert len(parts(out)) == 2


def test_what_was_merged_is_removed_when_no_list_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of `**/*.parquet` look into hidden directories too, so until then they see rows twice."""
    published(tmp_path / "out", 20)
    assert sweep(tmp_path / "out") is None
    for last in (20, 40, 60):
        for seq in range(last - 19, last + 1):
            pq.write_table(pa.table({"n": [seq]}), tmp_path / "out" / output_name(seq, "Q", 0))
        assert compact(tmp_path / "out").rows
        wait = sweep(tmp_path / "out")
        assert wait is not None
        assert 0 < wait <= GRACE
        assert {path.parent for path in tmp_path.rglob("*.parquet")} > {tmp_path / "out"}
        with monkeypatch.context() as late:
            late.setattr(module_beside, "GRACE", 0)
            assert sweep(tmp_path / "out") is None
        assert rows(tmp_path / "**") == list(range(1, last + 1))
        assert {path.parent for path in tmp_path.rglob("*.parquet")} == {tmp_path / "out"}
        assert parts(tmp_path / ".out.compacted") == []


@pytest.mark.usefixtures("at_once")
def test_a_run_removes_what_it_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = tmp_path / ".out.compacted"
    with opened(tmp_path, compact=True) as session:
        batches(session, 0, 40)
        assert parts(beside)
        monkeypatch.setattr(module_beside, "GRACE", 0)
        session._setup.compactions.left = dict.fromkeys(session._setup.compactions.left, 0.0)
        batches(session, 40, 5)
        assert parts(beside) == []
    (beside / f"tidegate-{0:032x}").mkdir()  # of a crash
    with opened(tmp_path, compact=True) as session:
        batches(session, 45, 1)
        assert parts(beside) == []


def test_merged_files_are_out_of_sight_while_others_are_merged(tmp_path: Path) -> None:
    published(tmp_path / "out", 60)
    points, seen = Failpoints(), list[list[int]]()

    def look() -> None:
        seen.append(rows(tmp_path / "**"))
        raise SimulatedCrash

    points.arm("compaction-merged", look)
    with pytest.raises(SimulatedCrash):
        compact(tmp_path / "out", failpoints=points)
    assert seen == [list(range(1, 61))]
    assert rows(tmp_path / "**") == list(range(1, 61))
    assert len([*(tmp_path / ".out.compacted").rglob("*.parquet.tmp")]) == 1


def test_compaction_waits_for_a_reader_of_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens one file after the other: none of them may go, however many compactions there are meanwhile."""
    monkeypatch.setattr(module, "_TRIES", 1)
    monkeypatch.setattr(module_beside, "GRACE", 0)
    with opened(tmp_path) as session:
        batches(session, 0, 20)
        reader = session.reader("Out")
        first = reader.read_next_batch()
        for number in range(1, 4):
            batches(session, 20 * number, 20)
            with pytest.raises(StateError, match="TG527"):
                compact(tmp_path / "out")
        assert [*first["n"].to_pylist(), *reader.read_all()["n"].to_pylist()] == list(range(20))
        assert compact(tmp_path / "out").rows == 79  # read to its end
        assert session.table("Out")["n"] == list(range(80))
        batches(session, 80, 20)
        unread = session.reader("Out")
        with pytest.raises(StateError, match="TG527"):
            compact(tmp_path / "out")
        del unread
        assert compact(tmp_path / "out").rows


@pytest.mark.parametrize("where", ["merge", "sync", "link", "exchange"])
@pytest.mark.parametrize(
    "fault",
    [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "failed"), MemoryError()],
    ids=["full", "failed", "memory"],
)
def test_a_compaction_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, fault: Exception
) -> None:
    out = tmp_path / "out"
    published(out, 40)
    before = {name: (out / name).stat().st_ino for name in parts(out)}

    def fails(*_: object, **__: object) -> None:
        assert parts(tmp_path / ".out.compacted")
        raise fault

    with monkeypatch.context() as faulty:
        match where:
            case "merge":
                faulty.setattr(pq.ParquetWriter, "write_table", fails)
            case "sync":
                faulty.setattr(os, "fsync", fails)
            case "link":
                faulty.setattr(os, "link", fails)
            case "exchange":
                faulty.setattr(module, "exchange", fails)
        with pytest.raises(StateError, match="TG510" if isinstance(fault, MemoryError) else "TG509"):
            compact(out)
    assert parts(tmp_path / ".out.compacted") == []
    assert {name: (out / name).stat().st_ino for name in parts(out)} == before
    assert compact(out).files == 2
    assert rows(out) == list(range(1, 41))


@pytest.mark.usefixtures("at_once")
def test_a_run_goes_on_after_a_compaction_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = module._merge

    def full(*_: object) -> Iterator[module.Step]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with opened(tmp_path, compact=True) as session:
        monkeypatch.setattr(module, "_merge", full)
        batches(session, 0, 40)  # of sixteen files the newest stays, and so all
        assert "No space left" in caplog.text
        assert len(parts(tmp_path / "out")) == 40
        monkeypatch.setattr(module, "_merge", whole)
        batches(session, 40, 20)
    assert len(parts(tmp_path / "out")) < 40
    assert rows(tmp_path / "out") == list(range(60))


def test_a_run_merges_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a batch a compaction goes on until it has merged some rows, by one step at least."""
    monkeypatch.setattr("tidegate.runtime.engines.compactions._SHARE", 0)
    with opened(tmp_path, compact=True) as session:
        steps = [next_batch(session, n) for n in range(120)]
    assert steps[:15] == [0] * 15
    assert sum(steps) > 20  # they go on
    assert steps[40:].count(0) > 5  # and end
    assert rows(tmp_path / "out") == list(range(120))
    assert len(parts(tmp_path / "out")) < 60
    assert [*(tmp_path / ".out.compacted").rglob("*.tmp")] == []  # one that goes on is given up at the end


def until_one_goes_on(session: Session, place: Path) -> int:
    """Runs batches of a row until a compaction writes a file, and gives the number of the last one."""
    for n in range(200):
        if next_batch(session, n) and [*(place / ".out.compacted").rglob("*.tmp")]:
            return n
    raise AssertionError("no compaction goes on after a batch")


def test_a_compaction_that_goes_on_is_given_up_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.engines.compactions._SHARE", 0)
    with opened(tmp_path, compact=True) as session:
        n = until_one_goes_on(session, tmp_path)
    assert [*(tmp_path / ".out.compacted").rglob("*.tmp")] == []
    assert rows(tmp_path / "out") == list(range(n + 1))


def test_a_compaction_that_fails_as_it_is_given_up_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All is committed by then: the run ends, gives up its checkpoint, and the next one goes on."""

    close = pq.ParquetWriter.close

    def full(writer: pq.ParquetWriter) -> None:
        close(writer)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tidegate.runtime.engines.compactions._SHARE", 0)
    with opened(tmp_path, compact=True) as session:
        n = until_one_goes_on(session, tmp_path)
        with monkeypatch.context() as faulty:
            faulty.setattr(pq.ParquetWriter, "close", full)
            session.close()
    assert "results are not compacted: TG509" in caplog.text
    assert parts(tmp_path / ".out.compacted") == []
    with opened(tmp_path, compact=True) as session:
        batches(session, n + 1, 20)
    assert rows(tmp_path / "out") == list(range(n + 21))


def test_a_compaction_keeps_up_with_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever time batches take: it merges three times as many rows after each as the batch brought."""
    monkeypatch.setattr("tidegate.runtime.engines.compactions._SHARE", 0)
    monkeypatch.setattr(module, "_PIECE", 16)
    monkeypatch.setattr(module, "_ROW_GROUP", 64)
    files = []
    with opened(tmp_path, compact=True) as session:
        for number in range(100):
            session.push("E", [(n, number) for n in range(100 * number, 100 * number + 100)])
            session.advance("E", {"t": number})
            session.step()
            files.append(len(parts(tmp_path / "out")))
    assert max(files[50:]) <= 60
    assert rows(tmp_path / "out") == list(range(10_000))


def next_batch(session: Session, n: int) -> int:
    """How many compactions go on after it."""
    batches(session, n, 1)
    return len(session._setup.compactions.going)


@pytest.mark.parametrize("failpoint", COMPACTION)
def test_a_crash_leaves_every_row_once(tmp_path: Path, failpoint: str) -> None:
    out = tmp_path / "out"
    published(out, 40)
    points = Failpoints()
    points.arm(failpoint, crash)
    with pytest.raises(SimulatedCrash):
        compact(out, failpoints=points)
    assert rows(out) == list(range(1, 41))
    assert (len(parts(out)) == 2) == (failpoint == "compaction-exchanged")
    compact(out)
    assert rows(out) == list(range(1, 41))
    assert len(parts(out)) == 2  # all but the newest batch, and that
    published(tmp_path / "more", 1)
    os.rename(tmp_path / "more" / output_name(1, "Q", 0), out / output_name(41, "Q", 0))
    assert compact(out).files == 3


def test_a_batch_may_be_published_again_after_a_compaction(tmp_path: Path) -> None:
    """The machine dies after the commit, and the note that results are out is lost."""
    with opened(tmp_path) as session:
        batches(session, 0, 20)
    compact(tmp_path / "out")
    (tmp_path / "state" / "published" / "0000000020").unlink()
    with opened(tmp_path) as session:
        assert rows(tmp_path / "out") == list(range(20))
        batches(session, 20, 1)
    assert rows(tmp_path / "out") == list(range(21))


@pytest.mark.parametrize("failpoint", ["store-publish-linked", "commit-before-marker"])
def test_a_batch_may_be_published_again_beside_newer_ones_of_another_checkpoint(tmp_path: Path, failpoint: str) -> None:
    def session(name: str, store: LocalStore | None = None) -> Session:
        program = tg.program(**{name: events.select("n", "t")})
        sink = tg.parquet_sink(tmp_path / "out")
        return Session(program.facts, store or LocalStore(tmp_path / name), sinks={name: sink})

    store = LocalStore(tmp_path / "Mine")
    died = session("Mine", store)
    batches(died, 0, 19)
    store.failpoints.arm(failpoint, crash)
    with pytest.raises(SimulatedCrash):
        batches(died, 19, 1)
    died._setup.checkpoint._lock.release()
    with session("Other") as other:
        batches(other, 0, 25)
    compact(tmp_path / "out")
    with session("Mine") as again:
        assert [row["n"] for row in again.results("Mine")] == list(range(20))
        batches(again, 20, 1)
    assert sorted(pl.read_parquet(f"{tmp_path}/out/*-Mine-*.parquet")["n"]) == list(range(21))


def test_a_checkpoint_that_was_restored_does_not_add_rows_to_merged_files(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        batches(session, 0, 8)
    shutil.copytree(tmp_path / "state", tmp_path / "backup")
    with opened(tmp_path) as session:
        batches(session, 8, 12)
    compact(tmp_path / "out")
    shutil.rmtree(tmp_path / "state")
    os.rename(tmp_path / "backup", tmp_path / "state")
    with pytest.raises(
        StateError, match=r"results of batches up to 19, and the checkpoint in .* ends with batch 8"
    ) as told:
        opened(tmp_path)
    assert told.value.code == "TG508"
    assert rows(tmp_path / "out") == list(range(20))


def test_a_new_checkpoint_does_not_add_rows_to_merged_files(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        batches(session, 0, 20)
    compact(tmp_path / "out")
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(StateError, match="TG508"):
        opened(tmp_path)


def test_a_new_checkpoint_does_not_add_rows_to_results_under_names_of_its_own(tmp_path: Path) -> None:
    """Its batches need not clash: where the first has no final row, the row of the second would be there twice."""
    with opened(tmp_path) as session:
        batches(session, 0, 1)
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(StateError, match=r"part-0000000001-Out-00000.parquet has results .* has no batch yet") as told:
        opened(tmp_path)
    assert told.value.code == "TG508"
    assert "empty output directory" in told.value.hint
    assert rows(tmp_path / "out") == [0]


def test_merged_files_of_other_queries_are_left_alone(tmp_path: Path) -> None:
    published(tmp_path / "out", 40)
    compact(tmp_path / "out")
    with opened(tmp_path) as session:
        batches(session, 0, 1)


def test_files_of_several_queries_and_schemas_are_not_mixed(tmp_path: Path) -> None:
    for seq in range(1, 60):
        for query in ("A", "B b"):
            table = pa.table({"n": [seq], "v": ["x"]} if seq < 30 else {"n": [seq], "v": [1]})
            (tmp_path / "out").mkdir(exist_ok=True)
            pq.write_table(table, tmp_path / "out" / output_name(seq, query, 0))
    done = compact(tmp_path / "out")
    assert done.files == 2 * (2 + 1)
    merged = [path for path in sorted((tmp_path / "out").iterdir()) if "-to-" in path.name]
    assert [len(parts_of(path)) for path in merged] == [29, 29, 29, 29]
    assert sorted(n for path in merged for n in pq.read_table(path)["n"].to_pylist()) == sorted([*range(1, 59)] * 2)


def test_large_files_stay_and_one_merged_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.state.outputs.compaction._MOST_ROWS", 20)
    published(tmp_path / "out", 200)
    compact(tmp_path / "out")
    sizes = [pq.read_metadata(path).num_rows for path in (tmp_path / "out").iterdir()]
    assert max(sizes) < 40
    assert len(sizes) <= 200 // 20 + 15 + 1
    assert rows(tmp_path / "out") == list(range(1, 201))


def test_parts_and_times_of_merged_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    published(out, 17)
    os.utime(out / output_name(16, "Q", 0), ns=(1, 123_456_789))
    compact(out)
    merged = out / "part-0000000001-to-0000000016-Q-00000.parquet"
    assert parts(out) == [merged.name, output_name(17, "Q", 0)]
    assert parts_of(merged) == tuple(output_name(seq, "Q", 0) for seq in range(1, 17))
    assert parts_of(out / output_name(17, "Q", 0)) == ()
    assert merged.stat().st_mtime_ns == 123_456_789
    more = tmp_path / "more"
    published(more, 4)
    assert compact(more, fanout=2).files == 2
    for seq in (5, 6):
        pq.write_table(pa.table({"n": [seq]}), more / output_name(seq, "Q", 0))
    assert compact(more, fanout=2).rows == 5
    assert parts_of(more / parts(more)[0]) == tuple(output_name(seq, "Q", 0) for seq in range(1, 6))
    assert rows(more) == list(range(1, 7))


def test_foreign_files_are_refused_and_untouched(tmp_path: Path) -> None:
    makers: list[Callable[[Path], object]] = [
        lambda path: (path / "notes.txt").write_text("mine"),
        lambda path: (path / "folder").mkdir(),
        lambda path: (path / output_name(99, "Q", 0)).symlink_to("/etc/hostname"),
        lambda path: (path / "part-1.parquet").write_text("mine"),
    ]
    for number, make in enumerate(makers):
        out = tmp_path / str(number)
        published(out, 20)
        make(out)
        before = parts(out)
        with pytest.raises(StateError, match="TG526"):
            compact(out)
        assert parts(out) == before
    with pytest.raises(StateError, match="TG526 there is no directory"):
        compact(tmp_path / "nowhere")
    beside = tmp_path / ".there.compacted"
    beside.mkdir()
    (beside / "mine").write_text("mine")
    published(tmp_path / "there", 20)
    with pytest.raises(StateError, match="TG526"):
        compact(tmp_path / "there")
    assert (beside / "mine").read_text() == "mine"
    published(tmp_path / "linked", 20)
    (tmp_path / ".linked.compacted").symlink_to(tmp_path / "there")
    with pytest.raises(StateError):
        compact(tmp_path / "linked")
    assert len(parts(tmp_path / "there")) == 20


@pytest.mark.parametrize("damage", ["footer", "page"])
def test_a_damaged_file_of_results_is_named_and_the_directory_stays(tmp_path: Path, damage: str) -> None:
    out = tmp_path / "out"
    published(out, 20)
    bad = out / output_name(3, "Q", 0)
    content = bad.read_bytes()
    bad.write_bytes(content[:-20] if damage == "footer" else content[:4] + bytes(30) + content[34:])
    with pytest.raises(StateError, match=f"TG526 {bad} cannot be read as Parquet"):
        compact(out)
    assert len(parts(out)) == 20


def test_a_run_goes_on_where_its_results_can_not_be_compacted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(tmp_path, compact=True) as session:
        batches(session, 0, 3)
        (tmp_path / "out" / "notes.txt").write_text("mine")
        batches(session, 3, 40)
        assert [row["n"] for row in session.results("Out")] == list(range(43))
    assert "notes.txt" in caplog.text


def test_a_directory_that_is_read_as_a_stream_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    published(out, 20)
    reader = tg.program(Again=tg.stream("R", "n bigint", progress="n").select("n"))

    def reading(directory: Path) -> Session:
        return reader.session(sources={"R": tg.parquet(directory)}, checkpoint=tmp_path / "reader")

    with reading(out) as session:
        session.process()
        with pytest.raises(StateError, match="TG527"):
            compact(out)
        assert len(parts(out)) == 20
    compact(out)
    with reading(out) as session, pytest.raises(StateError, match="TG527"):
        session.process()  # rather than the same rows again
    with reader.session(sources={"R": tg.parquet(out)}) as session:  # one that begins reads them once
        session.process()
        assert session.counts["R"].accepted == 20


def test_two_compactions_at_once_and_batches_that_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.state.outputs.compaction._TRIES", 1)
    out = tmp_path / "out"
    published(out, 20)
    with tg.hold_compaction(out), pytest.raises(StateError, match="TG527"):
        compact(out)
    (tmp_path / ".out.compacted").mkdir()
    other = hold(str(tmp_path / ".out.compacted"))
    assert other is not None
    with pytest.raises(StateError, match="is being compacted"):
        compact(out)
    os.close(other)
    assert compact(out).files == 2


def test_nothing_is_merged_while_somebody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all files were merged again and again, in vain."""
    monkeypatch.setattr("tidegate.runtime.state.outputs.compaction._TRIES", 1)
    out, points = tmp_path / "out", Failpoints()
    published(out, 20)
    points.record()
    with tg.hold_compaction(out), pytest.raises(StateError, match="TG527"):
        compact(out, failpoints=points)
    assert points.passed == {}
    assert parts(tmp_path) == ["out"]


@pytest.mark.usefixtures("at_once")
def test_a_run_asks_less_and_less_while_somebody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried, slept, seq = list[int](), list[float](), 0
    whole = module.compacting

    def noted(*arguments: Any, **options: Any) -> Any:
        tried.append(seq)
        return whole(*arguments, **options)

    monkeypatch.setattr("tidegate.runtime.engines.compactions.compacting", noted)
    monkeypatch.setattr("tidegate.runtime.state.outputs.compaction.time", SimpleNamespace(sleep=slept.append))
    with opened(tmp_path, compact=True) as session:
        with tg.hold_compaction(tmp_path / "out"):
            for seq in range(1, 130):
                batches(session, seq, 1)
        assert tried == [16, 32, 64, 128]  # of sixteen files the newest stays, and so all
        assert slept == []
        assert len(parts(tmp_path / "out")) == 129
        for seq in range(130, 273):
            batches(session, seq, 1)
        assert tried == [16, 32, 64, 128, 256, 272]
        assert len(parts(tmp_path / "out")) < 40
    assert rows(tmp_path / "out") == list(range(1, 273))


def test_a_directory_below_the_home_directory_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tidegate.runtime.state.outputs.compaction._TRIES", 1)
    published(tmp_path / "out", 20)
    with tg.hold_compaction("~/out"), pytest.raises(StateError, match="TG527"):
        compact(tmp_path / "out")


def test_whoever_waited_for_the_directory_gets_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    published(out, 20)
    before = os.open(out, os.O_RDONLY)
    compact(out)
    now = hold(str(out))
    assert now is not None
    assert os.path.samestat(os.fstat(now), os.stat(out))
    assert not os.path.samestat(os.fstat(now), os.fstat(before))
    # whoever has the old one open reads on
    assert sorted(os.listdir(before)) == [output_name(seq, "Q", 0) for seq in range(1, 21)]
    os.close(before)
    os.close(now)
    assert hold(str(tmp_path / "none")) is None


def test_a_batch_that_publishes_keeps_compaction_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.state.outputs.compaction._TRIES", 1)
    tried = []

    def meanwhile() -> None:
        with pytest.raises(StateError, match="TG527"):
            compact(tmp_path / "out")
        tried.append(len(parts(tmp_path / "out")))

    with opened(tmp_path) as session:
        batches(session, 0, 20)
        session._store.failpoints.arm("commit-after-output", meanwhile)
        batches(session, 20, 1)
    assert tried == [21]
    assert compact(tmp_path / "out").files == 2


def test_batches_wait_while_the_directory_is_exchanged(tmp_path: Path) -> None:
    published(tmp_path / "out", 20)
    points, held = Failpoints(), list[bool]()

    def meanwhile() -> None:
        descriptor = os.open(tmp_path / "out", os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(True)
        os.close(descriptor)

    points.arm("compaction-linked", meanwhile)
    compact(tmp_path / "out", failpoints=points)
    assert held == [True]


def test_a_directory_is_exchanged_while_someone_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, flock, waited = tmp_path / "out", fcntl.flock, list[int]()
    published(out, 20)

    def slow(descriptor: int, operation: int) -> None:
        if not waited:
            waited.append(descriptor)
            compact(out)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    held = hold(str(out))
    assert held is not None
    assert os.path.samestat(os.fstat(held), os.stat(out))
    os.close(held)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_beside, "GRACE", 0.2)
    for name in ("a", "b"):
        published(tmp_path / name, 17)
    assert main(["compact", str(tmp_path / "a")]) == 0
    assert "17 files became 2" in capsys.readouterr().out
    assert main(["compact", str(tmp_path / "a")]) == 0
    assert "2 files, nothing to merge: 16 files of about one size" in capsys.readouterr().out
    assert main(["compact", "--json", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["files_before"], one["files"], one["rows"]) for one in found] == [(2, 2, 0), (17, 2, 16)]
    assert parts(tmp_path / ".a.compacted") == parts(tmp_path / ".b.compacted") == []  # it waits, and removes them
    assert main(["compact", str(tmp_path / "nowhere")]) == 1


def test_the_listing_of_the_state_has_the_directories(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        batches(session, 0, 20)
        size = sum(path.stat().st_size for path in (tmp_path / "out").iterdir())
        listing = list_state(session._store)
        assert f"results {tmp_path}/out: 20 files, {size:,} bytes" in str(listing)
        assert listing.to_dict()["results"] == [{"directory": f"{tmp_path}/out", "files": 20, "bytes": size}]
    os.rename(tmp_path / "out", tmp_path / "away")
    assert f"results {tmp_path}/out: there is no such directory" in str(list_state(session._store))


def test_names_of_results() -> None:
    assert result_of(output_name(7, "Q", 3)) == Result(7, 3, 7, "Q", "part-0000000007-Q-00003.parquet")
    merged = result_of("part-0000000001-to-0000000016-Q-00000.parquet")
    assert merged is not None
    assert (merged.first, merged.last, merged.query, merged.merged) == (1, 16, "Q", True)
    assert not Result(7, 3, 7, "Q", "part-0000000007-Q-00003.parquet").merged
    for name in ("part-1-Q-00000.parquet", "part-0000000001-Q-00000.parquet.tmp", ".part-0000000001-Q-00000.parquet"):
        assert result_of(name) is None
        assert not is_output_of("Q", name)
    assert is_output_of("Q", output_name(7, "Q", 3))
    assert is_output_of("a b", output_name(7, "a b", 3))
    assert not is_output_of("P", output_name(7, "Q", 3))
