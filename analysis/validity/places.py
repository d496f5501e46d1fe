"""Places in a query: the way to an occurrence, the operators of one input that it ends with, and what is put there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from tidegate.algebra.nodes import (
    Distinct,
    Group,
    Imbed,
    Node,
    OrderedNode,
    Project,
    Rename,
    Select,
    children,
    occurrences,
    with_children,
)
from tidegate.algebra.terms import Term

Unary = Select | Project | Rename | Imbed | Distinct | Group


@dataclass(frozen=True, slots=True)
class Step:
    """A node on the way to an occurrence: where it stands, and how many occurrences are left of it."""

    place: tuple[int, ...]
    node: Node
    before: int


def way_to(node: Node, i: int) -> Iterator[Step]:
    """The nodes from the root down to the i-th occurrence."""
    place: tuple[int, ...] = ()
    before = 0
    while True:
        yield Step(place, node, before)
        for position, child in enumerate(children(node)):
            if i < before + len(occurrences(child)):
                place, node = (*place, position), child
                break
            before += len(occurrences(child))
        else:
            return


def above_ordered(node: Node, i: int) -> list[Step]:
    """The way to an occurrence, or to the operator that gathers its rows in order: conditions below are another
    matter.
    """
    return list(takewhile(lambda step: not isinstance(step.node, OrderedNode), way_to(node, i)))


def changed_at(node: Node, place: tuple[int, ...], change: Callable[[Node], Node]) -> Node:
    """The query with another node at a position."""
    if not place:
        return change(node)
    inputs = list(children(node))
    inputs[place[0]] = changed_at(inputs[place[0]], place[1:], change)
    return with_children(node, tuple(inputs))


def put(node: Node, place: tuple[int, ...], new: Node) -> Node:
    return changed_at(node, place, lambda _: new)


def unary_operators(node: Node) -> Iterator[Unary]:
    """The operators of one input that a query ends with, the last one first."""
    while isinstance(node, Unary):
        yield node
        node = node.input


def below_unary(node: Node) -> Node:
    """What a query does before the operators of one input that it ends with."""
    return next((operator.input for operator in reversed(list(unary_operators(node)))), node)


def first_with_instants(node: Node) -> Node | None:
    """The node whose instants the operators above it drop."""
    for below in (node, *(above.input for above in unary_operators(node))):
        if below.schema.temporal:
            return below
    return None


def operators_above(node: Node, core: Node) -> list[Unary]:
    """The operators of one input above a node."""
    return list(takewhile(lambda operator: operator is not core, unary_operators(node)))


def as_selected(node: Node, core: Node, names: tuple[str, ...]) -> tuple[tuple[str, ...], Node]:
    """What attributes of `core` are called where one of them is dropped above it, or in the last `select(...)`; and
    where that is. What a selection calls them itself is not yet known there.
    """
    given, at, found = names, core, (names, core)
    for operator in reversed(operators_above(node, core)):
        if isinstance(operator, Project):
            found = (given, at.input) if isinstance(at, Rename) and _is_of(operator, at) else (names, at)
            if not set(names) <= set(operator.names):
                break
        if isinstance(operator, Rename):
            given, names = names, renamed(names, operator)
        at = operator
    return found


def _is_of(selection: Project, rename: Rename) -> bool:
    """Whether the new names are those of the selection itself, which keeps all of them."""
    return {new for _, new in rename.pairs} <= set(selection.names)


def renamed(names: Iterable[str], operator: Rename) -> tuple[str, ...]:
    new = dict(operator.pairs)
    return tuple(new.get(name, name) for name in names)


def name_above(node: Node, i: int, name: str) -> str:
    """What an attribute of the i-th occurrence is called where it is last kept."""
    for step in reversed(list(way_to(node, i))):
        if isinstance(step.node, Rename):
            (name,) = renamed((name,), step.node)
        if name not in step.node.schema:
            break
    return name


def replaced(node: Node, old: Node, new: Node) -> Node:
    """The query with another node below operators of one input."""
    if node is old:
        return new
    return with_children(node, tuple(replaced(child, old, new) for child in children(node)))


def carrying(node: Node, core: Node, name: str, term: Term) -> Node:
    """The query with a further attribute, computed at `core`, that all operators above keep."""
    if node is core:
        return Imbed(core, name, term)
    assert isinstance(node, Unary), f"{node} has several inputs"
    below = carrying(node.input, core, name, term)
    match node:
        case Project(_, names):
            return Project(below, (*names, name))
        case Group(_, keys, aggregates):
            return Group(below, (*keys, name), aggregates)
        case _:
            return with_children(node, (below,))


def free_name(name: str, node: Node) -> str:
    """A name that no attribute has, here and below."""
    taken = {known for below in (node, *(above.input for above in unary_operators(node))) for known in below.schema}
    return next(
        candidate
        for candidate in (name, *(f"{name}_{number}" for number in range(2, len(taken) + 3)))
        if candidate not in taken
    )
