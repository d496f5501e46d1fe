"""Several calls of `over`, one on the result of another one: by one key in one order they are one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from tidegate.algebra.dsl.checks.relation import free_name, renamed
from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Select
from tidegate.algebra.ordered.over import (
    FrameAggregate,
    Neighbour,
    NextDifferent,
    Nth,
    Over,
    OverColumn,
    PreviousDifferent,
    Reported,
    RowNumber,
    terms_of,
    with_name,
    with_terms,
)
from tidegate.algebra.terms import (
    MOST_OPERATIONS,
    Attr,
    Lit,
    Param,
    Term,
    attributes_of,
    call,
    conjunction,
    size_of,
    substitute,
)
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT

#: What is made of single rows.
_RowWise: TypeAlias = Imbed | Select | Project | Rename


def in_one_operator(asked: Over) -> Node | None:
    """The rows of an operator that reads those of another one, with what is made of them row by row between: the other
    one has all columns, and stands below the rest. None where they have to be two.
    """
    below: Node = asked.input
    steps: list[_RowWise] = []
    while isinstance(below, Imbed | Select | Project | Rename):
        steps.append(below)
        below = below.input
    steps.reverse()
    if not isinstance(below, Over):
        return None
    between = _Between({name: name for name in below.schema})
    for step in steps:
        between.read(step)
        if any(size_of(term) > MOST_OPERATIONS for term in between.terms[-1:]):
            return None
    further = _further(below, asked, between) if _are_in_one_order(below, asked, between.names) else None
    if further is None:
        return None
    if not steps:
        return replace(below, columns=(*below.columns, *further))
    wanted, names = asked.schema.names, _free_names(asked, below, steps)
    above = _Above(replace(below, columns=(*below.columns, *map(with_name, further, names))), {*below.schema, *names})
    for step in steps:
        above.add(step)
    above.rename(dict(zip(names, (column.name for column in asked.columns), strict=True)))
    return above.rows if above.rows.schema.names == wanted else Project(above.rows, wanted)


@dataclass(slots=True)
class _Above:
    """What is made of the rows of an operator row by row, with all their attributes: were they left out, or put in
    another order, at each step, a chain of calls would have a `Project` for each of them.
    """

    rows: Node
    names: set[str]

    def add(self, step: _RowWise) -> None:
        match step:
            case Imbed(_, name, term):
                if name in self.names:
                    self.rename({name: free_name(name, self.names)})
                self.rows = Imbed(self.rows, name, term)
                self.names.add(name)
            case Select(_, condition):
                self.rows = Select(self.rows, condition)
            case Rename(_, pairs):
                self.rename(dict(pairs))
            case Project():
                pass
            case _:
                assert_never(step)

    def rename(self, new: Mapping[str, str]) -> None:
        """New names for some attributes. Others that have one of these were left out by a step before, and get free
        ones. What the step below renames is renamed once.
        """
        for name in [name for name in new.values() if name in self.names and name not in new]:
            new = {**new, name: free_name(name, {*self.names, *new.values()})}
        self.names = {new.get(name, name) for name in self.names}
        before: tuple[tuple[str, str], ...] = ()
        if isinstance(self.rows, Rename):
            before, self.rows = self.rows.pairs, self.rows.input
        known = {name for _, name in before}
        pairs = [(name, new.get(then, then)) for name, then in before]
        pairs += ((name, then) for name, then in new.items() if name not in known)
        self.rows = renamed(self.rows, pairs)


@dataclass(slots=True)
class _Between:
    """What stands between two operators, by attributes of the first one.

    `names` are attributes of the first one by the names that the second one knows, `computed` others that it knows;
    `terms` are all that are evaluated, `conditions` those that choose rows.
    """

    names: dict[str, str]
    computed: dict[str, Term] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)
    conditions: list[Term] = field(default_factory=list)

    def read(self, step: _RowWise) -> None:
        match step:
            case Imbed(_, name, term):
                self.terms.append(self.of_first(term))
                self.computed[name] = self.terms[-1]
            case Select(_, condition):
                self.terms.append(self.of_first(condition))
                self.conditions.append(self.terms[-1])
            case Project(_, kept):
                self.names = {name: self.names[name] for name in kept if name in self.names}
                self.computed = {name: self.computed[name] for name in kept if name in self.computed}
            case Rename(_, pairs):
                new = dict(pairs)
                self.names = {new.get(name, name): first for name, first in self.names.items()}
                self.computed = {new.get(name, name): term for name, term in self.computed.items()}
            case _:
                assert_never(step)

    def of_first(self, term: Term) -> Term:
        """A term of the second operator over attributes of the first one."""

        def written(leaf: Attr | Param) -> Term:
            if not isinstance(leaf, Attr):
                return leaf
            return Attr(self.names[leaf.name]) if leaf.name in self.names else self.computed[leaf.name]

        return substitute(term, written)


def _are_in_one_order(below: Over, asked: Over, names: dict[str, str]) -> bool:
    """Whether both go by one key in one order, and each row of the second is complete and in its place with that of the
    first.
    """
    tie = None if asked.tie is None else names.get(asked.tie, "")
    if (tuple(map(names.get, asked.keys)), names.get(asked.time), tie) != (below.keys, below.time, below.tie):
        return False
    if asked.input is below:
        return True
    # Of rows that wait `complete` is the last attribute; of two rows of one instant only the second takes offence.
    return not (below.waits or asked.waits or below.merges_equal or (asked.needs_order and not below.needs_order))


def _further(below: Over, asked: Over, between: _Between) -> Sequence[OverColumn] | None:
    """The columns of the second operator as those of the first one; None where they need another one.

    They may read its columns that only look back, unless what they compute of these may have no value: such rows are
    set aside before the next operator sees them.
    """
    further = [with_terms(column, between.of_first) for column in asked.columns]
    own, known = {*below.input.schema}, below.known
    terms = [*between.terms, *(term for column in further for term in terms_of(column))]
    if any(not attributes_of(term) <= known.keys() for term in terms):
        return None
    direct = asked.input is below
    if any(resolve(term, known).fallible for term in terms if not direct or not attributes_of(term) <= own):
        return None
    if [_goes_by_order(below, column) for column in further] != [_goes_by_order(asked, one) for one in asked.columns]:
        return None  # by a copy of the instant, which orders no rows
    if not between.conditions:
        return further
    chosen = [_of_selected(below, column, conjunction(between.conditions)) for column in further]
    some = [column for column in chosen if column is not None]
    return some if len(some) == len(chosen) else None


def _goes_by_order(node: Over, column: OverColumn) -> bool:
    return isinstance(column, FrameAggregate) and node.goes_by_order(column.aggregate)


def _free_names(asked: Over, below: Over, steps: Sequence[_RowWise]) -> Sequence[str]:
    """Names of an operator's columns further below: their own ones, unless an attribute has it there."""
    there = {*below.schema}
    for step in steps:
        if isinstance(step, Imbed):
            there.add(step.name)
        elif isinstance(step, Rename):
            there.update(name for _, name in step.pairs)
    own = [column.name for column in asked.columns]
    free: list[str] = []
    for name in own:
        free.append(free_name(name, {*there, *own, *free}) if name in there else name)
    return free


def _of_selected(below: Over, column: OverColumn, condition: Term) -> OverColumn | None:
    """The column over those rows alone that satisfy a condition, as one over all rows of an operator: aggregates skip
    NULL. None where it goes by which rows there are, or more rows would have to be kept for it.
    """
    if not isinstance(column, FrameAggregate) or column.frame.unit == "rows":
        return None
    aggregate, frame = column.aggregate, column.frame
    if frame.after or not any(_keeps(one, frame.before) for one in below.columns):
        return None
    argument: Term = Lit(1, BIGINT) if aggregate.argument is None else aggregate.argument
    nothing = Lit(None, term_type(argument, below.known))
    return FrameAggregate(replace(aggregate, argument=call("if", condition, argument, nothing)), frame)


def _keeps(column: OverColumn, before: int | None) -> bool:
    """Whether rows are kept for a column that are enough for a frame by range: of each key the last row, or those of so
    many ticks.
    """
    match column:
        case RowNumber() | PreviousDifferent():
            return before is None
        case Reported(_, within):
            return before is None and within is None
        case Neighbour(_, _, offset, within):
            return before is None and within is None and offset < 0
        case NextDifferent():
            return False
        case Nth(frame=frame) | FrameAggregate(frame=frame):
            if before is None:
                return frame.before is None or (frame.unit == "rows" and frame.before > 0)
            return frame.unit == "range" and frame.before is not None and frame.before >= before
        case _:
            assert_never(column)
