"""Streams of intervals that tell when one begins: what has begun is a partner to come, and ends have to fit it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tidegate import testing
from tidegate.algebra.errors import QueryError
from tidegate.runtime.batch import garbage
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval import purge_rows
from tidegate.runtime.ingest import ingest, validation
from tidegate.runtime.ingest.beginnings.fates import refused_beginnings_and_ends
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id bigint, kind string, a bigint, z bigint"
BEGINS = tg.Begins(id="id", start="a", end="z")


def events(schema: str = SCHEMA, begins: tg.Begins = BEGINS, *, lasting: int | None = None) -> tg.Relation:
    def relations(e: tg.Relation) -> list[tg.Expression]:
        return [e.a < e.z, *([] if lasting is None else [e.z <= e.a + lasting])]

    return tg.stream("E", schema, progress="z", relations=relations, begins=begins)


def kinds(stream: tg.Relation, *names: str, by: str | None = None) -> list[tg.Intervals]:
    keys = () if by is None else (by,)
    return [stream.where(stream.kind == n).as_intervals(start="a", end="z", by=keys, name=n) for n in names]


def overlapping(stream: tg.Relation, *, by: str | None = None) -> tg.Program:
    """A begins before B ends, and ends later: B waits for an A that has begun by its end."""
    a, b = kinds(stream, "A", "B", by=by)
    return tg.program(R=tg.iseq(a.ts < b.te, b.te < a.te, of=(a, b), within=30))


def stored(rows: dict[str, int]) -> int:
    return sum(count for name, count in rows.items() if name.startswith("E#"))


# --- the examples of the paper ----------------------------------------------------------------------------------------

TRACE = [("B", 3, 6), ("D", 6, 10), ("B", 9, 11), ("C", 4, 12), ("A", 7, 14), ("D", 9, 15), ("A", 8, 16)]


def test_the_third_example_step_by_step() -> None:
    """b of 3 to 6 has no A that has begun by its end, d of 6 to 10 no C that has ended; b of 9 to 11 has a of 7."""
    a, b, c, d = kinds(events(), *"ABCD")
    query = tg.iseq(a.ts < b.te, b.te < c.te, c.te < d.te, of=(a, b, c, d), within=30)
    left = {6: 0, 10: 0, 11: 1, 12: 2, 14: 3, 15: 4, 16: 5}
    with testing.drive(tg.program(R=query)) as run:
        for t in range(3, 17):
            run.add("E", [(n, k, s, None) for n, (k, s, _) in enumerate(TRACE) if s == t])
            run.add("E", [(n, k, s, e) for n, (k, s, e) in enumerate(TRACE) if e == t])
            run.advance("E", z=t)
            run.step()
            if t in left:
                assert stored(run.live_rows) == left[t]
        assert run.live_rows.get("beginnings of E", 0) == 0
        found = [(row["A.ts"], row["B.ts"], row["C.ts"], row["D.ts"], row["detected"]) for row in run.results("R")]
        assert found == [(7, 9, 4, 9, 15), (8, 9, 4, 9, 16)]


# --- what frees rows --------------------------------------------------------------------------------------------------


def test_what_has_begun_is_a_partner_of_its_partition_alone() -> None:
    program = overlapping(events("id bigint, kind string, k bigint, a bigint, z bigint"), by="k")
    with testing.drive(program) as run:
        run.add("E", [(1, "A", 7, 0, None), (2, "B", 7, 1, 3), (3, "B", 8, 1, 3)])
        run.advance("E", z=3)
        run.step()
        assert stored(run.live_rows) == 1
        run.add("E", [(1, "A", 7, 0, 9)])
        run.finish()
        run.step()
        run.expect(R=[(7, 0, 9, 1, "A", 1, 3, 2, "B", 9)])


def test_what_waits_for_no_interval_that_has_begun_goes_at_once() -> None:
    told, silent = overlapping(events()), tg.stream("E", SCHEMA, progress="z", relations=lambda e: e.a < e.z)
    for program, left in ((told, 0), (overlapping(silent), 1)):
        with testing.drive(program) as run:
            rows = [(1, "B", 1, None), (1, "B", 1, 3)] if program is told else [(1, "B", 1, 3)]
            run.add("E", rows)
            run.advance("E", z=3)
            run.step()
            assert stored(run.live_rows) == left


def test_an_interval_that_has_begun_and_lasts_too_long_is_no_partner() -> None:
    """A of 0 to come ends after 30, when it does not lie in the window any more."""
    with testing.drive(overlapping(events())) as run:
        run.add("E", [(1, "A", 0, None), (2, "B", 20, None)])
        run.advance("E", z=28)
        run.step()
        run.add("E", [(2, "B", 20, 29)])
        run.advance("E", z=29)
        run.step()
        assert stored(run.live_rows) == 0


def test_a_partner_may_begin_in_the_next_instant() -> None:
    """B of 1 to 3 has come ahead of progress, which is at 1; an A may begin at 2."""
    with testing.drive(overlapping(events())) as run:
        run.add("E", [(1, "B", 1, None), (1, "B", 1, 3)])
        run.advance("E", z=1)
        run.step()
        assert stored(run.live_rows) == 1
        run.add("E", [(2, "A", 2, None), (2, "A", 2, 9)])
        run.finish()
        run.step()
        run.expect(R=[(2, 9, 2, "A", 1, 3, 1, "B", 9)])


def test_the_end_to_come_may_be_any_that_is_left() -> None:
    """A has to end within 3 after B, and may: that it could last longer, too, does not make it a partner of nobody."""
    a, b = kinds(events(), "A", "B")
    program = tg.program(R=tg.iseq(a.ts < b.te, b.te < a.te, a.te - b.te <= 3, of=(a, b), within=30))
    with testing.drive(program) as run:
        run.add("E", [(1, "A", 0, None), (2, "B", 1, None), (2, "B", 1, 3)])
        for reached, left in ((5, 1), (6, 0)):
            run.advance("E", z=reached)
            run.step()
            assert stored(run.live_rows) == left


@pytest.mark.parametrize("few", [purge_rows.FEW_PAIRS, -1])
def test_the_least_end_to_come_is_no_more_than_a_partner_asks_for(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether pairs are compared one by one, or joined. A waits for C, and for a B that ends up to 5 after it begins.
    One has come, at 2, so that A has to end by 12: it may, though it could last until 15.
    """
    monkeypatch.setattr(purge_rows, "FEW_PAIRS", few)
    a, b, c = kinds(events(), *"ABC")
    ends = (b.te <= a.ts + 5, b.te < a.te, a.te <= b.te + 10, a.te < c.te, c.te <= a.te + 20)
    program = tg.program(R=tg.iseq(a.ts < b.te, *ends, of=(a, b, c), within=60))
    with testing.drive(program) as run:
        run.add("E", [(1, "A", 0, None), (2, "B", 1, None), (2, "B", 1, 2)])
        for reached, left in ((4, 1), (11, 1), (12, 0)):
            run.advance("E", z=reached)
            run.step()
            assert stored(run.live_rows) == left


def test_one_partner_to_come_falls_with_another() -> None:
    """C waits for B, which has begun, but B can not follow on an A: none has begun before."""
    a, b, c = kinds(events(), *"ABC")
    program = tg.program(R=tg.iseq(a.ts < b.ts, b.ts < c.te, c.te < b.te, of=(a, b, c), within=30))
    for start, left in ((0, 1), (2, 0)):
        with testing.drive(program) as run:
            run.add("E", [(1, "A", start, None), (2, "B", 1, None), (3, "C", 1, 4)])
            run.advance("E", z=4)
            run.step()
            assert stored(run.live_rows) == left


def test_without_a_plan_to_free_rows_only_the_window_does() -> None:
    with Session(overlapping(events()).facts, options=RunOptions(collect_garbage="exact", purging="off")) as run:
        run.push("E", [(1, "B", 1, None), (1, "B", 1, 3)])
        run.advance("E", {"z": 3})
        run.step()
        assert stored(dict(run.live_rows())) == 1


def test_explain_says_what_is_known_and_what_goes() -> None:
    told, silent = overlapping(events()), tg.stream("E", SCHEMA, progress="z", relations=lambda e: e.a < e.z)
    text = str(told.explain())
    assert "no row of E (A) is there for R or has begun, and none to come" in text
    assert "execution   by beginnings: rows of E (B) go once they have no partner, and none to come" in text
    assert "; of E (A) what has begun is known" in text
    unknown = str(overlapping(silent).explain())
    assert "has begun" not in unknown
    assert "execution   naive: rows are stored as long as the window lets them" in unknown


def test_looks_know_what_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at a part of the rows finds the same as a sweep of all."""
    for name, value in (("FLOOR", 1), ("WHOLE_STEPS", 0), ("STRIDE", 0), ("WORTH", 0.0)):
        monkeypatch.setattr(garbage, name, value)
    from tidegate.runtime.eval import purge_schedule

    for name, young in (("STRIDE", 0), ("YOUNG", 1)):
        monkeypatch.setattr(purge_schedule, name, young)
    with Session(overlapping(events()).facts, options=RunOptions(purging="always")) as run:
        run.push("E", [(1, "A", 2, None), (2, "B", 1, 3), (3, "B", 0, 2)])
        run.advance("E", {"z": 3})
        for _ in range(6):
            run.step()
        assert stored(dict(run.live_rows())) == 1
        run.push("E", [(1, "A", 2, 5)])
        run.finish()
        run.step()
        assert [(row["B.ts"], row["detected"]) for row in run.results("R")] == [(1, 5)]


def test_a_condition_on_what_is_known_later_tells_nothing_before() -> None:
    schema = "id bigint, kind string, a bigint, z bigint, top bigint"
    stream = events(schema, tg.Begins(id="id", start="a", end="z", later=("top",)))
    a = stream.where(stream.kind == "A", stream.top > 3).as_intervals(start="a", end="z", name="A")
    (b,) = kinds(stream, "B")
    program = tg.program(R=tg.iseq(a.ts < b.te, b.te < a.te, of=(a, b), within=30))
    assert "has begun" not in str(program.explain())
    assert "has begun" in str(overlapping(stream).explain())
    with testing.drive(program) as run:
        run.add("E", [(1, "A", 0, None, None), (2, "B", 1, 3, 1)])
        run.advance("E", z=3)
        run.step()
        assert stored(run.live_rows) == 1
        run.add("E", [(1, "A", 0, 5, 9)])
        run.finish()
        run.step()
        run.expect(R=[(0, 5, 1, "A", 9, 1, 3, 2, "B", 1, 5)])


# --- which rows fit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_ends_that_were_not_announced_are_rejected(start: Start) -> None:
    with start(overlapping(events())) as run:
        run.add(
            "E", [(1, "A", 0, None), (2, "A", 1, None), (2, "A", 1, None), (2, "B", 1, None), (3, None, None, None)]
        )
        run.advance("E", z=4)
        run.step()
        assert run.counts["E"].rejected == {"duplicate": 1, "conflict": 1, "null": 1}
        assert run.counts["E"].punctuations == 2
        run.restart()
        run.add(
            "E",
            [
                (1, "A", 0, 9),
                (1, "A", 0, 8),
                (2, "B", 1, 9),
                (4, "A", 4, 9),
                (5, "B", 5, 9),
                (6, "A", 4, None),
                (7, "B", None, 9),
            ],
        )
        run.step()
        rejected = {"duplicate": 1, "conflict": 3, "null": 2, "unannounced": 1, "late": 1}
        assert run.counts["E"].rejected == rejected
        assert run.counts["E"].accepted == 2
        assert sorted(entry["position"] for entry in run.quarantine() if entry["reason"] == "unannounced") == [3]
        run.finish()
        run.step()
        assert set(run.live_rows.values()) == {0}


@pytest.mark.parametrize("collect", ["exact", "amortised", "off"])
def test_what_is_remembered_of_beginnings_says_the_same_however_it_is_stored(collect: Any) -> None:
    """An end may come before its beginning, as long as progress has not come to it; neither comes twice."""
    with testing.drive(overlapping(events()), collect_garbage=collect) as run:
        run.add("E", [(1, "A", 5, 9)])
        run.advance("E", z=4)
        run.step()
        run.add("E", [(1, "A", 5, 8), (1, "A", 6, None), (2, "B", 5, 7), (2, "B", 5, 7)])
        run.step()
        assert run.counts["E"].rejected == {"conflict": 2, "duplicate": 1}
        run.add("E", [(1, "A", 5, None), (2, "B", 5, None)])
        run.advance("E", z=5)
        run.step()
        assert run.counts["E"].rejected == {"conflict": 2, "duplicate": 1}
        run.restart()
        run.add("E", [(1, "A", 5, 9)])
        run.step()
        assert run.counts["E"].rejected == {"conflict": 2, "duplicate": 1, "unannounced": 1}
        run.add("E", [(1, "A", 6, None), (1, "A", 6, 9)])  # another interval of a name that is free again
        run.advance("E", z=9)
        run.step()
        assert run.counts["E"].rejected == {"conflict": 2, "duplicate": 1, "unannounced": 1}


@pytest.mark.parametrize("together", [2, 1 << 16])
def test_ends_are_judged_by_all_beginnings_of_their_rows(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many malformed rows are judged together: an end that differs from the beginning behind it is rejected."""
    for module in (validation, ingest):
        monkeypatch.setattr(module, "JUDGED", together)
    with overlapping(events()).session() as session:
        session.push("E", [(1, "A", 1, 5), (2, "B", 1, 4), (3, "B", 2, None), (1, "A", 0, None)])
        session.step()
        assert [(row["position"], row["reason"]) for row in session.quarantine_rows()] == [(0, "conflict")]


def test_beginnings_are_forgotten_when_their_intervals_end_or_can_not_end_any_more() -> None:
    with testing.drive(overlapping(events(lasting=10))) as run:
        for t in range(40):
            run.add("E", [(t, "A", t, None)])
            if t % 2 and t > 5:
                run.add("E", [(t - 5, "A", t - 5, t)])
            run.advance("E", z=t)
            run.step()
            # Every other one never ends; an interval of 10 has ended by now.
            assert run.live_rows["beginnings of E"] <= 8
        assert run.counts["E"].rejected == {}
        run.advance("E", z=40)
        run.step()
        run.add("E", [(31, "A", 31, 41)])  # the longest that an interval lasts
        run.step()
        assert run.counts["E"].rejected == {}


def test_beginnings_are_written_anew_once_as_many_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "LEAST_BEGUN", 4)
    with testing.drive(overlapping(events()), collect_garbage="amortised") as run:
        most = 0
        for t in range(60):
            run.add("E", [(t, "A", t, None), *([(t - 3, "A", t - 3, t)] if t >= 3 else [])])
            run.advance("E", z=t)
            run.step()
            most = max(most, run.live_rows["beginnings of E"])
        assert 6 <= most <= 16


def test_a_batch_writes_few_beginnings_again_beside_many_that_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were left are read again with as many others only, which are few segments until then."""
    written: list[int] = []
    rewrite = EmbeddedExecutor.rewrite

    def counted(executor: EmbeddedExecutor, batch: Any, rewrites: Any) -> Any:
        written.append(sum(one.rows for one in rewrites if one.buffer.id == "beginnings of E"))
        return rewrite(executor, batch, rewrites)

    monkeypatch.setattr(EmbeddedExecutor, "rewrite", counted)
    store = MemoryStore()
    with Session(overlapping(events()).facts, store) as run:
        run.push("E", [(n, "A", 0, None) for n in range(20_000)])
        run.step()
        for t in range(1, 100):
            run.push("E", [(20_000 + 10 * t + k, "A", t, None) for k in range(10)])
            run.advance("E", {"z": t - 1})
            run.step()
        assert run.live_rows()["beginnings of E"] == 20_990
    assert 0 < max(written) <= 1_000
    manifest = inspect(store).manifest
    assert manifest is not None
    assert len(manifest.segments["beginnings of E"]) <= 16


def test_a_batch_looks_up_the_intervals_of_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counted(*given: Any) -> Any:
        looked.append(given[3].height)
        return refused_beginnings_and_ends(*given)

    monkeypatch.setattr(ingest, "refused_beginnings_and_ends", counted)
    with Session(overlapping(events()).facts) as run:
        run.push("E", [(n, "A", 0, None) for n in range(20_000)])
        run.step()
        for t in range(1, 10):
            run.push("E", [(1000 * t + k, "A", 0, t) for k in range(10)])
            run.push("E", [(1000 * t + 500, "A", t, None)])
            run.advance("E", {"z": t - 1})
            run.step()
        assert run.counts["E"].rejected == {"conflict": 9}
    assert looked[0] == 0
    assert max(looked[4:]) < 100


def test_merged_ends_still_say_which_intervals_have_ended() -> None:
    """A segment has the beginnings, others their ends. An identity is free again once its interval has ended."""
    with Session(overlapping(events()).facts) as run:
        run.push("E", [(n, "A", 0, None) for n in range(40)])
        run.step()
        for n in range(40):
            run.push("E", [(n, "A", 0, n + 2)])
            run.advance("E", {"z": n + 1})
            run.step()
        assert run.live_rows()["beginnings of E"] == 80
        run.push("E", [(n, "B", 50, None) for n in range(39)])
        run.step()
        assert run.counts["E"].rejected == {}


def test_a_beginning_moves_progress_where_a_delay_says_so() -> None:
    with testing.drive(overlapping(events()), sources={"E": tg.source(None, delay=2)}) as run:
        run.add("E", [(1, "A", 0, None), (2, "B", 1, 3)])
        run.step()
        run.add("E", [(3, "A", 9, None), (1, "A", 0, 5)])
        run.step()
        run.expect(R=[(0, 5, 1, "A", 1, 3, 2, "B", 5)])
        run.add("E", [(4, "A", 6, None)])
        run.step()
        assert run.counts["E"].rejected == {"late": 1}


def test_rows_of_files_and_a_key(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("id,kind,a,z\n1,A,0,\n2,B,1,3\n1,A,0,5\n1,A,0,5\n")
    program = overlapping(events())
    source = tg.csv(str(tmp_path / "in"), delay=0, key=("id", "z"))
    results = program.run({"E": source})
    assert [(row["A.ts"], row["detected"]) for row in results.rows("R")] == [(0, 5)]


@pytest.mark.spark
def test_spark_finds_the_same_from_many_files(spark: SparkSession) -> None:
    """Beginnings and ends in files of their own, taken in by workers, with a start from the checkpoint in between."""
    program, expected = overlapping(events()), []
    intervals = [(n, "AB"[n % 2], 2 * n, 2 * n + 3 + 5 * (n % 3)) for n in range(12)]
    for run in (
        testing.drive(program),
        testing.drive(program, spark=spark, driver_bytes=0, shard_bytes=0),
    ):
        with run:
            for t in range(0, 40, 4):
                run.add("E", [(n, k, a, None) for n, k, a, _ in intervals if t <= a < t + 4])
                run.add("E", [(n, k, a, z) for n, k, a, z in intervals if t <= z < t + 4])
                run.advance("E", z=t + 3)
                run.step()
                if t == 12:
                    run.restart()
            assert run.counts["E"].rejected == {}
            assert run.counts["E"].punctuations == 12
            expected.append(sorted(tuple(row.values()) for row in run.results("R")))
    assert expected[0] == expected[1]
    assert len(expected[0]) > 3


# --- declarations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begins", "progress", "says"),
    [
        (("id", "a", "z"), "z", "TG114 begins="),
        (tg.Begins(id="id", start="b", end="z"), "z", "TG101"),
        (tg.Begins(id="id", start="a", end="z"), "a", "TG107 E: beginnings are told"),
        (tg.Begins(id="id", start="kind", end="z"), "z", "TG102 E: an interval has an identity"),
        (tg.Begins(id="z", start="a", end="z"), "z", "TG102 E: an interval has an identity"),
        (tg.Begins(id="id", start="a", end="z", later=("a",)), "z", "TG117 E.a is known later"),
    ],
)
def test_what_says_no_beginning_is_refused(begins: Any, progress: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        tg.stream("E", SCHEMA, progress=progress, begins=begins)


def test_a_checkpoint_is_of_a_stream_that_tells_beginnings_or_of_one_that_does_not(tmp_path: Path) -> None:
    silent = tg.stream(
        "E", SCHEMA.replace("id bigint", "id bigint not null"), progress="z", relations=lambda e: e.a < e.z
    )
    with overlapping(events()).session(checkpoint=tmp_path / "state"):
        pass
    with pytest.raises(StateError, match=r"TG501 (.|\n)* id begins at a and ends at z"):
        overlapping(silent).session(checkpoint=tmp_path / "state")
