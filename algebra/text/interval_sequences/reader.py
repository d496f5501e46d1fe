"""The text of an interval sequence as a relation of the DSL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from operator import and_, eq, ge, gt, le, lt, or_
from typing import Any, Final, cast

from tidegate.algebra.allen import INTERSECTS, RELATIONS
from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.checks.durations import Duration, duration_in_ticks
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.sequences.intervals import iseq
from tidegate.algebra.dsl.situations import Intervals
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.ordered.derive import END, START
from tidegate.algebra.text.conditions import Conditions
from tidegate.algebra.text.durations import duration_of
from tidegate.algebra.text.parsing import Part, Text, name_of
from tidegate.algebra.text.units import Unit, unit_of

_COMPARED: Final[Mapping[str, Any]] = {
    "<": lt, "<=": le, "≤": le, "=": eq, "==": eq, ">=": ge, "≥": ge, ">": gt,
}  # fmt: skip
_RELATIONS: Final = (*(relation.value for relation in RELATIONS), INTERSECTS)


def read_interval_sequence(
    text: Text, given: Relation | Mapping[str, Relation], asked_units: Mapping[str, str]
) -> Relation:
    """The interval sequence that a text asks for; `given` are the intervals by name, or the only ones."""
    part, *selected = text.parse().parts
    units = {name: unit_of(written) for name, written in asked_units.items()}
    event = _Reader(text, given, units).event(part)
    with written_at(text.at(event.place)):
        found = iseq(*event.conditions, of=event.intervals.values(), within=event.within)
    if not selected:
        return found
    with written_at(text.at(selected[0])):
        return found.where(_OfMatches(text, found, (), (), units).read(selected[0]))


@dataclass(frozen=True, slots=True)
class _Event:
    """Intervals, what restricts their ends, and the window in which they lie; `place` is where that begins."""

    intervals: Mapping[str, Intervals]
    conditions: tuple[Expression, ...]
    within: Duration
    place: Part

    @property
    def ticks(self) -> int:
        """The window in ticks; `QueryError` TG160 where nothing lasts less than it."""
        ticks = duration_in_ticks(
            self.within, next(iter(self.intervals.values()))._periods.schema[START].type, "within"
        )
        if ticks < 1:
            raise QueryError(
                "TG160", f"within={shown(self.within)} is not positive", hint="nothing lasts less than that"
            )
        return ticks

    def inside(self, ticks: int) -> tuple[Expression, ...]:
        """The conditions, with those that say its own window where this one is larger."""
        if self.ticks >= ticks:
            return self.conditions
        pairs = product(self.intervals.values(), repeat=2)
        return (*self.conditions, *(first[END] - second[START] < self.within for first, second in pairs))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads sequences; intervals of one name are the same ones in all of them."""

    text: Text
    given: Relation | Mapping[str, Relation]
    units: Mapping[str, Unit]
    named: dict[tuple[str, str], Intervals] = field(default_factory=dict)

    def event(self, part: Part) -> _Event:
        """A sequence, several that happen in one window, or one of several of the same intervals."""
        if part.kind == "sequence":
            return self._sequence(part)
        events = [self.event(one) for one in part.parts if one.kind != "duration"]
        return self._alternatives(events) if part.kind == "alternatives" else self._together(events, part.parts[-1])

    def _alternatives(self, events: Sequence[_Event]) -> _Event:
        first, *others = events
        for event in others:
            if _same(event.intervals) != _same(first.intervals):
                raise QueryError(
                    "TG173",
                    f"alternatives are of the same intervals, and {', '.join(event.intervals)} are not "
                    f"{', '.join(first.intervals)}",
                    hint="restrict the same intervals in each, or make each a result of its own",
                    site=self.text.at(event.place),
                )
        longest = max(events, key=lambda event: event.ticks)
        said = [event.inside(longest.ticks) for event in events]
        either = (reduce(or_, [reduce(and_, one) for one in said]),) if all(said) else ()
        return _Event(first.intervals, either, longest.within, first.place)

    def _together(self, events: Sequence[_Event], window: Part) -> _Event:
        intervals: dict[str, Intervals] = {}
        for event in events:
            for name, one in event.intervals.items():
                if name in intervals:
                    raise _there_twice(name, self.text.at(event.place))
                intervals[name] = one
        within = _Restrictions(self.text, intervals, self.units).duration(window)
        whole = _Event(intervals, (), within, events[0].place)
        conditions = tuple(condition for event in events for condition in event.inside(whole.ticks))
        return replace(whole, conditions=conditions)

    def _sequence(self, part: Part) -> _Event:
        intervals: dict[str, Intervals] = {}
        for interval in (one for one in part.parts if one.kind == "interval"):
            found = self._intervals(interval)
            if found._symbol in intervals:
                raise _there_twice(found._symbol, self.text.at(interval))
            intervals[found._symbol] = found
        reader = _Restrictions(self.text, intervals, self.units)
        restrictions = [reader.read(one) for one in part.parts if one.kind not in ("interval", "duration")]
        return _Event(intervals, tuple(restrictions), reader.duration(part.parts[-1]), part.parts[0])

    def _intervals(self, part: Part) -> Intervals:
        """The intervals of a name, by their own name or by another one."""
        name, wanted = name_of(part.parts[0]), name_of(part.parts[-1])
        if (name, wanted) not in self.named:
            self.named[name, wanted] = _intervals(self.text, part, self.given)
        return self.named[name, wanted]


def _same(intervals: Mapping[str, Intervals]) -> dict[str, int]:
    return {name: id(one) for name, one in intervals.items()}


def _there_twice(name: str, site: Site) -> QueryError:
    return QueryError("TG103", f"{name} is there twice", hint=f"give it a second name: {name} AS {name}2", site=site)


class _OfMatches(Conditions):
    """Reads conditions on the attributes of matches: `A.item` is one of what A is."""

    def attribute(self, tree: Part) -> Expression:
        name = ".".join(map(name_of, tree.parts))
        with written_at(self.text.at(tree)):
            return self.relation[name]


def _intervals(text: Text, part: Part, given: Relation | Mapping[str, Relation]) -> Intervals:
    """The intervals of a name, by their own name or by another one."""
    name = name_of(part.parts[0])
    known = {given._symbol: given} if isinstance(given, Intervals) else given
    found = known.get(name) if isinstance(known, Mapping) else None
    if not isinstance(found, Intervals):
        names = [str(one) for one in known] if isinstance(known, Mapping) else []
        raise QueryError(
            "TG173",
            f"no intervals {name} are given" if found is None else f"{name} is no intervals",
            hint=f"there are {', '.join(names)}" if names and found is None else "give relation.as_intervals(...)",
            site=text.at(part),
        )
    with written_at(text.at(part)):
        wanted = name_of(part.parts[-1])
        return found if wanted == found._symbol else found.as_(wanted)


@dataclass(frozen=True, slots=True)
class _Restrictions:
    """Reads restrictions of the ends of some intervals."""

    text: Text
    intervals: Mapping[str, Intervals]
    units: Mapping[str, Unit]

    def read(self, part: Part) -> Expression:
        with written_at(self.text.at(part)):
            match part.kind:
                case "all":
                    return reduce(and_, map(self.read, part.parts))
                case "either":
                    return reduce(or_, map(self.read, part.parts))
                case "relation":
                    return self._related(*part.parts)
                case _:
                    return reduce(and_, self._chain(part.parts))

    def _chain(self, parts: tuple[Part, ...]) -> list[Expression]:
        """`a < b < c` as comparisons of neighbours."""
        sides = list(map(self._side, parts[::2]))
        compared = []
        for place, sign in enumerate(parts[1::2]):
            with written_at(self.text.at(parts[2 * place])):
                compared.append(_COMPARED[sign.parts[0].text](sides[place], sides[place + 1]))
        return compared

    def _side(self, part: Part) -> Any:
        with written_at(self.text.at(part)):
            match part.kind:
                case "end":
                    return self._end(part)
                case "later":
                    return self._end(part.parts[0]) + self.duration(part.parts[1])
                case "earlier":
                    return self._end(part.parts[0]) - self.duration(part.parts[1])
                case "difference":
                    return self._end(part.parts[0]) - self._end(part.parts[1])
                case "negative":
                    amount = self.duration(part.parts[0])
                    return f"-{amount}" if isinstance(amount, str) else -cast(int, amount)
                case _:
                    return self.duration(part.parts[0])

    def _end(self, part: Part) -> Any:
        name, end = map(name_of, part.parts)
        if end not in (START, END):
            raise QueryError(
                "TG101",
                f"{name} has no end {shown(end)}",
                hint=f"its ends are {name}.ts and {name}.te; a condition on data stands behind the sequence: "
                f"SELECT {name}.{end} = ...",
                site=self.text.at(part),
            )
        return self._of(name, part)[end]

    def _of(self, name: str, part: Part) -> Intervals:
        if name not in self.intervals:
            near = nearest(name, self.intervals, 3)
            raise QueryError(
                "TG101",
                f"{name} is restricted, and is not in the sequence",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"name it: ({', '.join([*self.intervals, name])}; ...)",
                site=self.text.at(part),
            )
        return self.intervals[name]

    def _related(self, left: Part, relation: Part, right: Part) -> Expression:
        name = re.sub(r"[\s_-]+", "_", relation.text.lower())
        if name not in _RELATIONS:
            near = nearest(name, _RELATIONS)
            listed = " or ".join(one.replace("_", " ") for one in near or _RELATIONS)
            raise QueryError(
                "TG171",
                f"no relation is called {' '.join(relation.text.split())!r}",
                hint=f"did you mean {listed}?" if near else f"relations are {listed}",
                site=self.text.at(relation),
            )
        first, second = (self._of(name_of(side), side) for side in (left, right))
        related = getattr(first, name)(second)
        assert isinstance(related, Expression)
        return related

    def duration(self, part: Part) -> Duration:
        first = next(iter(self.intervals.values()))
        return duration_of(self.text, part, first._periods.schema[START], self.units)
