"""The relational operators with Polars, for queries over finite relations (TSA Def. 12 to 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    occurrences,
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE
from tidegate.runtime.eval.aggregates.look_back import look_back, looked_back
from tidegate.runtime.eval.aggregates.partials import aggregate
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.joins.equality import equi_join
from tidegate.runtime.eval.joins.ranges import join_frames
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.join_parts import JoinParts, join_parts


def evaluate(
    node: Node,
    leaves: Mapping[int, pl.DataFrame],
    ready: Mapping[tuple[int, Node], pl.DataFrame] = MappingProxyType({}),
    *,
    first: int = 0,
) -> pl.DataFrame:
    """Evaluates a query to the bag of its rows. The columns are the attributes of its schema, in order.

    `leaves`: rows by occurrence, that is by the place of the reference among all, from the left and from `first`.
    `ready`: parts that are computed already, by the place of their first leaf.
    """
    return _Evaluation(leaves, ready, first).evaluate(node)


@dataclass(slots=True)
class _Evaluation:
    """An evaluation, with the number of the next leaf."""

    leaves: Mapping[int, pl.DataFrame]
    ready: Mapping[tuple[int, Node], pl.DataFrame]
    place: int

    def evaluate(self, node: Node) -> pl.DataFrame:
        if self.ready and (done := self.ready.get((self.place, node))) is not None:
            self.place += len(occurrences(node))
            return done
        match node:
            case Scan(stream):
                self.place += 1
                return only(self.leaves[self.place - 1], stream.schema.names)
            case Select(input_, condition):
                return self.evaluate(input_).filter(compile_term(condition, input_.schema))
            case Project(input_, names):
                return only(self.evaluate(input_), names)
            case Rename(input_, pairs):
                return self.evaluate(input_).rename(dict(pairs))
            case Imbed(input_, name, term):
                return self.evaluate(input_).with_columns(compile_term(term, input_.schema).alias(name))
            case Group():
                return self.group(node)
            case Distinct(input_):
                return self.evaluate(input_).unique()
            case Product(left, right):
                rows = self.evaluate(left)
                return rows.join(self.evaluate(right), how="cross")
            case Join(left, right):
                rows = self.evaluate(left)
                return _join(node, rows, self.evaluate(right))
            case Union(inputs):
                return pl.concat([only(self.evaluate(input_), node.schema.names) for input_ in inputs])
            case Difference(left, right):
                rows = self.evaluate(left)
                return rows.join(self.evaluate(right), on=list(left.schema.names), how="anti", nulls_equal=True)
            case OrderedNode():
                raise InternalError("TG490", "an operator that gathers events in order is the root of its query")
            case _:
                assert_never(node)

    def group(self, node: Group) -> pl.DataFrame:
        lookback = look_back(node)
        if lookback is None or any((self.place, part) in self.ready for part in (node.input, lookback.join)):
            return aggregate(node, self.evaluate(node.input))
        left = self.evaluate(lookback.join.left)
        right = self.evaluate(lookback.join.right)
        rows = looked_back(lookback, left, right)
        return aggregate(node, _join(lookback.join, left, right)) if rows is None else rows


def _join(node: Join, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    # Beside no row the condition has nothing to be evaluated for.
    condition = node.condition if left.height and right.height else TRUE
    try:
        return _joined(node, left, right, join_parts(condition, node.left.schema, node.right.schema))
    except EvaluationError:  # perhaps of a key that no pair asks for
        exact = join_parts(condition, node.left.schema, node.right.schema, exact=True)
        return _joined(node, left, right, exact)


def _joined(node: Join, left: pl.DataFrame, right: pl.DataFrame, parts: JoinParts) -> pl.DataFrame:
    both = Schema((*node.left.schema.attributes, *node.right.schema.attributes))
    if parts.equalities and not parts.ranges and not parts.rest:
        return equi_join(left, right, both, parts, node.kind, node.schema.names)
    return join_frames(left, right, both, parts, node.kind)
