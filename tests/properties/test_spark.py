"""Spark yields the complete result, hence what the embedded engine yields, with the driver's shortcut off and on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.properties.drive import Broken
from tests.properties.sparks import check_spark, waits_embedded
from tests.shards import shards
from tests.strategies.interval_sequences import random_interval_sequence_case
from tests.strategies.programs import STAGED, Case, random_case
from tests.strategies.recursive import random_recursive_case
from tests.strategies.sequences import random_sequences_case
from tests.strategies.situations import random_situation_case
from tests.strategies.streams import random_script, show_script
from tidegate.algebra.errors import QueryError
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.plan.schedule import Schedule

pytestmark = pytest.mark.spark

#: Files per batch: a few, or all at once.
BATCHINGS = (3, None)
#: Bytes up to which an increment runs in the driver, and by shards: as DataFrames, by shards where it can, in the
#: driver.
PLACES = ((0, 0), (0, 1 << 20), (64 << 20, 0))
SHARDS = 12
PROGRAMS = 5
SEQUENCES = {"row patterns": random_sequences_case, "interval sequences": random_interval_sequence_case}


def valid_case(first: int, make: Callable[[int], Case] = random_case) -> tuple[Case, ProgramFacts]:
    """The first valid case from a seed on."""
    for seed in count(first):
        case = make(seed)
        try:
            return case, analyse(case.program)
        except QueryError:
            continue
    raise AssertionError


def run(
    spark: SparkSession,
    case: Case,
    facts: ProgramFacts,
    folder: Path,
    per_batch: int | None,
    place: tuple[int, int],
    schedule: Schedule | None = None,
    *,
    delayed: bool = False,
) -> None:
    script = random_script(case, 0)
    try:
        reports = check_spark(
            spark, case, script, facts, folder, per_batch=per_batch, place=place, schedule=schedule, delayed=delayed
        )
    except Broken as broken:
        pytest.fail(f"{broken}\n{case}\n{show_script(script)}")
    # With a budget, what waits depends on how long queries took before: that something does is shown without it.
    lags = any(report.waiting for report in reports)
    assert lags if schedule is not None and schedule.budget is None else schedule is not None or not lags


@pytest.mark.parametrize("number", range(3))
def test_spark_is_the_complete_result(spark: SparkSession, tmp_path: Path, number: int) -> None:
    case, facts = valid_case(40 + 10 * number)
    run(spark, case, facts, tmp_path, BATCHINGS[number % 2], PLACES[number % 2])


def test_recursion_on_spark_is_the_complete_result(spark: SparkSession, tmp_path: Path) -> None:
    case, facts = valid_case(50, random_recursive_case)
    run(spark, case, facts, tmp_path, None, PLACES[2])


@pytest.mark.parametrize("number", shards(2))
def test_situations_on_spark_are_the_complete_result(spark: SparkSession, tmp_path: Path, number: int) -> None:
    case, facts = valid_case(10 * number, random_situation_case)
    run(spark, case, facts, tmp_path, BATCHINGS[number], PLACES[1 + number], delayed=True)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_situations_on_spark_are_the_complete_result_of_many(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    for number in range(PROGRAMS):
        case, facts = valid_case(30_000 + 100 * shard + 20 * number, random_situation_case)
        place = PLACES[1 + (number + shard) % 2]
        run(spark, case, facts, tmp_path / str(number), BATCHINGS[number % 2], place, delayed=number < 4)


@pytest.mark.parametrize("number", shards(3))
@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_on_spark_are_the_complete_result(
    spark: SparkSession, tmp_path: Path, kind: str, number: int
) -> None:
    case, facts = valid_case(10 * number, SEQUENCES[kind])
    run(spark, case, facts, tmp_path, BATCHINGS[number % 2], PLACES[(1 + number) % 3], delayed=True)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_on_spark_are_the_complete_result_of_many(
    spark: SparkSession, tmp_path: Path, kind: str, shard: int
) -> None:
    for number in range(PROGRAMS):
        case, facts = valid_case(40_000 + 100 * shard + 20 * number, SEQUENCES[kind])
        place = PLACES[(number + shard) % 3]
        run(spark, case, facts, tmp_path / str(number), BATCHINGS[number % 2], place, delayed=number < 4)


def chosen_schedule(number: int, facts: ProgramFacts) -> Schedule:
    """Every second batch; a budget that lets one query through; both."""
    return Schedule({} if number == 1 else dict.fromkeys(facts.streams, 2), budget=None if number == 0 else "1us")


@pytest.mark.parametrize("number", shards(3))
def test_what_lags_on_spark_is_the_complete_result(spark: SparkSession, tmp_path: Path, number: int) -> None:
    make = random_recursive_case if number == 2 else partial(random_case, options=STAGED)
    for first in count(60, 10):  # the first case in which something lags, of few batches
        case, facts = valid_case(first, make)
        script, schedule = random_script(case, 0), chosen_schedule(number, facts)
        few = all(sum(bool(step.rows.get(s.name)) for step in script) <= 5 for s in case.streams)
        if few and waits_embedded(case, script, facts, tmp_path / f"tried {first}", 1, schedule):
            run(spark, case, facts, tmp_path, 1, PLACES[number], schedule)
            break


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_recursion_on_spark_is_the_complete_result_of_many(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    for number in range(PROGRAMS):
        case, facts = valid_case(20_000 + 100 * shard + 20 * number, random_recursive_case)
        run(spark, case, facts, tmp_path / str(number), BATCHINGS[number % 2], PLACES[2 * (number % 2)])


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_spark_is_the_complete_result_on_many_programs(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    for number in range(PROGRAMS):
        case, facts = valid_case(10_000 + 100 * shard + 20 * number)
        for i, per_batch in enumerate(BATCHINGS):
            run(spark, case, facts, tmp_path / f"{number}-{i}", per_batch, PLACES[(number + i) % 3])
