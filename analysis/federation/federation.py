"""The federation of a query: what its temporal relations say of each result row and its sources (rules R6 to R8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.formulas import TOP, And, Compare, Formula, Var, temporal_formula, temporal_term
from tidegate.algebra.nodes import (
    Derive,
    Difference,
    Distinct,
    Given,
    Group,
    Imbed,
    Join,
    Match,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    children,
)
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.situations import DETECTED, END, START, derivation_relations, endpoint_schema
from tidegate.algebra.terms import Term, conjunction
from tidegate.algebra.types import DataType
from tidegate.analysis.patterns.detection import detection_of
from tidegate.analysis.patterns.matches import matching
from tidegate.analysis.zones.expansion import MAX_ZONES, check_number
from tidegate.analysis.zones.instants import constrained, defined, relaid, remains
from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.pruning import prune
from tidegate.analysis.zones.wording import amount, shifted
from tidegate.analysis.zones.zone import Conflict, Copy, Extreme, Hidden, Layout, Rounding, Zone, is_copy

#: The time of the event that completes a match, while its zones are built; no attribute of a user has such a name.
_COMPLETING = "\0completing"


@dataclass(frozen=True, slots=True)
class Label:
    """What a variable is called, and the type of its attribute."""

    text: str
    type: DataType


@dataclass(frozen=True, slots=True, eq=False)
class Federation:
    """The zones of a query, a disjunction; no zone means that no row can satisfy its temporal relations.

    `occurrences[i]` is the stream of the i-th reference, numbered as `nodes.occurrences` does. `attributes` are the
    temporal attributes of the result. `conflicts` says, where no zone is left, which constraints contradict.
    """

    zones: tuple[Zone, ...]
    occurrences: tuple[StreamDef, ...]
    schema: Schema
    labels: Mapping[Hidden, Label]
    conflicts: tuple[Conflict, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.schema.temporal

    def sources(self, zone: Zone) -> tuple[int, ...]:
        """The occurrences that the zone does not ignore, in order."""
        return tuple(i for i in range(len(self.occurrences)) if i not in zone.ignored)

    def occurrence_name(self, i: int) -> str:
        """Name of an occurrence: its stream's, numbered where the query refers to the stream several times."""
        name = self.occurrences[i].name
        same = [j for j, stream in enumerate(self.occurrences) if stream.name == name]
        return name if len(same) == 1 else f"{name}#{same.index(i) + 1}"

    def label(self, variable: Hidden) -> Label:
        return self.labels[variable] if variable in self.labels else _term_label(variable, self.label)


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
    builder = _Builder(streams or {}, limit, sites or {})
    zones = builder.build(node)
    conflicts = () if zones else tuple(builder.conflicts)
    found = Federation(tuple(zones), tuple(builder.occurrences), node.schema, builder.labels, conflicts)
    aliases = {i: found.occurrence_name(i) for i in range(len(found.occurrences))}
    labels = {
        key: Label(f"{aliases[key[1]]}.{key[2]}", label.type) if is_copy(key) and not label.text else label
        for key, label in builder.labels.items()
    }
    return replace(found, labels=labels)


@dataclass(slots=True)
class _Builder:
    streams: Mapping[str, StreamDef]
    limit: int
    sites: Mapping[Term | Node, Site]
    occurrences: list[StreamDef] = field(default_factory=list)
    labels: dict[Hidden, Label] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
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
                case Derive():
                    return self.derive(node)
                case Given(input_):
                    return self.build(input_)
                case Match():
                    return self.match(node)
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
        conflicts: list[Conflict] = []
        found = defined(zones, name, temporal, term, self.limit, conflicts)
        self.conflicts += conflicts if zones and not found else []
        for layout in {id(zone.layout): zone.layout for zone in found}.values():
            self.labels.setdefault(layout.rows[layout.attributes[name]], Label(name, schema[name].type))
        return found

    def join(self, node: Join) -> list[Zone]:
        first, (second, right) = self.build(node.left), self.build_range(node.right)
        # What holds of a pair for which the condition is true, NULL tests included, is what the inner join says.
        paired = node if node.kind == "inner" else Join(node.left, node.right, node.condition, "inner")
        pairs = self.joined(first, second, paired.schema, temporal_formula(node.condition, paired.schema))
        match node.kind:
            case "inner":
                return pairs
            case "semi":
                return self.pruned(self.named(pairs, node.schema), node.schema)
            case "anti" | "left":
                alone = [zone.ignoring(right) for zone in first]
                return self.pruned(self.named([*alone, *pairs], node.schema), node.schema)
            case _:
                assert_never(node.kind)

    def difference(self, node: Difference) -> list[Zone]:
        """The anti-join by equality of all attributes; equal instants where both sides hold instants."""
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
        pairs = self.joined(first, second, both, _equal((name, primed[name]) for name in same))
        alone = [zone.ignoring(right) for zone in first]
        return self.pruned(self.named([*alone, *pairs], node.schema), node.schema)

    def derive(self, node: Derive) -> list[Zone]:
        """The completing event: what an operator that gathers events in order has kept of those before it is its state."""
        zones = self.named(self.completed(self.build(node.input), node, END), node.schema)
        relations = conjunction(derivation_relations(node))
        return self.constrain(zones, temporal_formula(relations, node.schema))

    def completed(self, zones: list[Zone], node: Derive, name: str) -> list[Zone]:
        """Zones over the keys and, by this name, the time of the event that completes a situation."""

        def over(layout: Layout) -> Layout:
            kept = {key: layout.attributes[key] for key in node.keys if key in layout.attributes}
            return Layout(layout.rows, {**kept, name: layout.attributes[node.time]})

        return relaid(zones, over)

    def match(self, node: Match) -> list[Zone]:
        """What holds of a match, beside each of the events that may complete it: it waits for those of every symbol."""
        detected = detection_of(node)
        zones = matching(detected, self.conflicts)
        self.labels |= {
            ("v", 0, name): Label(name, detected.pattern.time) for zone in zones[:1] for name in zone.layout.attributes
        }
        ends = {*endpoint_schema(node), DETECTED}
        known = Schema(tuple(a for a in node.schema.attributes if a.name in ends))
        matched = self.pruned(self.named(zones, known), known)
        sides = [self.build_range(situation.input) for situation in node.situations]
        everything = range(sides[0][1].start, sides[-1][1].stop)
        awaited: set[int] = set()
        for (zones, own), symbol, situation in zip(sides, node.symbols, node.situations, strict=True):
            if isinstance(situation, Given):
                matched, known = self.from_row(zones, matched, known, symbol, situation)
                awaited.update(own)
        found: list[Zone] = []
        time = node.schema[DETECTED].renamed(_COMPLETING)
        for (zones, own), situation in zip(sides, node.situations, strict=True):
            if isinstance(situation, Given):
                continue
            completing = self.completed(zones, situation, _COMPLETING)
            keys = [node.schema[key] for key in node.keys]
            both = Schema((*keys, time, *known.attributes))
            same = _equal([(DETECTED, _COMPLETING)])
            pairs = self.joined(self.named(completing, Schema((*keys, time))), matched, both, same)
            others = [i for i in everything if i not in own and i not in awaited]
            found += [zone.ignoring(others) for zone in self.named(pairs, node.schema)]
        return self.pruned(found or self.named(matched, node.schema), node.schema)

    def from_row(
        self, zones: list[Zone], matched: list[Zone], known: Schema, symbol: str, given: Given
    ) -> tuple[list[Zone], Schema]:
        """What holds of a match beside the row that is one of its situations, and which of its attributes are known then."""
        rows = given.schema
        least = 0 if given.points else -1
        zones = self.named(zones, rows)
        if not all(zone.entails(Bound(START, END, least)) for zone in zones):
            raise _not_periods(symbol, given)
        for zone in zones:
            for name in _instants(given):
                hidden = zone.layout.rows[zone.layout.attributes[name]]
                if not self.labels[hidden].text:
                    self.labels[hidden] = Label(f"{symbol}.{name}", self.labels[hidden].type)
        own = {name: f"{symbol}'.{name}" if name in (START, END) else f"{symbol}.{name}" for name in _instants(given)}
        named = relaid(
            self.named(zones, Schema(tuple(rows[name] for name in own))),
            lambda layout: Layout(layout.rows, {own[name]: row for name, row in layout.attributes.items()}),
        )
        further = Schema(tuple(rows[name].renamed(new) for name, new in own.items()))
        both = Schema((*known.attributes, *further.attributes))
        same = _equal((own[end], f"{symbol}.{end}") for end in (START, END))
        kept = Schema(tuple(a for a in both.attributes if a.name not in (own[START], own[END])))
        return self.pruned(self.named(self.joined(matched, named, both, same), kept), kept), kept

    def union(self, node: Union) -> list[Zone]:
        if self.uses(node, {}) > self.limit:
            # So many occurrences make large zones: counted before they are built.
            check_number(self.cases(node, {}), self.limit, "this union")
        sides = [self.build_range(input_) for input_ in node.inputs]
        everything = range(sides[0][1].start, sides[-1][1].stop)
        zones = [
            zone.ignoring(i for i in everything if i not in own)
            for side, own in sides
            for zone in self.named(side, node.schema)
        ]
        check_number(len(zones), self.limit, "this union")
        return self.pruned(zones, node.schema)

    def uses(self, node: Node, known: dict[Node, int]) -> int:
        """Number of occurrences below a node, where parts in common are looked at once."""
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
                    known[node] = len(_Builder(self.streams, self.limit, self.sites).build(node))
        return known[node]

    def build_range(self, node: Node) -> tuple[list[Zone], range]:
        """Zones of an input and the numbers of its occurrences."""
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
        conflicts: list[Conflict] = []
        found = constrained(zones, condition, self.limit, conflicts, declared_by)
        if zones and not found:
            self.conflicts += conflicts
        return found

    def pruned(self, zones: list[Zone], schema: Schema) -> list[Zone]:
        return prune(zones, schema.temporal, len(self.occurrences))

    def named(self, zones: list[Zone], schema: Schema) -> list[Zone]:
        """The zones over exactly the schema's temporal attributes, all occurrences' copies and what rounds these.

        Attributes that ended to be temporal, or to exist, are hidden; those that began to be (a timestamp known not
        to be NULL from here on) get a variable of their own, about which nothing is known.
        """
        fresh: dict[str, Copy] = {}

        def over(layout: Layout) -> Layout:
            if tuple(layout.attributes) == schema.temporal:
                return layout
            rows_of = {name: layout.rows[row] for name, row in layout.attributes.items()}
            for name in schema.temporal:
                if name not in rows_of:
                    if name not in fresh:
                        fresh[name] = self.fresh(schema[name])
                    rows_of[name] = fresh[name]
            wanted = dict.fromkeys(rows_of[name] for name in schema.temporal)
            rows = (
                *(row for row in layout.rows if remains(row, wanted)),
                *(row for row in wanted if row not in layout.index),
            )
            index = {row: k for k, row in enumerate(rows)}
            return Layout(rows, {name: index[rows_of[name]] for name in schema.temporal})

        return relaid(zones, over)

    def fresh(self, attribute: Attribute) -> Copy:
        self.hidden += 1
        row: Copy = ("v", self.hidden, attribute.name)
        self.labels[row] = Label(attribute.name, attribute.type)
        return row


def _instants(given: Given) -> list[str]:
    """The instants of a row that is a period, without those that are keys."""
    return [name for name in given.schema.temporal if name not in given.keys]


def _not_periods(symbol: str, given: Given) -> QueryError:
    sign, might = ("<=", "end before it begins") if given.points else ("<", "not end after it begins")
    return QueryError(
        "TG161",
        f"a row of {symbol} might {might}",
        because=(f"no declared relation and no filter says that {START} {sign} {END}",),
        hint=f"declare it, relations=lambda r: r.start {sign} r.end, or filter by it first"
        + ("" if given.points else "; points=True allows both to be equal"),
    )


def _equal(pairs: Iterable[tuple[str, str]]) -> Formula:
    return And(tuple(Compare(Var(one), "=", Var(other)) for one, other in pairs))


def _term_label(row: Hidden, label: Callable[[Hidden], Label]) -> Label:
    """What a row is called that no attribute ever named: by its term."""
    match row:
        case Rounding(base, offset, unit):
            inner = label(base)
            text = shifted(inner.text, offset, inner.type)
            return Label(text if unit == 1 else f"floor({text}, {amount(unit, inner.type)})", inner.type)
        case Extreme(op, parts):
            labels = [
                _term_label(part, label)
                if isinstance(part, Extreme)
                else Label(shifted((inner := label(part.row)).text, part.by, inner.type), inner.type)
                for part in parts
            ]
            return Label(f"{op}({', '.join(one.text for one in labels)})", labels[0].type)
        case _:
            raise AssertionError(f"no label for {row}")
