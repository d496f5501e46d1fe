"""A run on Spark as it goes on for months: files leave, results are compacted, rejected rows end, and nothing else is
touched.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.runtime.state.test_foreign import content, foreign_tree
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.failpoints import crash
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.own_files import TOP

pytestmark = [pytest.mark.spark, pytest.mark.long]

events = tg.stream("E", "k bigint, n bigint, t bigint", progress="t")
program = tg.program(
    Found=events.where(events.n >= 0).select("n", "t"),
    Counted=events.group_by(k=events.k, w=tg.ceil(events.t, 4)).agg(n=tg.count()),
)
FILES, ROWS = 20, 30
KEEP = 8192
WAYS: tuple[dict[str, Any], ...] = ({"archive": "kept"}, {"delete": True})


def put(place: Path, number: int) -> None:
    """A file of rows, each second of which has no time."""
    path = place / "in" / f"day={number % 3}" / f"{number:03}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    times = [number if row % 2 else None for row in range(ROWS)]
    columns = {"k": [row % 5 for row in range(ROWS)], "n": [number * ROWS + row for row in range(ROWS)], "t": times}
    pl.DataFrame(columns, schema=dict.fromkeys("knt", pl.Int64)).write_parquet(path)
    os.utime(path, (1_600_000_000 + number,) * 2)


def options_of(place: Path, way: dict[str, Any]) -> dict[str, Any]:
    given = {key: place / value if key == "archive" else value for key, value in way.items()}
    return {
        "sources": {"E": tg.parquet(place / "in", per_batch=1, delay=0, **given)},
        "sinks": {name: tg.parquet_sink(place / "out" / name, compact=True) for name in ("Found", "Counted")},
        "quarantine_keep": "8 KiB",
    }


def published(place: Path) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: sorted(
            row for path in (place / "out" / name).glob("part-0*-*.parquet") for row in pl.read_parquet(path).rows()
        )
        for name in ("Found", "Counted")
    }


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_long_run_with_crashes_among_foreign_files(spark: SparkSession, tmp_path: Path, way: dict[str, Any]) -> None:
    place = tmp_path / "place"
    for number in range(FILES):
        put(place, number)
        put(tmp_path / "expected", number)
    with program.session(
        **options_of(tmp_path / "expected", {}), checkpoint=tmp_path / "expected" / "state"
    ) as session:
        session.process()
    # A run of its own makes the places; then others put their files there.
    options = {**options_of(place, way), "driver_bytes": 0}
    query = program.start(spark, **options, checkpoint=place / "state", trigger={"once": True})
    query.awaitTermination()
    for area in sorted(TOP - {"meta.json", "lock"}):
        (place / "state" / area).mkdir(exist_ok=True)
        foreign_tree(place / "state" / area)
    for folder in (place / "out", place / "out" / "Counted", place / "kept" / "day=0", place / "theirs"):
        foreign_tree(folder)
    (place / "in" / "linked").symlink_to(place / "theirs", target_is_directory=True)
    mine = {path: text for path, text in content(place).items() if b"mine" in text or Path(path).is_symlink()}
    assert len(mine) > 14 * len(TOP)

    for number in range(FILES):
        put(place, FILES + number)
        put(tmp_path / "expected", FILES + number)
    with program.session(
        **options_of(tmp_path / "expected", {}), checkpoint=tmp_path / "expected" / "state"
    ) as session:
        session.process()
    for where, skip in (("put-away-removed", 3), ("commit-after-manifest", 5), ("commit-before-manifest", 6)):
        store = LocalStore(place / "state")
        store.failpoints.arm(where, crash, skip=skip)
        with pytest.raises(tg.InternalError, match="TG491"):
            program.start(spark, **options, checkpoint=store).awaitTermination()
    program.start(spark, **options, checkpoint=place / "state").awaitTermination()

    after = content(place)
    assert {path: after.get(path) for path in mine} == mine
    assert published(place) == published(tmp_path / "expected")
    assert not list((place / "in").glob("day=*/*.parquet"))
    kept = [path.name for path in (place / "kept").glob("day=*/???.parquet")]
    assert sorted(kept) == ([] if "delete" in way else [f"{number:03}.parquet" for number in range(2 * FILES)])
    assert len(list((place / "out" / "Found").glob("part-0*-*.parquet"))) <= 15 + 16 + 1
    manifest = inspect(LocalStore(place / "state")).manifest
    assert manifest is not None
    counts = manifest.counts["E"]
    assert (counts.rows_in, counts.accepted, dict(counts.rejected)) == (
        2 * FILES * ROWS,
        FILES * ROWS,
        {"null": FILES * ROWS},
    )
    own = (path for path in (place / "state" / "quarantine").rglob("*-*-*.parquet") if b"mine" not in path.read_bytes())
    assert sum(path.stat().st_size for path in own) <= 4 * KEEP
