"""What runs show of themselves: results as tables, rows by their fate, reports, sessions; nothing of it is markup of a
user.
"""

from __future__ import annotations

import copy
import datetime as dt
import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.runtime.inspect import live_display
from tidegate.runtime.inspect.live_display import LiveDisplay
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.store.local import LocalStore

events = tg.stream("E", "name string, n bigint, t timestamp", progress="t")
program = tg.program(
    Large=events.where(events.n > 1), Counts=events.group_by(day=tg.floor(events.t, "1d")).agg(n=tg.count())
)
ROWS: list[Any] = [("one", 1, "2026-01-01T00:00Z"), ("<b>two", 2, "2026-01-02T12:30Z"), ("three", None, None)]


def large() -> tg.ResultTable:
    return program.run({"E": ROWS})["Large"]


def test_a_result_is_shown_as_a_table_with_times_as_times() -> None:
    assert repr(large()).splitlines() == [
        "Large: 1 row",
        "┌────────┬───┬─────────────────────────┐",
        "│ name   ┆ n ┆ t                       │",
        "╞════════╪═══╪═════════════════════════╡",
        "│ <b>two ┆ 2 ┆ 2026-01-02 12:30:00 UTC │",
        "└────────┴───┴─────────────────────────┘",
    ]
    empty = tg.program(None_=events.where(events.n > 5)).run({"E": ROWS[:2]})["None_"]
    assert repr(empty) == "None_: no rows, of name, n, t"
    assert "None_: no rows" in empty._repr_html_()


def test_html_of_a_result_is_text_of_its_values() -> None:
    html = large()._repr_html_()
    assert "&lt;b&gt;two" in html
    assert "<b>two" not in html
    assert "2026-01-02 12:30:00 UTC" in html


def test_strings_stand_in_a_notebook_as_they_are() -> None:
    names = tg.stream("N", "name string, t timestamp", progress="t")
    given = ["Bob", '<b>"x"</b>', "", None, "y" * 100]
    html = tg.program(All=names).run({"N": [(name, "2026-01-01") for name in given]})["All"]._repr_html_()
    cells = re.findall(r'<tr><td style="text-align: left">(.*?)</td>', html)
    assert cells == ["Bob", "&lt;b&gt;&quot;x&quot;&lt;/b&gt;", "", "null", "y" * 60 + "…"]


def test_text_stands_left_in_a_notebook_and_numbers_right() -> None:
    left, plain = ' style="text-align: left"', ""
    styles = re.findall(r"<t[dh]( [^>]*)?>", large()._repr_html_())
    assert styles == [left, plain, plain] * 2


def test_the_rows_of_a_session_are_a_list_that_shows_itself_as_the_table_does() -> None:
    with program.session(sources={"E": ROWS}) as session:
        assert repr(session.results("Large")) == "Large: no rows, of name, n, t"
        session.process()
        rows, table = session.results("Large"), session.table("Large")
    assert isinstance(rows, list)
    assert rows == table.rows()
    assert (str(rows), rows._repr_html_()) == (repr(table), table._repr_html_())  # type: ignore[attr-defined]
    assert type(rows[:1]) is list
    for same in (copy.copy(rows), copy.deepcopy(rows)):
        assert (same, repr(same)) == (rows, repr(rows))
    rows[0]["n"] = 3
    assert "│ <b>two ┆ 3 ┆" in repr(rows)
    rows.append({"other": 1})
    assert repr(rows) == repr(list(rows))
    assert rows._repr_html_() is None  # type: ignore[attr-defined]


def test_of_many_rows_both_ends_are_shown() -> None:
    given = [("x", n, f"2026-01-01T{n // 60:02}:{n % 60:02}Z") for n in range(2, 1000)]
    with program.session(sources={"E": given}) as session:
        session.process()
        rows, table = session.results("Large"), session.table("Large")
    assert repr(rows) == repr(table)
    assert repr(rows).startswith("Large: 998 rows\n")
    del rows[:2]
    assert repr(rows).splitlines()[4].startswith("│ x    ┆ 4 ")


def test_a_source_is_shown_as_it_is_written(tmp_path: Path) -> None:
    for source, text in [
        (tg.source(None), "tg.source(None)"),
        (tg.source(ROWS, delay={"t": "5m"}, key="n"), "tg.source(<list of 3 rows>, delay={'t': '5m'}, key=('n',))"),
        (tg.source(pl.DataFrame({"n": [1]})), "tg.source(<polars.DataFrame of 1 row>)"),
        (tg.source(pl.LazyFrame({"n": [1]})), "tg.source(<polars.LazyFrame>)"),
        (tg.source({"n": [1, 2]}), "tg.source(<dict>)"),
        (tg.source(pa.table({"n": [1, 2]})), "tg.source(<pyarrow.Table of 2 rows>)"),
        (tg.parquet("/in", delay="10m", skew_guard=None), "tg.parquet('/in', delay='10m', skew_guard=None)"),
        (tg.json("/in", age_guard="30d", idle="5m"), "tg.json('/in', age_guard='30d', idle='5m')"),
        (tg.csv("/in/*.csv", per_batch=3, bounded=True), "tg.csv('/in/*.csv', per_batch=3, bounded=True)"),
        (tg.json("/in/**/*.json", archive="/read"), "tg.json('/in', archive='/read', pattern='*.json')"),
    ]:
        assert repr(source) == text


def test_a_schema_is_shown_by_its_attributes() -> None:
    assert repr(events.schema) == "Schema(name string, n bigint, t timestamp not null; instants: t)"
    assert repr(tg.table("K", "k string").schema) == "Schema(k string)"


def test_a_result_is_what_one_needs_it_to_be() -> None:
    table, at = large(), dt.datetime(2026, 1, 2, 12, 30, tzinfo=dt.UTC)
    assert table.rows() == list(table) == [{"name": "<b>two", "n": 2, "t": at}]
    assert (len(table), table.columns, table["n"]) == (1, ["name", "n", "t"], [2])
    assert isinstance(table.arrow(), pa.Table)
    assert pl.DataFrame(table).equals(table.polars())
    assert table.pandas()["n"].tolist() == [2]
    with pytest.raises(tg.QueryError, match="TG402 Large has no attribute 'x'"):
        table["x"]
    with pytest.raises(AttributeError, match=r"(?s)TG131 a ResultTable has no 'panda'.*did you mean pandas"):
        table.panda  # type: ignore[attr-defined]


def test_many_rows_are_shown_in_part() -> None:
    found = tg.program(All=events.select("n", "t")).run({"E": [("x", n, "2026-01-01") for n in range(1000)]})["All"]
    lines = repr(found).splitlines()
    assert lines[0] == "All: 1,000 rows"
    assert len(lines) < 30
    assert any("…" in line for line in lines)


def test_results_end_with_what_became_of_the_rows() -> None:
    results = program.run({"E": ROWS})
    assert repr(results).endswith("rows by their fate\n  in  E  3 rows, 2 accepted, 1 rejected: 1 null")
    assert repr(results).startswith("Large: 1 row\n")
    assert "3 rows, 2 accepted, 1 rejected: 1 null" in results._repr_html_()
    assert results.counts["E"].rejected == {"null": 1}


def test_results_say_what_a_query_set_aside() -> None:
    cars = tg.stream("Cars", "car string, t bigint, speed double", progress="t")
    fast = cars.partition_by("car").derive(Fast=tg.situation(cars.speed > 80)).Fast
    results = tg.program(Fast=fast, All=cars).run({"Cars": [("a", 1, 90.0), ("a", 1, 3.0), ("a", None, 3.0)]})
    assert repr(results).endswith(
        "rows by their fate\n"
        "  in   Cars  3 rows, 2 accepted, 1 rejected: 1 null\n"
        "  out  Fast  2 set aside: tie; the quarantine says why"
    )
    assert "2 set aside: tie" in results._repr_html_()
    counted = fast.group_by(w=tg.tumbling(fast.te, 5)).agg(n=tg.count())
    results = tg.program(Counted=counted).run({"Cars": [("a", 1, 90.0), ("a", 1, 3.0)]})
    assert "~" not in repr(results)
    assert repr(results).endswith("  out  Counted  2 set aside: tie; the quarantine says why")
    assert re.search(r"\n  +Counted +2 set aside: tie; the quarantine says why\n", repr(results.reports[0]))


@pytest.mark.filterwarnings("ignore:TG435")
def test_a_session_says_what_its_queries_have_set_aside_since_the_beginning(tmp_path: Path) -> None:
    cars = tg.stream("Cars", "car string, t bigint, speed double", progress="t")
    fast = cars.partition_by("car").derive(Fast=tg.situation(cars.speed > 80)).Fast
    program = tg.program(Counted=fast.group_by(w=tg.tumbling(fast.te, 5)).agg(n=tg.count()))
    for number in (1, 2):
        with program.session(checkpoint=tmp_path / "state") as session:
            session.push("Cars", [("a", number, 90.0), ("a", number, 3.0)])
            session.advance("Cars", number)
            session.step()
            said = rf"\n  +Counted +{2 * number} set aside: tie; the quarantine says why\n"
            assert re.search(said, str(session.status()))
    listing = list_state(LocalStore(tmp_path / "state"))
    assert listing.to_dict()["quarantine"]["set_aside"] == {"Counted~1": {"tie": 4}}  # type: ignore[index]  # plain values
    assert "  set aside   Counted (its situations): 4 tie, since the beginning" in str(listing)
    assert "buffer Counted (its situations)#0: " in str(listing)
    assert re.search(r"\n +Counted \(its situations\).te +2\n", str(listing))
    assert "~" not in str(listing)


def test_a_batch_is_shown_by_what_one_asks_first() -> None:
    with program.session() as session:
        session.push("E", ROWS)
        session.advance("E", {"t": "2026-01-01T12:00Z"})
        report = session.step()
        title, *lines = str(report).splitlines()
        assert title.startswith("batch 1, ")
        assert title.endswith(" ms")
        assert lines == [
            "  in    E       3 rows, 2 accepted, 1 rejected: 1 null",
            "  out   Large   0 rows, final up to t 2026-01-01T12:00:00Z",
            "        Counts  0 rows, final up to day 2025-12-31T12:00:00.000001Z",
            "  kept  E       1 row, 2 partial aggregates",
        ]
        assert "final up to t 2026-01-01T12:00:00Z" in report._repr_html_()
        assert [line.split(",")[0] for line in repr(session.process()).splitlines() if "ms" in line] == ["batch 2"]
        session.finish()
        session.step()
        assert "Large   complete" in repr(session)
    assert repr(session).splitlines()[0].endswith("after batch 3, closed")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_run_shows_on_a_terminal_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr(live_display, "DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with program.session() as session:
        session.push("E", ROWS[:2])
        report = session.step()
    with LiveDisplay(None, "the first batch") as display:
        until = time.monotonic() + 20
        while "the first batch" not in shown.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        display.after(report)
    assert "batch 1: 2 rows in, 0 results out" in shown.getvalue()


@pytest.mark.parametrize("wanted", [False, None])
def test_nothing_is_shown_where_nobody_looks(
    wanted: bool | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live_display, "DELAY", 0.0)
    program.run({"E": ROWS[:2]}, progress=wanted)
    assert capsys.readouterr() == ("", "")


def test_explaining_loads_nothing_that_computes() -> None:
    script = (
        "import sys, tidegate as tg\n"
        'o, p = (tg.stream(n, "id bigint, t timestamp", progress="t").as_(n) for n in "op")\n'
        "unpaid = o.anti_join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + tg.minutes(30))\n"
        "assert 'final when' in str(tg.program(Unpaid=unpaid).explain())\n"
        "print([name for name in ('sympy', 'numba', 'polars', 'pandas', 'rich') if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], env=os.environ, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_what_is_kept_of_a_stream_is_said_by_its_kind() -> None:
    events = tg.stream("E", "k bigint, v bigint, t bigint", progress="t")
    a, b = events.as_("a"), events.as_("b")
    pairs = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 2000)
    high = events.partition_by("k").derive(High=tg.situation(events.v > 5)).High
    every = tg.program(Pairs=pairs, Counts=events.group_by(w=tg.tumbling(events.t, 5000)).agg(n=tg.count()), High=high)
    with every.session(sources={"E": tg.source(None, delay=5)}) as session:
        session.push("E", [(k, 7, k) for k in range(1500)])
        kept = {line.name: line.text for line in session.step().status().lines if line.about == "kept"}
    assert kept == {"E": "1,500 rows, 1 partial aggregate, 6 event runs", "High": "1,494 situations"}


def test_stages_of_a_query_are_no_results() -> None:
    r = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
    now, before = r.as_("now"), r.as_("before")
    change = now.join(before, now.k == before.k, before.t == now.t - 1).select(now.k, now.t, rise=now.x - before.x)
    rising = change.partition_by("k").derive(Up=tg.situation(change.rise > 0)).Up
    found = tg.program(Up=rising).run({"R": [(1, t, x) for t, x in enumerate((3, 4, 5, 4))]})
    assert list(found) == ["Up"]
    assert "~" not in repr(found)
    assert [(row["ts"], row["te"]) for row in found.rows("Up")] == [(1, 3)]
