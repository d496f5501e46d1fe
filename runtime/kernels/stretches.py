"""Stretches of events: neighbours of a partition for which the same conditions are true, each as one.

Deriving from stretches is deriving from their events, as long as no event of the partition lies within one unseen.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from tidegate.runtime.kernels.situations import Bits, Bools, Ints, Slots, Status

_TIMES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_SLOTS = nb.types.Array(nb.int32, 1, "C", readonly=True)
_HOLDS = nb.types.Array(nb.uint64, 1, "C", readonly=True)


def stretch(slot: Slots, time: Ints, holds: Bits, slots: int, low: int, high: int) -> tuple[Status, Bools, Ints]:
    """Which of n events begin a stretch, bool[n], and until when each of these lasts, int64[n]: status and both.

    `slot` is int32[n], below `slots`, `time` int64[n] in ascending order within each slot, `holds` uint64[n]. Events earlier
    than `low` or later than `high` stay stretches of their own. Unless DONE, the rest of the answer is to be thrown away.
    """
    begins = np.zeros(len(slot), dtype=np.bool_)
    until = np.empty(len(slot), dtype=np.int64)
    status = _stretch(slot, time, holds, low, high, np.full(slots, -1), np.full(slots, -1), begins, until)
    return Status(status), begins, until


@nb.njit(
    nb.int64(
        _SLOTS, _TIMES, _HOLDS, nb.int64, nb.int64, nb.int64[::1], nb.int64[::1], nb.boolean[::1], nb.int64[::1]
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def _stretch(
    slots: Slots, times: Ints, holds: Bits, low: int, high: int, last: Ints, first: Ints, begins: Bools, until: Ints
) -> Any:
    """`last` is the row of a slot's last event, `first` that with which its stretch began, -1 where it can not go on."""
    for row in range(slots.shape[0]):
        slot, time = slots[row], times[row]
        before = last[slot]
        if before >= 0 and time <= times[before]:
            return Status.UNSORTED.value if time < times[before] else Status.TIE.value
        last[slot] = row
        begun = first[slot]
        certain = low <= time <= high
        if certain and begun >= 0 and holds[row] == holds[begun]:
            until[begun] = time
        else:
            begins[row] = True
            until[row] = time
            first[slot] = row if certain else -1
    return Status.DONE.value
