"""Names and values at their limits on Spark, at each place of an increment: what they yield is what they yield
embedded.

The programs take as many of them at once as there are; `test_hostile.py` tells one from the other.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.runtime.faults.test_hostile import BERLIN, LARGE, NAMES
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

#: What `start` is told so that increments run there, as reports call it.
PLACES: dict[str, dict[str, int]] = {
    "driver": {},
    "sharded": {"driver_bytes": 0, "shard_bytes": 1 << 30},
    "catalyst": {"driver_bytes": 0, "shard_bytes": 0},
}
HOSTILE = " ".join(NAMES)
STREAM = "été_名前"  # letters, digits and _ alone name a stream or an occurrence
TIME = f"when {HOSTILE}"
UTC = pa.timestamp("us", tz="UTC")


def write(folder: Path, *tables: pa.Table) -> None:
    """A file for each table; the oldest is read first, by both engines."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """Its rows, in order; instants as ticks, of which Python's datetime has too few."""
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True), key=repr)


def outcome(
    program: tg.Program, sources: Mapping[str, tg.Source], place: Path, spark: Any = None, **options: Any
) -> Any:
    """Results, counts and progress of a run over files, on Spark if a session is given."""
    names = [query.query.stream for query in program.facts.queries]
    sinks = {name: tg.parquet_sink(place / "out" / str(number)) for number, name in enumerate(names)}
    if spark is None:
        with program.session(sources=sources, sinks=sinks, checkpoint=place / "state", **options) as session:
            session.process()
    else:
        query = program.start(spark, sources=sources, sinks=sinks, checkpoint=place / "state", **options)
        query.awaitTermination()
        assert place.name in {at for report in query.reports for at in report.places.values()}
    results = {}
    for number, name in enumerate(names):
        files = sorted((place / "out" / str(number)).glob("*.parquet"))
        assert files, name
        results[name] = plain(pa.concat_tables(pq.read_table(path) for path in files))
    manifest = inspect(LocalStore(place / "state")).manifest
    assert manifest is not None
    return results, dict(manifest.counts), dict(manifest.progress)


def check_equal(found: Any, expected: Any) -> None:
    """Without a comparison of long strings in the message."""
    for name, wanted in expected[0].items():
        more, less = (
            [row for row in one if row not in other]
            for one, other in ((found[0][name], wanted), (wanted, found[0][name]))
        )
        assert [more, less] == [[], []], f"{name[:9]}: more {more!r:.300}, less {less!r:.300}"
        assert found[0][name] == wanted, name[:9]
    assert found[1:] == expected[1:]


def of_names() -> tg.Program:
    """Every name for everything that has one, in a grouping, a join with a table, an anti-join and a join of a
    result.
    """
    schema = pa.schema([*((name, pa.string()) for name in NAMES), (TIME, pa.int64())])
    e, table = tg.stream(STREAM, schema, progress=TIME), tg.table("Été", pa.schema([(HOSTILE, pa.string())]))
    a, b, r = e.as_("а"), e.as_("a"), table.as_("名前")
    counted = e.group_by(*(e[name] for name in NAMES), **{f"w {HOSTILE}": tg.ceil(e[TIME], 10)}).agg(
        **{f"n {name}": tg.max(e[name]) for name in NAMES}
    )
    known = a.join(r, a[NAMES[0]] == r[HOSTILE]).select(*(a[name] for name in reversed(NAMES)), a[TIME])
    last = a.anti_join(b, a[NAMES[1]] == b[NAMES[1]], a[TIME] < b[TIME], b[TIME] <= a[TIME] + 5)
    pairs = a.join(b, a[NAMES[2]] == b[NAMES[2]], a[TIME] < b[TIME], b[TIME] <= a[TIME] + 5)
    renamed = pairs.select(**{name: b[name] for name in NAMES}, **{TIME: b[TIME]})
    return tg.program(
        **{f"{what} ../{HOSTILE}": found for what, found in zip("abcd", (counted, known, last, renamed), strict=True)}
    )


def test_names_are_taken_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    tables = []
    for first in (0, 10):
        columns: dict[str, Any] = {name: [f"{name} {t % 3}" for t in range(first, first + 10)] for name in NAMES}
        tables.append(pa.table(columns | {TIME: pa.array(range(first, first + 10), pa.int64())}))
    write(tmp_path / "in", *tables)
    program = of_names()
    sources = {STREAM: tg.parquet(tmp_path / "in", per_batch=1, delay=2, bounded=True)}
    statics = {"Été": [(f"{NAMES[0]} 1",)]}
    expected = outcome(program, sources, tmp_path / "embedded", statics=statics)
    assert all(expected[0].values())
    for at, limits in PLACES.items():
        check_equal(outcome(program, sources, tmp_path / at, spark, statics=statics, **limits), expected)


TEXTS = ["nul\0", "\u202eback", "\x1b[2J", "'; drop table x; --", "${HOME} $(true) `", "\\N", "null", "", " ", "%_\\"]
TEXTS += ["a\u0301", "\u00e1", "\u0430", "a", "__HIVE_DEFAULT_PARTITION__", LARGE, LARGE + "\0"]
events = tg.stream("E", "k bigint, t timestamp, s string", progress="t")


def of_values() -> tg.Program:
    """Texts and instants as values, as keys of groups and joins, in conditions, and as results of functions."""
    a, b = events.as_("a"), events.as_("b")
    return tg.program(
        Counted=events.group_by(events.s, w=tg.ceil(events.t, "1h")).agg(n=tg.count(), last=tg.max(events.s)),
        Windows=events.group_by(w=tg.ceil(events.t, "1h")).agg(n=tg.count(), least=tg.min(events.s)),
        Chosen=events.where(events.s.is_in(*TEXTS[::2])).select(events.k, events.t, longer=events.s.concat(*TEXTS[:3])),
        Dates=events.where(events.t <= dt.datetime.max.replace(tzinfo=dt.UTC)).select(
            events.t, y=events.t.year(), d=events.t.to_date(), h=events.t.hour(), s=events.t.cast("string")
        ),
        Pairs=a.join(b, a.s == b.s, a.t < b.t, b.t <= a.t + tg.hours(1)).select(s=a.s, t=b.t, k=a.k),
        Last=a.anti_join(b, a.s == b.s, a.t < b.t, b.t <= a.t + tg.hours(1)),
    )


def files() -> list[pa.Table]:
    """Instants in ticks, as text with offsets, as text that names none, and again in ticks, the last of which is
    late.
    """
    old = [-62_135_596_800_000_000, -62_135_596_799_999_999, -12_219_292_800_000_001, -1, 0]
    texts = ["2023-02-29T12:00Z", "1500-02-29", "2000-02-29T00:00Z", "2024-02-29T12:30Z", "2026-03-29T02:30"]
    texts += ["2026-03-29T02:30:00+01:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]
    new = [253_402_300_799_999_999, 253_402_300_800_000_000, 10**18 - 10**15, 10**18, 2**61, 2**61 + 1, 0]
    noon = [1_793_620_800_000_000 + i for i in range(len(TEXTS))]
    return [
        rows(pa.array(old, UTC)),
        rows(pa.array(["2026-11-02T11:59:59Z"] * len(TEXTS) + texts)),
        rows(pa.array(noon + new, UTC)),
    ]


def rows(at: pa.Array) -> pa.Table:
    return pa.table({"k": range(len(at)), "t": at, "s": [TEXTS[i % len(TEXTS)] for i in range(len(at))]})


def test_values_are_kept_as_they_are(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the zone of the machine and of the session, which here leaves an hour out and has one twice."""
    write(tmp_path / "in", *files())
    monkeypatch.setenv("TZ", str(BERLIN))
    user = spark.newSession()
    user.conf.set("spark.sql.session.timeZone", str(BERLIN))
    program = of_values()
    sources = {"E": tg.parquet(tmp_path / "in", per_batch=1, delay="200d", skew_guard=None, bounded=True)}
    expected = outcome(program, sources, tmp_path / "embedded")
    found, counts, _ = expected
    assert counts["E"].rejected == {"unparseable": 2, "late": 1, "out of range": 1}, counts
    assert {row[0] for row in found["Pairs"]} >= set(TEXTS)
    assert max(row[0] for row in found["Windows"]) > 2**61
    for at, limits in PLACES.items():
        check_equal(outcome(program, sources, tmp_path / at, user, **limits), expected)
