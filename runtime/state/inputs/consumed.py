"""The consumed files of a source, in 32 bytes each. The cost of a look-up does not grow with the files ever read."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tidegate.runtime.arrays import BoolArray, Int64Array, UInt64Array

#: Files that stand in a dictionary before they go into the arrays, at least: some 300 bytes each there.
LEAST_RECENT: Final = 4096
#: The arrays are sorted anew when an eighth of their files has come, so a file is sorted nine times at most on average.
_SHARE: Final = 8


@dataclass(frozen=True, slots=True)
class PathStatus:
    """The status of some paths, in their order: whether each was read, and its size and time then."""

    read: BoolArray
    size: Int64Array
    mtime_ns: Int64Array


class ConsumedFiles:
    """Paths of one source with the size and time of what was read there.

    A path is known by two 64-bit hashes. Their seeds are random in every process, so nobody can choose names that
    collide, and two of a million names do with a probability of 10^-27.
    """

    def __init__(self) -> None:
        self._seeds = secrets.randbits(62), secrets.randbits(62)
        self._first: UInt64Array = np.empty(0, np.uint64)
        self._second: UInt64Array = np.empty(0, np.uint64)
        self._size: Int64Array = np.empty(0, np.int64)
        self._mtime_ns: Int64Array = np.empty(0, np.int64)
        self._recent: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        again = self._places(list(self._recent)) >= 0
        return len(self._first) + len(self._recent) - int(again.sum())

    def add(self, path: str, size: int, mtime_ns: int) -> None:
        """Adds a file, or another version of one."""
        self._recent[path] = size, mtime_ns
        if len(self._recent) > max(LEAST_RECENT, len(self._first) // _SHARE):
            paths, versions = list(self._recent), np.array(list(self._recent.values()), np.int64)
            self._recent.clear()
            self.add_many(paths, versions[:, 0], versions[:, 1])

    def add_many(self, paths: Any, sizes: Int64Array, mtimes_ns: Int64Array) -> None:
        """Many files: text as Polars takes it, and arrays. Of two with one path the later counts."""
        first, second = self._hashes(paths)
        first, second = np.concatenate([self._first, first]), np.concatenate([self._second, second])
        order = np.lexsort((second, first))  # stable
        first, second = first[order], second[order]
        last = np.ones(len(first), np.bool_)
        last[:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        self._first, self._second = first[last], second[last]
        self._size = np.concatenate([self._size, sizes])[order][last]
        self._mtime_ns = np.concatenate([self._mtime_ns, mtimes_ns])[order][last]

    def discard(self, paths: Iterable[str]) -> None:
        """Forgets these paths. A file of such a name is a new one."""
        gone = list(paths)
        for path in gone:
            self._recent.pop(path, None)
        if len(self._first):
            at = self._places(gone)
            kept = np.ones(len(self._first), np.bool_)
            kept[at[at >= 0]] = False
            if not kept.all():
                self._first, self._second = self._first[kept], self._second[kept]
                self._size, self._mtime_ns = self._size[kept], self._mtime_ns[kept]

    def known(self, paths: Sequence[str]) -> PathStatus:
        """The status of these paths."""
        if len(self._first):
            status = self._in_arrays(paths)
        else:
            status = PathStatus(np.zeros(len(paths), np.bool_), *np.zeros((2, len(paths)), np.int64))
        if self._recent:
            for number, path in enumerate(paths):
                version = self._recent.get(path)
                if version is not None:
                    status.read[number] = True
                    status.size[number], status.mtime_ns[number] = version
        return status

    def _in_arrays(self, paths: Sequence[str]) -> PathStatus:
        at = self._places(paths)
        read = at >= 0
        return PathStatus(read, np.where(read, self._size[at], 0), np.where(read, self._mtime_ns[at], 0))

    def _places(self, paths: Sequence[str]) -> Int64Array:
        """Where each path is in the arrays, -1 for those that are not."""
        first, second = self._hashes(paths)
        at: Int64Array = np.searchsorted(self._first, first)
        places = np.full(len(first), -1, np.int64)
        open_ = np.arange(len(first))
        while len(open_):  # again only for paths with one first hash
            open_ = open_[at[open_] < len(self._first)]
            open_ = open_[self._first[at[open_]] == first[open_]]
            same = self._second[at[open_]] == second[open_]
            places[open_[same]] = at[open_[same]]
            open_ = open_[~same]
            at[open_] += 1
        return places

    def _hashes(self, paths: Any) -> tuple[UInt64Array, UInt64Array]:
        import polars as pl  # here, since explaining a program loads this module, and reads no files

        try:
            text = pl.Series(paths, dtype=pl.String)
        except UnicodeEncodeError:  # what is not UTF-8 was never read: no log could name it
            text = pl.Series([path if is_text(path) else "" for path in paths], dtype=pl.String)
        first_seed, second_seed = self._seeds
        # In one step: each costs a tenth of a millisecond, however few the paths are.
        hashes = text.to_frame("path").select_seq(
            first=pl.col("path").hash(first_seed), second=pl.col("path").hash(second_seed)
        )
        return hashes["first"].to_numpy(), hashes["second"].to_numpy()


def is_text(path: str) -> bool:
    """Whether a path is UTF-8, so that the log can name it."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
