"""Files of a checkpoint that no retained manifest names: these are deleted, and nothing else.

Which stored rows nobody needs any more is decided in `batch/garbage.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from tidegate.runtime.state.errors import DATA, StateError
from tidegate.runtime.state.manifest import (
    AREAS,
    Manifest,
    away_path,
    intent_path,
    manifest_path,
    marker_path,
    sequence_of,
)
from tidegate.runtime.state.quarantine import is_full
from tidegate.runtime.state.rejects.file_tables import AREA as QUARANTINE
from tidegate.runtime.state.rejects.file_tables import TABLES, FileTable, listed_paths
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.packs import file_of

_logger = logging.getLogger("tidegate.state")
RETAINED: Final = 2  # the newest is the state; the one before serves readers that opened it a moment ago


def named(manifests: Iterable[Manifest]) -> set[str]:
    """Paths of all files that some of the manifests name, or of which they name parts."""
    return {file_of(file.path) for manifest in manifests for file in manifest.files()}


def delete_retired(store: Store, retired: Manifest, retained: Sequence[Manifest]) -> None:
    """Delete a retired manifest, then the files that only it names."""
    kept = named(retained)
    dead = [manifest_path(retired.seq), intent_path(retired.seq), marker_path(retired.seq)]
    dead += [away_path(retired.seq)]
    # A full file of rejected rows may stand in a table since. It leaves when a manifest says so.
    full = {segment.path for segment in retired.quarantine.files if is_full(segment)}
    leaving = {file.path for file in retired.quarantine.leaving}
    dead += [path for path in (named([retired]) - full) | leaving if path not in kept]
    for path in dead:
        store.failpoints.hit("commit-during-gc")
        store.delete(path)


def delete_leftovers(store: Store, retained: Sequence[Manifest], *, running: bool) -> int:
    """Delete the leftovers of attempts that did not commit; returns how many files.

    While a run goes on (`running`), files written for the batch after the newest manifest belong to its current attempt
    and stay; at a start nobody else writes, so they go too.
    """
    newest = retained[-1].seq if retained else 0
    oldest = retained[0].seq if retained else 0
    kept = named(retained)
    dead = []
    areas = list(AREAS)
    tables = {table.table.path: table for manifest in retained for table in manifest.quarantine.tables}
    if tables and running:  # which files stand in them takes a look into all of these, and there may be very many
        areas[areas.index(QUARANTINE)] = TABLES
    elif tables and (listed := _listed(store, tables.values())) is not None:
        kept |= listed
    elif tables:
        areas.remove(QUARANTINE)
    for area in areas:
        paths = store.list_files(area)
        dead += [path for path in paths if path not in kept and not (running and _sequence(path) > newest)]
    if not running:
        dead += store.list_files("tmp")
    for area in ("manifests", "intents", "published", "away"):
        dead += [path for path in store.list_files(area) if (seq := sequence_of(path)) is not None and seq < oldest]
    for path in dead:
        if not running:
            store.failpoints.hit("recover-during-sweep")
        store.delete(path)
    return len(dead)


def _listed(store: Store, tables: Collection[FileTable]) -> set[str] | None:
    """The files in tables; None where one is damaged, so that nobody knows which these are."""
    try:
        return listed_paths(store, tables)
    except StateError as error:
        if error.code != DATA:
            raise
        _logger.warning("what was left behind of rejected rows stays: %s", error.message)
        return None


def _sequence(path: str) -> int:
    head = path.rpartition("/")[2].partition("-")[0]
    return int(head) if head.isascii() and head.isdigit() else 0
