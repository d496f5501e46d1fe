"""A store in memory, for tests and runs that need not survive. Tables stay Arrow objects."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.runtime.state.errors import OUTPUT, WRITER, StateError
from tidegate.runtime.state.failpoints import Failpoints
from tidegate.runtime.state.shard_layout import Shard, ShardLayout
from tidegate.runtime.state.store.interface import FileRef, Lock
from tidegate.runtime.state.store.own_files import check_own, is_own
from tidegate.runtime.state.store.packs import Part, part_of, table_of
from tidegate.runtime.state.store.paths import check_relative

_TABLE = "memory"  # tables are shared objects that nobody can flip a byte of


class MemoryStore:
    """`Store` in this process's memory; not for use by several threads at once.

    `published` holds what was published to absolute paths. With `packs` small tables are serialised, as in directories.
    """

    def __init__(self, *, packs: bool = False) -> None:
        self.failpoints = Failpoints()
        self.packs = packs
        self.files: dict[str, Any] = {}
        self.published: dict[str, Any] = {}
        self._lock: _MemoryLock | None = None

    @property
    def where(self) -> str:
        return "memory"

    def read_bytes(self, path: str) -> bytes:
        data = self._get(path)
        if not isinstance(data, bytes):
            raise FileNotFoundError(path)
        return data

    def write_bytes(self, path: str, data: bytes | memoryview, *, hasty: bool = False) -> FileRef:
        self._add(path, bytes(data))
        return FileRef(path, len(data), self.checksum(path))

    def create_exclusive(self, path: str, data: bytes, *, hasty: bool = False, after: Sequence[str] = ()) -> bool:
        if check_relative(path) in self.files:
            return False
        self.failpoints.hit("store-file-written")
        self.failpoints.hit("store-file-synced")
        self.files[path] = data
        self.failpoints.hit("store-exclusive-linked")
        return True

    def note(self, path: str) -> None:
        self.files.setdefault(check_relative(path), b"")

    def write_table(self, path: str, table: Any, *, hasty: bool = False, layout: ShardLayout | None = None) -> FileRef:
        self._add(path, table)
        return FileRef(path, table.nbytes, _TABLE)

    def read_table(self, path: str, columns: Sequence[str] | None = None) -> Any:
        part = part_of(path)
        table = self._get(path) if part is None else table_of(self._part(part))
        if isinstance(table, bytes):
            raise FileNotFoundError(path)
        return table if columns is None else table.select(list(columns))

    def read_shard(self, path: str, shard: Shard) -> tuple[Any, int]:
        table = self.read_table(path)  # whole, as it is here
        return table, table.num_rows

    def read_pieces(self, path: str, rows: int) -> Iterator[Any]:
        table = self.read_table(path)
        return (table[start : start + rows] for start in range(0, table.num_rows, rows))

    def list_files(self, prefix: str) -> list[str]:
        start = prefix + "/" if prefix else ""
        return sorted(path for path in self.files if path.startswith(start) and is_own(path))

    def foreign_files(self, prefix: str) -> list[str]:
        return sorted(path for path in self.files if path.startswith(prefix + "/") and not is_own(path))

    def names(self) -> list[str]:
        return sorted({path.partition("/")[0] for path in self.files})

    def delete(self, path: str) -> None:
        self.files.pop(check_own(path), None)

    def exists(self, path: str) -> bool:
        return check_relative(path) in self.files

    def size(self, path: str) -> int:
        part = part_of(path)
        return _size(self._get(path)) if part is None else len(self._part(part))

    def checksum(self, path: str) -> str:
        part = part_of(path)
        data = self._get(path) if part is None else self._part(part)
        return f"crc32:{zlib.crc32(data):08x}" if isinstance(data, bytes) else _TABLE

    def sync(self, path: str) -> None:
        self._get(path)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        for path, target in moves:
            self._publish(path, target)

    def _publish(self, path: str, target: str) -> None:
        data = self._get(path)
        place = self._place(target)
        if target in place:
            there = place[target]
            same = there is data or (type(there) is type(data) and bool(there == data))
            if not same:
                raise StateError(
                    OUTPUT, f"{target} exists and holds something else", hint="use an empty output directory"
                )
        place[target] = data
        self.failpoints.hit("store-publish-copied")
        self.failpoints.hit("store-publish-linked")
        del self.files[path]

    def target_size(self, target: str) -> int | None:
        place = self._place(target)
        return _size(place[target]) if target in place else None

    def target_names(self, directory: str) -> list[str]:
        return [path.rpartition("/")[2] for path in self.published if path.rpartition("/")[0] == directory]

    def local_path(self, path: str) -> str | None:
        return None

    def lock(self) -> Lock:
        if self._lock is not None:
            raise StateError(WRITER, "another run writes to this checkpoint in memory", hint="close it first")
        self._lock = _MemoryLock(self)
        return self._lock

    def _place(self, target: str) -> dict[str, Any]:
        return self.published if target.startswith("/") else self.files

    def _part(self, part: Part) -> bytes:
        return bytes(self.read_bytes(part.pack)[part.offset : part.offset + part.length])

    def _get(self, path: str) -> Any:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def _add(self, path: str, data: Any) -> None:
        if check_relative(path) in self.files:
            raise FileExistsError(path)
        self.files[path] = data
        self.failpoints.hit("store-file-written")
        self.failpoints.hit("store-file-synced")


class _MemoryLock:
    guaranteed = True

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def held(self) -> bool:
        return self._store._lock is self

    def release(self) -> None:
        if self._store._lock is self:
            self._store._lock = None


def _size(data: Any) -> int:
    return len(data) if isinstance(data, bytes) else int(data.nbytes)
