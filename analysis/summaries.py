"""Groups of the rows of an ordered operator, of one that tells them without its rows (rule R47).

A grouping that stands above such an operator, with nothing but row-wise parts between, is made of finer groups: those
that the operator yields. Whether it does its family says. All others list their rows, as everything did before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tidegate.algebra.errors import Site
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import (
    Group,
    Imbed,
    Node,
    OrderedNode,
    Project,
    Rename,
    Scan,
    Select,
    children,
    nodes_of,
    with_children,
)
from tidegate.algebra.ordered.summary import HIGH_BITS, Halves, Summary
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.rewrites.totals import Total
from tidegate.algebra.row_wise import has_ordered_operator
from tidegate.algebra.schema import Schema, unused_mark
from tidegate.algebra.terms import Attr, Lit, Term, attributes_of, call
from tidegate.algebra.types import BIGINT, DOUBLE
from tidegate.analysis.ordered.table import family_of

_ONE, _ZERO, _MANY = Lit(1, BIGINT), Lit(0, BIGINT), Lit(2**61, BIGINT)
#: Operators between a grouping and the operator of which it groups the rows.
_RowWise = Select | Project | Rename | Imbed


@dataclass(frozen=True, slots=True)
class Listed:
    """A grouping above an operator that lists its rows, and why it does."""

    group: Group
    operator: OrderedNode
    why: str


def with_summaries(program: ProgramDef) -> ProgramDef:
    """The program in which groups of an operator's rows are made of its own groups wherever it yields them."""
    queries = tuple(_summarised(query) if has_ordered_operator(query.node) else query for query in program.queries)
    return program if queries == program.queries else ProgramDef(queries)


def listed(query: Query, program: ProgramDef) -> Iterator[Listed]:
    """The groupings of an analysed query above operators that could yield groups, and do not."""
    inner = {other.stream: other.node for other in program.queries if other.inner}
    for node in nodes_of(query.node):
        if isinstance(node, Group) and isinstance(result := _groups(node, inner), Listed) and result.why:
            yield result


def _summarised(query: Query) -> Query:
    sites: dict[Term | Node, Site] = {}

    def rewritten(node: Node) -> Node:
        below = with_children(node, tuple(map(rewritten, children(node))))
        made = _groups(below) if isinstance(below, Group) else None
        result = below if made is None or isinstance(made, Listed) else made
        if result is not node and node in query.sites:
            sites[result] = query.sites[node]
        return result

    node = rewritten(query.node)
    return query if node is query.node else replace(query, node=node, sites={**query.sites, **sites})


def _groups(group: Group, inner: Mapping[str, Node] = MappingProxyType({})) -> Node | Listed | None:
    """The grouping over groups of the operator below it, or why its rows are listed; None where there is none. `inner`
    has the nodes of inner queries.
    """
    between: list[_RowWise] = []
    node = group.input
    while isinstance(node, Select | Project | Rename | Imbed | Scan):
        if isinstance(node, Scan):
            if node.stream.name not in inner:
                return None
            node = inner[node.stream.name]
            continue
        between.append(node)
        node = node.input
    if not isinstance(node, OrderedNode) or isinstance(node, Summary):
        return None
    read = _Read.of(group, between)
    if isinstance(read, str):
        return Listed(group, node, read)
    mark = unused_mark(name for below in (group, *between, node) for name in below.schema)
    parts = _Parts(mark, read.arguments, node.schema)
    finished: list[tuple[str, Term]] = []
    for aggregate in group.aggregates:
        term = parts.finished(aggregate)
        if isinstance(term, str):
            return Listed(group, node, term)
        finished.append((aggregate.name, term))
    summary = family_of(node).summary(node, tuple(sorted(read.keys)), tuple(parts.below), tuple(parts.totals))
    if isinstance(summary, str):
        return Listed(group, node, summary)
    whole: Node = Group(parts.over(summary, between, read.terms), group.keys, tuple(parts.above))
    for name, term in (*parts.hidden, *finished):
        whole = Imbed(whole, name, term)
    return whole if whole.schema.names == group.schema.names else Project(whole, group.schema.names)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a grouping reads of the operator below: the attributes that tell its groups and choose its rows, and those
    of aggregates by their names above; `terms` are the computed attributes that it needs.
    """

    keys: frozenset[str]
    arguments: Mapping[str, str]
    terms: frozenset[str]

    @classmethod
    def of(cls, group: Group, between: list[_RowWise]) -> _Read | str:
        """What is read through these operators, the upper ones first; the reason where that cannot be told."""
        keys, terms = set(group.keys), set[str]()
        arguments: dict[str, str] = {}
        for aggregate in group.aggregates:
            if aggregate.by is not None or not isinstance(aggregate.argument, Attr | None):
                return f"the argument of {aggregate.function.value} is computed"
            if aggregate.argument is not None:
                arguments[aggregate.argument.name] = aggregate.argument.name
        for node in between:
            match node:
                case Select(input_, condition):
                    if can_fail(condition, input_.schema):
                        return "a condition may have no value"
                    keys |= attributes_of(condition)
                case Rename(_, pairs):
                    old = {new: name for name, new in pairs}
                    keys = {old.get(name, name) for name in keys}
                    arguments = {above: old.get(name, name) for above, name in arguments.items()}
                case Imbed(input_, name, term):
                    if name in arguments.values():
                        return f"{name} is computed"
                    if can_fail(term, input_.schema):
                        return f"{name} may have no value"
                    if name in keys:
                        terms.add(name)
                        keys = keys - {name} | attributes_of(term)
        return cls(frozenset(keys), arguments, frozenset(terms))


@dataclass(slots=True)
class _Parts:
    """The aggregates of groups of the operator's rows, which have this schema, and those of these that a grouping above
    has; `hidden` are attributes that are made of the latter.
    """

    mark: str
    arguments: Mapping[str, str]
    rows: Schema
    below: list[Aggregate] = field(default_factory=list)
    totals: list[Halves] = field(default_factory=list)
    above: list[Aggregate] = field(default_factory=list)
    hidden: list[tuple[str, Term]] = field(default_factory=list)

    def finished(self, aggregate: Aggregate) -> Term | str:
        """An aggregate of a grouping as a term over aggregates of parts; where it is not made of such, why."""
        function = aggregate.function
        argument = aggregate.argument.name if isinstance(aggregate.argument, Attr) else None
        if function is Function.COUNT:
            return self.count(self.part(function, argument))
        if argument is not None and function in (Function.MIN, Function.MAX):
            return self.whole(function, Attr(self.part(function, argument)))
        if argument is None or function not in (Function.SUM, Function.TRY_SUM, Function.AVG):
            return f"{function.value} is not made of those of parts"
        type_ = self.rows[self.arguments[argument]].type
        if type_ == DOUBLE:
            number = self.count(self.part(Function.COUNT, argument)) if function is Function.AVG else None
            return self.double(self.arguments[argument], number)
        if type_ != BIGINT:
            return f"{function.value} is of durations or decimals"
        total, beyond = self.total(self.arguments[argument])
        if function is Function.AVG:
            return self.average(total, beyond, self.count(self.part(Function.COUNT, argument)))
        return total.term(lenient=function is Function.TRY_SUM)

    def total(self, argument: str) -> tuple[Total, Attr]:
        """The sum of an attribute, and how many parts of it are too large to tell. Then the sum is too large."""
        high, low, beyond = self.halves(argument, double=False)
        told = call("if", call("eq", beyond, _ZERO), high, Lit(2**HIGH_BITS, BIGINT))
        hidden = f"{self.mark}total{argument}", told
        if hidden not in self.hidden:
            self.hidden.append(hidden)
        return Total(Attr(hidden[0]), low), beyond

    def double(self, argument: str, number: Term | None) -> Term:
        """The sum of an attribute of doubles; with the number of those that are not NULL, their mean."""
        high, low, beyond = self.halves(argument, double=True)
        told: Term = call("add", high, low)
        if number is not None:
            told = call("try_div", told, call("cast_double", call("greatest", number, _ONE)))
        return call("if", call("eq", beyond, _ZERO), told, call("cast_double", _too_many(beyond)))

    def halves(self, argument: str, *, double: bool) -> Sequence[Attr]:
        """The sums of the halves of an attribute over all parts, and the number of those that are too large to tell."""
        high, low, beyond = (f"{self.mark}{part}{argument}" for part in ("high", "low", "beyond"))
        halves = Halves(argument, high, low, beyond, double)
        if halves not in self.totals:
            self.totals.append(halves)
        return [self.whole(Function.SUM, Attr(part)) for part in halves.columns]

    def average(self, total: Total, beyond: Attr, number: Term) -> Term:
        """The exact total divided by the number of values, also where the total is beyond its type."""
        whole = call("coalesce", call("cast_double", total.term(lenient=True)), total.approximate())
        mean = call("try_div", whole, call("cast_double", call("greatest", number, _ONE)))
        return call("if", call("eq", beyond, _ZERO), mean, call("cast_double", _too_many(beyond)))

    def count(self, part: str) -> Term:
        """A number of rows: none where a part, or all of them, are more than a bigint can be (as of folded rows)."""
        total = self.whole(Function.SUM, Attr(part))
        beyond = self.whole(Function.COUNT, call("if", call("is_null", Attr(part)), _ONE, Lit(None, BIGINT)))
        return call("if", call("eq", beyond, _ZERO), call("coalesce", total, _ZERO), _too_many(beyond))

    def part(self, function: Function, argument: str | None) -> str:
        """The attribute of an aggregate of the operator's groups."""
        term = None if argument is None else Attr(self.arguments[argument])
        for known in self.below:
            if (known.function, known.argument) == (function, term):
                return known.name
        self.below.append(Aggregate(f"{self.mark}{len(self.below)}", function, term))
        return self.below[-1].name

    def whole(self, function: Function, argument: Term) -> Attr:
        """An aggregate of the grouping above."""
        for known in self.above:
            if (known.function, known.argument) == (function, argument):
                return Attr(known.name)
        self.above.append(Aggregate(f"{self.mark}of{len(self.above)}", function, argument))
        return Attr(self.above[-1].name)

    def over(self, summary: Node, between: list[_RowWise], terms: frozenset[str]) -> Node:
        """The operators between over groups: rows are chosen and named as before, and aggregates pass through."""
        halves = (name for total in self.totals for name in total.columns)
        carried = (*(aggregate.name for aggregate in self.below), *halves)
        for node in reversed(between):
            names = summary.schema
            match node:
                case Select(_, condition):
                    summary = Select(summary, condition)
                case Project(_, kept):
                    summary = Project(summary, (*(name for name in kept if name in names), *carried))
                case Rename(_, pairs):
                    summary = Rename(summary, tuple(pair for pair in pairs if pair[0] in names))
                case Imbed(_, name, term):
                    if name in terms and attributes_of(term) <= {*names}:
                        summary = Imbed(summary, name, term)
        return summary


def _too_many(beyond: Attr) -> Term:
    """What has no value."""
    return call("mul", call("greatest", beyond, _MANY), _MANY)
