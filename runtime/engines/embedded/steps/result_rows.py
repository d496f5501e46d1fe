"""What becomes of new result rows: other queries' buffers store them, sinks are given them, some are set aside."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.terms import Term
from tidegate.runtime.batch.executor import Increment
from tidegate.runtime.engines.embedded.steps.aside_rows import AsideRows
from tidegate.runtime.engines.embedded.steps.evaluation import of_query
from tidegate.runtime.engines.embedded.steps.pending_segments import PendingSegments
from tidegate.runtime.eval.columns import only, to_user_table
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.lenient import UNEVALUABLE, SetAsideRows
from tidegate.runtime.eval.unevaluable import failures, terms_of
from tidegate.runtime.ingest.buffering import absorbed
from tidegate.runtime.plan.steps import Buffer, QueryPlan
from tidegate.runtime.rows import Rows, as_frame, as_table
from tidegate.runtime.state.batch import Batch


@dataclass(slots=True)
class ResultRows:
    """New rows of queries; `written` names the result streams whose rows a sink wants."""

    pending: PendingSegments
    statics: Mapping[str, pl.DataFrame]
    aside: AsideRows
    written: Collection[str]
    _strata: tuple[Batch, dict[str, list[pl.DataFrame]]] | None = None
    """New rows of a batch's strata per query, until they are settled."""

    def store(self, batch: Batch, job: Job, rows: Rows) -> Increment:
        """The rows of an increment, stored, staged for their sink, and counted."""
        stored = {}
        for buffer, admission in job.feeds if rows.height else ():
            part = self._absorbed(job, rows, buffer, admission)
            if part.height:
                stored[buffer.id] = (self.pending.keep(batch, buffer, part),)
        if rows.height and job.query.stream in self.written:
            _stage(batch, job.query, rows)
        return Increment(rows.height, stored, "driver", aside=self.aside.write(batch, job.query.name))

    def hold(self, batch: Batch, job: Job, rows: pl.DataFrame) -> Increment:
        """Rows of a stratum, kept in memory: written one by one, a thousand strata would be thousands of files."""
        if not rows.height:
            return Increment(0, place="driver")
        stored = {
            buffer.id: (self.pending.hold(batch, buffer, part),)
            for buffer, admission in job.feeds
            if (part := self._absorbed(job, rows, buffer, admission)).height
        }
        if self._strata is None or self._strata[0] is not batch:
            self._strata = batch, {}
        self._strata[1].setdefault(job.query.name, []).append(rows)
        return Increment(rows.height, stored, "driver")

    def settle(self, batch: Batch, queries: Sequence[QueryPlan], done: Mapping[str, Increment]) -> dict[str, Increment]:
        """The increments of a component with the rows of all strata stored and staged together."""
        passed = self._strata[1] if self._strata is not None and self._strata[0] is batch else {}
        self._strata = None
        settled: dict[str, Increment] = {}
        for query in queries:
            if query.name not in done and query.name not in self.aside.queries:
                continue
            increment = done.get(query.name, Increment(0, place="driver"))
            if query.stream in self.written and query.name in passed:
                _stage(batch, query, pl.concat(passed[query.name]))
            segments = {name: self.pending.as_one(batch, stored) for name, stored in increment.segments.items()}
            aside = self.aside.write(batch, query.name)
            settled[query.name] = Increment(increment.rows, segments, increment.place, aside=aside)
        return settled

    def _absorbed(self, job: Job, rows: Rows, buffer: Buffer, admission: Term) -> Rows:
        """What a buffer stores of a result; rows for which a term of its readers has no value are set aside."""
        try:
            return absorbed(rows, buffer, admission, self.statics)
        except EvaluationError as error:
            if buffer.id not in job.lenient_feeds:
                raise of_query(error, job) from error.__cause__
        frame = as_frame(rows)
        failed = failures((terms_of(buffer),), frame, self.statics, of_results=True)
        schema = job.query.facts.output.schema
        plain = only(frame, schema.names)
        aside = (
            SetAsideRows.of(UNEVALUABLE, plain[part.numbers], schema, part.rows, part.failures.error)
            for part in failed.parts
        )
        self.aside.add(job.query.name, buffer.id, aside)
        fine = frame.filter(~pl.int_range(pl.len()).is_in(failed.numbers.implode()))
        return absorbed(fine, buffer, admission, self.statics)


def _stage(batch: Batch, query: QueryPlan, rows: Rows) -> None:
    batch.stage_output(query.name, to_user_table(as_table(rows), query.facts.output.schema))
