"""Source positions: which files of file sources are consumed, and how far other sources were read.

Consumed files are a log: the newest stand in the manifest itself, and when they become many they go to a table, of
which there are few, since they are merged by size tiers. A batch merges tables with a small part of all files, so none
takes long, and the number of tables grows with the logarithm of the number of files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from tidegate.algebra.types import INT64_MAX, INT64_MIN
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.errors import DATA, LOCATION, REPLAY, StateError, storage_errors
from tidegate.runtime.state.inputs.consumed import ConsumedFiles, is_text
from tidegate.runtime.state.inputs.leaving import LeavingFiles
from tidegate.runtime.state.outputs.beside import READ
from tidegate.runtime.state.outputs.compaction import parts_of
from tidegate.runtime.state.outputs.names import result_of
from tidegate.runtime.state.segments import Segment, bounded, read_segments, to_merge, write_segment
from tidegate.runtime.state.store.interface import Store

if TYPE_CHECKING:
    import polars as pl

EMBEDDED = "embedded"
#: What became of a file: `changed` if another version of it was read.
Fate = Literal["new", "consumed", "changed"]
_COLUMNS: Final = (("source", "string"), ("path", "string"), ("size", "int64"), ("mtime_ns", "int64"))
#: Tables are merged that have so many files together at most, or a part of all.
_MERGED: Final = 1 << 11
_MOST_TABLES: Final = 16
_RECENT = 64  # a table costs two syncs and a millisecond, 64 entries in a manifest a tenth of that


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """A file of a file source as it was found: a changed size or time makes it another file."""

    path: str
    size: int
    mtime_ns: int

    @staticmethod
    def of(path: str, status: os.stat_result) -> SourceFile:
        """A file of this status. Times beyond 64 bits, before 1677 or after 2262, count as the nearest within them."""
        return SourceFile(path, status.st_size, max(INT64_MIN, min(status.st_mtime_ns, INT64_MAX)))

    @staticmethod
    def found(path: str) -> SourceFile | None:
        """The file of this path as it is now; None where the file system says nothing of it."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        return SourceFile.of(path, status)

    def is_as_found(self) -> bool:
        """Whether the file still has this size and time."""
        return SourceFile.found(self.path) == self


#: The order in which files are read.
OLDEST_FIRST = attrgetter("mtime_ns", "path")


@dataclass(frozen=True, slots=True)
class SparkBatch:
    """Spark's name for a micro-batch."""

    query_id: str
    batch_id: int

    def __str__(self) -> str:
        return f"batch {self.batch_id} of Spark query {self.query_id}"


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """How far a source that is not made of files was read, in its own terms, and by which reader."""

    value: Json
    reader: str


@dataclass(frozen=True, slots=True)
class Positions:
    """The part of a manifest that says what was read: consumed files per source, those in tables, offsets of other
    sources.
    """

    recent: Mapping[str, tuple[SourceFile, ...]] = field(default_factory=dict)
    log: tuple[Segment, ...] = ()
    offsets: Mapping[str, SourceOffset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a batch could read: new files per file source, the offset reached per other source, Spark's name for it.

    `fingerprint` is what Spark knows the batch by, also when it is repeated; "" where there is no Spark. `pushed`
    identifies the rows that a session was given; "" where it was given none.
    """

    files: Mapping[str, tuple[SourceFile, ...]] = field(default_factory=dict)
    offsets: Mapping[str, Json] = field(default_factory=dict)
    spark: SparkBatch | None = None
    fingerprint: str = ""
    pushed: str = ""

    @property
    def reader(self) -> str:
        return EMBEDDED if self.spark is None else f"spark {self.spark.query_id}"

    def as_read(self, read: Mapping[tuple[str, str], SourceFile]) -> Offer:
        """The same with files in the versions in which they were read, by source and path: one may have been written
        again after it was offered.
        """
        files = {
            source: tuple(read.get((source, file.path), file) for file in some) for source, some in self.files.items()
        }
        return replace(self, files=files)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A consumed file that is found again with another size or time."""

    source: str
    consumed: SourceFile
    current: SourceFile

    def __str__(self) -> str:
        before, now = self.consumed.size, self.current.size
        changed_to = "was written again" if before == now else f"has {now} now"
        return f"{self.source}: {self.current.path} was read with {before} bytes and {changed_to}"


def no_text(source: str, path: str) -> StateError:
    """A file whose name no log can have."""
    return StateError(
        LOCATION,
        f"{source}: the name of a file is not UTF-8: {path!r}",
        hint='rename the file; on_bad_file="quarantine" passes over it with a warning',
    )


class PositionLog:
    """All consumed files in memory, and the files of the log that say so durably."""

    def __init__(self, store: Store, positions: Positions) -> None:
        self._store = store
        self.positions = positions
        self._consumed: dict[str, ConsumedFiles] = {}
        for source, rows in self._tables():
            sizes, mtimes = (rows[name].to_numpy() for name in ("size", "mtime_ns"))
            self._of(source).add_many(rows["path"], sizes, mtimes)
        self._count(positions.recent)
        self.leaving: dict[str, LeavingFiles] = {}
        """Per source whose files are put away those that were read and are to leave."""
        self._gone: set[tuple[str, SourceFile]] = set()
        self._logged: set[tuple[str, SourceFile]] = set()
        """Those that are to leave and stand in tables of the log."""

    def put_away(self, sources: Iterable[str], left: Mapping[str, Collection[SourceFile]]) -> None:
        """Files of these sources leave once they were read; those that were read before, now: first those that are
        known to have `left`, then those of the last batch. Of other sources, those that have left are gone.
        """
        sources = tuple(sources)
        logged: dict[str, list[SourceFile]] = {source: [] for source in (*sources, *left)}
        for source, rows in self._tables() if logged else ():
            if source in logged:
                logged[source] += (SourceFile(*row) for row in rows.drop("source").iter_rows())
        self._logged = {(source, file) for source, files in logged.items() for file in files}
        for source in sources:
            known, recent = frozenset(left.get(source, ())), self.positions.recent.get(source, ())
            files = (*recent[::-1], *logged[source])
            self.leaving[source] = LeavingFiles(sorted(files, key=lambda file: file not in known))
        for source in left.keys() - self.leaving.keys():
            self.gone(source, tuple(left[source]))

    def gone(self, source: str, files: Sequence[SourceFile]) -> None:
        """Records that files left their directory, so that a file of such a name is new. The next batch forgets
        them.
        """
        if files:
            self._of(source).discard(file.path for file in files)
            self._gone |= {(source, file) for file in files}

    def __len__(self) -> int:
        return sum(map(len, self._consumed.values()))

    def is_consumed(self, source: str, file: SourceFile) -> Fate:
        """Whether a file was read before."""
        fresh, changed = self.unconsumed({source: [file]})
        return "new" if fresh[source] else "changed" if changed else "consumed"

    def unconsumed(
        self, files: Mapping[str, Sequence[SourceFile]]
    ) -> tuple[dict[str, tuple[SourceFile, ...]], list[ChangedFile]]:
        """The files that were not read before, and those that changed since they were read."""
        fresh: dict[str, tuple[SourceFile, ...]] = {}
        changed = []
        for source, listed in files.items():
            if source not in self._consumed:
                fresh[source] = tuple(listed)
                continue
            known = self._consumed[source].known([file.path for file in listed])
            fresh[source] = tuple(file for file, read in zip(listed, known.read.tolist(), strict=True) if not read)
            for number in known.read.nonzero()[0].tolist():
                file, size, mtime_ns = listed[number], int(known.size[number]), int(known.mtime_ns[number])
                if (file.size, file.mtime_ns) != (size, mtime_ns):
                    changed.append(ChangedFile(source, SourceFile(file.path, size, mtime_ns), file))
        return fresh, changed

    def read_among(self, source: str, paths: Sequence[str]) -> Sequence[bool]:
        """Whether a file of each path was read before, in whatever version."""
        if source not in self._consumed:
            return [False] * len(paths)
        flags: list[bool] = self._consumed[source].known(paths).read.tolist()
        return flags

    def check_names(self, offer: Offer) -> None:
        """`StateError` TG500 for a file name that can not be written down, TG527 for results read before that were
        merged since.
        """
        for source, files in offer.files.items():
            for file in files:
                self._check_merged(source, file)
                if not is_text(file.path):
                    raise no_text(source, file.path)

    def _check_merged(self, source: str, file: SourceFile) -> None:
        directory, _, name = file.path.rpartition("/")
        result = result_of(name)
        if result is None or not result.merged:
            return
        with storage_errors(f"reading {file.path}"):
            parts = parts_of(file.path)
        read = sum(self.read_among(source, [f"{directory}/{part}" for part in parts]))
        if read:
            raise StateError(
                READ,
                (
                    f"{source}: {file.path} holds the rows of {len(parts)} files that were merged, {read} of "
                    "which were read before"
                ),
                hint="a directory that is read as a stream must not be compacted: give this program a new "
                "checkpoint, and the directory's writer no compact=True",
            )

    def check_reader(self, offer: Offer) -> None:
        """`StateError` TG506 if another reader goes on, who does not know where sources that are not made of files
        stand.
        """
        for source, known in self.positions.offsets.items():
            if known.reader != offer.reader:
                raise StateError(
                    REPLAY,
                    (
                        f"source {source!r} was read so far by {known.reader!r} and can not be continued by "
                        f"{offer.reader!r}"
                    ),
                    hint="only file sources can change engine or Spark checkpoint: their files are recorded here, "
                    "offsets of other sources mean something to their reader only; go on as before, or start "
                    "with a new checkpoint",
                )

    def appended(self, offer: Offer, seq: int, attempt: str) -> Positions:
        """The positions after reading `offer`, written durably but not yet counted: see `accept`."""
        log = self._without_gone(seq, attempt)
        recent = {
            source: kept
            for source, files in self.positions.recent.items()
            if (kept := tuple(file for file in files if (source, file) not in self._gone))
        }
        # What will be put away stays in the manifest: the next one does without it.
        new = {source: files for source, files in offer.files.items() if files}
        leaving = {source: files for source, files in new.items() if source in self.leaving}
        for source, files in new.items():
            if source not in leaving:
                recent[source] = (*recent.get(source, ()), *files)
        rows = [(source, file) for source, files in recent.items() for file in files]
        if len(rows) > _RECENT:
            log = self._with_table(log, _table(rows), seq, attempt)
            recent = {}
            self._logged |= {row for row in rows if row[0] in self.leaving}
        for source, files in leaving.items():
            recent[source] = (*recent.get(source, ()), *files)
        offsets = dict(self.positions.offsets)
        for source, value in offer.offsets.items():
            offsets[source] = SourceOffset(value, offer.reader)
        return Positions(recent, log, offsets)

    def accept(self, offer: Offer, positions: Positions) -> None:
        """Count what was appended: its batch is committed."""
        self._count(offer.files)
        self.positions = positions
        self._logged -= self._gone
        self._gone.clear()
        for source in self.leaving.keys() & offer.files.keys():
            self.leaving[source].add(offer.files[source])

    def _without_gone(self, seq: int, attempt: str) -> tuple[Segment, ...]:
        """The tables of the log, written anew where files in them were put away: those of a source that was not told to
        do so before, or of which that failed for long."""
        if self._gone.isdisjoint(self._logged):
            return self.positions.log
        import polars as pl  # here, since explaining a program loads this module, and needs no rows

        table = read_segments(self._store, self.positions.log)
        gone = pl.DataFrame(_table([*self._gone])).with_columns(gone=True)
        names = [name for name, _ in _COLUMNS]
        kept = pl.DataFrame(table).join(gone, on=names, how="left", maintain_order="left")["gone"].is_null()
        return self._with_table((), table.filter(kept.to_arrow()), seq, attempt) if kept.any() else ()

    def _with_table(self, log: tuple[Segment, ...], table: Any, seq: int, attempt: str) -> tuple[Segment, ...]:
        """The tables of the log with one more, into which the last ones go that are small."""
        import pyarrow as pa

        rows = [*(segment.rows for segment in log), table.num_rows]
        count = bounded(rows, to_merge(rows), max(_MERGED, sum(rows) // _MOST_TABLES))
        kept, merged = log[: len(rows) - count], log[len(rows) - count :]
        if merged:
            table = pa.concat_tables([read_segments(self._store, merged), table])
        return (*kept, write_segment(self._store, "files", table, (), seq, attempt, area="positions"))

    def _count(self, files: Mapping[str, Sequence[SourceFile]]) -> None:
        for source, listed in files.items():
            for file in listed:
                self._of(source).add(file.path, file.size, file.mtime_ns)

    def _of(self, source: str) -> ConsumedFiles:
        return self._consumed.setdefault(source, ConsumedFiles())

    def _tables(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Per source the rows of the log's tables, the oldest first."""
        if not self.positions.log:
            return
        table = read_segments(self._store, self.positions.log)
        columns = tuple((field.name, str(field.type)) for field in table.schema)
        if columns != _COLUMNS or any(column.null_count for column in table.columns):
            raise StateError(DATA, "the log of consumed files has other columns than it should")
        import polars as pl  # here, since explaining a program loads this module, and needs no rows

        rows = pl.DataFrame(table)
        for (source,), some in rows.group_by("source", maintain_order=True):
            yield source, some


def _table(rows: list[tuple[str, SourceFile]]) -> Any:
    import pyarrow as pa

    from tidegate.runtime.arrow_arrays import array_of_values

    columns = (
        ("source", pa.string(), [source for source, _ in rows]),
        ("path", pa.string(), [file.path for _, file in rows]),
        ("size", pa.int64(), [file.size for _, file in rows]),
        ("mtime_ns", pa.int64(), [file.mtime_ns for _, file in rows]),
    )
    return pa.table({name: array_of_values(values, type_) for name, type_, values in columns})
