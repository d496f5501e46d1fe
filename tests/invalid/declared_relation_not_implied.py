import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")

near = fs.join(s, fs.time <= s.time, s.time <= fs.time + minutes(10))
program = tg.program(
    Near=near.select(start=fs.time, seen=s.time).declare(
        progress="seen",
        relations=lambda n: n.seen <= n.start + minutes(5),
    ),
)
