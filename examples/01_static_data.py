"""Stream and static data (TSA §5): raw temperatures, supplemented with where their sensors hang.

The table is complete before the stream begins, so a joined row is final as soon as the raw row is, and only the
table is kept.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg

raw = tg.stream("TRaw", "sid bigint, time timestamp, temp double", progress="time")
places = tg.table("TLoc", "sid bigint, area string")

t, l = raw.as_("t"), places.as_("l")
temperatures = t.join(l, t.sid == l.sid).select(sid=t.sid, time=t.time, area=l.area, temp=t.temp)
program = tg.program(Temp=temperatures)


def at(second: int) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(seconds=second)


hung = [{"sid": 1, "area": "platform"}, {"sid": 2, "area": "concourse"}, {"sid": 3, "area": "concourse"}]
measured = [
    {"sid": 1, "time": at(0), "temp": 21.5},
    {"sid": 3, "time": at(2), "temp": 22.0},
    {"sid": 9, "time": at(4), "temp": 99.0},  # in no list of sensors, so in no result
    {"sid": 1, "time": at(10), "temp": 21.7},
]

print(program.explain())

answer = program.run({"TRaw": measured, "TLoc": hung})
for row in sorted(answer.rows("Temp"), key=lambda row: row["time"]):
    print(f"{row['time']:%H:%M:%S}  {row['area']:10} sensor {row['sid']}: {row['temp']} °C")
