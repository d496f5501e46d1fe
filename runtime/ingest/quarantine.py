"""Rejected rows that were set aside: how long they are kept, and reading them as a stream."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import BinaryIO, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called
from tidegate.algebra.dsl.expression import DurationOption, duration_given
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import duration_ticks
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import DATA, StateError, memory_errors, storage_errors
from tidegate.runtime.state.manifest import Manifest
from tidegate.runtime.state.quarantine import QUARANTINE_SCHEMA, Quarantine, Retention, is_full
from tidegate.runtime.state.rejects.file_tables import CLOCK, files_of, list_of, listed_paths
from tidegate.runtime.state.segments import Segment, check_size
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore

Keep: TypeAlias = "DurationOption | tuple[DurationOption, str]"
"""An age ("30d"), a size ("10 GiB"), or both."""

_SIZE: Final = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB)")
_UNITS: Final = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    unit: 1 << 10 * power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)
}
#: Readings of a checkpoint whose writer merges files meanwhile.
_TRIES: Final = 20
#: Bytes up to which a file is read when a reading begins, and not held open.
_SMALL: Final = 1 << 18
_HINT: Final = 'give an age, a size, or both: quarantine_keep="30d", "10 GiB" or ("30d", "10 GiB")'

_T = TypeVar("_T")
_logger = logging.getLogger("tidegate.state")


def retention(keep: Keep | None) -> Retention:
    """What `quarantine_keep` means, nothing dropped for None; `QueryError` TG525 for what is neither age nor size."""
    given = () if keep is None else keep if isinstance(keep, tuple) else (keep,)
    age: int | None = None
    size: int | None = None
    for limit in given:
        matched = _SIZE.fullmatch(limit.strip()) if isinstance(limit, str) else None
        if matched is not None and size is None:
            size = int(matched[1]) * _UNITS[matched[2]]
        elif matched is None and age is None:
            try:
                age = duration_ticks(duration_given(limit))
            except QueryError as error:
                raise QueryError("TG525", f"quarantine_keep={shown(keep)} is no age and no size", hint=_HINT) from error
        else:
            raise QueryError("TG525", f"quarantine_keep={shown(keep)} gives two ages or two sizes", hint=_HINT)
    if any(limit is not None and limit <= 0 for limit in (age, size)) or (keep is not None and not given):
        raise QueryError(
            "TG525", f"quarantine_keep={shown(keep)} keeps nothing", hint='policy="drop" sets no rows aside'
        )
    return Retention(age, size)


@called()
def read_quarantine(checkpoint: str | os.PathLike[str]) -> pa.RecordBatchReader:
    """The quarantined rows of a checkpoint as of its last batch, also while a run writes: a stream of Arrow batches.

    Examples:
        >>> results = program.run(inputs, checkpoint="state")
        >>> tg.read_quarantine("state").read_all().column("row").to_pylist()
        ['{"order_id": 2, "paid": null}']
    """
    return quarantine_of(LocalStore(checkpoint))


def quarantine_of(store: Store) -> pa.RecordBatchReader:
    """`kept_rows` as of the last commit."""
    return _as_of_last(store, lambda manifest: kept_rows(store, manifest))


def _as_of_last(store: Store, found: Callable[[Manifest | None], _T]) -> _T:
    """What is found with the manifest of the last commit; a running writer may merge files between the two."""
    for attempt in range(_TRIES):
        manifest = inspect(store).manifest
        try:
            return found(manifest)
        except StateError:
            if attempt == _TRIES - 1 or inspect(store).manifest == manifest:
                raise
    raise AssertionError


def kept_rows(store: Store, manifest: Manifest | None, *, since: int | None = None) -> pa.RecordBatchReader:
    """The rows of all files that the manifest names, each once.

    Files that a writer may merge are read or open from now on, so none of them can go meanwhile. Full ones, of which
    there may be any number, are opened one after the other: what retention drops before its turn is left out.

    With `since`, of those files alone that this batch, by its number, or a later one wrote: all that have rows of
    them, and of older ones what was merged with these. Full files that stand in tables are left out then: the newest
    never do.
    """
    kept = Quarantine() if manifest is None else manifest.quarantine
    lists = [list_of(store, table) for table in (kept.tables if since is None else ())]
    with ExitStack() as stack:
        files = (file for file in kept.files if since is None or file.batch >= since)
        opened = [_opened(store, segment, stack) for segment in files]
        rest = stack.pop_all()

    def batches() -> Iterator[pa.RecordBatch]:
        with rest:
            listed = (_of_full(store, segment) for rows in lists for segment in files_of(rows))
            for read in chain(listed, (read() for read in opened)):
                for batch in read:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=QUARANTINE_SCHEMA)

    return pa.RecordBatchReader.from_batches(QUARANTINE_SCHEMA, batches())


def _opened(store: Store, segment: Segment, stack: ExitStack) -> Callable[[], Iterator[pa.RecordBatch]]:
    """A file of few rows a piece, or a table where the store holds tables."""
    path = segment.path
    check_size(store, segment.file)
    place = store.local_path(path)
    if is_full(segment):
        return partial(_of_full, store, segment)
    if place is None:
        with storage_errors(f"reading {path}"):
            table = store.read_table(path)
        return lambda: iter(table.to_batches())
    with storage_errors(f"reading {path}"):
        handle = _handle(store, segment, place)
        if segment.bytes > _SMALL:
            stack.enter_context(handle)
            return lambda: _batches(store, segment, handle)
        with handle:
            content = handle.read()
    return lambda: _batches(store, segment, pa.BufferReader(content))


def _handle(store: Store, segment: Segment, place: str) -> BinaryIO:
    try:
        return open(place, "rb")
    except FileNotFoundError:
        check_size(store, segment.file)
        raise


def _of_full(store: Store, segment: Segment) -> Iterator[pa.RecordBatch]:
    """The rows of a full file, none where retention has dropped it meanwhile."""
    try:
        place = store.local_path(segment.path)
        with storage_errors(f"reading {segment.path}"):
            if place is None:
                check_size(store, segment.file)
                table = store.read_table(segment.path)
            else:
                handle = _handle(store, segment, place)
    except StateError:
        if not _is_dropped(store, segment):
            raise
        _logger.warning("%s was dropped before its %d rejected rows were read", segment.path, segment.rows)
        return
    if place is None:
        yield from table.to_batches()
        return
    with handle:
        yield from _batches(store, segment, handle)


def _is_dropped(store: Store, segment: Segment) -> bool:
    """Whether retention has let go of a file: the last batch neither names nor lists it, and dropped rows as new as its
    own.
    """
    return _as_of_last(store, lambda manifest: _has_dropped(store, manifest, segment))


def _has_dropped(store: Store, manifest: Manifest | None, segment: Segment) -> bool:
    if manifest is None or any(file.path == segment.path for file in manifest.quarantine.files):
        return False
    until = manifest.quarantine.dropped.until
    if until is None or until < segment.bounds[CLOCK][1]:
        return False
    tables = [table for table in manifest.quarantine.tables if table.may_list(segment)]
    return segment.path not in listed_paths(store, tables)


def _batches(store: Store, segment: Segment, source: BinaryIO | pa.BufferReader) -> Iterator[pa.RecordBatch]:
    path = segment.path
    try:
        with memory_errors(f"reading {path}"):
            yield from pq.ParquetFile(source, page_checksum_verification=True).iter_batches()
    except (OSError, pa.ArrowException) as error:
        raise StateError(
            DATA,
            f"{path} in {store.where} is damaged: {error}",
            hint="move the file away: a run goes on without it, and counts its rows as dropped when it merges files",
        ) from error
