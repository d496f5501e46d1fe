"""On Spark: what queries have in common is computed once, and all queries of a level are one job."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.runtime.spark.job_names import descriptions
from tests.runtime.test_shared_parts import looked_up, pairs, queries, rows, run
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.eval.increment import Common, increment, read_leaves
from tidegate.runtime.plan.shared_parts import Demand

pytestmark = pytest.mark.spark


def test_a_common_part_is_one_cached_relation_read_by_both_queries(spark: SparkSession) -> None:
    p = pairs()
    grouped, either = p.group_by(k=p.k, w=tg.ceil(p.t, 10)), p.one + p.other  # which is not looked up
    plan = tg.program(Sums=grouped.agg(v=tg.sum(either)), Most=grouped.agg(v=tg.max(either))).explain().lowered()
    old, new = {"w": 10}, {"w": 20}
    (buffer,) = plan.buffers
    held = spark.createDataFrame([tuple(row[name] for name in buffer.schema) for row in rows()], list(buffer.schema))
    demands = [Demand.of(query, old, new) for query in plan.queries]
    read = [read_leaves(demand, [held] * len(demand.query.leaves), {}) for demand in demands]
    common = Common.of(demands, read)
    try:
        for query, leaves, ready in zip(plan.queries, read, common.ready, strict=True):
            found = increment(query, leaves, old, new, ready)
            assert "InMemoryTableScan" in found._jdf.queryExecution().executedPlan().toString()
            alone = increment(query, leaves, old, new)
            assert sorted(found.collect()) == sorted(alone.collect())
            assert found.count() > 0
        assert len(common.held) == 1
    finally:
        common.release()
    assert not common.held[0].is_cached


def test_what_rows_look_up_is_not_held_as_pairs(spark: SparkSession) -> None:
    plan = tg.program(**looked_up("Means", "Most")).explain().lowered()
    assert all(query.common for query in plan.queries)
    (instant,) = plan.queries[0].facts.output.progress
    old, new = {instant: -1}, {instant: 60}
    held = spark.createDataFrame([(0, t, t) for t in range(60)], "k bigint, t bigint, v bigint")
    demands = [Demand.of(query, old, new) for query in plan.queries]
    read = [read_leaves(demand, [held] * len(demand.query.leaves), {}) for demand in demands]
    common = Common.of(demands, read)
    for query, leaves, ready in zip(plan.queries, read, common.ready, strict=True):
        assert increment(query, leaves, old, new, ready).count() > 0
    assert not common.held


def test_all_queries_of_a_level_are_one_job(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        table = pa.Table.from_pylist(rows()[30 * number : 30 * number + 30])
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # Spark takes the oldest files first
    program = tg.program(**queries(ByKey=True, ByValue=True, Slow=True))
    earlier = descriptions(spark)
    query = start(
        spark,
        program.facts,
        sources={"E": Source(parquet(tmp_path / "in", per_batch=1).data, delay={"t": 0}, bounded=True)},
        sinks={name: parquet_sink(tmp_path / "out" / name) for name in program.facts.streams},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=0,
        shard_bytes=0,
    )
    query.awaitTermination()
    for name, wanted in run(**queries(ByKey=True, ByValue=True, Slow=True)).items():
        found = [
            tuple(row.values())
            for path in sorted((tmp_path / "out" / name).glob("*.parquet"))
            for row in pq.read_table(path).to_pylist()
        ]
        assert sorted(found) == wanted
    described = [text for number, text in descriptions(spark).items() if number not in earlier]
    for seq in {report.seq for report in query.reports}:
        mine = [text for text in described if text.startswith(f"tidegate batch {seq}: increment")]
        assert set(mine) == {f"tidegate batch {seq}: increments of ByKey, ByValue, Slow"}
        assert len(mine) <= 1 + 2  # Spark sends the small side of each join around in a job of its own


@pytest.mark.parametrize("shard_bytes", [0, 1 << 30])
def test_queries_that_did_not_advance_start_no_job(spark: SparkSession, tmp_path: Path, shard_bytes: int) -> None:
    (tmp_path / "in").mkdir()
    every = rows()
    for number, part in enumerate((every[:35], every[30:35], every[35:])):  # the second brings no progress
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(part), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
    earlier = descriptions(spark)
    query = start(
        spark,
        tg.program(**queries(ByKey=True, Slow=True)).facts,
        sources={"E": Source(parquet(tmp_path / "in", per_batch=1).data, delay={"t": 5}, bounded=True)},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=0,
        shard_bytes=shard_bytes,
    )
    query.awaitTermination()
    described = [text for number, text in descriptions(spark).items() if number not in earlier]
    jobs = {report.seq: [text for text in described if f"batch {report.seq}: incr" in text] for report in query.reports}
    first, second, third = query.reports
    assert first.progress == second.progress != third.progress
    assert jobs[second.seq] == []
    for report in (first, third):
        assert set(report.places) == {"ByKey", "Slow"}
        assert set(jobs[report.seq]) == {f"tidegate batch {report.seq}: increments of ByKey, Slow"}
        assert len(jobs[report.seq]) == 1 or not shard_bytes  # Spark sends small sides around in jobs of their own
