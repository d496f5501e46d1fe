"""Tolls and alerts once more, said in contexts: a segment is congested for a minute, or has an accident ahead.

What a minute is like is known at its beginning. A window (t_i, t_t] of a context has the rows after its beginning and
at its end, so the minute's window goes from the last second before it to its own last second. The next minute begins a
window of its own, with another toll.
"""

from __future__ import annotations

import tidegate as tg
from examples.linear_road.queries import at_minutes, lane, near, on_road, segment
from examples.linear_road.rows import EXIT, SEGMENTS
from tidegate.algebra.dsl.contexts.handle import Contexts

BEFORE, LAST = -1, 59  # seconds from the beginning of a minute to the last one before it, and to its own last one


def congested(at: int) -> tg.Relation:
    """Segments in which a toll is due for a minute, at so many seconds after its beginning."""
    m = at_minutes.as_("m")
    crowd = m.cars - 50
    slow = m.where(m.lav < 40, m.cars > 50)
    return slow.select(segment=m.segment, at=m.minute + at, toll=crowd * crowd * 2)


def blocked(at: int) -> tg.Relation:
    """Segments with an accident ahead for a minute, at so many seconds after its beginning."""
    n = near.as_("n")
    return n.select(segment=n.seen, at=n.minute + at, distance=n.distance)


def model() -> Contexts:
    """Per segment: clear, congestion with its toll, accident with its distance."""
    begins, ends, seen, gone = congested(BEFORE), congested(LAST), blocked(BEFORE), blocked(LAST)
    traffic = tg.context_model("Traffic", by="segment", default="clear", contexts=("congestion", "accident"))
    return (
        traffic.initiate("congestion", when=begins, values={"toll": begins.toll})
        .terminate("congestion", when=ends)
        .initiate("accident", when=seen, values={"distance": seen.distance})
        .terminate("accident", when=gone)
    )


traffic = model()


def entries() -> tg.Relation:
    """Who enters which segment, but to leave the road."""
    r = on_road.as_("r")
    return r.where(r.enters, lane(r.place) != EXIT).select(r.time, r.vid, segment=segment(r.place))


def tolls() -> tg.Relation:
    """Tolls above 0: those of a congested segment without an accident ahead."""
    told = entries().in_context(traffic, "congestion", values={"toll": "toll"}).not_in_context(traffic, "accident")
    return told.select("vid", "time", "toll")


def alerts() -> tg.Relation:
    """Who is warned, and of an accident in which segment."""
    a = entries().in_context(traffic, "accident", values={"distance": "distance"})
    west = (a.segment // SEGMENTS) % 2
    seg = a.segment % SEGMENTS + a.distance * (tg.lit(1) - west * 2)
    return a.select(a.time, xway=a.segment // SEGMENTS // 2, seg=seg, dir=west, vid=a.vid)


program = tg.program(Tolls=tolls(), Alerts=alerts())
