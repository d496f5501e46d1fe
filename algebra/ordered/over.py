"""Rows with values of the rows around them in order of time, as SQL's OVER has them: node, schema, meaning and text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import evaluator, key_of
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
from tidegate.algebra.printing.plans import aggregate_text, ticks_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Lit, Term, Value, attributes_of
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT, BOOLEAN, DataType, Kind

#: The attribute that says when a row was complete, of rows that wait for rows after them.
COMPLETE: Final = "complete"
#: A constant of each type, as users write it.
_CONSTANTS: Final = MappingProxyType(
    {
        Kind.BOOLEAN: "False",
        Kind.BIGINT: "0",
        Kind.DOUBLE: "0.0",
        Kind.STRING: '"none"',
        Kind.TIMESTAMP: '"2026-01-01T00:00Z"',
        Kind.DATE: '"2026-01-01"',
        Kind.DURATION: '"5m"',
        Kind.DECIMAL: 'Decimal("0")',
        Kind.NULL: "None",
    }
)


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of a partition that a value of a row is computed from, this row among them.

    rows: so many rows before it and after it. range: rows of which the instant lies at most so many ticks before or
    after its own. `before` None: from the first row on.
    """

    unit: Literal["rows", "range"] = "range"
    before: int | None = None
    after: int = 0

    def text(self, instants: DataType) -> str:
        """The frame as SQL writes it; empty for all rows up to this one."""
        if self == Frame():
            return ""

        def amount(number: int) -> str:
            return str(number) if self.unit == "rows" else ticks_text(number, instants)

        start = "unbounded" if self.before is None else amount(self.before)
        end = f"{amount(self.after)} following" if self.after else "current row"
        return f" {self.unit} between {start} preceding and {end}"


@dataclass(frozen=True, slots=True)
class RowNumber:
    """The number of the row in its partition, from 1 on."""

    name: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The argument's value in the row that is `offset` rows after this one, or before it where that is negative.

    `default` where there is no such row, or none that is at most `within` ticks away. A value that is NULL stays NULL.
    """

    name: str
    argument: Term
    offset: int
    within: int | None = None
    default: Lit | None = None


@dataclass(frozen=True, slots=True)
class PreviousDifferent:
    """The argument's value in the last row before this one where it is another one, NULL being a value like others."""

    name: str
    argument: Term


@dataclass(frozen=True, slots=True)
class Reported:
    """Whether the row is the first of its partition, or comes more than `within` ticks after the last one of which this
    was true; None: the first one only.
    """

    name: str
    within: int | None = None


@dataclass(frozen=True, slots=True)
class NextDifferent:
    """The argument's value in the first row after this one where it is another one, at most `within` ticks away."""

    name: str
    argument: Term
    within: int | None = None


@dataclass(frozen=True, slots=True)
class Nth:
    """The argument's value in the row with that number in the frame, from 1 on; NULL where there is none."""

    name: str
    argument: Term
    number: int
    frame: Frame


@dataclass(frozen=True, slots=True)
class FrameAggregate:
    """An aggregate of the rows of a frame."""

    aggregate: Aggregate
    frame: Frame

    @property
    def name(self) -> str:
        return self.aggregate.name


OverColumn: TypeAlias = RowNumber | Reported | Neighbour | PreviousDifferent | NextDifferent | Nth | FrameAggregate


@dataclass(frozen=True, slots=True, eq=False)
class Over(OrderedNode):
    """The rows of a relation with further columns, which say something of the rows before and after in their partition.

    Rows are ordered by `time`, ties by `tie`. Without a tie-break rows of one instant are peers: a frame by range has
    all of them or none; for every other column they are an error, as nothing says which comes first. Equal rows are
    one where all columns only say which rows are reported.

    A column may read others before it that only look back: their values of a row are known as soon as the row is.

    A row is complete at its own instant where no column looks ahead. Else `complete` says when: once all rows are known
    that its columns look at. A row that still waits when the input ends is not reported.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    tie: str | None
    columns: tuple[OverColumn, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        read = frozenset(self.input.schema.names)
        terms = tuple(term for column in self.columns for term in terms_of(column) if attributes_of(term) <= read)
        return (Reading(self.input, self.keys, read, self.time, self.tie, terms),)

    def over(self, inputs: tuple[Node, ...]) -> Over:
        return replace(self, input=inputs[0])

    @property
    def known(self) -> Schema:
        """What terms of columns may read: the attributes of rows, and columns that only look back."""
        columns = (self.schema[column.name] for column in self.columns if wait_of(column) is None)
        return Schema((*self.input.schema.attributes, *columns))

    @property
    def waits(self) -> bool:
        """Whether rows wait for rows after them."""
        return any(wait_of(column) is not None for column in self.columns)

    @property
    def needs_order(self) -> bool:
        """Whether a column depends on which of several rows of one instant comes first. With a tie-break all do."""
        return self.tie is not None or not all(
            isinstance(column, FrameAggregate)
            and column.frame.unit == "range"
            and not self.goes_by_order(column.aggregate)
            for column in self.columns
        )

    @property
    def merges_equal(self) -> bool:
        """Whether rows that are equal in all attributes are one: where it does not matter which of them comes first."""
        return all(isinstance(column, Reported) for column in self.columns)

    def goes_by_order(self, aggregate: Aggregate) -> bool:
        """Whether the aggregate is the first or last value in the order of rows."""
        return aggregate.by == Attr(self.time) and aggregate.entry.form in (Form.EARLIEST, Form.LATEST)

    @property
    def leaves_open(self) -> bool:
        return self.waits

    @property
    def completed_by(self) -> str:
        return COMPLETE if self.waits else self.time

    @property
    def produces(self) -> str:
        return "rows"

    def infer_schema(self) -> Schema:
        schema = self.input.schema
        for name in (*self.keys, self.time, *(() if self.tie is None else (self.tie,))):
            require_attribute(name, schema)
        if not schema[self.time].temporal:
            raise QueryError("TG117", f"{self.time!r} orders no rows: it holds no instants", hint="name an instant")
        taken = {*schema}
        for column in self.columns:
            if column.name in taken:
                raise QueryError("TG103", f"attribute {column.name!r} exists already", hint="choose a new name")
            taken.add(column.name)
            if isinstance(column, FrameAggregate):
                _require_possible(column, schema[self.time].type)
        computed: list[Attribute] = []
        known = {attribute.name: attribute for attribute in schema.attributes}
        for column in self.columns:
            computed.append(_attribute(column, known))
            if wait_of(column) is None:
                known[column.name] = computed[-1]
        if not self.waits:
            return Schema((*schema.attributes, *computed))
        if COMPLETE in taken:
            raise QueryError(
                "TG103",
                f"{COMPLETE!r} says when a row is complete that looks ahead, and there is such an attribute",
                hint=f'rename it first: rename({COMPLETE}="...")',
            )
        complete = Attribute(COMPLETE, schema[self.time].type, nullable=False, temporal=True)
        return Schema((*schema.attributes, *computed, complete))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        (reading,) = self.readings
        place = self.input.schema.names.index(self.time)
        results: list[Row] = []
        for _, found in partitions(reading, inputs[0]):
            members = list({tuple(map(key_of, row)): row for row in found}.values()) if self.merges_equal else found
            ordered = in_order(reading, members) if self.needs_order else sorted(members, key=lambda row: row[place])  # type: ignore[arg-type, return-value]  # instants
            seen = _Partition(self, self.known, ordered, [instant_of(row[place]) for row in ordered], aggregation)
            results += [row for at in range(len(ordered)) if (row := seen.row(at)) is not None]
        return results

    def text(self, inputs: Sequence[str]) -> str:
        order = self.time if self.tie is None else f"{self.time}, {self.tie}"
        computed = ", ".join(
            f"{column.name} = {column_text(column, self.input.schema[self.time].type)}" for column in self.columns
        )
        return f"over {inputs[0]} by {', '.join(self.keys) or '()'} in order of {order}: {computed}"


def terms_of(column: OverColumn) -> tuple[Term, ...]:
    """The terms that a column evaluates for each row."""
    match column:
        case RowNumber() | Reported():
            return ()
        case Neighbour() | PreviousDifferent() | NextDifferent() | Nth():
            return (column.argument,)
        case FrameAggregate(aggregate):
            return aggregate.terms
        case _:
            assert_never(column)


def with_terms(column: OverColumn, changed: Callable[[Term], Term]) -> OverColumn:
    """The column with its terms changed."""
    match column:
        case RowNumber() | Reported():
            return column
        case Neighbour() | PreviousDifferent() | NextDifferent() | Nth():
            return replace(column, argument=changed(column.argument))
        case FrameAggregate(aggregate):
            return replace(column, aggregate=aggregate.with_terms(changed))
        case _:
            assert_never(column)


def with_name(column: OverColumn, name: str) -> OverColumn:
    """The column with another name."""
    if isinstance(column, FrameAggregate):
        return replace(column, aggregate=replace(column.aggregate, name=name))
    return replace(column, name=name)


@dataclass(frozen=True, slots=True)
class Wait:
    """What a row waits for: so many rows after it, or one in which a term has another value; and that so many ticks
    have passed. None: nothing of this kind.
    """

    rows: int | None
    ticks: int | None
    different: Term | None = None


def wait_of(column: OverColumn) -> Wait | None:
    """What rows wait for because of a column; None where it looks back."""
    match column:
        case Neighbour(_, _, offset, within) if offset > 0:
            return Wait(offset, within)
        case NextDifferent(_, argument, within):
            return Wait(None, within, argument)
        case Nth(frame=frame) | FrameAggregate(frame=frame) if frame.after > 0:
            return Wait(frame.after, None) if frame.unit == "rows" else Wait(None, frame.after)
        case _:
            return None


def column_text(column: OverColumn, instants: DataType) -> str:
    """A column as SQL writes it."""
    match column:
        case RowNumber():
            return "row_number()"
        case Reported(_, within):
            return "is first" if within is None else f"is first within {ticks_text(within, instants)}"
        case Neighbour(_, argument, offset, within, default):
            given = [term_text(argument), str(abs(offset)), *([] if default is None else [term_text(default)])]
            bound = "" if within is None else f" within {ticks_text(within, instants)}"
            return f"{'lag' if offset < 0 else 'lead'}({', '.join(given)}){bound}"
        case PreviousDifferent(_, argument):
            return f"previous_different({term_text(argument)})"
        case NextDifferent(_, argument, within):
            bound = "" if within is None else f" within {ticks_text(within, instants)}"
            return f"next_different({term_text(argument)}){bound}"
        case Nth(_, argument, number, frame):
            return f"nth({term_text(argument)}, {number}){frame.text(instants)}"
        case FrameAggregate(aggregate, frame):
            return f"{aggregate_text(aggregate)}{frame.text(instants)}"
        case _:
            assert_never(column)


def _require_possible(column: FrameAggregate, instants: DataType) -> None:
    """`QueryError` TG132 for an aggregate that keeps every value of more and more rows."""
    function, entry = column.aggregate.function.value, column.aggregate.entry
    if not entry.merges and column.frame.before is None:
        span = '"1h"' if instants.kind is Kind.TIMESTAMP else "10"
        raise QueryError(
            "TG132",
            f"{function} keeps every value, and the rows before a row are more and more",
            hint=f"say how far it looks back: over(..., range={span}) or over(..., rows=(9, 0))",
        )


def _attribute(column: OverColumn, schema: Mapping[str, Attribute]) -> Attribute:
    """The attribute of a column. It is never temporal: what comes from other rows may be NULL."""
    match column:
        case RowNumber(name):
            return Attribute(name, BIGINT, nullable=False)
        case Reported(name):
            return Attribute(name, BOOLEAN, nullable=False)
        case Neighbour(name, argument, _, _, default):
            type_ = term_type(argument, schema)
            if default is not None and default.type != type_:
                raise QueryError(
                    "TG102",
                    f"the default of {name} is {default.type}, and its values are {type_}",
                    hint=f"write a constant that {type_} holds exactly, such as {_CONSTANTS[type_.kind]}; or cast the "
                    "values",
                )
            return Attribute(name, type_)
        case PreviousDifferent(name, argument) | NextDifferent(name, argument) | Nth(name, argument):
            return Attribute(name, term_type(argument, schema))
        case FrameAggregate(aggregate):
            return aggregate_attribute(aggregate, schema)
        case _:
            assert_never(column)


@dataclass(frozen=True, slots=True)
class _Partition:
    """The rows of one partition in their order, with the instants of all."""

    node: Over
    known: Schema
    events: list[Row]
    times: list[int]
    aggregation: Aggregation
    computed: dict[tuple[str, int], Value] = field(default_factory=dict)
    """Values of columns that others read, by column and place."""

    def row(self, at: int) -> Row | None:
        """The result row of one row; None where it waits for rows that never come."""
        complete = [self.complete(wait, at) for column in self.node.columns if (wait := wait_of(column)) is not None]
        if None in complete:
            return None
        values = tuple(self.value(column, at) for column in self.node.columns)
        last = (max(instant for instant in complete if instant is not None),) if complete else ()
        return (*self.events[at], *values, *last)

    def complete(self, wait: Wait, at: int) -> int | None:
        """When all is known that a row waits for; None: never."""
        known = [] if wait.ticks is None else [self.times[at] + wait.ticks]
        if wait.rows is not None and at + wait.rows < len(self.events):
            known.append(self.times[at + wait.rows])
        if wait.different is not None and (there := self.next_different(wait.different, at)) is not None:
            known.append(self.times[there])
        return min(known, default=None)

    def next_different(self, term: Term, at: int) -> int | None:
        """The place of the first row after this one in which the term has another value."""
        this = key_of(self.of(term, at))
        return next((place for place in range(at, len(self.events)) if key_of(self.of(term, place)) != this), None)

    def value(self, column: OverColumn, at: int) -> Value:
        match column:
            case RowNumber():
                return at + 1
            case Reported(_, within):
                return self.reported(within, at)
            case Neighbour(_, argument, offset, within, default):
                there = at + offset
                exists = 0 <= there < len(self.events)
                if exists and (within is None or abs(self.times[there] - self.times[at]) <= within):
                    return self.of(argument, there)
                return None if default is None else default.value
            case PreviousDifferent(_, argument):
                this = key_of(self.of(argument, at))
                values = [self.of(argument, before) for before in range(at)]
                return next((value for value in reversed(values) if key_of(value) != this), None)
            case NextDifferent(_, argument, within):
                after = self.next_different(argument, at)
                if after is None or (within is not None and self.times[after] - self.times[at] > within):
                    return None
                return self.of(argument, after)
            case Nth(_, argument, number, frame):
                within_frame = self.frame(frame, at)
                return self.of(argument, within_frame[number - 1]) if number <= len(within_frame) else None
            case FrameAggregate(aggregate, frame):
                return self.aggregated(aggregate, self.frame(frame, at))
            case _:
                assert_never(column)

    def reported(self, within: int | None, at: int) -> bool:
        """Whether the row comes so long after the last one that was reported, one after the other from the first on."""
        last = 0
        for place in range(1, at + 1):
            if within is not None and self.times[place] - self.times[last] > within:
                last = place
        return last == at

    def of(self, term: Term, at: int) -> Value:
        values = dict(zip(self.known.names, self.event(at, [term]), strict=True))
        return evaluator(resolve(term, self.known))(values)

    def event(self, at: int, terms: Sequence[Term]) -> Row:
        """A row with the columns that terms read, NULL in the place of others."""
        read = frozenset[str]().union(*map(attributes_of, terms))
        names = self.known.names[len(self.node.input.schema) :]
        return (*self.events[at], *(self.column(name, at) if name in read else None for name in names))

    def column(self, name: str, at: int) -> Value:
        """The value of a column by its name."""
        if (name, at) not in self.computed:
            column = next(column for column in self.node.columns if column.name == name)
            self.computed[name, at] = self.value(column, at)
        return self.computed[name, at]

    def frame(self, frame: Frame, at: int) -> list[int]:
        """The places of the rows in the frame of a row."""
        places = range(len(self.events))
        if frame.unit == "rows":
            return [p for p in places if (frame.before is None or p >= at - frame.before) and p <= at + frame.after]
        low = None if frame.before is None else self.times[at] - frame.before
        high = self.times[at] + frame.after
        inside = [p for p in places if (low is None or self.times[p] >= low) and self.times[p] <= high]
        # With a tie-break a row has no peers: its frame ends with itself.
        return [p for p in inside if p <= at] if self.node.tie is not None and not frame.after else inside

    def aggregated(self, aggregate: Aggregate, places: list[int]) -> Value:
        events = [self.event(place, aggregate.terms) for place in places]
        if not self.node.goes_by_order(aggregate):
            return self.aggregation(aggregate, events, self.known)
        return first_or_last(aggregate, events, self.known, self.aggregation)
