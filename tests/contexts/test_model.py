"""Models as users write them: what is refused, what they say of themselves, and what rows in a context are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import tidegate as tg
from tests.contexts.traffic import MINUTES, REPORTS, STOPPED, traffic
from tidegate.algebra.nodes import Row

#: What type checkers refuse.
LOOSE: Any = tg
MODEL = tg.context_model("Roads", by="segment", default="clear", contexts=("full", "closed"), causes={"closed": "bag"})
WRONG: Any = MODEL
WRONG_MODEL: Any = REPORTS
CLOSING = MODEL.initiate("closed", when=STOPPED, cause=STOPPED.place)
STARTS = CLOSING.starts("closed")
VALUED = MODEL.initiate("closed", when=STOPPED, cause=STOPPED.place, values={"place0": STOPPED.place})
#: Contexts by two keys.
PAIRS = tg.context_model("Pairs", by=("segment", "place"), default="clear", contexts="full")
PAIRS = PAIRS.initiate("full", when=STOPPED)
BETWEEN_PAIRS = tg.between(STOPPED, STOPPED.where(STOPPED.cleared), by=("segment", "place"))
WINDOWS = tg.between(STOPPED, MINUTES, by="segment")


def named(name: str) -> tg.ContextModel:
    """A model like it by this name."""
    return tg.context_model(name, by="segment", default="clear", contexts="full")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tg.context_model("M", by=(), default="a", contexts=()), "TG187 a model with the context a alone"),
        (
            lambda: tg.context_model("M", by=(), default="a", contexts=("b", "a")),
            "TG187 two contexts are called a(.|\n)*the default is not among",
        ),
        (
            lambda: tg.context_model("M", by=(), default="a", contexts=("b", "b")),
            "TG187 two contexts are called b(.|\n)*list b once",
        ),
        (
            lambda: tg.context_model("M", by=("k", "k"), default="a", contexts="b"),
            "TG103 rows are partitioned by k twice(.|\n)*name each key once",
        ),
        (lambda: tg.context_model("M", by=(), default="a", contexts="b c"), "TG187 'b c' is no name of a context"),
        (lambda: LOOSE.context_model("M", by=(), default="a", contexts=3), "TG187 3 is no name of a context"),
        (lambda: LOOSE.context_model("M", by=3, default="a", contexts="b"), "TG114 by has a number, 3"),
        (lambda: tg.context_model("", by=(), default="a", contexts="b"), "TG114 '' is no name for a model"),
        (
            lambda: tg.context_model("M", by=(), default="a", contexts="b", causes={"a": "bag"}),
            "TG187 a is the default context: it has no causes",
        ),
        (
            lambda: tg.context_model("M", by=(), default="a", contexts="b", causes={"b": "heap"}),  # type: ignore[dict-item]
            "TG187 causes of b are 'heap'",
        ),
        (
            lambda: tg.context_model("M", by=(), default="a", contexts="b", causes={"bb": "bag"}),
            "TG187 causes names 'bb', which is no context of the model(.|\n)*there are a, b",
        ),
        (lambda: MODEL.initiate("ful", when=MINUTES), "TG187 initiate names 'ful'(.|\n)*did you mean full?"),
        (lambda: MODEL.initiate("clear", when=MINUTES), "TG187 clear is the default context: it holds where no other"),
        (lambda: MODEL.terminate("clear", when=MINUTES), "TG187 clear is the default context: it ends where another"),
        (lambda: MODEL.switch("full", when=MINUTES, within=()), "TG187 switch names no context"),
        (lambda: MODEL.switch("full", when=MINUTES, within="clean"), "TG187 switch names 'clean'"),
        (lambda: WRONG.switch("full", when=3), "TG114 switch got a number, not a relation"),
        (lambda: WRONG.initiate("full"), "TG114 .*'when'(.|\n)*say at which rows"),
        (lambda: MODEL.initiate("full", when=MINUTES, by=("segment", "cars")), "TG187 initiate names 2 keys"),
        (lambda: MODEL.initiate("full", when=MINUTES, by="road"), "TG101 unknown attribute 'road'"),
        (lambda: WRONG.initiate("full", when=MINUTES, values="cars"), "TG114 values='cars'"),
        (lambda: MODEL.initiate("full", when=STOPPED, cause="place"), "TG187 full does not hold by causes"),
        (
            lambda: CLOSING.switch("clear", when=STOPPED, cause="place"),
            "TG187 clear is the default context(.|\n)*keeps no cause of a row(.|\n)*leave cause= out",
        ),
        (
            lambda: CLOSING.switch("clear", when=MINUTES, values={"n": "cars"}),
            "TG187 clear is the default context(.|\n)*keeps no values of a row(.|\n)*leave values= out",
        ),
        (lambda: CLOSING.initiate("closed", when=MINUTES, cause=MINUTES.speed), "TG102 a cause is bigint of one query"),
        (
            lambda: MODEL.initiate("full", when=MINUTES, values={"n": "cars"}).initiate(
                "full", when=MINUTES, values={"n": "speed"}
            ),
            "TG102 'n' is bigint of one query and double of another",
        ),
        (lambda: MODEL.initiate("full", when=MINUTES, values={"time": "end"}), "TG103 a window has 'time'"),
        *(
            (
                lambda name=name: MODEL.initiate("full", when=MINUTES, values={name: "end"}),
                f"TG103 a window has '{name}' of its own",
            )
            for name in ("query number", "match began", "one cause")
        ),
        (lambda: MODEL.changes, "TG187 Roads has no query that begins a context"),
        (lambda: CLOSING.windows("shut"), "TG187 windows names 'shut'"),
        (lambda: REPORTS.in_context(CLOSING), "TG187 in_context names no context"),
        (lambda: REPORTS.in_context(CLOSING, "shut"), "TG187 in_context names 'shut'"),
        (lambda: REPORTS.not_in_context(CLOSING, "full", "shut"), "TG187 not_in_context names 'shut'"),
        (lambda: WRONG_MODEL.in_context(MINUTES, "full"), "TG114 in_context got a relation, not a model of contexts"),
        (lambda: REPORTS.in_context(CLOSING, "full", by="way"), "TG101 unknown attribute 'way'"),
        (
            lambda: REPORTS.rename(segment="part").in_context(CLOSING, "full"),
            "TG101 unknown attribute 'segment'(.|\n)*what stands for the keys of the model, segment: by=",
        ),
        (lambda: REPORTS.in_context(CLOSING, "full", by=("segment", "car")), "TG187 in_context names 2 keys"),
        (lambda: REPORTS.in_context(CLOSING, "full", by="lane"), "TG102"),
        (lambda: REPORTS.in_context(CLOSING, "full", values={"x": "speed"}), "TG101 a window of full has no 'speed'"),
        (lambda: REPORTS.in_context(CLOSING, "full", values={"car": "began"}), "TG103 attribute 'car' exists already"),
        (lambda: REPORTS.in_context(CLOSING, "full", "clear", values={"x": "began"}), "TG187 values of 2 contexts"),
        (
            lambda: REPORTS.in_context(CLOSING, "full", values={"x": "began", "y": "began"}),
            "TG103 values has 'began' twice, as x and as y(.|\n)*copy it: rows.with_\\(y=rows.x\\)",
        ),
        (
            lambda: REPORTS.in_context(WINDOWS, values={"x": "start", "y": "start"}),
            "TG103 values has 'start' twice, as x and as y",
        ),
        (
            lambda: CLOSING.terminate("closed", when=REPORTS.in_context(CLOSING, "closed")),
            "TG211 the query of terminate closed reads contexts of Roads, its own model\n.*test_model.py(.|\n)*"
            "leave in_context out: the query stands in closed already",
        ),
        *(
            (
                lambda rows=rows, action=action: getattr(VALUED, action)("closed", when=rows),
                f"TG211 the query of {action} closed(.|\n)*n0 and since are of a window, which is not known yet: take "
                "them from the rows that begin windows(.|\n)*asof_join(.|\n)*'Begin Other\\*\\? End'",
            )
            for inside in (REPORTS.in_context(VALUED, "closed", values={"n0": "place0", "since": "began"}),)
            for rows in (inside.where(inside.car > inside.n0), tg.result_of("Inside", inside))
            for action in ("terminate", "switch")
        ),
        (
            lambda: VALUED.terminate("closed", when=REPORTS.in_context(VALUED, "closed", values={"since": "began"})),
            "TG211 the query of terminate closed(.|\n)*since is of a window, which is not known yet: take it from",
        ),
        (
            lambda: VALUED.terminate(
                "closed", when=REPORTS.in_context(VALUED, "closed", values={"since": "began"}).drop("since")
            ),
            "TG211 the query of terminate closed(.|\n)*leave in_context out: the query stands in closed already",
        ),
        *(
            (
                lambda rows=rows: CLOSING.terminate("closed", when=rows.where(rows.n == 3), at="end"),
                "TG211 the query of terminate closed(.|\n)*at the last of a pattern of so many rows, since= its first",
            )
            for rows in (
                REPORTS.in_context(CLOSING, "closed").windows(tg.rows(3), by="segment").agg(n=tg.count()),
                tg.result_of("Numbered", REPORTS.in_context(CLOSING, "closed").over(by="segment", n=tg.row_number())),
            )
        ),
        (
            lambda: CLOSING.switch("full", when=REPORTS.not_in_context(CLOSING, "closed")),
            "TG211 the query of switch full reads contexts of Roads(.|\n)*name the contexts in .*: within=",
        ),
        (
            lambda: CLOSING.terminate("closed", when=STARTS.with_(end=STARTS.began + 5), at="end"),
            "TG211 the query of terminate closed reads contexts of Roads(.|\n)*ended by windows of rows: terminate"
            "\\('closed', when=tg.between\\(opens, closes, at_most=...\\), at='end'\\)",
        ),
        (
            lambda: CLOSING.initiate("full", when=CLOSING.windows("closed"), at="ended"),
            "TG211 the query of initiate full reads contexts of Roads(.|\n)*by which rows these contexts begin and end",
        ),
        (
            lambda: CLOSING.initiate("full", when=tg.result_of("Inside", REPORTS.in_context(CLOSING, "closed"))),
            "TG211 the query of initiate full reads contexts of Roads(.|\n)*leave in_context out",
        ),
        (
            lambda: named("Minutes").initiate("full", when=MINUTES),
            "TG122 Minutes is the name of a model of contexts and of a stream that is read by initiate full\n"
            ".*test_model(.|\n)*give the model another name",
        ),
        (
            lambda: named("Minutes").initiate("full", when=tg.result_of("Many", MINUTES.where(MINUTES.cars > 9))),
            "TG122 Minutes is the name of a model of contexts and of a stream that is read by initiate full",
        ),
        (
            lambda: REPORTS.in_context(named("Reports").initiate("full", when=MINUTES), "full"),
            "TG122 Reports is the name of a model of contexts and of a stream that is read in its contexts",
        ),
        (
            lambda: tg.program(Roads=REPORTS.in_context(CLOSING, "closed")),
            "TG121 Roads is fed by another query(.|\n)*contexts of a model of that name, has another name",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(tg.QueryError, match=message):
        make()


def test_a_model_says_what_it_is() -> None:
    assert repr(traffic()) == (
        "contexts Traffic by segment: clear, congestion, accident\n"
        "  switch congestion in clear\n"
        "  switch clear in congestion\n"
        "  initiate accident in clear, congestion, accident\n"
        "  terminate accident in accident"
    )


def test_a_query_makes_a_new_model() -> None:
    assert "initiate" in repr(CLOSING)
    assert "initiate" not in repr(MODEL)


def test_a_program_reads_one_model_of_a_name() -> None:
    """Else rows would be looked up in the contexts of the other one."""
    opening = CLOSING.terminate("closed", when=STOPPED)
    with pytest.raises(tg.QueryError, match="TG121 Roads is the result of two queries"):
        tg.program(Q=REPORTS.in_context(CLOSING, "closed"), R=REPORTS.in_context(opening, "closed"))
    with pytest.raises(tg.QueryError, match="TG121 Roads is the result of two queries"):
        REPORTS.in_context(CLOSING, "closed").not_in_context(opening, "full")
    assert tg.program(Q=REPORTS.in_context(CLOSING, "closed").not_in_context(CLOSING, "full")).check() == []


def test_a_transition_may_read_contexts_of_another_model() -> None:
    other = named("Other").initiate("full", when=REPORTS.in_context(CLOSING, "closed")).terminate("full", when=MINUTES)
    assert tg.program(Q=STOPPED.in_context(other, "full")).check() == []


def test_a_context_ends_so_long_after_it_began_as_windows_between_rows_do() -> None:
    """The way that the hint names, of a row that comes while the context holds and of one as it ends, too."""
    opens, closes = STOPPED.where(~STOPPED.cleared), STOPPED.where(STOPPED.cleared)
    windows = tg.between(opens, closes, by="segment", at_most=3)
    model = named("Timed").initiate("full", when=opens).terminate("full", when=windows, at="end")
    rows: list[Row] = [(7, time, 0, time == 7) for time in (5, 6, 7, 9, 10, 12, 13, 14, 20)]
    run = tg.program(Of=windows, In=model.windows("full").select("segment", "began", "ended")).run({"Stopped": rows})
    assert [tuple(row.values()) for row in run.rows("In")] == [(7, 5, 7), (7, 9, 12), (7, 12, 15), (7, 20, 23)]
    assert [tuple(row.values()) for row in run.rows("Of")] == [(7, 5, 7), (7, 9, 12), (7, 12, 15), (7, 20, 23)]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("bigint", 7),
        ("double", 1.5),
        ("boolean", True),
        ("string", "a"),
        ("decimal(9,2)", Decimal("1.50")),
        ("date", dt.date(2026, 1, 2)),
        ("timestamp", dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
    ],
)
def test_values_and_causes_of_any_type(type_: str, value: object) -> None:
    """What one query says of its rows is NULL of those of another."""
    rows = tg.stream("Rows", f"k bigint, t bigint, x {type_}", progress="t")
    model = tg.context_model("M", by="k", default="d", contexts=("a", "b"), causes={"b": "bag"})
    model = model.initiate("a", when=rows.where(rows.t == 0), values={"y": rows.x})
    model = model.initiate("b", when=rows.where(rows.t == 1), cause=rows.x)
    model = model.terminate("b", when=rows.where(rows.t == 2), cause=rows.x)
    inside = rows.in_context(model, "a", values={"y": "y"}).in_context(model, "b").select("t", "x", "y")
    assert rows_of(inside, Rows=[(1, 0, value), (1, 1, None), (1, 2, None), (1, 3, value)]) == [(2, None, value)]


STOPS = [(1, 10, 7, False), (1, 20, 7, True), (2, 12, 7, False)]


def rows_of(relation: tg.Relation, **inputs: Any) -> list[Row]:
    told = tg.program(Q=relation)
    given = {stream.name: inputs.get(stream.name, []) for stream in told.definition.inputs}
    return sorted((tuple(row.values()) for row in told.run(given)["Q"].rows()), key=str)


def test_another_instant_than_the_rows_own_is_looked_up() -> None:
    """The minute's border: an accident that begins within the minute is no accident of it yet."""
    reports = REPORTS.with_(minute=tg.floor(REPORTS.time, 10))
    rows = [(n, 1, time, "") for n, time in enumerate((9, 10, 11, 19, 20, 21, 25))]
    inputs = {"Reports": rows, "Stopped": STOPS}
    own = reports.in_context(traffic(), "accident", at="time").select("time")
    border = reports.in_context(traffic(), "accident", at="minute").select("time")
    assert rows_of(own, **inputs) == [(11,), (19,), (20,)]
    assert rows_of(border, **inputs) == [(20,), (21,), (25,)]


def test_a_context_of_another_partition_is_looked_up() -> None:
    """The next segment's."""
    reports = REPORTS.with_(ahead=REPORTS.segment + 1)
    rows = [(1, 1, 15, ""), (2, 2, 15, ""), (3, 1, 12, "")]
    ahead = reports.in_context(traffic(), "accident", by="ahead").select("car", "time")
    assert rows_of(ahead, Reports=rows, Stopped=STOPS) == [(1, 15)]


@pytest.mark.parametrize(
    ("of", "inside"),
    [
        (lambda rows, **by: rows.in_context(PAIRS, "full", **by), [1]),
        (lambda rows, **by: rows.in_context(PAIRS, "clear", **by), [2]),
        (lambda rows, **by: rows.in_context(PAIRS, "full", "clear", **by), [1, 2]),
        (lambda rows, **by: rows.not_in_context(PAIRS, "full", **by), [2, 3]),
        (lambda rows, **by: rows.not_in_context(PAIRS, "full", "clear", **by), [3]),
        (lambda rows, **by: rows.in_context(BETWEEN_PAIRS, **by), [1]),
        (lambda rows, **by: rows.not_in_context(BETWEEN_PAIRS, **by), [2, 3]),
    ],
)
def test_one_attribute_stands_for_two_keys(of: Callable[..., tg.Relation], inside: list[int]) -> None:
    found = of(REPORTS, by=("segment", "segment"))
    assert found.schema.names == REPORTS.schema.names
    reports = [(1, 7, 5, ""), (2, 8, 5, ""), (3, None, 5, "")]
    stops = [(7, 1, 7, False), (7, 1, 8, False), (8, 1, 7, False)]
    assert rows_of(found.select("car", "time"), Reports=reports, Stopped=stops) == [(car, 5) for car in inside]


def test_a_row_without_a_partition_is_in_no_context() -> None:
    rows: list[Row] = [(1, None, 15, ""), (2, 5, 16, "")]
    model = traffic()
    assert rows_of(REPORTS.in_context(model, "clear").select("time"), Reports=rows) == [(16,)]
    assert rows_of(REPORTS.not_in_context(model, "clear").select("time"), Reports=rows) == [(15,)]
    assert rows_of(REPORTS.not_in_context(model, "accident").select("time"), Reports=rows) == [(15,), (16,)]


def test_several_contexts() -> None:
    model = traffic()
    inputs = {
        "Reports": [(n, 1, time, "") for n, time in enumerate((5, 15, 25, 35))],
        "Minutes": [(1, 8, 60, 30.0), (1, 30, 10, 60.0)],
        "Stopped": STOPS,
    }
    either = REPORTS.in_context(model, "accident", "congestion").select("time")
    assert rows_of(either, **inputs) == [(15,), (25,)]
    assert rows_of(REPORTS.not_in_context(model, "accident", "congestion").select("time"), **inputs) == [(35,), (5,)]
    both = REPORTS.in_context(model, "accident").in_context(model, "congestion").select("time")
    assert rows_of(both, **inputs) == [(15,)]
    assert rows_of(REPORTS.in_context(model, "accident", "clear").select("time"), **inputs) == [(15,), (35,), (5,)]


def test_names_with_prefixes_are_taken() -> None:
    r, s = REPORTS.as_("r"), STOPPED.as_("s")
    model = MODEL.initiate("full", when=s.where(s.place == 7), by=s.segment, at=s.time)
    inside = r.in_context(model, "full").select("car", "time")
    assert rows_of(inside, Reports=[(1, 1, 15, ""), (2, 3, 15, "")], Stopped=STOPS) == [(1, 15)]


def test_windows_are_intervals() -> None:
    windows = traffic().windows("accident")
    assert windows.schema.names == ("segment", "ended", "began", "speed")
    assert rows_of(windows, Stopped=STOPS) == [(1, 20, 10, None)]


def test_the_first_query_gives_a_window_its_values_and_of_its_rows_the_least() -> None:
    many, few = MINUTES.where(MINUTES.cars > 50), MINUTES.where(MINUTES.cars < 50)
    model = MODEL.initiate("full", when=many, values={"speed": many.speed})
    model = model.initiate("full", when=few, values={"speed": few.speed})
    minutes: list[Row] = [(1, 10, 60, 30.0), (1, 10, 10, 20.0), (1, 10, 60, 25.0), (2, 10, 60, 1.0), (2, 10, 60, None)]
    assert rows_of(model.starts("full"), Minutes=minutes) == [(1, 10, 25.0), (2, 10, None)]
