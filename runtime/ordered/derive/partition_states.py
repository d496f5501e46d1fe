"""What an operator holds of its partitions between increments; an increment takes out those that it has to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.schema import Schema
from tidegate.runtime.eval.small.increment import Rows
from tidegate.runtime.kernels.layout import NONE, Situations
from tidegate.runtime.kernels.shelf import Shelf
from tidegate.runtime.kernels.situations import NEVER, Bools, Ints, Runs
from tidegate.runtime.kernels.slots import SlotNumbers
from tidegate.runtime.ordered.derive.events import Partitions, Placed, Source

#: Partitions of which nothing is held may be so many before their slots are given up, or as many as the others.
LOOSE: Final = 1024


@dataclass(frozen=True, slots=True)
class Cut:
    """What is held of some partitions, which are numbered anew from 0 on: `slots` has them in ascending order.

    `runs` are those of each source of events, `kept` situations that are over, `number` their runs, `look` is when each
    partition has to be looked at although nothing new comes for it. `version` is that of the states of which it was cut.
    """

    slots: Ints
    runs: tuple[Runs, ...]
    kept: Situations
    number: Ints
    look: Ints
    version: int = 0

    @property
    def open(self) -> Bools:
        """Whether a run of the partition is open."""
        found = np.zeros(len(self.slots), dtype=np.bool_)
        for runs in self.runs:
            found |= (runs.start != NEVER).any(axis=1)
        return found


class PartitionStates:
    """By slot: the runs of every source, the situations that are over, and when it has to be looked at.

    What an increment costs depends on the partitions that it takes out, not on those held; only when to look at them is
    compared for all. Slots of partitions of which nothing is held are given up once they are most.
    """

    def __init__(self, keys: Schema, widths: Sequence[int], definitions: int) -> None:
        """`widths` has the definitions derived from each source, `definitions` is how many a situation may be of."""
        self.partitions = Partitions.of(keys)
        self.runs = [Runs.empty(0, width) for width in widths]
        self.shelf = Shelf(definitions)
        self.held = 0
        self.open = 0
        self.last: Cut | None = None
        self.version = 0
        self._look = np.empty(0, dtype=np.int64)
        self._is_held = np.zeros(0, dtype=np.bool_)
        self._place = np.empty(0, dtype=np.int32)

    def ready(self) -> None:
        """Before an increment: slots that are not held are given up if they are many. Slots change by it."""
        if len(self.partitions) > LOOSE + 2 * self.held and len(self.partitions.schema):
            self._renumber(np.flatnonzero(self._is_held))

    def touched(self, parts: Sequence[SlotNumbers], until: int) -> Ints:
        """The slots that have rows in one of the parts or have to be looked at when progress is `until`, in order."""
        self._grow()
        every = len(self.partitions)
        due = np.flatnonzero(self._look[:every] <= until)
        if sum(map(len, parts)) < every // 8:
            return np.unique(np.concatenate([due, *parts]).astype(np.int64, copy=False))
        marked = np.zeros(every, dtype=np.bool_)
        marked[due] = True
        for part in parts:
            marked[part] = True
        return np.flatnonzero(marked)

    def all_slots(self) -> Ints:
        self._grow()
        return np.arange(len(self.partitions))

    def places(self, slots: Ints, part: SlotNumbers) -> SlotNumbers:
        """Instead of slots their places in `slots`, which has them all."""
        if len(slots) == len(self.partitions):
            return part
        self._place[slots] = np.arange(len(slots), dtype=np.int32)
        return self._place[part]

    def cut(self, slots: Ints) -> Cut:
        """A copy of what is held of these slots."""
        runs = tuple(Runs(one.last[slots], one.held[slots], one.start[slots], one.number[slots]) for one in self.runs)
        return Cut(slots, runs, *self.shelf.take(slots), self._look[slots], self.version)

    def put(self, cut: Cut) -> None:
        """From now on this is what is held of its slots."""
        self._grow()
        slots = cut.slots
        for held, new in zip(self.runs, cut.runs, strict=True):
            self.open += int(np.count_nonzero(new.start != NEVER) - np.count_nonzero(held.start[slots] != NEVER))
            held.last[slots], held.held[slots] = new.last, new.held
            held.start[slots], held.number[slots] = new.start, new.number
        self.shelf.put(slots, cut.kept, cut.number)
        self._look[slots] = cut.look
        sizes = np.diff(cut.kept.offsets[:: self.shelf.definitions])
        is_held = cut.open | (sizes > 0)
        self.held += int(np.count_nonzero(is_held) - np.count_nonzero(self._is_held[slots]))
        self._is_held[slots] = is_held
        self.last, self.version = cut, self.version + 1

    def _grow(self) -> None:
        slots, known = len(self.partitions), len(self._look)
        if slots <= known:
            return
        more = max(slots, known + known // 2) - known
        self.runs = [runs.grown(known + more) for runs in self.runs]
        self.shelf.grow(known + more)
        self._look = np.concatenate([self._look, np.full(more, NONE)])
        self._is_held = np.concatenate([self._is_held, np.zeros(more, dtype=np.bool_)])
        self._place = np.empty(known + more, dtype=np.int32)

    def _renumber(self, slots: Ints) -> None:
        """Only these slots are left, from 0 on."""
        self._grow()
        cut, keys = self.cut(slots), self.partitions.rows(slots)
        fresh = PartitionStates(
            self.partitions.schema, [one.start.shape[1] for one in self.runs], self.shelf.definitions
        )
        fresh.partitions = Partitions(self.partitions.schema, keys)
        fresh._grow()
        fresh.put(Cut(np.arange(len(slots)), cut.runs, cut.kept, cut.number, cut.look))
        fresh.last, fresh.version = self.last, self.version
        vars(self).update(vars(fresh))


@dataclass(frozen=True, slots=True)
class Located:
    """Slots that an increment looks at, and the rows of each source and of `others`, by their places among these."""

    slots: Ints
    events: tuple[Placed, ...]
    others: tuple[SlotNumbers, ...]


def located_in(
    states: PartitionStates,
    sources: Sequence[Source],
    events: Sequence[Rows],
    others: Sequence[pl.DataFrame],
    until: int,
    close_at: int | None,
) -> Located:
    """Where the rows of an increment up to `until` belong; with `close_at`, all slots are looked at."""
    pairs = zip(sources, events, strict=False)
    placed = [Placed.of(source, rows, states.partitions) for source, rows in pairs]
    slots = [states.partitions.assign(rows) for rows in others]
    parts = [*(one.slot for one in placed), *slots]
    looked = states.touched(parts, until) if close_at is None else states.all_slots()
    return Located(
        looked,
        tuple(Placed(one.events, states.places(looked, one.slot)) for one in placed),
        tuple(states.places(looked, slot) for slot in slots),
    )


@dataclass(frozen=True, slots=True)
class Made:
    """What an increment has made of the partitions that it looked at; `is_new` marks what is over since, of all kept."""

    before: Cut
    after: Cut
    is_new: Bools

    def settle(self, states: PartitionStates) -> None:
        """It is what is held of them from now on. `InternalError` where another increment has been settled meanwhile."""
        if states.last is self.after:
            return
        if states.version != self.before.version:
            raise InternalError("TG590", "an operator goes on from where another has left it")
        states.put(self.after)
