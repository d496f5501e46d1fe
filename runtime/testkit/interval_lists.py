"""Lists of restrictions of interval ends as the executions of ISEQ need them: closed, with their longest orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.time import INF
from tidegate.analysis.ordered.match.detection import detection_of
from tidegate.analysis.ordered.match.restrictions import closed

#: An end of a role: twice the role's number for its start, one more for its end.
End = int


@dataclass(frozen=True)
class IntervalList:
    """Roles of a sequence, the name of what fills each, and bounds of differences of their ends.

    `most[v][u]` bounds u − v for two ends, without which there is none; it is closed, with the window in it. Role i
    has the ends 2i and 2i + 1.
    """

    roles: tuple[str, ...]
    most: tuple[tuple[int | None, ...], ...]
    within: int

    def before(self, earlier: End, later: End) -> bool:
        """Whether one end is before another one, in each combination."""
        bound = self.most[later][earlier]
        return bound is not None and bound < 0

    def fit(self, first: tuple[int, int, int], second: tuple[int, int, int]) -> bool:
        """Whether two intervals, each with its role, keep the bounds between them."""
        (i, start, end), (j, other_start, other_end) = first, second
        (a, b), (c, d), (e, f), (g, h) = self._between[i][j]
        return (
            a <= start - other_start <= b
            and c <= start - other_end <= d
            and e <= end - other_start <= f
            and g <= end - other_end <= h
        )

    @cached_property
    def _between(self) -> list[list[list[tuple[float, float]]]]:
        """The least and greatest difference of each end of one role and each end of another."""
        roles, ends = range(len(self.roles)), (0, 1)
        return [[[self._span(2 * i + x, 2 * j + y) for x in ends for y in ends] for j in roles] for i in roles]

    def _span(self, u: End, v: End) -> tuple[float, float]:
        """Between what the difference u − v of two ends lies."""
        most, least = self.most[v][u], self.most[u][v]
        return -INF if least is None else -least, INF if most is None else most

    def lasts(self, role: int, ticks: int) -> bool:
        """Whether an interval of a role may last so long: also less than the window."""
        most, least = self.most[2 * role][2 * role + 1], self.most[2 * role + 1][2 * role]
        return (most is None or ticks <= most) and (least is None or -ticks <= least)

    @cached_property
    def ordered_ends(self) -> tuple[End, ...]:
        """The longest path of ends that are before each other, of those at which intervals end."""
        return self._longest(tuple(range(1, 2 * len(self.roles), 2)), lambda _a, _b: 1)

    @cached_property
    def ordered_points(self) -> tuple[End, ...]:
        """The longest path of ends of either kind. From the start to the end of one interval is no step."""
        return self._longest(tuple(range(2 * len(self.roles))), lambda a, b: int(a // 2 != b // 2))

    def _longest(self, ends: Sequence[End], step: Callable[[End, End], int]) -> tuple[End, ...]:
        best: dict[End, tuple[int, tuple[End, ...]]] = {}

        def to(end: End) -> tuple[int, tuple[End, ...]]:
            if end not in best:
                paths: list[tuple[int, tuple[End, ...]]] = [(0, (end,))]
                for other in ends:
                    if other != end and self.before(other, end):
                        steps, path = to(other)
                        paths.append((steps + step(other, end), (*path, end)))
                best[end] = max(paths, key=lambda found: found[0])
            return best[end]

        return max(map(to, ends), key=lambda found: found[0])[1]


def interval_list(node: Match) -> IntervalList:
    """The list of an interval sequence; `QueryError` TG114 for one with alternatives, or that nothing can match."""
    whole = closed(node)
    if whole is None or node.within is None:
        raise QueryError("TG114", "the executions of ISEQ are for lists without alternatives", hint="use tg.iseq alone")
    ends = [name for symbol in detection_of(node).symbols for name in (symbol.ts, symbol.te)]
    most = tuple(
        tuple(None if (c := whole.distance(("a", w), ("a", v))) == float("inf") else int(c) for v in ends) for w in ends
    )
    return IntervalList(node.symbols, most, node.within + 1)


def list_of(sequence: Relation) -> tuple[IntervalList, dict[str, list[str]]]:
    """The list of an interval sequence, and by the name of each of its roles all that the same intervals fill;
    `QueryError` TG114 as `interval_list`.
    """
    node = getattr(sequence, "_node", None)
    if not isinstance(node, Match):
        raise QueryError(
            "TG114", f"{shown(sequence)} is no interval sequence", hint="give tg.iseq(A.ts < B.ts, of=(A, B), within=9)"
        )
    of = dict(zip(node.symbols, node.situations, strict=True))
    roles = {name: [role for role, other in of.items() if other is situation] for name, situation in of.items()}
    return interval_list(node), roles
