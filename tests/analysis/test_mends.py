"""What users ask first and a stream can not answer: the hint that each gets, and that the query is accepted with the
mend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

import tidegate as tg
from tests.analysis.build import query, scan, stream
from tests.strategies.programs import Case as Cased
from tests.strategies.programs import random_case
from tests.strategies.situations import random_situation_case
from tidegate.algebra.nodes import Product, Project
from tidegate.algebra.ordered.match.node import Emission
from tidegate.algebra.program import ProgramDef
from tidegate.analysis.pipeline import analyse
from tidegate.analysis.validity.mends import Mends

ORDER = "id bigint not null, customer string, time timestamp, amount double not null, discount double, note string"
orders = tg.stream("Orders", ORDER, progress="time")
payments = tg.stream("Payments", "id bigint, time timestamp", progress="time")
refunds = tg.stream("Refunds", "id bigint, time timestamp", progress="time")
readings = tg.stream("Readings", "sensor string, time timestamp, value double, noise double", progress="time")
ticks = tg.stream("Ticks", "time timestamp", progress="time")
sensors = tg.table("Sensors", "sensor string, site string")
steps = tg.stream("Steps", "k bigint, t bigint", progress="t")
marks = tg.stream("Marks", "k bigint, u bigint", progress="u")
deliveries = tg.stream("Deliveries", "id bigint, day date not null", progress="day")
pickups = tg.stream("Pickups", "id bigint, day date not null", progress="day")
STAY = "room string, guest string, start timestamp, end timestamp"
stays = tg.stream("Stays", STAY, progress="end", relations=lambda s: s.start < s.end)
began = tg.stream("Stays", STAY, progress=("start", "end"), relations=lambda s: s.start < s.end)
short = tg.stream("Stays", STAY, progress="end", relations=lambda s: (s.start < s.end) & (s.end <= s.start + "1h"))

o, p, f, r, t = orders.as_("o"), payments.as_("p"), refunds.as_("f"), readings.as_("r"), ticks.as_("ticks")
a, b = orders.as_("a"), orders.as_("b")
s, m, up = steps.as_("s"), marks.as_("m"), pickups.as_("up")
found = readings.partition_by("sensor").derive(
    Hot=tg.situation(readings.value > 30), Loud=tg.situation(readings.noise > 80)
)
hot, loud = found.Hot, found.Loud
same = hot["Hot.sensor"] == loud["Loud.sensor"]
means = readings.group_by(readings.sensor).agg(mean=tg.avg(readings.value)).as_("m")
hourly = readings.group_by(readings.sensor, window=tg.tumbling(readings.time, "1h")).agg(mean=tg.avg(readings.value))
h = hourly.as_("m")
better = [a.customer == b.customer, b.amount > a.amount]
hours = tg.ticks("1h", r)
numbered = orders.over(by="customer", n=tg.row_number())
rooms = tg.table("Rooms", "number string")
price = tg.stream("Prices", "payer string, id bigint, time timestamp, rate double", progress="time").as_("price")
running = a.join(b, a.customer == b.customer, b.time <= a.time).group_by(a.customer, a.time).agg(n=tg.count())


def met(of: tg.Relation, *, within: str | None = None, emission: Emission = "earliest") -> tg.Relation:
    """Who met whom in a room; in a window one came first and left first."""
    one, other = (of.as_intervals(start="start", end="end", by="room", name=name) for name in ("One", "Other"))
    return tg.match(one.intersects(other) if within is None else one.overlaps(other), within=within, emission=emission)


def by_customer(**asked: tg.AggregateExpression) -> tg.Relation:
    return o.group_by(o.customer).agg(**asked)


MONTHS = "months, quarters and years differ in length, and are no windows of one size"
CALENDAR = "take windows of the calendar, to which their ends belong: windows"
PLACES = "days and months of a time zone differ in length, and are no windows of one size"


@dataclass(frozen=True)
class Case:
    """A query that is refused, with what hint, and the query with the mend."""

    name: str
    asked: Callable[[], tg.Relation]
    code: str
    hint: str
    mended: Callable[[], tg.Relation]


CASES = [
    Case(
        "a total per customer",
        lambda: orders.group_by(orders.customer).agg(total=tg.sum(orders.amount)),
        "TG202",
        'group by a window as well: group_by(orders.customer, window=tg.tumbling(orders.time, "1h")); '
        "or for what there is up to each row, take over(by=orders.customer, total=...)",
        lambda: orders.group_by(orders.customer, window=tg.tumbling(orders.time, "1h")).agg(
            total=tg.sum(orders.amount)
        ),
    ),
    Case(
        "a total per customer, under a name",
        lambda: o.where(o.amount > 0).group_by(o.customer).agg(total=tg.sum(o.amount)).where(lambda g: g.total > 100),
        "TG202",
        'group by a window as well: group_by(o.customer, window=tg.tumbling(o.time, "1h")); '
        "or for what there is up to each row, take over(by=o.customer, total=...)",
        lambda: (
            o.where(o.amount > 0)
            .group_by(o.customer, window=tg.tumbling(o.time, "1h"))
            .agg(total=tg.sum(o.amount))
            .where(lambda g: g.total > 100)
        ),
    ),
    Case(
        "how many different ones, of which all rows before have none",
        lambda: orders.group_by(orders.customer).agg(ids=tg.count_distinct(orders.id)),
        "TG202",
        'group by a window as well: group_by(orders.customer, window=tg.tumbling(orders.time, "1h"))',
        lambda: orders.group_by(orders.customer, window=tg.tumbling(orders.time, "1h")).agg(
            ids=tg.count_distinct(orders.id)
        ),
    ),
    *(
        Case(
            f"the latest order of each customer, as {name}",
            partial(by_customer, last=last),
            "TG202",
            "for the latest of each, take the instant at which the next one comes: versions(by=o.customer); or look it "
            'up at each row of another stream: asof_join(o, by="customer"); or group by a window as well: '
            'group_by(o.customer, window=tg.tumbling(o.time, "1h")); or for what there is up to each row, take '
            "over(by=o.customer, last=...)",
            lambda: o.versions(by=o.customer),
        )
        for name, last in (
            ("its last value", tg.last(o.amount, by=o.time)),
            ("arg_max", tg.arg_max(o.id, o.time)),
            ("its time", tg.max(o.time)),
        )
    ),
    *(
        Case(
            f"the first order of each customer, as {name}",
            partial(by_customer, first=first),
            "TG202",
            "take the first row of each: distinct_on(o.customer); or group by a window as well: "
            'group_by(o.customer, window=tg.tumbling(o.time, "1h")); or for what there is up to each row, take '
            "over(by=o.customer, first=...)",
            lambda: o.distinct_on(o.customer),
        )
        for name, first in (
            ("its first value", tg.first(o.amount, by=o.time)),
            ("arg_min", tg.arg_min(o.id, o.time)),
            ("its time", tg.min(o.time)),
        )
    ),
    *(
        Case(
            f"{name}, which may be of another row or of none",
            partial(by_customer, one=one),
            "TG202",
            'group by a window as well: group_by(o.customer, window=tg.tumbling(o.time, "1h")); '
            "or for what there is up to each row, take over(by=o.customer, one=...)",
            partial(o.over, by=o.customer, one=one),
        )
        for name, one in (
            ("the first value of some orders", tg.first(o.amount, by=o.time, filter=o.amount > 9)),
            ("the first value of some kind", tg.first(o.discount + 1, by=o.time)),
            ("the last value of some orders", tg.last(o.amount, by=o.time, filter=o.amount > 9)),
        )
    ),
    Case(
        "the latest order of each customer, of which values may be NULL",
        lambda: o.group_by(o.customer).agg(last=tg.arg_max(o.discount, o.time), at=tg.max(o.time)),
        "TG202",
        "for the latest of each, if o.discount is never NULL, take the instant at which the next one comes: "
        'versions(by=o.customer); or look it up at each row of another stream: asof_join(o, by="customer"); '
        'or group by a window as well: group_by(o.customer, window=tg.tumbling(o.time, "1h")); '
        "or for what there is up to each row, take over(by=o.customer, last=..., at=...)",
        lambda: o.versions(by=o.customer),
    ),
    Case(
        "the first order of each customer, of which values may be NULL",
        lambda: o.group_by(o.customer).agg(
            first=tg.first(o.discount, by=o.time), said=tg.first(o.note, by=o.time), at=tg.min(o.time)
        ),
        "TG202",
        "take the first row of each, if o.discount and o.note are never NULL: distinct_on(o.customer); "
        'or group by a window as well: group_by(o.customer, window=tg.tumbling(o.time, "1h")); '
        "or for what there is up to each row, take over(by=o.customer, first=..., said=..., at=...)",
        lambda: o.distinct_on(o.customer),
    ),
    Case(
        "the latest payment of each order, of two instants and two keys",
        lambda: (
            o.join(p, o.id == p.id, o.time <= p.time)
            .group_by(o.customer, o.id)
            .agg(paid=tg.max(p.time), amount=tg.last(o.amount, by=p.time))
        ),
        "TG202",
        "for the latest of each, take the instant at which the next one comes: "
        "versions(by=(o.customer, o.id), order=p.time); or look it up at each row of another stream: "
        'asof_join(..., by=["customer", "id"]); or group by a window as well: '
        'group_by(o.customer, o.id, window=tg.tumbling(p.time, "1h")); or for what there is up to each row, take '
        "over(by=(o.customer, o.id), order=p.time, paid=..., amount=...)",
        lambda: o.join(p, o.id == p.id, o.time <= p.time).versions(by=(o.customer, o.id), order=p.time),
    ),
    Case(
        "the last one by what is no time",
        lambda: orders.group_by(orders.customer).agg(last=tg.last(orders.amount, by=orders.id)),
        "TG202",
        'group by a window as well: group_by(orders.customer, window=tg.tumbling(orders.time, "1h")); '
        "or for what there is up to each row, take over(by=orders.customer, last=...)",
        lambda: orders.over(by=orders.customer, last=tg.last(orders.amount, by=orders.id)),
    ),
    Case(
        "the latest one, and how many there are",
        lambda: orders.group_by(orders.customer).agg(last=tg.max(orders.time), n=tg.count()),
        "TG202",
        'group by a window as well: group_by(orders.customer, window=tg.tumbling(orders.time, "1h")); '
        "or for what there is up to each row, take over(by=orders.customer, last=..., n=...)",
        lambda: orders.over(by=orders.customer, last=tg.max(orders.time), n=tg.count()),
    ),
    Case(
        "a count of all",
        lambda: orders.group_by().agg(n=tg.count(), last=tg.max(orders.time)),
        "TG202",
        'group by a window as well: group_by(window=tg.tumbling(orders.time, "1h")); '
        "or for what there is up to each row, take over(n=..., last=...)",
        lambda: orders.group_by(window=tg.tumbling(orders.time, "1h")).agg(n=tg.count(), last=tg.max(orders.time)),
    ),
    Case(
        "by the hour of the day",
        lambda: orders.group_by(hour=orders.time.hour()).agg(n=tg.count()),
        "TG202",
        'group by a window as well: group_by(hour=..., window=tg.tumbling(orders.time, "1h"))',
        lambda: orders.group_by(hour=orders.time.hour(), window=tg.tumbling(orders.time, "1h")).agg(n=tg.count()),
    ),
    Case(
        "by the month",
        lambda: orders.group_by(month=orders.time.truncate("month")).agg(n=tg.count()),
        "TG202",
        f'{CALENDAR}(tg.calendar("month")).agg(n=...); or group by the day as well, and combine the days where results '
        'are read: group_by(month=..., day=tg.floor(orders.time, "1d"))',
        lambda: orders.windows(tg.calendar("month")).agg(n=tg.count()),
    ),
    Case(
        "by the month and the year of a time zone, and by customer",
        lambda: (
            o.with_(local=o.time.to_local("Europe/Berlin"))
            .group_by(o.customer, y=lambda r: r.local.year(), m=lambda r: r.local.month())
            .agg(total=tg.sum(o.amount))
        ),
        "TG202",
        f'{CALENDAR}(tg.calendar("month", zone="Europe/Berlin"), by=o.customer).agg(total=...); or group by the hour '
        "as well, and combine the hours where results are read: "
        'group_by(o.customer, y=..., m=..., hour=tg.floor(o.time, "1h"))',
        lambda: o.windows(tg.calendar("month", zone="Europe/Berlin"), by=o.customer).agg(total=tg.sum(o.amount)),
    ),
    Case(
        "by the quarter of one of two instants",
        lambda: (
            o.join(p, o.id == p.id, o.time <= p.time)
            .group_by(o.customer, q=p.time.truncate("quarter"))
            .agg(n=tg.count())
        ),
        "TG202",
        f'{CALENDAR}(tg.calendar("quarter"), by=o.customer, order=p.time).agg(n=...); or group by the day as well, and '
        'combine the days where results are read: group_by(o.customer, q=..., day=tg.floor(p.time, "1d"))',
        lambda: (
            o.join(p, o.id == p.id, o.time <= p.time)
            .windows(tg.calendar("quarter"), by=o.customer, order=p.time)
            .agg(n=tg.count())
        ),
    ),
    Case(
        "by the year of the instant on which nothing progresses",
        lambda: o.join(p, o.id == p.id, o.time <= p.time).group_by(y=o.time.year()).agg(n=tg.count()),
        "TG202",
        f"{MONTHS}; group by the day as well, and combine the days where results are read: "
        'group_by(y=..., day=tg.floor(p.time, "1d")); or join a stream of their starts and ends',
        lambda: (
            o.join(p, o.id == p.id, o.time <= p.time)
            .group_by(y=o.time.year(), day=tg.floor(p.time, "1d"))
            .agg(n=tg.count())
        ),
    ),
    Case(
        "by the month, and by what else is computed",
        lambda: orders.group_by(m=orders.time.month(), late=orders.time > "2026-01-01").agg(n=tg.count()),
        "TG202",
        f"{MONTHS}; group by the day as well, and combine the days where results are read: "
        'group_by(m=..., late=..., day=tg.floor(orders.time, "1d")); or join a stream of their starts and ends',
        lambda: orders.group_by(
            m=orders.time.month(), late=orders.time > "2026-01-01", day=tg.floor(orders.time, "1d")
        ).agg(n=tg.count()),
    ),
    Case(
        "by the hour of a time zone",
        lambda: orders.group_by(hour=orders.time.to_local("Europe/Berlin").truncate("hour")).agg(n=tg.count()),
        "TG202",
        "days and months of a time zone differ in length, and are no windows of one size; group by the hour as well, "
        'and combine the hours where results are read: group_by(hour=..., hour_2=tg.floor(orders.time, "1h")); or '
        "join a stream of their starts and ends",
        lambda: orders.group_by(
            hour=orders.time.to_local("Europe/Berlin").truncate("hour"), hour_2=tg.floor(orders.time, "1h")
        ).agg(n=tg.count()),
    ),
    Case(
        "by the month and the year, of a join",
        lambda: o.join(p, o.id == p.id).group_by(o.customer, m=p.time.month(), y=p.time.format("%Y")).agg(n=tg.count()),
        "TG202",
        f"{MONTHS}; group by the day as well, and combine the days where results are read: "
        'group_by(o.customer, m=..., y=..., day=tg.floor(tg.max(o.time, p.time), "1d")); or join a stream of '
        "their starts and ends",
        lambda: (
            o.join(p, o.id == p.id)
            .group_by(o.customer, m=p.time.month(), y=p.time.format("%Y"), day=tg.floor(tg.max(o.time, p.time), "1d"))
            .agg(n=tg.count())
        ),
    ),
    Case(
        "the months that have an order",
        lambda: orders.select(month=orders.time.format("%Y-%m")).distinct(),
        "TG202",
        f'{CALENDAR}(tg.calendar("month")).agg(n=tg.count()); or keep the day as well, and combine the days where '
        'results are read: select(..., day=tg.floor(orders.time, "1d"))',
        lambda: orders.windows(tg.calendar("month")).agg(n=tg.count()),
    ),
    Case(
        "by the month of days as instants",
        lambda: deliveries.group_by(month=deliveries.day.truncate("month")).agg(n=tg.count()),
        "TG202",
        'take windows of the calendar: windows(tg.calendar("month")).agg(n=...); or group by the day as well, and '
        "combine the days where results are read: group_by(month=..., day_2=deliveries.day)",
        lambda: deliveries.windows(tg.calendar("month")).agg(n=tg.count()),
    ),
    Case(
        "by the day of a time zone",
        lambda: orders.group_by(day=orders.time.to_local("Europe/Berlin").to_date()).agg(n=tg.count()),
        "TG202",
        f'{CALENDAR}(tg.calendar("day", zone="Europe/Berlin")).agg(n=...); or group by the hour as well, and combine '
        'the hours where results are read: group_by(day=..., hour=tg.floor(orders.time, "1h"))',
        lambda: orders.windows(tg.calendar("day", zone="Europe/Berlin")).agg(n=tg.count()),
    ),
    Case(
        "by the day of the week",
        lambda: orders.group_by(weekday=orders.time.day_of_week()).agg(n=tg.count()),
        "TG202",
        'group by the day as well: group_by(weekday=..., day=tg.floor(orders.time, "1d"))',
        lambda: orders.group_by(weekday=orders.time.day_of_week(), day=tg.floor(orders.time, "1d")).agg(n=tg.count()),
    ),
    Case(
        "by the month and the hour of the day",
        lambda: orders.group_by(month=orders.time.month(), hour=orders.time.hour()).agg(n=tg.count()),
        "TG202",
        'group by a window as well: group_by(month=..., hour=..., window=tg.tumbling(orders.time, "1h"))',
        lambda: orders.group_by(
            month=orders.time.month(), hour=orders.time.hour(), window=tg.tumbling(orders.time, "1h")
        ).agg(n=tg.count()),
    ),
    Case(
        "periods by the day of their starts",
        lambda: hot.group_by(day=tg.floor(hot.ts, "1d")).agg(n=tg.count()),
        "TG201",
        'group by when a row is known: day=tg.floor(hot.te, "1d"); or bound it: hot.te <= hot.ts + "1h"',
        lambda: hot.group_by(day=tg.floor(hot.te, "1d")).agg(n=tg.count()),
    ),
    Case(
        "periods by the date of their starts",
        lambda: hot.group_by(hot.sensor, day=hot.ts.to_date()).agg(n=tg.count()),
        "TG202",
        'group by when a row is known: day=tg.floor(hot.te, "1d")',
        lambda: hot.group_by(hot.sensor, day=tg.floor(hot.te, "1d")).agg(n=tg.count()),
    ),
    Case(
        "stays by the hour of their starts, with a name of its own",
        lambda: stays.group_by(hour=tg.floor(stays.start, "6h")).agg(n=tg.count()).select("n", begun="hour"),
        "TG201",
        'group by when a row is known: hour=tg.floor(stays.end, "6h"); or bound it: stays.end <= stays.start + "1h"',
        lambda: stays.group_by(hour=tg.floor(stays.end, "6h")).agg(n=tg.count()).select("n", begun="hour"),
    ),
    Case(
        "a count of pairs",
        lambda: o.join(p, o.id == p.id, o.time <= p.time).group_by(o.customer).agg(n=tg.count()),
        "TG202",
        'group by a window as well: group_by(o.customer, window=tg.tumbling(p.time, "1h")); '
        "or for what there is up to each row, take over(by=o.customer, order=p.time, n=...)",
        lambda: (
            o.join(p, o.id == p.id, o.time <= p.time)
            .group_by(o.customer, window=tg.tumbling(p.time, "1h"))
            .agg(n=tg.count())
        ),
    ),
    Case(
        "by day",
        lambda: orders.group_by(d=orders.time.to_date()).agg(n=tg.count()),
        "TG202",
        'take the start of the day, which is an instant: d=tg.floor(orders.time, "1d")',
        lambda: orders.group_by(d=tg.floor(orders.time, "1d")).agg(n=tg.count()),
    ),
    Case(
        "by customer and day, the day computed first",
        lambda: o.with_(day=o.time.cast("date")).group_by(o.customer, "day").agg(n=tg.count()),
        "TG202",
        'take the start of the day, which is an instant: day=tg.floor(o.time, "1d")',
        lambda: o.with_(day=tg.floor(o.time, "1d")).group_by(o.customer, "day").agg(n=tg.count()),
    ),
    Case(
        "by the text of the day",
        lambda: orders.group_by(d=orders.time.format("%d.%m.%Y")).agg(n=tg.count()),
        "TG202",
        'take the start of the day, which is an instant: d=tg.floor(orders.time, "1d")',
        lambda: orders.group_by(d=tg.floor(orders.time, "1d")).agg(n=tg.count()),
    ),
    Case(
        "who and on which day",
        lambda: orders.select(orders.customer, d=orders.time.to_date()).distinct(),
        "TG202",
        'take the start of the day, which is an instant: d=tg.floor(orders.time, "1d")',
        lambda: orders.select(orders.customer, d=tg.floor(orders.time, "1d")).distinct(),
    ),
    Case(
        "pairs of one day",
        lambda: o.join(p, o.id == p.id, o.time.to_date() == p.time.to_date()),
        "TG201",
        'take the start of the day, which is an instant: tg.floor(o.time, "1d") == tg.floor(p.time, "1d")',
        lambda: o.join(p, o.id == p.id, tg.floor(o.time, "1d") == tg.floor(p.time, "1d")),
    ),
    Case(
        "a filter that forgets the time",
        lambda: orders.where(orders.amount > 100).select(orders.customer, orders.amount),
        "TG202",
        "keep an instant: select(..., orders.time)",
        lambda: orders.where(orders.amount > 100).select(orders.customer, orders.amount, orders.time),
    ),
    Case(
        "pairs that forget their times",
        lambda: o.join(p, o.id == p.id).select(o.id, o.amount),
        "TG202",
        "say when a row is known: select(..., known=tg.max(o.time, p.time))",
        lambda: o.join(p, o.id == p.id).select(o.id, o.amount, known=tg.max(o.time, p.time)),
    ),
    Case(
        "each customer once",
        lambda: orders.select(orders.customer).distinct(),
        "TG202",
        "take each with the instant at which it comes first: "
        'select(..., orders.time).distinct_on("customer"); '
        'or keep a window: select(..., window=tg.tumbling(orders.time, "1h"))',
        lambda: orders.select(orders.customer, orders.time).distinct_on("customer"),
    ),
    Case(
        "the three largest orders of a customer",
        lambda: (
            a.left_join(b, *better).group_by(a.customer, a.id).agg(better=tg.count(b.id)).where(lambda g: g.better < 3)
        ),
        "TG202",
        'take the first 3 of each window: with_(window=tg.tumbling(a.time, "1h"))'
        '.top_k(3, by=(a.customer, "window"), order=tg.desc(a.amount))',
        lambda: a.with_(window=tg.tumbling(a.time, "1h")).top_k(3, by=(a.customer, "window"), order=tg.desc(a.amount)),
    ),
    Case(
        "the two smallest orders of all, counted with those as small",
        lambda: a.join(b, b.amount <= a.amount).group_by(a.id).agg(n=tg.count()).where(lambda g: g.n <= 2).select("id"),
        "TG202",
        'take the first 2 of each window: with_(window=tg.tumbling(a.time, "1h"))'
        '.top_k(2, by="window", order=a.amount)',
        lambda: a.with_(window=tg.tumbling(a.time, "1h")).top_k(2, by="window", order=a.amount),
    ),
    Case(
        "each five orders",
        lambda: running.group_by("customer", batch=(running.n - 1).div(5)).agg(first=tg.min(running.time)),
        "TG202",
        "take windows of 5 rows: windows(tg.rows(5), by=a.customer)",
        lambda: a.windows(tg.rows(5), by=a.customer).agg(first=tg.min(a.time)),
    ),
    Case(
        "each five orders, by their numbers",
        lambda: numbered.group_by("customer", batch=(numbered.n - 1).div(5)).agg(total=tg.sum(numbered.amount)),
        "TG202",
        'take windows of 5 rows: windows(tg.rows(5), by="customer")',
        lambda: orders.windows(tg.rows(5), by="customer").agg(total=tg.sum(orders.amount)),
    ),
    Case(
        "orders by how large they are, which is no number of them",
        lambda: deliveries.group_by(size=deliveries.id.div(100)).agg(n=tg.count()),
        "TG202",
        "group by a window as well: group_by(size=..., window=tg.tumbling(deliveries.day, 1))",
        lambda: deliveries.group_by(size=deliveries.id.div(100), window=tg.tumbling(deliveries.day, 1)).agg(
            n=tg.count()
        ),
    ),
    Case(
        "sensors that never report",
        lambda: sensors.anti_join(r, r.sensor == sensors.sensor),
        "TG202",
        'ask at instants: take tg.product(ticks, ...) with ticks = tg.ticks("1h", r), and add r.time <= ticks.tick',
        lambda: tg.product(hours, sensors).anti_join(r, r.sensor == sensors.sensor, r.time <= hours.tick),
    ),
    Case(
        "how often each sensor has reported, none left out",
        lambda: sensors.left_join(r, r.sensor == sensors.sensor).group_by(sensors.site).agg(n=tg.count(r.value)),
        "TG202",
        'ask at instants: take tg.product(ticks, ...) with ticks = tg.ticks("1h", r), and add r.time <= ticks.tick',
        lambda: (
            tg.product(hours, sensors)
            .left_join(r, r.sensor == sensors.sensor, r.time <= hours.tick)
            .group_by(sensors.site, hours.tick)
            .agg(n=tg.count(r.value))
        ),
    ),
    Case(
        "rooms where nobody stays, of rows with two instants",
        lambda: rooms.anti_join(stays, stays.room == rooms.number),
        "TG202",
        "ask at instants: take tg.product(ticks, ...) with "
        'ticks = tg.ticks("1h", stays.select(stays.end)), and add stays.end <= ticks.tick',
        lambda: tg.product((left := tg.ticks("1h", stays.select(stays.end))), rooms).anti_join(
            stays, stays.room == rooms.number, stays.end <= left.tick
        ),
    ),
    Case(
        "sensors that ever report",
        lambda: sensors.semi_join(r, r.sensor == sensors.sensor),
        "TG202",
        "use join instead of semi_join: its rows have r.time",
        lambda: sensors.join(r, r.sensor == sensors.sensor),
    ),
    Case(
        "sites that ever report",
        lambda: sensors.semi_join(r, r.sensor == sensors.sensor).select(sensors.site).distinct(),
        "TG202",
        "use join instead of semi_join, and take each with the instant at which it comes first: "
        'select(..., r.time).distinct_on("site"); or keep a window: select(..., window=tg.tumbling(r.time, "1h"))',
        lambda: (
            sensors.join(r, r.sensor == sensors.sensor)
            .select(sensors.site, window=tg.tumbling(r.time, "1h"))
            .distinct()
        ),
    ),
    Case(
        "orders without payment",
        lambda: o.anti_join(p, p.id == o.id, o.time <= p.time),
        "TG201",
        'bound it: p.time <= o.time + "1h"',
        lambda: o.anti_join(p, p.id == o.id, o.time <= p.time, p.time <= o.time + "1h"),
    ),
    Case(
        "orders and their payments, where there are any",
        lambda: o.left_join(p, p.id == o.id).select(o.id, o.time, paid=p.time),
        "TG201",
        'bound it: p.time <= o.time + "1h"; or look up the last one before each row: asof_join(p, by="id")',
        lambda: o.left_join(p, p.id == o.id, p.time <= o.time + "1h").select(o.id, o.time, paid=p.time),
    ),
    Case(
        "the latest order of each customer",
        lambda: a.anti_join(b, a.customer == b.customer, a.time < b.time),
        "TG201",
        "take each with the instant at which the next one comes: versions(by=a.customer); "
        'or bound it: b.time <= a.time + "1h"',
        lambda: a.versions(by=a.customer),
    ),
    Case(
        "the latest order of each customer, of the large ones",
        lambda: a.where(a.amount > 9).anti_join(b, a.customer == b.customer, a.time < b.time),
        "TG201",
        'bound it: b.time <= a.time + "1h"',
        lambda: a.where(a.amount > 9).anti_join(b, a.customer == b.customer, a.time < b.time, b.time <= a.time + "1h"),
    ),
    Case(
        "orders that were paid",
        lambda: o.semi_join(p, p.id == o.id),
        "TG201",
        'bound it: p.time <= o.time + "1h"',
        lambda: o.semi_join(p, p.id == o.id, p.time <= o.time + "1h"),
    ),
    Case(
        "pairs with nothing said of their times",
        lambda: o.join(p, o.id == p.id),
        "TG201",
        'bound it: p.time <= o.time + "1h"; or say when a row is known: with_(known=tg.max(o.time, p.time)); '
        'or look up the last one before each row: asof_join(p, by="id", how="inner")',
        lambda: o.join(p, o.id == p.id, p.time <= o.time + "1h"),
    ),
    Case(
        "prices of orders, by a key of two names",
        lambda: o.join(price, o.customer == price.payer, o.id == price.id).select(o.id, o.time, price.rate),
        "TG201",
        'bound it: price.time <= o.time + "1h"; '
        "or say when a row is known: select(..., known=tg.max(o.time, price.time)); "
        'or look up the last one before each row: asof_join(price, by=[("customer", "payer"), "id"], how="inner")',
        lambda: o.asof_join(price, by=[("customer", "payer"), "id"], how="inner").select(o.id, o.time, price.rate),
    ),
    Case(
        "pairs of which only the earlier time is kept",
        lambda: o.join(p, o.id == p.id, o.time <= p.time).select(o.id, o.time),
        "TG201",
        'bound it: p.time <= o.time + "1h"; or say when a row is known: select(..., known=p.time)',
        lambda: o.join(p, o.id == p.id, o.time <= p.time).select(o.id, o.time, known=p.time),
    ),
    Case(
        "a bound that has to be longer",
        lambda: o.anti_join(p, p.id == o.id, o.time + tg.days(2) <= p.time),
        "TG201",
        'bound it: p.time <= o.time + "7d"',
        lambda: o.anti_join(p, p.id == o.id, o.time + tg.days(2) <= p.time, p.time <= o.time + "7d"),
    ),
    Case(
        "longer than any bound that is proposed",
        lambda: o.join(p, p.id == o.id, o.time + tg.days(400) <= p.time).select(o.id, o.time),
        "TG201",
        "say when a row is known: select(..., known=p.time)",
        lambda: o.join(p, p.id == o.id, o.time + tg.days(400) <= p.time).select(o.id, o.time, known=p.time),
    ),
    Case(
        "a promise of the wrong instant",
        lambda: (
            o.join(p, o.id == p.id, o.time <= p.time).select(o.id, asked=o.time, paid=p.time).declare(progress="asked")
        ),
        "TG201",
        'bound it: p.time <= o.time + "1h"; or let the result progress on paid: progress="paid"',
        lambda: (
            o.join(p, o.id == p.id, o.time <= p.time).select(o.id, asked=o.time, paid=p.time).declare(progress="paid")
        ),
    ),
    Case(
        "versions that lose when they end",
        lambda: orders.versions(by="customer").select("customer", "time", "amount"),
        "TG201",
        'say when a row is known: select(..., known=until); or bound it: until <= time + "1h"',
        lambda: orders.versions(by="customer").select("customer", "time", "amount", known="until"),
    ),
    Case(
        "a history that loses when its rows end",
        lambda: o.versioned(by="customer").history().select("customer", "time"),
        "TG201",
        'say when a row is known: select(..., known=until); or bound it: until <= o.time + "1h"',
        lambda: o.versioned(by="customer").history().select("customer", "time", known="until"),
    ),
    Case(
        "versions with other names that lose when they end",
        lambda: orders.versions(by="customer").rename(until="ends").select("customer", "time"),
        "TG201",
        'say when a row is known: select(..., known=ends); or bound it: ends <= time + "1h"',
        lambda: orders.versions(by="customer").rename(until="ends").select("customer", "time", known="ends"),
    ),
    Case(
        "a promise that no instant keeps",
        lambda: o.join(p, o.id == p.id).select(o.id, asked=o.time, paid=p.time).declare(progress="asked"),
        "TG201",
        'bound it: p.time <= o.time + "1h"; '
        'or say when a row is known: select(..., known=tg.max(o.time, p.time)), and progress="known"; '
        'or look up the last one before each row: asof_join(p, by="id", how="inner")',
        lambda: o.join(p, o.id == p.id).select(o.id, known=tg.max(o.time, p.time)).declare(progress="known"),
    ),
    Case(
        "periods that overlap",
        lambda: hot.join(loud, same, hot.ts < loud.te, loud.ts < hot.te),
        "TG201",
        'say when a row is known: with_(known=tg.max(hot.te, loud.te)); or bound it: loud.te <= loud.ts + "1h"',
        lambda: hot.join(loud, same, hot.ts < loud.te, loud.ts < hot.te).with_(known=tg.max(hot.te, loud.te)),
    ),
    Case(
        "periods that intersect, of which one end is kept",
        lambda: hot.join(loud, same, hot.intersects(loud)).select(hot.sensor, until=hot.te),
        "TG201",
        'say when a row is known: select(..., known=tg.max(hot.te, loud.te)); or bound it: loud.te <= loud.ts + "1h"',
        lambda: hot.join(loud, same, hot.intersects(loud)).select(
            hot.sensor, until=hot.te, known=tg.max(hot.te, loud.te)
        ),
    ),
    Case(
        "periods without another in them",
        lambda: hot.anti_join(loud, same, hot.intersects(loud)),
        "TG201",
        'bound it: loud.te <= loud.ts + "1h"',
        lambda: hot.anti_join(loud, same, hot.intersects(loud), loud.te <= loud.ts + "1h"),
    ),
    Case(
        "a match of rows that come when they end",
        lambda: met(stays),
        "TG201",
        'wait for all ends: emission="final" and within="1h"; or declare progress of Stays on start, too; '
        'or declare how long periods last: end <= start + "1h" in Stays',
        lambda: met(stays, emission="final", within="1h"),
    ),
    Case(
        "a match of such rows within a day",
        lambda: met(stays, within="1d"),
        "TG201",
        'wait for all ends: emission="final"; or declare progress of Stays on start, too; '
        'or declare how long periods last: end <= start + "1h" in Stays',
        lambda: met(stays, within="1d", emission="final"),
    ),
    Case(
        "a match of such rows, the time of which has another name",
        lambda: met(stays, within="1d").select("One.guest", seen="detected"),
        "TG201",
        'wait for all ends: emission="final"; or declare progress of Stays on start, too; '
        'or declare how long periods last: end <= start + "1h" in Stays',
        lambda: met(stays, within="1d", emission="final").select("One.guest", seen="detected"),
    ),
    Case(
        "readings above the mean",
        lambda: r.join(means, means.sensor == r.sensor, r.value > 2 * means.mean),
        "TG201",
        'group by window=tg.tumbling(readings.time, "1h"), and join where window == tg.tumbling(r.time, "1h")',
        lambda: r.join(h, h.sensor == r.sensor, r.value > 2 * h.mean, h.window == tg.tumbling(r.time, "1h")),
    ),
    Case(
        "integers as instants",
        lambda: s.anti_join(m, m.k == s.k),
        "TG201",
        "bound it: m.u <= s.t + 100",
        lambda: s.anti_join(m, m.k == s.k, m.u <= s.t + 100),
    ),
    Case(
        "a count of integers as instants",
        lambda: steps.group_by(steps.k).agg(n=tg.count()),
        "TG202",
        "group by a window as well: group_by(steps.k, window=tg.tumbling(steps.t, 100)); "
        "or for what there is up to each row, take over(by=steps.k, n=...)",
        lambda: steps.group_by(steps.k, window=tg.tumbling(steps.t, 100)).agg(n=tg.count()),
    ),
    Case(
        "days as instants",
        lambda: up.anti_join(deliveries, deliveries.id == up.id),
        "TG201",
        "bound it: deliveries.day <= up.day + 1",
        lambda: up.anti_join(deliveries, deliveries.id == up.id, deliveries.day <= up.day + 1),
    ),
    Case(
        "a window of days as instants",
        lambda: deliveries.group_by(deliveries.id).agg(n=tg.count()),
        "TG202",
        "group by a window as well: group_by(deliveries.id, window=tg.tumbling(deliveries.day, 1)); "
        "or for what there is up to each row, take over(by=deliveries.id, n=...)",
        lambda: deliveries.group_by(deliveries.id, window=tg.tumbling(deliveries.day, 1)).agg(n=tg.count()),
    ),
    Case(
        "what nothing is known for: rows of a table that a stream has not",
        lambda: sensors.select(sensors.sensor).difference(readings.select(readings.sensor)),
        "TG202",
        "keep an instant that progresses with the streams, or a window of one",
        lambda: tg.product(t, sensors).select(t.time, sensors.sensor).difference(readings.select("time", "sensor")),
    ),
    Case(
        "a side of a join that has dropped its instant",
        lambda: o.anti_join(p.select(paid=p.id), lambda o, p: p.paid == o.id),
        "TG201",
        'keep p.time on its side of the join, and bound it: p.time <= o.time + "1h"',
        lambda: o.anti_join(
            p.select(p.time, paid=p.id), lambda o, p: (p.paid == o.id) & (p["time"] <= o["o.time"] + "1h")
        ),
    ),
    Case(
        "what nothing is known for: what has never been inside a join",
        lambda: o.join(sensors.anti_join(r, r.sensor == sensors.sensor), o.customer == sensors.site),
        "TG201",
        "state how much later than o.time r.time may be, in a condition or where the stream is declared",
        lambda: o.join(sensors, o.customer == sensors.site).anti_join(
            r, r.sensor == sensors.sensor, r.time <= o.time + "1h"
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_hint_is_the_mend_that_fits(case: Case) -> None:
    (problem,) = tg.program(Asked=case.asked()).check()
    assert (problem.code, problem.hint) == (case.code, case.hint)
    assert problem.site is not None


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_query_is_accepted_with_the_mend(case: Case) -> None:
    assert tg.program(Asked=case.mended()).check() == []


def test_the_other_mends_of_a_hint_are_accepted_too() -> None:
    times = hot.join(loud, same, hot.ts < loud.te, loud.ts < hot.te)
    others = {
        "Months": orders.group_by(month=orders.time.truncate("month"), day=tg.floor(orders.time, "1d")).agg(
            n=tg.count()
        ),
        "Dates": deliveries.group_by(month=deliveries.day.truncate("month"), day_2=deliveries.day).agg(n=tg.count()),
        "Days": orders.group_by(
            day=orders.time.to_local("Europe/Berlin").to_date(), hour=tg.floor(orders.time, "1h")
        ).agg(n=tg.count()),
        "LookedUp": p.asof_join(o, by="id"),
        "Pairs": o.join(p, o.id == p.id).with_(known=tg.max(o.time, p.time)),
        "Paid": o.join(p, o.id == p.id, o.time <= p.time, p.time <= o.time + "1h").select(o.id, o.time),
        "Short": times.where(loud.te <= loud.ts + "1h"),
        "Asked": o.join(p, o.id == p.id, p.time <= o.time + "1h")
        .select(asked=o.time, paid=p.time)
        .declare(progress="asked"),
    }
    assert tg.program(**others).check() == []
    for declared in (began, short):
        assert tg.program(Met=met(declared), Within=met(declared, within="1d")).check() == []


steps_before, steps_between, marks_between = steps.as_("before"), steps.as_("between"), marks.as_("between")
RUN = {
    "Steps": [(1, 1), (1, 4), (2, 5), (1, 6), (2, 9)],
    "Marks": [(1, 0), (1, 3), (1, 4), (2, 4), (3, 5), (2, 9)],
}


def results(asked: tg.Relation, *names: str) -> list[tuple[object, ...]]:
    program = tg.program(Asked=asked)
    rows = program.run({stream.name: RUN[stream.name] for stream in program.definition.inputs}).rows("Asked")
    return sorted(tuple(row[name] for name in names) for row in rows)


def keyed(**keys: tg.Expression) -> tg.Relation:
    return orders.group_by(**keys).agg(n=tg.count())


at = orders.time
berlin, tokyo = at.to_local("Europe/Berlin"), at.to_local("Asia/Tokyo")


@pytest.mark.parametrize(
    ("keys", "window"),
    [
        ({"y": at.format("%Y")}, '"year"'),
        ({"q": at.quarter(), "y": at.year()}, '"quarter"'),
        ({"m": at.format("%Y/%b")}, '"month"'),
        ({"m": at.format("%m"), "q": at.quarter(), "y": at.year()}, '"month"'),
        ({"m": berlin.truncate("month"), "y": berlin.year()}, '"month", zone="Europe/Berlin"'),
        ({"d": berlin.format("%Y-%m-%d")}, '"day", zone="Europe/Berlin"'),
        ({"d": berlin.day(), "m": berlin.month(), "y": berlin.year()}, '"day", zone="Europe/Berlin"'),
        ({"d": berlin.day_of_year(), "y": berlin.year()}, '"day", zone="Europe/Berlin"'),
        ({"d": berlin.to_date(), "w": berlin.day_of_week()}, '"day", zone="Europe/Berlin"'),
        ({"w": berlin.week(), "y": berlin.week_year()}, '"week", zone="Europe/Berlin"'),
        ({"w": berlin.truncate("week")}, '"week", zone="Europe/Berlin"'),
    ],
)
def test_parts_that_together_are_a_unit_are_windows_of_it(keys: dict[str, tg.Expression], window: str) -> None:
    (problem,) = tg.program(Asked=keyed(**keys)).check()
    assert problem.hint is not None
    assert problem.hint.startswith(f"{CALENDAR}(tg.calendar({window})).agg(n=...); or group by the ")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"fiscal": at.add_months(3).year()}, MONTHS),
        ({"fiscal": at.year() + tg.when(at.month() > 3, 1, 0)}, MONTHS),
        ({"half": at.month().div(7), "y": at.year()}, MONTHS),
        ({"third": at.month().div(3)}, MONTHS),
        ({"later": at.truncate("month") + tg.days(3)}, MONTHS),
        ({"m": at.month()}, MONTHS),
        ({"q": at.quarter()}, MONTHS),
        ({"m": at.format("%B")}, MONTHS),
        ({"y": at.year(), "moved": at.add_months(1)}, MONTHS),
        ({"m": at.month(), "y": berlin.year()}, PLACES),
        ({"m": tokyo.month(), "y": berlin.year()}, PLACES),
        ({"shifted": (berlin - tg.hours(6)).to_date()}, PLACES),
        ({"d": berlin.day()}, PLACES),
        ({"d": berlin.day_of_week()}, PLACES),
        ({"d": berlin.day_of_year()}, PLACES),
        ({"h": berlin.hour()}, PLACES),
        ({"h": berlin.hour(), "d": berlin.to_date()}, PLACES),
        ({"w": berlin.week(), "y": berlin.year()}, PLACES),
        ({"w": berlin.week(), "m": berlin.truncate("month")}, PLACES),
    ],
    ids=[
        "fiscal years",
        "fiscal years by a condition",
        "half-years",
        "thirds of a year",
        "shifted months",
        "months of any year",
        "quarters of any year",
        "names of months",
        "years and what else is computed",
        "months and years of two clocks",
        "months and years of two zones",
        "shifted days",
        "days of any month",
        "days of any week",
        "days of any year",
        "hours of any day",
        "hours",
        "weeks that a year ends",
        "weeks that a month ends",
    ],
)
def test_parts_that_come_again_or_are_computed_with_are_no_windows(keys: dict[str, tg.Expression], reason: str) -> None:
    (problem,) = tg.program(Asked=keyed(**keys)).check()
    assert problem.hint is not None
    assert problem.hint.startswith(f"{reason}; group by the ")


@pytest.mark.parametrize("strict", [False, True])
def test_the_last_row_before_written_as_pairs_without_one_between_is_an_as_of_join(strict: bool) -> None:
    """A bound would contradict the rows between."""
    before, until = (m.u < s.t, marks_between.u < s.t) if strict else (s.t >= m.u, s.t >= marks_between.u)
    between = marks_between.k == s.k, m.u < marks_between.u, until
    option = ", strict=True" if strict else ""
    mended = s.asof_join(m, by="k", strict=strict, how="inner")
    for joined in (s.join(m, s.k == m.k, before), s.join(m, s.k == m.k).where(before)):
        asked = joined.anti_join(marks_between, *between)
        notes = tg.program(Asked=asked).notes()
        assert {note.hint for note in notes} == {
            f'look up the last one before each row: asof_join(m, by="k"{option}, how="inner")'
        }
        assert results(asked, "s.k", "t", "u") == results(mended, "s.k", "t", "u")
    assert tg.program(Asked=mended).notes() == []


@pytest.mark.parametrize("between", [marks_between, m], ids=["another name", "the same name"])
@pytest.mark.parametrize(
    "select",
    [
        lambda pairs: pairs.select(key=s.k, at=s.t, was=m.u),
        lambda pairs: pairs.select(key=m.k, at=s.t, was=m.u, gap=s.t - m.u),
        lambda pairs: pairs.with_(gap=s.t - m.u).select(key=s.k, at=s.t, was=m.u),
        lambda pairs: pairs.select(one=s.k, at=s.t, was=m.u).rename(one="key"),
    ],
    ids=["selected", "computed", "computed before", "renamed"],
)
@pytest.mark.parametrize("later", [False, True], ids=["joined", "selected where it is before"])
def test_pairs_that_are_selected_before_those_with_one_between_are_left_out_are_an_as_of_join(
    select: Callable[[tg.Relation], tg.Relation], between: tg.Relation, later: bool
) -> None:
    pairs = (
        select(s.join(m, s.k == m.k)).where(lambda p: p.was <= p.at)
        if later
        else select(s.join(m, s.k == m.k, m.u <= s.t))
    )
    asked = pairs.anti_join(between, between.k == pairs.key, pairs.was < between.u, between.u <= pairs.at)
    notes = tg.program(Asked=asked).notes()
    assert {note.hint for note in notes} == {'look up the last one before each row: asof_join(m, by="k", how="inner")'}
    mended = select(s.asof_join(m, by="k", how="inner"))
    assert results(asked, "key", "at", "was") == results(mended, "key", "at", "was")
    others = [
        pairs.anti_join(between, between.k == pairs.key, between.u < pairs.was, between.u <= pairs.at),
        pairs.anti_join(between, between.k == pairs.key, pairs.was < between.u, between.u <= pairs.was + 1),
        pairs.where(pairs.was > 3).anti_join(
            between, between.k == pairs.key, pairs.was < between.u, between.u <= pairs.at
        ),
    ]
    for other in others:
        assert all("asof_join(m" not in note.hint for note in tg.program(Asked=other).notes())


def test_the_row_before_written_as_pairs_without_one_between_is_a_lag() -> None:
    pairs = s.join(steps_before, steps_before.k == s.k, steps_before.t < s.t)
    asked = pairs.anti_join(
        steps_between, steps_between.k == s.k, steps_before.t < steps_between.t, steps_between.t < s.t
    ).select(s.k, s.t, was=steps_before.t)
    notes = tg.program(Asked=asked).notes()
    assert {note.hint for note in notes} == {"take the row before: over(by=s.k, before=tg.lag(...))"}
    mended = s.over(by=s.k, was=tg.lag(s.t)).where(lambda r: r.was.is_not_null())
    assert results(asked, "k", "t", "was") == results(mended, "k", "t", "was")
    assert tg.program(Asked=mended).notes() == []


@pytest.mark.parametrize(
    "asked",
    [
        lambda: s.join(m, s.k == m.k, m.u <= s.t).anti_join(
            marks_between, marks_between.k == m.k, m.u < marks_between.u, marks_between.u < s.t
        ),
        lambda: s.join(m, s.k == m.k, m.u <= s.t).anti_join(
            marks_between, marks_between.k == m.k, m.u < marks_between.u, marks_between.u <= s.t, m.u > 3
        ),
        lambda: s.join(m, s.k == m.k, m.u <= s.t).anti_join(
            marks_between, m.u < marks_between.u, marks_between.u <= s.t
        ),
        lambda: s.join(m, s.k == m.k, m.u <= s.t).anti_join(
            marks_between.where(marks_between.k > 3),
            marks_between.k == m.k,
            m.u < marks_between.u,
            marks_between.u <= s.t,
        ),
        lambda: s.join(m, s.k == m.k, m.u <= s.t).anti_join(
            steps_between, steps_between.k == m.k, m.u < steps_between.t, steps_between.t <= s.t
        ),
    ],
    ids=["from before its instant on", "some pairs", "of any key", "of some rows", "another stream"],
)
def test_other_rows_between_are_no_as_of_join(asked: Callable[[], tg.Relation]) -> None:
    notes = tg.program(Asked=asked()).notes()
    assert notes != []
    assert all("asof_join(m" not in note.hint for note in notes)


def test_bounds_of_several_streams_are_told_with_the_stream_that_each_is_of() -> None:
    """Both together make the query valid, and neither does alone."""
    asked = o.anti_join(p, p.id == o.id).anti_join(f, f.id == o.id)
    problems = tg.program(Kept=asked).check()
    assert [problem.hint for problem in problems] == [
        'bound it: p.time <= o.time + "1h"',
        'bound it: f.time <= o.time + "1h"',
    ]
    one = o.anti_join(p, p.id == o.id, p.time <= o.time + "1h")
    assert [problem.hint for problem in tg.program(Kept=one.anti_join(f, f.id == o.id)).check()] == [problems[1].hint]
    assert tg.program(Kept=one.anti_join(f, f.id == o.id, f.time <= o.time + "1h")).check() == []


def test_what_is_joined_first_is_bounded_by_what_the_result_progresses_on() -> None:
    """`p.time <= f.time + "1h"` would be nearer, and no mend: nothing bounds `f.time`."""
    asked = o.join(p.join(f, p.id == f.id), o.id == p.id)
    known = "say when a row is known: with_(known=tg.max(o.time, p.time, f.time))"
    assert [problem.hint for problem in tg.program(All=asked).check()] == [
        f'bound it: p.time <= o.time + "1h"; or {known}',
        f'bound it: f.time <= p.time + "1h"; or {known}',
    ]
    bounded = o.join(p.join(f, p.id == f.id, f.time <= p.time + "1h"), o.id == p.id, p.time <= o.time + "1h")
    assert tg.program(All=bounded, Known=asked.with_(known=tg.max(o.time, p.time, f.time))).check() == []


def test_a_bound_is_no_mend_by_which_nothing_is_waited_for() -> None:
    """`f.time <= p.time + "1h"` inside would leave nothing that the anti-join could find."""
    asked = o.anti_join(p.join(f, p.id == f.id), o.id == p.id, f.time >= p.time + "2h")
    problems = tg.program(Kept=asked).check()
    assert [problem.hint for problem in problems] == [
        'bound it: p.time <= o.time + "1h"',
        'bound it: f.time <= p.time + "1d"',
    ]
    bounds = p.time <= o.time + "1h", f.time <= p.time + "1d"
    mended = o.anti_join(p.join(f, p.id == f.id), o.id == p.id, f.time >= p.time + "2h", *bounds)
    assert tg.program(Kept=mended).check() == []


def test_a_stream_that_is_read_twice_is_bounded_twice() -> None:
    later, latest = payments.as_("later"), payments.as_("latest")
    asked = o.anti_join(later, later.id == o.id).anti_join(latest, latest.id == o.id)
    (problem,) = tg.program(Kept=asked).check()
    assert problem.hint == 'bound it: later.time <= o.time + "1h" and bound it: latest.time <= o.time + "1h"'


clicks = tg.stream("Clicks", "id bigint, time timestamp", progress="time")
#: Of another stream under a name that a relation of the queries below has, and before it.
click, paid, again = clicks.as_("pp"), payments.as_("pp"), payments.as_("pp")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (lambda: o.anti_join(paid, paid.id == o.id, o.time <= paid.time), "paid.time"),
        (lambda: o.anti_join(again, again.id == o.id, o.time <= again.time), "again.time"),
        (lambda: o.anti_join(click, click.id == o.id, o.time <= click.time), "click.time"),
        (lambda: o.anti_join((x := payments.as_("pp")), x.id == o.id, o.time <= x.time), "pp.time"),
        (lambda: o.anti_join((x := refunds.as_("pp")), x.id == o.id, o.time <= x.time), "pp.time"),
    ],
)
def test_a_hint_names_the_variable_of_the_relation_that_is_meant(asked: Callable[[], tg.Relation], hint: str) -> None:
    (problem,) = tg.program(Asked=asked()).check()
    assert problem.hint == f'bound it: {hint} <= o.time + "1h"'


def test_a_hint_prefers_variables_of_the_function() -> None:
    mine = paid
    (problem,) = tg.program(Asked=o.anti_join(mine, mine.id == o.id, o.time <= mine.time)).check()
    assert problem.hint == 'bound it: mine.time <= o.time + "1h"'


def test_a_hint_takes_a_name_that_is_free() -> None:
    asked = orders.with_(window=orders.amount).group_by("customer", "window").agg(n=tg.count())
    (problem,) = tg.program(Asked=asked).check()
    assert 'window_2=tg.tumbling(orders.time, "1h"))' in problem.hint
    asked = orders.group_by("customer").agg(amount=tg.sum(orders.amount))
    (problem,) = tg.program(Asked=asked).check()
    assert problem.hint.endswith("take over(by=orders.customer, amount_2=...)")


def test_what_all_queries_of_a_result_progress_on_may_be_promised_instead() -> None:
    declaration = tg.result("Both", "asked timestamp not null, paid timestamp not null", progress="asked")
    good = o.join(p, o.id == p.id, o.time <= p.time, p.time <= o.time + "1h").select(asked=o.time, paid=p.time)
    bad = o.join(f, o.id == f.id, o.time <= f.time).select(asked=o.time, paid=f.time)
    (problem,) = tg.program(tg.query(declaration, good), tg.query(declaration, bad)).check()
    assert problem.hint == 'bound it: f.time <= o.time + "1h"; or let the result progress on paid: progress="paid"'
    early = o.join(f, o.id == f.id, f.time <= o.time).select(asked=o.time, paid=f.time)
    (problem,) = tg.program(tg.query(declaration, early), tg.query(declaration, bad)).check()
    assert problem.hint == 'bound it: f.time <= o.time + "1h"'


def test_a_witness_has_no_line_that_says_nothing() -> None:
    """The end of a match is the end of a row, under another name of the same text."""
    (problem,) = tg.program(Met=met(stays, within="1d")).check()
    lines = [line.split("   ")[0].strip().split(" <= ") for line in problem.because]
    assert ["detected", "One.ts + 1d"] in lines
    assert [sides for sides in lines if len(sides) == 2 and sides[0] == sides[1]] == []


def test_nothing_is_said_that_was_not_tried() -> None:
    node = Product(scan(stream("A"), "a"), scan(stream("B"), "b"))
    with pytest.raises(tg.QueryError) as caught:
        analyse(ProgramDef((query(node),)))
    assert caught.value.hint == "bound it: b.t <= a.t + 100; or say when a row is known: with_(known=tg.max(a.t, b.t))"
    forgetful = Project(scan(stream("A"), "a"), ("a.k",))
    assert Mends(forgetful, {}).instant() == "keep an instant: select(..., a.t)"
    assert Mends(forgetful, {}, effort=0).instant() == ""


@pytest.mark.parametrize("make", [random_case, random_situation_case])
def test_random_queries_that_are_refused_get_a_hint_of_what_they_hold(make: Callable[[int], Cased]) -> None:
    hinted = 0
    for seed in range(60):
        try:
            analyse(make(seed).program)
        except tg.QueryError as error:
            found = [problem for problem in error.problems if problem.code in ("TG201", "TG202")]
            assert all(problem.hint for problem in found), seed
            hinted += len(found)
    assert hinted >= 2
