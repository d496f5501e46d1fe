"""Rows that are settled as one row per class (rules R31 to R33)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, BOOLEAN
from tidegate.analysis.state.folding.classes import Best
from tidegate.runtime.eval.aggregates.partials import aggregate
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.filters import kept
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.folding.fold import Fold, SettledCondition

_ROW: Final = "\0row"


def folded(rows: pl.DataFrame, fold: Fold, settled: SettledCondition, schema: Schema) -> pl.DataFrame:
    """The stored rows with those that are settled as one row per class.

    Rows whose partial results would not fit their types stay as they are: to fold none of them does no harm.
    """
    condition = compile_term(settled.condition, schema)
    old = kept(rows, condition)
    group = _classes(fold, schema, len(settled.truths))
    keys = [compile_term(term, schema).alias(f"\0{j}") for j, term in enumerate((*fold.keys, *settled.truths))]
    try:
        groups = aggregate(group, old.with_columns(*keys, pl.int_range(old.height, dtype=pl.Int64).alias(_ROW)))
    except EvaluationError:
        return rows
    if groups.height == old.height:
        return rows
    merged = [groups[a.name] for a in fold.merged]
    classes = old[groups[_ROW]].with_columns(*merged)
    return pl.concat([rows.filter(~condition), only(classes, rows.columns)])


@lru_cache(maxsize=256)
def _classes(fold: Fold, schema: Schema, truths: int) -> Group:
    """The grouping of settled rows by what tells classes apart: the row that stands for each, and merged columns."""
    types = [*(term_type(term, schema) for term in fold.keys), *[BOOLEAN] * truths]
    keys = tuple(Attribute(f"\0{j}", type_) for j, type_ in enumerate(types))
    row = Attribute(_ROW, BIGINT, nullable=False)
    read = StreamDef("settled", Schema((*schema.attributes, *keys, row)), static=True)
    if fold.best is None:
        chosen = Aggregate(_ROW, Function.MIN, Attr(_ROW))
    else:
        attribute, best = fold.best
        chosen = Aggregate(
            _ROW, Function.LAST if best is Best.GREATEST else Function.FIRST, Attr(_ROW), Attr(attribute)
        )
    return Group(Scan(read), tuple(key.name for key in keys), (chosen, *fold.merged))
