"""Every match of which nothing to come can change that it is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Transition
from tidegate.algebra.ordered.sequences.certainty.chain import Certain, Standing, measured
from tidegate.algebra.ordered.sequences.certainty.continuations import Beginning, Continuations
from tidegate.algebra.ordered.sequences.certainty.leaves import Leaves
from tidegate.algebra.ordered.sequences.certainty.possible import Known, Verdict
from tidegate.algebra.ordered.sequences.certainty.zone import ZERO, Zone
from tidegate.algebra.ordered.sequences.meaning import Match
from tidegate.algebra.ordered.sequences.navigation import RowOf
from tidegate.algebra.ordered.sequences.partition import Matched
from tidegate.algebra.ordered.sequences.pattern import Absence

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.definition import EveryMatch


@dataclass(frozen=True, slots=True)
class Run:
    """A match of known rows, or the beginning of one. `absences`: each with how many of the rows stand before it.
    `decided`: nothing of it depends on rows to come.
    """

    state: int
    matched: Matched
    absences: tuple[tuple[Absence, int], ...] = ()
    excluded: frozenset[int] = frozenset()
    decided: bool = True


def every_at(known: Known, standing: Standing, selection: EveryMatch) -> Certain:
    """What is certain of every match: those of known rows of which all is decided. The standing begins at the first
    row at which one may begin that is not.
    """
    of = (
        _Contiguous(known)
        if selection.skipping == "contiguous"
        else Skipping(known, till_next=selection.skipping == "next")
    )
    found: dict[Matched, Match] = {}
    begin = None
    for start in range(standing.begin, known.count):
        for run in of.runs(start):
            match = Match(start, run.matched, run.excluded)
            if run.decided and measured(known, match):
                found.setdefault(run.matched, match)
            elif begin is None:
                begin = start
        if begin is None and of.goes_on(start):
            begin = start
    return Certain(tuple(found.values()), (), Standing(known.count if begin is None else begin, whole=known.whole))


class _Contiguous:
    """Runs of rows that follow each other."""

    def __init__(self, known: Known) -> None:
        self.leaves = Leaves(known, every=True)
        self.open = False

    def runs(self, start: int) -> Iterator[Run]:
        self.open = False
        for leaf in self.leaves.of(start):
            if leaf.more:
                self.open = True
            elif leaf.matched:
                yield Run(BEGIN, leaf.matched, (), leaf.excluded, leaf.accepted)

    def goes_on(self, _start: int) -> bool:
        """Whether there may be more runs of the start that was looked at last."""
        return self.open


class Skipping:
    """Runs with rows between that are skipped; `till_next`: none that could have gone on with the run."""

    def __init__(self, known: Known, *, till_next: bool) -> None:
        self.known, self.prepared, self.till_next = known, known.prepared, till_next
        self.states = self.prepared.automaton.states
        self.has_limit = self.prepared.node.per_start is not None

    def runs(self, start: int) -> Iterator[Run]:
        waiting = [run for way in self.states[BEGIN].transitions for run in self._with(Run(BEGIN, ()), way, start)]
        while waiting:
            run = waiting.pop()
            ways = self.states[run.state].transitions
            for way in ways:
                if way.to is None and (ended := self._ended(run, way)) is not None:
                    yield ended
            skipping = run
            for at in range(run.matched[-1][0] + 1, self.known.count):
                if self.has_limit and not self._may_go_on(run, at):
                    break
                waiting += [longer for way in ways for longer in self._with(skipping, way, at)]
                verdict = self.fits(run.matched, at) if self.till_next else "none"
                if verdict == "one":
                    break
                if verdict == "open":
                    skipping = Run(run.state, run.matched, run.absences, run.excluded, decided=False)

    def _with(self, run: Run, way: Transition, at: int) -> Iterator[Run]:
        """The run with a row more, if that can have the state."""
        if way.to is None:
            return
        to = self.states[way.to]
        matched = (*run.matched, (at, to.variable))
        outcomes = self.known.outcomes(to.variable, at, matched)
        if True in outcomes:
            absences = (*run.absences, *((absence, len(run.matched)) for absence in way.absences))
            excluded = run.excluded | {at} if to.excluded else run.excluded
            longer = Run(way.to, matched, absences, excluded, run.decided and outcomes == {True})
            if not self.has_limit or self._may_end(longer):
                yield longer

    def _may_end(self, run: Run) -> bool:
        """Whether a run is a match or may become one, as far as limits and known rows say. A limit of the matches that
        begin with one row bounds such runs, and no others.
        """
        if any(self._absent(absence, before, run.matched) == "one" for absence, before in run.absences):
            return False
        return self._meetable(run.matched[-1][0]).meets(run.state, run.matched)

    def _may_go_on(self, run: Run, at: int) -> bool:
        """Whether rows from a place on may go on with a run, as far as limits say."""
        return next(self._meetable(at).matches(Beginning(run.state, run.matched)), None) is not None

    def _meetable(self, at: int) -> _Meetable:
        return _Meetable(self.known, self.known.partition.times[at])

    def _ended(self, run: Run, way: Transition) -> Run | None:
        """The run as a match, if it can be one."""
        known, matched = self.known, run.matched
        if not all(known.partition.keeps(limit, matched) for limit in self.prepared.node.limits):
            return None
        verdicts = {self._absent(absence, before, matched) for absence, before in run.absences}
        verdicts |= {known.after(absence, matched) for absence in way.absences}
        if "one" in verdicts:
            return None
        return Run(run.state, matched, (), run.excluded, run.decided and "open" not in verdicts)

    def _absent(self, absence: Absence, before: int, matched: Matched) -> Verdict:
        if not before:
            return self.known.before(absence, matched)
        times, since, within = self.known.partition.times, matched[before - 1][0], absence.within
        between = range(since + 1, matched[before][0])
        places = [at for at in between if within is None or times[at] - times[since] <= within]
        return self.known.absent(absence, places, matched)

    def fits(self, begun: Matched, at: int) -> Verdict:
        """Whether a row could go on with the beginning of a match, whatever way that has taken: "one" if so."""
        verdict: Verdict = "none"
        labels = [variable for _, variable in begun]
        following = {
            way.to for state in self.prepared.automaton.after(labels) for way in self.states[state].transitions
        }
        for state in following - {None}:
            assert state is not None
            matched = (*begun, (at, self.states[state].variable))
            outcomes = self.known.outcomes(self.states[state].variable, at, matched)
            if True in outcomes and self._meetable(at).meets(state, matched):
                if outcomes == {True}:
                    return "one"
                verdict = "open"
        return verdict

    def goes_on(self, start: int) -> bool:
        """Whether a run that begins here could go on with rows to come."""
        if self.known.until is None:
            return False
        alive = _Alive(self.known, self.known.partition.times[start])
        for way in self.states[BEGIN].transitions:
            for run in self._with(Run(BEGIN, ()), way, start):
                if next(alive.matches(Beginning(run.state, run.matched)), None) is not None:
                    return True
        return False


class _Meetable(Continuations):
    """Continuations by any rows at all: only the limits count."""

    def meets(self, state: int, matched: Matched) -> bool:
        """Whether the limits can be kept by a match that begins with these rows, and is in a state."""
        if self.prepared.automaton.states[state].ends and self.limited(matched, Zone(self.least)) is not None:
            return True
        return next(self.matches(Beginning(state, matched)), None) is not None

    def can_hold(self, variable: str, place: int, matched: Matched) -> bool:
        return True

    def reads(self, row: RowOf) -> bool:
        return False


class _Alive(Continuations):
    """Continuations by rows that lie anywhere behind the first, the last of them to come. More than there are."""

    def can_hold(self, variable: str, place: int, matched: Matched) -> bool:
        return True

    def reads(self, row: RowOf) -> bool:
        return not row.step

    def limited(self, matched: Matched, zone: Zone) -> Zone | None:
        later = zone.within(ZERO, matched[-1][0], -self.known.next)
        return None if later is None else super().limited(matched, later)
