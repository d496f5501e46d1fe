"""The state of an operator in parts: however partitions are shared out, all parts together go on as the whole does."""

from __future__ import annotations

import random
from itertools import chain, count

import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.time import INF
from tidegate.runtime.ordered.derive.tables import SITUATIONS
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.state import (
    Part,
    Share,
    keep_part,
    part_of,
    parts_of,
    read_state,
    shard_of,
    shared_state,
    whole_state,
)
from tidegate.runtime.ordered.state_tables import checked
from tidegate.runtime.ordered.table import load_operator, start_operator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import as_frame
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.manifest import KeptRows, OperatorFiles
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.memory import MemoryStore

readings = tg.stream("R", "name string, t bigint, x bigint", progress="t")
SCHEMA = {"name": pl.String, "t": pl.Int64, "x": pl.Int64}
#: So many batches, each with the readings of so long.
BATCHES, SPAN = 3, 12
_names = count()


def operator() -> OrderedStep:
    """A pattern with aggregates: open runs, situations that are over, and values of both are kept."""
    found = readings.partition_by("name").derive(
        A=tg.situation(readings.x > 0, n=tg.count(), kinds=tg.count_distinct(readings.x)),
        B=tg.situation(readings.x > 1, top=tg.max(readings.x), kinds=tg.count_distinct(readings.x)),
    )
    program = tg.program(Found=found.match(found.A.contains(found.B) | found.A.before(found.B), within=15))
    ordered = program.explain().lowered().queries[0].ordered
    assert ordered is not None
    return ordered


def random_readings(seed: int) -> pl.DataFrame:
    rng = random.Random(seed)
    rows = []
    for name in ("one", "two", "three", "four", None):
        value = 0
        for t in range(BATCHES * SPAN):
            value = rng.randrange(4) if rng.random() < 0.3 else value
            rows.append((name, t, value))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("t")


def written(store: Store, one: Operator, before: Part | None = None) -> tuple[tuple[KeptRows, ...], Part]:
    kept = keep_part(one, before, lambda table: store.write_table(f"kernel/{next(_names)}", table), store.read_table)
    return kept.rows, kept.part


def reached(batch: int) -> float:
    """Progress after so many batches."""
    return batch * SPAN - 1 if 0 < batch < BATCHES else INF if batch else -INF


def step(one: Operator, rows: pl.DataFrame, batch: int) -> tuple[Operator, list[str]]:
    old, new = reached(batch), reached(batch + 1)
    after, completed = one.step(one.events({0: rows.select(*SCHEMA)}, old, new), old, new)
    return after, [str(row) for row in as_frame(completed).rows()]


def whole_run(ordered: OrderedStep, rows: pl.DataFrame) -> list[list[str]]:
    one: Operator = start_operator(ordered)
    found = []
    for batch in range(BATCHES):
        one, completed = step(one, rows, batch)
        found.append(sorted(completed))
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
@pytest.mark.parametrize("shards", [(3, 3, 3), (2, 5, 2), (1, 4, 1), (4, 0, 4), (0, 3, 0), (0, 0, 0)])
def test_parts_go_on_as_the_whole_does(seed: int, shards: tuple[int, ...]) -> None:
    """So many shards in each batch; with 0, all partitions in one place."""
    ordered, rows, store = operator(), random_readings(seed), MemoryStore()
    shapes = start_operator(ordered).described()
    state: OperatorFiles | None = None
    for batch, (number, wanted) in enumerate(zip(shards, whole_run(ordered, rows), strict=True)):
        parts, found = [], list[str]()
        for shard in range(max(number, 1)):
            share = Share(0, shard, number) if number else None
            own = rows if share is None else rows.filter(shard_of("name", number) == shard)
            tables = None if state is None else read_state(store, "Found", state, shapes, share)
            one = start_operator(ordered) if tables is None else load_operator(ordered, tables, reached(batch))
            one, completed = step(one, own, batch)
            found += completed
            known = (
                None if state is None else parts_of("Found", state, number) if number else (part_of("Found", state),)
            )
            parts.append(written(store, one, known[shard] if known else None))
        state = shared_state(parts) if number else whole_state(*parts[0])
        assert sorted(found) == wanted


@pytest.mark.parametrize("seed", range(6))
def test_batches_find_what_one_finds(seed: int) -> None:
    """Each reads its own events among all that there are."""
    ordered, rows = operator(), random_readings(seed)
    one: Operator = start_operator(ordered)
    _, completed = one.step(one.events({0: rows}, -INF, INF), -INF, INF)
    assert completed.height > 3
    assert sorted(chain(*whole_run(ordered, rows))) == sorted(str(row) for row in as_frame(completed).rows())


def test_values_twice_are_refused() -> None:
    """Of a run one row of partial results, and each different value once."""
    ordered = operator()
    one, _ = step(start_operator(ordered), random_readings(1), 0)
    shapes = one.described()
    tables = {name: pl.DataFrame(table) for name, table in one.tables().items()}
    assert set(tables) == {SITUATIONS, "values 0", "values 1", "different 0.0", "different 1.0"}
    for name, rows in tables.items():
        assert checked(shapes, "Found", name, rows) is rows
        if name != SITUATIONS:
            with pytest.raises(StateError, match="values of runs that can not be"):
                checked(shapes, "Found", name, pl.concat([rows, rows[:1]]))
    different = tables["different 0.0"]
    with pytest.raises(StateError, match="rows without values"):
        checked(shapes, "Found", "different 0.0", different.with_columns(pl.lit(None, pl.Int64).alias("value")))


def test_parts_are_told_apart_by_what_they_rest_on() -> None:
    ordered, rows, store = operator(), random_readings(1), MemoryStore()
    shapes = start_operator(ordered).described()
    one, _ = step(start_operator(ordered), rows, 0)
    halves: list[tuple[tuple[KeptRows, ...], Part]] = [written(store, one), ((), ())]
    state = shared_state(halves)
    assert read_state(store, "Found", state, shapes, Share(0, 1, 2)) == {}
    # Written with another hash, each part may have anything of a share.
    assert isinstance(state.values, dict)
    other = OperatorFiles(state.version, state.files, state.values | {"hash": "another"})
    kept = [read_state(store, "Found", other, shapes, Share(0, shard, 2)) for shard in range(2)]
    assert sum(part[SITUATIONS].height for part in kept) == one.tables()[SITUATIONS].num_rows


@pytest.mark.parametrize("values", [None, {"hash": "x"}, ["open"], {"hash": "x", "parts": ["open"]}, {"parts": [[]]}])
def test_a_state_of_another_layout_is_refused(values: Json) -> None:
    with pytest.raises(StateError, match="TG504"):
        read_state(MemoryStore(), "Found", OperatorFiles(2, (), values), start_operator(operator()).described())
