"""What states of an airport cost: New York's flights and weather of 2013, in contexts.

An airport is normal, has low visibility, is saturated, or both. Visibility is low from an observation with less than
two miles on, until one with three or more. An airport is saturated from half an hour on in which ten flights or more
left 45 minutes late in the mean, until half an hour in which that is less than 20 minutes, or hardly a flight leaves.
Each departure is told by the contexts in which it lies.

    python -m examples.14_states_of_an_airport                        # the year, and a week as it came in
    python -m examples.14_states_of_an_airport --spark                # the week on Spark
    python -m examples.14_states_of_an_airport --pictures FOLDER      # the model, and a day at Newark
"""

import argparse
import sys
import tempfile
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

import tidegate as tg
from examples.operations_room import data, queries

departure, weather = queries.departure, queries.weather
left = departure.select("origin", "dep", "flight_id", "dest", "dep_delay")
half_hours = departure.group_by(departure.origin, end=tg.ceil(departure.dep, "30m")).agg(
    flights=tg.count(), late=tg.avg(departure.dep_delay)
)
airports = (
    tg.context_model("Airports", by="origin", default="normal", contexts=("low_visibility", "saturated"))
    .initiate("low_visibility", when=weather.where(weather.visib < 2), values={"visib": weather.visib})
    .terminate("low_visibility", when=weather.where(weather.visib >= 3))
    .initiate("saturated", when=half_hours.where(half_hours.flights >= 10, half_hours.late > 45))
    .terminate("saturated", when=half_hours.where((half_hours.late < 20) | (half_hours.flights < 3)))
)
normal = left.in_context(airports, "normal")
low = left.in_context(airports, "low_visibility", values={"since": "began", "visib": "visib"})
saturated = left.in_context(airports, "saturated", values={"since": "began"})
program = tg.program(
    Normal=normal,
    LowVisibility=low.not_in_context(airports, "saturated"),
    Saturated=saturated.not_in_context(airports, "low_visibility"),
    Both=saturated.in_context(airports, "low_visibility"),
    Unexplained=normal.where(normal.dep_delay > 180),
    BeganInLow=airports.starts("saturated")
    .select("origin", "began")
    .in_context(airports, "low_visibility", values={"low_since": "began"}),
    LowWindows=airports.windows("low_visibility"),
    SaturatedWindows=airports.windows("saturated"),
)
STREAMS = {"Departure": "departure", "Weather": "weather"}
STATES = {"normal": "Normal", "low visibility": "LowVisibility", "saturated": "Saturated", "both": "Both"}
RESULTS = (*STATES.values(), "Unexplained", "BeganInLow", "LowWindows", "SaturatedWindows")
#: A week with a snow storm on its fifth day.
WEEK = data.Period(date(2013, 3, 4), 7)
STORM = datetime(2013, 3, 8, tzinfo=UTC)
Found = dict[str, pl.DataFrame]


def complete(period: data.Period) -> Found:
    """The answers of a period, from its events all at once."""
    events = data.load(period)
    answer = program.run({"Departure": events.departure, "Weather": events.weather})
    return {name: pl.DataFrame(answer[name]) for name in RESULTS}


def as_it_came(period: data.Period, where: Path, *, spark: bool = False) -> Found:
    """The answers from files of twelve hours each, in order of arrival: one a batch, or eight on Spark."""
    replay = data.prepare(where / "replay", period, hours=12, bad=())
    sources = {
        name: tg.parquet(replay.path(path), per_batch=8 if spark else 1, delay=queries.delays[name], bounded=True)
        for name, path in STREAMS.items()
    }
    sinks = {name: tg.parquet_sink(where / name) for name in RESULTS}
    if spark:
        from tidegate.runtime.engines.spark.setup.session import spark_session

        query = program.start(
            spark_session("Tidegate: airports"),
            sources=sources,
            sinks=sinks,
            checkpoint=where / "checkpoint",
            trigger="available_now",
        )
        query.awaitTermination()
    else:
        with closing(program.session(sources=sources, sinks=sinks, checkpoint=where / "checkpoint")) as session:
            session.step()
            while session.waiting_files():
                session.step()
    return {name: pl.read_parquet(where / name / "**/*.parquet") for name in sinks}


def states(found: Found) -> pl.DataFrame:
    """A row for each state: its departures, their share, the mean of their delays in minutes, who left late."""
    every = sum(found[name].height for name in STATES.values())
    late = pl.col("dep_delay") > 30
    rows = [
        found[result].select(
            pl.lit(state).alias("state"),
            pl.len().alias("flights"),
            (100 * pl.len() / every).round(1).alias("% of all"),
            pl.col("dep_delay").mean().round(1).alias("minutes late"),
            (100 * late.mean()).round(1).alias("% over half an hour"),
        )
        for state, result in STATES.items()
    ]
    return pl.concat(rows)


def findings(found: Found, hours: int) -> dict[str, float]:
    """What the windows say, in numbers; `hours` are those of all airports together."""
    windows, began = found["SaturatedWindows"], found["BeganInLow"]
    low_hours = _hours(found["LowWindows"])
    in_low, elsewhere = began.height / low_hours, (windows.height - began.height) / (hours - low_hours)
    return {
        "windows of low visibility": found["LowWindows"].height,
        "low visibility, % of all hours": round(100 * low_hours / hours, 1),
        "windows of saturation": windows.height,
        "saturation, % of all hours": round(100 * _hours(windows) / hours, 1),
        "windows of saturation that began in low visibility": began.height,
        "windows an hour in low visibility / elsewhere": round(in_low / elsewhere, 1),
        "flights more than three hours late in normal state": found["Unexplained"].height,
    }


def _hours(windows: pl.DataFrame) -> float:
    return float(windows.select((pl.col("ended") - pl.col("began")).dt.total_minutes().sum()).item()) / 60


def picture(found: Found, origin: str, day: datetime) -> str:
    """The windows that began on a day at an airport, and which saturation began in low visibility, as SVG."""

    def on_the_day(name: str) -> pl.DataFrame:
        inside = pl.col("began").is_between(day, day + timedelta(days=1))
        return found[name].filter(inside, origin=origin).sort("began")

    windows = {
        state: on_the_day(name).select("origin", ts="began", te="ended")
        for state, name in (("low visibility", "LowWindows"), ("saturated", "SaturatedWindows"))
    }
    began = on_the_day("BeganInLow").select(
        "origin",
        pl.col("began").alias("detected"),
        pl.col("low_since").alias("low visibility.ts"),
        pl.col("began").alias("saturated.ts"),
    )
    return tg.timeline(windows, began, partition_by="origin").svg(f"origin = {origin}")


def same(one: Found, other: Found) -> bool:
    return all(one[name].sort(pl.all()).equals(other[name].sort(pl.all())) for name in one)


def main(arguments: list[str]) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--spark", action="store_true")
    options.add_argument("--pictures", type=Path)
    chosen = options.parse_args(arguments)
    week = complete(WEEK)
    if chosen.pictures:
        for name, drawn in (("airport-model", airports.svg()), ("airport-day", picture(week, "EWR", STORM))):
            (chosen.pictures / f"{name}.svg").write_text(drawn + "\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        assert same(as_it_came(WEEK, Path(folder), spark=chosen.spark), week)
    for row in week["BeganInLow"].sort("began", "origin").iter_rows(named=True):
        print(
            f"{row['began']:%d %B %H:%M} {row['origin']}: saturated, in low visibility since {row['low_since']:%H:%M}"
        )
    if chosen.spark:
        return
    found = complete(data.YEAR)
    print(f"\n{'state':<16}{'flights':>9}{'% of all':>10}{'minutes late':>14}{'% over half an hour':>21}")
    for state, flights, share, late, over in states(found).iter_rows():
        print(f"{state:<16}{flights:>9,}{share:>10g}{late:>14g}{over:>21g}")
    print()
    for name, value in findings(found, hours=3 * 365 * 24).items():
        print(f"{name:<52}{value:>8g}")


if __name__ == "__main__":
    main(sys.argv[1:])
