"""Allen's thirteen relations between half-open intervals [ts, te), sets of them as masks, and whether two intersect.

Between intervals with ts < te exactly one relation holds. A point (ts = te) can stand in several by their conditions:
one at the start of B both meets and starts B.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from tidegate.algebra.terms import Term, call, conjunction, disjunction
from tidegate.algebra.time import Extended


class Allen(Enum):
    """A relation of A to B. They stand in the order of A from earliest to latest: the k-th from the end is the converse
    of the k-th."""

    BEFORE = "before"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    FINISHED_BY = "finished_by"
    CONTAINS = "contains"
    STARTS = "starts"
    EQUALS = "equals"
    STARTED_BY = "started_by"
    DURING = "during"
    FINISHES = "finishes"
    OVERLAPPED_BY = "overlapped_by"
    MET_BY = "met_by"
    AFTER = "after"

    @property
    def index(self) -> int:
        """Position in the order above: the relation's bit in a mask."""
        return _INDEX[self]

    @property
    def bit(self) -> int:
        """The mask of this relation alone."""
        return 1 << _INDEX[self]

    @property
    def converse(self) -> Allen:
        """The relation of B to A."""
        return RELATIONS[-1 - _INDEX[self]]

    @property
    def group(self) -> int | None:
        """Position in `PREFIX_GROUPS`, or None for relations that are certain once both intervals have begun."""
        return next((k for k, group in enumerate(PREFIX_GROUPS) if self in group), None)

    def condition(self, a_ts: Term, a_te: Term, b_ts: Term, b_te: Term) -> Term:
        """The relation over four endpoints, without what follows from ts < te.

        Where A or B may be a point, it holds for one relation at least, perhaps for several.
        """
        match self:
            case Allen.BEFORE:
                return call("lt", a_te, b_ts)
            case Allen.MEETS:
                return call("eq", a_te, b_ts)
            case Allen.OVERLAPS:
                return conjunction([call("lt", a_ts, b_ts), call("lt", b_ts, a_te), call("lt", a_te, b_te)])
            case Allen.FINISHED_BY:
                return conjunction([call("lt", a_ts, b_ts), call("eq", a_te, b_te)])
            case Allen.CONTAINS:
                return conjunction([call("lt", a_ts, b_ts), call("lt", b_te, a_te)])
            case Allen.STARTS:
                return conjunction([call("eq", a_ts, b_ts), call("lt", a_te, b_te)])
            case Allen.EQUALS:
                return conjunction([call("eq", a_ts, b_ts), call("eq", a_te, b_te)])
            case _:
                return self.converse.condition(b_ts, b_te, a_ts, a_te)


RELATIONS: tuple[Allen, ...] = tuple(Allen)
_INDEX = {relation: position for position, relation in enumerate(RELATIONS)}

#: Relations that share their definition until one of the intervals ends (TPStream, Table 2): by which begins first.
PREFIX_GROUPS: tuple[frozenset[Allen], ...] = (
    frozenset((Allen.OVERLAPS, Allen.FINISHED_BY, Allen.CONTAINS)),
    frozenset((Allen.STARTS, Allen.EQUALS, Allen.STARTED_BY)),
    frozenset((Allen.DURING, Allen.FINISHES, Allen.OVERLAPPED_BY)),
)

#: What intervals do that have an instant in common: they are in a relation other than before, meets and their
#: converses.
INTERSECTS = "intersects"

#: The mask of all thirteen: no constraint.
ANY = (1 << len(RELATIONS)) - 1


def intersection(a_ts: Term, a_te: Term, b_ts: Term, b_te: Term, *, points: bool = False) -> Term:
    """A and B have an instant in common: of intervals with ts < te, one of the nine relations of the prefix groups
    holds.

    A point has one instant, its own. With `points`, where A or B may be one, it is in common with what begins there.
    """
    both = conjunction([call("lt", a_ts, b_te), call("lt", b_ts, a_te)])
    return disjunction([both, call("eq", a_ts, b_ts)]) if points else both


def mask_of(relations: Iterable[Allen]) -> int:
    """A set of relations as 13 bits."""
    mask = 0
    for relation in relations:
        mask |= relation.bit
    return mask


def relations_in(mask: int) -> tuple[Allen, ...]:
    """The relations of a mask, in order."""
    return tuple(relation for relation in RELATIONS if mask & relation.bit)


def converse_mask(mask: int) -> int:
    """The mask of the converses: of what B may be to A."""
    return mask_of(relation.converse for relation in relations_in(mask))


GROUP_MASKS: tuple[int, ...] = tuple(mask_of(group) for group in PREFIX_GROUPS)


def group_bits(mask: int) -> int:
    """Three bits: which prefix groups lie in the mask as a whole."""
    return sum(1 << k for k, group in enumerate(GROUP_MASKS) if mask & group == group)


def relation_of(a_ts: Extended, a_te: Extended, b_ts: Extended, b_te: Extended) -> Allen:
    """The relation of A to B.

    Where one is a point, one of those whose conditions hold: with equal starts it is starts, equals or started_by,
    never meets; a point at the end of the other meets it or is met by it, and does not finish it.
    """
    if a_ts > b_ts:
        return relation_of(b_ts, b_te, a_ts, a_te).converse
    if a_ts == b_ts:
        return _by_ends(a_te, b_te, Allen.STARTS, Allen.EQUALS, Allen.STARTED_BY)
    if a_te <= b_ts:
        return Allen.BEFORE if a_te < b_ts else Allen.MEETS
    return _by_ends(a_te, b_te, Allen.OVERLAPS, Allen.FINISHED_BY, Allen.CONTAINS)


def _by_ends(a_te: Extended, b_te: Extended, less: Allen, equal: Allen, greater: Allen) -> Allen:
    if a_te == b_te:
        return equal
    return less if a_te < b_te else greater
