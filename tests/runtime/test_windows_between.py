"""Windows that rows open and close: what they mean, whatever the batching and the engine, and what is kept."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tidegate as tg
from tests.runtime.batchings import whatever_is_ahead
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.semantics import evaluate_program
from tidegate.runtime.cli.commands import main
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered import state
from tidegate.runtime.ordered.state import SMALL
from tidegate.runtime.plan import placement
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
Rows = Mapping[str, Sequence[Row]]

BEGUN = tg.stream("Begun", "k string, t bigint", progress="t")
ENDED = tg.stream("Ended", "k string, t bigint", progress="t")
MADE = tg.stream("Made", "k string, t bigint, v bigint, x double", progress="t")
NUMBERED = MADE.select("v", "t")
AT = tg.stream("At", "k string, at timestamp", progress="at")
TABLE = tg.table("Table", "k string, t timestamp not null")
UNTYPED: Any = tg
UNTYPED_MADE: Any = MADE
#: How long windows last at most where they have a limit.
LONGEST = 7


def between(at_most: int | None = None, *, empty: bool = False) -> tg.Between:
    return tg.between(BEGUN, ENDED, by="k", at_most=at_most, empty=empty)


def program() -> tg.Program:
    windows = between()
    return tg.program(
        Windows=windows,
        Limited=between(LONGEST),
        Totals=MADE.windows(windows, by="k").agg(
            n=tg.count(),
            total=tg.sum(MADE.v),
            most=tg.max(MADE.x),
            late=tg.last(MADE.v, by=MADE.t),
            end_=tg.max(MADE.t),
        ),
        Values=MADE.windows(windows, by="k").agg(
            different=tg.count_distinct(MADE.v), middle=tg.median(MADE.x), usual=tg.mode(MADE.v), n=tg.count()
        ),
        Every=MADE.windows(between(LONGEST, empty=True)).agg(
            n=tg.count(), mean=tg.avg(MADE.x), odd=tg.count(MADE.v + 1)
        ),
        Inside=MADE.in_context(between(LONGEST), values={"since": "start"}).select("k", "t", "since", "v"),
        Outside=MADE.not_in_context(windows).select("k", "t", "v"),
        All=MADE.windows(tg.between(BEGUN, ENDED)).agg(n=tg.count()),
    )


NAMES = ("Windows", "Limited", "Totals", "Values", "Every", "Inside", "Outside", "All")


# --- the same, plainly ------------------------------------------------------------------------------------------------


def windows_of(rows: Rows, longest: int | None, key: Any = None) -> list[tuple[Any, int, int]]:
    """The windows of each key, instant by instant; of all rows together where `key` is given."""
    opens, closes = ({(key or k, t) for k, t in rows[name] if key or k is not None} for name in ("Begun", "Ended"))
    ends = {(k, t + longest) for k, t in opens} if longest is not None else set()
    found: list[tuple[Any, int, int]] = []
    opened: dict[Any, int] = {}
    for t, k in sorted({(t, k) for k, t in opens | closes | ends}):
        was = opened.get(k)
        if was is not None and ((k, t) in closes or (longest is not None and t - was >= longest)):
            found.append((k, opened.pop(k), t))
        if (k, t) in opens and k not in opened:
            opened[k] = t
    return found


def still_open(rows: Rows, longest: int | None, row: Row) -> int | None:
    """When the window was opened that a row is in, whether it ends or not."""
    after = {**rows, "Ended": [*rows["Ended"], *((k, 10_000) for k, _ in rows["Begun"])]}
    starts = [start for k, start, end in windows_of(after, longest) if k == row[0] and start < row[1] <= end]
    return starts[0] if starts else None


def total(values: Sequence[Any], of: Any) -> Any:
    known = [value for value in values if value is not None]
    return of(known) if known else None


def most_frequent(values: Sequence[Any]) -> Any:
    return min(values, key=lambda value: (-values.count(value), value))


def expected(rows: Rows) -> dict[str, list[Row]]:
    """All results by loops over the rows."""
    free, limited, made = windows_of(rows, None), windows_of(rows, LONGEST), rows["Made"]

    def inside(k: Any, start: int, end: int) -> list[Row]:
        return [row for row in made if row[0] == k and start < row[1] <= end]

    results: dict[str, list[Row]] = {name: [] for name in NAMES}
    results["Windows"], results["Limited"] = [*free], [*limited]
    for window in free:
        if its := inside(*window):
            last = max((t for _, t, v, _ in its if v is not None), default=None)
            late = min((v for _, t, v, _ in its if t == last and v is not None), default=None)
            sums = total([v for *_, v, _ in its], sum), total([x for *_, x in its], max)
            results["Totals"].append((*window, len(its), *sums, late, max(t for _, t, *_ in its)))
            values = [v for *_, v, _ in its if v is not None]
            usual = total(values, most_frequent)
            middle = total([x for *_, x in its], statistics.median)
            results["Values"].append((*window, len({*values}), middle, usual, len(its)))
    for window in limited:
        its = inside(*window)
        mean = total([x for *_, x in its], lambda known: sum(known) / len(known))
        results["Every"].append((*window, len(its), mean, sum(v is not None for *_, v, _ in its)))
    for row in made:
        if (start := still_open(rows, LONGEST, row)) is not None:
            results["Inside"].append((*row[:2], start, row[2]))
        if still_open(rows, None, row) is None:
            results["Outside"].append(row[:3])
    for _, start, end in windows_of(rows, None, key="all"):
        if its := [row for row in made if start < row[1] <= end]:
            results["All"].append((start, end, len(its)))
    return {name: sorted(rows, key=str) for name, rows in results.items()}


def drawn(seed: int, many: int = 50) -> dict[str, list[Row]]:
    """Rows of a few keys, often several at one instant."""
    rng = random.Random(f"between {seed}")
    keys, spread = ("a", "b", None), rng.choice((1, 3))
    at: Any = lambda: rng.randrange(0, 40) * spread  # noqa: E731  # an instant
    return {
        "Begun": [(rng.choice(keys), at()) for _ in range(many // 2)],
        "Ended": [(rng.choice(keys), at()) for _ in range(many // 3)],
        "Made": [
            (rng.choice(keys), at(), rng.choice((1, 1, 2, -3, None)), rng.choice((0.5, -2.25, None)))
            for _ in range(many)
        ],
    }


def found(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, **rows: Sequence[Row]) -> list[Row]:
    made = tg.program(R=relation)
    return found(made.run({stream.name: rows[stream.name] for stream in made.definition.inputs})["R"].rows())


# --- what they mean ---------------------------------------------------------------------------------------------------


def test_a_window_has_its_end_and_not_its_start() -> None:
    rows = [("a", t, 1, None) for t in (1, 2, 4, 5)]
    totals = MADE.windows(between(), by="k").agg(n=tg.count(), first=tg.min(MADE.t))
    assert run(totals, Begun=[("a", 1)], Ended=[("a", 4)], Made=rows) == [("a", 1, 4, 2, 2)]
    assert run(between(), Begun=[("a", 1)], Ended=[("a", 4)]) == [("a", 1, 4)]


def test_a_row_that_opens_changes_nothing_while_a_window_is_open() -> None:
    assert run(between(), Begun=[("a", 1), ("a", 3), ("a", 7)], Ended=[("a", 5), ("a", 6), ("a", 9)]) == [
        ("a", 1, 5),
        ("a", 7, 9),
    ]


def test_rows_of_one_instant_are_judged_by_what_was_before() -> None:
    """They close what was open, and open the next one; where nothing was open they open one, and close none."""
    assert run(between(), Begun=[("a", 1), ("a", 4)], Ended=[("a", 4), ("a", 6)]) == [("a", 1, 4), ("a", 4, 6)]
    assert run(between(), Begun=[("a", 4)], Ended=[("a", 4), ("a", 6)]) == [("a", 4, 6)]
    totals = MADE.windows(between()).agg(n=tg.count(), total=tg.sum(MADE.v))
    rows = [("a", 4, 1, None), ("a", 4, 1, None), ("a", 5, 2, None)]
    given: dict[str, Any] = {"Begun": [("a", 1), ("a", 4)], "Ended": [("a", 4), ("a", 6)], "Made": rows}
    assert run(totals, **given) == [("a", 1, 4, 2, 2), ("a", 4, 6, 1, 2)]


def test_a_key_that_is_null_opens_nothing() -> None:
    given: dict[str, Any] = {
        "Begun": [(None, 1), ("a", 1)],
        "Ended": [(None, 4), ("a", 4)],
        "Made": [(None, 2, 1, 1.0)],
    }
    assert run(between(), **given) == [("a", 1, 4)]
    assert run(MADE.windows(between(empty=True)).agg(n=tg.count()), **given) == [("a", 1, 4, 0)]
    assert run(MADE.in_context(between()), **given) == []
    assert run(MADE.not_in_context(between()), **given) == [(None, 2, 1, 1.0)]


def test_a_window_without_a_row_is_reported_where_that_is_asked_for() -> None:
    given: dict[str, Any] = {
        "Begun": [("a", 1), ("a", 5)],
        "Ended": [("a", 4), ("a", 9)],
        "Made": [("a", 6, None, 0.5)],
    }
    totals = MADE.windows(between()).agg(n=tg.count(), total=tg.sum(MADE.v))
    assert run(totals, **given) == [("a", 5, 9, 1, None)]
    every = MADE.windows(between(empty=True)).agg(n=tg.count(), total=tg.sum(MADE.v))
    assert run(every, **given) == [("a", 1, 4, 0, None), ("a", 5, 9, 1, None)]
    assert run(MADE.windows(between(empty=True)).agg(), **given) == [("a", 1, 4), ("a", 5, 9)]


def test_a_window_that_no_row_closes_ends_after_its_longest_time() -> None:
    """A row that opens while one is open prolongs nothing, and may open the next one where it ends."""
    opens = [("a", 1), ("a", 4), ("a", 8), ("a", 20)]
    assert run(between(7), Begun=opens, Ended=[]) == [("a", 1, 8), ("a", 20, 27), ("a", 8, 15)]
    assert run(between(7), Begun=opens, Ended=[("a", 5), ("a", 8)]) == [("a", 1, 5), ("a", 20, 27), ("a", 8, 15)]
    assert run(between(7), Begun=[("a", 1), ("a", 4), ("a", 6)], Ended=[("a", 5)]) == [("a", 1, 5), ("a", 6, 13)]
    days = tg.stream("Days", "k string, d date", progress="d")
    limited = tg.between(days, days.where(days.k == "b"), at_most=2)
    rows = tg.program(R=limited).run({"Days": [("a", "2026-03-01")]})["R"].rows()
    assert [(str(row["start"]), str(row["end"])) for row in rows] == [("2026-03-01", "2026-03-03")]


def test_rows_of_the_same_stream_open_and_close_windows() -> None:
    events = tg.stream("Events", "user string, at timestamp, what string", progress="at")
    visits = tg.between(events.where(events.what == "in"), events.where(events.what == "out"), by="user")
    clicks = events.windows(visits).agg(n=tg.count_if(events.what == "click"), all=tg.count())
    rows = [("ann", f"2026-03-02T10:0{minute}Z", what) for minute, what in enumerate(("in", "click", "click", "out"))]
    (row,) = tg.program(R=clicks).run({"Events": rows})["R"].rows()
    assert (row["end"].minute, row["n"], row["all"]) == (3, 2, 3)


def test_they_stand_above_joins_and_below_them() -> None:
    """The limit bounds what a join with windows keeps."""
    names = tg.stream("Names", "k string, t bigint, name string", progress="t").as_("n")
    begun = BEGUN.as_("b")
    opened = begun.join(names, begun.k == names.k, names.t <= begun.t, begun.t <= names.t + 5).select(
        k=names.name, t=begun.t
    )
    windows = tg.between(opened, ENDED, by="k", at_most=10)
    w, made = windows.as_("w"), MADE.as_("m")
    pairs = made.join(w, made.k == w.k, w.start <= made.t, made.t < w.end).select(
        made.k, made.v, made.t, w.start, w.end
    )
    rows: dict[str, Any] = {
        "Begun": [("x", 3), ("y", 4)],
        "Names": [("x", 1, "a"), ("y", 0, "b")],
        "Ended": [("a", 6)],
        "Made": [("a", 2, 1, None), ("a", 3, 2, None), ("b", 13, 3, None), ("b", 14, 4, None)],
    }
    assert run(pairs, **rows) == [("a", 2, 3, 3, 6), ("b", 3, 13, 4, 14)]
    assert tg.program(R=pairs).check() == []
    assert "unbounded" not in str(tg.program(R=pairs).explain())
    totals = made.windows(windows, by=made.k).agg(total=tg.sum(made.v))
    assert run(totals, **rows) == [("b", 4, 14, 7)]


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_they_mean_what_loops_over_the_rows_find(seed: int) -> None:
    rows = drawn(seed)
    meant = evaluate_program(program().definition, {name: list(own) for name, own in rows.items()})
    wanted = expected(rows)
    for name in NAMES:
        assert sorted(meant[name], key=str) == wanted[name], name


@pytest.mark.parametrize("seed", shards(8, 2))
def test_rows_are_those_of_the_loops_whatever_the_batching(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any stream may be ahead, in disorder that progress permits, with starts from the checkpoint in between, which has
    what changed alone.
    """
    rng, rows = random.Random(seed), drawn(seed)
    monkeypatch.setattr(state, "SMALL", rng.choice((0, SMALL)))
    completed = dict.fromkeys(("Windows", "Limited", "Totals", "Values", "Every"), "end")
    results = whatever_is_ahead(program, rows, rng, tmp_path, completed, sessions=3, steps=4)
    wanted = expected(rows)
    assert all(len(wanted[name]) > 1 for name in NAMES)
    for name in NAMES:
        assert found(results[name]) == wanted[name], name


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same_rows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    monkeypatch.setattr(placement, "MOST_SHARDS", 4)
    rows = drawn(4)
    with testing.drive(
        program(), spark=spark, driver_bytes=0 if shard_bytes else 1 << 20, shard_bytes=shard_bytes
    ) as drive:
        for until in (25, 200):
            for name, own in rows.items():
                drive.add(name, [row for row in own if (row[1] <= 25) == (until == 25)])
                drive.advance(name, t=until)
            drive.step()
        drive.finish()
        drive.step()
        wanted = expected(rows)
        for name in NAMES:
            assert found(drive.results(name)) == wanted[name], name


# --- when they are final, and what is kept ----------------------------------------------------------------------------


def test_nothing_waits_for_an_end_that_has_not_come(tmp_path: Path) -> None:
    made = tg.program(
        Totals=MADE.windows(between()).agg(n=tg.count()), Inside=MADE.in_context(between()).select("k", "t")
    )
    with made.session(checkpoint=tmp_path) as session:
        session.push("Begun", [("a", 1), ("b", 3)])
        session.push("Ended", [("b", 6)])
        session.push("Made", [("a", t, 1, None) for t in range(1, 20)] + [("b", 5, 1, None)])
        for name in ("Begun", "Ended", "Made"):
            session.advance(name, 15)
        session.step()
        assert found(session.results("Totals")) == [("b", 3, 6, 1)]
        assert len(session.results("Inside")) == 14 + 1
        # That `a` is open; the last change of `a` for rows to come; what its rows have come to.
        kept = session.live_rows()
        assert sum(rows for name, rows in kept.items() if name.startswith(("Totals", "Inside"))) == 1 + 1 + 1
    (listed,) = (one for one in list_state(LocalStore(tmp_path)).operators if "windows" in one.of.keeps.bounds[0])
    (kind,) = listed.kinds
    assert (kind.kept.rows, kind.kept.bounds) == (1, {"first": (1, 1)})


def test_no_instant_closes_what_is_open() -> None:
    """What is open is said, and what is final."""
    rows: dict[str, Any] = {"Begun": [("a", 1), ("b", 2)], "Ended": [("a", 4)], "Made": [("b", 3, 1, None)]}
    for made in (between(), MADE.windows(between()).agg(n=tg.count()), MADE.in_context(between())):
        program = tg.program(R=made)
        given = {stream.name: rows[stream.name] for stream in program.definition.inputs}
        with pytest.raises(
            tg.QueryError, match="TG417 no instant closes what may be open at the end: windows that"
        ) as at:
            program.run(given, close_at=9)
        told = str(at.value)
        assert "because       a row that closes it ends such a window" in told
        assert "windows that have ended are final" in told
        assert "hint          leave out close_at; to end them all, add rows that close them before the streams" in told
    found_too = MADE.partition_by("k", tie="v").derive(Some=tg.situation(MADE.v > 0)).Some
    both = tg.program(R=between(), Some=found_too).run(rows, close_at=9)
    assert found(both["R"].rows()) == [("a", 1, 4)]
    assert [row["te"] for row in both["Some"].rows()] == [9]


@pytest.mark.parametrize("longest", [None, 9])
def test_a_key_that_is_an_instant_lets_no_window_pass(longest: int | None) -> None:
    """A window is final at its end, though all rows of its key have come before."""
    both = tg.stream(
        "Both",
        "k bigint, t bigint, u bigint, what string",
        progress=("t", "u"),
        relations=lambda r: (r.u <= r.t + 4) & (r.t <= r.u + 12),
    )
    begun, ended = both.where(both.what == "begun"), both.where(both.what == "ended")
    windows = tg.between(begun, ended, by=("k", "u"), at_most=longest, opens_at="t", closes_at="t")
    with tg.program(R=windows).session() as session:
        session.push("Both", [(1, 19, 16, "begun"), (1, 28, 16, "ended" if longest is None else "")])
        session.step()
        session.advance("Both", {"u": 29})
        session.step()
        assert session.progress["R"]["u"] < 16
        session.finish()
        session.step()
        assert found(session.results("R")) == [(1, 16, 19, 28)]


def test_a_window_that_has_ended_leaves_nothing(tmp_path: Path) -> None:
    """Also where there are so many that changes are written alone."""
    many = SMALL + 100
    made = tg.program(Totals=MADE.windows(between()).agg(n=tg.count(), total=tg.sum(MADE.v)))
    keys = [f"k{number}" for number in range(many)]
    with made.session(checkpoint=tmp_path) as session:
        session.push("Begun", [(key, 1) for key in keys])
        session.push("Made", [(key, 2, 1, None) for key in keys])
        for name in ("Begun", "Ended", "Made"):
            session.advance(name, 2)
        session.step()
    with made.session(checkpoint=tmp_path) as session:
        session.push("Made", [("k1", 3, 5, None), ("k2", 3, 7, None)])
        session.push("Ended", [("k1", 3)])
        for name in ("Begun", "Ended", "Made"):
            session.advance(name, 4)
        session.step()
        assert found(session.results("Totals")) == [("k1", 1, 3, 2, 6)]
    with made.session(checkpoint=tmp_path) as session:
        session.push("Ended", [(key, 9) for key in keys])
        session.finish()
        session.step()
        rows = session.results("Totals")
        assert len(rows) == many - 1 + (1 if any(row["k"] == "k1" for row in rows) else 0)
        assert [tuple(row.values()) for row in rows if row["k"] == "k2"] == [("k2", 1, 9, 2, 8)]
        assert not any(session.live_rows().values())


@pytest.mark.parametrize("longest", [None, LONGEST])
def test_a_key_whose_window_has_closed_is_kept_no_more(
    longest: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of visits, each with a number of its own, those that go on are kept, and told as such."""
    made = tg.program(
        Totals=MADE.windows(between(longest)).agg(n=tg.count()),
        Rows=MADE.in_context(between(longest)),
        Others=MADE.not_in_context(between(longest)),
    )
    with made.session(checkpoint=tmp_path) as session:
        for t in range(0, 300, 3):
            session.push("Begun", [(f"k{t}", t)])
            session.push("Made", [(f"k{t}", t + 1, 1, None)])
            session.push("Ended", [(f"k{t}", t + 2)] if t else [])
            for name in ("Begun", "Ended", "Made"):
                session.advance(name, t + 2)
            session.step()
        kept = {name: rows for name, rows in session.live_rows().items() if rows}
    assert sum(kept.values()) <= 4, kept
    assert main(["state", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert ("open        1, since 0; kept until they are closed" in told) == (longest is None)


def test_explain_says_when_windows_are_final_and_what_is_kept() -> None:
    told = str(tg.program(Totals=MADE.windows(between()).agg(n=tg.count(), total=tg.sum(MADE.v))).explain())
    for line in (
        "final when  time <= min(Begun.t, Ended.t)",
        "final when  t <= min(Made.t, Totals~2.time)",
        "final when  end <= Totals~4.t",
        "holds       open: keys(Totals~1 by k) × 1",
        "holds       last: keys(Totals~2 by open k)",
        "holds       windows: keys(Totals~4 by k)",
        "0: where closed or open holds before the row's instant, begins open, unless it holds",
        "1: where open holds before the row's instant, ends open",
        "windows from ~opened until ~closes of r0 by k in order of t: n = count(~row), total = sum(v)",
    ):
        assert line in told, line
    assert "unbounded" not in told
    (query,) = (
        q for q in tg.program(Limited=between(LONGEST)).explain().to_dict()["queries"] if q["query"] == "Limited"
    )
    assert "end <= start + 7" in query["relations"]


def test_a_program_computes_what_is_open_once() -> None:
    """Whatever number of its queries ask for it."""
    told = str(program().explain())
    assert told.count("contexts closed (since ever), open of r0 by k") == 2
    assert told.count("contexts closed (since ever), open of r0 by ()") == 1


# --- how they are written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: UNTYPED.between(BEGUN), "TG114 (?s:.*)say which rows close windows"),
        (lambda: UNTYPED.between(BEGUN.t, 1, 5), "TG114 (?s:.*)tg.between"),
        (lambda: UNTYPED.between(BEGUN.t, BEGUN), "TG114 between got (?s:.*)x.between"),
        (lambda: tg.between(BEGUN, ENDED, by="key"), "TG101 rows that open windows have no attribute 'key'"),
        (
            lambda: tg.between(BEGUN, ENDED.rename(k="kind"), by="k"),
            r"TG101 rows that close windows have no attribute 'k'(?s:.*)kind, t; (?s:.*)rename\(\.\.\.=\"k\"\)",
        ),
        (
            lambda: tg.between(BEGUN, ENDED, by="t"),
            "TG114 't' is the instant of rows that open windows, and one of their keys(?s:.*)with_(?s:.*)r.t",
        ),
        (
            lambda: tg.between(BEGUN.with_(u=BEGUN.t + 1), ENDED.rename(t="u"), by="u", opens_at="t"),
            "TG114 'u' is the instant of rows that close windows, and one of their keys",
        ),
        (
            lambda: MADE.windows(tg.between(NUMBERED, NUMBERED, by="v"), by="t"),
            "TG114 't' is the instant of the rows in windows, and one of their keys",
        ),
        (
            lambda: tg.between(BEGUN, ENDED, by=BEGUN.k.upper()),
            r"TG114 between goes by attributes, and upper\(k\) is computed(?s:.*)with_\(key=\.\.\.\)(?s:.*)by=\"key\"",
        ),
        (lambda: tg.between(TABLE, ENDED, by="k"), "TG162 rows that open windows are those of streams(?s:.*)declare a"),
        (lambda: tg.between(BEGUN, TABLE, by="k"), "TG162 rows that close windows are those of streams"),
        (
            lambda: UNTYPED.between(BEGUN, ENDED, by="k", empty="x"),
            "TG114 empty='x' says neither yes nor no(?s:.*)give True where windows without rows are wanted",
        ),
        (
            lambda: UNTYPED_MADE.windows(between().where(lambda w: w.end > 3)),
            r"TG114 a Relation says not which windows there are\n(?s:.*)as tg.between\(\.\.\.\) has made them",
        ),
        (
            lambda: UNTYPED_MADE.in_context(between().where(lambda w: w.end > 3)),
            r"TG114 in_context got a Relation(?s:.*)tg.between\(\.\.\.\) as it is",
        ),
        (lambda: tg.between(BEGUN, ENDED, by=("k", "k")), "TG103 rows are partitioned by k twice"),
        (lambda: tg.between(BEGUN, ENDED, by="k", at_most=0), "TG160 at_most=0 is not positive"),
        *(
            (
                lambda many=many: tg.between(BEGUN, ENDED, by="k", at_most=many),
                r"TG160 at_most=\d+ is longer than instants lie apart(?s:.*)leave it out: windows last then until",
            )
            for many in (10**18, 10**30)
        ),
        (
            lambda: tg.between(AT, AT, by="k", at_most=10**30),
            r"TG160 at_most is a duration here, not 10+(?s:.*)write \"5s\"",
        ),
        (lambda: MADE.windows(tg.session(10**30)), r"TG160 gap=10+ is longer than instants lie apart(?s:.*)shorter"),
        (lambda: tg.between(MADE, ENDED, by="k", opens_at="v"), "TG117 opens_at='v' holds no instants(?s:.*)of t"),
        (
            lambda: tg.between(BEGUN, ENDED.select("k"), by="k", closes_at="k"),
            "TG117 closes_at='k' holds no instants(?s:.*)rows without an instant",
        ),
        (lambda: UNTYPED.between(BEGUN, ENDED, by="k", at_most="5m"), "TG160 at_most is a number of ticks here"),
        (
            lambda: tg.between(BEGUN, ENDED.select("t", k=tg.lit(1)), by="k"),
            "TG102 'k' is string, and 'k' of rows that close is bigint",
        ),
        (
            lambda: tg.between(BEGUN.with_(u=BEGUN.t + 1), ENDED, by="k"),
            "TG117 which attribute orders the rows(?s:.*)opens_at=",
        ),
        (
            lambda: MADE.windows(between(), by=("k", "v")),
            r"TG114 windows\(...\) goes by k, v, and these windows are of k",
        ),
        (lambda: MADE.windows(between(), by="v"), "TG102 'v' is bigint, and 'k' of the windows is string"),
        (lambda: MADE.windows(between(), tie="v"), "TG114 windows between rows (?s:.*)tg.rows"),
        (lambda: MADE.windows(between()).agg(start=tg.count()), "TG103 attribute 'start' exists already"),
        (lambda: MADE.in_context(between(), "open"), "TG187 these windows are one context, and in_context names"),
        (lambda: MADE.in_context(between(), values={"v": "start"}), "TG103 attribute 'v' exists already"),
        (
            lambda: MADE.in_context(between(), values=["since"]),  # type: ignore[arg-type]  # what is tried
            r"TG114 values=\['since'\] says not(?s:.*)the new name first",
        ),
        (lambda: MADE.in_context(between(), values={"to": "end"}), "TG101 (?s:.*)values=.*since.*start"),
        (lambda: UNTYPED.windows_between(BEGUN, ENDED), "TG131 "),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


def test_options_may_be_values_of_numpy() -> None:
    assert tg.between(BEGUN, ENDED, by="k", empty=np.True_)._empty is True  # type: ignore[arg-type]  # what is tried


def test_they_show_how_they_are_written() -> None:
    assert repr(MADE.windows(between(), by="k")) == (
        "between rows that open and rows that close by k, in order of t; say what each window yields: .agg(...)"
    )


@pytest.mark.parametrize("mark", ["~", "~~"])
@pytest.mark.parametrize("name", ["opened", "closes", "row", "rows", "number", "since", "until"])
def test_no_name_of_a_user_is_one_of_the_translation(name: str, mark: str) -> None:
    """Of keys, of values that aggregates read, and of aggregates."""
    own = f"{mark}{name}"
    rows: dict[str, Any] = {"Begun": [("a", 1)], "Ended": [("a", 4)], "Made": [("a", 3, 7, None), ("a", 4, 1, None)]}
    begun, ended, made = (stream.rename(k=own) for stream in (BEGUN, ENDED, MADE))
    for longest in (None, 9):
        windows = tg.between(begun, ended, by=own, at_most=longest)
        assert run(windows, **{n: rows[n] for n in ("Begun", "Ended")}) == [("a", 1, 4)]
        assert run(made.windows(windows).agg(n=tg.count()), **rows) == [("a", 1, 4, 2)]
        valued = MADE.rename(v=own)
        assert run(valued.windows(between(longest)).agg(total=tg.sum(valued[own])), **rows) == [("a", 1, 4, 8)]
        named = MADE.windows(between(longest)).agg(**{own: tg.count(), f"~{own}": tg.sum(MADE.v)})
        assert run(named, **rows) == [("a", 1, 4, 2, 8)]


def test_names_of_keys_are_free() -> None:
    """Those that changes of contexts have as well, and prefixes."""
    begun, ended = (stream.rename(k="time").as_("s") for stream in (BEGUN, ENDED))
    made = MADE.as_("m").rename(k="context")
    windows = tg.between(begun, ended, by=begun["time"])
    assert windows.schema.names == ("time", "start", "end")
    rows: dict[str, Any] = {"Begun": [("a", 1)], "Ended": [("a", 4)], "Made": [("a", 3, 1, None)]}
    assert run(windows, **rows) == [("a", 1, 4)]
    assert run(made.windows(windows, by="context").agg(n=tg.count()), **rows) == [("a", 1, 4, 1)]
    assert run(tg.between(BEGUN, ENDED, by="k", opens_at="t", closes_at=ENDED.t), **rows) == [("a", 1, 4)]
