"""The inputs of an increment of a query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tidegate.algebra.terms import Term
from tidegate.runtime.plan.steps import Buffer, Progress, QueryPlan
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.state.segments import Segment


@dataclass(frozen=True, slots=True)
class Job:
    """An increment to evaluate: the relevant segments per leaf, progress before and after, and who stores the result.

    `state` is what an operator that gathers events in order has kept so far, `close_at` where situations end that are
    open after this increment, its last. `lenient`: rows without a value are set aside instead of failing the batch.
    `lenient_feeds` are the buffers, by their ids, whose readers have it so. `untied`: so are events of which nothing
    says which comes first.
    """

    query: QueryPlan
    inputs: Sequence[Sequence[Segment]]
    old: Progress
    new: Progress
    feeds: Sequence[tuple[Buffer, Term]]
    state: OperatorFiles | None = None
    close_at: int | None = None
    lenient: bool = False
    lenient_feeds: frozenset[str] = frozenset()
    untied: bool = False

    @property
    def rows(self) -> int:
        """The number of rows in the relevant segments."""
        return sum(segment.rows for segments in self.inputs for segment in segments)

    @property
    def bytes(self) -> int:
        """The size of the relevant segments, in bytes."""
        return sum(segment.bytes for segments in self.inputs for segment in segments)

    @property
    def state_bytes(self) -> int:
        """The size of the operator's state, in bytes."""
        return 0 if self.state is None else sum(file.bytes for file in self.state.files)

    @property
    def sets_aside(self) -> bool:
        """Whether anything is set aside instead of failing the batch: here, or where readers store the result."""
        return self.lenient or self.untied or bool(self.lenient_feeds)

    def waits_for_other_than(self, streams: Collection[str]) -> bool:
        """Whether rows of other streams may begin or cease to matter as results advance."""
        return any(
            leaf.segment_may_change(segment.bounds, self.old)
            for leaf, segments in zip(self.query.leaves, self.inputs, strict=True)
            if leaf.buffer is not None and leaf.buffer.stream.name not in streams
            for segment in segments
        )
