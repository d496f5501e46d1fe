"""Queries over finite relations in the embedded engine: every operator as Polars steps (TSA Def. 12 to 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import (
    Derive,
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Match,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    occurrences,
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import conjunction
from tidegate.runtime.columns import polars_schema
from tidegate.runtime.embedded.aggregates import aggregate
from tidegate.runtime.embedded.joins import Key, hash_keys, join_frames
from tidegate.runtime.embedded.terms import compile_term
from tidegate.runtime.joins import JoinParts, join_parts


def evaluate(
    node: Node,
    leaves: Mapping[int, pl.LazyFrame],
    ready: Mapping[tuple[int, Node], pl.LazyFrame] = MappingProxyType({}),
    *,
    first: int = 0,
) -> pl.LazyFrame:
    """The bag of rows that a query yields; columns are the attributes of its schema, in order.

    `leaves`: rows by occurrence, that is by the place of the reference among all, from the left and from `first`.
    `ready`: parts that are computed already, by the place of their first leaf.
    """
    return _Evaluation(leaves, ready, first).evaluate(node)


@dataclass(slots=True)
class _Evaluation:
    """One evaluation, and the place of the next leaf."""

    leaves: Mapping[int, pl.LazyFrame]
    ready: Mapping[tuple[int, Node], pl.LazyFrame]
    place: int

    def evaluate(self, node: Node) -> pl.LazyFrame:
        if self.ready and (done := self.ready.get((self.place, node))) is not None:
            self.place += len(occurrences(node))
            return done
        match node:
            case Scan(stream):
                self.place += 1
                return self.leaves[self.place - 1].select(stream.schema.names)
            case Select(input_, condition):
                return self.evaluate(input_).filter(compile_term(condition, input_.schema))
            case Project(input_, names):
                return self.evaluate(input_).select(names)
            case Rename(input_, pairs):
                return self.evaluate(input_).rename(dict(pairs))
            case Imbed(input_, name, term):
                return self.evaluate(input_).with_columns(compile_term(term, input_.schema).alias(name))
            case Group(input_):
                return aggregate(node, self.evaluate(input_))
            case Distinct(input_):
                return self.evaluate(input_).unique()
            case Product(left, right):
                one = self.evaluate(left)
                return one.join(self.evaluate(right), how="cross")
            case Join(left, right):
                one = self.evaluate(left)
                return _join(node, one, self.evaluate(right))
            case Union(inputs):
                names = node.schema.names
                return pl.concat([self.evaluate(input_).select(names) for input_ in inputs])
            case Difference(left, right):
                one = self.evaluate(left)
                return one.join(self.evaluate(right), on=list(left.schema.names), how="anti", nulls_equal=True)
            case Derive() | Match():
                raise InternalError("TG490", "an operator that gathers events in order is the root of its query")
            case _:
                assert_never(node)


def _join(node: Join, left: pl.LazyFrame, right: pl.LazyFrame) -> pl.LazyFrame:
    both = Schema((*node.left.schema.attributes, *node.right.schema.attributes))
    parts = join_parts(node.condition, node.left.schema, node.right.schema)
    if parts.equalities and not parts.ranges and not parts.rest:
        return _equi_join(node, left, right, both, parts)

    def joined(_: pl.DataFrame) -> pl.DataFrame:
        one, other = pl.collect_all([left, right])
        return join_frames(one, other, both, parts, node.kind)

    # Not `pl.defer`: asked for no column at all, as by a count, Polars 2.1 forgets how many rows a deferred frame has.
    return pl.LazyFrame().map_batches(
        joined,
        schema=polars_schema(node.schema),
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _equi_join(node: Join, left: pl.LazyFrame, right: pl.LazyFrame, both: Schema, parts: JoinParts) -> pl.LazyFrame:
    """A join by equal keys alone, with whatever concerns one side."""
    if parts.right:
        right = right.filter(compile_term(conjunction(parts.right), both))
    pairs = hash_keys(parts.equalities, both)
    if parts.left:
        condition = compile_term(conjunction(parts.left), both)
        if node.kind == "inner":
            left = left.filter(condition)
        else:  # a left row that fails it has a key that no right row has
            pairs.append(Key(condition.fill_null(value=False), pl.lit(value=True), null_safe=False))
    keys = [_fresh(f"key {i}", both) for i in range(len(pairs))]
    one = left.with_columns(pair.left.alias(name) for pair, name in zip(pairs, keys, strict=True))
    other = right.with_columns(pair.right.alias(name) for pair, name in zip(pairs, keys, strict=True))
    nulls_equal = any(pair.null_safe for pair in pairs)
    if nulls_equal:  # of all keys; what must not equal NULL leaves the right side
        plain = [pl.col(name).is_not_null() for pair, name in zip(pairs, keys, strict=True) if not pair.null_safe]
        other = other.filter(*plain) if plain else other
    return one.join(other, on=keys, how=node.kind, nulls_equal=nulls_equal).select(node.schema.names)


def _fresh(name: str, schema: Schema) -> str:
    while name in schema:
        name += " "
    return name
