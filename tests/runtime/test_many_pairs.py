"""Joins of many pairs: they go piece by piece through what groups or filters them, and are told of beforehand."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidegate as tg
from tidegate import testing
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import (
    Distinct,
    Group,
    Join,
    JoinKind,
    Node,
    Product,
    Project,
    Scan,
    Select,
    Union,
    occurrences,
)
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Lit, call, conjunction
from tidegate.algebra.types import BIGINT
from tidegate.runtime import rows as small_rows
from tidegate.runtime.engines import many_pairs
from tidegate.runtime.eval import lenient, relational
from tidegate.runtime.eval.aggregates import look_back
from tidegate.runtime.eval.aggregates.partials import partial
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.joins import ranges
from tidegate.runtime.eval.relational import evaluate, evaluate_pieces
from tidegate.runtime.ordered import family
from tidegate.runtime.plan import placement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 400


def scan(stream: str, names: str) -> Node:
    return Scan(StreamDef(stream, Schema(tuple(Attribute(name, BIGINT) for name in names)), static=True))


LEFT, RIGHT = scan("L", "ktx"), scan("R", "luv")
SAME = call("eq", Attr("k"), Attr("l"))
NEAR = (call("le", Attr("u"), Attr("t")), call("le", Attr("t"), call("add", Attr("u"), Lit(50, BIGINT))))
ALIKE = call("lt", Attr("x"), Attr("v"))
MERGED = (Function.SUM, Function.AVG, Function.MAX, Function.LAST)
KINDS: tuple[JoinKind, ...] = ("inner", "left", "semi", "anti")
CONDITIONS = {
    "keys": SAME,
    "keys and instants": conjunction([SAME, *NEAR]),
    "data too": conjunction([SAME, *NEAR, ALIKE]),
    "what may overflow": conjunction([SAME, *NEAR, call("gt", call("add", Attr("x"), Attr("v")), Lit(9, BIGINT))]),
}


def grouped(rows: Node, *functions: Function, keys: tuple[str, ...] = ("k",)) -> Node:
    value = "v" if "v" in rows.schema else "x"
    aggregates = [
        Aggregate(f"a{number}", function, Attr(value), Attr("t") if function is Function.LAST else None)
        for number, function in enumerate(functions)
    ]
    return Group(rows, keys, (Aggregate("n", Function.COUNT), *aggregates))


TREES: dict[str, Node] = {
    **{
        f"{kind} by {what}": grouped(Join(LEFT, RIGHT, condition, kind), *MERGED)
        for kind in KINDS
        for what, condition in CONDITIONS.items()
    },
    "what does not merge": grouped(Join(LEFT, RIGHT, SAME, "left"), Function.MEDIAN, Function.COUNT_DISTINCT),
    "no key": grouped(Join(LEFT, RIGHT, CONDITIONS["data too"], "inner"), *MERGED, keys=()),
    "all pairs": grouped(Product(LEFT, RIGHT), *MERGED),
    "filtered": grouped(Select(Join(LEFT, RIGHT, SAME, "inner"), ALIKE), *MERGED),
    "distinct": Distinct(Project(Join(LEFT, RIGHT, SAME, "inner"), ("k", "x", "v"))),
    "a union": Union((Project(Join(LEFT, RIGHT, SAME, "left"), ("k", "x")), Project(LEFT, ("k", "x")))),
}


#: By keys alone the partners of a row are adjacent, so that no pair is looked at; by two limits those of a right row.
WITHOUT_PAIRS = {"inner by keys and instants", *(f"{kind} by keys" for kind in KINDS)}


def leaves(tree: Node) -> dict[int, pl.DataFrame]:
    """Two keys, and some rows without one; four rows an instant."""
    numbered = pl.DataFrame({"n": range(ROWS)}).with_columns(
        key=pl.when(pl.col("n") % 7 == 0).then(None).otherwise(pl.col("n") % 2)
    )
    left = numbered.select(k="key", t=pl.col("n") // 4, x=pl.col("n") * 37 % 11)
    right = numbered.select(l="key", u=pl.col("n") // 4, v=pl.col("n") * 23 % 13).filter(pl.col("u") % 5 != 0)
    third = {2: left} if isinstance(tree, Union) else {}
    return {0: left, 1: right, **third}


def ordered(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=repr)


@pytest.mark.parametrize("name", TREES)
def test_pieces_together_are_all_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = TREES[name]
    wanted = evaluate(tree, leaves(tree))
    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    monkeypatch.setattr(ranges, "CHUNK", 700)
    told: list[int] = []
    found = ranges.whole(evaluate_pieces(tree, leaves(tree), {}, told.append))
    assert wanted.height > 0
    assert found.columns == wanted.columns
    for one, other in zip(ordered(found), ordered(wanted), strict=True):
        assert one == pytest.approx(other)
    assert len(told) == (name not in WITHOUT_PAIRS), "where pairs are looked at one by one"
    assert all(pairs > 1_000 for pairs in told)


def test_a_group_never_holds_more_pairs_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def counted(group: Group, rows: pl.DataFrame) -> pl.DataFrame:
        held.append(rows.height)
        return partial(group, rows)

    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    monkeypatch.setattr(ranges, "CHUNK", 700)
    monkeypatch.setattr(relational, "partial", counted)
    tree = TREES["inner by data too"]
    evaluate(tree, leaves(tree))
    assert sum(held) > 5_000
    assert len(held) > 15
    assert max(held) <= 700


@pytest.mark.parametrize("function", [Function.SUM, Function.COUNT_DISTINCT], ids=lambda one: one.value)
def test_what_cannot_be_looked_up_without_pairs_is_told_and_taken_in_pieces(
    function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of values of the left side that are too large; how many are different where no row has those of all."""
    argument = Attr("x" if function is Function.SUM else "v")
    joined = (
        Join(LEFT, RIGHT, conjunction([SAME, NEAR[0]]), "left")
        if function is Function.SUM
        else Join(LEFT, RIGHT, CONDITIONS["keys and instants"], "inner")
    )
    tree = Group(joined, ("k",), (Aggregate("a", function, argument),))
    rows = leaves(tree)
    wanted = evaluate(tree, rows)
    monkeypatch.setattr(look_back, "_MOST", 0)
    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    monkeypatch.setattr(ranges, "CHUNK", 700)
    told: list[int] = []
    held: list[int] = []

    def counted(group: Group, rows: pl.DataFrame) -> pl.DataFrame:
        held.append(rows.height)
        return partial(group, rows)

    monkeypatch.setattr(relational, "partial", counted)
    assert ordered(evaluate(tree, rows, announce=told.append)) == ordered(wanted)
    assert len(told) == 1
    assert told[0] > 1_000
    if function is Function.SUM:
        assert max(held) <= 700


def test_a_limit_that_has_no_value_for_a_row_without_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not asked for: no row has its key."""
    tree = TREES["left by keys and instants"]
    rows = leaves(tree)
    odd = pl.DataFrame({"l": [9], "u": [2**63 - 1], "v": [0]})
    wanted = evaluate(tree, {0: rows[0], 1: pl.concat([rows[1], odd])})
    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    monkeypatch.setattr(ranges, "CHUNK", 700)
    found = evaluate(tree, {0: rows[0], 1: pl.concat([rows[1], odd])})
    assert ordered(found) == ordered(wanted)
    assert ordered(found) == ordered(evaluate(tree, rows))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouping", [True, False])
def test_pairs_that_fail_are_set_aside_piece_by_piece(
    kind: JoinKind, *, grouping: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results and what is set aside are those of one piece, and no operator reads more pairs than a piece has."""
    monkeypatch.setattr(small_rows, "MOST", -1)
    made = getattr(o, "join" if kind == "inner" else f"{kind}_join")(p, o.k == p.k, p.t <= o.t, o.x + p.v > 7)
    if grouping:
        made = made.group_by(o.k, w=tg.tumbling(o.t, 20)).agg(n=tg.count(), s=tg.sum(o.x))
    rows = [(number % 2, number // 2, 2**63 - 1 if number % 50 == 7 else number % 9) for number in range(150)]
    held: list[int] = []

    def run() -> tuple[list[str], list[str]]:
        with tg.program(R=made).session() as session:
            for name in ("O", "P"):
                session.push(name, rows)
            session.finish()
            session.step()
            aside = [str(row["row"]) for row in session.quarantine_rows()]
            return sorted(map(str, session.results("R"))), sorted(aside)

    def counted(rows: pl.DataFrame, names: Any) -> pl.DataFrame:
        held.append(rows.height)
        return only(rows, names)

    def grouped_counted(group: Group, rows: pl.DataFrame) -> pl.DataFrame:
        held.append(rows.height)
        return partial(group, rows)

    wanted, aside = run()
    assert len(wanted) > 1
    assert len(aside) > 100
    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    monkeypatch.setattr(ranges, "SMALL_PRODUCT", 10)
    monkeypatch.setattr(ranges, "CHUNK", 200)
    monkeypatch.setattr(lenient, "only", counted)
    monkeypatch.setattr(lenient, "partial", grouped_counted)
    assert run() == (wanted, aside)
    assert max(held) <= (200 if grouping or kind in ("semi", "anti") else len(wanted))


def test_joins_of_few_pairs_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    tree = grouped(Join(LEFT, RIGHT, call("eq", Attr("t"), Attr("u")), "inner"), *MERGED)
    wide = {0: leaves(tree)[0].with_columns(t=pl.int_range(pl.len())), 1: leaves(tree)[1]}
    told: list[int] = []
    monkeypatch.setattr(relational, "join_pieces", None)
    assert evaluate(tree, wide, announce=told.append).height > 0
    assert not told


@pytest.mark.parametrize(("most", "told"), [(6, []), (5, [6])])
def test_a_product_of_many_pairs_is_told_and_taken_in_pieces(
    most: int, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "MANY_PAIRS", most)
    monkeypatch.setattr(ranges, "CHUNK", 3)
    tree, heard = Product(LEFT, RIGHT), list[int]()
    rows = {place: frame.head(2 + place) for place, frame in leaves(tree).items()}
    pieces = list(evaluate_pieces(tree, rows, {}, heard.append))
    assert heard == told
    assert [piece.height for piece in pieces] == ([3, 3] if told else [6])
    assert ordered(pl.concat(pieces)) == ordered(rows[0].join(rows[1], how="cross"))


o = tg.stream("O", "k bigint, t bigint, x bigint", progress="t").as_("o")
p = tg.stream("P", "k bigint, t bigint, v bigint", progress="t").as_("p")
NEARBY = o.join(p, o.k == p.k, p.t <= o.t, o.t <= p.t + 50)


def told_by(program: tg.Program, batches: int, rows: int) -> tuple[list[str], dict[str, list[Any]]]:
    """The warnings of a run, and its results."""
    with warnings.catch_warnings(record=True, action="always") as told, program.session() as session:
        for batch in range(batches):
            start, count = 1_000 * batch, rows * 4**batch
            for name, value in (("O", "x"), ("P", "v")):
                instants = [start + number % 400 for number in range(count)]
                session.push(name, pl.DataFrame({"k": [1] * count, "t": instants, value: [batch] * count}))
                session.advance(name, {"t": start + 999})
            session.step()
        found = {name: sorted(map(str, session.results(name))) for name in ("R",)}
    return [str(one.message) for one in told if isinstance(one.message, tg.RunWarning)], found


def test_a_run_says_how_many_pairs_it_is_about_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_rows, "MOST", -1)
    program = tg.program(R=NEARBY.group_by(o.k, w=tg.tumbling(o.t, 100)).agg(s=tg.sum(o.x + p.v)))
    told, wanted = told_by(program, 3, 300)
    assert not told
    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    monkeypatch.setattr(many_pairs, "TOLD", 5_000)
    told, found = told_by(program, 3, 300)
    assert found == wanted
    # Each batch compares 16 times as many as the one before: some 11,000 pairs at first.
    assert [text.split()[:5] for text in told] == [["TG446", "R", "is", "about", "to"]] * 3
    assert "pairs of rows in one increment" in told[0]
    assert "asof_join" in told[0]
    told, _ = told_by(program, 1, 300)
    assert len(told) == 1


def test_of_as_many_pairs_in_each_batch_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_pairs, "TOLD", 20_000)
    hears = many_pairs.ManyPairs()
    (query,) = tg.program(R=NEARBY.select(o.t, p.v)).explain().lowered().queries
    with warnings.catch_warnings(record=True, action="always") as told:
        for pairs in (19_999, 20_000, 60_000, 199_999, 200_000):
            hears.announce(query, pairs)
    assert ["20,000" in str(one.message) for one in told] == [True, False]
    assert "200,000" in str(told[1].message)


def test_what_is_looked_up_without_pairs_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_rows, "MOST", -1)
    monkeypatch.setattr(ranges, "MANY_PAIRS", 1_000)
    monkeypatch.setattr(many_pairs, "TOLD", 1_000)
    latest = o.left_join(p, o.k == p.k, p.t <= o.t).group_by(o.k, o.t).agg(v=tg.last(p.v, by=p.t), n=tg.count(p.v))
    told, found = told_by(tg.program(R=latest), 1, 600)
    assert not told
    assert len(found["R"]) == 400


# --- matches ----------------------------------------------------------------------------------------------------------

READINGS = tg.stream("S", "k bigint, t bigint, x bigint", progress="t")
STATES = READINGS.partition_by("k").derive(A=tg.situation(READINGS.x % 2 == 0), B=tg.situation(READINGS.x % 2 == 1))
LISTED: dict[str, tg.Relation] = {
    "match": tg.match(STATES.A.before(STATES.B), within=5_000),
    "sequences": READINGS.sequences(
        "A B",
        by="k",
        order="t",
        define={"A": lambda m: m.A.x % 2 == 0, "B": lambda m: m.B.x % 2 == 1},
        matches="any",
        within=5_000,
    ),
}


def messages(told: list[warnings.WarningMessage]) -> list[str]:
    return [text for one in told if "TG446" in (text := str(one.message))]


@pytest.mark.parametrize("form", LISTED)
def test_a_run_says_how_many_matches_it_is_about_to_list(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a query once, and again of ten times as many in an increment."""
    monkeypatch.setattr(many_pairs, "TOLD", 100)
    with (
        warnings.catch_warnings(record=True, action="always") as told,
        tg.program(R=LISTED[form]).session() as session,
    ):
        found, at = [], 0
        for many in (10, 30, 40, 120):
            session.push("S", [(1, t, t) for t in range(at, at + many)])
            session.advance("S", at + many - 1)
            at += 10_000
            session.step()
            found.append(len(session.results("R")))
    heard = [
        f"R is about to list {number:,} matches in one increment"
        for number in (found[1] - found[0], found[3] - found[2])
    ]
    assert [text.splitlines()[0].removeprefix("TG446 ") for text in messages(told)] == heard
    assert "within=" in messages(told)[0]
    assert family.HEARS.get() is None


@pytest.mark.spark
def test_spark_says_how_many_matches_its_workers_have_listed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_pairs, "TOLD", 100)
    monkeypatch.setattr(placement, "MOST_SHARDS", 2)
    with (
        warnings.catch_warnings(record=True, action="always") as told,
        testing.drive(tg.program(R=LISTED["sequences"]), spark=spark, driver_bytes=0, shard_bytes=1) as run,
    ):
        run.add("S", [(k, t, t) for k in range(4) for t in range(30)])
        run.finish()
        run.step()
        found = len(run.results("R"))
        assert [*run.reports[-1].places.values()] == ["sharded"]
    assert [text.splitlines()[0] for text in messages(told)] == [f"TG446 R has listed {found} matches in one increment"]


# --- joins of DataFrames on Spark -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "pairs"),
    [
        (Join(LEFT, RIGHT, NEAR[0], "left"), 3_000_000),
        (Product(Project(LEFT, ("t",)), RIGHT), 3_000_000),
        (Select(Join(Union((LEFT, LEFT)), RIGHT, ALIKE, "inner"), SAME), 6_000_000),
        # Of equal keys, what is filtered, or found by another join, nobody knows how many pairs there are.
        (TREES["inner by keys and instants"], 0),
        (Product(Select(LEFT, call("gt", Attr("x"), Lit(0, BIGINT))), RIGHT), 0),
        (Join(LEFT, RIGHT, conjunction([NEAR[0], call("gt", Attr("x"), Lit(0, BIGINT))]), "inner"), 0),
        (Product(Distinct(LEFT), RIGHT), 0),
        (Join(LEFT, RIGHT, NEAR[0], "anti"), 0),
    ],
)
def test_of_joins_without_equal_keys_is_known_how_many_pairs_there_are(tree: Node, pairs: int) -> None:
    rows = iter((1_000, 3_000)) if len(occurrences(tree)) == 2 else iter((1_000, 1_000, 3_000))
    assert many_pairs.unkeyed_pairs(tree, [*rows]) == pairs
    assert many_pairs.unkeyed_pairs(tree, [None] * len(occurrences(tree))) == 0


@pytest.mark.spark
def test_spark_says_how_many_pairs_a_join_without_equal_keys_compares(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_pairs, "TOLD", 10_000)
    near = o.join(p, p.t <= o.t, o.t <= p.t + 5)
    program = tg.program(Near=near.select(o.t, v=p.v), Keyed=NEARBY.select(o.t, v=p.v))
    rows = [(1, number, number) for number in range(120)]
    with (
        warnings.catch_warnings(record=True, action="always") as told,
        testing.drive(program, spark=spark, driver_bytes=0, shard_bytes=0) as run,
    ):
        for name in ("O", "P"):
            run.add(name, rows)
            run.finish(name)
        run.step()
        assert len(run.results("Near")) == 6 * 120 - 15
    messages = [str(one.message) for one in told if isinstance(one.message, tg.RunWarning)]
    assert [text.split()[:2] for text in messages] == [["TG446", "Near"]]
    assert "14,400 pairs" in messages[0]
