"""What partner and kill rule are asked to look at in one garbage collection, without an engine (rule R23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.algebra.time import Extended
from tidegate.runtime.plan.steps import Buffer, Plan, Progress
from tidegate.runtime.state.segments import Segment

#: Fewer rows than this are not worth a sweep: it takes some 20 ms, keeping them next to nothing.
FLOOR = 1 << 15
#: A buffer is written anew where at least this fraction of its rows is dead.
WORTH = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Buffers whose rows depend on each other, with all their segments, the progress reached by queries and streams.

    A buffer is written anew where at least the fraction `worth` of its rows is dead.
    """

    plan: Plan
    buffers: Sequence[Buffer]
    segments: Mapping[str, Sequence[Segment]]
    progress: Mapping[str, Progress]
    bounds: Mapping[tuple[str, str], Extended]
    worth: float

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segments in self.segments.values() for segment in segments)
