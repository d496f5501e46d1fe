"""The result of an ordered operator in groups: what a grouping needs of an operator that tells it without its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from tidegate.algebra.evaluation import key_of
from tidegate.algebra.functions.aggregates import Aggregate, sum_doubles
from tidegate.algebra.nodes import Aggregation, Node, OrderedNode, OrderedPart, Reading, Row, aggregate_attribute
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Value
from tidegate.algebra.types import BIGINT, DOUBLE

#: A low half of a total has so many bits, and a high half of one that is told is less than 2 to the other.
LOW_BITS: Final = 32
HIGH_BITS: Final = 62


@dataclass(frozen=True, slots=True)
class Halves:
    """The exact sum of an attribute in two halves, `high * 2**32 + low` with 0 <= low < 2**32, so that sums of groups
    add up where one of them is beyond a bigint. Both are NULL of no values. `beyond` is 0, or 1 where the sum is too
    large to tell. Of doubles they are the rounded sum, and what it has lost.
    """

    argument: str
    high: str
    low: str
    beyond: str
    double: bool = False

    @property
    def columns(self) -> tuple[str, str, str]:
        return self.high, self.low, self.beyond

    def of(self, values: Sequence[Value]) -> tuple[Value, Value, Value]:
        """The three columns over values, of which those that are NULL are left out."""
        known = [value for value in values if value is not None]
        if not known:
            return None, None, 0
        if self.double:
            rounded = sum_doubles(known)
            return rounded, _lost(known, rounded), 0
        high, low = divmod(sum(map(int, known)), 2**LOW_BITS)
        return (high, low, 0) if abs(high) < 2**HIGH_BITS else (None, None, 1)


def _lost(values: Sequence[Value], rounded: float) -> float:
    """What the sum of doubles has lost where it is rounded."""
    from fractions import Fraction  # takes long to import

    if not math.isfinite(rounded):
        return 0.0
    return float(sum((Fraction(float(value)) for value in values if value is not None), -Fraction(rounded)))


@dataclass(frozen=True, slots=True, eq=False)
class Summary(OrderedNode):
    """One row per group of the rows of an operator by `keys`, with `aggregates` over its rows (rule R47), and with
    `totals`, sums in halves.

    The attribute that says when a row is complete is among the keys, so that a group is complete when its rows are. A
    family that computes groups without the rows has a subclass of its own; this is what each of them means.
    """

    of: OrderedNode
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    totals: tuple[Halves, ...] = ()

    @property
    def readings(self) -> tuple[Reading, ...]:
        return self.of.readings

    def over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, of=self.of.over(inputs))

    @property
    def completed_by(self) -> str:
        return self.of.completed_by

    @property
    def produces(self) -> str:
        return f"counted {self.of.produces}"

    @property
    def leaves_open(self) -> bool:
        return self.of.leaves_open

    @property
    def keeps(self) -> str:
        return self.of.keeps

    @property
    def parts(self) -> tuple[OrderedPart, ...]:
        return self.of.parts

    def infer_schema(self) -> Schema:
        rows = self.of.schema
        computed = (aggregate_attribute(aggregate, rows) for aggregate in self.aggregates)
        halves = (
            Attribute(name, DOUBLE if total.double and name != total.beyond else BIGINT, nullable=name != total.beyond)
            for total in self.totals
            for name in total.columns
        )
        return Schema((*(rows[key] for key in self.keys), *computed, *halves))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        schema = self.of.schema
        places = [schema.names.index(key) for key in self.keys]
        groups: dict[tuple[object, ...], tuple[Row, list[Row]]] = {}
        for row in self.of.rows(inputs, aggregation):
            key = tuple(row[place] for place in places)
            groups.setdefault(tuple(map(key_of, key)), (key, []))[1].append(row)
        return [
            (
                *key,
                *(aggregation(aggregate, members, schema) for aggregate in self.aggregates),
                *(
                    value
                    for total in self.totals
                    for value in total.of([row[schema.names.index(total.argument)] for row in members])
                ),
            )
            for key, members in groups.values()
        ]

    def text(self, inputs: Sequence[str]) -> str:
        told = ", ".join([*map(aggregate_text, self.aggregates), *(f"sum({total.argument})" for total in self.totals)])
        return (
            f"{told} by {', '.join(self.keys)} of the {self.of.produces}, which are not listed: {self.of.text(inputs)}"
        )
