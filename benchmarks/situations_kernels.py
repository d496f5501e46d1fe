"""The kernels for situations and patterns, in memory, on one core: events a second, in time of that core.

Three boolean conditions at 1 Hz, situations of 10-100 s, gaps of 10-50 s; events in time order, keys interleaved.
The pattern is `A before B and B overlaps C within 300 s`. The time is the thread's own, so that other work on the
machine counts only by what it takes from caches and memory. Every figure is the best of several runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tidegate.runtime.kernels.layout import NONE, Situations, arrange, find_triggers, purge
from tidegate.runtime.kernels.pattern_plan import ALL, RELATIONS, Pattern, plan_steps
from tidegate.runtime.kernels.patterns import enumerate_matches
from tidegate.runtime.kernels.situations import Bits, Bools, Bytes, Ints, Runs, derive, mark
from tidegate.runtime.kernels.situations import Slots as SlotNumbers
from tidegate.runtime.kernels.slots import Slots

EVENTS = 10_000_000
CONDITIONS = 3
WITHIN = 300
#: Keys that no table covers.
FAR_APART = np.array([0, 1 << 62])
RUNS = 5


def main() -> None:
    """Prints the figures."""
    print(f"million events a second, {EVENTS:,} events, {CONDITIONS} conditions")
    print(
        f"{'keys':>8} {'increments':>10} {'mark':>6} {'slots':>6} {'hash':>6} {'derive':>6} {'all':>6} {'matches':>8}"
    )
    for keys in (1, 100, 10_000, 100_000):
        slot, instants, conditions = events(keys)
        bitmaps = [np.packbits(condition, bitorder="little") for condition in conditions]
        holds = marked(bitmaps, len(slot))
        marking = best(partial(marked, bitmaps, len(slot)))
        column = slot.astype(np.int64) + 1000
        dense = numbering(column)
        hashed = numbering(column * 1_000_003_000, FAR_APART)
        deriving = best(partial(derived, slot, instants, holds, keys))
        for increments in (1, 10):
            found, whole = matching(slot, instants, holds, keys, increments)
            rates = " ".join(f"{EVENTS / seconds / 1e6:6.0f}" for seconds in (marking, dense, hashed, deriving, whole))
            print(f"{keys:>8,} {increments:>10} {rates} {found:>8,}")


def events(keys: int) -> tuple[SlotNumbers, Ints, list[Bools]]:
    """Slot and time of every event, and its conditions."""
    rng = np.random.default_rng(keys)
    seconds = EVENTS // keys
    columns = []
    for _ in range(CONDITIONS):
        lengths = np.empty((keys, 2 * (seconds // 40 + 3)), dtype=np.int64)
        lengths[:, 0::2] = rng.integers(10, 51, lengths[:, 0::2].shape)
        lengths[:, 1::2] = rng.integers(10, 101, lengths[:, 1::2].shape)
        lengths[:, 0] = rng.integers(0, 51, keys)
        changes = np.cumsum(lengths, axis=1)
        turns = np.zeros((keys, seconds), dtype=np.bool_)
        row, column = np.nonzero(changes < seconds)
        turns[row, changes[row, column]] = True
        columns.append(np.ascontiguousarray(np.logical_xor.accumulate(turns, axis=1).T).reshape(-1))
    slot = np.tile(np.arange(keys, dtype=np.int32), seconds)
    return slot, np.repeat(np.arange(seconds), keys), columns


def marked(conditions: list[Bytes], events: int) -> Bits:
    """The conditions of every event in one number."""
    return mark([(condition, 0) for condition in conditions], events)


def derived(slot: SlotNumbers, instants: Ints, holds: Bits, keys: int) -> None:
    """All situations, from the beginning."""
    derive(slot, instants, holds, Runs.empty(keys, CONDITIONS))


def numbering(keys: Ints, known: Ints | None = None) -> float:
    """Seconds to give known keys their slots."""
    slots = Slots(known)
    slots.assign(keys)
    return best(lambda: slots.assign(keys))


def matching(slot: SlotNumbers, instants: Ints, holds: Bits, keys: int, increments: int) -> tuple[int, float]:
    """Matches, and seconds for all that an increment does: derive, lay out, trigger, search, purge."""
    masks = np.full((CONDITIONS, CONDITIONS), ALL)
    masks[0, 1], masks[1, 2] = 1 << RELATIONS.index("before"), 1 << RELATIONS.index("overlaps")
    steps = plan_steps(Pattern.of_pairs(masks, within=WITHIN), np.array([[0, 1, 2], [1, 2, 0], [2, 1, 0]]))
    shifts = (np.zeros(1, dtype=np.int64),) * CONDITIONS
    ends = np.linspace(-1, instants[-1], increments + 1).astype(np.int64)
    rows = np.searchsorted(instants, ends, side="right")
    found = 0

    def run() -> None:
        nonlocal found
        found = 0
        runs, kept = Runs.empty(keys, CONDITIONS), Situations.empty(CONDITIONS)
        for number in range(increments):
            new, after, until = slice(rows[number], rows[number + 1]), int(ends[number]), int(ends[number + 1])
            _, closed, _, _ = derive(slot[new], instants[new], holds[new], runs)
            laid = arrange(kept, closed, runs, keys)
            triggers = find_triggers(laid, shifts, shifts, after, until)
            found += len(enumerate_matches(steps, laid, triggers, after, until).detected)
            kept = purge(laid, WITHIN, np.full(CONDITIONS, NONE), until)

    seconds = best(run)
    return found, seconds


def best(action: Callable[[], object]) -> float:
    """The thread's seconds of the quickest of several runs."""
    quickest = float("inf")
    for _ in range(RUNS):
        start = time.thread_time()
        action()
        quickest = min(quickest, time.thread_time() - start)
    return quickest


if __name__ == "__main__":
    main()
