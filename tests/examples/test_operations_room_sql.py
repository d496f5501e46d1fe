"""The replayed files, good rows only, answered by an SQL engine: equal to the batch answers from the package."""

from pathlib import Path

import duckdb
import polars as pl
import pytest

from examples.operations_room import data, expected

VIEWS = {
    "poor": "select origin, time from weather where visib < 3",
    "PoorStart": """select origin, time as start from poor w where not exists (
        select 1 from poor q where q.origin = w.origin and q.time >= w.time - interval 70 minute and q.time < w.time)""",
    "PoorEnd": """select origin, time as last from poor w where not exists (
        select 1 from poor q where q.origin = w.origin and q.time > w.time and q.time <= w.time + interval 70 minute)""",
    "PoorVisibility": """select s.origin, s.start, e.last + interval 1 hour as "end"
        from PoorStart s join PoorEnd e on e.origin = s.origin
             and s.start <= e.last and e.last <= s.start + interval 48 hour
        where not exists (
            select 1 from PoorEnd f where f.origin = s.origin and s.start <= f.last and f.last < e.last)""",
    "HourlyDepartures": """select origin, name as airport,
            case when date_trunc('hour', dep) = dep then dep else date_trunc('hour', dep) + interval 1 hour end as hour,
            count(*) as departures, avg(dep_delay) as avg_delay, max(dep_delay) as max_delay
        from departure join airports on faa = origin group by all""",
    "NotDeparted": """select flight_id, origin, name as airline, flight, dest, sched_dep
        from schedule s join airlines using (carrier) where not exists (
            select 1 from departure d where d.flight_id = s.flight_id and d.dep <= s.sched_dep + interval 2 hour)""",
    "WorstDelay": """select p.origin, name as airport, p.start, p."end",
            count(*) as departures, max(dep_delay) as worst, avg(dep_delay) as avg_delay
        from PoorVisibility p join airports on faa = p.origin
             join departure d on d.origin = p.origin and p.start <= d.dep and d.dep < p."end"
        group by all""",
    "Bunching": """select a.origin, a.dest,
            a.flight_id as flight_a, a.carrier as carrier_a, a.sched_dep as sched_a, a.dep as dep_a,
            b.flight_id as flight_b, b.carrier as carrier_b, b.sched_dep as sched_b, b.dep as dep_b
        from departure a join departure b on b.origin = a.origin and b.dest = a.dest
             and a.sched_dep + interval 30 minute <= b.sched_dep
             and a.dep between b.dep - interval 10 minute and b.dep + interval 10 minute""",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    replay = data.prepare(Path(tmp_path_factory.mktemp("sql")) / "replay", data.JANUARY, bad=())
    database = duckdb.connect(config={"threads": 1})
    database.execute("set TimeZone = 'UTC'")
    for name in (*data.STREAMS, *data.STATICS):
        database.read_parquet(str(replay.path(name) / "*.parquet")).create(name)
    for name, text in VIEWS.items():
        database.sql(text).create(name)
    return database


@pytest.fixture(scope="module")
def answers() -> dict[str, pl.DataFrame]:
    return expected.results(data.JANUARY)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "poor"])
def test_sql_over_the_replay_gives_the_batch_answers(
    database: duckdb.DuckDBPyConnection, answers: dict[str, pl.DataFrame], name: str
) -> None:
    found = pl.DataFrame(database.table(name).to_arrow_table())
    assert expected.differences(answers[name], found) == []
