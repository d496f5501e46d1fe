"""How `ranked` and `top_k` make their node: groups, their order, and numbers of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.relation import applied, free_name, listed
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.over.build import require_once
from tidegate.algebra.dsl.over.columns import MOST_ROWS, OverExpression
from tidegate.algebra.dsl.ranks.columns import Descending, RankExpression, RankOrder
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select
from tidegate.algebra.ordered.ranks import Numbering, RankColumn, RankedBy, Ranks
from tidegate.algebra.row_wise import completion
from tidegate.algebra.schema import Schema, checked_name
from tidegate.algebra.terms import Attr, Lit, call
from tidegate.algebra.types import BIGINT, Kind

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Column, Relation

#: The rank of a row of `top_k`, which its result has not.
_RANK: Final = "rank"


def ranks_node(
    relation: Relation,
    where: str,
    by: Column | Iterable[Column],
    order: RankOrder | Iterable[RankOrder],
    columns: tuple[RankColumn, ...],
    parts: list[Expression],
) -> Ranks:
    """The node; the expressions that it is written with go into `parts`."""
    keys = tuple(relation._name_of(column, where) for column in listed(by))
    require_once(keys)
    orders = tuple(_ranked_by(relation, one, parts) for one in listed(order))
    if not orders:
        raise QueryError("TG114", f"{where} has no order", hint=f"name one: {where}(..., order=tg.desc(r.x))")
    return Ranks(relation._node, keys, _completing(relation, where, keys), orders, columns)


def first_rows(node: Ranks, most: int) -> Node:
    """The rows of which the rank is so much at most."""
    ranked = Ranks(
        node.input, node.keys, node.time, node.order, (RankColumn(free_name(_RANK, node.input.schema), Numbering.RANK),)
    )
    chosen = Select(ranked, call("le", Attr(ranked.columns[0].name), Lit(most, BIGINT)))
    return Project(chosen, node.input.schema.names)


def require_number(k: object) -> int:
    """`QueryError` TG114 for what is no number of rows."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_ROWS:
        raise QueryError("TG114", f"top_k counts rows from 1 on, not {shown(k)}", hint='write top_k(3, by="end", ...)')
    return k


def rank_columns(given: Mapping[str, object]) -> tuple[RankColumn, ...]:
    """The columns by name; `QueryError` TG114 where there are none, TG115 for what is no number of a row."""
    if not given:
        raise QueryError("TG114", "ranked computes nothing", hint="name a column: ranked(..., place=tg.rank())")
    return tuple(
        RankColumn(checked_name(name, "an attribute"), _numbering(name, value)) for name, value in given.items()
    )


def _numbering(name: str, given: object) -> Numbering:
    if isinstance(given, RankExpression):
        return given._numbering
    if isinstance(given, OverExpression) and given._argument is None:
        return Numbering.ROW_NUMBER
    raise QueryError(
        "TG115",
        f"{name}={shown(given)} is no place of a row in its group",
        hint=f"write {name}=tg.rank(), tg.dense_rank() or tg.row_number(); values of the rows before are over(...)",
    )


def _ranked_by(relation: Relation, given: RankOrder, parts: list[Expression]) -> RankedBy:
    value = given
    if callable(value) and not isinstance(value, Expression):
        value = applied(value, relation, hint="write order=lambda r: tg.desc(r.x)")  # type: ignore[assignment]  # it is looked at
    descending = isinstance(value, Descending)
    part = relation._column(value._value if isinstance(value, Descending) else value)
    parts.append(part)
    return RankedBy(part._term, descending)


def _completing(relation: Relation, where: str, keys: tuple[str, ...]) -> str:
    """The instant of a group at which it is complete; `QueryError` TG117 where it has none."""
    node, schema = relation._node, relation.schema
    instants = [key for key in keys if schema[key].temporal]
    if not instants:
        raise QueryError(
            "TG117",
            f"{where} has no instant in by=({', '.join(keys)}), so no group is ever complete",
            hint=_window_hint(schema, where, keys),
            because=("a row that is still to come may be before all that are there",),
        )
    preferred = (completion(node), *_progress(node))
    return next((name for name in preferred if name in instants), instants[0])


def _window_hint(schema: Schema, where: str, keys: tuple[str, ...]) -> str:
    """How groups get a window."""
    known = next(iter(schema.temporal), None)
    if known is None:
        return "keep an instant of the rows, or a window of one, and name it in by="
    size = '"1h"' if schema[known].type.kind is Kind.TIMESTAMP else "10"
    by = "".join(f"{key!r}, " for key in keys)
    return f"take groups of a window: r.with_(end=tg.ceil(r.{known}, {size})).{where}(..., by=({by}'end'))"


def _progress(node: Node) -> tuple[str, ...]:
    """What the stream progresses on of which this has the rows one by one, by the names that it has here."""
    match node:
        case Scan(stream):
            return stream.progress
        case Rename(input_, pairs):
            return tuple(dict(pairs).get(name, name) for name in _progress(input_))
        case Select(input_) | Project(input_) | Imbed(input_):
            return _progress(input_)
        case _:
            return ()
