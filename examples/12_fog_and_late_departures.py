"""Which waves of late departures began in fog: New York's flights and weather of 2013, situations from two streams.

Fog is a period of observations with less than two miles of visibility; a wave is an hour or more in which every
departure of an airport is more than half an hour late. Weather comes every hour and up to 90 minutes late, departures
within ten minutes. A wave that begins in fog is reported once it has lasted its hour, whichever of the two ends first:
`Alarm`. `Whole` waits for both ends.

    python -m examples.12_fog_and_late_departures                      # the year, and a week as it came in
    python -m examples.12_fog_and_late_departures --spark              # the week on Spark
    python -m examples.12_fog_and_late_departures --picture FILE.svg   # a day at La Guardia
"""

import argparse
import sys
import tempfile
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa

import tidegate as tg
from examples.operations_room import data, queries

departure, weather = queries.departure, queries.weather

fog = weather.partition_by("origin").derive(Fog=tg.situation(weather.visib < 2, least=tg.min(weather.visib))).Fog
wave = (
    departure.partition_by("origin", time="dep", tie="flight_id")
    .derive(Wave=tg.situation(departure.dep_delay > 30, at_least="1h", flights=tg.count(), left=tg.max(departure.dep)))
    .Wave
)
began_in_fog = fog.overlaps(wave) | fog.contains(wave) | fog.finished_by(wave)
program = tg.program(
    Fog=fog,
    Wave=wave,
    Alarm=tg.match(began_in_fog, within="1d"),
    Whole=tg.match(began_in_fog, within="2d", emission="final"),
)
STREAMS = {"Departure": "departure", "Weather": "weather"}
#: A week with a snow storm on its fifth day.
WEEK = data.Period(date(2013, 3, 4), 7)
STORM = datetime(2013, 3, 8, tzinfo=UTC)
Found = dict[str, pl.DataFrame]


def complete(period: data.Period) -> Found:
    """The answers of a period, from its events all at once."""
    events = data.load(period)
    answer = program.run({"Departure": events.departure, "Weather": events.weather})
    return {name: pl.DataFrame(answer[name]) for name in answer}


def as_it_came(period: data.Period, where: Path, *, spark: bool = False) -> Found:
    """The answers from files of twelve hours each, in order of arrival: one a batch, or eight on Spark."""
    replay = data.prepare(where / "replay", period, hours=12, bad=())
    sources = {
        name: tg.parquet(replay.path(path), per_batch=8 if spark else 1, delay=queries.delays[name], bounded=True)
        for name, path in STREAMS.items()
    }
    sinks = {name: tg.parquet_sink(where / name) for name in ("Fog", "Wave", "Alarm", "Whole")}
    if spark:
        from tidegate.runtime.engines.spark.setup.session import spark_session

        query = program.start(
            spark_session("Tidegate: fog"),
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


def findings(found: Found, hours: int) -> dict[str, float]:
    """What the answers say, in numbers; `hours` are those of all airports together."""
    waves, whole = found["Wave"].filter(pl.col("flights") >= 5), found["Whole"].filter(pl.col("Wave.flights") >= 5)
    foggy = found["Fog"].select((pl.col("te") - pl.col("ts")).dt.total_minutes().sum()).item() / 60
    both = found["Alarm"].join(whole, on=["origin", "Fog.ts", "Wave.ts"], suffix=" in the end")
    ahead = both.select((pl.col("detected in the end") - pl.col("detected")).dt.total_minutes())
    in_fog, elsewhere = whole.height / foggy, (waves.height - whole.height) / (hours - foggy)
    return {
        "episodes of fog": found["Fog"].height,
        "fog, % of all hours": round(100 * foggy / hours, 1),
        "waves of five flights or more": waves.height,
        "waves that began in fog": whole.height,
        "waves an hour in fog / in clear air": round(in_fog / elsewhere, 1),
        "late flights in waves that began in fog": whole["Wave.flights"].sum(),
        "of these, flights that left after the alarm": (both["Wave.flights in the end"] - both["Wave.flights"]).sum(),
        "waves that the fog outlasted": whole.filter(pl.col("Fog.te") > pl.col("Wave.left")).height,
        "alarm ahead of both ends, minutes, median": ahead.median().item(),
    }


def picture(found: Found, origin: str, day: datetime) -> str:
    """The timeline of a day at an airport as SVG."""

    def rows(name: str, start: str) -> pa.Table:
        inside = pl.col(start).is_between(day, day + timedelta(days=1))
        return found[name].filter(inside, origin=origin).sort(start).to_arrow()

    situations = {"fog": rows("Fog", "ts"), "wave": rows("Wave", "ts")}
    return tg.timeline(situations, rows("Alarm", "detected"), partition_by="origin").svg(f"origin = {origin}")


def same(one: Found, other: Found) -> bool:
    return all(one[name].sort(pl.all()).equals(other[name].sort(pl.all())) for name in one)


def main(arguments: list[str]) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--spark", action="store_true")
    options.add_argument("--picture", type=Path)
    chosen = options.parse_args(arguments)
    week = complete(WEEK)
    if chosen.picture:
        chosen.picture.write_text(picture(week, "LGA", STORM) + "\n")
        print(f"picture in {chosen.picture}")
        return
    with tempfile.TemporaryDirectory() as folder:
        assert same(as_it_came(WEEK, Path(folder), spark=chosen.spark), week)
    for row in week["Alarm"].sort("detected").iter_rows(named=True):
        print(
            (
                f"{row['detected']:%d %B %H:%M} {row['origin']}: {row['Wave.flights']} flights late since "
                f"{row['Wave.ts']:%H:%M},"
            ),
            end=" ",
        )
        print(f"fog since {row['Fog.ts']:%H:%M}" + (f" until {row['Fog.te']:%H:%M}" if row["Fog.te"] else ""))
    if chosen.spark:
        return
    found = findings(complete(data.YEAR), hours=3 * 365 * 24)
    for name, value in found.items():
        print(f"{name:<48}{value:>6g}")
    assert found["waves an hour in fog / in clear air"] > 2
    assert found["of these, flights that left after the alarm"] > 0.4 * found["late flights in waves that began in fog"]


if __name__ == "__main__":
    main(sys.argv[1:])
