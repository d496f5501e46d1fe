"""What is kept to count matches: the rows of the last while, or the number of paths to each state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.counting.countable import Counting
from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.schema import Schema
from tidegate.algebra.typed.operations import term_type
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.terms import compile_pair
from tidegate.runtime.ordered.sequences.counting.words import Words, ordered

#: Columns of kept rows: their instant, and the labels that they can have, as bits.
TIME: Final = "time"
LABELS: Final = "labels"


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How the matches of a node are counted: `steps` is the table of the kernel, `labels` yields those of a row.
    `words` is what is told of matches beside their number.
    """

    node: CountedSequences
    counting: Counting
    steps: Int64Array
    labels: pl.Expr
    words: Words

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of what is kept of a partition, beside its keys."""
        if self.counting.within is not None:
            return dict.fromkeys((TIME, LABELS, *self.values), pl.Int64())
        return dict.fromkeys(self.numbers, pl.Int64())

    @property
    def numbers(self) -> list[str]:
        """The columns of the paths to each state but the first one, word by word."""
        states = range(1, self.counting.automaton.states)
        words = [f"word {word}" for word in range(1, len(self.words.words))]
        return [f"{word} {state}" for state in states for word in ("paths", *words)]

    @property
    def values(self) -> list[str]:
        """The columns of the values of a row, of which words are made."""
        return [f"value {number}" for number in range(len(self.words.columns))]

    def values_of(self, rows: pl.DataFrame) -> list[pl.Series]:
        """These values of rows, as integers in the same order; NULL where they are, or where a row has none."""
        schema, found = self.node.sequences.input.schema, []
        for name, term in zip(self.values, self.words.columns, strict=True):
            pair = compile_pair(term, schema)
            value = pair.value if pair.error is None else pl.when(pair.error.is_null()).then(pair.value)
            column = whole(rows.select(value.alias(name)).to_series(), rows.height)
            found.append(ordered(column, term_type(term, schema)))
        return found


@lru_cache(maxsize=256)
def layout_of(node: CountedSequences) -> Layout:
    """The layout of a node."""
    counting = node.counting
    of = counting.automaton
    steps = [(step.source, step.label, step.target, int(step.target in of.accepting)) for step in of.steps]
    table = np.array(steps, dtype=np.int64).reshape(len(steps), 4)
    return Layout(node, counting, table, _labels(counting, node.sequences.input.schema), Words.of(node))


def whole(column: pl.Series, height: int) -> pl.Series:
    """A column of so many rows: one of a literal alone has one."""
    return column if len(column) == height else column.new_from_index(0, height)


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
