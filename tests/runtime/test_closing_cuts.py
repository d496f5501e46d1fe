"""Closing what is open, however the input and the calls are cut into batches: the same rows, or the same refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import tidegate as tg
from tests.shards import shards
from tidegate.algebra.errors import TidegateError
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.state.store.memory import MemoryStore

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
switches = tg.stream("S", "k bigint, t bigint, x bigint", progress="t")
High = readings.partition_by("k").derive(High=tg.situation(readings.x > 4)).High
On = switches.partition_by("k").derive(On=tg.situation(switches.x > 4, at_least=2)).On
PROGRAM = tg.program(High=High, On=On, M=tg.match(High.overlaps(On) | On.during(High), within=30, emission="final"))
ONE = tg.program(High=High)

Call = Callable[[Session], None]


@pytest.mark.parametrize("every", [None, 100])
def test_progress_beyond_the_instant_refuses_it_in_one_batch_as_in_two(every: int | None) -> None:
    schedule = None if every is None else tg.schedule(every={"High": every})
    for cut in (False, True):
        with ONE.session(schedule=schedule) as run:
            run.push("R", [(2, 3, 7)])
            run.advance("R", {"t": 50})
            if cut:
                run.step()
            run.finish(close_at=50)
            with pytest.raises(
                TidegateError,
                match=r"TG417 High: .* at 50: High is final up to te = 50\n.*R\.t has come to 50.*\n.*at 51 or later",
            ):
                run.step()
            run.finish(close_at=51)
            run.step()
            assert run.results("High") == [{"k": 2, "ts": 3, "te": 51}]


def test_a_refusal_says_what_is_final_where_and_why() -> None:
    """Progress of the input is not that of the events that are read: they are later by seven, or at the end of a
    window.
    """
    shifted = readings.select(readings.k, readings.x, t=readings.t + 7)
    later = shifted.partition_by("k").derive(Later=tg.situation(shifted.x > 4)).Later
    both = tg.program(Later=later, M=tg.match(later.overlaps(On) | On.during(later), within=30, emission="final"))
    for program in (tg.program(Later=later), both):
        with program.session() as run:
            run.push("R", [(1, 5, 9)])
            run.advance("R", {"t": 40})
            run.finish(close_at=47)
            with pytest.raises(TidegateError) as refused:
                run.step()
            assert str(refused.value).splitlines() == [
                "TG417 Later: what is open can not end at 47: Later is final up to te = 47",
                "  because       R.t has come to 40 (the last event, or declared progress)",
                "  hint          close it at 48 or later",
            ]


def test_a_refusal_names_the_streams_that_have_to_end() -> None:
    r, s = readings.as_("r"), switches.as_("s")
    joined = r.join(s, r.k == s.k, s.t <= r.t, r.t - s.t <= 5).select(k=r.k, t=r.t, x=r.x)
    program = tg.program(High=joined.partition_by("k").derive(High=tg.situation(joined.x > 4)).High)
    with program.session() as run:
        run.push("R", [(1, 5, 9)])
        run.advance("R", {"t": 40})
        run.finish(close_at=40)
        with pytest.raises(TidegateError, match=r"R\.t has come to 40 .*, and the other streams end\n"):
            run.step()


def test_events_of_other_partitions_are_before_the_instant_too() -> None:
    for delay in (None, 0):
        sources = {} if delay is None else {"R": tg.source(None, delay=delay)}
        for cut in (False, True):
            with ONE.session(sources=sources) as run:
                run.push("R", [(1, 5, 9), (2, 30, 0)])
                if cut:
                    run.step()
                run.finish(close_at=30)
                with pytest.raises(TidegateError, match="final up to te = 30"):
                    run.step()


def test_the_instant_survives_a_restart_and_can_be_put_off_until_the_end(tmp_path: Path) -> None:
    with ONE.session(checkpoint=tmp_path / "state") as run:
        run.push("R", [(1, 5, 9)])
        run.close_open(10)
        run.step()
        run.close_open(12)  # of no batch, so forgotten
    with ONE.session(checkpoint=tmp_path / "state") as run:
        run.push("R", [(2, 20, 0)])
        run.finish()
        with pytest.raises(TidegateError, match=r"can not end at 10: High is final up to te = 20"):
            run.step()
        run.close_open(21)
        run.step()
        assert run.results("High") == [{"k": 1, "ts": 5, "te": 21}]
        run.close_open(21)
        with pytest.raises(TidegateError, match="TG417 the streams have ended before"):
            run.close_open(22)


def test_an_event_later_than_what_is_declared() -> None:
    """Its time is not that by which the stream progresses: only who reads it finds that it is too late."""
    ahead = tg.stream("A", "k bigint, t bigint, u bigint, x bigint", progress="t", relations=lambda a: a.t <= a.u)
    later = ahead.select(ahead.k, ahead.u, ahead.x)
    program = tg.program(High=later.partition_by("k").derive(High=tg.situation(later.x > 4)).High)
    for at, closed in ((7, False), (8, True)):
        with program.session() as run:
            run.push("A", [(1, 5, 7, 9)])
            run.finish(close_at=at)
            if closed:
                run.step()
                assert run.results("High") == [{"k": 1, "ts": 7, "te": 8}]
            else:
                with pytest.raises(TidegateError, match="TG417"):
                    run.step()


@pytest.mark.parametrize("seed", shards(8, 3))
def test_batches_and_restarts_change_nothing(seed: int) -> None:
    found = [_outcomes(Random(10 * seed + n)) for n in range(10)]
    refused = sum(isinstance(one, str) for one in found)
    assert all(one.startswith("TG417") for one in found if isinstance(one, str))
    assert 0 < refused < len(found)
    assert any(one[0] and one[1] for one in found if not isinstance(one, str))


def _outcomes(random: Random) -> str | list[list[dict[str, object]]]:
    """What a random run comes to, which is the same however it is cut."""
    calls = _calls(random)
    schedule = random.choice([None, tg.schedule(every={"High": 100})])
    delay = random.choice([None, 0, 3])
    sources = {} if delay is None else {"R": tg.source(None, delay=delay)}
    whole = _outcome(calls, sources, schedule, lambda: "")
    for cut in (lambda: "step", lambda: random.choice(["", "", "step", "restart"])):
        assert _outcome(calls, sources, schedule, cut) == whole
    return whole


def _calls(random: Random) -> list[Call]:
    """Rows in order, declared progress that they keep to, an instant of closing, and the end of both streams."""
    times = dict.fromkeys("RS", 0)
    calls: list[Call] = []
    for _ in range(random.randint(2, 12)):
        name = random.choice("RS")
        times[name] += random.randint(1, 3)
        if random.random() < 0.8:
            calls.append(_push(name, (random.randint(1, 2), times[name], random.choice([0, 9, 9]))))
        else:
            calls.append(_advance(name, times[name]))
    at = max(times.values()) + random.randint(-4, 6)
    calls.insert(random.randint(0, len(calls)), lambda run: run.close_open(at))
    return [*calls, lambda run: run.finish("R"), lambda run: run.finish("S")]


def _push(name: str, row: tuple[int, int, int]) -> Call:
    return lambda run: run.push(name, [row])


def _advance(name: str, value: int) -> Call:
    return lambda run: run.advance(name, {"t": value})


def _outcome(
    calls: list[Call], sources: dict[str, tg.Source], schedule: tg.Schedule | None, cut: Callable[[], str]
) -> str | list[list[dict[str, object]]]:
    """The rows of every result in one order, or why the run is refused."""
    store = MemoryStore()

    def opened() -> Session:
        return Session(PROGRAM.facts, store, sources=sources, options=RunOptions(schedule=schedule))

    run = opened()
    try:
        for call in calls:
            call(run)
            what = cut()
            if what:
                run.step()
            if what == "restart":
                run.close()
                run = opened()
        run.step()
        return [sorted(run.results(name), key=str) for name in ("High", "On", "M")]
    except TidegateError as error:
        return str(error)
    finally:
        run.close()
