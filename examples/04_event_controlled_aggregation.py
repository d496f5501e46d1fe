"""Event-controlled aggregation (TSA §2): the most smoke in a room from the detection of a fire to the brigade's
arrival.

No window fits, since events say where the episode begins and where it ends. That the brigade comes within the hour is
what bounds the state: after it no measurement is kept any longer, and all is gone once nothing can refer to it.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg
from tidegate import hours

smoke = tg.stream("Smoke", "time timestamp, room string, conc double", progress="time")
detected = tg.stream("FireDetected", "fid bigint, room string, time timestamp", progress="time")
arrived = tg.stream("BrigadeArrived", "fid bigint, time timestamp", progress="time")

d, s, a = detected.as_("d"), smoke.as_("s"), arrived.as_("a")
exposure = (
    d.join(a, d.fid == a.fid, d.time <= a.time, a.time <= d.time + hours(1))
    .join(s, s.room == d.room, d.time <= s.time, s.time <= a.time)
    .group_by(fid=d.fid, room=d.room, detected=d.time, arrived=a.time)
    .agg(max_conc=tg.max(s.conc), measurements=tg.count())
)
program = tg.program(Exposure=exposure)


def at(minute: int) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(minutes=minute)


measured = [
    {"time": at(minute), "room": room, "conc": conc}
    for minute, room, conc in [(0, "B1", 0.0), (5, "B1", 0.3), (6, "B2", 0.8), (9, "B1", 0.7), (14, "B1", 0.4)]
]
print(program.explain())

live = []
with program.session() as session:
    session.push("Smoke", measured)
    session.push("FireDetected", [{"fid": 1, "room": "B1", "time": at(4)}])
    session.push("BrigadeArrived", [{"fid": 1, "time": at(12)}])
    for minute in (3, 12, 75):
        for stream in ("Smoke", "FireDetected", "BrigadeArrived"):
            session.advance(stream, {"time": at(minute)})
        session.step()
        live.append((minute, len(session.results("Exposure")), sum(session.live_rows().values())))
    answer = session.results("Exposure")

for minute, results, rows in live:
    print(f"everything up to {at(minute):%H:%M} is here: {results} results, {rows} rows kept")
for row in answer:
    print(
        f"fire {row['fid']} in {row['room']}: at most {row['max_conc']} until the brigade came at "
        f"{row['arrived']:%H:%M}"
    )
