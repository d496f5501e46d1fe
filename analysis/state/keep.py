"""Keep: which rows of an occurrence may still matter to results that have not passed (rule R14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import FALSE, TRUE, Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import MAX_SHIFT
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.federation.views import Necessary, View, declared_matrix, necessary, views
from tidegate.analysis.progress.pass_ import above
from tidegate.analysis.state.thresholds import Case, Extents, KnownThresholds, Thresholds, known_thresholds
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.wording import at_most, first_of, shifted
from tidegate.analysis.zones.zone import Variable, hull


@dataclass(frozen=True, slots=True, eq=False)
class Keep:
    """The keep condition of an occurrence, for the query's own progress p of its promised attributes.

    A row r stays iff in some view it can be part of a result row (`r.y - r.x <= d(x, y)` for all x, y) that is yet to
    pass: `min over x of (r.x + d(x, a_j)) > p_j` for every promised a_j. Without a view no row matters.
    """

    stream: StreamDef
    views: tuple[View, ...]
    needed: tuple[Necessary, ...]
    promised: tuple[str, ...]
    known: KnownThresholds = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", known_thresholds(self.stream, self.views, self.needed))

    def at(self, p: Mapping[str, Extended]) -> Thresholds:
        """The condition at some progress; of queries whose names alone differ, one and the same."""
        return self.known.at((progress_of(self.promised, p),), partial(self._at, p))

    def row(self, row: Mapping[str, int], p: Mapping[str, Extended]) -> bool:
        """Whether the row stays, by the definition."""
        return any(fits(view, row) and still_to_pass(view, row, p) for view in self.views)

    def condition(self, p: Mapping[str, Extended]) -> Term:
        """The rule as a condition over the stream's attributes; for rows that keep the stream's relations, the same."""
        return self.at(p).condition

    def segment(self, bounds: Extents, p: Mapping[str, Extended]) -> bool:
        """Whether a segment with these least and greatest values may hold a row that stays; False: it can go whole."""
        return self.at(p).segment(bounds)

    def _at(self, p: Mapping[str, Extended]) -> Thresholds:
        cases = (staying(view, p) for view in self.views)
        build = partial(_condition, self.stream, self.needed, dict(p))
        return Thresholds(tuple(case for case in cases if case is not None), build)

    def describe(self, most: int | None = None) -> str:
        """Until when a row is kept, as text; `p(a)` is the query's progress on a. Of many conditions `most` are
        printed.
        """
        cases = []
        for needed in self.needed:
            parts: list[Callable[[], str]] = [partial(self._within, *within) for within in needed.inner]
            parts += [partial(self._ahead, x, d, a) for a, bounds in needed.ahead for x, d in bounds]
            cases.append(" and ".join(first_of(parts, most, lambda text: text())) if parts else "always")
        if not cases:
            return "never"
        return "always" if "always" in cases else " or ".join(dict.fromkeys(cases))

    def _within(self, x: str, y: str, c: int) -> str:
        return at_most(y, x, c, self.stream.schema[x].type)

    def _ahead(self, x: str, d: int, a: str) -> str:
        return f"{shifted(x, d, self.stream.schema[x].type)} > p({a})"


def keep(federation: Federation, i: int, promised: tuple[str, ...]) -> Keep:
    """The keep condition of occurrence i for a query that promises progress on these attributes."""
    speaking = views(federation, i, promised)
    declared = declared_matrix(federation, i)
    return Keep(federation.occurrences[i], speaking, tuple(necessary(view, declared) for view in speaking), promised)


def kept_of(condition: Keep, part: Node, i: int) -> Term:
    """Which rows that pass a part of the query are kept at some progress: a condition over the stream's attributes,
    TRUE where the part lets no others pass. The stream is the part's occurrence i.
    """
    if any(not needed.inner for needed in condition.needed):
        return TRUE
    try:
        passing = federation(part)
    except QueryError:  # more cases than the whole query had, which a rewrite can make of a condition
        return condition.condition({})
    columns: list[Variable] = [("x", i, name) for name in condition.stream.schema.temporal]
    zones = [zone.view(columns) for zone in passing.zones if i not in zone.ignored]
    known = hull(zones) if zones else None
    needed = dict.fromkeys(necessary(view, known).inner for view in condition.views)
    return disjunction([keep_condition(condition.stream, Necessary(inner, (), ()), {}) for inner in needed])


def fits(view: View, row: Mapping[str, int]) -> bool:
    """Whether the row alone can satisfy the view."""
    return all(row[y] - row[x] <= view.within(x, y) for x in view.columns for y in view.columns)


def still_to_pass(view: View, row: Mapping[str, int], p: Mapping[str, Extended]) -> bool:
    """Whether a result row made of this row can lie above the progress on every promised attribute."""
    return all(
        min((row[x] + view.ahead(x, a) for x in view.columns), default=INF) > p.get(a, -INF) and p.get(a, -INF) != INF
        for a in view.promised
    )


def staying(view: View, p: Mapping[str, Extended]) -> Case | None:
    """`fits` and `still_to_pass` at some progress; None where no row passes any more."""
    beyond: dict[str, Extended] = {}
    for a in view.promised:
        limit = p.get(a, -INF)
        if limit == INF:
            return None
        for x in view.columns:
            beyond[x] = max(beyond.get(x, -INF), limit - view.ahead(x, a))
    inner = ((x, y, view.within(x, y)) for x in view.columns for y in view.columns if x != y)
    return Case(
        tuple((x, limit) for x, limit in beyond.items() if limit != -INF),
        tuple((x, y, c) for x, y, c in inner if c != INF),
    )


def progress_of(promised: tuple[str, ...], p: Mapping[str, Extended]) -> tuple[Extended, ...]:
    """The progress of promised attributes; of one that is missing, -∞."""
    return tuple(p.get(a, -INF) for a in promised)


def segment_may_stay(view: View, bounds: Extents, p: Mapping[str, Extended]) -> bool:
    """Whether a segment may hold a row that stays by this view."""
    case = staying(view, p)
    return case is not None and case.may_hold(bounds)


def greatest(bounds: Extents, x: str) -> Extended:
    """The greatest value of an attribute in a segment, +∞ where it is not known."""
    return bounds[x][1] if x in bounds else INF


def _condition(stream: StreamDef, needed: tuple[Necessary, ...], p: Mapping[str, Extended]) -> Term:
    return disjunction(list(dict.fromkeys(keep_condition(stream, one, p) for one in needed)))


def keep_condition(stream: StreamDef, needed: Necessary, p: Mapping[str, Extended]) -> Term:
    """The keep condition of one view."""
    if any(p.get(a, -INF) == INF for a, _ in needed.ahead):
        return FALSE
    parts: list[Term] = [within_condition(stream, x, y, c) for x, y, c in needed.inner if abs(c) <= MAX_SHIFT]
    parts += [
        above(Attr(x), stream.schema[x].type, p.get(a, -INF) - d) for a, bounds in needed.ahead for x, d in bounds
    ]
    return conjunction(parts)


def within_condition(stream: StreamDef, x: str, y: str, c: int) -> Term:
    """The condition `y <= x + c`."""
    type_ = stream.schema[x].type
    return call("le", Attr(y), Attr(x) if c == 0 else call("add", Attr(x), Lit(c, type_.distance)))
