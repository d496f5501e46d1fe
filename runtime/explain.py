"""The whole explanation of a program: what the analysis found, how it runs, and what Spark makes of its increments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.report import Explanation, explain
from tidegate.runtime.plan.explain import plan_dict, plan_text
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.steps import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, eq=False)
class ProgramExplanation:
    """What `Program.explain` gives: `str()` is text for people, `to_dict()` the same as plain values."""

    report: Explanation
    plan: Plan | None = None
    spark: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [str(self.report)]
        if self.plan is not None:
            parts.append(plan_text(self.plan))
        parts += [f"spark {name}\n{text.strip()}" for name, text in self.spark.items()]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, object]:
        found = self.report.to_dict()
        if self.plan is not None:
            found["plan"] = plan_dict(self.plan)
        if self.spark:
            found["spark"] = dict(self.spark)
        return found


def explain_program(facts: ProgramFacts, *, zones: bool, plan: bool, spark: SparkSession | None) -> ProgramExplanation:
    """The explanation of a valid program; with a Spark session also Spark's plan of each increment."""
    from tidegate.algebra.rewrites import rewrite

    lowered: Any = lower(facts, optimise=rewrite) if plan or spark is not None else None
    plans: Mapping[str, str] = {}
    if spark is not None:
        from tidegate.runtime.spark.explain import spark_plans

        plans = spark_plans(spark, lowered)
    return ProgramExplanation(explain(facts, zones=zones), lowered if plan else None, plans)
