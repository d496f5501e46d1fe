"""What situations and temporal patterns yield over complete finite relations, as the definitions say it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key

from tidegate.algebra.certainty import Conjunction, first_certain, refutations_of
from tidegate.algebra.evaluation import EvaluationError, evaluator, key_of
from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.kernels import compare
from tidegate.algebra.nodes import Aggregate, Derive, Function, Given, Match
from tidegate.algebra.operations import resolve
from tidegate.algebra.pretty import value_text
from tidegate.algebra.schema import Schema
from tidegate.algebra.situations import END, START, condition_of, endpoint_schema, measures
from tidegate.algebra.terms import Value, attributes_of
from tidegate.algebra.types import DataType

Row = tuple[Value, ...]
#: The value of an aggregate over some rows of a relation.
Aggregation = Callable[[Aggregate, list[Row], Schema], Value]


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
        (*run.key, run.start, run.end, *_values(node, run.events, aggregation))
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
    found: list[Run] = []
    for key, members in partitions(node, events):
        run: list[Row] = []
        for event in [*_in_order(node, members), None]:
            if event is not None and condition(dict(zip(names, event, strict=True))) is True:
                run.append(event)
                continue
            if run:
                start = _instant(run[0][time])
                end = _instant(event[time]) if event is not None else None
                if end is None or start < end:
                    found.append(Run(key, start, end, run))
            run = []
    return found


def partitions(node: Derive, events: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """Events by their keys, NULL equal to NULL."""
    places = [node.input.schema.names.index(key) for key in node.keys]
    found: dict[tuple[object, ...], tuple[Row, list[Row]]] = {}
    for event in events:
        key = tuple(event[place] for place in places)
        found.setdefault(tuple(map(key_of, key)), (key, []))[1].append(event)
    return list(found.values())


def _in_order(node: Derive, events: list[Row]) -> list[Row]:
    """Events by time, then by the tie-break, NULL first; `EvaluationError` TG304 where these leave the order open."""
    schema = node.input.schema
    places = [schema.names.index(name) for name in (node.time, node.tie) if name is not None]
    ranked = cmp_to_key(_compare)
    ordered = sorted(events, key=lambda event: tuple(ranked(event[place]) for place in places))
    for one, other in itertools.pairwise(ordered):
        if all(key_of(one[place]) == key_of(other[place]) for place in places):
            raise tied(one[places[0]], schema[node.time].type)
    return ordered


def tied(at: Value, type_: DataType) -> EvaluationError:
    """TG304 of events at an instant."""
    return EvaluationError(
        "TG304",
        f"two events of one partition at {value_text(at, type_)}: nothing says which comes first",
        hint='name an attribute that orders them: partition_by(..., tie="sequence")',
    )


def untied(nodes: Sequence[Derive], events: Sequence[Row]) -> list[Row]:
    """The events of situations that share partition, time and tie-break, without ties.

    Of those that are equal in all of these, in which conditions are true, and in what aggregates read, the first stays: they
    could be exchanged. Of others with one partition, time and tie-break none stays.
    """
    node, names = nodes[0], nodes[0].input.schema.names
    order = [names.index(name) for name in (*node.keys, node.time, node.tie) if name is not None]
    read = [names.index(name) for name in sorted(aggregated(nodes))]
    conditions = [evaluator(resolve(one.condition, node.input.schema)) for one in nodes]
    found: dict[tuple[object, ...], dict[tuple[object, ...], Row]] = {}
    for event in events:
        values = dict(zip(names, event, strict=True))
        counts = (*(holds(values) is True for holds in conditions), *(key_of(event[place]) for place in read))
        found.setdefault(tuple(key_of(event[place]) for place in order), {}).setdefault(counts, event)
    return [event for same in found.values() if len(same) == 1 for event in same.values()]


def aggregated(nodes: Sequence[Derive]) -> frozenset[str]:
    """The attributes that aggregates of situations read."""
    terms = [term for node in nodes for one in node.aggregates for term in (one.argument, one.by) if term is not None]
    return frozenset[str]().union(*map(attributes_of, terms))


def _compare(one: Value, other: Value) -> int:
    """Below 0 where one value comes before the other, 0 where both are one; NULL comes before all others."""
    if one is None or other is None:
        return (one is not None) - (other is not None)
    return compare(one, other)


def given(node: Given, rows: Sequence[Row]) -> list[Run]:
    """The rows as situations."""
    names = node.schema.names
    places = [names.index(key) for key in node.keys]
    ends = names.index(START), names.index(END)
    return [
        Run(tuple(row[place] for place in places), _instant(row[ends[0]]), _instant(row[ends[1]]), [row])
        for row in rows
    ]


def _instant(value: Value) -> int:
    assert isinstance(value, int)
    return value


def matches(node: Match, events: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
    """The rows of a pattern; `events` are those that each symbol's situations are derived from, or given as."""
    refutations = refutations_of(temporal_formula(condition_of(node), endpoint_schema(node)))
    by_symbol = [
        given(situation, rows) if isinstance(situation, Given) else runs(situation, rows)
        for situation, rows in zip(node.situations, events, strict=True)
    ]
    found: list[Row] = []
    for chosen in _of_one_partition(by_symbol):
        ends = {symbol: (run.start, run.end) for symbol, run in zip(node.symbols, chosen, strict=True)}
        detected = _detected(node, refutations, ends)
        if detected is not None and (node.within is None or detected - min(run.start for run in chosen) <= node.within):
            found.append(_row(node, chosen, detected, aggregation))
    return found


def _of_one_partition(by_symbol: Sequence[Sequence[Run]]) -> Iterator[tuple[Run, ...]]:
    """One situation per symbol, all with the same keys, NULL equal to NULL."""
    by_key = [defaultdict[tuple[object, ...], list[Run]](list) for _ in by_symbol]
    for groups, of_symbol in zip(by_key, by_symbol, strict=True):
        for run in of_symbol:
            groups[tuple(map(key_of, run.key))].append(run)
    for key in by_key[0]:
        yield from itertools.product(*(groups.get(key, ()) for groups in by_key))


def _detected(
    node: Match, refutations: Collection[Conjunction], ends: Mapping[str, tuple[int, int | None]]
) -> int | None:
    """When the match is known, or None where it is none."""
    points = [s for s, one in zip(node.symbols, node.situations, strict=True) if isinstance(one, Given) and one.points]
    if node.emission == "earliest":
        return first_certain(refutations, ends, points)
    last = [end for _, end in ends.values() if end is not None]
    certain = first_certain(refutations, ends, points) if len(last) == len(ends) else None
    return None if certain is None else max(last)


def _row(node: Match, chosen: Sequence[Run], detected: int, aggregation: Aggregation) -> Row:
    values: list[Value] = list(chosen[0].key)
    for situation, run in zip(node.situations, chosen, strict=True):
        schema = situation.input.schema
        if isinstance(situation, Given):
            (row,) = run.events
            values += [run.start, run.end, *(row[schema.names.index(name)] for name in measures(situation))]
            continue
        time = schema.names.index(situation.time)
        seen = [event for event in run.events if _instant(event[time]) <= detected]
        known = run.end is not None and run.end <= detected
        values += [run.start, run.end if known else None]
        values += _values(situation, seen, aggregation)
    return (*values, detected)


def _values(node: Derive, events: list[Row], aggregation: Aggregation) -> list[Value]:
    """The aggregates of events that are in order; a first or last by time is that of the first or last event with a value."""
    schema, values = node.input.schema, list[Value]()
    for aggregate in node.aggregates:
        if not node.orders(aggregate):
            values.append(aggregation(aggregate, events, schema))
            continue
        alone = (aggregation(aggregate, [event], schema) for event in events)
        known = [value for value in alone if value is not None]
        values.append(None if not known else known[0] if aggregate.function is Function.FIRST else known[-1])
    return values
