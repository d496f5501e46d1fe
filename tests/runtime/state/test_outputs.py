"""Results on their way out: several of a batch are one, and what is published late is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.state.toy import ENGINE
from tidegate.runtime.state import batch as batch_module
from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.state.errors import DATA, OUTPUT, StateError
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.manifest import StagedOutput
from tidegate.runtime.state.outputs.staging import (
    GATHERED,
    check_not_ahead,
    concatenated,
    is_inside,
    kept_results,
    read_outputs,
    target_of,
)
from tidegate.runtime.state.segments import read_segments
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore
from tidegate.runtime.state.store.packs import file_of

INSIDE = "results/q"


def numbers(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


def seen(checkpoint: Checkpoint) -> list[int]:
    found = kept_results(checkpoint.store, checkpoint.manifest, INSIDE, ["q"])
    return [value for table in found for value in table.column("x").to_pylist()]


def test_tables_become_one() -> None:
    assert concatenated([numbers(1), numbers(2, 3), numbers()]).column("x").to_pylist() == [1, 2, 3]
    assert concatenated([numbers(1)]).column("x").to_pylist() == [1]


def test_where_results_go() -> None:
    assert target_of("/out/", "a") == target_of("/out", "a") == "/out/a"
    assert [is_inside(sink) for sink in (INSIDE, "/out", None, lambda *_: None)] == [True, False, False, False]


def test_results_that_wait_keep_the_order_of_batches() -> None:
    """Some become a file once they are many, or where a worker wrote one; all that were staged in a batch are one
    part.
    """
    store = MemoryStore(packs=True)
    expected: list[int] = []
    with Checkpoint.open(store, "f", {}, sinks={"q": INSIDE}) as checkpoint:
        for seq in range(1, 3 * GATHERED):
            batch = checkpoint.begin(0, Offer(), engine=ENGINE)
            for part in range(seq % 3):
                batch.stage_output("q", numbers(10 * seq + part))
                expected.append(10 * seq + part)
            if seq == 10:
                path = batch.output_path("q")
                batch.adopt_output("q", store.write_table(path, numbers(-1)), 1)
                expected.insert(-1, -1)  # before what waits
            manifest = batch.commit(segments={}, progress={}, counts={})
            assert len(manifest.gathered.get("q", ())) <= GATHERED
            assert seen(checkpoint) == expected
            if seq % 3 == 2 and seq != 10:
                assert manifest.gathered["q"][-1].rows >= 2, "what is staged in a batch is one part"


def test_many_results_are_a_file_of_their_own_behind_those_that_waited() -> None:
    store = MemoryStore(packs=True)
    with Checkpoint.open(store, "f", {}, sinks={"q": INSIDE}) as checkpoint:
        for values in ((1,), tuple(range(1 << 17)), (2,)):
            batch = checkpoint.begin(0, Offer(), engine=ENGINE)
            batch.stage_output("q", numbers(*values))
            manifest = batch.commit(segments={}, progress={}, counts={})
        assert [output.rows for output in manifest.gathered["q"]] == [1]
        assert seen(checkpoint) == [1, *range(1 << 17), 2]


@pytest.mark.parametrize("by", ["directory", "function"])
def test_results_that_a_crash_left_behind_are_published_as_they_were_written(by: str, tmp_path: Path) -> None:
    """Or not at all, where the file was damaged meanwhile: its size does not tell."""
    given: list[list[int]] = []

    def deliver(seq: int, output: StagedOutput, table: Any) -> None:
        given.append(table.column("x").to_pylist())

    sinks: dict[str, Any] = {"q": str(tmp_path / "out") if by == "directory" else deliver}
    for damaged in (False, True):
        directory = tmp_path / f"checkpoint {damaged}"
        store = LocalStore(directory, sync=False)
        store.failpoints.arm("commit-after-manifest", crash)
        checkpoint = Checkpoint.open(store, "f", {}, sinks=sinks)
        batch = checkpoint.begin(0, Offer(), engine=ENGINE)
        batch.stage_output("q", numbers(*range(50)))
        with pytest.raises(SimulatedCrash):
            batch.commit(segments={}, progress={}, counts={})
        checkpoint.close()
        assert given == ([] if by == "directory" or not damaged else [list(range(50))])
        (path,) = store.list_files("staging")
        if damaged:
            data = bytearray((directory / path).read_bytes())
            data[-1] ^= 1
            (directory / path).write_bytes(data)
            with pytest.raises(StateError) as refusal:
                Checkpoint.open(LocalStore(directory, sync=False), "f", {}, sinks=sinks)
            assert refusal.value.code == DATA
        else:
            Checkpoint.open(LocalStore(directory, sync=False), "f", {}, sinks=sinks).close()
        for file in tmp_path.glob("out/*"):
            assert not damaged
            file.unlink()
    assert len(given) == (by == "function")


def test_parts_of_packs_are_as_they_were_written() -> None:
    store = MemoryStore(packs=True)
    with Checkpoint.open(store, "f", {}, sinks={"q": INSIDE}) as checkpoint:
        batch = checkpoint.begin(0, Offer(), engine=ENGINE)
        batch.stage_output("q", numbers(1, 2))
        (output,) = batch.commit(segments={}, progress={}, counts={}).gathered["q"]
    (path,) = store.list_files("packs")
    store.files[path] = store.files[path][:-1]
    with pytest.raises(StateError) as refusal:
        list(read_outputs(store, [output]))
    assert refusal.value.code == DATA


def test_results_of_later_batches_are_refused(tmp_path: Path) -> None:
    """Of the query itself, merged or not; and of earlier batches they may be there."""
    store = LocalStore(tmp_path / "checkpoint", sync=False)
    (tmp_path / "out").mkdir()
    sinks: dict[str, Any] = {"q": str(tmp_path / "out"), "inside": INSIDE, "called": lambda *_: None}
    (tmp_path / "out" / "part-0000000003-to-0000000007-q-00000.parquet").touch()
    (tmp_path / "out" / "part-0000000002-q-00000.parquet").touch()
    (tmp_path / "out" / "part-0000000009-another-00000.parquet").touch()
    (tmp_path / "out" / "part-0000000003-to-0000000009-other-00000.parquet").touch()
    check_not_ahead(store, sinks, 7)
    with pytest.raises(StateError, match="up to 7") as refusal:
        check_not_ahead(store, sinks, 6)
    assert refusal.value.code == OUTPUT
    (tmp_path / "out" / "part-0000000008-q-00000.parquet").touch()
    with pytest.raises(StateError, match="up to 8"):
        check_not_ahead(store, sinks, 7)
    with pytest.raises(StateError, match="has no batch yet"):
        check_not_ahead(store, sinks, 0)


@pytest.mark.parametrize("packs", [False, True])
def test_nothing_stays_of_what_a_batch_staged_before_it_was_evaluated_anew(
    packs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_module, "_MANY", 2)
    store = MemoryStore(packs=packs)
    sinks: dict[str, Any] = {"q": INSIDE, "r": str(tmp_path / "out")}
    with Checkpoint.open(store, "f", {}, sinks=sinks) as checkpoint:
        batch = checkpoint.begin(0, Offer(), engine=ENGINE)
        for attempt in (1, 2):
            if attempt == 2:
                batch.unstage()
            for query in sinks:
                batch.stage_output(query, numbers(attempt))
            adopted = batch.output_path("r")
            batch.adopt_output("r", store.write_table(adopted, numbers(10 * attempt)), 1)
            batch.quarantine(pa.table({"row": ["a", "b"]}))
            batch.quarantine(pa.table({"row": [str(attempt)]}))
        manifest = batch.commit(segments={}, progress={}, counts={})
        assert seen(checkpoint) == [2]
        assert [output.rows for output in manifest.outputs if output.query == "r"] == [1, 1]
        assert [output.name[-13:-8] for output in manifest.outputs if output.query == "r"] == ["00000", "00001"]
        set_aside = read_segments(store, manifest.quarantine.files).column("row").to_pylist()
        assert sorted(set_aside) == ["2", "a", "b"]
        named = {file_of(file.path) for file in manifest.files()}
        for area in ("staging", "quarantine", "packs"):
            assert set(store.list_files(area)) <= named, area
    published = [value for table in store.published.values() for value in table.column("x").to_pylist()]
    assert sorted(published) == [2, 20]
