"""The windows in which one of several contexts holds, as they begin and end: node, schema, meaning and text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Aggregation, Node, OrderedNode, Reading, Row, require_attribute
from tidegate.algebra.ordered.events import instant_of, partitions
from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, END, START, TIME
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Value


@dataclass(frozen=True, slots=True, eq=False)
class GroupedWindows(OrderedNode):
    """The windows of some contexts put together, by partition (CAESAR, Listing 1): one row as such a window starts and
    one as it ends, as the changes of a single context are.

    Between two changes of these contexts the same ones of them hold. If there are any, a grouped window holds, which
    has begun when the first of their windows did: what began after that lies in one of them. Where it goes on with
    others that began later, it ends and starts at one instant.

    `input` are changes of `contexts`, none of which is a default one: before the first of them none holds.
    """

    input: Node
    keys: tuple[str, ...]
    contexts: tuple[str, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        return (Reading(self.input, self.keys, frozenset((*self.keys, CONTEXT, CHANGE, TIME, BEGAN)), TIME),)

    @property
    def wakes(self) -> bool:
        return False

    def over(self, inputs: tuple[Node, ...]) -> GroupedWindows:
        return replace(self, input=inputs[0])

    @property
    def completed_by(self) -> str:
        return TIME

    @property
    def produces(self) -> str:
        return "grouped windows"

    @property
    def leaves_open(self) -> bool:
        return False

    @property
    def keeps(self) -> str:
        return "contexts that hold"

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in sorted(self.readings[0].attributes):
            require_attribute(name, schema)
        if not schema[TIME].temporal:
            raise QueryError("TG117", f"{TIME!r} orders no rows: it holds no instants", hint="name an instant")
        return Schema(tuple(schema[name] for name in (*self.keys, CHANGE, TIME, BEGAN)))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        (reading,) = self.readings
        names = self.input.schema.names
        places = [names.index(name) for name in (TIME, CONTEXT, CHANGE, BEGAN)]
        results: list[Row] = []
        for key, members in partitions(reading, inputs[0]):
            changes = sorted((_change(*(row[place] for place in places)) for row in members), key=lambda one: one[0])
            held = HeldContexts()
            for at, together in itertools.groupby(changes, key=lambda one: one[0]):
                for change, began in held.after((one[1:] for one in together), at):
                    results.append((*key, change, at, began))
        return results

    def text(self, inputs: Sequence[str]) -> str:
        return f"windows of {' or '.join(self.contexts)} in {inputs[0]} by {', '.join(self.keys) or '()'}"


@dataclass(slots=True)
class HeldContexts:
    """Those of the contexts that hold in one partition, each with the beginning of its window."""

    began: dict[str, int] = field(default_factory=dict)

    @property
    def since(self) -> int | None:
        """The beginning of the grouped window; None where none holds."""
        return min(self.began.values(), default=None)

    def after(self, changes: Iterable[tuple[Any, Any, int | None]], at: int) -> list[tuple[str, int]]:
        """Applies the changes of one instant, the ends first: context, change and beginning of each. Gives those of the
        grouped window, with its beginning.
        """
        before, started = self.since, list[tuple[str, int]]()
        for context, change, began in changes:
            if change == END:
                self.began.pop(context, None)
            else:
                started.append((context, at if began is None else began))
        self.began.update(started)
        if self.since == before:
            return []
        ended = [] if before is None else [(END, before)]
        return ended if self.since is None else [*ended, (START, self.since)]


def _change(at: Value, context: Value, change: Value, began: Value) -> tuple[int, Value, Value, int | None]:
    return instant_of(at), context, change, None if began is None else instant_of(began)
