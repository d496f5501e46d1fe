"""Where rows stand in the order of their groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.ranks import Ranks
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.terms import compile_term

#: Columns of what rows are put in order by; no attribute of a user has such a name.
_KEY: Final = "\0key {}"
_BY: Final = "\0by {}"


@dataclass(frozen=True, slots=True)
class Places:
    """Rows of complete groups, group by group and in the order of each.

    `group` has the place of the first row of each row's group, `peer` that of the first of its peers, and `place` which
    of all peers its own are, from 0 on.
    """

    rows: pl.DataFrame
    group: Int64Array
    peer: Int64Array
    place: Int64Array
    time: pl.Series

    @classmethod
    def of(cls, node: Ranks, rows: pl.DataFrame) -> Places:
        schema = node.input.schema
        columns = [pl.col(key).alias(_KEY.format(n)) for n, key in enumerate(node.keys)]
        keys = [_KEY.format(n) for n in range(len(node.keys))]
        orders = [_BY.format(n) for n in range(len(node.order))]
        descending = [False] * len(keys) + [by.descending for by in node.order]
        ordered = rows.with_columns(*columns, *order_of(node)).sort(
            [*keys, *orders], descending=descending, nulls_last=True, maintain_order=True
        )
        begins = _changes(ordered, keys)
        firsts = np.flatnonzero(begins)
        differs = begins | _changes(ordered, orders)
        peers, place = np.flatnonzero(differs), np.cumsum(differs) - 1
        return cls(
            ordered.select(schema.names),
            firsts[np.cumsum(begins) - 1],
            peers[place],
            place,
            ordered.get_column(node.time),
        )

    @property
    def first_peer(self) -> int | None:
        """The instant of a row that has a peer before it; None where no row has."""
        at = np.flatnonzero(self.peer != np.arange(self.rows.height))
        return int(self.time[int(at[0])]) if len(at) else None

    def numbers(self) -> Int64Array:
        """The number of each row in its group."""
        return np.arange(self.rows.height) - self.group + 1

    def ranks(self) -> Int64Array:
        """One more than the rows of its group before it and its peers."""
        return self.peer - self.group + 1

    def dense_ranks(self) -> Int64Array:
        """One more than the different ranks of its group before its own."""
        return self.place - self.place[self.group] + 1


@lru_cache(maxsize=256)
def order_of(node: Ranks) -> tuple[pl.Expr, ...]:
    """The values by which rows are ranked. Polars orders doubles as `compare` does: zeros are one, NaN is greatest."""
    schema = node.input.schema
    return tuple(compile_term(by.term, schema).alias(_BY.format(n)) for n, by in enumerate(node.order))


def _changes(ordered: pl.DataFrame, names: Sequence[str]) -> BoolArray:
    """Which rows differ in one of these columns from the row before; the first one does."""
    columns = (pl.col(name).ne_missing(pl.col(name).shift(1)) for name in names)
    changes = ordered.select(pl.any_horizontal(*columns)).to_series().to_numpy().copy()
    changes[:1] = True
    return changes
