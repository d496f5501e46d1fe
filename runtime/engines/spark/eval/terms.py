"""Terms as Spark columns, equal to their evaluation in Python, failures included, with ANSI mode on or off.

Everything goes through the Column API; whatever could raise by itself is a `try_` form or stands behind a `when`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.evaluation import EvaluationError, is_evaluation_error
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Term, Value
from tidegate.algebra.typed.kernels import BAD_CAST, OVERFLOW, ZERO_DIVISION
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.typed.terms import TypedTerm, can_overflow, failure_code, typed_nodes
from tidegate.algebra.types import DataType
from tidegate.runtime.engines.spark.eval.functions import (
    calendar,
    casts,
    doubles,
    encoded,
    instants,
    logic,
    numbers,
    patterns,
    rounding,
    text,
)
from tidegate.runtime.eval.functions.frame import CompiledTerm, Expressions, checked_forms, is_leaf, leaf_name


def held_type(type_: DataType) -> str:
    """The name of the Spark type that values are held in."""
    return type_.held_as.value


class SparkTerms(Expressions[Column]):
    """Columns of Spark; `names` as in `compile_pair`."""

    forms = checked_forms(
        "Spark",
        *(m.FORMS for m in (logic, numbers, rounding, doubles, instants, calendar, text, patterns, encoded, casts)),
    )

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def literal(self, value: Value, type_: DataType) -> Column:
        return F.lit(value).cast(held_type(type_))

    def column(self, name: str) -> Column:
        return _column(name, self._names)

    def when(self, condition: Column, then: Column, otherwise: Column | None = None) -> Column:
        chosen = F.when(condition, then)
        return chosen if otherwise is None else chosen.otherwise(otherwise)

    def first(self, values: Sequence[Column]) -> Column:
        return values[0] if len(values) == 1 else F.coalesce(*values)

    def present(self, value: Column) -> Column:
        return value.isNotNull()

    def is_not(self, value: Column, constant: bool) -> Column:
        return ~value.eqNullSafe(F.lit(constant))

    def code(self, number: int | None) -> Column:
        return F.lit(number).cast("int")

    def bound(self, term: TypedTerm, args: Sequence[CompiledTerm[Column]]) -> CompiledTerm[Column]:
        values = [arg.value for arg in args]
        value = _bind(values, lambda known: self.applied(term, known)[0])
        error = None
        if not term.lenient and (can_overflow(term) or failure_code(term.kernel, term.args) is not None):
            error = _bind(values, lambda known: self.or_none(self.applied(term, known)[1]))
        size = 51 + sum(arg.size for arg in args)
        return CompiledTerm(value, self.first_error([*(arg.error for arg in args), error]), size)

    def beyond(self, value: Column, low: int, high: int) -> Column:
        return numbers.beyond(value, low, high)


def _bind(values: Sequence[Column], body: Callable[[Sequence[Column]], Column]) -> Column:
    """The body over names that stand for the values. A lambda is the only binder there is."""
    row = F.array(F.struct(*(value.alias(f"v{place}") for place, value in enumerate(values))))
    bound = F.transform(row, lambda s: body([s.getField(f"v{place}") for place in range(len(values))]))
    return F.element_at(bound, 1)


def _column(name: str, names: Mapping[str, str]) -> Column:
    column = names.get(name, name)
    return F.col(f"`{column.replace('`', '``')}`")


def compile_pair(
    term: Term, schema: Mapping[str, Attribute], columns: Mapping[str, str] | None = None
) -> CompiledTerm[Column]:
    """The term's value and error. `columns` names the column of an attribute, and of a parameter under `$name`."""
    return SparkTerms(columns or {}).compile(resolve(term, schema))


def compile_term(term: Term, schema: Mapping[str, Attribute], columns: Mapping[str, str] | None = None) -> Column:
    """The term's value; the job fails where it has none on any row that it is evaluated on.

    The failure's text holds an `EvaluationError`: code, term, and the row's values as held; see `raised_error`.
    """
    typed = resolve(term, schema)
    names = columns or {}
    compiled = SparkTerms(names).compile(typed)
    if compiled.error is None:
        return compiled.value
    text = term_text(term)
    reasons = [f"{code} {text}: {reason}" for code, reason in _REASONS]
    parts = [F.element_at(F.array(*map(F.lit, reasons)), compiled.error)]
    leaves = {leaf.source: leaf for leaf in typed_nodes(typed) if is_leaf(leaf)}
    for i, leaf in enumerate(leaves.values()):
        shown = F.coalesce(_column(leaf_name(leaf), names).cast("string"), F.lit("NULL"))
        parts += [F.lit(("\n                " if i else "\n  because       ") + f"{term_text(leaf.source)} = "), shown]
    raised = F.raise_error(F.concat(*parts)).cast(held_type(typed.type))
    return F.when(compiled.error.isNotNull(), raised).otherwise(compiled.value)


#: By the number of the failure, from 1.
_REASONS = (
    (OVERFLOW, "the result is out of range"),
    (ZERO_DIVISION, "division by zero"),
    (BAD_CAST, "the value cannot be cast"),
)

#: The same under the name that says what it adds to `compile_pair`.
compile_checked = compile_term


def raised_error(failure: BaseException) -> EvaluationError | None:
    """The `EvaluationError` that a failed Spark job carries in its text, if it failed for one."""
    text = re.sub(r" SQLSTATE: \w+$", "", str(failure), flags=re.MULTILINE)
    return EvaluationError(text) if is_evaluation_error(text) else None
