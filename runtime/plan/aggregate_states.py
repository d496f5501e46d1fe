"""The states of aggregates in partial results: their columns and types, the same for both engines.

Partials of disjoint parts of a relation merge into the partials of the whole, in any order and grouping:

- an integer sum is held as `hi * 2**32 + lo`, 0 <= lo < 2**32, so only the total can overflow, never a part of it;
- a sum of doubles as `sum + comp`, the rounded sum and what it lost;
- first and last as the order and the value of the best row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tidegate.algebra.errors import InternalError
from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.nodes import Group
from tidegate.algebra.schema import Attribute, Schema, unused_mark
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, DOUBLE, NULL, STRING, DataType


@dataclass(frozen=True, slots=True)
class State:
    """The state of one aggregate: its form, the types of argument and order, and its columns by part."""

    aggregate: Aggregate
    form: Form
    argument: DataType
    by: DataType
    result: DataType
    prefix: str

    @property
    def parts(self) -> tuple[tuple[str, DataType], ...]:
        """The parts of the state and their types."""
        match self.form:
            case Form.COUNT | Form.DISTINCT:
                return (("n", BIGINT),)
            case Form.INTEGER_SUM:
                return (("hi", BIGINT), ("lo", BIGINT), *self._counted)
            case Form.DOUBLE_SUM:
                return (("sum", DOUBLE), ("comp", DOUBLE), *self._counted)
            case Form.LEAST | Form.GREATEST:
                return (("v", self.argument),)
            case Form.WHOLE:
                return (("v", self.result),)
            case Form.SKETCH:
                return (("v", STRING),)
            case Form.EARLIEST | Form.LATEST:
                return (("by", self.by), ("v", self.argument))

    @property
    def _counted(self) -> tuple[tuple[str, DataType], ...]:
        return (("n", BIGINT),) if self.averages else ()

    @property
    def sketch(self) -> Sketch:
        """What is kept of a group, where that is a sketch."""
        assert self.aggregate.entry.sketch is not None
        return self.aggregate.entry.sketch

    @property
    def averages(self) -> bool:
        """Whether its total is divided by how many values there are."""
        return self.aggregate.entry.averages

    @property
    def fails(self) -> bool:
        """Whether a total beyond its type is an error; else it is NULL."""
        return self.aggregate.entry.lenient is not None

    def column(self, part: str) -> str:
        return self.prefix + part

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.column(part) for part, _ in self.parts)


@lru_cache(maxsize=1024)
def states(group: Group) -> tuple[State, ...]:
    """The state of every aggregate of a grouping, in order. No column has the name of a grouping key."""
    schema = group.input.schema
    mark = unused_mark(group.keys)
    group_states = []
    for index, aggregate in enumerate(group.aggregates):
        argument = NULL if aggregate.argument is None else term_type(aggregate.argument, schema)
        by = NULL if aggregate.by is None else term_type(aggregate.by, schema)
        form, result = aggregate.entry.form_of(argument), group.schema[aggregate.name].type
        group_states.append(State(aggregate, form, argument, by, result, f"{mark}{index}."))
    return tuple(group_states)


def row_column(group: Group) -> str:
    """The name of a helper column that no key and no state column has."""
    return f"{unused_mark(group.keys)}row"


def has_partials(group: Group) -> bool:
    """Whether partial results of the grouping can be merged."""
    return all(aggregate.entry.merges for aggregate in group.aggregates)


def require_partials(group: Group) -> None:
    if not has_partials(group):
        raise InternalError("TG901", "count_distinct has no partial results, and nothing that keeps every value")


@lru_cache(maxsize=1024)
def partial_schema(group: Group) -> Schema:
    """The attributes of partial results: the keys, then the state of every aggregate."""
    require_partials(group)
    keys = tuple(group.input.schema[key] for key in group.keys)
    parts = tuple(Attribute(state.column(part), type_) for state in states(group) for part, type_ in state.parts)
    return Schema((*keys, *parts))
