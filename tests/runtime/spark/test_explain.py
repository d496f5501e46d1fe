"""Spark's plans of increments: progress reaches the files, equalities become hash joins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime.cli.commands import main

events = tg.stream("E", "k bigint, t bigint, v double", progress="t")


@pytest.mark.spark
def test_relevance_is_pushed_into_the_files_and_equalities_are_join_keys(spark: SparkSession) -> None:
    a, b = events.as_("a"), events.as_("b")
    lonely = a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5).select(k=a.k, t=a.t)
    counted = events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count())
    plans = tg.program(Lonely=lonely, Counted=counted).explain().spark(spark)
    assert set(plans) == {"Lonely", "Counted"}
    assert "PushedFilters" in plans["Lonely"]
    assert "GreaterThan(t,1000000000)" in plans["Lonely"]
    assert "LeftAnti" in plans["Lonely"]
    assert "CartesianProduct" not in plans["Lonely"]
    assert "HashAggregate" in plans["Counted"]


@pytest.mark.spark
def test_the_explanation_of_a_run_is_that_of_the_plan_that_runs(spark: SparkSession, tmp_path: Path) -> None:
    a, b = events.as_("a"), tg.stream("Other", "k bigint, t bigint", progress="t").as_("b")
    program = tg.program(Alone=a.anti_join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 30))
    rows = {"E": [(1, 5, 0.0)], "Other": [(1, 6)]}
    query = program.start(spark, sources=rows, checkpoint=tmp_path, purging="off")
    query.awaitTermination()
    assert "freed when" in program.explain().plan
    assert "freed when" not in query.explanation().plan
    assert query.explanation().lowered() is query._run.setup.plan


FILE = """\
import tidegate as tg

events = tg.stream("E", "k bigint, t bigint", progress="t")
counted = tg.program(Counted=events.group_by(w=tg.ceil(events.t, 10)).agg(n=tg.count()))
chosen = tg.program(Chosen=events.where(events.k > 1))
"""


@pytest.mark.spark
def test_the_command_line_prints_the_plans_after_each_program(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "programs.py"
    file.write_text(FILE)
    assert main(["explain", str(file), "--spark"]) == 0
    counted, chosen = capsys.readouterr().out.split("program chosen\n")
    assert counted.index("increment Counted") < counted.index("Spark's plan of Counted\n\n== Physical Plan ==")
    assert "HashAggregate" in counted
    assert "Spark's plan of Chosen\n\n== Physical Plan ==" in chosen
    assert main(["explain", str(file), "--spark", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "PushedFilters" in answer["chosen"]["spark"]["Chosen"]
    with pytest.raises(SystemExit) as wrong:
        main(["explain", str(file), "--spark", "--graph", "svg"])
    assert wrong.value.code == 2
