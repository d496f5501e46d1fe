"""Which parts of a row pattern let the matches that begin with one row be exponentially many."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.counting.countable import over_row
from tidegate.algebra.ordered.sequences.counting.labels import LabelledStep, labelled_automaton
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Repetition, longest, pattern_text, patterns_of
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.terms import Attr, Call, Lit, Term, Value, conjuncts
from tidegate.algebra.typed.kernels import compare
from tidegate.algebra.types import DataType


def growing(node: Sequences) -> tuple[str, ...]:
    """The repetitions, as text, in which each row may double the matches that begin with one row; none where there are
    no such.

    Where rows may be skipped, each is in a match or not: those are all that have no upper bound. Else those of them in
    which a row has a choice of variables: what is repeated has the same choice again, after both.
    """
    selection = node.selection
    if not isinstance(selection, EveryMatch):
        return ()
    endless = [part for part in patterns_of(node.pattern) if isinstance(part, Repetition) and is_endless(part)]
    of = endless if selection.skipping == "any" else [part for part in endless if _has_choices(node, part)]
    type_ = node.input.schema[node.time].type
    return tuple(dict.fromkeys(pattern_text(part, lambda ticks: ticks_text(ticks, type_)) for part in of))


def is_endless(part: Repetition) -> bool:
    """Whether it has no greatest number of rows of its own."""
    return part.most is None and longest(part.part) != 0


def _has_choices(node: Sequences, part: Repetition) -> bool:
    """Whether a row may have either of two variables."""
    of = labelled_automaton(automaton(part))
    if of is None:
        return True
    steps: dict[int, list[LabelledStep]] = {}
    for step in of.steps:
        steps.setdefault(step.source, []).append(step)
    return any(
        not _exclude(node, of.labels[one.label], of.labels[other.label])
        for its in steps.values()
        for one, other in combinations(its, 2)
    )


def _exclude(node: Sequences, one: str, other: str) -> bool:
    """Whether the conditions of two variables show that no row has both."""
    return any(
        a.of == b.of and a.type == b.type and not _meet(a, b)
        for a, b in product(_ranges(node, one), _ranges(node, other))
    )


@dataclass(frozen=True, slots=True)
class _Range:
    """The values of an attribute that a condition allows. An end is a value, and whether it is among them."""

    of: Attr
    type: DataType
    low: tuple[Value, bool] | None
    high: tuple[Value, bool] | None


def _ranges(node: Sequences, variable: str) -> list[_Range]:
    """What the condition of a variable says of single attributes of its row, compared with constants."""
    condition = node.condition_of(variable)
    if condition is None:
        return []
    parts = (over_row(node, variable, part) for part in conjuncts(condition))
    found = (_range(part) for part in parts if not isinstance(part, str))
    return [one for one in found if one is not None]


def _range(condition: Term) -> _Range | None:
    match condition:
        case Call("eq" | "lt" | "le" | "gt" | "ge" as op, (Attr() as of, Lit(value, type_))) if value is not None:
            end = value, op in ("eq", "le", "ge")
            return _Range(
                of, type_, end if op in ("eq", "gt", "ge") else None, end if op in ("eq", "lt", "le") else None
            )
        case _:
            return None


def _meet(one: _Range, other: _Range) -> bool:
    """Whether some value is between both low ends and both high ends, as far as these say."""
    for low, high in ((one.low, other.high), (other.low, one.high)):
        if low is not None and high is not None:
            order = compare(low[0], high[0])
            if order > 0 or (order == 0 and not (low[1] and high[1])):
                return False
    return True
