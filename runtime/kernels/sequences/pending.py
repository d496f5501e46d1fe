"""Open matches: their last row is known, and rows to come, or that none come, decide whether they are matches.

An open match is a row of integers: its last node, the place of its last row, whether it is a match, and the instant at
which that is decided, both if no other rows come than those that are known. They are in order of preference; a thread
says how many of them are preferred to it.
"""

from __future__ import annotations

from typing import Final

import numba as nb

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_TABLE, compiled
from tidegate.runtime.kernels.sequences.threads import DEATH, NEVER, NO_LOOK, RANK

LAST_NODE, LAST_ROW, IS_MATCH, FATE = range(4)
#: No match, and an empty one, in the place of a node.
NONE: Final = -2
EMPTY: Final = -1
#: The index of no open match.
NOTHING: Final = -1

_THREE = nb.types.UniTuple(nb.int64, 3)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(nb.int64(OUT_TABLE, nb.int64, nb.int64, OUT_TABLE, nb.int64), borrows=True)
def last_open(threads: Int64Array, first: int, size: int, pending: Int64Array, waiting: int) -> int:
    """The last instant at which there is a thread that no match is preferred to, if no row comes. There are so many
    threads from `first` on, and open matches from `waiting` on.
    """
    latest, matched, seen = NEVER, NO_LOOK, 0
    for a in range(first, first + size):
        while seen < threads[a, RANK]:
            if pending[waiting + seen, IS_MATCH]:
                matched = min(matched, pending[waiting + seen, FATE])
            seen += 1
        latest = max(latest, min(threads[a, DEATH], matched))
    return latest


@compiled(_THREE(OUT_TABLE, nb.int64, nb.int64, OUT_TABLE, nb.int64, nb.int64, nb.int64), borrows=True)
def drop_over(  # type: ignore[no-untyped-def]  # numba
    threads: Int64Array, first: int, size: int, pending: Int64Array, waiting: int, kept: int, now: int
):
    """Drops the threads and the open matches that are over when a row comes at an instant: how many stay of both, and
    the index of the open match that has become one, which ends all behind it, or `NOTHING`.
    """
    left, stay, seen = 0, 0, 0
    for a in range(first, first + size + 1):
        rank = kept if a == first + size else threads[a, RANK]
        while seen < rank:
            if pending[waiting + seen, FATE] >= now:
                if stay < seen:
                    for c in range(4):
                        pending[waiting + stay, c] = pending[waiting + seen, c]
                stay += 1
            elif pending[waiting + seen, IS_MATCH]:
                return left, stay, waiting + seen
            seen += 1
        if a < first + size and threads[a, DEATH] >= now:
            if first + left < a:
                for r in range(threads.shape[1]):
                    threads[first + left, r] = threads[a, r]
            threads[first + left, RANK] = stay
            left += 1
    return left, stay, NOTHING


@compiled(nb.boolean(OUT_TABLE, INTS, nb.int64, nb.int64), borrows=True)
def same_rows(nodes: Int64Array, labels: Int64Array, one: int, other: int) -> bool:
    """Whether the rows of two matches, as many, have the same variables, and are reported alike."""
    while one != other:
        if one < 0 or other < 0 or labels[nodes[one, 1]] != labels[nodes[other, 1]]:
            return False
        one, other = nodes[one, 0], nodes[other, 0]
    return True


@compiled(_THREE(nb.int64, nb.int64, nb.int64, nb.int64, OUT_TABLE, nb.int64, nb.int64, OUT_TABLE, INTS), borrows=True)
def decided(  # type: ignore[no-untyped-def]  # numba
    start: int, best: int, length: int, reached: int, pending: Int64Array, waiting: int, kept: int,
    nodes: Int64Array, labels: Int64Array,
):  # fmt: skip
    """The match of a start, by its last node, its length, and the instant from which on that is certain, if no other
    rows come. `best` is the match behind all open ones, and `reached` when there is no thread any more.

    It is certain once a match is the first that is not over, but for open ones with the same rows.
    """
    chosen = 0
    while chosen < kept and not pending[waiting + chosen, IS_MATCH]:
        chosen += 1
    its = best
    if chosen < kept:
        its, length = pending[waiting + chosen, LAST_NODE], pending[waiting + chosen, LAST_ROW] + 1 - start
    certain, latest = NO_LOOK, reached
    for k in range(waiting, waiting + kept):
        same = its >= 0 and pending[k, LAST_ROW] + 1 - start == length
        same = same and same_rows(nodes, labels, its, pending[k, LAST_NODE])
        if pending[k, IS_MATCH]:
            if not same:
                return its, length, certain
            certain = min(certain, max(latest, pending[k, FATE]))
        elif not same:
            latest = max(latest, pending[k, FATE])
    if chosen == kept or (best >= 0 and same_rows(nodes, labels, its, best)):
        certain = min(certain, latest)
    return its, length, certain


@compiled(
    nb.int64(
        *(nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, OUT_TABLE, nb.int64, nb.int64),
        *(nb.int64, nb.int64, OUT, OUT),
    ),
    borrows=True,
)
def lead_on(
    start: int, best: int, length: int, until: int, first: int, pending: Int64Array, waiting: int, kept: int,
    known: int, behind: int, reached: Int64Array, barred: Int64Array,
) -> int:  # fmt: skip
    """Notes where the search may go on after a start, and until when. The place behind the last row of which that is
    noted.

    The start may be one until the instant `until`. `reached` and `barred` have by the place of a row in its partition,
    which begins at `first`, until when it may be a start, and until when it may be inside a match before it; what they
    have from `known` on is written anew. `behind` is where the search goes on without a match.
    """
    matched = until
    for k in range(waiting, waiting + kept + 1):
        if k < waiting + kept:
            target = pending[k, LAST_ROW] + 1
            stays = matched if pending[k, IS_MATCH] else min(matched, pending[k, FATE])
        else:
            target, stays = (behind if best == NONE else start + max(length, 1)), matched
        for place in range(known, target + 1):
            reached[place - first], barred[place - first] = NEVER, NEVER
        known = max(known, target + 1)
        reached[target - first] = max(reached[target - first], stays)
        for place in range(start + 1, target):
            barred[place - first] = max(barred[place - first], stays)
        if k < waiting + kept and pending[k, IS_MATCH]:
            matched = min(matched, pending[k, FATE])
    return known
