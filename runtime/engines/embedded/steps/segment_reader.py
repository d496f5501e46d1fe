"""Reading of segments: those of the running batch, those in the cache, and those on disk alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from tidegate.runtime.engines.embedded.steps.pending_segments import PendingSegments
from tidegate.runtime.engines.embedded.steps.segment_cache import SegmentCache
from tidegate.runtime.eval.increment import no_rows
from tidegate.runtime.eval.joins.indexed_rows import IndexedRows
from tidegate.runtime.eval.joins.key_index import INDEXED, Key
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.rows import Rows, SmallRows, Unsupported, are_few, stacked
from tidegate.runtime.rows import no_rows as no_small_rows
from tidegate.runtime.state.segments import Segment, read_pieces


@dataclass(frozen=True, slots=True)
class SegmentReader:
    """The rows of segments, as arrays for small batches or as frames for Polars."""

    cache: SegmentCache
    pending: PendingSegments

    def read_small(self, buffer: Buffer, segments: Sequence[Segment]) -> SmallRows:
        """The rows of segments as arrays; `Unsupported` where they are too many."""
        if not are_few(sum(segment.rows for segment in segments)):
            raise Unsupported
        loaded = map(self._rows, segments)
        parts = [rows if isinstance(rows, SmallRows) else SmallRows.of(rows) for rows in loaded]
        return stacked(parts) if parts else no_small_rows(buffer.stored)

    def frame(self, buffer: Buffer, segments: Sequence[Segment]) -> pl.DataFrame:
        """The rows of segments for Polars."""
        if not segments:
            return no_rows(buffer)
        return pl.concat([self._load(segment) for segment in segments])

    def in_memory(self, segments: Sequence[Segment]) -> bool:
        """Whether none of these segments has to be read from a file."""
        return all(s.path in self.cache.rows or self.pending.rows(s.path) is not None for s in segments)

    def indexed(self, segments: Sequence[Segment], key: Key, time: str | None = None) -> list[IndexedRows]:
        """The rows of segments with their indexes by a key and an instant; a small segment has none."""
        return [self.with_index(segment, key, time=time) for segment in segments]

    def with_index(
        self, segment: Segment, key: Key, known: Rows | None = None, /, *, time: str | None = None
    ) -> IndexedRows:
        """The rows of a segment, which are not read where they are `known`, with their index as in `indexed`."""
        rows = self._rows(segment) if known is None else known
        if rows.height <= INDEXED:
            return IndexedRows(rows, None)
        return IndexedRows(self._as_frame(segment, rows), self.cache.index(segment.path, key, time))

    def pieces(self, segments: Sequence[Segment], rows: int) -> Iterator[pl.DataFrame]:
        """The rows of segments, so many at a time; of a file that is not in memory yet only a piece is."""
        for segment in segments:
            if self.pending.rows(segment.path) is not None or segment.path in self.cache.rows:
                yield from self._load(segment).iter_slices(rows)
            else:
                yield from map(pl.DataFrame, read_pieces(self.cache.store, segment, rows))

    def _load(self, segment: Segment) -> pl.DataFrame:
        """The rows of a segment for Polars."""
        return self._as_frame(segment, self._rows(segment))

    def _as_frame(self, segment: Segment, rows: Rows) -> pl.DataFrame:
        """Rows of a segment for Polars; so they stay in memory, as a frame shows its arrays for next to nothing."""
        if not isinstance(rows, SmallRows):
            return rows
        frame = rows.frame()
        self.cache.exchange(segment.path, frame)
        return frame

    def _rows(self, segment: Segment) -> Rows:
        known = self.cache.rows.get(segment.path)
        if known is None:
            known = self.pending.rows(segment.path)
        return self.cache.read(segment) if known is None else known
