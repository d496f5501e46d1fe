"""Names of attributes: prefixes that `as_` gave go where nothing clashes, those of a match's situations stay."""

from __future__ import annotations

import datetime as dt
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.dsl import aggregates, functions
from tidegate.algebra.dsl.checks.suggestions import METHODS_CALLED_OTHERWISE
from tidegate.algebra.typed.operations import OPERATIONS

library: Any = tg
users = tg.stream("U", "usr string, t bigint", progress="t")
a, b = users.as_("a"), users.as_("b")
events = tg.stream("E", "k bigint, x bigint, t bigint", progress="t")
derived = events.partition_by("k").derive(
    Hi=tg.situation(events.x > 5, n=tg.count()), Lo=tg.situation(events.x < 2), Mid=tg.situation(events.x == 3)
)
two = derived.match(derived.Hi.before(derived.Lo), within=9)
three = derived.match(derived.Hi.before(derived.Lo), derived.Lo.before(derived.Mid), within=9)


def untyped(value: Any) -> Any:
    """What type checkers would refuse."""
    return value


def columns(relation: tg.Relation) -> list[str]:
    return list(tg.program(Out=relation).definition.queries[0].node.schema.names)


def test_a_selected_attribute_loses_its_prefix() -> None:
    assert a.select(a.usr).union(b.select(b.usr)).schema.names == ("usr",)
    both = a.join(b, a.usr == b.usr, a.t <= b.t, b.t <= a.t + 5)
    assert both.select(a.usr, a.t, b.t).schema.names == ("usr", "a.t", "b.t")
    assert both.select(a.t, t=b.t).schema.names == ("a.t", "t")
    assert both.group_by(a.usr).agg(n=tg.count()).schema.names == ("usr", "n")


def test_handles_of_before_mean_the_same_attribute_after_a_select() -> None:
    chosen = a.select(a.usr, a.t)
    assert chosen.where(a.usr == "x", a.t > 3).schema.names == ("usr", "t")
    joined = chosen.join(b, a.usr == b.usr, a.t <= b.t, b.t <= a.t + 5)
    assert joined.select(a.usr, later=b.t).schema.names == ("usr", "later")
    assert chosen.group_by(a.usr).agg(last=tg.max(a.t)).schema.names == ("usr", "last")
    with pytest.raises(tg.QueryError, match="TG101"):
        a.select(who=a.usr).where(a.usr == "x")


def test_columns_of_a_match_do_not_change_with_another_situation() -> None:
    assert columns(two) == ["k", "Hi.ts", "Hi.te", "Hi.n", "Lo.ts", "Lo.te", "detected"]
    assert columns(three) == [*columns(two)[:-1], "Mid.ts", "Mid.te", "detected"]
    assert columns(two.select("k", derived.Hi.n)) == ["k", "Hi.n"]
    assert columns(derived.Hi) == ["k", "ts", "te", "n"]
    assert columns(two.as_("m")) == columns(two)


def test_attributes_of_a_situation_are_found_below_its_name() -> None:
    m = untyped(two.as_("m"))
    for relation in (untyped(two), m):
        assert columns(relation.select(start=relation.Hi.ts, n=relation.Hi["n"])) == ["start", "n"]
    assert "Hi" in dir(m)
    assert "ts" in dir(m.Hi)
    assert repr(m.Hi) == "attributes of Hi: ts, te, n"
    with pytest.raises(tg.QueryError, match="TG101"):
        m.Hi.nothing
    with pytest.raises(tg.QueryError, match="TG101 unknown attribute"):
        m.Ho


@pytest.mark.parametrize("write", [lambda: a.urs, lambda: a["urs"], lambda: a["a.urs"], lambda: a.group_by("urs")])
def test_a_misspelt_attribute_of_a_relation_with_a_name_is_known(write: Callable[[], object]) -> None:
    with pytest.raises(tg.QueryError, match=r"did you mean a\.usr\?"):
        write()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: library.shift, "the row before is named by r.over"),
        (lambda: library.sin, "it is a method of values: r.x.sin"),
        (lambda: library.instr, "r.x.position"),
        (lambda: library.blorp, ""),
        (lambda: library.cout, "did you mean tg.count"),
        (lambda: library.explain, r"tg.program\(Out=r\)"),
        (lambda: library.overlaps, r"A.overlaps\(B\)"),
        (lambda: library.anti_join, r"r.anti_join\("),
        (lambda: library.avarage, "did you mean tg.avg"),
        (lambda: library.rond, r"if round is meant: it is a method of values: r.x.round\("),
        (lambda: library.csv_sink, r"tg.callback\(f\)"),
        (lambda: library.write_csv, "tg.parquet_sink"),
        (lambda: library.every, "tg.bool_and"),
        (lambda: library.to_char, r"cast\(\"string\"\)"),
        (lambda: library.to_json, "tg.concat"),
        (lambda: untyped(tg.count()).having(events.x > 1), r"where\(lambda g: g.n > 5\)"),
        (lambda: untyped(events.group_by("k")).having(events.x > 1), r"where\(lambda g: g.n > 5\)"),
        (lambda: untyped(events.x).to_string(), r"r.x.cast\(\"string\"\)"),
        (lambda: untyped(events.x).format_number(2), r"r.x.round\(2\).cast\(\"string\"\)"),
        (lambda: untyped(events.x).to_json(), "tg.concat"),
        (lambda: untyped(events.x).agv(), "there are"),
        (lambda: untyped(events.x).astyp("bigint"), "if astype is meant"),
        (lambda: untyped(events.partition_by("k")).lag(1), r"the row before is named by r.over\("),
        (lambda: untyped(events.partition_by("k")).rank(), r"r.ranked\(by="),
        (lambda: untyped(events.partition_by("k")).cumsum(), r"r.over\(by=.*total=tg.sum"),
        (lambda: untyped(events.partition_by("k")).where(events.x > 1), r"r.where\(r.x > 5\).partition_by"),
        (lambda: library.stdev, "did you mean tg.stddev"),
        (lambda: untyped(events.x).blorp(), "there are"),
        (lambda: untyped(tg.count()).filter(events.x > 1), r"tg.sum\(r.x, filter=r.ok\)"),
        (lambda: untyped(tg.count()).alias("n"), "gets its name in agg"),
        (lambda: untyped(tg.program(A=events)).sesion(), "did you mean session"),
        (lambda: untyped(events.partition_by("k")).drive(), "did you mean derive"),
        (lambda: untyped(tg.program(A=events)).graph, r"program.explain\(\) shows it"),
        (lambda: untyped(tg.timeline({})).show(), r"save\(path\)"),
    ],
)
def test_names_that_are_not_there_get_the_right_hint_or_none(asked: Any, said: str) -> None:
    with pytest.raises(AttributeError, match="TG131") as caught:
        asked()
    hint = str(caught.value).partition("hint")[2]
    assert bool(hint) == bool(said)
    assert re.search(said, hint)


def test_functions_that_are_asked_of_a_value_are_found() -> None:
    of_values = {
        name
        for module in (aggregates, functions)
        for name, one in vars(module).items()
        if name in tg.__all__ and not name.startswith(("min", "max", "count")) and inspect.isfunction(one)
        if next(iter(inspect.signature(one).parameters.values())).annotation in ("Operand", "Expression")
    }
    assert {"sum", "days_between", "tumbling", "when"} <= of_values
    for name in of_values - set(dir(tg.Expression)):
        with pytest.raises(AttributeError, match=rf"it is a function: tg\.{name}\("):
            getattr(events.x, name)


NOON = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
timed = untyped(tg.stream("T", "time timestamp, x bigint, y double, s string", progress="time"))


@pytest.mark.parametrize(
    ("name", "said", "written", "given", "meant"),
    [
        ("log1p", "(r.x + 1).ln()", lambda r: (r.y + 1).ln(), 0.0, 0.0),
        ("expm1", "r.x.exp() - 1", lambda r: r.y.exp() - 1, 0.0, 0.0),
        ("cbrt", "r.x.power(1 / 3)", lambda r: r.y.power(1 / 3), 1.0, 1.0),
        (
            "last_day",
            'r.time.to_date().truncate("month").add_months(1) - "1 day"',
            lambda r: r.time.to_date().truncate("month").add_months(1) - "1 day",
            None,
            dt.date(2026, 3, 31),
        ),
        (
            "unix_timestamp",
            'r.time.cast("bigint") // 1_000_000',
            lambda r: r.time.cast("bigint") // 1_000_000,
            None,
            int(NOON.timestamp()),
        ),
        (
            "from_unixtime",
            '(r.x * 1_000_000).cast("timestamp")',
            lambda r: (r.x * 1_000_000).cast("timestamp"),
            int(NOON.timestamp()),
            NOON,
        ),
        ("right", "r.x.substring(r.x.length() - 2, 3)", lambda r: r.s.substring(r.s.length() - 2, 3), "abcde", "cde"),
        ("right", "r.x.substring(r.x.length() - 2, 3)", lambda r: r.s.substring(r.s.length() - 2, 3), "ab", "ab"),
    ],
)
def test_what_is_written_instead_of_a_name_means_the_same(
    name: str, said: str, written: Callable[[Any], tg.Expression], given: object, meant: object
) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)):
        getattr(timed.x, name)
    row = {attribute: given if attribute in written(timed)._reads else None for attribute in timed.schema} | {
        "time": NOON
    }
    results = tg.program(Out=timed.select(timed.time, got=written(timed))).run({"T": [row]})
    assert [row["got"] for row in results["Out"]] == [meant]


def test_other_names_of_methods_lead_to_methods_that_there_are() -> None:
    methods = set(dir(tg.Expression))
    for name, hint in METHODS_CALLED_OTHERWISE.items():
        assert set(re.findall(r"[.](\w+)\(", hint)) <= methods
        assert name not in methods
        with pytest.raises(AttributeError, match=re.escape(hint)):
            getattr(events.x, name)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: untyped(events).explain, r"tg.program\(Out=r\).explain"),
        (lambda: untyped(events).run, r"tg.program\(Out=r\).run"),
        (lambda: untyped(events).plot, "timeline"),
        (lambda: untyped(events.group_by("k").agg(n=tg.count())).having, r"where\(lambda g: g.n > 5\)"),
        (lambda: untyped(events).filtr, r"if filter is meant: rows are chosen with where.*attributes here: k, x, t"),
        (lambda: untyped(events).groupBi, r"did you mean group_by"),
        (lambda: untyped(events).derive, "partition_by"),
        (lambda: untyped(derived.Hi).overlap, r"did you mean overlaps\(...\)"),
    ],
)
def test_what_relations_do_not_do_themselves_is_told_where_it_is_done(asked: Any, said: str) -> None:
    with pytest.raises(tg.QueryError, match="TG101 unknown attribute or method") as caught:
        asked()
    assert re.search(said, caught.value.hint)


def test_completion_offers_what_the_library_promises_and_the_names_of_columns() -> None:
    assert {"stream", "csv", "RunWarning"} < set(dir(tg))
    source = tg.parquet("in", delay="5m")
    shown = {name for one in (source, source.data) for name in dir(one) if not name.startswith("_")}
    assert {"delay", "is_complete", "directory", "pattern"} < shown
    assert not {"options", "site", "found", "written", "takes"} & shown
    assert not {"os", "runtime", "trimmed", "TYPE_CHECKING"} & set(dir(tg))
    assert untyped(two)._ipython_key_completions_() == ["k", "Hi.ts", "Hi.te", "Hi.n", "Lo.ts", "Lo.te", "detected"]
    assert untyped(derived)._ipython_key_completions_() == ["Hi", "Lo", "Mid"]
    results = untyped(tg.program(All=events).run({"E": []}))
    assert results._ipython_key_completions_() == ["All"]
    assert results["All"]._ipython_key_completions_() == ["k", "x", "t"]


def test_derived_situations_show_what_they_are() -> None:
    lines = [
        "situations by k in order of t",
        "  Hi   while x > 5: n = count()",
        "  Lo   while x < 2",
        "  Mid  while x = 3",
    ]
    assert repr(derived).splitlines() == lines
    assert "Hi   while x &gt; 5: n = count()" in untyped(derived)._repr_html_()


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("30 minutes", 1_800_000_000),
        ("1 hour 30 min", 5_400_000_000),
        ("1 hour and 30 minutes", 5_400_000_000),
        ("2 days, 3 hours", 183_600_000_000),
        ("10 msec", 10_000),
        ("10 usecs", 10),
        ("2 Days", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("5 secs", 5_000_000),
        ("250 milliseconds", 250_000),
        ("3\u00b5s", 3),
        ("7 microseconds", 7),
        ("PT1H30M", 5_400_000_000),
        ("PT1.5H", 5_400_000_000),
        ("PT1,5H", 5_400_000_000),
        ("-P0,5DT0,5M", -43_230_000_000),
        ("-P0.5DT0.5M", -43_230_000_000),
    ],
)
def test_durations_as_people_write_them(text: str, ticks: int) -> None:
    from tidegate.algebra.time import duration_ticks

    assert duration_ticks(text) == ticks


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("23h 59m 59s 999ms 999us", "1d - 1us"),
        ("1h 29m 59s 999ms 999us", "1h 30m - 1us"),
        ("-1m + 1us", "-1m + 1us"),
        ("59s 999ms", "59s 999ms"),
        ("1d 23h 59m 59s", "2d - 1s"),
        ("1d 1us", "1d 1us"),
        ("1h 30m", "1h 30m"),
        ("0s", "0s"),
        ("1us", "1us"),
        ("999us", "999us"),
    ],
)
def test_durations_are_printed_as_people_read_them_and_read_as_they_are_printed(written: str, printed: str) -> None:
    from tidegate.algebra.time import duration_ticks, format_duration

    ticks = duration_ticks(written)
    assert format_duration(ticks) == printed
    assert duration_ticks(printed) == ticks


def test_a_duration_a_tick_short_keeps_its_place_in_a_sum() -> None:
    events = tg.stream("E", "t timestamp, u timestamp", progress="t")
    short = tg.duration("1d - 1us")
    assert repr(events.t + short) == "t + 1d - 1us"
    assert repr(events.t - short) == "t - (1d - 1us)"
    assert repr(events.t - events.u > short * 3) == "t - u > 3d - 3us"
    assert repr(events.t - events.u > tg.duration("3d - 3us")) == "t - u > 3d - 3us"


COLUMNS = ("customer", "time", "amount", "event_type", "usr", "sessionId")
OPTIONS = ("delete", "delay", "idle", "archive", "on_error", "tie")
METHODS = tuple(name for name in dir(tg.Expression) if not name.startswith("_"))


@pytest.mark.parametrize(
    ("asked", "known", "meant"),
    [
        ("Time", COLUMNS, ["time"]),
        ("session_id", COLUMNS, ["sessionId"]),
        ("tiem", COLUMNS, ["time"]),
        ("tme", COLUMNS, ["time"]),
        ("amuont", COLUMNS, ["amount"]),
        ("user", COLUMNS, ["usr"]),
        ("cust", COLUMNS, ["customer"]),
        ("customer_id", COLUMNS, ["customer"]),
        ("timestamp", COLUMNS, ["time"]),
        ("type", COLUMNS, ["event_type"]),
        ("typeEvent", COLUMNS, ["event_type"]),
        ("row_number", COLUMNS, []),
        ("cumsum", COLUMNS, []),
        ("mount", COLUMNS, []),
        ("us", COLUMNS, []),
        ("", COLUMNS, []),
        ("idle_after", OPTIONS, ["idle"]),
        ("dely", OPTIONS, ["delay"]),
        ("late", OPTIONS, []),
        ("lenght", METHODS, ["length"]),
        ("len", METHODS, ["length"]),
        ("split", METHODS, ["split_part"]),
        ("limit", METHODS, []),
        ("sine", OPERATIONS, ["sin", "sinh"]),
        ("lag", OPERATIONS, []),
        ("col", OPERATIONS, []),
        ("ab", ["abc", "x" * 100_000], []),
        ("x" * 100_000, ["x" * 100_000], []),
    ],
)
def test_a_name_that_is_not_known_means_a_misspelt_one_or_one_with_its_words_or_none(
    asked: str, known: tuple[str, ...], meant: list[str]
) -> None:
    assert nearest(asked, known) == meant


def test_no_module_looks_for_near_names_by_a_rule_of_its_own() -> None:
    rooms = [Path(tg.__file__).parent / room for room in ("algebra", "analysis", "contexts", "runtime")]
    sources = [path for room in rooms for path in room.rglob("*.py")]
    assert len(sources) > 300
    assert [path for path in sources if "get_close_matches" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("precedes", "A.before(B)"),
        ("followed_by", "A.before(B)"),
        ("follows", "A.after(B)"),
        ("touches", "A.meets(B)"),
        ("coincides", "A.equals(B)"),
        ("covers", "A.contains(B)"),
        ("inside", "A.during(B)"),
        ("begins", "A.starts(B)"),
        ("ends", "A.finishes(B)"),
        ("overlapping", "A.intersects(B)"),
        ("disjoint", "A.before(B) | A.after(B)"),
        ("within", 'tg.match(A.overlaps(B), within="5m")'),
    ],
)
def test_relations_of_periods_are_found_by_other_names(name: str, said: str) -> None:
    with pytest.raises(tg.QueryError, match="TG101") as raised:
        getattr(derived.Hi, name)
    assert f"of periods write {said.partition(',')[0]}" in raised.value.hint or said in raised.value.hint
    with pytest.raises(tg.QueryError) as elsewhere:
        getattr(events, name)
    assert "of periods write" not in elsewhere.value.hint


@pytest.mark.parametrize("owner", [events, events.x, tg])
@pytest.mark.parametrize("name", ["ewm_mean", "ffill", "scan", "expanding"])
def test_what_keeps_something_between_rows_is_an_operator_of_ones_own(owner: object, name: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        getattr(owner, name)
    assert 'r.partition_by("k").process(Own(...))' in raised.value.hint


@pytest.mark.parametrize(
    ("owner", "name"), [(events, "process"), (tg, "process"), (events, "transformWithState"), (events.x, "apply")]
)
def test_operators_of_ones_own_are_found_by_other_names(owner: object, name: str) -> None:
    with pytest.raises(tg.QueryError, match=r"tg\.Operator"):
        getattr(owner, name)
