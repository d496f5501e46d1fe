"""Files of a batch that several threads take in: the same results, fates of rows and places as one after the other."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.shards import shards
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.ingest import ingest as intake
from tidegate.runtime.ingest.inputs import Arrivals, shares
from tidegate.runtime.state.store.local import LocalStore

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")


def program() -> tg.Program:
    """Event runs with and without a key, partial aggregates, and a buffer of rows."""
    whole, parted = readings.partition_by(), readings.partition_by("k")
    alone = whole.derive(A=tg.situation(readings.x > 1), B=tg.situation(readings.x < 1, at_least=2))
    keyed = parted.derive(A=tg.situation(readings.x > 0), B=tg.situation(readings.x > 1))
    a, b = readings.as_("a"), readings.as_("b")
    return tg.program(
        Alone=alone.match(alone.A.before(alone.B) | alone.A.meets(alone.B), within=40),
        Keyed=keyed.match(keyed.B.during(keyed.A) | keyed.B.finishes(keyed.A), within=30),
        Counted=readings.group_by(readings.k, w=tg.ceil(readings.t, 10)).agg(n=tg.count(), total=tg.sum(readings.x)),
        Twice=a.join(b, a.k == b.k, b.t == a.t + 1, a.x == b.x).select(k=a.k, t=b.t),
    )


NAMES = ("Alone", "Keyed", "Counted", "Twice")


def written(folder: Path, rng: random.Random, files: int, overlap: int) -> None:
    """Events of neighbouring spans of time a file, one at an instant; some rows malformed, some too late."""
    folder.mkdir()
    spans: list[list[tuple[int | None, int | None, int | None]]] = [[] for _ in range(files)]
    for t in range(20 * files):
        if rng.random() < 0.8:
            number = (t + rng.randrange(overlap + 1)) // 20
            spans[min(number, files - 1)].append((rng.randrange(3), t, rng.randrange(3)))
    for number, rows in enumerate(spans):
        rng.shuffle(rows)
        if rng.random() < 0.5:
            rows.insert(rng.randrange(len(rows) + 1), (1, None, 1))
        columns = {name: [row[place] for row in rows] for place, name in enumerate(("k", "t", "x"))}
        table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
        pq.write_table(table, folder / f"{number:03d}.parquet")


def outcome(folder: Path, threads: int, per_batch: int | None, delay: int, **options: Any) -> dict[str, Any]:
    given = {"R": parquet(folder, per_batch=per_batch, delay=delay, bounded=True, policy="quarantine", **options)}
    with Session(program().facts, sources=given, options=RunOptions(threads=threads)) as session:
        progress = [report.progress for report in session.process()]
        results = {name: sorted(map(str, session.results(name))) for name in NAMES}
        return results | {"counts": session.counts, "set aside": session.quarantine_rows(), "progress": progress}


@pytest.mark.parametrize("seed", shards(12, 4))
def test_any_number_of_threads_gives_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    overlap = rng.choice((0, 0, 3))
    written(tmp_path / "in", rng, 9, overlap)
    per_batch, delay = rng.choice((4, 9, None)), rng.choice((overlap, overlap + 2))
    alone = outcome(tmp_path / "in", 1, per_batch, delay)
    assert all(alone[name] for name in NAMES)
    for threads in (2, 3, 20):
        monkeypatch.setattr(intake, "TOGETHER", rng.choice((1, 40, 500_000)))
        assert outcome(tmp_path / "in", threads, per_batch, delay) == alone


def test_threads_take_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "in", random.Random(1), 6, 0)
    both, seen = threading.Barrier(2, timeout=60), set()
    original = intake.ingest_rows

    def ingesting(*given: Any) -> Any:
        both.wait()  # breaks unless another thread does the same meanwhile
        seen.add(threading.get_ident())
        return original(*given)

    monkeypatch.setattr(intake, "ingest_rows", ingesting)
    assert outcome(tmp_path / "in", 2, None, 0)["Keyed"]
    assert len(seen) == 2


def test_rows_of_a_stream_with_a_key_are_compared_with_all_before_them(tmp_path: Path) -> None:
    written(tmp_path / "in", random.Random(2), 4, 0)
    for name in ("008", "009"):
        pq.write_table(pq.read_table(tmp_path / "in" / "003.parquet"), tmp_path / "in" / f"{name}.parquet")
    alone, side_by_side = (outcome(tmp_path / "in", n, None, 100, key=["k", "t"]) for n in (1, 2))
    assert alone == side_by_side
    assert alone["counts"]["R"].rejected["duplicate"] > 20


def test_the_first_error_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        table = pa.table({"k": [1], "t": [number], "x": [1 << 62 if number > 0 else 1]})
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    derived = readings.partition_by("k").derive(A=tg.situation(readings.x * 2 > 0))
    given = {"R": parquet(tmp_path / "in", delay=0, on_error="fail")}
    with (
        Session(tg.program(A=derived.A).facts, sources=given, options=RunOptions(threads=3)) as session,
        pytest.raises(EvaluationError, match=r"R, row 0 of .*1\.parquet"),
    ):
        session.step()


def test_shares_follow_each_other_and_are_of_like_size(tmp_path: Path) -> None:
    paths = []
    for number, size in enumerate((5, 5, 5, 5, 20, 1, 1, 1, 17)):
        paths.append(str(tmp_path / str(number)))
        Path(paths[-1]).write_bytes(b" " * size)
    pushed = (intake.Arrival("push", [(1, 1, 1)]),)
    all_of_it = Arrivals(pushed, tuple(paths), "parquet", program().facts.streams["Counted"].schema, None)
    parts = shares(all_of_it, 3)
    assert [one.paths for one in parts if isinstance(one, Arrivals)] == [
        tuple(paths[:4]),
        tuple(paths[4:5]),
        tuple(paths[5:]),
    ]
    assert [one.pushed for one in parts if isinstance(one, Arrivals)] == [pushed, (), ()]
    assert shares(all_of_it, 1) == [all_of_it]
    assert len(shares(all_of_it, 50)) == len(paths)
    assert shares(pushed, 4) == [pushed]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_file_that_vanishes_before_it_is_read_is_told_as_one_that_cannot_be_read(
    tmp_path: Path, threads: int
) -> None:
    written(tmp_path / "in", random.Random(0), 4, 0)
    store, vanishing = LocalStore(tmp_path / "state"), tmp_path / "in" / "001.parquet"
    store.failpoints.arm("batch-after-intent", vanishing.unlink)
    given = {"R": parquet(tmp_path / "in", delay=0, bounded=True)}
    with Session(program().facts, store, sources=given, options=RunOptions(threads=threads)) as session:
        with pytest.raises(QueryError, match=f"TG412 .*{vanishing} cannot be read as parquet"):
            session.step()
        session.step()
        assert session.counts["R"].rows_in > 0


def test_a_number_of_threads_is_a_whole_one(tmp_path: Path) -> None:
    for wrong in (0, -1, True, 2.0, "2"):
        with pytest.raises(QueryError, match="is no number of threads"):
            program().session(threads=wrong)  # type: ignore[arg-type]  # what it is about
