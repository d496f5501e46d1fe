"""How much of the state a batch rewrites: a bounded number of rows, whatever the state; and still few segments."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate.runtime import garbage
from tidegate.runtime.embedded import executor
from tidegate.runtime.embedded.few import rows as few_rows
from tidegate.runtime.embedded.session import Session
from tidegate.runtime.executor import Rewrite
from tidegate.runtime.garbage import MERGED_ROWS, MOST_SEGMENTS, affordable, merged_rows
from tidegate.runtime.state.local import LocalStore
from tidegate.runtime.state.memory import MemoryStore
from tidegate.runtime.state.segments import Segment, plan_compaction
from tidegate.runtime.state.store import Store

events = tg.stream("Events", "k bigint, t bigint", progress="t")


def segment(rows: int, number: int = 0, width: int = 24) -> Segment:
    return Segment(f"segments/{number}", rows, rows * width, "", "x", {}, 0, 0)


def pairs(within: int) -> tg.Program:
    """Nobody has results before the end: rows are stored, and go by time."""
    one, other = events.as_("one"), events.as_("other")
    both = one.join(other, one.k == other.k, one.t < other.t, other.t <= one.t + within)
    return tg.program(Pairs=both.select(k=one.k, first=one.t, second=other.t))


@pytest.mark.parametrize(("arriving", "batches"), [(50, 40_000), (10_000, 2_000), (100_000, 300)])
def test_no_batch_merges_more_than_a_few_times_what_came_or_a_part_of_the_state(arriving: int, batches: int) -> None:
    live: list[Segment] = []
    merged: list[int] = []
    for number in range(batches):
        live.append(segment(arriving, number))
        most = merged_rows(live, arriving)
        groups = [Rewrite(None, group, None, most) for group in plan_compaction(live, max_rows=most)]  # type: ignore[arg-type]
        chosen = affordable(groups, arriving)
        for one in chosen:
            gone = {s.path for s in one.segments}
            live = [*(s for s in live if s.path not in gone), segment(one.rows, number * 1000 + len(gone) + 1_000_000)]
        merged.append(sum(one.rows for one in chosen))
        total = arriving * (number + 1)
        assert merged[-1] <= max(4 * arriving, 1 << 17, 2 * total // MOST_SEGMENTS)
        assert len(live) <= 1.1 * MOST_SEGMENTS + 40
        assert sum(s.rows for s in live) == total
    assert statistics.mean(merged) <= 8 * arriving


@given(st.lists(st.integers(0, 1 << 20), max_size=30), st.integers(0, 1 << 20))
def test_of_rewrites_that_wait_one_is_always_done(sizes: list[int], arrived: int) -> None:
    rewrites = [Rewrite(None, [segment(rows)], None) for rows in sizes]  # type: ignore[arg-type]
    chosen = affordable(rewrites, arrived)
    assert bool(chosen) == bool(rewrites)
    assert sum(one.rows for one in chosen[1:]) <= max(4 * arrived, 1 << 17)
    assert all(one in rewrites for one in chosen)


def test_wide_rows_are_merged_in_smaller_segments() -> None:
    assert merged_rows([segment(1000, width=1 << 20)], 10) < 1000
    assert merged_rows([segment(1000)], 10) == MERGED_ROWS
    assert merged_rows([], 10) == MERGED_ROWS


def stores(tmp_path: Any) -> list[Store]:
    return [MemoryStore(), LocalStore(tmp_path / "disk", sync=False)]


@pytest.mark.parametrize("place", [0, 1])
def test_a_large_segment_is_rewritten_piece_by_piece(
    place: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more of a file is in memory than a piece and what waits to be written; every row stays, the dead ones go."""
    monkeypatch.setattr(executor, "PIECE_ROWS", 100)
    monkeypatch.setattr(executor, "PIECE_BYTES", 300 * 16)
    monkeypatch.setattr(few_rows, "MOST", -1)
    monkeypatch.setattr(garbage, "MERGED_ROWS", 100)
    store = stores(tmp_path)[place]
    store.packs = False  # as many rows as these would go into a pack, which is read whole
    pieces: list[int] = []

    def seen(path: str, rows: int) -> Any:
        for table in type(store).read_pieces(store, path, rows):
            pieces.append(table.num_rows)
            yield table

    with Session(pairs(10_000).facts, store, collect_garbage="off") as session:
        session.push("Events", [{"k": k, "t": k} for k in range(1_000)])
        session.advance("Events", {"t": 999})
        session.step()
    monkeypatch.setattr(store, "read_pieces", seen)
    with Session(pairs(10_000).facts, store, collect_garbage="exact") as session:
        monkeypatch.setattr(session._runner.executor, "cache_bytes", 0)
        session.advance("Events", {"t": 10_500})
        report = session.step()
        (name,) = report.live_rows
        assert report.live_rows[name] == 499  # those whose partners may come after 10,500
        assert pieces == [100] * 10
        assert len(session._runner.segments[name]) == 2
        session.finish()
        session.step()
