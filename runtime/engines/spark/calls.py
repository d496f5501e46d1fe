"""Progress calls of a running query: files of the checkpoint, so that they outlast the process."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from tidegate.algebra.time import INF
from tidegate.runtime.state.codec import Extended, decode, encode
from tidegate.runtime.state.errors import DATA, StateError, storage_errors
from tidegate.runtime.state.store.local import LocalStore

#: Directory of the checkpoint.
AREA = "advances"
_logger = logging.getLogger("tidegate.spark")
_CALL_AGAIN = "nothing else depends on it: delete the file, and make the call again"

Advances = dict[tuple[str, str], Extended]


@dataclass(frozen=True, slots=True)
class Call:
    """One attribute's part of a call."""

    stream: str
    attribute: str
    value: Extended


@dataclass(frozen=True, slots=True)
class Calls:
    """The document of one call."""

    parts: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class CallSnapshot:
    """What calls say at one moment: all that wait, and those among them that were made before Spark planned the
    batch.
    """

    waiting: Advances
    before: Advances

    def due(self, *, read: frozenset[str], offered: frozenset[str]) -> Advances:
        """What a batch is to take up: of streams whose files are all `read` everything; of streams that Spark reads
        itself (`offered`) what was called before Spark planned the batch, since rows may have come before a later
        call.
        """
        waiting = {key: value for key, value in self.waiting.items() if key[0] in read - offered}
        return waiting | {key: value for key, value in self.before.items() if key[0] in offered}


class ProgressCalls:
    """Calls that no batch has taken up yet, the greatest value per stream and attribute.

    Progress only grows, so a batch that is tried again may take up what was called meanwhile: nobody saw its first try.
    A call's file goes once a committed batch has come as far as it says, or others say more.
    `known` are the inputs of the program. `StateError` TG505 for a call that is damaged or not one of this program.
    """

    def __init__(self, store: LocalStore, known: Collection[tuple[str, str]]) -> None:
        self._store = store
        self._lock = Lock()  # batches run in another thread than the user's
        self._waiting: Advances = {}
        self._before: Advances = {}
        self._declared: dict[tuple[str, str], int] = {}
        self._files: dict[str, tuple[Call, ...]] = {}
        for path in store.list_files(AREA):
            self._files[path] = self._read(path)
            for call in self._files[path]:
                key = call.stream, call.attribute
                if key not in known:
                    raise StateError(
                        DATA, f"{path} in {store.where} is no call of this program: {key}", hint=_CALL_AGAIN
                    )
                self._note(key, call.value)

    def _read(self, path: str) -> tuple[Call, ...]:
        with storage_errors(f"reading {path}"):
            data = self._store.read_bytes(path)
        return decode("calls", Calls, data, code=DATA, where=path, hint=_CALL_AGAIN).parts

    def add(self, progress: Mapping[tuple[str, str], Extended]) -> bool:
        """Take down what a call says beyond those before it; whether that is anything."""
        with self._lock:
            new = {key: value for key, value in progress.items() if self._is_new(key, value)}
            for key, value in new.items():
                self._note(key, value)
        if new:
            self._record(new)
        return bool(new)

    def _is_new(self, key: tuple[str, str], value: Extended) -> bool:
        return value > self._waiting.get(key, -INF) or (
            isinstance(value, int) and value > self._declared.get(key, -INF)
        )

    def _note(self, key: tuple[str, str], value: Extended) -> None:
        self._waiting[key] = max(value, self._waiting.get(key, -INF))
        if isinstance(value, int):
            self._declared[key] = max(value, self._declared.get(key, value))

    def declared(self) -> dict[tuple[str, str], int]:
        """The greatest instant of every input among the calls, also of one that was then said to have ended."""
        with self._lock:
            return dict(self._declared)

    def called(self) -> CallSnapshot:
        """What was called so far."""
        with self._lock:
            return CallSnapshot(dict(self._waiting), dict(self._before))

    def reached(self, progress: Mapping[tuple[str, str], Extended]) -> None:
        """Forget the calls that say no more than what a commit knows, in the checkpoint too."""
        with self._lock:
            self._waiting = {key: value for key, value in self._waiting.items() if value > progress.get(key, -INF)}
            done = [
                path
                for path, parts in self._files.items()
                if all(part.value <= progress.get((part.stream, part.attribute), -INF) for part in parts)
            ]
            for path in done:
                del self._files[path]
        self._delete(done)

    def _delete(self, paths: Iterable[str]) -> None:
        try:
            for path in paths:
                self._store.delete(path)
        except OSError as error:  # they say nothing new; what stays behind is deleted at the next start
            _logger.warning("deleting progress calls that say nothing new failed: %s", error)

    def are_waiting(self) -> bool:
        """Whether there is a call that no batch has taken up."""
        with self._lock:
            return bool(self._waiting)

    def plan(self, offered: frozenset[str]) -> bool:
        """Spark plans the next batch after this; whether a call waits for that, of streams that Spark reads itself."""
        with self._lock:
            self._before = dict(self._waiting)
            return any(stream in offered for stream, _ in self._before)

    def _record(self, progress: Mapping[tuple[str, str], Extended]) -> None:
        path = f"{AREA}/{uuid.uuid4().hex}.json"
        calls = Calls(tuple(Call(*key, value) for key, value in progress.items()))
        with storage_errors("recording a progress call"):
            self._store.create_exclusive(path, encode("calls", calls))
        with self._lock:
            self._files[path] = calls.parts
            covered = self._covered()
            for path in covered:
                del self._files[path]
        self._delete(covered)

    def _covered(self) -> list[str]:
        """Files of calls of which others say more in every part. Of an input that was then said to have ended the
        greatest instant stays: see `declared`.
        """
        greatest: dict[tuple[str, str, bool], Extended] = {}
        for part in (part for parts in self._files.values() for part in parts):
            greatest[_kind(part)] = max(part.value, greatest.get(_kind(part), -INF))
        return [
            path for path, parts in self._files.items() if all(part.value < greatest[_kind(part)] for part in parts)
        ]


def _kind(part: Call) -> tuple[str, str, bool]:
    """The input of a part of a call, and whether it names an instant."""
    return part.stream, part.attribute, isinstance(part.value, int)
