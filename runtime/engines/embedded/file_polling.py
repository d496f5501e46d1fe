"""Polling of the sources' directories: which files are new, when it is time to look again, and reading ahead."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tidegate.runtime.engines.ahead.following import Following, is_taken_in_ahead
from tidegate.runtime.engines.ahead.read_ahead import ReadAhead
from tidegate.runtime.engines.file_density import estimate
from tidegate.runtime.engines.notices import Notices
from tidegate.runtime.engines.setup import FoundFiles, Setup, UnreadFiles
from tidegate.runtime.ingest.ingest import Arrival
from tidegate.runtime.ingest.inputs import Arrivals
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.tuning.tuner import Tuner

#: So many times as long as a look at directories takes, its files are read before the next: where the system tells of
#: no changes, a look costs as much as there are files, and in a directory of many each batch would pay for all.
_LOOKS_APART = 20


@dataclass(slots=True)
class FilePolling:
    """The files that no batch has read yet, and those that are being read for the next one."""

    setup: Setup
    notices: Notices
    tuner: Tuner
    _ahead: ReadAhead = field(default_factory=ReadAhead)
    _began: float = 0.0
    _looked: float = 0.0
    """When the last look began and ended."""

    def unread(self) -> UnreadFiles:
        """The files in the directories that were never read; `StateError` where this run may not go on."""
        self._began = time.monotonic()
        self.setup.admit(Offer())
        files = self.setup.unread()
        self.notices.looked()
        self._looked = time.monotonic()
        return files

    def is_due(self, fresh: UnreadFiles) -> bool:
        """Whether it is time for a look before the next batch, of which these files are known."""
        return not self._goes_on(fresh) or time.monotonic() - self._looked > _LOOKS_APART * (self._looked - self._began)

    def _goes_on(self, fresh: UnreadFiles) -> bool:
        """Whether some of these files make the next batch, all of them as they were found, and none are the last of a
        source: what has come since decides whether that ends, or is idle."""
        limits = {name: self._per_batch(name) for name, files in fresh.items() if files}
        if not limits or any(limit is None or limit >= len(fresh[name]) for name, limit in limits.items()):
            return False
        return all(file.is_as_found() for name, limit in limits.items() for file in fresh[name].first(limit))

    def known(self) -> UnreadFiles:
        """The files that are left of the last look."""
        return {name: directory.waiting for name, directory in self.setup.directories.items()}

    def for_one_batch(self, fresh: UnreadFiles, seq: int, before: FoundFiles = MappingProxyType({})) -> FoundFiles:
        """The files of these that the batch of that number reads, where one `before` it reads some."""
        some = {name: files.first(self._per_batch(name), set(before.get(name, ()))) for name, files in fresh.items()}
        if self.tuner.seconds_a_batch is not None:
            estimate(self.tuner, some)
        return self.tuner.share_of(some, seq)

    def arrivals(self, reading: FoundFiles, pushed: Mapping[str, Sequence[Arrival]]) -> dict[str, Arrivals]:
        """The rows of a batch's files, each stream's after those that were pushed; no other files are held any more."""
        arriving = {}
        for name, files in reading.items():
            paths = tuple(file.path for file in files)
            data, schema = self.setup.sources[name].data, self.setup.judged(name)
            some, begun = tuple(pushed.get(name, ())), self._ahead.take(files)
            arriving[name] = Arrivals(some, paths, data.format, schema, data.top, begun, found=tuple(files))
        self._ahead.drop()
        return arriving

    def following(self, fresh: UnreadFiles, reading: FoundFiles) -> Following:
        """The files of the next batch whose rows can be taken in while the batch is evaluated that reads some."""
        seq = self.setup.checkpoint.next_seq + 1

        def chosen(fresh: UnreadFiles) -> FoundFiles:
            return self.for_one_batch(fresh, seq, reading)

        return Following(self.setup, self.tuner, chosen, self.setup.unread, fresh, self._looked - self._began)

    def read_ahead(self, fresh: UnreadFiles, reading: FoundFiles, *, others: bool = False) -> None:
        """Begins to read the files of the next batch, or of those streams alone that nobody takes in before."""
        following = self.setup.checkpoint.next_seq + 1
        for name, files in self.for_one_batch(fresh, following, reading).items():
            if others and is_taken_in_ahead(self.setup.streams[name], self.setup.options[name]):
                continue
            self._ahead.begin(name, files, self.setup.sources[name].data, self.setup.judged(name), self.tuner)

    def close(self) -> None:
        self._ahead.close()

    def _per_batch(self, name: str) -> int | None:
        per_batch: int | None = self.setup.sources[name].data.per_batch
        return per_batch
