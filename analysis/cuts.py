"""Cuts: a part of a query becomes a stream of its own where its rows fold and those that it is made of do not (R36).

A comparison within a part of a query may never be settled, as nothing says how long after it the query asks, although
the part as such waits for nothing more: orders that were not cancelled within half an hour, below a running count. The
rows of the part are then results of an inner query, and the rest reads these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Final

from tidegate.algebra.nodes import (
    Group,
    Imbed,
    Node,
    Project,
    Rename,
    Scan,
    Select,
    children,
    nodes_of,
    occurrences,
    with_children,
)
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import has_ordered_operator, is_row_wise
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import Extended
from tidegate.algebra.typed.failures import has_fallible_term
from tidegate.algebra.typed.operations import resolve
from tidegate.analysis.facts import OccurrenceFacts, ProgramFacts, QueryFacts
from tidegate.analysis.inner_queries import owner_of
from tidegate.analysis.progress.propagation import Propagation
from tidegate.analysis.state.folding.foldable import MOST_OCCURRENCES

#: The facts of a query that alone feeds its stream, over definitions of streams; None where it is not valid, or keeps
#: rows of one of these occurrences for ever.
Analyse = Callable[[Query, Mapping[str, StreamDef], Sequence[int]], QueryFacts | None]
#: What an occurrence demands of progress: the greatest of `b_y - d` over these y of a stream.
Clause = frozenset[tuple[str, str, Extended]]
#: Clauses of composed functions, up to which they are compared.
MOST_CLAUSES: Final = 256


def with_cuts(facts: ProgramFacts, analyse: Analyse) -> ProgramDef | None:
    """The program with queries cut where that lets rows fold; None where it does not."""
    by_name = {query.query.name: query for query in facts.queries}
    feeding = Counter(query.stream for query in facts.program.queries)
    names = {query.name for query in facts.program.queries} | {s.name for s in facts.program.inputs}
    cutter = _Cutter(analyse, dict(facts.streams), names | facts.program.result_names)
    for query in facts.program.queries:
        alone = feeding[query.stream] == 1 and query.stream not in facts.recursions
        cutter.queries.append(cutter.cut(by_name[query.name]) if alone else query)
    return ProgramDef(tuple(cutter.queries)) if cutter.made else None


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """A cut of a query at a part of it: the facts of what is left, and the inner query, where that is new."""

    rest: QueryFacts
    inner: Query | None


@dataclass(slots=True)
class _Cutter:
    analyse: Analyse
    streams: dict[str, StreamDef]
    taken: set[str]
    queries: list[Query] = field(default_factory=list)
    made: dict[Node, QueryFacts] = field(default_factory=dict)
    """The inner queries, by the parts that they compute: equal parts share one."""
    staying: set[Node] = field(default_factory=set)
    """Parts that are no inner queries, as they would keep rows for ever."""

    def cut(self, query: QueryFacts) -> Query:
        """The query, cut as often as that lets rows fold; inner queries come before it."""
        while (cut := self.next(query)) is not None:
            if cut.inner is not None:
                self.queries.append(cut.inner)
            query = cut.rest
        return query.query

    def next(self, query: QueryFacts) -> _Cut | None:
        """The first cut, from the leaves on, after which fewer occurrences keep their rows for ever."""
        staying = [one for one in query.occurrences if one.stays]
        if not staying or len(query.occurrences) > MOST_OCCURRENCES:
            return None
        tried: set[tuple[int, ...]] = set()
        for one in staying:
            for path, part in _parts(query.query.node, one.index):
                if path not in tried and (cut := self.at(query, path, part, one)) is not None:
                    return cut
                tried.add(path)
        return None

    def at(self, query: QueryFacts, path: Sequence[int], part: Node, for_rows_of: OccurrenceFacts) -> _Cut | None:
        """The cut at a part, which its path leads to; None where it is of no use, or changes progress."""
        if part in self.staying:
            return None
        known = self.made.get(part)
        inner = known or self.inner(query, part, for_rows_of)
        if inner is None:
            self.staying.add(part)
            return None
        stream = inner.output
        node = _with_part(query.query.node, path, Scan(stream))
        place = _first_of(query.query.node, path)
        rest = self.analyse(query.query.over(node), {**self.streams, stream.name: stream}, (place,))
        if rest is None or rest.output != query.output or _number(rest) >= _number(query):
            return None
        if not all(_is_same(f, rest.propagation[a], stream.name, inner) for a, f in query.propagation.items()):
            return None
        self.made[part] = inner
        self.streams[stream.name] = stream
        self.taken.add(stream.name)
        return _Cut(rest, inner.query if known is None else None)

    def inner(self, query: QueryFacts, part: Node, for_rows_of: OccurrenceFacts) -> QueryFacts | None:
        """The query that computes a part, where all that it keeps is bounded."""
        owner, number = owner_of(query.query.stream), 1
        while f"{owner}~{number}" in self.taken:
            number += 1
        name = f"{owner}~{number}"
        why = f"{query.federation.occurrence_name(for_rows_of.index)} would be kept for ever in {owner}"
        still_open = () if for_rows_of.folding is None else for_rows_of.folding.open
        stopped = "; ".join(map(str, still_open)) or next(iter(for_rows_of.not_folded or ()), "")
        written = Query(name, name, part, None, query.query.site, query.query.sites, inner=True)
        written = replace(written, cut=f"{why}: {stopped}" if stopped else why)
        made = self.analyse(written, self.streams, range(len(occurrences(part))))
        return None if made is None or not made.output.progress else made


def _number(query: QueryFacts) -> int:
    """How many occurrences keep their rows for ever."""
    return sum(one.stays for one in query.occurrences)


def _parts(node: Node, i: int) -> Iterator[tuple[tuple[int, ...], Node]]:
    """The parts of a query at which it may be cut for its occurrence i, from the leaf on, each with its path: operators
    that are more than row-wise, with the row-wise ones above them, below others that are. What has no value for some
    rows is set aside where it is evaluated, which a cut would change.
    """
    path: list[tuple[tuple[int, ...], Node]] = [((), node)]
    while not isinstance(node, Scan):
        for place, child in enumerate(children(node)):
            number = len(occurrences(child))
            if i < number:
                path.append(((*path[-1][0], place), child))
                node = child
                break
            i -= number
    above = False
    found: list[tuple[tuple[int, ...], Node]] = []
    for (place_path, part), (_, parent) in zip(path[1:], path, strict=False):
        alone = isinstance(parent, Select | Project | Rename | Imbed)
        above = above or not alone
        if above and not alone and not is_row_wise(part) and not has_ordered_operator(part) and not _can_fail(part):
            found.append((place_path, part))
    yield from reversed(found)


def _can_fail(part: Node) -> bool:
    """Whether a term of the part may have no value, beyond those of its row-wise parts and sums out of range."""
    for node in nodes_of(part):
        if isinstance(node, Group):
            terms = [term for one in node.aggregates for term in one.terms]
            if any(resolve(term, node.input.schema).fallible for term in terms):
                return True
        elif not is_row_wise(node) and has_fallible_term(node):
            return True
    return False


def _with_part(node: Node, path: Sequence[int], part: Node) -> Node:
    if not path:
        return part
    below = list(children(node))
    below[path[0]] = _with_part(below[path[0]], path[1:], part)
    return with_children(node, tuple(below))


def _first_of(node: Node, path: Sequence[int]) -> int:
    """The number of the first occurrence of the part at a path."""
    first = 0
    for place in path:
        below = children(node)
        first += sum(len(occurrences(child)) for child in below[:place])
        node = below[place]
    return first


def _is_same(before: Propagation, after: Propagation, stream: str, inner: QueryFacts) -> bool:
    """Whether a result progresses as before where a part of it is a stream, whatever its inputs have progressed to."""
    composed: list[Clause] = []
    for clause in after.clauses:
        options = frozenset((clause.stream, y, d) for y, d in clause.distances)
        if clause.stream != stream:
            composed.append(options)
            continue
        functions = [inner.propagation[y].clauses for y, _ in clause.distances]
        if prod(map(len, functions)) > MOST_CLAUSES:
            return False
        # The greatest of what the instants of the part allow, each of which is the least of its clauses.
        composed += (
            frozenset(
                (own.stream, y, d + e)
                for (_, d), own in zip(clause.distances, chosen, strict=True)
                for y, e in own.distances
            )
            for chosen in product(*functions)
        )
    wanted = [frozenset((clause.stream, y, d) for y, d in clause.distances) for clause in before.clauses]
    return _least(composed) == _least(wanted)


def _least(clauses: Sequence[Clause]) -> frozenset[Clause]:
    """The clauses that no other one always undercuts, each with the nearest of its alternatives for an instant."""
    nearest: list[Clause] = []
    for clause in clauses:
        distances: dict[tuple[str, str], Extended] = {}
        for stream, y, d in clause:
            distances[stream, y] = min(d, distances.get((stream, y), d))
        nearest.append(frozenset((stream, y, d) for (stream, y), d in distances.items()))
    different = dict.fromkeys(nearest)
    return frozenset(one for one in different if not any(_undercuts(o, one) for o in different if o != one))


def _undercuts(first: Clause, second: Clause) -> bool:
    """Whether the first never exceeds the second."""
    distances = {(stream, y): d for stream, y, d in second}
    return all((stream, y) in distances and distances[stream, y] <= d for stream, y, d in first)
