"""What the condition of a row that must not come compares with values of a match: with NULL no row satisfies it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tidegate.algebra.ordered.sequences.navigation import Classifier, MatchNumber, Navigation, RowsAggregate, RowValue
from tidegate.algebra.terms import Call, Term, attributes_of, conjuncts
from tidegate.algebra.typed.operations import resolve

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences

_STRICT: Final = ("eq", "ne", "lt", "le", "gt", "ge")


def compared_values(node: Sequences, variable: str) -> tuple[Term, ...]:
    """The sides of comparisons that are parts of a conjunction, or negated there, and that the rows of a match alone
    say: where one is NULL, the condition is not true.
    """
    condition = node.condition_of(variable)
    parts = () if condition is None else conjuncts(condition)
    return tuple(dict.fromkeys(side for part in parts for side in _sides(part) if _is_of_match(node, variable, side)))


def _sides(part: Term) -> Iterator[Term]:
    match part:
        case Call("not", (inner,)):
            yield from _sides(inner)
        case Call(op, sides) if op in _STRICT:
            yield from sides
        case _:
            return


def _is_of_match(node: Sequences, variable: str, side: Term) -> bool:
    """Whether a term reads rows of the match, or before these, and nothing of a row with a variable behind it."""
    navigations = node.navigation_by_name
    names = attributes_of(side)
    if not names or not names <= navigations.keys() or resolve(side, node.condition_schema()).fallible:
        return False
    return all(_reads_match(navigations[name], variable) for name in names)


def _reads_match(navigation: Navigation, variable: str) -> bool:
    match navigation:
        case RowValue(_, _, row):
            named = bool(row.variables) and variable not in row.variables
            return row.step <= 0 and (named or (not row.variables and row.end == "first" and not row.offset))
        case RowsAggregate(_, variables):
            return bool(variables) and variable not in variables
        case Classifier() | MatchNumber():
            return False
