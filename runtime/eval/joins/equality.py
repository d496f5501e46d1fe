"""Joins by equal keys alone, and of small frames by any condition. Polars does them by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term, call, conjunction
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import DOUBLE
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.join_parts import Equality, JoinParts, Range

_ROW = "\0left row"


@dataclass(frozen=True, slots=True)
class Key:
    """A column of the left side that has to equal one of the right. With `null_safe` NULL equals NULL."""

    left: pl.Expr
    right: pl.Expr
    null_safe: bool


@lru_cache(maxsize=1024)
def hash_keys(equalities: tuple[Equality, ...], both: Schema) -> tuple[Key, ...]:
    """Keys as Polars joins them. A double becomes two: its value without NaN, and whether it is NaN.

    Polars 2.1 finds no partners for NaN where a single key is sorted, as a frame of one row is by itself.
    """
    keys = []
    for equality in equalities:
        left, right = compile_term(equality.left, both), compile_term(equality.right, both)
        if term_type(equality.left, both) == DOUBLE:
            keys.append(Key(left.fill_nan(0.0), right.fill_nan(0.0), equality.null_safe))
            left, right = left.is_nan(), right.is_nan()
        keys.append(Key(left, right, equality.null_safe))
    return tuple(keys)


def equi_join(
    left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts, kind: JoinKind, names: tuple[str, ...]
) -> pl.DataFrame:
    """A join by equal keys, and conditions on one side. `names` are the columns that it yields."""
    if parts.right:
        right = right.filter(compile_term(conjunction(parts.right), both))
    keys = hash_keys(parts.equalities, both)
    if parts.left:
        condition = compile_term(conjunction(parts.left), both)
        if kind == "inner":
            left = left.filter(condition)
        else:  # a left row that fails it has a key that no right row has
            keys = (*keys, Key(condition.fill_null(value=False), pl.lit(value=True), null_safe=False))
    return _join_by(keys, left, right, kind)[:, list(names)]


def join_product(
    left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts, kind: JoinKind
) -> pl.DataFrame:
    """The join of two small frames: lists all pairs with equal keys, and filters them by the rest of the condition."""
    numbered = left.with_row_index(_ROW)
    keys = hash_keys(parts.equalities, both)
    pairs = _join_by(keys, numbered, right, "inner") if keys else numbered.join(right, how="cross")
    rest = (*parts.left, *parts.right, *parts.rest, *range_terms(parts.ranges))
    if rest:
        pairs = pairs.filter(compile_term(conjunction(rest), both))
    if kind in ("semi", "anti"):
        return numbered.join(pairs, on=_ROW, how=kind)[:, left.columns]
    joined = pairs[:, [*left.columns, *right.columns]]
    if kind == "inner":
        return joined
    alone = numbered.join(pairs, on=_ROW, how="anti")[:, left.columns]
    return pl.concat([joined, alone.with_columns(pl.lit(None, t).alias(c) for c, t in right.schema.items())])


def range_terms(ranges: tuple[Range, ...]) -> tuple[Term, ...]:
    """The ranges as terms."""
    return tuple(call("lt" if r.strict else "le", r.left, r.right) for r in ranges)


def _join_by(keys: tuple[Key, ...], left: pl.DataFrame, right: pl.DataFrame, kind: JoinKind) -> pl.DataFrame:
    names = [f"\0key {i}" for i in range(len(keys))]
    keyed_left = left.with_columns(key.left.alias(name) for key, name in zip(keys, names, strict=True))
    keyed_right = right.with_columns(key.right.alias(name) for key, name in zip(keys, names, strict=True))
    nulls_equal = any(key.null_safe for key in keys)
    if nulls_equal:  # of all keys; what must not equal NULL leaves the right side
        plain = [pl.col(name).is_not_null() for key, name in zip(keys, names, strict=True) if not key.null_safe]
        keyed_right = keyed_right.filter(*plain) if plain else keyed_right
    return keyed_left.join(keyed_right, on=names, how=kind, nulls_equal=nulls_equal)
