"""Admission of a batch's rows: by what those of each stream are judged, and how far the streams have come with them.

Rows themselves are judged in `ingest/admission.py`, by the `Intake` that is made here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node
from tidegate.algebra.row_wise import row_terms
from tidegate.algebra.schema import StreamDef
from tidegate.runtime.batch.executor import IngestResult, Work
from tidegate.runtime.batch.garbage import Garbage
from tidegate.runtime.batch.source_activity import SourceActivity, idle_progress, means_of
from tidegate.runtime.batch.state import RunState, with_stored
from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.eval.unevaluable import parts_to_evaluate
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.plan.progress import ProgressState, input_streams
from tidegate.runtime.plan.steps import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    """How rows of a program's input streams come in, as the `options` of their sources say.

    `terms`: per input stream the row-wise parts of queries that hold terms which can fail on a row.
    """

    plan: Plan
    options: Mapping[str, SourceOptions]
    garbage: Garbage
    terms: Mapping[str, tuple[Node, ...]]

    @classmethod
    def of(cls, plan: Plan, options: Mapping[str, SourceOptions], garbage: Garbage) -> Admission:
        parts = defaultdict[str, list[Node]](list)
        for query in plan.facts.queries:
            for stream, part in row_terms(query.query.node):
                parts[stream].append(part)
        return cls(plan, options, garbage, {s.name: parts_to_evaluate(parts[s.name]) for s in input_streams(plan)})

    def intakes(self, state: RunState, clock: int, *, joining: bool = False) -> dict[str, Intake]:
        """What admission of the next batch needs, per stream; the clock in microseconds."""
        arrival = self._arrival(state.progress, clock)
        return {s.name: self._intake(s, state, clock, arrival, joining) for s in input_streams(self.plan)}

    def _arrival(self, progress: ProgressState, clock: int) -> int:
        """The instant at which a batch receives rows: its clock, but later than every arrival before it.

        So all rows up to it have arrived when the batch ends, although a clock may stand still or run behind.
        """
        before = [
            b
            for name, source in self.options.items()
            if source.arrival is not None and isinstance(b := progress.inputs[name, source.arrival], int)
        ]
        return max([clock, *(b + 1 for b in before)])

    def _intake(self, stream: StreamDef, state: RunState, clock: int, arrival: int, joining: bool) -> Intake:
        keys = self.garbage.keys
        memory = keys[stream.name].buffer if stream.name in keys else None
        buffers = (*self.plan.feeds(stream.name), *(() if memory is None else (memory,)))
        beginnings = self.garbage.beginnings.get(stream.name)
        return Intake(
            stream,
            state.progress.of_input(stream),
            buffers,
            self.garbage.admission_filters(buffers, state.progress),
            limits=self.options[stream.name].limits(stream, clock),
            floors=self.options[stream.name].floors(stream, clock),
            memory=memory,
            remembered=() if memory is None else state.segments[memory.id],
            arrival=arrival,
            joining=joining,
            terms=self.terms[stream.name],
            beginnings=beginnings,
            begun=() if beginnings is None else state.segments[beginnings.buffer.id],
        )

    def check(self, ingested: Mapping[str, IngestResult]) -> None:
        """`QueryError` TG410 where rows were rejected of a stream whose policy is to fail."""
        for name, result in ingested.items():
            if self.options[name].policy == "fail" and result.counts.rejected:
                counts = ", ".join(f"{rows:,} {reason}" for reason, rows in sorted(result.counts.rejected.items()))
                raise QueryError(
                    "TG410",
                    f"{name}: rows were rejected ({counts}, of {result.counts.rows_in:,}), and its policy is to fail",
                    because=(result.first_rejected,),
                    hint='correct the input, declare a longer delay, or use policy="quarantine" to set such rows aside',
                )

    def admitted(self, state: RunState, work: Work, ingested: Mapping[str, IngestResult], clock: int) -> RunState:
        """The state once rows are stored: their counts, and how far each input stream has come."""
        activity = self._activity(state.activity, work, ingested, clock)
        progress = self._progress(state.progress, activity, work, ingested, clock)
        segments = state.segments
        for result in ingested.values():
            segments = with_stored(segments, result.segments)
        closing = state.closing
        if closing is not None:
            closing = closing.after(work, ingested, progress)
            closing.check(self.plan, progress)
        counts = {name: state.counts[name] + result.counts for name, result in ingested.items()}
        return replace(
            state,
            progress=progress,
            segments=segments,
            counts={**state.counts, **counts},
            activity=activity,
            closing=closing,
        )

    def _activity(
        self, known: Mapping[str, SourceActivity], work: Work, ingested: Mapping[str, IngestResult], clock: int
    ) -> dict[str, SourceActivity]:
        """Per input stream; one is active where rows or punctuations of it came, or a call said something of its
        progress.
        """
        active = {name for name, result in ingested.items() if result.counts.rows_in or result.counts.punctuations}
        active |= {name for name, _ in work.advances}
        activity = dict(known)
        for stream in input_streams(self.plan):
            name = stream.name
            greatest = ingested[name].greatest if name in ingested else {}
            before, means = known.get(name, SourceActivity(clock)), means_of(stream, self.options[name])
            activity[name] = before.after(clock if name in active else None, greatest, means)
        return activity

    def _progress(
        self,
        before: ProgressState,
        activity: Mapping[str, SourceActivity],
        work: Work,
        ingested: Mapping[str, IngestResult],
        clock: int,
    ) -> ProgressState:
        """By the clock for the time of arrival, by calls, by the rows less their delay, by punctuations, and while
        idle.
        """
        progress, arrival = before.copy(), self._arrival(before, clock)
        for name, source in self.options.items():
            if source.arrival is not None:
                progress.raise_input(name, source.arrival, arrival)
        for (name, attribute), value in work.advances.items():
            progress.raise_input(name, attribute, value)
        for name, result in ingested.items():
            for attribute, delay in self.options[name].delay.items():
                if attribute in result.greatest:
                    progress.raise_input(name, attribute, result.greatest[attribute] - delay - 1)
            for attribute, value in result.punctuation.items():
                progress.raise_input(name, attribute, value)
        streams = input_streams(self.plan)
        idle = idle_progress(streams, self.options, activity, progress.inputs, clock, work.waiting)
        for (name, attribute), value in idle.items():
            progress.raise_input(name, attribute, value)
        return progress
