"""Rows kept as an Arrow table, the malformed values of mixed columns with their reasons, so that a file of them reads
the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.algebra.schema import Attribute, Schema
from tidegate.runtime.eval.columns import as_mask, one_array, user_column
from tidegate.runtime.ingest.raw_rows import CheckedColumn, Raw, Rows, holds_containers, raw
from tidegate.runtime.ingest.rejected_text import value_text
from tidegate.runtime.ingest.validation import hold_column
from tidegate.runtime.ingest.values import UnreadableValue

_JUDGED = {"tidegate": "judged"}


def input_table(data: Rows | Raw, schema: Schema) -> pa.Table:
    """A frame or rows as an Arrow table for `read_file`: columns of one type unjudged, others with their malformed
    values.
    """
    fields, columns = [], []
    source = data if isinstance(data, Raw) else raw(data, schema)
    for name, column in source.columns.items():
        try:
            column = column if isinstance(column, pa.Array) else _one_type(column)
            field = pa.field(name, column.type)
        except (ValueError, pa.ArrowTypeError, OverflowError):
            field, column = _stored_field(name, column, schema[name])
        fields.append(field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _one_type(column: Sequence[object]) -> pa.Array:
    """Values as an Arrow array; `ArrowTypeError` for a mixture, of which Arrow would make 1 of True and 1970 of 3.5."""
    if len({type(value) for value in column} - {type(None)}) > 1 or holds_containers(column):
        raise pa.ArrowTypeError("values of several types")
    return pa.array(column)


def _stored_field(name: str, column: Sequence[object], attribute: Attribute) -> tuple[pa.Field, pa.Array]:
    """Python values of several types as an Arrow column: each is judged now, and one that is malformed keeps its
    reason.
    """
    held, failed = hold_column(column, attribute.as_nullable())
    fine = pa.array([position not in failed for position in range(len(column))], pa.bool_())
    values = user_column(pc.if_else(fine, held, None), attribute.type)
    if not failed:
        return pa.field(name, values.type), values
    reasons = pa.array([failed.get(position) for position in range(len(column))], pa.string())
    texts = [value_text(value) if position in failed else None for position, value in enumerate(column)]
    parts = pa.StructArray.from_arrays([values, reasons, pa.array(texts, pa.string())], ["value", "reason", "text"])
    return pa.field(name, parts.type, metadata=_JUDGED), parts


def read_stored(table: pa.Table) -> pa.Table | Raw:
    """A table with columns that `input_table` judged as what was stored; any other as it is."""
    marked = {f.name for f in table.schema if (f.metadata or {}).get(b"tidegate") == b"judged"}
    if not marked:
        return table
    columns = {name: one_array(table.column(name)) for name in table.column_names}
    return Raw({name: _judged(c) if name in marked else c for name, c in columns.items()}, table.num_rows)


def _judged(parts: pa.StructArray) -> CheckedColumn:
    values, reasons, texts = parts.flatten()
    malformed = np.flatnonzero(as_mask(reasons.is_valid()))
    return CheckedColumn(values, {int(i): UnreadableValue(str(texts[i]), str(reasons[i])) for i in malformed})
