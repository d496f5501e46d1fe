"""Valid and invalid queries: codes, witnesses that are checked again, chains of constraints with lines (rule R12)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tidegate as tg
from tests.analysis.build import eq, facts, le, lt, plus, query, query_facts, scan, stream, table, ticks
from tidegate import minutes, seconds
from tidegate.algebra.errors import Problem
from tidegate.algebra.nodes import Imbed, Join, Node, Product, Project, Select, Union
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.semantics import evaluate_term
from tidegate.algebra.terms import Attr, Term, call, conjunction, disjunction
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.pipeline import analyse
from tidegate.analysis.progress.progress_sets import (
    is_progressing_set,
    is_static,
    minimal_progressing_sets,
)
from tidegate.analysis.validity.validity import refuting


def problems(node: Node, declared: StreamDef | None = None) -> tuple[Problem, ...]:
    with pytest.raises(tg.QueryError) as caught:
        analyse(ProgramDef((query(node, declared=declared),)))
    return caught.value.problems


def declared(node: Node, relations: Term | None = None, progress: tuple[str, ...] | None = None) -> StreamDef:
    times = node.schema.temporal
    return StreamDef("Q", node.schema, conjunction([] if relations is None else [relations]), progress or times[:1])


A, B = stream("A"), stream("B")


def pair(*conditions: Term) -> Node:
    return Select(Product(scan(A, "a"), scan(B, "b")), conjunction(conditions))


def test_an_undeclared_result_promises_all_that_progresses() -> None:
    assert query_facts(pair(le("a.t", "b.t"))).output.progress == ("b.t",)
    assert query_facts(pair(le("a.t", "b.t"), le("b.t", plus("a.t", 9)))).output.progress == ("a.t", "b.t")


def test_a_product_progresses_on_a_set_but_on_no_attribute() -> None:
    found = federation(pair())
    assert minimal_progressing_sets(found) == (frozenset({"a.t", "b.t"}),)
    assert not is_progressing_set(found, ())
    (problem,) = problems(pair())
    assert problem.code == "TG201"
    assert problem.message == "not valid: B.t (b.t) has no upper bound relative to a.t"
    assert problem.because == ("no chain of constraints bounds b.t from above by a.t",)
    assert problem.hint == "bound it: b.t <= a.t + 100; or say when a row is known: with_(known=tg.max(a.t, b.t))"


def test_a_progressing_set_need_not_hold_a_progressing_attribute() -> None:
    """`a <= x or a <= y`: no bound on one of x and y bounds a, a bound on both does (against a remark of Def. 11)."""
    s = stream("S", ("a", "x", "y"), ())
    node = Project(Select(scan(s, "s"), disjunction([le("s.a", "s.x"), le("s.a", "s.y")])), ("s.x", "s.y"))
    found = federation(node)
    assert minimal_progressing_sets(found) == (frozenset({"s.x", "s.y"}),)


def test_adding_the_hinted_constraint_makes_the_query_valid() -> None:
    """The witness checks again: without the constraint f is -∞ in the zone it names, with it the query is accepted."""
    result = declared(pair(), progress=("a.t",))
    (problem,) = problems(pair(le("a.t", "b.t")), result)
    assert problem.hint == 'bound it: b.t <= a.t + 100; or let the result progress on b.t: progress="b.t"'
    assert facts(query(pair(le("a.t", "b.t"), le("b.t", plus("a.t", 100))), declared=result)).queries


def test_the_chain_that_exists_is_shown_with_its_lines() -> None:
    a = tg.stream("A", "time timestamp", progress="time").as_("a")
    b = tg.stream("B", "time timestamp", progress="time").as_("b")
    relation = tg.product(a, b).where(
        a.time + seconds(5) <= b.time,
    )
    program = tg.program(Q=relation.select(start=a.time, end=b.time).declare(progress="start"))
    (problem,) = program.check()
    assert problem.code == "TG201"
    assert problem.message == "not valid: B.time (b.time) has no upper bound relative to start"
    assert problem.site is not None
    assert problem.site.code == "a.time + seconds(5) <= b.time,"
    line = problem.site.line
    assert problem.because == (
        "no chain of constraints bounds b.time from above by start",
        "start is a.time",
        "only the other way round:",
        f"  a.time + 5s <= b.time   test_validity.py:{line}   a.time + seconds(5) <= b.time,",
    )
    assert problem.hint == 'bound it: b.time <= a.time + "1h"; or let the result progress on end: progress="end"'


def test_the_line_to_be_mended_is_one_of_the_query_and_not_of_a_declaration() -> None:
    a = tg.stream("A", "plan timestamp, time timestamp", progress="plan", relations=lambda a: a.plan <= a.time).as_("a")
    b = tg.stream("B", "plan timestamp, time timestamp", progress="time", relations=lambda b: b.plan <= b.time).as_("b")
    program = tg.program(
        Q=a.anti_join(
            b,
            a.plan == b.plan,
        )
    )
    (problem,) = program.check()
    assert problem.code == "TG201"
    assert problem.site is not None
    assert problem.site.code == "a.plan == b.plan,"
    assert any("(declared by B)" in line for line in problem.because)


def test_all_problems_of_all_queries_come_at_once() -> None:
    bad, worse = query(pair(), "First"), query(pair(lt("a.t", "b.t"), lt("b.t", "a.t")), "Second")
    with pytest.raises(tg.QueryError) as caught:
        facts(bad, worse)
    assert [(p.code, p.query) for p in caught.value.problems] == [("TG201", "First"), ("TG204", "Second")]


def test_one_problem_per_promised_attribute_and_stream() -> None:
    node = pair()
    result = declared(node, progress=("a.t", "b.t"))
    messages = [p.message for p in problems(node, result)]
    assert messages == [
        "not valid: B.t (b.t) has no upper bound relative to a.t",
        "not valid: A.t (a.t) has no upper bound relative to b.t",
    ]


def test_the_alternative_without_a_bound_is_named() -> None:
    node = pair(disjunction([conjunction([le("a.t", "b.t"), le("b.t", plus("a.t", 3))]), lt("b.t", plus("a.t", -9))]))
    (problem,) = problems(node, declared(node, progress=("b.t",)))
    assert problem.because[1:] == (
        "only the other way round:",
        "  b.t + 10 <= a.t",
        "with the alternative:",
        "  b.t < a.t + -9",
    )


def test_an_alternative_on_data_is_named_and_bounding_it_is_a_mend() -> None:
    alarms = tg.stream("A", "place string, at timestamp", progress="at")
    heat = tg.stream("T", "room string, deg double, t timestamp", progress="t")

    def unheated(otherwise: tg.Expression) -> list[Problem]:
        bounded = heat.t <= alarms.at + tg.minutes(5)
        query = alarms.anti_join(heat, heat.room == alarms.place, alarms.at <= heat.t, bounded | otherwise)
        return tg.program(Q=query).check()

    (problem,) = unheated(heat.deg > 100)
    assert problem.because[-2:] == ("with the alternative:", "  T.deg > 100.0")
    assert problem.hint == 'bound it there, too: heat.t <= alarms.at + "1h"'
    assert not unheated((heat.deg > 100) & (heat.t <= alarms.at + "1h"))


def test_alternatives_that_make_no_difference_are_not_named() -> None:
    both = disjunction([lt("b.t", plus("a.t", -9)), lt("b.t", plus("a.t", -5))])
    (problem,) = problems(pair(both), declared(pair(both), progress=("b.t",)))
    assert "with the alternative:" not in problem.because


def test_the_zone_is_shown_where_there_are_several_that_are_no_alternatives() -> None:
    stays = tg.stream("S", "k bigint, a bigint, b bigint", progress="b", relations=lambda s: s.a < s.b)
    works = tg.stream("M", "k bigint, c bigint, d bigint", progress="c", relations=lambda m: m.c < m.d)
    stay = stays.as_intervals(start="a", end="b", by="k", name="Stay")
    work = works.as_intervals(start="c", end="d", by="k", name="Work")
    (problem,) = tg.program(A=tg.match(stay.intersects(work), within=9)).check()
    assert "in the case that:" in problem.because


def test_an_instant_and_its_copy_in_the_result_are_no_constraint() -> None:
    stays = tg.stream("S", "k bigint, a bigint, b bigint", progress="b", relations=lambda s: s.a < s.b)
    works = tg.stream("M", "k bigint, c bigint, d bigint", progress="c", relations=lambda m: m.c < m.d)
    stay = stays.as_intervals(start="a", end="b", by="k", name="Stay")
    work = works.as_intervals(start="c", end="d", by="k", name="Work")
    (problem,) = tg.program(A=tg.match(stay.intersects(work), within=9)).check()
    case = problem.because[problem.because.index("in the case that:") + 1 :]
    assert case[0] == "  detected <= Stay.ts + 9"
    assert "  Stay.ts = Stay.ts" not in case


def test_a_result_without_instants_is_never_final() -> None:
    (problem,) = problems(Project(scan(A, "a"), ("a.k",)))
    assert problem.code == "TG202"


def test_a_result_without_instants_is_told_where_it_lost_them() -> None:
    smoke = tg.stream("Smoke", "area string, time timestamp, conc double", progress="time")
    counts = smoke.group_by("area").agg(n=tg.count())  # here
    many = counts.where(counts.n > 3).select("area").distinct()
    (problem,) = tg.program(Many=many).check()
    assert problem.site is not None
    assert problem.site.code.endswith("# here")


def test_a_contradiction_prints_its_cycle() -> None:
    (problem,) = problems(pair(le(plus("a.t", 5), "b.t"), le("b.t", plus("a.t", 2))))
    assert problem.code == "TG204"
    assert problem.because == (
        "a.t + 5 <= b.t",
        "b.t <= a.t + 2",
        "together: b.t would lie 3 before itself",
    )


def test_a_contradiction_is_at_its_last_condition() -> None:
    a = tg.stream("A", "time timestamp", progress="time").as_("a")
    b = tg.stream("B", "time timestamp", progress="time").as_("b")
    relation = tg.product(a, b).where(
        a.time < b.time,
        b.time < a.time,
    )
    (problem,) = tg.program(Q=relation.select(start=a.time, end=b.time).declare(progress="start")).check()
    assert problem.code == "TG204"
    assert problem.site is not None
    assert problem.site.code in ("a.time < b.time,", "b.time < a.time,")


def test_a_contradiction_with_a_declaration_names_the_stream() -> None:
    s = stream("S", ("t", "u"), relations=le("t", "u"))
    (problem,) = problems(Select(scan(s, "s"), lt("s.u", "s.t")))
    assert "s.t <= s.u   (declared by S)" in problem.because


def test_rows_that_are_kept_for_ever_are_noted_with_a_condition_that_frees_them() -> None:
    o = tg.stream("Orders", "id bigint, placed timestamp", progress="placed").as_("o")
    s = tg.stream("Shipments", "id bigint, shipped timestamp", progress="shipped").as_("sent")
    within = (s.id == o.id, s.shipped <= o.placed + "2d")
    (note,) = tg.program(Q=o.anti_join(s, *within)).notes()
    assert (note.code, note.query) == ("TG224", "Q")
    assert note.site is not None
    assert "anti_join" in note.site.code
    assert "one row by id of Shipments is kept for ever" in note.message
    assert 'bound it: o.placed <= s.shipped + "1h"' in note.hint
    assert tg.program(Q=o.anti_join(s, *within, o.placed <= s.shipped)).notes() == []
    latest = o.join(s, s.shipped <= o.placed).group_by(o.placed).agg(last=tg.last(s.id, by=s.shipped))
    assert tg.program(Q=latest).notes() == []
    (every,) = tg.program(Q=o.join(s, *within)).notes()
    assert "every row of Shipments is kept for ever" in every.message
    assert "asof_join(...) keeps one of each key" in every.hint
    assert "asof_join" not in note.hint
    assert every.because == ("nor is it folded: shipped is read by the result attribute shipped: one row per value",)


def test_the_bound_of_rows_that_are_kept_for_ever_can_hold_in_the_query() -> None:
    e = tg.stream("E", "k bigint, t timestamp", progress="t").as_("e")
    o = tg.stream("O", "k bigint, u timestamp", progress="u").as_("o")
    forms: tuple[Callable[..., tg.Relation], ...] = (
        lambda *on: e.join(o, *on).group_by(e.k, e.t).agg(n=tg.count()),
        lambda *on: e.join(o, *on).group_by(e.k, hour=tg.ceil(e.t, "1h")).agg(n=tg.count()),
        lambda *on: e.semi_join(o, *on),
        lambda *on: e.anti_join(o, *on),
    )
    hour, day = e.t <= o.u + "1h", e.t <= o.u + "1d"
    for looked_back, bound, written in (
        (o.u < e.t, hour, '"1h"'),
        (o.u <= e.t - "5m", hour, '"1h"'),
        (o.u <= e.t - "2h", day, '"1d"'),
    ):
        same = e.k == o.k, looked_back
        for asked in forms:
            (note,) = tg.program(Q=asked(*same)).notes()
            assert note.hint == f"where that is not meant, bound it: e.t <= o.u + {written}"
            assert tg.program(Q=asked(*same, bound)).notes() == []
    (note,) = tg.program(Q=e.anti_join(o, e.k == o.k, o.u <= e.t - "800d")).notes()
    assert note.hint == "where that is not meant, say how long before e.t o.u may be at most"


def test_a_part_of_which_rows_are_kept_for_ever_is_named_as_its_user_does() -> None:
    e = tg.stream("E", "k bigint, t timestamp", progress="t").as_("e")
    p, q = (tg.stream("O", "k bigint, u timestamp", progress="u").as_(name) for name in "pq")
    s = p.anti_join(q, q.k == p.k, p.u < q.u, q.u <= p.u + "30m").unqualified().as_("s")
    looked_up = e.join(s, s.k == e.k, s.u <= e.t)
    (note,) = tg.program(Q=looked_up.group_by(e.k, e.t).agg(n=tg.count())).notes()
    assert note.message.startswith("one row by s.k of s is kept for ever")
    assert note.hint == 'where that is not meant, bound it: e.t <= s.u + "1h"'
    assert note.site is not None
    assert note.site.code == "looked_up = e.join(s, s.k == e.k, s.u <= e.t)"
    bounded = looked_up.where(e.t <= s.u + "1h")
    assert tg.program(Q=bounded.group_by(e.k, e.t).agg(n=tg.count())).notes() == []


def test_what_operators_keep_without_a_bound_is_noted_with_what_would_bound_it() -> None:
    r = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
    s = tg.stream("S", "k bigint, u bigint", progress="u")
    rising = {"B": lambda m: m.B.x > m.A.x}
    (note,) = tg.program(Q=r.sequences("A B+", by="k", define=rising)).notes()
    assert (note.code, note.query) == ("TG224", "Q")
    assert note.site is not None
    assert note.message == "nothing bounds what is kept (rows): B+ has no upper count"
    assert note.hint == "where that is not meant, give within= or B{1,n}"
    assert tg.program(Q=r.sequences("A B+", by="k", define=rising, within=5)).notes() == []
    assert tg.program(Q=r.sequences("A B{1,3}", by="k", define=rising)).notes() == []
    ahead = r.as_("r").asof_join(s.as_("s"), by="k", direction="forward")
    (note,) = tg.program(Q=ahead).notes()
    assert note.message == "nothing bounds what is kept (waiting): rows of R wait until one of S follows"
    assert note.hint == "where that is not meant, give within="
    (note,) = tg.program(Q=r.over(by="k", order="t", then=tg.next_different(r.x))).notes()
    assert note.hint == "where that is not meant, give next_different(..., within=)"


def test_a_false_branch_of_a_union_is_no_contradiction() -> None:
    empty = Select(scan(A, "z"), conjunction([lt("z.t", plus("z.t", -1))]))
    assert query_facts(Union((empty, scan(B, "z")))).propagation["z.t"].describe() == "B.t"


# Relations ----------------------------------------------------------------------------------------------------------


def test_a_declared_relation_that_follows_is_accepted() -> None:
    node = pair(le(plus("a.t", 5), "b.t"))
    output = query_facts(node, declared(node, lt("a.t", "b.t"), ("b.t",))).output
    assert output.relations == lt("a.t", "b.t")


def test_a_declared_relation_that_does_not_follow_comes_with_a_counterexample() -> None:
    node = pair(le(plus("a.t", 5), "b.t"))
    relation = le(plus("a.t", 6), "b.t")
    (problem,) = problems(node, declared(node, relation, ("b.t",)))
    assert problem.code == "TG203"
    assert problem.because == ("nothing in the query excludes a.t = 0, b.t = 5",)
    witness = refuting(federation(node), relation, node.schema)
    assert witness is not None
    point = witness.point()
    values = {name: point[witness.layout.rows[row]] for name, row in witness.layout.attributes.items()}
    assert evaluate_term(relation, values, node.schema) is False
    assert evaluate_term(le(plus("a.t", 5), "b.t"), values, node.schema) is True


def test_relations_are_refuted_on_all_zones_together() -> None:
    """`x <= y or y <= x` holds everywhere, though of no zone of `true` alone is either half implied."""
    node = pair(le("a.t", plus("b.t", 9)), le("b.t", plus("a.t", 9)))
    either = disjunction([le("a.t", "b.t"), le("b.t", "a.t")])
    assert query_facts(node, declared(node, either, ("b.t",))).output.relations == either


def test_a_relation_is_negated_before_it_is_normalised() -> None:
    """`floor_5(t) <= t` always holds; negated after rounding it would read `t + 4 < t`, which proves less by luck
    only.
    """
    s = stream("S", ("t", "u"), ())
    node = Imbed(scan(s, "s"), "w", call("floor", Attr("s.t"), ticks(5)))
    holds = call("not", call("gt", Attr("w"), Attr("s.t")))
    assert query_facts(node, declared(node, holds)).output.relations == holds
    (problem,) = problems(node, declared(node, le(plus("w", 4), "s.t")))
    assert problem.code == "TG203"


def test_a_relation_about_data_cannot_be_promised() -> None:
    node = scan(A, "a")
    (problem,) = problems(node, declared(node, eq("a.k", ticks(1))))
    assert problem.code == "TG203"


def test_each_conjunct_is_judged_by_itself() -> None:
    node = pair(le("a.t", "b.t"))
    result = declared(node, conjunction([le("a.t", "b.t"), lt("a.t", "b.t"), le("b.t", "a.t")]), ("b.t",))
    assert [p.code for p in problems(node, result)] == ["TG203", "TG203"]


def test_an_undeclared_result_states_what_relates_its_instants() -> None:
    """Later queries know it: the second query is valid only because of what the first one implies."""
    first = Project(pair(le(plus("a.t", 2), "b.t"), le("b.t", plus("a.t", 9))), ("a.t", "b.t"))
    output = query_facts(first).output
    assert output.relations == conjunction([le("b.t", plus("a.t", 9)), le(plus("a.t", 2), "b.t")])
    read = StreamDef("Q", output.schema, progress=("a.t", "b.t"))
    second = Project(scan(read, "q"), ("q.a.t",))
    found = facts(query(first, "Q"), query(second, "R")).queries[1]
    assert found.propagation["q.a.t"].describe() == "max(Q.a.t, Q.b.t - 9)"


# Declarations, several queries, static results -----------------------------------------------------------------------


def test_the_declared_schema_must_be_the_query_s() -> None:
    node = Project(scan(A, "a"), ("a.t",))
    (problem,) = problems(node, StreamDef("Q", scan(A, "a").schema, progress=("a.t",)))
    assert problem.code == "TG205"
    assert problem.message == "not valid: Q: a.k is missing"


def test_several_queries_promise_what_all_of_them_keep() -> None:
    both = facts(query(pair(le("a.t", "b.t"), le("b.t", plus("a.t", 3))), "Q")).streams["Q"]
    assert both.progress == ("a.t", "b.t")
    one, other = (
        Query(name, "Q", node)
        for name, node in (("one", pair(le("a.t", "b.t"), le("b.t", plus("a.t", 3)))), ("two", pair(le("b.t", "a.t"))))
    )
    found = facts(one, other)
    assert found.streams["Q"].progress == ("a.t",)
    assert [list(q.propagation) for q in found.queries] == [["a.t"], ["a.t"]]


def test_queries_of_one_stream_with_different_schemas_are_refused() -> None:
    one, other = (Query(name, "Q", node) for name, node in (("one", scan(A, "a")), ("two", scan(B, "b"))))
    with pytest.raises(tg.QueryError) as caught:
        facts(one, other)
    assert [p.code for p in caught.value.problems] == ["TG206"]


def test_a_result_of_tables_is_static() -> None:
    node = scan(table("T", ("t",)), "x")
    found = query_facts(node)
    assert is_static(found.federation)
    assert found.output.static
    assert found.is_static
    assert found.propagation == {}


def test_a_static_declaration_of_a_moving_result_is_refused() -> None:
    node = scan(A, "a")
    (problem,) = problems(node, StreamDef("Q", node.schema, static=True))
    assert problem.code == "TG208"


def test_a_stream_read_by_another_definition_is_refused() -> None:
    wrong = StreamDef("Q", scan(A, "a").schema, relations=conjunction([lt("a.t", plus("a.t", -1))]), progress=("a.t",))
    with pytest.raises(tg.QueryError) as caught:
        facts(query(scan(A, "a"), "Q"), query(scan(wrong, "q"), "R"))
    assert caught.value.problems[0].code == "TG207"
    other = stream("Q", ("a.t", "x"), ("a.k",))
    with pytest.raises(tg.QueryError) as caught:
        facts(query(scan(A, "a"), "Q"), query(scan(other, "q"), "R"))
    assert "attributes" in caught.value.problems[0].because[0]


def test_an_input_with_two_definitions_is_refused() -> None:
    node = Product(scan(A, "a"), scan(stream("A", ("t", "u")), "b"))
    with pytest.raises(tg.QueryError) as caught:
        query_facts(Select(node, le("a.t", "b.t")))
    assert "TG207" in {p.code for p in caught.value.problems}


def test_a_left_join_waits_for_its_right_side() -> None:
    node = Join(scan(A, "a"), scan(B, "b"), le("a.t", "b.t"), "left")
    (problem,) = problems(node)
    assert problem.message == "not valid: B.t (b.t) has no upper bound relative to a.t"


def test_the_message_of_a_query_over_timestamps_suggests_hours() -> None:
    a = tg.stream("A", "time timestamp", progress="time").as_("a")
    b = tg.stream("B", "time timestamp", progress="time").as_("b")
    valid = a.anti_join(b, a.time <= b.time, b.time <= a.time + minutes(5))
    assert tg.program(Q=valid).check() == []
    (problem,) = tg.program(Q=a.anti_join(b, a.time <= b.time)).check()
    assert problem.hint == 'bound it: b.time <= a.time + "1h"'


R = tg.stream("R", "k bigint, t bigint, x double", progress="t")
OF_R = R.partition_by("k").derive(A=tg.situation(R.x > 1), B=tg.situation(R.x < 1))


def _read_unbounded() -> tg.Program:
    r, s = R.as_("r"), R.as_("s")
    unmatched = r.anti_join(s, r.k == s.k, r.t <= s.t)
    fast = unmatched.partition_by("r.k").derive(Fast=tg.situation(r.x > 3)).Fast
    return tg.program(Alarm=fast.group_by(w=tg.tumbling(fast.te, 5)).agg(n=tg.count()))


def _matched_unbounded() -> tg.Program:
    matches = OF_R.match(OF_R.A.before(OF_R.B))
    return tg.program(Alarm=matches.group_by(w=tg.tumbling(matches.detected, 5)).agg(n=tg.count()))


def _recursive() -> tg.Program:
    alarm = tg.result("Alarm", "k bigint, t bigint", progress="t")
    earlier = alarm.as_("earlier")
    after = R.join(earlier, R.k == earlier.k, R.t == earlier.t + 1)
    found = after.partition_by(R.k, time="t").derive(Q=tg.situation(R.x > 1)).Q
    return tg.program(tg.query(alarm, found.select(k=found.k, t=found.te)))


@pytest.mark.parametrize(
    ("made", "code"), [(_read_unbounded, "TG201"), (_matched_unbounded, "TG213"), (_recursive, "TG211")]
)
def test_what_is_wrong_with_a_part_of_a_query_is_said_of_the_query(made: Callable[[], tg.Program], code: str) -> None:
    (problem,) = made().check()
    assert problem.code == code
    assert "Alarm" in str(problem)
    assert "~" not in str(problem)
