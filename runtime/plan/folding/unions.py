"""Unions and differences of rows that stand for several: of either side they carry the same columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.nodes import Difference, Imbed, Join, Node, Project, Rename, Select, Union
from tidegate.algebra.row_wise import term_below
from tidegate.algebra.terms import MOST_OPERATIONS, Attr, Term, attributes_of, call, conjunction, size_of
from tidegate.runtime.plan.folding.carriers import ADDS, ONE, Carrier, part_terms, times


@dataclass(frozen=True, slots=True)
class Asked:
    """An aggregate of the grouping above, with its argument and its order as terms over the rows at hand; None where
    these rows alone do not give it.
    """

    aggregate: Aggregate
    form: Form
    argument: Term | None
    order: Term | None

    def terms(self) -> Iterator[Term]:
        yield from (term for term in (self.argument, self.order) if term is not None)

    def below(self, node: Node, child: Node) -> Asked:
        """The same over the rows of an input of an operator."""
        return Asked(self.aggregate, self.form, _below(node, child, self.argument), _below(node, child, self.order))


def _below(node: Node, child: Node, term: Term | None) -> Term | None:
    if term is None:
        return None
    if isinstance(node, Select | Project | Rename | Imbed):
        term = term_below(term, node)
    return term if size_of(term) <= MOST_OPERATIONS and attributes_of(term) <= set(child.schema) else None


def united(
    node: Union,
    sides: Sequence[tuple[Node, Sequence[Carrier]]],
    asked: Iterable[Asked],
    names: Iterator[str],
) -> tuple[Node, Carrier]:
    """The union of rows of which some stand for several. `names` are free for columns that all sides then have: how
    many rows a row stands for, and the partial results that some side has.
    """
    columns: list[dict[str, Term]] = [{} for _ in sides]

    def added(values: Sequence[Term]) -> str:
        name = next(names)
        for column, value in zip(columns, values, strict=True):
            column[name] = value
        return name

    parts: dict[str, dict[str, str]] = {}
    often: dict[str, str] = {}
    for one in asked:
        name = one.aggregate.name
        kinds = dict.fromkeys(kind for _, carriers in sides for c in carriers for kind in c.parts.get(name, ()))
        if not kinds:
            continue
        values = [_parts(one, node, carriers) for _, carriers in sides]
        parts[name] = {kind: added([side[kind] for side in values]) for kind in kinds}
        if one.form in ADDS:
            factors = [times(tree.schema, [c.factor(name) for c in carriers]) for tree, carriers in sides]
            if any(factor is not None for factor in factors):
                often[name] = added([factor or ONE for factor in factors])
    numbers = [times(tree.schema, [c.number for c in carriers]) for tree, carriers in sides]
    number = added([n or ONE for n in numbers]) if any(n is not None for n in numbers) else None
    several = any(c.several for _, carriers in sides for c in carriers) or any(
        sum(c.number is not None for c in carriers) > 1 for _, carriers in sides
    )
    made = tuple(dict.fromkeys(name for column in columns for name in column))
    inputs = tuple(
        _with_columns(tree, column, (*node.schema.names, *made))
        for (tree, _), column in zip(sides, columns, strict=True)
    )
    return Union(inputs), Carrier(made, number, parts, often, several)


def _parts(one: Asked, node: Union, carriers: Sequence[Carrier]) -> dict[str, Term]:
    """The partial results of an aggregate on one side: as its rows carry them, else those of the row itself."""
    own = {kind: Attr(column) for c in carriers for kind, column in c.parts.get(one.aggregate.name, {}).items()}
    # Each by itself: where the row gives both, a value without an order is none to the grouping either.
    alone = part_terms(one.aggregate, one.form, one.argument, None, node.schema)
    return {**alone, **({} if one.order is None else {"by": one.order}), **own}


def _with_columns(tree: Node, columns: Mapping[str, Term], names: Collection[str]) -> Node:
    for name, value in columns.items():
        tree = Imbed(tree, name, value)
    return Project(tree, tuple(names))


def remaining(node: Difference, left: Node, right: Node, mark: str) -> Node:
    """A difference whose left rows carry more than is compared: the anti-join by all that is."""
    other = {name: f"{mark}other {name}" for name in node.left.schema.names}
    equal: list[Term] = [call("eq_null_safe", Attr(name), Attr(renamed)) for name, renamed in other.items()]
    return Join(left, Rename(right, tuple(other.items())), conjunction(equal), "anti")
