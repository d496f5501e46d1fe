"""What operators keep, once it is more than a little: deltas of what changed, and partitions that come and go."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tests.shards import shards
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.eval.aggregates import compiled
from tidegate.runtime.ordered import state as operator_state
from tidegate.runtime.ordered.derive.partition_states import PartitionStates, StateExtract
from tidegate.runtime.ordered.match.operator import MatchOperator
from tidegate.runtime.ordered.partition_store import LOOSE
from tidegate.runtime.ordered.state import SMALL, part_of
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.state.segments import FANOUT, tier_of, to_merge
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")


def pattern(within: int) -> tg.Program:
    found = readings.partition_by("k").derive(A=tg.situation(readings.x > 4), B=tg.situation(readings.x == 3))
    return tg.program(M=found.match(found.A.before(found.B), within=within))


def states_of(run: Session) -> PartitionStates:
    executor = run._runner.executor
    assert isinstance(executor, EmbeddedExecutor)
    operator = executor.operators.known["M"].operator
    assert isinstance(operator, MatchOperator)
    return operator.states


def push(run: Session, t: int, rows: Sequence[tuple[object, int, int]]) -> None:
    run.push("R", rows)
    run.advance("R", {"t": t})
    run.step()


def state_files(run: Session) -> dict[str, int]:
    manifest = run._setup.checkpoint.manifest
    assert manifest is not None
    return {file.path: file.bytes for file in manifest.kernel["M"].files}


def test_a_batch_costs_what_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows looked at, files and bytes written do not depend on how many partitions are held."""
    seen: list[int] = []
    extract = PartitionStates.extract

    def counted(self: PartitionStates, partitions: Int64Array) -> StateExtract:
        seen.append(len(partitions))
        return extract(self, partitions)

    monkeypatch.setattr(PartitionStates, "extract", counted)
    costs = []
    for keys in (2_000, 40_000):
        with Session(pattern(10**6).facts) as run:
            push(run, 1, [(k, 1, 9) for k in range(keys)])
            push(run, 2, [(k, 2, 0) for k in range(keys)])
            push(run, 3, [(k, 3, 9) for k in range(0, keys, 2)])
            assert run.live_rows()["M: situations"] == 1.5 * keys
            before, written, files, seen[:] = state_files(run), 0, 0, []
            for t in range(4, 36):
                push(run, t, [(k, t, 9 if t % 2 else 0) for k in range(5)])
                now = state_files(run)
                fresh = now.keys() - before.keys()
                written, files, before = written + sum(now[path] for path in fresh), files + len(fresh), now
                assert len(now) < 12
            costs.append((sum(seen), max(seen), files, written))
    assert costs[0] == costs[1]
    assert costs[0][1] == 5
    assert costs[0][3] < 32 * 5 * 4 * 50 * 4  # 5 partitions with 4 rows of less than 50 bytes, written a few times


def test_partitions_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    """300,000 keys, 3,000 at a time."""
    keys, span = 3_000, 10
    found = 0
    with Session(pattern(5).facts, LocalStore(tmp_path, sync=False)) as run:
        for batch in range(100):
            t = batch * span
            own = np.arange(batch * keys, (batch + 1) * keys)
            for at, x in ((1, 9), (2, 3), (3, 0)):
                run.push("R", {"k": own, "t": np.full(keys, t + at), "x": np.full(keys, x)})
            push(run, t + span, [(-1, t + 5, 9 if batch % 2 else 0)])
            found += run.live_rows()["M: situations"]
            states = states_of(run)
            assert len(states.partitions) <= LOOSE + 2 * (keys + 1) + keys
            assert states._look is None or len(states._look) <= 3 * (LOOSE + 3 * keys)
            assert states.pool.places < 20_000
            assert sum(state_files(run).values()) < 2_000_000
        assert found <= 100 * 2
        assert states.held <= 1
        assert run.table("M").arrow().num_rows == 0


def test_partitions_are_looked_at_when_they_are_due_although_nothing_comes() -> None:
    """Few of many, so that not all of them are looked at anyway."""
    with Session(pattern(50).facts) as run:
        push(run, 3, [(k, t, x) for k in range(20) for t, x in ((1, 9), (2, 0))])
        push(run, 30, [(k, t, x) for k in range(20, 40) for t, x in ((28, 9), (29, 0))])
        for t, held in ((40, 40), (60, 20), (70, 20), (90, 0)):
            push(run, t, [(99, t, 0)])
            assert run.live_rows()["M: situations"] == held


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_have_left_at_the_front_are_gone_however_deltas_are_merged(seed: int) -> None:
    """Partitions that are empty in between count anew; a slice has all rows of some, in the place of those before."""
    rng = random.Random(f"queue {seed}")
    keys: list[float | None] = [0.5, float("nan"), None]
    is_mark = pl.col("~gone").is_not_null()
    table = StateTable(
        pl.Schema({"key 0": pl.Float64(), "n": pl.Int64(), "~gone": pl.Int64()}),
        "queue",
        1,
        number="n",
        gone="~gone",
        empty=is_mark,
    )
    held: list[list[int]] = [[] for _ in keys]
    deltas = []
    for _ in range(rng.randrange(2, 14)):
        written: list[tuple[float | None, int | None, int | None]] = []
        for key, rows in zip(keys, held, strict=True):
            if rng.random() < 0.3:
                continue
            last, gone = rows[-1] if rows else rng.randrange(3), rng.randint(0, len(rows))
            if gone:
                written.append((key, None, rows[gone - 1]))
                del rows[:gone]
            new = [last + 1 + number for number in range(rng.randrange(4))]
            rows += new
            if rows and rng.random() < 0.2:  # a slice
                written = [row for row in written if row[0] is not key]
                written += [(key, None, rows[-1]), *((key, number, None) for number in rows)]
            else:
                written += [(key, number, None) for number in new]
        rng.shuffle(written)
        written.sort(key=lambda row: row[1] or 0)
        deltas.append(pl.DataFrame(written, schema=dict(table.columns), orient="row"))
    while len(deltas) > 1 and rng.random() < 0.8:
        first = rng.randrange(len(deltas) - 1)
        some = rng.randint(2, len(deltas) - first)
        deltas[first : first + some] = [table.merged(deltas[first : first + some])]
    whole = table.whole(table.merged(deltas))
    assert whole.schema == table.columns
    for key, rows in zip(keys, held, strict=True):
        found = [n for k, n, _ in whole.rows() if (k is None) == (key is None) and str(k) == str(key)]
        assert found == rows
    assert whole.height == sum(map(len, held))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("lasting", "adds"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_later_part_replaces_the_rows_of_its_partitions(seed: int, lasting: bool, adds: bool) -> None:
    """Save for those that are lasting, and not by rows that are added; the others stand as they were written."""
    rng = random.Random(f"partition {seed} {lasting} {adds}")
    table = StateTable(
        pl.Schema({"key 0": pl.Float64(), "key 1": pl.String(), "l": pl.Boolean(), "a": pl.Boolean(), "n": pl.Int64()}),
        "partition",
        2,
        lasting=pl.col("l") if lasting else None,
        adds=pl.col("a") if adds else None,
    )
    keys = [(x, text) for x in (0.5, float("nan"), None) for text in ("a", None)]
    parts = [
        [(*rng.choice(keys), rng.random() < 0.3, rng.random() < 0.3, 10 * part + n) for n in range(rng.randrange(8))]
        for part in range(rng.randrange(2, 6))
    ]
    left = []
    for number, rows in enumerate(parts):
        later = [
            row for part in parts[number + 1 :] for row in part if not (lasting and row[2]) and not (adds and row[3])
        ]
        replaced = {str(row[:2]) for row in later}
        left += [row[4] for row in rows if (lasting and row[2]) or str(row[:2]) not in replaced]
    merged = table.merged([pl.DataFrame(rows, schema=dict(table.columns), orient="row") for rows in parts])
    assert merged.schema == table.columns
    assert merged.get_column("n").to_list() == left


@pytest.mark.parametrize("seed", shards(3))
@pytest.mark.parametrize("key", ["bigint", "string", "double"])
def test_a_run_that_starts_again_goes_on_the_same(
    key: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With deltas of what changed from the first row on, and some values of aggregates; against one run without any."""
    rng = random.Random(f"{seed} {key}")
    keys: dict[str, list[object]] = {
        "bigint": [1, 2, 3, None],
        "string": ["a", "b", "", None],
        "double": [1.5, float("nan"), -0.0, None],
    }
    stream = tg.stream("R", f"k {key}, t bigint, x bigint", progress="t")
    found = stream.partition_by("k").derive(
        A=tg.situation(stream.x > 4, n=tg.count(), total=tg.sum(stream.x), kinds=tg.count_distinct(stream.t % 3)),
        B=tg.situation(stream.x == 3, times=tg.count_distinct(stream.t)),
    )
    facts = tg.program(M=found.match(found.A.before(found.B), within=12), Alone=found.A).facts
    batches = [
        [(k, t, rng.choice((0, 3, 9))) for t in range(4 * b, 4 * b + 4) for k in keys[key] if rng.random() < 0.6]
        for b in range(25)
    ]
    again = [rng.random() < 0.3 for _ in batches]
    results = []
    for small in (10**6, 0):
        monkeypatch.setattr(operator_state, "SMALL", small)
        monkeypatch.setattr("tidegate.runtime.ordered.partition_store.LOOSE", 0 if small == 0 else LOOSE)
        store: Store = LocalStore(tmp_path / str(small), sync=False)
        run, most, live = Session(facts, store), 0, []
        for number, rows in enumerate(batches):
            push(run, 4 * number + 3, rows)
            live.append(run.live_rows())
            manifest = run._setup.checkpoint.manifest
            assert manifest is not None
            if "M" in manifest.kernel:
                most = max(most, len(part_of("M", manifest.kernel["M"]) or ()))
            if small == 0 and again[number]:
                run.close()
                run = Session(facts, store)
        results.append((live, [sorted(map(str, run.results(name))) for name in ("M", "Alone")]))
        run.close()
        assert most > 2 if small == 0 else most == 1
    assert results[0] == results[1]
    assert all(results[0][1])


@pytest.mark.parametrize("many", [SMALL, SMALL + 1])
def test_integers_of_many_rows_are_written_in_as_few_bytes_as_they_need(many: int, tmp_path: Path) -> None:
    """And are read as what they were."""
    r = readings
    program = tg.program(
        M=r.over(by="k", order="t", before=tg.lag(r.x), twice=tg.lag(r.x * 2), shifted=tg.lag(r.x - 128))
    )
    borders = [-(1 << 15), (1 << 14) - 1, None, 5]

    def told(run: Session, t: int) -> list[tuple[object, ...]]:
        push(run, t, [(key, t, borders[key % 4]) for key in range(many)])  # type: ignore[misc]  # NULL, too
        return sorted(
            (row["k"], row["before"], row["twice"], row["shifted"]) for row in run.results("M") if row["t"] == t
        )

    with program.session(checkpoint=tmp_path) as run:
        told(run, 100)
        (path,) = state_files(run)
        types = LocalStore(tmp_path).read_table(path).schema.types
        narrow = [pa.int16(), pa.int8(), pa.int16(), pa.int32(), pa.int32(), pa.bool_()]
        assert types == (narrow if many > SMALL else [*[pa.int64()] * 5, pa.bool_()])
    with program.session(checkpoint=tmp_path) as run:
        known = [None if x is None else (x, 2 * x, x - 128) for x in borders]
        assert told(run, 101) == sorted((key, *(known[key % 4] or (None,) * 3)) for key in range(many))


def test_layers_are_few_and_rows_are_seldom_written_again() -> None:
    rng = random.Random(1)
    for spread in (1, 20, 3_000):
        deltas, written, new = [10**6], 0, 0
        for _ in range(3_000):
            rows = rng.randint(1, spread)
            count = to_merge([*deltas, rows])
            deltas = [*[*deltas, rows][:-count], sum([*deltas, rows][-count:])]
            written, new = written + deltas[-1], new + rows
            if len(deltas) == 1:
                written -= 10**6
            assert len(deltas) <= 1 + (FANOUT - 1) * (tier_of(10**6) + 1)
            tiers = list(map(tier_of, deltas))
            assert tiers == sorted(tiers, reverse=True)
        assert written < 8 * new


@pytest.mark.parametrize("many", [0, 10**6])
@pytest.mark.parametrize("keys", [["k", "n"], ["s", "b", "n"], ["x", "n"], ["n"]])
def test_of_rows_with_equal_keys_the_last_stays(keys: list[str], many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether kernels tell them apart or Polars does; those that stay are in their order."""
    monkeypatch.setattr(compiled, "MANY_ROWS", many)
    monkeypatch.setattr(compiled, "MANY_ROWS_LOADED", many)
    rng = random.Random(str(keys))
    drawn = [
        (rng.choice((1, 2, None)), rng.choice(("a", "", None)), rng.random() < 0.5, rng.choice((0.5, 1.5)), n, place)
        for place, n in enumerate(rng.choices(range(9), k=200))
    ]
    rows = pl.DataFrame(drawn, schema=["k", "s", "b", "x", "n", "place"], orient="row")
    last = {tuple(row[name] for name in keys): row["place"] for row in rows.iter_rows(named=True)}
    assert compiled.last_of_each(rows, keys)["place"].to_list() == sorted(last.values())
    assert compiled.last_of_each(rows.clear(), keys).equals(rows.clear())
