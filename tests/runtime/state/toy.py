"""A toy run over the state layer: reads numbered files, keeps all rows, and numbers its results by what it has kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.state.inputs.positions import Offer, SourceFile
from tidegate.runtime.state.manifest import Engine, Manifest, OperatorFiles, SourceCounts, manifest_path
from tidegate.runtime.state.segments import Segment, read_segments, schema_id
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore
from tidegate.runtime.state.store.packs import file_of, part_of

ENGINE = Engine("toy", "1")
BATCHES = 5
ROWS = 3
DESCRIPTION = {"streams": {"s": "t bigint"}, "program": "select *\nfrom s", "shards": 256}


class Place:
    """Where a run keeps its checkpoint and results, over several openings of the store."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self.memory = MemoryStore(packs=True)
        self.output = "/out" if directory is None else str(directory / "out")

    def store(self) -> Store:
        """The store as a new process sees it; locks of dead processes are gone."""
        if self.directory is not None:
            return LocalStore(self.directory / "checkpoint", sync=False)
        fresh = MemoryStore(packs=True)
        fresh.files, fresh.published = self.memory.files, self.memory.published
        return fresh

    def clear(self) -> None:
        """Start anew, results included."""
        self.memory.files.clear()
        if self.directory is not None:
            shutil.rmtree(self.directory / "checkpoint", ignore_errors=True)
        self.take_results()

    def take_results(self) -> None:
        """Remove all published results, as a consumer may."""
        self.memory.published.clear()
        if self.directory is not None:
            shutil.rmtree(self.output, ignore_errors=True)

    def results(self) -> list[tuple[int, int, str]]:
        """(t, kept before, file) of all published rows, as someone who lists the directory sees them."""
        if self.directory is None:
            tables = [table for name, table in sorted(self.memory.published.items())]
        else:
            found = sorted(Path(self.output).glob("*")) if Path(self.output).exists() else []
            tables = [pq.ParquetFile(path).read() for path in found if not path.name.startswith(".")]
        return [(row["t"], row["kept"], row["file"]) for table in tables for row in table.to_pylist()]


def source_files(count: int = BATCHES) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(f"/in/{number}.parquet", 100 + number, 1_000 + number) for number in range(count))


def rows_of(file: SourceFile) -> list[int]:
    number = file.size - 100
    return [number * 10 + row for row in range(ROWS)]


def expected_results(count: int = BATCHES) -> list[tuple[int, int, str]]:
    return [(t, number * ROWS, file.path) for number, file in enumerate(source_files(count)) for t in rows_of(file)]


def expected_kept(count: int = BATCHES) -> list[int]:
    return [t for file in source_files(count) for t in rows_of(file)]


def open_toy(store: Store, place: Place, **options: Any) -> Checkpoint:
    return Checkpoint.open(store, "toy-1", DESCRIPTION, sinks={"q": place.output}, version="1", **options)


def step(checkpoint: Checkpoint, file: SourceFile) -> Manifest | None:
    """One batch that reads `file`, None if it was read before; every batch also rejects one row."""
    offer = checkpoint.admit(Offer({"s": (file,)})).offer
    if not offer.files["s"]:
        return None
    store, previous = checkpoint.store, checkpoint.manifest
    batch = checkpoint.begin(clock=file.mtime_ns, offer=offer, engine=ENGINE)
    old = previous.segments["b"] if previous is not None else ()
    kept = sum(segment.rows for segment in old)
    ts = [t for read in batch.intent.offer.files["s"] for t in rows_of(read)]
    rows = pa.table({"t": pa.array(ts, pa.int64())})
    if file.size % 2:
        bounds = {"t": (min(ts), max(ts))}
        few = Segment("", rows.num_rows, 0, "", schema_id(rows.schema), bounds, batch.seq, 0)
        live = (*old, batch.pack_segment(rows, few) or batch.write_segment("b", rows, ["t"]))
        live = live if file.size % 4 == 1 else batch.append("b", old, rows, ["t"])
    else:
        live = batch.compact("b", (*old, batch.write_segment("b", rows, ["t"])), ["t"], fanout=2)
    batch.stage_output(
        "q", rows.append_column("kept", [[kept] * len(ts)]).append_column("file", [[file.path] * len(ts)])
    )
    batch.quarantine(pa.table({"row": [f"bad {file.path}"]}))
    partial = batch.write_state("op", pa.table({"n": [kept + len(ts)]}))
    assert store.packs or store.exists(partial.path)
    return batch.commit(
        segments={"b": live},
        progress={"s.t": max(ts), "idle.t": float("-inf")},
        counts={"s": SourceCounts(len(ts) + 1, len(ts), {"malformed": 1})},
        operators={"op": OperatorFiles(1, (partial,), {"n": kept + len(ts)})},
        extra={"last": file.path},
    )


def run(store: Store, place: Place, count: int = BATCHES, **options: Any) -> None:
    """Open and read all files up to `count` that were not read yet."""
    checkpoint = open_toy(store, place, **options)
    try:
        for file in source_files(count):
            step(checkpoint, file)
    finally:
        checkpoint.close()


def check_finished(place: Place, count: int = BATCHES) -> None:
    """The run's state and results are those of an undisturbed one, and nothing else lies about."""
    store = place.store()
    with open_toy(store, place) as checkpoint:
        manifest = checkpoint.manifest
        assert manifest is not None
        assert manifest.seq == count
        assert sorted(read_segments(store, manifest.segments["b"]).column("t").to_pylist()) == expected_kept(count)
        assert manifest.progress == {"s.t": expected_kept(count)[-1], "idle.t": float("-inf")}
        assert manifest.counts == {"s": SourceCounts((ROWS + 1) * count, ROWS * count, {"malformed": count})}
        assert manifest.kernel["op"].values == {"n": ROWS * count}
        assert len(checkpoint.positions) == count
        rejected = read_segments(store, manifest.quarantine.files).column("row").to_pylist()
        named = {file_of(file.path) for kept in checkpoint._retained for file in kept.manifest.files()}
    assert place.results() == expected_results(count)
    for area in ("segments", "kernel", "positions", "quarantine", "staging", "tmp"):
        assert set(store.list_files(area)) <= named
    assert sorted(rejected) == [f"bad {file.path}" for file in source_files(count)]
    assert len(store.list_files("manifests")) <= 2


def damage_kinds() -> dict[str, Callable[[bytes], bytes | None]]:
    """Ways to damage a file, by name; None removes it."""
    return {
        "emptied": lambda data: b"",
        "truncated": lambda data: data[: len(data) // 2],
        "one byte short": lambda data: data[:-1],
        "first byte flipped": lambda data: bytes([data[0] ^ 1]) + data[1:],
        "middle byte flipped": lambda data: (
            data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]
        ),
        "last byte flipped": lambda data: data[:-1] + bytes([data[-1] ^ 64]),
        "byte added": lambda data: data + b" ",
        "removed": lambda data: None,
    }


def exit_status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def hits_state(manifest: Manifest, path: str, before: bytes, after: bytes | None) -> bool:
    """Whether damage to a file concerns what the next batch needs: of a pack only the parts that the manifest names."""
    if path in ("meta.json", manifest_path(manifest.seq)):
        return True
    for file in manifest.state_files():
        part = part_of(file.path)
        if part is None and file.path == path:
            return True
        if part is not None and part.pack == path:
            span = slice(part.offset, part.offset + part.length)
            if after is None or after[span] != before[span]:
                return True
    return False
