"""Random queries that look back at results of a part of themselves, for cuts: rows of the part fold, and those that it
is made of would not.
"""

from __future__ import annotations

import random

from tests.strategies.folds import _Foldable, _plus
from tests.strategies.programs import Case
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Join, JoinKind, Node, Project
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Term, call, conjunction


def random_parts_case(seed: int) -> Case:
    """A query of three to five occurrences, and rows by name. It need not be valid, nor cut."""
    maker = _Parted(random.Random(f"parts {seed}"), random.Random(f"beside {seed}"))
    node = maker.query()
    rows: dict[str, tuple[dict[str, object], ...]] = {
        one.name: tuple(dict(zip(one.schema.names, row, strict=True)) for row in maker.rows(one))
        for one in maker.streams
    }
    return Case(seed, ProgramDef((Query("R", "R", node),)), rows)


class _Parted(_Foldable):
    def query(self) -> Node:
        rng = self.rng
        driver = self.scan()
        own = self.number
        part, instant = self.part()
        kind: JoinKind = rng.choice(("inner", "inner", "left", "semi", "anti"))
        shifted = _plus(f"{own}.t", rng.choice((0, 0, 1, -2)))
        looked_up = call(rng.choice(("le", "lt")), Attr(instant), shifted)
        return self.finished(Join(driver, part, self.with_keys([looked_up], part.schema, own), kind), f"{own}.t")

    def part(self) -> tuple[Node, str]:
        """Rows of two streams that lie near each other, or what is counted of them, with an instant."""
        rng = self.rng
        left = self.scan()
        own = self.number
        right = self.scan()
        other = self.number
        near: list[Term] = [
            call(rng.choice(("le", "lt")), Attr(f"{own}.t"), _plus(f"{other}.t", rng.choice((0, 1, 2)))),
            call("le", Attr(f"{other}.t"), _plus(f"{own}.t", rng.choice((0, 1, 3)))),
        ]
        kind: JoinKind = rng.choice(("anti", "anti", "inner", "left", "semi"))
        node: Node = Join(left, right, self.with_keys(near, right.schema, own), kind)
        if rng.random() < 0.4:
            self.number += 1
            function = rng.choice((Function.COUNT, Function.MIN, Function.MAX))
            keys = (f"{own}.t", f"{own}.k")
            node = Group(node, keys, (Aggregate(f"{self.number}.v", function, self.value(node.schema)),))
        elif rng.random() < 0.5:
            node = Project(node, (f"{own}.t", f"{own}.k", f"{own}.v"))
        return node, f"{own}.t"

    def with_keys(self, parts: list[Term], right: Schema, own: int) -> Term:
        keys = [name for name in right.names if name.endswith(".k")]
        if keys and self.rng.random() < 0.7:
            parts = [call("eq", Attr(f"{own}.k"), Attr(keys[0])), *parts]
        return conjunction(parts)
