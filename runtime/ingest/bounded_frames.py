"""Frames given as sources are read once per checkpoint; what they held is noted, so that another one is refused
later.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from tidegate.algebra.printing.plans import count_of
from tidegate.runtime.state.codec import decode, encode
from tidegate.runtime.state.errors import DATA, REPLAY, StateError, storage_errors
from tidegate.runtime.state.store.interface import FileRef, Store
from tidegate.runtime.state.store.paths import slug

T = TypeVar("T")
RESTORE: Final = "restore the whole checkpoint from a backup, or start with a new checkpoint and replay the input"


@dataclass(frozen=True, slots=True)
class Content:
    """What a frame holds: the columns that its stream needs, the number of its rows, a hash of them."""

    columns: tuple[str, ...]
    rows: int
    digest: str

    def __str__(self) -> str:
        return f"{count_of(self.rows, 'row')} of {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The document `complete` of a frame that the Spark engine keeps as files: these hold its rows."""

    content: Content
    files: tuple[FileRef, ...]


def frame_area(stream: str) -> str:
    """Where a checkpoint keeps what it knows of a stream's frame."""
    return f"inputs/{slug(stream)}"


def content_of(table: pa.Table) -> Content:
    """The content of rows as `input_table` has them, in their order; what lies behind a NULL does not count."""
    digest = hashlib.blake2s(digest_size=16)
    for column in table.combine_chunks().columns:
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        digest.update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes())
        digest.update(pa.record_batch([array.drop_null()], ["values"]).serialize())
    return Content(tuple(f"{field.name} {field.type}" for field in table.schema), table.num_rows, digest.hexdigest())


def note_frame(store: Store, stream: str, content: Content) -> None:
    """Write down what the first batch is going to read of a frame."""
    path = f"{frame_area(stream)}/given"
    with storage_errors(f"noting the rows of {stream}"):
        store.delete(path)
        store.create_exclusive(path, encode("frame", content))


def check_noted(store: Store, stream: str, content: Content) -> None:
    """`StateError` TG506 unless the checkpoint was begun with this frame, on either engine."""
    noted, complete = f"{frame_area(stream)}/given", f"{frame_area(stream)}/complete"
    if store.exists(noted):
        check_content(stream, _read(store, "frame", Content, noted), content)
    elif store.exists(complete):
        check_content(stream, read_complete(store, stream).content, content)
    else:
        raise _another(stream, "none", content)


def read_complete(store: Store, stream: str) -> InputFiles:
    """What the Spark engine noted once a frame's rows were written."""
    return _read(store, "inputs", InputFiles, f"{frame_area(stream)}/complete")


def check_content(stream: str, known: Content, content: Content) -> None:
    """`StateError` TG506 where a frame holds something else than the one that the checkpoint was begun with."""
    if known != content:
        alike = (known.columns, known.rows) == (content.columns, content.rows)
        raise _another(stream, f"{known}{', with other values' if alike else ''}", content)


def _another(stream: str, begun: str, content: Content) -> StateError:
    return StateError(
        REPLAY,
        f"{stream}: the checkpoint was begun with another frame than is given now",
        because=(f"then: {begun}", f"now: {content}"),
        hint="a frame is all of its stream and read once: give the one that it was; rows that come later are files of "
        "a directory (tg.parquet) or are pushed; to read other rows start with a new checkpoint",
    )


def _read(store: Store, kind: str, cls: type[T], path: str) -> T:
    with storage_errors(f"reading {path}"):
        data = store.read_bytes(path)
    return decode(kind, cls, data, code=DATA, where=path, hint=RESTORE)
