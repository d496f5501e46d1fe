"""Which streaming DataFrames Spark's checkpoint has, in which order: Spark tells them apart by their places alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.algebra.printing.plans import listed
from tidegate.runtime.engines.spark.own_files import how_to_go_on
from tidegate.runtime.state.codec import decode, encode
from tidegate.runtime.state.errors import DATA, FOREIGN, REPLAY, StateError, storage_errors
from tidegate.runtime.state.store.local import LocalStore

#: Beside what Spark writes, so that it goes where that goes.
FILE = "spark/tidegate-sources.json"
_REPLACED = "spark-replaced"


@dataclass(frozen=True, slots=True)
class KnownSources:
    """The document: the streams that are read from streaming DataFrames, in the order of Spark's sources; wake-ups come
    first.
    """

    streams: tuple[str, ...]


def begin_spark_part(store: LocalStore, streams: Sequence[str]) -> None:
    """Makes Spark's part of a checkpoint ready for the streams that are streaming DataFrames, in the order of their
    names.

    A part that was begun for other streams is begun anew where it has no streaming DataFrames: it then knows nothing
    that this checkpoint does not. `StateError` TG506 where it has some, since Spark alone knows how far they were read.
    """
    root, known = Path(store.where), KnownSources(tuple(sorted(streams)))
    with storage_errors(f"looking for sources in {store.where}"):
        store.delete_all(_REPLACED)  # of a run that ended while it did
        begun = _begun(store, known)
        if begun == known:
            return
        if begun is not None and begun.streams:
            raise StateError(
                REPLAY,
                (
                    f"Spark's part of {store.where} was begun with {_dataframes(begun)}, and is to go on with "
                    f"{_dataframes(known)}"
                ),
                hint="Spark alone knows how far a streaming DataFrame was read: give those streams as before, "
                "or start with a new checkpoint",
            )
        if begun is not None:
            _discard(store)
        # The store may know the folder from before it was removed, and make it no more.
        (root / "spark").mkdir(parents=True, exist_ok=True)
        store.delete(FILE)  # of a run that ended before Spark planned a batch
        store.create_exclusive(FILE, encode("sources", known))


def _dataframes(known: KnownSources) -> str:
    return f"streaming DataFrames for {listed(known.streams)}" if known.streams else "no streaming DataFrame"


def _begun(store: LocalStore, known: KnownSources) -> KnownSources | None:
    """What Spark has planned batches with; None where it has planned none, or where nothing is lost with what it
    says.
    """
    if not any(path.name.isdigit() for path in (Path(store.where) / "spark" / "offsets").glob("[0-9]*")):
        return None
    there = store.exists(FILE)
    if not there and not known.streams:
        return None
    data = store.read_bytes(FILE) if there else b""
    return decode("sources", KnownSources, data, code=DATA, where=FILE, hint=how_to_go_on(store.where))


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
