"""The files that wait to be read, in the order in which they are read."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, KeysView
from itertools import islice
from typing import Final

from tidegate.runtime.state.inputs.positions import OLDEST_FIRST, SourceFile

#: So many times as many files as come are there before each gets its place by itself; else all are sorted.
_SHARE: Final = 64
#: Files that were taken out stay in the order up to so many and a half of it.
_LOOSE: Final = 64


class WaitingFiles:
    """Files by path, oldest first, then by name. They change as files come and go: whoever needs them as they are takes
    the `first` ones.

    To take the first ones costs what is taken, and to add one the way to its place, however many wait.
    """

    def __init__(self) -> None:
        self._by_path: dict[str, SourceFile] = {}
        self._order: list[SourceFile] = []
        """In order from `_start` on, with files that have gone or changed: `_by_path` does not have them."""
        self._start = 0
        self._new: list[SourceFile] = []
        """Files that have no place in the order yet, and some that have gone or changed."""

    def __len__(self) -> int:
        return len(self._by_path)

    def __contains__(self, file: SourceFile) -> bool:
        return self._by_path.get(file.path) == file

    def __iter__(self) -> Iterator[SourceFile]:
        self._settle()
        for number in range(self._start, len(self._order)):
            if self._waits(self._order[number]):
                yield self._order[number]

    def get(self, path: str) -> SourceFile | None:
        """The file of this path, as it was found."""
        return self._by_path.get(path)

    def paths(self) -> KeysView[str]:
        """The paths of all files."""
        return self._by_path.keys()

    def put(self, file: SourceFile) -> None:
        """This one waits, as it is now."""
        self._by_path[file.path] = file
        self._new.append(file)

    def discard(self, path: str) -> None:
        """The file of this path waits no more."""
        self._by_path.pop(path, None)

    def clear(self) -> None:
        """None waits any more."""
        self._by_path.clear()
        self._order, self._start = [], 0
        self._new.clear()

    def first(self, count: int | None, but: Collection[SourceFile] = ()) -> tuple[SourceFile, ...]:
        """So many files at most, or all: those that are read next, without some others."""
        files = (file for file in self if file not in but) if but else iter(self)
        return tuple(islice(files, count))

    def has_others(self, files: Iterable[SourceFile]) -> bool:
        """Whether a file waits that is none of these."""
        return len(self) > sum(file in self for file in set(files))

    def _waits(self, file: SourceFile) -> bool:
        return self._by_path.get(file.path) is file

    def _settle(self) -> None:
        """Gives new files their places, and lets those go that wait no more."""
        new = [file for file in self._new if self._waits(file)]
        self._new.clear()
        if len(self._order) > 2 * len(self._by_path) + _LOOSE:
            self._order, self._start = [file for file in self._order[self._start :] if self._waits(file)], 0
        if len(new) * _SHARE < len(self._order):
            for file in new:
                insort(self._order, file, self._start, key=OLDEST_FIRST)
        elif new:
            self._order, self._start = sorted([*self._order[self._start :], *new], key=OLDEST_FIRST), 0
        while self._start < len(self._order) and not self._waits(self._order[self._start]):
            self._start += 1
