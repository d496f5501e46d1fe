"""The state of the aggregates of runs: partial results that merge, and the distinct values that count_distinct
counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, Kind
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.partials import final, merge, partial, same_zero
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.lenient import Lenient, SetAside
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.aggregate_states import partial_schema

#: Beside the run, the column of a table of different values.
_VALUE = "value"


@dataclass(frozen=True, slots=True)
class RunPartials:
    """Partial results by run. `merged` has a row per run; `different` one per run and value of each count_distinct."""

    merged: pl.DataFrame
    different: tuple[pl.DataFrame, ...] = ()

    @property
    def height(self) -> int:
        """The number of rows in all tables."""
        return sum(rows.height for rows in self.tables)

    @property
    def tables(self) -> tuple[pl.DataFrame, ...]:
        """`merged` and `different`; the first column of each has the run."""
        return (self.merged, *self.different)

    def of(self, runs: pl.DataFrame) -> RunPartials:
        """The partial results of these runs."""
        return RunPartials.from_tables(rows.join(runs, on=runs.columns[0], how="semi") for rows in self.tables)

    def without(self, runs: pl.DataFrame) -> RunPartials:
        """The partial results of the other runs."""
        return RunPartials.from_tables(rows.join(runs, on=runs.columns[0], how="anti") for rows in self.tables)

    @classmethod
    def from_tables(cls, tables: Iterable[pl.DataFrame]) -> RunPartials:
        merged, *different = tables
        return cls(merged, tuple(different))


@dataclass(frozen=True, slots=True)
class RunAggregates:
    """The aggregates of a definition by run, in the order of `names`: those of `group` merge; `distinct` count values,
    so every value is held once per run. A first or last by `time` goes by the order in which events are given.
    `noted` takes the sums that do not fit, which are NULL then; None: they are errors.
    """

    names: tuple[str, ...]
    group: Group
    distinct: tuple[Aggregate, ...]
    time: Attr
    noted: list[SetAside] | None = None

    @classmethod
    def of(cls, situation: Derive) -> RunAggregates:
        run = "run"
        while {run, *_requested(run)} & {*situation.input.schema}:
            run = f"~{run}"
        schema = Schema((Attribute(run, BIGINT, nullable=False), *situation.input.schema.attributes))
        rows = Scan(StreamDef("events", schema, static=True))
        distinct = tuple(aggregate for aggregate in situation.aggregates if not aggregate.entry.merges)
        merging = tuple(aggregate for aggregate in situation.aggregates if aggregate.entry.merges)
        names = tuple(aggregate.name for aggregate in situation.aggregates)
        return cls(names, Group(rows, (run,), merging), distinct, Attr(situation.time))

    @property
    def run(self) -> str:
        """The column with the number of the run."""
        return self.group.keys[0]

    @property
    def requested(self) -> tuple[str, str]:
        """Columns beside it and those of events, of requests for values: the instant up to which events count, the
        number.
        """
        return _requested(self.run)

    @property
    def events(self) -> list[str]:
        """The columns of events and their runs."""
        return list(self.group.input.schema.names)

    def nothing(self) -> RunPartials:
        """The partial results of no events."""
        schema = self.group.input.schema
        shapes = [partial_schema(self.group)]
        for aggregate in self.distinct:
            assert aggregate.argument is not None
            value = Attribute(_VALUE, term_type(aggregate.argument, schema))
            shapes.append(Schema((schema[self.run], value)))
        return RunPartials.from_tables(pl.DataFrame(schema=polars_schema(shape)) for shape in shapes)

    def partial(self, events: pl.DataFrame) -> RunPartials:
        """The partial results of events, given each event's run. The events of a run are in order.

        Events of one instant are never divided between partial results, so these need not hold what orders ties.
        """
        merged = partial(self.group, events, ordered_by=self.time) if self.group.aggregates else self.nothing().merged
        return RunPartials(merged, tuple(self._different(aggregate, events) for aggregate in self.distinct))

    def merge(self, first: RunPartials, second: RunPartials) -> RunPartials:
        """Merges the partial results of disjoint parts of the events."""
        merged = pl.concat([first.merged, second.merged])
        different = zip(first.different, second.different, strict=True)
        return RunPartials(
            merge(self.group, merged) if self.group.aggregates else merged,
            tuple(pl.concat(pair).unique() for pair in different),
        )

    def final(self, run: Int64Array, partials: RunPartials) -> pl.DataFrame:
        """The aggregates of these runs, in order."""
        wanted = pl.DataFrame({self.run: run})
        merged = partials.merged.join(wanted, on=self.run, how="semi")  # a sum that nobody asks for may be any
        if self.noted is None:
            results = final(self.group, merged)
        else:
            walk = Lenient({})
            results = walk.finished(self.group, merged, None)
            self.noted.extend(walk.aside)
        values = wanted.join(results, on=self.run, how="left", maintain_order="left")
        for aggregate, rows in zip(self.distinct, partials.different, strict=True):
            counts = rows.join(wanted, on=self.run, how="semi").group_by(self.run)
            counted = counts.agg(pl.len().cast(pl.Int64).alias(aggregate.name))
            values = values.join(counted, on=self.run, how="left", maintain_order="left")
            values = values.with_columns(pl.col(aggregate.name).fill_null(0))
        return values.select(self.names)

    def _different(self, aggregate: Aggregate, events: pl.DataFrame) -> pl.DataFrame:
        """The distinct pairs of run and argument value, without NULL."""
        assert aggregate.argument is not None
        schema = self.group.input.schema
        value = compile_term(aggregate.argument, schema)
        value = same_zero(value) if term_type(aggregate.argument, schema).kind is Kind.DOUBLE else value
        return events.select(self.run, value.alias(_VALUE)).drop_nulls(_VALUE).unique()


def _requested(run: str) -> tuple[str, str]:
    return f"{run} until", f"{run} request"
