"""Rows with their place among the rows of their group, as RANK() says it: node, schema, meaning and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError, evaluator, key_of
from tidegate.algebra.nodes import Aggregation, Node, OrderedNode, Reading, Row, require_attribute
from tidegate.algebra.ordered.events import partitions
from tidegate.algebra.printing.terms import term_text, value_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Term, Value
from tidegate.algebra.typed.kernels import compare
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import BIGINT, DataType


@dataclass(frozen=True, slots=True)
class RankedBy:
    """A term by which rows are ranked: from its least value on, or from its greatest. NULL comes last in both."""

    term: Term
    descending: bool = False


class Numbering(Enum):
    """How the rows of a group are numbered, from 1 on. Rows of which all terms are equal are peers.

    RANK: one more than the rows before it and its peers. DENSE_RANK: one more than the different ranks before its own.
    ROW_NUMBER: its number in the order; peers are an error, as nothing says which comes first.
    """

    RANK = "rank"
    DENSE_RANK = "dense_rank"
    ROW_NUMBER = "row_number"


@dataclass(frozen=True, slots=True)
class RankColumn:
    """A number of each row, by its name."""

    name: str
    numbering: Numbering


@dataclass(frozen=True, slots=True, eq=False)
class Ranks(OrderedNode):
    """The rows of a relation with further columns, which number the rows of each group in an order of values.

    A group are the rows with equal `keys`. `time`, an instant, is one of these: so all rows of a group have it, and the
    group is complete once all rows up to that instant are there. A row is known then, and nothing is kept of it.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    order: tuple[RankedBy, ...]
    columns: tuple[RankColumn, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        read = frozenset(self.input.schema.names)
        terms = tuple(dict.fromkeys(by.term for by in self.order))
        return (Reading(self.input, self.keys, read, self.time, None, terms),)

    def over(self, inputs: tuple[Node, ...]) -> Ranks:
        return replace(self, input=inputs[0])

    @property
    def needs_order(self) -> bool:
        """Whether a column depends on which of several peers comes first."""
        return any(column.numbering is Numbering.ROW_NUMBER for column in self.columns)

    @property
    def leaves_open(self) -> bool:
        """A group is complete at an instant of its own: none is open once the last row is known."""
        return False

    @property
    def completed_by(self) -> str:
        return self.time

    @property
    def produces(self) -> str:
        return "rows"

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in (*self.keys, self.time):
            require_attribute(name, schema)
        if not schema[self.time].temporal or self.time not in self.keys:
            raise QueryError("TG117", f"{self.time!r} completes no group", hint="name an instant that its rows share")
        taken = {*schema}
        for column in self.columns:
            if column.name in taken:
                raise QueryError("TG103", f"attribute {column.name!r} exists already", hint="choose a new name")
            taken.add(column.name)
        for by in self.order:
            resolve(by.term, schema)
        numbers = tuple(Attribute(column.name, BIGINT, nullable=False) for column in self.columns)
        return Schema((*schema.attributes, *numbers))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        (reading,) = self.readings
        schema = self.input.schema
        place = schema.names.index(self.time)
        terms = [evaluator(resolve(by.term, schema)) for by in self.order]
        results: list[Row] = []
        for _, members in partitions(reading, inputs[0]):
            named = [dict(zip(schema.names, row, strict=True)) for row in members]
            values = [tuple(term(row) for term in terms) for row in named]
            for row, its in zip(members, values, strict=True):
                before = [others for others in values if self.compared(others, its) < 0]
                peers = [others for others in values if self.compared(others, its) == 0]
                if self.needs_order and len(peers) > 1:
                    raise peers_at(row[place], schema[self.time].type)
                different = {tuple(map(key_of, others)) for others in before}
                numbers = {
                    Numbering.RANK: len(before) + 1,
                    Numbering.DENSE_RANK: len(different) + 1,
                    Numbering.ROW_NUMBER: len(before) + 1,
                }
                results.append((*row, *(numbers[column.numbering] for column in self.columns)))
        return results

    def compared(self, left: Sequence[Value], right: Sequence[Value]) -> int:
        """Below 0 where a row with the left values comes before one with the right ones, 0 where they are peers."""
        for by, one, other in zip(self.order, left, right, strict=True):
            if one is None or other is None:
                found = (one is None) - (other is None)
            else:
                found = compare(one, other) * (-1 if by.descending else 1)
            if found:
                return found
        return 0

    def text(self, inputs: Sequence[str]) -> str:
        order = ", ".join(f"{term_text(by.term)}{' descending' if by.descending else ''}" for by in self.order)
        numbers = ", ".join(f"{column.name} = {column.numbering.value}()" for column in self.columns)
        return f"rank {inputs[0]} by {', '.join(self.keys)} in order of {order}, once {self.time} is over: {numbers}"


def peers_at(at: Value, type_: DataType) -> EvaluationError:
    """TG304 of rows of a group that is complete at an instant."""
    return EvaluationError(
        "TG304",
        f"two rows of one group at {value_text(at, type_)} are peers: nothing says which comes first",
        hint="number peers alike with tg.rank(), or name a further value that orders them: order=(tg.desc(r.x), r.id)",
    )
