"""Frames (TSA §5): the most smoke in each area from the start of a fire to its end, if it lasted a minute or longer.

The paper's query is valid, but nothing in it says how long a fire can last: its analysis finds that FireStart and Smoke
would have to be kept for ever, and names the constraint that is missing. With it the state is bounded.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")

max_smoke = tg.result(
    "MaxSmoke",
    "start timestamp not null, end timestamp not null, area string, max_conc double",
    progress="end",
    relations=lambda frame: frame.end - frame.start >= minutes(1),
)


def frames(*, bounded: bool) -> tg.Relation:
    fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")
    fires = tg.product(fs, s, fe).where(
        fs.fid == fe.fid, fs.time <= s.time, s.time <= fe.time, fe.time - fs.time >= minutes(1)
    )
    if bounded:
        fires = fires.where(fe.time - fs.time <= hours(24))
    return fires.group_by(start=fs.time, end=fe.time, area=s.area).agg(max_conc=tg.max(s.conc))


as_printed = tg.program(tg.query(max_smoke, frames(bounded=False)))
program = tg.program(tg.query(max_smoke, frames(bounded=True)))


def at(hour: int, minute: int, second: int = 0) -> datetime:
    return datetime(2012, 7, 16, hour, minute, second, tzinfo=UTC)


starts = [{"fid": 1, "time": at(9, 0)}, {"fid": 2, "time": at(9, 30)}, {"fid": 3, "time": at(9, 40)}]
ends = [
    {"fid": 1, "time": at(9, 20)},
    {"fid": 2, "time": at(9, 30, 59)},  # out after less than a minute: no frame
    {"fid": 3, "time": at(9, 40) + timedelta(hours=24, seconds=1)},  # longer than the bound: no frame either
]
measured = [
    {"time": at(8, 59), "area": "platform", "conc": 0.9},  # before the fire
    {"time": at(9, 0), "area": "platform", "conc": 0.1},
    {"time": at(9, 10), "area": "platform", "conc": 0.6},
    {"time": at(9, 20), "area": "concourse", "conc": 0.2},
    {"time": at(9, 30, 30), "area": "platform", "conc": 0.7},
]

state = {occurrence.stream.name: str(occurrence.bound) for occurrence in as_printed.facts.queries[0].occurrences}
print("as the paper prints it:", *(f"  {name:10} {bound}" for name, bound in state.items()), sep="\n")
print("\nwith fires of at most 24 hours:")
print(program.explain())

answer = program.run({"FireStart": starts, "FireEnd": ends, "Smoke": measured})
for row in sorted(answer.rows("MaxSmoke"), key=lambda row: str(row["area"])):
    print(f"fire {row['start']:%H:%M} to {row['end']:%H:%M}, {row['area']}: at most {row['max_conc']}")
