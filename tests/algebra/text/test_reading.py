"""Queries of the papers as text, what each clause means, and where errors point."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

import tidegate as tg
from tidegate.algebra.allen import RELATIONS
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.text.wording import SAID

CARS = tg.stream("CarSensors", "car_id bigint, time timestamp, speed double, accel double", progress="time")
TICKS = tg.stream("CarSensors", "car_id bigint, time bigint, speed double, accel double", progress="time")

#: EDBT 2018, Listing 1, as it is printed.
PAPER = """FROM CarSensors CS PARTITION BY CS.car_id DEFINE A AS CS.accel > 8m/s2 at least 5s,
B AS CS.speed > 70 mph between 4s AND 30s, C AS CS.accel < -9m/s2 at least 3s
PATTERN A meets B;A overlaps B;A starts B;A during B
AND C during B;B finishes C;B overlaps C;B meets C AND A before C WITHIN 5 MINUTES
RETURN first(B.car_id) AS id,
avg(B.speed) AS avg_speed;
"""
#: Thesis, Listing 5.1.
THESIS = """FROM CarSensors PARTITION BY car_id
DEFINE A AS accel > 8m/s2 AT LEAST 5s,
       B AS speed > 70 mph BETWEEN 4s AND 30s,
       C AS accel < -9m/s2 AT LEAST 3s
PATTERN A meets;overlaps;starts;during B
    AND B contains;finishes;overlaps;meets C
    AND A before C
WITHIN 5 minutes
RETURN first(B.car_id) AS id,
       avg(B.speed) AS avg_speed;
"""


def in_python() -> Relation:
    """The same query in the DSL; `finishes` is the paper's."""
    s = CARS.partition_by("car_id", time="time").derive(
        A=tg.situation(CARS.accel > 8, at_least="5s"),
        B=tg.situation(
            CARS.speed > 70,
            between=("4s", "30s"),
            first_car_id=tg.first(CARS.car_id, by=CARS.time),
            avg_speed=tg.avg(CARS.speed),
        ),
        C=tg.situation(CARS.accel < -9, at_least="3s"),
    )
    a, b, c = s.A, s.B, s.C
    hits = s.match(
        a.meets(b) | a.overlaps(b) | a.starts(b) | a.during(b),
        c.during(b) | b.finished_by(c) | b.overlaps(c) | b.meets(c),
        a.before(c),
        within="5m",
    )
    return hits.select(id=hits["B.first_car_id"], avg_speed=hits["B.avg_speed"], detected=hits.detected)


@pytest.mark.parametrize("text", [PAPER, THESIS])
def test_the_papers_query_is_the_one_in_python(text: str) -> None:
    query = tg.read_query(text, CARS, dialect="tpstream")
    assert query._node == in_python()._node
    assert tg.program(Aggressive=query).check() == []


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("joined", [" ", "-", "_", "  \n"])
def test_every_relation_in_every_spelling(relation: object, joined: str) -> None:
    name = relation.value  # type: ignore[attr-defined]  # parametrized over an enum
    text = f"FROM CarSensors DEFINE A AS speed > 1, B AS accel > 1 PATTERN A {name.replace('_', joined).upper()} B"
    s = CARS.partition_by(time="time").derive(A=tg.situation(CARS.speed > 1), B=tg.situation(CARS.accel > 1))
    assert tg.read_query(text, CARS, dialect="allen")._node == tg.match(s.A, s.B, getattr(s.A, name)(s.B))._node
    mirrored = {"finishes": "finished_by", "finished_by": "finishes"}.get(name, name)
    assert tg.read_query(text, CARS, dialect="tpstream")._node == tg.match(s.A, s.B, getattr(s.A, mirrored)(s.B))._node


@pytest.mark.parametrize("dialect", ["allen", "tpstream"])
def test_intersects_is_read_and_printed_beside_allens_relations(dialect: Literal["allen", "tpstream"]) -> None:
    text = (
        "FROM CarSensors DEFINE A AS speed > 1, B AS accel > 1, C AS accel > 2 PATTERN A Intersects B AND B "
        "meets;intersects C"
    )
    s = CARS.partition_by(time="time").derive(
        A=tg.situation(CARS.speed > 1), B=tg.situation(CARS.accel > 1), C=tg.situation(CARS.accel > 2)
    )
    query = tg.read_query(text, CARS, dialect=dialect)
    assert query._node == tg.match(s.A, s.B, s.C, s.A.intersects(s.B), s.B.meets(s.C) | s.B.intersects(s.C))._node
    printed = tg.query_text(query, dialect=dialect)
    assert "PATTERN A intersects B\n    AND B meets;intersects C\n" in printed
    assert tg.read_query(printed, CARS, dialect=dialect)._node == query._node


def test_finishes_without_a_dialect_is_allens_and_warned_of() -> None:
    with pytest.warns(tg.AmbiguousRelationWarning, match="mirror image") as caught:
        query = tg.read_query(PAPER, CARS)
    assert query._node == tg.read_query(PAPER, CARS, dialect="allen")._node
    assert query._node != tg.read_query(PAPER, CARS, dialect="tpstream")._node
    assert "query:4:18" in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.read_query(PAPER, CARS, dialect="allen")
        tg.read_query(PAPER.replace("finishes", "contains"), CARS)


def test_a_match_runs() -> None:
    text = "FROM CarSensors DEFINE A AS accel > 8, B AS speed > 70 PATTERN A overlaps B WITHIN 60"
    text += " RETURN A.ts AS began, count(A) AS n, COUNT_DISTINCT(A.accel) AS m"
    rows = [(1, t, 80.0 if 3 <= t < 9 else 0.0, 9.0 if 1 <= t < 5 else 0.0) for t in range(12)]
    program = tg.program(Hits=tg.read_query(text, TICKS))
    assert program.run({"CarSensors": rows}).rows("Hits") == [{"began": 1, "n": 4, "m": 1, "detected": 5}]


def test_order_by_names_the_time_and_what_comes_first_of_equal_times() -> None:
    asked = "PARTITION BY speed DEFINE A AS accel > 8"
    query = tg.read_query(f"FROM CarSensors ORDER BY time, car_id {asked}", CARS)
    ordered = CARS.partition_by("speed", time="time", tie="car_id")
    assert query._node == tg.match(ordered.derive(A=tg.situation(CARS.accel > 8)).A)._node
    assert tg.query_text(query).splitlines()[1] == "ORDER BY time, car_id"


# Units and durations --------------------------------------------------------------------------------------------------


def printed(condition: str, stream: Relation = CARS, **units: str) -> str:
    text = tg.query_text(tg.read_query(f"FROM CarSensors DEFINE A AS {condition}", stream, units=units))
    return text.split(" AS ")[1].strip()


def test_a_quantity_is_its_number_unless_the_attribute_has_a_unit() -> None:
    assert printed("speed > 70 mph") == "speed > 70.0"
    assert printed("speed > 70 mph", speed="mph") == "speed > 70.0"
    assert printed("speed > 72 km/h", speed="m/s") == "speed > 20.0"
    assert printed("speed > 70 mph", speed="km/h") == "speed > 112.65408"
    assert printed("speed > 70", speed="km/h") == "speed > 70.0"
    assert printed("accel < -9m/s2 or accel < -9 m/s^2", accel="m/s²") == "accel < -9.0 OR accel < -9.0"
    assert printed("speed * 2 > 10 m/s", speed="km/h") == "speed * 2.0 > 36.0"
    assert printed("speed / 2s > 1 m/s2", speed="m/s") == "speed / 2.0 > 1.0"


def test_what_a_plain_number_is_divided_by_gives_it_no_unit() -> None:
    assert printed("2 / speed > 72 km/h", speed="m/s") == "2.0 / speed > 72.0"
    assert printed("2 * speed > 72 km/h", speed="m/s") == "2.0 * speed > 20.0"


@pytest.mark.parametrize(
    ("quantity", "number", "unit"),
    [
        ("1 km", 100_000, "cm"), ("1 m", 1000, "mm"), ("1 mi", 5280, "ft"), ("1 mile", 1760, "yd"), ("10 ft", 3.048, "m"),
        ("1 nmi", 1.852, "km"), ("1 t", 1000, "kg"), ("1 lb", 453.59237, "g"), ("1 w", 7, "d"), ("1 d", 24, "h"),
        ("1 h", 60, "min"), ("1 min", 60, "s"), ("1 s", 1000, "ms"), ("1 ms", 1000, "us"), ("1 mph", 1.609344, "km/h"),
        ("1 kmh", 1, "km/h"), ("1 kph", 1, "km/h"), ("1 kn", 1.852, "kmh"), ("1 kHz", 1000, "Hz"), ("1 Hz", 60, "rpm"),
        ("1 A", 1000, "mA"), ("180 deg", math.pi, "rad"), ("1 °", 1, "deg"), ("1 kN", 1000, "N"), ("1 bar", 1000, "mbar"),
        ("1 bar", 1000, "hPa"), ("1 bar", 100, "kPa"), ("1 hPa", 100, "Pa"), ("1 Wh", 3.6, "kJ"), ("1 kWh", 3_600_000, "J"),
        ("1 MW", 1000, "kW"), ("1 kW", 1000, "W"), ("1 kV", 1000, "V"), ("1 V", 1000, "mV"),
    ],
)  # fmt: skip
def test_units_are_what_their_definitions_say(quantity: str, number: float, unit: str) -> None:
    found = printed(f"speed > {quantity}", speed=unit)
    assert float(found.removeprefix("speed > ")) == pytest.approx(number, rel=1e-15)


@pytest.mark.parametrize(
    "written",
    [
        "1h 30m", "1h30m", "1.5h", "90 minutes", "PT1H30M", "1.5H", "1H 30MIN", "PT1.5H", "PT1,5H", "INTERVAL '1.5' HOUR", "INTERVAL '1 hour 30 min'",
        "INTERVAL 90 MINUTE", '"1 hour 30 min"', "'1 hour and 30 min'", "'PT1H30M'", "DURATION '1h 30m'",
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(written: str) -> None:
    assert printed(f"speed > 1 AT LEAST {written}") == "speed > 1.0 AT LEAST 1h 30m"
    assert printed(f"speed > 1 BETWEEN {written} AND 2h") == "speed > 1.0 BETWEEN 1h 30m AND 2h"
    assert printed(f"speed > 1 AT MOST {written}", TICKS, time="s") == "speed > 1.0 AT MOST 5400"
    text = f"FROM CarSensors DEFINE A AS speed > 1, B AS accel > 1 PATTERN A before B WITHIN {written}"
    assert tg.query_text(tg.read_query(text, CARS)).rstrip().endswith("WITHIN 1h 30m")


@pytest.mark.parametrize(
    "written", ["1h30m", "90 min", "INTERVAL '90' MINUTES", "DURATION 'PT1H30M'", "'1 hour 30 min'"]
)
def test_durations_in_conditions_are_read_as_people_write_them(written: str) -> None:
    assert printed(f"time > time - {written}") == "time > time - DURATION '1h 30m'"


def test_durations_on_integer_time_count_in_its_unit() -> None:
    assert printed("speed > 1 AT LEAST 5", TICKS) == "speed > 1.0 AT LEAST 5"
    assert printed("speed > 1 AT LEAST 5m", TICKS, time="s") == "speed > 1.0 AT LEAST 300"
    assert printed("speed > 1 AT LEAST 1.5 SECONDS", TICKS, time="ms") == "speed > 1.0 AT LEAST 1500"


@pytest.mark.parametrize(
    ("condition", "units", "message"),
    [
        ("speed > 5 km", {"speed": "mph"}, "a length (km)"),
        ("speed > 70 mph + 5 km", {}, "a speed (mph) and a length (km)"),
        ("speed > 70 mph or speed > 30 m/s", {}, "has no unit of its own"),
        ("speed > accel", {"speed": "mph", "accel": "m/s2"}, "an acceleration (m/s2)"),
        ("speed > accel", {"speed": "mph", "accel": "m/s"}, "values in mph and in m/s"),
        ("speed > 5 mhp", {}, "unknown unit 'mhp'"),
        ("sqrt(5 km) > 2", {}, "takes no quantity"),
        ("5 km", {}, "no condition"),
        ("speed > 1", {"speed": "blinks"}, "unknown unit 'blinks'"),
        ("speed > 1 AT LEAST 5", {}, "5 of what?"),
        ("speed > 1 AT LEAST 5 km", {}, "unknown unit 'km'"),
    ],
)
def test_units_that_do_not_fit(condition: str, units: dict[str, str], message: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query(f"FROM CarSensors DEFINE A AS {condition}", CARS, units=units)
    assert raised.value.code == "TG174"
    assert message in raised.value.message


def test_integer_time_without_a_unit_has_no_seconds() -> None:
    with pytest.raises(tg.QueryError, match="nobody says how long"):
        tg.read_query("FROM CarSensors DEFINE A AS speed > 1 AT LEAST 5s", TICKS)


# Errors ---------------------------------------------------------------------------------------------------------------

#: More digits than Python makes a number of.
NINES = "9" * 5000
WRONG = [
    ("PARTITION", "PARTITON", "TG170", "PARTITON", "did you mean PARTITION?"),
    ("RETURN", "RETRUN", "TG170", "RETRUN", "did you mean RETURN?"),
    ("A before C WITHIN", "A.ts C WITHIN", "TG170", ".ts", ""),
    ("FROM CarSensors CS", "SELECT id FROM CarSensors CS", "TG170", "SELECT", "at its end: RETURN"),
    ("CarSensors CS", "CarSensors CS MATCH_RECOGNIZE (", "TG170", "DEFINE A", "PATTERN (...) is missing before it"),
    ("CarSensors CS", "CarSensors CS, Weather W", "TG170", ", Weather", "one stream"),
    ("CarSensors CS", "CarSensors JOIN Weather W", "TG170", "Weather", "one stream"),
    ("CarSensors CS", "CarSensors CS WHERE CS.speed > 0", "TG170", "WHERE", "filter in Python"),
    ("DEFINE A AS", "PATTERN A before B DEFINE A AS", "TG170", "PATTERN", "DEFINE stands before PATTERN"),
    ("at least 5s", "for 5 minutes", "TG170", "for 5 minutes", "AT LEAST 5 MINUTES"),
    ("CS.accel > 8m/s2 at least 5s", "CS.accel > 8 for 5 minutes", "TG170", "5 minutes", "AT LEAST 5 MINUTES"),
    ("A before C WITHIN", "(A+ C) WITHIN", "TG170", "(A+ C)", "A meets B"),
    ("A before C WITHIN", "A+ C WITHIN", "TG170", "+ C", "A meets B"),
    ("A before C WITHIN", "A -> C WITHIN", "TG170", "-> C", "A before B"),
    ("A meets B;", "every A meets B;", "TG170", "B;A overlaps", "leave out EVERY"),
    ("A before C WITHIN", "A before C OR A meets C WITHIN", "TG170", "OR A", "between semicolons"),
    ("A before C WITHIN", "A before C, A meets C WITHIN", "TG170", ", A", "a semicolon between"),
    ("A before C WITHIN", "A NOT before C WITHIN", "TG170", "C WITHIN", "an anti_join"),
    ("A before C WITHIN", "A before C WHERE A.x > 5 WITHIN", "TG170", "WHERE", "stand in DEFINE"),
    ("A before C WITHIN", "A before C GROUP BY car_id WITHIN", "TG170", "GROUP", "groups are made in Python"),
    ("5 MINUTES", "1 hour and 30 min", "TG170", "and 30", "a duration is 5m, 1h 30m, PT1H30M"),
    ("5 MINUTES", "1 hour, 30 min", "TG170", ", 30", "'1 hour 30 min'"),
    ("5 MINUTES", "five minutes", "TG170", "five", "INTERVAL '1' HOUR"),
    ("at least 5s", "at least 00:05", "TG170", ":05", "a duration is 5m, 1h 30m, PT1H30M"),
    ("5 MINUTES", "1 month", "TG174", "month", "say it in days"),
    ("5 MINUTES", "P1M", "TG104", "P1M", "add_months(t, 1)"),
    ("5 MINUTES", "'5 minuts'", "TG104", "'5 minuts'", "did you mean minute"),
    ("CS.accel > 8m/s2", "PT1H > CS.time - CS.time", "TG101", "PT1H", "DURATION 'PT1H'"),
    ("CS.accel > 8m/s2", "CS.time < CS.time + 1h 30min", "TG170", "30min", "as one, such as 1h30m"),
    ("CS.accel > 8m/s2", "CS.time < DATE '2026-01-01' HOUR", "TG170", "DATE", "INTERVAL"),
    ("5 MINUTES", "5 MINUTES PATTERN A before B", "TG170", "PATTERN A", "PATTERN stands before WITHIN"),
    ("first(B.car_id) AS id,", "*,", "TG170", "*,", "without RETURN a result is the whole match"),
    ("avg_speed;", "avg_speed WITHIN 5m;", "TG170", "WITHIN", "WITHIN stands before RETURN"),
    ("avg(B.speed)", "B.te - B.ts", "TG170", "- B.ts", "compute with it in Python"),
    ("at least 5s,", "at least 5s", "TG170", "B AS", "a comma stands between situations"),
    ("C AS CS.accel < -9m/s2 at least 3s", "C AS CS.accel < -9m/s2,", "TG170", "A meets", "the comma before PATTERN"),
    ("CS.accel > 8m/s2", "CS.accel > 8 && CS.speed > 5", "TG170", "&& CS", "write AND"),
    ("CS.accel > 8m/s2", "CS.accel > 8 | CS.speed > 5", "TG170", "| CS", "write OR"),
    ("CS.accel > 8m/s2", "CS.accel > 8 || CS.speed > 5", "TG170", "> 5 at", "|| puts texts together: write OR"),
    ("CS.accel > 8m/s2", "CS.accel IN (8, 9)", "TG170", "IN (8", "write x = 'a' OR x = 'b'"),
    ("CS.accel > 8m/s2", "CS.accel LIKE '8%'", "TG170", "LIKE '8%'", "like(x, 'a%')"),
    ("DEFINE A AS", "-- so\n # or so\nDEFINE A AS", "TG170", "# or so", "a comment begins with --"),
    ("CS.accel > 8m/s2 at least 5s", "CS.accel BETWEEN 5 AND 8.5", "TG102", "BETWEEN 5", "accel >= 5 AND accel <= 8.5"),
    ("CS.accel > 8m/s2", 'CS.car_id = "oven"', "TG101", '"oven"', "texts in single ones: 'oven'"),
    ("CS.accel > 8m/s2", 'CS."acel" > 8', "TG101", "CS.", "did you mean accel?"),
    ("CS.accel > 8m/s2", "CS.accel < lag(CS.accel)", "TG131", "lag(", "before=tg.lag(r.x)"),
    ("CS.accel > 8", "CS.acel > 8", "TG101", "CS.acel", "did you mean accel?"),
    ("CS.accel > 8", "XS.accel > 8", "TG172", "XS.accel", "write CS.accel"),
    ("CS.accel > 8m/s2", "A.accel > 8", "TG172", "A.accel", "write CS.accel"),
    ("CS.accel > 8m/s2", "max(CS.accel) > 8", "TG115", "max(", "RETURN"),
    ("CS.accel > 8m/s2", "rond(CS.accel) > 8", "TG131", "rond(", ""),
    ("CS.accel > 8m/s2", "eq(CS.accel, 8)", "TG131", "eq(", ""),
    ("CS.accel > 8m/s2", "CS.accel > 'x'", "TG102", "CS.accel > 'x'", "cast"),
    ("CS.accel > 8m/s2", "CS.accel", "TG102", "A AS CS.accel", ""),
    ("A before C", "A befor C", "TG171", "befor C", "did you mean before?"),
    ("B finishes C", "B overlapped C", "TG171", "overlapped C", "overlapped by"),
    ("PARTITION BY CS.car_id", "GROUP BY CS.car_id", "TG170", "GROUP", "PARTITION BY key"),
    ("A before C", "A intersect C", "TG171", "intersect C", "did you mean intersects?"),
    ("A before C", "A before D", "TG172", "D WITHIN", "defined are A, B, C"),
    ("C AS CS", "A AS CS", "TG103", "A AS CS.accel < -9", ""),
    ("CarSensors CS", "CarSensors A", "TG103", "A PARTITION", ""),
    ("CarSensors CS", "CarSensor CS", "TG173", "CarSensor CS", "did you mean CarSensors?"),
    ("first(", "frist(", "TG131", "frist(", "did you mean first?"),
    ("first(B.car_id)", "B.car_id", "TG115", "B.car_id", "first(B.car_id)"),
    ("first(B.car_id)", "first(B)", "TG132", "B) AS id", "first(A.attribute)"),
    ("first(B.car_id)", "first(B.car)", "TG101", "car) AS id", "car_id"),
    ("AS avg_speed", "AS id", "TG103", "avg(B.speed) AS id", ""),
    ("AS avg_speed", "AS detected", "TG103", "avg(B.speed) AS detected", ""),
    ("avg_speed;", "avg_speed EMIT first", "TG114", "first", "earliest or final"),
    ("between 4s AND 30s", "between 40s AND 30s", "TG160", "B AS", ""),
    ("> 70 mph", f"> 1{NINES} mph", "TG110", f"1{NINES}", "smaller"),
    ("> 70 mph", f"> 1.{NINES} mph", "TG110", f"1.{NINES}", "smaller"),
    ("at least 5s", f"at least 1{NINES}s", "TG110", f"1{NINES}", "smaller"),
    ("5 MINUTES", f"1{NINES} MINUTES", "TG110", f"1{NINES}", "smaller"),
    ("> 70 mph", "> 1e9999999999 mph", "TG110", "1e9999999999", "nearer to 0"),
    ("> 70 mph", "> 1E-999999999 mph", "TG110", "1E-999999999", "farther from 0"),
    ("at least 5s", "at least 1e999999999s", "TG110", "1e999999999", "nearer to 0"),
]


@pytest.mark.parametrize(("old", "new", "code", "where", "hint"), WRONG, ids=[new[:30] for _, new, *_ in WRONG])
def test_errors_point_at_the_text(old: str, new: str, code: str, where: str, hint: str) -> None:
    text = PAPER.replace(old, new, 1)
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query(text, CARS, dialect="tpstream", file="aggressive.tps")
    error = raised.value
    assert (error.code, error.site is not None) == (code, True)
    assert error.site is not None
    assert error.site.column is not None
    line = text.split("\n")[error.site.line - 1]
    assert line[error.site.column - 1 :].startswith(where) or (code == "TG102" and where.startswith("A AS"))
    assert hint in error.hint
    place, caret = str(error.site).split("\n")
    assert place.endswith(line) or (len(line) > 250 > len(place) and "…" in place)
    assert place[caret.index("^") - 2 :].startswith(line[error.site.column - 1 :][:20])


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("DEFINE A AS time > 5", "give the number a unit: 5s, or compare ticks: cast_bigint(...) of the timestamp"),
        ("DEFINE A AS 'x' > speed", "cast the string first: cast_double(...)"),
        ("DEFINE A AS speed AND speed > 5", "(a > 1) AND (b > 2)"),
        ("DEFINE A AS speed = NULL", "write x IS NULL or x IS NOT NULL"),
        ("DEFINE A AS car_id > 99999999999999999999", "write a decimal point"),
        ("DEFINE A AS time > DURATION 'x'", "write '90s', '1h 30m', '30 minutes', 'PT1H30M'"),
        ("PARTITION BY car_id, car_id DEFINE A AS speed > 5", "name each key once"),
        ("DEFINE A AS speed > 5 PATTERN A meets A", "define it twice, under two names"),
    ],
)
def test_advice_is_in_words_of_the_language(query: str, said: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query(f"FROM CarSensors {query}", CARS)
    assert said in raised.value.hint
    assert re.search(r"tg\.|\w\(\)|cast\(|as_\(|None", str(raised.value)) is None


def test_a_pattern_in_text_that_waits_for_ever_is_told_the_window_in_its_words() -> None:
    found = tg.read_query("FROM CarSensors DEFINE A AS speed > 70, B AS accel < -9 PATTERN A before B", CARS)
    (problem,) = tg.program(Found=found).check()
    assert (problem.code, problem.hint) == ("TG213", "give the pattern a window: WITHIN 1h")


def literals() -> Iterator[str]:
    """All text of the library's source; a value in its midst is an x."""
    library = Path(tg.__file__).parent
    for path in (
        path for top in ("algebra", "analysis", "contexts", "runtime") for path in (library / top).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and path.name != "wording.py":
                yield node.value


def test_advice_that_is_reworded_is_still_given() -> None:
    """A message that changes would leave its rule behind."""
    there = [*literals(), "& joins conditions", "relation.a.x"]  # in the source these begin with a value
    assert [rule for rule, _ in SAID if not any(re.search(rule, text) for text in there)] == []


def test_what_two_situations_return_is_compared_by_where_on_the_matches() -> None:
    asked = (
        "DEFINE A AS speed > 70, B AS accel < -9 PATTERN A before B WITHIN 10 RETURN max(A.speed) AS a, "
        "max(B.speed) AS b"
    )
    found = tg.read_query(f"FROM CarSensors {asked}", TICKS)
    program = tg.program(Slower=found.where(found.a > found.b))
    rows = [(1, t, v, w) for t, v, w in ((0, 80.0, 0.0), (1, 0.0, 0.0), (2, 9.0, -10.0), (3, 9.0, 0.0))]
    assert [(row["a"], row["b"]) for row in program.run({"CarSensors": rows}).rows("Slower")] == [(80.0, 9.0)]


def test_a_text_reads_what_python_joined() -> None:
    now, before = TICKS.as_("now"), TICKS.as_("before")
    change = now.join(before, before.car_id == now.car_id, before.time == now.time - 1)
    change = change.select(now.car_id, now.time, rise=now.speed - before.speed)
    found = tg.read_query("FROM CarSensors PARTITION BY car_id DEFINE A AS rise < 0", {"CarSensors": change})
    rows = [(1, t, v, 0.0) for t, v in enumerate((5.0, 6.0, 4.0, 3.0, 9.0))]
    assert [row["A.ts"] for row in tg.program(Falling=found).run({"CarSensors": rows}).rows("Falling")] == [2]


def test_what_is_expected_is_said() -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query("FROM CarSensors DEFINE A AS speed >", CARS)
    (problem,) = raised.value.problems
    assert problem.message == "the text ends here"
    assert problem.because == ("expected: a duration, a name, a number, a text in quotes, (, -, FALSE, NULL, TRUE",)
    assert problem.site is not None
    assert problem.site.column == 36


def test_a_tab_is_a_column_wide() -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query("FROM CarSensors\tDEFINE A AS\tacel > 8", CARS)
    place, caret = str(raised.value.problems[0].site).split("\n")
    assert place[caret.index("^") - 2 :] == "acel > 8"


def test_nesting_too_deep_is_said() -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.read_query("FROM CarSensors DEFINE A AS " + " + ".join(["speed"] * 2000) + " > 1", CARS)
    assert raised.value.code == "TG152"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: CARS, "scan here"),
        (lambda: tg.match(_pair().A, _pair().A.te - _pair().A.ts > tg.seconds(5)), "pattern"),
        (lambda: tg.match(_pair().A).select("A.ts"), "without their time"),
    ],
)
def test_what_is_no_text_is_refused(make: object, what: str) -> None:
    with pytest.raises(tg.QueryError) as raised:
        tg.query_text(make())  # type: ignore[operator]  # a function
    assert raised.value.code == "TG175"
    assert what in raised.value.message


PAIR = CARS.partition_by(time="time").derive(A=tg.situation(CARS.speed > 1))


def _pair() -> tg.Derived:
    return PAIR


def test_beside_dates_quantities_of_time_are_whole_days() -> None:
    days = tg.stream("S", "k bigint, time bigint, due date, paid date", progress="time")

    def read(condition: str) -> tg.Relation:
        text = f"FROM S PARTITION BY k DEFINE A AS {condition}, B AS due > paid PATTERN A before B WITHIN 9"
        return tg.read_query(text, {"S": days})

    assert read("paid > due + 2 DAYS")._node == read("paid > due + 2")._node
    assert read("paid - due > 48h")._node == read("paid - due > 2")._node
    with pytest.raises(tg.QueryError, match=r"TG104 .*no whole number of days"):
        read("paid > due + 7h")
