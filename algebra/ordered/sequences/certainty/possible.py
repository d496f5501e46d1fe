"""What conditions of a row pattern can still be, where some of the rows that they read are to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, assert_never

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.formulas import Ceil, Compare, Floor, Greatest, Least, Shift, TemporalTerm, Var
from tidegate.algebra.ordered.events import instant_of
from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN
from tidegate.algebra.ordered.sequences.certainty.counts import MostRows
from tidegate.algebra.ordered.sequences.certainty.prepared import Atom, Prepared
from tidegate.algebra.ordered.sequences.navigation import Classifier, MatchNumber, RowOf, RowsAggregate, RowValue
from tidegate.algebra.ordered.sequences.partition import Matched, Partition
from tidegate.algebra.ordered.sequences.pattern import Absence
from tidegate.algebra.terms import Call, Term, Value
from tidegate.algebra.time import INF, Extended

#: A truth value; None is NULL, and "none" what a condition without a value has, such as 1 / 0 > 1.
Outcome: TypeAlias = bool | Literal["none"] | None
Outcomes: TypeAlias = frozenset[Outcome]
ANY: Final[Outcomes] = frozenset((True, False, None, "none"))
#: Whether no row comes that must not, or no group: it does not, it does, or both may be.
Verdict: TypeAlias = Literal["none", "one", "open"]


@dataclass(frozen=True, slots=True)
class Range:
    """The instants between two ends, which are among them; `null`: there may be none. Of no instant low is INF."""

    low: Extended
    high: Extended
    null: bool = False


class Known:
    """The rows of a partition with instants up to `until`, which are its first ones; None: there are no others.
    Those to come have later instants. `whole`: no rows before these have been dropped.
    """

    def __init__(self, prepared: Prepared, partition: Partition, until: int | None, *, whole: bool = True) -> None:
        self.prepared, self.partition, self.until, self.whole = prepared, partition, until, whole
        self.count = len(partition.rows)

    @property
    def next(self) -> int:
        """The least instant of a row to come."""
        assert self.until is not None
        return self.until + 1

    def knows(self, place: int) -> bool:
        return place < self.count or self.until is None

    def outcomes(self, variable: str, at: int, matched: Matched) -> Outcomes:
        """What the condition of a variable can be at a row, where these rows are matched."""
        condition = self.prepared.conditions.get(variable)
        if condition is None:
            return frozenset((True,))
        if not self.knows(at) and not self._can_come(variable, at, matched):
            return frozenset((False,))
        return combined(condition, lambda part: self._of_atom(self.prepared.atoms[part], at, matched))

    def _can_come(self, variable: str, at: int, matched: Matched) -> bool:
        """Whether a row to come can have a variable, by the number of rows that are known."""
        return not any(self._are_more(most, at, matched) for most in self.prepared.most_rows[variable])

    def _are_more(self, most: MostRows, at: int, matched: Matched) -> bool:
        """Whether there are more rows than that with the one to come, whatever comes before it."""
        counted = (place for place, variable in matched if most.counts(variable))
        return sum(place == at or self.knows(place) for place in counted) > most.most

    def _of_atom(self, atom: Atom, at: int, matched: Matched) -> Outcomes:
        if all(self._reads_known(name, at, matched) for name in atom.names):
            return frozenset((_outcome(self.partition, atom, at, matched),))
        return ANY if atom.comparison is None else self._of_comparison(atom.comparison, matched)

    def _reads_known(self, name: str, at: int, matched: Matched) -> bool:
        """Whether all rows are known that something reads which conditions can name."""
        navigation = self.partition.navigations.get(name)
        match navigation:
            case None:
                return self.knows(at)
            case RowValue(_, _, row):
                place = self.partition.place(row, matched)
                return place is None or self.knows(place)
            case RowsAggregate(_, variables):
                return all(self.knows(place) for place, v in matched if not variables or v in variables)
            case Classifier() | MatchNumber():
                return True
            case _:
                assert_never(navigation)

    def _of_comparison(self, comparison: Compare, matched: Matched) -> Outcomes:
        left, right = self._range(comparison.left, matched), self._range(comparison.right, matched)
        null = left.null or right.null
        if null and isinstance(comparison.source, Call) and comparison.source.op == "eq_null_safe":
            return ANY
        found: set[Outcome] = {None} if null else set()
        if left.low <= left.high and right.low <= right.high:
            found |= _compared(comparison.op, left, right)
        return frozenset(found)

    def _range(self, term: TemporalTerm, matched: Matched) -> Range:
        """The instants that a term can be."""
        match term:
            case Var(name):
                read = self.prepared.instants[name]
                return self._range_of(read.row, read.attribute, matched)
            case Shift(inner, by):
                within = self._range(inner, matched)
                return Range(within.low + by, within.high + by, within.null)
            case Floor(inner, unit):
                within = self._range(inner, matched)
                return Range(_rounded(within.low, unit), _rounded(within.high, unit), within.null)
            case Ceil(inner, unit):
                within = self._range(inner, matched)
                return Range(-_rounded(-within.low, unit), -_rounded(-within.high, unit), within.null)
            case Least(terms) | Greatest(terms):
                parts = [self._range(part, matched) for part in terms]
                if any(part.null for part in parts):
                    return Range(-INF, INF, null=True)
                chosen = min if isinstance(term, Least) else max
                return Range(chosen(part.low for part in parts), chosen(part.high for part in parts))
            case _:
                assert_never(term)

    def _range_of(self, row: RowOf, attribute: str, matched: Matched) -> Range:
        place = self.partition.place(row, matched)
        if place is None or place < 0:
            return Range(INF, -INF, null=True)
        if place < self.count:
            value = self.partition.rows[place][self.partition.names.index(attribute)]
            return Range(INF, -INF, null=True) if value is None else Range(instant_of(value), instant_of(value))
        beyond = place > matched[-1][0]
        if attribute == self.prepared.node.time:
            return Range(self.next, INF, null=beyond)
        return Range(-INF, INF, null=True)

    def before(self, absence: Absence, matched: Matched) -> Verdict:
        """Whether a row comes that must not before the first of a match."""
        times, first = self.partition.times, matched[0][0]
        places = [at for at in range(first) if absence.within is None or times[first] - times[at] <= absence.within]
        return self.absent(absence, places, matched)

    def after(self, absence: Absence, matched: Matched) -> Verdict:
        """Whether a row comes that must not after the last of a match, which is known."""
        if not absence.is_group and self._compares_null(absence.variable, matched):
            return "none"
        times, last = self.partition.times, matched[-1][0]
        end = INF if absence.within is None else times[last] + absence.within
        places = [at for at in range(last + 1, self.count) if times[at] <= end]
        verdict = self.absent(absence, places, matched)
        if verdict == "none" and self.until is not None and self.next <= end:
            return "open" if self._come(absence, places, matched, _may_hold, ahead=True) else "none"
        return verdict

    def _compares_null(self, variable: str, matched: Matched) -> bool:
        """Whether the condition of a variable compares a value with one of the match that is NULL."""
        seen = self.partition.seen(matched[-1][0], matched)
        return any(value(seen) is None for value in self.prepared.compared[variable])

    def absent(self, absence: Absence, places: Sequence[int], matched: Matched) -> Verdict:
        """Whether none of the rows at these places, which are known, is one that must not come, or no group of them."""
        if not self._come(absence, places, matched, _may_hold):
            return "none"
        return "one" if self._come(absence, places, matched, _holds) else "open"

    def _come(
        self,
        absence: Absence,
        places: Sequence[int],
        matched: Matched,
        accepts: Callable[[Outcomes], bool],
        *,
        ahead: bool = False,
    ) -> bool:
        """Whether rows at these places, in order, are those that must not come, where outcomes of their conditions are
        accepted. `ahead`: the last ones may be to come.
        """
        states, seen = self.prepared.absent[absence.part].states, set[object]()
        waiting: list[tuple[int, Matched]] = [(BEGIN, ())]
        while waiting:
            state, rows = waiting.pop()
            for to in (way.to for way in states[state].transitions if way.to is not None):
                for at in self._next_places(places, rows, ahead=ahead):
                    longer = (*rows, (at, states[to].variable))
                    if not accepts(self.outcomes(states[to].variable, at, (*matched, *longer))):
                        continue
                    if states[to].ends:
                        return True
                    alike = to, at, self.prepared.registers((*matched, *longer))
                    if alike not in seen:
                        seen.add(alike)
                        waiting.append((to, longer))
        return False

    def _next_places(self, places: Sequence[int], rows: Matched, *, ahead: bool) -> Iterator[int]:
        """Where the next of some rows may be. Of those to come it is the very next one, or one behind that, of which
        rows before are to come, too.
        """
        last = rows[-1][0] if rows else -1
        yield from (at for at in places if at > last)
        if ahead:
            begin = max(self.count, last + 1)
            yield from range(begin, begin + self.prepared.back + 1)


def combined(condition: Term, of_part: Callable[[Term], Outcomes]) -> Outcomes:
    """What a condition can be: outcomes of its parts combined in every way, as if they did not depend on each other."""
    match condition:
        case Call("and", args):
            return _fold(_and, (combined(arg, of_part) for arg in args))
        case Call("or", args):
            return _fold(_or, (combined(arg, of_part) for arg in args))
        case Call("not", (arg,)):
            return frozenset(map(_not, combined(arg, of_part)))
        case _:
            return of_part(condition)


def _holds(outcomes: Outcomes) -> bool:
    return outcomes == {True}


def _may_hold(outcomes: Outcomes) -> bool:
    return True in outcomes


def _outcome(partition: Partition, atom: Atom, at: int, matched: Matched) -> Outcome:
    try:
        return _truth(atom.value(partition.seen(at, matched)))
    except EvaluationError:
        return "none"


def _truth(value: Value) -> Outcome:
    assert value is None or isinstance(value, bool)
    return value


def _fold(combine: Callable[[Outcome, Outcome], Outcome], parts: Iterable[Outcomes]) -> Outcomes:
    total: Outcomes | None = None
    for part in parts:
        total = part if total is None else frozenset(combine(left, right) for left in total for right in part)
    assert total is not None
    return total


def _and(left: Outcome, right: Outcome) -> Outcome:
    """As conditions are evaluated: from left to right, up to the first that is false or has no value."""
    for part in (left, right):
        if part is False or part == "none":
            return part
    return None if left is None or right is None else True


def _or(left: Outcome, right: Outcome) -> Outcome:
    for part in (left, right):
        if part is True or part == "none":
            return part
    return None if left is None or right is None else False


def _not(part: Outcome) -> Outcome:
    return not part if isinstance(part, bool) else part


def _rounded(instant: Extended, unit: int) -> Extended:
    return instant // unit * unit if isinstance(instant, int) else instant


def _compared(op: str, left: Range, right: Range) -> set[Outcome]:
    """What a comparison of two instants of these ranges can be."""
    match op:
        case "<":
            can, must = left.low < right.high, left.high < right.low
        case "<=":
            can, must = left.low <= right.high, left.high <= right.low
        case ">" | ">=":
            return _compared("<" if op == ">" else "<=", right, left)
        case "=" | "!=":
            can = left.low <= right.high and right.low <= left.high
            must = left.low == left.high == right.low == right.high
            return _either(can, must) if op == "=" else _either(not must, not can)
        case _:
            raise AssertionError(op)
    return _either(can, must)


def _either(can: bool, must: bool) -> set[Outcome]:
    found = set[Outcome]()
    if can:
        found.add(True)
    if not must:
        found.add(False)
    return found
