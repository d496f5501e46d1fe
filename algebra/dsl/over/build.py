"""How `over` makes its node, and other calls do that look at the rows around a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.relation import applied, free_name
from tidegate.algebra.dsl.checks.suggestions import OVER_OPTIONS
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.grouping import aggregate_of
from tidegate.algebra.dsl.over.chains import in_one_operator
from tidegate.algebra.dsl.over.columns import MOST_ROWS, OverExpression
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node, Project, Rename, Select
from tidegate.algebra.ordered.over import (
    COMPLETE,
    Frame,
    FrameAggregate,
    Neighbour,
    Over,
    OverColumn,
    Reported,
)
from tidegate.algebra.schema import checked_name
from tidegate.algebra.terms import (
    Attr,
)
from tidegate.algebra.types import DataType

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
    """The node, and the parts that it is written with."""
    parts: list[Expression] = []
    columns = tuple(_column(relation, name, value, time, frame, parts) for name, value in given.items())
    asked = Over(relation._node, keys, time, tie, columns)
    return in_one_operator(asked) or asked, parts


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
