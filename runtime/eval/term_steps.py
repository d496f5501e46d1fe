"""Large terms in steps: what an expression mentions several times is a column that a step before computes.

Expressions of Polars are trees, and Polars works on a tree again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from tidegate.runtime.eval.functions.frame import CompiledTerm


@dataclass(slots=True)
class Steps:
    """The columns that a term is computed of, step by step. A step reads attributes and columns of steps before."""

    all: list[list[pl.Expr]] = field(default_factory=list)
    _columns: int = 0

    def add(self, terms: Sequence[CompiledTerm[pl.Expr]]) -> list[CompiledTerm[pl.Expr]]:
        """One more step, which computes these terms: the terms as its columns."""
        step: list[pl.Expr] = []
        known = [
            CompiledTerm(self._column(term.value, step), None if term.error is None else self._column(term.error, step))
            for term in terms
        ]
        self.all.append(step)
        return known

    def _column(self, value: pl.Expr, step: list[pl.Expr]) -> pl.Expr:
        if value.meta.is_column() or not value.meta.root_names():
            return value  # a constant has no rows of its own
        name = f"\0{self._columns}"
        self._columns += 1
        step.append(value.alias(name))
        return pl.col(name)

    def before(self, result: pl.Expr, type_: pl.DataType) -> pl.Expr:
        """The result with the steps that it needs. A column is there from its step to the last one that reads it."""
        selections = [[result]]
        needed = set(result.meta.root_names())
        for step in reversed(self.all):
            computed = [column for column in step if column.meta.output_name() in needed]
            if computed:
                needed -= {column.meta.output_name() for column in computed}
                selections.insert(0, [*map(pl.col, sorted(needed)), *computed])
                needed = needed.union(*(column.meta.root_names() for column in computed))
        if len(selections) == 1:
            return result

        def computed_of(packed: pl.Series) -> pl.Series:
            frame = packed.struct.unnest()
            for selection in selections:
                frame = frame.select(selection)
            return frame.to_series().alias(packed.name)

        return pl.struct(sorted(needed)).map_batches(computed_of, return_dtype=type_, is_elementwise=True)
