"""What a worker has loaded is left alone when it collects garbage.

Spark collects the garbage of a worker's Python in full after every task. The modules and kernels that are loaded are
some 180,000 objects, none of them garbage: looking at them all took 75 ms, as long as a task over a million rows.
"""

from __future__ import annotations

import gc
from itertools import count

_tasks = count(1)


def leave_still() -> None:
    """To be called as a task begins: what is in memory then is not looked at again.

    Garbage has just been collected, so all of it is in use. What is let go of later is freed as ever, cycles alone are
    not. So this is done in tasks 2, 4, 8 and so on: what could be lost is bounded, and modules that came late count.
    """
    number = next(_tasks)
    if number > 1 and not number & (number - 1):
        gc.freeze()
