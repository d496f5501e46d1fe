import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")

alarm = tg.result("Alarm", "area string, at timestamp", progress="at")
clear = tg.result("Clear", "area string, at timestamp", progress="at")
a, c = alarm.as_("a"), clear.as_("c")
unclear = s.anti_join(c, c.area == s.area, c.at <= s.time + minutes(2), c.at >= s.time - minutes(2))
calm = a.select(a.area, at=a.at + minutes(1))
program = tg.program(
    tg.query(alarm, unclear.select(s.area, at=s.time)),
    tg.query(clear, calm),
)
