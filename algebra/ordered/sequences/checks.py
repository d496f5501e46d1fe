"""What a row pattern must not ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, automaton
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Skip
from tidegate.algebra.ordered.sequences.navigation import Classifier, MatchNumber, RowsAggregate, RowValue, reach_of
from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Anchor,
    Exclusion,
    Repetition,
    absent_in,
    is_nullable,
    longest,
    pattern_text,
    patterns_of,
    variables_of,
)
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.types import Kind

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences


def check(node: Sequences) -> None:
    """`QueryError` TG180 to TG186, or TG189, for the first thing that is wrong."""
    _check_counts(node)
    _check_groups(node)
    states = automaton(node.pattern)
    _check_names(node)
    _check_absences(node, states)
    _check_conditions(node)
    if isinstance(node.selection, EveryMatch):
        _check_every(node, node.selection)
    else:
        _check_skip(node, states, node.selection.skip)
    if node.per_start is not None:
        _check_per_start(node, node.per_start)
    if node.reported.unmatched and node.reported.rows == "one":
        raise QueryError(
            "TG184",
            "rows of no match are reported beside those of matches, and here a match is one row",
            hint="report all rows of each match, or leave rows of no match out",
        )


def _check_counts(node: Sequences) -> None:
    absent = (part.part for part in patterns_of(node.pattern) if isinstance(part, Absence))
    for part in (part for pattern in (node.pattern, *absent) for part in patterns_of(pattern)):
        if isinstance(part, Repetition) and (part.least < 0 or (part.most is not None and part.most < part.least)):
            raise QueryError(
                "TG186",
                f"{pattern_text(part)} asks for at least {part.least} and at most {part.most}",
                hint=f"write {{{max(min(part.least, part.most or 0), 0)},{max(part.least, part.most or 0)}}}",
            )
        if isinstance(part, Absence) and part.within is not None and part.within < 0:
            raise QueryError("TG182", f"{pattern_text(part)} has a negative duration", hint="write 0 or more")


def _check_groups(node: Sequences) -> None:
    """What must not come is rows, and no more of them than the pattern says."""
    type_ = node.input.schema[node.time].type
    for absence in (part for part in patterns_of(node.pattern) if isinstance(part, Absence)):
        text = pattern_text(absence, lambda ticks: ticks_text(ticks, type_))
        marks = [part for part in patterns_of(absence.part) if isinstance(part, Anchor | Exclusion | Absence)]
        if marks:
            raise QueryError(
                "TG182",
                f"{text} has {pattern_text(marks[0])} in it, and what must not come is rows alone",
                hint="name variables in it, alternatives, and how often they come",
            )
        if is_nullable(absence.part):
            raise QueryError(
                "TG182",
                f"{text} asks that there are not even no rows: nothing would ever match",
                hint="name a variable in it that a row has to have",
            )
        if longest(absence.part) is None:
            raise QueryError(
                "TG182",
                f"{text} has no greatest number of rows",
                hint="any rows may lie between those that must not come, so B says as much as B+; where conditions "
                "count them, write B{1,9}",
            )


def _check_names(node: Sequences) -> None:
    """Each name stands for one thing, and those of variables are in the pattern."""
    variables, absent = variables_of(node.pattern), absent_in(node.pattern)
    subsets = [name for name, _ in node.subsets]
    twice = [name for name, count in Counter((*variables, *subsets)).items() if count > 1]
    twice += [name for name, count in Counter(d.variable for d in node.definitions).items() if count > 1]
    for name in twice:
        raise QueryError("TG181", f"{name!r} is defined twice", hint="a variable and a subset need a name each")
    navigated = Counter(navigation.name for navigation in node.navigations)
    for name, count in navigated.items():
        if count > 1 or name in node.input.schema:
            raise QueryError("TG103", f"{name!r} is the name of two things", hint="choose a new name")
    for names, known, what in _named(node, (*variables, *absent), variables):
        for name in names:
            if name not in known:
                near = nearest(name, known, 3)
                hint = f"did you mean {' or '.join(near)}?" if near else f"variables here: {', '.join(known) or 'none'}"
                raise QueryError("TG181", f"{what} {name!r}, which is no variable of the pattern", hint=hint)


def _named(
    node: Sequences, all_variables: tuple[str, ...], variables: tuple[str, ...]
) -> Iterator[tuple[Iterable[str], tuple[str, ...], str]]:
    """Where names of variables are used: the names, those that there may be, and what uses them."""
    subsets = tuple(name for name, _ in node.subsets)
    yield (d.variable for d in node.definitions), all_variables, "a condition is given for"
    for name, members in node.subsets:
        yield members, variables, f"the subset {name!r} has"
    for navigation in node.navigations:
        match navigation:
            case RowValue() | Classifier():
                yield navigation.row.variables, all_variables, f"{navigation.name!r} reads"
            case RowsAggregate():
                yield navigation.variables, all_variables, f"{navigation.name!r} reads"
            case MatchNumber():
                pass
    for limit in node.limits:
        points = (point.variable for point in (limit.later, limit.earlier))
        yield (name for name in points if name is not None), (*variables, *subsets), "a limit names"
    skip: Skip | None = getattr(node.selection, "skip", None)
    if skip is not None and skip.variable is not None:
        yield (skip.variable,), (*variables, *subsets), "the search is to go on at"


def _check_absences(node: Sequences, states: Automaton) -> None:
    """Before the first row and after the last one an absence has a duration; between two rows others may lie."""
    outside, between = set[Absence](), set[Absence]()
    for state, of in enumerate(states.states):
        for way in of.transitions:
            if (state == BEGIN) != (way.to is None):
                outside.update(way.absences)
            elif way.to is not None:
                between.update(way.absences)
    type_ = node.input.schema[node.time].type

    def text(absence: Absence) -> str:
        return pattern_text(absence, lambda ticks: ticks_text(ticks, type_))

    for absence in sorted(outside, key=text):
        if absence.within is None:
            usual = Absence(absence.part, 10_000_000 if type_.kind is Kind.TIMESTAMP else 10)
            raise QueryError(
                "TG182",
                f"{text(absence)} can stand before the first row of a match or after its last one, and nothing "
                "says for how long there is to be no such row",
                hint=f"give a duration: {text(usual)}",
            )
    if isinstance(node.selection, EveryMatch) and node.selection.skipping != "contiguous":
        return
    for absence in sorted(between - outside, key=text):
        raise QueryError(
            "TG189",
            f"{text(absence)} stands between two rows of a match that follow each other: no row lies there, so it says "
            "nothing",
            hint='skip rows, in Python with matches="next" or matches="any"; or let them be rows of the match, A X* B, '
            "where the condition of X leaves out those that must not come",
        )


def _check_conditions(node: Sequences) -> None:
    """Conditions read the match up to their row, which is all that there is when they are asked."""
    navigations = {navigation.name: navigation for navigation in node.navigations}
    for definition in node.definitions:
        for name in sorted(attributes_of(definition.condition) & navigations.keys()):
            navigation = navigations[name]
            if isinstance(navigation, MatchNumber):
                raise QueryError(
                    "TG183",
                    f"the condition of {definition.variable} reads the number of the match, which only a match has",
                    hint="numbers are for measures; filter the matches by them",
                )
            if navigation.final:
                raise QueryError(
                    "TG183",
                    f"the condition of {definition.variable} reads the whole match, of which rows are still to come",
                    hint="FINAL is for measures: leave it out, or filter the matches",
                )


def _check_every(node: Sequences, selection: EveryMatch) -> None:
    """Matches of every kind overlap, and have no order."""
    parts = list(patterns_of(node.pattern))
    reasons = [
        (
            any(isinstance(part, Anchor) for part in parts),
            "an anchor names the first or the last row of a partition, and every match may skip rows there",
            "leave ^ and $ out, or take the preferred match of each row",
        ),
        (
            longest(node.pattern) == 0,
            "an empty match has no row, and every match is one of rows",
            "name a variable that a row has",
        ),
        (
            node.reported.rows == "all",
            "matches overlap, and nothing in their rows says which are of one match",
            "report one row of each match, with measures",
        ),
        (
            any(isinstance(navigation, MatchNumber) for navigation in node.navigations),
            "matches have no order in which they are counted",
            "leave MATCH_NUMBER out, or take the preferred match of each row",
        ),
    ]
    for holds, why, hint in reasons:
        if holds:
            raise QueryError("TG184", f"every match ({selection.skipping}) is asked for, and {why}", hint=hint)


def _check_per_start(node: Sequences, per_start: int) -> None:
    """Matches that begin with one row are counted as rows come."""
    read = {name for definition in node.definitions for name in attributes_of(definition.condition)}
    ahead = reach_of([navigation for navigation in node.navigations if navigation.name in read])[1]
    reasons = [
        (per_start < 1, "no match may begin with a row then", "write 1 or more"),
        (
            not isinstance(node.selection, EveryMatch),
            "of the matches that begin with a row the preferred one is taken",
            "leave the limit out, or take every match",
        ),
        (
            ahead > 0,
            "a condition reads a row behind its own, so rows to come decide which matches have begun",
            "leave the limit out, or read rows before: PREV in the place of NEXT",
        ),
    ]
    for holds, why, hint in reasons:
        if holds:
            raise QueryError("TG184", f"{per_start:,} matches may begin with a row, and {why}", hint=hint)


def _check_skip(node: Sequences, states: Automaton, skip: Skip) -> None:
    """After a match the search goes on behind its first row."""
    if skip.to not in ("first", "last"):
        return
    if skip.variable is None:
        raise QueryError("TG181", f"the search is to go on at the {skip.to} row with no variable", hint="name one")
    variables = node.resolved(skip.variable)
    following = {way.to for state in states.states[1:] for way in state.transitions}
    begins = [way.to for way in states.states[BEGIN].transitions if way.to is not None]
    later = any(states.variable(to) in variables for to in following if to is not None)
    if begins and all(states.variable(to) in variables for to in begins) and (skip.to == "first" or not later):
        raise QueryError(
            "TG185",
            f"after a match the search is to go on at the {skip.to} {skip.variable}, which is the first row of the "
            "match: it would find the same one again",
            hint="skip to the next row, past the last one, or to a variable behind the first",
        )
