"""Situations in cells: sorted by partition, then definition, then start. Also which of them are kept.

The situations of one partition and definition, a cell, are in the order of their starts. Derived ones are disjoint, so
these are also in the order of their ends, and one that is still open is the last. Cell = partition * definitions +
definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Int16Array, Int32Array, Int64Array
from tidegate.runtime.kernels.compiling import FLAGS, INTS, NUMBERS, OUT, OUT_NUMBERS, SYMBOLS, TABLE, compiled
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.situations import OPEN, ClosedSituations, Runs

#: No bound, in windows, horizons and matrices.
NONE = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Situations:
    """N situations of K partitions and D definitions."""

    definitions: int
    #: int64[K * D + 1]: cell c has the situations offsets[c] to offsets[c + 1].
    offsets: Int64Array
    #: int64[N]
    ts: Int64Array
    #: int64[N]: OPEN where it is not over.
    te: Int64Array
    #: int64[N]: where each comes from; see the function that made them.
    origin: Int64Array

    @classmethod
    def empty(cls, definitions: int) -> Situations:
        """Situations of no partition."""
        none = np.empty(0, dtype=np.int64)
        return cls(definitions, np.zeros(1, dtype=np.int64), none, none, none)

    def where(self, keep: BoolArray) -> Situations:
        """The situations that the mask marks. The partitions stay."""
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(keep)])
        return Situations(self.definitions, before[self.offsets], self.ts[keep], self.te[keep], self.origin[keep])


@dataclass(frozen=True, slots=True)
class Triggers:
    """The situations that may complete a match in an increment: H of the N situations."""

    #: int64[D + 1]: definition d has the hits first[d] to first[d + 1], by partition, then start.
    first: Int64Array
    #: int64[H]: index of the situation.
    hit: Int64Array
    #: int32[H]
    partition: Int32Array
    #: int64[N + 1]: the first situation from here on that is not triggered, N if none.
    quiet: Int64Array


def arrange(kept: Situations, closed: ClosedSituations, runs: Runs | None, partitions: int) -> Situations:
    """Merges kept situations (all over), situations that closed since and, with `runs`, the open ones into cells.

    A situation's origin is its index in `kept`; or len(kept.ts) + its index in `closed`; or, open, len(kept.ts) +
    len(closed.ts) + partition * m + condition, for the m conditions of `runs`, which then are the definitions.
    """
    cells = partitions * kept.definitions
    start = np.empty((0, kept.definitions), dtype=np.int64) if runs is None else runs.start[:partitions]
    offsets = np.zeros(cells + 1, dtype=np.int64)
    _count(kept.offsets, closed.partition, closed.symbol, kept.definitions, start, offsets)
    total = int(offsets[-1])
    ts, te, origin = (np.empty(total, dtype=np.int64) for _ in range(3))
    _fill(
        kept.offsets, kept.ts, kept.te, closed.partition, closed.symbol, closed.ts, closed.te, kept.definitions, start,
        offsets, ts, te, origin,
    )  # fmt: skip
    return Situations(kept.definitions, offsets, ts, te, origin)


def find_triggers(
    situations: Situations, from_start: tuple[Int64Array, ...], from_end: tuple[Int64Array, ...], after: int, until: int
) -> Triggers:
    """The situations that trigger: ts + o in (after, until] for an o in from_start[d], or te + o for an o in
    from_end[d].

    d is the situation's definition; 0 is among all offsets that an analysis yields. Unknown ends trigger nothing.
    """
    definitions, total = situations.definitions, len(situations.ts)
    starts, start_first = _flat(from_start)
    ends, end_first = _flat(from_end)
    quiet = np.empty(total + 1, dtype=np.int64)
    counts = np.zeros(definitions, dtype=np.int64)
    arrays = (situations.offsets, situations.ts, situations.te)
    _mark(definitions, *arrays, starts, start_first, ends, end_first, after, until, quiet, counts)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    hit, partition = np.empty(first[-1], dtype=np.int64), np.empty(first[-1], dtype=np.int32)
    _list(definitions, situations.offsets, quiet, first.copy(), hit, partition)
    return Triggers(first, hit, partition, quiet)


def purge(situations: Situations, within: int, horizons: Int64Array, until: int) -> Situations:
    """The closed situations that a match detected after `until` may use. Their origin is the index in `situations`.

    One stays while ts + within > until and te + horizons[d] > until, for its definition d; NONE is no bound. Open ones
    are left out: `Runs` has them.
    """
    total = len(situations.ts)
    offsets = np.zeros_like(situations.offsets)
    ts, te, origin = (np.empty(total, dtype=np.int64) for _ in range(3))
    count = _keep(
        situations.definitions, situations.offsets, situations.ts, situations.te, within, horizons, until,
        offsets, ts, te, origin,
    )  # fmt: skip
    return Situations(situations.definitions, offsets, ts[:count].copy(), te[:count].copy(), origin[:count].copy())


def next_looks(
    situations: Situations,
    from_start: tuple[Int64Array, ...],
    from_end: tuple[Int64Array, ...],
    within: int,
    horizons: Int64Array,
    until: int,
    useful: BoolArray | None = None,
) -> Int64Array:
    """The next instant at which each partition has to be read although nothing new comes for it: int64[K], NONE for
    never.

    That is the first instant after `until` at which one of its situations is triggered or need not be kept any more;
    see `find_triggers` and `purge`. Situations that `purge` leaves out have no part in it, unless they are open; with
    `useful`, bool[N], nor have those that are not marked.
    """
    starts, start_first = _flat(from_start)
    ends, end_first = _flat(from_end)
    if useful is None:
        useful = np.ones(len(situations.ts), dtype=np.bool_)
    looks = np.empty((len(situations.offsets) - 1) // situations.definitions, dtype=np.int64)
    _look(
        situations.definitions, situations.offsets, situations.ts, situations.te, starts, start_first, ends, end_first,
        within, horizons, until, useful, looks,
    )  # fmt: skip
    return looks


def _flat(parts: tuple[Int64Array, ...]) -> tuple[Int64Array, Int64Array]:
    first = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]), first


@compiled(nb.void(INTS, NUMBERS, SYMBOLS, nb.int64, TABLE, OUT), nogil=True)
def _count(
    kept: Int64Array,
    partitions: Int32Array,
    symbols: Int16Array,
    definitions: int,
    start: Int64Array,
    offsets: Int64Array,
) -> None:
    """Computes the offsets of all cells, in an array that is zero at first."""
    for cell in range(kept.shape[0] - 1):
        offsets[cell + 1] = kept[cell + 1] - kept[cell]
    for place in range(partitions.shape[0]):
        offsets[partitions[place] * definitions + symbols[place] + 1] += 1
    for partition in range(start.shape[0]):
        for symbol in range(definitions):
            if start[partition, symbol] != NEVER:
                offsets[partition * definitions + symbol + 1] += 1
    for cell in range(offsets.shape[0] - 1):
        offsets[cell + 1] += offsets[cell]


@compiled(
    nb.void(
        INTS, INTS, INTS, NUMBERS, SYMBOLS, INTS, INTS, nb.int64, TABLE, INTS, OUT, OUT, OUT
    ),
    nogil=True,
)  # fmt: skip
def _fill(
    kept: Int64Array, kept_ts: Int64Array, kept_te: Int64Array, partitions: Int32Array, symbols: Int16Array, closed_ts: Int64Array, closed_te: Int64Array,
    definitions: int, start: Int64Array, offsets: Int64Array, ts: Int64Array, te: Int64Array, origin: Int64Array,
) -> None:  # fmt: skip
    next_place = offsets.copy()
    for cell in range(kept.shape[0] - 1):
        place = next_place[cell]
        for old in range(kept[cell], kept[cell + 1]):
            ts[place] = kept_ts[old]
            te[place] = kept_te[old]
            origin[place] = old
            place += 1
        next_place[cell] = place
    before = kept_ts.shape[0]
    for new in range(partitions.shape[0]):
        cell = np.int64(partitions[new]) * definitions + symbols[new]
        place = next_place[cell]
        ts[place] = closed_ts[new]
        te[place] = closed_te[new]
        origin[place] = before + new
        next_place[cell] = place + 1
    before += partitions.shape[0]
    for partition in range(start.shape[0]):
        for symbol in range(definitions):
            if start[partition, symbol] != NEVER:
                cell = partition * definitions + symbol
                place = next_place[cell]
                ts[place] = start[partition, symbol]
                te[place] = OPEN
                origin[place] = before + cell


@compiled(nb.boolean(nb.int64, nb.int64, nb.int64), inline="always")
def _within(time: int, after: int, until: int) -> Any:
    """Whether after < time <= until, without a branch."""
    return (time > after) & (time <= until)


@compiled(
    nb.void(
        nb.int64, INTS, INTS, INTS, INTS, INTS, INTS, INTS, nb.int64, nb.int64, OUT, OUT
    ),
    nogil=True,
)  # fmt: skip
def _mark(
    definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array, starts: Int64Array, start_first: Int64Array, ends: Int64Array, end_first: Int64Array,
    after: int, until: int, quiet: Int64Array, counts: Int64Array,
) -> None:  # fmt: skip
    """Fills `quiet` from its end, and counts the triggered situations of every definition."""
    calm = quiet.shape[0] - 1
    quiet[calm] = calm
    for partition in range((offsets.shape[0] - 1) // definitions - 1, -1, -1):
        for definition in range(definitions - 1, -1, -1):
            cell = partition * definitions + definition
            for place in range(offsets[cell + 1] - 1, offsets[cell] - 1, -1):
                triggered = False
                for offset in range(start_first[definition], start_first[definition + 1]):
                    triggered |= _within(ts[place] + starts[offset], after, until)
                for offset in range(end_first[definition], end_first[definition + 1]):
                    triggered |= (te[place] != OPEN) & _within(te[place] + ends[offset], after, until)
                counts[definition] += triggered
                calm = calm if triggered else place
                quiet[place] = calm


@compiled(nb.void(nb.int64, INTS, INTS, OUT, OUT, OUT_NUMBERS), nogil=True)
def _list(
    definitions: int,
    offsets: Int64Array,
    quiet: Int64Array,
    next_place: Int64Array,
    hit: Int64Array,
    hit_partition: Int32Array,
) -> None:
    for partition in range((offsets.shape[0] - 1) // definitions):
        for definition in range(definitions):
            cell = partition * definitions + definition
            for place in range(offsets[cell], offsets[cell + 1]):
                if quiet[place] != place:
                    hit[next_place[definition]] = place
                    hit_partition[next_place[definition]] = partition
                    next_place[definition] += 1


@compiled(
    nb.int64(nb.int64, INTS, INTS, INTS, nb.int64, INTS, nb.int64, OUT, OUT, OUT, OUT),
    nogil=True,
)
def _keep(
    definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array, within: int, horizons: Int64Array, until: int,
    offsets_out: Int64Array, ts_out: Int64Array, te_out: Int64Array, origin: Int64Array,
) -> int:  # fmt: skip
    count = 0
    for partition in range((offsets.shape[0] - 1) // definitions):
        for definition in range(definitions):
            cell, horizon = partition * definitions + definition, horizons[definition]
            for place in range(offsets[cell], offsets[cell + 1]):
                in_window = within == NONE or ts[place] + within > until
                in_horizon = horizon == NONE or te[place] + horizon > until
                if te[place] != OPEN and in_window and in_horizon:
                    ts_out[count] = ts[place]
                    te_out[count] = te[place]
                    origin[count] = place
                    count += 1
            offsets_out[cell + 1] = count
    return count


@compiled(
    nb.void(
        nb.int64, INTS, INTS, INTS, INTS, INTS, INTS, INTS, nb.int64, INTS, nb.int64,
        FLAGS, OUT
    ),
    nogil=True,
)  # fmt: skip
def _look(
    definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array, starts: Int64Array, start_first: Int64Array, ends: Int64Array, end_first: Int64Array,
    within: int, horizons: Int64Array, until: int, useful: BoolArray, look: Int64Array,
) -> None:  # fmt: skip
    for partition in range(look.shape[0]):
        first = NONE
        for definition in range(definitions):
            cell, horizon = partition * definitions + definition, horizons[definition]
            for place in range(offsets[cell], offsets[cell + 1]):
                if not useful[place]:
                    continue
                is_over = te[place] != OPEN
                gone = NONE
                if is_over and within != NONE:
                    gone = min(gone, ts[place] + within)
                if is_over and horizon != NONE:
                    gone = min(gone, te[place] + horizon)
                if gone <= until:
                    continue
                first = min(first, gone)
                for offset in range(start_first[definition], start_first[definition + 1]):
                    instant = ts[place] + starts[offset]
                    if until < instant < first:
                        first = instant
                if is_over:
                    for offset in range(end_first[definition], end_first[definition + 1]):
                        instant = te[place] + ends[offset]
                        if until < instant < first:
                            first = instant
        look[partition] = first
