"""The type of federations: the zones of a query, and the labels of their variables (rules R6 to R8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidegate.algebra.nodes import Join
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.types import DataType
from tidegate.analysis.zones.wording import amount, ordinal, shifted
from tidegate.analysis.zones.zone import Conflict, Extreme, Hidden, Rounding, Zone, is_copy


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a variable, and the type of its attribute."""

    text: str
    type: DataType


@dataclass(frozen=True, slots=True, eq=False)
class Unmatched:
    """A join that finds no partner for any row of its left side, and yet has rows: the constraints that contradict."""

    join: Join
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Federation:
    """The zones of a query, as a disjunction. Without a zone no row can satisfy its temporal relations.

    `occurrences[i]` is the stream of the i-th reference, numbered as `nodes.occurrences` does. `attributes` are the
    temporal attributes of the result. `conflicts` says, where no zone is left, which constraints contradict;
    `unmatched` where a join has zones of its left side only.
    """

    zones: tuple[Zone, ...]
    occurrences: tuple[StreamDef, ...]
    schema: Schema
    labels: Mapping[Hidden, Label]
    conflicts: tuple[Conflict, ...] = ()
    unmatched: tuple[Unmatched, ...] = ()
    _places: Mapping[str, list[int]] = field(init=False, repr=False)
    _marks: dict[int, str] = field(init=False, repr=False, default_factory=dict)
    """What tells occurrences from others of their streams, as far as it was asked for."""

    def __post_init__(self) -> None:
        places: dict[str, list[int]] = {}
        for i, stream in enumerate(self.occurrences):
            places.setdefault(stream.name, []).append(i)
        object.__setattr__(self, "_places", places)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.schema.temporal

    def sources(self, zone: Zone) -> tuple[int, ...]:
        """The occurrences that the zone does not ignore, in order."""
        return tuple(i for i in range(len(self.occurrences)) if i not in zone.ignored)

    def occurrence_name(self, i: int) -> str:
        """Name of an occurrence: its stream's; with several, `Alarm (a)` by its alias, or `Alarm (2nd)` where it has
        none.
        """
        return self.occurrences[i].name + self._mark(i)

    def attribute_name(self, i: int, attribute: str) -> str:
        """What an attribute of an occurrence is called that the query gives no other name."""
        return f"{self.occurrences[i].name}.{attribute}{self._mark(i)}"

    def _mark(self, i: int) -> str:
        """What tells an occurrence from others of its stream; empty where there is one."""
        stream = self.occurrences[i].name
        if len(self._places[stream]) == 1:
            return ""
        if i not in self._marks:
            self._marks.update(self._marks_of(stream))
        return self._marks[i]

    def _marks_of(self, stream: str) -> dict[int, str]:
        """What tells the occurrences of a stream apart: the one alias that one has alone, or its number."""
        aliases: dict[int, set[str]] = {i: set() for i in self._places[stream]}
        for row, label in self.labels.items():
            alias, point, _ = label.text.rpartition(".")
            if is_copy(row) and row[1] in aliases and point and alias != stream:
                aliases[row[1]].add(alias)
        used = Counter(alias for names in aliases.values() for alias in names)
        marks = {}
        for number, (i, names) in enumerate(aliases.items(), start=1):
            has_its_own = len(names) == 1 and used[min(names)] == 1
            marks[i] = f" ({min(names) if has_its_own else ordinal(number)})"
        return marks

    def label(self, variable: Hidden) -> Label:
        return self.labels[variable] if variable in self.labels else _term_label(variable, self.label)


def _term_label(row: Hidden, label: Callable[[Hidden], Label]) -> Label:
    """What a row is called that no attribute ever named: by its term."""
    match row:
        case Rounding(base, offset, unit):
            inner = label(base)
            text = shifted(inner.text, offset, inner.type)
            return Label(text if unit == 1 else f"floor({text}, {amount(unit, inner.type)})", inner.type)
        case Extreme(op, parts):
            labels = [
                _term_label(part, label)
                if isinstance(part, Extreme)
                else Label(shifted((inner := label(part.row)).text, part.by, inner.type), inner.type)
                for part in parts
            ]
            return Label(f"{op}({', '.join(named.text for named in labels)})", labels[0].type)
        case _:
            raise AssertionError(f"no label for {row}")
