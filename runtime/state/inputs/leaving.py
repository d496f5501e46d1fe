"""The files of a source that were read and are to leave: which are tried in a batch, and when one that failed again."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegate.runtime.state.inputs.positions import SourceFile

#: Files of earlier batches that are tried in a turn: some tenths of a second. All of an old run are there at once.
AT_ONCE: Final = 1000
#: A file that failed is tried again after 1, 2, 4, … turns, and after so many at most.
_MOST_TURNS: Final = 64


class LeavingFiles:
    """Files that are to leave. Those that failed come after all others, so none of them is in another's way."""

    def __init__(self, files: Iterable[SourceFile] = ()) -> None:
        self._waiting = deque(files)
        self._again: list[tuple[int, SourceFile]] = []
        """A heap of those that failed, by the turn in which they are tried again."""
        self._failures: dict[SourceFile, int] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._again)

    def __iter__(self) -> Iterator[SourceFile]:
        yield from self._waiting
        yield from (file for _, file in self._again)

    def add(self, files: Sequence[SourceFile]) -> None:
        """These were read, too. They are the first to leave, while their names are in no table of the log."""
        self._waiting.extendleft(reversed(files))

    def take(self, new: int = 0) -> list[SourceFile]:
        """The files of the next turn, the `new` ones and some others. They are in no other turn before `put_back` is
        told what became of them.
        """
        self._turn += 1
        most = AT_ONCE + new
        files = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        while self._again and self._again[0][0] <= self._turn and len(files) < most:
            files.append(heapq.heappop(self._again)[1])
        return files

    def put_back(self, failed: Mapping[SourceFile, str], untried: Sequence[SourceFile]) -> list[SourceFile]:
        """Of the files that were taken, those that failed and those that were not tried, as others of their folder
        failed; the rest needs no other turn.

        Gives those that failed for the first time.
        """
        first = [file for file in failed if file not in self._failures]
        self._waiting.extend(file for file in untried if file not in self._failures)
        for file in untried:
            if file in self._failures:
                heapq.heappush(self._again, (self._turn, file))
        for file in failed:
            failures = self._failures.get(file, 0)
            self._failures[file] = failures + 1
            heapq.heappush(self._again, (self._turn + min(2**failures, _MOST_TURNS), file))
        if len(self._failures) > len(self._again):
            self._failures = {file: self._failures[file] for _, file in self._again}
        return first
