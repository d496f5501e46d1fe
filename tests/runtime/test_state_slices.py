"""A large state of an operator is written again slice by slice: how many rows a batch writes, and what is read back."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.ordered import partition_store
from tidegate.runtime.ordered import state as slicing
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.state import Kept, keep_part, read_state, whole_state
from tidegate.runtime.ordered.table import load_operator, start_operator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.memory import MemoryStore

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
LAST = readings.over(by="k", order="t", before=tg.lag(readings.x))


def stepped(query: tg.Relation) -> OrderedStep:
    program = tg.program(Found=query)
    ordered = program.explain().lowered().queries[0].ordered
    assert ordered is not None
    return ordered


class Run:
    """The operator of a query with its state, and how many rows each batch has written and read."""

    def __init__(self, query: tg.Relation = LAST, *, slices: bool = True) -> None:
        self.ordered, self.store, self.slices = stepped(query), MemoryStore(), slices
        self.operator: Operator = start_operator(self.ordered)
        self.kept: Kept | None = None
        self.reached: Extended = -np.inf
        self.written: list[int] = []
        self._paths = count()

    def batch(self, keys: Int64Array | pl.Series) -> None:
        """A row of each of these keys."""
        begin = 0 if self.reached == -np.inf else int(self.reached) + 1
        rows = pl.DataFrame({"k": keys, "t": begin + np.arange(len(keys)), "x": np.arange(len(keys))})
        until = begin + len(keys) - 1
        self.written.append(0)
        events = self.operator.events({0: rows}, self.reached, until)
        after, _ = self.operator.step(events, self.reached, until)
        before, renewal = (None, None) if self.kept is None else (self.kept.part, self.kept.renewal)
        self.kept = keep_part(after, before, self.write, self.read, renewal, slices=self.slices)
        self.operator, self.reached = after, until

    def write(self, table: pa.Table) -> FileRef:
        self.written[-1] += table.num_rows
        return self.store.write_table(f"kernel/{next(self._paths)}", table)

    def read(self, path: str) -> pa.Table:
        table = self.store.read_table(path)
        self.written[-1] += table.num_rows
        return table

    @property
    def stored(self) -> int:
        assert self.kept is not None
        return sum(delta.rows for delta in self.kept.part)

    def read_back(self) -> Operator:
        assert self.kept is not None
        state = whole_state(self.kept.rows, self.kept.part)
        tables = read_state(self.store, "Found", state, self.operator.described())
        return load_operator(self.ordered, tables, self.reached)

    def check(self) -> None:
        """What is read back is what there is."""
        held, found = (sorted(pl.DataFrame(one.tables()["rows"]).rows()) for one in (self.operator, self.read_back()))
        assert held == found


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes by 128: the state of 3,750 partitions is as one of 480,000."""
    monkeypatch.setattr(slicing, "SMALL", 16)
    for name in ("SLICED", "SLICE", "MERGED"):
        monkeypatch.setattr(slicing, name, getattr(slicing, name) // 128)


KEYS, ARRIVING, BATCHES = 3_750, 75, 200


def test_no_batch_writes_a_large_state_whole() -> None:
    rng, run = np.random.default_rng(1), Run()
    renewed = 0
    for number in range(BATCHES):
        run.batch(rng.integers(0, KEYS, ARRIVING))
        live = sum(run.operator.counts().values())
        renewed += run.kept is not None and run.kept.renewal is not None
        assert run.stored <= 4 * live + slicing.SMALL
        if live > slicing.SLICED + ARRIVING:
            # a slice with the changes, and a merge that is read and written
            assert run.written[-1] <= 2 * slicing.MERGED + slicing.SLICE + 3 * ARRIVING
            assert run.kept is not None
            assert len(run.kept.part) <= 4 * live // (slicing.MERGED // 4)
        if number % 40 == 0:
            run.check()
    assert renewed > 10, "so that it shows"
    assert np.mean(run.written) <= 12 * ARRIVING
    run.check()
    whole = Run(slices=False)
    rng = np.random.default_rng(1)
    for _ in range(BATCHES):
        whole.batch(rng.integers(0, KEYS, ARRIVING))
    assert max(whole.written) > KEYS // 2, "what it was before"


def test_deltas_that_go_are_not_merged_with_those_that_stay() -> None:
    """The last of those that go is smaller than the first slice: else it would become part of that."""
    run, few = Run(), 20
    run.batch(np.arange(KEYS))
    run.batch(np.arange(KEYS - few))
    old = 0
    for number in range(60):
        run.batch((np.arange(few) + number * few) % KEYS)
        assert run.kept is not None
        if (renewal := run.kept.renewal) is not None:
            assert renewal.left.first > 0
            if not old:
                old = renewal.old
                sizes = [delta.rows for delta in run.kept.part]
                assert sizes[old - 1] < slicing.SLICE <= sizes[old] < slicing.MERGED
        elif old:
            break
        run.check()
    assert old
    assert run.kept is not None
    assert run.kept.renewal is None, "it has come to its end"
    run.check()


@pytest.mark.parametrize(
    ("bounds", "renewals"),
    [(tg.hopping(60 * ARRIVING, every=20 * ARRIVING), 10), (tg.session(2 * KEYS), 0), (tg.session(10**6), 0)],
)
def test_rows_of_open_windows_are_written_again_in_slices(bounds: tg.WindowBounds, renewals: int) -> None:
    """Where many have left. Those of a session that goes on are written a few times, however long it is."""
    rng, run = np.random.default_rng(4), Run(readings.windows(bounds, by="k").agg(middle=tg.median(readings.x)))
    renewed, live = 0, [0]
    for number in range(BATCHES):
        run.batch(np.minimum(rng.integers(0, KEYS, ARRIVING), rng.integers(0, KEYS, ARRIVING)))
        live.append(sum(run.operator.counts().values()))
        renewed += run.kept is not None and run.kept.renewal is not None
        assert run.stored <= 4 * max(live[-2:]) + slicing.SMALL
        if number % 20 == 0:
            run.check()
        if number % 50 == 49:
            run.operator, run.kept = run.read_back(), Kept(run.kept.rows, run.kept.part) if run.kept else None
    assert max(live) > 2 * slicing.SLICED
    assert renewed >= renewals
    assert np.mean(run.written) <= 8 * ARRIVING
    run.check()


def test_panes_of_open_windows_are_written_again_in_slices() -> None:
    """A change replaces panes one by one, and says nothing of those that have gone: a slice has those that are left."""
    query = readings.windows(tg.hopping(60 * ARRIVING, every=ARRIVING), by="k").agg(
        n=tg.count(), most=tg.max(readings.x)
    )
    rng, run, renewed = np.random.default_rng(6), Run(query), 0
    most = live = 0
    for number in range(BATCHES):
        run.batch(np.minimum(rng.integers(0, KEYS, ARRIVING), rng.integers(0, KEYS, ARRIVING)))
        live = sum(run.operator.counts().values())
        renewed += run.kept is not None and run.kept.renewal is not None
        if live > slicing.SLICED + ARRIVING:
            most = max(most, run.written[-1])
        if number % 10 == 0:
            _same_panes(run)
    assert live > 2 * slicing.SLICED
    assert renewed > 10
    assert 0 < most < live // 2
    _same_panes(run)


def _same_panes(run: Run) -> None:
    """What is read back is what there is."""
    held, found = (sorted(pl.DataFrame(one.tables()["panes"]).rows()) for one in (run.operator, run.read_back()))
    assert held == found


def test_slices_are_by_numbers_that_other_keys_are_given() -> None:
    """Keys come and go, and some come again, with another number; what goes and comes is written as changes."""
    events = tg.stream("R", "k string, t bigint, x bigint", progress="t")
    run = Run(events.over(by="k", order="t", range=20 * ARRIVING, n=tg.count()))
    rng, renewed = np.random.default_rng(3), 0
    for number in range(BATCHES):
        new = number * ARRIVING // 3 + np.arange(ARRIVING // 3)
        again = rng.integers(max(0, int(new[0]) - 40 * ARRIVING // 3), new[-1] + 1, 2 * ARRIVING // 3)
        run.batch(pl.Series(np.concatenate([new, again])).cast(pl.String))
        assert run.kept is not None
        renewed += run.kept.renewal is not None
        if number % 4 == 0:
            run.check()
    span = run.operator.span()
    assert span is not None
    assert renewed > 10, "so that it shows"
    assert span.numbering == 0
    assert span.end < len(new) * BATCHES // 2
    run.check()


def test_a_renewal_begins_anew_after_a_restart() -> None:
    """Its slices so far stay where they are; partitions have other numbers."""
    rng, run = np.random.default_rng(2), Run()
    seen = set[int]()
    broken = 0
    for number in range(BATCHES):
        keys = rng.integers(0, KEYS, ARRIVING)
        seen |= set(keys.tolist())
        run.batch(keys)
        assert run.kept is not None
        if run.kept.renewal is not None and number % 4 == 0:
            broken += 1
            run.check()
            run.operator, run.kept = run.read_back(), Kept(run.kept.rows, run.kept.part)
    assert broken > 3
    assert sum(run.operator.counts().values()) == len(seen)
    assert run.stored <= 4 * len(seen) + slicing.SMALL
    run.check()


def test_a_renewal_begins_anew_where_partitions_get_other_numbers() -> None:
    """Without state for most of them, the others are counted anew."""
    run = Run()
    run.batch(np.arange(KEYS))
    for number in range(80):
        run.batch((np.arange(ARRIVING) + number * ARRIVING) % KEYS)
        assert run.kept is not None
        if run.kept.renewal is not None:
            break
    renewal = run.kept.renewal if run.kept is not None else None
    assert renewal is not None
    assert 0 < renewal.left.first < renewal.left.end == KEYS
    assert run.kept is not None
    other = replace(renewal, left=replace(renewal.left, numbering=renewal.left.numbering + 1))
    run.kept = replace(run.kept, renewal=other)
    run.batch(np.arange(ARRIVING))
    assert run.kept.renewal is not None
    assert run.kept.renewal.left.numbering == renewal.left.numbering
    assert run.kept.renewal.left.first == renewal.left.first, "as many as the first time"
    run.check()


def test_partitions_that_are_counted_anew_have_another_numbering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_store, "LOOSE", 0)
    one: Operator = start_operator(stepped(readings.over(by="k", order="t", range=5, n=tg.count())))
    numberings = []
    for begin in range(0, 500, 100):
        rows = pl.DataFrame({"k": range(begin, begin + 40), "t": [begin] * 40, "x": [1] * 40})
        one, _ = one.step(one.events({0: rows}, begin - 1, begin + 50), begin - 1, begin + 50)
        span = one.span()
        assert span is not None
        numberings.append(span.numbering)
    assert numberings[0] == 0
    assert numberings[-1] > numberings[0]
