"""What conditions of a row pattern say of how many rows a match has at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.ordered.sequences.navigation import Navigation, RowsAggregate, Variables
from tidegate.algebra.terms import Attr, Call, Lit, Term, conjuncts
from tidegate.algebra.types import BIGINT

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences

_NEGATED: Final = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq"}
_TURNED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


@dataclass(frozen=True, slots=True)
class MostRows:
    """Of the rows so far with one of these variables, or of all where there are none, a match has at most so many."""

    variables: Variables
    most: int

    def counts(self, variable: str) -> bool:
        return not self.variables or variable in self.variables


def most_rows(node: Sequences, condition: Term | None) -> tuple[MostRows, ...]:
    """What a condition says as parts of a conjunction that compare a number of rows with a constant."""
    parts = () if condition is None else conjuncts(condition)
    found = (_of_part(part, node.navigation_by_name) for part in parts)
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _of_part(part: Term, navigations: Mapping[str, Navigation]) -> MostRows | None:
    match part:
        case Call("not", (Call(op, args),)) if op in _NEGATED:
            return _of_part(Call(_NEGATED[op], args), navigations)
        case Call(op, (Lit() as left, Attr() as right)) if op in _TURNED:
            return _of_part(Call(_TURNED[op], (right, left)), navigations)
        case Call("lt" | "le" | "eq" as op, (Attr(name), Lit(int(value), type_))) if type_ == BIGINT:
            variables = _counted(navigations.get(name))
            return None if variables is None else MostRows(variables, max(value - (op == "lt"), -1))
        case _:
            return None


def _counted(navigation: Navigation | None) -> Variables | None:
    """The variables whose rows so far it counts; None where it is no such count."""
    match navigation:
        case RowsAggregate(aggregate, variables, final=False):
            of_rows = aggregate.function is Function.COUNT and aggregate.argument is None
            return variables if of_rows else None
        case _:
            return None
