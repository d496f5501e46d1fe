"""Tumbling windows (TSA §5): the average speed of air per sensor and 20 seconds, as a smoke simulation wants it.

A window is no operator but a rounded instant: ceil puts a measurement at 9:00:20 into the window (9:00:00, 9:00:20]
and one at 9:00:21 into the next. When a window is final follows from the rounding.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg

raw = tg.stream("AFRaw", "sid bigint, time timestamp, speed double", progress="time")
airflow = raw.group_by(sid=raw.sid, time=tg.ceil(raw.time, "20s")).agg(speed=tg.avg(raw.speed))
program = tg.program(Airflow=airflow)


def at(second: int) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(seconds=second)


measured = [
    {"sid": 1, "time": at(1), "speed": 2.0},
    {"sid": 2, "time": at(8), "speed": 7.0},
    {"sid": 1, "time": at(20), "speed": 4.0},
    {"sid": 1, "time": at(21), "speed": 5.0},
    {"sid": 1, "time": at(40), "speed": 5.5},
    {"sid": 1, "time": at(59), "speed": 1.0},
]

print(program.explain())

answers = []
with program.session() as session:
    session.push("AFRaw", measured)
    for second in (19, 20, 59, 60):
        session.advance("AFRaw", {"time": at(second)})
        before = len(session.results("Airflow"))
        session.step()
        answers.append((second, session.results("Airflow")[before:]))

for second, rows in answers:
    print(f"everything up to {at(second):%H:%M:%S} is here")
    for row in sorted(rows, key=lambda row: (row["time"], row["sid"])):
        print(f"  window to {row['time']:%H:%M:%S}, sensor {row['sid']}: {row['speed']} m/s")
