"""From normal form to zones, incrementally, and refused before it explodes (rule R8)."""

from __future__ import annotations

from tidegate.algebra.errors import QueryError
from tidegate.analysis.zones.normal_form import LOCAL, All, AnyOf, Bound, Normal, bounds_of, estimate_zones
from tidegate.analysis.zones.pruning import prune_equal_flags
from tidegate.analysis.zones.zone import Conflict, Zone

MAX_ZONES = 1024


def expand(
    zones: list[Zone], condition: Normal, limit: int, conflicts: list[Conflict], declared_by: str = ""
) -> list[Zone]:
    """The consistent zones of `zones ∧ condition`.

    Plain constraints come first and disjunctions from the smallest, so that inconsistent branches die early; a
    disjunction with a branch that a zone entails leaves that zone as it is. What was found inconsistent is appended
    to `conflicts`. `QueryError` TG150 where a step could need more than `limit` zones.
    """
    match condition:
        case Bound():
            return _conjoined(zones, (condition,), conflicts, declared_by)
        case All(parts):
            plain = tuple(part for part in parts if isinstance(part, Bound))
            zones = _conjoined(zones, plain, conflicts, declared_by)
            alternatives = [part for part in parts if not isinstance(part, Bound)]
            for alternative in sorted(alternatives, key=estimate_zones):
                zones = expand(zones, alternative, limit, conflicts, declared_by)
            return zones
        case AnyOf(parts):
            _check_estimate(len(zones), condition, limit)
            found: list[Zone] = []
            for zone in zones:
                if any(isinstance(part, Bound) and zone.entails(part) for part in parts):
                    found.append(zone)
                else:
                    for part in parts:
                        found += expand([zone], part, limit, conflicts, declared_by)
            return prune_equal_flags(found) if len(found) > 1 else found


def _conjoined(zones: list[Zone], bounds: tuple[Bound, ...], conflicts: list[Conflict], declared_by: str) -> list[Zone]:
    if not bounds:
        return zones
    found: list[Zone] = []
    for zone in zones:
        result = zone.conjoin(bounds, declared_by)
        if isinstance(result, Conflict):
            conflicts.append(result)
        else:
            found.append(result)
    return found


def check_number(number: int, limit: int, what: str) -> None:
    """Refuses `what` if it would build more than `limit` zones."""
    if number > limit:
        raise QueryError(
            "TG150",
            f"{what} has about {number} temporal cases, more than {limit}",
            hint="split it into several queries, or use fewer alternatives (or, !=, min, max, outer and anti-joins)",
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
