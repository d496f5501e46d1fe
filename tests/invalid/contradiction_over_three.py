import tidegate as tg
from tidegate import hours, minutes

smoke = tg.stream("Smoke", "time timestamp, area string, conc double", progress="time")
fire_start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time")
fire_end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time")
areas = tg.table("Areas", "area string, floor bigint")
fs, s, fe = fire_start.as_("fs"), smoke.as_("s"), fire_end.as_("fe")

round_about = tg.product(fs, s, fe).where(
    fs.time < s.time,
    s.time < fe.time,
    fe.time <= fs.time + tg.milliseconds(0.001),
)
program = tg.program(Fires=round_about)
