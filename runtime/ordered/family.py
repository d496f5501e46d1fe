"""The protocol of ordered operators: the operator of a query, batch after batch, and its family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

import polars as pl

from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.time import Extended
from tidegate.analysis.state.thresholds import Extents
from tidegate.runtime.arrays import BoolArray
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.ordered.state_tables import StateTables
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows

#: Hears how many matches the operator at work is about to make rows of.
HEARS: Final[ContextVar[Callable[[int], None] | None]] = ContextVar("HEARS", default=None)
N = TypeVar("N", bound=OrderedNode)
Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Span:
    """Partitions of an operator by their numbers, from `first` up to `end`; numbers are of a `numbering`."""

    numbering: int
    first: int
    end: int


class Operator:
    """The operator of a query between two increments. It is an immutable value, except for what `settled` says.

    An increment may be evaluated again from the same operator, until what it has made counts.
    """

    __slots__ = ()

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        """The input of an increment: events later than all read before, up to the instant where all have arrived, and
        intervals.
        """
        raise NotImplementedError

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, Rows]:
        """The operator after all events up to `until`, and the rows that are complete since `after`.

        `close_at`: where what is open ends, once there are no more events. `EvaluationError` TG304 for events of which
        nothing says which comes first, TG301 for a sum that does not fit.
        """
        raise NotImplementedError

    def evaluable(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """The input of an increment without events for which a term has no value, and these."""
        raise NotImplementedError

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """The input of an increment without ties, and the events that are left out."""
        raise NotImplementedError

    def noting(self, noted: list[SetAside] | None) -> Self:
        """The operator that notes sums that overflow, and yields NULL for them. With None they are errors."""
        raise NotImplementedError

    def finding_after(self, instant: Extended) -> Self | None:
        """The operator whose next increment yields only the rows that are complete after an instant. None where that
        takes as long as to yield all.
        """
        return None

    @property
    def search_seconds(self) -> float | None:
        """What the last increment took to find its rows, of which `finding_after` leaves out a part; None as there."""
        return None

    def needs(self, leaf: int, rows: pl.DataFrame, reached: Extended) -> BoolArray | None:
        """Which of these stored rows of a leaf may have a part in what is complete after `reached`, up to where the
        operator has read; None: all of them.
        """
        return None

    def letting_go(self, events: Sequence[Rows], until: Extended) -> Self:
        """The operator after an increment with these events without partitions to which no row comes any more, and
        that owe none.
        """
        return self

    def emptied(self) -> Self:
        """The operator's remaining state once there are no more events."""
        raise NotImplementedError

    def tables(self) -> Mapping[str, Any]:
        """The operator's state, as Arrow tables by name."""
        raise NotImplementedError

    def changes(self) -> Mapping[str, Any] | None:
        """The changes of the last increment to these tables; None where they are not known."""
        raise NotImplementedError

    @property
    def is_unchanged(self) -> bool:
        """Whether the last increment is known to have changed nothing of these tables."""
        return False

    def span(self) -> Span | None:
        """All partitions; None where the operator has no numbers for them."""
        return None

    def tables_in(self, span: Span) -> Mapping[str, Any]:
        """The rows of some partitions in the operator's tables."""
        raise NotImplementedError

    def described(self) -> StateTables:
        """The tables that the operator can have, by name."""
        raise NotImplementedError

    def bounds(self, tables: Mapping[str, Any]) -> Mapping[str, Extents]:
        """The least and greatest instants in some of the tables, by kind of row and column."""
        return {}

    def counts(self) -> Mapping[str, int]:
        """The number of stored rows by kind."""
        raise NotImplementedError

    def orders(self) -> Sequence[str]:
        """The order in which the operator searches, for people, and the reason."""
        return ()


@contextmanager
def heard(hears: Callable[[int], None]) -> Iterator[None]:
    """The block of an increment of an operator, of whose matches somebody hears how many there are."""
    token = HEARS.set(hears)
    try:
        yield
    finally:
        HEARS.reset(token)


def tell_matches(count: int) -> None:
    """Says of how many matches rows are about to be made, to whoever hears it."""
    if (hears := HEARS.get()) is not None:
        hears(count)


class Family(Generic[N]):
    """A family of ordered operators, as the runtime sees it. `node` is its class of nodes."""

    node: type[N]

    def start(self, ordered: OrderedStep) -> Operator:
        """The operator before the first event."""
        raise NotImplementedError

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> Operator:
        """The operator with its stored state, for the progress `reached`."""
        raise NotImplementedError
