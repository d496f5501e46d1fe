"""Schedules: how often a query is evaluated, in which order, and for how long in one batch (rule R24)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.expression import DurationOption, duration_given
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import duration_ticks, format_duration
from tidegate.algebra.types import INT64_MAX
from tidegate.analysis.components import Component, dependencies
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime.arguments import mapping_of
from tidegate.runtime.plan.progress import check_known

_T = TypeVar("_T")


@checked_calls
@dataclass(frozen=True, slots=True)
class Schedule:
    """When queries are evaluated. Results lag meanwhile, and are the same in the end.

    `every` per result: every so many batches (10), or at most every so much of the clock that batches record ("10s").
    `budget`: once a batch has spent that long on its increments, queries that have not begun wait for the next one.
    Those of higher `priority` (0 where none is given) come first, and those that have waited rise by one with every
    batch. All queries of a recursive component are evaluated together. Where inputs have ended, everything is
    evaluated.

    Examples:
        >>> tg.schedule(every={"Unpaid": "10s"}, budget="200ms")
        Schedule(every={'Unpaid': '10s'}, priority={}, budget='200ms')
    """

    every: Mapping[str, int | DurationOption] = field(default_factory=dict)
    priority: Mapping[str, int] = field(default_factory=dict)
    budget: DurationOption | None = None

    def __post_init__(self) -> None:
        with Here():
            every = mapping_of("every", self.every, "10")
            object.__setattr__(self, "every", {name: duration_given(value) for name, value in every.items()})
            object.__setattr__(self, "budget", duration_given(self.budget))
            for name, value in self.every.items():
                _cadence(name, value)
            for name, value in mapping_of("priority", self.priority, "1").items():
                _priority(name, value)
            if self.budget is not None:
                _ticks("budget", self.budget)

    def checked(self, facts: ProgramFacts) -> Timetable:
        """The schedule in ticks, for every stream that it concerns; `QueryError` TG401 or TG402 where it does not fit.

        Examples:
            >>> timetable = tg.schedule(every={"Unpaid": "10s"}).checked(program.facts)
            >>> timetable.describe("Unpaid")
            'every 10s'
        """
        for name in (*self.every, *self.priority):
            check_known(name, facts.streams, "result")
        priority = {name: _priority(name, value) for name, value in self.priority.items()}
        every = _for_components({name: _cadence(name, value) for name, value in self.every.items()}, facts.components)
        return Timetable(
            {name: count for name, (count, _) in every.items() if count},
            {name: span for name, (_, span) in every.items() if span},
            _inherited(_for_components(priority, facts.components), facts),
            None if self.budget is None else _ticks("budget", self.budget),
        )


@dataclass(frozen=True, slots=True)
class Timetable:
    """A schedule that fits its program, per result stream: `batches` and `spans` (microseconds of the clock) between
    two evaluations, the `priority` of what is not 0, and the `budget` of a batch in microseconds."""

    batches: Mapping[str, int] = field(default_factory=dict)
    spans: Mapping[str, int] = field(default_factory=dict)
    priority: Mapping[str, int] = field(default_factory=dict)
    budget: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every query is evaluated in every batch."""
        return not self.batches and not self.spans and self.budget is None

    @property
    def follows_time(self) -> bool:
        """Whether a query may become due without new rows."""
        return bool(self.spans) or self.budget is not None

    def cadence(self, stream: str) -> str:
        """How often a query is evaluated, in words; empty where it is in every batch."""
        if stream in self.batches:
            return f"every {self.batches[stream]} batches"
        return f"every {format_duration(self.spans[stream])}" if stream in self.spans else ""

    def describe(self, stream: str) -> str:
        """The schedule of a result, in words; empty where it has none."""
        parts = [self.cadence(stream)] if self.cadence(stream) else []
        if self.budget is not None:
            parts.append(
                f"priority {self.priority.get(stream, 0)} in a budget of {format_duration(self.budget)} a batch"
            )
        return ", ".join(parts)


@called()
def schedule(
    *,
    every: Mapping[str, int | DurationOption] | None = None,
    priority: Mapping[str, int] | None = None,
    budget: DurationOption | None = None,
) -> Schedule:
    """How often queries are evaluated, in which order, and for how long in one batch; see `Schedule`.

    Examples:
        >>> session = program.session(schedule=tg.schedule(every={"Unpaid": 2}))
        >>> session.push("Orders", inputs["Orders"])
        >>> session.advance("Orders", {"ordered": "2026-03-03T10:00Z"})
        >>> session.advance("Payments", {"paid": "2026-03-03T10:00Z"})
        >>> session.step().results, session.step().results
        ({'Unpaid': 0}, {'Unpaid': 2})
    """
    return Schedule({} if every is None else every, {} if priority is None else priority, budget)


def checked_schedule(schedule: Schedule | None, facts: ProgramFacts) -> Timetable:
    """The timetable of a run's `schedule`, checked. Without one every query is evaluated in every batch."""
    if schedule is not None and not isinstance(schedule, Schedule):
        raise QueryError("TG401", f"{shown(schedule)} is no schedule", hint='write tg.schedule(every={"Name": 10})')
    return Timetable() if schedule is None else schedule.checked(facts)


def _cadence(name: str, value: object) -> tuple[int, int]:
    """The batches and the microseconds between two evaluations. One of them is 0."""
    match value:
        case bool():
            pass
        case int() if 1 <= value <= INT64_MAX:
            return value, 0
        case str() | dt.timedelta():
            return 0, _ticks(f"{name}: every", value)
    raise QueryError(
        "TG401",
        f"{name}: every={shown(value)} is no cadence",
        hint='give a number of batches such as 10, or "10s" of the clock',
    )


def _priority(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise QueryError("TG401", f"{name}: {shown(value)} is no priority", hint="give a whole number")


def _ticks(what: str, value: object) -> int:
    ticks = duration_ticks(value) if isinstance(value, str | dt.timedelta) else 0
    if ticks <= 0:
        raise QueryError("TG401", f"{what}={shown(value)} is no time to wait", hint='give a duration such as "10s"')
    return ticks


def _for_components(values: Mapping[str, _T], components: Iterable[Component]) -> dict[str, _T]:
    """The value of each stream of a recursive component: what one has holds for all; `QueryError` TG401 where two
    differ.
    """
    by_stream: dict[str, _T] = {}
    for component in components:
        given = {name: values[name] for name in component.streams if name in values}
        if len(set(given.values())) > 1:
            raise QueryError(
                "TG401",
                f"{' and '.join(given)} depend on each other and are evaluated together",
                hint="give them the same schedule, or only one of them any",
            )
        for value in given.values():
            by_stream |= dict.fromkeys(component.streams, value)
    return by_stream


def _inherited(priority: Mapping[str, int], facts: ProgramFacts) -> dict[str, int]:
    """What a query of high priority reads comes as early as that query itself."""
    ranks = {name: priority.get(name, 0) for name in facts.streams}
    read_by = dependencies(facts.program)
    for component in reversed(facts.components):
        highest = max(ranks[fed] for fed in {*component.streams, *(b for a, b in read_by if a in component.streams)})
        ranks |= dict.fromkeys(component.streams, highest)
    return {name: value for name, value in ranks.items() if value}
