"""What of the state a batch drops, rewrites and looks through: a bounded number of rows, whatever the state; and still
few segments.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.runtime.faults.scenarios import again
from tidegate.algebra.terms import TRUE
from tidegate.runtime import rows as small_rows
from tidegate.runtime.batch import garbage
from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.batch.garbage import MERGED_ROWS, MOST_SEGMENTS, Garbage, affordable, merged_rows
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.embedded.steps import rewriting
from tidegate.runtime.engines.embedded.steps.segment_cache import SegmentCache
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval import purge_schedule as sweep_module
from tidegate.runtime.eval.purge_schedule import Look, LookStep, Sweep, Watch
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.segments import Segment, plan_compaction
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

events = tg.stream("Events", "k bigint, t bigint", progress="t")


def segment(rows: int, number: int = 0, width: int = 24) -> Segment:
    return Segment(f"segments/{number}", rows, rows * width, "", "x", {}, 0, 0)


def pairs(within: int) -> tg.Program:
    """Nobody has results before the end: rows are stored, and go by time."""
    one, other = events.as_("one"), events.as_("other")
    both = one.join(other, one.k == other.k, one.t < other.t, other.t <= one.t + within)
    return tg.program(Pairs=both.select(k=one.k, first=one.t, second=other.t))


@pytest.mark.parametrize(("arriving", "batches"), [(50, 40_000), (10_000, 2_000), (100_000, 300)])
def test_no_batch_merges_more_than_a_few_times_what_came_or_a_part_of_the_state(arriving: int, batches: int) -> None:
    live: list[Segment] = []
    merged: list[int] = []
    for number in range(batches):
        live.append(segment(arriving, number))
        most = merged_rows(live, arriving)
        groups = [Rewrite(None, group, None, most) for group in plan_compaction(live, max_rows=most)]  # type: ignore[arg-type]
        chosen = affordable(groups, arriving)
        for one in chosen:
            gone = {s.path for s in one.segments}
            live = [*(s for s in live if s.path not in gone), segment(one.rows, number * 1000 + len(gone) + 1_000_000)]
        merged.append(sum(one.rows for one in chosen))
        total = arriving * (number + 1)
        assert merged[-1] <= max(4 * arriving, 1 << 17, 2 * total // MOST_SEGMENTS)
        assert len(live) <= 1.1 * MOST_SEGMENTS + 40
        assert sum(s.rows for s in live) == total
    assert statistics.mean(merged) <= 8 * arriving


@given(st.lists(st.integers(0, 1 << 20), max_size=30), st.integers(0, 1 << 20))
def test_of_rewrites_that_wait_one_is_always_done(sizes: list[int], arrived: int) -> None:
    rewrites = [Rewrite(None, [segment(rows)], None) for rows in sizes]  # type: ignore[arg-type]
    chosen = affordable(rewrites, arrived)
    assert bool(chosen) == bool(rewrites)
    assert sum(one.rows for one in chosen[1:]) <= max(4 * arrived, 1 << 17)
    assert all(one in rewrites for one in chosen)


def test_wide_rows_are_merged_in_smaller_segments() -> None:
    assert merged_rows([segment(1000, width=1 << 20)], 10) < 1000
    assert merged_rows([segment(1000)], 10) == MERGED_ROWS
    assert merged_rows([], 10) == MERGED_ROWS


def stores(tmp_path: Any) -> list[Store]:
    return [MemoryStore(), LocalStore(tmp_path / "disk", sync=False)]


def rewrite_by_pieces(monkeypatch: pytest.MonkeyPatch, *, rows: int, written: int) -> None:
    """Segments are read so many rows at a time, and so many that live are written together."""
    monkeypatch.setattr(rewriting, "PIECE_ROWS", rows)
    monkeypatch.setattr(rewriting, "PIECE_BYTES", written * 16)
    monkeypatch.setattr(garbage, "MERGED_ROWS", rows)
    monkeypatch.setattr(small_rows, "MOST", -1)


def cache_of(session: Session) -> SegmentCache:
    executor = session._runner.executor
    assert isinstance(executor, EmbeddedExecutor)
    return executor.cache


@pytest.mark.parametrize("place", [0, 1])
def test_a_large_segment_is_rewritten_piece_by_piece(
    place: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more of a file is in memory than a piece and what waits to be written; every row stays, the dead ones go."""
    rewrite_by_pieces(monkeypatch, rows=100, written=300)
    store = stores(tmp_path)[place]
    store.packs = False  # as many rows as these would go into a pack, which is read whole
    pieces: list[int] = []

    def seen(path: str, rows: int) -> Any:
        for table in type(store).read_pieces(store, path, rows):
            pieces.append(table.num_rows)
            yield table

    with Session(pairs(10_000).facts, store, options=RunOptions(collect_garbage="off")) as session:
        session.push("Events", [{"k": k, "t": k} for k in range(1_000)])
        session.advance("Events", {"t": 999})
        session.step()
    monkeypatch.setattr(store, "read_pieces", seen)
    with Session(pairs(10_000).facts, store, options=RunOptions(collect_garbage="exact")) as session:
        monkeypatch.setattr(cache_of(session), "most_bytes", 0)
        session.advance("Events", {"t": 10_500})
        report = session.step()
        (name,) = report.live_rows
        assert report.live_rows[name] == 499  # those whose partners may come after 10,500
        assert pieces == [100] * 10
        assert len(session._runner.state.segments[name]) == 2
        session.finish()
        session.step()


@pytest.mark.parametrize("failpoint", ["store-file-written", "batch-after-segment"])
@pytest.mark.parametrize("pieces_before", range(4))
@pytest.mark.parametrize("place", [0, 1])
def test_a_crash_between_the_pieces_of_a_rewritten_segment_changes_nothing(
    place: int, pieces_before: int, failpoint: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite_by_pieces(monkeypatch, rows=50, written=100)
    store = stores(tmp_path)[place]
    store.packs = False
    with Session(pairs(10_000).facts, store, options=RunOptions(collect_garbage="off")) as session:
        session.push("Events", [{"k": k % 500, "t": k} for k in range(1_000)])
        session.advance("Events", {"t": 999})
        assert session.step().results == {"Pairs": 500}
    with Session(pairs(10_000).facts, store, options=RunOptions(collect_garbage="exact")) as session:
        monkeypatch.setattr(cache_of(session), "most_bytes", 0)
        store.failpoints.arm(failpoint, crash, skip=pieces_before)
        session.advance("Events", {"t": 10_500})
        with pytest.raises(SimulatedCrash):
            session.step()
    store = again(store)
    with Session(pairs(10_000).facts, store, options=RunOptions(collect_garbage="exact")) as session:
        (name,) = session.live_rows()
        assert session.live_rows()[name] == 1_000
        session.advance("Events", {"t": 10_500})
        assert session.step().live_rows == {name: 499}
        segments = session._runner.state.segments[name]
        assert len(segments) > 3
        session.push("Events", [{"k": 499, "t": 10_600}])
        session.advance("Events", {"t": 10_600})
        assert session.step().results == {"Pairs": 1}
        assert len(session.results("Pairs")) == 501
        session.finish()
        for _ in range(2):
            session.step()
    assert store.list_files("segments") == []


def stored(path: str, rows: int, low: int = 0, high: int = 0, batch: int = 1) -> Segment:
    return Segment(path, rows, rows * 8, "", "x", {"t": (low, high)}, batch, 0)


class Engine:
    """An executor that notes what it is asked for; what it writes has the rows that live, by their share."""

    def __init__(self, left: dict[str, tuple[Segment, ...]] | None = None, looked: LookStep | None = None) -> None:
        self.left, self.looked = left or {}, looked
        self.rewritten: list[list[str]] = []
        self.conditions: list[Any] = []
        self.least: list[int] = []
        self.swept: list[list[str]] = []
        self.worth: list[float] = []
        self.looks: list[int] = []

    def rewrite(self, batch: Any, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        self.rewritten += [[s.path for s in one.segments] for one in rewrites]
        self.conditions += [one.keep for one in rewrites]
        self.least += [one.least for one in rewrites]
        return [(stored("+".join(s.path for s in one.segments), one.rows, batch=batch.seq),) for one in rewrites]

    def sweep(self, batch: Any, sweep: Sweep) -> dict[str, tuple[Segment, ...]]:
        assert isinstance(sweep, Sweep)
        self.swept.append([buffer.id for buffer in sweep.buffers])
        self.worth.append(sweep.worth)
        return {name: some for name, some in self.left.items() if name in sweep.segments}

    def look(self, batch: Any, sweep: Sweep, look: Look, most: int) -> LookStep | None:
        assert isinstance(sweep, Sweep)
        self.looks.append(most)
        return self.looked


def made(mode: Any, *names: str, groups: Any = None, memory: str | None = None) -> Garbage:
    """Buffers of rows that are needed while t is at least the progress; with `memory` of a key, in the buffer of this
    name.
    """
    buffers = {name: SimpleNamespace(id=name, stream=SimpleNamespace(name=name), fold=None) for name in names}

    def keeps(buffer: Any, bounds: Any, progress: Any) -> bool:
        return bool(bounds["t"][1] >= progress)

    keys: dict[str, Any] = {}
    if memory is not None:
        own = SimpleNamespace(id=f"keys of {memory}", stream=buffers[memory].stream, fold=None)
        keys[memory] = SimpleNamespace(
            buffer=own, keep=lambda p: ("memory", p), keeps_segment=lambda bounds, p: keeps(own, bounds, p)
        )
    plan = SimpleNamespace(
        buffers=tuple(buffers.values()),
        buffer_keep=lambda buffer, progress: (buffer.id, progress),
        buffer_keeps=lambda buffer, progress: lambda bounds: keeps(buffer, bounds, progress),
        purged=lambda: tuple(tuple(buffers[name] for name in group) for group in groups or ()),
        freed_sooner=lambda buffer: True,
    )
    return Garbage(plan, keys, mode)  # type: ignore[arg-type]


def at(progress: int) -> Any:
    return SimpleNamespace(queries=progress, of_input=lambda stream: progress, bounds=lambda plan: {})


def batch(seq: int = 9) -> Any:
    return SimpleNamespace(seq=seq)


def paths(found: Mapping[str, Sequence[Segment]]) -> dict[str, list[str]]:
    return {name: [s.path for s in some] for name, some in found.items()}


def test_segments_that_nobody_needs_go_and_half_dead_ones_are_written_anew() -> None:
    """Amortised once their earlier half is dead, exact once their earliest row is; at progress 10."""
    segments = {
        "b": [stored("dead", 5, 0, 9), stored("half", 100, 5, 14), stored("late", 3, 9, 12), stored("all", 1, 10, 19)]
    }
    for mode, rewritten, left in (
        ("amortised", [["half"]], ["late", "all", "half"]),
        ("exact", [["half"], ["late"]], ["all", "half", "late"]),
        ("off", [], ["dead", "half", "late", "all"]),
    ):
        engine, garbage_ = Engine(), made(mode, "b")
        assert paths(garbage_.collected(engine, batch(), segments, at(10))) == {"b": left}  # type: ignore[arg-type]
        assert engine.rewritten == rewritten
        assert engine.conditions == [("b", 10)] * len(rewritten)
        assert set(engine.least) <= {MERGED_ROWS}


def test_what_is_merged_is_not_written_anew_beside_that() -> None:
    """Four of one size are merged; those of them that are dying with the others."""
    segments = {"b": [stored(name, 10, low, 19) for name, low in (("a", 0), ("b", 12), ("c", 12), ("d", 12))]}
    engine = Engine()
    assert paths(made("exact", "b").collected(engine, batch(), segments, at(10))) == {"b": ["a+b+c+d"]}  # type: ignore[arg-type]
    assert engine.rewritten == [["a", "b", "c", "d"]]


def test_the_condition_of_a_buffer_is_built_where_rows_of_it_are_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all of its rewrites, and not at all of a buffer that stays as it is."""
    for name, value in (("LEAST_REWRITTEN", 0), ("REWRITTEN", 0), ("REWRITE_COST", 0)):
        monkeypatch.setattr(garbage, name, value)
    segments = {
        "b": [stored("live", 10, 10, 19)],
        "c": [stored("half", 10, 5, 11), stored("other", 10, 5, 11)],
        "d": [stored("later", 5, 5, 11)],
    }
    for mode, asked in (("amortised", ["c"]), ("exact", ["c", "d"])):
        one, names = made(mode, "b", "c", "d"), list[str]()

        def keep(buffer: Any, progress: int, names: list[str] = names) -> Any:
            names.append(buffer.id)
            return (buffer.id, progress)

        monkeypatch.setattr(one.plan, "buffer_keep", keep)
        engine = Engine()
        one.collected(engine, batch(), segments, at(10))  # type: ignore[arg-type]
        assert names == asked
        assert {name for name, _ in engine.conditions} == set(asked)


def test_rows_that_are_judged_are_not_written_anew() -> None:
    """A look in the middle has found things out about them; what is dead goes all the same."""
    segments = {"b": [stored("half", 100, 5, 11), stored("judged", 100, 5, 11), stored("gone", 100, 5, 9)]}
    one = made("exact", "b")
    one.watches["b"] = Watch(looks={"old": Look(one.plan.buffers[0], tuple(segments["b"][1:]), "old", 1)})
    engine = Engine()
    assert paths(one.collected(engine, batch(), segments, at(10))) == {"b": ["judged", "half"]}  # type: ignore[arg-type]


def test_a_batch_affords_rewrites_by_the_rows_that_it_has_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose turn it is in exact mode are not among what it has to afford."""
    for name, value in (("LEAST_REWRITTEN", 0), ("REWRITTEN", 1), ("REWRITE_COST", 0)):
        monkeypatch.setattr(garbage, name, value)
    segments = {
        "b": [stored(name, 10, 5, 11, batch=9) for name in "ab"],
        "c": [stored(name, 10, 5, 11) for name in "cd"],
    }
    for mode, written in (("amortised", [["a"], ["b"]]), ("exact", [["a"], ["b"], ["c"], ["d"]])):
        engine = Engine()
        made(mode, "b", "c").collected(engine, batch(), segments, at(10))  # type: ignore[arg-type]
        assert engine.rewritten == written


def test_keys_that_are_remembered_go_by_their_own_rule() -> None:
    """The buffer of the memory alone, not that of the stream's rows."""
    one = made("exact", "b", memory="b")
    own, memory = one.buffers
    assert (own.id, memory.id) == ("b", "keys of b")
    assert one.keep(own, at(10)) == ("b", 10)
    assert one.keep(memory, at(10)) == ("memory", 10)
    segments = {name: [stored("dead", 5, 0, 9), stored("late", 9, 9, 12)] for name in ("b", "keys of b")}
    engine = Engine()
    found = one.collected(engine, batch(), segments, at(10))  # type: ignore[arg-type]
    assert paths(found) == {"b": ["late"], "keys of b": ["late"]}
    assert engine.conditions == [("b", 10), ("memory", 10)]
    off = made("off", "b", memory="b")
    assert off.keep(memory, at(10)) == off.keep(own, at(10)) == TRUE


def test_rewrites_are_chosen_from_the_largest_as_long_as_they_can_be_afforded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LEAST_REWRITTEN", 30), ("REWRITTEN", 4), ("REWRITE_COST", 1)):
        monkeypatch.setattr(garbage, name, value)

    def affordable_of(sizes: list[int], arrived: int) -> list[int]:
        return [one.rows for one in affordable([Rewrite(None, [segment(rows)], None) for rows in sizes], arrived)]  # type: ignore[arg-type]

    assert affordable_of([8, 9, 19], 0) == [19, 9]
    assert affordable_of([8, 10, 19], 0) == [19, 8]
    assert affordable_of([8, 9, 19], 10) == [19, 9, 8]
    assert affordable_of([99, 1], 0) == [99]


def test_segments_are_merged_up_to_a_size_in_bytes_and_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MERGED_ROWS", 100), ("MERGED_BYTES", 800), ("MOST_SEGMENTS", 4)):
        monkeypatch.setattr(garbage, name, value)
    assert merged_rows([segment(10, width=8)], 0) == 100
    assert merged_rows([segment(10, width=16), segment(10, width=16)], 0) == 50
    assert merged_rows([segment(10, width=4)], 150) == 150, "as many as came"
    assert merged_rows([segment(10, width=4)], 999) == 200
    assert merged_rows([segment(10, width=4000)], 0) == 2, "of which a fourth stays"
    assert merged_rows([segment(2, width=4000)], 0) == 1
    assert merged_rows([segment(800, width=8)], 0) == 200


def looking(monkeypatch: pytest.MonkeyPatch, **others: Any) -> None:
    sizes = {
        "FLOOR": 10,
        "STEP": 40,
        "STRIDE": 20,
        "WHOLE_STEPS": 2,
        "YOUNG": 1,
        "JUDGED": 1000,
        "WORTH": 0.25,
        **others,
    }
    for name, value in sizes.items():
        for module in (garbage, sweep_module):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)


def swept(one: Garbage, engine: Engine, seq: int = 9, /, **segments: list[Segment]) -> dict[str, list[str]]:
    one.collected(engine, batch(seq), segments, at(0))  # type: ignore[arg-type]
    return paths(one.swept(engine, batch(seq), segments, at(0), {}))  # type: ignore[arg-type]


def test_exact_sweeps_look_at_all_groups_that_have_rows() -> None:
    engine = Engine({"a": (stored("a left", 1),), "c": ()})
    one = made("exact", "a", "b", "c", groups=("ab", "c"))
    assert swept(one, engine, a=[stored("a", 5)], b=[], c=[]) == {"a": ["a left"]}
    assert (engine.swept, engine.worth) == ([["a", "b"]], [0.0])
    assert swept(made("off", "a", groups=("a",)), engine, a=[stored("a", 5)]) == {}
    assert len(engine.swept) == 1


def test_few_rows_are_looked_at_whole_each_time_that_they_have_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    looking(monkeypatch)
    engine = Engine({"a": (stored("a left", 15),)})
    one = made("amortised", "a", "b", groups=("ab",))
    kept = [stored("b", 10)]
    assert swept(one, engine, a=[stored("a", 9)], b=[]) == {}, "too few"
    assert swept(one, engine, a=[stored("a", 25)], b=kept) == {"a": ["a left"]}
    assert (one.watches["a"].left, one.watches["a"].frees) == (25, True)
    assert swept(one, engine, a=[stored("a", 39)], b=kept) == {}, "not yet twice as many"
    assert len(engine.swept) == 1
    assert swept(one, engine, a=[stored("a", 40)], b=kept) == {"a": ["a left"]}
    assert engine.worth == [0.25, 0.25]
    one.watches["a"].left = 0
    assert swept(one, engine, a=[stored("a", 70)], b=kept) == {"a": ["a left"]}, "two steps of forty"
    one.watches["a"].left = 0
    assert swept(one, engine, a=[stored("a", 71)], b=kept) == {}, "more rows wait for a look of their own"
    assert (len(engine.swept), engine.looks) == (3, [])
    few = made("amortised", "a", "b", groups=("ab",))
    assert swept(few, engine, a=[], b=kept) == {"a": ["a left"]}, "as many as the floor"


def test_a_batch_looks_through_so_many_rows_of_groups_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    looking(monkeypatch, STEP=50)
    for seq, first in ((3, ["a"]), (4, ["b"]), (5, ["c"]), (6, ["a"])):
        engine = Engine()
        one = made("amortised", "a", "b", "c", groups=("a", "b", "c"))
        swept(one, engine, seq, **{name: [stored(name, 31)] for name in "abc"})
        assert engine.swept == [first], "what it leaves is less than a stride"
        engine = Engine()
        swept(
            made("amortised", "a", "b", "c", groups=("a", "b", "c")), engine, seq, **{n: [stored(n, 30)] for n in "abc"}
        )
        assert engine.swept == [first, {"a": ["b"], "b": ["c"], "c": ["a"]}[first[0]]]
    engine = Engine()
    swept(made("amortised", "a", "b", groups=("a", "b")), engine, 0, a=[stored("a", 60, batch=0)], b=[stored("b", 30)])
    assert len(engine.swept) == 1
    engine = Engine()
    swept(made("amortised", "a", "b", groups=("a", "b")), engine, 0, a=[stored("a", 80, batch=0)], b=[stored("b", 30)])
    assert engine.swept == [["a"]]


def test_many_rows_are_looked_at_step_by_step_by_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look finds stands in the place of what it judged; what the engine does not look at is given up."""
    looking(monkeypatch)
    segments = {"a": [stored("old", 200), stored("older", 5)], "b": [stored("new", 15, batch=9)]}
    one = made("amortised", "a", "b", groups=("ab",))
    engine = Engine(looked=LookStep(17))
    assert swept(one, engine, **segments) == {}
    assert engine.looks == [30], "credit for two for each that came"
    watch = one.watches["a"]
    assert (watch.credit["young"], watch.last) == (13.0, "young")
    (look,) = watch.looks.values()
    assert {s.path for s in look.segments} == {"old", "older"}
    engine = Engine(looked=LookStep(3, done=True, dead=200, segments=(stored("left", 5),)))
    one = made("amortised", "a", "b", groups=("ab",))
    segments["a"].append(stored("now", 2, batch=9))
    assert swept(one, engine, **segments) == {"a": ["now", "left"]}
    assert one.watches["a"].judged == {"left": 1}
    one = made("amortised", "a", "b", groups=("ab",))
    assert swept(one, Engine(looked=None), **segments) == {}
    assert one.watches["a"].looks == {}
    assert one.watches["a"].credit["young"] == 34.0


def test_segments_that_became_files_are_known_by_their_new_names() -> None:
    one = made("amortised", "a", "b")
    one.watches.update({"a": Watch(judged={"1": 1, "2": 2}), "b": Watch(judged={"3": 3})})
    before = {"a": [stored("1", 1), stored("2", 1)], "b": [stored("3", 1)]}
    one.renamed(before, {"a": [stored("1", 1), stored("file", 1)], "b": [stored("other", 1)]})
    assert [watch.judged for watch in one.watches.values()] == [{"1": 1, "file": 2}, {"other": 3}]


def test_a_look_that_does_not_take_place_costs_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    looking(monkeypatch)
    one = made("amortised", "a")
    segments = {"a": (stored("a", 100),)}

    def cost(watch: Watch, engine: Engine, rows: int = 40, most: int = 40) -> int:
        sweep = Sweep(one.plan, one.plan.buffers, segments, at(0).queries, {}, 0.25)
        return one._looked(engine, batch(), sweep, watch, rows, most, {})  # type: ignore[arg-type]

    assert cost(Watch(), Engine(), rows=19) == 0, "less than a stride"
    assert cost(Watch(left=51), Engine(), most=50) == 0, "not yet twice as many"
    assert cost(Watch(left=50), Engine(), most=50) == 100
    assert cost(Watch(frees=False), Engine()) == 0, "no credit"
    credit: dict[Any, float] = {"young": 30.0, "old": 0.0}
    assert cost(Watch(frees=False, credit=dict(credit)), Engine(looked=None)) == 0, "given up"
    assert cost(Watch(frees=False, credit=dict(credit)), Engine(looked=LookStep(17))) == 17


def test_only_buffers_in_which_the_rules_free_rows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looking(monkeypatch)
    one = made("amortised", "a", "b", groups=("ab",))
    segments = {"a": [stored("few", 90)], "b": [stored("many", 200), stored("new", 20, batch=9)]}
    for freed in ("a", "b"):
        monkeypatch.setattr(one.plan, "freed_sooner", lambda buffer, freed=freed: buffer.id == freed)
        one.watches.clear()
        swept(one, Engine(looked=LookStep(1)), **segments)
        (look,) = one.watches["a"].looks.values()
        assert look.buffer.id == freed


def test_bytes_of_a_sweep_are_those_of_all_its_segments() -> None:
    one = made("amortised", "a", "b")
    segments = {"a": (stored("1", 3), stored("2", 4)), "b": (stored("3", 5),), "c": ()}
    assert Sweep(one.plan, one.plan.buffers, segments, at(0).queries, {}, 0.25).bytes == 8 * 12
