"""What of the foldings that the rules allow the runtime does not do (decision 40)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tidegate.algebra.functions.aggregates import Form, Function
from tidegate.algebra.nodes import Group, Imbed, Join, Node, Select
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.row_wise import is_row_wise
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term, attributes_of
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT, NULL
from tidegate.analysis.state.folding.classes import OF_PAIRS, payload_of
from tidegate.analysis.state.folding.region import Region, Step, reads_alone

_SUMS: Final = (Form.INTEGER_SUM, Form.DOUBLE_SUM)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands against folding, by name, and what would not, and may be what is meant."""

    why: str
    mend: str = ""

    def __str__(self) -> str:
        return self.why


def unfit(region: Region) -> tuple[Obstacle, ...]:
    """Why the runtime keeps the rows of a region's occurrence one by one although they would fold, reason by reason."""
    return tuple(dict.fromkeys([*_uncounted(region), *_fallible(region)]))


def _uncounted(region: Region) -> Iterator[Obstacle]:
    """Where a row would have to stand for several, and cannot."""
    sink = region.sink
    if sink is None:
        yield Obstacle("the result has each row by itself", OF_PAIRS)
    elif isinstance(sink.node, Group):
        schema = sink.node.input.schema
        for aggregate in sink.node.aggregates:
            argument = aggregate.argument
            type_ = NULL if argument is None else term_type(argument, schema)
            form = aggregate.entry.form_of(type_)
            if form is Form.WHOLE:
                quantile = aggregate.function in (Function.MEDIAN, Function.QUANTILE)
                mend = "approx_quantile keeps a sketch of them" if quantile else ""
                yield Obstacle(f"{aggregate_text(aggregate)} needs every value", mend)
            elif form in _SUMS and argument is not None and payload_of(aggregate, argument, sink) is None:
                if type_ != BIGINT:
                    yield Obstacle(
                        f"{aggregate_text(aggregate)} adds a {type_.kind.value} of another stream",
                        "a sum of bigints, such as cents, does not round",
                    )


def _fallible(region: Region) -> Iterator[Obstacle]:
    """Terms without a value for some rows, which are set aside one by one (decision 22)."""
    for step in region.inside:
        if not is_row_wise(step.node):
            for term, schema in _terms(step.node):
                if resolve(term, schema).fallible:
                    yield Obstacle(f"{term_text(term)} can fail", _infallibly(term, step))


def _infallibly(term: Term, step: Step) -> str:
    """How to say a term so that rows fold: computed before a row is stored, or with NULL where it has no value."""
    if not reads_alone(term, step.held):
        return f"a form that is NULL instead, such as x.try_mul(y), in the place of {term_text(term)}"
    relations = {name.rpartition(".")[0] for name in attributes_of(term)}
    relation = relations.pop() if len(relations) == 1 else ""
    return f"compute it before the join: {relation or 'its stream'}.with_(x={term_text(term)})"


def _terms(node: Node) -> Iterator[tuple[Term, Schema]]:
    match node:
        case Select(input_, condition):
            yield condition, input_.schema
        case Imbed(input_, _, term):
            yield term, input_.schema
        case Join(left, right, condition):
            yield condition, Schema((*left.schema.attributes, *right.schema.attributes))
        case Group(input_, _, aggregates):
            yield from ((term, input_.schema) for aggregate in aggregates for term in aggregate.terms)
        case _:
            pass
