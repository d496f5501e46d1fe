"""The `Store` interface, with local directories and memory behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidegate.runtime.state.failpoints import Failpoints
from tidegate.runtime.state.shard_layout import Shard, ShardLayout


@dataclass(frozen=True, slots=True)
class FileRef:
    """An immutable file of a store with its size and checksum."""

    path: str
    bytes: int
    checksum: str


class Lock(Protocol):
    """The right to write to a store, until released or until the process ends."""

    @property
    def guaranteed(self) -> bool:
        """False where the file system has no locks: then only the exclusive manifest keeps writers apart."""

    def held(self) -> bool:
        """Whether nobody has taken over the store meanwhile."""

    def release(self) -> None: ...


class Store(Protocol):
    """Files of one checkpoint under relative POSIX paths.

    Files are written once under a new name and never changed. A write returns only when the file and its directory
    entry are durable, unless it is said to be `hasty`. Where a file is read, the path may name a part of a pack
    (`packs.py`). Tables are `pyarrow.Table`. A missing file is a `FileNotFoundError`, other failures are `OSError` or
    Arrow's errors; the callers in this package turn them into `StateError`. A link in the place of a file, or of a
    directory that leads to it, is never followed: every operation refuses it (TG511).
    """

    failpoints: Failpoints
    packs: bool
    """Whether the small tables of a batch are written as one file (`packs.py`)."""

    @property
    def where(self) -> str:
        """The location, for messages."""

    def read_bytes(self, path: str) -> bytes: ...

    def write_bytes(self, path: str, data: bytes | memoryview, *, hasty: bool = False) -> FileRef:
        """Write a new file; `FileExistsError` if it exists."""

    def create_exclusive(self, path: str, data: bytes, *, hasty: bool = False, after: Sequence[str] = ()) -> bool:
        """Write a file that appears complete or not at all; False, changing nothing, if `path` exists.

        A `hasty` file can be lost or empty when the machine dies. The files `after` which it appears, which were
        written in haste, are made durable before, at the same time as its content.
        """

    def note(self, path: str) -> None:
        """Make an empty file if there is none; it may get lost when the machine dies."""

    def write_table(self, path: str, table: Any, *, hasty: bool = False, layout: ShardLayout | None = None) -> FileRef:
        """Write a table into a new file; `FileExistsError` if it exists.

        A `hasty` file is durable once another has appeared after it (`create_exclusive`). With a `layout` the rows lie
        by shard.
        """

    def read_table(self, path: str, columns: Sequence[str] | None = None) -> Any:
        """The table in a file, or these columns of it in this order."""

    def read_shard(self, path: str, shard: Shard) -> tuple[Any, int]:
        """Rows of a file among which all those of a shard are, and how many rows the file has."""

    def read_pieces(self, path: str, rows: int) -> Iterator[Any]:
        """The table in a file as tables of at most so many rows, of which one at a time is in memory."""

    def list_files(self, prefix: str) -> list[str]:
        """The checkpoint's own files below a directory, sorted; none if there is no such directory.

        Files whose names have another form (`own.is_own`) are somebody else's and left out.
        """

    def foreign_files(self, prefix: str) -> list[str]:
        """Other files below a directory, sorted; the path itself if it is no directory."""

    def names(self) -> list[str]:
        """Names of the files and directories at the top, sorted."""

    def delete(self, path: str) -> None:
        """Remove a file if it exists; `InternalError` for a path that is not of the checkpoint's own form."""

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def checksum(self, path: str) -> str:
        """The checksum of a file's content, as `FileRef` has it."""

    def sync(self, path: str) -> None:
        """Make a file durable that another process wrote."""

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """Move each file to its target, an absolute path outside or a relative one inside, where it appears at once and
        complete.

        Repeating it is harmless. A target that exists with other content is left alone and refused (TG508).
        """

    def target_size(self, target: str) -> int | None:
        """The size of a published file, None if there is none."""

    def target_names(self, directory: str) -> list[str]:
        """The names in a directory of results, given absolutely; none where it does not exist."""

    def local_path(self, path: str) -> str | None:
        """The file's absolute path for other processes; None where no other process can read it."""

    def lock(self) -> Lock:
        """Become the only writer; `StateError` TG503 if there is one already."""
