"""The queries that are measured, and the rows they run on."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable

import numpy as np
import polars as pl

import tidegate as tg

events = tg.stream("Events", "key bigint, time timestamp, value double", progress="time")
SECOND = 1_000_000


def tumbling() -> tg.Relation:
    """Count, sum and greatest value per key and window of ten seconds."""
    windows = events.group_by(events.key, end=tg.tumbling(events.time, "10s"))
    return windows.agg(n=tg.count(), total=tg.sum(events.value), top=tg.max(events.value))


def interval_join() -> tg.Relation:
    """Pairs of events of one key within two seconds of each other."""
    a, b = events.where(events.value < 0.2).as_("a"), events.where(events.value > 0.8).as_("b")
    pairs = a.join(b, a.key == b.key, a.time <= b.time, b.time <= a.time + tg.seconds(2))
    return pairs.select(key=a.key, first=a.time, second=b.time)


def silence() -> tg.Relation:
    """Events with no event of the same key in the five seconds after."""
    a, b = events.where(events.value < 0.2).as_("a"), events.as_("b")
    lonely = a.anti_join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.seconds(5))
    return lonely.select(key=a.key, time=a.time)


def frames() -> tg.Relation:
    """The greatest value of a key's events between a start and an end at most five seconds later."""
    a, b, c = events.where(events.value < 0.02).as_("a"), events.where(events.value > 0.98).as_("b"), events.as_("c")
    frame = a.join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.seconds(5))
    inside = frame.join(c, c.key == a.key, a.time < c.time, c.time < b.time)
    grouped = inside.group_by(key=a.key, start=a.time, end=b.time)
    return grouped.agg(top=tg.max(c.value), n=tg.count())


def wide_join() -> tg.Relation:
    """Events with those of the same key on the day before: every event is kept for a day, and hardly any has a
    partner.
    """
    events = tg.stream(
        "Events", "key bigint, time timestamp, value double, x double, y double, z double", progress="time"
    )
    a, b = events.as_("a"), events.where(events.value > 0.9).as_("b")
    pairs = a.join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.days(1))
    return pairs.select(key=a.key, first=a.time, second=b.time, value=a.value, x=a.x, y=a.y, z=a.z)


RELATIONS: dict[str, tuple[str, Callable[[], tg.Relation]]] = {
    "tumbling": ("Tumbling", tumbling),
    "interval join": ("Pairs", interval_join),
    "silence": ("Silence", silence),
    "frames": ("Frames", frames),
    "wide join": ("Wide", wide_join),
}


def program(*names: str) -> tg.Program:
    """Queries by their names as one program."""
    return tg.program(**{stream: relation() for stream, relation in (RELATIONS[name] for name in names)})


def chain(length: int) -> tg.Program:
    """A chain of joined streams, each within ten seconds of the one before."""
    streams = [tg.stream(f"S{i}", "key bigint, time timestamp", progress="time").as_(f"s{i}") for i in range(length)]
    conditions = []
    for one, other in itertools.pairwise(streams):
        conditions += [one.key == other.key, one.time <= other.time, other.time <= one.time + tg.seconds(10)]
    return tg.program(Chain=tg.product(*streams).where(*conditions).select(key=streams[0].key, time=streams[-1].time))


def pattern(length: int) -> tg.Program:
    """A pattern of situations, each before the next, within five minutes."""
    readings = tg.stream(
        "R", f"key bigint, time timestamp, {', '.join(f'x{i} bigint' for i in range(length))}", progress="time"
    )
    situations = readings.partition_by("key").derive(
        **{f"A{i}": tg.situation(getattr(readings, f"x{i}") > 0) for i in range(length)}
    )
    named = [getattr(situations, f"A{i}") for i in range(length)]
    follows = (one.before(other) for one, other in itertools.pairwise(named))
    return tg.program(Found=tg.match(functools.reduce(operator.and_, follows), within="5m"))


def typical() -> tg.Program:
    """Six streams: a frame between two events, readings in it, a non-event, and a window."""
    start, end, reading, report, door, fan = (
        tg.stream(name, "key bigint, time timestamp, value double", progress="time").as_(name.lower())
        for name in ("Start", "End", "Reading", "Report", "Door", "Fan")
    )
    frame = start.join(end, start.key == end.key, start.time <= end.time, end.time <= start.time + tg.hours(24))
    seen = frame.join(reading, reading.key == start.key, start.time <= reading.time, reading.time <= end.time)
    seen = seen.join(door, door.key == start.key, start.time <= door.time, door.time <= end.time)
    seen = seen.join(fan, fan.key == start.key, start.time <= fan.time, fan.time <= start.time + tg.minutes(5))
    quiet = seen.anti_join(
        report, report.key == start.key, start.time <= report.time, report.time <= start.time + tg.minutes(2)
    )
    grouped = quiet.group_by(key=start.key, end=tg.ceil(end.time, "10m"))
    return tg.program(Typical=grouped.agg(n=tg.count(), top=tg.max(reading.value)))


def rows(count: int, keys: int, *, per_second: int = 1000, seed: int = 7) -> pl.DataFrame:
    """Events in time order with ties, values uniform in [0, 1)."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, max(1, count // per_second) * SECOND, count))
    frame = pl.DataFrame({"key": random.integers(0, keys, count), "time": times, "value": random.random(count)})
    return frame.with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))


def wide_rows(count: int) -> pl.DataFrame:
    """Events with more columns and keys so many that hardly two meet; less than a day up to 86 million."""
    random = np.random.default_rng(8)
    columns = [pl.Series(name, random.random(count)) for name in "xyz"]
    return rows(count, 20 * count).with_columns(columns)


def batch_polars(name: str, events: pl.LazyFrame) -> pl.DataFrame:
    """The same query over all rows at once, in plain Polars: the fastest form known, with the engine that is faster.

    Measured at 10M rows with Polars 2.1: streaming takes about half of what the in-memory engine takes, but for the
    silence, where a search for the next event (1.1 s) takes a quarter of a sort by key (4.3 s).
    """
    match name:
        case "tumbling":
            end = pl.col("time").dt.truncate("10s") + pl.duration(seconds=10)
            values = pl.col("value")
            made = events.group_by("key", end=end).agg(n=pl.len(), total=values.sum(), top=values.max())
        case "interval join":
            a = events.filter(pl.col("value") < 0.2).select("key", first="time")
            b = events.filter(pl.col("value") > 0.8).select("key", second="time")
            made = _near(a, "first", b, "second", 2).filter(pl.col("second") >= pl.col("first"))
        case "wide join":
            b = events.filter(pl.col("value") > 0.9).select("key", second="time")
            pairs = events.rename({"time": "first"}).join(b, on="key").filter(pl.col("second") > pl.col("first"))
            made = pairs.select("key", "first", "second", "value", "x", "y", "z")
        case "frames":
            a = events.filter(pl.col("value") < 0.02).select("key", start="time")
            b = events.filter(pl.col("value") > 0.98).select("key", end="time")
            whole = _near(a, "start", b, "end", 5).filter(pl.col("end") > pl.col("start"))
            # Seconds as buckets, as in `_near`: else each frame is paired with each event of its key.
            buckets = pl.int_ranges(_ticks("start") // SECOND, _ticks("end") // SECOND + 1)
            bucketed = whole.with_columns(bucket=buckets).explode("bucket")
            c = events.with_columns(bucket=_ticks("time") // SECOND)
            inside = (pl.col("time") > pl.col("start")) & (pl.col("time") < pl.col("end"))
            grouped = bucketed.join(c, on=["key", "bucket"]).filter(inside).group_by("key", "start", "end")
            made = grouped.agg(top=pl.col("value").max(), n=pl.len())
        case _:
            a = events.filter(pl.col("value") < 0.2).select("key", "time").sort("time")
            b = events.select("key", later="time").sort("later")
            found = a.join_asof(
                b,
                left_on="time",
                right_on="later",
                by="key",
                strategy="forward",
                allow_exact_matches=False,
                tolerance="5s",
                check_sortedness=False,
            )
            silent = found.filter(pl.col("later").is_null()).select("key", "time")
            return silent.collect(engine="in-memory")
    return made.collect(engine="streaming")


def _ticks(name: str) -> pl.Expr:
    return pl.col(name).dt.epoch("us")


def _near(left: pl.LazyFrame, one: str, right: pl.LazyFrame, other: str, seconds: int) -> pl.LazyFrame:
    """Pairs of a key with the right one's instant at most so many seconds later, and some that are earlier.

    Spans of time as buckets: a left row meets the right rows of its own span and of the next. A join by key alone has
    four thousand million pairs at 10M rows and 1,000 keys.
    """
    bucketed = right.with_columns(bucket=_ticks(other) // (seconds * SECOND))
    parts = [
        left.with_columns(bucket=_ticks(one) // (seconds * SECOND) + later).join(bucketed, on=["key", "bucket"])
        for later in (0, 1)
    ]
    late = pl.col(other) <= pl.col(one) + pl.duration(seconds=seconds)
    return pl.concat(parts).drop("bucket").filter(late)
