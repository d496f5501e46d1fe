"""Rows are looked up by the keys of a leaf that has few, and results are as if all had been read."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.runtime.faults.refused import RefusesAtLine
from tests.shards import cases
from tests.thresholds import THRESHOLDS, small
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE
from tidegate.algebra.types import INT64_MAX, INT64_MIN
from tidegate.runtime.connectors.sources import source
from tidegate.runtime.engines import memory
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.embedded.steps import evaluation, segment_cache
from tidegate.runtime.engines.embedded.steps.segment_cache import SegmentCache
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval import relational
from tidegate.runtime.eval.joins import key_index
from tidegate.runtime.eval.joins.indexed_rows import Deciding, IndexedRows, wanted_rows
from tidegate.runtime.eval.joins.key_index import KeyIndex, LookUpKeys, size_of_index
from tidegate.runtime.eval.joins.look_ups import Bound, Decider, LookUp
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.rows import Unsupported
from tidegate.runtime.state.store.memory import MemoryStore

left = tg.stream("L", "k string, t bigint, x double", progress="t").as_("l")
right = tg.stream("R", "k string, t bigint, y double", progress="t").as_("r")
near = left.k == right.k, left.t <= right.t, right.t <= left.t + 500
#: What stands for some values, by the kind of rows.
MISSING = {"values": None, "NaN": math.nan}
SOURCES = {"L": source(None, delay=3), "R": source(None, delay=3)}


def queries() -> dict[str, tg.Relation]:
    pairs = right.join(left, *near)
    return {
        "Pairs": pairs,
        "None": right.anti_join(left, *near),
        "Some": right.semi_join(left, *near),
        "All": right.left_join(left, *near),
        "Counted": pairs.group_by(key=right.k, end=tg.ceil(right.t, 5)).agg(n=tg.count(), total=tg.sum(left.x)),
        "High": pairs.where(left.x > 0.5),
    }


def of_kind(kind: str, rng: random.Random, count: int, t: int, keys: int = 40) -> list[tuple[Any, ...]]:
    """Rows with NULL among the keys or the values, with NaN among the values, or with none of them."""
    names = [f"k{rng.randrange(keys)}" for _ in range(count)]
    values = [rng.random() for _ in range(count)]
    holes = [rng.random() < 0.2 for _ in range(count)]
    some = [
        (None if kind == "keys" and hole else key, t + rng.randrange(3), MISSING.get(kind, value) if hole else value)
        for key, value, hole in zip(names, values, holes, strict=True)
    ]
    return sorted(some, key=lambda row: row[1])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment has an index from its first look on."""
    monkeypatch.setattr(segment_cache, "LOOKS", 0)


KINDS = ("plain", "keys", "values", "NaN")


def is_quick(name: str, kind: str) -> bool:
    """Whether a query meets rows of a kind in `make test`: each meets half of the others."""
    return ([*queries()].index(name) + KINDS.index(kind)) % 2 == 0


def results(kind: str, query: tg.Relation) -> list[str]:
    """All results."""
    rng = random.Random(kind)
    with Session(tg.program(Out=query).facts, sources=SOURCES) as session:
        session.push("L", of_kind(kind, rng, 1000, 1))
        for t in range(4, 40, 3):
            session.push("L", of_kind(kind, rng, 10, t))
            session.push("R", of_kind(kind, rng, 4, t, 60))
            session.step()
        session.finish()
        session.step()
        return sorted(map(repr, session.results("Out")))


@pytest.mark.parametrize(("name", "kind"), cases(itertools.product(queries(), KINDS), is_quick))
def test_results_are_those_of_all_rows(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = queries()[name]
    monkeypatch.setattr(evaluation, "LOOKED_UP", 1 << 60)
    whole = results(kind, query)
    assert whole
    for looked_up, looks in ((0, 0), (200, segment_cache.LOOKS)):
        monkeypatch.setattr(evaluation, "LOOKED_UP", looked_up)
        monkeypatch.setattr(segment_cache, "LOOKS", looks)
        assert results(kind, query) == whole
        with small(next(one for one in THRESHOLDS if str(one) == "eval.joins.key_index.INDEXED")):
            assert results(kind, query) == whole


def test_rows_of_other_keys_are_not_touched(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    find = KeyIndex.find

    def counted(index: KeyIndex, wanted: Any) -> Any:
        places = find(index, wanted)
        found.append(len(places))
        return places

    monkeypatch.setattr(KeyIndex, "find", counted)
    with Session(tg.program(Pairs=queries()["Pairs"]).facts, sources=SOURCES) as session:
        session.push("L", [(f"k{n}", 1, 1.0) for n in range(20_000)])
        session.push("R", [("none", 1, 1.0)])
        session.step()
        found.clear()
        session.push("L", [("other", 6, 1.0)])
        session.push("R", [("k7", 6, 1.0), ("k9", 6, 1.0)])
        session.advance("L", {"t": 10})
        session.advance("R", {"t": 10})
        session.step()
        assert len(session.results("Pairs")) == 2
    assert found == [2]


def together() -> tg.Program:
    """Queries that share a join and read the same rows, and one that reads others of their streams."""
    pairs = right.join(left, *near)
    grouped = pairs.group_by(key=right.k, end=tg.ceil(right.t, 5))
    return tg.program(
        Least=grouped.agg(x=tg.min(left.x)),
        Greatest=grouped.agg(x=tg.max(left.x)),
        Without=right.anti_join(left, *near),
    )


@pytest.mark.parametrize("kind", ["plain", "values"])
def test_queries_that_read_alike_look_rows_up_once(kind: str, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counting(of: Any, name: str) -> None:
        original = getattr(of, name)

        def counted(*args: Any) -> Any:
            calls[name] += 1
            return original(*args)

        monkeypatch.setattr(of, name, counted)

    counting(evaluation.JobEvaluation, "_small_by_keys")
    counting(relational, "_join")
    rng, found = random.Random(kind), list[str]()
    old, new = (of_kind(kind, rng, count, t) for count, t in ((6_000, 1), (5, 4)))
    for looked_up in (1 << 60, 0):
        monkeypatch.setattr(evaluation, "LOOKED_UP", looked_up)
        with Session(together().facts, sources=SOURCES) as session:
            session.push("L", old)
            session.push("R", old[:1])
            session.step()
            calls.clear()
            session.push("R", new)
            session.finish()
            session.step()
            found.append(repr([sorted(map(repr, session.results(name))) for name in ("Least", "Greatest", "Without")]))
    assert found[0] == found[1]
    assert calls["_small_by_keys"] == 2
    assert calls["_join"] == (2 if kind == "values" else 0)


def test_leaves_that_a_result_may_be_without_are_not_required() -> None:
    plan = lower(tg.program(**queries()).facts)
    assert {query.name: query.required for query in plan.queries} == {
        "Pairs": (0, 1),
        "None": (0,),
        "Some": (0, 1),
        "All": (0,),
        "Counted": (0, 1),
        "High": (0, 1),
    }
    others = {
        "Union": left.select(k=left.k, t=left.t).union(right.select(k=right.k, t=right.t)),
        "NoKey": left.join(right, left.t <= right.t, right.t <= left.t + 5),
        "Alone": left.where(left.x > 0),
    }
    assert {query.required for query in lower(tg.program(**others).facts).queries} == {()}


def test_an_increment_without_rows_of_a_leaf_that_it_needs_reads_none() -> None:
    """Where a row may be without a partner, it reads the others all the same."""
    with tg.program(**queries()).session() as session:
        session.push("R", [("a", 5, 1.0)])
        session.advance("L", 10)
        session.advance("R", 10)
        report = session.step()
    assert set(report.read) == {"None", "All"}
    assert report.results == {name: int(name in report.read) for name in queries()}


def test_a_segment_has_an_index_from_its_third_look_on() -> None:
    """To make one takes as long as to read all of its rows several times, which those of a short window are not."""
    cache = SegmentCache(MemoryStore(), 1 << 30)
    cache.remember("rows", pl.DataFrame({"k": range(1_000), "t": range(1_000)}))
    assert [cache.index("rows", "k", "t") is None for _ in range(4)] == [True, True, False, False]
    by_key = cache.index("rows", "k")
    assert by_key is not None
    assert (by_key.least, by_key.width) == (None, 1)
    cache.forget(())
    cache.remember("rows", pl.DataFrame({"k": range(1_000), "t": range(1_000)}))
    assert cache.index("rows", "k", "t") is None


def alike() -> dict[str, tg.Relation]:
    """Queries that read the same rows of the same streams, and look others of them up."""
    more = left.x > right.y
    return {
        "Pairs": right.join(left, *near, more),
        "Some": right.semi_join(left, *near, more),
        "None": right.anti_join(left, *near, more),
        "Soon": right.join(left, left.k == right.k, left.t == right.t, more),
    }


def test_queries_that_look_other_rows_up_do_not_share_them(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found = random.Random(5), list[list[list[str]]]()
    old, new = (of_kind("plain", rng, count, t, 3) for count, t in ((900, 1), (5, 4)))
    for looked_up in (1 << 60, 0):
        monkeypatch.setattr(evaluation, "LOOKED_UP", looked_up)
        with Session(tg.program(**alike()).facts, sources=SOURCES) as session:
            session.push("L", old)
            session.push("R", old[:1])
            session.step()
            session.push("R", new)
            session.finish()
            session.step()
            found.append([sorted(map(repr, session.results(name))) for name in alike()])
    assert found[0] == found[1]
    assert len(found[0][0]) > len(found[0][1]) > 0


#: A third stream, with few rows.
few = tg.stream("F", "k string, t bigint", progress="t").as_("f")


def failing() -> dict[str, tuple[tg.Relation, tuple[int, ...]]]:
    """Queries in which pairs or groups may have no value, and the leaves without whose rows no such one is made."""
    pairs = left.join(right, left.k == right.k, left.t == right.t)
    divided = pairs.select(k=left.k, t=left.t, q=tg.lit(1) / (left.x - right.y)).as_("d")
    divided_keys = divided.k == few.k, divided.t <= few.t, few.t <= divided.t + 5
    summed = left.group_by(left.k, left.t).agg(n=tg.sum(left.t)).as_("s")
    joined_on_division = left.join(right, left.k == right.k, left.t == right.t, 1 / (left.x - right.y) > 0)
    either = left.select(k=left.k, t=left.t).union(few.select(k=few.k, t=few.t)).as_("e")
    counted = either.group_by(either.k, either.t).agg(n=tg.count())
    shared = counted.with_(m=tg.lit(1).div(counted.n)).as_("c")
    return {
        "Divided": (few.join(divided, *divided_keys), (1, 2)),
        "Without": (few.anti_join(divided, *divided_keys), ()),
        "Summed": (few.semi_join(summed, few.k == summed.k, few.t <= summed.t, summed.t <= few.t + 5), (1,)),
        "Condition": (few.semi_join(joined_on_division, few.k == left.k, few.t == left.t), (1, 2)),
        "Either": (right.join(shared, right.k == shared.k, right.t == shared.t), ()),
    }


def test_leaves_that_a_row_without_a_value_may_be_without_are_not_required() -> None:
    queries = failing()
    plan = lower(tg.program(**{name: query for name, (query, _) in queries.items()}).facts)
    assert {query.name: query.required for query in plan.queries} == {name: told for name, (_, told) in queries.items()}


def test_rows_without_a_value_are_set_aside_whichever_rows_a_batch_reads() -> None:
    """Their key need not be one of those of the stream that has few rows."""
    query, _ = failing()["Divided"]
    for on_error in ("quarantine", "fail"):
        with tg.program(Out=query).session(on_error=on_error) as session:
            session.push("L", [(f"k{n}", 1, 0.0 if n == 9 else 1.0) for n in range(10_000)])
            session.push("R", [(f"k{n}", 1, 0.0) for n in range(10_000)])
            session.push("F", [("k7", 2)])
            session.finish()
            if on_error == "fail":
                with pytest.raises(tg.QueryError, match="TG302"):
                    session.step()
            else:
                assert session.step().set_aside == {"Out": {"unevaluable": 1}}
                assert len(session.results("Out")) == 1


def wanted(keys: list[Any], type_: Any = pl.Int64) -> LookUpKeys:
    """All rows of these keys."""
    none: dict[str, Any] = {}
    return LookUpKeys.of(pl.Series(keys, dtype=type_), None, none.__getitem__)


def test_an_index_finds_the_rows_of_keys() -> None:
    rng = random.Random(1)
    for size in (0, 1, 500):
        keys = pl.Series("k", [rng.choice((None, 1, 2, 3, 50)) for _ in range(size)], dtype=pl.Int64)
        frame = pl.DataFrame({"k": keys, "x": np.arange(size) / 2})
        index = KeyIndex.of(frame, "k")
        for some in ([], [1], [None, 3], [1, 2, 9, 50], [2, 1, 2]):
            rows = index.find(wanted(some))
            places = [place for place, key in enumerate(keys) if key in some]
            assert rows.tolist() == places
            assert index.small_rows(frame, rows, ["x"]).columns["x"].tolist() == [place / 2 for place in places]
            if None in keys.gather(rows).to_list():
                with pytest.raises(Unsupported):
                    index.small_rows(frame, rows, ["k"])


#: Distances from the instants of the rows that are wanted, within which partners lie.
BEFORE, AFTER = 3, 1


@pytest.mark.parametrize("far", [False, True])
def test_an_index_finds_the_rows_of_keys_between_instants(far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also instants at the ends of 64 bits; an index whose places 64 bits would not hold finds all of these keys."""
    if far:
        monkeypatch.setattr(key_index, "_MOST", 20)
    rng, without = random.Random(2), set[bool]()
    for size in (1, 5, 50, 300) * 20:
        lower, upper = rng.choice([(1, 1), (1, 0), (0, 1)])
        look_up = LookUp(1, "t", (Bound("at", -BEFORE),) * lower, (Bound("at", AFTER),) * upper)
        keys = [rng.choice([None, "a", "b", "c"]) for _ in range(size)]
        times = [rng.randrange(-5, 6) for _ in range(size)]
        index = KeyIndex.of(pl.DataFrame({"k": pl.Series(keys, dtype=pl.String), "t": times}), "k", "t")
        without.add(index.least is None)
        some = [rng.choice([None, "a", "b", "z"]) for _ in range(rng.randrange(6))]
        instants = [rng.choice([*range(-9, 10), INT64_MIN, INT64_MAX]) for _ in some]
        columns = {"at": np.array(instants, dtype=np.int64)}
        found = index.find(LookUpKeys.of(pl.Series(some, dtype=pl.String), look_up, columns.__getitem__)).tolist()
        assert found == [
            row
            for row, (key, time) in enumerate(zip(keys, times, strict=True))
            if any(
                key == one
                and (index.least is None or not lower or instant - BEFORE <= time)
                and (index.least is None or not upper or time <= instant + AFTER)
                for one, instant in zip(some, instants, strict=True)
            )
        ]
    assert without == ({False, True} if far else {False})


def test_bounds_stay_within_64_bits() -> None:
    ends = np.array([INT64_MIN, 0, INT64_MAX], dtype=np.int64)
    assert key_index._plus(ends, 3).tolist() == [INT64_MIN + 3, 3, INT64_MAX]
    assert key_index._plus(ends, -3).tolist() == [INT64_MIN, -3, INT64_MAX - 3]
    assert key_index._plus(ends, 0).tolist() == ends.tolist()


def test_nothing_is_compared_where_all_left_rows_are_decided() -> None:
    frame = pl.DataFrame({"k": [1, 1, 2]})
    some = Deciding(Decider(TRUE, Schema(()), (), ()), pl.DataFrame({"k": [1]}), np.zeros(1, dtype=np.bool_))
    assert some.rows(frame, KeyIndex.of(frame, "k"), wanted([1])).tolist() == []


def test_an_index_by_an_instant_that_may_be_missing_has_none() -> None:
    frame = pl.DataFrame({"k": [1, 1, 2], "t": [5, None, 6]})
    index = KeyIndex.of(frame, "k", "t")
    assert index.least is None
    assert index.find(wanted([1])).tolist() == [0, 1]


def test_numbers_beside_a_missing_one_stay_what_they_are() -> None:
    """NumPy has no NULL among integers, and would make doubles of them."""
    frame = pl.DataFrame({"k": [1, 2], "x": [2**53 + 1, None]})
    index = KeyIndex.of(frame, "k")
    assert index.small_rows(frame, index.find(wanted([1])), ["k", "x"]).columns["x"].tolist() == [2**53 + 1]


def test_rows_with_a_nan_are_for_polars() -> None:
    frame = pl.DataFrame({"k": [1, 2], "x": [1.0, math.nan]})
    index = KeyIndex.of(frame, "k")
    assert index.small_rows(frame, index.find(wanted([1])), ["k", "x"]).height == 1
    with pytest.raises(Unsupported):
        index.small_rows(frame, index.find(wanted([2])), ["k", "x"])


def test_an_index_counts_among_what_the_cache_holds(at_once: None) -> None:
    with Session(tg.program(Pairs=queries()["Pairs"]).facts, sources=SOURCES) as session:
        session.push("L", [(f"k{n}", 1, 1.0) for n in range(20_000)])
        session.step()
        executor = session._runner.executor
        assert isinstance(executor, EmbeddedExecutor)
        cache = executor.cache
        before = cache._bytes
        session.push("R", [("k7", 2, 1.0)])
        session.advance("R", {"t": 5})
        session.advance("L", {"t": 5})
        session.step()
        (index,) = (one for some in cache.indexes.values() for one in some.values())
        assert cache._bytes >= before + index.bytes
        cache.forget(())
        assert (cache._bytes, cache.indexes, cache.rows) == (0, {}, {})


def test_the_rows_of_all_segments_together_are_too_many() -> None:
    """Segments of which each has few rows of the keys may have many rows together."""
    buffer, _ = lower(tg.program(Pairs=queries()["Pairs"]).facts).buffers
    column, values = buffer.stored.names[0], {"k": "one", "t": 1, "x": 0.5, "y": 0.5}
    frame = pl.DataFrame({name: [values[name]] * 2_000 for name in buffer.stored.names})
    some = wanted(["one"], pl.String)
    for index in (None, KeyIndex.of(frame, column)):
        segments = [IndexedRows(frame, index) for _ in range(3)]
        assert wanted_rows(segments[:2], some, None, buffer.stored, buffer.stored.names).height == 4_000
        with pytest.raises(Unsupported):
            wanted_rows(segments, some, None, buffer.stored, buffer.stored.names)


def test_the_cache_counts_for_rows_what_it_counted_before() -> None:
    """A column with one value is a single value until it is first read; the frame is larger then."""
    cache = SegmentCache(MemoryStore(), 1 << 30)
    frame = pl.DataFrame({"k": range(1_000)}).with_columns(one=pl.lit(1, pl.Int64))
    cache.remember("rows", frame)
    size = frame.estimated_size()
    assert frame.get_column("one").sum() == 1_000
    assert frame.estimated_size() > size
    cache.forget(())
    assert cache._bytes == 0


def test_memory_that_is_refused_at_any_line_leaves_nothing_behind(at_once: None) -> None:
    frame = pl.DataFrame({"k": range(1_000), "x": range(1_000)})
    size = int(frame.estimated_size())

    def use(cache: SegmentCache) -> None:
        for name in "abc":
            cache.remember(name, frame.clone())
            cache.index(name, "k")
        cache.exchange("c", frame.clone())
        cache.forget("bc")

    def lines(line: int) -> int:
        cache = SegmentCache(MemoryStore(), 5 * size)
        with RefusesAtLine("/segment_cache.py", line) as refuses, suppress(MemoryError):
            use(cache)
        for live in ("bc", ""):
            cache.forget(live)
            assert set(cache.rows) <= set(live)
        assert (cache._bytes, cache.rows, cache.indexes) == (0, {}, {})
        cache.remember("a", frame)
        assert cache._bytes == size
        return refuses.lines

    number = lines(0)
    assert number > 20
    for line in range(1, number + 1):
        lines(line)


def test_indexes_make_room_for_rows(at_once: None) -> None:
    """Rows that are not held would be read from a file in each batch; those made first go, and no more than needed."""
    frame = pl.DataFrame({"k": range(1_000), "x": range(1_000)}).with_columns(y=pl.col("k").cast(pl.Int32))
    size = int(frame.estimated_size())
    assert size == size_of_index(frame) == KeyIndex.of(frame, "k").bytes
    cache = SegmentCache(MemoryStore(), 5 * size)
    for name in "ab":
        cache.remember(name, frame.clone())
        assert cache.index(name, "k") is not None
    assert cache._bytes == 4 * size
    cache.remember("c", frame)
    assert (set(cache.rows), set(cache.indexes)) == ({*"abc"}, {*"ab"})
    cache.remember("d", frame)
    assert (set(cache.rows), set(cache.indexes)) == ({*"abcd"}, {"b"})
    assert cache.index("a", "k") is None
    cache.remember("too large", pl.concat([frame, frame]))
    assert (set(cache.rows), set(cache.indexes)) == ({*"abcd"}, {"b"})
    assert cache._bytes == 5 * size
    cache.forget("b")
    assert cache._bytes == 2 * size


def test_an_index_shares_the_numbers_of_its_segment(at_once: None) -> None:
    cache = SegmentCache(MemoryStore(), 1 << 30)
    part = pl.DataFrame({"k": range(1_000)})
    cache.remember("rows", pl.concat([part, part], rechunk=False))
    index, rows = cache.index("rows", "k"), cache.rows["rows"]
    assert index is not None
    assert isinstance(rows, pl.DataFrame)
    assert np.shares_memory(index.columns["k"], rows.get_column("k").to_numpy())


@pytest.mark.parametrize(("there_is", "held"), [(4_000, 1_000), (None, 256 << 20)])
def test_memory_holds_a_share_of_what_there_is(
    there_is: int | None, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch over a state that is not held costs what the state holds, not what it looks up."""
    monkeypatch.setattr(memory, "memory_limit", lambda: there_is)
    with Session(tg.program(Pairs=queries()["Pairs"]).facts, sources=SOURCES) as session:
        executor = session._runner.executor
        assert isinstance(executor, EmbeddedExecutor)
        assert executor.cache.most_bytes == held


@pytest.mark.parametrize("cache_bytes", [0, 500_000])
def test_what_memory_does_not_hold_is_read_as_before(cache_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To sort a segment for one look takes longer than to read it: without memory for rows or indexes there is none."""
    monkeypatch.setattr(KeyIndex, "of", None)
    options = RunOptions(cache_bytes=cache_bytes)
    with Session(tg.program(Pairs=queries()["Pairs"]).facts, sources=SOURCES, options=options) as session:
        executor = session._runner.executor
        assert isinstance(executor, EmbeddedExecutor)
        session.push("L", [(f"k{n}", 1, 1.0) for n in range(20_000)])
        session.step()
        session.push("R", [("k7", 2, 1.0)])
        session.advance("R", {"t": 5})
        session.advance("L", {"t": 5})
        session.step()
        assert len(session.results("Pairs")) == 1
        assert bool(executor.cache.rows) == bool(cache_bytes)
        assert executor.cache._bytes <= cache_bytes


def test_what_is_read_elsewhere_is_not_held_once_it_is_written() -> None:
    facts = tg.program(Pairs=queries()["Pairs"]).facts
    elsewhere, here = lower(facts).buffers
    with Session(facts, sources=SOURCES) as session:
        executor = session._runner.executor
        assert isinstance(executor, EmbeddedExecutor)
        executor._pending.read_elsewhere.add(elsewhere.id)
        session.push("L", [("k7", 1, 1.0)])
        session.push("R", [("k7", 2, 1.0)])
        session.step()
        segments = session._runner.state.segments
        of, others = ({segment.path for segment in segments[buffer.id]} for buffer in (elsewhere, here))
        assert of
        assert others == set(executor.cache.rows)
