"""Rows that are settled as one row per class (rules R31 to R33)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Term
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, BOOLEAN
from tidegate.analysis.state.folding.classes import Best
from tidegate.runtime.eval.aggregates.partials import final, partial
from tidegate.runtime.eval.aggregates.sketches import NUMBER_BITS, entries
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.aggregate_states import states
from tidegate.runtime.plan.folding.fold import Fold, SettledCondition
from tidegate.runtime.plan.folding.shards import BRANCHES, ROOT, FoldStep, ShardTree

_ROW: Final = "\0row"
#: Bits of a hash that choose among the shards below one.
_BITS: Final = BRANCHES.bit_length() - 1


def folded(rows: pl.DataFrame, fold: Fold, settled: SettledCondition, schema: Schema) -> pl.DataFrame:
    """The stored rows with those that are settled as one row per class.

    Rows of a class whose total would not fit its type, or be infinite where no value is, stay as they are: not to fold
    them does no harm.
    """
    is_settled = _is_settled(rows, settled, schema)
    old = rows.filter(is_settled)
    group = _classes(fold, schema, len(settled.truths))
    keys = [compile_term(term, schema).alias(f"\0{j}") for j, term in enumerate((*fold.keys, *settled.truths))]
    places = [column for name in fold.sketched for column in _places(old[name], _sketches(fold)[name], schema)]
    finite = [pl.col(name).is_finite().cast(pl.Int64).alias(_finite(name)) for name in _doubles(fold)]
    keyed = old.with_columns(*keys, *places, *finite, pl.int_range(old.height, dtype=pl.Int64).alias(_ROW))
    groups = _grouped(group, keyed, _doubles(fold))
    if groups.height == old.height:
        return rows
    unfolded = [rows.filter(~is_settled)]
    beyond = pl.any_horizontal(
        pl.col(_ROW) < 0,  # no total may be asked for
        *(pl.col(total).is_null() & (pl.col(_number(total)) > 0) for total in _totals(fold)),
        *(~pl.col(total).is_finite() & (pl.col(_finite(total)) == 1) for total in _doubles(fold)),
    ).fill_null(value=False)
    too_great, groups = groups.filter(beyond), groups.filter(~beyond)
    if too_great.height:
        unfolded.append(keyed.join(too_great, on=group.keys, how="semi", nulls_equal=True) if group.keys else keyed)
    classes = old[groups[_ROW]].with_columns(*(groups[partial.name] for partial in fold.merged))
    return pl.concat([only(part, rows.columns) for part in (*unfolded, classes)])


def _grouped(group: Group, rows: pl.DataFrame, doubles: Mapping[str, str]) -> pl.DataFrame:
    """The grouping of rows. Sums of doubles leave what they have lost to the columns for that."""
    partials = partial(group, rows)
    groups = final(group, partials)
    column = {state.aggregate.name: state.column for state in states(group)}
    sums = []
    for total, lost in doubles.items():
        whole, rest = partials[column[total]("sum")], partials[column[total]("comp")].fill_null(0.0)
        sums += [whole.alias(total), (rest + groups[lost]).alias(lost)]
    return groups.with_columns(sums)


def _sketches(fold: Fold) -> dict[str, Sketch]:
    """What is kept of the values of a column."""
    return {partial.name: sketch for partial in fold.merged if (sketch := partial.entry.sketch) is not None}


def _places(values: pl.Series, sketch: Sketch, schema: Schema) -> Iterator[pl.Series]:
    """The places of values in a sketch, and their numbers where the greatest counts."""
    found = entries(sketch, schema[values.name].type, values)
    if sketch.adds:
        yield found.alias(_place(values.name))
    else:
        yield (found // (1 << NUMBER_BITS)).alias(_place(values.name))
        yield (found % (1 << NUMBER_BITS)).alias(_rank(values.name))


def _is_settled(rows: pl.DataFrame, settled: SettledCondition, schema: Schema) -> pl.Expr:
    """Which rows are settled, as a filter of these rows."""
    holds = rows.select(compile_term(settled.condition, schema).fill_null(value=False).alias("")).to_series()
    return pl.lit(holds) if len(holds) == rows.height else pl.lit(bool(holds[0]))  # one value for all rows


def settled_apart(
    rows: pl.DataFrame, fold: Fold, settled: SettledCondition, schema: Schema
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Folded rows by shards: those that are settled, at the root of the tree, and the others."""
    is_settled = _is_settled(rows, settled, schema)
    yield shard_tree(fold).number(ROOT), rows.filter(is_settled)
    yield 0, rows.filter(~is_settled)


def shard_tree(fold: Fold) -> ShardTree:
    """The tree of shards over the hashes of class keys. Another version of Polars may hash differently."""
    return _tree(fold.keys)


@lru_cache(maxsize=256)
def _tree(keys: tuple[Term, ...]) -> ShardTree:
    return ShardTree.of(f"polars {pl.__version__} {keys}")


def sharded(rows: pl.DataFrame, fold: Fold, step: FoldStep, schema: Schema) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows by the nodes of the tree to which a step takes them."""
    depth, deeper = step.depths(rows.height)
    if depth == deeper or not fold.keys:
        yield step.node, rows
        return
    keys = [compile_term(term, schema).alias(str(j)) for j, term in enumerate(fold.keys)]
    node = pl.struct(keys).hash(0) // (1 << (64 - _BITS * deeper)) + BRANCHES**deeper
    parted = rows.with_columns(node.cast(pl.Int64).alias(_ROW)).partition_by(_ROW, include_key=False, as_dict=True)
    for (number,), part in sorted(parted.items()):
        yield number, part


def _number(total: str) -> str:
    """The column with how many values a total has."""
    return f"{total}{_ROW}"


def _place(column: str) -> str:
    return f"{column}{_ROW}place"


def _finite(column: str) -> str:
    return f"{column}{_ROW}finite"


def _doubles(fold: Fold) -> dict[str, str]:
    """The sums of doubles, each with the column of what it has lost."""
    lost = (partial for partial in fold.merged if partial.function is Function.SUM)
    return {partial.by.name: partial.name for partial in lost if isinstance(partial.by, Attr)}


def _rank(column: str) -> str:
    return f"{column}{_ROW}rank"


def _totals(fold: Fold) -> tuple[str, ...]:
    """The columns that are added up."""
    return tuple(partial.name for partial in fold.merged if partial.function is Function.SUM and partial.by is None)


@lru_cache(maxsize=256)
def _classes(fold: Fold, schema: Schema, truths: int) -> Group:
    """The grouping of settled rows by what tells classes apart: the row that stands for each, and merged columns."""
    types = [*(term_type(term, schema) for term in fold.keys), *[BOOLEAN] * truths]
    places = [Attribute(_place(name), BIGINT) for name in fold.sketched]
    keys = (*(Attribute(f"\0{j}", type_) for j, type_ in enumerate(types)), *places)
    ranked = [name for name, sketch in _sketches(fold).items() if not sketch.adds]
    rows = (Attribute(_ROW, BIGINT, nullable=False), *(Attribute(_rank(name), BIGINT) for name in ranked))
    rows = (*rows, *(Attribute(_finite(name), BIGINT) for name in _doubles(fold)))
    read = StreamDef("settled", Schema((*schema.attributes, *keys, *rows)), static=True)
    if fold.best is None:
        chosen = Aggregate(_ROW, Function.MIN, Attr(_ROW))
    else:
        attribute, best = fold.best
        chosen = Aggregate(
            _ROW, Function.LAST if best is Best.GREATEST else Function.FIRST, Attr(_ROW), Attr(attribute)
        )
    totals = [replace(partial, function=Function.TRY_SUM) for partial in fold.merged if partial.name in _totals(fold)]
    counts = [Aggregate(_number(total.name), Function.COUNT, total.argument) for total in totals]
    ends = [_end(partial) for partial in fold.merged if partial.name not in _totals(fold)]
    finite = [Aggregate(_finite(name), Function.MIN, Attr(_finite(name))) for name in _doubles(fold)]
    return Group(Scan(read), tuple(key.name for key in keys), (chosen, *totals, *counts, *ends, *finite))


def _end(partial: Aggregate) -> Aggregate:
    """Which value of a class is kept: at a place of a sketch that with the greatest number, or any."""
    match partial.entry.sketch:
        case None:
            return replace(partial, by=None) if partial.function is Function.SUM else partial
        case Sketch.DISTINCT:
            return Aggregate(partial.name, Function.LAST, partial.argument, Attr(_rank(partial.name)))
        case Sketch.QUANTILES:
            return Aggregate(partial.name, Function.MIN, partial.argument)
