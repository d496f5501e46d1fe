"""The whole explanation of a program: what the analysis found, how it runs, and what Spark makes of its increments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.algebra.pretty import Shown, preformatted
from tidegate.algebra.rewrites import rewrite_program
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.report import explain
from tidegate.runtime.plan.drawing import svg
from tidegate.runtime.plan.explain import plan_dict, plan_text
from tidegate.runtime.plan.graph import mermaid, plan_graph
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.places import Limits
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.schedule import Timetable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, eq=False)
class ProgramExplanation:
    """What `Program.explain` gives: `str()` says when results are final, what is kept, and how the program runs.

    `report` and `plan` are its two halves, `spark(session)` gives Spark's physical plan of each query's increment, `to_dict()` report and plan as plain values.
    """

    facts: ProgramFacts
    zones: bool = False
    timetable: Timetable = field(default_factory=Timetable)
    limits: Limits = field(default_factory=Limits)
    running: Plan | None = None
    """The plan of a run; a program that does not run is planned as it would be by default."""

    def __str__(self) -> str:
        return f"{self.report}\n\n{self.plan}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def report(self) -> Shown:
        """Validity; of each query progress, finality, what is kept, and the bound of its state."""
        return Shown(explain(self.facts, zones=self.zones))

    @property
    def plan(self) -> Shown:
        """Buffers with what they store and who reads them, then each query's increment."""
        return Shown(plan_text(self.lowered(), self.timetable, self.limits))

    def spark(self, session: SparkSession) -> dict[str, str]:
        """Spark's plan of each increment, from one progress to a later one: the filters that reach files, the joins."""
        from tidegate.runtime.spark.explain import spark_plans
        from tidegate.runtime.spark.session import own_session

        return spark_plans(own_session(session), self.lowered())

    def mermaid(self) -> str:
        """The plan as a graph, as text for Mermaid."""
        return mermaid(plan_graph(self.lowered()))

    def svg(self) -> str:
        """The plan as a picture: streams, the buffers that they fill, the queries that read them."""
        return svg(plan_graph(self.lowered()))

    def _repr_html_(self) -> str:
        """For notebooks: the picture, and the text below it."""
        return f"<div>{self.svg()}{preformatted(str(self))}</div>"

    def to_dict(self) -> dict[str, object]:
        return explain(self.facts, zones=self.zones).to_dict() | {
            "plan": plan_dict(self.lowered(), self.timetable, self.limits)
        }

    def lowered(self) -> Plan:
        """The physical plan itself."""
        return lower(self.facts, optimise=rewrite_program) if self.running is None else self.running
