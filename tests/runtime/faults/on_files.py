"""The programs of the scenarios over directories of files, on either engine, and what a finished run is judged by."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import tidegate as tg
from tests.runtime.faults.scenarios import Scenario
from tests.thresholds import THRESHOLDS, small
from tidegate.algebra.schema import StreamDef
from tidegate.runtime.connectors.sinks import ParquetSink
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import results_area
from tidegate.runtime.ingest.quarantine import read_quarantine
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.manifest import SourceCounts
from tidegate.runtime.state.outputs.staging import kept_results
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELAY = 20


def quietly(_: object) -> None:
    """Nobody wants to know of a batch."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a finished run published, and how its rows were counted."""

    rows: Mapping[str, list[tuple[Any, ...]]]
    rejected: list[str]
    counts: Mapping[str, SourceCounts]
    progress: Mapping[str, Any]


def streams_of(one: Scenario) -> list[str]:
    return [stream.name for stream in _streams(one)]


def _streams(one: Scenario) -> list[StreamDef]:
    return [stream for stream in one.facts.program.inputs if not stream.static]


def results_of(one: Scenario) -> list[str]:
    return sorted({query.query.stream for query in one.facts.queries if not query.query.inner})


def write_files(one: Scenario, place: Path, numbers: range, seed: str = "") -> None:
    """Files with rows in disorder: some late, some as in the file before, some without an instant."""
    in_file = one.in_file or rows_of
    for stream in _streams(one):
        directory = place / "in" / stream.name
        directory.mkdir(parents=True, exist_ok=True)
        schema = pa.schema([(name, pa.int64()) for name in stream.schema.names])
        for number in numbers:
            rows = [*in_file(stream.name, number - 1, seed)[-2:], *in_file(stream.name, number, seed)]
            path = directory / f"{number:04d}.parquet"
            columns = {name: [row[column] for row in rows] for column, name in enumerate(schema.names)}
            pq.write_table(pa.table(columns, schema), path)
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # oldest first, on both engines


def rows_of(stream: str, number: int, seed: str) -> list[tuple[int, int | None, int]]:
    rng = random.Random(f"{seed}/{stream}/{number}")
    instants: list[int | None] = [number * 10 + rng.randint(0, 20) for _ in range(30)]
    instants[0] = None if rng.random() < 0.3 else number * 10 - 60
    return [(rng.randint(0, 2), t, rng.randint(0, 9)) for t in instants]


def sources_of(one: Scenario, place: Path, *, bounded: bool, tidy: bool = False) -> dict[str, Source]:
    """Directories of files, each file a batch of its own; a `tidy` run archives them."""
    sources = {}
    for name in streams_of(one):
        archive = place / "archive" / name if tidy else None
        files = tg.parquet(place / "in" / name, per_batch=1, delay=DELAY, bounded=bounded, archive=archive)
        given = one.sources.get(name)
        sources[name] = files if given is None else replace(given, data=files.data, bounded=bounded)
    return sources


def sinks_of(one: Scenario, place: Path, *, tidy: bool = False, kept: bool = False) -> dict[str, ParquetSink]:
    """Directories of results, which a `tidy` run compacts; none where results are `kept` in the checkpoint."""
    return {} if kept else {name: ParquetSink(str(place / "out" / name), compact=tidy) for name in results_of(one)}


@contextmanager
def compacting_soon() -> Iterator[None]:
    """Two files of a size become one, so few files are enough to be compacted."""
    (fanout,) = (one for one in THRESHOLDS if str(one) == "state.outputs.compaction.FANOUT")
    with small(fanout):
        yield


def run_embedded(
    one: Scenario,
    place: Path,
    *,
    bounded: bool = True,
    tidy: bool = False,
    kept: bool = False,
    store: LocalStore | None = None,
    on_batch: Callable[[object], None] = quietly,
) -> None:
    """All files that are not read yet; after the last of `bounded` ones the input has ended."""
    sources, sinks = sources_of(one, place, bounded=bounded, tidy=tidy), sinks_of(one, place, tidy=tidy, kept=kept)
    at = store or LocalStore(place / "state")
    with Session(one.facts, at, sources, one.statics, sinks, options=RunOptions(on_batch=on_batch)) as session:
        session.process()


def run_on_spark(
    one: Scenario,
    place: Path,
    spark: SparkSession,
    *,
    bounded: bool = True,
    tidy: bool = False,
    kept: bool = False,
    store: LocalStore | None = None,
    on_batch: Callable[[object], None] = quietly,
    **options: Any,
) -> None:
    """The same in Spark's tasks."""
    options = {"driver_bytes": 0, "checkpoint": store or place / "state", "on_batch": on_batch} | options
    one.program.start(
        spark,
        sources=sources_of(one, place, bounded=bounded, tidy=tidy),
        statics=one.statics,
        sinks=sinks_of(one, place, tidy=tidy, kept=kept),
        **options,
    ).awaitTermination()


def answer(one: Scenario, place: Path) -> Answer:
    store = LocalStore(place / "state")
    manifest = inspect(store).manifest
    assert manifest is not None
    rows = {}
    for name in results_of(one):
        if (place / "out").exists():
            tables = [pq.read_table(path) for path in sorted((place / "out" / name).glob("*.parquet"))]
        else:
            feeding = [query.query.name for query in one.facts.queries if query.query.stream == name]
            tables = list(kept_results(store, manifest, results_area(name), feeding))
        rows[name] = sorted((tuple(row.values()) for table in tables for row in table.to_pylist()), key=repr)
    kept = read_quarantine(place / "state").read_all().to_pylist()
    rejected = sorted(str({**row, "origin": Path(row["origin"]).name}) for row in kept)
    return Answer(rows, rejected, dict(manifest.counts), dict(manifest.progress))


def undisturbed(one: Scenario, place: Path) -> Answer:
    """The answer of an embedded run over the same files that nothing disturbs."""
    again = place / "undisturbed"
    again.mkdir()
    archive = place / "archive"
    (again / "in").symlink_to(archive if archive.exists() else place / "in")
    run_embedded(one, again)
    return answer(one, again)


def difference(found: Answer, expected: Answer) -> str | None:
    """What a run published or counted otherwise than expected, if anything."""
    if found.rejected != expected.rejected:
        return f"{len(found.rejected)} rows are in quarantine instead of {len(expected.rejected)}, or others"
    for name, wanted in expected.rows.items():
        have, want = set(found.rows[name]), set(wanted)
        if found.rows[name] != wanted:
            return (
                f"{name} has {len(found.rows[name])} rows instead of {len(wanted)}; "
                f"lost {sorted(want - have)[:3]}, more {sorted(have - want)[:3]}"
            )
    if found != expected:
        return f"{found.counts} {found.progress} instead of {expected.counts} {expected.progress}"
    return None
