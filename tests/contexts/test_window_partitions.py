"""Partitions that are windows of a context: what is kept of them does not grow with the windows, but for rows owed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.contexts.traffic import traffic
from tests.runtime.batchings import whatever_is_ahead
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.semantics import evaluate_program
from tidegate.analysis.state.window_partitions import successive_keys
from tidegate.runtime.plan import placement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = traffic()
REPORTS = tg.stream("Reports", "car bigint, segment bigint, time bigint, lane string", progress="time")
INSIDE = REPORTS.in_context(MODEL, "congestion", values={"since": "began"})
SEVERAL = REPORTS.in_context(MODEL, "congestion", "accident", values={"since": "began"})
CLEAR = REPORTS.in_context(MODEL, "clear", values={"since": "began"})
KEYS = ("segment", "since")
TIMES = {"Minutes": 1, "Stopped": 1, "Reports": 2}

Rows = Mapping[str, Sequence[Any]]


def matched(rows: tg.Relation, pattern: str, **options: Any) -> tg.Relation:
    return rows.sequences(
        pattern,
        by=KEYS,
        order="time",
        tie="car",
        define={"A": lambda m: m.A.lane == "exit", "B": lambda m: m.B.lane == "travel"},
        **options,
    )


def counted(rows: tg.Relation) -> tg.Relation:
    found = matched(rows, "A B", matches="any", begin=lambda m: m.A.time)
    return found.group_by("segment", "since", "detected").agg(n=tg.count())


#: Each with how many rows it keeps of a segment at most, whatever number of windows have ended; None: it owes rows of
#: every window until the input ends.
QUERIES: dict[str, tuple[Callable[[tg.Relation], tg.Relation], int | None]] = {
    "numbered": (lambda rows: rows.over(by=KEYS, order="time", tie="car", n=tg.row_number()), 1),
    "before": (lambda rows: rows.over(by=KEYS, order="time", tie="car", before=tg.lag(rows.car, 2)), 2),
    "total": (lambda rows: rows.over(by=KEYS, order="time", tie="car", total=tg.sum(rows.car)), 1),
    "after, for a while": (
        lambda rows: rows.over(by=KEYS, order="time", tie="car", after=tg.lead(rows.car, within=3), n=tg.row_number()),
        4,
    ),
    "after": (lambda rows: rows.over(by=KEYS, order="time", tie="car", after=tg.lead(rows.car)), None),
    "a pair": (lambda rows: matched(rows, "A B", car=lambda m: m.A.car), 4),
    "a pair of any": (lambda rows: matched(rows, "A B", matches="any", car=lambda m: m.A.car), 4),
    "not followed": (lambda rows: matched(rows, "A !B[3]", car=lambda m: m.A.car), 4),
    "as many as there are": (lambda rows: matched(rows, "A B*", many=lambda m: m.rows.agg(tg.count())), None),
    "counted": (counted, 2),
}


def windows_of_three(many: int, segments: int = 2) -> dict[str, list[Any]]:
    """So many windows one after the other in each segment, with some rows in each, of which the last stays open."""
    rng = random.Random(many)
    minutes: list[Any] = []
    reports: list[Any] = []
    for number in range(many):
        for segment in range(segments):
            begin = 20 * number + 3 * segment
            minutes += [(segment, begin, 60, 30.0), (segment, begin + 10, 10, 60.0)]
            reports += [
                (number * 8 + at, segment, begin + 1 + rng.randrange(14), rng.choice(("exit", "exit", "travel")))
                for at in range(4)
            ]
    return {
        "Minutes": sorted(minutes, key=lambda row: row[1]),
        "Stopped": [],
        "Reports": sorted(reports, key=lambda row: (row[2], row[0])),
    }


def fed(relation: tg.Relation, rows: Rows, batches: int) -> tuple[list[int], list[Any]]:
    """How many rows a query keeps after each batch, and its results."""
    kept: list[int] = []
    end = max(row[2] for row in rows["Reports"]) + 100
    with tg.program(Q=relation).session(collect_garbage="exact") as session:
        for number in range(batches):
            low, high = (end * at // batches for at in (number, number + 1))
            for name, place in TIMES.items():
                session.push(name, [row for row in rows[name] if low <= row[place] < high])
                session.advance(name, high - 1)
            session.step()
            kept.append(sum(many for name, many in session.live_rows().items() if name.startswith("Q: ")))
        session.finish()
        session.step()
        return kept, sorted((tuple(row.values()) for row in session.results("Q")), key=str)


def kept_in(session: tg.Session, result: str | None = None) -> int:
    """How many rows operators keep whose partitions are windows: those that look contexts up keep some, too.
    `result`: the operator at the root of this one alone.
    """
    kept = session._runner.state.operators
    by_window = [
        query.name
        for query in session._plan.queries
        if query.ordered is not None and query.ordered.growing and result in (None, query.stream)
    ]
    assert by_window
    return sum(rows.rows for name in by_window if name in kept for rows in kept[name].kept)


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_kept_does_not_grow_with_the_windows(name: str) -> None:
    """Nor do results change."""
    query, most = QUERIES[name]
    relation, rows = query(INSIDE), windows_of_three(60)
    kept, results = fed(relation, rows, 15)
    meant = evaluate_program(tg.program(Q=relation).definition, {name: [*own] for name, own in rows.items()})
    assert results == sorted(meant["Q"], key=str)
    if most is None:
        assert kept[-1] > 40
    else:
        assert kept[-1] <= 2 * most


@pytest.mark.parametrize("by_time", [True, False])
def test_rows_of_frames_go_by_time_or_as_their_window_ends(by_time: bool) -> None:
    """Whichever the report says, the windows that have ended are not kept."""
    relation = framed(total=tg.sum(INSIDE.car), **({} if by_time else {"spread": tg.stddev(INSIDE.car)}))
    rows = windows_of_three(60)
    kept, results = fed(relation, rows, 15)
    meant = evaluate_program(tg.program(Q=relation).definition, {name: [*own] for name, own in rows.items()})
    assert sorted(map(repr, results)) == sorted(map(repr, meant["Q"]))
    # Those of the last nine ticks of two segments, or of the windows that hold.
    assert max(kept[:-1]) <= 8
    (query,) = (one for one in tg.program(Q=relation).explain().to_dict()["queries"] if "per_window" in one)
    assert (query["by_time"], query["let_go"]) == (by_time, [] if by_time else ["since"])


def test_thousands_of_windows() -> None:
    numbered, _ = QUERIES["numbered"]
    pair, _ = QUERIES["a pair"]
    rows = windows_of_three(1500)
    # Of each segment what the pattern keeps of one window, and the window that holds, if one does.
    for query, most in ((numbered, 2 + 2), (pair, 8 + 2)):
        kept, results = fed(query(INSIDE), rows, 30)
        assert max(kept[5:]) <= most
        assert len(results) > 300


def test_what_a_session_finds_is_let_go(tmp_path: Path) -> None:
    """One that goes on from a checkpoint, in which a window holds."""
    program = tg.program(Q=QUERIES["numbered"][0](INSIDE))
    for number in range(3):
        begin = 40 * number
        reports = [(begin + at, 1, begin + at, "") for at in (3, 5, 8)]
        for until, speed, given, kept in ((begin, 30.0, reports, 1), (begin + 15, 60.0, [], 0)):
            with program.session(checkpoint=tmp_path) as session:
                session.push("Minutes", [(1, until, 60 if speed < 40 else 10, speed)])
                session.push("Reports", given)
                for name in TIMES:
                    session.advance(name, until + 10)
                session.step()
                assert [row["n"] for row in session.results("Q")][-3:] == [1, 2, 3]
                assert kept_in(session) == kept


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, pytest.param(1, marks=pytest.mark.long)])
def test_spark_lets_them_go(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    monkeypatch.setattr(placement, "MOST_SHARDS", 2)
    program = tg.program(**{name: QUERIES[key][0](INSIDE) for name, key in (("One", "numbered"), ("Two", "a pair"))})
    rows = windows_of_three(24)
    meant = evaluate_program(program.definition, {name: [*own] for name, own in rows.items()})
    driver_bytes = 0 if shard_bytes else 1 << 20
    with testing.drive(program, spark=spark, driver_bytes=driver_bytes, shard_bytes=shard_bytes) as run:
        reached = dict.fromkeys(TIMES, -1)
        for step in (160, 320, 500):
            for name, at in TIMES.items():
                until = step + 40 if name == "Minutes" else step  # ends are known before all rows of their windows
                run.add(name, [row for row in rows[name] if reached[name] < row[at] <= until])
                run.advance(name, **{"end" if name == "Minutes" else "time": until})
                reached[name] = until
            run.step()
        kept = run.live_rows
        assert sum(many for name, many in kept.items() if name.startswith(("One:", "Two:"))) == 0
        run.finish()
        run.step()
        for name, own in meant.items():
            assert sorted((tuple(row.values()) for row in run.results(name)), key=str) == sorted(own, key=str)


@pytest.mark.parametrize("name", ["numbered", "after, for a while", "a pair", "not followed", "counted", "after"])
@pytest.mark.parametrize("seed", shards(2))
def test_whatever_the_batching(name: str, seed: int, tmp_path: Path) -> None:
    """Also of contexts that are looked up together, and of the default one; and sessions go on from checkpoints."""
    query, _ = QUERIES[name]

    def program() -> tg.Program:
        return tg.program(One=query(INSIDE), Two=query(SEVERAL), Three=query(CLEAR))

    rows = {**windows_of_three(8), "Stopped": [(1, 30, 1, False), (1, 75, 1, True), (0, 47, 0, False)]}
    meant = evaluate_program(program().definition, {name: [*own] for name, own in rows.items()})
    at = next((name for name in ("complete", "detected") if name in query(INSIDE).schema), "time")
    completed = dict.fromkeys(("One", "Two", "Three"), at)
    results = whatever_is_ahead(
        program, rows, random.Random(seed), tmp_path, completed, sessions=3, steps=6, instants=TIMES
    )
    for result, own in meant.items():
        assert sorted((tuple(row.values()) for row in results[result]), key=str) == sorted(own, key=str), result


def keys_of(relation: tg.Relation) -> set[str]:
    facts = tg.program(Q=relation).facts
    return {key for query in facts.queries for key in successive_keys(query.query, facts.program)}


def by(rows: tg.Relation, *keys: str, order: str = "time") -> tg.Relation:
    return rows.over(by=keys, order=order, tie="car", n=tg.row_number())


def framed(**columns: Any) -> tg.Relation:
    return INSIDE.over(by=KEYS, order="time", range=9, **columns)


BESIDE = REPORTS.with_(beside=REPORTS.segment + 1)
LATER = REPORTS.with_(later=REPORTS.time + 5)


TWICE = INSIDE.in_context(MODEL, "accident", values={"second": "began"})
#: Contexts of each window of another one, by its beginning.
INNER = tg.context_model("Inner", by=("segment", "since"), default="none", contexts="some").switch(
    "some", when=INSIDE.where(INSIDE.lane == "exit"), within=("none", "some")
)
WITHIN = INSIDE.in_context(INNER, "some", values={"second": "began"})

LANES = tg.context_model("Lanes", by=("segment", "lane"), default="none", contexts="some").switch(
    "some", when=REPORTS.where(REPORTS.car > 3), within=("none", "some")
)


def of_changes(*keys: str) -> tg.Relation:
    """Numbers of rows with the last change before them, by these keys and the beginning of its window."""
    left, right = REPORTS.as_("l"), LANES.changes.where(LANES.changes["context"] == "some").as_("r")
    found = left.asof_join(right, by=keys, left_on=left.time, right_on=right.time, tie="change", how="inner")
    named = [f"l.{key}" for key in keys]
    return found.over(by=(*named, "r.began"), order="l.time", tie="l.car", n=tg.row_number())


@pytest.mark.parametrize(
    ("relation", "keys"),
    [
        (lambda: by(INSIDE, "segment", "since"), {"since"}),
        (lambda: by(INSIDE.rename(since="window", segment="of"), "of", "window"), {"window"}),
        (lambda: by(INSIDE.with_(window=INSIDE.since, of=INSIDE.segment), "of", "window"), {"window"}),
        (lambda: by(SEVERAL, "segment", "since", "lane"), {"since"}),
        (lambda: by(CLEAR, "segment", "since"), {"since"}),
        (lambda: by(tg.result_of("Inside", INSIDE), "segment", "since"), {"since"}),
        (lambda: by(by(INSIDE, "segment", "since").rename(n="m"), "segment", "since"), {"since"}),
        (
            lambda: by(BESIDE.in_context(MODEL, "clear", by="beside", values={"since": "began"}), "beside", "since"),
            {"since"},
        ),
        # Windows of several segments come one after the other, or at another instant than that by which rows come.
        (lambda: by(INSIDE, "since"), set()),
        (lambda: by(INSIDE, "lane", "since"), set()),
        (
            lambda: by(BESIDE.in_context(MODEL, "clear", by="beside", values={"since": "began"}), "segment", "since"),
            set(),
        ),
        (
            lambda: by(LATER.in_context(MODEL, "clear", at="later", values={"since": "began"}), "segment", "since"),
            set(),
        ),
        (lambda: by(INSIDE.with_(window=INSIDE.since // 2), "segment", "window"), set()),
        # Rows of frames by range go by time, but where they are kept partition by partition.
        (lambda: framed(total=tg.sum(INSIDE.car), many=tg.count()), set()),
        (lambda: framed(total=tg.sum(INSIDE.car), spread=tg.stddev(INSIDE.car)), {"since"}),
        (lambda: framed(least=tg.min(INSIDE.car)), {"since"}),
        # Two beginnings: of contexts of the segment, or of one that the other one tells apart.
        (lambda: by(TWICE, "segment", "second", "since"), {"since", "second"}),
        (lambda: by(WITHIN, "segment", "second", "since"), {"since"}),
        # Changes of all lanes of a segment come one after the other.
        (lambda: of_changes("segment"), set()),
        (lambda: of_changes("segment", "lane"), {"r.began"}),
    ],
)
def test_which_partitions_follow_each_other(relation: Callable[[], tg.Relation], keys: set[str]) -> None:
    assert keys_of(relation()) == keys
