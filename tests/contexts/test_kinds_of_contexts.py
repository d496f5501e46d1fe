"""The kinds of contexts that other systems have: by the clock, by categories, inside each other, several at once."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import tidegate as tg
from tests.runtime.batchings import whatever_is_ahead
from tests.shards import shards
from tidegate.algebra.semantics import evaluate_program

Rows = Mapping[str, Sequence[Any]]

CALLS = tg.stream("Calls", "office string, time timestamp", progress="time")
SIGNALS = tg.stream("Signals", "machine string, time bigint, what string", progress="time")
MADE = tg.stream("Made", "machine string, time bigint, celsius double", progress="time")
PICKED = tg.stream("Picked", "courier string, time bigint, parcel bigint", progress="time")
HANDED = tg.stream("Handed", "courier string, time bigint, parcel bigint", progress="time")
PLACES = tg.stream("Places", "courier string, time bigint, km bigint", progress="time")


def rows_of(results: Sequence[Mapping[str, Any]]) -> list[Any]:
    return in_order(tuple(row.values()) for row in results)


def in_order(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=str)


# --- the clock --------------------------------------------------------------------------------------------------------

SUNDAY = dt.datetime(2026, 3, 22, 3, 4, tzinfo=dt.UTC)  # a week before the clocks of Berlin change


def calls(seed: int, days: int) -> list[tuple[str, dt.datetime]]:
    """Calls at any time, and at the borders of working hours and a second beside them."""
    rng = random.Random(seed)
    hours = [9 * 3600, 17 * 3600]
    found = [("first", SUNDAY)]
    for day in range(days):
        midnight = dt.datetime(2026, 3, 23, tzinfo=ZoneInfo("Europe/Berlin")) + dt.timedelta(days=day)
        for _ in range(12):
            second = rng.choice((rng.randrange(86_400), rng.choice(hours) + rng.choice((-1, 0, 1, 60))))
            found.append((f"{day}", (midnight + dt.timedelta(seconds=second)).astimezone(dt.UTC)))
    return sorted(found, key=lambda call: call[1])


def working() -> tg.ContextModel:
    ticks = tg.ticks("15m", CALLS)
    clock = ticks.tick.to_local("Europe/Berlin")
    is_open = (clock.day_of_week() <= 5) & clock.hour().between(9, 16)
    model = tg.context_model("Working", by=(), default="closed", contexts="open")
    return model.initiate("open", when=ticks.where(is_open)).terminate("open", when=ticks.where(~is_open))


def opened(at: dt.datetime) -> dt.datetime | None:
    """When the working hours of an instant began, by the clock on the wall; None: it is in none."""
    there = at.astimezone(ZoneInfo("Europe/Berlin"))
    nine, five = (there.replace(hour=hour, minute=0, second=0) for hour in (9, 17))
    return nine.astimezone(dt.UTC) if there.isoweekday() <= 5 and nine < there <= five else None


@pytest.mark.parametrize("seed", range(2))
def test_working_hours_in_a_time_zone(seed: int) -> None:
    model, rows = working(), calls(seed, 14)
    program = tg.program(
        Open=CALLS.in_context(model, "open", values={"since": "began"}), Closed=CALLS.in_context(model, "closed")
    )
    wanted = [(*row, began) for row in rows if (began := opened(row[1])) is not None]
    assert 20 < len(wanted) < len(rows) - 20
    with program.session() as session:
        rng, left = random.Random(seed), list(rows)
        while left:
            batch = left[: rng.choice((1, 7, 30))]
            del left[: len(batch)]
            session.push("Calls", rng.sample(batch, len(batch)))
            session.advance("Calls", {"time": batch[-1][1] - dt.timedelta(microseconds=1)})
            session.step()
            # A call waits for no later one: it is judged as soon as all up to it are there.
            assert session.progress["Open"]["time"] == session.progress["Closed"]["time"]
        session.finish()
        session.step()
        assert rows_of(session.results("Open")) == in_order(wanted)
        closed = [row for row in rows if opened(row[1]) is None]
        assert rows_of(session.results("Closed")) == in_order(closed)


def test_every_so_many_minutes() -> None:
    """A new window every ten minutes, and the first two minutes of every quarter of an hour."""
    marks = tg.ticks("1m", CALLS)
    minute = marks.tick.minute() % 15
    sampling = tg.context_model("Sampling", by=(), default="off", contexts="on")
    sampling = sampling.initiate("on", when=marks.where(minute == 0)).terminate("on", when=marks.where(minute == 2))
    slots = tg.context_model("Slots", by=(), default="none", contexts="slot")
    slots = slots.switch("slot", when=tg.ticks("10m", CALLS), within=("none", "slot"))
    inside = CALLS.in_context(slots, "slot", values={"since": "began"})
    counted = CALLS.windows(slots.as_windows("slot")).agg(n=tg.count())
    program = tg.program(Sampled=CALLS.in_context(sampling, "on"), InSlots=inside, Counted=counted)
    midnight = dt.datetime(2026, 3, 27, tzinfo=dt.UTC)
    rows = [("", midnight + dt.timedelta(seconds=second)) for second in range(30, 3 * 3600, 30)]
    found = program.run({"Calls": rows})
    sampled = [
        row for row in rows if 0 < (row[1] - midnight).seconds % 900 <= 120 and (row[1] - midnight).seconds > 900
    ]
    assert rows_of(found.rows("Sampled")) == in_order(sampled)

    def began(at: dt.datetime) -> dt.datetime:
        return midnight + dt.timedelta(seconds=((at - midnight).seconds - 1) // 600 * 600)

    wanted = [(*row, began(row[1])) for row in rows if row[1] > midnight + dt.timedelta(minutes=10)]
    assert rows_of(found.rows("InSlots")) == in_order(wanted)
    assert {row["n"] for row in found.rows("Counted")} == {20}


# --- categories -------------------------------------------------------------------------------------------------------


def test_categories_are_keys() -> None:
    """Each row is in the context of its category: which one, a condition says."""
    kind = tg.when(MADE.celsius < 0, "frost", MADE.celsius < 25, "mild", otherwise="hot")
    made = MADE.with_(kind=kind)
    model = tg.context_model("Alarms", by="kind", default="calm", contexts="alarm")
    model = model.initiate("alarm", when=made.where(made.machine == "siren"))
    counted = made.group_by("kind", w=tg.ceil(made.time, 10)).agg(n=tg.count())
    program = tg.program(In=made.in_context(model, "alarm").select("kind", "time"), Counted=counted)
    rows = [("a", 1, -5.0), ("siren", 2, -1.0), ("a", 3, -5.0), ("a", 4, 0.0), ("siren", 11, 25.0), ("a", 12, 30.0)]
    found = program.run({"Made": rows})
    assert rows_of(found.rows("In")) == [("frost", 3), ("hot", 12)]
    assert rows_of(found.rows("Counted")) == [("frost", 10, 3), ("hot", 20, 2), ("mild", 10, 1)]


# --- contexts inside contexts -----------------------------------------------------------------------------------------


def nested(*, ending: bool) -> tg.ContextModel:
    def when(what: str) -> tg.Relation:
        return SIGNALS.where(SIGNALS.what == what)

    model = tg.context_model("Nested", by="machine", default="idle", contexts=("shift", "run"))
    model = model.initiate("shift", when=when("+shift")).terminate("shift", when=when("-shift"))
    model = model.initiate("run", when=when("+run"), within="shift").terminate("run", when=when("-run"))
    return model.terminate("run", when=when("-shift")) if ending else model


def runs(rows: Sequence[tuple[str, int, str]], *, ending: bool) -> list[tuple[str, int, int]]:
    """When a machine runs within its shift, one instant after the other: until the shift ends, if that ends it."""
    found: list[tuple[str, int, int]] = []
    shift: dict[str, int] = {}
    run: dict[str, int] = {}
    for at in sorted({time for _, time, _ in rows}):
        asked = {(machine, what) for machine, time, what in rows if time == at}
        for machine in {machine for machine, _ in asked}:
            here = {what for other, what in asked if other == machine}
            in_shift, is_running = machine in shift, machine in run
            if is_running and ("-run" in here or (ending and "-shift" in here)):
                found.append((machine, run.pop(machine), at))
            if "+run" in here and in_shift:
                run.setdefault(machine, at)
            if "-shift" in here:
                shift.pop(machine, None)
            if "+shift" in here:
                shift.setdefault(machine, at)
    return sorted(found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ending", [False, True])
def test_a_context_inside_another(seed: int, ending: bool) -> None:
    rng = random.Random(seed)
    whats = ("+shift", "-shift", "+run", "-run")
    rows = [(rng.choice("mn"), rng.randrange(60), rng.choice(whats)) for _ in range(80)]
    program = tg.program(Runs=nested(ending=ending).windows("run").select("machine", "began", "ended"))
    assert rows_of(program.run({"Signals": rows}).rows("Runs")) == in_order(runs(rows, ending=ending))
    assert runs(rows, ending=True) != runs(rows, ending=False)


def test_a_context_of_a_machine_inside_one_of_all() -> None:
    """A row is in both, whatever their keys; where the inner one shall begin and end within the outer one, its queries
    stand there, and it has to have begun after it.
    """

    def when(what: str) -> tg.Relation:
        return SIGNALS.where(SIGNALS.what == what)

    plant = tg.context_model("Plant", by=(), default="night", contexts="day")
    plant = plant.initiate("day", when=when("+day")).terminate("day", when=when("-day"))
    machine = tg.context_model("Machine", by="machine", default="idle", contexts="run")
    machine = machine.switch("run", when=when("+run").in_context(plant, "day", by=()), within=("idle", "run"))
    inner = MADE.in_context(machine, "run", values={"run": "began"}).in_context(plant, "day", values={"day": "began"})
    signals = [
        ("", 10, "+day"),
        ("m", 5, "+run"),
        ("m", 12, "+run"),
        ("", 20, "-day"),
        ("", 30, "+day"),
        ("n", 31, "+run"),
    ]
    made = [(name, time, 0.0) for name in "mn" for time in (6, 12, 13, 20, 21, 32)]
    both = inner.where(inner.day < inner.run).select("machine", "time")
    found = tg.program(Q=both).run({"Signals": signals, "Made": made})
    # At 32 m still runs by itself, but not in this day.
    assert rows_of(found.rows("Q")) == [("m", 13), ("m", 20), ("n", 32)]


# --- several windows of one context at once ---------------------------------------------------------------------------


CARRYING = tg.context_model("Carrying", by=("courier", "parcel"), default="not", contexts="on_the_way")
CARRYING = CARRYING.initiate("on_the_way", when=PICKED).terminate("on_the_way", when=HANDED)


def passed() -> tg.Relation:
    """Each place of a courier, with each parcel on the way: rows name no parcel."""
    return on_the_way(CARRYING.starts("on_the_way"), CARRYING.windows("on_the_way"))


def on_the_way(begins: tg.Relation, ends: tg.Relation) -> tg.Relation:
    p, begun, over = PLACES.as_("p"), begins.as_("begun"), ends.as_("over")
    return (
        p.join(begun, begun.courier == p.courier, begun.began < p.time)
        .anti_join(
            over,
            over.courier == begun.courier,
            over.parcel == begun.parcel,
            begun.began < over.ended,
            over.ended < p.time,
        )
        .select(courier=p.courier, parcel=begun.parcel, time=p.time, km=p.km)
    )


def overlapping() -> tg.Program:
    rows = passed()
    totals = rows.windows(CARRYING.as_windows("on_the_way"), by=("courier", "parcel"))
    return tg.program(Passed=rows, Totals=totals.agg(n=tg.count(), km=tg.sum(rows.km)))


def deliveries(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    rng = random.Random(seed)

    def some(many: int, last: int) -> list[tuple[Any, ...]]:
        return [(rng.choice("ab"), rng.randrange(1, 80), rng.randrange(last)) for _ in range(many)]

    return {"Picked": some(40, 5), "Handed": some(40, 5), "Places": some(80, 100)}


def expected_overlapping(rows: Rows) -> tuple[list[Any], list[Any]]:
    program = tg.program(Starts=CARRYING.starts("on_the_way"), Ends=CARRYING.windows("on_the_way"))
    meant = evaluate_program(program.definition, {name: [*rows[name]] for name in ("Picked", "Handed")})
    ends = {(courier, parcel, began): ended for courier, parcel, ended, began in meant["Ends"]}
    found: list[Any] = []
    totals: list[Any] = []
    for window in meant["Starts"]:
        courier, parcel, began = window
        ended: Any = ends.get((courier, parcel, began))
        its: Any = [
            row for row in rows["Places"] if row[0] == courier and began < row[1] and (ended is None or row[1] <= ended)
        ]
        found += [(courier, parcel, time, km) for _, time, km in its]
        if its and ended is not None:
            totals.append((courier, parcel, began, ended, len(its), sum(km for *_, km in its)))
    return sorted(found), sorted(totals)


@pytest.mark.parametrize("seed", shards(3))
def test_several_windows_of_one_context_at_once(seed: int, tmp_path: Path) -> None:
    rows = deliveries(seed)
    found, totals = expected_overlapping(rows)
    assert len(found) > len(rows["Places"])
    assert len(totals) > 5
    results = whatever_is_ahead(
        overlapping, rows, random.Random(seed), tmp_path, {"Passed": "time", "Totals": "end"}, sessions=3, steps=5
    )
    assert rows_of(results["Passed"]) == in_order(found)
    assert rows_of(results["Totals"]) == in_order(totals)


@pytest.mark.parametrize("with_model", [True, False])
def test_of_windows_that_overlap_those_are_kept_that_hold(with_model: bool) -> None:
    """The model keeps when the default context began in each partition; where nobody begins twice, none is needed."""
    alone = on_the_way(PICKED.rename(time="began"), HANDED.rename(time="ended"))
    program = tg.program(Passed=passed() if with_model else alone)
    killer = "Carrying (over)" if with_model else "Handed"
    assert f"a row of {killer} that has come keeps it out of Passed" in str(program.explain())
    with program.session(collect_garbage="exact") as session:
        for parcel in range(80):
            at = 10 * parcel
            session.push("Picked", [("ann", at, parcel)])
            session.push("Places", [("ann", at + 5, 0)])
            session.push("Handed", [("ann", at + 24, parcel)])
            for name in ("Picked", "Handed", "Places"):
                session.advance(name, at + 9)
            session.step()
        # Two or three parcels are on the way, and a few rows lie ahead of progress.
        kept = session.live_rows()
        assert kept.pop("Carrying: contexts that hold", 80) == 80
        assert sum(kept.values()) < 15
        assert len(session.results("Passed")) > 120
