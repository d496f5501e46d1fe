"""Live rows with and without partner and kill rule: an anti-join with a deadline by key, and a pattern of three
intervals. And those of a stream that meets a static table in which a row has many matches.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import polars as pl

import tidegate as tg
from benchmarks.figures import PAIRS, STATIC, STATIC_MATCHES, STATIC_ROWS, Figure, compared, declared
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.plan.steps import PurgeMode

orders = tg.stream("Orders", "id bigint, t bigint", progress="t")
payments = tg.stream("Payments", "id bigint, t bigint", progress="t")
intervals = {
    name: tg.stream(name, "k bigint, ts bigint, te bigint", progress="te", relations=lambda r: r.ts < r.te)
    for name in "ABC"
}


def deadline() -> tg.Program:
    """Orders that are not paid within 80,000 ticks."""
    o, p = orders.as_("o"), payments.as_("p")
    return tg.program(Unpaid=o.anti_join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 80_000).select(id=o.id, t=o.t))


def pattern() -> tg.Program:
    """A overlaps B, B overlaps C, all of one key, B at most 50 ticks long, within 80,000 ticks."""
    a, b, c = (intervals[name].as_(name.lower()) for name in "ABC")
    first = a.join(b, a.k == b.k, a.ts < b.ts, b.ts < a.te, a.te < b.te, b.te <= b.ts + 50)
    whole = first.join(c, b.k == c.k, b.ts < c.ts, c.ts < b.te, b.te < c.te, c.te <= a.ts + 80_000)
    return tg.program(Match=whole.select(k=a.k, start=a.ts, end=c.te))


def paid(count: int) -> dict[str, pl.DataFrame]:
    """One order a tick; of twenty, nineteen are paid within 100 ticks."""
    rng = np.random.default_rng(7)
    t = np.arange(count)
    ordered = pl.DataFrame({"id": t, "t": t})
    late = ordered.with_columns(t=pl.col("t") + rng.integers(0, 100, count)).filter(pl.Series(rng.random(count) < 0.95))
    return {"Orders": ordered, "Payments": late.filter(pl.col("t") < count).sort("t")}


def situations(count: int) -> dict[str, pl.DataFrame]:
    """One interval a tick and stream, of 1 to 50 ticks, with one of 100 keys."""
    rng = np.random.default_rng(11)
    found = {}
    for name in "ABC":
        ts = np.arange(count)
        frame = pl.DataFrame({"k": rng.integers(0, 100, count), "ts": ts, "te": ts + rng.integers(1, 51, count)})
        found[name] = frame.filter(pl.col("te") < count).sort("te")
    return found


def freed_state(count: int, batches: int) -> tuple[list[Figure], bool]:
    """What either mode holds and takes; whether both give the same results."""
    figures, equal = [], True
    for label, program, given in (
        ("deadline by key", deadline(), paid(count)),
        ("three intervals", pattern(), situations(count)),
    ):
        most, times = [], []
        for _ in range(PAIRS):
            off, planned = (_run(program, given, count, batches, mode) for mode in ("off", "planned"))
            if not off[2].equals(planned[2]):
                print(f"  {label}: RESULTS DIFFER with partner and kill rule")
                equal = False
            most.append(max(planned[0]) / max(off[0]))
            times.append(planned[1] / off[1])
        figures += [
            declared(f"{label}: live rows, mean, by keep alone", float(np.mean(off[0]))),
            declared(f"{label}: live rows, mean, with partner and kill rule", float(np.mean(planned[0]))),
            declared(f"{label}: live rows at most, with the rules / without", statistics.median(most)),
            compared(f"{label}: time, with the rules / without", times),
        ]
    return figures, equal


def static_tables(batches: int = 20) -> list[Figure]:
    """Rows that a batch stores of a stream whose rows have many matches in a table, none of them final; and what it
    costs beside a table in which they have one."""
    figures = []
    for matches in STATIC:
        ratios = []
        for _ in range(PAIRS):
            (live, cpu), (_, least) = (_stored(matches, rows, batches) for rows in (STATIC_MATCHES, 1))
            ratios.append(cpu / least)
        title = f"static table, {STATIC_MATCHES:,} {matches}"
        figures += [
            declared(f"{title}: live rows of {STATIC_ROWS}", live),
            compared(f"{title}: CPU of a batch that stores rows, beside one match", ratios),
        ]
        for figure in figures[-2:]:
            print(figure.line(), flush=True)
    return figures


def _stored(matches: str, rows: int, batches: int) -> tuple[int, float]:
    """Live rows after the first batch, and the median CPU of a batch in seconds."""
    o, n = orders.as_("o"), tg.table("Table", "id bigint, lo bigint, hi bigint, part bigint").as_("n")
    conditions = [n.id == o.id] if matches == STATIC[0] else [n.lo <= o.t, o.t < n.hi]
    program = tg.program(Found=o.join(n, *conditions).select(t=o.t, part=n.part))
    table = pl.DataFrame({"id": [1] * rows, "lo": [0] * rows, "hi": [1 << 40] * rows, "part": range(rows)})
    live, cpu = 0, []
    waiting = {"Orders": tg.source(None, delay=1 << 41)}
    with Session(program.facts, sources=waiting, statics={"Table": table}) as session:
        for number in range(batches):
            t = np.arange(number * STATIC_ROWS, (number + 1) * STATIC_ROWS)
            session.push("Orders", pl.DataFrame({"id": np.ones(STATIC_ROWS, dtype=np.int64), "t": t}))
            start = time.process_time()
            report = session.step()
            cpu.append(time.process_time() - start)
            live = live or sum(report.live_rows.values())
    return live, statistics.median(cpu)


def _run(
    program: tg.Program, given: dict[str, pl.DataFrame], count: int, batches: int, purging: PurgeMode
) -> tuple[list[int], float, pl.DataFrame]:
    """Live rows after each batch, seconds, and the sorted result."""
    live = []
    start = time.perf_counter()
    with Session(program.facts, options=RunOptions(purging=purging)) as session:
        for number in range(batches):
            low, high = count * number // batches, count * (number + 1) // batches
            for name, rows in given.items():
                instant = "t" if "t" in rows.columns else "te"
                session.push(name, rows.filter(pl.col(instant).is_between(low, high - 1)))
                session.advance(name, {instant: high - 1})
            live.append(sum(session.step().live_rows.values()))
        session.finish()
        session.step()
        (result,) = (query.stream for query in session._plan.queries)
        found = pl.DataFrame(session.table(result))
    return live, time.perf_counter() - start, found.sort(found.columns)
