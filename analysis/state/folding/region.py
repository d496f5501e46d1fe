"""The region of an occurrence: the operators that its rows pass through, up to the sink, and what these read of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from tidegate.algebra.formulas import Compare, temporal_formula, temporal_term
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
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import MOST_OPERATIONS, Attr, Call, Param, Term, attributes_of, size_of, substitute


@dataclass(frozen=True, slots=True)
class RowTerms:
    """What an attribute holds of the occurrence's row: the largest terms over that row alone.

    `alone`: the attribute is the one term, and reads no other occurrence.
    """

    terms: tuple[Term, ...]
    alone: bool


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operator above an occurrence. The occurrence's rows enter it by the child at this place.

    `held` says what the attributes of its inputs hold of the occurrence's attributes, `row`. `timed`: the occurrence's
    instants are instants there, in its region.
    """

    node: Node
    place: int
    held: Mapping[str, RowTerms]
    row: Schema
    timed: bool

    @property
    def schema(self) -> Schema:
        """The attributes that the condition of the operator reads, where it has one, as it reads them."""
        if isinstance(self.node, Join):
            return Join(self.node.left, self.node.right, self.node.condition, "inner").schema
        return self.node.schema

    @property
    def condition(self) -> Term | None:
        return self.node.condition if isinstance(self.node, Select | Join) else None


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The operators from the occurrence up to its sink, and those above it, which do not see single rows.

    Without a sink the rows reach the result, which holds `held`.
    """

    steps: tuple[Step, ...]
    sink: Step | None
    above: tuple[tuple[Node, int], ...]
    held: Mapping[str, RowTerms]

    @property
    def inside(self) -> tuple[Step, ...]:
        """The operators of the region, and its sink, of which a semi- or anti-join has a condition."""
        return self.steps if self.sink is None else (*self.steps, self.sink)

    @property
    def existence(self) -> bool:
        """Whether the sink asks whether there are rows, and does not count them (rule R33)."""
        return self.sink is not None and not isinstance(self.sink.node, Group)


@dataclass(frozen=True, slots=True)
class Literal:
    """A comparison of instants in a condition of the region, the step by number. It reads the occurrence and others."""

    step: int
    term: Term


@dataclass(frozen=True, slots=True)
class LaterOf:
    """A term `t = max(s, …)` that the new attribute `name` is defined by, with those of its arguments that do not read
    the occurrence.
    """

    step: int
    name: str
    term: Term
    others: Term


def region(node: Node, i: int) -> Region | None:
    """The region of occurrence i; None where an operator that gathers rows in order stands above it, or where its
    attributes are too large as terms over the occurrence's row.
    """
    return None if is_read_in_order(node, i) else _along(_path(node, i), occurrences(node)[i].schema, None)


def is_read_in_order(node: Node, i: int) -> bool:
    """Whether an operator that gathers rows in order stands above occurrence i."""
    return any(isinstance(operator, OrderedNode) for operator, _ in _path(node, i))


def without(region: Region, later: LaterOf, schema: Schema) -> Region:
    """The region in which the term counts as one that does not read the occurrence (a settled term, rule R30)."""
    path = [(step.node, step.place) for step in region.inside]
    found = _along((*path, *region.above), schema, later.step)
    assert found is not None  # its attributes hold no other terms than they do in the region
    return found


def _path(node: Node, i: int) -> tuple[tuple[Node, int], ...]:
    """The operators above occurrence i from the innermost on, with the place of the child that leads to it."""
    path: list[tuple[Node, int]] = []
    while not isinstance(node, Scan):
        for place, child in enumerate(children(node)):
            number = len(occurrences(child))
            if i < number:
                path.append((node, place))
                node = child
                break
            i -= number
    return tuple(reversed(path))


def _along(path: tuple[tuple[Node, int], ...], schema: Schema, settled: int | None) -> Region | None:
    held: Mapping[str, RowTerms] = {name: RowTerms((Attr(name),), alone=True) for name in schema}
    steps: list[Step] = []
    timed = True
    for number, (node, place) in enumerate(path):
        step = Step(node, place, held, schema, timed)
        if is_sink(node, place):
            return Region(tuple(steps), step, path[number + 1 :], {})
        steps.append(step)
        if number != settled:
            held = _through(node, held)
            if any(size_of(term) > MOST_OPERATIONS for of in held.values() for term in of.terms):
                return None
        timed = timed and not (isinstance(node, Join) and node.kind == "left" and place == 1)
    return Region(tuple(steps), None, (), held)


def is_sink(node: Node, place: int) -> bool:
    """Whether the operator does more with the rows that enter at this place than pass them through."""
    match node:
        case Group() | Distinct():
            return True
        case Join():
            return place == 1 and node.kind in ("semi", "anti")
        case Difference():
            return place == 1
        case Scan() | Select() | Project() | Rename() | Imbed() | Product() | Union():
            return False
        case OrderedNode():
            return True
        case _:
            assert_never(node)


def _through(node: Node, held: Mapping[str, RowTerms]) -> Mapping[str, RowTerms]:
    """What attributes of the operator's result hold, where rows of the occurrence pass through it."""
    match node:
        case Project(_, names):
            return {name: held[name] for name in names if name in held}
        case Rename(_, pairs):
            new = dict(pairs)
            return {new.get(name, name): of for name, of in held.items()}
        case Imbed(_, name, term):
            parts = tuple(own_parts(term, held))
            return {**held, name: RowTerms(parts, alone=reads_alone(term, held))} if parts else held
        case _:
            return held


def own_parts(term: Term, held: Mapping[str, RowTerms]) -> Iterator[Term]:
    """The largest terms over the occurrence's row alone that a term reads."""
    if reads_alone(term, held):
        yield substitute(term, lambda leaf: _of(leaf, held))
        return
    match term:
        case Attr(name) if name in held:
            yield from held[name].terms
        case Call(_, args):
            for arg in args:
                yield from own_parts(arg, held)
        case _:
            pass


def condition_parts(condition: Term, held: Mapping[str, RowTerms], settled: Collection[Term]) -> Iterator[Term]:
    """The same of a condition, without the comparisons that are settled. Only those count that and, or and not combine:
    within other terms they are data.
    """
    if condition in settled:
        return
    match condition:
        case Call("and" | "or" | "not", args) if not reads_alone(condition, held):
            for arg in args:
                yield from condition_parts(arg, held, settled)
        case _:
            yield from own_parts(condition, held)


def _of(leaf: Attr | Param, held: Mapping[str, RowTerms]) -> Term:
    return held[leaf.name].terms[0] if isinstance(leaf, Attr) else leaf


def comparisons(step: Step) -> Iterator[tuple[Term, Compare, bool]]:
    """The comparisons of instants in the condition of a step, with the polarity of each place."""
    if step.timed and step.condition is not None:
        yield from _comparisons(step.condition, step.schema, positive=True)


def _comparisons(condition: Term, schema: Schema, *, positive: bool) -> Iterator[tuple[Term, Compare, bool]]:
    match condition:
        case Call("and" | "or", args):
            for arg in args:
                yield from _comparisons(arg, schema, positive=positive)
        case Call("not", (arg,)):
            yield from _comparisons(arg, schema, positive=not positive)
        case Call():
            formula = temporal_formula(condition, schema)
            if isinstance(formula, Compare):
                yield condition, formula, positive
        case _:
            pass


def literals(region: Region) -> tuple[Literal, ...]:
    """The comparisons that may be settled: they read instants of the occurrence and of others."""
    return tuple(
        dict.fromkeys(
            Literal(number, term)
            for number, step in enumerate(region.inside)
            for term, _, _ in comparisons(step)
            if any(own_parts(term, step.held)) and not reads_alone(term, step.held)
        )
    )


def reads_alone(term: Term, held: Mapping[str, RowTerms]) -> bool:
    """Whether a term reads the occurrence's row and nothing else."""
    names = attributes_of(term)
    return bool(names) and all(name in held and held[name].alone for name in names)


def later_ofs(region: Region) -> Iterator[LaterOf]:
    """The terms `max(s, …)` of new attributes of which the occurrence gives some arguments, others the rest."""
    for number, step in enumerate(region.steps):
        match step.node:
            case Imbed(input_, name, Call("greatest", args) as term) if step.timed:
                others = [arg for arg in args if not any(own_parts(arg, step.held))]
                given = [arg for arg in args if arg not in others]
                alone = all(reads_alone(arg, step.held) for arg in given)
                if given and others and alone and temporal_term(term, input_.schema) is not None:
                    latest = others[0] if len(others) == 1 else Call("greatest", tuple(others))
                    yield LaterOf(number, name, term, latest)
