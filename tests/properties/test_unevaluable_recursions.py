"""Rows of recursions for which a term has no value: they leave as the reference says, each once, and all else goes on.

Random programs whose streams read earlier rows of their own by joins, negation and aggregation, with terms that fail.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.properties.families import seeds
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.nodes import Group, Node
from tidegate.algebra.row_wise import is_row_wise
from tidegate.algebra.semantics import Row, bags_equal, evaluate_leniently, evaluate_program, unevaluable
from tidegate.runtime import rows as small_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIG = 1 << 62
#: Instants of rows are less. Recursions end there.
END = 9
#: A case with more rows in a result is left out: what a case is about takes few.
MOST = 200
E = tg.stream("E", "k bigint, x bigint, t bigint", progress="t")

Counts = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Case:
    program: tg.Program
    rows: Sequence[Row]

    def meant(self) -> tuple[dict[str, list[Row]], Counts]:
        """The results, and how many rows and pairs leave each query that several rows decide."""
        queries = self.program.definition.queries
        known = evaluate_program(self.program.definition, {"E": self.rows}, leniently=True)
        left: Counts = Counter()
        nodes = [query.node for query in queries]
        relations = {**known, "E": [row for row in self.rows if not unevaluable(nodes, "E", row, {})]}
        for query in queries:

            def note(node: Node, _row: Row, name: str = query.name) -> None:
                alone = is_row_wise(node.input if isinstance(node, Group) else node)
                left.update([] if alone else [(name, "unevaluable")])

            evaluate_leniently(query.node, relations, note)
        return known, left


class Maker:
    """Random recursive programs over E, of one stream W or of two, W and V, that read each other."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"unevaluable recursions {seed}")

    def case(self) -> Case:
        rng = self.rng
        self.streams = [tg.result(name, "t bigint, k bigint", progress="t") for name in "WV"[: rng.choice((1, 1, 2))]]
        begun = rng.choice((E.k, E.x))
        queries = [tg.query(self.streams[0], E.where(E.k != 3).select(t=E.t, k=begun))]
        for number, stream in enumerate(self.streams):
            queries += [self.step(stream, self.streams[number - 1]) for _ in range(rng.choice((1, 2)))]
        w = self.streams[0]
        others: dict[str, Relation] = {"Plain": E.group_by(end=tg.tumbling(E.t, 3)).agg(n=tg.count())}
        if rng.random() < 0.5:
            others["Reader"] = w.select(w.t, q=tg.lit(6).div(w.k))
        rows = [
            (rng.choice((0, 1, 2, 3, None)), self.number(), rng.randrange(END)) for _ in range(rng.choice((3, 5, 8)))
        ]
        return Case(tg.program(*queries, **others), rows)

    def number(self) -> int | None:
        return self.rng.choice((0, 0, 1, 2, -1, BIG, BIG, BIG, -BIG, None))

    def step(self, stream: Any, other: Any) -> Any:
        made = self.rng.choice(self.steps())(self.rng.choice((stream, other)).as_("w"))
        return tg.query(stream, made.distinct() if self.rng.random() < 0.8 else made)

    def steps(self) -> Sequence[Callable[[Relation], Relation]]:
        """The ways to read a recursion, the usual ones twice."""
        usual = self.met, self.absent, self.gathered
        return (*usual, *usual, self.counted, self.pairs)

    def counted(self, w: Relation) -> Relation:
        """Each row leads to a later one by itself."""
        going = w.where(w.t < END) if self.rng.random() < 0.5 else w.where(w.t < END, self.hard(w.k, w.k))
        return going.select(t=w.t + self.rng.choice((1, 2)), k=self.term(w.k, w.k))

    def met(self, w: Relation) -> Relation:
        """A row of E that follows one of the recursion."""
        e = E.as_("e")
        return w.join(e, *self.near(w, e)).select(t=e.t, k=self.term(w.k, e.x))

    def absent(self, w: Relation) -> Relation:
        """A row of E that follows none of the recursion, or for which that is not known."""
        e = E.as_("e")
        match self.rng.choice(("anti", "anti", "semi", "left")):
            case "anti":
                return e.anti_join(w, *self.near(w, e)).select(t=e.t, k=self.term(e.x, e.k))
            case "semi":
                return e.semi_join(w, *self.near(w, e)).select(t=e.t, k=self.term(e.x, e.k))
            case _:
                return e.left_join(w, *self.near(w, e)).select(t=e.t, k=self.term(tg.coalesce(w.k, e.k), e.x))

    def gathered(self, w: Relation) -> Relation:
        """An instant of E with an aggregate of the rows before it."""
        e, rng = E.as_("e"), self.rng
        grouped = w.join(e, *self.near(w, e)).group_by(t=e.t)
        argument = rng.choice((w.k, self.term(w.k, e.x)))
        made = grouped.agg(v=rng.choice((tg.sum, tg.sum, tg.max, tg.count))(argument))
        return made.select("t", k=self.term(made.v, made.v))

    def pairs(self, w: Relation) -> Relation:
        """Two rows of a recursion lead to one after both."""
        v = self.rng.choice(self.streams).as_("v")
        pairs = w.join(v, w.t <= v.t, v.t <= w.t + 1, w.t < END, v.t < END, self.hard(w.k, v.k))
        return pairs.select(t=tg.max(w.t, v.t) + 1, k=self.term(w.k, v.k)).distinct()

    def near(self, w: Relation, e: Relation) -> list[Any]:
        rng = self.rng
        parts = [w.t < e.t, e.t <= w.t + rng.choice((1, 2, 4))]
        match rng.randrange(4):
            case 0:
                parts.append(self.hard(w.k, e.k))
            case 1:  # what bounds the partners stands beside what fails
                parts = [(self.hard(w.k, e.k) & (w.t < e.t)) | (w.t < e.t - 1), e.t <= w.t + 3]
            case _:
                pass
        rng.shuffle(parts)
        return parts

    def hard(self, one: Any, other: Any) -> Any:
        return self.term(one, other) > self.rng.choice((0, 1))

    def term(self, one: Any, other: Any) -> Expression:
        made: Expression
        match self.rng.randrange(6):
            case 0:
                made = one.div(other)
            case 1:
                made = tg.lit(2).div(one) - 1
            case 2:
                made = one + other
            case 3:
                made = one * other
            case 4:
                made = tg.coalesce(one, tg.lit(0))
            case _:
                made = one.try_add(other)
        return made


def cases(numbers: Sequence[int]) -> list[tuple[int, Case, dict[str, list[Row]], Counts]]:
    """Those of the seeds that are no larger than needed, with what they mean."""
    found = []
    for seed in numbers:
        case = Maker(seed).case()
        with suppress(tg.QueryError):  # rows multiply
            meant, left = case.meant()
            if max(map(len, meant.values())) <= MOST:
                found.append((seed, case, meant, left))
    return found


def run_in_batches(
    case: Case, rng: random.Random, drive: Callable[[tg.Program], testing.Drive]
) -> tuple[dict[str, list[Row]], Counts]:
    """Results, and what was counted, with restarts."""
    told: Counts = Counter()
    with drive(case.program) as run:
        cuts = sorted({*rng.sample(range(1, END), rng.choice((0, 1, 3))), END})
        for low, high in zip([0, *cuts], cuts, strict=False):
            if part := [row for row in case.rows if low <= int(str(row[-1])) < high]:
                run.add("E", part)
            if high == END:
                run.finish()
            else:
                run.advance("E", t=high - 1)
            run.step()
            if rng.random() < 0.4:
                run.restart()
        for report in run.reports:
            for counts in report.counts.values():
                assert counts.rows_in == counts.accepted + sum(counts.rejected.values())
            told.update({(q, reason): n for q, some in report.set_aside.items() for reason, n in some.items()})
        names = case.program.definition.result_names
        return {name: [tuple(row.values()) for row in run.results(name)] for name in names}, told


def check(
    meant: Mapping[str, list[Row]], left: Counts, found: Mapping[str, list[Row]], told: Counts, seed: int
) -> None:
    for name, wanted in meant.items():
        assert bags_equal(found[name], wanted), (seed, name)
    of_queries = {key: n for key, n in told.items() if "#" not in key[0] and key[1] == "unevaluable"}
    assert of_queries == left, seed


@pytest.mark.parametrize("shard", shards(2))
def test_a_recursion_sets_aside_what_the_reference_says_whatever_the_batching(
    shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: Counter[str] = Counter()
    for seed, case, meant, left in cases(seeds(80)[shard::2]):
        rng = random.Random(seed)
        monkeypatch.setattr(small_rows, "MOST", rng.choice((-1, small_rows.MOST)))
        found, told = run_in_batches(case, rng, testing.drive)
        check(meant, left, found, told, seed)
        again, told_again = run_in_batches(case, rng, testing.drive)
        check(meant, left, again, told_again, seed)
        assert told == told_again, seed
        met += Counter({reason: bool(n) for (_, reason), n in told.items()}) + Counter(left=bool(left))
        met["as stored"] += any("#" in name for name, _ in told)
        met["results"] += any(meant.values())
    assert met["left"] > 10, met
    assert met["as stored"] > 10, met
    assert met["results"] > 20, met


@pytest.mark.spark
@pytest.mark.parametrize(
    ("driver_bytes", "first", "count"),
    [(None, 0, 3), (0, 100, 1), *(pytest.param(0, n, 3, marks=pytest.mark.long) for n in (100, 200, 300))],
)
def test_a_recursion_sets_aside_on_spark_what_the_reference_says(
    spark: SparkSession, driver_bytes: int | None, first: int, count: int
) -> None:
    some = [case for case in cases(range(first, first + 40)) if case[3]][:count]
    for seed, case, meant, left in some:
        found, told = run_in_batches(
            case, random.Random(seed), lambda program: testing.drive(program, spark=spark, driver_bytes=driver_bytes)
        )
        check(meant, left, found, told, seed)
