"""The reference evaluation on relations small enough to compute by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    JoinKind,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
)
from tidegate.algebra.printing.plans import node_text
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import EvaluationError, Row, as_bag, bags_equal, evaluate, evaluate_program
from tidegate.algebra.terms import Attr, Lit, call
from tidegate.algebra.types import BIGINT, DOUBLE, STRING

NAN = float("nan")
TIME = Attribute("t", BIGINT, nullable=False, temporal=True)
LEFT = Scan(StreamDef("L", Schema((TIME, Attribute("k", STRING), Attribute("x", DOUBLE))), progress=("t",)))
OTHER = Attribute("u", BIGINT, nullable=False, temporal=True)
RIGHT = Scan(StreamDef("R", Schema((OTHER, Attribute("j", STRING))), progress=("u",)))
ROWS: dict[str, Sequence[Row]] = {
    "L": [(1, "a", 1.0), (2, "a", None), (2, "b", NAN), (3, None, 0.0), (3, None, -0.0), (3, None, 0.0)],
    "R": [(1, "a"), (2, "a"), (5, "c"), (9, None)],
}
SAME_KEY = call("eq", Attr("k"), Attr("j"))


def test_a_selection_keeps_only_true() -> None:
    assert evaluate(Select(LEFT, call("eq", Attr("k"), Lit("a", STRING))), ROWS) == ROWS["L"][:2]
    assert evaluate(Select(LEFT, call("not", call("eq", Attr("k"), Lit("a", STRING)))), ROWS) == ROWS["L"][2:3]


def test_projection_renaming_and_imbedding_keep_duplicates() -> None:
    assert evaluate(Project(LEFT, ("k",)), ROWS) == [("a",), ("a",), ("b",), (None,), (None,), (None,)]
    renamed = Rename(LEFT, (("t", "time"),))
    assert renamed.schema.names == ("time", "k", "x")
    assert evaluate(renamed, ROWS) == ROWS["L"]
    later = Imbed(RIGHT, "v", call("add", Attr("u"), Lit(2, BIGINT)))
    assert later.schema["v"].temporal
    assert [row[2] for row in evaluate(later, ROWS)] == [3, 4, 7, 11]


def test_distinct_takes_equal_values_as_one() -> None:
    assert as_bag(evaluate(Distinct(LEFT), ROWS)) == as_bag(ROWS["L"][:4])


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("inner", [(1, "a", 1.0, 1, "a"), (1, "a", 1.0, 2, "a"), (2, "a", None, 1, "a"), (2, "a", None, 2, "a")]),
        ("semi", ROWS["L"][:2]),
        ("anti", ROWS["L"][2:]),
    ],
)
def test_joins_take_true_alone(kind: JoinKind, wanted: list[Row]) -> None:
    assert as_bag(evaluate(Join(LEFT, RIGHT, SAME_KEY, kind), ROWS)) == as_bag(wanted)


def test_a_left_join_is_the_inner_one_and_the_padded_rest() -> None:
    found = evaluate(Join(LEFT, RIGHT, SAME_KEY, "left"), ROWS)
    inner = evaluate(Join(LEFT, RIGHT, SAME_KEY, "inner"), ROWS)
    rest = [(*row, None, None) for row in evaluate(Join(LEFT, RIGHT, SAME_KEY, "anti"), ROWS)]
    assert as_bag(found) == as_bag([*inner, *rest])
    assert len(evaluate(Product(LEFT, RIGHT), ROWS)) == 24
    assert as_bag(inner) == as_bag(evaluate(Select(Product(LEFT, RIGHT), SAME_KEY), ROWS))


def test_union_and_difference_match_by_name_and_take_null_as_null() -> None:
    swapped = Project(Rename(RIGHT, (("u", "t"), ("j", "k"))), ("k", "t"))
    left = Project(LEFT, ("t", "k"))
    both = evaluate(Union((left, swapped)), ROWS)
    assert len(both) == 10
    assert (5, "c") in both
    assert evaluate(Difference(left, swapped), ROWS) == [(2, "b"), (3, None), (3, None), (3, None)]
    keys = Project(LEFT, ("k",))
    assert evaluate(Difference(keys, Project(swapped, ("k",))), ROWS) == [("b",)]


def grouped(*aggregates: Aggregate, keys: tuple[str, ...] = ("k",)) -> dict[object, Row]:
    rows = evaluate(Group(LEFT, keys, aggregates), ROWS)
    return {row[0]: row[len(keys) :] for row in rows}


def test_aggregates_skip_nulls_and_group_them() -> None:
    x, t = Attr("x"), Attr("t")
    found = grouped(
        Aggregate("rows", Function.COUNT),
        Aggregate("values", Function.COUNT, x),
        Aggregate("kinds", Function.COUNT_DISTINCT, x),
        Aggregate("total", Function.SUM, t),
        Aggregate("mean", Function.AVG, t),
        Aggregate("first", Function.FIRST, x, t),
        Aggregate("last", Function.LAST, x, t),
    )
    assert found["a"] == (2, 1, 1, 3, 1.5, 1.0, 1.0)
    assert found[None] == (3, 3, 1, 9, 3.0, 0.0, 0.0)
    assert found["b"][:3] == (1, 1, 1)
    extremes = evaluate(
        Group(LEFT, (), (Aggregate("least", Function.MIN, x), Aggregate("most", Function.MAX, x))), ROWS
    )
    assert extremes[0][0] == 0.0
    assert isinstance(most := extremes[0][1], float)
    assert math.isnan(most)


def test_grouping_nothing_yields_no_row() -> None:
    assert evaluate(Group(LEFT, (), (Aggregate("n", Function.COUNT),)), {"L": []}) == []


def test_ties_of_first_and_last_go_to_the_smallest_value() -> None:
    rows: list[Row] = [(1, "k", 5.0), (1, "k", 4.0), (2, "k", NAN), (2, "k", 9.0), (3, "k", None)]
    found = evaluate(
        Group(
            LEFT,
            ("k",),
            (Aggregate("f", Function.FIRST, Attr("x"), Attr("t")), Aggregate("l", Function.LAST, Attr("x"), Attr("t"))),
        ),
        {"L": rows},
    )
    assert found == [("k", 4.0, 9.0)]


def test_sums_are_exact_and_overflow_only_in_total() -> None:
    total = Group(RIGHT, (), (Aggregate("s", Function.SUM, Attr("u")),))
    assert evaluate(total, {"R": [(2**62, "a"), (2**62, "a"), (-1, "a")]}) == [(2**63 - 1,)]
    with pytest.raises(EvaluationError, match="TG301"):
        evaluate(total, {"R": [(2**62, "a"), (2**62, "a")]})
    doubles = Group(LEFT, (), (Aggregate("s", Function.SUM, Attr("x")),))
    cases: list[tuple[list[float], float]] = [
        ([1e16, 1.0, -1e16], 1.0), ([1e308, 1e308, -1e308], 1e308), ([1e308, 1e308], math.inf), ([math.inf, 1.0], math.inf)
    ]  # fmt: skip
    for values, wanted in cases:
        assert evaluate(doubles, {"L": [(1, "a", value) for value in values]}) == [(wanted,)]
    (both,) = evaluate(doubles, {"L": [(1, "a", math.inf), (1, "a", -math.inf)]})
    assert isinstance(both[0], float)
    assert math.isnan(both[0])


def query(name: str, stream: str, node: Node) -> Query:
    return Query(name, stream, node)


def result(name: str) -> Scan:
    return Scan(StreamDef(name, Schema((OTHER, Attribute("j", STRING))), progress=("u",)))


def test_programs_evaluate_in_the_order_of_their_streams() -> None:
    early = Select(RIGHT, call("lt", Attr("u"), Lit(3, BIGINT)))
    late = Select(RIGHT, call("gt", Attr("u"), Lit(6, BIGINT)))
    program = ProgramDef(
        (
            query("all", "Last", Distinct(result("Some"))),
            query("early", "Some", early),
            query("late", "Some", Project(late, ("j", "u"))),
        )
    )
    found = evaluate_program(program, ROWS)
    assert as_bag(found["Last"]) == as_bag([(1, "a"), (2, "a"), (9, None)])


def read(name: str, attribute: str) -> Node:
    """A result stream of instants, its one attribute called so."""
    return Rename(Scan(StreamDef(name, Schema((TIME,)), progress=("t",))), (("t", attribute),))


def shifted(node: Node, name: str, by: int) -> Node:
    """The instants later by so much, called t."""
    later = Imbed(node, "later", call("add", Attr(name), Lit(by, BIGINT)))
    return Rename(Project(later, ("later",)), (("later", "t"),))


def test_a_recursion_is_the_relation_that_equals_what_its_queries_yield() -> None:
    """Every instant of L without one just before: 1 is, so 2 is not, so 3 is."""
    instants = Distinct(Project(LEFT, ("t",)))
    before = call("eq", Attr("o"), call("sub", Attr("t"), Lit(1, BIGINT)))
    program = ProgramDef((query("one", "Odd", Join(instants, read("Odd", "o"), before, "anti")),))
    assert as_bag(evaluate_program(program, ROWS)["Odd"]) == as_bag([(1,), (3,)])


def test_queries_that_read_each_other_go_on_while_their_conditions_hold() -> None:
    """A counts on from B and B from A, while B is below 6; each of the three rows at 3 goes its own way."""
    start = Project(Select(LEFT, call("ge", Attr("t"), Lit(3, BIGINT))), ("t",))
    below = Select(read("B", "b"), call("lt", Attr("b"), Lit(6, BIGINT)))
    program = ProgramDef(
        (
            query("start", "A", start),
            query("count", "A", shifted(below, "b", 1)),
            query("b", "B", shifted(read("A", "a"), "a", 1)),
            query("c", "C", Distinct(read("B", "t"))),
        )
    )
    found = evaluate_program(program, ROWS)
    assert as_bag(found["A"]) == as_bag([(3,), (5,)] * 3)
    assert as_bag(found["C"]) == as_bag([(4,), (6,)])


def test_a_recursion_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.algebra.semantics.MAX_ROUNDS", 100)
    start = Project(RIGHT, ("u",))
    program = ProgramDef(
        (query("start", "N", Rename(start, (("u", "t"),))), query("next", "N", shifted(read("N", "n"), "n", 1)))
    )
    with pytest.raises(QueryError, match="TG133 the recursion of N does not end"):
        evaluate_program(program, {"R": [(1, "a")]})


def test_bags_are_compared_by_value_and_type() -> None:
    assert bags_equal([(NAN, 0.0), (1.0, None)], [(1.0 + 1e-15, None), (NAN, -0.0)])
    assert not bags_equal([(1,)], [(1.0,)])
    assert not bags_equal([(1,)], [(True,)])
    assert not bags_equal([(1,), (1,)], [(1,)])
    assert not bags_equal([(1.0,)], [(1.0 + 1e-9,)])
    assert not bags_equal([(2**60,)], [(2**60 + 1,)])


def test_plans_print_with_numbered_relations() -> None:
    left = Select(LEFT, call("gt", Attr("x"), Lit(1.5, DOUBLE)))
    node = Group(Join(left, RIGHT, SAME_KEY, "inner"), ("k",), (Aggregate("top", Function.LAST, Attr("x"), Attr("t")),))
    assert node_text(node).splitlines() == [
        "r0 := stream L",
        "r1 := select r0 where x > 1.5",
        "r2 := stream R",
        "r3 := inner join r1, r2 on k = j",
        "r4 := group r3 by k: top = last(x, by=t)",
        "schema: k string, top double",
    ]
