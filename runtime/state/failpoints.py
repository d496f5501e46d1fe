"""Named places in the commit protocol where a test can crash, exit or fill the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from tidegate.algebra.errors import InternalError

FAILPOINTS = (
    # store
    "store-file-written",  # a file's bytes are written, nothing is synced
    "store-file-synced",  # the file is synced, its directory entry is not
    "store-exclusive-linked",  # an exclusive file exists under its name, directory not synced, temporary not removed
    "store-publish-copied",  # another file system: the copy is complete under a temporary name
    "store-publish-linked",  # the output has its final name, the staged file still exists
    # opening
    "open-before-meta",
    "open-after-meta",
    "recover-before-publish",
    "recover-before-sweep",
    "recover-during-sweep",  # before each deletion
    # a batch
    "batch-before-intent",
    "batch-after-intent",
    "batch-after-segment",
    "batch-after-stage",
    "commit-after-pack",  # the pack is durable, nothing names it
    "commit-before-positions",
    "commit-after-quarantine",  # rejected rows are written, and merged with earlier ones; nothing names the files
    "commit-before-manifest",
    "commit-after-manifest",
    "commit-after-output",  # after each output
    "commit-before-marker",  # all outputs are published, the note of it is not written
    "put-away-before",  # before each file that was read and leaves its directory
    "put-away-archived",  # it is in the archive too
    "put-away-aside",  # it has a hidden name in its folder
    "put-away-removed",  # its name in the directory is gone, nothing says so yet
    "commit-before-gc",
    "commit-during-gc",  # before each deletion
    "commit-after-gc",
)

PUT_AWAY = frozenset(name for name in FAILPOINTS if name.startswith("put-away-"))
"""Failpoints that only a source with `archive` or `delete` passes."""

COMPACTION = (
    "compaction-begun",  # the directory beside is there, nothing is merged into it yet
    "compaction-merged",  # merged files lie in the directory beside, the results are as they were
    "compaction-linked",  # so do links to the files that stay
    "compaction-exchanged",  # the directory beside has the place of the results, its entry is not synced
)
"""Failpoints of a compaction, which a run passes after a batch if a sink has `compact=True`."""

COMMITTED = frozenset(name for name in FAILPOINTS[FAILPOINTS.index("commit-after-manifest") :])
"""Failpoints that only a committed batch reaches."""


class SimulatedCrash(BaseException):
    """The process is gone. Not an `Exception`, so that no handler tidies up what a real crash would leave."""


def crash() -> None:
    """Action: stop here as if the process had died."""
    raise SimulatedCrash


def exit_hard() -> None:
    """Action: let the process really die, with the status of a killed one."""
    os._exit(137)


def disk_full() -> None:
    """Action: what a full disk answers."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Failpoints:
    """Which failpoints are armed, and how often each was passed; owned by one store."""

    __slots__ = ("_armed", "passed")

    def __init__(self) -> None:
        self._armed: dict[str, tuple[int, Callable[[], None]]] = {}
        self.passed: dict[str, int] | None = None

    @property
    def armed(self) -> bool:
        """Whether something is to happen at one of them."""
        return bool(self._armed)

    def arm(self, name: str, action: Callable[[], None], *, skip: int = 0) -> None:
        """Run `action` at the `skip`+1-th passing of `name` from now on; it disarms itself then."""
        if name not in (*FAILPOINTS, *COMPACTION):
            raise InternalError("TG590", f"no failpoint is named {name!r}")
        self._armed[name] = (skip, action)

    def disarm(self) -> None:
        self._armed.clear()

    def record(self) -> None:
        """Start to count passings in `passed`."""
        self.passed = {}

    def hit(self, name: str) -> None:
        """Called by the protocol at the place called `name`."""
        if self.passed is not None:
            self.passed[name] = self.passed.get(name, 0) + 1
        if not self._armed:
            return
        entry = self._armed.get(name)
        if entry is None:
            return
        skip, action = entry
        if skip:
            self._armed[name] = (skip - 1, action)
            return
        del self._armed[name]
        action()
