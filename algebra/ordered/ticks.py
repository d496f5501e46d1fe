"""Instants at equal distances that follow the rows of a relation: node, schema, meaning and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Aggregation, Node, OrderedNode, Reading, Row, require_attribute
from tidegate.algebra.ordered.events import instant_of, partitions
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.schema import Schema

#: The attribute of the instant.
TICK: Final = "tick"


@dataclass(frozen=True, slots=True, eq=False)
class Ticks(OrderedNode):
    """The multiples of `every`, plus `offset`, of each partition: from its first row on, or within `within` ticks after
    any of its rows.

    A tick is complete at its own instant. Without `within` they go on for as long as the input progresses, and at least
    up to its last row, of whichever partition; over complete relations, which do not progress, up to that. Rows of one
    instant are peers.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    every: int
    offset: int = 0
    within: int | None = None

    @property
    def readings(self) -> tuple[Reading, ...]:
        return (Reading(self.input, self.keys, frozenset((*self.keys, self.time)), self.time),)

    def over(self, inputs: tuple[Node, ...]) -> Ticks:
        return replace(self, input=inputs[0])

    @property
    def completed_by(self) -> str:
        return TICK

    @property
    def produces(self) -> str:
        return "ticks"

    @property
    def leaves_open(self) -> bool:
        return self.goes_on

    @property
    def goes_on(self) -> bool:
        return self.within is None

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in (*self.keys, self.time):
            require_attribute(name, schema)
        if not schema[self.time].temporal:
            raise QueryError("TG117", f"{self.time!r} orders no rows: it holds no instants", hint="name an instant")
        if TICK in self.keys:
            raise QueryError(
                "TG103",
                f"{TICK!r} is the instant of each tick, and a key has this name",
                hint=f'rename it first: rename({TICK}="...")',
            )
        return Schema((*(schema[key] for key in self.keys), schema[self.time].renamed(TICK)))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        (reading,) = self.readings
        place = self.input.schema.names.index(self.time)
        end = max((instant_of(row[place]) for row in inputs[0]), default=0)
        results: list[Row] = []
        for key, members in partitions(reading, inputs[0]):
            times = [instant_of(row[place]) for row in members]
            lasting = [(time, end if self.within is None else time + self.within) for time in times]
            ticks = {tick for first, last in lasting for tick in range(self.next(first), last + 1, self.every)}
            results += [(*key, tick) for tick in ticks]
        return results

    def next(self, instant: int) -> int:
        """The first multiple at an instant or after it."""
        return -((self.offset - instant) // self.every) * self.every + self.offset

    def text(self, inputs: Sequence[str]) -> str:
        instants = self.input.schema[self.time].type
        offset = f", offset {ticks_text(self.offset, instants)}" if self.offset else ""
        keys = ", ".join(self.keys) or "()"
        since = (
            "from the first row on"
            if self.within is None
            else f"within {ticks_text(self.within, instants)} after each row"
        )
        every = ticks_text(self.every, instants)
        return f"ticks every {every}{offset} of {inputs[0]} by {keys} in order of {self.time}, {since}"
