"""A cache of segments: the rows of those that were read or written last, in memory, and their indexes by keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from tidegate.runtime.eval.joins.key_index import Key, KeyIndex, size_of_index
from tidegate.runtime.rows import Rows, size_of
from tidegate.runtime.state.segments import Segment, read_segments
from tidegate.runtime.state.store.interface import Store

#: How often all rows of a segment are read before it has an index, whose making takes some five times as long. So the
#: segments of a window of two batches get none.
LOOKS: Final = 2


@dataclass(slots=True)
class SegmentCache:
    """The rows of segments by their paths, and their indexes by key and instant, at most `most_bytes` of them together.
    Indexes make room for rows. What does not fit is read again.

    What is interrupted, as where memory is refused, may make a segment count too much or too little until it is let go.
    """

    store: Store
    most_bytes: int
    rows: dict[str, Rows] = field(default_factory=dict)
    indexes: dict[str, dict[tuple[Key, str | None], KeyIndex]] = field(default_factory=dict)
    _bytes: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)
    """What each path counts among the bytes: the size of a frame grows when a column with one value is first read."""
    _looks: dict[str, int] = field(default_factory=dict)
    """How often rows of a path were looked up without an index."""

    def read(self, segment: Segment) -> Rows:
        """The rows of a segment that is not in memory."""
        rows = pl.DataFrame(read_segments(self.store, [segment]))
        self.remember(segment.path, rows)
        return rows

    def remember(self, path: str, rows: Rows) -> None:
        size = size_of(rows)
        self._make_room(size)
        if self._bytes + size <= self.most_bytes:
            self._count(path, size - self._sizes.get(path, 0))
            self.rows[path] = rows

    def exchange(self, path: str, rows: Rows) -> None:
        """Holds the rows of a segment in another form, if they are held at all."""
        if path in self.rows:
            self._count(path, size_of(rows) - size_of(self.rows[path]))
            self.rows[path] = rows

    def index(self, path: str, key: Key, time: str | None = None) -> KeyIndex | None:
        """The index of a segment by a key and an instant, held while its rows are. None where one of the two cannot
        be held, or it was not often enough asked for: to sort a segment for one look takes longer than to read it.
        """
        known, rows = self.indexes.get(path, {}).get((key, time)), self.rows.get(path)
        if known is not None or not isinstance(rows, pl.DataFrame):
            return known
        looks = self._looks[path] = self._looks.get(path, 0) + 1
        if looks <= LOOKS or self._bytes + size_of_index(rows) > self.most_bytes:
            return None
        rows = self.rows[path] = rows.rechunk()  # of columns in several pieces the index would hold copies
        index = KeyIndex.of(rows, key, time)
        self.indexes.setdefault(path, {})[key, time] = index
        self._count(path, index.bytes)
        return index

    def forget(self, live: Collection[str]) -> None:
        """Only segments with these paths are still needed."""
        self.let_go([path for path in self._sizes if path not in live])
        self._bytes = sum(self._sizes.values())

    def let_go(self, paths: Collection[str]) -> None:
        """Holds the rows of these segments no longer."""
        for path in paths:
            self.rows.pop(path, None)
            self.indexes.pop(path, None)
            self._looks.pop(path, None)
            self._bytes -= self._sizes.pop(path, 0)

    def _make_room(self, size: int) -> None:
        """Lets indexes go, those made first, if rows of this size then fit: what is not held has to be read again."""
        if self._bytes + size <= self.most_bytes:
            return
        indexes = {path: sum(index.bytes for index in some.values()) for path, some in self.indexes.items()}
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
