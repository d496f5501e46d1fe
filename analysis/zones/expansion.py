"""From normal form to zones, incrementally, and refused before it explodes (rule R8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.analysis.zones.normal_form import LOCAL, All, AnyOf, Bound, Normal, bounds_of, estimate_zones
from tidegate.analysis.zones.pruning import prune_equal_flags
from tidegate.analysis.zones.zone import Conflict, Zone

MAX_ZONES = 1024
#: Instants of a zone, and distances between them in all zones of a condition, where one rounds or shifts: 500 instants
#: take some seconds, 16 million distances 128 MiB in each of a few steps.
_MOST_INSTANTS: Final = 512
_MOST_CELLS: Final = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """The consistent zones of a condition, and the conflicts that ruled out the other cases, in the order found."""

    zones: list[Zone]
    conflicts: list[Conflict]


def expand(zones: list[Zone], condition: Normal, limit: int, declared_by: str = "") -> Expansion:
    """The consistent zones of `zones ∧ condition`.

    Plain constraints come first and disjunctions from the smallest, so that inconsistent branches die early; a
    disjunction with a branch that a zone entails leaves that zone as it is. `QueryError` TG150 where a step could
    need more than `limit` zones.
    """
    match condition:
        case Bound():
            return _conjoined(zones, (condition,), declared_by)
        case All(parts):
            plain = tuple(part for part in parts if isinstance(part, Bound))
            expansion = _conjoined(zones, plain, declared_by)
            alternatives = [part for part in parts if not isinstance(part, Bound)]
            for alternative in sorted(alternatives, key=estimate_zones):
                further = expand(expansion.zones, alternative, limit, declared_by)
                expansion = Expansion(further.zones, expansion.conflicts + further.conflicts)
            return expansion
        case AnyOf(parts):
            _check_estimate(len(zones), condition, limit)
            cases: list[Expansion] = []
            for zone in zones:
                if any(isinstance(part, Bound) and zone.entails(part) for part in parts):
                    cases.append(Expansion([zone], []))
                else:
                    cases += (expand([zone], part, limit, declared_by) for part in parts)
            expansion = united(cases)
            return Expansion(prune_equal_flags(expansion.zones), expansion.conflicts)


def united(cases: Iterable[Expansion]) -> Expansion:
    """The zones and the conflicts of all cases."""
    zones: list[Zone] = []
    conflicts: list[Conflict] = []
    for case in cases:
        zones += case.zones
        conflicts += case.conflicts
    return Expansion(zones, conflicts)


def _conjoined(zones: list[Zone], bounds: tuple[Bound, ...], declared_by: str) -> Expansion:
    if not bounds:
        return Expansion(zones, [])
    conjunctions = [zone.conjoin(bounds, declared_by) for zone in zones]
    return Expansion(
        [zone for zone in conjunctions if isinstance(zone, Zone)],
        [conflict for conflict in conjunctions if isinstance(conflict, Conflict)],
    )


def check_number(number: int, limit: int, what: str) -> None:
    """Refuses `what` if it would build more than `limit` zones."""
    if number > limit:
        raise QueryError(
            "TG150",
            f"{what} has about {number} temporal cases, more than {limit}",
            hint="split it into several queries, or use fewer alternatives (or, !=, min, max, outer and anti-joins)",
        )


def check_size(zones: int, instants: int) -> None:
    """Refuses a condition if its zones, over so many instants each, would not fit or take long to close."""
    if instants > _MOST_INSTANTS or (zones > 1 and zones * instants**2 > _MOST_CELLS):
        raise QueryError(
            "TG150",
            f"a condition has about {zones} temporal cases of {instants} instants: too many to analyse",
            because=("each instant that is rounded or shifted in another way counts, in every case",),
            hint="round in fewer ways, with fewer alternatives, or split the query into several",
        )


def _check_estimate(zones: int, condition: AnyOf, limit: int) -> None:
    estimate = zones * estimate_zones(condition)
    if estimate <= limit:
        return
    mentioned = list(dict.fromkeys(name for bound in bounds_of(condition) for name in (bound.v, bound.w)))
    shown = ", ".join(mentioned[:6]).replace(LOCAL, "") + (", …" if len(mentioned) > 6 else "")
    raise QueryError(
        "TG150",
        f"the condition on {shown} has about {estimate} temporal cases, more than {limit}",
        because=(f"{zones} cases so far × {estimate_zones(condition)} alternatives of this condition",),
        hint="split the query in two, or state the alternatives as fewer comparisons",
    )
