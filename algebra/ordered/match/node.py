"""Matches of temporal patterns over situations: node, schema, meaning and text."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import key_of
from tidegate.algebra.formulas import inexact_part, temporal_formula
from tidegate.algebra.nodes import (
    Aggregation,
    CachedNode,
    Node,
    OrderedNode,
    Reading,
    Row,
    check_condition,
    require_attribute,
)
from tidegate.algebra.ordered.derive import (
    END,
    START,
    Derive,
    Run,
    aggregate_values,
    durations,
    endpoints,
    runs,
)
from tidegate.algebra.ordered.events import instant_of
from tidegate.algebra.ordered.match.certainty import Conjunction, first_certain, refutations_of
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import ADVICE, Attribute, Schema
from tidegate.algebra.terms import Term, Value, conjunction

DETECTED: Final = "detected"


@dataclass(frozen=True, slots=True, eq=False)
class RowIntervals(CachedNode):
    """Rows as situations: each is valid in [ts, te), the instants `ts` and `te` of the row, in the partition of its
    `keys`.

    Every row has ts < te; with `points`, ts <= te. Unlike derived situations those of a partition may overlap.
    """

    input: Node
    keys: tuple[str, ...]
    points: bool = False

    def infer_schema(self) -> Schema:
        return given_schema(self)

    def over(self, inputs: tuple[Node, ...]) -> RowIntervals:
        return replace(self, input=inputs[0])

    @property
    def readings(self) -> tuple[Reading, ...]:
        return (Reading(self.input, self.keys, frozenset(self.schema), interval=(START, END)),)

    def text(self, inputs: Sequence[str]) -> str:
        return f"periods of {inputs[0]} by {', '.join(self.keys) or '()'}{', points among them' if self.points else ''}"


Emission = Literal["earliest", "final"]


@dataclass(frozen=True, slots=True, eq=False)
class Match(OrderedNode):
    """Temporal patterns: one situation per symbol, of one partition, such that the pattern holds (TPStream Def. 9 to
    13).

    The pattern speaks of the endpoints `symbol.ts` and `symbol.te`. `detected` is the instant at which the match is
    known. final: the greatest `te`; the pattern holds, and all lies within a window. earliest: the first instant at
    which pattern and durations are certain, whatever ends are still to come; `te` is NULL where it lies beyond it,
    aggregates cover the events up to it, and the window reaches to it. What a given situation's row says is no news:
    its end counts as known from that instant on, like any other, but the result has it and the row's other attributes
    in any case.
    """

    situations: tuple[Derive | RowIntervals, ...]
    symbols: tuple[str, ...]
    pattern: Term
    within: int | None = None
    emission: Emission = "earliest"
    #: Symbols in the order in which to look for their situations; empty: as costs say. Results are the same.
    order: tuple[str, ...] = field(default=(), metadata=ADVICE)

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes by which all situations are partitioned."""
        return self.situations[0].keys

    @property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(reading for situation in self.situations for reading in situation.readings)

    def over(self, inputs: tuple[Node, ...]) -> Match:
        return replace(
            self,
            situations=tuple(situation.over((new,)) for situation, new in zip(self.situations, inputs, strict=True)),
        )

    @property
    def completed_by(self) -> str:
        return DETECTED

    @property
    def keeps(self) -> str:
        return "situations"

    @property
    def produces(self) -> str:
        return "matches"

    @property
    def prefixes(self) -> tuple[str, ...]:
        return self.symbols

    @property
    def parts(self) -> tuple[Derive | RowIntervals, ...]:
        return self.situations

    def infer_schema(self) -> Schema:
        return match_schema(self)

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        return matches(self, inputs, aggregation)

    def text(self, inputs: Sequence[str]) -> str:
        named = ", ".join(f"{symbol} = {input_}" for symbol, input_ in zip(self.symbols, inputs, strict=True))
        window = "" if self.within is None else f" within {ticks_text(self.within, self.schema[DETECTED].type)}"
        return f"match {named} where {term_text(self.pattern)}{window}, {self.emission}"


def given_schema(node: RowIntervals) -> Schema:
    """The rows' own attributes; checks that `ts` and `te` are instants of one type."""
    schema = node.input.schema
    for name in (START, END, *node.keys):
        require_attribute(name, schema)
    for name in (START, END):
        if not schema[name].temporal:
            raise QueryError("TG117", f"{name!r} is no end of a period: it holds no instants", hint="name an instant")
    if schema[START].type != schema[END].type:
        raise QueryError("TG102", f"periods from {schema[START].type} to {schema[END].type}")
    return schema


def measures(situation: Derive | RowIntervals) -> tuple[str, ...]:
    """What is known of a situation beside its keys and ends: aggregates, or further attributes of its row."""
    if isinstance(situation, Derive):
        return tuple(aggregate.name for aggregate in situation.aggregates)
    return tuple(name for name in situation.schema if name not in (*situation.keys, START, END))


def match_schema(node: Match) -> Schema:
    """Keys, then per symbol `ts`, `te` and aggregates under its name, then `detected`; checks the pattern."""
    first = node.situations[0].schema
    ends = endpoint_schema(node)
    check_condition(node.pattern, ends)
    require_exact(node.pattern, ends)
    attributes = [first[key] for key in node.keys]
    for symbol, situation in zip(node.symbols, node.situations, strict=True):
        schema = situation.schema
        _require_keys(node, symbol, situation)
        if schema[START].type != first[START].type:
            raise QueryError("TG102", f"{symbol} holds {schema[START].type}, others hold {first[START].type}")
        known = node.emission == "final" or isinstance(situation, RowIntervals)
        attributes += endpoints(schema[START].type, f"{symbol}.", known=known)
        attributes += [schema[name].renamed(f"{symbol}.{name}") for name in measures(situation)]
    return Schema((*attributes, Attribute(DETECTED, first[START].type, nullable=False, temporal=True)))


def _require_keys(node: Match, symbol: str, situation: Derive | RowIntervals) -> None:
    """`QueryError` TG108 for a situation that has other keys than the first one, or keys of other types."""
    first, schema = node.situations[0].schema, situation.schema
    if situation.keys != node.keys:
        pairs = [(theirs, ours) for theirs, ours in zip(situation.keys, node.keys, strict=False) if theirs != ours]
        names = ", ".join(f'{theirs}="{ours}"' for theirs, ours in pairs)
        renamed = f"rename makes the names the same, before the periods: relation.rename({names})"
        # What has the names of the others in another order, or more or fewer keys, is no matter of names.
        fits = len(situation.keys) == len(node.keys) and not set(situation.keys) & {ours for _, ours in pairs}
        raise QueryError(
            "TG108",
            f"{symbol} is partitioned by {_listed(situation.keys)}, and {node.symbols[0]} by {_listed(node.keys)}",
            hint=renamed if fits else "partition all situations by the same keys, in the same order",
        )
    for key in node.keys:
        if schema[key].type != first[key].type:
            raise QueryError(
                "TG108",
                f"{symbol} is partitioned by {key}, {schema[key].type}, and {node.symbols[0]} by {key}, "
                f"{first[key].type}",
                hint=f'cast one of them before the periods: r.{key}.cast("{first[key].type}")',
            )


def _listed(keys: tuple[str, ...]) -> str:
    return ", ".join(keys) or "nothing"


def endpoint_schema(node: Match) -> Schema:
    """The endpoints that a pattern may speak of: `symbol.ts` and `symbol.te` of every symbol."""
    ends = [
        endpoints(situation.schema[START].type, f"{symbol}.")
        for symbol, situation in zip(node.symbols, node.situations, strict=True)
    ]
    return Schema(tuple(end for pair in ends for end in pair))


def require_exact(pattern: Term, ends: Schema) -> None:
    """`QueryError` TG153 for a pattern that says more than how endpoints lie to each other: its negation must be as
    exact.
    """
    inexact = inexact_part(temporal_formula(pattern, ends))
    if inexact is not None:
        raise QueryError(
            "TG153",
            f"a pattern can not ask for {term_text(inexact)}",
            because=("patterns compare starts and ends, perhaps shifted by constant durations: t + c, min, max",),
            hint="conditions on data belong to the situations, or to where() on the matches, as do floor and ceil",
        )


def condition_of(node: Match) -> Term:
    """What must be certain of a match: the pattern, and the durations of its situations."""
    return conjunction(
        (node.pattern, *(part for pair in zip(node.symbols, node.situations, strict=True) for part in _limits(*pair)))
    )


def _limits(symbol: str, situation: Derive | RowIntervals) -> tuple[Term, ...]:
    return durations(symbol, situation) if isinstance(situation, Derive) else ()


def interval_runs(node: RowIntervals, rows: Sequence[Row]) -> list[Run]:
    """The rows as situations."""
    names = node.schema.names
    places = [names.index(key) for key in node.keys]
    ends = names.index(START), names.index(END)
    return [
        Run(tuple(row[place] for place in places), instant_of(row[ends[0]]), instant_of(row[ends[1]]), [row])
        for row in rows
    ]


def matches(node: Match, events: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
    """The rows of a pattern; `events` are those that each symbol's situations are derived from, or given as."""
    refutations = refutations_of(temporal_formula(condition_of(node), endpoint_schema(node)))
    by_symbol = [
        interval_runs(situation, rows) if isinstance(situation, RowIntervals) else runs(situation, rows)
        for situation, rows in zip(node.situations, events, strict=True)
    ]
    results: list[Row] = []
    for chosen in _of_one_partition(by_symbol):
        ends = {symbol: (run.start, run.end) for symbol, run in zip(node.symbols, chosen, strict=True)}
        detected = _detected(node, refutations, ends)
        if detected is not None and (node.within is None or detected - min(run.start for run in chosen) <= node.within):
            results.append(_row(node, chosen, detected, aggregation))
    return results


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
    points = [
        s
        for s, situation in zip(node.symbols, node.situations, strict=True)
        if isinstance(situation, RowIntervals) and situation.points
    ]
    if node.emission == "earliest":
        return first_certain(refutations, ends, points)
    last = [end for _, end in ends.values() if end is not None]
    certain = first_certain(refutations, ends, points) if len(last) == len(ends) else None
    return None if certain is None else max(last)


def _row(node: Match, chosen: Sequence[Run], detected: int, aggregation: Aggregation) -> Row:
    values: list[Value] = list(chosen[0].key)
    for situation, run in zip(node.situations, chosen, strict=True):
        schema = situation.input.schema
        if isinstance(situation, RowIntervals):
            (row,) = run.events
            values += [run.start, run.end, *(row[schema.names.index(name)] for name in measures(situation))]
            continue
        time = schema.names.index(situation.time)
        seen = [event for event in run.events if instant_of(event[time]) <= detected]
        known = run.end is not None and run.end <= detected
        values += [run.start, run.end if known else None]
        values += aggregate_values(situation, seen, aggregation)
    return (*values, detected)
