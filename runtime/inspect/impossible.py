"""Rows that never come, whatever arrives: by a condition on their own instants, or a grid on which these do not lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import evaluate_term
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
)
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.program import Query
from tidegate.algebra.terms import Attr, Term, attributes_of, conjuncts
from tidegate.analysis.zones.grid import grids
from tidegate.analysis.zones.sites import site_of
from tidegate.analysis.zones.wording import amount, instant


def why_never(query: Query, row: Mapping[str, int]) -> tuple[str, ...]:
    """What a row with these instants breaks, one line each; nothing where it may come."""
    reasons = list(_off_grids(query, row))
    for term in dict.fromkeys(_broken(query.node, row)):
        site = site_of(query, term)
        reasons.append(term_text(term) + (f"   {site}" if site is not None else ""))
    return tuple(reasons)


def _off_grids(query: Query, row: Mapping[str, int]) -> Iterator[str]:
    for name, grid in grids(query.node, tuple(row)).items():
        past = (row[name] - grid.offset) % grid.unit
        if past:
            type_ = query.node.schema[name].type
            near = instant(row[name] - past, type_), instant(row[name] - past + grid.unit, type_)
            yield f"{name} is one of every {amount(grid.unit, type_)}, such as {near[0]} and {near[1]}"


def _broken(node: Node, row: Mapping[str, int]) -> Iterator[Term]:
    """Conditions that no row of an expression with these instants satisfies: those that read nothing but these."""
    match node:
        case Select(below, condition):
            yield from _false(condition, row, below)
            yield from _broken(below, row)
        case Project(below) | Distinct(below):
            yield from _broken(below, row)
        case Imbed(below, name, term):
            known = {key: value for key, value in row.items() if key != name}
            if isinstance(term, Attr) and name in row:
                known.setdefault(term.name, row[name])
            yield from _broken(below, known)
        case Rename(below, pairs):
            old = {new: before for before, new in pairs}
            yield from _broken(below, {old.get(name, name): value for name, value in row.items()})
        case Group(below, keys):
            yield from _broken(below, {name: value for name, value in row.items() if name in keys})
        case Difference(left):
            yield from _broken(left, row)
        case Product(left, right):
            yield from chain(_broken(left, _of(left, row)), _broken(right, _of(right, row)))
        case Join(left, right, condition, kind):
            if kind in ("inner", "semi"):
                yield from _false(condition, row, node)
            yield from _broken(left, _of(left, row))
            if kind == "inner":
                yield from _broken(right, _of(right, row))
        case Union(inputs):
            every = [list(_broken(input_, row)) for input_ in inputs]
            if all(every):
                yield from chain.from_iterable(every)
        case Scan() | OrderedNode():
            return
        case _:
            assert_never(node)


def _of(node: Node, row: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in row.items() if name in node.schema}


def _false(condition: Term, row: Mapping[str, int], node: Node) -> Iterator[Term]:
    attributes = {name: node.schema[name] for name in row if name in node.schema}
    for term in conjuncts(condition):
        read = attributes_of(term)
        if read and read <= attributes.keys():
            try:
                holds = evaluate_term(term, row, attributes)
            except QueryError:  # it fails for such a row, so nothing is known of it
                continue
            if holds is not True:
                yield term
