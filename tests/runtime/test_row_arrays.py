"""Rows by partition in arrays: what was put last is there, wherever it was written."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate.runtime.ordered import row_arrays
from tidegate.runtime.ordered.row_arrays import PARTITION, RowArrays

COLUMNS = {"n": pl.Int64(), "x": pl.Float64(), "b": pl.Boolean(), "s": pl.String()}
Row = tuple[Any, ...]


def random_row(rng: random.Random, nulls: bool) -> Row:
    row = (rng.randrange(-(1 << 62), 1 << 62), rng.random(), rng.random() < 0.5, rng.choice(("", "ä", "text")))
    return tuple(None if nulls and rng.random() < 0.2 else value for value in row)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("loose", [0, 3, 10**6])
@pytest.mark.parametrize("most", [1, 4])
def test_partitions_have_the_rows_that_were_put_last(
    most: int, loose: int, nulls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_arrays, "LOOSE", loose)
    rng, rows, known = random.Random(f"{most} {loose} {nulls}"), RowArrays(COLUMNS), dict[int, list[Row]]()
    for step in range(60):
        partitions = 2 + step // 3
        if partitions > len(known):
            rows.grow(partitions)
            known |= {number: [] for number in range(len(known), partitions)}
        chosen = sorted(rng.sample(range(partitions), rng.randrange(partitions + 1)))
        kept = [[random_row(rng, nulls) for _ in range(rng.randrange(most + 1))] for _ in chosen]
        flat = [(place, *row) for place, own in enumerate(kept) for row in own]
        frame = pl.DataFrame(flat, schema={PARTITION: pl.Int64(), **COLUMNS}, orient="row")
        rows.put(np.array(chosen, dtype=np.int64), frame)
        known |= dict(zip(chosen, kept, strict=True))
        assert rows.height == sum(map(len, known.values()))
        asked = rng.sample(range(partitions), rng.randrange(partitions + 1))
        found = rows.take(np.array(asked, dtype=np.int64))
        assert found.schema == {PARTITION: pl.Int64(), **COLUMNS}
        assert found.rows() == [(place, *row) for place, number in enumerate(asked) for row in known[number]]
    assert rows.stored <= 3 * rows.height + loose + most * partitions


@pytest.mark.parametrize("refused", range(4))
def test_rows_that_there_is_no_memory_to_pack_stay_where_they_are(
    refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For whichever column it is refused; they are packed as soon as there is some."""
    monkeypatch.setattr(row_arrays, "LOOSE", 0)
    rng, rows, many = random.Random(refused), RowArrays(COLUMNS), 20
    rows.grow(many)
    known = [[random_row(rng, nulls=True) for _ in range(5)] for _ in range(many)]
    every = np.arange(many)

    def put(partitions: Any) -> None:
        flat = [(place, *row) for place, p in enumerate(partitions) for row in known[p]]
        frame = pl.DataFrame(flat, schema={PARTITION: pl.Int64(), **COLUMNS}, orient="row")
        rows.put(np.array(partitions, dtype=np.int64), frame)

    def check() -> None:
        assert rows.height == sum(map(len, known))
        assert rows.take(every).rows() == [(p, *row) for p in range(many) for row in known[p]]

    put(every)
    packed, asked = row_arrays._Column.packed, list[Any]()

    def refuses(self: Any, *given: Any) -> Any:
        asked.append(self)
        if len(asked) % (refused + 1) == 0:
            raise MemoryError
        return packed(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(row_arrays._Column, "packed", refuses)
        for own in known[1:]:
            del own[1:]
        put(every)
        assert len(asked) == refused + 1
        check()
        known[0] = [random_row(rng, nulls=True) for _ in range(7)]
        put([0])
        check()
        assert rows.stored > 3 * rows.height
    put([1])
    check()
    assert rows.stored == rows.height
