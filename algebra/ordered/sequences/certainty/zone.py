"""What bounds leave of the instants of rows to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from tidegate.algebra.time import INF, Extended

#: Stands for instant 0 among the places of rows.
ZERO: Final = -1


@dataclass(frozen=True, slots=True)
class Zone:
    """The instants of rows to come, named by their places. `most[u, w]` is the least bound of `u - w` that follows from
    all that is known. No row has an instant before `least`, and none one before that of the row before it.
    """

    least: int
    places: tuple[int, ...] = ()
    most: Mapping[tuple[int, int], Extended] = field(default_factory=dict)

    def distance(self, later: int, earlier: int) -> Extended:
        """The most by which one is after the other."""
        return 0 if later == earlier else self.most.get((later, earlier), INF)

    def with_row(self, place: int) -> Zone:
        """With one more row, the last of all."""
        most = dict(self.most)
        for point in (ZERO, *self.places):
            bounds = [self.distance(point, ZERO) - self.least]
            bounds += [self.distance(point, before) for before in self.places[-1:]]
            most[point, place] = min(bounds)
        return Zone(self.least, (*self.places, place), most)

    def within(self, later: int, earlier: int, most: int) -> Zone | None:
        """With one more bound; None where no instants are left."""
        if self.distance(earlier, later) + most < 0:
            return None
        if self.distance(later, earlier) <= most:
            return self
        points = (ZERO, *self.places)
        bounds = {
            (u, w): min(self.distance(u, w), self.distance(u, later) + most + self.distance(earlier, w))
            for u, w in product(points, points)
            if u != w
        }
        return Zone(self.least, self.places, bounds)

    def only(self, places: frozenset[int]) -> Zone:
        """What it says of these rows."""
        kept = tuple(place for place in self.places if place in places)
        points = (ZERO, *kept)
        return Zone(self.least, kept, {(u, w): self.distance(u, w) for u, w in product(points, points) if u != w})

    def includes(self, other: Zone) -> bool:
        """Whether it leaves all that another one leaves of as many rows."""
        points = list(zip((ZERO, *self.places), (ZERO, *other.places), strict=True))
        return all(other.distance(v, x) <= self.distance(u, w) for (u, v), (w, x) in product(points, points))
