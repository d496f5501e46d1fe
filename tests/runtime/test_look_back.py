"""Aggregates of what each row looks up, without a list of pairs: the result is that of the reference semantics."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from tests.analysis.build import eq, le, lt, plus, scan, stream
from tests.shards import shards
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Imbed, Join, JoinKind, Node, Project, Rename, Scan, occurrences
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import Row, bags_equal
from tidegate.algebra.semantics import evaluate as meaning
from tidegate.algebra.terms import Attr, Lit, Term, attributes_of, call, conjunction, rename_attributes
from tidegate.algebra.types import BIGINT, DOUBLE, INT64_MAX, INT64_MIN, STRING
from tidegate.runtime.eval.aggregates import look_back, look_back_form, partials
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.joins import bands, ranges
from tidegate.runtime.eval.relational import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT, RIGHT = stream("L", values=("k", "x")), stream("R", ("t", "u"), ("k", "v"))
RIGHT_FUNCTIONS = (Function.COUNT, Function.SUM, Function.TRY_SUM, Function.AVG, Function.MIN, Function.MAX)
LEFT_FUNCTIONS = (Function.COUNT, Function.MIN, Function.MAX, Function.SUM, Function.AVG, Function.TRY_SUM)
ENDS = (Function.FIRST, Function.LAST)
#: A value of some right rows alone.
SOME = call("if", lt("r.t", Lit(4, BIGINT)), Attr("r.v"), Lit(None, BIGINT))


def condition(rng: random.Random) -> Term:
    parts: list[Term] = []
    if rng.random() < 0.8:
        parts.append(call("eq_null_safe", Attr("l.k"), Attr("r.k")) if rng.random() < 0.3 else eq("l.k", "r.k"))
    limits = [
        le("r.t", "l.t"),
        lt("r.t", plus("l.t", 2)),
        le(plus("l.t", 1), "r.u"),
        lt(call("sub", Attr("l.t"), Attr("r.t")), Lit(3, BIGINT)),
        le(call("ceil", Attr("r.u"), Lit(3, BIGINT)), "l.t"),
    ]
    if rng.random() < 0.85:
        parts.append(rng.choice(limits))
    if rng.random() < 0.6:
        # Partners that lie between two limits, mostly of one instant.
        further = (
            le("l.t", plus("r.t", 3)),
            lt(call("sub", Attr("l.t"), Attr("r.t")), Lit(2, BIGINT)),
            le("r.t", "l.t"),
        )
        parts.append(rng.choice(further))
    if rng.random() < 0.2:
        parts.append(le("r.v", Lit(3, BIGINT)))
    if rng.random() < 0.2:
        parts.append(le("l.x", Lit(3, BIGINT)))
    return conjunction(parts)


def aggregates(rng: random.Random) -> tuple[Aggregate, ...]:
    made = []
    for number in range(rng.randint(1, 4)):
        name = f"a{number}"
        match rng.randrange(9):
            case 0:
                made.append(Aggregate(name, Function.COUNT))
            case 5:
                made.append(Aggregate(name, rng.choice(ENDS), Attr("l.x"), Attr(rng.choice(("r.t", "r.v")))))
            case 6:
                made.append(Aggregate(name, rng.choice(ENDS), Attr("r.v"), Attr(rng.choice(("l.t", "l.x")))))
            case 7 | 8:
                made.append(Aggregate(name, Function.COUNT_DISTINCT, Attr(rng.choice(("r.v", "r.v", "r.u", "l.x")))))
            case 1:
                made.append(Aggregate(name, rng.choice(RIGHT_FUNCTIONS), rng.choice((Attr("r.v"), Attr("r.t"), SOME))))
            case 2:
                made.append(Aggregate(name, rng.choice(LEFT_FUNCTIONS), Attr("l.x")))
            case 3:
                made.append(Aggregate(name, rng.choice(ENDS), Attr("l.x"), Attr("l.t")))
            case _:
                made.append(Aggregate(name, rng.choice(ENDS), Attr("r.v"), Attr(rng.choice(("r.t", "r.u", "r.v")))))
    return tuple(made)


def query(rng: random.Random) -> Group:
    kind: JoinKind = rng.choice(("inner", "left"))
    joined: Node = Join(scan(LEFT, "l"), scan(RIGHT, "r"), condition(rng), kind)
    if rng.random() < 0.5:
        joined = Project(joined, tuple(joined.schema.names))
    keys = rng.choice((("l.t",), ("l.t", "l.k"), ("l.k",), ("l.x",), ()))
    return Group(joined, keys, aggregates(rng))


def kinds(node: Group) -> Iterator[str]:
    """What a look-up without a list of pairs has."""
    yield "all"
    found = look_back_form.look_back(node)
    assert found is not None
    between = {limit.left_first for limit in found.looks[0].parts.ranges} == {False, True}
    distinct = any(one.function is Function.COUNT_DISTINCT for one in node.aggregates)
    if between:
        yield "between two limits"
    if distinct:
        yield "different values between two limits" if between else "different values"
    if any(reads.side is look_back_form.Side.BOTH for reads in found.reads):
        yield "both sides"


def rows_of(rng: random.Random, width: int) -> list[tuple[int | None, ...]]:
    values = (None, 0, 0, 1, 2, 5)
    many = rng.choice((0, 1, 5, 12, 12, 12))
    instants = [tuple(rng.randint(0, 8) for _ in range(width)) for _ in range(many)]
    return [(*one, rng.choice((0, 0, 1, None)), rng.choice(values)) for one in instants]


@pytest.mark.parametrize("shard", shards(3))
def test_a_look_back_is_what_its_pairs_yield(shard: int) -> None:
    ways: Counter[str] = Counter()
    for seed in range(shard, 1800, 3):
        rng = random.Random(seed)
        node = query(rng)
        rows = {"L": rows_of(rng, 1), "R": rows_of(rng, 2)}
        leaves = {
            i: pl.DataFrame(rows[one.name], schema=polars_schema(one.schema), orient="row")
            for i, one in enumerate(occurrences(node))
        }
        with (
            patch.object(look_back, "LISTED", -1),
            patch.object(ranges, "PAIRS_PER_ROW", rng.choice((0, 0, 4))),
            patch.object(look_back, "_MOST", rng.choice((2**62, 2**62, 20))),
            patch.object(look_back, "final", wraps=partials.final) as finished,
        ):
            found = evaluate(node, leaves)
        if finished.called:
            ways.update(kinds(node))
        assert found.columns == list(node.schema.names)
        assert found.schema == pl.Schema(polars_schema(node.schema))
        wanted = meaning(node, rows)
        assert bags_equal(found.rows(), wanted), f"seed {seed}: {node}\n{rows}\n{found.rows()}\n{wanted}"
    assert ways["all"] > 120, ways
    assert min(ways.values()) > 4, ways
    assert len(ways) == 5, ways


def as_frames(node: Node, rows: Mapping[str, Sequence[Row]]) -> dict[int, pl.DataFrame]:
    return {
        i: pl.DataFrame(rows[one.name], schema=polars_schema(one.schema), orient="row")
        for i, one in enumerate(occurrences(node))
    }


#: Keys of the looking side, computed ones, those of the other side that are equal, and others of the other side.
KEYS = (("l.t",), ("day", "l.k"), ("r.k", "l.t"), ("r.k",), ("l.t", "r.v"), ("l.t", "r.k"), ("day", "near"))


def written_otherwise(rng: random.Random) -> Group:
    """A look-up where names, new attributes and projections stand between grouping and join, and either side looks."""
    kind: JoinKind = rng.choice(("inner", "inner", "left"))
    sides = [scan(LEFT, "l"), scan(RIGHT, "r")]
    if kind == "inner" and rng.random() < 0.5:
        sides.reverse()
    by_instants = rng.choice((le("r.t", "l.t"), lt("r.t", plus("l.t", 2))))
    rows: Node = Join(sides[0], sides[1], condition(rng) if rng.random() < 0.7 else by_instants, kind)
    rows = Imbed(rows, "day", call("ceil", Attr("l.t"), Lit(3, BIGINT)))
    rows = Imbed(rows, "later", plus("day", 1))
    rows = Imbed(rows, "near", call("if", call("lt", Attr("r.v"), Lit(2, BIGINT)), Attr("r.v"), Lit(7, BIGINT)))
    keys = list(rng.choice(KEYS))
    if rng.random() < 0.3:
        keys = [*keys, "later"]
    made = [*aggregates(rng), Aggregate("of day", Function.MAX, Attr("later"))]
    if rng.random() < 0.5:
        rows = Project(rows, tuple(rng.sample(rows.schema.names, len(rows.schema))))
    names = {name: f"n{number}" for number, name in enumerate(rows.schema)}
    # A key has the name of an attribute of the other side.
    names[keys[0]] = "r.v"
    made = [
        Aggregate(
            one.name,
            one.function,
            None if one.argument is None else rename_attributes(one.argument, names),
            None if one.by is None else rename_attributes(one.by, names),
        )
        for one in made
    ]
    return Group(Rename(rows, tuple(names.items())), tuple(names[key] for key in keys), tuple(made))


@pytest.mark.parametrize("shard", shards(2))
def test_a_look_back_is_known_however_it_is_written(shard: int) -> None:
    ways: Counter[str] = Counter()
    for seed in range(shard, 1200, 2):
        rng = random.Random(seed)
        node = written_otherwise(rng)
        rows = {"L": rows_of(rng, 1), "R": rows_of(rng, 2)}
        with (
            patch.object(look_back, "LISTED", -1),
            patch.object(look_back, "WORTH", 0),
            patch.object(ranges, "PAIRS_PER_ROW", 0),
            patch.object(look_back, "final", wraps=partials.final) as finished,
        ):
            found = evaluate(node, as_frames(node, rows))
        if finished.called:
            used = look_back_form.look_back(node)
            assert used is not None
            ways.update(
                name
                for name, met in (
                    ("all", True),
                    ("the right side looks", used.looking == 1),
                    ("computed keys", bool(used.added)),
                    ("values of the other side", bool(used.looks[0].found)),
                    ("padded", used.looks[0].padded),
                )
                if met
            )
        assert found.columns == list(node.schema.names)
        assert found.schema == pl.Schema(polars_schema(node.schema))
        wanted = meaning(node, rows)
        assert bags_equal(found.rows(), wanted), f"seed {seed}: {node}\n{rows}\n{found.rows()}\n{wanted}"
    assert ways["all"] > 60, ways
    assert min(ways.values()) > 4, ways
    assert len(ways) == 5, ways


SAME_AND_BEFORE = conjunction((eq("l.k", "r.k"), le("r.t", "l.t")))
THIRD = stream("Q", values=("k", "w"))


def of_several(rng: random.Random) -> Group:
    """What rows look up on two sides, mostly by conditions that do not depend on each other."""
    kinds: tuple[JoinKind, ...] = ("inner", "left")
    rows: Node = Join(scan(LEFT, "l"), scan(RIGHT, "r"), condition(rng), rng.choice(kinds))
    if rng.random() < 0.3:
        rows = Project(rows, tuple(name for name in rows.schema if rng.random() < 0.95 or name != "r.u"))
    parts: list[Term] = [eq("l.k", "q.k")] if rng.random() < 0.8 else []
    if rng.random() < 0.15:
        parts.append(eq("r.k", "q.k"))
    if rng.random() < 0.9:
        parts.append(rng.choice((le("q.t", "l.t"), lt("q.t", plus("l.t", 2)), le("l.t", "q.t"))))
    rows = Join(rows, scan(THIRD, "q"), conjunction(parts), rng.choice(kinds))
    made = list(aggregates(rng))
    made.append(Aggregate("of q", rng.choice(RIGHT_FUNCTIONS), rng.choice((Attr("q.w"), Attr("q.t")))))
    if rng.random() < 0.5:
        made.append(Aggregate("last of q", rng.choice(ENDS), Attr("q.w"), Attr(rng.choice(("q.t", "l.x")))))
    made = [one for one in made if all(name in rows.schema for name in read_by(one))]
    return Group(rows, rng.choice((("l.t",), ("l.t", "l.k"), ("l.k",), ("r.k", "l.t"), ("q.k", "l.x"))), tuple(made))


def read_by(aggregate: Aggregate) -> set[str]:
    return {name for term in aggregate.terms for name in attributes_of(term)}


@pytest.mark.parametrize("shard", shards(2))
def test_several_sides_are_looked_up_apart(shard: int) -> None:
    ways: Counter[str] = Counter()
    for seed in range(shard, 1000, 2):
        rng = random.Random(seed)
        node = of_several(rng)
        rows = {"L": rows_of(rng, 1), "R": rows_of(rng, 2), "Q": rows_of(rng, 1)}
        with (
            patch.object(look_back, "LISTED", -1),
            patch.object(look_back, "_MOST", rng.choice((2**62, 2**62, 20))),
            patch.object(ranges, "PAIRS_PER_ROW", 0),
            patch.object(look_back, "final", wraps=partials.final) as finished,
        ):
            found = evaluate(node, as_frames(node, rows))
        used = look_back_form.look_back(node)
        if finished.called and used is not None:
            padded = ", ".join("padded" if look.padded else "inner" for look in used.looks)
            ways[padded] += 1
        assert found.columns == list(node.schema.names)
        wanted = meaning(node, rows)
        assert bags_equal(found.rows(), wanted), f"seed {seed}: {node}\n{rows}\n{found.rows()}\n{wanted}"
    of_two = [ways[f"{one}, {other}"] for one in ("padded", "inner") for other in ("padded", "inner")]
    assert min(of_two) > 4, ways
    assert ways["padded"] + ways["inner"] > 4, ways


def test_what_is_found_on_several_sides_lists_no_pairs() -> None:
    count = 3_000
    rows: Node = Join(scan(LEFT, "l"), scan(RIGHT, "r"), SAME_AND_BEFORE, "inner")
    rows = Join(rows, scan(THIRD, "q"), conjunction((eq("l.k", "q.k"), le("q.t", "l.t"))), "left")
    last = [Aggregate(f"{x} by {by}", Function.LAST, Attr(x), Attr(by)) for x, by in (("r.v", "r.t"), ("q.w", "q.t"))]
    total = Aggregate("total", Function.SUM, Attr("r.v"))
    node = Group(rows, ("l.k", "l.t"), (Aggregate("n", Function.COUNT), *last, total))
    columns = {"t": range(count), "k": [0] * count}
    frames = (
        pl.DataFrame(columns | {"x": range(count)}),
        pl.DataFrame(columns | {"u": range(count), "v": [1] * count}).select("t", "u", "k", "v"),
        pl.DataFrame(columns | {"w": range(count)}),
    )
    with patch.object(ranges, "_expanded", side_effect=AssertionError("pairs are listed")):
        found = evaluate(node, dict(enumerate(frames))).sort("l.t")
    t = pl.Series(range(count))
    assert found["n"].to_list() == ((t + 1) ** 2).to_list()
    assert found["total"].to_list() == ((t + 1) ** 2).to_list()
    assert found["q.w by q.t"].to_list() == list(range(count))


def test_a_key_of_the_right_side_is_none_of_a_padded_row() -> None:
    """Although the condition says that it equals one of the left side."""
    joined = Join(scan(LEFT, "l"), scan(RIGHT, "r"), eq("l.k", "r.k"), "left")
    node = Group(joined, ("r.k",), (Aggregate("n", Function.COUNT),))
    rows: dict[str, list[Row]] = {"L": [(1, 0, 0), (2, 5, 0)], "R": [(1, 1, 0, 0), (2, 2, 0, 0)]}
    with patch.object(look_back, "LISTED", -1), patch.object(ranges, "PAIRS_PER_ROW", 0):
        found = evaluate(node, as_frames(node, rows))
    assert sorted(found.rows(), key=repr) == [(0, 2), (None, 1)]


@pytest.mark.parametrize("read", [False, True], ids=["not read", "read"])
@pytest.mark.parametrize("side", ["l.x", "r.v"])
def test_a_new_attribute_without_a_value_counts_for_rows_in_pairs_alone(side: str, read: bool) -> None:
    """Whether it is read or not; of a row that is in no pair nobody asks for it."""
    parts = (eq("l.k", "r.k"), le("r.t", "l.t"))
    rows: Node = Join(scan(LEFT, "l"), scan(RIGHT, "r"), conjunction(parts), "inner")
    rows = Imbed(rows, "share", call("idiv", Lit(6, BIGINT), Attr(side)))
    node = Group(rows, ("l.t",), (Aggregate("most", Function.MAX, Attr("share" if read else "r.v")),))
    fine: dict[str, list[Row]] = {"L": [(5, 0, 2)] * 9, "R": [(t, t, 0, 3) for t in range(9)]}
    alone = {"L": [*fine["L"], (0, 7, 0)], "R": [*fine["R"], (9, 9, 0, 0)]}
    with patch.object(look_back, "LISTED", -1), patch.object(ranges, "PAIRS_PER_ROW", 0):
        assert evaluate(node, as_frames(node, fine)).rows() == meaning(node, fine)
        assert evaluate(node, as_frames(node, alone)).rows() == meaning(node, alone)
        paired = {"L": [*fine["L"], (5, 0, 0)], "R": [*fine["R"], (0, 0, 0, 0)]}
        with pytest.raises(EvaluationError, match="division by zero"):
            evaluate(node, as_frames(node, paired))


def many(form: Node) -> dict[int, pl.DataFrame]:
    """16,000 rows of one key a side."""
    count = 16_000
    ones = pl.DataFrame({"t": range(count), "k": [0] * count, "x": range(count)})
    others = pl.DataFrame({"t": range(count), "u": range(count), "k": [0] * count, "v": [t % 5 for t in range(count)]})
    return {i: ones if one.name == "L" else others for i, one in enumerate(occurrences(form))}


FORMS: dict[str, Node] = {
    "other names": Group(
        Rename(
            Project(Join(scan(LEFT, "l"), scan(RIGHT, "r"), SAME_AND_BEFORE, "inner"), ("l.k", "l.t", "r.v")),
            (("l.k", "k"), ("l.t", "t"), ("r.v", "v")),
        ),
        ("k", "t"),
        (Aggregate("most", Function.MAX, Attr("v")),),
    ),
    "a computed key": Group(
        Imbed(
            Join(scan(LEFT, "l"), scan(RIGHT, "r"), SAME_AND_BEFORE, "inner"),
            "day",
            call("ceil", Attr("l.t"), Lit(1000, BIGINT)),
        ),
        ("l.k", "day"),
        (Aggregate("most", Function.MAX, Attr("r.v")),),
    ),
    "the right side looks": Group(
        Join(scan(RIGHT, "r"), scan(LEFT, "l"), SAME_AND_BEFORE, "inner"),
        ("l.k", "l.t"),
        (Aggregate("most", Function.MAX, Attr("r.v")),),
    ),
    "an equal key": Group(
        Join(scan(LEFT, "l"), scan(RIGHT, "r"), SAME_AND_BEFORE, "inner"),
        ("r.k", "l.t"),
        (Aggregate("most", Function.MAX, Attr("r.v")),),
    ),
    "values at a clock": Group(
        Join(scan(LEFT, "l"), scan(RIGHT, "r"), le("r.t", "l.t"), "inner"),
        ("l.t", "r.v"),
        (Aggregate("most", Function.LAST, Attr("r.u"), Attr("r.t")),),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_look_back_lists_pairs(form: str) -> None:
    with patch.object(ranges, "_expanded", side_effect=AssertionError("pairs are listed")):
        found = evaluate(FORMS[form], many(FORMS[form]))
    rows = {"a computed key": 17, "values at a clock": 5 * 16_000 - 10}
    assert found.height == rows.get(form, 16_000)


def test_values_that_are_about_as_many_as_pairs_are_listed() -> None:
    """Each row beside each other's value would be 250 times the pairs."""
    parts = (le("r.t", "l.t"), le("l.t", plus("r.t", 3)))
    node = Group(
        Join(scan(LEFT, "l"), scan(RIGHT, "r"), conjunction(parts), "inner"),
        ("l.t", "r.u"),
        (Aggregate("n", Function.COUNT),),
    )
    frames = {i: frame.head(1000) for i, frame in many(node).items()}
    with patch.object(look_back, "final", side_effect=AssertionError("rows stand beside values")):
        assert evaluate(node, frames).height == 4 * 1000 - 6


@pytest.mark.parametrize("most", [4_999, 5_000])
def test_rows_beside_values_are_no_more_than_are_looked_at_in_one_go(most: int) -> None:
    """A thousand rows beside five values. Where they are too many, it is not even looked for their partners."""
    node = FORMS["values at a clock"]
    frames = {i: frame.head(1000) for i, frame in many(node).items()}
    with (
        patch.object(ranges, "CHUNK", most),
        patch.object(look_back, "slices_of", wraps=ranges.slices_of) as sought,
        patch.object(look_back, "final", wraps=partials.final) as finished,
    ):
        assert evaluate(node, frames).height == 5 * 1000 - 10
    assert (sought.called, finished.called) == (most == 5_000, most == 5_000)


def as_of(*more: Term) -> Group:
    parts = [eq("l.k", "r.k"), le("r.t", "l.t"), *more]
    joined = Join(scan(LEFT, "l"), scan(RIGHT, "r"), conjunction(parts), "left")
    last = Aggregate("last", Function.LAST, Attr("r.v"), Attr("r.t"))
    return Group(joined, ("l.t", "l.k", "l.x"), (last, Aggregate("n", Function.COUNT)))


def test_what_a_look_back_is_not() -> None:
    assert look_back_form.look_back(as_of()) is not None
    assert look_back_form.look_back(as_of(le("l.t", plus("r.t", 5)))) is not None
    assert look_back_form.look_back(as_of(le("l.t", plus("r.u", 5)))) is None, "nothing orders by two terms"
    assert look_back_form.look_back(as_of(lt("l.x", "r.v"), lt("r.v", "l.t"))) is None
    joined = as_of().input
    assert look_back_form.look_back(Group(joined, ("l.t", "r.v"), ())) is None
    mixed = call("add", Attr("l.x"), Attr("r.v"))
    assert look_back_form.look_back(Group(joined, ("l.t",), (Aggregate("s", Function.SUM, mixed),))) is None
    assert look_back_form.look_back(Group(joined, ("l.t",), (Aggregate("s", Function.SUM, Attr("l.x")),))) is not None
    for reads in ("l.x", "r.v"):
        many = Aggregate("s", Function.COUNT_DISTINCT, Attr(reads))
        assert (look_back_form.look_back(Group(joined, ("l.t",), (many,))) is None) == (reads == "l.x")
    padded = call("coalesce", Attr("r.v"), Lit(7, BIGINT))
    assert look_back_form.look_back(Group(joined, ("l.t",), (Aggregate("s", Function.SUM, padded),))) is None
    assert look_back_form.look_back(Group(joined, ("l.t",), (Aggregate("s", Function.SUM, SOME),))) is not None


def test_left_values_that_are_too_large_to_multiply_are_added_up() -> None:
    """As often as they have partners; the pairs are listed then."""
    total = Aggregate("s", Function.AVG, Attr("l.x"))
    before = conjunction([eq("l.k", "r.k"), le("r.t", "l.t")])
    node = Group(Join(scan(LEFT, "l"), scan(RIGHT, "r"), before, "inner"), ("l.k",), (total,))
    left = pl.DataFrame({"t": [400, 400], "k": [0, 0], "x": [2**62, 2**62 + 2]})
    right = pl.DataFrame({"t": range(300), "u": range(300), "k": [0] * 300, "v": range(300)})
    with (
        patch.object(look_back, "LISTED", -1),
        patch.object(look_back, "_MOST", 2**38),
        patch.object(ranges, "PAIRS_PER_ROW", 0),
        patch.object(ranges, "SMALL_PRODUCT", -1),
        patch.object(ranges, "_expanded", wraps=ranges._expanded) as listed,
    ):
        found = evaluate(node, {0: left, 1: right})
    assert found.rows() == [(0, pytest.approx(2.0**62))]
    assert listed.called


DOUBLES = Schema(
    (Attribute("k", BIGINT), Attribute("t", BIGINT, nullable=False, temporal=True), Attribute("d", DOUBLE))
)
#: Doubles of which some sums are infinite, some NaN, and some beyond all doubles on the way alone.
MODERATE, ODD, LARGE = (
    (0.1, 0.2, 1e15, -1e15),
    (1e-9, math.inf, math.nan, None, -0.0),
    (1.7e308, -1.7e308, 1e300),
)


@pytest.mark.parametrize("shard", shards(2))
def test_sums_of_doubles_are_added_up_key_by_key(shard: int) -> None:
    """Of either side, without the digits that a large value of another key would cost; infinite ones too, and those
    that are beyond all doubles on the way.
    """
    made = 0
    for seed in range(shard, 300, 2):
        rng = random.Random(seed)
        sides = [StreamDef(name, DOUBLES, static=True) for name in "LR"]
        left, right = (
            Rename(Scan(one), tuple((name, f"{one.name}.{name}") for name in DOUBLES.names)) for one in sides
        )
        before, after, not_long = le("R.t", "L.t"), le("L.t", "R.t"), le("L.t", plus("R.t", 3))
        limits = rng.choice(((before,), (after,), (), (before, not_long), (before, not_long)))
        parts: list[Term] = [eq("L.k", "R.k"), *limits]
        aggregates = (
            Aggregate("s", Function.SUM, Attr("R.d")),
            Aggregate("a", Function.AVG, Attr("R.d")),
            Aggregate("l", Function.SUM, Attr("L.d")),
            Aggregate("m", Function.AVG, Attr("L.d")),
        )
        kind: JoinKind = rng.choice(("inner", "left"))
        node = Group(Join(left, right, conjunction(parts), kind), rng.choice((("L.k", "L.t"), ("L.k",))), aggregates)
        some = rng.choice((MODERATE, MODERATE + ODD, MODERATE + LARGE, LARGE, (*LARGE, math.inf, -math.inf)))
        rows = {
            name: [(rng.choice((0, 1, None)), rng.randint(0, 6), rng.choice(some)) for _ in range(9)] for name in "LR"
        }
        frames = {
            i: pl.DataFrame(rows[name], schema=polars_schema(DOUBLES), orient="row") for i, name in enumerate("LR")
        }
        with (
            patch.object(look_back, "LISTED", -1),
            patch.object(ranges, "PAIRS_PER_ROW", 0),
            patch.object(look_back, "final", wraps=partials.final) as finished,
        ):
            found = evaluate(node, frames)
        made += finished.called
        wanted = sorted(meaning(node, rows), key=repr)
        for one, other in zip(sorted(found.rows(), key=repr), wanted, strict=True):
            assert all(
                a is b if b is None else a == pytest.approx(b, rel=1e-11, nan_ok=True)
                for a, b in zip(one, other, strict=True)
            ), f"seed {seed}: {one} {other}"
    assert made > 60


@pytest.mark.parametrize("listed", [False, True], ids=["looked up", "listed"])
@pytest.mark.parametrize("limits", [(), (le("L.t", plus("R.t", 9)),)], ids=["up to it", "within nine"])
@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1e308, 1e308, -1e308, -1e308], 0.0),
        ([1e308, 1e308, -1e308, -1e308, 0.25], 0.25),
        ([1e308, 1e308, 1e308, 1e308, -1e308, -1e308, -1e308], 1e308),
        ([1e308, 1e308, -1e308], 1e308),
        ([1e308, 1e308], math.inf),
        ([-1e308, -1e308, 1.0], -math.inf),
        ([1e308, 1e308, -math.inf], -math.inf),
        ([-1e308, math.inf, -1e308], math.inf),
        ([1e308, 1e308, math.inf, -math.inf], math.nan),
        ([-1e308, -1e308, math.nan], math.nan),
    ],
    ids=repr,
)
def test_only_the_total_of_doubles_can_be_beyond_all(
    values: list[float], total: float, limits: tuple[Term, ...], listed: bool
) -> None:
    node, rows = summed_up([0.0], values, ("L.k", "L.t"), limits)
    with patch.object(look_back, "LISTED", 1 << 40 if listed else -1):
        found = evaluate(node, in_frames(rows))
    assert found.rows() == [(0, 9, pytest.approx(total, nan_ok=True), 0.0)]
    assert bags_equal(found.rows(), meaning(node, rows))


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        ([1e308, -1e308], [1.0, 1.0, 1.0], (6.0, 0.0)),
        ([1e308, 1e308], [0.0], (0.0, math.inf)),
        ([1.0, 1.0], [1e308, -1e308], (0.0, 4.0)),
        ([0.1, -0.3], [1.0, 1.0, 1.0], (6.0, -0.6)),
    ],
)
def test_rows_of_one_group_bring_a_sum_of_doubles_back(
    left: list[float], right: list[float], wanted: tuple[float, float]
) -> None:
    node, rows = summed_up(left, right, ("L.k",), ())
    with patch.object(look_back, "LISTED", -1):
        found = evaluate(node, in_frames(rows))
    assert found.rows() == [(0, *map(pytest.approx, wanted))]
    assert bags_equal(found.rows(), meaning(node, rows))


def test_sums_of_two_rows_that_are_beyond_all_are_none() -> None:
    """What one row looks up is infinite, and the other way round what the other does: together they are nothing."""
    node, rows = summed_up([0.0], [1e308, 1e308, -1e308, -1e308], ("L.k",), (le("L.t", plus("R.t", 1)),))
    rows["L"] = [(0, 1, 0.0), (0, 3, 0.0)]
    rows["R"] = [(0, t, value) for t, (_, _, value) in enumerate(rows["R"])]
    with patch.object(look_back, "LISTED", -1):
        assert evaluate(node, in_frames(rows)).rows() == [(0, 0.0, 0.0)]
    assert meaning(node, rows) == [(0, 0.0, 0.0)]


def test_a_value_that_counts_several_times_is_as_exact_as_when_it_is_added_up() -> None:
    """Of 0.1, three times, and -0.3 what is left is 2.8e-17; of the rounded product 5.6e-17."""
    node, rows = summed_up([0.1, -0.3], [1.0], ("L.k",), ())
    rows["L"], rows["R"] = [(0, 9, 0.1), (0, 0, -0.3)], [(0, 0, 1.0), (0, 5, 1.0), (0, 6, 1.0)]
    with patch.object(look_back, "LISTED", -1):
        found = evaluate(node, in_frames(rows))
    assert found["l"][0] == pytest.approx(math.fsum([0.1, 0.1, 0.1, -0.3]), rel=1e-12)


Rows = dict[str, list[tuple[int, int, float]]]


def summed_up(
    left: list[float], right: list[float], keys: tuple[str, ...], limits: tuple[Term, ...]
) -> tuple[Group, Rows]:
    """Sums, of either side, of what left rows at 9 look up of right ones at 0, 1, 2, …"""
    left_side, right_side = (
        Rename(Scan(StreamDef(name, DOUBLES, static=True)), tuple((one, f"{name}.{one}") for one in DOUBLES.names))
        for name in "LR"
    )
    aggregates = (Aggregate("s", Function.SUM, Attr("R.d")), Aggregate("l", Function.SUM, Attr("L.d")))
    condition = conjunction([eq("L.k", "R.k"), le("R.t", "L.t"), *limits])
    node = Group(Join(left_side, right_side, condition, "inner"), keys, aggregates)
    return node, {"L": [(0, 9, value) for value in left], "R": [(0, t, value) for t, value in enumerate(right)]}


def in_frames(rows: Rows) -> dict[int, pl.DataFrame]:
    return {i: pl.DataFrame(rows[name], polars_schema(DOUBLES), orient="row") for i, name in enumerate("LR")}


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("function", [Function.LAST, Function.COUNT_DISTINCT, Function.SUM], ids=lambda one: one.value)
def test_a_group_of_several_rows_has_what_any_of_them_looks_up(function: Function, between: bool) -> None:
    """Of a key that has several rows: each of them has the partners of the last one, or some of its own."""
    by = Attr("r.t") if function is Function.LAST else None
    parts: list[Term] = [eq("l.k", "r.k"), le("r.t", "l.t"), *([le("l.t", plus("r.t", 2))] if between else [])]
    joined = Join(scan(LEFT, "l"), scan(RIGHT, "r"), conjunction(parts), "inner")
    node = Group(joined, ("l.k",), (Aggregate("a", function, Attr("r.v"), by),))
    rows: dict[str, list[tuple[int | None, ...]]] = {
        "L": [(3, 0, 0), (9, 0, 0), (3, 1, 0), (3, 1, 0), (50, 1, 0)],
        "R": [(t, t, t % 2, t % 4) for t in range(12)],
    }
    frames = [pl.DataFrame(rows[one.name], polars_schema(one.schema), orient="row") for one in (LEFT, RIGHT)]
    with patch.object(look_back, "LISTED", -1), patch.object(ranges, "PAIRS_PER_ROW", 0):
        found = evaluate(node, dict(enumerate(frames)))
    assert bags_equal(found.rows(), meaning(node, rows))


def test_between_two_limits_each_aggregate_is_that_of_the_pairs() -> None:
    """Slices of any length, which begin and end anywhere in the rows of a key."""
    rng = random.Random(3)
    joined = Join(
        scan(LEFT, "l"),
        scan(RIGHT, "r"),
        conjunction([eq("l.k", "r.k"), le("r.t", "l.t"), lt("l.t", plus("r.t", 7))]),
        "left",
    )
    functions = (Function.COUNT_DISTINCT, Function.MIN, Function.MAX, Function.SUM, Function.COUNT, Function.AVG)
    aggregates = [Aggregate(f"{one.value}", one, Attr("r.v")) for one in functions]
    aggregates += [
        Aggregate(f"{one.value} {x} {by}", one, Attr(x), Attr(by))
        for one in ENDS
        for x, by in (("r.v", "r.t"), ("l.x", "r.v"), ("r.v", "l.x"), ("l.x", "l.t"))
    ]
    node = Group(joined, ("l.t", "l.k", "l.x"), tuple(aggregates))
    values = (None, 0, 1, 1, 2, 5, 7, 9)
    rows: dict[str, list[tuple[int | None, ...]]] = {
        "L": [(rng.randint(0, 30), rng.choice((0, 1, None)), rng.choice(values)) for _ in range(60)],
        "R": [(t := rng.randint(0, 30), t, rng.choice((0, 0, 1, None)), rng.choice(values)) for _ in range(90)],
    }
    frames = [pl.DataFrame(rows[one.name], polars_schema(one.schema), orient="row") for one in (LEFT, RIGHT)]
    with (
        patch.object(look_back, "LISTED", -1),
        patch.object(ranges, "PAIRS_PER_ROW", 0),
        patch.object(look_back, "final", wraps=partials.final) as finished,
    ):
        found = evaluate(node, dict(enumerate(frames)))
    assert finished.called
    assert bags_equal(found.rows(), meaning(node, rows))


def test_an_instant_beyond_all_by_a_limit_limits_nothing() -> None:
    """A limit and an offset can be beyond all integers: then each row is within it, or none."""
    most, least = INT64_MAX, INT64_MIN
    limits = np.array([most, least, most - 1, least + 1, 0])
    known = np.ones(5, dtype=np.bool_)
    for by in (-2, -1, 0, 1, 2, most, least + 1):
        for above in (False, True):
            found, possible = bands._added(limits, known, by, above=above)
            for limit, value, some in zip(limits.tolist(), found.tolist(), possible.tolist(), strict=True):
                for instant in (least, least + 1, -1, 0, 1, most - 1, most):
                    exact = instant <= limit + by if above else instant >= limit + by
                    assert exact == (some and (instant <= value if above else instant >= value))


def test_an_as_of_join_of_one_key_lists_no_pairs() -> None:
    """16,000 rows a side are 128 million pairs."""
    count = 16_000
    left = pl.DataFrame({"t": range(count), "k": [0] * count, "x": range(count)})
    right = pl.DataFrame({"t": range(count), "u": range(count), "k": [0] * count, "v": range(count)})
    started = time.perf_counter()
    with patch.object(ranges, "_expanded", side_effect=AssertionError("pairs are listed")):
        found = evaluate(as_of(), {0: left, 1: right})
    assert time.perf_counter() - started < 5
    assert found.filter(pl.col("last") != pl.col("l.t")).height == 0
    assert found["n"].sum() == count * (count + 1) // 2


# --- on Spark ---------------------------------------------------------------------------------------------------------


def on_spark(spark: SparkSession, node: Node, rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    from tidegate.runtime.engines.spark.eval.relational import evaluate as evaluate_on_spark
    from tidegate.runtime.eval.columns import spark_schema

    leaves = {
        i: spark.createDataFrame(list(rows[one.name]), spark_schema(one.schema))
        for i, one in enumerate(occurrences(node))
    }
    found = evaluate_on_spark(node, leaves)
    assert [(field.name, field.dataType) for field in found.schema] == [
        (field.name, field.dataType) for field in spark_schema(node.schema)
    ]
    return [tuple(row) for row in found.collect()]


@pytest.mark.spark
def test_spark_looks_back_without_pairs_where_keys_are_keys_of_the_group(spark: SparkSession) -> None:
    """Rows of a share, in a worker; else Spark lists the pairs."""
    from tidegate.runtime.engines.spark.eval.relational import _Evaluation

    looked_back = 0
    for seed in range(60):
        rng = random.Random(seed)
        node = query(rng)
        found = look_back_form.look_back(node, at_most=1)
        is_by_key = found is not None and bool(found.looks[0].plain.equalities) and "l.k" in node.keys
        if not is_by_key and rng.random() < 0.9:
            continue
        rows = {"L": rows_of(rng, 1), "R": rows_of(rng, 2)}
        with patch.object(_Evaluation, "_looked_back", autospec=True, side_effect=_Evaluation._looked_back) as used:
            result = on_spark(spark, node, rows)
        assert used.called == is_by_key
        looked_back += is_by_key
        assert bags_equal(result, meaning(node, rows)), f"seed {seed}"
    assert looked_back > 5


@pytest.mark.spark
def test_spark_shares_rows_out_by_keys_that_are_equal(spark: SparkSession) -> None:
    """Zeros of two signs, NaN, NULL, and texts; and a sum that does not fit is the same error."""
    keys = (0.0, -0.0, math.nan, None, 1.5)
    schema = Schema((Attribute("k", DOUBLE), Attribute("s", STRING), *DOUBLES.attributes[1:]))
    sides = [
        Rename(Scan(StreamDef(n, schema, static=True)), tuple((a, f"{n}.{a}") for a in schema.names)) for n in "LR"
    ]
    same: list[Term] = [call("eq_null_safe", Attr("L.k"), Attr("R.k")), eq("L.s", "R.s"), le("R.t", "L.t")]
    joined = Join(sides[0], sides[1], conjunction(same), "left")
    total = Aggregate("a", Function.SUM, Attr("R.d"))
    node = Group(joined, ("L.k", "L.s", "L.t"), (total, Aggregate("n", Function.COUNT)))
    rows = {n: [(key, s, t, 0.5) for key in keys for s in ("a", "ä", None) for t in (1, 2)] for n in "LR"}
    assert bags_equal(on_spark(spark, node, rows), meaning(node, rows))
    large = Group(
        Join(scan(LEFT, "l"), scan(RIGHT, "r"), conjunction([eq("l.k", "r.k"), le("r.t", "l.t")]), "inner"),
        ("l.k",),
        (Aggregate("a", Function.SUM, Attr("r.v")),),
    )
    with pytest.raises(Exception, match="TG301 a: the sum is out of range"):
        on_spark(spark, large, {"L": [(1, 0, 0)], "R": [(0, 0, 0, INT64_MAX), (1, 1, 0, INT64_MAX)]})
