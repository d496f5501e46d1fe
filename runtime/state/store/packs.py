"""Packs: the small tables of a batch in one file, so that a batch of few rows costs one write and one sync; or a large
table of numbers by itself.

A pack begins with `MAGIC`. Each part is a checksum (CRC-32, four bytes, little-endian), its length (four bytes) and a
table as an Arrow IPC stream. A part has a path of its own, `packs/NAME@OFFSET+LENGTH`, by which a store reads it like a
file.
"""

from __future__ import annotations

import re
import struct
import uuid
import zlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from tidegate.runtime.state.store.interface import FileRef

AREA: Final = "packs"
MAGIC: Final = b"tidepk1\n"
#: A table of more bytes than this gets a file of its own: Parquet, compressed and read by columns.
LARGEST_PART: Final = 1 << 16
#: A pack takes no further part beyond this size.
LARGEST_PACK: Final = 1 << 24
#: A table of numbers of more bytes than this is no pack by itself.
LARGEST_TABLE: Final = 1 << 28
_HEADER: Final = struct.Struct("<II")
_PART = re.compile(r"(packs/[0-9]{10}-[0-9a-f]{1,32}-[0-9a-f]{32}\.pack)@([0-9]{1,10})\+([0-9]{1,10})")


@dataclass(frozen=True, slots=True)
class Part:
    """A range of bytes of a pack."""

    pack: str
    offset: int
    length: int


def part_of(path: str) -> Part | None:
    """The part that a path names; None for the path of a file."""
    parsed = _PART.fullmatch(path) if "@" in path else None
    return None if parsed is None else Part(parsed[1], int(parsed[2]), int(parsed[3]))


def file_of(path: str) -> str:
    """The file in which a path's content is: the pack of a part, else the path itself."""
    return path.partition("@")[0] if path.startswith(AREA) else path


@dataclass(slots=True)
class PackWriter:
    """A pack in the making, in memory until its batch writes it; `path` is where it will be."""

    path: str
    data: bytearray = field(default_factory=lambda: bytearray(MAGIC))

    @classmethod
    def of(cls, seq: int, attempt: str) -> PackWriter:
        """A pack with a name that no other attempt can choose."""
        return cls(f"{AREA}/{seq:010d}-{attempt}-{uuid.uuid4().hex}.pack")

    def takes(self, table: Any) -> bool:
        """Whether a table is small enough, and the pack too."""
        return table.nbytes <= LARGEST_PART and len(self.data) <= LARGEST_PACK

    def add(self, table: Any) -> FileRef:
        """Adds a `pyarrow.Table` as a part, in one batch. The part can be read once the pack is written."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_options()) as writer:
            writer.write_table(table.combine_chunks())
        body = sink.getvalue()
        part = _HEADER.pack(zlib.crc32(body), body.size) + body.to_pybytes()
        offset = len(self.data)
        self.data += part
        return _file(self.path, offset, part)

    @property
    def is_empty(self) -> bool:
        return len(self.data) == len(MAGIC)


def is_for_a_pack(table: Any) -> bool:
    """Whether a table is as well a pack by itself: every value has the same few bytes, so that Parquet would not be
    much smaller, and a copy of it fits in memory.
    """
    import pyarrow as pa

    return table.nbytes <= LARGEST_TABLE and all(pa.types.is_primitive(field.type) for field in table.schema)


def pack_of(path: str, table: Any) -> tuple[memoryview, FileRef]:
    """A pack with one table of numbers, and where the table will be; it takes a fraction of the time of Parquet."""
    import pyarrow as pa

    table, first = table.combine_chunks(), len(MAGIC) + _HEADER.size

    def write(sink: Any) -> None:
        with pa.ipc.new_stream(sink, table.schema, options=_options()) as writer:
            writer.write_table(table)

    counted = pa.MockOutputStream()
    write(counted)
    buffer = pa.allocate_buffer(first + counted.size())
    sink = pa.FixedSizeBufferWriter(buffer)
    sink.write(bytes(first))
    write(sink)
    data = memoryview(buffer).cast("B")
    body = data[first:]
    data[: len(MAGIC)] = MAGIC
    data[len(MAGIC) : first] = _HEADER.pack(zlib.crc32(body), len(body))
    return data, _file(path, len(MAGIC), data[len(MAGIC) :])


def _file(path: str, offset: int, part: bytes | memoryview) -> FileRef:
    """A part of the pack of that path, which begins there."""
    return FileRef(f"{path}@{offset}+{len(part)}", len(part), f"crc32:{zlib.crc32(part):08x}")


@cache
def _options() -> Any:
    """How parts are written: as ever. Without them each stream reads the environment for defaults of old versions."""
    import pyarrow as pa

    return pa.ipc.IpcWriteOptions()


def table_of(data: bytes) -> Any:
    """The table in the bytes of a part; `ValueError` for bytes that are not those that were written."""
    import pyarrow as pa

    if len(data) < _HEADER.size:
        raise ValueError("the part is cut off")
    checksum, length = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if length != len(body) or zlib.crc32(body) != checksum:
        raise ValueError("the part does not match its checksum")
    table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()
    table.validate(full=True)
    return table
