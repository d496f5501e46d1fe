"""Finds situations and given intervals that can be in no match any more: they lack a partner, or nothing can still
happen (rule R29).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.cells import NONE, Situations
from tidegate.runtime.kernels.compiling import FLAGS, INTS, OUT, OUT_FLAGS, TABLE, compiled
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.situations import OPEN

#: Rounds over what a partition has: what a longer cascade would free goes when the partition is looked at again.
ROUNDS = 8
#: Who is there as a partner: nobody, one that is over, one that is open.
_NOBODY, _OVER, _OPEN = range(3)


@dataclass(frozen=True, slots=True)
class Partners:
    """The parameters of the rule, for m roles and D definitions."""

    #: int64[m]: number of the definition that role i takes its situations from.
    definition: Int64Array
    #: bool[D]: derived, so that all that have begun are known, disjoint and in order.
    derived: BoolArray
    #: bool[D]: those of which situations are freed.
    freed: BoolArray
    #: int64[2m, 2m]: entry [v, u] bounds endpoint u - endpoint v in every match; NONE is no bound.
    bounds: Int64Array


def of_use(rule: Partners, situations: Situations, kept: Situations, until: int) -> tuple[BoolArray, Int64Array]:
    """bool[N]: which situations a match detected after `until` may hold; int64[K]: the next instant at which that may
    change in each partition though nothing new comes, NONE if none.

    Given are all situations of some partitions that have begun by `until`, and of those that are over the `kept` ones,
    whose origins are their places; others that are over are of no use. Derived cells are disjoint, in order, what is
    open last.
    """
    useful = situations.te == OPEN
    useful[kept.origin] = True
    look = np.empty((len(situations.offsets) - 1) // situations.definitions, dtype=np.int64)
    _sift(
        rule.definition, rule.derived, rule.freed, rule.bounds, situations.definitions, situations.offsets,
        situations.ts, situations.te, until, useful, look,
    )  # fmt: skip
    return useful, look


def needed(
    rule: Partners, role: int, situations: Situations, partition: Int64Array, ts: Int64Array, te: Int64Array, until: int
) -> BoolArray:
    """bool[N]: which of N intervals that are given for a role a match detected after `until` may hold.

    `partition` is where each belongs among those of the situations; one number more: there are none. The situations are
    all that have begun by `until` and may still be in such a match, each cell in order, what is open last.
    """
    offsets = np.concatenate([situations.offsets, np.full(situations.definitions, len(situations.ts))])
    found = np.empty(len(ts), dtype=np.bool_)
    useful = np.ones(len(situations.ts), dtype=np.bool_)
    _need(
        rule.definition, rule.derived, rule.bounds, role, situations.definitions, offsets, situations.ts,
        situations.te, useful, partition, ts, te, until, found,
    )  # fmt: skip
    return found


@compiled(
    nb.int64(
        TABLE, nb.int64, nb.int64, nb.int64, nb.int64, INTS, INTS, OUT_FLAGS, nb.int64, nb.int64, nb.int64
    ),
    nogil=True,
    borrows=True,
)  # fmt: skip
def _partner(
    bounds: Int64Array, role: int, other_role: int, own_ts: int, own_te: int, ts: Int64Array, te: Int64Array, useful: BoolArray,
    first: int, stop: int, until: int,
) -> int:  # fmt: skip
    """Whether the other role has a situation from `first` to `stop`. Unknown ends lie after `until`."""
    i, j = 2 * role, 2 * other_role
    least_te = until + 1 if own_te == OPEN else own_te
    ts_from, ts_to, te_from, te_to = NEVER, NONE, NEVER, NONE
    if bounds[i, j] != NONE:
        ts_to = own_ts + bounds[i, j]
    if bounds[i, j + 1] != NONE:
        te_to = own_ts + bounds[i, j + 1]
    if own_te != OPEN:
        if bounds[i + 1, j] != NONE:
            ts_to = min(ts_to, own_te + bounds[i + 1, j])
        if bounds[i + 1, j + 1] != NONE:
            te_to = min(te_to, own_te + bounds[i + 1, j + 1])
    if bounds[j, i] != NONE:
        ts_from = own_ts - bounds[j, i]
    if bounds[j, i + 1] != NONE:
        ts_from = max(ts_from, least_te - bounds[j, i + 1])
    if bounds[j + 1, i] != NONE:
        te_from = own_ts - bounds[j + 1, i]
    if bounds[j + 1, i + 1] != NONE:
        te_from = max(te_from, least_te - bounds[j + 1, i + 1])
    if first < stop and te[stop - 1] == OPEN:
        stop -= 1
        if useful[stop] and ts_from <= ts[stop] <= ts_to and te_to > until:
            if bounds[j, j + 1] == NONE or ts[stop] + bounds[j, j + 1] > until:
                return _OPEN
    high = stop
    while first < high:
        middle = (first + high) >> 1
        if ts[middle] >= ts_from and te[middle] >= te_from:
            high = middle
        else:
            first = middle + 1
    for place in range(first, stop):
        if ts[place] > ts_to or te[place] > te_to:
            break
        if useful[place]:
            return _OVER
    return _NOBODY


@compiled(
    nb.int64(
        INTS, FLAGS, TABLE, nb.int64, nb.int64, nb.int64, nb.int64, INTS, INTS, INTS, OUT_FLAGS, nb.int64
    ),
    nogil=True,
    borrows=True,
)  # fmt: skip
def _waits(
    definition: Int64Array, derived: BoolArray, bounds: Int64Array, role: int, own_ts: int, own_te: int, first_cell: int, offsets: Int64Array,
    ts: Int64Array, te: Int64Array, useful: BoolArray, until: int,
) -> int:  # fmt: skip
    """The instant until which a situation surely stays usable in a role, or a given interval, which may end after
    `until`. NONE: only new events end that. NEVER: it is unusable.
    """
    waits = NONE
    unsettled = own_te > until
    for other_role in range(definition.shape[0]):
        if other_role == role:
            continue
        if not derived[definition[other_role]]:
            unsettled = True
            continue
        latest = NONE
        if bounds[2 * role, 2 * other_role] != NONE:
            latest = own_ts + bounds[2 * role, 2 * other_role]
        if own_te != OPEN and bounds[2 * role + 1, 2 * other_role] != NONE:
            latest = min(latest, own_te + bounds[2 * role + 1, 2 * other_role])
        if latest > until:
            unsettled = True
            waits = min(waits, latest)
            continue
        cell = first_cell + definition[other_role]
        partner = _partner(
            bounds, role, other_role, own_ts, own_te, ts, te, useful, offsets[cell], offsets[cell + 1], until
        )
        if partner == _NOBODY:
            return NEVER
        unsettled |= partner == _OPEN
    return waits if unsettled else NEVER


@compiled(
    nb.void(
        INTS, FLAGS, FLAGS, TABLE, nb.int64, INTS, INTS, INTS, nb.int64, OUT_FLAGS, OUT
    ),
    nogil=True,
    borrows=True,
)  # fmt: skip
def _sift(
    definition: Int64Array, derived: BoolArray, freed: BoolArray, bounds: Int64Array, definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array,
    until: int, useful: BoolArray, look: Int64Array,
) -> None:  # fmt: skip
    for partition in range(look.shape[0]):
        first_cell = partition * definitions
        for _ in range(ROUNDS):
            settled = True
            look[partition] = NONE
            for derivation in range(definitions):
                if not freed[derivation]:
                    continue
                for place in range(offsets[first_cell + derivation], offsets[first_cell + derivation + 1]):
                    if not useful[place]:
                        continue
                    waits = NEVER
                    for role in range(definition.shape[0]):
                        if definition[role] == derivation:
                            waits = max(
                                waits,
                                _waits(
                                    definition,
                                    derived,
                                    bounds,
                                    role,
                                    ts[place],
                                    te[place],
                                    first_cell,
                                    offsets,
                                    ts,
                                    te,
                                    useful,
                                    until,
                                ),
                            )
                    if waits == NEVER:
                        useful[place] = False
                        settled = False
                    elif te[place] != OPEN:
                        look[partition] = min(look[partition], waits)
            if settled:
                break


@compiled(
    nb.void(
        INTS, FLAGS, TABLE, nb.int64, nb.int64, INTS, INTS, INTS, OUT_FLAGS, INTS, INTS, INTS, nb.int64, OUT_FLAGS
    ),
    nogil=True,
    borrows=True,
)  # fmt: skip
def _need(
    definition: Int64Array, derived: BoolArray, bounds: Int64Array, role: int, definitions: int, offsets: Int64Array, ts: Int64Array,
    te: Int64Array, useful: BoolArray, partition: Int64Array, own_ts: Int64Array, own_te: Int64Array, until: int, found: BoolArray,
) -> None:  # fmt: skip
    for row in range(own_ts.shape[0]):
        found[row] = _waits(
            definition, derived, bounds, role, own_ts[row], own_te[row], partition[row] * definitions, offsets, ts, te,
            useful, until,
        ) != NEVER  # fmt: skip
