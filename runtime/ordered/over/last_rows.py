"""Increments in which each partition has one new row, and values come from that row and from the last one before it.

Then nothing has to be sorted: what is kept of a partition is looked up where its new row stands. So it is in most
batches of many keys.
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.ordered.over import (
    FrameAggregate,
    Neighbour,
    NextDifferent,
    Nth,
    Over,
    OverColumn,
    PreviousDifferent,
    Reported,
    RowNumber,
    terms_of,
)
from tidegate.algebra.terms import attributes_of
from tidegate.analysis.ordered.over import need_of
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.ordered.over.layout import TIME, Kind, OverLayout, Running, layout_of
from tidegate.runtime.ordered.partition_store import NO_LOOK
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows


@lru_cache(maxsize=256)
def is_of_last_rows(node: Over) -> bool:
    """Whether all values of a row come from itself and the last row before it, which is kept however old it is."""
    lasts = any(need_of(column).ticks is None for column in node.columns)
    return lasts and not node.waits and all(_is_of_last_row(node, column) for column in node.columns)


def _is_of_last_row(node: Over, column: OverColumn) -> bool:
    match column:
        case RowNumber():
            return True
        case Neighbour(_, _, offset, _, default):
            return (offset, default) == (-1, None)
        case FrameAggregate(aggregate, frame):
            return frame.before is None and node.goes_by_order(aggregate)
        case PreviousDifferent() | NextDifferent() | Nth() | Reported():
            return False
        case _:
            assert_never(column)


def of_last_rows(
    node: Over, state: KeptRows, rows: pl.DataFrame
) -> tuple[KeptExtract, KeptExtract, pl.DataFrame] | None:
    """What is kept of the partitions of new rows before them and after them, and the rows with their values.

    None where a partition has several of the rows. Columns have to be `is_of_last_rows`.
    """
    layout, schema = layout_of(node), node.input.schema
    partitions = state.all_different(state.partitions.assign(rows))
    if partitions is None:
        return None
    terms = [term for term in layout.arguments if term not in layout.dependent]
    values = evaluated(rows, *(compile_term(term, schema) for term in terms)).get_columns()
    new = {TIME: rows.get_column(node.time)}
    new |= {layout.argument(term): column for term, column in zip(terms, values, strict=True)}
    last = state.rows.last_of_each(partitions, _read(layout))
    computed = dict[str, pl.Series]()
    for column in node.columns:
        for term in terms_of(column):
            if layout.argument(term) not in new:
                read = rows.with_columns(computed[name] for name in sorted(attributes_of(term) - {*schema}))
                new[layout.argument(term)] = evaluated(read, compile_term(term, layout.known)).to_series()
        if (running := layout.running(column)) is not None:
            new |= _after(layout, running, new, last)
        computed[column.name] = _value(layout, column, new, last).alias(column.name)
    look = np.full(rows.height, NO_LOOK)
    places = pl.Series(PARTITION, np.arange(rows.height))
    kept = pl.DataFrame([places, *(new[name].alias(name) for name in layout.columns)])
    before = KeptExtract(partitions, kept.clear(), look, state.version)
    after = KeptExtract(partitions, kept, look, one_each=True)
    return before, after, rows.select(schema.names).hstack([*computed.values()])


def _read(layout: OverLayout) -> list[str]:
    """The columns of the last rows that values need."""
    neighbours = [column for column in layout.node.columns if isinstance(column, Neighbour)]
    arguments = [layout.argument(column.argument) for column in neighbours]
    arguments += [TIME] if any(column.within is not None for column in neighbours) else []
    parts = [layout.part(running, name) for running in layout.runnings for name in layout.parts(running)]
    return list(dict.fromkeys([*arguments, *parts]))


def _after(layout: OverLayout, running: Running, new: dict[str, pl.Series], last: pl.DataFrame) -> dict[str, pl.Series]:
    """The parts of a running value with the new rows."""
    if running.what is Kind.ROWS:
        name = layout.part(running, "n")
        return {name: last.get_column(name).fill_null(0) + 1}
    assert running.argument is not None
    name = layout.part(running, "v")
    own, before = new[layout.argument(running.argument)], last.get_column(name)
    first, then = (own, before) if running.what is Form.LATEST else (before, own)
    return {name: first.zip_with(first.is_not_null(), then) if first.null_count() else first}


def _value(layout: OverLayout, column: OverColumn, new: dict[str, pl.Series], last: pl.DataFrame) -> pl.Series:
    """The values of a column for the new rows."""
    if isinstance(column, Neighbour):
        value = last.get_column(layout.argument(column.argument))
        if column.within is None:
            return value
        is_near = (new[TIME] - last.get_column(TIME) <= column.within).fill_null(value=False)
        return value if is_near.all() else value.set(~is_near, None)
    running = layout.running(column)
    assert running is not None
    return new[layout.part(running, "n" if running.what is Kind.ROWS else "v")]
