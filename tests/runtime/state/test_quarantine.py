"""Rejected rows: every one is kept exactly once, in few files, until retention drops it and says so."""

from __future__ import annotations

import datetime as dt
import gc
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.runtime.faults.faulty import FaultyStore
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.ingest.ingest import ingest_rows
from tidegate.runtime.ingest.quarantine import kept_rows, quarantine_of, retention
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.checkpoint import inspect, retained_manifests
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.quarantine import QUARANTINE_SCHEMA, Quarantine, RejectedRow, RejectedRows
from tidegate.runtime.state.rejects.file_tables import listed_paths
from tidegate.runtime.state.store.local import LocalStore

BEGIN = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
events = tg.stream("E", "n bigint, t timestamp", progress="t")


def opened(place: Path, clock: Callable[[], dt.datetime] = lambda: BEGIN, **options: Any) -> Session:
    return tg.program(Out=events.select("n", "t")).session(checkpoint=place, clock=clock, **options)


def reject(session: Session, n: int) -> None:
    """A batch with one row that has no time, and with one that is accepted."""
    session.push("E", [(n, None), (n, BEGIN + dt.timedelta(seconds=n))])
    session.step()


def numbers(session: Session) -> list[int]:
    """Which rows are in quarantine, in order."""
    return sorted(int(row["row"].split(":")[1].split(",")[0]) for row in session.quarantine_rows())


def kept(place: Path) -> Quarantine:
    manifest = inspect(LocalStore(place)).manifest
    assert manifest is not None
    return manifest.quarantine


def test_many_rejecting_batches_leave_few_files(tmp_path: Path) -> None:
    written = []
    with opened(tmp_path) as session:
        for n in range(100):
            reject(session, n)
            written.append(max(segment.rows for segment in kept(tmp_path).files if segment.batch == n + 1))
            assert numbers(session) == list(range(n + 1))
        on_disk = list((tmp_path / "quarantine").rglob("*.parquet"))
    assert len(kept(tmp_path).files) <= 3 * 4  # three of each tier: 1, 4, 16, 64 rows
    assert len(on_disk) <= 3 * 4 + 4  # and those that only the manifest before names
    # Rows written in all: each row once for each tier that it reaches, not once a batch.
    assert sum(written) <= 100 * 5


def test_a_batch_rewrites_few_rows_and_files_stay_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as files are not very many, a batch does not wait for a merge of all that was set aside."""
    for name, value in (("_LEAST_ROWS", 8), ("_MANY_FILES", 20), ("_MOST_ROWS", 64)):
        monkeypatch.setattr(f"tidegate.runtime.state.quarantine.{name}", value)
    written, files = [], []
    with opened(tmp_path) as session:
        for n in range(200):
            reject(session, n)
            files.append(len(kept(tmp_path).files))
            written.append(sum(file.rows for file in kept(tmp_path).files if file.batch == n + 1))
        assert numbers(session) == list(range(200))
        full = sum(file.rows >= 64 for file in kept(tmp_path).files)
        assert max(written[:100]) <= 4 * 8
        assert max(files) <= 20 + full + 2
        assert len([rows for rows in written if rows > 4 * 8]) <= 200 / 64 + 1
        session.push("E", [(n, None) for n in range(200, 250)])
        session.step()
        assert numbers(session) == list(range(250))
    assert max(file.rows for file in kept(tmp_path).files) < 2 * 64


def test_rows_of_one_batch_are_one_file_whatever_the_sources(tmp_path: Path) -> None:
    other = tg.stream("F", "n bigint, t timestamp", progress="t")
    with tg.program(A=events.select("n", "t"), B=other.select("n", "t")).session(checkpoint=tmp_path) as session:
        for name in "EF":
            session.push(name, [(1, None)])
        session.step()
        assert sorted(row["source"] for row in session.quarantine_rows()) == ["E", "F"]
    assert len(kept(tmp_path).files) == 1


@pytest.mark.parametrize("failpoint", ["commit-after-quarantine", "commit-before-manifest", "commit-after-manifest"])
@pytest.mark.parametrize("at", [1, *(pytest.param(at, marks=pytest.mark.long) for at in (4, 13)), 16])
def test_a_crash_loses_no_rejected_row(tmp_path: Path, failpoint: str, at: int) -> None:
    with opened(tmp_path) as session:
        for n in range(at - 1):
            reject(session, n)
        session._store.failpoints.arm(failpoint, crash)
        with pytest.raises(SimulatedCrash):
            reject(session, at - 1)
    with opened(tmp_path) as session:
        done = at if failpoint == "commit-after-manifest" else at - 1
        assert numbers(session) == list(range(done))
        for n in range(done, 20):
            reject(session, n)
            assert numbers(session) == list(range(n + 1))
        named = {segment.path for segment in kept(tmp_path).files}
    with opened(tmp_path):
        rest = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "quarantine").rglob("*.parquet")}
    assert named <= rest
    assert len(rest - named) <= 4


@pytest.mark.parametrize("operation", ["read_table", "write_table"])
def test_a_merge_for_which_there_is_no_memory_is_made_when_the_batch_is_done_again(
    tmp_path: Path, operation: str
) -> None:
    armed, refused = list[bool](), list[str]()

    def before(used: str, path: str) -> None:
        if armed and not refused and used == operation and path.startswith("quarantine/"):
            refused.append(path)
            raise MemoryError

    facts = tg.program(Out=events.select("n", "t")).facts
    store = FaultyStore(LocalStore(tmp_path), before)
    with Session(facts, store, options=RunOptions(clock=lambda: BEGIN)) as session:
        for n in range(3):
            reject(session, n)
        armed.append(True)
        with pytest.raises(StateError, match="TG510"):
            reject(session, 3)
        assert refused
        assert len(kept(tmp_path).files) == 3
        session.step()
        assert numbers(session) == list(range(4))
        assert len(kept(tmp_path).files) == 1


def test_a_stream_that_is_read_slowly_stays_as_it_was(tmp_path: Path) -> None:
    """Batches merge the files and delete them while the rows are read."""
    with opened(tmp_path) as session:
        for n in range(3):
            reject(session, n)
        reader = session.quarantine()
        elsewhere = tg.read_quarantine(tmp_path)
        for n in range(3, 40):
            reject(session, n)
        assert reader.read_all().num_rows == elsewhere.read_all().num_rows == 3
        assert session.quarantine().read_all().num_rows == 40


def test_a_reader_that_lost_its_files_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its look at the manifest and the files, a run commits several batches."""
    with opened(tmp_path) as session:
        for n in range(3):
            reject(session, n)
        more = count(3)

        def slow(store: Any, manifest: Any) -> Any:
            if manifest.seq < 10:
                for _ in range(4):
                    reject(session, next(more))
            return kept_rows(store, manifest)

        monkeypatch.setattr("tidegate.runtime.ingest.quarantine.kept_rows", slow)
        rows = quarantine_of(LocalStore(tmp_path)).read_all().num_rows
    assert rows == 11


def test_few_rejected_rows_are_python_values_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.state.quarantine.TOGETHER", 4)
    rows, others = RejectedRows(), RejectedRows()
    assert not rows
    for n in range(11):
        (rows if n < 6 else others).append(RejectedRow("E", "push", n, "late", None, "{}", None))
        assert rows.loose < 4
    rows.extend(others)
    assert rows.loose < 4
    assert len(rows) == 11
    assert rows.table().schema == QUARANTINE_SCHEMA
    assert rows.table().column("position").to_pylist() == list(range(11))


def test_rejected_rows_are_no_objects_that_the_garbage_collection_follows() -> None:
    """Else those of some batches start a collection of all that the process has, which takes longer than a batch."""
    rows = RejectedRows()
    for n in range(100):
        rows.append(RejectedRow("E", "push", n, "late", None, "{}", None))
    assert len(rows) == 100
    assert not any(isinstance(known, RejectedRow) for known in gc.get_objects())


def test_many_rejected_rows_wait_as_arrow_for_the_commit(tmp_path: Path) -> None:
    """Of 200,000 rows no more than 8,192 are Python values, and no more than 65,536 wait for the commit in memory."""
    with opened(tmp_path) as session:
        intake = ingest_rows
        held: list[int] = []
        waiting: list[int] = []

        def counted(*given: Any) -> Any:
            found = intake(*given)
            held.append(found.quarantine.loose)
            waiting.append(len(found.quarantine))
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tidegate.runtime.engines.embedded.executor.ingest_rows", counted)
            session.push("E", [(n, None) for n in range(200_000)])
            session.step()
        assert session.counts["E"].rejected == {"null": 200_000}
        assert numbers(session) == list(range(200_000))
    assert sum(held) < 1 << 13
    assert sum(waiting) < 1 << 16


def test_a_reading_holds_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are read at once, and full ones, of which there may be any number, one after the other."""
    with opened(tmp_path) as session:
        for n in range(15):
            reject(session, n)
        monkeypatch.setattr("tidegate.runtime.state.quarantine._MOST_BYTES", 0)
        for n in range(15, 60):
            reject(session, n)
        assert len(kept(tmp_path).files) > 45
        before = len(os.listdir("/dev/fd"))
        reader = session.quarantine()
        held = []
        rows = 0
        for batch in reader:
            held.append(len(os.listdir("/dev/fd")))
            rows += batch.num_rows
    assert rows == 60
    assert max(held) <= before + 2


def test_files_that_may_be_merged_are_held_where_they_are_not_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.runtime.ingest.quarantine._SMALL", 0)
    with opened(tmp_path) as session:
        for n in range(3):
            reject(session, n)
        reader = session.quarantine()
        for n in range(3, 40):
            reject(session, n)
        assert reader.read_all().num_rows == 3


@pytest.mark.parametrize("listed", ["files", "tables"])
def test_full_files_that_retention_drops_before_their_turn_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    monkeypatch.setattr("tidegate.runtime.state.quarantine._MOST_BYTES", 0)
    if listed == "tables":
        monkeypatch.setattr("tidegate.runtime.state.quarantine.LISTED", 4)
    days = count()
    with opened(tmp_path, lambda: BEGIN + dt.timedelta(days=next(days)), quarantine_keep="8d") as session:
        for n in range(10):
            reject(session, n)
        assert bool(kept(tmp_path).tables) == (listed == "tables")
        reader = session.quarantine()
        for n in range(10, 16):
            reject(session, n)
        found = [int(row["row"].split(":")[1].split(",")[0]) for row in reader.read_all().to_pylist()]
        assert found == list(range(numbers(session)[0] - 2, 10))  # those of the last two batches wait for their readers
        reader = session.quarantine()
        for path in (tmp_path / "quarantine").rglob("*.parquet"):
            path.unlink()
        with pytest.raises(StateError, match="is missing"):
            reader.read_all()


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is full, and more than four of them go to a table."""
    monkeypatch.setattr("tidegate.runtime.state.quarantine._MOST_BYTES", 0)
    monkeypatch.setattr("tidegate.runtime.state.quarantine.LISTED", 4)
    for name, value in (("_MERGED", 8), ("_MOST_TABLES", 2)):
        monkeypatch.setattr(f"tidegate.runtime.state.rejects.file_tables.{name}", value)


def on_disk(place: Path, kind: str) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in (place / "quarantine" / kind).glob("*.parquet"))


@pytest.mark.usefixtures("small_tables")
def test_a_manifest_names_few_files_however_many_are_full(tmp_path: Path) -> None:
    named, written = [], []
    with opened(tmp_path) as session:
        for n in range(200):
            reject(session, n)
            now = kept(tmp_path)
            named.append(len(now.files) + len(now.tables))
            written += [table.files for table in now.tables if table.table.batch == n + 1]
            assert (now.count, now.rows) == (n + 1, n + 1)
        assert numbers(session) == list(range(200))
        in_order = [int(row["row"].split(":")[1].split(",")[0]) for row in session.quarantine_rows()]
        assert in_order == list(range(200))
    assert max(named) <= 4 + 2 + 12
    assert sum(written) <= 200 * 6  # an entry is written again for each tier that it reaches
    assert len(on_disk(tmp_path, "rows")) == 200
    with opened(tmp_path) as session:
        assert numbers(session) == list(range(200))
        assert len(on_disk(tmp_path, "rows")) == 200
        assert "200 files" in str(list_state(session._store))
    tables = (t for manifest in retained_manifests(LocalStore(tmp_path)) for t in manifest.quarantine.tables)
    assert on_disk(tmp_path, "files") == sorted({table.table.path for table in tables})


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize(
    "failpoint", ["commit-after-quarantine", "commit-before-manifest", "commit-after-manifest", "commit-during-gc"]
)
@pytest.mark.parametrize("at", [12, *(pytest.param(at, marks=pytest.mark.long) for at in (7, 13, 30))])
def test_a_crash_loses_no_row_of_a_table(tmp_path: Path, failpoint: str, at: int) -> None:
    days = count()
    clock = lambda: BEGIN + dt.timedelta(days=next(days))  # noqa: E731  # one a batch
    with opened(tmp_path, clock, quarantine_keep="20d") as session:
        for n in range(at - 1):
            reject(session, n)
        session._store.failpoints.arm(failpoint, crash)
        with pytest.raises(SimulatedCrash):
            reject(session, at - 1)
    with opened(tmp_path, clock, quarantine_keep="20d") as session:
        done = at if failpoint in ("commit-after-manifest", "commit-during-gc") else at - 1
        for n in range(done, 40):
            reject(session, n)
            found = numbers(session)
            assert found == list(range(found[0], n + 1))
            assert len(found) >= min(n, 18)
        assert kept(tmp_path).dropped.rows + len(found) == 40
    with opened(tmp_path):
        found_files = {name for kind in ("rows", "files") for name in on_disk(tmp_path, kind)}
        now = retained_manifests(LocalStore(tmp_path))
        named = {file.path for manifest in now for file in manifest.quarantine.refs()}
        named |= {path for manifest in now for path in listed_paths(LocalStore(tmp_path), manifest.quarantine.tables)}
        assert found_files == named


@pytest.mark.usefixtures("small_tables")
def test_retention_drops_single_files_of_tables(tmp_path: Path) -> None:
    """By age to the day, and the files go with the manifest before."""
    days = count()
    clock = lambda: BEGIN + dt.timedelta(days=next(days))  # noqa: E731  # one a batch
    with opened(tmp_path, clock, quarantine_keep="12d") as session:
        for n in range(60):
            reject(session, n)
            assert numbers(session) == list(range(max(0, n - 12), n + 1))
            assert len(on_disk(tmp_path, "rows")) <= 13 + 3
            assert kept(tmp_path).dropped.rows == max(0, n - 12)
        assert kept(tmp_path).tables
        for _ in range(14):
            session.step()  # without a rejected row
        assert numbers(session) == []
        assert len(on_disk(tmp_path, "rows")) <= 3
        assert not kept(tmp_path).tables


@pytest.mark.usefixtures("small_tables")
def test_a_size_bounds_what_stands_in_tables(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        reject(session, 0)
        size = kept(tmp_path).bytes
    with opened(tmp_path, quarantine_keep=f"{14 * size + size // 2} B") as session:
        for n in range(1, 60):
            reject(session, n)
            found = numbers(session)
            assert found == list(range(found[0], n + 1))
            assert len(found) >= min(n, 12)
            assert kept(tmp_path).bytes <= 14.5 * size
            assert kept(tmp_path).dropped.rows + len(found) == n + 1
        assert kept(tmp_path).tables
        assert len(on_disk(tmp_path, "rows")) <= len(found) + 3


@pytest.mark.usefixtures("small_tables")
def test_a_damaged_table_stops_no_run_and_whoever_reads_it_is_told(tmp_path: Path) -> None:
    days = count()
    clock = lambda: BEGIN + dt.timedelta(days=next(days))  # noqa: E731  # one a batch
    with opened(tmp_path, clock, quarantine_keep="40d") as session:
        for n in range(20):
            reject(session, n)
        lost = kept(tmp_path).tables
        for table in lost:
            (tmp_path / table.table.path).write_bytes(b"nothing")
        with pytest.raises(StateError, match="damaged"):
            session.quarantine()
    with opened(tmp_path, clock, quarantine_keep="40d") as session:
        assert len(on_disk(tmp_path, "rows")) == 20  # nobody knows which of them are left behind
        for n in range(20, 40):
            reject(session, n)
        assert kept(tmp_path).rows == 40
        for n in range(40, 60):
            reject(session, n)
        now = kept(tmp_path)
        assert now.dropped.rows + now.rows == 60
        assert now.dropped.files >= sum(table.files for table in lost)
        assert numbers(session)[-1] == 59


@pytest.mark.parametrize("gone", ["taken away", "dropped"])
def test_a_file_of_a_table_is_missed_unless_retention_dropped_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """Also where a size has dropped newer rows, which were merged with older ones."""
    monkeypatch.setattr("tidegate.runtime.state.quarantine._MOST_ROWS", 20)
    monkeypatch.setattr("tidegate.runtime.state.quarantine.LISTED", 4)
    batches = count(3)
    clock = lambda: BEGIN + dt.timedelta(days=next(batches) // 4)  # noqa: E731  # one for four batches
    with opened(tmp_path, clock) as session:
        for n in range(10):
            session.push("E", [(n, None)] * (1 if n in (0, 7, 8, 9) else 20))
            session.step()
        size = kept(tmp_path).bytes
    with opened(tmp_path, clock, quarantine_keep=f"{size} B") as session:
        reject(session, 10)
        now = kept(tmp_path)
        assert now.dropped.rows == 4
        (table,) = now.tables
        assert now.dropped.until is not None
        assert table.oldest < table.newest < now.dropped.until
        reader = session.quarantine()
        if gone == "taken away":
            (tmp_path / min(listed_paths(session._store, [table]))).unlink()
    if gone == "taken away":
        with pytest.raises(StateError, match="is missing"):
            reader.read_all()
        return
    with opened(tmp_path, clock, quarantine_keep=f"{now.bytes} B") as session:
        for n in range(11, 14):
            reject(session, n)
        assert kept(tmp_path).tables
        found = {int(row["row"].split(":")[1].split(",")[0]) for row in reader.read_all().to_pylist()}
        assert found == {*range(min(found), 7), 10}
        assert 1 < min(found) <= numbers(session)[0]


def test_old_rows_are_dropped_whole_and_said(tmp_path: Path) -> None:
    days = count()
    clock = lambda: BEGIN + dt.timedelta(days=next(days))  # noqa: E731  # one a batch
    with opened(tmp_path, clock, quarantine_keep="8d") as session:
        for n in range(40):
            reject(session, n)
            found = numbers(session)
            assert found[-9:] == list(range(max(0, n - 8), n + 1))  # never one that is younger
            assert len(found) <= 8 + 2  # what is older than 8 days goes with its file, of a day at most
        assert session.counts["E"].rejected == {"null": 40}
        lost = kept(tmp_path).dropped
        assert lost.rows + len(numbers(session)) == 40
        assert lost.until == int((BEGIN + dt.timedelta(days=30)).timestamp()) * 1_000_000
        session.step()  # without a rejected row
        assert len(numbers(session)) == 8


def test_a_file_stays_until_its_newest_row_is_old(tmp_path: Path) -> None:
    """Rows of six hours are one file: it goes with the last of them."""
    hours = count()
    clock = lambda: BEGIN + dt.timedelta(hours=next(hours))  # noqa: E731  # one a batch
    with opened(tmp_path, clock, quarantine_keep="2d") as session:
        for n in range(80):
            reject(session, n)
            assert numbers(session)[-49:] == list(range(max(0, n - 48), n + 1))
        assert any(file.rows > 1 for file in kept(tmp_path).files)
        assert kept(tmp_path).dropped.rows


def test_a_size_bounds_the_quarantine(tmp_path: Path) -> None:
    with opened(tmp_path, quarantine_keep="4 KiB") as session:
        for n in range(60):
            reject(session, n)
            assert kept(tmp_path).bytes <= 4 << 10
        assert numbers(session)[-1] == 59
        assert kept(tmp_path).dropped.rows + len(numbers(session)) == 60
        assert kept(tmp_path).dropped.rows > 0


def test_rejected_rows_of_one_batch_that_exceed_the_size_stay_until_newer_ones_come(tmp_path: Path) -> None:
    with opened(tmp_path, quarantine_keep="4 KiB") as session:
        reject(session, 0)
        session.push("E", [(n, None) for n in range(10, 5_010)])
        reject(session, 1)
        assert numbers(session) == [1, *range(10, 5_010)]
        assert kept(tmp_path).bytes > 4 << 10
        assert kept(tmp_path).dropped.rows == 1
        reject(session, 2)
        assert numbers(session) == [2]
        assert kept(tmp_path).dropped.rows == 5_002


def test_a_file_that_was_taken_away_counts_as_dropped(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        for n in range(3):
            reject(session, n)
        for path in (tmp_path / "quarantine").rglob("*.parquet"):
            path.unlink()
        with pytest.raises(StateError, match="is missing"):
            session.quarantine()
        reject(session, 3)
        assert numbers(session) == [3]
    assert kept(tmp_path).dropped.rows == 3


def test_a_damaged_file_stops_no_run_and_whoever_reads_it_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        reject(session, 0)
        (damaged,) = (tmp_path / "quarantine").rglob("*.parquet")
        data = bytearray(damaged.read_bytes())
        data[20] ^= 1
        damaged.write_bytes(data)
        for n in range(1, 20):
            reject(session, n)
        assert len(kept(tmp_path).files) < 8
        assert kept(tmp_path).rows == 20
        with pytest.raises(StateError, match=damaged.name):
            session.quarantine().read_all()


def test_many_rejected_rows_are_read_in_pieces(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.push("E", [(n, None) for n in range(150_000)])
        session.step()
        sizes = [batch.num_rows for batch in session.quarantine()]
    assert sum(sizes) == 150_000
    assert max(sizes) <= 1 << 16


def test_an_error_of_a_very_long_value_is_cut_and_both_ends_stay(tmp_path: Path) -> None:
    """The row itself is kept whole."""
    texts = tg.stream("E", "w string, t timestamp", progress="t")
    value = f"begin{'x' * 100_000}end"
    with tg.program(Out=texts.with_(n=texts.w.cast("bigint"))).session(checkpoint=tmp_path) as session:
        session.push("E", [(value, BEGIN), ("1", BEGIN)])
        session.step()
        (row,) = session.quarantine_rows()
    assert value in row["row"]
    assert len(row["error"]) < 5_000
    assert row["error"].startswith("TG303 ")
    assert "begin" in row["error"]
    assert "end" in row["error"][-20:]


@pytest.mark.parametrize(
    "keep", ["10 potatoes", "", (), ("3d", "4d"), ("1 GiB", "2 GiB"), "0s", "0 B", 7, ("3d", None), "-3d"]
)
def test_what_is_no_age_and_no_size_is_refused(keep: Any) -> None:
    with pytest.raises(tg.QueryError, match="TG525"):
        retention(keep)


def test_an_age_and_a_size() -> None:
    assert retention(("10 GiB", "30d")) == retention((dt.timedelta(30), "10GiB"))
    assert retention("1 MB").bytes == 10**6
    assert retention("1 KiB").bytes == 1024
    assert retention(None) == retention(None).__class__()


def test_the_listing_of_the_state_says_what_is_kept_and_what_was_dropped(tmp_path: Path) -> None:
    days = count()
    with opened(tmp_path, lambda: BEGIN + dt.timedelta(days=next(days)), quarantine_keep="1d") as session:
        session.step()
        assert "quarantine" not in str(list_state(session._store))
        for n in range(4):
            reject(session, n)
        listing = list_state(session._store)
    text = str(listing).partition("quarantine: ")[2].splitlines()
    assert text[0].startswith("2 rows, ")
    assert text[0].endswith(" in 2 files")
    assert text[1:3] == ["  oldest      2026-03-05T00:00:00Z, by the clock", "  newest      2026-03-06T00:00:00Z"]
    assert text[3].startswith("  dropped     2 rows, ")
    assert text[3].endswith(", up to 2026-03-04T00:00:00Z")
    found: Any = listing.to_dict()["quarantine"]
    assert (found["rows"], found["files"], found["newest"]) == (2, 2, "2026-03-06T00:00:00Z")
    assert (found["dropped"]["rows"], found["dropped"]["until"]) == (2, "2026-03-04T00:00:00Z")
