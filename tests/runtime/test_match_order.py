"""Evaluation orders as users see and pin them: they change what is looked at first, and nothing else."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import tidegate as tg
from tidegate.algebra.allen import Allen
from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.match.detection import Detection, detection
from tidegate.analysis.ordered.match.pattern import Symbol
from tidegate.runtime.kernels.cells import Situations
from tidegate.runtime.kernels.ranges.range_search import find_matches
from tidegate.runtime.kernels.search import Matches
from tidegate.runtime.ordered.match import operator as matches
from tidegate.runtime.ordered.match.order import MatchOrder, orders

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
found = readings.partition_by("k").derive(
    A=tg.situation(readings.x == 1), B=tg.situation(readings.x == 2), C=tg.situation(readings.x == 3)
)
A, B, C = found.A, found.B, found.C
PATTERN = (A.before(B), B.meets(C))
EVENTS = [(k, t, (t + k) % 4) for k in range(3) for t in range(60)]


def test_explain_shows_orders_and_why() -> None:
    report = tg.program(M=tg.match(*PATTERN, within=20)).explain()
    lines = [line.removeprefix("  order").strip() for line in str(report.plan).splitlines()]
    assert "from A: B, C, cost 23.5" in lines
    assert "from C: B, A, cost 3.9" in lines
    assert (
        "assumed until rows are seen: a partition has 10 A, 10 B, 10 C; pairs that fit: A-B 44.50%, B-C 0.49%" in lines
    )
    (query,) = report.to_dict()["plan"]["queries"]
    assert query["order"][0] == "from A: B, C, cost 23.5"


def test_pinned_orders_stay_and_say_what_they_cost() -> None:
    program = tg.program(M=tg.match(*PATTERN, within=20, order=(A, "C", B)))
    assert "from B: A, C, cost" in str(program.explain().plan)
    with program.session() as run:
        run.push("R", EVENTS)
        run.finish()
        run.step()
        first, second, third, why = run.orders("M")
        assert [line.split(", cost")[0] for line in (first, second, third)] == [
            "from A: C, B",
            "from B: A, C",
            "from C: A, B",
        ]
        assert "where B, C would cost" in first
        assert why.startswith("pinned; ")


def test_orders_change_neither_results_nor_checkpoints(tmp_path: Path) -> None:
    free, pinned = (tg.program(M=tg.match(*PATTERN, within=20, order=order)) for order in ((), (C, A, B)))
    with free.session(checkpoint=tmp_path / "state") as run:
        run.push("R", [event for event in EVENTS if event[1] < 30])
        run.advance("R", {"t": 29})
        run.step()
    with pinned.session(checkpoint=tmp_path / "state") as run:
        run.push("R", [event for event in EVENTS if event[1] >= 30])
        run.finish()
        run.step()
        rows = run.results("M")
    assert len(rows) > 10
    assert sorted(map(str, rows)) == sorted(map(str, free.run({"R": EVENTS}).rows("M")))


@pytest.mark.parametrize("order", [("A", "B"), ("A", "B", "D"), ("A", "B", "B"), "A"])
def test_an_order_names_every_symbol_once(order: object) -> None:
    with pytest.raises(QueryError, match="TG114"):
        tg.match(*PATTERN, within=20, order=order)  # type: ignore[arg-type]  # that is the point


# --- chosen by what is seen
# --------------------------------------------------------------------------------------------


def related(one: str, relation: Allen, other: str) -> Term:
    return relation.condition(*(Attr(f"{symbol}.{end}") for symbol in (one, other) for end in ("ts", "te")))


def found_by(*relations: Term) -> Detection:
    return detection([Symbol("A"), Symbol("B"), Symbol("C")], conjunction(relations), BIGINT, 20)


CHAIN = found_by(related("A", Allen.BEFORE, "B"), related("B", Allen.MEETS, "C"))
TRIANGLE = found_by(related("A", Allen.BEFORE, "B"), related("B", Allen.BEFORE, "C"), related("A", Allen.BEFORE, "C"))


def held(*partitions: tuple[int, int]) -> Situations:
    """So many situations of two definitions in each partition; only their number counts."""
    counts = [count for partition in partitions for count in partition]
    none = np.zeros(sum(counts), dtype=np.int64)
    return Situations(2, np.cumsum([0, *counts]), none, none, none)


def searched(*triggers: list[tuple[int, int]]) -> Matches:
    """What a search looked at and what passed, by trigger and step."""
    none = np.zeros((0, 3), dtype=np.int64)
    return Matches(none, none[:, 0], np.array(triggers, dtype=np.int64))


IDLE = [(0, 0)] * 3


def test_averages_follow_sizes_and_shares_that_an_increment_shows() -> None:
    """A and C are situations of one definition; a partition without any does not count; from B, C comes before A."""
    order = MatchOrder.initial(CHAIN)
    assert order.order.tolist() == [[0, 1, 2], [1, 2, 0], [2, 1, 0]]
    assert order.seen.selectivities == {(0, 1): 0.445, (1, 2): 0.0049}
    counters = searched(
        [(50, 40), (90, 60), (70, 7)],  # from A: of 40 A with 4 B each, 60 pairs; of these with 8 C each, 7
        [(25, 25), (10, 0), (0, 0)],  # from B: none of 25 with 8 C each, for which half a pair stands
        [(19, 19), (19, 19), (19, 19)],  # from C: too few to tell
    )
    after = order.after(held((4, 6), (0, 0), (4, 10)), (1, 0, 1), counters)
    assert after.seen.sizes == pytest.approx((0.2 * 8 + 8, 0.2 * 4 + 8, 0.2 * 8 + 8))
    meets = (7 / 60 / 8 + 0.5 / 25 / 8) / 2
    assert after.seen.selectivities == pytest.approx(
        {(0, 1): 0.2 * 60 / 40 / 4 + 0.8 * 0.445, (1, 2): 0.2 * meets + 0.8 * 0.0049}
    )
    again = after.after(held((4, 8)), (1, 0, 1), searched(IDLE, IDLE, IDLE))
    assert again.seen.sizes == pytest.approx((0.2 * 8 + 0.8 * 9.6, 0.2 * 4 + 0.8 * 8.8, 0.2 * 8 + 0.8 * 9.6))
    assert again.seen.selectivities == after.seen.selectivities


def test_counts_of_small_increments_are_carried_until_they_tell() -> None:
    """From A: 19 and one more; then they begin anew. What is looked for where nothing is tells nothing."""
    order = MatchOrder.initial(CHAIN)
    few = order.after(held((10, 10)), (0, 1, 1), searched([(30, 19), (30, 10), (0, 0)], IDLE, IDLE))
    assert few.seen.selectivities == order.seen.selectivities
    none = few.after(held((10, 0)), (0, 1, 1), searched([(30, 30), (0, 0), (0, 0)], IDLE, IDLE))
    assert none.seen.selectivities == order.seen.selectivities
    told = none.after(held((10, 40)), (0, 1, 1), searched([(1, 1), (5, 2), (0, 0)], IDLE, IDLE))
    one = 0.2 * 12 / (19 * 10 + 1 * 40) + 0.8 * 0.445
    assert told.seen.selectivities == pytest.approx({(0, 1): one, (1, 2): 0.0049})
    again = told.after(held((10, 10)), (0, 1, 1), searched([(19, 19), (7, 7), (0, 0)], IDLE, IDLE))
    assert again.seen.selectivities == told.seen.selectivities


def test_counts_are_those_of_an_order() -> None:
    """From A, B came before C until there were many more; from B and C, the orders stay, and so do their counts."""
    order = MatchOrder.initial(TRIANGLE)
    few = [(19, 19), (19, 19), (0, 0)]
    counted = order.after(held((10, 10)), (0, 1, 0), searched(few, few, few))
    other = counted.after(held((10, 40)), (0, 1, 0), searched(IDLE, IDLE, IDLE))
    stays = (other.order == order.order).all(axis=1).tolist()
    assert stays[0] is False
    assert any(stays)
    one = [(1, 1), (0, 0), (0, 0)]
    assert (
        other.after(held((10, 10)), (0, 1, 0), searched(one, IDLE, IDLE)).seen.selectivities == order.seen.selectivities
    )
    after = other.after(held((10, 10)), (0, 1, 0), searched(*(one if stay else IDLE for stay in stays)))
    assert after.seen.selectivities != order.seen.selectivities


def test_shares_are_learned_however_small_increments_are() -> None:
    """A before B holds of about half of the pairs, B overlaps C of few; each increment has a situation or two."""
    events = [(0, t, t % 5 if t % 7 else 0) for t in range(1_500)]
    program = tg.program(M=tg.match(A.before(B), A.before(C), B.before(C), within=60))
    for size in (5, 50):
        with program.session() as run:
            for first in range(0, len(events), size):
                run.push("R", events[first : first + size])
                run.advance("R", {"t": first + size - 1})
                run.step()
            why = run.orders("M")[-1]
        assert not re.search(r"44\.50%", why), (size, why)


def test_a_search_goes_by_the_order_that_was_chosen_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """B is rare at first, then C is."""
    searched_by: list[object] = []

    def recording(steps: object, *given: object) -> object:
        searched_by.append(steps)
        return find_matches(steps, *given)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(matches, "find_matches", recording)
    program = tg.program(M=tg.match(A.before(B), A.before(C), B.before(C), within=60))
    shown: list[list[str]] = []
    with program.session() as run:
        for first in range(0, 1_200, 100):
            rare, often = (2, 3) if first < 600 else (3, 2)
            kinds = (1, 0, often, 0, often, 0, often, 0, often, 0)
            run.push("R", [(0, t, rare if t % 50 == 9 else kinds[t % 10]) for t in range(first, first + 100)])
            run.advance("R", {"t": first + 99})
            run.step()
            shown.append([line.split(", cost")[0] for line in run.orders("M")[:-1]])
    changed = [now != before for before, now in itertools.pairwise(shown)]
    assert any(changed)
    assert [now is not before for before, now in itertools.pairwise(searched_by[1:])] == changed[:-1]


def test_distances_relate_symbols_too() -> None:
    """What nothing relates to those before comes last: B has no constraint to A."""
    near = call("le", Attr("A.ts"), call("add", Attr("C.te"), Lit(3, BIGINT)))
    order = MatchOrder.initial(found_by(near, related("B", Allen.BEFORE, "C")))
    assert order.seen.selectivities == {(0, 2): 0.5, (1, 2): 0.445}
    assert order.order[0].tolist() == [0, 2, 1]


def test_a_step_that_several_constraints_bind_shares_its_share_among_them() -> None:
    order = MatchOrder.initial(TRIANGLE)
    share = 0.445**2 / 4  # a fourth of what was expected of the two constraints together: half of each
    after = order.after(
        held((10, 10)), (0, 1, 1), searched([(0, 0), (0, 1000), (0, round(share * 10_000))], IDLE, IDLE)
    )
    assert order.order[0].tolist() == [0, 1, 2]
    halved = 0.2 * 0.445 / 2 + 0.8 * 0.445
    assert after.seen.selectivities == pytest.approx({(0, 1): 0.445, (0, 2): halved, (1, 2): halved}, rel=1e-3)


def test_orders_are_chosen_again_once_what_they_rest_on_has_changed_by_half() -> None:
    order = MatchOrder.initial(TRIANGLE)
    assert order.order[0].tolist() == [0, 1, 2]
    many = held((10, 40))
    once = order.after(many, (0, 1, 0), searched(IDLE, IDLE, IDLE))  # B 10 -> 16
    assert once.chosen_by is once.seen
    assert once.order.tolist() == orders(once.seen).tolist()
    assert once.order[0].tolist() == [0, 2, 1]
    twice = once.after(many, (0, 1, 0), searched(IDLE, IDLE, IDLE))  # 16 -> 20.8
    assert twice.order is once.order
    assert twice.chosen_by is once.chosen_by
    assert twice.seen.sizes[1] == pytest.approx(20.8)
    thrice = twice.after(many, (0, 1, 0), searched(IDLE, IDLE, IDLE))  # 16 -> 24.6
    assert thrice.chosen_by is thrice.seen
    fewer = thrice
    for _ in range(4):  # 24.6 -> 10.1: a fourth time is needed for less than half
        assert fewer.chosen_by is thrice.chosen_by
        fewer = fewer.after(held((10, 0)), (0, 1, 0), searched(IDLE, IDLE, IDLE))
    assert fewer.chosen_by is fewer.seen
    pinned = MatchOrder.initial(TRIANGLE, (0, 1, 2))
    assert pinned.after(many, (0, 1, 0), searched(IDLE, IDLE, IDLE)).order is pinned.order


def test_a_session_looks_for_what_is_rare_first() -> None:
    """Five situations B for each C: at first they are thought to be as many."""
    program = tg.program(M=tg.match(A.before(B), A.before(C), B.before(C), within=100))
    events = [(0, t, 1 if t % 40 == 0 else 3 if t % 40 == 35 else 2 if t % 2 else 0) for t in range(2_000)]
    with program.session() as run:
        assert run.orders("M") == []
        for first in range(0, 2_000, 100):
            run.push("R", events[first : first + 100])
            run.advance("R", {"t": first + 99})
            run.step()
        run.finish()
        run.step()
        *lines, why = run.orders("M")
        rows = run.results("M")
    assert "from A: B, C, cost" in str(program.explain().plan)
    assert lines[0].startswith("from A: C, B, cost")
    assert "seen or assumed: a partition has " in why
    assert sorted(map(str, rows)) == sorted(map(str, program.run({"R": events}).rows("M")))
