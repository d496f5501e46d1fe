"""What is kept of a row for those after it: its instant, arguments of columns, and values over all rows up to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Final, assert_never

import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.ordered.over import (
    FrameAggregate,
    Neighbour,
    NextDifferent,
    Nth,
    Over,
    OverColumn,
    PreviousDifferent,
    Reported,
    RowNumber,
    terms_of,
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Term, attributes_of
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, DOUBLE, STRING, DataType
from tidegate.runtime.eval.columns import polars_type

TIME: Final = "time"


class Kind(Enum):
    """Values over all rows up to one that are no aggregates."""

    ROWS = "rows"
    DIFFERENT = "different"
    NTH = "nth"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Running:
    """A value over all rows of a partition up to a row. Columns of the same value share it.

    `by` is the order of a first or last value, None for the order of rows. `number` is that of an nth row, or the ticks
    within which a row is not reported again, below zero: never. `sketched` is a sketch's aggregate, without a name.
    """

    what: Form | Kind
    argument: Term | None = None
    by: Term | None = None
    number: int = 0
    sketched: Aggregate | None = None


@dataclass(frozen=True)
class OverLayout:
    """The columns of kept rows."""

    node: Over

    @cached_property
    def arguments(self) -> tuple[Term, ...]:
        """The terms that are evaluated for each row, without the instant."""
        terms = (term for column in self.node.columns for term in terms_of(column))
        return tuple(dict.fromkeys(term for term in terms if term != Attr(self.node.time)))

    @cached_property
    def dependent(self) -> tuple[Term, ...]:
        """Those arguments that read columns, each after those that its columns need."""
        own = set(self.node.input.schema)
        return tuple(term for term in self.arguments if not attributes_of(term) <= own)

    @cached_property
    def kept_arguments(self) -> tuple[Term, ...]:
        """Those that are kept with a row: of the others later rows need running values alone."""
        kept = {term for column in self.node.columns if self.looks_at_rows(column) for term in terms_of(column)}
        return tuple(term for term in self.arguments if term in kept)

    def looks_at_rows(self, column: OverColumn) -> bool:
        """Whether a column needs the rows before a row themselves, beside running values."""
        return isinstance(column, PreviousDifferent) or self.running(column) is None

    @cached_property
    def known(self) -> Schema:
        """What arguments read."""
        return self.node.known

    @cached_property
    def runnings(self) -> tuple[Running, ...]:
        runnings = (self.running(column) for column in self.node.columns)
        return tuple(dict.fromkeys(running for running in runnings if running is not None))

    def argument(self, term: Term) -> str:
        """The column of a term."""
        return TIME if term == Attr(self.node.time) else f"argument {self.arguments.index(term)}"

    def part(self, running: Running, name: str) -> str:
        return f"running {self.runnings.index(running)}.{name}"

    def attribute(self, name: str) -> str:
        """An attribute of a row that waits."""
        return f"row {name}"

    def type_of(self, term: Term) -> DataType:
        return term_type(term, self.known)

    def form(self, aggregate: Aggregate) -> Form:
        assert aggregate.argument is not None
        return aggregate.entry.form_of(self.type_of(aggregate.argument))

    def running(self, column: OverColumn) -> Running | None:
        """What is kept running for a column; None where it needs the rows themselves."""
        match column:
            case RowNumber():
                return Running(Kind.ROWS)
            case Reported(_, within):
                return Running(Kind.REPORTED, number=-1 if within is None else within)
            case PreviousDifferent(_, argument):
                return Running(Kind.DIFFERENT, argument)
            case Neighbour() | NextDifferent():
                return None
            case Nth(_, argument, number, frame):
                return Running(Kind.NTH, argument, number=number) if frame.before is None else None
            case FrameAggregate(aggregate, frame):
                if frame.before is not None:
                    return None
                if aggregate.argument is None:
                    return Running(Kind.ROWS)
                if aggregate.entry.form is Form.SKETCH:
                    return Running(Form.SKETCH, aggregate.argument, sketched=replace(aggregate, name=""))
                by = None if self.node.goes_by_order(aggregate) else aggregate.by
                return Running(self.form(aggregate), aggregate.argument, by)
            case _:
                assert_never(column)

    def parts(self, running: Running) -> Mapping[str, DataType]:
        """The parts of a running value, with their types."""
        match running.what:
            case Kind.ROWS | Form.COUNT:
                return {"n": BIGINT}
            case Kind.REPORTED:
                return {"at": BIGINT, "is": BIGINT}
            case Form.INTEGER_SUM:
                return {"hi": BIGINT, "lo": BIGINT, "n": BIGINT}
            case Form.DOUBLE_SUM:
                return {"sum": DOUBLE, "comp": DOUBLE, "n": BIGINT}
            case Form.SKETCH:
                return {"v": self.result(running), "sketch": STRING}
            case _:
                assert running.argument is not None
                value = {"v": self.type_of(running.argument)}
                if running.what is Kind.NTH:
                    return {"n": BIGINT, **value}
                return value if running.by is None else {"by": self.type_of(running.by), **value}

    def result(self, running: Running) -> DataType:
        """The type of what a running sketch says."""
        assert running.argument is not None
        assert running.sketched is not None
        result = running.sketched.entry.result(self.type_of(running.argument))
        assert result is not None
        return result

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of kept rows, beside the keys of their partitions."""
        columns = {TIME: BIGINT}
        columns |= {self.argument(term): self.type_of(term) for term in self.kept_arguments}
        for running in self.runnings:
            columns |= {self.part(running, name): type_ for name, type_ in self.parts(running).items()}
        if self.node.waits:
            columns |= {self.attribute(a.name): a.type for a in self.node.input.schema.attributes}
        return {name: polars_type(type_) for name, type_ in columns.items()}


@lru_cache(maxsize=256)
def layout_of(node: Over) -> OverLayout:
    """The layout of an operator's kept rows."""
    return OverLayout(node)
