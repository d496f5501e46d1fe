"""What a batch did, as plain values to be counted and drawn, and the hooks that hand it on: `on_batch=log()`, …

program.session(on_batch=metrics.log())            # a line of JSON per batch, to the logger `tidegate`
program.start(spark, on_batch=metrics.each(metrics.log(), metrics.prometheus()), ...)
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from tidegate.algebra.diagnostics.tracebacks import trimmed
from tidegate.algebra.time import INF, Extended, format_instant
from tidegate.algebra.types import Kind
from tidegate.analysis.progress.propagation import Latencies
from tidegate.analysis.state.bounds import Bounded
from tidegate.runtime.batch.instants import plain_instant
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.plan.steps import Buffer, Leaf, Plan, QueryPlan
from tidegate.runtime.state.inputs.positions import SparkBatch
from tidegate.runtime.state.manifest import SourceCounts, added

OnBatch = Callable[[BatchReport], None]
Amount = TypeVar("Amount", int, float, SourceCounts)
_SECOND: Final = 1_000_000
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Timeline:
    """How far a stream or result has arrived on one progressing attribute; `reached` is in ticks.

    Examples:
        >>> from tidegate import metrics
        >>> session = tg.program(Fast=Fast).session()
        >>> session.advance("Cars", {"time": 6})
        >>> [(one.name, one.value) for one in metrics.Metrics.of(session.step()).progress]
        [('Cars.time', 6.0), ('Fast.te', 6.0)]
    """

    stream: str
    attribute: str
    kind: Kind
    reached: Extended

    @property
    def name(self) -> str:
        """The stream and its attribute.

        Examples:
            >>> from tidegate import metrics
            >>> metrics.Timeline("Payments", "paid", payments.schema["paid"].type.kind, 0).name
            'Payments.paid'
        """
        return f"{self.stream}.{self.attribute}"

    @property
    def value(self) -> float:
        """As a number to draw: seconds since 1970, of integer time the number itself, or an infinity.

        Examples:
            >>> from tidegate import metrics
            >>> metrics.Timeline("Payments", "paid", payments.schema["paid"].type.kind, 90_000_000).value
            90.0
        """
        return quantity(self.reached, self.kind)

    def behind(self, clock: int) -> float | None:
        """Seconds from progress to the clock (microseconds), 0 at the end; None before the beginning, and for integers.

        Examples:
            >>> from tidegate import metrics
            >>> reached = metrics.Timeline("Payments", "paid", payments.schema["paid"].type.kind, 60_000_000)
            >>> reached.behind(90_000_000)
            30.0
        """
        if self.reached == -INF or self.kind is Kind.BIGINT:
            return None
        return 0.0 if self.reached == INF else clock / _SECOND - self.value


@dataclass(frozen=True, slots=True)
class BufferUse:
    """What a buffer holds after a batch, against what is proved of it (rule R17).

    `extent` is the distance between the oldest and the newest stored instant of `attribute`, in seconds, of integer
    time a number. With exact garbage collection it is less than `bound`: the horizon, plus how far the newest row is
    ahead of the slowest input of the queries that read the buffer (its skew and the inputs' lag), plus how far a
    schedule lets such a query be behind. `bound` None: nothing bounds it, or not before every input has begun and every
    query was evaluated once. `attribute` None: what is kept depends on several instants. Situations that an operator
    keeps are counted here too.

    Where rows fold, `settled` says how many are settled (rule R34): one of each class, which may be of any age, and
    those that wait to be folded. `extent` and `bound` are then those of the others.

    Examples:
        >>> from tidegate import metrics
        >>> session = program.session()
        >>> session.push("Orders", inputs["Orders"][:2])
        >>> use = metrics.Metrics.of(session.step()).state[0]
        >>> use.buffer, use.rows, use.extent  # from 12:00 to 12:07
        ('Orders#0', 2, 420.0)
    """

    buffer: str
    rows: int
    bytes: int
    attribute: str | None = None
    extent: float | None = None
    bound: float | None = None
    settled: int | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """A batch in numbers: rows by fate, new results, progress per timeline, state against its bound, seconds per step.

    Examples:
        >>> from tidegate import metrics
        >>> told = []
        >>> results = program.run(inputs, on_batch=lambda report: told.append(metrics.Metrics.of(report)))
        >>> told[0].batch, told[0].results, told[0].rows["Payments"].rejected
        (1, {'Unpaid': 2}, {'null': 1})
    """

    batch: int
    clock: int
    rows: Mapping[str, SourceCounts]
    results: Mapping[str, int]
    progress: tuple[Timeline, ...]
    state: tuple[BufferUse, ...]
    seconds: Mapping[str, float]
    places: Mapping[str, str]
    freed: Mapping[str, int]
    spark: SparkBatch | None = None
    set_aside: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Files of each stream that were set aside as they cannot be read."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """How steps were done that can be done in several ways, and why so."""

    @classmethod
    def of(cls, report: BatchReport) -> Metrics:
        """The numbers of a batch.

        Examples:
            >>> from tidegate import metrics
            >>> metrics.Metrics.of(program.run(inputs).reports[0]).results
            {'Unpaid': 2}
        """
        plan = report.plan
        streams = {stream.name: stream for stream in plan.facts.program.inputs} | dict(plan.facts.streams)
        progress = tuple(
            Timeline(stream, a, streams[stream].schema[a].type.kind, reached)
            for (stream, a), reached in report.bounds.items()
        )
        buffers = {buffer.id: buffer for buffer in plan.buffers}
        state = tuple(
            _use(plan, report, buffers[name]) if name in buffers else BufferUse(name, rows, report.live_bytes[name])
            for name, rows in report.live_rows.items()
        )
        return cls(
            report.seq,
            report.clock,
            report.counts,
            report.results,
            progress,
            state,
            report.seconds,
            report.places,
            report.freed,
            report.spark,
            report.set_aside,
            report.unreadable,
            {choice.step: choice.text for choice in report.choices},
        )

    def and_then(self, later: Metrics) -> Metrics:
        """This batch and the next ones as one: rows and seconds of all, progress and state after the last.

        Examples:
            >>> from tidegate import metrics
            >>> report = program.run(inputs).reports[0]
            >>> metrics.Metrics.of(report).and_then(metrics.Metrics.of(report)).results
            {'Unpaid': 4}
        """
        return replace(
            later,
            rows=_added(self.rows, later.rows),
            results=_added(self.results, later.results),
            seconds=_added(self.seconds, later.seconds),
            places={**self.places, **later.places},
            freed=_added(self.freed, later.freed),
            set_aside=added(self.set_aside, later.set_aside),
            unreadable=_added(self.unreadable, later.unreadable),
            choices={**self.choices, **later.choices},
        )

    @property
    def duration(self) -> float:
        """Seconds from ingest to commit.

        Examples:
            >>> from tidegate import metrics
            >>> metrics.Metrics.of(program.run(inputs).reports[0]).duration < 60
            True
        """
        return sum(self.seconds.values())

    def to_dict(self) -> dict[str, object]:
        """The same as plain values for JSON: instants as ISO text, the infinities as text.

        Examples:
            >>> from tidegate import metrics
            >>> metrics.Metrics.of(program.run(inputs).reports[0]).to_dict()["rows"]["Payments"]
            {'in': 3, 'accepted': 2, 'rejected': {'null': 1}, 'punctuations': 0}
        """
        return {
            "batch": self.batch,
            "clock": format_instant(self.clock),
            "rows": {
                name: {
                    "in": counts.rows_in,
                    "accepted": counts.accepted,
                    "rejected": dict(counts.rejected),
                    "punctuations": counts.punctuations,
                }
                for name, counts in self.rows.items()
            },
            "unreadable": dict(self.unreadable),
            "results": dict(self.results),
            "set_aside": {query: dict(reasons) for query, reasons in self.set_aside.items()},
            "progress": {reached.name: plain_instant(reached.reached, reached.kind) for reached in self.progress},
            "state": {use.buffer: _plain(use) for use in self.state},
            "freed": dict(self.freed),
            "seconds": {step: round(seconds, 6) for step, seconds in self.seconds.items()},
            "places": dict(self.places),
            "choices": dict(self.choices),
        }


@trimmed
def log(logger: logging.Logger | None = None, level: int = logging.INFO) -> OnBatch:
    """A hook that logs each batch as one line of JSON; the `Metrics` themselves are in the record's `metrics`.

    Without a logger it is the one named `tidegate`.

    Examples:
        >>> import logging, sys
        >>> from tidegate import metrics
        >>> shop = logging.Logger("shop")
        >>> shop.addHandler(logging.StreamHandler(sys.stdout))
        >>> results = program.run(inputs, on_batch=metrics.log(shop))
        {"event": "batch", "batch": 1, ... "results": {"Unpaid": 2}, ...}
    """
    chosen = logger or logging.getLogger("tidegate")

    def on_batch(report: BatchReport) -> None:
        if chosen.isEnabledFor(level):
            metrics = Metrics.of(report)
            chosen.log(level, "%s", json.dumps({"event": "batch", **metrics.to_dict()}), extra={"metrics": metrics})

    return on_batch


@trimmed
def each(*hooks: OnBatch) -> OnBatch:
    """All of these hooks as one.

    Examples:
        >>> from tidegate import metrics
        >>> both = metrics.each(lambda report: print(report.seq), lambda report: print(report.results))
        >>> results = program.run(inputs, on_batch=both)
        1
        {'Unpaid': 2}
    """

    def on_batch(report: BatchReport) -> None:
        for hook in hooks:
            hook(report)

    return on_batch


def quantity(ticks: Extended, kind: Kind) -> float:
    """Ticks of a timeline, or a difference of such, in seconds; of integer time the number itself."""
    match kind:
        case Kind.TIMESTAMP:
            return ticks / _SECOND
        case Kind.DATE:
            return float(ticks * _DAY)
        case _:
            return float(ticks)


def _plain(use: BufferUse) -> dict[str, object]:
    """The fields but the name; of rows that do not fold not how many are settled."""
    values: dict[str, object] = {"rows": use.rows, "bytes": use.bytes, "extent": use.extent, "bound": use.bound}
    return values if use.settled is None else {**values, "settled": use.settled}


def _use(plan: Plan, report: BatchReport, buffer: Buffer) -> BufferUse:
    rows, size = report.live_rows[buffer.id], report.live_bytes[buffer.id]
    attribute, folded = _measured(buffer), report.settled.get(buffer.id)
    settled = None if folded is None else folded.rows
    if attribute is None:
        return BufferUse(buffer.id, rows, size, settled=settled)
    stored = report.live_ranges.get((buffer.id, attribute)) if folded is None else folded.others.get(attribute)
    if stored is None:
        return BufferUse(buffer.id, rows, size, attribute, 0.0, 0.0, settled)
    oldest, newest = stored
    bounds = [_bound(query, leaf, newest, report) for query, leaf in plan.readers(buffer)]
    kind = buffer.stored[attribute].type.kind
    known = [bound for bound in bounds if bound is not None]
    bound = quantity(max(known), kind) if len(known) == len(bounds) else None
    return BufferUse(buffer.id, rows, size, attribute, quantity(newest - oldest, kind), bound, settled)


def _measured(buffer: Buffer) -> str | None:
    """The one instant on which all that is kept follows from progress, if there is one."""
    names = buffer.instants if buffer.partial is not None else buffer.stream.progress
    return names[0] if len(names) == 1 else None


def _bound(query: QueryPlan, leaf: Leaf, newest: int, report: BatchReport) -> int | None:
    """How far at most what the leaf keeps reaches back from the newest row, in ticks."""
    assert leaf.buffer is not None
    if leaf.buffer.partial is not None:
        ((promised, _, shift),) = leaf.outputs[:1]
        latencies = Latencies.among({promised: query.facts.propagation[promised]})
        horizon: Extended = shift + latencies.of[promised]
    else:
        assert leaf.occurrence is not None
        proved = leaf.occurrence.proved(folding=leaf.buffer.id in report.settled)
        if not isinstance(proved, Bounded):
            return None
        horizon = proved.horizon
    clauses = [clause for function in query.facts.propagation.values() for clause in function.clauses]
    reached = [report.bounds[c.stream, y] for c in clauses for y, distance in c.distances if distance != INF]
    # An input that has ended holds nothing up; one that has not begun holds up everything.
    slowest = min((b for b in reached if b != INF), default=INF)
    if horizon == -INF or slowest == INF:
        return 0
    behind = query.facts.behind(report.bounds, report.progress[query.name])
    if isinstance(slowest, float) or behind == INF:
        return None
    return max(0, int(horizon) + newest - slowest + int(behind))


def _added(amounts: Mapping[str, Amount], more: Mapping[str, Amount]) -> dict[str, Amount]:
    """The sums of two amounts by name."""
    return {**amounts, **{name: amounts[name] + amount if name in amounts else amount for name, amount in more.items()}}
