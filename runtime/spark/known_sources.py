"""Which sources Spark's checkpoint has, in which order: Spark tells them apart by their places alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.runtime.spark.own_files import how_to_go_on
from tidegate.runtime.state.codec import decode, encode
from tidegate.runtime.state.errors import DATA, FOREIGN, REPLAY, StateError, storage_errors
from tidegate.runtime.state.local import LocalStore

#: Beside what Spark writes, so that it goes where that goes.
FILE = "spark/tidegate-sources.json"
_REPLACED = "spark-replaced"


@dataclass(frozen=True, slots=True)
class KnownSources:
    """The document: the streams in the order of Spark's sources. After them come the calls, and then perhaps a clock."""

    streams: tuple[str, ...]
    clock: bool


def known_sources(
    store: LocalStore,
    streams: Sequence[str],
    *,
    files: bool,
    clock: bool,
    ends_early: Callable[[KnownSources], bool] = lambda _: False,
) -> KnownSources:
    """The sources that Spark's checkpoint was begun with; a new one begins with the streams by their names, so that the order
    of the queries does not count.

    `streams` are those of the program, `files` says whether they are read from files only, `clock` whether a clock is wanted.
    Where a clock comes or goes, Spark's part is begun anew if all are files: this checkpoint knows which were read. Else a
    clock that is not wanted stays, and `StateError` TG506 refuses one that Spark's part has not. Of files it is begun anew too
    where Spark, which has seen some of these sources' files, would offer too few (`ends_early`).
    """
    root = Path(store.where)
    with storage_errors(f"looking for sources in {store.where}"):
        store.delete_all(_REPLACED)  # of a run that ended while it did
        begun = _begun(store, streams)
        if begun is not None and files and (begun.clock != clock or ends_early(begun)):
            _discard(store)
            begun = None
        if begun is None:
            begun = KnownSources(tuple(sorted(streams)), clock)
            # The store may know the folder from before it was removed, and make it no more.
            (root / "spark").mkdir(parents=True, exist_ok=True)
            store.delete(FILE)  # of a run that ended before Spark planned a batch
            store.create_exclusive(FILE, encode("sources", begun))
    if clock and not begun.clock:
        raise StateError(
            REPLAY,
            f"Spark's part of {store.where} was begun without a clock, which idle=, arrival= and a schedule by time or budget need",
            hint='Spark can not add one to a query that reads streaming DataFrames: use trigger="available_now", which needs none, '
            "go on without these options, or start with a new checkpoint",
        )
    return begun


def _begun(store: LocalStore, streams: Sequence[str]) -> KnownSources | None:
    """What Spark has planned batches with; None where it has planned none."""
    offsets = [path for path in (Path(store.where) / "spark" / "offsets").glob("[0-9]*") if path.name.isdigit()]
    if not offsets:
        return None
    if not store.exists(FILE):  # written before there was this document: in the order of the program
        last = max(offsets, key=lambda path: int(path.name)).read_text(errors="replace")
        return KnownSources(tuple(streams), len(last.splitlines()) - 2 > len(streams) + 1)
    hint = how_to_go_on(store.where)
    found = decode("sources", KnownSources, store.read_bytes(FILE), code=DATA, where=FILE, hint=hint)
    if sorted(found.streams) != sorted(streams):
        raise StateError(DATA, f"{FILE} in {store.where} is of another program", hint=hint)
    return found


def _discard(store: LocalStore) -> None:
    """Removes Spark's checkpoint; a crash leaves it whole or not at all.

    `StateError` TG511 where somebody else's files lie in it, or in the place to which it goes for that.
    """
    foreign = [*store.foreign_files(_REPLACED), *store.foreign_files("spark")]
    if foreign:
        raise StateError(
            FOREIGN,
            f"Spark's part of {store.where} has to be begun anew, and {foreign[0]} in it is no file of Spark's",
            hint="move it out of the checkpoint",
        )
    root = Path(store.where)
    os.replace(root / "spark", root / _REPLACED)
    store.delete_all(_REPLACED)
