"""Files of a checkpoint that no retained manifest names: these are deleted, and nothing else.

Which stored rows nobody needs any more is decided in `batch/garbage.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.runtime.state.manifest import (
    AREAS,
    Manifest,
    away_path,
    intent_path,
    manifest_path,
    marker_path,
    sequence_of,
)
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.packs import file_of

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
    dead += retired.files.difference(*(one.files for one in retained))
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
    for area in AREAS:
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


def _sequence(path: str) -> int:
    head = path.rpartition("/")[2].partition("-")[0]
    return int(head) if head.isascii() and head.isdigit() else 0
