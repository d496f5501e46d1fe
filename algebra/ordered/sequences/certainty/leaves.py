"""What can become of a match that begins at a row, in order of preference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Transition
from tidegate.algebra.ordered.sequences.certainty.continuations import Beginning, Continuations, Undecided
from tidegate.algebra.ordered.sequences.certainty.possible import Known
from tidegate.algebra.ordered.sequences.meaning import resumes
from tidegate.algebra.ordered.sequences.partition import Matched
from tidegate.algebra.ordered.sequences.pattern import Absence


@dataclass(frozen=True, slots=True)
class Leaf:
    """A match, or what may become one: its known rows, and where the search can go on after it; a row to come is the
    one with the place behind the known ones. `accepted`: it is a match whatever comes. `more`: with rows to come.
    """

    matched: Matched
    excluded: frozenset[int]
    accepted: bool
    resumes: frozenset[int]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """The beginning of a match of known rows that follow each other."""

    state: int
    at: int
    matched: Matched = ()
    excluded: frozenset[int] = frozenset()
    leading: tuple[Absence, ...] = ()
    undecided: tuple[Undecided, ...] = ()


class Leaves:
    """The leaves of rows at which matches are looked for. `every`: also those that nothing distinguishes from a
    preferred one.
    """

    def __init__(self, known: Known, *, every: bool = False) -> None:
        self.known, self.prepared, self.every = known, known.prepared, every
        self.continuations = None if known.until is None else Continuations(known, known.next)

    def of(self, start: int) -> Iterator[Leaf]:
        """The leaves of a start, the preferred first."""
        states = self.prepared.automaton.states
        seen: dict[tuple[int, int], Path | set[object]] = {}
        begin = Path(BEGIN, start)
        waiting = [(begin, way) for way in reversed(states[BEGIN].transitions)]
        while waiting:
            path, way = waiting.pop()
            if "start" in way.anchors and not (path.at == 0 and self.known.whole):
                continue
            if way.to is None:
                yield from self._end(start, path, way)
            elif path.at < self.known.count:
                longer = self._longer(path, way, way.to)
                if longer is not None and (self.every or self._is_new(longer, seen)):
                    waiting += [(longer, further) for further in reversed(states[longer.state].transitions)]
            elif self.continuations is not None and path.matched:
                yield from self._beyond(start, path, way.to, self.continuations)

    def _longer(self, path: Path, way: Transition, state: int) -> Path | None:
        """The path with the next row; None where that row cannot have the state, or a limit is passed for good."""
        variable = self.prepared.automaton.variable(state)
        matched = (*path.matched, (path.at, variable))
        outcomes = self.known.outcomes(variable, path.at, matched)
        if True not in outcomes or self._hopeless(matched):
            return None
        excluded = path.excluded | {path.at} if self.prepared.automaton.states[state].excluded else path.excluded
        leading = path.leading if path.matched else way.absences
        undecided = path.undecided if outcomes == {True} else (*path.undecided, (variable, matched))
        return Path(state, path.at + 1, matched, excluded, leading, undecided)

    def _hopeless(self, matched: Matched) -> bool:
        """Whether a limit is passed that ends at the last row and begins at one that stays."""
        return any(
            limit.later.variable is None
            and limit.later.end == "last"
            and limit.earlier.end == "first"
            and not self.known.partition.keeps(limit, matched)
            for limit in self.prepared.node.limits
        )

    def _is_new(self, path: Path, seen: dict[tuple[int, int], Path | set[object]]) -> bool:
        """Whether no preferred path goes on in the same ways, which is then noted. Of the first path that comes to a
        state with a row, what tells it apart is asked when there is a second one.
        """
        others = seen.setdefault((path.state, path.at), path)
        if others is path:
            return True
        if isinstance(others, Path):
            others = seen[path.state, path.at] = {self._alike(others)}
        count = len(others)
        others.add(self._alike(path))
        return len(others) > count

    def _alike(self, path: Path) -> object:
        return self.prepared.registers(path.matched), path.leading, path.undecided

    def _end(self, start: int, path: Path, way: Transition) -> Iterator[Leaf]:
        """The leaf of a match of known rows alone."""
        known, matched = self.known, path.matched
        at_end = path.at == known.count
        if "end" in way.anchors and not at_end:
            return
        if not all(known.partition.keeps(limit, matched) for limit in self.prepared.node.limits):
            return
        verdicts = set[str]()
        if matched:
            verdicts = {known.before(absence, matched) for absence in path.leading}
            verdicts |= {known.after(absence, matched) for absence in way.absences}
        if "one" in verdicts:
            return
        if path.undecided and self.continuations is not None and self.continuations.beginning(path.undecided) is None:
            return
        ends = "end" not in way.anchors or known.until is None
        accepted = ends and not path.undecided and "open" not in verdicts
        yield Leaf(matched, path.excluded, accepted, frozenset((self._resumes(start, matched),)))

    def _beyond(self, start: int, path: Path, state: int, continuations: Continuations) -> Iterator[Leaf]:
        """The leaf of all matches that go on with rows to come, the next one in a state."""
        beginning = Beginning(path.state, path.matched, path.undecided, path.leading)
        ends, reads = set[int](), self._skip_variable()
        for matched in continuations.matches(beginning, state):
            ends.add(self._resumes(start, matched))
            if not reads:
                break
        if ends:
            yield Leaf(path.matched, path.excluded, accepted=False, resumes=frozenset(ends), more=True)

    def _skip_variable(self) -> bool:
        skip = getattr(self.prepared.node.selection, "skip", None)
        return skip is not None and skip.variable is not None

    def _resumes(self, start: int, matched: Matched) -> int:
        skip = getattr(self.prepared.node.selection, "skip", None)
        if skip is None:
            return start + 1
        return min(resumes(self.known.partition, skip, start, matched), self.known.count)
