"""Windows whose bounds depend on the rows, or that overlap, with aggregates: node, schema, meaning and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import (
    Aggregation,
    Node,
    OrderedNode,
    Reading,
    Row,
    aggregate_attribute,
    require_attribute,
)
from tidegate.algebra.ordered.events import instant_of, partitions, require_mergeable
from tidegate.algebra.printing.plans import aggregate_text, ticks_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Term, attributes_of
from tidegate.algebra.types import DataType

#: The attributes of a window's bounds.
START: Final = "start"
END: Final = "end"


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The rows of which each is at most `gap` ticks after the one before; it ends `gap` ticks after the last."""

    gap: int

    def text(self, instants: DataType) -> str:
        return f"session({ticks_text(self.gap, instants)})"


@dataclass(frozen=True, slots=True)
class HoppingWindow:
    """(end - size, end] for each end that is a multiple of `every`, plus `offset`. `size` is a multiple of `every`."""

    size: int
    every: int
    offset: int = 0

    @property
    def grows(self) -> bool:
        """Whether it begins where one ends: then it grows until its own end."""
        return self.size == self.every

    def text(self, instants: DataType) -> str:
        return _aligned_text("hopping", self, instants)


@dataclass(frozen=True, slots=True)
class CumulatingWindow:
    """From each multiple of `size`, plus `offset`, to each multiple of `every` up to the next one, its end included.
    `size` is a multiple of `every`.
    """

    size: int
    every: int
    offset: int = 0

    @property
    def grows(self) -> bool:
        return True

    def text(self, instants: DataType) -> str:
        return _aligned_text("cumulating", self, instants)


AlignedWindow: TypeAlias = HoppingWindow | CumulatingWindow
Window: TypeAlias = SessionWindow | AlignedWindow


def _aligned_text(name: str, window: AlignedWindow, instants: DataType) -> str:
    offset = f", offset {ticks_text(window.offset, instants)}" if window.offset else ""
    return f"{name}({ticks_text(window.size, instants)}, every {ticks_text(window.every, instants)}{offset})"


@dataclass(frozen=True, slots=True, eq=False)
class Windows(OrderedNode):
    """The windows of each partition that hold a row, with aggregates of their rows.

    A window is complete at its end. Rows of one instant are peers: nothing depends on which comes first.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    window: Window
    aggregates: tuple[Aggregate, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        terms = terms_of(self.aggregates)
        read = frozenset((*self.keys, self.time)).union(*map(attributes_of, terms))
        return (Reading(self.input, self.keys, read, self.time, None, terms),)

    def over(self, inputs: tuple[Node, ...]) -> Windows:
        return replace(self, input=inputs[0])

    @property
    def completed_by(self) -> str:
        return END

    @property
    def produces(self) -> str:
        return "windows"

    @property
    def leaves_open(self) -> bool:
        """Each window has an end of its own: none is open once the last row is known."""
        return False

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in (*self.keys, self.time):
            require_attribute(name, schema)
        if not schema[self.time].temporal:
            raise QueryError("TG117", f"{self.time!r} orders no rows: it holds no instants", hint="name an instant")
        for name in (START, END):
            if name in self.keys:
                raise QueryError(
                    "TG103",
                    f"{name!r} is a bound of each window, and a key has this name",
                    hint=f'rename it first: rename({name}="...")',
                )
        taken = {*self.keys, START, END}
        for aggregate in self.aggregates:
            if aggregate.name in taken:
                raise QueryError("TG103", f"attribute {aggregate.name!r} exists already", hint="choose a new name")
            taken.add(aggregate.name)
            require_mergeable(aggregate, "windows that depend on rows or overlap", self.time, schema)
        bounds = tuple(Attribute(name, schema[self.time].type, nullable=False, temporal=True) for name in (START, END))
        computed = tuple(aggregate_attribute(aggregate, schema) for aggregate in self.aggregates)
        return Schema((*(schema[key] for key in self.keys), *bounds, *computed))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        (reading,) = self.readings
        schema = self.input.schema
        place = schema.names.index(self.time)
        results: list[Row] = []
        for key, members in partitions(reading, inputs[0]):
            times = [instant_of(row[place]) for row in members]
            for start, end in bounds_of(self.window, times):
                inside = [
                    row for row, time in zip(members, times, strict=True) if _holds(self.window, start, end, time)
                ]
                values = tuple(aggregation(aggregate, inside, schema) for aggregate in self.aggregates)
                results.append((*key, start, end, *values))
        return results

    def text(self, inputs: Sequence[str]) -> str:
        instants = self.input.schema[self.time].type
        computed = ", ".join(f"{aggregate.name} = {aggregate_text(aggregate)}" for aggregate in self.aggregates)
        keys = ", ".join(self.keys) or "()"
        window = self.window.text(instants)
        return f"windows {window} of {inputs[0]} by {keys} in order of {self.time}: {computed or 'no aggregates'}"


def terms_of(aggregates: Sequence[Aggregate]) -> tuple[Term, ...]:
    """The terms that aggregates evaluate for each row."""
    terms = (term for aggregate in aggregates for term in (aggregate.argument, aggregate.by) if term is not None)
    return tuple(dict.fromkeys(terms))


def bounds_of(window: Window, times: Sequence[int]) -> list[tuple[int, int]]:
    """The bounds of all windows that hold one of these instants."""
    if isinstance(window, SessionWindow):
        ordered = sorted(times)
        firsts = [at for at, time in enumerate(ordered) if at == 0 or time - ordered[at - 1] > window.gap]
        lasts = [*(at - 1 for at in firsts[1:]), len(ordered) - 1]
        return [(ordered[first], ordered[last] + window.gap) for first, last in zip(firsts, lasts, strict=True)]
    found: dict[int, int] = {}
    for time in times:
        end = -((window.offset - time) // window.every) * window.every + window.offset
        while (start := start_of(window, end)) < time:
            found[end] = start
            end += window.every
    return [(start, end) for end, start in found.items()]


def start_of(window: AlignedWindow, end: int) -> int:
    """Where the window with that end begins."""
    if isinstance(window, HoppingWindow):
        return end - window.size
    return (end - 1 - window.offset) // window.size * window.size + window.offset


def _holds(window: Window, start: int, end: int, time: int) -> bool:
    """Whether a window holds an instant. No other session begins before one has ended."""
    return start <= time <= end if isinstance(window, SessionWindow) else start < time <= end
