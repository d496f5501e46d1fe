import tidegate as tg

level = tg.stream("Level", "tank string, time timestamp, metres double", progress="time")
seen = tg.result("Seen", "tank string, time timestamp, metres double", progress="time")
s = seen.as_("s")

high = s.partition_by("tank").derive(High=tg.situation(s.metres > 3)).High
program = tg.program(
    tg.query(seen, level.select(level.tank, level.time, level.metres)),
    tg.query(seen, high.select(high.tank, time=high.te + "1m", metres=0.0)),
)
