"""The scheduler: which queries a batch evaluates, and in which order; the others wait and lag (rule R24)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from tidegate.algebra.time import INF, format_duration, format_instant
from tidegate.runtime.plan.progress import ProgressState, reach
from tidegate.runtime.plan.schedule import Timetable
from tidegate.runtime.plan.steps import Plan, QueryPlan
from tidegate.runtime.state.codec import Json

SKIPPED = "skipped results"
"""Where it stands in a manifest's `extra`."""
UNFINISHED = "a batch takes so many steps of a recursion, and the next one goes on"
"""Why a recursion is behind that the last batch has evaluated."""


@dataclass(frozen=True, slots=True)
class SkippedResult:
    """A result that the last batch did not evaluate, or not as far as it could: `batch` and `clock` of its last
    evaluation, how many batches in a row the budget has put it off, and why it waits, in words."""

    batch: int
    clock: int
    put_off: int
    because: str


@dataclass(slots=True)
class Scheduler:
    """Which queries one batch evaluates: `seq` at `clock`, the last one having been `last` (its number and clock).

    Iterating yields queries to be evaluated together, of one level, none of which reads another but in a recursive
    component; what is yielded is taken to be evaluated before the next is asked for. `before` are the results that
    the last batch skipped, `skipped` those that this one does.
    """

    plan: Plan
    timetable: Timetable
    progress: ProgressState
    before: Mapping[str, SkippedResult]
    last: tuple[int, int]
    seq: int
    clock: int
    skipped: dict[str, SkippedResult] = field(init=False, default_factory=dict)

    def __iter__(self) -> Iterator[Sequence[QueryPlan]]:
        levels = self.plan.levels()
        if self.timetable.is_plain:
            yield from levels
            return
        ended = self._ended(levels)
        started = monotonic()
        due = self._due(levels, ended)
        if self.timetable.budget is None:
            yield from (level for level in due if level)
            return
        yield from (now for level in due if (now := [query for query in level if query.name in ended]))
        yield from self._within_budget([query for level in due for query in level if query.name not in ended], started)

    def _ended(self, levels: Sequence[Sequence[QueryPlan]]) -> set[str]:
        """The queries whose results will be complete once they and those below them are evaluated: none may wait."""
        ended = {query.name for level in levels for query in level if query.facts.is_static}
        if INF not in self.progress.inputs.values() and not any(map(self._reads_itself_only, levels)):
            return ended
        ahead = self.progress.copy()
        for level in levels:
            ahead.queries |= reach(self.plan, level, ahead)
            complete = {query.name for query in level if INF in ahead.queries[query.name].values()}
            if self.plan.recursion(level) is None or len(complete) == len(level):
                ended |= complete
        return ended

    def _reads_itself_only(self, level: Sequence[QueryPlan]) -> bool:
        """Whether a recursion has no input: it is complete at once."""
        streams = {query.stream for query in level}
        return self.plan.recursion(level) is not None and all(
            occurrence.stream.static or occurrence.stream.name in streams
            for query in level
            for occurrence in query.facts.occurrences
        )

    def _due(self, levels: Sequence[Sequence[QueryPlan]], ended: Collection[str]) -> list[list[QueryPlan]]:
        """The queries of each level that are due."""
        due: list[list[QueryPlan]] = []
        #: The streams that due queries read, and of those that others read why these wait.
        wanted: set[str] = set()
        waiting: dict[str, list[str]] = {}
        for level in reversed(levels):
            due.append([query for query in level if query.name in ended or self._is_asked(query, wanted, waiting)])
            names = {query.name for query in due[-1]}
            for query in level:
                read = {occurrence.stream.name for occurrence in query.facts.occurrences}
                if query.name in names:
                    wanted |= read
                else:
                    for stream in read:
                        waiting.setdefault(stream, []).append(self.skipped[query.stream].because)
        return due[::-1]

    def _is_asked(self, query: QueryPlan, wanted: Collection[str], waiting: Mapping[str, Sequence[str]]) -> bool:
        """Whether a query is due: an inner one is with any of those that read it, since nobody else does."""
        stream = query.stream
        if not query.facts.query.inner or stream in wanted or stream not in waiting:
            return self._is_due(stream)
        because = "; ".join(dict.fromkeys(waiting[stream]))
        self.skipped[stream] = SkippedResult(*self._last_evaluation(stream), 0, because)
        return False

    def _is_due(self, stream: str) -> bool:
        """Whether as many batches, or as much of the clock, have gone since its last evaluation; else it waits."""
        batch, clock = self._last_evaluation(stream)
        if stream in self.timetable.batches:
            next_ = batch + self.timetable.batches[stream]
            is_due, when = self.seq >= next_, f"at batch {next_}"
        elif stream in self.timetable.spans:
            later = clock + self.timetable.spans[stream]
            is_due, when = self.clock >= later, f"when the clock is at {format_instant(later)}"
        else:
            return True
        if not is_due:
            because = f"{self.timetable.cadence(stream)}, next {when}"
            self.skipped[stream] = SkippedResult(batch, clock, 0, because)
        return is_due

    def _last_evaluation(self, stream: str) -> tuple[int, int]:
        known = self.before.get(stream)
        return self.last if known is None else (known.batch, known.clock)

    def _put_off(self, stream: str) -> int:
        return self.before[stream].put_off if stream in self.before else 0

    def _within_budget(self, queries: Sequence[QueryPlan], started: float) -> Iterator[Sequence[QueryPlan]]:
        """Component by component, those of high priority and those that have waited long first; at least one."""
        budget = self.timetable.budget
        assert budget is not None
        groups = [
            members
            for component in self.plan.facts.components
            if (members := [query for query in queries if query.stream in component.streams])
        ]
        evaluated = False
        for group in sorted(groups, key=lambda group: -self._urgency(group[0].stream)):
            reached = reach(self.plan, group, self.progress)
            if all(reached[query.name] == self.progress.queries[query.name] for query in group):
                continue
            if evaluated and monotonic() - started >= budget / 1_000_000:
                self.skipped |= {query.stream: self._again_put_off(query.stream) for query in group}
                continue
            yield group
            evaluated = True

    def _urgency(self, stream: str) -> int:
        return self.timetable.priority.get(stream, 0) + self._put_off(stream)

    def _again_put_off(self, stream: str) -> SkippedResult:
        assert self.timetable.budget is not None
        times = self._put_off(stream) + 1
        how_often = "once" if times == 1 else f"{times} times in a row"
        because = f"put off {how_often} by the budget of {format_duration(self.timetable.budget)} a batch"
        return SkippedResult(*self._last_evaluation(stream), times, because)


def to_json(skipped: Mapping[str, SkippedResult]) -> Json:
    return {name: [result.batch, result.clock, result.put_off, result.because] for name, result in skipped.items()}


def from_json(recorded: Json) -> dict[str, SkippedResult]:
    """What a manifest says; nothing where it is silent."""
    known: dict[str, SkippedResult] = {}
    for name, entry in recorded.items() if isinstance(recorded, dict) else ():
        match entry:
            case [int(batch), int(clock), int(put_off), str(because)]:
                known[name] = SkippedResult(batch, clock, put_off, because)
    return known
