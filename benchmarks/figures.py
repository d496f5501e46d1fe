"""The figures of `make bench` with their targets, and the one table that it ends with, printed or written into a
page.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

BEGIN, END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"
#: What stands in the table for a figure of a section that was left out.
UNMEASURED = "not in this run"
#: How often the two sides of a comparison run at least, in turn: A B A B A B.
PAIRS = 3
QUERIES = ("tumbling", "interval join", "silence", "frames")
#: Queries of which memory is measured: `wide join` keeps every row of its left side.
HELD = (*QUERIES, "wide join")
#: Queries whose state partner and kill rule make small.
PURGED = ("deadline by key", "three intervals")
#: States that only grow: rows that are live in the end, rows of a batch.
STALLS = ((1_000_000, 10_000), (25_000_000, 100_000))
#: Queries of whose state garbage collection can free nothing, and one whose rows are folded: how many keys are live in
#: the end.
STALLED = {"part payments": STALLS, "undelivered": STALLS, "latest price": ((500_000, 10_000), (2_000_000, 10_000))}
#: Windows whose keys or panes come and go: keys, and rows of a batch.
PASSING = {
    "sessions of text keys": ((100_000, 2_500), (400_000, 10_000)),
    "hopping windows of 60 panes": ((5_000, 2_500), (10_000, 10_000)),
}
#: What is merged as a run goes on, and rows of a batch: results in a directory that is compacted, and rejected rows.
MERGED = ("results that are compacted", "rows that are set aside")
MERGED_ROWS = (1_000, 20_000)
#: Matches that a row has in a static table of so many rows: by an equal key, or as it lies in ranges that overlap.
STATIC_MATCHES, STATIC = 1_000, ("matches of a key", "ranges around a row")
STATIC_ROWS = 100
#: Joins of which a batch is measured beside few live rows and many: with as many keys as rows, and with as many as the
#: few have.
LOOK_UPS = (
    "interval join, a row a key",
    "anti-join, a row a key",
    "semi-join, a row a key",
    "anti-join, 1,000 keys",
    "semi-join, 1,000 keys",
    "narrow join, 1,000 keys",
)
LIVE_ROWS = (1000, 1_000_000)
#: How many queries share a batch on disk, and how many of them have directories for results.
DURABLE, SINKS = (1, 5, 20, 100), 5
#: Row patterns, and the rows a second of a core that they are to reach: the first as this project set out, the others
#: as DuckDB reports for queries that are alike.
OPEN_MATCHES = ("next row", "any", "next", "contiguous")
SEQUENCES = ("three steps", "scan", "partitions", "quantifiers", "navigation")
SEQUENCE_RATES = {"three steps": 10e6, "partitions": 2.2e6}
#: DuckDB's own queries: how many rows each has, and the rows a second that it reports, for each of 16 cores.
DUCKDB_PATTERNS = {
    "scan": (2_000_000, 0.9e6),  # 0.146 s
    "partitions": (2_000_000, 2.2e6),  # 0.057 s
    "quantifier": (500_000, 0.43e6),  # 0.072 s
    "navigation": (200_000, 0.23e6),  # 0.055 s
}
#: What needs an environment of its own, which cannot be made everywhere.
PEER_FIGURE = "row pattern, scan of 20,000 rows: rows/s, embedded / pandas-match-recognize"
SEQUENCE_ON_SPARK = "row pattern, three steps, Spark, from commit to commit, 1,000,000 rows a batch"
#: What stands in the name of a figure for two ways to run queries in contexts.
SIDES = "CPU, context-independent / context-aware"
#: Numbers of queries in contexts, and in each of two; roads whose cars report; shares of a stream, in percent, in which
#: queries are suspended; numbers of windows, and where these begin.
IN_CONTEXTS, PER_CONTEXT, ROADS, SUSPENDED, WINDOWS = (5, 10, 20), (10, 20), (3, 5, 7), (0, 50, 75, 90, 95), (2, 8, 30)
WINDOW_BEGINS = ("anywhere", "early", "late")
#: Shares of candidate transitions, in percent, that ask for what is so already, by the speed from which a car is fast:
#: speeds are anything from 0 to 99, and there are two thousand cars.
IN_VAIN = {50: 50.0, 90: 5.0, 99: 0.0}
#: Numbers of contexts that overlap, seconds by which those of two minutes do, and queries that stand in each.
OVERLAPPING, OVERLAPS, WORKLOADS = (5, 15, 30, 45), (0, 40, 80, 110), (2, 4, 10)
#: Shares of a stream, in percent, in which queries on Spark are suspended.
SUSPENDED_ON_SPARK = (0, 90)
#: Roads of Linear Road at its peak, and seconds of a batch.
LINEAR_ROAD = ((16, 1), (64, 5))
#: Minutes around the peak that are fed at their own times, and those of a short search for the number of roads.
PEAK_MINUTES, SEARCH_MINUTES = 2, 7
#: Queries that look back, and windows, and the numbers of keys that they run with; and those that Spark's own streaming
#: has a word for.
LOOK_BACK = (
    "as-of join",
    "previous value",
    "running total",
    "versions",
    "first of each key",
    "sessions",
    "windows that hop",
    "greatest three",
)
LOOK_BACK_KEYS = (1_000, 100_000)
LOOK_BACK_NATIVE = ("sessions", "windows that hop", "first of each key", "greatest three")
#: Rows on either side of a look-up of one key, and how the last row before is asked for.
ONE_KEY = 16_000
ONE_KEY_FORMS = ("as-of join", "left join and last")
#: Aggregates of windows that hop, and by the number of keys those of panes that a window has.
PANED = ("count and sum", "least and greatest", "mean of doubles", "last by another order")
PANES: Mapping[int, tuple[int, ...]] = {1: (1, 1_000, 1_000_000), 100: (1, 1_000)}
#: Values of frames by range that move with each row.
MOVED = ("least", "mean of doubles")
#: Values of frames that move with each row, of which a batch has few beside those that are kept.
MOVED_LITTLE = (
    "least",
    "mean of doubles",
    "least by rows",
    "mean of doubles by rows",
    "first in order of time",
    "last by another order",
    "greatest, a tick ahead",
)
#: Experiments of the ISEQ paper.
INTERVAL_LISTS = ("share of starts", "length", "interval length", "density")
#: Ratios of its executions that it tells in numbers.
INTERVAL_TIMES = {
    "share of starts: time, stacks / naive, no starts": 0.4,
    "share of starts: time, stacks / naive, from 80 % of starts on, worst": 1.12,
    "share of starts: time, punctuated / naive, worst": 1.0,
    "length: time, punctuated / stacks, shortest": 0.55,
    "length: time, punctuated / stacks, longest": 0.34,
}
#: Queries over situations, and the numbers of keys that they run with.
SITUATIONS = ("Q1", "Q2")
KEYS = (1, 100, 100_000)
#: How many times as fast as batch Polars the embedded engine is to be, on one core.
BATCH = {"Q2": 3.0}
#: How many times as fast as Spark SQL in batch a pattern on Spark is to be, by query and rows a batch; and of how many
#: keys.
SQL = {("Q1", 5_000_000): 5.0, ("Q1", 1_250_000): 2.0, ("Q2", 5_000_000): 5.0, ("Q2", 1_250_000): 2.0}
SQL_KEYS = 1000
#: The numbers of keys for which it is compared with Spark's own state functions.
STATE_KEYS = (1000, 100_000)
#: Events a second that patterns are to reach in process on one core, by query and number of keys.
RATES = {("Q1", 1): 40e6, ("Q1", 100): 50e6, ("Q1", 100_000): 30e6, ("Q2", 100): 50e6}
#: The numbers of executors that are compared, and the queries: of patterns the keys.
EXECUTORS = (1, 2)
ON_EXECUTORS = {"Q1, 1,000 keys": 1000, "Q1, no key": 1, "tumbling": None, "interval join": None, "silence": None}
#: Queries that are to be as quick in a hundred batches as Polars is in one.
AS_POLARS = ("tumbling", "frames")
#: The numbers of cores for which the speed-up of a batch on Spark is computed.
SCALED_TO = (4, 8, 16, 64)
#: Rows a batch of a pattern on Spark, and the events a second that it is to reach.
BATCH_ROWS = {5_000_000: 20e6, 1_000_000: 10e6, 200_000: 4e6, 50_000: 1.5e6}
#: A load that changes: names of phases, events, and events a second (None: as many as can be).
PHASES = (
    ("as many as can be", 10_000_000, None),
    ("1M/s", 10_000_000, 1e6),
    ("500,000/s", 10_000_000, 5e5),
    ("100,000/s", 3_000_000, 1e5),
    ("500,000/s again", 10_000_000, 5e5),
    ("1M/s again", 10_000_000, 1e6),
    ("as many as can be again", 10_000_000, None),
)
#: What sessions are tuned for meanwhile, one to be as quick as can be and one that has time; and the fixed waits for a
#: batch that stand beside them.
QUICK, SPARING, FIXED_WAITS = "1ms", "50ms", ("0ms", "1ms", "10ms", "25ms", "40ms", "200ms")
#: The numbers of threads that are compared in process.
THREADS = (1, 2)
#: How many times as fast as native Structured Streaming Spark is to be.
NATIVE = {"tumbling": 2.0, "interval join": 1.5}


#: Batches of one file each after which one more is to cost what the tenth did, in process and on Spark.
FILE_BATCHES = (1000, 20_000)
SPARK_FILE_BATCHES = (1000, 20_000)


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure is measured in, and the most or least that it is to be, where that is asked for.

    `better` is for a comparison without a target: whether more is better or less.
    """

    unit: str = ""
    most: float | None = None
    least: float | None = None
    better: Literal["more", "less"] | None = None

    def worst(self, values: Sequence[float]) -> float:
        """The one of several measurements that is furthest from what the target asks for."""
        if self.most is not None or (self.least is None and self.better == "less"):
            return max(values)
        return min(values)

    def __str__(self) -> str:
        if self.most is not None:
            return f"≤ {self.most:,g}"
        return "" if self.least is None else f"≥ {self.least:,g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; `most` or `least` is the target, where there is one; `detail` is what the value was made
    of.
    """

    name: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None
    detail: str = ""

    @property
    def target(self) -> Target:
        return Target(self.unit, self.most, self.least)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target.most is not None:
            return self.value <= self.target.most
        return None if self.target.least is None else self.value >= self.target.least

    @property
    def measured(self) -> str:
        digits = 0 if self.value >= 1000 else 1 if self.value >= 100 else 2
        return f"{self.value:,.{digits}f} {self.target.unit}".rstrip()

    @property
    def verdict(self) -> str:
        return {None: "", True: "met", False: "missed"}[self.met]

    def line(self) -> str:
        detail = f"  ({self.detail})" if self.detail else ""
        return f"{self.name:<70}{self.measured:>20}{self.target!s:>10}  {self.verdict:<7}{detail}".rstrip()


def _declared() -> Iterator[tuple[str, Target]]:
    yield "the README's example, from start to end", Target("ms", most=800)
    yield "the README's example, from start to end, no kernel compiled", Target("ms", most=3000)
    yield "analysis of a query over six streams", Target("ms", most=50)
    yield "analysis of a chain of 30 streams", Target("ms", most=1000)
    yield "opening of a query over six streams", Target("ms")
    yield "opening of a chain of 30 streams", Target("ms")
    yield "opening of a chain of 50 streams", Target("ms", 200)
    yield "explanation of a pattern of 16 situations", Target("ms", 200)
    yield "explanation of a chain of 100 streams", Target("ms")
    yield "explanation of a chain of 100 streams: time / half as many streams", Target(most=2.5)
    for query in QUERIES:
        yield f"{query}, embedded", Target("rows/s")
        yield f"{query}, Polars in one batch", Target("rows/s")
        yield f"{query}: time, embedded / (2 x Polars + 10 ms a batch)", Target(most=1)
        if query in AS_POLARS:
            yield f"{query}: rows/s, embedded / Polars", Target(least=1)
    yield "grouping, five rows for two groups, one core", Target("rows/s", least=4e6)
    yield "grouping, five rows for two groups, one core: embedded / Polars", Target(better="more")
    for query in HELD:
        yield f"{query}, embedded: live state at most", Target("MiB")
        yield f"{query}, embedded: peak memory / (2 x live state + 1 GiB)", Target(most=1)
    for shape, sizes in STALLED.items():
        for rows, _ in sizes:
            yield f"{shape}, {rows:,} live rows: longest batch / median", Target(most=3)
            yield f"{shape}, {rows:,} live rows: CPU a batch, default / off", Target(better="less")
            yield f"{shape}, {rows:,} live rows: peak memory / (2 x live state + 1 GiB)", Target(most=1)
    for shape, sizes in PASSING.items():
        for keys, _ in sizes:
            yield f"{shape}, {keys:,} keys: longest batch / median", Target(most=3)
    for shape in MERGED:
        for rows in MERGED_ROWS:
            yield f"{shape}, {rows:,} a batch: longest batch / median", Target(most=3)
    for shape in LOOK_UPS:
        yield f"{shape}: CPU a batch, {LIVE_ROWS[-1]:,} live rows / {LIVE_ROWS[0]:,}", Target(most=1.5)
    yield "a batch of 50 rows, five queries, embedded", Target("ms", most=10)
    yield "a batch of 50 events, one pattern, embedded", Target("ms", most=5)
    for count in DURABLE:
        yield f"a batch of 50 rows, queries: {count}, in memory", Target("ms")
        yield f"a batch of 50 rows, queries: {count}, on disk", Target("ms", most=8 if count == 5 else None)
    yield "a batch of 50 rows on disk: each further query, at most", Target("ms", most=0.5)
    yield f"a batch of 50 rows, queries: {SINKS}, on disk, results to directories", Target("ms")
    yield "in the background, two threads that push", Target("rows/s")
    yield "a consumer ten times too slow: memory of 1,500,000 further rows / their bytes", Target(most=0.1)
    for phase, _, _ in PHASES:
        yield f"changing load, {phase}: p50, tuned for {QUICK} / best fixed wait", Target(most=1.1)
    yield f"changing load, tuned for {SPARING}: p99 / that time, worst phase", Target(most=1.1)
    yield (
        f"changing load, tuned for {SPARING}: cores / the least of a fixed wait that keeps it, worst phase",
        Target(most=1.1),
    )
    for where in (*(f"{query}, in memory" for query in QUERIES), "all four, with a checkpoint", "all four, Spark"):
        yield f"{where}: rows read, late / early batches", Target(most=1.1)
        yield f"{where}: bytes read, late / early batches", Target(most=1.1)
        yield f"{where}: time, late / early batches", Target(most=1.5)
    for engine, marks in (("embedded", FILE_BATCHES), ("Spark", SPARK_FILE_BATCHES)):
        for mark in marks:
            yield f"a file a batch, {engine}: CPU, batch {mark:,} / batch 10", Target(most=1.2)
            yield f"a file a batch, {engine}: rows read, batch {mark:,} / batch 10", Target(most=1.1)
            yield f"a file a batch, {engine}: bytes read, batch {mark:,} / batch 10", Target(most=1.1)
            if engine == "embedded":
                yield f"a file a batch, embedded: longest batch / median, before batch {mark:,}", Target(most=3)
    yield f"a file a batch, embedded: CPU of a start after {max(FILE_BATCHES):,} files", Target("ms", most=1000)
    yield f"a file a batch of one name, archived: CPU, batch {max(FILE_BATCHES):,} / batch 10", Target(most=1.2)
    yield f"a file a batch of a backlog of {max(FILE_BATCHES):,}: CPU / of few", Target(most=1.2)
    for query in PURGED:
        yield f"{query}: live rows, mean, by keep alone", Target("rows")
        yield f"{query}: live rows, mean, with partner and kill rule", Target("rows")
        yield f"{query}: live rows at most, with the rules / without", Target(better="less")
        yield f"{query}: time, with the rules / without", Target(better="less")
    for matches in STATIC:
        title = f"static table, {STATIC_MATCHES:,} {matches}"
        yield f"{title}: live rows of {STATIC_ROWS}", Target("rows", most=STATIC_ROWS)
        target = Target(most=1.5) if matches == STATIC[0] else Target(better="less")  # ranges are looked at one by one
        yield f"{title}: CPU of a batch that stores rows, beside one match", target
    for query in SEQUENCES:
        for batches in ("one batch", "100 batches"):
            yield f"row pattern, {query}: {batches}", Target("rows/s", least=SEQUENCE_RATES.get(query, 0.9e6))
    for query, (_, least) in DUCKDB_PATTERNS.items():
        for batches in ("one batch", "100 batches"):
            yield f"row pattern, {query} of DuckDB: {batches}", Target("rows/s", least=least)
    yield "row pattern, partitions: time, out of order / in order", Target(most=1.3)
    yield "row pattern, open: time of a batch, last quarter / first", Target(most=1.3)
    for matches in OPEN_MATCHES:
        yield f"row pattern, open, {matches}: time of a batch, 100,000 rows / 1,000", Target(most=1.3)
    yield "row pattern, runs in vain: time, of 10,000 rows / of 100", Target(most=1.3)
    yield "row pattern, begun in vain: time, 1,000 rows in a window / 10", Target(most=1.3)
    yield "row pattern, three steps: rows/s, embedded / Polars", Target(better="more")
    yield "row pattern, three steps: rows/s, embedded / Python loop", Target(better="more")
    yield PEER_FIGURE, Target(better="more")
    yield from _in_contexts()
    for roads, length in LINEAR_ROAD:
        yield f"Linear Road, {roads} roads at the peak, {length} s a batch, one core: a row", Target("µs", most=2.7)
    yield "Linear Road around the peak, embedded: answered in time", Target("roads", least=256)
    short = f"Linear Road, {PEAK_MINUTES} min around the peak, a search of {SEARCH_MINUTES} min"
    yield f"{short}, embedded: answered in time", Target("roads")
    yield "counted row patterns, A B+ C in 100 batches", Target("rows/s", least=5e6)
    yield "counted row patterns: time, most matches / least", Target(most=1.3)
    yield "counted patterns of situations: time, slowest window / quickest", Target(most=1.3)
    for experiment in INTERVAL_LISTS:
        yield f"interval sequences, {experiment}: kept, embedded / punctuated, worst", Target(most=1)
        for sides in ("punctuated / stacks", "stacks / naive"):
            yield f"interval sequences, {experiment}: pairs, {sides}", Target(better="less")
            yield f"interval sequences, {experiment}: time, {sides}", Target(better="less")
        yield f"interval sequences, {experiment}: time, embedded / punctuated", Target(better="less")
    for beside, most in INTERVAL_TIMES.items():
        yield f"interval sequences, {beside}", Target(most=most)
    for query in LOOK_BACK:
        for keys in LOOK_BACK_KEYS:
            title = f"{query}, {keys:,} keys, one core"
            for way in ("embedded in 100 batches", "Polars in one batch", "DuckDB in one batch"):
                yield f"{title}: {way}", Target("rows/s")
            yield f"{title}: time, embedded / the faster of them", Target(most=3)
            yield f"{title}: peak memory / (2 x live state + 1 GiB)", Target(most=1)
    for form in ONE_KEY_FORMS:
        yield f"{form}, {ONE_KEY:,} rows on either side, one key", Target("ms", most=100)
        yield f"{form}, {ONE_KEY:,} rows on either side, one key: memory", Target("MiB", most=50)
    for aggregates in PANED:
        for keys, panes in PANES.items():
            yield f"windows, {aggregates}, {keys} keys: time, {max(panes):,} panes / 1, worst", Target(most=2)
    for moved in MOVED:
        for keys, panes in PANES.items():
            yield f"frames, {moved}, {keys} keys: time, {max(panes):,} rows / 1, worst", Target(most=2)
    for moved in MOVED_LITTLE:
        yield f"frames in small batches, {moved}: time, {max(PANES[1]):,} rows / 1, worst", Target(most=2)
    for query in SITUATIONS:
        for keys in KEYS:
            title = f"{query}, {keys:,} keys, one core"
            for way in (
                "embedded",
                "pyarrow reading alone",
                "Polars in one batch",
                "DuckDB in one batch",
                "Python loop",
            ):
                yield (
                    f"{title}: {way}",
                    Target("events/s", least=RATES.get((query, keys)) if way == "embedded" else None),
                )
            yield f"{title}: embedded / reading alone", Target(least=0.5)
            yield f"{title}: embedded / Polars", Target(least=BATCH.get(query), better="more")
        yield (
            f"{query}, one core: embedded / Polars, worst number of keys",
            Target(least=BATCH.get(query), better="more"),
        )
        yield f"{query}, one core: time, 100,000 keys / 100 keys", Target(most=1.5)
    yield "Q1, search for matches by ranges: a situation", Target("ns", most=15)
    for query in QUERIES:
        yield f"{query}, Spark", Target("rows/s")
        yield f"{query}, native Structured Streaming", Target("rows/s")
        yield f"{query}: rows/s, Spark / native", Target(least=NATIVE.get(query), better="more")
    for query in HELD:
        yield f"{query}, Spark: live state at most", Target("MiB")
        yield f"{query}, Spark: peak memory / (2 x live state + 1 GiB)", Target(most=1)
    for query in LOOK_BACK_NATIVE:
        for keys in LOOK_BACK_KEYS:
            yield f"{query}, {keys:,} keys, Spark", Target("rows/s")
            yield f"{query}, {keys:,} keys, native Structured Streaming", Target("rows/s")
            yield f"{query}, {keys:,} keys: rows/s, Spark / native", Target(least=3)
    for share in SUSPENDED_ON_SPARK:
        title = f"10 queries, {share} % of the stream suspended, Spark"
        yield f"{title}: time, context-independent / context-aware", Target(better="more")
    yield "Linear Road around the peak, Spark: answered in time", Target("roads", least=100)
    yield f"{short}, Spark: answered in time", Target("roads")
    yield "a batch of 50 rows, five queries, Spark", Target("ms", most=60)
    yield "a batch of 50 events, one pattern, Spark", Target("ms", most=60)
    for (query, rows), least in SQL.items():
        title = f"{query}, Spark, {rows:,} rows a batch"
        yield title, Target("rows/s")
        yield f"{title}: Spark SQL in batch", Target("rows/s")
        yield f"{title}: rows/s, Spark / Spark SQL", Target(least=least)
    for keys in STATE_KEYS:
        yield f"Q1, {keys:,} keys, Spark's own state functions", Target("rows/s")
        yield f"Q1, {keys:,} keys: rows/s, Spark / its state functions", Target(least=20)
    yield "Q1, Spark: time, 100,000 keys / 100 keys", Target(most=1.5)
    for title in ("1,000 keys", "no key"):
        for threads in THREADS:
            yield f"Q1, {title}, threads: {threads}", Target("rows/s")
        yield f"Q1, {title}: rows/s, two threads / one", Target(least=1.8)
    for title in ON_EXECUTORS:
        for executors in EXECUTORS:
            yield f"{title}, executors: {executors}", Target("rows/s")
        yield f"{title}: rows/s, two executors / one", Target(least=1.7)
    for query in SITUATIONS:
        for rows, rate in BATCH_ROWS.items():
            yield f"{query}, Spark, from commit to commit, {rows:,} rows a batch", Target("events/s", least=rate)
    yield SEQUENCE_ON_SPARK, Target("events/s", least=4e6)
    yield "Q1, Spark, one core, a batch of 20M rows", Target("ms")
    for cores in SCALED_TO:
        yield f"Q1, Spark, speed-up on {cores} cores by arithmetic", Target(better="more")
    yield "Q1, Spark: around jobs / the batch on one core", Target(most=0.03)
    yield "Q1, Spark, a batch of 20M rows: CPU of the driver / of all", Target(most=0.05)
    for asked in ("interval join", "pattern"):
        yield f"{asked}, half of all rows of one key, Spark: longest task / a core's share", Target(most=1.3)


def _in_contexts() -> Iterator[tuple[str, Target]]:
    titles = {f"{count} queries, contexts of 10 % of the stream": 10 if count == 10 else None for count in IN_CONTEXTS}
    titles |= dict.fromkeys(f"{count} queries in each of two contexts of 10 % of the stream" for count in PER_CONTEXT)
    titles |= dict.fromkeys(f"10 queries, {roads} roads, two windows of 3 min" for roads in ROADS)
    for title, least in titles.items():
        yield f"{title}: {SIDES}", Target(least=least, better="more")
        yield f"{title}: longest batch, independent / aware", Target(better="more")
        for side in ("context-independent", "context-aware"):
            yield f"{title}: {side}", Target("rows/s")
    for share in SUSPENDED:
        target = Target(better="more") if share else Target(least=0.95)
        yield f"10 queries, {share} % of the stream suspended: {SIDES}", target
    for windows in WINDOWS:
        yield f"10 queries, windows of each segment: {windows}, 20 % of the stream: {SIDES}", Target(better="more")
    for begin in WINDOW_BEGINS:
        yield f"10 queries, windows {begin}: longest batch", Target("ms")
        yield f"10 queries, windows {begin}: longest batch, independent / aware", Target(better="more")
    yield "24 operators in contexts: search for a plan", Target("ms", most=100)
    yield "12 joins in 6 contexts: search for a plan", Target("ms", most=100)
    yield "24 operators in contexts: exhaustive search", Target("ms")
    yield "24 operators in contexts: exhaustive search / search", Target(better="more")
    yield "24 operators in contexts: cost of the plan found / of the best of all", Target(most=1.001)
    together = "CPU, each / together"
    for contexts in OVERLAPPING:
        target = Target(least=20) if contexts == max(OVERLAPPING) else Target(better="more")
        yield f"overlapping contexts: {contexts}, 4 queries: {together}", target
    for overlap in OVERLAPS:
        yield f"30 contexts of 2 min, overlap of {overlap} s: {together}", Target(better="more")
    for count in WORKLOADS:
        yield f"15 overlapping contexts, queries of each: {count}: {together}", Target(better="more")
    own = "15 overlapping contexts, 4 queries of each with results of their own"
    yield f"{own}: {together}", Target(better="more")
    for share in IN_VAIN:
        yield f"each report a candidate transition, {share} % in vain", Target("rows/s")


#: Every figure of a whole run, in the order of the table.
DECLARED = dict(_declared())


def declared(name: str, value: float, detail: str = "") -> Figure:
    """A figure of a whole run, with its target. `KeyError` where none of this name is declared."""
    target = DECLARED[name]
    return Figure(name, value, target.unit, target.most, target.least, detail)


def compared(name: str, ratios: Sequence[float]) -> Figure:
    """A figure of a comparison: the median of the ratios of at least three pairs, with the least, greatest and worst
    beside.
    """
    if len(ratios) < PAIRS:
        raise ValueError(f"{name}: {len(ratios)} pairs are no comparison; measure {PAIRS}")
    median, worst = statistics.median(ratios), DECLARED[name].worst(ratios)
    spread = f"least {min(ratios):.2f}, median {median:.2f}, greatest {max(ratios):.2f}"
    return declared(name, median, f"{spread}, worst {worst:.2f} of {len(ratios)} pairs")


def memory_figures(query: str, engine: str, live: int, more: int) -> list[Figure]:
    """Live state, and the peak beyond the process's base beside what it may be, from bytes."""
    held, peak = live / 2**20, more / 2**20
    return [
        declared(f"{query}, {engine}: live state at most", held),
        declared(
            f"{query}, {engine}: peak memory / (2 x live state + 1 GiB)", peak / (2 * held + 1024), f"{peak:,.0f} MiB"
        ),
    ]


def lacking(figures: Sequence[Figure]) -> list[str]:
    """Names of the declared figures that are not among these: a page with them is of no whole run. That of a peer
    that cannot be installed may lack.
    """
    found = {PEER_FIGURE, *(figure.name for figure in figures)}
    return [name for name in DECLARED if name not in found]


def print_table(figures: Sequence[Figure]) -> None:
    print(f"\n{'figure':<70}{'measured':>20}{'target':>10}")
    for figure in figures:
        print(figure.line())
    missed = [figure.name for figure in figures if figure.met is False]
    print(f"targets missed: {len(missed)}" + (f" ({'; '.join(missed)})" if missed else ""))


def machine() -> str:
    """What the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name.lower())}" for name in ("Polars", "PySpark"))
    cores = len(os.sched_getaffinity(0))
    return (
        f"{platform.system()} on {platform.machine()}, {cores} cores, {memory:.0f} GiB; Python "
        f"{platform.python_version()}, {packages}"
    )


def table(figures: Sequence[Figure], heading: str) -> str:
    """The table as a page has it, between its markers: all declared figures in order, whether measured or not."""
    found = {figure.name: figure for figure in figures}
    lines = [BEGIN, heading, "", "| figure | measured | target | | of which |", "| --- | ---: | ---: | --- | --- |"]
    for name, target in DECLARED.items():
        cells = (
            (one.measured, one.target, one.verdict, one.detail) if (one := found.get(name)) else (UNMEASURED, target)
        )
        lines.append(f"| {' | '.join(map(str, (name, *cells)))} |" + " |" * (4 - len(cells)))
    return "\n".join([*lines, END])


def rows_of(page: str) -> list[str]:
    """Names of the figures in a page's table, in order."""
    lines = page.partition(BEGIN)[2].partition(END)[0].splitlines()
    return [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")][2:]


def write_table(page: Path, figures: Sequence[Figure], heading: str) -> None:
    """Puts the table in the place of the one in the page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no lines {BEGIN} and {END}")
    page.write_text(before + table(figures, heading) + after, encoding="utf-8")
