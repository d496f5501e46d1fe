import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")

gauges = [smoke.as_(f"g{i}") for i in range(12)]
all_gauges = tg.product(*gauges)
apart = [(a.time != b.time) | (a.time + minutes(1) < b.time) for i, a in enumerate(gauges) for b in gauges[:i]]
program = tg.program(Apart=all_gauges.where(*apart))
