"""When matches are known: the figures of the TPStream papers on latency, and what is kept meanwhile."""

from __future__ import annotations

import time

import numpy as np

import tidegate as tg
from benchmarks.pattern_runs import Rows, at_once, pattern_of, periods
from benchmarks.situations_data import GAP, SITUATION, booleans
from tidegate.algebra.ordered.match.node import Match
from tidegate.analysis.ordered.match.bounds import situation_bounds

RATIOS = {"2:1": 0.5, "4:3": 0.75, "1:1": 1.0, "2:3": 1.5, "1:2": 2.0}
RATES = (1_000_000, 100_000, 10_000, 1_000, 100, 10, 1)
#: How long events are gathered before an increment, in seconds.
GATHERED = 0.01


def ahead(seconds: int) -> tuple[Rows, bool]:
    """By relation and ratio of durations, how much earlier than its last end a match is detected; whether always by the
    rule.
    """
    rows, right = [("relation", *(f"A:B = {ratio}" for ratio in RATIOS), "is")], True
    for relation in ("before", "meets", "overlaps", "starts", "during"):
        gains = []
        for ratio in RATIOS.values():
            long = int(SITUATION[0] * ratio), int(SITUATION[1] * ratio)
            both = periods(seconds, 1), periods(seconds, 2, long, GAP)
            certain, over = (
                at_once(
                    both, pattern_of({(0, 1): relation}, 2, within=1000 if not final else 1000 + long[1], final=final)
                )
                for final in (False, True)
            )
            (laid, earliest), (_, final_) = certain, over
            b = earliest.situation[:, 1]
            detected = laid.ts[b] if relation in ("before", "meets") else laid.te[earliest.situation[:, 0]]
            right = right and bool((earliest.detected == detected).all())
            by_pair = dict(zip(map(tuple, final_.situation.tolist()), final_.detected.tolist(), strict=True))
            ends = np.array([by_pair[pair] for pair in map(tuple, earliest.situation.tolist())], dtype=np.int64)
            right = right and bool((ends == laid.te[b]).all())
            gains.append(f"{(ends - earliest.detected).mean():.1f} s")
        rows.append((relation, *gains, "B's length" if relation in ("before", "meets") else "B's end - A's end"))
    return rows, right


def in_wall_time(window: int) -> Rows:
    """Result latency by the rate of events: waiting for events that settle the match, for the increment, and for its
    work.
    """
    rows: Rows = [("events/s", "event latency, final", "event latency, earliest", "gathering", "processing")]
    events = booleans(window + 60_000, 1)
    session = tg.program(Found=disconnected(window)).session()

    def take(first: int, count: int) -> float:
        start = time.process_time()
        session.push("E", events[first : first + count])
        session.advance("E", {"time": first + count - 1})
        session.step()
        return time.process_time() - start

    take(0, window)
    first, waited = window, _remaining()
    for rate in RATES:
        count = max(1, int(rate * GATHERED))
        took = []
        for _ in range(5):
            took.append(take(first, count))
            first += count
        gathering = (count - 1) / rate / 2
        rows.append(
            (f"{rate:,}", _duration(waited / rate), "0", _duration(gathering), _duration(sorted(took)[len(took) // 2]))
        )
    session.close()
    return rows


def disconnected(window: int, at_least: int | None = None) -> tg.Relation:
    """The pattern over boolean attributes; `at_least` is how long situations last, where that is said."""
    stream = tg.stream("E", "key bigint, time bigint, a boolean, b boolean, c boolean", progress="time")
    on = stream.partition_by("key").derive(
        A=tg.situation(stream.a, at_least=at_least),
        B=tg.situation(stream.b, at_least=at_least),
        C=tg.situation(stream.c, at_least=at_least),
    )
    return on.match(on.A.before(on.B), on.B.overlaps(on.C), within=window)


def most_kept(window: int) -> int:
    """How many situations of the pattern a partition holds at most that are over, by the analysis."""
    node = disconnected(window, at_least=SITUATION[0])._node
    assert isinstance(node, Match)
    return int(sum(bound.most for bound in situation_bounds(node)))


def _remaining() -> float:
    """Events between those that settle `B overlaps C` and the end of C, on average."""
    both = periods(2_000_000, 3), periods(2_000_000, 4)
    laid, found = at_once(both, pattern_of({(0, 1): "overlaps"}, 2, within=1000))
    return float((laid.te[found.situation[:, 1]] - found.detected).mean())


def _duration(seconds: float) -> str:
    if seconds == 0:
        return "0"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds * 1e9:,.0f} ns"
