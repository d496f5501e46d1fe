"""How much memory a run may take for what it could read again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

#: The share of the process's memory that rows of the state and their indexes may take: they are kept once more on disk,
#: and a batch that finds them in memory costs what it looks up, one that does not costs what there is.
CACHE_SHARE: Final = 0.25
#: Where no system says how much memory there is.
ASSUMED_MEMORY: Final = 1 << 30


def cache_bytes(chosen: int | None) -> int:
    """Bytes of the state that a run may hold in memory: as many as `chosen`, else a share of what there is."""
    return int(CACHE_SHARE * (memory_limit() or ASSUMED_MEMORY)) if chosen is None else chosen


def memory_limit() -> int | None:
    """Bytes that this process may use: the machine's, or its control group's if that is less."""
    limits = []
    with contextlib.suppress(ValueError, OSError):  # not every POSIX system answers; the control group may
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        file = Path("/sys/fs/cgroup") / name
        if file.is_file() and (text := file.read_text().strip()).isdigit():
            limits.append(int(text))
    return min(limits, default=None)
