"""Random programs with rows that sit on the boundaries of their constants; everything follows from one seed.

A program has one to three queries of one to four occurrences each. Conditions are weighted so that most joins are
bounded both ways, which is what makes a query valid; rows are placed at other rows' instants plus or minus sums of the
program's constants, plus or minus one tick, because uniform rows hardly ever meet an off-by-one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.functions.aggregates import TABLE, Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    JoinKind,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    children,
    occurrences,
)
from tidegate.algebra.printing.plans import node_text
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import TRUE, Attr, Call, Lit, Term, attributes_of, call, conjunction, subterms
from tidegate.algebra.types import BIGINT, DOUBLE, DURATION, STRING, TIMESTAMP, DataType, Kind

Row = dict[str, object]
Rows = Mapping[str, tuple[Row, ...]]

EPOCH_2020 = 1_577_836_800_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """What a generated program may hold."""

    occurrences: tuple[int, ...] = (1, 2, 2, 2, 3, 3, 4)
    queries: tuple[int, ...] = (1, 1, 1, 2, 2, 3)
    timestamps: float = 0.12
    statics: float = 0.2
    windowed: float = 0.15
    joins: tuple[JoinKind, ...] = ("inner", "inner", "inner", "anti", "anti", "semi", "left")
    equal_keys: float = 0.4
    decided: float = 0.0
    rows: Mapping[int, int] = field(default_factory=lambda: {1: 10, 2: 8, 3: 6, 4: 5})


ONE_QUERY = Options(queries=(1,))
WINDOWED = Options(queries=(1, 1, 2), occurrences=(1,), windowed=0.8, rows={1: 14})
#: Joins of several streams by keys and time, and many anti-joins: where rows wait for others, or for being discarded.
JOINED = Options(
    queries=(1, 1, 2),
    occurrences=(2, 2, 2, 3, 3),
    timestamps=0.05,
    statics=0.05,
    windowed=0.0,
    rows={1: 12, 2: 14, 3: 9},
    joins=("inner", "inner", "inner", "anti", "anti", "anti", "anti", "left", "semi"),
    equal_keys=0.6,
)
#: Anti-joins whose right rows discard left ones soon, of one stream or of two.
DECIDED = Options(
    queries=(1, 1, 2),
    occurrences=(2, 3, 3),
    timestamps=0.05,
    statics=0.0,
    windowed=0.0,
    rows={1: 12, 2: 12, 3: 9},
    equal_keys=0.6,
    decided=0.8,
)
STAGED = Options(queries=(2, 2, 3), occurrences=(1, 1, 2, 2, 3))


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the complete relations of all its inputs, static tables included."""

    seed: int
    program: ProgramDef
    rows: Rows

    @property
    def streams(self) -> tuple[StreamDef, ...]:
        return tuple(stream for stream in self.program.inputs if not stream.static)

    @property
    def statics(self) -> tuple[StreamDef, ...]:
        return tuple(stream for stream in self.program.inputs if stream.static)

    def with_rows(self, rows: Rows) -> Case:
        return replace(self, rows=dict(rows))

    def __str__(self) -> str:
        lines = [f"seed {self.seed}"]
        for stream in self.program.inputs:
            lines.append(show_stream(stream))
            lines += [f"    {show_row(row)}" for row in self.rows.get(stream.name, ())]
        for query in self.program.queries:
            if query.declared is not None:
                lines.append(f"result {show_stream(query.declared)}")
            lines.append(f"{query.stream} <- {query.name}: {show_node(query.node)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Relation:
    """A node under construction; `good` are temporal attributes that probably progress."""

    node: Node
    good: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        return self.node.schema


def random_case(seed: int, options: Options | None = None) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    builder = _Builder(random.Random(seed), options or Options())
    program = builder.program()
    return Case(seed, program, builder.data(program))


class _Builder:
    def __init__(self, rng: random.Random, options: Options) -> None:
        self.rng = rng
        self.options = options
        self.count = 0
        if self.chance(options.timestamps):
            self.time, self.shift_type, self.unit, self.base = (
                TIMESTAMP,
                DURATION,
                rng.choice((1, 1_000_000)),
                EPOCH_2020,
            )
        else:
            self.time, self.shift_type, self.unit, self.base = BIGINT, BIGINT, 1, 0
        self.constants = [c * self.unit for c in rng.sample((0, 1, 2, 3, 4, 5, 7), 3)]
        self.units = [c * self.unit for c in rng.sample((2, 3, 4, 5, 10), 2)]
        #: Roundings so far, many of which are written again; drawn aside, so that all else stays as it was.
        self.roundings: list[Call] = []
        self.aside = random.Random(rng.getstate()[1][1])

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # -- streams ------------------------------------------------------------------------------------------------------

    def stream(self, name: str) -> StreamDef:
        instants = ["t"] + (["u"] if self.chance(0.45) else []) + (["w"] if self.chance(0.12) else [])
        progress = [n for n in instants if self.chance(0.55)]
        attributes = [Attribute(n, self.time, nullable=False, temporal=True) for n in instants]
        attributes += self.data_attributes()
        schema = Schema(tuple(attributes))
        return StreamDef(name, schema, self.declared_relations(tuple(instants), 0.5), tuple(progress or instants[:1]))

    def static(self, name: str) -> StreamDef:
        attributes = [Attribute("t", self.time, nullable=False, temporal=True)] if self.chance(0.4) else []
        return StreamDef(name, Schema((*attributes, *self.data_attributes())), static=True)

    def data_attributes(self) -> list[Attribute]:
        attributes = [Attribute("k", BIGINT)]
        if self.chance(0.35):
            attributes.append(Attribute("v", self.rng.choice((BIGINT, STRING, DOUBLE))))
        return attributes

    def declared_relations(self, names: tuple[str, ...], probability: float) -> Term:
        """A declared G: how two of the attributes lie to each other."""
        if len(names) < 2 or not self.chance(probability):
            return TRUE
        first, second = self.rng.sample(names, 2)
        a, b = Attr(first), Attr(second)
        style = self.rng.random()
        if style < 0.4:
            return call("le", a, b)
        if style < 0.7:
            return conjunction([call("le", a, b), call("le", b, self.plus(a, self.constant()))])
        if style < 0.85:
            return call("or", call("lt", a, self.plus(b, -self.constant())), call("le", a, b))
        return call("or", call("eq", a, b), call("ge", a, self.plus(b, self.constant())))

    # -- terms and conditions -----------------------------------------------------------------------------------------

    def constant(self) -> int:
        return self.rng.choice(self.constants)

    def plus(self, term: Term, by: int) -> Term:
        if by == 0 and self.chance(0.7):
            return term
        if by < 0 and self.chance(0.5):
            return call("sub", term, Lit(-by, self.shift_type))
        return call("add", term, Lit(by, self.shift_type))

    def instant(self, names: Sequence[str], depth: int = 2) -> Term:
        """A temporal term over some of the names."""
        style = self.rng.random() if depth else 0.0
        if style < 0.62:
            return Attr(self.rng.choice(names))
        if style < 0.78:
            return self.plus(self.instant(names, depth - 1), self.constant() * self.rng.choice((1, 1, -1)))
        if style < 0.9:
            parts = [self.instant(names, depth - 1) for _ in range(self.rng.choice((2, 2, 3)))]
            return call(self.rng.choice(("least", "greatest")), *parts)
        unit = Lit(self.rng.choice(self.units), self.shift_type)
        made = call(self.rng.choice(("floor", "ceil")), self.instant(names, depth - 1), unit)
        return self.again(names, 0.5) or self.remembered(made)

    def remembered(self, rounding: Call) -> Call:
        self.roundings.append(rounding)
        return rounding

    def again(self, names: Sequence[str], probability: float) -> Term | None:
        """A rounding of these instants that was written before, perhaps shifted."""
        known = [term for term in self.roundings if attributes_of(term) <= set(names)]
        if not known or self.aside.random() >= probability:
            return None
        term = self.aside.choice(known)
        by = self.aside.choice((0, 0, 0, self.aside.choice(self.units)))
        return call("add", term, Lit(by, self.shift_type)) if by else term

    def rounded(self, term: Term, probability: float) -> Term:
        if not self.chance(probability):
            return term
        return call(self.rng.choice(("floor", "ceil")), term, Lit(self.rng.choice(self.units), self.shift_type))

    def comparison(self, left: Term, right: Term) -> Term:
        if self.chance(0.2):
            op = self.rng.choice(("le", "lt", "ge", "gt", "eq"))
            return call(op, call("sub", left, right), Lit(self.constant(), self.shift_type))
        return call(self.rng.choice(("le", "le", "lt", "ge", "gt", "eq", "ne")), left, right)

    def data_atom(self, schema: Schema) -> Term:
        """A condition that is not temporal, though it may read instants; NULL makes it unknown."""
        style = self.rng.random()
        plain = [a for a in schema.attributes if not a.temporal]
        instants = [a for a in schema.attributes if a.type == self.time]
        if style < 0.12 and self.time == BIGINT and len(instants) > 1 and plain:
            numbers = [a for a in plain if a.type == BIGINT]
            if numbers:
                a, b = self.rng.sample(instants, 2)
                return call("le", Attr(a.name), call("add", Attr(b.name), Attr(self.rng.choice(numbers).name)))
        if style < 0.35:
            pairs = [(a, b) for a in schema.attributes for b in plain if a.name < b.name and a.type == b.type]
            if pairs:
                a, b = self.rng.choice(pairs)
                return call(self.rng.choice(("eq", "eq", "ne", "lt", "ge")), Attr(a.name), Attr(b.name))
        if not plain:
            return TRUE
        chosen = self.rng.choice(plain)
        if style < 0.5:
            return call(self.rng.choice(("is_null", "is_not_null")), Attr(chosen.name))
        value = self.value(chosen.type, 0.0)
        return call(self.rng.choice(("eq", "ne", "le", "gt")), Attr(chosen.name), Lit(value, chosen.type))  # type: ignore[arg-type]

    def formula(self, schema: Schema, depth: int = 2) -> Term:
        """Any condition: connectives over temporal and other atoms."""
        style = self.rng.random()
        if depth and style < 0.45:
            op = self.rng.choice(("and", "or", "or"))
            return call(op, *(self.formula(schema, depth - 1) for _ in range(2)))
        if depth and style < 0.62:
            return call("not", self.formula(schema, depth - 1))
        names = schema.temporal
        if style < 0.8 and names:
            left = self.instant(names)
            # An instant compared with itself is mostly constant, and a constant false makes the query invalid.
            others = [n for n in names if n not in attributes_of(left)]
            if others or self.chance(0.2):
                return self.comparison(left, self.instant(others or names))
        return self.data_atom(schema)

    def link(self, left: _Relation, right: _Relation) -> list[Term]:
        """Conditions that tie two sides together in time, mostly in both directions."""
        lefts = left.good or left.schema.temporal
        rights = right.good or right.schema.temporal
        if not lefts or not rights or self.chance(0.03):
            return []
        x: Term = Attr(self.rng.choice(lefts))
        y: Term = Attr(self.rng.choice(rights))
        after, before = self.plus(x, self.constant()), self.plus(y, self.constant())
        style = self.rng.random()
        if style < 0.3:
            return [call("le", x, before), call("le", y, after)]
        if style < 0.4:
            return [call("lt", x, y), call("le", call("sub", y, x), Lit(self.constant(), self.shift_type))]
        if style < 0.5:
            return [call("ge", call("sub", y, x), Lit(0, self.shift_type)), call("lt", y, after)]
        if style < 0.6:
            return [call("eq", after, y) if self.chance(0.5) else call("eq", x, y)]
        if style < 0.65:
            unit = Lit(self.rng.choice(self.units), self.shift_type)
            op = self.rng.choice(("floor", "ceil"))
            return [call("eq", self.remembered(call(op, x, unit)), self.remembered(call(op, y, unit)))]
        if style < 0.71:
            one = call("and", call("le", x, y), call("le", y, after))
            other = call("and", call("le", y, x), call("le", x, before))
            return [call("or", one, other)]
        if style < 0.82:
            opaque = self.data_atom(Schema((*left.schema.attributes, *right.schema.attributes)))
            # Rounding is an implication, which a negation turns round.
            first, second = self.rounded(x, 0.4), self.rounded(y, 0.4)
            parts = [call("gt", first, before), call("gt", second, after)] + ([opaque] if self.chance(0.5) else [])
            return [call("not", call("or", *parts))]
        if style < 0.9:
            late = call("greatest", y, self.instant(rights, 1))
            return [call("le", x, late), call("le", late, after)]
        if style < 0.95:
            unit = Lit(self.rng.choice(self.units), self.shift_type)
            return [call("le", x, call("ceil", y, unit)), call("lt", call("floor", y, unit), after)]
        return [call("le", x, before) if self.chance(0.5) else call("lt", y, after)]

    def join_condition(self, left: _Relation, right: _Relation) -> Term:
        both = Schema((*left.schema.attributes, *right.schema.attributes))
        parts = self.link(left, right)
        ks = [[a.name for a in side.schema.attributes if a.type == BIGINT and not a.temporal] for side in (left, right)]
        if all(ks) and self.chance(self.options.equal_keys):
            op = "eq" if self.chance(0.85) else "eq_null_safe"
            parts.append(call(op, *(Attr(self.rng.choice(names)) for names in ks)))
        if self.chance(0.3):
            parts.append(self.formula(both, self.rng.choice((0, 1, 2))))
        if self.chance(0.08):
            parts = [call("or", conjunction(parts), conjunction([*self.link(left, right), self.formula(both, 0)]))]
        self.rng.shuffle(parts)
        return conjunction(parts)

    # -- expressions --------------------------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        self.count += 1
        return f"{name}{self.count}"

    def source(self, pool: Sequence[StreamDef]) -> _Relation:
        stream = self.rng.choice(pool)
        self.count += 1
        pairs = tuple((name, f"{name}_{self.count}") for name in stream.schema)
        scan: Node = Scan(stream)
        if self.chance(0.12):
            scan = Select(scan, self.formula(stream.schema, 1))
        return _Relation(Rename(scan, pairs), tuple(f"{name}_{self.count}" for name in stream.progress))

    def relation(self, occurrences_left: int, pool: Sequence[StreamDef]) -> _Relation:
        if occurrences_left == 1:
            source = self.source(pool)
            if source.good and self.chance(self.options.windowed):
                return self.unary(self.windowed(self.unary(source, 0.2)), 0.3)
            return self.unary(source, 0.3)
        if self.chance(self.options.decided):
            return self.decided(occurrences_left, pool)
        first = self.rng.randint(1, occurrences_left - 1)
        left = self.relation(first, pool)
        right = self.relation(occurrences_left - first, pool)
        return self.unary(self.binary(left, right), 0.4)

    def decided(self, occurrences_left: int, pool: Sequence[StreamDef]) -> _Relation:
        """An anti-join under bounds alone; on its left perhaps what lies after something, without a limit."""
        if occurrences_left == 3 and self.chance(0.6):
            one, other = self.source(pool), self.source(pool)
            x, y = self.rng.choice(one.good), self.rng.choice(other.good)
            after = [call(self.rng.choice(("lt", "le")), Attr(x), Attr(y))]
            left = _Relation(Join(one.node, other.node, conjunction([*after, *self.same(one, other)]), "inner"), (y,))
        else:
            left = self.relation(1, pool)
        right = self.source(pool) if len(left.good) and self.chance(0.7) else self.relation(occurrences_left - 1, pool)
        if not left.good or not right.good:
            return self.binary(left, right)
        limit = self.plus(Attr(self.rng.choice(left.good)), self.constant())
        parts = [call(self.rng.choice(("lt", "le")), Attr(self.rng.choice(right.good)), limit)]
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            sides = [Attr(self.rng.choice(left.schema.temporal)), Attr(self.rng.choice(right.schema.temporal))]
            self.rng.shuffle(sides)
            parts.append(call(self.rng.choice(("lt", "le")), sides[0], self.plus(sides[1], self.constant())))
        node = Join(left.node, right.node, conjunction([*parts, *self.same(left, right)]), "anti")
        return _Relation(node, left.good)

    def same(self, left: _Relation, right: _Relation) -> list[Term]:
        """Equal keys of both sides, sometimes."""
        ks = [[a.name for a in side.schema.attributes if a.type == BIGINT and not a.temporal] for side in (left, right)]
        if not all(ks) or not self.chance(self.options.equal_keys):
            return []
        return [call("eq", *(Attr(self.rng.choice(names)) for names in ks))]

    def binary(self, left: _Relation, right: _Relation) -> _Relation:
        if not left.schema.temporal and right.schema.temporal:
            left, right = right, left
        style = self.rng.random()
        if style < 0.2 and (merged := self.merged(left, right)) is not None:
            return merged
        if style < 0.3:
            node: Node = Select(Product(left.node, right.node), self.join_condition(left, right))
            return _Relation(node, left.good + right.good)
        kind = self.rng.choice(self.options.joins)
        node = Join(left.node, right.node, self.join_condition(left, right), kind)
        return _Relation(node, left.good + right.good if kind == "inner" else left.good)

    def merged(self, left: _Relation, right: _Relation) -> _Relation | None:
        """A union or difference after bringing both sides to common names."""
        pairs: list[tuple[str, str]] = []
        for wanted in (True, False):
            lefts = [a for a in left.schema.attributes if a.temporal is wanted]
            rights = [a for a in right.schema.attributes if a.temporal is wanted]
            self.rng.shuffle(lefts)
            lefts.sort(key=lambda a: a.name not in left.good)
            rights.sort(key=lambda a: a.name not in right.good)
            for a in lefts[: self.rng.choice((1, 1, 2))]:
                for b in rights:
                    if b.type == a.type and all(b.name != other for _, other in pairs):
                        pairs.append((a.name, b.name))
                        break
        if not any(left.schema[a].temporal for a, _ in pairs):
            return None
        names = [self.fresh("m") for _ in pairs]
        first = Rename(
            Project(left.node, tuple(a for a, _ in pairs)),
            tuple((a, n) for (a, _), n in zip(pairs, names, strict=True)),
        )
        other = Rename(
            Project(right.node, tuple(b for _, b in pairs)),
            tuple((b, n) for (_, b), n in zip(pairs, names, strict=True)),
        )
        if self.chance(0.5):
            good = tuple(n for (a, b), n in zip(pairs, names, strict=True) if a in left.good and b in right.good)
            return _Relation(Union((first, other)), good)
        return _Relation(
            Difference(first, other), tuple(n for (a, _), n in zip(pairs, names, strict=True) if a in left.good)
        )

    def unary(self, relation: _Relation, probability: float) -> _Relation:
        while self.chance(probability):
            style = self.rng.random()
            schema, node = relation.schema, relation.node
            if style < 0.35:
                relation = _Relation(Select(node, self.formula(schema, self.rng.choice((0, 1, 2)))), relation.good)
            elif style < 0.6 and schema.temporal:
                name = self.fresh("i")
                names = relation.good or schema.temporal
                term = self.instant(names)
                term = self.again(names, 0.4) or term
                relation = _Relation(Imbed(node, name, term), (*relation.good, name))
            elif style < 0.7:
                relation = _Relation(Distinct(node), relation.good)
            elif style < 0.85:
                relation = self.projected(relation)
            else:
                relation = self.grouped(relation)
            probability *= 0.6
        return relation

    def windowed(self, relation: _Relation) -> _Relation:
        """A grouping by windows of time, directly above a stream."""
        if not relation.schema.temporal:
            return relation
        name = self.fresh("i")
        unit = Lit(self.rng.choice(self.units), self.shift_type)
        instant = Attr(self.rng.choice(relation.good or relation.schema.temporal))
        end = call(self.rng.choice(("floor", "ceil")), instant, unit)
        keys = [a.name for a in relation.schema.attributes if not a.temporal and self.chance(0.4)]
        node = Imbed(relation.node, name, end)
        aggregates = tuple(self.aggregate(relation.schema) for _ in range(self.rng.choice((1, 2, 3))))
        group: Node = Group(node, (*keys, name), aggregates)
        if self.chance(0.2):
            group = Select(group, self.formula(group.schema, 1))
        return _Relation(group, (name,))

    def projected(self, relation: _Relation) -> _Relation:
        names = [a.name for a in relation.schema.attributes if self.chance(0.6)]
        if relation.good and not any(name in relation.good for name in names):
            names.append(self.rng.choice(relation.good))
        if not names:
            return relation
        return _Relation(Project(relation.node, tuple(names)), tuple(n for n in relation.good if n in names))

    def grouped(self, relation: _Relation) -> _Relation:
        schema = relation.schema
        keys = [a.name for a in schema.attributes if self.chance(0.25)]
        if relation.good and self.chance(0.95) and not any(k in relation.good for k in keys):
            keys.append(self.rng.choice(relation.good))
        if not keys:
            return relation
        aggregates = tuple(self.aggregate(schema) for _ in range(self.rng.choice((1, 1, 2))))
        node: Node = Group(relation.node, tuple(keys), aggregates)
        good = tuple(k for k in keys if k in relation.good)
        if self.chance(0.3):
            node = Select(node, self.data_atom(node.schema))
        return _Relation(node, good)

    def aggregate(self, schema: Schema) -> Aggregate:
        name = self.fresh("g")
        numbers = [a.name for a in schema.attributes if a.type in (BIGINT, DOUBLE)]
        anything = Attr(self.rng.choice(schema.attributes).name)
        known: tuple[Function, ...] = tuple(
            one for one in Function if TABLE[one].of_events and one is not Function.TRY_SUM
        )
        function = self.rng.choice(known)
        if function is Function.SUM and name[-1] in "258":  # not drawn: seeds stay what they were
            function = Function.TRY_SUM
        match function:
            case Function.COUNT:
                return Aggregate(name, function, None if self.chance(0.6) else anything)
            case Function.COUNT_DISTINCT | Function.MIN | Function.MAX:
                return Aggregate(name, function, anything)
            case Function.SUM | Function.TRY_SUM | Function.AVG:
                if not numbers:
                    return Aggregate(name, Function.COUNT)
                return Aggregate(name, function, Attr(self.rng.choice(numbers)))
            case Function.FIRST | Function.LAST:
                by = self.rng.choice(schema.temporal or tuple(schema))
                return Aggregate(name, function, anything, Attr(by))
            case _:
                raise AssertionError(f"{function} is not drawn")

    # -- programs -----------------------------------------------------------------------------------------------------

    def program(self) -> ProgramDef:
        pool = [self.stream(name) for name in "ABC"[: self.rng.choice((1, 2, 2, 3))]]
        if self.chance(self.options.statics):
            pool.append(self.static("S"))
        queries: list[Query] = []
        total = self.rng.choice(self.options.queries)
        while len(queries) < total:
            queries += self.queries(f"R{len(queries)}", pool, queries, last=len(queries) + 1 == total)
        return ProgramDef(tuple(queries))

    def queries(self, name: str, pool: list[StreamDef], before: list[Query], *, last: bool) -> list[Query]:
        """One query or two that feed the same result stream, which joins the pool."""
        sources = [s for s in pool if s.name in {q.stream for q in before}] * 2 + pool
        parts = [self.output(sources)]
        if self.chance(0.2):
            parts.append(self.output(sources))
        schema = parts[0].schema
        good = parts[0].good
        if len(parts) == 2:
            fitted = self.fitted(parts[0], parts[1])
            if fitted is None:
                parts = parts[:1]
            else:
                parts, schema, good = fitted
        declared: StreamDef | None = None
        if good and not (last and self.chance(0.6)):
            progress = tuple(n for n in good if self.chance(0.8)) or good[:1]
            declared = StreamDef(name, schema, self.declared_relations(schema.temporal, 0.1), progress)
            pool.append(declared)
        return [Query(f"{name}_{i}", name, part.node, declared) for i, part in enumerate(parts)]

    def output(self, pool: Sequence[StreamDef]) -> _Relation:
        """An expression with at least one temporal attribute, over at least one stream."""
        while True:
            size = self.rng.choice(self.options.occurrences)
            relation = self.relation(size, pool)
            if all(stream.static for stream in occurrences(relation.node)):
                continue
            if self.chance(0.25):
                relation = self.projected(relation)
            if relation.schema.temporal and estimate(relation.node) <= 64:
                return relation

    def fitted(self, first: _Relation, other: _Relation) -> tuple[list[_Relation], Schema, tuple[str, ...]] | None:
        """Two expressions cut down to one common schema."""
        pairs: list[tuple[str, str]] = []
        for a in sorted(first.schema.attributes, key=lambda a: a.name not in first.good):
            for b in sorted(other.schema.attributes, key=lambda b: b.name not in other.good):
                if a.type == b.type and a.temporal == b.temporal and all(b.name != used for _, used in pairs):
                    pairs.append((a.name, b.name))
                    break
        if not any(first.schema[a].temporal for a, _ in pairs):
            return None
        names = [self.fresh("r") for _ in pairs]
        made: list[_Relation] = []
        for relation, index in ((first, 0), (other, 1)):
            own = [pair[index] for pair in pairs]
            node = Rename(Project(relation.node, tuple(own)), tuple(zip(own, names, strict=True)))
            made.append(_Relation(node, tuple(n for o, n in zip(own, names, strict=True) if o in relation.good)))
        nullable = [any(m.schema[n].nullable for m in made) for n in names]
        schema = Schema(
            tuple(
                Attribute(n, made[0].schema[n].type, nullable=null, temporal=made[0].schema[n].temporal)
                for n, null in zip(names, nullable, strict=True)
            )
        )
        good = tuple(n for n in made[0].good if n in made[1].good)
        return made, schema, good

    # -- rows ---------------------------------------------------------------------------------------------------------

    def data(self, program: ProgramDef) -> dict[str, tuple[Row, ...]]:
        steps = distances(program)
        units = sorted(set(self.units))
        anchors = [self.base + self.rng.randint(0, 12) * self.unit]
        size = max(len(occurrences(query.node)) for query in program.queries)
        most = self.options.rows.get(min(size, 4), 5)
        made: dict[str, list[Row]] = {stream.name: [] for stream in program.inputs}
        turns = [s for s in program.inputs for _ in range(self.rng.randint(1, 3 if s.static else most))]
        self.rng.shuffle(turns)
        for stream in turns:
            row = self.row(stream, made[stream.name], anchors, steps, units)
            if row is not None:
                made[stream.name].append(row)
                anchors += [value for name in stream.schema.temporal if isinstance(value := row[name], int)]
        return {name: tuple(rows) for name, rows in made.items()}

    def row(
        self, stream: StreamDef, existing: list[Row], anchors: list[int], steps: Sequence[int], units: Sequence[int]
    ) -> Row | None:
        if existing and self.chance(0.1):
            return dict(self.rng.choice(existing))
        for _ in range(20):
            row: Row = {}
            if existing and self.chance(0.15):
                row = dict(self.rng.choice(existing))
            near = anchors
            for attribute in stream.schema.attributes:
                if attribute.name in row and self.chance(0.7):
                    continue
                if attribute.temporal:
                    value = self.moment(near, steps, units)
                    row[attribute.name] = value
                    near = [value] if self.chance(0.7) else anchors
                else:
                    row[attribute.name] = self.value(attribute.type, 0.12 if attribute.nullable else 0.0)
            if evaluate_term(stream.relations, row, stream.schema) is True:  # type: ignore[arg-type]  # values of generated rows
                return row
        return None

    def moment(self, anchors: Sequence[int], steps: Sequence[int], units: Sequence[int]) -> int:
        style = self.rng.random()
        if style < 0.1:
            return self.base + self.rng.randint(0, 25) * self.unit
        anchor = self.rng.choice(anchors[-6:] if self.chance(0.6) else anchors)
        off = self.rng.choice((0, 0, 0, 0, 1, -1))
        if style < 0.2:
            unit = self.rng.choice(units)
            return anchor // unit * unit + unit * self.rng.choice((0, 1)) + off
        if style < 0.3:
            return anchor + off
        moved = anchor + self.rng.choice((1, 1, 1, -1)) * self.rng.choice(steps) + off
        low, high = self.base - 6 * self.unit, self.base + 32 * self.unit
        return moved if low <= moved <= high else anchor + off

    def value(self, type_: DataType, null: float) -> object:
        if self.chance(null):
            return None
        match type_.kind:
            case Kind.BIGINT:
                return self.rng.choice((0, 0, 1, 1, 2))
            case Kind.STRING:
                return self.rng.choice(("a", "b", "B", "é"))
            case Kind.DOUBLE:
                return self.rng.choice((0.0, 0.5, 0.5, -0.0, 1.25))
            case Kind.TIMESTAMP:
                return self.base + self.rng.randint(0, 12) * self.unit
            case _:
                return self.rng.choice((0, 1))


def distances(program: ProgramDef) -> tuple[int, ...]:
    """Constants of a program and the sums and differences of pairs of them: where its boundaries lie."""
    found = {0}
    for query in program.queries:
        for term in terms_of(query.node):
            for sub in subterms(term):
                match sub:
                    case Call("add" | "sub" | "floor" | "ceil", (_, Lit(int(value), _))):
                        found.add(abs(value))
                    case Call("le" | "lt" | "ge" | "gt" | "eq", (Call("sub", _), Lit(int(value), _))):
                        found.add(abs(value))
    for stream in program.inputs:
        found |= {abs(s.value) for s in subterms(stream.relations) if isinstance(s, Lit) and type(s.value) is int}
    pairs = {a + b for a in found for b in found} | {abs(a - b) for a in found for b in found}
    return tuple(sorted(found) * 3 + sorted(pairs))


def terms_of(node: Node) -> Iterator[Term]:
    """All terms in an expression."""
    for child in children(node):
        yield from terms_of(child)
    match node:
        case Select(_, condition) | Join(_, _, condition, _):
            yield condition
        case Imbed(_, _, term):
            yield term
        case _:
            pass


def estimate(node: Node) -> int:
    """Roughly how many conjunctions the normal form of an expression's conditions will have."""
    total = 1
    for term in terms_of(node):
        total *= _cases(term, positive=True)
    return total


def _cases(term: Term, *, positive: bool) -> int:
    match term:
        case Call("not", (arg,)):
            return _cases(arg, positive=not positive)
        case Call("and" | "or" as op, args):
            parts = [_cases(arg, positive=positive) for arg in args]
            if (op == "or") == positive:
                return sum(parts)
            product = 1
            for part in parts:
                product *= part
            return product
        case Call("eq" | "ne" as op, _) if (op == "ne") == positive:
            return 2
        case Call(_, args):
            return max(
                (2 for sub in subterms(term) if isinstance(sub, Call) and sub.op in ("least", "greatest")), default=1
            )
        case _:
            return 1


# -- text -------------------------------------------------------------------------------------------------------------

_SIGNS = {
    "le": "<=",
    "lt": "<",
    "ge": ">=",
    "gt": ">",
    "eq": "=",
    "ne": "!=",
    "add": "+",
    "sub": "-",
    "and": "&",
    "or": "|",
}


def show_term(term: Term) -> str:
    match term:
        case Attr(name):
            return name
        case Lit(value, _):
            return repr(value)
        case Call(op, args) if op in _SIGNS and len(args) > 1:
            return "(" + f" {_SIGNS[op]} ".join(map(show_term, args)) + ")"
        case Call(op, args):
            return f"{op}({', '.join(map(show_term, args))})"
        case _:
            return str(term)


def show_node(node: Node) -> str:
    match node:
        case Scan(stream):
            return stream.name
        case Select(input_, condition):
            return f"select[{show_term(condition)}]({show_node(input_)})"
        case Project(input_, names):
            return f"project[{', '.join(names)}]({show_node(input_)})"
        case Rename(Scan(stream), pairs):
            return f"{stream.name}[{', '.join(new for _, new in pairs)}]"
        case Rename(input_, pairs):
            return f"rename[{', '.join(f'{o}->{n}' for o, n in pairs)}]({show_node(input_)})"
        case Imbed(input_, name, term):
            return f"imbed[{name} := {show_term(term)}]({show_node(input_)})"
        case Group(input_, keys, aggregates):
            made = ", ".join(
                f"{a.name} := {a.function.value}({'' if a.argument is None else show_term(a.argument)}"
                + ("" if a.by is None else f" by {show_term(a.by)}")
                + ")"
                for a in aggregates
            )
            return f"group[{', '.join(keys)}; {made}]({show_node(input_)})"
        case Distinct(input_):
            return f"distinct({show_node(input_)})"
        case Product(left, right):
            return f"({show_node(left)} x {show_node(right)})"
        case Join(left, right, condition, kind):
            return f"({show_node(left)} {kind}[{show_term(condition)}] {show_node(right)})"
        case Union(inputs):
            return "(" + " ∪ ".join(map(show_node, inputs)) + ")"
        case Difference(left, right):
            return f"({show_node(left)} ∖ {show_node(right)})"
        case OrderedNode():
            return f"\n{node_text(node)}\n"
        case _:
            assert_never(node)


def show_stream(stream: StreamDef) -> str:
    schema = ", ".join(
        f"{a.name}{'*' if a.name in stream.progress else ''}{'@' if a.temporal else ''}:{a.type}"
        for a in stream.schema.attributes
    )
    return f"{stream.name}({schema})" + ("" if stream.relations == TRUE else f" where {show_term(stream.relations)}")


def show_row(row: Mapping[str, object]) -> str:
    return "(" + ", ".join(f"{name}={value!r}" for name, value in row.items()) + ")"
