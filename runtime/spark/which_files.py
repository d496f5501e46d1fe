"""Which files a batch on Spark reads: Spark says when and how many, this checkpoint says which.

Spark knows the age of a file in milliseconds, and takes files of one age in any order. What it offers in a batch is only
counted: the batch reads so many of the files that are not read yet, oldest first, then by name, as a session does. A batch that
is repeated reads what its intent says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from tidegate.runtime.setup import FoundFiles, Setup
from tidegate.runtime.sources import Files
from tidegate.runtime.spark.locations import local_path
from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.state.store import Store


def next_files(setup: Setup, found: FoundFiles, offered: FoundFiles, fresh: FoundFiles) -> FoundFiles:
    """What a batch reads per source, of what was `found` in directories and what Spark `offered`, `fresh` what was never read.

    As many files as Spark offers, and as many as a batch may have at least: of those that Spark offered and that are read already,
    others had their turn. What Spark alone finds, behind a link to a folder, is read when it is offered.
    """
    log, chosen = setup.checkpoint.positions, {}
    for name, there in found.items():
        paths = {file.path for file in there}
        alone = tuple(file for file in fresh.get(name, ()) if file.path not in paths)
        data = setup.sources[name].data
        assert isinstance(data, Files)
        most = None if data.per_batch is None else max(data.per_batch, len(offered.get(name, ())) - len(alone))
        unread = (file for file in there if log.is_consumed(name, file) == "new")
        chosen[name] = (*islice(unread, most), *alone)
    return chosen


def forget_what_has_gone(checkpoint: Checkpoint) -> None:
    """Discards the intent of a batch that can not be repeated: a file that it was to read is gone, or another.

    Such a file need not be among those that Spark offers for the batch.
    """
    pending = checkpoint.pending
    if pending is not None and not all(file.is_as_found() for files in pending.offer.files.values() for file in files):
        checkpoint.discard_intent()


def leaves_files(setup: Setup, found: FoundFiles) -> bool:
    """Whether files that were found are still to be read."""
    log = setup.checkpoint.positions
    return any(log.is_consumed(name, file) == "new" for name, there in found.items() for file in reversed(there))


def ends_early(setup: Setup, streams: Sequence[str]) -> bool:
    """Whether Spark will offer fewer files of a source than are to be read: what it has seen was not read yet, and files
    that were read in their place have gone before it saw them. `streams` are in the order of Spark's sources."""
    found, log = setup.found(), setup.checkpoint.positions
    for number, name in enumerate(streams):
        unread = sum(log.is_consumed(name, file) == "new" for file in found.get(name, ()))
        seen = seen_by_spark(setup.checkpoint.store, number, _batches(setup.checkpoint)) if unread else None
        if seen is not None and sum(Path(file.path) not in seen for file in found[name]) < unread:
            return True
    return False


def _batches(checkpoint: Checkpoint) -> Mapping[str, int]:
    """The last batch that is committed here, by Spark's query."""
    manifest = checkpoint.manifest
    return {} if manifest is None else {query: commit.batch_id for query, commit in manifest.spark.items()}


def seen_by_spark(store: Store, source: int, committed: Mapping[str, int]) -> set[Path] | None:
    """The files of a source that Spark has offered up to its last batch that is `committed`; None where it does not say so in
    the way of Spark 4: it may have begun nothing, and what is damaged it reports itself."""
    root = Path(store.where) / "spark"
    try:
        batch = committed[json.loads((root / "metadata").read_bytes())["id"]]
        last = json.loads((root / "offsets" / str(batch)).read_text().splitlines()[2 + source])["logOffset"]
        entries = [
            json.loads(line)
            for path in (root / "sources" / str(source)).glob("[0-9]*")
            for line in path.read_text().splitlines()[1:]
        ]
        return {local_path(unquote(one["path"])) for one in entries if one["batchId"] <= last}
    except (OSError, ValueError, LookupError, TypeError):
        return None
