"""The files of the next batch whose rows can be taken in while a batch is evaluated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.schema import StreamDef
from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.engines.ahead.read_ahead import MOST
from tidegate.runtime.engines.file_density import estimate
from tidegate.runtime.engines.setup import FoundFiles, Setup, UnreadFiles
from tidegate.runtime.ingest.ingest import is_judged_in_order
from tidegate.runtime.ingest.inputs import Arrivals
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.tuning.tuner import Tuner

#: So many times as long as a look at directories took is waited before the next one, and so many seconds at least.
LOOKS_APART: Final = 20
SECONDS_APART: Final = 0.02


@dataclass(slots=True)
class Following:
    """What follows a batch that is reading some files: asked again, it tells what has come since.

    `chosen` says which of the files that no batch has read the next one reads, and `fresh` is what the last look has
    found, which `took` so many seconds. About so many bytes of rows are told as are read ahead.
    """

    setup: Setup
    tuner: Tuner
    chosen: Callable[[UnreadFiles], FoundFiles]
    look: Callable[[], UnreadFiles]
    fresh: UnreadFiles
    took: float
    _told: dict[str, set[SourceFile]] = field(default_factory=dict)
    _bytes: int = 0
    _looked: float = field(default_factory=time.monotonic)
    _is_new: bool = True

    def __call__(self) -> dict[str, Arrivals]:
        """Rows by stream that were not told yet."""
        if self._bytes > MOST or not (self._look() or self._is_new):
            return {}
        self._is_new = False
        arrivals = {}
        for name, files in self.chosen(self.fresh).items():
            options = self.setup.options[name]
            if is_taken_in_ahead(self.setup.streams[name], options) and (new := self._new(name, files)):
                data, paths = self.setup.sources[name].data, tuple(file.path for file in new)
                arrivals[name] = Arrivals((), paths, data.format, self.setup.judged(name), data.top, found=tuple(new))
        return arrivals

    def _look(self) -> bool:
        """Looks for files again, if that is due."""
        began = time.monotonic()
        if began - self._looked < max(SECONDS_APART, LOOKS_APART * self.took):
            return False
        self._looked, self.fresh = math.inf, {}  # none any more where a look fails
        self.fresh = self.look()
        self._looked = time.monotonic()
        self.took = self._looked - began
        return True

    def _new(self, name: str, files: Sequence[SourceFile]) -> list[SourceFile]:
        told = self._told.setdefault(name, set())
        new = list[SourceFile]()
        estimate(self.tuner, {name: files})
        for file in files:
            if file in told:
                continue
            self._bytes += self.tuner.memory_of(name, file.size, len(self.setup.judged(name)))
            if self._bytes > MOST:
                break
            told.add(file)
            new.append(file)
        return new


def is_taken_in_ahead(stream: StreamDef, options: SourceOptions) -> bool:
    """Whether the fates of a stream's rows are known before their batch: not where they depend on its clock, or on the
    rows that were accepted before.
    """
    return not (is_judged_in_order(stream, options) or options.arrival is not None or options.age_guard)
