"""Input that waits for the next batch: pushed rows, frames, and progress that was told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.connectors.sources import Files
from tidegate.runtime.engines.embedded.digests import digest_of
from tidegate.runtime.engines.setup import Setup
from tidegate.runtime.ingest.bounded_frames import check_noted, content_of, note_frame
from tidegate.runtime.ingest.ingest import Arrival
from tidegate.runtime.ingest.raw_rows import Raw, Rows, raw_of
from tidegate.runtime.ingest.stored_rows import input_table
from tidegate.runtime.state.store.memory import MemoryStore


@dataclass(slots=True)
class PendingInput:
    """What no batch has read yet; of a batch that fails it stays for the next one.

    `noted` has digests of the frames, `declared` the greatest instants that were told, also of a stream that then
    ended.
    """

    setup: Setup
    pushed: dict[str, list[Arrival]] = field(default_factory=dict)
    frames: dict[str, Arrival] = field(default_factory=dict)
    noted: dict[str, str] = field(default_factory=dict)
    advances: dict[tuple[str, str], Extended] = field(default_factory=dict)
    declared: dict[tuple[str, str], int] = field(default_factory=dict)
    close_at: int | None = None

    def __bool__(self) -> bool:
        return bool(self.pushed or self.frames or self.advances or self.close_at is not None)

    def take_frames(self) -> None:
        """Frames are read by the first batch; later ones are only compared with what they were then."""
        checkpoint = self.setup.checkpoint
        begun = checkpoint.manifest is not None
        lasting = not isinstance(checkpoint.store, MemoryStore)  # no other process goes on with a run in memory
        for name, source in self.setup.sources.items():
            if source.data is None or isinstance(source.data, Files) or (begun and not lasting):
                continue
            schema = self.setup.judged(name)
            rows = raw_of(name, source.data, schema, whole=self.setup.streams[name].schema)
            if lasting:
                note, content = check_noted if begun else note_frame, content_of(input_table(rows, schema))
                note(checkpoint.store, name, content)
                if not begun:
                    self.noted[name] = content.digest
            if not begun:
                self.frames[name] = Arrival("push", rows)

    def made(self, stream: str, rows: Rows) -> Raw:
        """Rows by column, checked for being rows at all; they are not added yet.

        They are what they were when they were pushed: a pandas frame, which may be changed in place, is copied.
        """
        if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "copy"):
            rows = rows.copy()
        return raw_of(stream, rows, self.setup.judged(stream))

    def push(self, stream: str, rows: Raw) -> None:
        self.pushed.setdefault(stream, []).append(Arrival("push", rows))

    def advance(self, advances: Mapping[tuple[str, str], Extended]) -> None:
        for key, ticks in advances.items():
            self.advances[key] = max(ticks, self.advances.get(key, -INF))
            if isinstance(ticks, int):
                self.declared[key] = max(ticks, self.declared.get(key, ticks))

    def finish(self, stream: StreamDef) -> None:
        self.advances |= {(stream.name, a): INF for a in stream.progress}

    def waiting_rows(self) -> dict[str, int]:
        """Pushed rows per stream."""
        return {name: sum(arrival.rows.count for arrival in arrivals) for name, arrivals in self.pushed.items()}

    def digest(self) -> str:
        """Identifies the rows."""
        return digest_of(self.pushed, self.noted)

    def arrivals(self) -> dict[str, Iterable[Arrival]]:
        """The rows per stream."""
        frames: dict[str, Iterable[Arrival]] = {name: [rows] for name, rows in self.frames.items()}
        return frames | {name: [*frames.get(name, ()), *pushed] for name, pushed in self.pushed.items()}

    def ended(self) -> dict[tuple[str, str], Extended]:
        """Progress of the streams that frames are the whole of."""
        streams = self.setup.streams
        return {(name, a): INF for name in self.frames for a in streams[name].progress}

    def discard(self) -> None:
        """Forgets what was pushed and told; frames stay."""
        self.pushed.clear()
        self.advances.clear()
        self.declared.clear()
        self.close_at = None

    def read(self) -> None:
        """Forgets all of it: a batch that is committed has read it."""
        self.frames.clear()
        self.noted.clear()
        self.discard()
