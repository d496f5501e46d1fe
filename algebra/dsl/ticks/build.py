"""How `ticks` and `fill_gaps` make their nodes."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.relation import free_name, renamed
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node, Project
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.ticks import TICK, Ticks
from tidegate.algebra.types import DataType, Kind


def ticks_node(
    of: Node, keys: tuple[str, ...], time: str, every: Duration, within: Duration, offset: Duration
) -> Ticks:
    """The node; `QueryError` TG160 for durations that do not fit."""
    type_ = of.schema[time].type
    for option, given in (("every", every), ("within", within), ("offset", offset)):
        check_duration(option, given)
    period = duration_in_ticks(every, type_, "every")
    if period <= 0:
        raise _unfit("every", every, "not positive", type_)
    limit = None if within is None else duration_in_ticks(within, type_, "within")
    if limit is not None and limit < 0:
        raise _unfit("within", within, "negative", type_)
    moved = 0 if offset is None else duration_in_ticks(offset, type_, "offset") % period
    return Ticks(of, keys, time, period, moved, limit)


def filled_node(
    of: Node, keys: tuple[str, ...], time: str, tie: str | None, every: Duration, within: Duration, offset: Duration
) -> Node:
    """The last row of each key at each of its ticks; `QueryError` TG103 where an attribute is called as the tick is."""
    if TICK in of.schema:
        raise QueryError(
            "TG103",
            f"{TICK!r} says at which instant a row holds, and there is such an attribute",
            hint=f'rename it first: rename({TICK}="...")',
        )
    its = ticks_node(of, keys, time, every, within, offset)
    names = _apart(keys, of.schema.names)
    left = renamed(its, zip(keys, names, strict=True))
    held = AsOf(left, of, names, keys, TICK, time, tie, within=its.within, how="inner")
    return Project(held, (*of.schema.names, TICK))


def _apart(keys: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """Names for the keys of ticks beside those of rows."""
    names: list[str] = []
    for key in keys:
        names.append(free_name(key, (*taken, *names)))
    return tuple(names)


def _unfit(option: str, given: Duration, what: str, type_: DataType) -> QueryError:
    example = "5m" if type_.kind is Kind.TIMESTAMP else 5
    return QueryError("TG160", f"{option}={shown(given)} is {what}", hint=f"write {option}={example!r}, say")
