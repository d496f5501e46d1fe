"""Common sub-plans of a program: what several queries contain is rewritten once, and stays the same tree in each.

Rewriting queries one by one would tell equal parts apart, as each query drops other attributes from them. So a part
that occurs more than once is cut out first, keeps the attributes that any of its uses reads, and is put back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tidegate.algebra.nodes import (
    Difference,
    Distinct,
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
    Union,
    children,
    occurrences,
    with_children,
)
from tidegate.algebra.rewrites.prune import renamed_where_there
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import TRUE, attributes_of

#: No stream of a user has such a name.
_HOLE = "\0common "


def common_parts(queries: Sequence[Node]) -> tuple[Node, ...]:
    """The greatest parts that occur more than once, each once, in the order in which they are met.

    Left out: row-wise parts, which run before rows are stored, and parts right below a selection of one query, which
    is worth more below them.
    """
    uses = Counter(node for query in queries for node in _candidates(query))
    parts: dict[Node, None] = {}

    def visit(node: Node, *, selected: bool) -> None:
        if not selected and uses[node] > 1:
            parts[node] = None
        else:
            for child in children(node):
                visit(child, selected=_selects(node, selected))

    for query in queries:
        visit(query, selected=False)
    return tuple(parts)


def _candidates(node: Node, *, selected: bool = False) -> Iterator[Node]:
    if not selected and _worth_sharing(node):
        yield node
    for child in children(node):
        yield from _candidates(child, selected=_selects(node, selected))


def _selects(node: Node, selected: bool) -> bool:
    """Whether a selection above reaches the inputs of a node."""
    if isinstance(node, Select):
        return node.condition != TRUE
    return selected and isinstance(node, Project | Rename | Imbed)


def _worth_sharing(node: Node) -> bool:
    """Whether a part does more than look at the rows of one stream one by one."""
    streams = sum(1 for stream in occurrences(node) if not stream.static or stream.name.startswith(_HOLE))
    return streams > 1 or (streams == 1 and _gathers(node))


def _gathers(node: Node) -> bool:
    return isinstance(node, Group | Distinct) or any(_gathers(child) for child in children(node))


def hole(number: int, part: Node) -> Scan:
    """What stands for a part while the trees around it are rewritten."""
    return Scan(StreamDef(f"{_HOLE}{number}", part.schema, static=True))


def cut(node: Node, holes: Mapping[Node, Scan], *, selected: bool = False) -> Node:
    """The tree with parts replaced by their holes, save for those right below a selection."""
    if not selected and node in holes:
        return holes[node]
    return cut_below(node, holes, selected=selected)


def cut_below(node: Node, holes: Mapping[Node, Scan], *, selected: bool = False) -> Node:
    """The same with the root left alone."""
    below = _selects(node, selected)
    return with_children(node, tuple(cut(child, holes, selected=below) for child in children(node)))


def reads(node: Node, needed: frozenset[str]) -> Iterator[tuple[Scan, frozenset[str]]]:
    """Which attributes are read of every scan, where `needed` are read of the node's result."""
    match node:
        case Scan():
            yield node, needed
        case Select(input_, condition):
            yield from reads(input_, needed | attributes_of(condition))
        case Project(input_, names):
            yield from reads(input_, frozenset(names))
        case Rename(input_, pairs):
            old = {new: name for name, new in pairs}
            yield from reads(input_, frozenset(old.get(name, name) for name in needed))
        case Imbed(input_, name, term):
            yield from reads(input_, (needed - {name}) | attributes_of(term))
        case Group(input_, keys, aggregates):
            terms = [term for aggregate in aggregates for term in aggregate.terms]
            yield from reads(input_, frozenset(keys).union(*map(attributes_of, terms)))
        case Join(left, right, condition):
            wanted = needed | attributes_of(condition)
            yield from reads(left, wanted & left.schema.keys())
            yield from reads(right, wanted & right.schema.keys())
        case Product(left, right):
            yield from reads(left, needed & left.schema.keys())
            yield from reads(right, needed & right.schema.keys())
        case Distinct() | Union() | Difference() | OrderedNode():
            for child in children(node):
                yield from reads(child, frozenset(child.schema))


def fill(node: Node, parts: Mapping[Scan, Node]) -> Node:
    """The tree with parts, perhaps with fewer attributes, in place of their holes."""
    if isinstance(node, Scan):
        return parts.get(node, node)
    filled = with_children(node, tuple(fill(child, parts) for child in children(node)))
    return renamed_where_there(filled.input, filled) if isinstance(filled, Rename) else filled
