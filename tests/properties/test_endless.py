"""A recursion that never ends is refused, whatever it reads; one that ends is not, however long it is (rule R20)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.properties.families import FAMILIES, seeds
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Distinct, Imbed, Join, JoinKind, Node, Project, Rename, Scan, occurrences
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction, rename_attributes
from tidegate.algebra.types import BIGINT
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.program import Program

#: Steps of their own that tests allow. Ways of ending by a counter stay below.
ALLOWED = 12
SCHEMA = Schema((Attribute("t", BIGINT, nullable=False, temporal=True), Attribute("k", BIGINT)))
INPUTS = (StreamDef("A", SCHEMA, progress=("t",)), StreamDef("B", SCHEMA, progress=("t",)))
TABLE = StreamDef("Z", Schema((Attribute("k", BIGINT),)), static=True)
LATEST = 60


def ticks(value: int) -> Lit:
    return Lit(value, BIGINT)


def named(stream: StreamDef, as_: str) -> Node:
    return Rename(Scan(stream), tuple((name, f"{as_}.{name}") for name in stream.schema))


class Endless:
    """A random program of one or two recursive streams, each of whose rows leads to a later one, for ever or until a
    row of an input; `ends` says which. Joins and anti-joins with inputs, kept for ever or not, and tables come on
    top.
    """

    def __init__(self, seed: int, *, ends: bool) -> None:
        self.rng = random.Random(f"endless {seed} {ends}")
        self.ends = ends
        self.streams = [StreamDef(name, SCHEMA, progress=("t",)) for name in ("W", "V")[: self.rng.choice((1, 1, 2))]]
        self.rows = {
            stream.name: [(self.rng.randint(0, LATEST), self.rng.randint(0, 1)) for _ in range(self.rng.randint(1, 5))]
            for stream in INPUTS
        }
        self.rows["A"] += [(0, 0), (LATEST, 0)]
        if ends:  # for more steps than are allowed, nothing is left to wait for but rows of the other input
            later = self.rng.choice((0, LATEST + ALLOWED))
            self.rows["B"] = [(t + later, k) for t, k in self.rows["B"]]
            self.rows["B"].append((LATEST + 3 * ALLOWED, 9))
        self.table = [(0,), (1,)]

    def program(self) -> ProgramDef:
        first = self.streams[0]
        queries = [Query("begin", first.name, Scan(INPUTS[0]), first)]
        for number, stream in enumerate(self.streams):
            read = self.streams[number - 1]
            queries.append(Query(f"step{number}", stream.name, self.step(read), stream))
        return ProgramDef(tuple(queries))

    def step(self, read: StreamDef) -> Node:
        node = named(read, "w")
        w, k = Attr("w.t"), Attr("w.k")
        wider: list[Callable[[Node], Node]] = [self.seen, self.not_near, self.tabled, self.beside]
        for widen in self.rng.sample(wider, self.rng.randint(0, 3)):
            node = widen(node)
        if self.ends:
            node = self.until(node)
        node = Imbed(node, "t", call("add", w, ticks(self.rng.choice((1, 1, 2, 5)))))
        node = Imbed(node, "k", k)
        return Distinct(Project(node, ("t", "k")))

    def seen(self, node: Node) -> Node:
        """The first row of an input has come by then: true for ever from there on."""
        side = named(INPUTS[0], "s")
        before = call("le", call("add", Attr("s.t"), ticks(self.rng.choice((0, 0, 3)))), Attr("w.t"))
        parts: list[Term] = [before, call("le", Attr("s.k"), ticks(1))]
        parts = parts[: self.rng.randint(1, 2)]
        kind: JoinKind = self.rng.choice(("semi", "semi", "inner"))
        return Join(node, Rename(side, tuple((n, f"{n}{kind}") for n in side.schema)), self.renamed(parts, kind), kind)

    def renamed(self, parts: list[Term], kind: str) -> Term:
        names = {f"s.{n}": f"s.{n}{kind}" for n in SCHEMA}
        return conjunction([rename_attributes(part, names) for part in parts])

    def not_near(self, node: Node) -> Node:
        """No row of an input with an impossible number lies within some ticks."""
        near: list[Term] = [
            call("le", Attr("b.t"), call("add", Attr("w.t"), ticks(2))),
            call("le", Attr("w.t"), call("add", Attr("b.t"), ticks(4))),
            call("gt", Attr("b.k"), ticks(5)),
        ]
        return Join(node, named(INPUTS[1], "b"), conjunction(near), "anti")

    def tabled(self, node: Node) -> Node:
        return Join(node, named(TABLE, "z"), call("eq", Attr("z.k"), Attr("w.k")), self.rng.choice(("semi", "inner")))

    def beside(self, node: Node) -> Node:
        """Rows of an input with the instants of all later rows of the recursion."""
        side = named(INPUTS[1], "d")
        after = conjunction([call("lt", Attr("d.t"), Attr("w.t")), call("gt", Attr("d.k"), ticks(5))])
        return Join(node, side, after, "left")

    def until(self, node: Node) -> Node:
        """Ends: at a row of an input that lies later, at the last of its rows, or after it."""
        u, w = Attr("u.t"), Attr("w.t")
        match self.rng.choice(("stop", "last", "follow", "near")):
            case "stop":
                return Join(node, named(INPUTS[1], "u"), call("le", u, w), "anti")
            case "last":
                large = call("gt", call("sub", Attr("u.k"), Attr("w.k")), ticks(5))
                return Join(node, named(INPUTS[1], "u"), conjunction([call("le", u, w), large]), "anti")
            case "follow":
                later = [call("gt", u, w), call("le", u, call("add", w, ticks(40)))]
            case _:
                later = [call("gt", u, call("sub", w, ticks(3))), call("le", u, call("add", w, ticks(20)))]
        return Join(node, named(INPUTS[1], "u"), conjunction([*later]), "semi")


@pytest.fixture
def strata(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the strata, and fails a batch that has far more than any that should be refused."""
    counted = [0]
    evaluate = EmbeddedExecutor.stratum

    def stratum(self: EmbeddedExecutor, *args: object) -> object:
        counted[0] += 1
        assert counted[0] <= 20 * (LATEST + ALLOWED), "a recursion that goes on and on"
        return evaluate(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddedExecutor, "stratum", stratum)
    monkeypatch.setattr("tidegate.runtime.batch.increments.ENDLESS", ALLOWED)
    return counted


def outcome(made: Endless, *, at_once: bool) -> str:
    program = Program(made.program())
    read = {stream.name for query in program.definition.queries for stream in occurrences(query.node)}
    with testing.drive(program, statics={"Z": made.table} if "Z" in read else {}) as run:
        try:
            for stream in INPUTS:
                if stream.name in read:
                    run.add(stream.name, made.rows[stream.name])
            if not at_once:
                run.step()
            run.finish()
            run.step()
        except QueryError as error:
            return error.code
    return "ends"


@pytest.mark.parametrize("shard", shards(4))
def test_endless_recursions_are_refused(strata: list[int], shard: int) -> None:
    for seed in seeds(40)[shard::4]:
        strata[0] = 0
        made = Endless(seed, ends=False)
        assert outcome(made, at_once=seed % 4 < 2) == "TG415", f"{seed}: {made.program()}"


@pytest.mark.parametrize("shard", shards(4))
def test_recursions_that_end_are_not_refused(strata: list[int], shard: int) -> None:
    longest = 0
    for seed in seeds(40)[shard::4]:
        strata[0] = 0
        made = Endless(seed, ends=True)
        assert outcome(made, at_once=seed % 4 < 2) == "ends", f"{seed}: {made.program()}"
        longest = max(longest, strata[0])
    assert longest > 3 * ALLOWED


@pytest.mark.parametrize("shard", shards(2))
def test_random_recursions_over_finite_inputs_are_not_refused(strata: list[int], shard: int) -> None:
    for seed in seeds(30)[shard::2]:
        strata[0] = -(10**9)
        failure = FAMILIES["recursive-embedded"].run(seed)
        assert failure is None, failure
