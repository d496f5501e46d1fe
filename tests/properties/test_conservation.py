"""The conservation law: in = accepted + Σ rejected[reason], one reason per row, whatever comes in and however it is
cut.

The judge is a reading of the rules row by row, in plain Python.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.shards import shards
from tidegate import testing
from tidegate.runtime.connectors.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
DELAY, GUARD, AGE = 5, 20, 60
S = tg.stream("S", "k bigint, t timestamp, began timestamp, v bigint", progress="t", relations=lambda s: s.began <= s.t)
MALFORMED = {"unparseable", "wrong type", "out of range", "inexact"}
REASONS = MALFORMED | {"null", "relation", "old", "late", "ahead", "duplicate", "conflict"}

Row = dict[str, Any]


def program() -> tg.Program:
    return tg.program(Out=S.select(S.k, S.t, S.v))


def source(*, keyed: bool) -> Source:
    return tg.source(
        None,
        delay=f"{DELAY}m",
        skew_guard=f"{GUARD}m",
        age_guard=f"{AGE}m",
        progress_columns={"t": "upto"},
        key=("k", "t") if keyed else (),
    )


@dataclass(slots=True)
class Judge:
    """The rules, row by row."""

    keyed: bool
    as_text: bool = False
    progress: dt.datetime | None = None
    accepted: dict[Any, Row] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def batch(self, rows: list[Row], clock: dt.datetime) -> None:
        limit, floor = clock + GUARD * MINUTE, clock - AGE * MINUTE
        reached = [self.progress] if self.progress is not None else []
        for row in rows:
            fate = self.fate(row, limit, floor)
            self.counts[fate] += 1
            if fate == "accepted":
                reached.append(row["t"] - DELAY * MINUTE - dt.timedelta(microseconds=1))
            if isinstance(row["upto"], dt.datetime) and row["upto"] <= limit:
                reached.append(row["upto"])
        self.progress = max(reached, default=None)

    def fate(self, row: Row, limit: dt.datetime, floor: dt.datetime) -> str:
        upto = row["upto"]
        if all(row[name] is None for name in S.schema) and isinstance(upto, dt.datetime):
            return "ahead" if upto > limit else "punctuation"
        for name in ("k", "t", "began", "v", "upto"):
            if reason := malformed(name, row[name]):
                return reason
        if row["began"] > row["t"]:
            return "relation"
        if row["t"] < floor:
            return "old"
        if self.progress is not None and row["t"] <= self.progress:
            return "late"
        if row["t"] > limit or (upto is not None and upto > limit):
            return "ahead"
        if self.keyed:
            known = self.accepted.setdefault((row["k"], row["t"]), row)
            if known is not row:
                same = all(known[name] == row[name] for name in S.schema)
                return "duplicate" if same else "conflict"
        return "accepted"


def malformed(name: str, value: Any) -> str | None:
    if name in ("t", "began"):
        if value is None:
            return "null"
        if not isinstance(value, dt.datetime):
            return "unparseable" if isinstance(value, str) else "wrong type"
    if name == "upto" and isinstance(value, str):
        return "unparseable"
    if name in ("k", "v"):
        return (
            {"many": "unparseable", 1.5: "inexact", 2**70: "out of range", True: "wrong type"}.get(value)
            if (value in ("many", 1.5, 2**70) or value is True)
            else None
        )
    return None


def alike(counts: Counter[str], as_text: bool) -> Counter[str]:
    """Counts by fate; where values came as text, what is wrong with one may have another name."""
    found: Counter[str] = Counter()
    for fate, rows in counts.items():
        found["malformed" if as_text and fate in MALFORMED else fate] += rows
    return +found


def random_row(rng: random.Random, now: int) -> Row:
    """A row around minute `now`, its instants on the edges of delay and guard, at times something else."""
    near = (0, 0, 0, 0, 1, 2, -1, -DELAY, -DELAY, -DELAY - 1, -2 * DELAY, GUARD, GUARD, GUARD + 1)
    minute = now + rng.choice((*near, -AGE, -AGE - 1))
    edge = dt.timedelta(microseconds=rng.choice((0, 0, 0, 0, 1, -1)))
    t = START + minute * MINUTE + edge
    row: Row = {"k": rng.choice((1, 2, None)), "t": t, "began": t - rng.choice((0, 0, 1)) * MINUTE}
    row |= {"v": rng.choice((1, 1, 1, 2)), "upto": None}
    match rng.randint(0, 19):
        case 0 | 7:
            row["began"] = t + dt.timedelta(microseconds=1)
        case 1:
            row[rng.choice(("t", "began"))] = rng.choice((None, "soon", 3.5))
        case 2 | 3:
            row[rng.choice(("k", "v"))] = rng.choice(("many", 1.5, 2**70, True))
        case 4:
            row = dict.fromkeys(row)
            row["upto"] = START + (now + rng.choice((-DELAY, -DELAY - 1, -DELAY, -AGE - 1, GUARD + 1))) * MINUTE
        case 5:
            row["upto"] = rng.choice(("soon", START + (now - DELAY) * MINUTE, START + (now + GUARD + 1) * MINUTE))
        case 6:
            row = dict.fromkeys(row)
    return row


def repeats(judge: Judge, rng: random.Random) -> list[Row]:
    """Rows that were accepted before and would not be late now, the oldest of them most of all; some changed."""
    known = [row for row in judge.accepted.values() if judge.progress is None or row["t"] > judge.progress]
    oldest = sorted(known, key=lambda row: row["t"])[: rng.choice((0, 1, 2, 3, 10))]
    return [row | {"v": rng.choice((row["v"], row["v"], 7))} for row in oldest]


def check(run: testing.Drive, judge: Judge) -> None:
    counts = run.counts["S"]
    assert counts.rows_in == counts.accepted + sum(counts.rejected.values())
    found = Counter({"accepted": counts.accepted, "punctuation": counts.punctuations, **counts.rejected})
    assert alike(found, judge.as_text) == alike(judge.counts, judge.as_text)
    assert Counter(row["reason"] for row in run.quarantine()) == Counter(counts.rejected)


def drive_random(run: testing.Drive, judge: Judge, rng: random.Random, batches: int) -> None:
    now = 0
    for _ in range(batches):
        rows = [random_row(rng, now) for _ in range(rng.choice((0, 1, 3, 10, 40)))]
        if rows and rng.random() < 0.5:
            rows += rng.choices(rows, k=rng.randint(1, 3))
        rows += repeats(judge, rng)
        cut = rng.randint(0, len(rows))
        for part in (rows[:cut], rows[cut:]):
            if part:
                run.add("S", part)
        clock = run.clock.now
        judge.batch([dict(row) for row in rows], clock)
        if rng.random() < 0.2:
            run.kill(rng.choice(("batch-after-intent", "commit-before-manifest", "commit-after-manifest")))
        run.step()
        check(run, judge)
        if rng.random() < 0.2:
            run.restart()
        moved = rng.choice((0, 1, 1, 2, 5))
        now += moved
        run.wait(f"{moved}m")


@pytest.mark.parametrize("shard", shards(2))
def test_every_row_has_one_fate_and_every_fate_is_met(shard: int) -> None:
    met: Counter[str] = Counter()
    for seed in range(40)[shard::2]:
        rng = random.Random(seed)
        keyed = rng.random() < 0.7
        with testing.drive(program(), sources={"S": source(keyed=keyed)}, clock=START) as run:
            judge = Judge(keyed)
            drive_random(run, judge, rng, 12)
            met += judge.counts
            run.finish()
            run.step()
            assert len(run.results("Out")) == judge.counts["accepted"]
    assert {fate for fate, rows in met.items() if rows > 10} == REASONS | {"accepted", "punctuation"}, met


@pytest.mark.spark
def test_every_row_has_one_fate_on_spark(spark: SparkSession) -> None:
    rng = random.Random(1)
    with testing.drive(program(), spark=spark, sources={"S": source(keyed=True)}, clock=START, driver_bytes=0) as run:
        drive_random(run, Judge(keyed=True, as_text=True), rng, 6)


@pytest.mark.spark
@pytest.mark.parametrize("driver_bytes", [0, 64 << 20])
def test_columns_that_change_on_spark(spark: SparkSession, tmp_path: Path, driver_bytes: int) -> None:
    fine: Mapping[str, Any] = {"k": [1, 2], "t": [START, START], "began": [START, START], "v": [1, 1]}
    files = {
        "fine": fine,
        "more": {**fine, "w": ["a", "b"]},
        "less": {name: column for name, column in fine.items() if name != "v"},
        "text": {**fine, "v": ["1", "many"]},
    }
    (tmp_path / "in").mkdir()
    for name, columns in files.items():
        pq.write_table(pa.table(dict(columns)), tmp_path / "in" / f"{name}.parquet")
    reports: list[Any] = []
    program().start(
        spark,
        sources={"S": tg.parquet(tmp_path / "in", bounded=True)},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=driver_bytes,
        on_batch=reports.append,
    ).awaitTermination()
    (report,) = reports
    assert report.counts["S"].accepted == 5
    assert report.counts["S"].rejected == {"missing column": 2, "unparseable": 1}
    set_aside = [
        (Path(row["origin"]).stem, row["attribute"], row["reason"])
        for row in tg.read_quarantine(tmp_path / "checkpoint").read_all().to_pylist()
    ]
    assert sorted(set_aside) == [("less", "v", "missing column")] * 2 + [("text", "v", "unparseable")]
