"""The facts of a program: the values that the runtime and the reports work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node, Project, Rename
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Term
from tidegate.algebra.time import Extended
from tidegate.analysis.components import Component
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.pass_ import pass_condition
from tidegate.analysis.progress.propagation import Latencies, Propagation
from tidegate.analysis.state.bounds import Bound, Bounded, Collected, Unbounded, bound
from tidegate.analysis.state.folding.foldable import Foldable
from tidegate.analysis.state.keep import Keep, keep
from tidegate.analysis.state.relevance import Relevance, relevance
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.grid import Grid, may_pass

#: A stream and one of its attributes.
Instant = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class OccurrenceFacts:
    """The facts of one reference to a stream. `index` is as in `nodes.occurrences`."""

    index: int
    stream: StreamDef
    keep: Keep
    relevance: Relevance
    bound: Bound
    folding: Foldable | None = None
    """How rows that keep lets stay for ever become one row per class, where that is known."""
    unknown: str = ""
    """Why that is not known of such rows."""

    @property
    def folds(self) -> bool:
        """Whether the runtime folds its rows."""
        return self.folding is not None and self.folding.runs

    @property
    def stays(self) -> bool:
        """Whether its rows are kept without a bound, and not folded."""
        return isinstance(self.bound, Unbounded | Collected) and not self.folds

    @property
    def not_folded(self) -> tuple[str, ...] | None:
        """Why rows that keep lets stay for ever are stored one by one, reason by reason; None of other rows."""
        if self.folding is not None:
            return tuple(map(str, self.folding.obstacles()))
        return (self.unknown,) if self.unknown else None

    @property
    def mends(self) -> tuple[str, ...]:
        """What would fold such rows, and may be what is meant, once each."""
        obstacles = () if self.folding is None else self.folding.obstacles()
        return tuple(dict.fromkeys(one.mend for one in obstacles if one.mend))

    @property
    def kept(self) -> str:
        """Until when a row is stored, as text, and what is left of it then."""
        return self.kept_by()

    def kept_by(self, most: int | None = None) -> str:
        """The same; of many conditions `most` are printed."""
        return self.folding.describe() if self.folding is not None and self.folding.runs else self.keep.describe(most)

    def proved(self, *, folding: bool) -> Bound:
        """The bound of its rows; of one whose rows fold, of those that are not settled (rule R34)."""
        return self.folding.rest if folding and self.folding is not None else self.bound

    @property
    def state(self) -> str:
        """How many of its rows are stored at most, as text."""
        return str(self.folding if self.folds else self.bound)


@dataclass(frozen=True, slots=True, eq=False)
class QueryFacts:
    """A valid query. `propagation` has a function per promised attribute; it is empty for a static result.

    `grids`: those of the promised attributes that have one.
    """

    query: Query
    output: StreamDef
    federation: Federation
    propagation: Mapping[str, Propagation]
    occurrences: tuple[OccurrenceFacts, ...]
    grids: Mapping[str, Grid]

    @property
    def is_static(self) -> bool:
        """Whether the result is complete from the start: it waits for no stream, and one increment yields all of it."""
        return all(not function.clauses for function in self.propagation.values())

    def progress(self, b: Mapping[tuple[str, str], Extended], p: Mapping[str, Extended]) -> dict[str, Extended]:
        """`p' = max(p, f(b))` of every promised attribute (rule R11)."""
        return {a: max(p[a], function.evaluate(b)) for a, function in self.propagation.items()}

    def behind(self, b: Mapping[tuple[str, str], Extended], p: Mapping[str, Extended]) -> Extended:
        """The most ticks that progress p lags behind what the inputs allow: 0 without a schedule (rule R24)."""
        reached = {a: function.evaluate(b) for a, function in self.propagation.items()}
        return max((f - p[a] for a, f in reached.items() if f > p[a]), default=0)

    def may_pass(self, old: Mapping[str, Extended], new: Mapping[str, Extended]) -> bool:
        """Whether an increment may have rows. It has none where no attribute passed a point of its grid."""
        return may_pass(self.grids, old, new)

    def passes(self, old: Mapping[str, Extended], new: Mapping[str, Extended]) -> Term:
        """The pass condition over the result's attributes (rule R13)."""
        return pass_condition(self.output.schema, old, new)


def read_once(rows: Node, time: str, query: QueryFacts, attribute: str) -> OccurrenceFacts:
    """The facts of rows that an operator reads beside the occurrences of its query: of one stream, each row in the
    increment in which the query's progress on `attribute` reaches its instant `time`. The query does not wait for them,
    so their stream may be ahead of what it waits for.
    """
    alone = Project(rows, (time,))
    read = federation(alone if time == attribute else Rename(alone, ((time, attribute),)))
    kept = keep(read, 0, (attribute,))
    limit = bound(read, 0, kept, Latencies.among(query.propagation))
    if isinstance(limit, Bounded):
        limit = replace(limit, lagging=True)
    return OccurrenceFacts(len(query.occurrences), read.occurrences[0], kept, relevance(kept), limit)


@dataclass(frozen=True, slots=True)
class Rank:
    """The order in which the rows of a recursive component arise (rule R19).

    `R(r) = min over k of (scale * a_k - potential(a_k))` over the promised attributes of the row's stream. A row
    depends on rows of its component whose rank is lower by at least `step`.
    """

    scale: int
    step: int
    potentials: Mapping[Instant, int]

    def of(self, stream: str, row: Mapping[str, int]) -> int:
        """The rank of a row, given at least its promised attributes, or the least rank of rows, given the least of
        each.
        """
        potentials = [(a, potential) for (name, a), potential in self.potentials.items() if name == stream]
        return min(self.scale * row[a] - potential for a, potential in potentials)

    def below(self, stream: str, limit: int) -> dict[str, int]:
        """Per promised attribute the greatest instant that makes the rank less than `limit`.

        A row ranks below the limit iff some attribute is at most its instant, and at or above it iff all lie beyond.
        """
        potentials = [(a, potential) for (name, a), potential in self.potentials.items() if name == stream]
        return {a: (limit + potential - 1) // self.scale for a, potential in potentials}


@dataclass(frozen=True, slots=True, eq=False)
class Recursion:
    """A recursive component: its queries, their rank, and the propagation functions with only what the rank chose."""

    rank: Rank
    queries: tuple[QueryFacts, ...]
    chosen: Mapping[str, Mapping[str, Propagation]]


@dataclass(frozen=True, slots=True, eq=False)
class ProgramFacts:
    """A valid program: its queries in the order in which they are evaluated, and its components in the same order.

    `recursions` has an entry for every stream of a recursive component.
    """

    program: ProgramDef
    queries: tuple[QueryFacts, ...]
    components: tuple[Component, ...]
    streams: Mapping[str, StreamDef]
    recursions: Mapping[str, Recursion] = field(default_factory=dict)

    def definition_of(self, name: str) -> StreamDef:
        """The definition of a result stream, declared or inferred; `QueryError` TG123 where no query feeds it."""
        if name not in self.streams:
            known = ", ".join(self.streams)
            raise QueryError("TG123", f"nothing feeds a result stream {name}", hint=f"results here: {known}")
        return self.streams[name]
