"""The batch answers: hand-computed cases at every boundary, and January's numbers."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from examples.operations_room import expected
from examples.operations_room.data import JANUARY, YEAR
from examples.operations_room.expected import Inputs

MOMENT = pl.Datetime("us", "UTC")


def at(hour: int, minute: int = 0, second: int = 0, *, day: int = 1) -> datetime:
    return datetime(2013, 1, day, hour, minute, second, tzinfo=UTC)


def given(
    *,
    schedule: list[tuple[int, str, str, datetime]] | None = None,
    departure: list[tuple[int, str, str, datetime, datetime]] | None = None,
    weather: list[tuple[str, datetime, float]] | None = None,
) -> Inputs:
    """Schedule: id, origin, dest, sched_dep. Departure: id, origin, dest, sched_dep, dep. Weather: origin, time,
    visib.
    """
    flights = pl.DataFrame(
        departure or [],
        schema={"flight_id": pl.Int64, "origin": pl.String, "dest": pl.String, "sched_dep": MOMENT, "dep": MOMENT},
        orient="row",
    )
    return Inputs(
        schedule=pl.DataFrame(
            schedule or [],
            schema={"flight_id": pl.Int64, "origin": pl.String, "dest": pl.String, "sched_dep": MOMENT},
            orient="row",
        ).with_columns(carrier=pl.lit("UA"), flight=pl.col("flight_id")),
        departure=flights.with_columns(
            carrier=pl.lit("UA"), dep_delay=(pl.col("dep") - pl.col("sched_dep")).dt.total_minutes()
        ),
        weather=pl.DataFrame(
            weather or [], schema={"origin": pl.String, "time": MOMENT, "visib": pl.Float64}, orient="row"
        ),
        airports=pl.DataFrame({"faa": ["JFK", "LGA"], "name": ["Kennedy", "La Guardia"]}),
        airlines=pl.DataFrame({"carrier": ["UA"], "name": ["United"]}),
    )


@pytest.fixture(scope="module")
def january() -> dict[str, pl.DataFrame]:
    return expected.results(JANUARY)


def test_an_hour_is_open_at_its_start_and_closed_at_its_end() -> None:
    departures = [
        (number, "JFK", "BOS", at(9, 30), moment)
        for number, moment in enumerate([at(10), at(10, 0, 1), at(10, 59), at(11), at(11, 1)])
    ]
    found = expected.hourly_departures(given(departure=departures)).sort("hour")
    assert found.rows() == [
        ("JFK", "Kennedy", at(10), 1, 30.0, 30),
        ("JFK", "Kennedy", at(11), 3, (30 + 89 + 90) / 3, 90),
        ("JFK", "Kennedy", at(12), 1, 91.0, 91),
    ]


def test_a_flight_is_missing_when_it_left_more_than_two_hours_late_or_never() -> None:
    schedule = [(number, "JFK", "BOS", at(9)) for number in range(4)]
    departure = [
        (0, "JFK", "BOS", at(9), at(8, 20)),
        (1, "JFK", "BOS", at(9), at(11)),
        (2, "JFK", "BOS", at(9), at(11, 1)),
    ]
    found = expected.not_departed(given(schedule=schedule, departure=departure))
    assert found.sort("flight_id").rows() == [(number, "JFK", "United", number, "BOS", at(9)) for number in (2, 3)]


def test_an_episode_lasts_until_an_hour_after_its_last_poor_observation() -> None:
    visib = {0: 10.0, 1: 2.9, 2: 0.5, 3: 3.0, 4: 2.0, 6: 2.0, 7: 2.0, 8: 9.0}  # nothing observed at 5
    weather = [("JFK", at(hour), miles) for hour, miles in visib.items()] + [("LGA", at(3), 1.0)]
    assert expected.poor_visibility(given(weather=weather)).sort("origin", "start").rows() == [
        ("JFK", at(1), at(3)),
        ("JFK", at(4), at(5)),
        ("JFK", at(6), at(8)),
        ("LGA", at(3), at(4)),
    ]


def test_an_episode_of_more_than_two_days_is_not_found() -> None:
    moments = [at(0) + timedelta(hours=number) for number in range(50)]
    assert expected.poor_visibility(given(weather=[("JFK", moment, 1.0) for moment in moments])).height == 0
    assert expected.poor_visibility(given(weather=[("JFK", moment, 1.0) for moment in moments[:49]])).height == 1


def test_the_worst_delay_counts_departures_from_the_start_and_before_the_end() -> None:
    weather = [("JFK", at(23), 1.0), ("JFK", at(0, day=2), 1.0), ("LGA", at(5), 1.0)]
    departure = [
        (1, "JFK", "BOS", at(21), at(22, 59)),
        (2, "JFK", "BOS", at(22, 50), at(23)),
        (3, "JFK", "BOS", at(0, 50, day=2), at(0, 59, day=2)),
        (4, "JFK", "BOS", at(0, day=2), at(1, day=2)),
        (5, "LGA", "BOS", at(20), at(23, 30)),
    ]
    found = expected.worst_delay(given(weather=weather, departure=departure))
    assert found.rows() == [("JFK", "Kennedy", at(23), at(1, day=2), 2, 10, 9.5)]


def test_bunching_needs_half_an_hour_planned_and_ten_minutes_flown() -> None:
    departure = [
        (1, "JFK", "BOS", at(22), at(0, 5, day=2)),
        (2, "JFK", "BOS", at(22, 29), at(0, 5, day=2)),  # one minute short of half an hour after 1
        (3, "JFK", "BOS", at(22, 30), at(23, 55)),  # ten minutes before 1, across midnight
        (4, "JFK", "BOS", at(23), at(0, 15, day=2)),  # ten minutes after 1 and 2, which is planned 31 minutes earlier
        (5, "JFK", "BOS", at(23), at(0, 16, day=2)),  # eleven minutes after them
        (6, "JFK", "ORD", at(23), at(0, 5, day=2)),
        (7, "LGA", "BOS", at(23), at(0, 5, day=2)),
    ]
    found = expected.bunching(given(departure=departure))
    assert sorted(found.select("flight_a", "flight_b").rows()) == [(1, 3), (1, 4), (2, 4)]


def test_january_numbers(january: dict[str, pl.DataFrame]) -> None:
    assert {name: frame.height for name, frame in january.items()} == {
        "HourlyDepartures": 1_762,
        "NotDeparted": 1_114,
        "PoorStart": 26,
        "PoorEnd": 26,
        "PoorVisibility": 26,
        "WorstDelay": 24,
        "Bunching": 311,
        "Fog": 22,
        "Wave": 52,
        "LateInFog": 5,
    }


def test_january_counts_agree_with_the_input(january: dict[str, pl.DataFrame]) -> None:
    inputs = expected.inputs(JANUARY)
    assert january["HourlyDepartures"]["departures"].sum() == inputs.departure.height == 26_483
    assert january["HourlyDepartures"]["max_delay"].max() == 1_301
    late = inputs.departure.filter(pl.col("dep_delay") > 120).height
    assert january["NotDeparted"].height == late + 521
    worst = january["WorstDelay"].sort("worst", descending=True).row(0, named=True)
    assert (worst["origin"], worst["worst"], worst["departures"]) == ("JFK", 599, 163)
    assert (worst["start"], worst["end"]) == (at(23, day=13), at(15, day=14))


def test_january_episodes_equal_a_walk_over_the_observations(january: dict[str, pl.DataFrame]) -> None:
    episodes: list[tuple[str, datetime, datetime]] = []
    for origin, moment, visib in (
        expected.inputs(JANUARY).weather.sort("origin", "time").select("origin", "time", "visib").rows()
    ):
        if visib >= 3:
            continue
        if episodes and episodes[-1][0] == origin and moment - episodes[-1][2] <= timedelta(minutes=10):
            episodes[-1] = (origin, episodes[-1][1], moment + timedelta(hours=1))
        else:
            episodes.append((origin, moment, moment + timedelta(hours=1)))
    assert january["PoorVisibility"].sort("origin", "start").rows() == episodes
    assert january["PoorVisibility"].select((pl.col("end") - pl.col("start")).max()).item() == timedelta(hours=22)


def test_equal_bags_differ_in_nothing(january: dict[str, pl.DataFrame]) -> None:
    for frame in january.values():
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3).select(reversed(frame.columns))
        assert expected.differences(frame, shuffled) == []


def test_differences_name_missing_and_surplus_rows_columns_and_values() -> None:
    one = pl.DataFrame({"a": [1, 1, None], "x": [0.1, 0.1, None]})
    assert expected.differences(one, one.with_columns(x=pl.col("x") * (1 + 1e-14))) == []
    assert expected.differences(one, one.rename({"x": "y"})) == ["columns ['a', 'y'] instead of ['a', 'x']"]
    assert expected.differences(one, one.slice(1)) == ["1 rows instead of 2: {'a': 1}"]
    assert len(expected.differences(one, one.with_columns(x=pl.lit(0.2)))) == 3
    assert expected.differences(one, one.head(0)) == [
        "0 rows instead of 2: {'a': 1}",
        "0 rows instead of 1: {'a': None}",
    ]


@pytest.mark.long
def test_year_numbers() -> None:
    assert {name: frame.height for name, frame in expected.results(YEAR).items()} == {
        "HourlyDepartures": 21_087,
        "NotDeparted": 17_978,
        "PoorStart": 239,
        "PoorEnd": 239,
        "PoorVisibility": 239,
        "WorstDelay": 223,
        "Bunching": 4_862,
        "Fog": 168,
        "Wave": 818,
        "LateInFog": 32,
    }
