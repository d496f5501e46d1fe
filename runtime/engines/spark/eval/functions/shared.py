"""Kernels that Spark has no equal form of: the form in Polars, over batches of Arrow in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import polars as pl
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.terms import Attr
from tidegate.algebra.typed.kernels import ATTRIBUTE, Constant
from tidegate.algebra.typed.operations import KERNELS
from tidegate.algebra.typed.terms import TypedTerm, type_range
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.eval.functions.frame import Form

#: What Spark holds the values of these in; all others are held as bigint.
_HELD: Final = {Kind.BOOLEAN: "boolean", Kind.DOUBLE: "double", Kind.STRING: "string"}
_ARROW: Final = {"boolean": pa.bool_(), "double": pa.float64(), "string": pa.string(), "bigint": pa.int64()}


def by_polars(name: str) -> Form[Column]:
    """The kernel of this name as the embedded engine computes it."""

    def over(term: TypedTerm, *given: Any) -> Column:
        types = tuple(arg.type for arg in term.args)
        operands = given[: len(types)]
        sql_type = _HELD.get(term.type.kind, "bigint")
        udf: Any = arrow_udf  # its overloads know no number of arrays
        column: Column = udf(_computed(name, types, term.type, term.constants, sql_type), sql_type)(*operands)
        return column

    return Form(over, typed=True, null_fails=KERNELS[name].failure is not None, once=True)


def _computed(
    name: str, types: tuple[DataType, ...], result: DataType, constants: tuple[Constant, ...], sql_type: str
) -> Callable[..., Any]:
    """The function that a worker runs; it takes plain values along alone."""

    def computed(*arrays: pa.Array) -> pa.Array:
        from tidegate.runtime.eval.terms import PolarsTerms

        leaves = tuple(
            TypedTerm(ATTRIBUTE, (), type_, Attr(str(place)), nullable=True, range=type_range(type_))
            for place, type_ in enumerate(types)
        )
        term = TypedTerm(KERNELS[name], leaves, result, Attr(""), nullable=True, constants=constants)
        value = PolarsTerms.forms[name].over(term, [pl.col(leaf.source.name) for leaf in leaves])  # type: ignore[union-attr]
        rows = pl.DataFrame({str(place): pl.from_arrow(array) for place, array in enumerate(arrays)})
        return rows.select(value.alias("value")).get_column("value").to_arrow().cast(_ARROW[sql_type])

    return computed


def whole_groups(aggregate: Aggregate, argument: DataType, result: DataType) -> Callable[[Column], Column]:
    """An aggregate that keeps every value of a group, over lists of these."""

    def computed(groups: pl.Series) -> pl.Series:
        from tidegate.runtime.eval.aggregates.whole import whole_groups as of_lists

        return of_lists(aggregate, argument, result, groups)

    return _over_batches(computed, _HELD.get(result.kind, "bigint"))


def sketch_entries(sketch: Sketch, argument: DataType) -> Callable[[Column], Column]:
    """The places of values in a sketch, each with its number."""

    def computed(values: pl.Series) -> pl.Series:
        from tidegate.runtime.eval.aggregates.sketches import entries

        return entries(sketch, argument, values)

    return _over_batches(computed, "bigint")


def counted_sketches(argument: DataType) -> Callable[[Column], Column]:
    """The sketches of values that count several times."""

    def computed(pairs: pl.Series) -> pl.Series:
        from tidegate.runtime.eval.aggregates.sketches import counted

        return counted(argument, pairs)

    return _over_batches(computed, "string")


def merged_sketches(sketch: Sketch) -> Callable[[Column], Column]:
    """The sketches of groups, over lists of places or of sketches."""

    def computed(groups: pl.Series) -> pl.Series:
        from tidegate.runtime.eval.aggregates.sketches import merged

        return merged(sketch, groups)

    return _over_batches(computed, "string")


def sketch_results(aggregate: Aggregate, result: DataType) -> Callable[[Column], Column]:
    """What sketches say."""

    def computed(texts: pl.Series) -> pl.Series:
        from tidegate.runtime.eval.aggregates.sketches import results

        return results(aggregate, result, texts)

    return _over_batches(computed, _HELD.get(result.kind, "bigint"))


def _over_batches(computed: Callable[[pl.Series], pl.Series], sql_type: str) -> Callable[[Column], Column]:
    """A function of Polars, over batches of Arrow."""

    def over(batch: pa.Array) -> pa.Array:
        values: Any = pl.from_arrow(batch)
        return computed(values).to_arrow().cast(_ARROW[sql_type])

    udf: Any = arrow_udf
    compute: Callable[[Column], Column] = udf(over, sql_type)
    return compute
