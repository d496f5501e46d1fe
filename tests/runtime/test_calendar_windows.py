"""Weeks and shorter units of the calendar as windows: final when they are over, and then forgotten."""

from __future__ import annotations

import datetime as dt

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
