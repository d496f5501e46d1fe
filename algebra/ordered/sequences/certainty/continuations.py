"""How a match can go on with rows to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tidegate.algebra.ordered.sequences.certainty.possible import Known
from tidegate.algebra.ordered.sequences.certainty.zone import ZERO, Zone
from tidegate.algebra.ordered.sequences.navigation import RowOf
from tidegate.algebra.ordered.sequences.partition import Matched
from tidegate.algebra.ordered.sequences.pattern import Absence

#: A condition that rows to come decide: the variable, and the rows of the match that it sees.
Undecided: TypeAlias = tuple[str, Matched]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a match: its state and its known rows, the conditions among theirs that are not decided, and the
    rows that must not come before.
    """

    state: int
    matched: Matched
    undecided: tuple[Undecided, ...] = ()
    absences: tuple[Absence, ...] = ()


class Continuations:
    """The ways to go on with rows that follow the known ones, each of which has an instant from `least` on.

    Conditions hold where they can. Of the differences of instants that they state, an upper bound between two rows to
    come is left out: with more rows between, it could be kept.
    """

    def __init__(self, known: Known, least: int) -> None:
        self.known, self.least, self.prepared = known, least, known.prepared

    def matches(self, beginning: Beginning, state: int | None = None) -> Iterator[Matched]:
        """Matches that go on so, with rows to come at places behind the known ones; at first with one in a state. Of
        those of which nothing reads where they differ, one.
        """
        zone: Zone | None = self.beginning(beginning.undecided)
        if zone is None:
            return
        seen: dict[object, list[Zone]] = {}
        states = self.prepared.automaton.states
        first = [way.to for way in states[beginning.state].transitions] if state is None else [state]
        waiting = [(to, beginning.matched, zone) for to in reversed(first) if to is not None]
        while waiting:
            state, matched, zone = waiting.pop()
            longer = self._with_row(state, matched, zone)
            if longer is None:
                continue
            matched, zone = longer
            before = seen.setdefault(self._alike(state, matched, zone), [])
            if any(other.includes(zone) for other in before):
                continue
            before.append(zone)
            ways = [way.to for way in states[state].transitions]
            if None in ways and self.is_match(beginning, matched, zone):
                yield matched
            waiting += [(to, matched, zone) for to in reversed(ways) if to is not None]

    def beginning(self, undecided: Iterable[Undecided]) -> Zone | None:
        """What conditions that are not decided say of rows to come; None where there are no such rows."""
        zone: Zone | None = Zone(self.least)
        for variable, matched in undecided:
            if zone is not None:
                zone = self._stated(variable, matched, zone)
        return zone

    def _with_row(self, state: int, matched: Matched, zone: Zone) -> tuple[Matched, Zone] | None:
        """With one row more, which has the state; None where it can not have it."""
        place = max(self.known.count, matched[-1][0] + 1)
        variable = self.prepared.automaton.variable(state)
        matched = (*matched, (place, variable))
        if not self.can_hold(variable, place, matched):
            return None
        stated = self._stated(variable, matched, self._up_to(place, zone))
        kept = None if stated is None else self._limited(matched, stated, lasting=True)
        return None if kept is None else (matched, kept.only(self._kept(matched, kept)))

    def can_hold(self, variable: str, place: int, matched: Matched) -> bool:
        return True in self.known.outcomes(variable, place, matched)

    def _stated(self, variable: str, matched: Matched, zone: Zone) -> Zone | None:
        """With the bounds that the condition of the last of these rows states."""
        kept: Zone | None = zone
        for bound in self.prepared.bounds.get(variable, ()):
            if kept is None or not self.reads(bound.later) or not self.reads(bound.earlier):
                continue
            later, earlier = (self.known.partition.place(row, matched) for row in (bound.later, bound.earlier))
            if later is None or earlier is None or min(later, earlier) < 0:
                continue
            if min(later, earlier) >= self.known.count and later > earlier:
                continue
            kept = self._within(later, earlier, bound.most, self._up_to(max(later, earlier), kept))
        return kept

    def reads(self, row: RowOf) -> bool:
        """Whether bounds of this row count."""
        return True

    def _up_to(self, place: int, zone: Zone) -> Zone:
        """With all rows up to a place."""
        for new in range(max((self.known.count - 1, *zone.places)) + 1, place + 1):
            zone = zone.with_row(new)
        return zone

    def _within(self, later: int, earlier: int, most: int, zone: Zone) -> Zone | None:
        count, times = self.known.count, self.known.partition.times
        if later < count:
            later, most = ZERO, most - times[later]
        if earlier < count:
            earlier, most = ZERO, most + times[earlier]
        forgotten = {later, earlier} - {ZERO, *zone.places}
        return zone if forgotten else zone.within(later, earlier, most)

    def _kept(self, matched: Matched, zone: Zone) -> frozenset[int]:
        """The rows to come of which something is read later: from rows after them, or as those of variables."""
        last = matched[-1][0]
        near = [place for place in zone.places if place > last - max(self.prepared.back, 1)]
        read = (place + by for places, step in self._reads(matched) for place in places for by in (0, step))
        return frozenset((*near, *read))

    def _reads(self, matched: Matched) -> list[tuple[tuple[int, ...], int]]:
        """The places that each reader needs, and where it looks from there."""
        return [(self.prepared.kept(reader, matched), reader.step) for reader in self.prepared.readers]

    def _alike(self, state: int, matched: Matched, zone: Zone) -> object:
        """What, beside the zone, is read by all that is still to come."""
        count, last = self.known.count, matched[-1][0]
        rank = {place: count + number for number, place in enumerate(zone.places)}
        registers = tuple(
            tuple(rank.get(read, read if read < count else None) for place in places for read in (place, place + step))
            for places, step in self._reads(matched)
        )
        open_counts = tuple(
            any(place >= count and (not variables or v in variables) for place, v in matched)
            for variables in self.prepared.counted
        )
        near = min(last - count, self.prepared.back), len(zone.places), rank[last]
        return state, registers, open_counts, near, self.prepared.labels(matched)

    def is_match(self, beginning: Beginning, matched: Matched, zone: Zone) -> bool:
        """Whether these rows can be a match: whether the limits leave instants for them, and nothing has come that must
        not.
        """
        kept = self.limited(matched, zone)
        return kept is not None and all(self.known.before(absence, matched) != "one" for absence in beginning.absences)

    def limited(self, matched: Matched, zone: Zone) -> Zone | None:
        """What the limits of the match leave of the instants."""
        return self._limited(matched, zone, lasting=False)

    def _limited(self, matched: Matched, zone: Zone, *, lasting: bool) -> Zone | None:
        """`lasting`: by the limits that more rows do not help to keep. They begin at a first row, which stays."""
        kept: Zone | None = zone
        for limit in self.prepared.node.limits:
            if kept is not None and not (lasting and limit.earlier.end == "last"):
                later, earlier = (self.known.partition.place_of(p, matched) for p in (limit.later, limit.earlier))
                if later is not None and earlier is not None:
                    kept = self._within(later, earlier, limit.most, kept)
        return kept
