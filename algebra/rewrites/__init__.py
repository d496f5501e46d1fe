"""Rewrites of queries: each preserves meaning, schema and the order of scans; together they reach a fixpoint.

Selections move towards the scans, what remains above products becomes a join, and attributes that nobody reads are
dropped early. What can fail keeps failing, and nothing else does: a term that can fail on some row is neither evaluated
on more rows nor on fewer. (A sum that would overflow in a group that a selection discards is the one exception.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import Node, Project, children, unless_equal, with_children
from tidegate.algebra.rewrites.common import common_parts, cut, cut_below, fill, hole, reads
from tidegate.algebra.rewrites.join_from_product import join_from_product
from tidegate.algebra.rewrites.merge import merge_projects, merge_renames, merge_selects
from tidegate.algebra.rewrites.prune import prune
from tidegate.algebra.rewrites.select_in_join import select_in_join
from tidegate.algebra.rewrites.select_through_group import select_through_group
from tidegate.algebra.rewrites.select_through_imbed import select_through_imbed
from tidegate.algebra.rewrites.select_through_join import select_through_join
from tidegate.algebra.rewrites.select_through_names import select_through_names
from tidegate.algebra.rewrites.select_through_union import select_through_union

Rewrite = Callable[[Node], Node | None]

#: All rewrites, in the order in which they are tried; none undoes what another does.
REWRITES: tuple[Rewrite, ...] = (
    merge_selects,
    merge_projects,
    merge_renames,
    select_through_names,
    select_through_imbed,
    select_through_union,
    select_through_group,
    select_through_join,
    select_in_join,
    join_from_product,
    prune,
)

#: Far above what a query of a hundred operators takes; reaching it means that two rewrites undo each other.
_MOST_STEPS = 100_000


def rewrite(node: Node, rewrites: tuple[Rewrite, ...] = REWRITES) -> Node:
    """The query with the rewrites applied until none applies any more."""
    done: dict[Node, Node] = {}
    steps = 0

    def visit(current: Node) -> Node:
        nonlocal steps
        if current in done:
            return done[current]
        start = current
        while True:
            current = with_children(current, tuple(unless_equal(child, visit(child)) for child in children(current)))
            changed = step(current, rewrites)
            if changed is None:
                done[start] = done[current] = current
                return current
            current, steps = changed, steps + 1
            if steps > _MOST_STEPS:
                raise InternalError("TG903", "rewrites reach no fixpoint", hint="please report the query")

    return visit(node)


def rewrite_program(queries: Sequence[Node]) -> tuple[Node, ...]:
    """All queries of a program rewritten; what they have in common becomes the same tree in each, to be computed
    once.
    """
    parts = common_parts(queries)
    if not parts:
        return tuple(rewrite(query) for query in queries)
    holes = {part: hole(number, part) for number, part in enumerate(parts)}
    outer = [rewrite(cut(query, holes)) for query in queries]
    inner = [cut_below(part, holes) for part in parts]
    needed: dict[Node, frozenset[str]] = {}
    for body in (*outer, *inner):
        for scan, names in reads(body, frozenset(body.schema)):
            needed[scan] = needed.get(scan, frozenset()) | names
    narrowed = [_narrowed(body, needed[holes[part]]) for body, part in zip(inner, parts, strict=True)]
    filled = dict(zip(holes.values(), rewrite_program(narrowed), strict=True))
    while any(scan in filled for part in filled.values() for scan, _ in reads(part, frozenset(part.schema))):
        filled = {scan: fill(part, filled) for scan, part in filled.items()}
    return tuple(fill(body, filled) for body in outer)


def _narrowed(node: Node, needed: frozenset[str]) -> Node:
    kept = tuple(name for name in node.schema.names if name in needed) or node.schema.names[:1]
    return node if kept == node.schema.names else Project(node, kept)


def step(node: Node, rewrites: tuple[Rewrite, ...] = REWRITES) -> Node | None:
    """The first rewrite that applies at the root.

    One that would sharpen what is known of an attribute (a NULL test moved below a computed instant) is left out: the
    analysis has spoken of the schema as it is.
    """
    for rule in rewrites:
        changed = rule(node)
        if changed is not None and changed != node and changed.schema == node.schema:
            return changed
    return None
