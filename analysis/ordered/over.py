"""The analysis of rows with values of the rows around them: when they are complete, and how many are kept for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, assert_never

from tidegate.algebra.formulas import And, Compare, Formula, Shift, Var
from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.ordered.over import (
    COMPLETE,
    FrameAggregate,
    Neighbour,
    NextDifferent,
    Nth,
    Over,
    OverColumn,
    PreviousDifferent,
    Reported,
    RowNumber,
    Wait,
    terms_of,
    wait_of,
    with_name,
    with_terms,
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Param, Term, attributes_of, substitute
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import Kind
from tidegate.analysis.ordered.family import (
    COMPLETING,
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    equal_instants,
    event_zones,
    rate_of,
    renamed,
    stream_of,
    with_row,
)
from tidegate.analysis.zones.wording import amount, factor, usual_spans
from tidegate.analysis.zones.zone import Zone

#: The name of what is kept.
ROWS: Final = "rows"


@dataclass(frozen=True, slots=True)
class Need:
    """The rows of a partition that a column needs of those before a row to come: the last `rows`, and of these those
    within the last `ticks`. None: however many, however old.
    """

    rows: int | None
    ticks: int | None


def need_of(column: OverColumn) -> Need:
    """What a column needs of the rows before the next one; running values are kept in the last row."""
    match column:
        case RowNumber() | PreviousDifferent():
            return Need(1, None)
        case Reported(_, within):
            return Need(1, within)
        case Neighbour(_, _, offset, within):
            return Need(-offset, within) if offset < 0 else Need(0, None)
        case NextDifferent():
            return Need(0, None)
        case Nth(frame=frame) | FrameAggregate(frame=frame):
            if frame.before is None:
                return Need(1, None)
            return Need(frame.before, None) if frame.unit == "rows" else Need(None, frame.before)
        case _:
            assert_never(column)


#: Aggregates of frames that are made of few numbers: what blocks of rows come to.
_EXTREMES: Final = (Form.LEAST, Form.GREATEST)
_BY_ORDER: Final = (Form.EARLIEST, Form.LATEST)
_OF_BLOCKS: Final = (Form.COUNT, Form.INTEGER_SUM, Form.DOUBLE_SUM, *_EXTREMES, *_BY_ORDER)


def is_best_by_range(column: OverColumn) -> bool:
    """Whether it is the least or greatest value of rows of a span: of rows that are no better than a later one no frame
    to come has the value.
    """
    if not isinstance(column, FrameAggregate) or column.frame.unit == "rows":
        return False
    return column.frame.before is not None and column.aggregate.entry.form in _EXTREMES


def is_of_blocks(node: Over) -> bool:
    """Whether what columns say of a row can be made of blocks of rows, which are numbered: all are aggregates of few
    numbers over frames that have a beginning, or look rows up by their places.
    """
    if any(map(_reads_columns(node), (term for column in node.columns for term in terms_of(column)))):
        return False
    return all(_is_of_blocks(column, node) for column in node.columns)


def _is_of_blocks(column: OverColumn, node: Over) -> bool:
    """Whether a column is an aggregate of few numbers over frames that have a beginning, or looks a row up."""
    match column:
        case Neighbour():
            return True
        case Nth(frame=frame):
            return frame.before is not None
        case FrameAggregate(aggregate, frame):
            form = Form.COUNT if aggregate.argument is None else _form(aggregate, node)
            return frame.before is not None and form in _OF_BLOCKS and _has_numbers(aggregate, form, node)
        case _:
            return False


def _form(aggregate: Aggregate, node: Over) -> Form:
    assert aggregate.argument is not None
    return aggregate.entry.form_of(term_type(aggregate.argument, node.input.schema))


def _has_numbers(aggregate: Aggregate, form: Form, node: Over) -> bool:
    """Whether integers compare what an aggregate chooses a row by; no texts, as the number of each would change."""
    if form not in (*_EXTREMES, *_BY_ORDER) or node.goes_by_order(aggregate):
        return True
    kinds = {term_type(term, node.input.schema).kind for term in aggregate.terms}
    return kinds.isdisjoint((Kind.STRING, Kind.NULL))


@lru_cache(maxsize=256)
def goes_by_time(node: Over) -> bool:
    """Whether rows are kept as long as a frame reaches, whatever their partition: all frames are by range, and made of
    blocks. Where all are least or greatest values of rows up to a row, fewer are kept.
    """
    by_range = all(need_of(column).rows is None for column in node.columns)
    limited = all(wait.ticks is not None and wait.rows is None for wait in _waits(node))
    only_best = not node.waits and all(map(is_best_by_range, node.columns))
    return by_range and limited and not only_best and is_of_blocks(node)


def _reads_columns(node: Over) -> Callable[[Term], bool]:
    """Whether a term reads columns of the operator itself."""
    own = set(node.input.schema)
    return lambda term: not attributes_of(term) <= own


class OverFamily(Family[Over]):
    node = Over

    def zones(self, node: Over, build: ZoneBuilder) -> list[Zone]:
        """A result row at the event that completes it: for one that only looks back its own row, or the last of its
        peers.

        The row's other instants are no variables of that event. So they progress as far as the row's time does, and no
        result row passes by one of them before it is complete.
        """
        (reading,) = node.readings
        schema = node.input.schema
        zones = build.build(reading.input)
        if not node.waits and schema.temporal == (node.time,):
            return build.named(event_zones(zones, reading, node.time), node.schema)
        event = Schema((schema[node.time].renamed(COMPLETING),))
        events = build.named(event_zones(zones, reading, COMPLETING), event)
        pairs = with_row(events, event, zones, schema, _completion(node), build)
        results = renamed(pairs, {COMPLETING: COMPLETE}) if node.waits else pairs
        return build.pruned(build.named(results, node.schema), node.schema)

    def with_progress(self, node: Over) -> Sequence[tuple[Over, str]]:
        """The operator that waits for rows ahead for a limited time only."""
        ticks, span = usual_spans(node.input.schema[node.time].type)[0]

        def limited(column: OverColumn) -> OverColumn:
            if isinstance(column, NextDifferent) or (isinstance(column, Neighbour) and column.offset > 0):
                return replace(column, within=ticks if column.within is None else column.within)
            return column

        mended = replace(node, columns=tuple(map(limited, node.columns)))
        return () if mended == node else ((mended, f"wait for a limited time: within={span}"),)

    def alike(self, node: Over) -> Hashable | None:
        """None where rows of the operator are not complete at once, one by one, or do not come whatever its columns
        are: a row that has no value for some term is not seen by it at all.
        """
        terms = (term for column in node.columns for term in terms_of(column))
        if node.waits or node.merges_equal or any(resolve(term, node.known).fallible for term in terms):
            return None
        return node.keys, node.time, node.tie, node.needs_order

    def together(self, nodes: Sequence[Over]) -> tuple[Over, Mapping[Over, Mapping[str, str]]]:
        together = _Together({name for node in nodes for name in node.schema})
        names = {node: together.names(node) for node in nodes}
        return replace(nodes[0], columns=tuple(together.columns.values())), names

    def state(self, node: Over) -> StateBound:
        return StateBound((_bound(node),), (StoredRows(ROWS, "kept", of="that later rows look at"),))

    def one_by_one(self, node: Over, *, shared: bool) -> Sequence[str]:
        return ("each is a row of the result",)


@dataclass(frozen=True, slots=True)
class _Together:
    """The columns of operators of one order, each once. `taken` are all names that any of them has."""

    taken: Collection[str]
    columns: dict[str, OverColumn] = field(default_factory=dict)

    def names(self, node: Over) -> Mapping[str, str]:
        """The names under which an operator's columns stand among all."""
        names: dict[str, str] = {}

        def renamed(leaf: Attr | Param) -> Term:
            return Attr(names.get(leaf.name, leaf.name)) if isinstance(leaf, Attr) else leaf

        for column in node.columns:
            names[column.name] = self._placed(with_terms(column, lambda term: substitute(term, renamed)))
        return names

    def _placed(self, column: OverColumn) -> str:
        """The name of a column: that of an equal one, its own one if it is free, or a new one."""
        for name, other in self.columns.items():
            if with_name(column, name) == other:
                return name
        name = column.name
        while name in self.columns or (name != column.name and name in self.taken):
            name += "'"
        self.columns[name] = with_name(column, name)
        return name


def _waits(node: Over) -> Sequence[Wait]:
    """What rows wait for, one after the other."""
    return [wait for column in node.columns if (wait := wait_of(column)) is not None]


def _completion(node: Over) -> Formula:
    """The relation of a row's time to that of the event that completes it."""
    if not node.waits:
        return equal_instants([(node.time, COMPLETING)])
    time, complete = Var(node.time), Var(COMPLETING)
    waits = _waits(node)
    longest = [wait.ticks for wait in waits if wait.ticks is not None]
    bounded = [Compare(complete, "<=", Shift(time, max(longest)))] if len(longest) == len(waits) else []
    return And((Compare(time, "<=", complete), *bounded))


def _bound(node: Over) -> str:
    """How many rows are kept at most: some of each partition, and those of a span."""
    needs = [need_of(column) for column in node.columns]
    waits = _waits(node)
    # A row that waits is kept, and so is what it looks back at.
    if any(wait.different is not None and wait.ticks is None for wait in waits):
        return f"{ROWS}: unbounded: missing next_different(..., within=)"
    waiting = max((wait.rows for wait in waits if wait.rows is not None and wait.ticks is None), default=0)
    lasting = max((need.rows for need in needs if need.rows is not None and need.ticks is None), default=0)
    # Of so many last rows those that a column needs for a while only are some of those that stay.
    spans = [need.ticks for need in needs if need.ticks is not None and not (need.rows and need.rows <= lasting)]
    ahead = [wait.ticks for wait in waits if wait.ticks is not None]
    summands = [f"{_partitions(node)}{lasting + waiting:,}"] if lasting + waiting else []
    if spans or ahead:
        span = amount(max(spans, default=0) + max(ahead, default=0), node.input.schema[node.time].type)
        # Of a partition in which a row waits for another one, the rows of its span wait with it.
        summands.append(f"{_partitions(node) if waiting else ''}{rate_of(node.input)} × {factor(span)}")
    return f"{ROWS}: {' + '.join(summands)}"


def _partitions(node: Over) -> str:
    return f"keys({stream_of(node.input)[1]} by {', '.join(node.keys)}) × " if node.keys else ""
