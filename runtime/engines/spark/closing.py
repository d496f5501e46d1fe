"""Where what is open ends, as said of a running query: kept in the checkpoint until a batch has recorded it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import PurePosixPath

from tidegate.runtime.state.codec import decode, encode
from tidegate.runtime.state.errors import DATA, storage_errors
from tidegate.runtime.state.store.local import LocalStore

#: Directory of the checkpoint.
AREA = "closing"
_logger = logging.getLogger("tidegate.spark")
_SAY_AGAIN = "nothing else depends on it: delete the file, and say the instant again"


@dataclass(frozen=True, slots=True)
class CloseAt:
    """The document of one call."""

    at: int


class ClosingCall:
    """The last instant that was said and that no batch has recorded yet, as `waiting`; None if there is none.

    Files are numbered, and the last one counts. `StateError` TG505 for one that is damaged.
    """

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._files = store.list_files(AREA)
        self.waiting: int | None = None
        if self._files:
            last = self._files[-1]
            with storage_errors(f"reading {last}"):
                data = store.read_bytes(last)
            self.waiting = decode("closing", CloseAt, data, code=DATA, where=last, hint=_SAY_AGAIN).at

    def say(self, at: int) -> None:
        """Take the instant down, in the place of what was said before."""
        if at == self.waiting:
            return
        number = int(PurePosixPath(self._files[-1]).stem) + 1 if self._files else 0
        path = f"{AREA}/{number:06d}.json"
        with storage_errors("recording where all that is open ends"):
            self._store.create_exclusive(path, encode("closing", CloseAt(at)))
        self._files.append(path)
        self.waiting = at

    def recorded(self, at: int | None) -> None:
        """Forget the call if that is what the last commit says."""
        if self.waiting is None or at != self.waiting:
            return
        try:
            for path in self._files:
                self._store.delete(path)
        except OSError as error:  # it says nothing new; what stays behind is deleted at the next start
            _logger.warning("deleting %s, which was recorded, failed: %s", AREA, error)
            return
        self._files, self.waiting = [], None
