"""Timelines: each period where it lies, each match with what it is made of, and nothing that is more than text."""

from __future__ import annotations

import datetime as dt
import json
import xml.etree.ElementTree as ET  # what is parsed is made here
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import instant_ticks, ticks_instant
from tidegate.runtime.inspect.timelines.axis import MARKS, Axis
from tidegate.runtime.inspect.timelines.zones import clock_offsets

SVG = "{http://www.w3.org/2000/svg}"
readings = tg.stream("R", "key string, t bigint, x bigint", progress="t")
derived = readings.partition_by("key").derive(
    A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x.is_in(2, 3), n=tg.count())
)
program = tg.program(A=derived.A, B=derived.B, Hits=derived.match(derived.A.overlaps(derived.B), within=99))


def run(key: str = "one") -> tg.Timeline:
    values = [0, 1, 1, 3, 2, 2, 0, 0, 0, 2, 0]
    found = program.run({"R": [(key, t, x) for t, x in enumerate(values)]})
    return tg.timeline({"A": found["A"], "B": found["B"]}, found["Hits"], partition_by="key")


def test_bars_lie_where_the_situations_do() -> None:
    svg = ET.fromstring(run().svg("key = one"))
    inner = svg.find(f"{SVG}svg")
    assert inner is not None
    texts = [text.text for text in svg.findall(f"{SVG}text")]
    assert texts == ["A", "B", "match 1"]
    bars = [float(bar.get(name, "")) for bar in inner.findall(f"{SVG}rect") for name in ("x", "width")]
    # From 1 to 10: A [1, 4); B [3, 6), [9, 10); the match has A and B, which is open when it is detected at 4 and ends
    # at 6.
    tick = 880 / 9
    wanted = [0, 3, 2, 3, 8, 1, 0, 3, 2, 1, 3, 2]
    assert bars == pytest.approx([ticks * tick for ticks in wanted], abs=0.01)
    red = [line for line in inner.findall(f"{SVG}line") if line.get("stroke") == "#cc0000"]
    assert [float(line.get("x1", "")) for line in red] == pytest.approx([3 * tick], abs=0.01)


def test_a_page_stands_alone_and_shows_data_as_text(tmp_path: Path) -> None:
    evil = '</title><script>alert("1")</script>'
    page = tmp_path / "page.html"
    run(evil).save(page)
    text = page.read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert text.count("<script>") == 1
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_partitions_with_matches_come_first_and_not_too_many() -> None:
    rows = [("a", 0, 1), ("a", 1, 0), ("b", 0, 1), ("b", 1, 3), ("b", 2, 2), ("b", 3, 0), ("c", 0, 1), ("c", 2, 0)]
    found = program.run({"R": rows})
    shown = tg.timeline({"A": found["A"], "B": found["B"]}, found["Hits"], partition_by="key", most=2)
    assert list(shown.partitions) == ["key = b", "key = a"]
    assert shown._repr_html_().count("<svg class=") == 0
    assert shown._repr_html_().count('class="timeline"') == 2
    assert repr(shown).startswith("Timelines: 2 of 3 partitions: most=3 draws all")
    assert "2 of 3 partitions: most=3 draws all" in shown.html()
    assert " of 3 partitions" not in tg.timeline({"A": found["A"]}, partition_by="key").html()


def test_a_file_is_what_its_name_says(tmp_path: Path) -> None:
    run().save(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text() == run().svg("key = one") + "\n"
    with pytest.raises(QueryError, match=r"TG402 timelines are not drawn as \.png(?s:.*)\.svg"):
        run().save(tmp_path / "one.PNG")
    with pytest.raises(QueryError, match="TG402 there is no situation to draw"):
        tg.timeline({}).save(tmp_path / "none.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["one.svg"]


def test_an_axis_of_a_year_has_its_months() -> None:
    drawn = in_new_york(dt.timedelta(days=1), 365, dt.datetime(2025, 1, 1, 5, tzinfo=dt.UTC))
    texts = [text for text in ET.fromstring(drawn.svg("")).iter(f"{SVG}text") if text.get("y") == "14"]
    assert [text.text for text in texts] == [f"2025-{month:02}" for month in range(1, 13, 2)] + ["2026-01"]
    assert [text.findtext(f"{SVG}title") for text in texts][:2] == ["2025-01-01", "2025-03-01"]
    long = [{"ts": dt.datetime(1, 1, 1, tzinfo=dt.UTC), "te": dt.datetime(9999, 1, 1, tzinfo=dt.UTC)}]
    svg = ET.fromstring(tg.timeline({"On": pa.Table.from_pylist(long)}).svg(""))
    years = [text.text for text in svg.iter(f"{SVG}text") if text.get("y") == "14"]
    assert years == ["2000", "4000", "6000", "8000"]


def test_the_clocks_of_a_zone_change_where_they_do() -> None:
    zone = ZoneInfo("America/New_York")
    first, last = (instant_ticks(dt.datetime(year, 1, 1, tzinfo=dt.UTC)) for year in (2025, 2026))
    parts = clock_offsets(first, last, zone)
    hour = 3_600_000_000
    assert [offset // hour for _, _, offset in parts] == [-5, -4, -5]
    assert [ticks_instant(begin).isoformat() for begin, _, _ in parts[1:]] == [
        "2025-03-09T07:00:00+00:00",
        "2025-11-02T06:00:00+00:00",
    ]
    assert [end + 1 for _, end, _ in parts[:-1]] == [begin for begin, _, _ in parts[1:]]
    assert clock_offsets(first, last, dt.UTC) == [(first, last, 0)]


def test_frames_are_drawn_as_tables_are() -> None:
    values = [("one", t, x) for t, x in enumerate([0, 1, 1, 3, 2, 2, 0])]
    found = program.run({"R": values})
    frames = {name: pl.DataFrame(found[name]) for name in ("A", "B", "Hits")}
    drawn = tg.timeline({"A": frames["A"], "B": frames["B"]}, frames["Hits"], partition_by="key")
    assert drawn == tg.timeline({"A": found["A"], "B": found["B"]}, found["Hits"], partition_by="key")
    with pytest.raises(QueryError, match="TG402 a list is no table of results"):
        tg.timeline({"A": found.rows("A")})


def test_a_timeline_of_dates_has_their_midnights() -> None:
    days = tg.stream("D", "d date, x bigint", progress="d")
    wet = tg.program(Wet=days.partition_by().derive(Wet=tg.situation(days.x > 0)).Wet)
    found = wet.run({"D": [(dt.date(2026, 3, day), int(3 <= day < 6)) for day in range(1, 9)]})
    (lane,) = tg.timeline({"Wet": found["Wet"]}).partitions[""]
    day = 86_400_000_000
    assert [(bar.end or 0) - bar.start for bar in lane.bars] == [3 * day]
    assert "2026-03-04" in tg.timeline({"Wet": found["Wet"]}).svg("")


def test_what_has_no_periods_is_refused() -> None:
    found = program.run({"R": [("a", 0, 1), ("a", 1, 3), ("a", 2, 2), ("a", 3, 0)]})
    with pytest.raises(QueryError, match=r"TG402 A has no ts, te"):
        tg.timeline({"A": found["Hits"]})
    with pytest.raises(QueryError, match=r"TG402 there is no partition 'one' here(?s:.*)key = one"):
        run().svg("one")
    with pytest.raises(QueryError, match=r"TG402 there is no partition \['key = one'\] here"):
        run().svg(["key = one"])  # type: ignore[arg-type]
    with pytest.raises(
        QueryError, match=r"TG402 situations are tables by name, not a Results(?s:.*)program.timeline\(inputs\)"
    ):
        tg.timeline(found)  # type: ignore[arg-type]
    for most in (0, -1, "all", True):
        with pytest.raises(QueryError, match="is no number of partitions"):
            tg.timeline({}, most=most)  # type: ignore[arg-type]


def test_labels_of_years_before_1000_have_four_digits() -> None:
    days = [{"ts": dt.datetime(601, 1, day, tzinfo=dt.UTC), "te": None} for day in (1, 9)]
    svg = ET.fromstring(tg.timeline({"On": pa.Table.from_pylist(days)}).svg(""))
    labels = [text.text for text in svg.iter(f"{SVG}text") if text.get("y") == "14"]
    assert labels[0] == "0601-01-01"


@pytest.mark.parametrize(
    ("tick", "shown"),
    [
        (1, "00:00:00.000004"),
        (20_000, "00:00:00.10"),
        (1_000_000, "00:00:06"),
        (60_000_000, "03-02 00:06"),
        (3_600_000_000, "03-02 06:00"),
        (86_400_000_000, "2026-03-06"),
    ],
)
def test_labels_of_the_axis_tell_its_instants_apart(tick: int, shown: str) -> None:
    states = tg.stream("S", "t timestamp, x bigint", progress="t")
    on = states.partition_by().derive(On=tg.situation(states.x > 0)).On
    first = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    rows = [(first + dt.timedelta(microseconds=tick * n), int(n % 2 == 0)) for n in range(12)]
    svg = ET.fromstring(tg.timeline({"On": tg.program(On=on).run({"S": rows})["On"]}).svg(""))
    labels = [text.text for text in svg.iter(f"{SVG}text") if text.get("y") == "14"]
    assert shown in labels
    assert (labels[0] or "").startswith("2026-03-02" if tick >= 86_400_000_000 or tick <= 1_000_000 else "03-02")
    assert len(set(labels)) == len(labels) > 1


@settings(max_examples=300)
@given(first=st.integers(0, 1_000_000 * 10**9), span=st.integers(4, 10**16))
@example(first=0, span=9)
@example(first=0, span=9 * 60 * 10**6)
@example(first=50 * 86_400 * 10**6, span=249 * 86_400 * 10**6)
def test_an_axis_has_some_marks_whatever_its_span(first: int, span: int) -> None:
    for zone in (dt.UTC, None):
        marks = list(Axis.of(first, first + span, zone).marks())
        assert 3 <= len(marks) <= MARKS + 1


def test_a_part_of_an_axis_has_the_steps_that_an_axis_of_its_own_has() -> None:
    year = 365 * 86_400 * 10**6
    steps = [int(level[0]) for level in json.loads(Axis.of(0, year, dt.UTC).to_json())["levels"]]
    assert all(later < earlier <= 2.5 * later for earlier, later in pairwise(steps))
    assert steps[-1] * MARKS <= 2.5 * year // 5_000 + 1


def test_a_second_chart_of_a_notebook_gives_the_first_no_second_handlers() -> None:
    script = run()._repr_html_().split("<script>")[1]
    assert script.index("if (svg.listens) { return; }") < script.index("addEventListener")


def test_a_page_has_a_title_a_legend_a_search_and_one_axis() -> None:
    rows = [("a", 0, 1), ("a", 1, 0), ("b", 5, 1), ("b", 6, 3), ("b", 7, 2), ("b", 20, 0)]
    shown = program.timeline({"R": rows}, close_at=30)
    page = shown.html()
    assert "<title>Hits</title>" in page
    assert page.count("<h3>Hits</h3>") == 1
    assert 'type="search"' in page
    assert 'data-partition="key = b"' in page
    assert page.index("</span> A</span>") < page.index("</span> B</span>")
    axes = {
        tuple(
            (text.text, text.get("x"))
            for text in ET.fromstring(shown.svg(name)).iter(f"{SVG}text")
            if text.get("y") == "14"
        )
        for name in shown.partitions
    }
    assert len(axes) == 1


def test_a_match_is_drawn_to_where_its_situations_ended() -> None:
    svg = ET.fromstring(run().svg("key = one"))
    titles = [bar.findtext(f"{SVG}title") or "" for bar in svg.iter(f"{SVG}rect")]
    dashed = [bar for bar in svg.iter(f"{SVG}rect") if bar.get("stroke-dasharray")]
    assert len(dashed) == 1
    assert any(title.startswith("B from 3 to 6 (3)\n") for title in titles)
    (red,) = [line for line in svg.iter(f"{SVG}line") if line.get("stroke") == "#cc0000"]
    assert red.findtext(f"{SVG}title") == "match 1: detected 4, when A ended"


def test_a_period_whose_end_is_not_known_is_dashed_to_the_end_of_the_axis() -> None:
    drawn = tg.timeline({"A": pa.table({"ts": [0, 8], "te": [4, None]}), "B": pa.table({"ts": [5], "te": [10]})})
    svg = ET.fromstring(drawn.svg(""))
    (dashed,) = [bar for bar in svg.iter(f"{SVG}rect") if bar.get("stroke-dasharray")]
    assert (dashed.findtext(f"{SVG}title") or "").startswith("A from 8 to an end that is not known\n")
    assert [float(dashed.get(name, "")) for name in ("x", "width")] == pytest.approx([8 * 88, 2 * 88], abs=0.01)


def test_a_program_draws_its_pattern() -> None:
    values = [("one", t, x) for t, x in enumerate([0, 1, 1, 3, 2, 2, 0, 0, 0, 2, 0])]
    assert program.timeline({"R": values}).partitions == run().partitions
    only = tg.program(Only=derived.match(derived.A.overlaps(derived.B), within=99))
    assert only.timeline({"R": values}, most=1).partitions == run().partitions
    with pytest.raises(QueryError, match="TG402 the program has 0 patterns"):
        tg.program(All=readings.select("t")).timeline({"R": values})
    with pytest.raises(QueryError, match="TG402 the program has no pattern called 'A'"):
        program.timeline({"R": values}, result="A")


def in_new_york(tick: dt.timedelta, number: int, first: dt.datetime) -> tg.Timeline:
    rows = [{"ts": first + tick * n, "te": first + tick * (n + 1)} for n in range(number)]
    return tg.timeline({"On": pa.Table.from_pylist(rows)}, tz="America/New_York")


@pytest.mark.parametrize(
    ("tick", "number", "first", "labels"),
    [
        (dt.timedelta(minutes=10), 12, "2026-03-02T14:00", ["03-02 09:00", "03-02 09:15", "03-02 09:30"]),
        (dt.timedelta(hours=12), 8, "2026-03-06T05:00", ["03-06 00:00", "03-06 12:00", "03-07 00:00"]),
        (dt.timedelta(days=1), 6, "2026-03-06T05:00", ["2026-03-06", "2026-03-07", "2026-03-08", "2026-03-09"]),
    ],
)
def test_an_axis_is_round_in_the_clock_of_its_zone(
    tick: dt.timedelta, number: int, first: str, labels: list[str]
) -> None:
    drawn = in_new_york(tick, number, dt.datetime.fromisoformat(first).replace(tzinfo=dt.UTC))
    texts = [text for text in ET.fromstring(drawn.svg("")).iter(f"{SVG}text") if text.get("y") == "14"]
    assert [text.text for text in texts][: len(labels)] == labels
    assert all((text.findtext(f"{SVG}title") or "").endswith((":00", ":30")) for text in texts)


def test_days_on_which_clocks_change_begin_at_midnight() -> None:
    drawn = in_new_york(dt.timedelta(days=1), 6, dt.datetime(2026, 3, 6, 5, tzinfo=dt.UTC))
    at = {text.text: float(text.get("x", "")) for text in ET.fromstring(drawn.svg("")).iter(f"{SVG}text")}
    hour = 880 / (6 * 24)
    assert at["2026-03-08"] - at["2026-03-07"] == pytest.approx(24 * hour, abs=0.02)
    assert at["2026-03-09"] - at["2026-03-08"] == pytest.approx(23 * hour, abs=0.02)


def test_the_hour_that_clocks_show_twice_has_its_marks_twice() -> None:
    drawn = in_new_york(dt.timedelta(minutes=20), 6, dt.datetime(2026, 11, 1, 5, tzinfo=dt.UTC))
    texts = [text.text for text in ET.fromstring(drawn.svg("")).iter(f"{SVG}text") if text.get("y") == "14"]
    assert texts.count("11-01 01:00") == 2


def test_bars_matches_and_the_title_say_the_zone() -> None:
    states = tg.stream("S", "t timestamp, x bigint", progress="t")
    found = states.partition_by().derive(A=tg.situation(states.x > 0), B=tg.situation(states.x < 1))
    hits = tg.program(Hits=tg.match(found.A.meets(found.B), within="1h"))
    rows = [(f"2026-07-01T14:{minute:02}Z", minute % 2) for minute in range(4)]
    for drawn in (hits.timeline({"S": rows}, tz="Asia/Kolkata"), hits.timeline({"S": rows})):
        zone, offset = (drawn.tz, "19:31:00+05:30") if drawn.tz != "UTC" else ("UTC", "14:01:00+00:00")
        for shown in (drawn.html(), drawn._repr_html_()):
            assert f"times in {zone}</small></h3>" in shown
            assert f"A from 2026-07-01 {offset} to " in shown
            assert f"ts: 2026-07-01 {offset}" in shown
            assert "match 1: detected 2026-07-01 " in shown


@pytest.mark.parametrize(
    ("tz", "said"),
    [
        ("New York", "tz='New York' is no time zone(?s:.*)did you mean 'America/New_York'"),
        ("Europe/Berlim", "did you mean 'Europe/Berlin'"),
        ("America", "is no time zone"),
        ("../UTC", "is no time zone"),
        ("", "America/New_York"),
        (None, "tz=None is no time zone"),
        ("America/New_York", "tz='America/New_York': times here are numbers"),
    ],
)
def test_a_zone_that_is_none_is_refused_where_it_is_written(tz: str, said: str) -> None:
    with pytest.raises(QueryError, match=said) as refused:
        program.timeline({"R": [("a", 0, 1), ("a", 1, 0)]}, tz=tz)
    assert "test_timeline.py" in str(refused.value)


def test_dates_are_in_no_zone() -> None:
    days = pa.Table.from_pylist([{"ts": dt.date(2026, 3, 1), "te": dt.date(2026, 3, 4)}])
    with pytest.raises(QueryError, match="times here are dates, the same in every zone"):
        tg.timeline({"On": days}, tz="America/New_York")


def test_an_end_of_time_is_drawn_in_every_zone() -> None:
    ever = [{"ts": dt.datetime(9999, 12, 31, tzinfo=dt.UTC), "te": dt.datetime.max.replace(tzinfo=dt.UTC)}]
    drawn = tg.timeline({"On": pa.Table.from_pylist(ever)}, tz="Asia/Tokyo")
    assert "9999-12-31 23:59:59" in drawn.svg("")


def test_ten_thousand_matches_are_counted_and_a_hundred_drawn() -> None:
    matches = pa.table(
        {"A.ts": list(range(10_000)), "A.te": list(range(1, 10_001)), "detected": list(range(1, 10_001))}
    )
    situations = {"A": pa.table({"ts": [0], "te": [10_000]})}
    drawn = tg.timeline(situations, matches)
    assert len(drawn.html()) < 150_000
    assert "9,900 more matches: most_matches=10000 draws all" in drawn.svg("")
    assert repr(drawn).endswith(": 1 situation, 10,000 matches")
    whole = tg.timeline(situations, matches, most_matches=10_000)
    assert whole.svg("").count("detected") == 10_000
    assert "more matches" not in whole.html()
    with pytest.raises(QueryError, match="TG402 most_matches=0 is no number of matches"):
        tg.timeline(situations, matches, most_matches=0)
