"""What the operations room's queries must answer: plain Polars over the package's own files, complete, in one go.

Independent of Tidegate and of `data.py`'s readers and replay: its own reading of the CSV files, no streams, no
progress. Each function states its query in words exactly enough to be compared with the algebra's text; each is
relational (select, join, anti-join, group) with explicit bounds in time. Times are UTC, `datetime[us]`; delays are
whole minutes.
"""

import io
import zipfile
from dataclasses import dataclass
from typing import Final

import polars as pl

from examples.operations_room.data import Period, package_data

POOR_VISIBILITY: Final = 3.0
"""Miles; below three miles the visual flight rules end."""

FOG: Final = 2.0
"""Miles."""

LATE: Final = 30
"""Minutes."""

LIVES: Final = pl.duration(minutes=70)
"""An hourly observation has a successor if there is one within 70 minutes."""

LONGEST_EPISODE: Final = pl.duration(hours=48)
"""Between an episode's first and last poor observation; the longest of 2013 has 26 hours."""

FLOAT_TOLERANCE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Inputs:
    """One period's complete relations, named and typed as the streams are."""

    schedule: pl.DataFrame
    departure: pl.DataFrame
    weather: pl.DataFrame
    airports: pl.DataFrame
    airlines: pl.DataFrame


def inputs(period: Period) -> Inputs:
    """Read a period with Polars. `sched_dep` = UTC `time_hour` + `minute`; `dep` = `sched_dep` + `dep_delay`
    minutes.
    """
    folder = package_data()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        flights = _csv(archive.read("flights.csv"), period)
    sched_dep = pl.col("time_hour") + pl.duration(minutes="minute")
    flights = flights.with_columns(sched_dep=sched_dep, dep=sched_dep + pl.duration(minutes="dep_delay"))
    static = pl.read_csv(folder / "airports.csv", null_values="NA")
    return Inputs(
        schedule=flights.select("flight_id", "origin", "carrier", "flight", "dest", "sched_dep"),
        departure=flights.filter(pl.col("dep").is_not_null()).select(
            "flight_id", "origin", "carrier", "dest", "sched_dep", "dep", "dep_delay"
        ),
        weather=_csv((folder / "weather.csv").read_bytes(), period).select("origin", "visib", time="time_hour"),
        airports=static.select("faa", "name", "lat", "lon"),
        airlines=pl.read_csv(folder / "airlines.csv"),
    )


def hourly_departures(given: Inputs) -> pl.DataFrame:
    """`HourlyDepartures(origin, airport, hour, departures, avg_delay, max_delay)`: tumbling aggregation.

    Departures d join airports a on a.faa = d.origin; group by origin, airport = a.name and hour = ceil(d.dep, 1h), the
    end of the window (hour - 1h, hour]; count, avg and max of d.dep_delay.
    """
    hour = (pl.col("dep") - pl.duration(microseconds=1)).dt.truncate("1h") + pl.duration(hours=1)
    return (
        given.departure.join(given.airports, left_on="origin", right_on="faa")
        .group_by("origin", airport="name", hour=hour)
        .agg(
            departures=pl.len().cast(pl.Int64),
            avg_delay=pl.col("dep_delay").mean(),
            max_delay=pl.col("dep_delay").max(),
        )
    )


def not_departed(given: Inputs) -> pl.DataFrame:
    """`NotDeparted(flight_id, origin, airline, flight, dest, sched_dep)`: a non-event across two timelines.

    Scheduled flights s join airlines l on l.carrier = s.carrier, without those for which a departure d exists with
    d.flight_id = s.flight_id, d.sched_dep = s.sched_dep and d.dep <= s.sched_dep + 2h; airline = l.name.
    (With d.sched_dep <= d.dep + 1h, which Departure declares, s.sched_dep - d.dep is bounded on both sides.)
    """
    in_time = given.departure.filter(pl.col("dep") <= pl.col("sched_dep") + pl.duration(hours=2))
    return (
        given.schedule.join(given.airlines, on="carrier")
        .join(in_time, on=["flight_id", "sched_dep"], how="anti")
        .select("flight_id", "origin", pl.col("name").alias("airline"), "flight", "dest", "sched_dep")
    )


def poor_starts(given: Inputs) -> pl.DataFrame:
    """`PoorStart(origin, start)`: poor observations w (visib < 3) without a poor one of the same origin shortly before.

    Removed where a poor q exists with q.origin = w.origin and w.time - 70min <= q.time < w.time; start = w.time.
    """
    poor, other = _poor(given), _poor(given).rename({"time": "near"})
    return _anti(
        poor, other, ["origin"], (pl.col("time") - LIVES <= pl.col("near")) & (pl.col("near") < pl.col("time"))
    ).rename({"time": "start"})


def poor_ends(given: Inputs) -> pl.DataFrame:
    """`PoorEnd(origin, last)`: poor observations w without a poor one of the same origin shortly after.

    Removed where a poor q exists with q.origin = w.origin and w.time < q.time <= w.time + 70min; last = w.time.
    """
    poor, other = _poor(given), _poor(given).rename({"time": "near"})
    return _anti(
        poor, other, ["origin"], (pl.col("time") < pl.col("near")) & (pl.col("near") <= pl.col("time") + LIVES)
    ).rename({"time": "last"})


def poor_visibility(given: Inputs) -> pl.DataFrame:
    """`PoorVisibility(origin, start, end)`: episodes `[start, end)` of poor visibility.

    PoorStart s joins PoorEnd e on origin with s.start <= e.last <= s.start + 48h, without pairs for which a PoorEnd f
    exists with f.origin = s.origin and s.start <= f.last < e.last; end = e.last + 1h: an observation holds for an hour.
    A gap in the observations ends an episode. (Without gaps, end is the time of the first observation that is not
    poor.)
    """
    starts, ends = poor_starts(given), poor_ends(given)
    reach = (pl.col("start") <= pl.col("last")) & (pl.col("last") <= pl.col("start") + LONGEST_EPISODE)
    pairs = starts.join(ends, on="origin").filter(reach)
    earlier = (pl.col("start") <= pl.col("near")) & (pl.col("near") < pl.col("last"))
    return _anti(pairs, ends.rename({"last": "near"}), ["origin"], earlier).select(
        "origin", "start", end=pl.col("last") + pl.duration(hours=1)
    )


def worst_delay(given: Inputs) -> pl.DataFrame:
    """`WorstDelay(origin, airport, start, end, departures, worst, avg_delay)`: event-controlled aggregation.

    PoorVisibility p joins departures d on d.origin = p.origin with p.start <= d.dep < p.end, and airports a on
    a.faa = p.origin; group by origin, airport = a.name, start, end; count, max and avg of d.dep_delay. An episode
    without any departure has no row.
    """
    during = (pl.col("start") <= pl.col("dep")) & (pl.col("dep") < pl.col("end"))
    # Matching days first only keeps the join small: a departure has one day, which lies among its episode's days.
    episodes = poor_visibility(given).with_columns(day=pl.datetime_ranges(_day("start"), _day("end"), "1d"))
    return (
        episodes.explode("day")
        .join(given.departure.with_columns(day=_day("dep")), on=["origin", "day"])
        .filter(during)
        .join(given.airports, left_on="origin", right_on="faa")
        .group_by("origin", "start", "end", airport="name")
        .agg(
            departures=pl.len().cast(pl.Int64),
            worst=pl.col("dep_delay").max(),
            avg_delay=pl.col("dep_delay").mean(),
        )
        .select("origin", "airport", "start", "end", "departures", "worst", "avg_delay")
    )


def bunching(given: Inputs) -> pl.DataFrame:
    """`Bunching(origin, dest, flight_a, carrier_a, sched_a, dep_a, flight_b, carrier_b, sched_b, dep_b)`: a self-join.

    Departures a and b with a.origin = b.origin, a.dest = b.dest, a.sched_dep + 30min <= b.sched_dep and
    b.dep - 10min <= a.dep <= b.dep + 10min: planned half an hour apart or more, yet in the air almost together.
    """
    flights = given.departure.select("origin", "dest", "flight_id", "carrier", "sched_dep", "dep")
    a = flights.rename({"flight_id": "flight_a", "carrier": "carrier_a", "sched_dep": "sched_a", "dep": "dep_a"})
    b = flights.rename({"flight_id": "flight_b", "carrier": "carrier_b", "sched_dep": "sched_b", "dep": "dep_b"})
    near = pl.duration(minutes=10)
    # Matching days first only keeps the join small: ten minutes reach the same or a neighbouring day.
    b = b.with_columns(day=_day("dep_b"))
    a = pl.concat([a.with_columns(day=_day("dep_a") + pl.duration(days=shift)) for shift in (-1, 0, 1)])
    apart = pl.col("sched_a") + pl.duration(minutes=30) <= pl.col("sched_b")
    together = (pl.col("dep_b") - near <= pl.col("dep_a")) & (pl.col("dep_a") <= pl.col("dep_b") + near)
    return a.join(b, on=["origin", "dest", "day"]).filter(apart & together).drop("day")


def fog(given: Inputs) -> pl.DataFrame:
    """`Fog(origin, ts, te, least)`: a situation, from the first observation of less than two miles to the first other
    one.

    An observation without a visibility is no fog. What has not ended is no row.
    """
    return _runs(given.weather, pl.col("visib") < FOG, "time", pl.col("visib").min().alias("least")).drop_nulls("te")


def wave(given: Inputs) -> pl.DataFrame:
    """`Wave(origin, ts, te, flights)`: all departures of an airport are more than half an hour late, for an hour at
    least.
    """
    return _waves(given).drop_nulls("te").select("origin", "ts", "te", flights=pl.col("left").list.len().cast(pl.Int64))


def late_in_fog(given: Inputs) -> pl.DataFrame:
    """`LateInFog`: waves that began while a fog lasted that had begun before, at most a day before they were certain.

    That is when nothing has ended the wave within its hour. What ends later is NULL, and only what had happened by then
    is counted.
    """
    lasting = pl.duration(hours=1) - pl.duration(microseconds=1)  # whatever comes later, it has an hour then
    fogs = _runs(given.weather, pl.col("visib") < FOG, "time", pl.struct("time", "visib").alias("seen"))
    in_fog = (pl.col("ts") < pl.col("wave_ts")) & ((pl.col("wave_ts") < pl.col("te")) | pl.col("te").is_null())
    waves = _waves(given).rename({"ts": "wave_ts", "te": "wave_te"})
    detected = pl.col("wave_ts") + lasting
    pairs = fogs.join(waves, on="origin").filter(in_fog).with_columns(detected=detected)
    pairs = pairs.filter(pl.col("detected") - pl.col("ts") <= pl.duration(days=1)).with_row_index("pair")
    least = (
        pairs.select("pair", "detected", "seen")
        .explode("seen")
        .unnest("seen")
        .filter(pl.col("time") <= pl.col("detected"))
        .group_by("pair")
        .agg(least=pl.col("visib").min())
    )
    flights = (
        pairs.select("pair", "detected", "left")
        .explode("left")
        .filter(pl.col("left") <= pl.col("detected"))
        .group_by("pair")
        .agg(flights=pl.len().cast(pl.Int64))
    )
    known = [
        pl.when(pl.col(end) <= pl.col("detected")).then(pl.col(end)).alias(name)
        for end, name in (("te", "Fog.te"), ("wave_te", "Wave.te"))
    ]
    return (
        pairs.join(least, on="pair")
        .join(flights, on="pair")
        .select(
            "origin",
            pl.col("ts").alias("Fog.ts"),
            known[0],
            pl.col("least").alias("Fog.least"),
            pl.col("wave_ts").alias("Wave.ts"),
            known[1],
            pl.col("flights").alias("Wave.flights"),
            "detected",
        )
    )


def results(period: Period) -> dict[str, pl.DataFrame]:
    """All queries' complete answers for a period, by query name, rows in no particular order."""
    given = inputs(period)
    return {
        "HourlyDepartures": hourly_departures(given),
        "NotDeparted": not_departed(given),
        "PoorStart": poor_starts(given),
        "PoorEnd": poor_ends(given),
        "PoorVisibility": poor_visibility(given),
        "WorstDelay": worst_delay(given),
        "Bunching": bunching(given),
        "Fog": fog(given),
        "Wave": wave(given),
        "LateInFog": late_in_fog(given),
    }


def differences(expected: pl.DataFrame, actual: pl.DataFrame) -> list[str]:
    """What differs between two bags of rows, in words; nothing if they are equal (doubles within 1e-12 relative)."""
    if set(expected.columns) != set(actual.columns):
        return [f"columns {sorted(actual.columns)} instead of {sorted(expected.columns)}"]
    actual = actual.select([pl.col(name).cast(dtype) for name, dtype in expected.schema.items()])
    floats = [name for name, dtype in expected.schema.items() if dtype.is_float()]
    exact = [name for name in expected.columns if name not in floats]
    left, right = (frame.sort([*exact, *floats], nulls_last=True) for frame in (expected, actual))
    wanted, got = (frame.group_by(exact).agg(rows=pl.len()) for frame in (left, right))
    both = wanted.join(got, on=exact, how="full", coalesce=True, nulls_equal=True)
    counts = both.with_columns(pl.col("rows", "rows_right").fill_null(0)).sort(exact, nulls_last=True)
    found = []
    for *values, want, have in counts.filter(pl.col("rows") != pl.col("rows_right")).iter_rows():
        found.append(f"{have} rows instead of {want}: {dict(zip(exact, values, strict=True))}")
    if found:
        return found
    for name in floats:
        one, two = left[name], right[name]
        near = (one - two).abs() <= FLOAT_TOLERANCE * pl.select(pl.max_horizontal(one.abs(), two.abs())).to_series()
        same = near.fill_null(False) | (one.is_null() & two.is_null()) | (one.is_nan() & two.is_nan()).fill_null(False)
        rows = zip(left.filter(~same).iter_rows(named=True), two.filter(~same), strict=True)
        found += [f"{name} is {value} instead of {row[name]}: {row}" for row, value in rows]
    return found


def _csv(content: bytes, period: Period) -> pl.DataFrame:
    day = pl.date("year", "month", "day")
    return (
        pl.read_csv(io.BytesIO(content), null_values="NA", infer_schema_length=None)
        .with_row_index("flight_id", offset=1)
        .filter(day.is_between(period.start, period.last))
        .with_columns(
            pl.col("flight_id").cast(pl.Int64),
            pl.col("time_hour").str.to_datetime(time_unit="us", time_zone="UTC"),
        )
    )


def _day(name: str) -> pl.Expr:
    return pl.col(name).dt.truncate("1d")


def _poor(given: Inputs) -> pl.DataFrame:
    return given.weather.filter(pl.col("visib") < POOR_VISIBILITY).select("origin", "time")


def _runs(events: pl.DataFrame, holds: pl.Expr, time: str, *of_a_run: pl.Expr) -> pl.DataFrame:
    """The longest runs of an airport's events for which a condition holds, up to the first event after; NULL: there is
    none.

    Events of one time are in the order of their rows.
    """
    ordered = events.sort("origin", time, maintain_order=True).with_columns(holds=holds.fill_null(False))
    changes = (pl.col("holds") != pl.col("holds").shift(1).over("origin")).fill_null(True)
    runs = (
        ordered.with_columns(run=changes.cum_sum())
        .group_by("origin", "run", "holds")
        .agg(pl.col(time).first().alias("ts"), *of_a_run)
        .sort("run")
        .with_columns(te=pl.col("ts").shift(-1).over("origin"))
        .filter("holds")
    )
    return runs.select("origin", "ts", "te", pl.exclude("origin", "ts", "te", "run", "holds"))


def _waves(given: Inputs) -> pl.DataFrame:
    runs = _runs(given.departure.sort("flight_id"), pl.col("dep_delay") > LATE, "dep", pl.col("dep").alias("left"))
    return runs.filter((pl.col("te") - pl.col("ts") >= pl.duration(hours=1)) | pl.col("te").is_null())


def _anti(left: pl.DataFrame, right: pl.DataFrame, keys: list[str], condition: pl.Expr) -> pl.DataFrame:
    """The rows of `left` without a partner in `right` that has equal keys and fulfils the condition."""
    numbered = left.with_row_index("row")
    partnered = numbered.join(right, on=keys).filter(condition).select("row").unique()
    return numbered.join(partnered, on="row", how="anti").drop("row")
