"""The conditions of a row pattern as kernels evaluate them: what a row alone decides, and programs for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tidegate.algebra.ordered.sequences.certainty.prepared import atoms_of
from tidegate.algebra.ordered.sequences.navigation import Navigation, RowOf, RowsAggregate, RowValue, Variables
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term, Value, attributes_of, conjuncts
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import DOUBLE
from tidegate.analysis.ordered.sequences.programs import (
    CURRENT,
    SUM_WORDS,
    NotCompiled,
    Program,
    Register,
    Writer,
)


@dataclass(frozen=True, slots=True)
class Later:
    """A comparison that reads rows of the match, and rows behind others: its program, and of each that it reads from
    where, as the number of a register or `CURRENT`, and how many rows behind.
    """

    program: Program
    reads: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The condition of a variable: all of `row`, which read the row and rows before it, all of `programs`, and what
    rows behind others decide: all of `ahead`, which read the row and those around it, and all of `later`.
    """

    row: tuple[Term, ...]
    programs: tuple[Program, ...]
    ahead: tuple[Term, ...] = ()
    later: tuple[Later, ...] = ()

    @property
    def waits(self) -> bool:
        return bool(self.ahead or self.later)


class Conditions:
    """The conditions of a pattern, and what their programs read: registers, columns and constants, each by number."""

    def __init__(self, node: Sequences) -> None:
        self.node = node
        self.schema: Schema = node.condition_schema()
        self.navigations: Mapping[str, Navigation] = {n.name: n for n in node.navigations}
        self.registers: list[Register] = []
        self.columns: list[Term] = []
        self.constants: list[Value] = []

    def compiled(self, variable: str) -> Compiled:
        """The condition of a variable. `NotCompiled` where kernels can not evaluate it."""
        condition = self.node.condition_of(variable)
        row, programs, ahead, later = list[Term](), list[Program](), list[Term](), list[Later]()
        for part in () if condition is None else conjuncts(condition):
            behind = self._behind(part, variable)
            if self._anchors(part, variable) <= {CURRENT}:
                (ahead if behind else row).append(part)
                continue
            program = self.program(part, variable)
            if not behind:
                programs.append(program)
            elif next(atoms_of(part)) == part:
                later.append(Later(program, behind))
            else:
                raise NotCompiled(f"the condition of {variable} has a choice that a row behind others decides in part")
        return Compiled(tuple(row), tuple(programs), tuple(ahead), tuple(later))

    def program(self, part: Term, variable: str) -> Program:
        """The program of a part of a variable's condition. `NotCompiled` where kernels can not evaluate it."""
        return Writer(self, variable).program(resolve(part, self.schema))

    def register(self, variables: Variables, end: Literal["first", "last"], offset: int) -> int:
        """The number of the register of a row; those between it and the end of the match are registers, too."""
        return [self._number(Register(variables, end, before)) for before in range(offset + 1)][-1]

    def aggregate(
        self, variables: Variables, holds: Literal["least", "greatest", "count", "sum"], column: int = -1
    ) -> int:
        """The number of the register of an aggregate; the words of a sum follow each other."""
        words = SUM_WORDS if holds == "sum" else 1
        numbers = [self._number(Register(variables, holds, word, column)) for word in range(words)]
        return numbers[0]

    def _number(self, register: Register) -> int:
        if register not in self.registers:
            self.registers.append(register)
        return self.registers.index(register)

    def column(self, term: Term) -> int:
        if term not in self.columns:
            self.columns.append(term)
        return self.columns.index(term)

    def constant(self, value: Value) -> int:
        self.constants.append(value)
        return len(self.constants) - 1

    def is_double(self, column: int) -> bool:
        return resolve(self.columns[column], self.schema).type == DOUBLE

    def anchor(self, name: str, variable: str) -> int | None:
        """The register of the row that is read, or near which one is, or the current row; None: it is no row."""
        navigation = self.navigations.get(name)
        if navigation is None:
            return CURRENT
        if isinstance(navigation, RowValue):
            row = navigation.row
            return CURRENT if is_current(row, variable) else self.register(row.variables, row.end, row.offset)
        if isinstance(navigation, RowsAggregate):
            return None
        raise NotCompiled(f"the condition of {variable} reads the variable of a row")

    def _behind(self, term: Term, variable: str) -> tuple[tuple[int, int], ...]:
        """What a term reads of rows behind others, by their anchors."""
        rows = [(name, self.navigations[name]) for name in sorted(attributes_of(term) & self.navigations.keys())]
        steps = {
            (self.anchor(name, variable), navigation.row.step)
            for name, navigation in rows
            if isinstance(navigation, RowValue) and navigation.row.step > 0
        }
        return tuple(sorted((anchor, step) for anchor, step in steps if anchor is not None))

    def _anchors(self, term: Term, variable: str) -> set[int | None]:
        return {self.anchor(name, variable) for name in attributes_of(term)}

    def one_anchor(self, term: Term, variable: str) -> int | None:
        """The anchor of a term that reads one row and those before it; None where it reads other rows or none."""
        anchors = self._anchors(term, variable)
        return anchors.pop() if len(anchors) == 1 else None


def is_current(row: RowOf, variable: str) -> bool:
    """Whether a row, but for its step, is the one whose condition for a variable is asked for."""
    return row.end == "last" and row.offset == 0 and (not row.variables or variable in row.variables)
