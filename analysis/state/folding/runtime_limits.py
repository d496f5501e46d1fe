"""What of the foldings that the rules allow the runtime does not do (decision 40)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.nodes import Group, Imbed, Join, Node, Select
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.row_wise import is_row_wise
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT, NULL
from tidegate.analysis.state.folding.classes import payload_of
from tidegate.analysis.state.folding.region import Region

_SUMS: Final = (Form.INTEGER_SUM, Form.DOUBLE_SUM)


def unfit(region: Region) -> tuple[str, ...]:
    """Why the runtime keeps the rows of a region's occurrence one by one although they would fold, reason by reason."""
    return tuple(dict.fromkeys([*_uncounted(region), *_fallible(region)]))


def _uncounted(region: Region) -> Iterator[str]:
    """Where a row would have to stand for several, and cannot."""
    sink = region.sink
    if sink is None:
        yield "the result has each row by itself"
    elif isinstance(sink.node, Group):
        schema = sink.node.input.schema
        for aggregate in sink.node.aggregates:
            argument = aggregate.argument
            type_ = NULL if argument is None else term_type(argument, schema)
            form = aggregate.entry.form_of(type_)
            if form is Form.WHOLE:
                yield f"{aggregate_text(aggregate)} needs every value"
            elif form in _SUMS and argument is not None and payload_of(aggregate, argument, sink) is None:
                if type_ != BIGINT:
                    yield f"{aggregate_text(aggregate)} adds a {type_.kind.value} of another stream"


def _fallible(region: Region) -> Iterator[str]:
    """Terms without a value for some rows, which are set aside one by one (decision 22)."""
    for step in region.inside:
        if not is_row_wise(step.node):
            for term, schema in _terms(step.node):
                if resolve(term, schema).fallible:
                    yield f"{term_text(term)} can fail"


def _terms(node: Node) -> Iterator[tuple[Term, Schema]]:
    match node:
        case Select(input_, condition):
            yield condition, input_.schema
        case Imbed(input_, _, term):
            yield term, input_.schema
        case Join(left, right, condition):
            yield condition, Schema((*left.schema.attributes, *right.schema.attributes))
        case Group(input_, _, aggregates):
            yield from ((term, input_.schema) for aggregate in aggregates for term in _of(aggregate))
        case _:
            pass


def _of(aggregate: Aggregate) -> Iterator[Term]:
    yield from (term for term in (aggregate.argument, aggregate.by) if term is not None)
