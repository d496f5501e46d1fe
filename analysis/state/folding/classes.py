"""Classes: what of a settled row later results still read, and what of it aggregates take as payload (R31 to R33)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tidegate.algebra.evaluation import is_null_of_nulls
from tidegate.algebra.formulas import Compare, Comparison, Shift, TemporalTerm, Var, term_variables
from tidegate.algebra.functions.aggregates import Aggregate, Stored
from tidegate.algebra.nodes import Difference, Distinct, Group, Join
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Term, attributes_of
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BOOLEAN
from tidegate.analysis.state.folding.region import (
    Literal,
    Region,
    RowTerms,
    Step,
    comparisons,
    condition_parts,
    own_parts,
    reads_alone,
)

#: What people mean who list pairs with all rows before, and how it is said in bounded state.
OF_PAIRS: Final = (
    "where the last row before is meant, asof_join(...) keeps one of each key; where totals of all rows before are "
    "meant, group_by(...).agg(...) above the join does"
)


@dataclass(frozen=True, slots=True)
class Read:
    """A term over the occurrence's row that later results read, so that it tells classes apart, and its reader.

    `mixed`: an aggregate reads it in one argument with other streams, so that it cannot be payload. `mend`: what would
    not read it, and may be what is meant.
    """

    term: Term
    by: str
    mixed: bool = False
    mend: str = ""

    def __str__(self) -> str:
        if self.mixed:
            return f"{self.by} reads {term_text(self.term)} beside other streams"
        return f"{term_text(self.term)} is read by {self.by}"


@dataclass(frozen=True, slots=True)
class Payload:
    """What of a class is stored for an aggregate: partials of its argument, its order, or both, where the row alone
    gives them (rule R32).
    """

    aggregate: Aggregate
    argument: Term | None
    order: Term | None


class Best(Enum):
    """Which value of an instant makes all true that any other makes true."""

    GREATEST = "greatest"
    LEAST = "least"

    @property
    def reversed(self) -> Best:
        return Best.LEAST if self is Best.GREATEST else Best.GREATEST


@dataclass(frozen=True, slots=True)
class Dominance:
    """An instant whose best value stands for the class, and the comparisons that read it (rule R33)."""

    attribute: str
    best: Best
    literals: frozenset[Literal]


@dataclass(frozen=True, slots=True)
class Classes:
    """What tells classes of settled rows apart, beside truth values, and what is stored of each beside its size."""

    read: tuple[Read, ...]
    payload: tuple[Payload, ...] = ()
    dominance: Dominance | None = None

    def instants(self, schema: Schema) -> tuple[Read, ...]:
        """What is read that has a value for each instant. Truth values are two, whatever they compare."""
        return tuple(
            read
            for read in self.read
            if any(schema[name].temporal for name in attributes_of(read.term))
            and term_type(read.term, schema) != BOOLEAN
        )


def classes(region: Region, schema: Schema, settled: Collection[Literal]) -> Classes:
    """The classes of the rows of which these comparisons are settled."""
    if not region.existence:
        return Classes(_reads(region, settled), _payload(region))
    dominated = (dominating for x in schema.temporal if (dominating := _dominated(region, x, settled)) is not None)
    return next(dominated, Classes(_reads(region, settled)))


def _dominated(region: Region, x: str, settled: Collection[Literal]) -> Classes | None:
    """The classes of which the best value of an instant stands for all, where nothing else reads that instant."""
    best = _dominance(region, x, settled)
    if best is None:
        return None
    read = _reads(region, [*settled, *best.literals])
    return None if any(x in attributes_of(entry.term) for entry in read) else Classes(read, (), best)


def _reads(region: Region, settled: Collection[Literal]) -> tuple[Read, ...]:
    """What is read of a row, each term with its first reader."""
    reads = [read for number, step in enumerate(region.inside) for read in _of_step(step, number, settled)]
    sink = region.sink
    if sink is None:
        reads += _of_attributes(region.held, tuple(region.held), "the result attribute", OF_PAIRS)
    elif isinstance(sink.node, Distinct):
        reads += _of_attributes(sink.held, tuple(sink.held), "the distinct attribute")
    elif isinstance(sink.node, Group):
        mend = "where the last row before is meant, leave its instant out of the keys: tg.max(...) tells it"
        reads += _of_attributes(sink.held, sink.node.keys, "the group key", mend)
        reads += [read for aggregate in sink.node.aggregates for read in _of_aggregate(aggregate, sink)]
    return tuple({read.term: read for read in reversed(reads)}.values())[::-1]


def _of_step(step: Step, number: int, settled: Collection[Literal]) -> Iterator[Read]:
    """What a condition reads, but for comparisons that are settled, or a difference, which compares all attributes."""
    if step.condition is not None:
        left_out = [literal.term for literal in settled if literal.step == number]
        for term in condition_parts(step.condition, step.held, left_out):
            yield Read(term, f"the condition {term_text(step.condition)}")
    if isinstance(step.node, Difference):
        yield from _of_attributes(step.held, tuple(step.held), "the compared attribute")


def _of_attributes(held: Mapping[str, RowTerms], names: tuple[str, ...], by: str, mend: str = "") -> Iterator[Read]:
    for name in names:
        for term in held[name].terms if name in held else ():
            yield Read(term, f"{by} {name}", mend=mend)


def _of_aggregate(aggregate: Aggregate, sink: Step) -> Iterator[Read]:
    """What an aggregate reads that is not payload."""
    for term in aggregate.terms:
        if payload_of(aggregate, term, sink) is None:
            for part in own_parts(term, sink.held):
                mixed = not reads_alone(term, sink.held)
                mend = f"aggregate {term_text(part)} by itself, and compute with it above the group" if mixed else ""
                yield Read(part, aggregate_text(aggregate), mixed, mend)


def _payload(region: Region) -> tuple[Payload, ...]:
    sink = region.sink
    if sink is None or not isinstance(sink.node, Group):
        return ()
    stored = [
        Payload(
            aggregate,
            *(
                None if term is None else payload_of(aggregate, term, sink)
                for term in (aggregate.argument, aggregate.by)
            ),
        )
        for aggregate in sink.node.aggregates
    ]
    return tuple(payload for payload in stored if payload.argument is not None or payload.order is not None)


def payload_of(aggregate: Aggregate, term: Term, sink: Step) -> Term | None:
    """An argument, or an order, of an aggregate as a term over the row, where the row alone gives it and partial
    results merge.

    Where a left join pads the row, it has to be NULL of NULLs, as an attribute is: another term may have a value.
    """
    if aggregate.entry.stored is not Stored.PARTIAL or not reads_alone(term, sink.held):
        return None
    (part,) = own_parts(term, sink.held)
    return part if sink.timed or is_null_of_nulls(part, sink.row) else None


def _dominance(region: Region, x: str, settled: Collection[Literal]) -> Dominance | None:
    """The best value of an instant, where all comparisons that read it, the settled left out, agree on it."""
    wanted: set[Best | None] = set()
    read: set[Literal] = set()
    for number, step in enumerate(region.inside):
        for term, compared, positive in comparisons(step):
            literal = Literal(number, term)
            if literal not in settled and any(x in attributes_of(part) for part in own_parts(term, step.held)):
                read.add(literal)
                wanted.add(_direction(step, compared, x, positive=positive))
    best = wanted.pop() if len(wanted) == 1 else None
    return None if best is None else Dominance(x, best, frozenset(read))


def _direction(step: Step, compared: Compare, x: str, *, positive: bool) -> Best | None:
    """Which value of the instant makes most rows pass the step: the comparison is `w <= x + c`, or reversed."""
    if isinstance(step.node, Join) and step.node.kind == "left" and step.place == 0:
        return None  # a match more takes away the padded row
    reversing = isinstance(step.node, Join) and step.node.kind == "anti" and step.place == 0
    for side, opposite, best in (
        (compared.right, compared.left, _BEST.get(compared.op)),
        (compared.left, compared.right, _BEST.get(_MIRROR[compared.op])),
    ):
        foreign = not any(name in step.held for name in term_variables(opposite))
        if best is not None and foreign and _is_shifted(side, x, step.held):
            return best if positive != reversing else best.reversed
    return None


#: Of `w op x + c`: the x that makes it true soonest.
_BEST: Final[Mapping[Comparison, Best]] = {
    "<=": Best.GREATEST,
    "<": Best.GREATEST,
    ">=": Best.LEAST,
    ">": Best.LEAST,
}
_MIRROR: Final[Mapping[Comparison, Comparison]] = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<", "!=": "!="}


def _is_shifted(term: TemporalTerm, x: str, held: Mapping[str, RowTerms]) -> bool:
    """Whether a temporal term is the instant, plus a constant."""
    variable = term.term if isinstance(term, Shift) else term
    return isinstance(variable, Var) and held.get(variable.name) == RowTerms((Attr(x),), alone=True)
