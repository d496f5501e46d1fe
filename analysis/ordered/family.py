"""The protocol of families of ordered operators in the analysis, and the builder of their zones."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from tidegate.algebra.errors import Problem
from tidegate.algebra.formulas import And, Compare, Formula, Var
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Node, OrderedNode, Reading, occurrences
from tidegate.algebra.ordered.summary import Halves, Summary
from tidegate.algebra.program import Query
from tidegate.algebra.row_wise import multiplying_tables
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.terms import Term
from tidegate.analysis.zones.federation import Federation, Label
from tidegate.analysis.zones.instants import relaid
from tidegate.analysis.zones.zone import Conflict, Copy, Edge, Hidden, Layout, Zone, reduced

#: Instants while zones are built: of a row, and of the event that completes one. No attribute of a user has such a
#: name.
ROW: Final = "\0row"
COMPLETING: Final = "\0completing"

N = TypeVar("N", bound=OrderedNode)
#: The zones of a node over the streams as they are declared; None where it has none, or nobody knows.
Analysis = Callable[[Node], Federation | None]


class ZoneBuilder(Protocol):
    """The zones of a query in the making, as `federation` builds them; `labels` name variables, `conflicts` say why
    none is left.
    """

    labels: dict[Hidden, Label]
    conflicts: list[Conflict]

    def build(self, node: Node) -> list[Zone]:
        """Zones of an input."""

    def build_range(self, node: Node) -> tuple[list[Zone], range]:
        """Zones of an input and the numbers of its occurrences."""

    def joined(self, first: list[Zone], second: list[Zone], schema: Schema, condition: Formula) -> list[Zone]:
        """Every zone of one side with every zone of the other, under a condition."""

    def constrain(self, zones: list[Zone], condition: Formula, declared_by: str = "") -> list[Zone]:
        """The zones that remain under a condition."""

    def pruned(self, zones: list[Zone], schema: Schema) -> list[Zone]:
        """The zones without those that others cover."""

    def named(self, zones: list[Zone], schema: Schema) -> list[Zone]:
        """The zones over exactly the temporal attributes of a schema."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """A kind of rows that an operator keeps, by the name under which its runtime counts them, and what frees them.

    A listing shows them by their `label`. Where they have instants, it shows the least and greatest of the column
    `instant` after the word `verb`, and until when they are `kept`; once the operator's progress has reached a column
    plus so many ticks, whichever `ahead` has, none of them is kept. Other rows are said to be so many of `noun`.
    Those that belong to rows of another kind are not `counted`.
    """

    name: str
    label: str
    instant: str = ""
    verb: str = ""
    kept: str = ""
    ahead: Mapping[str, int] = field(default_factory=dict)
    noun: str = "row"
    of: str = ""
    counted: bool = True


@dataclass(frozen=True, slots=True)
class StateBound:
    """The state of an operator. `bounds` is its size, as text for people; `rows` are all kinds of rows that it has."""

    bounds: tuple[str, ...]
    rows: tuple[StoredRows, ...]


@dataclass(frozen=True, slots=True)
class OneRow:
    """Conditions that one row has to satisfy together: over its attributes, each with the term as it is written.
    `itself` is the hint where a value is compared with itself.
    """

    conditions: Mapping[Term, Term]
    itself: str


class Family(Generic[N]):
    """A family of ordered operators, as the analysis sees it. `node` is its class of nodes."""

    node: type[N]

    def zones(self, node: N, build: ZoneBuilder) -> list[Zone]:
        """The relations of a result row to the row that completes it.

        Towards the analysis only that row is an occurrence: what an operator has kept of the rows before is its state.
        """
        raise NotImplementedError

    def problems(self, node: N, query: Query) -> list[Problem]:
        """The problems of the operator itself. `query` has the places of its terms."""
        return []

    def of_one_row(self, node: N) -> Sequence[OneRow]:
        """The conditions of the operator on rows of its inputs, those on one row together."""
        return ()

    def with_progress(self, node: N) -> Sequence[tuple[N, str]]:
        """Variants of the operator whose results may progress, each with its text."""
        return ()

    def completion_hint(self, node: N) -> str | None:
        """What to do where nothing bounds the instant at which a row is complete, if that alone may let rows pass; None
        where other attributes may, too.
        """
        return None

    def declarations(self, node: N, analysed: Analysis) -> Sequence[tuple[Mapping[str, StreamDef], str]]:
        """Streams as they may be declared as well, by name, so that rows pass in time; each with its text."""
        return ()

    def state(self, node: N) -> StateBound:
        """The state that the operator keeps, and until when."""
        raise NotImplementedError

    def freed(self, node: N, *, always: bool) -> Sequence[str]:
        """The rules that free state sooner, for people. With `always` also those that hardly pay."""
        return ()

    def one_by_one(self, node: N, *, shared: bool) -> Sequence[str]:
        """Why events are stored one by one where they are, for people; none where there are no events. `shared`:
        whether all its inputs read the same rows.
        """
        raise NotImplementedError

    def summary(
        self, node: N, keys: Sequence[str], aggregates: Sequence[Aggregate], totals: Sequence[Halves]
    ) -> Summary | str:
        """The operator that yields groups of the node's rows without these (rule R47): by these attributes at least,
        with these aggregates, and with sums in halves. Otherwise why it cannot; an empty text where there is nothing to
        say.
        """
        return ""

    def alike(self, node: N) -> Hashable | None:
        """What operators over the same inputs have in common if they can be one; None of one that is by itself."""
        return None

    def together(self, nodes: Sequence[N]) -> tuple[N, Mapping[N, Mapping[str, str]]]:
        """One operator that has the attributes of all of these, which are `alike`; and for each of them those
        that have other names there.
        """
        raise NotImplementedError

    def freed_inputs(self, node: N, *, always: bool) -> Mapping[int, tuple[str, Sequence[str]]]:
        """The inputs of whose stored rows the operator says which it needs, before keep lets them go: each with its
        name, and with the names of what its rows wait for (rule R29). `always` as in `freed`.
        """
        return {}

    def joins_rows(self, node: N) -> bool:
        """Whether a row of the result is one stored row of each input, and nothing else: then rows are partners of each
        other (rule R21).
        """
        return False

    def orders(self, node: N) -> Sequence[str]:
        """The order of the operator's first search, for people."""
        return ()

    def per_start(self, node: N) -> Sequence[str]:
        """Whether one row may begin exponentially many rows of the result, and what limits them, for people."""
        return ()

    def implied(self, node: N) -> Sequence[str]:
        """What follows from the operator's conditions, and which of them say nothing, for people."""
        return ()


def event_zones(zones: list[Zone], reading: Reading, name: str) -> list[Zone]:
    """Zones over the keys and, by this name, the time of the event that completes a row."""

    def over(layout: Layout) -> Layout:
        assert reading.time is not None
        kept = {key: layout.attributes[key] for key in reading.keys if key in layout.attributes}
        return Layout(layout.rows, {**kept, name: layout.attributes[reading.time]})

    return relaid(zones, over)


def keyed_event_zones(zones: list[Zone], reading: Reading, name: str, build: ZoneBuilder) -> list[Zone]:
    """The same where keys that are instants are no variables of the event, but of its row.

    So they progress as far as its time does, and no result passes by one of them before the operator has come to it.
    """
    schema = reading.input.schema
    keys = tuple(schema[key] for key in reading.keys if schema[key].temporal)
    if not keys or reading.time is None:
        return event_zones(zones, reading, name)
    at, row = (schema[reading.time].renamed(one) for one in (name, ROW))
    event, its = Schema((at,)), Schema((*keys, row))
    events = build.named(event_zones(zones, reading, name), event)
    return with_row(events, event, event_zones(zones, reading, ROW), its, equal_instants([(name, ROW)]), build)


def with_row(
    zones: list[Zone], schema: Schema, row: list[Zone], its: Schema, condition: Formula, build: ZoneBuilder
) -> list[Zone]:
    """Zones over the attributes of `schema` together with those of a row, `its`, under a condition. The row is state:
    its own zones are `row`.
    """
    rows = [held(zone, its, build) for zone in build.named(row, its)]
    return build.joined(zones, rows, Schema((*schema.attributes, *its.attributes)), condition)


def renamed(zones: list[Zone], names: Mapping[str, str]) -> list[Zone]:
    """The zones with some attributes under other names."""

    def under(layout: Layout) -> Layout:
        return Layout(layout.rows, {names.get(name, name): row for name, row in layout.attributes.items()})

    return relaid(zones, under)


def equal_instants(pairs: Iterable[tuple[str, str]]) -> Formula:
    """The condition that the attributes of each pair are equal."""
    return And(tuple(Compare(Var(first), "=", Var(second)) for first, second in pairs))


def held(zone: Zone, schema: Schema, build: ZoneBuilder) -> Zone:
    """What a zone says of the instants of a row, which is state: no occurrence has them."""
    names = schema.temporal
    rows: tuple[Copy, ...] = tuple(("v", 0, name) for name in names)
    build.labels.update({row: Label(row[2], schema[row[2]].type) for row in rows})
    matrix = zone.view([("a", name) for name in names])
    edges = tuple(Edge(rows[w], rows[v], c) for w, v, c in reduced(matrix))
    return Zone(Layout(rows, {name: place for place, name in enumerate(names)}), matrix, edges=edges)


def stream_of(input_: Node) -> tuple[int, str]:
    """The place and the name of the stream whose rows an input reads one by one."""
    return next((place, stream.name) for place, stream in enumerate(occurrences(input_)) if not stream.static)


def rate_of(input_: Node) -> str:
    """How many rows of an input come in a span, for people."""
    at, name = stream_of(input_)
    matches = [f"matches({table})" for table in multiplying_tables(input_).get(at, ())]
    return " × ".join([f"rate({name})", *matches])
