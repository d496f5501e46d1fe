"""Which files a batch on Spark reads: Spark says when there is a batch, this checkpoint says which files.

They are those that a session would read: the ones that were not read, oldest first, then by name. A batch that is
repeated reads what its intent says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tidegate.runtime.connectors.directory import Directory
from tidegate.runtime.engines.file_density import estimate
from tidegate.runtime.engines.setup import FoundFiles, Setup, UnreadFiles
from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.tuning.tuner import Tuner


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The files that a run is to read: `there`, the paths by source that were there when it began, or None for all that
    come as long as it lasts. It reads them in as many batches as their sources want, or `at_once`.
    """

    there: Mapping[str, frozenset[str]] | None
    at_once: bool = False

    @property
    def lasts(self) -> bool:
        """Whether files are read that come after the run began."""
        return self.there is None

    def next(
        self, setup: Setup, unread: UnreadFiles, tuner: Tuner, seq: int, before: FoundFiles = MappingProxyType({})
    ) -> FoundFiles:
        """What the batch of that number reads per source of what is unread there, where one `before` it reads some."""
        estimate(tuner, unread)
        limits = {name: None if self.at_once else setup.directories[name].files.per_batch for name in unread}
        some = {name: files.first(limits[name], set(before.get(name, ()))) for name, files in unread.items()}
        return some if self.at_once else tuner.share_of(some, seq)

    def is_left(self, directories: Mapping[str, Directory]) -> bool:
        """Whether there are files for another batch."""
        if self.there is None:
            return any(directory.waiting for directory in directories.values())
        there = self.there
        return any(file.path in there[name] for name, directory in directories.items() for file in directory.waiting)


def forget_what_has_gone(checkpoint: Checkpoint) -> None:
    """Discards the intent of a batch that can not be repeated: a file that it was to read is gone, or another."""
    pending = checkpoint.pending
    if pending is not None and not all(file.is_as_found() for files in pending.offer.files.values() for file in files):
        checkpoint.discard_intent()
