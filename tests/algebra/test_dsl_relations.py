"""Relations of the DSL: the nodes they build, the names they resolve, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tidegate import hours, minutes
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
)
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Attr, Lit, call
from tidegate.algebra.types import BIGINT, DURATION

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire = tg.stream("Fire", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
loose: Any = smoke  # for uses that type checkers refuse as well
SMOKE, FIRE, AREAS = smoke._node, fire._node, areas._node


def named(node: Node, prefix: str) -> Rename:
    return Rename(node, tuple((name, f"{prefix}.{name}") for name in node.schema.names))


def test_streams_and_tables_have_their_definitions() -> None:
    assert isinstance(SMOKE, Scan)
    assert isinstance(AREAS, Scan)
    assert SMOKE.stream.progress == ("time",)
    assert SMOKE.schema["time"].temporal
    assert not SMOKE.schema["time"].nullable
    assert AREAS.stream.static
    assert AREAS.stream.progress == ()


def test_what_a_definition_names_as_an_instant_is_one() -> None:
    jobs = tg.stream(
        "Jobs",
        "started bigint, done bigint, seen bigint, day date, at timestamp not null, maybe timestamp",
        progress="done",
        relations=lambda j: j.started <= j.done + 5,
        temporal="seen",
    )
    assert jobs.schema.temporal == ("started", "done", "seen", "at")
    assert isinstance(jobs._node, Scan)
    stated = call("le", Attr("started"), call("add", Attr("done"), Lit(5, BIGINT)))
    assert jobs._node.stream.relations == stated


def test_every_operator_builds_its_node() -> None:
    a, b = fire.as_("a"), fire.as_("b")
    on = call("eq", Attr("a.fid"), Attr("b.fid"))
    both = tg.product(a, b)
    assert both._node == Product(named(FIRE, "a"), named(FIRE, "b"))
    assert both.where(a.fid == b.fid)._node == Select(both._node, on)
    for how in ("inner", "left", "semi", "anti"):
        assert a.join(b, a.fid == b.fid, how=how)._node == Join(a._node, b._node, on, how)
    assert a.left_join(b, a.fid == b.fid)._node == Join(a._node, b._node, on, "left")
    assert a.semi_join(b, a.fid == b.fid)._node == Join(a._node, b._node, on, "semi")
    assert a.anti_join(b, lambda x, y: x.fid == y.fid)._node == Join(a._node, b._node, on, "anti")
    assert smoke.distinct()._node == Distinct(SMOKE)
    assert smoke.union(smoke, smoke)._node == Union((SMOKE, SMOKE, SMOKE))
    assert smoke.difference(smoke)._node == Difference(SMOKE, SMOKE)
    assert smoke.drop("conc", smoke.area)._node == Project(SMOKE, ("time",))
    assert smoke.rename(time="at")._node == Rename(SMOKE, (("time", "at"),))
    assert a.rename({"a.fid": "id", "time": "at"})._node == Rename(a._node, (("a.fid", "id"), ("a.time", "at")))
    assert smoke.with_(double=smoke.conc * 2)._node == Imbed(
        SMOKE, "double", call("mul", Attr("conc"), tg.lit(2.0)._term)
    )
    assert smoke.where()._node == SMOKE


def test_select_renames_computes_and_orders() -> None:
    s = smoke.as_("s")
    assert s.select("conc", start=s.time)._node == Rename(
        Project(s._node, ("s.conc", "s.time")), (("s.conc", "conc"), ("s.time", "start"))
    )
    twice = smoke.select(smoke.area, twice=smoke.area, conc=smoke.conc * 2)
    assert twice.schema.names == ("area", "twice", "conc")
    assert smoke.select(a="time", b=lambda r: r.time + hours(1)).schema.temporal == ("a", "b")


def test_group_by_names_keys_and_aggregates() -> None:
    s = smoke.as_("s")
    grouped = s.group_by(s.area, start=s.time).agg(n=tg.count(), worst=tg.max(s.conc), was=tg.last(s.conc, by=s.time))
    aggregates = (
        Aggregate("n", Function.COUNT),
        Aggregate("worst", Function.MAX, Attr("s.conc")),
        Aggregate("was", Function.LAST, Attr("s.conc"), Attr("s.time")),
    )
    assert grouped._node == Rename(
        Group(s._node, ("s.area", "s.time"), aggregates), (("s.area", "area"), ("s.time", "start"))
    )
    computed = smoke.group_by(time=tg.ceil(smoke.time, "1h")).agg(conc=tg.avg(smoke.conc), n=lambda r: tg.count(r.area))
    assert computed.schema.names == ("time", "conc", "n")
    assert computed.schema.temporal == ("time",)
    assert smoke.group_by(hour=smoke.time).agg(time=tg.max(smoke.conc)).schema.names == ("hour", "time")
    assert smoke.group_by().agg(n=tg.count()).schema.names == ("n",)


def test_names_resolve_without_their_prefix_where_that_is_clear() -> None:
    both = tg.product(fire.as_("f"), smoke.as_("s"))
    assert both.conc._term == Attr("s.conc")
    assert both["f.time"]._term == Attr("f.time")
    plain = both.unqualified()
    assert plain.schema.names == ("fid", "f.time", "s.time", "area", "conc")
    assert plain.as_("x").schema.names == ("x.fid", "x.f.time", "x.s.time", "x.area", "x.conc")
    assert smoke.unqualified() is smoke


def test_handles_of_an_earlier_step_stay_usable() -> None:
    f, s = fire.as_("f"), smoke.as_("s")
    later = tg.product(f, s).where(f.time <= s.time).with_(gap=s.time - f.time)
    assert later.where(later.gap < "5m", s.conc > 1).select(f.fid).schema.names == ("fid",)


f, s = fire.as_("f"), smoke.as_("s")


@pytest.mark.parametrize(
    ("wrong", "code", "hint"),
    [
        (lambda: tg.product(f, s).time, "TG103", "f.time"),
        (lambda: tg.product(smoke, smoke), "TG103", "as_"),
        (lambda: smoke.join(fire), "TG103", "as_"),
        (lambda: smoke.where(fire.time > tg.timestamp("2020-01-01")), "TG113", "join"),
        (lambda: smoke.where(smoke.time > fire.time), "TG103", "as_"),
        (lambda: smoke.where(s.conc > 1), "TG101", "conc"),
        (lambda: smoke.where(smoke.conc), "TG102", "compare"),
        (lambda: loose.where(loose.select == 3), "TG114", "method"),
        (lambda: loose.where("conc > 3"), "TG114", "condition"),
        (lambda: smoke.where(tg.max(smoke.conc) > 3), "TG115", "agg"),  # type: ignore[operator,arg-type]  # what is tested
        (lambda: smoke.select(smoke.conc * 2), "TG114", "name"),
        (lambda: smoke.select("area", area=smoke.area.upper()), "TG103", "name"),
        (lambda: smoke.select("aera"), "TG101", "area"),
        (lambda: smoke.with_(area=smoke.conc), "TG103", "new name"),
        (lambda: smoke.rename(aera="x"), "TG101", "area"),
        (lambda: smoke.rename(area="conc"), "TG103", '.drop("conc")'),
        (lambda: smoke.rename(area="x", conc="x"), "TG103", "a name of its own"),
        (lambda: smoke.drop(smoke.conc * 2), "TG114", "name"),
        (lambda: loose.group_by("area").agg(n=smoke.conc), "TG115", "tg.max"),
        (lambda: smoke.group_by("area").agg(area=tg.count()), "TG103", "another"),
        (lambda: smoke.group_by("area").agg(n=tg.sum(fire.fid)), "TG101", ""),
        (lambda: smoke.union(fire), "TG108", "select"),
        (lambda: smoke.union(smoke.with_(x=smoke.conc).drop("conc").rename(x="area2")), "TG108", "rename"),
        (lambda: smoke.union(smoke.select("time", "area", conc=smoke.area)), "TG108", "cast"),
        (lambda: smoke.difference(smoke.select("time", "area", conc=smoke.area)), "TG108", "cast"),
        (lambda: loose.difference(smoke.group_by("area")), "TG114", "query"),
        (lambda: loose.join(s, how="outer"), "TG114", "inner, left, semi or anti"),
        (lambda: smoke.as_("a b"), "TG114", "letters"),
        (lambda: bool(smoke), "TG118", "where"),
        (lambda: loose[0], "TG118", "results"),
        (lambda: loose[1], "TG114", "time"),
        (lambda: tg.product(), "TG114", "product"),
        (lambda: tg.stream("S", "time timestamp", progress="tme"), "TG101", "time"),
        (lambda: tg.stream("S", "time timestamp, a string", progress="a"), "TG105", "integers"),
        (lambda: tg.stream("S", "time timestamp", progress=()), "TG106", "progress"),
        (lambda: tg.stream("S S", "time timestamp", progress="time"), "TG114", "letters"),
        (lambda: tg.stream("S", "t timestamp, a bigint", progress="t", relations=lambda x: x.a > 5), "TG116", "where"),
        (lambda: tg.stream("S", "t timestamp, a bigint", progress="t", relations=lambda x: x.a > x.t), "TG102", "unit"),
        (lambda: smoke.declare(progress="area"), "TG117", "instants"),
        (lambda: smoke.declare(progress="time", relations=smoke.conc > 5), "TG116", "where"),
    ],
)
def test_wrong_use_fails_at_its_line_with_a_suggestion(wrong: Callable[[], object], code: str, hint: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        wrong()
    error = raised.value
    assert error.code == code
    assert hint in error.hint
    assert error.site is not None
    assert Path(error.site.file).name == "test_dsl_relations.py"
    assert error.site.line == wrong.__code__.co_firstlineno


def test_sites_say_where_each_part_was_written() -> None:
    f, s = fire.as_("f"), smoke.as_("s")
    bound = f.time <= s.time
    query = tg.product(f, s).where(
        bound,
        s.time <= f.time + minutes(5),
    )
    sites = query._sites
    line = test_sites_say_where_each_part_was_written.__code__.co_firstlineno
    assert sites[bound._term].line == line + 2
    assert sites[call("le", Attr("s.time"), call("add", Attr("f.time"), Lit(300_000_000, DURATION)))].line == line + 5
    assert sites[query._node].line == line + 3
    assert sites[f._node].code == 'f, s = fire.as_("f"), smoke.as_("s")'
    assert sites[FIRE].code.startswith('fire = tg.stream("Fire"')


def test_handles_print_as_what_they_are() -> None:
    assert repr(f.where(f.fid > 3)) == (
        "r0 := stream Fire\n"
        "r1 := rename r0: fid -> f.fid, time -> f.time\n"
        "r2 := select r1 where f.fid > 3\n"
        "schema: f.fid bigint, f.time timestamp not null"
    )
    assert repr(f.group_by("fid")) == "Grouped by fid; say what each group yields: .agg(...)"


# Programs ------------------------------------------------------------------------------------------------------------
def test_a_program_names_its_results_and_strips_prefixes() -> None:
    program = tg.program(
        Near=f.join(s, f.time <= s.time, s.time <= f.time + "5m").select(f.fid, s.area, f.time, end=s.time)
    )
    (query,) = program.definition.queries
    assert (query.name, query.stream, query.declared) == ("Near", "Near", None)
    assert query.node.schema.names == ("fid", "area", "time", "end")
    assert [stream.name for stream in program.definition.inputs] == ["Fire", "Smoke"]
    assert program.check() == []


def test_declare_promises_for_the_short_names() -> None:
    near = f.join(s, f.time <= s.time, s.time <= f.time + "5m").select(f.time, at=s.time)
    program = tg.program(Near=near.declare(progress=near.at, relations=lambda r: r.time <= r.at))
    (query,) = program.definition.queries
    assert query.declared == StreamDef("Near", query.node.schema, call("le", Attr("time"), Attr("at")), ("at",))
    assert query.sites[call("le", Attr("time"), Attr("at"))].code.startswith("program = tg.program(Near=near.declare(")
    assert program.check() == []


alarm = tg.result("Alarm", "area string, at timestamp", progress="at")


def test_several_queries_feed_a_declared_result_that_others_read() -> None:
    a = alarm.as_("a")
    program = tg.program(
        tg.query(alarm, smoke.where(smoke.conc > 9).select(smoke.area, at=smoke.time)),
        tg.query(alarm, smoke.where(smoke.conc < 0).select(at=smoke.time, area=smoke.area), name="Broken"),
        Counted=a.group_by("area", hour=tg.ceil(a.at, "1h")).agg(n=tg.count()),
    )
    assert [(q.name, q.stream) for q in program.definition.queries] == [
        ("Alarm.1", "Alarm"),
        ("Broken", "Alarm"),
        ("Counted", "Counted"),
    ]
    assert program.definition.queries[1].node.schema.names == ("area", "at")
    assert program.check() == []


def test_result_of_reads_the_result_stream_and_brings_its_query_along() -> None:
    near = f.join(s, f.time <= s.time, s.time <= f.time + "5m").select(f.fid, at=s.time)
    found = tg.result_of("Near", near)
    n = found.as_("n")
    assert found.definition.progress == ("at",)
    counted = n.group_by(hour=tg.ceil(n.at, "1h")).agg(n=tg.count())
    program = tg.program(Counted=counted)
    assert [query.name for query in program.definition.queries] == ["Near", "Counted"]
    assert [query.name for query in tg.program(Near=near, Counted=counted).definition.queries] == ["Near", "Counted"]
    # The result stream is the result of that name as well.
    assert [query.name for query in tg.program(Near=found, Counted=counted).definition.queries] == ["Near", "Counted"]
    assert tg.program(Near=found).definition == tg.program(Near=near).definition
    with pytest.raises(tg.QueryError, match="TG121 Near is fed by another query"):
        tg.program(Near=found.where(found.at > "2026-01-01"), Counted=counted)
    assert program.check() == []
    third = tg.result_of("Counted", counted)
    chain = tg.program(Last=third.where(third.n > 2))
    assert sorted(query.name for query in chain.definition.queries) == ["Counted", "Last", "Near"]
    assert chain.check() == []


def test_results_of_two_queries_have_two_names() -> None:
    """Wherever the two meet: in a relation, in a program, or among what their readers read."""

    def near(within: str) -> tg.Result:
        return tg.result_of("Near", f.join(s, f.time <= s.time, s.time <= f.time + within).select(f.fid, at=s.time))

    def counted(result: tg.Result, name: str) -> tg.Result:
        n = result.as_("n")
        return tg.result_of(name, n.group_by(hour=tg.ceil(n.at, "1h")).agg(n=tg.count()))

    one, same, other = near("5m"), near("5m"), near("6m")
    assert tg.program(X=one.where(one.fid > 1), Y=same.where(same.fid > 2)).check() == []
    assert sorted(one.union(same)._results) == ["Near"]
    refused: tuple[Callable[[], object], ...] = (
        lambda: one.union(other),
        lambda: tg.program(X=one.where(one.fid > 1), Y=other.where(other.fid > 2)),
        lambda: tg.program(X=counted(one, "A"), Y=counted(other, "B")),
        lambda: counted(one, "A").union(counted(other, "A")),
    )
    for make in refused:
        with pytest.raises(tg.QueryError, match=r"TG121 (Near|A) is the result of two queries"):
            make()


@pytest.mark.parametrize(
    ("wrong", "code", "hint"),
    [
        (lambda: tg.program(), "TG124", "tg.program(Name=relation)"),
        (lambda: tg.program(Alarm=smoke, Other=alarm), "TG121", "tg.query(Alarm, ...)"),
        (
            lambda: tg.program(tg.query(alarm, smoke.select(smoke.area, at=smoke.time)), Alarm=smoke),
            "TG121",
            "tg.query",
        ),
        (lambda: tg.program(X=alarm.where(alarm.area == "a")), "TG123", "tg.query(Alarm, ...)"),
        (lambda: tg.program(Smoke=smoke.where(smoke.conc > 1)), "TG122", "another name"),
        (lambda: tg.result_of("Smoke", smoke.where(smoke.conc > 1)), "TG122", "another name"),
        (lambda: tg.program(X=smoke, Y=tg.stream("Smoke", "time timestamp", progress="time")), "TG122", "once"),
        (lambda: tg.program(X=smoke.group_by("area")), "TG114", "agg"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: tg.program(smoke), "TG114", "Name=relation"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: tg.query(alarm, smoke), "TG108", "select"),
        (lambda: tg.query(alarm, smoke.select(area=smoke.conc, at=smoke.time)), "TG108", "cast"),
        (lambda: tg.query(alarm, smoke.group_by("area").agg(at=tg.max(smoke.time))), "TG117", "instants"),
        (lambda: tg.query(smoke, smoke), "TG114", "tg.result"),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_programs_refuse_what_has_no_one_meaning(wrong: Callable[[], object], code: str, hint: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        wrong()
    assert raised.value.code == code
    assert hint in raised.value.hint
    assert raised.value.site is not None
    assert raised.value.site.line == wrong.__code__.co_firstlineno
