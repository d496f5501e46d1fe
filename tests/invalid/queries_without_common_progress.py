import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")

alarm = tg.result("Alarm", "first timestamp, second timestamp", progress="second")
one = fs.join(s, fs.time <= s.time, s.time <= fs.time + minutes(5))
two = fs.join(s, fs.time >= s.time)
program = tg.program(
    tg.query(alarm, one.select(first=fs.time, second=s.time)),
    tg.query(alarm, two.select(first=fs.time, second=s.time)),
)
