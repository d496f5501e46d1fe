"""The last row before each row, where it is written as pairs of rows between which there is no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegate.algebra.nodes import Imbed, Join, Node, Project, Rename, Select, with_children
from tidegate.algebra.ordered.over import Neighbour, Over
from tidegate.algebra.row_wise import is_row_wise
from tidegate.algebra.terms import Attr, Call, Term, conjuncts, substitute
from tidegate.analysis.validity.forms import Form, as_of, by_option, equal_keys, of_stream
from tidegate.analysis.validity.places import below_unary, free_name, replaced

_Selecting = Select | Project | Rename | Imbed


class _Order(NamedTuple):
    """An attribute that is less than another one, or with `strict` False also equal to it."""

    less: str
    greater: str
    strict: bool


def last_before(node: Node) -> Form | None:
    """The last row before each row, in the place of a join with rows before and an anti-join with those between."""
    written = below_unary(node)
    if not isinstance(written, Join) or written.kind != "anti":
        return None
    above = _above_join(written.left)
    join = above[-1].input if above else written.left
    if not isinstance(join, Join) or join.kind != "inner":
        return None
    anti, conditions = _in_names_of(join, above, written)
    sides = (join.left, join.right, anti.right)
    if not all(is_row_wise(side) and len(side.schema.temporal) == 1 for side in sides):
        return None
    conditions += conjuncts(join.condition)
    (at,), (before,), (between,) = (side.schema.temporal for side in sides)
    keys = [pair for pair in (equal_keys(part, join) for part in conditions) if pair is not None]
    orders = [order for order in map(_order, conditions) if order is not None]
    if not keys or len(orders) != 1 or len(keys) + 1 < len(conditions) or orders[0][:2] != (before, at):
        return None
    strict = orders[0].strict
    if not _says_between(anti, join, keys, {_Order(before, between, True), _Order(between, at, strict)}):
        return None
    streams = [of_stream(at, join.left), *(of_stream(one, join.left) for one, _ in keys)]
    if strict and None not in streams and streams == [of_stream(name, join.right) for name in (before, *_others(keys))]:
        return _row_before(join.left, tuple(one for one, _ in keys), at)
    found, text = as_of(join.left, join.right, keys, "inner", strict=strict)
    selected: Node = found
    for operator in reversed(above):
        if not isinstance(operator, Select):
            selected = with_children(operator, (selected,))
    return Form(replaced(node, written, selected), text)


def _above_join(node: Node) -> list[_Selecting]:
    """What is selected of a node with several inputs, the last operator first."""
    above: list[_Selecting] = []
    while isinstance(node, _Selecting):
        above.append(node)
        node = node.input
    return above


def _in_names_of(join: Join, above: Sequence[_Selecting], anti: Join) -> tuple[Join, list[Term]]:
    """An anti-join of a join, in names of the join, in the place of one above what is selected of it; and conditions
    that rows of the join are selected by. The other side gets names of its own.
    """
    terms: dict[str, Term] = {name: Attr(name) for name in join.schema}
    conditions: list[Term] = []
    for operator in reversed(above):
        match operator:
            case Select(_, condition):
                conditions += conjuncts(_replaced(condition, terms))
            case Project(_, names):
                terms = {name: terms[name] for name in names}
            case Rename(_, pairs):
                new = dict(pairs)
                terms = {new.get(name, name): term for name, term in terms.items()}
            case Imbed(_, name, term):
                terms[name] = _replaced(term, terms)
    own = {name: f"{name} between" for name in anti.right.schema}
    right = Rename(anti.right, tuple(own.items()))
    condition = _replaced(anti.condition, {**terms, **{old: Attr(new) for old, new in own.items()}})
    return Join(join, right, condition, "anti"), conditions


def _replaced(term: Term, terms: Mapping[str, Term]) -> Term:
    """A term with others in the place of attributes."""
    return substitute(term, lambda leaf: terms[leaf.name] if isinstance(leaf, Attr) else leaf)


def _says_between(anti: Join, join: Join, keys: list[tuple[str, str]], orders: set[_Order]) -> bool:
    """Whether an anti-join leaves out the pairs between which a row of the same key lies, and no others."""
    partners = {**dict(keys), **{other: other for other in _others(keys)}}
    (between,), (before,) = anti.right.schema.temporal, join.right.schema.temporal
    of = of_stream(between, anti.right)
    if of is None or of != of_stream(before, join.right):
        return False
    told, equal = set[_Order](), set[str]()
    for part in conjuncts(anti.condition):
        if (order := _order(part)) is not None:
            told.add(order)
            continue
        match part:
            case Call("eq", (Attr(one), Attr(other))):
                own, its = (one, other) if one in anti.right.schema else (other, one)
                partner = partners.get(its)
                if partner is None or of_stream(own, anti.right) != of_stream(partner, join.right):
                    return False
                equal.add(partner)
            case _:
                return False
    return told == orders and equal == {*_others(keys)}


def _row_before(rows: Node, keys: tuple[str, ...], time: str) -> Form:
    """What a row says of the row before it, of one stream."""
    column = Neighbour(free_name("before", rows), Attr(time), -1)
    options = by_option(keys, rows).removeprefix(", ")
    return Form(Over(rows, keys, time, None, (column,)), f"take the row before: over({options}, before=tg.lag(...))")


def _others(keys: Iterable[tuple[str, str]]) -> list[str]:
    return [other for _, other in keys]


def _order(part: Term) -> _Order | None:
    match part:
        case Call(("lt" | "le") as op, (Attr(one), Attr(other))):
            return _Order(one, other, op == "lt")
        case Call(("gt" | "ge") as op, (Attr(one), Attr(other))):
            return _Order(other, one, op == "gt")
        case _:
            return None
