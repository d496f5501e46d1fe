"""Situations that nothing is left to match with go at once, on cases computed by hand (rule R29)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidegate as tg
from tidegate import testing
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.kernels.partners import ROUNDS
from tidegate.runtime.ordered import state as operator_state
from tidegate.runtime.ordered.derive.partition_states import PartitionStates, StateExtract
from tidegate.runtime.ordered.match.operator import MatchOperator
from tidegate.runtime.plan.steps import PurgeMode
from tidegate.runtime.program import Program
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

readings = tg.stream("R", "k bigint, t bigint, a boolean, b boolean, c boolean", progress="t")
on = readings.partition_by("k").derive(
    A=tg.situation(readings.a, n=tg.count()), B=tg.situation(readings.b), C=tg.situation(readings.c)
)


def push(run: Session, t: int, true: str, key: int = 1) -> int:
    """An event at which these conditions hold, and progress to it; how many situations are over and kept."""
    run.push("R", [(key, t, *(name in true for name in "abc"))])
    run.advance("R", {"t": t})
    run.step()
    return over(run)


def over(run: Session) -> int:
    """Situations kept without those that are open."""
    manifest = run._setup.checkpoint.manifest
    assert manifest is not None
    kept = [one for state in manifest.kernel.values() for one in state.kept]
    return sum(one.rows for one in kept if one.holds == "closed")


def counts(program: Program, events: Sequence[str], purging: PurgeMode = "planned") -> list[int]:
    """What is kept after each event, one a tick."""
    with Session(program.facts, options=RunOptions(purging=purging)) as run:
        return [push(run, t, true) for t, true in enumerate(events)]


def chain(within: int | None = 100_000) -> Program:
    return tg.program(M=tg.match(on.A.overlaps(on.B), on.B.before(on.C), within=within))


@pytest.mark.parametrize(("purging", "left"), [("planned", 0), ("always", 0), ("off", 1)])
def test_what_is_over_without_a_partner_goes_at_once(purging: PurgeMode, left: int) -> None:
    """A is over, and no B had begun within it."""
    assert counts(chain(), ["a", "a", "", ""], purging) == [0, 0, left, left]


def test_an_open_partner_keeps_it() -> None:
    # A ends while B is open: both wait for a C from then on. That C begins makes the match; C itself is of no later
    # use.
    assert counts(chain(), ["a", "ab", "b", "", "c", ""]) == [0, 0, 1, 2, 2, 2]


def test_an_open_partner_may_end_at_the_last_tick() -> None:
    program = tg.program(M=tg.match(on.A.overlaps(on.B), on.B.te - on.A.te <= 3, within=1000))
    for events, left, found in ((["b", "b", ""], [1, 1, 0], 1), (["b", "b", "b", ""], [1, 1, 0, 0], 0)):
        with Session(program.facts) as run:
            assert [push(run, t, true) for t, true in enumerate(["a", "ab", "b"])] == [0, 0, 1]
            assert [push(run, 3 + t, true) for t, true in enumerate(events)] == left
            assert len(run.results("M")) == found


def test_what_is_gone_takes_along_what_needs_it() -> None:
    """A overlaps B, B overlaps C: B ends without a C, and A, which has waited for it, goes, too."""
    program = tg.program(M=tg.match(on.A.overlaps(on.B), on.B.overlaps(on.C), within=1000))
    assert counts(program, ["a", "ab", "b", "b", ""]) == [0, 0, 1, 1, 0]
    # With C they wait for the end of B, which makes the match.
    assert counts(program, ["a", "ab", "b", "bc", "c", ""]) == [0, 0, 1, 1, 2, 0]


def test_a_longer_cascade_goes_on_when_the_partition_is_looked_at_again() -> None:
    """Twelve situations in a row, each overlapping the next: the last does not come, and of the eleven a look frees one
    a round. A second such row has begun, and goes on to its match.
    """
    names = [f"s{number}" for number in range(12)]
    stream = tg.stream("R", "k bigint, t bigint, " + ", ".join(f"{name} boolean" for name in names), progress="t")
    row = stream.partition_by("k").derive(**{name: tg.situation(stream[name]) for name in names})
    related = [row[one].overlaps(row[other]) for one, other in pairwise(names)]
    program = tg.program(M=row.match(*related, within=1000))
    last, second, left = 11, 10, []
    with Session(program.facts) as run:
        for t in range(second + len(names) + 2):
            true = {n for n in (t, t - 1) if n < last} | {n for n in (t - second, t - second - 1) if n >= 0}
            run.push("R", [(1, t, *(number in true for number in range(len(names))))])
            run.advance("R", {"t": t})
            run.step()
            left.append(over(run))
        assert left[last : last + 3] == [last - 1, last - ROUNDS + 1, 2]
        assert len(run.results("M")) == 1


def test_a_partner_may_come_up_to_the_last_tick() -> None:
    """B begins within 3 ticks of A's end, C a long time later."""
    program = tg.program(M=tg.match(on.A.before(on.B), on.B.ts - on.A.te <= 3, on.B.before(on.C), within=1000))
    for t, found in ((4, 1), (5, 0)):  # A has ended at 1
        with Session(program.facts) as run:
            push(run, 0, "a")
            assert push(run, 1, "") == 1
            # Nothing happens there any more: it is time that frees A.
            assert [push(run, time, "", key=2) for time in range(2, 4)] == [1, 1]
            push(run, 4, "b" if t == 4 else "", key=1 if t == 4 else 2)
            assert over(run) == found
            push(run, 5, "b" if t == 5 else "")
            for time, true in ((6, ""), (7, "c"), (8, "")):
                push(run, time, true)
            assert len(run.results("M")) == found


def test_the_last_one_of_a_match_is_of_no_use_once_it_is_over() -> None:
    program = tg.program(M=tg.match(on.A.before(on.B), within=1000))
    assert counts(program, ["a", "", "b", "", "b", ""]) == [0, 1, 1, 1, 1, 1]
    assert counts(program, ["a", "", "b", "", "b", ""], "off") == [0, 1, 1, 2, 2, 3]
    alone = tg.program(M=tg.match(on.A.te - on.A.ts >= 2, within=1000))
    assert counts(alone, ["a", "a", "", ""]) == [0, 0, 0, 0]


def test_the_same_situation_under_two_names_stays_for_either() -> None:
    twice = tg.program(M=tg.match(on.A.before(on.A.as_("Z")), within=10))
    assert counts(twice, ["a", "", "a", ""]) == [0, 1, 1, 2]


def test_final_waits_for_an_open_partner() -> None:
    program = tg.program(M=tg.match(on.A.overlaps(on.B), within=1000, emission="final"))
    assert counts(program, ["a", "ab", "b", "b", ""]) == [0, 0, 1, 1, 0]


def test_what_is_given_is_not_asked_for() -> None:
    """Keep says how long its rows stay: A waits for B, whether there is a G or not."""
    stream = tg.stream("P", "k bigint, s bigint, e bigint", progress=("s", "e"), relations=lambda p: p.s < p.e)
    given = stream.as_intervals(start="s", end="e", by="k", name="G")
    program = tg.program(M=tg.match(given.before(on.A), on.A.before(on.B), within=20))
    with Session(program.facts, options=RunOptions(purging="always")) as run:
        for t, left in enumerate([0, 0, 0, 1, 1, 1]):
            run.advance("P", {"s": t, "e": t})
            assert push(run, t, "a" if t in (1, 2) else "") == left


def test_values_of_what_has_gone_go_with_it() -> None:
    with Session(chain().facts) as run:
        for t, true in enumerate(["a", "a", "", "a", ""]):
            push(run, t, true)
        manifest = run._setup.checkpoint.manifest
        assert manifest is not None
        assert sum(one.rows for state in manifest.kernel.values() for one in state.kept) == 0


def test_what_has_gone_is_gone_after_a_restart_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deltas say nothing of what has gone: it is found again."""
    monkeypatch.setattr(operator_state, "SMALL", 0)
    program = tg.program(M=tg.match(on.A.overlaps(on.B), on.B.overlaps(on.C), within=1000))
    with Session(program.facts, LocalStore(tmp_path)) as run:
        for key in range(2, 12):  # so much is kept that a delta is added for key 1
            push(run, key, "a", key)
        assert [push(run, 30 + t, true) for t, true in enumerate(["a", "ab", "b"])][-1] == 1
        assert push(run, 33, "") == 0
    with Session(program.facts, LocalStore(tmp_path)) as run:
        assert push(run, 34, "", key=99) == 0
        assert [push(run, 35 + t, true) for t, true in enumerate(["a", "ab", "b", "bc", "c"])][-1] == 2
        assert len(run.results("M")) == 1


def test_explain_says_it() -> None:
    plan = str(chain().explain().plan)
    assert "freed when  A has no B, and none to come, or no match is still open" in plan
    assert "B has no A, and none to come, or no match is still open" in plan
    query = chain().explain().to_dict()["plan"]["queries"][0]
    assert len(query["freed_by"]) == 3
    unbounded = tg.program(M=tg.match(on.A.before(on.B), on.B.ts - on.A.te <= 8))
    assert "freed by" not in str(unbounded.explain().plan)  # by their horizon they go as soon


sensors = tg.stream("Sensors", "room string, at bigint, temp bigint", progress="at")
stays = tg.stream("Stays", "room string, a bigint, z bigint", progress="z", relations=lambda s: s.a < s.z)
heat = sensors.partition_by("room", time="at").derive(HIGH=tg.situation(sensors.temp > 100))
STAY = stays.as_intervals(start="a", end="z", by="room", name="STAY")


#: Instants of sixteen at which it is hot.
ROOMS = {"hall": (4, 8), "cellar": (0, 4, 8, 12), "attic": ()}


def warehouse(*restrictions: Expression, within: int = 1000) -> Program:
    return tg.program(R=tg.iseq(*restrictions, of=(heat.HIGH, STAY), within=within))


def live(run: Session, at: int, temps: dict[str, int], *rows: tuple[str, int, int]) -> int:
    """Temperatures of rooms at an instant, stays that end there, and progress to it; how many stays are stored."""
    run.push("Sensors", [(room, at, temp) for room, temp in temps.items()])
    run.push("Stays", list(rows))
    run.advance("Sensors", {"at": at})
    run.advance("Stays", {"z": at})
    run.step()
    return run.live_rows()["Stays#0"]


@pytest.mark.parametrize(("purging", "left"), [("planned", 0), ("always", 0), ("off", 20)])
def test_given_rows_go_that_no_derived_interval_can_be_a_partner_of(purging: PurgeMode, left: int) -> None:
    """No high temperature has ever begun: of twenty stays that have ended none can be in one."""
    program = warehouse(heat.HIGH.ts < STAY.ts, STAY.te < heat.HIGH.te)
    with Session(program.facts, options=RunOptions(collect_garbage="exact", purging=purging)) as run:
        for t in range(2, 22):
            stored = live(run, t, {"hall": 60}, ("hall", t - 2, t))
        assert stored == left


def test_given_rows_stay_for_what_has_begun_in_their_room_alone() -> None:
    program = warehouse(heat.HIGH.ts < STAY.ts, STAY.te < heat.HIGH.te)
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as run:
        assert live(run, 0, {"hall": 110, "cellar": 60}) == 0
        assert live(run, 3, {"hall": 110}, ("hall", 1, 3), ("cellar", 1, 3), ("attic", 1, 3), ("hall", 0, 3)) == 1
        assert live(run, 5, {"hall": 60, "cellar": 110}) == 0, "it is in its match, which was the last"
        assert [row["STAY.ts"] for row in run.results("R")] == [1]


def test_given_rows_stay_for_what_may_still_begin() -> None:
    """A high temperature at most three ticks after a stay."""
    program = warehouse(STAY.te <= heat.HIGH.ts, heat.HIGH.ts - STAY.te <= 3)
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as run:
        stored = [live(run, 4, {"hall": 60}, ("hall", 1, 4))]
        stored += [live(run, t, {"hall": 60}) for t in (5, 6, 7)]
        assert stored == [1, 1, 1, 0]


def test_given_rows_stay_that_have_ended_later_than_is_known_of_others() -> None:
    """Stays are ahead of the sensors, so their partner may have begun already."""
    program = warehouse(heat.HIGH.ts < STAY.ts, STAY.te < heat.HIGH.te)
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as run:
        assert live(run, 2, {"hall": 60}) == 0
        run.push("Stays", [("hall", 5, 7)])
        run.advance("Stays", {"z": 9})
        run.step()
        assert run.live_rows()["Stays#0"] == 1
        for at, temp in ((3, 110), (8, 60)):
            run.push("Sensors", [("hall", at, temp)])
        run.advance("Sensors", {"at": 9})
        run.step()
        assert len(run.results("R")) == 1
        assert run.live_rows()["Stays#0"] == 0


def test_a_look_at_given_rows_reads_the_partitions_that_they_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    needs, extract = MatchOperator.needs, PartitionStates.extract

    def counted(self: PartitionStates, partitions: Int64Array) -> StateExtract:
        read.append(len(partitions))
        return extract(self, partitions)

    def watched(self: MatchOperator, leaf: int, rows: pl.DataFrame, reached: Extended) -> BoolArray | None:
        with monkeypatch.context() as patch:
            patch.setattr(PartitionStates, "extract", counted)
            return needs(self, leaf, rows, reached)

    monkeypatch.setattr(MatchOperator, "needs", watched)
    program = warehouse(heat.HIGH.ts < STAY.ts, STAY.te < heat.HIGH.te)
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as run:
        live(run, 0, {f"room {n}": 110 for n in range(500)})
        stored = live(run, 3, {}, ("room 7", 1, 3), ("room 400", 1, 3), ("attic", 1, 3))
    assert stored == 2
    assert set(read) == {2}


def test_rows_stay_that_one_of_their_names_waits_for() -> None:
    """Of the same stays OTHER has to be in a high temperature, and STAY is any that ends before that one."""
    other = STAY.as_("OTHER")
    found = tg.iseq(
        heat.HIGH.ts < other.ts, other.te < heat.HIGH.te, STAY.te < other.ts, of=(heat.HIGH, STAY, other), within=30
    )
    with Session(tg.program(R=found).facts, options=RunOptions(collect_garbage="exact", purging="always")) as run:
        live(run, 3, {"hall": 60}, ("hall", 1, 3))
        for t in (4, 8, 12):
            live(run, t, {"hall": 110 if t < 12 else 60}, *([("hall", 5, 8)] if t == 8 else []))
        assert len(run.results("R")) == 1


def test_explain_says_what_rows_wait_for() -> None:
    text = str(warehouse(heat.HIGH.ts < STAY.ts, STAY.te < heat.HIGH.te).explain())
    assert "rows of STAY go once they have no HIGH, and none to come; of derived HIGH what has begun is known" in text
    assert "no HIGH is there for STAY of R, and none to come" in text
    assert "execution   by" not in str(warehouse(STAY.te < heat.HIGH.ts).explain()), (
        "one may begin as long as it is kept"
    )


@pytest.mark.spark
def test_spark_finds_the_same_where_given_rows_go(spark: SparkSession) -> None:
    """In the driver, and where workers hold the situations; with a start from the checkpoint in between."""
    program, expected = warehouse(heat.HIGH.ts < STAY.ts, STAY.te < heat.HIGH.te, within=30), []
    for run in (
        testing.drive(program),
        testing.drive(program, spark=spark),
        testing.drive(program, spark=spark, driver_bytes=0, shard_bytes=0),
    ):
        with run:
            for t in range(0, 40, 4):
                run.add("Sensors", [(room, t, 110 if t % 16 in high else 60) for room, high in ROOMS.items()])
                run.add("Stays", [(room, t - 1 - length, t - 1) for room in ROOMS for length in (1, 3, 6)])
                run.advance("Sensors", at=t)
                run.advance("Stays", z=t)
                run.step()
                if t == 16:
                    run.restart()
            expected.append(sorted(tuple(row.values()) for row in run.results("R")))
    assert expected[0]
    assert expected[0] == expected[1] == expected[2]
