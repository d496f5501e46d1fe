"""Estimates how many matches a stream's row has in a static table. The estimate decides where the join is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from tidegate.algebra.errors import TidegateError
from tidegate.algebra.nodes import Join, Node, Product, occurrences
from tidegate.algebra.row_wise import is_static
from tidegate.algebra.terms import Term
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.join_parts import JoinParts, join_parts


@dataclass(frozen=True, slots=True)
class StaticMatches:
    """Estimates by the rows of static tables. A table that is unknown before the run counts as one match."""

    tables: Mapping[str, pl.DataFrame]
    _known: dict[tuple[Node, tuple[Term, ...], tuple[Term, Term] | None], float] = field(default_factory=dict)

    def are_several(self, node: Join | Product) -> bool:
        """Whether a key that the table has stands for more than one row, on average over its keys.

        Where the table's rows have limits on both sides of one value of the stream's row, they are ranges. Then only
        those count that hold the beginning of a range, on average over the ranges: periods that follow each other are
        one match.
        """
        table = node.left if is_static(node.left) else node.right
        if isinstance(node, Product):
            return self._matches(table, ()) > 1
        parts = join_parts(node.condition, node.left.schema, node.right.schema)
        keys = tuple(pair.left if table is node.left else pair.right for pair in parts.equalities)
        ranges = _ranges(parts, left=table is node.left)
        return self._matches(table, keys) > 1 and all(self._matches(table, keys, one) > 1 for one in ranges)

    def _matches(self, table: Node, keys: tuple[Term, ...], limits: tuple[Term, Term] | None = None) -> float:
        """The rows of a table per different key, or those whose range holds the beginning of another of their key, on
        average. Rows without a key are left out; without key columns all rows count.
        """
        if (table, keys, limits) not in self._known:
            self._known[table, keys, limits] = self._counted(table, keys, limits)
        return self._known[table, keys, limits]

    def _counted(self, table: Node, keys: tuple[Term, ...], limits: tuple[Term, Term] | None) -> float:
        names = [stream.name for stream in occurrences(table)]
        if any(name not in self.tables for name in names):
            return 1.0
        try:
            rows = evaluate(table, {place: self.tables[name] for place, name in enumerate(names)})
            if not keys and limits is None:
                return float(rows.height)
            terms = {str(place): key for place, key in enumerate(keys)}
            if limits is not None:
                terms |= {"lower": limits[0], "upper": limits[1]}
            values = rows.select(compile_term(term, table.schema).alias(name) for name, term in terms.items())
        except TidegateError:
            return 1.0  # a term without a value: whoever evaluates it for a row says so
        values = values.drop_nulls()
        if limits is not None:
            return _overlapping(values)
        return values.height / values.n_unique() if values.height else 0.0


def _ranges(parts: JoinParts, *, left: bool) -> list[tuple[Term, Term]]:
    """Pairs of the table's values of which one is below and one above the same value of the stream's row."""
    lower = [(range_.left, range_.right) for range_ in parts.ranges if range_.left_first == left]
    upper = [(range_.left, range_.right) for range_ in parts.ranges if range_.left_first != left]
    return [(below, above) for below, value in lower for other, above in upper if value == other]


def _overlapping(rows: pl.DataFrame) -> float:
    """How many ranges from `lower` to `upper` hold the beginning of a range with equal other columns, itself among
    them, on average.
    """
    rows = rows.filter(pl.col("lower") < pl.col("upper")).with_row_index("group")
    if not rows.height:
        return 0.0
    if keys := [name for name in rows.columns if name not in ("group", "lower", "upper")]:
        rows = rows.with_columns(pl.col("group").first().over(keys))
    else:
        rows = rows.with_columns(group=pl.lit(0))
    ranks = pl.concat([rows["lower"], rows["upper"]]).rank("dense").to_numpy().astype(np.int64)
    of_group = rows["group"].to_numpy().astype(np.int64) * (len(ranks) + 1)
    begin, end = of_group + ranks[: rows.height], of_group + ranks[rows.height :]
    begun = np.searchsorted(np.sort(begin), begin, side="right")
    ended = np.searchsorted(np.sort(end), begin, side="right")
    return float((begun - ended).mean())
