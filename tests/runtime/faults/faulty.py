"""A store that fails or waits where a test says so: full, read-only and failing disks, slow renames, two processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tidegate.runtime.state.shard_layout import Shard, ShardLayout
from tidegate.runtime.state.store.interface import FileRef, Lock, Store

#: What changes something on the disk, in the order in which a batch needs it.
WRITES = ("create_exclusive", "write_bytes", "write_table", "publish", "note", "delete")
READS = (
    "read_bytes",
    "read_table",
    "read_shard",
    "read_pieces",
    "list_files",
    "foreign_files",
    "names",
    "exists",
    "size",
    "checksum",
    "sync",
    "target_size",
    "target_names",
)


class FaultyStore:
    """Another store, with something to do before an operation: raise an error, wait, take down what was asked."""

    def __init__(self, store: Store, before: Callable[[str, str], None]) -> None:
        self.inner = store
        self.failpoints = store.failpoints
        self.packs = store.packs
        self._before = before

    @property
    def where(self) -> str:
        return self.inner.where

    def read_bytes(self, path: str) -> bytes:
        self._before("read_bytes", path)
        return self.inner.read_bytes(path)

    def write_bytes(self, path: str, data: bytes | memoryview, *, hasty: bool = False) -> FileRef:
        self._before("write_bytes", path)
        return self.inner.write_bytes(path, data, hasty=hasty)

    def create_exclusive(self, path: str, data: bytes, *, hasty: bool = False, after: Sequence[str] = ()) -> bool:
        for each in after:
            self._before("sync", each)
        self._before("create_exclusive", path)
        return self.inner.create_exclusive(path, data, hasty=hasty, after=after)

    def note(self, path: str) -> None:
        self._before("note", path)
        self.inner.note(path)

    def write_table(self, path: str, table: Any, *, hasty: bool = False, layout: ShardLayout | None = None) -> FileRef:
        self._before("write_table", path)
        return self.inner.write_table(path, table, hasty=hasty, layout=layout)

    def read_table(self, path: str, columns: Sequence[str] | None = None) -> Any:
        self._before("read_table", path)
        return self.inner.read_table(path, columns)

    def read_shard(self, path: str, shard: Shard) -> tuple[Any, int]:
        self._before("read_shard", path)
        return self.inner.read_shard(path, shard)

    def read_pieces(self, path: str, rows: int) -> Iterator[Any]:
        for table in self.inner.read_pieces(path, rows):
            self._before("read_pieces", path)
            yield table

    def list_files(self, prefix: str) -> list[str]:
        self._before("list_files", prefix)
        return self.inner.list_files(prefix)

    def foreign_files(self, prefix: str) -> list[str]:
        self._before("foreign_files", prefix)
        return self.inner.foreign_files(prefix)

    def names(self) -> list[str]:
        self._before("names", "")
        return self.inner.names()

    def delete(self, path: str) -> None:
        self._before("delete", path)
        self.inner.delete(path)

    def exists(self, path: str) -> bool:
        self._before("exists", path)
        return self.inner.exists(path)

    def size(self, path: str) -> int:
        self._before("size", path)
        return self.inner.size(path)

    def checksum(self, path: str) -> str:
        self._before("checksum", path)
        return self.inner.checksum(path)

    def sync(self, path: str) -> None:
        self._before("sync", path)
        self.inner.sync(path)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        for path, _ in moves:
            self._before("publish", path)
        self.inner.publish(moves)

    def target_size(self, target: str) -> int | None:
        self._before("target_size", target)
        return self.inner.target_size(target)

    def target_names(self, directory: str) -> list[str]:
        self._before("target_names", directory)
        return self.inner.target_names(directory)

    def local_path(self, path: str) -> str | None:
        return self.inner.local_path(path)

    def lock(self) -> Lock:
        self._before("lock", "")
        return self.inner.lock()


def is_example(path: str) -> bool:
    """Whether what is read is of the quarantine, in which a warning looks for an example: without one it says less."""
    return path.startswith("quarantine/")


class Fails:
    """The `skip`+1-th use of an operation, and all that follow, answer with this error; counts uses."""

    def __init__(self, operation: str, number: int, skip: int = 0, *, once: bool = False) -> None:
        self.operation, self.number, self.skip, self.once = operation, number, skip, once
        self.uses = self.failures = 0
        self.paths: set[str] = set()

    def __call__(self, operation: str, path: str) -> None:
        if operation != self.operation:
            return
        self.uses += 1
        if self.uses > self.skip and not (self.once and self.failures):
            self.failures += 1
            self.paths.add(path)
            raise OSError(self.number, os.strerror(self.number), path)
