"""Two rules of the same shape, two kinds of time stamp (TSA §2): what did not happen, and when.

A sensor malfunctions if no message follows one of its messages within 30 seconds; it is stamped with the time of the
first missing message, ten seconds after the last. A precautionary alarm is raised if a warden's report on a possible
fire is not *received* within two minutes; it is stamped with the time of the detection. The query says which stamp.
When an answer is final is another matter: that follows from what has to be waited for.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg
from tidegate import minutes, seconds

message = tg.stream("Message", "sid bigint, time timestamp", progress="time")
m, later = message.as_("m"), message.as_("later")
malfunction = m.anti_join(later, later.sid == m.sid, m.time < later.time, later.time <= m.time + seconds(30)).select(
    sid=m.sid, time=m.time + seconds(10)
)

# Two timelines: a detection has its time of application, a report the time at which the system received it.
detection = tg.stream("Detection", "area string, time timestamp", progress="time")
report = tg.stream("Report", "area string, received timestamp", progress="received")
d, r = detection.as_("d"), report.as_("r")
alarm = d.anti_join(r, r.area == d.area, d.time <= r.received, r.received <= d.time + minutes(2)).select(
    area=d.area, time=d.time
)

program = tg.program(Malfunction=malfunction, Alarm=alarm)


def at(second: int) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(seconds=second)


messages = [(1, 0), (1, 10), (1, 40), (2, 0), (2, 31), (2, 41)]
detections = [("platform", 5), ("concourse", 60)]
reports = [("platform", 125), ("concourse", 181)]

print(program.explain())

found: dict[int, dict[str, list[tuple[object, datetime]]]] = {}
with program.session() as session:
    session.push("Message", [{"sid": sid, "time": at(second)} for sid, second in messages])
    session.push("Detection", [{"area": area, "time": at(second)} for area, second in detections])
    session.push("Report", [{"area": area, "received": at(second)} for area, second in reports])
    for second in (29, 30, 179, 180):
        session.advance("Message", {"time": at(second)})
        session.advance("Detection", {"time": at(second)})
        session.advance("Report", {"received": at(second)})
        session.step()
        found[second] = {
            "Malfunction": sorted((row["sid"], row["time"]) for row in session.results("Malfunction")),
            "Alarm": sorted((row["area"], row["time"]) for row in session.results("Alarm")),
        }

for second, known in found.items():
    print(f"after {second} seconds")
    for name, rows in known.items():
        print(f"  {name:12}", *(f"{what} at {time:%H:%M:%S}" for what, time in rows), sep="  ")
