"""Ties: events of one partition at one instant without an order. Equal ones count once, the others are left out."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tidegate.algebra.ordered.derive import Derive, aggregated
from tidegate.algebra.schema import Schema
from tidegate.runtime.eval.aggregates.partials import same_zero
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.ordered.derive.events import Source, holds_of
from tidegate.runtime.ordered.new_events import set_aside_ties


def untied(source: Source, situations: Sequence[Derive], events: pl.DataFrame) -> tuple[pl.DataFrame, list[SetAside]]:
    """The events without ties, and the events that are left out.

    All events of an instant are there when progress passes it, so it does not matter in which batches they came.
    """
    situation = source.situation
    order = [*situation.keys, situation.time, *(() if situation.tie is None else (situation.tie,))]
    doubles = [name for name, type_ in events.schema.items() if type_ == pl.Float64]
    read = events.with_columns(same_zero(pl.col(name)).alias(name) for name in doubles)
    counts = read.select(*order, *sorted(aggregated(situations) - {*order})).with_columns(
        _true(source, situations, events)
    )
    tied_rows = counts.select(pl.struct(order).is_duplicated()).to_series()
    first = counts.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    numbered = counts.select(order).with_columns(first.alias("\0first"))
    alike = numbered.select((pl.col("\0first").sum().over(order) == 1).alias("")).to_series()
    keep = ~tied_rows | (alike & first)
    schema = Schema(tuple(source.schema[name] for name in events.columns if name in source.schema))
    return events.filter(keep), set_aside_ties(events.filter(~keep).select(schema.names), schema, situation.time)


def _true(source: Source, situations: Sequence[Derive], events: pl.DataFrame) -> pl.Series:
    """The conditions that are true of each event."""
    return pl.Series("\0true", holds_of(source, situations, events))
