"""Situations that nothing is left to match with go at once, on cases computed by hand (rule R29)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.kernels.partners import ROUNDS
from tidegate.runtime.ordered import state as operator_state
from tidegate.runtime.plan.steps import PurgeMode
from tidegate.runtime.program import Program
from tidegate.runtime.state.store.local import LocalStore

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
