"""From which instant nothing to come can change a match: the rule of certainty, and the instants by it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate.algebra.ordered.sequences.certainty.chain import Certain, Standing, preferred_at
from tidegate.algebra.ordered.sequences.certainty.possible import Known
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared
from tidegate.algebra.ordered.sequences.certainty.runs import every_at
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.meaning import Match
from tidegate.algebra.ordered.sequences.partition import Matched, Partition
from tidegate.algebra.time import last_instant

#: The version of the rule. A rule that calls a match certain at another instant is another one: the instant is a value.
RULE: Final = 2

#: What tells matches of a partition apart, and rows of no match.
_Found: TypeAlias = tuple[int, Matched] | int
#: The first and the last instant of a stretch of time.
_Segment: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Instants:
    """The least instants at which matches are certain, and, by their places, rows of no match."""

    matches: Mapping[Match, int]
    unmatched: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Detected:
    """What has become certain, each with its instant, and the standing then."""

    matches: tuple[tuple[Match, int], ...]
    unmatched: tuple[tuple[int, int], ...]
    standing: Standing


class Certainty:
    """The rule of a node. Its partitions have the rows that are known, or all that are still needed of them.

    From increment to increment a partition is taken on so: `between` tells what has become certain, and the next
    standing; of the rows those from `needed` on stay (`Partition.after`, `Standing.without`).
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    def at(self, partition: Partition, until: int | None, standing: Standing = Standing()) -> Certain:
        """What is certain from a standing on by the rows with instants up to `until`; None: there are no others."""
        if until is not None:
            partition = partition.first(bisect_right(partition.times, until))
        return self.of_all(partition, until, standing)

    def of_all(self, partition: Partition, until: int | None, standing: Standing) -> Certain:
        """The same by all rows of a partition."""
        known = Known(self.prepared, partition, until, whole=standing.whole)
        selection = self.prepared.node.selection
        if isinstance(selection, EveryMatch):
            return every_at(known, standing, selection)
        return preferred_at(known, standing)

    def needed(self, partition: Partition, until: int, standing: Standing) -> int:
        """The place of the first row that is still needed, where this is the standing at an instant: that of the first
        row at which a match may begin, or one that something reads of the rows before it.
        """
        times = partition.times
        first = times[standing.begin] if standing.begin < bisect_right(times, until) else until + 1
        leading = self.prepared.leading
        place = standing.begin if leading is None else min(standing.begin, bisect_left(times, first - leading))
        return max(place - self.prepared.reach, 0)

    def between(
        self, partition: Partition, since: int | None, until: int | None, standing: Standing = Standing()
    ) -> Detected:
        """What becomes certain after `since`, or at all, up to and with `until`, or up to the end of the input."""
        found: dict[_Found, tuple[Match | int, int]] = {}
        before = set[_Found]() if since is None else set(_named(self.at(partition, since, standing)))
        stretches = _Stretches(self, partition, before, found)
        segments = list(_segments(partition, since, until, self.prepared.span))
        begin, size = 0, 1
        while begin < len(segments):
            stretch = segments[begin : begin + size]
            count = len(found)
            standing = stretches.through(stretch, standing)
            begin += len(stretch)
            size = 2 * size if len(found) == count else 1
        if until is None:
            last = self.at(partition, None, standing)
            end = last_instant(self.prepared.node.input.schema[self.prepared.node.time].type)
            _add(found, before, _named(last), end)
            standing = last.standing
        matches = [(what, at) for what, at in found.values() if isinstance(what, Match)]
        rows = [(what, at) for what, at in found.values() if not isinstance(what, Match)]
        return Detected(tuple(matches), tuple(rows), standing)


def instants_of(partition: Partition, matches: Iterable[Match]) -> Instants:
    """The instants of the matches of a whole partition, and of its rows of no match."""
    detected = Certainty(Prepared(partition.node)).between(partition, None, None)
    end = last_instant(partition.node.input.schema[partition.node.time].type)
    by_name = {_name(match): min(at, end) for match, at in detected.matches}
    return Instants(
        {match: by_name[_name(match)] for match in matches}, {row: min(at, end) for row, at in detected.unmatched}
    )


def _name(match: Match) -> _Found:
    return match.start, match.matched


def _named(certain: Certain) -> dict[_Found, Match | int]:
    return {_name(match): match for match in certain.matches} | {row: row for row in certain.unmatched}


def _add(
    found: dict[_Found, tuple[Match | int, int]], before: set[_Found], new: Mapping[_Found, Match | int], at: int
) -> None:
    for name, what in new.items():
        if name not in before:
            found.setdefault(name, (what, at))


class _Stretches:
    """Adds to `found` what becomes certain in stretches of time, each after the one before. What is certain stays so,
    whatever comes: a stretch at whose end nothing is new is looked at there alone, and any other one in halves.
    """

    def __init__(
        self,
        certainty: Certainty,
        partition: Partition,
        before: set[_Found],
        found: dict[_Found, tuple[Match | int, int]],
    ) -> None:
        self.certainty, self.partition, self.before, self.found = certainty, partition, before, found
        self.known = partition.first(0)

    def through(self, segments: Sequence[_Segment], standing: Standing) -> Standing:
        """The standing at the end of these segments, where this is the one before them."""
        end = segments[-1][1]
        last = self._at(end, standing)
        new = {name: what for name, what in _named(last).items() if name not in self.found and name not in self.before}
        if not new:
            return last.standing
        # Nothing is certain before its rows are known.
        since = min(map(self._last_row, new.values()))
        segments = [segment for segment in segments if segment[1] >= since]
        if segments == [(end, end)]:
            _add(self.found, self.before, new, end)
            return last.standing
        for half in _halves(segments):
            standing = self.through(half, standing)
        return standing

    def _last_row(self, what: Match | int) -> int:
        """The instant of the last row of a match, or of a row of no match."""
        if isinstance(what, Match):
            return self.partition.times[what.matched[-1][0] if what.matched else what.start]
        return self.partition.times[what]

    def _at(self, until: int, standing: Standing) -> Certain:
        self.known.become_first(self.partition, bisect_right(self.partition.times, until))
        return self.certainty.of_all(self.known, until, standing)


def _halves(segments: Sequence[_Segment]) -> tuple[Sequence[_Segment], Sequence[_Segment]]:
    """Segments in two halves, or the halves of a single one."""
    if len(segments) > 1:
        middle = len(segments) // 2
        return segments[:middle], segments[middle:]
    ((low, high),) = segments
    middle = (low + high) // 2
    return [(low, middle)], [(middle + 1, high)]


def _segments(partition: Partition, since: int | None, until: int | None, span: int) -> Iterator[_Segment]:
    """The stretches of time in each of which the known rows are the same, from their first instant to their last. The
    first instant is one of its own: most often it is the one that decides.
    """
    times: Sequence[int] = sorted(set(partition.times))
    if not times:
        return
    last = times[-1] + span if until is None else until
    begins = [time for time in times if (since is None or time > since) and time <= last]
    if since is not None and since < last and (since + 1 not in begins):
        begins.insert(0, since + 1)
    if not begins:
        return
    for begin, following in zip(begins, [*begins[1:], last + 1], strict=True):
        yield begin, begin
        if begin + 1 < following:
            yield begin + 1, following - 1
