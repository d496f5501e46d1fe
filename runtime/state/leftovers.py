"""Files of a checkpoint that no retained manifest names: these are deleted, and nothing else.

Which stored rows nobody needs any more is decided in `batch/garbage.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def named(manifests: Iterable[Manifest]) -> set[str]:
    """Paths of all files that some of the manifests name, or of which they name parts."""
    return {file_of(file.path) for manifest in manifests for file in manifest.files()}


def delete_retired(store: Store, retired: Manifest, retained: Sequence[Manifest]) -> None:
    """Delete a retired manifest, then the files that only it names."""
    kept = named(retained)
    dead = [manifest_path(retired.seq), intent_path(retired.seq), marker_path(retired.seq)]
    dead += [away_path(retired.seq)]
    dead += [path for path in named([retired]) if path not in kept]
    for path in dead:
        store.failpoints.hit("commit-during-gc")
        store.delete(path)


def delete_leftovers(store: Store, retained: Sequence[Manifest], *, running: bool) -> int:
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
