"""What a program that is driven has been told since its last step, and its clock."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from tidegate.algebra.time import Extended
from tidegate.runtime.ingest.raw_rows import Rows


@dataclass(slots=True)
class PendingStep:
    """What the next step will do: rows per stream, progress, streams that end and where what is open then ends.

    `declared`: the greatest instants among the progress, also of a stream that then ended.
    """

    rows: dict[str, list[Rows]] = field(default_factory=dict)
    advances: dict[tuple[str, str], Extended] = field(default_factory=dict)
    declared: dict[tuple[str, str], int] = field(default_factory=dict)
    close_at: Any = None


@dataclass(slots=True)
class TestClock:
    """A clock that stands still until it is told to move; `Drive.wait` moves it.

    Examples:
        >>> from tidegate import testing
        >>> run = testing.drive(program, clock="2026-03-02T12:00Z")
        >>> run.wait("10m")
        >>> run.clock.now.isoformat()
        '2026-03-02T12:10:00+00:00'
    """

    __test__ = False  # not a test, whatever its name
    now: dt.datetime

    def __call__(self) -> dt.datetime:
        return self.now
