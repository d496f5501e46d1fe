"""Files whose rows lie by shard: whoever reads a shard gets all of its rows, and few others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.runtime.engines.spark.eval import lying
from tidegate.runtime.engines.spark.eval.lying import by_shard, stored_shards
from tidegate.runtime.ordered.state import shard_hash, shard_of
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.segments import Segment, read_segments, read_shard, write_segment
from tidegate.runtime.state.shard_layout import METADATA, Shard, ShardLayout
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

#: NULL is a key; rows of a key are in order of time, those of different keys are not.
ROWS = pl.DataFrame({"k": [None if n % 7 == 0 else f"k{n % 13}" for n in range(500)], "t": range(500)})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many here."""
    monkeypatch.setattr(lying, "ROWS_A_SHARD", 16)


def stored(store: Store, shards: int, rows: pl.DataFrame = ROWS) -> Segment:
    lying_so, layout = by_shard(rows, "k", shards)
    assert (layout is None) is (shards == 1)
    return write_segment(store, "b", lying_so.to_arrow(), ["t"], 1, "a", layout=layout)


def read(store: Store, segment: Segment, shard: Shard) -> pl.DataFrame:
    return pl.DataFrame(read_shard(store, segment, shard))


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("lying_in", [1, 2, 3, 4, 6, 12])
def test_every_shard_has_its_rows_in_their_order(tmp_path: Path, shards: int, lying_in: int) -> None:
    store = LocalStore(tmp_path)
    segment = stored(store, lying_in)
    for shard in range(shards):
        found = read(store, segment, Shard("k", shard_hash(), shard, shards))
        own = shard_of("k", shards) == shard
        by_key = pl.col("k").rank("dense").fill_null(0)
        assert (
            found.filter(own)
            .sort(by_key, maintain_order=True)
            .equals(ROWS.filter(own).sort(by_key, maintain_order=True))
        )
        if lying_in % shards == 0:
            assert found.height == ROWS.filter(own).height
    assert pl.DataFrame(read_segments(store, [segment])).sort("t").equals(ROWS)


@pytest.mark.parametrize("other", [{"key": "t"}, {"hash": "polars 0"}])
def test_by_another_key_or_hash_all_rows_are_read(tmp_path: Path, other: dict[str, Any]) -> None:
    store = LocalStore(tmp_path)
    wanted = replace(Shard("k", shard_hash(), 1, 4), **other)
    assert read(store, stored(store, 4), wanted).height == ROWS.height


def test_a_shard_without_rows_has_no_row_group(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    rows = ROWS.with_columns(k=pl.lit("k1"))
    segment = stored(store, 4, rows)
    heights = [read(store, segment, Shard("k", shard_hash(), shard, 4)).height for shard in range(4)]
    assert sorted(heights) == [0, 0, 0, 500]
    assert read(store, segment, Shard("k", shard_hash(), 0, 4)).columns == ["k", "t"]


def test_few_rows_stay_as_they_are() -> None:
    rows = ROWS.head(2 * lying.ROWS_A_SHARD - 1)
    kept, layout = by_shard(rows, "k", 4)
    assert layout is None
    assert kept is rows


@pytest.mark.parametrize(
    ("rows", "shards", "lying_in"), [(64, 4, 4), (63, 4, 2), (96, 6, 6), (95, 6, 3), (500, 13, 13)]
)
def test_rows_lie_in_as_many_shards_as_have_enough(tmp_path: Path, rows: int, shards: int, lying_in: int) -> None:
    """So a task still reads whole row groups, with rows of some others."""
    some = ROWS.head(rows)
    kept, layout = by_shard(some, "k", shards)
    assert layout is not None
    assert len(layout.rows) == lying_in
    store = LocalStore(tmp_path)
    segment = write_segment(store, "b", kept.to_arrow(), ["t"], 1, "a", layout=layout)
    for shard in range(shards):
        own, alike = (shard_of("k", count) == shard % count for count in (shards, lying_in))
        found = read(store, segment, Shard("k", shard_hash(), shard, shards))
        assert found.filter(own).sort("t").equals(some.filter(own))
        assert found.sort("t").equals(some.filter(alike))


def test_tasks_read_whole_shards() -> None:
    assert [stored_shards(tasks) for tasks in (1, 2, 64, 1000, 257)] == [1, 2, 64, 250, 1]


def test_memory_has_no_shards() -> None:
    store = MemoryStore()
    assert read(store, stored(store, 4), Shard("k", shard_hash(), 1, 4)).height == ROWS.height


@pytest.mark.parametrize("rows", [(0, 0, 0, 1), (100, 100, 100, 200)])
def test_a_layout_that_is_not_that_of_the_rows_is_damage(tmp_path: Path, rows: tuple[int, ...]) -> None:
    store = LocalStore(tmp_path)
    segment = stored(store, 4)
    file = tmp_path / segment.path
    table = pq.read_table(file)
    metadata = {METADATA: ShardLayout("k", shard_hash(), rows).to_metadata()[METADATA]}
    pq.write_table(table.replace_schema_metadata(metadata), file)
    changed = replace(segment, bytes=file.stat().st_size, checksum=store.checksum(segment.path))
    with pytest.raises(StateError, match="damaged"):
        read_shard(store, changed, Shard("k", shard_hash(), 1, 4))


def test_a_row_group_that_is_not_that_of_its_shard_is_damage(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    segment = stored(store, 4)
    file = tmp_path / segment.path
    layout = ShardLayout("k", shard_hash(), (124, 126, 125, 125))
    table = pq.read_table(file).replace_schema_metadata(layout.to_metadata())
    pq.write_table(table, file, row_group_size=125)
    changed = replace(segment, bytes=file.stat().st_size, checksum=store.checksum(segment.path))
    assert read(store, changed, Shard("k", shard_hash(), 2, 4)).height == 125
    with pytest.raises(StateError, match="damaged"):
        read_shard(store, changed, Shard("k", shard_hash(), 1, 4))


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b'{"key": 1}',
        b"[]",
        b'{"key": "k", "hash": "h", "rows": [-1, 501]}',
        b'{"key": "k", "hash": "h", "rows": [500.0]}',
        b'{"key": "k", "hash": "h", "rows": [500], "more": 1}',
    ],
)
def test_a_layout_that_is_none_is_refused(tmp_path: Path, text: bytes) -> None:
    store = LocalStore(tmp_path)
    segment = stored(store, 1)
    file = tmp_path / segment.path
    pq.write_table(pq.read_table(file).replace_schema_metadata({METADATA: text}), file)
    changed = replace(segment, bytes=file.stat().st_size, checksum=store.checksum(segment.path))
    with pytest.raises(StateError):
        read_shard(store, changed, Shard("k", shard_hash(), 1, 4))


def test_fewer_rows_than_were_written_are_damage(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    segment = stored(store, 4)
    with pytest.raises(StateError, match="damaged"):
        read_shard(store, replace(segment, rows=499), Shard("k", shard_hash(), 1, 4))


def test_metadata_does_not_reach_readers(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table: Any = read_shard(store, stored(store, 4), Shard("k", shard_hash(), 1, 4))
    assert isinstance(table, pa.Table)
    assert table.schema.metadata is None
