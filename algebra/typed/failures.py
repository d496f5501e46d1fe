"""Which operators have terms of their own that have no value for some rows: a division by zero, a sum out of range."""

from __future__ import annotations

from tidegate.algebra.nodes import Group, Imbed, Join, Node, Select
from tidegate.algebra.schema import Schema
from tidegate.algebra.typed.operations import resolve


def has_fallible_term(node: Node) -> bool:
    """Whether a term of this operator, not of its inputs, may have no value for a row, a pair of rows or a group."""
    match node:
        case Select(input_, condition):
            return resolve(condition, input_.schema).fallible
        case Imbed(input_, _, term):
            return resolve(term, input_.schema).fallible
        case Join(left, right, condition):
            both = Schema((*left.schema.attributes, *right.schema.attributes))
            return resolve(condition, both).fallible
        case Group(input_, _, aggregates):
            terms = [term for aggregate in aggregates for term in aggregate.terms]
            out_of_range = any(aggregate.entry.lenient is not None for aggregate in aggregates)
            return out_of_range or any(resolve(term, input_.schema).fallible for term in terms)
        case _:
            return False
