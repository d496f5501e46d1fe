"""Files of a checkpoint that no retained manifest names: these are deleted, and nothing else.

Which stored rows nobody needs any more is decided in `batch/garbage.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class Retained:
    """A manifest that is kept with the paths that it names, since a batch asks for them again and again.

    `state`: files and parts that the next batch needs; `files`: all that it keeps from being deleted, of parts the
    packs.
    """

    manifest: Manifest
    state: frozenset[str]
    files: frozenset[str]

    @classmethod
    def of(cls, manifest: Manifest) -> Retained:
        state = frozenset(file.path for file in manifest.state_files())
        others = (file.path for file in manifest.other_files())
        return cls(manifest, state, frozenset(map(file_of, (*state, *others))))

    @property
    def seq(self) -> int:
        return self.manifest.seq


def named(retained: Iterable[Retained]) -> set[str]:
    """Paths of all files that some of the manifests name, or of which they name parts."""
    return set[str]().union(*(one.files for one in retained))


def delete_retired(store: Store, retired: Retained, retained: Sequence[Retained]) -> None:
    """Delete a retired manifest, then the files that only it names."""
    dead = [manifest_path(retired.seq), intent_path(retired.seq), marker_path(retired.seq)]
    dead += [away_path(retired.seq)]
    # A full file of rejected rows may stand in a table since. It leaves when a manifest says so.
    rejected = retired.manifest.quarantine
    full = {segment.path for segment in rejected.files if is_full(segment)}
    leaving = {file.path for file in rejected.leaving}
    dead += ((retired.files - full) | leaving).difference(*(one.files for one in retained))
    for path in dead:
        store.failpoints.hit("commit-during-gc")
        store.delete(path)


def delete_leftovers(store: Store, retained: Sequence[Retained], *, running: bool) -> int:
    """Delete the leftovers of attempts that did not commit; returns how many files.

    While a run goes on (`running`), files written for the batch after the newest manifest belong to its current attempt
    and stay; at a start nobody else writes, so they go too. Files of earlier batches are nobody's, wherever a run is
    that wrote them: a batch is committed once, and no later one names what its manifest does not.
    """
    newest = retained[-1].seq if retained else 0
    oldest = retained[0].seq if retained else 0
    kept = named(retained)
    dead = []
    areas = list(AREAS)
    tables = {table.table.path: table for one in retained for table in one.manifest.quarantine.tables}
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
