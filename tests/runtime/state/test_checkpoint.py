"""Opening, refusing, replaying and collecting."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.state.toy import (
    BATCHES,
    DESCRIPTION,
    ENGINE,
    ROWS,
    Place,
    check_finished,
    damage_kinds,
    exit_status,
    expected_results,
    hits_state,
    open_toy,
    run,
    source_files,
    step,
)
from tidegate.algebra.errors import InternalError
from tidegate.runtime.state import checkpoint as checkpoint_module
from tidegate.runtime.state.checkpoint import Checkpoint, inspect
from tidegate.runtime.state.errors import DATA, FORMAT, LOCATION, MANIFEST, OUTPUT, PROGRAM, REPLAY, WRITER, StateError
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.inputs.positions import Offer, SourceFile, SparkBatch
from tidegate.runtime.state.manifest import StagedOutput, intent_path, manifest_path, marker_path
from tidegate.runtime.state.meta import differences
from tidegate.runtime.state.segments import new_path
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore
from tidegate.runtime.state.store.packs import part_of

FILES = source_files(20)


def commit_empty(checkpoint: Checkpoint, offer: Offer, clock: int = 0) -> int:
    batch = checkpoint.begin(clock, offer, engine=ENGINE)
    return batch.commit(segments={}, progress={}, counts={}).seq


def refused(code: str, call: Any, *arguments: Any, **options: Any) -> StateError:
    with pytest.raises(StateError) as caught:
        call(*arguments, **options)
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


# --- which program, which format, which directory


def test_another_program(place: Place) -> None:
    run(place.store(), place, 1)
    other = {"streams": {"s": "t bigint, v double"}, "program": "select *\nfrom s\nwhere x", "shards": 128, "new": 1}
    error = refused(PROGRAM, Checkpoint.open, place.store(), "toy-2", other)
    assert error.problems[0].because == (
        "new: only in this program: 1",
        "program: - checkpoint, + this program",
        "  +where x",
        "shards: 256 in the checkpoint, 128 in this program",
        'streams.s: "t bigint" in the checkpoint, "t bigint, v double" in this program',
    )
    refused(PROGRAM, Checkpoint.open, place.store(), "toy-1", {**DESCRIPTION, "shards": 255})
    error = refused(PROGRAM, Checkpoint.open, place.store(), "toy-2", DESCRIPTION, version="2")
    assert error.problems[0].because == (
        "the normalised program or its state layout changed (made with version 1, this is 2)",
    )
    open_toy(place.store(), place).close()


def test_description_may_hold_tuples(place: Place) -> None:
    for _ in range(2):
        Checkpoint.open(place.store(), "f", {"streams": ("a", "b"), "n": {1: 2}}).close()


def test_differences() -> None:
    assert differences({"a": [1], "b": {"c": 1}}, {"a": [1], "b": {"c": 1}}) == []
    assert differences({"b": {"c": 1, "d": 2}}, {"b": {"c": True}}) == [
        "b.c: 1 in the checkpoint, true in this program",
        "b.d: only in the checkpoint: 2",
    ]
    long = differences({"p": "\n".join("abcdefghijklmnopqrstuvwxyz")}, {"p": "\n".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ")})
    assert long[-1] == "… and 32 more lines"


def test_another_format(place: Place) -> None:
    run(place.store(), place, 1)
    for path in ("meta.json", manifest_path(1)):
        store = place.store()
        data = store.read_bytes(path)
        for other in (b"1", b"9"):
            rewrite(place, path, data.replace(b'"format":6', b'"format":' + other))
            assert f"format {other.decode()};" in refused(FORMAT, open_toy, place.store(), place).message
        rewrite(place, path, data)
    open_toy(place.store(), place).close()


def test_directory_with_something_else(local: Place) -> None:
    root = Path(local.store().where)
    root.mkdir()
    (root / "precious.txt").write_text("x")
    assert "precious.txt" in refused(LOCATION, open_toy, local.store(), local).message
    assert sorted(path.name for path in root.iterdir()) == ["precious.txt"]
    (root / "precious.txt").unlink()
    (root / "spark").mkdir()  # begun after ours: one that is there before is of another query
    assert "spark" in refused(LOCATION, open_toy, local.store(), local).message
    (root / "spark").rmdir()
    open_toy(local.store(), local).close()


def rewrite(place: Place, path: str, data: bytes | None) -> None:
    store = place.store()
    store.delete(path)
    if data is not None:
        store.write_bytes(path, data)


# --- damage


@pytest.mark.parametrize("kind", sorted(damage_kinds()))
def test_any_damaged_file(local: Place, kind: str) -> None:
    """Each file of a checkpoint, damaged in each way: the same results in the end, or a refusal that names the file."""
    run(local.store(), local, 3)
    store = local.store()
    manifest = inspect(store).manifest
    assert manifest is not None
    assert any(part_of(file.path) for file in manifest.state_files())
    for path in [path for path in store.list_files("") if path != "lock"]:
        whole = {name: store.read_bytes(name) for name in store.list_files("")}
        if not whole[path] and kind.endswith("flipped"):
            continue
        published = {file: file.read_bytes() for file in Path(local.output).iterdir()}
        damaged = damage_kinds()[kind](whole[path])
        rewrite(local, path, damaged)
        if hits_state(manifest, path, whole[path], damaged):
            with pytest.raises(StateError, match=re.escape(path)) as caught:
                run(local.store(), local)
            assert caught.value.code in (MANIFEST, DATA)
            assert local.results() == expected_results(3)
        else:  # the manifest before, what only it names, intents of the past, and rows kept for the user
            run(local.store(), local)
            assert local.results() == expected_results()
        for name in store.list_files(""):
            store.delete(name)
        for name, data in whole.items():
            store.write_bytes(name, data)
        for file in Path(local.output).iterdir():
            file.unlink()
        for file, data in published.items():
            file.write_bytes(data)
    run(local.store(), local)
    check_finished(local)


def test_manifest_removed(place: Place) -> None:
    """The last manifest is gone: its outputs are out already, so going back silently would give them twice."""
    run(place.store(), place, 3)
    rewrite(place, manifest_path(3), None)
    error = refused(MANIFEST, open_toy, place.store(), place)
    assert manifest_path(3) in error.message
    assert "is missing" in error.message


def test_all_of_the_last_batch_removed(place: Place) -> None:
    """As after restoring an older checkpoint without its outputs: what is published is never written again."""
    run(place.store(), place, 3)
    for path in (manifest_path(3), marker_path(3), intent_path(3)):
        rewrite(place, path, None)
    refused(OUTPUT, run, place.store(), place)
    assert place.results() == expected_results(3)


def test_staged_output_damaged(local: Place) -> None:
    store = local.store()
    store.failpoints.arm("commit-after-manifest", crash, skip=1)
    with pytest.raises(SimulatedCrash):
        run(store, local)
    (path,) = store.list_files("staging/q")
    data = store.read_bytes(path)
    rewrite(local, path, data[:-1] + bytes([data[-1] ^ 1]))
    refused(DATA, open_toy, local.store(), local)
    rewrite(local, path, None)
    refused(OUTPUT, open_toy, local.store(), local)
    assert local.results() == expected_results(1)
    rewrite(local, path, data)
    run(local.store(), local)
    check_finished(local)


def test_check_by_size(local: Place) -> None:
    run(local.store(), local, 3)
    path = local.store().list_files("segments")[-1]
    data = local.store().read_bytes(path)
    rewrite(local, path, data[:4] + bytes([data[4] ^ 1]) + data[5:])
    refused(DATA, open_toy, local.store(), local, check="full")
    open_toy(local.store(), local, check="size").close()
    rewrite(local, path, data[:-1])
    refused(DATA, open_toy, local.store(), local, check="size")


# --- two writers


def test_second_writer_is_refused(place: Place) -> None:
    store = place.store()
    with open_toy(store, place) as first:
        refused(WRITER, open_toy, store, place)
        step(first, FILES[0])
    with open_toy(store, place) as second:
        step(second, FILES[1])


def test_lock_ends_with_its_process(local: Place) -> None:
    child = os.fork()
    if child == 0:
        open_toy(local.store(), local)
        os._exit(137)
    assert exit_status(child) == 137
    run(local.store(), local)
    check_finished(local)


def test_second_writer_without_locks(place: Place) -> None:
    """Where locks do not work, the manifest lets only one of two writers through, and the other changes nothing."""
    first = open_toy(place.store(), place)
    offer = Offer({"s": (FILES[0],)})
    batch = first.begin(0, offer, engine=ENGINE)
    late = batch.write_segment("b", pa.table({"t": pa.array([1], pa.int64())}), ["t"])
    other = place.store()
    if place.directory is None:  # a store of another process: it does not see the lock
        step(open_toy(other, place), FILES[0])
        refused(DATA, batch.commit, segments={"b": [late]}, progress={}, counts={})
        return
    first._lock.release()
    with open_toy(other, place) as second:
        refused(WRITER, first.begin, 0, offer, engine=ENGINE)
        step(second, FILES[0])
    late = batch.write_segment("b", pa.table({"t": pa.array([1], pa.int64())}), ["t"])
    refused(WRITER, batch.commit, segments={"b": [late]}, progress={}, counts={})
    refused(WRITER, first.begin, 0, offer, engine=ENGINE)
    run(place.store(), place)
    check_finished(place)


@pytest.fixture
def lockless(local: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A file system without locks."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    return local


def test_without_locks_no_file_of_the_next_batch_is_swept(lockless: Place) -> None:
    """What looks like a leftover may belong to a run elsewhere; which is noticed as a takeover by the one that came
    first.
    """
    local = lockless
    first = open_toy(local.store(), local)
    batch = first.begin(0, Offer(), engine=ENGINE)
    segment = batch.write_segment("b", pa.table({"t": pa.array([1], pa.int64())}), ["t"])
    second = open_toy(local.store(), local)
    assert local.store().exists(segment.path)
    assert "taken over" in refused(WRITER, batch.commit, segments={"b": [segment]}, progress={}, counts={}).message
    assert commit_empty(second, Offer()) == 1


def test_without_locks_leftovers_of_committed_batches_are_swept(
    lockless: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No run can name them any more, wherever it is: they would be more with every crash."""

    def stray(seq: int) -> str:
        path = new_path("segments", "b", seq, "zombie")
        lockless.store().write_bytes(path, b"of an attempt that was lost")
        return path

    def strays() -> list[str]:
        return [path for path in lockless.store().list_files("segments") if "zombie" in path]

    run(lockless.store(), lockless, 3)
    for seq in (1, 2, 3):
        stray(seq)
    coming = stray(4)
    with open_toy(lockless.store(), lockless) as checkpoint:
        assert checkpoint.swept == 3
        assert strays() == [coming]
        monkeypatch.setattr(checkpoint_module, "_SWEEP_EVERY", 2)
        assert step(checkpoint, source_files(4)[3]) is not None
        assert strays() == []
    run(lockless.store(), lockless)
    check_finished(lockless)


def test_the_manifest_alone_keeps_writers_apart(local: Place) -> None:
    first = open_toy(local.store(), local)
    batch = first.begin(0, Offer({"s": (FILES[0],)}), engine=ENGINE)
    local.store().create_exclusive(manifest_path(1), b"of another writer")
    error = refused(WRITER, batch.commit, segments={}, progress={}, counts={})
    assert "committed batch 1" in error.message
    assert local.store().read_bytes(manifest_path(1)) == b"of another writer"


def test_inspect_while_running(place: Place) -> None:
    store = place.store()
    refused(MANIFEST, inspect, store)
    with open_toy(store, place) as checkpoint:
        assert inspect(store).manifest is None
        step(checkpoint, FILES[0])
        assert inspect(store).manifest == checkpoint.manifest
        checkpoint.begin(0, Offer({"s": (FILES[1],)}), engine=ENGINE)
        pending = inspect(store).pending
        assert pending is not None
        assert pending.seq == 2
    assert inspect(store).meta.description == DESCRIPTION


# --- batches


def test_a_batch_ends_once(place: Place) -> None:
    checkpoint = open_toy(place.store(), place)
    first = checkpoint.begin(0, Offer(), engine=ENGINE)
    second = checkpoint.begin(0, Offer(), engine=ENGINE)
    assert second.replayed
    assert second.seq == first.seq
    with pytest.raises(InternalError, match="another attempt"):
        first.commit(segments={}, progress={}, counts={})
    second.commit(segments={}, progress={}, counts={})
    with pytest.raises(InternalError, match="is over"):
        second.commit(segments={}, progress={}, counts={})
    checkpoint.close()
    refused(WRITER, checkpoint.begin, 0, Offer(), engine=ENGINE)


def test_only_known_files_can_be_named(place: Place) -> None:
    checkpoint = open_toy(place.store(), place)
    batch = checkpoint.begin(0, Offer(), engine=ENGINE)
    segment = batch.write_segment("b", pa.table({"t": pa.array([1], pa.int64())}), ["t"])
    with pytest.raises(InternalError, match="size"):
        batch.commit(segments={"b": [replace(segment, bytes=1)]}, progress={}, counts={})
    batch.commit(segments={"b": [segment]}, progress={}, counts={})
    for _ in range(3):
        batch = checkpoint.begin(0, Offer(), engine=ENGINE)
        batch.commit(segments={}, progress={}, counts={})
    batch = checkpoint.begin(0, Offer(), engine=ENGINE)
    with pytest.raises(InternalError, match="neither in the last manifest"):
        batch.commit(segments={"b": [segment]}, progress={}, counts={})


def test_output_directory_of_another_run(place: Place) -> None:
    run(place.store(), place, 2)
    results = place.results()
    another = MemoryStore() if place.directory is None else LocalStore(place.directory / "another", sync=False)
    if isinstance(another, MemoryStore):
        another.published = place.memory.published
    refused(OUTPUT, run, another, place)
    assert place.results() == results


def test_results_need_a_sink(place: Place) -> None:
    checkpoint = Checkpoint.open(place.store(), "f", {})
    batch = checkpoint.begin(0, Offer(), engine=ENGINE)
    with pytest.raises(InternalError, match="has no sink"):
        batch.stage_output("q", pa.table({"x": [1]}))


def test_sink_function_is_called_at_least_once(place: Place) -> None:
    seen: list[tuple[int, str, list[dict[str, Any]]]] = []

    def deliver(seq: int, output: StagedOutput, table: Any) -> None:
        seen.append((seq, output.query, table.to_pylist()))

    def opened(store: Any) -> Checkpoint:
        return Checkpoint.open(store, "f", {}, sinks={"q": deliver})

    store = place.store()
    store.failpoints.arm("commit-before-marker", crash, skip=1)
    checkpoint = opened(store)
    for number in (1, 2):
        batch = checkpoint.begin(0, Offer(), engine=ENGINE)
        batch.stage_output("q", pa.table({"x": [number]}))
        if number == 1:
            batch.commit(segments={}, progress={}, counts={})
        else:
            with pytest.raises(SimulatedCrash):
                batch.commit(segments={}, progress={}, counts={})
    checkpoint.close()
    opened(place.store()).close()
    opened(place.store()).close()
    assert seen == [(1, "q", [{"x": 1}]), (2, "q", [{"x": 2}]), (2, "q", [{"x": 2}])]


def test_unpublished_results_need_their_sink(place: Place) -> None:
    store = place.store()
    store.failpoints.arm("commit-after-manifest", crash)
    with pytest.raises(SimulatedCrash):
        run(store, place)
    refused(OUTPUT, Checkpoint.open, place.store(), "toy-1", DESCRIPTION)


def test_adopted_output(place: Place) -> None:
    store = place.store()
    with open_toy(store, place) as checkpoint:
        batch = checkpoint.begin(0, Offer(), engine=ENGINE)
        path = batch.output_path("q")
        table = pa.table({"t": [1], "kept": [0], "file": ["x"]})
        batch.adopt_output("q", store.write_table(path, table), 1)
        batch.commit(segments={}, progress={}, counts={})
    assert place.results() == [(1, 0, "x")]


# --- garbage


def test_files_stay_few(place: Place) -> None:
    store = place.store()
    with open_toy(store, place) as checkpoint:
        for file in source_files(100):
            step(checkpoint, file)
        manifest = checkpoint.manifest
        assert manifest is not None
        assert sum(segment.rows for segment in manifest.segments["b"]) == 100 * ROWS
        assert len(manifest.segments["b"]) <= 10
        assert len(manifest.positions.recent["s"]) == 35
    assert len(store.list_files("segments")) <= 14
    assert len(store.list_files("manifests")) == 2
    assert len(store.list_files("intents")) <= 3
    assert len(store.list_files("published")) <= 2
    assert len(store.list_files("positions")) == 1
    assert store.list_files("staging") == []


def test_leftovers_of_attempts_are_swept_while_running(place: Place) -> None:
    store = place.store()
    with open_toy(store, place) as checkpoint:
        for number, file in enumerate(source_files(64)):
            stray = new_path("segments", "b", number + 1, "zombie")
            store.write_bytes(stray, b"of a task that lost the race")
            if number == 63:
                own = new_path("segments", "b", number + 2, "next")
                store.write_bytes(own, b"of a task of the next batch")
            step(checkpoint, file)
    left = [path for path in store.list_files("segments") if "zombie" in path or "next" in path]
    assert left == [own]
    checkpoint = open_toy(place.store(), place)
    assert checkpoint.swept >= 1
    assert own not in store.list_files("segments")
    checkpoint.close()


# --- intents and replays


def test_replay_keeps_clock_and_files(place: Place) -> None:
    store = place.store()
    with open_toy(store, place) as checkpoint:
        intent = checkpoint.begin(77, Offer({"s": FILES[:2]}), engine=ENGINE).intent
    with open_toy(place.store(), place) as checkpoint:
        assert checkpoint.pending == intent
        batch = checkpoint.begin(99, Offer({"s": FILES[:5]}), engine=ENGINE)
        assert batch.replayed
        assert batch.intent == intent
        assert batch.intent.clock == 77
        batch.commit(segments={}, progress={}, counts={})
        assert checkpoint.admit(Offer({"s": FILES[:5]})).offer.files == {"s": FILES[2:5]}


@pytest.mark.parametrize(
    ("offer", "mode"),
    [
        (Offer({"s": FILES[1:5]}), "batch"),
        (Offer({"s": (replace(FILES[0], size=1), *FILES[1:])}), "batch"),
        (Offer({"s": FILES[:5]}), "finish"),
        (Offer({"s": FILES[:5]}, {"k": 1}), "batch"),
        (Offer({"s": FILES[:5]}, {}, SparkBatch("q", 0)), "batch"),
    ],
)
def test_void_intent(place: Place, offer: Offer, mode: str) -> None:
    store = place.store()
    with open_toy(store, place) as checkpoint:
        old = checkpoint.begin(77, Offer({"s": FILES[:2]}), engine=ENGINE).intent
        batch = checkpoint.begin(99, offer, engine=ENGINE, mode=mode)
        assert not batch.replayed
        assert batch.intent.id != old.id
        assert batch.intent.clock == 99
    with open_toy(place.store(), place) as checkpoint:
        assert checkpoint.pending == batch.intent


def test_clock_never_goes_back(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        commit_empty(checkpoint, Offer(), clock=50)
        assert checkpoint.begin(40, Offer(), engine=ENGINE).intent.clock == 50


def test_discarded_intent(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        batch = checkpoint.begin(0, Offer(), engine=ENGINE)
        checkpoint.discard_intent()
        assert checkpoint.pending is None
        with pytest.raises(InternalError):
            batch.commit(segments={}, progress={}, counts={})
    refused(WRITER, checkpoint.discard_intent)


# --- what continues a checkpoint


def spark(batch: int, *files: SourceFile, query: str = "q", **offsets: Any) -> Offer:
    planned = f"{sorted(map(repr, files))} {sorted(offsets.items())}"
    return Offer({"s": files} if files else {}, offsets, SparkBatch(query, batch), planned)


def test_spark_replays_the_last_batch(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        for number in range(3):
            offer = spark(number, FILES[number])
            assert not checkpoint.admit(offer).skip
            commit_empty(checkpoint, checkpoint.admit(offer).offer)
    with open_toy(place.store(), place) as checkpoint:
        again = checkpoint.admit(spark(2, FILES[2]))
        assert again.skip
        assert again.offer.files == {}
        refused(REPLAY, checkpoint.admit, spark(2, FILES[3]))
        assert "other input" in refused(REPLAY, checkpoint.admit, spark(2, replace(FILES[2], mtime_ns=0))).message
        refused(REPLAY, checkpoint.admit, spark(1, FILES[1]))
        refused(REPLAY, checkpoint.admit, spark(4, FILES[4]))
        assert "committed here up to batch 2" in refused(REPLAY, checkpoint.admit, spark(0, FILES[0])).message
        assert not checkpoint.admit(spark(3, FILES[3])).skip


def test_spark_replays_a_batch_that_was_begun(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        recorded = checkpoint.begin(5, spark(0, FILES[0], FILES[1]), engine=ENGINE).intent
    with open_toy(place.store(), place) as checkpoint:
        again = checkpoint.begin(9, checkpoint.admit(spark(0, FILES[1], FILES[0])).offer, engine=ENGINE)
        assert again.replayed
        assert again.intent == recorded
        other = checkpoint.begin(9, spark(0, FILES[0]), engine=ENGINE)
        assert not other.replayed
        assert other.intent.offer.files == {"s": (FILES[0],)}


def test_the_clock_of_a_spark_batch_is_the_recorded_one_and_never_goes_back(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        assert checkpoint.clock(5, SparkBatch("q", 0)) == 5
        checkpoint.begin(7, spark(0, FILES[0]), engine=ENGINE)
    with open_toy(place.store(), place) as checkpoint:
        assert checkpoint.clock(9, SparkBatch("q", 0)) == 7
        assert checkpoint.clock(9, SparkBatch("other", 0)) == 9
        commit_empty(checkpoint, spark(0, FILES[0]), clock=7)
        assert [checkpoint.clock(now, SparkBatch("q", 1)) for now in (3, 7, 9)] == [7, 7, 9]


def test_new_spark_query(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        commit_empty(checkpoint, spark(0, *FILES[:2]))
        assert "never committed here" in refused(REPLAY, checkpoint.admit, spark(1, *FILES[:3], query="other")).message
        full = spark(0, *FILES[:3], query="other")
        admitted = checkpoint.admit(full)
        assert admitted.offer.files == {"s": (FILES[2],)}
        commit_empty(checkpoint, admitted.offer)
    with open_toy(place.store(), place) as checkpoint:
        assert checkpoint.admit(full).skip  # Spark knows the batch by what it offered first, not by what was left of it
        assert checkpoint.admit(spark(1, FILES[3])).offer.files == {"s": (FILES[3],)}


def test_engines_alternate_on_files(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        commit_empty(checkpoint, spark(0, FILES[0]))
        commit_empty(checkpoint, checkpoint.admit(Offer({"s": FILES[:3]})).offer)
        assert checkpoint.admit(spark(0, FILES[0])).skip  # Spark's own commit was lost
        admitted = checkpoint.admit(spark(1, *FILES[1:4]))
        assert admitted.offer.files == {"s": (FILES[3],)}


def test_other_sources_stay_with_their_reader(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        commit_empty(checkpoint, checkpoint.admit(spark(0, kafka={"0": 17})).offer)
        assert checkpoint.positions.positions.offsets["kafka"].value == {"0": 17}
        message = refused(REPLAY, checkpoint.admit, spark(0, query="other", kafka={"0": 20})).message
        assert "'kafka'" in message
        assert "'spark q'" in message
        refused(REPLAY, checkpoint.admit, Offer({}, {"kafka": {"0": 20}}))
        commit_empty(checkpoint, checkpoint.admit(spark(1, kafka={"0": 20})).offer)
    with open_toy(place.store(), place) as checkpoint:
        assert checkpoint.positions.positions.offsets["kafka"].value == {"0": 20}


def test_consumed_files(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        commit_empty(checkpoint, Offer({"s": FILES[:2], "u": FILES[5:6]}))
        commit_empty(checkpoint, Offer())
    with open_toy(place.store(), place) as checkpoint:
        log = checkpoint.positions
        assert [log.is_consumed("s", file) for file in FILES[:3]] == ["consumed", "consumed", "new"]
        assert log.is_consumed("u", FILES[0]) == "new"
        changed = replace(FILES[0], size=1)
        assert log.is_consumed("s", changed) == "changed"
        admitted = checkpoint.admit(Offer({"s": (changed, FILES[1], FILES[2])}))
        assert admitted.offer.files == {"s": (FILES[2],)}
        assert [(c.source, c.consumed, c.current) for c in admitted.changed] == [("s", FILES[0], changed)]


@pytest.mark.parametrize("per_batch", [1, 40, 65])
def test_many_consumed_files(place: Place, per_batch: int) -> None:
    files = source_files(600)
    batches = [files[at : at + per_batch] for at in range(0, len(files), per_batch)]
    store = place.store()
    with open_toy(store, place) as checkpoint:
        for batch in batches:
            commit_empty(checkpoint, Offer({"s": batch, "u": batch[:1]}))
    with open_toy(place.store(), place) as checkpoint:
        assert len(checkpoint.positions) == 600 + len(batches)
        fresh, changed = checkpoint.positions.unconsumed({"s": source_files(601), "u": files[:2]})
        assert fresh["s"] == source_files(601)[600:]
        assert len(fresh["u"]) == (0 if per_batch == 1 else 1)
        assert changed == []
    assert len(store.list_files("positions")) <= 18


def test_file_name_that_is_no_text(place: Place) -> None:
    with open_toy(place.store(), place) as checkpoint:
        refused(LOCATION, commit_empty, checkpoint, Offer({"s": (SourceFile("/in/\udcff", 1, 1),)}))


def test_same_in_memory_and_on_disk(tmp_path: Path) -> None:
    """What a manifest says does not depend on the store, apart from names, sizes and checksums of files."""
    kept = []
    for where in (Place(None), Place(tmp_path)):
        store = where.store()
        run(store, where)
        manifest = inspect(store).manifest
        assert manifest is not None
        assert manifest.seq == BATCHES
        segments = [(s.rows, s.bounds, s.batch, s.schema) for s in manifest.segments["b"]]
        outputs = [(o.query, o.rows, o.name) for o in manifest.outputs]
        rejected = [(s.rows, s.bounds, s.batch) for s in manifest.quarantine.files]
        kept.append(
            (
                segments,
                outputs,
                rejected,
                manifest.progress,
                manifest.counts,
                manifest.batch_counts,
                manifest.clock,
                manifest.extra,
            )
        )
    assert kept[0] == kept[1]
