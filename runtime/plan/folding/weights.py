"""Trees over folded rows: a grouping counts a row as often as the rows that it stands for (rule R32).

A folded row carries how many rows it stands for, and partial results of them where an argument is no part of its class.
These columns pass through the operators up to the grouping, whose aggregates read them there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from tidegate.algebra.functions.aggregates import Aggregate, Form, Function, aggregate_type
from tidegate.algebra.nodes import (
    Group,
    Imbed,
    Node,
    Project,
    Rename,
    Scan,
    children,
    nodes_of,
    occurrences,
    with_children,
)
from tidegate.algebra.rewrites.totals import Total, halves
from tidegate.algebra.schema import Attribute, Schema, unused_mark
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import BIGINT, NULL
from tidegate.analysis.state.folding.classes import payload_of
from tidegate.analysis.state.folding.foldable import Foldable
from tidegate.analysis.state.folding.region import Step, own_parts, region
from tidegate.runtime.plan.folding.fold import Fold, FoldReader, settling

_ADDS: Final = (Form.COUNT, Form.INTEGER_SUM)
_ENDS: Final = {Form.EARLIEST: Function.MIN, Form.LATEST: Function.MAX}
_ONE, _ZERO, _MANY = Lit(1, BIGINT), Lit(0, BIGINT), Lit(2**61, BIGINT)


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
    """By aggregate the column of each part: `n`, `s`, `v`, `by`."""

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
    weighed_tree, _ = weighing.node(tree, 0)
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
        None if dominance is None else (dominance.attribute, dominance.best),
        settling(foldable),
        (FoldReader(query, of.leaf, foldable),),
    )


def _carried(tree: Node, leaf: int, folding: Foldable, mark: str) -> _CarriedColumns:
    leaf_region = region(tree, leaf)
    assert leaf_region is not None
    columns = _CarriedColumns(leaf, occurrences(tree)[leaf].schema, mark)
    columns.keys |= dict.fromkeys(read.term for read in folding.classes.read)
    if leaf_region.sink is not None and isinstance(leaf_region.sink.node, Group):
        for number, aggregate in enumerate(leaf_region.sink.node.aggregates):
            _carry(columns, number, aggregate, leaf_region.sink)
        adding = (a for a in leaf_region.sink.node.aggregates if _form(a, leaf_region.sink) in _ADDS)
        if any(a.name not in columns.parts for a in adding):
            columns.number = columns.column("m", _ONE, Function.SUM)
    return columns


def _form(aggregate: Aggregate, sink: Step) -> Form:
    schema = sink.node.input.schema  # type: ignore[union-attr]  # a grouping
    return aggregate.entry.form_of(NULL if aggregate.argument is None else term_type(aggregate.argument, schema))


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
    if x is not None and form in _ADDS:
        parts = {}
        if form is Form.COUNT or aggregate.entry.averages:
            parts["n"] = columns.column(f"n{number}", _present(x, columns.schema), Function.SUM)
        if form is Form.INTEGER_SUM:
            type_ = aggregate_type(replace(aggregate, function=Function.SUM), term_type(x, columns.schema), None)
            total = x if type_ == term_type(x, columns.schema) else call("coalesce", x, Lit(None, type_))
            parts["s"] = columns.column(f"s{number}", total, Function.SUM)
        return parts
    if x is not None and t is not None:
        nullable = [term for term in (x, t) if resolve(term, columns.schema).nullable]
        known = conjunction([call("is_not_null", term) for term in nullable])
        both = [
            call("if", known, term, Lit(None, term_type(term, columns.schema))) if nullable else term for term in (x, t)
        ]
        by = columns.column(f"t{number}", both[1], _ENDS[form])
        return {"v": columns.column(f"v{number}", both[0], aggregate.function, by), "by": by}
    if x is not None:
        # Of equal orders the smallest value counts.
        return {"v": columns.column(f"v{number}", x, Function.MAX if form is Form.GREATEST else Function.MIN)}
    return {"by": columns.column(f"t{number}", t, _ENDS[form])} if t is not None else {}


def _present(term: Term, schema: Schema) -> Term:
    return call("if", call("is_null", term), _ZERO, _ONE) if resolve(term, schema).nullable else _ONE


@dataclass(frozen=True, slots=True)
class _Weighing:
    carried: Mapping[int, _CarriedColumns]
    mark: str
    totals: list[Total] = field(default_factory=list)

    def node(self, node: Node, first: int) -> tuple[Node, tuple[_CarriedColumns, ...]]:
        """The part of the tree that begins with this leaf, and what its rows carry."""
        if isinstance(node, Scan):
            columns = self.carried.get(first)
            if columns is None:
                return node, ()
            schema = Schema((*node.stream.schema.attributes, *columns.attributes()))
            stored: Node = Scan(replace(node.stream, schema=schema))
            pairs = tuple((name, inside) for inside, name in columns.stored.items())
            return Rename(stored, pairs) if pairs else stored, (columns,)
        below: list[Node] = []
        carried: list[_CarriedColumns] = []
        for child in children(node):
            weighed_child, some = self.node(child, first)
            below.append(weighed_child)
            carried += some
            first += len(occurrences(child))
        if isinstance(node, Rename) and isinstance(node.input, Scan) and isinstance(below[0], Rename):
            return Rename(below[0].input, (*below[0].pairs, *node.pairs)), tuple(carried)
        if isinstance(node, Project):
            names = (*node.names, *(name for columns in carried for name in columns.added))
            return Project(below[0], names), tuple(carried)
        if isinstance(node, Group) and carried:
            return self.grouped(node, below[0], carried), ()
        rebuilt = with_children(node, tuple(below))
        return rebuilt, tuple(
            columns for columns in carried if set(columns.added) <= set(rebuilt.schema) and columns.added
        )

    def grouped(self, node: Group, rows: Node, carried: Sequence[_CarriedColumns]) -> Node:
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
    carried: Sequence[_CarriedColumns]
    mark: str
    aggregates: list[Aggregate] = field(default_factory=list)
    finished: dict[str, Term] = field(default_factory=dict)
    totals: list[Total] = field(default_factory=list)
    """The sums among `finished`."""

    def add(self, number: int, aggregate: Aggregate) -> None:
        argument = aggregate.argument
        form = aggregate.entry.form_of(NULL if argument is None else term_type(argument, self.schema))
        of = next((columns for columns in self.carried if aggregate.name in columns.parts), None)
        if form not in _ADDS:
            for columns in self.carried:
                parts = columns.parts.get(aggregate.name, {})
                if "v" in parts:
                    aggregate = replace(aggregate, argument=Attr(parts["v"]))
                if "by" in parts:
                    aggregate = replace(aggregate, by=Attr(parts["by"]))
            self.aggregates.append(aggregate)
            return
        parts = {} if of is None else of.parts[aggregate.name]
        others = [columns for columns in self.carried if columns is not of]
        if form is Form.COUNT:
            rows = self.padded(number) if argument is None else None
            self.finished[aggregate.name] = self.count(number, argument, parts, others) if rows is None else rows
            return
        times = self.times(others)
        value = Attr(parts["s"]) if "s" in parts else argument
        assert value is not None
        if aggregate.entry.averages:
            counted = self.count(number, argument, parts, others)
            self.finished[aggregate.name] = self.average(number, value, times, counted)
        elif times is None:
            self.aggregates.append(replace(aggregate, argument=value))
        else:
            total = self.total(number, value, times)
            self.finished[aggregate.name] = total.term(lenient=aggregate.entry.lenient is None)
            self.totals.append(total)

    def count(
        self, number: int, argument: Term | None, parts: Mapping[str, str], others: Sequence[_CarriedColumns]
    ) -> Term:
        """How many values there are: none where there is no row with one. More than a bigint can be have no value, for
        the whole group.
        """
        times = self.times(others, "try_mul")
        counted: Term = times or _ONE
        if "n" in parts:
            own = Attr(parts["n"])  # NULL of a padded row
            counted = own if times is None else call("try_mul", call("coalesce", own, _ZERO), times)
        elif argument is not None and resolve(argument, self.schema).nullable:
            counted = call("if", call("is_null", argument), _ZERO, counted)
        # No stream has so many rows that their number is beyond its type, but their combinations can be.
        if times is None or sum(columns.number is not None for columns in self.carried) <= 1:
            return call("coalesce", self.add_aggregate(number, "n", Function.TRY_SUM, counted), _ZERO)
        uncounted = call("if", call("is_null", counted), _ONE, Lit(None, BIGINT))
        beyond = self.add_aggregate(number, "b", Function.COUNT, uncounted)
        total = self.total(number, counted).term(lenient=False)
        too_many = call("mul", call("greatest", beyond, _MANY), _MANY)
        return call("if", call("eq", beyond, _ZERO), call("coalesce", total, _ZERO), too_many)

    def times(self, of: Sequence[_CarriedColumns], product_of: Literal["mul", "try_mul"] = "mul") -> Term | None:
        """How many rows a row stands for in these leaves; a padded row is one. None: it stands for itself."""
        product: Term | None = None
        for columns in of:
            if columns.number is not None:
                nullable = self.schema[columns.number].nullable
                number: Term = call("coalesce", Attr(columns.number), _ONE) if nullable else Attr(columns.number)
                product = number if product is None else call(product_of, product, number)
        return product

    def padded(self, number: int) -> Term | None:
        """The number of rows where one leaf has some that stand for several, and padded ones, of attributes alone: what
        a row looks up can then be counted without a list of the pairs (`look_back`).
        """
        numbers = [columns.number for columns in self.carried if columns.number is not None]
        if len(numbers) != 1 or not self.schema[numbers[0]].nullable:
            return None
        standing = self.add_aggregate(number, "n", Function.TRY_SUM, Attr(numbers[0]))
        rows, matched = (
            _counted(self.add_aggregate(number, part, Function.COUNT, argument))
            for part, argument in (("r", None), ("m", Attr(numbers[0])))
        )
        return call("add", _counted(call("coalesce", standing, _ZERO)), call("sub", rows, matched))

    def total(self, number: int, value: Term, times: Term = _ONE) -> Total:
        """The sum of products, in halves: of up to 2**32 rows, in all, no half is beyond its type."""
        high, low = (half if times == _ONE else call("mul", half, times) for half in halves(value))
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
        return call("try_div", call("coalesce", total, rough), call("cast_double", call("greatest", counted, _ONE)))

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
    return call("greatest", call("least", term, _MANY), _ZERO)
