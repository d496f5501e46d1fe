"""Streams with a key: duplicates and conflicts, across batches, files and restarts, in bounded memory."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.types import BIGINT, STRING
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.embedded.steps import segment_cache
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.joins.indexed_rows import IndexedRows
from tidegate.runtime.eval.joins.key_index import KeyIndex
from tidegate.runtime.ingest import ingest
from tidegate.runtime.ingest.keys import RememberedRows, key_memory, key_rejections
from tidegate.runtime.rows import Rows
from tidegate.runtime.state import segments
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.segments import Segment, int64_bounds, read_segments
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

readings = tg.stream("R", "sensor bigint, t bigint, v double", progress="t")
KEYED = {"R": tg.source(None, delay=10, key=("sensor", "t"))}


def hourly() -> tg.Program:
    return tg.program(Sums=readings.group_by(w=tg.ceil(readings.t, 10)).agg(n=tg.count(), total=tg.sum(readings.v)))


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_a_second_row_with_a_key_is_a_duplicate_or_a_conflict(start: Start) -> None:
    with start(hourly(), sources=KEYED) as run:
        run.add("R", [(1, 5, 1.0), (1, 5, 1.0), (1, 5, 2.0), (2, 5, 1.0), (1, 6, 1.0)])
        run.step()
        assert run.counts["R"].rejected == {"duplicate": 1, "conflict": 1}
        run.add("R", [(1, 5, 1.0)])
        run.kill("commit-before-manifest")
        run.step()
        run.restart()
        run.add("R", [(1, 5, 3.0), (1, 6, 1.0), (1, 7, 1.0)])
        run.step()
        assert run.counts["R"].rejected == {"duplicate": 3, "conflict": 2}
        assert [(r["reason"], r["position"]) for r in run.quarantine()][:2] == [("duplicate", 1), ("conflict", 2)]
        run.finish()
        run.step()
        run.expect(Sums=[(10, 4, 4.0)])
        assert set(run.live_rows.values()) == {0}


def test_what_is_remembered_is_bounded_by_the_delay() -> None:
    with testing.drive(hourly(), sources=KEYED) as run:
        most = 0
        for t in range(60):
            run.add("R", [(1, t, 1.0), (2, t, 1.0)])
            run.step()
            most = max(most, run.live_rows["keys of R"])
            if t >= 10:
                run.add("R", [(1, t - 10, 1.0)])
                run.step()
        assert run.counts["R"].rejected == {"duplicate": 50}  # the oldest that is not late is still known
        assert most == 2 * 11
        run.add("R", [(1, 48, 1.0)])
        run.step()
        assert run.counts["R"].rejected == {"duplicate": 50, "late": 1}


def test_rejected_rows_are_not_remembered() -> None:
    with testing.drive(tg.program(Out=readings), sources=KEYED) as run:
        run.add("R", [(1, 50, "x"), (1, 50, 1.0), (2, None, 1.0)])
        run.step()
        assert run.counts["R"].rejected == {"null": 1, "unparseable": 1}
        assert run.live_rows["keys of R"] == 1


def test_equal_values_are_those_that_the_engine_takes_for_one() -> None:
    schema = {"k": pl.Int64, "s": pl.String, "v": pl.Float64}
    rows = [(None, "a", float("nan")), (None, "a", float("nan")), (1, None, 0.0), (1, None, -0.0), (1, None, None)]
    found = key_rejections(pl.DataFrame(rows, schema, orient="row"), pl.DataFrame(schema=schema), ["k", "s"])
    assert found.to_list() == [None, "duplicate", None, "duplicate", "conflict"]


@pytest.mark.parametrize("seed", shards(40, 15))
def test_repeated_is_what_reading_row_by_row_says(seed: int) -> None:
    rng = random.Random(seed)
    schema = {"k": pl.Int64, "t": pl.Int64, "v": pl.Int64}
    rows = [tuple(rng.choice((None, 1, 2, 3)) for _ in schema) for _ in range(rng.randint(0, 30))]
    cut = rng.randint(0, len(rows))
    accepted: dict[Any, Any] = {}
    fates: list[str | None] = []
    for row in rows:
        first = accepted.setdefault(row[:2], (row, len(fates)))
        fates.append(None if first[1] == len(fates) else "duplicate" if first[0] == row else "conflict")
    before = pl.DataFrame(rows[:cut], schema, orient="row")
    seen = before.filter(pl.Series(fates[:cut], dtype=pl.String).is_null()) if cut else before
    after = pl.DataFrame(rows[cut:], schema, orient="row")
    assert key_rejections(after, seen, ["k", "t"]).to_list() == fates[cut:]


@pytest.mark.parametrize("seed", shards(20, 3))
def test_what_is_looked_up_is_all_that_could_be_repeated(seed: int) -> None:
    """By indexes and without, with bounds and without, with keys that are NULL, and those of the batch itself."""
    rng = random.Random(seed)
    for _ in range(20):
        most = rng.choice((3, 30))
        stored = {str(n): _some_rows(rng, rng.randint(1, 40), 10 * n, most) for n in range(5)}
        of_batch = _some_rows(rng, rng.randint(0, 3), 20, most)
        rows = pl.concat([_some_rows(rng, rng.randint(0, 5), rng.randint(0, 60), most), of_batch.tail(1)])
        _check_look_up(stored, of_batch, rows, indexed=rng.random() < 0.5)


LOOKED_UP = Schema(
    (Attribute("k", STRING), Attribute("t", BIGINT, nullable=False, temporal=True), Attribute("v", BIGINT))
)


def _some_rows(rng: random.Random, count: int, first: int, most: int) -> pl.DataFrame:
    made = [(rng.choice((None, "a", "b")), first + rng.randint(0, most), rng.randint(0, 9)) for _ in range(count)]
    return pl.DataFrame(made, polars_schema(LOOKED_UP), orient="row")


def _check_look_up(
    stored: Mapping[str, pl.DataFrame], of_batch: pl.DataFrame, rows: pl.DataFrame, *, indexed: bool
) -> None:
    looked_into: list[str] = []

    def read(segment: Segment, key: tuple[str, ...], _: Rows | None, /) -> IndexedRows:
        looked_into.append(segment.path)
        some = stored[segment.path]
        return IndexedRows(some, KeyIndex.of(some, key) if indexed else None)

    files = [
        Segment(path, some.height, 0, "", "", int64_bounds(some.to_arrow(), ["t"]), 0, 0)
        for path, some in stored.items()
    ]
    key = ("k", "t")
    memory = key_memory(StreamDef("S", LOOKED_UP, progress=("t",)), key)
    known = RememberedRows(memory.buffer, key, tuple(files), read)
    known.add(of_batch)
    found = known.like(rows)
    alike = [some.join(rows, on=key, how="semi", nulls_equal=True) for some in (*stored.values(), of_batch)]
    meant = pl.concat(alike)
    again = found.join(rows, on=key, how="semi", nulls_equal=True)
    assert sorted(map(repr, again.rows())) == sorted(map(repr, meant.rows()))
    if indexed:
        assert found.height <= meant.height + of_batch.height  # no two of these keys have one hash
    for path in stored.keys() - looked_into:
        assert stored[path].join(rows, on="t", how="semi").is_empty()


@pytest.mark.parametrize("of_segments", ["indexes", "bounds"])
def test_a_batch_costs_what_its_rows_are_however_many_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_segments: str
) -> None:
    looked: list[int] = []
    read: list[str] = []

    def counted(rows: pl.DataFrame, seen: pl.DataFrame, *rest: Any) -> pl.Series:
        looked.append(seen.height)
        return key_rejections(rows, seen, *rest)

    def noted(store: Store, segments: Sequence[Segment], *rest: Any, **options: Any) -> Any:
        read.extend(segment.path for segment in segments)
        return read_segments(store, segments, *rest, **options)

    monkeypatch.setattr(ingest, "key_rejections", counted)
    sources = {"R": tg.source(None, delay=1_000_000, key=("sensor", "t"))}
    with Session(hourly().facts, LocalStore(tmp_path), sources) as run:
        for first in range(0, 60_000, 10_000):
            run.push("R", [(t % 7, t, 1.0) for t in range(first, first + 10_000)])
            run.step()
        for module in (segments, segment_cache):
            monkeypatch.setattr(module, "read_segments", noted)
        for n in range(10):
            looked.clear()
            if of_segments == "indexes":
                run.push("R", [(t % 7, t, float(n % 2)) for t in range(n, 60_000, 2_000)])
            else:
                run.push("R", [(0, 60_000 + 10 * n + k, 1.0) for k in range(10)])
            run.step()
        assert not read
        if of_segments == "indexes":
            assert run.counts["R"].rejected == {"duplicate": 150, "conflict": 150}
            assert looked == [30]
        else:
            assert run.counts["R"].rejected == {}
            assert looked == [0]


@pytest.mark.parametrize("cache_bytes", [0, None])
def test_a_file_of_what_is_remembered_is_read_once_in_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_bytes: int | None
) -> None:
    """However often its keys are looked up, and whether memory can hold it for the next batch or not."""
    looked: list[int] = []
    read: list[str] = []

    def counted(rows: pl.DataFrame, seen: pl.DataFrame, *rest: Any) -> pl.Series:
        looked.append(seen.height)
        return key_rejections(rows, seen, *rest)

    def noted(store: Store, segments: Sequence[Segment], *rest: Any, **options: Any) -> Any:
        read.extend(segment.path for segment in segments)
        return read_segments(store, segments, *rest, **options)

    sources = {"R": tg.source(None, delay=1_000_000, key=("sensor", "t"))}
    options = RunOptions(cache_bytes=cache_bytes)
    with Session(hourly().facts, LocalStore(tmp_path), sources, options=options) as run:
        run.push("R", [(t % 7, t, 1.0) for t in range(1000)])
        run.step()
        (segment,) = run._runner.state.segments["keys of R"]
        monkeypatch.setattr(ingest, "key_rejections", counted)
        monkeypatch.setattr(segment_cache, "read_segments", noted)
        for n in range(5):
            run.push("R", [(n % 7, n, 1.0)])
        run.step()
        assert run.counts["R"].rejected == {"duplicate": 5}
    assert read.count(segment.path) == (cache_bytes is not None)
    assert looked == ([1000] * 5 if cache_bytes is not None else [1000, 1000, 1, 1, 1])


def test_how_rows_are_cut_into_batches_changes_nothing() -> None:
    rng = random.Random(7)
    rows = [(rng.randint(1, 2), t + rng.randint(0, 5), float(rng.randint(0, 1))) for t in range(60)]
    found = []
    for sizes in ((1,), (2, 5, 9), (60,)):
        with testing.drive(hourly(), sources=KEYED) as run:
            waiting = list(rows)
            while waiting:
                size = rng.choice(sizes)
                run.add("R", waiting[:size])
                run.step()
                waiting = waiting[size:]
            run.finish()
            run.step()
            found.append((run.counts["R"], sorted(run.results("Sums"), key=lambda row: int(row["w"]))))
    assert found[0] == found[1] == found[2]
    assert set(found[0][0].rejected) == {"duplicate", "conflict"}


def test_the_key_belongs_to_the_state() -> None:
    from tidegate.runtime.engines.embedded.session import Session
    from tidegate.runtime.state.store.memory import MemoryStore

    store = MemoryStore()
    Session(hourly().facts, store, KEYED).close()
    for other in ({}, {"R": tg.source(None, delay=10, key="t")}):
        with pytest.raises(StateError, match="key of R"):
            Session(hourly().facts, store, other)


def test_the_listing_of_the_state_says_what_is_remembered(tmp_path: Path) -> None:
    from tidegate.runtime.inspect.state_listing import list_state
    from tidegate.runtime.state.store.local import LocalStore

    with testing.drive(hourly(), sources=KEYED, directory=tmp_path) as run:
        run.add("R", [(1, 5, 1.0), (1, 6, 1.0)])
        run.step()
        text = str(list_state(LocalStore(tmp_path)))
    assert "buffer keys of R: 2 rows of R" in text
    assert "kept        until they are late, since no other row may repeat their sensor, t" in text


@pytest.mark.parametrize("key", ["sensor", ("sensor", "v"), ("t", "v"), "wrong"])
def test_keys_that_can_not_work_are_refused(key: Any) -> None:
    with pytest.raises(QueryError, match=r"TG401|TG101"):
        hourly().session(sources={"R": tg.source(None, key=key)})


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["files", "frame"])
def test_keys_across_tasks_of_spark(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """The same row in every file: one of them counts, whoever reads it."""
    (tmp_path / "in").mkdir()
    for number in range(6):
        rows = [{"sensor": 1, "t": 5, "v": 1.0}, {"sensor": 1, "t": number + 10, "v": 1.0}]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    given = (
        tg.json(tmp_path / "in", key=("sensor", "t"), bounded=True)
        if kind == "files"
        else Source(
            spark.readStream.schema("sensor bigint, t bigint, v double").json(str(tmp_path / "in")),
            delay=100,
            key=("sensor", "t"),
        )
    )
    reports: list[Any] = []
    hourly().start(
        spark,
        sources={"R": given},
        checkpoint=tmp_path / "checkpoint",
        on_batch=reports.append,
        driver_bytes=0,
    ).awaitTermination()
    assert reports[0].counts["R"].rejected == {"duplicate": 5}
    assert reports[0].counts["R"].accepted == 7
