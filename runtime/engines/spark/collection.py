"""Segments that workers write anew: with the rows that live, merged, or folded, by the steps of the embedded engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.engines.embedded.steps.pending_segments import PendingSegments
from tidegate.runtime.engines.embedded.steps.rewriting import SegmentRewriter
from tidegate.runtime.engines.embedded.steps.segment_cache import SegmentCache
from tidegate.runtime.engines.embedded.steps.segment_reader import SegmentReader
from tidegate.runtime.engines.spark.tasks.running import Tasks
from tidegate.runtime.engines.spark.workers import FLUSH_BYTES, WriteTarget, segment_line
from tidegate.runtime.state.codec import Json


def rewrite_tasks(target: WriteTarget, rewrites: Sequence[Rewrite]) -> Tasks:
    """A task for each rewrite, or several for one of many bytes: each takes segments that lie side by side."""
    own: list[Json] = [[number, *part] for number, rewrite in enumerate(rewrites) for part in parts_of(rewrite)]
    return Tasks(partial(rewrite_segments, target, rewrites), own)


def parts_of(rewrite: Rewrite) -> list[tuple[int, int]]:
    """The first segment and the one after the last of each part of a rewrite, about as many bytes each. What is folded
    stays together.
    """
    count = min(1 + rewrite.bytes // FLUSH_BYTES, max(1, rewrite.rows // max(1, rewrite.least)))
    cuts, gathered = [0], 0
    for place, segment in enumerate(rewrite.segments):
        if place and rewrite.settled is None and gathered * count >= rewrite.bytes and count > 1:
            cuts.append(place)
            gathered = 0
        gathered += segment.bytes
    return list(pairwise([*cuts, len(rewrite.segments)]))


def rewrite_segments(target: WriteTarget, rewrites: Sequence[Rewrite], own: Json) -> Iterator[str]:
    """A task: writes the rows of some segments of a rewrite that live as new segments, and tells each with the number
    of the rewrite.

    `own`: that number, the first of the segments, and the one after the last.
    """
    number, first, end = own
    rewrite = rewrites[number]
    store = target.held.store
    cache = SegmentCache(store, most_bytes=0)
    pending = PendingSegments(cache, most_bytes=0)
    rewriter = SegmentRewriter(SegmentReader(cache, pending), pending)
    for shard, rows in rewriter.parts(replace(rewrite, segments=rewrite.segments[first:end])):
        yield json.dumps({"number": number, "segment": segment_line(store, target, rewrite.buffer, rows, shard)})
