"""Situations derived from events: node, schema, meaning and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import evaluator, key_of
from tidegate.algebra.functions.aggregates import Aggregate, require_of_events
from tidegate.algebra.nodes import (
    Aggregation,
    Node,
    OrderedNode,
    Reading,
    Row,
    aggregate_attribute,
    check_condition,
    require_attribute,
)
from tidegate.algebra.ordered.events import first_or_last, in_order, instant_of, partitions
from tidegate.algebra.printing.plans import aggregate_text, ticks_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Lit, Term, Value, attributes_of, call
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import DataType

START: Final = "ts"
END: Final = "te"


@dataclass(frozen=True, slots=True, eq=False)
class Derive(OrderedNode):
    """Situations: the longest runs of a partition's events for which the condition is true (TPStream Def. 5 to 8).

    Events are ordered by `time`, ties by `tie`; NULL is not true. A situation is valid in [ts, te): from its first
    event to the first event after it for which the condition is not true. It takes `at_least` to `at_most` ticks, one
    at least. Aggregates are over its events, of which a first or last by `time` takes the order. What is open when the
    input ends is not reported.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    tie: str | None
    condition: Term
    at_least: int = 1
    at_most: int | None = None
    aggregates: tuple[Aggregate, ...] = ()

    def orders(self, aggregate: Aggregate) -> bool:
        """Whether the aggregate goes by the order of events, which leaves no ties: a first or last by their time."""
        return aggregate.by == Attr(self.time)

    @property
    def readings(self) -> tuple[Reading, ...]:
        terms = (
            self.condition,
            *(term for aggregate in self.aggregates for term in aggregate.terms),
        )
        named = (*self.keys, self.time, *(() if self.tie is None else (self.tie,)))
        read = frozenset(named).union(*map(attributes_of, terms))
        # An aggregate asks for the events themselves, a tie-break for their order within an instant.
        conditions = () if self.aggregates or self.tie is not None else (self.condition,)
        return (Reading(self.input, self.keys, read, self.time, self.tie, terms, conditions=conditions),)

    def over(self, inputs: tuple[Node, ...]) -> Derive:
        return replace(self, input=inputs[0])

    @property
    def completed_by(self) -> str:
        return END

    @property
    def keeps(self) -> str:
        return "situations"

    @property
    def produces(self) -> str:
        return "situations"

    def infer_schema(self) -> Schema:
        return situation_schema(self)

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        return situations(self, inputs[0], aggregation)

    def text(self, inputs: Sequence[str]) -> str:
        return f"derive from {inputs[0]} {derivation_text(self)}: {situation_text(self)}"


def derivation_text(node: Derive) -> str:
    """Of which events situations are: those of each partition in their order."""
    order = node.time if node.tie is None else f"{node.time}, {node.tie}"
    return f"by {', '.join(node.keys) or '()'} in order of {order}"


def situation_text(node: Derive) -> str:
    """What situations are: the condition, how long they last, and what is said of each."""
    text, instants = f"while {term_text(node.condition)}", node.schema[START].type
    if node.at_least > 1:
        text += f", at least {ticks_text(node.at_least, instants)}"
    if node.at_most is not None:
        text += f", at most {ticks_text(node.at_most, instants)}"
    ties = {aggregate.name: node.tie for aggregate in node.aggregates if node.orders(aggregate)}
    computed = ", ".join(
        f"{aggregate.name} = {aggregate_text(aggregate, ties.get(aggregate.name))}" for aggregate in node.aggregates
    )
    return text + (f": {computed}" if computed else "")


def situation_schema(node: Derive) -> Schema:
    """Keys, `ts`, `te` and aggregates; checks what the operator reads."""
    schema = node.input.schema
    for name in (*node.keys, node.time, *(() if node.tie is None else (node.tie,))):
        require_attribute(name, schema)
    if not schema[node.time].temporal:
        raise QueryError(
            "TG117", f"{node.time!r} orders no events: it holds no instants", hint="name a temporal attribute"
        )
    check_condition(node.condition, schema)
    if node.at_least < 1 or (node.at_most is not None and node.at_most < node.at_least):
        raise QueryError(
            "TG160", "no situation takes so long", hint="at_least is at least one tick and not longer than at_most"
        )
    for aggregate in node.aggregates:
        require_of_events(aggregate)
    computed = tuple(aggregate_attribute(aggregate, schema) for aggregate in node.aggregates)
    return Schema((*(schema[key] for key in node.keys), *endpoints(schema[node.time].type), *computed))


def endpoints(type_: DataType, prefix: str = "", *, known: bool = True) -> tuple[Attribute, Attribute]:
    start = Attribute(prefix + START, type_, nullable=False, temporal=True)
    return start, Attribute(prefix + END, type_, nullable=not known, temporal=known)


def derivation_relations(node: Derive) -> tuple[Term, ...]:
    """What holds of the endpoints of every situation that is derived."""
    return (call("lt", Attr(START), Attr(END)), *durations("", node))


def durations(symbol: str, situation: Derive) -> tuple[Term, ...]:
    """The duration limits of a situation as conditions on its endpoints, under the symbol's name where it has one."""
    prefix = f"{symbol}." if symbol else ""
    start, end, distance = Attr(prefix + START), Attr(prefix + END), situation.schema[START].type.distance
    limits: list[Term] = []
    if situation.at_least > 1:
        limits.append(call("ge", end, call("add", start, Lit(situation.at_least, distance))))
    if situation.at_most is not None:
        limits.append(call("le", end, call("add", start, Lit(situation.at_most, distance))))
    return tuple(limits)


@dataclass(frozen=True, slots=True)
class Run:
    """A situation before its duration is looked at: its end is None where the input ends first."""

    key: Row
    start: int
    end: int | None
    events: list[Row]


def situations(node: Derive, events: Sequence[Row], aggregation: Aggregation) -> list[Row]:
    """The rows of a derivation: its runs of the right duration that have ended."""
    return [
        (*run.key, run.start, run.end, *aggregate_values(node, run.events, aggregation))
        for run in runs(node, events)
        if run.end is not None and lasts(node, run.end - run.start)
    ]


def lasts(node: Derive, duration: int) -> bool:
    """Whether a duration is within the limits of the situation."""
    return node.at_least <= duration and (node.at_most is None or duration <= node.at_most)


def runs(node: Derive, events: Sequence[Row]) -> list[Run]:
    """The longest runs of each partition's events for which the condition is true, those of no duration left out."""
    names = node.input.schema.names
    time, condition = names.index(node.time), evaluator(resolve(node.condition, node.input.schema))
    longest: list[Run] = []
    (reading,) = node.readings
    for key, members in partitions(reading, events):
        run: list[Row] = []
        for event in [*in_order(reading, members), None]:
            if event is not None and condition(dict(zip(names, event, strict=True))) is True:
                run.append(event)
                continue
            if run:
                start = instant_of(run[0][time])
                end = instant_of(event[time]) if event is not None else None
                if end is None or start < end:
                    longest.append(Run(key, start, end, run))
            run = []
    return longest


def untied(nodes: Sequence[Derive], events: Sequence[Row]) -> list[Row]:
    """The events of situations that share partition, time and tie-break, without ties.

    Of those that are equal in all of these, in which conditions are true, and in what aggregates read, the first stays:
    they could be exchanged. Of others with one partition, time and tie-break none stays.
    """
    node, names = nodes[0], nodes[0].input.schema.names
    order = [names.index(name) for name in (*node.keys, node.time, node.tie) if name is not None]
    read = [names.index(name) for name in sorted(aggregated(nodes))]
    conditions = [evaluator(resolve(derivation.condition, node.input.schema)) for derivation in nodes]
    groups: dict[tuple[object, ...], dict[tuple[object, ...], Row]] = {}
    for event in events:
        values = dict(zip(names, event, strict=True))
        counts = (*(holds(values) is True for holds in conditions), *(key_of(event[place]) for place in read))
        groups.setdefault(tuple(key_of(event[place]) for place in order), {}).setdefault(counts, event)
    return [event for same in groups.values() if len(same) == 1 for event in same.values()]


def aggregated(nodes: Sequence[Derive]) -> frozenset[str]:
    """The attributes that aggregates of situations read."""
    terms = [term for node in nodes for aggregate in node.aggregates for term in aggregate.terms]
    return frozenset[str]().union(*map(attributes_of, terms))


def aggregate_values(node: Derive, events: list[Row], aggregation: Aggregation) -> list[Value]:
    """The aggregates of events that are in order; a first or last by time is that of the first or last event with a
    value.
    """
    schema, values = node.input.schema, list[Value]()
    for aggregate in node.aggregates:
        if not node.orders(aggregate):
            values.append(aggregation(aggregate, events, schema))
            continue
        values.append(first_or_last(aggregate, events, schema, aggregation))
    return values
