"""What an operator finds in a share that takes long is shared out by instants: the portions together have every row
once, wherever they are cut, and what the operator keeps does not depend on them.
"""

from __future__ import annotations

import os
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice, pairwise
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.properties.families import FAMILIES
from tests.runtime.inline_workers import InlineRun, Workers
from tests.shards import shards
from tidegate.algebra.nodes import nodes_of
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import Sink, parquet_sink
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.eval import ordered_shards, portions
from tidegate.runtime.engines.spark.eval import shards as shard_steps
from tidegate.runtime.engines.spark.eval.portions import Loads
from tidegate.runtime.ordered import state as ordered_state
from tidegate.runtime.ordered.derive.events import array_of
from tidegate.runtime.ordered.derive.situations import _between
from tidegate.runtime.ordered.match.counted import CountedMatchesOperator
from tidegate.runtime.ordered.match.operator import MatchOperator
from tidegate.runtime.ordered.state import read_part
from tidegate.runtime.rows import Rows
from tidegate.runtime.tuning.choices import PORTIONS, Choice, Way
from tidegate.runtime.tuning.cuts import cuts_of

#: The programs of each shard: they have matches.
SHARDS, CASES = 4, 25


def bag(rows: pl.DataFrame) -> Counter[str]:
    return Counter(map(str, rows.rows()))


# --- portions of an increment


def any_cuts(
    rng: random.Random,
    events: Sequence[Rows],
    times: Sequence[str],
    after: Extended,
    until: Extended,
    found: Collection[int],
) -> list[int]:
    """Up to three instants between the two, mostly of events or beside them; one more is between what is found."""
    instants = [int(t) for rows, time in zip(events, times, strict=False) for t in array_of(rows, time)]
    near = [t + beside for t in instants for beside in (-1, 0, 0, 1)]
    between = sorted({t for t in near if after < t < until})
    cuts = rng.sample(between, min(len(between), rng.randint(0, 3)))
    apart = sorted(set(found))[:-1]
    return sorted({*cuts, *([rng.choice(apart)] if apart else [])})


def detections(operator: MatchOperator, found: pl.DataFrame) -> list[int]:
    node = operator.counted if isinstance(operator, CountedMatchesOperator) else operator.matching.node
    return list(found[node.completed_by])


def has_matches(family: str, seed: int) -> bool:
    make = FAMILIES[family].make
    assert make is not None
    return any(isinstance(node, Match) for query in make(seed).program.queries for node in nodes_of(query.node))


@pytest.mark.parametrize("family", ["situations", "counted"])
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_portions_find_what_the_increment_finds(family: str, shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every increment of random patterns, whose results are the complete ones. Portions read what comes up to the
    last of their instants.
    """
    step, met = MatchOperator.step, Counter[str]()
    rng = random.Random(f"{family} {shard}")

    def divided(
        self: MatchOperator, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[MatchOperator, pl.DataFrame]:
        sources = self.derivation.sources
        _, whole = step(self, events, after, until, close_at)
        cuts = any_cuts(rng, events, [source.time for source in sources], after, until, detections(self, whole))
        found = []
        for low, high in pairwise([after, *cuts]):
            read = [_between(rows, source.time, -INF, high) for source, rows in zip(sources, events, strict=False)]
            _, rows = step(self.finding_after(low), [*read, *events[len(sources) :]], after, high)
            found.append(rows)
        now, rows = step(self.finding_after(cuts[-1]) if cuts else self, events, after, until, close_at)
        found.append(rows)
        assert sum(map(bag, found), Counter[str]()) == bag(whole)
        assert now.since is None
        met["portions"] += len(cuts)
        met["of several"] += sum(map(len, found)) > max(map(len, found))
        return now, pl.concat(found)

    monkeypatch.setattr(MatchOperator, "step", divided)
    for seed in islice(filter(partial(has_matches, family), count(shard, SHARDS)), CASES):
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure
    assert met["portions"] > 5
    assert met["of several"]


# --- where an increment is cut


@pytest.mark.parametrize(
    ("spreads", "after", "until", "count", "wanted"),
    [
        ([(100, 1, 100)], -inf, inf, 4, [25, 50, 75]),
        ([(100, 1, 100)], 0, 100, 1, []),
        ([(100, 1, 100)], 50, 100, 2, [75]),
        ([(100, 1, 100)], 0, 50, 2, [25]),
        ([(100, 1, 50), (300, 51, 100)], 0, 100, 2, [67]),
        ([(10, 5, 5)], 0, 100, 4, []),
        ([(10, 5, 5), (10, 6, 6)], 0, 100, 4, [5]),
        ([(10, 1, 2)], 0, 2, 5, [1]),
        ([(10, 1, 100)], 200, 300, 4, []),
        ([(10, 1, 100)], 100, 300, 4, []),
        ([], 0, 100, 4, []),
    ],
)
def test_cuts_are_between_about_as_many_rows(
    spreads: list[tuple[int, int, int]], after: Extended, until: Extended, count: int, wanted: list[int]
) -> None:
    assert cuts_of(spreads, after, until, count) == wanted


def test_an_increment_is_cut_at_instants_at_which_it_reads() -> None:
    """Rows may have others, too."""
    events = tg.stream("E", "name string, seen bigint, t bigint, x bigint", progress="t", temporal="seen")
    parts = events.partition_by("name", time="t")
    found = parts.derive(A=tg.situation(events.x > 0, n=tg.count()), B=tg.situation(events.x < 9, n=tg.count()))
    (query,) = tg.program(Q=found.match(found.A.before(found.B), within=9)).explain().lowered().queries
    segments = [SimpleNamespace(rows=100, bounds={"seen": (1001, 1100), "t": (1, 100)})]
    job: Any = SimpleNamespace(query=query, inputs=[segments], old={"detected": 0}, new={"detected": 100})
    assert portions._cuts(job, 2) == [50]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(-60, 60), st.integers(0, 40)), max_size=4),
    st.one_of(st.just(-inf), st.integers(-70, 70)),
    st.one_of(st.just(inf), st.integers(-70, 70)),
    st.integers(1, 6),
)
def test_cuts_lie_within_the_increment_and_have_some_rows_between_them(
    made: list[tuple[int, int, int]], after: Extended, until: Extended, count: int
) -> None:
    spreads = [(rows, first, first + span) for rows, first, span in made]
    cuts = cuts_of(spreads, after, until, count)
    assert cuts == sorted(set(cuts))
    assert len(cuts) < count
    assert all(after < cut < until for cut in cuts)
    for low, high in pairwise([after, *cuts]):
        assert any(first <= high and last > low for _, first, last in spreads)


# --- runs

readings = tg.stream("R", "name string, t bigint, x bigint", progress="t")
RESULTS = ("Found", "Sums", "Last", "Counted", "Alone")
HOT, BATCHES, SPAN, FILES = "hot", 5, 60, 3


def program() -> tg.Program:
    """Patterns of event runs and of rows with aggregates, with a window and without, one of which is counted only;
    situations by themselves.
    """
    parts = readings.partition_by("name")
    found = parts.derive(A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x.is_in(2, 3)))
    summed = parts.derive(
        S=tg.situation(readings.x > 0, n=tg.count(), top=tg.max(readings.x)), T=tg.situation(readings.x > 1)
    )
    last = parts.derive(U=tg.situation(readings.x == 1), V=tg.situation(readings.x == 2, at_most=9))
    counted = found.match(found.B.before(found.A), within=15)
    return tg.program(
        Found=found.match(found.A.before(found.B) | found.A.overlaps(found.B), within=12),
        Sums=summed.match(summed.S.contains(summed.T) | summed.S.started_by(summed.T)),
        Last=last.match(last.U.meets(last.V), within=30, emission="final"),
        Counted=counted.group_by(name=counted.name, w=tg.ceil(counted.detected, 10)).agg(n=tg.count()),
        Alone=found.A,
    )


def pattern() -> tg.Program:
    """A pattern of event runs by itself."""
    found = readings.partition_by("name").derive(
        A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x.is_in(2, 3))
    )
    return tg.program(Found=found.match(found.A.before(found.B) | found.A.overlaps(found.B), within=12))


def batches(seed: int) -> list[list[dict[str, Any]]]:
    """By batch. Every second reading is of one name."""
    rng = random.Random(seed)
    values = dict.fromkeys((HOT, "one", "two", "three", None), 0)
    made = []
    for batch in range(BATCHES):
        some = []
        for t in range(batch * SPAN, (batch + 1) * SPAN):
            for name in (HOT, rng.choice(("one", "two", "three", None))):
                if rng.random() < 0.4:
                    values[name] = rng.randrange(4)
                some.append({"name": name, "t": t, "x": values[name]})
        made.append(some)
    return made


def write(folder: Path, made: list[list[dict[str, Any]]]) -> Path:
    """Several files of each batch, one span of time after the other."""
    folder.mkdir()
    for number, some in enumerate(made):
        rows = pl.DataFrame(some, schema={"name": pl.String, "t": pl.Int64, "x": pl.Int64})
        for file in range(FILES):
            path = folder / f"{number:02}-{file}.parquet"
            low, high = (rows.height * n // FILES for n in (file, file + 1))
            rows[low:high].write_parquet(path)
            os.utime(path, (1_600_000_000 + 10 * number + file,) * 2)
    return folder


def sources_of(folder: Path) -> dict[str, Source]:
    return {"R": parquet(folder, per_batch=FILES, delay=0, bounded=True)}


def sinks_of(place: Path, names: Sequence[str]) -> dict[str, Sink]:
    return {name: parquet_sink(place / "out" / name) for name in names}


def begun(
    workers: Workers,
    place: Path,
    of: tg.Program,
    names: Sequence[str],
    folder: Path,
    options: RunOptions = RunOptions(),
) -> InlineRun:
    sources, sinks = sources_of(folder), sinks_of(place, names)
    return InlineRun.of(workers, of.facts, sources, sinks, place / "checkpoint", options=options)


def check_results(place: Path, of: tg.Program, names: Sequence[str], made: list[list[dict[str, Any]]]) -> None:
    wanted = of.run({"R": [row for some in made for row in some]})
    for name in names:
        paths = (place / "out" / name).glob("*.parquet")
        found = Counter(str(row) for path in paths for row in pl.read_parquet(path).to_dicts())
        assert found == Counter(map(str, wanted[name].arrow().to_pylist())), name
        assert found, name


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The query of each portion that was evaluated, and how many rows it has found."""
    some: list[tuple[str, int]] = []
    stored = ordered_shards._stored

    def noting(target: Any, job: Any, step: Any, shard: int, count: int, began: float) -> Iterator[str]:
        if count > 1:
            some.append((job.query.name, step.rows.height))
        return stored(target, job, step, shard, count, began)

    monkeypatch.setattr(ordered_shards, "_stored", noting)
    return some


def drawn_by(rng: random.Random) -> Any:
    """Any shares are divided, into any portions."""

    def drawn(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        return {(query, shard): rng.randint(2, 5) for query in queries for shard in range(shards) if rng.random() < 0.6}

    return drawn


def failing(*given: Any) -> Any:
    raise OSError("no")


@pytest.mark.parametrize("seed", shards(8, 1))
def test_results_are_the_same_whatever_is_divided(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, int]]
) -> None:
    """Workers are drawn, and lost now and then; some batches are tried again after all their tasks were done, and some
    are the first of a run that goes on. Every other run writes of small states the changes alone.
    """
    if seed % 2:
        monkeypatch.setattr(ordered_state, "SMALL", 0)
    rng, made, folder = random.Random(seed), batches(seed), tmp_path / "in"
    monkeypatch.setattr(Loads, "portions", drawn_by(rng))
    workers = Workers(monkeypatch, tasks=3, choose=lambda number: rng.randrange(2))
    run = begun(workers, tmp_path, program(), RESULTS, write(folder, made))
    reports: list[BatchReport] = []
    while not reports or run.run.selection.is_left(run.run.setup.directories):
        if rng.random() < 0.3:
            workers.lose(rng.randrange(2))
        if rng.random() < 0.3:
            with monkeypatch.context() as patch:
                patch.setattr(Runner, "_collect", failing)
                with pytest.raises(OSError, match="no"):
                    run.batch()
        reports.append(run.batch())
        if rng.random() < 0.3:
            run.run.close()
            run = replace(begun(workers, tmp_path, program(), RESULTS, folder), batches=run.batches)
    run.run.close()
    assert {place for report in reports for place in report.places.values()} == {"sharded"}
    names = {name for name, _ in done}
    assert "Alone" not in names  # to find what has ended is to read it
    assert {"Found", "Sums", "Last"} <= names
    assert sum(found > 0 for _, found in done) > 10
    check_results(tmp_path, program(), RESULTS, made)


#: A is true from 1 to 6, 11 to 22, 25 to 26; B from 4 to 7, 9 to 10, 20 to 24, 37 to 38.
TIMES = (0, 1, 4, 6, 7, 9, 10, 11, 20, 22, 24, 25, 26, 37, 38, 60)
VALUES = (0, 1, 3, 2, 0, 2, 0, 1, 3, 2, 0, 1, 0, 2, 0, 0)
DETECTED = [6, 9, 22, 37]


@pytest.mark.parametrize(
    "cuts",
    [
        [5],
        [6],  # the last instant of a portion, and of what it finds
        [8, 21],
        [36],  # a match that is as long as it may be, and the last instant before it
        [2, 3, 12, 15, 18, 21, 22, 36],  # a situation that is open in five portions, and portions that find nothing
        [37, 50],
    ],
)
def test_a_match_is_found_in_the_portion_in_which_it_is_detected(
    cuts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, int]]
) -> None:
    """In the second batch; in the first one a situation has begun."""
    rows = [{"name": HOT, "t": t, "x": x} for t, x in zip(TIMES, VALUES, strict=True)]
    made = [[*rows[:2], {"name": "other", "t": 2, "x": 0}], rows[2:]]
    monkeypatch.setattr(Loads, "portions", lambda *_: {("Found", 0): len(cuts) + 1})
    monkeypatch.setattr(portions, "_cuts", lambda job, _: cuts if job.new["detected"] == INF else [])
    begun(Workers(monkeypatch, tasks=1), tmp_path, pattern(), ["Found"], write(tmp_path / "in", made)).all()
    check_results(tmp_path, pattern(), ["Found"], made)
    found_in = Counter(bisect_left(cuts, instant) for instant in DETECTED)
    assert done == [("Found", found_in[portion]) for portion in range(len(cuts) + 1)]


def test_shares_are_divided_as_it_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing says that they would take long; and where there are fewer shares, or no such portions."""
    made, folder = batches(7)[:3], tmp_path / "in"
    write(folder, made)

    def chosen(name: str, tune: Any, tasks: int = 3) -> dict[int, tuple[Choice, ...]]:
        options, workers = RunOptions(tune=tune), Workers(monkeypatch, tasks=tasks)
        reports = begun(workers, tmp_path / name, pattern(), ["Found"], folder, options).all()
        check_results(tmp_path / name, pattern(), ["Found"], made)
        return {report.seq: report.choices for report in reports}

    def ways(choices: dict[int, tuple[Choice, ...]]) -> dict[int, list[tuple[str, str]]]:
        return {seq: [(choice.step, str(choice.way)) for choice in some] for seq, some in choices.items()}

    with monkeypatch.context() as patch:
        patch.setattr(Loads, "portions", drawn_by(random.Random(7)))
        first = chosen("first", "throughput")
    assert any(some for some in ways(first).values())
    assert ways(chosen("second", first)) == ways(first)
    chosen("third", first, tasks=2)
    chosen("fourth", {seq: [replace(one, way=Way(PORTIONS, -1)) for one in some] for seq, some in first.items()})


def test_a_portion_reads_what_comes_up_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that begin later are left to others."""
    read: list[tuple[int, int]] = []
    of_shares = shard_steps.read_shares

    def noting(target: Any, jobs: Any, *given: Any) -> Any:
        (job,) = jobs
        time = job.query.ordered.time
        read.append((job.new[time], max(segment.bounds["t"][0] for some in job.inputs for segment in some)))
        return of_shares(target, jobs, *given)

    monkeypatch.setattr(ordered_shards, "read_shares", noting)
    monkeypatch.setattr(Loads, "portions", lambda self, queries, shards: {("Found", 0): 3})
    made = batches(1)
    run = begun(Workers(monkeypatch, tasks=3), tmp_path, pattern(), ["Found"], write(tmp_path / "in", made))
    run.batch()
    portions_read = read[:2]
    assert all(first <= until for until, first in portions_read)
    assert portions_read[0][1] < portions_read[1][1] <= read[2][1]
    run.all()
    check_results(tmp_path, pattern(), ["Found"], made)


# --- which shares are divided


def test_a_run_divides_the_share_of_a_partition_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, int]]
) -> None:
    """From what the batch before took, once no worker does it for the first time; and it finds the same."""
    made = batches(3)
    hot = int(pl.Series([HOT]).hash(0)[0] % 2)
    tell = shard_steps.load_line

    def taking(target: Any, query: str, shard: int, count: int, read: float, found: float) -> Iterator[str]:
        assert read > 0
        assert found > 0
        return tell(target, query, shard, count, 0.5, 10.0 if shard == hot and count == 1 else 1.0)

    monkeypatch.setattr(ordered_shards, "load_line", taking)
    reports = begun(Workers(monkeypatch, tasks=2), tmp_path, pattern(), ["Found"], write(tmp_path / "in", made)).all()
    told = [list(map(str, report.choices)) for report in reports if report.places]
    line = f"Found, shard {hot}: 2 portions (it took 10.5 s, the mean is 6 s)"
    assert told[:5] == [[], [], [line], [], [line]]
    assert len(done) >= 4
    check_results(tmp_path, pattern(), ["Found"], made)


def test_what_only_reads_takes_no_time_that_portions_would_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(Workers(monkeypatch), tmp_path, program(), RESULTS, write(tmp_path / "in", batches(2)))
    run.all()
    loads = run.run.executor._loads._of
    assert {"Found", "Sums", "Last", "Alone"} <= set(loads)
    assert all(load.evaluated == 0 < load.read for load in loads["Alone"].values())
    assert all(load.evaluated > 0 for load in loads["Found"].values())


def test_what_is_known_of_other_shares_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "WORTH", 0)
    loads = Loads()
    told = [{"query": "Q", "load": [shard, 1, 0.0, 9.0 * (shard == 1)]} for shard in range(3)]
    assert loads.learn(told, {"Q": 3}) == []
    assert loads.portions(["Q"], 3) == {("Q", 1): 3}
    assert loads.portions(["Q"], 2) == {}
    assert loads.portions(["Q"], 4) == {}


def test_a_share_of_many_is_divided_where_a_core_would_have_less() -> None:
    """Sixteen shares on two cores: one that takes as long as all others together is as much as a core has."""
    loads = Loads(2)
    for seconds, wanted in ((15.0, {}), (60.0, {("Q", 3): 2})):
        told = [{"query": "Q", "load": [shard, 1, 0.0, seconds if shard == 3 else 1.0]} for shard in range(16)]
        loads.learn(told, {"Q": 16})
        assert loads.portions(["Q"], 16) == wanted


# --- what workers hold


def test_a_share_is_read_once_by_a_worker_that_has_its_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it does not hold it. Nor does the task of the share read it after them."""
    opened: Counter[str] = Counter()

    def reading(store: Any, query: str, part: Any, described: Any) -> Any:
        opened.update(file.path for delta in part for file in delta.files)
        return read_part(store, query, part, described)

    monkeypatch.setattr(ordered_shards, "read_part", reading)
    monkeypatch.setattr(Loads, "portions", lambda self, queries, shards: {(query, 0): 3 for query in queries})
    made, workers = batches(4), Workers(monkeypatch)
    run = begun(workers, tmp_path, program(), RESULTS, write(tmp_path / "in", made))
    run.batch()
    run.batch()
    assert not opened
    workers.lose(0)
    run.batch()
    assert set(opened.values()) == {1}
    run.all()
    check_results(tmp_path, program(), RESULTS, made)


def test_a_portion_that_fails_leaves_nothing_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task has begun with may be half changed."""
    monkeypatch.setattr(Loads, "portions", lambda self, queries, shards: {("Found", 0): 3})
    made, workers = batches(5), Workers(monkeypatch)
    run = begun(workers, tmp_path, program(), RESULTS, write(tmp_path / "in", made))

    def held() -> set[tuple[str, int]]:
        return {(query, shard) for one in workers.memories[0].values() for query, shard, _ in one.operators._held}

    run.batch()
    assert ("Found", 0) in held()
    with monkeypatch.context() as patch:
        patch.setattr(ordered_shards, "_stored", failing)
        with pytest.raises(OSError, match="no"):
            run.batch()
    assert held()
    assert ("Found", 0) not in held()
    run.all()
    check_results(tmp_path, program(), RESULTS, made)
