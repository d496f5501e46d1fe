"""Instants at equal distances that follow rows: what they mean, whatever the batching, and what is kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.ordered.ticks import Ticks
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered.ticks import spans
from tidegate.runtime.ordered.ticks.spans import Spans
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, n bigint", progress="t")
T = tg.stream("T", "k string, t timestamp", progress="t")
U = tg.stream("U", "k string, u bigint", progress="u")
UNTYPED: Any = S
#: The input of `program` ends here, as `in_any_batches` declares.
LAST = 199


def program() -> tg.Program:
    lasting = S.ticks(3, by="k", within=10, offset=1)
    few = S.where(S.n % 2 == 0).ticks(4, by="k", within=30)
    return tg.program(
        Lasting=lasting,
        Few=few,
        Ever=S.ticks(5, by="k"),
        All=S.ticks(7),
        Filled=S.fill_gaps(4, by="k", within=12, tie="n"),
        Twice=lasting.rename(tick="t").ticks(2, by="k", within=1),
        Counted=few.group_by(w=tg.ceil(few.tick, 10)).agg(n=tg.count()),
        Behind=S.over(by="k", order="t", tie="n", c=tg.lead(S.n, within=5)).ticks(40, by="k", offset=39, order="t"),
        Ahead=ended_windows(4).ticks(101, by="k"),
        Rounded=S.with_(day=tg.ceil(S.t, 50)).ticks(100, by="k", order="day"),
    )


def ended_windows(size: int) -> tg.Relation:
    """How many rows of each key there are in each window, with its end as `t`, which is after its rows."""
    return S.windows(tg.hopping(size, every=2), by="k").agg(n=tg.count()).select("k", t="end", n="n")


#: The attributes that say up to where results are complete, if any does.
ENDS = {
    **dict.fromkeys(("Lasting", "Few", "Ever", "All", "Filled", "Twice", "Behind", "Ahead", "Rounded"), "tick"),
    "Counted": None,
}


def events(seed: int) -> list[Event]:
    """With peers, with gaps, and with keys that are NULL."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(-20, 120) for _ in range(50))
    return [(rng.choice(("a", "b", "c", None)), t, n) for n, t in enumerate(times)] + [("d", LAST, 99)]


def meant(program: tg.Program, rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program.definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


def found(rows: Iterable[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, rows: Sequence[Event]) -> list[Event]:
    return found(tg.program(R=relation).run({"S": rows})["R"].rows())


def at(*times: int, key: str | None = "a") -> list[Event]:
    return [(key, time, number) for number, time in enumerate(times)]


def of(*times: int, key: str | None = "a") -> list[Event]:
    return sorted(((key, time) for time in times), key=str)


# --- what it means ----------------------------------------------------------------------------------------------------


def test_ticks_are_the_multiples_from_the_first_row_of_a_key_on() -> None:
    """Up to the last row of all, and its own instant is one."""
    rows = [*at(4, 6), *at(9, 12, key="b"), *at(5, key=None)]
    wanted = [*of(4, 6, 8, 10, 12), *of(10, 12, key="b"), *of(6, 8, 10, 12, key=None)]
    assert run(S.ticks(2, by="k"), rows) == sorted(wanted, key=str)
    assert run(S.ticks(5, by="k"), []) == []


def test_with_a_limit_they_are_within_it_after_a_row() -> None:
    """The limit is included, and whether the input goes on that far is all the same."""
    assert run(S.ticks(2, by="k", within=4), at(4)) == of(4, 6, 8)
    assert run(S.ticks(2, by="k", within=4), at(5, 7)) == of(6, 8, 10)
    assert run(S.ticks(2, by="k", within=3), at(1, 11)) == of(2, 4, 12, 14)
    assert run(S.ticks(10, by="k", within=3), at(1, 11)) == []
    assert run(S.ticks(10, by="k", within=0), at(10, 11)) == of(10)
    assert run(S.ticks(2, by="k", within=4), [*at(4), *at(4, 6, key="b")]) == [*of(4, 6, 8), *of(10, 4, 6, 8, key="b")]


def test_rows_of_one_instant_have_one_tick() -> None:
    rows = [("a", 4, 1), ("a", 4, 1), ("a", 4, 2), ("a", 5, 3), ("a", 6, 4)]
    assert run(S.ticks(2, by="k", within=3), rows) == of(4, 6, 8)
    assert run(S.ticks(2, by="k"), rows) == of(4, 6)


def test_an_offset_moves_them() -> None:
    assert run(S.ticks(5, by="k", within=9, offset=2), at(-4)) == of(-3, 2)
    assert S.ticks(5, offset=2)._node == S.ticks(5, offset=-3)._node


def test_without_keys_they_follow_all_rows() -> None:
    assert run(S.ticks(4, within=5), [*at(1), *at(6, key="b")]) == [(4,), (8,)]
    assert run(S.ticks(4), [*at(1), *at(9, key="b")]) == [(4,), (8,)]


def test_durations_are_those_of_the_timeline() -> None:
    rows = [("a", "2026-03-02T12:00:30Z")]
    told = tg.program(R=T.ticks("1m", by="k", within="2m")).run({"T": rows})["R"].rows()
    assert [f"{row['tick']:%H:%M:%S}" for row in told] == ["12:01:00", "12:02:00"]

    days = tg.stream("D", "k bigint, day date", progress="day")
    (row,) = tg.program(R=days.ticks("7d", by="k", within="7d")).run({"D": [(1, "2026-03-02")]})["R"].rows()
    assert str(row["tick"]) == "2026-03-05"  # a Thursday, as the epoch was


def test_more_ticks_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit a row has few, however far it is."""
    monkeypatch.setattr(spans, "MOST_OF_A_ROW", 10)
    told = S.ticks(4, by="k")
    assert len(run(told, at(0, 36))) == 10
    assert len(run(S.ticks(4, by="k", within=20), at(0, 10**13))) == 12
    with tg.program(R=told).session() as session:
        session.push("S", [*at(0), *at(30, 72, key="b")])
        session.finish()
        for _ in range(2):
            with pytest.raises(tg.QueryError, match="TG306 19 ticks come up to 72 where k = 'a', more than 10: this"):
                session.step()


def test_more_ticks_in_all_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few rows of each of many keys none has too many by itself: the input moves on too far at once."""
    monkeypatch.setattr(spans, "MOST_IN_ALL", 40)
    told = S.ticks(4, by="k")
    rows = [row for key in "abcde" for row in at(0, key=key)]
    with tg.program(R=told).session() as session:
        session.push("S", rows)
        session.advance("S", 28)
        assert session.step().results == {"R": 40}
        session.advance("S", 60)
        monkeypatch.setattr(spans, "MOST_IN_ALL", 39)
        with pytest.raises(tg.QueryError, match=r"TG306 8 ticks come up to 60 where k = 'a', .* 40, more than 39"):
            session.step()
        monkeypatch.setattr(spans, "MOST_IN_ALL", 40)
        assert session.step().results == {"R": 40}
    with tg.program(R=S.ticks(4, by="k", within=100)).session() as session:
        session.push("S", at(*range(0, 10**13, 10**12)))
        session.finish()
        with pytest.raises(tg.QueryError, match=r"TG306 26 ticks .*, with those of other rows 260, more than 40"):
            session.step()


def test_they_follow_several_relations() -> None:
    """Whichever has the first row, and up to where all have come."""
    told = tg.program(R=tg.ticks(3, S, U))
    assert found(told.run({"S": at(5, 9), "U": [("x", 2), ("x", 16)]})["R"].rows()) == [(12,), (15,), (3,), (6,), (9,)]
    with told.session() as session:
        session.push("S", at(5))
        session.push("U", [("x", 2)])
        session.advance("S", 20)
        session.advance("U", 2)
        session.step()
        assert session.results("R") == []
        session.advance("U", 7)
        session.step()
        assert found(session.results("R")) == [(3,), (6,)]


def test_gaps_are_filled_with_the_last_row() -> None:
    filled = S.fill_gaps(2, by="k", within=5)
    assert filled.schema.names == ("k", "t", "n", "tick")
    assert run(filled, at(1, 4, 12)) == [
        ("a", 1, 0, 2),
        ("a", 12, 2, 12),
        ("a", 12, 2, 14),
        ("a", 12, 2, 16),
        ("a", 4, 1, 4),
        ("a", 4, 1, 6),
        ("a", 4, 1, 8),
    ]
    assert run(S.fill_gaps(4, by="k").select("tick", "n"), at(1, 4, 12)) == [(12, 2), (4, 1), (8, 1)]
    assert run(S.fill_gaps(4).select("tick", "n"), at(1, 4, 5)) == [(4, 1)]
    assert run(S.fill_gaps(4, by="k"), at(1, 9, key=None)) == []
    tied = [("a", 3, 5), ("a", 3, 7), ("a", 3, 6)]
    assert run(S.fill_gaps(4, by="k", within=2, tie="n"), tied) == [("a", 3, 7, 4)]
    with pytest.raises(tg.TidegateError, match="TG304"):
        tg.program(R=S.fill_gaps(4, by="k", within=2)).run({"S": tg.source(tied, ties="fail")})


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_ticks_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    ends = {name: end for name, end in ENDS.items() if end is not None}
    results = in_any_batches(program, rows, seed, tmp_path, ends)
    for name in ENDS:
        assert found(results[name]) == meant(program(), rows, name)


@pytest.mark.parametrize("within", [None, 0, 3, 8])
def test_an_increment_makes_its_own_ticks_alone(within: int | None) -> None:
    """Others would not pass, but cost as much."""
    node = S.ticks(3, by="k", within=within, offset=1)._node
    assert isinstance(node, Ticks)
    rng = random.Random(within)
    for _ in range(50):
        rows = [(rng.randrange(3), rng.randint(-10, 20)) for _ in range(rng.choice((0, 1, 4, 9)))]
        after, until = sorted(rng.sample(range(-12, 40), 2))
        of, at = (np.array([row[place] for row in rows], dtype=np.int64) for place in (0, 1))
        partitions, ticks = Spans.of_rows(node, of, at, after, until).ticks(node, str)
        wanted = {
            (key, tick)
            for key, first in rows
            for tick in range(node.next(first), until + 1, 3)
            if tick > after and (within is None or tick <= first + within)
        }
        assert sorted(zip(partitions.tolist(), ticks.tolist(), strict=True)) == sorted(wanted)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same_ticks(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in ENDS:
        assert found(results[name]) == meant(program(), rows, name)


# --- when they are complete, and where they end -----------------------------------------------------------------------


def test_a_tick_is_there_once_the_input_has_come_so_far() -> None:
    """Whether rows say so or somebody else, and not before: a row may still come at that instant."""
    with tg.program(R=S.ticks(5, by="k")).session() as session:
        session.push("S", at(3))
        session.advance("S", 4)
        session.step()
        assert session.results("R") == []
        session.push("S", at(5, key="b"))
        session.advance("S", 9)
        session.step()
        assert found(session.results("R")) == [("a", 5), ("b", 5)]
        session.advance("S", 15)
        session.step()
        assert len(session.results("R")) == 6
        session.step()
        assert len(session.results("R")) == 6


def test_the_clock_brings_ticks_where_a_source_is_idle() -> None:
    def noon(minute: int) -> str:
        return f"2026-03-02T12:{minute:02}:00Z"

    sources = {"T": tg.source(None, delay="1m", idle="2m")}
    told = tg.program(R=T.ticks("5m", by="k", within="14m"))
    with testing.drive(told, sources=sources, clock=noon(0)) as run:
        run.add("T", [("a", noon(0))])
        run.step()
        run.expect(R=[])
        run.wait("12m")
        run.step()
        run.expect(R=[("a", noon(0)), ("a", noon(5)), ("a", noon(10))])
        run.restart()
        run.wait("30m")
        run.step()
        run.expect(R=[])
        assert not any(run.live_rows.values())


Call = Callable[[Any], None]


@pytest.mark.parametrize("cut", [(), (1,), (1, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("restarts", [False, True])
def test_ticks_for_ever_end_where_the_input_has_come_to(cut: Sequence[int], restarts: bool, tmp_path: Path) -> None:
    """By its rows, those that the query leaves out too, or by what was declared; however it is cut into batches."""
    calls: Sequence[Call] = (
        lambda session: session.push("S", at(3, 8)),
        lambda session: session.advance("S", 11),
        lambda session: session.push("S", at(14, 19, key="b")),
        lambda session: session.advance("S", 13),
        lambda session: session.finish(),
    )
    told = tg.program(R=S.where(S.k == "a").ticks(4, by="k"), Declared=S.ticks(10))
    session = told.session(checkpoint=tmp_path)
    for number, call in enumerate(calls):
        call(session)
        if number in cut:
            session.step()
            if restarts:
                session.close()
                session = told.session(checkpoint=tmp_path)
    session.step()
    assert found(session.results("R")) == of(4, 8, 12, 16)
    assert found(session.results("Declared")) == [(10,)]
    assert not any(session.live_rows().values())
    session.close()
    with told.session() as other:
        other.push("S", at(3))
        other.advance("S", 20)
        other.finish()
        other.step()
        assert found(other.results("R")) == of(4, 8, 12, 16, 20)


def test_ticks_for_ever_go_on_to_the_last_row_that_they_follow() -> None:
    """However far its relation had come before the input ended: it looks ahead, or its rows are later than theirs."""
    rows = [("a", 20, 5), ("b", 24, 2)]
    ahead = S.over(by="k", order="t", c=tg.lead(S.n, within=1)).select("k", "t", "n")
    assert run(ahead.ticks(4, by="k"), rows) == [*of(20, 24), ("b", 24)]
    assert run(ahead.fill_gaps(4, by="k").select("tick", "n"), rows) == [(20, 5), (24, 2), (24, 5)]
    windows = ended_windows(4)
    assert run(windows.select("k", "t"), [rows[0], ("b", 23, 2)]) == [*of(20, 22), *of(24, 26, key="b")]
    assert run(windows.ticks(2, by="k"), [rows[0], ("b", 23, 2)]) == [*of(20, 22, 24, 26), *of(24, 26, key="b")]
    days = S.with_(day=tg.ceil(S.t, 7))
    assert run(days.ticks(7, by="k", order="day"), rows) == [*of(21, 28), ("b", 28)]
    closed = tg.program(R=windows.ticks(2), Later=windows.ticks(4)).run({"S": rows}, close_at=25)
    assert found(closed["R"].rows()) == [(20,), (22,), (24,), (26,)]
    assert found(closed["Later"].rows()) == [(20,), (24,)]


@pytest.mark.parametrize("first", ["S", "U"])
def test_of_several_inputs_the_one_that_comes_furthest_says_where_they_end(first: str) -> None:
    told = tg.program(R=tg.ticks(5, S, U))
    second = {"S": "U", "U": "S"}[first]
    with told.session() as session:
        session.push("S", at(1, 12))
        session.push("U", [("x", 26)])
        session.finish(first)
        session.step()
        session.finish(second)
        session.step()
        assert found(session.results("R")) == [(10,), (15,), (20,), (25,), (5,)]


def test_somebody_may_say_where_the_input_ends() -> None:
    told = tg.program(R=S.ticks(4, by="k"), Lasting=S.ticks(4, by="k", within=5))
    closed = told.run({"S": at(3)}, close_at=13)
    assert found(closed["R"].rows()) == of(4, 8, 12)
    assert found(closed["Lasting"].rows()) == of(4, 8)
    with pytest.raises(tg.TidegateError, match="TG417 R: what is open can not end at 3"):
        told.run({"S": at(3)}, close_at=3)
    with (
        tg.program(R=S.ticks(4, by="k", within=5)).session() as session,
        pytest.raises(tg.TidegateError, match="TG417 nothing can be open"),
    ):
        session.finish(close_at=20)


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_a_key_is_kept_until_its_last_tick() -> None:
    with tg.program(R=S.ticks(4, by="k", within=5)).session() as session:
        live = []
        session.push("S", [*at(3), *at(5, key="b")])
        for until in (5, 7, 8, 9, 10):
            session.advance("S", until)
            session.step()
            live.append(session.live_rows()["R: state"])
        # a has its last tick at 8, as b has: the next one is at 12, and its limit at 10.
        assert live == [2, 2, 0, 0, 0]
        assert found(session.results("R")) == [*of(4, 8), *of(8, key="b")]


def test_without_a_limit_one_row_of_each_key_is_kept() -> None:
    with tg.program(R=S.ticks(4, by="k")).session() as session:
        for step in range(5):
            session.push("S", [*at(10 * step + 1, 10 * step + 2), *at(10 * step + 1, key="b")])
            session.advance("S", 10 * step + 9)
            session.step()
            assert session.live_rows()["R: state"] == 2


def test_they_are_explained_and_listed(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "situation" not in told
    assert "ticks every 3, offset 1 of r0 by k in order of t, within 10 after each row" in told
    assert "ticks every 7 of r0 by () in order of t, from the first row on" in told
    assert "holds       ticking: rate(S) × 10, at most keys(S by k)\n" in told
    assert "holds       ticking: keys(S by k)\n" in told
    assert "holds       ticking: 1\n" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("S", [*at(10), *at(12, key="b")])
        session.advance("S", 12)
        session.step()
        assert "has arrived up to 12" in str(session.why("Ever"))
    listed = str(list_state(LocalStore(tmp_path)))
    assert "2 rows that ticks follow" in listed
    assert "bound       ticking: keys(S by k)" in listed


def test_they_progress_on_the_tick_and_with_a_limit_on_keys_that_are_instants() -> None:
    days = S.with_(day=tg.ceil(S.t, 24))
    assert tg.program(R=days.ticks(4, by=("k", "day"), order="t")).check() == []
    (problem,) = tg.program(R=days.ticks(4, by=("k", "day"), order="t").drop("tick")).check()
    assert problem.code == "TG201"
    assert "\0" not in problem.message
    told = tg.program(R=days.ticks(4, by=("k", "day"), order="t", within=9).drop("tick"))
    assert told.check() == []
    with told.session() as session:
        for row in events(4):
            session.push("S", [row])
            session.advance("S", row[1] - 1)
            session.step()
        session.finish()
        session.step()
        assert found(session.results("R")) == meant(told, events(4), "R")


# --- how they are written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: UNTYPED.ticks(by="k"), "TG160 .*missing.*every"),
        (lambda: UNTYPED.fill_gaps(by="k"), "TG160 .*missing.*every"),
        (lambda: S.ticks(0), "TG160 every=0 is not positive(?s:.*)write every=5"),
        (lambda: T.ticks("0s"), "TG160 every='0s' is not positive(?s:.*)write every='5m'"),
        (lambda: S.ticks(2, within=-1), "TG160 within=-1 is negative"),
        (lambda: S.ticks("5m"), "TG160 every is a number of ticks here"),
        (lambda: S.ticks(UNTYPED.k), "TG160"),
        (lambda: S.ticks(2, by=("k", "k")), "TG103 rows are partitioned by k twice"),
        (lambda: S.ticks(2, order="n"), "TG117 'n' orders no rows"),
        (lambda: S.rename(k="tick").ticks(2, by="tick"), "TG103 'tick' is the instant of each tick"),
        (lambda: S.rename(n="tick").fill_gaps(2, by="k"), "TG103 'tick' says at which instant a row holds"),
        (lambda: S.with_(other=S.t + 1).ticks(2), "TG117 which attribute orders the rows"),
        (lambda: tg.ticks(2), "TG114 ticks follow rows, and no relation is given"),
        (lambda: tg.ticks(2, UNTYPED.k), "TG114 ticks got"),
        (lambda: tg.ticks(2, S.group_by("k").agg(n=tg.count())), "TG117 which attribute orders"),
        (lambda: tg.ticks(2, S, T), "TG102|TG108"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


def test_they_follow_no_table() -> None:
    table = tg.table("N", "k string, t timestamp not null")
    (problem,) = tg.program(R=table.ticks("5m", by="k")).check()
    assert problem.code == "TG162"
