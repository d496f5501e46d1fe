"""Queries over finite relations as Spark DataFrames: every operator through the DataFrame API (TSA Def. 12 to 18)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from operator import and_
from types import MappingProxyType
from typing import Final, assert_never

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.algebra.errors import InternalError
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
    children,
    occurrences,
    with_children,
)
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import Term, call
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.typed.terms import TypedTerm, typed_nodes
from tidegate.algebra.types import DOUBLE
from tidegate.runtime.engines.spark.eval.aggregates import aggregate, same_zero
from tidegate.runtime.engines.spark.eval.column_cache import kept, kept_term
from tidegate.runtime.engines.spark.eval.names import NamedFrame, col, renamed
from tidegate.runtime.engines.spark.eval.terms import SparkTerms
from tidegate.runtime.engines.spark.setup.session import SHUFFLE_PARTITIONS
from tidegate.runtime.eval.aggregates.look_back_form import LookBack, look_back
from tidegate.runtime.eval.columns import held_arrow_type, spark_schema
from tidegate.runtime.eval.functions.frame import is_leaf, leaf_name
from tidegate.runtime.eval.relational import evaluate as in_polars
from tidegate.runtime.plan.join_parts import join_parts
from tidegate.runtime.plan.shared_parts import Later

#: Shares of the keys of a look-up for each partition of a shuffle: a task has one of them in memory at a time.
SHARES: Final = 16
_SHARE: Final = "share"
_JOINS = {"inner": "inner", "left": "left_outer", "semi": "left_semi", "anti": "left_anti"}


def evaluate(
    node: Node,
    leaves: Mapping[int, DataFrame],
    ready: Mapping[tuple[int, Node], Later[DataFrame]] = MappingProxyType({}),
    *,
    first: int = 0,
) -> DataFrame:
    """The bag of rows that a query yields; columns are the attributes of its schema, in order.

    `leaves`: rows by occurrence, that is by the place of the reference among all, from the left and from `first`.
    `ready`: parts that others have too, by the place of their first leaf. Inside, every column has a generated name, so
    that neither case, dots nor a DataFrame used twice can confuse Spark.
    """
    return _Evaluation(leaves, ready, first).evaluate(node).as_users_see_it()


class _Evaluation:
    """One evaluation: the place of the next leaf, and the column names given so far."""

    def __init__(
        self, leaves: Mapping[int, DataFrame], ready: Mapping[tuple[int, Node], Later[DataFrame]], first: int
    ) -> None:
        self._leaves, self._ready, self._place = leaves, ready, first
        self._names: Iterator[str] = (f"c{number}" for number in count())

    def evaluate(self, node: Node) -> NamedFrame:
        if self._ready and (part := self._ready.get((self._place, node))) is not None:
            self._place += len(occurrences(node))
            return self._scan(part.rows, node.schema)
        match node:
            case Scan(stream):
                self._place += 1
                return self._scan(self._leaves[self._place - 1], stream.schema)
            case Select(input_, condition):
                rows = self.evaluate(input_)
                return NamedFrame(rows.frame.filter(kept_term(condition, input_.schema, rows.columns)), rows.columns)
            case Project(input_, names):
                rows = self.evaluate(input_)
                return NamedFrame(rows.frame, {name: rows.columns[name] for name in names})
            case Rename(input_, pairs):
                rows, new = self.evaluate(input_), dict(pairs)
                return NamedFrame(rows.frame, {new.get(name, name): column for name, column in rows.columns.items()})
            case Imbed(input_, name, term):
                rows, column = self.evaluate(input_), next(self._names)
                value = kept_term(term, input_.schema, rows.columns)
                return NamedFrame(rows.frame.withColumn(column, value), {**rows.columns, name: column})
            case Group(input_):
                if (found := _by_shares(node)) is not None:
                    return self._looked_back(found)
                return self._fresh(aggregate(node, self.evaluate(input_)))
            case Distinct(input_):
                rows = self.evaluate(input_)
                return NamedFrame(rows.narrowed().distinct(), rows.columns)
            case Product(left, right):
                rows, partners = self.evaluate(left), self.evaluate(right)
                return NamedFrame(rows.narrowed().crossJoin(partners.narrowed()), {**rows.columns, **partners.columns})
            case Join(left, right):
                rows = self.evaluate(left)
                return self._join(node, rows, self.evaluate(right))
            case Union(inputs):
                return self._union([self.evaluate(input_) for input_ in inputs])
            case Difference(left, right):
                rows = self.evaluate(left)
                return self._difference(rows, self.evaluate(right))
            case OrderedNode():
                raise InternalError("TG490", "an operator that gathers events in order is the root of its query")
            case _:
                assert_never(node)

    def _scan(self, leaf: DataFrame, schema: Schema) -> NamedFrame:
        columns = dict(zip(schema.names, self._names, strict=False))
        return NamedFrame(leaf.select(*(renamed(name, new) for name, new in columns.items())), columns)

    def _fresh(self, rows: NamedFrame) -> NamedFrame:
        """The same rows, each attribute in a column of its own and new name."""
        columns = dict(zip(rows.columns, self._names, strict=False))
        frame = rows.frame.select(*(renamed(rows.columns[name], column) for name, column in columns.items()))
        return NamedFrame(frame, columns)

    def _looked_back(self, found: LookBack) -> NamedFrame:
        """What left rows look up, share by share of the keys, without a list of the pairs (decision 33)."""
        (join,), group = found.joins, found.asked
        left = self.evaluate(join.left)
        right = self.evaluate(join.right)
        keys = join_parts(join.condition, join.left.schema, join.right.schema).equalities
        shares = SHARES * int(left.frame.sparkSession.conf.get(SHUFFLE_PARTITIONS) or 1)
        ones = _shared_out(left, [key.left for key in keys], join.left.schema, shares)
        others = _shared_out(right, [key.right for key in keys], join.right.schema, shares)
        columns = dict(zip(group.schema.names, self._names, strict=False))
        own = Schema(tuple(attribute.renamed(columns[attribute.name]) for attribute in group.schema.attributes))
        both = ones.groupBy(_SHARE).cogroup(others.groupBy(_SHARE))
        return NamedFrame(both.applyInArrow(_looking_back(found, own), spark_schema(own)), columns)

    def _join(self, node: Join, left: NamedFrame, right: NamedFrame) -> NamedFrame:
        """A join whose condition is split, so that Catalyst sees equal keys apart from what may fail."""
        columns = {**left.columns, **right.columns}
        condition = _join_condition(node, tuple(columns.items()))
        if node.kind != "inner" and _in_python(node):
            return self._join_by_pairs(node, left, right, condition)
        joined = left.narrowed().join(right.narrowed(), condition, _JOINS[node.kind])
        return NamedFrame(joined, columns if node.kind in ("inner", "left") else left.columns)

    def _join_by_pairs(self, node: Join, left: NamedFrame, right: NamedFrame, condition: Column) -> NamedFrame:
        """A left, semi- or anti-join by the pairs of the inner join: Spark takes no Python over both sides in other
        conditions.

        Equal rows of the left have the same partners, so the rows that have one are told by their values.
        """
        columns = {**left.columns, **right.columns}
        pairs = left.narrowed().join(right.narrowed(), condition, "inner")
        partnered = self._fresh(NamedFrame(pairs, left.columns))
        same = reduce(and_, [col(c).eqNullSafe(col(partnered.columns[name])) for name, c in left.columns.items()])
        kind = "left_semi" if node.kind == "semi" else "left_anti"
        rows = left.narrowed().join(partnered.frame.distinct(), same, kind)
        if node.kind != "left":
            return NamedFrame(rows, left.columns)
        types = dict(right.narrowed().dtypes)
        nulls = [F.lit(None).cast(types[column]).alias(column) for column in right.columns.values()]
        return NamedFrame(pairs.unionAll(rows.select("*", *nulls)), columns)

    def _union(self, inputs: list[NamedFrame]) -> NamedFrame:
        first = self._fresh(inputs[0])
        frame = first.frame
        for rows in inputs[1:]:
            frame = frame.unionAll(rows.frame.select(*(col(rows.columns[name]) for name in first.columns)))
        return NamedFrame(frame, first.columns)

    def _difference(self, left: NamedFrame, right: NamedFrame) -> NamedFrame:
        condition = reduce(and_, [col(c).eqNullSafe(col(right.columns[name])) for name, c in left.columns.items()])
        return NamedFrame(left.narrowed().join(right.narrowed(), condition, "left_anti"), left.columns)


def _by_shares(node: Group) -> LookBack | None:
    """The grouping as one of what left rows look up by keys that are keys of the group: then rows that have these keys
    alike are all of a group's.
    """
    found = look_back(node, at_most=1)
    if found is None:
        return None
    keys = {equality.left for equality in found.looks[0].plain.equalities}
    return found if keys and keys <= found.key_terms else None


def _shared_out(rows: NamedFrame, keys: Sequence[Term], schema: Schema, shares: int) -> DataFrame:
    """The rows, each with the number of its share: equal keys are in one. NULL, which some keys take as equal, too."""
    values = [kept_term(key, schema, rows.columns) for key in keys]
    values = [
        same_zero(value) if term_type(key, schema) == DOUBLE else value for key, value in zip(keys, values, strict=True)
    ]
    return rows.narrowed().withColumn(_SHARE, F.pmod(F.xxhash64(*values), F.lit(shares)))


def _looking_back(found: LookBack, schema: Schema) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """What a worker does with the rows of a share; `schema` has the names of the result's columns there."""
    (join,) = found.joins
    sides = [StreamDef(name, side.schema, static=True) for name, side in (("left", join.left), ("right", join.right))]
    own = _over(found.asked, join, replace(join, left=Scan(sides[0]), right=Scan(sides[1])))

    def looked_up(left: pa.Table, right: pa.Table) -> pa.Table:
        rows = {}
        for place, (table, side) in enumerate(zip((left, right), sides, strict=True)):
            attributes = table.select(range(len(side.schema.names))).rename_columns(list(side.schema.names))
            rows[place] = pl.DataFrame(attributes)
        made = in_polars(own, rows)
        types = [held_arrow_type(attribute.type) for attribute in schema.attributes]
        arrays = [
            made.get_column(name).to_arrow().cast(type_) for name, type_ in zip(own.schema.names, types, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=list(schema.names))

    return looked_up


def _over(node: Node, join: Join, other: Join) -> Node:
    """What stands above a join, one node above the other, above another one."""
    return other if node is join else with_children(node, tuple(_over(below, join, other) for below in children(node)))


def _in_python(node: Join) -> bool:
    """Whether a part of the condition that Python computes reads both sides."""
    left, right = frozenset(node.left.schema), frozenset(node.right.schema)
    both = Schema((*node.left.schema.attributes, *node.right.schema.attributes))
    parts = (part for part in typed_nodes(resolve(node.condition, both)) if part.args)
    shared = (part for part in parts if (form := SparkTerms.forms.get(part.kernel.name)) is not None and form.once)
    return any(names & left and names & right for part in shared if (names := _read(part)))


def _read(term: TypedTerm) -> frozenset[str]:
    return frozenset(leaf_name(leaf) for leaf in typed_nodes(term) if is_leaf(leaf))


@kept
def _join_condition(node: Join, columns: tuple[tuple[str, str], ...]) -> Column:
    both = Schema((*node.left.schema.attributes, *node.right.schema.attributes))
    parts = join_parts(node.condition, node.left.schema, node.right.schema)
    terms = [
        *(call("eq_null_safe" if e.null_safe else "eq", e.left, e.right) for e in parts.equalities),
        *(call("lt" if r.strict else "le", r.left, r.right) for r in parts.ranges),
        *parts.left,
        *parts.right,
        *parts.rest,
    ]
    return reduce(and_, [kept_term(term, both, dict(columns)) for term in terms], F.lit(True))
