"""Segments: the immutable pieces of buffers. Their bounds let readers skip or drop whole pieces."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.codec import canonical, parse_plain, plain
from tidegate.runtime.state.errors import DATA, StateError, is_out_of_memory, out_of_memory, storage_errors
from tidegate.runtime.state.shard_layout import Shard, ShardLayout
from tidegate.runtime.state.store.interface import FileRef, Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.paths import slug

FANOUT = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable file of rows of one buffer.

    `bounds` has min and max of those int64 attributes that are never null in it; an attribute without bounds can be
    anything. `batch` is the sequence number of the batch that wrote the file, `schema` identifies names and types.
    """

    path: str
    rows: int
    bytes: int
    checksum: str
    schema: str
    bounds: Mapping[str, tuple[int, int]]
    batch: int
    shard: int

    @property
    def file(self) -> FileRef:
        return FileRef(self.path, self.bytes, self.checksum)

    def to_json(self) -> str:
        """One line of text, to return from a worker."""
        return canonical(plain(self))

    @classmethod
    def from_json(cls, text: str) -> Segment:
        return parse_plain(cls, json.loads(text), code=DATA, where="the summary of a written segment")


def covering(parts: Sequence[Mapping[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    """The bounds of all parts together, for columns that every part has bounds of."""
    names = [name for name in parts[0] if all(name in part for part in parts)] if parts else []
    return {name: (min(part[name][0] for part in parts), max(part[name][1] for part in parts)) for name in names}


def schema_id(schema: Any) -> str:
    """A fingerprint of an Arrow schema's names and types in their order."""
    text = "\0".join(f"{field.name}\0{field.type}" for field in schema)
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def int64_bounds(table: Any, attributes: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Min and max of those of the int64 `attributes` that have rows and no nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bounds = {}
    for name in attributes:
        column = table.column(name)
        if column.type != pa.int64():
            raise InternalError("TG590", f"temporal attribute {name!r} is {column.type}, not int64")
        if table.num_rows and not column.null_count:
            low_high = pc.min_max(column)
            bounds[name] = (low_high["min"].as_py(), low_high["max"].as_py())
    return bounds


def new_path(area: str, name: str, seq: int, attempt: str) -> str:
    """A file name that no other attempt, task or process can choose; it shows the batch for which it is written."""
    return f"{area}/{slug(name)}/{seq:010d}-{attempt}-{uuid.uuid4().hex}.parquet"


def write_segment(
    store: Store,
    buffer_id: str,
    table: Any,
    temporal_columns: Iterable[str],
    seq: int,
    attempt: str,
    *,
    shard: int = 0,
    area: str = "segments",
    layout: ShardLayout | None = None,
) -> Segment:
    """Write `table` as one durable segment of a buffer; it counts once a manifest names it."""
    bounds = int64_bounds(table, temporal_columns)
    path = new_path(area, buffer_id, seq, attempt)
    with storage_errors(f"writing {path} in {store.where}"):
        file = store.write_table(path, table.replace_schema_metadata(None), layout=layout)
    return Segment(path, table.num_rows, file.bytes, file.checksum, schema_id(table.schema), bounds, seq, shard)


def write_segment_file(
    local_root: str,
    buffer_id: str,
    table: Any,
    temporal_columns: Sequence[str],
    seq: int,
    attempt: str,
    shard: int = 0,
) -> str:
    """`write_segment` in a worker process, into the store at `local_root`; returns `Segment.to_json` for the driver."""
    store = LocalStore(local_root)
    return write_segment(store, buffer_id, table, temporal_columns, seq, attempt, shard=shard).to_json()


def read_segments(
    store: Store, segments: Sequence[Segment], columns: Sequence[str] | None = None, *, schema: Any = None
) -> Any:
    """The rows of all `segments` as one table.

    `schema` (of the columns asked for) is needed only for what no segments yield. Sizes are checked here, page
    checksums by the reader, and whole files by `verify` when a checkpoint is opened.
    """
    import pyarrow as pa

    if not segments:
        if schema is None:
            raise InternalError("TG590", "no segments and no schema")
        return schema.empty_table()
    if len({segment.schema for segment in segments}) > 1:
        raise StateError(DATA, "segments of one buffer have different schemas", hint="the checkpoint was tampered with")
    tables = [_read(store, segment, columns) for segment in segments]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def read_shard(store: Store, segment: Segment, shard: Shard) -> Any:
    """Rows of a segment, all those of a shard and perhaps others. Checks are those of `read_segments`."""
    check_size(store, segment.file)
    with _reading(store, segment.path, segment.file, segment.rows):
        table, rows = store.read_shard(segment.path, shard)
    if rows != segment.rows or schema_id(table.schema) != segment.schema:
        raise _damaged(store, segment.path, _OTHERS)
    return _plain(table)


def read_pieces(store: Store, segment: Segment, rows: int) -> Iterator[Any]:
    """The rows of a segment as tables of at most `rows`, one after the other, so that no more of it is in memory."""
    check_size(store, segment.file)
    seen = 0
    with _reading(store, segment.path, segment.file, segment.rows):
        for table in store.read_pieces(segment.path, rows):
            seen += table.num_rows
            if schema_id(table.schema) != segment.schema:
                raise _damaged(store, segment.path, _OTHERS)
            yield _plain(table)
    if seen != segment.rows:
        raise _damaged(store, segment.path, _OTHERS)


_OTHERS = "its rows or columns are not those that were written"


def _read(store: Store, segment: Segment, columns: Sequence[str] | None) -> Any:
    check_size(store, segment.file)
    with _reading(store, segment.path, segment.file, segment.rows):
        table = store.read_table(segment.path, columns)
    if table.num_rows != segment.rows or (columns is None and schema_id(table.schema) != segment.schema):
        raise _damaged(store, segment.path, _OTHERS)
    return _plain(table)


def _plain(table: Any) -> Any:
    """The table without the file's metadata beyond names and types, which a reader could take for code."""
    import pyarrow as pa

    return pa.Table.from_arrays(table.columns, names=table.column_names)


@contextmanager
def _reading(store: Store, path: str, file: FileRef | None = None, rows: int | None = None) -> Iterator[None]:
    """Turns failures to read a file into `StateError`.

    Memory that is refused says nothing of the file (TG510), unless it is not as it was written: what is damaged can ask
    for any amount.
    """
    import pyarrow as pa

    size = "" if file is None else f" ({rows:,} rows in {file.bytes:,} bytes)"
    try:
        try:
            yield
        except BaseException as error:  # Polars' panics are no `Exception`
            if not is_out_of_memory(error):
                raise
            if file is not None and store.checksum(path) != file.checksum:
                raise ValueError(error) from error
            raise out_of_memory(f"reading {path}{size}", error) from error
    except (OSError, pa.ArrowException, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's word, not Arrow's
            with storage_errors(f"reading {path}"):
                raise
        raise _damaged(store, path, f"it can not be read ({error})") from error


def read_checked(store: Store, path: str) -> Any:
    """The table in a file or part; `StateError` TG505 if it is damaged."""
    with _reading(store, path):
        return store.read_table(path)


def check_size(store: Store, file: FileRef) -> None:
    """`StateError` TG505 unless the file exists with its size."""
    with storage_errors(f"reading {file.path}"):
        try:
            size = store.size(file.path)
        except FileNotFoundError:
            raise _damaged(store, file.path, "it is missing") from None
    if size != file.bytes:
        raise _damaged(store, file.path, f"it has {size} bytes instead of {file.bytes}")


def verify(store: Store, files: Iterable[FileRef]) -> None:
    """`StateError` TG505 for the first file that is missing or not byte for byte what was written."""
    for file in files:
        check_size(store, file)
        with storage_errors(f"reading {file.path}"):
            checksum = store.checksum(file.path)
        if checksum != file.checksum:
            raise _damaged(store, file.path, f"its checksum is {checksum} instead of {file.checksum}")


def _damaged(store: Store, path: str, why: str) -> StateError:
    return StateError(
        DATA,
        f"{path} in {store.where} is damaged: {why}",
        hint="restore the whole checkpoint from a backup, or start with a new checkpoint and replay the input",
    )


class Piece(Protocol):
    """A file as compaction sees it."""

    @property
    def rows(self) -> int: ...
    @property
    def schema(self) -> str: ...
    @property
    def shard(self) -> int: ...


P = TypeVar("P", bound=Piece)


def plan_compaction(segments: Sequence[P], *, fanout: int = FANOUT, max_rows: int = 1 << 22) -> list[list[P]]:
    """Groups of a buffer's segments to rewrite as one segment each, so that many small batches do not mean many files.

    Tier k holds the segments with `fanout`^k ≤ rows < `fanout`^(k+1). A tier with `fanout` members is merged into a
    higher one, so of n rows no more than (fanout-1)·log n segments stay, and each row is rewritten at most log n times
    (logarithms to the base `fanout`). Segments of `max_rows` or more stay as they are, and a group ends where it has as
    many, so it has less than twice as many. Only segments of one shard and schema are merged, and the order within a
    group is the order given.
    """
    tiers: dict[tuple[int, str], dict[int, list[list[P]]]] = {}
    for segment in segments:
        if segment.rows < max_rows:
            tier = tiers.setdefault((segment.shard, segment.schema), {})
            tier.setdefault(tier_of(segment.rows, fanout), []).append([segment])
    order = {id(segment): index for index, segment in enumerate(segments)}
    plan: list[list[P]] = []
    for tier in tiers.values():
        while full := [level for level, groups in tier.items() if len(groups) >= fanout]:
            level = min(full)
            before = len(plan)
            waiting: list[list[P]] = []
            merged: list[P] = []
            rows = 0
            for group in tier.pop(level):
                waiting.append(group)
                merged += group
                rows += _rows(group)
                if rows >= max_rows:
                    plan.append(merged)
                    waiting, merged, rows = [], [], 0
            if len(plan) > before:  # the others wait for more of their tier
                tier[level] = waiting
            else:
                tier.setdefault(tier_of(rows, fanout), []).append(merged)
        plan += [group for groups in tier.values() for group in groups if len(group) > 1]
    return [sorted(group, key=lambda segment: order[id(segment)]) for group in plan]


def _rows(segments: Sequence[Piece]) -> int:
    return sum(segment.rows for segment in segments)


def replaced(segments: Sequence[P], group: Sequence[P], merged: P) -> tuple[P, ...]:
    """`segments` with `merged` in the place of the first of `group`, and without the others."""
    gone = {id(segment) for segment in group[1:]}
    return tuple(merged if segment is group[0] else segment for segment in segments if id(segment) not in gone)


@dataclass(frozen=True, slots=True)
class _Unwritten:
    rows: int
    schema: str
    shard: int


def append_segment(
    store: Store,
    buffer_id: str,
    segments: Sequence[Segment],
    table: Any,
    temporal_columns: Sequence[str],
    seq: int,
    attempt: str,
    *,
    shard: int = 0,
) -> tuple[Segment, ...]:
    """A buffer's segments after `table` is added and what `plan_compaction` says is merged.

    Rows that are merged at once are written once: the new ones never get a file of their own then.
    """
    import pyarrow as pa

    new = _Unwritten(table.num_rows, schema_id(table.schema), shard)
    live: tuple[Segment | _Unwritten, ...] = (*segments, new)
    for group in plan_compaction(live):
        old = [segment for segment in group if isinstance(segment, Segment)]
        rows = read_segments(store, old)
        if new in group:
            rows = pa.concat_tables([rows, table.replace_schema_metadata(None)])
        merged = write_segment(store, buffer_id, rows, temporal_columns, seq, attempt, shard=group[0].shard)
        live = replaced(live, group, merged)
    return tuple(
        write_segment(store, buffer_id, table, temporal_columns, seq, attempt, shard=shard)
        if isinstance(segment, _Unwritten)
        else segment
        for segment in live
    )


def tier_of(rows: int, fanout: int = FANOUT) -> int:
    """k for `fanout`^k ≤ rows < `fanout`^(k+1); 0 for none."""
    tier, limit = 0, fanout
    while rows >= limit:
        tier, limit = tier + 1, limit * fanout
    return tier


def to_merge(rows: Sequence[int]) -> int:
    """How many of the last of some tables become one, given the rows of all. With 1 the last stays by itself.

    Tables get smaller from the first on: those of a smaller tier than a later one go into it, and `FANOUT` of one tier
    become one. So tables are few, and a row is written again a few times only.
    """
    count = 1
    while True:
        tier = tier_of(sum(rows[-count:]))
        smaller = count
        while smaller < len(rows) and tier_of(rows[-smaller - 1]) < tier:
            smaller += 1
        equal = smaller
        while equal < len(rows) and tier_of(rows[-equal - 1]) == tier:
            equal += 1
        merged = equal if equal - smaller + 1 >= FANOUT else smaller
        if merged == count:
            return count
        count = merged


def bounded(rows: Sequence[int], count: int, most: int) -> int:
    """As many of the last `count` tables as have `most` rows together; the last in any case."""
    while count > 1 and sum(rows[-count:]) > most:
        count -= 1
    return count
