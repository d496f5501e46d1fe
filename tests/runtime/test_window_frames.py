"""Frames, the windows that data make (Grossniklaus et al., DEBS 2016): of a threshold, of a threshold with a duration,
and what fills the time between these. Definitions are the judge, whatever the batching and the engine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[str, int, int]

S = tg.stream("S", "k string, t bigint, v bigint", progress="t")
THRESHOLD, DURATION = 4, 6
COMPLETED = {"Threshold": "te", "Lasting": "te", "Fill": "complete"}


def program() -> tg.Program:
    """Frames begin with the first event above the threshold, and end with the first one that is not. Only those that
    last are frames with a duration. The time between two of these, shorter ones included, is a frame that fills it.
    """
    above, values = S.v > THRESHOLD, dict[str, Any](n=tg.count(), most=tg.max(S.v), total=tg.sum(S.v))
    found = S.partition_by("k").derive(
        Threshold=tg.situation(above, **values), Lasting=tg.situation(above, at_least=DURATION, **values)
    )
    lasting = found.Lasting.unqualified()
    following = lasting.over(by="k", order="te", until=tg.lead(lasting.ts))
    fill = following.where(following.until.is_not_null()).select("k", "until", "complete", since="te")
    return tg.program(Threshold=found.Threshold, Lasting=found.Lasting, Fill=fill)


def events(seed: int) -> list[Event]:
    """In order of time, of three keys, no two of a key at one instant, with values at the threshold."""
    rng = random.Random(f"frames {seed}")
    found = [(k, t, rng.choice((3, 4, 5, 5, 6, 9))) for k in "abc" for t in rng.sample(range(80), 30)]
    return sorted(found, key=lambda event: event[1])


def threshold_frames(rows: Sequence[Event], key: str) -> list[tuple[int, ...]]:
    """Each maximal run of events above the threshold: [ts, te), how many, the greatest value and the sum."""
    found, run = list[tuple[int, ...]](), list[Event]()
    for event in (event for event in rows if event[0] == key):
        if event[2] > THRESHOLD:
            run.append(event)
        elif run:
            values = [value for *_, value in run]
            found.append((run[0][1], event[1], len(run), max(values), sum(values)))
            run = []
    return found


def lasting_frames(rows: Sequence[Event], key: str) -> list[tuple[int, ...]]:
    return [frame for frame in threshold_frames(rows, key) if frame[1] - frame[0] >= DURATION]


def fill_frames(rows: Sequence[Event], key: str) -> list[tuple[int, int, int]]:
    """[since, until) between two frames that last, and when it is known: at the end of the second."""
    return [(one[1], other[0], other[1]) for one, other in pairwise(lasting_frames(rows, key))]


def of_keys(results: Mapping[str, Sequence[Mapping[str, Any]]], name: str, *attributes: str) -> dict[str, list[Any]]:
    """The rows of a result by key, as tuples of these attributes, in order."""
    return {key: sorted(tuple(row[a] for a in attributes) for row in results[name] if row["k"] == key) for key in "abc"}


def check(results: Mapping[str, Sequence[Mapping[str, Any]]], rows: Sequence[Event]) -> None:
    values = ("ts", "te", "n", "most", "total")
    assert of_keys(results, "Threshold", *values) == {key: threshold_frames(rows, key) for key in "abc"}
    lasting = of_keys(results, "Lasting", *values)
    assert lasting == {key: lasting_frames(rows, key) for key in "abc"}
    fill = of_keys(results, "Fill", "since", "until", "complete")
    assert fill == {key: fill_frames(rows, key) for key in "abc"}
    assert sum(map(len, fill.values())) > 1
    for key in "abc":
        # Both together fill the time, and nothing is twice in them.
        pieces = sorted([*((ts, te) for ts, te, *_ in lasting[key]), *((one, other) for one, other, _ in fill[key])])
        assert all(one[1] == other[0] for one, other in pairwise(pieces))


@pytest.mark.parametrize("seed", shards(6))
def test_frames_are_as_defined_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    rows = events(seed)
    check(in_any_batches(program, rows, seed, tmp_path, COMPLETED), rows)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same_frames(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = events(1)
    check(on_spark(program, rows, 30, shard_bytes, spark, monkeypatch), rows)


def test_a_frame_that_is_too_short_belongs_to_what_fills_the_time() -> None:
    rows = [("a", t, v) for t, v in ((0, 5), (7, 3), (8, 6), (10, 4), (12, 9), (13, 5), (20, 1))]
    ran = program().run({"S": rows})
    results = {name: ran.rows(name) for name in COMPLETED}
    assert of_keys(results, "Lasting", "ts", "te", "n")["a"] == [
        (0, 7, 1),
        (12, 20, 2),
    ]
    assert of_keys(results, "Fill", "since", "until", "complete")["a"] == [(7, 12, 20)]
