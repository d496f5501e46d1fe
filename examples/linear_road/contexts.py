"""Tolls and alerts once more, said in contexts: in a segment there is congestion, an accident, or neither.

Congestion begins with the last second of a minute after which a toll is due, and ends with that of one after which none
is. An accident begins as a second car stands at a place, and holds until of each two that stood together one is gone:
these are its causes. What a car is told depends on the accidents at the first instant of its minute, in its own segment
and in those ahead. A window (t_i, t_t] of a context has an instant, if it has begun a second before it at the latest.
"""

from __future__ import annotations

import tidegate as tg
from examples.linear_road.queries import SILENCE, at_minutes, distances, lane, leaving, on_road, segment, stopped
from examples.linear_road.rows import EXIT, SEGMENTS
from tidegate.algebra.dsl.contexts.handle import Contexts

VEHICLES = 1 << 31  # more than there are: two of them are one number


def minutes(*, congested: bool) -> tg.Relation:
    """The minutes of segments in which a toll is due, or none, with the last second before each, and the toll."""
    m = at_minutes.as_("m")
    is_congested = (m.lav < 40) & (m.cars > 50)
    crowd = m.cars - 50
    chosen = m.where(is_congested if congested else ~is_congested)
    return chosen.select(segment=m.segment, time=m.minute - 1, minute=m.minute, toll=crowd * crowd * 2)


def gone() -> tg.Relation:
    """When cars that stood are gone: they report from elsewhere, or a minute has passed since they reported."""
    s, n = stands.as_("s"), on_road.as_("n")
    silent = s.anti_join(n, n.vid == s.vid, s.time < n.time, n.time <= s.time + SILENCE)
    return leaving().union(silent.select(s.vid, time=s.time + SILENCE))


def together() -> tg.Relation:
    """Two cars that stand at one place, at each report of either: a row for each of them, with both as one number."""
    s, n, g = stands.as_("s"), stands.as_("n"), left.as_("g")
    both = s.join(n, n.place == s.place, n.vid != s.vid, s.time <= n.time, n.time < s.time + SILENCE)
    both = both.anti_join(g, g.vid == both["s.vid"], both["s.time"] < g.time, g.time <= both["n.time"])
    one, other = both["s.vid"], both["n.vid"]
    cause = tg.when(one < other, one * VEHICLES + other, other * VEHICLES + one)
    its = {"time": both["n.time"], "segment": segment(both["n.place"]), "cause": cause}
    return both.select(vid=one, **its).union(both.select(vid=other, **its))


def over() -> tg.Relation:
    """When of two cars that stood together one is gone."""
    c, g = collided.as_("c"), left.as_("g")
    j = g.join(c, c.vid == g.vid, c.time < g.time, g.time <= c.time + SILENCE)
    return j.select(time=j["g.time"], segment=j["c.segment"], cause=j["c.cause"])


def model() -> Contexts:
    """Per segment: clear, congestion, accident."""
    traffic = tg.context_model(
        "Traffic", by="segment", default="clear", contexts=("congestion", "accident"), causes={"accident": "set"}
    )
    slow, free, ended = minutes(congested=True), minutes(congested=False), over()
    return (
        traffic.initiate("congestion", when=slow, at="time")
        .switch("clear", when=free, within="congestion", at="time")
        .initiate("accident", when=collided, cause=collided.cause)
        .terminate("accident", when=ended, cause=ended.cause)
    )


def entries() -> tg.Relation:
    """Who enters which segment, but to leave the road."""
    r = on_road.as_("r")
    entering = r.where(r.enters, lane(r.place) != EXIT)
    return entering.select(r.time, r.vid, segment=segment(r.place), minute=tg.floor(r.time, 60))


def warnings() -> tg.Relation:
    """Who enters a segment from which an accident is near, and how many segments ahead the nearest one is."""
    b = tg.product(entries().as_("e"), distances.as_("d"))
    own = b["e.segment"]
    ahead = tg.lit(1) - (own // SEGMENTS) % 2 * 2
    b = b.with_(seen=own + b["d.distance"] * ahead)
    b = b.where(b.seen // SEGMENTS == own // SEGMENTS)
    b = b.in_context(traffic, "accident", by="seen", at="e.minute")
    return b.group_by(b["e.time"], b["e.vid"], b["e.segment"]).agg(distance=tg.min(b["d.distance"]))


def tolls() -> tg.Relation:
    """Tolls above 0: those of a congested segment from which no accident is near."""
    e, a = entries().in_context(traffic, "congestion", at="time").as_("e"), warned.as_("a")
    free = e.anti_join(a, a.vid == e.vid, a.time == e.time).as_("f")
    m = minutes(congested=True).as_("m")
    j = free.join(m, m.segment == free.segment, m.minute == free.minute)
    return j.select(j["f.vid"], j["f.time"], toll=j["m.toll"])


def alerts() -> tg.Relation:
    """Who is warned, and of an accident in which segment."""
    a = warned.as_("a")
    west = (a.segment // SEGMENTS) % 2
    seg = a.segment % SEGMENTS + a.distance * (tg.lit(1) - west * 2)
    return a.select(a.time, xway=a.segment // SEGMENTS // 2, seg=seg, dir=west, vid=a.vid)


stands = tg.result_of("Stands", stopped())
left = tg.result_of("Left", gone())
collided = tg.result_of("Collided", together())
traffic = model()
warned = tg.result_of("Warned", warnings())
program = tg.program(Tolls=tolls(), Alerts=alerts())
