"""Which rows of a stream tell a beginning: those that lack nothing but their end."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from tidegate.algebra.schema import Begins, Schema
from tidegate.runtime.eval.beginnings.memory import without_end
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ingest.raw_rows import Raw
from tidegate.runtime.ingest.validation import ValidatedRows, validate
from tidegate.runtime.ingest.values import NULL


def split(
    source: Raw, checked: ValidatedRows, schema: Schema, begins: Begins, place: str
) -> tuple[pl.DataFrame, pa.Table]:
    """The beginnings among rows that were rejected as their end is NULL, with their places in a column of this name;
    and the other rejected rows.
    """
    rejected = pl.DataFrame(checked.rejected)
    without = (pl.col("attribute") == begins.end) & (pl.col("reason") == NULL)
    candidates = rejected.filter(without)["position"]
    again = validate(source, without_end(schema, begins)) if len(candidates) else None
    if again is None:
        return pl.DataFrame(schema={**polars_schema(schema), place: pl.Int64}), checked.rejected
    rows = pl.DataFrame(again.accepted).with_columns(pl.Series(place, again.positions).cast(pl.Int64))
    begun = rows.filter(pl.col(begins.end).is_null() & pl.col(place).is_in(candidates.implode()))
    others = pl.DataFrame(again.rejected).filter(pl.col("position").is_in(candidates.implode()))
    left = pl.concat([rejected.filter(~without), others]).sort("position")
    return begun, left.to_arrow()
