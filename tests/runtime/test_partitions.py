"""The numbers of partitions: that they are given again, and what is so where giving them breaks off."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import BIGINT, DOUBLE, STRING, DataType
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.ordered import partition_store, partitions, row_arrays
from tidegate.runtime.ordered.partition_store import PartitionStore, Successors
from tidegate.runtime.ordered.partitions import Partitions

KEYS = Schema((Attribute("k", STRING),))
S = tg.stream("S", "k string, t bigint, v bigint", progress="t")


def frame(*keys: str) -> pl.DataFrame:
    return pl.DataFrame({"k": keys}, schema={"k": pl.String})


def numbers(*of: int) -> Int64Array:
    return np.array(of, dtype=np.int64)


def no_memory(*_: Any, **__: Any) -> Any:
    raise MemoryError


def breaks_off(patch: pytest.MonkeyPatch) -> None:
    """The third key of a batch is not read."""
    read = Partitions._hashable

    def some(self: Partitions, keys: pl.DataFrame) -> Iterator[object]:
        for number, key in enumerate(read(self, keys)):
            if number == 2:
                raise MemoryError
            yield key

    patch.setattr(Partitions, "_hashable", some)


def test_keys_that_got_a_number_in_vain_get_one_again() -> None:
    numbered = Partitions.of(KEYS)
    assert numbered.assign(frame("a", "b")).tolist() == [0, 1]
    assert numbered.assign(frame("b", "a")).tolist() == [1, 0]
    for where in ("keys", "frames"):
        with pytest.MonkeyPatch.context() as patch:
            if where == "keys":
                breaks_off(patch)
            else:
                patch.setattr(partitions, "pl", SimpleNamespace(**{**vars(pl), "concat": no_memory}))
            with pytest.raises(MemoryError):
                numbered.assign(frame("c", "d", "e"))
        assert len(numbered) == 2
    assert numbered.assign(frame("e", "a", "d")).tolist() == [2, 0, 3]
    assert numbered.rows(np.arange(4)).get_column("k").to_list() == ["a", "b", "e", "d"]


def test_a_batch_that_broke_off_as_it_numbered_keys_is_done_again() -> None:
    program = tg.program(R=S.over(by="k", before=tg.lag(S.v)).select("k", "t", "before"))
    with program.session() as session:
        for t, keys in enumerate(["ab", "ab", "cde", "cdef", "cdef"]):
            session.push("S", [(key, t, 10 * t + place) for place, key in enumerate(keys)])
            session.advance("S", {"t": t})
            if t == 2:
                with pytest.MonkeyPatch.context() as patch:
                    breaks_off(patch)
                    with pytest.raises(tg.TidegateError, match="TG510"):
                        session.step()
            session.step()
        found = {(row["k"], row["t"]): row["before"] for row in session.results("R")}
    assert found == {
        **{(key, t): 10 * (t - 1) + place for t in (1, 4) for place, key in enumerate("ab" if t == 1 else "cdef")},
        **{(key, 3): 20 + place for place, key in enumerate("cde")},
        **dict.fromkeys([("a", 0), ("b", 0), ("c", 2), ("d", 2), ("e", 2), ("f", 3)]),
    }


@pytest.mark.parametrize(
    ("module", "function"),
    [(row_arrays, "zeros"), *((partition_store, name) for name in ("zeros", "empty", "concatenate"))],
)
def test_a_store_that_could_not_grow_grows(module: ModuleType, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = tg.program(R=S.over(by="k", before=tg.lag(S.v)))
    monkeypatch.setattr(partition_store._PLACES, "array", np.empty(0, dtype=np.int32))  # others may have made it larger
    with numbered.session() as session:
        session.push("S", [("a", 0, 0)])
        session.advance("S", {"t": 0})
        session.step()
        session.push("S", [(str(key), 1, key) for key in range(5000)])
        session.advance("S", {"t": 1})
        with monkeypatch.context() as patch:
            patch.setattr(module, "np", SimpleNamespace(**{**vars(np), function: no_memory}))
            with pytest.raises(tg.TidegateError, match="TG510"):
                session.step()
        session.step()
        assert len(session.results("R")) == 5001


def test_stores_of_two_threads_write_to_different_places() -> None:
    """Those of one share them, as each step writes before it reads."""
    here, there = partition_store._PLACES.of(10), list[Any]()
    thread = Thread(target=lambda: there.append(partition_store._PLACES.of(10)))
    thread.start()
    thread.join()
    assert not np.shares_memory(here, there[0])
    assert np.shares_memory(here, partition_store._PLACES.of(10))


# --- numbers that are free --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_free_numbers_are_given_again(seed: int) -> None:
    """Each key has a number of its own for as long as that is not free. There are as many as there were keys at once,
    and their keys take no more room than twice as many.
    """
    rng = random.Random(seed)
    numbered, known, most = Partitions.of(KEYS), dict[str, int](), 0
    for _ in range(80):
        keys = rng.choices(range(rng.choice((5, 60))), k=rng.choice((0, 1, 5, 30)))
        given = numbered.assign(frame(*map(str, keys))).tolist()
        assert given == [known.setdefault(str(key), number) for key, number in zip(keys, given, strict=True)]
        assert len(set(known.values())) == len(known)
        asked = [str(rng.randrange(60)) for _ in range(9)]
        assert numbered.find(frame(*asked)).tolist() == [known.get(key, -1) for key in asked]
        most = max(most, len(known))
        assert len(numbered) == most
        assert keys_of(numbered, list(known.values())) == list(known)
        gone = numbers(*(known.pop(key) for key in rng.sample(sorted(known), rng.randrange(len(known) + 1))))
        numbered.free(gone)
        numbered.free(gone)
    assert numbered.known.height <= 2 * most


@pytest.mark.parametrize(
    ("type_", "known", "others"),
    [
        (BIGINT, [5, 7, 5], [6, -(1 << 63), (1 << 63) - 1, None]),
        (BIGINT, [5, None, 1 << 40], [6, 0]),
        (DOUBLE, [0.0, float("nan"), None], [1.0]),
        (STRING, ["a", None, ""], ["b"]),
    ],
)
def test_keys_without_a_number_are_found_to_have_none(type_: DataType, known: list[Any], others: list[Any]) -> None:
    numbered = Partitions.of(Schema((Attribute("k", type_),)))
    rows = pl.DataFrame({"k": known}, schema={"k": polars_type(type_)})
    asked = pl.concat([rows, pl.DataFrame({"k": others}, schema=rows.schema)])
    assert numbered.find(asked).tolist() == [-1] * asked.height
    given = numbered.assign(rows).tolist()
    many = len(numbered)
    assert numbered.find(asked).tolist() == [*given, *[-1] * len(others)]
    assert len(numbered) == many
    assert numbered.assign(rows).tolist() == given


def test_without_keys_there_is_one_partition() -> None:
    assert Partitions.of(Schema(())).find(pl.DataFrame({"v": [1, 2]})).tolist() == [0, 0]


def keys_of(numbered: Partitions, of: Sequence[int]) -> list[str]:
    (column,) = numbered.arrays(numbers(*of))
    keys: list[str] = numbered.rows(numbers(*of)).get_column("k").to_list()
    assert column.to_pylist() == keys
    return keys


def test_numbers_stay_free_where_giving_them_breaks_off() -> None:
    numbered = Partitions.of(KEYS)
    for _ in range(2):
        assert numbered.assign(frame("a", "b", "c", "d")).tolist() == [0, 1, 2, 3]
    with pytest.MonkeyPatch.context() as patch:
        breaks_off(patch)
        with pytest.raises(MemoryError):
            numbered.free(numbers(0, 1, 2))
    assert numbered.assign(frame("e", "b")).tolist() == [4, 1]
    numbered.free(numbers(0, 1, 2))
    with pytest.MonkeyPatch.context() as patch:
        breaks_off(patch)
        with pytest.raises(MemoryError):
            numbered.assign(frame("f", "d", "g"))
    assert numbered.assign(frame("g", "d", "e", "h", "b")).tolist() == [0, 3, 4, 1, 2]
    assert keys_of(numbered, range(5)) == ["g", "h", "b", "d", "e"]


def passing(name: str) -> tuple[tg.Relation, int]:
    """A query of rows of the last ticks of a key, and how many rows each key then has in its result."""
    if name == "sessions":
        return S.windows(tg.session(3), by="k").agg(n=tg.count(), total=tg.sum(S.v)), 1
    if name == "hopping":
        return S.windows(tg.hopping(4, every=1), by="k").agg(n=tg.count(), total=tg.sum(S.v)), 5
    return S.ticks(1, by="k", within=3), 5


def test_keys_of_which_nothing_is_held_keep_their_numbers_while_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_store, "LOOSE", 4)
    stream = tg.stream("I", "k bigint, t bigint, v bigint", progress="t")
    define: Any = {"A": lambda m: m.A.v == 1, "B": lambda m: m.B.v == 2}
    anew, part = list[int](), PartitionStore.part

    def noted(store: PartitionStore[Any], some: Int64Array) -> PartitionStore[Any]:
        anew.append(len(some))
        return part(store, some)

    monkeypatch.setattr(PartitionStore, "part", noted)
    with tg.program(R=stream.sequences("A B", by="k", define=define)).session() as session:
        for t in range(30):
            keys = range(100) if t < 20 else range(1)
            session.push("I", [(k, t, 1 if k == t else 2 if k == t - 1 else 0) for k in keys])
            session.advance("I", {"t": t})
            session.step()
            assert not anew or t > 20
        assert len(anew) == 1
        found = session.table("R").rows()
    assert sorted(row["k"] for row in found) == list(range(19))


@pytest.mark.parametrize("name", ["sessions", "hopping", "ticks"])
def test_where_as_many_keys_go_as_come_none_is_numbered_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key has a row in two batches. Its number was that of another before, of which nothing is left."""
    monkeypatch.setattr(partition_store, "LOOSE", 64)
    query, rows = passing(name)
    anew, part = list[int](), PartitionStore.part

    def noted(store: PartitionStore[Any], some: Int64Array) -> PartitionStore[Any]:
        anew.append(len(some))
        return part(store, some)

    with tg.program(R=query).session() as session:
        for t in range(60):
            if t == 20:
                monkeypatch.setattr(PartitionStore, "part", noted)
            session.push("S", [(f"{of} {key}", t, 1) for of in (t, t - 1) for key in range(20)])
            session.advance("S", {"t": t})
            session.step()
        assert not anew
        monkeypatch.undo()
        session.finish()
        session.step()
        found = session.table("R").rows()
    several = [row for row in found if not row["k"].startswith(("-1 ", "59 "))]
    assert len(several) == 59 * 20 * rows
    if name == "sessions":
        assert {(row["n"], row["total"]) for row in several} == {(2, 2)}
    if name == "hopping":
        assert sorted(row["n"] for row in several) == [1] * 59 * 20 * 2 + [2] * 59 * 20 * 3


def test_partitions_whose_other_key_is_no_number_follow_each_other() -> None:
    """NaN is one value, as in the keys of partitions."""

    schema = Schema((Attribute("x", DOUBLE), Attribute("since", BIGINT)))
    successors = Successors(schema, ["since"])
    keys = pl.DataFrame({"x": [float("nan")] * 2, "since": [1, 5]})
    for at in (0, 1):
        successors.hold(np.array([at]), keys[at : at + 1], np.array([True]))
    assert successors.followed(np.array([1]), keys[1:]).tolist() == [0]
    successors.hold(np.array([0]), keys[:1], np.array([False]))
    assert successors.followed(np.array([1]), keys[1:]).tolist() == []
