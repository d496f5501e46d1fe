"""Which parts of a query look at the rows of one stream one by one, and which operators gather them in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from tidegate.algebra.nodes import (
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    children,
    lacking,
    occurrences,
)
from tidegate.algebra.schema import unused_mark
from tidegate.algebra.terms import Attr, Term, rename_attributes, substitute


def is_row_wise(node: Node) -> bool:
    """Whether the node maps each row of its one stream to result rows by itself, whatever the other rows are."""
    try:
        return node._row_wise
    except AttributeError:
        for current in lacking(node, "_row_wise"):
            object.__setattr__(current, "_row_wise", _is_row_wise(current))
        return node._row_wise


def _is_row_wise(node: Node) -> bool:
    match node:
        case Scan(stream):
            return not stream.static
        case Select() | Project() | Rename() | Imbed():
            return is_row_wise(node.input)
        case Join(left, right, _, kind):
            return (is_row_wise(left) and is_static(right)) or (
                kind == "inner" and is_static(left) and is_row_wise(right)
            )
        case Product(left, right):
            return (is_row_wise(left) and is_static(right)) or (is_static(left) and is_row_wise(right))
        case _:
            return False


def is_static(node: Node) -> bool:
    """Whether the node reads static tables only."""
    return all(stream.static for stream in occurrences(node))


def multiplying_tables(node: Node) -> dict[int, tuple[str, ...]]:
    """By occurrence, the static tables that are joined to its single rows, and may have several matches for one."""
    tables: dict[int, tuple[str, ...]] = {}

    def visit(current: Node, first: int) -> int | None:
        """The occurrence whose rows, one by one, the node works on."""
        if isinstance(current, Scan):
            return None if current.stream.static else first
        alone, place = [], first
        for child in children(current):
            alone.append(visit(child, place))
            place += len(occurrences(child))
        match current:
            case Select() | Project() | Rename() | Imbed():
                return alone[0]
            case Product() | Join():
                left, right = alone
                if isinstance(current, Join) and current.kind in ("semi", "anti"):
                    return left if is_static(current.right) else None
                for stream, table in ((left, current.right), (right, current.left)):
                    if stream is not None and is_static(table):
                        tables[stream] = (*tables.get(stream, ()), *(t.name for t in occurrences(table)))
                        return stream
        return None

    visit(node, 0)
    return tables


def row_terms(node: Node) -> Iterator[tuple[str, Node]]:
    """The row-wise parts of a query, each with its stream; the terms that a grouping or a derivation right above reads
    are attributes.

    Together they evaluate every term of the query whose value one row of a stream decides, the static tables given.
    """
    if is_row_wise(node):
        yield _row_wise_stream(node), node
    elif isinstance(node, Group) and is_row_wise(node.input):
        terms = [term for aggregate in node.aggregates for term in aggregate.terms]
        yield _row_wise_stream(node.input), with_terms(node.input, terms)
    elif isinstance(node, OrderedNode):
        for reading in node.readings:
            row_wise = is_row_wise(reading.input)
            yield from row_terms(with_terms(reading.input, reading.terms) if row_wise else reading.input)
    else:
        for child in children(node):
            yield from row_terms(child)


def _row_wise_stream(node: Node) -> str:
    (stream,) = (occurrence.name for occurrence in occurrences(node) if not occurrence.static)
    return stream


def with_terms(node: Node, terms: Iterable[Term]) -> Node:
    """The rows of a node with the terms as further attributes."""
    mark = unused_mark(node.schema)
    for number, term in enumerate(terms):
        node = Imbed(node, f"{mark}{number}", term)
    return node


def term_below(term: Term, node: Select | Project | Rename | Imbed) -> Term:
    """A term over the rows that the operator makes, as one over the rows that it makes them of."""
    match node:
        case Select() | Project():
            return term
        case Rename(_, pairs):
            return rename_attributes(term, {new: old for old, new in pairs})
        case Imbed(_, name, value):
            return substitute(term, lambda leaf: value if leaf == Attr(name) else leaf)
        case _:
            assert_never(node)


def ordered_operator(node: Node) -> OrderedNode | None:
    """The operator that gathers events in order, of a query that is nothing else but row-wise parts above and below
    it.
    """
    current = node
    while isinstance(current, Select | Project | Rename | Imbed):
        current = current.input
    if not isinstance(current, OrderedNode) or completion(node) is None:
        return None
    return current if all(map(is_row_wise, current.inputs)) else None


def completion(node: Node) -> str | None:
    """The attribute of such a query's result that says when a row was complete."""
    match node:
        case OrderedNode():
            return node.completed_by
        case Select(input_, _) | Imbed(input_, _, _):
            return completion(input_)
        case Project(input_, names):
            attribute = completion(input_)
            return attribute if attribute in names else None
        case Rename(input_, pairs):
            attribute = completion(input_)
            return None if attribute is None else dict(pairs).get(attribute, attribute)
        case _:
            return None


def has_ordered_operator(node: Node) -> bool:
    """Whether some part of a query gathers events in order."""
    return isinstance(node, OrderedNode) or any(map(has_ordered_operator, children(node)))
