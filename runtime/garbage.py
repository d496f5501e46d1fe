"""Stored rows that nobody needs any more: which segments a batch drops, which it writes anew without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.executor import Executor, Rewrite
from tidegate.runtime.keys import KeyMemory
from tidegate.runtime.plan.steps import Buffer, Plan
from tidegate.runtime.progress import ProgressState
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.segments import Segment, plan_compaction
from tidegate.runtime.sweep import FLOOR, WORTH, Sweep

GarbageCollection = Literal["amortised", "exact", "off"]
Segments = Mapping[str, tuple[Segment, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Garbage:
    """What of a plan's buffers is kept at some progress; `keys` is what is remembered of input streams with a key."""

    plan: Plan
    keys: Mapping[str, KeyMemory]
    mode: GarbageCollection
    left: dict[str, int] = field(default_factory=dict)
    """By the first buffer of those that are swept together, how many rows they held after the last sweep."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (*self.plan.buffers, *(memory.buffer for memory in self.keys.values()))

    def keep(self, buffer: Buffer, progress: ProgressState) -> Term:
        """The condition on rows of a buffer that are still needed."""
        if self.mode == "off":
            return TRUE
        memory = self._memory(buffer)
        if memory is not None:
            return memory.keep(progress.of_input(buffer.stream))
        return self.plan.buffer_keep(buffer, progress.queries)

    def collected(
        self, executor: Executor, batch: Batch, segments: Segments, progress: ProgressState
    ) -> dict[str, tuple[Segment, ...]]:
        """The segments without those that nobody needs, half-dead ones written anew, small ones merged."""
        rewrites: list[Rewrite] = []
        left = dict(segments)
        for buffer in self.buffers:
            own = left[buffer.id]
            groups: list[list[Segment]] = []
            if self.mode != "off":
                own = tuple(s for s in own if self._needed(buffer, s, progress, _whole))
                groups += [[s] for s in own if self._wants_rewriting(buffer, s, progress)]
            groups = [*groups, *_disjoint(plan_compaction(own), groups)]
            if groups:
                keep = self.keep(buffer, progress)
                rewrites += [Rewrite(buffer, group, keep) for group in groups]
            left[buffer.id] = own
        for rewrite, merged in zip(rewrites, executor.rewrite(batch, rewrites), strict=True):
            gone = {segment.path for segment in rewrite.segments}
            kept = (s for s in left[rewrite.buffer.id] if s.path not in gone)
            left[rewrite.buffer.id] = (*kept, *merged)
        return left

    def swept(
        self, executor: Executor, batch: Batch, segments: Segments, progress: ProgressState
    ) -> dict[str, tuple[Segment, ...]]:
        """What partner and kill rule leave of the buffers that they change, at the progress of a whole batch (rule R23).

        Amortised: when as many rows have come as were left the last time, so that a row is looked at a few times only.
        """
        found: dict[str, tuple[Segment, ...]] = {}
        if self.mode == "off":
            return found
        exact = self.mode == "exact"
        for buffers in self.plan.purged():
            key = buffers[0].id
            own = {buffer.id: found.get(buffer.id, segments[buffer.id]) for buffer in buffers}
            held = _rows(own)
            if not held or (not exact and held < max(FLOOR, 2 * self.left.get(key, 0))):
                continue
            sweep = Sweep(
                self.plan, buffers, own, progress.queries, progress.bounds(self.plan), 0.0 if exact else WORTH
            )
            after = executor.sweep(batch, sweep)
            found |= after
            self.left[key] = _rows(own | after)
        return found

    def _memory(self, buffer: Buffer) -> KeyMemory | None:
        memory = self.keys.get(buffer.stream.name)
        return memory if memory is not None and memory.buffer is buffer else None

    def _needed(
        self, buffer: Buffer, segment: Segment, progress: ProgressState, part: Callable[[int, int], tuple[int, int]]
    ) -> bool:
        bounds = {column: part(*limits) for column, limits in segment.bounds.items()}
        memory = self._memory(buffer)
        if memory is not None:
            return memory.keeps_segment(bounds, progress.of_input(buffer.stream))
        return self.plan.buffer_keeps_segment(buffer, bounds, progress.queries)

    def _wants_rewriting(self, buffer: Buffer, segment: Segment, progress: ProgressState) -> bool:
        """Exact: always. Amortised: once its earlier half is dead, so that each rewrite frees about what it copies."""
        part = _earliest if self.mode == "exact" else _earlier_half
        return not self._needed(buffer, segment, progress, part)


def _rows(segments: Segments) -> int:
    return sum(segment.rows for some in segments.values() for segment in some)


def _whole(low: int, high: int) -> tuple[int, int]:
    return low, high


def _earlier_half(low: int, high: int) -> tuple[int, int]:
    return low, low + (high - low) // 2


def _earliest(low: int, _: int) -> tuple[int, int]:
    return low, low


def _disjoint(groups: Sequence[Sequence[Segment]], others: Sequence[Sequence[Segment]]) -> list[list[Segment]]:
    taken = {segment.path for group in others for segment in group}
    return [list(group) for group in groups if not any(segment.path in taken for segment in group)]
