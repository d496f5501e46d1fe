"""The measures of matches, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, assert_never

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
    Variables,
    attribute_of,
)
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.semantics import aggregated
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.sequences.tables import SearchTables
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.partials import aggregate
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.eval.terms import compile_pair
from tidegate.runtime.ordered.sequences.found import Found
from tidegate.runtime.ordered.sequences.rows import OrderedRows

#: The number of a match, beside the attributes of its rows.
_MATCH: Final = "\0match"


@dataclass(frozen=True)
class Measures:
    """The measures of matches."""

    tables: SearchTables
    rows: OrderedRows
    found: Found

    def columns(self) -> list[pl.Series]:
        """A column for each measure; NULL where one has no value."""
        return [self._measure(number) for number in range(len(self.tables.node.measures))]

    def _measure(self, number: int) -> pl.Series:
        measure, schema = self.tables.node.measures[number], self.rows.schema
        by_name = {navigation.name: navigation for navigation in self.tables.node.navigations}
        read = {name: self._navigation(by_name[name]).alias(name) for name in sorted(attributes_of(measure.term))}
        pair = compile_pair(measure.term, schema)
        value = pair.value if pair.error is None else pl.when(pair.error.is_null()).then(pair.value)
        frame = pl.DataFrame(read or {"": np.zeros(len(self.found.matches))})
        # A constant has one row, whatever the frame.
        return frame.select(pl.when(pl.int_range(pl.len()) >= 0).then(value).alias(measure.name)).to_series()

    def _navigation(self, navigation: Navigation) -> pl.Series:
        match navigation:
            case RowValue(_, argument, row):
                places = self._places(row)
                known = places >= 0
                return _where(known, self.rows.value(argument).gather(places[known]))
            case Classifier(_, row):
                return self._classified(row)
            case RowsAggregate():
                return self._aggregated(navigation)
            case MatchNumber():
                return pl.Series(self.found.number)
            case _:
                assert_never(navigation)

    @cached_property
    def _match(self) -> Int64Array:
        """The match of each row of a match."""
        return np.repeat(np.arange(len(self.found.matches)), self.found.length)

    @cached_property
    def _variable(self) -> Int64Array:
        states = self.tables.automaton.states
        numbers = [0, *(self.tables.variables.index(state.variable) for state in states[1:])]
        return np.array(numbers, dtype=np.int64)[self.found.states]

    def _members(self, variables: Variables) -> Int64Array:
        """Which rows of matches have one of these variables."""
        return np.flatnonzero((np.int64(self.tables.number(variables)) >> self._variable) & 1)

    def _matched(self, row: RowOf) -> Int64Array:
        """Of each match the row among those of all, from which a row is reached; -1 where it has none."""
        members = self._members(row.variables)
        count = np.bincount(self._match[members], minlength=len(self.found.matches))
        end = np.cumsum(count)
        at = end - 1 - row.offset if row.end == "last" else end - count + row.offset
        found = np.full(len(self.found.matches), -1, dtype=np.int64)
        has = count > row.offset
        found[has] = members[at[has]]
        return found

    def _places(self, row: RowOf) -> Int64Array:
        """Of each match the place of a row; -1 where there is none."""
        matched = self._matched(row)
        places = np.full(len(self.found.matches), -1, dtype=np.int64)
        has = matched >= 0
        places[has] = self.found.places[matched[has]] + row.step
        places[places < self.rows.offsets[self.found.partition]] = -1
        return places

    def _classified(self, row: RowOf) -> pl.Series:
        """The variable of a row; NULL of one outside of the match."""
        matched = self._matched(row)
        has = np.flatnonzero(matched >= 0)
        # Rows of matches are in order of these.
        rank = self._match * (self.rows.height + 1) + self.found.places
        wanted = rank[matched[has]] + row.step
        at = np.minimum(np.searchsorted(rank, wanted), max(len(rank) - 1, 0))
        inside = (self.found.places[matched[has]] + row.step >= 0) & (rank[at] == wanted)
        is_in = np.zeros(len(matched), dtype=np.bool_)
        is_in[has[inside]] = True
        names = pl.Series(self.tables.variables, dtype=pl.String)
        return _where(is_in, names.gather(self._variable[at[inside]]))

    def _aggregated(self, navigation: RowsAggregate) -> pl.Series:
        """An aggregate over the rows of each match; of no rows where it has none."""
        schema, lenient = self.tables.node.input.schema, navigation.aggregate.lenient()
        members = self._members(navigation.variables)
        read = Schema((*schema.attributes, Attribute(_MATCH, BIGINT, nullable=False)))
        group = Group(Scan(StreamDef("rows", read, static=True)), (_MATCH,), (lenient,))
        needed = sorted(
            {name for term in (lenient.argument, lenient.by) if term is not None for name in attributes_of(term)}
        )
        source = self.rows.source[self.found.places[members]]
        frame = pl.DataFrame({**{name: self.rows.at(name, source) for name in needed}, _MATCH: self._match[members]})
        values = aggregate(group, frame)
        none = aggregated(lenient, [], schema)
        type_ = polars_type(attribute_of(navigation, schema).type)
        every = pl.DataFrame({_MATCH: np.arange(len(self.found.matches))})
        joined = every.join(values, on=_MATCH, how="left", maintain_order="left").get_column(lenient.name)
        if none is None:
            return joined
        has = np.zeros(len(self.found.matches), dtype=np.bool_)
        has[self._match[members]] = True
        return pl.select(pl.when(pl.Series(has)).then(joined).otherwise(pl.lit(none, type_))).to_series()


def _where(known: BoolArray, values: pl.Series) -> pl.Series:
    """The values where they are known, and NULL elsewhere."""
    if known.all():
        return values
    at = np.where(known, np.cumsum(known) - 1, 0)
    if not len(values):
        return pl.Series(values.name, [None] * len(known), dtype=values.dtype)
    return pl.select(pl.when(pl.Series(known)).then(values.gather(at))).to_series()
