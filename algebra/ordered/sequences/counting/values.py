"""What groups of matches aggregate: a value of each match, as one of its first or last row, or of all of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.ordered.sequences.counting.labels import LabelledAutomaton
from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST
from tidegate.algebra.ordered.sequences.navigation import RowOf, RowsAggregate, RowValue
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.summary import Halves
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.terms import Attr, Lit, Param, Term, attributes_of, substitute
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, BOOLEAN, DOUBLE

#: How a value is made of the rows of a match with some labels: that of the first or last one, or an aggregate of all.
Of = Literal["first", "last", "count", "sum", "least", "greatest"]
_OF_ROWS: dict[Function, Of] = {
    Function.COUNT: "count",
    Function.SUM: "sum",
    Function.TRY_SUM: "sum",
    Function.MIN: "least",
    Function.MAX: "greatest",
}


@dataclass(frozen=True, slots=True)
class MatchValue:
    """A value of a match: of its rows that have one of the labels, as bits, which is `term` over a row.

    `count` counts the rows in which the term is not NULL; all others skip NULL but `first` and `last`, which yield it.
    """

    of: Of
    labels: int
    term: Term


def value_of(node: Sequences, labelled: LabelledAutomaton, name: str) -> MatchValue | str:
    """What the attribute of a match is a value of; where it is none of these, why."""
    every = (1 << len(labelled.labels)) - 1
    if name in (LAST, DETECTED):
        return MatchValue("last", every, Attr(node.time))
    if name == FIRST:
        return MatchValue("first", every, Attr(node.time))
    if name in node.keys:
        return MatchValue("last", every, Attr(name))
    measure = next(measure.term for measure in node.measures if measure.name == name)
    by_name = {navigation.name: navigation for navigation in node.navigations}
    read = [by_name[name] for name in sorted(attributes_of(measure)) if name in by_name]
    if isinstance(measure, Attr) and len(read) == 1 and isinstance(read[0], RowsAggregate):
        return _of_rows(node, labelled, name, read[0])
    values = [navigation for navigation in read if isinstance(navigation, RowValue)]
    rows = {navigation.row for navigation in values}
    if len(values) < len(read) or len(rows) > 1 or attributes_of(measure) - by_name.keys():
        return f"{name} is computed of several values of a match"
    row = next(iter(rows), RowOf())
    if row.offset or row.step:
        return f"{name} reads a row beside the first or last one with a variable"
    labels = _labels(labelled, row.variables, every)
    if not isinstance(measure, Attr) and not _always(labelled, labels):
        return f"{name} is computed of a row that a match need not have"
    arguments = {navigation.name: navigation.argument for navigation in values}

    def own(leaf: Attr | Param) -> Term:
        return arguments.get(leaf.name, leaf) if isinstance(leaf, Attr) else leaf

    return MatchValue("first" if row.end == "first" else "last", labels, substitute(measure, own))


def _of_rows(node: Sequences, labelled: LabelledAutomaton, name: str, read: RowsAggregate) -> MatchValue | str:
    aggregate, every = read.aggregate, (1 << len(labelled.labels)) - 1
    of = _OF_ROWS.get(aggregate.function)
    if of is None:
        return f"{name} is {aggregate_text(aggregate)} of the rows of a match"
    term = Lit(1, BIGINT) if aggregate.argument is None else aggregate.argument
    if of == "sum" and term_type(term, node.input.schema) not in (BIGINT, DOUBLE):
        return f"{name} is a sum of durations or decimals"
    return MatchValue(of, _labels(labelled, read.variables, every), term)


def _labels(labelled: LabelledAutomaton, variables: Iterable[str], every: int) -> int:
    """The labels of some variables as bits; all where none is named."""
    bits = sum(1 << labelled.labels.index(variable) for variable in set(variables) & {*labelled.labels})
    return bits if variables else every


def _always(labelled: LabelledAutomaton, labels: int) -> bool:
    """Whether each match has a row with one of these labels."""
    reached, waiting = {0}, [0]
    for state in waiting:
        for step in labelled.steps:
            if step.source == state and not labels >> step.label & 1 and step.target not in reached:
                reached.add(step.target)
                waiting.append(step.target)
    return not reached & labelled.accepting


def asked(
    node: Sequences, labelled: LabelledAutomaton, aggregates: Iterable[Aggregate], totals: Iterable[Halves]
) -> str | None:
    """Why these aggregates over matches are not to be had without listing them; None where they are."""
    for aggregate in aggregates:
        if aggregate.argument is None:
            continue
        assert isinstance(aggregate.argument, Attr)
        name = aggregate.argument.name
        value = value_of(node, labelled, name)
        if isinstance(value, str):
            return value
        if aggregate.function in (Function.MIN, Function.MAX):
            if value.of == "sum":
                return f"{aggregate_text(aggregate)} is of sums of the rows of a match"
            type_ = node.schema[name].type
            if not type_.is_integer_held and type_ not in (DOUBLE, BOOLEAN):
                return f"{aggregate_text(aggregate)} is of values that are no numbers"
    for total in totals:
        value = value_of(node, labelled, total.argument)
        if isinstance(value, str):
            return value
        if value.of in ("least", "greatest"):
            return f"{total.argument} is the {value.of} value of the rows of a match, of which sums are asked for"
    return None
