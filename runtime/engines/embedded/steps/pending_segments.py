"""Segments that a batch has made and not written yet, and how they are written when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.engines.embedded.steps.segment_cache import SegmentCache
from tidegate.runtime.eval.columns import stored_arrow_schema
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.rows import Rows, SmallRows, as_frame, as_table, size_of
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.segments import Segment, int64_bounds, schema_id


@dataclass(slots=True)
class _Pending:
    """The rows of one batch by the paths of segments that are none yet, and their size in bytes.

    `copies` are files of segments that another engine had to read meanwhile.
    """

    batch: Batch
    rows: dict[str, tuple[Buffer, Rows]] = field(default_factory=dict)
    bytes: int = 0
    made: int = 0
    copies: dict[str, Segment] = field(default_factory=dict)

    def add(self, buffer: Buffer, rows: Rows, shard: int = 0) -> Segment:
        self.made += 1
        path = f"in memory {self.batch.seq}-{self.batch.attempt}-{self.made}"
        self.rows[path] = (buffer, rows)
        size = size_of(rows)
        self.bytes += size
        if isinstance(rows, SmallRows):
            bounds = rows.bounds(buffer.instants)
        else:
            bounds = int64_bounds(as_table(rows[:, list(buffer.instants)]), buffer.instants)
        return Segment(path, rows.height, size, "", _schema_id(buffer.stored), bounds, self.batch.seq, shard)


@dataclass(frozen=True, slots=True)
class _Large:
    """Rows of a segment that is to be a file of its own."""

    buffer: Buffer
    rows: Rows
    shard: int

    def written(self, batch: Batch) -> Segment:
        return batch.write_segment(self.buffer.id, as_table(self.rows), self.buffer.instants, shard=self.shard)


@dataclass(slots=True)
class PendingSegments:
    """The segments of the running batch that are in memory only: what it drops again before its end is never written.

    They have up to `most_bytes` together; what is made beyond that is written at once. What is written goes to the
    cache, unless its buffer is read elsewhere.
    """

    cache: SegmentCache
    most_bytes: int
    writer: ThreadPoolExecutor | None = None
    """Writes files while this thread writes others."""
    read_elsewhere: set[str] = field(default_factory=set)
    """The ids of buffers whose segments no increment in this process has read when one was last evaluated."""
    _pending: _Pending | None = None

    def rows(self, path: str) -> Rows | None:
        """The rows of a segment; None where it is not pending."""
        if self._pending is None or path not in self._pending.rows:
            return None
        return self._pending.rows[path][1]

    def keep(self, batch: Batch, buffer: Buffer, rows: Rows, shard: int = 0) -> Segment:
        """The rows as a segment, in memory until the batch ends as long as there is room."""
        pending = self._of(batch)
        if pending.bytes + size_of(rows) >= self.most_bytes:
            return self._write(batch, buffer, rows, shard)
        return pending.add(buffer, rows, shard)

    def hold(self, batch: Batch, buffer: Buffer, rows: Rows) -> Segment:
        """The rows as a segment in memory, whether there is room or not."""
        return self._of(batch).add(buffer, rows)

    def as_one(self, batch: Batch, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """The segments with those in memory as one."""
        pending = self._of(batch)
        on_disk = tuple(segment for segment in segments if segment.path not in pending.rows)
        loose = [pending.rows.pop(segment.path) for segment in segments if segment.path in pending.rows]
        if not loose:
            return on_disk
        pending.bytes -= sum(size_of(rows) for _, rows in loose)
        return (*on_disk, self.keep(batch, loose[0][0], pl.concat([as_frame(rows) for _, rows in loose])))

    def on_disk(self, batch: Batch, segment: Segment) -> Segment:
        """The segment as a file that others can read, also where it has still to be written for good."""
        pending = self._of(batch)
        if segment.path not in pending.rows:
            return segment
        if segment.path not in pending.copies:
            pending.copies[segment.path] = self._write(batch, *pending.rows[segment.path], segment.shard)
        return pending.copies[segment.path]

    def persist(self, batch: Batch, segments: Mapping[str, tuple[Segment, ...]]) -> Mapping[str, tuple[Segment, ...]]:
        """Ends the batch: the segments that stay, per buffer, with those in memory written."""
        pending, self._pending = self._of(batch), None
        if not pending.rows:
            return segments
        written = {name: [self._written(pending, segment) for segment in some] for name, some in segments.items()}
        large = [one for some in written.values() for one in some if isinstance(one, _Large)]
        files = iter(self._files(pending.batch, large))
        return {
            name: tuple(next(files) if isinstance(one, _Large) else one for one in some)
            for name, some in written.items()
        }

    def _written(self, pending: _Pending, segment: Segment) -> Segment | _Large:
        """The segment as one that stays, or what has to be written of it; of one that others had to read that is the
        file that was written for them.
        """
        if segment.path not in pending.rows:
            return segment
        copy = pending.copies.get(segment.path)
        return self._pack(pending.batch, segment, *pending.rows[segment.path]) if copy is None else copy

    def _files(self, batch: Batch, large: Sequence[_Large]) -> list[Segment]:
        """Files of segments, half of them written beside the others."""
        if self.writer is None or len(large) < 2:
            return [self._write(batch, one.buffer, one.rows, one.shard) for one in large]
        half = len(large) // 2
        others = [self.writer.submit(one.written, batch) for one in large[:half]]
        try:
            own = [one.written(batch) for one in large[half:]]
        finally:
            wait(others)
        files = [*(other.result() for other in others), *own]
        for file, one in zip(files, large, strict=True):
            self._remember(file, one.buffer, one.rows)
        return files

    def _of(self, batch: Batch) -> _Pending:
        """What this batch has made; what one that failed has left is let go."""
        if self._pending is None or self._pending.batch is not batch:
            self._pending = _Pending(batch)
        return self._pending

    def _pack(self, batch: Batch, pending: Segment, buffer: Buffer, rows: Rows) -> Segment | _Large:
        """The segment in memory as one that stays: a part of the batch's pack where it is small."""
        segment = batch.pack_segment(as_table(rows), pending)
        if segment is None:
            return _Large(buffer, rows, pending.shard)
        self._remember(segment, buffer, rows)
        return segment

    def _write(self, batch: Batch, buffer: Buffer, rows: Rows, shard: int) -> Segment:
        segment = _Large(buffer, rows, shard).written(batch)
        self._remember(segment, buffer, rows)
        return segment

    def _remember(self, segment: Segment, buffer: Buffer, rows: Rows) -> None:
        if buffer.id not in self.read_elsewhere:
            self.cache.remember(segment.path, rows)


@lru_cache(maxsize=1024)
def _schema_id(stored: Schema) -> str:
    return schema_id(stored_arrow_schema(stored))
