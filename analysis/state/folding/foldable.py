"""Foldings: how rows of an occurrence that are kept for ever become one row per class, or not (R30 to R34)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.nodes import Join, Node, occurrences
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import MOST_OPERATIONS, Term, attributes_of, conjuncts
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.propagation import Latencies
from tidegate.analysis.state.bounds import Bound, Bounded, Collected, MissingConstraint, Unbounded, bound
from tidegate.analysis.state.folding.classes import Classes, Read, classes
from tidegate.analysis.state.folding.complement import complement, complements_of_term
from tidegate.analysis.state.folding.region import (
    LaterOf,
    Literal,
    Region,
    Step,
    is_read_in_order,
    later_ofs,
    literals,
    region,
    without,
)
from tidegate.analysis.state.folding.runtime_limits import Obstacle, unfit
from tidegate.analysis.state.keep import Keep, keep

#: Queries of more occurrences are not asked how they fold: each comparison needs the zones of other queries. That takes
#: a second for 16 anti-joins, and nine for 32.
MOST_OCCURRENCES: Final = 16
#: What a sketch tells values apart by.
_PLACES: Final = {Sketch.DISTINCT: "hash class", Sketch.QUANTILES: "part"}


@dataclass(frozen=True, slots=True, eq=False)
class Complement:
    """A complement: the condition under which it keeps a row, and how many rows it keeps at most."""

    keep: Keep
    bound: Bound


@dataclass(frozen=True, eq=False)
class SettledComparison:
    """A comparison that comes to be settled: a row is settled true if `true` does not keep it, false likewise.

    `asked_false` gives the complement that keeps a row until it is settled false: of most, only a run asks for it.
    `never_false`: that complement is known to let some rows stay for ever.
    """

    literal: Literal
    true: Complement
    asked_false: Callable[[], Complement]
    never_false: bool

    @cached_property
    def false(self) -> Complement:
        return self.asked_false()

    def value(self, row: Mapping[str, int], p: Mapping[str, Extended]) -> bool | None:
        """The truth value that is settled for a row at progress p; None where none is."""
        if not self.true.keep.row(row, p):
            return True
        return None if self.false.keep.row(row, p) else False

    @property
    def bounds(self) -> tuple[Bounded, ...]:
        """The bounds of the rows that are not settled, of which the lowest counts."""
        return tuple(side.bound for side in self._both if isinstance(side.bound, Bounded))

    @property
    def sides(self) -> tuple[Complement, ...]:
        """The complements that let go of all rows in time."""
        return tuple(side for side in self._both if not isinstance(side.bound, Unbounded))

    @property
    def _both(self) -> tuple[Complement, ...]:
        return (self.true,) if self.never_false else (self.true, self.false)

    @property
    def both(self) -> bool:
        """Whether rows may be settled either way."""
        return len(self.sides) > 1

    def horizon(self) -> Extended:
        return min(bounded.horizon for bounded in self.bounds)


@dataclass(frozen=True, slots=True, eq=False)
class SettledTerm:
    """A term `max(s, …)` that comes to be the greatest of its other arguments: neither query keeps a settled row."""

    term: LaterOf
    queries: tuple[Complement, ...]

    def settled(self, row: Mapping[str, int], p: Mapping[str, Extended]) -> bool:
        """Whether the term is settled for a row at progress p."""
        return not any(query.keep.row(row, p) for query in self.queries)

    def horizon(self) -> Extended:
        return max(query.bound.horizon for query in self.queries if isinstance(query.bound, Bounded))


@dataclass(frozen=True, slots=True, eq=False)
class StaysOpen:
    """A comparison that no progress settles, so that what it reads is read, and the constraint that would settle it."""

    literal: Literal
    missing: MissingConstraint | None

    def __str__(self) -> str:
        text = f"{term_text(self.literal.term)} stays open"
        return text if self.missing is None else f"{text}: missing {self.missing}"


@dataclass(frozen=True, slots=True, eq=False)
class Foldable:
    """An occurrence whose rows can be folded: what has to be settled of them, their classes, and what stays open.

    `instants` are those that classes read: with one of them there may be as many classes as instants. `unfit` says why
    the runtime does not fold them although they might be.
    """

    stream: StreamDef
    comparisons: tuple[SettledComparison, ...]
    terms: tuple[SettledTerm, ...]
    classes: Classes
    existence: bool
    open: tuple[StaysOpen, ...]
    instants: tuple[Read, ...]
    rest: Bounded
    unfit: tuple[Obstacle, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """Whether classes and rows that are not settled bound the state (rule R34)."""
        return not self.instants

    @property
    def waits(self) -> bool:
        """Whether rows are stored one by one until something of them is settled."""
        return bool(self.comparisons or self.terms)

    @property
    def runs(self) -> bool:
        """Whether the runtime folds these rows."""
        return self.is_bounded and not self.unfit

    def truth_values(self, row: Mapping[str, int], p: Mapping[str, Extended]) -> tuple[bool, ...] | None:
        """The truth values of the comparisons of a row that can be folded at progress p; None of one that cannot."""
        values = tuple(comparison.value(row, p) for comparison in self.comparisons)
        if any(value is None for value in values) or not all(term.settled(row, p) for term in self.terms):
            return None
        return tuple(value is True for value in values)

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What stands against a bound; of a folding that has one, what keeps the runtime from it."""
        if self.is_bounded:
            return self.unfit
        stopped = [Obstacle(str(comparison)) for comparison in self.open]
        read = [Obstacle(str(one) if one.mixed else f"{one}: one row per value", one.mend) for one in self.instants]
        return (*stopped, *read)

    def describe(self) -> str:
        """Until when a row is one of its own, and what is left of it then, as text; `p(a)` is the query's progress."""
        open_ = dict.fromkeys(side.keep.describe() for comparison in self.comparisons for side in comparison.sides)
        open_ |= dict.fromkeys(side.keep.describe() for term in self.terms for side in term.queries)
        text = f"one row by {', '.join(self.by)}" if self.by else "one row"
        best = self.classes.dominance
        if best is not None:
            text += f", of the {best.best.value} {best.attribute}"
        stored = [aggregate_text(part.aggregate) for part in self.classes.payload]
        if stored:
            text += f", with {', '.join(stored)}"
        return f"{' or '.join(open_)}, then {text}" if open_ else f"always: {text}"

    @property
    def by(self) -> list[str]:
        """What tells classes apart, as text."""
        read = [term_text(read.term) for read in self.classes.read]
        read += [
            f"{_PLACES[sketch]} of {term_text(part.argument)}"
            for part in self.classes.payload
            if part.argument is not None and (sketch := part.aggregate.entry.sketch) is not None
        ]
        read += [term_text(comparison.literal.term) for comparison in self.comparisons if comparison.both]
        return list(dict.fromkeys(read))

    def __str__(self) -> str:
        """The bound as text; where there is none, what stands against it."""
        if not self.is_bounded:
            return "; ".join(map(str, self.obstacles()))
        keys = f"keys({self.stream.name} by {', '.join(self.by)})" if self.by else "1 row"
        return keys if self.rest.horizon == -INF else f"{keys} + {self.rest}"


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """An occurrence whose rows are to fold, and what its query promises."""

    occurrence: int
    stream: StreamDef
    streams: Mapping[str, StreamDef]
    promised: tuple[str, ...]
    latencies: Latencies
    tables: tuple[str, ...]
    for_ever: bool

    def complement(self, node: Node) -> Complement:
        zones = federation(node, self.streams)
        kept = keep(zones, self.occurrence, self.promised)
        return Complement(kept, bound(zones, self.occurrence, kept, self.latencies, self.tables))

    def comparison(self, region: Region, literal: Literal, others: Collection[Literal]) -> SettledComparison:
        true, false = (partial(self._side, region, literal, others, true=value) for value in (True, False))
        return SettledComparison(literal, true(), false, self._never_false(region.inside[literal.step], literal.term))

    def _side(self, region: Region, literal: Literal, others: Collection[Literal], *, true: bool) -> Complement:
        return self.complement(complement(region, self.stream, literal, others, true=true))

    def _never_false(self, step: Step, term: Term) -> bool:
        """Whether some rows are never settled false: those that the query itself keeps for ever. For a conjunct the
        complement is the query, with fewer constraints, over the rows that have partners here; without partners a row
        of the left input of a left join or an anti-join matters too.
        """
        alone = isinstance(step.node, Join) and step.node.kind in ("left", "anti") and step.place == 0
        return self.for_ever and not alone and _is_conjunct(step, term)

    def term(self, region: Region, later: LaterOf, others: Collection[Literal]) -> SettledTerm:
        return SettledTerm(later, tuple(map(self.complement, complements_of_term(region, self.stream, later, others))))


def folding(
    node: Node,
    i: int,
    streams: Mapping[str, StreamDef],
    promised: tuple[str, ...],
    latencies: Latencies,
    tables: tuple[str, ...] = (),
    *,
    for_ever: bool = False,
) -> Foldable | None:
    """How rows of occurrence i of a query fold, as far as they do.

    None of a static table, of a static result, below an operator that gathers rows in order, and where a complement has
    too many temporal cases (rule R8). `tables` are those that are joined before a row is kept.
    `for_ever`: the query is known to keep some of the rows for ever.
    """
    stream = occurrences(node)[i]
    region_ = region(node, i)
    if region_ is None or not promised or stream.static:
        return None
    asked = _Question(i, streams.get(stream.name, stream), streams, promised, latencies, tables, for_ever)
    try:
        for later in later_ofs(region_):
            settled = _settled(asked, without(region_, later, stream.schema), later)
            if settled is not None and settled.is_bounded:
                return settled
        return _settled(asked, region_, None)
    except QueryError:
        return None


def why_unknown(node: Node, i: int) -> str:
    """Why it is not known how rows of occurrence i fold, where `folding` is not asked or gives none."""
    if len(occurrences(node)) > MOST_OCCURRENCES:
        return f"the query has more than {MOST_OCCURRENCES} occurrences of streams"
    if is_read_in_order(node, i):
        return "an operator that gathers rows in order reads it"
    if region(node, i) is None:
        return f"an attribute is a term over its rows with more than {MOST_OPERATIONS:,} operations"
    return "a comparison that is to be settled has too many temporal cases"


def _settled(asked: _Question, region: Region, later: LaterOf | None) -> Foldable | None:
    """The folding with all comparisons that come to be settled beside each other: those that never are go, until none
    does. None where the term is not settled beside them.
    """
    wanted = literals(region)
    left_open: list[SettledComparison] = []
    while True:
        comparisons = [asked.comparison(region, literal, wanted) for literal in wanted]
        open_ = [comparison for comparison in comparisons if not _settles(region, comparison)]
        if not open_:
            break
        left_open += open_
        wanted = tuple(literal for literal in wanted if literal not in [open_one.literal for open_one in open_])
    terms = [] if later is None else [asked.term(region, later, wanted)]
    if not all(isinstance(query.bound, Bounded) for term in terms for query in term.queries):
        return None
    divided = classes(region, asked.stream.schema, wanted)
    return Foldable(
        asked.stream,
        tuple(comparisons),
        tuple(terms),
        divided,
        region.existence,
        tuple(_stays_open(region, comparison) for comparison in left_open),
        divided.instants(asked.stream.schema),
        _rest(asked, [comparison.horizon() for comparison in comparisons] + [term.horizon() for term in terms]),
        unfit(region),
    )


def _settles(region: Region, comparison: SettledComparison) -> bool:
    """Whether all rows come to be settled. A conjunct must be settled true: where it is settled false keep frees the
    row, and to wait for that would keep it longer.
    """
    if _is_conjunct(region.inside[comparison.literal.step], comparison.literal.term):
        return isinstance(comparison.true.bound, Bounded)
    return bool(comparison.bounds)


def _is_conjunct(step: Step, term: Term) -> bool:
    return step.condition is not None and term in conjuncts(step.condition)


def _stays_open(region: Region, comparison: SettledComparison) -> StaysOpen:
    held = region.inside[comparison.literal.step].held
    others = tuple(sorted(name for name in attributes_of(comparison.literal.term) if name not in held))
    bound = comparison.true.bound
    missing = None
    if isinstance(bound, Unbounded | Collected):
        missing = MissingConstraint(bound.missing.attributes, others)
    return StaysOpen(comparison.literal, missing)


def _rest(asked: _Question, horizons: list[Extended]) -> Bounded:
    """The rows that are not settled: none of them where nothing has to be."""
    type_ = asked.stream.schema[asked.stream.progress[0]].type
    longest = max(horizons, default=-INF)
    horizon = longest if longest == -INF else max(longest, 0)
    return Bounded(asked.stream.name, horizon, len(asked.latencies.inputs) > 1, type_, asked.tables)
