"""Which files a batch on Spark reads: Spark says when and how many, this checkpoint says which.

Spark knows the age of a file in milliseconds, and takes files of one age in any order. What it offers in a batch is only
counted: the batch reads so many of the files that are not read yet, oldest first, then by name, as a session does. A batch that
is repeated reads what its intent says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from tidegate.runtime.setup import FoundFiles, Setup
from tidegate.runtime.sources import Files
from tidegate.runtime.spark.known_sources import KnownSources
from tidegate.runtime.spark.locations import local_path
from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.state.store import Store


def next_files(setup: Setup, unread: FoundFiles, offered: FoundFiles, fresh: FoundFiles) -> FoundFiles:
    """What a batch reads per source, of what is `unread` in directories and what Spark `offered`, `fresh` what of that was never read.

    As many files as Spark offers, and as many as a batch may have at least: of those that Spark offered and that are read already,
    others had their turn. What Spark alone finds, behind a link to a folder, is read when it is offered.
    """
    chosen = {}
    for name, there in unread.items():
        paths = {file.path for file in there}
        alone = tuple(file for file in fresh.get(name, ()) if file.path not in paths)
        data = setup.sources[name].data
        assert isinstance(data, Files)
        most = None if data.per_batch is None else max(data.per_batch, len(offered.get(name, ())) - len(alone))
        chosen[name] = (*there[:most], *alone)
    return chosen


def forget_what_has_gone(checkpoint: Checkpoint) -> None:
    """Discards the intent of a batch that can not be repeated: a file that it was to read is gone, or another.

    Such a file need not be among those that Spark offers for the batch.
    """
    pending = checkpoint.pending
    if pending is not None and not all(file.is_as_found() for files in pending.offer.files.values() for file in files):
        checkpoint.discard_intent()


def ends_early(setup: Setup, unread: FoundFiles, known: KnownSources, *, unsure: bool) -> bool:
    """Whether Spark will offer fewer files of a source than are to be read: what it has seen was not read yet, and files
    that were read in their place have gone before it saw them. `unsure` is what to take where Spark's log does not tell."""
    manifest, store = setup.checkpoint.manifest, setup.checkpoint.store
    committed = {} if manifest is None else {query: commit.batch_id for query, commit in manifest.spark.items()}
    for number, name in enumerate(known.streams):
        left = len(unread.get(name, ()))
        if left:
            data = setup.sources[name].data
            seen = seen_by_spark(store, known, number, data, committed)
            if unsure if seen is None else sum(Path(file.path) not in seen for file in data.found()) < left:
                return True
    return False


def seen_by_spark(
    store: Store, known: KnownSources, number: int, data: Files, committed: Mapping[str, int]
) -> set[Path] | None:
    """The files of the stream with this number that Spark has offered up to its last batch that is `committed`.

    None where it does not say so in the way of Spark 4, or may have another number for it: of a streaming DataFrame it watches
    several sources, and of two that are the same only one. What is damaged it reports itself.
    """
    root = Path(store.where) / "spark"
    try:
        query = json.loads((root / "metadata").read_bytes())["id"]
        if query not in committed:
            return set()
        offsets = (root / "offsets" / str(committed[query])).read_text().splitlines()[2:]
        if len(offsets) != len(known.streams) + 1 + known.clock:
            return None
        last = json.loads(offsets[number])["logOffset"]
        entries = [
            json.loads(line)
            for path in (root / "sources" / str(number)).glob("[0-9]*")
            for line in path.read_text().splitlines()[1:]
        ]
        seen = {local_path(unquote(one["path"])) for one in entries if one["batchId"] <= last}
    except FileNotFoundError:
        return None if (root / "metadata").exists() else set()
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return seen if seen and all(map(data.holds, seen)) else None
