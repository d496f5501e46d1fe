"""The operations room's streams and queries; `expected.py` says the same in plain Polars."""

import tidegate as tg
from examples.operations_room import data
from tidegate import hours, minutes

POOR_VISIBILITY = 3.0

airports = tg.table("Airports", "faa string, name string, lat double, lon double")
airlines = tg.table("Airlines", "carrier string, name string")

# Three timelines: when a flight is put on the board, when it is to leave, and when it leaves. The board is early by
# three to six hours, and a flight leaves at most an hour early; what the queries keep, and when they answer, follows.
schedule = tg.stream(
    "Schedule",
    "flight_id bigint, origin string, carrier string, flight bigint, dest string, "
    "sched_dep timestamp not null, announced timestamp not null",
    progress="announced",
    relations=[
        lambda s: s.announced + hours(3) <= s.sched_dep,
        lambda s: s.sched_dep <= s.announced + hours(6),
    ],
)
departure = tg.stream(
    "Departure",
    "flight_id bigint, origin string, carrier string, dest string, "
    "sched_dep timestamp not null, dep timestamp not null, dep_delay bigint",
    progress="dep",
    relations=lambda d: d.sched_dep <= d.dep + hours(1),
)
weather = tg.stream(
    "Weather",
    "origin string, time timestamp not null, visib double, temp double, wind double, precip double",
    progress="time",
)

# Results that other queries read, with what they promise.
poor_start = tg.result("PoorStart", "origin string, start timestamp not null", progress="start")
poor_end = tg.result("PoorEnd", "origin string, last timestamp not null", progress="last")
poor_visibility = tg.result(
    "PoorVisibility",
    "origin string, start timestamp not null, end timestamp not null",
    progress="end",
    relations=[lambda p: p.start + hours(1) <= p.end, lambda p: p.end <= p.start + hours(49)],
)


def hourly_departures() -> tg.Relation:
    """Tumbling aggregation by ceil over the window (hour - 1h, hour], joined with a static table."""
    d, a = departure.as_("d"), airports.as_("a")
    return (
        d.join(a, a.faa == d.origin)
        .group_by(origin=d.origin, airport=a.name, hour=tg.ceil(d.dep, hours(1)))
        .agg(departures=tg.count(), avg_delay=tg.avg(d.dep_delay), max_delay=tg.max(d.dep_delay))
    )


def not_departed() -> tg.Relation:
    """A non-event across two timelines: final when the actual departures have passed two hours after the scheduled
    one.
    """
    s, d, al = schedule.as_("s"), departure.as_("d"), airlines.as_("al")
    return (
        s.join(al, al.carrier == s.carrier)
        .anti_join(d, d.flight_id == s.flight_id, d.sched_dep == s.sched_dep, d.dep <= s.sched_dep + hours(2))
        .select(
            flight_id=s.flight_id, origin=s.origin, airline=al.name, flight=s.flight, dest=s.dest, sched_dep=s.sched_dep
        )
    )


def poor_starts() -> tg.Relation:
    """Poor observations without a poor one of the same airport in the 70 minutes before."""
    w, q = poor("w"), poor("q")
    return w.anti_join(q, q.origin == w.origin, w.time - minutes(70) <= q.time, q.time < w.time).select(
        origin=w.origin, start=w.time
    )


def poor_ends() -> tg.Relation:
    """Poor observations without a poor one of the same airport in the 70 minutes after."""
    w, q = poor("w"), poor("q")
    return w.anti_join(q, q.origin == w.origin, w.time < q.time, q.time <= w.time + minutes(70)).select(
        origin=w.origin, last=w.time
    )


def poor(name: str) -> tg.Relation:
    observed = weather.as_(name)
    return observed.where(observed.visib < POOR_VISIBILITY)


def episodes() -> tg.Relation:
    """Each start with the first end at or after it, within two days; an observation holds for an hour."""
    s, e, f = poor_start.as_("s"), poor_end.as_("e"), poor_end.as_("f")
    return (
        s.join(e, s.origin == e.origin, s.start <= e.last, e.last <= s.start + hours(48))
        .anti_join(f, f.origin == s.origin, s.start <= f.last, f.last < e.last)
        .select(origin=s.origin, start=s.start, end=e.last + hours(1))
    )


def worst_delay() -> tg.Relation:
    """Event-controlled aggregation: departures during an episode, whose bounds are derived from other events."""
    p, d, a = poor_visibility.as_("p"), departure.as_("d"), airports.as_("a")
    return (
        p.join(d, d.origin == p.origin, p.start <= d.dep, d.dep < p.end)
        .join(a, a.faa == p.origin)
        .group_by(origin=p.origin, airport=a.name, start=p.start, end=p.end)
        .agg(departures=tg.count(), worst=tg.max(d.dep_delay), avg_delay=tg.avg(d.dep_delay))
    )


def bunching() -> tg.Relation:
    """A self-join: flights of one route planned half an hour apart or more that left within ten minutes of each
    other.
    """
    a, b = departure.as_("a"), departure.as_("b")
    return a.join(
        b,
        a.origin == b.origin,
        a.dest == b.dest,
        a.sched_dep + minutes(30) <= b.sched_dep,
        b.dep - minutes(10) <= a.dep,
        a.dep <= b.dep + minutes(10),
    ).select(
        origin=a.origin,
        dest=a.dest,
        flight_a=a.flight_id,
        carrier_a=a.carrier,
        sched_a=a.sched_dep,
        dep_a=a.dep,
        flight_b=b.flight_id,
        carrier_b=b.carrier,
        sched_b=b.sched_dep,
        dep_b=b.dep,
    )


# Situations: periods during which a condition holds of the events of an airport, and a pattern of two of them.
fog = weather.partition_by("origin").derive(Fog=tg.situation(weather.visib < 2, least=tg.min(weather.visib))).Fog
wave = (
    departure.partition_by("origin", time="dep", tie="flight_id")
    .derive(Wave=tg.situation(departure.dep_delay > 30, at_least="1h", flights=tg.count()))
    .Wave
)


def late_in_fog() -> tg.Relation:
    """A pattern: a wave of late departures that began in fog, certain once it has lasted its hour, whichever ends
    first.
    """
    return tg.match(fog.overlaps(wave) | fog.contains(wave) | fog.finished_by(wave), within="1d")


program = tg.program(
    tg.query(poor_start, poor_starts()),
    tg.query(poor_end, poor_ends()),
    tg.query(poor_visibility, episodes()),
    HourlyDepartures=hourly_departures(),
    NotDeparted=not_departed(),
    WorstDelay=worst_delay(),
    Bunching=bunching(),
    Fog=fog,
    Wave=wave,
    LateInFog=late_in_fog(),
)

# Declared disorder per stream, as `tg.parquet(replay.path("schedule"), per_batch=1, delay=...)` takes it.
delays = {"Schedule": data.SCHEDULE_DELAY, "Departure": data.DEPARTURE_DELAY, "Weather": data.WEATHER_DELAY}
