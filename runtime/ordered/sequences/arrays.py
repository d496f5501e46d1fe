"""The tables of a row pattern as the arrays that kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tidegate.algebra.ordered.sequences.automata.residuals import residuals
from tidegate.algebra.ordered.sequences.definition import Point
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.analysis.ordered.sequences.conditions import Instruction, Program, Register
from tidegate.analysis.ordered.sequences.tables import SearchTables, tables_of
from tidegate.runtime.arrays import Float64Array, Int64Array
from tidegate.runtime.kernels.sequences import threads
from tidegate.runtime.kernels.sequences.machine import OPERATIONS


@dataclass(frozen=True, slots=True)
class PatternArrays:
    """A pattern as kernels take it, in the order of their arguments; `wanted` has by state the variables of its ways
    on, as a mask: from the first state those that a match may begin with. `residuals` has by state, where matches per
    start are limited, the number from 1 on of those that the same variables of rows to come lead to the end.
    """

    tables: SearchTables
    ways: Int64Array
    to: Int64Array
    variable: Int64Array
    end_at: Int64Array
    groups: Int64Array
    numbers: Int64Array
    programs: Int64Array
    code: Int64Array
    ints: Int64Array
    doubles: Float64Array
    limits: Int64Array
    completions: Int64Array
    completed: Int64Array
    wanted: Int64Array
    residuals: Int64Array

    @property
    def width(self) -> int:
        """How many integers a thread has."""
        return threads.REGISTERS + len(self.tables.conditions.registers)

    @property
    def arguments(self) -> tuple[Any, ...]:
        automaton = (self.ways, self.to, self.variable, self.end_at)
        conditions = (self.groups, self.numbers, self.programs, self.code, self.ints, self.doubles)
        return (*automaton, *conditions, self.limits, self.completions, self.completed)


@lru_cache(maxsize=256)
def arrays_of(node: Sequences) -> PatternArrays | None:
    """The arrays of a pattern; None where kernels can not search by it."""
    tables = tables_of(node)
    return None if isinstance(tables, str) else _arrays(tables)


def _arrays(tables: SearchTables) -> PatternArrays:
    states, number = tables.automaton.states, tables.variables.index
    ways = [[way.to for way in state.transitions] for state in states]
    end_at = [its.index(None) if None in its else -1 for its in ways]
    wanted = [sum({1 << number(states[to].variable) for to in its if to is not None}) for its in ways]
    groups, numbers = _groups(tables)
    programs = [_joined(compiled.programs) for compiled in tables.compiled]
    completions = [some for both in tables.completions for some in both]
    return PatternArrays(
        tables,
        _starts(ways),
        _ints([-1 if to is None else to for its in ways for to in its]),
        _ints([0, *(number(state.variable) for state in states[1:])]),
        _ints(end_at),
        _table(groups, 4),
        _ints(numbers),
        _starts(programs),
        _table([(OPERATIONS.index(i.operation), i.first, i.second) for program in programs for i in program], 3),
        _ints([int(value) if isinstance(value, int) else 0 for value in tables.conditions.constants]),
        np.array([float(value or 0) for value in tables.conditions.constants], dtype=np.float64),
        _table([_limit(tables, limit.later, limit.earlier, limit.most) for limit in tables.node.limits], 5),
        _table([(_bits(one.later), _bits(one.earlier)) for some in completions for one in some], 2),
        _starts(completions),
        _ints(wanted),
        _ints(_residuals(tables) if tables.node.per_start else []),
    )


def _residuals(tables: SearchTables) -> list[int]:
    """By state of an automaton that is deterministic."""
    numbers = residuals(tables.automaton)
    return [1 + numbers[frozenset((state,))] for state in range(len(tables.automaton.states))]


def _groups(tables: SearchTables) -> tuple[list[tuple[int, int, int, int]], list[int]]:
    """The registers by what they hold: rows of a table, and the list of their numbers, by offset."""
    registers, groups, numbers = tables.conditions.registers, [], list[int]()
    for register in registers:
        if register.offset:
            continue
        its = [n for n, r in enumerate(registers) if _kin(r) == _kin(register)]
        kind = (
            threads.COUNT if register.counts else threads.FIRST_ROWS if register.end == "first" else threads.LAST_ROWS
        )
        groups.append((kind, tables.number(register.variables), len(numbers), len(its)))
        numbers += sorted(its, key=lambda n: registers[n].offset)
    return groups, numbers


def _kin(register: Register) -> object:
    return register.variables, register.end, register.counts


def _joined(programs: Sequence[Program]) -> Program:
    """The program that is true where all of these are."""
    code = list[Instruction]()
    for number, program in enumerate(programs):
        code += program
        if number:
            code.append(Instruction("and"))
    return tuple(code)


def _limit(tables: SearchTables, later: Point, earlier: Point, most: int) -> tuple[int, ...]:
    return (*_point(tables, later), *_point(tables, earlier), most)


def _point(tables: SearchTables, point: Point) -> tuple[int, int]:
    if point.variable is None:
        return threads.MATCH_FIRST if point.end == "first" else threads.MATCH_LAST, 0
    register = tables.conditions.register(tables.node.resolved(point.variable), point.end, 0)
    return threads.FIRST_OF if point.end == "first" else threads.LAST_OF, register


def _bits(flags: Sequence[bool]) -> int:
    return sum(1 << k for k, flag in enumerate(flags) if flag)


def _starts(parts: Sequence[Sequence[object]]) -> Int64Array:
    """Where each part begins if they stand one after the other, and where the last ends."""
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _ints(values: Sequence[int]) -> Int64Array:
    return np.array(values, dtype=np.int64)


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Int64Array:
    return np.array(rows, dtype=np.int64).reshape(-1, width)
