"""The skew guard: a row too far ahead of the clock is set aside and moves nothing."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import tidegate as tg
from tests.runtime.guarded import NOON, at, days, events, passed
from tidegate import testing
from tidegate.algebra.errors import QueryError


def test_exactly_the_guard_ahead_is_fine_and_one_tick_more_is_not() -> None:
    with testing.drive(passed(events), sources={"E": tg.source(None, delay="0s")}, clock=NOON) as run:
        run.add("E", [(1, at("13:00")), (2, at("13:00:00.000001")), (3, "2999-01-01")])
        run.step()
        assert run.counts["E"].rejected == {"ahead": 2}
        assert [(row["reason"], row["attribute"], row["position"]) for row in run.quarantine()] == [
            ("ahead", "t", 1),
            ("ahead", "t", 2),
        ]
        # Progress is that of the accepted row: another one at the same time is not late.
        run.add("E", [(4, at("13:00")), (5, at("12:59:59"))])
        run.step()
        assert run.counts["E"].rejected == {"ahead": 2, "late": 1}


@pytest.mark.parametrize(
    ("guard", "accepted"),
    [("auto", 1), ("2h", 2), (dt.timedelta(hours=2), 2), ("0s", 0), (None, 3), ({"t": None}, 3), ({"t": "2h"}, 2)],
)
def test_the_guard_is_the_sources(guard: Any, accepted: int) -> None:
    with testing.drive(passed(events), sources={"E": tg.source(None, skew_guard=guard)}, clock=NOON) as run:
        run.add("E", [(1, at("12:30")), (2, at("13:30")), (3, "2030-01-01")])
        run.step()
        assert run.counts["E"].accepted == accepted


def test_sources_that_are_complete_have_no_guard_unless_asked_for() -> None:
    rows = [(1, "2999-01-01")]
    assert passed(events).run({"E": rows}).rows("Out")
    assert passed(events).run({"E": tg.source(rows)}).rows("Out")
    advice = r"without an offset are read as UTC(?s:.*)skew_guard=None"
    with pytest.raises(tg.QueryError, match=rf"TG430 the only row of E was rejected: 1 ahead(?s:.*){advice}"):
        passed(events).run({"E": tg.source(rows, skew_guard="1h")})
    with passed(events).session(clock=lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC)) as session:
        session.push("E", rows)
        assert session.step().counts["E"].rejected == {"ahead": 1}


def test_dates_are_judged_by_the_day_and_integers_not_at_all() -> None:
    with testing.drive(passed(days), clock="2026-03-02T23:30Z") as run:
        run.add("D", [(1, "2026-03-03", 2**50), (2, "2026-03-04", 1)])
        run.step()
        assert [(row["attribute"], row["position"]) for row in run.quarantine()] == [("day", 1)]


def test_progress_that_is_ahead_moves_nothing() -> None:
    source = tg.source(None, progress_columns={"t": "upto"})
    with testing.drive(passed(events), sources={"E": source}, clock=NOON) as run:
        run.add("E", [{"k": 1, "t": at("12:00"), "upto": "2999-01-01"}, {"k": 2, "t": at("12:00")}])
        run.add("E", [{"upto": "2999-01-01"}])
        run.step()
        assert [(row["reason"], row["attribute"]) for row in run.quarantine()] == [("ahead", "upto"), ("ahead", "upto")]
        counts = run.counts["E"]
        assert (counts.rows_in, counts.accepted, counts.punctuations) == (3, 1, 0)
        run.expect(Out=[])


def test_a_clock_that_goes_back_does_not_count() -> None:
    now = [dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC), dt.datetime(2026, 3, 2, 11, tzinfo=dt.UTC)]
    with passed(events).session(clock=lambda: now.pop(0)) as session:
        session.step()
        session.push("E", [(1, at("12:30"))])
        assert session.step().counts["E"].accepted == 1


def test_options_that_make_no_sense_are_refused() -> None:
    for options, stream in (
        ({"skew_guard": "-1h"}, events),
        ({"skew_guard": 3}, events),
        ({"skew_guard": {"k": "1h"}}, events),
        ({"skew_guard": "1h"}, days),
    ):
        name = stream._node.stream.name  # type: ignore[union-attr]  # a scan
        with pytest.raises(QueryError, match="TG401"):
            passed(stream).session(sources={name: tg.source(None, **options)})
    with passed(events).session(clock=lambda: 3) as session, pytest.raises(QueryError, match="TG401"):  # type: ignore[arg-type, return-value]  # that is the point
        session.step()
