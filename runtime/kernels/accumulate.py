"""Aggregates over the events of each run, with the values that they had at given instants.

An aggregate's states stand in arrays by the number of the run (`derive`), so that those of open runs are carried on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numba as nb
import numpy as np

from tidegate.runtime.kernels.compiling import compiled

Ints = np.ndarray[Any, np.dtype[np.int64]]
Doubles = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

_NEVER_DUE = (1 << 63) - 1
_INTS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_DOUBLES = nb.types.Array(nb.float64, 1, "C", readonly=True)
_BOOLS = nb.types.Array(nb.boolean, 1, "C", readonly=True)
_TOTALS, _SUMS, _SEEN = nb.int64[::1], nb.float64[::1], nb.boolean[::1]


class Fold(IntEnum):
    """How a value joins a state; NULLs never do. A count is a SUM of ones."""

    SUM = 0
    LEAST = 1
    GREATEST = 2
    FIRST = 3
    LAST = 4


_SUM, _LEAST, _GREATEST, _FIRST = Fold.SUM.value, Fold.LEAST.value, Fold.GREATEST.value, Fold.FIRST.value


@dataclass(frozen=True, slots=True)
class Instants:
    """R requests for the state of a run after its events up to an instant, ordered by run, then instant."""

    #: int64[R]: number of the run.
    run: Ints
    #: int64[R]
    until: Ints


def accumulate_ints(
    fold: Fold, run: Ints, time: Ints, values: Ints, valid: Bools, total: Ints, seen: Bools, at: Instants
) -> tuple[Ints, Bools]:
    """Folds each event into the state of its run; states int64[R] at the instants, and whether there was a value.

    `run` is int64[n], -1 for events of none; `time` int64[n] ascends within each run; `valid` bool[n] is False where the
    value is NULL; `total` int64[r] and `seen` bool[r] are the states by number, changed in place. Sums wrap around.
    """
    totals, seens = np.empty(len(at.run), dtype=np.int64), np.empty(len(at.run), dtype=np.bool_)
    _ints(fold, run, time, values, valid, total, seen, at.run, at.until, totals, seens)
    return totals, seens


def accumulate_doubles(
    fold: Fold, run: Ints, time: Ints, values: Doubles, valid: Bools, total: Doubles, low: Doubles, seen: Bools,
    at: Instants,
) -> tuple[Doubles, Doubles, Bools]:  # fmt: skip
    """As `accumulate_ints`; a sum, of finite values far from overflow, is total + low, and NaN is the greatest value."""
    totals, lows = np.empty(len(at.run)), np.empty(len(at.run))
    seens = np.empty(len(at.run), dtype=np.bool_)
    _doubles(fold, run, time, values, valid, total, low, seen, at.run, at.until, totals, lows, seens)
    return totals, lows, seens


@compiled(nb.void(_INTS, _INTS, _TOTALS, _TOTALS), nogil=True)
def _schedule(run: Ints, until: Ints, due: Ints, request: Ints) -> None:
    """For every run: its first request, and when that is due."""
    due[:] = _NEVER_DUE
    for place in range(run.shape[0] - 1, -1, -1):
        due[run[place]] = until[place]
        request[run[place]] = place


@compiled(
    nb.void(
        nb.int64, _INTS, _INTS, _INTS, _BOOLS, _TOTALS, _SEEN, _INTS, _INTS, _TOTALS, _SEEN
    ),
    nogil=True,
)  # fmt: skip
def _ints(
    fold: int, run: Ints, time: Ints, values: Ints, valid: Bools, total: Ints, seen: Bools,
    at_run: Ints, at_until: Ints, totals: Ints, seens: Bools,
) -> None:  # fmt: skip
    due, request = np.empty(total.shape[0], dtype=np.int64), np.empty(total.shape[0], dtype=np.int64)
    _schedule(at_run, at_until, due, request)
    for row in range(run.shape[0]):
        number = run[row]
        if number < 0:
            continue
        while due[number] < time[row]:
            place = request[number]
            totals[place], seens[place] = total[number], seen[number]
            request[number] = place + 1
            more = place + 1 < at_run.shape[0] and at_run[place + 1] == number
            due[number] = at_until[place + 1] if more else _NEVER_DUE
        if not valid[row]:
            continue
        value, known = values[row], total[number]
        if fold == _SUM:
            total[number] = known + value
        elif not seen[number]:
            total[number] = value
        elif fold == _LEAST:
            total[number] = min(known, value)
        elif fold == _GREATEST:
            total[number] = max(known, value)
        elif fold != _FIRST:
            total[number] = value
        seen[number] = True
    for place in range(at_run.shape[0]):
        number = at_run[place]
        if due[number] != _NEVER_DUE and place >= request[number]:
            totals[place], seens[place] = total[number], seen[number]


@compiled(
    nb.void(
        nb.int64, _INTS, _INTS, _DOUBLES, _BOOLS, _SUMS, _SUMS, _SEEN, _INTS, _INTS, _SUMS, _SUMS, _SEEN
    ),
    nogil=True,
)  # fmt: skip
def _doubles(
    fold: int, run: Ints, time: Ints, values: Doubles, valid: Bools, total: Doubles, low: Doubles, seen: Bools,
    at_run: Ints, at_until: Ints, totals: Doubles, lows: Doubles, seens: Bools,
) -> None:  # fmt: skip
    due, request = np.empty(total.shape[0], dtype=np.int64), np.empty(total.shape[0], dtype=np.int64)
    _schedule(at_run, at_until, due, request)
    for row in range(run.shape[0]):
        number = run[row]
        if number < 0:
            continue
        while due[number] < time[row]:
            place = request[number]
            totals[place], lows[place], seens[place] = total[number], low[number], seen[number]
            request[number] = place + 1
            more = place + 1 < at_run.shape[0] and at_run[place + 1] == number
            due[number] = at_until[place + 1] if more else _NEVER_DUE
        if not valid[row]:
            continue
        value, known = values[row], total[number]
        if fold == _SUM:
            rounded = known + value
            part = rounded - known
            lost = (known - (rounded - part)) + (value - part) + low[number]
            total[number] = rounded + lost
            low[number] = lost - (total[number] - rounded)
        elif not seen[number]:
            total[number] = value
        elif fold == _LEAST:
            if value < known or (np.isnan(known) and not np.isnan(value)):
                total[number] = value
        elif fold == _GREATEST:
            if value > known or (np.isnan(value) and not np.isnan(known)):
                total[number] = value
        elif fold != _FIRST:
            total[number] = value
        seen[number] = True
    for place in range(at_run.shape[0]):
        number = at_run[place]
        if due[number] != _NEVER_DUE and place >= request[number]:
            totals[place], lows[place], seens[place] = total[number], low[number], seen[number]
