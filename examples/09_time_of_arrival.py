"""Reception is a timeline of its own (TSA §2): an alarm if no report is *received* within two minutes of a detection.

The two minutes run from the detection (application time) to the reception of the report (system time), so that a
report that is under way for long does not hold up the alarm. A report does not say when it was received: the source
declares the attribute as its `arrival`, every row gets the clock at which it was taken in, recorded with the batch, and
silence is an answer as soon as the clock has passed the two minutes.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import tidegate as tg
from tidegate import minutes, seconds

detection = tg.stream("Detection", "area string, time timestamp", progress="time")
report = tg.stream(
    "Report",
    "area string, written timestamp, received timestamp",
    progress="received",
    relations=lambda sent: sent.written <= sent.received,
)
d, r = detection.as_("d"), report.as_("r")
alarm = d.anti_join(r, r.area == d.area, d.time <= r.received, r.received <= d.time + minutes(2)).select(
    area=d.area, time=d.time
)
slow = r.where(r.written + seconds(30) < r.received).select(area=r.area, written=r.written, received=r.received)

program = tg.program(Alarm=alarm, Slow=slow)


def at(second: int) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(seconds=second)


detections = [("platform", 5), ("concourse", 60)]
#: When a report comes in, its area, and when the warden wrote it.
reports = {125: ("platform", 110), 190: ("concourse", 150)}

print(program.explain())

now = at(0)
found: dict[int, dict[str, list[tuple[Any, ...]]]] = {}
sources = {"Report": tg.source(None, arrival="received")}
with program.session(sources=sources, clock=lambda: now) as session:
    session.push("Detection", [{"area": area, "time": at(second)} for area, second in detections])
    for second in (65, 125, 179, 180, 190):
        now = at(second)
        if second in reports:
            area, written = reports[second]
            session.push("Report", [{"area": area, "written": at(written)}])
        session.advance("Detection", {"time": now})
        session.step()
        found[second] = {
            name: sorted(tuple(row.values()) for row in session.results(name)) for name in ("Alarm", "Slow")
        }

for second, known in found.items():
    print(f"at {at(second):%H:%M:%S}")
    for area, time in known["Alarm"]:
        print(f"  alarm: {area}, detected at {time:%H:%M:%S}")
    for area, written, received in known["Slow"]:
        print(f"  slow report: {area}, written at {written:%H:%M:%S}, received at {received:%H:%M:%S}")
