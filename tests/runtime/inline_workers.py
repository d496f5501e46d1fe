"""The Spark engine without Spark: its tasks run in this process, each as one of several workers.

What goes to a task and comes back is pickled as Spark does it. A worker has the memory that the others do not have.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import Sink
from tidegate.runtime.connectors.sources import Source, sources_given
from tidegate.runtime.engines.clock import read_clock
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import prepare
from tidegate.runtime.engines.spark import engine
from tidegate.runtime.engines.spark.run import SparkRun
from tidegate.runtime.engines.spark.tasks import held, running
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.state.inputs.positions import Offer, SparkBatch
from tidegate.runtime.state.store.local import LocalStore


@dataclass
class Workers:
    """Stands for Spark. `choose` says which worker takes a task, given how many tasks there were before."""

    monkeypatch: pytest.MonkeyPatch
    tasks: int = 3
    choose: Callable[[int], int] = lambda number: 0
    memories: dict[int, OrderedDict[str, held.HeldRun]] = field(default_factory=dict)
    number: int = 0
    conf: Any = field(default_factory=lambda: SimpleNamespace(get=lambda name: "2", set=lambda name, value: None))

    read: Any = field(default_factory=lambda: SimpleNamespace(parquet=lambda path: None))

    def __post_init__(self) -> None:
        for name, instead in (
            ("union_of", lambda *given: (None, {})),
            ("own_session", lambda spark: spark),
            ("ship_library", lambda context: None),
        ):
            self.monkeypatch.setattr(engine, name, instead)
        self.monkeypatch.setattr(running, "collected", lambda context, *given: context.workers.collected(*given))

    @property
    def sparkContext(self) -> Any:  # Spark's name
        return SimpleNamespace(
            workers=self,
            defaultParallelism=self.tasks,
            getLocalProperty=lambda name: None,
            setLocalProperty=lambda name, value: None,
            setJobDescription=lambda what: None,
        )

    def collected(self, work: Callable[[Iterable[str]], Iterator[str]], texts: Sequence[str]) -> list[str]:
        function = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
        return [line for text in texts for line in self.run(function, text)]

    def run(self, function: bytes, text: str) -> list[str]:
        worker = self.choose(self.number)
        self.number += 1
        self.monkeypatch.setattr(held, "_RUNS", self.memories.setdefault(worker, OrderedDict()))
        return list(pickle.loads(function)(iter([text])))  # noqa: S301 - as Spark does

    def lose(self, worker: int) -> None:
        self.memories.pop(worker, None)


@dataclass
class InlineRun:
    """A program at work, batch after batch."""

    run: SparkRun
    batches: int = 0

    @classmethod
    def of(
        cls,
        workers: Workers,
        facts: ProgramFacts,
        sources: Mapping[str, Source],
        sinks: Mapping[str, Sink],
        checkpoint: Path,
        statics: Mapping[str, Any] | None = None,
        limits: Limits = Limits(0),
        options: RunOptions = RunOptions(),
    ) -> InlineRun:
        """In the driver nothing is evaluated, unless `limits` say so."""
        store, spark = LocalStore(checkpoint), workers
        setup = prepare(facts, store, sources_given(sources), statics or {}, sinks, options, {})
        run, _ = engine._run_of(spark, setup, store, limits, options, lasts=False, at_once=False)  # type: ignore[arg-type]  # a part of Spark
        return cls(run)

    def batch(self) -> BatchReport:
        """One more batch, or the one again that has failed."""
        spark_batch = SparkBatch("inline", self.batches)
        self.run._batch(Offer(spark=spark_batch), spark_batch, read_clock(self.run.options.clock), ())
        self.batches += 1
        return self.run.reports[-1]

    def all(self) -> list[BatchReport]:
        """Batches until all files are read."""
        reports = [self.batch()]
        while self.run.selection.is_left(self.run.setup.directories):
            reports.append(self.batch())
        self.run.close()
        return reports
