"""Neighbouring rooms (TSA §2): which rooms a fire threatens, by the static plan of the station.

A fire is smoke and heat in one room within a minute of each other; that query feeds the other, which reads its results
as it would read any stream. The plan of rooms is listed one way and means both.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg
from tidegate import minutes

smoke = tg.stream("Smoke", "time timestamp, room string, conc double", progress="time")
temp = tg.stream("Temp", "time timestamp, room string, celsius double", progress="time")
plan = tg.table("Doors", "one string, other string")

s, t = smoke.as_("s"), temp.as_("t")
fire = tg.result_of(
    "Fire",
    s.join(t, s.room == t.room, s.time - minutes(1) <= t.time, t.time <= s.time + minutes(1))
    .where(s.conc >= 0.5, t.celsius >= 60)
    .select(room=s.room, time=tg.max(s.time, t.time)),
)

doors = plan.union(plan.select(one=plan.other, other=plan.one))
f, n = fire.as_("f"), doors.as_("n")
threatened = f.join(n, n.one == f.room).select(room=n.other, source=f.room, time=f.time)
program = tg.program(Threatened=threatened)


def at(second: int) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(seconds=second)


smoked = [{"time": at(0), "room": "hall", "conc": 0.6}, {"time": at(200), "room": "shop", "conc": 0.9}]
heated = [
    {"time": at(60), "room": "hall", "celsius": 61.0},
    {"time": at(139), "room": "shop", "celsius": 80.0},  # 61 seconds before the smoke: no fire by this rule
    {"time": at(205), "room": "stairs", "celsius": 90.0},  # heat without smoke
]
doors_of_station = [{"one": "hall", "other": "stairs"}, {"one": "shop", "other": "hall"}]

print(program.explain())

answer = program.run({"Smoke": smoked, "Temp": heated, "Doors": doors_of_station})
for row in sorted(answer.rows("Threatened"), key=lambda row: str(row["room"])):
    print(f"{row['time']:%H:%M:%S}  the {row['room']}: it burns in the {row['source']}")
