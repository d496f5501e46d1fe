"""Numbers of different values and quantiles that are nearly known: how nearly, and the same in whatever batches."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.functions.sketches.distinct import class_of, distinct_estimate
from tidegate.algebra.functions.sketches.kinds import Sketch
from tidegate.algebra.functions.sketches.quantiles import middle_of, part_of
from tidegate.algebra.semantics import evaluate
from tidegate.algebra.terms import Attr
from tidegate.algebra.types import BIGINT, DOUBLE, STRING, DataType, decimal
from tidegate.runtime.eval.aggregates import sketches
from tidegate.runtime.eval.aggregates.sketches import OpenSketch
from tidegate.runtime.ordered.over.block import Block
from tidegate.runtime.ordered.over.sketches import running_sketch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint, x double, w string", progress="t")


def program() -> tg.Program:
    grouped = S.group_by("k", end=tg.ceil(S.t, 10)).agg(
        n=tg.count(),
        words=tg.approx_distinct(S.w),
        numbers=tg.approx_distinct(S.x),
        middle=tg.approx_quantile(S.x, 0.5),
        most=tg.approx_quantile(S.v, 1),
        total=tg.sum(S.x),
    )
    hopping = S.windows(tg.hopping(12, every=4), by="k").agg(
        words=tg.approx_distinct(S.w, filter=S.v > 0), low=tg.approx_quantile(S.x, 0.1)
    )
    session = S.windows(tg.session(2), by="k").agg(numbers=tg.approx_distinct(S.v))
    quantiles = {"middle": tg.approx_quantile(S.x, 0.5), "low": tg.approx_quantile(S.x, 0.1)}
    told: dict[str, Any] = {"words": tg.approx_distinct(S.w), **quantiles}
    return tg.program(
        Grouped=grouped,
        Hopping=hopping,
        Session=session,
        Empty=S.windows(tg.hopping(5, every=5, empty=True), by="k").agg(**told),
        Running=S.over(by="k", order="t", **told),
        Moving=S.over(by="k", order="t", range=9, most=tg.max(S.v), **told),
        Ahead=S.over(by="k", order="t", range=(None, 4), **told),
        Around=S.over(by="k", order="t", range=(3, 4), **told),
    )


COMPLETED = {
    **dict.fromkeys(("Grouped", "Hopping", "Session"), "end"),
    **dict.fromkeys(("Running", "Moving"), "t"),
    **dict.fromkeys(("Ahead", "Around", "Empty"), "complete"),
}
NAMES = tuple(COMPLETED)


def events(seed: int, many: int = 80) -> list[Event]:
    rng = random.Random(seed)
    doubles, words = (0.5, -2.25, 0.0, -0.0, None, math.inf, math.nan, 1e300, -7e-9), ("", "ä", "b", None)
    return [
        (rng.choice(("a", "b", None)), t, rng.choice((1, 2, -3, None)), rng.choice(doubles), rng.choice(words))
        for t in sorted(rng.randrange(-20, 80) for _ in range(many))
    ]


def comparable(row: Event) -> Event:
    """The row with text in the place of NaN, which equals nothing."""
    return tuple("NaN" if value != value else value for value in row)


def meant(program: tg.Program, rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program.definition.queries if one.stream == name)
    return sorted(map(comparable, evaluate(query.node, {"S": list(rows)})), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((comparable(tuple(row.values())) for row in rows), key=str)


# --- how nearly -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [0, 1, 2, 10, 100, 1_000, 20_000])
def test_different_values_are_nearly_counted(many: int) -> None:
    for values in (range(many), [f"user {n}" for n in range(many)], [n / 7 for n in range(many)]):
        numbers: dict[int, int] = {}
        for place, number in map(class_of, values):
            numbers[place] = max(number, numbers.get(place, 0))
        assert abs(distinct_estimate(list(numbers.values())) - many) <= max(many * 0.05, many > 50)


def test_a_part_of_the_number_line_is_narrow() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        x = rng.choice((-1, 1)) * math.exp(rng.uniform(-600, 600))
        assert abs(middle_of(part_of(x, DOUBLE)) - x) <= abs(x) / 127
    special = (-math.inf, -3.0, -5e-324, 0.0, 1e308, math.inf, math.nan)
    parts = [part_of(x, DOUBLE) for x in special]
    assert parts == sorted(parts)
    assert [middle_of(parts[place]) for place in (0, 3, 5)] == [-math.inf, 0.0, math.inf]
    assert math.isnan(middle_of(parts[-1]))
    assert part_of(-0.0, DOUBLE) == part_of(0.0, DOUBLE)
    assert part_of(150, decimal(5, 2)) == part_of(1.5, DOUBLE)


def test_quantiles_are_near_those_that_are_exact() -> None:
    rng = random.Random(2)
    rows = [("a", 1, None, rng.lognormvariate(3, 2), None) for _ in range(999)]
    exact = sorted(row[3] for row in rows)
    for share in (0, 0.25, 0.5, 0.9, 1):
        told = S.group_by(end=tg.ceil(S.t, 10)).agg(q=tg.approx_quantile(S.x, share))
        (row,) = tg.program(Q=told).run({"S": rows})["Q"].rows()
        assert abs(row["q"] / exact[int(share * 998)] - 1) < 0.008


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (BIGINT, [0, 1, -1, 2**62, -(2**63), 2**63 - 1, None]),
        (decimal(9, 3), [0, 1, -12_345, None]),
        (DOUBLE, [0.0, -0.0, 1.5, -2.25, 1e-310, -1e300, math.inf, -math.inf, math.nan, None]),
        (STRING, ["", "a", "ä", "a" * 100, None]),
    ],
)
def test_places_are_those_of_their_meaning(type_: DataType, values: list[Any]) -> None:
    """One by one in Python, and a column at once."""
    held = pl.Series("v", values, {DOUBLE: pl.Float64, STRING: pl.String}.get(type_, pl.Int64))
    classes = [None if value is None else divmod(place, 64) for value, place in zip(
        values, sketches.entries(Sketch.DISTINCT, type_, held), strict=True
    )]  # fmt: skip
    assert classes == [None if value is None else class_of(value) for value in values]
    if type_ != STRING:
        parts = [
            None if place is None else place - (1 << 18) for place in sketches.entries(Sketch.QUANTILES, type_, held)
        ]
        assert parts == [None if value is None else part_of(value, type_) for value in values]


@pytest.mark.parametrize("sketch", [*Sketch])
def test_sketches_merge_in_any_order(sketch: Sketch) -> None:
    rng = random.Random(3)
    places = sketches.entries(sketch, BIGINT, pl.Series([rng.randrange(500) for _ in range(900)]))
    (whole,) = sketches.merged(sketch, pl.Series([places.to_list()], dtype=pl.List(pl.Int64)))
    for _ in range(5):
        mixed = rng.sample(places.to_list(), 900)
        cuts = sorted(rng.sample(range(900), 6))
        parts = [mixed[low:high] for low, high in zip([0, *cuts], [*cuts, 900], strict=True)]
        each = sketches.merged(sketch, pl.Series(parts, dtype=pl.List(pl.Int64)))
        assert sketches.merged(sketch, pl.Series([each.to_list()], dtype=pl.List(pl.String))).to_list() == [whole]


def test_of_a_class_the_greatest_number_counts() -> None:
    groups = pl.Series([[5 << 6 | 3, 5 << 6 | 1, 7 << 6 | 2], [7 << 6 | 2, 5 << 6 | 3]], dtype=pl.List(pl.Int64))
    first, second = sketches.merged(Sketch.DISTINCT, groups)
    assert first == second
    alone = sketches.merged(Sketch.DISTINCT, pl.Series([[5 << 6 | 1]], dtype=pl.List(pl.Int64))).to_list()
    both = pl.Series([[*alone, first]], dtype=pl.List(pl.String))
    assert sketches.merged(Sketch.DISTINCT, both).to_list() == [first]
    opened = OpenSketch.of(Aggregate("n", Function.APPROX_DISTINCT, Attr("v")), None)
    for entry in groups[0]:
        opened.add(entry)
    assert opened.text() == first


def test_a_sketch_in_another_layout_is_refused() -> None:
    for text in ("2AAAA", "1AAA", "1AAAAAA==", "1?"):
        with pytest.raises(tg.TidegateError, match=r"TG504(?s:.*)a sketch in another layout than 1"):
            sketches.merged(Sketch.DISTINCT, pl.Series([[text]], dtype=pl.List(pl.String)))


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(4))
def test_they_are_the_same_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, COMPLETED)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 40, shard_bytes, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


# --- what is kept, and where they are not -----------------------------------------------------------------------------


def test_groups_keep_sketches_and_no_rows() -> None:
    told = S.group_by(end=tg.ceil(S.t, 100)).agg(n=tg.approx_distinct(S.v), q=tg.approx_quantile(S.x, 0.5))
    with tg.program(Q=told).session(collect_garbage="exact") as session:
        for first in range(0, 60, 20):
            session.push("S", [("a", t, t, float(t), None) for t in range(first + 1, first + 21)])
            session.advance("S", first + 20)
            session.step()
        assert sum(session.live_rows().values()) <= 3
        session.finish()
        session.step()
        (row,) = session.results("Q")
    assert abs(row["n"] - 60) <= 3
    assert row["end"] == 100


def test_a_running_sketch_goes_on_from_the_last_row_of_each_key(tmp_path: Path) -> None:
    """That is all that is kept, whatever other columns look back at; one of many values is the one of all at once."""
    rng = random.Random(4)
    rows = [(rng.choice("ab"), t, rng.randrange(3_000), rng.gauss(), None) for t in range(1, 1_001)]
    told = S.over(by="k", order="t", n=tg.approx_distinct(S.v), q=tg.approx_quantile(S.x, 0.9))
    (query,) = tg.program(R=told).explain().to_dict()["queries"]
    assert query["holds"] == ["rows: keys(S by k) × 1"]
    with tg.program(R=told).session(checkpoint=tmp_path) as session:
        for first in range(0, 1_000, 250):
            session.push("S", rows[first : first + 250])
            session.advance("S", first + 250)
            session.step()
            assert session.live_rows()["R: state"] == 2
        found = {row["k"]: row for row in sorted(session.results("R"), key=lambda row: row["t"])}
    grouped = S.group_by("k", end=tg.ceil(S.t, 1_000)).agg(n=tg.approx_distinct(S.v), q=tg.approx_quantile(S.x, 0.9))
    for row in tg.program(G=grouped).run({"S": rows}).rows("G"):
        assert (found[row["k"]]["n"], found[row["k"]]["q"]) == (row["n"], row["q"])


def test_the_last_row_of_a_partition_alone_has_the_sketch() -> None:
    aggregate = Aggregate("n", Function.APPROX_DISTINCT, Attr("v"))
    sketch = OpenSketch.of(aggregate, None)
    assert sketch.told == 0
    for entry in sketches.entries(Sketch.DISTINCT, BIGINT, pl.Series([7, 8])):
        sketch.add(entry)
    times = pl.DataFrame({"t": [1, 2]}), pl.DataFrame({"t": [3, 4, 5]})
    kept_in, new_in = np.array([0, 0]), np.array([0, 0, 1])
    block = Block.of(times[0], kept_in, times[1], new_in, np.arange(3), 2, "t")
    told, texts = pl.Series([1, 2]), pl.Series([None, sketch.text()])
    parts = running_sketch(aggregate, BIGINT, pl.Series([7, 8, 8, None, 9]), block, told, texts)
    assert parts["v"].to_list() == [1, 2, 2, 2, 1]
    assert parts["sketch"].is_null().to_list() == [True, True, True, False, False]
    assert OpenSketch.of(aggregate, parts["sketch"][3]).told == 2


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: S.partition_by("k").derive(A=tg.situation(S.v > 1, n=tg.approx_distinct(S.v))),
            "TG132 approx_distinct keeps more than a few values",
        ),
        (lambda: tg.approx_quantile(S.x, 2), "TG132 2 is no share of the values(?s:.*)tg.approx_quantile"),
        (lambda: tg.approx_quantile(S.w, 0.5), "TG102"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()
