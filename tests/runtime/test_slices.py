"""Rows of a batch that are taken in some at a time: the same as all at once, and files that are read when it is their
turn.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.algebra.evaluation import EvaluationError
from tidegate.runtime.connectors.sources import Files, parquet, source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.ingest import buffering as absorption
from tidegate.runtime.ingest import ingest as intake
from tidegate.runtime.ingest import inputs

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")


def program() -> tg.Program:
    """A buffer of event runs, one of partial aggregates, and one of rows."""
    derived = readings.partition_by("k").derive(A=tg.situation(readings.x > 0), B=tg.situation(readings.x > 1))
    a, b = readings.as_("a"), readings.as_("b")
    return tg.program(
        Found=derived.match(derived.B.during(derived.A) | derived.B.finishes(derived.A), within=30),
        Counted=readings.group_by(readings.k, w=tg.ceil(readings.t, 10)).agg(n=tg.count(), total=tg.sum(readings.x)),
        Twice=a.join(b, a.k == b.k, b.t == a.t + 1, a.x == b.x).select(k=a.k, t=b.t),
    )


def written(folder: Path, rng: random.Random, files: int) -> None:
    """Some rows come twice, some too late, and some files have times in common."""
    folder.mkdir(exist_ok=True)
    for number in range(files):
        rows = {(k, t) for k in range(3) for t in range(10 * number - 4, 10 * number + 10) if rng.random() < 0.6}
        table = {"k": [k for k, _ in rows], "t": [t for _, t in rows], "x": [rng.randrange(3) for _ in rows]}
        # a file per span of time, so a row may be there twice with another value
        pq.write_table(pa.table(table), folder / f"{number:03d}.parquet")


def outcome(folder: Path, per_batch: int, delay: int) -> dict[str, Any]:
    options: dict[str, Any] = {"delay": delay, "bounded": True, "key": ["k", "t"], "policy": "quarantine"}
    with Session(program().facts, sources={"R": parquet(folder, per_batch=per_batch, **options)}) as session:
        session.process()
        results = {name: sorted(map(str, session.results(name))) for name in ("Found", "Counted", "Twice")}
        return results | {"counts": session.counts, "set aside": sorted(map(str, session.quarantine_rows()))}


@pytest.mark.parametrize("seed", range(4))
def test_rows_stored_some_at_a_time_give_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    written(tmp_path / "in", rng, 8)
    per_batch, delay = rng.choice((2, 3, 8)), rng.choice((0, 4))
    at_once = outcome(tmp_path / "in", per_batch, delay)
    assert at_once["Found"]
    for together in (1, 40):
        monkeypatch.setattr(intake, "TOGETHER", together)
        assert outcome(tmp_path / "in", per_batch, delay) == at_once


def test_rows_stored_some_at_a_time_make_one_partial_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "TOGETHER", 1)
    counted = tg.program(Counted=readings.group_by("k", end=tg.ceil(readings.t, 10)).agg(n=tg.count()))
    with Session(counted.facts, sources={"R": source(None, delay=20)}) as session:
        for t in range(1, 4):
            session.push("R", [(1, t, 1), (2, t, 1)])
        session.step()
        assert session.live_rows() == {"R#0": 2}


def test_an_error_names_the_row_also_of_later_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "TOGETHER", 2)
    derived = readings.partition_by("k").derive(A=tg.situation(readings.x * 2 > 0))
    with Session(tg.program(A=derived.A).facts, sources={"R": source(None, delay=0, on_error="fail")}) as session:
        session.push("R", [(1, 1, 1), (1, 2, 1)])
        session.push("R", [(1, 3, 1), (1, 4, 1 << 62)])
        with pytest.raises(EvaluationError, match="R, row 1 of push"):
            session.step()


def test_a_file_is_read_when_those_before_it_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        pq.write_table(pa.table({"k": [1], "t": [number], "x": [1]}), tmp_path / "in" / f"{number:03d}.parquet")
    seen: list[str] = []
    read, absorbed = inputs.read_file, absorption.absorbed

    def reading(path: str, *rest: Any) -> Any:
        seen.append(Path(path).stem)
        return read(path, *rest)

    def storing(*given: Any) -> Any:
        seen.append("stored")
        return absorbed(*given)

    monkeypatch.setattr(inputs, "read_file", reading)
    monkeypatch.setattr(intake, "absorbed", storing)
    monkeypatch.setattr(intake, "TOGETHER", 1)
    one = tg.program(A=readings.partition_by("k").derive(A=tg.situation(readings.x > 0)).A)
    with Session(one.facts, sources={"R": tg.source(Files(str(tmp_path / "in"), "parquet"), delay=0)}) as session:
        session.step()
    assert seen == ["000", "stored", "001", "stored", "002", "stored"]
