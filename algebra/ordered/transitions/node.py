"""The context windows of each partition as they begin and end: node, schema, meaning and text."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Aggregation, Node, OrderedNode, Reading, Row, require_attribute
from tidegate.algebra.ordered.events import instant_of, partitions
from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, TIME, ContextType, Transition
from tidegate.algebra.ordered.transitions.vector import Candidate, Vector
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import STRING


@dataclass(frozen=True, slots=True, eq=False)
class Transitions(OrderedNode):
    """The windows (t_i, t_t] of contexts, by partition: one row as a window starts and one as it ends (CAESAR, Def. 1).

    A row of the input is a candidate: the transition with the number that it has in `number` is asked for at its
    instant. It counts where one of the contexts that the transition is `within` holds before that instant, and has held
    since before `since`, where its match began. All candidates of one instant are one transaction: Act' = (Act - X) +
    {c in I : c not in Act, or c in X} for the contexts I that they initiate and the contexts X that they end. The
    `default` context holds exactly where no other does, since ever in a partition without transitions. Where it is not
    `dated` that is said of each of its windows, of which nothing is kept then.

    A change is complete at its own instant. Of several candidates that start a window, the one of the first query, and
    then the least, gives it the values `carried`. Where the input ends nothing ends.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    contexts: tuple[ContextType, ...]
    default: str
    transitions: tuple[Transition, ...]
    number: str
    since: str | None = None
    cause: str | None = None
    carried: tuple[str, ...] = ()
    dated: bool = True

    @property
    def readings(self) -> tuple[Reading, ...]:
        beside = (self.since, self.cause)
        read = {*self.keys, self.time, self.number, *self.carried, *(name for name in beside if name is not None)}
        return (Reading(self.input, self.keys, frozenset(read), self.time),)

    @property
    def wakes(self) -> bool:
        return False

    def over(self, inputs: tuple[Node, ...]) -> Transitions:
        return replace(self, input=inputs[0])

    @property
    def completed_by(self) -> str:
        return TIME

    @property
    def produces(self) -> str:
        return "changes of contexts"

    @property
    def leaves_open(self) -> bool:
        return False

    @property
    def stays_open(self) -> str:
        return "windows that rows open and others close"

    @property
    def keeps(self) -> str:
        return "contexts that hold"

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in sorted(self.readings[0].attributes):
            require_attribute(name, schema)
        if not schema[self.time].temporal:
            raise QueryError("TG117", f"{self.time!r} orders no rows: it holds no instants", hint="name an instant")
        if self.since is not None and schema[self.since].type != schema[self.time].type:
            raise QueryError("TG102", f"{self.since!r} is {schema[self.since].type}, no {schema[self.time].type}")
        instant = schema[self.time]
        its = (
            Attribute(CONTEXT, STRING, nullable=False, temporal=False),
            Attribute(CHANGE, STRING, nullable=False, temporal=False),
            instant.renamed(TIME),
            Attribute(BEGAN, instant.type, nullable=True, temporal=False),
        )
        carried = (schema[name].as_nullable() for name in self.carried)
        attributes = (*(schema[key] for key in self.keys), *its, *carried)
        names = [attribute.name for attribute in attributes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise QueryError(
                "TG103", f"a change of a context has an attribute {twice!r} of its own", hint="rename the attribute"
            )
        return Schema(attributes)

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        (reading,) = self.readings
        results: list[Row] = []
        for key, members in partitions(reading, inputs[0]):
            vector = Vector(self.contexts, self.default, self.transitions, dated=self.dated)
            candidates = sorted((self.candidate(row) for row in members), key=lambda candidate: candidate.at)
            for at, together in itertools.groupby(candidates, key=lambda candidate: candidate.at):
                for change in vector.transact(at, together):
                    window = change.window
                    carried = window.carried or (None,) * len(self.carried)
                    results.append((*key, change.context, change.change, at, window.began, *carried))
        return results

    def candidate(self, row: Row) -> Candidate:
        """A row of the input as a candidate."""
        values = dict(zip(self.input.schema.names, row, strict=True))
        at, since = instant_of(values[self.time]), values[self.since] if self.since is not None else None
        return Candidate(
            instant_of(values[self.number]),
            at,
            at if since is None else min(at, instant_of(since)),
            None if self.cause is None else values[self.cause],
            tuple(values[name] for name in self.carried),
        )

    def text(self, inputs: Sequence[str]) -> str:
        contexts = ", ".join(
            f"{c.name} by causes ({c.held_by})" if c.held_by != "transition" else c.name
            for c in self.contexts
            if c.name != self.default
        )
        by = ", ".join(self.keys) or "()"
        default = self.default if self.dated else f"{self.default} (since ever)"
        head = f"contexts {default}, {contexts} of {inputs[0]} by {by} in order of {self.time}"
        return "; ".join([head, *(f"{number}: {transition}" for number, transition in enumerate(self.transitions))])
