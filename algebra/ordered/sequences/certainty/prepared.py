"""What the rule of certainty reads of a node, made once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.algebra.evaluation import Evaluator, evaluator
from tidegate.algebra.formulas import Ceil, Compare, Floor, Greatest, Least, Shift, TemporalTerm
from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.certainty.compared import compared_values
from tidegate.algebra.ordered.sequences.certainty.counts import most_rows
from tidegate.algebra.ordered.sequences.certainty.instants import bounds_of, comparison_of, instants_read
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
    Variables,
    reach_of,
)
from tidegate.algebra.ordered.sequences.partition import Matched
from tidegate.algebra.ordered.sequences.pattern import Absence, patterns_of
from tidegate.algebra.terms import Call, Term, attributes_of
from tidegate.algebra.typed.operations import resolve

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences

#: The places of a match's rows that a reader needs.
Places = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """A part of a condition that is no conjunction, disjunction or negation."""

    value: Evaluator
    names: frozenset[str]
    comparison: Compare | None


class Prepared:
    """A node with what is made of its pattern and its conditions."""

    def __init__(self, node: Sequences) -> None:
        self.node = node
        self.automaton = automaton(node.pattern)
        ways = [way for state in self.automaton.states for way in state.transitions]
        #: The automata of what must not come.
        self.absent = {absence.part: automaton(absence.part) for way in ways for absence in way.absences}
        self.instants = instants_read(node)
        self.conditions = {d.variable: d.condition for d in node.definitions}
        self.bounds = {variable: bounds_of(c, node, self.instants) for variable, c in self.conditions.items()}
        self.most_rows = {variable: most_rows(node, c) for variable, c in self.conditions.items()}
        schema = node.condition_schema()
        #: By variable that must not come alone, what its condition compares and the rows of a match say.
        self.compared = {
            absence.variable: tuple(
                evaluator(resolve(term, schema)) for term in compared_values(node, absence.variable)
            )
            for absence in (absence for way in ways for absence in way.absences)
            if not absence.is_group
        }
        atoms = {atom for condition in self.conditions.values() for atom in atoms_of(condition)}
        self.atoms: Mapping[Term, Atom] = {
            atom: Atom(evaluator(resolve(atom, schema)), attributes_of(atom), comparison_of(atom, node, self.instants))
            for atom in atoms
        }
        names = {name for condition in self.conditions.values() for name in attributes_of(condition)}
        self.navigations = tuple(navigation for navigation in node.navigations if navigation.name in names)
        self.back, self.ahead = reach_of(self.navigations)

    @cached_property
    def readers(self) -> tuple[RowOf, ...]:
        """The rows that conditions, limits and the search after the match read of those that are matched."""
        node, rows = self.node, [n.row for n in self.navigations if isinstance(n, RowValue | Classifier)]
        points = [point for limit in node.limits for point in (limit.later, limit.earlier)]
        rows += [RowOf(() if p.variable is None else node.resolved(p.variable), p.end) for p in points]
        skip = getattr(node.selection, "skip", None)
        if skip is not None and skip.variable is not None:
            rows.append(RowOf(node.resolved(skip.variable), skip.to))
        return tuple(dict.fromkeys(rows))

    @cached_property
    def counted(self) -> tuple[Variables, ...]:
        """The variables of which conditions read all rows."""
        return tuple(dict.fromkeys(n.variables for n in self.navigations if isinstance(n, RowsAggregate)))

    def registers(self, matched: Matched) -> tuple[object, ...]:
        """What is read of these rows of a match by all that is still to come: matches that have begun with the same
        end alike.
        """
        read = [self.kept(reader, matched) for reader in self.readers]
        return (*read, *(_with(variables, matched) for variables in self.counted), self.labels(matched))

    def labels(self, matched: Matched) -> tuple[str | None, ...]:
        """The variables of rows that conditions ask for: of the last ones, and of those that are read otherwise."""
        rows = [n.row for n in self.navigations if isinstance(n, Classifier)]
        if not rows:
            return ()
        of = dict(matched)
        read = [place + by for row in rows for place in self.kept(row, matched) for by in (0, row.step)]
        return (*(of.get(place) for place in read), *(variable for _, variable in matched[-self.back - 1 :]))

    def kept(self, reader: RowOf, matched: Matched) -> Places:
        places = _with(reader.variables, matched)
        return places[: reader.offset + 1] if reader.end == "first" else places[-reader.offset - 1 :]

    @cached_property
    def numbers(self) -> bool:
        """Whether measures read the number of the match."""
        return any(isinstance(navigation, MatchNumber) for navigation in self._measured())

    @cached_property
    def measured_ahead(self) -> tuple[RowValue, ...]:
        """What measures read of rows behind others."""
        return tuple(n for n in self._measured() if isinstance(n, RowValue) and n.row.step > 0)

    def _measured(self) -> list[Navigation]:
        read = {name for measure in self.node.measures for name in attributes_of(measure.term)}
        return [navigation for navigation in self.node.navigations if navigation.name in read]

    @property
    def reach(self) -> int:
        """How many rows before those of a match, or before those that must not come, conditions and measures read."""
        return reach_of(self.node.navigations)[0]

    @property
    def leading(self) -> int | None:
        """For how many ticks before its first row a match depends on rows that must not come; None where on none."""
        first = {absence for way in self.automaton.states[0].transitions for absence in way.absences}
        return max((absence.within or 0 for absence in first), default=None)

    @property
    def span(self) -> int:
        """More ticks than from any row to the last instant at which it decides something: the sum of all constants."""
        limits = sum(abs(limit.most) for limit in self.node.limits)
        absences = sum(p.within or 0 for p in patterns_of(self.node.pattern) if isinstance(p, Absence))
        compared = (atom.comparison for atom in self.atoms.values() if atom.comparison is not None)
        stated = sum(_constants(c.left) + _constants(c.right) for c in compared)
        return limits + absences + stated + 1


def _with(variables: Variables, matched: Matched) -> Places:
    return tuple(place for place, variable in matched if not variables or variable in variables)


def atoms_of(condition: Term) -> Iterator[Term]:
    """The parts of a condition that are no conjunction, disjunction or negation."""
    if isinstance(condition, Call) and condition.op in ("and", "or", "not"):
        for arg in condition.args:
            yield from atoms_of(arg)
    else:
        yield condition


def _constants(term: TemporalTerm) -> int:
    match term:
        case Shift(inner, by):
            return _constants(inner) + abs(by)
        case Floor(inner, unit) | Ceil(inner, unit):
            return _constants(inner) + unit
        case Least(terms) | Greatest(terms):
            return sum(map(_constants, terms))
        case _:
            return 0
