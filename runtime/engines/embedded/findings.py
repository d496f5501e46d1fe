"""What a session has found and how it stands: results, counts, progress, rows that are kept or set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.algebra.time import Extended
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.batch.status import Status, asked, standing
from tidegate.runtime.connectors.sinks import Sink
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.reading_results import read_results
from tidegate.runtime.engines.setup import Setup
from tidegate.runtime.ingest.quarantine import kept_rows
from tidegate.runtime.inspect.why_answer import Why
from tidegate.runtime.plan.progress import check_known


@dataclass(frozen=True, slots=True)
class Findings:
    """Reads what the last batch left; `sinks` says which results are kept where."""

    setup: Setup
    runner: Runner
    executor: EmbeddedExecutor
    sinks: Mapping[str, Sink]

    def status(self, *, closed: bool, waiting: Mapping[str, int]) -> Status:
        last, where = self.setup.checkpoint.manifest, self.setup.checkpoint.store.where
        title = f"session of {asked(self.setup.plan)} in {where}, after batch {last.seq if last else 0}"
        return standing(title + (", closed" if closed else ""), self.runner, waiting)

    def results(self, name: str) -> pa.RecordBatchReader:
        checkpoint = self.setup.checkpoint
        return read_results(self.setup.plan, checkpoint.store, checkpoint.manifest, self.sinks, name)

    def orders(self, name: str) -> list[str]:
        plan = self.setup.plan
        check_known(name, plan.facts.streams, "result")
        return self.executor.operators.orders([query.name for query in plan.queries if query.stream == name])

    def progress(self) -> dict[str, dict[str, Extended]]:
        return {name: dict(values) for name, values in self.runner.state.progress.queries.items()}

    def why(self, name: str | None, row: Mapping[str, Any] | None) -> Why:
        from tidegate.runtime.inspect.why import why  # of contexts, too, and few sessions are asked

        checkpoint = self.setup.checkpoint
        return why(self.setup.plan.facts, checkpoint.manifest, name, row, checkpoint.store)

    def quarantine(self) -> pa.RecordBatchReader:
        return kept_rows(self.setup.checkpoint.store, self.setup.checkpoint.manifest)
