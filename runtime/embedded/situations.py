"""Deriving situations increment by increment, and what is kept of them in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.nodes import Derive, Given
from tidegate.algebra.pretty import value_text
from tidegate.algebra.schema import Schema
from tidegate.runtime.embedded.events import Partitions, Source, advance, sources
from tidegate.runtime.embedded.run_values import RunValues
from tidegate.runtime.kernels.situations import NEVER, Bools, Closed, Ints, Runs, Slots
from tidegate.runtime.kernels.slots import SlotNumbers
from tidegate.runtime.plan.steps import Stretched

#: Columns of what is kept, beside the keys, which are named by their places.
DEFINITION: Final = "definition"
START: Final = "start"
LAST: Final = "last"
NUMBER: Final = "number"


@dataclass(frozen=True, slots=True)
class Derivation:
    """Definitions of situations over the rows of some leaves, with what is open between increments.

    Every run of events has a number of its own, by which its aggregates are found; `numbers` is the next one.
    """

    situations: tuple[Derive, ...]
    sources: tuple[Source, ...]
    partitions: Partitions
    runs: tuple[Runs, ...]
    values: Mapping[int, RunValues]
    numbers: int = 0

    @classmethod
    def start(
        cls, situations: Sequence[Derive], leaves: Sequence[int], keys: Schema, stretched: Stretched | None = None
    ) -> Derivation:
        """Before the first event. Situations may be none; `keys` are those of the partitions."""
        found = sources(situations, leaves, stretched)
        return cls(
            tuple(situations),
            found,
            Partitions.of(keys),
            tuple(Runs.empty(0, len(source.definitions)) for source in found),
            {number: RunValues.of(one) for number, one in enumerate(situations) if one.aggregates},
        )

    def read(self, events: Sequence[pl.DataFrame], close_at: int | None = None) -> tuple[Derivation, list[Read]]:
        """The state after the events of an increment, by source, and what they did.

        `close_at` is where all ends that is open then: after every event.
        """
        done: list[Read] = []
        runs, values, numbers = [], dict(self.values), self.numbers
        for source, before, rows in zip(self.sources, self.runs, events, strict=True):
            found, after = advance(source, self.situations, rows, self.partitions, before, numbers)
            numbers = found.numbers
            own: dict[int, pl.DataFrame] = {}
            for number, member in found.member.items():
                values[number], own[number] = values[number].with_events(found.events, member)
            closed = found.closed
            if close_at is not None:
                ended, after = closed_at(source, after, close_at)
                closed = joined(closed, ended)
            runs.append(after)
            done.append(Read(source, closed, own))
        return replace(self, runs=tuple(runs), values=values, numbers=numbers), done

    def lasting(self, source: Source, closed: Closed) -> Closed:
        """Situations of the durations that their definitions allow."""
        limits = [(self.situations[n].at_least, self.situations[n].at_most) for n in source.definitions]
        least = np.array([low for low, _ in limits])
        most = np.array([NO_LIMIT if high is None else high for _, high in limits])
        lasts = closed.te - closed.ts
        keep: Bools = (lasts >= least[closed.symbol]) & (lasts <= most[closed.symbol])
        return closed.where(keep)

    def open(self) -> pl.DataFrame:
        """The open runs: keys, definition, start, time of the partition's last event, number."""
        frames = [self.kept_keys(np.empty(0, dtype=np.int64)).with_columns(_NOTHING_OPEN)]
        for source, runs in zip(self.sources, self.runs, strict=True):
            cells = np.flatnonzero(runs.start.ravel() != NEVER)
            slots, symbols = np.divmod(cells, len(source.definitions))
            columns = [
                pl.Series(DEFINITION, np.array(source.definitions, dtype=np.int64)[symbols]),
                pl.Series(START, runs.start.ravel()[cells]),
                pl.Series(LAST, runs.last[slots]),
                pl.Series(NUMBER, runs.number.ravel()[cells]),
            ]
            frames.append(self.kept_keys(slots).hstack(columns))
        return pl.concat(frames)

    def keys_of(self, slots: Ints | Slots) -> pl.DataFrame:
        """The keys of partitions, row by row."""
        return self.partitions.rows(slots)

    def kept_keys(self, slots: Ints | Slots) -> pl.DataFrame:
        """The keys of partitions under the names by which they are kept."""
        keys = self.keys_of(slots)
        if len(self.partitions.schema):
            keys.columns = [f"key {place}" for place in range(keys.width)]
        return keys

    def slots_of(self, rows: pl.DataFrame) -> SlotNumbers:
        """The slots of partitions by the keys that were kept of them."""
        return self.partitions.assign(
            rows.with_columns(pl.col(f"key {place}").alias(name) for place, name in enumerate(self.partitions.schema))
        )

    def with_open(self, rows: pl.DataFrame, values: Mapping[int, RunValues], numbers: int) -> Derivation:
        """The state in which these runs are open."""
        slot = self.slots_of(rows)
        runs = [Runs.empty(len(self.partitions), len(source.definitions)) for source in self.sources]
        definition, start, last, number = (rows[name].to_numpy() for name in (DEFINITION, START, LAST, NUMBER))
        for source, own in zip(self.sources, runs, strict=True):
            for symbol, wanted in enumerate(source.definitions):
                chosen = definition == wanted
                at = slot[chosen]
                own.start[at, symbol], own.number[at, symbol] = start[chosen], number[chosen]
                own.held[at] |= np.uint64(1 << symbol)
                own.last[at] = last[chosen]
        return replace(self, runs=tuple(runs), values=values, numbers=numbers)


_NOTHING_OPEN: Final = [pl.Series(name, [], pl.Int64) for name in (DEFINITION, START, LAST, NUMBER)]
NO_LIMIT: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Read:
    """What the events of an increment did to the definitions of a source; `own` has the events of runs with aggregates."""

    source: Source
    closed: Closed
    own: Mapping[int, pl.DataFrame]


def key_schema(situation: Derive | Given) -> Schema:
    """The attributes by which situations are partitioned."""
    return Schema(tuple(situation.input.schema[key] for key in situation.keys))


def joined(one: Closed, other: Closed) -> Closed:
    """Situations of both."""
    return Closed(
        np.concatenate([one.slot, other.slot]),
        np.concatenate([one.symbol, other.symbol]),
        np.concatenate([one.ts, other.ts]),
        np.concatenate([one.te, other.te]),
        np.concatenate([one.run, other.run]),
    )


def closed_at(source: Source, runs: Runs, at: int) -> tuple[Closed, Runs]:
    """The open runs as situations that end at an instant later than every event, and the state without them."""
    slots, symbols = np.nonzero(runs.start != NEVER)
    late = runs.last[slots] >= at
    if late.any():
        type_ = source.schema[source.time].type
        last, end = (value_text(int(value), type_) for value in (runs.last[slots].max(), at))
        raise EvaluationError(
            "TG417", f"open situations can not end at {end}: there is an event at {last}", hint="close them later"
        )
    ended = Closed(
        slots.astype(np.int32),
        symbols.astype(np.int16),
        runs.start[slots, symbols],
        np.full(len(slots), at, dtype=np.int64),
        runs.number[slots, symbols],
    )
    none = Runs.empty(*runs.start.shape)
    return ended, Runs(runs.last, none.held, none.start, none.number)


def live_runs(derivation: Derivation, kept: Ints | None = None) -> Derivation:
    """The state with the values of open and `kept` runs only."""
    if not derivation.values:
        return derivation
    live = np.concatenate(
        [
            np.empty(0, dtype=np.int64) if kept is None else kept,
            *(runs.number[runs.start != NEVER] for runs in derivation.runs),
        ]
    )
    return replace(derivation, values={number: one.only(live) for number, one in derivation.values.items()})


def kept_tables(derivation: Derivation) -> dict[str, pl.DataFrame]:
    """Open runs and values of runs; nothing of what is empty."""
    found = {"open": derivation.open()}
    found |= {f"values {number}": one.partials for number, one in derivation.values.items()}
    return {name: table for name, table in found.items() if table.height}


def loaded(derivation: Derivation, tables: Mapping[str, pl.DataFrame]) -> Derivation:
    """The state of which `kept_tables` made tables."""
    values = {
        number: RunValues.of(derivation.situations[number], tables.get(f"values {number}"))
        for number in derivation.values
    }
    if "open" not in tables:
        return replace(derivation, values=values)
    rows = tables["open"]
    greatest = rows.get_column(NUMBER).max()
    assert isinstance(greatest, int)
    return derivation.with_open(rows, values, 1 + greatest)
