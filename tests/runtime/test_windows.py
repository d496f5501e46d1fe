"""Windows that depend on rows or overlap: what they mean, whatever the batching and the engine, and what is kept."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate.algebra.dsl.windows import build
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered.windows import queues
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint, x double", progress="t")
T = tg.stream("T", "k string, t timestamp, v bigint", progress="t")
UNTYPED: Any = S
GROWING = tg.cumulating(12, every=4)


def windows(bounds: tg.WindowBounds, **aggregates: Any) -> tg.Relation:
    """Of S, by key."""
    return S.windows(bounds, by="k").agg(**aggregates)


def program() -> tg.Program:
    session = windows(tg.session(3), n=tg.count(), total=tg.sum(S.v), most=tg.max(S.x), last=tg.last(S.v, by=S.t))
    hopping = windows(tg.hopping(12, every=4, offset=1), n=tg.count(), mean=tg.avg(S.x), first=tg.first(S.v, by=S.x))
    return tg.program(
        Session=session,
        Hopping=hopping,
        Growing=windows(GROWING, n=tg.count(S.v), least=tg.min(S.v)),
        All=S.windows(tg.session(2), order="t").agg(n=tg.count(), total=tg.sum(S.x)),
        Long=session.where(session.n > 2).select("k", "end"),
        Counted=hopping.group_by("end").agg(n=tg.sum(hopping.n)),
    )


NAMES = ("Session", "Hopping", "Growing", "All", "Long", "Counted")


def events(seed: int) -> list[Event]:
    """With peers, gaps that are just long enough, and values that are NULL or not finite."""
    rng = random.Random(seed)
    times = [rng.randrange(-20, 120) for _ in range(60)]
    return [
        (
            rng.choice(("a", "b", "c", None)),
            t,
            rng.choice((1, 1, 2, -3, None)),
            rng.choice((0.5, -2.25, None, float("inf"))),
        )
        for t in sorted(times)
    ]


def meant(program: tg.Program, rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program.definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, rows: Sequence[Event]) -> list[Event]:
    return found(tg.program(R=relation).run({"S": rows})["R"].rows())


def at(*times: int, key: str = "a") -> list[Event]:
    return [(key, time, 1, None) for time in times]


# --- what it means ----------------------------------------------------------------------------------------------------


def test_rows_at_most_a_gap_apart_are_one_session() -> None:
    """As in Flink and Spark a row at the very end belongs to it."""
    told = windows(tg.session(3), n=tg.count(), total=tg.sum(S.v))
    assert run(told, at(1, 4, 4, 8, 11, 15)) == [("a", 1, 7, 3, 3), ("a", 15, 18, 1, 1), ("a", 8, 14, 2, 2)]
    assert run(told, [*at(1, 3), *at(2, 5, key="b")]) == [("a", 1, 6, 2, 2), ("b", 2, 8, 2, 2)]
    assert run(told, []) == []


def test_windows_that_hop_have_their_end_and_not_their_start() -> None:
    assert run(windows(tg.hopping(6, every=3), n=tg.count()), at(3, 4, 9)) == [
        ("a", -3, 3, 1),
        ("a", 0, 6, 2),
        ("a", 3, 9, 2),
        ("a", 6, 12, 1),
    ]
    moved = windows(tg.hopping(6, every=3, offset=1), n=tg.count())
    assert run(moved, at(3, 4)) == [("a", -2, 4, 2), ("a", 1, 7, 2)]
    assert moved._node == windows(tg.hopping(6, every=3, offset=-5), n=tg.count())._node


def test_windows_that_grow_begin_together() -> None:
    assert run(windows(tg.cumulating(6, every=2), n=tg.count()), at(0, 1, 5, 7)) == [
        ("a", -6, 0, 1),
        ("a", 0, 2, 1),
        ("a", 0, 4, 1),
        ("a", 0, 6, 2),
        ("a", 6, 10, 1),
        ("a", 6, 12, 1),
        ("a", 6, 8, 1),
    ]


@pytest.mark.parametrize("window", [tg.hopping(5, every=5), tg.cumulating(5, every=5)])
def test_without_overlap_they_are_groups(window: tg.WindowBounds) -> None:
    grouped = S.group_by("k", end=tg.ceil(S.t, 5)).agg(n=tg.count(), total=tg.sum(S.v))
    told = windows(window, n=tg.count(), total=tg.sum(S.v)).drop("start")
    assert run(told, events(1)) == run(grouped, events(1))


def test_durations_are_those_of_the_timeline() -> None:
    def minute(n: int) -> dt.datetime:
        return dt.datetime(2026, 3, 2, 12, n, tzinfo=dt.UTC)

    rows = [("a", minute(1), 1), ("a", minute(6), 2), ("a", minute(12), 3)]
    told = tg.program(
        R=T.windows(tg.session("5m"), by="k").agg(n=tg.count()),
        H=T.windows(tg.hopping("10m", every="5m"), by="k").agg(n=tg.count()),
    ).run({"T": rows})
    assert found(told["R"].rows()) == [("a", minute(1), minute(11), 2), ("a", minute(12), minute(17), 1)]
    assert sorted(row["end"] for row in told["H"].rows()) == [minute(n) for n in (5, 10, 15, 20)]


def test_a_sum_that_does_not_fit_is_an_error_of_that_window() -> None:
    rows = [("a", 1, 1 << 62, 0.0), ("a", 2, 1 << 62, 0.0), ("a", 9, 5, 0.0), ("b", 1, 7, 0.0)]
    told = windows(tg.session(3), total=tg.sum(S.v))
    with pytest.raises(tg.TidegateError, match="TG301 total: the sum is out of range"):
        tg.program(R=told).run({"S": rows}, on_error="fail")
    with tg.program(R=told).session() as session:
        session.push("S", rows)
        session.finish()
        session.step()
        assert found(session.results("R")) == [("a", 1, 5, None), ("a", 9, 12, 5), ("b", 1, 4, 7)]
        (aside,) = session.quarantine_rows()
        assert (aside["reason"], aside["attribute"]) == ("overflow", "total")
        assert '"k": "a", "start": 1, "end": 5' in aside["row"]


def test_a_window_whose_sum_does_not_fit_is_set_aside_once() -> None:
    """Though its panes are looked at again for the windows after it."""
    with tg.program(R=windows(tg.hopping(12, every=4), total=tg.sum(S.v))).session() as session:
        session.push("S", [("a", 1, 1 << 62, 0.0), ("a", 2, 1 << 62, 0.0)])
        for until in (4, 8, 12):
            session.advance("S", until)
            session.step()
        assert found(session.results("R")) == [("a", -4, 8, None), ("a", -8, 4, None), ("a", 0, 12, None)]
        assert len(session.quarantine_rows()) == 3


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_windows_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(
        program, rows, seed, tmp_path, dict.fromkeys(("Session", "Hopping", "Growing", "Long"), "end")
    )
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name)


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [pytest.param(0, marks=pytest.mark.long), 1])
def test_spark_has_the_same_windows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name)


# --- when they are complete, and what is kept -------------------------------------------------------------------------


def test_a_window_is_reported_at_its_end() -> None:
    """And not before: a row may still come at that instant."""
    with tg.program(R=windows(tg.session(3), n=tg.count())).session() as session:
        session.push("S", at(1, 2))
        session.advance("S", 4)
        session.step()
        assert session.results("R") == []
        session.push("S", at(5))
        session.advance("S", 7)
        session.step()
        assert session.results("R") == []
        session.advance("S", 8)
        session.step()
        assert found(session.results("R")) == [("a", 1, 8, 3)]
        assert session.live_rows()["R: state"] == 0


def test_a_session_without_an_end_of_input_stays_open_and_has_one_there() -> None:
    told = windows(tg.session(3), n=tg.count())
    assert run(told, at(1, 2)) == [("a", 1, 5, 2)]
    with (
        tg.program(R=told).session() as session,
        pytest.raises(tg.TidegateError, match="TG417"),
    ):
        session.finish(close_at=20)


def live(relation: tg.Relation, rows: Sequence[Event], until: int) -> int:
    with tg.program(R=relation).session() as session:
        session.push("S", rows)
        session.advance("S", until)
        session.step()
        return session.live_rows()["R: state"]


def test_partial_results_are_kept_and_no_rows() -> None:
    rows = [(key, t, 1, 0.5) for t in range(1, 13) for key in "ab"]
    assert live(windows(tg.session(3), total=tg.sum(S.v)), rows, 12) == 2
    assert live(windows(tg.session(3), total=tg.sum(S.v)), rows, 14) == 2
    assert live(windows(tg.session(3), total=tg.sum(S.v)), rows, 15) == 0
    # At 12 the pane that ends then is in the windows that end at 16 and 20, the one before in that which ends at 16.
    assert live(windows(tg.hopping(12, every=4), total=tg.sum(S.v)), rows, 12) == 4
    assert live(windows(tg.hopping(12, every=4), total=tg.sum(S.v)), rows, 16) == 2
    assert live(windows(tg.hopping(12, every=4), total=tg.sum(S.v)), rows, 20) == 0
    # Of windows that grow what they have come to, and so of those of one pane.
    assert live(windows(GROWING, total=tg.sum(S.v)), rows, 11) == 2
    assert live(windows(tg.hopping(12, every=12), total=tg.sum(S.v)), rows, 11) == 2
    assert live(windows(GROWING, total=tg.sum(S.v)), rows, 12) == 0


def test_they_are_explained_and_listed(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "situation" not in told
    assert "windows session(3) of r0 by k in order of t: n = count(), total = sum(v)" in told
    assert "windows hopping(12, every 4, offset 1) of r0 by k in order of t" in told
    assert "windows cumulating(12, every 4) of r0" in told
    assert "holds       sessions: keys(S by k)\n" in told
    assert "holds       sessions: 1\n" in told
    assert "holds       totals: keys(S by k)\n" in told
    assert "holds       panes: keys(S by k) × 3\n" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("S", [*at(10), *at(12, key="b")])
        session.advance("S", 12)
        session.step()
        assert "has arrived up to 12" in str(session.why("Session"))
    listed = str(list_state(LocalStore(tmp_path)))
    assert "open        2 rows of sessions" in listed
    assert "bound       sessions: keys(S by k)" in listed


def test_they_progress_on_their_end() -> None:
    session = windows(tg.session(3), n=tg.count())
    assert tg.program(R=session).check() == []
    (problem,) = tg.program(R=session.drop("end")).check()
    assert problem.code == "TG201"
    assert "\0" not in problem.message
    assert tg.program(R=windows(tg.hopping(12, every=4), n=tg.count()).drop("end")).check() == []
    assert tg.program(R=windows(GROWING, n=tg.count()).drop("end")).check() == []


def test_a_key_that_is_an_instant_is_related_to_the_bounds() -> None:
    """Of a session both to its first row and to its last."""
    days = S.with_(day=tg.ceil(S.t, 24))
    for window in (tg.session(3), tg.hopping(12, every=4)):
        told = tg.program(R=days.windows(window, by=("k", "day"), order="t").agg(n=tg.count()).drop("start", "end"))
        assert told.check() == []
        with told.session() as session:
            for row in events(4):
                session.push("S", [row])
                session.advance("S", row[1] - 1)
                session.step()
            session.finish()
            session.step()
            assert found(session.results("R")) == meant(told, events(4), "R")


# --- how they are written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: windows(tg.session(3), c=S.v), "TG115 c=v is no aggregate"),
        (lambda: T.windows(tg.session(0), by="k"), "TG160 gap=0 is not positive(?s:.*)write gap=.5m"),
        (lambda: S.windows(tg.session(0), by="k"), "TG160 gap=0 is not positive(?s:.*)write gap=5"),
        (
            lambda: windows(tg.session(3), n=tg.count()).windows(tg.session(3), by="k"),
            "TG117 which attribute orders the rows(?s:.*)order='end'",
        ),
        (lambda: windows(tg.session(3), k=tg.count()), "TG103 attribute 'k' exists already"),
        (lambda: windows(tg.session(3), end=tg.count()), "TG103 attribute 'end' exists already"),
        (lambda: windows(tg.session(0), n=tg.count()), "TG160 gap=0 is not positive"),
        (lambda: windows(tg.session("5m"), n=tg.count()), "TG160 gap is a number of ticks here"),
        (lambda: windows(tg.cumulating(6, every=4), n=tg.count()), "TG160 size=6 is no multiple of every=4"),
        (lambda: windows(tg.hopping(6, every=-3), n=tg.count()), "TG160 every=-3 is not positive"),
        (
            lambda: T.windows(tg.hopping("1d", every="1us")),
            r"TG160 one row would be in 86,400,000,000 windows of hopping\('1d', every='1us'\), and at most 10,000,000",
        ),
        (
            lambda: T.windows(tg.cumulating("3650d", every="1s")),
            "TG160 one row would be in 315,360,000 windows",
        ),
        (
            lambda: S.windows(tg.hopping(10**7 + 1, every=1, align="first")),
            "TG160 one row would be in 10,000,001 windows of hopping.10000001, every=1, align='first'.",
        ),
        (lambda: UNTYPED.windows("5m", by="k"), "TG114 '5m' says not which windows there are"),
        (lambda: UNTYPED.windows(by="k"), "TG114 .*missing.*bounds"),
        (lambda: S.windows(tg.session(3), by=("k", "k")), "TG103 rows are partitioned by k twice"),
        (lambda: S.windows(tg.session(3), order="v").agg(n=tg.count()), "TG117 'v' orders no rows"),
        (lambda: S.rename(k="end").windows(tg.session(3), by="end").agg(n=tg.count()), "TG103 'end' is a bound"),
        (lambda: UNTYPED.windows(tg.session(3)).sum(), "TG101 no method of windows is called 'sum'"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


def test_a_row_may_be_in_ten_million_windows() -> None:
    for window in (tg.hopping(10**7, every=1), tg.cumulating(2 * 10**7, every=2)):
        assert tg.program(R=windows(window, n=tg.count())).check() == []


AT = tg.stream("At", "k string, at timestamp, window bigint, v bigint", progress="at")
DAYS = tg.stream("Days", "k string, day date not null, v bigint", progress="day")


@pytest.mark.parametrize(
    ("rows", "bounds", "by", "order"),
    [
        (S, tg.hopping(5, every=1), ("k",), "t"),
        (S, tg.hopping(5, every=1), (), "t"),
        (S, tg.hopping(5, every=1, offset=3), ("k", "v"), "t"),
        (S, tg.cumulating(5, every=1), ("k",), "t"),
        (S, tg.cumulating(5, every=1, offset=3), (), "t"),
        (AT, tg.hopping("5us", every="1us"), ("k",), "at"),
        (AT, tg.cumulating("5us", every="1us", offset="2us"), ("k",), "at"),
        (DAYS, tg.hopping("5d", every="1d"), ("k",), "day"),
        (DAYS, tg.cumulating("5d", every="1d", offset="2d"), ("k",), "day"),
        (S.with_(end=S.t + 3), tg.cumulating(5, every=1), ("k",), "end"),
        (S.as_("one").rename({"one.t": "a.b"}), tg.cumulating(5, every=1), ("one.k",), "a.b"),
    ],
    ids=[
        "by key",
        "of all",
        "with an offset, by two keys",
        "growing",
        "growing with an offset, of all",
        "of instants",
        "growing of instants, with a name that is taken",
        "of dates",
        "growing of dates",
        "of a computed instant",
        "names after a relation",
    ],
)
def test_what_is_proposed_in_the_place_of_too_many_windows_is_what_they_hold_at_each_row(
    rows: tg.Relation, bounds: tg.WindowBounds, by: Sequence[str], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"n": tg.count(), "spread": tg.median(rows["v"])}
    windows_of_each = rows.windows(bounds, by=by, order=order).agg(**asked)
    monkeypatch.setattr(build, "MOST_WINDOWS", 4)
    with pytest.raises(tg.QueryError, match="TG160 one row would be in 5 windows") as refused:
        rows.windows(bounds, by=by, order=order)
    proposed = str(refused.value.hint).partition(", take ")[2].replace(", ...)", ", **asked)")
    at_each_row = eval(f"rows.{proposed}", {"rows": rows, "tg": tg, "asked": asked})  # noqa: S307  # the hint is our own
    (stream,) = tg.program(R=at_each_row).definition.inputs
    data = {stream.name: [typed(stream, event) for event in sorted(set(events(3)), key=lambda event: event[1])]}
    found = tg.program(Windows=windows_of_each, Rows=at_each_row).run(data)
    keys, time = [key.rpartition(".")[2] for key in by], order.rpartition(".")[2]
    held = {(*(row[key] for key in keys), row["end"]): (row["n"], row["spread"]) for row in found.rows("Windows")}
    assert found.rows("Rows")
    for row in found.rows("Rows"):
        assert held[*(row[key] for key in keys), row[time]] == (row["n"], row["spread"])


def typed(stream: StreamDef, event: Event) -> Event:
    """An event as a row of a stream of instants, of days or of numbers."""
    key, at, value, weight = event
    match stream.name:
        case "At":
            return key, dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at), at % 2, value
        case "Days":
            return key, dt.date(2026, 1, 1) + dt.timedelta(at), value
        case _:
            return key, at, value, weight


def test_it_shows_how_it_is_written() -> None:
    assert repr(S.windows(tg.hopping(6, every=3, offset=1))) == (
        "hopping(6, every=3, offset=1), in order of t; say what each window yields: .agg(...)"
    )


# --- however many panes a window has ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 40, 400])
def test_windows_of_many_panes_are_those_of_the_meaning(size: int, tmp_path: Path) -> None:
    """One that ends within its first block, and ones that begin in it."""

    def panes() -> tg.Program:
        named = {"n": tg.count(), "mean": tg.avg(S.x), "least": tg.min(S.v), "last": tg.last(S.x, by=S.v)}
        return tg.program(H=windows(tg.hopping(size, every=4, offset=3), **named).where(lambda w: w.end <= 200))

    rows = events(8)
    results = in_any_batches(panes, rows, 8, tmp_path, {"H": "end"})
    assert found(results["H"]) == meant(panes(), rows, "H")


def test_an_increment_reads_and_writes_few_panes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred that are kept: those at which its windows begin, and the last. When a block ends, all are."""
    read: list[int] = []
    taken = queues.RowQueues._rows

    def noted(its: queues.RowQueues, of: Any, at: Any) -> Any:
        read.append(len(at))
        return taken(its, of, at)

    monkeypatch.setattr(queues.RowQueues, "_rows", noted)
    with tg.program(R=windows(tg.hopping(100, every=1), most=tg.max(S.v))).session() as session:
        most = []
        for t in range(1, 250):
            session.push("S", [("a", t, t % 7, None)])
            session.advance("S", t)
            session.step()
            most.append(max(read))
            read.clear()
        assert session.live_rows()["R: state"] == 99
    ends = [t for t, some in enumerate(most, 1) if some > 2]
    assert ends[0] <= 100
    assert ends == list(range(ends[0], 250, 100))


def test_what_is_written_of_panes_are_those_that_change() -> None:
    """Whole files have three thousand of them."""

    def files(run: Session) -> dict[str, int]:
        manifest = run._setup.checkpoint.manifest
        assert manifest is not None
        return {file.path: file.bytes for file in manifest.kernel["R"].files}

    program = tg.program(R=windows(tg.hopping(5000, every=1), n=tg.count()))
    with Session(program.facts) as run:
        run.push("S", at(*range(1, 3000)))
        run.advance("S", 2998)
        run.step()
        known = files(run)
        whole = sum(known.values())
        for t in range(3000, 3010):
            run.push("S", at(t))
            run.advance("S", t - 1)
            run.step()
            now = files(run)
            assert 0 < sum(now[path] for path in now.keys() - known.keys()) < whole / 4
            known = now
