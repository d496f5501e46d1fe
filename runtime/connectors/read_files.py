"""What the sources say of files that were read, checked: who may take them away, and where they may go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.errors import QueryError
from tidegate.runtime.connectors.sinks import ParquetSink, Sink
from tidegate.runtime.connectors.sources import Files, Source
from tidegate.runtime.state.errors import storage_errors
from tidegate.runtime.state.inputs.put_away import PuttingAway
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import make_directory
from tidegate.runtime.state.store.memory import MemoryStore


def putting_away(
    sources: Mapping[str, Source], reads: Mapping[str, Iterable[str]], sinks: Mapping[str, Sink], store: Store
) -> dict[str, PuttingAway]:
    """What becomes of read files, per source that says so; `QueryError` TG423 to TG425 where that is not safe.

    `reads` are the directories and files of all streams and static tables.
    """
    files = {name: source.data for name, source in sources.items() if isinstance(source.data, Files)}
    leaving = {name: data for name, data in files.items() if data.delete or data.archive is not None}
    for name, data in leaving.items():
        if isinstance(store, MemoryStore):
            raise QueryError(
                "TG424",
                f"{name}: files that were read would leave {data.directory}, and nothing keeps their rows",
                hint='give checkpoint="a directory": files leave once a batch that read them is durable there',
            )
        if os.path.isfile(data.directory):
            raise QueryError(
                "TG425", f"{name}: {data.directory} is a file", hint="files leave a directory: give the one it is in"
            )
        for reader, place in _places(reads):
            if reader != name and _overlap(data.directory, place):
                raise QueryError(
                    "TG425",
                    f"{name}: files that were read would leave {data.directory}, and {reader} reads {place}",
                    hint="give each stream and table a directory of its own, or leave out archive and delete",
                )
        if data.archive is not None:
            archives = {
                owner: leaving_files.archive
                for owner, leaving_files in leaving.items()
                if leaving_files.archive is not None and owner != name
            }
            for what, place in (
                *_other_places(reads, sinks, store),
                *(("the archive of " + o, p) for o, p in archives.items()),
            ):
                if _overlap(data.archive, place):
                    raise QueryError(
                        "TG423",
                        f"{name}: the archive {shown(data.archive)} is at, above or below {what} {place}",
                        hint="give a directory beside it",
                    )
            with storage_errors(f"making the archive {data.archive}"):
                make_directory(data.archive)
    return {name: PuttingAway(os.path.abspath(data.directory), data.archive) for name, data in leaving.items()}


def check_stays(name: str, data: Files) -> None:
    """`QueryError` TG424 for a static table whose files would leave."""
    if data.delete or data.archive is not None:
        raise QueryError(
            "TG424",
            f"{name}: a static table is read at every start, so its files can not leave {data.directory}",
            hint="leave out archive and delete",
        )


def _places(reads: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    yield from ((name, place) for name, places in reads.items() for place in places)


def _other_places(
    reads: Mapping[str, Iterable[str]], sinks: Mapping[str, Sink], store: Store
) -> Iterator[tuple[str, str]]:
    yield from (("the directory of " + name, place) for name, place in _places(reads))
    yield from (
        ("the directory for results of " + name, sink.directory)
        for name, sink in sinks.items()
        if isinstance(sink, ParquetSink)
    )
    yield "the checkpoint", store.where


def _overlap(left: str, right: str) -> bool:
    places = {os.path.realpath(left), os.path.realpath(right)}
    return os.path.commonpath(places) in places
