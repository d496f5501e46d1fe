"""The result of an ordered operator in groups: what a grouping needs of an operator that tells it without its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from tidegate.algebra.evaluation import key_of
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Aggregation, Node, OrderedNode, OrderedPart, Reading, Row, aggregate_attribute
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Summary(OrderedNode):
    """One row per group of the rows of an operator by `keys`, with `aggregates` over its rows (rule R47).

    The attribute that says when a row is complete is among the keys, so that a group is complete when its rows are. A
    family that computes groups without the rows has a subclass of its own; this is what each of them means.
    """

    of: OrderedNode
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]

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
        return Schema((*(rows[key] for key in self.keys), *computed))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        schema = self.of.schema
        places = [schema.names.index(key) for key in self.keys]
        groups: dict[tuple[object, ...], tuple[Row, list[Row]]] = {}
        for row in self.of.rows(inputs, aggregation):
            key = tuple(row[place] for place in places)
            groups.setdefault(tuple(map(key_of, key)), (key, []))[1].append(row)
        return [
            (*key, *(aggregation(aggregate, members, schema) for aggregate in self.aggregates))
            for key, members in groups.values()
        ]

    def text(self, inputs: Sequence[str]) -> str:
        told = ", ".join(map(aggregate_text, self.aggregates))
        return (
            f"{told} by {', '.join(self.keys)} of the {self.of.produces}, which are not listed: {self.of.text(inputs)}"
        )
