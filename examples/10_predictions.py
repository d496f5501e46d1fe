"""A timeline that lies in the future (TSA §2): what a simulation predicts, and whether it comes true.

A prediction has two time stamps: when it was computed, and the instant for which it holds, which is up to half an hour
later. A warning relates plans and predictions by the instants that they speak of, and is final as soon as both are
known: minutes before anything happens. Whether smoke was predicted in vain is final once the predicted instant is over.
"""

from datetime import UTC, datetime, timedelta

import tidegate as tg
from tidegate import minutes

prediction = tg.stream(
    "Prediction",
    "area string, computed timestamp, holds timestamp, conc double",
    progress="computed",
    relations=lambda p: (p.computed <= p.holds) & (p.holds <= p.computed + minutes(30)),
)
plan = tg.stream("Plan", "route bigint, area string, planned timestamp, passes timestamp not null", progress="planned")
smoke = tg.stream("Smoke", "area string, time timestamp, conc double", progress="time")
p, way, s = prediction.as_("p"), plan.as_("way"), smoke.as_("s")

warning = p.join(
    way,
    p.area == way.area,
    p.conc > 0.5,
    p.holds <= way.passes + minutes(1),
    way.passes <= p.holds + minutes(1),
    # Only what was computed at most ten minutes before or after the plan was made.
    p.computed <= way.planned + minutes(10),
    way.planned <= p.computed + minutes(10),
).select(route=way.route, area=p.area, passes=way.passes, known=tg.max(p.computed, way.planned))

in_vain = (
    p.where(p.conc > 0.5)
    .anti_join(s, s.area == p.area, s.conc > 0.5, p.holds <= s.time + minutes(1), s.time <= p.holds + minutes(1))
    .select(area=p.area, holds=p.holds)
)

program = tg.program(Warning=warning, InVain=in_vain)


def at(minute: float) -> datetime:
    return datetime(2012, 7, 16, 9, 0, tzinfo=UTC) + timedelta(minutes=minute)


predictions = [
    ("hall", at(0), at(5), 0.7),
    ("hall", at(0), at(10), 0.9),
    ("stairs", at(0), at(10), 0.2),
    ("stairs", at(2), at(12), 0.8),
]
plans = [(1, "hall", at(1), at(6)), (2, "stairs", at(3), at(12.5)), (3, "stairs", at(3), at(8))]
measured = [("hall", at(5.5), 0.6), ("hall", at(9), 0.3), ("stairs", at(13), 0.9)]

print(program.explain())

found = []
with program.session() as session:
    session.push("Prediction", predictions)
    session.push("Plan", plans)
    session.push("Smoke", measured)
    for minute in (1, 3, 10, 11, 30):
        session.advance("Prediction", {"computed": at(minute)})
        session.advance("Plan", {"planned": at(minute)})
        session.advance("Smoke", {"time": at(minute)})
        session.step()
        found.append((minute, session.results("Warning"), session.results("InVain")))
    live = sum(session.live_rows().values())

for minute, warnings, vain in found:
    print(f"at {at(minute):%H:%M}")
    for row in warnings:
        print(f"  route {row['route']} will pass smoke in the {row['area']} at {row['passes']:%H:%M:%S}")
    for row in vain:
        print(f"  there was no smoke in the {row['area']} at {row['holds']:%H:%M}")
