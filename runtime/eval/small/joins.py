"""Joins of small batches: the condition filters all pairs, or those with equal keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.algebra.nodes import Join, JoinKind
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term, attributes_of, conjunction
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BOOLEAN, Kind
from tidegate.runtime.eval.joins.equality import range_terms
from tidegate.runtime.eval.small.terms import Value, array_term, column_of
from tidegate.runtime.plan.join_parts import JoinParts, join_parts
from tidegate.runtime.rows import Array, SmallRows, Unsupported, are_few_pairs, numbered

JoinStep = Callable[[SmallRows, SmallRows], SmallRows]

#: Pairs of rows up to which a join compares all of them, whatever their keys.
SMALL_PRODUCT: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class _Column:
    """A term over one side of a join, or over pairs, as a column; `reads` are the columns of which it is made."""

    value: Value
    kind: Kind
    reads: frozenset[str]

    def of(self, rows: SmallRows) -> Array:
        return column_of(self.value, self.kind, rows)


@dataclass(frozen=True, slots=True)
class _Pairing:
    """How a join finds pairs: keys (left, right), then conditions on pairs and on each side."""

    kind: JoinKind
    keys: tuple[tuple[_Column, _Column], ...]
    rest: _Column | None
    left: _Column | None
    right: _Column | None

    def join(self, left: SmallRows, right: SmallRows) -> SmallRows:
        """The joined rows: left rows for the kinds semi and anti, else pairs."""
        if self.right is not None:
            right = right.where(self.right.of(right))
        eligible = None if self.left is None else self.left.of(left)
        if eligible is not None and self.kind != "anti":
            left, eligible = left.where(eligible), None
        lefts, rights = self._candidates(left, right)
        if self.rest is not None:
            # Most candidates are no pairs: of these no more is copied than tells so.
            reads = self.rest.reads
            holds = self.rest.of(_pasted(_of(left, reads), _of(right, reads), lefts, rights))
            lefts, rights = lefts[holds], rights[holds]
        if self.kind == "inner":
            return _pasted(left, right, lefts, rights)
        matched = np.zeros(left.height, dtype=np.bool_)
        matched[lefts] = True
        if eligible is not None:
            matched &= eligible
        return left.where(matched if self.kind == "semi" else ~matched)

    def _candidates(self, left: SmallRows, right: SmallRows) -> tuple[Array, Array]:
        """The row numbers of both sides of each pair whose keys are equal."""
        if left.height * right.height <= SMALL_PRODUCT or not self.keys:
            if not are_few_pairs(left.height * right.height):
                raise Unsupported
            equal = np.ones((left.height, right.height), dtype=np.bool_)
            for left_key, right_key in self.keys:
                equal &= left_key.of(left)[:, None] == right_key.of(right)[None, :]
            places = np.nonzero(equal)
            return places[0], places[1]
        numbers, _ = numbered(
            np.concatenate([left_key.of(left), right_key.of(right)]) for left_key, right_key in self.keys
        )
        return _equal(numbers[: left.height], numbers[left.height :])


def small_join(node: Join) -> JoinStep | None:
    """The join of two sides. None for a join that pads with NULL, or whose condition only Polars supports."""
    both = Schema((*node.left.schema.attributes, *node.right.schema.attributes))
    parts = join_parts(node.condition, node.left.schema, node.right.schema)
    terms = [term for equality in parts.equalities for term in (equality.left, equality.right)]
    keys = [_column(term, both) for term in terms]
    known = [key for key in keys if key is not None]
    conditions = [_condition(some, both) for some in (_rest(parts), parts.left, parts.right)]
    if node.kind == "left" or len(known) < len(keys) or not all(fine for fine, _ in conditions):
        return None
    pairs = tuple(zip(known[::2], known[1::2], strict=True))
    rest, left, right = (column for _, column in conditions)
    return _Pairing(node.kind, pairs, rest, left, right).join


def _rest(parts: JoinParts) -> Sequence[Term]:
    return (*range_terms(parts.ranges), *parts.rest)


def _column(term: Term, both: Schema) -> _Column | None:
    value = array_term(term, both)
    return None if value is None else _Column(value, term_type(term, both).kind, attributes_of(term))


def _condition(terms: Sequence[Term], both: Schema) -> tuple[bool, _Column | None]:
    """Whether a conjunction is supported, and its column; no column where it has no part."""
    if not terms:
        return True, None
    condition = conjunction(list(terms))
    value = array_term(condition, both)
    return value is not None, None if value is None else _Column(value, BOOLEAN.kind, attributes_of(condition))


def _equal(lefts: Array, rights: Array) -> tuple[Array, Array]:
    """All pairs of row numbers with equal group numbers; `Unsupported` where they are many."""
    order = np.argsort(rights, kind="stable")
    ordered = rights[order]
    starts = np.searchsorted(ordered, lefts, "left")
    counts = np.searchsorted(ordered, lefts, "right") - starts
    if not are_few_pairs(counts.sum()):
        raise Unsupported
    left = np.repeat(np.arange(len(lefts)), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return left, order[np.repeat(starts, counts) + within]


def _of(rows: SmallRows, names: frozenset[str]) -> SmallRows:
    """The columns of these names that the rows have."""
    return rows.only([name for name in rows.columns if name in names])


def _pasted(left: SmallRows, right: SmallRows, left_rows: Array, right_rows: Array) -> SmallRows:
    columns = {name: column[left_rows] for name, column in left.columns.items()}
    return SmallRows(columns | {name: column[right_rows] for name, column in right.columns.items()}, len(left_rows))
