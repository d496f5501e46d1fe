"""The operations room's input: what the package's data is, and that the replay keeps what it declares."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from examples.operations_room import data
from examples.operations_room.data import JANUARY, YEAR, Events, Period, Replay

EVENT_TIME = {
    "schedule": ("announced", data.SCHEDULE_DELAY),
    "departure": ("dep", data.DEPARTURE_DELAY),
    "weather": ("time", data.WEATHER_DELAY),
}


@pytest.fixture(scope="module")
def year() -> Events:
    return data.load(YEAR)


@pytest.fixture(scope="module")
def january() -> Events:
    return data.load(JANUARY)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return data.prepare(tmp_path_factory.mktemp("replay") / "january", bad=("null", "late"))


def files(replay: Replay, stream: str) -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted(replay.path(stream).iterdir())]


def late(replay: Replay, stream: str, per_batch: int) -> list[dict[str, Any]]:
    """The rows at or behind progress b = max seen - delay - 1 tick of the batches before, some files a batch."""
    column, delay = EVENT_TIME[stream]
    found: list[dict[str, Any]] = []
    latest: datetime | None = None
    tables = files(replay, stream)
    for first in range(0, len(tables), per_batch):
        batch = pa.concat_tables(tables[first : first + per_batch])
        if latest is not None:
            behind = pc.less(batch[column], pa.scalar(latest - delay, data.UTC_MICROS))
            found += batch.filter(pc.fill_null(behind, False)).to_pylist()
        newest = pc.max(batch[column]).as_py()
        latest = newest if latest is None or (newest is not None and newest > latest) else latest
    return found


def test_year_has_every_flight_and_observation(year: Events) -> None:
    assert year.schedule.num_rows == 336_776
    assert year.departure.num_rows == 336_776 - 8_255
    assert year.cancelled.num_rows == 8_255
    assert year.weather.num_rows == 26_115
    assert year.airports.num_rows == 1_458
    assert year.airlines.num_rows == 16


def test_january(january: Events) -> None:
    assert (january.schedule.num_rows, january.departure.num_rows, january.cancelled.num_rows) == (27_004, 26_483, 521)
    assert january.weather.num_rows == 2_226
    assert pc.min(january.schedule["sched_dep"]).as_py() == datetime(2013, 1, 1, 10, 15, tzinfo=UTC)
    assert pc.max(january.schedule["sched_dep"]).as_py() == datetime(2013, 2, 1, 4, 59, tzinfo=UTC)


def test_times_are_utc_hour_plus_minute(january: Events) -> None:
    # The package's first line: 05:15 in New York, UA 1545 to Houston, two minutes late.
    first = january.departure.slice(0, 1).to_pylist()[0]
    assert first == {
        "flight_id": 1,
        "origin": "EWR",
        "carrier": "UA",
        "dest": "IAH",
        "sched_dep": datetime(2013, 1, 1, 10, 15, tzinfo=UTC),
        "dep": datetime(2013, 1, 1, 10, 17, tzinfo=UTC),
        "dep_delay": 2,
    }


def test_dep_is_sched_dep_plus_delay_within_the_declared_bound(year: Events) -> None:
    assert pc.min_max(year.departure["dep_delay"]).as_py() == {"min": -43, "max": 1301}
    micros = pc.multiply(pc.cast(year.departure["dep_delay"], pa.int64()), 60_000_000)
    sched, dep = (pc.cast(year.departure[name], pa.int64()) for name in ("sched_dep", "dep"))
    assert pc.all(pc.equal(pc.subtract(dep, sched), micros)).as_py()
    assert timedelta(minutes=43) <= data.EARLY_BOUND


def test_flight_ids_are_row_numbers_and_unique(year: Events) -> None:
    assert year.schedule["flight_id"].to_pylist() == list(range(1, 336_777))


def test_flights_are_announced_three_to_six_hours_ahead(year: Events) -> None:
    ahead = pc.subtract(*(pc.cast(year.schedule[name], pa.int64()) for name in ("sched_dep", "announced")))
    assert pc.min_max(ahead).as_py() == {"min": 3 * 3_600_000_000, "max": 6 * 3_600_000_000}


def test_announcements_do_not_depend_on_the_period(year: Events, january: Events) -> None:
    part = year.schedule.filter(pc.is_in(year.schedule["flight_id"], january.schedule["flight_id"].combine_chunks()))
    assert part.combine_chunks() == january.schedule.combine_chunks()


def test_weather_has_gaps_and_missing_values_but_no_duplicates(year: Events) -> None:
    assert data.weather_gaps(year.weather) == {
        "EWR": {2: 13, 3: 2, 6: 2},
        "JFK": {2: 10, 3: 2, 6: 2},
        "LGA": {2: 10, 3: 2, 6: 2},
    }
    assert {name: year.weather[name].null_count for name in year.weather.column_names} == {
        "origin": 0,
        "time": 0,
        "visib": 0,
        "temp": 1,
        "wind": 4,
        "precip": 0,
    }


def test_weather_gaps_count_a_duplicate_as_zero_hours() -> None:
    moments = [datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in (3, 1, 1, 2)]
    weather = pa.table({"origin": ["JFK"] * 4, "time": pa.array(moments, data.UTC_MICROS)})
    assert data.weather_gaps(weather) == {"JFK": {0: 1}}


def test_static_tables_name_all_carriers_and_all_but_four_destinations(year: Events) -> None:
    def values(table: pa.Table, column: str) -> set[str]:
        return set(pc.unique(table[column]).to_pylist())

    assert values(year.schedule, "carrier") == values(year.airlines, "carrier")
    assert values(year.schedule, "origin") == {"EWR", "JFK", "LGA"} <= values(year.airports, "faa")
    assert values(year.schedule, "dest") - values(year.airports, "faa") == {"BQN", "PSE", "SJU", "STT"}


@pytest.mark.parametrize(("start", "days"), [(date(2012, 12, 31), 2), (date(2013, 12, 31), 2), (date(2013, 1, 1), 0)])
def test_a_period_outside_2013_is_refused(start: date, days: int) -> None:
    with pytest.raises(ValueError, match="2013 only"):
        Period(start, days)


@pytest.mark.parametrize("stream", data.STREAMS)
def test_replay_holds_every_row_once(replay: Replay, january: Events, stream: str) -> None:
    bad = data.BAD_ROWS["null"] + data.BAD_ROWS["late"] if stream == "departure" else 0
    table = pa.concat_tables(files(replay, stream))
    expected: pa.Table = getattr(january, stream)
    assert table.num_rows == replay.rows[stream] == expected.num_rows + bad
    assert sum(replay.bad[stream].values()) == bad
    if stream == "departure":
        spoilt = {row["flight_id"] for row in late(replay, stream, 1)}
        again = table.filter(pc.is_in(table["flight_id"], pa.array(sorted(spoilt))))
        assert again.num_rows == 2 * data.BAD_ROWS["late"]
        table = pa.concat_tables([table.filter(pc.is_valid(table["dep"]))]).group_by(table.column_names).aggregate([])
    keys = [(name, "ascending") for name in table.column_names]
    assert table.sort_by(keys).combine_chunks() == expected.sort_by(keys).combine_chunks()


@pytest.mark.parametrize("stream", data.STREAMS)
@pytest.mark.parametrize("per_batch", [1, 4])
def test_only_the_rows_spoilt_for_it_are_late(replay: Replay, stream: str, per_batch: int) -> None:
    assert len(late(replay, stream, per_batch)) == replay.bad[stream].get("late", 0)


@pytest.mark.parametrize("stream", data.STREAMS)
def test_disorder_is_real_and_within_the_declared_delay(tmp_path: Path, stream: str) -> None:
    replay = data.prepare(tmp_path / "replay", Period(date(2013, 2, 1), 5), bad=())
    column, delay = EVENT_TIME[stream]
    moments = pa.concat_tables(files(replay, stream))[column].to_pylist()
    latest = moments[0]
    furthest = timedelta(0)
    for moment in moments:
        latest = max(latest, moment)
        furthest = max(furthest, latest - moment)
    assert timedelta(0) < furthest <= delay


def test_streams_advance_together(replay: Replay) -> None:
    names = {stream: sorted(path.name for path in replay.path(stream).iterdir()) for stream in data.STREAMS}
    assert names["schedule"] == names["departure"] == names["weather"]
    assert len(names["weather"]) == replay.files
    for number in range(replay.files):
        moments = []
        for stream in data.STREAMS:
            column, _ = EVENT_TIME[stream]
            table = pq.read_table(replay.path(stream) / f"part-{number:05d}.parquet")
            moments += [pc.max(table[column]).as_py()] if table.num_rows else []
        assert max(moments) - min(moments) <= timedelta(hours=replay.hours) + data.WEATHER_DELAY


def test_file_times_order_the_files_and_lie_in_the_past(replay: Replay) -> None:
    times = [path.stat().st_mtime_ns for path in sorted(replay.path("departure").iterdir())]
    assert times == sorted(set(times))
    assert times[-1] < datetime.now(UTC).timestamp() * 1e9


def test_files_have_the_declared_types_even_when_empty(tmp_path: Path) -> None:
    replay = data.prepare(tmp_path / "replay", Period(date(2013, 12, 31), 1), hours=1, bad=())
    tables = files(replay, "weather")  # the package's weather ends a day before its flights
    assert sum(table.num_rows for table in tables) == 0
    assert {str(table.schema.field("time").type) for table in tables} == {"timestamp[us, tz=UTC]"}


def test_same_seed_same_files_other_seed_other_order(tmp_path: Path) -> None:
    period = Period(date(2013, 6, 1), 2)
    one, two, other = (data.prepare(tmp_path / f"{n}", period, seed=seed) for n, seed in enumerate((7, 7, 8)))
    assert files(one, "departure") == files(two, "departure")
    assert pa.concat_tables(files(one, "departure")) != pa.concat_tables(files(other, "departure"))


def test_every_kind_of_bad_row_is_there_unless_declined(tmp_path: Path) -> None:
    replay = data.prepare(tmp_path / "replay", Period(date(2013, 1, 1), 10))
    assert replay.bad["departure"] == {"null": 25, "late": 12, "relation": 8}
    assert replay.bad["weather"] == {"unparseable": 6}
    departure = pa.concat_tables(files(replay, "departure"))
    assert departure["dep"].null_count == 25
    bound = pc.add(departure["dep"], pa.scalar(data.EARLY_BOUND, pa.duration("us")))
    assert pc.sum(pc.greater(departure["sched_dep"], bound)).as_py() == 8
    weather = pa.concat_tables(files(replay, "weather"))
    assert weather.schema.field("time").type == pa.string()
    good = pc.match_substring_regex(weather["time"], r"^2013-01-\d\dT\d\d:00:00Z$")
    assert pc.sum(pc.invert(good)).as_py() == 6


def test_a_short_period_has_no_late_rows(tmp_path: Path) -> None:
    assert data.prepare(tmp_path / "replay", Period(date(2013, 1, 1), 2)).bad["departure"]["late"] == 0


def test_an_old_replay_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "weather").mkdir()
    with pytest.raises(FileExistsError, match="choose a new directory"):
        data.prepare(tmp_path)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data.main(["--out", str(tmp_path / "r"), "--start", "2013-07-04", "--days", "2", "--bad-rows", "none"]) == 0
    assert "departure" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        data.main(["--out", str(tmp_path / "s"), "--bad-rows", "nul"])
    assert "unknown kind of bad rows 'nul'" in capsys.readouterr().err
