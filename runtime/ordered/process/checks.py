"""What operators of users declare, checked at every step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.diagnostics.shown import kind_of
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.events import tied
from tidegate.algebra.ordered.process import Process, Reach, values_beside_fields
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import conjuncts
from tidegate.algebra.types import DataType
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.ordered.process.conforming import (
    conforming,
    failed,
    nothing,
    row_text,
    table_schema,
    without_operator,
    written,
    wrong,
)
from tidegate.runtime.ordered.row_arrays import PARTITION, counts
from tidegate.runtime.state.errors import is_out_of_memory

#: The step of an operator: events, tables and how far all events are there, to rows and tables.
Step = Callable[[pl.DataFrame, Mapping[str, pl.DataFrame], Reach], object]


def require_order(node: Process, events: pl.DataFrame, order: Sequence[str]) -> None:
    """`EvaluationError` TG304 where nothing says which of two events of a partition comes first."""
    twice = events.filter(pl.struct(order).is_duplicated()) if events.height else events
    if twice.height:
        raise tied(twice.get_column(node.time)[0], node.input.schema[node.time].type)


def called(
    node: Process,
    step: Step,
    events: pl.DataFrame,
    state: Mapping[str, pl.DataFrame],
    reach: Reach,
    partitions: int,
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """What the user's step yields, its tables of the declared columns; `EvaluationError` TG305 for anything else."""
    what, declared = type(node.operator).__name__, node.operator.tables
    try:
        returned = step(events, state, reach)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise failed(what, "step", type(node.operator).step, error, _missed(node, error)) from error
    if kept := values_beside_fields(node.operator):
        raise wrong(
            what, f"step keeps {kept[0]!r} in the object", hint="keep it in a table: a checkpoint has those alone"
        )
    rows, left = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    if not isinstance(rows, pl.DataFrame) or not isinstance(left, Mapping):
        got = " and ".join(map(kind_of, returned)) if isinstance(returned, tuple) else kind_of(returned)
        written = ", ".join(f"{name!r}: ..." for name in declared)
        raise wrong(
            what,
            f"step returned {got}, not rows and tables",
            hint=f"return a frame of Polars and the tables by their names: return rows, {{{written}}}",
        )
    if unknown := sorted({*left} - {*declared}):
        raise wrong(
            what,
            f"step returned a table {unknown[0]!r} that it does not declare",
            hint=(
                f"it declares {', '.join(map(repr, declared)) or 'none'}: return one of those, or add "
                f"{unknown[0]!r} to tables"
            ),
        )
    tables = {}
    for name, columns in declared.items():
        schema = table_schema(columns)
        table = left[name] if name in left else nothing(schema)
        tables[name] = conforming(what, f"table {name!r}", table, schema)
        _check_partitions(what, f"table {name!r}", tables[name], partitions)
    return rows, tables


def require_bounds(
    node: Process, tables: Mapping[str, pl.DataFrame], keys: pl.DataFrame, last: Int64Array, reach: Reach
) -> None:
    """`EvaluationError` TG305 for more rows of a partition than the operator declares, or rows of one for longer.

    By partition, `keys` has its keys and `last` the time of its last event.
    """
    what, over = type(node.operator).__name__, np.zeros(len(last), dtype=np.bool_)
    if node.kept_for is not None and reach.until is not None:
        over = last + node.kept_for <= reach.until
    for name, rows in tables.items():
        sizes = counts(rows, len(last))
        most = node.operator.most.get(name)
        if most is not None and (sizes > most).any():
            at = int(np.argmax(sizes))
            raise wrong(
                what,
                (
                    f"table {name!r} has {count_of(int(sizes[at]), 'row')} of {_partition(node, keys, at)}, and it "
                    f"declares {most} at most"
                ),
                hint=f"keep fewer, or declare more: most = {{{name!r}: {sizes[at]}}}",
            )
        if (sizes * over).any():
            at = int(np.argmax(sizes * over))
            type_ = node.input.schema[node.time].type
            ended, event = written(int(last[at]) + (node.kept_for or 0), type_), written(int(last[at]), type_)
            raise wrong(
                what,
                f"table {name!r} has {count_of(int(sizes[at]), 'row')} of {_partition(node, keys, at)}, whose "
                f"last event is at {event}; it is kept up to {ended} by kept_for, and "
                f"{written(reach.until, type_)} is reached",
                hint="keep nothing of a partition once kept_for is over, or declare a longer one",
            )


def _partition(node: Process, keys: pl.DataFrame, at: int) -> str:
    return f"the partition {row_text(keys.row(at, named=True), _types(node))}" if node.keys else "the one partition"


def _types(node: Process, table: str | None = None) -> dict[str, DataType]:
    """The types of a row of the result, or of a table with its keys."""
    if table is None:
        attributes = node.schema.attributes
    else:
        keys = (node.input.schema[key] for key in node.keys)
        attributes = (*keys, *table_schema(node.operator.tables[table]).attributes)
    return {attribute.name: attribute.type for attribute in attributes}


@dataclass(frozen=True, slots=True)
class Again:
    """Another way of doing a step, which has to come to the same: how it is done, and what lets a step differ then."""

    when: str
    mend: str

    def failed(self, node: Process, error: EvaluationError) -> EvaluationError:
        """What is told of a step that breaks its word in that way alone."""
        what = type(node.operator).__name__
        said = without_operator(what, error.message)
        return wrong(what, f"when {self.when}, {said}", hint=self.mend)


def require_equal(
    node: Process,
    kept: Mapping[str, pl.DataFrame],
    rows: pl.DataFrame,
    its: Mapping[str, pl.DataFrame],
    others: pl.DataFrame,
    again: Again,
) -> None:
    """`EvaluationError` TG305 where two ways of doing a step differ, in whatever order their rows are."""
    compared = [("rows", rows, others, _types(node))]
    compared += [(f"rows of table {name!r}", kept[name], its[name], _types(node, name)) for name in kept]
    for what, first, second, types in compared:
        if not first.sort(first.columns).equals(second.sort(second.columns)):
            raise wrong(
                type(node.operator).__name__,
                (
                    f"step {'yields' if what == 'rows' else 'keeps'} other {what} when {again.when}: "
                    f"{_difference(first, second, types)}"
                ),
                hint=again.mend,
            )


def _difference(first: pl.DataFrame, second: pl.DataFrame, types: Mapping[str, DataType]) -> str:
    """A row that only one of them has, or has more often."""
    fewer, more = (Counter(frame.iter_rows()) for frame in (first, second))
    row, how = next(((row, "not") for row in fewer - more), None) or next((row, "only") for row in more - fewer)
    return f"{row_text(dict(zip(first.columns, row, strict=True)), types)} is {how} there then"


def result_of(node: Process, rows: pl.DataFrame, keys: pl.DataFrame, partitions: int, reach: Reach) -> pl.DataFrame:
    """The rows as declared; `EvaluationError` TG305 for one that is complete too early or too late, or of which a
    relation is not true. `keys` has the keys of the partitions, of which there are `partitions`.
    """
    what, schema = type(node.operator).__name__, node.result.schema
    result = conforming(what, "its result", rows, schema)
    _check_partitions(what, "its result", result, partitions)
    for attribute in schema.attributes:
        if not attribute.nullable and result.get_column(attribute.name).null_count():
            raise wrong(
                what,
                f"a row has no {attribute.name}, which is declared not null",
                hint=f'yield a value, or leave such rows out: rows.drop_nulls("{attribute.name}")',
            )
    at = pl.col(node.completed_by)
    late = [at <= reach.after] if reach.after is not None else []
    late += [at > reach.until] if reach.until is not None else []
    for outside in late:
        if (bad := result.filter(outside)).height:
            type_ = schema[node.completed_by].type
            raise wrong(
                what,
                f"a row is complete at {node.completed_by} = {written(bad.get_column(node.completed_by)[0], type_)}, "
                f"and this step is about instants {_span(reach, type_)}",
                hint="yield a row in the step that reaches its instant: keep it until then, and do not yield it again",
            )
    for relation in conjuncts(node.result.relations):
        broken = ~evaluated(result, compile_term(relation, schema)).to_series().fill_null(value=False)
        if result.height and broken.any():
            row = result.filter(broken).row(0, named=True)
            at = row.pop(PARTITION)
            bad_row = (keys.row(at, named=True) if node.keys else {}) | row
            raise wrong(
                what,
                (
                    f"the declared relation {term_text(relation)} does not hold of the row "
                    f"{row_text(bad_row, _types(node))}"
                ),
                hint="yield rows of which it is true, or leave it out of relations=... in result",
            )
    return result


def _span(reach: Reach, type_: DataType) -> str:
    """The instants that a step is about."""
    after = f"after {written(reach.after, type_)}" if reach.after is not None else ""
    return " and ".join(filter(None, (after, f"up to {written(reach.until, type_)}" if not reach.ends else "")))


def _check_partitions(what: str, where: str, rows: pl.DataFrame, partitions: int) -> None:
    numbers = rows.get_column(PARTITION)
    if numbers.null_count() or (rows.height and not numbers.is_between(0, partitions - 1).all()):
        given = numbers.filter(~numbers.is_between(0, partitions - 1).fill_null(value=False))[0]
        raise wrong(
            what,
            f"{where} has a row of a partition that step was not given: {given}",
            hint=(
                "partition is a number of this step alone: take it from the rows of events and state, and keep no other"
            ),
        )


#: The column that Polars did not find.
_NOT_FOUND: Final = re.compile(r'unable to find column "([^"]+)"')


def _missed(node: Process, error: Exception) -> str:
    """What a step may have taken for granted: a table, a column or a datetime that there is not."""
    if isinstance(error, KeyError):
        return f"state has the tables that are declared: {', '.join(node.operator.tables) or 'none'}"
    if isinstance(error, pl.exceptions.ColumnNotFoundError) and (column := _NOT_FOUND.search(str(error))):
        reads = ", ".join(f'"{name}"' for name in (*node.operator.reads, column[1]))
        return f"events have partition, the time and what is declared; if {column[1]} is theirs: reads = ({reads},)"
    if isinstance(error, pl.exceptions.InvalidOperationError) and ".dt." in str(error) and "i64" in str(error):
        return f'instants are whole numbers: pl.from_epoch("{node.time}", time_unit="us").dt of timestamps'
    return ""
