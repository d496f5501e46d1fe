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
        add(rng, rows, known, most=most, nulls=nulls)
        drop(rng, rows, known)
        assert rows.height == sum(map(len, known.values()))
        asked = rng.sample(range(partitions), rng.randrange(partitions + 1))
        found = rows.take(np.array(asked, dtype=np.int64))
        assert found.schema == {PARTITION: pl.Int64(), **COLUMNS}
        assert found.rows() == [(place, *row) for place, number in enumerate(asked) for row in known[number]]
        some = [(place, at) for place, number in enumerate(asked) for at in range(len(known[number]))]
        some = sorted(rng.sample(some, rng.randrange(len(some) + 1)))
        of, places = (np.array([pair[n] for pair in some], dtype=np.int64) for n in range(2))
        taken = rows.take_some(np.array(asked, dtype=np.int64), of, places)
        assert taken.rows() == [(place, *known[asked[place]][at]) for place, at in some]
    assert rows.stored <= 3 * rows.height + loose + most * partitions


def add(rng: random.Random, rows: RowArrays, known: dict[int, list[Row]], *, most: int, nulls: bool) -> None:
    """Adds rows to some partitions, at times twice."""
    chosen = sorted(rng.sample(range(len(known)), rng.randrange(len(known) + 1)))
    partitions, more = np.array(chosen, dtype=np.int64), [rng.randrange(most + 1) for _ in chosen]
    before = rows.heights(partitions)
    assert before.tolist() == [len(known[number]) for number in chosen]
    flat = [(place, *random_row(rng, nulls)) for place, count in enumerate(more) for _ in range(count)]
    frame = pl.DataFrame(flat, schema={PARTITION: pl.Int64(), **COLUMNS}, orient="row")
    for _ in range(rng.choice((1, 2))):
        rows.add(partitions, before, frame)
    for place, *row in flat:
        known[chosen[place]].append(tuple(row))


def drop(rng: random.Random, rows: RowArrays, known: dict[int, list[Row]]) -> None:
    """Lets first rows of some partitions go."""
    chosen = rng.sample(range(len(known)), rng.randrange(len(known) // 2 + 1))
    count = [rng.randrange(len(known[number]) + 1) for number in chosen]
    rows.drop(np.array(chosen, dtype=np.int64), np.array(count, dtype=np.int64))
    for number, gone in zip(chosen, count, strict=True):
        known[number] = known[number][gone:]


def put_numbers(rows: RowArrays, partitions: list[int], of: list[int], n: list[int | None], **how: bool) -> None:
    """Puts rows of one column; `of` has the place of the partition of each."""
    frame = pl.DataFrame({PARTITION: of, "n": n}, schema={PARTITION: pl.Int64(), "n": pl.Int64()})
    rows.put(np.array(partitions, dtype=np.int64), frame, **how)


def test_a_partition_without_rows_has_no_last_one() -> None:
    """Also where others have NULL."""
    rows = RowArrays({"n": pl.Int64()})
    rows.grow(3)
    put_numbers(rows, [0, 2], [0, 1], [7, None])
    assert rows.last_of_each(np.arange(3), ["n"]).rows() == [(7,), (None,), (None,)]


def test_one_row_each_is_put_where_there_is_room_and_where_there_is_none() -> None:
    """In whatever order partitions come."""
    rows = RowArrays({"n": pl.Int64()})
    rows.grow(3)
    put_numbers(rows, [0], [0, 0], [1, 2])
    put_numbers(rows, [2, 0], [0, 1], [3, 4], one_each=True)
    assert rows.take(np.arange(3)).rows() == [(0, 4), (2, 3)]
    assert rows.height == 2


@pytest.mark.parametrize("loose", [0, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_partitions_with_one_at_most(seed: int, loose: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand by partition as long as most have one, and are the same then and after; so are wide integers among
    narrow ones.
    """
    monkeypatch.setattr(row_arrays, "LOOSE", loose)
    rng, rows, known = random.Random(seed), RowArrays({"n": pl.Int64(), "s": pl.String()}), dict[int, list[Row]]()
    for step in range(40):
        partitions = 2 + step // 3
        rows.grow(partitions)
        chosen = rng.sample(range(partitions), rng.randrange(1, partitions + 1))
        widest = 1 << min(62, 3 + 3 * step // 2)
        one_each = rng.random() < 0.5
        most = 1 if step < 35 else 3
        kept = [
            [
                (rng.choice((None, 0, rng.randrange(-widest, widest))), rng.choice((None, "", "text")))
                for _ in range(1 if one_each else rng.randrange(most + 1))
            ]
            for _ in chosen
        ]
        flat = [(place, *row) for place, own in enumerate(kept) for row in own]
        frame = pl.DataFrame(flat, schema={PARTITION: pl.Int64(), **rows.types}, orient="row")
        rows.put(np.array(chosen, dtype=np.int64), frame, one_each=one_each)
        known |= dict(zip(chosen, kept, strict=True))
        asked = rng.sample(range(partitions), partitions)
        own = [known.get(number, []) for number in asked]
        assert rows.height == sum(map(len, known.values()))
        assert rows.take(np.array(asked)).rows() == [(place, *row) for place, some in enumerate(own) for row in some]
        assert rows.last_of_each(np.array(asked), ["n", "s"]).rows() == [
            some[-1] if some else (None, None) for some in own
        ]
        assert rows.stored <= 3 * rows.height + loose + most * partitions


def test_integers_take_as_few_bytes_as_they_need() -> None:
    """A byte of each partition says whether it has a row, and one of each row whether it has a value, if any has none.
    Of partitions with several rows it is noted where these stand, and how many may.
    """
    rows = RowArrays({"n": pl.Int64()})
    rows.grow(4)
    for n, expected in ([-128, 127], 1), ([-129, 0], 2), ([1 << 15, 0], 4), ([1, 2], 4), ([-(1 << 31) - 1, 0], 8):
        put_numbers(rows, [0, 3], [0, 1], [*n])
        assert rows.take(np.array([0, 3]))["n"].to_list() == n
        assert rows.bytes_of(4) == 4 * (1 + expected)
    put_numbers(rows, [1], [0], [None])
    assert rows.take(np.arange(4))["n"].to_list() == [n[0], None, n[1]]
    assert rows.bytes_of(4) == 4 * (1 + 8 + 1)
    put_numbers(rows, [2], [0, 0], [5, 6])
    assert rows.take(np.arange(4))["n"].to_list() == [n[0], None, 5, 6, n[1]]
    assert rows.bytes_of(4) == 4 * (4 + 8 + 4) + 6 * (8 + 1)


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


def test_the_last_row_of_a_partition_where_another_never_had_one() -> None:
    """The first place was never written to."""
    rows = RowArrays({"s": pl.String()})
    rows.grow(3)
    rows.put(np.array([1]), pl.DataFrame({PARTITION: [0], "s": ["b"]}), one_each=True)
    assert rows.last_of_each(np.array([1, 2]), ["s"]).rows() == [("b",), (None,)]
    assert rows.last_of_each(np.array([0, 2]), ["s"]).rows() == [(None,), (None,)]
