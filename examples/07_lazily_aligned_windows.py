"""Lazily aligned sliding windows (TSA §5): from the start of a fire until some time after its end, the average smoke of
the last 10 seconds, every second.

The windows are a result that depends on itself: the first ends when a fire starts, and each leads to one a second later
unless the fire has been out for a while. So they begin with the fire, whenever that is, and without one there are none.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg
from tidegate import seconds

CALM = seconds(3)  # an hour in the paper
smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
windows = tg.result(
    "Windows",
    "start timestamp, end timestamp",
    progress="end",
    relations=lambda window: window.start == window.end - seconds(10),
)
s, w, f = smoke.as_("s"), windows.as_("w"), fire_end.as_("f")

first = fire_start.select(start=fire_start.time - seconds(10), end=fire_start.time)
ongoing = w.anti_join(f, w.start <= f.time + CALM, f.time + CALM < w.end)
following = ongoing.select(start=w.start + seconds(1), end=w.end + seconds(1))
average = s.join(w, w.start <= s.time, s.time <= w.end).group_by(time=w.end, area=s.area).agg(conc=tg.avg(s.conc))

program = tg.program(
    tg.query(windows, first, name="First"), tg.query(windows, following, name="Following"), AvgSmoke=average
)


def at(second: int) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(seconds=second)


starts = [{"fid": 1, "time": at(0)}]
ends = [{"fid": 1, "time": at(4)}]
measured = [
    {"time": at(-11), "area": "platform", "conc": 0.9},  # before the first window
    {"time": at(-8), "area": "platform", "conc": 0.2},
    {"time": at(1), "area": "platform", "conc": 0.4},
    {"time": at(4), "area": "concourse", "conc": 0.1},
]

print(program.explain())

passed = []
with program.session() as session:
    for stream, rows in (("FireStart", starts), ("FireEnd", ends), ("Smoke", measured)):
        session.push(stream, rows)
    for second in (-1, 0, 2, 5, 60):
        for stream in ("FireStart", "FireEnd", "Smoke"):
            session.advance(stream, {"time": at(second)})
        before = len(session.results("Windows"))
        session.step()
        passed.append((second, [row["end"] for row in session.results("Windows")[before:]]))
    answer = session.results("AvgSmoke")
    live = sum(session.live_rows().values())

for second, found in passed:
    print(f"{at(second):%H:%M:%S} is reached: windows to {', '.join(f'{end:%H:%M:%S}' for end in found) or 'none'}")
for row in sorted(answer, key=lambda row: (row["time"], row["area"])):
    print(f"{row['time']:%H:%M:%S} {row['area']:9} {row['conc']:.1f}")
