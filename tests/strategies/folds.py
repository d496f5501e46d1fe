"""Random queries that look back in time, for folding: comparisons that come to be settled beside others that do not,
conditions on data, several occurrences that fold at once; everything follows from one seed.

Rows are few and close together, so that classes have several rows and ties are common.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.strategies.programs import Case
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    JoinKind,
    Node,
    Project,
    Rename,
    Scan,
    Select,
    Union,
)
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, attributes_of, call, conjunction, disjunction
from tidegate.algebra.types import BIGINT, BOOLEAN

Row = tuple[int | None, ...]

_FUNCTIONS = (
    Function.COUNT,
    Function.SUM,
    Function.AVG,
    Function.MIN,
    Function.MAX,
    Function.FIRST,
    Function.LAST,
    Function.LAST,
    Function.COUNT_DISTINCT,
    Function.MEDIAN,
)


@dataclass(frozen=True, slots=True)
class FoldCase:
    """A query and the rows of its streams."""

    seed: int
    node: Node
    streams: tuple[StreamDef, ...]
    rows: dict[str, tuple[Row, ...]]


def random_fold_case(seed: int) -> FoldCase:
    """A query of two to four occurrences, and three to nine rows of each stream. It need not be valid."""
    maker = _Maker(random.Random(seed))
    node = maker.query()
    rows = {one.name: maker.rows(one) for one in maker.streams}
    return FoldCase(seed, node, tuple(maker.streams), rows)


def random_folding_case(seed: int) -> Case:
    """The same as a program, with rows by name. Mostly nothing in it stands against a fold."""
    maker = _Foldable(random.Random(f"folding {seed}"), random.Random(f"beside {seed}"))
    node = maker.query()
    rows: dict[str, tuple[dict[str, object], ...]] = {
        one.name: tuple(dict(zip(one.schema.names, row, strict=True)) for row in maker.rows(one))
        for one in maker.streams
    }
    queries = [Query("R", "R", node)]
    if random.Random(f"second {seed}").random() < 0.3:
        queries.append(Query("Q", "Q", _less(node)))
    return Case(seed, ProgramDef(tuple(queries)), rows)


def _less(node: Node) -> Node:
    """The query with an aggregate less, where it has several: one whose look-ups are the same."""
    match node:
        case Group(input_, keys, aggregates) if len(aggregates) > 1:
            return Group(input_, keys, aggregates[1:])
        case _:
            return node


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.streams = [self.stream(name) for name in ("A", "B", "C")[: rng.choice((1, 2, 2, 3))]]
        self.number = 0
        self.written: Term = TRUE

    def stream(self, name: str) -> StreamDef:
        schema = Schema(
            (
                *(Attribute(one, BIGINT, nullable=False, temporal=True) for one in ("t", "u")),
                *(Attribute(one, BIGINT) for one in ("k", "v")),
            )
        )
        close = conjunction([call("le", Attr("t"), _plus("u", 2)), call("le", Attr("u"), _plus("t", 2))])
        relations = close if self.rng.random() < 0.6 else TRUE
        return StreamDef(name, schema, relations, ("t", "u") if self.rng.random() < 0.3 else ("t",))

    def rows(self, stream: StreamDef) -> tuple[Row, ...]:
        rng = self.rng
        found: list[Row] = []
        for _ in range(rng.randint(3, 9)):
            t = rng.randint(0, 9)
            u = t + rng.randint(-2, 2) if stream.relations != TRUE else rng.randint(0, 9)
            found.append((t, u, rng.choice((0, 0, 0, 1, None)), rng.choice((None, 0, 1, 1, 2, 5))))
        return tuple(found)

    def scan(self) -> Node:
        """A stream by names of its own: `a1.t` and so on, sometimes with less of it."""
        self.number += 1
        stream = self.rng.choice(self.streams)
        node: Node = Rename(Scan(stream), tuple((name, f"{self.number}.{name}") for name in stream.schema.names))
        if self.rng.random() < 0.15:
            node = Select(node, self.data(node.schema))
        if self.rng.random() < 0.06:
            node = Distinct(node)
        return node

    # --- the query ---------------------------------------------------------------------------------------------------

    def query(self) -> Node:
        rng = self.rng
        node = self.scan()
        driver = f"{self.number}.t"
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            node = self.looked_up(node, driver)
        if rng.random() < 0.12:
            node = self.later(node, driver)
        return self.finished(node, driver)

    def looked_up(self, node: Node, driver: str) -> Node:
        """The rows so far, joined with those of an occurrence from before an instant."""
        rng = self.rng
        kind: JoinKind = rng.choice(("inner", "inner", "left", "left", "anti", "semi"))
        right = self.scan()
        own = f"{self.number}"
        if rng.random() < 0.08:
            right = self.looked_up(right, f"{own}.t")
        both = Schema((*node.schema.attributes, *right.schema.attributes))
        parts: list[Term] = []
        if rng.random() < 0.6 and f"{own}.k" in right.schema:
            lefts = [name for name in node.schema.names if name.endswith(".k")]
            parts.append(call("eq", Attr(f"{own}.k"), Attr(rng.choice(lefts))))
        self.written = self.before(right.schema, node.schema, driver)
        parts.append(self.written)
        while rng.random() < 0.4:
            parts.append(self.further(both, right.schema, node.schema, driver))
        rng.shuffle(parts)
        joined: Node = Join(node, right, conjunction(parts), kind)
        if rng.random() < 0.2:
            self.number += 1
            joined = Imbed(joined, f"{self.number}.v", self.value(joined.schema))
        if rng.random() < 0.15:
            joined = Select(joined, self.further(joined.schema, joined.schema, joined.schema, driver))
        return joined

    def before(self, right: Schema, left: Schema, driver: str) -> Term:
        """`right <= left`, as it is written in many ways."""
        rng = self.rng
        first: Term = Attr(rng.choice(right.temporal))
        second: Term = Attr(driver if rng.random() < 0.7 else rng.choice(left.temporal or (driver,)))
        if rng.random() < 0.2:
            first = call(rng.choice(("ceil", "floor")), first, _ticks(3))
        if rng.random() < 0.2:
            second = call(rng.choice(("ceil", "floor")), second, _ticks(3))
        if rng.random() < 0.3:
            second = call("add", second, _ticks(rng.randint(-2, 2)))
        if rng.random() < 0.15:
            return call("not", call(rng.choice(("gt", "ge")), first, second))
        if rng.random() < 0.15:
            return call(rng.choice(("ge", "gt")), second, first)
        return call(rng.choice(("le", "le", "lt")), first, second)

    def further(self, both: Schema, right: Schema, left: Schema, driver: str) -> Term:
        rng = self.rng
        match rng.randrange(7):
            case 0:
                return self.data(both)
            case 6 if attributes_of(self.written) <= set(both.names):
                again = call("eq", self.written, Lit(True, BOOLEAN))
                return disjunction([again, self.data(both)]) if rng.random() < 0.5 else call("not", again)
            case 1:
                return disjunction([self.before(right, left, driver), self.data(both)])
            case 2:
                return disjunction([self.before(right, left, driver), self.before(left, right, _one(rng, right))])
            case 3:
                return call("not", conjunction([self.before(left, right, _one(rng, right)), self.data(both)]))
            case 4:
                return self.before(right, left, driver)
            case _:
                first, second = (Attr(rng.choice(both.temporal or (driver,))) for _ in range(2))
                return call(rng.choice(("le", "lt", "ne")), first, call("add", second, _ticks(rng.randint(-2, 3))))

    def data(self, schema: Schema) -> Term:
        """A condition on data, sometimes with instants in it."""
        rng = self.rng
        values = [name for name in schema.names if name.endswith((".v", ".k"))]
        first = Attr(rng.choice(values))
        match rng.randrange(5):
            case 0:
                return call("le", first, Lit(1, BIGINT))
            case 1:
                return call(rng.choice(("le", "eq", "ne")), first, Attr(rng.choice(values)))
            case 2:
                return call("is_null", first)
            case 3 if schema.temporal:
                later = call("add", Attr(rng.choice(schema.temporal)), first)
                return call("le", later, Attr(rng.choice(schema.temporal)))
            case _:
                return call("lt", first, call("add", Attr(rng.choice(values)), Lit(1, BIGINT)))

    def value(self, schema: Schema) -> Term:
        """A value, perhaps of several occurrences, perhaps of an instant."""
        rng = self.rng
        names = [name for name in schema.names if rng.random() < 0.8 or name.endswith((".v", ".k"))]
        first = Attr(rng.choice(names))
        match rng.randrange(6):
            case 0:
                return call("add", first, Attr(rng.choice(names)))
            case 1:
                return call("coalesce", first, Lit(7, BIGINT))
            case 2:
                return call("add", call("coalesce", first, Lit(3, BIGINT)), Lit(1, BIGINT))
            case _:
                return first

    def later(self, node: Node, driver: str) -> Node:
        """The later of two instants as an attribute."""
        self.number += 1
        others = [name for name in node.schema.temporal if name != driver] or [driver]
        term = call("greatest", Attr(driver), Attr(self.rng.choice(others)))
        return Imbed(node, f"{self.number}.m", term)

    def finished(self, node: Node, driver: str) -> Node:
        rng = self.rng
        latest = [name for name in node.schema.names if name.endswith(".m")]
        instant = latest[0] if latest and rng.random() < 0.9 else driver
        others = self.others(node, instant)
        choice = rng.random()
        if choice < 0.6:
            node = self.grouped(node, (instant, *others))
        elif choice < 0.8:
            node = Distinct(Project(node, (instant, *others)))
        elif choice < 0.85:
            node = Union((Project(node, (instant, *others)), Project(node, (instant, *others))))
        elif choice < 0.9:
            other = Project(Select(node, self.data(node.schema)), (instant, *others))
            node = Difference(Project(node, (instant, *others)), other)
        if rng.random() < 0.15:
            node = Project(node, tuple(n for n in node.schema.names if n == instant or rng.random() < 0.5))
        if rng.random() < 0.1 and instant in node.schema.temporal:
            node = self.looked_up(node, instant) if any(n.endswith(".k") for n in node.schema.names) else node
        return node

    def others(self, node: Node, instant: str) -> tuple[str, ...]:
        """What the result has beside its instant."""
        return tuple(name for name in node.schema.names if name != instant and self.rng.random() < 0.25)

    def function(self) -> Function:
        return self.rng.choice(_FUNCTIONS)

    def order(self, schema: Schema) -> Term:
        """What first and last go by."""
        return self.value(schema)

    def grouped(self, node: Node, keys: Sequence[str]) -> Node:
        rng = self.rng
        aggregates = []
        for _ in range(rng.randint(1, 3)):
            self.number += 1
            function = self.function()
            argument = None if function is Function.COUNT and rng.random() < 0.5 else self.value(node.schema)
            by = self.order(node.schema) if function in (Function.FIRST, Function.LAST) else None
            share = 0.6 if function is Function.APPROX_QUANTILE else None
            aggregates.append(Aggregate(f"{self.number}.v", function, argument, by, share))
        return Group(node, tuple(keys), tuple(aggregates))


class _Foldable(_Maker):
    """Queries with hardly a term that can fail, an instant that is read, or an aggregate without partial results."""

    def __init__(self, rng: random.Random, beside: random.Random) -> None:
        super().__init__(rng)
        self.beside = beside

    def scan(self) -> Node:
        """Sometimes rows of two streams together, or those of one that the other does not have."""
        node = super().scan()
        if self.beside.random() > 0.12:
            return node
        names = Scan(self.streams[0]).schema.names
        other = Rename(Scan(self.beside.choice(self.streams)), tuple((name, f"{self.number}.{name}") for name in names))
        return Union((node, other)) if self.beside.random() < 0.8 else Difference(node, other)

    def grouped(self, node: Node, keys: Sequence[str]) -> Node:
        """Sometimes of the rows and some of them once more, or of those that are not among these."""
        if self.beside.random() < 0.15:
            again = Select(node, self.some(node.schema))
            node = Union((node, again)) if self.beside.random() < 0.7 else Difference(node, again)
        return super().grouped(node, keys)

    def some(self, schema: Schema) -> Term:
        values = [name for name in schema.names if name.endswith((".v", ".k"))]
        return call("le", Attr(self.beside.choice(values)), Lit(1, BIGINT))

    def rows(self, stream: StreamDef) -> tuple[Row, ...]:
        return (*super().rows(stream), *super().rows(stream))

    def further(self, both: Schema, right: Schema, left: Schema, driver: str) -> Term:
        if self.rng.random() < 0.5:
            return self.data(both)
        return super().further(both, right, left, driver)

    def data(self, schema: Schema) -> Term:
        if self.rng.random() < 0.05:
            return super().data(schema)
        values = [name for name in schema.names if name.endswith((".v", ".k"))]
        first, other = (Attr(self.rng.choice(values)) for _ in range(2))
        return self.rng.choice(
            (
                call("le", first, Lit(1, BIGINT)),
                call("ne", first, other),
                call("le", other, first),
                call("is_null", first),
            )
        )

    def value(self, schema: Schema) -> Term:
        if self.rng.random() < 0.05:
            return super().value(schema)
        first = Attr(self.rng.choice([name for name in schema.names if name.endswith((".v", ".k"))]))
        return call("coalesce", first, Lit(7, BIGINT)) if self.rng.random() < 0.2 else first

    def order(self, schema: Schema) -> Term:
        if self.rng.random() < 0.6 and schema.temporal:
            return Attr(self.rng.choice(schema.temporal))
        return self.value(schema)

    def others(self, node: Node, instant: str) -> tuple[str, ...]:
        found = super().others(node, instant)
        if self.rng.random() < 0.1:
            return found
        driving = instant.split(".")[0]
        return tuple(name for name in found if name.startswith(f"{driving}.") or not node.schema[name].temporal)

    def function(self) -> Function:
        if self.beside.random() < 0.12:
            return self.beside.choice((Function.APPROX_DISTINCT, Function.APPROX_QUANTILE))
        return self.rng.choice(
            _FUNCTIONS if self.rng.random() < 0.1 else [one for one in _FUNCTIONS if one is not Function.MEDIAN]
        )


def _one(rng: random.Random, schema: Schema) -> str:
    return rng.choice(schema.temporal)


def _plus(name: str, by: int) -> Term:
    return call("add", Attr(name), _ticks(by))


def _ticks(value: int) -> Lit:
    return Lit(value, BIGINT)
