"""Bounded queues between the threads that have events and the thread that runs batches over them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition

from tidegate.algebra.time import Extended
from tidegate.runtime.ingest.raw_rows import Raw


class Full(Exception):  # told to users as QueueFullError
    """A queue had no room within the time that a push may wait."""


@dataclass(frozen=True, slots=True, eq=False)
class QueuedRows:
    """Rows of one push to a stream."""

    stream: str
    content: Raw

    @property
    def rows(self) -> int:
        return self.content.count


@dataclass(slots=True)
class QueuedProgress:
    """Progress that was told of a stream after the rows before it."""

    stream: str
    told: dict[tuple[str, str], Extended]

    def merge(self, later: Mapping[tuple[str, str], Extended]) -> None:
        """Progress that is told later, without rows in between, takes the place of what was told before."""
        for key, ticks in later.items():
            self.told[key] = max(ticks, self.told.get(key, ticks))


Queued = QueuedRows | QueuedProgress


@dataclass(slots=True)
class InputQueue:
    """What waits for a batch: for each stream a queue of at most `most_rows` rows, with the progress between them.

    A push of more rows than `most_rows` is taken once its queue is empty. `put` numbers what it takes from 1 on, and
    `taken` is how much of it batches have taken.
    """

    most_rows: int
    entries: dict[str, deque[tuple[int, float, Queued]]] = field(default_factory=dict)
    """By stream what waits, each with its number and when it came."""
    rows: dict[str, int] = field(default_factory=dict)
    closed: bool = False
    stopped: bool = False
    """Whether what waits is left for no batch."""
    count: int = 0
    taken: int = 0
    lines: dict[str, deque[QueuedRows]] = field(default_factory=dict)
    """By stream the pushes that wait for room: the first of a line gets it first, however much it needs."""
    wanted: int = 0
    """Up to which entry a batch is due: somebody waits for it, or was refused for want of room."""
    changed: Condition = field(default_factory=Condition)

    def put(self, entry: QueuedRows, wait: float | None) -> bool:
        """Adds rows once their queue has room; False where the queues are closed.

        `Full` where there is none after `wait` seconds; None waits for as long as it takes.
        """
        with self.changed:
            if self.lines.get(entry.stream) or not self._has_room(entry):
                self._wait_for_room(entry, wait)
            if self.closed:
                return False
            self._append(entry)
            self.rows[entry.stream] = self.rows.get(entry.stream, 0) + entry.rows
            return True

    def tell(self, stream: str, advances: Mapping[tuple[str, str], Extended]) -> bool:
        """Adds progress behind the rows of its stream; False where the queues are closed."""
        with self.changed:
            if self.closed:
                return False
            before = self.entries.get(stream)
            if before and isinstance(last := before[-1][-1], QueuedProgress):
                last.merge(advances)
            else:
                self._append(QueuedProgress(stream, dict(advances)))
            return True

    def take(self, rows: int, age: float, most_wait: float) -> list[Queued]:
        """What a batch is made of: once so many rows wait, the oldest has waited `age` seconds, or somebody waits for
        the batch or for room. What came first is taken first, until there are so many rows.

        Nothing after `most_wait` seconds in which nothing came, or where no batch is to follow.
        """
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self._waits(), most_wait)
            if self._waits():
                waited = time.monotonic() - min(some[0][1] for some in self.entries.values() if some)
                self.changed.wait_for(lambda: self._is_due(rows), max(0.0, age - waited))
            taken: list[Queued] = []
            size = 0
            while self._waits() and size < rows and not self.stopped:
                stream = min(
                    (name for name in self.entries if self.entries[name]), key=lambda name: self.entries[name][0][0]
                )
                *_, entry = self.entries[stream].popleft()
                if isinstance(entry, QueuedRows):
                    self.rows[stream] -= entry.rows
                    size += entry.rows
                taken.append(entry)
            self.taken += len(taken)
            self.changed.notify_all()
            return taken

    def want(self) -> int:
        """Batches over what is there now do not wait for more; the number of its last entry."""
        with self.changed:
            self.wanted = self.count
            self.changed.notify_all()
            return self.wanted

    def close(self, *, drain: bool) -> None:
        """Nothing more is added, and without `drain` nothing more is taken; whoever waits for room learns of it."""
        with self.changed:
            self.closed, self.stopped = True, self.stopped or not drain
            self.changed.notify_all()

    def is_over(self) -> bool:
        """Whether no batch is to follow."""
        with self.changed:
            return self.stopped or (self.closed and not self._waits())

    def rest(self) -> Sequence[Queued]:
        """What no batch has taken, taken out."""
        with self.changed:
            waiting = sorted((pair for some in self.entries.values() for pair in some), key=lambda pair: pair[0])
            self.entries.clear()
            self.rows.clear()
            self.changed.notify_all()
            return [entry for *_, entry in waiting]

    def blocked(self) -> int:
        """How many pushes wait for room."""
        with self.changed:
            return sum(map(len, self.lines.values()))

    def waiting(self) -> dict[str, int]:
        """Rows per stream."""
        with self.changed:
            return {stream: rows for stream, rows in self.rows.items() if rows}

    def _append(self, entry: Queued) -> None:
        self.count += 1
        self.entries.setdefault(entry.stream, deque()).append((self.count, time.monotonic(), entry))
        self.changed.notify_all()

    def _wait_for_room(self, entry: QueuedRows, wait: float | None) -> None:
        line = self.lines.setdefault(entry.stream, deque())
        line.append(entry)
        self.changed.notify_all()
        try:
            first_with_room = lambda: self.closed or (line[0] is entry and self._has_room(entry))  # noqa: E731
            if not self.changed.wait_for(first_with_room, wait):
                self.want()
                raise Full
        finally:
            line.remove(entry)
            self.changed.notify_all()

    def _has_room(self, entry: QueuedRows) -> bool:
        waiting = self.rows.get(entry.stream, 0)
        return waiting == 0 or waiting + entry.rows <= self.most_rows

    def _is_due(self, rows: int) -> bool:
        return self.closed or self.blocked() > 0 or self.wanted > self.taken or sum(self.rows.values()) >= rows

    def _waits(self) -> bool:
        return any(self.entries.values())
