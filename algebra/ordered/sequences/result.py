"""The rows that are reported of the matches of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.algebra.nodes import Aggregation, Row
from tidegate.algebra.ordered.events import in_order, partitions
from tidegate.algebra.ordered.sequences.certain import instants_of
from tidegate.algebra.ordered.sequences.meaning import Match, matches_of, unmatched
from tidegate.algebra.ordered.sequences.partition import Partition
from tidegate.algebra.ordered.sequences.per_start.excess import excess_in, too_many

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences


def rows_of(node: Sequences, rows: Sequence[Row], aggregation: Aggregation) -> list[Row]:
    """The result over all rows of the input; `EvaluationError` TG307 where a row begins more matches than it may."""
    (reading,) = node.readings
    by_key = [
        (key, Partition(node, in_order(reading, members), aggregation)) for key, members in partitions(reading, rows)
    ]
    if node.per_start is not None:
        excesses = [excess for key, partition in by_key if (excess := excess_in(partition, key)) is not None]
        if excesses:
            raise too_many(node, excesses)
    results: list[Row] = []
    for key, partition in by_key:
        matches = matches_of(partition)
        instants = instants_of(partition, matches)
        for match in matches:
            results += reported(partition, key, match, instants.matches[match])
        if node.reported.unmatched:
            for at in unmatched(partition, matches):
                results.append(unmatched_row(partition, at, instants.unmatched[at]))
    return results


def reported(partition: Partition, key: Row, match: Match, detected: int) -> list[Row]:
    """The rows that are reported of a match."""
    node, times = partition.node, partition.times
    first, last = (match.matched[end][0] if match.matched else match.start for end in (0, -1))
    instants = (times[first], times[last], detected)
    if node.reported.rows == "one":
        return [(*key, *partition.measures(match.matched, match.matched, match.number), *instants)]
    if not match.matched:
        empty = _of_row(partition, match.start, partition.measures((), (), match.number), instants)
        return [empty] if node.reported.empty else []
    return [
        _of_row(partition, at, partition.measures(match.matched[: place + 1], match.matched, match.number), instants)
        for place, (at, _) in enumerate(match.matched)
        if at not in match.excluded
    ]


def unmatched_row(partition: Partition, at: int, detected: int) -> Row:
    """A row of no match: its measures are NULL."""
    time = partition.times[at]
    return _of_row(partition, at, (None,) * len(partition.node.measures), (time, time, detected))


def _of_row(partition: Partition, at: int, measures: Row, instants: Row) -> Row:
    """What is reported of the row at a place."""
    row = dict(zip(partition.names, partition.rows[at], strict=True))
    before, behind = partition.node.kept_attributes
    return (*(row[name] for name in before), *measures, *(row[name] for name in behind), *instants)
