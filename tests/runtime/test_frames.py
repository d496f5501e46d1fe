"""A frame is read once per checkpoint: the same one goes on, another is refused instead of overlooked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.algebra.time import INF
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.ingest.bounded_frames import content_of
from tidegate.runtime.state.errors import REPLAY, StateError
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.intent import pending_intent
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

events = tg.stream("E", "k bigint, t bigint", progress="t")
program = tg.program(All=events)
ROWS = [(1, 5), (2, 6), (None, 7)]
FRAME = pl.DataFrame({"k": [1, 2, None], "t": [5, 6, 7]})


def read(place: Any, rows: Any) -> list[tuple[Any, ...]]:
    with program.session(sources={} if rows is None else {"E": rows}, checkpoint=place) as session:
        session.step()
        return [tuple(row.values()) for row in session.results("All")]


@pytest.mark.parametrize("rows", [ROWS, FRAME, FRAME.to_arrow(), FRAME.to_dict(as_series=False), [*ROWS, (1, "bad")]])
def test_the_same_frame_goes_on(rows: Any, tmp_path: Path) -> None:
    assert read(tmp_path, rows) == ROWS
    assert read(tmp_path, rows) == ROWS
    assert read(tmp_path, None) == ROWS


@pytest.mark.parametrize(
    ("other", "then", "now"),
    [
        (FRAME.vstack(FRAME.head(1)), "3 rows of k int64, t int64", "4 rows of k int64, t int64"),
        (
            FRAME.with_columns(k=pl.lit(1, pl.Int64)),
            "3 rows of k int64, t int64, with other values",
            "3 rows of k int64",
        ),
        (FRAME.reverse(), "with other values", "3 rows"),
        (FRAME.fill_null(0), "with other values", "3 rows"),
        (FRAME.cast(pl.Int32), "3 rows of k int64, t int64", "3 rows of k int32, t int32"),
        (FRAME.head(1), "3 rows", "1 row of"),
    ],
)
def test_another_frame_is_refused(other: pl.DataFrame, then: str, now: str, tmp_path: Path) -> None:
    read(tmp_path, FRAME)
    with pytest.raises(StateError, match="TG506 E: the checkpoint was begun with another frame") as refused:
        read(tmp_path, other)
    assert refused.value.code == REPLAY
    first_line, second_line = refused.value.problems[0].because
    assert then in first_line
    assert now in second_line
    assert "tg.parquet" in refused.value.hint
    assert read(tmp_path, FRAME) == ROWS


def test_a_frame_for_a_checkpoint_that_was_begun_without_one_is_refused(tmp_path: Path) -> None:
    assert read(tmp_path, None) == []
    with pytest.raises(StateError, match="then: none"):
        read(tmp_path, FRAME)


def test_before_the_first_commit_another_frame_may_come(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.failpoints.arm("commit-before-manifest", crash)
    with (
        pytest.raises(SimulatedCrash),
        Session(program.facts, store, {"E": tg.source(FRAME)}) as session,
    ):
        session.step()
    assert read(tmp_path, FRAME.head(1)) == ROWS[:1]


def begun(store: Store, frame: pl.DataFrame, place: str) -> tuple[Session, str]:
    """A session whose first batch failed, and what the intent says of its rows."""
    session = Session(program.facts, store, {"E": tg.source(frame)})
    store.failpoints.arm(place, crash)
    with pytest.raises(SimulatedCrash):
        session.step()
    found = pending_intent(store, 1)
    assert found is not None
    return session, found.offer.pushed


def test_a_batch_knows_its_frame_by_what_was_noted(tmp_path: Path) -> None:
    """The rows of a frame are not looked at again, and none at all where the run is in memory."""
    found = []
    for frame in (FRAME, FRAME, FRAME.head(1)):
        session, pushed = begun(LocalStore(tmp_path), frame, "commit-before-manifest")
        session.close()
        found.append(pushed)
    assert found[0] == found[1] != found[2]
    assert begun(MemoryStore(), FRAME, "commit-before-manifest")[1] == ""


@pytest.mark.parametrize("lasting", [False, True])
def test_a_frame_is_not_discarded_with_what_was_pushed(lasting: bool, tmp_path: Path) -> None:
    store = LocalStore(tmp_path) if lasting else MemoryStore()
    with begun(store, FRAME, "batch-after-intent")[0] as session:
        session.discard()
        session.step()
        assert [tuple(row.values()) for row in session.results("All")] == ROWS
        assert session.progress == {"All": {"t": INF}}
        assert session.step().counts == {}


@pytest.mark.parametrize(
    "same",
    [
        lambda t: pa.concat_tables([t.slice(0, 1), t.slice(1)]),
        lambda t: pa.concat_tables([t, t]).slice(3),
        lambda t: t.set_column(0, "k", pa.array([1, 2, 99], mask=np.array([False, False, True]))),
    ],
)
def test_chunks_slices_and_what_lies_behind_a_null_do_not_count(same: Callable[[pa.Table], pa.Table]) -> None:
    table = pa.table({"k": [1, 2, None], "t": [5, 6, 7], "s": ["a", None, "bc"]})
    assert content_of(same(table)) == content_of(table)


def test_categories_count_by_their_values() -> None:
    def made(*values: str) -> pa.Table:
        return pa.table({"s": pa.array(values).dictionary_encode()})

    assert content_of(made("a", "b")) == content_of(made("a", "b"))
    assert content_of(made("a", "b")) != content_of(made("c", "d"))
