"""Lenient increments. Rows whose terms fail are set aside, and sums that overflow become NULL.

The definition is `semantics.evaluate_leniently`. It is looked at only where the plain evaluation has failed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.evaluation import EvaluationError, Values, sum_out_of_range
from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
)
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.rewrites.totals import Total
from tidegate.algebra.row_wise import term_below
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import split_by_failure
from tidegate.algebra.terms import MOST_OPERATIONS, TRUE, Term, Value, attributes_of, size_of
from tidegate.algebra.types import BIGINT, DataType, Kind
from tidegate.runtime.eval.aggregates.partials import final as finished
from tidegate.runtime.eval.aggregates.partials import merge, partial
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.increment import keep_true
from tidegate.runtime.eval.joins.ranges import reduced, whole
from tidegate.runtime.eval.relational import evaluate, evaluate_pieces
from tidegate.runtime.eval.terms import compile_pair, compile_term
from tidegate.runtime.eval.unevaluable import TermFailures
from tidegate.runtime.plan.aggregate_states import has_partials, states
from tidegate.runtime.plan.steps import Progress, QueryPlan
from tidegate.runtime.state.quarantine import RejectedRow, error_text

UNEVALUABLE: Final = "unevaluable"
OVERFLOW: Final = "overflow"
_LEFT: Final = "\0left"


@dataclass(frozen=True, slots=True)
class SetAside:
    """A row for which a term of a query has no value (`unevaluable`), or a group whose sum does not fit
    (`overflow`).
    """

    reason: str
    attribute: str | None
    row: Mapping[str, Value]
    schema: Schema
    error: EvaluationError

    @property
    def count(self) -> int:
        return 1

    def as_rows(self, query: str, number: int) -> Iterator[RejectedRow]:
        """The row as the quarantine stores it, with its number among those of a batch. It has no file, but a query."""
        yield self._as_row(query, number, self.row, error_text(self.error))

    def _as_row(self, query: str, number: int, row: Mapping[str, Value], error: str) -> RejectedRow:
        shown = {name: _shown(value, self.schema[name].type) for name, value in row.items()}
        text = json.dumps(shown, ensure_ascii=False)
        return RejectedRow(query, f"query {query}", number, self.reason, self.attribute, text, error)


@dataclass(frozen=True, slots=True)
class SetAsideRows(SetAside):
    """Many such rows, of which `row` is the first. As a table they take a fraction of what they take one by one.

    The error of each is made of its `operands`.
    """

    rows: pl.DataFrame
    operands: pl.DataFrame
    error_of: Callable[[Values], EvaluationError]

    @classmethod
    def of(
        cls,
        reason: str,
        rows: pl.DataFrame,
        schema: Schema,
        operands: pl.DataFrame,
        error_of: Callable[[Values], EvaluationError],
    ) -> SetAsideRows:
        """There is at least one row."""
        first, error = rows.row(0, named=True), error_of(operands.row(0, named=True))
        return cls(reason, None, first, schema, error, rows, operands, error_of)

    @property
    def count(self) -> int:
        return self.rows.height

    def as_rows(self, query: str, number: int) -> Iterator[RejectedRow]:
        last, text = self.error, error_text(self.error)
        pairs = zip(self.rows.iter_rows(named=True), self.operands.iter_rows(named=True), strict=True)
        for place, (row, operands) in enumerate(pairs, number):
            error = self.error_of(operands)
            if error is not last:
                last, text = error, error_text(error)
            yield self._as_row(query, place, row, text)


def _shown(value: Value, type_: DataType) -> Value:
    """A value as JSON. Instants, durations and decimals are text."""
    plain = value is None or type_.kind in (Kind.BIGINT, Kind.BOOLEAN, Kind.STRING)
    return value if plain or (isinstance(value, float) and math.isfinite(value)) else value_text(value, type_)


@dataclass(slots=True)
class Lenient:
    """A lenient evaluation of a tree. `passes` is the pass condition over the current rows, None where they do not
    decide it. `totals` are the new attributes that are sums, by their terms. `grouped_by` are the keys of groups that
    are no part of the tree.
    """

    leaves: Mapping[int, pl.DataFrame]
    totals: Mapping[Term, Total] = field(default_factory=dict)
    grouped_by: tuple[str, ...] = ()
    place: int = 0
    aside: list[SetAside] = field(default_factory=list)

    def rows_of(self, node: Node, passes: Term | None) -> pl.DataFrame:
        match node:
            case Scan(stream):
                self.place += 1
                return only(self.leaves[self.place - 1], stream.schema.names)
            case Imbed(_, _, term) if term in self.totals:
                return self.totalled(node, self.totals[term], _below(passes, node))
            case Select() | Project() | Rename() | Imbed() | Product() | Join():
                return whole(self.pieces(node, passes))
            case Group(input_, keys):
                below = _over(passes, input_.schema.keys() & set(keys))
                pieces = (self._arguments(node, rows, below) for rows in self.pieces(input_, below))
                if not has_partials(node):
                    return self.grouped(node, whole(pieces), passes)
                partials = (partial(node, rows) for rows in pieces)
                return self.finished(node, reduced(partials, lambda rows: merge(node, rows)), passes)
            case Distinct(input_):
                return reduced((rows.unique() for rows in self.pieces(input_, passes)), lambda rows: rows.unique())
            case Union(inputs):
                return pl.concat([only(self.rows_of(input_, passes), node.schema.names) for input_ in inputs])
            case Difference(left, right):
                rows, without = self.rows_of(left, passes), self.rows_of(right, passes)
                return rows.join(without, on=list(left.schema.names), how="anti", nulls_equal=True)
            case _:
                raise InternalError("TG490", "an operator that gathers events in order is the root of its query")

    def pieces(self, node: Node, passes: Term | None) -> Iterator[pl.DataFrame]:
        """The rows of a node. Those of a join of many pairs go piece by piece through the operators above it, as in the
        plain evaluation.
        """
        match node:
            case Select(input_, condition):
                for rows in self.pieces(input_, passes):
                    fine = self.evaluable(rows, condition, input_.schema, passes)
                    yield fine.filter(compile_term(condition, input_.schema))
            case Project(input_, names):
                for rows in self.pieces(input_, passes):
                    yield only(rows, names)
            case Rename(input_, pairs):
                for rows in self.pieces(input_, _below(passes, node)):
                    yield rows.rename(dict(pairs))
            case Imbed(input_, name, term) if term not in self.totals:
                below = _below(passes, node)
                for rows in self.pieces(input_, below):
                    fine = self.evaluable(rows, term, input_.schema, below)
                    yield fine.with_columns(compile_term(term, input_.schema).alias(name))
            case Product() | Join():
                yield from self._pairs(node, passes)
            case _:
                yield self.rows_of(node, passes)

    def _arguments(self, group: Group, rows: pl.DataFrame, passes: Term | None) -> pl.DataFrame:
        """The rows for which all arguments of a grouping have a value."""
        for term in (term for aggregate in group.aggregates for term in aggregate.terms):
            rows = self.evaluable(rows, term, group.input.schema, passes)
        return rows

    def grouped(self, group: Group, rows: pl.DataFrame, passes: Term | None) -> pl.DataFrame:
        """One row per group. Sums that do not fit are NULL and noted."""
        if has_partials(group):
            return self.finished(group, partial(group, rows), passes)
        sums = tuple(aggregate for aggregate in group.aggregates if aggregate.entry.lenient is not None)
        if sums:
            part = replace(group, aggregates=sums)
            self.finished(part, partial(part, rows), passes)
        read = _tolerant(group)
        return evaluate(replace(read, input=_scan("rows", group.input.schema)), {0: rows})

    def finished(self, group: Group, merged: pl.DataFrame, passes: Term | None) -> pl.DataFrame:
        """One row per group from merged partial results, with the same rule for sums."""
        rows = finished(_tolerant(group), merged)
        for state in states(group):
            if state.form is not Form.INTEGER_SUM or not state.fails:
                continue
            name = state.aggregate.name
            high, low = (merged.get_column(state.column(part)) for part in ("hi", "lo"))
            too_large = high.is_not_null() & rows.get_column(name).is_null()
            if not too_large.any():
                continue
            totals = [h * 2**32 + lo for h, lo in zip(high.filter(too_large), low.filter(too_large), strict=True)]
            beyond = rows.filter(too_large).with_columns(pl.Series("\0total", list(map(str, totals))))
            for row in _passing(beyond, passes, group.schema).iter_rows(named=True):
                error = sum_out_of_range(name, state.result, int(row.pop("\0total")))
                self.aside.append(SetAside(OVERFLOW, name, row, group.schema, error))
        return rows

    def totalled(self, node: Imbed, total: Total, passes: Term | None) -> pl.DataFrame:
        """The rows of groups with a sum of halves, by the same rule as other sums."""
        group, schema, name = node.input, node.input.schema, node.name
        while isinstance(group, Imbed):
            group = group.input
        keys = group.keys if isinstance(group, Group) else self.grouped_by
        rows = self.rows_of(node.input, passes)
        rows = rows.with_columns(compile_term(total.term(lenient=True), schema).alias(name))
        halves = (total.high.name, total.low.name)
        # Of a half that is beyond its type is told where that is.
        beyond = rows.filter(pl.col(name).is_null(), *(pl.col(half).is_not_null() for half in halves))
        shown = (*keys, name)
        for row in _passing(beyond, passes, schema).iter_rows(named=True):
            error = sum_out_of_range(name, BIGINT, total.exact(*(row[half] for half in halves)))
            noted = {key: row[key] for key in shown}
            self.aside.append(SetAside(OVERFLOW, name, noted, node.schema, error))
        return rows

    def _pairs(self, node: Product | Join, passes: Term | None) -> Iterator[pl.DataFrame]:
        left, right = node.left, node.right
        left_rows = self.rows_of(left, _over(passes, left.schema.keys()))
        right_rows = self.rows_of(right, _over(passes, right.schema.keys()))
        ours, others = _scan("left", left.schema), _scan("right", right.schema)
        if isinstance(node, Product):
            yield from evaluate_pieces(Product(ours, others), {0: left_rows, 1: right_rows})
            return
        both = Schema((*left.schema.attributes, *right.schema.attributes))
        plain, hard = split_by_failure(node.condition, both)
        if hard == TRUE:
            yield from evaluate_pieces(Join(ours, others, node.condition, node.kind), {0: left_rows, 1: right_rows})
            return
        row = Attribute(_LEFT, BIGINT, nullable=False)
        marked = left_rows.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(_LEFT))
        read = Join(_scan("left", Schema((*left.schema.attributes, row))), others, plain, "inner")
        failed: list[pl.Series] = []
        partnered: list[pl.Series] = []
        for pairs in evaluate_pieces(read, {0: marked, 1: right_rows}):
            fine = self.evaluable(pairs, hard, both, _over(passes, both.keys()))
            matched = fine.filter(compile_term(hard, both))
            if node.kind == "inner":
                yield only(matched, node.schema.names)
                continue
            failed.append(_failed_rows(pairs, fine))
            partnered.append(matched.get_column(_LEFT).unique())
        if node.kind == "inner":
            return
        # Where a condition has no value, neither that a row has a partner nor that it has none is known.
        known = marked.filter(~pl.col(_LEFT).is_in(pl.concat(failed).implode()))
        has_partner = known.get_column(_LEFT).is_in(pl.concat(partnered).implode())
        if node.kind in ("semi", "anti"):
            yield only(known.filter(has_partner if node.kind == "semi" else ~has_partner), node.schema.names)
            return
        # Pairs of a row may be in several pieces, and the last may tell that it goes: so they are made once more.
        for pairs in evaluate_pieces(read, {0: known, 1: right_rows}):
            yield only(pairs.filter(compile_term(hard, both)), node.schema.names)
        padding = (pl.lit(None, type_).alias(name) for name, type_ in right_rows.schema.items())
        yield only(known.filter(~has_partner).with_columns(padding), node.schema.names)

    def evaluable(self, rows: pl.DataFrame, term: Term, schema: Schema, passes: Term | None) -> pl.DataFrame:
        """The rows for which a term has a value. Each other row is noted in the increment in which it passes."""
        if not can_fail(term, schema) or not rows.height:
            return rows
        error = compile_pair(term, schema).error
        assert error is not None
        numbered = rows.with_columns(pl.int_range(pl.len()).alias("\0n"))
        fails = numbered.select("\0n", error.is_not_null().alias("\0fails")).get_column("\0fails")
        if not fails.any():
            return rows
        gone = _passing(only(rows.filter(fails), schema.names), passes, schema)
        if gone.height:
            operands = gone.select(sorted(attributes_of(term)) or schema.names)  # a constant reads nothing
            error_of = TermFailures.of(term, schema).error
            self.aside.append(SetAsideRows.of(UNEVALUABLE, gone, schema, operands, error_of))
        return rows.filter(~fails)


def lenient_increment(
    query: QueryPlan, leaves: Mapping[int, pl.DataFrame], old: Progress, new: Progress
) -> tuple[pl.DataFrame, list[SetAside]]:
    """New result rows between the progress `old` and `new`, and what was set aside on the way to them.

    A row is noted in the increment in which it would pass; where it lacks a promised attribute, in each that reads it.
    """
    schema = query.facts.output.schema
    passes = query.passes(old, new)
    walk = Lenient(leaves, {total.term(lenient=False): total for total in query.totals})
    if query.grouping is not None:
        over = (
            None
            if query.leaves[0].occurrence is None
            else _over(_through(query.tree, passes), query.grouping.schema.keys())
        )
        walk.grouped_by = query.grouping.keys
        walk.leaves = {0: walk.finished(query.grouping, merge(query.grouping, leaves[0]), over)}
    rows = only(walk.rows_of(query.tree, passes), schema.names)
    return keep_true(rows, passes, schema), walk.aside


def _through(node: Node, passes: Term | None) -> Term | None:
    """A pass condition over the rows of the one leaf of row-wise operators."""
    match node:
        case Select(input_) | Project(input_):
            return _through(input_, passes)
        case Rename(input_) | Imbed(input_):
            return _through(input_, _below(passes, node))
        case Scan():
            return passes
        case _:
            return None


def _below(passes: Term | None, node: Rename | Imbed) -> Term | None:
    """The condition over the rows below names or a new attribute; None where it reads one that may have no value, and
    where it is too large.
    """
    if passes is None:
        return None
    if isinstance(node, Imbed) and node.name in attributes_of(passes) and can_fail(node.term, node.input.schema):
        return None
    below = term_below(passes, node)
    return below if size_of(below) <= MOST_OPERATIONS else None


def _over(passes: Term | None, names: object) -> Term | None:
    """The condition if it reads these attributes only."""
    return passes if passes is not None and attributes_of(passes) <= set(names) else None  # type: ignore[call-overload]


def _passing(rows: pl.DataFrame, passes: Term | None, schema: Schema) -> pl.DataFrame:
    return rows if passes is None else keep_true(rows, passes, schema)


def _failed_rows(pairs: pl.DataFrame, fine: pl.DataFrame) -> pl.Series:
    """The left rows of the pairs that are not among those that can be evaluated."""
    before, after = (rows.group_by(_LEFT).len() for rows in (pairs, fine))
    compared = before.join(after, on=_LEFT, how="left", suffix=" fine")
    return compared.filter(pl.col("len") != pl.col("len fine").fill_null(0)).get_column(_LEFT)


def _tolerant(group: Group) -> Group:
    """The grouping, with sums that are NULL where they do not fit."""
    return replace(group, aggregates=tuple(aggregate.lenient() for aggregate in group.aggregates))


def _scan(name: str, schema: Schema) -> Scan:
    """The current rows as a scan."""
    return Scan(StreamDef(name, schema, static=True))
