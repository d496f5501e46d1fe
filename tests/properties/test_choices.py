"""No result depends on what a run chooses: random programs, with choices at random in every batch, on both engines.

On Spark these are who takes in files and how many of them, who evaluates an increment, into how many portions its
shards are divided, and who writes segments anew. Its tasks run in this process, each as one of several workers, which
are lost now and then.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.properties.drive import Broken
from tests.properties.engines import little_work
from tests.properties.sparks import check_batches, given_statics, written_sources
from tests.runtime.inline_workers import InlineRun, Workers
from tests.runtime.test_tuning import AnyChoice
from tests.shards import shards
from tests.strategies.folds import random_folding_case
from tests.strategies.operators import random_operator_case
from tests.strategies.over import random_over_case
from tests.strategies.programs import Case, random_case
from tests.strategies.situations import random_situation_case
from tests.strategies.streams import random_script, show_script
from tests.thresholds import drawn, small
from tidegate.algebra.errors import QueryError
from tidegate.algebra.rewrites import rewrite_program
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import Sink, parquet_sink
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines import options as run_options
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.eval import ordered_shards, portions
from tidegate.runtime.engines.spark.executor import SparkExecutor
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.state.store.local import LocalStore

SHARDS, WORKERS = 8, 3
#: So many programs are tried, and more, up to the most, until all that there is to choose has been chosen.
PROGRAMS, MOST = 4, 10
MAKES: dict[str, Callable[[int], Case]] = {
    "relations": random_case,
    "situations": random_situation_case,
    "operators": random_operator_case,
    "over": random_over_case,
    "folds": random_folding_case,
}
Run = Callable[[ProgramFacts, dict[str, Source], dict[str, Sink], Case, Path, random.Random], list[BatchReport]]


def valid(make: Callable[[int], Case], seed: int) -> tuple[Case, ProgramFacts]:
    """The first valid case from a seed on of which a query can be evaluated by shards."""
    while True:
        with suppress(QueryError):
            case = make(seed)
            facts = analyse(case.program)
            plan = lower(facts, optimise=rewrite_program)
            if any(query.shard_key is not None for query in plan.queries):
                return case, facts
        seed += 1


def check(run: Run, make: Callable[[int], Case], seed: int, folder: Path) -> list[BatchReport]:
    """A run of a random program over files, of which every other says how late rows may be."""
    case, facts = valid(make, seed)
    rng, script = random.Random(f"choices {seed}"), random_script(case, 0)
    sources = written_sources(case, script, folder / "in", None, delayed=rng.random() < 0.5)
    sinks: dict[str, Sink] = {name: parquet_sink(folder / "out" / name) for name in case.program.result_names}
    try:
        with small(*drawn(rng, "spark", "files")), little_work(rng, looks=rng.random() < 0.5):
            reports = run(facts, sources, sinks, case, folder / "checkpoint", rng)
        check_batches(case, facts, folder, reports)
    except Broken as broken:
        pytest.fail(f"{broken}\n{case}\n{show_script(script)}")
    return reports


@pytest.fixture
def tuners(monkeypatch: pytest.MonkeyPatch) -> list[AnyChoice]:
    """Those of the runs that a test begins, in order."""
    made: list[AnyChoice] = []

    def tuner_for(tune: object) -> AnyChoice:
        del tune
        made.append(AnyChoice(random.Random(f"tuner {len(made)}")))
        return made[-1]

    monkeypatch.setattr(run_options, "tuner_for", tuner_for)
    return made


@pytest.mark.parametrize("kind", MAKES)
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_results_on_workers_are_the_complete_ones_whatever_is_chosen(
    kind: str, shard: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuners: list[AnyChoice]
) -> None:
    met: Counter[str] = Counter()
    portion_of, operator_portion = portions.portion_of, ordered_shards._evaluate_portion

    def counted(*given: Any) -> pl.DataFrame:
        met["portion"] += 1
        return portion_of(*given)

    def counted_too(*given: Any) -> list[str]:
        met["operator's portion"] += 1
        return operator_portion(*given)

    def rewritten(executor: SparkExecutor, batch: Batch, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        there = {
            number: one for number, one in enumerate(rewrites) if random.Random(f"{batch.seq} {number}").random() < 0.7
        }
        here = {number: one for number, one in enumerate(rewrites) if number not in there}
        done = dict(zip(here, executor.local.rewrite(batch, list(here.values())), strict=True))
        done |= executor._rewrite_on_spark(batch, there) if there else {}
        met["collected"] += len(there)
        return [done[number] for number in range(len(rewrites))]

    monkeypatch.setattr(portions, "portion_of", counted)
    monkeypatch.setattr(ordered_shards, "_evaluate_portion", counted_too)
    monkeypatch.setattr(SparkExecutor, "rewrite", rewritten)

    def run(
        facts: ProgramFacts,
        sources: dict[str, Source],
        sinks: dict[str, Sink],
        case: Case,
        checkpoint: Path,
        rng: random.Random,
    ) -> list[BatchReport]:
        workers = Workers(monkeypatch, WORKERS, choose=lambda number: rng.randrange(WORKERS))
        options = RunOptions(collect_garbage=rng.choice(("amortised", "exact")))
        begun = InlineRun.of(workers, facts, sources, sinks, checkpoint, given_statics(case), Limits(), options)
        reports = [begun.batch()]
        while begun.run.selection.is_left(begun.run.setup.directories):
            if rng.random() < 0.3:
                workers.lose(rng.randrange(WORKERS))
            reports.append(begun.batch())
        begun.run.close()
        return reports

    also = {"relations": "portion", "situations": "operator's portion", "folds": "collected"}
    wanted = {"driver", "workers", "sharded", *([also[kind]] if kind in also else [])}
    for number in range(MOST):
        for report in check(run, MAKES[kind], 1000 * shard + 100 * number, tmp_path / str(number)):
            met.update(report.places.values())
        met.update(way.partition(",")[0] for tuner in tuners for way in tuner.taken)
        if number + 1 >= PROGRAMS and wanted <= (+met).keys():
            return
    assert wanted <= (+met).keys()


@pytest.mark.parametrize("kind", MAKES)
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_results_in_one_process_are_the_complete_ones_whatever_is_chosen(
    kind: str, shard: int, tmp_path: Path, tuners: list[AnyChoice]
) -> None:
    def run(
        facts: ProgramFacts,
        sources: dict[str, Source],
        sinks: dict[str, Sink],
        case: Case,
        checkpoint: Path,
        rng: random.Random,
    ) -> list[BatchReport]:
        del rng
        options, statics = RunOptions(threads=3), given_statics(case)
        with Session(facts, LocalStore(checkpoint), sources, statics, sinks, options) as session:
            return list(session.process())

    taken: set[str] = set()
    for number in range(MOST):
        check(run, MAKES[kind], 1000 * shard + 100 * number, tmp_path / str(number))
        taken = set[str]().union(*(tuner.taken for tuner in tuners))
        if number + 1 >= PROGRAMS and len(taken) > 1:
            break
    assert {way.partition(",")[0] for way in taken} == {"here"}
    assert len(taken) > 1
