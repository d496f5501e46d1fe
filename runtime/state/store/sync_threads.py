"""Syncs side by side, in threads that last from batch to batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final

#: So many syncs at once.
SYNCS: Final = 16


class SyncThreads:
    """Threads that sync files and directories. They start when there are several at once, and last until `end`.

    The file system takes what is asked of it at once into one write of its journal. A process that was forked has none
    of the threads of its parent, so it starts its own.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def run(self, syncs: Sequence[Callable[[], None]]) -> None:
        """All of them, the first in this thread; when it returns or raises, none of them runs any more."""
        if not syncs:
            return
        others = [self._threads().submit(sync) for sync in syncs[1:]]
        try:
            syncs[0]()
        finally:
            wait(others)
        for other in others:
            other.result()

    def end(self) -> None:
        """Ends the threads; a later `run` starts others."""
        pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.shutdown()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(SYNCS, "tidegate-sync"), os.getpid()
        return self._pool
