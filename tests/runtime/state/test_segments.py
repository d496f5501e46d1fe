"""Segments keep their rows and bounds, show every damage, and stay few."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.state.toy import Place, damage_kinds
from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.errors import DATA, StateError
from tidegate.runtime.state.segments import (
    Segment,
    append_segment,
    covering,
    plan_compaction,
    read_pieces,
    read_segments,
    verify,
    write_segment,
    write_segment_file,
)
from tidegate.runtime.state.store.local import LocalStore

TABLE = pa.table(
    {
        "t": pa.array([5, -(2**63), 2**63 - 1], pa.int64()),
        "u": pa.array([1, None, 3], pa.int64()),
        "s": pa.array(["a", None, "\U0001f600"], pa.large_string()),
        "v": pa.array(["x", "y", "z"], pa.string_view()),
    }
)


def test_round_trip(place: Place) -> None:
    store = place.store()
    segment = write_segment(store, "b/[1]", TABLE, ["t", "u"], 7, "attempt", shard=3)
    assert segment.rows == 3
    assert segment.bounds == {"t": (-(2**63), 2**63 - 1)}  # u has a null: it can be anything
    assert (segment.batch, segment.shard) == (7, 3)
    assert store.size(segment.path) == segment.bytes
    assert read_segments(store, [segment]).to_pylist() == TABLE.to_pylist()
    assert read_segments(store, [segment, segment], ["s", "t"]).to_pylist() == TABLE.select(["s", "t"]).to_pylist() * 2
    assert Segment.from_json(segment.to_json()) == segment
    other = write_segment(store, "b/[1]", TABLE, ["t", "u"], 7, "attempt", shard=3)
    assert other.path != segment.path
    assert other.schema == segment.schema


def test_empty(place: Place) -> None:
    store = place.store()
    segment = write_segment(store, "b", TABLE.slice(0, 0), ["t"], 1, "a")
    assert segment.rows == 0
    assert segment.bounds == {}
    assert read_segments(store, [segment]).schema.names == TABLE.schema.names
    assert read_segments(store, [], schema=TABLE.schema).num_rows == 0
    with pytest.raises(InternalError):
        read_segments(store, [])


def test_only_int64_is_time(place: Place) -> None:
    with pytest.raises(InternalError, match="not int64"):
        write_segment(place.store(), "b", TABLE, ["s"], 1, "a")


def test_schemas_must_agree(place: Place) -> None:
    store = place.store()
    first = write_segment(store, "b", pa.table({"t": pa.array([1], pa.int64())}), ["t"], 1, "a")
    second = write_segment(store, "b", pa.table({"t": pa.array([1], pa.int32())}), [], 1, "a")
    with pytest.raises(StateError) as caught:
        read_segments(store, [first, second])
    assert caught.value.code == DATA


def test_from_a_worker(tmp_path: Path) -> None:
    arguments = pickle.loads(pickle.dumps((str(tmp_path), "b", TABLE, ["t"], 4, "attempt", 2)))  # noqa: S301 - as Spark ships them
    segment = Segment.from_json(write_segment_file(*arguments))
    store = LocalStore(tmp_path)
    verify(store, [segment.file])
    assert (segment.batch, segment.shard) == (4, 2)
    assert read_segments(store, [segment]).equals(TABLE)
    with pytest.raises(StateError, match="written segment"):
        Segment.from_json('{"path": "x"}')


@pytest.mark.parametrize("kind", sorted(damage_kinds()))
def test_damage_is_refused(local: Place, kind: str) -> None:
    store = local.store()
    segment = write_segment(store, "b", TABLE, ["t"], 1, "a")
    data = damage_kinds()[kind](store.read_bytes(segment.path))
    store.delete(segment.path)
    if data is not None:
        store.write_bytes(segment.path, data)
    with pytest.raises(StateError) as caught:
        verify(store, [segment.file])
    assert caught.value.code == DATA
    assert segment.path in caught.value.message


@pytest.mark.parametrize("kind", ["truncated", "last byte flipped", "removed"])
def test_damage_is_refused_where_rows_are_read(local: Place, kind: str) -> None:
    store = local.store()
    segment = write_segment(store, "b", TABLE, ["t"], 1, "a")
    data = damage_kinds()[kind](store.read_bytes(segment.path))
    store.delete(segment.path)
    if data is not None:
        store.write_bytes(segment.path, data)
        segment = replace(segment, bytes=len(data))
    for read in (lambda: read_segments(store, [segment]), lambda: list(read_pieces(store, segment, 2))):
        with pytest.raises(StateError) as caught:
            read()
        assert caught.value.code == DATA
        assert segment.path in caught.value.message


def test_pieces_are_all_the_rows(local: Place) -> None:
    store = local.store()
    segment = write_segment(store, "b", TABLE, ["t"], 1, "a")
    pieces = list(read_pieces(store, segment, 2))
    assert [piece.num_rows for piece in pieces] == [2, 1]
    assert pa.concat_tables(pieces).to_pylist() == TABLE.to_pylist()
    for wrong in (replace(segment, rows=4), replace(segment, schema="x")):
        with pytest.raises(StateError, match="its rows or columns"):
            list(read_pieces(store, wrong, 2))
        with pytest.raises(StateError, match="its rows or columns"):
            read_segments(store, [wrong])


def test_every_flipped_byte_is_refused(local: Place) -> None:
    store = local.store()
    table = pa.table({"t": pa.array([1, 2, 3], pa.int64())})
    segment = write_segment(store, "b", table, ["t"], 1, "a")
    data = store.read_bytes(segment.path)
    for at in range(len(data)):
        store.delete(segment.path)
        store.write_bytes(segment.path, data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        with pytest.raises(StateError):
            verify(store, [segment.file])


def test_swapped_file_is_refused(local: Place) -> None:
    store = local.store()
    first = write_segment(store, "b", TABLE, ["t"], 1, "a")
    renamed = TABLE.rename_columns(["x", "u", "s", "v"])
    second = write_segment(store, "b", renamed, [], 1, "a")
    assert first.bytes == second.bytes
    data = store.read_bytes(second.path)
    store.delete(first.path)
    store.write_bytes(first.path, data)
    with pytest.raises(StateError, match="not those that were written"):
        read_segments(store, [first])


@dataclass(frozen=True)
class Size:
    rows: int
    shard: int = 0
    schema: str = "x"


def apply(segments: list[Size], fanout: int) -> tuple[list[Size], int]:
    written = 0
    for group in plan_compaction(segments, fanout=fanout):
        assert len(group) > 1
        ids = {id(segment) for segment in group}
        segments = [segment for segment in segments if id(segment) not in ids]
        merged = Size(sum(segment.rows for segment in group), group[0].shard)
        written += merged.rows
        segments.append(merged)
    return segments, written


@given(st.lists(st.integers(0, 300) | st.sampled_from([1, 4, 16, 64]), max_size=300), st.sampled_from([2, 4, 8]))
def test_compaction_bounds(sizes: list[int], fanout: int) -> None:
    live: list[Size] = []
    total = written = 0
    for rows in sizes:
        live, more = apply([*live, Size(rows)], fanout)
        total, written = total + rows, written + more
        levels = 1 + (math.floor(math.log(total, fanout) + 1e-9) if total else 0)
        assert len(live) <= (fanout - 1) * levels
        assert written <= total * levels
        assert sum(segment.rows for segment in live) == total
        assert plan_compaction(live, fanout=fanout) == []


def test_a_thousand_small_batches() -> None:
    live: list[Size] = []
    written = 0
    for _ in range(1_000):
        live, more = apply([*live, Size(10)], 4)
        written += more
    assert len(live) <= 15
    assert written <= 10_000 * 5


def test_bounds_of_several_are_of_what_each_has_bounds_of() -> None:
    one, other = {"t": (1, 5), "u": (0, 0)}, {"t": (-2, 3), "v": (1, 1)}
    assert covering([one, other]) == {"t": (-2, 5)}
    assert covering([other, {**one, "v": (0, 2)}]) == {"t": (-2, 5), "v": (0, 2)}
    assert covering([one]) == one
    assert covering([one, {}]) == covering([]) == {}


def test_compaction_keeps_apart_what_differs() -> None:
    same = [Size(1), Size(1), Size(1), Size(1)]
    mixed = [Size(1), Size(1, shard=1), Size(1, schema="y"), Size(1)]
    assert plan_compaction([*same, *mixed[1:3]], fanout=4) == [same]
    assert plan_compaction(mixed, fanout=4) == []


def test_compaction_leaves_large_segments() -> None:
    large = [Size(100) for _ in range(10)]
    assert plan_compaction(large, fanout=4, max_rows=100) == []
    almost = [Size(99) for _ in range(8)]
    assert [len(group) for group in plan_compaction(almost, fanout=4, max_rows=100)] == [2, 2, 2, 2]


@given(st.lists(st.integers(1, 300), max_size=100), st.sampled_from([2, 4, 8]), st.sampled_from([1, 50, 200, 1000]))
def test_a_merge_is_of_less_than_twice_the_most(sizes: list[int], fanout: int, most: int) -> None:
    """So that no batch has to merge much at once; and segments are still as few as their sizes allow."""
    live: list[Size] = []
    for rows in sizes:
        live.append(Size(rows))
        for group in plan_compaction(live, fanout=fanout, max_rows=most):
            assert len(group) > 1
            assert all(segment.rows < most for segment in group)
            merged = Size(sum(segment.rows for segment in group))
            assert merged.rows < 2 * most
            gone = {id(segment) for segment in group}
            live = [*(segment for segment in live if id(segment) not in gone), merged]
        assert plan_compaction(live, fanout=fanout, max_rows=most) == []
        levels = 1 + math.floor(math.log(most, fanout) + 1e-9)
        assert len(live) <= sum(sizes) / most + sum(1 for rows in sizes if rows >= most) + (fanout - 1) * levels


def test_compaction_cascades_in_one_rewrite() -> None:
    segments = [*(Size(16) for _ in range(3)), *(Size(4) for _ in range(3)), *(Size(1) for _ in range(4))]
    assert plan_compaction(segments, fanout=4) == [segments]


def test_compaction_begins_with_the_smallest() -> None:
    """What becomes of them is merged with those of its size at once, not in a rewrite of its own."""
    segments = [*(Size(4) for _ in range(4)), *(Size(1) for _ in range(4))]
    assert plan_compaction(segments, fanout=4) == [segments]


@given(st.lists(st.integers(0, 20), max_size=40))
def test_append_equals_write_then_compact(sizes: list[int]) -> None:
    """Appending keeps all rows, in as many segments as writing and then merging would."""
    store = Place(None).store()
    appended: tuple[Segment, ...] = ()
    sketch: list[Size] = []
    total = 0
    for seq, rows in enumerate(sizes):
        table = pa.table({"t": pa.array(range(total, total + rows), pa.int64())})
        appended = append_segment(store, "b", appended, table, ["t"], seq, "a")
        sketch, _ = apply([*sketch, Size(rows)], 4)
        total += rows
        assert sorted(segment.rows for segment in appended) == sorted(size.rows for size in sketch)
        assert sorted(read_segments(store, appended).column("t").to_pylist()) == list(range(total))
        for segment in appended:
            if segment.rows:
                ts = read_segments(store, [segment]).column("t").to_pylist()
                assert segment.bounds == {"t": (min(ts), max(ts))}
