"""Grouping of a small batch. NumPy lifts, merges and finishes the states of `runtime.plan.aggregate_states`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import Group
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.eval.aggregates.sums import segment_sums
from tidegate.runtime.eval.small.terms import Value, array_term, column_of
from tidegate.runtime.plan.aggregate_states import State, states
from tidegate.runtime.rows import Array, SmallRows, Unsupported, numbered

_HALF: Final = 2**32
#: High halves whose totals fit every type, decimals of 18 digits too.
_SAFE: Final = 2**27
_FORMS: Final = frozenset(Form) - {Form.DISTINCT, Form.SKETCH, Form.WHOLE}


@dataclass(frozen=True, slots=True)
class Grouping:
    """A supported grouping, with the argument and the order of each aggregate as functions of columns."""

    group: Group
    states: tuple[State, ...]
    arguments: tuple[Value | None, ...]
    orders: tuple[Value | None, ...]

    def whole(self, rows: SmallRows) -> SmallRows:
        """One row per group of the grouping's input."""
        return self.final(self.partial(rows))

    def partial(self, rows: SmallRows) -> SmallRows:
        """The partial results, one per group, of rows of the grouping's input."""
        lifted: dict[str, Array] = {key: rows.columns[key] for key in self.group.keys}
        for state, argument, order in zip(self.states, self.arguments, self.orders, strict=True):
            lifted |= _lift(state, rows, argument, order)
        return self._merged(SmallRows(lifted, rows.height), rows=True)

    def merge(self, partials: SmallRows) -> SmallRows:
        """Merges partial results of disjoint parts of the input into one row per group."""
        return self._merged(partials, rows=False)

    def final(self, partials: SmallRows) -> SmallRows:
        """The results of the grouping from its merged partial results."""
        columns = {key: partials.columns[key] for key in self.group.keys}
        columns |= {state.aggregate.name: _result(state, partials.columns) for state in self.states}
        return SmallRows(columns, partials.height)

    def _merged(self, partials: SmallRows, *, rows: bool) -> SmallRows:
        if not partials.height:
            return partials
        columns = [partials.columns[key] for key in self.group.keys]
        numbers, firsts = (
            numbered(columns) if columns else (np.zeros(partials.height, dtype=np.int64), np.zeros(1, int))
        )
        groups = _Groups.of(numbers, len(firsts))
        merged = {key: partials.columns[key][firsts] for key in self.group.keys}
        for state in self.states:
            merged |= _combine(state, partials.columns, groups, rows=rows)
        return SmallRows(merged, len(firsts))


@lru_cache(maxsize=1024)
def grouping(group: Group) -> Grouping | None:
    """The grouping of a small batch. None where only Polars supports its keys or one of its aggregates."""
    schema = group.input.schema
    known = states(group)
    if any(schema[key].type.kind is Kind.DOUBLE for key in group.keys):
        return None
    if any(state.form not in _FORMS or Kind.STRING in (state.argument.kind, state.by.kind) for state in known):
        return None
    terms = [(state.aggregate.argument, state.aggregate.by) for state in known]
    values = [[None if term is None else array_term(term, schema) for term in pair] for pair in terms]
    if any(
        (term is None) != (value is None)
        for pair, pair_values in zip(terms, values, strict=True)
        for term, value in zip(pair, pair_values, strict=True)
    ):
        return None
    return Grouping(group, known, tuple(argument for argument, _ in values), tuple(order for _, order in values))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows in the order of their groups, and where each group starts."""

    numbers: Array
    order: Array
    starts: Array
    counts: Array

    @classmethod
    def of(cls, numbers: Array, count: int) -> _Groups:
        counts = np.bincount(numbers, minlength=count)
        return cls(numbers, np.argsort(numbers, kind="stable"), np.cumsum(counts) - counts, counts)

    def reduce(self, kernel: Any, column: Array) -> Array:
        reduced: Array = kernel.reduceat(column[self.order], self.starts)
        return reduced


def _lift(state: State, rows: SmallRows, argument: Value | None, order: Value | None) -> dict[str, Array]:
    """The state of a single row, part by part."""
    if argument is None:
        return {state.column("n"): np.ones(rows.height, dtype=np.int64)}
    value = _same_zero(column_of(argument, state.argument.kind, rows), state.argument)
    parts: dict[str, Array]
    match state.form:
        case Form.COUNT:
            return {state.column("n"): np.ones(rows.height, dtype=np.int64)}
        case Form.INTEGER_SUM:
            parts = {state.column("hi"): value // _HALF, state.column("lo"): value % _HALF}
        case Form.DOUBLE_SUM:
            parts = {state.column("sum"): value, state.column("comp"): np.zeros(rows.height)}
        case Form.EARLIEST | Form.LATEST:
            assert order is not None
            by = _same_zero(column_of(order, state.by.kind, rows), state.by)
            return {state.column("by"): by, state.column("v"): value}
        case _:
            return {state.column("v"): value}
    if state.averages:
        parts[state.column("n")] = np.ones(rows.height, dtype=np.int64)
    return parts


def _same_zero(column: Array, type_: DataType) -> Array:
    """Doubles with 0.0 in the place of -0.0, which equals it."""
    return column + 0.0 if type_.kind is Kind.DOUBLE else column


def _combine(state: State, columns: Mapping[str, Array], groups: _Groups, *, rows: bool) -> dict[str, Array]:
    """The states of all groups, from the states of their rows or parts."""

    def part(name: str, kernel: Any = np.add) -> Array:
        return groups.reduce(kernel, columns[state.column(name)])

    parts: dict[str, Array]
    match state.form:
        case Form.COUNT:
            return {state.column("n"): part("n")}
        case Form.INTEGER_SUM:
            low = part("lo")
            parts = {"hi": part("hi") + low // _HALF, "lo": low % _HALF}
        case Form.DOUBLE_SUM:
            parts = _double_sum(state, columns, groups, rows=rows)
        case Form.LEAST | Form.GREATEST:
            return {state.column("v"): part("v", np.minimum if state.form is Form.LEAST else np.maximum)}
        case _:
            return _best(state, columns, groups)
    if state.averages:
        parts["n"] = part("n")
    return {state.column(name): column for name, column in parts.items()}


def _double_sum(state: State, columns: Mapping[str, Array], groups: _Groups, *, rows: bool) -> dict[str, Array]:
    values, starts, counts = columns[state.column("sum")][groups.order], groups.starts, groups.counts
    if not rows:
        values = np.stack([values, columns[state.column("comp")][groups.order]], axis=1).reshape(-1)
        starts, counts = 2 * starts, 2 * counts
    total, comp = segment_sums(values, starts, counts)
    return {"sum": total, "comp": comp}


def _best(state: State, columns: Mapping[str, Array], groups: _Groups) -> dict[str, Array]:
    """The least or greatest order of each group, and the least of the values that have it."""
    by, value = columns[state.column("by")], columns[state.column("v")]
    late = state.form is Form.LATEST
    best = groups.reduce(np.maximum if late else np.minimum, by)
    tied = np.flatnonzero(by == best[groups.numbers])
    first = tied[np.lexsort((value[tied], groups.numbers[tied]))]
    _, places = np.unique(groups.numbers[first], return_index=True)
    return {state.column("by"): best, state.column("v"): value[first[places]]}


def _result(state: State, columns: Mapping[str, Array]) -> Array:
    def part(name: str) -> Array:
        return columns[state.column(name)]

    average = state.averages
    result: Array
    with np.errstate(all="ignore"):
        match state.form:
            case Form.COUNT:
                return part("n")
            case Form.INTEGER_SUM if average:
                total = part("hi").astype(np.float64) * float(_HALF) + part("lo").astype(np.float64)
                result = total / 10.0**state.argument.scale / part("n")
            case Form.INTEGER_SUM:
                high = part("hi")
                if not ((high >= -_SAFE) & (high < _SAFE)).all():
                    raise Unsupported  # the total may be out of range
                return high * _HALF + part("lo")
            case Form.DOUBLE_SUM:
                total = part("sum") + part("comp")
                result = total / part("n") if average else total
            case _:
                return part("v")
    if np.isnan(result).any():
        raise Unsupported
    return result
