"""Sequences of Linear Road's reports: which cars stand, from when to when, and where two of them do at once.

A car stands from its fourth report in a row from one place on, until it reports from elsewhere, and for a minute after
its last report at most. `Standing` is that as a row pattern. The end needs no word of its own: it is the instant at
which the match is certain, when a report from elsewhere comes, or when a minute is over and none from there can come.
`Collisions`: two cars that stand at one place at once, a join of matches. `Minutes`: how many of these were over in
each ten minutes, a window above it.

    python -m examples.15_cars_that_stand
"""

from collections.abc import Iterator
from typing import Any

import tidegate as tg
from examples.linear_road.generator import Options, Road
from examples.linear_road.queries import LANES, lane, reports
from examples.linear_road.rows import ENTRY, EXIT, MILE, PERIOD, SEGMENTS, Row

MINUTE, LONGEST = 60, 3600  # seconds; a car that stands for an hour is towed away

report = reports()
standing = report.sequences(
    "Comes Stays{3,}",
    by="vid",
    order="time",
    define={
        "Comes": lane(report.place).between(ENTRY + 1, EXIT - 1),
        "Stays": lambda m: (m.Stays.place == m.Stays.prev().place) & (m.Stays.time - m.Stays.prev().time <= MINUTE),
    },
    within=LONGEST,
    place=lambda m: m.Stays.place,
    since=lambda m: m.Stays.first(2).time,
)
stops = tg.result_of("Standing", standing.rename(first="came", detected="until"))
a, b = stops.as_("a"), stops.as_("b")
both = a.join(
    b,
    a.place == b.place,
    a.vid < b.vid,
    a.came < b.until,
    b.came < a.until,
    a.since < b.until,
    b.since < a.until,
)
collisions = both.select(
    place=both["a.place"],
    begin=tg.max(both["a.since"], both["b.since"]),
    end=tg.min(both["a.until"], both["b.until"]),
    known=tg.max(both["a.until"], both["b.until"]),
)
minutes = collisions.group_by(until=tg.ceil(collisions.known, 10 * MINUTE)).agg(n=tg.count())
program = tg.program(Standing=stops, Collisions=collisions, Minutes=minutes)

RESULTS = ("Standing", "Collisions", "Minutes")
#: Half an hour on four miles of a road with little traffic and many accidents.
ROAD = Options(seed=7, traffic=0.006, stretch=(40, 44), accidents=1 / 120, breakdowns=1 / 240)
END = 30 * MINUTE
Found = dict[str, list[dict[str, Any]]]


def steps() -> Iterator[list[Row]]:
    """What cars say, in steps of thirty seconds."""
    for step in Road(0, ROAD).steps(END):
        yield [Row(*map(int, values)) for values in zip(*(step[name] for name in Row._fields), strict=True)]


def as_it_came() -> Found:
    """The results of a session that reads a step a batch."""
    with program.session() as session:
        for number, rows in enumerate(steps(), start=1):
            session.push("Road", rows)
            session.advance("Road", number * PERIOD - 1)
            session.step()
        session.finish()
        session.step()
        return {name: session.results(name) for name in RESULTS}


def main() -> Found:
    """The results of all rows at once, which are those of the session, too."""
    answer = program.run({"Road": [row for step in steps() for row in step]})
    found, came = {name: answer[name].rows() for name in RESULTS}, as_it_came()
    for name in RESULTS:
        assert sorted(map(str, came[name])) == sorted(map(str, found[name])), name
        print(f"{name}: {len(found[name])}")
    for row in sorted(found["Collisions"], key=lambda row: (row["begin"], row["end"])):
        mile = row["place"] // (LANES * MILE) % SEGMENTS
        print(f"mile {mile}: two cars stand from second {row['begin']} to {row['end']}")
    return found


if __name__ == "__main__":
    answer = main()
