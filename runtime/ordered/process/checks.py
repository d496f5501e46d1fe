"""What operators of users declare, checked at every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.derive import tied
from tidegate.algebra.ordered.process import Process, Reach
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.terms import TRUE
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.kernels.situations import Ints
from tidegate.runtime.ordered.process.partition_tables import PARTITION, counts

_BREAKS: Final = "{} breaks what it declares: "
#: The columns of tables by name.
Columns = Mapping[str, Mapping[str, pl.DataType]]
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
    declared: Columns,
    reach: Reach,
    partitions: int,
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """What the user's step yields, its tables of the declared columns; `EvaluationError` TG305 for anything else."""
    what = type(node.operator).__name__
    try:
        rows, left = _any(step(events, state, reach))
    except Exception as error:
        raise EvaluationError("TG305", f"step of {what} failed: {type(error).__name__}: {error}") from error
    if not isinstance(rows, pl.DataFrame) or not isinstance(left, Mapping):
        raise _wrong(what, f"step returned {shown((type(rows).__name__, type(left).__name__))}, not rows and tables")
    if unknown := sorted({*left} - {*declared}):
        raise _wrong(what, f"step returned a table {unknown[0]!r} that it does not declare")
    tables = {}
    for name, own in declared.items():
        columns = {PARTITION: pl.Int64(), **own}
        table = left[name] if name in left else pl.DataFrame(schema=columns)
        tables[name] = _conforming(what, f"table {name!r}", table, columns)
        _check_partitions(what, f"table {name!r}", tables[name], partitions)
    return rows, tables


def require_bounds(
    node: Process, tables: Mapping[str, pl.DataFrame], keys: pl.DataFrame, last: Ints, reach: Reach
) -> None:
    """`EvaluationError` TG305 for more rows of a partition than the operator declares, or rows of one for longer.

    By partition, `keys` has its keys and `last` the time of its last event.
    """
    what, over = type(node.operator).__name__, np.zeros(len(last), dtype=np.bool_)
    if node.kept_for is not None and reach.until is not None:
        over = last + node.kept_for <= reach.until
    for name, rows in tables.items():
        held = counts(rows, len(last))
        most = node.operator.most.get(name)
        if most is not None and (held > most).any():
            at = int(np.argmax(held))
            raise _wrong(
                what,
                f"table {name!r} has {count_of(int(held[at]), 'row')} of {_partition(node, keys, at)}, and it declares {most} at most",
                hint=f"keep fewer, or declare more: most = {{{name!r}: {held[at]}}}",
            )
        if (held * over).any():
            at = int(np.argmax(held * over))
            type_ = node.input.schema[node.time].type
            ended, event = value_text(int(last[at]) + (node.kept_for or 0), type_), value_text(int(last[at]), type_)
            raise _wrong(
                what,
                f"table {name!r} has {count_of(int(held[at]), 'row')} of {_partition(node, keys, at)}, whose last event is at {event}; "
                f"it is kept up to {ended} by kept_for, and {value_text(reach.until or 0, type_)} is reached",
                hint="keep nothing of a partition once kept_for is over, or declare a longer one",
            )


def _partition(node: Process, keys: pl.DataFrame, at: int) -> str:
    return f"the partition {shown(keys.row(at, named=True))}" if node.keys else "the one partition"


@dataclass(frozen=True, slots=True)
class Again:
    """Another way of doing a step, which has to come to the same: how it is done, and what lets a step differ then."""

    when: str
    mend: str

    def failed(self, node: Process, error: EvaluationError) -> EvaluationError:
        """What is told of a step that breaks its word in that way alone."""
        what = type(node.operator).__name__
        said = error.message.removeprefix(_BREAKS.format(what))
        return _wrong(what, f"when {self.when}, {said}", hint=self.mend)


def require_equal(
    node: Process,
    kept: Mapping[str, pl.DataFrame],
    rows: pl.DataFrame,
    its: Mapping[str, pl.DataFrame],
    others: pl.DataFrame,
    again: Again,
) -> None:
    """`EvaluationError` TG305 where two ways of doing a step differ, in whatever order their rows are."""
    compared = [("rows", rows, others), *((f"rows of table {name!r}", kept[name], its[name]) for name in kept)]
    for what, one, two in compared:
        if not one.sort(one.columns).equals(two.sort(two.columns)):
            raise _wrong(
                type(node.operator).__name__,
                f"step {'yields' if what == 'rows' else 'keeps'} other {what} when {again.when}: {_difference(one, two)}",
                hint=again.mend,
            )


def _difference(one: pl.DataFrame, two: pl.DataFrame) -> str:
    """A row that only one of them has, or has more often."""
    fewer, more = (Counter(frame.iter_rows()) for frame in (one, two))
    row, how = next(((row, "not") for row in fewer - more), None) or next((row, "only") for row in more - fewer)
    return f"{shown(dict(zip(one.columns, row, strict=True)))} is {how} there then"


def result_of(node: Process, rows: pl.DataFrame, partitions: int, reach: Reach) -> pl.DataFrame:
    """The rows as declared; `EvaluationError` TG305 for one that is complete too early or too late, or of which a
    relation is not true.
    """
    what, schema = type(node.operator).__name__, node.result.schema
    found = _conforming(what, "its result", rows, {PARTITION: pl.Int64(), **polars_schema(schema)})
    _check_partitions(what, "its result", found, partitions)
    for attribute in schema.attributes:
        if not attribute.nullable and found.get_column(attribute.name).null_count():
            raise _wrong(what, f"a row has no {attribute.name}, which is declared not null")
    at = pl.col(node.completed_by)
    late = [at <= reach.after] if reach.after is not None else []
    late += [at > reach.until] if reach.until is not None else []
    for wrong in late:
        if (bad := found.filter(wrong)).height:
            raise _wrong(
                what,
                f"a row is complete at {node.completed_by} = {bad.get_column(node.completed_by)[0]}, "
                f"and this step is about instants after {reach.after} and up to {reach.until}",
            )
    if node.result.relations != TRUE and found.height:
        holds = evaluated(found, compile_term(node.result.relations, schema)).to_series()
        if not holds.fill_null(value=False).all():
            bad_row = found.filter(~holds.fill_null(value=False)).row(0, named=True)
            raise _wrong(what, f"a declared relation does not hold of the row {shown(bad_row)}")
    return found


def _conforming(what: str, where: str, rows: Any, columns: Mapping[str, Any]) -> pl.DataFrame:
    if not isinstance(rows, pl.DataFrame) or {*rows.columns} != {*columns}:
        got = ", ".join(rows.columns) if isinstance(rows, pl.DataFrame) else type(rows).__name__
        raise _wrong(what, f"{where} has the columns {', '.join(columns)}, and step returned {got}")
    try:
        return rows.select(*columns).cast(_any(dict(columns)))
    except pl.exceptions.PolarsError as error:
        raise _wrong(what, f"{where} has other types than declared: {error}") from error


def _check_partitions(what: str, where: str, rows: pl.DataFrame, partitions: int) -> None:
    numbers = rows.get_column(PARTITION)
    if numbers.null_count() or (rows.height and not numbers.is_between(0, partitions - 1).all()):
        raise _wrong(what, f"{where} has a row of a partition that step was not given")


def _any(value: Any) -> Any:
    """What a user's code gives may be anything."""
    return value


def _wrong(what: str, message: str, hint: str = "correct its step or its declaration") -> EvaluationError:
    return EvaluationError("TG305", _BREAKS.format(what) + message, hint=hint)
