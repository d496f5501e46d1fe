"""Estimates how many matches a stream's row has in a static table. The estimate decides where the join is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    _known: dict[tuple[Node, tuple[Term, ...]], float] = field(default_factory=dict)

    def are_several(self, node: Join | Product) -> bool:
        """Whether a key that the table has stands for more than one row, on average over its keys.

        Where the table's rows have limits on both sides of one value of the stream's row, they are taken for periods of
        which one holds at a time.
        """
        table = node.left if is_static(node.left) else node.right
        if isinstance(node, Product):
            return self._matches(table, ()) > 1
        parts = join_parts(node.condition, node.left.schema, node.right.schema)
        keys = tuple(pair.left if table is node.left else pair.right for pair in parts.equalities)
        return self._matches(table, keys) > 1 and not _within_periods(parts, left=table is node.left)

    def _matches(self, table: Node, keys: tuple[Term, ...]) -> float:
        """The rows of a table per different key. Rows without a key are left out; without key columns all rows
        count.
        """
        if (table, keys) not in self._known:
            self._known[table, keys] = self._counted(table, keys)
        return self._known[table, keys]

    def _counted(self, table: Node, keys: tuple[Term, ...]) -> float:
        names = [stream.name for stream in occurrences(table)]
        if any(name not in self.tables for name in names):
            return 1.0
        try:
            rows = evaluate(table, {place: self.tables[name] for place, name in enumerate(names)})
            if not keys:
                return float(rows.height)
            values = rows.select(compile_term(key, table.schema).alias(str(place)) for place, key in enumerate(keys))
        except TidegateError:
            return 1.0  # a term without a value: whoever evaluates it for a row says so
        values = values.drop_nulls()
        return values.height / values.n_unique() if values.height else 0.0


def _within_periods(parts: JoinParts, *, left: bool) -> bool:
    """Whether a value of the stream's row lies between two of the table's, one below and one above."""
    above = [range_.right for range_ in parts.ranges if range_.left_first == left]
    below = [range_.left for range_ in parts.ranges if range_.left_first != left]
    return any(term in below for term in above)
