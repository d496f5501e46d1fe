"""What is kept of a partition: rows, each with how far the search has come."""

from __future__ import annotations

from typing import Final

import polars as pl

from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.runtime.eval.columns import polars_type

#: Columns of kept rows that say how far the search has come in their partition, as `Standing` has it.
STANDING: Final = {"begin": pl.Int64(), "number": pl.Int64(), "taken": pl.Int64(), "whole": pl.Boolean()}


def columns_of(node: Sequences) -> dict[str, pl.DataType]:
    """The columns of kept rows, beside the keys of their partitions."""
    attributes = {attribute(a.name): polars_type(a.type) for a in node.input.schema.attributes}
    return {**attributes, **STANDING}


def attribute(name: str) -> str:
    """The column of an attribute."""
    return f"row {name}"


def by_attribute(node: Sequences) -> dict[str, str]:
    """The names of attributes by those of their columns."""
    return {attribute(name): name for name in node.input.schema.names}
