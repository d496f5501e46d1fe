"""The clock of a run: read once per batch and recorded with it, so that a batch that is done again sees the same."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import instant_ticks

Clock = Callable[[], dt.datetime]


def system_clock() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def read_clock(clock: Clock) -> int:
    """Microseconds since 1970; `QueryError` TG401 where the clock does not tell an instant."""
    now = clock()
    if not isinstance(now, dt.datetime):
        raise QueryError("TG401", f"the clock says {shown(now)}", hint="a clock is a function that returns a datetime")
    return instant_ticks(now)
