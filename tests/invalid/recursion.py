import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")

alarm = tg.result("Alarm", "area string, at timestamp", progress="at")
a = alarm.as_("a")
again = a.join(s, a.area == s.area, a.at <= s.time, s.time <= a.at + minutes(5))
program = tg.program(
    tg.query(alarm, smoke.where(smoke.conc > 9).select(smoke.area, at=smoke.time)),
    tg.query(alarm, again.select(s.area, at=s.time)),
)
