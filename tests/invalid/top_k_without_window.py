import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")

program = tg.program(Worst=smoke.top_k(3, by="area", order=tg.desc("conc")))
