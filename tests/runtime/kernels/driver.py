"""Random streams and patterns, and the kernels run over a stream in increments."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from tests.runtime.kernels.reference import Compiled, Event, Match, Spec, compile_spec
from tidegate.runtime.arrays import BoolArray, Int16Array, Int32Array, Int64Array, UInt64Array
from tidegate.runtime.kernels.cells import NONE, Situations, arrange, find_triggers, purge
from tidegate.runtime.kernels.counting import count_matches, tails_of
from tidegate.runtime.kernels.event_runs import Status
from tidegate.runtime.kernels.partners import Partners, of_use
from tidegate.runtime.kernels.ranges import range_search
from tidegate.runtime.kernels.ranges.range_plan import plan_ranges
from tidegate.runtime.kernels.ranges.range_search import find_matches
from tidegate.runtime.kernels.search import Matches, enumerate_matches
from tidegate.runtime.kernels.search_plan import hull_of, plan_steps, triggering
from tidegate.runtime.kernels.situations import Runs, derive


@dataclass(frozen=True)
class Columns:
    partition: Int32Array
    time: Int64Array
    holds: UInt64Array


def columns(events: Sequence[Event]) -> Columns:
    return Columns(
        np.array([event.partition for event in events], dtype=np.int32),
        np.array([event.time for event in events], dtype=np.int64),
        np.array([sum(1 << bit for bit in event.true) for event in events], dtype=np.uint64),
    )


def random_events(
    rng: random.Random, partitions: int, length: int, conditions: int, ties: bool = False, lasting: float | None = None
) -> list[Event]:
    """Events in time order, conditions that last for a while."""
    events = []
    for partition in range(partitions):
        time, true = rng.randrange(3), set[int]()
        stay = lasting or rng.choice([0.3, 0.7, 0.8])
        while time < length:
            true = {c for c in range(conditions) if (c in true) == (rng.random() < stay)}
            events.append(Event(partition, time, frozenset(true)))
            time += rng.choice([0, 1, 1, 2] if ties else [1, 1, 2, 4])
    if not ties:
        rng.shuffle(events)
    return sorted(events, key=lambda event: event.time)


def random_increments(rng: random.Random, length: int) -> list[int]:
    """Progress after every increment, from -1 on to the end or beyond."""
    inner = rng.sample(range(length), rng.randrange(0, min(length, 6)))
    return [-1, *sorted(inner), length + rng.randrange(4)]


def batches(rng: random.Random, events: Sequence[Event], length: int) -> list[tuple[int, int, list[Event]]]:
    """Random increments (after, until], with their events: in the order of time over all partitions, or partition by
    partition.
    """
    made = []
    for after, until in itertools.pairwise(random_increments(rng, length)):
        batch = [event for event in events if after < event.time <= until]
        if rng.random() < 0.5:
            batch.sort(key=lambda event: event.partition)
        made.append((after, until, batch))
    return made


def random_mask(rng: random.Random) -> int:
    if rng.random() < 0.3:  # whole prefix groups, and all but one of their members, are where mistakes would hide
        group = rng.choice([0b11100, 0b11100000, 0b11100000000])
        return group ^ rng.choice([0, 0, group & -group, 1, 1 << 12])
    return sum(1 << bit for bit in range(13) if rng.random() < rng.choice([0.3, 0.7])) or 1 << rng.randrange(13)


def random_spec(rng: random.Random, roles: int, definitions: int) -> Spec:
    pairs = [(one, other) for one in range(roles) for other in range(one + 1, roles)]
    masks = {pair: random_mask(rng) for pair in pairs if rng.random() < rng.choice([0.3, 0.8])}
    at_least = tuple(rng.choice([1, 1, 2, 3]) for _ in range(roles))
    at_most = tuple(least + rng.randrange(4) if rng.random() < 0.25 else None for least in at_least)
    clauses = []
    if roles <= 3:
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            clause = []
            for _ in range(rng.choice([1, 2, 2])):
                u, v = rng.sample(range(2 * roles), 2)
                clause.append((u, v, rng.randint(-2, 3)))
            clauses.append(tuple(clause))
    definition = tuple(rng.randrange(definitions) for _ in range(roles))
    within = rng.choice([None, None, 2, 4, 6])
    return Spec(definition, masks, at_least, at_most, tuple(clauses), within, rng.random() < 0.35)


def random_order(rng: random.Random, roles: int) -> Int64Array:
    order = []
    for role in range(roles):
        others = [other for other in range(roles) if other != role]
        order.append([role, *rng.sample(others, len(others))])
    return np.array(order, dtype=np.int64)


def rows_of(found: Matches) -> list[tuple[int, ...]]:
    """Matches with their detection times, in order."""
    return sorted(zip(*found.situation.T.tolist(), found.detected.tolist(), strict=True))


@dataclass
class Increments:
    """A pattern's state between increments, and what was found."""

    compiled: Compiled
    definitions: int
    partitions: int
    horizons: Int64Array
    found: list[Match]
    examined: int = 0
    largest: int = 0
    kept: int = 0
    tails: int = 0
    ranged: int = 0
    partners: Partners | None = None

    @classmethod
    def of(cls, spec: Spec, definitions: int, partitions: int, *, freeing: bool = False) -> Increments:
        made = cls(compile_spec(spec, definitions), definitions, partitions, np.full(definitions, NONE), [])
        if freeing:
            every, pattern = np.ones(definitions, dtype=np.bool_), made.compiled.pattern
            made.partners = Partners(pattern.definition, every, every, np.array(hull_of(pattern), dtype=np.int64))
        return made

    def run(self, rng: random.Random, events: Sequence[Event], progress: Sequence[int]) -> None:
        runs = Runs.empty(self.partitions, self.definitions)
        kept = Situations.empty(self.definitions)
        pattern = self.compiled.pattern
        for after, until in itertools.pairwise(progress):
            new = columns([event for event in events if after < event.time <= until])
            status, closed, _, _ = derive(new.partition, new.time, new.holds, runs)
            assert status is Status.DONE
            if rng.random() < 0.5:
                closed = closed.where(self.may_matter(closed.symbol, closed.te - closed.ts))
            lacking = pattern.final and self.partners is None and rng.random() < 0.5
            laid = arrange(kept, closed, None if lacking else runs, self.partitions)
            self.largest = max(self.largest, len(laid.ts))
            offsets = self.compiled.from_start, self.compiled.from_end
            if rng.random() < 0.7:  # situations that make nothing certain need not trigger
                kinds = [
                    [own[:0] if d < len(lasts) and not lasts[d] else own for d, own in enumerate(o)]
                    for o, lasts in zip(offsets, triggering(pattern), strict=True)
                ]
                offsets = tuple(kinds[0]), tuple(kinds[1])
            triggers = find_triggers(laid, *offsets, after, until)
            order = random_order(rng, len(pattern.definition))
            steps = plan_steps(pattern, order)
            made = enumerate_matches(steps, laid, triggers, after, until)
            self.examined += int(made.counters[..., 0].sum())
            assert (made.counters[..., 1] <= made.counters[..., 0]).all()
            assert made.counters[:, -1, 1].sum() == len(made.detected)
            by_ranges = plan_ranges(pattern, order)
            if by_ranges is not None:
                self.ranged += 1
                with patch.object(range_search, "ROWS", 1 + until % 5):
                    also = find_matches(by_ranges, laid, triggers, after, until)
                assert rows_of(also) == rows_of(made)
                assert (also.counters >= 0).all()
                assert (also.counters[..., 1] <= also.counters[..., 0]).all()
                assert also.counters[:, -1, 1].sum() == len(made.detected)
            tails = tails_of(steps)
            counted = count_matches(steps, tails, laid, triggers, after, until)
            assert counted.matches == len(made.detected)
            assert (counted.counters >= 0).all()
            assert (counted.counters[..., 1] <= counted.counters[..., 0]).all()
            self.tails += sum(tail is not None and tail.quiet(triggers) for tail in tails)
            for chosen, detected in zip(made.situation, made.detected, strict=True):
                cells = np.searchsorted(laid.offsets, chosen, side="right") - 1
                starts = laid.ts[chosen]
                named = tuple(
                    (int(cell) // self.definitions, int(cell) % self.definitions, int(ts))
                    for cell, ts in zip(cells, starts, strict=True)
                )
                self.found.append(Match(named, int(detected)))
            kept = purge(laid, pattern.within, self.horizons, until)
            if self.partners is not None:
                useful, _ = of_use(self.partners, laid, kept, until)
                kept = kept.where(useful[kept.origin])
            self.kept += len(kept.ts)

    def may_matter(self, symbol: Int16Array, length: Int64Array) -> BoolArray:
        """Whether some role takes a closed situation of this definition and duration."""
        pattern = self.compiled.pattern
        keep = np.zeros(len(symbol), dtype=np.bool_)
        for role, definition in enumerate(pattern.definition):
            fits = (length >= pattern.at_least[role]) & (length <= pattern.at_most[role])
            keep |= (symbol == definition) & fits
        return keep


def random_case(rng: random.Random) -> tuple[Spec, int, int, list[Event], list[int]]:
    """Pattern, definitions, partitions, events and progress; fewer situations where combinations are many."""
    roles = rng.choice([1, 2, 2, 3, 3, 4, 5])
    definitions = rng.randint(max(1, roles - 2), roles)
    length = {1: 16, 2: 14, 3: 10, 4: 7, 5: 5}[roles]
    partitions = rng.randint(1, 3)
    events = random_events(rng, partitions, length, definitions)
    return random_spec(rng, roles, definitions), definitions, partitions, events, random_increments(rng, length)
