"""The partner rule: a row that has no partner in some other occurrence, and can get none, is dead in a zone (rule
R21).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import FALSE, Attr, Lit, Term, call, conjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import MAX_SHIFT, DataType
from tidegate.analysis.progress.pass_ import above
from tidegate.analysis.state.origins import Sources
from tidegate.analysis.zones.zone import NONE, Variable, Zone, reduced

Progress = Mapping[tuple[str, str], Extended]
#: How the columns of the other row of a pair are called where both stand side by side.
Naming = Callable[[str], str]
#: Attributes of which a row says no more than between what they lie, each with the column that holds the least.
Least = Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Partner:
    """The constraints of a zone between a row of `occurrence` and one of `counterpart` that matter to a result row
    together.

    `after` holds (x, y, c): the other's `y <= x + c`; `before` (y, x, c): the own `x <= y + c`; `keys` pairs of
    attributes with equal values. `ahead` holds `d(x, y)` for the y on which the other stream progresses, `begun`
    d(x, y) for the start y of its intervals, if it tells when they begin.
    """

    occurrence: int
    counterpart: int
    streams: tuple[StreamDef, StreamDef]
    after: tuple[tuple[str, str, int], ...]
    before: tuple[tuple[str, str, int], ...]
    keys: tuple[tuple[str, str], ...]
    ahead: tuple[tuple[str, str, int], ...]
    begun: tuple[tuple[str, int], ...] = ()

    def may_come(self, b: Progress, *, told: bool = False) -> Term:
        """Whether a partner may still arrive: for all progressing y, `min over x of (r.x + d(x, y)) > b_y`.

        `told`: of intervals that have begun it is known which may; others begin later than the ends that have come.
        """
        schema = self.streams[0].schema
        limits = self.limits(b, told=told)
        return FALSE if limits is None else conjunction([above(Attr(x), schema[x].type, limit) for x, limit in limits])

    def limits(self, b: Progress, *, told: bool = False) -> list[tuple[str, Extended]] | None:
        """The own instants x, each with what it has to be above for `may_come`; None where no partner comes."""
        other = self.streams[1]
        if any(b[other.name, y] == INF for y in other.progress):
            return None
        limits: list[tuple[str, Extended]] = [(x, b[other.name, y] - d) for x, y, d in self.ahead]
        if told:
            assert other.begins is not None
            limits += [(x, b[other.name, other.begins.end] - d) for x, d in self.begun]
        return limits

    def holds(
        self, named: Naming, columns: tuple[frozenset[str], frozenset[str]], least: tuple[Least, Least] = ({}, {})
    ) -> Term:
        """Whether two rows are partners, over the own columns and the other's as `named`; keys only where both are
        stored.

        An attribute in `least`, the own one or the other's, is not known: it lies between the column that stands there
        and its own.
        """
        schema, other = (stream.schema for stream in self.streams)
        own_least, other_least = least
        parts: list[Term] = [
            call("eq_null_safe", Attr(a), Attr(named(b))) for a, b in self.keys if a in columns[0] and b in columns[1]
        ]
        parts += [
            call("le", Attr(named(other_least.get(y, y))), plus(Attr(x), c, schema[x].type)) for x, y, c in self.after
        ]
        parts += [
            call("le", Attr(own_least.get(x, x)), plus(Attr(named(y)), c, other[y].type)) for y, x, c in self.before
        ]
        return conjunction(parts)

    def has_keys(self, columns: tuple[frozenset[str], frozenset[str]]) -> bool:
        """Whether `holds` asks for equal keys."""
        return any(a in columns[0] and b in columns[1] for a, b in self.keys)

    def window(self) -> Extended:
        """How long after its own instants a row waits at most for a first partner, while streams run side by side."""
        progress = self.streams[0].progress
        waits = [(x, d) for x, _, d in self.ahead] + list(self.begun)
        return min((d for x, d in waits if x in progress), default=INF)


def partner(zone: Zone, sources: Sources, occurrence: int, counterpart: int) -> Partner:
    """The constraints of the zone on a pair of occurrences, neither of which it ignores.

    Of the distances between the two rows only those stay that do not follow from the others.
    """
    streams = (sources.streams[occurrence], sources.streams[counterpart])
    names = [(k, name) for k, stream in enumerate(streams) for name in stream.schema.temporal]
    variables: list[Variable] = [("x", (occurrence, counterpart)[k], name) for k, name in names]
    matrix = zone.view(variables)
    after: list[tuple[str, str, int]] = []
    before: list[tuple[str, str, int]] = []
    for w, v, c in reduced(matrix):
        if abs(c) <= MAX_SHIFT and names[w][0] != names[v][0]:
            (after if names[w][0] == 0 else before).append((names[w][1], names[v][1], c))
    ahead = tuple(
        (x, y, int(matrix[w, v]))
        for w, (k, x) in enumerate(names)
        for v, (m, y) in enumerate(names)
        if (k, m) == (0, 1) and y in streams[1].progress and matrix[w, v] < NONE
    )
    start = None if streams[1].begins is None else streams[1].begins.start
    begun = tuple(
        (x, int(matrix[w, v]))
        for w, (k, x) in enumerate(names)
        for v, (m, y) in enumerate(names)
        if (k, m) == (0, 1) and y == start and matrix[w, v] < NONE
    )
    return Partner(
        occurrence,
        counterpart,
        streams,
        tuple(after),
        tuple(before),
        sources.keys(occurrence, counterpart, zone.ignored),
        ahead,
        begun,
    )


def plus(term: Term, c: int, type_: DataType) -> Term:
    """An instant of this type, plus a number of ticks."""
    return term if c == 0 else call("add", term, Lit(c, type_.distance))
