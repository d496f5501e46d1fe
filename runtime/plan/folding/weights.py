"""Trees over folded rows: a grouping counts a row as often as the rows that it stands for (rule R32).

A folded row carries how many rows it stands for, and partial results of them where an argument is no part of its class.
These columns pass through the operators up to the grouping, whose aggregates read them there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.algebra.functions.aggregates import Aggregate, Form, Function
from tidegate.algebra.nodes import (
    Difference,
    Group,
    Imbed,
    Node,
    Project,
    Rename,
    Scan,
    Union,
    children,
    nodes_of,
    occurrences,
    with_children,
)
from tidegate.algebra.rewrites.totals import Total, halves
from tidegate.algebra.schema import Attribute, Schema, unused_mark
from tidegate.algebra.terms import Attr, Lit, Term, call
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import BIGINT, DOUBLE
from tidegate.analysis.state.folding.classes import payload_of
from tidegate.analysis.state.folding.foldable import Foldable
from tidegate.analysis.state.folding.region import Step, later_ofs, own_parts, region, without
from tidegate.runtime.plan.folding.carriers import ADDS, ONE, ZERO, Carrier, form_of, part_terms, times
from tidegate.runtime.plan.folding.carriers import Product as ProductOf
from tidegate.runtime.plan.folding.fold import Fold, FoldReader, settling
from tidegate.runtime.plan.folding.unions import Asked, remaining, united

_ENDS: Final = {Form.EARLIEST: Function.MIN, Form.LATEST: Function.MAX}
_MANY: Final = Lit(2**61, BIGINT)


@dataclass(slots=True)
class _CarriedColumns:
    """What a leaf's rows carry to their grouping: the column of their number, and partial results by aggregate."""

    leaf: int
    schema: Schema
    mark: str
    keys: dict[Term, None] = field(default_factory=dict)
    added: dict[str, Term] = field(default_factory=dict)
    merged: list[Aggregate] = field(default_factory=list)
    number: str | None = None
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    """By aggregate the column of each part."""

    @property
    def carrier(self) -> Carrier:
        return Carrier(tuple(self.added), self.number, self.parts)

    def column(self, part: str, term: Term, function: Function, by: str | None = None) -> str:
        for partial in self.merged:
            if self.added[partial.name] == term and partial.function == function and partial.by == (by and Attr(by)):
                return partial.name
        name = f"{self.mark}{self.leaf}{part}"
        self.added[name] = term
        self.merged.append(Aggregate(name, function, Attr(name), None if by is None else Attr(by)))
        return name

    def attributes(self) -> tuple[Attribute, ...]:
        """The columns as they are stored, in a schema."""
        stored = self.stored
        typed_terms = ((stored[name], resolve(term, self.schema)) for name, term in self.added.items())
        return tuple(Attribute(name, typed.type, nullable=typed.nullable) for name, typed in typed_terms)

    @property
    def stored(self) -> dict[str, str]:
        """The names under which the columns are stored. Equal columns have one, whatever query reads them."""
        parts = {partial.name: partial for partial in self.merged}
        names = {}
        for name, term in self.added.items():
            by = parts[name].by
            order = self.added[by.name] if isinstance(by, Attr) else None
            content = repr((term, parts[name].function.name, order))
            names[name] = f"{self.mark}{hashlib.blake2s(content.encode(), digest_size=6).hexdigest()}"
        return names


@dataclass(frozen=True, slots=True)
class Weighed:
    """A tree over rows that may stand for several, the fold of each leaf that has a folding, and the tree's totals."""

    tree: Node
    folds: Mapping[int, Fold]
    totals: tuple[Total, ...] = ()


def weighed(tree: Node, foldings: Mapping[int, Foldable], query: str, taken: Iterable[str] = ()) -> Weighed:
    """The tree over rows that may stand for several, where leaves have a folding. `taken` are names of other columns
    that may be stored.
    """
    if not foldings:
        return Weighed(tree, {})
    mark = unused_mark([*taken, *(name for node in nodes_of(tree) for name in node.schema)])
    carried = {leaf: _carried(tree, leaf, folding, mark) for leaf, folding in foldings.items()}
    weighing = _Weighing(carried, mark)
    weighed_tree, _ = weighing.node(tree, 0, ())
    folds = {leaf: _fold(query, columns, foldings[leaf]) for leaf, columns in carried.items()}
    return Weighed(weighed_tree, folds, tuple(weighing.totals))


def _fold(query: str, of: _CarriedColumns, foldable: Foldable) -> Fold:
    dominance, stored = foldable.classes.dominance, of.stored
    merged = (
        Aggregate(
            stored[partial.name],
            partial.function,
            Attr(stored[partial.name]),
            Attr(stored[partial.by.name]) if isinstance(partial.by, Attr) else None,
        )
        for partial in of.merged
    )
    return Fold(
        tuple(sorted(of.keys, key=repr)),
        tuple(sorted((stored[name], term) for name, term in of.added.items())),
        tuple(sorted(merged, key=lambda partial: partial.name)),
        tuple(sorted(stored[partial.name] for partial in of.merged if partial.entry.sketch is not None)),
        None if dominance is None else (dominance.attribute, dominance.best),
        settling(foldable),
        (FoldReader(query, of.leaf, foldable),),
    )


def _carried(tree: Node, leaf: int, folding: Foldable, mark: str) -> _CarriedColumns:
    leaf_region, schema = region(tree, leaf), occurrences(tree)[leaf].schema
    assert leaf_region is not None
    settled = [settled.term for settled in folding.terms]
    for later in later_ofs(leaf_region):
        # To aggregates a settled term is one of other rows.
        if any((later.name, later.term) == (one.name, one.term) for one in settled):
            leaf_region = without(leaf_region, later, schema)
            break
    columns = _CarriedColumns(leaf, schema, mark)
    columns.keys |= dict.fromkeys(read.term for read in folding.classes.read)
    if leaf_region.sink is not None and isinstance(leaf_region.sink.node, Group):
        for number, aggregate in enumerate(leaf_region.sink.node.aggregates):
            _carry(columns, number, aggregate, leaf_region.sink)
        counting = (
            a.entry.counts_by or (_form(a, leaf_region.sink) in ADDS and a.name not in columns.parts)
            for a in leaf_region.sink.node.aggregates
        )
        if any(counting):
            columns.number = columns.column("m", ONE, Function.SUM)
    return columns


def _form(aggregate: Aggregate, sink: Step) -> Form:
    return form_of(aggregate, sink.node.input.schema)  # type: ignore[union-attr]  # a grouping


def _carry(columns: _CarriedColumns, number: int, aggregate: Aggregate, sink: Step) -> None:
    """What an aggregate needs of the leaf's rows: partial results, where the row alone gives them; else a key."""

    def payload_term(term: Term | None) -> Term | None:
        if term is None:
            return None
        payload = payload_of(aggregate, term, sink)
        if payload is None:
            columns.keys.update(dict.fromkeys(own_parts(term, sink.held)))
        return payload

    x, t = payload_term(aggregate.argument), payload_term(aggregate.by)
    form = _form(aggregate, sink)
    parts = _parts(columns, number, aggregate, form, x, t)
    if parts:
        columns.parts[aggregate.name] = parts


def _parts(
    columns: _CarriedColumns, number: int, aggregate: Aggregate, form: Form, x: Term | None, t: Term | None
) -> dict[str, str]:
    terms = part_terms(aggregate, form, x, t, columns.schema)
    if x is not None and form in ADDS:
        added = {
            part: columns.column(f"{part}{number}", term, Function.SUM) for part, term in terms.items() if part != "c"
        }
        if "c" in terms:
            added["c"] = columns.column(f"c{number}", terms["c"], Function.SUM, added["s"])
        return added
    parts = {}
    if "by" in terms:
        parts["by"] = columns.column(f"t{number}", terms["by"], _ENDS[form])
    if "v" in terms and "by" in terms:
        parts["v"] = columns.column(f"v{number}", terms["v"], aggregate.function, parts["by"])
    elif "v" in terms:
        # Of equal orders the smallest value counts. A sketch's values are told apart by its places.
        function = Function.MAX if form is Form.GREATEST else Function.MIN
        function = aggregate.function if form is Form.SKETCH else function
        parts["v"] = columns.column(f"v{number}", terms["v"], function)
    return parts


@dataclass(slots=True)
class _Weighing:
    carried: Mapping[int, _CarriedColumns]
    mark: str
    totals: list[Total] = field(default_factory=list)
    _unions: int = 0

    def node(self, node: Node, first: int, asked: Sequence[Asked]) -> tuple[Node, tuple[Carrier, ...]]:
        """The part of the tree that begins with this leaf, and what its rows carry; the aggregates above are asked."""
        if isinstance(node, Scan):
            columns = self.carried.get(first)
            if columns is None:
                return node, ()
            schema = Schema((*node.stream.schema.attributes, *columns.attributes()))
            stored: Node = Scan(replace(node.stream, schema=schema))
            pairs = tuple((name, inside) for inside, name in columns.stored.items())
            return Rename(stored, pairs) if pairs else stored, (columns.carrier,)
        if isinstance(node, Group):
            asked = [Asked(a, form_of(a, node.input.schema), a.argument, a.by) for a in node.aggregates]
        sides: list[tuple[Node, tuple[Carrier, ...]]] = []
        for child in children(node):
            below_asked = asked if isinstance(node, Group) else [one.below(node, child) for one in asked]
            sides.append(self.node(child, first, below_asked))
            first += len(occurrences(child))
        below, carried = [side for side, _ in sides], [carrier for _, some in sides for carrier in some]
        if isinstance(node, Rename) and isinstance(node.input, Scan) and isinstance(below[0], Rename):
            return Rename(below[0].input, (*below[0].pairs, *node.pairs)), tuple(carried)
        if isinstance(node, Project):
            names = (*node.names, *(name for carrier in carried for name in carrier.names))
            return Project(below[0], names), tuple(carried)
        if isinstance(node, Group) and carried:
            return self.grouped(node, below[0], carried), ()
        if isinstance(node, Union) and any(carrier.names for carrier in carried):
            tree, carrier = united(node, sides, asked, self.free_names())
            return tree, (carrier,)
        if isinstance(node, Difference) and any(carrier.names for carrier in carried):
            return remaining(node, below[0], below[1], self.mark), sides[0][1]
        rebuilt = with_children(node, tuple(below))
        return rebuilt, tuple(
            carrier for carrier in carried if set(carrier.names) <= set(rebuilt.schema) and carrier.names
        )

    def free_names(self) -> Iterator[str]:
        """Names of columns that no other has."""
        while True:
            self._unions += 1
            yield f"{self.mark}u{self._unions}"

    def grouped(self, node: Group, rows: Node, carried: Sequence[Carrier]) -> Node:
        """The grouping of rows that stand for several."""
        counted = _WeightedAggregates(rows.schema, carried, self.mark)
        for number, aggregate in enumerate(node.aggregates):
            counted.add(number, aggregate)
        self.totals.extend(counted.totals)
        tree: Node = Group(rows, node.keys, tuple(counted.aggregates))
        if not counted.finished:
            return tree
        for name, term in counted.finished.items():
            tree = Imbed(tree, name, term)
        return Project(tree, node.schema.names)


@dataclass(slots=True)
class _WeightedAggregates:
    """Aggregates over rows that stand for several, and the terms that make of them what was asked for."""

    schema: Schema
    carried: Sequence[Carrier]
    mark: str
    aggregates: list[Aggregate] = field(default_factory=list)
    finished: dict[str, Term] = field(default_factory=dict)
    totals: list[Total] = field(default_factory=list)
    """The sums among `finished`."""

    def add(self, number: int, aggregate: Aggregate) -> None:
        argument, form = aggregate.argument, form_of(aggregate, self.schema)
        if form not in ADDS:
            for carrier in self.carried:
                parts = carrier.parts.get(aggregate.name, {})
                if "v" in parts:
                    aggregate = replace(aggregate, argument=Attr(parts["v"]))
                if "by" in parts:
                    aggregate = replace(aggregate, by=Attr(parts["by"]))
            if aggregate.entry.counts_by:
                aggregate = replace(aggregate, by=self.rows())
            self.aggregates.append(aggregate)
            return
        parts = next((carrier.parts[aggregate.name] for carrier in self.carried if aggregate.name in carrier.parts), {})
        if form is Form.COUNT:
            rows = self.padded(number) if argument is None else None
            self.finished[aggregate.name] = self.count(number, aggregate, parts) if rows is None else rows
            return
        if "c" in parts:
            self.finished[aggregate.name] = self.of_doubles(number, aggregate, parts)
            return
        times = self.times(aggregate)
        value = Attr(parts["s"]) if "s" in parts else argument
        assert value is not None
        if aggregate.entry.averages:
            counted = self.count(number, aggregate, parts)
            self.finished[aggregate.name] = self.average(number, value, times, counted)
        elif times is None:
            self.aggregates.append(replace(aggregate, argument=value))
        else:
            total = self.total(number, value, times)
            self.finished[aggregate.name] = total.term(lenient=aggregate.entry.lenient is None)
            self.totals.append(total)

    def count(self, number: int, aggregate: Aggregate, parts: Mapping[str, str]) -> Term:
        """How many values there are: none where there is no row with one. More than a bigint can be have no value, for
        the whole group.
        """
        argument, times = aggregate.argument, self.times(aggregate, "try_mul")
        counted: Term = times or ONE
        if "n" in parts:
            own = Attr(parts["n"])  # NULL of a padded row
            counted = own if times is None else call("try_mul", call("coalesce", own, ZERO), times)
        elif argument is not None and resolve(argument, self.schema).nullable:
            counted = call("if", call("is_null", argument), ZERO, counted)
        # No stream has so many rows that their number is beyond its type, but their combinations can be.
        combined = sum(carrier.number is not None for carrier in self.carried) > 1
        if times is None or not (combined or any(carrier.several for carrier in self.carried)):
            return call("coalesce", self.add_aggregate(number, "n", Function.TRY_SUM, counted), ZERO)
        uncounted = call("if", call("is_null", counted), ONE, Lit(None, BIGINT))
        beyond = self.add_aggregate(number, "b", Function.COUNT, uncounted)
        total = self.total(number, counted).term(lenient=False)
        too_many = call("mul", call("greatest", beyond, _MANY), _MANY)
        return call("if", call("eq", beyond, ZERO), call("coalesce", total, ZERO), too_many)

    def of_doubles(self, number: int, aggregate: Aggregate, parts: Mapping[str, str]) -> Term:
        """The sum or the mean of doubles. What sums of classes have lost is added up by itself."""
        total, lost = (self.add_aggregate(number, part, Function.SUM, Attr(parts[part])) for part in ("s", "c"))
        whole = call("add", total, call("coalesce", lost, Lit(0.0, DOUBLE)))
        if not aggregate.entry.averages:
            return whole
        counted = call("greatest", self.count(number, aggregate, parts), ONE)
        return call("try_div", whole, call("cast_double", counted))

    def rows(self) -> Term | None:
        """How many rows a row stands for. None: one."""
        return times(self.schema, [carrier.number for carrier in self.carried])

    def times(self, aggregate: Aggregate, product_of: ProductOf = "mul") -> Term | None:
        """How often a row counts for an aggregate beside the partial results of it. None: once."""
        return times(self.schema, [carrier.factor(aggregate.name) for carrier in self.carried], product_of)

    def padded(self, number: int) -> Term | None:
        """The number of rows where one leaf has some that stand for several, and padded ones, of attributes alone: what
        a row looks up can then be counted without a list of the pairs (`look_back`).
        """
        numbers = [carrier.number for carrier in self.carried if carrier.number is not None]
        if len(numbers) != 1 or not self.schema[numbers[0]].nullable:
            return None
        standing = self.add_aggregate(number, "n", Function.TRY_SUM, Attr(numbers[0]))
        rows, matched = (
            _counted(self.add_aggregate(number, part, Function.COUNT, argument))
            for part, argument in (("r", None), ("m", Attr(numbers[0])))
        )
        return call("add", _counted(call("coalesce", standing, ZERO)), call("sub", rows, matched))

    def total(self, number: int, value: Term, times: Term = ONE) -> Total:
        """The sum of products, in halves: of up to 2**32 rows, in all, no half is beyond its type."""
        high, low = (half if times == ONE else call("mul", half, times) for half in halves(value))
        return Total(
            self.add_aggregate(number, "h", Function.SUM, high), self.add_aggregate(number, "l", Function.SUM, low)
        )

    def average(self, number: int, value: Term, times: Term | None, counted: Term) -> Term:
        """The exact total divided by the number of values, also where the total is beyond its type."""
        if times is None:
            total: Term = call("cast_double", self.add_aggregate(number, "s", Function.TRY_SUM, value))
            mean, values = (
                self.add_aggregate(number, part, function, value)
                for part, function in (("a", Function.AVG), ("c", Function.COUNT))
            )
            rough: Term = call("mul", mean, call("cast_double", values))
        else:
            in_halves = self.total(number, value, times)
            total, rough = call("cast_double", in_halves.term(lenient=True)), in_halves.approximate()
        return call("try_div", call("coalesce", total, rough), call("cast_double", call("greatest", counted, ONE)))

    def add_aggregate(self, number: int, part: str, function: Function, argument: Term | None) -> Attr:
        """An aggregate of the grouping: one that is there already, or a new one."""
        for known in self.aggregates:
            if known.name.startswith(self.mark) and (known.function, known.argument) == (function, argument):
                return Attr(known.name)
        name = f"{self.mark}{part}{len(self.aggregates)}.{number}"
        self.aggregates.append(Aggregate(name, function, argument))
        return Attr(name)


def _counted(term: Term) -> Term:
    """A number of rows, as one of which is known that it is none below zero and not beyond any state."""
    return call("greatest", call("least", term, _MANY), ZERO)
