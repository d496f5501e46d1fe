"""Operators that users write: the class to derive from, and the node that applies one to the events of a relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from tidegate.algebra.diagnostics.tracebacks import trimmed_calls
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Aggregation, Node, OrderedNode, Reading, Row, require_attribute
from tidegate.algebra.ordered.events import in_order, partitions
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.schema import ADVICE, Schema, StreamDef

#: A frame of Polars, which the algebra does not load.
Frame = Any


@trimmed_calls
@dataclass(frozen=True, slots=True)
class Reach:
    """How far an operator has read all events: instants after `after` and up to `until` are new; None: all that are
    left.

    `close_at`: where what is open ends, once there are no more events; None: it is not reported.

    Examples:
        >>> tg.Reach(after=10, until=20)
        Reach(after=10, until=20, close_at=None)
    """

    after: int | None
    until: int | None
    close_at: int | None = None

    @property
    def ends(self) -> bool:
        """Whether there are no more events.

        Examples:
            >>> tg.Reach(after=10, until=None).ends
            True
        """
        return self.until is None


@trimmed_calls
class Operator:
    """An ordered operator of your own: it sees the events of each partition in order of time, and keeps state between
    them.

    Derive from it, as a frozen dataclass where it has parameters (else `process` refuses it): a checkpoint belongs to
    the class by its name and to the values of its fields, and never holds code.

    `reads` are the attributes of an event that it needs beside the keys and the time. `tables` are what it keeps, by
    name, each with the columns of its rows as DDL text; a row belongs to a partition. With `wakes`, a table and a
    column of instants in it, `step` also sees the partitions in which such an instant has been reached, whether they
    have events or not.

    Two declarations bound what it keeps, and every step is checked against them (TG305). `most` has, by table, how many
    rows of it a partition has at most; a table that it lacks is unbounded. `kept_for` is how long after its last event
    a partition has rows, a duration as in `tg.situation`; `step` sees a partition once that is over, and keeps nothing
    of it. None: for ever.

    Examples:
        >>> @dataclass(frozen=True)
        ... class Above(tg.Operator):
        ...     limit: float
        ...     reads = ("speed",)
        ...
        ...     def result(self, events):
        ...         return tg.stream("Above", f"time bigint, speed {events['speed']}", progress="time")
        ...
        ...     def step(self, events, state, reach):
        ...         return events.filter(pl.col("speed") > self.limit), {}
        >>> show(cars.partition_by("car").process(Above(90)))
        red, 3, 95.0
    """

    reads: tuple[str, ...] = ()
    tables: ClassVar[Mapping[str, str]] = MappingProxyType({})
    wakes: ClassVar[tuple[str, str] | None] = None
    most: ClassVar[Mapping[str, int]] = MappingProxyType({})
    #: Any, so that type checkers accept a property, which is computed from the fields; `process` checks what it gives.
    kept_for: Any = None

    def result(self, events: Mapping[str, str]) -> Any:
        """Its result beside the keys, declared with `tg.stream`: attributes, relations of their instants, and the one
        instant on which it progresses, at which a row is complete. `events` has the types of what it reads, by name.

        Examples:
            >>> print(Above(90).result({"speed": "double"}).schema)
            time bigint not null, speed double
        """
        raise NotImplementedError

    def step(self, events: Frame, state: Mapping[str, Frame], reach: Reach) -> tuple[Frame, Mapping[str, Frame]]:
        """The rows that are complete, and what is kept of these partitions from now on.

        `events` are in order of `partition`, time and tie. `partition` is a number that stands for the keys, and the
        first column of all frames; it means something within one call only. Instants are whole numbers, microseconds
        for timestamps. A row is complete after `reach.after` and up to `reach.until`, by the declared instant. A table
        that is left out is empty.

        Examples:
            >>> events = pl.DataFrame({"partition": [0, 0], "time": [1, 2], "speed": [80.0, 95.0]})
            >>> rows, kept = Above(90).step(events, {}, tg.Reach(after=None, until=5))
            >>> rows.rows(), kept
            ([(0, 2, 95.0)], {})
        """
        raise NotImplementedError

    def meaning(self, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """The rows of one partition, of all its events in order of time: slow and obvious, to test `step` against.

        An event has the keys, the time, the tie and what is read; a row has what `result` declares. Instants are whole
        numbers, as in `step`. The test kit compares every step with it.

        `QueryError` TG114 where an operator does not define it.

        Examples:
            >>> Above(90).meaning([{"time": 1, "speed": 80.0}, {"time": 2, "speed": 95.0}])
            [{'time': 2, 'speed': 95.0}]
        """
        raise QueryError(
            "TG114", f"{type(self).__name__} has no meaning(...)", hint="define it, for tests that compare with it"
        )

    def __repr__(self) -> str:
        """Of one without fields: a dataclass writes its own."""
        return f"{type(self).__qualname__}()"


def parameters(operator: Any) -> list[str]:
    """The names of the fields of a class of operators; none of one that is no dataclass."""
    return [parameter.name for parameter in fields(operator)] if is_dataclass(operator) else []


def values_beside_fields(operator: Operator) -> list[str]:
    """What an operator keeps in the object beside the fields of its dataclass, and beside what Python computes from
    them once.
    """
    operator_class: Any = type(operator)
    named = parameters(operator_class)
    slots = (
        name for cls in operator_class.__mro__ for name in cls.__dict__.get("__slots__", ()) if hasattr(operator, name)
    )
    return [
        name
        for name in (*vars(operator), *slots)
        if name not in named and not isinstance(getattr(operator_class, name, None), cached_property)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Process(OrderedNode):
    """An operator of a user's over the events of a relation; `result` is what it declares beside the keys.

    `kept_for`: how many ticks after its last event it has rows of a partition; None: for ever.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    tie: str | None
    operator: Operator
    result: StreamDef
    kept_for: int | None = None
    #: Every step is done again, and in two parts, and compared.
    verifies: bool = field(default=False, metadata=ADVICE)

    @property
    def readings(self) -> tuple[Reading, ...]:
        tie = () if self.tie is None else (self.tie,)
        read = frozenset((*self.keys, self.time, *tie, *self.operator.reads))
        return (Reading(self.input, self.keys, read, self.time, self.tie),)

    def over(self, inputs: tuple[Node, ...]) -> Process:
        return replace(self, input=inputs[0])

    def verified(self) -> Process:
        return replace(self, verifies=True)

    @property
    def completed_by(self) -> str:
        (time,) = self.result.progress
        return time

    @property
    def produces(self) -> str:
        return f"rows of {type(self.operator).__name__}"

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in self.readings[0].attributes:
            require_attribute(name, schema)
        if not schema[self.time].temporal:
            raise QueryError(
                "TG117", f"{self.time!r} orders no events: it holds no instants", hint="name a temporal attribute"
            )
        if len(self.result.progress) != 1 or self.result.schema[self.completed_by].type != schema[self.time].type:
            raise QueryError(
                "TG117",
                f"a row of {self.result.name} is complete at an instant of its events",
                hint=f"declare it with progress=... on one {schema[self.time].type}",
            )
        if clash := [name for name in self.keys if name in self.result.schema]:
            raise QueryError(
                "TG103",
                f"{', '.join(clash)} is a key, and an attribute that {self.result.name} declares",
                hint="leave it out: rows have the keys of their partition",
            )
        return Schema((*(schema[key] for key in self.keys), *self.result.schema.attributes))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        names = self.input.schema.names
        results: list[Row] = []
        (reading,) = self.readings
        for key, members in partitions(reading, inputs[0]):
            events = [dict(zip(names, event, strict=True)) for event in in_order(reading, members)]
            rows = self.operator.meaning(events)
            results += [(*key, *(row[name] for name in self.result.schema.names)) for row in rows]
        return results

    def text(self, inputs: Sequence[str]) -> str:
        order = self.time if self.tie is None else f"{self.time}, {self.tie}"
        by = ", ".join(self.keys) or "()"
        text = f"process {inputs[0]} by {by} in order of {order}: {self.operator!r} into {self.result.schema}"
        if self.kept_for is not None:
            text += f", kept for {ticks_text(self.kept_for, self.input.schema[self.time].type)} after the last event"
        return text
