"""A step of an operator of a user's: what it is given, and what it makes of that, checked."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.algebra.ordered.process import Process, Reach
from tidegate.runtime.ordered.partition_store import EVER
from tidegate.runtime.ordered.process.checks import Step, called, require_bounds, require_order, result_of
from tidegate.runtime.ordered.process.partition_tables import PartitionTables, TablesExtract
from tidegate.runtime.ordered.row_arrays import PARTITION


def stepped(
    node: Process, state: PartitionTables, rows: pl.DataFrame, reach: Reach, step: Step | None = None
) -> tuple[TablesExtract, TablesExtract, pl.DataFrame]:
    """What is held of the partitions that a step looks at, before it and after, and the rows that it yields.

    `step` is done in the place of the operator's own, if given. The partitions are those that have events, those whose
    time has come, and all of which anything is held where there are no more events.
    """
    partitions, places = state.read_by(rows, EVER if reach.until is None else reach.until)
    before = state.extract(partitions)
    read = sorted(node.readings[0].attributes - {*node.keys})
    order = [PARTITION, node.time, *(() if node.tie is None else (node.tie,))]
    events = rows.select(pl.Series(PARTITION, places), *read).sort(order)
    require_order(node, events, order)
    returned, left = called(node, step or node.operator.step, events, before.tables, reach, len(partitions))
    last = before.last.copy()
    np.maximum.at(last, events.get_column(PARTITION).to_numpy(), events.get_column(node.time).to_numpy())
    given = state.partitions.rows(partitions)
    require_bounds(node, left, given, last, reach)
    yielded = result_of(node, returned, given, len(partitions), reach)
    keys = state.partitions.rows(partitions[yielded.get_column(PARTITION).to_numpy()])
    result = pl.concat([keys, yielded], how="horizontal").select(node.schema.names)
    return before, state.after(before, left, last), result
