"""When partner and kill rule are applied, and to which rows. It knows no engine (rule R23)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import BoolArray
from tidegate.runtime.eval.beginnings.memory import Beginnings
from tidegate.runtime.plan.steps import Buffer, Leaf, Plan, Progress, QueryPlan
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.state.segments import Segment

#: Which rows of a leaf the operator of a query needs, in a state of it; None: all of them.
Needs = Callable[[str, int, pl.DataFrame, OperatorFiles | None], BoolArray | None]

#: Buffers with fewer rows together are not worth a look.
FLOOR = 1 << 15
#: Rows that the looks of a batch go through at most, unless more came: then as many.
STEP = 1 << 15
#: Buffers with no more rows together than so many steps go through are looked at whole, as long as that frees some.
WHOLE_STEPS = 2
#: Rows that a look goes through at least, before it waits for others to come.
STRIDE = 1 << 14
#: Rows that a look judges at most, save a segment with more.
JUDGED = 1 << 15
#: Rows that no look has judged yet are judged once they are so many.
YOUNG = 1 << 13
#: A buffer, or what was judged of it, is written anew where at least this fraction of the rows is dead.
WORTH = 0.25
#: So often the rate of looks is halved where they free little.
PATIENCE = 6

#: Rows that no look has judged yet, and those that looks have judged before.
Age = Literal["young", "old"]
#: Rows that looks go through for each that comes, as long as they free some.
RATE: Final[Mapping[Age, float]] = {"young": 2.0, "old": 0.5}


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """The input of a sweep: buffers whose rows depend on each other, their segments, and the progress of queries and
    streams.

    Rows are written anew where at least the fraction `worth` of them is dead. `beginnings` are what is known of
    intervals that have begun, by the streams that tell it; `segments` has them, too. `operators` are the states of
    operators by query, and `needs` says which rows of a leaf one of them needs, where it is known (rule R29).
    """

    plan: Plan
    buffers: Sequence[Buffer]
    segments: Mapping[str, Sequence[Segment]]
    progress: Mapping[str, Progress]
    bounds: Mapping[tuple[str, str], Extended]
    worth: float
    beginnings: Mapping[str, Beginnings] = field(default_factory=dict)
    operators: Mapping[str, OperatorFiles] = field(default_factory=dict)
    needs: Needs | None = None

    def judged(self, query: QueryPlan, leaf: Leaf, rows: pl.DataFrame) -> BoolArray:
        """Which of these rows of a leaf the operator of a query needs: all, where it does not say."""
        found = None
        if self.needs is not None and rows.height:
            stored = rows.select(leaf.columns)
            (number,) = (n for n, one in enumerate(query.leaves) if one is leaf)
            found = self.needs(query.name, number, stored, self.operators.get(query.name))
        return np.ones(rows.height, dtype=np.bool_) if found is None else found

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segments in self.segments.values() for segment in segments)


@dataclass(slots=True, eq=False)
class Look:
    """Segments of a buffer whose rows are judged, step by step, in one batch or in several.

    `notes` are what the engine has found so far; they are lost at a restart, and another look begins.
    """

    buffer: Buffer
    segments: tuple[Segment, ...]
    age: Age
    seq: int
    """The batch in which it has begun."""
    notes: Any = None

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)


@dataclass(frozen=True, slots=True)
class LookStep:
    """A step of a look: the number of rows read and, at the end, how many of those judged are dead.

    `segments` stand in the place of those judged, where enough of them was dead.
    """

    rows: int
    done: bool = False
    dead: int = 0
    segments: tuple[Segment, ...] | None = None


@dataclass(slots=True, eq=False)
class Watch:
    """Decides which rows of a group of buffers are judged, and when. Each row that arrives adds `credit` for judging
    others.

    Rows that no look has judged yet are judged once, the latest of them before earlier ones: most rows that the rules
    free have company, or lose hope of it, soon after they came, and little of the state can have to do with such rows.
    Beside them those that were judged longest ago are judged again. Either rate is halved by each look that frees less
    than WORTH of what it judged, PATIENCE times at most, and is what it was at first after one that frees more.
    """

    frees: bool = True
    """Whether the last sweep or look has freed at least WORTH of what it judged."""
    left: int = 0
    """Rows that were left by the last sweep of all rows."""
    looks: dict[Age, Look] = field(default_factory=dict)
    """Those that are not done yet."""
    credit: dict[Age, float] = field(default_factory=lambda: {"young": 0.0, "old": 0.0})
    idle: dict[Age, int] = field(default_factory=lambda: {"young": 0, "old": 0})
    judged: dict[str, int] = field(default_factory=dict)
    """The number of the last look at each segment, by its path."""
    count: int = 0
    last: Age = "old"
    """Of which age the last step was: the two take turns where there is credit for both."""

    @property
    def busy(self) -> frozenset[str]:
        """The paths of the segments that are being judged."""
        return frozenset(segment.path for look in self.looks.values() for segment in look.segments)

    def arrived(self, rows: int, most: int) -> None:
        """Adds the credit of this many new rows. Credit never covers more than `most` rows."""
        for age, rate in RATE.items():
            self.credit[age] = min(most, self.credit[age] + rate * rows / 2 ** self.idle[age])

    def next(self, buffers: Sequence[Buffer], segments: Mapping[str, Sequence[Segment]], seq: int) -> Look | None:
        """The look to continue, or a new one at segments that earlier batches left. None: it is too early."""
        live = {segment.path for some in segments.values() for segment in some}
        self.judged = {path: number for path, number in self.judged.items() if path in live}
        self.looks = {a: look for a, look in self.looks.items() if live.issuperset(s.path for s in look.segments)}
        busy = self.busy
        left = {b.id: [s for s in segments[b.id] if s.batch < seq and s.path not in busy] for b in buffers}
        ages: tuple[Age, Age] = ("old", "young") if self.last == "young" else ("young", "old")
        for age in ages:
            if self.credit[age] >= STRIDE:
                look = self.looks.get(age) or self._chosen(age, buffers, left, seq)
                if look is not None:
                    self.looks[age] = look
                    return look
        return None

    def _chosen(
        self, age: Age, buffers: Sequence[Buffer], segments: Mapping[str, Sequence[Segment]], seq: int
    ) -> Look | None:
        some: dict[str, list[Segment]]
        if age == "young":
            some = {name: [s for s in stored if s.path not in self.judged][::-1] for name, stored in segments.items()}
            buffer = max(buffers, key=lambda buffer: sum(s.rows for s in some[buffer.id]))
            if sum(s.rows for s in some[buffer.id]) < max(1, YOUNG):
                return None
        else:
            some = {
                name: sorted((s for s in stored if s.path in self.judged), key=lambda s: self.judged[s.path])
                for name, stored in segments.items()
            }
            known = [buffer for buffer in buffers if some[buffer.id]]
            if not known:
                return None
            buffer = min(known, key=lambda buffer: self.judged[some[buffer.id][0].path])
        chosen: list[Segment] = []
        for segment in some[buffer.id]:
            if chosen and sum(s.rows for s in chosen) + segment.rows > JUDGED:
                break
            chosen.append(segment)
        return Look(buffer, tuple(chosen), age, seq)

    def went(self, look: Look, looked: LookStep) -> None:
        """Records the cost of a step and, at the end of a look, its findings."""
        self.credit[look.age] -= looked.rows
        self.last = look.age
        if looked.done:
            del self.looks[look.age]
            self.count += 1
            left = look.segments if looked.segments is None else looked.segments
            self.judged.update((segment.path, self.count) for segment in left)
            freed = looked.dead >= WORTH * look.rows
            self.idle[look.age] = 0 if freed else min(PATIENCE, self.idle[look.age] + 1)
            self.frees = freed

    def swept(self, stored: int, left: int) -> None:
        """Records how many rows a sweep of all rows has left."""
        self.left, self.frees = left, stored - left >= WORTH * stored

    def given_up(self, look: Look) -> None:
        """Records that the state is too large for the engine to sweep."""
        del self.looks[look.age]

    def renamed(self, paths: Mapping[str, str]) -> None:
        """Replaces the paths of segments that were rewritten."""
        self.judged = {paths.get(path, path): number for path, number in self.judged.items()}
