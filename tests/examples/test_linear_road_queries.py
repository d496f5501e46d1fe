"""Linear Road's queries answer what the checker does: the worked example, streams full of borders, a small road."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from examples.linear_road import contexts
from examples.linear_road.checker import check
from examples.linear_road.files import rows as road_rows
from examples.linear_road.generator import Options, Road
from examples.linear_road.queries import DISTANCES, answers, history, program
from examples.linear_road.rows import DAILY, Row, position
from tests.examples.small_roads import Bags, bags, example, in_contexts, in_disorder, many_borders
from tidegate import testing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {"Distances": DISTANCES}
NAMES = ("Notifications", "Alerts", "Balances", "Daily", "Charges")


def found(results: Callable[[str], Sequence[dict[str, Any]]], names: Sequence[str] = NAMES) -> Bags:
    return {name: Counter(tuple(row.values()) for row in results(name)) for name in names}


def answered(
    rows: Sequence[Row],
    seed: int,
    checkpoint: Path | None = None,
    asked: tg.Program = program,
    names: Sequence[str] = NAMES,
) -> Bags:
    """The answers to rows that come in disorder, in batches of any size, of a run that goes on after each batch of ten
    from its checkpoint, where there is one.
    """
    session = asked.session(checkpoint=checkpoint, statics=TABLES)
    for number, (batch, until) in enumerate(in_disorder(rows, seed)):
        if checkpoint is not None and number % 10 == 9:
            session.close()
            session = asked.session(checkpoint=checkpoint, statics=TABLES)
        session.push("Road", batch)
        session.advance("Road", until)
        session.step()
        for name in names:
            assert all(row["time"] <= until for row in session.results(name))
    session.finish()
    session.process()
    results = found(session.results, names)
    session.close()
    return results


def test_the_worked_example() -> None:
    results = program.run({"Road": example(), "Distances": DISTANCES})
    assert found(lambda name: results[name].rows()) == bags(check(example()))


def test_streams_full_of_borders() -> None:
    rows = many_borders(range(40))
    right = check(rows)
    assert len(right.accidents) > 30
    assert len(right.alerts) > 200
    assert len(right.charges) > 20
    results = program.run({"Road": rows, "Distances": DISTANCES})
    assert found(lambda name: results[name].rows()) == bags(right)


def test_velocities_by_the_papers_formulas() -> None:
    """Where cars and minutes have as many reports as others both means are one; here they are not."""
    rows = many_borders(range(40))
    right = check(rows, lav="paper")
    assert len({*right.notifications} - {*check(rows).notifications}) > 100
    results = answers("paper").run({"Road": rows, "Distances": DISTANCES})
    assert found(lambda name: results[name].rows()) == bags(right)


def test_daily_expenditure_by_a_table() -> None:
    rows = many_borders(range(10))
    asked = sorted({(row.vid, row.day, row.xway) for row in rows if row.type == DAILY})
    paid = {key: number for number, key in enumerate(asked) if number % 3}
    right = check(rows, paid)
    assert {toll for _, _, toll in right.daily} >= {0, 1, 2}
    given = [(*key, toll) for key, toll in paid.items()]
    results = answers(tolls=history).run({"Road": rows, "Distances": DISTANCES, "History": given})
    assert found(lambda name: results[name].rows()) == bags(right)


@pytest.mark.parametrize("seed", range(2))
def test_any_batches_in_disorder(seed: int) -> None:
    rows = many_borders(range(10 * seed, 10 * seed + 6), minutes=6)
    assert answered(rows, seed) == bags(check(rows))


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    rows = many_borders(range(100, 106), minutes=6)
    assert answered(rows, 1, tmp_path / "state") == bags(check(rows))


def test_a_road_with_gaps_duplicates_and_noise() -> None:
    wrong = Options(traffic=0.1, stretch=(95, 100), accidents=1 / 100, gaps=0.02, duplicates=0.02, noise=0.5)
    rows = road_rows([Road(0, wrong), Road(1, wrong)], 900)
    right = check(rows)
    assert min(len(right.alerts), len(right.charges), len(right.balances)) > 50
    results = program.run({"Road": rows, "Distances": DISTANCES})
    assert found(lambda name: results[name].rows()) == bags(right)


def test_tolls_and_alerts_said_in_contexts() -> None:
    rows = many_borders(range(60)) + example_elsewhere()
    right = in_contexts(check(rows))
    assert right["Tolls"].total() > 30
    assert right["Alerts"].total() > 300
    results = contexts.program.run({"Road": rows, "Distances": DISTANCES})
    assert found(results.rows, (*right,)) == right


@pytest.mark.parametrize(("seed", "restarts"), [(3, False), (4, True)])
def test_contexts_in_any_batches_in_disorder(seed: int, restarts: bool, tmp_path: Path) -> None:
    rows = many_borders(range(10 * seed, 10 * seed + 6), minutes=6) + example_elsewhere()
    right = in_contexts(check(rows))
    assert all(right.values())
    assert answered(rows, seed, tmp_path / "state" if restarts else None, contexts.program, (*right,)) == right


def test_an_accident_counts_at_the_border_of_a_minute() -> None:
    """Two cars stand in segment 13 from 119 on, or from 120 on: who enters segment 10 at 120 is warned, or is not."""
    for late, warned in ((0, [120, 179]), (1, [180])):
        rows = [position(time + late, car, 0, 0, 2, 0, 70_000) for car in (1, 2) for time in (29, 59, 89, 119)]
        rows += [position(time, 100 + time, 50, 0, 1, 0, 52_900) for time in (119, 120, 179, 180)]
        rows += [position(150 + late, car, 30, 0, 2, 0, 70_010) for car in (1, 2) if not late]
        right = check(rows)
        assert [time for time, *_ in right.alerts] == warned
        results = contexts.program.run({"Road": rows, "Distances": DISTANCES})
        assert found(results.rows, ("Tolls", "Alerts")) == in_contexts(right)


@pytest.mark.spark
@pytest.mark.parametrize("driver_bytes", [pytest.param(0, marks=pytest.mark.long), 64 << 20])
def test_spark_has_the_same_answers(driver_bytes: int, spark: SparkSession) -> None:
    rows = many_borders(range(100, 103), minutes=6) + example_elsewhere()
    with testing.drive(program, spark=spark, statics=TABLES, driver_bytes=driver_bytes) as run:
        half = len(rows) // 2
        ordered = sorted(rows, key=lambda row: row.time)
        for batch in (ordered[:half][::-1], ordered[half:][::-1]):
            run.add("Road", batch)
            run.advance("Road", time=max(row.time for row in batch) - 1)
            run.step()
        run.finish()
        run.step()
        assert found(run.results) == bags(check(rows))


def example_elsewhere() -> list[Row]:
    """The worked example on a road and with cars that no other stream has."""
    return [row._replace(vid=row.vid + 10**6, xway=row.xway if row.xway < 0 else 50) for row in example()]
