"""Random programs over rows enough to cross the sizes at which the runtime takes another way, against DuckDB.

A seed gives one query over two streams of some 20,000 to 130,000 rows, in several batches of very different size, so
that increments meet both few and many rows. Values and keys are made by columns, results are compared as sorted tables.
Windows are so narrow that a row has few partners, keys so many or so few that joins list pairs, or search them. One of
eight cases is a pattern, against a search in numpy (`large_patterns.py`).
"""

# ruff: noqa: S608  # the text comes from trees and names that are generated here
from __future__ import annotations

import itertools
import random
import traceback
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import polars as pl

import tidegate as tg
from tests.properties.drive import Tally
from tests.properties.test_static_programs_sql import Sql, name
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node, occurrences
from tidegate.algebra.printing.plans import node_text
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions

#: Around the sizes at which kernels, joins, blocks and sweeps begin.
SIZES = (19_999, 20_000, 32_768, 40_000, 65_535, 65_536, 70_001, 131_072)
KEYS = (3, 300, 5_000, 100_000)
SPANS = (1_000, 50_000, 3_000_000)
#: Partners of a row that a join leaves on average, at most.
PARTNERS = 1.5
#: Seeds of patterns, by what is left when they are divided by 8.
PATTERN = 7
DDL = "k bigint, t bigint, e bigint, x bigint, v double, s string, b boolean"


@dataclass(frozen=True, slots=True)
class Large:
    """A query, and the batches of its two streams with the time up to which each is complete."""

    program: tg.Program
    batches: list[tuple[dict[str, pl.DataFrame], int]]
    garbage: GarbageCollection
    told: str
    #: What is to be found where DuckDB can not say it.
    expected: pl.DataFrame | None = None

    @property
    def node(self) -> Node:
        (query,) = self.program.definition.queries
        return query.node

    def whole(self, stream: str) -> pl.DataFrame:
        return pl.concat([rows[stream] for rows, _ in self.batches])


def random_large(seed: int) -> Large:
    """One of eight has a pattern."""
    if seed % 8 == PATTERN:
        from tests.properties.large_patterns import random_pattern

        return random_pattern(seed)
    rng = random.Random(f"large {seed}")
    keys, span = rng.choice(KEYS), rng.choice(SPANS)
    sizes = [rng.choice(SIZES if keys > 100 else SIZES[:4]) for _ in "AB"]  # DuckDB looks at all pairs of a key
    # A row has rows of its key within a window: `size * window / (span * keys)` of them.
    window = max(1, min(span // 10, int(PARTNERS * span * keys / max(sizes))))
    alone = max(1, int(PARTNERS * span / max(sizes)))
    numpy = np.random.default_rng(rng.randrange(1 << 30))
    whole = {stream: _rows(numpy, size, keys, span, window) for stream, size in zip("AB", sizes, strict=True)}
    cuts = sorted({0, span, *(_cut(rng, span) for _ in range(rng.choice((0, 1, 3, 6))))})
    batches = [
        (
            {
                stream: frame.filter(pl.col("t").is_between(low, high, closed="left")).sample(
                    fraction=1, shuffle=True, seed=seed
                )
                for stream, frame in whole.items()
            },
            high - 1,
        )
        for low, high in itertools.pairwise(cuts)
    ]
    query = _query(rng, window, alone)
    garbage: GarbageCollection = rng.choice(("amortised", "amortised", "exact", "off"))
    told = f"rows {sizes}, {keys} keys, span {span}, window {window} or {alone}, cuts {cuts}, garbage {garbage}"
    return Large(tg.program(Found=query), batches, garbage, told)


def _cut(rng: random.Random, span: int) -> int:
    """Anywhere, or near an end, so that some batches are tiny."""
    return rng.choice((rng.randrange(1, span), 1 + span // 1000, span - 1 - span // 1000))


def _rows(numpy: np.random.Generator, size: int, keys: int, span: int, window: int) -> pl.DataFrame:
    """Half of the streams have one key that has a third of all rows."""
    k = numpy.integers(0, keys, size)
    if numpy.random() < 0.5:
        k[numpy.random(size) < 0.33 / max(1, keys / 50)] = 0
    t = numpy.integers(0, span, size)
    x = pl.Series("x", numpy.integers(-1000, 1000, size))
    return pl.DataFrame(
        {
            "k": k,
            "t": t,
            "e": t + numpy.integers(0, window + 1, size),
            "x": pl.select(pl.when(pl.Series(numpy.random(size) < 0.9)).then(x)).to_series(),
            "v": numpy.integers(-4000, 4000, size) / 4,  # quarters: their sums are exact in any order
            "s": pl.Series(numpy.choice(np.array(["", "a", "b", "ä"]), size)),
            "b": numpy.random(size) < 0.5,
        }
    )


def _query(rng: random.Random, window: int, alone: int) -> tg.Relation:
    stream = {one: tg.stream(one, DDL, progress="t", relations=lambda r: r.t <= r.e) for one in "AB"}
    a = stream["A"].as_("a")
    other = stream[rng.choice("AB")]
    condition = rng.choice((None, other.x > 0, other.b, other.s == "a"))
    b = (other if condition is None else other.where(condition)).as_("b")
    match rng.choice(("window", "window", "join", "join", "join", "joined window", "either", "unlike", "again")):
        case "window":
            return _grouped(rng, a, a.t, window)
        case "either":
            one, two = (side.select(k=side.k, t=side.t, x=side.x, v=side.v, s=side.s) for side in (a, b))
            both = one.union(two)
            return _grouped(rng, both, both.t, window)
        case "unlike":
            distinct = a.select(k=a.k, t=a.t, s=a.s).distinct()
            return distinct.difference(b.select(k=b.k, t=b.t, s=b.s))
        case "join":
            return _joined(rng, a, b, window, alone)[0]
        case "again":
            first, second = a.where(a.b).as_("c"), stream["B"].as_("d")
            pairs = first.join(b, first.k == b.k, first.t <= b.t, b.t <= first.t + window)
            after = pairs.join(second, second.k == b.k, b.t < second.t, second.t <= b.t + window, second.x > 500)
            return after.select(k=first.k, one=first.t, two=b.t, three=second.t)
        case _:
            pairs, _ = _joined(rng, a, b, window, alone, kinds=("inner", "left"))
            return _grouped(rng, pairs, pairs.t, window)


def _joined(
    rng: random.Random,
    a: tg.Relation,
    b: tg.Relation,
    window: int,
    alone: int,
    kinds: tuple[str, ...] = ("inner", "inner", "left", "semi", "anti"),
) -> tuple[tg.Relation, str]:
    """By key and a window, or by a narrower window alone; perhaps by intervals that overlap, and with a rest."""
    kind = rng.choice(kinds)
    keyed = rng.random() < 0.7 or kind in ("semi", "anti")
    near = window if keyed else alone
    conditions = rng.choice(
        (
            (a.t <= b.t, b.t <= a.t + near),
            (a.t < b.t, b.t < a.t + near + 1),
            (a.t - near <= b.t, b.t <= a.t),
            (a.t <= b.t, b.t < a.e, b.t <= a.t + near),
            (a.t <= b.e, b.t <= a.e, b.t <= a.t + near, a.t <= b.t + near),
        )
    )
    keys = (a.k == b.k,) if keyed else ()
    rest = rng.choice(((), (), (a.x < b.x,), (a.s == b.s,), (a.v + b.v > 0,), (a.b | b.b,)))
    join = {"inner": a.join, "left": a.left_join, "semi": a.semi_join, "anti": a.anti_join}[kind]
    made = join(b, *keys, *conditions, *rest)
    if kind in ("semi", "anti"):
        return made.select(k=a.k, t=a.t, x=a.x, v=a.v, s=a.s), kind
    return made.select(k=a.k, t=a.t, x=b.x, v=b.v, s=a.s), kind


def _grouped(rng: random.Random, rows: tg.Relation, instant: Any, window: int) -> tg.Relation:
    keys = {one: getattr(rows, one) for one in rng.choice(((), ("k",), ("s",), ("k", "s")))}
    width = rng.choice((window, 7 * window + 3))
    aggregates = {
        "n": tg.count(),
        "known": tg.count(rows.x),
        "total": tg.sum(rows.x),
        "exact": tg.sum(rows.v),
        "mean": tg.avg(rows.x),
        "least": tg.min(rows.v),
        "most": tg.max(rows.x),
        "texts": tg.max(rows.s),
        "kinds": tg.count_distinct(rows.s),
    }
    chosen = rng.sample(sorted(aggregates), rng.choice((1, 3, 6)))
    return rows.group_by(**keys, end=tg.ceil(instant, width)).agg(**{one: aggregates[one] for one in chosen})


def by_sql(case: Large) -> pl.DataFrame:
    """What DuckDB finds in all rows at once; of a pattern, what its maker does."""
    if case.expected is not None:
        return case.expected
    with duckdb.connect(config={"threads": 1}) as connection:
        for stream in "AB":
            frame = case.whole(stream)
            connection.register("arrived", frame.to_arrow())
            connection.execute(f"CREATE OR REPLACE TABLE {name(stream)} AS SELECT * FROM arrived")
            connection.unregister("arrived")
        found = connection.sql(Sql().query(case.node)).to_arrow_table()
    made = pl.DataFrame(found)
    return made.rename(dict(zip(made.columns, case.node.schema.names, strict=True)))


def incrementally(case: Large) -> tuple[pl.DataFrame, int]:
    """What the embedded engine finds batch by batch, and how many rows of it before the end of input."""
    used = {stream.name for stream in occurrences(case.node)}
    with Session(case.program.facts, options=RunOptions(collect_garbage=case.garbage)) as session:
        for rows, complete in case.batches:
            for stream in sorted(used):
                session.push(stream, rows[stream])
                session.advance(stream, {"t": complete})
            session.step()
        before = session.table("Found").arrow().num_rows
        session.finish()
        session.step()
        return pl.DataFrame(session.table("Found")), before


def difference(found: pl.DataFrame, wanted: pl.DataFrame) -> str | None:
    """How two tables differ as bags."""
    wanted = wanted.select(pl.col(c).cast(found.schema[c]) for c in found.columns)
    one, other = (frame.sort(frame.columns, nulls_last=True) for frame in (found, wanted))
    if one.equals(other):
        return None
    extra = one.join(other, on=one.columns, how="anti", nulls_equal=True)
    missing = other.join(one, on=one.columns, how="anti", nulls_equal=True)
    return (
        f"{one.height} rows instead of {other.height}; too many: {extra.head(3).rows()}, missing: "
        f"{missing.head(3).rows()}"
    )


@dataclass(slots=True)
class LargeFamily:
    """The family as `tools/fuzz.py` runs it: a seed gives a case; nothing is shrunk."""

    tally: Tally = field(default_factory=Tally)

    def run(self, seed: int) -> str | None:
        self.tally.cases += 1
        case = random_large(seed)
        try:
            case.program.facts  # analysed
        except QueryError as error:
            self.tally.rejected.update({problem.code for problem in error.problems})
            return None
        self.tally.valid += 1
        try:
            found, before = incrementally(case)
            self.tally.runs += 1
            self.tally.results += found.height
            self.tally.with_results += before > 0
            wrong = difference(found, by_sql(case))
        except Exception as error:  # noqa: BLE001  # a crash is a failing case like any other
            wrong = "".join(traceback.format_exception(error, limit=-4))
        return None if wrong is None else f"{wrong}\n{case.told}\n{node_text(case.node)}"


LARGE = LargeFamily()
