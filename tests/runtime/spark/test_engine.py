"""The Spark engine: the same results as embedded, from every kind of source, across restarts, each row once."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import RunningQuery, start
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.state.failpoints import crash
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

events = tg.stream("E", "k bigint, t bigint, v double", progress="t")
names = tg.table("N", "k bigint, name string")
NAMES = [{"k": k, "name": f"name {k}"} for k in range(3)]


def program() -> tg.Program:
    """A grouping of partials, an anti-join, a static join, and a query on a result."""
    a, b, n = events.as_("a"), events.as_("b"), names.as_("n")
    alone = tg.result_of("Alone", a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5).select(k=a.k, t=a.t))
    quiet = alone.as_("q")
    return tg.program(
        Counted=events.group_by(events.k, w=tg.ceil(events.t, 10)).agg(n=tg.count(), total=tg.sum(events.v)),
        Named=quiet.join(n, n.k == quiet.k).select(t=quiet.t, name=n.name),
    )


def rows_of(number: int) -> list[dict[str, Any]]:
    return [{"k": (number + i) % 3, "t": number * 10 + i * 3, "v": i / 4} for i in range(4)]


def write(directory: Path, numbers: range) -> None:
    directory.mkdir(exist_ok=True)
    for number in numbers:
        path = directory / f"{number:03d}.parquet"
        pq.write_table(pa.Table.from_pylist(rows_of(number)), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # Spark takes the oldest files first


def files(directory: Path, **options: Any) -> Source:
    return parquet(directory, per_batch=2, delay=4, **options)


def expected(numbers: range) -> dict[str, list[tuple[Any, ...]]]:
    with Session(program().facts, statics={"N": NAMES}) as session:
        session.push("E", [row for number in numbers for row in rows_of(number)])
        session.finish()
        session.step()
        return {
            name: sorted(tuple(r.values()) for r in session.results(name)) for name in ("Counted", "Alone", "Named")
        }


def published(out: Path) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for name in ("Counted", "Alone", "Named"):
        rows = [row for path in sorted((out / name).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
        found[name] = sorted(tuple(row.values()) for row in rows)
    return found


def sinks(out: Path) -> dict[str, Any]:
    return {name: parquet_sink(out / name) for name in ("Counted", "Alone", "Named")}


def run(spark: SparkSession, sources: dict[str, Any], tmp_path: Path, **options: Any) -> RunningQuery:
    checkpoint = options.pop("checkpoint", tmp_path / "checkpoint")
    query = start(
        spark,
        program().facts,
        sources=sources,
        statics={"N": NAMES},
        sinks=sinks(tmp_path / "out"),
        checkpoint=checkpoint,
        **options,
    )
    query.awaitTermination()
    return query


@pytest.mark.parametrize(
    ("driver_bytes", "shard_bytes", "wanted"),
    [(0, 0, {"catalyst"}), (0, 1 << 20, {"sharded"}), (64 << 20, 1 << 20, {"driver"})],
)
def test_files_give_the_embedded_results_at_every_place(
    spark: SparkSession, tmp_path: Path, driver_bytes: int, shard_bytes: int, wanted: set[str]
) -> None:
    write(tmp_path / "in", range(4))
    query = run(
        spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path, driver_bytes=driver_bytes, shard_bytes=shard_bytes
    )
    assert published(tmp_path / "out") == expected(range(4))
    places: set[str] = {place for report in query.reports for place in report.places.values() if place}
    assert {report.limits for report in query.reports} == {Limits(driver_bytes, shard_bytes)}
    assert Limits(driver_bytes, shard_bytes).describe(query._run.setup.plan.queries[0]) in query.explanation().plan
    assert places == wanted
    assert len(query.reports) == 2
    assert query.lastProgress is not None


def test_a_run_goes_on_with_new_files_on_either_engine(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", range(2))
    run(spark, {"E": files(tmp_path / "in")}, tmp_path)
    write(tmp_path / "in", range(2, 4))
    run(spark, {"E": files(tmp_path / "in")}, tmp_path)
    write(tmp_path / "in", range(4, 6))
    with Session(
        program().facts,
        LocalStore(tmp_path / "checkpoint"),
        {"E": files(tmp_path / "in", bounded=True)},
        {"N": NAMES},
        sinks(tmp_path / "out"),
    ) as session:
        session.process()
    assert published(tmp_path / "out") == expected(range(6))


def test_a_directory_that_was_read_ends_once_that_is_said(spark: SparkSession, tmp_path: Path) -> None:
    """Though no file is left, a batch says that it has ended; the next run has nothing to do."""
    write(tmp_path / "in", range(4))
    run(spark, {"E": files(tmp_path / "in")}, tmp_path)
    assert published(tmp_path / "out") != expected(range(4))
    query = run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path)
    assert published(tmp_path / "out") == expected(range(4))
    assert len(query.reports) == 1
    assert run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path).reports == []


def test_a_query_that_is_asked_whether_it_runs_gives_up_its_checkpoint_as_it_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", range(2))
    query = start(
        spark,
        program().facts,
        sources={"E": files(tmp_path / "in")},
        statics={"N": NAMES},
        sinks=sinks(tmp_path / "out"),
        checkpoint=tmp_path / "checkpoint",
    )
    end = time.monotonic() + 120
    while query.isActive:  # nothing else may be asked that would give it up
        assert time.monotonic() < end
        time.sleep(0.05)
    with Session(
        program().facts,
        LocalStore(tmp_path / "checkpoint"),
        {"E": files(tmp_path / "in")},
        {"N": NAMES},
        sinks(tmp_path / "out"),
    ) as session:
        assert session.counts["E"].rows_in > 0


@pytest.mark.parametrize("where", ["commit-before-manifest", "commit-after-manifest"])
def test_a_batch_that_stops_halfway_counts_once(spark: SparkSession, tmp_path: Path, where: str) -> None:
    write(tmp_path / "in", range(4))
    store = LocalStore(tmp_path / "checkpoint")
    store.failpoints.arm(where, crash, skip=1)
    with pytest.raises(tg.InternalError, match="TG491"):
        run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path, checkpoint=store)
    run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path)
    assert published(tmp_path / "out") == expected(range(4))


def test_the_last_commit_of_spark_may_be_lost(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", range(2))
    run(spark, {"E": files(tmp_path / "in")}, tmp_path)
    commits = tmp_path / "checkpoint" / "spark" / "commits"
    for path in [*commits.glob("0"), *commits.glob(".0.crc")]:
        path.unlink()
    write(tmp_path / "in", range(2, 4))
    run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path)
    assert published(tmp_path / "out") == expected(range(4))


def test_a_new_spark_checkpoint_reads_no_file_twice(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", range(2))
    run(spark, {"E": files(tmp_path / "in")}, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint" / "spark")
    write(tmp_path / "in", range(2, 4))
    run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path)
    assert published(tmp_path / "out") == expected(range(4))


@pytest.mark.parametrize("driver_bytes", [0, 64 << 20])
def test_rejected_rows_are_counted_and_set_aside_with_their_place(
    spark: SparkSession, tmp_path: Path, driver_bytes: int
) -> None:
    (tmp_path / "in").mkdir()
    instants: list[list[int | None]] = [[1, None, 50], [3, 60]]
    for number, ts in enumerate(instants):
        table = pa.table({"k": [1] * len(ts), "t": pa.array(ts, pa.int64()), "v": [0.0] * len(ts)})
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
        os.utime(tmp_path / "in" / f"{number}.parquet", (1_600_000_000 + number, 1_600_000_000 + number))
    source = parquet(tmp_path / "in", per_batch=1, delay=4, bounded=True)
    query = run(spark, {"E": source}, tmp_path, driver_bytes=driver_bytes)
    rejected = [report.counts["E"].rejected for report in query.reports]
    assert rejected == [{"null": 1}, {"late": 1}]
    set_aside = [
        (Path(row["origin"]).name, row["position"], row["reason"])
        for row in tg.read_quarantine(tmp_path / "checkpoint").read_all().to_pylist()
    ]
    assert sorted(set_aside) == [("0.parquet", 1, "null"), ("1.parquet", 0, "late")]


def test_streaming_and_batch_dataframes_are_sources(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", range(4))
    schema = "k bigint, t bigint, v double"
    streaming = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "in"))
    run(spark, {"E": Source(streaming, delay=4)}, tmp_path / "streaming")
    known = published(tmp_path / "streaming" / "out")
    complete = expected(range(4))
    assert known["Alone"] == [row for row in complete["Alone"] if row[1] <= 39 - 5 - 5]
    assert set(known["Counted"]) < set(complete["Counted"])
    run(spark, {"E": spark.read.parquet(str(tmp_path / "in"))}, tmp_path / "batch")
    assert published(tmp_path / "batch" / "out") == complete
    run(spark, {"E": [row for number in range(4) for row in rows_of(number)]}, tmp_path / "rows")
    assert published(tmp_path / "rows" / "out") == complete


def test_spark_settings_of_the_session_are_left_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    before = {key: spark.conf.get(key) for key in ("spark.sql.shuffle.partitions", "spark.sql.ansi.enabled")}
    write(tmp_path / "in", range(2))
    run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path)
    assert {key: spark.conf.get(key) for key in before} == before


@pytest.mark.parametrize("driver_bytes", [0, 64 << 20])
def test_a_failing_term_stops_the_query_with_its_error(spark: SparkSession, tmp_path: Path, driver_bytes: int) -> None:
    write(tmp_path / "in", range(2))
    a, b = events.as_("a"), events.as_("b")
    joined = a.join(b, a.t == b.t, tg.lit(1).div(a.k - b.k) > 0).select(t=a.t)
    query = start(
        spark,
        tg.program(Joined=joined).facts,
        sources={"E": files(tmp_path / "in", bounded=True)},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=driver_bytes,
        options=RunOptions(on_error="fail"),
    )
    with pytest.raises(tg.QueryError, match=r"^TG302 (.|\n)*Joined"):
        query.awaitTermination()


@pytest.mark.parametrize("driver_bytes", [0, 64 << 20])
def test_names_with_dots_backticks_and_only_another_case(
    spark: SparkSession, tmp_path: Path, driver_bytes: int
) -> None:
    write(tmp_path / "in", range(2))
    x, y = events.as_("x"), events.as_("y")
    near = tg.result_of("Near", x.left_join(y, x.k == y.k, x.t < y.t, y.t <= x.t + 9))
    n = near.as_("n")
    counted = events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count(), N=tg.sum(events.k))
    odd = n.select(**{"a`b": n["x.t"], "A.b": n["y.t"], "été": n["x.v"]})
    program = tg.program(Odd=odd, Counted=counted)
    rows = [row for number in range(2) for row in rows_of(number)]
    wanted = program.run({"E": rows})
    query = start(
        spark,
        program.facts,
        sources={"E": files(tmp_path / "in", bounded=True)},
        sinks={name: parquet_sink(tmp_path / "out" / name) for name in ("Odd", "Counted")},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=driver_bytes,
    )
    query.awaitTermination()
    for name in ("Odd", "Counted"):
        found = [r for path in (tmp_path / "out" / name).glob("*.parquet") for r in pq.read_table(path).to_pylist()]
        assert sorted(map(str, found)) == sorted(map(str, wanted.rows(name)))
        assert found


def test_every_job_says_what_it_is_for(spark: SparkSession, tmp_path: Path) -> None:
    def jobs() -> dict[int, Any]:
        # What is listed lags behind what ran: jobs of an earlier test could seem to be new, and own ones be missing.
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
        listed = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
        every = [listed.apply(i) for i in range(listed.size())]
        return {job.jobId(): job.description().get() if job.description().isDefined() else None for job in every}

    earlier = jobs()
    rows = spark.createDataFrame([(r["k"], r["t"], r["v"]) for r in rows_of(0)], "k long, t long, v double")
    named = spark.createDataFrame([(n["k"], n["name"]) for n in NAMES], "k long, name string")
    for _ in range(2):
        query = start(
            spark,
            program().facts,
            sources={"E": rows.repartition(2)},
            statics={"N": named.repartition(2)},
            checkpoint=tmp_path / "checkpoint",
            driver_bytes=0,
            shard_bytes=0,
        )
        query.awaitTermination()
    described = [text for number, text in jobs().items() if number not in earlier]
    assert None not in described
    starts = {text for text in described if text.startswith("tidegate start: ")}
    assert starts == {
        "tidegate start: write rows of E",
        "tidegate start: compare rows of E",
        "tidegate start: rows of static tables",
        "tidegate start: what static tables hold",
    }
