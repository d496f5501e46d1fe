"""Where attributes come from through every operator, and which of two occurrences are equal."""

from __future__ import annotations

import pytest

from tests.analysis.build import eq, le, plus, scan, stream, table
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
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Term, call, conjunction
from tidegate.algebra.types import BIGINT, DOUBLE
from tidegate.analysis.state.origins import Origin, Sources, _Walk

A, B, C = stream("A", values=("k", "l")), stream("B", values=("k", "l")), stream("C", values=("k", "l"))


def origins(node: Node, *streams: StreamDef) -> dict[str, tuple[Origin, ...]]:
    return _Walk(Sources(streams)).origins(node)


def sources(node: Node, *streams: StreamDef) -> Sources:
    return Sources.of(node, streams)


def test_origins_through_operators_of_one_input() -> None:
    a = Scan(A)
    t, k, l_ = (Origin(0, name) for name in "tkl")
    assert origins(a, A) == {"t": (t,), "k": (k,), "l": (l_,)}
    assert origins(Select(a, le("t", "t")), A) == origins(Distinct(a), A) == origins(a, A)
    assert origins(Project(a, ("k", "t")), A) == origins(Group(a, ("k", "t"), ()), A) == {"k": (k,), "t": (t,)}
    assert origins(Rename(a, (("k", "m"),)), A) == {"t": (t,), "m": (k,), "l": (l_,)}
    for term, of in (
        (Attr("k"), (k,)),
        (plus("t", 5), (Origin(0, "t", 5),)),
        (plus(plus("t", 5), -2), (Origin(0, "t", 3),)),
        (call("least", Attr("t"), plus("t", 1)), ()),
        (call("mul", Attr("k"), Attr("l")), ()),
    ):
        assert origins(Imbed(a, "new", term), A)["new"] == of
    later = Imbed(Imbed(a, "u", plus("t", 5)), "v", plus("u", 7))
    assert origins(later, A)["v"] == (Origin(0, "t", 12),)


def test_origins_through_operators_of_several_inputs() -> None:
    a, b = scan(A, "a"), scan(B, "b")
    both = Product(a, b)
    assert origins(both, A, B) == {
        **{f"a.{name}": (Origin(0, name),) for name in "tkl"},
        **{f"b.{name}": (Origin(1, name),) for name in "tkl"},
    }
    same = eq("a.k", "b.k")
    kinds: tuple[tuple[JoinKind, bool], ...] = (("inner", True), ("left", False), ("semi", False), ("anti", False))
    for kind, whole in kinds:
        found = origins(Join(a, b, same, kind), A, B)
        assert found == {name: of for name, of in origins(both, A, B).items() if whole or name.startswith("a.")}
    each = origins(Union((Scan(A), Scan(B), Scan(C))), A, B, C)
    assert each == {name: tuple(Origin(i, name) for i in range(3)) for name in "tkl"}
    assert origins(Difference(Scan(A), Scan(B)), A, B) == origins(Scan(A), A)


def joined(condition: Term, kind: JoinKind = "inner") -> Join:
    return Join(scan(A, "a"), scan(B, "b"), condition, kind)


@pytest.mark.parametrize("op", ["eq", "eq_null_safe"])
@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
def test_a_condition_equates_attributes_of_both_sides(op: str, kind: JoinKind) -> None:
    condition = conjunction([call(op, Attr("a.k"), Attr("b.l")), le("a.t", "b.t")])
    found = sources(joined(condition, kind), A, B)
    assert found.keys(0, 1, ()) == (("k", "l"),)
    assert found.keys(1, 0, ()) == (("l", "k"),)
    assert found.keys(0, 1, {1}) == found.keys(0, 1, {0}) == ()
    assert [(anti.left, anti.right) for anti in found.antijoins] == (
        [(range(1), range(1, 2))] if kind == "anti" else []
    )


def test_what_is_equal_to_the_same_is_equal() -> None:
    """Through a third occurrence, unless the zone ignores that."""
    three = Join(joined(eq("a.k", "b.k")), scan(C, "c"), conjunction([eq("b.k", "c.l"), eq("a.l", "c.k")]), "inner")
    found = sources(three, A, B, C)
    assert found.keys(0, 2, ()) == (("k", "l"), ("l", "k"))
    assert found.keys(0, 1, ()) == (("k", "k"),)
    assert found.keys(0, 2, {1}) == (("l", "k"),)
    assert found.keys(1, 2, {0}) == (("k", "l"),)
    again = sources(Select(joined(eq("a.k", "b.k")), eq("a.l", "b.k")), A, B)
    assert again.keys(0, 1, ()) == (("k", "k"), ("l", "k"))
    assert again.keys(1, 0, ()) == (("k", "k"),), "one pair for each of a class"


def test_what_is_no_equality_of_two_rows() -> None:
    for condition in (
        le("a.k", "b.k"),
        eq("a.k", "a.l"),
        eq(plus("a.k", 1), "b.k"),
        call("or", eq("a.k", "b.k"), eq("a.l", "b.l")),
    ):
        assert sources(joined(condition), A, B).equalities == []
    other = StreamDef("D", Schema((Attribute("x", DOUBLE),)), static=True)
    typed = Join(scan(A, "a"), scan(other, "d"), call("eq", Attr("a.k"), Attr("d.x")), "inner")
    assert sources(typed, A, other).keys(0, 1, ()) == (), "of two types"
    shifted = Select(Imbed(Product(scan(A, "a"), scan(B, "b")), "u", plus("a.t", 1)), eq("u", "b.t"))
    assert sources(shifted, A, B).equalities == [], "shifted"


def test_a_difference_and_the_sides_of_a_union() -> None:
    found = sources(Difference(Project(Scan(A), ("t", "k")), Project(Scan(B), ("k", "t"))), A, B)
    assert found.keys(0, 1, ()) == (("k", "k"), ("t", "t"))
    united = Join(
        Rename(Union((Scan(A), Scan(B))), (("k", "u.k"), ("t", "u.t"), ("l", "u.l"))),
        scan(C, "c"),
        eq("u.k", "c.k"),
        "inner",
    )
    found = sources(united, A, B, C)
    assert found.keys(0, 2, ()) == found.keys(1, 2, ()) == (("k", "k"),)
    assert found.keys(0, 1, {2}) == ()


def test_tables_are_occurrences_too() -> None:
    t = table("T")
    found = sources(Join(scan(t, "t"), scan(A, "a"), eq("t.k", "a.k"), "anti"), t, A)
    (anti,) = found.antijoins
    assert (anti.left, anti.right) == (range(1), range(1, 2))
    assert anti.origins["a.k"] == (Origin(1, "k"),)
    assert found.streams[0].schema["k"].type == BIGINT
