"""Windows whose bounds depend on the rows, or that overlap, with aggregates: the node, its schema and its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.nodes import (
    Aggregation,
    Node,
    OrderedNode,
    Reading,
    Row,
    aggregate_attribute,
    require_attribute,
)
from tidegate.algebra.ordered.events import first_or_last, in_order, instant_of, partitions
from tidegate.algebra.ordered.windows.kinds import CountWindow, LandmarkWindow, OpenedWindow, Window, shows_empty
from tidegate.algebra.ordered.windows.meaning import windows_in
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Term, attributes_of
from tidegate.algebra.types import DataType, Kind

#: The attributes of a window's bounds, and when it is known which rows it has, where that may be later than its end.
START: Final = "start"
END: Final = "end"
COMPLETE: Final = "complete"


@dataclass(frozen=True, slots=True, eq=False)
class Windows(OrderedNode):
    """The windows of each partition that hold a row, with aggregates of their rows.

    A window is complete at its end. Rows of one instant are peers: nothing depends on which comes first, unless rows
    are counted. Then `tie` orders them, and first and last values by time go by it, too. With windows without rows
    there is `complete`: such a window is complete when the next row comes that is in one.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    window: Window
    aggregates: tuple[Aggregate, ...]
    tie: str | None = None

    @property
    def readings(self) -> tuple[Reading, ...]:
        terms = terms_of(self.aggregates)
        tie = () if self.tie is None else (self.tie,)
        read = frozenset((*self.keys, self.time, *tie, *self._marks)).union(*map(attributes_of, terms))
        return (Reading(self.input, self.keys, read, self.time, self.tie, terms),)

    def over(self, inputs: tuple[Node, ...]) -> Windows:
        return replace(self, input=inputs[0])

    @property
    def completed_by(self) -> str:
        return COMPLETE if shows_empty(self.window) else END

    @property
    def _marks(self) -> tuple[str, ...]:
        """The attributes that say of each row when its window was opened, and whether it closes it."""
        return (self.window.opened, self.window.closes) if isinstance(self.window, OpenedWindow) else ()

    @property
    def bounds(self) -> tuple[str, ...]:
        """The attributes of a row beside keys and aggregates."""
        return (START, END, COMPLETE) if shows_empty(self.window) else (START, END)

    @property
    def keeps_rows(self) -> bool:
        """Whether an aggregate needs every value of a window: the rows of open ones are kept then."""
        return not all(aggregate.entry.merges for aggregate in self.aggregates)

    def goes_by_order(self, aggregate: Aggregate) -> bool:
        """Whether the aggregate is the first or last value in the order of rows, which `tie` says, too."""
        is_end = aggregate.entry.form in (Form.EARLIEST, Form.LATEST)
        return self.tie is not None and is_end and aggregate.by == Attr(self.time)

    @property
    def produces(self) -> str:
        return "windows"

    @property
    def leaves_open(self) -> bool:
        """Each window has an end of its own: none is open once the last row is known."""
        return False

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in (*self.keys, self.time, *(() if self.tie is None else (self.tie,)), *self._marks):
            require_attribute(name, schema)
        if not schema[self.time].temporal:
            raise QueryError("TG117", f"{self.time!r} orders no rows: it holds no instants", hint="name an instant")
        for name in self.bounds:
            if name in self.keys:
                raise QueryError(
                    "TG103",
                    f"{name!r} is an attribute of each window, and a key has this name",
                    hint=f'rename it first: rename({name}="...")',
                )
        taken = {*self.keys, *self.bounds}
        for aggregate in self.aggregates:
            if aggregate.name in taken:
                raise QueryError("TG103", f"attribute {aggregate.name!r} exists already", hint="choose a new name")
            taken.add(aggregate.name)
            if isinstance(self.window, LandmarkWindow):
                _require_partial(aggregate, schema[self.time].type)
        start, end, *complete = (
            Attribute(name, schema[self.time].type, nullable=False, temporal=True) for name in self.bounds
        )
        computed = tuple(aggregate_attribute(aggregate, schema) for aggregate in self.aggregates)
        return Schema((*(schema[key] for key in self.keys), start, end, *computed, *complete))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        (reading,) = self.readings
        schema = self.input.schema
        place = schema.names.index(self.time)
        results: list[Row] = []
        for key, found in partitions(reading, inputs[0]):
            members = in_order(reading, found) if isinstance(self.window, CountWindow) else found
            opened = [self._opened(row) for row in members] if self._marks else []
            for window in windows_in(self.window, [instant_of(row[place]) for row in members], opened):
                inside = [members[at] for at in window.rows]
                values = tuple(
                    first_or_last(aggregate, inside, schema, aggregation)
                    if self.goes_by_order(aggregate)
                    else aggregation(aggregate, inside, schema)
                    for aggregate in self.aggregates
                )
                complete = (window.complete,) if shows_empty(self.window) else ()
                results.append((*key, window.start, window.end, *values, *complete))
        return results

    def _opened(self, row: Row) -> tuple[int, bool]:
        """When the window of a row was opened, and whether the row closes it."""
        opened, closes = (row[self.input.schema.names.index(name)] for name in self._marks)
        return instant_of(opened), closes is True

    def text(self, inputs: Sequence[str]) -> str:
        instants = self.input.schema[self.time].type
        computed = ", ".join(
            f"{aggregate.name} = {aggregate_text(aggregate, self.tie if self.goes_by_order(aggregate) else None)}"
            for aggregate in self.aggregates
        )
        keys = ", ".join(self.keys) or "()"
        window = self.window.text(instants)
        order = self.time if self.tie is None else f"{self.time}, {self.tie}"
        return f"windows {window} of {inputs[0]} by {keys} in order of {order}: {computed or 'no aggregates'}"


def _require_partial(aggregate: Aggregate, instants: DataType) -> None:
    """`QueryError` TG132 for an aggregate that keeps every value of all rows since an instant."""
    if not aggregate.entry.merges:
        size, every = ('"1d"', '"1h"') if instants.kind is Kind.TIMESTAMP else ("100", "10")
        raise QueryError(
            "TG132",
            f"{aggregate.function.value} keeps every value, and the rows since an instant are more and more",
            hint=f"take windows that begin anew: tg.cumulating({size}, every={every}); or a sketch, such as "
            "tg.approx_distinct",
        )


def terms_of(aggregates: Sequence[Aggregate]) -> tuple[Term, ...]:
    """The terms that aggregates evaluate for each row."""
    return tuple(dict.fromkeys(term for aggregate in aggregates for term in aggregate.terms))
