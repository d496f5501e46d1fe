"""On Spark: shards in portions, tasks of their own, have the rows of the shard together; of operators too."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import tidegate as tg
from tests.runtime import test_operator_portions as patterns
from tests.runtime.spark import test_situations as slices
from tests.runtime.spark.lost_workers import lose
from tests.runtime.spark.watched_tasks import Loss, Watch, attempts
from tests.runtime.test_portions import RESULTS, batches, program
from tidegate import testing
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark import executor
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.eval.portions import Loads

pytestmark = pytest.mark.spark

#: The share of the name that every second row has, of two.
HOT = int(pl.Series([patterns.HOT]).hash(0)[0] % 2)


@pytest.mark.long
def test_results_are_the_same_whatever_is_divided(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, made = random.Random(5), batches(5)
    asked: Counter[tuple[str, int]] = Counter()

    def drawn(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        some = [(query, shard) for query in queries for shard in range(shards) if rng.random() < 0.5]
        chosen = {one: rng.randint(2, 4) for one in some}
        asked.update(chosen)
        return chosen

    monkeypatch.setattr(Loads, "portions", drawn)
    with testing.drive(program(), spark=spark, driver_bytes=0, shard_bytes=1 << 20) as run:
        for batch in made:
            for name, rows in batch.items():
                run.add(name, rows)
                run.advance(name, t=rows[-1]["t"] - 1)
            run.step()
        run.finish()
        run.step()
        assert {place for report in run.reports for place in report.places.values()} == {"sharded"}
        found = {name: Counter(map(str, run.results(name))) for name in RESULTS}
    assert asked.total() > len(RESULTS)
    wanted = program().run({name: [row for batch in made for row in batch[name]] for name in ("E", "O")})
    assert found == {name: Counter(map(str, wanted[name].arrow().to_pylist())) for name in RESULTS}


@pytest.mark.long
def test_what_operators_find_is_the_same_whatever_is_divided(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, chosen = patterns.batches(6), set[str]()
    monkeypatch.setattr(Loads, "portions", patterns.drawn_by(random.Random(6)))
    with testing.drive(patterns.program(), spark=spark, driver_bytes=0) as run:
        for batch in made:
            run.add("R", batch)
            run.advance("R", t=batch[-1]["t"] - 1)
            run.step()
        run.finish()
        run.step()
        assert {place for report in run.reports for place in report.places.values()} == {"sharded"}
        chosen |= {choice.step for report in run.reports for choice in report.choices}
        found = {name: Counter(map(str, run.results(name))) for name in patterns.RESULTS}
    assert any(step.startswith("Found, shard") for step in chosen)
    wanted = patterns.program().run({"R": [row for batch in made for row in batch]})
    assert found == {name: Counter(map(str, wanted[name].arrow().to_pylist())) for name in patterns.RESULTS}


def reports_of(
    spark: SparkSession, place: Path, of: tg.Program, names: Sequence[str], folder: Path, **options: Any
) -> list[BatchReport]:
    """The batches of a run over files, in which the driver evaluates nothing."""
    query = start(
        spark,
        of.facts,
        sources=patterns.sources_of(folder),
        sinks=patterns.sinks_of(place, names),
        checkpoint=place / "checkpoint",
        options=RunOptions(**options),
        driver_bytes=0,
    )
    query.awaitTermination()
    return list(query.reports)


def test_a_run_divides_the_share_of_a_partition_with_half_of_all_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what its tasks tell, of which the test says how long they took."""
    made, learn, told = patterns.batches(8), Loads.learn, Counter[int]()

    def learning(self: Loads, summaries: Sequence[Any], shards: Mapping[str, int]) -> Any:
        for summary in summaries:
            if "load" in summary:
                shard, count, *_ = summary["load"]
                told[count] += 1
                summary["load"] = [shard, count, 0.5, 10.0 / count if shard == HOT else 1.0]
        return learn(self, summaries, shards)

    monkeypatch.setattr(Loads, "learn", learning)
    folder = patterns.write(tmp_path / "in", made)
    reports = reports_of(spark, tmp_path, patterns.pattern(), ["Found"], folder)
    lines = {str(choice) for report in reports for choice in report.choices}
    assert lines == {f"Found, shard {HOT}: 2 portions (it took 10.5 s, the mean is 6 s)"}
    assert told[1]
    assert told[2]
    patterns.check_results(tmp_path, patterns.pattern(), ["Found"], made)


@pytest.mark.long
def test_a_lost_worker_costs_the_task_that_it_was_at(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that hold the operators are lost after a batch, and then one in a portion, with which the run ends, as
    tasks of this session are not tried again. It also ends where Spark gives a task to a worker that was lost as it
    waited. The next run goes on.
    """
    made, lost = patterns.batches(9)[:3], list[int]()
    watch = Watch(tmp_path / "notes", [Loss("evaluate_ordered_portion", 2, "store-file-written")])
    monkeypatch.setattr(executor, "run_tasks", watch.run_tasks)
    monkeypatch.setattr(Loads, "portions", lambda self, queries, shards: {("Found", HOT): 3})
    folder = patterns.write(tmp_path / "in", made)

    def after(report: BatchReport) -> None:
        if not lost:
            lose("worker")
            lost.append(report.seq)

    has_ended = False
    while not has_ended:
        try:
            reports_of(spark, tmp_path, patterns.pattern(), ["Found"], folder, on_batch=after)
            has_ended = True
        except StreamingQueryException as failure:
            if "Python worker exited unexpectedly" not in str(failure):
                raise
    patterns.check_results(tmp_path, patterns.pattern(), ["Found"], made)
    portions = [one for one in attempts(tmp_path / "notes") if one.work == "evaluate_ordered_portion"]
    killed = [one.seq for one in portions if not one.done]
    assert killed
    assert killed[0] > lost[0]
    assert len({one.pid for one in portions}) > 1


def test_shares_are_divided_as_it_was_recorded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing says that they would take long."""
    made = patterns.batches(10)[:3]
    folder = patterns.write(tmp_path / "in", made)

    def chosen(name: str, tune: Any) -> list[BatchReport]:
        reports = reports_of(spark, tmp_path / name, patterns.pattern(), ["Found"], folder, tune=tune)
        patterns.check_results(tmp_path / name, patterns.pattern(), ["Found"], made)
        return reports

    def ways(reports: Sequence[BatchReport]) -> list[tuple[int, str, str]]:
        return [(report.seq, choice.step, str(choice.way)) for report in reports for choice in report.choices]

    with monkeypatch.context() as patch:
        patch.setattr(Loads, "portions", patterns.drawn_by(random.Random(10)))
        first = chosen("first", "throughput")
    assert ways(first)
    second = chosen("second", {report.seq: report.choices for report in first})
    assert ways(second) == ways(first)


def test_slices_that_interleave_are_read_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The portions find it, too."""

    def drawn(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        return {(query, shard): 3 for query in queries for shard in range(shards)}

    monkeypatch.setattr(Loads, "portions", drawn)
    files = slices.write(tmp_path / "in", apart=True)
    reports = slices.on_spark(spark, files, tmp_path, slices.SHARDS)
    assert [report.interleaved for report in reports] == [True, False, False]
    assert any(choice.step == "Found, shard 1" for report in reports for choice in report.choices)
    assert slices.results(tmp_path / "out") == slices.expected(files)
