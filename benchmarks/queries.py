"""The queries that are measured, and the rows they run on."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

import tidegate as tg

events = tg.stream("Events", "key bigint, time timestamp, value double", progress="time")
SECOND = 1_000_000


def tumbling() -> tg.Program:
    """Count, sum and greatest value per key and window of ten seconds."""
    windows = events.group_by(events.key, end=tg.ceil(events.time, "10s"))
    return tg.program(Tumbling=windows.agg(n=tg.count(), total=tg.sum(events.value), top=tg.max(events.value)))


def interval_join() -> tg.Program:
    """Pairs of events of one key within two seconds of each other."""
    a, b = events.where(events.value < 0.2).as_("a"), events.where(events.value > 0.8).as_("b")
    pairs = a.join(b, a.key == b.key, a.time <= b.time, b.time <= a.time + tg.seconds(2))
    return tg.program(Pairs=pairs.select(key=a.key, first=a.time, second=b.time))


def silence() -> tg.Program:
    """Events with no event of the same key in the five seconds after."""
    a, b = events.where(events.value < 0.2).as_("a"), events.as_("b")
    lonely = a.anti_join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.seconds(5))
    return tg.program(Silence=lonely.select(key=a.key, time=a.time))


def frames() -> tg.Program:
    """The greatest value of a key's events between a start and an end at most five seconds later."""
    a, b, c = events.where(events.value < 0.02).as_("a"), events.where(events.value > 0.98).as_("b"), events.as_("c")
    frame = a.join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.seconds(5))
    inside = frame.join(c, c.key == a.key, a.time < c.time, c.time < b.time)
    grouped = inside.group_by(key=a.key, start=a.time, end=b.time)
    return tg.program(Frames=grouped.agg(top=tg.max(c.value), n=tg.count()))


def chain(length: int) -> tg.Program:
    """A chain of joined streams, each within ten seconds of the one before."""
    streams = [tg.stream(f"S{i}", "key bigint, time timestamp", progress="time").as_(f"s{i}") for i in range(length)]
    conditions = []
    for one, other in itertools.pairwise(streams):
        conditions += [one.key == other.key, one.time <= other.time, other.time <= one.time + tg.seconds(10)]
    return tg.program(Chain=tg.product(*streams).where(*conditions).select(key=streams[0].key, time=streams[-1].time))


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


def rows(count: int, keys: int, *, seed: int = 7) -> pl.DataFrame:
    """Events in time order with ties, a thousand a second, values uniform in [0, 1)."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, max(1, count // 1000) * SECOND, count))
    frame = pl.DataFrame({"key": random.integers(0, keys, count), "time": times, "value": random.random(count)})
    return frame.with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))


def batch_polars(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The same query over all rows at once, in plain Polars."""
    lazy = frame.lazy()
    match name:
        case "tumbling":
            ticks = pl.col("time").dt.epoch("us")
            end = (-((-ticks) // (10 * SECOND)) * (10 * SECOND)).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
            made = lazy.group_by("key", end=end).agg(n=pl.len(), total=pl.col("value").sum(), top=pl.col("value").max())
        case "interval join":
            a = lazy.filter(pl.col("value") < 0.2).select("key", first="time")
            b = lazy.filter(pl.col("value") > 0.8).select("key", second="time")
            near = (pl.col("second") >= pl.col("first")) & (
                pl.col("second") <= pl.col("first") + pl.duration(seconds=2)
            )
            made = a.join(b, on="key").filter(near)
        case "frames":
            second = pl.duration(seconds=1)
            a = lazy.filter(pl.col("value") < 0.02).select("key", start="time")
            b = lazy.filter(pl.col("value") > 0.98).select("key", end="time")
            near = (pl.col("end") > pl.col("start")) & (pl.col("end") <= pl.col("start") + 5 * second)
            whole = a.join(b, on="key").filter(near)
            # Seconds as buckets keep the join with all events from pairing each frame with each event of its key.
            seconds = pl.datetime_ranges(
                pl.col("start").dt.truncate("1s"), pl.col("end").dt.truncate("1s"), "1s", time_zone="UTC"
            )
            bucketed = whole.with_columns(bucket=seconds).explode("bucket")
            c = lazy.with_columns(bucket=pl.col("time").dt.truncate("1s"))
            inside = (pl.col("time") > pl.col("start")) & (pl.col("time") < pl.col("end"))
            grouped = bucketed.join(c, on=["key", "bucket"]).filter(inside).group_by("key", "start", "end")
            made = grouped.agg(top=pl.col("value").max(), n=pl.len())
        case _:
            later = pl.col("time").shift(-1).over("key")
            ordered = lazy.sort("key", "time").with_columns(next=later)
            # Ties have no event strictly after the first of them at their own time: look at the next greater one.
            ordered = ordered.with_columns(
                next=pl.when(pl.col("next") > pl.col("time")).then("next").backward_fill().over("key", "time")
            )
            silent = pl.col("next").is_null() | (pl.col("next") > pl.col("time") + pl.duration(seconds=5))
            made = ordered.filter((pl.col("value") < 0.2) & silent).select("key", "time")
    return made.collect()
