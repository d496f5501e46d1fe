"""Results on their way out: staged before the commit, published after it, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tidegate.runtime.state.errors import OUTPUT, StateError, storage_errors
from tidegate.runtime.state.manifest import Manifest, StagedOutput, marker_path
from tidegate.runtime.state.paths import slug
from tidegate.runtime.state.segments import check_size, verify
from tidegate.runtime.state.store import Store

Deliver = Callable[[int, StagedOutput, Any], None]
"""A sink that is called with batch number, output and Arrow table: at least once per output, again after a crash in between."""

Sink = str | Deliver
"""An output directory (absolute path), or a function to call."""

_NAME = re.compile(r"part-\d+-(.+)-\d+\.parquet")


def output_name(seq: int, query: str, part: int) -> str:
    """The name of a query's file of results, by which files sort in the order of the batches."""
    return f"part-{seq:010d}-{slug(query)}-{part:05d}.parquet"


def is_output_of(query: str, name: str) -> bool:
    """Whether this is the name of a file with results of the query."""
    found = _NAME.fullmatch(name)
    return found is not None and found[1] == slug(query)


def target_of(sink: str, name: str) -> str:
    return f"{sink.rstrip('/')}/{name}"


def publish_outputs(store: Store, manifest: Manifest, sinks: Mapping[str, Sink], *, recovering: bool = False) -> None:
    """Publish all outputs of a committed batch; harmless to repeat."""
    for output in manifest.outputs:
        match sinks.get(output.query):
            case None:
                raise StateError(
                    OUTPUT,
                    f"batch {manifest.seq} has results of query {output.query!r} that are not published, and there is no sink",
                    hint="give the sink that the query had when the batch ran",
                )
            case str(directory):
                _publish(store, output, target_of(directory, output.name), recovering)
            case deliver:
                check_size(store, output.file)
                if recovering:
                    verify(store, [output.file])
                deliver(manifest.seq, output, store.read_table(output.file.path))
        store.failpoints.hit("commit-after-output")


def _publish(store: Store, output: StagedOutput, target: str, recovering: bool) -> None:
    with storage_errors(f"publishing {target}"):
        if not recovering or store.exists(output.file.path):
            if recovering:
                verify(store, [output.file])
            store.publish(output.file.path, target)
        elif (size := store.target_size(target)) != output.file.bytes:
            found = "it is missing" if size is None else f"it has {size} bytes instead of {output.file.bytes}"
            raise StateError(
                OUTPUT,
                f"{target}: the last commit's output can not be completed: {found}, and its staged copy is gone",
                hint="if another program took the file away after it was published, create an empty file "
                f"{marker_path(int(output.file.path.rpartition('/')[2][:10]))} in {store.where}",
            )
