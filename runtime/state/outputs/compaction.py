"""Compaction of directories of results: it merges small files. A reader of the directory sees each row exactly once.

A list of names can be changed at once in one way only: by exchanging the directory with another (`renameat2`). So the
other one is made beside it, with the merged files and with links to those that stay, and then takes its place. A
program that reads the directory as a stream goes by the names of files, and would take a merged file for new rows: it
holds a shared lock, and compaction keeps away. So does a reader that opens files long after it listed them. Decision 25
has the reasons.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from tidegate.algebra.diagnostics.tracebacks import trimmed
from tidegate.algebra.printing.plans import count_of
from tidegate.runtime.state.errors import StateError, is_damage, storage_errors
from tidegate.runtime.state.failpoints import Failpoints
from tidegate.runtime.state.outputs.beside import FOREIGN, READ, UNFINISHED, beside, exchange, results_in, sweep
from tidegate.runtime.state.outputs.names import Result
from tidegate.runtime.state.segments import schema_id, tier_of
from tidegate.runtime.state.store.local import sync_directory
from tidegate.runtime.state.store.paths import local_directory

PARTS: Final = b"tidegate.parts"
FANOUT: Final = 16
#: Files of so many rows or bytes are large enough; a merged one has less than twice as many.
_MOST_ROWS: Final = 1 << 20
_MOST_BYTES: Final = 64 << 20
_MOST_PARTS: Final = 1 << 14
#: Rows that are written at a time, and that are read in one step: a step takes some milliseconds.
_ROW_GROUP: Final = 1 << 14
_PIECE: Final = 1 << 12
#: A batch publishes for milliseconds; so often, and so many seconds apart, compaction asks for the directory.
_TRIES: Final = 40
_APART: Final = 0.05


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction did to a directory: files and bytes before and after, and rows that were written again."""

    directory: str
    files_before: int
    files: int
    bytes_before: int
    bytes: int
    rows: int

    def __str__(self) -> str:
        if not self.rows:
            files = count_of(self.files, "file")
            return f"{files}, nothing to merge: {FANOUT} files of about one size become one, and the newest batch stays"
        return f"{self.files_before} files became {self.files}, {self.bytes_before} bytes became {self.bytes}"


@dataclass(frozen=True, slots=True)
class _File:
    """A file of results as it lies there. `parts`: how many were merged into it, or one, itself."""

    result: Result
    path: Path
    bytes: int
    mtime_ns: int
    rows: int
    schema: str
    parts: int


class Step(NamedTuple):
    """A step of a compaction: rows that it merged, and seconds to wait before the next, as somebody reads."""

    rows: int = 0
    wait: float = 0.0


#: What is known of the files of a directory since the compaction before; they are never changed.
Known = dict[Path, _File]


def parts_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Names of the files that were merged into this one; none for a file as a batch published it, and none for one that
    cannot be read: its reader says so.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parts = (pq.read_metadata(path).metadata or {}).get(PARTS)
    except (pa.ArrowException, OSError) as error:
        if not is_damage(error):
            raise
        return ()
    return () if parts is None else tuple(name for name, _, _ in json.loads(parts))


def compact(
    directory: str | os.PathLike[str],
    *,
    failpoints: Failpoints | None = None,
    fanout: int = FANOUT,
    known: Known | None = None,
) -> CompactionResult:
    """Merge the small files of each query in a directory of results, but those of its newest batch there.

    Only files that are not `known` are opened, and known from then on. `StateError` TG526 where the directory is none,
    holds anything else or can not be exchanged, TG527 while a program reads it as a stream, or another compaction goes
    on. A crash leaves the directory as it was or compacted, nothing between. What was there before stays beside it
    until `sweep` removes it.
    """
    going = compacting(directory, failpoints=failpoints, fanout=fanout, known=known)
    while True:
        try:
            time.sleep(next(going).wait)
        except StopIteration as ended:
            done: CompactionResult = ended.value
            return done


def compacting(
    directory: str | os.PathLike[str],
    *,
    failpoints: Failpoints | None = None,
    fanout: int = FANOUT,
    known: Known | None = None,
    tries: int | None = None,
) -> Generator[Step, None, CompactionResult]:
    """`compact` in steps, each of a file or of some rows of one. Files come and batches publish between steps.

    `tries`: how often it asks for the directory before it merges anything; for two seconds unless said. Whoever holds
    it for long costs no merging.
    """
    points, known = Failpoints() if failpoints is None else failpoints, {} if known is None else known
    top = Path(os.path.realpath(directory))
    if not top.is_dir():
        raise StateError(FOREIGN, f"there is no directory {top}", hint="check the path")
    with storage_errors(f"compacting {top}"):
        sweep(top)
        names = results_in(top)
        files: list[_File] = []
        for result in names:
            files.append(_file(top, result, known))
            if known.get(files[-1].path) is not files[-1]:
                yield Step()
        known.clear()
        known.update((file.path, file) for file in files)
        plan = _plan(files, fanout)
        before = sum(file.bytes for file in files)
        if not plan:
            return CompactionResult(str(top), len(names), len(names), before, before, 0)
        _check_exchange(top)
        yield from _asked(top, _TRIES if tries is None else tries, lambda: None)  # else all would be merged in vain
        with beside(top) as target:
            points.hit("compaction-begun")
            for group in plan:
                yield from _merge(group, target)
            points.hit("compaction-merged")
            gone = {file.path.name for group in plan for file in group}
            yield from _asked(top, _TRIES, lambda: _take_place(top, target, gone, points))
        left = [path.stat().st_size for path in top.iterdir()]
    rows = sum(file.rows for group in plan for file in group)
    return CompactionResult(str(top), len(names), len(left), before, sum(left), rows)


def _take_place(top: Path, target: Path, gone: Collection[str], points: Failpoints) -> None:
    """Exchanges the directory with that of the merged files, which gets links to all but those that are `gone`."""
    for result in results_in(target, UNFINISHED):
        os.rename(target / (result.name + UNFINISHED), target / result.name)
    for result in results_in(top):  # those that came meanwhile too
        if result.name not in gone:
            os.link(top / result.name, target / result.name)
    sync_directory(target)
    points.hit("compaction-linked")
    exchange(top, target)
    points.hit("compaction-exchanged")
    sync_directory(top.parent)
    sync_directory(target.parent)


@trimmed
@contextmanager
def hold_compaction(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Keeps compaction away from a directory of results: its files keep their names as long as this lasts.

    `tg.hold_compaction` is for readers that list a directory and then ask for each file by its name. Arrow and Spark
    leave out a file that was merged in between, without an error. Batches go on to publish. A compaction waits for two
    seconds, and then leaves the directory as it is (TG527). Where there is no directory, or no locks, nothing is held.

    Examples:
        >>> import pyarrow.dataset
        >>> results = program.run(inputs, sinks={"Unpaid": tg.parquet_sink("unpaid")}, checkpoint="state")
        >>> with tg.hold_compaction("unpaid"):
        ...     table = pyarrow.dataset.dataset("unpaid").to_table()
        >>> table["customer"].to_pylist()
        ['Bob', 'Ada']
    """
    descriptor = hold(local_directory(directory))
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def hold(directory: str | os.PathLike[str]) -> int | None:
    """A descriptor that keeps compaction away from a directory until it is closed; None where there are no locks, or no
    directory.
    """
    while True:
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(descriptor), os.stat(directory)):
                return descriptor
        except OSError:  # a file system without locks
            os.close(descriptor)
            return None
        os.close(descriptor)  # it was exchanged while this waited


def _asked(top: Path, tries: int, then: Callable[[], None]) -> Iterator[Step]:
    """Does `then` while nobody else has the directory: asks for it so often, and waits between."""
    for attempt in range(tries):
        try:
            with _alone(top):
                then()
        except StateError as error:
            if error.code != READ or attempt == tries - 1:
                raise
            yield Step(wait=_APART)
        else:
            return


@contextmanager
def _alone(top: Path) -> Iterator[None]:
    """Locks the directory and those above it: nobody publishes into it, and nobody reads one of them as a stream.

    `StateError` TG527 if somebody does.
    """
    descriptors: list[int] = []
    try:
        for directory in (top, *top.parents):
            try:
                descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                if directory == top:
                    raise
                continue
            descriptors.append(descriptor)
            _lock(descriptor, directory, top)
            if directory != top:
                descriptors.remove(descriptor)
                os.close(descriptor)
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _lock(descriptor: int, directory: Path, top: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StateError(
            READ,
            f"{top} is read by a running program, as a stream or under tg.hold_compaction, as a part of {directory}",
            hint="that program knows files by their names: wait for its end or stop it, or leave the directory as it "
            "is",
        ) from None
    except OSError as error:
        if directory == top:
            raise StateError(
                FOREIGN,
                f"{top}: its file system has no locks, so a batch could publish into it meanwhile",
                hint="keep results on a local file system to compact them",
            ) from error


def _file(top: Path, result: Result, known: Known) -> _File:
    path = top / result.name
    status = path.stat()
    before = known.get(path)
    if before is not None and (before.bytes, before.mtime_ns) == (status.st_size, status.st_mtime_ns):
        return before
    if status.st_size >= _MOST_BYTES:  # large enough: nothing more is asked of it
        return _File(result, path, status.st_size, status.st_mtime_ns, _MOST_ROWS, "", 1)
    meta = _metadata(path)
    said = (meta.metadata or {}).get(PARTS)
    parts = 1 if said is None else len(json.loads(said))
    schema = schema_id(meta.schema.to_arrow_schema())
    return _File(result, path, status.st_size, status.st_mtime_ns, meta.num_rows, schema, parts)


def _metadata(path: Path) -> Any:
    import pyarrow.parquet as pq

    with _damage_errors(path):
        return pq.read_metadata(path)


def _parts(file: _File) -> list[Any]:
    """Name, bytes and time of each file that was merged into this one, or its own."""
    said = (_metadata(file.path).metadata or {}).get(PARTS) if file.result.merged else None
    return [(file.path.name, file.bytes, file.mtime_ns)] if said is None else json.loads(said)


@contextmanager
def _damage_errors(path: Path) -> Iterator[None]:
    """Reports what Arrow says of a damaged file as TG526."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if not is_damage(error):
            raise
        raise StateError(
            FOREIGN,
            f"{path} cannot be read as Parquet: {error}",
            hint="restore the file: until then, its directory stays as it is",
        ) from error


def _plan(files: Sequence[_File], fanout: int) -> list[list[_File]]:
    """The groups to merge: neighbours in the order of batches, of one query and schema.

    Tier by tier, from the small to the large: `fanout` files of a tier become one with what lies between them, so a row
    is written again once a tier. The files of a query's newest batch may have to be published again after a crash, and
    stay. Queries of several checkpoints may share the directory, so batches of one say nothing of those of another.
    """
    plan = []
    for query in dict.fromkeys(file.result.query for file in files):
        own = [file for file in files if file.result.query == query]
        newest = max(file.result.last for file in own)
        runs = [[file] for file in own if file.result.last < newest]
        levels = sorted({tier_of(_rows(run), fanout) for run in runs})
        for level in range(levels[-1] + 1 if levels else 0):
            runs = _merged(runs, level, fanout)
        plan += [run for run in runs if len(run) > 1]
    return plan


def _merged(runs: Sequence[list[_File]], level: int, fanout: int) -> list[list[_File]]:
    done: list[list[_File]] = []
    neighbours: list[list[_File]] = []

    def close() -> None:
        full = [number for number, run in enumerate(neighbours) if tier_of(_rows(run), fanout) == level]
        if len(full) >= fanout:
            first, last = full[0], full[-1]
            done.extend(neighbours[:first])
            done.append([file for run in neighbours[first : last + 1] for file in run])
            done.extend(neighbours[last + 1 :])
        else:
            done.extend(neighbours)
        neighbours.clear()

    rows = size = parts = 0
    for run in runs:
        large = _rows(run) >= _MOST_ROWS or sum(file.bytes for file in run) >= _MOST_BYTES
        if large or tier_of(_rows(run), fanout) > level or (neighbours and neighbours[-1][-1].schema != run[0].schema):
            close()
            rows = size = parts = 0
        if large or tier_of(_rows(run), fanout) > level:
            done.append(run)
            continue
        rows, size = rows + _rows(run), size + sum(file.bytes for file in run)
        parts += sum(file.parts for file in run)
        if parts > _MOST_PARTS:
            close()
            rows, size, parts = _rows(run), sum(file.bytes for file in run), sum(file.parts for file in run)
        neighbours.append(run)
        if rows >= _MOST_ROWS or size >= _MOST_BYTES:
            close()
            rows = size = parts = 0
    close()
    return done


def _rows(run: Sequence[_File]) -> int:
    return sum(file.rows for file in run)


def _merge(group: Sequence[_File], target: Path) -> Iterator[Step]:
    """Writes one file with the rows of a group in their order, durable, step by step."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first, last = group[0].result, group[-1].result
    path = target / (first.merged_with(last) + UNFINISHED)
    parts = json.dumps([part for source in group for part in _parts(source)]).encode()
    schema = pq.read_schema(group[0].path).remove_metadata()
    # Of numbers, looking for repeated values costs twice the time of writing, and zstd finds them too.
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    waiting: list[Any] = []

    def flush(writer: Any) -> None:
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema), row_group_size=_ROW_GROUP)
            waiting.clear()
            file.flush()
            os.fdatasync(file.fileno())  # else the last step waits for all that was written

    with path.open("xb") as file:
        with pq.ParquetWriter(
            file,
            schema.with_metadata({PARTS: parts}),
            compression="zstd",
            use_dictionary=texts,
            write_page_checksum=True,
        ) as writer:
            for source in group:
                with (
                    _damage_errors(source.path),
                    pq.ParquetFile(source.path, page_checksum_verification=True) as read,
                ):
                    for piece in read.iter_batches(_PIECE, use_threads=False):
                        waiting.append(pa.RecordBatch.from_arrays(piece.columns, schema=schema))
                        if sum(batch.num_rows for batch in waiting) >= _ROW_GROUP:
                            flush(writer)
                        yield Step(piece.num_rows)
            flush(writer)
        file.flush()
        os.fsync(file.fileno())
    os.utime(path, ns=(group[-1].mtime_ns, group[-1].mtime_ns))
    pa.default_memory_pool().release_unused()  # else the process keeps what its largest merge took
    yield Step()


def _check_exchange(top: Path) -> None:
    """`StateError` TG526 where the directory can not take the place of another."""
    if os.path.ismount(top):
        raise StateError(
            FOREIGN,
            f"{top} is a mount point, which can not be exchanged for another directory",
            hint="write results into a directory below it",
        )
