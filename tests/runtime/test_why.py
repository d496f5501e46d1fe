"""`why`: what holds a result back, in a session, on Spark, on a checkpoint and on the command line."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tidegate import testing
from tidegate.algebra.errors import QueryError
from tidegate.runtime.cli.commands import main
from tidegate.runtime.state.errors import StateError

FILE = """\
import tidegate as tg

orders = tg.stream("Orders", "order_id bigint, ordered timestamp", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
o, p = orders.as_("o"), payments.as_("p")
unpaid = o.anti_join(
    p,
    p.order_id == o.order_id,
    o.ordered <= p.paid,
    p.paid <= o.ordered + tg.minutes(30),
)
program = tg.program(Unpaid=unpaid)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "unpaid.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def unpaid(file: Path) -> tg.Program:
    from tidegate.runtime.cli.program_files import load_programs

    return load_programs(file)["program"]


def at(text: str) -> str:
    return f"2026-03-02T{text}Z"


def waiting(run: testing.Drive) -> None:
    """Orders have arrived up to 12:20, payments up to 12:05."""
    run.add("Orders", [(1, at("12:00")), (2, None)])
    run.add("Payments", [(1, at("12:10"))])
    run.advance("Orders", ordered=at("12:20"))
    run.step()
    run.wait("20m")
    run.add("Orders", [(3, at("12:25"))])
    run.step()


HELD = """\
Unpaid is final up to ordered = 2026-03-02T11:34:59.999999Z
  held back by   Payments.paid, which has arrived up to 2026-03-02T12:04:59.999999Z
  final when     ordered <= Payments.paid - 30m
  because        p.paid <= o.ordered + 30m   unpaid.py:10   p.paid <= o.ordered + tg.minutes(30),
  without it     final up to ordered = 2026-03-02T12:20:00Z, 45m 1us further
  Payments.paid  reaches to 2026-03-02T12:10:00Z
                 is moved by a delay of 5m
                 was silent for the last 20m of clock
  accepted rows  2 of Orders, 1 of Payments"""


def test_without_a_name_it_is_the_only_result(unpaid: tg.Program, tmp_path: Path) -> None:
    with unpaid.session(checkpoint=tmp_path / "state") as session:
        assert str(session.why()) == str(session.why("Unpaid"))
        session.step()
    assert str(unpaid.why(tmp_path / "state")) == str(unpaid.why(tmp_path / "state", "Unpaid"))
    events = tg.stream("E", "k bigint, v bigint, t bigint", progress="t")
    high = events.partition_by("k").derive(High=tg.situation(events.v > 5)).High
    several = tg.program(
        Ends=high.group_by(high.k, end=tg.tumbling(high.te, 10)).agg(n=tg.count()), All=events.select("t")
    )
    with several.session() as session, pytest.raises(QueryError, match="TG402 why of which result") as caught:
        session.why()
    assert caught.value.hint == "name one: why('Ends'); it has Ends, All"
    assert caught.value.site is not None
    assert caught.value.site.file.endswith("test_why.py")


def test_stages_have_names_that_say_what_they_are() -> None:
    events = tg.stream("E", "k bigint, v bigint, t bigint", progress="t")
    both = events.partition_by("k").derive(High=tg.situation(events.v > 5), Low=tg.situation(events.v < 2))
    high, low = both.High, both.Low
    ends = high.select(k=high.k, te=high.te).union(low.select(k=low.k, te=low.te))
    program = tg.program(Ends=ends.group_by(end=tg.tumbling(ends.te, 10)).agg(n=tg.count()))
    with program.session(sources={"E": tg.source(None, delay=5)}) as session:
        session.push("E", [(1, 7, 1), (1, 3, 20), (1, 1, 30), (1, 8, 41)])
        report = session.step()
        for told in map(str, (report, session, session.why())):
            assert "~" not in told
        assert "Ends (its situations).te, which has arrived up to 35" in str(session.why())
        assert "Ends (its situations) is final up to te = 35" in str(session.why())
        assert "Ends (its situations, 2)  0 rows" in str(session)
        assert [line.name for line in report.status().lines if line.about == "out"] == ["Ends"]
        assert str(session).splitlines()[0] == "session of Ends in memory, after batch 1"


def test_until_when_rows_are_stored_one_by_one() -> None:
    """What folds waits for the result: while that is held back, rows are more and more."""
    o = tg.stream("O", "k bigint, t bigint", progress="t").as_("o")
    p = tg.stream("P", "k bigint, t bigint, v bigint", progress="t").as_("p")
    past = o.join(p, o.k == p.k, p.t <= o.t)
    program = tg.program(R=past.group_by(o.k, o.t).agg(v=tg.last(p.v, by=p.t)))
    with program.session() as session:
        assert "one by one while t - 1 > p(t), then one row by k" in str(session.why())
        session.push("P", [(1, 1, 7)])
        session.advance("P", 20)
        session.advance("O", 5)
        session.step()
        (line,) = (line for line in str(session.why()).splitlines() if "one by one" in line)
        assert line.split(maxsplit=3)[:3] == ["rows", "of", "P"]
        assert line.endswith("one by one while t - 1 > 5, then one row by k, with last(p.v, by=p.t)")
        session.finish()
        session.step()
        assert "one by one" not in str(session.why())


def test_a_silence_is_told_roughly(unpaid: tg.Program) -> None:
    start = dt.datetime(2026, 3, 2, 13, tzinfo=dt.UTC)
    clock = iter([start, start + dt.timedelta(hours=3, minutes=2, seconds=1, microseconds=123_456)])
    with unpaid.session(clock=lambda: next(clock)) as session:
        session.push("Payments", [(1, at("12:00"))])
        session.step()
        session.push("Orders", [(1, at("12:00"))])
        session.advance("Orders", {"ordered": at("12:00")})
        session.step()
        assert "was silent for the last 3h 2m of clock" in str(session.why())


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_the_input_that_holds_a_result_back(start: Start, unpaid: tg.Program) -> None:
    with start(unpaid, sources={"Payments": tg.source(None, delay="5m")}, clock=at("12:00")) as run:
        assert str(run.why("Unpaid")).startswith("no row of Unpaid is final yet\n  held back by    Orders.ordered, of")
        waiting(run)
        assert str(run.why("Unpaid")) == HELD
        run.advance("Payments", paid=at("13:00"))
        run.step()
        lines = str(run.why("Unpaid")).splitlines()
        assert lines[1] == "  held back by    Orders.ordered, which has arrived up to 2026-03-02T12:20:00Z"
        assert "  Orders.ordered  reaches to 2026-03-02T12:25:00Z" in lines
        assert any("only calls and its end move it" in line for line in lines)
        assert any("rejected rows: 1 null" in line for line in lines)
        run.finish()
        run.step()
        assert str(run.why("Unpaid")) == (
            "Unpaid is complete: all that it reads has ended\n  accepted rows  2 of Orders, 1 of Payments"
        )


def test_when_a_row_is_final(unpaid: tg.Program) -> None:
    with testing.drive(unpaid, sources={"Payments": tg.source(None, delay="5m")}, clock=at("12:00")) as run:
        waiting(run)
        found = str(run.why("Unpaid", ordered=at("12:05"))).splitlines()
        assert found[:4] == [
            "a row of Unpaid with ordered = 2026-03-02T12:05:00Z is not final yet",
            "  waits for      Payments.paid to arrive up to 2026-03-02T12:35:00Z, 30m 1us more",
            "                   which has arrived up to 2026-03-02T12:04:59.999999Z",
            "  because        p.paid <= o.ordered + 30m   unpaid.py:10   p.paid <= o.ordered + tg.minutes(30),",
        ]
        # Orders are moved by calls alone, so beyond them nothing is final by itself.
        beyond = str(run.why("Unpaid", ordered=at("12:21")))
        assert beyond.startswith(
            "a row of Unpaid with ordered = 2026-03-02T12:21:00Z is not final yet, and will never be"
        )
        assert "Orders.ordered to arrive up to 2026-03-02T12:21:00Z, 1m more" in beyond
        past = str(run.why("Unpaid", ordered=at("11:00")))
        assert "is final, since ordered is final up to 2026-03-02T11:34:59.999999Z" in past


def test_a_row_that_never_comes() -> None:
    s = tg.stream("S", "a bigint, b bigint", progress="b", relations=lambda s: s.a <= s.b)
    x, y = s.as_("x"), s.as_("y")
    pairs = x.join(y, x.b <= y.a).select(start=x.a, end=y.b)
    with testing.drive(tg.program(Pairs=pairs)) as run:
        run.step()
        (part,) = run.why("Pairs", start=5, end=4).parts
        assert part.says == "a row of Pairs with start = 5, end = 4 never comes: its instants contradict the conditions"
        constraints = [text.split("   ")[0] for _, text in part.lines]
        assert constraints == ["y.a <= y.b", "x.b <= y.a", "x.a <= x.b"]
        assert "is not final yet" in str(run.why("Pairs", start=4, end=4))


def test_through_results_down_to_the_input() -> None:
    s = tg.stream("S", "t bigint, k bigint", progress="t")
    n = tg.result_of("Near", s).as_("n")
    program = tg.program(Far=n.group_by(w=tg.ceil(n.t, 10)).agg(n=tg.count()))
    with testing.drive(program) as run:
        run.add("S", [(7, 1)])
        run.advance("S", t=7)
        run.step()
        text = str(run.why("Far"))
        assert text.index("held back by  Near.t") < text.index("\n  Near is final up to t = 7")
        assert "S.t" in text
        (part,) = run.why("Far").parts
        assert [(hold.stream, hold.reach) for hold in part.holds] == [("Near", 7)]
        assert [(hold.stream, hold.reach) for hold in part.inner[0].holds] == [("S", 7)]


def test_days_are_told_as_days() -> None:
    e = tg.stream("E", "k bigint, day date", progress="day")
    weeks = tg.program(Weeks=e.group_by(end=tg.ceil(e.day, 7)).agg(n=tg.count()))
    with testing.drive(weeks, sources={"E": tg.source(None, delay=2)}) as run:
        run.add("E", [(1, "2026-03-01"), (1, "2026-03-09")])
        run.step()
        told = str(run.why("Weeks")) + str(run.why("Weeks", end="2026-03-12"))
    assert "final up to end = 2026-03-06" in told
    assert "reaches to 2026-03-09" in told
    assert "to arrive up to 2026-03-12, 6 more" in told


def test_static_results_and_recursion_end() -> None:
    table = tg.table("T", "k bigint")
    s = tg.stream("S", "t bigint, k bigint", progress="t")
    ticks = tg.result("Ticks", "t bigint", progress="t")
    k = ticks.as_("k")
    starts = tg.query(ticks, s.select(s.t), name="first")
    goes_on = tg.query(ticks, k.where(k.t < 100).select(t=k.t + 10), name="next")
    program = tg.program(starts, goes_on, Of=table)
    with testing.drive(program, statics={"T": [(1,)]}) as run:
        run.add("S", [(3, 1)])
        run.advance("S", t=40)
        run.step()
        assert str(run.why("Of")) == "Of is complete: it waits for no stream"
        first, following = run.why("Ticks").parts
        assert first.says == "first is final up to t = 40"
        assert following.query == "next"
        assert "Ticks.t" in str(following)


def test_a_delay_that_is_newer_than_the_rows_is_told(unpaid: tg.Program, tmp_path: Path) -> None:
    """It counts from the next row on; with that, nothing is left to tell."""
    place, new = tmp_path / "checkpoint", "had no delay when its rows came: it moves with the next row"
    with unpaid.session(checkpoint=place) as session:
        session.finish("Orders")
        session.push("Payments", [(1, at("12:00"))])
        session.step()
        assert new not in str(session.why("Unpaid"))
    with unpaid.session(checkpoint=place, sources={"Payments": tg.source(None, delay="5m")}) as session:
        session.step()
        assert f"is moved by a delay of 5m\n                 {new}\n" in str(session.why("Unpaid"))
        session.push("Payments", [(2, at("12:01"))])
        session.step()
        assert new not in str(session.why("Unpaid"))


def test_on_a_checkpoint_and_on_the_command_line(
    unpaid: tg.Program, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "checkpoint"
    sources = {"Payments": tg.source(None, delay="5m")}
    with testing.drive(unpaid, sources=sources, clock=at("12:00"), directory=place) as run:
        waiting(run)
        # The run goes on, and holds the checkpoint.
        assert str(unpaid.why(place, "Unpaid")) == HELD
        assert main(["why", str(place), str(file)]) == 0
        assert capsys.readouterr().out == HELD + "\n"
    assert main(["why", str(place), str(file), "--result", "Unpaid", "--row", f"ordered={at('12:05')}", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["Unpaid"]["queries"]
    assert [(wait["stream"], wait["needed"] - wait["has"]) for wait in answer["waits"]] == [
        ("Payments", 30 * 60 * 1_000_000 + 1)
    ]
    assert main(["why", str(place), str(file), "--row", f"ordered={at('12:05')}"]) == 0  # of the only result
    assert capsys.readouterr().out.startswith("a row of Unpaid with ordered = ")
    for instant in ("soon", "--5", "\u00b2", "9" * 5_000):
        assert main(["why", str(place), str(file), "--result", "Unpaid", "--row", f"ordered={instant}"]) == 1
        assert "TG403" in capsys.readouterr().err
    file.write_text(FILE.replace("30", "31"))
    assert main(["why", str(place), str(file)]) == 1
    assert "TG501" in capsys.readouterr().err
    for wrong in (["--row", "ordered=soon"], ["--result", "Paid"], ["--program", "other"]):
        assert main(["why", str(place), str(file), *wrong]) == 1
    file.write_text(FILE.replace("Unpaid=unpaid", "Unpaid=unpaid, Again=unpaid"))
    capsys.readouterr()
    assert main(["why", str(place), str(file), "--row", "ordered=2026-03-02"]) == 1
    assert "add --result, with one of Unpaid, Again" in capsys.readouterr().err
    assert main(["why", str(tmp_path / "nowhere"), str(file)]) == 1
    capsys.readouterr()
    assert main(["why", str(file.parent), str(file)]) == 1
    assert "hint          name the directory that was given as checkpoint" in capsys.readouterr().err


def test_a_row_that_no_condition_lets_come_is_told_with_the_condition() -> None:
    """Also where the condition compares its instants with a constant, and where a window has no such end."""
    s = tg.stream("S", "k bigint, t timestamp", progress="t")
    march = s.t >= dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    program = tg.program(
        Marched=s.where(march).select(s.k, at=s.t),
        Counted=s.where(march).group_by(w=tg.ceil(s.t, "10m")).agg(n=tg.count()),
        Either=s.where(march).select(s.t).union(s.where(s.k > 1).select(s.t)),
    )
    with program.session() as session:
        early = session.why("Marched", {"at": "2026-03-01"}).parts[0]
        assert early.says.endswith("never comes: its instants contradict the conditions")
        ((label, line),) = early.lines
        assert label == "because"
        assert line.startswith("t >= 2026-03-02T00:00:00Z   test_why.py:")
        off = session.why("Counted", {"w": at("12:05")}).parts[0]
        assert "never comes" in off.says
        assert off.lines == (("because", f"w is one of every 10m, such as {at('12:00:00')} and {at('12:10:00')}"),)
        for name, row in (
            ("Marched", {"at": "2026-03-02"}),
            ("Counted", {"w": at("12:10")}),
            ("Either", {"t": "2026-03-01"}),
        ):
            assert "not final yet" in session.why(name, row).parts[0].says


def unlikely() -> dict[str, tuple[tg.Relation, dict[str, Any], str]]:
    """Relations with a condition on instants, a row that breaks it, and the conditions that keep it from coming."""
    s = tg.stream("S", "k bigint, t timestamp", progress="t")
    u = tg.stream("U", "j bigint, u timestamp", progress="u")
    i = tg.stream("I", "k bigint, n bigint", progress="n")
    march = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    since = "t >= 2026-03-02T00:00:00Z"
    early, both = {"t": "2026-03-01"}, {"t": "2026-03-01", "u": "2026-03-01"}
    marched, later = s.where(s.t >= march), u.where(u.u >= march)
    near = s.t <= u.u, u.u <= s.t + tg.minutes(5)
    before = marched.select(marched.k, at=s.t)
    return {
        "division": (i.where(tg.lit(10).div(i.n - 5) > 0), {"n": 5}, ""),  # it fails for such a row
        "a NULL": (i.where(tg.lit(10).try_div(i.n - 5) > 0), {"n": 5}, "try_idiv(10, n - 5) > 0"),
        "a copy": (marched.with_(u=s.t).select("k", "u"), {"u": "2026-03-01"}, since),
        "another of the name": (before.select(before.k, t=before.at - tg.hours(240)), early, ""),
        "twice": (marched.select(s.t).union(marched.select(s.t)), early, since),
        "a semi-join": (s.join(u, s.t == u.u, s.t >= march, how="semi"), early, since),
        "a left join": (s.join(u, *near, s.t >= march, how="left").select(s.t), early, ""),
        "a left row": (marched.join(u, *near, how="left").select(s.t), early, since),
        "an anti-join": (s.anti_join(later, s.t == u.u), early, ""),
        "a right row": (s.join(later, *near).select(s.t, u.u), both, "u >= 2026-03-02T00:00:00Z"),
        "a factor": (tg.product(s, later).where(*near).select(s.t, u.u), both, "u >= 2026-03-02T00:00:00Z"),
    }


@pytest.mark.parametrize("kind", unlikely())
def test_conditions_keep_a_row_from_coming_where_it_would_have_to_satisfy_them(kind: str) -> None:
    relation, row, broken = unlikely()[kind]
    with tg.program(Out=relation).session() as session:
        said = session.why("Out", row).parts[0]
    if broken:
        assert "never comes" in said.says
        ((_, line),) = said.lines
        assert line.startswith(broken + "   ")
    else:
        assert "not final yet" in said.says


def test_a_checkpoint_of_a_program_with_more_queries_is_of_another_program(tmp_path: Path) -> None:
    """Also where the other query shares nothing with those that are there; keys and tables are said by the run."""
    e, f = (tg.stream(name, "k bigint, t bigint", progress="t") for name in ("E", "F"))
    both, one = tg.program(OfE=e, OfF=f), tg.program(OfE=e)
    for program, place in ((both, tmp_path / "both"), (one, tmp_path / "one")):
        with program.session(checkpoint=place, sources={"E": tg.source(None, key=("k", "t"))}) as session:
            session.push("E", [(1, 5)])
            session.step()
        assert program.why(place, "OfE").parts
    with pytest.raises(StateError, match="TG501") as caught:
        one.why(tmp_path / "both", "OfE")
    assert "query OfF: only in the checkpoint" in str(caught.value)
    with pytest.raises(StateError, match="TG501"):
        both.why(tmp_path / "one", "OfE")


def test_questions_that_make_no_sense_are_refused(unpaid: tg.Program, tmp_path: Path) -> None:
    with unpaid.session() as session:
        for name, row, code in (
            ("Paid", None, "TG402"),
            ("Unpaid", {"order_id": 3}, "TG401"),
            ("Unpaid", {"ordered": "soon"}, "TG403"),
            ("Unpaid", {"ordered": float("inf")}, "TG403"),
            ("Unpaid", {"ordered": at("12:00"), "wrong": 3}, "TG402"),
        ):
            with pytest.raises(QueryError, match=code):
                session.why(name, row)
        assert str(session.why("Unpaid")).startswith("no row of Unpaid is final yet")
    with pytest.raises(StateError):
        unpaid.why(tmp_path / "nowhere", "Unpaid")


def test_a_row_without_names_is_told_all_that_it_has_to_say() -> None:
    a, b = (tg.stream(name, "t timestamp", progress="t").as_(name) for name in "ab")
    pairs = tg.program(Pairs=a.join(b, a.t < b.t, b.t <= a.t + tg.minutes(1)).select(first=a.t, second=b.t))
    row: Any = (at("12:00"), at("12:01"))
    with pairs.session() as session, pytest.raises(QueryError, match="TG401") as refused:
        session.why("Pairs", row)
    assert refused.value.hint == 'write {"first": ..., "second": ...}'
