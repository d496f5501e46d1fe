"""The evaluation of operators that gather rows in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.time import INF
from tidegate.runtime.engines.embedded.steps.aside_rows import AsideRows
from tidegate.runtime.engines.embedded.steps.evaluation import JobEvaluation, of_query
from tidegate.runtime.eval.increment import joined_leaves
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.ordered.family import Operator, heard
from tidegate.runtime.ordered.operators import Operators
from tidegate.runtime.rows import Rows


@dataclass(frozen=True, slots=True)
class OrderedEvaluation:
    """The rows that an ordered operator completes; events without a value or an order go to `aside`."""

    evaluation: JobEvaluation
    operators: Operators
    aside: AsideRows

    def step(self, job: Job) -> tuple[Operator, Rows]:
        """The operator after an increment, and the rows that it completes."""
        ordered = job.query.ordered
        assert ordered is not None
        stored = self.evaluation.leaves(job)
        try:
            leaves = joined_leaves(job.query, stored, self.evaluation.statics)
            operator = self.operators.of(job)
            events: Sequence[Rows] = operator.events(leaves, job.old[ordered.time], job.new[ordered.time])
            if ordered.judges:
                events, aside = operator.evaluable(events)
                if aside and not job.lenient:
                    raise aside[0].error
                self.aside.add(job.query.name, job.query.name, aside)
            after, completed = self._stepped(operator, events, job)
            if job.new[ordered.time] == INF:
                after = after.emptied()
            rows = self.evaluation.completed(job, completed) if completed.height else completed
        except EvaluationError as error:
            raise of_query(error, job) from error.__cause__
        return after, rows

    def _stepped(self, operator: Operator, events: Sequence[Rows], job: Job) -> tuple[Operator, Rows]:
        """The operator after an increment, and what it completes; events that nothing orders are set aside."""
        assert job.query.ordered is not None
        time = job.query.ordered.time
        ties: list[SetAside] | None = None
        sums: list[SetAside] | None = None
        while True:
            try:
                with heard(partial(self.evaluation.many_pairs.announce, job.query)):
                    after, rows = operator.step(events, job.old[time], job.new[time], job.close_at)
                after = after.letting_go(events, job.new[time])
                break
            except EvaluationError as error:
                if error.code == "TG304" and job.untied and ties is None:
                    events, ties = operator.untied(events)
                elif error.code == "TG301" and job.lenient and sums is None:
                    operator = operator.noting(sums := [])
                else:
                    raise
                if sums:
                    sums.clear()
        self.aside.add(job.query.name, job.query.name, [*(ties or ()), *(sums or ())])
        if sums is None:
            return after, rows
        return after.noting(None), rows
