"""Small batches as arrays: what is supported, what is made of them, and which pairs of them have equal numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    occurrences,
)
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.semantics import evaluate as reference
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, BOOLEAN, DOUBLE, STRING
from tidegate.runtime import rows
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.small import joins
from tidegate.runtime.eval.small.terms import array_term, column_of
from tidegate.runtime.eval.small.trees import Run, small_tree
from tidegate.runtime.rows import SmallRows, Unsupported, no_rows, numbered, stacked

FRAME = pl.DataFrame(
    {"i": [3, -1, 3, 7], "d": [0.5, math.inf, -0.0, 2.0], "b": [True, False, True, True], "s": ["", "a\0", "b", "a"]}
)
SCHEMA = Schema((Attribute("i", BIGINT), Attribute("d", DOUBLE), Attribute("b", BOOLEAN), Attribute("s", STRING)))


def test_rows_come_back_as_they_went_in() -> None:
    few = SmallRows.of(FRAME)
    assert few.frame().equals(FRAME)
    assert few.table().to_pydict() == FRAME.to_dict(as_series=False)
    assert few.only(["s", "i"]).frame().equals(FRAME.select("s", "i"))
    assert few.take(np.array([3, 0, 0])).frame().equals(FRAME[[3, 0, 0]])
    assert no_rows(SCHEMA).frame().equals(FRAME.clear())
    assert stacked([few, few.take(np.array([1])), no_rows(SCHEMA)]).frame().equals(pl.concat([FRAME, FRAME[1:2]]))
    assert few.bytes == 4 * (8 + 8 + 1 + 8)


def test_rows_where_a_mask_is_true() -> None:
    few = SmallRows.of(FRAME)
    for mask in ([True, False, False, True], [False] * 4, [True] * 4):
        found = few.where(np.array(mask))
        assert found.height == sum(mask)
        assert found.frame().equals(FRAME.filter(pl.Series(mask)))


def test_what_is_missing_or_too_many_is_unfit() -> None:
    for values in ([1, None], [1.0, None], [1.0, math.nan], ["a", None], [True, None]):
        with pytest.raises(Unsupported):
            SmallRows.of(pl.DataFrame({"a": values}))
    with patch.object(rows, "MOST", 4):
        assert SmallRows.of(FRAME).height == 4
        with pytest.raises(Unsupported):
            SmallRows.of(pl.concat([FRAME, FRAME[:1]]))


def test_bounds_are_the_least_and_the_greatest() -> None:
    few = SmallRows.of(FRAME.with_columns(j=pl.Series([5, 6, 2, 4])))
    assert few.bounds(["i", "j"]) == {"i": (-1, 7), "j": (2, 6)}
    assert few.bounds([]) == {}
    assert no_rows(SCHEMA).bounds(["i"]) == {}


def test_equal_rows_have_one_number_and_others_another() -> None:
    """By both columns, whatever the numbers of either; texts and doubles, too."""
    one, other = np.array([5, 5, 2, 5, 2]), np.array([-1, 0, 0, -1, 0])
    for columns in ([one, other], [other, one], [one.astype(str).astype(np.object_), other / 4]):
        numbers, firsts = numbered(columns)
        assert [numbers[0] == number for number in numbers] == [True, False, False, True, False]
        assert [numbers[2] == number for number in numbers] == [False, False, True, False, True]
        assert sorted(set(numbers.tolist())) == [0, 1, 2]
        assert [numbers[first] for first in firsts] == [0, 1, 2]
        assert sorted(firsts.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("rows_", [0, 1, 2, 300, 5_000])
def test_numbers_are_in_the_order_of_values_and_firsts_are_the_first(rows_: int) -> None:
    """By a column of any type as NumPy numbers them, without what it can do beside that."""
    rng = np.random.default_rng(rows_)
    whole = rng.integers(-9, 9, rows_)
    texts = np.array([f"t{number}" for number in whole], dtype=np.object_)
    for column in (whole, whole / 4, whole % 2 == 0, texts):
        _, firsts, numbers = np.unique(column, return_index=True, return_inverse=True)
        with patch.object(np, "unique", None):
            found = numbered([column])
        assert found[0].tolist() == numbers.tolist()
        assert found[1].tolist() == firsts.tolist()


@pytest.mark.parametrize("kind", ["inner", "semi", "anti"])
def test_what_tells_pairs_from_candidates_is_copied_of_these_and_no_more(kind: Any) -> None:
    """A hundred rows with a key have 10,000 candidates, of which ten are pairs."""
    columns = [Attribute(name, BIGINT) for name in "kta"]
    left = Scan(StreamDef("L", Schema(tuple(columns)), static=True))
    right = Rename(Scan(StreamDef("R", left.schema, static=True)), tuple((name, f"r.{name}") for name in "kta"))
    near = conjunction([call("eq", Attr("k"), Attr("r.k")), call("lt", Attr("t"), Attr("r.t"))])
    step = joins.small_join(Join(left, right, near, kind))
    assert step is not None
    copied = []

    def counting(one: SmallRows, other: SmallRows, *places: Any) -> SmallRows:
        copied.append(({*one.columns, *other.columns}, len(places[0])))
        return pasted(one, other, *places)

    pasted = joins._pasted
    ones = SmallRows({"k": np.zeros(100, int), "t": np.arange(100), "a": np.arange(100)}, 100)
    others = SmallRows(
        {"r.k": np.zeros(100, int), "r.t": np.where(np.arange(100) < 90, -1, 1), "r.a": np.arange(100)}, 100
    )
    with patch.object(joins, "_pasted", counting):
        found = step(ones, others)
    wanted = [({"t", "r.t"}, 10_000)]
    if kind == "inner":
        wanted.append(({"k", "t", "a", "r.k", "r.t", "r.a"}, 10))
        assert found.columns["r.a"].tolist() == list(range(90, 100))
    else:
        assert found.columns["a"].tolist() == ([0] if kind == "semi" else list(range(1, 100)))
    assert copied == wanted


@pytest.mark.parametrize("seed", range(3))
def test_pairs_with_equal_numbers_are_all_listed_or_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ones, others = rng.integers(0, 6, 20), rng.integers(2, 9, 15)
    wanted = [(i, j) for i in range(20) for j in range(15) if ones[i] == others[j]]
    with patch.object(rows, "MOST_PAIRS", len(wanted)):
        left, right = joins._equal(ones, others)
        assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == wanted
    with patch.object(rows, "MOST_PAIRS", len(wanted) - 1), pytest.raises(Unsupported):
        joins._equal(ones, others)
    nothing = joins._equal(ones, others[:0])
    assert [len(part) for part in nothing] == [0, 0]


def test_all_pairs_are_looked_at_up_to_a_number_of_them() -> None:
    """Whatever the keys up to `SMALL_PRODUCT`; up to `MOST_PAIRS` where there are none."""
    key = joins._Column(lambda columns: columns["i"], BIGINT.kind, frozenset("i"))
    left = right = SmallRows.of(FRAME)
    by_key, without = (
        joins._Pairing("inner", ((key, key),), None, None, None),
        joins._Pairing("semi", (), None, None, None),
    )
    for few, called in ((16, False), (15, True)):
        with patch.object(joins, "SMALL_PRODUCT", few), patch.object(joins, "_equal", wraps=joins._equal) as equal:
            one, other = by_key._candidates(left, right)
        assert equal.called == called
        pairs = sorted(zip(one.tolist(), other.tolist(), strict=True))
        assert pairs == [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2), (3, 3)]
    for pairing in (by_key, without):
        with (
            patch.object(joins, "SMALL_PRODUCT", 16),
            patch.object(rows, "MOST_PAIRS", 15),
            pytest.raises(Unsupported),
        ):
            pairing._candidates(left, right)
    with patch.object(joins, "SMALL_PRODUCT", 0), patch.object(rows, "MOST_PAIRS", 16):
        assert len(without._candidates(left, right)[0]) == 16


def test_terms_are_columns_of_their_kind() -> None:
    few = SmallRows.of(FRAME)

    def column(term: Term) -> list[Any]:
        value = array_term(term, SCHEMA)
        assert value is not None
        found: list[Any] = column_of(value, term_type(term, SCHEMA).kind, few).tolist()
        return found

    assert column(call("eq", Attr("s"), Lit("a\0", STRING))) == [False, True, False, False], "NUL at an end counts"
    assert column(call("or", Attr("b"), call("eq", Attr("i"), Lit(-1, BIGINT)))) == [True] * 4
    assert column(call("coalesce", Attr("i"), Lit(5, BIGINT))) == [3, -1, 3, 7]
    assert column(call("if", Attr("b"), Attr("i"), Lit(5, BIGINT))) == [3, 5, 3, 7]
    assert column(call("not", Attr("b"))) == [False, True, False, False]
    assert column(call("neg", Attr("d"))) == [-0.5, -math.inf, 0.0, -2.0]
    assert column(call("mul", Attr("d"), Attr("d"))) == [0.25, math.inf, 0.0, 4.0]
    with pytest.raises(Unsupported):
        column(call("sub", Attr("d"), Attr("d")))  # NaN of two infinities
    assert array_term(Lit(math.nan, DOUBLE), SCHEMA) is None
    assert array_term(call("add", Attr("i"), Attr("i")), SCHEMA) is None, "it may overflow"


ONE = StreamDef("One", SCHEMA, static=True)
OTHER = StreamDef("Other", Schema(tuple(a.renamed(f"{a.name}2") for a in SCHEMA.attributes)), static=True)
COPY = StreamDef("Copy", SCHEMA, static=True)
ONES = [(3, 0.5, True, "a"), (-1, 2.0, False, "b"), (3, 0.5, True, "a"), (7, 1.0, True, "")]
OTHERS = [(3, 1.5, True, "x"), (7, 0.5, False, "a"), (3, 2.0, False, "y")]
COPIES = [(3, 0.5, True, "a"), (8, 1.0, False, "b")]
I, D, B, S = (Attr(name) for name in "idbs")
SUM, COUNT = Aggregate("sum", Function.SUM, I), Aggregate("count", Function.COUNT)
SAME, MORE = call("eq", I, Attr("i2")), call("lt", I, Attr("i2"))


def only(stream: StreamDef, *names: str) -> Project:
    return Project(Scan(stream), names)


def grouped(*aggregates: Aggregate, keys: tuple[str, ...] = ("s",)) -> Group:
    return Group(Scan(ONE), keys, aggregates)


KNOWN: dict[str, Node] = {
    "select": Select(Scan(ONE), call("gt", I, Lit(0, BIGINT))),
    "project": only(ONE, "s", "i"),
    "rename": Rename(Scan(ONE), (("i", "j"),)),
    "imbed": Imbed(Scan(ONE), "j", call("eq", I, Lit(3, BIGINT))),
    "distinct": Distinct(only(ONE, "i", "s")),
    "union": Union((Scan(ONE), Scan(COPY), only(COPY, "s", "b", "d", "i"))),
    "product": Product(Scan(ONE), Scan(OTHER)),
    "difference": Difference(only(ONE, "i", "s"), only(COPY, "s", "i")),
    "group": grouped(SUM, COUNT, Aggregate("least", Function.MIN, D), Aggregate("mean", Function.AVG, D)),
    "group of all": grouped(SUM, COUNT, Aggregate("some", Function.COUNT, D), keys=()),
    "latest": grouped(Aggregate("latest", Function.LAST, I, D), keys=("b",)),
    **{kind: Join(Scan(ONE), Scan(OTHER), SAME, kind) for kind in ("inner", "semi", "anti")},
    "condition": Join(Scan(ONE), Scan(OTHER), conjunction([SAME, call("lt", D, Attr("d2")), B]), "anti"),
    "join above": Distinct(Project(Join(Scan(ONE), Select(Scan(OTHER), Attr("b2")), MORE, "inner"), ("i", "s2"))),
}
FAILING = call("gt", call("div", I, I), Lit(0.5, DOUBLE))
UNKNOWN: dict[str, Node] = {
    "select": Select(Scan(ONE), FAILING),
    "imbed": Imbed(Scan(ONE), "j", call("div", I, I)),
    "distinct of doubles": Distinct(only(ONE, "d")),
    "difference of doubles": Difference(only(ONE, "d"), only(COPY, "d")),
    "group by doubles": grouped(COUNT, keys=("d",)),
    "group of texts": grouped(Aggregate("least", Function.MIN, S), keys=("i",)),
    "group of texts and others": grouped(COUNT, Aggregate("least", Function.MIN, S), SUM, keys=("i",)),
    "group of what can fail": grouped(Aggregate("sum", Function.SUM, call("div", I, I))),
    "left": Join(Scan(ONE), Scan(OTHER), SAME, "left"),
    "key that can fail": Join(Scan(ONE), Scan(OTHER), call("eq", call("div", I, I), Attr("d2")), "inner"),
    "condition that can fail": Join(Scan(ONE), Scan(OTHER), conjunction([SAME, FAILING]), "inner"),
}
RELATIONS = {"One": ONES, "Other": OTHERS, "Copy": COPIES}


def run_of(node: Node, relations: Mapping[str, Sequence[Any]] = RELATIONS, ready: Any = None) -> Run:
    leaves = {
        i: SmallRows.of(pl.DataFrame(relations[s.name], schema=polars_schema(s.schema), orient="row"))
        for i, s in enumerate(occurrences(node))
    }
    return Run(leaves, ready or {})


@pytest.mark.parametrize("name", KNOWN)
def test_every_operator_is_known_by_numpy(name: str) -> None:
    """Else it were right all the same, and slow."""
    node = KNOWN[name]
    step = small_tree(node)
    assert step is not None
    for relations in (RELATIONS, {**RELATIONS, "One": []}, {**RELATIONS, "Other": []}):
        found = step(run_of(node, relations)).frame()
        assert found.schema == polars_schema(node.schema)
        assert bags_equal(found.rows(), reference(node, relations))


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_only_polars_knows_is_left_to_it(name: str) -> None:
    assert small_tree(UNKNOWN[name]) is None
    assert small_tree(Distinct(Project(UNKNOWN[name], UNKNOWN[name].schema.names[:1]))) is None


def test_what_is_computed_already_is_taken() -> None:
    """By the place of the first leaf: the same tree over other leaves is another one."""
    part = KNOWN["distinct"]
    node = Union((part, part))
    step = small_tree(node)
    assert step is not None
    done = SmallRows.of(pl.DataFrame({"i": [5], "s": ["z"]}))
    whole = step(run_of(node)).frame()
    assert whole.height == 6
    for places in ((0,), (1,), (0, 1)):
        found = step(run_of(node, ready={(place, part): done for place in places})).frame()
        assert found.filter(pl.col("s") == "z").height == len(places)
        assert found.height == 6 - 2 * len(places)


def test_products_are_of_few_pairs() -> None:
    step = small_tree(KNOWN["product"])
    assert step is not None
    with patch.object(rows, "MOST_PAIRS", 12):
        assert step(run_of(KNOWN["product"])).height == 12
    with patch.object(rows, "MOST_PAIRS", 11), pytest.raises(Unsupported):
        step(run_of(KNOWN["product"]))


def test_zero_has_no_sign_in_what_is_grouped() -> None:
    """Whichever of both came first; as Polars has it."""
    aggregates = [
        Aggregate("least", Function.MIN, D),
        Aggregate("greatest", Function.MAX, D),
        Aggregate("first", Function.FIRST, D, I),
        Aggregate("by", Function.FIRST, I, D),
    ]
    node = Group(Scan(ONE), (), tuple(aggregates))
    step = small_tree(node)
    assert step is not None
    for zeros in ((-0.0, -0.0), (0.0, -0.0), (-0.0, 0.0)):
        rows_ = [(1 + k, zero, True, "") for k, zero in enumerate(zeros)]
        (found,) = step(run_of(node, {**RELATIONS, "One": rows_})).frame().rows()
        assert repr(found) == "(0.0, 0.0, 0.0, 1)"
