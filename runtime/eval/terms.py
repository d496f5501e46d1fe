"""Terms as Polars expressions. They give the values and failures of the evaluation in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.evaluation import EvaluationError, evaluator
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term, Value
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.typed.terms import TypedTerm, mentions, typed_nodes
from tidegate.algebra.types import DataType
from tidegate.runtime.eval.functions import (
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
from tidegate.runtime.eval.functions.shared import held_type as held_type


@dataclass(slots=True)
class Steps:
    """The columns that a large term is computed of, step by step. A step reads attributes and columns of steps before.

    Expressions of Polars are trees, and Polars works on a tree again and again.
    """

    all: list[list[pl.Expr]] = field(default_factory=list)
    _columns: int = 0

    def add(self, terms: Sequence[CompiledTerm[pl.Expr]]) -> list[CompiledTerm[pl.Expr]]:
        """One more step, which computes these terms: the terms as its columns."""
        step: list[pl.Expr] = []
        known = [
            CompiledTerm(self._column(term.value, step), None if term.error is None else self._column(term.error, step))
            for term in terms
        ]
        self.all.append(step)
        return known

    def _column(self, value: pl.Expr, step: list[pl.Expr]) -> pl.Expr:
        if value.meta.is_column() or not value.meta.root_names():
            return value  # a constant has no rows of its own
        name = f"\0{self._columns}"
        self._columns += 1
        step.append(value.alias(name))
        return pl.col(name)

    def before(self, result: pl.Expr, type_: pl.DataType) -> pl.Expr:
        """The result with the steps that it needs. A column is there from its step to the last one that reads it."""
        selections = [[result]]
        needed = set(result.meta.root_names())
        for step in reversed(self.all):
            computed = [column for column in step if column.meta.output_name() in needed]
            if computed:
                needed -= {column.meta.output_name() for column in computed}
                selections.insert(0, [*map(pl.col, sorted(needed)), *computed])
                needed = needed.union(*(column.meta.root_names() for column in computed))
        if len(selections) == 1:
            return result

        def computed_of(packed: pl.Series) -> pl.Series:
            frame = packed.struct.unnest()
            for selection in selections:
                frame = frame.select(selection)
            return frame.to_series().alias(packed.name)

        return pl.struct(sorted(needed)).map_batches(computed_of, return_dtype=type_, is_elementwise=True)


class PolarsTerms(Expressions[pl.Expr]):
    """The expressions of Polars."""

    forms = checked_forms(
        "Polars",
        *(m.FORMS for m in (logic, numbers, rounding, doubles, instants, calendar, text, patterns, encoded, casts)),
    )

    def __init__(self) -> None:
        self.steps = Steps()

    def in_steps(self, term: TypedTerm) -> CompiledTerm[pl.Expr]:
        """The term's value and failure as expressions by themselves, which compute first what they are computed of."""
        compiled = self.compile(term)
        error = None if compiled.error is None else self.steps.before(compiled.error, pl.Int8())
        return CompiledTerm(self.steps.before(compiled.value, held_type(term.type)), error, compiled.size)

    def literal(self, value: Value, type_: DataType) -> pl.Expr:
        return pl.lit(value, dtype=held_type(type_))

    def column(self, name: str) -> pl.Expr:
        return pl.col(name)

    def when(self, condition: pl.Expr, then: pl.Expr, otherwise: pl.Expr | None = None) -> pl.Expr:
        chosen = pl.when(condition).then(then)
        return chosen if otherwise is None else chosen.otherwise(otherwise)

    def first(self, values: Sequence[pl.Expr]) -> pl.Expr:
        # Nothing follows a constant: Polars takes one in front as a column of length 1.
        ends = next(
            (place for place, value in enumerate(values) if value.meta.is_literal() and not _is_null(value)),
            len(values),
        )
        needed = values[: ends + 1]
        return needed[0] if len(needed) == 1 else pl.coalesce(needed)

    def present(self, value: pl.Expr) -> pl.Expr:
        return value.is_not_null()

    def is_not(self, value: pl.Expr, constant: bool) -> pl.Expr:
        return value.ne_missing(constant)

    def code(self, number: int | None) -> pl.Expr:
        return pl.lit(number, dtype=pl.Int8)

    def bound(self, term: TypedTerm, args: Sequence[CompiledTerm[pl.Expr]]) -> CompiledTerm[pl.Expr]:
        """Over columns of the operands, which a step before computes."""
        known = self.steps.add(args)
        value, error = self.applied(term, [arg.value for arg in known])
        size = mentions(term) * (1 + len(known))
        return CompiledTerm(value, self.first_error([*(arg.error for arg in known), error]), size)

    def beyond(self, value: pl.Expr, low: int, high: int) -> pl.Expr:
        return numbers.outside(value, low, high)

    def folded(self, term: TypedTerm) -> CompiledTerm[pl.Expr] | None:
        """A term without attributes, evaluated now. Polars gives functions of literals length 1, whatever the frame."""
        if any(is_leaf(node) for node in typed_nodes(term)):
            return None
        try:
            return CompiledTerm(self.literal(evaluator(term)({}), term.type), None)
        except EvaluationError as error:
            return CompiledTerm(self.literal(None, term.type), self.code(int(error.code[-1])))


def _is_null(literal: pl.Expr) -> bool:
    return pl.select(literal).item() is None


@lru_cache(maxsize=4096)  # batch after batch evaluates the same terms
def compile_pair(term: Term, schema: Schema) -> CompiledTerm[pl.Expr]:
    """The term's value and failure. A parameter is a column named `$name`."""
    return PolarsTerms().in_steps(resolve(term, schema))


@lru_cache(maxsize=4096)  # as above
def compile_term(term: Term, schema: Schema) -> pl.Expr:
    """The term's value. Evaluation raises `EvaluationError` where some row has none."""
    typed = resolve(term, schema)
    compiled = PolarsTerms().in_steps(typed)
    if compiled.error is None:
        return compiled.value
    leaves = sorted({leaf_name(node) for node in typed_nodes(typed) if is_leaf(node)})
    # A literal alone has one row on an empty frame: the row count gives it the frame's length.
    rows = pl.int_range(pl.len()).alias("rows")
    parts = [compiled.value.alias("value"), compiled.error.alias("error"), rows]
    inputs = [pl.col(name).alias(f"in {name}") for name in leaves]

    def check(packed: pl.Series) -> pl.Series:
        errors = packed.struct.field("error")
        if errors.null_count() == len(errors):
            return packed.struct.field("value")
        first = errors.is_not_null().arg_max() or 0
        row = packed[first]
        evaluator(typed)({name: row[f"in {name}"] for name in leaves})
        raise InternalError("TG901", f"engines disagree whether {term_text(term)} fails for {row}")

    return pl.struct(*parts, *inputs).map_batches(check, return_dtype=held_type(typed.type))


#: The same under the name that says what it adds to `compile_pair`.
compile_checked = compile_term
