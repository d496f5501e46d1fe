"""A cache of segments: the rows of those that were read or written last, in memory, and their indexes by keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import polars as pl

from tidegate.runtime.eval.joins.key_index import KeyIndex, size_of_index
from tidegate.runtime.eval.small.increment import Rows, size_of
from tidegate.runtime.state.segments import Segment, read_segments
from tidegate.runtime.state.store.interface import Store


@dataclass(slots=True)
class SegmentCache:
    """The rows of segments by their paths, and their indexes, at most `most_bytes` of them together. Indexes make room
    for rows. What does not fit is read again.
    """

    store: Store
    most_bytes: int
    rows: dict[str, Rows] = field(default_factory=dict)
    indexes: dict[str, dict[str, KeyIndex]] = field(default_factory=dict)
    _bytes: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)
    """What each path counts among the bytes: the size of a frame grows when a column with one value is first read."""

    def read(self, segment: Segment) -> Rows:
        """The rows of a segment that is not in memory."""
        rows = pl.DataFrame(read_segments(self.store, [segment]))
        self.remember(segment.path, rows)
        return rows

    def remember(self, path: str, rows: Rows) -> None:
        size = size_of(rows)
        self._make_room(size)
        if self._bytes + size <= self.most_bytes:
            self.rows[path] = rows
            self._count(path, size)

    def exchange(self, path: str, rows: Rows) -> None:
        """Holds the rows of a segment in another form, if they are held at all."""
        if path in self.rows:
            self._count(path, size_of(rows) - size_of(self.rows[path]))
            self.rows[path] = rows

    def index(self, path: str, column: str) -> KeyIndex | None:
        """The index of a segment by a column, held while its rows are. None where one of the two cannot be held: to
        sort a segment for one look takes longer than to read all of it.
        """
        known, rows = self.indexes.get(path, {}).get(column), self.rows.get(path)
        if known is None and isinstance(rows, pl.DataFrame) and self._bytes + size_of_index(rows) <= self.most_bytes:
            rows = self.rows[path] = rows.rechunk()  # of columns in several pieces the index would hold copies
            known = KeyIndex.of(rows, column)
            self.indexes.setdefault(path, {})[column] = known
            self._count(path, known.bytes)
        return known

    def forget(self, live: Collection[str]) -> None:
        """Only segments with these paths are still needed."""
        for path in [path for path in self.rows if path not in live]:
            del self.rows[path]
            self.indexes.pop(path, None)
            self._bytes -= self._sizes.pop(path)

    def _make_room(self, size: int) -> None:
        """Lets indexes go, those made first, if rows of this size then fit: what is not held has to be read again."""
        if self._bytes + size <= self.most_bytes:
            return
        indexes = {path: sum(one.bytes for one in some.values()) for path, some in self.indexes.items()}
        if self._bytes + size - sum(indexes.values()) > self.most_bytes:
            return
        for path, of_index in indexes.items():
            if self._bytes + size <= self.most_bytes:
                return
            del self.indexes[path]
            self._count(path, -of_index)

    def _count(self, path: str, size: int) -> None:
        self._sizes[path] = self._sizes.get(path, 0) + size
        self._bytes += size
