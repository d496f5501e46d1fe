"""Looks of partner and kill rule in small steps: bounded in every batch, rarer where they free nothing, and complete in
the end.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import tidegate as tg
from tidegate.runtime.batch import garbage
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval import purge_schedule as sweep
from tidegate.runtime.eval.purge_schedule import PATIENCE, STEP, STRIDE, Look, LookStep, Watch
from tidegate.runtime.state.segments import Segment

orders = tg.stream("Orders", "id bigint, t bigint", progress="t")
payments = tg.stream("Payments", "id bigint, t bigint", progress="t")
deliveries = tg.stream("Deliveries", "id bigint, t bigint", progress="t")
NAMES = ("Orders", "Payments", "Deliveries")


def unpaid() -> tg.Program:
    """Orders without a payment within 10,000 ticks: a payment kills its order, and serves nobody else."""
    o, p = orders.as_("o"), payments.as_("p")
    return tg.program(R=o.anti_join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 10_000).select(id=o.id, t=o.t))


def delivered() -> tg.Program:
    """Orders paid within 5 ticks and delivered within 10,000 of the payment: who has not paid by then goes."""
    o, p, d = orders.as_("o"), payments.as_("p"), deliveries.as_("d")
    paid = o.join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 5)
    both = paid.join(d, p.id == d.id, p.t <= d.t, d.t <= p.t + 10_000)
    return tg.program(R=both.select(id=o.id, ordered=o.t, delivered=d.t))


def small(monkeypatch: pytest.MonkeyPatch, **others: Any) -> None:
    sizes = {"FLOOR": 1, "STEP": 40, "STRIDE": 1, "YOUNG": 1, "JUDGED": 30, "WORTH": 0.0, "WHOLE_STEPS": 0, **others}
    for name, value in sizes.items():
        for module in (garbage, sweep):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)


def rows_at(t: int, rng: random.Random) -> dict[str, list[dict[str, int]]]:
    """Ten orders, payments of half of them within five ticks or much later."""
    ordered = [{"id": 10 * t + k, "t": t} for k in range(10)]
    soon = [{"id": one["id"], "t": t + rng.randint(0, 5)} for one in ordered if rng.random() < 0.5]
    late = [{"id": rng.randrange(10 * t + 1), "t": t} for _ in range(2)]
    return {"Orders": ordered, "Payments": sorted(soon + late, key=lambda row: row["t"])}


def live(session: Session) -> dict[str, int]:
    return {name.split("#")[0]: rows for name, rows in session.live_rows().items()}


@pytest.mark.parametrize("made", [unpaid, delivered])
def test_looks_free_in_the_end_what_a_whole_sweep_frees(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, PATIENCE=0, RATE={"young": 200.0, "old": 200.0}, STEP=200)
    steps: list[tuple[int, bool]] = []
    went = Watch.went

    def noted(watch: Watch, look: Look, looked: LookStep) -> None:
        steps.append((looked.rows, looked.done))
        went(watch, look, looked)

    monkeypatch.setattr(Watch, "went", noted)
    rng = random.Random(1)
    facts = made().facts
    with (
        Session(facts, options=RunOptions(collect_garbage="amortised", purging="always")) as steadily,
        Session(facts, options=RunOptions(collect_garbage="exact", purging="always")) as whole,
    ):
        for t in range(0, 900, 10):
            given = rows_at(t, rng)
            for session in (steadily, whole):
                for name in facts.program.inputs:
                    session.push(name.name, given.get(name.name, []) if t < 300 else [])
                    session.advance(name.name, {"t": t + 5})
                if t >= 300:  # a row that comes pays for further looks
                    session.push("Orders", [{"id": -t, "t": t + 6}])
                session.step()
        for session in (steadily, whole):
            for name in facts.program.inputs:
                session.advance(name.name, {"t": 1000})
            session.step()
        least = live(whole)
        found = live(steadily)
        assert least["Orders"] > 100  # not all goes
        assert all(found[name] <= least[name] + 60 for name in found)
        for session in (steadily, whole):
            session.finish()
            session.step()
        assert sorted(map(str, steadily.results("R"))) == sorted(map(str, whole.results("R")))
    assert max(rows for rows, _ in steps) <= 2 * 200
    assert sum(done for _, done in steps) > 20
    assert any(not done for _, done in steps)


class Simulation:
    """A buffer to which each batch adds a segment; a look goes through all that it may, and finds a part dead."""

    def __init__(self, arriving: int, company: int) -> None:
        self.arriving, self.company = arriving, company
        self.buffer: Any = type("Buffer", (), {"id": "b"})()
        self.watch = Watch()
        self.live: list[Segment] = []
        self.seq = 0
        self.left: dict[int, int] = {}

    def batch(self, dead: float) -> int:
        """Rows looked at."""
        self.seq += 1
        self.live.append(Segment(f"{self.seq}", self.arriving, 1, "", "x", {}, self.seq, 0))
        self.watch.arrived(self.arriving, max(STEP, self.arriving))
        found = self.watch.next([self.buffer], {"b": tuple(self.live)}, self.seq)
        if found is None:
            return 0
        rows = int(self.watch.credit[found.age])
        left = self.left.setdefault(id(found), found.rows + self.company) - rows
        self.left[id(found)] = left
        self.watch.went(found, LookStep(rows, done=left <= 0, dead=int(dead * found.rows) if left <= 0 else 0))
        return rows


@pytest.mark.parametrize("arriving", [50, 10_000, 100_000])
def test_looks_that_free_nothing_become_rare_and_often_again_once_they_free(arriving: int) -> None:
    one = Simulation(arriving, company=100_000)
    looked = [one.batch(0.0) for _ in range(2_000)]
    assert max(looked) <= max(STEP, arriving)
    if arriving > 50:
        late = looked[len(looked) // 2 :]
        assert set(one.watch.idle.values()) == {PATIENCE}
        assert sum(late) <= 0.05 * arriving * len(late)
        assert sum(late) > 0  # never given up: rows may die later
        again = [one.batch(0.9) for _ in range(1000)]
        assert set(one.watch.idle.values()) == {0}
        assert sum(again[-200:]) >= 0.9 * arriving * 200


def test_the_youngest_rows_are_judged_first_and_all_in_turn() -> None:
    one = Simulation(STRIDE, company=0)
    begun: list[tuple[str, ...]] = []
    for _ in range(200):
        one.batch(0.5)
        begun += [tuple(s.path for s in look.segments) for look in one.watch.looks.values()]
    assert one.watch.judged.keys() >= {str(number) for number in range(1, 190)}
    assert min(one.watch.judged.values()) > 1  # the first were judged again


def test_a_look_ends_where_its_segments_are_gone() -> None:
    one = Simulation(STRIDE, company=10**9)
    for _ in range(3):
        one.batch(0.0)
    (look,) = one.watch.looks.values()
    assert one.watch.busy == {segment.path for segment in look.segments}
    one.live = [segment for segment in one.live if segment.path not in one.watch.busy]
    one.batch(0.0)
    assert look not in one.watch.looks.values()


def test_renamed_segments_are_known_as_judged() -> None:
    watch = Watch(judged={"in memory 1": 3, "b": 4})
    watch.renamed({"in memory 1": "a"})
    assert watch.judged == {"a": 3, "b": 4}


def buffer(name: str) -> Any:
    return type("Buffer", (), {"id": name})()


def seg(path: str, rows: int, batch: int = 1) -> Segment:
    return Segment(path, rows, 1, "", "x", {}, batch, 0)


def credited(**others: Any) -> Watch:
    """With credit for any look."""
    return Watch(credit={"young": 1e9, "old": 1e9}, **others)


def chosen(watch: Watch, segments: dict[str, list[Segment]], seq: int = 9) -> tuple[str, str, list[str]] | None:
    """The age, the buffer and the segments of the next look."""
    look = watch.next([buffer(name) for name in segments], segments, seq)
    return None if look is None else (look.age, look.buffer.id, [s.path for s in look.segments])


def test_rows_that_come_give_credit_up_to_a_limit_and_less_where_looks_free_little() -> None:
    watch = Watch(idle={"young": 1, "old": 3})
    watch.arrived(1600, 10_000)
    assert watch.credit == {"young": 1600.0, "old": 100.0}
    watch.arrived(1600, 10_000)
    assert watch.credit == {"young": 3200.0, "old": 200.0}
    watch.arrived(100_000, 1000)
    assert watch.credit == {"young": 1000.0, "old": 1000.0}


def test_a_look_waits_for_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, STRIDE=10)
    for credit, early in ((9.5, True), (10.0, False)):
        watch = Watch(credit={"young": credit, "old": 0.0})
        assert (chosen(watch, {"b": [seg("a", 5)]}) is None) == early


def test_young_rows_are_judged_once_they_are_enough_the_latest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, YOUNG=10, JUDGED=30)
    assert chosen(credited(), {"b": [seg("a", 4), seg("b", 5)]}) is None
    assert chosen(credited(), {"b": [seg("a", 4), seg("b", 6)]}) == ("young", "b", ["b", "a"])
    assert chosen(credited(), {"b": [seg("a", 4), seg("now", 6, batch=9)]}) is None, "of earlier batches alone"
    assert chosen(credited(judged={"a": 1}), {"b": [seg("a", 10), seg("b", 9)]}, 9) == ("old", "b", ["a"])
    most = {"b": [seg("a", 15)], "c": [seg("c", 9), seg("d", 7)], "d": [seg("e", 1)]}
    assert chosen(credited(), most) == ("young", "c", ["d", "c"]), "of the buffer with the most of them"
    for rows, taken in ((15, ["c", "b"]), (16, ["c"])):
        segments = {"b": [seg("a", 1), seg("b", rows), seg("c", 15)]}
        assert chosen(credited(), segments) == ("young", "b", [*taken, *(["a"] if rows < 15 else [])])
    assert chosen(credited(), {"b": [seg("a", 99)]}) == ("young", "b", ["a"]), "one segment in any case"
    small(monkeypatch, YOUNG=0)
    assert chosen(credited(), {"b": []}) is None


def test_old_rows_are_judged_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, YOUNG=1000, JUDGED=30)
    segments = {"b": [seg("a", 10), seg("b", 10), seg("c", 1)], "c": [seg("d", 10)], "d": []}
    assert chosen(credited(judged={"a": 3, "b": 2, "d": 4}), segments) == ("old", "b", ["b", "a"])
    assert chosen(credited(judged={"a": 3, "b": 2, "d": 1}), segments) == ("old", "c", ["d"])


def test_each_age_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    segments = {"b": [seg("a", 10), seg("b", 10)]}
    for last, age in (("young", "old"), ("old", "young")):
        found = chosen(credited(judged={"a": 1}, last=last), segments)
        assert found == (age, "b", ["a" if age == "old" else "b"])
    watch = credited(judged={"a": 1})
    watch.credit["young"] = 0.0
    assert chosen(watch, segments) == ("old", "b", ["a"])


def test_a_look_goes_on_until_it_is_done_and_its_segments_are_in_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    segments = {"b": [seg("a", 10), seg("b", 10)]}
    watch = credited(judged={"a": 1, "gone": 2})
    look = watch.next([buffer("b")], segments, 9)
    assert look is not None
    assert (look.age, look.seq, look.rows) == ("young", 9, 10)
    assert watch.judged == {"a": 1}, "what is gone is forgotten"
    watch.went(look, LookStep(7))
    assert (watch.credit["young"], watch.credit["old"]) == (1e9 - 7, 1e9)
    assert (watch.last, watch.count, watch.idle) == ("young", 0, {"young": 0, "old": 0})
    watch.judged["b"] = 1  # if it were not busy, it would be judged with the other
    old = watch.next([buffer("b")], segments, 10)
    assert old is not None
    assert (old.age, [s.path for s in old.segments]) == ("old", ["a"])
    watch.went(old, LookStep(1))
    assert watch.next([buffer("b")], segments, 11) is look
    assert watch.busy == {"a", "b"}
    watch.given_up(look)
    assert watch.looks == {"old": old}


def test_a_look_that_ends_notes_what_it_judged_and_whether_it_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, WORTH=0.25)
    watch = credited(count=5)
    look = Look(buffer("b"), (seg("a", 30), seg("b", 10)), "old", 9)
    for dead, idle, frees in ((9, 1, False), (0, 2, False), (10, 0, True), (9, 1, False)):
        watch.looks["old"] = look
        watch.went(look, LookStep(1, done=True, dead=dead))
        assert (watch.idle, watch.frees, watch.looks) == ({"young": 0, "old": idle}, frees, {})
    assert watch.judged == {"a": 9, "b": 9}
    watch.idle["old"], watch.looks["old"] = PATIENCE, look
    watch.went(look, LookStep(1, done=True, segments=(seg("c", 1),)))
    assert (watch.idle["old"], watch.count) == (PATIENCE, 10)
    assert watch.judged == {"a": 9, "b": 9, "c": 10}, "what stands in the place of the others"


def test_a_sweep_notes_what_it_left_and_whether_it_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, WORTH=0.25)
    for left, frees in ((30, True), (31, False)):
        watch = Watch(frees=not frees)
        watch.swept(40, left)
        assert (watch.left, watch.frees) == (left, frees)
