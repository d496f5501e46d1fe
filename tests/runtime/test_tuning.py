"""A run tunes itself: costs are fitted to what is measured, choices follow them, and no result follows choices."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.runtime.test_threads import NAMES, program, written
from tests.shards import shards
from tidegate import metrics
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines import options as run_options
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.file_density import estimate
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.tuning import tuner
from tidegate.runtime.tuning.choices import FILES, PORTIONS, Choice, Way
from tidegate.runtime.tuning.costs import CostFit, Costs
from tidegate.runtime.tuning.tuner import AGAIN, ASSUMED, BETTER, WORTH, Tuner, choices_of

DRIVER, SHARDED = Way("driver"), Way("sharded", tasks=4, cores=4)
MILLION = 1_000_000

# --- costs


def test_a_step_costs_its_start_its_waves_and_its_rows() -> None:
    costs = Costs(start=0.1, wave=0.02, million=1.0)
    assert costs.seconds(4 * MILLION, tasks=4, cores=2) == pytest.approx(0.1 + 2 * 0.02 + 4 / 2)
    assert costs.seconds(4 * MILLION, tasks=2, cores=8) == pytest.approx(0.1 + 0.02 + 4 / 2)
    assert costs.seconds(0) == pytest.approx(0.12)
    assert costs.seconds(0, tasks=3, cores=2) == pytest.approx(0.1 + 2 * 0.02)


@given(
    start=st.floats(0.001, 1),
    wave=st.floats(0.001, 0.5),
    million=st.floats(0.01, 10),
    tasks=st.integers(1, 16),
    rows=st.tuples(st.integers(WORTH, 20 * MILLION), st.integers(WORTH, 20 * MILLION)),
)
def test_what_steps_took_is_expected_of_such_and_those_between(
    start: float, wave: float, million: float, tasks: int, rows: tuple[int, int]
) -> None:
    fit, true = CostFit(), Costs(start, wave, million)
    for number in range(10):
        seconds = true.seconds(rows[number % 2], tasks, 4)
        fit.add(seconds, ASSUMED["sharded"], rows[number % 2], tasks, 4)
    found = fit.costs(ASSUMED["sharded"])
    for some in (*rows, sum(rows) // 2):
        assert found.seconds(some, tasks, 4) == pytest.approx(true.seconds(some, tasks, 4), rel=0.5)


def test_a_change_shows_within_three_batches() -> None:
    fit = CostFit()
    for _ in range(50):
        fit.add(0.1, ASSUMED["driver"], MILLION)
    for _ in range(3):
        fit.add(0.5, ASSUMED["driver"], MILLION)
    assert fit.costs(ASSUMED["driver"]).seconds(MILLION) > 0.5 * BETTER * 0.9


def test_nothing_measured_is_as_assumed_and_no_cost_is_negative() -> None:
    assert CostFit().is_empty
    for assumed in ASSUMED.values():
        assert CostFit().costs(assumed).seconds(MILLION, 4, 4) == pytest.approx(assumed.seconds(MILLION, 4, 4))
    fit = CostFit()
    fit.add(1.0, ASSUMED["sharded"], MILLION)  # more rows took less time
    fit.add(0.1, ASSUMED["sharded"], 10 * MILLION)
    found = fit.costs(ASSUMED["sharded"])
    assert min(found.start, found.wave, found.million) >= 0


def test_a_fit_goes_through_json_and_nonsense_is_none() -> None:
    fit = CostFit()
    for rows in (MILLION, 2 * MILLION, 3 * MILLION):
        fit.add(rows / MILLION, ASSUMED["sharded"], rows, 4, 2)
    again = CostFit.from_json(fit.to_json())
    assert again.costs(ASSUMED["sharded"]).seconds(MILLION, 4, 2) == pytest.approx(
        fit.costs(ASSUMED["sharded"]).seconds(MILLION, 4, 2), rel=1e-3
    )
    for nonsense in (None, [], [1.0] * 8, ["x"] * 9, {"a": 1}, [float("nan")] * 9):
        assert CostFit.from_json(nonsense).is_empty


# --- choices


def test_a_small_step_is_done_at_the_first_place_and_says_nothing() -> None:
    learning = Tuner()
    assert learning.choose("Q", WORTH - 1, (DRIVER, SHARDED)) == DRIVER
    assert learning.choose("Q", 100 * MILLION, (SHARDED,)) == SHARDED
    assert learning.choices == []


def test_the_place_that_is_expected_to_be_sooner_is_chosen_with_its_reason() -> None:
    learning = Tuner()
    assert learning.choose("Q", MILLION, (DRIVER, SHARDED)) == DRIVER
    assert learning.choose("Q", 100 * MILLION, (DRIVER, SHARDED)) == SHARDED
    assert str(learning.choices[1]) == (
        "Q: sharded, 4 tasks on 4 cores (7.67 s expected for 100,000,000 rows; driver: 10 s)"
    )


def test_what_was_measured_decides_and_a_place_that_was_not_is_taken_to_differ_as_assumed() -> None:
    learning = Tuner()
    for _ in range(3):
        learning.measured({"Q": (DRIVER, MILLION)}, 5.0)  # fifty times as slow as assumed
    assert learning.seconds("Q", SHARDED, MILLION) > 2
    assert learning.choose("Q", MILLION, (DRIVER, SHARDED)) == SHARDED
    for _ in range(3):
        learning.measured({"Q": (SHARDED, MILLION)}, 20.0)
    assert learning.choose("Q", MILLION, (DRIVER, SHARDED)) == DRIVER


def test_a_run_stays_where_it_is_until_another_place_is_clearly_better() -> None:
    learning = Tuner()
    learning.measured({"Q": (SHARDED, MILLION)}, 1.0)
    learning.measured({"Q": (DRIVER, MILLION)}, 1.0)
    first = learning.choose("Q", MILLION, (DRIVER, SHARDED))
    other = SHARDED if first == DRIVER else DRIVER
    for _ in range(5):
        learning.measured({"Q": (other, MILLION)}, 0.9)
    assert learning.choose("Q", MILLION, (DRIVER, SHARDED)) == first
    for _ in range(5):
        learning.measured({"Q": (other, MILLION)}, 0.5)
    assert learning.choose("Q", MILLION, (DRIVER, SHARDED)) == other


@pytest.mark.parametrize(("slow", "tried"), [(1.2, 1), (1.9, 1), (2.5, 0)])
def test_a_place_that_was_measured_long_ago_is_tried_again_where_it_may_be_better(slow: float, tried: int) -> None:
    """One that was measured in slow first batches would never be taken again; one that is far dearer is not tried."""
    learning = Tuner()
    for _ in range(3):
        learning.measured({"Q": (SHARDED, MILLION)}, 1.0)
        learning.measured({"Q": (DRIVER, MILLION)}, slow)
    taken = []
    for _ in range(AGAIN + 50):
        taken.append(learning.choose("Q", MILLION, (DRIVER, SHARDED)))
        learning.measured({"Q": (taken[-1], MILLION)}, {DRIVER: slow, SHARDED: 1.0}[taken[-1]])
    assert taken.count(DRIVER) == tried
    assert taken[:AGAIN] == [SHARDED] * AGAIN
    assert taken[-1] == SHARDED, "it is no reason to stay there"


def test_a_place_that_is_tried_again_and_is_better_is_kept() -> None:
    learning, taken = Tuner(), []
    for place, seconds in ((SHARDED, 1.0), (DRIVER, 1.5)):
        learning.measured({"Q": (place, MILLION)}, seconds)
    for _ in range(2 * AGAIN):
        taken.append(learning.choose("Q", MILLION, (DRIVER, SHARDED)))
        learning.measured({"Q": (taken[-1], MILLION)}, {DRIVER: 0.2, SHARDED: 1.0}[taken[-1]])
    assert taken == [SHARDED] * AGAIN + [DRIVER] * AGAIN


def test_a_place_is_tried_once_where_rows_are_fewer_than_was_estimated() -> None:
    """They are too few to say what the place costs; else every batch would try it, at up to twice the time."""
    learning, taken = Tuner(), []
    for place, seconds in ((SHARDED, 1.0), (DRIVER, 1.5)):
        learning.measured({"Q": (place, MILLION)}, seconds)
    for _ in range(AGAIN + 20):
        taken.append(learning.choose("Q", MILLION, (DRIVER, SHARDED)))
        learning.measured({"Q": (taken[-1], WORTH - 1)}, 0.1)
    assert taken == [SHARDED] * AGAIN + [DRIVER] + [SHARDED] * 19


def test_steps_that_were_done_together_share_the_time_as_expected() -> None:
    learning = Tuner()
    learning.measured({"A": (DRIVER, 3 * MILLION), "B": (DRIVER, MILLION), "C": (DRIVER, 10)}, 8.0)
    a, b = learning.seconds("A", DRIVER, 3 * MILLION), learning.seconds("B", DRIVER, MILLION)
    assert a + b == pytest.approx(8.0, rel=0.1)
    assert a / b == pytest.approx(3, rel=0.1)


def test_recorded_choices_are_taken_again() -> None:
    recorded = {7: (Choice("Q", SHARDED, ""), Choice("R", Way("sharded", 2, 2), ""))}
    learning = Tuner(recorded=recorded)
    learning.begin(7, {})
    assert learning.choose("Q", 1, (DRIVER, SHARDED)) == SHARDED
    assert learning.choose("R", 1, (DRIVER, SHARDED)) == SHARDED  # there, in as many tasks as there are now
    assert [choice.because for choice in learning.choices] == ["as recorded"] * 2
    learning.begin(8, {})
    assert learning.choose("Q", 1, (DRIVER, SHARDED)) == DRIVER
    assert learning.choices == []


def test_what_others_have_chosen_counts_where_nothing_is_recorded_of_the_batch() -> None:
    first, second, other = (Choice(step, Way(PORTIONS, 3), "it took 3 s") for step in ("Q, shard 1", "Q, shard 2", "R"))
    assert str(first) == "Q, shard 1: 3 portions (it took 3 s)"
    learning = Tuner(recorded={7: (second, other)})
    learning.begin(7, {})
    (again,) = learning.take([first], ["Q, shard 1", "Q, shard 2"])
    assert (again.step, again.way, again.because) == ("Q, shard 2", second.way, "as recorded")
    learning.begin(8, {})
    assert learning.take([first], ["Q, shard 1", "Q, shard 2"]) == [first]
    assert learning.choices == [first]


def test_a_tuner_goes_on_with_what_it_has_learnt_and_learns_nonsense_anew() -> None:
    learning = Tuner()
    assert learning.to_json() is None
    learning.begin(1, {})
    learning.measured({"Q": (DRIVER, MILLION)}, 5.0)
    learning.ended({"S": [SourceFile("a", 100, 1)]}, {"S": 700}, 1.0)
    chosen = learning.choose("Q", MILLION, (DRIVER, SHARDED))
    again = Tuner()
    again.load(learning.to_json())
    assert again.seconds("Q", DRIVER, MILLION) == pytest.approx(learning.seconds("Q", DRIVER, MILLION), rel=1e-3)
    assert again.rows_of("S", 1000) == 7000
    assert choices_of(learning.to_json()) == learning.choices
    assert [choice.way for choice in learning.choices] == [chosen]
    for nonsense in (None, 3, {"fits": 1}, {"fits": [["Q", "moon", []]], "rows a byte": {"S": "x"}}, {"choices": [1]}):
        fresh = Tuner()
        fresh.load(nonsense)
        assert fresh.to_json() is None
        assert choices_of(nonsense) == []


# --- how long a batch takes


def files(*rows: int) -> list[SourceFile]:
    return [SourceFile(str(number), size, number) for number, size in enumerate(rows)]


def test_a_batch_has_as_many_files_as_its_time_allows() -> None:
    learning = Tuner(seconds_a_batch=0.5)
    learning.assume("S", 1.0)
    learning.assume("T", 1.0)
    for _ in range(9):
        learning.ended({"S": files(MILLION)}, {"S": MILLION}, 1.0)  # a second for a million rows
    some = {"S": files(*[100_000] * 20), "T": files(*[100_000] * 20)}
    taken = learning.share_of(some, 1)
    assert sum(file.size for part in taken.values() for file in part) <= 500_000
    assert [len(part) for part in taken.values()] == [2, 2]
    assert all(tuple(some[name][: len(part)]) == part for name, part in taken.items())
    assert [len(part) for part in learning.share_of({"S": files(10 * MILLION), "T": []}, 1).values()] == [1, 0]
    assert len(Tuner().share_of(some, 1)["S"]) == 20


def test_how_many_files_a_batch_takes_is_a_choice_where_it_has_to_be_done_in_time() -> None:
    some = {"S": files(100_000, 100_000), "T": [], "U": files(50_000)}
    timed = Tuner(seconds_a_batch=0.5)
    for name in some:
        timed.assume(name, 1.0)
    timed.begin(3, some)
    assert list(map(str, timed.choices)) == [
        "files of S: 2 files (0.26 s expected for 250,000 rows, 0.5 s wanted)",
        "files of U: 1 file (0.26 s expected for 250,000 rows, 0.5 s wanted)",
    ]
    assert [Choice.from_json(choice.to_json()) for choice in timed.choices] == timed.choices
    again = Tuner(recorded={3: timed.choices})
    more = {"S": files(*[100_000] * 5), "T": files(1), "U": files(1, 2)}
    assert {name: len(part) for name, part in again.share_of(more, 3).items()} == {"S": 2, "T": 0, "U": 1}
    assert again.share_of(more, 4) == {name: tuple(part) for name, part in more.items()}
    again.begin(3, some)
    assert [str(choice.way) for choice in again.choices] == ["2 files", "1 file"]
    assert {choice.because for choice in again.choices} == {"as recorded"}
    again.begin(4, some)
    assert again.choices == []
    nonsense = Tuner(recorded={3: [Choice("files of S", Way(FILES, -2), "")]})
    assert {len(part) for part in nonsense.share_of(more, 3).values()} == {0}


def test_files_with_hardly_any_row_do_not_let_the_next_batch_take_everything(tmp_path: Path) -> None:
    learning = Tuner(seconds_a_batch=0.1)
    learning.ended({"S": files(1000)}, {"S": 100_000}, 0.05)
    for rows, least in ((0, 50_000), (1, 30_000), (0, 18_000)):
        learning.ended({"S": files(1000)}, {"S": rows}, 0.001)
        assert least < learning.rows_of("S", 1000) <= 60_000
    stream = tg.stream("S", "k bigint, t bigint", progress="t")
    for number, count in enumerate((0, *[60_000] * 4)):  # the first file, by which the others are judged, is empty
        times = range(count * number, count * number + count)
        frame = pl.DataFrame({"k": [0] * count, "t": list(times)}, schema={"k": pl.Int64(), "t": pl.Int64()})
        frame.write_parquet(tmp_path / f"{number}.parquet")
    fresh = Tuner(seconds_a_batch=0.1)
    with tg.program(Q=stream).session({"S": parquet(tmp_path, delay=0)}) as session:
        estimate(fresh, session._setup.unread())
    assert fresh.rows_of("S", (tmp_path / "4.parquet").stat().st_size) > 50_000


def test_a_time_that_no_batch_can_keep_does_not_end_in_batches_of_a_row() -> None:
    learning = Tuner(seconds_a_batch=0.001)
    for rows in (10_000, 1_000_000) * 5:
        learning.ended({}, {"S": rows}, 0.01 + rows / 1e8)  # ten milliseconds to start
    most = learning.most_rows()
    assert most is not None
    assert most > 200_000
    assert learning.time_left(most) == 0


def test_rows_wait_for_as_long_as_their_batch_leaves_of_its_time() -> None:
    assert Tuner().time_left(10) is None
    learning = Tuner(seconds_a_batch=0.5)
    for _ in range(9):
        learning.ended({}, {"S": MILLION}, 0.4)
    assert learning.time_left(MILLION) == pytest.approx(0.1, abs=0.05)
    assert learning.time_left(10 * MILLION) == 0
    stream = tg.stream("S", "k bigint, t bigint", progress="t")
    sink = {"Q": tg.callback(lambda table, batch: None)}
    for tune, batch_time, expected in (("throughput", None, 0.1), ("throughput", "3s", 3.0), ("9s", "3s", 3.0)):
        opened = tg.program(Q=stream).session(sinks=sink, tune=tune)
        with opened as session, session.background(batch_time=batch_time) as run:
            assert run._due_at()[1] == pytest.approx(expected)
    with tg.program(Q=stream).session(sinks=sink, tune="9s") as session, session.background(batch_rows=10) as run:
        rows, seconds = run._due_at()
        assert (rows, 8 < seconds < 9) == (10, True)


def test_a_batch_takes_all_that_waits_where_starting_it_takes_most_of_its_time() -> None:
    stream = tg.stream("S", "k bigint, t bigint", progress="t")
    sink = {"Q": tg.callback(lambda table, batch: None)}
    for tune, start, expected in (("1ms", 0.01, 1 << 30), ("19ms", 0.01, 1 << 30), ("21ms", 0.01, 11 * MILLION // 10)):
        with tg.program(Q=stream).session(sinks=sink, tune=tune) as session:
            learning = session._runner.executor.tuner
            for rows in (10_000, MILLION) * 5:
                learning.ended({}, {"S": rows}, start + rows / 1e8)
            with session.background(batch_rows=1 << 30) as run:
                assert run._due_at()[0] == pytest.approx(expected, rel=0.2)
    with tg.program(Q=stream).session(sinks=sink) as session, session.background(batch_rows=70) as run:
        assert run._due_at()[0] == 70


def test_a_queue_that_is_always_full_is_emptied_in_batches_that_are_large() -> None:
    """Where all batches have one number of rows, nothing says what starting one costs, and what a row does."""
    learning, taken = Tuner(seconds_a_batch=0.001), list[int]()
    for _ in range(400):
        limit = learning.most_rows() if learning.has_time else None
        rows = 1000 if not taken else min(100_000, limit or 100_000)
        learning.ended({}, {"S": rows}, 0.004 + rows * 5e-8)
        taken.append(rows)
    assert sum(taken) > 0.8 * 100_000 * len(taken)


@pytest.mark.parametrize("tune", ["soon", "", -1, None, "0s", {1: "driver"}, {"1": ()}, 3.5])
def test_what_is_nothing_to_tune_for_is_refused(tune: Any) -> None:
    with pytest.raises(tg.QueryError, match="TG401"):
        program().session(tune=tune)


# --- results never depend on choices


class AnyChoice(Tuner):
    """Chooses at random in every batch, whatever anything costs."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(seconds_a_batch=1.0)
        self.rng = rng
        self.taken: set[str] = set()

    def choose(self, step: str, rows: int, ways: Sequence[Way]) -> Way:
        del rows
        way = self.rng.choice(ways)
        self.choices.append(Choice(step, way, "at random"))
        self.taken.add(str(way))
        return way

    def take(self, found: Sequence[Choice], steps: Collection[str]) -> list[Choice]:
        """Into how many portions shards are divided."""
        del found
        some = [step for step in steps if self.rng.random() < 0.3]
        return super().take([Choice(step, Way(PORTIONS, self.rng.randint(1, 4)), "at random") for step in some], steps)

    def share_of(self, files: Mapping[str, Sequence[SourceFile]], seq: int) -> dict[str, tuple[SourceFile, ...]]:
        del seq
        return {name: tuple(some[: self.rng.randint(1, max(1, len(some)))]) for name, some in files.items()}


def outcome(folder: Path) -> dict[str, list[str]]:
    given = {"R": parquet(folder, delay=5, bounded=True, policy="quarantine")}
    with Session(program().facts, sources=given, options=RunOptions(threads=3)) as session:
        session.process()
        return {name: sorted(map(str, session.results(name))) for name in NAMES}


@pytest.mark.parametrize("seed", shards(6))
def test_results_are_the_same_whatever_is_chosen(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    written(tmp_path / "in", rng, 9, 3)
    alone = outcome(tmp_path / "in")
    assert all(alone.values())
    tuners: list[AnyChoice] = []

    def tuner_for(tune: object) -> Tuner:
        del tune
        tuners.append(AnyChoice(rng))
        return tuners[-1]

    monkeypatch.setattr(run_options, "tuner_for", tuner_for)
    assert outcome(tmp_path / "in") == alone


def test_a_run_tells_what_it_chose_and_may_be_told_to_choose_it_again(tmp_path: Path) -> None:
    written(tmp_path / "in", random.Random(1), 9, 0)
    given = {"R": parquet(tmp_path / "in", per_batch=3, delay=5, bounded=True)}
    told = {seq: (Choice("ingest R", Way("here"), ""),) for seq in (1, 3)}
    with program().session(given, threads=3, tune=told, checkpoint=tmp_path / "state") as session:
        reports = session.process()
    chosen = {report.seq: [choice.way.place for choice in report.choices] for report in reports}
    assert chosen[1] == chosen[3] == ["here"]
    assert chosen[2] == []
    assert metrics.Metrics.of(reports[0]).choices == {"ingest R": "here (as recorded)"}


def test_the_files_of_each_batch_are_those_of_the_run_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tuner, "most_rows", lambda self: None if self.seconds_a_batch is None else 30)
    written(tmp_path / "in", random.Random(4), 9, 0)
    given = {"R": parquet(tmp_path / "in", delay=5, bounded=True)}

    def taken(**options: Any) -> tuple[list[int], dict[int, Sequence[Choice]]]:
        with program().session(given, **options) as session:
            reports = session.process()
        return [report.counts["R"].rows_in for report in reports], {report.seq: report.choices for report in reports}

    rows, recorded = taken(tune="1s")
    assert len(rows) > 3
    assert {choice.step for choices in recorded.values() for choice in choices} == {"files of R"}
    again, told = taken(tune=recorded)
    assert again == rows
    assert {seq: [choice.way for choice in choices] for seq, choices in told.items()} == {
        seq: [choice.way for choice in choices] for seq, choices in recorded.items()
    }
    assert taken()[0] == [sum(rows)]


def test_a_run_that_is_started_again_goes_on_with_what_it_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner, "WORTH", 0)
    written(tmp_path / "in", random.Random(2), 9, 0)
    given = {"R": parquet(tmp_path / "in", per_batch=3, delay=5, bounded=True)}
    with program().session(given, threads=3, checkpoint=tmp_path / "state") as session:
        (first, *_) = session.process()
        learnt = session._runner.executor.tuner.to_json()
    assert [choice.step for choice in first.choices] == ["ingest R"]
    with program().session(given, threads=3, checkpoint=tmp_path / "state") as session:
        again = session._runner.executor.tuner
    way = Way("here", 3, 3)
    assert again.seconds("ingest R", way, MILLION) != Tuner().seconds("ingest R", way, MILLION)
    before = Tuner()
    before.load(learnt)
    assert again.seconds("ingest R", way, MILLION) == pytest.approx(before.seconds("ingest R", way, MILLION), rel=1e-3)
