"""A row pattern as the tables that compiled kernels search by, or the reason why they can not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.ordered.sequences.automata.automaton import Automaton
from tidegate.algebra.ordered.sequences.certainty.prepared import Atom, Prepared, atoms_of
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Preferred
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowsAggregate,
    RowValue,
    Variables,
)
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Absence, Anchor, is_nullable, patterns_of
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.typed.operations import resolve
from tidegate.analysis.ordered.sequences.completions import Completion, completions_of
from tidegate.analysis.ordered.sequences.conditions import Compiled, Conditions, NotCompiled, is_current
from tidegate.analysis.ordered.sequences.deterministic import deterministic

#: How many variables a pattern has at most: the conditions that a row satisfies are one integer.
MOST_VARIABLES = 63
#: And how many limits: which of them a completion has is one integer, too.
MOST_LIMITS = 63


@dataclass(frozen=True, slots=True)
class SearchTables:
    """What kernels search by. Variables and states have numbers: those of `variables`, and of the automaton, which is
    deterministic where every match is asked for.

    `conditions` are those of the variables, and `completions`, by state, how a match may end with rows to come: by all
    ways on from the state, and by those that are preferred to the end of the match there.
    """

    node: Sequences
    automaton: Automaton
    variables: tuple[str, ...]
    conditions: Conditions
    compiled: tuple[Compiled, ...]
    completions: tuple[tuple[tuple[Completion, ...], tuple[Completion, ...]], ...]

    def number(self, variables: Variables) -> int:
        """Variables as a mask by their numbers; of none, all of them."""
        named = variables or self.variables
        return sum(1 << number for number, variable in enumerate(self.variables) if variable in named)


@lru_cache(maxsize=256)
def tables_of(node: Sequences) -> SearchTables | str:
    """The tables of a pattern; else why kernels can not search by it."""
    try:
        return _tables(node)
    except NotCompiled as reason:
        return str(reason)


def _tables(node: Sequences) -> SearchTables:
    for reason in _reasons(node):
        raise NotCompiled(reason)
    prepared, variables = Prepared(node), node.variables
    conditions = Conditions(node)
    every = isinstance(node.selection, EveryMatch)
    for variable in () if every else variables:
        _check_ahead(prepared, variable)
    compiled = tuple(conditions.compiled(variable) for variable in variables)
    for limit in node.limits:
        for point in (limit.later, limit.earlier):
            if point.variable is not None:
                conditions.register(node.resolved(point.variable), point.end, 0)
    automaton = deterministic(prepared.automaton) if every else prepared.automaton
    return SearchTables(node, automaton, variables, conditions, compiled, completions_of(node, automaton))


def _reasons(node: Sequences) -> Iterator[str]:
    """What kernels can not do."""
    parts = list(patterns_of(node.pattern))
    if any(isinstance(part, Absence) for part in parts):
        yield "there are rows that must not come"
    if any(isinstance(part, Anchor) for part in parts):
        yield "it is anchored"
    if isinstance(node.selection, Preferred) and node.selection.skip.to not in ("past last row", "next row"):
        yield f"the search goes on at the {node.selection.skip.to} {node.selection.skip.variable}"
    if node.reported.unmatched:
        yield "rows of no match are reported"
    if any(limit.most < 0 for limit in node.limits):
        yield "a limit asks for a least distance"
    if len(node.limits) > MOST_LIMITS:
        yield f"it has more than {MOST_LIMITS} limits"
    if len(node.variables) > MOST_VARIABLES:
        yield f"it has more than {MOST_VARIABLES} variables"
    if node.reported.rows == "all" and node.reported.empty and is_nullable(node.pattern):
        yield "empty matches are reported beside rows of others"
    read = {name for measure in node.measures for name in attributes_of(measure.term)}
    if read - {navigation.name for navigation in node.navigations}:
        yield "a measure reads the row by itself"
    if node.reported.rows == "all" and any(_is_running(n) for n in node.navigations if n.name in read):
        yield "a measure is an aggregate of the rows so far"
    if any(isinstance(n, RowValue | Classifier) and n.row.step > 0 for n in node.navigations if n.name in read):
        yield "a measure reads a row behind others"
    for navigation in node.navigations:
        if isinstance(navigation, RowValue) and resolve(navigation.argument, node.input.schema).fallible:
            yield f"{navigation.name} may have no value"


def _is_running(navigation: Navigation) -> bool:
    """Whether it is an aggregate of the rows of a match so far, and no number of rows."""
    if not isinstance(navigation, RowsAggregate) or navigation.final:
        return False
    return navigation.aggregate.function is not Function.COUNT or navigation.aggregate.argument is not None


def _check_ahead(prepared: Prepared, variable: str) -> None:
    """`NotCompiled` where the condition of a row to come may be known."""
    for atom in _atoms(prepared, variable) if variable in prepared.conditions else ():
        if atom.comparison is not None:
            raise NotCompiled(f"the condition of {variable} compares instants")
        if not any(_reads_row(prepared.node, variable, name) for name in atom.names):
            raise NotCompiled(f"the condition of {variable} is known, in part, before its row is")


def _atoms(prepared: Prepared, variable: str) -> list[Atom]:
    return [prepared.atoms[atom] for atom in atoms_of(prepared.conditions[variable])]


def _reads_row(node: Sequences, variable: str, name: str) -> bool:
    """Whether what is read is unknown as long as the row itself is."""
    navigation = next((n for n in node.navigations if n.name == name), None)
    match navigation:
        case None:
            return True
        case RowValue(_, _, row):
            return is_current(row, variable) and row.step == 0
        case RowsAggregate(_, variables):
            return not variables or variable in variables
        case Classifier() | MatchNumber():
            return False
        case _:
            assert_never(navigation)
