"""What runs a family of ordered operators: the operator of a query, batch after batch, and the family it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

import polars as pl

from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.time import Extended
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.eval.small.increment import Rows
from tidegate.runtime.ordered.state_tables import StateTables
from tidegate.runtime.plan.steps import OrderedStep

N = TypeVar("N", bound=OrderedNode)
Tables = Mapping[str, pl.DataFrame]
Bounds = Mapping[str, tuple[int, int]]


class Operator:
    """The operator of a query between two increments: an immutable value, save for what `settled` says.

    An increment may be evaluated again from the same operator, until what it has made counts.
    """

    __slots__ = ()

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        """What it reads in an increment: the events later than all read before, up to how far all have arrived, and intervals."""
        raise NotImplementedError

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, pl.DataFrame]:
        """The operator after all events up to `until`, and the rows that are complete since `after`.

        `close_at`: where what is open ends, once there are no more events. `EvaluationError` TG304 for events of which nothing
        says which comes first, TG301 for a sum that does not fit.
        """
        raise NotImplementedError

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """What it reads in an increment without ties, and the events that are left out."""
        raise NotImplementedError

    def noting(self, noted: list[SetAside] | None) -> Self:
        """The operator whose sums that do not fit are NULL, and noted; None: they are errors."""
        raise NotImplementedError

    def emptied(self) -> Self:
        """What is left of it once there are no more events."""
        raise NotImplementedError

    def tables(self) -> Mapping[str, Any]:
        """What is kept, as Arrow tables by name."""
        raise NotImplementedError

    def changes(self) -> Mapping[str, Any] | None:
        """What the last increment has changed in them; None where it is not known."""
        raise NotImplementedError

    def described(self) -> StateTables:
        """The tables that it can have, by name."""
        raise NotImplementedError

    def bounds(self, tables: Mapping[str, Any]) -> Mapping[str, Bounds]:
        """Least and greatest instants of what is in some of them, by what it is and by column."""
        return {}

    def counts(self) -> Mapping[str, int]:
        """Rows by what they are."""
        raise NotImplementedError

    def orders(self) -> Sequence[str]:
        """In which order what it combines is looked for, for people, and why."""
        return ()


class Family(Generic[N]):
    """A family of ordered operators towards the runtime. `node` is its class of nodes."""

    node: type[N]

    def start(self, ordered: OrderedStep) -> Operator:
        """The operator before the first event."""
        raise NotImplementedError

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> Operator:
        """The operator with what was kept when progress was `reached`."""
        raise NotImplementedError
