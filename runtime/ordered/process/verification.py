"""Whether a step comes to the same in other ways of doing it, as the test kit asks: what it must not depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.process import Process, Reach
from tidegate.runtime.ordered.process.checks import Again, Step, require_equal
from tidegate.runtime.ordered.process.other_seed import elsewhere
from tidegate.runtime.ordered.process.partition_tables import PartitionTables, TablesExtract
from tidegate.runtime.ordered.process.steps import stepped

_REPEATED: Final = Again(
    "it was called again for the same events and state", "use no clock, nothing random, and keep no state in the object"
)
_REVERSED: Final = Again(
    "the rows of its tables came in another order", "rows of a table have no order: sort them by columns of theirs"
)
_ALONE: Final = Again(
    "partitions came without the others",
    'let no partition see rows of another: .over("partition"), group_by("partition", ...)',
)
_OTHER_SEED: Final = Again(
    "another process did it, where the hashes of texts are others",
    "do not depend on the order of a set of texts, or on hash(): sort it",
)
#: Partitions come alone, or where there are more than so many, in so many groups.
_GROUPS: Final = 16


def verify(
    node: Process,
    part: PartitionTables,
    rows: pl.DataFrame,
    reach: Reach,
    left: Mapping[str, pl.DataFrame],
    result: pl.DataFrame,
) -> None:
    """`EvaluationError` TG305 where a step yields or leaves something else when it is done in another way.

    `part` is what is held before it of the partitions that it looks at, and nothing else; `left` and `result` are what
    the step made.
    """

    def compare(again: Again, steps: Iterable[tuple[PartitionTables, TablesExtract, pl.DataFrame]]) -> None:
        try:
            outcomes = [(state.rows(after), some) for state, after, some in steps]
        except EvaluationError as error:
            raise again.failed(node, error) from error
        tables = {name: pl.concat([tables_of[name] for tables_of, _ in outcomes]) for name in left}
        require_equal(node, left, result, tables, pl.concat([some for _, some in outcomes]), again)

    def once(
        state: PartitionTables, events: pl.DataFrame, step: Step | None = None
    ) -> tuple[PartitionTables, TablesExtract, pl.DataFrame]:
        _, after, some = stepped(node, state, events, reach, step)
        return state, after, some

    compare(_REPEATED, [once(part, rows)])
    if len(part.partitions) > 1:
        compare(_ALONE, (once(group, events) for group, events in _groups(part, rows)))
    compare(_REVERSED, [once(_reversed(part), rows)])
    if (step := elsewhere(node.operator)) is not None:
        compare(_OTHER_SEED, [once(part, rows, step)])
    _compare_batches(node, part, rows, reach, left, result)


def _groups(part: PartitionTables, rows: pl.DataFrame) -> Iterable[tuple[PartitionTables, pl.DataFrame]]:
    """What is held of some partitions, and their rows, so that each partition is in one group."""
    numbers = part.partitions.assign(rows)
    partitions = part.all_partitions()
    for first in range(min(len(partitions), _GROUPS)):
        group = partitions[first::_GROUPS]
        yield part.part(group), rows.filter(pl.Series(np.isin(numbers, group)))


def _reversed(part: PartitionTables) -> PartitionTables:
    """The same rows, and those of each partition in the opposite order."""
    copy = part.part(part.all_partitions())
    extract = copy.extract(copy.all_partitions())
    copy.put(copy.after(extract, {name: rows.reverse() for name, rows in extract.tables.items()}, extract.last))
    return copy


def _compare_batches(
    node: Process,
    part: PartitionTables,
    rows: pl.DataFrame,
    reach: Reach,
    left: Mapping[str, pl.DataFrame],
    result: pl.DataFrame,
) -> None:
    """The step in two parts, of which the later goes on from what the earlier has left."""
    instants = rows.get_column(node.time).unique().sort()
    if len(instants) > 1:
        middle = int(instants[(len(instants) - 1) // 2])
        early, parts = pl.col(node.time) <= middle, list[pl.DataFrame]()
        for events, span in (
            (rows.filter(early), Reach(reach.after, middle)),
            (rows.filter(~early), Reach(middle, reach.until, reach.close_at)),
        ):
            before, after, some = stepped(node, part, events, span)
            part.settle(before, after)
            parts.append(some)
        again = Again(
            f"its events came in two batches, those up to {middle} and those after",
            "keep in tables what later events need, and yield a row once no event can change it",
        )
        require_equal(node, left, result, part.rows(part.extract(part.all_partitions())), pl.concat(parts), again)
