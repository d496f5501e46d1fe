"""Random recursive programs: streams that step on from, join, negate and aggregate earlier rows of their own.

Every recursion ends over finite inputs: a step counts up to a small number, or is tied to a row of an input. Most steps
advance by a tick or more; some stand still or go back, and are to be refused.
"""

from __future__ import annotations

import random

from tests.strategies.programs import Case, Options, _Builder, _Relation
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Distinct, Group, Imbed, Join, JoinKind, Node, Project, Rename, Select
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import BIGINT

OPTIONS = Options(occurrences=(1, 1, 2), statics=0.1, rows={1: 8, 2: 7, 3: 6, 4: 5})
#: A counting step goes on while the counter is less.
MOST = 3


def random_recursive_case(seed: int) -> Case:
    """The case of a seed. Not every program is valid: ask the analysis."""
    builder = _Recursive(random.Random(f"recursive {seed}"), OPTIONS)
    program = builder.program()
    return Case(seed, program, builder.data(program))


class _Recursive(_Builder):
    inputs: list[StreamDef]
    results: list[StreamDef]

    def program(self) -> ProgramDef:
        self.inputs = [self.stream(name) for name in "AB"[: self.rng.choice((1, 2, 2))]]
        self.results = [self.recursive(name) for name in "WV"[: self.rng.choice((1, 1, 2))]]
        queries: list[Query] = []
        for number, stream in enumerate(self.results):
            parts = [self.beginning(stream)] if number == 0 or self.chance(0.5) else []
            parts += [self.step(stream, self.results[number - 1]) for _ in range(self.rng.choice((1, 1, 2)))]
            self.rng.shuffle(parts)
            queries += [Query(f"{stream.name}_{i}", stream.name, part, stream) for i, part in enumerate(parts)]
        if self.chance(0.25):
            queries += self.queries("R", [*self.inputs, self.results[0], self.results[0]], [], last=True)
        return ProgramDef(tuple(queries))

    def recursive(self, name: str) -> StreamDef:
        instants = ["t"] + (["u"] if self.chance(0.3) else [])
        progress = tuple(a for a in instants if self.chance(0.7)) or ("t",)
        schema = Schema(
            (*(Attribute(a, self.time, nullable=False, temporal=True) for a in instants), Attribute("k", BIGINT))
        )
        relations: Term = TRUE
        if len(instants) > 1 and self.chance(0.6):
            relations = call("le", Attr("t"), Attr("u"))
            if self.chance(0.6):
                relations = conjunction([relations, call("le", Attr("u"), self.plus(Attr("t"), 4 * self.unit))])
        return StreamDef(name, schema, relations, progress)

    # -- queries ------------------------------------------------------------------------------------------------------

    def beginning(self, stream: StreamDef) -> Node:
        rows = self.input()
        return self.shaped(
            rows, stream, self.plus(self.of(rows), self.rng.choice((0, 0, 1)) * self.unit), self.number(rows)
        )

    def step(self, stream: StreamDef, other: StreamDef) -> Node:
        """A query that reads the stream, or the other one of its component, in one of several ways."""
        w = self.earlier(self.rng.choice((stream, other, other)))
        style = self.rng.random()
        if style < 0.2:
            return self.counted(w, stream)
        if style < 0.4:
            return self.met(w, stream, "inner")
        if style < 0.6:
            return self.absent(w, stream)
        if style < 0.75:
            return self.gathered(w, stream)
        if style < 0.85:
            return self.windows(w, stream)
        if style < 0.93:
            return self.stopped(w, self.earlier(self.rng.choice((stream, other))), stream)
        return self.pairs(w, self.earlier(self.rng.choice((stream, other))), stream)

    def input(self) -> _Relation:
        while True:
            rows = self.unary(self.source(self.inputs), 0.15)
            if rows.schema.temporal:
                return rows

    def earlier(self, stream: StreamDef) -> _Relation:
        """Rows of a recursive stream, now and then without duplicates, or with themselves."""
        w = self.source([stream])
        if self.chance(0.15):
            return _Relation(Distinct(w.node), w.good)
        return w

    def counted(self, w: _Relation, stream: StreamDef) -> Node:
        """Each row leads to a later one, a few times."""
        return self.shaped(self.guarded(w, self.key(w)), stream, self.later(w), self.next(self.key(w)))

    def met(self, w: _Relation, stream: StreamDef, kind: JoinKind) -> Node:
        """An input's row that follows an earlier one."""
        s = self.input()
        if self.chance(0.3):
            joined = Join(s.node, w.node, self.before(w, s), "semi")
            return self.shaped(_Relation(joined, s.good), stream, self.at(s), self.number(s))
        both = Join(*((w.node, s.node) if self.chance(0.5) else (s.node, w.node)), self.before(w, s), kind)
        return self.shaped(
            _Relation(both, s.good), stream, self.at(s), Attr(self.key(w)) if self.chance(0.5) else self.number(s)
        )

    def absent(self, w: _Relation, stream: StreamDef) -> Node:
        """An input's row before which there was none of the recursion's."""
        s = self.input()
        kind: JoinKind = "left" if self.chance(0.25) else "anti"
        node = Join(s.node, w.node, self.before(w, s), kind)
        value = Attr(self.key(w)) if kind == "left" and self.chance(0.7) else self.number(s)
        return self.shaped(_Relation(node, s.good), stream, self.at(s), value)

    def gathered(self, w: _Relation, stream: StreamDef) -> Node:
        """An input's instants with an aggregate over the rows before."""
        s = self.input()
        node: Node = Join(s.node, w.node, self.before(w, s), self.rng.choice(("inner", "left", "left")))
        at = self.of(s)
        made = self.fresh("g")
        argument = Attr(self.key(w))
        function = self.rng.choice((Function.COUNT, Function.SUM, Function.MIN, Function.MAX, Function.COUNT_DISTINCT))
        keys = (at.name,)
        group: Node = Group(node, keys, (Aggregate(made, function, argument),))
        if self.chance(0.4):
            test = call(self.rng.choice(("le", "eq", "gt")), Attr(made), Lit(self.rng.choice((0, 1, 2)), BIGINT))
            group = Select(group, test)
        value: Term = Attr(made)
        if self.chance(0.5):
            value = call("least", value, Lit(2, BIGINT))
        return self.shaped(
            _Relation(group, keys), stream, self.plus(Attr(keys[0]), self.rng.choice((0, 0, 1)) * self.unit), value
        )

    def windows(self, w: _Relation, stream: StreamDef) -> Node:
        """The rows of a window lead to one at its end, a few times."""
        unit = Lit(self.rng.choice(self.units), self.shift_type)
        end, made = self.fresh("i"), self.fresh("g")
        over = call("add", call("floor", self.of(w), unit), unit)
        if self.chance(0.3):
            over = call("ceil", self.plus(self.of(w), self.unit), unit)
        function = self.rng.choice((Function.MIN, Function.MAX))
        node = Group(Imbed(w.node, end, over), (end,), (Aggregate(made, function, Attr(self.key(w))),))
        guarded = self.guarded(_Relation(node, (end,)), made)
        return self.shaped(guarded, stream, Attr(end), self.next(made))

    def stopped(self, w: _Relation, v: _Relation, stream: StreamDef) -> Node:
        """A row leads to a later one unless another is near it."""
        condition = self.near(w, v)
        kind: JoinKind = self.rng.choice(("anti", "anti", "semi", "left"))
        if self.chance(0.3):
            s = self.input()
            condition, v = self.near(w, s), s
        rows = self.guarded(_Relation(Join(w.node, v.node, condition, kind), w.good), self.key(w))
        made = self.shaped(rows, stream, self.later(w), self.next(self.key(w)))
        return Distinct(made) if kind == "left" else made

    def pairs(self, w: _Relation, v: _Relation, stream: StreamDef) -> Node:
        """Two rows near each other lead to one after both, without duplicates: their number would explode."""
        rows = _Relation(Join(w.node, v.node, self.near(w, v), "inner"), w.good)
        rows = self.guarded(self.guarded(rows, self.key(w)), self.key(v))
        at = self.plus(call("greatest", self.of(w), self.of(v)), self.rng.choice((0, 1, 1, 2)) * self.unit)
        counted = call("greatest", Attr(self.key(w)), Attr(self.key(v)))
        return Distinct(self.shaped(rows, stream, at, call("add", counted, Lit(1, BIGINT))))

    # -- parts --------------------------------------------------------------------------------------------------------

    def of(self, relation: _Relation) -> Attr:
        """One of its instants, one that progresses if there is one."""
        return Attr(self.rng.choice(relation.good or relation.schema.temporal))

    def key(self, relation: _Relation) -> str:
        """The number of a recursive stream's row."""
        return next(name for name in relation.schema if name.startswith("k_"))

    def number(self, relation: _Relation) -> Term:
        names = [a.name for a in relation.schema.attributes if a.type == BIGINT and not a.temporal]
        return Attr(self.rng.choice(names)) if names and self.chance(0.7) else Lit(self.rng.choice((0, 0, 1)), BIGINT)

    def next(self, counter: str) -> Term:
        return call("add", Attr(counter), Lit(1, BIGINT))

    def guarded(self, relation: _Relation, counter: str) -> _Relation:
        below = call("lt", Attr(counter), Lit(self.rng.choice((2, MOST)), BIGINT))
        return _Relation(Select(relation.node, below), relation.good)

    def later(self, w: _Relation) -> Term:
        """An instant after the row's, mostly."""
        first: Term = self.plus(self.of(w), self.ahead())
        if self.chance(0.15):
            return call(self.rng.choice(("least", "greatest")), first, self.plus(self.of(w), self.ahead()))
        return first

    def at(self, s: _Relation) -> Term:
        return self.plus(self.of(s), self.rng.choice((0, 0, 0, 1)) * self.unit)

    def ahead(self) -> int:
        return self.rng.choice((1, 1, 2, 3, 5, 0, -1) if self.chance(0.2) else (1, 1, 2, 3, 4)) * self.unit

    def before(self, w: _Relation, s: _Relation) -> Term:
        """The recursion's row lies before the input's, and not too long."""
        x, y = self.of(w), self.of(s)
        parts: list[Term] = [
            self.rng.choice(
                (call("lt", x, y), call("le", self.plus(x, self.unit), y), call("le", x, self.plus(y, -2 * self.unit)))
            )
        ]
        if self.chance(0.06):
            parts = [call("le", x, y)]
        if self.chance(0.9):
            parts.append(call("le", y, self.plus(x, self.rng.choice((2, 3, 5, 8)) * self.unit)))
        if self.chance(0.3):
            parts.append(call("eq", Attr(self.key(w)), self.number(s)))
        self.rng.shuffle(parts)
        return conjunction(parts)

    def near(self, w: _Relation, v: _Relation) -> Term:
        x, y = self.of(w), self.of(v)
        ahead = self.rng.choice((0, 0, 0, -1, 1)) * self.unit
        parts: list[Term] = [
            call("le", y, self.plus(x, ahead)),
            call("le", x, self.plus(y, self.rng.choice((1, 2, 4)) * self.unit)),
        ]
        if self.chance(0.3):
            parts.append(call("ne", Attr(self.key(w)), self.number(v)))
        return conjunction(parts)

    def shaped(self, rows: _Relation, stream: StreamDef, at: Term, number: Term) -> Node:
        """The rows with the recursive stream's attributes; those that break its relations are left out."""
        node = rows.node
        names = {a: self.fresh("x") for a in stream.schema}
        node = Imbed(node, names["t"], at)
        if "u" in stream.schema:
            style = self.rng.random()
            u: Term = self.plus(Attr(names["t"]), self.rng.choice((0, 1, 2, 3)) * self.unit)
            if style < 0.4:
                u = self.plus(
                    Attr(self.rng.choice(rows.good or rows.schema.temporal)), self.rng.choice((0, 1, 3)) * self.unit
                )
            node = Imbed(node, names["u"], u)
        node = Imbed(node, names["k"], number)
        made: Node = Project(node, tuple(names.values()))
        if self.chance(0.1):
            made = Distinct(made)
        pairs = tuple((new, a) for a, new in names.items())
        made = Rename(made, pairs)
        return made if stream.relations == TRUE else Select(made, stream.relations)
