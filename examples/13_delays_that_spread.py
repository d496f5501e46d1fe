"""Sequences among other operators, on real data: how delays spread at New York's airports in three days of March 2013.

`Growing`: waves of late departures, which are situations, each with more flights than the one before. `Again`: two
alarms within a day, which are matches of fog and a wave. `Fading`: three departures in a row, each later than the one
before, in less than four miles of visibility as it was observed last; rows of a join. `Days`: how many of these began
on each day, a window above the sequence.

    python -m examples.13_delays_that_spread
"""

import tempfile
from contextlib import closing
from datetime import date
from pathlib import Path

import polars as pl

import tidegate as tg
from examples.operations_room import data, queries

departure, weather = queries.departure, queries.weather

# Situations inside a sequence.
fog = weather.partition_by("origin").derive(Fog=tg.situation(weather.visib < 2)).Fog
late = departure.partition_by("origin", time="dep", tie="flight_id").derive(
    Wave=tg.situation(departure.dep_delay > 30, at_least="30m", flights=tg.count())
)
growing = late.Wave.unqualified().sequences(
    "First Larger+",
    by="origin",
    order="te",
    define={"Larger": lambda m: m.Larger.flights > m.Larger.prev().flights},
    within="12h",
    waves=lambda m: m.rows.agg(tg.count()),
    flights=lambda m: m.Larger.flights,
)

# A sequence of matches.
alarm = tg.match(fog.overlaps(late.Wave) | fog.contains(late.Wave) | fog.finished_by(late.Wave), within="1d")
again = alarm.sequences("One Other", by="origin", order="detected", tie="Wave.ts", within="1d", skip="next row")

# A sequence of joined rows, and a window above it.
seen = departure.as_("d").asof_join(weather.as_("w"), by="origin", left_on="d.dep", right_on="w.time", within="2h")
flights = seen.select(
    origin=seen["d.origin"],
    dep=seen["d.dep"],
    flight_id=seen["d.flight_id"],
    late=seen["d.dep_delay"],
    visib=seen["w.visib"],
)
fading = flights.sequences(
    "A B C",
    by="origin",
    order="dep",
    tie="flight_id",
    define={
        "A": lambda m: (m.A.late > 0) & (m.A.visib < 4),
        "B": lambda m: m.B.late > m.A.late,
        "C": lambda m: (m.C.late > m.B.late) & (m.C.visib < 4),
    },
    within="1h",
    late=lambda m: m.C.late,
)
days = fading.group_by("origin", day=tg.ceil(fading["first"], "1d")).agg(n=tg.count(), most=tg.max(fading.late))

program = tg.program(Growing=growing, Again=again, Fading=fading, Days=days)
STREAMS = {"Departure": "departure", "Weather": "weather"}
RESULTS = ("Growing", "Again", "Fading", "Days")
#: Around a snow storm.
STORM = data.Period(date(2013, 3, 7), 3)
Found = dict[str, pl.DataFrame]


def complete(period: data.Period) -> Found:
    """The answers of a period, from its events all at once."""
    events = data.load(period)
    answer = program.run({"Departure": events.departure, "Weather": events.weather})
    return {name: pl.DataFrame(answer[name]) for name in answer}


def as_it_came(period: data.Period, where: Path) -> Found:
    """The answers from files of twelve hours each, in order of arrival, one a batch."""
    replay = data.prepare(where / "replay", period, hours=12, bad=())
    sources = {
        name: tg.parquet(replay.path(path), per_batch=1, delay=queries.delays[name], bounded=True)
        for name, path in STREAMS.items()
    }
    with closing(program.session(sources=sources)) as session:
        session.step()
        while session.waiting_files():
            session.step()
        return {query: pl.DataFrame(session.results(query), infer_schema_length=None) for query in RESULTS}


def main() -> None:
    found = complete(STORM)
    with tempfile.TemporaryDirectory() as folder:
        came = as_it_came(STORM, Path(folder))
    for name in RESULTS:
        assert sorted(map(str, came[name].rows())) == sorted(map(str, found[name].rows())), name
        print(f"{name}: {found[name].height}")
    for row in found["Growing"].sort("detected").iter_rows(named=True):
        print(f"{row['origin']} {row['first']:%d %B %H:%M}: {row['waves']} waves, the last of {row['flights']} flights")


if __name__ == "__main__":
    main()
