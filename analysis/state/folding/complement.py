"""Complements: the queries whose keep conditions say whether a comparison, or a term, is settled (rule R30)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from tidegate.algebra.nodes import Imbed, Join, Node, Scan, Select, children, with_children
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import FALSE, TRUE, Call, Lit, Term, call, conjunction, conjuncts, disjunction
from tidegate.algebra.types import BIGINT
from tidegate.analysis.state.folding.region import LaterOf, Literal, Region

#: A condition on data: the analysis takes it for ⊤ in either polarity (rule R3).
DATA: Final = call("eq", Lit(0, BIGINT), Lit(0, BIGINT))


def complement(region: Region, stream: StreamDef, literal: Literal, others: Collection[Literal], *, true: bool) -> Node:
    """The query of which R14 must not keep a row for whom the literal is settled, true or false; `others` are those
    that are to be settled beside it.
    """

    def changed(number: int, node: Node) -> Node:
        node = _on_data(node, [settled.term for settled in others if settled.step == number and settled != literal])
        return _pivotal(node, literal.term, true=true) if number == literal.step else node

    return _rebuilt(region, stream, changed)


def complements_of_term(
    region: Region, stream: StreamDef, later: LaterOf, others: Collection[Literal]
) -> tuple[Node, Node]:
    """The two queries that must not keep a row for whom the term is settled: the result row that goes, and the one
    that comes.
    """

    def with_value(value: Term) -> Callable[[int, Node], Node]:
        def changed(number: int, node: Node) -> Node:
            node = _on_data(node, [settled.term for settled in others if settled.step == number])
            if number == later.step and isinstance(node, Imbed):
                return Imbed(Select(node.input, call("ne", later.term, later.others)), node.name, value)
            return node

        return changed

    return tuple(_rebuilt(region, stream, with_value(value)) for value in (later.term, later.others))  # type: ignore[return-value]  # two values


def _rebuilt(region: Region, stream: StreamDef, changed: Callable[[int, Node], Node]) -> Node:
    """The whole query with the operators above the occurrence changed, each given by its number and over new input."""
    path = [*((step.node, step.place) for step in region.inside), *region.above]
    below: Node = Scan(stream)
    for number, (node, place) in enumerate(path):
        inputs = (*children(node)[:place], below, *children(node)[place + 1 :])
        below = changed(number, with_children(node, inputs))
    return below


def _on_data(node: Node, terms: Collection[Term]) -> Node:
    """The operator with these comparisons taken for conditions on data."""
    if not terms or not isinstance(node, Select | Join):
        return node
    return _conditioned(node, _replaced(node.condition, dict.fromkeys(terms, DATA)))


def _conditioned(node: Select | Join, condition: Term) -> Node:
    if isinstance(node, Select):
        return Select(node.input, condition)
    return Join(node.left, node.right, condition, node.kind)


def _replaced(condition: Term, by: dict[Term, Term]) -> Term:
    if condition in by:
        return by[condition]
    match condition:
        case Call("and" | "or" | "not" as op, args):
            return Call(op, tuple(_replaced(arg, by) for arg in args))
        case _:
            return condition


def _pivotal(node: Node, term: Term, *, true: bool) -> Node:
    """The operator over the rows, or pairs, for which the comparison is false (true), and that depend on it."""
    if not isinstance(node, Select | Join):
        raise AssertionError(f"{node} has no condition")
    parts = conjuncts(node.condition)
    dependent = [part for part in parts if _replaced(part, {term: TRUE}) != part]
    rest = [part for part in parts if part not in dependent]
    either = disjunction(
        [conjunction([_replaced(part, {term: value}) for part in dependent]) for value in (TRUE, FALSE)]
    )
    condition = conjunction([call("not", term) if true else term, *rest, either])
    if isinstance(node, Select) or node.kind == "inner":
        return _conditioned(node, condition)
    pairs: Node = Join(node.left, node.right, condition, "semi")
    if node.kind == "left":
        for attribute in node.right.schema.attributes:
            pairs = Imbed(pairs, attribute.name, Lit(None, attribute.type))
    return pairs
