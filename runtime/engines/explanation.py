"""The whole explanation of a program: what the analysis found, how it runs, and what Spark makes of its increments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.printing.drawing import svg
from tidegate.algebra.printing.graph import mermaid
from tidegate.algebra.printing.plans import DisplayText, preformatted
from tidegate.algebra.rewrites import rewrite_program
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.report.report import explain
from tidegate.runtime.inspect.graph import plan_graph
from tidegate.runtime.inspect.plan_text import plan_dict, plan_text
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.plan.schedule import Timetable
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.tuning.choices import Choice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: What the words of a plan mean, for who has not read how it runs.
_PLAN = """\
how it runs
  buffer      the stored rows of a stream; Orders#0 is the first buffer of Orders; `chain` says what is done to rows that come
  increment   what a batch adds to a result; `tree` says how it is computed from the buffers"""
#: And those of a query that gathers events in order.
_ORDERED = """\
  events      how the rows are stored that an operator reads in order
  implied     what follows from an operator's conditions, and which of them say nothing that the others do not
  execution   how long rows are stored that an operator joins: as long as the window lets them, or as long as partners of theirs may come
  order       when one of them has come, in which order an operator looks for those that go with it; the cost is that of the search"""


@checked_calls
@dataclass(frozen=True, slots=True, eq=False)
class ProgramExplanation:
    """What `Program.explain` gives: `str()` says when results are final, what is kept, and how the program runs.

    `report` and `plan` are its two halves, `spark(session)` gives Spark's physical plan of each query's increment,
    `to_dict()` report and plan as plain values.

    Examples:
        >>> print(program.explain())
        query Unpaid
        ...
          final when  ordered <= min(Orders.ordered, Payments.paid - 30m)
        ...
        increment Unpaid
          reads       Orders#0, Payments#0
        ...
    """

    facts: ProgramFacts
    zones: bool = False
    timetable: Timetable = field(default_factory=Timetable)
    limits: Limits = field(default_factory=Limits)
    running: Plan | None = None
    """The plan of a run; a program that does not run is planned as it would be by default."""
    choices: tuple[Choice, ...] = ()
    """How the last batch of a run did what can be done in several ways."""

    def __str__(self) -> str:
        return f"{self.report}\n\n{self._how_it_runs()}"

    def _how_it_runs(self) -> str:
        """The plan, and before it what its words mean."""
        plan = str(self.plan)
        ordered = [line for line in _ORDERED.splitlines() if f"\n{line[:14]}" in plan]
        chosen = "".join(f"\n  {choice}" for choice in self.choices)
        chosen = f"\n\nchosen in the last batch, by the costs measured so far{chosen}" if chosen else ""
        return "\n".join([_PLAN, *ordered]) + f"\n\n{plan}{chosen}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def report(self) -> DisplayText:
        """Validity; of each query progress, finality, what is kept, and the bound of its state.

        Examples:
            >>> print(program.explain().report)
            query Unpaid
              schema      order_id bigint
                          customer string
                          ordered timestamp not null
              progress    ordered
              final when  ordered <= min(Orders.ordered, Payments.paid - 30m)
            ...
        """
        return DisplayText(explain(self.facts, zones=self.zones))

    @property
    def plan(self) -> DisplayText:
        """Buffers with what they store and who reads them, then each query's increment.

        Examples:
            >>> print(program.explain().plan)
            buffer Orders#0
              holds       rows
              read by     Unpaid
              freed when  a row of Payments that has come keeps it out of Unpaid
            ...
        """
        return DisplayText(plan_text(self.lowered(), self.timetable, self.limits))

    def spark(self, session: SparkSession) -> dict[str, str]:
        """Spark's plan of each increment, from one progress to a later one: the filters that reach files, the joins.

        Examples:
            >>> print(program.explain().spark(spark)["Unpaid"])
            == Physical Plan ==
            ...
        """
        from tidegate.runtime.engines.spark.explain import spark_plans
        from tidegate.runtime.engines.spark.setup.session import own_session

        return spark_plans(own_session(session), self.lowered())

    def mermaid(self) -> str:
        """The plan as a graph, as text for Mermaid.

        Examples:
            >>> print(program.explain().mermaid())
            flowchart LR
              n0(["Orders<br/>progress on ordered"])
            ...
        """
        return mermaid(plan_graph(self.lowered()))

    def svg(self) -> str:
        """The plan as a picture: streams, the buffers that they fill, the queries that read them.

        Examples:
            >>> program.explain().svg()
            '<svg ...</svg>...'
        """
        return svg(plan_graph(self.lowered()))

    def _repr_html_(self) -> str:
        """For notebooks: the report, the picture, and the plan, which opens with a click."""
        # Notebooks make pictures as narrow as what is around them.
        picture = f'<div style="overflow-x: auto"><div style="width: max-content">{self.svg()}</div></div>'
        plan = f"<details><summary>How it runs</summary>{preformatted(self._how_it_runs())}</details>"
        return f"<div>{preformatted(self.report)}{picture}{plan}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Report and plan as plain values, for JSON.

        Examples:
            >>> program.explain().to_dict()["queries"][0]["final_when"]
            {'ordered': 'min(Orders.ordered, Payments.paid - 30m)'}
        """
        return explain(self.facts, zones=self.zones).to_dict() | {
            "plan": plan_dict(self.lowered(), self.timetable, self.limits),
            "choices": {choice.step: choice.text for choice in self.choices},
        }

    def lowered(self) -> Plan:
        """The physical plan itself.

        Examples:
            >>> [buffer.id for buffer in program.explain().lowered().buffers]
            ['Orders#0', 'Payments#0']
        """
        return lower(self.facts, optimise=rewrite_program) if self.running is None else self.running
