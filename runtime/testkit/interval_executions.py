"""The three executions of the ISEQ paper, as it describes them: what the library's own is compared with.

Li, Mani, Rundensteiner and Lin, DEBS 2011: Algorithm 1 without index (naive), with stacks of instances (stacks), and
Algorithm 3 with interval begin punctuation (punctuated). Where its rules would lose a match they are mended: an
interval triggers results unless its end must be *strictly* before another one, and what an entry of a stack points to
is gone only with all entries below that, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError
from tidegate.runtime.testkit.interval_lists import End, IntervalList, list_of

Execution = Literal["naive", "stacks", "punctuated"]
EXECUTIONS: Final[tuple[Execution, ...]] = ("naive", "stacks", "punctuated")


@dataclass(frozen=True, slots=True)
class Arrival:
    """The beginning of an interval, `te` None, or the interval itself, at its end. The id is the same in both."""

    role: str
    id: int
    ts: int
    te: int | None

    @property
    def at(self) -> int:
        return self.ts if self.te is None else self.te


def arrivals(intervals: Iterable[tuple[str, int, int]]) -> list[Arrival]:
    """Intervals, each with the role that it fills, as they arrive: at one instant first ends, then beginnings, and then
    points.
    """
    found = []
    for number, (role, ts, te) in enumerate(intervals):
        found += [Arrival(role, number, ts, None), Arrival(role, number, ts, te)]
    return sorted(found, key=lambda arrival: (arrival.at, arrival.ts == arrival.at, arrival.te is not None))


@dataclass(eq=False, slots=True)
class Record:
    """What is kept of an interval: its role, its ends as far as they are known, and the entry that it has in the stack
    of each of its ends: its number there, and how many there were in the stack before when it came.
    """

    role: int
    ts: int
    te: int | None = None
    entries: dict[End, tuple[int, int]] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[int, int, int]:
        assert self.te is not None
        return self.role, self.ts, self.te


@dataclass(frozen=True, slots=True)
class ExecutedSequence:
    """What `execute_iseq` has found, as the ends of each combination in the order of its intervals; pairs of intervals
    that were compared; and how many intervals and beginnings were kept, at most and on average.

    Examples:
        >>> from tidegate import testing
        >>> hits = tg.iseq(Fast.ts < Braking.ts, of=(Fast, Braking), within=10)
        >>> testing.execute_iseq(hits, [("Fast", 2, 5), ("Braking", 4, 6)], "naive")
        ExecutedSequence(results=((2, 5, 4, 6),), compared=1, most=2, mean=0.75)
    """

    results: tuple[tuple[int, ...], ...]
    compared: int
    most: int
    mean: float


class IntervalExecution:
    """One of the executions. `arrive` takes what comes in the order of `arrivals`, and yields the combinations that it
    completes, each as the ends of its intervals in the order of roles.

    `tested` counts pairs of intervals that were compared, `most` the records that were kept at once, `total` their
    sum over all arrivals.
    """

    def __init__(self, of: IntervalList, execution: Execution) -> None:
        self.of, self.execution = of, execution
        self.path: tuple[End, ...] = {
            "naive": (), "stacks": of.ordered_ends, "punctuated": of.ordered_points,
        }[execution]  # fmt: skip
        self.places = {end: place for place, end in enumerate(self.path)}
        roles = range(len(of.roles))
        self.indexed = frozenset(role for role in roles if execution == "punctuated" and 2 * role in self.places)
        self.known: list[dict[int, Record]] = [{} for _ in roles]
        self.stacks: list[list[Record]] = [[] for _ in self.path]
        self.pushed = [0] * len(self.path)
        self.clock: int | None = None
        self.tested = self.most = self.total = 0

    def live(self) -> int:
        """How many intervals and beginnings are kept."""
        return sum(map(len, self.known))

    def ended(self) -> int:
        """How many intervals are kept that have ended, each once, whatever roles it fills."""
        return len({id_ for records in self.known for id_, record in records.items() if record.te is not None})

    def kept(self, role: str) -> list[tuple[int, int | None]]:
        """The ends of what is kept for a role."""
        return [(record.ts, record.te) for record in self.known[self.of.roles.index(role)].values()]

    def arrive(self, arrival: Arrival, roles: Sequence[str] | None = None) -> list[tuple[int, ...]]:
        """`roles`: all that the interval fills; without it its own."""
        found = []
        self._purge(arrival.at)
        for name in (arrival.role,) if roles is None else roles:
            role = self.of.roles.index(name)
            if arrival.te is None:
                self._begin(role, arrival)
            else:
                found += self._end(role, arrival)
            self._cascade()
        self.most, self.total = max(self.most, self.live()), self.total + self.live()
        return found

    # Beginnings and ends ---------------------------------------------------------------------------------------------
    def _begin(self, role: int, arrival: Arrival) -> None:
        """Keeps a beginning, unless nothing can come of it."""
        if role not in self.indexed or not self._has_earlier(2 * role):
            return
        self.known[role][arrival.id] = record = Record(role, arrival.ts)
        self._push(2 * role, record)

    def _end(self, role: int, arrival: Arrival) -> list[tuple[int, ...]]:
        assert arrival.te is not None
        record = self.known[role].get(arrival.id)
        lost = role in self.indexed and record is None
        if lost or not self.of.lasts(role, arrival.te - arrival.ts) or not self._has_earlier(2 * role + 1):
            self._drop(role, arrival.id)
            return []
        if record is None:
            self.known[role][arrival.id] = record = Record(role, arrival.ts)
        record.te = arrival.te
        self._push(2 * role + 1, record)
        end, others = 2 * role + 1, [other for other in range(len(self.of.roles)) if other != role]
        found = []
        if not any(self.of.before(end, point) for other in others for point in (2 * other, 2 * other + 1)):
            found = list(self._combinations(record))
        if all(self.of.before(2 * other + 1, end) for other in others):
            self._drop(role, arrival.id)
        return found

    def _push(self, end: End, record: Record) -> None:
        place = self.places.get(end)
        if place is not None:
            record.entries[end] = self.pushed[place], self.pushed[place - 1] if place else 0
            self.stacks[place].append(record)
            self.pushed[place] += 1

    def _drop(self, role: int, number: int) -> None:
        record = self.known[role].pop(number, None)
        for end in () if record is None else record.entries:
            assert record is not None
            self.stacks[self.places[end]].remove(record)

    # What nothing can come of ----------------------------------------------------------------------------------------
    def _has_earlier(self, end: End) -> bool:
        """Whether something is there for each end that must be before this one, and that would be known."""
        for other, records in enumerate(self.known):
            if other == end // 2:
                continue
            ended = any(record.te is not None for record in records.values())
            if self.of.before(2 * other + 1, end) and not ended:
                return False
            if other in self.indexed and self.of.before(2 * other, end) and not records:
                return False
        return True

    def _purge(self, clock: int) -> None:
        """Lets go what has left the window."""
        self.clock = clock
        for role, records in enumerate(self.known):
            for number in [number for number, record in records.items() if clock - record.ts >= self.of.within]:
                self._drop(role, number)

    def _cascade(self) -> None:
        """Lets go what has nothing left that must be before it, until all have."""
        gone = True
        while gone:
            gone = False
            for role, records in enumerate(self.known):
                starts = role in self.indexed and not self._has_earlier(2 * role)
                ends = not self._has_earlier(2 * role + 1)
                for number, record in list(records.items()):
                    if starts or (ends and record.te is not None) or not self._points_at_something(record):
                        self._drop(role, number)
                        gone = True

    def _points_at_something(self, record: Record) -> bool:
        for end, (_, pointed) in record.entries.items():
            place = self.places[end]
            if place:
                before = self.stacks[place - 1]
                # Entries are in the order of their numbers.
                if not before or before[0].entries[self.path[place - 1]][0] >= pointed:
                    return False
        return True

    # Combinations ----------------------------------------------------------------------------------------------------
    def _combinations(self, record: Record) -> Iterator[tuple[int, ...]]:
        """All that have this interval, which is the last that came."""
        chosen: dict[int, Record] = {record.role: record}
        yield from self._down(len(self.path) - 1, self.pushed[-1] if self.path else 0, chosen)

    def _down(self, place: int, below: int, chosen: dict[int, Record]) -> Iterator[tuple[int, ...]]:
        """Goes down the stacks, from entries to those that were there before them; then joins the other roles."""
        if place < 0:
            yield from self._joined([role for role in range(len(self.known)) if role not in chosen], chosen)
            return
        end = self.path[place]
        role = end // 2
        for record in [chosen[role]] if role in chosen else reversed(self.stacks[place]):
            entry = record.entries.get(end)
            if entry is None or entry[0] >= below or record.te is None:
                continue
            if role in chosen:
                yield from self._down(place - 1, entry[1], chosen)
            elif self._fits(record, chosen):
                yield from self._down(place - 1, entry[1], {**chosen, role: record})

    def _joined(self, roles: Sequence[int], chosen: dict[int, Record]) -> Iterator[tuple[int, ...]]:
        if not roles:
            yield tuple(end for role in range(len(self.known)) for end in chosen[role].ends[1:])
            return
        for record in self.known[roles[0]].values():
            if record.te is not None and self._fits(record, chosen):
                yield from self._joined(roles[1:], {**chosen, roles[0]: record})

    def _fits(self, record: Record, chosen: dict[int, Record]) -> bool:
        for other in chosen.values():
            self.tested += 1
            if not self.of.fit(record.ends, other.ends):
                return False
        return True


@called()
def execute_iseq(
    sequence: Relation, intervals: Iterable[tuple[str, int, int]], execution: Execution = "punctuated"
) -> ExecutedSequence:
    """Executes an interval sequence as the ISEQ paper describes it, one interval after the other, to compare with what
    a program does.

    `intervals` are names, starts and ends, in ticks; one that is used under several names is given under the first of
    them. `execution` is "naive", "stacks" (of instances, by the longest order of ends), or "punctuated" (stacks of
    beginnings, too, which are told at every start). `QueryError` TG114 for what is no interval sequence, or has
    alternatives.

    From the papers: ISEQ (Li et al., DEBS 2011), Algorithms 1 and 3.

    Examples:
        >>> from tidegate import testing
        >>> hits = tg.iseq(Fast.ts < Braking.te, Braking.te < Fast.te, of=(Fast, Braking), within=10)
        >>> intervals = [("Braking", 1, 3), ("Fast", 4, 9), ("Braking", 6, 8)]
        >>> for execution in ("naive", "punctuated"):
        ...     run = testing.execute_iseq(hits, intervals, execution)
        ...     print(run.results, run.compared, run.most)
        ((4, 9, 6, 8),) 2 2
        ((4, 9, 6, 8),) 1 2
    """
    with Here():
        if execution not in EXECUTIONS:
            raise QueryError(
                "TG114", f"no execution is called {shown(execution)}", hint=f"executions are {', '.join(EXECUTIONS)}"
            )
        of, roles = list_of(sequence)
        running = IntervalExecution(of, execution)
        coming = arrivals((name, start, end) for name, start, end in intervals if name in roles)
        results = [found for arrival in coming for found in running.arrive(arrival, roles[arrival.role])]
        return ExecutedSequence(tuple(results), running.tested, running.most, running.total / max(1, len(coming)))
