"""The state of a run between two batches: what a checkpoint records of it, its checks, and what is asked about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.runtime.batch import scheduler, source_activity
from tidegate.runtime.batch.end_of_input import CLOSING, Closing
from tidegate.runtime.batch.scheduler import SKIPPED, SkippedResult
from tidegate.runtime.batch.source_activity import ACTIVITY, SourceActivity
from tidegate.runtime.eval.columns import stored_arrow_schema
from tidegate.runtime.ordered.sizes import operator_bytes, operator_rows
from tidegate.runtime.plan.operator_state import queries_that_keep
from tidegate.runtime.plan.progress import ProgressState, input_streams, not_of_this_program
from tidegate.runtime.plan.steps import Buffer, Plan
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.manifest import Manifest, OperatorFiles, SourceCounts
from tidegate.runtime.state.segments import Segment, covering, schema_id

Segments = Mapping[str, tuple[Segment, ...]]
"""Stored rows per buffer, by its id."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run knows between two batches. A batch computes the next state from it; a batch that fails leaves it in
    place.

    Nothing in a state is changed, its progress included: a step works on copies. `counts` are rows by fate per input
    stream since the beginning, `activity` is per input stream, `skipped` are the results that the last batch did not
    evaluate, and `operators` is what the operators that gather events in order keep, by their queries. `closing` says
    where that ends which is open when all streams have ended; None: nothing can be open.
    """

    progress: ProgressState
    segments: Segments
    counts: Mapping[str, SourceCounts]
    activity: Mapping[str, SourceActivity] = field(default_factory=dict)
    skipped: Mapping[str, SkippedResult] = field(default_factory=dict)
    operators: Mapping[str, OperatorFiles] = field(default_factory=dict)
    closing: Closing | None = None

    @classmethod
    def start(cls, plan: Plan, buffers: Iterable[Buffer]) -> RunState:
        """Before the first batch."""
        return cls(
            ProgressState.start(plan),
            {buffer.id: () for buffer in buffers},
            {stream.name: SourceCounts() for stream in input_streams(plan)},
            closing=Closing() if queries_that_keep(plan) else None,
        )

    @classmethod
    def load(cls, plan: Plan, buffers: Iterable[Buffer], last: Manifest | None) -> RunState:
        """After the last batch; `StateError` TG504 for a manifest of another program."""
        buffers = tuple(buffers)
        start = cls.start(plan, buffers)
        if last is None:
            return start
        progress = start.progress.copy()
        progress.load(last.progress)
        _check_segments(buffers, last.segments)
        _check_operators(plan, last.kernel)
        return cls(
            progress,
            {**start.segments, **last.segments},
            {**start.counts, **last.counts},
            source_activity.from_json(last.extra.get(ACTIVITY)),
            scheduler.from_json(last.extra.get(SKIPPED)),
            last.kernel,
            None if start.closing is None else Closing.from_json(last.extra.get(CLOSING)),
        )

    @property
    def is_unfinished(self) -> bool:
        """Whether a batch without anything new finds rows: of a recursion that the last one has evaluated in part."""
        return any(skipped.because == scheduler.UNFINISHED for skipped in self.skipped.values())

    def extra(self) -> dict[str, Json]:
        """What a manifest has no field of its own for."""
        extra: dict[str, Json] = {
            ACTIVITY: source_activity.to_json(self.activity),
            SKIPPED: scheduler.to_json(self.skipped),
        }
        return extra if self.closing is None else {**extra, CLOSING: self.closing.to_json()}

    def live_rows(self, plan: Plan) -> dict[str, int]:
        """Rows stored per buffer, and the situations that operators keep."""
        stored = {name: sum(segment.rows for segment in segments) for name, segments in self.segments.items()}
        return stored | operator_rows(plan, self.operators)

    def live_bytes(self, plan: Plan) -> dict[str, int]:
        """Bytes stored, by the same names."""
        stored = {name: sum(segment.bytes for segment in segments) for name, segments in self.segments.items()}
        return stored | operator_bytes(plan, self.operators)

    def ranges(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Least and greatest instant per buffer and attribute, where every segment has them."""
        return {
            (name, a): limits
            for name, segments in self.segments.items()
            for a, limits in covering([segment.bounds for segment in segments]).items()
        }

    def paths(self) -> frozenset[str]:
        """Where the segments are stored."""
        return frozenset(segment.path for segments in self.segments.values() for segment in segments)


def with_stored(segments: Segments, new: Segments) -> dict[str, tuple[Segment, ...]]:
    """The segments, and after those of each buffer the new ones that have rows."""
    grown = {buffer: (*segments[buffer], *(s for s in some if s.rows)) for buffer, some in new.items()}
    return {**segments, **grown}


def _check_segments(buffers: Iterable[Buffer], stored: Mapping[str, Sequence[Segment]]) -> None:
    """`StateError` TG504 for segments of no buffer, of other columns, or without the bounds by which they are found."""
    known = {buffer.id: buffer for buffer in buffers}
    for name, segments in stored.items():
        if name not in known:
            raise not_of_this_program(f"a buffer {name!r:.200}")
        columns = schema_id(stored_arrow_schema(known[name].stored))
        for segment in segments:
            if not segment.bounds.keys() >= set(known[name].instants):
                raise not_of_this_program(f"{segment.path} with instants {sorted(segment.bounds)!r:.200}")
            if segment.schema != columns:
                raise not_of_this_program(f"{segment.path} with other columns than {', '.join(known[name].stored)}")


def _check_operators(plan: Plan, stored: Mapping[str, OperatorFiles]) -> None:
    """`StateError` TG504 for the state of an operator that the program does not have."""
    known = {query.name for query in plan.queries if query.ordered is not None}
    for name in stored:
        if name not in known:
            raise not_of_this_program(f"the state of an operator {name!r:.200}")
