"""Calls with values of the wrong kind, and misspelt names: told as errors of the call, never as Python's own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tidegate import testing
from tidegate.algebra.errors import TidegateError
from tidegate.runtime.cli.commands import main
from tidegate.runtime.state.store.local import LocalStore

events = tg.stream("E", "k bigint, t timestamp, v double", progress="t")
ticks = tg.stream("I", "k bigint, t bigint, v double", progress="t")
days = tg.stream("D", "k bigint, t date, v double", progress="t")
names = tg.table("N", "k bigint, name string")
e, n = events.as_("e"), names.as_("n")
program: Any = tg.program(Out=e.join(n, e.k == n.k).select(t=e.t, name=n.name))
ROWS = [(1, "2026-03-02T12:00Z", 1.0)]
start: Any = tg.source
session: Any = program.session
drive: Any = testing.drive
STATICS: dict[str, Any] = {"statics": {"N": []}}

#: An integer of more digits than Python writes.
HUGE = 10**5000


class Unsaid:
    def __repr__(self) -> str:
        raise RuntimeError


#: None of these is what an option wants, but for a few, which are then accepted.
JUNK: list[Any] = [
    *(3, -1, 2.5, float("inf"), float("nan"), True, None, "x", "", b"x", ["X"], [1], (1, 2), [], object()),
    *({"Out": 3}, {"E": 3}, {"t": None}, {3: 4}, {"E": object()}, dt.timedelta(-1), "-1s"),
    *(HUGE, -HUGE, [HUGE], {HUGE: 1}, {"t": HUGE}, {"E": HUGE}, {"Out": HUGE}, {"k": [HUGE]}, Unsaid()),
]


def on(call: Callable[[Any], object]) -> Callable[[Any], object]:
    """The call on an open session."""

    def opened(value: Any) -> None:
        with session(**STATICS) as live:
            call(lambda name, *given: getattr(live, name)(*(value if one is ... else one for one in given)))

    return opened


def driven(call: Callable[[Any, Any], object]) -> Callable[[Any], object]:
    def opened(value: Any) -> None:
        with drive(program, **STATICS) as run:
            call(run, value)

    return opened


def with_source(stream: tg.Relation, option: str) -> Callable[[Any], object]:
    made: Any = tg.program(Out=stream)
    name = made.facts.program.inputs[0].name
    return lambda value: made.session(sources={name: start(None, **{option: value})}).close()


def stepped(option: str) -> Callable[[Any], object]:
    def stepping(value: Any) -> None:
        with session(**STATICS | {option: value}) as live:
            live.push("E", ROWS)
            live.step()

    return stepping


def scheduled(option: str) -> Callable[[Any], object]:
    made: Any = tg.schedule
    return lambda value: session(schedule=made(**{option: value}), **STATICS)


def driving(option: str) -> Callable[[Any], object]:
    return lambda value: drive(program, **STATICS | {option: value})


def limited(option: str) -> Callable[[Any], object]:
    made: Any = tg.situation
    return lambda value: events.partition_by("k").derive(A=made(events.v > 1, **{option: value}))


def matched(option: str) -> Callable[[Any], object]:
    derived = events.partition_by("k").derive(A=tg.situation(events.v > 1), B=tg.situation(events.v < 0))
    return lambda value: tg.match(derived.A.before(derived.B), **{"within": "5s", option: value})


GUARDS = ("skew_guard", "age_guard")
SOURCE = ("delay", "progress_columns", "policy", "bounded", *GUARDS, "idle", "idle_follows", "key", "arrival")
SESSION = ("sources", "statics", "sinks", "collect_garbage", "clock", "on_batch", "purging", "schedule")
DRIVE = ("sources", "statics", "clock", "collect_garbage", "driver_bytes", "schedule")
CALLS: dict[str, Callable[[Any], object]] = {
    **{f"source({option}=)": with_source(events, option) for option in SOURCE},
    **{f"source({option}=), integers": with_source(ticks, option) for option in SOURCE},
    **{f"source({option}=), dates": with_source(days, option) for option in ("delay", *GUARDS)},
    **{f"session({option}=)": stepped(option) for option in SESSION},
    **{f"schedule({option}=)": scheduled(option) for option in ("every", "priority", "budget")},
    **{f"drive({option}=)": driving(option) for option in DRIVE},
    "drive": lambda value: drive(value),
    "run": lambda value: program.run(value),
    "run, rows": lambda value: program.run({"E": value, "N": []}),
    "session.push, name": on(lambda do: do("push", ..., ROWS)),
    "session.push, rows": on(lambda do: do("push", "E", ...)),
    "session.advance, name": on(lambda do: do("advance", ..., {})),
    "session.advance": on(lambda do: do("advance", "E", ...)),
    "session.finish": on(lambda do: do("finish", ...)),
    "session.results": on(lambda do: do("results", ...)),
    "session.why": on(lambda do: do("why", ...)),
    "session.why, row": on(lambda do: do("why", "Out", ...)),
    "drive.add, rows": driven(lambda run, value: (run.add("E", value), run.step())),
    "drive.advance": driven(lambda run, value: run.advance("E", t=value)),
    "drive.finish": driven(lambda run, value: run.finish(value)),
    "drive.wait": driven(lambda run, value: run.wait(value)),
    "drive.kill": driven(lambda run, value: run.kill(value)),
    "drive.kill, skip": driven(lambda run, value: run.kill(skip=value)),
    "drive.new": driven(lambda run, value: run.new(value)),
    "drive.expect": driven(lambda run, value: run.expect(Out=value)),
    "drive.why": driven(lambda run, value: run.why("Out", t=value)),
    "program.why": lambda value: program.why(value, "Out"),
    "parquet, per_batch": lambda value: tg.parquet("x", per_batch=value),
    "stream": lambda value: tg.stream(value, "t bigint", progress="t"),
    "stream, schema": lambda value: tg.stream("S", value, progress="t"),
    "stream, progress": lambda value: tg.stream("S", "t bigint", progress=value),
    "stream, relations": lambda value: tg.stream("S", "t bigint", progress="t", relations=value),
    "table": lambda value: tg.table(value, "k bigint"),
    "result_of": lambda value: tg.result_of(value, events),
    "program": lambda value: tg.program(Out=value),
    "callback": lambda value: tg.callback(value),
    "parquet_sink": lambda value: tg.parquet_sink(value),
    "rename": lambda value: events.rename(value),
    "as_": lambda value: events.as_(value),
    "where": lambda value: events.where(value),
    "relation[]": lambda value: events[value],
    "lit": lambda value: tg.lit(value),
    "seconds": lambda value: tg.seconds(value),
    "duration": lambda value: tg.duration(value),
    "timestamp": lambda value: tg.timestamp(value),
    "ceil": lambda value: tg.ceil(events.t, value),
    "cast": lambda value: events.k.cast(value),
    "select": lambda value: events.select(value),
    "group_by": lambda value: events.group_by(value),
    "agg": lambda value: events.group_by(events.k).agg(n=value),
    "join": lambda value: events.join(n, value),
    "join, how": lambda value: events.join(n, events.k == n.k, how=value),
    "derive": lambda value: events.partition_by("k").derive(A=value),
    "match": lambda value: tg.match(value),
    "match, within": matched("within"),
    "match, order": matched("order"),
    "match, emission": matched("emission"),
    "timeline": lambda value: tg.timeline(value),
    **{f"situation({option}=)": limited(option) for option in ("at_least", "at_most", "between")},
}


@pytest.mark.parametrize("call", CALLS)
def test_no_value_of_a_wrong_kind_is_told_by_python(call: str) -> None:
    told = []
    for value in JUNK:
        try:
            CALLS[call](value)
        except TidegateError as error:
            told.append(error)
        except AssertionError:
            if call != "drive.expect":
                raise
    assert [str(error) for error in told if not error.hint] == []
    refused = len(told)
    assert refused >= len(JUNK) // 2, "most of these are no sensible values"


def counted(source: tg.Source) -> object:
    return tg.program(Out=ticks).session(sources={"I": source})


def counting() -> tg.Session:
    return tg.program(Out=ticks).session(sources={"I": tg.source(None, delay=5)})


#: What is told, and how to mend it.
TOLD: list[tuple[Callable[[], object], str, str]] = [
    (lambda: session(sources={"E": tg.source(None, delay=float("inf"))}), "TG401 delay=inf is no duration", '"10m"'),  # type: ignore[arg-type]
    (
        lambda: counted(tg.source(None, delay=2**61 + 1)),
        "TG401 I.t: delay 2305843009213693953 is more than",
        "leave delay out",
    ),
    (lambda: tg.duration("9" * 5000 + "s"), "TG104 duration '9{199}… is longer than", "shorter"),
    (lambda: events.where(pl.col("k") > 1), "TG110 an Expr is no value of a query", "made of a relation's attributes"),  # type: ignore[arg-type]
    (lambda: events.k + HUGE, "TG110 a value of type int does not fit into 64 bits", "double"),
    (lambda: session(cache_bytes=-1, **STATICS), "TG401 cache_bytes=-1 is no number of bytes", "a whole number"),
    (lambda: session(threads=HUGE, **STATICS), "TG401 threads=a value of type int is no", "one per core"),
    (lambda: session(schedule=tg.schedule(every={"Out": HUGE}), **STATICS), "TG401 Out: every=a value", "clock"),
    (lambda: tg.schedule(every=3), "TG401 every is a mapping of names, not an int", 'every={"Name": 10}'),  # type: ignore[arg-type]
    (lambda: tg.schedule(every=["X"]), "TG401 every is a mapping of names, not a list", 'every={"Name": 10}'),  # type: ignore[arg-type]
    (lambda: tg.program(Out=events).run([]), "TG401 inputs is a mapping of names, not a list", 'inputs={"Name": rows}'),  # type: ignore[arg-type]
    (lambda: counting().advance("I", "2026-03-02"), "TG403 I.t: '2026-03-02' is no instant", "a whole number"),
    (lambda: session(**STATICS).advance("E", "soon"), "TG403 E.t: 'soon' is no instant", "give a datetime or ISO text"),
    (
        lambda: session(**STATICS).advance("E", {"t": 1772452800}),
        "TG403 E.t: 1772452800 is no instant",
        "fromtimestamp",
    ),
    (lambda: session(**STATICS).advance("E", True), "TG403 E.t: True is no instant", "ISO text"),
    (lambda: session(**STATICS).advance("E", {}), "TG403 E: {} names no attribute", 'write advance("E", {"t": ...})'),
    (lambda: session(tune="500mss", **STATICS), "TG401 tune='500mss' is nothing", "did you mean ms? give"),
    (lambda: session(tune="troughput", **STATICS), "TG401 tune='troughput' is", 'did you mean "throughput"?'),
    (lambda: session(on_batch=3, **STATICS), "TG401 on_batch is a function, not an int", "on_batch=print"),
    (lambda: session(clock=dt.datetime(2026, 3, 2), **STATICS), "TG401 clock is a function", "returns a datetime"),
    (lambda: drive(program, sorces={}), "TG114 drive.. got an unexpected keyword argument 'sorces'", "sources="),
    (lambda: drive(program, **STATICS).add(strem="E", rows=[]), "TG114 .*unexpected keyword argument", "stream="),
    (
        lambda: session(sinks={"Oout": tg.parquet_sink("x")}),
        "TG402 the program has no result 'Oout'",
        "did you mean Out",
    ),
    (lambda: session(sources={"E": tg.source(None, idle="0s")}), "TG401 E: a source that is idle", "10m"),
    (lambda: session(checkpoint="/proc/xx", **STATICS), "TG500 /proc/xx can not be made", "another file system"),
    (lambda: drive(program, **STATICS).wait("-1s"), "TG401 a clock does not go back", "positive"),
    (
        lambda: program.start(3, sources={}, checkpoint="x", held=True),
        "TG114 .*unexpected keyword argument 'held'",
        "sources",
    ),
    (lambda: program.start(3, sources={}, checkpoint="x"), "TG401 .*int is no session", "pyspark.sql.SparkSession"),
    (lambda: drive(program, spark=3, **STATICS), "TG401 .*int is no session", "pyspark.sql.SparkSession"),
]


def test_a_delay_of_dates_is_whole_days() -> None:
    made: Any = tg.program(Out=days)
    (stream,) = made.definition.inputs
    for fitting in (2, "2 days", "48h", dt.timedelta(2), {"t": "2d"}):
        assert start(None, delay=fitting).options(stream).delay == {"t": 2}
    with pytest.raises(tg.QueryError, match="TG104 '36h' is no whole number of days") as caught:
        made.session(sources={"D": start(None, delay="36h")})
    assert '"2d"' in caught.value.hint


def test_instants_of_two_types_are_declared_as_one() -> None:
    """What a cast yields is no instant, and orders no rows."""
    one, other = (
        tg.stream(type_, f"k bigint, t {type_}", progress="t").as_(type_[0]) for type_ in ("date", "timestamp")
    )
    for refused in (
        lambda: other.asof_join(one, by="k"),
        lambda: one.windows(tg.between(other, other, by="k"), by="k"),
        lambda: one.unqualified().union(other.unqualified()),
    ):
        with pytest.raises(tg.QueryError, match=r"TG10[28]") as caught:
            refused()
        assert caught.value.hint == "declare both as one type in their schemas: what a cast yields is no instant"
    with pytest.raises(tg.QueryError, match="TG102") as caught:
        one.join(other, one.t <= other.t)
    assert "where instants bound each other, declare both as one type in their schemas" in caught.value.hint
    with pytest.raises(tg.QueryError, match="TG104") as caught:
        one.over(by="k", order="t", range="7h", n=tg.count())
    assert "declare a timestamp instead of the date in the schema" in caught.value.hint
    assert "to_timestamp" not in caught.value.hint


@pytest.mark.parametrize("number", range(len(TOLD)))
def test_a_wrong_call_is_told_with_a_way_out(number: int) -> None:
    call, message, hint = TOLD[number]
    with pytest.raises(TidegateError, match=f"^{message}") as caught:
        call()
    assert hint in caught.value.hint


def test_durations_of_situations_are_of_the_kind_of_their_timeline() -> None:
    """As other durations: a bare number of microseconds is nearly always meant as something else."""

    def situations(stream: tg.Relation, limit: Any) -> tg.Relation:
        derived = stream.partition_by("k").derive(A=tg.situation(stream["v"] > 1, at_least=limit))
        return derived.match(derived.A, within=limit)

    for stream, limit in ((events, "5s"), (events, dt.timedelta(seconds=5)), (events, tg.seconds(5)), (ticks, 5)):
        assert situations(stream, limit) is not None
    by_number = situations(days, 5)
    for limit in ("5d", dt.timedelta(5), tg.hours(120)):
        assert situations(days, limit)._node == by_number._node
    for stream, limit in ((events, 5), (events, "5"), (ticks, "5s"), (ticks, tg.seconds(5)), (days, "5s"), (days, "x")):
        with pytest.raises(tg.QueryError, match=r"TG1(60|04)") as caught:
            situations(stream, limit)
        assert "write" in caught.value.hint


def test_the_command_line_tells_what_a_file_or_an_option_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "p.py"
    made.write_text(
        'import tidegate as tg\ne = tg.stream("E", "t timestamp", progress="t")\nprogram = tg.program(Out=e)\n'
    )
    with tg.program(Out=tg.stream("E", "t timestamp", progress="t")).session(checkpoint=tmp_path / "state"):
        pass
    asked = ["why", str(tmp_path / "state"), str(made), "--result", "Out", "--row"]
    assert main([*asked, "t"]) == 1
    assert "--row t: a name and a value are missing" in capsys.readouterr().err
    assert main([*asked, "t=2026-03-02"]) == 0
    query = tmp_path / "q.txt"
    query.write_bytes(b"\xff\xfe")
    assert main(["run", "--query", str(query), "--input", f"E={made}"]) == 1
    assert "TG140" in capsys.readouterr().err


def test_a_path_below_a_file_is_no_place_for_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TidegateError, match=r"TG500 .*state is not a directory"):
        session(checkpoint=LocalStore(tmp_path / "file" / "state").where, **STATICS)


explained: Any = tg.program(All=events).explain()
MEMBERS: list[tuple[Any, str, str]] = [
    (explained, "reprot", "report"),
    (
        tg.query(tg.result("R", "k bigint, t timestamp", progress="t"), events.select("k", "t")),
        "relatoin",
        "relation",
    ),
    (tg.schedule(every={"All": "1h"}), "evry", "every"),
    (tg.parquet_sink("somewhere"), "directry", "directory"),
    (tg.deployment(tg.program(All=events), sources={"E": tg.parquet("in")}, checkpoint="state"), "engin", "engine"),
]


@pytest.mark.parametrize(("value", "name", "meant"), MEMBERS, ids=[name for _, name, _ in MEMBERS])
def test_a_misspelt_member_is_told_with_the_one_that_is_meant(value: Any, name: str, meant: str) -> None:
    with pytest.raises(tg.QueryError, match=f"TG131 .*has no '{name}'") as caught:
        getattr(value, name)
    assert f"did you mean {meant}" in caught.value.hint


def deployed(**options: Any) -> object:
    made: Any = tg.deployment
    return made(tg.program(Out=events), **{"sources": {"E": ROWS}, "checkpoint": "state", **options})


#: What is wrong with a value whatever else there is, or with a name of the program that is given with it.
WRITTEN: list[tuple[Callable[[], object], str, str]] = [
    (lambda: start(None, delay=True), "TG401 delay=True is no duration", '"10m"'),
    (lambda: start(None, delay=-5), "TG401 delay=-5 is negative", '"10m"'),
    (lambda: start(None, delay=["5m"]), "TG401 delay=.* does not say which attribute", 'delay={"time": "5m"}'),
    (lambda: start(None, delay={"t": "5 minuts"}), "TG104 delay: '5 minuts'", "did you mean minute"),
    (lambda: start(None, idle=5), "TG401 idle=5 is no duration", '"10m"'),
    (lambda: start(None, skew_guard=dt.timedelta(-1)), "TG401 skew_guard=.* is negative", '"10m"'),
    (lambda: start(None, key=5), "TG401 key: 5 names no attribute", 'key="id"'),
    (lambda: start(None, key=[["k"]]), "TG401 key: ..k.. names no attribute", 'key="id"'),
    (lambda: start(None, arrival=3), "TG401 arrival=3 names no attribute", "the rows do not bring"),
    (lambda: start(None, progress_columns="a"), "TG401 progress_columns is a mapping", '{"Name": "column"}'),
    (lambda: start(None, progress_columns={"t": 3}), "TG401 3 names no progress column", "name"),
    (lambda: tg.schedule(every={"A": "1 hou"}), "TG104 '1 hou'", "did you mean hour"),
    (lambda: tg.schedule(every={"A": True}), "TG401 A: every=True is no cadence", '"10s"'),
    (lambda: tg.schedule(priority={"A": "high"}), "TG401 A: 'high' is no priority", "whole number"),  # type: ignore[dict-item]
    (lambda: tg.schedule(budget="0s"), "TG401 budget='0s' is no time", '"10s"'),
    (lambda: deployed(sources={}), "TG407 no source for E", "tg.parquet"),
    (lambda: deployed(sources={"X": ROWS}), "TG402 .* no input 'X'", "it has E"),
    (lambda: deployed(sources={"E": None}), "TG407 E: None is no rows", "empty list"),
    (lambda: deployed(sources={"E": start(ROWS, key="nope")}), "TG101 .*'nope'", "k, t, v"),
    (lambda: deployed(sources="x"), "TG401 sources is a mapping", "tg.parquet"),
    (lambda: deployed(sinks={"Oout": None}), "TG402 .* no result 'Oout'", "did you mean Out"),
    (lambda: deployed(statics={"E": []}), "TG402 .* no static table 'E'", "it has none"),
    (lambda: deployed(checkpoint=3), "TG500", ""),
    (lambda: deployed(quarantine_keep="much"), "TG525", '"30d"'),
    (lambda: program.run({"E": None, "N": []}), "TG407 E: None is no rows", "empty list"),
    (lambda: program.run({"E": start(None), "N": []}), "TG407 E: None is no rows", "empty list"),
    (lambda: program.run({"E": [], "N": []}, progress="no"), "TG401 progress='no' says neither", "True or False"),
]


@pytest.mark.parametrize("number", range(len(WRITTEN)))
def test_what_is_wrong_is_told_where_it_is_written(number: int) -> None:
    call, message, hint = WRITTEN[number]
    with pytest.raises(TidegateError, match=f"^{message}") as caught:
        call()
    assert hint in caught.value.hint


def test_options_that_do_not_fit_the_stream_are_told_at_the_source() -> None:
    written = start(ROWS, key="nope")
    with pytest.raises(tg.QueryError, match="TG101") as caught:
        tg.program(Out=events).run({"E": written})
    assert caught.value.site is not None
    assert caught.value.site.code == 'written = start(ROWS, key="nope")'
