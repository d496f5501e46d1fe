"""The federation against the meaning of the operators: the invariants of rule R5, by brute force on small relations."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

import tidegate as tg
from tests.analysis.build import eq, le, lt, plus, scan, stream, ticks
from tests.shards import shards
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
    occurrences,
)
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import Row, evaluate
from tidegate.algebra.terms import Attr, Term, call, conjunction, disjunction
from tidegate.algebra.types import BIGINT, TIMESTAMP
from tidegate.analysis.federation import federation as module
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.propagation import propagations
from tidegate.analysis.state.keep import keep
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.wording import ordinal
from tidegate.analysis.zones.zone import Variable, Zone

Rows = Mapping[str, Sequence[Row]]


class Maker:
    """Random expressions of every operator; each reference reads a stream of its own, so its rows can be varied."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.streams: list[StreamDef] = []
        self.names = 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def scan(self) -> Node:
        made = stream(f"S{len(self.streams)}", ("t", "u") if self.random.random() < 0.4 else ("t",), ("k",))
        self.streams.append(made)
        return scan(made, f"s{len(self.streams) - 1}")

    def condition(self, node: Node) -> Term:
        times, parts = node.schema.temporal, list[Term]()
        for _ in range(self.random.choice((1, 1, 2))):
            if len(times) >= 2:
                one, other = self.random.sample(times, 2)
                shifted = plus(other, self.random.choice((-1, 0, 1, 2)))
                parts.append(self.random.choice((le, le, lt, eq))(one, shifted))
        data = [a for a in node.schema if a not in times]
        if len(data) >= 2 and self.random.random() < 0.3:
            parts.append(eq(*self.random.sample(data, 2)))
        kind = self.random.random()
        if kind < 0.2 and parts:
            return call("not", conjunction(parts))
        return disjunction(parts) if kind < 0.4 and len(parts) > 1 else conjunction(parts)

    def node(self, depth: int) -> Node:
        if depth == 0 or len(self.streams) >= 4:
            return self.scan()
        match self.random.choice(
            ("select", "imbed", "group", "join", "join", "join", "union", "difference", "product")
        ):
            case "select":
                inner = self.node(depth - 1)
                return Select(inner, self.condition(inner))
            case "imbed":
                return self.imbed(self.node(depth - 1))
            case "group":
                inner = self.node(depth - 1)
                keys = tuple(a for a in inner.schema if self.random.random() < 0.6)
                counted = Group(inner, keys, (Aggregate(self.name("n"), Function.COUNT),))
                return self.random.choice((counted, Distinct(Project(inner, keys or inner.schema.names[:1]))))
            case "join":
                left, right = self.node(depth - 1), self.node(depth - 1)
                kind: JoinKind = self.random.choice(("inner", "left", "semi", "anti", "anti"))
                return Join(left, right, self.condition(Product(left, right)), kind)
            case "product":
                return Product(self.node(depth - 1), self.node(depth - 1))
            case "union":
                name = self.name("z")
                return Union((self.only(name, depth), self.only(name, depth)))
            case _:
                name = self.name("z")
                return Difference(self.only(name, depth), self.only(name, depth))

    def imbed(self, inner: Node) -> Node:
        times = inner.schema.temporal
        if not times:
            return inner
        one, other = self.random.choice(times), self.random.choice(times)
        terms: list[Term] = [
            plus(one, 1), Attr(one), call("greatest", Attr(one), Attr(other)), call("least", Attr(one), plus(other, 1)),
            call("floor", Attr(one), ticks(2)), call("ceil", Attr(one), ticks(2)),
        ]  # fmt: skip
        return Imbed(inner, self.name("i"), self.random.choice(terms))

    def only(self, name: str, depth: int) -> Node:
        """One temporal attribute and one other, under fixed names, so that both sides of a union match."""
        inner = self.node(depth - 1)
        times = inner.schema.temporal
        data = [a for a in inner.schema if inner.schema[a].type == BIGINT and a not in times]
        if not times or not data:
            inner = self.scan()
            times, data = inner.schema.temporal, [a for a in inner.schema if a not in inner.schema.temporal]
        time, value = self.random.choice(times), self.random.choice(data)
        return Rename(Project(inner, (time, value)), ((time, f"{name}.t"), (value, f"{name}.k")))

    def rows(self) -> dict[str, list[Row]]:
        def row(definition: StreamDef) -> Row:
            times = tuple(self.random.randint(0, 4) for _ in definition.schema.temporal)
            return (*times, self.random.randint(0, 1))

        return {s.name: [row(s) for _ in range(self.random.randint(0, 3))] for s in self.streams}


def in_view(zone: Zone, values: Mapping[Variable, int]) -> bool:
    """Whether the values satisfy the zone's projection on their variables."""
    variables = list(values)
    matrix = zone.view(variables)
    return all(values[v] - values[w] <= matrix[i, j] for i, w in enumerate(variables) for j, v in enumerate(variables))


def named(row: Row, schema: Schema) -> dict[str, int]:
    """The instants of a row."""
    values = dict(zip(schema.names, row, strict=True))
    return {name: found for name in schema.temporal if isinstance(found := values[name], int)}


def instants(row: Row, found: Federation) -> dict[Variable, int]:
    return {("a", name): value for name, value in named(row, found.schema).items()}


def fits_with_present_rows(
    zone: Zone, values: dict[Variable, int], open_: Sequence[int], found: Federation, rows: Rows
) -> bool:
    """Whether the values and one present row of each of the occurrences satisfy the zone."""
    if not in_view(zone, values):
        return False
    if not open_:
        return True
    definition = found.occurrences[open_[0]]
    return any(
        fits_with_present_rows(zone, {**values, **copies(open_[0], row, definition)}, open_[1:], found, rows)
        for row in rows[definition.name]
    )


def copies(i: int, row: Row, definition: StreamDef) -> dict[Variable, int]:
    return {("x", i, name): at for name, at in named(row, definition.schema).items()}


def check_invariants(node: Node, rows: Rows, found: Federation) -> int:
    """(V) and (I), both together with present rows of all other occurrences that the zone does not ignore."""
    checked = 0
    before = Counter(evaluate(node, rows))
    for result in before:
        at = instants(result, found)
        assert any(fits_with_present_rows(zone, at, found.sources(zone), found, rows) for zone in found.zones), result
    for i, definition in enumerate(found.occurrences):
        for place, row in enumerate(rows[definition.name]):
            others = [other for k, other in enumerate(rows[definition.name]) if k != place]
            after = Counter(evaluate(node, {**rows, definition.name: others}))
            for result in (before - after) + (after - before):
                checked += 1
                together = {**instants(result, found), **copies(i, row, definition)}
                assert any(
                    fits_with_present_rows(zone, together, [j for j in found.sources(zone) if j != i], found, rows)
                    for zone in found.zones
                    if i not in zone.ignored
                ), f"row {row} of {definition.name} changes {result}, but no zone says so"
    return checked


@pytest.mark.parametrize("shard", shards(8, 3))
def test_invariants_hold_for_random_expressions(shard: int) -> None:
    changes = 0
    for seed in range(shard * 40, shard * 40 + 40):
        maker = Maker(seed)
        node = maker.node(3)
        found = federation(node)
        assert found.occurrences == occurrences(node)
        for _ in range(6):
            changes += check_invariants(node, maker.rows(), found)
    assert changes > 200, "the rows hardly ever matter: the generator is too tame"


def test_pruning_changes_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Propagation and keep are the same with and without pruning, on random expressions and rows."""
    fewer = 0
    for seed in range(300):
        maker = Maker(seed)
        node = maker.node(3)
        with monkeypatch.context() as patch:
            patch.setattr(module, "prune", lambda zones, attributes, occurrences: zones)
            whole = federation(node)
        found = federation(node)
        fewer += len(found.zones) < len(whole.zones)
        progress = {(s.name, y): maker.random.randint(-3, 3) for s in found.occurrences for y in s.progress}
        ours, theirs = propagations(found), propagations(whole)
        assert {a: f.evaluate(progress) for a, f in ours.items()} == {
            a: f.evaluate(progress) for a, f in theirs.items()
        }
        p = {a: maker.random.randint(-1, 4) for a in found.attributes}
        for i, s in enumerate(found.occurrences):
            one, other = keep(found, i, found.attributes), keep(whole, i, found.attributes)
            for row in maker.rows()[s.name]:
                assert one.row(named(row, s.schema), p) == other.row(named(row, s.schema), p)
    assert fewer > 30


def test_an_anti_join_keeps_the_zone_that_awaits_its_right_side() -> None:
    """Blind to flags, the second zone is contained in the first; without it nothing would wait for the right side."""
    left, right = scan(stream("L"), "l"), scan(stream("R"), "r")
    node = Join(left, right, conjunction([le("l.t", "r.t"), le("r.t", plus("l.t", 5))]), "anti")
    found = federation(node)
    assert [zone.ignored for zone in found.zones] == [{1}, set()]
    assert propagations(found)["l.t"].evaluate({("L", "t"): 100, ("R", "t"): 50}) == 45


def test_many_anti_joins_need_a_zone_each_not_one_per_combination() -> None:
    node = scan(stream("L"), "l")
    for i in range(20):
        right = scan(stream(f"R{i}"), f"r{i}")
        node = Join(node, right, conjunction([le("l.t", f"r{i}.t"), le(f"r{i}.t", plus("l.t", i))]), "anti")
    found = federation(node)
    assert len(found.zones) == 21
    assert [len(found.sources(zone)) for zone in found.zones] == [1] + [2] * 20
    progress = {("L", "t"): 100} | {(f"R{i}", "t"): 100 for i in range(20)}
    assert propagations(found)["l.t"].evaluate(progress) == 100 - 19


def test_a_self_join_has_two_occurrences_with_variables_of_their_own() -> None:
    s = stream("S")
    shared = Scan(s)
    one, other = (Rename(shared, (("t", f"{a}.t"), ("k", f"{a}.k"))) for a in "ab")
    found = federation(Select(Product(one, other), lt("a.t", "b.t")))
    (zone,) = found.zones
    assert zone.distance(("x", 1, "t"), ("x", 0, "t")) == -1
    assert zone.distance(("a", "a.t"), ("x", 0, "t")) == 0
    assert [found.occurrence_name(i) for i in range(2)] == ["S (a)", "S (b)"]


def test_occurrences_without_a_name_of_their_own_are_counted() -> None:
    s = Scan(stream("S"))
    named = Rename(s, (("t", "a.t"), ("k", "a.k")))
    found = federation(Union((Rename(named, (("a.t", "t"), ("a.k", "k"))), s)))
    assert [found.occurrence_name(i) for i in range(2)] == ["S (a)", "S (2nd)"]
    assert found.label(("x", 1, "t")).text == "S.t (2nd)"
    same = federation(Union((named, named)))
    assert [same.occurrence_name(i) for i in range(2)] == ["S (1st)", "S (2nd)"]
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 13, 21, 112)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "13th",
        "21st",
        "112th",
    ]


def test_a_union_ignores_the_other_sides() -> None:
    one, other = scan(stream("A"), "z"), scan(stream("B"), "z")
    third = Rename(Imbed(scan(stream("C"), "c"), "later", plus("c.t", 3)), (("later", "z.t"), ("c.k", "z.k")))
    node = Union((one, other, Project(third, ("z.t", "z.k"))))
    found = federation(node)
    assert [set(zone.ignored) for zone in found.zones] == [{1, 2}, {0, 2}, {0, 1}]
    assert propagations(found)["z.t"].describe() == "min(A.t, B.t, C.t + 3)"


def test_an_attribute_temporal_on_one_side_of_a_union_only_is_hidden() -> None:
    one, other = scan(stream("A", ("t", "u"), ()), "z"), scan(stream("B", ("t", "u"), ()), "z")
    plain = Rename(Project(Imbed(other, "w", call("mul", Attr("z.u"), ticks(1))), ("z.t", "w")), (("w", "z.u"),))
    assert not plain.schema["z.u"].temporal
    found = federation(Union((one, plain)))
    assert found.attributes == ("z.t",)
    assert all(list(zone.layout.attributes) == ["z.t"] for zone in found.zones)


def test_a_timestamp_becomes_temporal_where_null_is_excluded() -> None:
    schema = Schema((Attribute("t", TIMESTAMP, nullable=False, temporal=True), Attribute("seen", TIMESTAMP)))
    s = Scan(StreamDef("S", schema, progress=("t",)))
    assert federation(s).attributes == ("t",)
    known = Select(s, conjunction([call("is_not_null", Attr("seen")), le("t", "seen")]))
    found = federation(known)
    assert found.attributes == ("t", "seen")
    assert propagations(found)["seen"].describe() == "S.t"


def test_the_right_side_of_a_left_join_holds_no_instants() -> None:
    left, right = scan(stream("L"), "l"), scan(stream("R"), "r")
    found = federation(Join(left, right, conjunction([le("l.t", "r.t"), le("r.t", plus("l.t", 5))]), "left"))
    assert found.attributes == ("l.t",)
    assert propagations(found)["l.t"].describe() == "min(L.t, R.t - 5)"


def test_a_difference_relates_equal_instants() -> None:
    found = federation(Difference(scan(stream("A"), "z"), scan(stream("B"), "z")))
    assert propagations(found)["z.t"].describe() == "min(A.t, B.t)"


def test_declared_relations_hold_of_a_stream() -> None:
    s = stream("S", ("t", "u"), relations=conjunction([le("t", "u"), le("u", plus("t", 7))]))
    found = federation(Scan(s))
    assert found.zones[0].distance(("a", "t"), ("a", "u")) == 7
    assert found.zones[0].edges[0].declared_by == "S"


def test_an_explosion_is_refused_with_its_cause() -> None:
    node: Node = scan(stream("S0"), "s0")
    for i in range(1, 9):
        node = Product(node, scan(stream(f"S{i}"), f"s{i}"))
    either: list[Term] = [call("ne", Attr(f"s{i}.t"), Attr(f"s{i - 1}.t")) for i in range(1, 9)]
    with pytest.raises(
        QueryError, match=r"TG150 the condition on s6.t, s5.t has about 64 temporal cases, more than 32"
    ):
        federation(Select(node, conjunction(either)), limit=32)


def test_a_branch_that_a_zone_entails_costs_nothing() -> None:
    """Thirty alternatives that earlier constraints decide: 2**30 conjunctions on paper, one zone."""
    node: Node = Product(scan(stream("A"), "a"), scan(stream("B"), "b"))
    decided: list[Term] = [call("or", le("a.t", plus("b.t", i)), lt("b.t", "a.t")) for i in range(30)]
    assert len(federation(Select(node, conjunction([le("a.t", "b.t"), *decided]))).zones) == 1


def test_contradicting_constraints_leave_no_zone_and_say_why() -> None:
    node = Product(scan(stream("A"), "a"), scan(stream("B"), "b"))
    found = federation(Select(node, conjunction([lt("a.t", "b.t"), lt("b.t", "a.t")])))
    assert found.zones == ()
    assert sum(edge.c for edge in found.conflicts[0].cycle()) == -2


def test_a_union_that_explodes_is_refused_at_its_line_before_it_is_built() -> None:
    def doubled(base: tg.Relation, times: int) -> tg.Relation:
        for _ in range(times):
            base = base.union(base)
        return base

    events = tg.stream("E", "k bigint, t bigint", progress="t")
    later = events.as_("a").anti_join(events.as_("b"), lambda a, b: (a.t < b.t) & (b.t < a.t + 5)).unqualified()
    for base, cases in ((events, 2**12), (later, 2**13), (events.where(events.k > 1).rename(k="key"), 2**12)):
        tracemalloc.start()
        (problem,) = tg.program(Out=doubled(base, 12)).check()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert problem.code == "TG150"
        assert f"this union has about {cases} temporal cases" in problem.message
        assert problem.site is not None
        assert problem.site.code == "base = base.union(base)"
        assert peak < 20_000_000
    assert tg.program(Out=doubled(events, 3)).check() == []


def test_a_product_that_explodes_is_refused_at_its_line() -> None:
    events = tg.stream("E", "k bigint, t bigint", progress="t")
    many = events.union(*[events] * 39)
    joined = many.as_("a").join(many.as_("b"), lambda a, b: a.t == b.t)
    (problem,) = tg.program(Out=joined).check()
    assert "this product has about 1600" in problem.message
    assert problem.site is not None
    assert problem.site.code.startswith("joined = many.as_")
