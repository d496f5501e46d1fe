"""The text of an interval sequence as a relation of the DSL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, or_
from typing import Any, Final, cast

from tidegate.algebra.allen import INTERSECTS, RELATIONS
from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.checks.durations import Duration
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.sequences.intervals import iseq
from tidegate.algebra.dsl.situations import Intervals
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.derive import END, START
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
    parts = text.parse().parts
    intervals = {}
    for part in (part for part in parts if part.kind == "interval"):
        found = _intervals(text, part, given)
        if found._symbol in intervals:
            raise QueryError(
                "TG103",
                f"{found._symbol} is there twice",
                hint=f"give it a second name: {found._symbol} AS {found._symbol}2",
                site=text.at(part),
            )
        intervals[found._symbol] = found
    reader = _Restrictions(text, intervals, {name: unit_of(written) for name, written in asked_units.items()})
    restrictions = [reader.read(part) for part in parts if part.kind not in ("interval", "duration")]
    within = reader.duration(parts[-1])
    with written_at(text.at(parts[0])):
        return iseq(*restrictions, of=intervals.values(), within=within)


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
                compared.append(_COMPARED[sign.text](sides[place], sides[place + 1]))
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
                hint=f"its ends are {name}.ts and {name}.te; conditions on data are said of the intervals, in Python",
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
            near = nearest(name, _RELATIONS) or _RELATIONS
            raise QueryError(
                "TG171",
                f"no relation is called {' '.join(relation.text.split())!r}",
                hint=f"relations are {', '.join(one.replace('_', ' ') for one in near)}",
                site=self.text.at(relation),
            )
        first, second = (self._of(name_of(side), side) for side in (left, right))
        related = getattr(first, name)(second)
        assert isinstance(related, Expression)
        return related

    def duration(self, part: Part) -> Duration:
        first = next(iter(self.intervals.values()))
        return duration_of(self.text, part, first._periods.schema[START], self.units)
