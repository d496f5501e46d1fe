"""Segments written anew with the rows that live: collection of garbage, sweeps, and looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.engines.embedded.steps.pending_segments import PendingSegments
from tidegate.runtime.engines.embedded.steps.segment_reader import SegmentReader
from tidegate.runtime.eval.aggregates.fold_rows import folded, settled_apart, shard_tree, sharded
from tidegate.runtime.eval.aggregates.partials import merge
from tidegate.runtime.eval.beginnings.partners import open_intervals
from tidegate.runtime.eval.dependents import Judgement
from tidegate.runtime.eval.increment import keep_true
from tidegate.runtime.eval.purge_rows import surviving
from tidegate.runtime.eval.purge_schedule import Look, LookStep, Sweep
from tidegate.runtime.eval.small.increment import small_kept
from tidegate.runtime.plan.folding.fold import SettledCondition
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.rows import Rows, Unsupported, size_of
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.segments import Segment

#: Rows of a file that a rewrite reads at a time, and bytes of rows that it gathers before it writes them.
PIECE_ROWS = 1 << 17
PIECE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class SegmentRewriter:
    """Reads segments, judges their rows, and keeps those that live as new segments."""

    segments: SegmentReader
    pending: PendingSegments

    def rewrite(self, batch: Batch, rewrite: Rewrite) -> tuple[Segment, ...]:
        return tuple(self.pending.keep(batch, rewrite.buffer, rows, shard) for shard, rows in self.parts(rewrite))

    def parts(self, rewrite: Rewrite) -> Iterator[tuple[int, Rows]]:
        """The rows of each new segment, with the shard to which it goes."""
        parts: Iterator[tuple[int, Rows]]
        if rewrite.beginnings is not None:
            known = self.segments.frame(rewrite.buffer, rewrite.segments)
            parts = iter([(rewrite.shard, rewrite.beginnings.left(known, rewrite.reached))])
        elif rewrite.settled is None:
            parts = ((rewrite.shard, rows) for rows in self._rewritten(rewrite))
        else:
            parts = self._folded_parts(rewrite, rewrite.settled)
        return ((shard, rows) for shard, rows in parts if rows.height)

    def sweep(self, batch: Batch, sweep: Sweep) -> dict[str, tuple[Segment, ...]]:
        frames = {b.id: self.segments.frame(b, sweep.segments[b.id]) for b in sweep.buffers}
        rewritten: dict[str, tuple[Segment, ...]] = {}
        begun = open_intervals(sweep, self.segments.frame)
        for buffer, rows in zip(sweep.buffers, surviving(sweep, frames, begun).values(), strict=True):
            dead = frames[buffer.id].height - rows.height
            if dead and dead >= sweep.worth * frames[buffer.id].height:
                parts = _as_before(buffer, rows, sweep)
                rewritten[buffer.id] = tuple(self.pending.keep(batch, buffer, part, shard) for shard, part in parts)
        return rewritten

    def look(self, batch: Batch, sweep: Sweep, look: Look, rows: int) -> LookStep:
        if look.notes is None:
            look.notes = Judgement(look.buffer, self.segments.frame(look.buffer, look.segments), look.seq)
        judged: Judgement = look.notes
        spent = judged.go_on(sweep, self.segments.frame, rows)
        if not judged.done:
            return LookStep(spent)
        dead = int(judged.dead.sum())
        if not dead or dead < sweep.worth * len(judged.dead):
            return LookStep(spent, done=True, dead=dead)
        left = judged.rows.filter(pl.Series(~judged.dead))
        shards = {segment.shard for segment in look.segments}
        shard = shards.pop() if len(shards) == 1 else 0
        segments = (self.pending.keep(batch, look.buffer, left, shard),) if left.height else ()
        return LookStep(spent, done=True, dead=dead, segments=segments)

    def _rewritten(self, rewrite: Rewrite) -> Iterator[Rows]:
        """The rows that live, in one piece or, where they are many bytes, in several."""
        try:
            yield small_kept(self.segments.read_small(rewrite.buffer, rewrite.segments), rewrite.buffer, rewrite.keep)
            return
        except Unsupported:
            pass
        waiting: list[pl.DataFrame] = []
        size = 0
        for piece in self.segments.pieces(rewrite.segments, PIECE_ROWS):
            rows = keep_true(piece, rewrite.keep, rewrite.buffer.schema)
            waiting.append(rows)
            size += size_of(rows)
            if size >= PIECE_BYTES and sum(part.height for part in waiting) >= rewrite.least:
                yield _merged(rewrite, waiting)
                waiting, size = [], 0
        if waiting:
            yield _merged(rewrite, waiting)

    def _folded_parts(self, rewrite: Rewrite, settled: SettledCondition) -> Iterator[tuple[int, Rows]]:
        """The rows that live, folded, by the shards to which they go."""
        rows, fold, step = self._folded(rewrite, settled), rewrite.buffer.fold, rewrite.step
        assert fold is not None
        if step is None:
            yield from settled_apart(rows, fold, settled, rewrite.buffer.schema)
            return
        for node, part in sharded(rows, fold, step, rewrite.buffer.schema):
            yield step.tree.number(node), part

    def _folded(self, rewrite: Rewrite, settled: SettledCondition) -> pl.DataFrame:
        """The rows that live. Pieces are gathered until they have as many rows as there are classes of those before, so
        that each row is looked at few times, however many pieces there are.
        """
        buffer = rewrite.buffer
        assert buffer.fold is not None
        done: list[pl.DataFrame] = []
        classes = 0
        for piece in self.segments.pieces(rewrite.segments, PIECE_ROWS):
            done.append(keep_true(piece, rewrite.keep, buffer.schema))
            if sum(rows.height for rows in done) >= max(2 * classes, PIECE_ROWS):
                done = [folded(pl.concat(done), buffer.fold, settled, buffer.schema)]
                classes = done[0].height
        return (
            folded(pl.concat(done), buffer.fold, settled, buffer.schema) if len(done) != 1 or not classes else done[0]
        )


def _as_before(buffer: Buffer, rows: pl.DataFrame, sweep: Sweep) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of a buffer that a sweep leaves, by shards. Where some were folded, all settled ones are, and stand by
    themselves.
    """
    fold = buffer.fold
    if fold is None or not any(shard_tree(fold).is_folded(segment) for segment in sweep.segments[buffer.id]):
        parts: Iterator[tuple[int, pl.DataFrame]] = iter([(0, rows)])
    else:
        settled = fold.settled(sweep.progress)
        parts = settled_apart(folded(rows, fold, settled, buffer.schema), fold, settled, buffer.schema)
    return ((shard, part) for shard, part in parts if part.height)


def _merged(rewrite: Rewrite, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    rows = pl.concat(parts)
    # The partial results of one segment are of different groups.
    return rows if rewrite.buffer.partial is None or len(rewrite.segments) == 1 else merge(rewrite.buffer.partial, rows)
