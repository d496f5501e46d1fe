"""The queries of TSA §2 and §5, those with recursion excepted: functions, keep conditions and bounds, worked out by
hand.
"""

from __future__ import annotations

import pytest

import tidegate as tg
from tests.analysis.build import HOUR, MINUTE, SECOND
from tidegate import hours, minutes, seconds
from tidegate.algebra.time import INF
from tidegate.analysis.facts import QueryFacts
from tidegate.analysis.state.bounds import Bounded, Collected, Static, Unbounded

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")


def facts_of(relation: tg.Relation) -> QueryFacts:
    return tg.program(Q=relation).facts.queries[0]


def functions(query: QueryFacts) -> dict[str, str]:
    return {a: f.describe() for a, f in query.propagation.items()}


def horizons(query: QueryFacts) -> dict[str, float | str]:
    return {
        o.stream.name: o.bound.horizon if isinstance(o.bound, Bounded) else type(o.bound).__name__
        for o in query.occurrences
    }


def kept(query: QueryFacts) -> dict[str, str]:
    return {o.stream.name: o.keep.describe() for o in query.occurrences}


def max_smoke(longest: tg.Expression | None = None) -> tg.Relation:
    fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")
    lasting = [minutes(1) <= fe.time - fs.time]
    if longest is not None:
        lasting.append(fe.time - fs.time <= longest)
    return (
        tg.product(fs, s, fe)
        .where(fs.fid == fe.fid, fs.time <= s.time, s.time <= fe.time, *lasting)
        .group_by(start=fs.time, end=fe.time, area=s.area)
        .agg(max_conc=tg.max(s.conc))
    )


def test_static_data() -> None:
    """Temp: sensor messages with their location; the static table demands nothing."""
    raw = tg.stream("TRaw", "sid bigint, time timestamp, temp double", progress="time").as_("t")
    location = tg.table("TLoc", "sid bigint, area string").as_("l")
    query = facts_of(raw.join(location, raw.sid == location.sid).select(sid=raw.sid, time=raw.time, area=location.area))
    assert functions(query) == {"time": "TRaw.time"}
    assert kept(query)["TRaw"] == "time > p(time)"
    assert horizons(query)["TRaw"] == 0
    assert isinstance(query.occurrences[1].bound, Static)


def test_tumbling_windows() -> None:
    """Airflow: of a window's end w it is known that `time <= w < time + 20s`, so a row stays for 20 s at most."""
    raw = tg.stream("AFRaw", "sid bigint, time timestamp, speed double", progress="time")
    query = facts_of(raw.group_by(sid=raw.sid, time=tg.ceil(raw.time, "20s")).agg(speed=tg.avg(raw.speed)))
    assert functions(query) == {"time": "AFRaw.time"}
    occurrence = query.occurrences[0]
    assert occurrence.keep.row({"time": 1}, {"time": 20 * SECOND}) is False
    assert occurrence.keep.row({"time": 2}, {"time": 20 * SECOND}) is True
    assert horizons(query) == {"AFRaw": 20 * SECOND - 1}


def test_frames_are_unbounded_for_the_start_and_the_smoke() -> None:
    """MaxSmoke as printed: only `end - start >= 1min`; valid, but nothing says how long a fire lasts."""
    query = facts_of(max_smoke())
    assert functions(query) == {"end": "min(FireStart.time + 1m, Smoke.time, FireEnd.time)"}
    assert kept(query) == {"FireStart": "always", "Smoke": "always", "FireEnd": "time > p(end)"}
    assert horizons(query) == {"FireStart": "Unbounded", "Smoke": "Unbounded", "FireEnd": 0}
    bound = query.occurrences[0].bound
    assert isinstance(bound, Unbounded)
    assert str(bound) == "unbounded: missing end - FireStart.time <= c"


def test_frames_of_a_day_at_most_are_bounded() -> None:
    query = facts_of(max_smoke(longest=hours(24)))
    assert functions(query) == {
        "start": "min(FireStart.time, Smoke.time - 1d, FireEnd.time - 1d)",
        "end": "min(FireStart.time + 1m, Smoke.time, FireEnd.time)",
    }
    assert horizons(query) == {"FireStart": 24 * HOUR, "Smoke": 24 * HOUR, "FireEnd": 0}
    b = {("FireStart", "time"): 10 * HOUR, ("Smoke", "time"): 40 * HOUR, ("FireEnd", "time"): 40 * HOUR}
    assert query.progress(b, {"start": -INF, "end": -INF}) == {"start": 10 * HOUR, "end": 10 * HOUR + MINUTE}
    assert str(query.occurrences[1].bound) == "rate(Smoke) × (1d + skew(Smoke) + lag)"


def test_frame_fragments_without_their_recursion() -> None:
    """The first fragment: starts not followed by an end within a minute, with the smoke of that minute."""
    fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")
    pairs = tg.product(fs, s).where(fs.time <= s.time, s.time < fs.time + minutes(1))
    without_end = pairs.anti_join(fe, (fs.time <= fe.time) & (fe.time < fs.time + minutes(1)))
    grouped = without_end.group_by(start=fs.time, area=s.area).agg(max_conc=tg.max(s.conc))
    query = facts_of(grouped.with_(end=grouped.start + minutes(1)))
    tick_short = "1m + 1us"
    assert functions(query) == {
        "start": f"min(FireStart.time, Smoke.time - {tick_short}, FireEnd.time - {tick_short})",
        "end": "min(FireStart.time + 1m, Smoke.time + 1us, FireEnd.time + 1us)",
    }
    assert horizons(query) == {"FireStart": MINUTE - 1, "Smoke": MINUTE - 1, "FireEnd": MINUTE - 1}


@pytest.mark.parametrize("offset", [0, 10, 30])
def test_the_same_rule_with_different_time_stamps(offset: int) -> None:
    """A sensor is malfunctioning if no message follows within 30 seconds, stamped whenever the user likes (§2)."""
    message = tg.stream("Message", "sid bigint, time timestamp", progress="time")
    one, other = message.as_("one"), message.as_("other")
    silent = one.anti_join(
        other, (one.sid == other.sid) & (one.time < other.time) & (other.time <= one.time + seconds(30))
    )
    query = facts_of(silent.select(sid=one.sid, time=one.time + seconds(offset)))
    expected = {0: "Message.time - 30s", 10: "Message.time - 20s", 30: "Message.time"}
    assert functions(query) == {"time": expected[offset]}
    first, second = (o.bound for o in query.occurrences)
    assert isinstance(first, Bounded)
    assert isinstance(second, Bounded)
    assert (first.horizon, second.horizon) == (30 * SECOND, 30 * SECOND - 1)


def test_an_alarm_over_two_timelines() -> None:
    """No report *received* within two minutes of the detection: each timeline by its own progress (§2)."""
    fire = tg.stream("Detection", "area string, time timestamp", progress="time").as_("d")
    report = tg.stream("Report", "area string, received timestamp", progress="received").as_("r")
    unconfirmed = fire.anti_join(
        report,
        (fire.area == report.area) & (fire.time <= report.received) & (report.received <= fire.time + minutes(2)),
    )
    query = facts_of(unconfirmed)
    assert functions(query) == {"time": "min(Detection.time, Report.received - 2m)"}
    assert horizons(query) == {"Detection": 2 * MINUTE, "Report": 2 * MINUTE}


def test_collected_is_not_bounded() -> None:
    """What drops the rows is no progressing attribute: nothing bounds how many have a `seen` far ahead of `time`."""
    s = tg.stream("S", "time timestamp not null, seen timestamp not null", progress="time")
    other = tg.stream("T", "time timestamp", progress="time")
    one, two = s.as_("s"), other.as_("t")
    joined = tg.product(one, two).where(one.time <= two.time, one.seen <= two.time, two.time <= one.seen + minutes(1))
    query = facts_of(joined.select(time=two.time))
    bound = query.occurrences[0].bound
    assert isinstance(bound, Collected)
    assert str(bound) == "collected, but not bounded: missing time - S.time <= c"
    assert kept(query)["S"] == "time <= seen + 1m and seen + 1m > p(time)"


def test_expressions_in_sympy_equal_the_functions() -> None:
    sympy = pytest.importorskip("sympy")
    query = facts_of(max_smoke(longest=hours(24)))
    b = {("FireStart", "time"): 5 * HOUR, ("Smoke", "time"): 29 * HOUR + 7, ("FireEnd", "time"): 30 * HOUR}
    for function in query.propagation.values():
        values = {sympy.Symbol(f"{s}.{a}", real=True): value for (s, a), value in b.items()}
        assert function.expression().subs(values) == function.evaluate(b)
    bound = query.occurrences[0].bound
    assert isinstance(bound, Bounded)
    assert str(bound.expression()) == f"rate(FireStart)*(lag + skew(FireStart) + {24 * HOUR})"
    assert bound.span(skew=3, lag=4) == 24 * HOUR + 7
