"""The federation of a query: its temporal relations between each result row and its sources (rules R6 to R8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.formulas import TOP, Formula, temporal_formula, temporal_term
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
)
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Term
from tidegate.analysis.ordered.family import equal_instants
from tidegate.analysis.ordered.table import family_of
from tidegate.analysis.zones.expansion import MAX_ZONES, Expansion, check_number
from tidegate.analysis.zones.federation import Federation, Label, Unmatched
from tidegate.analysis.zones.instants import constrained, defined, relaid, remains
from tidegate.analysis.zones.pruning import prune, widest
from tidegate.analysis.zones.zone import Conflict, Copy, Hidden, Layout, Zone, is_copy


def federation(
    node: Node,
    streams: Mapping[str, StreamDef] | None = None,
    *,
    limit: int = MAX_ZONES,
    sites: Mapping[Term | Node, Site] | None = None,
) -> Federation:
    """The federation of an expression, by induction over its operators (rule R6).

    `streams` replaces the definitions of streams by name (a result stream's inferred relations, say). `QueryError`
    TG150 where more than `limit` zones would have to be built, at the place that `sites` gives for the operator.
    """
    builder = Builder(streams or {}, limit, sites or {})
    zones = builder.build(node)
    conflicts = () if zones else tuple(builder.conflicts)
    draft = Federation(
        tuple(zones), tuple(builder.occurrences), node.schema, builder.labels, conflicts, tuple(builder.unmatched)
    )
    labels = {
        key: Label(draft.attribute_name(key[1], key[2]), label.type) if is_copy(key) and not label.text else label
        for key, label in builder.labels.items()
    }
    return replace(draft, labels=labels)


@dataclass(slots=True)
class Builder:
    streams: Mapping[str, StreamDef]
    limit: int
    sites: Mapping[Term | Node, Site]
    occurrences: list[StreamDef] = field(default_factory=list)
    labels: dict[Hidden, Label] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    unmatched: list[Unmatched] = field(default_factory=list)
    hidden: int = 0

    def build(self, node: Node) -> list[Zone]:
        try:
            match node:
                case Scan(stream):
                    return self.scan(self.streams.get(stream.name, stream), node.schema)
                case Select(input_, condition):
                    zones = self.named(self.build(input_), node.schema)
                    return self.constrain(zones, temporal_formula(condition, node.schema))
                case Project(input_, _) | Group(input_, _, _):
                    zones = self.named(self.build(input_), node.schema)
                    return self.pruned(zones, node.schema) if len(zones) > 1 else zones
                case Distinct(input_):
                    return self.build(input_)
                case Rename(input_, pairs):
                    return self.rename(self.build(input_), dict(pairs))
                case Imbed(input_, name, term):
                    return self.imbed(self.build(input_), name, term, node.schema, input_.schema)
                case Product(left, right):
                    first, second = self.build(left), self.build(right)
                    return self.joined(first, second, node.schema, TOP)
                case Join():
                    return self.join(node)
                case Difference():
                    return self.difference(node)
                case Union():
                    return self.union(node)
                case OrderedNode():
                    return family_of(node).zones(node, self)
                case _:
                    assert_never(node)
        except QueryError as error:
            raise error.at(self.sites.get(node)) from None

    def scan(self, stream: StreamDef, schema: Schema) -> list[Zone]:
        """A new occurrence: the hidden copies of all its temporal attributes are its output attributes."""
        i = len(self.occurrences)
        self.occurrences.append(stream)
        rows: tuple[Copy, ...] = tuple(("x", i, name) for name in schema.temporal)
        self.labels.update({row: Label("", schema[row[2]].type) for row in rows})
        layout = Layout(rows, {name: k for k, name in enumerate(schema.temporal)})
        relations = temporal_formula(stream.relations, schema)
        return self.constrain([Zone.free(layout)], relations, declared_by=stream.name)

    def rename(self, zones: list[Zone], names: Mapping[str, str]) -> list[Zone]:
        def renamed(layout: Layout) -> Layout:
            attributes = {names.get(name, name): row for name, row in layout.attributes.items()}
            for name, row in attributes.items():
                hidden = layout.rows[row]
                if "." in name and not self.labels[hidden].text:
                    self.labels[hidden] = Label(name, self.labels[hidden].type)
            return Layout(layout.rows, attributes)

        return relaid(zones, renamed)

    def imbed(self, zones: list[Zone], name: str, term: Term, schema: Schema, before: Schema) -> list[Zone]:
        """Only a temporal term gives a relation, `name = term`: the attribute names the variable of that term."""
        temporal = temporal_term(term, before)
        if not schema[name].temporal or temporal is None:
            return zones
        imbedded = self.kept(zones, defined(zones, name, temporal, term, self.limit))
        for layout in {id(zone.layout): zone.layout for zone in imbedded}.values():
            self.labels.setdefault(layout.rows[layout.attributes[name]], Label(name, schema[name].type))
        return imbedded

    def join(self, node: Join) -> list[Zone]:
        first = self.build(node.left)
        before = len(self.conflicts)
        second, right = self.build_range(node.right)
        # What holds of a pair for which the condition is true, NULL tests included, is what the inner join says.
        paired = node if node.kind == "inner" else Join(node.left, node.right, node.condition, "inner")
        left = widest(first) if node.kind in ("anti", "left") else first
        pairs = self.joined(left, second, paired.schema, temporal_formula(node.condition, paired.schema))
        match node.kind:
            case "inner":
                return pairs
            case "semi":
                return self.pruned(self.named(pairs, node.schema), node.schema)
            case "anti" | "left":
                alone = [zone.ignoring(right) for zone in first]
                if alone and not pairs and (conflicts := self.conflicts[before:]):
                    self.unmatched.append(Unmatched(node, tuple(conflicts)))
                return self.pruned(self.named([*alone, *pairs], node.schema), node.schema)
            case _:
                assert_never(node.kind)

    def difference(self, node: Difference) -> list[Zone]:
        """The anti-join by equality of all attributes. Instants are compared as instants."""
        first, (second, right) = self.build(node.left), self.build_range(node.right)
        primed = {name: f"{name}'" for name in node.right.schema.names}
        while set(primed.values()) & set(node.left.schema.names):
            primed = {name: f"{new}'" for name, new in primed.items()}
        second = relaid(
            second,
            lambda layout: Layout(layout.rows, {primed[name]: row for name, row in layout.attributes.items()}),
        )
        both = Schema(
            (*node.left.schema.attributes, *(a.renamed(primed[a.name]) for a in node.right.schema.attributes))
        )
        same = [name for name in node.left.schema.temporal if node.right.schema[name].temporal]
        pairs = self.joined(first, second, both, equal_instants((name, primed[name]) for name in same))
        alone = [zone.ignoring(right) for zone in first]
        return self.pruned(self.named([*alone, *pairs], node.schema), node.schema)

    def union(self, node: Union) -> list[Zone]:
        if self.uses(node, {}) > self.limit:
            # So many occurrences make large zones: counted before they are built.
            check_number(self.cases(node, {}), self.limit, "this union")
        sides = list(map(self.build_range, node.inputs))  # a comprehension is one more frame of Python's stack a union
        everything = range(sides[0][1].start, sides[-1][1].stop)
        zones = [
            zone.ignoring(i for i in everything if i not in places)
            for side, places in sides
            for zone in self.named(side, node.schema)
        ]
        check_number(len(zones), self.limit, "this union")
        return self.pruned(zones, node.schema)

    def uses(self, node: Node, known: dict[Node, int]) -> int:
        """The number of occurrences below a node. A shared part is visited once."""
        if node not in known:
            known[node] = sum(self.uses(child, known) for child in children(node)) if children(node) else 1
        return known[node]

    def cases(self, node: Node, known: dict[Node, int]) -> int:
        """Number of zones of nested unions, of which no part is built twice: sides never prune each other's zones."""
        if node not in known:
            match node:
                case Union(inputs):
                    known[node] = sum(self.cases(input_, known) for input_ in inputs)
                case Rename(input_, _) | Distinct(input_):
                    known[node] = self.cases(input_, known)
                case _:
                    known[node] = len(Builder(self.streams, self.limit, self.sites).build(node))
        return known[node]

    def build_range(self, node: Node) -> tuple[list[Zone], range]:
        """The zones of an input, and the numbers of its occurrences."""
        start = len(self.occurrences)
        zones = self.build(node)
        return zones, range(start, len(self.occurrences))

    def joined(self, first: list[Zone], second: list[Zone], schema: Schema, condition: Formula) -> list[Zone]:
        """Every zone of one side with every zone of the other (Def. 16), under a condition."""
        check_number(len(first) * len(second), self.limit, "this product")
        layouts: dict[tuple[int, int], Layout] = {}
        pairs: list[Zone] = []
        for left in first:
            for right in second:
                key = (id(left.layout), id(right.layout))
                if key not in layouts:
                    n = len(left.layout.rows)
                    moved = {name: row + n for name, row in right.layout.attributes.items()}
                    layouts[key] = Layout(left.layout.rows + right.layout.rows, {**left.layout.attributes, **moved})
                pairs.append(left.product(right, layouts[key]))
        zones = self.constrain(self.named(pairs, schema), condition)
        return self.pruned(zones, schema) if len(first) > 1 or len(second) > 1 else zones

    def constrain(self, zones: list[Zone], condition: Formula, declared_by: str = "") -> list[Zone]:
        return self.kept(zones, constrained(zones, condition, self.limit, declared_by))

    def kept(self, zones: list[Zone], expansion: Expansion) -> list[Zone]:
        """The zones of an expansion of `zones`; where it leaves none of them, its conflicts say why."""
        if zones and not expansion.zones:
            self.conflicts += expansion.conflicts
        return expansion.zones

    def pruned(self, zones: list[Zone], schema: Schema) -> list[Zone]:
        return prune(zones, schema.temporal, len(self.occurrences))

    def named(self, zones: list[Zone], schema: Schema) -> list[Zone]:
        """The zones over exactly the schema's temporal attributes, all occurrences' copies and what rounds these.

        Attributes that ended to be temporal, or to exist, are hidden; those that began to be (a timestamp known not
        to be NULL from here on) get a variable of their own, about which nothing is known.
        """
        fresh: dict[str, Copy] = {}
        temporal = schema.temporal

        def over(layout: Layout) -> Layout:
            if tuple(layout.attributes) == temporal:
                return layout
            rows_of = {name: layout.rows[row] for name, row in layout.attributes.items()}
            for name in temporal:
                if name not in rows_of:
                    if name not in fresh:
                        fresh[name] = self.fresh(schema[name])
                    rows_of[name] = fresh[name]
            wanted = dict.fromkeys(rows_of[name] for name in temporal)
            rows = (
                *(row for row in layout.rows if remains(row, wanted)),
                *(row for row in wanted if row not in layout.index),
            )
            index = {row: k for k, row in enumerate(rows)}
            return Layout(rows, {name: index[rows_of[name]] for name in temporal})

        return relaid(zones, over)

    def fresh(self, attribute: Attribute) -> Copy:
        self.hidden += 1
        row: Copy = ("v", self.hidden, attribute.name)
        self.labels[row] = Label(attribute.name, attribute.type)
        return row
