"""A shard that takes long is evaluated in portions of one leaf: together they have every row once, however it is
divided.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.runtime.inline_workers import InlineRun, Workers
from tests.runtime.test_sharding import bag, leaf, rows_of
from tests.strategies.trees import Case, cases
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, call
from tidegate.algebra.types import BIGINT
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines import many_pairs
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.eval import portions, shards
from tidegate.runtime.engines.spark.eval.divisions import Division, divisions, divisions_of
from tidegate.runtime.engines.spark.eval.portions import Loads, portion_of
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.joins import ranges
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.plan.sharding import shard_key
from tidegate.runtime.tuning.choices import Choice, Way
from tidegate.runtime.tuning.tuner import Tuner

SHARDS = 2
events = tg.stream("E", "k bigint, t bigint, c bigint, d double", progress="t")
others = tg.stream("O", "k bigint, t bigint, v bigint", progress="t")
a, b = events.as_("a"), others.as_("b")
NEAR = (a.k == b.k, a.t <= b.t, b.t <= a.t + 5)


def ways_of(relation: Any) -> list[tuple[int, str | None]]:
    """How a query over E and O can be divided: the leaf, and what of it says the portion."""
    (query,) = tg.program(Q=relation).explain().lowered().queries
    return [(way.leaf, None if way.by is None else repr(way.by)) for way in divisions(query)]


def test_rows_of_joins_are_divided_where_none_is_padded_or_missing() -> None:
    assert ways_of(a.join(b, *NEAR).select(k=a.k, s=a.t, t=b.t)) == [(0, None), (1, None)]
    assert ways_of(a.left_join(b, *NEAR).select(k=a.k, t=a.t, v=b.v)) == [(0, None)]
    assert ways_of(a.anti_join(b, *NEAR)) == [(0, None)]
    assert ways_of(a.semi_join(b, *NEAR)) == [(0, None)]
    assert ways_of(a.select(a.k, a.t).union(b.select(b.k, b.t))) == []


def test_groups_are_divided_by_what_they_group_by() -> None:
    """By an instant sooner than by anything else, never by the key that makes the shards, nor by a double."""
    pairs = a.join(b, *NEAR).select(k=a.k, s=a.t, t=b.t, c=a.c, d=a.d)
    instant = repr(Attr("t"))
    assert ways_of(pairs.group_by("k", "s", "t").agg(n=tg.count())) == [(0, instant), (1, instant)]
    counted = pairs.group_by(k=pairs.k, w=tg.ceil(pairs.t, 10)).agg(n=tg.count())
    assert [place for place, _ in ways_of(counted)] == [1]
    assert all("ceil" in str(by) and instant in str(by) for _, by in ways_of(counted))
    by_value = pairs.group_by(k=pairs.k, c=pairs.c, w=tg.ceil(pairs.t, 10)).agg(n=tg.count())
    assert ways_of(by_value) == [(0, repr(Attr("c"))), *ways_of(counted)]
    by_both = pairs.group_by("k", "c", "s").agg(n=tg.count())
    assert ways_of(by_both) == [(0, instant)]
    for double in (pairs.d, pairs.c / 2):
        by_double = pairs.group_by(k=pairs.k, d=double, w=tg.ceil(pairs.t, 10)).agg(n=tg.count())
        assert ways_of(by_double) == ways_of(counted)


def test_what_operators_and_partial_results_read_is_not_divided() -> None:
    assert ways_of(events.group_by("k", t=tg.ceil(events.t, 5)).agg(n=tg.count())) == []
    assert ways_of(events.over(by="k", order="t", tie="c", last=tg.lag(events.c))) == []


def test_what_has_no_value_for_some_rows_leaves_them_together() -> None:
    schema = Schema((Attribute("x", BIGINT),))
    rows = pl.DataFrame({"x": [1, 2, 0]}, schema=polars_schema(schema))
    way = Division(0, call("mul", Attr("x"), call("mul", Attr("x"), Attr("x"))))
    some = [portion_of(rows, way, schema, number, 3) for number in range(3)]
    assert sorted(x for part in some for x in part.get_column("x")) == [0, 1, 2]
    beyond = pl.DataFrame({"x": [1, 1 << 40]}, schema=polars_schema(schema))
    assert [portion_of(beyond, way, schema, number, 3).height for number in range(3)] == [2, 0, 0]


def test_of_several_leaves_the_one_with_most_rows_is_divided() -> None:
    """Each portion reads all rows of the others."""
    (query,) = tg.program(Q=a.join(b, *NEAR).select(k=a.k, s=a.t, t=b.t)).explain().lowered().queries
    for rows in ((1, 2), (2, 1)):
        inputs = [[SimpleNamespace(rows=count)] for count in rows]
        job: Any = SimpleNamespace(query=query, inputs=inputs)
        division = portions._best(job)
        assert division is not None
        assert division.leaf == rows.index(2)


@given(cases(), st.integers(0, 7), st.integers(2, 3))
@settings(max_examples=200, deadline=None)
def test_the_portions_of_all_shards_together_are_the_whole(case: Case, static: int, count: int) -> None:
    streams = occurrences(case.node)
    leaves = tuple(leaf(s, static=place > 0 and bool(static >> (place % 3) & 1)) for place, s in enumerate(streams))
    keys = shard_key(case.node, leaves, None)
    frames = [rows_of(case, place, stream) for place, stream in enumerate(streams)]
    whole = bag(evaluate(case.node, dict(enumerate(frames))))
    ways = divisions_of(case.node, leaves, keys or ())
    event(f"sharded: {keys is not None}, divisions: {[way.by is None for way in ways][:2]}")
    for way in ways:
        found: Counter[str] = Counter()
        for shard in range(SHARDS):
            shares = {
                place: frame if column is None else frame.filter(pl.col(column).hash(0) % SHARDS == shard)
                for place, (frame, column) in enumerate(zip(frames, keys or [None] * len(frames), strict=True))
            }
            for portion in range(count):
                some = portion_of(shares[way.leaf], way, streams[way.leaf].schema, portion, count)
                found += bag(evaluate(case.node, {**shares, way.leaf: some}))
            if keys is None:
                break
        assert found == whole, way


# --- which shards are divided


def told(query: str, shard: int, read: float, evaluated: float, count: int = 1) -> dict[str, Any]:
    return {"query": query, "load": [shard, count, read, evaluated]}


@pytest.mark.parametrize(
    ("seconds", "portions"),
    [
        ([(0, 4), (0, 4), (0, 4), (0, 4)], {}),
        ([(0, 5), (0, 4), (0, 4), (0, 3)], {}),  # 1.25 times the mean
        ([(0, 8), (0, 0), (0, 0), (0, 0)], {("Q", 0): 4}),  # one key
        ([(0, 1), (0, 1), (0, 5), (0, 1)], {("Q", 2): 3}),  # a key with most rows
        ([(1, 7), (0, 0), (0, 0), (0, 0)], {("Q", 0): 4}),
        ([(3, 5), (0, 0), (0, 0), (0, 0)], {("Q", 0): 2}),  # portions read as long as they evaluate
        ([(7, 1), (0, 0), (0, 0), (0, 0)], {}),
        ([(0, 0.1), (0, 0), (0, 0), (0, 0)], {}),  # no time
    ],
)
def test_a_shard_that_took_longer_than_the_mean_is_divided(
    seconds: list[tuple[float, float]], portions: dict[tuple[str, int], int]
) -> None:
    loads = Loads()
    assert loads.learn([told("Q", shard, *took) for shard, took in enumerate(seconds)], {"Q": 4}) == []
    assert loads.portions(["Q"], 4) == portions
    assert loads.portions(["Other"], 4) == {}


def test_queries_that_balance_each_other_are_not_divided() -> None:
    loads = Loads()
    for query, seconds in (("One", (4, 0)), ("Two", (0, 2)), ("Three", (0, 2))):
        loads.learn([told(query, shard, 0, took) for shard, took in enumerate(seconds)], {query: 2})
    assert loads.portions(["One", "Two", "Three"], 2) == {}
    assert loads.portions(["One"], 2) == {("One", 0): 2}


def test_portions_are_measured_together_and_only_where_all_are() -> None:
    loads = Loads()
    whole = [told("Q", 0, 1, 8), told("Q", 1, 0, 1)]
    divided = [told("Q", 0, 1, 3, 3), told("Q", 0, 2, 2, 3), told("Q", 0, 1, 3, 3), told("Q", 1, 0, 1)]
    other = {"query": "Q", "rows": 1}
    assert loads.learn([*whole, other], {"Q": 2}) == [other]
    first = loads.portions(["Q"], 2)
    assert first
    for lost in range(len(divided)):  # by a worker that did this for the first time
        again = Loads()
        again.learn(whole, {"Q": 2})
        again.learn([one for number, one in enumerate(divided) if number != lost], {"Q": 2})
        assert again._of == loads._of
    loads.learn(divided, {"Q": 2})
    assert (loads._of["Q"][0].read, loads._of["Q"][0].evaluated) == (2, 8)
    loads.learn([told("Q", 0, 0, 1), told("Q", 1, 0, 1)], {"Q": 2})
    assert loads.portions(["Q"], 2) == {}


def test_what_cannot_be_divided_is_no_choice() -> None:
    joined, united = a.join(b, *NEAR).select(k=a.k, t=b.t), a.select(a.k, a.t).union(b.select(b.k, b.t))
    jobs: Any = [SimpleNamespace(query=query) for query in tg.program(Q=joined, R=united).explain().lowered().queries]
    loads, tuner = Loads(), Tuner()
    for job in jobs:
        loads.learn([told(job.query.name, shard, 0, 8 * (shard == 2)) for shard in range(4)], {job.query.name: 4})
    assert portions._chosen(jobs, 4, loads, tuner) == {("Q", 2): 2}
    assert list(map(str, tuner.choices)) == ["Q, shard 2: 2 portions (it took 16 s, the mean is 4 s)"]


# --- runs

BATCHES, SPAN, HOT = 5, 20, 1
RESULTS = ("Near", "Alone", "Counted", "Twice")
#: Rows by batch and stream.
Made = list[dict[str, list[dict[str, Any]]]]


def program() -> tg.Program:
    """A join, an anti-join, a grouping of pairs, and one that reads what the join has found."""
    near = a.join(b, *NEAR).select(k=a.k, s=a.t, t=b.t, c=a.c)
    found = tg.result_of("Near", near)
    c, d = found.as_("c"), found.as_("d")
    return tg.program(
        Alone=a.anti_join(b, *NEAR, a.c < b.v),
        Counted=near.group_by(k=near.k, w=tg.ceil(near.t, 4)).agg(n=tg.count(), most=tg.max(near.c)),
        Twice=c.join(d, c.k == d.k, c.t < d.t, d.t <= c.t + 3).select(k=c.k, s=c.t, t=d.t),
    )


def batches(seed: int) -> Made:
    """Half of all rows have one key."""
    rng = random.Random(seed)

    def row(t: int, value: str) -> dict[str, Any]:
        return {"k": HOT if rng.random() < 0.5 else rng.randrange(8), "t": t, value: rng.randrange(5)}

    made = []
    for batch in range(BATCHES):
        span = [t for t in range(batch * SPAN, (batch + 1) * SPAN) for _ in range(4)]
        made.append({"E": [row(t, "c") | {"d": 0.5} for t in span], "O": [row(t, "v") for t in span]})
    return made


def write(place: Path, made: Made) -> dict[str, Path]:
    folders = {name: place / name for name in ("E", "O")}
    for name, folder in folders.items():
        folder.mkdir()
        for number, batch in enumerate(made):
            path = folder / f"{number}.parquet"
            pl.DataFrame(batch[name]).write_parquet(path)
            os.utime(path, (1_600_000_000 + number,) * 2)
    return folders


def check_results(
    place: Path, of: tg.Program, names: Sequence[str], made: list[dict[str, list[dict[str, Any]]]]
) -> None:
    wanted = of.run({name: [row for batch in made for row in batch[name]] for name in ("E", "O")})
    for name in names:
        files = (place / "out" / name).glob("*.parquet")
        found = Counter(str(row) for path in files for row in pl.read_parquet(path).to_dicts())
        assert found == Counter(map(str, wanted[name].arrow().to_pylist())), name
        assert found


def begun(
    workers: Workers,
    place: Path,
    of: tg.Program,
    names: Sequence[str],
    folders: dict[str, Path],
    options: RunOptions = RunOptions(),
) -> InlineRun:
    return InlineRun.of(
        workers,
        of.facts,
        {name: parquet(folder, per_batch=1, delay=0, bounded=True) for name, folder in folders.items()},
        {name: parquet_sink(place / "out" / name) for name in names},
        place / "checkpoint",
        options=options,
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 8))])
def test_results_are_the_same_whatever_is_divided(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, made = random.Random(seed), batches(seed)
    asked: Counter[tuple[str, int]] = Counter()
    done: list[Any] = []

    def drawn(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        some = [(query, shard) for query in queries for shard in range(shards) if rng.random() < 0.5]
        chosen = {one: rng.randint(1, 4) for one in some}
        asked.update(chosen)
        return chosen

    def counted(*given: Any) -> pl.DataFrame:
        done.append(given)
        return portion_of(*given)

    monkeypatch.setattr(Loads, "portions", drawn)
    monkeypatch.setattr(portions, "portion_of", counted)
    workers = Workers(monkeypatch, tasks=3, choose=lambda number: rng.randrange(3))
    run = begun(workers, tmp_path, program(), RESULTS, write(tmp_path, made))
    reports = run.all()
    assert {place for report in reports for place in report.places.values()} == {"sharded"}
    assert len(done) == sum(asked.values()) > 0
    check_results(tmp_path, program(), RESULTS, made)


@pytest.mark.parametrize("count", [1, 2])
def test_workers_tell_how_many_pairs_they_have_compared(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch at once, whatever task has compared them."""
    for module, name, value in ((ranges, "MANY_PAIRS", 10), (ranges, "SMALL_PRODUCT", 0), (many_pairs, "TOLD", 50)):
        monkeypatch.setattr(module, name, value)

    def divided(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        return {(query, shard): count for query in queries for shard in range(shards) if count > 1}

    monkeypatch.setattr(Loads, "portions", divided)
    near = tg.program(Near=a.join(b, *NEAR).select(k=a.k, s=a.t, t=b.t))
    with warnings.catch_warnings(record=True, action="always") as caught:
        begun(Workers(monkeypatch), tmp_path, near, ["Near"], write(tmp_path, batches(3))).all()
    messages = [str(one.message) for one in caught if isinstance(one.message, tg.RunWarning)]
    assert [message.split()[:4] for message in messages] == [["TG446", "Near", "has", "compared"]]
    assert int(messages[0].split()[4].replace(",", "")) >= 50


@pytest.mark.long
def test_shards_are_divided_as_it_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing says that they would take long."""
    rng, made = random.Random(9), batches(4)
    folders = write(tmp_path, made)

    def drawn(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        return {(query, shard): rng.randint(2, 4) for query in queries for shard in range(shards) if rng.random() < 0.4}

    def chosen(name: str, tune: Any) -> dict[int, tuple[Choice, ...]]:
        place, options = tmp_path / name, RunOptions(tune=tune)
        reports = begun(Workers(monkeypatch), place, program(), RESULTS, folders, options).all()
        check_results(place, program(), RESULTS, made)
        return {report.seq: report.choices for report in reports}

    def ways(choices: dict[int, tuple[Choice, ...]]) -> dict[int, list[tuple[str, str]]]:
        return {seq: [(choice.step, str(choice.way)) for choice in some] for seq, some in choices.items()}

    with monkeypatch.context() as patch:
        patch.setattr(Loads, "portions", drawn)
        first = chosen("first", "throughput")
    assert {way for some in ways(first).values() for _, way in some} == {"2 portions", "3 portions", "4 portions"}
    assert ways(chosen("second", first)) == ways(first)
    chosen("third", {seq: [replace(one, way=Way("portion", -1)) for one in some] for seq, some in first.items()})


def test_a_run_divides_the_shard_of_a_key_with_most_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From what the batch before took, once no worker does it for the first time."""
    made = batches(3)
    hot = int(pl.Series([HOT]).hash(0)[0] % 2)
    seen: list[dict[tuple[str, int], int]] = []
    choose, tell = Loads.portions, shards.load_line

    def seeing(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        seen.append(choose(self, queries, shards))
        return seen[-1]

    def taking(target: Any, query: str, shard: int, count: int, *_: float) -> Iterator[str]:
        return tell(target, query, shard, count, 0.0, (10.0 if shard == hot else 1.0) / count)

    monkeypatch.setattr(Loads, "portions", seeing)
    for module in (shards, portions):
        monkeypatch.setattr(module, "load_line", taking)
    near = tg.program(Near=a.join(b, *NEAR).select(k=a.k, s=a.t, t=b.t, c=a.c))
    reports = begun(Workers(monkeypatch, tasks=2), tmp_path, near, ["Near"], write(tmp_path, made)).all()
    assert len(seen) > 3
    assert seen[:2] == [{}, {}]
    assert all(chosen == {("Near", hot): 2} for chosen in seen[2:])
    told = [list(map(str, report.choices)) for report in reports if report.places]
    assert told[:2] == [[], []]
    assert all(some == [f"Near, shard {hot}: 2 portions (it took 10 s, the mean is 5.5 s)"] for some in told[2:])
    check_results(tmp_path, near, ["Near"], made)
