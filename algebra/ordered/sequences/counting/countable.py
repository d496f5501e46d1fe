"""Which row patterns are counted without listing their matches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.counting.labels import LabelledAutomaton, labelled_automaton
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Point
from tidegate.algebra.ordered.sequences.navigation import Classifier, Navigation, RowOf, RowValue, navigation_text
from tidegate.algebra.ordered.sequences.pattern import Absence, patterns_of
from tidegate.algebra.terms import TRUE, Attr, Param, Term, attributes_of, substitute

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences


@dataclass(frozen=True, slots=True)
class Counting:
    """How the matches of a pattern are counted: by its automaton, and for each label the condition over a row alone.

    `within`: how long a match lasts at most, in ticks; None: for ever. `skips`: whether rows between two of a match may
    be skipped.
    """

    automaton: LabelledAutomaton
    conditions: tuple[Term, ...]
    within: int | None
    skips: bool


@lru_cache(maxsize=256)
def counting_of(node: Sequences) -> Counting | str:
    """How the matches of a node are counted without listing them, or why they are listed (rule R47)."""
    selection = node.selection
    if node.per_start is not None:
        return "a limit of those that begin with one row is declared (per_start)"
    if not isinstance(selection, EveryMatch):
        return "of each start the preferred match is taken, and those are searched for"
    if selection.skipping == "next":
        return "rows that could have gone on with a match may not be skipped"
    if any(isinstance(part, Absence) for part in patterns_of(node.pattern)):
        return "rows must not come"
    whole = Point(None, "last"), Point(None, "first")
    if any((limit.later, limit.earlier) != whole or limit.most < 0 for limit in node.limits):
        return "a limit is between other rows than the first and the last one"
    if any(_reads_ahead(navigation) for navigation in _measured(node)):
        return "a measure reads a row behind the match"
    by_label = labelled_automaton(automaton(node.pattern))
    if by_label is None:
        return "the pattern has too many states"
    conditions = []
    for variable in by_label.labels:
        condition = _of_row(node, variable)
        if isinstance(condition, str):
            return condition
        conditions.append(condition)
    within = min((limit.most for limit in node.limits), default=None)
    return Counting(by_label, tuple(conditions), within, selection.skipping == "any")


def _measured(node: Sequences) -> list[Navigation]:
    """What measures read."""
    names = {name for measure in node.measures for name in attributes_of(measure.term)}
    return [navigation for navigation in node.navigations if navigation.name in names]


def _reads_ahead(navigation: Navigation) -> bool:
    return isinstance(navigation, RowValue | Classifier) and navigation.row.step > 0


def _of_row(node: Sequences, variable: str) -> Term | str:
    """The condition of a variable over the attributes of its row; the reason where it reads more."""
    condition = node.condition_of(variable)
    return TRUE if condition is None else over_row(node, variable, condition)


def over_row(node: Sequences, variable: str, condition: Term) -> Term | str:
    """The condition of a variable, or a part of it, over the attributes of its row; the reason where it reads more."""
    navigations = node.navigation_by_name
    for name in sorted(attributes_of(condition) & navigations.keys()):
        if not _is_own_row(navigations[name], variable):
            return f"the condition of {variable} reads {navigation_text(navigations[name])}"

    def own(leaf: Attr | Param) -> Term:
        navigation = navigations.get(leaf.name) if isinstance(leaf, Attr) else None
        return navigation.argument if isinstance(navigation, RowValue) else leaf

    return substitute(condition, own)


def _is_own_row(navigation: Navigation, variable: str) -> bool:
    """Whether it is a value of the row at hand: that is the last one with its variable, and of the match so far."""
    if not isinstance(navigation, RowValue) or navigation.final:
        return False
    row = navigation.row
    return row == RowOf(row.variables) and (not row.variables or variable in row.variables)
