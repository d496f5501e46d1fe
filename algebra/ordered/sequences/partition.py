"""The rows of one partition, and what conditions and measures read of them when some rows are matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, assert_never

from tidegate.algebra.evaluation import EvaluationError, Evaluator, evaluator
from tidegate.algebra.nodes import Aggregation, Row
from tidegate.algebra.ordered.events import instant_of
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
)
from tidegate.algebra.terms import Term, Value
from tidegate.algebra.typed.operations import resolve

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.definition import Limit, Point
    from tidegate.algebra.ordered.sequences.node import Sequences

#: A row of a match: its place in the partition, and its variable.
MatchedRow: TypeAlias = tuple[int, str]
Matched: TypeAlias = tuple[MatchedRow, ...]


class Partition:
    """The rows of one partition of a node, in order; or the last of them, where the others matter no more."""

    def __init__(self, node: Sequences, rows: Sequence[Row], aggregation: Aggregation) -> None:
        self.node, self.rows, self.aggregation = node, list(rows), aggregation
        names = node.input.schema.names
        self.names = names
        self.times = [instant_of(row[names.index(node.time)]) for row in rows]
        self.navigations = {navigation.name: navigation for navigation in node.navigations}
        read = node.condition_schema()
        self._conditions = {d.variable: evaluator(resolve(d.condition, read)) for d in node.definitions}
        self._measures = [(m, evaluator(resolve(m.term, read))) for m in node.measures]
        self._arguments: dict[Term, Evaluator] = {
            n.argument: evaluator(resolve(n.argument, node.input.schema))
            for n in node.navigations
            if isinstance(n, RowValue)
        }

    def first(self, count: int) -> Partition:
        """The first rows of the partition, without those behind them."""
        shorter = copy(self)
        shorter.rows, shorter.times = self.rows[:count], self.times[:count]
        return shorter

    def become_first(self, of: Partition, count: int) -> None:
        """Takes on the first rows of another partition, of which it has some of the first ones, or lets rows go."""
        more = slice(len(self.rows), count)
        self.rows += of.rows[more]
        self.times += of.times[more]
        del self.rows[count:], self.times[count:]

    def after(self, count: int) -> Partition:
        """The partition without its first rows."""
        shorter = copy(self)
        shorter.rows, shorter.times = self.rows[count:], self.times[count:]
        return shorter

    def holds(self, variable: str, at: int, matched: Matched) -> bool:
        """Whether the row at a place satisfies the condition of a variable. `matched` are the rows of the match that
        the condition sees. A condition that has no value, such as 1 / 0 > 1, is not satisfied.
        """
        condition = self._conditions.get(variable)
        return condition is None or _lenient(condition, self.seen(at, matched)) is True

    def seen(self, at: int, matched: Matched) -> Mapping[str, Value]:
        """What conditions can name, at a row where these rows are matched."""
        return _Seen(self, at, matched, matched, 0)

    def measures(self, matched: Matched, whole: Matched, number: int) -> tuple[Value, ...]:
        """The measures at the last of these rows of a match, of which `whole` are all; NULL where one has no value."""
        seen = _Seen(self, matched[-1][0] if matched else None, matched, whole, number)
        return tuple(_lenient(measure, seen) for _, measure in self._measures)

    def value(self, navigation: Navigation, matched: Matched, whole: Matched, number: int) -> Value:
        """What a navigation yields where these rows are matched, of the rows of a match as far as they are known."""
        match navigation:
            case RowValue(_, argument, row):
                at = self.place(row, matched)
                if at is None or not 0 <= at < len(self.rows):
                    return None
                return self._arguments[argument](dict(zip(self.names, self.rows[at], strict=True)))
            case Classifier(_, row):
                at = self.place(row, matched)
                return next((variable for place, variable in whole if place == at), None)
            case RowsAggregate(aggregate, variables):
                members = [self.rows[place] for place, variable in matched if not variables or variable in variables]
                return self.aggregation(aggregate.lenient(), members, self.node.input.schema)
            case MatchNumber():
                return number
            case _:
                assert_never(navigation)

    def place(self, row: RowOf, matched: Matched) -> int | None:
        """The place of a row in the partition, which may be beyond its ends; None where the match has no such row."""
        rows = matched if row.end == "first" else reversed(matched)
        places = (place for place, variable in rows if not row.variables or variable in row.variables)
        place = next(islice(places, row.offset, None), None)
        return None if place is None else place + row.step

    def place_of(self, point: Point, matched: Matched) -> int | None:
        """The place of a point of a match; None where it has no such row."""
        variables = () if point.variable is None else self.node.resolved(point.variable)
        return self.place(RowOf(variables, point.end), matched)

    def keeps(self, limit: Limit, matched: Matched) -> bool:
        """Whether a match keeps within a limit."""
        later, earlier = self.place_of(limit.later, matched), self.place_of(limit.earlier, matched)
        return later is None or earlier is None or self.times[later] - self.times[earlier] <= limit.most


@dataclass(frozen=True, slots=True, eq=False)
class _Seen(Mapping[str, Value]):
    """What a condition or a measure reads, by name: of the row at a place, and of these rows of a match."""

    partition: Partition
    at: int | None
    matched: Matched
    whole: Matched
    number: int

    def __getitem__(self, name: str) -> Value:
        navigation = self.partition.navigations.get(name)
        if navigation is None:
            row = None if self.at is None else self.partition.rows[self.at]
            return None if row is None else row[self.partition.names.index(name)]
        final = not isinstance(navigation, MatchNumber) and navigation.final
        return self.partition.value(navigation, self.whole if final else self.matched, self.whole, self.number)

    def __iter__(self) -> Iterator[str]:
        return iter((*self.partition.names, *self.partition.navigations))

    def __len__(self) -> int:
        return len(self.partition.names) + len(self.partition.navigations)


def _lenient(evaluate: Evaluator, seen: Mapping[str, Value]) -> Value:
    try:
        return evaluate(seen)
    except EvaluationError:
        return None
