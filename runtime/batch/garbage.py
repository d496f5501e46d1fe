"""Stored rows that nobody needs any more: which segments a batch drops, which it writes anew without them.

The files of what it drops are deleted once no manifest names them, in `state/leftovers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tidegate.algebra.terms import TRUE, Term
from tidegate.algebra.time import INF
from tidegate.analysis.state.thresholds import Extents
from tidegate.runtime.batch.executor import Executor, Rewrite
from tidegate.runtime.eval.aggregates.fold_rows import shard_tree
from tidegate.runtime.eval.beginnings.memory import Beginnings
from tidegate.runtime.eval.purge_schedule import FLOOR, STEP, STRIDE, WHOLE_STEPS, WORTH, Sweep, Watch
from tidegate.runtime.ingest.keys import KeyMemory
from tidegate.runtime.plan.folding.fold import SettledCondition, SettledRows
from tidegate.runtime.plan.folding.shards import affordable_rows, by_node, fold_steps
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.plan.progress import ProgressState
from tidegate.runtime.plan.steps import Buffer, Plan
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.state.segments import Segment, covering, plan_compaction

GarbageCollection = Literal["amortised", "exact", "off"]
Folding = Literal["on", "off"]
Segments = Mapping[str, Sequence[Segment]]

#: Segments of so many rows, or bytes, are not merged any more, unless there would be too many of them.
MERGED_ROWS = 1 << 16
MERGED_BYTES = 32 << 20
MOST_SEGMENTS = 128
#: Rows that a batch rewrites at most for each that came, and in any case; what a rewrite costs beside its rows, in
#: rows.
REWRITTEN = 4
LEAST_REWRITTEN = 1 << 17
REWRITE_COST = 1 << 10
#: The same of folds, where a row costs many times as much as in a merge: each goes through some four of them.
LEAST_FOLDED = 1 << 16
FOLDED = 5
#: Rows of beginnings of intervals that are not judged anew yet.
LEAST_BEGUN = 1 << 10
#: So many settled segments of one size that wait in a shard become one: it costs little, and look-ups go to each. They
#: are never as large as its classes: a fold would be due.
WAITING = 2


@dataclass(frozen=True, slots=True, eq=False)
class Garbage:
    """What of a plan's buffers is kept at some progress; `keys` is what is remembered of input streams with a key."""

    plan: Plan
    keys: Mapping[str, KeyMemory]
    mode: GarbageCollection
    folding: Folding = "on"
    beginnings: Mapping[str, Beginnings] = field(default_factory=dict)
    """What is remembered of intervals that have begun, by the streams that tell it."""
    watches: dict[str, Watch] = field(default_factory=dict)
    """Amortised: what partner and kill rule look at next, by the first buffer of those whose rows depend on each
    other.
    """
    _arrived: dict[str, int] = field(default_factory=dict)
    """Rows that the batch has stored, per buffer."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        remembered = (memory.buffer for memories in (self.keys, self.beginnings) for memory in memories.values())
        return (*self.plan.buffers, *remembered)

    def keep(self, buffer: Buffer, progress: ProgressState) -> Term:
        """The condition on rows of a buffer that are still needed."""
        if self.mode == "off" or self._begun(buffer) is not None:
            return TRUE
        memory = self._memory(buffer)
        if memory is not None:
            return memory.keep(progress.of_input(buffer.stream))
        return self.plan.buffer_keep(buffer, progress.queries)

    def admission_filters(self, buffers: Iterable[Buffer], progress: ProgressState) -> dict[str, Term]:
        """The same per buffer, by its id: new rows that nobody needs are not stored at all."""
        return {buffer.id: self.keep(buffer, progress) for buffer in buffers}

    def collected(
        self, executor: Executor, batch: Batch, segments: Segments, progress: ProgressState
    ) -> dict[str, tuple[Segment, ...]]:
        """The segments without those that nobody needs, half-dead ones written anew, small ones merged."""
        left = {name: tuple(some) for name, some in segments.items()}
        due: list[Rewrite] = []
        waiting: list[Rewrite] = []
        folds: list[Rewrite] = []
        self._arrived.update({name: _rows_of(s for s in some if s.batch == batch.seq) for name, some in left.items()})
        judged = {path for watch in self.watches.values() for path in watch.busy}
        for buffer in self.buffers:
            stored = left[buffer.id]
            if (beginnings := self._begun(buffer)) is not None:
                closed = self._closed(beginnings, stored, batch.seq, progress)
                due += closed
                waiting += () if closed else self._merges_of_begun(buffer, stored)
                continue
            needed = self._keeps(buffer, progress)
            stored = left[buffer.id] = tuple(s for s in stored if needed(s.bounds))
            free = [s for s in stored if s.path not in judged]
            dying = {s.path for s in free if not needed(self._first_to_go(s.bounds))}
            most = merged_rows(stored, self._arrived[buffer.id])
            settled = self._folding(buffer, progress)
            made = Rewrite(buffer, (), TRUE, most, settled)  # the condition comes last, as few buffers are rewritten
            if settled is None:
                planned = [replace(made, segments=group) for group in plan_compaction(free, max_rows=most)]
            elif self.mode == "exact":
                changed = len(free) > 1 or not all(self._is_folded(buffer, s) for s in free)
                planned = [replace(made, segments=free)] if changed else []
            else:
                steps, planned = self._fold_steps(made, free, progress, executor.limits)
                folds += steps
            merging = {segment.path for one in (*planned, *folds) for segment in one.segments}
            planned += [replace(made, segments=[s]) for s in stored if s.path in dying - merging]
            for one in planned:
                is_due = self.mode == "exact" and (settled is not None or any(s.path in dying for s in one.segments))
                (due if is_due else waiting).append(one)
        arrived = sum(self._arrived.values())
        chosen = [*due, *affordable(waiting, arrived), *affordable_folds(folds, arrived)]
        rewritten = {one.buffer.id: one.buffer for one in chosen}
        keeps = {name: self.keep(buffer, progress) for name, buffer in rewritten.items()}
        rewrites = [replace(one, keep=keeps[one.buffer.id]) for one in chosen]
        for rewrite, merged in zip(rewrites, executor.rewrite(batch, rewrites), strict=True):
            gone = {segment.path for segment in rewrite.segments}
            kept = (s for s in left[rewrite.buffer.id] if s.path not in gone)
            left[rewrite.buffer.id] = (*kept, *merged)
        return left

    def _closed(
        self, beginnings: Beginnings, stored: Sequence[Segment], seq: int, progress: ProgressState
    ) -> list[Rewrite]:
        """The beginnings anew, without those of intervals that have ended, if that is due. Amortised: once there are as
        many rows beside those that were left.
        """
        buffer, reached = beginnings.buffer, progress.inputs[beginnings.buffer.stream.name, beginnings.begins.end]
        rows = [segment.rows for segment in stored]
        if self.mode == "off" or not stored:
            return []
        if self.mode == "exact":
            is_due = len(stored) > 1 or stored[0].batch == seq
        else:
            is_due = sum(rows) > 2 * max(max(rows), LEAST_BEGUN)
        if not is_due and reached != INF:
            return []
        return [Rewrite(buffer, stored, TRUE, beginnings=beginnings, reached=reached)]

    def _merges_of_begun(self, buffer: Buffer, stored: Sequence[Segment]) -> list[Rewrite]:
        """Merges of beginnings in small segments, as they are: whether an interval has ended other segments may say.

        The largest one is what was left, which is read with all others only.
        """
        largest = max(stored, key=lambda segment: segment.rows, default=None)
        most = merged_rows(stored, self._arrived[buffer.id])
        groups = plan_compaction([segment for segment in stored if segment is not largest], max_rows=most)
        return [Rewrite(buffer, group, TRUE, most) for group in groups]

    def _begun(self, buffer: Buffer) -> Beginnings | None:
        beginnings = self.beginnings.get(buffer.stream.name)
        return beginnings if beginnings is not None and beginnings.buffer is buffer else None

    def settled(self, segments: Segments, progress: ProgressState) -> dict[str, SettledRows]:
        """Of each buffer that folds which rows are settled: those of segments all of whose rows are known to be."""
        found = {}
        for buffer in self.plan.buffers:
            if buffer.fold is not None and self._folds:
                others = [s for s in segments[buffer.id] if not self._settles(buffer, s, progress)]
                settled = _rows_of(segments[buffer.id]) - _rows_of(others)
                found[buffer.id] = SettledRows(settled, covering([segment.bounds for segment in others]))
        return found

    @property
    def _folds(self) -> bool:
        return self.mode != "off" and self.folding != "off"

    def _folding(self, buffer: Buffer, progress: ProgressState) -> SettledCondition | None:
        """Which rows of a buffer are to be folded, if any."""
        if buffer.fold is None or not self._folds:
            return None
        return buffer.fold.settled(progress.queries)

    def _is_folded(self, buffer: Buffer, segment: Segment) -> bool:
        assert buffer.fold is not None
        return shard_tree(buffer.fold).is_folded(segment)

    def _settles(self, buffer: Buffer, segment: Segment, progress: ProgressState) -> bool:
        """Whether all rows of a segment are settled: a fold has written it, or its instants say so."""
        assert buffer.fold is not None
        return self._is_folded(buffer, segment) or buffer.fold.settles_segment(segment.bounds, progress.queries)

    def _fold_steps(
        self, made: Rewrite, segments: Sequence[Segment], progress: ProgressState, limits: Limits | None
    ) -> tuple[list[Rewrite], list[Rewrite]]:
        """Folds of settled segments that are due, and merges of others; amortised."""
        assert made.buffer.fold is not None
        tree = shard_tree(made.buffer.fold)
        most_bytes = None if limits is None else limits.driver_bytes or limits.shard_bytes
        settled = [s for s in segments if self._settles(made.buffer, s, progress)]
        if most_bytes:
            # No merge makes a segment of more bytes than are folded.
            made = replace(made, least=min(made.least, affordable_rows(segments, most_bytes)))
        due = fold_steps(tree, settled, most_bytes)
        folds = [replace(made, segments=some, step=step) for step, some in due]
        taken = {s.path for one in folds for s in one.segments}
        waiting = by_node(tree, (s for s in settled if s.path not in taken))
        merges = [
            replace(made, segments=group, settled=None, shard=tree.number(node))
            for node, some in waiting.items()
            for group in plan_compaction(some, fanout=WAITING, max_rows=made.least)
        ]
        paths = {s.path for s in settled}
        fresh = plan_compaction([s for s in segments if s.path not in paths], max_rows=made.least)
        return folds, merges + [replace(made, segments=group) for group in fresh]

    def swept(
        self,
        executor: Executor,
        batch: Batch,
        segments: Segments,
        progress: ProgressState,
        operators: Mapping[str, OperatorFiles],
    ) -> dict[str, tuple[Segment, ...]]:
        """What partner and kill rule leave of the buffers that they change, at the progress of a whole batch (rule
        R23), in these states of its operators.

        Exact: all that they can free. Amortised: of a bounded number of rows, those that are next.
        """
        left: dict[str, tuple[Segment, ...]] = {}
        if self.mode == "off":
            return left
        groups = self.plan.purged()
        rows = most = max(STEP, sum(self._arrived.values()))
        for number in range(len(groups)):
            buffers = groups[(batch.seq + number) % len(groups)]  # the first is another each time
            streams = {buffer.stream.name for buffer in buffers}
            begun = {name: one for name, one in self.beginnings.items() if name in streams}
            read = (*buffers, *(one.buffer for one in begun.values()))
            stored = {buffer.id: segments[buffer.id] for buffer in read}
            worth = 0.0 if self.mode == "exact" else WORTH
            bounds = progress.bounds(self.plan)
            sweep = Sweep(self.plan, buffers, stored, progress.queries, bounds, worth, begun, operators)
            if self.mode == "amortised":
                watch = self.watches.setdefault(buffers[0].id, Watch())
                watch.arrived(sum(self._arrived[buffer.id] for buffer in buffers), most)
                rows -= self._looked(executor, batch, sweep, watch, rows, most, left)
            elif _rows(stored):
                left |= executor.sweep(batch, sweep)
        return left

    def _looked(
        self,
        executor: Executor,
        batch: Batch,
        sweep: Sweep,
        watch: Watch,
        rows: int,
        most: int,
        left: dict[str, tuple[Segment, ...]],
    ) -> int:
        """A step of the look at a group of buffers, if it is time for one; gives through how many rows it went.

        Few rows of which some go are looked at all together, each time that they have doubled.
        """
        stored = _rows(sweep.segments)
        if rows < STRIDE or stored < FLOOR:
            return 0
        if watch.frees and stored <= WHOLE_STEPS * most:
            if stored < 2 * watch.left:
                return 0
            after = executor.sweep(batch, sweep)
            watch.swept(stored, _rows({**sweep.segments, **after}))
            left |= after
            return stored
        freed = [buffer for buffer in sweep.buffers if self.plan.freed_sooner(buffer)]
        look = watch.next(freed, sweep.segments, batch.seq)
        if look is None:
            return 0
        looked = executor.look(batch, sweep, look, int(min(rows, watch.credit[look.age])))
        if looked is None:
            watch.given_up(look)
            return 0
        watch.went(look, looked)
        if looked.segments is not None:
            gone = {segment.path for segment in look.segments}
            kept = (s for s in sweep.segments[look.buffer.id] if s.path not in gone)
            left[look.buffer.id] = (*kept, *looked.segments)
        return looked.rows

    def renamed(self, before: Segments, after: Segments) -> None:
        """Segments are files now, in the order in which they were in memory."""
        pairs = [pair for name, some in before.items() for pair in zip(some, after[name], strict=True)]
        paths = {old.path: new.path for old, new in pairs if old.path != new.path}
        for watch in self.watches.values():
            watch.renamed(paths)

    def _memory(self, buffer: Buffer) -> KeyMemory | None:
        memory = self.keys.get(buffer.stream.name)
        return memory if memory is not None and memory.buffer is buffer else None

    def _keeps(self, buffer: Buffer, progress: ProgressState) -> Callable[[Extents], bool]:
        """Tells of the bounds of a segment whether anybody may need a row of it."""
        if self.mode == "off":
            return lambda _: True
        memory = self._memory(buffer)
        if memory is not None:
            reached = progress.of_input(buffer.stream)
            return lambda bounds: memory.keeps_segment(bounds, reached)
        return self.plan.buffer_keeps(buffer, progress.queries)

    def _first_to_go(self, bounds: Extents) -> Extents:
        """The bounds of those rows of a segment that have to be dead before it is written anew. Exact: of the earliest.
        Amortised: of the earlier half, so that each rewrite frees about what it copies.
        """
        part = _earliest if self.mode == "exact" else _earlier_half
        return {column: part(*limits) for column, limits in bounds.items()}


def merged_rows(segments: Sequence[Segment], arrived: int) -> int:
    """So many rows a segment has at least that is not merged any more.

    Merges stay small, so that none of them holds up a batch, but segments few: no more than some `MOST_SEGMENTS` of
    those, whatever the state. They have as many rows as a batch brings, since these came in one batch too.
    """
    rows, size = _rows_of(segments), sum(segment.bytes for segment in segments)
    wide = max(1, MERGED_BYTES * rows // size) if size else MERGED_ROWS
    return max(min(max(MERGED_ROWS, arrived), wide), rows // MOST_SEGMENTS)


def affordable(rewrites: Sequence[Rewrite], arrived: int) -> list[Rewrite]:
    """Of rewrites that can wait those that a batch does: for each row that came a few are rewritten, and one segment
    always.

    The largest go first: small ones wait for less, and are merged all the cheaper.
    """
    return _up_to(max(LEAST_REWRITTEN, REWRITTEN * arrived), sorted(rewrites, key=lambda rewrite: -rewrite.rows))


def affordable_folds(folds: Sequence[Rewrite], arrived: int) -> list[Rewrite]:
    """Of the folds that are due those that a batch does, the most urgent first; if there are none, a few of the next.

    So shards that fill together take turns.
    """
    ordered = sorted(folds, key=_urgency, reverse=True)
    due = [fold for fold in ordered if _urgency(fold) >= 1]
    allowed = max(LEAST_FOLDED, FOLDED * arrived)
    return _up_to(allowed, due) if due else _up_to(allowed // 2, ordered)


def _urgency(fold: Rewrite) -> float:
    return 1.0 if fold.step is None else fold.step.urgency


def _up_to(allowed: int, rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """The first rewrite, and those after it that the rest of the allowed rows is enough for."""
    chosen: list[Rewrite] = []
    for rewrite in rewrites:
        cost = rewrite.rows + REWRITE_COST
        if not chosen or cost <= allowed:
            chosen.append(rewrite)
            allowed -= cost
    return chosen


def _rows(segments: Segments) -> int:
    return sum(_rows_of(some) for some in segments.values())


def _rows_of(segments: Iterable[Segment]) -> int:
    return sum(segment.rows for segment in segments)


def _earlier_half(low: int, high: int) -> tuple[int, int]:
    return low, low + (high - low) // 2


def _earliest(low: int, _: int) -> tuple[int, int]:
    return low, low
