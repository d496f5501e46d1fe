"""The measures of matches, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, assert_never

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST
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
from tidegate.algebra.terms import Attr, attributes_of
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.sequences.tables import SearchTables
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.partials import aggregate
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.eval.terms import compile_pair
from tidegate.runtime.ordered.family import tell_matches
from tidegate.runtime.ordered.sequences.found import Found
from tidegate.runtime.ordered.sequences.rows import OrderedRows, known_places, taken

#: The number of a match, beside the attributes of its rows.
_MATCH: Final = "\0match"


@dataclass(frozen=True)
class Measures:
    """The measures of reported rows: of each match one, or as many as it has rows that are not excluded."""

    tables: SearchTables
    rows: OrderedRows
    found: Found

    @cached_property
    def reported(self) -> Int64Array:
        """The rows of matches that are reported, by their numbers among all rows of matches; where a match is one row,
        the numbers of matches.
        """
        node = self.tables.node
        if node.reported.rows == "one":
            return np.arange(len(self.found.matches))
        excluded = np.array([state.excluded for state in self.tables.automaton.states])
        return np.flatnonzero(~excluded[self.found.states])

    @cached_property
    def match(self) -> Int64Array:
        """The match of each reported row."""
        return self.reported if self.tables.node.reported.rows == "one" else self._match[self.reported]

    def columns(self) -> list[pl.Series]:
        """A column for each measure; NULL where one has no value."""
        node, schema = self.tables.node, self.rows.schema
        if not node.measures:
            return []
        names = {name for measure in node.measures for name in attributes_of(measure.term)}
        read = {n.name: self._navigation(n).alias(n.name) for n in node.navigations if n.name in names}
        frame = pl.DataFrame(read or {"": np.zeros(len(self.reported))})
        made: list[pl.Series | None] = []
        terms = []
        for measure in node.measures:
            if isinstance(measure.term, Attr) and measure.term.name in read:
                made.append(read[measure.term.name].alias(measure.name))
                continue
            made.append(None)
            pair = compile_pair(measure.term, schema)
            value = pair.value if pair.error is None else pl.when(pair.error.is_null()).then(pair.value)
            # A constant has one row, whatever the frame.
            of_each = value if attributes_of(measure.term) else pl.when(pl.int_range(pl.len()) >= 0).then(value)
            terms.append(of_each.alias(measure.name))
        values = iter(frame.select_seq(terms).get_columns() if terms else ())
        return [next(values) if one is None else one for one in made]

    def _navigation(self, navigation: Navigation) -> pl.Series:
        match navigation:
            case RowValue(_, argument, row, final):
                return self.rows.values_at(argument, self._places(row, final=final))
            case Classifier(_, row, final):
                return self._classified(row, final=final)
            case RowsAggregate(aggregate, variables, final):
                if aggregate.function is Function.COUNT and aggregate.argument is None:
                    return pl.Series(self._counted(self._members(variables), final=final)[1])
                return self._aggregated(navigation).gather(self.match)
            case MatchNumber():
                return pl.Series(self.found.number[self.match])
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

    def _members(self, variables: Variables) -> BoolArray:
        """Which rows of matches have one of these variables."""
        return ((np.int64(self.tables.number(variables)) >> self._variable) & 1).astype(np.bool_)

    def _ends(self, *, final: bool) -> Int64Array:
        """Where the rows end, among those of all matches, that are seen from each reported row."""
        if final or self.tables.node.reported.rows == "one":
            return (self.found.first_row + self.found.length)[self.match]
        return self.reported + 1

    def _counted(self, members: BoolArray, *, final: bool) -> tuple[Int64Array, Int64Array]:
        """Of each reported row, how many members there are before its match, and how many in what is seen of it."""
        count = np.concatenate([[0], np.cumsum(members)])
        before = count[self.found.first_row[self.match]]
        return before, count[self._ends(final=final)] - before

    def _matched(self, row: RowOf, *, final: bool) -> Int64Array:
        """Of each reported row the row of its match from which a row is reached; -1 where there is none."""
        members = self._members(row.variables)
        before, count = self._counted(members, final=final)
        at = before + (count - 1 - row.offset if row.end == "last" else row.offset)
        found, has = np.full(len(at), -1, dtype=np.int64), count > row.offset
        found[has] = np.flatnonzero(members)[at[has]]
        return found

    def _places(self, row: RowOf, *, final: bool) -> Int64Array:
        """Of each reported row the place of a row; -1 where there is none."""
        matched = self._matched(row, final=final)
        places, has = np.full(len(matched), -1, dtype=np.int64), matched >= 0
        places[has] = self.found.places[matched[has]] + row.step
        places[places < self.rows.offsets[self.found.partition[self.match]]] = -1
        return places

    def _classified(self, row: RowOf, *, final: bool) -> pl.Series:
        """The variable of a row; NULL of one outside of the match."""
        matched = self._matched(row, final=final)
        has = np.flatnonzero(matched >= 0)
        # Rows of matches are in order of these.
        rank = self._match * (self.rows.height + 1) + self.found.places
        wanted = rank[matched[has]] + row.step
        at = np.minimum(np.searchsorted(rank, wanted), max(len(rank) - 1, 0))
        inside = (self.found.places[matched[has]] + row.step >= 0) & (rank[at] == wanted)
        variable = np.full(len(matched), -1, dtype=np.int64)
        variable[has[inside]] = self._variable[at[inside]]
        return pl.Series(self.tables.variables, dtype=pl.String)[known_places(variable)]

    def _aggregated(self, navigation: RowsAggregate) -> pl.Series:
        """An aggregate over the rows of each match; of no rows where it has none."""
        schema, lenient = self.tables.node.input.schema, navigation.aggregate.lenient()
        members = self._members(navigation.variables)
        read = Schema((*schema.attributes, Attribute(_MATCH, BIGINT, nullable=False)))
        group = Group(Scan(StreamDef("rows", read, static=True)), (_MATCH,), (lenient,))
        source = self.rows.source[self.found.places[members]]
        needed = {name: self.rows.at(name, source) for term in lenient.terms for name in sorted(attributes_of(term))}
        values = aggregate(group, pl.DataFrame({**needed, _MATCH: self._match[members]}))
        none, type_ = aggregated(lenient, [], schema), polars_type(attribute_of(navigation, schema).type)
        matches = len(self.found.matches)
        place = np.full(matches, values.height, dtype=np.int64)
        place[values.get_column(_MATCH).to_numpy()] = np.arange(values.height)
        return values.get_column(lenient.name).append(pl.Series([none], dtype=type_)).gather(place)


def result_of(tables: SearchTables, rows: OrderedRows, found: Found, keys: pl.DataFrame) -> pl.DataFrame:
    """The rows of the result that report these matches; `keys` has those of the partitions."""
    tell_matches(len(found.matches))
    node, measures = tables.node, Measures(tables, rows, found)
    match = measures.match
    columns: dict[str, pl.Series] = {}
    if node.reported.rows == "all":
        source = rows.source[found.places[measures.reported]]
        columns = {name: rows.at(name, source) for name in node.input.schema.names}
    elif node.keys:
        columns = {one.name: taken(one, found.partition) for one in keys.get_columns()}
    columns |= {one.name: one for one in measures.columns()}
    columns[FIRST] = pl.Series(rows.time[found.start][match])
    columns[LAST] = pl.Series(rows.time[found.last][match])
    columns[DETECTED] = pl.Series(found.detected[match])
    return pl.DataFrame({name: columns[name] for name in node.schema.names})
