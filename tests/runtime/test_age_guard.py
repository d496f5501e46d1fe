"""The age guard: a row too far behind the clock is set aside and moves nothing."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tests.runtime.guarded import NOON, at, days, events, passed
from tidegate import testing
from tidegate.algebra.errors import QueryError
from tidegate.runtime.engines.embedded.session import Session

others = tg.stream("O", "k bigint, t timestamp", progress="t")
two = tg.stream("W", "k bigint, t timestamp, u timestamp", progress=["t", "u"])
EPOCH = "1970-01-01T00:00:07Z"


def test_exactly_the_guard_behind_is_fine_and_one_tick_more_is_not() -> None:
    source = tg.source(None, delay="0s", age_guard="1h")
    with testing.drive(passed(events), sources={"E": source}, clock=NOON) as run:
        run.add("E", [(1, EPOCH), (2, at("10:59:59.999999")), (3, at("11:00"))])
        run.step()
        counts = run.counts["E"]
        assert (counts.rows_in, counts.accepted, counts.rejected) == (3, 1, {"old": 2})
        assert [(row["reason"], row["attribute"], row["position"]) for row in run.quarantine()] == [
            ("old", "t", 0),
            ("old", "t", 1),
        ]
        # It is old whatever came before it; what is late only is late.
        run.add("E", [(4, EPOCH), (5, at("11:00")), (6, at("11:30")), (7, at("13:00:00.000001"))])
        run.wait("15m")
        run.step()
        assert run.counts["E"].rejected == {"old": 4}
        run.add("E", [(8, at("11:29")), (9, at("11:14"))])
        run.step()
        assert run.counts["E"].rejected == {"old": 5, "late": 1}


@pytest.mark.parametrize(
    ("guard", "accepted"),
    [(None, 3), ("2h", 2), (dt.timedelta(hours=2), 2), ("45m", 1), ("0s", 0), ({"t": None}, 3), ({"t": "2h"}, 2)],
)
def test_the_guard_is_the_sources(guard: Any, accepted: int) -> None:
    with testing.drive(passed(events), sources={"E": tg.source(None, age_guard=guard)}, clock=NOON) as run:
        run.add("E", [(1, at("11:30")), (2, at("10:30")), (3, EPOCH)])
        run.step()
        counts = run.counts["E"]
        assert (counts.accepted, counts.rejected.get("old", 0)) == (accepted, 3 - accepted)


def test_there_is_none_unless_asked_for_and_complete_sources_have_one_too() -> None:
    rows = [(1, EPOCH)]
    assert passed(events).run({"E": rows}).rows("Out")
    with testing.drive(passed(events), clock=NOON) as run:
        run.add("E", rows)
        run.step()
        assert run.counts["E"].accepted == 1
    said = r"TG430 the only row of E was rejected: 1 old(?s:.*)age_guard=None \(in TOML age_guard = \"none\"\)"
    with pytest.raises(tg.QueryError, match=said):
        passed(events).run({"E": tg.source(rows, age_guard="30d")})


def test_each_attribute_has_its_own() -> None:
    guards = {"t": "1h", "u": None}
    with testing.drive(passed(two), sources={"W": tg.source(None, age_guard=guards)}, clock=NOON) as run:
        run.add("W", [(1, at("11:30"), EPOCH), (2, at("10:30"), at("11:30"))])
        run.step()
        assert [(row["attribute"], row["position"]) for row in run.quarantine()] == [("t", 1)]
    with testing.drive(passed(two), sources={"W": tg.source(None, age_guard={"u": "1h"})}, clock=NOON) as run:
        run.add("W", [(1, at("11:30"), EPOCH), (2, EPOCH, at("11:30")), (3, EPOCH, "2999-01-01")])
        run.step()
        assert [(row["reason"], row["attribute"]) for row in run.quarantine()] == [("old", "u"), ("ahead", "u")]


def test_the_first_reason_counts() -> None:
    """A broken relation before the clock, and what is old before what is ahead elsewhere."""
    related = tg.stream("R", "k bigint, t timestamp, u timestamp", progress=["t", "u"], relations=lambda r: r.t <= r.u)
    with testing.drive(passed(related), sources={"R": tg.source(None, age_guard="1h")}, clock=NOON) as run:
        run.add("R", [(1, at("11:59"), EPOCH), (2, EPOCH, "2999-01-01")])
        run.step()
        assert [(row["reason"], row["attribute"]) for row in run.quarantine()] == [("relation", None), ("old", "t")]


def test_dates_are_judged_by_the_day() -> None:
    source = tg.source(None, age_guard={"day": "1d"})
    with testing.drive(passed(days), sources={"D": source}, clock="2026-03-02T23:30Z") as run:
        run.add("D", [(1, "2026-03-01", -(2**50)), (2, "2026-02-28", 1)])
        run.step()
        assert [(row["attribute"], row["position"]) for row in run.quarantine()] == [("day", 1)]


def test_that_all_has_arrived_up_to_long_ago_is_true_of_any_row() -> None:
    source = tg.source(None, progress_columns={"t": "upto"}, age_guard="1h")
    with testing.drive(passed(events), sources={"E": source}, clock=NOON) as run:
        run.add("E", [{"k": 1, "t": at("12:00"), "upto": EPOCH}])
        run.add("E", [{"upto": EPOCH}])
        run.step()
        counts = run.counts["E"]
        assert (counts.accepted, counts.punctuations, counts.rejected) == (1, 1, {})


def test_the_beginning_of_an_interval_is_judged_by_its_start() -> None:
    begins = tg.Begins(id="id", start="a", end="z")
    told = tg.stream(
        "I", "id bigint, a timestamp, z timestamp", progress="z", begins=begins, relations=lambda i: i.a < i.z
    )
    intervals = told.as_intervals(start="a", end="z", name="I")
    source = tg.source(None, age_guard="1h")
    with testing.drive(tg.program(Out=tg.iseq(of=(intervals,), within="1h")), sources={"I": source}, clock=NOON) as run:
        run.add("I", [(1, at("11:00"), None), (2, at("10:59:59.999999"), None), (3, EPOCH, None)])
        run.step()
        assert [(row["reason"], row["attribute"], row["position"]) for row in run.quarantine()] == [
            ("old", "a", 1),
            ("old", "a", 2),
        ]
        run.advance("I", z=at("11:00"))
        run.add("I", [(4, EPOCH, None), (5, at("11:00"), None)])
        run.step()
        run.add("I", [(6, EPOCH, None), (7, at("11:00"), None)])
        run.step()
        assert run.counts["I"].rejected == {"old": 4, "late": 1}


@pytest.mark.parametrize(
    ("guard", "stream", "said"),
    [
        ("-1h", events, r"TG401 age_guard='-1h' is negative"),
        (3, events, r'TG401 age_guard=3 is no duration(?s:.*)age_guard="10m", or None for no limit'),
        ("auto", events, r"TG104 age_guard: 'auto'"),
        ({"k": "1h"}, events, "TG401 E: 'k' is not an attribute on which it progresses"),
        ("1h", days, "TG401 D.seen: integers have no clock to be behind(?s:.*)age_guard for timestamps and dates"),
    ],
)
def test_options_that_make_no_sense_are_refused(guard: Any, stream: tg.Relation, said: str) -> None:
    name = stream._node.stream.name  # type: ignore[union-attr]  # a scan
    with pytest.raises(QueryError, match=said):
        passed(stream).session(sources={name: tg.source(None, age_guard=guard)})


# --- what one row of long ago does to queries that count the time between ---------------------------------------------

COUNTED = {
    "ticks": events.ticks("10s", by="k"),
    "windows": events.windows(tg.hopping("10s", every="10s", empty=True), by="k").agg(n=tg.count()),
    "gaps": events.fill_gaps("10s", by="k"),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_a_run_that_such_a_row_fails_at_every_start_goes_on_with_it(kind: str, tmp_path: Path) -> None:
    """The batch that failed is done again with the option, and so are all that follow."""
    program = tg.program(Counted=COUNTED[kind], Others=others)

    def put(stream: str, number: int, *rows: tuple[int, str]) -> None:
        frame = pl.DataFrame(rows, schema=["k", "t"], orient="row")
        frame.write_parquet(tmp_path / stream / f"{number}.parquet")

    def session(**options: Any) -> Session:
        sources = {
            "E": tg.parquet(tmp_path / "E", per_batch=1, delay="0s", **options),
            "O": tg.parquet(tmp_path / "O", delay="0s"),
        }
        now = dt.datetime.fromisoformat(NOON)
        return program.session(checkpoint=tmp_path / "state", sources=sources, clock=lambda: now)

    for stream in ("E", "O"):
        (tmp_path / stream).mkdir()
    put("O", 1, (1, at("11:50")), (2, at("11:50:10")))
    with session() as run:
        run.process()
    put("E", 1, (2, EPOCH), (2, at("11:51:04")), (2, at("11:51:05")))
    put("E", 2, (2, at("11:51:40")), (2, at("11:51:41")))
    put("O", 2, (3, at("11:52")))
    for _ in range(2):
        with session() as run, pytest.raises(tg.QueryError, match=r"TG306 (?s:.*)age_guard= those far behind it"):
            run.process()
    with session(age_guard="30d") as run:
        run.process()
        counts = run.counts["E"]
        assert (counts.rows_in, counts.accepted, counts.rejected) == (5, 4, {"old": 1})
        assert [row["k"] for row in run.results("Others")] == [1, 2]
        assert run.counts["O"].accepted == 3
        column = {"ticks": "tick", "gaps": "tick", "windows": "end"}[kind]
        told = sorted(f"{row[column]:%H:%M:%S}" for row in run.results("Counted"))
        assert told[:3] == ["11:51:10", "11:51:20", "11:51:30"]
    # Nobody needs the option any more once the row is set aside.
    put("E", 3, (2, at("11:52")))
    with session() as run:
        run.process()
        assert run.counts["E"].accepted == 5


def test_a_row_that_was_accepted_before_stays(tmp_path: Path) -> None:
    """So the option alone does not mend the run: it needs a new checkpoint, as the hint says."""
    program = tg.program(Counted=COUNTED["ticks"])

    def session(checkpoint: str, **options: Any) -> Session:
        now = dt.datetime.fromisoformat(NOON)
        sources = {"E": tg.source(None, delay="0s", **options)}
        return program.session(checkpoint=tmp_path / checkpoint, sources=sources, clock=lambda: now)

    rows = [(1, EPOCH)], [(1, at("11:50")), (1, at("11:50:20"))]
    with session("first") as run:
        run.push("E", rows[0])
        run.step()
    with session("first", age_guard="30d") as run:
        run.push("E", rows[1])
        with pytest.raises(tg.QueryError, match=r"TG306 (?s:.*)begin a new checkpoint"):
            run.step()
    with session("second", age_guard="30d") as run:
        for some in rows:
            run.push("E", some)
            run.step()
        assert [f"{row['tick']:%H:%M:%S}" for row in run.results("Counted")] == ["11:50:00", "11:50:10"]


def test_the_hint_names_guards_where_there_is_a_clock() -> None:
    rows = [(1, EPOCH), (1, NOON)]
    with pytest.raises(tg.QueryError) as caught:
        tg.program(Out=COUNTED["ticks"]).run({"E": rows})
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("leave out rows that are too far ahead or too long ago: in the input, or by")
    assert caught.value.hint.endswith(
        "; skew_guard= of a source sets aside rows that are ahead of the clock, and age_guard= those far behind it "
        "(where an earlier batch has accepted such a row, begin a new checkpoint)"
    )
    numbers = tg.stream("N", "k bigint, t bigint", progress="t")
    with pytest.raises(tg.QueryError) as caught:
        tg.program(Out=numbers.ticks(1, by="k")).run({"N": [(1, 0), (1, 10**9)]})
    assert caught.value.hint is not None
    assert "guard" not in caught.value.hint
