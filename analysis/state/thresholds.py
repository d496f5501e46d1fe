"""Keep and relevance at some progress, as numbers: many segments are held against them, for many queries alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final
from weakref import WeakValueDictionary

from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Term
from tidegate.algebra.time import Extended
from tidegate.analysis.federation.views import Necessary, View

#: The least and greatest value of each attribute in some rows, as far as they are known.
Extents = Mapping[str, tuple[int, int]]
#: The progress of promised attributes, in their order, before an increment or before and after it.
At = tuple[tuple[Extended, ...], ...]

#: So many thresholds of one shape are known at most: a batch asks for those of a few.
MOST: Final = 256


@dataclass(frozen=True, slots=True)
class Case:
    """What one view asks of rows. `beyond`: an instant lies above a limit, for every pair. `inner`: y lies at most c
    after x, for every (x, y, c). `within`: an instant lies at or below a limit, for every pair of at least one entry;
    none is asked for where there is no entry.
    """

    beyond: tuple[tuple[str, Extended], ...]
    inner: tuple[tuple[str, str, Extended], ...] = ()
    within: tuple[tuple[tuple[str, Extended], ...], ...] = ()

    def may_hold(self, bounds: Extents) -> bool:
        """Whether a segment with these bounds may hold such a row. An instant without bounds may be anything."""
        for x, limit in self.beyond:
            if x in bounds and bounds[x][1] <= limit:
                return False
        for x, y, c in self.inner:
            if x in bounds and y in bounds and bounds[y][0] - bounds[x][1] > c:
                return False
        return not self.within or any(
            all(x not in bounds or bounds[x][0] <= limit for x, limit in entry) for entry in self.within
        )


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The rows that stay, or matter, at some progress: those of any of the cases."""

    cases: tuple[Case, ...]
    build: Callable[[], Term] = field(repr=False)

    @cached_property
    def condition(self) -> Term:
        """The same as a condition over the stream's attributes."""
        return self.build()

    def segment(self, bounds: Extents) -> bool:
        """Whether a segment with these least and greatest values may hold such a row; False: it holds none."""
        return any(case.may_hold(bounds) for case in self.cases)


class KnownThresholds:
    """The thresholds of one shape that were asked for, by progress."""

    def __init__(self) -> None:
        self._known: dict[At, Thresholds] = {}

    def __reduce__(self) -> tuple[type[KnownThresholds], tuple[()]]:
        """Other processes, to which plans go, ask for thresholds of their own."""
        return KnownThresholds, ()

    def at(self, progress: At, made: Callable[[], Thresholds]) -> Thresholds:
        """The thresholds at some progress; `made` when it is asked for first."""
        known = self._known.get(progress)
        if known is None:
            if len(self._known) >= MOST:
                self._known.clear()
            known = self._known[progress] = made()
        return known


#: Those of occurrences that are there, by their shape.
_SHAPES: WeakValueDictionary[Hashable, KnownThresholds] = WeakValueDictionary()


def known_thresholds(stream: StreamDef, views: tuple[View, ...], needed: tuple[Necessary, ...]) -> KnownThresholds:
    """What is known for an occurrence, and for all others of its shape: those that have the same instants, and views
    that differ in the names of promised attributes alone.
    """
    columns = tuple((x, stream.schema[x].type) for view in views[:1] for x in view.columns)
    asked = tuple((one.inner, _nameless(one.ahead), _nameless(one.behind)) for one in needed)
    return _SHAPES.setdefault((columns, tuple(view.bounds for view in views), asked), KnownThresholds())


def _nameless(pairs: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]) -> tuple[object, ...]:
    return tuple(bounds for _, bounds in pairs)
