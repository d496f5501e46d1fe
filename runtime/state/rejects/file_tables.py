"""Tables of full files of rejected rows: manifests name these few, and not each file.

They are few since they are merged by size tiers, as those of files that were read (`inputs/positions.py`). A batch
merges tables with a small part of all files.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tidegate.runtime.state.errors import DATA, StateError
from tidegate.runtime.state.segments import Segment, bounded, read_segments, to_merge, write_segment
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.own_files import is_own

if TYPE_CHECKING:
    import pyarrow as pa

AREA: Final = "quarantine"
CLOCK: Final = "clock"
#: Where the tables lie, beside the files of rows.
TABLES: Final = f"{AREA}/files"
#: More full files than these go from the manifest to a table.
LISTED: Final = 64
#: Tables are merged that have so many files together at most, or a part of all.
_MERGED: Final = 1 << 11
_MOST_TABLES: Final = 16
_OLDEST, _NEWEST = "oldest", "newest"
_COLUMNS: Final = (
    ("path", "string"),
    ("rows", "int64"),
    ("bytes", "int64"),
    ("checksum", "string"),
    ("schema", "string"),
    (_OLDEST, "int64"),
    (_NEWEST, "int64"),
    ("batch", "int64"),
    ("shard", "int64"),
)
_logger = logging.getLogger("tidegate.state")


@dataclass(frozen=True, slots=True)
class FileTable:
    """A table of full files, and how many rows and bytes these have together; its own rows are the files."""

    table: Segment
    rows: int
    bytes: int

    @property
    def files(self) -> int:
        return self.table.rows

    @property
    def oldest(self) -> int:
        """The clock of the oldest batch of which a file has rows."""
        return self.table.bounds[_OLDEST][0]

    @property
    def newest(self) -> int:
        """The clock of the newest batch of which a file has rows."""
        return self.table.bounds[_NEWEST][1]

    @property
    def first(self) -> int:
        """The clock after which every file has rows of a newer batch."""
        return self.table.bounds[_NEWEST][0]

    def may_list(self, file: Segment) -> bool:
        """Whether this file can stand in it, by its clocks."""
        oldest, newest = file.bounds[CLOCK]
        return self.oldest <= oldest and self.first <= newest <= self.newest

    @property
    def is_sound(self) -> bool:
        """Whether it says what is asked of it."""
        return {_OLDEST, _NEWEST} <= self.table.bounds.keys() and self.table.rows > 0


def with_files(
    store: Store, tables: Sequence[FileTable], files: Sequence[Segment], seq: int, attempt: str
) -> tuple[FileTable, ...]:
    """The tables with one more, into which the last ones go that are small."""
    counts = [*(table.files for table in tables), len(files)]
    count = bounded(counts, to_merge(counts), max(_MERGED, sum(counts) // _MOST_TABLES))
    kept, merged = tuple(tables[: len(counts) - count]), tables[len(counts) - count :]
    try:
        before = [file for table in merged for file in files_of(list_of(store, table))]
    except StateError as error:
        if error.code != DATA:
            raise
        _logger.warning("tables of rejected rows are not merged: %s", error.message)
        kept, before = tuple(tables), []
    return (*kept, table_of(store, [*before, *files], seq, attempt))


def table_of(store: Store, files: Sequence[Segment], seq: int, attempt: str) -> FileTable:
    """A new table of these files."""
    import pyarrow as pa

    from tidegate.runtime.arrow_arrays import array_of_values

    rows = [(f.path, f.rows, f.bytes, f.checksum, f.schema, *f.bounds[CLOCK], f.batch, f.shard) for f in files]
    types = {"string": pa.string(), "int64": pa.int64()}
    columns = zip(_COLUMNS, zip(*rows, strict=True), strict=True)
    table = pa.table({name: array_of_values(values, types[type_]) for (name, type_), values in columns})
    segment = write_segment(store, "files", table, (_OLDEST, _NEWEST), seq, attempt, area=AREA)
    return FileTable(segment, sum(file.rows for file in files), sum(file.bytes for file in files))


def list_of(store: Store, table: FileTable) -> pa.Table:
    """The content of a table, for `files_of`; `StateError` TG505 where it is damaged."""
    rows = read_segments(store, [table.table])
    columns = tuple((field.name, str(field.type)) for field in rows.schema)
    if columns != _COLUMNS or any(column.null_count for column in rows.columns):
        raise _damaged(table, "it has other columns than it should")
    for path in rows.column("path").to_pylist():
        if not path.startswith(f"{AREA}/") or not is_own(path):
            raise _damaged(table, f"it names {path!r}, which is no file of rejected rows")
    return rows


def files_of(rows: pa.Table) -> Iterator[Segment]:
    """The files of a table."""
    for batch in rows.to_batches(max_chunksize=1 << 10):
        for path, count, size, checksum, schema, oldest, newest, seq, shard in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            yield Segment(path, count, size, checksum, schema, {CLOCK: (oldest, newest)}, seq, shard)


def listed_paths(store: Store, tables: Collection[FileTable]) -> set[str]:
    """The paths of all files of these tables."""
    paths: Any = (list_of(store, table).column("path").to_pylist() for table in tables)
    return {path for some in paths for path in some}


def _damaged(table: FileTable, why: str) -> StateError:
    return StateError(
        DATA,
        f"{table.table.path} is damaged: {why}",
        hint="restore the file from a backup, or let quarantine_keep drop what it lists: a run goes on meanwhile, "
        "but no rejected rows can be read",
    )
