"""Terms over instants: equal ones are one variable of a zone, and what a zone says of them is true (rule R3)."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.build import eq, le, plus, query, query_facts, scan, stream, ticks
from tests.analysis.test_normal_form import formulas, holds, opaque, rounded_terms
from tidegate.algebra.formulas import Compare, Floor, Formula, Shift, Var
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Imbed, Join, Node, Product, Project, Rename, Select, Union
from tidegate.algebra.terms import Attr, Call, Term, call
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.state.bounds import Bounded
from tidegate.analysis.validity.validity import refuting
from tidegate.analysis.zones.expansion import MAX_ZONES
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.instants import constrained
from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.pruning import prune
from tidegate.analysis.zones.sites import edge_lines
from tidegate.analysis.zones.zone import Copy, Extreme, Hidden, Layout, Rounding, Zone

NAMES = ("a", "b", "c")
ROWS: tuple[Copy, ...] = tuple(("x", 0, name) for name in NAMES)
FREE = Zone.free(Layout(ROWS, {name: k for k, name in enumerate(NAMES)}))
S, T = stream("S", ("t",)), stream("T", ("t",))


def floor(term: str | Term, unit: int) -> Call:
    return call("floor", Attr(term) if isinstance(term, str) else term, ticks(unit))


def value(row: Hidden, at: dict[str, int]) -> int:
    match row:
        case Rounding(base, offset, unit):
            return (value(base, at) + offset) // unit * unit
        case Extreme(op, parts):
            values = [value(p, at) if isinstance(p, Extreme) else value(p.row, at) + p.by for p in parts]
            return min(values) if op == "least" else max(values)
        case (_, _, name):
            return at[name]
    raise AssertionError(row)


def inside(zone: Zone, at: dict[str, int]) -> bool:
    values = [value(row, at) for row in zone.layout.rows]
    return all(v - w <= zone.matrix[i, j] for i, w in enumerate(values) for j, v in enumerate(values))


@given(formulas(rounded_terms, opaque), st.booleans(), st.booleans())
def test_where_a_formula_is_true_a_zone_says_so_of_the_very_roundings(formula: Formula, p: bool, q: bool) -> None:
    true = constrained([FREE], formula, MAX_ZONES).zones
    false = constrained([FREE], formula, MAX_ZONES, positive=False).zones
    for point in product(range(-3, 4), repeat=len(NAMES)):
        at = dict(zip(NAMES, point, strict=True))
        zones = true if holds(formula, at, {"p": p, "q": q}) else false
        assert any(inside(zone, at) for zone in zones)


def test_a_rounding_lies_within_a_unit_of_its_instant() -> None:
    (zone,) = constrained([FREE], Compare(Floor(Shift(Var("a"), 3), 20), "<=", Var("b")), MAX_ZONES).zones
    rounded = Rounding(("x", 0, "a"), 3, 20)
    assert zone.distance(("x", 0, "a"), rounded) == 3
    assert zone.distance(rounded, ("x", 0, "a")) == 16
    assert zone.distance(("a", "b"), ("a", "a")) == 16


def test_negation_does_not_loosen_a_rounding() -> None:
    """¬(floor_5(t) <= u) is u < floor_5(t), so u < t; of the bound that floor_5(t) <= u implies it would be u + 4 <
    t.
    """
    (zone,) = constrained([FREE], Compare(Floor(Var("a"), 5), "<=", Var("b")), MAX_ZONES, positive=False).zones
    assert zone.distance(("a", "a"), ("a", "b")) == -1


def joined(*, named: bool, unit: int = 300) -> Node:
    """Rows of one window of both streams, grouped by that window; its end is named before the join, or written
    thrice.
    """
    left, right = scan(S, "i"), scan(T, "k")
    first, second = plus(floor("i.t", unit), unit), plus(floor("k.t", unit), unit)
    if named:
        left, right = Imbed(left, "m", first), Imbed(right, "n", second)
        windows = Imbed(Join(left, right, eq("m", "n"), "inner"), "w", Attr("m"))
    else:
        windows = Imbed(Join(left, right, eq(first, second), "inner"), "w", first)
    return Group(windows, ("w",), (Aggregate("rows", Function.COUNT),))


def test_a_window_written_three_times_waits_and_keeps_as_if_it_were_named() -> None:
    twice, once = query_facts(joined(named=False)), query_facts(joined(named=True))
    for facts in (twice, once):
        # A window is final when its last instant has passed, and its rows can go then.
        assert facts.propagation["w"].evaluate({("S", "t"): 299, ("T", "t"): 299}) == 300
        assert [clause.distances for clause in facts.propagation["w"].clauses] == [(("t", -1),)] * 2
        for occurrence in facts.occurrences:
            assert isinstance(occurrence.bound, Bounded)
            assert occurrence.bound.horizon == 299


def test_a_window_in_where_is_that_of_the_groups() -> None:
    pairs = Select(Product(scan(S, "i"), scan(T, "k")), eq(floor("i.t", 60), floor("k.t", 60)))
    node = Group(Imbed(pairs, "w", floor("k.t", 60)), ("w",), (Aggregate("rows", Function.COUNT),))
    facts = query_facts(node)
    assert [clause.distances for clause in facts.propagation["w"].clauses] == [(("t", 59),)] * 2


def distance(node: Node, w: str, v: str) -> set[float]:
    return {zone.distance(("a", w), ("a", v)) for zone in federation(node).zones}


def test_roundings_of_roundings_are_those_of_their_instant() -> None:
    hours = Imbed(Imbed(scan(S, "s"), "m", floor("s.t", 5)), "h", floor(plus("m", 7), 60))
    both = Imbed(hours, "same", floor(plus("s.t", 5), 60))
    assert distance(both, "h", "same") == distance(both, "same", "h") == {0}
    finer = Imbed(Imbed(scan(S, "s"), "h", floor("s.t", 60)), "m", floor(plus("h", 7), 5))
    assert distance(finer, "h", "m") == {5}
    ceiling = Imbed(Imbed(scan(S, "s"), "c", call("ceil", Attr("s.t"), ticks(5))), "f", floor(plus("s.t", 4), 5))
    assert distance(ceiling, "c", "f") == distance(ceiling, "f", "c") == {0}
    uneven = Imbed(Imbed(Imbed(scan(S, "s"), "m", floor("s.t", 5)), "h", floor("m", 7)), "g", floor("s.t", 7))
    assert distance(uneven, "h", "g") != {0} or distance(uneven, "g", "h") != {0}
    assert distance(uneven, "m", "h") | distance(uneven, "h", "m") == {0, 6}


def test_the_least_of_two_instants_is_one_instant() -> None:
    pairs = Product(scan(S, "s"), scan(T, "k"))
    first = Imbed(pairs, "m", call("least", Attr("s.t"), Attr("k.t")))
    node = Imbed(Imbed(first, "n", call("least", Attr("k.t"), Attr("s.t"))), "f", floor("m", 5))
    node = Imbed(node, "g", call("least", floor("k.t", 5), floor("s.t", 5)))
    assert distance(node, "m", "n") == distance(node, "n", "m") == {0}
    assert distance(node, "f", "g") == distance(node, "g", "f") == {0}


def test_a_rounding_is_known_again_after_it_was_hidden() -> None:
    same = Select(Product(scan(S, "s"), scan(T, "k")), eq(floor("s.t", 5), floor("k.t", 5)))
    without = Project(Imbed(same, "z", plus("s.t", 1)), ("s.t", "k.t"))
    node = Imbed(Imbed(without, "a", floor("s.t", 5)), "b", floor("k.t", 5))
    assert distance(node, "a", "b") == distance(node, "b", "a") == {0}


def test_a_name_of_a_union_is_another_instant_in_each_of_its_cases() -> None:
    one = Rename(Project(scan(S, "s"), ("s.t",)), (("s.t", "t"),))
    other = Rename(Project(scan(T, "k"), ("k.t",)), (("k.t", "t"),))
    node = Imbed(Select(Union((one, other)), le(floor("t", 5), "t")), "w", floor("t", 5))
    found = federation(node)
    instants: list[Hidden] = [("x", 0, "t"), ("x", 1, "t")]
    assert [zone.layout.rows[zone.layout.attributes["t"]] for zone in found.zones] == instants
    assert [zone.layout.rows[zone.layout.attributes["w"]] for zone in found.zones] == [
        Rounding(instant, 0, 5) for instant in instants
    ]
    assert distance(node, "w", "t") == {4}
    assert distance(node, "t", "w") == {0}


def test_a_declared_relation_may_speak_of_a_rounding() -> None:
    node = Imbed(scan(S, "s"), "w", floor("s.t", 5))
    found: Federation = federation(node)
    assert refuting(found, eq("w", floor("s.t", 5)), node.schema) is None
    assert refuting(found, eq("w", floor("s.t", 6)), node.schema) is not None


def test_what_is_said_of_roundings_counts_where_zones_are_pruned() -> None:
    """Of the instants the third zone says no less than the first; but that demands that both are of one window."""

    def zone(speaking: tuple[int, ...], *, same_window: bool = False) -> Zone:
        rows: list[Hidden] = [("x", i, "t") for i in speaking]
        names = {f"x{i}": k for k, i in enumerate(speaking)}
        bounds: list[Bound] = []
        if 1 in speaking:
            rows += [Rounding(("x", i, "t"), 0, 5) for i in (0, 1)]
            names |= {f"f{i}": len(speaking) + i for i in (0, 1)}
            bounds += [b for i in (0, 1) for b in (Bound(f"f{i}", f"x{i}", 0), Bound(f"x{i}", f"f{i}", 4))]
            bounds += [Bound("x0", "x1", 4), Bound("x1", "x0", 4)]
        if same_window:
            bounds += [Bound("f0", "f1", 0), Bound("f1", "f0", 0)]
        found = Zone.free(Layout(tuple(rows), names)).conjoin(bounds)
        assert isinstance(found, Zone)
        return found.arranged(Layout(tuple(rows), {"a": 0})).ignoring(i for i in range(3) if i not in speaking)

    one, two, all_ = zone((0, 1), same_window=True), zone((0, 2)), zone((0, 1, 2))
    assert prune([one, two, all_], ("a",), 3) == [one, two, all_]
    assert prune([one, two, zone((0, 1, 2), same_window=True)], ("a",), 3) == [one, two]
    wider = zone((0, 1))
    assert prune([wider, two, all_], ("a",), 3) == [wider, two]


def test_a_reason_does_not_mention_what_has_no_name() -> None:
    """Of the two that make a window, and the one that compares two of them, a line each, in the instants of rows."""
    node = Imbed(scan(S, "s"), "w", plus(floor("s.t", 60), 60))
    asked = query(node)
    found = federation(node)
    (zone,) = found.zones
    assert edge_lines(asked, found, zone.chain(("a", "w"), ("x", 0, "t"))) == ("s.t < w",)
    assert edge_lines(asked, found, zone.chain(("x", 0, "t"), ("a", "w"))) == ("w <= s.t + 60",)
    pairs = federation(Select(Product(scan(S, "i"), scan(T, "k")), eq(floor("i.t", 60), floor("k.t", 60))))
    (zone,) = pairs.zones
    assert edge_lines(asked, pairs, zone.chain(("x", 0, "t"), ("x", 1, "t"))) == ("k.t <= i.t + 59",)


def test_a_condition_that_makes_no_cases_is_taken_however_many_there_are() -> None:
    later = FREE.conjoin([Bound("b", "a", 5)])
    assert isinstance(later, Zone)
    assert len(constrained([FREE, later], Compare(Floor(Var("a"), 10), "<=", Var("b")), 1).zones) == 2
