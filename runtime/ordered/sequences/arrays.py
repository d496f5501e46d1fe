"""The tables of a row pattern as the arrays that kernels take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, assert_never

import numpy as np

from tidegate.algebra.ordered.sequences.automata.automaton import State
from tidegate.algebra.ordered.sequences.automata.residuals import residuals
from tidegate.algebra.ordered.sequences.definition import Point
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.analysis.ordered.sequences.conditions import Later
from tidegate.analysis.ordered.sequences.programs import Register, joined
from tidegate.analysis.ordered.sequences.tables import SearchTables, tables_of
from tidegate.analysis.ordered.sequences.ways import Absences, Guard
from tidegate.runtime.arrays import Float64Array, Int64Array
from tidegate.runtime.kernels.sequences import every, threads
from tidegate.runtime.kernels.sequences.machine import OPERATIONS


@dataclass(frozen=True, slots=True)
class PatternArrays:
    """A pattern as kernels take it, in the order of their arguments (`threads.PATTERN`), and then what one of them
    takes, by state: `labels` say of the preferred match which rows are told apart, `wanted` has the variables of the
    ways on, as a mask (from the first state those that a match may begin with), `watched` the rows that must not come
    before the next one, and `ending` whether a match ends there. `residuals` has, where matches per start are limited,
    the number from 1 on of the states that the same variables of rows to come lead to the end.

    `leading` are the rows that must not come before a match, and that no row of the match tells; `from_first` is the
    bit that says that a row is not the first of its partition.
    """

    tables: SearchTables
    to: Int64Array
    variable: Int64Array
    guards: Int64Array
    parts: Int64Array
    part_of: Int64Array
    ends: Int64Array
    ends_of: Int64Array
    groups: Int64Array
    numbers: Int64Array
    programs: Int64Array
    code: Int64Array
    ints: Int64Array
    doubles: Float64Array
    ahead: Int64Array
    later_of: Int64Array
    later: Int64Array
    reads: Int64Array
    absences: Int64Array
    limits: Int64Array
    demands: Int64Array
    completions: Int64Array
    labels: Int64Array
    wanted: Int64Array
    watched: Int64Array
    ending: Int64Array
    residuals: Int64Array
    leading: int
    from_first: int

    @property
    def width(self) -> int:
        """How many integers a thread has."""
        return threads.REGISTERS + len(self.tables.conditions.registers)

    @property
    def arguments(self) -> tuple[Any, ...]:
        automaton = (self.to, self.variable, self.guards, self.parts, self.part_of, self.ends, self.ends_of)
        conditions = (self.groups, self.numbers, self.programs, self.code, self.ints, self.doubles)
        ahead = (self.ahead, self.later_of, self.later, self.reads)
        return (*automaton, *conditions, *ahead, self.absences, self.limits, self.demands, self.completions)


@lru_cache(maxsize=256)
def arrays_of(node: Sequences) -> PatternArrays | None:
    """The arrays of a pattern; None where kernels can not search by it."""
    tables = tables_of(node)
    return None if isinstance(tables, str) else _arrays(tables)


def _arrays(tables: SearchTables) -> PatternArrays:
    states, ways, number = tables.automaton.states, tables.ways, tables.variables.index
    of_state = [0, *(number(state.variable) for state in states[1:])]
    groups, numbers = _groups(tables)
    programs = [joined(compiled.programs) for compiled in tables.compiled]
    later = [compiled.later for compiled in tables.compiled]
    kinds = (
        programs,
        [one.program for its in later for one in its],
        [d.program for d in tables.demands],
        tables.possible,
    )
    code = [program for kind in kinds for program in kind]
    begins, of_kind = _starts(code), pairwise(_starts(kinds).tolist())
    of_programs, of_later, of_demands, of_absences = (begins[first : last + 1] for first, last in of_kind)
    waiting = [variable for variable, compiled in enumerate(tables.compiled) if compiled.ahead]
    completions = [some for its in tables.completions for some in its]
    first_way, parts = _starts([state.transitions for state in states]), [part for its in ways for part in its.parts]
    state_of = [state for state, its in enumerate(ways) for _ in its.parts]
    return PatternArrays(
        tables=tables,
        to=_ints([-1 if way.to is None else way.to for state in states for way in state.transitions]),
        variable=_ints(of_state),
        guards=_table([_guard(tables, guard) for its in ways for guard in its.guards], 2),
        parts=_table(
            [
                (first_way[state] + first, first_way[state] + last, begin, end)
                for state, (first, last), (begin, end) in zip(
                    state_of, parts, pairwise(_starts(completions)), strict=True
                )
            ],
            4,
        ),
        part_of=_starts([its.parts for its in ways]),
        ends=_table(
            [(_mask(tables, end.absent, first=end.first), int(end.last)) for its in ways for end in its.ends], 2
        ),
        ends_of=_starts([its.ends for its in ways]),
        groups=_table(groups, 5),
        numbers=_ints(numbers),
        programs=of_programs,
        code=_table([(OPERATIONS.index(i.operation), i.first, i.second) for program in code for i in program], 3),
        ints=_ints([int(value) if isinstance(value, int) else 0 for value in tables.conditions.constants]),
        doubles=np.array([float(value or 0) for value in tables.conditions.constants], dtype=np.float64),
        ahead=_ints([waiting.index(v) if v in waiting else -1 for v in range(len(tables.variables))]),
        later_of=_starts(later),
        later=_table(list(_later(later, of_later)), 4),
        reads=_table([read for its in later for one in its for read in one.reads], 2),
        absences=_table(
            [
                (number(absence.variable), absence.within or 0, *program)
                for absence, program in zip(tables.absences, pairwise(of_absences.tolist()), strict=True)
            ],
            4,
        ),
        limits=_table([_limit(tables, limit.later, limit.earlier, limit.most) for limit in tables.node.limits], 5),
        demands=_table(list(_demands(tables, of_demands)), 6),
        completions=_table(
            [
                (_bits(one.later), _bits(one.earlier), _bits(one.asked), _bits(one.bare))
                for some in completions
                for one in some
            ],
            4,
        ),
        labels=_ints([2 * variable + state.excluded for variable, state in zip(of_state, states, strict=True)]),
        wanted=_ints([_wanted(state, of_state) for state in states]),
        watched=_ints([_mask(tables, _asked(its.guards)) for its in ways]),
        ending=_ints([every.MAY_END * its.ends_here + every.IS_VAIN * its.vain for its in ways]),
        residuals=_ints(_residuals(tables) if tables.node.per_start else []),
        leading=_mask(tables, frozenset(a for a in _asked(ways[0].guards) if not programs[number(a.variable)])),
        from_first=1 << len(tables.absences),
    )


def _wanted(state: State, of_state: Sequence[int]) -> int:
    """The variables of the ways on from a state, as a mask."""
    return sum({1 << of_state[way.to] for way in state.transitions if way.to is not None})


def _asked(guards: Sequence[Guard]) -> Absences:
    """What is asked of the rows that must not come by some of these guards."""
    return frozenset(absence for guard in guards for absence in guard.absent | guard.present)


def _guard(tables: SearchTables, guard: Guard) -> tuple[int, int]:
    asked = _mask(tables, guard.absent | guard.present, first=guard.first)
    return asked, _mask(tables, guard.present)


def _mask(tables: SearchTables, absences: Absences, *, first: bool = False) -> int:
    """Absences as a mask by their numbers; behind them, that no row is before the first one."""
    return sum(1 << tables.absences.index(absence) for absence in absences) + (first << len(tables.absences))


def _later(later: Sequence[Sequence[Later]], begins: Int64Array) -> Iterator[tuple[int, int, int, int]]:
    """Of each program where it begins and ends, and so what it reads."""
    of = [one for its in later for one in its]
    reads = _starts([one.reads for one in of])
    for program, read in zip(pairwise(begins.tolist()), pairwise(reads.tolist()), strict=True):
        yield *program, *read


def _demands(tables: SearchTables, programs: Int64Array) -> Iterator[tuple[int, ...]]:
    """The demands as kernels take them; `programs` are where theirs begin, and where the last one ends."""
    ends = {"first": threads.MATCH_FIRST, "last": threads.MATCH_LAST}
    for demand, program in zip(tables.demands, pairwise(programs.tolist()), strict=True):
        point = (threads.LAST_OF, demand.row) if isinstance(demand.row, int) else (ends[demand.row], 0)
        yield *point, threads.EVER if demand.most is None else demand.most, demand.begun, *program


def _residuals(tables: SearchTables) -> list[int]:
    """By state of an automaton that is deterministic."""
    numbers = residuals(tables.automaton)
    return [1 + numbers[frozenset((state,))] for state in range(len(tables.automaton.states))]


def _groups(tables: SearchTables) -> tuple[list[tuple[int, ...]], list[int]]:
    """The registers by what they hold: rows of a table, and the list of their numbers, by offset."""
    registers, groups, numbers = tables.conditions.registers, list[tuple[int, ...]](), list[int]()
    for register in registers:
        if register.offset:
            continue
        its = [n for n, r in enumerate(registers) if _kin(r) == _kin(register)]
        mask = tables.number(register.variables)
        groups.append((_kind(tables, register), mask, len(numbers), len(its), register.column))
        numbers += sorted(its, key=lambda n: registers[n].offset)
    return groups, numbers


def _kin(register: Register) -> object:
    return register.variables, register.holds, register.column


def _kind(tables: SearchTables, register: Register) -> int:
    """What a register holds, as kernels name it."""
    doubles = register.column >= 0 and tables.conditions.is_double(register.column)
    match register.holds:
        case "first":
            return threads.FIRST_ROWS
        case "last":
            return threads.LAST_ROWS
        case "least":
            return threads.LEAST_DOUBLE if doubles else threads.LEAST_INT
        case "greatest":
            return threads.GREATEST_DOUBLE if doubles else threads.GREATEST_INT
        case "count":
            return threads.COUNT if register.column < 0 else threads.COUNT_VALUES
        case "sum":
            return threads.SUM_OF_DOUBLES if doubles else threads.SUM_OF_INTS
        case _:
            assert_never(register.holds)


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
