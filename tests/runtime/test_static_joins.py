"""A join with a static table stands before or after the buffer of a stream, by what the table holds; results are the
same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tidegate import testing
from tidegate.algebra.rewrites import rewrite_program
from tidegate.algebra.semantics import as_bag, evaluate_program
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval.static_matches import StaticMatches, _overlapping
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.inspect.why import why_checkpoint
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

events = tg.stream("E", "k bigint, t bigint", progress="t")
others = tg.stream("O", "k bigint, t bigint", progress="t")
names = tg.table("N", "k bigint, part bigint")
sides = tg.table("M", "part bigint, side string")
e, o, n, m = events.as_("e"), others.as_("o"), names.as_("n"), sides.as_("m")
joined = e.join(n, n.k == e.k)
matched = joined.select(k=e.k, t=e.t, part=n.part)
unequal = matched.where(matched.k < 3)  # the table has no row twice for these

MANY = [(1, part) for part in range(20)] + [(3, 1), (3, 1), (None, 4)]
ONCE = [(k, k) for k in range(3)]
SIDES = [(1, "left"), (1, "right"), (2, "left")]

#: Every way in which a stream can meet a table.
QUERIES: dict[str, tg.Relation] = {
    "nothing of the table is read": joined.select(k=e.k, t=e.t),
    "its columns are read": joined.select(k=e.k, t=e.t, part=n.part),
    "the table stands first": n.join(e, n.k == e.k).where(n.part < e.t).select(t=e.t, part=n.part),
    "a condition above": joined.with_(sum=n.part + e.t).where(tg.lit(8) < n.part + e.t).select(t=e.t, part=n.part),
    "a left join": e.join(n, n.k == e.k, how="left").select(k=e.k, t=e.t, part=n.part),
    "a product": tg.product(e, n).select(t=e.t, part=n.part),
    "two tables": joined.join(m, m.part == n.part).select(t=e.t, part=n.part, side=m.side),
    "left of an anti-join": joined.anti_join(o, e.k == o.k, e.t <= o.t, o.t <= e.t + 5).select(t=e.t, part=n.part),
    "right of an anti-join": e.anti_join(
        o.join(n, n.k == o.k, n.part > o.t), e.k == o.k, e.t <= o.t, o.t <= e.t + 5
    ).select(k=e.k, t=e.t),
    "a join of two streams": joined.join(o, e.k == o.k, e.t <= o.t, o.t <= e.t + 5).select(t=e.t, at=o.t, part=n.part),
    "distinct": joined.select(k=e.k, t=e.t).distinct(),
    "an operator above": unequal.over(by="k", order="t", tie="part", before=tg.lag(unequal.part)),
    "an operator by a key of the table": unequal.where(unequal.part < unequal.t + 9).over(
        by="part", order="t", tie="k", total=tg.sum(unequal.t)
    ),
    "right of an as-of join": others.asof_join(
        unequal.select("part", j=unequal.k, u=unequal.t), by=[("k", "j")], tie="part", strict=True
    ).select("k", "t", "u", "part"),
    "windows above": matched.windows(tg.hopping(6, every=3), by="k").agg(count=tg.count(), total=tg.sum(matched.part)),
}
E_ROWS = [(k, t) for t in range(0, 24, 2) for k in (1, 2, 3, None)]
O_ROWS = [(k, t) for t in range(1, 24, 5) for k in (1, 3)]


def plan_of(query: tg.Relation, *rows: tuple[Any, ...]) -> Plan:
    tables = {"N": pl.DataFrame(rows, schema={"k": pl.Int64, "part": pl.Int64}, orient="row")}
    matches = StaticMatches(tables)
    return lower(tg.program(Q=query).facts, optimise=rewrite_program, multiplies=matches.are_several)


def placed(query: tg.Relation, *rows: tuple[Any, ...]) -> tuple[str, ...]:
    """The tables that are joined when stored rows are read."""
    return plan_of(query, *rows).queries[0].leaves[0].later


def test_a_table_with_several_matches_is_joined_when_rows_are_read() -> None:
    read = joined.select(t=e.t, part=n.part)
    assert placed(read, (1, 1), (1, 2)) == ("N",)
    assert placed(read, (1, 1), (1, 2), (2, 1)) == ("N",)
    assert placed(read, (1, 1), (2, 2), (None, 3), (None, 4)) == ()
    assert placed(read) == ()
    (buffer,) = plan_of(read, (1, 1), (1, 2)).buffers
    assert buffer.schema.names == ("k", "t")
    assert [name for _, name in buffer.statics] == ["N"]  # only rows that match are stored


def test_a_semi_join_never_makes_more_rows() -> None:
    for how in ("semi", "anti"):
        assert placed(e.join(n, n.k == e.k, how=how).select(t=e.t), (1, 1), (1, 2)) == ()


def test_limits_on_both_sides_are_periods() -> None:
    for condition, several in [
        ([periods.part <= e.t, e.t < periods.upto], False),
        ([periods.part <= e.t, periods.upto > e.k], True),
        ([periods.part <= e.t], True),
    ]:
        assert are_several([periods.k == e.k, *condition], (1, 0, 10), (1, 10, 20)) == several


periods = tg.table("N", "k bigint, part bigint, upto bigint").as_("n")


def are_several(condition: list[Any], *rows: tuple[int | None, ...]) -> bool:
    """Whether rows of the stream are stored once, and joined with a table of these when they are read."""
    table = pl.DataFrame(rows, schema=dict.fromkeys(("k", "part", "upto"), pl.Int64), orient="row")
    query = e.join(periods, *condition).select(t=e.t, part=periods.part)
    matches = StaticMatches({"N": table})
    plan = lower(tg.program(Q=query).facts, optimise=rewrite_program, multiplies=matches.are_several)
    return bool(plan.queries[0].leaves[0].later)


@pytest.mark.parametrize("swapped", [False, True])
def test_periods_that_overlap_are_several(*, swapped: bool) -> None:
    within = [e.t >= periods.part, periods.upto > e.t] if swapped else [periods.part <= e.t, e.t < periods.upto]
    by_key = [periods.k == e.k, *within]
    assert are_several(by_key, (1, 0, 10), (1, 5, 20))
    assert are_several(within, (1, 0, 10), (2, 5, 20))
    assert not are_several(by_key, (1, 0, 10), (2, 5, 20), (1, 10, 11), (2, 20, 30))
    assert not are_several(within, (1, 0, 10), (2, 10, 20))
    assert not are_several(by_key, (1, 0, 10), (1, 9, 9), (1, 8, 5), (1, None, 20), (1, 3, None), (None, 0, 10))
    assert not are_several([*by_key, periods.part <= e.t + 5], (1, 0, 10), (1, 10, 20))
    assert are_several(by_key, *[(1, 0, 10)] * 2)


@pytest.mark.parametrize("seed", range(20))
def test_overlaps_are_counted(seed: int) -> None:
    """As by comparing every range with every other."""
    rng = random.Random(seed)
    rows = [(rng.randrange(3), rng.randrange(12), rng.randrange(12)) for _ in range(rng.randrange(1, 12))]
    there = [(k, lower, upper) for k, lower, upper in rows if lower < upper]
    counted = sum(k == j and low <= lower < up for k, lower, _ in there for j, low, up in there)
    found = _overlapping(pl.DataFrame(rows, schema=["0", "lower", "upper"], orient="row"))
    assert found == pytest.approx(counted / len(there) if there else 0)


def test_rows_within_many_ranges_are_stored_once() -> None:
    """A hundred rows, each of which lies in a thousand ranges."""
    program = tg.program(Q=e.join(periods, periods.part <= e.t, e.t < periods.upto).select(t=e.t))
    statics = {"N": [(k, 0, 10**9) for k in range(1000)]}
    with Session(program.facts, sources={"E": tg.source(None, delay=1000)}, statics=statics) as session:
        session.push("E", [(1, t) for t in range(100)])
        assert session.step().live_rows == {"E#0": 100}
        session.finish()
        session.step()
        assert session.table("Q").arrow().num_rows == 100_000


def test_a_table_that_cannot_be_evaluated_is_joined_before() -> None:
    broken = names.select(k=names.k, part=tg.lit(1).div(names.part)).as_("b")
    assert placed(e.join(broken, broken.k == e.k).select(t=e.t, part=broken.part), (1, 0), (1, 1)) == ()


def test_partial_aggregates_do_not_depend_on_matches() -> None:
    counted = joined.group_by(e.k, w=tg.tumbling(e.t, 10)).agg(n=tg.count())
    (buffer,) = plan_of(counted, (1, 1), (1, 2)).buffers
    assert buffer.partial is not None


def test_rows_are_stored_once(tmp_path: Path) -> None:
    """A hundred rows, a thousand matches each."""
    program = tg.program(Q=joined.select(t=e.t))
    statics = {"N": [(1, part) for part in range(1000)]}
    with Session(program.facts, LocalStore(tmp_path / "state"), statics=statics) as session:
        session.push("E", [(1, t) for t in range(100)] + [(2, t) for t in range(100)])
        assert session.step().live_rows == {"E#0": 100}
        listing = list_state(LocalStore(tmp_path / "state"))
        assert "  with table  N: rows once, joined when they are read" in str(listing).splitlines()
        (buffer,) = listing.to_dict()["buffers"]  # type: ignore[misc]  # plain values
        assert buffer["tables"] == {"N": "rows once, joined when they are read"}  # type: ignore[has-type]
        session.finish()
        session.step()
        assert session.table("Q").arrow().num_rows == 100_000
    assert why_checkpoint(program.facts, LocalStore(tmp_path / "state")).keys() == {"Q"}  # of the same program
    fewer = {"N": [(1, 1)]}
    with pytest.raises(tg.TidegateError, match="TG501"):
        Session(program.facts, LocalStore(tmp_path / "state"), statics=fewer)


def test_events_are_stored_once_below_an_operator() -> None:
    """A hundred rows, a thousand matches each, while none of them is final."""
    totals = matched.over(by="k", total=tg.sum(matched.part)).select("k", "t", "total")
    statics = {"N": [(1, part) for part in range(1000)]}
    with tg.program(Q=totals).session(sources={"E": tg.source(None, delay=1000)}, statics=statics) as session:
        session.push("E", [(k, t) for t in range(100) for k in (1, 2)])
        assert session.step().live_rows["E#0"] == 100
        session.finish()
        session.step()
        rows = session.results("Q")
    assert len(rows) == 100_000
    assert max(row["total"] for row in rows) == 100 * sum(range(1000))


def test_an_operator_is_shared_out_by_what_is_stored() -> None:
    """Not by an attribute of the table, which rows get when they are read."""
    for by, key in (("k", ("k",)), ("part", None)):
        (query,) = plan_of(matched.over(by=by, n=tg.count()), (1, 1), (1, 2)).queries
        assert query.leaves[0].later == ("N",)
        assert query.shard_key == key


def test_events_of_which_conditions_matter_are_stored_as_runs() -> None:
    made = matched.partition_by("k").derive(A=tg.situation(matched.part > 1))
    (buffer,) = plan_of(made.A, (1, 1), (1, 2)).buffers
    assert buffer.encoding is not None


def test_the_listing_says_how_matches_count(tmp_path: Path) -> None:
    said: list[tuple[Literal["inner", "left", "semi", "anti"], str]] = [
        ("inner", "a row for each match"),
        ("left", "a row for each match, or one"),
        ("semi", "rows that have a match"),
        ("anti", "rows that have none"),
    ]
    for how, stored in said:
        query = e.join(n, n.k == e.k, how=how).select(t=e.t)
        store = LocalStore(tmp_path / how)
        with Session(tg.program(Q=query).facts, store, statics={"N": ONCE}) as session:
            session.step()
        assert f"  with table  N: {stored}" in str(list_state(store)).splitlines()


def expected(what: str, table: list[tuple[Any, ...]]) -> Any:
    rows: dict[str, Any] = {"E": E_ROWS, "O": O_ROWS, "N": table, "M": SIDES}
    program = tg.program(Q=QUERIES[what])
    read = {stream.name for stream in program.facts.program.inputs}
    return evaluate_program(program.facts.program, {name: rows[name] for name in read})["Q"]


@pytest.mark.parametrize("table", [MANY, ONCE], ids=["many", "once"])
@pytest.mark.parametrize("what", QUERIES)
@pytest.mark.parametrize("collect", ["exact", "amortised"])
def test_results_are_those_of_the_algebra(
    tmp_path: Path, what: str, table: list[tuple[Any, ...]], collect: Any
) -> None:
    """In small batches, with a restart after each, and all rules that free rows in use."""
    program = tg.program(Q=QUERIES[what])
    read = {stream.name for stream in program.facts.program.inputs}
    statics = {name: rows for name, rows in (("N", table), ("M", SIDES)) if name in read}
    found: list[tuple[Any, ...]] = []
    for upto in (7, 8, 15, 24):
        store = LocalStore(tmp_path / "state")
        with Session(
            program.facts, store, statics=statics, options=RunOptions(collect_garbage=collect, purging="always")
        ) as session:
            for name, rows in (("E", E_ROWS), ("O", O_ROWS)):
                if name in read:
                    session.push(
                        name, [row for row in rows if upto - 9 < row[1] <= upto and row not in seen(upto, row)]
                    )
                    session.advance(name, {"t": upto})
            if upto == 24:
                session.finish()
            session.step()
            if upto == 24:
                found = [tuple(row.values()) for row in session.table("Q").arrow().to_pylist()]
    assert as_bag(found) == as_bag(expected(what, table))


def seen(upto: int, row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The row, if a batch before this one has had it."""
    before = {7: -1, 8: 7, 15: 8, 24: 15}[upto]
    return [row] if row[1] <= before else []


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_either_engine(start: Start) -> None:
    """With a restart, in the driver and on Spark."""
    what = "left of an anti-join"
    queries: dict[str, Callable[[], tg.Relation]] = {"Q": lambda: QUERIES[what]}
    with start(tg.program(Q=queries["Q"]()), statics={"N": MANY}) as run:
        run.add("E", E_ROWS)
        run.add("O", O_ROWS)
        run.advance("E", t=23)
        run.advance("O", t=12)
        run.step()
        run.restart()
        run.finish()
        run.step()
        run.expect(Q=[tuple(row) for row in expected(what, MANY)])


@pytest.mark.spark
def test_workers_join_what_operators_read(spark: SparkSession) -> None:
    """Shard by shard where the operator's key is stored, in the driver where the table has it."""
    named = {"Stored": "an operator above", "Tables": "an operator by a key of the table"}
    program = tg.program(**{name: QUERIES[what] for name, what in named.items()})
    with testing.drive(program, statics={"N": MANY}, spark=spark, driver_bytes=0, shard_bytes=1) as run:
        run.add("E", E_ROWS)
        run.advance("E", t=12)
        run.step()
        run.finish()
        run.step()
        assert run.reports[0].places == {"Stored": "sharded", "Tables": "driver"}
        for name, what in named.items():
            assert as_bag([tuple(row.values()) for row in run.results(name)]) == as_bag(expected(what, MANY)), name
