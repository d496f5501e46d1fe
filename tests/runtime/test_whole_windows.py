"""Aggregates that need every value, in windows that depend on rows or overlap: what they are, and what is kept."""

from __future__ import annotations

import datetime as dt
import random
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered import state as operator_state
from tidegate.runtime.ordered.state import SMALL
from tidegate.runtime.ordered.windows import queues
from tidegate.runtime.ordered.windows.rows import store
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint, x double, w string, s bigint", progress="t")
T = tg.stream("T", "k string, t timestamp, v bigint", progress="t")


def windows(bounds: tg.WindowBounds, **aggregates: Any) -> tg.Relation:
    """Of S, by key."""
    return S.windows(bounds, by="k").agg(**aggregates)


def counted(size: int, every: int, **aggregates: Any) -> tg.Relation:
    return S.windows(tg.rows(size, every=every), by="k", tie="s").agg(**aggregates)


def program() -> tg.Program:
    whole = {
        "different": tg.count_distinct(S.w),
        "middle": tg.median(S.x),
        "spread": tg.stddev(S.v),
        "words": tg.string_agg(S.w, "+", by=S.s),
    }
    mixed = {
        "usual": tg.mode(S.v),
        "n": tg.count(),
        "total": tg.sum(S.x),
        "most": tg.max(S.w),
        "first": tg.first(S.v, by=S.x),
        "last": tg.last(S.w, by=S.t),
        "nearly": tg.approx_quantile(S.x, 0.9),
        "low": tg.quantile(S.v, 0.2, filter=S.x > 0),
    }
    session = windows(tg.session(3), **whole, n=tg.count())
    return tg.program(
        Session=session,
        Mixed=windows(tg.session(2), **mixed),
        All=S.windows(tg.session(1), order="t").agg(different=tg.count_distinct(S.k), total=tg.sum(S.v)),
        Hopping=windows(tg.hopping(12, every=4, offset=1), **whole),
        HoppingMixed=windows(tg.hopping(10, every=4), **mixed),
        Gaps=windows(tg.hopping(3, every=7), **whole),
        Growing=windows(tg.cumulating(12, every=4), **whole, **mixed),
        Empty=windows(tg.hopping(6, every=4, empty=True), **whole, n=tg.count()),
        EmptyGrowing=windows(tg.cumulating(12, every=4, empty=True), **mixed),
        First=windows(tg.hopping(5, every=3, align="first", empty=True), **whole),
        EmptyGaps=windows(tg.hopping(3, every=7, offset=2, empty=True), **whole),
        Rows=counted(6, 2, **whole, n=tg.count()),
        Fives=counted(5, 5, **mixed),
        FewRows=counted(2, 5, **whole),
        OddRows=counted(5, 3, **mixed),
        Long=session.where(session.different > 2).select("k", "end"),
    )


COMPLETED = {
    **dict.fromkeys(("Session", "Mixed", "All", "Hopping", "HoppingMixed", "Gaps", "Growing", "Long"), "end"),
    **dict.fromkeys(("Rows", "Fives", "FewRows", "OddRows"), "end"),
    **dict.fromkeys(("Empty", "EmptyGrowing", "First", "EmptyGaps"), "complete"),
}
NAMES = tuple(COMPLETED)


def events(seed: int, count: int = 60) -> list[Event]:
    """With peers, pauses, gaps that are just long enough, and values that are NULL or not finite."""
    rng = random.Random(seed)
    times = sorted(rng.choice((rng.randrange(-20, 30), rng.randrange(60, 120))) for _ in range(count))
    return [
        (
            rng.choice(("a", "b", "c", None)),
            t,
            rng.choice((1, 1, 2, -3, 2**40, None)),
            rng.choice((0.5, -2.25, 0.0, -0.0, None, float("inf"), 1e300)),
            rng.choice(("x", "y", "ä", "", None)),
            number,
        )
        for number, t in enumerate(times)
    ]


def meant(program: tg.Program, rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program.definition.queries if one.stream == name)
    return sorted(map(comparable, evaluate(query.node, {"S": list(rows)})), key=str)


def comparable(row: Event) -> Event:
    """The row with text in the place of NaN, which equals nothing, and zeros of one sign."""
    return tuple("NaN" if value != value else value + 0 if isinstance(value, float) else value for value in row)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((comparable(tuple(row.values())) for row in rows), key=str)


def run(relation: tg.Relation, rows: Sequence[Event]) -> list[Event]:
    return found(tg.program(R=relation).run({"S": rows})["R"].rows())


def at(*times: int, key: str = "a") -> list[Event]:
    """Rows whose values are their instants."""
    return [(key, time, time, float(time), str(time % 3), number) for number, time in enumerate(times)]


# --- what they are ----------------------------------------------------------------------------------------------------


def test_a_session_has_every_value_of_its_rows() -> None:
    told = windows(tg.session(3), middle=tg.median(S.v), different=tg.count_distinct(S.w))
    assert run(told, [*at(1, 4, 4, 8, 11, 15), *at(2, 5, key="b")]) == [
        ("a", 1, 7, 4.0, 1),
        ("a", 15, 18, 15.0, 1),
        ("a", 8, 14, 9.5, 1),
        ("b", 2, 8, 3.5, 1),
    ]
    assert run(told, []) == []


def test_windows_that_overlap_have_each_their_own_values() -> None:
    rows = at(*range(1, 40, 2), 38, 39)
    told = windows(tg.hopping(10, every=4), middle=tg.median(S.v), n=tg.count(), spread=tg.stddev(S.x))
    for key, start, end, middle, n, spread in run(told, rows):
        inside = [row[1] for row in rows if start < row[1] <= end]
        assert (key, middle, n) == ("a", statistics.median(inside), len(inside))
        assert spread == (pytest.approx(statistics.stdev(inside)) if n > 1 else None)


def test_windows_of_so_many_rows_have_the_values_of_these() -> None:
    told = counted(3, 2, words=tg.string_agg(S.w, "", by=S.t), usual=tg.mode(S.w))
    assert run(told, at(*range(1, 8))) == [("a", 2, 4, "201", "0"), ("a", 4, 6, "120", "0")]


def test_a_window_without_rows_has_no_values() -> None:
    told = windows(tg.hopping(4, every=4, empty=True), different=tg.count_distinct(S.v), middle=tg.median(S.v))
    assert run(told, at(1, 14)) == [
        ("a", 0, 4, 1, 1.0, 4),
        ("a", 12, 16, 1, 14.0, 16),
        ("a", 4, 8, 0, None, 14),
        ("a", 8, 12, 0, None, 14),
    ]


def test_a_month_has_its_median() -> None:
    def day(month: int, number: int) -> dt.datetime:
        return dt.datetime(2026, month, number, 12, tzinfo=dt.UTC)

    rows = [("a", day(1, 5), 1), ("a", day(1, 6), 3), ("a", day(2, 1), 10), ("a", day(3, 31), 20)]
    told = T.windows(tg.calendar("month", zone="Europe/Berlin", size=2), by="k").agg(middle=tg.median(T.v))
    with tg.program(R=told).session() as session:
        for row in rows:
            session.push("T", [row])
            session.advance("T", row[1])
            session.step()
        session.finish()
        session.step()
        assert [row["middle"] for row in sorted(session.results("R"), key=lambda row: row["end"])] == [
            2.0,
            3.0,
            15.0,
            20.0,
        ]


def test_a_sum_that_does_not_fit_is_an_error_of_that_window() -> None:
    rows = [("a", t, 1 << 62, None, None, t) for t in (1, 2)] + at(9)
    told = windows(tg.session(3), total=tg.sum(S.v), tried=tg.try_sum(S.v), middle=tg.median(S.v))
    with pytest.raises(tg.TidegateError, match="TG301 total: the sum is out of range"):
        tg.program(R=told).run({"S": rows}, on_error="fail")
    with tg.program(R=told).session() as session:
        session.push("S", rows)
        session.finish()
        session.step()
        assert found(session.results("R")) == [("a", 1, 5, None, None, 2.0**62), ("a", 9, 12, 9, 9, 9.0)]
        (aside,) = session.quarantine_rows()
        assert (aside["reason"], aside["attribute"]) == ("overflow", "total")
        assert '"k": "a", "start": 1, "end": 5' in aside["row"]


def test_rows_that_are_counted_need_an_order() -> None:
    told = S.windows(tg.rows(2), by="k").agg(middle=tg.median(S.v))
    assert run(told, at(1, 2, 3, 4)) == [("a", 1, 2, 1.5), ("a", 3, 4, 3.5)]
    with pytest.raises(tg.TidegateError, match="TG304 two events of one partition at 2"):
        tg.program(R=told).run({"S": tg.source(at(1, 2, 2), ties="fail")})


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_they_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, COMPLETED)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


@pytest.mark.parametrize("seed", shards(4, 1))
def test_a_run_that_starts_again_goes_on_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From what changed alone, and with as many rows kept; against one run without changes."""
    rng, rows = random.Random(f"again {seed}"), events(seed)
    cuts = sorted(rng.sample(range(1, len(rows)), 12))
    batches = [rows[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    again = [rng.random() < 0.4 for _ in batches]
    found_by: list[tuple[list[dict[str, int]], dict[str, list[Event]]]] = []
    for small in (SMALL, 0):
        monkeypatch.setattr(operator_state, "SMALL", small)
        session, live = program().session(checkpoint=tmp_path / str(small)), []
        for batch, restart in zip(batches, again, strict=True):
            session.push("S", batch)
            session.advance("S", batch[-1][1] - 1)
            session.step()
            live.append({name: kept for name, kept in session.live_rows().items() if name.endswith(": state")})
            if restart and not small:
                session.close()
                session = program().session(checkpoint=tmp_path / str(small))
        session.finish()
        session.step()
        found_by.append((live, {name: found(session.results(name)) for name in NAMES}))
        session.close()
    assert found_by[0] == found_by[1]


def test_one_row_of_an_instant_stays_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The windows without rows are counted from it."""
    monkeypatch.setattr(operator_state, "SMALL", 0)
    told = tg.program(R=windows(tg.hopping(4, every=4, empty=True), different=tg.count_distinct(S.v)))
    others = [row for key in range(40) for row in at(2, key=f"k{key}")]
    with told.session(checkpoint=tmp_path) as session:
        for rows, until in (([*at(1, 3, 3, 3), *others], 3), (at(5, key="b"), 5)):
            session.push("S", rows)
            session.advance("S", until)
            session.step()
        assert session.live_rows()["R: state"] == 42
    with told.session(checkpoint=tmp_path) as session:
        session.push("S", at(14))
        session.advance("S", 14)
        session.step()
        assert session.live_rows()["R: state"] == 42
        session.finish()
        session.step()
        assert [row for row in found(session.results("R")) if row[0] == "a"] == [
            ("a", 0, 4, 2, 4),
            ("a", 12, 16, 1, 16),
            ("a", 4, 8, 0, 14),
            ("a", 8, 12, 0, 14),
        ]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


# --- what is kept -----------------------------------------------------------------------------------------------------


def live(relation: tg.Relation, until: int) -> int:
    """How many rows are kept of two keys with a row at each instant from 1 to 12."""
    with tg.program(R=relation).session() as session:
        session.push("S", [*at(*range(1, 13)), *at(*range(1, 13), key="b")])
        session.advance("S", until)
        session.step()
        return session.live_rows()["R: state"]


def test_the_rows_of_open_windows_are_kept() -> None:
    whole = {"middle": tg.median(S.v), "n": tg.count()}
    assert live(windows(tg.session(3), **whole), 14) == 24
    assert live(windows(tg.session(3), **whole), 15) == 0
    # At 12 the last windows that are open begin after 4; at 16 after 8.
    assert live(windows(tg.hopping(12, every=4), **whole), 12) == 16
    assert live(windows(tg.hopping(12, every=4), **whole), 16) == 8
    assert live(windows(tg.hopping(12, every=4), **whole), 20) == 0
    assert live(windows(tg.cumulating(12, every=4), **whole), 11) == 22
    assert live(windows(tg.cumulating(12, every=4), **whole), 12) == 0
    # Of so many rows those that the next window begins with, and the last one, which has the number.
    assert live(counted(6, 2, **whole), 100) == 8
    assert live(counted(5, 5, **whole), 100) == 4
    assert live(counted(2, 5, **whole), 100) == 2
    # The last one of a key stays where windows without rows are counted from it, and where it says where panes begin.
    assert live(windows(tg.hopping(12, every=4, empty=True), **whole), 100) == 2
    assert live(windows(tg.hopping(12, every=4, align="first"), **whole), 100) == 2


@pytest.mark.parametrize("size", [5, 6])
def test_of_rows_that_are_counted_no_more_are_kept_whatever_the_batching(size: int) -> None:
    """The last one of a window that is complete stays until the next row comes."""
    with tg.program(R=counted(size, size, middle=tg.median(S.v))).session() as session:
        kept = []
        for row in at(*range(2 * size + 1)):
            session.push("S", [row])
            session.advance("S", row[1])
            session.step()
            kept.append(session.live_rows()["R: state"])
    assert kept == [*range(1, size), 1, *range(1, size), 1, 1]


LONG = {
    "session": S.windows(tg.session(10**6), by="k"),
    "hopping": S.windows(tg.hopping(10**6, every=10**6), by="k"),
    "rows": S.windows(tg.rows(10**6), by="k", tie="s"),
    "between": S.windows(tg.between(S.where(S.v == 1), S.where(S.v < 0), by="k"), by="k"),
}


@pytest.mark.parametrize("kind", LONG)
def test_an_increment_reads_and_writes_what_is_new(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows the open window has: of those that are kept the last one is read."""
    monkeypatch.setattr(operator_state, "SMALL", 0)
    read, written = list[int](), list[int]()
    taken, marked = queues.RowQueues._rows, store.WindowRows.marked

    def noted(its: queues.RowQueues, of: Any, at: Any) -> Any:
        read.append(len(at))
        return taken(its, of, at)

    def counted_(its: store.WindowRows, rows: Any, marks: Any) -> Any:
        written.append(rows.height + marks.height)
        return marked(its, rows, marks)

    monkeypatch.setattr(queues.RowQueues, "_rows", noted)
    monkeypatch.setattr(store.WindowRows, "marked", counted_)
    told = tg.program(R=LONG[kind].agg(middle=tg.median(S.v), different=tg.count_distinct(S.w)))
    whole = 0
    with told.session() as session:
        for batch in range(30):
            read.clear()
            written.clear()
            session.push("S", at(*range(10 * batch + 1, 10 * batch + 11)))
            session.advance("S", 10 * batch + 10)
            session.step()
            if batch:
                assert max(read) == 1
                assert written[0] == 10
            whole += len(written) > 1
        session.push("S", [("a", 1000, -1, None, None, 0)])
        session.finish()
        session.step()
        middles = [row["middle"] for row in session.results("R")]
    assert whole < 6
    assert middles == ([] if kind == "rows" else [150.5 if kind == "between" else 150.0])


@pytest.mark.parametrize("bounds", [tg.session(3), tg.hopping(8, every=4)])
def test_a_window_ends_though_no_row_comes(bounds: tg.WindowBounds, tmp_path: Path) -> None:
    """In a run that goes on, and in one that starts from the checkpoint."""
    told = tg.program(R=windows(bounds, n=tg.count(), middle=tg.median(S.v)))
    for place in (None, tmp_path):
        with told.session(checkpoint=place) as session:
            session.push("S", at(1, 3))
            session.advance("S", 3)
            session.step()
            assert session.results("R") == []
            if place is None:
                session.advance("S", 8)
                session.step()
                assert {(row["n"], row["middle"]) for row in session.results("R")} == {(2, 2.0)}
                assert session.live_rows()["R: state"] == 0
    with told.session(checkpoint=tmp_path) as session:
        session.advance("S", 8)
        session.step()
        assert {(row["n"], row["middle"]) for row in session.results("R")} == {(2, 2.0)}
        assert session.live_rows()["R: state"] == 0


@pytest.mark.parametrize(
    ("bounds", "bound"),
    [
        (tg.session(3), "rows: rate(S) × the longest session"),
        (tg.hopping(12, every=4), "rows: rate(S) × 12"),
        (tg.hopping(12, every=4, empty=True), "rows: keys(S by k) + rate(S) × 12"),
        (tg.hopping(12, every=4, align="first"), "rows: keys(S by k) + rate(S) × 12"),
        (tg.cumulating(12, every=4), "rows: rate(S) × 12"),
        (tg.rows(6, every=2), "rows: keys(S by k) × 5"),
        (tg.rows(1), "rows: keys(S by k) × 1"),
    ],
)
def test_its_bound(bounds: tg.WindowBounds, bound: str) -> None:
    (query,) = tg.program(R=windows(bounds, middle=tg.median(S.v))).explain().to_dict()["queries"]
    assert query["holds"] == [bound]


def test_rows_between_rows_are_kept_until_one_closes_their_window() -> None:
    windows = tg.between(S.where(S.v == 0), S.where(S.v == 10), by="k")
    told = S.windows(windows, by="k").agg(middle=tg.median(S.v), different=tg.count_distinct(S.w))
    assert re.search(r"holds       rows: rate\(\S+\) × the longest window\n", str(tg.program(R=told).explain()))
    assert run(told, at(*range(13))) == [("a", 0, 10, 5.5, 3)]


def test_bounds_name_spans_of_the_timeline() -> None:
    def bound(of: tg.WindowBounds, *by: str) -> list[str]:
        told = T.windows(of, by=by).agg(middle=tg.median(T.v), n=tg.count())
        (query,) = tg.program(R=told).explain().to_dict()["queries"]
        holds: list[str] = query["holds"]
        return holds

    assert bound(tg.hopping("1h", every="10m"), "k") == ["rows: rate(T) × 1h"]
    assert bound(tg.hopping("90m", every="10m", empty=True)) == ["rows: 1 + rate(T) × (1h 30m)"]
    assert bound(tg.calendar("day"), "k") == ["rows: rate(T) × 3d"]
    assert bound(tg.rows(4)) == ["rows: 3"]


def test_they_are_listed_and_answered_for(tmp_path: Path) -> None:
    told = tg.program(R=windows(tg.session(3), middle=tg.median(S.v)))
    with told.session(checkpoint=tmp_path) as session:
        session.push("S", [*at(10, 11), *at(12, key="b")])
        session.advance("S", 12)
        session.step()
        assert "has arrived up to 12" in str(session.why("R"))
    listed = str(list_state(LocalStore(tmp_path)))
    assert "open        3 rows of windows" in listed
    assert "bound       rows: rate(S) × the longest session" in listed


def test_those_that_merge_keep_partial_results_where_they_are_alone() -> None:
    (query,) = (
        tg.program(R=windows(tg.session(3), n=tg.count(), q=tg.approx_distinct(S.v))).explain().to_dict()["queries"]
    )
    assert query["holds"] == ["sessions: keys(S by k)"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: windows(tg.landmark(0, every=5), c=tg.median(S.v)),
            r"TG132 median keeps every value, and the rows since an instant(?s:.*)tg.cumulating\(100, every=10\)",
        ),
        (
            lambda: T.windows(tg.landmark("2026-01-01T00:00Z", every="1h")).agg(c=tg.count_distinct(T.v)),
            r'TG132 count_distinct keeps every value(?s:.*)tg.cumulating\("1d", every="1h"\)',
        ),
    ],
)
def test_since_an_instant_there_would_be_more_and_more(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()
