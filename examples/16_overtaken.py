"""Interval sequences on real data: flights that were overtaken twice at New York's airports, in a week of March 2013.

A late flight waits from the minute in which it was to leave until it leaves. `Overtaken`: three flights from one
airport to one destination, each due later and gone earlier than the one before, the first and the last of different
airlines. That a flight waits is known as soon as it does not leave in time: it is a row without an end. Then waits that
overtook no flight which still waits are not stored.

    python -m examples.16_overtaken
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

import tidegate as tg
from examples.operations_room import data

WEEK = data.Period(date(2013, 3, 4), 7)
SCHEMA = "flight_id bigint, origin string, dest string, carrier string, due timestamp, gone timestamp"
OVERTAKEN = """
EVENT ISEQ [A.ts < B.ts < C.ts AND C.te < B.te < A.te] (A, A AS B, A AS C; 12h)
SELECT A.carrier <> C.carrier
"""


def overtaken(*, told: bool) -> tg.Program:
    """The program, over a stream that tells when a flight begins to wait, or only that one has waited."""
    waits = tg.stream(
        "Waits",
        SCHEMA,
        progress="gone",
        relations=lambda wait: wait.due < wait.gone,
        begins=tg.Begins(id="flight_id", start="due", end="gone") if told else None,
    )
    first = waits.as_intervals(start="due", end="gone", by=("origin", "dest"), name="A")
    return tg.program(Overtaken=tg.read_query(OVERTAKEN, first))


def waits_of(period: data.Period) -> pl.DataFrame:
    """The late flights of a period."""
    flights = pl.DataFrame(data.load(period).departure).filter(pl.col("dep") > pl.col("sched_dep"))
    return flights.select("flight_id", "origin", "dest", "carrier", due="sched_dep", gone="dep")


def hour_by_hour(waits: pl.DataFrame) -> Iterator[tuple[datetime, pl.DataFrame, pl.DataFrame]]:
    """Of each hour its end, the waits that began in it, and those that ended."""
    instants = pl.concat([waits["due"], waits["gone"]])
    start, last = (one.to_list()[0] for one in (instants.sort().head(1), instants.sort().tail(1)))
    while start <= last:
        end = start + timedelta(hours=1, microseconds=-1)
        begun, ended = (waits.filter(pl.col(name).is_between(start, end)) for name in ("due", "gone"))
        yield end, begun, ended
        start += timedelta(hours=1)


def run(waits: pl.DataFrame, *, told: bool) -> tuple[list[dict[str, Any]], int]:
    """What is found, and the most waits that were stored."""
    most = 0
    with overtaken(told=told).session(collect_garbage="exact") as session:
        for end, begun, ended in hour_by_hour(waits):
            if told:
                session.push("Waits", begun.with_columns(gone=pl.lit(None, pl.Datetime("us", "UTC"))))
            session.push("Waits", ended)
            session.advance("Waits", end)
            session.step()
            most = max(most, session.live_rows()["Waits#0"])
        session.finish()
        session.step()
        return session.results("Overtaken"), most


def main() -> None:
    waits = waits_of(WEEK)
    found, most = run(waits, told=True)
    same, without = run(waits, told=False)
    assert sorted(map(str, found)) == sorted(map(str, same))
    print(f"{waits.height:,} late flights, overtaken twice: {len(found)}")
    print(f"stored at most: {most} waits, without beginnings {without}")
    for row in sorted(found, key=lambda row: row["A.ts"])[:3]:
        names = ", ".join(
            f"{row[f'{name}.carrier']} {row[f'{name}.ts']:%H:%M} to {row[f'{name}.te']:%H:%M}" for name in "ABC"
        )
        print(f"{row['origin']} to {row['dest']}, {row['A.ts']:%d %B}: {names}")


if __name__ == "__main__":
    main()
