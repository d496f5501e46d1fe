"""The partner rule and the kill rule: what frees rows before keep does, zone by zone, and where that pays (R21 to
R23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from tidegate.algebra.terms import Term
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import QueryFacts
from tidegate.analysis.federation.views import MAX_VIEWS, Necessary, View, declared_matrix, necessary
from tidegate.analysis.progress.propagation import Latencies
from tidegate.analysis.state.keep import keep_condition
from tidegate.analysis.state.kill import Kill, kills
from tidegate.analysis.state.origins import Sources
from tidegate.analysis.state.partner import Partner, partner
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.zone import Matrix, Variable, Zone, is_copy, reduced, rounded

#: Of more streams not every pair is asked for partners: of a hundred, that would be 9,900. An interval sequence that is
#: analysed as one zone has no more (`MOST_ENDS`).
MOST_PAIRED = 32

#: A rule pays where it frees rows at least so many times sooner than keep.
SOONER = 2


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One zone for the rules: the view, partners and killers of each stream occurrence that it does not ignore."""

    views: Mapping[int, tuple[View, Necessary]]
    partners: tuple[Partner, ...]
    kills: tuple[Kill, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Purge:
    """Both rules for a query. Every zone counts, unlike in keep's views, as a zone may demand fewer partners."""

    facts: QueryFacts
    cases: tuple[Case, ...]
    latencies: Latencies

    def keep(self, case: Case, i: int, p: Mapping[str, Extended]) -> Term:
        """Keep of occurrence i in this case alone (rule R14)."""
        return keep_condition(self.facts.occurrences[i].stream, case.views[i][1], p)

    def partners_of(self, i: int) -> tuple[Partner, ...]:
        return tuple(rule for case in self.cases for rule in case.partners if rule.occurrence == i)

    def kills_of(self, i: int) -> tuple[Kill, ...]:
        return tuple(rule for case in self.cases for rule in case.kills if rule.occurrence == i)

    def partner_pays(self, i: int) -> bool:
        """Whether rows without partners go at least SOONER times as early as by keep, over all cases."""
        cases = [case for case in self.cases if i in case.views]
        by_keep = max((self._horizon(case, i) for case in cases), default=-INF)
        with_rule = max((min(self._horizon(case, i), self._window(case, i)) for case in cases), default=-INF)
        return with_rule < by_keep and by_keep >= SOONER * max(with_rule, 0)

    def kill_pays(self, i: int) -> bool:
        """Whether every case has a killer, and rows would wait otherwise."""
        cases = [case for case in self.cases if i in case.views]
        return all(any(kill.occurrence == i for kill in case.kills) for case in cases) and any(
            self._horizon(case, i) > 0 for case in cases
        )

    def _window(self, case: Case, i: int) -> Extended:
        return max(0, min((rule.window() for rule in case.partners if rule.occurrence == i), default=INF))

    def _horizon(self, case: Case, i: int) -> Extended:
        """How long keep lets a row of the case live, while streams run side by side (rule R17)."""
        late = self.latencies.of
        view, _ = case.views[i]
        progress = self.facts.occurrences[i].stream.progress
        return min((late[a] + view.ahead(y, a) for a in view.promised for y in progress), default=INF)


def purge(facts: QueryFacts) -> Purge | None:
    """The rules of a query. None where they free nothing, or where there are too many cases."""
    federation = facts.federation
    streams = [i for i, stream in enumerate(federation.occurrences) if not stream.static]
    if len(streams) < 2 or len(federation.zones) > MAX_VIEWS or facts.is_static:
        return None
    sources = Sources.of(facts.query.node, federation.occurrences)
    declared = {i: declared_matrix(federation, i) for i in streams}
    promised = tuple(facts.propagation)
    cases = []
    for zone in federation.zones:
        speaking = [i for i in streams if i not in zone.ignored]
        views = {i: _view(federation, zone, i, promised, declared[i]) for i in speaking}
        pairs = _related(zone, speaking) if len(speaking) > MOST_PAIRED else permutations(speaking, 2)
        partners = tuple(partner(zone, sources, i, j) for i, j in pairs)
        killers = tuple(kill for i in speaking for kill in kills(sources, zone, i, promised))
        cases.append(Case(views, partners, killers))
    return Purge(facts, tuple(cases), Latencies.among(facts.propagation))


def _related(zone: Zone, occurrences: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of occurrences whose instants the query or a stream relates, in both directions, in order.

    Those between which something is stated, and those of a smallest set of constraints from which all others follow: an
    operator states its constraints of its own attributes, which are hidden here.

    What the others demand follows step by step, if not always as soon; asking fewer partners frees no row too many.
    """
    known, pairs = set(occurrences), set[tuple[int, int]]()
    instants = [row for row in zone.layout.rows if is_copy(row) and row[1] in known]
    stated = [(rounded(edge.w), rounded(edge.v)) for edge in zone.edges]
    followed = [(instants[w], instants[v]) for w, v, _ in reduced(zone.view(instants))]
    for first, second in (*stated, *followed):
        if is_copy(first) and is_copy(second) and first[1] != second[1] and {first[1], second[1]} <= known:
            pairs |= {(first[1], second[1]), (second[1], first[1])}
    return sorted(pairs)


def _view(
    federation: Federation, zone: Zone, i: int, promised: tuple[str, ...], declared: Matrix | None
) -> tuple[View, Necessary]:
    columns = federation.occurrences[i].schema.temporal
    variables: list[Variable] = [*(("x", i, name) for name in columns), *(("a", name) for name in promised)]
    view = View(columns, promised, zone.view(variables), (zone,), i)
    return view, necessary(view, declared)
