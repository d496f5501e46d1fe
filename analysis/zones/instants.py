"""Terms over the instants of a zone: equal ones are one variable, wherever and however often they are written (rule
R3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from tidegate.algebra.formulas import (
    And,
    Ceil,
    Compare,
    Floor,
    Formula,
    Greatest,
    Least,
    Not,
    Opaque,
    Or,
    Shift,
    TemporalTerm,
    Truth,
    Var,
    rounds,
)
from tidegate.algebra.terms import Term
from tidegate.analysis.zones.expansion import Expansion, check_number, check_size, expand, united
from tidegate.analysis.zones.normal_form import LOCAL, Bound, estimate_zones, normal_form
from tidegate.analysis.zones.zone import (
    Conflict,
    Extreme,
    Hidden,
    Layout,
    Rounding,
    RowTerm,
    ShiftedInstant,
    Zone,
    is_copy,
)


def constrained(
    zones: list[Zone],
    formula: Formula,
    limit: int,
    declared_by: str = "",
    *,
    positive: bool = True,
) -> Expansion:
    """The consistent zones of `zones ∧ formula`, or of `zones ∧ ¬formula`: see `expand`.

    The zones get a row for each rounding in the formula that they have none for. It stays theirs.
    """
    if not rounds(formula):
        return expand(zones, normal_form(formula, positive=positive), limit, declared_by)

    def with_formula(group: list[Zone], layout: Layout) -> Expansion:
        reader = _Reader(layout)
        written = normal_form(reader.formula(formula), positive=positive)
        if reader.added:
            check_size(len(group) * min(estimate_zones(written), limit), len(layout.rows) + len(reader.added))
        extended = reader.extended(group, limit, declared_by)
        expansion = expand(extended.zones, written, limit, declared_by)
        relaid_zones = relaid(expansion.zones, lambda known: Layout(known.rows, layout.attributes))
        return Expansion(relaid_zones, extended.conflicts + expansion.conflicts)

    return _by_layout(zones, with_formula, limit)


def defined(zones: list[Zone], name: str, term: TemporalTerm, source: Term, limit: int) -> Expansion:
    """The zones with a further attribute: a name for the row of a temporal term, which is there or is added."""

    def with_attribute(group: list[Zone], layout: Layout) -> Expansion:
        reader = _Reader(layout)
        row = reader.row(reader.read(term, source), source)
        extended = reader.extended(group, limit)
        named = relaid(extended.zones, lambda known: Layout(known.rows, {**layout.attributes, name: known.index[row]}))
        return Expansion(named, extended.conflicts)

    return _by_layout(zones, with_attribute, limit)


def relaid(zones: Iterable[Zone], relay: Callable[[Layout], Layout]) -> list[Zone]:
    """The zones with changed layouts, each layout changed once."""
    known: dict[int, tuple[Layout, Layout]] = {}
    result: list[Zone] = []
    for zone in zones:
        if id(zone.layout) not in known:
            known[id(zone.layout)] = (zone.layout, relay(zone.layout))
        layout = known[id(zone.layout)][1]
        result.append(zone if layout is zone.layout else zone.arranged(layout))
    return result


def remains(row: Hidden, named: Iterable[Hidden]) -> bool:
    """Whether a row stays in a zone: it is named, it is a copy of a row's instant, or a rounding of what stays.

    A rounding that is hidden could not be added again: what the zone says of it would be lost. A shift could.
    """
    while True:
        if row in named or is_copy(row):
            return True
        if not isinstance(row, Rounding) or row.unit == 1:
            return False
        row = row.base


def _by_layout(zones: list[Zone], change: Callable[[list[Zone], Layout], Expansion], limit: int) -> Expansion:
    """What becomes of the zones of each layout: in each, a name may stand for another row."""
    layouts: dict[int, tuple[object, ...]] = {}
    groups: dict[tuple[object, ...], list[Zone]] = {}
    for zone in zones:
        key = layouts.setdefault(id(zone.layout), (zone.layout.rows, *zone.layout.attributes.items()))
        groups.setdefault(key, []).append(zone)
    changed: list[Expansion] = []
    for group in groups.values():
        layout = group[0].layout
        changed.append(change([zone if zone.layout is layout else zone.arranged(layout) for zone in group], layout))
    expansion = united(changed)
    check_number(len(expansion.zones) if len(groups) > 1 else 0, limit, "this condition")
    return expansion


@dataclass(slots=True)
class _Reader:
    """Reads temporal terms over the attributes of a layout; `added` are the rows that they need besides, with
    sources.
    """

    layout: Layout
    added: dict[Hidden, Term | None] = field(default_factory=dict)
    names: dict[Hidden, str] = field(default_factory=dict)

    def formula(self, formula: Formula) -> Formula:
        """The formula with a variable for each rounding; one without any is left as it is."""
        match formula:
            case Compare(left, op, right, source):
                if not rounds(left) and not rounds(right):
                    return formula
                return Compare(
                    self.written(self.read(left, source)), op, self.written(self.read(right, source)), source
                )
            case And(parts):
                return And(tuple(map(self.formula, parts)))
            case Or(parts):
                return Or(tuple(map(self.formula, parts)))
            case Not(part):
                return Not(self.formula(part))
            case Opaque() | Truth():
                return formula
            case _:
                assert_never(formula)

    def read(self, term: TemporalTerm, source: Term | None) -> RowTerm:
        """The term over rows, each rounding of which is a row that is there or is added."""
        match term:
            case Var(name):
                row = self.layout.rows[self.layout.attributes[name]]
                self.names.setdefault(row, name)
                return ShiftedInstant(row)
            case Shift(inner, by):
                return moved(self.read(inner, source), by)
            case Least(terms):
                return _extreme("least", [self.read(part, source) for part in terms])
            case Greatest(terms):
                return _extreme("greatest", [self.read(part, source) for part in terms])
            case Floor(inner, unit):
                return self.floor(self.read(inner, source), unit, source)
            case Ceil(inner, unit):
                # The first multiple at or after t is the last one at or before t + unit - 1.
                return self.floor(moved(self.read(inner, source), unit - 1), unit, source)
            case _:
                assert_never(term)

    def floor(self, reading: RowTerm, unit: int, source: Term | None) -> RowTerm:
        """The last multiple of `unit` at or before what was read: of a least instant the least, of one that is a
        rounding with a unit of which this one is a multiple, that of what was rounded."""
        if isinstance(reading, Extreme):
            return _extreme(reading.op, [self.floor(part, unit, source) for part in reading.parts])
        row, by = reading.row, reading.by
        while isinstance(row, Rounding) and self.is_known(ShiftedInstant(row.base)):
            if unit % row.unit == 0:
                by = row.offset + by // row.unit * row.unit
                row = row.base
            elif row.unit % unit == 0:
                return ShiftedInstant(row, by // unit * unit)
            else:
                break
        if isinstance(row, Extreme) and all(self.is_known(part) for part in row.parts):
            return _extreme(row.op, [self.floor(moved(part, by), unit, source) for part in row.parts])
        if unit == 1:
            return ShiftedInstant(row, by)
        rounding = Rounding(row, by % unit, unit)
        return ShiftedInstant(self.row(ShiftedInstant(rounding), source), by - by % unit)

    def is_known(self, reading: RowTerm) -> bool:
        """Whether all rows that it speaks of are there."""
        if isinstance(reading, Extreme):
            return all(map(self.is_known, reading.parts))
        return reading.row in self.layout.index or reading.row in self.added

    def row(self, reading: RowTerm, source: Term | None) -> Hidden:
        """The row of what was read, added where there is none."""
        row: Hidden
        if isinstance(reading, Extreme):
            row = reading
        elif reading.by == 0:
            row = reading.row
        elif (
            isinstance(reading.row, Rounding)
            and reading.row.unit == 1
            and self.is_known(ShiftedInstant(reading.row.base))
        ):
            return self.row(ShiftedInstant(reading.row.base, reading.row.offset + reading.by), source)
        else:
            row = Rounding(reading.row, reading.by, 1)
        if row not in self.layout.index:
            self.added.setdefault(row, source)
        return row

    def written(self, reading: RowTerm) -> TemporalTerm:
        """What was read, over variables again."""
        if isinstance(reading, Extreme):
            parts = tuple(map(self.written, reading.parts))
            return Least(parts) if reading.op == "least" else Greatest(parts)
        variable = Var(self.name(reading.row))
        return variable if reading.by == 0 else Shift(variable, reading.by)

    def name(self, row: Hidden) -> str:
        """What a formula calls a row: an attribute of the layout, or a name that no attribute has."""
        if row not in self.names:
            attributes = (name for name, k in self.layout.attributes.items() if self.layout.rows[k] == row)
            self.names[row] = next(attributes, "") or LOCAL + _local(row, self.name)
        return self.names[row]

    def extended(self, zones: list[Zone], limit: int, declared_by: str = "") -> Expansion:
        """The zones, all of this layout, with the rows that were added and what these are, and names for all that was
        read.
        """
        for row in self.added:
            for known in (row, *_parts_of(row)):
                self.name(known)
        rows = (*self.layout.rows, *self.added)
        index = {row: k for k, row in enumerate(rows)}
        layout = Layout(rows, {**self.layout.attributes, **{name: index[row] for row, name in self.names.items()}})
        zones = relaid(zones, lambda _: layout)
        conflicts: list[Conflict] = []
        for row, source in self.added.items():
            name = self.name(row)
            if isinstance(row, Rounding):
                base = self.name(row.base)
                bounds = (
                    Bound(name, base, row.offset, source),
                    Bound(base, name, row.unit - 1 - row.offset, source),
                )
                zones = [zone for wider in zones if isinstance(zone := wider.conjoin(bounds, declared_by), Zone)]
            elif isinstance(row, Extreme):
                equal = Compare(Var(name), "=", self.written(row), source)
                expansion = expand(zones, normal_form(equal), limit, declared_by)
                zones = expansion.zones
                conflicts += expansion.conflicts
        return Expansion(zones, conflicts)


def moved(reading: RowTerm, by: int) -> RowTerm:
    """What was read, plus a number of ticks."""
    if by == 0:
        return reading
    if isinstance(reading, Extreme):
        return Extreme(reading.op, tuple(moved(part, by) for part in reading.parts))
    return ShiftedInstant(reading.row, reading.by + by)


def _extreme(op: Literal["least", "greatest"], parts: list[RowTerm]) -> RowTerm:
    """The least or greatest of what was read, in one order, and flat: equal ones are equal however they are written."""
    flat = [
        member for part in parts for member in (part.parts if isinstance(part, Extreme) and part.op == op else (part,))
    ]
    different = sorted(set(flat), key=repr)
    return different[0] if len(different) == 1 else Extreme(op, tuple(different))


def _parts_of(row: Hidden) -> list[Hidden]:
    """The rows that a row is defined by, first those that others are defined by."""
    match row:
        case Rounding(base):
            return [base]
        case Extreme(_, parts):
            return [below for part in parts for below in (_parts_of(part) if isinstance(part, Extreme) else [part.row])]
        case _:
            return []


def _local(row: Hidden, name: Callable[[Hidden], str]) -> str:
    match row:
        case Rounding(base, offset, unit):
            return f"floor({name(base)} + {offset}, {unit})"
        case Extreme():
            return repr(row)
        case _:
            return f"{row[0]}{row[1]}.{row[2]}"
