"""Results on their way out: staged before the commit, published after it, once."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tidegate.runtime.state.errors import OUTPUT, StateError, storage_errors
from tidegate.runtime.state.manifest import Manifest, StagedOutput, marker_path
from tidegate.runtime.state.outputs.names import is_output_of, result_of
from tidegate.runtime.state.segments import check_size, read_checked, verify
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.paths import slug

Deliver = Callable[[int, StagedOutput, Any], None]
"""A sink that is called with batch number, output and Arrow table: at least once per output, again after a crash in
between.
"""

Sink = str | Deliver
"""An output directory (absolute path), or a function to call."""

#: Of a query without a sink so many parts of packs wait; then they become one, or a file once they fill no part any
#: more.
GATHERED: Final = 8


def target_of(sink: str, name: str) -> str:
    return f"{sink.rstrip('/')}/{name}"


def is_inside(sink: Sink | None) -> bool:
    """Whether results stay inside the checkpoint, where nobody but this project reads them."""
    return isinstance(sink, str) and not sink.startswith("/")


def read_outputs(store: Store, outputs: Sequence[StagedOutput]) -> Iterator[Any]:
    """The tables of outputs that are parts of packs; `StateError` TG505 for one that is not as it was written."""
    for output in outputs:
        check_size(store, output.file)
        yield read_checked(store, output.file.path)


def concatenated(tables: Sequence[Any]) -> Any:
    """Tables of one schema as one."""
    import pyarrow as pa

    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def kept_results(store: Store, manifest: Manifest | None, area: str, queries: Collection[str]) -> Iterator[Any]:
    """The results of a stream without a sink, query by query: the files in its `area`, then what waits in packs.

    So the rows of a query are in the order of its batches, also when some that waited become a file.
    """
    files = store.list_files(area)
    gathered = {} if manifest is None else manifest.gathered
    for query in queries:
        for path in files:
            if is_output_of(query, path.rpartition("/")[2]):
                yield store.read_table(path)
        yield from read_outputs(store, gathered.get(query, ()))


def publish_outputs(store: Store, manifest: Manifest, sinks: Mapping[str, Sink], *, recovering: bool = False) -> None:
    """Publish all outputs of a committed batch; harmless to repeat.

    Files appear first, all together; then functions are called.
    """
    moves: list[tuple[StagedOutput, str]] = []
    calls: list[tuple[StagedOutput, Deliver]] = []
    for output in manifest.outputs:
        match sinks.get(output.query):
            case None:
                raise StateError(
                    OUTPUT,
                    (
                        f"batch {manifest.seq} has results of query {output.query!r} that are not published, and "
                        "there is no sink"
                    ),
                    hint="give the sink that the query had when the batch ran",
                )
            case str(directory):
                moves.append((output, target_of(directory, output.name)))
            case deliver:
                calls.append((output, deliver))
    _publish(store, moves, recovering)
    for output, deliver in calls:
        check_size(store, output.file)
        if recovering:
            verify(store, [output.file])
        deliver(manifest.seq, output, store.read_table(output.file.path))
        store.failpoints.hit("commit-after-output")


def check_not_ahead(store: Store, sinks: Mapping[str, Sink], seq: int) -> None:
    """`StateError` TG508 where a directory has results of batches after `seq`, the last commit: what follows would be
    there twice.

    A batch is published after its commit, so another checkpoint wrote them, or a later state of one that was restored.
    """
    for query, sink in sinks.items():
        if not isinstance(sink, str) or is_inside(sink):
            continue
        with storage_errors(f"looking for results of query {query!r} in {sink}"):
            results = [result for name in store.target_names(sink) if (result := result_of(name)) is not None]
        for result in results:
            if result.last > seq and result.query == slug(query):
                store.target_size(target_of(sink, result.name))  # a link is refused as such
                ends = f"ends with batch {seq}" if seq else "has no batch yet"
                raise StateError(
                    OUTPUT,
                    f"{target_of(sink, result.name)} has results of batches up to {result.last}, and the "
                    f"checkpoint in {store.where} {ends}: what follows would be there twice",
                    hint="use an empty output directory, or restore results and checkpoint of one time together",
                )


def _publish(store: Store, moves: Sequence[tuple[StagedOutput, str]], recovering: bool) -> None:
    ready = []
    for output, target in moves:
        with storage_errors(f"publishing {target}"):
            if not recovering or store.exists(output.file.path):
                if recovering:
                    verify(store, [output.file])
                ready.append((output.file.path, target))
            else:
                _check_published(store, output, target)
    if ready:
        directories = dict.fromkeys(target.rpartition("/")[0] for _, target in ready)
        with storage_errors(f"publishing {', '.join(directories)}"), _gone_directories(directories):
            store.publish(ready)
    for _ in moves:
        store.failpoints.hit("commit-after-output")


@contextmanager
def _gone_directories(directories: Iterable[str]) -> Iterator[None]:
    """`StateError` TG508 where a directory for results is not there any more."""
    try:
        yield
    except FileNotFoundError as error:
        gone = next((directory for directory in directories if not os.path.isdir(directory)), None)
        if gone is None:
            raise
        raise StateError(
            OUTPUT,
            f"{gone} is gone, to which results go",
            hint=(
                "put it back with its files, then start the run again: it publishes these results, but not those "
                "that were there"
            ),
        ) from error


def _check_published(store: Store, output: StagedOutput, target: str) -> None:
    size = store.target_size(target)
    if size != output.file.bytes:
        damage = "it is missing" if size is None else f"it has {size} bytes instead of {output.file.bytes}"
        raise StateError(
            OUTPUT,
            f"{target}: the last commit's output can not be completed: {damage}, and its staged copy is gone",
            hint="if another program took the file away after it was published, create an empty file "
            f"{marker_path(int(output.file.path.rpartition('/')[2][:10]))} in {store.where}",
        )
