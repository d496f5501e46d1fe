"""Frame fragments (TSA §5): the frames of example 3 minute by minute, without a longest fire, in bounded state.

A fragment covers a fire from its start to the end of a full minute and depends on the one a minute shorter; the frame
itself on the last fragment. So measurements are kept for about a minute, where whole frames keep them as long as a fire
may last. As printed in the paper the fires' ends are joined where they are to be excluded, and not those of the same
fire.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import tidegate as tg
from tidegate import minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
fragments = tg.result(
    "Fragments",
    "fid bigint, start timestamp, end timestamp, area string, max_conc double",
    progress="end",
    relations=lambda fragment: fragment.end - fragment.start >= minutes(1),
)
fs, s, fe, f = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe"), fragments.as_("f")

minute = minutes(1)

burning = fs.anti_join(fe, fs.fid == fe.fid, fs.time <= fe.time, fe.time < fs.time + minute)
begun = burning.join(s, fs.time <= s.time, s.time < fs.time + minute)
begun = begun.group_by(fid=fs.fid, start=fs.time, area=s.area).agg(max_conc=tg.max(s.conc))
first = begun.with_(end=begun.start + minute)

# A left join: a minute without a measurement, or none before the end, is no reason to forget the frame.
burning = f.anti_join(fe, f.fid == fe.fid, f.end <= fe.time, fe.time < f.end + minute)
grown = burning.left_join(s, f.area == s.area, f.end <= s.time, s.time < f.end + minute)
grown = grown.group_by(fid=f.fid, start=f.start, last=f.end, area=f.area, known=f.max_conc).agg(new=tg.max(s.conc))
following = grown.select(
    grown.fid,
    grown.start,
    grown.area,
    end=grown.last + minute,
    max_conc=tg.max(grown.known, tg.coalesce(grown.new, grown.known)),
)

out = f.join(fe, f.fid == fe.fid, f.end <= fe.time, fe.time < f.end + minute)
out = out.left_join(s, f.area == s.area, f.end <= s.time, s.time < fe.time)
out = out.group_by(start=f.start, end=fe.time, area=f.area, known=f.max_conc).agg(new=tg.max(s.conc))
frames = out.select(out.start, out.end, out.area, max_conc=tg.max(out.known, tg.coalesce(out.new, out.known)))

program = tg.program(
    tg.query(fragments, first, name="First"), tg.query(fragments, following, name="Following"), MaxSmoke=frames
)


def at(minute: int, second: int = 0) -> datetime:
    return datetime(2012, 7, 16, 9, minute, second, tzinfo=UTC)


starts: list[dict[str, Any]] = [{"fid": 1, "time": at(0)}, {"fid": 2, "time": at(10)}]
ends: list[dict[str, Any]] = [
    {"fid": 1, "time": at(3, 30)},
    {"fid": 2, "time": at(10, 59)},
]  # the second: out before the first minute is over
measured: list[dict[str, Any]] = [
    {"time": at(0, 10), "area": "platform", "conc": 0.2},
    {"time": at(0, 30), "area": "concourse", "conc": 0.1},
    {"time": at(0, 59), "area": "platform", "conc": 0.5},
    {"time": at(1), "area": "platform", "conc": 0.6},  # of the second minute
    {"time": at(1, 20), "area": "concourse", "conc": 0.3},
    {"time": at(3, 29), "area": "platform", "conc": 0.8},  # after a minute without any
    {"time": at(3, 30), "area": "platform", "conc": 0.9},  # the fire is out
    {"time": at(10, 5), "area": "platform", "conc": 0.9},
]

for query in program.facts.queries:
    print(query.query.name)
    for occurrence in query.occurrences:
        print(f"  {occurrence.stream.name:10} {occurrence.bound}")

passed = []
live = []
before = at(0) - timedelta(minutes=1)
with program.session(collect_garbage="exact") as session:
    for now in (at(0, 59), at(1), at(2), at(3), at(3, 30), at(20)):
        for stream, rows in (("FireStart", starts), ("FireEnd", ends), ("Smoke", measured)):
            session.push(stream, [row for row in rows if before < row["time"] <= now])
            session.advance(stream, {"time": now})
        seen = len(session.results("Fragments")), len(session.results("MaxSmoke"))
        session.step()
        passed.append((now, session.results("Fragments")[seen[0] :], session.results("MaxSmoke")[seen[1] :]))
        live.append(sum(session.live_rows().values()))
        before = now

for now, new, whole in passed:
    print(f"everything up to {now:%H:%M:%S} is here")
    for kind, rows in (("fragment", new), ("frame", whole)):
        for row in sorted(rows, key=lambda row: (row["end"], row["area"])):
            print(
                f"  {kind:8} {row['start']:%H:%M:%S} to {row['end']:%H:%M:%S}, {row['area']:9} at most "
                f"{row['max_conc']}"
            )
