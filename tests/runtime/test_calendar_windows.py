"""Weeks and shorter units of the calendar as windows: final when they are over, and then forgotten."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest

import tidegate as tg

MONDAY = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
rides = tg.stream("Rides", "id bigint, t timestamp", progress="t")


def test_a_week_is_final_on_monday() -> None:
    weeks = rides.group_by(week=rides.t.truncate("week")).agg(n=tg.count())
    with tg.program(Weeks=weeks).session(sources={"Rides": tg.source(None, delay="0s")}) as session:
        session.push("Rides", [(day, MONDAY + dt.timedelta(days=day)) for day in range(-1, 7)])
        session.step()
        assert session.table("Weeks").rows() == [{"week": MONDAY - dt.timedelta(days=7), "n": 1}]
        assert session.live_rows() == {"Rides#0": 1}
        session.push("Rides", [(8, MONDAY + dt.timedelta(days=7))])
        session.step()
        assert session.table("Weeks").rows()[1:] == [{"week": MONDAY, "n": 7}]
        assert session.live_rows() == {"Rides#0": 1}


def test_a_month_is_final_when_it_is_over_where_months_are_a_stream() -> None:
    months = tg.stream(
        "Months",
        "start timestamp, over timestamp",
        progress="over",
        relations=lambda m: (m.start < m["over"]) & (m["over"] <= m.start + "31d"),
    )
    each = rides.join(months, months.start <= rides.t, rides.t < months["over"])
    program = tg.program(PerMonth=each.group_by(months.start, months["over"]).agg(n=tg.count()))
    starts = [dt.datetime(2026, month, 1, tzinfo=dt.UTC) for month in (1, 2, 3)]
    sources = {"Rides": tg.source(None, delay="0s"), "Months": list(pairwise(starts))}
    with program.session(sources=sources) as session:
        session.push("Rides", [(n, starts[0] + dt.timedelta(days=n)) for n in range(31)])
        session.step()
        assert session.results("PerMonth") == []
        session.push("Rides", [(31, starts[1])])
        session.step()
        assert session.table("PerMonth").rows() == [{"start": starts[0], "over": starts[1], "n": 31}]
        session.push("Rides", [(n, starts[0] + dt.timedelta(days=n)) for n in range(32, 90)])
        session.step()
        assert session.table("PerMonth").rows()[1:] == [{"start": starts[1], "over": starts[2], "n": 28}]
        assert session.live_rows()["Rides#0"] < 60  # those of January are gone


def test_what_is_written_for_date_trunc_says_which_units_are_windows() -> None:
    with pytest.raises(tg.QueryError, match="TG131") as refused:
        tg.date_trunc("month", rides.t)  # type: ignore[attr-defined]
    assert "weeks and what is shorter are windows" in refused.value.hint
