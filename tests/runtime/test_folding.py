"""Rows that stay for ever become one row per class: what is stored then, what results say, and what is not folded."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tests.shards import cases
from tidegate.algebra.functions.aggregates import TABLE, Function, Stored
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.nodes import Group, children
from tidegate.algebra.rewrites import rewrite_program
from tidegate.algebra.terms import Attr, Lit, attributes_of, call
from tidegate.algebra.types import BIGINT
from tidegate.analysis.facts import OccurrenceFacts
from tidegate.runtime.batch.garbage import Folding, GarbageCollection
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.embedded.steps import rewriting
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark import executor
from tidegate.runtime.eval.aggregates.fold_rows import folded
from tidegate.runtime.eval.aggregates.look_back_form import look_back
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.state.segments import read_segments
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = 5
o = tg.stream("O", "k bigint, t bigint, qty bigint", progress="t").as_("o")
p = tg.stream("P", "k bigint, t bigint, v bigint, name string, cost decimal(9, 2)", progress="t").as_("p")
other = tg.stream("P", "k bigint, t bigint, v bigint, name string, cost decimal(9, 2)", progress="t").as_("q")
earlier = tg.stream("O", "k bigint, t bigint, qty bigint", progress="t").as_("e")
z = tg.stream("Z", "k bigint, t bigint", progress="t").as_("z")
SAME = o.k == p.k
PAST = p.t <= o.t
BEFORE = o.left_join(earlier, o.k == earlier.k, earlier.t < o.t)
WITHIN = o.join(p, SAME, p.t < o.t).anti_join(z, z.k == p.k, p.t < z.t, z.t < o.t)
#: Each pair as soon as both rows are there.
ALL = o.join(p, SAME).select(k=o.k, qty=o.qty, v=p.v, m=tg.max(o.t, p.t))
#: The window in which both are there.
WINDOWS = ALL.select(ALL.k, ALL.qty, ALL.v, ALL.m, w=tg.ceil(ALL.m, 5))
#: What began and ended, as one stream of steps; values of two streams as one.
STEPS = p.select(k=p.k, t=p.t, step=tg.lit(1)).union(z.select(k=z.k, t=z.t, step=tg.lit(-1)))
EITHER = p.select(k=p.k, t=p.t, x=p.v).union(earlier.select(k=earlier.k, t=earlier.t, x=earlier.qty))
PRICED = o.join(p, SAME, PAST).select(k=o.k, t=o.t, x=p.v)
ENDED = o.join(z, o.k == z.k, z.t <= o.t).select(k=o.k, t=o.t, x=o.qty)
UNITED, LESS = PRICED.union(ENDED), PRICED.difference(ENDED)
LATEST = (
    o.left_join(p, SAME, PAST)
    .group_by(o.k, o.t, o.qty)
    .agg(
        v=tg.last(p.v, by=p.t),
        first=tg.first(p.name, by=p.t),
        at=tg.last(o.qty, by=p.t),
        x=tg.last(p.v, by=o.qty),
        dear=tg.last(p.v, by=p.cost),
    )
)
TOTALS = (
    o.left_join(p, SAME, PAST)
    .group_by(o.k, o.t)
    .agg(
        n=tg.count(), some=tg.count(p.v), s=tg.sum(p.v), mean=tg.avg(p.v), cost=tg.sum(p.cost), paid=tg.avg(p.cost),
        sold=tg.sum(o.qty), lots=tg.avg(o.qty), held=tg.count(o.qty), least=tg.min(p.name), most=tg.max(p.v),
    )
)  # fmt: skip
TWICE = (
    o.join(p, SAME, PAST)
    .left_join(z, z.k == o.k, z.t <= o.t)
    .group_by(o.k, o.t)
    .agg(n=tg.count(), s=tg.sum(p.v), ends=tg.count(z.k), mean=tg.avg(p.v), last=tg.last(z.t, by=z.t))
)
#: By name the query, and how many rows of each folded buffer are left at most when all is settled.
QUERIES: Mapping[str, tuple[Any, Mapping[str, int]]] = {
    "the latest price": (LATEST, {"P#0": KEYS}),
    "running totals": (TOTALS, {"P#0": KEYS}),
    "totals of some rows of a look-up": (
        o.left_join(p, SAME, PAST)
        .group_by(o.k, o.t)
        .agg(s=tg.sum(p.v, filter=p.v > 2), some=tg.count(filter=p.v > 2), far=tg.max(tg.when(p.v < 4, p.v))),
        {"P#0": KEYS},
    ),
    "two look-ups multiply": (TWICE, {"P#0": KEYS, "Z#0": KEYS}),
    "one stream looked up twice": (
        o.join(p, SAME, PAST)
        .join(other, o.k == other.k, other.t <= o.t)
        .group_by(o.k, o.t)
        .agg(n=tg.count(), s=tg.sum(p.v), most=tg.max(other.v)),
        {"P#0": KEYS},
    ),
    "the event before": (BEFORE.group_by(o.k, o.t).agg(b=tg.last(earlier.qty, by=earlier.t)), {"O#1": KEYS}),
    "seen first": (o.anti_join(earlier, o.k == earlier.k, earlier.t < o.t), {"O#1": KEYS}),
    "ever before": (o.semi_join(p, SAME, p.t < o.t), {"P#0": KEYS}),
    "in a context": (WITHIN.select(o.k, o.t, o.qty).distinct(), {"P#0": KEYS, "Z#0": KEYS}),
    "what data say": (o.join(p, SAME, PAST, p.v <= o.qty).group_by(o.k, o.t).agg(n=tg.count()), {"P#0": 5 * KEYS}),
    "several causes at once": (
        o.left_join(STEPS, o.k == STEPS.k, STEPS.t <= o.t)
        .group_by(o.k, o.t)
        .agg(open=tg.sum(STEPS.step), n=tg.count(), some=tg.count(STEPS.step), last=tg.last(STEPS.step, by=STEPS.t)),
        {"P#0": KEYS, "Z#0": KEYS},
    ),
    "values of two streams": (
        o.join(EITHER, o.k == EITHER.k, EITHER.t < o.t)
        .group_by(o.k, o.t)
        .agg(
            n=tg.count(),
            s=tg.sum(EITHER.x),
            mean=tg.avg(EITHER.x),
            least=tg.min(EITHER.x),
            some=tg.count(EITHER.x),
            last=tg.last(EITHER.x, by=EITHER.t),
            at=tg.last(EITHER.x, by=o.qty),
            sold=tg.sum(o.qty),
        ),
        {"P#0": KEYS, "O#1": KEYS},
    ),
    "a union of look-ups": (
        UNITED.group_by(UNITED.k, UNITED.t).agg(
            n=tg.count(), s=tg.sum(UNITED.x), mean=tg.avg(UNITED.x), most=tg.max(UNITED.x)
        ),
        {"P#0": KEYS, "Z#0": KEYS},
    ),
    "a union that is looked up from": (
        UNITED.join(other, UNITED.k == other.k, other.t <= UNITED.t)
        .group_by(UNITED.k, UNITED.t)
        .agg(n=tg.count(), s=tg.sum(UNITED.x), mean=tg.avg(UNITED.x), cost=tg.sum(other.v)),
        {"P#0": KEYS, "Z#0": KEYS},
    ),
    "a difference": (
        LESS.group_by(LESS.k, LESS.t).agg(n=tg.count(), s=tg.sum(LESS.x)),
        {"P#0": 5 * KEYS, "Z#0": KEYS},
    ),
    "everything with everything": (
        ALL.group_by(ALL.k, ALL.m).agg(n=tg.count(), sold=tg.sum(ALL.qty), most=tg.max(ALL.v), prices=tg.count(ALL.v)),
        {"P#0": KEYS, "O#0": KEYS},
    ),
    "everything with everything, in order of the later": (
        WINDOWS.group_by(WINDOWS.k, WINDOWS.w).agg(
            v=tg.last(WINDOWS.v, by=WINDOWS.m),
            qty=tg.first(WINDOWS.qty, by=WINDOWS.m),
            at=tg.max(WINDOWS.m),
            n=tg.count(),
        ),
        {"P#0": KEYS + 8, "O#0": KEYS + 4},
    ),
    "each different value": (
        o.join(p, SAME, PAST).group_by(o.k, o.t).agg(n=tg.count_distinct(p.v), all=tg.count()),
        {"P#0": 5 * KEYS},
    ),
    "about how many different values": (
        o.join(p, SAME, PAST)
        .group_by(o.k, o.t)
        .agg(n=tg.approx_distinct(p.v), all=tg.count(), s=tg.sum(p.v), names=tg.approx_distinct(o.qty)),
        {"P#0": 5 * KEYS},
    ),
    "about the value in the middle": (
        o.join(p, SAME, PAST)
        .left_join(z, z.k == o.k, z.t <= o.t)
        .group_by(o.k, o.t)
        .agg(
            v=tg.approx_quantile(p.v, 0.5),
            cost=tg.approx_quantile(p.cost, 0.9),
            qty=tg.approx_quantile(o.qty, 0.3),
        ),
        {"P#0": 9 * KEYS, "Z#0": KEYS},
    ),
}


def batches(seed: int, number: int = 20) -> Iterator[tuple[int, dict[str, list[dict[str, Any]]]]]:
    """Rows of each stream, ten ticks a batch, and how far they are complete then: some come later than others."""
    rng = random.Random(seed)
    for end in range(9, number * 10, 10):
        instants = [rng.randint(end - 8, end + 3) for _ in range(14)]
        yield (
            end,
            {
                "O": [{"k": rng.randrange(KEYS + 1), "t": t, "qty": rng.randrange(4)} for t in instants[:4]],
                "P": [
                    {"k": rng.randrange(KEYS), "t": t, "v": rng.choice((1, 2, 3, 9)), "name": rng.choice("abc")}
                    | rng.choice(({"cost": "0.10"}, {"cost": "1.25"}, {"cost": "2.25", "v": None}))
                    for t in instants[4:12]
                ],
                "Z": [{"k": rng.randrange(KEYS), "t": t} for t in instants[12:]],
            },
        )


def run(
    query: Any,
    *,
    collect: GarbageCollection = "exact",
    folding: Sequence[Folding] = ("on",),
    store: Store | None = None,
    every: int = 0,
) -> tuple[pl.DataFrame, list[dict[str, int]]]:
    """The results, and what was stored after each batch. After so many batches the run begins again, folding or not."""
    program = tg.program(R=query)
    inputs = {stream.name for stream in program.facts.program.inputs}
    store = store or MemoryStore()
    starts = 0

    def begin() -> Session:
        options = RunOptions(collect_garbage=collect, purging="off", folding=folding[starts % len(folding)])
        return Session(program.facts, store, options=options)

    session, live = begin(), []
    for number, (end, rows) in enumerate(batches(1)):
        for name in inputs:
            session.push(name, rows[name])
            session.advance(name, {"t": end})
        live.append(dict(session.step().live_rows))
        if every and number % every == every - 1:
            session.close()
            starts += 1
            session = begin()
    found = pl.DataFrame(session.results("R"))
    session.close()
    return found.sort(found.columns), live


#: Queries of quick tests: they differ in what is folded.
QUICK = (
    "totals of some rows of a look-up",
    "the event before",
    "seen first",
    "ever before",
    "in a context",
    "what data say",
    "each different value",
)


def of_all_rows(query: Any) -> tuple[pl.DataFrame, list[dict[str, int]]]:
    """The same by a plan that knows nothing of folding: no row carries what stands for several."""
    with patch.object(OccurrenceFacts, "folds", new=False):
        return run(query)


@pytest.mark.parametrize("name", cases(((name,) for name in QUERIES), lambda name: name in QUICK))
def test_results_are_those_of_all_rows_and_state_is_a_row_a_class(name: str) -> None:
    query, left = QUERIES[name]
    wanted, unfolded = of_all_rows(query)
    plain, _ = run(query, folding=["off"])
    assert plain.equals(wanted)
    exact, live = run(query)
    assert wanted.height >= KEYS
    assert exact.equals(wanted)
    for buffer, classes in left.items():
        ahead = max(sum(row["t"] > end for row in rows[buffer[0]]) for end, rows in batches(1))
        classes += buffer[0] == "O"
        assert unfolded[-1][f"{buffer[0]}#0"] > 2 * (classes + ahead), "so that it shows"
        assert max(one[buffer] for one in live) <= classes + ahead
    amortised, live = run(query, collect="amortised")
    assert amortised.equals(wanted)
    for buffer, classes in left.items():
        assert max(one[buffer] for one in live) <= 2 * classes + 3 * 14


@pytest.mark.parametrize("name", cases(((name,) for name in QUERIES), lambda name: name in QUICK))
def test_a_run_goes_on_with_what_is_folded_whether_or_not_it_folds(name: str, tmp_path: Path) -> None:
    query, _ = QUERIES[name]
    wanted, _ = run(query, folding=["off"])
    found, _ = run(
        query, folding=["on", "on", "off"], every=4, collect="amortised", store=LocalStore(tmp_path / "state")
    )
    assert found.equals(wanted)


def test_rows_fold_once_the_increment_has_passed_and_not_before() -> None:
    """Orders that come together with prices after them look up those before them."""
    program = tg.program(R=o.join(p, SAME, PAST).group_by(o.t).agg(v=tg.last(p.v, by=p.t), n=tg.count()))
    prices = [{"k": 1, "t": t, "v": t, "name": "a", "cost": None} for t in (1, 5, 9)]
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        session.push("P", prices)
        session.push("O", [{"k": 1, "t": t, "qty": 1} for t in (3, 7)])
        for name in "OP":
            session.advance(name, {"t": 20})
        assert session.step().live_rows["P#0"] == 1
        found = sorted((row["t"], row["v"], row["n"]) for row in session.results("R"))
    assert found == [(3, 1, 1), (7, 5, 2)]


def test_a_row_that_one_occurrence_folds_stays_for_the_other() -> None:
    """What comes at the next tick is settled for rows that look back at it, and has its own look-up before it."""
    looked = o.left_join(earlier, o.k == earlier.k, earlier.t <= o.t)
    program = tg.program(R=looked.group_by(o.t, o.qty).agg(n=tg.count()))
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        session.push("O", [{"k": 1, "t": t, "qty": qty} for t, qty in ((5, 1), (10, 2), (10, 3))])
        session.advance("O", {"t": 9})
        assert session.step().live_rows == {"O#0": 2, "O#1": 1}
        session.advance("O", {"t": 20})
        session.step()
        found = sorted((row["t"], row["qty"], row["n"]) for row in session.results("R"))
    assert found == [(5, 1, 1), (10, 2, 3), (10, 3, 3)]


def test_queries_and_occurrences_whose_folds_are_equal_share_a_buffer() -> None:
    """Whatever they read of a class, and whatever the instants of their results are called."""
    pairs, padded = o.join(p, SAME, PAST), o.left_join(p, SAME, PAST)
    queries = {
        "Last": pairs.group_by(o.k, o.t).agg(v=tg.last(p.v, by=p.t)),
        "Total": padded.group_by(o.k, at=o.t).agg(s=tg.sum(p.v), n=tg.count()),
        "Ever": o.semi_join(p, SAME, PAST),
        "Twice": QUERIES["one stream looked up twice"][0],
        # Others: what has to be settled, what tells classes apart, and which row stands for a class.
        "Earlier": o.join(p, SAME, p.t <= o.t - 5).group_by(o.k, o.t).agg(s=tg.sum(p.v)),
        "ByName": pairs.group_by(o.k, o.t, p.name).agg(s=tg.sum(p.v)),
        "Context": WITHIN.select(o.k, o.t, o.qty).distinct(),
    }
    plan = lower(tg.program(**queries).facts)
    shared = [
        {(reader.query, reader.leaf) for reader in buffer.fold.readers}
        for buffer in plan.buffers
        if buffer.fold is not None and buffer.stream.name == "P"
    ]
    assert {("Last", 1), ("Total", 1), ("Ever", 1), ("Twice", 1), ("Twice", 2)} in shared
    assert sorted(map(len, shared)) == [1, 1, 1, 5]
    again = lower(tg.program(**dict(reversed(queries.items()))).facts)
    assert {(one.id, one.chain.schema.names) for one in again.buffers} == {
        (one.id, one.chain.schema.names) for one in plan.buffers
    }


@pytest.mark.parametrize("every", [{}, {"Total": 4}, {"Last": 3, "Ever": 5}])
def test_a_buffer_that_queries_share_folds_what_is_settled_for_all(every: dict[str, int]) -> None:
    """A query that its schedule leaves behind still tells apart what others do not."""
    pairs = o.left_join(p, SAME, PAST).group_by(o.k, o.t)
    program = tg.program(
        Last=pairs.agg(v=tg.last(p.v, by=p.t)),
        Total=pairs.agg(n=tg.count(), s=tg.sum(p.v)),
        Ever=o.semi_join(p, SAME, PAST),
    )
    found = []
    for folding in ("on", "off"):
        with program.session(
            schedule=tg.schedule(every=every), collect_garbage="exact", folding=folding, purging="off"
        ) as session:
            live = []
            for end, rows in batches(3):
                for name in "OP":
                    session.push(name, rows[name])
                    session.advance(name, {"t": end})
                live.append(session.step().live_rows)
            session.finish()
            for _ in range(6):
                session.step()
            found.append({name: sorted(map(str, session.results(name))) for name in ("Last", "Total", "Ever")})
        assert [name for name in live[-1] if name.startswith("P")] == ["P#0"]
        if folding == "on":
            behind = 10 * max(every.values(), default=1)
            assert max(one["P#0"] for one in live) <= KEYS + 8 * (1 + behind // 10)
    assert found[0] == found[1]
    assert all(found[0].values())


def test_rows_of_a_part_that_is_a_stream_of_its_own_fold(tmp_path: Path) -> None:
    """Prices that no end of their key has followed within ten ticks; of these one of each key is kept."""
    lasting = p.anti_join(z, z.k == p.k, p.t < z.t, z.t <= p.t + 10)
    query = o.left_join(lasting, SAME, PAST).group_by(o.k, o.t).agg(n=tg.count(p.v), v=tg.last(p.v, by=p.t))
    with patch("tidegate.analysis.pipeline.with_cuts", lambda *_: None):
        wanted, unfolded = run(query, folding=["off"])
    exact, live = run(query)
    amortised, _ = run(query, collect="amortised", every=4, folding=["on", "on", "off"], store=LocalStore(tmp_path))
    assert wanted.height > KEYS
    assert exact.equals(wanted)
    assert amortised.equals(wanted)
    assert unfolded[-1]["P#0"] > 100
    assert set(live[-1]) == {"O#0", "P#0", "Z#0", "R~1#0"}
    # A price is final ten ticks after its own: of three batches each is by itself.
    assert max(one["P#0"] for one in live) <= 3 * 8 + 8
    assert max(one["R~1#0"] for one in live) <= KEYS + 8


#: So much of each key is accepted.
LIMIT = 12


def accepted_orders() -> tg.Program:
    """Orders are accepted as long as those of their key that were accepted before have not reached a limit."""
    accepted = tg.result("Accepted", "k bigint, t bigint, qty bigint", progress="t")
    before = accepted.as_("a")
    known = (
        o.left_join(before, o.k == before.k, before.t < o.t)
        .group_by(o.k, o.t, o.qty)
        .agg(total=tg.sum(before.qty), n=tg.count(before.qty))
    )
    within = known.where((tg.coalesce(known.total, 0) < LIMIT) | (known.n % 5 == 4))
    return tg.program(tg.query(accepted, within.select(known.k, known.t, known.qty)))


@pytest.mark.parametrize("collect", ["exact", "amortised"])
@pytest.mark.parametrize("folding", [["on"], ["off"], ["on", "off"]])
def test_a_recursion_reads_its_own_results_folded(
    collect: GarbageCollection, folding: Sequence[Folding], tmp_path: Path
) -> None:
    program, store = accepted_orders(), LocalStore(tmp_path / "state")
    orders: set[tuple[int, int, int]] = set()
    live, found = [], []
    for number, (end, rows) in enumerate(batches(4)):
        options = RunOptions(collect_garbage=collect, folding=folding[number // 5 % len(folding)])
        with Session(program.facts, store, options=options) as session:
            session.push("O", rows["O"])
            session.advance("O", {"t": end if number < 19 else end + 10})
            live.append(session.step().live_rows)
            found += [(row["k"], row["t"], row["qty"]) for row in session.results("Accepted")]
        orders |= {(row["k"], row["t"], row["qty"]) for row in rows["O"]}
    wanted: list[tuple[int, int, int]] = []
    for t in sorted({t for _, t, _ in orders}):
        then = [order for order in orders if order[1] == t]
        earlier_ones = {k: [qty for key, _, qty in wanted if key == k] for k, _, _ in then}
        wanted += [one for one in then if sum(earlier_ones[one[0]]) < LIMIT or len(earlier_ones[one[0]]) % 5 == 4]
    assert 3 * LIMIT < len(wanted) < len(orders) - 5
    assert sorted(set(found)) == sorted(wanted)
    (buffer,) = (name for name in live[0] if name.startswith("Accepted"))
    if folding == ["on"]:
        assert max(one[buffer] for one in live) <= (1 if collect == "exact" else 4) * (KEYS + 1) + 8
    if folding == ["off"]:
        assert live[-1][buffer] == len(wanted)


def test_what_rows_look_up_is_counted_without_a_list_of_pairs() -> None:
    query = o.left_join(p, SAME, PAST).group_by(o.k, o.t)
    program = tg.program(R=query.agg(n=tg.count(), v=tg.last(p.v, by=p.t), s=tg.sum(p.v), mean=tg.avg(p.v)))
    tree = lower(program.facts, optimise=rewrite_program).queries[0].tree
    while not isinstance(tree, Group):
        (tree,) = children(tree)
    assert look_back(tree) is not None


def test_a_table_with_several_matches_is_joined_when_folded_rows_are_read() -> None:
    names = tg.table("Names", "k bigint, label string").as_("n")
    query = o.join(p, SAME, PAST).join(names, names.k == p.k).group_by(o.k, o.t).agg(n=tg.count(), s=tg.sum(p.v))
    statics = {"Names": [{"k": k % KEYS, "label": str(k)} for k in range(2 * KEYS - 1)]}
    found = []
    for folding in ("on", "off"):
        options = RunOptions(collect_garbage="exact", folding=folding)
        with Session(tg.program(R=query).facts, statics=statics, options=options) as session:
            for end, rows in batches(2):
                for name in "OP":
                    session.push(name, rows[name])
                    session.advance(name, {"t": end})
                live = session.step().live_rows
            found.append(pl.DataFrame(session.results("R")).sort("t", "k"))
        assert (live["P#0"] <= KEYS + 8) == (folding == "on")
    assert found[0].equals(found[1])


BOTH = tg.program(Totals=TOTALS, Context=QUERIES["in a context"][0])


def write(place: Path, numbers: range) -> None:
    """A file of each stream for each of these batches, with times that follow each other."""
    for number, (_, rows) in enumerate(batches(1)):
        for name in "OPZ":
            if number in numbers:
                path = place / name / f"{number:03d}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                frame = pl.DataFrame(rows[name])
                if name == "P":
                    frame = frame.with_columns(pl.col("cost").cast(pl.Decimal(9, 2)))
                frame.write_parquet(path)
                os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def go_on(
    place: Path,
    spark: SparkSession | None,
    driver_bytes: int | None = None,
    shard_bytes: int | None = None,
    **options: Any,
) -> None:
    """What is in the directories, on an engine, with results in files."""
    sources = {name: tg.parquet(place / name, per_batch=1, delay=12) for name in "OPZ"}
    given: dict[str, Any] = {
        "sources": sources,
        "sinks": {name: tg.parquet_sink(place / name) for name in ("Totals", "Context")},
        "checkpoint": place / "state",
        **options,
    }
    if spark is None:
        with BOTH.session(**given) as session:
            session.process()
    else:
        BOTH.start(spark, driver_bytes=driver_bytes, shard_bytes=shard_bytes, **given).awaitTermination()


def written(place: Path) -> list[pl.DataFrame]:
    made = [pl.read_parquet(place / name / "*.parquet") for name in ("Totals", "Context")]
    return [frame.sort(frame.columns) for frame in made]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("driver_bytes", "shard_bytes"),
    [(None, None), *(pytest.param(0, size, marks=pytest.mark.long) for size in (None, 0))],
    ids=["in the driver", "in workers", "as DataFrames"],
)
def test_a_folded_run_goes_on_with_the_other_engine(
    driver_bytes: int | None, shard_bytes: int | None, tmp_path: Path, spark: SparkSession
) -> None:
    for end, engine in ((6, None), (9, spark), (15, None), (20, spark)):
        write(tmp_path, range(end))
        go_on(tmp_path, engine, driver_bytes, shard_bytes)
    write(tmp_path / "whole", range(20))
    go_on(tmp_path / "whole", None, folding="off")
    wanted = written(tmp_path / "whole")
    assert all(frame.height > 30 for frame in wanted)
    assert all(one.equals(other) for one, other in zip(written(tmp_path), wanted, strict=True))
    state = list_state(LocalStore(tmp_path / "state"))
    if shard_bytes is None:
        assert all(one.rows <= 4 * KEYS + 24 for one in state.buffers)


@pytest.mark.long
@pytest.mark.spark
def test_on_spark_rows_that_follow_an_empty_batch_of_a_pack_are_read(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`createDataFrame` of an Arrow table ends at its first empty batch."""
    write(tmp_path, range(6))
    go_on(tmp_path, None)

    def after_nothing(*asked: Any) -> pa.Table:
        table = read_segments(*asked)
        return pa.concat_tables([table.slice(0, 0), table])

    monkeypatch.setattr(executor, "read_segments", after_nothing)
    write(tmp_path, range(9))
    go_on(tmp_path, spark, 0, 0)
    write(tmp_path / "whole", range(9))
    go_on(tmp_path / "whole", None)
    wanted = written(tmp_path / "whole")
    assert all(frame.height > 10 for frame in wanted)
    assert all(one.equals(other) for one, other in zip(written(tmp_path), wanted, strict=True))


def test_folded_pieces_of_a_large_rewrite_are_folded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, _ = run(TOTALS, folding=["off"])
    monkeypatch.setattr(rewriting, "PIECE_ROWS", 3)
    found, live = run(TOTALS)
    assert found.equals(wanted)
    assert live[-1]["P#0"] <= KEYS + 8


def test_classes_whose_totals_do_not_fit_stay_as_they_are() -> None:
    program = tg.program(R=o.join(p, SAME, PAST).group_by(o.k, o.t).agg(s=tg.sum(p.v)))
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        session.push("P", [{"k": 0, "t": t, "v": 2**62, "name": "a", "cost": "1"} for t in range(2)])
        for name in "OP":
            session.advance(name, {"t": 5})
        session.step()
        for end, v in ((10, -(2**62)), (20, 0)):
            session.push("P", [{"k": 0, "t": end, "v": v, "name": "a", "cost": "1"}])
            session.push("O", [{"k": 0, "t": end, "qty": 1}])
            for name in "OP":
                session.advance(name, {"t": end})
            session.step()
        assert [row["s"] for row in session.results("R")] == [2**62, 2**62]


def test_beside_a_class_whose_total_does_not_fit_others_fold() -> None:
    program = tg.program(R=o.left_join(p, SAME, PAST).group_by(o.k, o.t).agg(s=tg.sum(p.v), n=tg.count(p.v)))
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        values = [(0, 2**62), (0, 2**62), *((1, v) for v in range(4)), (2, None), (2, None)]
        session.push("P", [{"k": k, "t": t, "v": v, "name": "a", "cost": "1"} for t, (k, v) in enumerate(values)])
        for name in "OP":
            session.advance(name, {"t": 20})
        assert session.step().live_rows["P#0"] == 2 + 1 + 1


@pytest.mark.filterwarnings("ignore:TG435")
@pytest.mark.parametrize("folding", ["on", "off"])
def test_values_of_another_stream_times_many_rows(folding: Folding) -> None:
    """A row stands for six, and six times its value is no bigint: an average has it, a total is NULL."""
    pairs = o.join(p, SAME, PAST).group_by(o.k, o.t)
    program = tg.program(
        Mean=pairs.agg(mean=tg.avg(o.qty), total=tg.try_sum(o.qty), n=tg.count(o.qty)),
        Total=pairs.agg(s=tg.sum(o.qty), n=tg.count()),
    )
    with Session(program.facts, options=RunOptions(collect_garbage="exact", folding=folding)) as session:
        rows = [{"k": 0, "t": t, "v": 1, "name": "a", "cost": "1"} for t in range(6)]
        session.push("P", rows)
        for end, qty in ((10, 1_500_000_000_000_000_000), (20, 1_772_000_000_000_000_000), (30, -(2**60)), (40, None)):
            session.push("O", [{"k": 0, "t": end, "qty": qty}])
            for name in "OP":
                session.advance(name, {"t": end})
            report = session.step()
            if qty == 1_772_000_000_000_000_000:
                assert report.set_aside == {"Total": {"overflow": 1}}
        assert (report.live_rows["P#0"] == 1) == (folding == "on")
        kinds = [1_500_000_000_000_000_000, 1_772_000_000_000_000_000, -(2**60), None]
        means = [None if value is None else float(value) for value in kinds]
        totals = [9_000_000_000_000_000_000, None, -6 * 2**60, None]
        found = sorted(session.results("Mean"), key=lambda row: row["t"])
        assert [(row["mean"], row["total"], row["n"]) for row in found] == [
            (mean, total, 0 if mean is None else 6) for mean, total in zip(means, totals, strict=True)
        ]
        assert [(row["s"], row["n"]) for row in sorted(session.results("Total"), key=lambda row: row["t"])] == [
            (9_000_000_000_000_000_000, 6), (None, 6), (-6 * 2**60, 6), (None, 6)
        ]  # fmt: skip


@pytest.mark.parametrize("values", [[-1], [-1, 1], [-(2**31), 2**31], [2**40 - 1, -(2**40)]])
@pytest.mark.parametrize("folding", ["on", "off"])
def test_small_values_of_any_sign_times_very_many_rows(values: list[int], folding: Folding) -> None:
    """2.1 thousand million pairs of a group, of which off lists as many as it must, and on none."""
    count, times = (70_000, 33_000) if folding == "on" else (70, 33)
    pairs = o.join(p, SAME, PAST).group_by(o.k, w=tg.ceil(o.t, 1_000))
    program = tg.program(R=pairs.agg(s=tg.sum(o.qty), t=tg.try_sum(o.qty), mean=tg.avg(o.qty), n=tg.count()))
    options = RunOptions(collect_garbage="exact", folding=folding, on_error="fail")
    with Session(program.facts, options=options) as session:
        session.push(
            "P",
            pl.DataFrame({"k": [0] * count, "t": [n % 1_000 for n in range(count)]}).with_columns(
                v=pl.lit(1, pl.Int64), name=pl.lit("a"), cost=pl.lit(None, pl.Decimal(9, 2))
            ),
        )
        for end in (1_000, 2_000):
            for name in "OP":
                session.advance(name, {"t": end})
            session.step()
        given = [values[n % len(values)] for n in range(times)]
        session.push("O", pl.DataFrame({"k": [0] * times, "t": [2_001 + n % 999 for n in range(times)], "qty": given}))
        session.finish()
        session.step()
        (row,) = session.results("R")
        total = sum(given) * count
        assert (row["s"], row["t"], row["n"]) == (total, total, times * count)
        assert row["mean"] == pytest.approx(total / (times * count))


def test_of_very_many_values_a_sketch_keeps_one_a_class_of_hashes() -> None:
    """So it says the same of them, and as much more is stored as there are classes."""
    seen = tg.stream("V", "k bigint, t bigint, v bigint", progress="t").as_("v")
    query = o.join(seen, o.k == seen.k, seen.t <= o.t).group_by(o.k, o.t).agg(n=tg.approx_distinct(seen.v))
    found, count = [], 20_000
    for folding in ("on", "off"):
        with Session(
            tg.program(R=query).facts, options=RunOptions(collect_garbage="exact", folding=folding)
        ) as session:
            for part in range(2):
                numbers = pl.int_range(count, eager=True)
                session.push(
                    "V", pl.DataFrame({"k": numbers * 0, "t": numbers * 0 + part, "v": numbers + part * 1_000})
                )
                for name in "OV":
                    session.advance(name, {"t": part})
                live = session.step().live_rows["V#0"]
            assert (live <= 4096) == (folding == "on")
            session.push("O", [{"k": 0, "t": 5, "qty": 1}])
            session.finish()
            session.step()
            found += [row["n"] for row in session.results("R")]
    assert found[0] == found[1]
    assert found[0] == pytest.approx(21_000, rel=0.06)


def test_sums_of_doubles_fold_with_what_they_have_lost() -> None:
    """Of values that cancel out, of a class that has infinite ones, and of one whose sum would be infinite."""
    prices = tg.stream("D", "k bigint, t bigint, v double", progress="t").as_("d")
    query = (
        o.left_join(prices, o.k == prices.k, prices.t <= o.t)
        .group_by(o.k, o.t)
        .agg(s=tg.sum(prices.v), mean=tg.avg(prices.v), tried=tg.try_sum(prices.v), n=tg.count())
    )
    values: dict[int, list[float | None]] = {
        0: [1e17, 1.0, 3.0, -1e17, 0.125],
        1: [math.inf, 1.0, 2.0],
        2: [1.7e308, 1.7e308, -1.7e308, -1.0],
        3: [None, None],
        4: [0.1] * 10,
        5: [2.0**-40, 1e20, None, -1e20, 2.0**-41],
    }
    rows = [{"k": k, "t": t, "v": v} for k, some in values.items() for t, v in enumerate(some)]
    found = {}
    for folding in ("on", "off"):
        options = RunOptions(collect_garbage="exact", folding=folding)
        with Session(tg.program(R=query).facts, options=options) as session:
            for end in range(10):
                session.push("D", [row for row in rows if row["t"] == end])
                session.push("O", [{"k": k, "t": end, "qty": 1} for k in (*values, 9)])
                for name in "DO":
                    session.advance(name, {"t": end})
                report = session.step()
            found[folding] = sorted((tuple(row.values()) for row in session.results("R")), key=repr)
        if folding == "on":
            assert report.live_rows["D#0"] == len(values)
    for one, other in zip(found["on"], found["off"], strict=True):
        assert all(a is b or a == pytest.approx(b, rel=1e-15, abs=0) for a, b in zip(one, other, strict=True)), one
    last = {k: s for k, t, s, *_ in found["on"] if t == 9}
    assert (last[0], last[1], last[2], last[3], last[5]) == (4.125, math.inf, 1.7e308, None, 1.5 * 2.0**-40)


def test_classes_of_text_fold_also_where_there_are_many_rows() -> None:
    """The compiled kernels take over from 20,000 rows on."""
    text = tg.stream("T", "k string, t bigint, v bigint", progress="t").as_("x")
    asked = tg.stream("A", "k string, t bigint", progress="t").as_("a")
    query = asked.left_join(text, asked.k == text.k, text.t <= asked.t).group_by(asked.k, asked.t)
    with Session(tg.program(R=query.agg(s=tg.sum(text.v))).facts, options=RunOptions()) as session:
        for batch in range(6):
            rows = {"k": ["a", "b"] * 15_000, "t": [10 * batch] * 30_000, "v": [1] * 30_000}
            session.push("T", pl.DataFrame(rows))
            for name in "TA":
                session.advance(name, {"t": 10 * batch + 9})
            live = session.step().live_rows["T#0"]
        assert live < 30_000
        session.push("A", [("a", 70)])
        session.finish()
        session.step()
        assert [row["s"] for row in session.results("R")] == [6 * 15_000]


def test_more_combinations_than_can_be_counted_are_no_zero() -> None:
    """Of four look-ups: a pair of rows stands for 2**64 combinations, two pairs for 2**62 each, one for 2**60."""
    streams = [tg.stream(name, "k bigint, t bigint", progress="t").as_(name.lower()) for name in "ABCD"]
    joined = o
    for one in streams:
        joined = joined.join(one, one.k == o.k, one.t <= o.t)
    program = tg.program(R=joined.group_by(o.t).agg(n=tg.count()))
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        for name in "ABCD":
            for key, count in ((0, 2**16), (1, 2**15), (2, 2**15 + 2**15 * (name in "AB"))):
                session.push(name, pl.DataFrame({"k": [key] * count, "t": list(range(count))}))
        for name in "OABCD":
            session.advance(name, {"t": 1 << 17})
        assert session.step().live_rows["A#0"] == 3
        end = 1 << 17
        keys = ((0,), (1,), (2, 2), (0, 1))
        session.push("O", [{"k": k, "t": end + n, "qty": 1} for n, some in enumerate(keys, 1) for k in some])
        for name in "OABCD":
            session.advance(name, {"t": end + len(keys)})
        with pytest.warns(tg.RunWarning, match="out of range"):
            report = session.step()
        assert report.set_aside == {"R": {"unevaluable": 3}}
        assert [(row["t"] - end, row["n"]) for row in session.results("R")] == [(2, 2**60)]


def test_folding_reads_rows_as_often_as_pieces_double(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def counted(rows: pl.DataFrame, *rest: Any) -> pl.DataFrame:
        given.append(rows.height)
        return folded(rows, *rest)

    monkeypatch.setattr(rewriting, "folded", counted)
    monkeypatch.setattr(rewriting, "PIECE_ROWS", 10)
    program = tg.program(R=o.join(p, SAME, PAST).group_by(o.k, o.t).agg(s=tg.sum(p.v)))
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        count = 2_000
        session.push("P", [{"k": n, "t": n, "v": n, "name": "a", "cost": "1"} for n in range(count)])
        for name in "OP":
            session.advance(name, {"t": count})
        assert session.step().live_rows["P#0"] == count
    assert len(given) > 2
    assert sum(given) <= 4 * count


def test_an_average_beyond_what_a_total_can_be() -> None:
    query = o.join(p, SAME, PAST).group_by(o.k, o.t).agg(a=tg.avg(p.v))
    for folding in ("on", "off"):
        options = RunOptions(collect_garbage="exact", folding=folding)
        with Session(tg.program(R=query).facts, options=options) as session:
            for end in (10, 20, 30):
                session.push("P", [{"k": 0, "t": end, "v": 2**62, "name": "a", "cost": "1"}])
                session.push("O", [{"k": 0, "t": end, "qty": 1}])
                for name in "OP":
                    session.advance(name, {"t": end})
                session.step()
            assert [row["a"] for row in session.results("R")] == [2.0**62] * 3


def test_the_row_of_a_class_is_one_of_its_rows() -> None:
    """A mixture of instants might be no row that keep lets stay."""
    started = tg.stream("S", "k bigint, t bigint, u bigint", progress="t", temporal=["u"]).as_("s")
    query = o.semi_join(started, o.k == started.k, started.t < o.t)
    (buffer,) = (one for one in lower(tg.program(R=query).facts).buffers if one.fold is not None)
    rows = pl.DataFrame({"k": [0, 0, 0], "t": [1, 2, 3], "u": [7, 5, 6]})
    assert buffer.fold is not None
    found = folded(rows, buffer.fold, buffer.fold.settled({"R": {"t": 5}}), buffer.stored)
    assert found.height == 1
    assert found.row(0) in set(rows.iter_rows())


def test_rows_of_other_truth_values_are_of_other_classes() -> None:
    query = o.semi_join(p, SAME, p.t < o.t)
    (buffer,) = (one for one in lower(tg.program(R=query).facts).buffers if one.fold is not None)
    rows = pl.DataFrame({"k": [0, 0, 0], "t": [1, 2, 3]})
    assert buffer.fold is not None
    settled = buffer.fold.settled({"R": {"t": 5}})
    assert len(settled.truths) == 1
    assert folded(rows, buffer.fold, settled, buffer.stored).height == 1
    told_apart = replace(settled, truths=(call("le", Attr("t"), Lit(2, BIGINT)),))
    assert folded(rows, buffer.fold, told_apart, buffer.stored)["t"].sort().to_list() == [1, 3]


def test_what_the_analysis_allows_and_the_runtime_does_not_is_said_by_name() -> None:
    pairs = o.join(p, SAME, PAST)
    paid = tg.stream("D", "k bigint, t bigint, v double", progress="t").as_("d")
    doubles = paid.join(p, paid.k == p.k, p.t <= paid.t).group_by(paid.k, paid.t)
    unfit = {
        "median(p.v) needs every value": pairs.group_by(o.k, o.t).agg(m=tg.median(p.v)),
        "sum(d.v) adds a double of another stream": doubles.agg(s=tg.sum(paid.v), n=tg.count(p.v)),
        "the result has each row by itself": pairs.select(o.k, o.t, p.v),
        "o.qty * p.v can fail": pairs.group_by(o.k, o.t).agg(s=tg.sum(o.qty * p.v)),
    }
    for why, query in unfit.items():
        explained = tg.program(R=query).explain()
        occurrences = [one for one in explained.to_dict()["queries"][0]["occurrences"] if "not_folded" in one]
        assert all(why in one["not_folded"] for one in occurrences)
        assert occurrences
        assert "unbounded" in str(explained.report)
        assert f"  not folded  {occurrences[0]['occurrence']}" in str(explained.report)
        assert why in str(explained.report)


def test_what_stands_against_folding_is_told_with_what_does_not() -> None:
    """As what is said then folds."""
    pairs, padded = o.join(p, SAME, PAST), o.left_join(p, SAME, PAST)
    squared = p.with_(x=p.v * p.v)
    before = (o.k == squared.k, squared.t <= o.t)
    mends: dict[str, tuple[Any, list[Any]]] = {
        "compute it before the join: p.with_(x=p.v * p.v)": (
            padded.group_by(o.k, o.t).agg(s=tg.sum(p.v * p.v)),
            [
                joined.group_by(o.k, o.t).agg(s=tg.sum(squared.x))
                for joined in (o.join(squared, *before), o.left_join(squared, *before))
            ],
        ),
        "such as x.try_mul(y), in the place of o.qty * p.v": (
            pairs.group_by(o.k, o.t).agg(s=tg.sum(o.qty * p.v)),
            [pairs.group_by(o.k, o.t).agg(s=tg.sum(o.qty.try_mul(p.v)))],
        ),
        "approx_quantile keeps a sketch": (
            pairs.group_by(o.k, o.t).agg(m=tg.median(p.v)),
            [pairs.group_by(o.k, o.t).agg(m=tg.approx_quantile(p.v, 0.5))],
        ),
        "leave its instant out of the keys": (
            pairs.group_by(o.k, o.t, since=p.t).agg(n=tg.count()),
            [pairs.group_by(o.k, o.t).agg(since=tg.max(p.t), n=tg.count())],
        ),
        "aggregate t by itself": (
            pairs.group_by(o.k, o.t).agg(age=tg.min(o.t - p.t)),
            [pairs.group_by(o.k, o.t).agg(since=tg.max(p.t))],
        ),
    }
    for hint, (query, mended) in mends.items():
        assert hint in " ".join(note.hint for note in tg.program(R=query).notes())
        for said in mended:
            (facts,) = tg.program(R=said).facts.queries
            assert [one.folds for one in facts.occurrences if one.stream.name == "P"] == [True], hint


@pytest.mark.parametrize("function", TABLE, ids=lambda function: function.value)
def test_an_aggregate_folds_as_its_entry_says(function: Function) -> None:
    """To a partial result, to a row of each different value, or not at all."""
    entry = TABLE[function]
    x = p.name if function is Function.STRING_AGG else p.v
    aggregate = eval(entry.written, {"tg": tg, "x": x, "y": p.t})  # noqa: S307  # written in the table
    facts = tg.program(R=o.join(p, SAME, PAST).group_by(o.k, o.t).agg(r=aggregate)).facts
    (occurrence,) = (one for one in facts.queries[0].occurrences if one.stream.name == "P")
    assert occurrence.folds == (entry.stored is not Stored.ROWS)
    assert bool(occurrence.not_folded) != occurrence.folds
    if occurrence.folding is not None and occurrence.folds:
        read = {name for one in occurrence.folding.classes.read for name in attributes_of(one.term)}
        assert read == ({"k", "v"} if entry.stored is Stored.VALUES else {"k"})
        places = {None: [], Sketch.DISTINCT: ["hash class of v"], Sketch.QUANTILES: ["part of v"]}
        assert occurrence.folding.by == [*sorted(read), *places[entry.sketch]]
    assert entry.folded


def test_explain_and_the_state_listing_say_what_is_left_of_a_row(tmp_path: Path) -> None:
    program = tg.program(R=o.join(p, SAME, PAST).group_by(o.k, o.t).agg(v=tg.last(p.v, by=p.t)))
    report = str(program.explain().report)
    assert "P  while t - 1 > p(t), then one row by k, with last(p.v, by=p.t)\n" in report
    assert "P  keys(P by k) + rate(P) × (skew(P) + lag)\n" in report
    assert "no run can start from a later part of it" in report
    assert program.explain().to_dict()["queries"][0]["whole_past"]
    stored = "up to four times as many folded rows are stored"
    assert stored in report
    assert stored not in str(tg.program(R=p.ticks(5, by="k", order="t")).explain().report)
    bounded = tg.program(R=o.join(p, SAME, PAST, o.t <= p.t + 5).group_by(o.k, o.t).agg(n=tg.count())).explain()
    assert "no run can start" not in str(bounded.report)
    assert not bounded.to_dict()["queries"][0]["whole_past"]
    with program.session(checkpoint=tmp_path / "state") as session:
        session.push("P", [{"k": 0, "t": 1, "v": 1, "name": "a", "cost": "1"}])
        session.step()
    assert "buffer P#0: 1 folded row of P" in (listed := str(list_state(LocalStore(tmp_path / "state"))))
    assert "while t - 1 > p(t), then one row by k, with last(p.v, by=p.t)" in listed
