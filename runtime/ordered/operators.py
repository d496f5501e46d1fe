"""The ordered operators of a run: in memory from batch to batch, and as files of the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final

import polars as pl
import pyarrow as pa

from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import BoolArray
from tidegate.runtime.eval.job import Job
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.state import Kept, keep_part, part_of, read_state, whole_state
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.state.store.interface import FileRef, Store

#: States that had fewer rows before the batch are written at once: to begin it takes as long.
MANY: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class KnownOperator:
    """An operator in memory, the state of the checkpoint that equals it, and what was written of it."""

    state: OperatorFiles
    kept: Kept
    operator: Operator
    reached: Extended
    """Up to where it has read its events."""


@dataclass(slots=True)
class Operators:
    """The operators by query, each with the state of the checkpoint that equals it.

    With a `writer` large states are written by its thread, while other steps of the batch go on.
    """

    store: Store
    writer: ThreadPoolExecutor | None = None
    known: dict[str, KnownOperator] = field(default_factory=dict)
    _writing: list[Future[OperatorFiles]] = field(default_factory=list)

    def of(self, job: Job) -> Operator:
        """The operator of a query as the last committed batch left it."""
        # Kernels take a second to load, and programs without such operators need none.
        from tidegate.runtime.ordered.table import load_operator, start_operator

        ordered = job.query.ordered
        assert ordered is not None
        if job.state is None:
            return start_operator(ordered)
        known = self.known.get(job.query.name)
        if known is not None and known.state == job.state:
            return known.operator
        described = start_operator(ordered).described()
        tables = read_state(self.store, job.query.name, job.state, described)
        return load_operator(ordered, tables, job.old[ordered.time])

    def needs(self, query: str, leaf: int, rows: pl.DataFrame, state: OperatorFiles | None) -> BoolArray | None:
        """Which of these stored rows of a leaf the operator of a query may still need, if it is in memory as it is in
        this state; None: all of them.
        """
        known = self.known.get(query)
        if known is None or known.state != state:
            return None
        return known.operator.needs(leaf, rows, known.reached)

    def orders(self, queries: Sequence[str]) -> list[str]:
        """The evaluation orders of these queries' patterns, and the reasons."""
        lines: list[str] = []
        for name in queries:
            lines += self.known[name].operator.orders() if name in self.known else ()
        return lines

    def keep(self, batch: Batch, job: Job, operator: Operator) -> OperatorFiles | Future[OperatorFiles]:
        """Writes the state of an operator after this batch, or begins to."""
        name = job.query.name
        known = self.known.pop(name, None)  # what it was before is gone once this has begun
        assert job.query.ordered is not None
        reached = job.new[job.query.ordered.time]
        before, renewal = None, None
        if known is not None and known.state == job.state:
            before, renewal = known.kept.part, known.kept.renewal
        elif job.state is not None:
            before = part_of(name, job.state)

        def write(table: pa.Table) -> FileRef:
            return batch.write_state(name, table)

        def keep() -> OperatorFiles:
            kept = keep_part(operator, before, write, self.store.read_table, renewal, slices=True)
            state = whole_state(kept.rows, kept.part)
            self.known[name] = KnownOperator(state, kept, operator, reached)
            return state

        # How many rows it has now is known once they are in order, which the thread does.
        rows = 0 if job.state is None else sum(kept.rows for kept in job.state.kept)
        if self.writer is None or rows < MANY:
            return keep()
        self._writing.append(self.writer.submit(keep))
        return self._writing[-1]

    def wait(self) -> None:
        """Returns once nothing is written any more."""
        wait(self._writing)
        self._writing.clear()
