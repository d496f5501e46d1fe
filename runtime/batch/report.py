"""What one batch did, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.time import Extended
from tidegate.runtime.batch.status import Line, Status, asides, fates, finals, joined, kept, unreadables
from tidegate.runtime.plan.folding.fold import SettledRows
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.inputs.positions import SparkBatch
from tidegate.runtime.state.manifest import SourceCounts
from tidegate.runtime.tuning.choices import Choice

if TYPE_CHECKING:
    from tidegate.runtime.batch.executor import Increment, IngestResult

KEPT_REPORTS: Final = 100
"""Reports that a run keeps, of its last batches. One takes 3 to 20 KB, so a run of months can not keep all; `on_batch`
sees each.
"""


@checked_calls
@dataclass(frozen=True, slots=True, repr=False)
class BatchReport:
    """What one batch did: rows by fate per source, new rows per query, progress, live rows per buffer, time per step.

    Instants and progress are ticks: microseconds since 1970-01-01 UTC of timestamps, days of dates, numbers of integer
    time; `clock` is in microseconds too. Printed, and in a notebook, a report is the first of these figures, a line
    each.

    Examples:
        >>> report = program.run(inputs).reports[0]
        >>> report.seq, report.results
        (1, {'Unpaid': 2})
        >>> report.counts["Payments"]
        SourceCounts(rows_in=3, accepted=2, rejected={'null': 1})
    """

    seq: int
    counts: Mapping[str, SourceCounts]
    results: Mapping[str, int]
    progress: Mapping[str, Mapping[str, Extended]]
    bounds: Mapping[tuple[str, str], Extended]
    """How far every stream that a query reads has arrived, by attribute."""
    greatest: Mapping[tuple[str, str], int]
    """The greatest instants that the batch brought, likewise."""
    live_rows: Mapping[str, int]
    """Rows per buffer and, as "Q: situations", those that the query Q keeps, open ones and such as may be matched; as
    "Q: state" what an operator of a user's keeps.
    """
    seconds: Mapping[str, float]
    places: Mapping[str, str]
    """Where a query's increment was evaluated."""
    freed: Mapping[str, int]
    live_bytes: Mapping[str, int]
    live_ranges: Mapping[tuple[str, str], tuple[int, int]]
    """The least and greatest instants that a buffer holds."""
    clock: int
    spark: SparkBatch | None
    read: Mapping[str, tuple[int, int]]
    """Rows and bytes of the segments that a query's increment read."""
    waiting: Mapping[str, str]
    """Of results that the schedule skipped why."""
    limits: Limits | None
    """What decided on `places`; None: embedded, where there is one."""
    plan: Plan = field(repr=False, compare=False)
    interleaved: bool = False
    """Whether slices of the input reached into each other, so that it was read a second time, event by event."""
    set_aside: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Per query and reason, rows of its evaluation without a value, sums that do not fit, and tied events."""
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Per stream, how many files were set aside as they cannot be read."""
    settled: Mapping[str, SettledRows] = field(default_factory=dict)
    """Of buffers whose rows are folded, how many are settled, and between which instants the others are."""
    choices: tuple[Choice, ...] = ()
    """How steps were done that can be done in several ways, and why so: what the run had measured of their costs."""

    def __repr__(self) -> str:
        return str(self.status())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return self.status()._repr_html_()

    def status(self) -> Status:
        """What a reader asks first: rows by their fate, results and up to where they are final, and what is kept.

        Examples:
            >>> print(program.run(inputs).reports[0].status())
            batch 1, ... ms
              in    Orders    3 rows, accepted
                    Payments  3 rows, 2 accepted, 1 rejected: 1 null
              out   Unpaid    2 rows, complete
              kept  Orders    0 rows
                    Payments  0 rows
        """
        final = finals(self.plan, self.progress)
        out = (
            Line(
                "out",
                name,
                joined([count_of(self.results.get(name, 0), "row"), final.get(name, ""), self._skipped(name)]),
            )
            for name in final
        )
        return Status(
            f"batch {self.seq}, {1000 * sum(self.seconds.values()):,.0f} ms",
            (
                *fates("in", self.counts),
                *unreadables(self.unreadable),
                *out,
                *asides(self.set_aside),
                *kept(self.plan, self.live_rows),
            ),
        )

    def _skipped(self, query: str) -> str:
        """Of a query that was not evaluated why."""
        return f"not evaluated: {self.waiting[query]}" if query in self.waiting else ""


class Reports(list[BatchReport]):
    """Reports of batches, oldest first. Printed, they are one after the other."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<div>{''.join(report._repr_html_() for report in self)}</div>"


def greatest_instants(
    plan: Plan, ingested: Mapping[str, IngestResult], increments: Mapping[str, Increment]
) -> dict[tuple[str, str], int]:
    """The greatest instants of new rows: of inputs as they were accepted, of results as other queries store them."""
    greatest = {(name, a): value for name, result in ingested.items() for a, value in result.greatest.items()}
    for stored in (increment.segments for increment in increments.values()):
        for buffer in plan.buffers:
            if buffer.partial is None:
                for segment in stored.get(buffer.id, ()):
                    for attribute, (_, high) in segment.bounds.items():
                        key = buffer.stream.name, attribute
                        greatest[key] = max(high, greatest.get(key, high))
    return greatest
