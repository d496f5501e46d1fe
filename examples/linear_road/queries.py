"""Linear Road as queries: what each car did before, look-back by look-back; what segments were like, minute by minute;
and tolls, which join the two.

A report is three numbers besides its time: the car, the speed, and the *place*, which is one number for road,
direction, position in feet and lane, in this order. Places of one segment are a range, so the segment is a quotient.
"""

from __future__ import annotations

import tidegate as tg
from examples.linear_road.rows import BALANCE, DAILY, ENTRY, EXIT, MILE, MILLION, POSITION, SEGMENTS, Lav, Row

FEET = SEGMENTS * MILE
LANES, SPEEDS = 5, 101
SILENCE = 60  # seconds after a report in which a car is still where it was

road = tg.stream("Road", ", ".join(f"{name} bigint" for name in Row._fields), progress="time")
distances = tg.table("Distances", "distance bigint")
DISTANCES = [(distance,) for distance in range(5)]
#: What a car paid for a road on a day before, a row of each car, day and road at most: for `answers(tolls=history)`.
history = tg.table("History", "vid bigint, day bigint, xway bigint, toll bigint")


def lane(place: tg.Expression) -> tg.Expression:
    return place % LANES


def segment(place: tg.Expression) -> tg.Expression:
    """One number for road, direction and segment."""
    return place // (LANES * MILE)


def reports() -> tg.Relation:
    """Each report once: of several of one car and second the least."""
    r = road.where(road.type == POSITION)
    place = ((r.xway * 2 + r.dir) * FEET + r.pos) * LANES + r.lane
    once = r.group_by(r.time, r.vid).agg(least=tg.min(place * SPEEDS + r.spd))
    return once.select(once.time, once.vid, spd=once.least % SPEEDS, place=once.least // SPEEDS)


def driving() -> tg.Relation:
    """The reports of trips, with what the car did before: the others are noise, after an exit and before an entry.

    `begins`: a trip does; `enters`: a segment; `stays`: where it was a minute ago at most; `stayed`: did so before.
    `comes`: the report before was of another segment or minute; `again`: one before that may have been of this one.

    What is computed between the two calls of `over` always has a value, so both are one operator.
    """
    r = reports()
    near = tg.lag(r.place, within=SILENCE)
    r = r.over(by="vid", order="time", before=tg.lag(r.place), near=near, last=tg.lag(r.time))
    again = (lane(r.place) == ENTRY) & ((lane(r.before) != ENTRY) | r.near.is_null())
    r = r.with_(begins=tg.when(r.last.is_null(), lane(r.place) != EXIT, again))
    out = r.before.is_null() | (lane(r.before) == EXIT)
    travels = lane(r.place).between(ENTRY + 1, EXIT - 1)
    minute = r.time // 60
    r = r.with_(
        comes=r.begins | (segment(r.place) != segment(r.before)) | (minute != r.last // 60),
        state=tg.when(r.begins, 1, tg.when(out, 0, tg.lit(None).cast("bigint"))),
        enters=r.begins | (segment(r.place) != segment(r.before)),
        stays=tg.coalesce((r.place == r.near) & travels, tg.lit(False)),
    )
    r = r.over(
        by="vid", order="time", on=tg.last(r.state, by=r.time), stayed=tg.lag(r.stays), earlier=tg.lag(r["last"])
    )
    r = r.with_(again=(minute == r.last // 60) & (r.begins | (minute == r.earlier // 60)))
    return r.where(r.on == 1)


def traffic() -> tg.Relation:
    """Of each segment, at the end of each minute: cars that came, sum of the speeds, number of the reports."""
    r = on_road.as_("r")
    groups = r.group_by(segment=segment(r.place), minute=tg.tumbling(r.time, 60))
    return groups.agg(came=tg.count(filter=r.comes), speed=tg.sum(r.spd), reports=tg.count())


def coming_again() -> tg.Relation:
    """The reports of cars that come to a segment where they had been in this minute."""
    r = on_road.where(on_road.comes)
    v = r.select(r.vid, r.time, segment=segment(r.place)).as_("v")
    r = r.where(r.again)
    a = r.select(r.vid, r.time, segment=segment(r.place)).as_("a")
    return a.semi_join(v, v.vid == a.vid, v.segment == a.segment, tg.floor(a.time, 60) <= v.time, v.time < a.time)


def returns() -> tg.Relation:
    """Of each segment, at the end of each minute: how often a car came that had been there in this minute.

    That they come again is a result of its own, as each is looked up when it comes: a minute's end would have to look
    at all that came in it.
    """
    a = again.as_("a")
    return a.group_by(a.segment, minute=tg.tumbling(a.time, 60)).agg(cars=tg.count())


def statistics() -> tg.Relation:
    """Of each segment, at the end of each minute: different cars, sum of the speeds, number of the reports.

    `tg.count_distinct(r.vid)` of the reports yields the cars, too. That needs all reports of a minute at its end, which
    are too many to be counted at once; cars that come are counted as they do.
    """
    s, n = came.as_("s"), returned.as_("n")
    j = s.left_join(n, n.segment == s.segment, n.minute == s.minute)
    cars = j["s.came"] - tg.coalesce(j["n.cars"], 0)
    return j.select("s.segment", "s.minute", cars=cars, speed=j["s.speed"], reports=j["s.reports"])


def latest() -> tg.Relation:
    """Of each segment, at the beginning of a minute: cars of the minute before, mean speed of five."""
    s = per_minute.as_("s")
    w = s.windows(tg.hopping(300, every=60), by="s.segment", order="s.minute").agg(
        speed=tg.sum(s.speed), reports=tg.sum(s.reports), at=tg.max(s.minute), cars=tg.last(s.cars, by=s.minute)
    )
    lav = (w.speed * 2 + w.reports) // (w.reports * 2)
    return w.select("segment", minute=w.end, lav=lav, cars=tg.when(w["at"] == w.end, w.cars, 0))


def of_cars() -> tg.Relation:
    """Of each segment and car, at the end of each minute: sum of its speeds, number of its reports."""
    r = on_road.as_("r")
    groups = r.group_by(segment=segment(r.place), vid=r.vid, minute=tg.tumbling(r.time, 60))
    return groups.agg(speed=tg.sum(r.spd), reports=tg.count())


def latest_of_paper() -> tg.Relation:
    """What `latest` says, with the velocity by the paper's formulas: the mean of those of five minutes that have cars,
    of each the mean of its cars, of each the mean of its reports.
    """
    c = tg.result_of("OfCars", of_cars()).as_("c")
    m = c.group_by(c.segment, c.minute).agg(cars=tg.count(), means=tg.sum(c.speed * MILLION // c.reports))
    m = tg.result_of("Means", m.select("segment", "minute", "cars", mean=m.means // m.cars)).as_("m")
    w = m.windows(tg.hopping(300, every=60), by="m.segment", order="m.minute").agg(
        means=tg.sum(m.mean), minutes=tg.count(), at=tg.max(m.minute), cars=tg.last(m.cars, by=m.minute)
    )
    lav = (w.means * 2 + w.minutes * MILLION) // (w.minutes * MILLION * 2)
    return w.select("segment", minute=w.end, lav=lav, cars=tg.when(w["at"] == w.end, w.cars, 0))


def stopped() -> tg.Relation:
    """The reports of cars that stand: from the fourth one in a row from one place on."""
    r = on_road.as_("r")
    still = r.where(r.stays).select(r.vid, r.time, r.last, r.place)
    still = still.over(
        by="vid", order="time", t1=tg.lag(still.time), t2=tg.lag(still.time, 2), last1=tg.lag(still["last"])
    )
    return still.where(still.last == still.t1, still.last1 == still.t2).select("vid", "time", "place")


def leaving() -> tg.Relation:
    """The first reports of cars from elsewhere, or after a minute of silence, than those that stayed."""
    r = on_road.as_("r")
    return r.where(r.stayed, ~r.stays).select(r.vid, r.time)


def accidents() -> tg.Relation:
    """The places at which at least two cars stand at the last second before a minute."""
    s, m = stopped().as_("s"), leaving().as_("m")
    border = tg.tumbling(s.time, 60)
    standing = s.anti_join(m, m.vid == s.vid, s.time < m.time, m.time < border)
    a = standing.group_by(s.place, minute=border).agg(cars=tg.count_distinct(s.vid))
    return a.where(a.cars >= 2)


def ahead() -> tg.Relation:
    """The segments from which an accident is near, at the beginning of a minute, and the nearest one's distance."""
    a = found.as_("a")
    blocked = a.select(segment=segment(a.place), minute=a.minute).distinct().as_("b")
    d = distances.as_("d")
    b = tg.product(blocked, d)
    west = (b["b.segment"] // SEGMENTS) % 2
    b = b.with_(seen=b["b.segment"] + b["d.distance"] * (west * 2 - 1))
    b = b.where(b.seen // SEGMENTS == b["b.segment"] // SEGMENTS)
    return b.group_by(b.seen, b["b.minute"]).agg(distance=tg.min(b["d.distance"]))


def told(at_minutes: tg.Relation) -> tg.Relation:
    """The entries of segments, with the toll that the car is told, and what it is charged for the segment before.

    `at_minutes`: what segments were like, at the beginning of each minute.
    """
    r = on_road.as_("r")
    e = r.where(r.enters).select(
        r.time, r.vid, r.place, r.begins, segment=segment(r.place), minute=tg.floor(r.time, 60)
    )
    e, w, a = e.as_("e"), at_minutes.as_("w"), near.as_("a")
    j = e.left_join(w, w.segment == e.segment, w.minute == e.minute)
    j = j.left_join(a, a.seen == e.segment, a.minute == e.minute)
    lav, crowd = tg.coalesce(j.lav, 0), tg.coalesce(j.cars, 0) - 50
    free = j.distance.is_not_null() | (lav >= 40) | (crowd <= 0)
    toll = tg.when(lane(j.place) == EXIT, 0, tg.when(free, 0, crowd * crowd * 2))
    t = j.select("e.time", "e.vid", "e.place", "e.begins", lav=lav, distance=j.distance, toll=toll)
    return t.over(by="vid", order="time", pending=tg.lag(t.toll))


def notifications(entries: tg.Relation) -> tg.Relation:
    t = entries.as_("t")
    return t.where(lane(t.place) != EXIT).select(t.vid, t.time, t.lav, t.toll)


def alerts(entries: tg.Relation) -> tg.Relation:
    t = entries.as_("t")
    own = segment(t.place)
    west = (own // SEGMENTS) % 2
    told = t.where(lane(t.place) != EXIT, t.distance.is_not_null())
    seg = own % SEGMENTS + t.distance * (tg.lit(1) - west * 2)
    return told.select(t.time, xway=own // SEGMENTS // 2, seg=seg, dir=west, vid=t.vid)


def charges(entries: tg.Relation) -> tg.Relation:
    """What a car is charged as it enters the next segment of a trip."""
    t = entries.as_("t")
    return t.where(~t.begins, t.pending > 0).select(t.vid, t.time, toll=t.pending)


def balances(charged: tg.Relation) -> tg.Relation:
    """What was charged up to each question. Charges and questions go through one operator: of a car it keeps the sum.

    Rows of one second have the same sum, so what is charged in the second of a question counts.
    """
    q = questions(BALANCE)
    nothing = q.select(q.vid, q.time, q.qid, toll=tg.lit(0).cast("bigint"), asks=tg.lit(True))
    c = charged.select(
        charged.vid, charged.time, qid=tg.lit(None).cast("bigint"), toll=charged.toll, asks=tg.lit(False)
    )
    b = nothing.union(c)
    b = b.over(by="vid", order="time", owed=tg.sum(b.toll))
    return b.where(b.asks).select(b.time, b.qid, balance=b.owed)


def expenditures(tolls: tg.Relation | None) -> tg.Relation:
    """What a car paid for a road on a day before: by this table, 0 where it has no row, or made up if there is none."""
    q = questions(DAILY)
    if tolls is None:
        toll = (q.vid * 7919 + q.day * 104_729 + q.xway * 1_299_709) % 100
        return q.select(q.time, q.qid, sum=toll)
    q, h = q.as_("q"), tolls.as_("h")
    j = q.left_join(h, h.vid == q.vid, h.day == q.day, h.xway == q.xway)
    return j.select("q.time", "q.qid", sum=tg.coalesce(j["h.toll"], 0))


def questions(kind: int) -> tg.Relation:
    """Each question once: of several that are one the least by all that it says."""
    q = road.where(road.type == kind)
    order = ("xway", "dir", "seg", "pos", "lane", "spd", "day")
    q = q.top_k(1, by=("time", "vid", "qid"), order=order)
    return q.select(q.time, q.vid, q.qid, q.xway, q.day).distinct()


on_road = tg.result_of("OnRoad", driving())
came = tg.result_of("Came", traffic())
again = tg.result_of("Again", coming_again())
returned = tg.result_of("Returned", returns())
per_minute = tg.result_of("PerMinute", statistics())
at_minutes = tg.result_of("AtMinutes", latest())
found = tg.result_of("Found", accidents())
near = tg.result_of("Near", ahead())


def answers(lav: Lav = "reports", tolls: tg.Relation | None = None) -> tg.Program:
    """The program of all answers. `lav`: how the latest average velocity is told. `tolls`: the table of what was paid
    on days before; None: that is made up.
    """
    minutes = at_minutes if lav == "reports" else tg.result_of("AtMinutes", latest_of_paper())
    entries = tg.result_of("Entries", told(minutes))
    charged = tg.result_of("Charges", charges(entries))
    return tg.program(
        Notifications=notifications(entries),
        Alerts=alerts(entries),
        Balances=balances(charged),
        Daily=expenditures(tolls),
        Charges=charged,
    )


program = answers()
