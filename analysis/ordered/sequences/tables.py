"""A row pattern as the tables that compiled kernels search by, or the reason why they can not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton
from tidegate.algebra.ordered.sequences.certainty.prepared import Atom, Prepared, atoms_of
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Preferred, Selection
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    Navigation,
    RowsAggregate,
    RowValue,
    Variables,
)
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Absence, is_nullable, pattern_text, patterns_of
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.typed.operations import resolve
from tidegate.analysis.ordered.sequences.completions import Completion, completions_of
from tidegate.analysis.ordered.sequences.conditions import Compiled, Conditions, is_current
from tidegate.analysis.ordered.sequences.demands import Demand, asked_after, demands_of, reads_row
from tidegate.analysis.ordered.sequences.deterministic import deterministic
from tidegate.analysis.ordered.sequences.programs import NotCompiled, Program
from tidegate.analysis.ordered.sequences.ways import Ways, absences_of, preferred_ways

#: How many variables a pattern has at most: the conditions that a row satisfies are one integer.
MOST_VARIABLES = 63
#: And how many limits: which of them a completion has is one integer, too.
MOST_LIMITS = 63
#: And how many demands of conditions.
MOST_DEMANDS = 63
#: And how many absences, of which one bit more says whether a row is the first of its partition.
MOST_ABSENCES = 62


@dataclass(frozen=True, slots=True)
class SearchTables:
    """What kernels search by. Variables, states and absences have numbers: those of `variables`, of the automaton,
    which is deterministic where every match is asked for, and of `absences`. Rows that must not come have variables
    behind those of rows of a match.

    `conditions` are those of the variables, `ways` those of each state, `demands` what conditions ask for that is known
    before their rows, `possible`, by absence, whether such a row can come behind a match, and `completions`, by state
    and part of its ways, how a match may end with rows to come.
    """

    node: Sequences
    automaton: Automaton
    variables: tuple[str, ...]
    conditions: Conditions
    compiled: tuple[Compiled, ...]
    ways: tuple[Ways, ...]
    absences: tuple[Absence, ...]
    demands: tuple[Demand, ...]
    possible: tuple[Program, ...]
    completions: tuple[tuple[tuple[Completion, ...], ...], ...]

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
    prepared, conditions, selection = Prepared(node), Conditions(node), node.selection
    if isinstance(selection, EveryMatch):
        for variable in node.variables:
            _check_ahead(prepared, variable, every=True)
        automaton, ways = deterministic(prepared.automaton, adjacent=selection.skipping == "contiguous")
    else:
        automaton, ways = prepared.automaton, preferred_ways(prepared.automaton)
    stand = tuple(dict.fromkeys(absences_of(ways)))
    absences = tuple(dict.fromkeys(absence for _, absence in stand))
    if len(absences) > MOST_ABSENCES:
        raise NotCompiled(f"it has more than {MOST_ABSENCES} absences")
    for absence in absences:
        if absence.is_group:
            raise NotCompiled(f"{pattern_text(replace(absence, within=None))} is a group of rows that must not come")
    variables = tuple(dict.fromkeys((*node.variables, *(absence.variable for absence in absences))))
    if len(variables) > MOST_VARIABLES:
        raise NotCompiled(f"it has more than {MOST_VARIABLES} variables")
    compiled = tuple(conditions.compiled(variable) for variable in variables)
    for where, absence in stand:
        if where == "between" and absence.within is not None and skips(selection):
            raise NotCompiled(f"!{absence.variable} between two rows holds for a time of its own")
        _check_absence(prepared, where, absence, compiled[variables.index(absence.variable)])
    for limit in node.limits:
        for point in (limit.later, limit.earlier):
            if point.variable is not None:
                conditions.register(node.resolved(point.variable), point.end, 0)
    demands = () if isinstance(selection, EveryMatch) else demands_of(prepared, conditions)
    if len(demands) > MOST_DEMANDS:
        raise NotCompiled(f"conditions ask for more than {MOST_DEMANDS} things that are known before their rows")
    possible = tuple(asked_after(prepared, conditions, absence.variable) for absence in absences)
    completions = completions_of(node, automaton, [its.parts for its in ways], demands)
    return SearchTables(
        node, automaton, variables, conditions, compiled, ways, absences, demands, possible, completions
    )


def skips(selection: Selection) -> bool:
    """Whether rows may lie between those of a match."""
    return isinstance(selection, EveryMatch) and selection.skipping != "contiguous"


def _reasons(node: Sequences) -> Iterator[str]:
    """What kernels can not do."""
    parts = list(patterns_of(node.pattern))
    if node.per_start is not None and any(isinstance(part, Absence) for part in parts):
        yield "matches that begin with one row are limited, and there are rows that must not come"
    if isinstance(node.selection, Preferred) and node.selection.skip.to not in ("past last row", "next row"):
        yield f"the search goes on at the {node.selection.skip.to} {node.selection.skip.variable}"
    if node.reported.unmatched:
        yield "rows of no match are reported"
    if any(limit.most < 0 for limit in node.limits):
        yield "a limit asks for a least distance"
    if len(node.limits) > MOST_LIMITS:
        yield f"it has more than {MOST_LIMITS} limits"
    if node.reported.rows == "all" and node.reported.empty and is_nullable(node.pattern):
        yield "empty matches are reported beside rows of others"
    read = {name for measure in node.measures for name in attributes_of(measure.term)}
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


def _check_ahead(prepared: Prepared, variable: str, *, every: bool = False) -> None:
    """`NotCompiled` where the condition of a row to come may be known that must not come; if `every` match is asked
    for, of any row, where time alone may decide what rows behind others are asked for.
    """
    for atom in _atoms(prepared, variable):
        if atom.comparison is not None and (not every or _reads_behind(prepared.node, atom)):
            raise NotCompiled(f"the condition of {variable} compares instants")
        if not every and not any(reads_row(prepared.node, variable, name) for name in atom.names):
            raise NotCompiled(f"the condition of {variable} is known, in part, before its row is")


def _check_absence(prepared: Prepared, where: str, absence: Absence, compiled: Compiled) -> None:
    """`NotCompiled` where it is not known of each row when it comes whether it is one that must not."""
    variable = absence.variable
    if compiled.waits:
        raise NotCompiled(f"the condition of {variable}, which must not come, reads a row behind others")
    if where == "after":
        _check_ahead(prepared, variable)
    elif compiled.programs and _reads_open(prepared, where, absence):
        raise NotCompiled(f"the condition of {variable}, which must not come {where} rows, reads rows behind these")


def _reads_open(prepared: Prepared, where: str, absence: Absence) -> bool:
    """Whether the condition of a row that must not come before a match reads rows that may come behind its first one;
    or that of one between two rows, those that may come with the second one or behind it.
    """
    states = prepared.automaton.states
    of = states[BEGIN : BEGIN + 1] if where == "before" else states[BEGIN + 1 :]
    behind = [way.to for state in of for way in state.transitions if absence in way.absences]
    if where == "before":
        behind = [way.to for first in behind if first is not None for way in states[first].transitions]
    reached = set[int]()
    while behind:
        if (state := behind.pop()) is not None and state not in reached:
            reached.add(state)
            behind += [way.to for way in states[state].transitions]
    open_, variable = {states[state].variable for state in reached}, absence.variable
    read = {name for atom in _atoms(prepared, variable) for name in atom.names}
    for navigation in (n for n in prepared.navigations if n.name in read):
        if isinstance(navigation, RowValue):
            row = navigation.row
            begun = row.end == "first" and not row.variables and not row.offset
            if not is_current(row, variable) and not begun and (not row.variables or open_ & set(row.variables)):
                return True
        elif isinstance(navigation, RowsAggregate) and (not navigation.variables or open_ & set(navigation.variables)):
            return True
    return False


def _atoms(prepared: Prepared, variable: str) -> list[Atom]:
    condition = prepared.conditions.get(variable)
    return [] if condition is None else [prepared.atoms[atom] for atom in atoms_of(condition)]


def _reads_behind(node: Sequences, atom: Atom) -> bool:
    """Whether it reads a row behind others."""
    read = [navigation for navigation in node.navigations if navigation.name in atom.names]
    return any(isinstance(navigation, RowValue) and navigation.row.step > 0 for navigation in read)
