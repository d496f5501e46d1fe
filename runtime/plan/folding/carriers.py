"""What rows carry that may stand for several: in which columns, and how an aggregate reads them (rule R32)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from tidegate.algebra.functions.aggregates import Aggregate, Form, Function, aggregate_type
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT, DOUBLE, NULL

ADDS: Final = (Form.COUNT, Form.INTEGER_SUM, Form.DOUBLE_SUM)
ONE: Final = Lit(1, BIGINT)
ZERO: Final = Lit(0, BIGINT)
Product = Literal["mul", "try_mul"]


@dataclass(frozen=True, slots=True)
class Carrier:
    """The columns by which a row stands for others, at some place of a tree.

    `number` is the column with how many it stands for, None where no aggregate needs it. `parts` has by aggregate the
    columns of its partial results: `n`, `s`, `v`, `by`, and `c`, what a sum of doubles has lost. `times` has by
    aggregate the column with how often they count, where that is not once. `several`: whether such a number is a
    product.
    """

    names: tuple[str, ...]
    number: str | None = None
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    times: Mapping[str, str] = field(default_factory=dict)
    several: bool = False

    def factor(self, aggregate: str) -> str | None:
        """The column with how often the row counts for an aggregate beside its own partial results of it."""
        return self.times.get(aggregate) if aggregate in self.parts else self.number


def times(schema: Schema, factors: Iterable[str | None], product_of: Product = "mul") -> Term | None:
    """The product of numbers of rows, where NULL is that of a padded row, which is one. None: there are none."""
    product: Term | None = None
    for factor in factors:
        if factor is not None:
            number: Term = call("coalesce", Attr(factor), ONE) if schema[factor].nullable else Attr(factor)
            product = number if product is None else call(product_of, product, number)
    return product


def form_of(aggregate: Aggregate, schema: Schema) -> Form:
    """The form of an aggregate over rows of this schema."""
    return aggregate.entry.form_of(NULL if aggregate.argument is None else term_type(aggregate.argument, schema))


def part_terms(aggregate: Aggregate, form: Form, x: Term | None, t: Term | None, schema: Schema) -> dict[str, Term]:
    """The partial results of one row, of its argument, its order, or both, by part."""
    if x is not None and form in ADDS:
        parts: dict[str, Term] = {}
        if form is Form.COUNT or aggregate.entry.averages:
            parts["n"] = call("if", call("is_null", x), ZERO, ONE) if resolve(x, schema).nullable else ONE
        if form is Form.DOUBLE_SUM:
            parts |= {"s": x, "c": Lit(0.0, DOUBLE)}
        if form is Form.INTEGER_SUM:
            type_ = aggregate_type(replace(aggregate, function=Function.SUM), term_type(x, schema), None)
            parts["s"] = x if type_ == term_type(x, schema) else call("coalesce", x, Lit(None, type_))
        return parts
    if x is not None and t is not None:
        nullable = [term for term in (x, t) if resolve(term, schema).nullable]
        known = conjunction([call("is_not_null", term) for term in nullable])
        v, by = (call("if", known, term, Lit(None, term_type(term, schema))) if nullable else term for term in (x, t))
        return {"v": v, "by": by}
    if x is not None:
        return {"v": x}
    return {} if t is None else {"by": t}
