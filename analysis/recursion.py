"""Recursion to the future: results that depend on earlier rows of their own stream (rules R19 and R20).

A component that reads itself is accepted if every cycle of its dependencies leads to an earlier instant. Its rows
then have a rank that drops by at least a fixed step along every dependency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tidegate.algebra.errors import Problem
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Term, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType
from tidegate.analysis.components import Component
from tidegate.analysis.facts import Instant, QueryFacts, Rank, Recursion
from tidegate.analysis.progress.pass_ import at_most
from tidegate.analysis.progress.propagation import Clause, Propagation
from tidegate.analysis.zones.sites import edge_lines, first_site
from tidegate.analysis.zones.wording import amount, shifted
from tidegate.analysis.zones.wording import at_most as text_at_most
from tidegate.analysis.zones.zone import Edge as Constraint


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A dependency of a result row on a row of the component: `source <= target + distance`, as the clause bounds
    it.
    """

    query: QueryFacts
    attribute: str
    clause: Clause
    source: Instant
    distance: int

    @property
    def target(self) -> Instant:
        return self.query.query.stream, self.attribute


@dataclass(frozen=True, slots=True)
class Standstill:
    """A cycle of dependencies that does not lead to an earlier instant. It refutes a component."""

    cycle: tuple[Edge, ...]


def recursion(component: Component, queries: Sequence[QueryFacts]) -> Recursion | Standstill:
    """The rank of a recursive component, or a cycle that shows that there is none (rule R19).

    Every clause of a promised attribute that speaks of the component's own streams may choose one of its progressing
    attributes; accepted iff some choice makes every cycle of dependencies sum to -1 or less.
    """
    demands = _demands(component, queries)
    chosen = _choose(demands, ())
    if isinstance(chosen, Standstill):
        return chosen
    nodes = list(dict.fromkeys((q.query.stream, a) for q in queries for a in q.propagation))
    gain = -_greatest_mean(nodes, chosen)
    scale, step = gain.denominator, gain.numerator
    potentials = _potentials(nodes, chosen, scale, step)
    taken = {(edge.query.query.name, edge.attribute, edge.clause): edge for edge in chosen}
    single = {q.query.name: {a: _restricted(q, f, taken) for a, f in q.propagation.items()} for q in queries}
    return Recursion(Rank(scale, step, potentials), tuple(queries), single)


def standstill_problem(component: Component, standstill: Standstill) -> Problem:
    """The refusal of a component, with the cycle that does not advance, constraint by constraint."""
    lines: list[str] = []
    for edge in standstill.cycle:
        federation = edge.query.federation
        row = federation.label(edge.clause.zone.layout.rows[edge.clause.zone.layout.attributes[edge.attribute]])
        read = federation.attribute_name(edge.clause.occurrence, edge.source[1])
        lines.append(f"{text_at_most(read, edge.attribute, edge.distance, row.type)}   in {edge.query.query.name}")
        lines += [f"  {line}" for line in edge_lines(edge.query.query, federation, _chain(edge))]
    first = standstill.cycle[0]
    type_ = first.query.output.schema[first.attribute].type
    stream, _ = first.source
    query = standstill.cycle[-1].query
    return Problem(
        "TG210",
        f"not valid: {stream} depends on rows of its own that are not earlier",
        first_site(query.query, _chain(standstill.cycle[-1])) or query.query.site,
        (
            *lines,
            f"together: a row of {stream} may depend on {_reach(sum(e.distance for e in standstill.cycle), type_)}",
        ),
        "tighten one of these bounds, so that every cycle of dependencies leads to an earlier instant",
        query.query.name,
    )


def _reach(total: int, type_: DataType) -> str:
    return f"later ones, by up to {amount(total, type_)}" if total else "others at the same instant, itself among them"


def _chain(edge: Edge) -> tuple[Constraint, ...]:
    return edge.clause.zone.chain(("a", edge.attribute), ("x", edge.clause.occurrence, edge.source[1]))


def _demands(component: Component, queries: Iterable[QueryFacts]) -> list[tuple[Edge, ...]]:
    """The edges for each clause on the component's own streams, of which one is chosen. The most advancing come
    first.
    """
    demands: list[tuple[Edge, ...]] = []
    for query in queries:
        for attribute, function in query.propagation.items():
            for clause in function.clauses:
                if clause.stream in component.streams:
                    edges = [
                        Edge(query, attribute, clause, (clause.stream, y), int(d))
                        for y, d in clause.distances
                        if d != INF
                    ]
                    demands.append(tuple(sorted(edges, key=lambda edge: edge.distance)))
    return sorted(demands, key=len)


def _choose(demands: Sequence[tuple[Edge, ...]], chosen: tuple[Edge, ...]) -> tuple[Edge, ...] | Standstill:
    """One edge per demand such that every cycle advances, by trying; else the first cycle found that does not."""
    if not demands:
        return chosen
    first: Standstill | None = None
    for edge in demands[0]:
        cycle = _standing_cycle((*chosen, edge))
        rest = _choose(demands[1:], (*chosen, edge)) if cycle is None else Standstill(cycle)
        if not isinstance(rest, Standstill):
            return rest
        first = first or rest
    assert first is not None, "every demand has an edge"
    return first


def _standing_cycle(edges: Sequence[Edge]) -> tuple[Edge, ...] | None:
    """A simple cycle through the last edge whose distances sum to 0 or more, in order, that edge last; or None.

    There was none before that edge came, so longest walks from its target are well-defined.
    """
    last = edges[-1]
    best: dict[Instant, tuple[int, tuple[Edge, ...]]] = {last.target: (0, ())}
    for _ in edges:
        changed = False
        for edge in edges[:-1]:
            if edge.source in best and edge.target != last.target:
                total, path = best[edge.source]
                if edge.target not in best or total + edge.distance > best[edge.target][0]:
                    best[edge.target] = (total + edge.distance, (*path, edge))
                    changed = True
        if not changed:
            break
    if last.source not in best or best[last.source][0] + last.distance < 0:
        return None
    return (*best[last.source][1], last)


def _greatest_mean(nodes: Sequence[Instant], edges: Sequence[Edge]) -> Fraction:
    """The greatest mean distance of a cycle (Karp); -1 where there is no cycle."""
    longest: list[dict[Instant, int]] = [dict.fromkeys(nodes, 0)]
    for _ in nodes:
        walks: dict[Instant, int] = {}
        for edge in edges:
            if edge.source in longest[-1]:
                total = longest[-1][edge.source] + edge.distance
                walks[edge.target] = max(total, walks.get(edge.target, total))
        longest.append(walks)
    n = len(nodes)
    means = [
        min(Fraction(total - longest[k][node], n - k) for k in range(n) if node in longest[k])
        for node, total in longest[n].items()
    ]
    return max(means, default=Fraction(-1))


def _potentials(nodes: Sequence[Instant], edges: Sequence[Edge], scale: int, step: int) -> dict[Instant, int]:
    """Numbers with `potential(a) + step <= potential(y) - scale * d` along every edge `y <= a + d` (Bellman and
    Ford).
    """
    potentials = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for edge in edges:
            limit = potentials[edge.source] - scale * edge.distance - step
            potentials[edge.target] = min(potentials[edge.target], limit)
    return potentials


def _restricted(query: QueryFacts, function: Propagation, taken: Mapping[tuple[str, str, Clause], Edge]) -> Propagation:
    """The propagation function in which each clause on the component's own streams has only the chosen edge."""

    def reduced(clause: Clause) -> Clause:
        edge = taken.get((query.query.name, function.attribute, clause))
        return clause if edge is None else replace(clause, distances=((edge.source[1], edge.distance),))

    return replace(function, clauses=tuple(map(reduced, function.clauses)))


def ranks_below(rank: Rank, stream: StreamDef, limit: int) -> Term:
    """Which rows of a stream rank below the limit, as a condition over its attributes."""
    return disjunction([at_most(stream.schema[a], instant) for a, instant in rank.below(stream.name, limit).items()])


def rank_text(rank: Rank, stream: StreamDef) -> str:
    """The rank of a stream's rows as text, such as `min(start, end - 5s)`; of scaled instants in ticks: `2 × t + 1`."""
    terms = []
    for a in stream.progress:
        offset = -rank.potentials[stream.name, a]
        if rank.scale == 1:
            terms.append(shifted(a, offset, stream.schema[a].type))
        else:
            terms.append(f"{rank.scale} × {a}" + (f" {'+' if offset > 0 else '-'} {abs(offset)}" if offset else ""))
    return terms[0] if len(terms) == 1 else f"min({', '.join(terms)})"


def step_text(rank: Rank, stream: StreamDef) -> str:
    """The least difference of ranks, as text."""
    return amount(rank.step, stream.schema[stream.progress[0]].type) if rank.scale == 1 else str(rank.step)


def component_progress(recursion: Recursion, b: Mapping[Instant, Extended]) -> dict[str, dict[str, Extended]]:
    """Progress of a component's queries: the greatest fixpoint of their functions at external progress `b` (rule R20).

    Descends from +∞. Where alternatives let that take more rounds than there are attributes, those that were chosen
    for the rank decide alone, which reach their fixpoint in so many rounds and never promise more.
    """
    functions = {query.query.name: query.propagation for query in recursion.queries}
    reached = _descend(recursion, functions, b) or _descend(recursion, recursion.chosen, b)
    assert reached is not None, "chosen edges gain along every cycle, so no path of them is longer than the attributes"
    return reached


def _descend(
    recursion: Recursion, functions: Mapping[str, Mapping[str, Propagation]], b: Mapping[Instant, Extended]
) -> dict[str, dict[str, Extended]] | None:
    p: dict[str, dict[str, Extended]] = {
        name: dict.fromkeys(by_attribute, INF) for name, by_attribute in functions.items()
    }
    for _ in range(len(recursion.rank.potentials) * len(recursion.queries) + 2):
        known = dict(b)
        for query in recursion.queries:
            for a in query.output.progress:
                key = query.query.stream, a
                known[key] = INF
        for query in recursion.queries:
            for a in query.output.progress:
                key = query.query.stream, a
                known[key] = min(known[key], p[query.query.name][a])
        lower = {
            name: {a: f.evaluate(known) for a, f in by_attribute.items()} for name, by_attribute in functions.items()
        }
        if lower == p:
            return p
        p = lower
    return None
