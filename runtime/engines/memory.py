"""How much memory a run may take for what it could read again."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

#: The share of the process's memory that rows of the state and their indexes may take: they are kept once more on disk,
#: and a batch that finds them in memory costs what it looks up, one that does not costs what there is.
CACHE_SHARE: Final = 0.25
#: Where Linux says in which control groups a process is, and where these are.
GROUPS: Final = Path("/proc/self/cgroup")
MOUNTED: Final = Path("/sys/fs/cgroup")
#: Where no system says how much memory there is.
ASSUMED_MEMORY: Final = 1 << 30


def cache_bytes(chosen: int | None) -> int:
    """Bytes of the state that a run may hold in memory: as many as `chosen`, else a share of what there is."""
    return int(CACHE_SHARE * (memory_limit() or ASSUMED_MEMORY)) if chosen is None else chosen


def memory_limit() -> int | None:
    """Bytes that this process may use: the machine's, or what it or one of its control groups is limited to."""
    limits = []
    with contextlib.suppress(ValueError, OSError):  # not every POSIX system answers; the control group may
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    if own != resource.RLIM_INFINITY:
        limits.append(own)
    for file in _group_limits(GROUPS, MOUNTED):
        with contextlib.suppress(OSError):  # in a container groups above its own are not there
            if (text := file.read_text().strip()).isdigit():
                limits.append(int(text))
    return min(limits, default=None)


def _group_limits(groups: Path, mounted: Path) -> Iterator[Path]:
    """The files that limit the memory of the control groups of this process, each with all above it."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        lines = ["0::/", "0:memory:/"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            place, name = (mounted, "memory.max") if not controllers else (mounted / "memory", "memory.limit_in_bytes")
            its = PurePosixPath(path.lstrip("/"))
            yield from (place / group / name for group in (its, *its.parents))
