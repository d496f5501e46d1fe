"""How `over` makes its node: the columns of one call, and those of several calls of one key and order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.relation import applied, free_name
from tidegate.algebra.dsl.checks.suggestions import OVER_OPTIONS
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.grouping import aggregate_of
from tidegate.algebra.dsl.over.columns import MOST_ROWS, OverExpression
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Select
from tidegate.algebra.ordered.over import (
    COMPLETE,
    Frame,
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
    wait_of,
    with_terms,
)
from tidegate.algebra.schema import checked_name
from tidegate.algebra.terms import (
    MOST_OPERATIONS,
    Attr,
    Lit,
    Term,
    attributes_of,
    call,
    conjunction,
    size_of,
    substitute,
)
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT, DataType

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Relation

#: The attribute that says until when a version holds.
UNTIL: Final = "until"
#: So many rows before a row and after it; None: all before it.
RowsFrame: TypeAlias = "tuple[int | None, int]"
#: A duration before a row, or one before it and one after it; None: all before it.
RangeFrame: TypeAlias = "Duration | tuple[Duration, Duration]"


def frame_of(rows: object, range_: object, type_: DataType) -> Frame:
    """The frame; `QueryError` TG114 for two of them or what is none, TG160 for what is no duration."""
    if rows is not None and range_ is not None:
        raise QueryError("TG114", "a frame is given by rows or by range", hint="leave one out")
    if range_ is not None:
        before, after = range_ if isinstance(range_, tuple) and len(range_) == 2 else (range_, 0)
        ahead = _ticks("range", after, type_)
        if ahead is None:
            raise QueryError(
                "TG114",
                f"range={shown(range_)} has no end: which rows come after a row is never known to the last",
                hint='say how far ahead: range=("5m", "1m"); range=(None, "1m") are all rows before, too',
            )
        return Frame("range", _ticks("range", before, type_), ahead)
    if rows is None:
        return Frame()
    if not isinstance(rows, tuple) or len(rows) != 2 or not _is_rows(rows[0] or 0) or not _is_rows(rows[1]):
        raise QueryError(
            "TG114",
            f"rows={shown(rows)} is no frame",
            hint="write how many rows before and after: rows=(2, 0); rows=(None, 0) are all up to this one",
        )
    return Frame("rows", *rows)


def _is_rows(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_ROWS


def _ticks(where: str, value: object, type_: DataType) -> int | None:
    if value is None or (value == 0 and isinstance(value, int)):
        return None if value is None else 0
    check_duration(where, value)
    ticks = duration_in_ticks(value, type_, where)  # type: ignore[arg-type]  # it is checked
    if ticks < 0:
        hint = "a frame reaches back and ahead" if where == "range" else f"write how long, from 0 on: {where}=..."
        raise QueryError("TG160", f"{where}={shown(value)} is negative", hint=hint)
    return ticks


def over_node(
    relation: Relation, keys: tuple[str, ...], time: str, tie: str | None, frame: Frame, given: Mapping[str, object]
) -> tuple[Node, list[Expression]]:
    """The node, and the parts that it is written with. Columns of the same key and order as those of an `over` below
    are computed with them.
    """
    parts: list[Expression] = []
    columns = tuple(_column(relation, name, value, time, frame, parts) for name, value in given.items())
    below = relation._node
    above: list[Imbed | Select] = []
    while isinstance(below, Imbed | Select) or (isinstance(below, Project) and {*below.names} == {*below.input.schema}):
        above += [below] if isinstance(below, Imbed | Select) else []
        below = below.input
    if isinstance(below, Over) and (below.keys, below.time, below.tie) == (keys, time, tie):
        direct = below is relation._node
        # Of rows that wait `complete` is the last attribute.
        waits = below.waits or any(wait_of(column) is not None for column in columns)
        made = _with_columns(below, above[::-1], columns) if direct or not waits else None
        if made is not None:
            names = (*relation._node.schema.names, *(column.name for column in columns))
            return (made if direct else Project(made, names)), parts
    return Over(relation._node, keys, time, tie, columns), parts


def _with_columns(below: Over, above: Sequence[Imbed | Select], columns: Sequence[OverColumn]) -> Node | None:
    """The operator with further columns, below attributes that are computed of it and selections of its rows; None
    where they need another one.

    They may read its columns that only look back, unless what they compute of these may have no value: such rows are
    set aside before the next operator sees them.
    """
    written: dict[str, Term] = {}

    def of_operator(term: Term) -> Term:
        return substitute(term, lambda leaf: written.get(leaf.name, leaf) if isinstance(leaf, Attr) else leaf)

    selected: list[Term] = []
    for step in above:
        term = of_operator(step.term if isinstance(step, Imbed) else step.condition)
        if size_of(term) > MOST_OPERATIONS:
            return None
        if isinstance(step, Imbed):
            written[step.name] = term
        else:
            selected.append(term)
    further = tuple(with_terms(column, of_operator) for column in columns)
    own, known = {*below.input.schema}, below.known
    terms = [*written.values(), *selected, *(term for column in further for term in terms_of(column))]
    if any(not attributes_of(term) <= {*known} for term in terms):
        return None
    if any(resolve(term, known).fallible for term in terms if above or not attributes_of(term) <= own):
        return None
    if selected:
        chosen = [_of_selected(below, column, conjunction(selected)) for column in further]
        further = tuple(column for column in chosen if column is not None)
        if len(further) < len(chosen):
            return None
    node: Node = replace(below, columns=(*below.columns, *further))
    for step in above:
        node = Imbed(node, step.name, step.term) if isinstance(step, Imbed) else Select(node, step.condition)
    return node


def _of_selected(below: Over, column: OverColumn, condition: Term) -> OverColumn | None:
    """The column over those rows alone that satisfy a condition, as one over all rows of an operator: aggregates skip
    NULL. None where it goes by which rows there are, or more rows would have to be kept for it.
    """
    if not isinstance(column, FrameAggregate) or column.frame.unit == "rows":
        return None
    aggregate, frame = column.aggregate, column.frame
    if frame.after or not any(_keeps(one, frame.before) for one in below.columns):
        return None
    if not below.needs_order and below.goes_by_order(aggregate):
        return None  # two rows of one instant would be an error, also where the condition leaves one
    argument: Term = Lit(1, BIGINT) if aggregate.argument is None else aggregate.argument
    nothing = Lit(None, term_type(argument, below.known))
    return FrameAggregate(replace(aggregate, argument=call("if", condition, argument, nothing)), frame)


def _keeps(column: OverColumn, before: int | None) -> bool:
    """Whether rows are kept for a column that are enough for a frame by range: of each key the last row, or those of so
    many ticks.
    """
    match column:
        case RowNumber() | PreviousDifferent():
            return before is None
        case Reported(_, within):
            return before is None and within is None
        case Neighbour(_, _, offset, within):
            return before is None and within is None and offset < 0
        case NextDifferent():
            return False
        case Nth(frame=frame) | FrameAggregate(frame=frame):
            if before is None:
                return frame.before is None or (frame.unit == "rows" and frame.before > 0)
            return frame.unit == "range" and frame.before is not None and frame.before >= before
        case _:
            assert_never(column)


def _column(
    relation: Relation, name: str, given: object, time: str, frame: Frame, parts: list[Expression]
) -> OverColumn:
    checked_name(name, "an attribute")
    value = applied(given, relation) if callable(given) else given
    if isinstance(value, AggregateExpression):
        return FrameAggregate(aggregate_of(relation, name, value, parts), frame)
    if not isinstance(value, OverExpression):
        if name in OVER_OPTIONS:
            option = OVER_OPTIONS[name]
            raise QueryError("TG115", f"over takes no {name}=", hint=f"write {option}={shown(given)}")
        raise QueryError(
            "TG115",
            f"{name}={shown(value)} says nothing of other rows",
            hint=f"write {name}=tg.lag(r.x) or {name}=tg.sum(r.x); what is computed of a row alone goes into with_()",
        )
    its = [] if value._argument is None else [relation._column(value._argument)]
    parts += its
    ticks = _ticks("within", value._within, relation.schema[time].type)
    return value._build(name, [part._term for part in its], frame, ticks)


def without_repeats(rows: Node, keys: tuple[str, ...], time: str, tie: str | None, within: Duration) -> Node:
    """The rows that repeat no key of a row before them, or none of the last so long."""
    ticks, name = _ticks("within", within, rows.schema[time].type), free_name("next", rows.schema)
    reported = Select(Over(rows, keys, time, tie, (Reported(name, ticks),)), Attr(name))
    return Project(reported, rows.schema.names)


def versions_node(rows: Node, keys: tuple[str, ...], time: str, tie: str | None) -> Node:
    """The rows with the instant of the next one of their key; `QueryError` TG103 where its name is taken."""
    if UNTIL in rows.schema:
        raise QueryError(
            "TG103",
            f"{UNTIL!r} says how long a version holds, and there is such an attribute",
            hint=f'rename it first: rename({UNTIL}="...")',
        )
    node = Over(rows, keys, time, tie, (Neighbour(free_name("next", rows.schema), Attr(time), 1),))
    return Project(Rename(node, ((COMPLETE, UNTIL),)), (*rows.schema.names, UNTIL))


def require_columns(given: Mapping[str, object]) -> None:
    if not given:
        raise QueryError("TG114", "over computes nothing", hint="name a column: over(..., before=tg.lag(r.x))")


def require_once(keys: Iterable[str]) -> None:
    """`QueryError` TG103 for a key that is named twice."""
    seen = set[str]()
    for key in keys:
        if key in seen:
            raise QueryError("TG103", f"rows are partitioned by {key} twice", hint="name each key once")
        seen.add(key)
