"""What is known of a condition before its row is there: a search ends where no row to come can satisfy it (R41).

In the search for a preferred match rows follow each other, and a row to come has an instant behind the known ones, and
values of which nothing is known. So of the conjuncts of a condition only those say something that read nothing of their
own row, and those that bound how long after another row it comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal, assert_never

from tidegate.algebra.ordered.sequences.certainty.compared import compared_values
from tidegate.algebra.ordered.sequences.certainty.instants import bounds_of
from tidegate.algebra.ordered.sequences.certainty.possible import ANY, Outcome, Outcomes, combined
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared, atoms_of
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
)
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.terms import Call, Term, conjuncts
from tidegate.algebra.typed.operations import resolve
from tidegate.analysis.ordered.sequences.conditions import Conditions, is_current
from tidegate.analysis.ordered.sequences.programs import Instruction, NotCompiled, Program, joined

#: How many parts of one conjunct are tried with all that they can be.
_MOST_PARTS: Final = 5


@dataclass(frozen=True, slots=True)
class Demand:
    """What the condition of the next row with a variable asks for, as far as it is known before that row is.

    Either that a program is true; or else that there is a row, and that the next one comes at most so many ticks after
    it, `most`; None: however many. That row is the first or the last one of the match so far, or that of a register.

    It is known if none of the `last` variables come before, of which the last row is read, or all; and none of the
    `first`, of which the first row is read, unless that one is in the register `begun`. Of these the next row itself
    may be the first one.
    """

    variable: str
    last: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    begun: int = -1
    program: Program = ()
    row: Literal["first", "last"] | int = "last"
    most: int | None = None


def demands_of(prepared: Prepared, conditions: Conditions) -> tuple[Demand, ...]:
    """The demands of all conditions. `NotCompiled` where more is known of a row to come than kernels know."""
    found, least = list[Demand](), list[str]()
    for variable in prepared.node.variables:
        condition = prepared.conditions.get(variable)
        found += [Demand(variable, program=program) for program in _of_counts(prepared, conditions, variable)]
        for part in () if condition is None else conjuncts(condition):
            known = [atom for atom in dict.fromkeys(atoms_of(part)) if _is_known(prepared, variable, atom)]
            if not known or _may_hold(prepared, part, known):
                continue
            if any(prepared.atoms[atom].comparison is not None for atom in known):
                demand, apart = _of_instants(prepared, conditions, variable, part)
                least += [variable] * apart
            else:
                demand = _of_rows(prepared, conditions, variable, part)
            found.append(demand)
    if least and (prepared.node.limits or any(demand.most is not None for demand in found)):
        raise NotCompiled(f"the condition of {least[0]} asks for a least distance, and there are greatest ones")
    return tuple(dict.fromkeys(found))


def reads_row(node: Sequences, variable: str, name: str) -> bool:
    """Whether what the condition of a variable reads is unknown as long as the row itself is."""
    navigation = _navigation(node, name)
    match navigation:
        case None:
            return True
        case RowValue(_, _, row):
            return is_current(row, variable) and row.step >= 0
        case RowsAggregate(_, variables):
            return not variables or variable in variables
        case Classifier() | MatchNumber():
            return False
        case _:
            assert_never(navigation)


def _navigation(node: Sequences, name: str) -> Navigation | None:
    return next((n for n in node.navigations if n.name == name), None)


def _is_known(prepared: Prepared, variable: str, atom: Term) -> bool:
    """Whether something is known of a part of a condition before its row is."""
    part = prepared.atoms[atom]
    return part.comparison is not None or not any(reads_row(prepared.node, variable, name) for name in part.names)


def _may_hold(prepared: Prepared, part: Term, known: Sequence[Term]) -> bool:
    """Whether a conjunct can be true whatever those of its parts come to of which something is known."""
    if len(known) > _MOST_PARTS:
        return False
    schema = prepared.node.condition_schema()
    each: list[tuple[Outcome, ...]] = [
        (True, False, None, "none") if resolve(atom, schema).fallible else (True, False, None) for atom in known
    ]
    for outcomes in product(*each):
        some: dict[Term, Outcomes] = {
            atom: frozenset((outcome,)) for atom, outcome in zip(known, outcomes, strict=True)
        }
        if True not in combined(part, {**dict.fromkeys(atoms_of(part), ANY), **some}.__getitem__):
            return False
    return True


def asked_after(prepared: Prepared, conditions: Conditions, variable: str) -> Program:
    """The program that is true behind a match where the condition of a variable, which must not come, can be true."""
    values = [Call("is_not_null", (term,)) for term in compared_values(prepared.node, variable)]
    programs = [conditions.program(value, variable) for value in values]
    return joined((*_of_counts(prepared, conditions, variable), *programs))


def _of_counts(prepared: Prepared, conditions: Conditions, variable: str) -> Iterator[Program]:
    """Whether the rows so far, with the next one if that is counted, are no more than a condition lets them be."""
    for most in prepared.most_rows.get(variable, ()):
        count = Instruction("count", conditions.aggregate(most.variables, "count"))
        before = conditions.constant(most.most - most.counts(variable))
        yield (count, Instruction("constant_int", before), Instruction("le_int"))


def _of_instants(prepared: Prepared, conditions: Conditions, variable: str, part: Term) -> tuple[Demand, bool]:
    """The demand of a comparison of the instants of two rows, and whether it asks for a least distance."""
    node, reason = prepared.node, NotCompiled(f"the condition of {variable} compares instants")
    bounds = bounds_of(part, node, prepared.instants) if prepared.atoms.get(part) is not None else ()
    if not bounds or (isinstance(part, Call) and part.op == "eq_null_safe"):
        raise reason
    most: int | None = None
    apart = False
    for bound in bounds:
        own_is_later, own_is_earlier = (
            is_current(row, variable) and not row.step for row in (bound.later, bound.earlier)
        )
        if own_is_later == own_is_earlier or (own_is_later and bound.most < 0):
            raise reason
        row = bound.earlier if own_is_later else bound.later
        if own_is_later:
            most = bound.most
        else:
            apart = bound.most < 0
    demand = _to_row(node, conditions, variable, row)
    if demand is None:
        raise reason
    return replace(demand, most=most), apart


def _to_row(node: Sequences, conditions: Conditions, variable: str, row: RowOf) -> Demand | None:
    """The demand that there is a row before the next one with a variable; None where kernels do not know which it
    would be.
    """
    own = not row.variables or variable in row.variables
    before = frozenset(row.variables or node.variables)
    if row.end == "first":
        if row.offset or row.step:
            return None
        if not row.variables:
            return Demand(variable, row="first")
        register = conditions.register(row.variables, "first", 0)
        return Demand(variable, first=before, begun=register, row=register)
    # Before the next row, the last one but one is the last, and so is the row before that one in the partition.
    if (row.offset, row.step) == (0, -1) and own:
        return Demand(variable, last=frozenset(node.variables))
    if (row.offset, row.step) != (int(own), 0):
        return None
    return Demand(variable, last=before, row=conditions.register(row.variables, "last", 0) if row.variables else "last")


def _of_rows(prepared: Prepared, conditions: Conditions, variable: str, part: Term) -> Demand:
    """The demand of a conjunct that reads nothing of its own row."""
    node, read = prepared.node, set[tuple[frozenset[str], frozenset[str], int]]()
    for atom in atoms_of(part):
        last, first, begun = frozenset[str](), frozenset[str](), -1
        for navigation in (_navigation(node, name) for name in sorted(prepared.atoms[atom].names)):
            if isinstance(navigation, RowsAggregate) and variable not in navigation.variables and navigation.variables:
                last |= frozenset(navigation.variables)
                continue
            row = navigation.row if isinstance(navigation, RowValue) else None
            own = row is not None and (not row.variables or variable in row.variables)
            if row is None or row.offset or row.step > 0 or (row.end == "last" and own):
                raise NotCompiled(f"the condition of {variable} is known, in part, before its row is")
            if row.end == "last":
                last |= frozenset(row.variables)
            elif row.variables:
                register = conditions.register(row.variables, "first", 0)
                if begun not in (-1, register):
                    raise NotCompiled(f"the condition of {variable} reads several first rows, and not its own")
                first, begun = frozenset(row.variables), register
        read.add((last, first, begun))
    if len(read) > 1:
        raise NotCompiled(f"the condition of {variable} is known, in part, before its row is")
    ((last, first, begun),) = read
    return Demand(variable, last, first, begun, conditions.program(part, variable))
