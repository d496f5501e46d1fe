"""Tables of partitions against a dictionary by their keys, while rows are packed and partitions are numbered anew."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.operators import Changes, Echoes
from tidegate.algebra.errors import InternalError
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import BIGINT
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.ordered import partition_store, row_arrays
from tidegate.runtime.ordered.partition_store import EVER
from tidegate.runtime.ordered.process.partition_tables import LAST, PartitionTables, TablesExtract
from tidegate.runtime.ordered.row_arrays import PARTITION

KEYS = Schema((Attribute("k", BIGINT),))
COLUMNS: Mapping[str, Mapping[str, pl.DataType]] = {"a": {"due": pl.Int64(), "v": pl.String()}, "b": {"n": pl.Int64()}}
#: The rows of the two tables.
Held = tuple[list[tuple[int | None, str]], list[tuple[int]]]


def tables(kept_for: int | None = None) -> PartitionTables:
    return PartitionTables(KEYS, COLUMNS, ("a", "due"), kept_for)


def frame(keys: list[int | None]) -> pl.DataFrame:
    return pl.DataFrame({"k": keys}, schema={"k": pl.Int64})


def frames(rng: random.Random, held: list[Held]) -> dict[str, pl.DataFrame]:
    """Tables of these rows, with partitions in any order."""
    places = rng.sample(range(len(held)), len(held))
    return {
        name: pl.DataFrame(
            [(place, *row) for place in places for row in held[place][number]],
            schema={PARTITION: pl.Int64(), **columns},
            orient="row",
        )
        for number, (name, columns) in enumerate(COLUMNS.items())
    }


def held_of(extract: TablesExtract) -> list[Held]:
    found: list[Held] = [([], []) for _ in extract.partitions]
    for number, name in enumerate(COLUMNS):
        places = extract.tables[name].get_column(PARTITION)
        assert places.is_sorted()
        for place, *row in extract.tables[name].iter_rows():
            found[place][number].append(tuple(row))
    return found


def due_of(held: Held, over: int) -> int:
    """When a partition is looked at, which is kept until `over`."""
    return min([over, *(due for due, _ in held[0] if due is not None)])


def random_held(rng: random.Random, now: int) -> Held:
    dues = rng.sample((now + 1, now + 5, None), rng.choice((0, 0, 1, 3)))
    return [(due, f"{now} {due}") for due in dues], [(now + n,) for n in range(rng.choice((0, 0, 2)))]


@pytest.mark.parametrize(("loose", "many"), [(0, False), (0, True), (3, True), (10**6, False), (10**6, True)])
@pytest.mark.parametrize(("null", "kept_for"), [(False, None), (True, 4)])
def test_partitions_hold_what_was_put_last(
    null: bool, kept_for: int | None, loose: int, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_store, "LOOSE", loose)
    monkeypatch.setattr(row_arrays, "LOOSE", loose)
    rng = random.Random(loose)
    held, known, lasts = tables(kept_for), dict[int | None, Held](), dict[int | None, int]()

    def over(key: int | None) -> int:
        return EVER if kept_for is None else lasts[key] + kept_for

    everything: list[int | None] = [*range(200 if many else 4), *([None] if null else [])]
    for now in range(60):
        held.ready()
        rows = [rng.choice(everything) for _ in range(rng.choice((0, 1, 2, 40)))]
        part = held.partitions.assign(frame(rows))
        until = EVER if rng.random() < 0.05 else now
        partitions = held.touched([part], until)
        keys = held.partitions.rows(partitions).get_column("k").to_list()
        due = {key for key, own in known.items() if own != ([], []) and due_of(own, over(key)) <= until}
        assert set(keys) == due.union(rows)
        before = held.extract(partitions)
        assert held_of(before) == [known.get(key, ([], [])) for key in keys]
        assert held_of(held.part(partitions).extract(np.arange(len(partitions)))) == held_of(before)
        new = [random_held(rng, now) for _ in keys]
        lasts |= dict.fromkeys(rows, now)
        last = np.array([lasts[key] for key in keys], dtype=np.int64)
        assert all(np.maximum(before.last, [now if key in rows else -EVER for key in keys]) == last)
        after = held.after(before, frames(rng, new), last)
        held.settle(before, after)
        held.settle(before, after)  # once more, as for a batch that is done again
        known |= dict(zip(keys, new, strict=True))
        assert [held.tables[name].height for name in COLUMNS] == [
            sum(len(own[number]) for own in known.values()) for number in range(2)
        ]
        assert held.held == sum(own != ([], []) for own in known.values())
        if loose == 0:
            assert all(table.stored <= 3 * table.height for table in held.tables.values())
    every = held.extract(held.all_partitions())
    kept = held.rows(every)["b"]
    if kept_for is not None:
        assert [lasts[key] for key in kept.get_column("key 0")] == kept.get_column(LAST).to_list()
        kept = kept.drop(LAST)
    assert kept.columns == ["key 0", "n"]
    assert sorted(kept.rows(), key=str) == sorted(((k, n) for k, (_, b) in known.items() for (n,) in b), key=str)


def test_what_was_cut_before_another_was_put_is_refused() -> None:
    held, rng = tables(), random.Random(0)
    held.partitions.assign(frame([1]))
    one, other = (held.extract(held.all_partitions()) for _ in range(2))
    held.settle(one, held.after(one, frames(rng, [([(3, "x")], [])]), one.last))
    with pytest.raises(InternalError, match="TG590"):
        held.settle(other, held.after(other, frames(rng, [([], [])]), other.last))


def test_a_batch_costs_what_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are taken out of the state do not depend on how many are held, with events and with timers."""
    seen: list[int] = []
    take = row_arrays.RowArrays.take

    def counted(self: row_arrays.RowArrays, partitions: Int64Array) -> pl.DataFrame:
        seen.append(len(partitions))
        return take(self, partitions)

    stream = tg.stream("S", "k bigint, t bigint, v bigint", progress="t")
    by = stream.partition_by("k")
    program = tg.program(Changed=by.process(Changes()), Again=by.process(Echoes(10_000)))
    with program.session() as session:
        session.push("S", pl.DataFrame({"k": range(5000), "t": range(5000), "v": [1] * 5000}))
        session.advance("S", 5000)
        session.step()
        assert session.live_rows() == {"S#0": 0, "Changed: state": 5000, "Again: state": 5000}
        monkeypatch.setattr(row_arrays.RowArrays, "take", counted)
        session.push("S", [(7, 6000, 2), (4000, 6001, 2)])
        session.advance("S", 6001)
        session.step()
        assert sorted(seen) == [2, 2]
        seen.clear()
        session.advance("S", 10_002)
        session.step()
        assert sorted(seen) == [0, 3]
        assert session.results("Again") == [{"k": k, "t": k, "v": 1, "at": 10_000 + k} for k in range(3)]
