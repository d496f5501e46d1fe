"""Files that the next batch is to read, read while this one is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from tidegate.algebra.schema import Schema
from tidegate.runtime.connectors.sources import Files
from tidegate.runtime.engines.file_density import estimate
from tidegate.runtime.ingest.inputs import FileRead
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.tuning.tuner import Tuner

#: About so many bytes of memory hold rows of files beside those of the batch.
MOST: Final = 256 << 20


class ReadAhead:
    """A thread that reads files, and the files that it has read or is reading; a file that has changed since is
    another.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._begun: dict[SourceFile, Future[FileRead]] = {}
        self._bytes = 0

    def begin(self, stream: str, files: Sequence[SourceFile], source: Files, schema: Schema, tuner: Tuner) -> None:
        """Begins to read the first of these files of a stream, as long as there is room for their rows."""
        estimate(tuner, {stream: files})
        for file in files:
            self._bytes += tuner.memory_of(stream, file.size, len(schema))
            if self._bytes > MOST:
                return
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "tidegate-read-ahead")
            self._begun[file] = self._pool.submit(FileRead.of, file.path, source.format, schema, source.top)

    def take(self, files: Sequence[SourceFile]) -> dict[str, Future[FileRead]]:
        """Those of these files that have been begun, by their paths."""
        return {file.path: self._begun.pop(file) for file in files if file in self._begun}

    def drop(self) -> None:
        """Lets go what nobody has taken."""
        for reading in self._begun.values():
            reading.cancel()
        self._begun.clear()
        self._bytes = 0

    def close(self) -> None:
        """Ends the thread once it has read its file."""
        self.drop()
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None
