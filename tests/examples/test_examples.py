"""Every numbered example runs as printed, and answers what was computed by hand (TSA §2 and §5)."""

from __future__ import annotations

import datetime as dt
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples.linear_road import checker
from examples.linear_road.queries import FEET, LANES
from examples.operations_room.data import Events, Period, load
from tidegate.analysis.state.bounds import Bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DOCS = EXAMPLES.parent / "docs"


def at(hour: int, minute: int = 0, second: int = 0) -> dt.datetime:
    return dt.datetime(2012, 7, 16, hour, minute, second, tzinfo=dt.UTC)


class Ran:
    """An example after its run: what it printed, and its variables."""

    def __init__(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.variables = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        self.printed = capsys.readouterr().out

    def __getitem__(self, name: str) -> Any:
        return self.variables[name]

    def rows(self, stream: str) -> list[tuple[object, ...]]:
        """The rows of `answer`, sorted."""
        return tuples(self["answer"].rows(stream))


def tuples(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in rows)


def test_stream_and_static_data(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("01_static_data", capsys)
    assert ran.rows("Temp") == [
        (1, at(9), "platform", 21.5),
        (1, at(9, 0, 10), "platform", 21.7),
        (3, at(9, 0, 2), "concourse", 22.0),
    ]
    assert "09:00:02  concourse  sensor 3: 22.0 °C" in ran.printed


def test_tumbling_windows_are_open_at_their_start_and_closed_at_their_end(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("02_tumbling_windows", capsys)
    assert [(second, tuples(rows)) for second, rows in ran["answers"]] == [
        (19, []),
        (20, [(1, at(9, 0, 20), (2.0 + 4.0) / 2), (2, at(9, 0, 20), 7.0)]),
        (59, [(1, at(9, 0, 40), (5.0 + 5.5) / 2)]),
        (60, [(1, at(9, 1), 1.0)]),
    ]
    assert "window to 09:00:40, sensor 1: 5.25 m/s" in ran.printed


def test_frames_need_a_longest_fire_to_be_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("03_frames", capsys)
    assert ran["state"] == {
        "FireStart": "unbounded: missing end - FireStart.time <= c",
        "Smoke": "unbounded: missing end - Smoke.time <= c",
        "FireEnd": "rate(FireEnd) × (skew(FireEnd) + lag)",
    }
    assert [str(o.bound) for o in ran["program"].facts.queries[0].occurrences] == [
        "rate(FireStart) × (1d + skew(FireStart) + lag)",
        "rate(Smoke) × (1d + skew(Smoke) + lag)",
        "rate(FireEnd) × (skew(FireEnd) + lag)",
    ]
    frames = [(at(9), at(9, 20), "concourse", 0.2), (at(9), at(9, 20), "platform", 0.6)]
    assert ran.rows("MaxSmoke") == frames
    # Unbounded is no error: over complete inputs the paper's own query also has its answer, the long fire included.
    inputs = {"FireStart": ran["starts"], "FireEnd": ran["ends"], "Smoke": ran["measured"]}
    long = (at(9, 40), at(9, 40, 1) + dt.timedelta(hours=24))
    later = [*ran["measured"], {"time": at(12), "area": "platform", "conc": 0.8}]
    assert tuples(ran["as_printed"].run(inputs | {"Smoke": later}).rows("MaxSmoke")) == [
        *frames,
        (*long, "platform", 0.8),
    ]


def test_an_aggregation_from_the_detection_to_the_arrival(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("04_event_controlled_aggregation", capsys)
    assert tuples(ran["answer"]) == [(1, "B1", at(9, 4), at(9, 12), 0.7, 2)]
    # Five measurements, a detection and an arrival; the arrival has done its part at 9:12; an hour later so has all.
    assert ran["live"] == [(3, 0, 7), (12, 1, 6), (75, 1, 0)]
    assert "fire 1 in B1: at most 0.7 until the brigade came at 09:12" in ran.printed


def test_non_events_are_stamped_as_the_query_says(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("05_time_stamps_of_non_events", capsys)
    first, others = (2, at(9, 0, 10)), [(1, at(9, 0, 50)), (2, at(9, 0, 51))]
    alarm = ("concourse", at(9, 1))
    # Sensor 1 is silent after 40 s (0, 10 and 40 follow each other within 30 s), sensor 2 between 0 and 31 s and after
    # 41 s. The platform's report comes after exactly two minutes, the concourse's a second later than that.
    assert ran["found"] == {
        29: {"Malfunction": [], "Alarm": []},
        30: {"Malfunction": [first], "Alarm": []},
        179: {"Malfunction": sorted([first, *others]), "Alarm": []},
        180: {"Malfunction": sorted([first, *others]), "Alarm": [alarm]},
    }
    assert "concourse at 09:01:00" in ran.printed


def test_rooms_next_to_a_fire(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("06_neighbouring_rooms", capsys)
    assert ran.rows("Threatened") == [("shop", "hall", at(9, 1)), ("stairs", "hall", at(9, 1))]


def test_windows_follow_each_other_from_the_fire_on(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("07_lazily_aligned_windows", capsys)
    # A window may follow up to a second beyond what has arrived. The fire is out at 4 s; a window to 8 s is the first
    # that ends more than 3 s later, so it is the last.
    assert ran["passed"] == [
        (-1, []),
        (0, [at(9), at(9, 0, 1)]),
        (2, [at(9, 0, 2), at(9, 0, 3)]),
        (5, [at(9, 0, 4), at(9, 0, 5), at(9, 0, 6)]),
        (60, [at(9, 0, 7), at(9, 0, 8)]),
    ]
    # 0.2 was measured at -8 s, which the windows to 0, 1 and 2 s hold, 0.4 at 1 s, 0.1 in the concourse at 4 s.
    averages = [0.2, (0.2 + 0.4) / 2, (0.2 + 0.4) / 2, *[0.4] * 6]
    platform = [(at(9, 0, second), "platform", average) for second, average in enumerate(averages)]
    assert tuples(ran["answer"]) == sorted(
        [*platform, *((at(9, 0, second), "concourse", 0.1) for second in range(4, 9))]
    )
    assert ran["live"] == 0
    assert ran["program"].facts.recursions["Windows"].rank.step == 1_000_000
    following = ran["program"].facts.queries[1].propagation["end"]
    assert following.describe() == "min(Windows.end + 1s, FireEnd.time + 4s 1us)"


def test_frames_grow_minute_by_minute_in_bounded_state(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("08_frame_fragments", capsys)
    found = [(now, tuples(new), tuples(whole)) for now, new, whole in ran["passed"]]
    columns = list(ran["passed"][1][1][0])
    assert columns == ["fid", "start", "end", "area", "max_conc"]
    start = at(9)
    assert found == [
        (at(9, 0, 59), [], []),
        (at(9, 1), [(1, start, at(9, 1), "concourse", 0.1), (1, start, at(9, 1), "platform", 0.5)], []),
        (at(9, 2), [(1, start, at(9, 2), "concourse", 0.3), (1, start, at(9, 2), "platform", 0.6)], []),
        (at(9, 3), [(1, start, at(9, 3), "concourse", 0.3), (1, start, at(9, 3), "platform", 0.6)], []),
        (at(9, 3, 30), [], [(start, at(9, 3, 30), "concourse", 0.3), (start, at(9, 3, 30), "platform", 0.8)]),
        (at(9, 20), [], []),
    ]
    # At 9:01 four measurements of the last minute and two fragments; at 9:02 the one of 9:01:20 and two; at 9:03 two;
    # at 9:03:30 the end of the fire, two measurements and two fragments.
    assert ran["live"] == [4, 6, 3, 2, 5, 0]
    assert all(isinstance(o.bound, Bounded) for query in ran["program"].facts.queries for o in query.occurrences)
    functions = [query.propagation["end"].describe() for query in ran["program"].facts.queries]
    assert functions == [
        "min(FireStart.time + 1m, FireEnd.time + 1us, Smoke.time + 1us)",
        "min(Fragments.end + 1m, FireEnd.time + 1us, Smoke.time + 1us)",
        "min(Fragments.end, FireEnd.time, Smoke.time + 1us)",
    ]


def test_a_report_counts_when_it_is_received(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("09_time_of_arrival", capsys)
    # The platform's deadline is 9:02:05, and its report comes in at that very moment. The concourse's is 9:03:00: its
    # report was written before but comes in after, when the alarm was raised already, by the clock alone.
    alarm = ("concourse", at(9, 1))
    slow = ("concourse", at(9, 2, 30), at(9, 3, 10))
    assert ran["found"] == {
        65: {"Alarm": [], "Slow": []},
        125: {"Alarm": [], "Slow": []},
        179: {"Alarm": [], "Slow": []},
        180: {"Alarm": [alarm], "Slow": []},
        190: {"Alarm": [alarm], "Slow": [slow]},
    }
    assert "at 09:03:00\n  alarm: concourse, detected at 09:01:00" in ran.printed


def test_predictions_lie_in_the_future(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("10_predictions", capsys)
    # Route 1 passes the hall one minute after the predicted smoke; route 3 passes the stairs four minutes before it.
    # Of the three predictions of smoke, the hall's at 9:05 is borne out half a minute later, the stairs' at 9:12
    # exactly one minute later; at 9:09 there was only a little in the hall.
    first = (1, "hall", at(9, 6), at(9, 1))
    second = (2, "stairs", at(9, 12, 30), at(9, 3))
    vain = ("hall", at(9, 10))
    assert [(minute, tuples(warnings), tuples(in_vain)) for minute, warnings, in_vain in ran["found"]] == [
        (1, [first], []),
        (3, [first, second], []),
        (10, [first, second], []),
        (11, [first, second], [vain]),
        (30, [first, second], [vain]),
    ]
    assert ran["live"] == 0
    functions = [query.propagation for query in ran["program"].facts.queries]
    assert functions[0]["known"].describe() == "min(Prediction.computed, Plan.planned)"
    assert functions[1]["holds"].describe() == "min(Prediction.computed, Smoke.time - 1m)"
    assert "at 09:01\n  route 1 will pass smoke in the hall at 09:06:00" in ran.printed


def test_aggressive_drivers_are_reported_while_they_brake(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("11_aggressive_drivers", capsys)
    found = {
        row["car"]: (row["A.te"], row["B.te"], row["C.te"], row["detected"]) for row in ran["found"].rows("Aggressive")
    }
    # Braking has lasted its three seconds; neither it nor, the speeding has ended.
    assert found == {1: (7, None, None, 15), 2: (6, None, None, 13)}


def test_waves_of_late_departures_that_began_in_fog(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["12_fog_and_late_departures"])
    ran = Ran("12_fog_and_late_departures", capsys)
    # What the page says, and its picture, are of this run; the third wave of the day had four flights late by then.
    assert "08 March 18:26 LGA: 4 flights late since 17:27, fog since 17:00 until 18:00" in ran.printed
    figures = ran.printed.split("until 18:00\n")[1]
    assert figures in (DOCS / "explanation" / "fog.md").read_text()
    drawn = ran["picture"](ran["complete"](ran["WEEK"]), "LGA", ran["STORM"])
    assert (DOCS / "pictures" / "fog.svg").read_text() == drawn + "\n"


@pytest.mark.long
def test_delays_that_spread(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran("13_delays_that_spread", capsys)
    assert "LGA 08 March 15:43: 3 waves, the last of 26 flights" in ran.printed


def test_cars_that_stand(capsys: pytest.CaptureFixture[str]) -> None:
    """As the checker of Linear Road has them, which knows nothing of queries."""
    ran = Ran("15_cars_that_stand", capsys)
    found = ran["answer"]
    trips = {
        car: list(checker.of_trips(reports))
        for car, reports in checker.by_car(row for step in ran["steps"]() for row in step).items()
    }

    def number(place: checker.Place) -> int:
        road, direction, lane, feet = place
        return ((road * 2 + direction) * FEET + feet) * LANES + lane

    stops = {(car, number(place), *span) for car, reports in trips.items() for place, span in checker.stops(reports)}
    assert {(row["vid"], row["place"], row["since"], row["until"]) for row in found["Standing"]} == stops
    assert len(found["Standing"]) == len(stops) > 20
    crashes = sorted((number(place), *span) for place, span in checker.accidents(trips))
    assert sorted((row["place"], row["begin"], row["end"]) for row in found["Collisions"]) == crashes
    assert len(crashes) > 5
    assert sum(row["n"] for row in found["Minutes"]) == len(crashes)


def test_flights_that_were_overtaken_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """As a loop over the late flights of each airport and destination finds them."""
    ran = Ran("16_overtaken", capsys)
    ways: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in ran["waits_of"](ran["WEEK"]).to_dicts():
        ways.setdefault((row["origin"], row["dest"]), []).append(row)
    found = 0
    for waits in ways.values():
        inside = [(a, b) for a in waits for b in waits if a["due"] < b["due"] and b["gone"] < a["gone"]]
        found += sum(
            a["carrier"] != c["carrier"] and a["gone"] - a["due"] < dt.timedelta(hours=12)
            for a, b in inside
            for other, c in inside
            if other is b
        )
    assert found > 3
    assert f"overtaken twice: {found}\n" in ran.printed
    stored = re.search(r"stored at most: (\d+) waits, without beginnings (\d+)", ran.printed)
    assert stored is not None
    assert int(stored[1]) < int(stored[2])


def test_states_of_an_airport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["14_states_of_an_airport"])
    ran = Ran("14_states_of_an_airport", capsys)
    week = ran["complete"](ran["WEEK"])
    found = {flight: name for name in ran["STATES"].values() for flight in week[name]["flight_id"]}
    assert found == states_of(load(ran["WEEK"]))
    assert sum(week[name].height for name in ran["STATES"].values()) == len(found)
    assert {found[flight] for flight in week["Unexplained"]["flight_id"]} == {"Normal"}
    assert min(week["Unexplained"]["dep_delay"]) > 180
    # What the page says, and its pictures, are of this run.
    page = (DOCS / "explanation" / "airports.md").read_text()
    assert all(block in page for block in ran.printed.split("\n\n"))
    assert (DOCS / "pictures" / "airport-model.svg").read_text() == ran["airports"].svg() + "\n"
    assert (DOCS / "pictures" / "airport-day.svg").read_text() == ran["picture"](week, "EWR", ran["STORM"]) + "\n"


def states_of(events: Events) -> dict[int, str]:
    """Of each departure the state of its airport, event by event: what holds before an instant holds at it."""
    flights = events.departure.to_pylist()
    half_hours: dict[tuple[str, dt.datetime], list[int]] = {}
    for row in flights:
        ends = row["dep"] + (dt.datetime.min.replace(tzinfo=dt.UTC) - row["dep"]) % dt.timedelta(minutes=30)
        half_hours.setdefault((row["origin"], ends), []).append(row["dep_delay"])
    changes = [
        (row["time"], 1, row["origin"], "low", row["visib"] < 2)
        for row in events.weather.to_pylist()
        if row["visib"] is not None and not 2 <= row["visib"] < 3
    ]
    for (origin, ends), late in half_hours.items():
        mean = sum(late) / len(late)
        if len(late) >= 10 and mean > 45:
            changes.append((ends, 1, origin, "saturated", True))
        elif mean < 20 or len(late) < 3:
            changes.append((ends, 1, origin, "saturated", False))
    names = {(False, False): "Normal", (True, False): "LowVisibility", (False, True): "Saturated", (True, True): "Both"}
    holds: set[tuple[str, str]] = set()
    states = {}
    departures = [(row["dep"], 0, row["origin"], str(row["flight_id"]), False) for row in flights]
    for _, is_change, origin, what, begins in sorted(departures + changes):
        if not is_change:
            states[int(what)] = names[(origin, "low") in holds, (origin, "saturated") in holds]
        elif begins:
            holds.add((origin, what))
        else:
            holds.discard((origin, what))
    return states


@pytest.mark.spark
def test_states_of_an_airport_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    example = runpy.run_path(str(EXAMPLES / "14_states_of_an_airport.py"), run_name="example")
    storm = Period(dt.date(2013, 3, 7), 3)
    assert example["same"](example["as_it_came"](storm, tmp_path, spark=True), example["complete"](storm))


@pytest.mark.spark
def test_waves_of_late_departures_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    example = runpy.run_path(str(EXAMPLES / "12_fog_and_late_departures.py"), run_name="example")
    storm = Period(dt.date(2013, 3, 7), 3)
    found = example["as_it_came"](storm, tmp_path, spark=True)
    assert example["same"](found, example["complete"](storm))
    assert found["Alarm"].height == 3


def test_every_numbered_example_is_tested() -> None:
    tested = Path(__file__).read_text()
    assert all(f'"{path.stem}"' in tested for path in EXAMPLES.glob("[0-9]*.py"))
