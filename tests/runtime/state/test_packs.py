"""Packs: parts are read as they were written or refused, and a batch of few rows makes few files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.runtime.state.checkpoint import Checkpoint, inspect
from tidegate.runtime.state.errors import DATA, StateError
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.intent import pending_intent
from tidegate.runtime.state.manifest import Engine, intent_path
from tidegate.runtime.state.outputs.staging import GATHERED, kept_results
from tidegate.runtime.state.segments import verify
from tidegate.runtime.state.store.interface import FileRef, Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore
from tidegate.runtime.state.store.packs import LARGEST_PART, MAGIC, PackWriter, file_of, part_of, table_of

ticks = tg.stream("Ticks", "t bigint, k bigint, name string", progress="t")
TABLES = [
    pa.table({"t": pa.array([1, 2], pa.int64()), "s": ["a", None]}),
    pa.table({"t": pa.array([], pa.int64())}),
    pa.table({"when": pa.array([dt.datetime(2026, 3, 2)], pa.timestamp("us", "UTC")), "x": [0.5]}),
]


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore(packs=True) if request.param == "memory" else LocalStore(tmp_path)


def test_parts_are_read_as_they_were_written(store: Store) -> None:
    pack = PackWriter.of(7, "abc")
    files = [pack.add(table) for table in TABLES]
    store.write_bytes(pack.path, bytes(pack.data))
    for table, file in zip(TABLES, files, strict=True):
        assert store.read_table(file.path).equals(table)
        assert store.read_table(file.path, table.column_names[:1]).equals(table.select(table.column_names[:1]))
        assert store.size(file.path) == file.bytes
        assert store.checksum(file.path) == file.checksum
        assert file_of(file.path) == pack.path
        verify(store, [file])
    assert file_of("segments/a/b.parquet") == "segments/a/b.parquet"


def test_a_part_is_one_batch_of_rows(store: Store) -> None:
    """Readers stop at a batch without rows, and each costs a header."""
    pack = PackWriter.of(7, "abc")
    plain, scattered = pack.add(TABLES[0]), pack.add(pa.concat_tables([TABLES[0].slice(0, 0), TABLES[0]]))
    store.write_bytes(pack.path, bytes(pack.data))
    assert scattered.bytes == plain.bytes
    assert store.read_table(scattered.path).column("t").num_chunks == 1


@pytest.mark.parametrize("change", ["cut", "flipped", "other length"])
def test_a_damaged_part_is_refused(change: str) -> None:
    pack = PackWriter.of(7, "abc")
    pack.add(TABLES[0])
    part = bytes(pack.data[len(MAGIC) :])
    for place in range(0, len(part), 7):
        damaged = {
            "cut": part[:place],
            "flipped": part[:place] + bytes([part[place] ^ 4]) + part[place + 1 :],
            "other length": part + part[: place + 1],
        }[change]
        with pytest.raises(ValueError, match="the part"):
            table_of(damaged)


@pytest.mark.parametrize(
    "path",
    [
        "packs/../../etc/passwd@0+9",
        "packs/0000000007-abc-0123456789abcdef0123456789abcdef.pack",
        "packs/0000000007-abc-0123456789abcdef0123456789abcdef.pack@-1+9",
        "packs/0000000007-abc-0123456789abcdef0123456789abcdef.pack@1+99999999999",
        "segments/0000000007-abc-0123456789abcdef0123456789abcdef.pack@0+9",
        "a@b",
    ],
)
def test_only_paths_of_our_own_form_name_parts(path: str) -> None:
    assert part_of(path) is None


def test_a_part_of_a_pack_that_is_cut_off_is_damaged(store: Store) -> None:
    pack = PackWriter.of(7, "abc")
    file = [pack.add(table) for table in TABLES][-1]
    store.write_bytes(pack.path, bytes(pack.data[:-1]))
    with pytest.raises(StateError, match=r"has \d+ bytes instead of") as caught:
        verify(store, [file])
    assert caught.value.code == DATA
    with pytest.raises(StateError, match="TG505"):
        verify(store, [FileRef("packs/0000000009-abc-" + "0" * 32 + ".pack@8+9", 9, "")])


def test_large_tables_get_files_of_their_own() -> None:
    pack = PackWriter.of(7, "abc")
    assert pack.takes(pa.table({"t": pa.array(range(LARGEST_PART // 8), pa.int64())}))
    assert not pack.takes(pa.table({"t": pa.array(range(LARGEST_PART // 8 + 1), pa.int64())}))


def program() -> tg.Program:
    """Stored rows, kept state of an operator, partial aggregates, and results of each."""
    a, b = ticks.as_("a"), ticks.as_("b")
    even, odd = tg.situation(ticks.t % 2 == 0), tg.situation(ticks.t % 2 == 1)
    found = ticks.partition_by("k").derive(A=even, B=odd)
    return tg.program(
        Pairs=a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 3).select(t=b.t, one=a.name),
        Sums=ticks.group_by(w=tg.tumbling(ticks.t, 5)).agg(n=tg.count()),
        Matches=found.match(found.A.before(found.B), within=40),
    )


def test_a_batch_of_few_rows_writes_one_pack(tmp_path: Path) -> None:
    """Besides it only an intent and a manifest; and all of it goes away again but what is still needed."""
    place = tmp_path / "state"
    with program().session(checkpoint=place) as session, program().session() as twin:
        for step in range(40):
            for one in (session, twin):
                one.push("Ticks", [(10 * step + i, i % 3, f"n{i}") for i in range(10)])
                one.advance("Ticks", {"t": 10 * step + 5})
                one.step()
            store = LocalStore(place)
            manifest = inspect(store).manifest
            assert manifest is not None
            new = [path for path in store.list_files("packs") if f"/{manifest.seq:010d}-" in path]
            assert len(new) == 1
            assert not store.list_files("segments")
            assert not store.list_files("staging")
            assert not store.list_files("kernel")
            assert all(len(parts) <= GATHERED for parts in manifest.gathered.values())
            for name in ("Pairs", "Sums", "Matches"):
                assert session.table(name).arrow().equals(twin.table(name).arrow())
        packs = store.list_files("packs")
        assert manifest is not None
        live = {file_of(file.path) for file in manifest.state_files()}
        assert live <= set(packs)
        assert len(packs) < 25, "packs of which nothing is needed are deleted"
    with program().session(checkpoint=place) as session:
        session.finish()
        session.step()
        assert session.table("Sums").arrow().num_rows == 80


def test_gathered_results_become_a_file_once_they_fill_a_part(tmp_path: Path) -> None:
    made = tg.program(All=ticks.where(ticks.t >= 0))
    with made.session(checkpoint=tmp_path) as session:
        for step in range(40):
            session.push("Ticks", [(100 * step + i, i, "x" * 20) for i in range(100)])
            session.advance("Ticks", {"t": 100 * step + 99})
            session.step()
        store = LocalStore(tmp_path)
        files = store.list_files("results")
        assert 0 < len(files) <= 4
        assert all(store.size(path) > LARGEST_PART // 8 for path in files)
        assert session.table("All").arrow().column("t").to_pylist() == list(range(4000))


def test_results_that_this_process_wrote_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, read = tg.program(All=ticks.where(ticks.t >= 0)), list[str]()
    read_table = LocalStore.read_table

    def noted(self: LocalStore, path: str, columns: Sequence[str] | None = None) -> Any:
        read.append(path)
        return read_table(self, path, columns)

    monkeypatch.setattr(LocalStore, "read_table", noted)
    for run in range(3):
        with made.session(checkpoint=tmp_path) as session:
            read.clear()
            for step in range(3 * GATHERED + 1 + run):
                first = 1000 * run + 10 * step
                session.push("Ticks", [(first + i, i, f"n{i}") for i in range(10)])
                session.advance("Ticks", {"t": first + 9})
                session.step()
            # Those that another process wrote, once; and of its own none.
            assert len(read) == len(set(read)) <= (GATHERED if run else 0)
            manifest = inspect(LocalStore(tmp_path)).manifest
            assert manifest is not None
            waiting = {output.file.path for some in manifest.gathered.values() for output in some}
            assert session._setup.checkpoint._waiting.keys() <= waiting
            assert run or session._setup.checkpoint._waiting.keys() == waiting
    with made.session(checkpoint=tmp_path) as session:
        every = [1000 * run + t for run in range(3) for t in range(10 * (3 * GATHERED + 1 + run))]
        assert session.table("All").arrow().column("t").to_pylist() == every


def test_a_small_part_of_a_large_table_does_not_keep_it_in_memory(tmp_path: Path) -> None:
    large = pa.table({"t": pa.array(range(100_000), pa.int64())})
    with Checkpoint.open(LocalStore(tmp_path), "packs", {}, sinks={"Q": "results/Q"}) as checkpoint:
        for number in range(GATHERED + 2):
            batch = checkpoint.begin(number, Offer(), engine=Engine("test", "1"))
            batch.stage_output("Q", large.slice(number, 1))
            manifest = batch.commit(segments={}, progress={}, counts={})
            assert sum(table.get_total_buffer_size() for table in checkpoint._waiting.values()) <= LARGEST_PART
        found = pa.concat_tables(kept_results(LocalStore(tmp_path), manifest, "results/Q", ["Q"]))
        assert found.column("t").to_pylist() == list(range(GATHERED + 2))


def test_a_record_that_the_machine_lost_is_no_damage(tmp_path: Path) -> None:
    """Intents are not forced to disk: a machine that dies can leave one empty, or full of zeros."""
    made = tg.program(All=ticks.where(ticks.t >= 0))
    for lost in (b"", b"\0" * 300):
        with made.session(checkpoint=tmp_path) as session:
            session.push("Ticks", [(1, 1, "x")])
            session.step()
        store = LocalStore(tmp_path)
        manifest = inspect(store).manifest
        assert manifest is not None
        store.write_bytes(intent_path(manifest.seq + 1), lost)
        assert pending_intent(store, manifest.seq + 1) is None
        with made.session(checkpoint=tmp_path) as session:
            session.push("Ticks", [(2, 1, "x")])
            assert session.step().seq == manifest.seq + 1


def test_results_that_wait_come_before_a_file_that_a_worker_writes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    sinks = {"Q": "results/Q"}
    with Checkpoint.open(store, "packs", {}, sinks=sinks) as checkpoint:
        for number in range(3):
            batch = checkpoint.begin(number, Offer(), engine=Engine("test", "1"))
            table = pa.table({"t": pa.array([number], pa.int64())})
            if number == 1:
                batch.adopt_output("Q", store.write_table(batch.output_path("Q"), table), 1)
            else:
                batch.stage_output("Q", table)
            manifest = batch.commit(segments={}, progress={}, counts={})
            found = pa.concat_tables(kept_results(store, manifest, "results/Q", ["Q"]))
            assert found.column("t").to_pylist() == list(range(number + 1))


def test_a_batch_that_is_evaluated_anew_keeps_nothing_that_it_packed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with Checkpoint.open(store, "packs", {}, sinks={"Q": "results/Q"}) as checkpoint:
        batch = checkpoint.begin(0, Offer(), engine=Engine("test", "1"))
        batch.stage_output("Q", pa.table({"t": pa.array([1], pa.int64())}))
        batch.write_state("Q", pa.table({"n": pa.array([1], pa.int64())}))
        batch.unstage()
        batch.stage_output("Q", pa.table({"t": pa.array([2], pa.int64())}))
        manifest = batch.commit(segments={}, progress={}, counts={})
        found = pa.concat_tables(kept_results(store, manifest, "results/Q", ["Q"]))
        assert found.column("t").to_pylist() == [2]
        (output,) = manifest.gathered["Q"]
        assert store.size(file_of(output.file.path)) == len(MAGIC) + output.file.bytes
