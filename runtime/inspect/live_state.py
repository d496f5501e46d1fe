"""Live state against what was proven of it: per buffer the most rows held, and the time whose rows bound them (rules
R17, R34).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import QueryFacts
from tidegate.analysis.state.bounds import Bound, Bounded
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.plan.steps import Buffer, Plan

Instant = tuple[str, str]
"""A stream and an attribute on which it progresses."""


@dataclass(frozen=True, slots=True)
class StateUse:
    """One buffer over a run: the most rows after any batch, and the proof that bounds them.

    Of the readers it is the one that keeps rows longest: as many rows are live at most as the stream accepts within
    `span` ticks, the bound's horizon plus skew and lag as measured in the run, plus how far a schedule let the reader
    be behind, each as often as it has matches in the bound's `tables`. `span` None: nothing bounds them; infinite: rows
    have waited for a stream that has not begun, or for the reader's first evaluation.

    Where rows fold, those that are settled are no more than their classes, `settled` at most, and the bound is of the
    others, `unsettled` at most. With garbage collection other than "exact" a buffer also holds rows that are dead but
    not yet collected, and settled rows that wait to be folded.
    """

    buffer: str
    stream: str
    readers: tuple[str, ...]
    most: int
    bound: Bound
    span: Extended | None
    settled: int
    unsettled: int


def state_use(plan: Plan, reports: Sequence[BatchReport]) -> list[StateUse]:
    """What every buffer held in a run, given the reports of all its batches in order."""
    uses = []
    for buffer in plan.buffers:
        readers = tuple(dict.fromkeys(query.name for query, _ in plan.readers(buffer)))
        bound, span = _longest(plan, buffer, reports)
        live = [report.live_rows[buffer.id] for report in reports]
        settled = [report.settled[buffer.id].rows if buffer.id in report.settled else 0 for report in reports]
        others = [rows - some for rows, some in zip(live, settled, strict=True)]
        most, most_settled, most_others = (max(rows, default=0) for rows in (live, settled, others))
        uses.append(StateUse(buffer.id, buffer.stream.name, readers, most, bound, span, most_settled, most_others))
    return uses


def _longest(plan: Plan, buffer: Buffer, reports: Sequence[BatchReport]) -> tuple[Bound, Extended | None]:
    """The reader that keeps rows longest; one that nothing bounds, if there is one. Of a buffer that folds, rows that
    are not settled.
    """
    folding = bool(reports) and all(buffer.id in report.settled for report in reports)
    spans: list[tuple[Extended, Bound]] = []
    for query, leaf in plan.readers(buffer):
        assert leaf.occurrence is not None
        bound = leaf.occurrence.proved(folding=folding)
        if not isinstance(bound, Bounded):
            return bound, None
        skew, lag = _skew_and_lag(query.facts, bound, reports, leaf.occurrence.stream.progress)
        behind = max((query.facts.behind(r.bounds, r.progress[query.name]) for r in reports), default=0)
        spans.append((bound.span(skew, lag, behind), bound))
    span, bound = max(spans, key=lambda pair: pair[0])
    return bound, span


def _skew_and_lag(
    facts: QueryFacts, bound: Bounded, reports: Sequence[BatchReport], progress: Sequence[str]
) -> tuple[Extended, Extended]:
    """After any batch: how far a row is ahead of its stream's progress, and how far apart the query's inputs are, with
    its stream, which the query may read without waiting for it.

    A stream that has ended counts with its greatest instant; while rows wait for one that has not begun, nothing bounds
    them.
    """
    inputs = {
        (clause.stream, y) for f in facts.propagation.values() for clause in f.clauses for y, _ in clause.distances
    }
    of_stream = {(bound.stream, y) for y in progress}
    greatest: dict[Instant, int] = {}
    skew: Extended = 0
    lag: Extended = 0
    for report in reports:
        for key, value in report.greatest.items():
            greatest[key] = max(value, greatest.get(key, value))
        arrived = {key: greatest.get(key, INF) if (b := report.bounds[key]) == INF else b for key in inputs | of_stream}
        if all(report.bounds[key] == INF for key in inputs):
            continue  # everything has passed and nothing is kept
        if not any(key in greatest for key in of_stream):
            continue
        known = [arrived[key] for key in inputs | of_stream if arrived[key] != INF]
        lag = max(lag, INF if -INF in known else max(known) - min(known)) if known else lag
        skew = max([skew, *(greatest[key] - arrived[key] for key in of_stream if key in greatest)])
    return skew, lag
