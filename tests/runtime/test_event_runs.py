"""Events joined into event runs as they are read: any cut into slices gives what all events give together."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tests.shards import shards
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.semantics import as_bag, evaluate_program
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.kernels import event_runs
from tidegate.runtime.ordered import event_runs as ordered_event_runs
from tidegate.runtime.ordered.event_runs import encode_events
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.table import start_operator
from tidegate.runtime.plan.slices import InterleavedRuns, Slice
from tidegate.runtime.plan.steps import Buffer, Plan
from tidegate.runtime.rows import as_frame

readings = tg.stream("R", "key bigint, t bigint, x bigint", progress="t")
SCHEMA = {"key": pl.Int64, "t": pl.Int64, "x": pl.Int64}
Row = tuple[int | None, int, int]


def plan(*, keyed: bool = True, pattern: bool = True) -> Plan:
    """A while the last reading was 1 or 3, B while it was 2 or 3; A before B, or A alone."""
    parts = readings.partition_by("key") if keyed else readings.partition_by()
    derived = parts.derive(A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x.is_in(2, 3)))
    found = derived.match(derived.A.before(derived.B) | derived.A.overlaps(derived.B), within=12)
    return tg.program(Found=found if pattern else derived.A).explain().lowered()


def random_readings(rng: random.Random, keys: Sequence[int | None], length: int) -> list[Row]:
    """In order of time; every key has gaps, and mostly the same value as before."""
    rows: list[Row] = []
    for key in keys:
        value = 0
        for tick in range(length):
            if rng.random() < 0.3:
                value = rng.randrange(4)
            if rng.random() < 0.7:
                rows.append((key, tick, value))
    rng.shuffle(rows)
    return sorted(rows, key=lambda row: row[1])


def stored(buffer: Buffer, slices: Sequence[Sequence[Row]], delay: int | None) -> pl.DataFrame:
    """What is stored of slices, each joined by itself; with no delay known, event by event."""
    parts = []
    for rows in slices:
        frame = pl.DataFrame(list(rows), schema=SCHEMA, orient="row")
        times = [t for _, t, _ in rows]
        slice_ = None if delay is None or not rows else Slice.of(min(times), max(times), delay)
        parts.append(encode_events(buffer, frame, slice_))
    return pl.concat(parts)


def increments(plan_: Plan, batches: Sequence[pl.DataFrame], progress: Sequence[Extended]) -> list[list[str]]:
    """What each batch completes, with what is stored of all batches so far."""
    query = plan_.queries[0]
    assert query.ordered is not None
    operator: Operator = start_operator(query.ordered)
    found, held, old = [], batches[0].clear(), -INF
    for rows, new in zip(batches, progress, strict=True):
        held = pl.concat([held, rows])
        events = operator.events({0: held}, old, new)
        operator, completed = operator.step(events, old, new)
        found.append(sorted(map(str, as_frame(completed).rows())))
        old = new
    return found


def in_some_order(rng: random.Random, rows: Sequence[Row], delay: int) -> list[Row]:
    """Rows as they may arrive where none is more than `delay` behind the greatest before it, some by just as much."""
    return sorted(rows, key=lambda row: (row[1] + rng.randint(0, delay), rng.random()))


def cut(rng: random.Random, rows: Sequence[Row], parts: int) -> list[list[Row]]:
    places = sorted(rng.choices(range(len(rows) + 1), k=parts - 1))
    return [list(rows[low:high]) for low, high in itertools.pairwise((0, *places, len(rows)))]


@pytest.mark.parametrize("seed", shards(120, 30))
def test_any_cut_into_slices_gives_what_single_events_give(seed: int) -> None:
    rng = random.Random(seed)
    keyed, delay = rng.random() < 0.7, rng.choice((0, 0, 1, 3, 8))
    rows = random_readings(rng, rng.choice(([1], [1, 2, 3], [None, 7])) if keyed else [1], 40)
    planned = plan(keyed=keyed, pattern=rng.random() < 0.7)
    (buffer,) = planned.buffers
    arriving = in_some_order(rng, rows, delay)
    batches = cut(rng, arriving, rng.choice((1, 2, 3)))
    progress: list[Extended] = []
    for batch in batches[:-1]:
        progress.append(max([row[1] - delay - 1 for row in batch] + progress, default=-INF))
    progress.append(INF)
    slices = [cut(rng, batch, rng.choice((1, 2, 4))) for batch in batches]
    for some in slices:
        rng.shuffle(some)  # of several tasks, any may be done first
    joined = [stored(buffer, some, delay) for some in slices]
    single = [stored(buffer, some, None) for some in slices]
    assert sum(map(len, single)) == len(rows)
    assert increments(planned, joined, progress) == increments(planned, single, progress)


@pytest.mark.parametrize("seed", shards(60, 20))
def test_slices_that_interleave_are_found_or_do_no_harm(seed: int) -> None:
    rng = random.Random(seed)
    rows = random_readings(rng, [1, 2], 30)
    planned = plan(pattern=False)
    (buffer,) = planned.buffers
    slices: list[list[Row]] = [[], []]
    for row in rows:
        slices[rng.random() < 0.1].append(row)
    single = increments(planned, [stored(buffer, slices, None)], [INF])
    try:
        joined = increments(planned, [stored(buffer, slices, 0)], [INF])
    except InterleavedRuns:
        return
    assert joined == single


def test_an_event_inside_a_run_of_another_slice_is_interleaved() -> None:
    planned = plan(pattern=False)
    slices: list[list[Row]] = [[(1, 0, 1), (1, 4, 1), (1, 9, 0)], [(1, 2, 0)]]
    with pytest.raises(InterleavedRuns):
        increments(planned, [stored(planned.buffers[0], slices, 0)], [INF])
    # Of another key it is none of its business.
    apart: list[list[Row]] = [slices[0], [(2, 2, 0)]]
    assert increments(planned, [stored(planned.buffers[0], apart, 0)], [INF]) == [["(1, 0, 9)"]]


def test_equal_times_are_told_whatever_the_slices(start: Start) -> None:
    (buffer,) = plan(pattern=False).buffers
    tied: list[Row] = [(1, 0, 1), (1, 1, 1), (1, 1, 1), (1, 9, 0)]
    for slices in ([tied], [tied[:2], tied[2:]]):
        with pytest.raises((EvaluationError, InterleavedRuns)):
            increments(plan(pattern=False), [stored(buffer, slices, 0)], [INF])
    derived = readings.partition_by("key").derive(A=tg.situation(readings.x > 0))
    with start(tg.program(A=derived.A), sources={"R": tg.source(None, delay=0, ties="fail")}) as run:
        run.add("R", tied)
        with pytest.raises(EvaluationError, match="TG304 two events of one partition at 1"):
            run.step()


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_what_can_not_be_joined_yet_waits_event_by_event(start: Start) -> None:
    derived = readings.partition_by("key").derive(A=tg.situation(readings.x > 0))
    with start(tg.program(A=derived.A), sources={"R": tg.source(None, delay=2)}) as run:
        run.add("R", [(1, t, int(t >= 3)) for t in range(10)])
        run.step()
        # Progress is 7 - 1. What came later, 7, 8, 9, may have others between; one situation is open.
        assert run.live_rows == {"R#0": 3, "A: situations": 1}
        run.restart()
        run.add("R", [(1, 10, 0), (1, 14, 0)])
        run.step()
        run.expect(A=[(1, 3, 10)])


@pytest.mark.parametrize("seed", shards(12, 4))
def test_queries_share_event_runs_by_the_conditions_of_all(seed: int) -> None:
    rng = random.Random(seed)
    derived = readings.partition_by("key").derive(
        **{
            name: tg.situation(readings.x >= least)
            for name, least in rng.sample([*zip("ABC", (1, 2, 3), strict=True)], 3)
        }
    )
    again = derived.A.as_("D")
    queries = {
        "A": derived.A,
        "C": derived.C,
        "Found": derived.match(derived.C.during(derived.B), derived.B.starts(derived.A), within=20),
        "Twice": tg.match(derived.A.before(again), again.contains(derived.C), within=20),
    }
    program = tg.program(**queries)
    assert len(program.explain().lowered().buffers) == 1
    rows = random_readings(rng, [1, 2], 60)
    together = program.run({"R": tg.source(rows, delay=0)})
    meant = evaluate_program(program.facts.program, {"R": list(rows)})
    for name, query in queries.items():
        alone = tg.program(**{name: query}).run({"R": rows})
        for found in (together, alone):
            assert as_bag([tuple(row.values()) for row in found.rows(name)]) == as_bag(meant[name])


@pytest.mark.parametrize("keyed", [True, False])
def test_slices_that_interleave_are_read_again(keyed: bool, tmp_path: Path) -> None:
    """Even and odd instants in files of their own, two a batch and each of them a thread's, against one file in
    order.
    """
    keys: list[int | None] = [1, 2, None] if keyed else [1]
    rows = random_readings(random.Random(3), keys, 80)
    parts = readings.partition_by("key") if keyed else readings.partition_by()
    derived = parts.derive(A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x.is_in(2, 3)))
    found = derived.match(derived.A.before(derived.B) | derived.A.overlaps(derived.B), within=12)
    program = tg.program(A=derived.A, Found=found)
    (tmp_path / "apart").mkdir()
    for place, low in enumerate((0, 40)):
        for odd in (0, 1):
            some = [row for row in rows if low <= row[1] < low + 40 and row[1] % 2 == odd]
            malformed: list[Any] = [(1, None, 0)] if (place, odd) == (0, 1) else []
            frame = pl.DataFrame([*malformed, *some], schema=SCHEMA, orient="row")
            frame.write_parquet(tmp_path / "apart" / f"{place}-{odd}.parquet")
    pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(tmp_path / "sorted.parquet")
    meant = program.run({"R": tg.parquet(tmp_path / "sorted.parquet", delay=0, bounded=True)})
    source = tg.parquet(tmp_path / "apart", delay=0, bounded=True, per_batch=2, policy="quarantine")
    with program.session(sources={"R": source}, threads=2) as session:
        reports = session.process()
        session.finish()
        # Of the next batch nothing is joined before all of it is seen.
        assert [report.interleaved for report in reports] == [True, False]
        for name in ("A", "Found"):
            assert sorted(map(str, session.results(name))) == sorted(map(str, meant.rows(name)))
            assert sum(report.results.get(name, 0) for report in reports) == len(meant.rows(name)) > 0
        # What the first reading counted and set aside counts no more.
        assert session.counts["R"].rows_in == len(rows) + 1
        assert len(session.quarantine_rows()) == 1


@pytest.mark.parametrize("keys", ["bigint", "string"])
def test_files_of_many_row_groups_are_events_like_any_others(
    tmp_path: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns in pieces that end anywhere, with rows to reject, against the same rows event by event."""
    monkeypatch.setattr(event_runs, "BLOCK", 1024)
    joined: list[event_runs.EventRuns | None] = []

    def noted(*given: Any) -> event_runs.EventRuns | None:
        joined.append(event_runs.encode(*given))
        return joined[-1]

    monkeypatch.setattr(ordered_event_runs, "encode", noted)
    rng = np.random.default_rng(5)
    count = 30_000
    key, x = np.arange(count) % 40, np.repeat(rng.integers(0, 4, count // 40), 40)
    x[rng.random(count) < 0.2] = 0
    table = pa.table(
        {
            "key": pa.array(key, mask=key == 7).cast(pa.int64() if keys == "bigint" else pa.string()),
            "t": pa.array(np.arange(count) // 40, mask=rng.random(count) < 0.001),
            "x": pa.array(x, mask=x == 3),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=1_237)
    stream = tg.stream("R", f"key {keys}, t bigint, x bigint", progress="t")
    derived = stream.partition_by("key").derive(A=tg.situation(stream.x == 1), B=tg.situation(stream.x.is_in(0, 2)))
    program = tg.program(Found=derived.match(derived.A.meets(derived.B), within=9))
    found = []
    for source in (tg.parquet(tmp_path / "rows.parquet", delay=0, bounded=True), table):
        with program.session(sources={"R": source}) as session:
            counts = [report.counts for report in session.process()]
            session.finish()
            found.append((sorted(map(repr, session.results("Found"))), counts, len(session.quarantine_rows())))
    assert len(found[0][0]) > 1_000
    assert found[0][2] > 20
    assert len(joined) == 1
    assert all(one is not None and 1_000 < len(one.row) < 25_000 for one in joined)
    assert found[0] == found[1]
