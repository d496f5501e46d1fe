"""A pattern over one key's generated events, through the kernels, increment by increment, with what it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.situations_data import GAP, SITUATION, Ints, Span, attribute, intervals
from tidegate.algebra.allen import ANY
from tidegate.analysis.ordered.match.order import Statistics, best_order, initial_statistics
from tidegate.runtime.arrays import UInt64Array
from tidegate.runtime.kernels.cells import NONE, Situations, arrange, find_triggers, purge
from tidegate.runtime.kernels.counting import Tail, count_matches, tails_of
from tidegate.runtime.kernels.event_runs import mark
from tidegate.runtime.kernels.partners import Partners, of_use
from tidegate.runtime.kernels.ranges.range_plan import RangeSteps, plan_search
from tidegate.runtime.kernels.ranges.range_search import find_matches
from tidegate.runtime.kernels.search import Matches
from tidegate.runtime.kernels.search_plan import RELATIONS, Pattern, Steps, hull_of, plan_steps, triggering
from tidegate.runtime.kernels.situations import ClosedSituations, Runs, derive

Relations = Mapping[tuple[int, int], str]
Kinds = tuple[tuple[Ints, ...], tuple[Ints, ...]]
#: A table: its head, then its rows.
Rows = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Events:
    """Events of one key at 1 Hz: the conditions that hold of each, a bit per situation."""

    time: Ints
    holds: UInt64Array
    conditions: int

    @classmethod
    def generate(cls, seconds: int, conditions: int, seed: int = 1) -> Events:
        rng = np.random.default_rng(seed)
        bitmaps = [np.packbits(attribute(rng, seconds, 1)[0], bitorder="little") for _ in range(conditions)]
        holds = mark([(bitmap, 0) for bitmap in bitmaps], seconds)
        return cls(np.arange(seconds, dtype=np.int64), holds, conditions)


@dataclass(frozen=True, slots=True)
class Ran:
    """Matches, candidates examined, situations kept at most, and seconds of the thread."""

    matches: int
    examined: int
    kept: int
    seconds: float


def pattern_of(relations: Relations, roles: int, *, within: int, final: bool = False) -> Pattern:
    """Roles by number, each with situations of its own, and the relations between pairs, alternatives joined by `;`."""
    masks = np.full((roles, roles), ANY)
    for (i, j), names in relations.items():
        masks[i, j] = sum(1 << RELATIONS.index(name) for name in names.split(";"))
    return Pattern.of_pairs(masks, within=within, final=final)


def initial(pattern: Pattern) -> Statistics:
    """What the cost model assumes of a pattern before anything is seen."""
    roles = range(len(pattern.definition))
    masks = {(i, j): int(pattern.masks[i, j]) for i in roles for j in roles if i < j and pattern.masks[i, j] != ANY}
    return initial_statistics(masks, [], len(roles))


def planned(pattern: Pattern) -> Ints:
    """The initial order for every trigger."""
    statistics = initial(pattern)
    return np.array([best_order(role, statistics).symbols for role in range(len(pattern.definition))])


def run(
    events: Events,
    pattern: Pattern,
    orders: Ints,
    *,
    increments: int = 10,
    counting: bool = False,
    freeing: bool = False,
) -> Ran:
    """Situations derived and matched, from the first event to the last; with `freeing`, the partner rule frees them."""
    steps = plan_steps(pattern, orders) if counting else plan_search(pattern, orders)
    partners = partners_of(pattern) if freeing else None
    kinds, tails = offsets(pattern), tails_of(steps) if isinstance(steps, Steps) and counting else None
    ends = np.linspace(-1, events.time[-1], increments + 1).astype(np.int64)
    partition = np.zeros(len(events.time), dtype=np.int32)
    runs, state = Runs.empty(1, events.conditions), Situations.empty(events.conditions)
    matches = examined = kept = 0
    start = time.thread_time()
    for after, until in pairwise(ends.tolist()):
        new = slice(after + 1, until + 1)
        _, closed, _, _ = derive(partition[new], events.time[new], events.holds[new], runs)
        state, found, looked = step(steps, kinds, state, closed, runs, after, until, tails, partners)
        matches, examined, kept = matches + found, examined + looked, max(kept, len(state.ts))
    return Ran(matches, examined, kept, time.thread_time() - start)


def step(
    steps: Steps | RangeSteps,
    kinds: Kinds,
    state: Situations,
    closed: ClosedSituations,
    runs: Runs | None,
    after: int,
    until: int,
    tails: Sequence[Tail | None] | None,
    partners: Partners | None = None,
) -> tuple[Situations, int, int]:
    """What is kept after an increment, its matches and the candidates examined; with `tails` they are only counted."""
    laid = arrange(state, closed, runs, 1)
    triggers = find_triggers(laid, *kinds, after, until)
    if tails is None or isinstance(steps, RangeSteps):
        listed = find_matches(steps, laid, triggers, after, until)
        matches, counters = len(listed.detected), listed.counters
    else:
        counted = count_matches(steps, tails, laid, triggers, after, until)
        matches, counters = counted.matches, counted.counters
    kept = purge(laid, steps.pattern.within, np.full(laid.definitions, NONE), until)
    if partners is not None:
        useful, _ = of_use(partners, laid, kept, until)
        kept = kept.where(useful[kept.origin])
    return kept, matches, int(counters[..., 0].sum())


def partners_of(pattern: Pattern) -> Partners:
    """What the partner rule goes by, used for situations that some other has to begin soon after or before."""
    bounds = np.array(hull_of(pattern), dtype=np.int64)
    ends, roles = bounds[1::2, 0::2], np.eye(len(pattern.definition), dtype=np.bool_)
    freed = ((ends != NONE) & ~roles).any(axis=1)
    return Partners(pattern.definition, np.ones_like(freed), freed, bounds)


def offsets(pattern: Pattern) -> Kinds:
    """Triggers of pair constraints: starts and ends of the situations that can make a match certain."""
    starts, ends = (tuple(np.zeros(int(last), dtype=np.int64) for last in kind) for kind in triggering(pattern))
    return starts, ends


def at_once(situations: Sequence[tuple[Ints, Ints]], pattern: Pattern) -> tuple[Situations, Matches]:
    """All situations of one key, and the matches among them, in one increment."""
    closed = closed_of(situations)
    laid = arrange(Situations.empty(len(situations)), closed, None, 1)
    until = int(closed.te.max())
    triggers = find_triggers(laid, *offsets(pattern), -1, until)
    return laid, find_matches(plan_search(pattern, planned(pattern)), laid, triggers, -1, until)


def closed_of(situations: Sequence[tuple[Ints, Ints]]) -> ClosedSituations:
    """Situations of one key, definition by definition."""
    counts = [len(starts) for starts, _ in situations]
    return ClosedSituations(
        np.zeros(sum(counts), dtype=np.int32),
        np.repeat(np.arange(len(counts), dtype=np.int16), counts),
        np.concatenate([starts for starts, _ in situations]),
        np.concatenate([ends for _, ends in situations]),
        np.arange(sum(counts)),
    )


def periods(seconds: int, seed: int, situation: Span = SITUATION, gap: Span = GAP) -> tuple[Ints, Ints]:
    return intervals(np.random.default_rng(seed), seconds, situation, gap)


def in_turn(actions: Sequence[Callable[[], Ran]], times: int = 9) -> list[Ran]:
    """The quickest of several runs of each; they take turns, so that other work on the machine slows all alike."""
    rounds = [[action() for action in actions] for _ in range(times)]
    return [min(runs, key=lambda ran: ran.seconds) for runs in zip(*rounds, strict=True)]
