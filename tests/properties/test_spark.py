"""Spark yields the complete result, hence what the embedded engine yields, with the driver's shortcut off and on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.properties.drive import Broken
from tests.properties.sparks import check_spark, waits_embedded
from tests.shards import shards
from tests.strategies.contexts import random_contexts_case
from tests.strategies.contexts_above import random_above_case
from tests.strategies.contexts_inside import random_inside_case
from tests.strategies.folds import random_folding_case
from tests.strategies.interval_sequences import random_interval_sequence_case
from tests.strategies.programs import STAGED, Case, random_case
from tests.strategies.recursive import random_recursive_case
from tests.strategies.sequences import random_sequences_case
from tests.strategies.situations import random_situation_case
from tests.strategies.streams import random_script, show_script
from tidegate.algebra.errors import QueryError
from tidegate.algebra.rewrites import rewrite_program
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.contexts.optimiser.programs import optimised
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.schedule import Schedule

pytestmark = pytest.mark.spark

#: Files per batch: a few, or all at once.
BATCHINGS = (3, None)
#: Bytes up to which an increment runs in the driver, and by shards: as DataFrames, by shards where it can, in the
#: driver.
PLACES = ((0, 0), (0, 1 << 20), (64 << 20, 0))
#: Of programs that contexts and sequences are in, as many as are promised; of others a third.
SHARDS, FEWER = 12, 4
PROGRAMS = 5
#: Of which programs the optimiser changes most.
OPTIMISED = (random_above_case, random_inside_case)
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


def optimised_case(first: int, make: Callable[[int], Case] = random_above_case) -> tuple[Case, ProgramFacts]:
    """The first case from a seed on that the optimiser of contexts changes, and what it makes of it."""
    for seed in count(first):
        case, facts = valid_case(seed, make)
        changed = optimised(case.program, facts)
        if changed is not facts:
            return case, changed
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
    collect: GarbageCollection = "amortised",
) -> list[BatchReport]:
    script = random_script(case, 0)
    try:
        reports = check_spark(
            spark,
            case,
            script,
            facts,
            folder,
            per_batch=per_batch,
            place=place,
            schedule=schedule,
            delayed=delayed,
            collect=collect,
        )
    except Broken as broken:
        pytest.fail(f"{broken}\n{case}\n{show_script(script)}")
    # With a budget, what waits depends on how long queries took before: that something does is shown without it.
    lags = any(report.waiting for report in reports)
    assert lags if schedule is not None and schedule.budget is None else schedule is not None or not lags
    return reports


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
@pytest.mark.parametrize("shard", range(FEWER))
def test_situations_on_spark_are_the_complete_result_of_many(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    for number in range(PROGRAMS):
        case, facts = valid_case(30_000 + 100 * shard + 20 * number, random_situation_case)
        place = PLACES[1 + (number + shard) % 2]
        run(spark, case, facts, tmp_path / str(number), BATCHINGS[number % 2], place, delayed=number < 4)


@pytest.mark.parametrize("number", range(2))
def test_contexts_on_spark_are_the_complete_result(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """As the optimiser makes them; by shards, and in the driver. The second has an operator that gathers rows."""
    case, facts = optimised_case(10 * number, OPTIMISED[number])
    run(spark, case, facts, tmp_path, BATCHINGS[number], PLACES[1 + number], delayed=number == 1)


@pytest.mark.parametrize("number", shards(3))
@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_on_spark_are_the_complete_result(
    spark: SparkSession, tmp_path: Path, kind: str, number: int
) -> None:
    case, facts = valid_case(10 * number, SEQUENCES[kind])
    run(spark, case, facts, tmp_path, BATCHINGS[number % 2], PLACES[(1 + number) % 3], delayed=True)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_contexts_on_spark_are_the_complete_result_of_many(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    """48 programs that the optimiser changes, every other one with operators that gather rows; and twelve of any."""
    for number in range(PROGRAMS):
        first, is_any = 40_000 + 100 * shard + 20 * number, number == PROGRAMS - 1
        make = OPTIMISED[(number // 2 + shard) % 2]
        case, facts = valid_case(first, random_contexts_case) if is_any else optimised_case(first, make)
        made = optimised(case.program, facts) if is_any else facts
        place = PLACES[1 + (number + shard) % 2]
        run(spark, case, made, tmp_path / str(number), BATCHINGS[number % 2], place, delayed=number % 2 == 1)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_on_spark_are_the_complete_result_of_many(
    spark: SparkSession, tmp_path: Path, kind: str, place: tuple[int, int], shard: int
) -> None:
    """Sixty programs at each place."""
    for number in range(PROGRAMS):
        case, facts = valid_case(40_000 + 100 * shard + 20 * number, SEQUENCES[kind])
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
@pytest.mark.parametrize("shard", range(FEWER))
def test_folds_as_dataframes_are_the_complete_result_of_many(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    """Settled rows become one row a class after each batch, and DataFrames read them as what they stand for."""
    spared, seeds = 0, count(40_000 + 1000 * shard)
    for number in range(3 * PROGRAMS):
        if number >= PROGRAMS and spared > 0:
            break
        while True:
            case, facts = valid_case(next(seeds), random_folding_case)
            uses = {use.stream.name for query in facts.queries for use in query.occurrences if use.folds}
            if uses:
                break
        reports = run(spark, case, facts, tmp_path / str(number), BATCHINGS[0], PLACES[0], collect="exact")
        assert {place for report in reports for place in report.places.values()} <= {"catalyst"}
        plan = lower(facts, optimise=rewrite_program)
        folded = [buffer for buffer in plan.buffers if buffer.fold is not None]
        assert {buffer.stream.name for buffer in folded} == uses
        come = Counter[str]()
        for report in reports[:-1]:  # with the last one the input ends, and nothing is kept
            come.update({name: counts.accepted for name, counts in report.counts.items()})
            spared += sum(come[one.stream.name] - report.live_rows[one.id] for one in folded)
    assert spared > 0


@pytest.mark.long
@pytest.mark.parametrize("shard", range(FEWER))
def test_recursion_on_spark_is_the_complete_result_of_many(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    for number in range(PROGRAMS):
        case, facts = valid_case(20_000 + 100 * shard + 20 * number, random_recursive_case)
        run(spark, case, facts, tmp_path / str(number), BATCHINGS[number % 2], PLACES[2 * (number % 2)])


@pytest.mark.long
@pytest.mark.parametrize("shard", range(FEWER))
def test_spark_is_the_complete_result_on_many_programs(spark: SparkSession, tmp_path: Path, shard: int) -> None:
    for number in range(PROGRAMS):
        case, facts = valid_case(10_000 + 100 * shard + 20 * number)
        for i, per_batch in enumerate(BATCHINGS):
            run(spark, case, facts, tmp_path / f"{number}-{i}", per_batch, PLACES[(number + i) % 3])
