"""What is kept to count matches: the rows of the last while, or the number of paths to each state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences, Counting
from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.terms import compile_pair

#: Columns of kept rows: their instant, and the labels that they can have, as bits.
TIME: Final = "time"
LABELS: Final = "labels"


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How the matches of a node are counted: `steps` is the table of the kernel, `labels` yields those of a row."""

    node: CountedSequences
    counting: Counting
    steps: Int64Array
    labels: pl.Expr

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of what is kept of a partition, beside its keys."""
        if self.counting.within is not None:
            return {TIME: pl.Int64(), LABELS: pl.Int64()}
        return dict.fromkeys(self.numbers, pl.Int64())

    @property
    def numbers(self) -> list[str]:
        """The columns of the number of paths to each state, but the first one."""
        return [f"paths {state}" for state in range(1, self.counting.automaton.states)]


@lru_cache(maxsize=256)
def layout_of(node: CountedSequences) -> Layout:
    """The layout of a node."""
    counting = node.counting
    of = counting.automaton
    steps = [(step.source, step.label, step.target, int(step.target in of.accepting)) for step in of.steps]
    table = np.array(steps, dtype=np.int64).reshape(len(steps), 4)
    return Layout(node, counting, table, _labels(counting, node.sequences.input.schema))


def _labels(counting: Counting, schema: Schema) -> pl.Expr:
    """The labels whose condition a row satisfies; not one that has no value."""
    bits = pl.lit(0, pl.Int64)
    for label, condition in enumerate(counting.conditions):
        pair = compile_pair(condition, schema)
        holds = pair.value.fill_null(value=False)
        if pair.error is not None:
            holds &= pair.error.is_null()
        bits = bits | pl.when(holds).then(pl.lit(1 << label, pl.Int64)).otherwise(pl.lit(0, pl.Int64))
    return bits.alias(LABELS)
