"""The store of an operator's state by partition. An increment takes out only the partitions that it has to read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

import numpy as np
import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.kernels.partitions.rows import mark
from tidegate.runtime.ordered.partitions import Partitions

#: Some keys of a partition.
Values = tuple[Any, ...]
#: Partitions of which nothing is held may be so many before their numbers are given up, or as many as the others, or as
#: twice those that the last increment has read: the next one may well read the same.
LOOSE: Final = 1024
#: Later than every instant, as partitions are looked at and the kernels take progress.
EVER: Final = 2 * MAX_INSTANT - 1
#: When a partition is looked at that nothing waits in: later still.
NO_LOOK: Final = (1 << 63) - 1


def ticks(progress: Extended) -> int:
    if progress in (INF, -INF):
        return EVER if progress == INF else -EVER
    return int(progress)


class PartitionExtract(Protocol):
    """The state of some partitions, as a dataclass: `partitions` has their numbers in ascending order.

    `look` is when each has to be looked at although nothing new comes for it. `version` is that of the store that it
    was taken from.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def partitions(self) -> Int64Array: ...
    @property
    def look(self) -> Int64Array: ...
    @property
    def version(self) -> int: ...


C = TypeVar("C", bound=PartitionExtract)


class _Places(threading.local):
    """An array of so many places at least, in which one step of a store writes, and then reads: of each thread one, as
    it would take four bytes a partition in each store.
    """

    array: Int32Array = np.empty(0, dtype=np.int32)

    def of(self, partitions: int) -> Int32Array:
        if len(self.array) < partitions:
            self.array = np.empty(partitions + partitions // 2, dtype=np.int32)
        return self.array


_PLACES: Final = _Places()


class Successors:
    """Which of the partitions of which something is held follow each other: they agree in all keys but some that only
    grow, so that the last one alone has rows to come (rule R60). And which have none to come, as it is told that their
    keys come no more (rule R63).
    """

    def __init__(self, keys: Schema, growing: Sequence[str], ending: Sequence[Sequence[str]] = ()) -> None:
        """`growing` are the keys that grow from row to row of those partitions that agree in the others, `ending` those
        of which together it is told that they come no more.
        """
        self.growing, self.ending = tuple(growing), tuple(map(tuple, ending))
        self._others = [place for place, name in enumerate(keys.names) if name not in growing]
        self._last = [place for place, name in enumerate(keys.names) if name in growing]
        #: By the other keys the partitions of which something is held, each with the keys that grow.
        self._held: dict[Values, dict[int, Values]] = {}
        self._places = [[keys.names.index(name) for name in names] for names in self.ending]
        #: The same partitions by the keys of which it is told.
        self._told: list[dict[Values, set[int]]] = [{} for _ in self.ending]
        #: Those of them that have no row to come, as was told before, and still owe some.
        self.over: set[int] = set()

    def hold(self, partitions: Int64Array, keys: pl.DataFrame, is_held: BoolArray) -> None:
        """From now on something is held of these partitions, or nothing."""
        for number, held, (others, last) in zip(partitions.tolist(), is_held.tolist(), self._split(keys), strict=True):
            if held:
                self._held.setdefault(others, {})[number] = last
            elif (known := self._held.get(others)) is not None:
                known.pop(number, None)
                if not known:
                    del self._held[others]
        for told, places in zip(self._told, self._places, strict=True):
            for number, held, named in zip(partitions.tolist(), is_held.tolist(), _values(keys, places), strict=True):
                if held:
                    told.setdefault(named, set()).add(number)
                elif (numbers := told.get(named)) is not None:
                    numbers.discard(number)
                    if not numbers:
                        del told[named]
        self.over.difference_update(partitions[~is_held].tolist())

    def told(self, ended: Sequence[pl.DataFrame]) -> list[int]:
        """The partitions of which something is held, and of which it is told that their keys come no more. `ended` are
        these keys, for each of `ending`.
        """
        return [
            number
            for told, keys in zip(self._told, ended, strict=False)
            for named in _values(keys, range(keys.width))
            for number in told.get(named, ())
        ]

    def ended(self, partitions: Int64Array, keys: pl.DataFrame, ended: Sequence[pl.DataFrame]) -> Int64Array:
        """Those of these partitions that have no row to come: as is told now, or was told before."""
        found = self.over.intersection(partitions.tolist())
        for places, named in zip(self._places, ended, strict=False):
            if named.height:
                gone = set(_values(named, range(named.width)))
                of = zip(partitions.tolist(), _values(keys, places), strict=True)
                found.update(number for number, values in of if values in gone)
        return np.array(sorted(found), dtype=np.int64)

    def followed(self, partitions: Int64Array, keys: pl.DataFrame) -> Int64Array:
        """The partitions that one of these follows, or another one that is held, in order: of these, and of those that
        are held.
        """
        of: dict[Values, dict[int, Values]] = {}
        for number, (others, last) in zip(partitions.tolist(), self._split(keys), strict=True):
            of.setdefault(others, dict(self._held.get(others, ())))[number] = last
        found = [
            number
            for known in of.values()
            if len(known) > 1
            for latest in [max(known.values())]
            for number, last in known.items()
            if last < latest
        ]
        return np.array(sorted(found), dtype=np.int64)

    def _split(self, keys: pl.DataFrame) -> Iterator[tuple[Values, Values]]:
        """The other keys, with a value that equals itself in the place of NaN, and those that grow, which compare: NULL
        is before all.
        """
        for others, row in zip(_values(keys, self._others), keys.iter_rows(), strict=True):
            yield others, tuple((row[place] is not None, row[place]) for place in self._last)


def _values(keys: pl.DataFrame, places: Sequence[int]) -> Iterator[Values]:
    """Of each row the values at these places, with one that equals itself in the place of NaN."""
    for row in keys.iter_rows():
        yield tuple("NaN" if row[place] != row[place] else row[place] for place in places)


class PartitionStore(Generic[C]):
    """The state of a family by partition, and when each has to be read. `extract` copies the state of some, `put`
    replaces it.

    What an increment costs depends on the partitions that it takes out, not on those held; only when to look at them is
    compared for all, once it may be time for one. Numbers of partitions of which nothing is held are given up once they
    are most, and many beside those that an increment reads; where such partitions leave nothing behind (`gives_again`),
    other keys have their numbers before that. So batches in which as many keys go as come cost alike.
    """

    gives_again: ClassVar[bool] = False

    def __init__(self, keys: Schema) -> None:
        self.partitions = Partitions.of(keys)
        #: Of keys that grow which partitions are followed by others; None where there are none.
        self.successors: Successors | None = None
        #: Which of the partitions that were touched last no row comes to any more.
        self.followed = np.zeros(0, dtype=np.bool_)
        self.held = 0
        self.last: C | None = None
        self.version = 0
        self.numbering = 0
        #: None as long as nothing waits in any partition.
        self._look: Int64Array | None = None
        #: No partition has to be looked at before.
        self._soonest = NO_LOOK
        self._is_held = np.zeros(0, dtype=np.bool_)
        self._left: list[Int64Array] = []

    @property
    def growing(self) -> Sequence[str]:
        """The keys by which partitions follow each other."""
        return () if self.successors is None else self.successors.growing

    @property
    def ending(self) -> Sequence[Sequence[str]]:
        """The keys of which together it is told that they come no more."""
        return () if self.successors is None else self.successors.ending

    def follow(self, growing: Sequence[str], ending: Sequence[Sequence[str]] = ()) -> Self:
        """The store itself, whose partitions follow each other by these keys from now on; of those of `ending` it is
        told when they come no more.
        """
        if growing:
            self.successors = Successors(self.partitions.schema, growing, ending)
            held = np.flatnonzero(self.holding())
            self.successors.hold(held, self.partitions.rows(held), np.ones(len(held), dtype=np.bool_))
        return self

    def emptied(self) -> Self:
        """A store of the same kind that is empty."""
        raise NotImplementedError

    def extract(self, partitions: Int64Array) -> C:
        """A copy of the state of these partitions."""
        raise NotImplementedError

    def hold(self, extract: C) -> BoolArray:
        """Stores the state of these partitions. Returns which of them have any."""
        raise NotImplementedError

    def room(self, partitions: int) -> None:
        """Makes room for the state of this many partitions, no fewer than before."""
        raise NotImplementedError

    @property
    def _place(self) -> Int32Array:
        """A place for each partition, for one step to write and then to read."""
        return _PLACES.of(len(self._is_held))

    def ready(self) -> None:
        """Prepares an increment: lets others have the numbers of partitions that are empty. If these are many, the
        others are renumbered without them.
        """
        read = 0 if self.last is None else len(self.last.partitions)
        if len(self.partitions) > LOOSE + 2 * max(self.held, read) and len(self.partitions.schema):
            fresh = self.part(np.flatnonzero(self._is_held))
            fresh.last, fresh.version = self.last, self.version
            fresh.numbering = self.numbering + 1
            vars(self).update(vars(fresh))
        elif self._left and self.partitions.gives_again:
            left = np.concatenate(self._left)
            self.partitions.free(left[~self._is_held[left]])
        self._left = []

    def part(self, partitions: Int64Array) -> Self:
        """The state of these partitions alone, renumbered 0, 1, ..."""
        fresh = self.emptied()
        fresh.partitions = Partitions(self.partitions.schema, self.partitions.rows(partitions))
        fresh.put(replace(self.extract(partitions), partitions=np.arange(len(partitions))))
        return fresh

    def read_by(
        self, rows: pl.DataFrame, until: int, ended: Sequence[pl.DataFrame] = ()
    ) -> tuple[Int64Array, Int64Array]:
        """The partitions that an increment with these rows has to read at progress `until`, in order, and the place
        among them of each row's partition.
        """
        numbers = self.partitions.assign(rows)
        partitions = self.touched([numbers], until, ended)
        return partitions, self.places(partitions, numbers).astype(np.int64)

    def held_by(self, rows: pl.DataFrame) -> tuple[Int64Array, Int64Array]:
        """The partitions that hold anything among those of these rows, in order, and the place among them of each row's
        partition, or behind all of them. No partition gets a number.
        """
        numbers = self.partitions.find(rows)
        is_held = np.append(self.holding(), False)[numbers]
        partitions = self._distinct(numbers[is_held].astype(np.int64))
        places = np.full(rows.height, len(partitions))
        places[is_held] = self.places(partitions, numbers[is_held])
        return partitions, places

    def touched(self, parts: Sequence[Int32Array], until: int, ended: Sequence[pl.DataFrame] = ()) -> Int64Array:
        """The partitions that have rows in one of the parts or have to be read at progress `until`, in order; with
        them those that one of these follows, and those with keys that have `ended`.
        """
        touched = self._touched(parts, until)
        if self.successors is None:
            return touched
        told = np.array(self.successors.told(ended), dtype=np.int64)
        if len(told):
            touched = np.union1d(touched, told)
        followed = self.successors.followed(touched, self.partitions.rows(touched))
        touched = np.union1d(touched, followed)
        over = self.successors.ended(touched, self.partitions.rows(touched), ended)
        self.followed = np.isin(touched, np.union1d(followed, over), assume_unique=True)
        return touched

    def _touched(self, parts: Sequence[Int32Array], until: int) -> Int64Array:
        self._grow()
        every = len(self.partitions)
        due = self._due(every, until)
        if sum(map(len, parts)) < every // 8:
            return self._distinct(np.concatenate([due, *parts]))
        marked = np.zeros(every, dtype=np.bool_)
        marked[due] = True
        for part in parts:
            mark(marked, part)
        return np.flatnonzero(marked)

    def _due(self, every: int, until: int) -> Int64Array:
        """The partitions among the first so many that have to be looked at by now."""
        if self._look is None or until < self._soonest:
            return np.empty(0, dtype=np.int64)
        due = np.flatnonzero(self._look[:every] <= until)
        if not len(due):
            self._soonest = int(self._look.min())
        return due

    def look(self, partitions: Int64Array) -> Int64Array:
        """When each of these partitions has to be looked at."""
        return np.full(len(partitions), NO_LOOK) if self._look is None else self._look[partitions]

    def _distinct(self, partitions: Int64Array) -> Int64Array:
        """Each of these partitions once, in order. `np.unique`, which hashes them, takes twenty times as long."""
        number = np.arange(len(partitions), dtype=np.int32)
        self._place[partitions] = number
        return np.sort(partitions[self._place[partitions] == number])

    def all_different(self, part: Int32Array) -> Int64Array | None:
        """These partition numbers as they stand; None where one is there twice, or where others may have to be read
        that these follow.
        """
        self._grow()
        if len(part) > len(self.partitions) or self.successors is not None:
            return None
        number = np.arange(len(part), dtype=np.int32)
        self._place[part] = number
        return part.astype(np.int64) if (self._place[part] == number).all() else None

    def every(self) -> int:
        """How many partitions there are; their numbers are 0, 1, ..."""
        self._grow()
        return len(self.partitions)

    def all_partitions(self) -> Int64Array:
        return np.arange(self.every())

    def holding(self) -> BoolArray:
        """Of each partition whether anything is held."""
        self._grow()
        return self._is_held[: len(self.partitions)].copy()

    def places(self, partitions: Int64Array, part: Int32Array) -> Int32Array:
        """Translates partition numbers to positions in `partitions`, which has them all."""
        if len(partitions) == len(self.partitions):
            return part
        self._place[partitions] = np.arange(len(partitions), dtype=np.int32)
        return self._place[part]

    def texts(self, partitions: Int64Array) -> Callable[[int], str]:
        """What says the keys of each of these partitions, by its position, as people read them."""
        return lambda position: self.partitions.text(int(partitions[position]))

    def put(self, extract: C) -> None:
        """Replaces the state of these partitions."""
        if not len(extract.partitions):
            self.last, self.version = extract, self.version + 1
            return
        self._grow()
        self._look_for(extract.look)
        is_held = self.hold(extract)
        self._note_look(extract.partitions, extract.look)
        if self.successors is not None:
            self.successors.hold(extract.partitions, self.partitions.rows(extract.partitions), is_held)
        self.held += int(np.count_nonzero(is_held) - np.count_nonzero(self._is_held[extract.partitions]))
        self._is_held[extract.partitions] = is_held
        if self.gives_again:
            self._left.append(extract.partitions[~is_held])
        self.last, self.version = extract, self.version + 1

    def _look_for(self, look: Int64Array) -> None:
        """Makes room for when partitions have to be looked at, where one has to be."""
        soonest = int(look.min(initial=NO_LOOK))
        if self._look is None and soonest < NO_LOOK:
            self._look = np.full(len(self._is_held), NO_LOOK)

    def _note_look(self, partitions: Int64Array, look: Int64Array) -> None:
        soonest = int(look.min(initial=NO_LOOK))
        if self._look is not None:
            self._look[partitions] = look
        self._soonest = min(self._soonest, soonest)

    def settle(self, before: C, after: C) -> None:
        """What an increment has made of `before` is what is held from now on. `InternalError` where another increment
        has been settled meanwhile.
        """
        if self.last is after:
            return
        if self.version != before.version:
            raise InternalError("TG590", "an operator goes on from where another has left it")
        self.put(after)

    @property
    def nbytes(self) -> int:
        """Bytes of memory for the numbers of the partitions, and when they have to be looked at."""
        return self.partitions.nbytes + len(self.partitions) * (1 if self._look is None else 1 + self._look.itemsize)

    def _grow(self) -> None:
        partitions, known = len(self.partitions), len(self._is_held)
        if partitions <= known:
            return
        more = max(partitions, known + known // 2) - known
        self.room(known + more)
        is_held = np.zeros(known + more, dtype=np.bool_)
        is_held[:known] = self._is_held
        # Together, as there may be no memory for one of them.
        self._is_held, self._look = (
            is_held,
            None if self._look is None else np.concatenate([self._look, np.full(more, NO_LOOK)]),
        )
