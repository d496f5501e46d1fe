"""The relational operators with Polars, for queries over finite relations (TSA Def. 12 to 18)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial as partial_function
from itertools import chain
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
from tidegate.algebra.terms import TRUE, Term
from tidegate.algebra.typed.operations import resolve
from tidegate.runtime.eval.aggregates.look_back import looked_back
from tidegate.runtime.eval.aggregates.look_back_form import look_back
from tidegate.runtime.eval.aggregates.partials import aggregate, final, merge, partial
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.joins import ranges
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.joins.equality import equi_join
from tidegate.runtime.eval.joins.ranges import Announce, equal_pairs, join_frames, join_pieces, reduced, whole
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.aggregate_states import has_partials
from tidegate.runtime.plan.join_parts import Equality, JoinParts, Range, join_parts
from tidegate.runtime.plan.shared_parts import Later


def evaluate(
    node: Node,
    leaves: Mapping[int, pl.DataFrame],
    ready: Mapping[tuple[int, Node], Later[pl.DataFrame]] = MappingProxyType({}),
    *,
    first: int = 0,
    announce: Announce | None = None,
) -> pl.DataFrame:
    """Evaluates a query to the bag of its rows. The columns are the attributes of its schema, in order.

    `leaves`: rows by occurrence, that is by the place of the reference among all, from the left and from `first`.
    `ready`: parts that others have too, by the place of their first leaf. `announce` hears of joins of many pairs how
    many these are.
    """
    return _Evaluation(leaves, ready, first, announce).evaluate(node)


def evaluate_pieces(
    node: Node,
    leaves: Mapping[int, pl.DataFrame],
    ready: Mapping[tuple[int, Node], Later[pl.DataFrame]] = MappingProxyType({}),
    announce: Announce | None = None,
) -> Iterator[pl.DataFrame]:
    """The same in one piece or several, so that of a join of many pairs nobody holds more rows than are wanted."""
    return _Evaluation(leaves, ready, 0, announce).pieces(node)


@dataclass(slots=True)
class _Evaluation:
    """An evaluation, with the number of the next leaf."""

    leaves: Mapping[int, pl.DataFrame]
    ready: Mapping[tuple[int, Node], Later[pl.DataFrame]]
    place: int
    announce: Announce | None

    def evaluate(self, node: Node) -> pl.DataFrame:
        if self.ready and (part := self.ready.get((self.place, node))) is not None:
            self.place += len(occurrences(node))
            return part.rows
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
                pieces = (rows.unique() for rows in self.pieces(input_))
                return reduced(pieces, lambda rows: rows.unique())
            case Product() | Join():
                return whole(self.pieces(node))
            case Union(inputs):
                return pl.concat([only(self.evaluate(input_), node.schema.names) for input_ in inputs])
            case Difference(left, right):
                rows = self.evaluate(left)
                return rows.join(self.evaluate(right), on=list(left.schema.names), how="anti", nulls_equal=True)
            case OrderedNode():
                raise InternalError("TG490", "an operator that gathers events in order is the root of its query")
            case _:
                assert_never(node)

    def pieces(self, node: Node) -> Iterator[pl.DataFrame]:
        """The rows of a node. Those of a join of many pairs go piece by piece through the operators above it, up to one
        that needs all of them.
        """
        if self.ready and (self.place, node) in self.ready:
            yield self.evaluate(node)
            return
        match node:
            case Select(input_, condition):
                for rows in self.pieces(input_):
                    yield rows.filter(compile_term(condition, input_.schema))
            case Project(input_, names):
                for rows in self.pieces(input_):
                    yield only(rows, names)
            case Rename(input_, pairs):
                for rows in self.pieces(input_):
                    yield rows.rename(dict(pairs))
            case Imbed(input_, name, term):
                for rows in self.pieces(input_):
                    yield rows.with_columns(compile_term(term, input_.schema).alias(name))
            case Union(inputs):
                for input_ in inputs:
                    for rows in self.pieces(input_):
                        yield only(rows, node.schema.names)
            case Product(left, right):
                rows = self.evaluate(left)
                yield from _product_pieces(rows, self.evaluate(right), self.announce)
            case Join(left, right):
                rows = self.evaluate(left)
                yield from _join_pieces(node, rows, self.evaluate(right), self.announce)
            case _:
                yield self.evaluate(node)

    def is_done(self, join: Join) -> bool:
        """Whether the rows of a join that begins at the next leaf are there already."""
        part = self.ready.get((self.place, join))
        return part is not None and part.done is not None

    def group(self, node: Group) -> pl.DataFrame:
        lookback, first = look_back(node), self.place
        if lookback is None or self.is_done(lookback.joins[-1]):
            return _grouped(node, self.pieces(node.input))
        ready = dict(self.ready)
        inputs = []
        for input_ in lookback.inputs:
            place = self.place
            inputs.append(self.evaluate(input_))
            ready[place, input_] = Later.known(inputs[-1])
        rows = looked_back(lookback, inputs)
        return _grouped(node, replace(self, ready=ready, place=first).pieces(node.input)) if rows is None else rows


def _grouped(group: Group, pieces: Iterator[pl.DataFrame]) -> pl.DataFrame:
    """The groups of all pieces. Of several there are partial results, if these merge."""
    first, second = next(pieces), next(pieces, None)
    if second is None:
        return aggregate(group, first)
    pieces = chain((first, second), pieces)
    if not has_partials(group):
        return aggregate(group, whole(pieces))
    partials = (partial(group, rows) for rows in pieces)
    return final(group, reduced(partials, partial_function(merge, group)))


def _product_pieces(left: pl.DataFrame, right: pl.DataFrame, announce: Announce | None) -> Iterator[pl.DataFrame]:
    pairs = left.height * right.height
    if pairs <= ranges.MANY_PAIRS:
        yield left.join(right, how="cross")
        return
    if announce is not None:
        announce(pairs)
    for rows in left.iter_slices(max(1, ranges.CHUNK // right.height)):
        yield rows.join(right, how="cross")


def _join_pieces(
    node: Join, left: pl.DataFrame, right: pl.DataFrame, announce: Announce | None
) -> Iterator[pl.DataFrame]:
    """The rows of a join: in one piece unless there are many pairs.

    A key or limit that has no value is found before there is a piece. What fails of a pair after that would fail in
    any way of evaluating the join.
    """
    if left.height * right.height <= ranges.MANY_PAIRS:
        yield _join(node, left, right)
        return
    both = Schema((*node.left.schema.attributes, *node.right.schema.attributes))
    parts = join_parts(node.condition, node.left.schema, node.right.schema)
    if not _has_values(left, right, both, parts):
        parts = join_parts(node.condition, node.left.schema, node.right.schema, exact=True)
    by_keys = parts.equalities and not parts.ranges and not parts.rest
    if by_keys and equal_pairs(left, right, both, parts) <= ranges.MANY_PAIRS:
        yield _joined(node, left, right, parts)
        return
    for rows in join_pieces(left, right, both, parts, node.kind, announce):
        yield only(rows, node.schema.names)


def _has_values(left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts) -> bool:
    """Whether all keys and limits of a join have values, of the rows of either side."""
    sides: tuple[list[Term], list[Term]] = ([], [])
    every: list[Equality | Range] = [*parts.equalities, *parts.ranges]
    for part in every:
        flipped = isinstance(part, Range) and not part.left_first
        for place, term in enumerate((part.right, part.left) if flipped else (part.left, part.right)):
            if resolve(term, both).fallible:
                sides[place].append(term)
    try:
        for rows, terms in zip((left, right), sides, strict=True):
            evaluated(rows, *(compile_term(term, both) for term in terms))
    except EvaluationError:
        return False
    return True


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
