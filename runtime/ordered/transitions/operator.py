"""The operator that yields context windows as they begin and end, increment by increment."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, TIME
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.transitions import OPEN
from tidegate.analysis.state.thresholds import Extents
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import polars_schema, polars_type
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.partition_store import NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import NONE, KeptExtract, KeptRows, KeptRowsOperator, row_table
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.ordered.transitions.partition import Change, PartitionContexts, Rules
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class TransitionsOperator(KeptRowsOperator):
    """Context windows as they begin and end: `held` are those that hold, `made` what the last increment has made of
    some, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None

    @property
    def node(self) -> Transitions:
        assert isinstance(self.ordered.node, Transitions)
        return self.ordered.node

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[TransitionsOperator, pl.DataFrame]:
        node, state = self.node, self.settled()
        rows = as_frame(events[0])
        state.ready()
        partitions, places = state.read_by(rows, ticks(until))
        before = state.extract(partitions)
        candidates = _from_first_change(node, before, _candidates(node, rows, places))
        is_changing = np.zeros(len(partitions), dtype=np.bool_)
        is_changing[candidates.get_column(PARTITION).to_numpy()] = True
        may_change = pl.Series(is_changing[before.rows.get_column(PARTITION).to_numpy()], dtype=pl.Boolean)
        contexts = _opened(node, np.flatnonzero(is_changing), before.rows.filter(may_change))
        changes = [
            (of, change)
            for (of, at), together in itertools.groupby(_in_order(candidates), key=lambda row: row[:2])
            for change in contexts[of].transact(at, [(row[2], row[3], row[4], row[5:]) for row in together])
        ]
        kept = pl.concat([before.rows.filter(~may_change), _kept(node, contexts)])
        kept = kept.sort(PARTITION, maintain_order=True)
        left = KeptExtract(partitions, kept, np.full(len(partitions), NO_LOOK))
        keys = state.partitions.rows(partitions[[of for of, _ in changes]]).select(node.keys) if node.keys else None
        return replace(self, made=(before, left)), _result(node, keys, [change for _, change in changes])

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """Candidates of one instant are one transaction: nothing depends on their order."""
        return list(events), []

    def described(self) -> dict[str, StateTable]:
        return state_tables(self.node)

    def bounds(self, tables: Mapping[str, Any]) -> Mapping[str, Extents]:
        """When windows that are open began, where nothing else is kept."""
        if OPEN not in tables or self.node.dated:
            return {}
        rows = pl.DataFrame(tables[OPEN].select([BEGAN, NONE])).filter(~pl.col(NONE))
        began = rows.get_column(BEGAN).to_numpy()
        return {OPEN: {BEGAN: (int(began.min()), int(began.max()))}} if len(began) else {}


class TransitionsFamily(Family[Transitions]):
    node = Transitions

    def start(self, ordered: OrderedStep) -> TransitionsOperator:
        assert isinstance(ordered.node, Transitions)
        node = ordered.node
        return TransitionsOperator(ordered, KeptRows(_keys(node), OPEN, _columns(node)))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> TransitionsOperator:
        fresh = self.start(ordered)
        state = fresh.held
        if (stored := state.stored_in(tables)) is not None:
            state.put(stored)
        return fresh


def state_tables(node: Transitions) -> dict[str, StateTable]:
    """The tables of such an operator as they are stored."""
    possible = pl.col(NONE) | (pl.col("context").is_between(0, len(node.contexts) - 1) & (pl.col("count") > 0))
    return {OPEN: row_table(_keys(node), _columns(node), possible)}


def _keys(node: Transitions) -> Schema:
    return Schema(tuple(node.input.schema[key] for key in node.keys))


@lru_cache(maxsize=256)
def _rules(node: Transitions) -> Rules:
    return Rules(node)


def _columns(node: Transitions) -> dict[str, pl.DataType]:
    """The columns of kept rows, beside the keys of their partitions."""
    schema = node.input.schema
    cause = pl.Int64() if node.cause is None else polars_type(schema[node.cause].type)
    carried = {f"row {name}": polars_type(schema[name].type) for name in node.carried}
    return {"context": pl.Int64(), "began": pl.Int64(), "cause": cause, "count": pl.Int64(), **carried}


def _from_first_change(node: Transitions, before: KeptExtract, candidates: pl.DataFrame) -> pl.DataFrame:
    """The candidates from the first instant on, in each partition, at which one may change what holds there.

    A candidate of which no context holds changes nothing, nor does the initiation of a context that goes on, unless it
    adds a cause. So up to the first one that is neither each finds what was held before all of them.
    """
    rules, places = _rules(node), candidates.get_column(PARTITION).to_numpy()
    holds = np.zeros((len(before.partitions), len(rules.names)), dtype=np.bool_)
    holds[before.rows.get_column(PARTITION).to_numpy(), before.rows.get_column("context").to_numpy()] = True
    holds[:, rules.default] = False
    holds[:, rules.default] = ~holds.any(axis=1)
    numbers = candidates.get_column("number").to_numpy()
    goes_on = rules.in_vain[numbers] & holds[places, np.array(rules.targets)[numbers]]
    may_change = (holds[places] & rules.stands[numbers]).any(axis=1) & ~goes_on
    if may_change.all():
        return candidates
    first = pl.col("at").min().alias("first")
    firsts = candidates.filter(pl.Series(may_change)).group_by(PARTITION).agg(first)
    return candidates.join(firsts, on=PARTITION).filter(pl.col("at") >= pl.col("first")).drop("first")


def _opened(node: Transitions, places: Int64Array, rows: pl.DataFrame) -> dict[int, PartitionContexts]:
    """What holds in the partitions at these places, of which these rows are kept."""
    contexts = {place: PartitionContexts(_rules(node)) for place in places.tolist()}
    for place, context, began, cause, count, *carried in rows.iter_rows():
        contexts[place].add((context, began, cause, count, (*carried,)))
    return contexts


def _candidates(node: Transitions, rows: pl.DataFrame, places: Int64Array) -> pl.DataFrame:
    """Rows as candidates: place of the partition, time, number, since, cause and what is carried, by names of their
    own.
    """
    time = pl.col(node.time)
    since = time if node.since is None else pl.min_horizontal(time, pl.col(node.since).fill_null(time))
    cause = pl.lit(None, pl.Int64()) if node.cause is None else pl.col(node.cause)
    return rows.select(
        pl.Series(PARTITION, places),
        time.alias("at"),
        pl.col(node.number).alias("number"),
        since.alias("since"),
        cause.alias("cause"),
        *(pl.col(name).alias(f"row {name}") for name in node.carried),
    )


def _in_order(candidates: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Candidates by partition and time, in the order in which they initiate."""
    carried = (name for name in candidates.columns if name.startswith("row "))
    return candidates.sort([PARTITION, "at", "number", *carried], nulls_last=False).rows()


def _kept(node: Transitions, contexts: Mapping[int, PartitionContexts]) -> pl.DataFrame:
    rows = [(place, *row[:4], *row[4]) for place, one in contexts.items() for row in one.kept()]
    return pl.DataFrame(rows, schema={PARTITION: pl.Int64(), **_columns(node)}, orient="row")


def _result(node: Transitions, keys: pl.DataFrame | None, changes: Sequence[Change]) -> pl.DataFrame:
    """Changes as rows of the result."""
    names = _rules(node).names
    rows = [(names[c.context], c.change, c.at, c.began, *c.carried) for c in changes]
    schema = polars_schema(node.schema)
    its = {name: schema[name] for name in (CONTEXT, CHANGE, TIME, BEGAN, *node.carried)}
    found = pl.DataFrame(rows, schema=its, orient="row")
    return found if keys is None else pl.concat([keys, found], how="horizontal")
